"""The machine that writes bytecode, ready at once, and its interpreter in C.

machine.py     BytecodeMachine; scalar.py scalars, pointers, basic blocks
program.py     programs of bytecode; assembly.c (assembly.h) places in frames, encoding
kept_programs.py  programs that earlier processes have written, in the cache
bytecode.c     the interpreter (bytecode.h); functions.c and memory.h what its instructions do
"""
