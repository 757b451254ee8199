"""Records: a layout compiled to one Python function per direction.

A field becomes one expression over its dwords, so unpacking costs no more than the shifts and masks it needs.
"""

from __future__ import annotations

import ast
import re
import struct
from array import array
from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from softgen.bits.layout import Field, Group, Layout

MASK32 = 0xFFFFFFFF


class Record(tuple[Any, ...]):
    """A read-only record. Fields are attributes; `_asdict` gives them by name."""

    __slots__ = ()
    _fields: tuple[str, ...] = ()

    def _asdict(self) -> dict[str, Any]:
        return dict(zip(self._fields, self, strict=True))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{n}={v!r}' for n, v in self._asdict().items())})"

    def __getattr__(self, name: str) -> Any:  # only reached when the class has no such field
        raise AttributeError(f"{type(self).__name__} has no field {name!r}; it has {', '.join(self._fields) or 'none'}")


def record_class(name: str, fields: Iterable[str]) -> type[Record]:
    fields = tuple(fields)
    attributes: dict[str, Any] = {n: property(itemgetter(i)) for i, n in enumerate(fields)}
    return type(name, (Record,), {"__slots__": (), "_fields": fields, **attributes})


# -- numbers -----------------------------------------------------------------------------------------------------


def to_float(bits: int) -> float:
    return float(struct.unpack("<f", bits.to_bytes(4, "little"))[0])


def to_double(bits: int) -> float:
    return float(struct.unpack("<d", bits.to_bytes(8, "little"))[0])


def to_half(bits: int) -> float:
    return float(struct.unpack("<e", bits.to_bytes(2, "little"))[0])


def sign(value: int, width: int) -> int:
    return value - (1 << width) if value >> width - 1 else value


def join(dwords: Any) -> int:
    """Dwords as one number, dword 0 lowest."""
    return int.from_bytes(array("I", dwords).tobytes(), "little")


def split(bits: int, dwords: int) -> list[int]:
    return array("I", (bits & (1 << 32 * dwords) - 1).to_bytes(4 * dwords, "little")).tolist()


# -- unpack ------------------------------------------------------------------------------------------------------


