"""Keywords of Mesa's dialect by generation. Read from `spec/eu/mesa.table`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from softgen.bits.layout import GENERATIONS
from softgen.eu.isa.table import TableRow, load, rows

KINDS = ("condition", "predicate", "channel", "function", "thread", "mask", "register", "compression", "sfid")
CONVENTIONS = ("mesa", "iga", "gen4asm")  # compilers, by which implied operands differ
DEFAULT_CONVENTION = CONVENTIONS[0]
MODES = {"align1": False, "align16": True}
SETS = ("quiet", "bitwise", "bare", "counts", "pops", "stays", "marked")


@dataclass(frozen=True)
class MesaWords:
    """Keywords and implied operands of one generation."""

    write: Mapping[str, dict[int, str]] = field(default_factory=lambda: {kind: {} for kind in KINDS})  # kind -> code -> word
    read: Mapping[str, dict[str, int]] = field(default_factory=lambda: {kind: {} for kind in KINDS})  # kind -> word -> code
    sets: Mapping[str, set[str]] = field(default_factory=lambda: {kind: set() for kind in SETS})
    implied: dict[tuple[str, str, bool], tuple[str, ...]] = field(default_factory=dict)  # convention, opcode, align16 -> texts of operands
    rest: dict[tuple[str, str], int] = field(default_factory=dict)  # convention, opcode -> implied residue


def read(page: str, text: str) -> dict[float, MesaWords]:
    found = {gen: MesaWords() for gen in GENERATIONS}
    readers = {"words": _words, "also": _words, "set": _set, "implied": _implied, "rest": _rest}
    for row in rows(page, text):
        if row.words[0] not in readers or len(row.words) < 4:
            raise row.error(f"a line is one of {', '.join(readers)}, a kind, generations and words, not {' '.join(row.words)!r}")
        for gen in sorted(row.generations(row.words[2])):
            readers[row.words[0]](row, found[gen])
    return found


def _words(row: TableRow, words: MesaWords) -> None:
    verb, kind, _, *pairs = row.words
    if kind not in KINDS or len(pairs) % 2 or not all(code.isdigit() for code in pairs[::2]):
        raise row.error(f"{verb} gives pairs of a code and a word for one of {', '.join(KINDS)}, not {kind} {' '.join(pairs)!r}")
    for code, word in zip(map(int, pairs[::2]), pairs[1::2], strict=True):
        word = word.replace("~", " ")
        if word in words.read[kind] or (verb == "words" and code in words.write[kind]):
            raise row.error(f"{kind} {code} or its word {word!r} is given twice")
        words.read[kind][word] = code
        if verb == "words":
            words.write[kind][code] = word


def _set(row: TableRow, words: MesaWords) -> None:
    if row.words[1] not in SETS:
        raise row.error(f"a set is one of {', '.join(SETS)}, not {row.words[1]!r}")
    words.sets[row.words[1]].update(row.words[3:])


def _implied(row: TableRow, words: MesaWords) -> None:
    _, convention, _, opcodes, mode, *operands = row.words
    if convention not in CONVENTIONS or mode not in MODES:
        raise row.error(f"a convention is {' or '.join(CONVENTIONS)} and a mode {' or '.join(MODES)}, not {convention} and {mode}")
    for opcode in opcodes.split(","):
        if (convention, opcode, MODES[mode]) in words.implied:
            raise row.error(f"the operands that {convention} implies for {opcode} are given twice")
        words.implied[convention, opcode, MODES[mode]] = tuple(operands)


def _rest(row: TableRow, words: MesaWords) -> None:
    _, convention, _, opcodes, *bits = row.words
    if convention not in CONVENTIONS or len(bits) != 1 or not re.fullmatch("0x[0-9a-f]{1,32}", bits[0]):
        raise row.error(f"a convention is {' or '.join(CONVENTIONS)} and the residue a number, not {convention} and {' '.join(bits)!r}")
    for opcode in opcodes.split(","):
        words.rest[convention, opcode] = int(bits[0], 16)


@cache
def _all() -> dict[float, MesaWords]:
    return read("eu/mesa.table", load("mesa.table"))


def mesa_words(gen: float) -> MesaWords:
    return _all()[gen]
