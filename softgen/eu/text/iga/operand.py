"""Text of operands in IGA's dialect.

Every function returns the text and the operand that the text denotes. Where that differs from the given operand, the line needs an
annotation. Extensions of IGA's syntax: channels after a dot (`r2.0<4>.xyzw:f`) for align16, register numbers (`arf69`) that are reserved.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from softgen.eu.isa import registers, types
from softgen.eu.isa.instruction import VXH, Operand
from softgen.eu.text.iga.names import IgaWords, iga_words

LIMIT = 1 << 16  # entries of a cache; a full cache is cleared
CHANNELS = "xyzw"
NO_CHANNEL = "none"
IDENTITY = 0xE4  # the swizzle .xyzw
LOW_PAIR, HIGH_PAIR = 0x44, 0xEE  # .xyxy and .zwzw: one 64-bit element replicated
NO_MACRO = 8  # the accumulator selector that selects none
HALF = 16  # bits

OperandText = tuple[str, Operand]  # a text, and the operand that it denotes


class OperandTextCache:
    """Cache of operand texts by object identity: the decoder returns the same operand for the same bits."""

    def __init__(self, say: Callable[[Operand], OperandText], width: int) -> None:
        self.say, self.width = say, width
        self.known: dict[int, tuple[Operand, str, Operand]] = {}  # the reference keeps the id from being reused

    def __call__(self, operand: Operand) -> tuple[Operand, str, Operand]:
        found = self.known.get(id(operand))
        if found is None:
            if len(self.known) >= LIMIT:
                self.known.clear()
            text, normal = self.say(operand)
            found = self.known[id(operand)] = operand, f"{text:<{self.width}} ", operand if normal == operand else normal
        return found


def with_changes(operand: Operand, omitted: dict[str, Any]) -> Operand:
    """The operand with fields replaced; the same object where there are none."""
    return replace(operand, **omitted) if omitted else operand


def swizzle_text(swizzle: int) -> str:
    return "".join(CHANNELS[swizzle >> 2 * place & 3] for place in range(4))


def mask_text(mask: int) -> str:
    return "".join(name for place, name in enumerate(CHANNELS) if mask >> place & 1) or NO_CHANNEL


def type_text(operand: Operand) -> str:
    return f":{operand.type}" if operand.type else ""


def region_text(operand: Operand) -> str:
    if operand.vertical == VXH:
        return f"<{operand.width},{operand.horizontal}>"
    return f"<{operand.vertical};{operand.width},{operand.horizontal}>"


def row_text(operand: Operand) -> str:
    """The region of an align16 source."""
    return "<VxH>" if operand.vertical == VXH else f"<{operand.vertical}>"


def special_text(operand: Operand) -> str:
    return ".nomme" if operand.special == NO_MACRO else f".mme{operand.special}"


def signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (value >> bits - 1 << bits)


class IgaOperandText:
    """Formats operands of one generation."""

    def __init__(self, gen: float) -> None:
        self.gen = gen
        self.names: IgaWords = iga_words(gen)

    def unit(self, operand: Operand, name: str) -> int:
        """The unit of an operand's sub-register number, in bytes."""
        if name in self.names.sets["bytes"]:
            return 1
        return 4 if operand.type in self.names.sets["dwords"] else types.size(operand.type)

    def register(self, operand: Operand, always: bool = True) -> tuple[str, dict[str, Any]]:
        """The text of a register, and the fields that it omits. `always`: with the sub-register even where it is 0."""
        if operand.indirect:
            return f"r[a0.{operand.address_sub}{f',{operand.offset}' if operand.offset else ''}]", {}
        if operand.file == "grf":
            base, text = "r", f"r{operand.number}"
        elif found := registers.find(operand.number, self.gen):
            base = found[0].name
            text = f"{base}{found[1]}" if found[0].count else base
        else:
            base, text = "", f"arf{operand.number}"
        sub, rest = divmod(operand.sub, self.unit(operand, base))
        if sub or always and base not in self.names.sets["plain"]:
            text += f".{sub}"
        return text, {"sub": operand.sub - rest} if rest else {}

    def real(self, operand: Operand, kind: str = "") -> Operand:
        """The nearest register operand that text can express: encodings include files and types that no register has. `kind` is the type of
        a text without one."""
        file = "grf" if operand.indirect else operand.file if operand.file in ("grf", "arf") else "arf"
        known = operand.type if operand.type in types.codes("register", self.gen) else kind
        return operand if (file, known) == (operand.file, operand.type) else replace(operand, file=file, type=known, immediate=0)

    def destination(self, operand: Operand) -> OperandText:
        operand = self.real(operand)
        text, omitted = self.register(operand)
        return f"{text}<{operand.horizontal}>{type_text(operand)}", with_changes(operand, omitted)

    def destination_16(self, operand: Operand) -> OperandText:
        operand = self.real(operand)
        text, omitted = self.register(operand)
        mask = operand.write_mask or 0
        omitted |= {} if operand.write_mask == mask else {"write_mask": mask}
        return f"{text}<{operand.horizontal}>.{mask_text(mask)}{type_text(operand)}", with_changes(operand, omitted)

    def modifiers(self, operand: Operand, bitwise: bool = False) -> str:
        if operand.absolute:
            return "-(abs)" if operand.negate else "(abs)"
        return ("~" if bitwise else "-") if operand.negate else ""

    def source(self, operand: Operand, bitwise: bool = False, wide: bool = False) -> OperandText:
        if operand.file == "imm":
            return self.immediate(operand, wide)
        operand = self.real(operand)
        text, omitted = self.register(operand)
        return f"{self.modifiers(operand, bitwise)}{text}{region_text(operand)}{type_text(operand)}", with_changes(operand, omitted)

    def source_16(self, operand: Operand, bitwise: bool = False, wide: bool = False) -> OperandText:
        if operand.file == "imm":
            return self.immediate(operand, wide)
        operand = self.real(operand)
        text, omitted = self.register(operand)
        swizzle = operand.swizzle or 0
        where = f"{self.modifiers(operand, bitwise)}{text}{row_text(operand)}.{swizzle_text(swizzle)}"
        omitted |= {} if operand.swizzle == swizzle else {"swizzle": swizzle}
        return where + type_text(operand), with_changes(operand, omitted)

    def immediate(self, operand: Operand, wide: bool) -> OperandText:
        bits = 64 if wide else 32
        kind = types.type_of(operand.type)
        normal, value = operand, operand.immediate
        if kind and kind.size == 2 and not wide:  # encoded in both halves
            bits, value = HALF, value & 0xFFFF
            normal = replace(operand, immediate=value * 0x10001)
        if kind and kind.kind == "signed" and not kind.vector:
            return f"{signed(value, bits)}{type_text(operand)}", normal
        return f"0x{value:X}{type_text(operand)}", normal

    # -- messages: whole registers --------------------------------------------------------------------------------------

    def payload(self, operand: Operand, quiet: str, region: bool, whole: bool, stride: int) -> OperandText:
        """A register of a send. `quiet`: the set of types that are omitted; `region`: show the region where it differs from the default,
        which has this stride; `whole`: no other field shares the bits of sub-register and region."""
        operand = self.real(operand if whole else replace(operand, sub=0, swizzle=None), next(iter(self.names.sets["quiet_src"])))
        text, omitted = self.register(operand, always=False)
        normal = with_changes(operand, omitted)
        plain = replace(normal, vertical=0, width=1, horizontal=stride)
        kind = "" if operand.type in self.names.sets[quiet] else type_text(operand)
        if region and plain != normal:
            return f"{self.modifiers(operand)}{text}{region_text(operand)}{kind}", normal
        return f"{self.modifiers(operand)}{text}{kind}", plain

    def bare(self, operand: Operand, kind: str = "") -> OperandText:
        """A register of a split send. `kind`: the type of a text without one."""
        operand = self.real(operand, kind) if kind else operand
        text, omitted = self.register(operand, always=False)
        return text + type_text(operand), with_changes(operand, omitted)

    # -- macros: an accumulator selector instead of sub-register and region --------------------------------------------

    def macro(self, operand: Operand, implied: dict[str, Any]) -> OperandText:
        """An operand of a math macro. `implied`: the region that the text omits."""
        if operand.file == "imm":
            return self.immediate(operand, False)
        operand = self.real(operand)
        text, omitted = self.register(replace(operand, sub=0) if operand.sub else operand, always=False)
        return f"{self.modifiers(operand)}{text}{special_text(operand)}{type_text(operand)}", replace(operand, **omitted, **implied)

    # -- three sources, align16: IGA shows them as align1 where it can --------------------------------------------------

    def three_destination(self, operand: Operand, exec_size: int) -> tuple[str, Operand, int]:
        """The destination, and the execution size to show: IGA shows one channel of a row as a scalar."""
        mask, size = operand.write_mask, types.size(operand.type)
        if mask is None:
            text, normal = self.macro(operand, {"sub": 0})
            return text, normal, exec_size
        text, omitted = self.register(operand)
        if mask == 0xF and exec_size != 1:
            return f"{text}<1>{type_text(operand)}", with_changes(operand, omitted), exec_size
        scalar = self._scalar(mask, size, exec_size)
        if scalar is not None and not operand.sub % (4 * size if size < 8 else 16):
            return f"r{operand.number}.{operand.sub // size + scalar}<1>{type_text(operand)}", operand, 1
        return f"{text}.{mask_text(mask)}{type_text(operand)}", with_changes(operand, omitted), exec_size

    def _scalar(self, mask: int, size: int, exec_size: int) -> int | None:
        """The element that a mask selects, where IGA shows it as execution size 1."""
        if size == 8:
            return {0x3: 0, 0xC: 1}.get(mask) if exec_size == 2 else None
        return {0x1: 0, 0x2: 1, 0x4: 2, 0x8: 3}.get(mask) if exec_size == 4 else None

    def three_source(self, operand: Operand, last: bool) -> OperandText:
        if operand.swizzle is None:
            return self.macro(operand, {"sub": 0, "replicate": False})
        text, omitted = self.register(operand)
        modifiers, normal = self.modifiers(operand), with_changes(operand, omitted)
        scalar, packed = ("<0>", "<1>") if last else ("<0;0>", "<2;1>")
        if operand.swizzle == IDENTITY and not operand.replicate:
            return f"{modifiers}{text}{packed}{type_text(operand)}", normal
        size = types.size(operand.type)
        if operand.swizzle == IDENTITY and size < 8:
            return f"{modifiers}{text}{scalar}{type_text(operand)}", normal
        if operand.swizzle in (LOW_PAIR, HIGH_PAIR) and size == 8 and not operand.replicate and not operand.sub % 16:
            return (
                f"{modifiers}r{operand.number}.{operand.sub // size + (operand.swizzle == HIGH_PAIR)}{scalar}{type_text(operand)}",
                operand,
            )
        return f"{modifiers}{text}.{swizzle_text(operand.swizzle)}{'.r' if operand.replicate else ''}{type_text(operand)}", normal

    # -- three sources, align1 ------------------------------------------------------------------------------------------

    def three_align1(self, operand: Operand, place: int) -> OperandText:
        """An operand; `place` is 0 for the destination, then the source's number."""
        if operand.special is not None:
            regions = ({"horizontal": 1}, {"vertical": 4, "horizontal": 1}, {"vertical": 4, "horizontal": 1}, {"horizontal": 1})
            return self.macro(operand, regions[place])
        if operand.file == "imm":
            normal = replace(operand, negate=False, absolute=False)
            if operand.type == "w":
                return f"{signed(operand.immediate, HALF)}:w", normal
            return f"0x{operand.immediate:X}{type_text(operand)}", normal
        text, omitted = self.register(operand)
        region = f"<{operand.vertical};{operand.horizontal}>" if place in (1, 2) else f"<{operand.horizontal}>"
        return f"{self.modifiers(operand)}{text}{region}{type_text(operand)}", with_changes(operand, omitted)
