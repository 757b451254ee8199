"""The table of messages (spec/message/messages.table): which message a descriptor names, by shared function and generation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from softgen.bits import catalogue
from softgen.bits.layout import BitField, Layout, generations
from softgen.bits.page import SOURCE
from softgen.errors import SpecError

TABLE = "message/messages.table"
FUNCTIONS = "SHARED_FUNCTION"
HEADERS = ("required", "optional", "none")
# Of messages: 64-bit addresses; offsets times a pitch; a header with a pixel mask; atomics; float operations; offsets in bytes; dwords
# without a size field; two slots of four channels; the colours of eight lanes before those of the next eight.
ATTRIBUTES = frozenset({"a64", "scaled", "untyped", "atomic", "float", "unaligned", "dword", "simd4x2", "channels_first"})

CONDITION = re.compile(r"([a-z0-9_]+)(!?=)(\d+(?:\.\.\d+)?(?:,\d+(?:\.\.\d+)?)*)$")


@dataclass(frozen=True)
class DescriptorCondition:
    field: str
    values: frozenset[int]
    negated: bool = False

    def holds(self, value: int) -> bool:
        return (value in self.values) != self.negated


@dataclass(frozen=True)
class MessageRow:
    """One line of the table."""

    name: str
    function: str
    gens: frozenset[float]
    header: str  # one of HEADERS
    page: str
    conditions: tuple[DescriptorCondition, ...]
    source: str
    line: int
    attributes: frozenset[str] = frozenset()  # what the message is, for the programs that execute it


@dataclass(frozen=True)
class ExtendedPage:
    """How a function's extended descriptor is read."""

    function: str
    gens: frozenset[float]
    page: str


@cache
def shared_functions(gen: float) -> dict[int, str]:
    """The shared functions of a generation by number."""
    return catalogue.enumeration(FUNCTIONS, gen)


def read(text: str, name: str = TABLE) -> tuple[list[MessageRow], list[ExtendedPage]]:
    """The table's lines, each checked alone; a complaint starts with name:line."""
    rows, extended, source = [], [], ""
    for number, raw in enumerate(text.splitlines(), 1):
        line, semicolon, cite = raw.partition("#")[0].strip().partition(";")
        words, cite = line.split(), cite.strip()
        if words and words[0] == "source":
            source = cite = line.removeprefix("source").strip()
        if not words:
            continue
        try:
            if not SOURCE.match(cite or source):
                raise ValueError(f"a source is a manual with line numbers, or public and a name, not {cite or source!r}")
            if words[0] == "extended" and len(words) == 4:
                extended.append(ExtendedPage(words[1], _gens(words[2]), words[3]))
            elif words[0] != "source":
                rows.append(_row(words, cite if semicolon else source, number))
        except ValueError as wrong:
            raise SpecError(f"{name}:{number}: {wrong}") from None
    return rows, extended


def _row(words: list[str], source: str, line: int) -> MessageRow:
    if len(words) < 5:
        raise ValueError(f"a row is name, function, generations, header, page and conditions, not {' '.join(words)!r}")
    name, function, gens, header, page, *conditions = words
    if header not in HEADERS:
        raise ValueError(f"a header is {', '.join(HEADERS)}, not {header!r}")
    attributes = frozenset(word[1:] for word in conditions if word.startswith("+"))
    if strange := attributes - ATTRIBUTES:
        raise ValueError(f"an attribute is {', '.join(sorted(ATTRIBUTES))}, not {min(strange)!r}")
    found = tuple(_condition(word) for word in conditions if not word.startswith("+"))
    return MessageRow(name, function, _gens(gens), header, page, found, source, line, attributes)


def _gens(text: str) -> frozenset[float]:
    try:
        return generations(text)
    except ValueError:
        raise ValueError(f"{text!r} names no generations") from None


def _condition(text: str) -> DescriptorCondition:
    m = CONDITION.match(text)
    if not m:
        raise ValueError(f"a condition is field=value, field=a,b, field=a..b or field!=value, not {text!r}")
    values: set[int] = set()
    for part in m[3].split(","):
        first, _, last = part.partition("..")
        values |= set(range(int(first), int(last or first) + 1))
    return DescriptorCondition(m[1], frozenset(values), m[2] == "!=")


def resolve(rows: Iterable[MessageRow], gen: float, name: str = TABLE) -> dict[str, tuple[int, dict[int, MessageRow]]]:
    """For each function of a generation: the descriptor bits that decide, and the row for each value of them. Refuses rows that collide."""
    known, mine = shared_functions(gen).values(), [row for row in rows if gen in row.gens]
    seen: set[str] = set()
    for row in mine:
        if row.function not in known:
            raise SpecError(f"{name}:{row.line}: gen {gen:g} has no shared function {row.function!r}")
        if row.name in seen:
            raise SpecError(f"{name}:{row.line}: {row.name} is there twice on gen {gen:g}")
        seen.add(row.name)
    return {function: _decide([row for row in mine if row.function == function], gen, name) for function in known}


def _decide(rows: list[MessageRow], gen: float, name: str) -> tuple[int, dict[int, MessageRow]]:
    pages = [catalogue.layout(row.page, gen) for row in rows]
    selector = 0
    for row, page in zip(rows, pages, strict=True):
        for condition in row.conditions:
            width = _field(page, condition, row, name).width
            if max(condition.values) >> width:
                raise SpecError(f"{name}:{row.line}: {condition.field} has {width} bits; {max(condition.values)} does not fit")
            selector |= page.field(condition.field).mask
    table: dict[int, MessageRow] = {}
    for row, page in zip(rows, pages, strict=True):
        for bits in sorted(_matching(row, page, selector)):
            if bits in table:
                raise SpecError(f"{name}:{row.line}: {row.name} and {table[bits].name} both match {bits:#x} on gen {gen:g}")
            table[bits] = row
    return selector, table


def _matching(row: MessageRow, page: Layout, selector: int) -> Iterator[int]:
    """The selector's bits for which all conditions of a row hold, one field after another; fields may share bits."""
    matching, decided = [0], 0
    for condition in row.conditions:
        more = page.field(condition.field).mask & ~decided
        matching = [bits | new for bits in matching for new in _subsets(more)
                    if condition.holds(getattr(page.raw([bits | new]), condition.field))]  # fmt: skip
        decided |= more
    return (bits | rest for bits in matching for rest in _subsets(selector & ~decided))


def _field(page: Layout, condition: DescriptorCondition, row: MessageRow, name: str) -> BitField:
    try:
        return page.field(condition.field)
    except SpecError as wrong:
        raise SpecError(f"{name}:{row.line}: {wrong}") from None


def _subsets(mask: int) -> Iterator[int]:
    """Every number whose bits lie in mask, in rising order."""
    bits = 0
    while True:
        yield bits
        bits = bits - mask & mask
        if not bits:
            return


@cache
def message_table() -> tuple[list[MessageRow], list[ExtendedPage]]:
    text = next(file.read_text("utf-8") for path, file in catalogue.spec_files(".table") if path == TABLE)
    return read(text)


@cache
def decision(function: str, gen: float) -> tuple[int, dict[int, MessageRow]]:
    """What `resolve` finds for one function: programs send to few of them."""
    return _decide([row for row in rows(gen) if row.function == function], gen, TABLE)


def rows(gen: float) -> list[MessageRow]:
    """The messages a generation has."""
    return [row for row in message_table()[0] if gen in row.gens]
