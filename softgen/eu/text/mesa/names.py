"""The words of Mesa's dialect by generation, read from `spec/eu/mesa.table`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from softgen.bits.layout import GENERATIONS
from softgen.eu.isa.table import TableRow, load, rows

KINDS = ("condition", "predicate", "channel", "function", "thread", "mask", "register", "compression", "sfid")
CONVENTIONS = ("mesa", "iga", "gen4asm")  # whose fillings of what goes without saying
DEFAULT_CONVENTION = CONVENTIONS[0]
MODES = {"align1": False, "align16": True}
SETS = ("quiet", "bitwise", "bare", "counts", "pops", "stays", "marked")


@dataclass(frozen=True)
class MesaWords:
    """One generation's words."""

    write: Mapping[str, dict[int, str]] = field(default_factory=lambda: {kind: {} for kind in KINDS})  # kind -> code -> word
    read: Mapping[str, dict[str, int]] = field(default_factory=lambda: {kind: {} for kind in KINDS})  # kind -> word -> code
    sets: Mapping[str, set[str]] = field(default_factory=lambda: {kind: set() for kind in SETS})
    unsaid: dict[tuple[str, str, bool], tuple[str, ...]] = field(default_factory=dict)  # habit, opcode, align16 -> texts of operands
    rest: dict[tuple[str, str], int] = field(default_factory=dict)  # habit, opcode -> bits that no field says


def read(page: str, text: str) -> dict[float, MesaWords]:
    found = {gen: MesaWords() for gen in GENERATIONS}
    readers = {"words": _words, "also": _words, "set": _set, "unsaid": _unsaid, "rest": _rest}
    for row in rows(page, text):
        if row.words[0] not in readers or len(row.words) < 4:
            raise row.complain(f"a line is one of {', '.join(readers)}, a kind, generations and words, not {' '.join(row.words)!r}")
        for gen in sorted(row.generations(row.words[2])):
            readers[row.words[0]](row, found[gen])
    return found


def _words(row: TableRow, words: MesaWords) -> None:
    verb, kind, _, *pairs = row.words
    if kind not in KINDS or len(pairs) % 2 or not all(code.isdigit() for code in pairs[::2]):
        raise row.complain(f"{verb} gives pairs of a code and a word for one of {', '.join(KINDS)}, not {kind} {' '.join(pairs)!r}")
    for code, word in zip(map(int, pairs[::2]), pairs[1::2], strict=True):
        word = word.replace("~", " ")
        if word in words.read[kind] or (verb == "words" and code in words.write[kind]):
            raise row.complain(f"{kind} {code} or its word {word!r} stands twice")
        words.read[kind][word] = code
        if verb == "words":
            words.write[kind][code] = word


def _set(row: TableRow, words: MesaWords) -> None:
    if row.words[1] not in SETS:
        raise row.complain(f"a set is one of {', '.join(SETS)}, not {row.words[1]!r}")
    words.sets[row.words[1]].update(row.words[3:])


def _unsaid(row: TableRow, words: MesaWords) -> None:
    _, habit, _, opcodes, mode, *operands = row.words
    if habit not in CONVENTIONS or mode not in MODES:
        raise row.complain(f"a habit is {' or '.join(CONVENTIONS)} and a mode {' or '.join(MODES)}, not {habit} and {mode}")
    for opcode in opcodes.split(","):
        if (habit, opcode, MODES[mode]) in words.unsaid:
            raise row.complain(f"what {habit} leaves unsaid of {opcode} stands twice")
        words.unsaid[habit, opcode, MODES[mode]] = tuple(operands)


def _rest(row: TableRow, words: MesaWords) -> None:
    _, habit, _, opcodes, *bits = row.words
    if habit not in CONVENTIONS or len(bits) != 1 or not re.fullmatch("0x[0-9a-f]{1,32}", bits[0]):
        raise row.complain(f"a habit is {' or '.join(CONVENTIONS)} and what rests a number, not {habit} and {' '.join(bits)!r}")
    for opcode in opcodes.split(","):
        words.rest[habit, opcode] = int(bits[0], 16)


@cache
def _all() -> dict[float, MesaWords]:
    return read("eu/mesa.table", load("mesa.table"))


def mesa_words(gen: float) -> MesaWords:
    return _all()[gen]
