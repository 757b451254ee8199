"""Relocations as arrays: which buffer an entry names, addresses as commands have them, and values that are written."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from softgen.driver import i915_drm as i915
from softgen.driver import relocation
from softgen.driver.errors import Errno
from softgen.driver.relocation import Relocator, canonical, sign_extended, store

HANDLES = (7, 3, 9)
NODE: Any = SimpleNamespace(gpu=SimpleNamespace(kernel=SimpleNamespace(address_size=8)))


def named(handles: tuple[int, ...], targets: list[int], flags: int = 0) -> list[int]:
    """Numbers in the list of the buffers that entries name."""
    rows = [SimpleNamespace(handle=handle) for handle in handles]
    entries = np.array([(target,) for target in targets], [("target", "<u4")])
    return Relocator(NODE, None, flags, rows, [], [0] * len(rows)).targets(entries).tolist()  # type: ignore[arg-type, no-any-return]


@pytest.mark.parametrize("handles, targets, found", [
    (HANDLES, [7, 3, 9, 9, 3], [0, 1, 2, 2, 1]), (HANDLES, [0, 1, 2, 4, 8, 10, 0xFFFFFFFF], [3] * 7), ((5,), [5, 4, 6], [0, 1, 1]),
    ((1, 2), [2, 1, 0, 3], [1, 0, 2, 2]),
])  # fmt: skip
def test_entries_name_buffers_by_their_handles(handles: tuple[int, ...], targets: list[int], found: list[int]) -> None:
    """The number after the last of the list: there is none."""
    assert named(handles, targets) == found


def test_entries_name_buffers_by_their_numbers() -> None:
    assert named(HANDLES, [0, 2, 1, 3, 7, 0xFFFFFFFF], i915.I915_EXEC_HANDLE_LUT) == [0, 2, 1, 3, 3, 3]


@pytest.mark.parametrize("address, width, found", [
    (0x1234, 8, 0x1234), (0x7FFF_FFFF_FFFF, 8, 0x7FFF_FFFF_FFFF), (0x8000_0000_0000, 8, 0xFFFF_8000_0000_0000),
    (0x1_0000_0000_0010, 8, 0x10), (0xFFFF_FFFF_F000, 8, 0xFFFF_FFFF_FFFF_F000), (0x1234, 4, 0x1234), (0x1_8000_0001, 4, 0x8000_0001),
])  # fmt: skip
def test_bits_above_47_repeat_it(address: int, width: int, found: int) -> None:
    """Addresses of 32 bits have none."""
    assert canonical(np.array([address], np.uint64), width).tolist() == [found]


def test_deltas_have_a_sign() -> None:
    deltas = np.array([0, 16, 0x7FFFFFFF, 0x80000000, 0xFFFFFFF0], np.uint32)
    found = [0, 16, 0x7FFFFFFF, -0x80000000 % (1 << 64), -16 % (1 << 64)]
    assert sign_extended(deltas).tolist() == found and sign_extended(np.repeat(deltas, 2)[::2]).tolist() == found


class Memory:
    def __init__(self, size: int) -> None:
        self.data = bytearray(size)

    def window(self, offset: int, size: int) -> memoryview:
        return memoryview(self.data)[offset : offset + size]


@pytest.mark.parametrize("width", [4, 8])
@pytest.mark.parametrize("sizes", [(32,), (8, 24), (12, 4, 16)])
def test_values_are_written_across_pieces_of_memory(sizes: tuple[int, ...], width: int) -> None:
    """Of two that overlap the later one counts. A piece begins somewhere in its buffer."""
    pieces: list[Any] = [SimpleNamespace(buffer=Memory(4 + size), offset=4, size=size) for size in sizes]
    bo: Any = SimpleNamespace(pieces=pieces)
    store(bo, np.array([8, 24, 20], np.uint64), np.array([0x1111111122222222, 0x3333333344444444, 0x5555555566666666], np.uint64), width)
    whole = b"".join(bytes(piece.buffer.data[4:]) for piece in pieces)
    wanted = {8: [0, 0, 0x22222222, 0x11111111, 0, 0x66666666, 0x55555555, 0x33333333],
              4: [0, 0, 0x22222222, 0, 0, 0x66666666, 0x44444444, 0]}  # fmt: skip
    assert np.frombuffer(whole, "<u4").tolist() == wanted[width]
    assert all(piece.buffer.data[:4] == bytes(4) for piece in pieces)


def test_an_entry_that_is_refused_is_named() -> None:
    relocation.refuse(SimpleNamespace(handle=7), np.array([False, False]), 2, "is wrong")
    with pytest.raises(Errno, match="relocation 1 of buffer 7 is wrong") as error:
        relocation.refuse(SimpleNamespace(handle=7), np.array([False, True, True]), 2, "is wrong")
    assert error.value.number == 2
