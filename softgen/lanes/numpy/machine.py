"""NumpyMachine: computes at once on NumPy arrays. It is the reference, used by the interpreter, the debugger and the tests.

Exact by these facts. The host rounds + − × ÷ and sqrt of 32 and 64 bits correctly. NumPy does them for 16 bits in 32 and rounds again;
24 bits are at least 2 × 11 + 2, so the second rounding changes nothing (Figueroa 1995). fma of 16 and 32 bits is worked out in 64 bits
rounded to odd, and rounded to the type from there (Boldo and Melquiond 2008). Everything else is done on Python integers (exact.py).
"""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from softgen.lanes.function_type import FunctionType, as_tuple, program_at
from softgen.lanes.host_function import HostFunction
from softgen.lanes.machine import Machine
from softgen.lanes.numpy import exact
from softgen.lanes.numpy import memory as numpy_memory
from softgen.lanes.numpy import region as numpy_region
from softgen.lanes.types import TYPES, LaneType, bool_, f64, u64
from softgen.lanes.value import Memory, Region, Value, Variable

Array = np.ndarray[Any, Any]
DTYPES = {type: np.dtype({"i": "i", "u": "u", "f": "f"}[type.name[0]] + str(type.bits // 8)) for type in TYPES if type is not bool_}
DTYPES[bool_] = np.dtype(np.bool_)


def bits_of(type: LaneType, a: Array) -> list[int]:
    """Lanes as unsigned Python integers."""
    found: list[int] = a.view(DTYPES[type.unsigned]).tolist()
    return found


def from_bits(type: LaneType, bits: list[int]) -> Array:
    return np.array(bits, DTYPES[type.unsigned]).view(DTYPES[type])


def to_odd(a: Array, b: Array) -> Array:
    """a + b in 64 bits: where the sum does not fit, the neighbour toward zero or away from it whose last bit is odd."""
    total = a + b
    back = total - a
    error = (a - (total - back)) + (b - back)               # Knuth: total + error is the sum exactly
    inexact = np.isfinite(total) & (error != 0)
    even = total.view(np.uint64) & np.uint64(1) == 0
    other = np.nextafter(total, np.where(error > 0, np.inf, -np.inf))
    return np.where(inexact & even, other, total)


def fma(type: LaneType, a: Array, b: Array, c: Array) -> Array:
    if type is f64:
        return from_bits(type, exact.apply("fma", type, "rne", *(bits_of(type, operand) for operand in (a, b, c))))
    product = a.astype(np.float64) * b.astype(np.float64)   # exact: at most 48 bits
    return to_odd(product, c.astype(np.float64)).astype(DTYPES[type])


def negate(type: LaneType, a: Array) -> Array:
    if type.is_float:
        flipped: Array = a.view(DTYPES[type.unsigned]) ^ DTYPES[type.unsigned].type(type.sign_mask)
        return flipped.view(DTYPES[type])
    return np.negative(a)


def shifted(function: Callable[[Array, Array], Array]) -> Callable[[LaneType, Array, Array], Array]:
    def shift(type: LaneType, a: Array, count: Array) -> Array:
        counts = count.view(DTYPES[type.unsigned])
        if (counts >= type.bits).any():
            raise ValueError(f"a shift count of {type} must be below {type.bits}, not {counts.max()}")
        return function(a, count)
    return shift


def divide(type: LaneType, a: Array, b: Array) -> tuple[Array, Array]:
    """Quotient toward zero and remainder, worked out on magnitudes; unsigned, the lowest integer has one too."""
    unsigned = DTYPES[type.unsigned]
    a_magnitude, b_magnitude = (np.where(operand < 0, np.negative(operand), operand).view(unsigned) for operand in (a, b))
    divisor = np.where(b_magnitude == 0, unsigned.type(1), b_magnitude)
    quotient, remainder = (part.view(DTYPES[type]) for part in np.divmod(a_magnitude, divisor))
    quotient = np.where((a < 0) != (b < 0), np.negative(quotient), quotient)
    remainder = np.where(a < 0, np.negative(remainder), remainder)
    return np.where(b == 0, ~np.zeros_like(a), quotient), np.where(b == 0, a, remainder)


def mul_high(type: LaneType, a: Array, b: Array) -> Array:
    products = [x * y >> type.bits & (1 << type.bits) - 1 for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    return from_bits(type, products)


def per_lane(function: Callable[[int, int], int]) -> Callable[[LaneType, Array], Array]:
    """A function of a lane's bits and its width, as an operation."""
    return lambda type, a: from_bits(type, [function(bits, type.bits) for bits in bits_of(type, a)])


def same(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of NumPy that needs no type."""
    return lambda type, *operands: function(*operands)


COMPUTE: dict[str, Callable[..., Any]] = {
    "add": same(np.add),
    "sub": same(np.subtract),
    "mul": same(np.multiply),
    "div": same(np.divide),
    "fma": fma,
    "sqrt": same(np.sqrt),
    "floor": same(np.floor),
    "ceil": same(np.ceil),
    "trunc": same(np.trunc),
    "round_even": same(np.rint),
    "negate": negate,
    "bit_and": same(operator.and_),
    "bit_or": same(operator.or_),
    "bit_xor": same(operator.xor),
    "bit_not": same(operator.invert),
    "shift_left": shifted(np.left_shift),
    "shift_right": shifted(np.right_shift),
    "equal": same(np.equal),
    "not_equal": same(np.not_equal),
    "less": same(np.less),
    "less_equal": same(np.less_equal),
    "greater": same(np.greater),
    "greater_equal": same(np.greater_equal),
    "divide_int": lambda type, a, b: divide(type, a, b)[0],
    "remainder_int": lambda type, a, b: divide(type, a, b)[1],
    "mul_high": mul_high,
    "leading_zeros": per_lane(lambda bits, width: width - bits.bit_length()),
    "trailing_zeros": per_lane(lambda bits, width: (bits & -bits).bit_length() - 1 if bits else width),
    "count_ones": per_lane(lambda bits, width: bits.bit_count()),
    "reverse_bits": per_lane(lambda bits, width: int(f"{bits:0{width}b}"[::-1], 2)),
}


def to_integer(type: LaneType, a: Array) -> Array:
    """Toward zero, ends at the limits, NaN is 0. Only lanes inside the limits are cast: C leaves the rest open."""
    a = a.astype(np.float64)
    low, high = a < float(type.lowest), a >= float(type.highest + 1)
    inside = np.where(low | high | np.isnan(a), 0.0, a).astype(DTYPES[type])
    return np.where(low, DTYPES[type].type(type.lowest), np.where(high, DTYPES[type].type(type.highest), inside))


HOST = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32)

class NumpyMachine(Machine):
    """Payloads are one-dimensional arrays, never written to after they were made."""

    def __init__(self) -> None:
        self._skipped: bool | None = None                   # whether the last If was not taken; None where no Else may stand

    def value(self, type: LaneType, lanes: Any) -> Value:
        """An array (or list) of the right dtype as a value; the array is not copied."""
        array = np.asarray(lanes, DTYPES[type])
        self._count(len(array))
        return Value(self, type, len(array), array)

    def memory(self, array: Any, name: str = "memory") -> Memory:
        """The bytes of an array as memory for loads and stores."""
        return Memory(self, np.asarray(array).reshape(-1).view(np.uint8), name)

    # -- control -----------------------------------------------------------------------------------------------------

    def decide(self, condition: Value) -> bool:
        if condition.type is not bool_ or condition.lanes != 1:
            raise TypeError(f"a decision must be on one lane of bool, not {condition.lanes} x {condition.type}: use any or select")
        return bool(condition.payload[0])

    def _body(self) -> Iterator[None]:
        self._skipped = None
        yield
        self._skipped = None

    def If(self, condition: Value, rare: bool = False) -> Iterator[None]:
        taken = self.decide(condition)
        if taken:
            yield from self._body()
        self._skipped = not taken

    def Else(self) -> Iterator[None]:
        skipped, self._skipped = self._skipped, None
        if skipped is None:
            raise TypeError("Else must follow an If")
        if skipped:
            yield from self._body()

    def While(self, condition: Callable[[], Value]) -> Iterator[None]:
        while self.decide(condition()):
            yield from self._body()
        self._skipped = None

    def read_variable(self, variable: Variable) -> Value:
        return Value(self, variable.type, variable.lanes, variable.payload)

    def write_variable(self, variable: Variable, value: Value) -> None:
        variable.payload = value.payload

    def _variable(self, initial: Value) -> Any:
        return initial.payload

    # -- computing -----------------------------------------------------------------------------------------------------

    def _constant(self, type: LaneType, numbers: list[float], lanes: int) -> Any:
        with np.errstate(all="ignore"):
            found = np.array(numbers, np.float64).astype(DTYPES[type]) if type.is_float else np.array(numbers, DTYPES[type])
        return found if len(numbers) == lanes else np.repeat(found, lanes)

    def _compute(self, name: str, type: LaneType, lanes: int, payloads: list[Any]) -> Any:
        if not type.is_float:
            return COMPUTE[name](type, *payloads)
        with np.errstate(all="ignore"):
            return COMPUTE[name](type, *payloads)

    def _rounded(self, name: str, type: LaneType, lanes: int, rounding: str, payloads: list[Any]) -> Any:
        return from_bits(type, exact.apply(name, type, rounding, *(bits_of(type, payload) for payload in payloads)))

    def _select(self, type: LaneType, lanes: int, condition: Any, a: Any, b: Any) -> Any:
        return np.where(condition, a, b)

    def _convert(self, source: LaneType, type: LaneType, lanes: int, a: Any, rounding: str) -> Any:
        if rounding != "rne" and type.is_float:
            if source.is_float:
                return from_bits(type, exact.from_float(source, type, rounding, bits_of(source, a)))
            return from_bits(type, exact.from_integer(type, rounding, a.tolist()))
        with np.errstate(all="ignore"):
            return to_integer(type, a) if source.is_float and type.is_integer else a.astype(DTYPES[type])

    def _bitcast(self, source: LaneType, type: LaneType, lanes: int, a: Any) -> Any:
        return a.view(DTYPES[type])

    def _regroup(self, source: LaneType, source_lanes: int, type: LaneType, lanes: int, a: Any) -> Any:
        return np.ascontiguousarray(a).view(DTYPES[type])

    def _shuffle(self, type: LaneType, lanes: int, a: Any, indices: list[int]) -> Any:
        return a[indices]

    def _concat(self, type: LaneType, a_lanes: int, b_lanes: int, a: Any, b: Any) -> Any:
        return np.concatenate([a, b])

    def _permute(self, type: LaneType, lanes: int, a: Any, count: int, indices: Any) -> Any:
        return a[indices]

    def _call(self, type: FunctionType, address: Value, arguments: tuple[Value, ...]) -> tuple[Value, ...]:
        results = as_tuple(program_at(int(address.payload[0]), type)(self, *arguments))
        type.check("results", type.results, results)
        return results

    def _host(self, function: HostFunction, arguments: list[Any], lanes: int, results: int) -> list[Any]:
        given, found = np.concatenate(arguments), np.zeros(results * lanes, np.uint32)
        HOST(function.address)(given.ctypes.data, found.ctypes.data, lanes)
        return list(found.reshape(results, lanes))

    def _any(self, lanes: int, mask: Any) -> Any:
        return mask.any(keepdims=True)

    def _mask_from_bits(self, type: LaneType, bits: Any, lanes: int) -> Any:
        return np.array([bits_of(type, bits)[0] >> lane & 1 for lane in range(lanes)], np.bool_)

    def _bits_from_mask(self, lanes: int, mask: Any, type: LaneType) -> Any:
        return from_bits(type, [sum(1 << lane for lane, is_set in enumerate(mask.tolist()) if is_set)])

    # -- memory --------------------------------------------------------------------------------------------------------

    def _memory_at(self, address: Value, size: int, name: str) -> Memory:
        data = (ctypes.c_uint8 * size).from_address(int(address.payload[0]))
        return Memory(self, np.frombuffer(memoryview(data).cast("B"), np.uint8), name)

    def _append(self, value: Value, base: Memory, cursor: Value, mask: Value) -> bool:
        return False

    def _load(self, type: LaneType, base: Memory, offsets: Value, mask: Value | None) -> Any:
        return self._gather(type, base, offsets.payload, mask)

    def _store(self, value: Value, base: Memory, offsets: Value, mask: Value | None) -> None:
        self._scatter(value, base, offsets.payload, mask)

    def _gather(self, type: LaneType, base: Memory, offsets: Array, mask: Value | None) -> Array:
        load = numpy_region.load if isinstance(base, Region) else numpy_memory.load
        return load(DTYPES[type], base, offsets, None if mask is None else mask.payload)    # type: ignore[arg-type]

    def _scatter(self, value: Value, base: Memory, offsets: Array, mask: Value | None) -> None:
        store = numpy_region.store if isinstance(base, Region) else numpy_memory.store
        store(value.payload, base, offsets, None if mask is None else mask.payload)         # type: ignore[arg-type]

    def _load_block(self, type: LaneType, lanes: int, base: Memory, offset: Value, mask: Value | None, grain: int) -> Any:
        if mask is None and (found := self._whole(type, base, offset, lanes)) is not None:
            return found.copy()
        return self._gather(type, base, self._contiguous(offset, lanes, type), self._grains(type, lanes, base, offset, mask, grain))

    def _store_block(self, value: Value, base: Memory, offset: Value, mask: Value | None, grain: int) -> None:
        if mask is None and (found := self._whole(value.type, base, offset, value.lanes)) is not None:
            found[:] = value.payload
            return
        whole = self._grains(value.type, value.lanes, base, offset, mask, grain)
        self._scatter(value, base, self._contiguous(offset, value.lanes, value.type), whole)

    def _grains(self, type: LaneType, lanes: int, base: Memory, offset: Value, mask: Value | None, grain: int) -> Value | None:
        """The lanes of a region's block that belong to a grain that is inside as a whole."""
        if not isinstance(base, Region) or grain == type.bytes:
            return mask
        starts = self.convert(offset, u64).payload + np.arange(0, lanes * type.bytes, grain, dtype=np.uint64)
        inside = np.repeat(numpy_region.inside(base, starts, grain), grain // type.bytes)[:lanes]
        return self._value(bool_, lanes, inside if mask is None else inside & mask.payload)

    def _whole(self, type: LaneType, base: Memory, offset: Value, lanes: int) -> Array | None:
        return None if isinstance(base, Region) else numpy_memory.block(DTYPES[type], base, int(offset.payload[0]), lanes)

    def _contiguous(self, offset: Value, lanes: int, type: LaneType) -> Array:
        first = self.convert(offset, u64).payload
        return np.array(first + np.arange(lanes, dtype=np.uint64) * np.uint64(type.bytes))

    def _atomic(self, op: str, type: LaneType, base: Memory, offsets: Value, operands: list[Any], mask: Value | None) -> Any:
        active = None if mask is None else mask.payload
        if not isinstance(base, Region):
            return numpy_memory.atomic(op, DTYPES[type], base, offsets.payload, operands, active)

        def change(lane: int, old: Array) -> Array:
            new = numpy_memory.UPDATE[op](int(old[0]), *(int(operand[lane]) for operand in operands))
            return from_bits(type, [new & type.unsigned.highest])
        return numpy_region.update(DTYPES[type], base, offsets.payload, active, change)[0]

    def _inside_region(self, base: Region, offsets: Value, size: int) -> Any:
        return numpy_region.inside(base, offsets.payload, size)

    def _update(self, type: LaneType, base: Region, offsets: Value, operands: list[Value], mask: Value,
                function: Callable[..., Value]) -> tuple[Any, Any]:
        def change(lane: int, old: Array) -> Array:
            found: Array = function(self, self._value(type, 1, old), *(self.slice(operand, lane, 1) for operand in operands)).payload
            return found
        return numpy_region.update(DTYPES[type], base, offsets.payload, mask.payload, change)
