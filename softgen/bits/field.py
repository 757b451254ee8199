"""Fields, repeated groups and command headers: the parts a layout is made of.

Positions are counted from bit 0 of dword 0 of the layout, or of the element inside a group.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple


class FieldType(NamedTuple):
    """The type of a field. `name` is one of page.TYPES."""

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


UINT = FieldType()


class FieldCondition(NamedTuple):
    """`when name=a,b`: a reading applies while another field has one of these values."""

    field: str
    values: tuple[int, ...]
    negated: bool = False


@dataclass(frozen=True)
class BitField:
    """A field: its name, the bits that it has, and what they mean."""

    name: str
    pieces: tuple[tuple[int, int], ...]  # (high, low), most significant first
    type: FieldType
    alternate: bool  # a second reading of bits another field claims
    when: tuple[FieldCondition, ...]
    gates: tuple[str, ...]  # bits beside it; while none is set, the field is not read, or keeps its latched value
    source: str
    line: int

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
    fields: tuple[BitField, ...]
    groups: tuple[Group, ...]
    of: str
    alternate: bool
    source: str
    line: int
    derived: tuple[tuple[str, str], ...] = ()

    @cached_property
    def claimed(self) -> int:
        """The bits of one element that some field claims."""
        return claimed_bits(self.fields, self.groups, self.size)

    def times(self, bits: int) -> int:
        """The number of elements in a layout of `bits` bits."""
        room = max(0, bits - self.start) // self.size
        return room if self.count is None else min(self.count, room)


def claimed_bits(fields: tuple[BitField, ...], groups: tuple[Group, ...], bits: int) -> int:
    claimed = 0
    for field in fields:
        claimed |= field.mask
    for group in groups:
        for i in range(group.times(bits)):
            claimed |= group.claimed << group.start + i * group.size
    return claimed


class Header(NamedTuple):
    """The key of a command: the bits of dword 0 that name it, and those that hold its length."""

    key: str
    mask: int
    value: int
    length: tuple[int, int] | None  # (high, low); None: the command has no length field
    bias: int

    @property
    def claimed(self) -> int:
        return self.mask | (0 if self.length is None else (1 << self.length[0] + 1) - (1 << self.length[1]))

    def dwords(self, header: int, fixed: int) -> int:
        if self.length is None:
            return fixed
        high, low = self.length
        return (header >> low & (1 << high - low + 1) - 1) + self.bias


class Effect(NamedTuple):
    """What executing a command does: `latches` and `merges` set state, `acts` does something at once, `starts` starts work.

    How a command merges with what was latched before (`rule`): `index` replaces what has the same values in the fields `by`, `gates`
    replaces fields whose gate is set, `mask` replaces the bits of the fields' dword that have a one in the field `by`, `position`
    replaces as many dwords as the command has. A command that latches (rule "") replaces everything.
    """

    kind: str
    rule: str = ""
    by: tuple[str, ...] = ()
    group: str = ""  # what the state is for
    acts_when: tuple[str, ...] = ()  # fields of which one that is set makes a state command act

    @property
    def sets_state(self) -> bool:
        return self.kind in ("latches", "merges")
