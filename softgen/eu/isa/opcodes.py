"""Opcodes: which instructions a generation has, how each is laid out, what it may be asked. Read from `spec/eu/opcodes.table`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from softgen.eu.isa.table import Row, load, rows

FORMS = ("basic", "three_source", "three_source_align1", "send", "sends", "branch")
SHAPE = ("dst", "a", "b", "c", "jip", "uip", "pop", "offset")
TAKES = ("predicate", "condition", "saturate", "modifiers", "accumulator", "function", "macro", "branch_control", "sfid", "base_mrf",
         "wide", "bitwise", "select")  # fmt: skip
NUMBERS = range(0x80)  # what the opcode field can say

Pairs = tuple[tuple[frozenset[str], frozenset[str]], ...]


@dataclass(frozen=True)
class Opcode:
    """An instruction of one generation."""

    name: str
    number: int
    gen: float
    form: str
    shape: frozenset[str]
    takes: frozenset[str]
    legal: Pairs = ()  # (destination types, source types) that may stand together; empty: the table does not say
    source: str = field(default="", compare=False)

    @property
    def sources(self) -> int:
        return len(self.shape & {"a", "b", "c"})


@dataclass(frozen=True)
class Function:
    """A math function."""

    name: str
    number: int
    sources: int
    macro: bool


@dataclass(frozen=True)
class Opcodes:
    named: Mapping[tuple[str, float], Opcode]
    numbered: Mapping[tuple[int, float], Opcode]
    functions: Mapping[tuple[int, float], Function]


def read(page: str, text: str) -> Opcodes:
    legal: dict[tuple[str, float], Pairs] = {}
    named: dict[tuple[str, float], Opcode] = {}
    numbered: dict[tuple[int, float], Opcode] = {}
    functions: dict[tuple[int, float], Function] = {}
    for row in rows(page, text):
        if row.words[0] == "legal":
            _legal(row, legal)
        elif row.words[0] == "function":
            _function(row, functions)
        elif row.words[0] == "op":
            for one in _opcodes(row, legal):
                if (one.name, one.gen) in named:
                    raise row.complain(f"{one.name} already stands in the table for gen {one.gen:g}")
                if (one.number, one.gen) in numbered:
                    raise row.complain(f"{one.name} and {numbered[one.number, one.gen].name} share number {one.number} on gen {one.gen:g}")
                named[one.name, one.gen] = numbered[one.number, one.gen] = one
        else:
            raise row.complain(f"a line begins with op, function, legal or source, not {row.words[0]!r}")
    return Opcodes(named, numbered, functions)


def _legal(row: Row, legal: dict[tuple[str, float], Pairs]) -> None:
    from softgen.eu.isa.types import type_of

    if len(row.words) < 6 or row.words.count("<-") != 1:
        raise row.complain("legal types are a name, generations, destination types, '<-' and source types")
    _, name, gens, *types = row.words
    arrow = types.index("<-")
    for one in types:
        if one != "<-" and type_of(one) is None:
            raise row.complain(f"{one!r} is no type")
    pair = frozenset(types[:arrow]), frozenset(types[arrow + 1 :])
    for gen in row.generations(gens):
        legal[name, gen] = (*legal.get((name, gen), ()), pair)


def _function(row: Row, functions: dict[tuple[int, float], Function]) -> None:
    sound = len(row.words) in (5, 6) and row.words[2].isdigit() and row.words[4] in ("a", "a,b") and row.words[5:] in ((), ("macro",))
    if not sound:
        raise row.complain(f"a function is a name, a number, generations, 'a' or 'a,b', and 'macro', not {' '.join(row.words[1:])!r}")
    one = Function(row.words[1], int(row.words[2]), 1 + row.words[4].count(","), row.words[-1] == "macro")
    for gen in row.generations(row.words[3]):
        if (one.number, gen) in functions:
            raise row.complain(f"{one.name} and {functions[one.number, gen].name} share number {one.number} on gen {gen:g}")
        functions[one.number, gen] = one


def _opcodes(row: Row, legal: dict[tuple[str, float], Pairs]) -> list[Opcode]:
    if len(row.words) != 8 or not row.words[2].isdigit() or int(row.words[2]) not in NUMBERS:
        wanted = f"a name, a number under {len(NUMBERS)}, generations, form, shape, types and takes"
        raise row.complain(f"an op is {wanted}, not {' '.join(row.words[1:])!r}")
    if not row.source:
        raise row.complain("an op has no source; write 'source …' above it")
    _, name, number, gens, form, shape, types, takes = row.words
    if form not in FORMS:
        raise row.complain(f"a form is one of {', '.join(FORMS)}, not {form!r}")
    found = []
    for gen in sorted(row.generations(gens)):
        if types != "-" and (types, gen) not in legal:
            raise row.complain(f"no legal types are called {types!r} on gen {gen:g}")
        found.append(Opcode(name, int(number), gen, form, _words(row, "shape", shape, SHAPE), _words(row, "takes", takes, TAKES),
                            legal.get((types, gen), ()), row.source))  # fmt: skip
    return found


def _words(row: Row, column: str, text: str, known: tuple[str, ...]) -> frozenset[str]:
    found = text.split(",") if text != "-" else []
    for one in found:
        if one not in known:
            raise row.complain(f"{column} is out of {', '.join(known)}, not {one!r}")
    return frozenset(found)


@cache
def table() -> Opcodes:
    return read("eu/opcodes.table", load("opcodes.table"))


def opcode(name: str, gen: float) -> Opcode | None:
    return table().named.get((name, gen))


def numbered(number: int, gen: float) -> Opcode | None:
    return table().numbered.get((number, gen))


def function(number: int, gen: float) -> Function | None:
    """A math function by the number in the instruction."""
    return table().functions.get((number, gen))


@cache
def macros(gen: float) -> frozenset[int]:
    """The math functions that use extended accumulators."""
    return frozenset(number for (number, known), one in table().functions.items() if known == gen and one.macro)


@cache
def of_generation(gen: float) -> tuple[Opcode, ...]:
    """Every instruction of a generation, by number."""
    return tuple(sorted((one for one in table().named.values() if one.gen == gen), key=lambda one: one.number))
