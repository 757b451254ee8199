"""Compiled OpenCL programs (`ocloc … .bin`): the kernels in them, with name, machine code, SIMD width and launch description.

Three containers, recognised by content: a patch-token program ("CTNI"), alone or in a section of an ELF file; zebin, an ELF file with a
`.text.` section for each kernel; `!<arch>`, an archive of the above. Every offset is checked: a truncated or corrupt file gives a
DecodeError with the place, never more code than it has bytes.

container.py  archives and ELF files: finds the programs in a file
tokens.py     patch-token programs
zebin.py      zebin programs: sections, symbols, relocations, `.ze_info`
launch.py     Launch: arguments, payload and memory that a kernel needs, whichever container described them
view.py       bytes of a file with bounds-checked access
"""

from softgen.eu.binary.container import is_binary, kernels
from softgen.eu.binary.launch import Argument, InlineSampler, KernelBinary, Launch, PayloadValue, Relocation

__all__ = ["Argument", "InlineSampler", "KernelBinary", "Launch", "PayloadValue", "Relocation", "is_binary", "kernels"]
