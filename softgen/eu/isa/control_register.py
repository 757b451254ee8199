"""Fields of the control register as masks.

Reads   EU_CONTROL_REGISTER
"""

from __future__ import annotations

from functools import cache

from softgen.bits.catalogue import layout
from softgen.bits.layout import GENERATIONS

NEWEST = GENERATIONS[-1]  # fields that several generations have never moved


@cache
def mask(name: str, gen: float = NEWEST) -> int:
    """The mask of a field within its dword; 0 where the generation lacks the field."""
    found = next((field for field in layout("EU_CONTROL_REGISTER", gen).fields if field.name == name), None)
    return found.mask >> found.low - found.low % 32 if found else 0


@cache
def roundings() -> dict[int, str]:
    """Bits of cr0.0 -> rounding mode."""
    field = layout("EU_CONTROL_REGISTER", NEWEST).field("rounding_mode")
    return {code << field.low: name for code, name in field.type.values}
