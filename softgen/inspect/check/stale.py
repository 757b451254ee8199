"""The `stale` world: what a draw renders is read only after a flush, a stall, and an invalidation of the cache that reads.

A render target write stays in the render cache until a PIPE_CONTROL flushes it (render_target_cache_flush_enable; G45-SYNC-05, ICL-SYNC-06,
ICL-PC-07) or MI_FLUSH, or the submission ends. The flush alone says nothing about when (ICL-SYNC-07): command_streamer_stall_enable in the
same or a later one waits for it. A read-only cache may then still hold lines of before, until a later PIPE_CONTROL invalidates it
(ICL-SYNC-14, ICL-PC-06): invalidations act at the top of the pipe, flushes at its end. Each draw and dispatch that follows such a draw is
done once more with that memory as it was; if it then computes something else, it has read what it could not rely on. Pages that it writes
itself stay as they are: blending reads the cache.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from softgen.bits.record import Record
from softgen.bits.units import PAGE_SIZE
from softgen.device.gpu import GpuDevice
from softgen.errors import SoftgenError
from softgen.inspect.check.finding import ERROR, WARNING, Finding
from softgen.inspect.check.observed import ObservedDispatcher
from softgen.inspect.check.replays import Opener
from softgen.memory.space import Space
from softgen.position import NOWHERE, Position
from softgen.streamer.execute import Streamer
from softgen.surface.image import SurfaceImage
from softgen.threads.compare.selection import WorkNames
from softgen.threads.compare.snapshot import MemorySnapshot
from softgen.threads.dispatch import DispatchContext, Finished, ResultT, ThreadDispatch, TimedOut, never
from softgen.threads.programs import load
from softgen.threads.world import PLAIN
from softgen.trace.replay import events
from softgen.trace.work import Work

STALE = "stale"
DispatcherT = TypeVar("DispatcherT", bound="StaleDispatcher")
FLUSH, DEPTH_STALL, WAIT = "render_target_cache_flush_enable", "depth_stall_enable", "command_streamer_stall_enable"
TEXTURE, VERTEX, CONSTANT = (f"{name}_invalidation_enable" for name in ("texture_cache", "vf_cache", "constant_cache"))
ALL = frozenset((FLUSH, WAIT, TEXTURE, VERTEX, CONSTANT))
MISSING = {FLUSH: ("missing flush", ERROR), WAIT: ("missing stall after a flush", ERROR), TEXTURE: ("missing invalidation", WARNING),
           VERTEX: ("missing invalidation", WARNING), CONSTANT: ("missing invalidation", WARNING)}  # fmt: skip


@dataclass(frozen=True)
class CachedPage:
    """A page that a draw has written to, and readers may not see yet."""

    memory: bytes  # what memory held before
    cached: bytes
    title: str  # of the draw that wrote to it first
    position: Position
    missing: frozenset[str] = ALL  # fields of PIPE_CONTROL that have not come since

    def missed_by(self, cache: str) -> str:
        """The first of them that matters to what reads through a cache; "" for none."""
        return next((field for field in (FLUSH, WAIT, cache) if field in self.missing), "")

    def after(self, given: Container[str]) -> CachedPage:
        """The page after a PIPE_CONTROL with some fields, in the order in which they count."""
        if not self.missing & {FLUSH, WAIT}:
            return replace(self, missing=frozenset(field for field in self.missing if field not in given))
        flushed = FLUSH not in self.missing or FLUSH in given
        return replace(self, missing=self.missing - {FLUSH, *((WAIT,) if WAIT in given else ())}) if flushed else self


@dataclass(frozen=True)
class Doubt:
    """A finding if something has read its pages before they were rendered: only then a read-only cache can hold what was there."""

    finding: Finding
    writer: Position
    field: str  # that invalidates the cache
    pages: frozenset[int]


class StaleDispatcher(ObservedDispatcher):
    """Does draws and dispatches again on memory without what the render cache holds back."""

    prepares = fills = False

    position: Callable[[], Position]
    reader: Callable[[int], str]  # through which cache a page is read

    def __init__(self, engine: str) -> None:
        super().__init__(engine, PLAIN)
        self.doubts: list[Doubt] = []
        self.cached: dict[int, CachedPage] = {}
        self.findings: list[Finding] = []
        self._drawn: tuple[str, Position, dict[int, bytes], MemorySnapshot] | None = None  # by the last draw
        self._inside = False

    # -- what pipelines ask for ----------------------------------------------------------------------------------------

    def run(self, context: DispatchContext, dispatch: ThreadDispatch, timed_out: TimedOut = never) -> Iterable[Finished]:
        if self._inside or not self.cached:
            return super().run(context, dispatch, timed_out)

        def work() -> list[Finished]:
            return list(self._plain(context, dispatch, timed_out))

        return self._twice(context.space, work, lambda: load(context, dispatch).title)[0]

    def _plain(self, context: DispatchContext, dispatch: ThreadDispatch, timed_out: TimedOut) -> Iterable[Finished]:
        return super().run(context, dispatch, timed_out)

    def whole(self, space: Space, work: Callable[[], ResultT], names: WorkNames) -> ResultT:
        found, changed, before = self._twice(space, work, lambda: names.title)
        self._drawn = names.title, self.position(), changed, before
        return found

    def drawn(self, space: Space, targets: Sequence[SurfaceImage]) -> None:
        """The last draw has written to these: their pages are in the render cache."""
        if self._drawn is None:
            return
        title, position, changed, before = self._drawn
        self._drawn = None
        buffers = [range(region.start, region.start + region.size) for region in space.regions()]
        buffers = [held for held in buffers if any(image.base in held for image in targets)]
        for page, new in changed.items():
            if any(page in held for held in buffers):
                held = self.cached.get(page)
                old = CachedPage(page_of(before, page), new, title, position)
                self.cached[page] = old if held is None else replace(held, cached=new, missing=ALL)

    def flushed(self) -> None:
        """What caches held is in memory, and nothing else is in caches."""
        self.cached.clear()

    def controlled(self, given: Container[str]) -> None:
        """A PIPE_CONTROL with some fields has come."""
        pages = {page: held.after(given) for page, held in self.cached.items()}
        self.cached = {page: held for page, held in pages.items() if held.missing}

    # -- comparison ----------------------------------------------------------------------------------------------------

    def _twice(self, space: Space, work: Callable[[], ResultT],
               title: Callable[[], str]) -> tuple[ResultT, dict[int, bytes], MemorySnapshot]:  # fmt: skip
        """Do work; then once more without what the render cache holds, and compare. Its result, and the pages that it changed."""
        before, self._inside = MemorySnapshot(space), True
        try:
            found = work()
            changed = before.changed()
            self._forget_overwritten(space, changed)
            hidden = {page: held for page, held in self.cached.items() if page not in changed and held.missed_by(self.reader(page))}
            if hidden:
                self._again(space, work, title, before, changed, hidden)
        finally:
            self._inside = False
        return found, changed, before

    def _forget_overwritten(self, space: Space, changed: dict[int, bytes]) -> None:
        """Memory that something else has written since is not what it was before the draw."""
        for page, held in list(self.cached.items()):
            if page not in changed and space.read(page, PAGE_SIZE) != held.cached:
                del self.cached[page]

    def _again(self, space: Space, work: Callable[[], Any], title: Callable[[], str], before: MemorySnapshot, changed: dict[int, bytes],
               hidden: dict[int, CachedPage]) -> None:  # fmt: skip
        """Report what work computes from memory without hidden pages, and which earlier draw has written what it needs."""
        plain = {page: data for page, data in changed.items() if page not in self.cached}
        try:
            if (effect := self._effect(space, work, before, plain, memory_of(hidden))) is None:
                return
            writers = list(dict.fromkeys((held.title, held.position) for held in hidden.values()))
            for writer in writers if len(writers) > 1 else ():
                own = {page: held for page, held in hidden.items() if (held.title, held.position) == writer}
                if self._effect(space, work, before, plain, memory_of(own)) is not None:
                    writers = [writer]
                    break
            own = {page: held for page, held in hidden.items() if (held.title, held.position) == writers[0]}
            fields = {held.missed_by(self.reader(page)) for page, held in own.items()}
            field = next(field for field in MISSING if field in fields)
            finding = self._finding(title(), writers[0], field, *effect)
            if field in (FLUSH, WAIT):
                self.findings.append(finding)
            else:
                self.doubts.append(Doubt(finding, writers[0][1], field, frozenset(own)))
        finally:
            before.restore()
            for page, data in changed.items():
                space.write(page, data)

    def _effect(self, space: Space, work: Callable[[], Any], before: MemorySnapshot, plain: dict[int, bytes],
                hidden: Mapping[int, bytes]) -> tuple[int, int] | None:  # fmt: skip
        """The first address that differs, and how many bytes, where some pages are hidden."""
        before.restore()
        for page, data in hidden.items():
            space.write(page, data)
        try:
            work()
        except SoftgenError:
            return None  # it reads commands or state from there
        stale = {page: data for page, data in before.changed().items() if page not in self.cached and page not in hidden}
        first, count = None, 0
        for page in sorted({page for page, _ in stale.items() ^ plain.items()}):
            here, there = (np.frombuffer(pages.get(page) or page_of(before, page), np.uint8) for pages in (plain, stale))
            where = np.flatnonzero(here != there)
            if len(where):
                first, count = page + int(where[0]) if first is None else first, count + len(where)
        return None if first is None else (first, count)

    def _finding(self, title: str, writer: tuple[str, Position], field: str, first: int, count: int) -> Finding:
        what, level = MISSING[field]
        message = f"{what}: {title} reads what {writer[0]} has rendered ({writer[1]}): {count} bytes differ, first at {first:#x}"
        details = {FLUSH: f"a PIPE_CONTROL with {FLUSH} between them would order them, with what invalidates the cache that reads",
                   WAIT: f"{FLUSH} has come, but no {WAIT} that waits for it (ICL 935-937)"}  # fmt: skip
        reason = details.get(field, f"it was flushed, but {field} has not come since: the cache may hold what it has read there before "
                                    "(ICL 1008-1017)")  # fmt: skip
        return Finding(STALE, level, message, "", self.position(), (PLAIN.name, STALE), (reason,))


class ReaderDispatcher(StaleDispatcher):
    """Finds out which doubts are none: pages that no work has read before they were rendered are in no read-only cache. Work before is done
    once more with these pages inverted; where that makes a difference, it has read them."""

    def __init__(self, engine: str, doubts: Sequence[Doubt]) -> None:
        super().__init__(engine)
        self.doubts, self.read = list(doubts), set[Doubt]()

    def run(self, context: DispatchContext, dispatch: ThreadDispatch, timed_out: TimedOut = never) -> Iterable[Finished]:
        if self._inside or not self._before():
            return self._plain(context, dispatch, timed_out)
        return self._poisoned(context.space, lambda: list(self._plain(context, dispatch, timed_out)))

    def whole(self, space: Space, work: Callable[[], ResultT], names: WorkNames) -> ResultT:
        return self._poisoned(space, work) if self._before() else work()

    def drawn(self, space: Space, targets: Sequence[SurfaceImage]) -> None:
        pass

    def controlled(self, given: Container[str]) -> None:
        """Lines that are invalidated are in the cache no more."""
        self.read -= {doubt for doubt in self._before() if doubt.field in given}

    def _before(self) -> list[Doubt]:
        """Doubts about what is rendered later in the submission."""
        now = self.position()
        return [doubt for doubt in self.doubts
                if now.submission == doubt.writer.submission and (now.command or 0) < (doubt.writer.command or 0)]  # fmt: skip

    def _poisoned(self, space: Space, work: Callable[[], ResultT]) -> ResultT:
        before, self._inside = MemorySnapshot(space), True
        try:
            found = work()
            changed = before.changed()
            for doubt in self._before():
                pages = {page: inverted(page_of(before, page)) for page in doubt.pages if page not in changed}
                if doubt not in self.read and pages and self._effect(space, work, before, changed, pages) is not None:
                    self.read.add(doubt)
            before.restore()
            for page, data in changed.items():
                space.write(page, data)
        finally:
            self._inside = False
        return found


def memory_of(pages: Mapping[int, CachedPage]) -> dict[int, bytes]:
    return {page: held.memory for page, held in pages.items()}


def inverted(data: bytes) -> bytes:
    return bytes(~np.frombuffer(data, np.uint8))


def page_of(before: MemorySnapshot, page: int) -> bytes:
    at = max(start for start in before.pieces if start <= page)
    return before.pieces[at][page - at : page - at + PAGE_SIZE]


def fields_of(cmd: Record) -> frozenset[str]:
    """What a PIPE_CONTROL does; with a depth stall it does nothing of it but wait (G45-SYNC-05, ICL-PC-07). What a generation has no field
    for comes with every one of them."""
    stalled = getattr(cmd, DEPTH_STALL, 0)
    return frozenset(field for field in ALL if getattr(cmd, field, 1) and not (stalled and field != WAIT))


def reading_cache(latched: Mapping[str, Any], page: int) -> str:
    """The field that invalidates the cache through which a page is read: the vertex fetch's for its buffers, else the sampler's."""
    vertices, indices = latched.get("3DSTATE_VERTEX_BUFFERS"), latched.get("3DSTATE_INDEX_BUFFER")
    for held in (*(vertices.vertex_buffer if vertices is not None else ()), *([indices] if indices is not None else [])):
        if held.buffer_starting_address < page + PAGE_SIZE and page < held.buffer_starting_address + held.buffer_size:
            return VERTEX
    constants = (latched.get(f"3DSTATE_CONSTANT_{stage}") for stage in ("VS", "HS", "DS", "GS", "PS"))
    pointers = [int(buffer.pointer) for held in constants if held is not None
                for length, buffer in zip(held.read_length, held.constant_buffer, strict=True) if length.length]  # fmt: skip
    return CONSTANT if any(pointer & -PAGE_SIZE == page for pointer in pointers) else TEXTURE


def check_stale(opener: Opener, engine: str, timed_out: Callable[[], bool] = lambda: False,
                deleted: Callable[[Position, str], bool] = lambda position, field: False) -> list[Finding]:  # fmt: skip
    """The findings of a capture. `deleted`: whether a field of a PIPE_CONTROL is taken as not set; tests plant missing flushes so."""
    replay = StaleReplay(opener, timed_out, deleted)
    dispatcher = replay.run(StaleDispatcher(engine))
    if not dispatcher.doubts:
        return dispatcher.findings
    read = replay.run(ReaderDispatcher(engine, dispatcher.doubts)).read
    return [*dispatcher.findings, *(doubt.finding for doubt in dispatcher.doubts if doubt in read)]


class StaleReplay:
    """Replays of a capture, whose flushes a dispatcher gets to know."""

    def __init__(self, opener: Opener, timed_out: Callable[[], bool], deleted: Callable[[Position, str], bool]) -> None:
        self.opener, self.timed_out, self.deleted = opener, timed_out, deleted
        self.at, self.streamers = NOWHERE, list[Streamer]()

    def position(self) -> Position:
        return Position(self.at.submission, self.streamers[-1].command_number)

    def run(self, dispatcher: DispatcherT) -> DispatcherT:
        trace = self.opener()
        dispatcher.position, dispatcher.reader = self.position, lambda page: reading_cache(self.streamers[-1].latched, page)
        gpu = GpuDevice(trace.device, itertools.count(1).__next__, self.timed_out, dispatcher=dispatcher, drawn=dispatcher.drawn,
                        trace=lambda topic, text: None)  # fmt: skip
        self._watch(gpu, dispatcher)
        for event in events(trace):
            if not isinstance(event, Work):
                continue
            self.at = Position(event.sequence)
            try:
                execution = gpu.begin(event)
                self.streamers[:] = [execution.streamer]
                execution.run_to_end()
            except SoftgenError:
                pass  # reported by the replay without worlds
            dispatcher.flushed()
        return dispatcher

    def _watch(self, gpu: GpuDevice, dispatcher: StaleDispatcher) -> None:
        commands = dict(gpu.interface.commands)

        def pipe_control(cs: Streamer, cmd: Record) -> None:
            commands["PIPE_CONTROL"](cs, cmd)
            given = fields_of(cmd)
            dispatcher.controlled({field for field in given if not self.deleted(self.position(), field)})

        def flush(cs: Streamer, cmd: Record) -> None:
            commands["MI_FLUSH"](cs, cmd)
            dispatcher.flushed()

        gpu.interface = replace(gpu.interface, commands={**commands, "PIPE_CONTROL": pipe_control, "MI_FLUSH": flush})
