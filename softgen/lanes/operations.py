"""The table of lane-wise operations: name, number of operands, what they may be, what comes out.

Both machines implement every row; checks, random programs and coverage counts are made from it. All operands of a row have one type
(select's condition apart, and a shift's count, which may have the other signedness).
"""

from __future__ import annotations

from typing import NamedTuple

from softgen.lanes.types import FLOATS, INTEGERS, LaneType, bool_


class Operation(NamedTuple):
    """A row of the table. `rounded` rows take an explicit rounding for floats."""

    name: str
    operands: int
    domain: tuple[LaneType, ...]
    gives_bool: bool = False
    rounded: bool = False


_NUMBERS = (*INTEGERS, *FLOATS)
_BITS = (*INTEGERS, bool_)

_ROWS = (
    Operation("add", 2, _NUMBERS, rounded=True),            # integers wrap
    Operation("sub", 2, _NUMBERS, rounded=True),
    Operation("mul", 2, _NUMBERS, rounded=True),
    Operation("div", 2, FLOATS, rounded=True),
    Operation("fma", 3, FLOATS, rounded=True),              # a × b + c, rounded once
    Operation("sqrt", 1, FLOATS, rounded=True),
    Operation("floor", 1, FLOATS),
    Operation("ceil", 1, FLOATS),
    Operation("trunc", 1, FLOATS),
    Operation("round_even", 1, FLOATS),
    Operation("negate", 1, _NUMBERS),                       # of a float: the sign bit and nothing else
    Operation("bit_and", 2, _BITS),
    Operation("bit_or", 2, _BITS),
    Operation("bit_xor", 2, _BITS),
    Operation("bit_not", 1, _BITS),
    Operation("shift_left", 2, INTEGERS),
    Operation("shift_right", 2, INTEGERS),                  # arithmetic where the type is signed
    Operation("equal", 2, (*_NUMBERS, bool_), gives_bool=True),
    Operation("not_equal", 2, (*_NUMBERS, bool_), gives_bool=True),     # true where a NaN is involved; the other five are false there
    Operation("less", 2, _NUMBERS, gives_bool=True),
    Operation("less_equal", 2, _NUMBERS, gives_bool=True),
    Operation("greater", 2, _NUMBERS, gives_bool=True),
    Operation("greater_equal", 2, _NUMBERS, gives_bool=True),
    Operation("divide_int", 2, INTEGERS),                   # toward zero; by zero: all ones; lowest by -1: lowest
    Operation("remainder_int", 2, INTEGERS),                # sign of a; by zero: a
    Operation("mul_high", 2, INTEGERS),                     # the upper half of the product
    Operation("leading_zeros", 1, INTEGERS),                # of zero: the width
    Operation("trailing_zeros", 1, INTEGERS),
    Operation("count_ones", 1, INTEGERS),
    Operation("reverse_bits", 1, INTEGERS),
)
OPERATIONS = {row.name: row for row in _ROWS}
ATOMICS = ("exchange", "add", "sub", "and", "or", "xor", "min", "max", "compare_exchange")
