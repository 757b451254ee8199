"""Message descriptors: what a send instruction asks of which shared function.

message_table.py says which message a descriptor names; the row's page says what its bits mean. A descriptor is the last dword of
the instruction, so the end-of-thread bit may be set, and on Gen4.5 the four bits that name the function.

Reads  MESSAGE_DESCRIPTOR EXTENDED_MESSAGE_DESCRIPTOR
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from softgen.bits import catalogue
from softgen.bits import describe as described
from softgen.bits.layout import BitField, Layout
from softgen.bits.record import Record
from softgen.errors import DecodeError, SpecError, Unsupported
from softgen.shared_functions.message_table import (
    ExtendedPage,
    MessageRow,
    decision,
    message_table,
    read,
    resolve,
    rows,
    shared_functions,
)

SURFACES = "SPECIAL_SURFACE"
COMMON = {"end_of_thread", "target_function_id", "message_length", "response_length", "header_present"}
LONGEST_RESPONSE = 16  # registers (KBL 14359-14364)


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A decoded descriptor: its row in the table of messages, and its fields."""

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


# -- reading -------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1 << 16)
def identify(sfid: int, descriptor: int, gen: float) -> Descriptor | None:
    """The message a descriptor names; None for an encoding that is reserved, and `why` says what is wrong with it."""
    function = shared_functions(gen).get(sfid)
    if function is None:
        return None
    selector, table = decision(function, gen)
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
        failing = next(i for i, condition in enumerate(row.conditions) if not condition.holds(getattr(values, condition.field)))
        if failing >= len(nearest):
            nearest = [f"{condition.field}={getattr(values, condition.field)}" for condition in row.conditions[: failing + 1]]
    if not nearest:
        return f"no message of {function} is known on gen {gen:g}"
    return f"{function} has no message with {' '.join(nearest)} on gen {gen:g}"


def extended(sfid: int, descriptor: int, gen: float) -> Record | None:
    """The fields of an extended descriptor; None where the generation has none."""
    function = shared_functions(gen).get(sfid)
    for row in message_table()[1]:
        if row.function == function and gen in row.gens:
            return catalogue.layout(row.page, gen).raw([descriptor])
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


# -- describing -------------------------------------------------------------------------------------------------------


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
    told = COMMON | {condition.field for condition in message.row.conditions if len(condition.values) == 1 and not condition.negated}
    for field in message.layout.fields:
        value = getattr(message.values, field.name)
        if field.name in told or field.type.name in ("mbz", "mbo") or not described.holds(field.when, message.values):
            continue
        names = described.values_of(field.type, message.layout.gen)
        if names:
            yield names.get(value, f"{field.name}={value}?")
        elif field.name == "binding_table_index":
            yield catalogue.enumeration(SURFACES, message.layout.gen).get(value, f"surface {value}")
        elif field.name == "sampler_index":
            yield f"sampler {value}"
        elif value:
            yield field.name if field.type.name == "bool" else f"{field.name} {value}"


def problems(message: Descriptor) -> list[str]:
    """What a descriptor says that its message does not allow."""
    found = [f"reserved: {bits}" for bits in described.reserved(message.layout, [message.descriptor])]
    for field in message.layout.fields:
        names, value = described.values_of(field.type, message.layout.gen), getattr(message.values, field.name)
        if names and value not in names and described.holds(field.when, message.values):
            found.append(f"{field.name} must be {', '.join(names.values())}, not {value}")
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
    for condition in row.conditions:
        width = page.field(condition.field).width
        value = given.setdefault(condition.field, next(v for v in range(1 << width) if condition.holds(v)))
        if not condition.holds(value):
            raise ValueError(f"{name} does not have {condition.field} {value}")
    for field in page.fields:
        if field.type.name == "mbo":
            given.setdefault(field.name, (1 << field.width) - 1)
        elif field.name == "header_present":
            given.setdefault(field.name, int(row.header == "required"))
    return page.pack(**given)[0]


def _number(field: BitField, value: Any, gen: float) -> int:
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
