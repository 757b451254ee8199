"""Operand regions: byte offsets of an operand's channels; reading sources and writing destinations (IVB 2976-3052).

All sources are read whole before anything is written: the second half of a compressed instruction does not see results of the first half.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from softgen.bits.units import GRF_BYTES
from softgen.errors import DecodeError, Unsupported
from softgen.eu.isa import registers, types
from softgen.eu.isa.instruction import VXH, Instruction, Operand
from softgen.eu.isa.rules import rules
from softgen.eu.thread.lane_state import LaneState, Offsets
from softgen.lanes.types import LaneType, f16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64
from softgen.lanes.value import Value

LANES = {"ub": u8, "b": i8, "uw": u16, "w": i16, "ud": u32, "d": i32, "uq": u64, "q": i64, "hf": f16, "f": f32, "df": f64}
PACKED = {"v": i16, "uv": u16, "vf": f32}  # packed vector immediate -> type of its elements
CHANGES = frozenset({"mov", "not", "and", "or", "xor"})  # opcodes with which programs change cr0
COMPRESSED_4 = 0x80  # COMPR4 bit of a message register number: the second half is written four registers further
WIDE_ACCUMULATORS = {
    "ud": "acc_d",
    "d": "acc_d",
    "uw": "acc_w",
    "w": "acc_w",
}  # accumulator type -> array that holds the accumulators as 64-bit integers
NATIVE_FLOAT = "nf"  # accumulators only, wider than a double; simulated as a double, stored with the 64-bit integers
PAIR = 8  # bytes of an element that takes two of them
WHOLE_ADDRESSES = 4  # bytes of a0 whose words have all sixteen bits
HALF, COMPRESSED = 8, 2  # channels of a half, and the value of the field that says an instruction is compressed
VECTOR_CHANNELS = 4  # channels that a swizzle selects among
XY, ZW = 0b0011, 0b1100  # channel enables


def lane_type(operand: Operand) -> LaneType:
    if operand.type == NATIVE_FLOAT and operand.file == "arf":
        return f64
    found = LANES.get(operand.type) or (PACKED.get(operand.type) if operand.file == "imm" else None)
    if found is None:
        raise Unsupported(f"operands of type {operand.type or '?'} are not yet simulated")
    return found


def register_location(operand: Operand, gen: float) -> tuple[str, int]:
    """The register file or architecture register of a direct operand, and the operand's byte offset in it."""
    if operand.file != "arf":
        if operand.file == "imm":
            raise DecodeError("a register operand is required here, not an immediate")
        return operand.file, operand.number * GRF_BYTES + operand.sub
    found = registers.find(operand.number, gen)
    if found is None:
        raise DecodeError(f"gen {gen:g} has no architecture register {operand.number:#x}")
    row, index = found
    return row.name, index * row.size + operand.sub


class IpJump(NamedTuple):
    """A jump to a dword of a register and a constant."""

    source: int  # byte of the general registers
    addend: int
    masked: bool  # it is taken only where channel 0 is on


@lru_cache(1024)
def ip_jump(inst: Instruction) -> IpJump | None:
    """What an instruction does that only writes ip: mov or add of one channel, without predicates."""
    if inst.opcode not in ("mov", "add") or inst.exec_size != 1 or inst.predicate or inst.condition or inst.saturate or inst.breakpoint:
        return None
    dst, (first, *more) = inst.dst, inst.sources
    if dst is None or not _is_ip(dst, inst.gen) or first.file != "grf" or first.indirect or first.negate or first.absolute:
        return None
    if {dst.type, first.type, *(operand.type for operand in more)} - {"ud", "d"} or inst.align16 or any(one.file != "imm" for one in more):
        return None
    if not (source := register_location(first, inst.gen)[1]):  # scheduler.c has no number for the first dword
        return None
    return IpJump(source, more[0].immediate if more else 0, not inst.no_mask)


def _is_ip(operand: Operand, gen: float) -> bool:
    return operand.file == "arf" and not operand.indirect and register_location(operand, gen) == ("ip", 0)


