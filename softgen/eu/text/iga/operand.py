"""Operands in IGA's dialect: the text of each, beside what the text says of it.

Every function returns both, so that they cannot drift apart: the text, and the operand that reading the text would give. Where the two
operands differ, something of the first cannot be said, and the line gets an annotation. What IGA itself cannot write is said in words
added to its syntax: channels after a dot (`r2.0<4>.xyzw:f`) for align16, register numbers (`arf69`) that name nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from softgen.eu.isa import registers, types
from softgen.eu.isa.instruction import VXH, Operand
from softgen.eu.text.iga.names import Names, names_of

LIMIT = 1 << 16  # how many operands one memory holds before it starts again
CHANNELS = "xyzw"
NO_CHANNEL = "none"
IDENTITY = 0xE4  # the swizzle .xyzw
LOW_PAIR, HIGH_PAIR = 0x44, 0xEE  # .xyxy and .zwzw: one 64-bit element for all
NO_MACRO = 8  # the accumulator selector that selects none
HALF = 16  # bits

Said = tuple[str, Operand]  # a text, and the operand that it says


class Recall:
    """What an operand was said to be, by identity: the decoder gives the same operand for the same bits."""

    def __init__(self, say: Callable[[Operand], Said], width: int) -> None:
        self.say, self.width = say, width
        self.known: dict[int, tuple[Operand, str, Operand]] = {}  # the operand is kept, so that nothing else can get its number

    def __call__(self, one: Operand) -> tuple[Operand, str, Operand]:
        found = self.known.get(id(one))
        if found is None:
            if len(self.known) >= LIMIT:
                self.known.clear()
            text, normal = self.say(one)
            found = self.known[id(one)] = one, f"{text:<{self.width}} ", one if normal == one else normal
        return found


def changed(one: Operand, unsaid: dict[str, Any]) -> Operand:
    """The operand with some fields changed; itself where there are none."""
    return replace(one, **unsaid) if unsaid else one


def swizzle_text(swizzle: int) -> str:
    return "".join(CHANNELS[swizzle >> 2 * place & 3] for place in range(4))


def mask_text(mask: int) -> str:
    return "".join(name for place, name in enumerate(CHANNELS) if mask >> place & 1) or NO_CHANNEL


def type_text(one: Operand) -> str:
    return f":{one.type}" if one.type else ""


def region_text(one: Operand) -> str:
    if one.vertical == VXH:
        return f"<{one.width},{one.horizontal}>"
    return f"<{one.vertical};{one.width},{one.horizontal}>"


def row_text(one: Operand) -> str:
    """The region of an align16 source."""
    return "<VxH>" if one.vertical == VXH else f"<{one.vertical}>"


def special_text(one: Operand) -> str:
    return ".nomme" if one.special == NO_MACRO else f".mme{one.special}"


def signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (value >> bits - 1 << bits)


class Operands:
    """How one generation's operands are said."""

    def __init__(self, gen: float) -> None:
        self.gen = gen
        self.names: Names = names_of(gen)

    def unit(self, one: Operand, name: str) -> int:
        """Bytes that one sub-register of an operand stands for."""
        if name in self.names.sets["bytes"]:
            return 1
        return 4 if one.type in self.names.sets["dwords"] else types.size(one.type)

    def register(self, one: Operand, always: bool = True) -> tuple[str, dict[str, Any]]:
        """Where an operand is, and what of it the text does not say. `always`: with the sub-register, also where that is 0."""
        if one.indirect:
            return f"r[a0.{one.address_sub}{f',{one.offset}' if one.offset else ''}]", {}
        if one.file == "grf":
            base, text = "r", f"r{one.number}"
        elif found := registers.find(one.number, self.gen):
            base = found[0].name
            text = f"{base}{found[1]}" if found[0].count else base
        else:
            base, text = "", f"arf{one.number}"
        sub, rest = divmod(one.sub, self.unit(one, base))
        if sub or always and base not in self.names.sets["plain"]:
            text += f".{sub}"
        return text, {"sub": one.sub - rest} if rest else {}

    def real(self, one: Operand, kind: str = "") -> Operand:
        """A register operand as near to this one as can be said: bits also say files and types that no register has. `kind` is the type
        of a text without one."""
        file = "grf" if one.indirect else one.file if one.file in ("grf", "arf") else "arf"
        known = one.type if one.type in types.codes("register", self.gen) else kind
        return one if (file, known) == (one.file, one.type) else replace(one, file=file, type=known, immediate=0)

    def destination(self, one: Operand) -> Said:
        one = self.real(one)
        text, unsaid = self.register(one)
        return f"{text}<{one.horizontal}>{type_text(one)}", changed(one, unsaid)

    def destination_16(self, one: Operand) -> Said:
        one = self.real(one)
        text, unsaid = self.register(one)
        mask = one.write_mask or 0
        unsaid |= {} if one.write_mask == mask else {"write_mask": mask}
        return f"{text}<{one.horizontal}>.{mask_text(mask)}{type_text(one)}", changed(one, unsaid)

    def modifiers(self, one: Operand, bitwise: bool = False) -> str:
        if one.absolute:
            return "-(abs)" if one.negate else "(abs)"
        return ("~" if bitwise else "-") if one.negate else ""

    def source(self, one: Operand, bitwise: bool = False, wide: bool = False) -> Said:
        if one.file == "imm":
            return self.immediate(one, wide)
        one = self.real(one)
        text, unsaid = self.register(one)
        return f"{self.modifiers(one, bitwise)}{text}{region_text(one)}{type_text(one)}", changed(one, unsaid)

    def source_16(self, one: Operand, bitwise: bool = False, wide: bool = False) -> Said:
        if one.file == "imm":
            return self.immediate(one, wide)
        one = self.real(one)
        text, unsaid = self.register(one)
        swizzle = one.swizzle or 0
        where = f"{self.modifiers(one, bitwise)}{text}{row_text(one)}.{swizzle_text(swizzle)}"
        unsaid |= {} if one.swizzle == swizzle else {"swizzle": swizzle}
        return where + type_text(one), changed(one, unsaid)

    def immediate(self, one: Operand, wide: bool) -> Said:
        bits = 64 if wide else 32
        kind = types.type_of(one.type)
        normal, value = one, one.immediate
        if kind and kind.size == 2 and not wide:  # words stand there twice
            bits, value = HALF, value & 0xFFFF
            normal = replace(one, immediate=value * 0x10001)
        if kind and kind.kind == "signed" and not kind.vector:
            return f"{signed(value, bits)}{type_text(one)}", normal
        return f"0x{value:X}{type_text(one)}", normal

    # -- messages: whole registers --------------------------------------------------------------------------------------

    def payload(self, one: Operand, quiet: str, region: bool, whole: bool, stride: int) -> Said:
        """A register of a send. `quiet`: the types that are left out, `region`: the region is said where it is not the usual one, which has
        this stride, `whole`: sub-register and region are its own, and nothing else stands in their bits."""
        one = self.real(one if whole else replace(one, sub=0, swizzle=None), next(iter(self.names.sets["quiet_src"])))
        text, unsaid = self.register(one, always=False)
        normal = changed(one, unsaid)
        plain = normal
        if (one.vertical, one.width, one.horizontal) != (0, 1, stride):
            plain = replace(normal, vertical=0, width=1, horizontal=stride)
        kind = "" if one.type in self.names.sets[quiet] else type_text(one)
        if region and plain != normal:
            return f"{self.modifiers(one)}{text}{region_text(one)}{kind}", normal
        return f"{self.modifiers(one)}{text}{kind}", plain

    def bare(self, one: Operand, kind: str = "") -> Said:
        """A register of a split send. `kind`: the type of a text without one, where there are types."""
        one = self.real(one, kind) if kind else one
        text, unsaid = self.register(one, always=False)
        return text + type_text(one), changed(one, unsaid)

    # -- macros: an accumulator selector instead of sub-register and region --------------------------------------------

    def macro(self, one: Operand, implied: dict[str, Any]) -> Said:
        """`implied`: the region that the text leaves out."""
        if one.file == "imm":
            return self.immediate(one, False)
        one = self.real(one)
        text, unsaid = self.register(replace(one, sub=0) if one.sub else one, always=False)
        return f"{self.modifiers(one)}{text}{special_text(one)}{type_text(one)}", replace(one, **unsaid, **implied)

    # -- three sources, align16: IGA says them as align1 where it can ---------------------------------------------------

    def three_destination(self, one: Operand, exec_size: int) -> tuple[str, Operand, int]:
        """Also the execution size to show: one channel of a row is a scalar to IGA."""
        mask, size = one.write_mask, types.size(one.type)
        if mask is None:
            text, normal = self.macro(one, {"sub": 0})
            return text, normal, exec_size
        text, unsaid = self.register(one)
        if mask == 0xF and exec_size != 1:
            return f"{text}<1>{type_text(one)}", changed(one, unsaid), exec_size
        scalar = self._scalar(mask, size, exec_size)
        if scalar is not None and not one.sub % (4 * size if size < 8 else 16):
            return f"r{one.number}.{one.sub // size + scalar}<1>{type_text(one)}", one, 1
        return f"{text}.{mask_text(mask)}{type_text(one)}", changed(one, unsaid), exec_size

    def _scalar(self, mask: int, size: int, exec_size: int) -> int | None:
        """The element that a mask leaves of a row, where IGA says it as execution size 1."""
        if size == 8:
            return {0x3: 0, 0xC: 1}.get(mask) if exec_size == 2 else None
        return {0x1: 0, 0x2: 1, 0x4: 2, 0x8: 3}.get(mask) if exec_size == 4 else None

    def three_source(self, one: Operand, last: bool) -> Said:
        if one.swizzle is None:
            return self.macro(one, {"sub": 0, "replicate": False})
        text, unsaid = self.register(one)
        modifiers, normal = self.modifiers(one), changed(one, unsaid)
        scalar, packed = ("<0>", "<1>") if last else ("<0;0>", "<2;1>")
        if one.swizzle == IDENTITY and not one.replicate:
            return f"{modifiers}{text}{packed}{type_text(one)}", normal
        size = types.size(one.type)
        if one.swizzle == IDENTITY and size < 8:
            return f"{modifiers}{text}{scalar}{type_text(one)}", normal
        if one.swizzle in (LOW_PAIR, HIGH_PAIR) and size == 8 and not one.replicate and not one.sub % 16:
            return f"{modifiers}r{one.number}.{one.sub // size + (one.swizzle == HIGH_PAIR)}{scalar}{type_text(one)}", one
        return f"{modifiers}{text}.{swizzle_text(one.swizzle)}{'.r' if one.replicate else ''}{type_text(one)}", normal

    # -- three sources, align1 ------------------------------------------------------------------------------------------

    def three_align1(self, one: Operand, place: int) -> Said:
        """`place`: 0 is the destination, then the sources."""
        if one.special is not None:
            regions = ({"horizontal": 1}, {"vertical": 4, "horizontal": 1}, {"vertical": 4, "horizontal": 1}, {"horizontal": 1})
            return self.macro(one, regions[place])
        if one.file == "imm":
            normal = replace(one, negate=False, absolute=False)
            if one.type == "w":
                return f"{signed(one.immediate, HALF)}:w", normal
            return f"0x{one.immediate:X}{type_text(one)}", normal
        text, unsaid = self.register(one)
        region = f"<{one.vertical};{one.horizontal}>" if place in (1, 2) else f"<{one.horizontal}>"
        return f"{self.modifiers(one)}{text}{region}{type_text(one)}", changed(one, unsaid)
