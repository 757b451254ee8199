"""Waits for very many points of sync objects, and submissions that name very many: what they cost, and whom they keep from going on."""

from __future__ import annotations

import errno
import struct
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from softgen.driver.errors import Errno
from softgen.driver.ioctl.syncobj import MOST, WAIT_ALL, WAIT_AVAILABLE, WAIT_FOR_SUBMIT, PendingPoints
from softgen.driver.objects.fence import RECENT, Fence, Signals, Syncobj, all_of
from softgen.driver.uapi import i915_drm as i915
from softgen.driver.uapi.uapi import EXTENSION, TIMELINE_FENCES
from tests.driver.execbuffer import buffer, row, submit
from tests.driver.program import Gpu, Program

PATIENCE = 20.0  # seconds; only a hang takes so long


def test_who_looks_for_long_has_not_the_lock() -> None:
    """Fences of other programs need it."""
    signals, free, fence = Signals(), list[bool](), Fence(Signals())

    def lock() -> None:
        free.append(signals.lock.acquire(timeout=PATIENCE / 4))
        if free[-1]:
            signals.lock.release()

    def ready() -> bool:
        other = threading.Thread(target=lock)
        other.start()
        other.join()
        return fence.done

    assert not signals.wait_unlocked(ready, 0.0) and free == [True, True] and signals.waiting == 0
    assert not signals.wait_unlocked(lambda: False, None, gone=lambda: True)


