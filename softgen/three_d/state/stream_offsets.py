"""Write offsets of stream output buffers: registers, which commands load, and copies of them in memory.

Reads   3DSTATE_SO_BUFFER
Writes  SO_WRITE_OFFSET0 SO_WRITE_OFFSET1 SO_WRITE_OFFSET2 SO_WRITE_OFFSET3; where the command says that memory has them
"""

from __future__ import annotations

from softgen.bits.record import Record
from softgen.bits.units import DWORD_MASK
from softgen.command import CommandStreamer

FROM_MEMORY = DWORD_MASK  # stream_offset


def load_offset(cs: CommandStreamer, cmd: Record) -> None:
    """Set a buffer's write offset as 3DSTATE_SO_BUFFER says, whether or not the buffer is enabled (BDW 10492-10503, 10543-10569)."""
    if not getattr(cmd, "stream_offset_write_enable", 0):
        return
    offset, number = cmd.stream_offset, cmd.so_buffer_index
    if offset == FROM_MEMORY:
        if not cmd.stream_output_buffer_offset_address_enable:
            cs.warn("3DSTATE_SO_BUFFER: stream_offset from memory, and stream_output_buffer_offset_address_enable 0 (BDW 10498-10503)")
            return
        offset = cs.space.read32(cmd.stream_output_buffer_offset_address)
    elif offset & 3:
        cs.warn(f"3DSTATE_SO_BUFFER: stream_offset {offset}, which is no multiple of 4 (BDW 10548)")
    cs.set(f"SO_WRITE_OFFSET{number}", offset & ~3)
    store_offset(cs, number)


def store_offset(cs: CommandStreamer, number: int) -> None:
    """Copy a buffer's write offset to memory, where its command says so. When that happens is not written: here with each change, so that a
    buffer that gets no vertices has one there, too."""
    buffer = cs.latched.by_index("3DSTATE_SO_BUFFER").get(number)
    if getattr(buffer, "stream_output_buffer_offset_address_enable", 0):
        assert buffer is not None
        cs.space.write(buffer.stream_output_buffer_offset_address, cs.get(f"SO_WRITE_OFFSET{number}").to_bytes(4, "little"))
