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
from softgen.eu.encoding.fields import ADDRESSES, BoundedCache, instruction_page
from softgen.eu.isa import types
from softgen.eu.isa.instruction import Operand, make_operand

FIELDS = attrgetter(*(field.name for field in fields(Operand)))

Coded = tuple[Operand, int]  # an operand, and the bits that say it


def _position(mask: int) -> tuple[int, int]:
    """Where an unbroken field begins, and its mask from there."""
    low = (mask & -mask).bit_length() - 1
    return low, mask >> low


class OperandFields:
    """One of the places an operand can stand in: destination, source 0, source 1."""

    def __init__(self, name: str, gen: float) -> None:
        self.page, self.gen = instruction_page(name, gen), gen
        self.bits = self.page.mask_without("immediate", "immediate_64")
        self.type_bits = self.page.mask("type")
        self.file_bits = self.page.mask("file")
        self.head_bits = self.file_bits | self.type_bits
        self.narrow_bits = self.head_bits | self.page.mask("immediate")
        self.wide_bits = self.head_bits | self.page.mask("immediate_64")
        self.immediate = -1  # the file bits that say so; destinations are never one
        if "immediate" in self.page:
            self.immediate = self.page.word({"file": self.page.code("file", "imm")})
        self.registers: dict[tuple[bool, bool], BoundedCache[int, Coded]] = {
            (a, b): BoundedCache() for a in (False, True) for b in (False, True)
        }
        self.immediates: BoundedCache[tuple[int, bool], Coded] = BoundedCache()
        self.heads: BoundedCache[int, Coded] = BoundedCache()
        self.number, self.sub = _position(self.page.mask("number")), _position(self.page.mask("sub"))
        self.address_bits = self.page.mask("number", "sub")
        self.indirect_bits = self.page.mask("indirect")
        self.templates: BoundedCache[int, tuple[tuple[Any, ...], int]] = BoundedCache()
        self.words: BoundedCache[tuple[Operand, bool, bool], int] = BoundedCache()

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
            operand, code = self._register(rest, False, False)
            found = self.templates.keep(rest, (FIELDS(operand), code))
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
            operand = Operand(file, self._type_name(record.type, file))
            found = self.heads.keep(bits, (operand, self.write_head(operand)))
        return found

    def is_wide(self, word: int) -> bool:
        """Whether an immediate's type needs 64 bits."""
        return types.size(self.read_head(word)[0].type) > 4

    def _immediate(self, bits: int, wide: bool) -> Coded:
        record = self.page.record(bits)
        operand = Operand("imm", self._type_name(record.type, "imm"), immediate=record.immediate_64 if wide else record.immediate)
        return operand, self._word(operand, False, wide)

    def _register(self, bits: int, align16: bool, macro: bool) -> Coded:
        record, page = self.page.record(bits), self.page
        file = page.meaning("file", record.file)
        values: dict[str, Any] = {"file": file, "type": self._type_name(record.type, file)}
        self._read_address(record, align16, macro, values)
        self._read_region(record, align16, macro, values)
        for name in ("negate", "absolute"):
            if name in page:
                values[name] = bool(getattr(record, name))
        operand = Operand(**values)
        return operand, self._word(operand, align16, False)

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

    def type_code(self, operand: Operand) -> int:
        position = "immediate" if operand.file == "imm" else "register"
        code = types.codes(position, self.gen).get(operand.type, None if operand.type else 0)
        if code is None:
            raise DecodeError(f"gen {self.gen:g} has no {position} of type {operand.type}")
        return code

    def write_head(self, operand: Operand) -> int:
        return self.page.word({"file": self.page.code("file", operand.file), "type": self.type_code(operand)})

    def write(self, operand: Operand, align16: bool, wide: bool = False) -> int:
        key = operand, align16, wide
        found = self.words.get(key)
        return self.words.keep(key, self._word(*key)) if found is None else found

    def _word(self, operand: Operand, align16: bool, wide: bool) -> int:
        page = self.page
        values: dict[str, Any] = {"file": page.code("file", operand.file), "type": self.type_code(operand)}
        if operand.file == "imm" and "immediate" in page:
            values["immediate_64" if wide else "immediate"] = operand.immediate
            return page.word(values)
        bits = page.word(values) | page.word(self._address(operand, align16))
        region: dict[str, Any] = {name: getattr(operand, name) for name in ("negate", "absolute") if name in page}
        if operand.special is not None:
            region["special"] = operand.special
        elif align16:
            region |= {name: getattr(operand, name) or 0 for name in ("swizzle", "write_mask") if name in page}
        for name in ("vertical", "horizontal", "width"):
            if name in page and (not align16 or name != "width" and (name != "horizontal" or "write_mask" in page)):
                region[name] = page.code(name, getattr(operand, name))
        return bits | page.word(region)

    def _address(self, operand: Operand, align16: bool) -> dict[str, Any]:
        if operand.indirect and align16:
            return {"indirect": 1, "address_sub": operand.address_sub, "offset_16": units(operand.offset, ADDRESSES, "offset")}
        if operand.indirect:
            return {"indirect": 1, "address_sub": operand.address_sub, "offset": operand.offset}
        if operand.special is not None:
            return {"number": operand.number}
        if align16:
            return {"number": operand.number, "sub_16": units(operand.sub, ADDRESSES, "sub-register")}
        return {"number": operand.number, "sub": operand.sub}


def units(value: int, unit: int, what: str) -> int:
    """A number of bytes as the encoding counts it."""
    if value % unit:
        raise DecodeError(f"{what} must be a multiple of {unit} bytes here, not {value}")
    return value // unit


@cache
def operand_fields(name: str, gen: float) -> OperandFields:
    return OperandFields(name, gen)
