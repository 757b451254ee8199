"""Random kernels whose channels part, and whose registers belong to other channels from instruction to instruction.

    kernel = generate(9, 17)

A pool of registers is used for channels from 0 on, from 8 or 16 on, as scalars, in pieces of several sizes and strides, by one to 32
channels, NoMask or not, and by messages of a few channels; values go into it and come back by the same lane map or by another.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from softgen.eu.isa import types
from softgen.eu.isa.instruction import Operand
from tests.eu.random_programs.flow import Item
from tests.eu.semantics.build import NULL, dst, imm, instr, reg, scalar
from tests.eu.translate.divergent import Kernel, Writer
from tests.eu.translate.divergent_code import AREAS, INDEX, ITEMS, OWORDS, REGISTER, ROWS, Slot

POOL, REGISTERS = 64, 8
SIZES = {"ub": 0, "uw": 1, "ud": 2}  # what scattered messages have in each lane
READ, WRITE = 4, 12
NARROW_ROWS = {"ub": 20, "uw": 22}  # of the second buffer, where nothing else is stored


class Sharing(Writer):
    """Writes kernels with a pool."""

    widths = (8, 16, 32, 32)

    def _begin(self, threads: int) -> list[Item]:
        self.maps: list[tuple[str, int, int, int]] = []  # type, byte, channel and size of what was written last
        self.strange = self.rng.choice((0.0, 0.0, 0.1, 0.2))
        self.grain = self.rng.choice((1, 2, 2))  # registers; with one, parts of the pool overlap
        items = super()._begin(threads)
        for number in range(POOL, POOL + REGISTERS):
            items.append(instr(self.gen, "mov", dst(number, "ud"), imm(number * 0x01010101, "ud"), size=8, no_mask=True))
        return items

    def some(self) -> list[Item]:
        way = self.rng.random()
        if way < 0.15:
            return super().some()
        if way < 0.7:
            return [*self.into_pool(), *(super().some() if self.rng.random() < 0.3 else []), *self.out_of_pool()]
        return self.rng.choice((self.into_pool, self.out_of_pool, self.one_scalar, self.few_lanes, self.narrow_store))()

    def _place(self, kind: str, size: int, stride: int = 1) -> int:
        """A byte of the pool with room behind it, where a register begins."""
        grain, bytes = self.grain * REGISTER, types.size(kind) * stride * size
        last = (REGISTERS * REGISTER - bytes) // grain
        return POOL * REGISTER + grain * self.rng.choice((0, 0, self.rng.randint(0, last)))

    def _channels(self, kind: str, stride: int = 1) -> tuple[int, int]:
        """The first channel and size of an instruction."""
        most = min(2 * REGISTER // (types.size(kind) * stride), self.width)
        size = self.rng.choice([size for size in (8, *[8 * self.grain] * 3, 16, 32) if size <= most] or [most])
        size = self.rng.choice((1, 2, 4)) if self.rng.random() < 0.1 else size
        unit = max(size, 4)
        return self.rng.randrange(0, self.width, unit) // unit * unit, size

    def _how(self, size: int) -> dict[str, Any]:
        if self.rng.random() < self.strange / 2:
            return {"no_mask": True}
        return self._predicated(size) if self.rng.random() < 0.2 else {}

    def _region(self, byte: int, kind: str, size: int, stride: int = 1) -> Operand:
        """A source in the pool."""
        if size == 1:
            return scalar(byte // REGISTER, kind, byte % REGISTER)
        row = min(size, REGISTER // (types.size(kind) * stride), 8)
        return reg(byte // REGISTER, kind, f"{row * stride};{row},{stride}", byte % REGISTER)

    def into_pool(self) -> list[Item]:
        kind = self.rng.choice(("d", "d", "d", "d", "ud", "ud", "uw"))
        stride = self.rng.choice((1, 1, 1, 1, 1, 1, 2))
        first, size = self._channels(kind, stride)
        byte = self._place(kind, size, stride)
        source = self._source(self.rng.choice(self.of_size(types.size(kind))), first, size, kind)
        if size < 8:
            source = self._region(source.number * REGISTER + source.sub, kind, size)
        made = instr(self.gen, "mov", dst(byte // REGISTER, kind, stride, byte % REGISTER), source, size=size, **self._where(first),
                     **self._how(size))
        if not self._legal(made):
            return []
        self.maps = [(kind, byte, first, size), *self.maps[:2]]
        return [made]

    def out_of_pool(self) -> list[Item]:
        """To a slot, mostly as it was written."""
        rng = self.rng
        target = rng.choice([slot for slot in self.kept if slot.kind in ("d", "ud")] or self.of_size(4))
        first, size = self._channels("d")
        kind, byte, stride = "d", self._place("d", size), 1
        if self.maps and rng.random() < 0.75:
            kind, byte, first, size = rng.choice(self.maps)
            if rng.random() < 0.15:  # of other channels
                first = rng.choice([channel for channel in range(0, self.width, max(size, 4)) if channel + size <= self.width])
            if kind in ("d", "ud") and rng.random() < 0.2:  # a part of each lane
                kind, stride, byte = rng.choice((("uw", 2, byte + rng.choice((0, 2))), ("ub", 4, byte + rng.randrange(4))))
        size = min(size, 16)
        source = self._region(byte, kind, size, stride)
        if rng.random() < 0.1:
            source = scalar(byte // REGISTER, kind, byte % REGISTER)
        name = rng.choice(("mov", "xor", "add"))
        more = [self._source(target, first, size)] if name != "mov" and size >= 8 else []
        made = instr(self.gen, name if more else "mov", self._target(target, first), *more, source, size=size, **self._where(first),
                     **self._how(size))
        return [made] if self._legal(made) else []

    def one_scalar(self) -> list[Item]:
        at, slot = POOL * REGISTER + 4 * self.rng.randrange(8 * REGISTERS), self.rng.choice(self.of_size(4))
        source = scalar(slot.start // REGISTER, slot.kind, 4 * self.rng.randrange(8))
        made = instr(self.gen, "mov", dst(at // REGISTER, slot.kind, 1, at % REGISTER), source, size=1, no_mask=self.rng.random() < 0.7)
        self.maps = [(slot.kind, at, 0, 1), *self.maps[:2]]
        return [made]

    # -- messages ------------------------------------------------------------------------------------------------------

    def _near(self, area: int, row: int, shift: int, first: int, size: int, **more: Any) -> list[Item]:
        """Offsets of a byte or word for each item: in order, these are contiguous."""
        source = self._source(Slot("d", INDEX * REGISTER), first, max(size, 8))
        if size < 8:
            source = self._region(source.number * REGISTER + source.sub, "d", size)
        target, more = dst(area, "ud"), {"size": size, **self._where(first), **more}
        return [
            instr(self.gen, "shr", target, replace(source, type="ud"), imm(shift, "ud"), **more),
            instr(self.gen, "add", target, self._region(area * REGISTER, "ud", size), imm(4 * ITEMS * row, "ud"), **more),
        ]

    def few_lanes(self) -> list[Item]:
        """A scattered read of the pool or a slot by one to sixteen channels."""
        rng, area = self.rng, self.rng.choice(AREAS)
        size = rng.choice([size for size in (1, 1, 2, 4, 8, 16) if size <= self.width])
        first = rng.randrange(0, self.width, max(size, 4)) // max(size, 4) * max(size, 4)
        kind, how = rng.choice(tuple(SIZES)), {"no_mask": True} if rng.random() < 0.2 else {}
        wide = size == 16
        descriptor = (1 + wide) << 25 | (1 + wide) << 20 | READ << 14 | SIZES[kind] << 10 | wide << 8
        byte = self._place("d", 16)
        self.maps = [("d", byte, first, size), *self.maps[:2]]
        target = dst(byte // REGISTER, "ud")
        items = self._near(area, rng.randrange(ROWS), 2 - SIZES[kind], first, size, **how)
        return [*items, self._send(OWORDS, descriptor, target, area, size, first, **how)]

    def narrow_store(self) -> list[Item]:
        """Bytes or words of each item, side by side in memory."""
        rng, area = self.rng, self.rng.choice(AREAS)
        size = 16 if self.width >= 16 and rng.random() < 0.5 else 8
        first = rng.randrange(0, self.width, size) // size * size
        kind = rng.choice(("ub", "uw"))
        wide = size == 16
        descriptor = 2 * (1 + wide) << 25 | WRITE << 14 | SIZES[kind] << 10 | wide << 8 | 1
        slot = rng.choice(self.of_size(4))
        items = self._near(area, NARROW_ROWS[kind], 2 - SIZES[kind], first, size)
        data = dst(area + size // 8, "d")
        items.append(instr(self.gen, "mov", data, self._source(slot, first, size, "d"), size=size, **self._where(first)))
        return [*items, self._send(OWORDS, descriptor, NULL, area, size, first)]


@cache
def generate(gen: float, number: int) -> Kernel:
    return Sharing(gen, number).write()
