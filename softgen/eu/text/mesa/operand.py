"""Text of operands in Mesa's dialect.

Each function returns the text and the operand that the text denotes: the same object where the text is complete, otherwise one with the
omitted fields as the parser sets them.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from functools import lru_cache

from softgen.eu.isa import registers, types
from softgen.eu.isa.instruction import VXH, Operand
from softgen.eu.text.mesa.names import MesaWords, mesa_words

WHOLE = 0b11_10_01_00  # the swizzle xyzw
FULL = 0b1111  # the write mask xyzw
CHANNELS = "xyzw"
ALONE = ("null", "ip")  # registers whose names have no number
UNTYPED = "ud"  # written for reserved types

OperandText = tuple[str, Operand]


def swizzle(value: int) -> str:
    chosen = [CHANNELS[value >> 2 * place & 3] for place in range(4)]
    if len(set(chosen)) == 1:
        return "." + chosen[0]
    return "" if value == WHOLE else "." + "".join(chosen)


def write_mask(value: int) -> str:
    return "" if value == FULL else "." + "".join(CHANNELS[place] for place in range(4) if value >> place & 1)


def register(operand: Operand, words: MesaWords, gen: float) -> OperandText:
    """The register alone. Where several numbers share a name, the name denotes the first."""
    number = operand.number
    if operand.file == "grf":
        return f"g{number}", operand
    if operand.file == "mrf":
        return f"m{number}", operand
    kind, index = divmod(number, 16)
    name = words.write["register"].get(kind)
    if name is None:
        found = registers.find(number, gen)
        return f"{found[0].name}{found[1]}" if found else f"ARF{number}", operand
    if name in ALONE:
        return name, operand if not index else replace(operand, number=number - index)
    return f"{name}{index}", operand


def _address(operand: Operand) -> str:
    sub = f".{operand.address_sub}" if operand.address_sub else ""
    offset = f" {operand.offset}" if operand.offset else ""
    return f"{'m' if operand.file == 'mrf' else 'g'}[a0{sub}{offset}]"


def _place(operand: Operand, gen: float, always: bool = False) -> OperandText:
    """The register with its sub-register, or the address of an indirect one. Sub-registers count elements; those that do not are denoted in
    bytes where they mean something of their own, and cannot be denoted elsewhere."""
    if operand.indirect:
        denoted = operand if operand.file in ("grf", "mrf") else replace(operand, file="grf")
        return _address(operand) + ("" if operand.special is None else f".mme{operand.special}"), denoted
    words = mesa_words(gen)
    text, denoted = register(operand, words, gen)
    if operand.special is not None:
        return f"{text}.mme{operand.special}", denoted if not operand.sub else replace(denoted, sub=0)
    size = types.size(operand.type or UNTYPED)
    index, rest = divmod(operand.sub, size)
    if rest and operand.file == "arf" and operand.number // 16 not in words.write["register"]:
        return f"{text}.{operand.sub}b", denoted
    if rest:
        denoted = replace(denoted, sub=operand.sub - rest)
    return f"{text}.{index}" if index or always else text, denoted


def _typed(operand: Operand) -> Operand:
    return operand if operand.type else replace(operand, type=UNTYPED)


@lru_cache(maxsize=1 << 14)
def destination(operand: Operand, gen: float, three: bool = False) -> OperandText:
    """`three`: the form has no stride, it is one."""
    if operand.file == "imm":
        operand = replace(operand, file="arf", type=UNTYPED)
    text, denoted = _place(operand, gen)
    denoted = _typed(denoted)
    mask = "" if operand.write_mask is None else write_mask(operand.write_mask)
    return f"{text}<{1 if three else operand.horizontal}>{mask}{denoted.type.upper()}", denoted


@lru_cache(maxsize=1 << 14)
def source(operand: Operand, gen: float, align16: bool, bitwise: bool) -> OperandText:
    if operand.file == "imm":
        return immediate(operand)
    text, denoted = _place(operand, gen)
    denoted = _typed(denoted)
    sign = ("~" if bitwise else "-") if operand.negate else ""
    sign += "(abs)" if operand.absolute else ""
    rows = "VxH" if operand.vertical == VXH else operand.vertical
    if align16:
        channels = "" if operand.swizzle is None else swizzle(operand.swizzle)
        return f"{sign}{text}<{rows}>{channels}{denoted.type.upper()}", denoted
    return f"{sign}{text}<{rows},{operand.width},{operand.horizontal}>{denoted.type.upper()}", denoted


def typed_alike(operands: tuple[Operand, ...]) -> tuple[Operand, ...]:
    """Operands of a three-source form; one without a type is written with that of another, which its encoding has for sure."""
    known = [operand.type for operand in operands if operand.type]
    if len(known) == len(operands):
        return operands
    kind = known[0] if known else UNTYPED
    return tuple(operand if operand.type else replace(operand, type=kind) for operand in operands)


@lru_cache(maxsize=1 << 12)
def source_three(operand: Operand, gen: float) -> OperandText:
    """A source of the three-source align16 form: one channel for all, whose swizzle goes without saying if it is x, or four by four."""
    text, denoted = _place(operand, gen, operand.replicate)
    sign = ("-" if operand.negate else "") + ("(abs)" if operand.absolute else "")
    region = "<0,1,0>" if operand.replicate else "<4,4,1>"
    chosen = operand.swizzle
    if chosen is None or (operand.replicate and not chosen):
        channels = ""
    else:
        channels = swizzle(chosen) or (".xyzw" if operand.replicate else "")
    return f"{sign}{text}{region}{channels}{denoted.type.upper()}", denoted


@lru_cache(maxsize=1 << 12)
def source_align1(operand: Operand, gen: float, last: bool) -> OperandText:
    """A source of the three-source align1 form. The width follows from the strides, and the last source has no vertical one."""
    sign = ("-" if operand.negate else "") + ("(abs)" if operand.absolute else "")
    if operand.file == "imm":
        text, denoted = immediate(operand, 16)
        return (text, denoted) if not sign else (text, replace(denoted, negate=False, absolute=False))
    text, denoted = _place(operand, gen)
    across = operand.horizontal
    rows = across if last else operand.vertical
    width = max(rows // across, 1) if across else max(rows, 1)
    return f"{sign}{text}<{rows},{width},{across}>{denoted.type.upper()}", denoted


@lru_cache(maxsize=1 << 12)
def payload(operand: Operand, gen: float) -> OperandText:
    """An operand of a split send: no region, and sources have no type but are written as if."""
    text, denoted = _place(operand, gen)
    return text + (operand.type or UNTYPED).upper(), denoted


def _half(bits: int) -> str:
    return f"{struct.unpack('<e', bits.to_bytes(2, 'little'))[0]:g}"


def _single(bits: int) -> str:
    return f"{struct.unpack('<f', bits.to_bytes(4, 'little'))[0]:g}"


def _double(bits: int) -> str:
    return f"{struct.unpack('<d', bits.to_bytes(8, 'little'))[0]:g}"


def _packed(bits: int) -> str:
    """One lane of a vf immediate: sign, three bits of exponent (bias 3), four of fraction; 0 is zero."""
    sign, exponent, fraction = bits >> 7, bits >> 4 & 7, bits & 15
    value = 0.0 if not bits & 0x7F else (1 + fraction / 16) * 2.0 ** (exponent - 3)
    return f"{-value if sign else value:g}"


def signed(value: int, width: int) -> int:
    return value - (1 << width) if value >> (width - 1) else value


def immediate_64(operand: Operand) -> OperandText:
    """An immediate of 64 bits, whatever its type."""
    return f"0x{operand.immediate:x}{(operand.type or UNTYPED).upper()} /* {_double(operand.immediate)}F */", _typed(operand)


def immediate(operand: Operand, width: int = 32) -> OperandText:
    """An immediate of a source `width` bits wide. Types of 16 bits are shown once and encoded in both halves of 32; floats as bits,
    with the value as a comment."""
    value, kind = operand.immediate, operand.type
    if kind in ("uw", "w", "hf"):
        low = value & 0xFFFF
        both = low | low << 16 if width == 32 else low
        denoted = operand if both == value else replace(operand, immediate=both)
        if kind == "uw":
            return f"0x{low:04x}UW", denoted
        return (f"{signed(low, 16)}W", denoted) if kind == "w" else (f"0x{low:04x}HF /* {_half(low)}HF */", denoted)
    if kind == "d":
        return f"{signed(value & 0xFFFFFFFF, 32)}D", operand
    if kind == "f":
        return f"0x{value:x}F /* {_single(value)}F */", operand
    if kind == "df":
        return f"0x{value:016x}DF /* {_double(value & (1 << 64) - 1)}DF */", operand
    if kind in ("q", "uq"):
        return f"0x{value:016x}{kind.upper()}", operand
    if kind == "vf":
        lanes = ", ".join(f"{_packed(value >> 8 * lane & 255)}F" for lane in range(4))
        return f"0x{value:x}VF /* [{lanes}]VF */", operand
    if kind in ("v", "uv", "ud"):
        return f"0x{value:08x}{kind.upper()}", operand
    return f"0x{value:x}{(kind or UNTYPED).upper()}", _typed(operand)
