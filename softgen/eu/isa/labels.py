"""Branch targets and labels: conversion between encoded offsets and byte offsets.

An encoded offset (count) is in the generation's unit (`spec/eu/jumps.table`); a target is a byte offset within the program. Labels are
names of targets.
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
    """The contents of jumps.table."""

    units: Mapping[tuple[float, str], int]  # (generation, opcode) -> unit in bytes; opcode "" for opcodes without a row
    after: frozenset[tuple[float, str]]  # opcodes whose offsets count from the next instruction
    absolute: frozenset[tuple[float, str]]  # opcodes with an absolute address


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
            raise row.error(f"a line is 'unit', 'next' or 'absolute', not {row.words[0]!r}")
    return JumpRules(units, frozenset(sets["next"]), frozenset(sets["absolute"]))


@cache
def unit(gen: float, opcode: str = "") -> int:
    """The unit of encoded branch offsets, in bytes."""
    units = _table().units
    found = units.get((gen, opcode), units.get((gen, "")))
    if found is None:
        raise SpecError(f"eu/jumps.table: no unit for gen {gen:g}")
    return found


def is_absolute(instruction: Instruction) -> bool:
    """Whether a branch encodes an absolute address instead of an offset."""
    return (instruction.gen, instruction.opcode) in _table().absolute


def size(instruction: Instruction) -> int:
    """The encoded size of an instruction, in bytes."""
    return COMPACT if instruction.compacted else NATIVE


def base(instruction: Instruction, offset: int) -> int:
    """The byte offset from which the encoded offsets of a branch count."""
    return offset + (size(instruction) if (instruction.gen, instruction.opcode) in _table().after else 0)


def target(instruction: Instruction, offset: int, count: int) -> int:
    """The target of an encoded offset of the branch at byte `offset`."""
    return base(instruction, offset) + count * unit(instruction.gen, instruction.opcode)


def count(instruction: Instruction, offset: int, to: int) -> int | None:
    """The encoded offset from the branch at byte `offset` to a target; None where it is not a multiple of the unit."""
    found, rest = divmod(to - base(instruction, offset), unit(instruction.gen, instruction.opcode))
    return None if rest else found


def targets(items: Iterable[tuple[int, int, Instruction]]) -> Iterator[int]:
    """The targets of a program's branches; items are byte offset, size and instruction."""
    for offset, _, instruction in items:
        for count_ in (instruction.jip, instruction.uip):
            if count_ is not None and not is_absolute(instruction):
                yield target(instruction, offset, count_)


def names(items: Iterable[tuple[int, int, Instruction]], prefix: str = "LABEL") -> dict[int, str]:
    """Numbered labels for the targets at instruction boundaries of the program."""
    kept = list(items)
    places = {offset for offset, _, _ in kept} | {offset + length for offset, length, _ in kept[-1:]}
    return {place: f"{prefix}{number}" for number, place in enumerate(sorted(places.intersection(targets(kept))))}
