"""The sizes that every package shares are those of the host's types."""

import struct

from softgen.bits import units


def test_sizes_are_those_of_packed_integers() -> None:
    sizes = {"H": units.WORD, "I": units.DWORD, "Q": units.QWORD, "QQ": units.OWORD, "8I": units.GRF_BYTES}
    assert {code: struct.calcsize(f"<{code}") for code in sizes} == sizes
    assert units.GRF_COUNT * units.GRF_BYTES == units.PAGE_SIZE == 4 << 10, "a thread's register file has 128 registers of 256 bits"
    assert (struct.pack("<I", units.DWORD_MASK), struct.pack("<Q", units.QWORD_MASK)) == (b"\xff" * 4, b"\xff" * 8)
