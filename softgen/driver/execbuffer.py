"""EXECBUFFER2: a list of buffers and a batch become a submission in a queue.

Addresses are given out and relocations applied here, while the program waits; the work itself runs later. What it waits for are fences
(a sync file, sync objects, points of timelines) and the submissions before it that used the same buffers.
"""

from __future__ import annotations

import errno
import struct
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from softgen.driver import aperture, gem, syncobj
from softgen.driver import context as contexts
from softgen.driver.fence import Fence
from softgen.driver.protocol import Call, Errno
from softgen.driver.submission import Bound, Submission
from softgen.driver.uapi import EXEC_FENCE, EXEC_OBJECT, RELOCATION, TIMELINE_FENCES

if TYPE_CHECKING:
    from softgen.driver.node import Node

NO_RELOC, HANDLE_LUT, FENCE_IN, FENCE_OUT, BATCH_FIRST = 1 << 11, 1 << 12, 1 << 16, 1 << 17, 1 << 18
FENCE_ARRAY, FENCE_SUBMIT, EXTENSIONS, SECURE = 1 << 19, 1 << 20, 1 << 21, 1 << 9
WRITE, PINNED, ASYNC = 1 << 2, 1 << 4, 1 << 6
FENCE_WAITS, FENCE_SIGNALS = 1, 2
TIMELINES = 0
MOST_BUFFERS, MOST_RELOCATIONS = 1 << 20, 1 << 22
ADDRESS = (1 << 48) - 1
FENCE_AT = 60  # the upper half of rsvd2: where a new sync file's number goes


def submit(node: Node, call: Call, arg: SimpleNamespace) -> None:
    context = contexts.lookup(node, arg.context & 0xFFFFFFFF)
    if arg.flags & SECURE:
        raise Errno(errno.EPERM, "a secure batch")
    engine = context.engine(arg.flags)
    if context.banned:
        raise Errno(errno.EIO, "the context is banned: work of it failed before")
    if not 0 < arg.count <= MOST_BUFFERS:
        raise Errno(errno.EINVAL, f"{arg.count} buffers")
    rows = EXEC_OBJECT.rows(call.read(arg.buffers, arg.count * EXEC_OBJECT.size))
    bos = [gem.lookup(node, row.handle) for row in rows]
    if len(set(bos)) != len(bos):
        raise Errno(errno.EINVAL, "a buffer is listed twice")
    addresses = context.vm.place([
        (bo, row.offset & ADDRESS if row.flags & PINNED else None, row.alignment) for bo, row in zip(bos, rows, strict=True)
    ])  # fmt: skip
    for bo in bos:
        if bo.copied:  # before relocations are applied to it, and not while earlier work still runs on it
            gem.wait_idle(node, call, bo)
            bo.copied.bring(call)
    relocations = relocate(node, call, arg, rows, bos, addresses)
    for number, (row, address) in enumerate(zip(rows, addresses, strict=True)):
        if not row.flags & PINNED and row.offset != address:
            call.write(arg.buffers + number * EXEC_OBJECT.size + EXEC_OBJECT.offsets["offset"], struct.pack("<Q", address))
    batch = 0 if arg.flags & BATCH_FIRST else len(rows) - 1
    if arg.start % 8 or arg.start + arg.size > bos[batch].size:
        raise Errno(errno.EINVAL, f"a batch of {arg.size:#x} bytes at {arg.start:#x} of a buffer of {bos[batch].size:#x}")
    waits, signals = fences(node, call, arg)
    submission = Submission(
        sequence=next(node.gpu.sequence), pid=call.channel.pid, program=call.channel.program, context=context, engine=engine,
        vm=context.vm, flags=arg.flags,
        bound=[Bound(bo, address, row.handle, row.flags, row.relocations)
               for bo, address, row in zip(bos, addresses, rows, strict=True)],
        batch=addresses[batch] + arg.start, batch_index=batch, batch_start=arg.start, batch_size=arg.size, relocations=relocations,
        fence=aperture.fence(node.gpu.signals, bos), after=waits + implicit(bos, rows),
    )  # fmt: skip
    enqueue(node, call, arg, submission, signals)


def enqueue(node: Node, call: Call, arg: SimpleNamespace, submission: Submission, signals: list[tuple[syncobj.Syncobj, int]]) -> None:
    if arg.flags & FENCE_OUT:
        call.hand(call.argument + FENCE_AT, node.gpu.sync_files.make(submission.fence))
    with node.gpu.lock:  # who waits for this work must come behind it in its line
        for bound in submission.bound:
            bound.bo.use(submission.fence, submission.engine, bool(bound.flags & WRITE))
        for target, point in signals:
            target.add(point, submission.fence)
        submission.context.last = submission.fence
        call.later = node.gpu.runner.at_once(submission)
        if call.later is None:
            node.gpu.runner.submit(submission)


