"""The control register's bits, as its page has them.

Reads   EU_CONTROL_REGISTER
"""

from __future__ import annotations

from functools import cache

from softgen.bits.catalogue import layout
from softgen.bits.layout import GENERATIONS

NEWEST = GENERATIONS[-1]  # what more than one generation has stands at one place


@cache
def mask(name: str, gen: float = NEWEST) -> int:
    """A field's bits within its dword; 0 where the generation has no such field."""
    found = next((field for field in layout("EU_CONTROL_REGISTER", gen).fields if field.name == name), None)
    return found.mask >> found.low // 32 * 32 if found else 0


@cache
def roundings() -> dict[int, str]:
    """Rounding modes by the bits of cr0.0 that say them."""
    field = layout("EU_CONTROL_REGISTER", NEWEST).field("rounding_mode")
    return {code << field.low: name for code, name in field.type.values}
