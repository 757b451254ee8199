"""Opcodes of each generation: encoding form, operands, legal types and controls. Read from `spec/eu/opcodes.table`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from softgen.eu.isa.table import TableRow, load, rows

THREE_SOURCE_FORMS = ("three_source", "three_source_align1")
FORMS = ("basic", *THREE_SOURCE_FORMS, "send", "sends", "branch")
SHAPE = ("dst", "a", "b", "c", "jip", "uip", "pop", "offset")
TAKES = ("predicate", "condition", "saturate", "modifiers", "accumulator", "function", "macro", "branch_control", "sfid", "base_mrf",
         "wide", "bitwise", "select", "even_channels")  # fmt: skip
NUMBERS = range(0x80)  # the values of the opcode field
FUNCTION_MARKS = ("macro", "integer")

TypePairs = tuple[tuple[frozenset[str], frozenset[str]], ...]


@dataclass(frozen=True)
class Opcode:
    """A row of the table: an opcode of one generation."""

    name: str
    number: int
    gen: float
    form: str
    shape: frozenset[str]
    takes: frozenset[str]
    legal: TypePairs = ()  # combinations of destination types and source types; empty: the table lists none
    source: str = field(default="", compare=False)

    @property
    def sources(self) -> int:
        return len(self.shape & {"a", "b", "c"})


@dataclass(frozen=True)
class MathFunction:
    """A function of the math instruction."""

    name: str
    number: int
    sources: int
    macro: bool  # uses the extended accumulators
    integer: bool


@dataclass(frozen=True)
class OpcodeTable:
    """The whole table, indexed."""

    named: Mapping[tuple[str, float], Opcode]
    numbered: Mapping[tuple[int, float], Opcode]
    functions: Mapping[tuple[int, float], MathFunction]


def read(page: str, text: str) -> OpcodeTable:
    """Parse the table; errors name page and line."""
    legal: dict[tuple[str, float], TypePairs] = {}
    named: dict[tuple[str, float], Opcode] = {}
    numbered: dict[tuple[int, float], Opcode] = {}
    functions: dict[tuple[int, float], MathFunction] = {}
    for row in rows(page, text):
        if row.words[0] == "legal":
            _legal(row, legal)
        elif row.words[0] == "function":
            _function(row, functions)
        elif row.words[0] == "op":
            for opcode_ in _opcodes(row, legal):
                if (opcode_.name, opcode_.gen) in named:
                    raise row.error(f"{opcode_.name} is already in the table for gen {opcode_.gen:g}")
                if (opcode_.number, opcode_.gen) in numbered:
                    other = numbered[opcode_.number, opcode_.gen]
                    raise row.error(f"{opcode_.name} and {other.name} share number {opcode_.number} on gen {opcode_.gen:g}")
                named[opcode_.name, opcode_.gen] = numbered[opcode_.number, opcode_.gen] = opcode_
        else:
            raise row.error(f"a line begins with op, function, legal or source, not {row.words[0]!r}")
    return OpcodeTable(named, numbered, functions)


def _legal(row: TableRow, legal: dict[tuple[str, float], TypePairs]) -> None:
    from softgen.eu.isa.types import type_of

    if len(row.words) < 6 or row.words.count("<-") != 1:
        raise row.error("legal types are a name, generations, destination types, '<-' and source types")
    _, name, gens, *types = row.words
    arrow = types.index("<-")
    for name_ in types:
        if name_ != "<-" and type_of(name_) is None:
            raise row.error(f"{name_!r} is not a type")
    pair = frozenset(types[:arrow]), frozenset(types[arrow + 1 :])
    for gen in row.generations(gens):
        legal[name, gen] = (*legal.get((name, gen), ()), pair)


def _function(row: TableRow, functions: dict[tuple[int, float], MathFunction]) -> None:
    sound = len(row.words) in (5, 6) and row.words[2].isdigit() and row.words[4] in ("a", "a,b") and set(row.words[5:]) <= {*FUNCTION_MARKS}
    if not sound:
        raise row.error(
            f"a function is a name, a number, generations, 'a' or 'a,b', and 'macro' or 'integer', not {' '.join(row.words[1:])!r}"
        )
    function_ = MathFunction(
        row.words[1], int(row.words[2]), 1 + row.words[4].count(","), *(mark in row.words[5:] for mark in FUNCTION_MARKS)
    )
    for gen in row.generations(row.words[3]):
        if (function_.number, gen) in functions:
            other = functions[function_.number, gen]
            raise row.error(f"{function_.name} and {other.name} share number {function_.number} on gen {gen:g}")
        functions[function_.number, gen] = function_


def _opcodes(row: TableRow, legal: dict[tuple[str, float], TypePairs]) -> list[Opcode]:
    if len(row.words) != 8 or not row.words[2].isdigit() or int(row.words[2]) not in NUMBERS:
        wanted = f"a name, a number under {len(NUMBERS)}, generations, form, shape, types and takes"
        raise row.error(f"an op is {wanted}, not {' '.join(row.words[1:])!r}")
    if not row.source:
        raise row.error("an op needs a source; write 'source …' above it")
    _, name, number, gens, form, shape, types, takes = row.words
    if form not in FORMS:
        raise row.error(f"a form is one of {', '.join(FORMS)}, not {form!r}")
    found = []
    for gen in sorted(row.generations(gens)):
        if types != "-" and (types, gen) not in legal:
            raise row.error(f"no 'legal' row is named {types!r} on gen {gen:g}")
        found.append(Opcode(name, int(number), gen, form, _words(row, "shape", shape, SHAPE), _words(row, "takes", takes, TAKES),
                            legal.get((types, gen), ()), row.source))  # fmt: skip
    return found


def _words(row: TableRow, column: str, text: str, known: tuple[str, ...]) -> frozenset[str]:
    found = text.split(",") if text != "-" else []
    for word in found:
        if word not in known:
            raise row.error(f"{column} must be out of {', '.join(known)}, not {word!r}")
    return frozenset(found)


@cache
def table() -> OpcodeTable:
    return read("eu/opcodes.table", load("opcodes.table"))


def opcode(name: str, gen: float) -> Opcode | None:
    return table().named.get((name, gen))


def numbered(number: int, gen: float) -> Opcode | None:
    return table().numbered.get((number, gen))


def math_function(number: int, gen: float) -> MathFunction | None:
    """The math function of an instruction's function number; None where it is reserved."""
    return table().functions.get((number, gen))


@cache
def math_macros(gen: float) -> frozenset[int]:
    """The numbers of the math functions that use the extended accumulators."""
    return frozenset(number for (number, known), function_ in table().functions.items() if known == gen and function_.macro)


@cache
def of_generation(gen: float) -> tuple[Opcode, ...]:
    """Every opcode of a generation, ordered by number."""
    return tuple(sorted((opcode_ for opcode_ in table().named.values() if opcode_.gen == gen), key=lambda opcode_: opcode_.number))
