"""The words of IGA's dialect by generation, and the operands it leaves out. Read from `spec/eu/iga.table`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from softgen.bits.layout import GENERATIONS
from softgen.eu.isa import registers
from softgen.eu.isa.instruction import Operand
from softgen.eu.isa.table import TableRow, load, rows

KINDS = ("condition", "predicate", "channel", "function", "thread")
SETS = ("plain", "bytes", "dwords", "bitwise", "bare", "scalar", "quiet_dst", "quiet_src", "region", "free", "count_bytes", "absolute",
        "macro_16")  # fmt: skip
HOWS = ("label", "register", "copied")
SAID, SAME = "said", "same"  # files of operands in `implied` rows that the text gives

_OPERAND = re.compile(r"(imm|said|same|null|ip)(?:<(\d+)(?:,(\d+),(\d+))?>)?:(\w+)")


@dataclass(frozen=True)
class IgaWords:
    """One generation's words."""

    write: Mapping[str, dict[int, str]] = field(default_factory=lambda: {kind: {} for kind in KINDS})  # kind -> code -> word
    read: Mapping[str, dict[str, int]] = field(default_factory=lambda: {kind: {} for kind in KINDS})  # kind -> word -> code
    sets: Mapping[str, set[str]] = field(default_factory=lambda: {kind: set() for kind in SETS})
    implied: dict[tuple[str, str], tuple[Operand, ...]] = field(default_factory=dict)  # how, opcode -> destination and sources


def read(page: str, text: str) -> dict[float, IgaWords]:
    found = {gen: IgaWords() for gen in GENERATIONS}
    readers = {"words": _words, "set": _set, "implied": _implied}
    for row in rows(page, text):
        if row.words[0] not in readers or len(row.words) < 4:
            raise row.complain(f"a line is one of {', '.join(readers)}, a kind, generations and words, not {' '.join(row.words)!r}")
        for gen in sorted(row.generations(row.words[2])):
            readers[row.words[0]](row, found[gen], gen)
    return found


def _words(row: TableRow, names: IgaWords, gen: float) -> None:
    _, kind, _, *pairs = row.words
    if kind not in KINDS or len(pairs) % 2 or not all(code.isdigit() for code in pairs[::2]):
        raise row.complain(f"words are pairs of a code and a word for one of {', '.join(KINDS)}, not {kind} {' '.join(pairs)!r}")
    for code, word in zip(map(int, pairs[::2]), pairs[1::2], strict=True):
        if word in names.read[kind] or code in names.write[kind]:
            raise row.complain(f"{kind} {code} or its word {word!r} stands twice")
        names.read[kind][word], names.write[kind][code] = code, word


def _set(row: TableRow, names: IgaWords, gen: float) -> None:
    if row.words[1] not in SETS:
        raise row.complain(f"a set is one of {', '.join(SETS)}, not {row.words[1]!r}")
    names.sets[row.words[1]].update(row.words[3:])


def _implied(row: TableRow, names: IgaWords, gen: float) -> None:
    _, how, _, opcodes, *operands = row.words
    if how not in HOWS:
        raise row.complain(f"operands are implied by one of {', '.join(HOWS)}, not {how!r}")
    for opcode in opcodes.split(","):
        if (how, opcode) in names.implied:
            raise row.complain(f"what {opcode} leaves out beside a {how} stands twice")
        names.implied[how, opcode] = tuple(_operand(row, text, gen) for text in operands)


def _operand(row: TableRow, text: str, gen: float) -> Operand:
    found = _OPERAND.fullmatch(text)
    if found is None:
        raise row.complain(f"an operand is a name, a region and a type, not {text!r}")
    name, first, width, horizontal, kind = found.groups()
    register = registers.register(name, gen)
    operand = Operand("arf" if register else name, kind, register.code if register else 0)
    if first is None:
        return operand
    if width is None:
        return replace(operand, horizontal=int(first))
    return replace(operand, vertical=int(first), width=int(width), horizontal=int(horizontal))


@cache
def _all() -> dict[float, IgaWords]:
    return read("eu/iga.table", load("iga.table"))


def iga_words(gen: float) -> IgaWords:
    return _all()[gen]
