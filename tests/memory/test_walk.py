"""Page-table walks that are not repeated: translations are kept by page, tables as they were read, until one is written."""

import pytest

from softgen.memory.physical import PhysicalMemory
from softgen.memory.walk import PageTranslation, TableReader, Unmapped
from tests.memory.page_tables import PAGE, four_level


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
