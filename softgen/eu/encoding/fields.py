"""Instruction pages as decoder and encoder use them: words in, numbers out, and back.

Codes become what they mean: an enumeration's text if it is a word, its number if it is one, so that an exec_size code of 3 reads 8.
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

LIMIT = 1 << 16  # how many slices of words one memory holds before it starts again
ADDRESSES = 16  # bytes: what align16 sub-registers and address immediates count


class BoundedCache(dict[Key, Value]):
    """What has been computed, bounded."""

    def keep(self, key: Key, value: Value) -> Value:
        if len(self) >= LIMIT:
            self.clear()
        self[key] = value
        return value


class InstructionPage:
    """One instruction page for one generation."""

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
        """The bits of some fields; names the page does not have claim none."""
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
        """What a code stands for; a reserved one reads as the first."""
        values = self.values[name]
        return values[code] if code in values else next(iter(values.values()))

    def code(self, name: str, meaning: Any) -> int:
        found = self.codes[name].get(meaning)
        if found is None:
            known = ", ".join(str(value) for value in self.codes[name])
            raise DecodeError(f"gen {self.gen:g}: {name.replace('_', ' ')} must be one of {known}, not {meaning}")
        return found

    def word(self, values: Mapping[str, Any]) -> int:
        """The word with these fields set and nothing else; codes, not meanings."""
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
    """The page, or None where the generation has no such thing."""
    return instruction_page(name, gen) if catalogue().get(name, gen) else None
