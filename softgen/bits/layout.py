"""Layouts: where each field of a command, structure, register, message or instruction lives.

Positions are counted from bit 0 of dword 0 of the layout, or of the element inside a group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from softgen.bits import record
from softgen.errors import SpecError

GENERATIONS = (4.5, 7.0, 7.5, 8.0, 9.0, 11.0)

# Which header bits a key names, and where the length stands unless a page says otherwise (BDW 48-90, G45 940-951).
MI, BLITTER, GFXPIPE = 0, 2, 3
KEY_SHIFT = {MI: 23, BLITTER: 22, GFXPIPE: 16}


@dataclass(frozen=True)
class Type:
    """What a field's bits mean. `name` is one of page.TYPES."""

    name: str = "uint"
    values: tuple[tuple[int, str], ...] = ()  # inline enumerations
    base: str = ""  # addresses: which base they count from
    target: str = ""  # addresses, enum and struct: what stands there
    fraction: int = 0  # fixed point: bits behind the point
    signed: bool = False

    def __str__(self) -> str:
        if self.name == "enum" and self.target:
            return f"enum {self.target}"
        if self.name == "fixed":
            return f"{'s' if self.signed else 'u'}.{self.fraction}"
        base = self.base or ("-" if self.target and self.name == "address" else "")
        return " ".join(word for word in (self.name, base, self.target) if word)


@dataclass(frozen=True)
class Condition:
    """`when name=a,b`: a reading applies while another field has one of these values."""

    field: str
    values: tuple[int, ...]
    negated: bool = False


@dataclass(frozen=True)
class Field:
    name: str
    pieces: tuple[tuple[int, int], ...]  # (high, low), most significant first
    type: Type = Type()
    alternate: bool = False  # a second reading of bits another field claims
    when: tuple[Condition, ...] = ()
    source: str = ""
    line: int = 0

    @cached_property
    def mask(self) -> int:
        return sum((1 << high + 1) - (1 << low) for high, low in self.pieces)

    @cached_property
    def high(self) -> int:
        return max(high for high, _ in self.pieces)

    @cached_property
    def low(self) -> int:
        return self.pieces[-1][1]

    @cached_property
    def width(self) -> int:
        return sum(high - low + 1 for high, low in self.pieces)

    @cached_property
    def alignment(self) -> int:
        """Low bits an address or a register's offset leaves out: the field stands where they would."""
        return self.low % 32 if self.type.name in ("address", "offset") and len(self.pieces) == 1 else 0


@dataclass(frozen=True)
class Group:
    """Something repeated: `count` elements of `size` bits, or as many as the command holds when count is None."""

    name: str
    start: int
    size: int
    count: int | None
    fields: tuple[Field, ...]
    groups: tuple[Group, ...] = ()
    of: str = ""
    alternate: bool = False
    source: str = ""
    line: int = 0
    derived: tuple[tuple[str, str], ...] = ()

    @cached_property
    def claimed(self) -> int:
        """The bits of one element that some field claims."""
        return claimed_bits(self.fields, self.groups, self.size)

    def times(self, bits: int) -> int:
        """How many elements a layout of `bits` bits holds."""
        held = max(0, bits - self.start) // self.size
        return held if self.count is None else min(self.count, held)


def claimed_bits(fields: tuple[Field, ...], groups: tuple[Group, ...], bits: int) -> int:
    claimed = 0
    for one in fields:
        claimed |= one.mask
    for group in groups:
        for i in range(group.times(bits)):
            claimed |= group.claimed << group.start + i * group.size
    return claimed


@dataclass(frozen=True)
class Header:
    """The key of a command: the bits of dword 0 that name it, and those that hold its length."""

    key: str
    mask: int
    value: int
    length: tuple[int, int] | None  # (high, low); None: the command has no length field
    bias: int = 2

    @property
    def claimed(self) -> int:
        return self.mask | (0 if self.length is None else (1 << self.length[0] + 1) - (1 << self.length[1]))

    def dwords(self, header: int, fixed: int) -> int:
        if self.length is None:
            return fixed
        high, low = self.length
        return (header >> low & (1 << high - low + 1) - 1) + self.bias