def only_control(inst: Instruction) -> bool:
    """Whether an instruction reads and writes nothing but cr0.0."""
    plain = inst.no_mask and inst.exec_size == 1 and not inst.predicate and not inst.condition and not inst.breakpoint
    operands = [inst.dst, *inst.sources]
    names = [
        register_location(operand, inst.gen)
        for operand in operands
        if operand is not None and operand.file == "arf" and not operand.indirect
    ]
    immediates = sum(operand is not None and operand.file == "imm" for operand in operands)
    return plain and inst.opcode in CHANGES and len(names) + immediates == len(operands) and set(names) == {("cr", 0)}


def notification(inst: Instruction) -> int:
    """The number of the notification register that a wait is for."""
    operand = inst.dst if inst.dst is not None and inst.dst.file == "arf" and inst.dst.number else inst.sources[0]
    name, start = register_location(operand, inst.gen)
    row = registers.register(name, inst.gen) if name == "n" else None
    if row is None or start >= row.count * row.size:
        raise DecodeError("wait needs a notification register")
    return start // u32.bytes


def is_accumulator(operand: Operand | None, gen: float) -> bool:
    return operand is not None and operand.file == "arf" and not operand.indirect and register_location(operand, gen)[0] == "acc"


# -- sources -------------------------------------------------------------------------------------------------------


