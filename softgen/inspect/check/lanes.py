"""Lanes of one message that store different values to the same byte: the manuals give them no order.

softgen lets the highest lane win. Each kernel's first groups run on the interpreter with every store noted; where lanes meet, the same
groups run once more with the lowest winning, and memory is compared: what is stored over later, or is the same, is no finding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from softgen.errors import SoftgenError
from softgen.inspect.check.finding import ERROR, Finding
from softgen.inspect.check.observed import FirstDispatches, observe
from softgen.inspect.check.replays import Opener
from softgen.inspect.check.turns import Turns
from softgen.position import Position
from softgen.shared_functions.dataport.watched import LOWEST_WINS, MemoryAccess
from softgen.threads import places
from softgen.threads.bindings import dispatch_bindings
from softgen.threads.compare.snapshot import MemorySnapshot
from softgen.threads.dispatch import DispatchContext, ThreadDispatch, TimedOut
from softgen.threads.programs import DispatchProgram
from softgen.threads.reference import ReferenceGroup
from softgen.threads.world import PLAIN

LANES = "unspecified lanes"  # the world in which the lowest lane wins
MOST_INSTRUCTIONS = 3000  # of a dispatch, some two seconds
MOST_STEPS = 20_000  # of a group


@dataclass(frozen=True)
class LaneConflict:
    """Two lanes of a store that meet in a byte."""

    lanes: tuple[int, int]
    address: int
    local: bool
    position: Position
    where: str  # the instruction

    def __str__(self) -> str:
        place = f"{'local memory ' if self.local else ''}{self.address:#x}"
        return f"lanes {self.lanes[0]} and {self.lanes[1]} store different values to {place}"


class LaneWatch:
    """The first conflict of a group's stores; `lowest`: lets the lowest lane win."""

    def __init__(self, program: DispatchProgram, lowest: bool) -> None:
        self.program, self.lowest = program, lowest
        self.conflict: LaneConflict | None = None
        self.group: ReferenceGroup | None = None
        self.number = 0

    def note(self, access: MemoryAccess) -> object:
        if self.conflict is None and access.data is not None and len(np.unique(access.addresses)) < len(access.addresses):
            self.conflict = self._conflict(access)
        return LOWEST_WINS if self.lowest else None

    def _conflict(self, access: MemoryAccess) -> LaneConflict | None:
        assert access.data is not None and self.group is not None
        seen: dict[int, tuple[int, bytes]] = {}
        for lane, address, row in zip(access.lanes.tolist(), access.addresses.tolist(), access.data, strict=True):
            before = seen.setdefault(address, (lane, row.tobytes()))
            if before[1] != row.tobytes():
                thread = next(thread for thread in self.group.threads if thread is access.sender)
                number, offset = self.group.threads.index(thread), thread.ip - self.program.start
                at = Position(None, None, "cs", self.number, number, offset, thread.executed)
                return LaneConflict((before[0], lane), address, access.local, at, places.instruction_at(self.program, thread.ip))
        return None


class LaneDispatcher(FirstDispatches):
    """A dispatcher that looks for lanes of one message that store different values to a byte."""

    def look(self, context: DispatchContext, dispatch: ThreadDispatch, program: DispatchProgram, timed_out: TimedOut) -> None:
        before, found = MemorySnapshot(context.space), LaneWatch(program, lowest=False)
        groups = self._run_groups(context, dispatch, found, dispatch.groups, timed_out)
        plain = before.changed()
        before.restore()
        if found.conflict is None:
            return
        again = self._run_groups(context, dispatch, LaneWatch(program, lowest=True), groups, timed_out)
        other = before.changed()
        before.restore()
        if again == groups and plain != other:
            conflict = found.conflict
            message = f"{conflict} with one message; the manuals do not say which one stays"
            self.findings.append(Finding("unspecified", ERROR, message, program.title, conflict.position.within(self.position()),
                                         (PLAIN.name, LANES), (conflict.where,)))  # fmt: skip

    def _run_groups(self, context: DispatchContext, dispatch: ThreadDispatch, watch: LaneWatch, groups: int, timed_out: TimedOut) -> int:
        """Run the first groups, all or as many as there is time for; how many. One that takes too long is not looked at, nor are others."""
        done = 0
        for number in range(groups):
            group = ReferenceGroup(context, dispatch, number, watch.program, dispatch_bindings(context, dispatch), watch=watch.note)
            watch.group, watch.number = group, number
            try:
                ran = Turns([group], watch.program).run(MOST_STEPS, timed_out)
            except SoftgenError:
                return number + 1
            if ran is None:
                watch.conflict = None
                return 0
            done += ran
            if done >= MOST_INSTRUCTIONS:
                return number + 1
        return groups


def check_lanes(opener: Opener, engine: str, timed_out: Callable[[], bool] = lambda: False) -> list[Finding]:
    """The findings of all kernels of a capture's dispatches."""
    return observe(opener(), lambda position: LaneDispatcher(engine, position), timed_out).findings
