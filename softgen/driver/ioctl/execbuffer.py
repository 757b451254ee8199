"""DRM_IOCTL_I915_GEM_EXECBUFFER2: turn a list of buffers into a submission with its batch, and queue it.

Addresses are given out and relocations applied here, while the program waits; the work itself runs later. What it waits for are fences
(a sync file, sync objects, points of timelines) and the submissions before it that used the same buffers.
"""

from __future__ import annotations

import errno
import struct
import time
from collections.abc import Sequence
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from softgen.bits.units import PAGE_SIZE
from softgen.driver.errors import Errno
from softgen.driver.ioctl import aperture, gem, syncobj
from softgen.driver.ioctl import context as contexts
from softgen.driver.ioctl.relocation import read_lists, relocate
from softgen.driver.objects.buffer_claim import claim_copies, claim_relocated
from softgen.driver.objects.buffer_list import Bound, BufferList
from softgen.driver.objects.fence import Fence, Syncobj
from softgen.driver.objects.gem_context import AcceptedArgument, GemContext
from softgen.driver.objects.submission import Submission
from softgen.driver.objects.vm import ZONE_4G, PlacementRequest, Vm
from softgen.driver.run.protocol import Call
from softgen.driver.uapi import i915_drm as i915
from softgen.driver.uapi.uapi import EXEC_FENCE, EXEC_OBJECT, TIMELINE_FENCES

if TYPE_CHECKING:
    from softgen.driver.objects.node import Node

MOST_BUFFERS = 1 << 17  # each needs a descriptor: a server cannot have more
MOST_LISTS = 192  # of a context that are kept,
MOST_LISTED = 1 << 16  # buffers in these,
MOST_ACCEPTED = 16  # and arguments
LISTED_BYTES, SUBMISSION_BYTES = 216, 2048  # memory of the server that a buffer in a list takes, and a submission that waits, about
AFTER_START = 3  # of the argument's fields: those after buffers, count and start
ADDRESS = (1 << 48) - 1
UNUSED_DR4 = 0xFFFFFFFF  # some programs leave it so
IN_FENCES = i915.I915_EXEC_FENCE_IN | i915.I915_EXEC_FENCE_SUBMIT
FENCED = i915.I915_EXEC_FENCE_ARRAY | i915.I915_EXEC_USE_EXTENSIONS | IN_FENCES
WAIT_AND_SIGNAL = i915.I915_EXEC_FENCE_WAIT | i915.I915_EXEC_FENCE_SIGNAL
NO_SIGNALS: Sequence[tuple[Syncobj, int]] = ()
FENCE_AT = 60  # the upper half of rsvd2: where a new sync file's number goes


def submit(node: Node, call: Call, arg: Any) -> None:
    context = contexts.lookup(node, arg.context & 0xFFFFFFFF)
    accepted = context.accepted.get(arg[AFTER_START:])
    start, size, gpu, channel = arg.start, arg.size, node.gpu, call.channel
    if accepted is None or start % 8:
        accepted = accept(context, arg)
    if context.banned:
        raise Errno(errno.EIO, "the context is banned: work of it failed before")
    if not 0 < arg.count <= MOST_BUFFERS:
        raise Errno(errno.EINVAL, f"{arg.count} buffers")
    gpu.budget.check(channel.pid, 0, "EXECBUFFER2")
    after, signals = fences(node, call, arg) if accepted.fenced else ([], NO_SIGNALS)  # before buffers are claimed: they may take long
    try:
        bound, relocations = buffers(node, call, arg, context)
        batch = 0 if accepted.batch_first else len(bound) - 1
        bo, address, _, _, _ = bound[batch]
        if start >= bo.size or start + size > bo.size:
            raise Errno(errno.EINVAL, f"a batch of {size:#x} bytes at {start:#x} of a buffer of {bo.size:#x}")
        fence = aperture.fence(gpu.signals, [bo.view for bo in bound.bos if bo.view]) if gpu.linear_views else Fence(gpu.signals)
        submission = Submission(next(gpu.sequence), channel.pid, channel.program, context, accepted.engine, context.vm, bound,
                                address + start, batch, start, size, relocations, arg.flags, fence, after, accepted.slot)  # fmt: skip
        if accepted.fence_out:
            call.hand(call.argument + FENCE_AT, gpu.sync_files.make(fence))
        with gpu.lock:  # who waits for this work must come behind it in its line
            after += bound.submitted(fence, accepted.engine)
            for target, point in signals:
                target.add(point, fence)
            context.last, work_first = fence, channel.wait_prediction.work_first()
            call.later = None if gpu.settle else gpu.runner.at_once(submission, work_first)
            if call.later is not None:
                call.work_first = work_first
                return
            channel.wait_prediction.queued()
            gpu.budget.note(channel.pid, SUBMISSION_BYTES)
            fence.then(partial(gpu.budget.give, channel.pid, SUBMISSION_BYTES))
            gpu.runner.submit(submission)
    finally:
        if call.claims:
            call.give_up()
    if gpu.settle:
        gpu.signals.wait(lambda: fence.done, time.monotonic() + gpu.settle)


