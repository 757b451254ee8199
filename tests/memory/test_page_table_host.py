"""Page tables as compiled code sees them: host addresses that follow what the tables say."""

import ctypes
import struct
from pathlib import Path

import pytest

from softgen.bits.generation import generation
from softgen.errors import GpuFault, Unsupported
from softgen.memory import guard
from softgen.memory.address_space import AddressSpace
from softgen.memory.page_table import PageTableSpace
from softgen.memory.physical import PhysicalMemory
from tests.memory.page_tables import M2, PAGE, PML4, Builder, four_level, of


@pytest.mark.parametrize("unwritten", ["zero", "fault"])
def test_compiled_code_sees_what_the_tables_say(unwritten: str) -> None:
    memory = PhysicalMemory("ram", unwritten=unwritten)
    build = Builder(memory)
    for i in range(3):
        build.map(0x5000 + i * PAGE, 0x9000 + i * PAGE, PAGE)
    build.map(0xFFFF_0000_0000, 0x20_0000, M2, flags=1)
    space = PageTableSpace.four_level("ppgtt", generation(9), memory, PML4)
    memory.write(0x9FFE, b"abcd")
    mirror = AddressSpace("mirror")
    space.fill(mirror)
    assert mirror.read(0x5FFE, 4) == b"abcd" == space.read(0x5FFE, 4)
    mirror.write32(0x6010, 0x12345678)
    assert space.read32(0x6010) == 0x12345678
    with pytest.raises(GpuFault):
        mirror.write32(0xFFFF_0000_0000, 1)
    assert mirror.extent(0x5000, 1 << 20) == space.extent(0x5000, 1 << 20) == (3 if unwritten == "zero" else 2) * PAGE
    assert mirror.extent(0xFFFF_0000_0000, 1 << 30) == (M2 if unwritten == "zero" else 0)


def host_address(space: PageTableSpace, address: int) -> int:
    return space.table[address >> 32] + (address & 0xFFFFFFFF)


def peek(space: PageTableSpace, address: int) -> int:
    """A dword as compiled code reads it: at a host address, guarded."""
    probe = (ctypes.c_uint64 * 3)(host_address(space, address))
    guard.call(ctypes.cast(guard.library().guard_probe_read, ctypes.c_void_p).value or 0, ctypes.addressof(probe), space)
    return probe[1] & 0xFFFFFFFF


def test_host_addresses_show_the_same_bytes() -> None:
    build, space = four_level()
    build.map(0x5000, 0x12_3456_7000, PAGE)
    build.map(0x6000, 0x12_3456_8000, PAGE)
    build.map(0x8000_0020_0000, 0x30_0060_0000, M2)
    build.map(0x7000, 0x5000, PAGE, flags=1)
    space.write(0x5FFC, struct.pack("<II", 0x11223344, 0x55667788))
    assert peek(space, 0x5FFC) == 0x11223344 and peek(space, 0x6000) == 0x55667788
    ctypes.c_uint32.from_address(host_address(space, 0x8000_0020_0010)).value = 77
    assert space.read32(0x8000_0020_0010) == 77 == space.memory.read32(0x30_0060_0010)
    with pytest.raises(GpuFault, match=r"^read at 0x9000 in ppgtt by ip 0x10: not mapped: page table entry at .* is 0x0, not present$"):
        peek(space, 0x9000)
    assert peek(space, 0x7000) == 0


def test_what_no_access_of_compiled_code_can_miss() -> None:
    """As of the last time that host addresses were asked for; before the first, nothing."""
    build, space = four_level()
    build.map(0x5000, 0x10000, PAGE)
    build.map(0x6000, 0x30000, PAGE)
    build.map(0x7000, 0x5000, PAGE, flags=1)  # present, not writable
    assert space.mapped(0x5000, 4 * PAGE) == 0 and space.table is not None
    assert [space.mapped(address, 1 << 20) for address in (0x5000, 0x6FF0, 0x7000, 0x8000)] == [2 * PAGE, 16, 0, 0]
    build.map(0x7000, 0x50000, PAGE)
    assert space.mapped(0x5000, 1 << 20) == 2 * PAGE and space.table is not None
    assert space.mapped(0x5000, 1 << 20) == 3 * PAGE


