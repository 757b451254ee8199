"""ThreadControl: hands EU threads of a dispatch or a draw, where each starts, to whoever wants to step them.

The command runs on a host thread of its own. At the start of an EU thread it asks `wanted`; if so, it waits until the caller of `next`, who
executes the thread's instructions on the interpreter meanwhile, gives it back. All other threads run on the compiling engine.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache

from softgen.bits import catalogue, describe
from softgen.eu import native
from softgen.eu.engine import engine
from softgen.eu.engine_protocol import AffineRange, CompiledFunction, CompilerEngine
from softgen.eu.interpreter import Interpreter, KernelProgram
from softgen.eu.thread.block import BLOCK_OFFSETS
from softgen.lanes.compile import foreground
from softgen.position import Position
from softgen.threads.dispatch import DispatchContext, Finished, ThreadDispatch, TimedOut, never
from softgen.threads.dispatcher import EngineDispatcher
from softgen.threads.dispatcher_protocol import ForwardingDispatcher
from softgen.threads.interpreted import interpreted
from softgen.threads.workers.kept_loop import KeptLoop, LoopLease

Wanted = Callable[["OfferedThread"], bool]


class Abandoned(BaseException):
    """Ends a host thread whose session goes elsewhere. No Exception: nothing on the way may handle it."""


class OfferedThread:
    """An EU thread that may be stepped."""

    def __init__(self, runner: Interpreter, dispatch: ThreadDispatch, context: DispatchContext, position: Position) -> None:
        self.runner, self.dispatch, self.context, self.position = runner, dispatch, context, position

    @property
    def here(self) -> Position:
        """The position of the instruction that it executes next."""
        thread, program = self.runner.thread, self.runner.code
        return replace(self.position, offset=thread.ip - program.start, instructions=thread.executed)


class StoppingEngine:
    """A compiling engine whose code begins only after threads have been offered: they start on the interpreter."""

    name = "stopping"

    def __init__(self, name: str, pixel: tuple[int, int] | None = None) -> None:
        """`pixel`: threads of pixel shaders that have nothing of it run on the engine, without being offered."""
        self._engine: CompilerEngine = engine(name)
        self._pixel = pixel
        self._passing = 0  # the engine's code, which is the same for all kernels

    def function(self, program: KernelProgram, control: int, simd: int, full: bool = True, entry: int | None = None,
                 payload: tuple[AffineRange, ...] = ()) -> CompiledFunction:  # fmt: skip
        found = self._engine.function(program, control, simd, full, entry, payload)
        if entry is not None:
            return found
        stage = pixel_stage(program.gen) if self._pixel is not None else None
        if stage is None or self._passing not in (0, found.address) or not found.program:
            return interpreted()
        if not self._passing:
            self._seek(stage, found.address)
        return CompiledFunction(native.imports()["native_interpret_pixel"], found.program, owner=found.owner, indices=found.indices)

    def _seek(self, stages: tuple[int, int], function: int) -> None:
        assert self._pixel is not None
        (mask, stage), self._passing = stages, function
        native.seek_pixel(native.SoughtPixel(*self._pixel, stage, mask, BLOCK_OFFSETS["sr"], BLOCK_OFFSETS["pixel"], function))

    def ran(self, program: KernelProgram, instructions: int) -> None:
        """Nothing to learn from that."""

    def holds(self, program: KernelProgram, chosen: CompiledFunction) -> bool:
        return True

    def settled(self, chosen: CompiledFunction) -> bool:
        return False

    def yield_to_foreground(self) -> None:
        """Nothing is done in the background."""


class SessionDispatcher(ForwardingDispatcher):
    """Runs dispatches on an engine; while there is a `control`, offers it each thread."""

    def __init__(self, name: str, threads: int | None) -> None:
        super().__init__(EngineDispatcher(name, threads))
        self._name = "t0" if name in ("auto", "reference") else name
        self.control: ThreadControl | None = None
        self._offering: EngineDispatcher | None = None

    engine: EngineDispatcher

    def offer_to(self, control: ThreadControl | None) -> None:
        """Offer the threads of the commands that follow; None: to nobody."""
        self.control = control
        pixel = control.pixel if control is not None else None
        self._offering = EngineDispatcher("stopping", 1, lambda name: StoppingEngine(self._name, pixel)) if control is not None else None
        if self._offering is not None:
            self._offering.strips = False

    @property
    def current(self) -> EngineDispatcher:
        return self._offering or self.engine

    @property
    def threads(self) -> int:
        return self.current.threads

    def run(self, context: DispatchContext, dispatch: ThreadDispatch, timed_out: TimedOut = never) -> Iterable[Finished]:
        return self.current.run(self.watched(context), dispatch, timed_out)

    def watched(self, context: DispatchContext) -> DispatchContext:
        if self.control is None:
            return context
        made = replace(context)
        made.stepper = self.control.stepper(made)
        return made

    def lease(self) -> LoopLease:
        return self.current.lease()

    def prepare(self, context: DispatchContext, dispatch: ThreadDispatch) -> KeptLoop:
        return self.current.prepare(context, dispatch)


class ThreadControl:
    """Threads of one command, offered one after another."""

    def __init__(self, work: Callable[[], bool], wanted: Wanted, stage_of: Callable[[ThreadDispatch], str], command: Position,
                 pixel: tuple[int, int] | None = None) -> None:  # fmt: skip
        """`work` runs the command to its end; `stage_of` names the stage of a dispatch; `pixel`: of pixel shaders, only threads of this one
        are wanted, and others need not be offered."""
        self.pixel = pixel
        self.work, self.wanted, self.stage_of, self.command = work, wanted, stage_of, command
        self.held: OfferedThread | None = None  # by the caller of `next`
        self.error: BaseException | None = None
        self.ended = False
        self.counts: dict[str, int] = {}  # threads of each stage that have started
        self._given_back: bool | None = None
        self._abandoned = False
        self._turn = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="softgen session", daemon=True)

    # -- on the host thread of the command -----------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self.work()
        except Abandoned:
            pass
        except BaseException as error:  # the session raises it
            self.error = error
        with self._turn:
            self.ended, self.held = True, None
            self._turn.notify_all()

    def stepper(self, context: DispatchContext) -> Callable[[Interpreter, ThreadDispatch, int, int], bool | None]:
        """The stepper of an environment: offers threads, and executes those that are wanted when the caller says so."""
        debugged: dict[int, OfferedThread] = {}  # threads that were handed over, by the identity of their interpreters

        def stepped(runner: Interpreter, dispatch: ThreadDispatch, group: int, number: int) -> bool | None:
            if self._abandoned:
                raise Abandoned
            offered = debugged.get(id(runner))
            if not runner.thread.executed:
                offered = OfferedThread(runner, dispatch, context, self._position(dispatch, group, number))
                if self.wanted(offered):
                    debugged[id(runner)] = offered
                else:
                    debugged.pop(id(runner), None)
                    offered = None
            return self._hand_over(offered) if offered is not None else None

        return stepped

    def _position(self, dispatch: ThreadDispatch, group: int, number: int) -> Position:
        """Where a thread is; threads of draws have no groups and are counted as they start."""
        stage = self.stage_of(dispatch)
        if dispatch.patch is None and dispatch.groups == 0:
            group, number = 0, self.counts.get(stage, 0)
        if stage == "ps" and self.pixel is not None:
            number += native.passed()
        self.counts[stage] = self.counts.get(stage, 0) + 1
        return replace(self.command, stage=stage, group=group, thread=number)

    def _hand_over(self, offered: OfferedThread) -> bool | None:
        foreground.leave()  # else kernels that are compiled in the background give way while nothing runs
        with self._turn:
            self.held, self._given_back = offered, None
            self._turn.notify_all()
            self._turn.wait_for(lambda: self.held is None)
            if self._abandoned:
                raise Abandoned
            return self._given_back

    # -- for the session -----------------------------------------------------------------------------------------------

    def next(self, result: bool | None = None) -> OfferedThread | None:
        """Give the held thread back (`result`: of its last instruction, False where it waits; None: it runs on by itself), and wait for
        the next one that is wanted; None: the command has ended."""
        with self._turn:
            if self.held is not None:
                self._given_back, self.held = result, None
                self._turn.notify_all()
            elif not self._thread.is_alive() and not self.ended:
                self._thread.start()
            while self.held is None and not self.ended:
                self._turn.wait()
        if self.error is not None:
            raise self.error
        return self.held

    def abandon(self) -> None:
        """End the command's host thread in the middle of the command; memory stays as it is."""
        with self._turn:
            if self.ended or not self._thread.is_alive() or sys.is_finalizing():
                return
            self._abandoned, self.held = True, None
            self._turn.notify_all()
        if self._thread is not threading.current_thread():  # garbage is collected on any thread
            self._thread.join()


@lru_cache(16)
def pixel_stage(gen: float) -> tuple[int, int] | None:
    """The bits of sr0.0 that name a thread's stage, and what they are for pixel shaders; None where no page says it."""
    layout = catalogue.catalogue().get("EU_STATE_REGISTER", gen)
    if layout is None:
        return None
    field = layout.field("fixed_function_id")
    names = describe.values_of(field.type, gen)
    value = next((value for value, name in names.items() if name == "ps"), None)
    return (field.mask, value << field.low) if value is not None else None


@lru_cache(256)
def fixed_function(gen: float, state: int) -> str:
    """The stage that sr0.0 names; '' where no page says it."""
    layout = catalogue.catalogue().get("EU_STATE_REGISTER", gen)
    if layout is None:
        return ""
    names = describe.values_of(layout.field("fixed_function_id").type, gen)
    found = names.get(layout.raw([state]).fixed_function_id, "none")
    return "" if found == "none" else found
