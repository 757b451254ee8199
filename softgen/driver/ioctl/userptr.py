"""The program's own memory as a buffer (USERPTR).

Private pages are swapped in place for pages of a memfd that the simulator maps too; from then on both see the same bytes, tags included.
What cannot be swapped (memory shared with others, the stack the calling thread runs on) is copied in before each submission; afterwards
only the bytes that changed are written back, before any fence is done.
"""

from __future__ import annotations

import bisect
import errno
import os
import re
import weakref
from typing import TYPE_CHECKING, NamedTuple

from softgen.driver.errors import Errno
from softgen.driver.ioctl.user_copy import Copied
from softgen.driver.objects.descriptors import leave_some
from softgen.driver.run.protocol import Call
from softgen.memory.store import Identity, MemfdBuffer

if TYPE_CHECKING:
    from softgen.driver.objects.node import GpuState, Node

# The program says this about itself: numbers that the kernel never writes are no line at all.
MAPS_LINE = re.compile(r"([0-9a-f]{1,16})-([0-9a-f]{1,16}) ([rwxps-]{4}) ([0-9a-f]{1,16}) "
                       r"([0-9a-f]{1,3}):([0-9a-f]{1,5}) ([0-9]{1,20}) *(.*)")  # fmt: skip
SHORTEST_LINE = 32  # bytes, at least
OURS = "/memfd:softgen userptr"

Parts = list[tuple[MemfdBuffer, int, int]]


class Mapping(NamedTuple):
    start: int
    end: int
    mode: str
    offset: int
    file: Identity
    name: str


def mappings(text: str, start: int, end: int) -> list[Mapping]:
    """The lines of /proc/PID/maps that lie in a range. There may be thousands, in the order of their addresses."""
    if text.count("\n") * SHORTEST_LINE > len(text):
        return []  # the kernel writes no such lines, and all other programs would wait until millions of them are looked at
    lines, found = text.strip("\n").split("\n"), []  # the kernel writes one in a name in another way, and no other separator
    try:
        first = bisect.bisect_right(lines, start, key=lambda line: int(line.partition("-")[0], 16))
    except ValueError:  # something is no line
        first = 0
    for line in lines[max(first - 1, 0) :]:
        if match := MAPS_LINE.match(line):
            file = os.makedev(int(match[5], 16), int(match[6], 16)), int(match[7])
            mapping = Mapping(int(match[1], 16), int(match[2], 16), match[3], int(match[4], 16), file, match[8])
            if mapping.start >= end:
                break
            if start < mapping.end:
                found.append(mapping)
    return found


def share(node: Node, call: Call, start: int, size: int) -> tuple[Parts, Copied | None]:
    """The pieces of memory behind a range of the program's addresses; a fault where there is a hole."""
    end, at = start + size, start
    pieces: Parts = []
    for mapping in mappings(call.maps(start, end), start, end):
        if mapping.start > at or "r" not in mapping.mode:
            break
        first, at = max(mapping.start, start), min(mapping.end, end)
        piece = known(node, call, mapping, first, at) or swapped(node.gpu, call, mapping, first, at)
        if piece is None:
            return copied(node.gpu, call, start, size)
        pieces.append(piece)
    if at < end:
        raise Errno(errno.EFAULT, f"USERPTR: no memory at {at:#x}")
    return pieces, None


def known(node: Node, call: Call, mapping: Mapping, first: int, last: int) -> tuple[MemfdBuffer, int, int] | None:
    """Memory the server has already: swapped for another buffer of this process, or a buffer of this node that the process mapped.

    The mapping is what the program says about itself. It may lie, and then finds nothing but what is its own.
    """
    buffer = node.gpu.swapped.get((call.channel.pid, mapping.file))
    if buffer is None and mapping.mode[3] == "s" and (bo := node.gpu.objects.get(mapping.file)) and bo in node.handles:
        buffer = bo.pieces[0].buffer
    if buffer is not None and mapping.offset + last - mapping.start > buffer.capacity:
        return None
    return (buffer, mapping.offset + first - mapping.start, last - first) if buffer else None


def swapped(gpu: GpuState, call: Call, mapping: Mapping, first: int, last: int) -> tuple[MemfdBuffer, int, int] | None:
    if mapping.mode[3] == "s" and not mapping.name.startswith(OURS) or mapping.name.startswith("[") and mapping.name != "[heap]":
        return None
    leave_some()
    gpu.budget.check(call.channel.pid, last - first, "USERPTR")
    buffer = gpu.budget.adopt(call.channel.pid, MemfdBuffer(last - first, "userptr"))
    try:
        call.swap(first, last - first, sum(bit for letter, bit in zip("rwx", (1, 2, 4), strict=True) if letter in mapping.mode), buffer.fd)
    except Errno as refused:
        if refused.number == errno.EFAULT:
            raise
        return None
    gpu.swapped[call.channel.pid, buffer.identity] = buffer
    return buffer, 0, last - first


def copied(gpu: GpuState, call: Call, start: int, size: int) -> tuple[Parts, Copied | None]:
    """A copy of a range, and the state needed to write changes back."""
    pid = call.channel.pid
    leave_some()
    gpu.budget.check(pid, 2 * size, "USERPTR")
    gpu.budget.take(pid, size, "USERPTR")
    buffer = gpu.budget.adopt(pid, MemfdBuffer(size, "copy"))
    weakref.finalize(buffer, gpu.budget.give, pid, size).atexit = False
    copy = Copied(pid, start, buffer)
    copy.bring(call)
    return [(buffer, 0, size)], copy
