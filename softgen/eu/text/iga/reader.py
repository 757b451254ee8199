"""Parser of operands in IGA's dialect: registers, regions, immediates, descriptors.

A piece is read as it stands (`Piece`): what its numbers mean depends on the instruction around it.

Reads  EU_SOURCE_0
"""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass
from typing import Any

from softgen.bits.units import GRF_BYTES
from softgen.eu.encoding.fields import instruction_page
from softgen.eu.isa import registers, types
from softgen.eu.isa.instruction import VXH, Operand
from softgen.eu.text.iga.names import IgaWords, iga_words
from softgen.eu.text.iga.operand import CHANNELS, NO_CHANNEL, NO_MACRO, IgaOperandText
from softgen.eu.text.lexer import Scanner

_BLANK = re.compile(r"(?:[ \t\r\f\v]+|//[^\n]*|/\*(?!\s*bits:)(?:[^*]|\*(?!/))*+\*/)*+")
_MODIFIERS = re.compile(r"([-~]?)[ \t]*(\(abs\))?")
_INDIRECT = re.compile(r"r\[[ \t]*a0\.(\d{1,4})[ \t]*(?:,[ \t]*(-?\d{1,6})[ \t]*)?\]")
_REGISTER = re.compile(r"([a-z]+)(\d{0,4})\b(?!\w)")
_SUB = re.compile(r"\.(\d{1,4})")
_SPECIAL = re.compile(r"\.(?:(nomme)|mme(\d{1,2}))\b")
_CHANNELS = re.compile(rf"\.({NO_CHANNEL}|[{CHANNELS}]{{1,4}})(\.r)?\b")
_REGION = re.compile(r"<[ \t]*(?:(VxH)|(\d{1,3})[ \t]*(?:;[ \t]*(\d{1,3})[ \t]*(?:,[ \t]*(\d{1,3}))?|,[ \t]*(\d{1,3}))?)[ \t]*>")
_TYPE = re.compile(r":([a-z]+)\b")
_NUMBER = re.compile(r"(-?)(?:0x([0-9a-fA-F]{1,16})|0b([01]{1,64})|(inf\b)|([qs])nan\((?:0x([0-9a-fA-F]{1,16}))\)|(nan\b)"
                     r"|(\d{1,40}\.\d{0,40}(?:[eE][-+]?\d{1,4})?|\d{1,40}[eE][-+]?\d{1,4})|(\d{1,20}))(?![\w.])")  # fmt: skip
_DESCRIPTOR = re.compile(r"(?:0x([0-9a-fA-F]{1,8})|(\d{1,10}))(?![\w.])")
_ADDRESS = re.compile(r"(?:0x([0-9a-fA-F]{1,8}):)?a0\.(\d)\b")

FLOATS = {"hf": ("<e", 10, 5), "f": ("<f", 23, 8), "df": ("<d", 52, 11)}  # struct format, bits of fraction and of exponent
A0 = 0x10  # register number
OFFSETS = range(-512, 512)  # of addresses
REGIONS = {
    1: ("vertical",),
    2: ("vertical", "horizontal"),
    3: ("vertical", "width", "horizontal"),
}  # number of values in a region -> their meaning


@dataclass(slots=True)
class ParsedRegister:
    """A register operand as parsed."""

    at: int
    file: str = "grf"
    name: str = "r"
    number: int = 0
    sub: int | None = None
    indirect: bool = False
    address_sub: int = 0
    offset: int = 0
    region: tuple[int, ...] | None = None
    channels: str | None = None
    replicate: bool = False
    special: int | None = None
    type: str | None = None
    negate: bool = False
    absolute: bool = False


