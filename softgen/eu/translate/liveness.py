"""Which parts of the registers must be kept where a thread is left, and given back where it is taken up: those that may still be read."""

from __future__ import annotations

from dataclasses import dataclass, field

from softgen.eu.thread.block import ThreadStatus
from softgen.eu.translate.registers import TRUE, Access, Part, Registers


@dataclass(eq=False)
class Leave:
    """A way out of the function."""

    label: str
    status: ThreadStatus
    ip: int  # where the thread goes on
    control: int  # its cr0.0
    pending: frozenset[int]  # where channels may wait
    wait: int = 0  # 1 + notification register
    perhaps: bool = False  # the thread may also stay
    live: int = 0  # parts to keep, a bit for each


@dataclass(eq=False)
class FlagUse:
    """Sixteen flags are read, or all replaced."""

    number: int
    replaced: bool
    ip: int


Use = Access | FlagUse


@dataclass(eq=False)
class Segment:
    """Text that is entered only at its beginning: what it does with registers, in order."""

    ip: int
    entry: bool = False
    items: list[Use | Leave] = field(default_factory=list)
    leads: set[int] = field(default_factory=set)
    live: int = 0  # parts that may be read before they are written whole


def live(segments: dict[int, Segment], registers: Registers, parts: list[Part], flags: int, observe: bool) -> None:
    """Fills in `live` of every segment and leave, backward until nothing changes. Bits above the parts' are for so many flags."""
    number = {part: 1 << index for index, part in enumerate(parts)}
    every = (1 << len(parts) + flags) - 1
    known: dict[Use, tuple[int, int]] = {
        access: effect(access, registers, number, not access.result and access.mask == TRUE) for access in registers.accesses}  # fmt: skip
    for one in segments.values():
        for item in one.items:
            if isinstance(item, FlagUse):
                bit = 1 << len(parts) + item.number
                known[item] = (0, bit) if item.replaced else (bit, 0)
    before: dict[int, set[int]] = {}
    for one in segments.values():
        for to in [*one.leads, *(item.ip for item in one.items if isinstance(item, Leave))]:
            before.setdefault(to, set()).add(one.ip)
    todo = list(segments)
    while todo:
        one = segments[todo.pop()]
        now = 0
        for to in one.leads:
            now |= segments[to].live
        for item in reversed(one.items):
            if isinstance(item, Leave):
                item.live = _kept(item, one, segments, known, every, observe, now)
                now |= item.live
            else:
                reads, kills = known[item]
                now = now & ~kills | reads
        if now != one.live:
            one.live = now
            todo += before.get(one.ip, ())


def _kept(leave: Leave, here: Segment, segments: dict[int, Segment], known: dict[Use, tuple[int, int]], every: int,
          observe: bool, behind: int) -> int:  # fmt: skip
    """What must be in the block where a thread is left; `behind` is what the code after that needs."""
    if leave.status is ThreadStatus.ENDED:
        return every if observe else 0
    if observe or leave.status is ThreadStatus.ESCAPE and not leave.perhaps:
        return every
    if leave.status is ThreadStatus.ESCAPE:  # the reference does this instruction, and goes on as this code would
        found = behind
        for item in here.items:
            if not isinstance(item, Leave) and item.ip == leave.ip:
                reads, _ = known[item]
                found |= reads
        return found
    return segments[leave.ip].live if leave.ip in segments else every


def effect(access: Access, registers: Registers, number: dict[Part, int], replaces: bool) -> tuple[int, int]:
    """Parts that an access reads, and those that it replaces whole; parts without a number are nobody's concern."""
    parts = registers.covering(access)
    every = sum(number.get(part, 0) for part in parts)
    low, high = access.span
    if not replaces or len(set(access.offsets)) * access.type.bytes != high - low:
        return every, 0
    whole = sum(number.get(part, 0) for part in parts if low <= part.start and part.end <= high)
    return every & ~whole, whole
