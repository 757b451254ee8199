"""Accesses outside of surfaces and local memory: each kernel's first groups on the interpreter, once for each instruction, with its lanes.

A store there does nothing and a load reads zeros (KBL 16401, 2479-2486), so that no world differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from softgen.errors import SoftgenError
from softgen.inspect.check.finding import ERROR, NOTE, Finding
from softgen.inspect.check.observed import ObservedDispatcher, observe
from softgen.inspect.check.replays import Opener
from softgen.position import Position
from softgen.shared_functions.dataport.watched import MemoryAccess
from softgen.threads import places
from softgen.threads.bindings import dispatch_bindings
from softgen.threads.compare.snapshot import MemorySnapshot
from softgen.threads.dispatch import DispatchContext, Finished, ThreadDispatch, TimedOut, never
from softgen.threads.programs import DispatchProgram, load
from softgen.threads.reference import ReferenceGroup
from softgen.threads.world import PLAIN

MOST_INSTRUCTIONS = 3000  # of a dispatch, some two seconds
MOST_LANES = 4  # that are named


class BoundsDispatcher(ObservedDispatcher):
    """Looks at the first dispatch of each kernel that is `wanted`, before it runs."""

    def __init__(self, engine: str, wanted: Callable[[DispatchProgram, ThreadDispatch], bool], position: Callable[[], Position]) -> None:
        super().__init__(engine, PLAIN)
        self.wanted, self.position = wanted, position
        self.findings: dict[tuple[str, int], Finding] = {}  # by kernel and instruction
        self._looked = set[str]()

    def run(self, context: DispatchContext, dispatch: ThreadDispatch, timed_out: TimedOut = never) -> Iterable[Finished]:
        program = load(context, dispatch)
        if program.title not in self._looked and self.wanted(program, dispatch):
            self._looked.add(program.title)
            before = MemorySnapshot(context.space)
            self._look(context, dispatch, program, timed_out)
            before.restore()
        return super().run(context, dispatch, timed_out)

    def _look(self, context: DispatchContext, dispatch: ThreadDispatch, program: DispatchProgram, timed_out: TimedOut) -> None:
        done = 0
        for number in range(dispatch.groups):
            try:
                done += self._run_group(context, dispatch, program, number, timed_out)
            except SoftgenError:
                return
            if done >= MOST_INSTRUCTIONS:
                return

    def _run_group(self, context: DispatchContext, dispatch: ThreadDispatch, program: DispatchProgram, number: int,
                   timed_out: TimedOut) -> int:  # fmt: skip
        def watch(access: MemoryAccess) -> None:
            if len(access.outside) and (access.local or access.size):  # null surfaces are meant to be accessed so
                self._outside(access, group, number, program)

        group = ReferenceGroup(context, dispatch, number, program, dispatch_bindings(context, dispatch), watch=watch)
        return group.run(timed_out).instructions

    def _outside(self, access: MemoryAccess, group: ReferenceGroup, number: int, program: DispatchProgram) -> None:
        thread = next(thread for thread in group.threads if thread is access.sender)
        key = program.title, thread.ip
        if key in self.findings:
            return
        at = Position(None, None, "cs", number, group.threads.index(thread), thread.ip - program.start, thread.executed)
        first = zip(access.outside[:MOST_LANES].tolist(), access.beyond[:MOST_LANES].tolist(), strict=True)
        lanes = ", ".join(f"{lane} at {offset:#x}" for lane, offset in first)
        more = len(access.outside) - MOST_LANES
        where = "local memory" if access.local else "a surface"
        verb, effect = ("reads", "zeros are read") if access.kind == "read" else ("writes", "nothing is stored")
        message = f"{verb} outside of {where} of {access.size:#x} bytes: lane {lanes}{f' and {more} more' if more > 0 else ''}; {effect}"
        self.findings[key] = Finding("bounds", NOTE if access.kind == "read" else ERROR, message, program.title, at.within(self.position()),
                                     details=(places.instruction_at(program, thread.ip),))  # fmt: skip


def check_bounds(opener: Opener, engine: str, kernels: frozenset[str], timed_out: Callable[[], bool] = lambda: False) -> list[Finding]:
    """Accesses outside, of the kernels that were seen to have some, and of those that use local memory."""

    def wanted(program: DispatchProgram, dispatch: ThreadDispatch) -> bool:
        return program.title in kernels or bool(dispatch.local_bytes)

    dispatcher = observe(opener(), lambda position: BoundsDispatcher(engine, wanted, position), timed_out)
    return list(dispatcher.findings.values())
