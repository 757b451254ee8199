"""The stream that an encoder writes: headers of MFX_PAK_INSERT_OBJECT, coded data, and what registers say of both.

In:  MFX_IND_OBJ_BASE_ADDR_STATE, MFX_PAK_INSERT_OBJECT. Out: bytes from the PAK-BSE base on; MFC_BITSTREAM_* and MFC_* registers.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field

from softgen.bits.record import Record
from softgen.codec.library import library, run_rows
from softgen.codec.pak.structures import Insertion, StreamEscape, Writer
from softgen.codec.structures import GraphicsTable
from softgen.command import CommandStreamer
from softgen.errors import DecodeError

MOST_BYTES = 1 << 30  # of a stream without upper bound
LAST_DWORD_IS_WHOLE = 32
START_CODE = b"\0\0\1"
REGISTERS = ("MFC_BITSTREAM_BYTECOUNT_FRAME", "MFC_BITSTREAM_SE_BITCOUNT_FRAME", "MFC_QP_STATUS_COUNT", "MFC_AVC_NUM_SLICES",
             "MFC_BITSTREAM_BYTECOUNT_SLICE", "MFC_IMAGE_STATUS_MASK", "MFC_IMAGE_STATUS_CTRL")  # fmt: skip


@dataclass
class CodedStream:
    """The stream of a picture that is being encoded."""

    writer: Writer
    keep: list[object]  # memory that the writer points to
    bits: int = 0  # of syntax elements, without headers
    slices: int = 0
    slice_start: int = 0  # byte at which the last slice begins
    qp_sum: int = 0
    pending: list[object] = field(default_factory=list)  # scans that wait for their header (pak/jpeg/state.py)
    slice_header: Record | None = None  # the last MFX_PAK_INSERT_OBJECT with one

    @property
    def position(self) -> int:
        """Bits so far."""
        return int(8 * self.writer.size + self.writer.held_bits)

    def insert(self, cs: CommandStreamer, cmd: Record, first_mb: int | None = None) -> None:
        """Write the data of a MFX_PAK_INSERT_OBJECT; `first_mb`: it is the header of a slice that begins there."""
        data, bits = payload(cmd)
        if bits:
            self.write(cs, cmd, *(data, bits) if first_mb is None else with_first_mb(data, bits, first_mb))

    def write(self, cs: CommandStreamer, cmd: Record, data: bytes, bits: int) -> None:
        """Write bits in the way that a MFX_PAK_INSERT_OBJECT asks for."""
        escape = StreamEscape.NAL if cmd.emulation_byte_bits_insert_enable else StreamEscape.NONE
        run_rows(cs, library().writer_insert, Insertion(ctypes.addressof(self.writer), data, bits, cmd.skip_emulation_byte_count, escape))

    def finish(self, cs: CommandStreamer) -> None:
        """Write what waits to memory, and the counts to their registers."""
        writer = self.writer
        if writer.held_bits:
            run_rows(cs, library().writer_insert, Insertion(ctypes.addressof(writer), b"\0", 8 - writer.held_bits, 1, StreamEscape.NONE))
        run_rows(cs, library().writer_finish, writer)
        if writer.stored < writer.size:
            cs.warn(f"the coded picture has {writer.size} bytes; {writer.size - writer.stored} of them are beyond its buffer's upper bound")
        counts = writer.size, self.bits, self.qp_sum & 0xFFFFFF, self.slices, writer.size - self.slice_start, 0, 0
        for name, value in zip(REGISTERS, counts, strict=True):
            cs.set(name, value)


def payload(cmd: Record) -> tuple[bytes, int]:
    """The data of a MFX_PAK_INSERT_OBJECT, and how many bits of it count."""
    words = [item.value for item in cmd.insert_data_payload]
    if not words:
        return b"", 0
    data = b"".join(word.to_bytes(4, "little") for word in words)[cmd.data_byte_offset :]
    bits = 8 * len(data) - LAST_DWORD_IS_WHOLE + (cmd.data_bits_in_last_dw or LAST_DWORD_IS_WHOLE)
    if not 0 < bits <= 8 * len(data):
        raise DecodeError(f"data_bits_in_last_dw {cmd.data_bits_in_last_dw} and data_byte_offset {cmd.data_byte_offset} leave no data")
    return data, bits


def with_first_mb(data: bytes, bits: int, first_mb: int) -> tuple[bytes, int]:
    """A slice header of H.264 with first_mb_in_slice. Drivers of VDENC leave one bit for it: the engine knows where slices begin."""
    start = data.find(START_CODE)
    at = 8 * (start + len(START_CODE) + 1)
    if start < 0 or at >= bits:
        return data, bits
    text = f"{int.from_bytes(data, 'big'):0{8 * len(data)}b}"[:bits]
    number = f"{first_mb + 1:b}"
    text = text[:at] + "0" * (len(number) - 1) + number + text[at + 1 :]
    size = -(-len(text) // 8)
    return int(text.ljust(8 * size, "0"), 2).to_bytes(size, "big"), len(text)


def open_stream(cs: CommandStreamer, offset: int = 0) -> CodedStream:
    """A stream at an offset to the PAK-BSE base."""
    bases = cs.latched.get("MFX_IND_OBJ_BASE_ADDR_STATE")
    if bases is None:
        raise DecodeError("no MFX_IND_OBJ_BASE_ADDR_STATE came before")
    base, end = bases.mfc_indirect_pak_bse_object_address + offset, bases.mfc_indirect_pak_bse_object_upper_bound
    if not base:
        raise DecodeError("MFX_IND_OBJ_BASE_ADDR_STATE names no PAK-BSE object to write to")
    if end and end < base:
        raise DecodeError(f"the PAK-BSE object begins at {base:#x}, beyond its upper bound {end:#x}")
    table = cs.space.table
    memory = GraphicsTable(ctypes.addressof(table), (1 << cs.space.bits) - 1)
    return CodedStream(Writer(memory, base, min(end - base, MOST_BYTES) if end else MOST_BYTES), [table])
