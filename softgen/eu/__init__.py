"""The execution unit: its instruction set as bits, records and text, and what instructions do, for every generation.

In    128-bit words (or 64-bit compact ones), text in two dialects, compiled programs; a thread's registers to execute on.
Out   `Instruction` records, the same bits again, text; changed registers and messages.

Encodings are pages (`spec/eu/*.layout`) and tables (`opcodes.table`, `registers.table`, `types.table`, `compaction.csv`); code reads
them and knows no generation. `encode(decode(word)) == word` holds for any 128 bits: what no field says stands in the residue.

The instruction and what it names
  instruction.py    Operand and Instruction, the records everything else speaks of
  opcodes.py        which instructions a generation has, how each is laid out, what it may be asked
  registers.py      architecture registers
  types.py          operand types and their codes
  table.py          reads the lines of tables, strictly
Bits
  decode.py         128 bits -> instruction
  encode.py         instruction -> 128 bits
  compact.py        8 bytes <-> 16
  fields.py         instruction pages as the decoder uses them; bounded memories
  controls.py       everything that is not an operand
  operand.py        operands of the basic form
  forms.py          basic form, branches, sends
  three_source.py   three-source forms and split sends
Text
  lexer.py          patterns taken one after the other, failures with line and column
  labels.py         branch targets
  mesa_format.py    mesa_parse.py: Mesa's dialect, with mesa_controls.py mesa_names.py mesa_operand.py mesa_reader.py mesa_unsaid.py
  iga_format.py     iga_parse.py: IGA's dialect, with iga_controls.py iga_names.py iga_operand.py iga_plan.py iga_reader.py iga_statement.py
  dialect.py        both dialects behind one door: programs to text, text to programs
Programs
  program.py        bytes <-> streams of instructions
  binary.py         kernels inside compiled OpenCL programs
  check.py          restrictions, with check_operand.py check_region.py check_send.py
Execution
  rules.py          rules of execution by generation
  regions.py        which bytes the channels of an operand are
  predicate.py      which channels a predicate lets through
  state.py          registers as lanes
  step.py           the path every computing instruction takes
  thread.py         all state of a thread
  semantics/        what each opcode computes; branches; messages
  control_register.py  the bits of cr0
  exceptions.py     into the system routine and back
  environment.py    what compiled messages find around a thread, and whose fault a fault was
  textured.py       functions that compiled kernels call for the texels of a surface
  interpreter.py    the reference: runs a thread on NumPy lanes
  pairs.py          doubles where each counts as two channels
Engines
  block.py          a thread and its surroundings as compiled code sees them
  engine.py         who runs threads, by name
  threaded/         t0: a compiled handler for each instruction
  translate/        t1: the whole kernel as one function
  promotion.py      from the one to the other
  native.py         native.c: t0's loop, thread groups in turns, their barrier
"""