@lru_cache(1 << 14)
def source_offsets(inst: Instruction, index: int) -> tuple[int, ...]:
    """Byte offsets of a source's channels from its first byte."""
    operand = inst.sources[index]
    size = lane_type(operand).bytes
    if inst.form == "three_source_align1":
        return _strides(operand, inst.exec_size, size, linear=index == 2)
    if inst.form == "three_source" or inst.align16:
        return _swizzled(inst, operand, size)
    if row_in_each_register(inst, operand):
        return tuple(c // HALF * GRF_BYTES for c in range(inst.exec_size))
    rows = range(inst.exec_size)
    return tuple(((c // operand.width) * max(operand.vertical, 0) + c % operand.width * operand.horizontal) * size for c in rows)


def row_in_each_register(inst: Instruction, operand: Operand) -> bool:
    """Whether the halves of a compressed instruction take their one element from two registers."""
    whole_row = operand.width == HALF and operand.vertical == HALF and operand.horizontal == 0
    return whole_row and inst.exec_size == 2 * HALF and inst.quarter == COMPRESSED and rules(inst.gen).compressed_row


def _strides(operand: Operand, channels: int, size: int, linear: bool) -> tuple[int, ...]:
    """Offsets in three-source align1, which encodes no width: the width is vertical / horizontal stride, 1 where the latter is 0."""
    vertical, horizontal = operand.vertical, operand.horizontal
    if linear or not vertical and horizontal:
        return tuple(c * horizontal * size for c in range(channels))
    width = max(vertical // horizontal, 1) if horizontal else 1
    return tuple(((c // width) * vertical + c % width * horizontal) * size for c in range(channels))


def _swizzled(inst: Instruction, operand: Operand, size: int) -> tuple[int, ...]:
    if operand.replicate:
        return (0,) * inst.exec_size
    swizzle = 0b11100100 if operand.swizzle is None else operand.swizzle
    if size == PAIR:
        return _swizzled_pairs(inst, operand, swizzle)
    stride = VECTOR_CHANNELS if inst.form == "three_source" else max(operand.vertical, 0)
    return tuple(((c // VECTOR_CHANNELS) * stride + (swizzle >> 2 * (c % VECTOR_CHANNELS) & 3)) * size for c in range(inst.exec_size))


def _swizzled_pairs(inst: Instruction, operand: Operand, swizzle: int) -> tuple[int, ...]:
    """Offsets of 64-bit channels: a swizzle selects dwords of each 16 bytes, so two of its selections are one channel, and only xy and zw
    are whole elements (public: Mesa's vec4 compiler, which writes xyxy, zwzw and zwxy for them). With a vertical stride of 0, channels of a
    second register come from the next one on some generations (Mesa commit ac5a06ff83c)."""
    pairs = [(swizzle >> 4 * pair & 3, swizzle >> 4 * pair + 2 & 3) for pair in range(2)]
    if any(low % 2 or high != low + 1 for low, high in pairs):
        raise Unsupported(f"a swizzle of {operand.type} that selects halves of elements is not simulated")
    strided = inst.form == "three_source" or operand.vertical
    row, register = 2 * PAIR if strided else 0, GRF_BYTES if not strided and rules(inst.gen).stride_0_advances else 0
    return tuple(channel // 2 * row + channel // VECTOR_CHANNELS * register + pairs[channel % 2][0] * PAIR // 2
                 for channel in range(inst.exec_size))  # fmt: skip


def read_source(state: LaneState, inst: Instruction, index: int) -> Value:
    """Read a source from its register, before modifiers. Integer accumulators are read in 64 bits."""
    operand = inst.sources[index]
    if operand.file == "imm":
        return immediate(state, inst, operand)
    type = lane_type(operand)
    if operand.indirect:
        return state.read("grf", type, _indirect(state, inst, operand, source_offsets(inst, index)))
    name, start = register_location(operand, state.gen)
    if name == "null":
        return state.m.constant(type, 0, inst.exec_size)
    return read_at(state, name, operand.type, tuple(start + offset for offset in source_offsets(inst, index)))


def read_at(state: LaneState, name: str, kind: str, offsets: tuple[int, ...]) -> Value:
    if kind == NATIVE_FLOAT:
        return state.m.bitcast(state.read(_native(name, offsets), i64, offsets), f64)
    if name == "acc" and kind in WIDE_ACCUMULATORS:
        return state.read(WIDE_ACCUMULATORS[kind], i64, _wide(kind, offsets))
    return state.read(name, LANES[kind], offsets)


def _native(name: str, offsets: tuple[int, ...]) -> str:
    if name != "acc" or offsets[0]:
        raise Unsupported(f"operands of type {NATIVE_FLOAT} elsewhere than in acc0 are not yet simulated")
    return WIDE_ACCUMULATORS["d"]


def _wide(kind: str, offsets: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(offset // LANES[kind].bytes * i64.bytes for offset in offsets)


def _indirect(state: LaneState, inst: Instruction, operand: Operand, offsets: tuple[int, ...]) -> Value:
    """Byte offsets of a register-indirect operand: a0 plus the offset, for each row with VxH (IVB 1863-1909), plus the region's offsets."""
    m = state.m
    if operand.vertical == VXH:
        rows = tuple((operand.address_sub + c // operand.width) * u16.bytes for c in range(inst.exec_size))
    else:
        rows = (operand.address_sub * u16.bytes,) * inst.exec_size
    base = m.convert(state.read("a", u16, rows), i32) + operand.offset
    return m.bitcast(base + m.constant(i32, list(offsets)), u32)


def immediate(state: LaneState, inst: Instruction, operand: Operand) -> Value:
    m, type = state.m, lane_type(operand)
    if operand.type in PACKED:
        return _packed(state, inst, operand)
    bits = operand.immediate & (1 << type.bits) - 1
    return m.bitcast(m.constant(type.unsigned, bits, inst.exec_size), type)


def _packed(state: LaneState, inst: Instruction, operand: Operand) -> Value:
    """Lanes of a packed vector immediate. The destination's stride selects the elements: words for integers, dwords for floats in each 16
    bytes (IVB 2912-2914)."""
    kind = types.type_of(operand.type)
    assert kind is not None
    unit = 16 // kind.lanes
    step = (inst.dst.horizontal or 1) * types.size(inst.dst.type) if inst.dst is not None else unit
    elements = [channel * step // unit % kind.lanes for channel in range(inst.exec_size)]
    bits = 32 // kind.lanes
    fields = [operand.immediate >> bits * element & (1 << bits) - 1 for element in elements]
    m = state.m
    if operand.type == "vf":
        return m.bitcast(m.constant(u32, [small_float(field) for field in fields]), f32)
    values = [field - 16 if operand.type == "v" and field >= 8 else field for field in fields]
    return m.constant(PACKED[operand.type], values)


def small_float(byte: int) -> int:
    """The bits of a float from an element of a vf immediate: 8 bits, exponent bias 3, zero but no other denormal (IVB 746-794)."""
    sign, exponent, fraction = byte >> 7, byte >> 4 & 7, byte & 15
    return sign << 31 if not byte & 0x7F else sign << 31 | exponent + 124 << 23 | fraction << 19


# -- destinations --------------------------------------------------------------------------------------------------


@lru_cache(1 << 14)
def destination_offsets(inst: Instruction) -> tuple[int, ...]:
    operand = inst.dst
    assert operand is not None
    packed = inst.align16 or inst.form == "three_source"
    stride = (1 if packed else operand.horizontal) * lane_type(operand).bytes
    offsets = [channel * stride for channel in range(inst.exec_size)]
    if operand.file == "mrf" and operand.number & COMPRESSED_4:
        offsets = [offset + 3 * GRF_BYTES if offset >= GRF_BYTES else offset for offset in offsets]
    return tuple(offsets)


def channel_enables(state: LaneState, inst: Instruction) -> Value | None:
    """The channel enables of an align16 destination, which NoMask does not override (IVB 1421-1443)."""
    if inst.dst is None or inst.dst.write_mask is None or not (inst.align16 or inst.form == "three_source"):
        return None
    enables = inst.dst.write_mask
    if lane_type(inst.dst).bytes == PAIR:
        enables = _pair_enables(enables)
    return state.m.mask_from_bits(sum((enables >> c % VECTOR_CHANNELS & 1) << c for c in range(inst.exec_size)), inst.exec_size)


def _pair_enables(enables: int) -> int:
    """Channel enables of 64-bit channels: a bit for each of the four. Only xy and zw are of 32-bit channels, two bits for each: the first
    or the second of every 16 bytes (public: Mesa brw_vec4.cpp, scalarize_df)."""
    return {XY: 0b0101, ZW: 0b1010}.get(enables, enables)


def write_destination(state: LaneState, inst: Instruction, value: Value, mask: Value, whole: Value | None = None) -> None:
    """Write a value of the destination's type; `whole` is an integer result in 64 bits, for accumulators."""
    operand = inst.dst
    assert operand is not None
    if operand.indirect:
        state.write("grf", value, _indirect(state, inst, operand, destination_offsets(inst)), mask)
        return
    name, start = register_location(operand, state.gen)
    if name == "null":
        return
    if operand.file == "mrf":
        start = (operand.number & COMPRESSED_4 - 1) * GRF_BYTES + operand.sub
    write_at(state, name, operand.type, tuple(start + offset for offset in destination_offsets(inst)), value, mask, whole)


def write_at(state: LaneState, name: str, kind: str, offsets: Offsets, value: Value, mask: Value, whole: Value | None = None) -> None:
    if kind == NATIVE_FLOAT:
        assert isinstance(offsets, tuple)
        state.write(_native(name, offsets), state.m.bitcast(value, i64), offsets, mask)
        return
    if name == "a" and state.rules.short_addresses:
        assert isinstance(offsets, tuple)
        value = _short_addresses(state, value, offsets)
    state.write(name, value, offsets, mask)
    if name != "acc":
        return
    assert isinstance(offsets, tuple)
    if kind in WIDE_ACCUMULATORS:
        known = state.m.convert(value, i64) if whole is None else whole
        state.write(WIDE_ACCUMULATORS[kind], known, _wide(kind, offsets), mask)
    _convert_accumulator(state, kind, offsets, mask)


def _short_addresses(state: LaneState, value: Value, offsets: tuple[int, ...]) -> Value:
    """A value for a0 without the upper four bits of each word from a0.2 on, which are not populated (IVB 1916-1921)."""
    kept = [sum((0x0F if at % 2 and at >= WHOLE_ADDRESSES else 0xFF) << 8 * (at - start) for at in range(start, start + value.type.bytes))
            for start in offsets]  # fmt: skip
    bits = state.m.bitcast(value, value.type.unsigned)
    return state.m.bitcast(bits & state.m.constant(bits.type, kept), value.type)


def _convert_accumulator(state: LaneState, kind: str, offsets: tuple[int, ...], mask: Value) -> None:
    """Update the 64-bit integers of the accumulator's other types after a write in one type: its bytes, sign-extended."""
    m, size = state.m, LANES[kind].bytes
    for other in ("d", "w"):
        if WIDE_ACCUMULATORS[other] == WIDE_ACCUMULATORS.get(kind):
            continue
        width = LANES[other].bytes
        for part in range(0, max(size, width), width):
            places = tuple((offset + part) // width * width for offset in offsets)
            state.write(WIDE_ACCUMULATORS[other], m.convert(state.read("acc", LANES[other], places), i64), _wide(other, places), mask)