def accept(context: GemContext, arg: Any) -> AcceptedArgument:
    """Check the argument itself, and remember that it is fine: drivers change the start of the batch and little else."""
    check(arg)
    if len(context.accepted) >= MOST_ACCEPTED:
        context.accepted.clear()
    flags = arg.flags
    found = context.accepted[arg[AFTER_START:]] = AcceptedArgument(
        context.engine(flags), context.slot(flags), bool(flags & i915.I915_EXEC_BATCH_FIRST), bool(flags & FENCED),
        bool(flags & i915.I915_EXEC_FENCE_OUT))  # fmt: skip
    return found


class ListedBuffers(NamedTuple):
    """The buffers of a submission, where there was nothing to do for them: drivers often submit the same list again, or a few in turn.
    It is forgotten when a handle is closed, so that it keeps no buffer alive."""

    vm: Vm
    changes: tuple[int, int]  # of handles and addresses
    bound: BufferList


def buffers(node: Node, call: Call, arg: SimpleNamespace, context: GemContext) -> tuple[BufferList, int]:
    """The buffers of the list with their addresses, and the number of relocations that were applied."""
    data, vm = call.read(arg.buffers, arg.count * EXEC_OBJECT.size), context.vm
    changes, listed = (node.objects.changes, vm.placed.changes), context.listed.get(data)
    if listed is not None and listed.changes == changes and listed.vm is vm:
        return listed.bound, 0
    rows = EXEC_OBJECT.rows(data)
    bos = [gem.lookup(node, row.handle) for row in rows]
    if len(set(bos)) != len(bos):
        raise Errno(errno.EINVAL, "a buffer is listed twice")
    for bo, row in zip(bos, rows, strict=True):
        check_row(row, bo.size)
    lists, copied = read_lists(call, rows, bos), [bo for bo in bos if bo.copied]
    if copied:
        call.claims.append(claim_copies(node.gpu, call, copied))
    for bo in copied:  # before relocations are applied to them
        assert bo.copied is not None
        bo.copied.bring(call)
    if lists:  # before they get addresses: those of two submissions may differ
        call.claims.append(claim_relocated(node.gpu, call, [bo for _, bo, _ in lists]))
    addresses = vm.place([
        PlacementRequest(bo, row.offset & ADDRESS if row.flags & i915.EXEC_OBJECT_PINNED else None, row.alignment,
                         bool(row.flags & i915.EXEC_OBJECT_SUPPORTS_48B_ADDRESS))
        for bo, row in zip(bos, rows, strict=True)
    ])  # fmt: skip
    relocations, moved = relocate(node, call, arg, rows, bos, addresses, lists), False
    for number, (row, address) in enumerate(zip(rows, addresses, strict=True)):
        if not row.flags & i915.EXEC_OBJECT_PINNED and row.offset != address:
            moved = True
            call.write(arg.buffers + number * EXEC_OBJECT.size + EXEC_OBJECT.offsets["offset"], struct.pack("<Q", address))
    bound = BufferList(Bound(bo, address, row.handle, row.flags, row.relocations)
                       for bo, address, row in zip(bos, addresses, rows, strict=True))  # fmt: skip
    node.gpu.budget.hold(bound, call.channel.pid, LISTED_BYTES * len(bound))
    if not (moved or relocations or bound.copies):
        with node.gpu.lock:  # others may close handles, or keep lists of the same context
            _keep_list(node, context, data, ListedBuffers(vm, (changes[0], vm.placed.changes), bound))
    return bound, relocations


def _keep_list(node: Node, context: GemContext, data: bytes, listed: ListedBuffers) -> None:
    kept: dict[bytes, Any] = context.listed
    if listed.changes[0] != node.objects.changes:
        return  # a handle may mean another buffer by now
    if kept and next(iter(kept.values())).changes != listed.changes:
        kept.clear()
    count = sum(len(held.bound) for held in kept.values()) + len(listed.bound)
    while kept and (len(kept) >= MOST_LISTS or count > MOST_LISTED):
        count -= len(kept.pop(next(iter(kept))).bound)  # the oldest
    context.listed[data] = listed
    node.lists.add(context)


