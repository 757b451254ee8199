"""Commands: how a pipeline registers its handlers, and what a handler may use of the command streamer that calls it.

A pipeline package exports three names (`Pipeline`): `COMMANDS`, its handlers by command name; `new_state()`, its part of a hardware
context; `finish(cs)`, which completes work that its commands have collected but not yet started.

    COMMANDS: Commands = {}
    handles = registers_in(COMMANDS)

    @handles("MEDIA_STATE_FLUSH")
    def media_state_flush(cs: CommandStreamer, cmd: Record) -> None: ...

Such handlers are 3DPRIMITIVE in softgen/three_d/commands.py and GPGPU_WALKER in softgen/gpgpu/commands.py.
This module is below the pipelines, so that none of them imports the streamer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar, overload

from softgen.bits.field import BitField
from softgen.bits.generation import Generation
from softgen.bits.record import Record
from softgen.memory.space import Space

if TYPE_CHECKING:
    from softgen.memory.guard import FaultRecord
    from softgen.surface.image import SurfaceImage
    from softgen.threads.dispatch import DispatchContext, ThreadDispatch
    from softgen.threads.dispatcher_protocol import Dispatcher

StateT = TypeVar("StateT")
HandlerT = TypeVar("HandlerT")
Handler = Callable[["CommandStreamer", Record], None]
Commands = dict[str, Handler]
Drawn = Callable[[Space, "Sequence[SurfaceImage]"], None]  # called with a space and the render targets in it that a draw has written


@dataclass(frozen=True, slots=True)
class VideoWork:
    """Work of the video engine: an immutable value, so that copies of counters keep theirs."""

    pictures: dict[str, int] = field(default_factory=dict)  # by standard; those that were encoded apart
    concealed: int = 0  # blocks
    seconds: float = field(default=0.0, compare=False)  # in its C code

    def __add__(self, other: VideoWork) -> VideoWork:
        if other is NO_VIDEO:
            return self
        pictures = {name: self.pictures.get(name, 0) + other.pictures.get(name, 0) for name in {**self.pictures, **other.pictures}}
        return VideoWork(pictures, self.concealed + other.concealed, self.seconds + other.seconds)

    def __sub__(self, other: VideoWork) -> VideoWork:
        """What was done after `other`."""
        if self is other:
            return NO_VIDEO
        pictures = {name: count - other.pictures.get(name, 0) for name, count in self.pictures.items()}
        return VideoWork(pictures, self.concealed - other.concealed, self.seconds - other.seconds)


NO_VIDEO = VideoWork()


@dataclass
class Counters:
    """Work done so far, by kind."""

    batches: int = 0
    commands: int = 0
    draws: int = 0
    dispatches: int = 0
    threads: int = 0
    instructions: int = 0
    video: VideoWork = NO_VIDEO

    def add(self, done: Counters) -> None:
        """Count work that was done elsewhere."""
        self.batches += done.batches
        self.commands += done.commands
        self.draws += done.draws
        self.dispatches += done.dispatches
        self.threads += done.threads
        self.instructions += done.instructions
        self.video += done.video

    def since(self, before: Counters) -> Counters:
        """What was done after `before`."""
        return Counters(*(now - then for now, then in zip(vars(self).values(), vars(before).values(), strict=True)))


class Latched(Protocol):
    """State commands as they were latched, by name (streamer/latch.py)."""

    def __getitem__(self, name: str, /) -> Record: ...

    def __contains__(self, name: object, /) -> bool: ...

    @overload
    def get(self, name: str, /) -> Record | None: ...

    @overload
    def get(self, name: str, default: Record, /) -> Record: ...

    def by_index(self, name: str) -> dict[int, Record]:
        """The parts of a command that merges by an index: elements of its group, or the commands themselves."""
        ...


class SlotPlace(NamedTuple):
    """Where latches.h has a command: its slot, and dwords counted from the first slot on; of elements by index, those alone."""

    slot: int
    latched: bool
    offset: int
    size: int  # dwords in use
    length: int  # as latches.h has it; 0 if it does not matter
    present: int
    item_size: int


class MarkedLatched(ABC):
    """Latched commands that say which of them were latched since, and where C code finds them."""

    latches: int  # how often any was latched: none was in between where it is the same

    @property
    @abstractmethod
    def address(self) -> int:
        """Host address of struct latches (latches.h)."""

    @property
    @abstractmethod
    def slots(self) -> int:
        """How many slots there are: those of commands that were met so far."""

    @abstractmethod
    def place(self, name: str) -> SlotPlace | None:
        """Where a command is; None if it was never met."""

    @abstractmethod
    def latched_count(self, name: str) -> int:
        """How often a command was latched."""

    @abstractmethod
    def raw(self, offset: int, count: int) -> list[int]:
        """Dwords of slots."""

    @abstractmethod
    def marks(self) -> bytes:
        """How often each command has been latched; equal marks mean that none was in between."""

    @abstractmethod
    def changed(self, before: bytes, after: bytes) -> list[str]:
        """Commands that were latched between two marks."""


@dataclass
class ConstantUrbEntry:
    """The constant URB entry as CONSTANT_BUFFER loaded it: the part of a hardware context that the 3D and media pipelines share."""

    data: bytes | None = None  # None: none is valid


class CommandStreamer(Protocol):
    """The command streamer as handlers of pipeline commands see it."""

    engine: str
    space: Space  # of the context
    counters: Counters
    earlier_draws: int  # of submissions before this one, which `counters` has too

    @property
    def dispatcher(self) -> Dispatcher:
        """Runs thread dispatches."""
        ...

    def run_threads(self, context: DispatchContext, dispatch: ThreadDispatch) -> None:
        """Runs a thread dispatch, which may change memory, and counts its work."""
        ...

    @property
    def generation(self) -> Generation: ...

    @property
    def bases(self) -> Mapping[str, int]:
        """Base addresses that STATE_BASE_ADDRESS set, by short name: general, surface, dynamic, instruction, indirect, bindless."""
        ...

    @property
    def latched(self) -> Latched:
        """State commands as they were latched, by name."""
        ...

    def latch(self) -> None:
        """Latches the command being executed: what a state command needs of its handler, besides what it does."""
        ...

    @property
    def system_routine(self) -> int | None:
        """Offset of the system routine from the instruction base, as STATE_SIP set it."""
        ...

    @property
    def elapsed(self) -> int:
        """Instructions that threads of the context have executed."""
        ...

    def state(self, kind: type[StateT]) -> StateT:
        """A pipeline's part of the hardware context, by the class that its `new_state()` makes; or what several share, by its class."""
        ...

    def get(self, name: str, number: int = 0) -> int:
        """The value of one of the engine's registers, by name."""
        ...

    def set(self, name: str, value: int, number: int = 0) -> None:
        """Write one of the engine's registers, by name."""
        ...

    def add(self, name: str, count: int) -> None:
        """Advance a statistics register, by name."""
        ...

    def count(self, names: tuple[str, ...], counts: Sequence[int]) -> None:
        """Advance several statistics registers; the same ones each time."""
        ...

    def predicate(self) -> bool:
        """MI_PREDICATE_RESULT: whether predicated work happens."""
        ...

    def warn(self, text: str) -> None:
        """Reports a broken rule of the manual at the command being executed; execution goes on."""
        ...

    @property
    def traced(self) -> bool:
        """Whether progress is reported at all."""
        ...

    def trace(self, topic: str, text: str) -> None:
        """Reports progress on a topic of `--trace`."""
        ...

    def drawn(self, targets: Sequence[SurfaceImage]) -> None:
        """Reports the render targets that a draw, clear or resolve has written to, in the order of their numbers."""
        ...

    def timed_out(self) -> bool:
        """Whether the submission's time limit has passed."""
        ...

    def told(self, place: Callable[[], str]) -> None:
        """Where threads are: said each time before they look at the time limit."""
        ...

    def collected(self) -> None:
        """A pipeline has collected work that its `finish` has to complete."""
        ...

    def memory_changed(self) -> None:
        """Drops commands that were read ahead: memory may have changed."""
        ...

    @property
    def reports_targets(self) -> bool:
        """Whether somebody sees the render targets of each draw."""
        ...


