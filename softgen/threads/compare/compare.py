"""Two engines on the same dispatch: both must leave the same bytes in memory.

    dispatcher = ComparingDispatcher(EngineDispatcher("reference"), EngineDispatcher("t1"))

Memory is restored between the two. An EngineDifference names kernel, group, address and both values, and the instruction that stored there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from softgen.bits.units import PAGE_SIZE
from softgen.errors import SoftgenError, Unsupported
from softgen.memory.space import Space
from softgen.threads import places
from softgen.threads.bindings import dispatch_bindings
from softgen.threads.compare.compare_work import WorkComparison
from softgen.threads.compare.selection import TileSelection, WorkNames
from softgen.threads.compare.snapshot import (
    EngineDifference,
    EngineResult,
    MemorySnapshot,
    PageSnapshot,
    error_text,
    first_address,
    first_page,
    values_text,
)
from softgen.threads.dispatch import DispatchContext, Finished, ResultT, ThreadDispatch, TimedOut, never
from softgen.threads.dispatcher import EngineDispatcher
from softgen.threads.programs import load
from softgen.threads.reference import ReferenceGroup

if TYPE_CHECKING:
    from softgen.threads.workers.kept_loop import KeptLoop, LoopLease


class ComparingDispatcher:
    """A Dispatcher that runs dispatches on two engines and keeps the results of the first; of each draw, it may compare `tiles` tiles."""

    prepares = fills = False

    def __init__(self, first: EngineDispatcher, second: EngineDispatcher, tiles: int = 0) -> None:
        self.first, self.second, self.tiles = first, second, tiles
        first.strips = second.strips = False
        self._work: WorkComparison[Any] | None = None
        self._count = 0  # of draws: each has other tiles

    @property
    def both(self) -> tuple[EngineDispatcher, EngineDispatcher]:
        return self.first, self.second

    def count_memory(self, charge: Callable[[int], None]) -> None:
        for dispatcher in self.both:
            dispatcher.count_memory(charge)

    def retire(self) -> None:
        for dispatcher in self.both:
            dispatcher.retire()

    @property
    def threads(self) -> int:
        return (self._work.current if self._work is not None else self.first).threads

    @property
    def selection(self) -> TileSelection | None:
        return self._work.selection if self._work is not None else None

    @property
    def reserved(self) -> int:
        return 0

    def whole(self, space: Space, work: Callable[[], ResultT], names: WorkNames) -> ResultT:
        """Both engines do all of the work, or its sampled tiles, before memory is compared."""
        self._count += 1
        self._work = compared = WorkComparison(self.both, space, work, names)
        try:
            return compared.run(TileSelection(self.tiles, self._count) if self.tiles else None)
        finally:
            self._work = None

    def prepare(self, context: DispatchContext, dispatch: ThreadDispatch) -> KeptLoop:
        raise Unsupported("dispatches that are compared are not prepared")

    def lease(self) -> LoopLease:
        if self._work is None:
            raise Unsupported("threads that a C loop starts are compared only as part of a draw")
        return self._work.current.lease()

    def watched(self, context: DispatchContext) -> DispatchContext:
        return self._work.watched(context) if self._work is not None else context

    def run(self, context: DispatchContext, dispatch: ThreadDispatch, timed_out: TimedOut = never) -> Iterator[Finished]:
        if self._work is not None:
            yield from self._work.current.run(context, dispatch, timed_out)
            return
        before = MemorySnapshot(context.space)
        first, second = (self._run(dispatcher, context, dispatch, timed_out, before) for dispatcher in self.both)
        if (page := first_page(first, second)) is not None or error_text(first.error) != error_text(second.error):
            before.restore()
            raise self._explain(context, dispatch, timed_out, before, page, (first, second))
        before.restore()
        for at, data in first.pages.items():
            context.space.write(at, data)
        yield from first.done
        if first.error:
            raise first.error

    def _run(self, dispatcher: EngineDispatcher, context: DispatchContext, dispatch: ThreadDispatch, timed_out: TimedOut,
             before: MemorySnapshot) -> EngineResult:  # fmt: skip
        """A run that starts from the snapshot; memory stays as the run leaves it."""
        before.restore()
        done, error = [], None
        try:
            for finished in dispatcher.run(context, dispatch, timed_out):
                done.append(finished)
        except SoftgenError as found:
            error = found
        return EngineResult(tuple(done), error, before.changed())

    def _explain(self, context: DispatchContext, dispatch: ThreadDispatch, timed_out: TimedOut, before: MemorySnapshot, page: int | None,
                 results: tuple[EngineResult, EngineResult]) -> EngineDifference:  # fmt: skip
        """Names the first group after which memory differs, each group starting from what the groups before it left."""
        title, pages = load(context, dispatch).title, {*results[0].pages, *results[1].pages}
        names = [dispatcher.name for dispatcher in self.both]
        for group in range(dispatch.groups) if page is not None else ():
            alone, held, found = dispatch.only(group), PageSnapshot(context.space, pages), []
            for dispatcher in self.both:
                held.restore()
                found.append(self._alone(dispatcher, context, alone, timed_out, pages))
            if (at := first_address(found[0], found[1])) is not None:
                held.restore()
                what, stored = values_text(names, at, found), _store(context, alone, at)
                return EngineDifference(f"{names[0]} and {names[1]} differ: {title}, group {alone.group_name(0)}: {what}{stored}")
        if page is not None:
            found = [{each: result.pages.get(each, before.space.read(each, PAGE_SIZE)) for each in pages} for result in results]
            what = values_text(names, first_address(found[0], found[1]) or page, found)
            return EngineDifference(f"{names[0]} and {names[1]} differ: {title}: {what}, though no group alone does so")
        words = [error_text(result.error) or "no error" for result in results]
        return EngineDifference(f"{names[0]} and {names[1]} differ: {title}: {names[0]} says {words[0]!r}, {names[1]} says {words[1]!r}")

    def _alone(self, dispatcher: EngineDispatcher, context: DispatchContext, alone: ThreadDispatch, timed_out: TimedOut,
               pages: set[int]) -> dict[int, bytes]:  # fmt: skip
        try:
            for _ in dispatcher.run(context, alone, timed_out):
                pass
        except SoftgenError:
            pass  # what it wrote is compared; that both fail alike was checked before
        return {page: context.space.read(page, PAGE_SIZE) for page in pages}


def _store(context: DispatchContext, alone: ThreadDispatch, address: int) -> str:
    """The instruction that last changes an address when the reference engine runs the one group of a dispatch."""
    group = ReferenceGroup(context, alone, 0, load(context, alone), dispatch_bindings(context, alone))
    last, held = "", context.space.read(address, 4)
    moved = True
    try:
        while moved:
            moved = False
            for number, runner in enumerate(group.runners):
                while not runner.thread.ended:
                    ip = runner.thread.ip
                    if not runner.step():
                        break
                    moved = True
                    if (now := context.space.read(address, 4)) != held:
                        held, last = now, places.thread_at(alone, 0, number, runner.code, ip)
                    if runner.thread.ip <= ip:
                        break
    except SoftgenError:
        pass
    return f"; stored by {last}" if last else ""
