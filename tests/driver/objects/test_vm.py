"""Address spaces: buffers of submissions that want the same addresses are mapped one after another."""

from __future__ import annotations

import errno
import gc
import threading
import weakref
from typing import Any

import pytest

from softgen.driver.errors import Errno
from softgen.driver.objects.buffer_list import Bound, BufferList
from softgen.driver.objects.fence import Signals
from softgen.driver.objects.gem_object import GemObject, Piece
from softgen.driver.objects.vm import PlacementRequest, Vm
from softgen.errors import SoftgenError
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer

FIRST, SECOND = 0x10000, 0x20000


def listed(*places: tuple[int, str]) -> BufferList:
    """Buffers at addresses, each with a name in its first bytes."""
    found = []
    for number, (address, name) in enumerate(places):
        memory = MemfdBuffer(4096, name)
        memory.view[: len(name)] = name.encode()
        found.append(Bound(GemObject(number, 1, [Piece(memory, 0, 4096)], 0), address, number, 0, 0))
    return BufferList(found)


def shown(vm: Vm, *addresses: int) -> list[str]:
    return [vm.space.read(address, 2).decode() for address in addresses]


@pytest.fixture
def vm() -> Vm:
    return Vm("space", 48, 1 << 32, Signals())


def bo(number: int, pages: int = 1) -> GemObject:
    return GemObject(number, 1, [Piece(MemfdBuffer(pages * 4096, "bo"), 0, pages * 4096)], 0)


def test_buffers_stay_where_they_are_as_long_as_they_may(vm: Vm) -> None:
    """A page is free between two, and nothing is placed below 1 MiB. What stays is not placed again."""
    one, two = bo(1, 2), bo(2)
    requests = [PlacementRequest(one, None, 0, False), PlacementRequest(two, 0x400000, 0, False)]
    assert vm.place(requests) == [0x100000, 0x400000]
    changes = vm.placed.changes
    assert vm.place(requests) == [0x100000, 0x400000] and vm.place(requests[1:]) == [0x400000] and vm.placed.changes == changes
    assert vm.place([PlacementRequest(one, None, 0x200000, False)]) == [0x200000]
    assert vm.place([PlacementRequest(two, None, 0, False)]) == [0x400000], "once pinned, it may stay"
    assert vm.place([PlacementRequest(two, 0x201000, 0, False), PlacementRequest(one, None, 0, False)]) == [0x201000, 0x100000]
    assert one.bound == two.bound == {weakref.ref(vm)}


@pytest.mark.parametrize("asked, at, fits", [
    ((None, 0, False), 0x1000, True), ((None, 0x2000, False), 0x1000, False), ((None, 0x2000, False), 0x4000, True),
    ((0x1000, 0, False), 0x1000, True), ((0x1000, 0x2000, False), 0x1000, True), ((0x2000, 0, False), 0x1000, False),
    ((None, 0, False), 0xFFFFD000, True), ((None, 0, False), 0xFFFFE000, False), ((None, 0, True), 0xFFFFE000, True),
    ((None, 0x4000, True), 0x1_0000_2000, False),
])  # fmt: skip
def test_whether_a_buffer_may_stay(asked: tuple[int | None, int, bool], at: int, fits: bool) -> None:
    """A buffer of two pages: at its pinned address; else aligned, and below the last page of 4 GiB unless it may be above."""
    assert PlacementRequest(bo(1, 2), *asked).fits(at) is fits


@pytest.mark.parametrize("requests, number, complaint", [
    ([(1, 0x10000), (2, 0x11000)], errno.EINVAL, "two buffers are pinned at 0x11000"),
    ([(1, 0x11000), (2, 0x10000)], errno.EINVAL, "two buffers are pinned at 0x11000"),
    ([(1, (1 << 48) - 0x1000)], errno.EINVAL, "a buffer is pinned beyond 48 bits"), ([(1, (1 << 48) - 0x2000)], 0, ""),
    ([(1, 0x10000), (2, 0x12000)], 0, ""),
])  # fmt: skip
def test_pinned_buffers_do_not_overlap_and_end_in_the_space(vm: Vm, requests: list[tuple[int, int]], number: int, complaint: str) -> None:
    """Of two pages each."""
    asked = [PlacementRequest(bo(handle, 2), address, 0, True) for handle, address in requests]
    if not number:
        assert vm.place(asked) == [address for _, address in requests]
        return
    with pytest.raises(Errno, match=complaint) as found:
        vm.place(asked)
    assert found.value.number == number and len(vm.placed) == 0


