"""The execution unit: its instruction set as bits, records and text, and what instructions do, for every generation.

In    128-bit words (or 64-bit compact ones), text in two dialects, compiled programs; a thread's registers to execute on.
Out   `Instruction` records, the same bits again, text; changed registers and messages.

Encodings are pages (`spec/eu/*.layout`) and tables (`opcodes.table`, `registers.table`, `types.table`, `compaction.csv`); code reads
them and knows no generation. `encode(decode(word)) == word` holds for any 128 bits: bits that no field claims are kept as residue.

isa/             the decoded instruction, opcodes, registers, types, rules of execution
encoding/        words <-> instructions, native and compact; instruction streams
text/            assembler and disassembler: IGA's and Mesa's dialects
check/           restrictions on instructions
binary/          kernels inside compiled OpenCL programs, and how to launch them
thread/          a thread's state, regions, predication, exceptions
semantics/       what each opcode computes; branches; messages; execution of ALU instructions (step.py)
interpreter.py   the reference engine: executes a thread instruction by instruction on NumPy lanes
engine.py        engines by name: reference, t0, t1, auto
engine_protocol.py  protocol of the compiling engines: what is asked of them and returned
threaded/        T0: a compiled handler for each instruction
translate/       T1: the whole kernel as one native function
promotion.py     auto: T0 first, T1 once a kernel is hot
native.py        native.c: T0's loop, barriers; native.h a thread as C knows it
"""
