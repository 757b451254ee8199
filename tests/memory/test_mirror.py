"""Host mappings of a page-table space: which parts of a page compiled code can reach."""

import ctypes
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from softgen.errors import GpuFault, Unsupported
from softgen.memory.mirror import HostMirror, backed_parts
from softgen.memory.page_table import PageTableSpace
from softgen.memory.physical import PhysicalMemory
from softgen.memory.walk import PageTranslation
from tests.memory.page_tables import PAGE, four_level, of

MOST = 16384  # pieces of physical memory that a space may have


# Of a page of six times 4 KiB at 0x40000, which is at 0x10000 in physical memory: the first page and the number of pages of each run.
@pytest.mark.parametrize(("written", "runs"), [
    ([], []),
    ([0, 1, 2, 3, 4, 5], [(0, 6)]),
    ([-1, 0, 1, 5, 6, 7], [(0, 2), (5, 1)]),
    ([1, 3, 4], [(1, 1), (3, 2)]),
    ([-1, 6], []),
])  # fmt: skip
@pytest.mark.parametrize("writable", [True, False])
def test_only_written_parts_of_a_page_are_mapped(written: list[int], runs: list[tuple[int, int]], writable: bool) -> None:
    """Where reads of unwritten memory fault, runs of written pages, each at its own address; otherwise the whole page."""
    memory, page = PhysicalMemory("ram", unwritten="fault"), PageTranslation(0x40000, 6 * PAGE, 0x10000, writable)
    for number in written:
        memory.write(0x10000 + number * PAGE, b"1")
    wanted = [PageTranslation(0x40000 + first * PAGE, count * PAGE, 0x10000 + first * PAGE, writable) for first, count in runs]
    assert list(backed_parts(memory, page)) == wanted
    assert list(backed_parts(PhysicalMemory("ram"), page)) == [page]


@pytest.mark.parametrize("count", [MOST, MOST + 1])
def test_a_space_may_be_in_so_many_pieces_of_memory(count: int) -> None:
    """A process may have about four times as many mappings. What is too much is refused before anything is mapped."""

    def pages() -> Iterator[PageTranslation]:
        return (PageTranslation(number * PAGE, PAGE, 2 * number * PAGE, True) for number in range(count))

    mirror = HostMirror(SimpleNamespace(name="ppgtt", bits=48, memory=PhysicalMemory(), pages=pages))  # type: ignore[arg-type]
    if count == MOST:
        assert sum(1 for _ in mirror._runs()) == MOST
        return
    with pytest.raises(Unsupported, match=r"^ppgtt: its pages lie in more than 16384 pieces of physical memory, too many for host map"):
        mirror.update()
    assert not mirror._arenas


def test_a_space_of_31_bits_has_host_mappings() -> None:
    """As contexts of Gen7 have them."""
    memory, entries = PhysicalMemory("ram"), PhysicalMemory("gtt", bits=24)
    entries.write32(0, 0x40000 | 1)
    memory.write32(0x40000 + 5 * 4, 0x9000 | 3)
    space = PageTableSpace.two_level("ppgtt", of("ivb"), memory, entries, 0)
    space.write(0x5004, b"abcd")
    assert ctypes.string_at(space.table[0] + 0x5004, 4) == b"abcd" == memory.read(0x9004, 4)


def test_python_reaches_a_mirror_through_the_tables() -> None:
    build, space = four_level()
    build.map(0x5000, 0x9000, PAGE)
    build.map(0x6000, 0xC000, PAGE, flags=1)
    mirror = HostMirror(space)
    mirror.write(0x5FFE, b"ab")
    assert space.read(0x5FFE, 2) == b"ab" == mirror.read(0x5FFE, 2) and mirror.extent(0x5FFE, 1 << 20) == PAGE + 2
    with pytest.raises(GpuFault, match="the page tables map it read-only"):
        mirror.write(0x5FFF, b"cd")
    late = "the page tables map it now, but did not when the work began"
    assert [mirror.why(0x6000, access) for access in ("read", "write")] == [late, "the page tables map it read-only"]
