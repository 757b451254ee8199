"""Operands of the basic form, both ways. Send and branch use them too.

Reads   EU_DESTINATION EU_SOURCE_0 EU_SOURCE_1
"""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import Any

from softgen.bits.record import Record
from softgen.errors import DecodeError
from softgen.eu.encoding.fields import ADDRESSES, Memory, page
from softgen.eu.isa import types
from softgen.eu.isa.instruction import Operand, make_operand

FIELDS = attrgetter(*(one.name for one in fields(Operand)))

Coded = tuple[Operand, int]  # an operand, and the bits that say it


def _position(mask: int) -> tuple[int, int]:
    """Where an unbroken field begins, and its mask from there."""
    low = (mask & -mask).bit_length() - 1
    return low, mask >> low


class Place:
    """One of the places an operand can stand in: destination, source 0, source 1."""

    def __init__(self, name: str, gen: float) -> None:
        self.page, self.gen = page(name, gen), gen
        self.bits = self.page.mask_without("immediate", "immediate_64")
        self.type_bits = self.page.mask("type")
        self.file_bits = self.page.mask("file")
        self.head_bits = self.file_bits | self.type_bits
        self.narrow_bits = self.head_bits | self.page.mask("immediate")
        self.wide_bits = self.head_bits | self.page.mask("immediate_64")
        self.immediate = -1  # the file bits that say so; destinations are never one
        if "immediate" in self.page:
            self.immediate = self.page.word({"file": self.page.code("file", "imm")})
        self.registers: dict[tuple[bool, bool], Memory[int, Coded]] = {(a, b): Memory() for a in (False, True) for b in (False, True)}
        self.immediates: Memory[tuple[int, bool], Coded] = Memory()
        self.heads: Memory[int, Coded] = Memory()
        self.number, self.sub = _position(self.page.mask("number")), _position(self.page.mask("sub"))
        self.address_bits = self.page.mask("number", "sub")
        self.indirect_bits = self.page.mask("indirect")
        self.templates: Memory[int, tuple[tuple[Any, ...], int]] = Memory()
        self.words: Memory[tuple[Operand, bool, bool], int] = Memory()

    # -- reading ---------------------------------------------------------------------------------------------------

    def is_immediate(self, word: int) -> bool:
        return word & self.file_bits == self.immediate

    def read(self, word: int, align16: bool, macro: bool = False, wide: bool = False) -> Coded:
        """The operand in a word. `wide`: an immediate takes both source dwords."""
        if word & self.file_bits == self.immediate:
            bits = word & (self.wide_bits if wide else self.narrow_bits)
            return self.immediates.get((bits, wide)) or self.immediates.keep((bits, wide), self._immediate(bits, wide))
        bits = word & self.bits
        memory = self.registers[align16, macro]
        found = memory.get(bits)
        if found is not None:
            return found
        plain = not (align16 or macro or bits & self.indirect_bits)
        return memory.keep(bits, self._direct(bits) if plain else self._register(bits, align16, macro))

    def _direct(self, bits: int) -> Coded:
        """A register named outright: all but its number is likely to have been seen, which saves most of the work."""
        rest = bits & ~self.address_bits
        found = self.templates.get(rest)
        if found is None:
            one, code = self._register(rest, False, False)
            found = self.templates.keep(rest, (FIELDS(one), code))
        (file, kind, _, _, *others), code = found
        number, sub = bits >> self.number[0] & self.number[1], bits >> self.sub[0] & self.sub[1]
        return make_operand(file, kind, number, sub, *others), code | bits & self.address_bits

    def read_head(self, word: int) -> Coded:
        """File and type alone, where something else stands in the rest."""
        bits = word & self.head_bits
        found = self.heads.get(bits)
        if found is None:
            record = self.page.record(bits)
            file = self.page.meaning("file", record.file)
            one = Operand(file, self._type_name(record.type, file))
            found = self.heads.keep(bits, (one, self.write_head(one)))
        return found

    def is_wide(self, word: int) -> bool:
        """Whether an immediate's type needs 64 bits."""
        return types.size(self.read_head(word)[0].type) > 4

    def _immediate(self, bits: int, wide: bool) -> Coded:
        record = self.page.record(bits)
        one = Operand("imm", self._type_name(record.type, "imm"), immediate=record.immediate_64 if wide else record.immediate)
        return one, self._word(one, False, wide)

    def _register(self, bits: int, align16: bool, macro: bool) -> Coded:
        record, page = self.page.record(bits), self.page
        file = page.meaning("file", record.file)
        values: dict[str, Any] = {"file": file, "type": self._type_name(record.type, file)}
        self._read_address(record, align16, macro, values)
        self._read_region(record, align16, macro, values)
        for name in ("negate", "absolute"):
            if name in page:
                values[name] = bool(getattr(record, name))
        one = Operand(**values)
        return one, self._word(one, align16, False)

    def _read_address(self, record: Record, align16: bool, macro: bool, values: dict[str, Any]) -> None:
        if record.indirect:
            values |= {"indirect": True, "address_sub": record.address_sub,
                       "offset": record.offset_16 * ADDRESSES if align16 else record.offset}  # fmt: skip
        elif macro:
            values |= {"number": record.number}
        else:
            values |= {"number": record.number, "sub": record.sub_16 * ADDRESSES if align16 else record.sub}

    def _read_region(self, record: Record, align16: bool, macro: bool, values: dict[str, Any]) -> None:
        page = self.page
        if macro:
            values["special"] = record.special
        elif align16:
            values |= {name: getattr(record, name) for name in ("swizzle", "write_mask") if name in page}
        for name in ("vertical", "horizontal", "width"):
            if name in page and (not align16 or name != "width" and (name != "horizontal" or "write_mask" in page)):
                values[name] = page.meaning(name, getattr(record, name))

    def _type_name(self, code: int, file: str) -> str:
        return types.names("immediate" if file == "imm" else "register", self.gen).get(code, "")

    # -- writing ---------------------------------------------------------------------------------------------------

    def type_code(self, one: Operand) -> int:
        position = "immediate" if one.file == "imm" else "register"
        code = types.codes(position, self.gen).get(one.type, None if one.type else 0)
        if code is None:
            raise DecodeError(f"gen {self.gen:g} has no {position} of type {one.type}")
        return code

    def write_head(self, one: Operand) -> int:
        return self.page.word({"file": self.page.code("file", one.file), "type": self.type_code(one)})

    def write(self, one: Operand, align16: bool, wide: bool = False) -> int:
        key = one, align16, wide
        found = self.words.get(key)
        return self.words.keep(key, self._word(*key)) if found is None else found

    def _word(self, one: Operand, align16: bool, wide: bool) -> int:
        page = self.page
        values: dict[str, Any] = {"file": page.code("file", one.file), "type": self.type_code(one)}
        if one.file == "imm" and "immediate" in page:
            values["immediate_64" if wide else "immediate"] = one.immediate
            return page.word(values)
        bits = page.word(values) | page.word(self._address(one, align16))
        region: dict[str, Any] = {name: getattr(one, name) for name in ("negate", "absolute") if name in page}
        if one.special is not None:
            region["special"] = one.special
        elif align16:
            region |= {name: getattr(one, name) or 0 for name in ("swizzle", "write_mask") if name in page}
        for name in ("vertical", "horizontal", "width"):
            if name in page and (not align16 or name != "width" and (name != "horizontal" or "write_mask" in page)):
                region[name] = page.code(name, getattr(one, name))
        return bits | page.word(region)

    def _address(self, one: Operand, align16: bool) -> dict[str, Any]:
        if one.indirect and align16:
            return {"indirect": 1, "address_sub": one.address_sub, "offset_16": units(one.offset, ADDRESSES, "offset")}
        if one.indirect:
            return {"indirect": 1, "address_sub": one.address_sub, "offset": one.offset}
        if one.special is not None:
            return {"number": one.number}
        if align16:
            return {"number": one.number, "sub_16": units(one.sub, ADDRESSES, "sub-register")}
        return {"number": one.number, "sub": one.sub}


def units(value: int, unit: int, what: str) -> int:
    """A number of bytes as the encoding counts it."""
    if value % unit:
        raise DecodeError(f"{what} must be a multiple of {unit} bytes here, not {value}")
    return value // unit


@cache
def place(name: str, gen: float) -> Place:
    return Place(name, gen)