@dataclass(frozen=True, eq=False)
class Layout:
    kind: str
    name: str
    gen: float
    dwords: int  # the least it can have
    maximum: int | None  # the most; None: no limit
    fields: tuple[Field, ...]
    groups: tuple[Group, ...] = ()
    derived: tuple[tuple[str, str], ...] = ()  # (name, expression over the fields)
    header: Header | None = None
    engines: tuple[str, ...] = ()
    offset: int | None = None  # registers
    relative: bool = False  # registers: the offset counts from where the engine's registers start
    count: int = 1  # registers: how many stand in a row
    source: str = ""
    page: str = ""
    line: int = 0
    cache: dict[int, int] = field(default_factory=dict, repr=False)

    @property
    def key(self) -> str:
        if self.header:
            return self.header.key
        return "" if self.offset is None else f"{'+' if self.relative else ''}{self.offset:#x}"

    @property
    def variable(self) -> bool:
        return self.maximum != self.dwords

    def length(self, header: int) -> int:
        """How many dwords a command with this header has."""
        return self.header.dwords(header, self.dwords) if self.header else self.dwords

    def reserved(self, dwords: int | None = None) -> int:
        """Bits no field claims; they must be zero."""
        dwords = self.dwords if dwords is None else dwords
        if dwords not in self.cache:
            claimed = claimed_bits(self.fields, self.groups, dwords * 32) | (self.header.claimed if self.header else 0)
            self.cache[dwords] = (1 << dwords * 32) - 1 & ~claimed
        return self.cache[dwords]

    @cached_property
    def unpack(self) -> Callable[[Any], record.Record]:
        """dwords -> record with natural values: signed integers, floats, addresses in place."""
        return record.compile_unpack(self, natural=True)

    @cached_property
    def raw(self) -> Callable[[Any], record.Record]:
        """dwords -> record of integers as people count them: fixed point and floats stay bit patterns."""
        return record.compile_unpack(self, natural=False)

    @cached_property
    def place(self) -> Callable[[Any], int]:
        """Whole numbers by field name -> all bits as one number; quick, for layouts without header, groups and scaled fields."""
        return record.compile_place(self)

    def pack(self, **given: Any) -> list[int]:
        return record.pack(self, given)

    def walk(self) -> Iterator[tuple[Field, tuple[Group, ...]]]:
        """Every field with the groups it stands in, outermost first."""
        yield from ((one, ()) for one in self.fields)
        yield from _walk(self.groups, ())

    def field(self, name: str) -> Field:
        found = next((one for one in self.fields if one.name == name), None)
        if found is None:
            raise SpecError(f"{self.page}: {self.name} has no field {name!r} on gen {self.gen:g}")
        return found


def _walk(groups: tuple[Group, ...], outer: tuple[Group, ...]) -> Iterator[tuple[Field, tuple[Group, ...]]]:
    for group in groups:
        yield from ((one, (*outer, group)) for one in group.fields)
        yield from _walk(group.groups, (*outer, group))


def guess_length(header: int) -> int | None:
    """How long a command nobody knows must be, from its type alone (BDW 48-90; G45 940-951); None: no command at all."""
    match header >> 29:
        case 0:
            return 1 if header >> 23 < 0x10 else (header & 0xFF) + 2
        case 2:
            return (header & 0xFF) + 2
        case 3:
            return (header & (0xFFF if header >> 27 & 3 == 2 else 0xFF)) + 2
    return None


@lru_cache
def generations(text: str) -> frozenset[float]:
    """'8+' -> {8, 9, 11};  '7..7.5' -> {7, 7.5};  '..7.5' -> {4.5, 7, 7.5};  '9' -> {9};  '7,9+' -> {7, 9, 11}."""
    found: set[float] = set()
    for part in text.split(","):
        first, dots, last = part.removesuffix("+").partition("..")
        low = float(first) if first else 0.0
        high = 99.0 if part.endswith("+") else float(last) if dots else low
        found |= {g for g in GENERATIONS if low <= g <= high}
        for named in (first, last):
            if named and float(named) not in GENERATIONS:
                raise ValueError(named)
    if not found:
        raise ValueError(text)
    return frozenset(found)
