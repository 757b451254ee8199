"""Address spaces of buffers: reading, writing, aliases, holes, and what is refused."""

import ctypes
import errno
import gc
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgen.errors import DriverError, GpuFault, SoftgenError
from softgen.memory import arena, guard, host
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer

PAGE = 4096
GIB4 = 1 << 32


def host_bytes(space: AddressSpace, address: int, size: int) -> bytes:
    """What compiled code would see: one look at the table, then host memory."""
    return ctypes.string_at(space.table[address >> 32] + (address & 0xFFFFFFFF), size)


@pytest.mark.parametrize("bits", [32, 48])
def test_compiled_code_finds_a_part_for_each_of_48_bit_addresses_and_no_more(bits: int) -> None:
    """However few bits the space has; nothing is mapped in it."""
    space = AddressSpace("s", bits)
    assert len(space.table) == (1 << 48) // GIB4 and set(space.table) == {arena.void()}


def test_one_buffer_at_two_addresses_and_in_two_spaces() -> None:
    first, two, buffer = AddressSpace("one"), AddressSpace("two"), MemfdBuffer(2 * PAGE, "b")
    first.map(0x10000, buffer)
    first.map(0xFFFF_0000_0000, buffer, offset=PAGE)
    two.map(0x5000, buffer, size=PAGE)
    first.write(0x11FFC, b"abcd")
    two.write32(0x5000, 0x11223344)
    assert first.read(0xFFFF_0000_0FFC, 4) == b"abcd" == bytes(buffer.view[-4:])
    assert first.read32(0x10000) == 0x11223344 and two.extent(0x5000, 1 << 40) == PAGE
    assert host_bytes(first, 0xFFFF_0000_0FFC, 4) == b"abcd"
    first.write64(0x10008, 0x1122334455667788)
    assert two.read64(0x5008) == 0x1122334455667788


def test_reads_and_writes_run_across_neighbours() -> None:
    space = AddressSpace("s")
    for i in range(3):
        space.map(0x1000 + i * PAGE, MemfdBuffer(PAGE, f"b{i}"))
    space.write(0x1FFE, bytes(range(4)) + bytes(PAGE))
    assert space.read(0x1FFD, 6) == b"\0" + bytes(range(4)) + b"\0"
    assert space.extent(0x1800, 1 << 20) == 0x4000 - 0x1800 and space.extent(0x1800, 5) == 5 and space.extent(0, 5) == 0
    assert [tuple(r) for r in space.regions()] == [(0x1000, PAGE, "b0"), (0x2000, PAGE, "b1"), (0x3000, PAGE, "b2")]
    assert space.read(0x1000, 0) == b"" == space.read(0x9000, 0)


def test_what_no_access_of_compiled_code_can_miss() -> None:
    """Neighbours count together, up to the first page that cannot be written."""
    space = AddressSpace("s")
    for number, writable in enumerate((True, True, False, True)):
        space.map(0x1000 + number * PAGE, MemfdBuffer(PAGE, f"b{number}"), writable=writable)
    assert [space.mapped(address, 1 << 20) for address in (0xFFF, 0x1000, 0x1801, 0x2FFF, 0x3000, 0x4010, 0x5000)] == [
        0, 2 * PAGE, 0x17FF, 1, 0, PAGE - 16, 0]  # fmt: skip
    assert space.mapped(0x1801, 0x17FE) == 0x17FE and space.mapped(0x1801, 0x1800) == 0x17FF and space.mapped(0x1000, 0) == 0
    space.unmap(0x2000, PAGE)
    assert space.mapped(0x1000, 1 << 20) == PAGE


def test_a_view_is_of_bytes_in_one_mapping() -> None:
    space = AddressSpace("s")
    for address in (0x1000, 0x2000):
        space.map(address, MemfdBuffer(PAGE, "b"))
    view = space.view(0x1FFC, 4)
    space.write(0x1FFA, b"12345678")
    assert view is not None and bytes(view) == b"3456"
    assert [space.view(*where) for where in ((0x1FFD, 4), (0xFFF, 1), (0x1000, 0), (0x3000, 1))] == [None] * 4
    assert [space.view(*where) for where in ((0x1FFF, 1), (0x2000, 1), (0x2000, PAGE))] == [b"6", b"7", b"78".ljust(PAGE, b"\0")]


