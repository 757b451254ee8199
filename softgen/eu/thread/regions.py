"""Regions: which bytes the channels of an operand are, and reading and writing them (IVB 2976-3052).

Whether the second half of a wide instruction sees what its first half wrote is decided here and in `step`: it does not. All sources are
read whole before anything is written.
"""

from __future__ import annotations

from functools import lru_cache

from softgen.errors import DecodeError, Unsupported
from softgen.eu.isa import registers, types
from softgen.eu.isa.instruction import VXH, Instruction, Operand
from softgen.eu.thread.lane_state import Offsets, State
from softgen.eu.thread.state import REGISTER
from softgen.lanes.types import LaneType, f16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64
from softgen.lanes.value import Value

LANES = {"ub": u8, "b": i8, "uw": u16, "w": i16, "ud": u32, "d": i32, "uq": u64, "q": i64, "hf": f16, "f": f32, "df": f64}
PACKED = {"v": i16, "uv": u16, "vf": f32}  # what the elements of a packed immediate become
COMPRESSED_4 = 0x80  # message register number: the second half goes four registers on
WIDE = {"ud": "acc_d", "d": "acc_d", "uw": "acc_w", "w": "acc_w"}  # where accumulators keep whole integers
NATIVE = "nf"  # wider than a double, in accumulators only; simulated as a double, kept where they keep whole integers
FOUR = 4  # channels that a swizzle mixes


def lane_type(operand: Operand) -> LaneType:
    if operand.type == NATIVE and operand.file == "arf":
        return f64
    found = LANES.get(operand.type) or (PACKED.get(operand.type) if operand.file == "imm" else None)
    if found is None:
        raise Unsupported(f"operands of type {operand.type or '?'} are not yet simulated")
    return found


def place(operand: Operand, gen: float) -> tuple[str, int]:
    """The register file or architecture register of a direct operand, and where in it the operand starts."""
    if operand.file != "arf":
        if operand.file == "imm":
            raise DecodeError("an immediate stands where a register is needed")
        return operand.file, operand.number * REGISTER + operand.sub
    found = registers.find(operand.number, gen)
    if found is None:
        raise DecodeError(f"gen {gen:g} has no architecture register {operand.number:#x}")
    row, index = found
    return row.name, index * row.size + operand.sub


def is_accumulator(operand: Operand | None, gen: float) -> bool:
    return operand is not None and operand.file == "arf" and not operand.indirect and place(operand, gen)[0] == "acc"


# -- sources -------------------------------------------------------------------------------------------------------


