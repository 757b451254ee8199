"""Operand types: what a type is, and the codes it has by generation and position. Read from `spec/eu/types.table`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from softgen.bits.layout import GENERATIONS, generations
from softgen.eu.isa.table import TableRow, rows

KINDS = ("unsigned", "signed", "float")
POSITIONS = ("register", "immediate", "three_source", "integer", "float")


@dataclass(frozen=True, slots=True)
class OperandType:
    name: str  # "ud"; Mesa's dialect writes it in capitals, IGA's as it is
    size: int  # bytes of one element; of the whole immediate for packed vectors
    kind: str  # one of KINDS
    lanes: int = 1  # packed vector immediates: elements in one immediate

    @property
    def signed(self) -> bool:
        return self.kind != "unsigned"

    @property
    def float(self) -> bool:
        return self.kind == "float"

    @property
    def vector(self) -> bool:
        return self.lanes > 1

    @property
    def mesa(self) -> str:
        return self.name.upper()

    @property
    def iga(self) -> str:
        return self.name


@dataclass(frozen=True)
class TypeTable:
    """The whole table."""

    types: Mapping[str, OperandType]
    codes: Mapping[tuple[str, float], Mapping[str, int]]  # (position, generation) -> name -> code
    names: Mapping[tuple[str, float], Mapping[int, str]]  # the same, the other way


def read(page: str, text: str) -> TypeTable:
    types: dict[str, OperandType] = {}
    codes: dict[tuple[str, float], dict[str, int]] = {}
    for row in rows(page, text):
        if row.words[0] == "type":
            type_ = _type(row)
            if type_.name in types:
                raise row.complain(f"type {type_.name} is already described")
            types[type_.name] = type_
        elif row.words[0] == "codes":
            _codes(row, types, codes)
        else:
            raise row.complain(f"a line begins with type, codes or source, not {row.words[0]!r}")
    names = {key: {code: name for name, code in given.items()} for key, given in codes.items()}
    return TypeTable(types, codes, names)


def _type(row: TableRow) -> OperandType:
    if len(row.words) != 5 or row.words[3] not in KINDS or not (row.words[2] + row.words[4]).isdigit():
        raise row.complain(f"a type is a name, a size, one of {', '.join(KINDS)} and lanes, not {' '.join(row.words[1:])!r}")
    return OperandType(row.words[1], int(row.words[2]), row.words[3], int(row.words[4]))


def _codes(row: TableRow, types: dict[str, OperandType], codes: dict[tuple[str, float], dict[str, int]]) -> None:
    if not row.source:
        raise row.complain("codes have no source; write 'source …' above them")
    _, position, gens, *pairs = row.words
    if position not in POSITIONS:
        raise row.complain(f"a position is one of {', '.join(POSITIONS)}, not {position!r}")
    given: dict[str, int] = {}
    for name, code in zip(pairs[::2], pairs[1::2], strict=False):
        if name not in types or not code.isdigit() or len(pairs) % 2:
            raise row.complain(f"codes are pairs of a type's name and a number, not {name} {code}")
        if int(code) in given.values() or name in given:
            raise row.complain(f"{name} or its code {code} stands twice")
        given[name] = int(code)
    for gen in row.generations(gens):
        if (position, gen) in codes:
            raise row.complain(f"{position} codes of gen {gen:g} are already given")
        codes[position, gen] = given


@cache
def table() -> TypeTable:
    from softgen.eu.isa.table import load

    return read("eu/types.table", load("types.table"))


def type_of(name: str) -> OperandType | None:
    """What a type is; None for '' and names no type has."""
    return table().types.get(name)


def size(name: str) -> int:
    """Bytes of one element; 1 where there is no type, so that register regions can still be counted."""
    found = table().types.get(name)
    return found.size if found else 1


def codes(position: str, gen: float) -> Mapping[str, int]:
    """Name -> code of the types a position can say on a generation."""
    return table().codes.get((position, gen), {})


def names(position: str, gen: float) -> Mapping[int, str]:
    """Code -> name."""
    return table().names.get((position, gen), {})


__all__ = ["GENERATIONS", "OperandType", "TypeTable", "codes", "generations", "names", "read", "size", "table", "type_of"]
