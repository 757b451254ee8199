"""From IR to code of this host.

signature.py   Signature, build(): a program with inputs and outputs as a function in IR
routine.py     Routine: a compiled program that is called with arrays
jit.py         load(): IR compiled for this host, or an object out of the cache; llvmlite is imported here and nowhere else
tiers.py       TieredFunction: bytecode until compiled code is ready; compile_policy.py says whether that is made in the background
foreground.py  host threads that a program waits for: those that compile in the background give way
elf_object.py  objects out of the cache, checked before LLVM's linker sees them
source_fingerprint.py  a sum of the sources by which objects in the cache are made
in_flight.py   calls into LLVM that the end of the process waits for
page_release.py  pages of a library that is not in use, given back
"""
