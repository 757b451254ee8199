"""Execution rules of each generation, and execution types. Read from `spec/eu/execution.table`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cache, reduce
from typing import Any

from softgen.bits.layout import GENERATIONS
from softgen.errors import SpecError
from softgen.eu.isa.instruction import Instruction
from softgen.eu.isa.table import TableRow, load, rows

COMPUTED_AS = {"ub": "w", "b": "w", "uw": "w", "w": "w", "v": "w", "uv": "w", "ud": "d", "d": "d", "uq": "q", "q": "q",
               "hf": "hf", "f": "f", "vf": "f", "df": "df", "nf": "df"}  # fmt: skip
WORDS = {"yes": True, "no": False}
ARITHMETIC = range(64, 126)  # opcodes from add up to, but not including, nop


@dataclass(frozen=True)
class ExecutionRules:
    """The execution rules of one generation; execution.table explains them."""

    gen: float
    flow: str  # "stack" "channel"
    logical_modifiers: bool
    double_to_float: str  # "rtz" "mode"
    double_pairs: bool
    stride_0_advances: bool
    multiply: str  # "low_first" "low_second" "full"
    short_mach: bool
    second_accumulator: frozenset[str]
    implicit_accumulator: bool
    round_increment: bool
    signed_shr: bool
    compressed_row: bool
    far_code: bool
    math: str  # "message" "instruction"
    message_registers: int
    vertical_flags: int
    short_addresses: bool
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
                raise row.error(f"{' '.join(row.words[1:3])} is already given, or not an execution type")
            types[pair] = row.words[3]
        else:
            raise row.error(f"a line is 'rule', name, generations, value or 'execute' and three types, not {' '.join(row.words)!r}")
    for gen, values in given.items():
        if missing := [rule.name for rule in fields(ExecutionRules) if rule.name not in values]:
            raise SpecError(f"{page}: gen {gen:g} has no rule {missing[0]}")
    return ExecutionTable({gen: ExecutionRules(**values) for gen, values in given.items()}, types)


def _rule(row: TableRow, given: dict[float, dict[str, Any]]) -> None:
    _, name, gens, text = row.words
    if name not in {rule.name for rule in fields(ExecutionRules)}:
        raise row.error(f"there is no rule {name}")
    for gen in row.generations(gens):
        if name in given[gen]:
            raise row.error(f"rule {name} of gen {gen:g} is already given")
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


def writes_accumulator(inst: Instruction) -> bool:
    """Whether an instruction updates the accumulator beside its destination: as it says, or as arithmetic does on generations where
    instructions cannot say it. Results for architecture registers do not count there."""
    if inst.acc_write or not rules(inst.gen).implicit_accumulator:
        return inst.acc_write
    result = inst.dst is None or inst.dst.file != "arf" or not inst.dst.number
    return result and inst.opcode_number in ARITHMETIC


def execution_type(types: Iterable[str]) -> str:
    """The execution type of sources of these types: w d q hf f df; '' where the table has none."""
    known = [COMPUTED_AS.get(name, "") for name in types if name]
    if not known or "" in known:
        return ""
    return reduce(lambda a, other: table().types.get(frozenset((a, other)), ""), known, known[0])
