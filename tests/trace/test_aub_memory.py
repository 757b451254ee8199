"""Memory of an AUB trace: pages that no table maps, pages that one maps later, and both in one space."""

from __future__ import annotations

import pytest

from softgen.bits.generation import device
from softgen.errors import GpuFault, SoftgenError, Unsupported
from softgen.trace.aub_memory import AubMemory, LooseMemory


def regions(space: object) -> list[tuple[int, int]]:
    return [(region.start, region.size) for region in space.regions()]  # type: ignore[attr-defined]


# -- what no table maps --------------------------------------------------------------------------------------------


def test_memory_that_no_table_maps_ends_somewhere() -> None:
    loose = LooseMemory("loose", 1 << 20)
    loose.write(0x1FFE, b"abcd")
    assert loose.read(0x1FFE, 4) == b"abcd" and loose.extent(0x1000, 0x4000) == 0x2000
    with pytest.raises(GpuFault, match="read at 0x3000"):
        loose.read(0x2FFE, 4)


def test_loose_bytes_are_where_they_were_written() -> None:
    loose = LooseMemory("loose", 1 << 20)
    loose.write(0x1FFE, b"abcd")
    assert (loose.read(0x1FFC, 4), loose.read(0x2000, 4)) == (b"\0\0ab", b"cd\0\0")
    loose.write(0x1800, b"x" * 0x900)
    loose.write(0x1804, b"y")
    assert loose.read(0x1000, 0x2000) == bytes(0x800) + b"xxxxy" + b"x" * 0x8FB + bytes(0xF00)
    assert loose.read(0x1000, 0) == b"" and regions(loose) == [(0x1000, 0x2000)]


@pytest.mark.parametrize("address, limit, size", [(0x1000, 0x4000, 0x2000), (0x1800, 0x100, 0x100), (0x1800, 0x800, 0x800),
    (0x1FFF, 2, 2), (0x2FFF, 2, 1), (0x1800, 0, 0), (0x1800, -4, 0), (0x3000, 4, 0), (0xFFF, 4, 0), (0x5FF0, 0x20, 0x10)])  # fmt: skip
def test_how_far_loose_memory_goes_on(address: int, limit: int, size: int) -> None:
    loose = LooseMemory("loose", 1 << 20)
    for page in (0x1000, 0x2000, 0x5000):
        loose.write(page, b"x")
    assert loose.extent(address, limit) == size
    assert regions(loose) == [(0x1000, 0x2000), (0x5000, 0x1000)] and regions(LooseMemory("none", 1)) == []


def test_loose_memory_takes_no_more_pages_than_its_limit() -> None:
    loose = LooseMemory("loose", 0x3000)
    loose.write(0x1FFF, b"ab")
    loose.write(0x8000, b"c")
    loose.write(0x1000, b"again" * 1000)
    with pytest.raises(SoftgenError, match=r"loose: more than 0x3000 bytes written \(at 0x9004\)"):
        loose.write(0x9004, b"d")


def test_loose_memory_ends_with_its_address_bits() -> None:
    loose = LooseMemory("loose", 1 << 20, bits=16)
    loose.write(0xFFFC, b"last")
    for address, data, place in ((0xFFFC, b"12345", 0x10000), (0x20000, b"1", 0x20000)):
        with pytest.raises(GpuFault, match=rf"write at {place:#x} in loose: beyond the 16-bit space"):
            loose.write(address, data)
    assert loose.read(0xFFFC, 4) == b"last" and regions(loose) == [(0xF000, 0x1000)]


# -- mapped and loose pages ----------------------------------------------------------------------------------------


