"""The machine that writes IR for LLVM.

machine.py     LlvmMachine
text.py        lines and frames; scalar.py scalars, pointers, basic blocks
memory.py      loads, stores, atomics; call.py calls by address, permute, append
mask.py        masks on hosts without mask registers
region.py      graphics memory: addressing.py host addresses, fast_path.py contiguous and uniform accesses inline, access.py the functions
               for all others, adjacent.py several elements of each lane, blocks.py blocks
affine.py      affine lane values (base + lane·stride), tracked while IR is written
rounding.py    lane programs for roundings and 16-bit operations that hosts lack; half.py fused multiply-add of 16-bit floats
"""
