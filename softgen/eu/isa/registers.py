"""Architecture registers by generation. Read from `spec/eu/registers.table`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from softgen.eu.isa.table import Row, load, rows

NUMBERS = range(0x100)  # what the register number of an operand can say


@dataclass(frozen=True, slots=True)
class Register:
    name: str
    code: int  # register number of the first
    count: int  # 0: there is one, and its name carries no number
    size: int  # bytes


@dataclass(frozen=True)
class Registers:
    named: Mapping[tuple[str, float], Register]
    numbered: Mapping[tuple[int, float], Register]  # every register number that means something


def read(page: str, text: str) -> Registers:
    named: dict[tuple[str, float], Register] = {}
    numbered: dict[tuple[int, float], Register] = {}
    for row in rows(page, text):
        one, gens = _register(row)
        for gen in row.generations(gens):
            if (one.name, gen) in named:
                raise row.complain(f"{one.name} already stands in the table for gen {gen:g}")
            named[one.name, gen] = one
            for code in range(one.code, one.code + max(one.count, 1)):
                if code not in NUMBERS:
                    raise row.complain(f"{one.name} runs past {NUMBERS[-1]:#x}, the last register number")
                if (code, gen) in numbered:
                    raise row.complain(f"{one.name} and {numbered[code, gen].name} share number {code:#x} on gen {gen:g}")
                numbered[code, gen] = one
    return Registers(named, numbered)


def _register(row: Row) -> tuple[Register, str]:
    if row.words[0] != "register" or len(row.words) != 6:
        raise row.complain(f"a line is 'register', name, code, generations, count and bytes, not {' '.join(row.words)!r}")
    if not row.source:
        raise row.complain("a register has no source; write 'source …' above it")
    _, name, code, gens, count, size = row.words
    try:
        return Register(name, int(code, 16), 0 if count == "-" else int(count), int(size)), gens
    except ValueError:
        raise row.complain(f"code, count and bytes are numbers, not {code} {count} {size}") from None


@cache
def table() -> Registers:
    return read("eu/registers.table", load("registers.table"))


def find(code: int, gen: float) -> tuple[Register, int] | None:
    """The register a number names and its index (acc1: acc, 1); None where it names nothing."""
    one = table().numbered.get((code, gen))
    return (one, code - one.code) if one else None


def register(name: str, gen: float) -> Register | None:
    """The register of a name without its number: 'acc'."""
    return table().named.get((name, gen))
