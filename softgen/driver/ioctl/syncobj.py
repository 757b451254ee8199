"""The ioctls on sync objects (fence.py)."""

from __future__ import annotations

import errno
import struct
from collections import deque
from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, NamedTuple

from softgen.driver.errors import Errno
from softgen.driver.objects.fence import Fence, Syncobj
from softgen.driver.run.protocol import Call
from softgen.driver.uapi import drm
from softgen.driver.uapi.uapi import ARGUMENTS

if TYPE_CHECKING:
    from softgen.driver.objects.node import GpuState, Node

WAIT_ALL, WAIT_AVAILABLE = drm.DRM_SYNCOBJ_WAIT_FLAGS_WAIT_ALL, drm.DRM_SYNCOBJ_WAIT_FLAGS_WAIT_AVAILABLE
WAIT_FOR_SUBMIT = drm.DRM_SYNCOBJ_WAIT_FLAGS_WAIT_FOR_SUBMIT
MOST = 1 << 16
NANOSECONDS = 1e9


def lookup(node: Node, handle: int) -> Syncobj:
    found = node.syncobjs.get(handle)
    if found is None:
        raise Errno(errno.ENOENT, f"no sync object {handle}")
    return found


def objects(node: Node, call: Call, arg: SimpleNamespace) -> list[Syncobj]:
    """The sync objects of an argument that names some; all of them are there before anything becomes of the first."""
    if not arg.count:
        raise Errno(errno.EINVAL, "no sync objects")
    return [lookup(node, handle) for handle in numbers(call, arg.handles, arg.count, "I")]


def check(unknown: int, what: str) -> None:
    """Refuse bits that mean nothing."""
    if unknown:
        raise Errno(errno.EINVAL, f"{what} {unknown:#x}")


def numbers(call: Call, address: int, count: int, letter: str) -> tuple[int, ...]:
    if count > MOST:
        raise Errno(errno.EINVAL, f"{count} sync objects")
    return struct.unpack(f"<{count}{letter}", call.read(address, count * struct.calcsize(letter)))


def create(node: Node, call: Call, arg: SimpleNamespace) -> None:
    check(arg.flags & ~drm.DRM_SYNCOBJ_CREATE_SIGNALED, "flags")
    fence = Fence(node.gpu.signals, done=True) if arg.flags else None
    arg.handle = node.syncobjs.add(Syncobj(node.gpu.signals, fence))


def destroy(node: Node, call: Call, arg: SimpleNamespace) -> None:
    check(arg.pad, "pad")
    if node.syncobjs.remove(arg.handle) is None:
        raise Errno(errno.EINVAL)


def to_descriptor(node: Node, call: Call, arg: SimpleNamespace) -> None:
    check(arg.pad, "pad")
    check(arg.flags & ~drm.DRM_SYNCOBJ_HANDLE_TO_FD_FLAGS_EXPORT_SYNC_FILE, "flags")
    syncobj = lookup(node, arg.handle)
    if not arg.flags & drm.DRM_SYNCOBJ_HANDLE_TO_FD_FLAGS_EXPORT_SYNC_FILE:
        call.hand(call.argument + ARGUMENTS["DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD"].offsets["fd"], node.gpu.syncobjs.new(syncobj)[0])
        return
    fence = syncobj.fence()
    if fence is None:
        raise Errno(errno.EINVAL, "a sync object without a fence has no sync file")
    call.hand(call.argument + ARGUMENTS["DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD"].offsets["fd"], node.gpu.sync_files.make(fence))


def from_descriptor(node: Node, call: Call, arg: SimpleNamespace) -> None:
    check(arg.pad, "pad")
    check(arg.flags & ~drm.DRM_SYNCOBJ_FD_TO_HANDLE_FLAGS_IMPORT_SYNC_FILE, "flags")
    if arg.flags & drm.DRM_SYNCOBJ_FD_TO_HANDLE_FLAGS_IMPORT_SYNC_FILE:
        lookup(node, arg.handle).replace(sync_file(node.gpu, call, arg.fd))
        return
    found = node.gpu.syncobjs.find(call.identity(arg.fd))
    if found is None:
        raise Errno(errno.EINVAL, "the descriptor is no sync object")
    arg.handle = node.syncobjs.add(found)


def sync_file(gpu: GpuState, call: Call, number: int, refusal: int = errno.EINVAL) -> Fence:
    """The fence of a sync file the program names by descriptor; `refusal` is the error where that is something else, or nothing."""
    try:
        found = gpu.sync_files.find(call.identity(number))
    except Errno as error:
        if error.number != errno.EBADF:
            raise
        found = None
    if found is None:
        raise Errno(refusal, "the descriptor is no sync file")
    return found


def wait(node: Node, call: Call, arg: SimpleNamespace) -> None:
    """DRM_IOCTL_SYNCOBJ_WAIT and DRM_IOCTL_SYNCOBJ_TIMELINE_WAIT: wait for all fences or for the first.

    The timeout is absolute, on CLOCK_MONOTONIC.
    """
    timeline = hasattr(arg, "points")
    check(arg.flags & ~(WAIT_ALL | WAIT_FOR_SUBMIT | (WAIT_AVAILABLE if timeline else 0)), "flags of a wait")
    if not arg.count:
        return
    found = objects(node, call, arg)
    points = numbers(call, arg.points, arg.count, "Q") if timeline and arg.points else (0,) * arg.count
    pending = PendingPoints(found, points, arg.flags)
    if not node.gpu.signals.wait_unlocked(pending.ready, arg.timeout / NANOSECONDS, call.channel.gone):
        raise Errno(errno.ETIME)
    arg.first = pending.first


