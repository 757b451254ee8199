"""Page-table walks that are not repeated: translations are kept by page, tables as they were read, until one is written."""

from collections.abc import Callable

import pytest

from softgen.errors import GpuFault
from softgen.memory.page_table import PageTableSpace
from softgen.memory.physical import PhysicalMemory
from softgen.memory.walk import PageTranslation, TableReader, Unmapped
from tests.memory.page_tables import PAGE, PML4, Builder, four_level, of

Tables = Callable[[PhysicalMemory], tuple[PageTableSpace, list[tuple[PhysicalMemory, int]]]]  # a space, and where entries of page 5 are


def test_a_page_is_walked_once_until_a_table_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    build, space = four_level()
    for number in range(3):
        build.map(0x1000_0000 + number * PAGE, 0x9000 + 0x10000 * number, PAGE)
    walked, real = list[int](), space.walk.translate

    def counted(address: int) -> PageTranslation | Unmapped:
        walked.append(address)
        return real(address)

    monkeypatch.setattr(space.walk, "translate", counted)
    for address in (0x1000_0000, 0x1000_0FFF, 0x1000_1008, 0x1000_0004, 0x1000_1000):
        assert space.translate(address).physical == 0x9000 + 0x10000 * (address >> 12 & 1)
    assert walked == [0x1000_0000, 0x1000_1008]
    build.map(0x1000_3000, 0x5000, PAGE)
    assert space.translate(0x1000_0000).physical == 0x9000 and walked[2:] == [0x1000_0000]
    space.invalidate()
    assert space.translate(0x1000_0010).physical == 0x9000 and walked[3:] == [0x1000_0010]


def test_a_table_is_read_once_until_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that was never written: it is watched, and read when it is there."""
    memory, reads = PhysicalMemory("ram"), list[tuple[int, int]]()
    reader, real = TableReader(memory), memory.read

    def counted(address: int, size: int) -> bytes:
        reads.append((address, size))
        return real(address, size)

    monkeypatch.setattr(memory, "read", counted)
    assert reader.entry(0x7008, 2) is None and not reads
    memory.write64(0x7008, 0x1122334455667788)
    memory.write64(0x9FF8, 0x99)
    for _ in range(2):
        assert list(reader.entry(0x7008, 2) or ()) == [0x55667788, 0x11223344] and list(reader.entry(0x7FFC, 1) or ()) == [0]
        assert list(reader.entry(0x9FF8, 2) or ()) == [0x99, 0]
    assert reads == [(0x7000, PAGE), (0x9000, PAGE)]
    memory.write64(0x7008, 0x77)
    assert list(reader.entry(0x7008, 1) or ()) == [0x77] and reads[2:] == [(0x7000, PAGE)]


def global_table(memory: PhysicalMemory) -> tuple[PageTableSpace, list[tuple[PhysicalMemory, int]]]:
    entries = PhysicalMemory("gtt", bits=24)
    return PageTableSpace.global_table("ggtt", of("ivb"), memory, entries), [(entries, 5 * 4)]


def two_level(memory: PhysicalMemory) -> tuple[PageTableSpace, list[tuple[PhysicalMemory, int]]]:
    entries = PhysicalMemory("gtt", bits=24)
    entries.write32(0, 0x40000 | 1)
    return PageTableSpace.two_level("ppgtt", of("ivb"), memory, entries, 0), [(memory, 0x40000 + 5 * 4), (entries, 0)]


def four_levels(memory: PhysicalMemory) -> tuple[PageTableSpace, list[tuple[PhysicalMemory, int]]]:
    build = Builder(memory)
    build.map(0, 0x1000, PAGE)
    return PageTableSpace.four_level("ppgtt", of("kbl"), memory, PML4), [(memory, build.next_table - PAGE + 5 * 8)]


@pytest.mark.parametrize("tables, bits", [(global_table, 32), (two_level, 31), (four_levels, 48)])
def test_addresses_end_where_the_tables_do(tables: Tables, bits: int) -> None:
    """Behind the last one there is nothing that an entry could map."""
    space, _ = tables(PhysicalMemory("ram"))
    assert space.bits == bits
    with pytest.raises(GpuFault, match="not mapped: "):
        space.translate((1 << bits) - 1)
    with pytest.raises(GpuFault, match=f"beyond the {bits}-bit space"):
        space.translate(1 << bits)


@pytest.mark.parametrize("tables", [global_table, two_level, four_levels])
def test_invalidate_forgets_tables_that_compiled_code_wrote(tables: Tables) -> None:
    """Its writes are not tracked. Each entry on the way to page 5 is changed in turn: that of the page, then those above it."""
    memory = PhysicalMemory("ram")
    space, ((of_page, at), *above) = tables(memory)
    of_page.write32(at, 0x9000 | 3)
    assert space.translate(5 * PAGE).physical == 0x9000
    of_page.window(at // PAGE * PAGE, PAGE)[at % PAGE + 1] = 0xA0
    assert space.translate(5 * PAGE).physical == 0x9000, "nobody has noticed"
    space.invalidate()
    assert space.translate(5 * PAGE).physical == 0xA000
    for where, entry in above:
        memory.write32(0x70000 + 5 * 4, 0xB000 | 3)
        where.window(entry // PAGE * PAGE, PAGE)[entry % PAGE + 2] = 7
        space.invalidate()
        assert space.translate(5 * PAGE).physical == 0xB000
