"""What lane programs compute, as LLVM IR.

Exact by these facts. No fast-math flag is ever set, so LLVM neither reorders nor fuses; the host rounds to nearest, and LLVM's constant
folder does the same operations the same way. llvm.fma, sqrt, floor and their like are instructions on every host jit.py accepts; if
one became a call, jit.py would refuse the object: it may use no outside names. 16-bit floats travel as i16, so that moves keep
every bit; they are computed on in f32 (numpy.py says why that is exact), fused as half.py says. Other roundings are rounding.py.
LLVM may leave a signalling NaN signalling where an operation changes nothing (x × 1): programs must not tell NaNs apart.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from softgen.lanes.llvm import affine, rounding
from softgen.lanes.llvm import half as llvm_half
from softgen.lanes.llvm.mask import NO, YES, LlvmMasks
from softgen.lanes.llvm.text import LlvmText
from softgen.lanes.machine import Machine
from softgen.lanes.numpy import exact
from softgen.lanes.types import LaneType, bool_, f16, f32, f64
from softgen.lanes.value import Value

_ARITHMETIC = {"add": ("add", "fadd"), "sub": ("sub", "fsub"), "mul": ("mul", "fmul"), "div": ("", "fdiv")}
_BITWISE = {"bit_and": "and", "bit_or": "or", "bit_xor": "xor"}
_COMPARE = {"equal": ("eq", "oeq"), "not_equal": ("ne", "une"), "less": ("lt", "olt"), "less_equal": ("le", "ole"),
            "greater": ("gt", "ogt"), "greater_equal": ("ge", "oge")}
_ORDERS = frozenset({"less", "less_equal", "greater", "greater_equal"})
_WHOLE = {"sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "round_even": "roundeven"}
_KNOWN: dict[str, Callable[..., str | None]] = {
    "bit_and": lambda a, b: b if a == YES or b == NO else a if b == YES or a == NO else None,
    "bit_or": lambda a, b: a if a == YES or b == NO else b if b == YES or a == NO else None,
    "bit_not": lambda a: {YES: NO, NO: YES}.get(a),
}
_ESTIMATE = {16: ("avx512f", "llvm.x86.avx512.rsqrt14.ps.512"), 8: ("avx512vl", "llvm.x86.avx512.rsqrt14.ps.256")}   # by lanes
_WORDS = (8, 16, 32)                                    # lanes of masks that hosts keep as numbers
_COUNT = {"leading_zeros": "ctlz", "trailing_zeros": "cttz", "count_ones": "ctpop", "reverse_bits": "bitreverse"}


class LlvmArithmetic:
    """Lane-wise operations, conversions and shuffles of payloads: registers, or constants written out."""

    def __init__(self, machine: Machine, ir: LlvmText, masks: LlvmMasks) -> None:
        """`machine` runs the lane programs that stand for what hosts lack."""
        self.machine, self.ir, self.masks = machine, ir, masks

    def estimate_rsq(self, a: Value) -> Value | None:
        ir = self.ir
        if ir.module.neon:
            return self._estimate_rsq_neon(a)
        lanes = min(a.lanes, max(_ESTIMATE))
        feature, name = _ESTIMATE.get(lanes, ("", ""))
        if a.type is not f32 or not name or a.lanes % lanes or not ir.module.has(feature):
            return None
        vector = ir.vector(f32, lanes)
        kept: list[tuple[str, str]] = [(vector, "zeroinitializer"), (f"i{lanes}", "-1")]
        parts = [self.machine.slice(a, first, lanes).payload for first in range(0, a.lanes, lanes)]
        found = [ir.intrinsic(name, vector, [(vector, part), *kept], ()) for part in parts]
        return self.machine.concat(*(Value(self.machine, f32, lanes, part) for part in found))

    def _estimate_rsq_neon(self, a: Value) -> Value | None:
        """FRSQRTE is within 2^-8, and a step of Newton's within twice the square of that."""
        ir = self.ir
        lanes, step = 4, "llvm.aarch64.neon.frsqrts"
        if a.type is not f32 or a.lanes % lanes:
            return None
        vector, found = ir.vector(f32, lanes), []
        for first in range(0, a.lanes, lanes):
            x = self.machine.slice(a, first, lanes).payload
            y = ir.intrinsic("llvm.aarch64.neon.frsqrte", vector, [(vector, x)], (vector,))
            product = ir.emit(f"fmul {vector} {x}, {y}")
            change = ir.intrinsic(step, vector, [(vector, product), (vector, y)], (vector,))  # (3 - x y y) / 2
            found.append(Value(self.machine, f32, lanes, ir.emit(f"fmul {vector} {y}, {change}")))
        return self.machine.concat(*found)

    def constant(self, type: LaneType, numbers: list[float], lanes: int) -> Any:
        ir = self.ir
        if type.is_float:
            bits = struct.unpack(f"<{len(numbers)}Q", struct.pack(f"<{len(numbers)}d", *map(float, numbers)))
            return ir.constants(type, exact.from_float(f64, type, "rne", list(bits)))
        found = ir.constants(type, [int(number) for number in numbers])
        affine.constant(ir, type, numbers, found)
        return found

    def compute(self, name: str, type: LaneType, lanes: int, payloads: list[Any]) -> Any:
        if type is f16:
            return self._half(name, lanes, payloads)
        found = self._computed(name, type, lanes, payloads)
        if type.is_integer and name not in _COMPARE:
            affine.computed(self.ir, name, type, lanes, payloads, found)
        elif type is bool_ and name == "bit_and":
            affine.narrowed(self.ir, found, *payloads)
        return found

    def _computed(self, name: str, type: LaneType, lanes: int, payloads: list[Any]) -> Any:
        ir = self.ir
        vector, first = ir.vector(type, lanes), payloads[0]
        if type is bool_ and name in _KNOWN and (found := _KNOWN[name](*payloads)) is not None:
            return found
        if name in _COMPARE:
            same = [affine.uniform(ir, payload) for payload in payloads] if type.is_integer and lanes in _WORDS else [None]
            if None not in same:
                return self._compared_once(name, type, lanes, *(text() for text in same if text))
            if type.is_float and name in _ORDERS and ir.module.neon:
                first = self._fenced(vector, first)
            return ir.emit(f"{self._comparison(name, type)} {vector} {first}, {payloads[1]}")
        if name in _ARITHMETIC:
            return ir.emit(f"{_ARITHMETIC[name][type.is_float]} {vector} {first}, {payloads[1]}")
        if name in _BITWISE:
            return ir.emit(f"{_BITWISE[name]} {vector} {first}, {payloads[1]}")
        if name in _WHOLE or name == "fma":
            return ir.intrinsic(f"llvm.{_WHOLE.get(name, name)}", vector, [(vector, payload) for payload in payloads], (vector,))
        if name in _COUNT:
            flag = [("i1", "false")] if _COUNT[name] in ("ctlz", "cttz") else []
            return ir.intrinsic(f"llvm.{_COUNT[name]}", vector, [(vector, first), *flag], (vector,))
        if name == "negate":
            return ir.emit(f"fneg {vector} {first}" if type.is_float else f"sub {vector} zeroinitializer, {first}")
        if name == "bit_not":
            return ir.emit(f"xor {vector} {first}, splat ({ir.element(type)} -1)")
        if name in ("shift_left", "shift_right"):
            return self._shift(name, type, vector, first, payloads[1])
        if name == "mul_high":
            return self._mul_high(type, lanes, first, payloads[1])
        return self._divide(name, type, lanes, first, payloads[1])

    def _fenced(self, vector: str, a: str) -> str:
        """The same lanes; LLVM no longer sees that a selection is between the operands of its comparison. It makes x > 1 ? x : 1 an FMAXNM,
        which leaves a signalling NaN a NaN where the comparison is false. The fence itself becomes no instruction."""
        return self.ir.intrinsic("llvm.arithmetic.fence", vector, [(vector, a)], (vector,))

    def _compared_once(self, name: str, type: LaneType, lanes: int, a: str, b: str) -> str:
        """Lanes that are all the same. LLVM would find that out by itself, and spread one bit over a mask in many small steps."""
        ir = self.ir
        holds = ir.emit(f"{self._comparison(name, type)} {ir.element(type)} {a}, {b}")
        return ir.emit(f"bitcast i{lanes} {ir.emit(f'sext i1 {holds} to i{lanes}')} to <{lanes} x i1>")

    def _comparison(self, name: str, type: LaneType) -> str:
        integer, ordered = _COMPARE[name]
        if type.is_float:
            return f"fcmp {ordered}"
        return f"icmp {integer if name in ('equal', 'not_equal') else ('s' if type.is_signed else 'u') + integer}"

    def _shift(self, name: str, type: LaneType, vector: str, a: str, count: str) -> str:
        # The program promised a count below the width. Masking it costs nothing then, and otherwise keeps poison out.
        ir = self.ir
        below = ir.emit(f"and {vector} {count}, splat ({ir.element(type)} {type.bits - 1})")
        return ir.emit(f"{'shl' if name == 'shift_left' else 'ashr' if type.is_signed else 'lshr'} {vector} {a}, {below}")

    def _mul_high(self, type: LaneType, lanes: int, a: str, b: str) -> str:
        ir = self.ir
        vector, double = ir.vector(type, lanes), f"<{lanes} x i{2 * type.bits}>"
        a, b = (ir.emit(f"{'sext' if type.is_signed else 'zext'} {vector} {operand} to {double}") for operand in (a, b))
        product = ir.emit(f"mul {double} {a}, {b}")
        return ir.emit(f"trunc {double} {ir.emit(f'lshr {double} {product}, splat (i{2 * type.bits} {type.bits})')} to {vector}")

    def _divide(self, name: str, type: LaneType, lanes: int, a: str, b: str) -> str:
        """Where LLVM leaves the result open, the division is by one instead: by zero, and the lowest integer by -1."""
        ir = self.ir
        vector, mask, element = ir.vector(type, lanes), f"<{lanes} x i1>", ir.element(type)
        by_zero = avoid = ir.emit(f"icmp eq {vector} {b}, zeroinitializer")
        if type.is_signed:
            lowest = ir.emit(f"icmp eq {vector} {a}, splat ({element} {type.lowest})")
            minus_one = ir.emit(f"icmp eq {vector} {b}, splat ({element} -1)")
            avoid = ir.emit(f"or {mask} {by_zero}, {ir.emit(f'and {mask} {lowest}, {minus_one}')}")
        divisor = ir.emit(f"select {mask} {avoid}, {vector} splat ({element} 1), {vector} {b}")
        kind = ("s" if type.is_signed else "u") + ("div" if name == "divide_int" else "rem")
        found = ir.emit(f"{kind} {vector} {a}, {divisor}")
        instead = f"splat ({element} -1)" if name == "divide_int" else a
        return ir.emit(f"select {mask} {by_zero}, {vector} {instead}, {vector} {found}")

    def _half(self, name: str, lanes: int, payloads: list[Any]) -> str:
        ir = self.ir
        if name == "negate":
            return ir.emit(f"xor <{lanes} x i16> {payloads[0]}, splat (i16 -32768)")
        if name == "fma":
            return llvm_half.fused(self.machine, ir, lanes, *payloads)
        result = self.compute(name, f32, lanes, [self._widen(lanes, payload) for payload in payloads])
        return result if name in _COMPARE else self._narrow(lanes, result)

    def _widen(self, lanes: int, half: str) -> str:
        ir = self.ir
        return ir.emit(f"fpext <{lanes} x half> {ir.emit(f'bitcast <{lanes} x i16> {half} to <{lanes} x half>')} to <{lanes} x float>")

    def _narrow(self, lanes: int, single: str) -> str:
        ir = self.ir
        half = ir.emit(f"fptrunc <{lanes} x float> {single} to <{lanes} x half>")
        return ir.emit(f"bitcast <{lanes} x half> {half} to <{lanes} x i16>")

    def rounded(self, name: str, type: LaneType, lanes: int, rounding_: str, payloads: list[Any]) -> Any:
        operands = (Value(self.machine, type, lanes, payload) for payload in payloads)
        return rounding.OPERATIONS[name](self.machine, rounding_, *operands).payload

    def select(self, type: LaneType, lanes: int, condition: Any, a: Any, b: Any) -> Any:
        ir = self.ir
        vector = ir.vector(type, lanes)
        if condition in (YES, NO):
            return a if condition == YES else b
        return ir.emit(f"select <{lanes} x i1> {condition}, {vector} {a}, {vector} {b}")

    # -- from one type to another ------------------------------------------------------------------------------------------

    def convert(self, source: LaneType, type: LaneType, lanes: int, a: Any, rounding_: str) -> Any:
        ir = self.ir
        if type.is_float and rounding_ != "rne":
            return rounding.convert(self.machine, Value(self.machine, source, lanes, a), type, rounding_).payload
        if type is f16 and source is f64:
            return rounding.narrow_to_half(self.machine, Value(self.machine, source, lanes, a)).payload
        if source is f16:
            single = self._widen(lanes, a)
            return single if type is f32 else self.convert(f32, type, lanes, single, "rne")
        if type is f16:
            return self._narrow(lanes, a if source is f32 else self.convert(source, f32, lanes, a, "rne"))
        before, after = ir.vector(source, lanes), ir.vector(type, lanes)
        if source.is_float and type.is_integer:
            return self._saturated(source, type, lanes, a)
        if source.is_float:
            how = "fpext" if source.bits < type.bits else "fptrunc"
        elif type.is_float:
            how = "sitofp" if source.is_signed else "uitofp"
        else:
            return ir.resized(source, type, lanes, a)
        return ir.emit(f"{how} {before} {a} to {after}")

    def _saturated(self, source: LaneType, type: LaneType, lanes: int, a: Any) -> Any:
        """A float as an integer, ended at the type's limits. Written out: LLVM converts vectors lane by lane for llvm.fptosi.sat. What the
        conversion of a number beyond the limits gives is never selected."""
        ir = self.ir
        before, after = ir.vector(source, lanes), ir.vector(type, lanes)
        found = ir.emit(f"fpto{'si' if type.is_signed else 'ui'} {before} {a} to {after}")
        limits = (("oge", float(type.highest + 1), type.highest), ("olt", float(type.lowest), type.lowest))
        for how, limit, number in limits:
            beyond = ir.emit(f"fcmp {how} {before} {a}, {self.machine.constant(source, limit, lanes).payload}")
            end = self.machine.constant(type, number, lanes).payload
            found = ir.emit(f"select <{lanes} x i1> {beyond}, {after} {end}, {after} {found}")
        no_number = ir.emit(f"fcmp uno {before} {a}, {a}")
        return ir.emit(f"select <{lanes} x i1> {no_number}, {after} zeroinitializer, {after} {found}")

    def bitcast(self, source: LaneType, type: LaneType, lanes: int, a: Any) -> Any:
        ir = self.ir
        before, after = ir.vector(source, lanes), ir.vector(type, lanes)
        return a if before == after else ir.emit(f"bitcast {before} {a} to {after}")

    def regroup(self, source: LaneType, source_lanes: int, type: LaneType, lanes: int, a: Any) -> Any:
        ir = self.ir
        before, after = ir.vector(source, source_lanes), ir.vector(type, lanes)
        return a if before == after else ir.emit(f"bitcast {before} {a} to {after}")

    # -- lanes among themselves ------------------------------------------------------------------------------------------------

    def shuffle(self, type: LaneType, lanes: int, a: Any, indices: list[int]) -> Any:
        ir = self.ir
        vector = ir.vector(type, lanes)
        if a in (YES, NO):
            return a
        order = ", ".join(f"i32 {index}" for index in indices)
        found = ir.emit(f"shufflevector {vector} {a}, {vector} poison, <{len(indices)} x i32> <{order}>")
        if type.is_integer:
            affine.shuffled(ir, type, lanes, a, indices, found)
        return found

    def concat(self, type: LaneType, a_lanes: int, b_lanes: int, a: Any, b: Any) -> Any:
        ir = self.ir
        lanes = max(a_lanes, b_lanes)
        a, b = (operand if count == lanes else self.shuffle(type, count, operand, [*range(count), *[0] * (lanes - count)])
                for operand, count in ((a, a_lanes), (b, b_lanes)))
        order = ", ".join(f"i32 {index}" for index in (*range(a_lanes), *range(lanes, lanes + b_lanes)))
        vector = ir.vector(type, lanes)
        return ir.emit(f"shufflevector {vector} {a}, {vector} {b}, <{a_lanes + b_lanes} x i32> <{order}>")

    def any(self, lanes: int, mask: Any) -> Any:
        if mask in (YES, NO):
            return mask
        return self.ir.emit(f"insertelement <1 x i1> poison, i1 {self.masks.any_lane(lanes, mask)}, i64 0")

    def mask_from_bits(self, type: LaneType, bits: Any, lanes: int) -> Any:
        ir = self.ir
        scalar = ir.emit(f"extractelement <1 x i{type.bits}> {bits}, i64 0")
        if lanes < type.bits:
            scalar = ir.emit(f"trunc i{type.bits} {scalar} to i{lanes}")
        return self.masks.mask_of_bits(lanes, scalar)

    def bits_from_mask(self, lanes: int, mask: Any, type: LaneType) -> Any:
        ir = self.ir
        bits = ir.emit(f"bitcast <{lanes} x i1> {mask} to i{lanes}")
        if lanes < type.bits:
            bits = ir.emit(f"zext i{lanes} {bits} to i{type.bits}")
        return ir.emit(f"insertelement <1 x i{type.bits}> poison, i{type.bits} {bits}, i64 0")
