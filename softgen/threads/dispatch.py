"""The record of a thread dispatch, and what dispatches need around them.

A pipeline fills in a ThreadDispatch; a Dispatcher runs it. Nothing here knows which pipeline asks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from softgen.bits import catalogue, describe
from softgen.bits.generation import Generation
from softgen.bits.layout import Layout
from softgen.bits.units import GRF_COUNT
from softgen.errors import Unsupported
from softgen.memory.space import Space
from softgen.threads.payload import (
    FULL,
    HeaderPatch,
    LoopPayload,
    Masks,
    Payload,
    PayloadList,
    PayloadWriter,
    ThreadMasks,
    WrittenMasks,
    patched,
)

if TYPE_CHECKING:
    from softgen.eu.interpreter import Interpreter
    from softgen.shared_functions.unit import UnitStates

UNITS = ("data port", "gateway", "spawner", "sampler", "urb", "extended math")
UNLIMITED = 1 << 16
KIB = 1024

ResultT = TypeVar("ResultT")
TimedOut = Callable[[], bool]  # whether the submission's time limit has passed
Place = Callable[[], str]  # the words for a thread and its instruction
# Executes instructions of a thread, given with its dispatch, group and number: False where it waits; None: it is to run as any other.
Stepper = Callable[["Interpreter", "ThreadDispatch", int, int], bool | None]


def never() -> bool:
    """No time limit."""
    return False


def told_nobody(place: Place) -> None:
    """Nobody wants to know where threads are."""


@dataclass(eq=False)
class DispatchContext:
    """The environment of a dispatch: generation, address space and base addresses."""

    generation: Generation
    space: Space
    bases: Mapping[str, int]
    warn: Callable[[str], None] = lambda text: None  # reports broken rules; execution goes on
    system_routine: int | None = None  # offset from the instruction base (STATE_SIP)
    stepped: Callable[[Callable[[], str]], None] | None = None  # called after each instruction on the interpreter, with what names it
    stepper: Stepper | None = None  # asked where a thread starts, and instead of each of its instructions on the interpreter
    elapsed: int = 0  # instructions of earlier dispatches: where the time stamps of threads (tm0) start
    unit_states: UnitStates = ()  # of the context, for every dispatch
    told: Callable[[Place], None] = told_nobody  # where threads are, each time before the time limit is looked at

    def again(self, warn: Callable[[str], None], elapsed: int) -> DispatchContext:
        """Copy of the environment for a later dispatch."""
        made = object.__new__(DispatchContext)
        made.__dict__.update(self.__dict__, warn=warn, elapsed=elapsed)
        return made

    def layout(self, name: str) -> Layout:
        return catalogue.layout(name, self.generation.number)

    def address(self, base: str, offset: int) -> int:
        """An address relative to a base. Commands may hold canonical addresses; inside softgen they have only the space's bits."""
        return self.bases.get(base, 0) + offset & (1 << self.space.bits) - 1