def test_a_full_space_has_no_room() -> None:
    vm = Vm("small", 48, 0x104000, Signals())
    one, two = bo(1, 2), bo(2, 2)
    assert vm.place([PlacementRequest(one, None, 0, False)]) == [0x100000]
    with pytest.raises(Errno, match="no room for 0x2000 bytes") as found:
        vm.place([PlacementRequest(two, None, 0, False)])
    assert found.value.number == errno.ENOSPC
    pinned = bo(4)
    with pytest.raises(Errno, match="no room for 0x2000 bytes"):
        vm.place([PlacementRequest(two, None, 0, False), PlacementRequest(pinned, 0x200000, 0, False)])
    assert vm.placed.get(pinned) == 0x200000 and pinned.bound == {weakref.ref(vm)} and two.bound == set(), "what has an address is bound"
    assert vm.place([PlacementRequest(bo(3), None, 0, False)]) == [0x103000], "up to the last byte"


@pytest.mark.parametrize("size, fits", [(0xFFE0_0000, True), (0xFFE0_1000, False)])
def test_addresses_that_no_program_asked_for_are_below_the_last_mebibyte_of_4_gib(size: int, fits: bool) -> None:
    """However large the address space, and also for buffers that may be above: programs that do not pin take addresses of 32 bits."""
    vm, large = Vm("space", 48, 1 << 48, Signals()), GemObject(1, 1, [Piece(MemfdBuffer(4096, "bo"), 0, size)], 0)
    if fits:
        assert vm.place([PlacementRequest(large, None, 0, True)]) == [0x100000]
        return
    with pytest.raises(Errno, match=f"no room for {size:#x} bytes"):
        vm.place([PlacementRequest(large, None, 0, True)])


def test_a_buffer_that_must_move_may_move_to_where_it_was() -> None:
    vm, moved = Vm("space", 48, 1 << 32, Signals()), bo(1, 2)
    assert vm.place([PlacementRequest(moved, 0x101000, 0, False)]) == [0x101000]
    assert vm.place([PlacementRequest(moved, None, 0x100000, False)]) == [0x100000]


