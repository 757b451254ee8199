"""Two engines on the same dispatch: both must leave the same bytes in memory.

    dispatcher = ComparingDispatcher(EngineDispatcher("reference"), EngineDispatcher("t1"))

Memory is restored between the two. An EngineDifference names kernel, group, address and both values, and the instruction that stored there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from softgen.errors import GpuFault, SoftgenError, Unsupported
from softgen.memory.space import Space
from softgen.threads import places
from softgen.threads.bindings import dispatch_bindings
from softgen.threads.dispatch import DispatchContext, Finished, NativeLoop, ResultT, ThreadDispatch, TimedOut, never
from softgen.threads.dispatcher import EngineDispatcher
from softgen.threads.programs import load
from softgen.threads.reference import ReferenceGroup

if TYPE_CHECKING:
    from softgen.threads.kept_loop import KeptLoop

MAX_SNAPSHOT = 2 << 30  # bytes of memory that are copied
PIECE = 1 << 20
PAGE = 4096


class EngineDifference(SoftgenError):
    """Two engines left different bytes, or only one of them failed."""


class MemorySnapshot:
    """All bytes of a space."""

    def __init__(self, space: Space) -> None:
        self.space, self.pieces, size = space, {}, 0
        for region in space.regions():
            size += region.size
            if size > MAX_SNAPSHOT:
                raise Unsupported(f"{space.name} has more than {MAX_SNAPSHOT >> 30} GiB: too much to compare engines on")
            for at in range(region.start, region.start + region.size, PIECE):
                self.pieces[at] = space.read(at, min(PIECE, region.start + region.size - at))

    def restore(self) -> None:
        for page, data in self.changed():
            self.space.write(page, data)

    def changed(self) -> Iterator[tuple[int, bytes]]:
        """Pages that have changed, with their old contents."""
        for at, held in self.pieces.items():
            now = self.space.read(at, len(held))
            if now != held:
                for offset in range(0, len(held), PAGE):
                    if now[offset : offset + PAGE] != held[offset : offset + PAGE]:
                        yield at + offset, held[offset : offset + PAGE]


@dataclass(frozen=True)
class EngineResult:
    """The outcome of a dispatch on one engine: its error, and the pages it changed, by address."""

    done: tuple[Finished, ...]
    error: SoftgenError | None
    pages: dict[int, bytes]

    @property
    def threads(self) -> int:
        return sum(finished.threads for finished in self.done)


class ComparingDispatcher:
    """A Dispatcher that runs dispatches on two engines and keeps the results of the first."""

    prepares = False

    def __init__(self, first: EngineDispatcher, second: EngineDispatcher) -> None:
        self.first, self.second = first, second
        self._current: EngineDispatcher | None = None  # at work on a whole

    @property
    def both(self) -> tuple[EngineDispatcher, EngineDispatcher]:
        return self.first, self.second

    @property
    def threads(self) -> int:
        return (self._current or self.first).threads

    def whole(self, space: Space, work: Callable[[], ResultT]) -> ResultT:
        """Both engines do all of the work before memory is compared."""
        before, results, done = MemorySnapshot(space), [], []
        for dispatcher in self.both:
            before.restore()
            self._current = dispatcher
            error = None
            try:
                done.append(work())
            except SoftgenError as found:
                error = found
            results.append(EngineResult((), error, {page: space.read(page, len(was)) for page, was in before.changed()}))
        self._current = None
        self._check_whole(space, before, results)
        before.restore()
        for at, data in results[0].pages.items():
            space.write(at, data)
        if results[0].error:
            raise results[0].error
        return done[0]

    def _check_whole(self, space: Space, before: MemorySnapshot, results: list[EngineResult]) -> None:
        names, words = [dispatcher.name for dispatcher in self.both], [_words(result.error) or "no error" for result in results]
        page = _differ(results[0], results[1])
        if page is not None:
            before.restore()
            pages = {*results[0].pages, *results[1].pages}
            found = [{each: result.pages.get(each, space.read(each, PAGE)) for each in pages} for result in results]
            raise EngineDifference(f"{names[0]} and {names[1]} differ: {_values(names, _first(found[0], found[1]) or page, found)}")
        if words[0] != words[1]:
            raise EngineDifference(f"{names[0]} and {names[1]} differ: {names[0]} says {words[0]!r}, {names[1]} says {words[1]!r}")

    def run_loops(self, context: DispatchContext, dispatch: ThreadDispatch, loops: Sequence[NativeLoop],
                  timed_out: TimedOut = never) -> Iterator[Finished]:  # fmt: skip
        if self._current is None:
            raise Unsupported("threads that a C loop starts are compared only as part of a draw")
        return self._current.run_loops(context, dispatch, loops, timed_out)

    def prepare(self, context: DispatchContext, dispatch: ThreadDispatch) -> KeptLoop:
        raise Unsupported("dispatches that are compared are not prepared")

    def run(self, context: DispatchContext, dispatch: ThreadDispatch, timed_out: TimedOut = never) -> Iterator[Finished]:
        if self._current is not None:
            yield from self._current.run(context, dispatch, timed_out)
            return
        before = MemorySnapshot(context.space)
        first, second = (self._run(dispatcher, context, dispatch, timed_out, before) for dispatcher in self.both)
        if (page := _differ(first, second)) is not None or _words(first.error) != _words(second.error):
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
        return EngineResult(tuple(done), error, {page: context.space.read(page, len(was)) for page, was in before.changed()})

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
            if (at := _first(found[0], found[1])) is not None:
                held.restore()
                what, stored = _values(names, at, found), _store(context, alone, at)
                return EngineDifference(f"{names[0]} and {names[1]} differ: {title}, group {alone.group_name(0)}: {what}{stored}")
        if page is not None:
            found = [{each: result.pages.get(each, before.space.read(each, PAGE)) for each in pages} for result in results]
            what = _values(names, _first(found[0], found[1]) or page, found)
            return EngineDifference(f"{names[0]} and {names[1]} differ: {title}: {what}, though no group alone does so")
        words = [_words(result.error) or "no error" for result in results]
        return EngineDifference(f"{names[0]} and {names[1]} differ: {title}: {names[0]} says {words[0]!r}, {names[1]} says {words[1]!r}")

    def _alone(self, dispatcher: EngineDispatcher, context: DispatchContext, alone: ThreadDispatch, timed_out: TimedOut,
               pages: set[int]) -> dict[int, bytes]:  # fmt: skip
        try:
            for _ in dispatcher.run(context, alone, timed_out):
                pass
        except SoftgenError:
            pass  # what it wrote is compared; that both fail alike was checked before
        return {page: context.space.read(page, PAGE) for page in pages}


class PageSnapshot:
    """Some pages, to be restored."""

    def __init__(self, space: Space, pages: set[int]) -> None:
        self.space, self.held = space, {page: space.read(page, PAGE) for page in pages}

    def restore(self) -> None:
        for page, data in self.held.items():
            if self.space.read(page, PAGE) != data:
                self.space.write(page, data)


def _differ(first: EngineResult, second: EngineResult) -> int | None:
    """The first page that two runs left differently."""
    differing = {page for page, _ in first.pages.items() ^ second.pages.items()}
    return min(differing, default=None)


def _first(first: dict[int, bytes], second: dict[int, bytes]) -> int | None:
    """The first address at which pages differ, of a dword."""
    for page in sorted(first):
        if first[page] != second[page]:
            return page + next(i for i in range(PAGE) if first[page][i] != second[page][i]) // 4 * 4
    return None


def _values(names: list[str], at: int, pages: list[dict[int, bytes]]) -> str:
    def value(held: dict[int, bytes]) -> str:
        start = at % PAGE
        return f"{int.from_bytes(held[at - start][start : start + 4], 'little'):#010x}"

    return f"at {at:#x} {names[0]} has {value(pages[0])}, {names[1]} has {value(pages[1])}"


def _words(error: SoftgenError | None) -> str:
    """The part of an error on which engines must agree: at a time limit they may be in different places of a loop."""
    if isinstance(error, GpuFault):
        return f"{error.access} at {error.address:#x}"
    return str(error) if error else ""


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
