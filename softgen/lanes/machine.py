"""The operations of the lane language, on every machine; programs may use nothing else. Memory is in memory_operations.py.

    def smooth(m, t):                               # a lane program: a function of a machine and values
        t = m.select(t < 0.0, m.like(t, 0.0), t)    # per lane
        return t * t * (3.0 - 2.0 * t)              # correctly rounded, denormals kept

A Python `if` is decided when the program is built. What is decided while it runs is a loop of none, one or many turns over a variable,
because Python cannot skip the body of a `with`:

    i = m.variable(m.constant(u32, 0, 8))
    for _ in m.While(lambda: m.any(i.value < n)):
        for _ in m.If(m.any(i.value == 3)):
            i.value = i.value + 2
        for _ in m.Else():
            i.value = i.value + 1

A body must run to its end (no break, continue or return), and a value made inside it may leave only through a variable.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from softgen.lanes.function_type import FunctionType
from softgen.lanes.host_function import HostFunction
from softgen.lanes.memory_operations import MemoryOperations
from softgen.lanes.primitives import Operand
from softgen.lanes.types import LaneType, bool_, u32, u64
from softgen.lanes.value import Value, Variable


class Machine(MemoryOperations):
    """Checks what it is given and hands payloads to the machine proper (primitives.py)."""

    # -- making values ------------------------------------------------------------------------------------------------

    def constant(self, type: LaneType, value: float | Sequence[float], lanes: int | None = None) -> Value:
        """The same number in every lane, or a list with a number for each. Floats are rounded to nearest; integers must fit."""
        single = isinstance(value, int | float) or not isinstance(value, Sequence)
        numbers: list[float] = [value] if single else list(value)  # type: ignore[arg-type, list-item]
        count = len(numbers) if lanes is None else lanes
        if len(numbers) != count and not single:
            raise ValueError(f"the list must have {lanes} numbers, not {len(numbers)}")
        self._count(count)
        if not type.is_float:
            for number in numbers:
                if not isinstance(number, int) or not type.lowest <= number <= type.highest:
                    raise ValueError(f"a constant of {type} must be an integer from {type.lowest} to {type.highest}, not {number!r}")
        return self._value(type, count, self._constant(type, numbers, count))

    def _value(self, type: LaneType, lanes: int, payload: Any) -> Value:
        return Value(self, type, lanes, payload)

    def like(self, value: Value, number: float) -> Value:
        """A number with the type and lanes of a value."""
        return self.constant(value.type, number, value.lanes)

    def lane_index(self, lanes: int, type: LaneType = u32) -> Value:
        return self.constant(type, range(lanes))

    def variable(self, initial: Value) -> Variable:
        return Variable(self, initial.type, initial.lanes, self._variable(initial))

    # -- lane-wise operations: operations.py says what each is -----------------------------------------------------------

    def add(self, a: Operand, b: Operand, rounding: str = "rne") -> Value:
        return self._apply("add", a, b, rounding=rounding)

    def sub(self, a: Operand, b: Operand, rounding: str = "rne") -> Value:
        return self._apply("sub", a, b, rounding=rounding)

    def mul(self, a: Operand, b: Operand, rounding: str = "rne") -> Value:
        return self._apply("mul", a, b, rounding=rounding)

    def div(self, a: Operand, b: Operand, rounding: str = "rne") -> Value:
        return self._apply("div", a, b, rounding=rounding)

    def fma(self, a: Operand, b: Operand, c: Operand, rounding: str = "rne") -> Value:
        return self._apply("fma", a, b, c, rounding=rounding)

    def sqrt(self, a: Value, rounding: str = "rne") -> Value:
        return self._apply("sqrt", a, rounding=rounding)

    def estimate_rsq(self, a: Value) -> Value | None:
        """1 / sqrt(a) of positive floats within 2^-14 (of denormals perhaps infinity), if the host has an instruction for it; infinity of
        zeros, 0 of infinity, NaN of negative numbers and NaN. Hosts differ in the rest: only what rounds correctly afterwards may start
        from it."""
        return None

    def floor(self, a: Value) -> Value:
        return self._apply("floor", a)

    def ceil(self, a: Value) -> Value:
        return self._apply("ceil", a)

    def trunc(self, a: Value) -> Value:
        return self._apply("trunc", a)

    def round_even(self, a: Value) -> Value:
        return self._apply("round_even", a)

    def negate(self, a: Value) -> Value:
        return self._apply("negate", a)

    def bit_and(self, a: Operand, b: Operand) -> Value:
        return self._apply("bit_and", a, b)

    def bit_or(self, a: Operand, b: Operand) -> Value:
        return self._apply("bit_or", a, b)

    def bit_xor(self, a: Operand, b: Operand) -> Value:
        return self._apply("bit_xor", a, b)

    def bit_not(self, a: Value) -> Value:
        return self._apply("bit_not", a)

    def shift_left(self, a: Operand, count: Operand) -> Value:
        """The count must be below the width: programs mask it first."""
        return self._apply("shift_left", a, self._as_count(a, count))

    def shift_right(self, a: Operand, count: Operand) -> Value:
        return self._apply("shift_right", a, self._as_count(a, count))

    def equal(self, a: Operand, b: Operand) -> Value:
        return self._apply("equal", a, b)

    def not_equal(self, a: Operand, b: Operand) -> Value:
        return self._apply("not_equal", a, b)

    def less(self, a: Operand, b: Operand) -> Value:
        return self._apply("less", a, b)

    def less_equal(self, a: Operand, b: Operand) -> Value:
        return self._apply("less_equal", a, b)

    def greater(self, a: Operand, b: Operand) -> Value:
        return self._apply("greater", a, b)

    def greater_equal(self, a: Operand, b: Operand) -> Value:
        return self._apply("greater_equal", a, b)

    def divide_int(self, a: Operand, b: Operand) -> Value:
        return self._apply("divide_int", a, b)

    def remainder_int(self, a: Operand, b: Operand) -> Value:
        return self._apply("remainder_int", a, b)

    def mul_high(self, a: Operand, b: Operand) -> Value:
        return self._apply("mul_high", a, b)

    def leading_zeros(self, a: Value) -> Value:
        return self._apply("leading_zeros", a)

    def trailing_zeros(self, a: Value) -> Value:
        return self._apply("trailing_zeros", a)

    def count_ones(self, a: Value) -> Value:
        return self._apply("count_ones", a)

    def reverse_bits(self, a: Value) -> Value:
        return self._apply("reverse_bits", a)

    def select(self, condition: Value, a: Operand, b: Operand) -> Value:
        """Lanes of a where the condition holds, of b elsewhere. NaN payloads are kept."""
        if condition.type is not bool_:
            raise TypeError(f"the condition of select must be bool, not {condition.type}")
        a, b = self._lift(a, b)
        self._agree("select", a, b)
        if condition.lanes != a.lanes:
            raise TypeError(f"the condition of select must have {a.lanes} lanes, not {condition.lanes}")
        return self._value(a.type, a.lanes, self._select(a.type, a.lanes, condition.payload, a.payload, b.payload))

    # -- from one type to another ------------------------------------------------------------------------------------------

    def convert(self, a: Value, type: LaneType, rounding: str = "rne") -> Value:
        """Integers are cut or extended; to a float is rounded as asked; a float to an integer goes toward zero whatever the rounding
        says, ends at the type's limits, and is 0 for NaN. To its own type: nothing happens."""
        self._rounding(rounding)
        if a.type is type:
            return a
        if a.type.is_bool or type.is_bool:
            raise TypeError(f"convert must be between numbers, not {a.type} and {type}: use select or a comparison")
        return self._value(type, a.lanes, self._convert(a.type, type, a.lanes, a.payload, rounding))

    def bitcast(self, a: Value, type: LaneType) -> Value:
        """The same bits as another type of the same width."""
        if a.type.bits != type.bits:
            raise TypeError(f"bitcast of {a.type} must be to a type of {a.type.bits} bits, not {type}")
        return a if a.type is type else self._value(type, a.lanes, self._bitcast(a.type, type, a.lanes, a.payload))

    def regroup(self, a: Value, type: LaneType) -> Value:
        """The same bytes as lanes of another width: 8 lanes of u32 are 32 lanes of u8, lowest byte first."""
        if a.type.is_bool or type.is_bool or a.lanes * a.type.bits % type.bits:
            raise TypeError(f"regroup must keep whole lanes: {a.lanes} x {a.type} cannot become {type}")
        lanes = a.lanes * a.type.bits // type.bits
        self._count(lanes)
        return a if a.type is type else self._value(type, lanes, self._regroup(a.type, a.lanes, type, lanes, a.payload))

    # -- lanes among themselves --------------------------------------------------------------------------------------------

    def shuffle(self, a: Value, indices: Sequence[int]) -> Value:
        """Lane i of the result is lane indices[i] of a; the indices are Python numbers."""
        self._count(len(indices))
        if bad := [index for index in indices if not 0 <= index < a.lanes]:
            raise ValueError(f"shuffle: an index must be from 0 to {a.lanes - 1}, not {bad[0]}")
        return self._value(a.type, len(indices), self._shuffle(a.type, a.lanes, a.payload, list(indices)))

    def concat(self, *parts: Value) -> Value:
        for part in parts:
            if part.type is not parts[0].type:
                raise TypeError(f"all parts of concat must be {parts[0].type}, not {part.type}")
        self._count(sum(part.lanes for part in parts))
        whole = parts[0]
        for part in parts[1:]:
            lanes = whole.lanes + part.lanes
            whole = self._value(whole.type, lanes, self._concat(whole.type, whole.lanes, part.lanes, whole.payload, part.payload))
        return whole

    def slice(self, a: Value, start: int, count: int) -> Value:
        if start < 0 or count < 1 or start + count > a.lanes:
            raise ValueError(f"slice must be inside {a.lanes} lanes, not from {start} to {start + count - 1}")
        return a if count == a.lanes else self.shuffle(a, range(start, start + count))

    def broadcast(self, a: Value, lanes: int) -> Value:
        if a.lanes != 1:
            raise TypeError(f"broadcast must be of one lane, not {a.lanes}")
        return a if lanes == 1 else self.shuffle(a, [0] * lanes)

    def permute(self, a: Value, indices: Value) -> Value:
        """Lane i of the result is lane indices[i] of a, known at run time; indices (u32) count modulo the lanes of a, a power of two."""
        if a.lanes & a.lanes - 1 or indices.type is not u32:
            raise TypeError(f"permute must be of a power of two of lanes by u32 indices, not of {a.lanes} lanes by {indices.type}")
        if a.type is bool_:
            bits = self.select(a, self.constant(u32, 1, a.lanes), self.constant(u32, 0, a.lanes))
            return self.permute(bits, indices) != 0
        below = indices & a.lanes - 1
        return self._value(a.type, indices.lanes, self._permute(a.type, a.lanes, a.payload, indices.lanes, below.payload))

    # -- masks ---------------------------------------------------------------------------------------------------------------

    def any(self, mask: Value) -> Value:
        """One lane of truth. On a machine that runs at once Python can use it; elsewhere it is for If and While."""
        self._is_mask("any", mask)
        return self._value(bool_, 1, self._any(mask.lanes, mask.payload))

    def all(self, mask: Value) -> Value:
        return ~self.any(~mask)

    def mask_from_bits(self, bits: Value | int, lanes: int) -> Value:
        """Lane i is bit i of a one-lane integer, which must have enough of them."""
        if isinstance(bits, int):
            return self.constant(bool_, [bits >> lane & 1 for lane in range(lanes)])
        if bits.lanes != 1 or not bits.type.is_integer or bits.type.bits < lanes:
            raise TypeError(f"the bits of a mask of {lanes} lanes must be one lane of an integer as wide, not {bits.lanes} x {bits.type}")
        return self._value(bool_, lanes, self._mask_from_bits(bits.type, bits.payload, lanes))

    def bits_from_mask(self, mask: Value, type: LaneType = u32) -> Value:
        """One lane with bit i set where lane i holds; the bits above are zero."""
        self._is_mask("bits_from_mask", mask)
        if not type.is_integer or type.bits < mask.lanes:
            raise TypeError(f"the bits of {mask.lanes} lanes must go to an integer as wide, not {type}")
        return self._value(type, 1, self._bits_from_mask(mask.lanes, mask.payload, type))

    def count(self, mask: Value) -> Value:
        """The number of lanes that hold, in one lane of u32."""
        self._is_mask("count", mask)
        return self.convert(self.count_ones(self._bits(mask)), u32)

    def rank(self, mask: Value) -> Value:
        """For each lane, how many lanes below it hold (u32)."""
        self._is_mask("rank", mask)
        bits = self.broadcast(self._bits(mask), mask.lanes)
        below = self.constant(bits.type, [(1 << lane) - 1 for lane in range(mask.lanes)])
        return self.convert(self.count_ones(bits & below), u32)

    def _bits(self, mask: Value) -> Value:
        return self.bits_from_mask(mask, u64 if mask.lanes > u32.bits else u32)

    # -- calls ---------------------------------------------------------------------------------------------------------------

    def call(self, type: FunctionType, address: Value, *arguments: Value) -> tuple[Value, ...]:
        """The results of the function at an address (one lane of u64): function.py. The caller's mask is an argument like any other."""
        if address.type is not u64 or address.lanes != 1:
            raise TypeError(f"the address of a call must be one lane of u64, not {address.lanes} x {address.type}")
        type.check("arguments", type.parameters, arguments)
        return self._call(type, address, arguments)

    # -- made of the above ------------------------------------------------------------------------------------------------------

    def host(self, function: HostFunction, arguments: list[Value], results: int) -> list[Value]:
        """Call a host function over vectors of u32; it returns `results` of them."""
        lanes = arguments[0].lanes
        if any(value.type is not u32 or value.lanes != lanes for value in arguments):
            raise TypeError(f"{function.name} takes vectors of u32, all of as many lanes")
        return [self._value(u32, lanes, held) for held in self._host(function, [value.payload for value in arguments], lanes, results)]

    def min(self, a: Operand, b: Operand) -> Value:
        """The smaller of two; of floats, b where they are equal or one is NaN (as MINPS has it)."""
        a, b = self._lift(a, b)
        return self.select(a < b, a, b)

    def max(self, a: Operand, b: Operand) -> Value:
        """The larger of two; of floats, b where they are equal or one is NaN."""
        a, b = self._lift(a, b)
        return self.select(a > b, a, b)

    def absolute(self, a: Value) -> Value:
        """Of a float: the sign bit cleared and nothing else. The lowest integer stays what it is."""
        if a.type.is_float:
            return self.bitcast(self.bitcast(a, a.type.unsigned) & a.type.sign_mask - 1, a.type)
        return self.select(a < 0, -a, a) if a.type.is_signed else a

    def copysign(self, a: Value, b: Value) -> Value:
        """The magnitude of a with the sign of b."""
        self._agree("copysign", a, b)
        self._is_float("copysign", a)
        sign = self.bitcast(b, b.type.unsigned) & b.type.sign_mask
        return self.bitcast(self.bitcast(self.absolute(a), a.type.unsigned) | sign, a.type)

    def saturate_int(self, a: Value, type: LaneType) -> Value:
        """An integer clamped into the range of another type, and converted to it."""
        if not a.type.is_integer or not type.is_integer:
            raise TypeError(f"saturate_int must be between integers, not {a.type} and {type}")
        if a.type.lowest < type.lowest:
            a = self.select(a < type.lowest, type.lowest, a)
        if a.type.highest > type.highest:
            a = self.select(a > type.highest, type.highest, a)
        return self.convert(a, type)

    def add_carry(self, a: Value, b: Value) -> tuple[Value, Value]:
        """Sum of unsigned integers, and 1 in the lanes where it did not fit."""
        self._is_unsigned("add_carry", a)
        total = a + b
        return total, self.select(total < a, self.like(a, 1), self.like(a, 0))

    def sub_borrow(self, a: Value, b: Value) -> tuple[Value, Value]:
        self._is_unsigned("sub_borrow", a)
        return a - b, self.select(a < b, self.like(a, 1), self.like(a, 0))

    def flush(self, a: Value) -> Value:
        """Denormals become zero of the same sign."""
        self._is_float("flush", a)
        bits = self.bitcast(a, a.type.unsigned)
        return self.bitcast(self.select((bits & a.type.exponent_mask) == 0, bits & a.type.sign_mask, bits), a.type)

    def canonical(self, a: Value) -> Value:
        """Every NaN becomes one and the same. On bits, because LLVM may take away a select that only chooses among NaNs."""
        bits = self.bitcast(a, a.type.unsigned)
        return self.bitcast(self.select(self.is_nan(a), a.type.quiet_nan, bits), a.type)

    def is_nan(self, a: Value) -> Value:
        return self._magnitude("is_nan", a) > a.type.exponent_mask

    def is_inf(self, a: Value) -> Value:
        return self._magnitude("is_inf", a) == a.type.exponent_mask

    def is_denormal(self, a: Value) -> Value:
        magnitude = self._magnitude("is_denormal", a)
        return (magnitude != 0) & (magnitude < 1 << a.type.fraction)

    def sign_bit(self, a: Value) -> Value:
        """True where the topmost bit is set."""
        return self.bitcast(a, a.type.signed) < 0
