"""InstructionPage: an instruction page's fields, for decoder and encoder.

Codes of enumerations are converted to their meaning, a number or a word: an exec_size code of 3 reads 8.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import cache
from typing import Any, TypeVar

from softgen.bits.catalogue import catalogue
from softgen.bits.record import Record, split
from softgen.errors import DecodeError
from softgen.eu.isa.instruction import VXH

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

LIMIT = 1 << 16  # entries of a cache; a full cache is cleared
ADDRESSES = 16  # bytes: the unit of align16 sub-registers and address immediates


class BoundedCache(dict[Key, Value]):
    """A dict used as a cache: cleared when full."""

    def keep(self, key: Key, value: Value) -> Value:
        if len(self) >= LIMIT:
            self.clear()
        self[key] = value
        return value


class InstructionPage:
    """An instruction page of one generation."""

    def __init__(self, name: str, gen: float) -> None:
        self.layout = catalogue().layout(name, gen)
        self.place = self.layout.place
        self.name, self.gen, self.dwords = name, gen, self.layout.dwords
        self.fields = {field.name: field for field in self.layout.fields}
        self.flags = frozenset(field.name for field in self.layout.fields if field.type.name == "bool")
        self.values = {
            field.name: {code: _meaning(text) for code, text in field.type.values} for field in self.layout.fields if field.type.values
        }
        self.codes = {name: {meaning: code for code, meaning in values.items()} for name, values in self.values.items()}

    def __contains__(self, name: str) -> bool:
        return name in self.fields

    def mask(self, *names: str) -> int:
        """The mask of fields; fields that the page lacks have none."""
        found = 0
        for name in names:
            if name in self.fields:
                found |= self.fields[name].mask
        return found

    def mask_without(self, *names: str) -> int:
        return self.mask(*(name for name in self.fields if name not in names))

    def record(self, word: int) -> Record:
        return self.layout.raw(split(word, self.dwords))

    def meaning(self, name: str, code: int) -> Any:
        """The meaning of a code; of a reserved code the first meaning."""
        values = self.values[name]
        return values[code] if code in values else next(iter(values.values()))

    def code(self, name: str, meaning: Any) -> int:
        found = self.codes[name].get(meaning)
        if found is None:
            known = ", ".join(str(value) for value in self.codes[name])
            raise DecodeError(f"gen {self.gen:g}: {name.replace('_', ' ')} must be one of {known}, not {meaning}")
        return found

    def word(self, values: Mapping[str, Any]) -> int:
        """The word with these fields set; values are codes, not meanings."""
        try:
            return self.place(values)
        except ValueError as error:
            raise DecodeError(f"gen {self.gen:g}: {error}") from None


def _meaning(text: str) -> int | str:
    return int(text) if text.isdigit() else VXH if text == "vxh" else text


@cache
def instruction_page(name: str, gen: float) -> InstructionPage:
    return InstructionPage(name, gen)


def find_page(name: str, gen: float) -> InstructionPage | None:
    """The page, or None where the generation has none of the name."""
    return instruction_page(name, gen) if catalogue().get(name, gen) else None
