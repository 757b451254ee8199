"""Messages: what the descriptor of a send instruction asks of which shared function.

spec/message/messages.table says which message a descriptor names; the row's page says what its bits mean. A descriptor is the last dword of
the instruction, so the end-of-thread bit may be set, and on Gen4.5 the four bits that name the function.

Reads  MESSAGE_DESCRIPTOR EXTENDED_MESSAGE_DESCRIPTOR
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from softgen.bits import catalogue
from softgen.bits import describe as described
from softgen.bits.layout import Field, Layout, generations
from softgen.bits.page import SOURCE
from softgen.bits.record import Record
from softgen.errors import DecodeError, SpecError, Unsupported

TABLE = "message/messages.table"
FUNCTIONS = "SHARED_FUNCTION"
SURFACES = "SPECIAL_SURFACE"
HEADERS = ("required", "optional", "none")
COMMON = {"end_of_thread", "target_function_id", "message_length", "response_length", "header_present"}
# Of messages: 64-bit addresses; offsets times a pitch; a header with a pixel mask; atomics; float operations; offsets in bytes; dwords
# without a size field; two slots of four channels.
ATTRIBUTES = frozenset({"a64", "scaled", "untyped", "atomic", "float", "unaligned", "dword", "simd4x2"})
LONGEST_RESPONSE = 16  # registers (KBL 14359-14364)

CONDITION = re.compile(r"([a-z0-9_]+)(!?=)(\d+(?:\.\.\d+)?(?:,\d+(?:\.\.\d+)?)*)$")


@dataclass(frozen=True)
class FieldCondition:
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
    conditions: tuple[FieldCondition, ...]
    source: str
    line: int
    attributes: frozenset[str] = frozenset()  # what the message is, for the programs that execute it


@dataclass(frozen=True)
class ExtendedPage:
    """How a function's extended descriptor is read."""

    function: str
    gens: frozenset[float]
    page: str


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A descriptor, understood."""

    row: MessageRow
    layout: Layout
    values: Record
    descriptor: int

    @property
    def name(self) -> str:
        return self.row.name

    @property
    def function(self) -> str:
        return self.row.function

    @property
    def header_rule(self) -> str:
        """required, optional or none."""
        return self.row.header

    @property
    def mlen(self) -> int:
        return int(self.values.message_length)

    @property
    def rlen(self) -> int:
        return int(self.values.response_length)

    @property
    def header(self) -> bool:
        """Whether the payload begins with a header; where the descriptor has no bit for it, the message decides."""
        return bool(self.values.header_present) if "header_present" in self.values._fields else self.header_rule == "required"

    @property
    def end_of_thread(self) -> bool:
        return bool(self.values.end_of_thread)


# -- the table -----------------------------------------------------------------------------------------------------


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


def _condition(text: str) -> FieldCondition:
    m = CONDITION.match(text)
    if not m:
        raise ValueError(f"a condition is field=value, field=a,b, field=a..b or field!=value, not {text!r}")
    values: set[int] = set()
    for part in m[3].split(","):
        first, _, last = part.partition("..")
        values |= set(range(int(first), int(last or first) + 1))
    return FieldCondition(m[1], frozenset(values), m[2] == "!=")


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
    for bits in _subsets(selector):
        for row, page in zip(rows, pages, strict=True):
            values = page.raw([bits])
            if all(one.holds(getattr(values, one.field)) for one in row.conditions):
                if bits in table:
                    raise SpecError(f"{name}:{row.line}: {row.name} and {table[bits].name} both match {bits:#x} on gen {gen:g}")
                table[bits] = row
    return selector, table


def _field(page: Layout, condition: FieldCondition, row: MessageRow, name: str) -> Field:
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
def _table() -> tuple[list[MessageRow], list[ExtendedPage]]:
    text = next(file.read_text("utf-8") for path, file in catalogue.spec_files(".table") if path == TABLE)
    return read(text)


@cache
def _decisions(gen: float) -> dict[str, tuple[int, dict[int, MessageRow]]]:
    return resolve(_table()[0], gen)


def rows(gen: float) -> list[MessageRow]:
    """The messages a generation has."""
    return [row for row in _table()[0] if gen in row.gens]


# -- reading -------------------------------------------------------------------------------------------------------


@cache
def shared_functions(gen: float) -> dict[int, str]:
    """The shared functions of a generation by number."""
    return catalogue.enumeration(FUNCTIONS, gen)


@lru_cache(maxsize=1 << 16)
def identify(sfid: int, descriptor: int, gen: float) -> Descriptor | None:
    """The message a descriptor names; None for an encoding that is reserved, and `why` says what is wrong with it."""
    function = shared_functions(gen).get(sfid)
    if function is None:
        return None
    selector, table = _decisions(gen)[function]
    row = table.get(descriptor & selector)
    if row is None:
        return None
    page = catalogue.layout(row.page, gen)
    return Descriptor(row, page, page.raw([descriptor]), descriptor)


def named(sfid: int, descriptor: int, gen: float) -> Descriptor:
    """The message of a descriptor that was sent; one that names none is an error of the program."""
    found = identify(sfid, descriptor, gen)
    if found is None:
        raise DecodeError(f"descriptor {descriptor:#010x} names no message: {why(sfid, descriptor, gen)}")
    return found


def unbuilt(message: Descriptor, sfid: int) -> Unsupported:
    """What a unit raises for a message it does not simulate."""
    return Unsupported(f"{describe(sfid, message.descriptor, message.layout.gen)}: not yet simulated")


def why(sfid: int, descriptor: int, gen: float) -> str:
    """Why `identify` finds no message; '' when it finds one."""
    function = shared_functions(gen).get(sfid)
    if function is None:
        return f"gen {gen:g} has no shared function {sfid}"
    if identify(sfid, descriptor, gen):
        return ""
    nearest: list[str] = []  # the bits that matter are those of the row of which most holds, up to where it fails
    for row in (row for row in rows(gen) if row.function == function):
        values = catalogue.layout(row.page, gen).raw([descriptor])
        failing = next(i for i, one in enumerate(row.conditions) if not one.holds(getattr(values, one.field)))
        if failing >= len(nearest):
            nearest = [f"{one.field}={getattr(values, one.field)}" for one in row.conditions[: failing + 1]]
    if not nearest:
        return f"no message of {function} is known on gen {gen:g}"
    return f"{function} has no message with {' '.join(nearest)} on gen {gen:g}"


def extended(sfid: int, descriptor: int, gen: float) -> Record | None:
    """The fields of an extended descriptor; None where the generation has none."""
    function = shared_functions(gen).get(sfid)
    for one in _table()[1]:
        if one.function == function and gen in one.gens:
            return catalogue.layout(one.page, gen).raw([descriptor])
    return None


def _common(descriptor: int, gen: float) -> Record:
    return catalogue.layout("MESSAGE_DESCRIPTOR", gen).raw([descriptor])


def mlen(descriptor: int, gen: float) -> int:
    """Registers sent, header included."""
    return int(_common(descriptor, gen).message_length)


def rlen(descriptor: int, gen: float) -> int:
    """Registers returned."""
    return int(_common(descriptor, gen).response_length)


def header(descriptor: int, gen: float) -> bool | None:
    """Whether the descriptor says that there is a header; None where descriptors do not say (`Descriptor.header` then knows)."""
    common = _common(descriptor, gen)
    return bool(common.header_present) if "header_present" in common._fields else None


# -- telling -------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1 << 14)
def describe(sfid: int, descriptor: int, gen: float) -> str:
    """A descriptor in a few words: 'data_cache_1: untyped_surface_read simd16 rg slm, mlen 2, rlen 4'."""
    message = identify(sfid, descriptor, gen)
    lengths = f"mlen {mlen(descriptor, gen)}, rlen {rlen(descriptor, gen)}"
    if message is None:
        return f"reserved: {why(sfid, descriptor, gen)}; {lengths}"
    words = [message.name, *_words(message)]
    with_header = ", header" if header(descriptor, gen) else ""
    return f"{message.function}: {' '.join(words)}{with_header}, {lengths}"


def _words(message: Descriptor) -> Iterator[str]:
    """What the message's own fields say, without those that its name tells."""
    told = COMMON | {one.field for one in message.row.conditions if len(one.values) == 1 and not one.negated}
    for one in message.layout.fields:
        value = getattr(message.values, one.name)
        if one.name in told or one.type.name in ("mbz", "mbo") or not described.holds(one.when, message.values):
            continue
        names = described.values_of(one.type, message.layout.gen)
        if names:
            yield names.get(value, f"{one.name}={value}?")
        elif one.name == "binding_table_index":
            yield catalogue.enumeration(SURFACES, message.layout.gen).get(value, f"surface {value}")
        elif one.name == "sampler_index":
            yield f"sampler {value}"
        elif value:
            yield one.name if one.type.name == "bool" else f"{one.name} {value}"


