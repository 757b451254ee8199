"""Read sets: bytes that a result was made from, compared wherever their bases are."""

from __future__ import annotations

import pytest

from softgen.errors import Unsupported
from softgen.memory.address_space import AddressSpace
from softgen.memory.read_set import ReadPointer, ReadRange, ReadSet
from softgen.memory.space import ArenaTable
from softgen.memory.store import MemfdBuffer

PAGE, FIRST, SECOND, MISSING = 0x1000, 0x10000, 0x20000, 0x90000
MASK = 0xFFFFFFF0


class SlowSpace(AddressSpace):
    """A space without host addresses."""

    @property
    def table(self) -> ArenaTable:
        raise Unsupported("no host addresses")


@pytest.fixture(params=[AddressSpace, SlowSpace])
def space(request: pytest.FixtureRequest) -> AddressSpace:
    made: AddressSpace = request.param("reads", 48)
    for address in (FIRST, SECOND):
        made.map(address, MemfdBuffer(PAGE))
    return made


def test_the_same_bytes_at_another_base_are_the_same(space: AddressSpace) -> None:
    reads = ReadSet([ReadRange(0, 0x10, b"first"), ReadRange(1, 0x20, b"second")], 2)
    space.write(FIRST + 0x10, b"first")
    space.write(SECOND + 0x120, b"second")
    assert reads.same(space, (FIRST, SECOND + 0x100)) and not reads.same(space, (FIRST, SECOND))
    space.write(FIRST + 0x14, b"!")
    assert not reads.same(space, (FIRST, SECOND + 0x100))


def test_pointers_lead_on_from_their_bases(space: AddressSpace) -> None:
    """A table of pointers leads to a block whose own pointer leads to another one; other bits of a dword do not matter."""
    pointers = [ReadPointer(0, 4, 1, MASK), ReadPointer(2, 8, 1, MASK)]
    reads = ReadSet([ReadRange(2, 0, b"block"), ReadRange(3, 0, b"behind")], 2, pointers)
    for table, block, behind in ((0x40, 0x100, 0x200), (0x80, 0x300, 0x380)):
        space.write32(FIRST + table + 4, block | 5)
        space.write(SECOND + block, b"block")
        space.write32(SECOND + block + 8, behind | 3)
        space.write(SECOND + behind, b"behind")
        assert reads.same(space, (FIRST + table, SECOND))
        assert list(reads.bases[2:]) == [SECOND + block, SECOND + behind]
    assert not reads.same(space, (FIRST, SECOND)), "the pointer leads to the base"
    space.write(SECOND + 0x382, b"!")
    assert not reads.same(space, (FIRST + 0x80, SECOND)) and reads.same(space, (FIRST + 0x40, SECOND))


def test_pointers_past_the_end_read_as_zero(space: AddressSpace) -> None:
    reads = ReadSet([ReadRange(2, 0, b"base")], 2, [ReadPointer(0, 0, 1, MASK)])
    space.write32(FIRST, 0x100)
    space.write(SECOND, b"base")
    space.write(SECOND + 0x100, b"else")
    assert not reads.same(space, (FIRST, SECOND), FIRST + 4)
    assert reads.same(space, (FIRST, SECOND), FIRST + 3)


@pytest.mark.parametrize("leading", [MISSING, FIRST])
def test_what_is_not_mapped_is_not_the_same(space: AddressSpace, leading: int) -> None:
    """A pointer, or what one leads to."""
    reads = ReadSet([ReadRange(1, 0, bytes(4))], 1, [ReadPointer(0, 0, 0, 0xFFFFFFFF)])
    space.write32(FIRST, MISSING - FIRST)
    assert not reads.same(space, (leading,)) and reads.same(space, (SECOND,))


def test_addresses_wrap_at_the_last_one(space: AddressSpace) -> None:
    space.write(FIRST, b"wrap")
    assert ReadSet([ReadRange(0, FIRST + 0x100, b"wrap")]).same(space, (2**48 - 0x100,))
    assert ReadSet([]).same(space)
