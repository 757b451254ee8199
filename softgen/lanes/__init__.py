"""Lanes: one vector language for everything that computes, and three machines that run it.

In:  lane programs: Python functions over a machine and typed vectors (values of 1 to 256 lanes).
Out: their results: at once from NumPy arrays, as host vector code that LLVM compiled, or as bytecode for a C interpreter. All agree bit
     for bit; which NaN a NaN is after arithmetic is left open.

types.py              LaneType: u8 to i64, f16 to f64, bool_; Lanes
value.py              Value with its operators, Variable, Memory, Region
once.py               results that several host threads ask for, made once
operations.py         the table of lane-wise operations
machine.py            Machine: everything a program may say; start reading here. memory_operations.py has loads, stores, records, append
record.py             records: named fields in memory
function.py           functions that programs call by address; function_type.py their types
host_function.py      C functions over lanes that programs call
primitives.py         what a machine must implement, and the checks in front of it
numpy.py              NumpyMachine, the reference; numpy_memory.py has its loads, stores and atomics, numpy_region.py graphics memory
exact.py              correctly rounded arithmetic on Python integers, for numpy.py
llvm.py               LlvmMachine, which writes IR: llvm_text.py lines and frames; llvm_scalar.py scalars, pointers, basic blocks;
                      llvm_memory.py loads, stores, atomics; llvm_call.py calls by address, permute, append
llvm_mask.py          masks on hosts without mask registers
affine.py             affine lane values (base + lane·stride), tracked while IR is written
llvm_region.py        graphics memory: llvm_addressing.py host addresses, llvm_fast_path.py contiguous and uniform accesses inline,
                      llvm_access.py the functions for all others, llvm_adjacent.py several elements of each lane, llvm_blocks.py blocks
bytecode.py           BytecodeMachine, which writes bytecode: bytecode_program.py assembly; bytecode_scalar.py scalars,
                      pointers, basic blocks; bytecode_assembly.c places in frames, encoding; bytecode.c the interpreter
tiers.py              TieredFunction: bytecode until compiled code is ready; mode.py whether that is made in the background
foreground.py         host threads that a program waits for: those that compile in the background give way
rounding.py           lane programs for roundings and 16-bit operations that hosts lack, for llvm.py
llvm_half.py          fused multiply-add of 16-bit floats by what the target has
signature.py          Signature, build(): a program with inputs and outputs as a function in IR
jit.py                load(): IR compiled for this host, or an object from cache.py; llvmlite is imported here and nowhere else
in_flight.py          calls into LLVM that the end of the process waits for
elf_object.py         objects out of the cache, checked before LLVM's linker sees them
resident.py           pages of a library that is not in use, given back
maker.py              a sum of the sources by which objects in the cache are made
routine.py            Routine: a compiled program that is called with arrays

No IR is written outside this package (tests/test_ir_text.py).
"""
