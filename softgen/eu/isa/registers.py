"""Architecture registers by generation. Read from `spec/eu/registers.table`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from softgen.eu.isa.table import TableRow, load, rows

NUMBERS = range(0x100)  # the values of an operand's register number field


@dataclass(frozen=True, slots=True)
class ArchitectureRegister:
    name: str
    code: int  # register number of the first
    count: int  # 0: there is one, and its name carries no number
    size: int  # bytes


@dataclass(frozen=True)
class RegisterTable:
    named: Mapping[tuple[str, float], ArchitectureRegister]
    numbered: Mapping[tuple[int, float], ArchitectureRegister]  # every register number that means something


def read(page: str, text: str) -> RegisterTable:
    named: dict[tuple[str, float], ArchitectureRegister] = {}
    numbered: dict[tuple[int, float], ArchitectureRegister] = {}
    for row in rows(page, text):
        register_, gens = _register(row)
        for gen in row.generations(gens):
            if (register_.name, gen) in named:
                raise row.complain(f"{register_.name} is already in the table for gen {gen:g}")
            named[register_.name, gen] = register_
            for code in range(register_.code, register_.code + max(register_.count, 1)):
                if code not in NUMBERS:
                    raise row.complain(f"{register_.name} runs past {NUMBERS[-1]:#x}, the last register number")
                if (code, gen) in numbered:
                    raise row.complain(f"{register_.name} and {numbered[code, gen].name} share number {code:#x} on gen {gen:g}")
                numbered[code, gen] = register_
    return RegisterTable(named, numbered)


def _register(row: TableRow) -> tuple[ArchitectureRegister, str]:
    if row.words[0] != "register" or len(row.words) != 6:
        raise row.complain(f"a line is 'register', name, code, generations, count and bytes, not {' '.join(row.words)!r}")
    if not row.source:
        raise row.complain("a register has no source; write 'source …' above it")
    _, name, code, gens, count, size = row.words
    try:
        return ArchitectureRegister(name, int(code, 16), 0 if count == "-" else int(count), int(size)), gens
    except ValueError:
        raise row.complain(f"code, count and bytes are numbers, not {code} {count} {size}") from None


@cache
def table() -> RegisterTable:
    return read("eu/registers.table", load("registers.table"))


def find(code: int, gen: float) -> tuple[ArchitectureRegister, int] | None:
    """The register a number names and its index (acc1: acc, 1); None where it names nothing."""
    register_ = table().numbered.get((code, gen))
    return (register_, code - register_.code) if register_ else None


def register(name: str, gen: float) -> ArchitectureRegister | None:
    """The register of a name without its number: 'acc'."""
    return table().named.get((name, gen))