@lru_cache(1 << 14)
def source_offsets(one: Instruction, index: int) -> tuple[int, ...]:
    """Byte offsets of a source's channels from where it starts."""
    operand = one.sources[index]
    size = lane_type(operand).bytes
    if one.form == "three_source_align1":
        return _strides(operand, one.exec_size, size, linear=index == 2)
    if one.form == "three_source" or one.align16:
        return _swizzled(one, operand, size)
    rows = range(one.exec_size)
    return tuple(((c // operand.width) * max(operand.vertical, 0) + c % operand.width * operand.horizontal) * size for c in rows)


def _strides(operand: Operand, channels: int, size: int, linear: bool) -> tuple[int, ...]:
    """Three-source align1: no width is written. It is what makes rows of `vertical` elements, one where there is no inner stride."""
    vertical, horizontal = operand.vertical, operand.horizontal
    if linear or not vertical and horizontal:
        return tuple(c * horizontal * size for c in range(channels))
    width = max(vertical // horizontal, 1) if horizontal else 1
    return tuple(((c // width) * vertical + c % width * horizontal) * size for c in range(channels))


def _swizzled(one: Instruction, operand: Operand, size: int) -> tuple[int, ...]:
    if operand.replicate:
        return (0,) * one.exec_size
    swizzle = 0b11100100 if operand.swizzle is None else operand.swizzle
    if size > 4 and swizzle != 0b11100100:
        raise Unsupported("swizzles of 64-bit operands are not yet simulated")
    stride = FOUR if one.form == "three_source" else max(operand.vertical, 0)
    return tuple(((c // FOUR) * stride + (swizzle >> 2 * (c % FOUR) & 3)) * size for c in range(one.exec_size))


def read_source(state: State, one: Instruction, index: int) -> Value:
    """A source as it stands in its register, before modifiers. Integer accumulators come whole, in 64 bits."""
    operand = one.sources[index]
    if operand.file == "imm":
        return immediate(state, one, operand)
    type = lane_type(operand)
    if operand.indirect:
        return state.read("grf", type, _indirect(state, one, operand, source_offsets(one, index)))
    name, start = place(operand, state.gen)
    if name == "null":
        return state.m.constant(type, 0, one.exec_size)
    return read_at(state, name, operand.type, tuple(start + offset for offset in source_offsets(one, index)))


def read_at(state: State, name: str, kind: str, offsets: tuple[int, ...]) -> Value:
    if kind == NATIVE:
        return state.m.bitcast(state.read(_native(name, offsets), i64, offsets), f64)
    if name == "acc" and kind in WIDE:
        return state.read(WIDE[kind], i64, _wide(kind, offsets))
    return state.read(name, LANES[kind], offsets)


def _native(name: str, offsets: tuple[int, ...]) -> str:
    if name != "acc" or offsets[0]:
        raise Unsupported(f"operands of type {NATIVE} elsewhere than in acc0 are not yet simulated")
    return WIDE["d"]


def _wide(kind: str, offsets: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(offset // LANES[kind].bytes * i64.bytes for offset in offsets)


def _indirect(state: State, one: Instruction, operand: Operand, offsets: tuple[int, ...]) -> Value:
    """a0 plus an offset, per row with VxH (IVB 1863-1909), plus where each channel stands in the region."""
    m = state.m
    if operand.vertical == VXH:
        rows = tuple((operand.address_sub + c // operand.width) * u16.bytes for c in range(one.exec_size))
    else:
        rows = (operand.address_sub * u16.bytes,) * one.exec_size
    base = m.convert(state.read("a", u16, rows), i32) + operand.offset
    return m.bitcast(base + m.constant(i32, list(offsets)), u32)


def immediate(state: State, one: Instruction, operand: Operand) -> Value:
    m, type = state.m, lane_type(operand)
    if operand.type in PACKED:
        return _packed(state, one, operand)
    bits = operand.immediate & (1 << type.bits) - 1
    return m.bitcast(m.constant(type.unsigned, bits, one.exec_size), type)


def _packed(state: State, one: Instruction, operand: Operand) -> Value:
    """Which element a channel takes follows from where it writes: words of 16 bytes for integers, dwords for floats (IVB 2912-2914)."""
    kind = types.type_of(operand.type)
    assert kind is not None
    unit = 16 // kind.lanes
    step = (one.dst.horizontal or 1) * types.size(one.dst.type) if one.dst is not None else unit
    elements = [channel * step // unit % kind.lanes for channel in range(one.exec_size)]
    bits = 32 // kind.lanes
    fields = [operand.immediate >> bits * element & (1 << bits) - 1 for element in elements]
    m = state.m
    if operand.type == "vf":
        return m.bitcast(m.constant(u32, [small_float(one) for one in fields]), f32)
    values = [field - 16 if operand.type == "v" and field >= 8 else field for field in fields]
    return m.constant(PACKED[operand.type], values)


def small_float(byte: int) -> int:
    """The float bits of an 8-bit one: exponent bias 3, no denormals, zero apart (IVB 746-794)."""
    sign, exponent, fraction = byte >> 7, byte >> 4 & 7, byte & 15
    return sign << 31 if not byte & 0x7F else sign << 31 | exponent + 124 << 23 | fraction << 19


# -- destinations --------------------------------------------------------------------------------------------------


@lru_cache(1 << 14)
def destination_offsets(one: Instruction) -> tuple[int, ...]:
    operand = one.dst
    assert operand is not None
    packed = one.align16 or one.form == "three_source"
    stride = (1 if packed else operand.horizontal) * lane_type(operand).bytes
    offsets = [channel * stride for channel in range(one.exec_size)]
    if operand.file == "mrf" and operand.number & COMPRESSED_4:
        offsets = [offset + 3 * REGISTER if offset >= REGISTER else offset for offset in offsets]
    return tuple(offsets)


def channel_enables(state: State, one: Instruction) -> Value | None:
    """The channels an align16 destination writes; applied with NoMask too (IVB 1421-1443)."""
    if one.dst is None or one.dst.write_mask is None or not (one.align16 or one.form == "three_source"):
        return None
    enables = one.dst.write_mask
    return state.m.mask_from_bits(sum((enables >> c % FOUR & 1) << c for c in range(one.exec_size)), one.exec_size)


def write_destination(state: State, one: Instruction, value: Value, mask: Value, whole: Value | None = None) -> None:
    """`value` has the destination's type; `whole` is an integer result in 64 bits, for accumulators."""
    operand = one.dst
    assert operand is not None
    if operand.indirect:
        state.write("grf", value, _indirect(state, one, operand, destination_offsets(one)), mask)
        return
    name, start = place(operand, state.gen)
    if name == "null":
        return
    if operand.file == "mrf":
        start = (operand.number & COMPRESSED_4 - 1) * REGISTER + operand.sub
    write_at(state, name, operand.type, tuple(start + offset for offset in destination_offsets(one)), value, mask, whole)


def write_at(state: State, name: str, kind: str, offsets: Offsets, value: Value, mask: Value, whole: Value | None = None) -> None:
    if kind == NATIVE:
        assert isinstance(offsets, tuple)
        state.write(_native(name, offsets), state.m.bitcast(value, i64), offsets, mask)
        return
    state.write(name, value, offsets, mask)
    if name != "acc":
        return
    assert isinstance(offsets, tuple)
    if kind in WIDE:
        known = state.m.convert(value, i64) if whole is None else whole
        state.write(WIDE[kind], known, _wide(kind, offsets), mask)
    _respell(state, kind, offsets, mask)


def _respell(state: State, kind: str, offsets: tuple[int, ...], mask: Value) -> None:
    """What the other kinds of integers see of an accumulator that was written as one kind: its bytes, with their sign."""
    m, size = state.m, LANES[kind].bytes
    for other in ("d", "w"):
        if WIDE[other] == WIDE.get(kind):
            continue
        width = LANES[other].bytes
        for part in range(0, max(size, width), width) if size > width else (0,):
            places = tuple((offset + part) // width * width for offset in offsets)
            state.write(WIDE[other], m.convert(state.read("acc", LANES[other], places), i64), _wide(other, places), mask)
