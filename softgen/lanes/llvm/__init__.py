"""The machine that writes IR for LLVM.

machine.py     LlvmMachine, one function: what programs ask for is handed to its parts, each knows those above it alone
text.py        lines, registers, labels and the frame of a function; the module that functions share
mask.py        masks on hosts without mask registers
scalar.py      scalars, pointers and basic blocks: code around lane programs
control.py     If, Else, While and variables
arithmetic.py  lane-wise operations, conversions and shuffles, with lane programs for what hosts lack: rounding.py roundings and 16-bit
               operations, half.py fused multiply-add of 16-bit floats
call.py        calls by address and of host functions, permute, append
memory.py      loads, stores and atomics of a program's own memories
addressing.py  host addresses of graphics memory
region.py      its loads, stores and atomics: fast_path.py contiguous and uniform accesses inline, access.py the functions for all others;
               blocks.py blocks, adjacent.py several elements of each lane
affine.py      affine lane values (base + lane·stride), tracked while IR is written
"""
