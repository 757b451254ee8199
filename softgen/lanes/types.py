"""Lane types: integers of 8 to 64 bits, floats of 16, 32 and 64 bits, and booleans."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

ROUNDINGS = ("rne", "ru", "rd", "rtz")      # to nearest even, up, down, toward zero
MOST_LANES = 256                            # eight registers of bytes


@dataclass(frozen=True, eq=False)
class LaneType:
    """One lane's type; there is one object of each. `fraction` is the number of stored significand bits of a float, 0 otherwise."""

    name: str
    bits: int
    is_float: bool = False
    is_signed: bool = False
    fraction: int = 0

    def __repr__(self) -> str:
        return self.name

    @cached_property
    def is_bool(self) -> bool:
        return self.bits == 1

    @cached_property
    def is_integer(self) -> bool:
        return not self.is_float and not self.is_bool

    @cached_property
    def bytes(self) -> int:
        """Room in memory; truth takes a byte."""
        return max(1, self.bits // 8)

    @cached_property
    def unsigned(self) -> LaneType:
        """The unsigned integer of this width; of a float, what its bits are."""
        return BY_NAME[f"u{self.bits}"]

    @cached_property
    def signed(self) -> LaneType:
        return BY_NAME[f"i{self.bits}"]

    @cached_property
    def lowest(self) -> int:
        """The smallest value of an integer type."""
        return -(1 << self.bits - 1) if self.is_signed else 0

    @cached_property
    def highest(self) -> int:
        return (1 << self.bits - self.is_signed) - 1

    @cached_property
    def exponent_mask(self) -> int:
        """A float's exponent field, in place; as bits it is infinity too."""
        return (1 << self.bits - 1) - (1 << self.fraction)

    @cached_property
    def sign_mask(self) -> int:
        return 1 << self.bits - 1

    @cached_property
    def quiet_nan(self) -> int:
        return self.exponent_mask | 1 << self.fraction - 1

    @cached_property
    def lowest_exponent(self) -> int:
        """The power of two that the last bit of a denormal stands for."""
        bias = (1 << self.bits - 2 - self.fraction) - 1
        return 1 - bias - self.fraction


u8, u16, u32, u64 = (LaneType(f"u{bits}", bits) for bits in (8, 16, 32, 64))
i8, i16, i32, i64 = (LaneType(f"i{bits}", bits, is_signed=True) for bits in (8, 16, 32, 64))
_FLOAT_SIZES = ((16, 10), (32, 23), (64, 52))
f16, f32, f64 = (LaneType(f"f{bits}", bits, is_float=True, is_signed=True, fraction=stored) for bits, stored in _FLOAT_SIZES)
bool_ = LaneType("bool", 1)

INTEGERS = (u8, i8, u16, i16, u32, i32, u64, i64)
FLOATS = (f16, f32, f64)
TYPES = (*INTEGERS, *FLOATS, bool_)
BY_NAME = {type.name: type for type in TYPES}


@dataclass(frozen=True)
class Lanes:
    """The shape of a vector: a parameter, an input, a result."""

    type: LaneType
    lanes: int
