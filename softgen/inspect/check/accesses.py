"""Accesses of threads to the same bytes that nothing orders: a dispatch on the interpreter, group after group, every access noted.

Two accesses are unordered if they are of different threads, at least one of them writes, they are not both atomic, and no barrier of their
group is between them. Threads of different groups have no barrier in common.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from softgen.errors import SoftgenError
from softgen.inspect.check.finding import NOWHERE
from softgen.position import Position
from softgen.shared_functions.dataport.watched import MemoryAccess
from softgen.threads import places
from softgen.threads.bindings import dispatch_bindings
from softgen.threads.dispatch import DispatchContext, ThreadDispatch, TimedOut
from softgen.threads.programs import load
from softgen.threads.reference import ReferenceGroup

MOST_INSTRUCTIONS = 20_000  # on the interpreter, some ten seconds
MOST_READERS = 2  # of a byte that are remembered


class ByteAccess(NamedTuple):
    """The last access to a byte by some thread."""

    kind: str
    group: int
    thread: int
    lane: int
    ip: int
    executed: int
    barriers: int  # that its group had passed
    value: int


@dataclass
class ByteState:
    """The last write to a byte, and reads since."""

    write: ByteAccess | None = None
    reads: list[ByteAccess] = field(default_factory=list)


class Conflict(NamedTuple):
    """Two unordered accesses to a byte."""

    address: int
    local: bool
    first: ByteAccess
    second: ByteAccess

    @property
    def reads(self) -> bool:
        return "read" in (self.first.kind, self.second.kind)


class AccessLog:
    """Accesses of the groups of a dispatch to memory, and the first that are unordered."""

    def __init__(self) -> None:
        self.group: ReferenceGroup | None = None
        self.number = 0  # of the group
        self.numbers: dict[int, int] = {}  # of threads, by identity
        self.memory: dict[tuple[bool, int], ByteState] = {}
        self.atomics = False
        self.conflict: Conflict | None = None

    def begin(self, group: ReferenceGroup, number: int) -> None:
        self.group, self.number = group, number
        self.numbers = {id(thread): place for place, thread in enumerate(group.threads)}
        self.memory = {key: state for key, state in self.memory.items() if not key[0]}  # local memory is each group's own

    def note(self, access: MemoryAccess) -> None:
        group, thread = self.group, access.sender
        assert group is not None
        self.atomics |= access.kind == "atomic"
        number, ip, executed = self.numbers[id(thread)], int(thread.ip), int(thread.executed)  # type: ignore[attr-defined]
        for row, (lane, address) in enumerate(zip(access.lanes.tolist(), access.addresses.tolist(), strict=True)):
            for byte in range(access.width):
                value = int(access.data[row][byte]) if access.data is not None else 0
                new = ByteAccess(access.kind, self.number, number, lane, ip, executed, group.barriers, value)
                self._byte(access.local, address + byte, new)

    def _byte(self, local: bool, address: int, new: ByteAccess) -> None:
        state = self.memory.setdefault((local, address), ByteState())
        others = [state.write] if new.kind == "read" else [state.write, *state.reads]
        for old in others:
            if old is not None and unordered(old, new):
                found = Conflict(address, local, old, new)
                if self.conflict is None or found.reads and not self.conflict.reads:
                    self.conflict = found
        if new.kind == "read":
            if len(state.reads) < MOST_READERS and all(read.thread != new.thread or read.group != new.group for read in state.reads):
                state.reads.append(new)
        else:
            state.write, state.reads = new, []


def unordered(old: ByteAccess, new: ByteAccess) -> bool:
    if (old.group, old.thread) == (new.group, new.thread) or old.kind == new.kind == "atomic":
        return False
    if old.kind == new.kind == "write" and old.value == new.value:
        return False
    return old.group != new.group or old.barriers == new.barriers


@dataclass(frozen=True)
class Unordered:
    """What the log of a dispatch says."""

    conflict: Conflict | None
    atomics: bool
    complete: bool  # all groups were looked at
    lines: tuple[str, ...] = ()
    position: Position = NOWHERE


def unordered_accesses(context: DispatchContext, dispatch: ThreadDispatch, timed_out: TimedOut) -> Unordered:
    """Run groups of a dispatch on the interpreter until two accesses are unordered; memory is changed as by the groups."""
    program, bindings = load(context, dispatch), dispatch_bindings(context, dispatch)
    log, done, complete = AccessLog(), 0, True
    for number in range(dispatch.groups):
        group = ReferenceGroup(context, dispatch, number, program, bindings, watch=log.note)
        log.begin(group, number)
        try:
            done += group.run(timed_out).instructions
        except SoftgenError:
            complete = False
            break
        if log.conflict is not None and log.conflict.reads:
            break
        if done >= MOST_INSTRUCTIONS and number + 1 < dispatch.groups:
            complete = False
            break
    conflict = log.conflict
    if conflict is None:
        return Unordered(None, log.atomics, complete)
    what = f"local memory {conflict.address:#x}" if conflict.local else f"{conflict.address:#x}"
    lines = [f"{_words(access)} {what}: {places.instruction_at(program, access.ip)}" for access in (conflict.first, conflict.second)]
    between = "groups have no barrier in common" if conflict.first.group != conflict.second.group else "no barrier is between them"
    second = conflict.second
    where = Position(stage="cs", group=second.group, thread=second.thread, offset=second.ip - program.start, instructions=second.executed)
    return Unordered(conflict, log.atomics, complete, (*lines, between), where)


def _words(access: ByteAccess) -> str:
    verb = {"read": "reads", "write": "writes", "atomic": "changes"}[access.kind]
    return f"group {access.group}, thread {access.thread}, lane {access.lane} {verb}"