def test_a_submission_is_mapped_as_a_whole(vm: Vm, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another one of the same address space, on another thread, wants the address of its first buffer while the second is mapped."""
    one, two = listed((FIRST, "a1"), (SECOND, "a2")), listed((FIRST, "b1"))
    other, attempt, entered = threading.Thread(target=lambda: (vm.enter(two), entered.set())), vm._try, threading.Event()

    def tried(bo: GemObject, address: int) -> list[GemObject]:
        if address == SECOND:
            other.start()
            other.join(0.2)
        return attempt(bo, address)

    monkeypatch.setattr(vm, "_try", tried)
    vm.enter(one)
    assert shown(vm, FIRST, SECOND) == ["a1", "a2"] and not entered.wait(0.1)
    vm.leave(one)
    assert entered.wait(20) and shown(vm, FIRST, SECOND) == ["b1", "a2"]
    vm.leave(two)
    monkeypatch.undo()
    vm.enter(one)  # not as it was when it ran last
    assert shown(vm, FIRST, SECOND) == ["a1", "a2"]
    vm.leave(one)


def test_buffers_are_looked_up_only_where_something_was_mapped_since(vm: Vm, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list that is submitted again and again, by itself and after another one."""
    looked, get = list[int](), vm.mapped.get
    monkeypatch.setattr(vm.mapped, "get", lambda bo: (looked.append(bo.uid), get(bo))[1])
    one, two = listed((FIRST, "a1"), (FIRST + 0x1000, "a2")), listed((SECOND, "b1"))

    def lookups(buffers: BufferList) -> int:
        looked.clear()
        vm.enter(buffers)
        assert vm.running == [buffers]
        vm.leave(buffers)
        return len(looked)

    assert lookups(one) > 0 and lookups(one) == lookups(one) == 0
    assert lookups(two) > 0 and lookups(one) == 2 and lookups(one) == lookups(two) == 0
    assert shown(vm, FIRST, FIRST + 0x1000, SECOND) == ["a1", "a2", "b1"]


def test_submissions_that_want_the_same_addresses_find_their_own_buffers(vm: Vm) -> None:
    """In whichever order their lists have them."""
    wrong = list[list[str]]()

    def run(name: str) -> None:
        own = listed(*((FIRST + 0x1000 * number, f"{name}{number}") for number in (range(4) if name == "a" else range(3, -1, -1))))
        for _ in range(200):
            vm.enter(own)
            found = shown(vm, *(bound.address for bound in own))
            if found != [bound.bo.pieces[0].buffer.name for bound in own]:
                wrong.append(found)
            vm.leave(own)

    threads = [threading.Thread(target=run, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads) and wrong == []


def test_a_buffer_that_could_be_mapped_in_part_only_is_not_there(vm: Vm, monkeypatch: pytest.MonkeyPatch) -> None:
    """And can be mapped when the host has room for it again."""
    pieces = [Piece(MemfdBuffer(4096, f"piece {number}"), 0, 4096) for number in range(2)]
    whole = BufferList([Bound(GemObject(1, 1, pieces, 0, user=True), FIRST, 1, 0, 0)])
    place = AddressSpace.map

    def mapped(space: AddressSpace, address: int, *arguments: Any) -> None:
        if address != FIRST:
            raise SoftgenError("cannot map")
        place(space, address, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(AddressSpace, "map", mapped)
        with pytest.raises(SoftgenError, match="cannot map"):
            vm.enter(whole)
    assert list(vm.space.regions()) == []
    vm.enter(whole)
    assert [region.start for region in vm.space.regions()] == [FIRST, FIRST + 0x1000]
    vm.leave(whole)


def test_who_waits_for_addresses_says_so_before_and_does_nothing_meanwhile(vm: Vm, monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread may be needed for something else; where nothing has to be waited for, nothing is said."""
    one, two, order = listed((FIRST, "a1")), listed((FIRST, "b1")), list[str]()
    attempt, waiting = vm._try_all, threading.Event()
    monkeypatch.setattr(vm, "_try_all", lambda buffers: (order.append("try"), attempt(buffers))[1])
    vm.enter(one, lambda: order.append("wait"))
    assert order == ["try"]
    order.clear()
    other = threading.Thread(target=lambda: vm.enter(two, lambda: (order.append("wait"), waiting.set())), daemon=True)
    other.start()
    assert waiting.wait(10)
    other.join(0.1)
    assert other.is_alive() and order == ["try", "wait"]
    vm.leave(one)
    other.join(10)
    assert order == ["try", "wait", "try"] and shown(vm, FIRST) == ["b1"]
    vm.leave(two)


def test_a_buffer_is_in_one_place_at_a_time(vm: Vm) -> None:
    """It moves when no submission that runs has it where it was."""
    here = listed((FIRST, "a1"))
    there = BufferList([here[0]._replace(address=SECOND)])
    for _ in range(2):
        vm.enter(here)
        assert [region.start for region in vm.space.regions()] == [FIRST]
        other = threading.Thread(target=vm.enter, args=(there,), daemon=True)
        other.start()
        other.join(0.05)
        assert other.is_alive() and shown(vm, FIRST) == ["a1"]
        vm.leave(here)
        other.join(10)
        assert [region.start for region in vm.space.regions()] == [SECOND] and shown(vm, SECOND) == ["a1"]
        vm.leave(there)
    vm.forget(here[0].bo)
    assert not list(vm.space.regions()) and not vm.mapped and not vm.placed


def test_an_address_space_ends_before_its_buffers() -> None:
    """A program that makes contexts, submits the same buffers in each and destroys them again must not take ever more memory."""
    vm, kept = Vm("space", 48, 1 << 32, Signals()), bo(1)
    vm.place([PlacementRequest(kept, None, 0, False)])
    vm.place([PlacementRequest(kept, 0x200000, 0, False)])
    assert kept.bound == {weakref.ref(vm)}
    vm.enter(BufferList([Bound(kept, 0x200000, 1, 0, 0)]))
    ended = weakref.ref(vm)
    del vm
    gc.collect()
    assert ended() is None and kept.bound == set()
    kept.unbind()