def check(arg: SimpleNamespace) -> None:
    """Refuse what the kernel refuses in the argument itself (i915_gem_check_execbuffer, parse_execbuf2_extensions)."""
    if arg.flags & i915.I915_EXEC_UNKNOWN_FLAGS:
        raise Errno(errno.EINVAL, f"EXECBUFFER2 flags {arg.flags:#x}")
    if arg.flags & i915.I915_EXEC_SECURE:
        raise Errno(errno.EPERM, "a secure batch")
    if (arg.fences or arg.fences_at) and not arg.flags & (i915.I915_EXEC_FENCE_ARRAY | i915.I915_EXEC_USE_EXTENSIONS):
        raise Errno(errno.EINVAL, "clip rectangles")
    if arg.flags & i915.I915_EXEC_USE_EXTENSIONS and (arg.flags & i915.I915_EXEC_FENCE_ARRAY or arg.fences):
        raise Errno(errno.EINVAL, "an array of fences where extensions are")
    if arg.flags & IN_FENCES == IN_FENCES:
        raise Errno(errno.EINVAL, "one sync file to wait for and to start with")
    if arg.dr1 or arg.dr4 not in (0, UNUSED_DR4):
        raise Errno(errno.EINVAL, f"DR1 {arg.dr1:#x}, DR4 {arg.dr4:#x}")
    if (arg.start | arg.size) % 8:
        raise Errno(errno.EINVAL, f"a batch of {arg.size:#x} bytes at {arg.start:#x}: not a multiple of 8")


def check_row(row: Any, size: int) -> None:
    """Refuse what the kernel refuses of a buffer in the list (eb_validate_vma, i915_vma_insert)."""
    if row.flags & i915.EXEC_OBJECT_UNKNOWN_FLAGS:
        raise Errno(errno.EINVAL, f"buffer {row.handle}: flags {row.flags:#x}")
    if row.alignment & (row.alignment - 1):
        raise Errno(errno.EINVAL, f"buffer {row.handle}: an alignment of {row.alignment:#x} is no power of two")
    if row.flags & i915.EXEC_OBJECT_PAD_TO_SIZE and row.r1 % PAGE_SIZE:
        raise Errno(errno.EINVAL, f"buffer {row.handle}: padded to {row.r1:#x} bytes, which is no multiple of a page")
    if row.flags & i915.EXEC_OBJECT_PINNED:
        if row.offset != canonical(row.offset & ADDRESS & -PAGE_SIZE):
            raise Errno(errno.EINVAL, f"buffer {row.handle} is pinned at {row.offset:#x}: not a page in canonical form")
        if row.alignment and row.offset % row.alignment:
            raise Errno(errno.EINVAL, f"buffer {row.handle} is pinned at {row.offset:#x}, against its alignment of {row.alignment:#x}")
        if not row.flags & i915.EXEC_OBJECT_SUPPORTS_48B_ADDRESS and (row.offset & ADDRESS) + size > ZONE_4G:
            raise Errno(errno.EINVAL, f"buffer {row.handle} is pinned above 4 GiB, at {row.offset:#x}, without SUPPORTS_48B_ADDRESS")


def canonical(address: int) -> int:
    """An address in canonical form: the bits above 47 repeat bit 47."""
    return address | 0xFFFF << 48 if address >> 47 & 1 else address


def fences(node: Node, call: Call, arg: SimpleNamespace) -> tuple[list[Fence], Sequence[tuple[Syncobj, int]]]:
    """Fences that the submission waits for, and the sync objects that get its fence."""
    named: list[tuple[Any, int]] = []
    if arg.flags & i915.I915_EXEC_FENCE_ARRAY:
        named = [(fence, 0) for fence in fence_list(call, arg.fences_at, arg.fences)]
    if arg.flags & i915.I915_EXEC_USE_EXTENSIONS:
        for name, _, address in gem.extensions(call, arg.fences_at):
            if name != i915.DRM_I915_GEM_EXECBUFFER_EXT_TIMELINE_FENCES:
                raise Errno(errno.EINVAL, f"EXECBUFFER2 extension {name}")
            line = TIMELINE_FENCES.unpack(call.read(address, TIMELINE_FENCES.size))
            entries = fence_list(call, line.handles, line.count, len(named))
            points = syncobj.numbers(call, line.values, line.count, "Q") if line.values else (0,) * line.count
            named += zip(entries, points, strict=True)
    waits, signals = list[Fence](), list[tuple[Syncobj, int]]()
    if arg.flags & IN_FENCES:
        waits.append(syncobj.sync_file(node.gpu, call, arg.fence & 0xFFFFFFFF))
    for entry, point in named:
        if entry.flags & ~WAIT_AND_SIGNAL or point and entry.flags == WAIT_AND_SIGNAL:
            raise Errno(errno.EINVAL, f"flags {entry.flags:#x} of a fence at point {point}")
        target = syncobj.lookup(node, entry.handle)
        if entry.flags & i915.I915_EXEC_FENCE_WAIT:
            fence = target.fence(point)
            if fence is None:
                raise Errno(errno.EINVAL, "waits for a sync object nobody submitted")
            waits.append(fence)
        if entry.flags & i915.I915_EXEC_FENCE_SIGNAL:
            signals.append((target, point))
    return waits, signals


def fence_list(call: Call, address: int, count: int, before: int = 0) -> list[Any]:
    """An array of fences; `before`: how many a submission has named already."""
    if before + count > syncobj.MOST:
        raise Errno(errno.EINVAL, f"{before + count} fences")
    return EXEC_FENCE.rows(call.read(address, count * EXEC_FENCE.size))


HANDLERS = {"DRM_IOCTL_I915_GEM_EXECBUFFER2": submit}