@pytest.mark.parametrize("table_first", [True, False])
def test_a_mapping_may_cross_a_4_gib_boundary(table_first: bool) -> None:
    space, buffer = AddressSpace("s"), MemfdBuffer(1 << 20, "b")
    if table_first:
        assert space.table
    space.map(3 * GIB4 - 0x8000, buffer)
    space.write(3 * GIB4 - 2, b"wxyz")
    assert space.read(3 * GIB4 - 3, 6) == b"\0wxyz\0" and bytes(buffer.view[0x7FFE:0x8002]) == b"wxyz"
    assert host_bytes(space, 3 * GIB4 - 2, 2) == b"wx" and host_bytes(space, 3 * GIB4, 2) == b"yz"
    assert host_bytes(space, 3 * GIB4 - 2, 4) == b"wxyz", "a contiguous access of compiled code sees the next part in the arena's tail"


@pytest.mark.parametrize("low_first", [True, False])
def test_tails_show_the_next_part_whichever_was_mapped_first(low_first: bool) -> None:
    space, low, high = AddressSpace("s"), MemfdBuffer(PAGE, "low"), MemfdBuffer(1 << 20, "high")
    low.view[-2:], high.view[:2] = b"ab", b"cd"
    assert space.table
    for address, buffer in sorted([(GIB4 - PAGE, low), (GIB4, high)], reverse=not low_first):
        space.map(address, buffer)
    assert host_bytes(space, GIB4 - 2, 4) == b"abcd"
    assert host_bytes(space, GIB4 - PAGE, PAGE + arena.MIN_TAIL) == bytes(low.view) + bytes(high.view[: arena.MIN_TAIL])


@pytest.mark.parametrize("mapped_first", [True, False])
def test_a_large_surface_across_a_boundary_is_seen_in_one_piece(mapped_first: bool) -> None:
    space, buffer, start = AddressSpace("s"), MemfdBuffer(1 << 20, "b"), 2 * GIB4 - 0x40000
    if mapped_first:
        space.map(start, buffer)
    at = space.contiguous(start + 4, (1 << 20) - 8)
    if not mapped_first:
        space.map(start, buffer)
    buffer.view[::PAGE] = bytes(range(256))
    assert at is not None and ctypes.string_at(at, (1 << 20) - 8) == bytes(buffer.view[4:-4])
    space.unmap(start + 0x80000, PAGE)
    with pytest.raises(DriverError):
        space.map(start, buffer)  # all else is still there
    other = MemfdBuffer(PAGE, "other")
    other.view[:] = b"o" * PAGE
    space.map(start + 0x80000, other)
    assert ctypes.string_at(at + 0x80000 - 4, PAGE) == b"o" * PAGE, "what is mapped later is seen as well"


def test_threads_that_want_the_table_at_once_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    space = AddressSpace("test", 33)
    space.map(0x1000, MemfdBuffer(0x1000, "one"))
    began, go_on, found = threading.Event(), threading.Event(), []
    place = space._place

    def slowly(*arguments: Any) -> None:
        began.set()
        assert go_on.wait(100)
        place(*arguments)

    monkeypatch.setattr(space, "_place", slowly)
    threads = [threading.Thread(target=lambda: found.append(space.table)) for _ in range(2)]
    threads[0].start()
    assert began.wait(100)
    threads[1].start()
    threads[1].join(0.05)  # it waits for the first
    go_on.set()
    for thread in threads:
        thread.join(100)
    assert found[0] is found[1] is space.table and space.table[0] != arena.void()


def test_what_lies_in_one_part_needs_no_tail() -> None:
    space = AddressSpace("s", 40)
    assert space.contiguous(GIB4 + 5, 100) == arena.void() + 5 and not space._arenas
    assert space.contiguous(GIB4 - 4, 2 * GIB4) is None, "more than two parts"
    assert space.contiguous((1 << 40) - 4, 8) is None, "behind the last part there is none"
    assert space.contiguous((1 << 40) - 4, 4) == arena.void() + GIB4 - 4
    assert not space._arenas
    for start in (GIB4, 2 * GIB4 - PAGE, GIB4 + 5):
        whole = 3 * GIB4 - start
        assert space.contiguous(start, whole) == space.table[1] + start % GIB4, "to the end of the next part"
        assert space.contiguous(start, whole + 1) is None
    assert space.contiguous(5 * GIB4 - 1, 2) == space.table[4] + GIB4 - 1 and 4 in space._arenas, "a byte of the next part"


def test_what_is_mapped_right_behind_a_tail_is_not_in_it() -> None:
    space, low, high = AddressSpace("s"), MemfdBuffer(PAGE, "low"), MemfdBuffer(PAGE, "high")
    space.map(GIB4 - PAGE, low)
    assert space.table
    for _ in range(2):
        space.map(GIB4 + arena.MIN_TAIL, high)
        space.write(GIB4 + arena.MIN_TAIL, b"abc")
        assert host_bytes(space, GIB4 + arena.MIN_TAIL, 3) == b"abc"
        space.unmap(GIB4 + arena.MIN_TAIL, PAGE)
    last = GIB4 + arena.MIN_TAIL - PAGE
    space.map(last, high)
    assert host_bytes(space, last, 3) == ctypes.string_at(space.table[0] + last, 3) == b"abc"


