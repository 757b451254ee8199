"""What a command streamer uses of the device it belongs to and of who submitted the work; handlers of the streamer's own commands.

`DeviceInterface` is the same for all streamers of a device, `SubmissionHooks` belongs to one submission.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from softgen.bits.generation import Generation
from softgen.command import Actors, Drawn, FieldPlace, Pipeline, Preparer, nothing_collected
from softgen.errors import SoftgenError
from softgen.streamer.context import SavedContext
from softgen.streamer.parser import Command
from softgen.threads.dispatch import Place, told_nobody
from softgen.threads.dispatcher import EngineDispatcher
from softgen.threads.dispatcher_protocol import Dispatcher

if TYPE_CHECKING:
    from softgen.bits.record import Record

# Handlers of MI commands take the whole Streamer; pipelines' handlers (softgen/command.py) take the protocol that it implements.
StreamerHandler = Callable[[Any, "Record"], None]
StreamerCommands = dict[str, StreamerHandler]
StreamerPreparers = dict[str, Callable[[Any, "Record", Callable[[str], FieldPlace]], Callable[[Any, int], None] | None]]


class RegisterFile(Protocol):
    """Registers by absolute offset."""

    def read(self, offset: int) -> int: ...
    def write(self, offset: int, value: int) -> None: ...
    def save(self, offsets: Iterable[int]) -> dict[int, int]:
        """The values of a context's registers, when it is switched out."""
        ...

    def restore(self, saved: dict[int, int]) -> dict[int, int]:
        """Loads a context's registers; those it has not saved keep their values. Answers what is to be saved with it from now on."""
        ...


class SharedRegisterFile(RegisterFile, Protocol):
    """The registers of a device, which its engines write as well as commands do."""

    def write_plain(self, offsets: tuple[int, ...], values: tuple[int, ...]) -> None:
        """Write dwords to registers that keep what is written; there may be more dwords than registers."""
        ...

    def raise_error(self, offset: int, value: int) -> None: ...


class EngineWatchdog(Protocol):
    """The watchdog of an engine, which sees every command while it runs."""

    since: int | None  # None: it does not run

    def poll(self) -> None: ...


class PositionOnly(Protocol):
    """The position-only streamer's part of a context, as the render engine's sees it."""

    @property
    def in_batch(self) -> bool:
        """Whether it is in the middle of a batch that it executes."""
        ...


@dataclass(frozen=True)
class DeviceInterface:
    """The parts of a device that its command streamers use."""

    generation: Generation
    commands: Mapping[str, StreamerHandler]
    pipelines: tuple[Pipeline, ...]
    registers: SharedRegisterFile
    clock: Callable[[], int]  # ticks of TIMESTAMP
    interrupt: Callable[[int, str], None]  # the engine at `base` raises one
    signal: Callable[[str, int], None]  # MI_SEMAPHORE_SIGNAL
    update_table: Callable[[int, list[int]], None] | None  # MI_UPDATE_GTT: address of the first page, entries
    warn: Callable[[str], None]  # a rule of the manual that software broke
    watchdogs: Mapping[int, EngineWatchdog]  # by where the engine's registers start
    saved_context: Callable[[int, str], SavedContext] | None  # MI_SET_CONTEXT: the context whose image is at an address
    slices: int
    trace: Callable[[str, str], None] | None  # called with a topic and a line of text
    prepared: Mapping[str, Preparer]  # what prepares commands of batches that come again, by command name
    actors: Actors = field(default_factory=dict)  # of commands that walks execute (walk.py)
    simple: dict[str, Any] = field(default_factory=dict)  # simple commands of each engine (command_kinds.py), made when one is first used

    @cached_property
    def finishers(self) -> tuple[Callable[[Any], None], ...]:
        """What completes the work that pipelines have collected, of those that collect any."""
        return tuple(pipeline.finish for pipeline in self.pipelines if pipeline.finish is not nothing_collected)


@dataclass(frozen=True)
class SubmissionHooks:
    """What the submitter of work decides while it runs."""

    timed_out: Callable[[], bool] = lambda: False
    on_error: Callable[[SoftgenError], bool] = lambda error: False  # True: go on after the command that failed
    dispatcher: Dispatcher = field(default_factory=EngineDispatcher)  # runs thread dispatches
    drawn: Drawn | None = None
    completed: Callable[[], None] = lambda: None  # called where only the end of a prepared batch is left: memory will not change
    told: Callable[[Place], None] = told_nobody  # where threads are, each time before the time limit is looked at
    ordered: Callable[[], bool] = lambda: False  # whether `timed_out` is polled before each command that writes to memory


@dataclass(frozen=True)
class Wait:
    """The condition that a parked command waits for."""

    text: str
    on_signal: bool = False  # only evaluated again after a signal
    command: Command | None = None
    address: int | None = None  # in the context's space, where it waits for memory there


class Parked(Exception):
    """Raised by a command that cannot complete now."""

    def __init__(self, wait: Wait) -> None:
        super().__init__(wait.text)
        self.wait = wait