class IgaReader(Scanner):
    """Scanner of IGA's dialect for one generation. Blanks do not include line ends."""

    __slots__ = ("gen", "names", "operands")

    def __init__(self, text: str, gen: float, name: str) -> None:
        super().__init__(text, name)
        self.gen = gen
        self.names: IgaWords = iga_words(gen)
        self.operands = IgaOperandText(gen)

    def skip(self) -> int:
        self.at = _BLANK.match(self.text, self.at).end()  # type: ignore[union-attr]  # it also matches nothing
        return self.at

    # -- registers --------------------------------------------------------------------------------------------------

    def is_register(self) -> bool:
        """Whether a register comes next."""
        before = self.at
        self.take(_MODIFIERS)
        found = self.peek(_INDIRECT) or self._name() is not None
        self.at = before
        return found

    def _name(self) -> tuple[str, str, int] | None:
        """File, name and number of the next register; None where it is not a register of the generation."""
        found = _REGISTER.match(self.text, self.skip())
        if found is None:
            return None
        name, digits = found.groups()
        if name == "r" or name == "arf":
            known = bool(digits) and int(digits) < 256
            file, number = ("grf", int(digits or 0)) if name == "r" else ("arf", int(digits or 0))
        else:
            register = registers.register(name, self.gen)
            known = register is not None and int(digits or 0) < max(register.count, 1)  # IGA reads ce0 for ce
            file, number = "arf", (register.code if register else 0) + int(digits or 0)
        if not known:
            return None
        self.at = found.end()
        return file, name, number

    def register(self, what: str = "a register") -> ParsedRegister:
        """Parse a register operand with modifiers, region, channels and type."""
        piece = ParsedRegister(self.skip())
        modifiers = self.expect(_MODIFIERS, what)
        piece.negate, piece.absolute = bool(modifiers[1]), bool(modifiers[2])
        if indirect := self.take(_INDIRECT):
            piece.indirect, piece.address_sub, piece.offset = True, int(indirect[1]), int(indirect[2] or 0)
            if piece.offset not in OFFSETS:
                raise self.wrong(f"an offset of {OFFSETS[0]} to {OFFSETS[-1]}", indirect.start(2))
        else:
            found = self._name()
            if found is None:
                raise self.wrong(what)
            piece.file, piece.name, piece.number = found
            if sub := self.glued(_SUB):
                piece.sub = int(sub[1])
        if special := self.glued(_SPECIAL):
            piece.special = NO_MACRO if special[1] else int(special[2])
        if region := self.glued(_REGION):
            piece.region = _region(region)
        if channels := self.glued(_CHANNELS):
            piece.channels, piece.replicate = channels[1], bool(channels[2])
        piece.type = self.type_name()
        return piece

    def type_name(self) -> str | None:
        found = self.glued(_TYPE)
        if found is None:
            return None
        if not any(found[1] in types.codes(position, self.gen) for position in types.POSITIONS):
            raise self.wrong(f"a type of gen {self.gen:g}", found.start(1))
        return found[1]

    def operand(self, piece: ParsedRegister, kind: str | None = None, special: bool = False, **values: Any) -> Operand:
        """The operand of a parsed register without its region, with its own type or `kind`. `special`: it has an accumulator selector."""
        if special != (piece.special is not None):
            what = "an accumulator, as .mme0 or .nomme" if special else "a register without an accumulator"
            raise self.wrong(what, self.at if special else self._mark_position(piece, "."))
        kind = piece.type if piece.type is not None else kind or ""
        if piece.indirect:
            values |= {"indirect": True, "address_sub": piece.address_sub, "offset": piece.offset}
        else:
            unit = self.operands.unit(Operand(piece.file, kind), "" if piece.name == "arf" else piece.name)
            if (piece.sub or 0) * unit >= GRF_BYTES:
                raise self.wrong(f"a sub-register up to {(GRF_BYTES - 1) // unit}", self._mark_position(piece, ".") + 1)
            values = {"number": piece.number, "sub": (piece.sub or 0) * unit} | values
        return Operand(piece.file, kind, **{"negate": piece.negate, "absolute": piece.absolute, "special": piece.special} | values)

    def region_of(self, piece: ParsedRegister, count: int, what: str) -> tuple[int, ...]:
        """The region of a parsed register, which must have `count` values."""
        if piece.region is None or len(piece.region) != count:
            raise self.wrong(what, self._mark_position(piece, "<"))
        self._strides(piece)
        return piece.region

    def _strides(self, piece: ParsedRegister) -> None:
        region = piece.region or ()
        for name, value in zip(REGIONS[len(region)], region, strict=True):
            known = instruction_page("EU_SOURCE_0", self.gen).codes[name]
            if value not in known:
                numbers = ", ".join(str(value) for value in known if value != VXH)
                what = "width" if name == "width" else "stride"
                raise self.wrong(f"a region with a {what} of {numbers}", self._mark_position(piece, "<"))

    def _mark_position(self, piece: ParsedRegister, mark: str) -> int:
        """The position of a mark in a register's text, or of its end."""
        place = self.text.find(mark, piece.at, self.at)
        return place if place >= 0 else self.at

    def mask(self, piece: ParsedRegister) -> int | None:
        """The write mask of a destination."""
        if piece.channels is None:
            return None
        return 0 if piece.channels == NO_CHANNEL else sum({1 << CHANNELS.index(channel) for channel in piece.channels})

    def swizzle(self, piece: ParsedRegister) -> int | None:
        if piece.channels is None:
            return None
        if len(piece.channels) != 4 or piece.channels == NO_CHANNEL:
            raise self.wrong("four channels", self._mark_position(piece, f".{piece.channels}"))
        return sum(CHANNELS.index(channel) << 2 * place for place, channel in enumerate(piece.channels))

    # -- numbers ----------------------------------------------------------------------------------------------------

    def is_number(self) -> bool:
        return self.peek(_NUMBER)

    def immediate(self, wide: bool, half: bool) -> Operand:
        """Parse an immediate. `wide`: it has 64 bits; `half`: it has 16 and is not replicated."""
        at = self.skip()
        found = self.expect(_NUMBER, "a number")
        kind = self.type_name()
        known = types.type_of(kind or "")
        word = known is not None and known.size == 2 and not wide
        bits = 16 if half or word else 64 if wide else 32
        value = self._value(found, kind, at)
        if not -1 << bits - 1 <= value < 1 << bits:
            raise self.wrong(f"a number of {bits} bits", at)
        value &= (1 << bits) - 1
        return Operand("imm", kind or "", immediate=value * 0x10001 if word and not half else value)

    def _value(self, match: re.Match[str], kind: str | None, at: int) -> int:
        """The bits of a number. An integer denotes the bits also where the type is a float, as in IGA."""
        sign, hexadecimal, binary, infinity, quiet, payload, nan, decimal, whole = match.groups()
        for digits, base in ((hexadecimal, 16), (binary, 2), (whole, 10)):
            if digits:
                return -int(digits, base) if sign else int(digits, base)
        if kind not in FLOATS:
            raise self.wrong("a whole number", at)
        pack, fraction, exponent = FLOATS[kind]
        if decimal:
            try:
                packed = struct.pack(pack, float(sign + decimal))
            except OverflowError:
                raise self.wrong(f"a number that {kind} can hold", at) from None
            if math.isinf(float(decimal)):
                raise self.wrong(f"a number that {kind} can hold", at)
            return int.from_bytes(packed, "little")
        top = ((1 << exponent) - 1 << fraction) | (1 << fraction + exponent if sign else 0)
        if infinity:
            return top
        quieted = 1 << fraction - 1 if quiet == "q" or nan else 0
        return top | quieted | int(payload or "0", 16) & (1 << fraction - 1) - 1

    def descriptor(self) -> int | Operand:
        """Parse a message descriptor: a number, or the register that holds it."""
        if found := self.take(_DESCRIPTOR):
            return int(found[1], 16) if found[1] else int(found[2])
        return self.operand(self.register("a message descriptor"), "ud")

    def extended(self) -> tuple[int, Operand | None]:
        """Parse an extended descriptor: a number, or the shared function id and the register that holds the rest."""
        if found := self.take(_ADDRESS):
            return int(found[1] or "0", 16), Operand("arf", "ud", A0, int(found[2]) * 4)
        number = self.expect(_DESCRIPTOR, "an extended message descriptor")
        return int(number[1], 16) if number[1] else int(number[2]), None


def _region(match: re.Match[str]) -> tuple[int, ...]:
    """Region values: <v;w,h> has three, <w,h> VXH and two, <v;h> two, <h> one."""
    row, first, second, third, beside = match.groups()
    if row:
        return (VXH,)
    if beside:
        return VXH, int(first), int(beside)
    return tuple(int(digits) for digits in (first, second, third) if digits is not None)
