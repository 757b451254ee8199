"""Field types: the type and the conditions that a page gives after a field's name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from softgen.bits.field import BitField, FieldCondition, FieldType
from softgen.errors import SpecError

TYPES = ("uint", "int", "bool", "address", "bytes", "float", "double", "half", "fixed", "mocs", "offset", "mbz", "mbo", "enum", "struct",
         "minus1")  # fmt: skip
BASES = ("general", "surface", "dynamic", "instruction", "indirect", "bindless", "-")
FIXED = re.compile(r"([us])(\d+)\.(\d+)$")

Complain = Callable[[str], SpecError]


def read_type(complain: Complain, text: str, width: int) -> FieldType:
    """'address dynamic SAMPLER_STATE', 'u4.8', 'byte | word | dword' …"""
    if not text:
        return FieldType()
    if "|" in text or re.match(r"\d+=", text):
        return FieldType("enum", values=_inline(complain, text, width))
    words = text.split()
    if m := FIXED.match(words[0]):
        stated = int(m[2]) + int(m[3]) + (m[1] == "s")
        if stated != width:
            raise complain(f"{words[0]} is {stated} bits wide, the field {width}")
        return FieldType("fixed", fraction=int(m[3]), signed=m[1] == "s")
    known = words[0] in TYPES and words[0] != "fixed"
    lengths = {"address": (1, 2, 3), "enum": (2,), "struct": (2,)}.get(words[0], (1,))
    if not known or len(words) not in lengths:
        raise complain(f"{text!r} is no type; types are {', '.join(TYPES)}, u4.8, s4.8 and a | b | c")
    need = {"bool": 1, "float": 32, "half": 16, "double": 64}.get(words[0])
    if need and need != width:
        raise complain(f"a {words[0]} is {need} bits wide, not {width}")
    if words[0] == "address" and len(words) > 1:
        if words[1] not in BASES:
            raise complain(f"an address counts from {', '.join(BASES)}, not {words[1]!r}")
        return FieldType("address", base="" if words[1] == "-" else words[1], target=words[2] if len(words) > 2 else "")
    return FieldType(words[0], target=words[1] if len(words) > 1 else "")


def _inline(complain: Complain, text: str, width: int) -> tuple[tuple[int, str], ...]:
    """'a | b | - | 7=c' -> ((0, 'a'), (1, 'b'), (7, 'c'))."""
    values, next_value = {}, 0
    for item in text.split("|"):
        m = re.match(r"\s*(?:(0x[0-9a-f]+|\d+)=)?(.*\S)\s*$", item)
        if not m:
            raise complain(f"an empty name in {text!r}")
        value = int(m[1], 0) if m[1] else next_value
        next_value = value + 1
        if m[2] == "-":
            continue
        if value >> width or value in values:
            raise complain(f"{m[2]!r} has value {value}, which is taken or does not fit {width} bits")
        values[value] = m[2]
    return tuple(values.items())


def read_conditions(complain: Complain, text: str, fields: Iterable[BitField]) -> tuple[FieldCondition, ...]:
    """'mode=a,b & depth!=0' -> conditions over fields named before."""
    found, known = [], list(fields)
    for part in text.split("&"):
        m = re.match(r"\s*([a-z0-9_]+)\s*(!?)=\s*(.*\S)\s*$", part)
        if not m:
            raise complain(f"cannot read condition {part.strip()!r}; expected name=value")
        found.append(FieldCondition(m[1], tuple(_condition_value(complain, m[1], v.strip(), known) for v in m[3].split(",")), bool(m[2])))
    return tuple(found)


def _condition_value(complain: Complain, name: str, text: str, fields: Iterable[BitField]) -> int:
    if text.isdigit():
        return int(text)
    for other in fields:
        for value, label in other.type.values if other.name == name else ():
            if label == text:
                return value
    raise complain(f"{name} has no value {text!r}")
