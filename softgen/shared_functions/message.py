"""Messages between a thread and a shared function, on any lane machine.

What a message does is a lane program over a Message: it takes lanes out of the payload, reaches memory through its environment (unit.py),
and gives lanes to the response. The same program answers the interpreter (NumPy) and is compiled into kernels (LLVM).

    @answers("untyped_surface_read")
    def untyped_read(x: Message[DataPortEnvironment]) -> None:
        offsets = x.take(u32, 0, 16)
        x.give(x.m.load(u32, x.environment.bound(3), offsets, x.lanes(16)), 0, x.lanes(16))

A name is one of spec/message/messages.table. A message without a program raises Unsupported with its description.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from softgen.bits import catalogue, describe
from softgen.bits.record import Record
from softgen.bits.units import GRF_BYTES
from softgen.errors import DecodeError, SpecError, Unsupported
from softgen.lanes.machine import Machine
from softgen.lanes.numpy.machine import DTYPES, NumpyMachine
from softgen.lanes.types import LaneType, bool_, u32, u64
from softgen.lanes.value import Value
from softgen.shared_functions import descriptors

Bytes = np.ndarray[Any, np.dtype[np.uint8]]

E = TypeVar("E", covariant=True)  # the environment


@dataclass(frozen=True)
class MessagePlan:
    """What can be known from a descriptor alone."""

    name: str
    function: str
    gen: float
    fields: Record
    words: dict[str, str]  # enumerated fields by the names of their values
    program: MessageProgram
    header: bool
    attributes: frozenset[str] = frozenset()  # of the row in messages.table
    indices: tuple[int, int] = (0, 0)  # of the binding table and of the sampler table

    def count(self, field: str) -> int:
        """The number that the name of a value begins with: 4 of '4_owords'."""
        number = self.words[field].partition("_")[0]
        if not number.isdigit():
            raise DecodeError(f"{self.name}: {field} has the value {getattr(self.fields, field)}, which is reserved")
        return int(number)


class Message(ABC, Generic[E]):
    """One message. `mask` has a lane for each channel of the instruction: those that send. Surface and sampler index are numbers, or lanes
    (u32) where compiled code takes them from a register; so is `extended` where it names a bindless surface."""

    surface_index: int | Value
    sampler_index: int | Value

    def __init__(self, m: Machine, plan: MessagePlan, mask: Value, environment: E, lengths: tuple[int, int], extended: int | Value,
                 alt: bool) -> None:  # fmt: skip
        self.m, self.plan, self.mask, self.environment = m, plan, mask, environment
        self.width, self.extended = mask.lanes, extended
        self.alt = alt  # the thread's alternate float mode accompanies every message (IVB 2419-2422)
        self.sent, self.answered = lengths  # bytes of payload, header included, and of response
        self.ends = bool(getattr(plan.fields, "end_of_thread", 0))  # the thread ends with it
        self.surface_index, self.sampler_index = plan.indices
        self._given = False

    @abstractmethod
    def _read(self, type: LaneType, start: int, lanes: int) -> Value:
        """Contiguous lanes from a byte of the payload on."""

    @abstractmethod
    def _write(self, value: Value, start: int, mask: Value) -> None: ...

    def lanes(self, count: int, first: int = 0) -> Value:
        """The mask for `count` lanes, from a channel on; channels that the instruction does not have are off."""
        m, there = self.m, min(self.width - first, count)
        if there <= 0:
            return m.constant(bool_, 0, count)
        held = m.slice(self.mask, first, there)
        return held if there == count else m.concat(held, m.constant(bool_, 0, count - there))

    def any(self, count: int) -> Value:
        """`count` lanes, all on if any channel is."""
        return self.m.broadcast(self.m.any(self.mask), count)

    def take(self, type: LaneType, start: int, lanes: int) -> Value:
        """Contiguous lanes, from a byte after the header on. A message that is too short for what it asks is an error of the program."""
        return self.raw(type, start + (GRF_BYTES if self.plan.header else 0), lanes)

    def raw(self, type: LaneType, start: int, lanes: int) -> Value:
        """Contiguous lanes, from a byte of the whole payload on."""
        assert not self._given, "a response may lie where the payload is: everything is taken before anything is given"
        if start + lanes * type.bytes > self.sent:
            needed = -(-(start + lanes * type.bytes) // GRF_BYTES)
            raise DecodeError(f"{self.plan.name} has {self.sent // GRF_BYTES} registers of payload, too few; {needed} are needed")
        return self._read(type, start, lanes)

    def expect(self, size: int) -> None:
        """The message gives so many bytes: one that has no room for them is an error, before anything happens."""
        if size > self.answered:
            needed = -(-size // GRF_BYTES)
            raise DecodeError(f"{self.plan.name} has {self.answered // GRF_BYTES} registers for its answer, too few; {needed} are needed")

    def give(self, value: Value, start: int, mask: Value) -> None:
        self._given = True
        self.expect(start + value.lanes * value.type.bytes)
        self._write(value, start, mask)

    def header(self, page: str, name: str) -> Value:
        """A field of the header, in one lane: of 32 bits, or of 64 where it reaches into the next dword."""
        field = catalogue.layout(page, self.plan.gen).field(name)
        (high, low), type = field.pieces[0], u32
        if high // 32 != low // 32:
            type = u64
        if not self.plan.header or self.sent < GRF_BYTES:
            raise DecodeError(f"{self.plan.name} must have a header")
        held = self._read(type, low // 32 * 4, 1)
        shift, bits = low % 32, high - low + 1
        keeps_place = field.type.name in ("address", "offset")
        mask = (1 << bits) - 1 << shift
        held = held & mask if mask != type.highest else held
        return held if keeps_place or not shift else held >> shift


MessageProgram = Callable[["Message[Any]"], None]
PROGRAMS: dict[str, MessageProgram] = {}
ONLY_REFERENCE: set[str] = set()  # messages whose programs need state that only Python has: they are not compiled
CONDITIONS: dict[str, Callable[[MessagePlan], bool]] = {}  # or only some of them are


def answers(*names: str, compiled: bool | Callable[[MessagePlan], bool] = True) -> Callable[[MessageProgram], MessageProgram]:
    """This program answers the messages of these names."""

    def keep(program: MessageProgram) -> MessageProgram:
        PROGRAMS.update(dict.fromkeys(names, program))
        if callable(compiled):
            CONDITIONS.update(dict.fromkeys(names, compiled))
        elif not compiled:
            ONLY_REFERENCE.update(names)
        return program

    return keep


@lru_cache(maxsize=1 << 12)
def plan(sfid: int, descriptor: int, gen: float) -> MessagePlan:
    """The plan of a descriptor. Unsupported for a message without a program, DecodeError for one that does not exist."""
    found = descriptors.named(sfid, descriptor, gen)
    if found.name not in PROGRAMS:
        raise descriptors.unbuilt(found, sfid)
    words = {}
    for field in found.layout.fields:
        names = describe.values_of(field.type, gen)
        if names:
            words[field.name] = names.get(getattr(found.values, field.name), "reserved")
    indices = int(getattr(found.values, "binding_table_index", 0)), int(getattr(found.values, "sampler_index", 0))
    program, attributes = PROGRAMS[found.name], found.row.attributes
    return MessagePlan(found.name, found.function, gen, found.values, words, program, found.header, attributes, indices)


def compiled(sfid: int, descriptor: int, gen: float) -> bool:
    """Whether a message can be part of compiled code."""
    try:
        message_plan = plan(sfid, descriptor, gen)
    except (DecodeError, Unsupported, SpecError):
        return False
    return message_plan.name not in ONLY_REFERENCE and (message_plan.name not in CONDITIONS or CONDITIONS[message_plan.name](message_plan))


class ByteMessage(Message[Any]):
    """A message whose payload and response are bytes, for the interpreter."""

    def __init__(self, m: NumpyMachine, plan: MessagePlan, payload: Bytes, response: Bytes, mask: Value, environment: Any,
                 extended: int = 0, alt: bool = False) -> None:  # fmt: skip
        super().__init__(m, plan, mask, environment, (len(payload), len(response)), extended, alt)
        self.payload, self.response = payload, response
        self.machine = m

    def _read(self, type: LaneType, start: int, lanes: int) -> Value:
        return self.machine.value(type, self.payload[start : start + lanes * type.bytes].copy().view(DTYPES[type]))

    def _write(self, value: Value, start: int, mask: Value) -> None:
        raw = np.ascontiguousarray(value.payload).view(np.uint8).reshape(value.lanes, -1)
        place = self.response[start : start + raw.size].reshape(raw.shape)
        place[mask.payload] = raw[mask.payload]


class Sender(Protocol):
    @property
    def exec_size(self) -> int: ...


class SentBytes(Protocol):
    """What a thread sends, as far as shared functions look at it."""

    @property
    def instruction(self) -> Sender: ...

    sfid: int
    descriptor: int
    payload: Bytes
    second: Bytes
    response: Bytes
    mask: int  # bit n: channel n of the instruction


_MACHINE = NumpyMachine()


def answer(sent: SentBytes, gen: float, environment: Any) -> None:
    """Execute a message of the interpreter."""
    message_plan = plan(sent.sfid, sent.descriptor, gen)
    payload = np.concatenate([sent.payload, sent.second]) if len(sent.second) else sent.payload
    mask = _MACHINE.mask_from_bits(sent.mask, sent.instruction.exec_size)
    extended, alt = getattr(sent, "extended", 0), getattr(sent, "alt", False)
    made = ByteMessage(_MACHINE, message_plan, payload, sent.response, mask, environment, extended, alt)
    made.ends |= getattr(sent.instruction, "eot", False)
    message_plan.program(made)
