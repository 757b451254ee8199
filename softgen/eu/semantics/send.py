"""Messages of send instructions.

In the interpreter, `send` builds the message and calls the handler of its shared function, from the thread's table. In compiled code the
message's lane program becomes part of the kernel (`execute_message`), where the descriptors are immediates or built from one
(descriptor_bits.py) and the message has such a program (`has_lane_program`); compiled code leaves all other messages to the interpreter.

Reads   MESSAGE_DESCRIPTOR
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from softgen.bits import catalogue
from softgen.bits.catalogue import layout
from softgen.bits.units import DWORD, GRF_BYTES
from softgen.errors import GpuFault, SoftgenError, Unsupported
from softgen.eu.isa import extended_descriptor
from softgen.eu.isa.instruction import Instruction, Operand
from softgen.eu.isa.rules import rules
from softgen.eu.semantics.descriptor_bits import known_bits
from softgen.eu.thread.lane_state import LaneState, Offsets
from softgen.eu.thread.message import SentMessage
from softgen.eu.thread.predicate import SECOND_HALF, predicate
from softgen.eu.thread.regions import COMPRESSED, HALF, lane_type, read_source, register_location
from softgen.eu.thread.state import ALT_FLOAT_MODE, ThreadState
from softgen.lanes.types import LaneType, bool_, i32, u16, u32
from softgen.lanes.value import Value
from softgen.shared_functions import descriptors, message, units

if TYPE_CHECKING:
    from softgen.shared_functions.compiled import MessageCode

Bytes = npt.NDArray[np.uint8]

SCALAR = 0, 1, 0  # vertical stride, width and horizontal stride of a region that is one element
COMPONENTS, ALL_ENABLES = 4, 0xF  # align16
DATA_PORTS = ("data_cache_0", "data_cache_1", "render_cache")
MOTION_ESTIMATION = ("vme", "cre")  # whose messages drivers' kernels send, and no manual lays out (KBL 13041 only names the unit)
LOW_BITS = 0xFFF  # of an extended descriptor: those below a surface's offset (KBL 5701-5718)
LENGTH_UNIT = extended_descriptor.unit(extended_descriptor.MESSAGE_LENGTH)


class MessageLengths(NamedTuple):
    """Registers of payload and response, and whether the payload begins with a header."""

    payload: int
    response: int
    header: bool


@lru_cache(1 << 12)
def message_lengths(descriptor: int, gen: float) -> MessageLengths:
    """The lengths that a message descriptor encodes."""
    fields = layout("MESSAGE_DESCRIPTOR", gen).raw([descriptor])
    return MessageLengths(int(fields.message_length), int(fields.response_length), bool(getattr(fields, "header_present", False)))


def second_length(extended: int) -> int:
    """Registers of a split send's second payload, as the extended descriptor encodes them."""
    return (extended & extended_descriptor.MESSAGE_LENGTH) // LENGTH_UNIT


@lru_cache(1 << 10)
def halves(inst: Instruction) -> tuple[Instruction, ...]:
    """The messages of a send. One with compression control is executed as two of 8 channels; the second one has the next registers, but
    the same source where that is a scalar (public: Mesa sends uniforms to extended math that way)."""
    if rules(inst.gen).second_half != "compression" or inst.quarter != COMPRESSED or inst.exec_size <= HALF:
        return (inst,)
    dst, (source, *others) = inst.dst, inst.sources
    moved = source if (source.vertical, source.width, source.horizontal) == SCALAR and source.type else _next(source)
    second = replace(inst, exec_size=HALF, quarter=SECOND_HALF, base_mrf=inst.base_mrf + 1, sources=(moved, *others),
                     dst=None if dst is None else _next(dst))  # fmt: skip
    return replace(inst, exec_size=HALF, quarter=0, eot=False), second


def _next(operand: Operand) -> Operand:
    """The operand one register further on."""
    if operand.file != "grf":
        return operand
    return replace(operand, offset=operand.offset + GRF_BYTES) if operand.indirect else replace(operand, number=operand.number + 1)


