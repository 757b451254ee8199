"""Restrictions: what an instruction says that its generation does not allow. Read from `spec/eu/restrictions.table`.

A row of the table has a number, generations, a sentence, a source and two examples; the function of its name in `check_region`,
`check_operand` or `check_send` looks for it. What an instruction alone does not tell (mask and register contents, its neighbours) is not
looked at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from types import ModuleType

from softgen.bits.layout import GENERATIONS, generations
from softgen.bits.page import SOURCE
from softgen.errors import SpecError
from softgen.eu.check import operand as check_operand
from softgen.eu.check import region as check_region
from softgen.eu.check import send as check_send
from softgen.eu.isa.instruction import Instruction
from softgen.eu.isa.table import load

TABLE = "eu/restrictions.table"
KINDS = ("region", "alignment", "type", "accumulator", "flag", "send")
WORDS = ("says", "source", "legal", "illegal")
HEAD = re.compile(r"restriction +([0-9]+) +([a-z][a-z0-9_]*) +(\S+) +([a-z]+)$")
EXAMPLE = re.compile(r"([0-9.]+) +(\S.*)$")
NOT_INSTRUCTIONS = frozenset({"", "illegal", "nop", "nenop"})

RestrictionRule = Callable[[Instruction], bool]


@dataclass(frozen=True)
class Restriction:
    """A row of the table."""

    number: int
    name: str
    gens: frozenset[float]
    kind: str
    says: str
    source: str
    legal: tuple[float, str]  # generation and text
    illegal: tuple[float, str]
    broken: RestrictionRule = field(compare=False)

    def __str__(self) -> str:
        return f"{self.number} {self.name}: {self.says}"


def read(text: str, page: str = TABLE, modules: Iterable[ModuleType] = (check_region, check_operand, check_send)) -> list[Restriction]:
    """The rows in order; anything else is refused with its line."""
    found: list[Restriction] = []
    lines = [(number, line.rstrip()) for number, line in enumerate(text.splitlines(), 1) if line.strip() and not line.startswith("#")]
    rules = {name: rule for module in modules for name, rule in vars(module).items() if callable(rule)}
    for start in range(0, len(lines), 1 + len(WORDS)):
        found.append(_row(page, lines[start : start + 1 + len(WORDS)], rules))
    for row, after in pairwise(found):
        if after.number <= row.number:
            raise SpecError(f"{page}: number {after.number} stands behind {row.number}; numbers rise")
    if len({row.name for row in found}) != len(found):
        raise SpecError(f"{page}: a name stands twice")
    return found


def _row(page: str, lines: list[tuple[int, str]], rules: dict[str, RestrictionRule]) -> Restriction:
    number, first = lines[0]
    head = HEAD.match(first)
    if head is None:
        raise SpecError(f"{page}:{number}: expected 'restriction', a number, a name, generations and a kind, not {first!r}")
    values: dict[str, str] = {}
    for word, (line, text) in zip(WORDS, lines[1:], strict=False):
        given, _, values[word] = text.strip().partition(" ")
        if given != word or not values[word].strip():
            raise SpecError(f"{page}:{line}: expected '{word}' and its text, not {text.strip()!r}")
        values[word] = values[word].strip()
    if len(values) != len(WORDS):
        raise SpecError(f"{page}:{number}: a restriction has {', '.join(WORDS)}")
    if head[4] not in KINDS:
        raise SpecError(f"{page}:{number}: a kind is one of {', '.join(KINDS)}, not {head[4]!r}")
    if head[2] not in rules:
        raise SpecError(f"{page}:{number}: no function is called {head[2]!r}")
    if not SOURCE.match(values["source"]):
        given = values["source"]
        raise SpecError(f"{page}:{number}: a source is BDW, KBL, G45, IVB or ICL with line numbers, or public and a name, not {given!r}")
    gens = _generations(head[3], f"{page}:{number}")
    legal, illegal = (_example(values[word], gens, f"{page}:{number}: {word}") for word in ("legal", "illegal"))
    return Restriction(int(head[1]), head[2], gens, head[4], values["says"], values["source"], legal, illegal, rules[head[2]])


def _generations(text: str, place: str) -> frozenset[float]:
    try:
        return generations(text)
    except ValueError:
        raise SpecError(f"{place}: no generations in {text!r}; they are {', '.join(f'{g:g}' for g in GENERATIONS)}") from None


def _example(text: str, gens: frozenset[float], place: str) -> tuple[float, str]:
    found = EXAMPLE.match(text)
    if found is None or float(found[1]) not in gens:
        raise SpecError(f"{place}: an example is one of the generations and an instruction, not {text!r}")
    return float(found[1]), found[2]


@cache
def restrictions() -> tuple[Restriction, ...]:
    return tuple(read(load("restrictions.table")))


@cache
def _for(gen: float, opcode: str, form: str) -> tuple[Restriction, ...]:
    """The rows that can apply."""
    found = []
    for row in restrictions():
        only = vars(row.broken).get("only")
        if gen in row.gens and (only is None or opcode in only or form in only):
            found.append(row)
    return tuple(found)


def check(instruction: Instruction) -> list[Restriction]:
    """The rows an instruction breaks. What is no instruction breaks none."""
    if instruction.opcode in NOT_INSTRUCTIONS:
        return []
    return [row for row in _for(instruction.gen, instruction.opcode, instruction.form) if row.broken(instruction)]