def test_what_changes_during_a_look_is_not_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fence is done after the look at it, and before the thread waits."""
    signals = Signals()
    fence, looks = Fence(signals), list[bool]()
    monkeypatch.setattr(signals.changed, "wait", lambda seconds: pytest.fail("waits for what has happened"))

    def ready() -> bool:
        looks.append(fence.done)
        fence.signal()
        return looks[-1]

    assert signals.wait_unlocked(ready, None) and looks == [False, True]


class Counted(Syncobj):
    """A sync object that counts how often its fence is looked for."""

    looks = 0

    def fence(self, point: int = 0) -> Fence | None:
        self.looks += 1
        return super().fence(point)


def pending(objects: list[Counted], flags: int, points: tuple[int, ...] = ()) -> PendingPoints:
    return PendingPoints(objects, points or (0,) * len(objects), flags)


def test_points_of_which_all_are_waited_for_are_looked_at_until_they_are_done() -> None:
    signals = Signals()
    fences = [Fence(signals) for _ in range(4)]
    objects = [Counted(signals, fence) for fence in fences]
    waits = pending(objects, WAIT_ALL)
    for number in (2, 0, 1, 3):
        assert not waits.ready()
        fences[number].signal()
    assert waits.ready() and waits.first == 0 and not waits.left
    assert [each.looks for each in objects] == [1] * 4, "a fence that is known stays"


@pytest.mark.parametrize("flags", [0, WAIT_ALL])
def test_the_fence_of_a_wait_stays_when_the_sync_object_gets_another(flags: int) -> None:
    """As in the kernel, which takes references to the fences first."""
    signals = Signals()
    fence = Fence(signals)
    syncobj = Counted(signals, fence)
    waits = pending([syncobj], flags)
    syncobj.replace(None)
    assert not waits.ready()
    fence.signal()
    assert waits.ready() and waits.first == 0


@pytest.mark.parametrize("flags, number", [(WAIT_FOR_SUBMIT, 1), (WAIT_AVAILABLE, 1), (WAIT_ALL | WAIT_AVAILABLE, 0)])
def test_a_point_may_come_later(flags: int, number: int) -> None:
    signals = Signals()
    objects = [Counted(signals), Counted(signals)]
    waits = pending(objects, flags, (3, 5))
    assert not waits.ready() and waits.first == -1
    for each, point in zip(reversed(objects), (5, 3), strict=True):
        each.add(point, Fence(signals, done=flags == WAIT_FOR_SUBMIT))
        if not flags & WAIT_ALL:
            break
    assert waits.ready() and waits.first == number


@pytest.fixture
def waiting() -> Signals:
    """Somebody waits, so that changes are known one by one."""
    signals = Signals()
    signals.waiting = 1
    return signals


def test_what_does_not_concern_a_wait_costs_it_nothing(waiting: Signals) -> None:
    """Eight waits for 65,536 points made each SIGNAL of others take 8 ms."""
    fences = [Fence(waiting) if number % 2 else None for number in range(1000)]
    objects, other = [Counted(waiting, fence) for fence in fences], Syncobj(waiting)
    waits = pending(objects, WAIT_FOR_SUBMIT)
    assert not waits.ready()
    looks = sum(each.looks for each in objects)
    for _ in range(RECENT // 2):
        other.replace(Fence(waiting, done=True))
        assert not waits.ready()
    assert sum(each.looks for each in objects) == looks
    objects[600].add(1, Fence(waiting))
    assert not waits.ready() and sum(each.looks for each in objects) == looks + 1, "its own change does"
    for _ in range(RECENT + 1):
        other.replace(None)
    assert not waits.ready() and sum(each.looks for each in objects) == looks + 501, "all, where too much has changed to know what"


@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("how", ["fence", "object", "fence of object", "fences together"])
def test_what_concerns_a_wait_ends_it(waiting: Signals, how: str, lost: bool) -> None:
    first, second = Fence(waiting), Fence(waiting)
    together = all_of(waiting, [first, second])
    objects = [Syncobj(waiting), Syncobj(waiting, together if how == "fences together" else first if how == "fence" else None)]
    waits = PendingPoints(objects, (0, 0), WAIT_FOR_SUBMIT)
    assert not waits.ready()
    if how == "object":
        objects[1].replace(Fence(waiting, done=True))
    elif how == "fence of object":
        objects[1].replace(first)
        assert not waits.ready()
    for fence in (first, second):
        fence.signal()
    for _ in range(RECENT * lost):
        waiting.notify()
    assert waits.ready() and waits.first == 1


def test_changes_are_forgotten_when_nobody_waits() -> None:
    signals, fence = Signals(), Fence(Signals())
    assert not signals.wait_unlocked(lambda: bool(signals.notify(fence)), 0.0) and not signals.recent  # type: ignore[func-returns-value]
    signals.notify(fence)
    assert not signals.recent and signals.since(signals.changes) == []
    with signals.lock:
        signals.tell(fence)
        signals.tell()
    assert signals.since(signals.changes - 2) == [fence, None] and signals.since(signals.changes - 3) is None


def test_a_point_that_is_named_often_is_looked_at_once() -> None:
    signals = Signals()
    syncobj, other = Counted(signals), Counted(signals, Fence(signals, done=True))
    assert len(pending([syncobj] * 1000, WAIT_FOR_SUBMIT).left) == 1 and syncobj.looks == 1
    assert pending([syncobj, other, other], WAIT_FOR_SUBMIT).first == 1
    with pytest.raises(Errno) as refused:
        pending([other, syncobj], 0)
    assert refused.value.number == errno.EINVAL


def chain(program: Program, *counts: int) -> dict[str, int]:
    """The fields of a submission with so many fences in each of its extensions."""
    handles = program.memory(struct.pack("<II", program.ioctl("DRM_IOCTL_SYNCOBJ_CREATE", flags=1).handle, 1) * max(counts))
    after = 0
    for count in counts:
        body = TIMELINE_FENCES.pack(SimpleNamespace(count=count, handles=handles.address, values=0))
        head = EXTENSION.pack(SimpleNamespace(next=after, name=0, flags=0, r0=0, r1=0, r2=0, r3=0))
        after = program.memory(head + body).address
    return {"flags": i915.I915_EXEC_USE_EXTENSIONS, "fences_at": after}


@pytest.mark.parametrize("counts, fine", [((1, MOST - 1), True), ((2, MOST - 1), False), ((1, 1, MOST - 1), False)])
def test_the_fences_of_all_extensions_are_bounded_together(gpu: Gpu, held: Any, counts: tuple[int, ...], fine: bool) -> None:
    """A chain has 512 links: lists as long as one may be would be 33 million fences."""
    program = gpu.program()
    handle, fields = buffer(program), chain(program, *counts)
    if fine:
        submit(program, [row(handle)], **fields)
        assert len(held.submissions[0].after) == sum(counts)
    else:
        with pytest.raises(OSError, match="Invalid"):
            submit(program, [row(handle)], **fields)


@pytest.mark.parametrize("size", [4, 10, 8 + 65 * 4, 200 << 20, 0xFFFFFFFC])
def test_an_engine_map_of_a_wrong_size_is_not_read(gpu: Gpu, size: int) -> None:
    """EINVAL, also where nothing is at its address."""
    with pytest.raises(OSError, match="Invalid"):
        gpu.program().ioctl("DRM_IOCTL_I915_GEM_CONTEXT_SETPARAM", param=i915.I915_CONTEXT_PARAM_ENGINES, size=size, value=0x10000)
