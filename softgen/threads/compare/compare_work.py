"""A draw on two engines: all of it, or sampled tiles, and the place of the first difference.

Both engines start from the same memory. A difference is narrowed down to the pixel's tile, then to the object after which memory differs,
then to the instruction that stored there on the interpreter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Generic

from softgen.errors import SoftgenError
from softgen.memory.space import Space
from softgen.threads.compare.selection import PixelPlace, TileSelection, WorkNames
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
from softgen.threads.dispatch import DispatchContext, ResultT
from softgen.threads.dispatcher import EngineDispatcher

Pages = dict[int, bytes]
Stepped = Callable[[Callable[[], str]], None]


class WorkComparison(Generic[ResultT]):
    """One unit of work, run on two engines from the same memory."""

    def __init__(self, both: tuple[EngineDispatcher, EngineDispatcher], space: Space, work: Callable[[], ResultT],
                 names: WorkNames) -> None:  # fmt: skip
        self.both, self.space, self.work, self.names = both, space, work, names
        self.engines = [dispatcher.name for dispatcher in both]
        self.current = both[0]
        self.selection: TileSelection | None = None
        self._stepped: Stepped | None = None
        self._before = MemorySnapshot(space)

    def watched(self, context: DispatchContext) -> DispatchContext:
        """The environment of dispatches while instructions are watched."""
        return replace(context, stepped=self._stepped) if self._stepped is not None else context

    def run(self, selection: TileSelection | None) -> ResultT:
        """Compare the selected tiles, or everything; memory is left as by the whole work on the first engine."""
        first, second = (self._on(dispatcher, selection)[0] for dispatcher in self.both)
        self._check(first, second)
        result, done = self._on(self.both[0], None)
        if result.error is not None:
            raise result.error
        assert done is not None
        return done

    def _on(self, dispatcher: EngineDispatcher, selection: TileSelection | None) -> tuple[EngineResult, ResultT | None]:
        """Run on an engine from the snapshot; memory stays as the run leaves it."""
        self._before.restore()
        self.current, self.selection, done, error = dispatcher, selection, None, None
        try:
            done = self.work()
        except SoftgenError as raised:
            error = raised
        return EngineResult((), error, self._before.changed()), done

    def _check(self, first: EngineResult, second: EngineResult) -> None:
        title = f"{self.engines[0]} and {self.engines[1]} differ: {self.names.title}"
        if (page := first_page(first, second)) is not None:
            found = self._pages(first, second)
            address = first_address(*found) or page
            where = self._narrow(address)
            raise EngineDifference(f"{title}{where}: {values_text(self.engines, address, list(found))}")
        texts = [error_text(result.error) or "no error" for result in (first, second)]
        if texts[0] != texts[1]:
            raise EngineDifference(f"{title}: {self.engines[0]} says {texts[0]!r}, {self.engines[1]} says {texts[1]!r}")

    def _pages(self, first: EngineResult, second: EngineResult) -> tuple[Pages, Pages]:
        """All pages that either run changed, as both left them."""
        self._before.restore()
        old = PageSnapshot(self.space, {*first.pages, *second.pages}).held
        return {**old, **first.pages}, {**old, **second.pages}

    # -- places --------------------------------------------------------------------------------------------------------

    def _narrow(self, address: int) -> str:
        """The pixel, the object and the instruction of a difference, as far as each can be found."""
        pixel = self.names.pixel(address)
        if pixel is None:
            return ""
        objects = self._object(pixel, address)
        if objects is None:
            return f", {pixel.text}"
        stored = self._store(TileSelection(tile=pixel.tile, objects=objects), address)
        return f", {pixel.text}, object {objects - 1} of its tile" + (f", stored by {stored}" if stored else "")

    def _object(self, pixel: PixelPlace, address: int) -> int | None:
        """Objects of the tile that must be drawn for a difference at an address; None if its tile alone shows none."""
        whole = TileSelection(tile=pixel.tile)
        if not self._differs(whole, address):
            return None
        enough, few = whole.objects_seen, 0  # the first numbers of objects with and without a difference
        while enough - few > 1:
            half = (enough + few) // 2
            if self._differs(TileSelection(tile=pixel.tile, objects=half), address):
                enough = half
            else:
                few = half
        return enough

    def _differs(self, selection: TileSelection, address: int) -> bool:
        values = []
        for dispatcher in self.both:
            self._on(dispatcher, selection)
            values.append(self.space.read(address, 4))
        return values[0] != values[1]

    def _store(self, selection: TileSelection, address: int) -> str:
        """The instruction that changes an address last when the interpreter runs the selected tiles; '' if it is none of theirs."""
        self._before.restore()
        held, last = self.space.read(address, 4), ""

        def stepped(name: Callable[[], str]) -> None:
            nonlocal held, last
            if (now := self.space.read(address, 4)) != held:
                held, last = now, name()

        self._stepped = stepped
        try:
            self._on(EngineDispatcher(), selection)
        finally:
            self._stepped = None
        return last
