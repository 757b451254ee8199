"""CaptureExecution: a capture executed on a device of its own, up to any command.

It only goes forward: who wants to go back begins another one. Errors of a submission end that submission, as in a replay.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

from softgen.device.execution import EngineExecution
from softgen.device.gpu import GpuDevice
from softgen.errors import GpuFault, SoftgenError
from softgen.inspect.session.control import SessionDispatcher, ThreadControl, Wanted, fixed_function
from softgen.memory.space import Space
from softgen.position import Position
from softgen.streamer.execute import Streamer
from softgen.streamer.interface import Parked, Wait
from softgen.surface.image import SurfaceImage
from softgen.threads.dispatch import ThreadDispatch
from softgen.three_d.state.state import DrawState
from softgen.three_d.state.unit_state import unit_state
from softgen.trace.replay import events
from softgen.trace.work import Expectation, Work, WorkTrace

PAUSED = Wait("the session is here")
BLOCK_STAGES = ("VS", "GS", "CLIP", "SF", "PS")  # of generations whose stages read their state from blocks
Drawn = Callable[[Position, Space, Sequence[SurfaceImage]], None]


class CaptureExecution:
    """One run of a capture. `position` is the command that is executed next; None: the capture has ended."""

    def __init__(self, trace: WorkTrace, engine: str = "auto", threads: int | None = None, drawn: Drawn | None = None,
                 dispatcher: SessionDispatcher | None = None, edit: Callable[[Work], None] = lambda work: None) -> None:  # fmt: skip
        self.trace, self.device = trace, trace.device
        self.dispatcher = dispatcher or SessionDispatcher(engine, threads)
        self._drawn, self._edit = drawn, edit
        self.gpu = GpuDevice(trace.device, itertools.count(1).__next__, dispatcher=self.dispatcher, trace=self._traced, drawn=self._report)
        self._events: Iterator[Work | Expectation] = iter(events(trace))
        self.work: Work | None = None
        self._execution: EngineExecution | None = None
        self._pause_at: int | None = None  # the command of the submission under way to stop before
        self._resume_at = 0  # the command that is paused at, which is let through
        self.errors: list[tuple[int, SoftgenError]] = []  # by submission
        self.targets: Sequence[SurfaceImage] = ()  # of the last draw
        self.control: ThreadControl | None = None
        self._next_submission()

    # -- where it is ---------------------------------------------------------------------------------------------------

    @property
    def position(self) -> Position | None:
        if self.work is None:
            return None
        return Position(self.work.sequence, self._number)

    @property
    def _number(self) -> int:
        return self._execution.counters.commands + 1 if self._execution is not None else 1

    @property
    def streamer(self) -> Streamer:
        if self._execution is None:
            raise SoftgenError("the capture has ended: there is no state of a command streamer any more")
        return self._execution.streamer

    @property
    def space(self) -> Space:
        return self.streamer.space

    # -- going forward -------------------------------------------------------------------------------------------------

    def run_to(self, submission: int, command: int = 1) -> bool:
        """Execute everything before a command; False: the capture ends before it, or the submission does."""
        while self.work is not None and self.work.sequence != submission:
            self.finish_submission()
        if self.work is None:
            return False
        return self._number >= command or self._run_before(command)

    def finish_submission(self) -> None:
        """Execute the submission under way to its end."""
        self._pause_at = None
        self._run()
        self._next_submission()

    def run_to_end(self) -> None:
        while self.work is not None:
            self.finish_submission()

    def finish_command(self) -> None:
        """Execute the next command alone."""
        self._run_before(self._number + 1)

    def _run_before(self, command: int) -> bool:
        """Whether the command was reached: it is not where the submission ends before."""
        self._pause_at = command
        ended = self._run()
        if ended:
            self._next_submission()
        return not ended

    def _run(self) -> bool:
        """Run the submission under way to the pause or to its end; True: to its end."""
        execution, work = self._execution, self.work
        assert execution is not None and work is not None
        self._resume_at = self._number
        try:
            if execution.run():
                return True
            if execution.streamer.waiting is not None and execution.streamer.waiting.text != PAUSED.text:
                raise execution.stuck()
            return False
        except SoftgenError as error:
            self.errors.append((work.sequence, error))
            return True

    def _next_submission(self) -> None:
        self.work = self._execution = None
        for event in self._events:
            if isinstance(event, Work):
                self._edit(event)
                self.work, self._execution = event, self.gpu.begin(event)
                return

    def _traced(self, topic: str, text: str) -> None:
        """Called before each command, which is counted already."""
        if topic != "commands" or self._execution is None or self._pause_at is None:
            return
        number = self._execution.counters.commands
        if number >= self._pause_at and number != self._resume_at:
            raise Parked(PAUSED)

    def _report(self, space: Space, targets: Sequence[SurfaceImage]) -> None:
        self.targets = tuple(targets)
        if self._drawn is not None and self.work is not None and self._execution is not None:
            self._drawn(Position(self.work.sequence, self._execution.counters.commands), space, targets)

    # -- threads -------------------------------------------------------------------------------------------------------

    def offer_threads(self, wanted: Wanted, pixel: tuple[int, int] | None = None) -> ThreadControl:
        """Execute the next command on a host thread that offers the command's EU threads; `pixel`: of pixel shaders those of one pixel."""
        if self.work is None:
            raise SoftgenError("the capture has ended: there are no threads")
        self.end_control()
        control = ThreadControl(self._run_command, wanted, self.stage_of, Position(self.work.sequence, self._number), pixel)
        self.control = control
        self.dispatcher.offer_to(control)
        return control

    def _run_command(self) -> bool:
        number = self._number
        return self._run_before(number + 1)

    def end_control(self) -> None:
        """Leave a command whose threads were offered; where it has not ended, the device is of no use any more."""
        if self.control is not None:
            self.control.abandon()
            self.control = None
            self.dispatcher.offer_to(None)

    def stage_of(self, dispatch: ThreadDispatch) -> str:
        """The stage of a dispatch, as positions have it."""
        if self.streamer.saved.latched.pipeline() in ("media", "gpgpu") and dispatch.groups:
            return "cs" if dispatch.patch is not None else "media"
        named = fixed_function(self.device.generation.number, dispatch.thread_state)
        return named or self._block_stages().get(dispatch.kernel, "ps")

    def _block_stages(self) -> dict[int, str]:
        """Kernels of stages that read their state from blocks."""
        found: dict[int, str] = {}
        for stage in BLOCK_STAGES:
            try:
                unit = unit_state(DrawState.of(self.streamer), stage)
            except (GpuFault, KeyError, AttributeError, SoftgenError):
                continue
            pointer = getattr(unit, "kernel_start_pointer", getattr(unit, "kernel_start_pointer_0", None))
            if pointer is not None:
                found.setdefault(int(pointer), stage.lower())
        return found