def test_a_mapping_that_the_host_refuses_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host may refuse the second part of a mapping (vm.max_map_count): the first part is taken back."""
    space, buffer, real = AddressSpace("s"), MemfdBuffer(2 * PAGE, "b"), host.map_file
    assert space.table

    def full(fd: int, offset: int, size: int, writable: bool, address: int = 0) -> int:
        if address and offset == PAGE:
            raise SoftgenError("map: out of memory")
        return real(fd, offset, size, writable, address)

    monkeypatch.setattr(host, "map_file", full)
    with pytest.raises(SoftgenError, match="out of memory"):
        space.map(GIB4 - PAGE, buffer)
    assert list(space.regions()) == [] and space.extent(GIB4 - PAGE, 1) == 0
    with pytest.raises(OSError, match="Bad address"):
        os.pwrite(buffer.fd, (ctypes.c_char * 1).from_address(space.table[0] + GIB4 - PAGE), 0)


def test_a_zone_of_arenas_lies_inside_its_reservation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Zones begin at 2 MiB, wherever the host reserves address space."""
    reserved, zones, real, unit = list[tuple[int, int]](), list[tuple[int, int]](), host.reserve, 1 << 21

    def odd(size: int) -> int:
        """A page after a multiple of 2 MiB."""
        reserved.append((-(-real(size + 2 * unit) // unit) * unit + PAGE, size))
        return reserved[-1][0]

    for name in ("_zones", "_free", "_on_zone"):
        monkeypatch.setattr(arena, name, [])
    monkeypatch.setattr(host, "reserve", odd)
    arena.watch_zones(lambda start, end: zones.append((start, end)))
    taken = arena.Arena(AddressSpace("s"), 0)
    ((base, size),) = reserved
    ((start, end),) = zones
    assert start % unit == 0 and base <= start and end <= base + size
    assert sorted([taken.base, *arena._free]) == list(range(start, end, arena.ARENA_STRIDE))
    host.unmap(base - PAGE, size + PAGE)


def test_reservations_are_not_in_core_files() -> None:
    """They are terabytes. The kernel shows what madvise() was told as a flag of the mapping: dd."""
    base = host.reserve(64 * PAGE)
    with open("/proc/self/smaps") as maps:
        parts = re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", maps.read(), flags=re.MULTILINE)[1:]
    spans = {tuple(int(end, 16) for end in part.split(maxsplit=1)[0].split("-")): part for part in parts}
    (shown,) = [part for (start, end), part in spans.items() if start <= base < end]
    host.unmap(base, 64 * PAGE)
    assert "dd" in shown.rpartition("VmFlags:")[2].split() and shown.split(maxsplit=2)[1] == "---p"


def test_guard_code_has_room_for_all_zones() -> None:
    source = Path(guard.__file__).with_name("guard.c").read_text("utf-8")
    assert re.findall(r"MOST_ZONES = (\d+)", source) == [str(arena._MOST_ZONES)]


def test_reservations_and_mappings_that_the_host_refuses_are_explained() -> None:
    with pytest.raises(SoftgenError, match=r"^host memory: cannot reserve 0x40{15} bytes: .*; limits are `sysctl vm.max_map_count`"):
        host.reserve(1 << 62)
    with pytest.raises(SoftgenError, match=rf"^host memory: cannot map 0x1000 bytes: {os.strerror(errno.EBADF)}$"):
        host.map_file(-1, 0, PAGE, writable=True)


def test_unmap_splits_and_leaves_the_rest() -> None:
    space, buffer = AddressSpace("s"), MemfdBuffer(4 * PAGE, "b")
    buffer.view[::PAGE] = bytes(range(4))
    space.map(0x10000, buffer)
    assert space.table
    space.unmap(0x11000, 2 * PAGE)
    assert [(r.start, r.size) for r in space.regions()] == [(0x10000, PAGE), (0x13000, PAGE)]
    assert space.read(0x13000, 1) == b"\3" == host_bytes(space, 0x13000, 1)
    with pytest.raises(GpuFault, match=r"^read at 0x11000 in s: not mapped$"):
        space.read(0x10FFC, 8)
    space.map(0x11000, buffer, offset=3 * PAGE, size=PAGE)
    assert space.read(0x10FFF, 2)[1] == 3
    space.unmap(0, 1 << 40)
    assert list(space.regions()) == []


def test_faults_name_the_first_bad_byte() -> None:
    space = AddressSpace("render context 1", bits=32)
    space.map(0x1000, MemfdBuffer(PAGE, "state"), writable=False)
    cases: list[tuple[Callable[[], object], str]] = [
        (lambda: space.read(0x1FFE, 4), "read at 0x2000 in render context 1: not mapped"),
        (lambda: space.read(0xFFE, 4), "read at 0xffe in render context 1: not mapped"),
        (lambda: space.read32(1 << 40), "read at 0x10000000000 in render context 1: beyond the 32-bit space"),
        (lambda: space.read32(-4), "read at -0x4 in render context 1: beyond the 32-bit space"),
        (lambda: space.write(0x1FFE, b"1234"), "write at 0x1ffe in render context 1: 'state' is mapped read-only"),
        (lambda: space.write(0x2000, b"1234"), "write at 0x2000 in render context 1: not mapped"),
    ]
    for act, words in cases:
        with pytest.raises(GpuFault) as fault:
            act()
        assert str(fault.value) == words


def test_a_write_that_faults_changes_nothing() -> None:
    space = AddressSpace("s")
    space.map(0x1000, MemfdBuffer(PAGE, "b"))
    with pytest.raises(GpuFault):
        space.write(0x1FFC, b"12345678")
    assert space.read(0x1FFC, 4) == bytes(4)


def test_what_no_page_table_could_hold_is_refused() -> None:
    space, buffer = AddressSpace("s", bits=32), MemfdBuffer(2 * PAGE, "new")
    space.map(0x4000, MemfdBuffer(2 * PAGE, "old"))
    cases: list[tuple[Callable[[], object], str]] = [
        (lambda: space.map(0x5000, buffer), "s: cannot map 'new' at 0x5000..0x7000: 'old' is at 0x4000..0x6000"),
        (lambda: space.map(0x3000, buffer), "s: cannot map 'new' at 0x3000..0x5000: 'old' is at 0x4000..0x6000"),
        (lambda: space.map(0x10, buffer), "s: cannot map 'new' at 0x10, 0x2000 bytes: only whole pages of 4096 bytes"),
        (lambda: space.map(0xFFFFF000, buffer), "s: cannot map 'new' at 0xfffff000..0x100001000: addresses have 32 bits"),
        (lambda: space.map(-PAGE, buffer), "s: cannot map 'new' at -0x1000..0x1000: addresses have 32 bits"),
        (lambda: space.map(0, buffer, 0, 0), "s: cannot map 'new' at 0x0, 0x0 bytes: only whole pages of 4096 bytes"),
        (lambda: space.map(0, buffer, PAGE, 2 * PAGE), "s: cannot map 0x2000 bytes from 0x1000 of 'new': it has 0x2000, in whole pages"),
        (lambda: space.map(0, buffer, 16, PAGE), "s: cannot map 0x1000 bytes from 0x10 of 'new': it has 0x2000, in whole pages"),
        (lambda: space.unmap(8, PAGE), "s: cannot unmap at 0x8, 0x1000 bytes: only whole pages of 4096 bytes"),
        (lambda: AddressSpace("t", bits=49), "address space t: addresses have 32 to 48 bits, not 49"),
    ]
    for act, words in cases:
        with pytest.raises(DriverError) as refusal:
            act()
        assert str(refusal.value) == words
    space.map(0x6000, buffer)  # right beside is fine
    space.map(0x2000, buffer)


def test_changes_are_counted() -> None:
    """What was worked out with an earlier count may not be true any more; refusals and accesses change nothing."""
    space, buffer, counts = AddressSpace("s"), MemfdBuffer(2 * PAGE, "b"), list[int]()
    acts: list[Callable[[], object]] = [
        lambda: space.map(0x1000, buffer), lambda: space.unmap(0x1000, PAGE), lambda: space.map(0x1000, buffer, size=PAGE),
        lambda: space.write(0x1000, b"1"), lambda: space.table, lambda: space.unmap(0x9000, PAGE), space.close,
    ]  # fmt: skip
    for act in acts:
        act()
        counts.append(space.changes)
        with pytest.raises(DriverError):
            space.map(0x10, buffer)
        assert space.changes == counts[-1]
    assert counts == [1, 2, 3, 3, 3, 4, 5] and AddressSpace("other").changes == 0


def test_a_mapping_up_to_a_4_gib_boundary_needs_no_arena_beyond() -> None:
    space = AddressSpace("s")
    space.map(GIB4 - PAGE, MemfdBuffer(PAGE, "b"))
    assert [space.table[part] == arena.void() for part in range(3)] == [False, True, True]
    space.map(2 * GIB4 - PAGE, MemfdBuffer(2 * PAGE, "c"))
    assert [space.table[part] == arena.void() for part in range(4)] == [False, False, False, True]


def usage() -> tuple[int, int]:
    gc.collect()
    with open("/proc/self/maps") as maps:
        return len(os.listdir("/proc/self/fd")), sum(1 for _ in maps)


@pytest.mark.parametrize("closed", [True, False])
def test_many_spaces_leave_nothing_behind(closed: bool) -> None:
    def live_and_die() -> None:
        space, buffer = AddressSpace("s"), MemfdBuffer(3 * PAGE, "b")
        for part in (0, 1, 0x7FFF):
            space.map(part * GIB4 + 0x10000, buffer)
            space.unmap(part * GIB4 + 0x11000, PAGE)
        assert space.table
        if closed:
            bases = [space.table[part] for part in (0, 1, 0x7FFF)]
            space.close()
            assert list(space.regions()) == []
            assert [arena.locate(base + 0x10000) for base in bases] == [(None, 0x10000)] * 3, "no fault is in a space that was closed"

    live_and_die()
    before = usage()
    for _ in range(40):
        live_and_die()
    after = min(usage() for _ in range(10))  # other threads of the process may have a file open for a moment
    assert after[0] <= before[0] and after[1] <= before[1] + 4, (before, after)


def test_an_arena_used_again_shows_nothing_of_its_past() -> None:
    space = AddressSpace("first")
    space.map(0x10000, MemfdBuffer(PAGE, "secret"))
    base = space.table[0]
    space.close()
    spaces = [AddressSpace(f"s{i}") for i in range(4)]
    for other in spaces:
        other.map(0x20000, MemfdBuffer(PAGE, "other"))
    assert base in [other.table[0] for other in spaces], "the arena is reused"
    assert all(arena.locate(other.table[0] + 0x10000) == (other, 0x10000) for other in spaces)


# The space against a dictionary of pages, in two parts of 4 GiB so that boundaries take part.
PLACES = [part * GIB4 + page * PAGE for part in (0, 1) for page in (*range(4), *range(0xFFFFC, 0x100000))]


@given(st.data())
def test_a_space_behaves_like_a_dictionary_of_pages(data: st.DataObject) -> None:
    space = AddressSpace("s", bits=34)
    buffers = [MemfdBuffer(4 * PAGE, f"b{i}") for i in range(2)]
    model: dict[int, tuple[int, int, bool]] = {}  # page -> buffer, page in it, writable
    if data.draw(st.booleans(), "compiled code from the start"):
        assert space.table
    for step in range(data.draw(st.integers(1, 12), "steps")):
        address = data.draw(st.sampled_from(PLACES), "address")
        count = data.draw(st.integers(1, 3), "pages")
        pages = [address // PAGE + i for i in range(count)]
        verb = data.draw(st.sampled_from(["map", "unmap", "write"]), "verb")
        if verb == "map":
            which, first, writable = data.draw(st.tuples(st.integers(0, 1), st.integers(0, 4 - count), st.booleans()))
            if any(page in model for page in pages):
                with pytest.raises(DriverError):
                    space.map(address, buffers[which], first * PAGE, count * PAGE, writable)
            else:
                space.map(address, buffers[which], first * PAGE, count * PAGE, writable)
                model.update({page: (which, first + i, writable) for i, page in enumerate(pages)})
        elif verb == "unmap":
            space.unmap(address, count * PAGE)
            model = {page: there for page, there in model.items() if page not in pages}
        else:
            data_bytes = bytes([step + 1]) * (count * PAGE - 100)
            bad = next((page for page in pages if page not in model or not model[page][2]), None)
            if bad is None:
                space.write(address + 50, data_bytes)
            else:
                with pytest.raises(GpuFault) as fault:
                    space.write(address + 50, data_bytes)
                assert fault.value.address == max(bad * PAGE, address + 50)
    for page in {place // PAGE + i for place in PLACES for i in range(4)}:
        assert space.extent(page * PAGE, PAGE) == (PAGE if page in model else 0)
        if page in model:
            which, first, _ = model[page]
            expected = bytes(buffers[which].view[first * PAGE : (first + 1) * PAGE])
            assert space.read(page * PAGE, PAGE) == expected == host_bytes(space, page * PAGE, PAGE)
    assert sum(r.size for r in space.regions()) == len(model) * PAGE
    space.close()