def implicit(bos: list[gem.GemObject], rows: list[Any]) -> list[Fence]:
    """A buffer that other work writes must be finished first; one this work writes, by readers too."""
    return [
        use.fence
        for bo, row in zip(bos, rows, strict=True)
        if not row.flags & ASYNC
        for use in bo.busy()
        if use.write or row.flags & WRITE
    ]


def relocate(node: Node, call: Call, arg: SimpleNamespace, rows: list[Any], bos: list[gem.GemObject], addresses: list[int]) -> int:
    """Write the addresses buffers have into the places the driver named. All lists come with one question to the program."""
    total: int = sum(row.relocations for row in rows)
    if not total:
        return 0
    if total > MOST_RELOCATIONS:
        raise Errno(errno.EINVAL, f"{total} relocations")
    data = call.read_all([(row.relocations_at, row.relocations * RELOCATION.size) for row in rows if row.relocations])
    by_handle = {row.handle: number for number, row in enumerate(rows)}
    width, at = node.gpu.kernel.address_size, 0
    for row, bo in zip(rows, bos, strict=True):
        moved = False
        entries = RELOCATION.rows(data[at : at + row.relocations * RELOCATION.size])
        at += row.relocations * RELOCATION.size
        for number, entry in enumerate(entries):
            target = entry.target if arg.flags & HANDLE_LUT else by_handle.get(entry.target, len(rows))
            if target >= len(rows) or entry.offset + width > bo.size or entry.offset % 4:
                raise Errno(errno.ENOENT, f"relocation {number} of buffer {row.handle} leads nowhere")
            if entry.presumed == addresses[target] and arg.flags & NO_RELOC:
                continue
            if not moved:
                gem.wait_idle(node, call, bo)
                moved = True
            value = addresses[target] + (entry.delta - (1 << 32) if entry.delta >> 31 and width > 4 else entry.delta)
            bo.write(entry.offset, canonical(value, width))
            place = row.relocations_at + number * RELOCATION.size + RELOCATION.offsets["presumed"]
            call.write(place, struct.pack("<Q", addresses[target]))
    return total


def canonical(address: int, width: int) -> bytes:
    """An address as it stands in commands: with 64 bits, the bits above 47 repeat bit 47."""
    if width > 4 and address >> 47 & 1:
        address |= ~ADDRESS
    return (address & (1 << 8 * width) - 1).to_bytes(width, "little")


def fences(node: Node, call: Call, arg: SimpleNamespace) -> tuple[list[Fence], list[tuple[syncobj.Syncobj, int]]]:
    """What the work waits for, and the sync objects that get its fence."""
    named: list[tuple[SimpleNamespace, int]] = []
    if arg.flags & FENCE_ARRAY:
        named = [(fence, 0) for fence in fence_list(call, arg.fences_at, arg.fences)]
    if arg.flags & EXTENSIONS:
        for name, _, address in gem.extensions(call, arg.fences_at):
            if name != TIMELINES:
                raise Errno(errno.EINVAL, f"EXECBUFFER2 extension {name}")
            line = TIMELINE_FENCES.unpack(call.read(address, TIMELINE_FENCES.size))
            points = syncobj.numbers(call, line.values, line.count, "Q") if line.values else (0,) * line.count
            named += zip(fence_list(call, line.handles, line.count), points, strict=True)
    waits, signals = [], []
    if arg.flags & (FENCE_IN | FENCE_SUBMIT):
        number = arg.fence & 0xFFFFFFFF
        waits.append(syncobj.sync_file(node, call, number - (1 << 32) if number >> 31 else number))
    for entry, point in named:
        target = syncobj.lookup(node, entry.handle)
        if entry.flags & FENCE_WAITS:
            fence = target.fence(point)
            if fence is None:
                raise Errno(errno.EINVAL, "waits for a sync object nobody submitted")
            waits.append(fence)
        if entry.flags & FENCE_SIGNALS:
            signals.append((target, point))
    return waits, signals


def fence_list(call: Call, address: int, count: int) -> list[SimpleNamespace]:
    if count > syncobj.MOST:
        raise Errno(errno.EINVAL, f"{count} fences")
    return EXEC_FENCE.unpack_all(call.read(address, count * EXEC_FENCE.size))


HANDLERS = {"I915_GEM_EXECBUFFER2": submit}