@dataclass(frozen=True)
class Scratch:
    """Scratch space: `size` bytes for each of `threads` threads from `base` on, relative to the general state base."""

    base: int
    size: int
    threads: int

    @property
    def code(self) -> int:
        """The size as thread and message headers have it, of every stage on every generation: the least power of two KiB that holds it
        (KBL 16394-16401). State commands count otherwise: MEDIA_VFE_STATE in KiB on Gen7, from 2 KiB on Gen7.5."""
        return (max(self.size - 1, 0) // KIB).bit_length()


def size_code(scratch: Scratch | None) -> int:
    """The code of scratch space in headers; 0 where a thread has none."""
    return scratch.code if scratch is not None else 0


@dataclass(frozen=True)
class ThreadDispatch:
    """Threads of one program: `groups` groups of `threads` threads. Threads of a group share barrier and local memory."""

    kernel: int  # offset of the program from the instruction base
    control: tuple[int, ...]  # cr0 of a thread that starts, from cr0.0 on
    simd: int  # channels of a thread
    threads: int
    groups: int
    payload: Payload
    masks: Masks = FULL
    patch: HeaderPatch | None = None
    binding_table: int = 0  # offset from the surface state base
    samplers: int = 0  # offset from the dynamic state base
    scratch: Scratch | None = None
    local_bytes: int = 0
    barrier: bool = True  # there is one; without it and local memory, threads of a group may be divided among host threads
    units: tuple[str, ...] = UNITS  # shared functions that answer messages
    system_routine: int | None = None  # offset of the exception handler from the instruction base
    unit_states: UnitStates = ()
    thread_state: int = 0  # sr0.0 of a thread that starts: its fixed function, and the class of its priority
    stage: str = "cs"  # the name that positions have for it (position.py)
    kind: object = field(default=None, repr=False, compare=False)  # the same object in records that `again` makes

    def __post_init__(self) -> None:
        assert self.registers <= GRF_COUNT, f"a payload of {self.registers} registers: its stage has not checked it"

    def again(self, header: bytes, data: bytes, binding_table: int) -> ThreadDispatch:
        """Copy of the dispatch with other data in its TemplatePayload, and its binding table elsewhere."""
        payload: Any = self.payload
        made = object.__new__(ThreadDispatch)  # replace() would take longer than most short dispatches do
        made.__dict__.update(self.__dict__, payload=payload.again(header, data), binding_table=binding_table)
        return made

    @property
    def registers(self) -> int:
        """Registers of the longest payload."""
        return self.payload.registers

    @property
    def full(self) -> bool:
        """Whether all channels of all threads are on."""
        return self.masks == FULL

    @property
    def concurrent_groups(self) -> int:
        """Groups that may run at the same time: each of their threads needs scratch space of its own (BDW 22582-22611)."""
        if self.scratch is None or not self.scratch.size:
            return UNLIMITED
        return max(self.scratch.threads // self.threads, 1)

    @cached_property
    def all_channels(self) -> int:
        return (1 << self.simd) - 1

    def group_size(self, group: int) -> int:
        """Threads of a group: the last one of a PayloadWriter may have fewer."""
        if isinstance(self.payload, PayloadWriter) and self.payload.count is not None:
            return min(self.threads, self.payload.count - group * self.threads)
        return self.threads

    def mask(self, number: int, group: int = 0) -> int:
        """The dispatch mask of a thread, by its number in the group."""
        if isinstance(self.masks, ThreadMasks):
            return self.masks.masks[number]
        if isinstance(self.masks, WrittenMasks) and isinstance(self.payload, PayloadWriter):
            return self.payload.written(group * self.threads + number)[1]
        return self.all_channels

    def start_registers(self, group: int, number: int, first_slot: int = 0) -> bytes:
        """The payload of a thread. `first_slot` threads have lower slots: those of other workers."""
        if isinstance(self.payload, LoopPayload):
            raise Unsupported("payloads of a C loop are known only while it runs")
        if isinstance(self.payload, PayloadWriter):
            written = self.payload.written(group * self.threads + number)[0]
            return patched(written, self.payload.slots, first_slot + number, self.patch, group)
        return patched(self.payload.of(number), self.payload.slots, first_slot + number, self.patch, group)

    def group_name(self, group: int) -> str:
        """A group in error messages: its counters, or its number."""
        return str(self.patch.values(group)) if self.patch is not None else str(group)

    def only(self, group: int) -> ThreadDispatch:
        """The dispatch of one of the groups alone; it is of another kind."""
        if self.patch is not None:
            return replace(self, groups=1, patch=self.patch.only(group), kind=None)
        if isinstance(self.payload, PayloadWriter):
            first, count = self.payload.first + group * self.threads, self.group_size(group)
            return replace(self, groups=1, payload=replace(self.payload, first=first, count=count))
        if isinstance(self.payload, PayloadList) and self.groups > 1:
            raise Unsupported("a list of payloads is one group")
        return replace(self, groups=1)


class Finished(NamedTuple):
    """Counts of work that has been done."""

    threads: int
    instructions: int


@lru_cache(256)
def control_register(gen: float, single_program_flow: bool = False, alternate_float_mode: bool = False, rounding_mode: int = 0,
                     **more: int) -> tuple[int, ...]:  # fmt: skip
    """cr0 of a thread that starts; `more` are other fields of EU_CONTROL_REGISTER, such as exception enables."""
    layout = catalogue.layout("EU_CONTROL_REGISTER", gen)
    return tuple(layout.pack(single_program_flow=single_program_flow, alternate_float_mode=alternate_float_mode,
                             rounding_mode=rounding_mode, **more))  # fmt: skip


@lru_cache(64)
def state_register(gen: float, stage: str, high_priority: bool = False) -> int:
    """sr0.0 of a thread that starts, of the fixed function `stage` (ICL 2913, 2985); 0 where the register is on no page."""
    layout = catalogue.catalogue().get("EU_STATE_REGISTER", gen)
    if layout is None:
        return 0
    names = describe.values_of(layout.field("fixed_function_id").type, gen)
    number = next(value for value, name in names.items() if name == stage.lower())
    return layout.pack(fixed_function_id=number, priority_class=high_priority)[0]
