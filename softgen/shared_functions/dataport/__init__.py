"""The data port: loads and stores of EU threads.

In:  a message (descriptor, payload registers, channel mask) and what was bound when its thread was dispatched.
Out: bytes read into the response registers, or bytes written. Outside a surface reads give zero and writes are dropped; an access to
     nothing inside it is a GpuFault that names the lane.

unit.py       UNIT: the declaration
environment.py  what lane programs of messages need
interpreter.py  their environment on the interpreter; compiled.py the one in compiled code
reach.py      which memory a message means
target.py     memory as the interpreter reaches it: a buffer, graphics memory, 64-bit addresses, shared local memory
watched.py    a target whose accesses are reported
surface.py    binding table entries become targets
scattered.py  an address per lane: byte, dword and qword scattered, untyped surface reads and writes
block.py      one address for whole registers: OWord and HWord blocks, scratch blocks
simd4x2.py    two slots in a register
atomic.py     atomics on dwords and qwords, integer and float
typed.py      texels by coordinates, typed atomics, counters
media.py      blocks of pictures, transposed reads, what a surface is
media_block.c  blocks for compiled code, media_block.h; bound_media.py: their surfaces
"""

from softgen.shared_functions.dataport.interpreter import DataPort
from softgen.shared_functions.dataport.surface import Surfaces
from softgen.shared_functions.dataport.target import LocalMemory

__all__ = ["DataPort", "LocalMemory", "Surfaces"]