def entry(memory: AubMemory, address: int, physical: int) -> None:
    """Map a page of the global space; an entry of Gen9 has 8 bytes."""
    assert memory.write("global_entry", address // 4096 * 8, (physical | 1).to_bytes(8, "little")) is False


@pytest.fixture
def memory() -> AubMemory:
    """A mapped page at 0x1000, and a loose one behind it."""
    made = AubMemory(device("skl").generation, 1 << 20)
    entry(made, 0x1000, 0x50000)
    assert made.write("global", 0x1FF0, b"m" * 16 + b"l" * 16) is True
    assert made.write("global", 0x1000, b"mapped") is False
    return made


def test_a_space_reads_and_writes_across_both_kinds_of_page(memory: AubMemory) -> None:
    space = memory.global_space
    assert (space.read(0x1FFE, 4), space.read(0x1000, 6), space.read(0x2008, 10)) == (b"mmll", b"mapped", b"l" * 8 + b"\0\0")
    space.write(0x1FFE, b"MMLL")
    assert (memory.physical.read(0x50FFD, 3), space.loose.read(0x2000, 3)) == (b"mMM", b"LLl")
    assert memory.physical.read(0x51000, 2) == b"\0\0", "nothing of the loose page is written behind the mapped one"
    for access in (lambda: space.read(0x2FFE, 4), lambda: space.write(0x2FFE, b"1234")):
        with pytest.raises(GpuFault, match="at 0x3000 in global table: not mapped: global table entry"):
            access()
    assert space.read(0x2FFE, 2) == b"\0\0", "a write that faults has written nothing"


def test_how_far_a_space_of_both_goes_on(memory: AubMemory) -> None:
    space = memory.global_space
    found = [space.extent(*asked) for asked in ((0x1000, 1 << 20), (0x1FF0, 0x20), (0x2FFE, 8), (0x2000, 4), (0x3000, 8), (0x1000, 0))]
    assert found == [0x2000, 0x20, 2, 4, 0, 0]
    assert regions(space) == [(0x1000, 0x1000), (0x2000, 0x1000)]
    with pytest.raises(Unsupported, match="global memory: 1 of its pages are in no page table"):
        space.table  # noqa: B018


def test_loose_pages_move_where_tables_map_them(memory: AubMemory) -> None:
    """Only bytes that were written do: the others are as the physical page has them."""
    space = memory.global_space
    memory.write("global", 0x2800, b"far")
    memory.write("global", 0x9000, b"left")
    entry(memory, 0x2000, 0x60000)
    memory.physical.write(0x60000, b"p" * 0x1000)
    assert space.loose.read(0x2000, 2) == b"ll", "not before work starts"
    space.settle()
    assert memory.physical.read(0x60000, 0x1000) == b"l" * 16 + b"p" * 0x7F0 + b"far" + b"p" * 0x7FD
    assert list(space.loose.pages) == [9] and space.read(0x9000, 4) == b"left"
    memory.physical.write(0x60000, b"gpu")
    space.settle()
    assert space.read(0x2000, 4) == b"gpul", "what was moved is moved once"


def test_compiled_code_reaches_a_space_once_all_its_pages_are_mapped(memory: AubMemory) -> None:
    entry(memory, 0x2000, 0x60000)
    memory.global_space.settle()
    assert not memory.global_space.loose.pages and memory.global_space.table is memory.global_space.tables.table
    assert memory.global_space.mapped(0x1800, 1 << 20) == 0x1800


def test_every_space_of_a_record_has_its_memory(memory: AubMemory) -> None:
    assert memory.write("context", 0x7000, b"context") is True and memory.write("physical", 0x7000, b"physical") is False
    context = memory.context(0x1000)
    assert memory.space("context", None) is memory.loose and memory.space("context", context) is context
    assert memory.space("global", context) is memory.global_space and memory.space("global_entry", None) is memory.entries
    assert memory.space("physical", None) is memory.space("local", None) is memory.physical
    assert (memory.loose.read(0x7000, 7), memory.physical.read(0x7000, 8)) == (b"context", b"physical")
    assert memory.entries.read(8, 8) == (0x50001).to_bytes(8, "little")


def test_translations_of_few_contexts_are_kept() -> None:
    """The same tables are the same space, until there are too many."""
    memory = AubMemory(device("skl").generation, 1 << 20)
    first = memory.context(0x1000)
    assert memory.context(0x1000) is first and memory.context((0x1000, 0, 0, 0)) is not first
    for number in range(2, 64):
        memory.context(number << 12)
    assert memory.context(0x1000) is first
    memory.context(64 << 12)
    assert memory.context(0x1000) is not first


def test_a_context_is_named_by_its_first_table() -> None:
    memory = AubMemory(device("skl").generation, 1 << 20)
    assert memory.context(0x3000).name == "context memory (tables at 0x3000)"
    assert memory.context((0x1000, 0x2000, 0, 0)).name == "context memory (tables at 0x1000)"
