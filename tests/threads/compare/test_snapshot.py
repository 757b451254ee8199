"""Snapshots of memory: what changed since, what is put back, and where two runs differ first."""

from __future__ import annotations

import pytest

from softgen.errors import GpuFault, SoftgenError
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.threads.compare.snapshot import EngineResult, MemorySnapshot, PageSnapshot, error_text, first_address, first_page, values_text
from softgen.threads.dispatch import Finished

PAGE, MIB = 4096, 1 << 20
SECOND = 0x4000_0000


@pytest.fixture
def space() -> AddressSpace:
    """A buffer of two pieces and a page, and one of a page."""
    made = AddressSpace("work", 48)
    made.map(PAGE, MemfdBuffer(2 * MIB + PAGE))
    made.map(SECOND, MemfdBuffer(PAGE))
    made.write(PAGE, bytes(range(256)) * ((2 * MIB + PAGE) // 256))
    made.write(SECOND, b"second" + bytes(PAGE - 6))
    return made


CHANGES = [PAGE, PAGE + 1, PAGE + MIB - 1, PAGE + MIB, MIB + 7 * PAGE + 5, 2 * MIB + PAGE, 2 * MIB + 2 * PAGE - 1, SECOND + PAGE - 1]


@pytest.mark.parametrize("addresses", [[], *([at] for at in CHANGES), CHANGES], ids=lambda found: f"{len(found)}-{sum(found):#x}")
def test_pages_that_changed_are_told_and_put_back(space: AddressSpace, addresses: list[int]) -> None:
    """Also the first and the last byte of the pieces in which memory is copied."""
    whole = {start: space.read(start, size) for start, size in ((PAGE, 2 * MIB + PAGE), (SECOND, PAGE))}
    held = MemorySnapshot(space)
    for at in addresses:
        space.write(at, bytes([space.read(at, 1)[0] ^ 0x55]))
    pages = {at // PAGE * PAGE for at in addresses}
    assert held.changed() == {page: space.read(page, PAGE) for page in pages}
    held.restore()
    assert held.changed() == {} and all(space.read(start, len(data)) == data for start, data in whole.items())


def test_what_was_unmapped_meanwhile_is_neither_changed_nor_put_back(space: AddressSpace) -> None:
    held = MemorySnapshot(space)
    space.write(SECOND, b"S")
    space.write(PAGE, b"P")
    space.unmap(SECOND, PAGE)
    assert list(held.changed()) == [PAGE]
    held.restore()
    assert held.changed() == {} and space.read(PAGE, 2) == b"\0\1"
    space.map(SECOND, MemfdBuffer(PAGE))
    assert list(held.changed()) == [SECOND]


def test_some_pages_are_put_back_and_no_others(space: AddressSpace) -> None:
    held = PageSnapshot(space, {PAGE, 3 * PAGE})
    for page in (PAGE, 2 * PAGE, 3 * PAGE):
        space.write(page + 100, b"new")
    held.restore()
    assert [space.read(page + 100, 3) for page in (PAGE, 2 * PAGE, 3 * PAGE)] == [b"def", b"new", b"def"]


def result(pages: dict[int, bytes], *done: Finished, error: SoftgenError | None = None) -> EngineResult:
    return EngineResult(done, error, pages)


def test_threads_of_all_that_was_finished() -> None:
    assert result({}).threads == 0 and result({}, Finished(3, 50), Finished(4, 60)).threads == 7


@pytest.mark.parametrize("first, second, page", [
    ({}, {}, None), ({1: b"a"}, {1: b"a"}, None), ({1: b"a"}, {1: b"b"}, 1), ({2: b"a"}, {}, 2), ({}, {3: b"a"}, 3),
    ({1: b"a", 5: b"b", 7: b"c"}, {1: b"a", 7: b"d", 5: b"e"}, 5), ({0: b"a", 9: b"b"}, {0: b"b"}, 0),
])  # fmt: skip
def test_the_first_page_that_differs(first: dict[int, bytes], second: dict[int, bytes], page: int | None) -> None:
    """A page that only one run changed does."""
    assert first_page(result(first), result(second)) == page


def changed(*at: int) -> bytes:
    data = bytearray(PAGE)
    for number in at:
        data[number] = 0xA5
    return bytes(data)


@pytest.mark.parametrize("pages, address", [
    ({PAGE: ()}, None), ({PAGE: (0,)}, PAGE), ({PAGE: (3,)}, PAGE), ({PAGE: (4,)}, PAGE + 4), ({PAGE: (PAGE - 1,)}, 2 * PAGE - 4),
    ({3 * PAGE: (0,), PAGE: (9, 40)}, PAGE + 8), ({3 * PAGE: (6,), PAGE: ()}, 3 * PAGE + 4),
])  # fmt: skip
def test_the_first_dword_that_differs(pages: dict[int, tuple[int, ...]], address: int | None) -> None:
    first, second = {page: bytes(PAGE) for page in pages}, {page: changed(*at) for page, at in pages.items()}
    assert first_address(first, second) == first_address(second, first) == address


def test_both_values_of_a_dword_are_told() -> None:
    pages = [{PAGE: b"\1\2\3\4" + changed(PAGE - 2)[4:]}, {PAGE: bytes(PAGE)}]
    assert values_text(["t0", "t1"], PAGE, pages) == "at 0x1000 t0 has 0x04030201, t1 has 0x00000000"
    assert values_text(["t0", "t1"], 2 * PAGE - 4, pages) == "at 0x1ffc t0 has 0x00a50000, t1 has 0x00000000"


def test_engines_must_agree_on_the_access_that_fails_and_not_on_who_made_it() -> None:
    assert error_text(None) == "" and error_text(SoftgenError("time is up")) == "time is up"
    assert error_text(GpuFault(0x1234, "write", "work", "kernel+0x10", "why")) == "write at 0x1234"
