"""Unpacking: a layout compiled to one Python function.

A field becomes one expression over its dwords, so unpacking costs no more than the shifts and masks it needs.
"""

from __future__ import annotations

import marshal
import re
from collections.abc import Callable
from typing import Any

from softgen.bits.field import BitField, Group
from softgen.bits.record import Record, join, record_class, sign, to_double, to_float, to_half


def compile_unpack(name: str, fields: tuple[BitField, ...], groups: tuple[Group, ...], derived: tuple[tuple[str, str], ...],
                   natural: bool, codes: dict[bool, bytes]) -> Callable[[Any], Record]:  # fmt: skip
    """Compile a function dwords -> record. `natural`: floats and fixed point become Python floats. `codes` keeps its bytecode."""
    code = codes.get(natural)
    if code is None:
        source = _source(fields, groups, derived, natural)
        code = codes[natural] = marshal.dumps(compile(source, f"<{name}>", "exec"))
    names: dict[str, Any] = {"join": join, "to_float": to_float, "to_double": to_double, "to_half": to_half, "sign": sign,
                             "new": tuple.__new__, "cls": record_class(name, _names(fields, groups, derived))}  # fmt: skip
    for i, group in enumerate(groups):
        _add_classes(group, f"g{i}_", names)
    exec(marshal.loads(code), names)
    for i, group in enumerate(groups):
        if _is_of_bytes(group):
            names[f"g{i}_all"] = tuple(map(names[f"g{i}_element"], range(256)))
    unpack: Callable[[Any], Record] = names["unpack"]
    return unpack


def _names(fields: tuple[BitField, ...], groups: tuple[Group, ...], derived: tuple[tuple[str, str], ...]) -> list[str]:
    return [*(f.name for f in fields), *(g.name for g in groups), *(name for name, _ in derived)]


def _add_classes(group: Group, prefix: str, names: dict[str, Any]) -> None:
    """The classes of a group's elements, under the names that `_group` uses."""
    names[f"{prefix}class"] = record_class(group.name, _names(group.fields, group.groups, group.derived))
    for i, inner in enumerate(group.groups):
        _add_classes(inner, f"{prefix}{i}_", names)


def _source(fields: tuple[BitField, ...], groups: tuple[Group, ...], derived: tuple[tuple[str, str], ...], natural: bool) -> str:
    """`unpack`, after the functions of its groups' elements."""
    functions: list[str] = []
    lines = ["n = len(d)", "bits = join(d)"] if groups else []
    need = max((f.high // 32 + 1 for f in fields), default=0)
    if need:  # the last dwords may be missing
        lines.append(f"d = d if len(d) >= {need} else [*d, *[0] * ({need} - len(d))]")
    out = [_field(f, _from_dwords, natural) for f in fields]
    out += [_group(g, f"g{i}_", functions, natural, outermost=True) for i, g in enumerate(groups)]
    functions.append(_function("unpack(d)", lines, out, _names(fields, groups, derived), derived, "cls"))
    return "".join(functions)


def _function(head: str, lines: list[str], out: list[str], names: list[str], derived: tuple[tuple[str, str], ...], made: str) -> str:
    """A function that makes a record out of expressions; derived values come after them, over the names before."""
    out = [*out, *(_derived(expression, names[: len(out) + i]) for i, (_, expression) in enumerate(derived))]
    lines = [*lines, *(f"v{i} = {expression}" for i, expression in enumerate(out))]
    listed = "".join(f"v{i}, " for i in range(len(out)))
    body = "\n    ".join([*lines, f"return new({made}, ({listed}))"])
    return f"def {head}:\n    {body}\n"


def _group(group: Group, prefix: str, functions: list[str], natural: bool, outermost: bool = False) -> str:
    """The expression for a tuple of elements, given the number `bits` the group stands in. Adds the function of an element."""
    element = f"{prefix}element"
    inner = [_field(f, _from_number, natural) for f in group.fields]
    inner += [_group(g, f"{prefix}{i}_", functions, natural) for i, g in enumerate(group.groups)]
    names = _names(group.fields, group.groups, group.derived)
    head = f"{element}(bits, n={-(-group.size // 32)})"
    functions.append(_function(head, [], inner, names, group.derived, f"{prefix}class"))
    size, mask = group.size, hex((1 << group.size) - 1)
    times = f"max(0, n * 32 - {group.start}) // {size}" if group.count is None else str(group.count)
    if outermost and _is_of_bytes(group):  # matrices and reference lists: an element for each value of a byte
        whole = f"bits >> {group.start} & {hex((1 << 8 * (group.count or 0)) - 1)}"
        return f"tuple([{prefix}all[byte] for byte in ({whole}).to_bytes({group.count}, 'little')])"
    if group.count is None and size == 32 and group.start % 32 == 0 and outermost:  # inline data, up to 64 Ki dwords of it
        return f"tuple([{element}(word) for word in d[{group.start // 32} : n]])"
    return f"tuple([{element}(bits >> {group.start} + {size} * i & {mask}) for i in range({times})])"


def _is_of_bytes(group: Group) -> bool:
    return group.size == 8 and bool(group.count) and not group.groups


def _field(f: BitField, read: Callable[[int, int], str], natural: bool) -> str:
    parts, shift = [], f.width
    for high, low in f.pieces:
        shift -= high - low + 1
        parts.append(f"({read(high, low)}) << {shift}" if shift else read(high, low))
    value = " | ".join(parts)
    kind = f.type.name
    if f.alignment:
        return f"({value}) << {f.alignment}"
    if kind == "int":
        return f"sign({value}, {f.width})"
    if natural and kind in ("float", "half", "double"):
        return f"to_{kind}({value})"
    if natural and kind == "fixed":
        value = f"sign({value}, {f.width})" if f.type.signed else f"({value})"
        return f"{value} / {1 << f.type.fraction}"
    return value


def _from_dwords(high: int, low: int) -> str:
    first, low_bit = divmod(low, 32)
    last, high_bit = divmod(high, 32)
    words = " | ".join([f"d[{first}]"] + [f"d[{i}] << {32 * (i - first)}" for i in range(first + 1, last + 1)])
    shifted = f"({words}) >> {low_bit}" if low_bit else f"({words})" if last > first else words
    return shifted if high_bit == 31 else f"{shifted} & {(1 << high - low + 1) - 1:#x}"


def _from_number(high: int, low: int) -> str:
    return f"bits >> {low} & {(1 << high - low + 1) - 1:#x}"


def _derived(expression: str, fields: list[str]) -> str:
    return re.sub(r"\b[a-z_]\w*", lambda m: f"v{fields.index(m[0])}", expression)
