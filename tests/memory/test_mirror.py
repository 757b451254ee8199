"""Host mappings of a page-table space: which parts of a page compiled code can reach."""

import pytest

from softgen.memory.mirror import backed_parts
from softgen.memory.physical import PhysicalMemory
from softgen.memory.walk import PageTranslation

PAGE = 4096


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
