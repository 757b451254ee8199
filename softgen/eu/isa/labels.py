"""Branch targets and their labels: counts as encoded on one side, byte offsets on the other.

Shared by the dialects of assembly text. A count is in the generation's unit (`spec/eu/jumps.table`); a target is a byte offset within
the program. Labels are names of targets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from softgen.errors import SpecError
from softgen.eu.isa.instruction import Instruction
from softgen.eu.isa.table import load, rows

NATIVE, COMPACT = 16, 8  # bytes of an instruction


@dataclass(frozen=True)
class JumpRules:
    units: Mapping[tuple[float, str], int]  # (generation, opcode) -> bytes of one count; "" for opcodes that no row names
    after: frozenset[tuple[float, str]]  # opcodes whose counts start at the next instruction
    absolute: frozenset[tuple[float, str]]  # opcodes that say an address instead


@cache
def _table() -> JumpRules:
    units: dict[tuple[float, str], int] = {}
    sets: dict[str, set[tuple[float, str]]] = {"next": set(), "absolute": set()}
    for row in rows("eu/jumps.table", load("jumps.table")):
        gens = row.generations(row.words[1])
        if row.words[0] == "unit":
            units.update({(gen, opcode): int(row.words[2]) for gen in gens for opcode in row.words[3:] or ("",)})
        elif row.words[0] in sets:
            sets[row.words[0]].update((gen, opcode) for gen in gens for opcode in row.words[2:])
        else:
            raise row.complain(f"a line is 'unit', 'next' or 'absolute', not {row.words[0]!r}")
    return JumpRules(units, frozenset(sets["next"]), frozenset(sets["absolute"]))


@cache
def unit(gen: float, opcode: str = "") -> int:
    """Bytes that one count of a branch offset stands for."""
    units = _table().units
    found = units.get((gen, opcode), units.get((gen, "")))
    if found is None:
        raise SpecError(f"eu/jumps.table: no unit for gen {gen:g}")
    return found


def is_absolute(instruction: Instruction) -> bool:
    """Whether the count of a branch is an address, which leads nowhere in the program."""
    return (instruction.gen, instruction.opcode) in _table().absolute


def size(instruction: Instruction) -> int:
    """Bytes the instruction takes in the program."""
    return COMPACT if instruction.compacted else NATIVE


def base(instruction: Instruction, offset: int) -> int:
    """The byte offset that the counts of a branch at an offset start from."""
    return offset + (size(instruction) if (instruction.gen, instruction.opcode) in _table().after else 0)


def target(instruction: Instruction, offset: int, count: int) -> int:
    """Where a count of a branch at an offset leads."""
    return base(instruction, offset) + count * unit(instruction.gen, instruction.opcode)


def count(instruction: Instruction, offset: int, to: int) -> int | None:
    """The count that leads a branch at an offset to a target; None where the unit cannot say it."""
    found, rest = divmod(to - base(instruction, offset), unit(instruction.gen, instruction.opcode))
    return None if rest else found


def targets(items: Iterable[tuple[int, int, Instruction]]) -> Iterator[int]:
    """Where the branches of a program lead; items are byte offset, size and instruction."""
    for offset, _, instruction in items:
        for count_ in (instruction.jip, instruction.uip):
            if count_ is not None and not is_absolute(instruction):
                yield target(instruction, offset, count_)


def names(items: Iterable[tuple[int, int, Instruction]], prefix: str = "LABEL") -> dict[int, str]:
    """Labels, in order, for the targets that begin an instruction of the program or end it."""
    kept = list(items)
    places = {offset for offset, _, _ in kept} | {offset + length for offset, length, _ in kept[-1:]}
    return {place: f"{prefix}{number}" for number, place in enumerate(sorted(places.intersection(targets(kept))))}
