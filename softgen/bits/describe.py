"""Records as people and machines read them: one look for errors, traces, the command line and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

from softgen.bits import record
from softgen.bits.catalogue import catalogue
from softgen.bits.layout import BitField, FieldCondition, FieldType, Group, Layout
from softgen.bits.record import Record


class FieldLine(NamedTuple):
    """One field of a record, ready to print. Elements of groups are `name[i]`."""

    name: str
    text: str
    zero: bool
    depth: int = 0


class Reserved(NamedTuple):
    """Bits that must be zero and are not (or must be one and are not); counted from bit 0 of dword 0."""

    high: int
    low: int
    value: int

    def __str__(self) -> str:
        dword, high = divmod(self.high, 32)
        low = self.low % 32
        return f"dword {dword} bit{'s' if high > low else ''} {f'{high}:{low}' if high > low else high} = {self.value:#x}"


def values_of(kind: FieldType, gen: float) -> dict[int, str]:
    """The names of an enumerated type's values; empty for other types."""
    if kind.name != "enum":
        return {}
    return dict(kind.values) if kind.values else catalogue().enumeration(kind.target, gen)


def value_name(layout: Layout, values: Record, name: str) -> str:
    """The name of an enumerated field's value; 'value 5' for one that has no name."""
    value = getattr(values, name)
    return values_of(layout.field(name).type, layout.gen).get(value, f"value {value}")


@cache
def _shape(layout: Layout) -> tuple[Any, ...]:
    return _fields_shape(layout.fields, layout.groups, layout.gen)


def _fields_shape(fields: tuple[BitField, ...], groups: tuple[Group, ...], gen: float) -> tuple[Any, ...]:
    return (tuple((f, values_of(f.type, gen)) for f in fields), tuple((g, _fields_shape(g.fields, g.groups, gen)) for g in groups))


def holds(conditions: tuple[FieldCondition, ...], values: Record) -> bool:
    """Whether a reading applies, given the other fields."""
    return all((getattr(values, c.field, None) in c.values) != c.negated for c in conditions)


# -- JSON ----------------------------------------------------------------------------------------------------------


def to_json(layout: Layout, dwords: Sequence[int]) -> dict[str, Any]:
    """Integers by field name; enumerated fields as value and name; groups as lists; derived attributes last."""
    values = layout.raw(dwords)
    found = _json(_shape(layout), values, len(dwords) * 32)
    for name, _ in layout.derived:
        found[name] = getattr(values, name)
    return found


def _json(shape: tuple[Any, ...], values: Record, bits: int) -> dict[str, Any]:
    fields, groups = shape
    found: dict[str, Any] = {}
    for index, (field, names) in enumerate(fields):
        if field.low >= bits or field.when and not holds(field.when, values):
            continue  # a shorter command than the page allows for, or another reading
        value = values[index]
        found[field.name] = {"value": value, "name": names.get(value)} if field.type.name == "enum" else value
    for index, (group, inner) in enumerate(groups, len(fields)):
        elements = values[index][: group.times(bits)]  # a shorter form may end before a group does
        found[group.name] = [_json(inner, element, group.size) | _derived_json(group, element) for element in elements]
    return found


def _derived_json(group: Group, element: Record) -> dict[str, Any]:
    return {name: getattr(element, name) for name, _ in group.derived}


# -- text ----------------------------------------------------------------------------------------------------------


def lines(layout: Layout, dwords: Sequence[int]) -> Iterator[FieldLine]:
    """A record's fields in page order."""
    values, raw = layout.unpack(dwords), layout.raw(dwords)
    yield from _lines(_shape(layout), values, raw, layout.gen, 0, len(dwords) * 32)
    for name, _ in layout.derived:
        yield FieldLine(name, str(getattr(values, name)), False)


def _lines(shape: tuple[Any, ...], values: Record, raw: Record, gen: float, depth: int, bits: int) -> Iterator[FieldLine]:
    fields, groups = shape
    for index, (field, names) in enumerate(fields):
        if field.low >= bits or field.when and not holds(field.when, raw):
            continue
        yield FieldLine(field.name, value_text(field, values[index], names), raw[index] == 0, depth)
        if field.type.name == "struct":
            inner = catalogue().get(field.type.target, gen)
            if inner and raw[index]:
                yield from (line._replace(depth=depth + 1) for line in lines(inner, record.split(raw[index], inner.dwords)))
    for index, (group, inner_shape) in enumerate(groups, len(fields)):
        count = group.times(bits)
        for i, (element, element_raw) in enumerate(zip(values[index][:count], raw[index][:count], strict=True)):
            yield FieldLine(f"{group.name}[{i}]", "", not any(_flat(element_raw)), depth)
            yield from _lines(inner_shape, element, element_raw, gen, depth + 1, group.size)
            yield from (FieldLine(name, str(getattr(element, name)), False, depth + 1) for name, _ in group.derived)


def _flat(values: Record) -> Iterator[Any]:
    for value in values:
        if isinstance(value, tuple):
            for element in value:
                yield from _flat(element)
        else:
            yield value


def value_text(field: BitField, value: Any, names: dict[int, str]) -> str:
    """A value as people read it."""
    match field.type.name:
        case "enum":
            return f"{names[value]} ({value})" if value in names else f"{value} (no name)"
        case "bool":
            return "true" if value else "false"
        case "address" | "offset" | "mocs" | "struct":
            return f"{value:#x}"
        case "bytes":
            return f"{value} bytes"
        case "float" | "half" | "double" | "fixed":
            return f"{value:g}"
        case "minus1":
            return f"{value} (means {value + 1})"
        case _:
            return str(value) if abs(value) < 4096 else f"{value} ({value:#x})"


# -- reserved bits -------------------------------------------------------------------------------------------------


@cache
def _must(layout: Layout) -> tuple[int, int]:
    """Masks of the named fields that must be zero and must be one."""
    masks = {"mbz": 0, "mbo": 0}
    for field in layout.fields:
        if field.type.name in masks:
            masks[field.type.name] |= field.mask
    return masks["mbz"], masks["mbo"]


def reserved(layout: Layout, dwords: Sequence[int]) -> list[Reserved]:
    """Bits that violate the page: reserved, must-be-zero and must-be-one bits. Dwords past the longest form on the page are not checked."""
    dwords = dwords if layout.maximum is None else dwords[: layout.maximum]
    bits = record.join(dwords)
    zero, ones = _must(layout)
    wrong = bits & (layout.reserved(len(dwords)) | zero) | ones & ~bits  # of dwords that are not there `split` leaves nothing
    return [run for i, part in enumerate(record.split(wrong, len(dwords))) if part for run in _runs(part, dwords[i], 32 * i)]


def _runs(wrong: int, dword: int, base: int) -> Iterator[Reserved]:
    """The runs of set bits in one dword, as reports."""
    while wrong:
        low = (wrong & -wrong).bit_length() - 1
        width = (~(wrong >> low) & (wrong >> low) + 1).bit_length() - 1
        mask = (1 << low + width) - (1 << low)
        yield Reserved(base + low + width - 1, base + low, (dword & mask) >> low)
        wrong &= ~mask
