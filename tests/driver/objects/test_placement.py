"""Buffers by address: the same places as a plain search finds, however buffers come and go."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from softgen.bits.units import PAGE_SIZE
from softgen.driver.objects.placement import LOWEST, Placement

STEPS = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 6), st.sampled_from((1, 1, 1, 4, 16)), st.integers(0, 60)), max_size=80)


class Bo(SimpleNamespace):
    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other


def searched(ranges: list[tuple[int, int]], size: int, alignment: int) -> int:
    """The lowest address, looked for from the bottom."""
    at = -(-LOWEST // alignment) * alignment
    for start, end in sorted(ranges):
        if at + size + PAGE_SIZE <= start:
            break
        at = max(at, -(-(end + PAGE_SIZE) // alignment) * alignment)
    return at


@settings(deadline=None)
@example([(2, 2, 1, 0), (2, 1, 4, 0), (2, 1, 1, 0), (0, 1, 1, 1), (2, 1, 1, 0)])  # a page below a buffer that goes
@example([(2, 1, 1, 0), (2, 1, 4, 0), (2, 2, 1, 0), (2, 2, 1, 0), (2, 1, 1, 0)])  # a page is free below where a search begins
@given(STEPS)
def test_the_lowest_free_address_is_found(steps: list[tuple[int, int, int, int]]) -> None:
    placement, present = Placement(), list[Any]()
    for kind, pages, alignment, number in steps:
        bo: Any = Bo(size=pages * PAGE_SIZE)
        ranges = [(address, address + other.size) for other, address in placement.address.items()]
        if kind == 0 and present:
            assert placement.remove(present.pop(number % len(present))) is not None
        elif kind == 1:  # pinned, next to others perhaps, where nothing is
            start = LOWEST + (number - 5) * PAGE_SIZE
            found = placement.overlapping(start, start + bo.size)
            touched = [other for other, at in placement.address.items() if at < start + bo.size and start < at + other.size]
            assert {id(other) for other in found} == {id(other) for other in touched}
            if not found:
                placement.put(bo, start)
                present.append(bo)
        else:
            at = placement.free(bo.size, alignment * PAGE_SIZE)
            assert at == searched(ranges, bo.size, alignment * PAGE_SIZE)
            placement.put(bo, at)
            present.append(bo)
        assert len(placement) == len(present) and placement.starts == sorted(placement.owner)


def test_a_buffer_that_is_placed_again_is_at_its_new_place_alone() -> None:
    placement, bo = Placement(), Bo(size=2 * PAGE_SIZE)
    first, second = LOWEST, LOWEST + 8 * PAGE_SIZE
    placement.put(bo, first)
    placement.put(bo, second)
    assert len(placement) == 1 and placement.get(bo) == second and not placement.overlapping(first, second)
    assert placement.overlapping(second, second + 1) == [bo] and placement.remove(bo) == second and placement.remove(bo) is None


def test_a_change_is_never_taken_for_an_earlier_one() -> None:
    """Who keeps what follows from places compares the count; nothing that is kept has one below 0."""
    placement, bo, other = Placement(), Bo(size=PAGE_SIZE), Bo(size=PAGE_SIZE)
    counts = [placement.changes]
    for moved, at in ((bo, 0), (bo, 4), (other, 0), (bo, None), (bo, 4), (other, 8), (other, None), (bo, None)):
        if at is None:
            placement.remove(moved)
        else:
            placement.put(moved, LOWEST + at * PAGE_SIZE)
        counts.append(placement.changes)
    assert len(set(counts)) == len(counts) and min(counts) >= 0
    assert placement.remove(bo) is None and placement.changes == counts[-1], "nothing has changed"


@pytest.mark.parametrize("start, end, found", [
    (0, 3, []), (0, 4, [0]), (2, 5, [0]), (3, 4, [0]), (4, 9, [0, 1]), (5, 6, []), (5, 7, [1]), (7, 20, [1, 2]), (0, 20, [0, 1, 2]),
    (8, 10, []), (11, 20, [2]), (12, 20, []),
])  # fmt: skip
def test_buffers_in_a_range(start: int, end: int, found: list[int]) -> None:
    """In pages; there are buffers of two pages at 3, 6 and 10."""
    placement, buffers = Placement(), [Bo(size=2 * PAGE_SIZE) for _ in range(3)]
    for bo, at in zip(buffers, (3, 6, 10), strict=True):
        placement.put(bo, LOWEST + at * PAGE_SIZE)
    assert placement.overlapping(LOWEST + start * PAGE_SIZE, LOWEST + end * PAGE_SIZE) == [buffers[number] for number in found]


@pytest.mark.parametrize("pages, alignment, at", [(1, 1, 0), (2, 1, 0), (3, 1, 6), (1, 2, 0), (3, 4, 8), (1, 16, 0), (3, 16, 16)])
def test_a_hole_is_used_to_its_last_page(pages: int, alignment: int, at: int) -> None:
    """In pages from the lowest address on: a buffer of two pages at 3, which leaves one free on either side."""
    placement, bo = Placement(), Bo(size=2 * PAGE_SIZE)
    placement.put(bo, LOWEST + 3 * PAGE_SIZE)
    assert placement.free(pages * PAGE_SIZE, alignment * PAGE_SIZE) == LOWEST + at * PAGE_SIZE


def test_a_thousand_buffers_need_no_search_through_all_of_them() -> None:
    placement = Placement()
    for number in range(20_000):  # a search from the bottom each time takes minutes
        bo: Any = Bo(size=PAGE_SIZE)
        at = placement.free(PAGE_SIZE, PAGE_SIZE)
        assert at == LOWEST + number * 2 * PAGE_SIZE
        placement.put(bo, at)


@pytest.mark.parametrize("alignment, pages", [(1, 1), (2, 1), (16, 1), (1, 5), (2, 3), (16, 20)])
@pytest.mark.parametrize("gaps", [False, True])
def test_a_search_begins_where_the_last_one_ended(alignment: int, pages: int, gaps: bool) -> None:
    """For the same alignment and size, or more: not at the first buffer, however many there are, and what small gaps are between them."""
    placement, looks, count = Placement(), list[int](), 300

    class Counted(dict[int, Any]):
        def __getitem__(self, address: int) -> Any:
            looks.append(address)
            return super().__getitem__(address)

    for number in range(count if gaps else 0):
        placement.put(Bo(size=PAGE_SIZE), LOWEST + 5 * number * PAGE_SIZE)  # type: ignore[arg-type]
    placement.owner = Counted(placement.owner)
    for number in range(count):
        size = (pages + number % 3) * PAGE_SIZE
        placement.put(Bo(size=size), placement.free(size, alignment * PAGE_SIZE))  # type: ignore[arg-type]
    assert len(looks) < 12 * count