@lru_cache(1 << 10)
def _implied(inst: Instruction) -> Instruction:
    """A send with the channels and the source type of its implied move: at most a register is moved."""
    source = inst.sources[0] if inst.sources[0].type else replace(inst.sources[0], type="ud", vertical=8, width=8, horizontal=1)
    return replace(inst, exec_size=min(inst.exec_size, GRF_BYTES // lane_type(source).bytes), sources=(source,))


def implied_move(state: LaneState, inst: Instruction) -> None:
    """Move source 0 to the first message register, as generations with message registers do (IVB 1744-1746): a move with the source's
    region, swizzle and modifiers, whatever channels are on (public: Mesa's vertex shaders swizzle and negate operands of math there)."""
    source = inst.sources[0]
    if source.file != "grf":
        return
    if inst.base_mrf >= state.rules.message_registers:
        raise GpuFault(inst.base_mrf * GRF_BYTES, "message registers", why=f"there is no m{inst.base_mrf}")
    value = read_source(state, _implied(inst), 0)
    value = state.m.absolute(value) if source.absolute else value
    value = -value if source.negate else value
    first = inst.base_mrf * GRF_BYTES
    offsets = tuple(first + lane * value.type.bytes for lane in range(value.lanes))
    state.write("mrf", value, offsets, state.m.constant(bool_, 1, value.lanes))


def _enables(inst: Instruction) -> int:
    """The channel enables of a response to an align16 send, which generations with message registers have."""
    if inst.dst is None or inst.dst.write_mask is None or not inst.align16 or not rules(inst.gen).message_registers:
        return ALL_ENABLES
    return inst.dst.write_mask


def sending_channels(state: LaneState, inst: Instruction) -> Value:
    """The channels that a message is sent for. Data ports look at the write mask of align16, too: vertices' threads send messages of eight
    channels of which only x have addresses, and spill some components of a register (public: Mesa brw_eu_emit.c, brw_vec4.cpp)."""
    on = state.enabled(inst) & predicate(state, inst)
    enables = ALL_ENABLES if inst.dst is None or not inst.align16 else inst.dst.write_mask
    if enables in (None, ALL_ENABLES) or rules(inst.gen).message_registers or inst.sfid not in _data_ports(inst.gen):
        return on
    return on & state.m.constant(bool_, [enables >> lane % COMPONENTS & 1 for lane in range(inst.exec_size)])


@cache
def _data_ports(gen: float) -> frozenset[int]:
    return frozenset(number for number, name in descriptors.shared_functions(gen).items() if name in DATA_PORTS)


def _payload(inst: Instruction, count: int) -> Operand:
    """The operand of a payload of `count` registers where there are no message registers: it names general ones (restriction 85)."""
    payload = inst.sources[0]
    if count and payload.file != "grf":
        raise GpuFault(payload.number * GRF_BYTES, "message registers", why="a payload is in general registers")
    return payload


# -- in the interpreter --------------------------------------------------------------------------------------------


def send(thread: ThreadState, inst: Instruction, mask: int, first: int) -> None:
    """Execute a send: `mask` has the enabled channels, the thread's channel `first` lowest."""
    message = build_message(thread, inst, mask, first)
    handler = thread.messages.get(message.sfid)
    if handler is None:
        raise _unanswered(thread, message)
    before, enables = message.response.copy(), _enables(inst)
    handler(thread, message)
    for component in range(COMPONENTS):
        if not enables >> component & 1:
            message.response.reshape(-1, COMPONENTS, DWORD)[:, component] = before.reshape(-1, COMPONENTS, DWORD)[:, component]
    if inst.eot:
        thread.ended = True


def _unanswered(thread: ThreadState, message: SentMessage) -> Unsupported:
    """What is raised for a message to a function that is none of the thread's units."""
    if descriptors.shared_functions(thread.gen).get(message.sfid) in MOTION_ESTIMATION:
        name = descriptors.named(message.sfid, message.descriptor, thread.gen).name
        return Unsupported(f"video motion estimation ({name}) is described in no public manual: not yet simulated")
    return Unsupported(f"messages to shared function {message.sfid} (descriptor {message.descriptor:#x}) are not yet simulated")


def build_message(thread: ThreadState, inst: Instruction, mask: int, first: int) -> SentMessage:
    """The message of a send. Generations with message registers take the payload from them; the implied move has been executed."""
    descriptor, extended = _descriptor(thread, inst.descriptor), _descriptor(thread, inst.extended)
    lengths = message_lengths(descriptor, thread.gen)
    if thread.rules.message_registers:
        payload = _message_registers(thread, inst, lengths.payload)
    else:
        payload = _registers(thread, _payload(inst, lengths.payload), lengths.payload).copy()
    second = np.zeros(0, np.uint8)
    if len(inst.sources) > 1 and inst.sources[1].file == "grf":
        second = _registers(thread, inst.sources[1], second_length(extended)).copy()
    sfid = inst.sfid if not isinstance(inst.extended, Operand) or inst.sfid else extended & extended_descriptor.FUNCTION_ID
    response = _response(thread, inst, lengths.response)
    return SentMessage(inst, sfid, descriptor, extended, payload, second, response, mask, first, bool(thread.cr0 & ALT_FLOAT_MODE),
                       lengths.header)  # fmt: skip


def _descriptor(thread: ThreadState, descriptor: int | Operand | None) -> int:
    """The value of a descriptor that is an immediate or in a register."""
    if not isinstance(descriptor, Operand):
        return descriptor or 0
    name, start = register_location(descriptor, thread.gen)
    return thread.dword_at(name, start)


def _grf_offset(thread: ThreadState, operand: Operand) -> int:
    if operand.indirect:
        return int(thread.arf["a"].view(np.uint16)[operand.address_sub]) + operand.offset
    return operand.number * GRF_BYTES + operand.sub


def _registers(thread: ThreadState, operand: Operand, count: int) -> Bytes:
    start = _grf_offset(thread, operand)
    if not 0 <= start <= start + count * GRF_BYTES <= len(thread.grf):
        raise GpuFault(start, "message registers", why=f"{count} registers from r{start // GRF_BYTES} exceed the register file")
    return thread.grf[start : start + count * GRF_BYTES]


def _message_registers(thread: ThreadState, inst: Instruction, count: int) -> Bytes:
    start = inst.base_mrf * GRF_BYTES
    if start + count * GRF_BYTES > len(thread.mrf):
        raise GpuFault(start, "message registers", why=f"{count} registers from m{inst.base_mrf} exceed the message register file")
    return thread.mrf[start : start + count * GRF_BYTES].copy()


def _response(thread: ThreadState, inst: Instruction, count: int) -> Bytes:
    """The registers that the response is written to; a null destination discards it (IVB 1744-1746)."""
    if inst.dst is None or inst.dst.file != "grf" or not count:
        return np.zeros(count * GRF_BYTES, np.uint8)
    return _registers(thread, inst.dst, count)


# -- as a lane program, on any machine -----------------------------------------------------------------------------


def has_lane_program(inst: Instruction) -> bool:
    """Whether a send can be compiled: what its descriptors ask for is known, and the message has a lane program."""
    bits = known_bits(inst.descriptor)
    if bits is None or isinstance(inst.extended, Operand) and known_bits(inst.extended) is None:
        return False
    return message.compiled(inst.sfid, bits, inst.gen)


def may_be_atomic(inst: Instruction) -> bool:
    """Whether a send's message is an atomic operation; yes if it is not known."""
    if not isinstance(inst.descriptor, int):
        return True
    try:
        return "atomic" in message.plan(inst.sfid, inst.descriptor, inst.gen).attributes
    except SoftgenError:
        return True


@lru_cache(1 << 12)
def surface_bits(sfid: int, descriptor: int, gen: float) -> int:
    """The bits of a descriptor that name an entry of the binding table, where compiled code may take that from elsewhere; else 0."""
    try:
        plan = message.plan(sfid, descriptor, gen)
    except SoftgenError:
        return 0
    unit = units.answering(plan.function, plan.name)
    if unit is None or not unit.indexed or plan.indices[0] in catalogue.enumeration(descriptors.SURFACES, gen):
        return 0
    return next((field.mask for field in descriptors.named(sfid, descriptor, gen).layout.fields if field.name == "binding_table_index"), 0)


def execute_message(state: LaneState, inst: Instruction, code: MessageCode, surface: Value | None = None) -> None:
    """Execute a send that `has_lane_program` on the lanes of `state`. The caller handles the end of the thread. `surface` is the index in
    the binding table, where the descriptor does not have it."""
    bits = known_bits(inst.descriptor)
    assert bits is not None
    plan = message.plan(inst.sfid, bits, inst.gen)
    unit = units.answering(plan.function, plan.name)
    assert unit is not None
    indices: tuple[int | Value, int | Value] = plan.indices
    extended: int | Value = known_bits(inst.extended) or 0
    if isinstance(inst.descriptor, Operand):
        indices = _indices(state, inst, inst.descriptor, plan, unit.indexed, code)
    if isinstance(inst.extended, Operand):
        extended = _extended(state, inst, inst.extended, plan, code)
    if surface is not None:
        indices = surface, indices[1]
    for half in halves(inst):
        made = RegisterMessage(state, half, plan, unit.compiled(code))
        (made.surface_index, made.sampler_index), made.extended = indices, extended
        plan.program(made)


def _indices(state: LaneState, inst: Instruction, descriptor: Operand, plan: message.MessagePlan, indexed: bool,
             code: MessageCode) -> tuple[int | Value, int | Value]:  # fmt: skip
    """Surface and sampler index of a descriptor in a register. A side exit where it asks for another message, or for no entry of the
    binding table; with another index, too, where the unit is not `indexed` by run-time values."""
    name, start = register_location(descriptor, inst.gen)
    held = state.read(name, u32, (start,))
    masks = {field.name: field.mask for field in descriptors.named(inst.sfid, descriptor.immediate, inst.gen).layout.fields}
    surface, sampler = (masks.get(name, 0) for name in ("binding_table_index", "sampler_index"))
    special = catalogue.enumeration(descriptors.SURFACES, inst.gen)
    if not indexed or not surface or plan.indices[0] in special:
        code.escape(held == descriptor.immediate)
        return plan.indices
    fixed = ~(surface | sampler) & u32.highest
    code.escape(((held & fixed) == (descriptor.immediate & fixed)) & ((held & surface) < min(special)))
    return held & surface, (held & sampler) >> (sampler & -sampler).bit_length() - 1 if sampler else 0


def _extended(state: LaneState, inst: Instruction, extended: Operand, plan: message.MessagePlan, code: MessageCode) -> int | Value:
    """An extended descriptor in a register: a side exit where it is not as known, but for the surface that it names."""
    name, start = register_location(extended, inst.gen)
    held = state.read(name, u32, (start,))
    bindless = catalogue.enumeration(descriptors.SURFACES, inst.gen).get(plan.indices[0]) == "bindless"
    fixed = LOW_BITS if bindless else u32.highest
    code.escape((held & fixed) == (extended.immediate & fixed))
    return held if bindless else extended.immediate


class RegisterMessage(message.Message[object]):
    """A message whose payload and response are registers of a LaneState."""

    def __init__(self, state: LaneState, inst: Instruction, plan: message.MessagePlan, environment: object) -> None:
        self.state, self.inst = state, inst
        extended, count = known_bits(inst.extended) or 0, message_lengths(known_bits(inst.descriptor) or 0, inst.gen)
        self.file, self.first = "grf", 0 if state.rules.message_registers else self._start(_payload(inst, count.payload))
        if state.rules.message_registers:
            implied_move(state, inst)
            self.file, self.first = "mrf", inst.base_mrf * GRF_BYTES
        self.whole = count.payload * GRF_BYTES  # bytes of the first payload; a second one follows it
        self.second = inst.sources[1] if len(inst.sources) > 1 and inst.sources[1].file == "grf" else None
        more = second_length(extended) * GRF_BYTES if self.second is not None else 0
        mask = sending_channels(state, inst)
        super().__init__(state.m, plan, mask, environment, (self.whole + more, count.response * GRF_BYTES), extended, state.mode.alt)
        self.enables = _enables(inst)
        self.ends |= inst.eot
        if state.rules.message_registers and inst.base_mrf + count.payload > state.rules.message_registers:
            raise GpuFault(inst.base_mrf * GRF_BYTES, "message registers", why=f"{count.payload} registers exceed the message registers")

    def _start(self, operand: Operand) -> int | Value:
        """The byte offset of a payload or response: a number, or a lane where a0 holds it."""
        if not operand.indirect:
            return operand.number * GRF_BYTES + operand.sub
        m = self.state.m
        address = m.convert(self.state.read("a", u16, (operand.address_sub * u16.bytes,)), i32) + operand.offset
        return m.bitcast(address, u32)

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
        if start < self.whole:  # the lanes straddle both payloads
            here = (self.whole - start) // type.bytes
            return self.m.concat(self._read(type, start, here), self._read(type, self.whole, lanes - here))
        return self.state.read("grf", type, self._offsets(self._start(self.second), type, start - self.whole, lanes))

    def _write(self, value: Value, start: int, mask: Value) -> None:
        dst = self.inst.dst
        if self.enables != ALL_ENABLES:
            places = [(start + lane * value.type.bytes) // DWORD % COMPONENTS for lane in range(value.lanes)]
            mask = mask & self.m.constant(bool_, [self.enables >> place & 1 for place in places])
        if dst is not None and dst.file == "grf":  # a null destination discards the response (IVB 1744-1746)
            self.state.write("grf", value, self._offsets(self._start(dst), value.type, start, value.lanes), mask)
