"""HandlerServices: the interface of a command streamer for handlers of commands: state, memory, reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from softgen import position
from softgen.bits.generation import Generation
from softgen.bits.layout import Layout
from softgen.command import Counters, StateT
from softgen.errors import GpuFault, SoftgenError, Unsupported
from softgen.memory.space import Space
from softgen.position import Position
from softgen.streamer import rules
from softgen.streamer.context import SavedContext
from softgen.streamer.engine_status import EngineStatusRegisters
from softgen.streamer.interface import DeviceInterface, SubmissionHooks
from softgen.streamer.latch import LatchedState
from softgen.streamer.parser import Command, FetchPointer
from softgen.streamer.prepared import FoundBatch, PreparedStep
from softgen.surface.image import SurfaceImage
from softgen.threads.dispatch import DispatchContext, Place, ThreadDispatch
from softgen.threads.dispatcher_protocol import Dispatcher


class HandlerServices:
    """The part of a Streamer that implements `CommandStreamer` (softgen/command.py), but for registers."""

    generation: Generation
    space: Space
    global_space: Space
    address_mask: int
    device: DeviceInterface
    hooks: SubmissionHooks
    saved: SavedContext
    counters: Counters
    status: EngineStatusRegisters
    place: FetchPointer | None
    process_page: int | None
    engine: str
    rules: str  # which of rules.toml hold
    _work: int  # draws and dispatches that were started
    _executing: Command | PreparedStep | tuple[int, int, int, Layout, list[int]] | None  # the command, or what it is made of
    _found: FoundBatch | None  # the batch of a PreparedStep
    _before: int  # commands of earlier submissions that the counters have
    _before_prepared: int  # commands before those of `_found`
    _read_ahead_is_stale: bool

    def _where(self, command: Command) -> str:
        return f"{command.name} at {command.address:#x} (batch {command.batch:#x}, {self.generation})"

    def where(self) -> list[str]:
        """The words for the command being executed, if there is one."""
        return [self._where(self._current)] if self._current is not None else []

    def _placed(self, error: SoftgenError, command: Command) -> SoftgenError:
        """The same error with the place of a command."""
        where = self._where(command)
        if isinstance(error, GpuFault):
            by = f"{where}, {error.by}" if error.by else where
            placed: SoftgenError = GpuFault(error.address, error.access, error.space, by, error.why)
        else:
            placed = type(error)(f"{where}: {error}")
        placed.names_command = True
        placed.position = position.of(error, Position(None, self.command_number))
        return placed

    def _failed(self, error: SoftgenError) -> None:
        """Raises an error with the place of the command being executed, unless the submitter decides to go on after it."""
        if error.names_command:  # work that pipelines had collected, completed by the command being executed
            raise error
        placed = self._placed(error, self._current) if self._current is not None else error
        if not self.hooks.on_error(placed):
            raise placed from error

    @property
    def command(self) -> Command:
        """The command being executed."""
        assert self._current is not None
        return self._current

    @property
    def _current(self) -> Command | None:
        if isinstance(self._executing, PreparedStep):
            assert self._found is not None
            self.counters.commands = self._before_prepared + self._executing.number + 1  # counted only afterwards
            self._executing = self._found.command(self._executing)
        elif isinstance(self._executing, tuple):
            self._executing = Command(*self._executing)
        return self._executing

    @property
    def command_number(self) -> int:
        """How many commands the submission has executed, with the one being executed: its number in a position (position.py)."""
        if isinstance(self._executing, PreparedStep):
            return self._before_prepared + self._executing.number + 1 - self._before
        return self.counters.commands - self._before

    def latch(self) -> None:
        """Latches the command being executed: what a state command needs of its handler, besides what it does."""
        self.saved.latched.note(self.command)

    @property
    def bases(self) -> Mapping[str, int]:
        """Base addresses that STATE_BASE_ADDRESS set."""
        return self.saved.latched.bases

    @property
    def latched(self) -> LatchedState:
        """State commands as they were latched, by name."""
        return self.saved.latched

    @property
    def system_routine(self) -> int | None:
        """The exception handler of EU threads (STATE_SIP)."""
        found = self.saved.latched.get("STATE_SIP")
        return None if found is None else int(found.system_instruction_pointer)

    def state(self, kind: type[StateT]) -> StateT:
        """A pipeline's part of the hardware context."""
        try:
            found: StateT = self.saved.pipelines[kind]
        except KeyError:
            found = self.saved.state(kind, self.device.pipelines)
        return found

    def warn(self, text: str) -> None:
        """Reports a broken rule of the manual at the command being executed."""
        self.device.warn(f"{self._where(self._current)}: {text}" if self._current is not None else text)

    def _warn_of_rules(self, name: str, command: Command) -> None:
        self.note_work()
        pipeline, unflushed = self.saved.latched.pipeline(), self.saved.unflushed
        for broken in rules.broken(name, command.record, self.rules, self.engine, pipeline, unflushed, self.saved.earlier):
            self.warn(broken)
        if earlier := rules.earlier_fields(name, self.rules):
            self.saved.earlier |= {field for field in earlier if getattr(command.record, field)}

    def note_work(self) -> None:
        """Work that was started since the last call has not been flushed."""
        work = self.counters.draws + self.counters.dispatches
        if work != self._work:
            self._work, self.saved.unflushed, self.saved.earlier = work, True, frozenset()

    def flushed(self) -> None:
        """Nothing is on its way any more: all work that was started is done."""
        self._work, self.saved.unflushed = self.counters.draws + self.counters.dispatches, False

    @property
    def traced(self) -> bool:
        return self.device.trace is not None

    def trace(self, topic: str, text: str) -> None:
        if self.device.trace is not None:
            self.device.trace(topic, text)

    def drawn(self, targets: Sequence[SurfaceImage]) -> None:
        """Reports the render targets that a draw has written to."""
        if self.hooks.drawn is not None:
            self.hooks.drawn(self.space, targets)

    @property
    def reports_targets(self) -> bool:
        """Whether `drawn` has a listener."""
        return self.hooks.drawn is not None

    @property
    def dispatcher(self) -> Dispatcher:
        """Runs thread dispatches."""
        return self.hooks.dispatcher

    def run_threads(self, context: DispatchContext, dispatch: ThreadDispatch) -> None:
        """Runs a thread dispatch, which may change memory, and counts its work."""
        hooks, counters, self._read_ahead_is_stale = self.hooks, self.counters, True
        for threads, instructions in hooks.dispatcher.run(context, dispatch, hooks.timed_out):
            counters.threads += threads
            counters.instructions += instructions

    @property
    def timed_out(self) -> Callable[[], bool]:
        return self.hooks.timed_out

    @property
    def told(self) -> Callable[[Place], None]:
        return self.hooks.told

    def collected(self) -> None:
        """A pipeline has collected work, which `finish_pipelines` completes."""
        self.saved.unfinished = True

    def finish_pipelines(self) -> None:
        """Complete what pipelines have collected but not started: at flushes, switches of pipeline or context, the end of a submission."""
        if not self.saved.unfinished:
            return
        self.saved.unfinished = False
        for finish in self.device.finishers:
            try:
                finish(self)
            except SoftgenError as error:
                self._failed(error)

    def memory_changed(self) -> None:
        """Drops commands that were read ahead."""
        self._read_ahead_is_stale = True

    def memory(self, is_global: object = False) -> Space:
        """The context's space; the global one where a command asks for it, which only a privileged batch may."""
        return self.global_space if is_global and (self.place is None or self.place.privileged) else self.space

    def address(self, canonical: int) -> int:
        return canonical & self.address_mask

    def read(self, address: int, size: int, is_global: object = False) -> bytes:
        return self.memory(is_global).read(self.address(address), size)

    def write(self, address: int, data: bytes, is_global: object = False) -> None:
        """Memory written by a command; what was read ahead is read again."""
        space = self.memory(is_global) if is_global else self.space
        space.write(address & self.address_mask, data)
        self._read_ahead_is_stale = True

    def write_status(self, offset: int, data: bytes, per_process: object) -> None:
        """Into the hardware status page: the engine's, or the context's own. Both stand in the global space."""
        page = self.process_page if per_process else self.status.status_page()
        if not page:
            raise Unsupported(f"no {'per-process ' if per_process else ''}hardware status page is set up")
        self.global_space.write(page + offset, data)
        self.memory_changed()
