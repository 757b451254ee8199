"""Operands of random instructions: every kind of region an operand of a form can have, and a random operand of a kind.

A kind names what coverage counts: `packed`, `scalar`, `rows`, `indirect`, … An operand is chosen so that it is likely legal; whether it is
decide the restrictions. Registers are used as `cases` lays them out: destinations only where data stands.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cache
from typing import Any

from softgen.eu.encoding.fields import instruction_page
from softgen.eu.isa import registers, types
from softgen.eu.isa.instruction import VXH, Operand

REGISTER, SPAN = 32, 64  # bytes of a register, and of the two that a region may touch
FIRST, LAST = 8, 108  # registers that programs write
IDENTITY = 0b11100100
STRIDES = (1, 2, 4)
ACC, FLAG, ADDRESS, STATE, CONTROL, IP = 0x20, 0x30, 0x10, 0x70, 0x80, 0xA0
PACKED = {"w": ("v",), "uw": ("uv", "v"), "d": ("v",), "ud": ("uv",), "f": ("vf",)}  # packed immediates that can stand for a type
ADDRESSES = 16  # what address registers hold are multiples of this

SOURCES_1 = ("packed", "scalar", "stride2", "stride4", "rows", "column", "indirect", "vxh", "vx1", "immediate", "vector", "acc", "arf")
SOURCES_16 = ("swizzle", "straight", "one_vector", "indirect16", "immediate16")
TARGETS_1 = ("packed", "stride2", "stride4", "offset", "indirect", "acc", "null", "arf")
TARGETS_16 = ("all_channels", "write_mask", "indirect16")
THREE_16 = ("swizzle", "straight", "replicate")
THREE_1 = ("packed", "scalar", "stride2", "stride4", "rows", "immediate", "acc")


@dataclass(frozen=True)
class Region:
    vertical: int
    width: int
    horizontal: int

    def __str__(self) -> str:
        return f"<{self.vertical};{self.width},{self.horizontal}>"


@cache
def regions(exec_size: int, size: int, kind: str = "") -> tuple[Region, ...]:
    """The regions of so many channels of so many bytes that stand in two registers, row by row in one (IVB 2976-3052)."""
    found = []
    for vertical in (0, 1, 2, 4, 8, 16, 32):
        for width in (1, 2, 4, 8, 16):
            for horizontal in (0, 1, 2, 4):
                region = Region(vertical, width, horizontal)
                if _is_region(region, exec_size, size) and kind in ("", kind_of(region, exec_size)):
                    found.append(region)
    return tuple(found)


def _is_region(region: Region, exec_size: int, size: int) -> bool:
    if region.width > exec_size or region.width == exec_size and region.horizontal and region.vertical != region.width * region.horizontal:
        return False
    if region.width == 1 and region.horizontal or exec_size == 1 and region != Region(0, 1, 0):
        return False
    if not region.vertical and not region.horizontal and region.width != 1:
        return False
    row = (region.width - 1) * region.horizontal * size + size
    last = (exec_size // region.width - 1) * region.vertical * size + row
    return row <= REGISTER and last <= SPAN


def kind_of(region: Region, exec_size: int) -> str:
    if region == Region(0, 1, 0):
        return "scalar"
    if region.width == 1:
        return "column"
    if region.vertical == region.width * region.horizontal:
        return {1: "packed", 2: "stride2", 4: "stride4"}[region.horizontal]
    return "rows"


class Operands:
    """A source of random operands for one generation."""

    def __init__(self, gen: float, rng: random.Random) -> None:
        self.gen, self.rng = gen, rng
        a = registers.register("a", gen)
        assert a is not None
        self.addresses = a.size // 2

    # -- sources ---------------------------------------------------------------------------------------------------

    def source(self, kind: str, name: str, exec_size: int, shape: Region | None = None) -> Operand:
        """A source of a kind and type, or of just this region."""
        made = getattr(self, f"_{kind}", None)
        if made is not None and shape is None:
            return made(name, exec_size)  # type: ignore[no-any-return]
        return self._grf(kind, name, exec_size, shape)

    def _number(self, span: int = 2) -> int:
        return self.rng.randint(FIRST, LAST - span)

    def _sub(self, size: int) -> int:
        return self.rng.choice((0, 0, self.rng.randrange(0, REGISTER, size)))

    def _grf(self, kind: str, name: str, exec_size: int, shape: Region | None) -> Operand:
        size = types.size(name)
        region = shape or self.rng.choice(regions(exec_size, size, kind) or regions(exec_size, size))
        return Operand("grf", name, self._number(), self._sub(size), vertical=region.vertical, width=region.width,
                       horizontal=region.horizontal)

    def _indirect(self, name: str, exec_size: int) -> Operand:
        size = types.size(name)
        region = self.rng.choice(regions(exec_size, size))
        return Operand("grf", name, indirect=True, address_sub=self.rng.randrange(self.addresses), offset=self._offset(size),
                       vertical=region.vertical, width=region.width, horizontal=region.horizontal)  # fmt: skip

    def _offset(self, size: int) -> int:
        return self.rng.randrange(-256, 256, size)

    def _vxh(self, name: str, exec_size: int) -> Operand:
        width = self.rng.choice([value for value in (2, 4, 8, 16) if exec_size // value in range(1, self.addresses + 1)] or [1])
        return self._addressed(name, exec_size, width)

    def _vx1(self, name: str, exec_size: int) -> Operand:
        return self._addressed(name, exec_size, 1)

    def _addressed(self, name: str, exec_size: int, width: int) -> Operand:
        size, count = types.size(name), max(exec_size // width, 1)
        first = self.rng.randrange(0, max(self.addresses - count, 0) + 1, count)
        inner = [value for value in (0, 1, 2, 4) if (width - 1) * value * size + size <= REGISTER] if width > 1 else [0]
        return Operand("grf", name, indirect=True, address_sub=first, offset=self._offset(size), vertical=VXH, width=width,
                       horizontal=self.rng.choice(inner))  # fmt: skip

    def _immediate(self, name: str, exec_size: int) -> Operand:
        size = types.size(name)
        bits = number(name, self.rng)
        return Operand("imm", name, immediate=bits | bits << 16 if size == 2 else bits)

    _immediate16 = _immediate

    def _vector(self, name: str, exec_size: int) -> Operand:
        known = [item for item in PACKED.get(name, ()) if item in types.codes("immediate", self.gen)]
        return Operand("imm", self.rng.choice(known), immediate=self.rng.getrandbits(32)) if known else self._immediate(name, exec_size)

    def _acc(self, name: str, exec_size: int) -> Operand:
        kind = "packed" if exec_size > 1 else "scalar"
        region = self.rng.choice(regions(exec_size, types.size(name), kind) or regions(exec_size, types.size(name)))
        whole = exec_size * types.size(name) > REGISTER
        return Operand("arf", name, ACC + (0 if whole else self.rng.randrange(2)), vertical=region.vertical, width=region.width,
                       horizontal=region.horizontal)  # fmt: skip

    def _arf(self, name: str, exec_size: int) -> Operand:
        size = types.size(name)
        known = [(item.code, item.size) for item in _rows_of(self.gen) if item.size >= size]
        code, length = self.rng.choice(known)
        return Operand("arf", name, code, self.rng.randrange(0, length - size + 1, size), vertical=0, width=1)

    # -- align16 ---------------------------------------------------------------------------------------------------

    def _vector4(self, name: str, vertical: int, swizzle: int) -> Operand:
        return Operand("grf", name, self._number(4), self.rng.choice((0, 16)), vertical=vertical, swizzle=swizzle)

    def _swizzle(self, name: str, exec_size: int) -> Operand:
        return self._vector4(name, self.rng.choice((0, 4)), self.rng.randrange(256))

    def _straight(self, name: str, exec_size: int) -> Operand:
        return self._vector4(name, 4, IDENTITY)

    def _one_vector(self, name: str, exec_size: int) -> Operand:
        return self._vector4(name, 0, self.rng.choice((IDENTITY, self.rng.randrange(256), 0b01010101 * self.rng.randrange(4))))

    def _indirect16(self, name: str, exec_size: int) -> Operand:
        return Operand("grf", name, indirect=True, address_sub=self.rng.randrange(self.addresses), offset=16 * self.rng.randint(-16, 15),
                       vertical=self.rng.choice((0, 4)), swizzle=self.rng.choice((IDENTITY, self.rng.randrange(256))))  # fmt: skip

    # -- destinations ----------------------------------------------------------------------------------------------

    def target(self, kind: str, name: str, exec_size: int, pitch: int) -> Operand:
        """A destination; `pitch` is the least distance of its channels in bytes."""
        size = types.size(name)
        if kind in TARGETS_16:
            return self._target16(kind, name)
        least = max(pitch // size, 1)
        strides = [stride for stride in STRIDES if stride >= least] or [4]
        stride = {"stride2": 2, "stride4": 4}.get(kind) or (least if kind in ("packed", "acc") else self.rng.choice(strides))
        base: dict[str, Any] = {"horizontal": stride if stride in STRIDES else 4}
        if kind == "null":
            return Operand("arf", name, **base)
        if kind == "acc":
            return Operand("arf", name, ACC + (0 if exec_size * stride * size > REGISTER else self.rng.randrange(2)), **base)
        if kind == "arf":
            code, sub = self.rng.choice(self._written(size))
            return Operand("arf", name, code, sub, **base)
        if kind == "indirect":
            register = self.rng.randrange(self.addresses)
            return Operand("grf", name, indirect=True, address_sub=register, offset=self._offset(max(size, pitch)), **base)
        if kind == "mrf":
            return Operand("mrf", name, self.rng.randrange(12), **base)
        subs = [index for index in range(0, REGISTER, size) if not index % max(pitch, size) or size == 1 and index % max(pitch, 1) == 1]
        sub = self.rng.choice(subs[1:] or subs) if kind == "offset" else self.rng.choice((0, 0, self.rng.choice(subs)))
        return Operand("grf", name, self._number(), sub, **base)

    def _written(self, size: int) -> list[tuple[int, int]]:
        """Flag and address registers; those that steer the thread are written by `cases` alone."""
        flags = registers.register("f", self.gen)
        assert flags is not None
        found = [(FLAG + index, sub) for index in range(flags.count) for sub in range(0, flags.size, size)]
        return [*found, *((ADDRESS, sub) for sub in range(0, self.addresses * 2, max(size, 2)))]

    def _target16(self, kind: str, name: str) -> Operand:
        mask = self.rng.randint(1, 14) if kind == "write_mask" else self.rng.choice((15, 15, self.rng.randint(1, 14)))
        mask = 15 if kind == "all_channels" else mask
        if kind == "indirect16":
            offset, register = 16 * self.rng.randint(-16, 15), self.rng.randrange(self.addresses)
            return Operand("grf", name, indirect=True, address_sub=register, offset=offset, horizontal=1, write_mask=mask)
        return Operand("grf", name, self._number(), self.rng.choice((0, 0, 16)), horizontal=1, write_mask=mask)

    # -- three sources ---------------------------------------------------------------------------------------------

    def three_16(self, kind: str, name: str, macro: bool) -> Operand:
        unit = max(types.size(name), 2 if "src1_half" in instruction_page("EU_THREE_SOURCE", self.gen) else 4)
        if macro:
            return Operand("grf", name, self._number(4), special=self.rng.randrange(9))
        swizzle = IDENTITY if kind == "straight" else self.rng.randrange(256)
        sub = self.rng.randrange(0, REGISTER, unit) if kind == "replicate" else self.rng.choice((0, 16))
        return Operand("grf", name, self._number(4), sub, replicate=kind == "replicate", swizzle=swizzle)

    def three_1(self, kind: str, name: str, index: int, macro: bool) -> Operand:
        if macro:
            return Operand("grf", name, self._number(4), vertical=0 if index == 2 else 8, horizontal=1, special=self.rng.randrange(9))
        if kind == "immediate":
            return Operand("imm", name, immediate=number(name, self.rng) & 0xFFFF)
        if kind == "acc":
            return Operand("arf", name, ACC, vertical=8, horizontal=1)
        inner = {"packed": 1, "stride2": 2, "stride4": 4, "scalar": 0}.get(kind, self.rng.choice((0, 1, 2)))
        outer = 0 if index == 2 or kind == "scalar" else self.rng.choice((2, 4, 8)) if kind == "rows" else 8
        return Operand("grf", name, self._number(4), self._sub(types.size(name)), vertical=outer, horizontal=inner)

    def three_target(self, form: str, name: str, macro: bool, kind: str) -> Operand:
        if form == "three_source":
            if macro:
                return Operand("grf", name, self._number(), special=8)
            mask = self.rng.randint(1, 14) if kind == "write_mask" else 15
            return Operand("grf", name, self._number(), self.rng.choice((0, 0, 16)), write_mask=mask)
        if macro:
            return Operand("grf", name, self._number(), horizontal=1, special=8)
        if kind == "acc":
            return Operand("arf", name, ACC, horizontal=1)
        return Operand("grf", name, self._number(), 0, horizontal=2 if kind == "stride2" else 1)


@cache
def _rows_of(gen: float) -> tuple[registers.ArchitectureRegister, ...]:
    """Architecture registers that may be read and say the same every time."""
    rows = (registers.register(name, gen) for name in ("f", "a", "sr", "ce", "n", "ip"))
    return tuple(row for row in rows if row is not None)


# -- numbers ---------------------------------------------------------------------------------------------------------

FLOAT_BITS = {"hf": (5, 10), "f": (8, 23), "df": (11, 52)}


@cache
def specials(name: str) -> tuple[int, ...]:
    """Bits of the numbers that go wrong first."""
    if name in FLOAT_BITS:
        exponent, fraction = FLOAT_BITS[name]
        top, bias = (1 << exponent) - 1, (1 << exponent - 1) - 1
        one, inf = bias << fraction, top << fraction
        plain = [0, 1, (1 << fraction) - 1, 1 << fraction, one, one + 1, one - 1, one | 1 << fraction - 1, bias - 1 << fraction,
                 inf - 1, inf, inf | 1 << fraction - 1, inf | 1 << fraction - 1 | 5, inf | 1, bias + min(30, bias - 1) << fraction,
                 bias + 3 << fraction | 3 << fraction - 2]  # fmt: skip
        return tuple(sign | value for value in plain for sign in (0, 1 << exponent + fraction))
    bits = types.size(name) * 8
    top, half = 1 << bits - 1, 1 << bits // 2
    values = (0, 1, 2, 3, 7, 31, 32, -1, -2, -32, top, top - 1, top + 1, half, half - 1)
    return tuple(value & (1 << bits) - 1 for value in values)


def number(name: str, rng: random.Random) -> int:
    """Bits of a number of a type: a special one, one near 1, or any."""
    bits, way = types.size(name) * 8, rng.random()
    if way < 0.4:
        return rng.choice(specials(name))
    if way < 0.7 and name in FLOAT_BITS:
        exponent, fraction = FLOAT_BITS[name]
        bias = (1 << exponent - 1) - 1
        return rng.getrandbits(1) << exponent + fraction | bias + rng.randint(-4, 6) << fraction | rng.getrandbits(fraction)
    if way < 0.7:
        return rng.randint(-40, 40) & (1 << bits) - 1
    return rng.getrandbits(bits)