def compile_unpack(layout: Layout, natural: bool) -> Callable[[Any], Record]:
    """dwords -> record."""
    names: dict[str, Any] = {"join": join, "to_float": to_float, "to_double": to_double, "to_half": to_half, "sign": sign}
    lines = ["n = len(d)", "bits = join(d)"] if layout.groups else []
    need = max((f.high // 32 + 1 for f in layout.fields), default=0)
    if need:  # the last dwords may be missing
        lines.append(f"d = d if len(d) >= {need} else [*d, *[0] * ({need} - len(d))]")
    out = [_field(f, _from_dwords, natural) for f in layout.fields]
    out += [_group(g, f"g{i}_", names, natural, outermost=True) for i, g in enumerate(layout.groups)]
    fields = [f.name for f in layout.fields] + [g.name for g in layout.groups]
    for i, expression in enumerate(out):
        lines.append(f"v{i} = {expression}")
    for name, expression in layout.derived:
        lines.append(f"v{len(fields)} = {_derived(expression, fields)}")
        fields.append(name)
    names["cls"], names["new"] = record_class(layout.name, fields), tuple.__new__
    values = "".join(f"v{i}, " for i in range(len(fields)))
    body = "\n    ".join([*lines, f"return new(cls, ({values}))"])
    exec(compile(f"def unpack(d):\n    {body}\n", f"<{layout.name} gen {layout.gen:g}>", "exec"), names)
    unpack: Callable[[Any], Record] = names["unpack"]
    return unpack


def _group(group: Group, prefix: str, names: dict[str, Any], natural: bool, outermost: bool = False) -> str:
    """The expression for a tuple of elements, given the number `bits` the group stands in."""
    element = f"{prefix}element"
    inner = [_field(f, _from_number, natural) for f in group.fields]
    inner += [_group(g, f"{prefix}{i}_", names, natural) for i, g in enumerate(group.groups)]
    fields = [f.name for f in group.fields] + [g.name for g in group.groups]
    lines = [f"v{i} = {expression}" for i, expression in enumerate(inner)]
    for name, expression in group.derived:
        lines.append(f"v{len(fields)} = {_derived(expression, fields)}")
        fields.append(name)
    names[f"{prefix}class"], names["new"] = record_class(group.name, fields), tuple.__new__
    values = "".join(f"v{i}, " for i in range(len(fields)))
    body = "\n    ".join([*lines, f"return new({prefix}class, ({values}))"])
    source = f"def {element}(bits, n={-(-group.size // 32)}):\n    {body}\n"
    exec(compile(source, f"<{group.name}>", "exec"), names)
    size, mask = group.size, hex((1 << group.size) - 1)
    times = f"max(0, n * 32 - {group.start}) // {size}" if group.count is None else str(group.count)
    if group.count is None and size == 32 and group.start % 32 == 0 and outermost:  # inline data, up to 64 Ki dwords of it
        return f"tuple([{element}(word) for word in d[{group.start // 32} : n]])"
    return f"tuple([{element}(bits >> {group.start} + {size} * i & {mask}) for i in range({times})])"


def _field(f: Field, read: Callable[[int, int], str], natural: bool) -> str:
    parts, shift = [], f.width
    for high, low in f.pieces:
        shift -= high - low + 1
        parts.append(f"({read(high, low)}) << {shift}" if shift else f"({read(high, low)})" if len(f.pieces) > 1 else read(high, low))
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


ALLOWED = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.Name, ast.Load, ast.Constant, ast.Add, ast.Sub, ast.Mult, ast.FloorDiv,
           ast.LShift, ast.RShift, ast.BitAnd, ast.BitOr, ast.USub)  # fmt: skip


def check_expression(expression: str, known: Mapping[str, int]) -> str:
    """'' when a derived expression is sound; otherwise what is wrong with it. `known`: how many bits each name may have."""
    try:
        tree = ast.parse(expression, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return f"cannot read expression {expression!r}"
    for node in ast.walk(tree):
        if not isinstance(node, ALLOWED) or isinstance(node, ast.Constant) and type(node.value) is not int:
            return f"expression {expression!r} may use + - * // << >> & | ( ), whole numbers and fields"
        if isinstance(node, ast.Name) and node.id not in known:
            return f"expression names no field: {node.id!r}"
        if isinstance(node, ast.BinOp) and not _amount(node, known):
            return f"expression {expression!r} may shift by numbers below 64 and fields of at most 6 bits, and divide by numbers above 0"
    return ""


def _amount(node: ast.BinOp, known: Mapping[str, int]) -> bool:
    """Whether any value on the right keeps the result small and the division possible."""
    match node.op, node.right:
        case ast.FloorDiv(), right:
            return isinstance(right, ast.Constant) and right.value != 0
        case ast.LShift() | ast.RShift(), ast.Constant(value=int(amount)):
            return 0 <= amount < 64
        case ast.LShift() | ast.RShift(), right:
            return isinstance(right, ast.Name) and known.get(right.id, 64) <= 6
    return True


# -- pack --------------------------------------------------------------------------------------------------------


def pack(layout: Layout, given: Mapping[str, Any]) -> list[int]:
    """Values by field name -> dwords, header and length filled in. Groups are sequences of mappings."""
    dwords = max([layout.dwords, *(f.high // 32 + 1 for f in layout.fields if given.get(f.name))])
    for group in layout.groups:
        if given.get(group.name):  # a counted group, too, may stand past the shortest form of a command
            dwords = max(dwords, -(-(group.start + group.size * len(given[group.name])) // 32))
    bits = _pack(f"{layout.name}", layout.fields, layout.groups, given, layout.gen)
    if layout.header:
        bits |= layout.header.value
        if layout.header.length:
            high, low = layout.header.length
            bits |= _fit(layout.name, "length", dwords - layout.header.bias, high - low + 1) << low
    return split(bits, dwords)


def _pack(owner: str, fields: tuple[Field, ...], groups: tuple[Group, ...], given: Mapping[str, Any], gen: float) -> int:
    rest, bits = dict(given), 0
    for f in fields:
        if f.name in rest:
            bits |= _place(owner, f, rest.pop(f.name))
    for group in groups:
        elements = rest.pop(group.name, ())
        if group.count is not None and len(elements) > group.count:
            raise ValueError(f"{owner}.{group.name} must have at most {group.count} elements, not {len(elements)}")
        for i, element in enumerate(elements):
            bits |= _pack(f"{owner}.{group.name}[{i}]", group.fields, group.groups, element, gen) << group.start + i * group.size
    if rest:
        raise TypeError(f"{owner} has no field {sorted(rest)[0]!r} on gen {gen:g}")
    return bits


def _place(owner: str, f: Field, value: Any) -> int:
    value, bits = _fit(owner, f.name, _encode(owner, f, value), f.width), 0
    for high, low in reversed(f.pieces):
        bits |= (value & (1 << high - low + 1) - 1) << low
        value >>= high - low + 1
    return bits


def compile_place(layout: Layout) -> Callable[[Mapping[str, int]], int]:
    """Numbers by field name -> all bits as one number; `pack` for who packs often and has only whole numbers, without header or groups."""
    owner = layout.name
    placed = {f.name: (f.width, f.type.name == "int", _moves(f)) for f in layout.fields}

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


def _moves(f: Field) -> tuple[tuple[int, int, int], ...]:
    """How each piece of a field leaves its value: shift down, mask, shift up."""
    found, down = [], f.width
    for high, low in f.pieces:
        down -= high - low + 1
        found.append((down, (1 << high - low + 1) - 1, low))
    return tuple(found)


def _encode(owner: str, f: Field, value: Any) -> int:
    kind = f.type.name
    if f.alignment:
        if value & (1 << f.alignment) - 1:
            raise ValueError(f"{owner}.{f.name} must be a multiple of {1 << f.alignment}, not {value:#x}")
        return int(value >> f.alignment)
    if kind == "int" and value < 0 or kind == "fixed" and f.type.signed and value < 0:
        value = round(value * (1 << f.type.fraction)) + (1 << f.width)
        return int(value) if value >> f.width - 1 else -1
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
