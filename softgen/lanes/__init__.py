"""Lanes: one vector language for everything that computes, and three machines that run it.

In:  lane programs: Python functions over a machine and typed vectors (values of 1 to 256 lanes).
Out: their results: at once from NumPy arrays, as host vector code that LLVM compiled, or as bytecode for a C interpreter. All agree bit
     for bit; which NaN a NaN is after arithmetic is left open.

types.py              LaneType: u8 to i64, f16 to f64, bool_; Lanes
value.py              Value with its operators, Variable, Memory, Region
operations.py         the table of lane-wise operations
machine.py            Machine: everything a program may say; start reading here. memory_operations.py has loads, stores, records, append
code_machine.py       CodeMachine: a machine that writes code around lane programs, too: scalars, pointers, basic blocks
primitives.py         what a machine must implement, and the checks in front of it
record.py             records: named fields in memory
function.py           functions that programs call by address; function_type.py their types; host_function.py C functions over lanes
once.py               results that several host threads ask for, made once
numpy/                the reference machine
bytecode/             the machine that writes bytecode, and its interpreter in C
llvm/                 the machine that writes IR
compile/              from IR to code: signatures, LLVM, the object cache, when it is done

No IR is written outside this package (tests/test_ir_text.py).
"""
