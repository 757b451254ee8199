"""Liveness in T1: which register parts and flags are live, so are spilled at an exit and reloaded at an entry.

Backward data flow over segments. A part is live where it may be read before it is wholly written; a write under a mask kills nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from softgen.eu.thread.block import ThreadStatus
from softgen.eu.translate.registers import TRUE, RegisterAccess, RegisterPart, RegisterPartition
from softgen.lanes.compile import foreground


@dataclass(eq=False)
class Exit:
    """An exit of the function; a side exit where `conditional`."""

    label: str
    status: ThreadStatus
    ip: int  # the resume point
    control: int  # its cr0.0
    pending: frozenset[int]  # where channels may wait
    wait: int = 0  # 1 + notification register
    conditional: bool = False
    stray: bool = False  # the thread does not come back
    live: int = 0  # parts to spill, a bit for each


@dataclass(eq=False)
class FlagUse:
    """Sixteen flags are read, or all replaced."""

    number: int
    replaced: bool
    ip: int


Use = RegisterAccess | FlagUse


@dataclass(eq=False)
class Segment:
    """A piece of a basic block that is entered only at its beginning: its register uses and exits, in order."""

    ip: int
    entry: bool = False  # a resume point: the function may be entered here
    items: list[Use | Exit] = field(default_factory=list)
    successors: set[int] = field(default_factory=set)
    live_in: int = 0  # parts that may be read before they are wholly written


def compute_liveness(segments: dict[int, Segment], registers: RegisterPartition, parts: list[RegisterPart], flags: int,
                     observe: bool) -> None:  # fmt: skip
    """Compute `live_in` of every segment and `live` of every exit. Bits above the parts' are the flags'."""
    number = {part: 1 << index for index, part in enumerate(parts)}
    everything = (1 << len(parts) + flags) - 1
    effects: dict[Use, tuple[int, int]] = {
        access: effect(access, registers, number, not access.result and access.mask == TRUE) for access in registers.accesses}  # fmt: skip
    for segment in segments.values():
        for item in segment.items:
            if isinstance(item, FlagUse):
                bit = 1 << len(parts) + item.number
                effects[item] = (0, bit) if item.replaced else (bit, 0)
    predecessors: dict[int, set[int]] = {}
    for segment in segments.values():
        for to in [*segment.successors, *(item.ip for item in segment.items if isinstance(item, Exit))]:
            predecessors.setdefault(to, set()).add(segment.ip)
    todo = list(segments)
    while todo:
        segment = segments[todo.pop()]
        now = 0
        for to in segment.successors:
            now |= segments[to].live_in
        for item in reversed(segment.items):
            if isinstance(item, Exit):
                item.live = _spilled(item, segment, segments, effects, everything, observe, now)
                now |= item.live
            else:
                reads, kills = effects[item]
                now = now & ~kills | reads
        if now != segment.live_in:
            segment.live_in = now
            todo += predecessors.get(segment.ip, ())


def _spilled(exit: Exit, here: Segment, segments: dict[int, Segment], effects: dict[Use, tuple[int, int]], everything: int,
          observe: bool, live_out: int) -> int:  # fmt: skip
    """The parts that must be in the block at an exit; `live_out`: what the code after it reads."""
    if exit.status is ThreadStatus.ENDED:
        return everything if observe else 0
    if observe or exit.status is ThreadStatus.ESCAPE and (exit.stray or not exit.conditional):
        return everything
    if exit.status is ThreadStatus.ESCAPE:  # the interpreter executes this instruction, and the thread resumes after it
        found = live_out
        for item in here.items:
            if not isinstance(item, Exit) and item.ip == exit.ip:
                reads, _ = effects[item]
                found |= reads
        return found
    return segments[exit.ip].live_in if exit.ip in segments else everything


def effect(access: RegisterAccess, registers: RegisterPartition, number: dict[RegisterPart, int], replaces: bool) -> tuple[int, int]:
    """The parts that an access reads, and those that it kills; parts without a number are left out."""
    foreground.yield_to_foreground()  # passes over all accesses come by here
    parts = registers.covering(access)
    covered = sum(number.get(part, 0) for part in parts)
    low, high = access.span
    if not replaces or len(set(access.offsets)) * access.type.bytes != high - low:
        return covered, 0
    whole = sum(number.get(part, 0) for part in parts if low <= part.start and part.end <= high)
    return covered & ~whole, whole
