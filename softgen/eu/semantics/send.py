"""Messages: what an instruction sends, to whom, and where the answer goes.

For the interpreter, who answers is a table the thread was given (`send`). In compiled code the message's own lane program is part of the
kernel (`carry_out`), where the descriptor is known and there is such a program (`compiled`); all others are for the interpreter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from softgen.errors import DecodeError, GpuFault, Unsupported
from softgen.eu.isa.instruction import Instruction, Operand
from softgen.eu.isa.rules import Rules
from softgen.eu.semantics.math import evaluate
from softgen.eu.thread.lane_state import Offsets, State
from softgen.eu.thread.predicate import predicate
from softgen.eu.thread.regions import place
from softgen.eu.thread.state import ALT, REGISTER, Thread
from softgen.lanes.numpy import NumpyMachine
from softgen.lanes.types import LaneType, bool_, f32, i32, i64, u16, u32
from softgen.lanes.value import Value
from softgen.shared_functions import dataport, exchange, gateway, sampler, spawner  # noqa: F401   the others answer messages by being loaded

Bytes = npt.NDArray[np.uint8]

EXTENDED_MATH = 1  # shared function, where math is a message


@dataclass
class Message:
    """One message. `response` is the piece of the register file the answer goes to; lanes that get none stay as they are."""

    instruction: Instruction
    sfid: int
    descriptor: int
    extended: int
    payload: Bytes
    second: Bytes  # the payload of a split send's second source
    response: Bytes
    mask: int  # bit n: channel n of those the instruction is about
    first: int = 0  # the first of these among the thread's channels
    alt: bool = False  # the thread's float mode goes with every message (IVB 2419-2422)
    header: bool = False


Handler = Callable[[Thread, Message], None]


@dataclass(frozen=True)
class Lengths:
    payload: int
    response: int
    header: bool


def lengths(rules: Rules, descriptor: int) -> Lengths:
    """Registers sent and received (public: Mesa elk_eu.h; KBL 8173-8226)."""
    if rules.math == "message":
        return Lengths(descriptor >> 20 & 0xF, descriptor >> 16 & 0xF, False)
    return Lengths(descriptor >> 25 & 0xF, descriptor >> 20 & 0x1F, bool(descriptor >> 19 & 1))


def message(thread: Thread, one: Instruction, mask: int, first: int) -> Message:
    """The message an instruction sends now. Older generations collect it in message registers, with an implied move of source 0."""
    descriptor, extended = _value(thread, one.descriptor), _value(thread, one.extended)
    count = lengths(thread.rules, descriptor)
    if thread.rules.message_registers:
        payload = _collected(thread, one, count.payload)
    else:
        payload = _registers(thread, one.sources[0], count.payload).copy()
    second = np.zeros(0, np.uint8)
    if len(one.sources) > 1 and one.sources[1].file == "grf":
        second = _registers(thread, one.sources[1], extended >> 6 & 0xF).copy()
    sfid = one.sfid if not isinstance(one.extended, Operand) or one.sfid else extended & 0xF
    response = _response(thread, one, count.response)
    return Message(one, sfid, descriptor, extended, payload, second, response, mask, first, bool(thread.control & ALT), count.header)


def _value(thread: Thread, given: int | Operand | None) -> int:
    if not isinstance(given, Operand):
        return given or 0
    name, start = place(given, thread.gen)
    return thread.dword_at(name, start)


def _address(thread: Thread, operand: Operand) -> int:
    if operand.indirect:
        return int(thread.arf["a"].view(np.uint16)[operand.address_sub]) + operand.offset
    return operand.number * REGISTER + operand.sub


def _registers(thread: Thread, operand: Operand, count: int) -> Bytes:
    start = _address(thread, operand)
    if not 0 <= start <= start + count * REGISTER <= len(thread.grf):
        raise GpuFault(start, "message registers", why=f"{count} registers from r{start // REGISTER} on are not all there")
    return thread.grf[start : start + count * REGISTER]


def _collected(thread: Thread, one: Instruction, count: int) -> Bytes:
    source, start = one.sources[0], one.base_mrf * REGISTER
    if source.file == "grf":
        thread.mrf[start : start + REGISTER] = _registers(thread, source, 1)
    if start + count * REGISTER > len(thread.mrf):
        raise GpuFault(start, "message registers", why=f"{count} registers from m{one.base_mrf} on are not all there")
    return thread.mrf[start : start + count * REGISTER].copy()


def _response(thread: Thread, one: Instruction, count: int) -> Bytes:
    """A null destination takes no answer (IVB 1744-1746)."""
    if one.dst is None or one.dst.file != "grf" or not count:
        return np.zeros(count * REGISTER, np.uint8)
    return _registers(thread, one.dst, count)


def send(thread: Thread, one: Instruction, mask: int, first: int) -> None:
    sent = message(thread, one, mask, first)
    handler = thread.messages.get(sent.sfid)
    if handler is None:
        raise Unsupported(f"messages to shared function {sent.sfid} (descriptor {sent.descriptor:#x}) are not yet simulated")
    handler(thread, sent)
    if one.eot:
        thread.ended = True


# -- on any machine ------------------------------------------------------------------------------------------------


def compiled(one: Instruction) -> bool:
    """Whether a send can be part of compiled code: descriptors are known, and the message has a lane program."""
    if isinstance(one.descriptor, Operand) or isinstance(one.extended, Operand) or one.descriptor is None:
        return False
    return exchange.compiled(one.sfid, one.descriptor, one.gen)


def carry_out(state: State, one: Instruction, environment: exchange.Environment) -> None:
    """Does what a send asks for, except that an end of thread is left to the caller. For instructions that are `compiled`."""
    assert isinstance(one.descriptor, int)
    plan = exchange.plan(one.sfid, one.descriptor, one.gen)
    plan.program(StateExchange(state, one, plan, environment))


class StateExchange(exchange.Exchange):
    """A message whose payload and response are registers of a State."""

    def __init__(self, state: State, one: Instruction, plan: exchange.Plan, environment: exchange.Environment) -> None:
        self.state, self.one = state, one
        assert isinstance(one.descriptor, int) and not isinstance(one.extended, Operand)
        extended, count = one.extended or 0, lengths(state.rules, one.descriptor)
        self.file, self.first = "grf", 0 if state.rules.message_registers else self._start(one.sources[0])
        if state.rules.message_registers:
            self._collect(one)
        self.whole = count.payload * REGISTER  # bytes of the first payload; a second one follows
        self.second = one.sources[1] if len(one.sources) > 1 and one.sources[1].file == "grf" else None
        more = (extended >> 6 & 0xF) * REGISTER if self.second is not None else 0
        mask = state.enabled(one) & predicate(state, one)
        super().__init__(state.m, plan, mask, environment, (self.whole + more, count.response * REGISTER), extended)

    def _collect(self, one: Instruction) -> None:
        """Older generations move source 0 to the first message register on the way (IVB 1744-1746)."""
        m, source = self.state.m, one.sources[0]
        self.file, self.first = "mrf", one.base_mrf * REGISTER
        if source.file == "grf":
            held = self.state.read("grf", u32, self._offsets(self._start(source), u32, 0, REGISTER // 4))
            self.state.write("mrf", held, self._offsets(self.first, u32, 0, REGISTER // 4), m.constant(bool_, 1, REGISTER // 4))

    def _start(self, operand: Operand) -> int | Value:
        """The first byte of a payload or response: known, or in a0."""
        if not operand.indirect:
            return operand.number * REGISTER + operand.sub
        m = self.state.m
        held = m.convert(self.state.read("a", u16, (operand.address_sub * u16.bytes,)), i32) + operand.offset
        return m.bitcast(held, u32)

    def _offsets(self, base: int | Value, type: LaneType, start: int, lanes: int) -> Offsets:
        steps = range(start, start + lanes * type.bytes, type.bytes)
        if isinstance(base, int):
            return tuple(base + step for step in steps)
        m = self.state.m
        return m.broadcast(base, lanes) + m.constant(u32, list(steps))

    def _read(self, type: LaneType, start: int, lanes: int) -> Value:
        size = lanes * type.bytes
        if start + size <= self.whole:
            return self.state.read(self.file, type, self._offsets(self.first, type, start, lanes))
        assert self.second is not None
        if start < self.whole:  # part here, part there
            here = (self.whole - start) // type.bytes
            return self.m.concat(self._read(type, start, here), self._read(type, self.whole, lanes - here))
        return self.state.read("grf", type, self._offsets(self._start(self.second), type, start - self.whole, lanes))

    def _write(self, value: Value, start: int, mask: Value) -> None:
        dst = self.one.dst
        if dst is not None and dst.file == "grf":  # a null destination takes no answer (IVB 1744-1746)
            self.state.write("grf", value, self._offsets(self._start(dst), value.type, start, value.lanes), mask)


# -- extended math as a message (Gen 4.5) ------------------------------------------------------------------------------

FUNCTIONS = {1: "inv", 2: "log", 3: "exp", 4: "sqrt", 5: "rsq", 6: "sin", 7: "cos", 10: "pow", 11: "intdivmod", 12: "intdiv", 13: "intmod"}
TWO_SOURCES = frozenset({"pow", "intdivmod", "intdiv", "intmod"})
SIGNED, SATURATE, SCALAR = 1 << 4, 1 << 6, 1 << 7  # descriptor bits (public: Mesa elk_eu_emit.c)


def extended_math(m: NumpyMachine) -> Handler:
    """A handler for the math function of generations that have it as a message."""

    def handle(thread: Thread, sent: Message) -> None:
        name = FUNCTIONS.get(sent.descriptor & 0xF)
        if name is None:
            raise DecodeError(f"extended math has no function {sent.descriptor & 0xF}")
        channels = 1 if sent.descriptor & SCALAR else 8
        operands = [sent.payload[start : start + REGISTER] for start in range(0, len(sent.payload), REGISTER)]
        needed = 2 if name in TWO_SOURCES else 1
        if len(operands) != needed:
            raise DecodeError(f"extended math {name} takes {needed} registers, not {len(operands)}")
        if name.startswith("int"):
            _divide(m, name, sent, operands)
            return
        lanes = [m.flush(m.value(f32, one.view(np.float32)[:channels])) for one in operands]
        result = m.flush(evaluate(m, name, sent.alt, *lanes))
        if sent.descriptor & SATURATE:
            result = m.select(result > 0.0, result, m.like(result, 0.0))
            result = m.select(result > 1.0, 1.0, result)
        _respond(sent, np.asarray(result.payload, np.float32).view(np.uint32), 0)

    return handle


def _divide(m: NumpyMachine, name: str, sent: Message, operands: list[Bytes]) -> None:
    """The denominator comes first; the remainder of both goes to the second register."""
    dtype, type = (np.int32, i32) if sent.descriptor & SIGNED else (np.uint32, u32)
    b, a = (m.convert(m.value(type, one.view(dtype)), i64) for one in operands[:2])
    quotient, remainder = m.divide_int(a, b), m.remainder_int(a, b)
    first = remainder if name == "intmod" else quotient
    _respond(sent, np.asarray(first.payload, np.int64).astype(np.uint32), 0)
    if name == "intdivmod":
        _respond(sent, np.asarray(remainder.payload, np.int64).astype(np.uint32), 1)


def _respond(sent: Message, values: npt.NDArray[np.uint32], register: int) -> None:
    place = sent.response[register * REGISTER : (register + 1) * REGISTER].view(np.uint32)
    values = np.broadcast_to(values, place.shape) if len(values) == 1 else values
    for channel in range(len(place)):
        if sent.mask >> channel & 1:
            place[channel] = values[channel]
