"""An exchange: one message on its way between a thread and a shared function, on any lane machine.

What a message does is a lane program over an Exchange: it takes lanes out of the payload, reaches memory through its environment, and
gives lanes to the response. The same program answers the interpreter (NumPy) and is compiled into kernels (LLVM).

    @answers("untyped_surface_read")
    def untyped_read(x: Exchange) -> None:
        offsets = x.take(u32, 0, 16)
        x.give(x.m.load(u32, x.environment.bound(3), offsets, x.lanes(16)), 0, x.lanes(16))

A name is one of spec/message/messages.table. A message that nobody answers raises Unsupported with its description.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from softgen.bits import catalogue, describe
from softgen.bits.record import Record
from softgen.errors import DecodeError, SpecError, Unsupported
from softgen.lanes.machine import Machine
from softgen.lanes.numpy import DTYPES, NumpyMachine
from softgen.lanes.types import LaneType, bool_, u32, u64
from softgen.lanes.value import Region, Value
from softgen.shared_functions import message

Bytes = np.ndarray[Any, np.dtype[np.uint8]]

REGISTER = 32  # bytes


class Environment(Protocol):
    """What messages find around a thread, as memories of its machine."""

    def bound(self, index: int) -> Region:
        """The buffer of a binding table index."""
        ...

    def within(self, index: int, offsets: Value, mask: Value, what: str) -> None:
        """Called before `bound`: somebody may want to know of lanes that are outside the buffer. `what` is the message's name."""
        ...

    def bindless(self, offset: int) -> Region:
        """The buffer whose state stands at an offset from the bindless surface base."""
        ...

    def general(self, base: Value | None = None) -> Region:
        """Graphics memory from the general state base on, or from `base` (one lane of u64) behind it. Addresses wrap."""
        ...

    def addresses(self) -> Region:
        """Graphics memory by 64-bit addresses in canonical form."""
        ...

    def local(self, plain: bool = False) -> Region:
        """Shared local memory of the thread's group. `plain`: for loads and stores, which nothing can be wrong with."""
        ...

    def barrier(self) -> None:
        """The thread has come to the barrier of its group."""
        ...

    def textured(self, x: Exchange, what: str, sampler: int, given: list[Value], mask: Value, count: int) -> list[Value]:
        """Something done to the texels of the message's surface (texture.py): so many answers."""
        ...


@dataclass(frozen=True)
class Plan:
    """What can be known from a descriptor alone."""

    name: str
    function: str
    gen: float
    fields: Record
    words: dict[str, str]  # enumerated fields by the names of their values
    program: Program
    header: bool

    def count(self, field: str) -> int:
        """The number that the name of a value begins with: 4 of '4_owords'."""
        number = self.words[field].partition("_")[0]
        if not number.isdigit():
            raise DecodeError(f"{self.name}: {field} has the value {getattr(self.fields, field)}, which is reserved")
        return int(number)


class Exchange(ABC):
    """One message. `mask` has a lane for each channel of the instruction: those that send."""

    def __init__(self, m: Machine, plan: Plan, mask: Value, environment: Any, lengths: tuple[int, int], extended: int = 0) -> None:
        self.m, self.plan, self.mask, self.environment = m, plan, mask, environment
        self.width, self.extended = mask.lanes, extended
        self.sent, self.answered = lengths  # bytes of payload, header included, and of response
        self._given = False

    @abstractmethod
    def _read(self, type: LaneType, start: int, lanes: int) -> Value:
        """Lanes side by side from a byte of the payload on."""

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
        """Lanes side by side, from a byte behind the header on. A message that is too short for what it asks is an error of the program."""
        assert not self._given, "a response may lie where the payload is: everything is taken before anything is given"
        begin = start + (REGISTER if self.plan.header else 0)
        if begin + lanes * type.bytes > self.sent:
            needed = -(-(begin + lanes * type.bytes) // REGISTER)
            raise DecodeError(f"{self.plan.name} has {self.sent // REGISTER} registers of payload, too few; {needed} are needed")
        return self._read(type, begin, lanes)

    def expect(self, size: int) -> None:
        """The message gives so many bytes: one that has no room for them is an error, before anything happens."""
        if size > self.answered:
            needed = -(-size // REGISTER)
            raise DecodeError(f"{self.plan.name} has {self.answered // REGISTER} registers for its answer, too few; {needed} are needed")

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
        if not self.plan.header or self.sent < REGISTER:
            raise DecodeError(f"{self.plan.name} must have a header")
        held = self._read(type, low // 32 * 4, 1)
        shift, bits = low % 32, high - low + 1
        keeps_place = field.type.name in ("address", "offset")
        mask = (1 << bits) - 1 << shift
        held = held & mask if mask != type.highest else held
        return held if keeps_place or not shift else held >> shift


Program = Callable[[Exchange], None]
PROGRAMS: dict[str, Program] = {}
ONLY_REFERENCE: set[str] = set()  # messages whose programs need what only Python knows: they are not compiled
CONDITIONS: dict[str, Callable[[Plan], bool]] = {}  # or only some of them are


def answers(*names: str, compiled: bool | Callable[[Plan], bool] = True) -> Callable[[Program], Program]:
    """This program answers the messages of these names."""

    def keep(program: Program) -> Program:
        PROGRAMS.update(dict.fromkeys(names, program))
        if callable(compiled):
            CONDITIONS.update(dict.fromkeys(names, compiled))
        elif not compiled:
            ONLY_REFERENCE.update(names)
        return program

    return keep


@lru_cache(maxsize=1 << 12)
def plan(sfid: int, descriptor: int, gen: float) -> Plan:
    """Unsupported for a message that nobody answers, DecodeError for one that does not exist."""
    found = message.named(sfid, descriptor, gen)
    if found.name not in PROGRAMS:
        raise message.unbuilt(found, sfid)
    words = {}
    for one in found.layout.fields:
        names = describe.values_of(one.type, gen)
        if names:
            words[one.name] = names.get(getattr(found.values, one.name), "reserved")
    return Plan(found.name, found.function, gen, found.values, words, PROGRAMS[found.name], found.header)


def compiled(sfid: int, descriptor: int, gen: float) -> bool:
    """Whether a message can be part of compiled code. Bindless surfaces are looked up by Python."""
    try:
        one = plan(sfid, descriptor, gen)
    except (DecodeError, Unsupported, SpecError):
        return False
    index = one.fields.binding_table_index if "binding_table_index" in one.fields._fields else -1
    if one.name in ONLY_REFERENCE or one.name in CONDITIONS and not CONDITIONS[one.name](one):
        return False
    return catalogue.enumeration(message.SURFACES, gen).get(index) != "bindless"


class ByteExchange(Exchange):
    """A message whose payload and response are bytes: what the interpreter hands over."""

    def __init__(self, m: NumpyMachine, plan: Plan, payload: Bytes, response: Bytes, mask: Value, environment: Any,
                 extended: int = 0) -> None:  # fmt: skip
        super().__init__(m, plan, mask, environment, (len(payload), len(response)), extended)
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


class Sent(Protocol):
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


def answer(sent: Sent, gen: float, environment: Any) -> None:
    """Carries out what the interpreter hands over."""
    one = plan(sent.sfid, sent.descriptor, gen)
    payload = np.concatenate([sent.payload, sent.second]) if len(sent.second) else sent.payload
    mask = _MACHINE.mask_from_bits(sent.mask, sent.instruction.exec_size)
    one.program(ByteExchange(_MACHINE, one, payload, sent.response, mask, environment, getattr(sent, "extended", 0)))
