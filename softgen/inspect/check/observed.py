"""A dispatcher that notes the scratch space of its dispatches: nothing defines what it holds before a thread writes it, and after.

    dispatcher = observe(opener(), lambda position: SomeDispatcher(engine, position), timed_out)
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import TypeVar

from softgen.device.gpu import GpuDevice
from softgen.errors import GpuFault, SoftgenError
from softgen.inspect.check.finding import NOWHERE, Finding
from softgen.position import Position
from softgen.streamer.execute import Streamer
from softgen.threads.dispatch import DispatchContext, Finished, ThreadDispatch, TimedOut, never
from softgen.threads.dispatcher import EngineDispatcher
from softgen.threads.programs import DispatchProgram, load
from softgen.threads.workers.kept_loop import KeptLoop, LoopCache
from softgen.threads.world import PLAIN, World
from softgen.trace.replay import events
from softgen.trace.work import Work, WorkTrace

PIECE = 1 << 16


class ObservedDispatcher(EngineDispatcher):
    """An EngineDispatcher of one world, with one host thread."""

    strips = False

    def __init__(self, name: str, world: World = PLAIN) -> None:
        super().__init__(name, 1, world=world)
        self.local = False  # whether any kernel used local memory
        self.scratch: set[tuple[int, int]] = set()  # address and size of that of the dispatches so far; whoever reads it may clear it

    def run(self, context: DispatchContext, dispatch: ThreadDispatch, timed_out: TimedOut = never) -> Iterable[Finished]:
        self._see(context, dispatch)
        return super().run(context, dispatch, timed_out)

    def prepare(self, context: DispatchContext, dispatch: ThreadDispatch) -> KeptLoop:
        self._see(context, dispatch)
        return super().prepare(context, dispatch)

    def _leased(self, context: DispatchContext, dispatch: ThreadDispatch, cache: LoopCache) -> KeptLoop:
        self._see(context, dispatch)
        return super()._leased(context, dispatch, cache)

    def _see(self, context: DispatchContext, dispatch: ThreadDispatch) -> None:
        scratch = dispatch.scratch
        self.local |= bool(dispatch.local_bytes)
        if scratch is None or not scratch.size:
            return
        place = context.address("general", scratch.base), scratch.size * scratch.threads
        if place not in self.scratch:
            self.scratch.add(place)
            if self.world.fill:
                self._fill(context, *place)

    def _fill(self, context: DispatchContext, start: int, size: int) -> None:
        """What scratch space holds at first, as far as there is memory."""
        for at in range(start, start + size, PIECE):
            try:
                found = context.space.extent(at, min(PIECE, start + size - at))
                context.space.write(at, bytes([self.world.fill]) * found)
            except GpuFault:
                return


class FirstDispatches(ObservedDispatcher):
    """A dispatcher that looks at the first dispatch of each kernel, before it runs. Subclasses say what they look for."""

    def __init__(self, engine: str, position: Callable[[], Position]) -> None:
        super().__init__(engine, PLAIN)
        self.position = position
        self.findings: list[Finding] = []
        self._looked = set[str]()

    def run(self, context: DispatchContext, dispatch: ThreadDispatch, timed_out: TimedOut = never) -> Iterable[Finished]:
        program = load(context, dispatch)
        if program.title not in self._looked and self.wants(dispatch):
            self._looked.add(program.title)
            self.look(context, dispatch, program, timed_out)
        return super().run(context, dispatch, timed_out)

    def wants(self, dispatch: ThreadDispatch) -> bool:
        """Whether dispatches of this kind are looked at."""
        return True

    def look(self, context: DispatchContext, dispatch: ThreadDispatch, program: DispatchProgram, timed_out: TimedOut) -> None:
        """Find what there is; memory is as it was afterwards."""
        raise NotImplementedError


ObserverT = TypeVar("ObserverT", bound=ObservedDispatcher)


def observe(trace: WorkTrace, make: Callable[[Callable[[], Position]], ObserverT], timed_out: Callable[[], bool],
            last: int | None = None) -> ObserverT:  # fmt: skip
    """The dispatcher that `make` makes, after it has executed a capture's submissions, up to the `last`. It gets a function that says which
    command is under way."""
    at, streamers = NOWHERE, list[Streamer]()
    dispatcher = make(lambda: Position(at.submission, streamers[-1].command_number))
    gpu = GpuDevice(trace.device, itertools.count(1).__next__, timed_out, dispatcher=dispatcher)
    for event in events(trace):
        if not isinstance(event, Work):
            continue
        at = Position(event.sequence)
        try:
            execution = gpu.begin(event)
            streamers[:] = [execution.streamer]
            execution.run_to_end()
        except SoftgenError:
            pass  # reported by the plain replay
        if event.sequence == last:
            break
    return dispatcher
