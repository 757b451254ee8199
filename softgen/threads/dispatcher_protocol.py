"""The Dispatcher protocol: what pipelines ask of whatever runs their thread dispatches."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol

from softgen.memory.space import Space
from softgen.threads.dispatch import DispatchContext, Finished, ResultT, ThreadDispatch, TimedOut, never

if TYPE_CHECKING:
    from softgen.threads.compare.selection import TileSelection, WorkNames
    from softgen.threads.workers.kept_loop import KeptLoop, LoopLease


class Dispatcher(Protocol):
    """Runs thread dispatches."""

    def run(self, context: DispatchContext, dispatch: ThreadDispatch, timed_out: TimedOut = never) -> Iterable[Finished]:
        """All groups of a dispatch, with counts as the work goes on. Raises GpuFault and Unsupported with their place."""
        ...

    prepares: bool  # may be asked for workers:

    fills: bool  # rectangles of one colour may be filled from one thread of a draw: none of the others is counted or watched

    def prepare(self, context: DispatchContext, dispatch: ThreadDispatch) -> KeptLoop:
        """A worker of its own for a loop on the calling thread, which the caller runs over and over."""
        ...

    def lease(self) -> LoopLease:
        """Workers for the loops of one draw; they go back when it is over."""
        ...

    def watched(self, context: DispatchContext) -> DispatchContext:
        """The environment of dispatches, with what is to be called after each instruction."""
        ...

    def whole(self, space: Space, work: Callable[[], ResultT], names: WorkNames) -> ResultT:
        """Calls `work`, which runs several dispatches that belong together, such as those of a draw."""
        ...

    def count_memory(self, charge: Callable[[int], None]) -> None:
        """Calls `charge` from now on with bytes of memory that are taken for programs, or negative, given back."""
        ...

    def retire(self) -> None:
        """Lets go of what is kept for later dispatches: there will be none. Statistics stay."""
        ...

    @property
    def selection(self) -> TileSelection | None:
        """The tiles of a draw that are shaded; None: all."""
        ...

    @property
    def reserved(self) -> int:
        """Each byte of what is reserved or undefined in payloads, as far as its bits are (world.py)."""
        ...

    @property
    def threads(self) -> int:
        """Host threads that it uses: as many loops are worth while."""
        ...


class ForwardingDispatcher:
    """Part of a dispatcher that hands dispatches on to an engine, unless it watches their threads itself."""

    prepares = fills = False  # threads of any draw may be watched

    def __init__(self, engine: Dispatcher) -> None:
        self.engine = engine

    def whole(self, space: Space, work: Callable[[], ResultT], names: WorkNames) -> ResultT:
        return work()

    def count_memory(self, charge: Callable[[int], None]) -> None:
        self.engine.count_memory(charge)

    def retire(self) -> None:
        self.engine.retire()

    @property
    def selection(self) -> TileSelection | None:
        return None

    @property
    def reserved(self) -> int:
        return self.engine.reserved