class PendingPoint(NamedTuple):
    """A point that a program waits for: its number in the program's list, and its fence if there was one at first."""

    number: int
    syncobj: Syncobj
    point: int
    fence: Fence | None

    def found(self) -> Fence | None:
        return self.fence or self.syncobj.fence(self.point)


class PendingPoints:
    """The points of sync objects that a program waits for: there may be many thousands, and each fence that is done is a reason to look,
    but only at those points that it may concern.

    A point whose fence is known keeps that fence, as in the kernel (drm_syncobj_array_wait_timeout).
    """

    def __init__(self, objects: Sequence[Syncobj], points: Sequence[int], flags: int) -> None:
        self.all, self.available = bool(flags & WAIT_ALL), bool(flags & WAIT_AVAILABLE)
        numbered = {point: number for number, point in reversed(list(enumerate(zip(objects, points, strict=True))))}
        left = [PendingPoint(number, syncobj, point, syncobj.fence(point)) for (syncobj, point), number in numbered.items()]
        if not flags & (WAIT_FOR_SUBMIT | WAIT_AVAILABLE) and any(entry.fence is None for entry in left):
            raise Errno(errno.EINVAL, "waits for something nobody submitted")
        self.left = deque(sorted(left, key=lambda entry: entry.number))
        self.signals, self.seen = objects[0].signals, -1  # changes that were seen
        self.concerned: dict[object, list[PendingPoint]] = {}  # by fence or sync object
        self.first = next((entry.number for entry in self.left if self._passed(entry.fence)), -1)

    def _passed(self, fence: Fence | None) -> bool:
        return fence is not None and (fence.done or self.available)

    def ready(self) -> bool:
        """Whether all, or one of them, are done; of all, those that are done are not looked at again."""
        if not self.all:
            if self.first < 0:
                self._look()
            return self.first >= 0
        while self.left:
            if not self._passed(self.left[0].found()):
                return False
            number = self.left.popleft().number
            self.first = number if self.first < 0 else self.first
        return True


    def _look(self) -> None:
        """Look for one that is done: at all of them the first time, later at those that changes concern."""
        seen, self.seen = self.seen, self.signals.changes
        changed = self.signals.since(seen) if seen >= 0 and self.signals.waiting else None
        if changed is None:
            self.concerned.clear()
        entries = self.left if changed is None else (entry for what in changed for entry in self.concerned.get(what, ()))
        for entry in list(entries):
            fence = entry.found()
            if self._passed(fence):
                self.first = entry.number
                return
            if changed is None:
                self.concerned.setdefault(entry.fence or entry.syncobj, []).append(entry)
            if fence is not None and entry.fence is None:
                self.concerned.setdefault(fence, []).append(entry)


def reset(node: Node, call: Call, arg: SimpleNamespace) -> None:
    check(arg.pad, "pad")
    for syncobj in objects(node, call, arg):
        syncobj.replace(None)


def signal(node: Node, call: Call, arg: SimpleNamespace) -> None:
    check(arg.pad, "pad")
    for syncobj in objects(node, call, arg):
        syncobj.replace(Fence(node.gpu.signals, done=True))


def signal_points(node: Node, call: Call, arg: SimpleNamespace) -> None:
    check(arg.flags, "flags")
    found = objects(node, call, arg)
    points = numbers(call, arg.points, arg.count, "Q") if arg.points else (0,) * arg.count
    for syncobj, point in zip(found, points, strict=True):
        syncobj.add(point, Fence(node.gpu.signals, done=True))


def query(node: Node, call: Call, arg: SimpleNamespace) -> None:
    check(arg.flags & ~drm.DRM_SYNCOBJ_QUERY_FLAGS_LAST_SUBMITTED, "flags")
    found = objects(node, call, arg)
    submitted = bool(arg.flags & drm.DRM_SYNCOBJ_QUERY_FLAGS_LAST_SUBMITTED)
    call.write(arg.points, struct.pack(f"<{arg.count}Q", *(syncobj.value(submitted) for syncobj in found)))


def transfer(node: Node, call: Call, arg: SimpleNamespace) -> None:
    check(arg.pad, "pad")
    source, target = lookup(node, arg.source), lookup(node, arg.target)
    if arg.flags & WAIT_FOR_SUBMIT:
        node.gpu.signals.wait(lambda: source.fence(arg.source_point) is not None, None, call.channel.gone)
    fence = source.fence(arg.source_point)
    if fence is None:
        raise Errno(errno.EINVAL)
    target.add(arg.target_point, fence)


HANDLERS = {
    "DRM_IOCTL_SYNCOBJ_CREATE": create,
    "DRM_IOCTL_SYNCOBJ_DESTROY": destroy,
    "DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD": to_descriptor,
    "DRM_IOCTL_SYNCOBJ_FD_TO_HANDLE": from_descriptor,
    "DRM_IOCTL_SYNCOBJ_WAIT": wait,
    "DRM_IOCTL_SYNCOBJ_TIMELINE_WAIT": wait,
    "DRM_IOCTL_SYNCOBJ_RESET": reset,
    "DRM_IOCTL_SYNCOBJ_SIGNAL": signal,
    "DRM_IOCTL_SYNCOBJ_TIMELINE_SIGNAL": signal_points,
    "DRM_IOCTL_SYNCOBJ_QUERY": query,
    "DRM_IOCTL_SYNCOBJ_TRANSFER": transfer,
}