class FieldPlace(NamedTuple):
    """Where the bits of a command's field are in a batch that is read as one number: batch >> shift & mask is the field, as a record has
    it."""

    shift: int
    mask: int

    @classmethod
    def of(cls, field: BitField, offset: int = 0) -> FieldPlace:
        """A field in one piece, of a command that begins at a bit."""
        shift = offset + field.low - field.alignment
        if shift < 0:
            raise LookupError(f"{field.name}: there are no {field.alignment} bits below it")
        return cls(shift, (1 << field.width) - 1 << field.alignment)


# A command of a batch that comes again (streamer/prepared.py), decoded once: called with the streamer and the batch as one number.
PreparedCommand = Callable[["CommandStreamer", int], None]
# Pipelines have collected nothing when it is called, and their states are those of the streamer that it was prepared with.
# What prepares a command: called with the streamer, the command's record, and a function that finds the place of a field by name. Fields
# that it asks for may differ when the batch comes again; all others are the same then. None: its handler always executes this command.
Preparer = Callable[["CommandStreamer", Record, Callable[[str], FieldPlace]], PreparedCommand | None]
Preparers = dict[str, Preparer]


class Actor(Protocol):
    """Compiled code that executes a command in a walk over a batch (streamer/walk.py, walk.h)."""

    @property
    def collects(self) -> bool:
        """Whether it may collect work, which `settle` starts: only commands with such actors come between."""
        ...

    def enter(self, cs: CommandStreamer) -> tuple[int, int] | None:
        """Before it executes any command in a walk: the addresses of its function and state; None where Python has to execute the next
        one. Whatever only Python changes is looked at here."""
        ...

    def leave(self, cs: CommandStreamer) -> None:
        """Count what was done since `enter`."""
        ...

    def go_on(self, cs: CommandStreamer, cmd: Record, fault: FaultRecord | None) -> None:
        """Complete the command that needs Python, or was left at an access to memory that is not mapped; after `leave`."""
        ...

    def settle(self, cs: CommandStreamer) -> None:
        """After `leave` and `go_on`: no command is under way."""
        ...


