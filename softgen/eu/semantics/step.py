"""Execution of ALU instructions: read, modify, convert, compute, condition, saturate, convert, write under mask.

Integers of up to 32 bits are computed in 64 bits, so that conditions and saturation see the exact result; where only the low bits of the
result are used, or sources are only compared, 32 bits give the same. Conditions are evaluated before saturation.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from softgen.bits.units import GRF_BYTES
from softgen.errors import DecodeError, Unsupported
from softgen.eu.isa import opcodes
from softgen.eu.isa.instruction import Instruction, Operand
from softgen.eu.isa.rules import COMPUTED_AS, execution_type, writes_accumulator
from softgen.eu.semantics import OPS, OpSemantics, alu, convert, logic, math, pairs  # noqa: F401   importing them registers their opcodes
from softgen.eu.semantics.logic import OVERFLOW, U, compare
from softgen.eu.thread.lane_state import FlushedFloats, LaneState
from softgen.eu.thread.predicate import first_channel, predicate
from softgen.eu.thread.regions import (
    LANES,
    channel_enables,
    is_accumulator,
    lane_type,
    read_at,
    read_source,
    register_location,
    write_at,
    write_destination,
)
from softgen.lanes.types import LaneType, bool_, f16, f32, f64, i32, i64, u32, u64
from softgen.lanes.value import Value
from softgen.shared_functions.extended_math.functions import alternate

FLOATS = {"hf": f16, "f": f32, "df": f64}
LOGICAL = frozenset({"and", "or", "xor", "not"})
BITWISE = LOGICAL | {"shl", "shr", "asr", "rol", "ror"}  # their conditions are evaluated on the truncated result
NATIVE = "nf"  # results for an accumulator of this type are computed in it
EVEN_CHANNELS = 0x55555555
IMPLICIT = {"w": "w", "d": "d", "q": "d", "hf": "hf", "f": "f", "df": "df"}  # execution type -> type of the implicit accumulator


def step(state: LaneState, inst: Instruction) -> None:
    """Execute an ALU instruction."""
    meaning = OPS.get(inst.opcode)
    if meaning is None:
        raise Unsupported(f"{inst.opcode} is not yet simulated")
    if state.rules.double_pairs and pairs.uses_doubles(inst):
        inst = pairs.with_halved_channels(inst)
    AluStep(state, inst, meaning).run()


@lru_cache(1 << 14)
def sources(inst: Instruction) -> tuple[int, ...]:
    """Indices of the sources that are read; of a math instruction as many as its function has."""
    count = len(inst.sources)
    if inst.opcode == "math":
        function = opcodes.math_function(inst.function, inst.gen)
        count = function.sources if function else count
    return tuple(range(count))


@lru_cache(1 << 14)
def compute_type(inst: Instruction, meaning: OpSemantics) -> tuple[str, LaneType]:
    """The execution type and its lane type; raises DecodeError for instructions that no machine could execute."""
    if inst.dst is not None and inst.dst.file == "imm":
        raise DecodeError("the destination is an immediate")
    used = [inst.sources[index] for index in sources(inst)]
    for operand in used:
        lane_type(operand)
    kind = execution_type(operand.type for operand in (*used, *([inst.dst] if inst.dst and inst.dst.type == NATIVE else [])))
    if not kind:
        named = " ".join(operand.type or "?" for operand in used)
        raise DecodeError(f"{inst.opcode} cannot compute with sources of types {named}")
    _check_kind(inst, kind)
    if kind in FLOATS:
        return kind, FLOATS[kind]
    unsigned = any(operand.type in ("ud", "uq") for operand in used)
    plain = not any(operand.negate or operand.absolute for operand in used)
    if kind == "q":
        return kind, u64 if plain and all(operand.type[0] == "u" for operand in used) else i64
    if meaning.ordered and plain and all(operand.type[0] == "u" or not unsigned for operand in used):
        if not any(is_accumulator(operand, inst.gen) for operand in used):
            return kind, u32 if unsigned else i32
    return kind, i32 if _low_bits(inst, meaning, used) else i64


def _check_kind(inst: Instruction, kind: str) -> None:
    """Check that the opcode takes floats or integers, whichever the sources are. Compilers mix the sizes and signs that the table lists."""
    row = opcodes.opcode(inst.opcode, inst.gen)
    if row is None or not row.legal:
        return
    allowed = {name for _, names in row.legal for name in names}
    if not any((COMPUTED_AS.get(name) in FLOATS) == (kind in FLOATS) for name in allowed):
        given = " ".join(operand.type for operand in inst.sources)
        raise DecodeError(f"{inst.opcode} takes sources of types {' '.join(sorted(allowed))}, not {given}")


def _low_bits(inst: Instruction, meaning: OpSemantics, used: Iterable[Operand]) -> bool:
    """Whether the result depends only on the low 32 bits of each source."""
    if not meaning.modular or inst.saturate or inst.condition or writes_accumulator(inst) or inst.dst is None:
        return False
    target = LANES.get(inst.dst.type)
    if target is None or target.is_float or target.bits > 32:
        return False
    return not any(is_accumulator(operand, inst.gen) for operand in (inst.dst, *used))


class AluStep:
    """One execution of an ALU instruction: the Computation that semantics functions use."""

    def __init__(self, state: LaneState, inst: Instruction, meaning: OpSemantics) -> None:
        if inst.dst is None:
            raise DecodeError(f"{inst.opcode} has no destination")
        self.state, self.instruction, self.meaning, self.m = state, inst, meaning, state.m
        self.kind, self.type = compute_type(inst, meaning)
        self.target = lane_type(inst.dst)
        self.enabled = state.enabled(inst)
        self.flagged = self.accumulated = False
        self.flushed: FlushedFloats | None = getattr(state, "flushed", None)
        if meaning.selects or not inst.predicate:
            self.mask = self.enabled
        else:
            self.mask = self.enabled & predicate(state, inst)
        enables = channel_enables(state, inst)
        if enables is not None:
            self.mask = self.mask & enables
        row = opcodes.opcode(inst.opcode, inst.gen)
        if row is not None and "even_channels" in row.takes:
            self.mask = self.mask & self.m.mask_from_bits(EVEN_CHANNELS & (1 << inst.exec_size) - 1, inst.exec_size)

    def run(self) -> None:
        inst = self.instruction
        if self._is_raw_move():
            write_destination(self.state, inst, read_source(self.state, inst, 0), self.mask)
            return
        given = () if self.meaning.own else [self.source(index) for index in sources(inst)]
        result = self.meaning.function(self, *given)
        if result.type is bool_:
            self._write_comparison(result)
            return
        self.finish(result)

    def finish(self, result: Value) -> None:
        """Set the flags and write the destination."""
        result = self._clean(result)
        if self.instruction.condition and not self.meaning.selects and not self.flagged:
            self.set_flags(self._condition(result))
        self._write(result)

    def _is_raw_move(self) -> bool:
        """Whether the instruction is a raw move, which preserves denormals and NaN payloads (IVB 905-912)."""
        inst = self.instruction
        source, dst = inst.sources[0] if inst.sources else None, inst.dst
        if inst.opcode != "mov" or source is None or dst is None or source.type != dst.type:
            return False
        plain = not (source.negate or source.absolute or inst.saturate or inst.condition or inst.acc_write)
        return plain and not is_accumulator(source, inst.gen) and not is_accumulator(dst, inst.gen)

    # -- sources ---------------------------------------------------------------------------------------------------

    def source(self, index: int) -> Value:
        """A source in the execution type, with its modifiers applied."""
        m, operand = self.m, self.instruction.sources[index]
        value = m.convert(read_source(self.state, self.instruction, index), self.type)
        flushed = self._is_flushed(value)
        logical = self.state.rules.logical_modifiers and self.instruction.opcode in LOGICAL
        if operand.absolute and not logical:
            value = m.absolute(value)
        if operand.negate:
            value = ~value if logical else -value
        if flushed:
            self._note_flushed(value)  # whatever its sign
        return self._clean(value)

    def _is_flushed(self, *values: Value) -> bool:
        """Whether floats are known to have no denormals."""
        return self.flushed is not None and all(self.flushed.holds(value) for value in values)

    def _note_flushed(self, value: Value) -> None:
        if self.flushed is not None:
            self.flushed.note(value)

    def unconverted(self, index: int) -> Value:
        """A source in its own type, without its modifiers."""
        return read_source(self.state, self.instruction, index)

    def _clean(self, value: Value) -> Value:
        return value if self.meaning.raw or self._converts(value.type) else self.clean(value)

    def clean(self, value: Value) -> Value:
        """Flush denormals as cr0 selects; in ALT mode also replace infinities and NaN (IVB 166-169)."""
        if not value.type.is_float:
            return value
        m, mode, kind = self.m, self.state.mode, {f16: "hf", f32: "f", f64: "df"}[value.type]
        alt = mode.alt and kind == "f"
        flushes = alt or kind in mode.flushes
        if flushes and not self._is_flushed(value):
            value = m.flush(value)
        value = alternate(m, value) if alt else value
        if flushes:
            self._note_flushed(value)
        return value

    def _converts(self, type: LaneType) -> bool:
        """Whether the instruction converts to another type; conversions do not flush denormals (IVB 903)."""
        return self.instruction.opcode in ("mov", "f32to16", "f16to32") and type is not self.target

    # -- the Computation interface ----------------------------------------------------------------------------------

    def add(self, a: Value, b: Value) -> Value:
        return self.m.add(a, b, self.state.mode.rounding)

    def sub(self, a: Value, b: Value) -> Value:
        return self.m.sub(a, b, self.state.mode.rounding)

    def mul(self, a: Value, b: Value) -> Value:
        return self.m.mul(a, b, self.state.mode.rounding)

    def fma(self, a: Value, b: Value, c: Value) -> Value:
        return self.m.fma(a, b, c, self.state.mode.rounding)

    def number(self, value: float) -> Value:
        return self.m.constant(self.type, value, self.instruction.exec_size)

    def predicate(self) -> Value:
        return predicate(self.state, self.instruction)

    def restrict(self, mask: Value) -> None:
        """Restrict the written channels."""
        self.mask = self.mask & mask

    def register(self, index: int, first: int, step: int) -> Value:
        """Dwords of a source by index. `step` 0: dword `first` of the four that it starts in, or where it starts; 8: from dword `first`
        after its start on, where each eight channels take two registers."""
        operand = self.instruction.sources[index]
        if operand.indirect:
            raise Unsupported(f"{self.instruction.opcode} with a register-indirect source is not yet simulated")
        name, start = register_location(operand, self.state.gen)
        start = start // 16 * 16 if step == 0 and first else start
        offsets = tuple(start + 4 * first + 4 * (c % 8 + c // 8 * 2 * step if step else 0) for c in range(self.instruction.exec_size))
        value = self.m.convert(read_at(self.state, name, operand.type, offsets), self.type)
        if operand.absolute:
            value = self.m.absolute(value)
        return self._clean(-value if operand.negate else value)

    def write_next(self, value: Value) -> None:
        """Write a value to the register after the destination."""
        inst = self.instruction
        assert inst.dst is not None
        name, start = register_location(inst.dst, self.state.gen)
        offsets = tuple(start + GRF_BYTES + channel * self.target.bytes for channel in range(inst.exec_size))
        write_at(self.state, name, inst.dst.type, offsets, self._to_target(value), self.mask)

    # -- accumulators ----------------------------------------------------------------------------------------------

    def _accumulator(self) -> tuple[str, tuple[int, ...]]:
        """The implicit accumulator's type and offsets: acc0, or acc1 for the second quarter of types that have it (IVB 1966-1986)."""
        kind = IMPLICIT[self.kind]
        if kind in ("w", "d") and not self.target.is_float and self.target.bits >= 32:
            kind = "d"
        size = LANES[kind].bytes
        channels = GRF_BYTES // size
        inst, start = self.instruction, 0
        if kind in self.state.rules.second_accumulator and inst.exec_size <= channels:
            start = first_channel(self.state, inst) // channels % 2 * GRF_BYTES
        if start + inst.exec_size * size > 2 * GRF_BYTES:
            raise Unsupported(f"{inst.opcode} of {inst.exec_size} channels exceeds the accumulator")
        return kind, tuple(start + channel * size for channel in range(inst.exec_size))

    def accumulator(self) -> Value:
        kind, offsets = self._accumulator()
        return self.m.convert(read_at(self.state, "acc", kind, offsets), self.type)

    def set_accumulator(self, value: Value) -> None:
        self.accumulated = True
        if not writes_accumulator(self.instruction) or not self.state.accumulates:
            return
        kind, offsets = self._accumulator()
        if value.type.is_float:
            write_at(self.state, "acc", kind, offsets, self.m.convert(value, LANES[kind]), self.mask)
        else:
            write_at(self.state, "acc", kind, offsets, self.m.convert(value, LANES[kind]), self.mask, value)

    # -- results ---------------------------------------------------------------------------------------------------

    def set_flags(self, value: Value) -> None:
        self.flagged = True
        inst = self.instruction
        first = inst.flag * 32 + inst.flag_sub * 16 + first_channel(self.state, inst)
        self.state.write_flags(first, value, self.mask)

    def _condition(self, result: Value) -> Value:
        inst, m = self.instruction, self.m
        if inst.opcode in BITWISE or inst.opcode == "mov" and result.type.is_float and not self.target.is_float:
            result = self._to_target(result)
        if inst.condition == U:
            return m.is_nan(result) if result.type.is_float else m.constant(bool_, 0, result.lanes)
        if inst.condition == OVERFLOW:
            return self._overflow(result)
        holds = compare(inst.condition, result, 0)
        if holds is None:
            raise Unsupported(f"condition modifier {inst.condition} is not yet simulated")
        return holds

    def _overflow(self, result: Value) -> Value:
        if result.type.is_float:
            return self.m.is_inf(result)
        if self.target.is_float:
            return self.m.constant(bool_, 0, result.lanes)
        return self.m.convert(self.m.saturate_int(result, self.target), result.type) != result

    def _write_comparison(self, holds: Value) -> None:
        """Write a comparison's result: the flag, and all ones or zeros to the destination."""
        if self.instruction.condition:
            self.set_flags(holds)
        bits = self.target.unsigned
        full = self.m.constant(bits, bits.highest, holds.lanes)
        value = self.m.select(holds, full, self.m.like(full, 0))
        write_destination(self.state, self.instruction, self.m.bitcast(value, self.target), self.mask)

    def _to_target(self, result: Value) -> Value:
        """The result in the destination's type, without saturation."""
        rounding = self.state.mode.rounding
        if result.type is f64 and self.target is f32 and self.state.rules.double_to_float != "mode":
            rounding = self.state.rules.double_to_float
        return self.m.convert(result, self.target, rounding)

    def _saturated(self, result: Value) -> Value:
        m = self.m
        if self.target.is_float:
            value = self._to_target(result)
            value = m.select(value > 0.0, value, m.like(value, 0.0))  # NaN becomes 0 (KBL 7627-7646)
            return m.select(value > 1.0, 1.0, value)
        if result.type.is_float:
            return self._to_target(result)
        if self.kind == "q" and self.instruction.opcode == "add":
            result = self._saturated_sum(result)
        elif self.kind == "q" and self.instruction.opcode not in ("mov", "sel"):
            raise Unsupported(f"{self.instruction.opcode} of quadwords with saturation is not yet simulated")
        return m.saturate_int(result, self.target)

    def _saturated_sum(self, total: Value) -> Value:
        """A saturated sum of quadwords."""
        m, a, b = self.m, self.source(0), self.source(1)
        if not total.type.is_signed:
            return m.select(total < a, total.type.highest, total)
        over = ((a ^ total) & (b ^ total)) < 0
        return m.select(over, m.select(a < 0, m.like(a, a.type.lowest), m.like(a, a.type.highest)), total)

    def _write(self, result: Value) -> None:
        """Saturate or convert the result and write it to the destination and the accumulator."""
        inst = self.instruction
        value = self._saturated(result) if inst.saturate else self._to_target(result)
        if inst.saturate and self._is_flushed(result) and self.target is result.type:
            self._note_flushed(value)
        if value.type is not result.type and not self.meaning.raw and inst.opcode != "mov":
            value = self._clean(value)
        whole = None
        if result.type is i64 and not value.type.is_float and not inst.saturate:
            whole = result
        write_destination(self.state, inst, value, self.mask, whole)
        if writes_accumulator(inst) and not self.accumulated:
            self.set_accumulator(value if whole is None else whole)
