"""Rules of execution by generation, and execution types. Read from `spec/eu/execution.table`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cache, reduce
from typing import Any

from softgen.bits.layout import GENERATIONS
from softgen.errors import SpecError
from softgen.eu.isa.table import TableRow, load, rows

COMPUTED_AS = {"ub": "w", "b": "w", "uw": "w", "w": "w", "v": "w", "uv": "w", "ud": "d", "d": "d", "uq": "q", "q": "q",
               "hf": "hf", "f": "f", "vf": "f", "df": "df", "nf": "df"}  # fmt: skip
WORDS = {"yes": True, "no": False}


@dataclass(frozen=True)
class ExecutionRules:
    """What one generation does."""

    gen: float
    flow: str  # "stack" "channel"
    logical_modifiers: bool
    double_to_float: str  # "rtz" "mode"
    double_pairs: bool
    multiply: str  # "low_first" "low_second" "full"
    short_mach: bool
    second_accumulator: frozenset[str]
    round_increment: bool
    math: str  # "message" "instruction"
    message_registers: int
    vertical_flags: int
    goto_leaves: str  # "true" "false"
    second_half: str  # "compression" "quarter"


@dataclass(frozen=True)
class ExecutionTable:
    """The whole table."""

    rules: Mapping[float, ExecutionRules]
    types: Mapping[frozenset[str], str]


def read(page: str, text: str) -> ExecutionTable:
    given: dict[float, dict[str, Any]] = {gen: {"gen": gen} for gen in GENERATIONS}
    types: dict[frozenset[str], str] = {}
    for row in rows(page, text):
        if row.words[0] == "rule" and len(row.words) == 4:
            _rule(row, given)
        elif row.words[0] == "execute" and len(row.words) == 4:
            pair = frozenset(row.words[1:3])
            if pair in types or not {*row.words[1:]} <= set(COMPUTED_AS.values()):
                raise row.complain(f"{' '.join(row.words[1:3])} is already given, or no execution type")
            types[pair] = row.words[3]
        else:
            raise row.complain(f"a line is 'rule', name, generations, value or 'execute' and three types, not {' '.join(row.words)!r}")
    for gen, values in given.items():
        if missing := [rule.name for rule in fields(ExecutionRules) if rule.name not in values]:
            raise SpecError(f"{page}: gen {gen:g} has no rule {missing[0]}")
    return ExecutionTable({gen: ExecutionRules(**values) for gen, values in given.items()}, types)


def _rule(row: TableRow, given: dict[float, dict[str, Any]]) -> None:
    _, name, gens, text = row.words
    if name not in {rule.name for rule in fields(ExecutionRules)}:
        raise row.complain(f"there is no rule {name}")
    for gen in row.generations(gens):
        if name in given[gen]:
            raise row.complain(f"rule {name} of gen {gen:g} is already given")
        given[gen][name] = _value(name, text)


def _value(name: str, text: str) -> Any:
    if name == "second_accumulator":
        return frozenset(text.split(","))
    if text == "-":
        return None
    return int(text) if text.isdigit() else WORDS.get(text, text)


@cache
def table() -> ExecutionTable:
    return read("eu/execution.table", load("execution.table"))


def rules(gen: float) -> ExecutionRules:
    return table().rules[gen]


def execution_type(types: Iterable[str]) -> str:
    """What sources of these types are computed in: w d q hf f df. '' where the table has nothing."""
    known = [COMPUTED_AS.get(name, "") for name in types if name]
    if not known or "" in known:
        return ""
    return reduce(lambda a, other: table().types.get(frozenset((a, other)), ""), known, known[0])
