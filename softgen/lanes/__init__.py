"""Lanes: one vector language for everything that computes, and two machines that run it.

In:  lane programs: Python functions over a machine and typed vectors (values of 1 to 256 lanes).
Out: their results: at once from NumPy arrays, or as host vector code that LLVM compiled. Both agree bit for bit; which NaN a NaN is
     after arithmetic is left open.

types.py         LaneType: u8 to i64, f16 to f64, bool_
value.py         Value with its operators, Variable, Memory, Region
operations.py    the table of lane-wise operations
machine.py       Machine: everything a program may say; start reading here
primitives.py    what a machine must implement, and the checks in front of it
numpy.py         NumpyMachine, the reference; numpy_memory.py has its loads, stores and atomics, numpy_region.py those of graphics memory
exact.py         correctly rounded arithmetic on Python integers, for numpy.py
llvm.py          LlvmMachine, which writes IR: llvm_text.py is the writing, llvm_memory.py loads, stores and atomics
affine.py        affine lane values (base + lane·stride), tracked while IR is written
llvm_region.py   those of graphics memory; llvm_near.py sees the common ways lanes lie, llvm_access.py writes the functions for all others
rounding.py      lane programs for roundings and 16-bit operations that hosts lack, for llvm.py
llvm_half.py     fused multiply-add of 16-bit floats by what the target has
signature.py     Signature, build(): a program with inputs and outputs as a function in IR
jit.py           load(): IR compiled for this host, or an object from cache.py; llvmlite is imported here and nowhere else
routine.py       Routine: a compiled program that is called with arrays
"""
