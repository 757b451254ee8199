"""The data port: loads and stores of EU threads.

In:  a message (descriptor, payload registers, channel mask) and what was bound when its thread was dispatched.
Out: bytes read into the response registers, or bytes written. Outside a surface reads give zero and writes are dropped; an access to
     nothing inside it is a GpuFault that names the lane.

port.py       DataPort: which message, to which memory, answered by whom; what is not built raises Unsupported by name
target.py     where offsets lead: a bound buffer, stateless memory, 64-bit addresses, shared local memory
surface.py    binding table entries become targets
scattered.py  an address per lane: byte, dword and qword scattered, untyped surface reads and writes
block.py      one address for whole registers: OWord and HWord blocks, scratch blocks
atomic.py     integer atomics on dwords and qwords
"""

from softgen.shared_functions.dataport import atomic, block, scattered
from softgen.shared_functions.dataport.port import DataPort
from softgen.shared_functions.dataport.surface import Surfaces
from softgen.shared_functions.dataport.target import LocalMemory

__all__ = ["DataPort", "LocalMemory", "Surfaces", "atomic", "block", "scattered"]  # the last three answer messages by being loaded
