"""Packing: values by field name to dwords. Values that do not fit their field are refused by name."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any

from softgen.bits.field import BitField, Group, Header
from softgen.bits.record import split


def pack(owner: str, gen: float, least: int, header: Header | None, fields: tuple[BitField, ...], groups: tuple[Group, ...],
         given: Mapping[str, Any]) -> list[int]:  # fmt: skip
    """Values by field name -> at least `least` dwords, header and length filled in. Groups are sequences of mappings."""
    dwords = max([least, *(f.high // 32 + 1 for f in fields if given.get(f.name))])
    for group in groups:
        if given.get(group.name):  # a counted group, too, may stand past the shortest form of a command
            dwords = max(dwords, -(-(group.start + group.size * len(given[group.name])) // 32))
    bits = _pack(owner, fields, groups, given, gen)
    if header:
        bits |= header.value
        if header.length:
            high, low = header.length
            bits |= _fit(owner, "length", dwords - header.bias, high - low + 1) << low
    return split(bits, dwords)


def _pack(owner: str, fields: tuple[BitField, ...], groups: tuple[Group, ...], given: Mapping[str, Any], gen: float) -> int:
    rest, bits = dict(given), 0
    for f in fields:
        if f.name in rest:
            bits |= place_value(owner, f, rest.pop(f.name))
    for group in groups:
        elements = rest.pop(group.name, ())
        if group.count is not None and len(elements) > group.count:
            raise ValueError(f"{owner}.{group.name} must have at most {group.count} elements, not {len(elements)}")
        for i, element in enumerate(elements):
            bits |= _pack(f"{owner}.{group.name}[{i}]", group.fields, group.groups, element, gen) << group.start + i * group.size
    if rest:
        raise TypeError(f"{owner} has no field {sorted(rest)[0]!r} on gen {gen:g}")
    return bits


def place_value(owner: str, f: BitField, value: Any) -> int:
    """A field's value as the bits of a structure that has zeros everywhere else."""
    value, bits = _fit(owner, f.name, _encode(owner, f, value), f.width), 0
    for high, low in reversed(f.pieces):
        bits |= (value & (1 << high - low + 1) - 1) << low
        value >>= high - low + 1
    return bits


def compile_place(owner: str, fields: tuple[BitField, ...]) -> Callable[[Mapping[str, int]], int]:
    """Compile a function from integers by field name to all bits as one number: a fast `pack` without header, groups and scaling."""
    placed = {f.name: (f.width, f.type.name == "int", _moves(f)) for f in fields}

    def place(values: Mapping[str, int]) -> int:
        bits = 0
        for name, value in values.items():
            width, signed, moves = placed[name]
            if signed and value >> width - 1 not in (0, -1):
                raise ValueError(f"{owner}.{name} must fit {width} bits with its sign, not {value}")
            if not signed and (value < 0 or value >> width):
                _fit(owner, name, value, width)
            for down, mask, up in moves:
                bits |= (value >> down & mask) << up
        return bits

    return place


def _moves(f: BitField) -> tuple[tuple[int, int, int], ...]:
    """How each piece of a field leaves its value: shift down, mask, shift up."""
    found, down = [], f.width
    for high, low in f.pieces:
        down -= high - low + 1
        found.append((down, (1 << high - low + 1) - 1, low))
    return tuple(found)


def _encode(owner: str, f: BitField, value: Any) -> int:
    kind = f.type.name
    if f.alignment:
        if value & (1 << f.alignment) - 1:
            raise ValueError(f"{owner}.{f.name} must be a multiple of {1 << f.alignment}, not {value:#x}")
        return int(value >> f.alignment)
    if kind == "int" and value < 0 or kind == "fixed" and f.type.signed and value < 0:
        number: int = round(value * (1 << f.type.fraction))
        if number >> f.width - 1 not in (0, -1):
            raise ValueError(f"{owner}.{f.name} must fit {f.width} bits with its sign, not {value}")
        return number & (1 << f.width) - 1
    if kind == "fixed":
        scaled: int = round(value * (1 << f.type.fraction))
        return scaled
    if kind in ("float", "half", "double") and isinstance(value, float):
        return int.from_bytes(struct.pack({"float": "<f", "half": "<e", "double": "<d"}[kind], value), "little")
    return int(value)


def _fit(owner: str, name: str, value: int, width: int) -> int:
    if value < 0 or value >> width:
        raise ValueError(f"{owner}.{name} must fit {width} bits, not {value:#x}")
    return value