def test_host_addresses_follow_the_tables() -> None:
    build, space = four_level()
    build.map(0x5000, 0x10000, PAGE)
    for physical, value in ((0x10000, 1), (0x20000, 2), (0x30000, 3)):
        space.memory.write32(physical, value)
    assert peek(space, 0x5000) == 1
    build.map(0x5000, 0x20000, PAGE)  # another page in its place
    assert peek(space, 0x5000) == 2
    build.map(0x7F00_0000_0000, 0x30000, PAGE)  # tables where there were none
    assert peek(space, 0x7F00_0000_0000) == 3
    build.map(0x5000, 0x20000, PAGE, flags=2)  # gone
    with pytest.raises(GpuFault, match="not present"):
        peek(space, 0x5000)
    assert peek(space, 0x7F00_0000_0000) == 3


def test_a_table_that_appears_behind_an_entry_that_was_there() -> None:
    memory = PhysicalMemory("ram")
    build = Builder(memory)
    space = PageTableSpace.four_level("ppgtt", of("kbl"), memory, PML4)
    build.map(0x5000, 0x10000, PAGE)
    memory.write64(PML4 + 8, 0x9000_0003)  # to a page nobody wrote
    with pytest.raises(GpuFault, match="nothing is mapped"):
        peek(space, 1 << 39)
    memory.write64(0x9000_0000, 0xC000_0083)  # one of 1 GiB
    assert peek(space, 1 << 39) == 0


def test_tables_that_compiled_code_wrote_count_after_invalidate() -> None:
    build, space = four_level()
    build.map(0x5000, 0x10000, PAGE)
    build.map(0x6000, PML4 + 3 * PAGE, PAGE)  # the page table itself
    space.memory.write32(0x20000, 9)
    assert peek(space, 0x5000) == 0
    ctypes.c_uint64.from_address(host_address(space, 0x6000 + 5 * 8)).value = 0x20003
    space.invalidate()
    assert peek(space, 0x5000) == 9


def test_too_many_pieces_are_refused_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("softgen.memory.mirror.MAX_RUNS", 2)
    build, space = four_level()
    for i in range(2):
        build.map(0x5000 + i * PAGE, 0x10000 * i, PAGE)
    assert peek(space, 0x6000) == 0, "so many are fine"
    build.map(0x7000, 0x50000, PAGE)
    with pytest.raises(Unsupported, match="ppgtt: its pages lie in more than 2 pieces"):
        _ = space.table


def test_cached_translations_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("softgen.memory.page_table._KEPT", 4)
    build, space = four_level()
    for i in range(10):
        build.map(i * PAGE, 0x10000 * i, PAGE)
    assert [space.translate(i * PAGE).physical for i in (*range(10), *range(10))] == [0x10000 * i for i in range(10)] * 2
    assert len(space._kept) <= 4


def test_the_extent_of_a_page_at_address_zero() -> None:
    build, space = four_level()
    build.map(0, 0x9000, PAGE)
    assert space.extent(0, 1 << 20) == PAGE and space.extent(-1, 1 << 20) == 0 and space.extent(PAGE, 1) == 0


def test_memory_that_faults_where_unwritten_does_so_for_compiled_code() -> None:
    memory = PhysicalMemory("ram", unwritten="fault")
    build = Builder(memory)
    build.map(0x5000, 0x9000, PAGE)
    space = PageTableSpace.four_level("ppgtt", generation(9), memory, PML4)
    space.memory.write32(0x9000 - PAGE, 0)
    build.map(0x6000, 0x9000 - PAGE, PAGE)
    with pytest.raises(GpuFault, match="physical 0x9000 was never written"):
        peek(space, 0x5000)
    space.write32(0x5000, 5)
    assert peek(space, 0x5000) == 5


def test_compiled_code_reads_on_across_every_4_gib_border() -> None:
    """Pages on both sides of a border become visible in one update, in any order: the tail of the first arena shows the second page."""
    build, space = four_level()
    borders = [(2 * number + 1) << 32 for number in range(24)]
    for number, border in enumerate(borders):
        for side in (0, 1):
            physical = 0x1000_0000 + (2 * number + side) * 2 * PAGE  # never contiguous: two mappings
            build.map(border - PAGE + side * PAGE, physical, PAGE)
            build.memory.write(physical, bytes([number + 1]) * PAGE)
    hosts = [space.table[(border >> 32) - 1] + (1 << 32) for border in borders]
    assert all(map(readable, hosts))
    assert [ctypes.string_at(host - 8, 16) for host in hosts] == [bytes([number + 1]) * 16 for number in range(len(borders))]


def readable(host: int) -> bool:
    for line in Path("/proc/self/maps").read_text("utf-8").splitlines():
        start, end = (int(part, 16) for part in line.split()[0].split("-"))
        if start <= host < end:
            return line.split()[1].startswith("r")
    return False
