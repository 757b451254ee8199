"""A fused multiply-add of 16-bit floats, rounded once, by what the target has: an instruction of its own, f32 with a rounding in the
instruction, or f32 to nearest.

Rounding to f32 and from there to f16 would be rounding twice. Rounded to odd first, it is not (rounding.to_odd): the f32 is the result
cut off, with its last bit set where something was cut.
"""

from __future__ import annotations

from softgen.lanes.llvm import rounding
from softgen.lanes.llvm.text import LlvmText
from softgen.lanes.machine import Machine
from softgen.lanes.types import f16

FUSED = ("avx512fp16", "fullfp16")                      # features of targets with an instruction of its own: x86-64, aarch64
WIDE = 16                                               # the lanes of an instruction that says how to round
DOWN, UP, CUT = 9, 10, 11                               # how, and that no exception is noted
SINGLES, INTEGERS = f"<{WIDE} x float>", f"<{WIDE} x i32>"


def fused(m: Machine, ir: LlvmText, lanes: int, a: str, b: str, c: str) -> str:
    """a × b + c of lanes as i16."""
    if any(map(ir.module.has, FUSED)):
        return _native(ir, lanes, a, b, c)
    if ir.module.has("avx512f"):
        return _narrowed(m, ir, lanes, [_part(ir, lanes, first, a, b, c) for first in range(0, lanes, WIDE)])
    found: str = rounding.fma_half(m, *(m._value(f16, lanes, operand) for operand in (a, b, c))).payload
    return found


def _halves(ir: LlvmText, lanes: int, bits: str) -> str:
    return ir.emit(f"bitcast <{lanes} x i16> {bits} to <{lanes} x half>")


def _native(ir: LlvmText, lanes: int, *operands: str) -> str:
    vector = f"<{lanes} x half>"
    found = ir.intrinsic("llvm.fma", vector, [(vector, _halves(ir, lanes, operand)) for operand in operands], (vector,))
    return ir.emit(f"bitcast {vector} {found} to <{lanes} x i16>")


def _part(ir: LlvmText, lanes: int, first: int, *operands: str) -> str:
    """Lanes from the first on, in f32 rounded to odd. An exact zero is +0 cut off and -0 rounded down: the bit that this sets is too small
    for an f16 to show."""
    order = ", ".join(f"i32 {min(first + lane, lanes - 1)}" for lane in range(WIDE))
    wide = []
    for operand in operands:
        part = ir.emit(f"shufflevector <{lanes} x i16> {operand}, <{lanes} x i16> poison, <{WIDE} x i32> <{order}>")
        wide.append((SINGLES, ir.emit(f"fpext <{WIDE} x half> {_halves(ir, WIDE, part)} to {SINGLES}")))
    down, up, cut = (ir.intrinsic("llvm.x86.avx512.vfmadd.ps.512", SINGLES, [*wide, ("i32", str(how))], ()) for how in (DOWN, UP, CUT))
    down, up, cut = (ir.emit(f"bitcast {SINGLES} {single} to {INTEGERS}") for single in (down, up, cut))
    apart = ir.emit(f"xor {INTEGERS} {down}, {up}")
    last = ir.intrinsic("llvm.umin", INTEGERS, [(INTEGERS, apart), (INTEGERS, "splat (i32 1)")], (INTEGERS,))
    return ir.emit(f"or {INTEGERS} {cut}, {last}")


def _narrowed(m: Machine, ir: LlvmText, lanes: int, parts: list[str]) -> str:
    """Concatenated parts, rounded to nearest."""
    halves = []
    for part in parts:
        single = ir.emit(f"bitcast {INTEGERS} {part} to {SINGLES}")
        half = ir.emit(f"fptrunc {SINGLES} {single} to <{WIDE} x half>")
        halves.append(m._value(f16, WIDE, ir.emit(f"bitcast <{WIDE} x half> {half} to <{WIDE} x i16>")))
    found: str = m.slice(m.concat(*halves), 0, lanes).payload
    return found
