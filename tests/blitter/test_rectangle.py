"""Rectangles of surfaces as arrays: places, tiles and the end of the address space."""

from __future__ import annotations

import numpy as np
import pytest

from softgen.blitter.blit import BlitSurface
from softgen.blitter.rectangle import SurfaceRectangle
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer

PAGE = 0x1000


def space(bits: int) -> AddressSpace:
    """The first page and the last, each with its bytes numbered."""
    made = AddressSpace("ends", bits)
    for address in (0, (1 << bits) - PAGE):
        made.map(address, MemfdBuffer(PAGE, "page"))
        made.write(address, (np.arange(PAGE) % 251).astype(np.uint8).tobytes())
    return made


@pytest.mark.parametrize("bits", [32, 48])
def test_rows_wrap_at_the_end_of_the_address_space(bits: int) -> None:
    """The second row is at the first addresses; a row before the first ones is at the last."""
    held = space(bits)
    after = SurfaceRectangle(held, BlitSurface((1 << bits) - 64, 64, "linear", 8, 0), (4, 2))
    assert after.read().tolist() == [[(PAGE - 56 + byte) % 251 for byte in range(4)], [8, 9, 10, 11]]
    before = SurfaceRectangle(held, BlitSurface(0, 64, "linear", 8, -1), (4, 2))
    assert before.read().tolist() == after.read().tolist()
    after.write(np.array([[1, 2, 3, 4], [5, 6, 7, 8]], np.uint8))
    assert held.read((1 << bits) - 56, 4) == b"\1\2\3\4" and held.read(8, 4) == b"\5\6\7\x08"
    assert held.read((1 << bits) - 57, 1)[0] == (PAGE - 57) % 251 and held.read(12, 1)[0] == 12


@pytest.mark.parametrize("bits", [32, 48])
def test_tiles_wrap_at_the_end_of_the_address_space(bits: int) -> None:
    """X-major, of one tile of 8 rows to a row of tiles: rows 7 and 8 are the end of one tile and the start of the next."""
    held = space(bits)
    found = SurfaceRectangle(held, BlitSurface((1 << bits) - PAGE, 512, "x_major", 3, 7), (2, 2))
    assert found.read().tolist() == [[(7 * 512 + 3) % 251, (7 * 512 + 4) % 251], [3, 4]]
    found.write(np.array([[1, 2], [3, 4]], np.uint8))
    assert held.read((1 << bits) - 512 + 3, 2) == b"\1\2" and held.read(3, 2) == b"\3\4"