def problems(message: Descriptor) -> list[str]:
    """What a descriptor says that its message does not allow."""
    found = [f"reserved: {one}" for one in described.reserved(message.layout, [message.descriptor])]
    for one in message.layout.fields:
        names, value = described.values_of(one.type, message.layout.gen), getattr(message.values, one.name)
        if names and value not in names and described.holds(one.when, message.values):
            found.append(f"{one.name} must be {', '.join(names.values())}, not {value}")
    if message.mlen == 0:
        found.append("message_length must be 1 to 15, not 0")
    if message.rlen > LONGEST_RESPONSE:
        found.append(f"response_length must be 0 to {LONGEST_RESPONSE}, not {message.rlen}")
    said = header(message.descriptor, message.layout.gen)
    if said is not None and message.header_rule != "optional" and said != (message.header_rule == "required"):
        found.append(f"{message.name} {'needs a header' if not said else 'takes no header'}")
    return found


# -- making --------------------------------------------------------------------------------------------------------


def encode(name: str, gen: float, **fields: Any) -> int:
    """The descriptor of a message. Fields are numbers, or the names of enumerated values; what makes the message this one is filled in."""
    row = next((row for row in rows(gen) if row.name == name), None)
    if row is None:
        raise SpecError(f"gen {gen:g} has no message {name!r}")
    page = catalogue.layout(row.page, gen)
    given = {key: _number(page.field(key), value, gen) for key, value in fields.items()}
    for one in row.conditions:
        width = page.field(one.field).width
        value = given.setdefault(one.field, next(v for v in range(1 << width) if one.holds(v)))
        if not one.holds(value):
            raise ValueError(f"{name} does not have {one.field} {value}")
    for field in page.fields:
        if field.type.name == "mbo":
            given.setdefault(field.name, (1 << field.width) - 1)
        elif field.name == "header_present":
            given.setdefault(field.name, int(row.header == "required"))
    return page.pack(**given)[0]


def _number(field: Field, value: Any, gen: float) -> int:
    if not isinstance(value, str):
        return int(value)
    names = described.values_of(field.type, gen)
    for number, label in names.items():
        if label == value:
            return number
    raise ValueError(f"{field.name} must be {', '.join(names.values()) or 'a number'}, not {value!r}")


__all__ = [
    "Descriptor",
    "ExtendedPage",
    "MessageRow",
    "describe",
    "encode",
    "extended",
    "header",
    "identify",
    "mlen",
    "problems",
    "read",
    "resolve",
    "rlen",
    "rows",
    "shared_functions",
    "why",
]  # fmt: skip