def on_all(generation: Generation) -> bool:
    """An actor for every generation."""
    return True


class ActorRow(NamedTuple):
    """The actor of a command: the handler that it stands for, and what finds it in a context; None: Python executes the next command.
    `acts`: the generations that it is for."""

    handler: Handler
    find: Callable[[CommandStreamer], Actor | None]
    acts: Callable[[Generation], bool] = on_all


Actors = dict[str, ActorRow]  # by command name


class Pipeline(Protocol):
    """What the device needs of a pipeline package."""

    @property
    def COMMANDS(self) -> Mapping[str, Handler]: ...

    def new_state(self) -> object:
        """The pipeline's part of a new hardware context."""
        ...

    def finish(self, cs: CommandStreamer) -> None:
        """Completes outstanding work, as the hardware does at flushes, switches of pipeline or context, and the end of a submission."""
        ...


def nothing_collected(cs: CommandStreamer) -> None:
    """The `finish` of a pipeline whose work is complete when its command is done."""


def registers_in(table: dict[str, HandlerT]) -> Callable[..., Callable[[HandlerT], HandlerT]]:
    """A decorator factory: `@handles("NAME", …)` puts a handler into `table` under each name."""

    def handles(*names: str) -> Callable[[HandlerT], HandlerT]:
        def register(handler: HandlerT) -> HandlerT:
            table.update(dict.fromkeys(names, handler))
            return handler

        return register

    return handles
