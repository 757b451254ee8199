"""Operands of Mesa's dialect, read.

The text of an operand means different bits in align1 and align16, and the access mode stands behind the operands. So reading gives an
`Unplaced` first: what stands there, without what it means. `destination`, `source` and the others make operands of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from softgen.errors import DecodeError
from softgen.eu.isa import registers, types
from softgen.eu.isa.instruction import VXH, Operand
from softgen.eu.text.lexer import Scanner
from softgen.eu.text.mesa.names import mesa_words
from softgen.eu.text.mesa.operand import ALONE, CHANNELS, FULL, WHOLE

NUMBER = re.compile(r"-?(?:0x[0-9a-f]{1,40}|[0-9]{1,40})(?![0-9a-z])")
PLAIN = re.compile(r"[0-9]{1,9}(?![0-9a-z_])")
TYPE = re.compile(r":?([A-Z][A-Z0-9]*)\b")
SIGN = re.compile(r"([-~])")
ABS = re.compile(r"\(abs\)")
DIRECT = re.compile(r"[grm](?=[0-9\[])")
DIGITS = re.compile(r"[0-9]{1,4}")
ARCHITECTURE = re.compile(r"ARF([0-9]{1,3})(?![0-9])")
SUB = re.compile(r"\.([0-9]{1,3})(b?)")
MACRO = re.compile(r"\.mme([0-9]{1,2})")
DOT = re.compile(r"\.")
CHANNEL = re.compile(r"[xyzw]*")
OPEN, CLOSE = re.compile(r"<"), re.compile(r">")
SQUARE, UNSQUARE, COMMA = re.compile(r"\["), re.compile(r"\]"), re.compile(r",")
SEPARATOR = re.compile(r"[,;]")
ROWS = re.compile(r"VxH")
ADDRESS = re.compile(r"a0(?:\.([0-9]{1,2}))?(?![0-9a-z_])")
STRIDES = (0, 1, 2, 4, 8, 16, 32)
WIDTHS = (1, 2, 4, 8, 16)
HORIZONTALS = (0, 1, 2, 4)
IMMEDIATE_BITS = {"uq": 64, "q": 64, "df": 64, "uw": 16, "w": 16, "hf": 16}
LETTERS = {name.upper(): name for name in ("ud", "d", "uw", "w", "ub", "b", "uq", "q", "hf", "f", "df", "nf", "uv", "v", "vf")}


@dataclass(frozen=True, slots=True)
class ParsedOperand:
    """An operand as written."""

    at: int  # where it stands in the text
    file: str
    type: str
    number: int = 0
    sub: int = 0  # in elements, or in bytes
    bytes: bool = False
    special: int | None = None
    indirect: bool = False
    address_sub: int = 0
    offset: int = 0
    region: tuple[int, ...] | None = None  # vertical; vertical width horizontal; or width horizontal
    channels: str | None = None
    negate: bool = False
    absolute: bool = False
    immediate: int = 0


@cache
def _named(gen: float) -> tuple[re.Pattern[str], dict[str, int]]:
    """Architecture registers by the words the dialect and the register table have for them."""
    codes = {name: kind * 16 for kind, name in mesa_words(gen).write["register"].items()}
    for code in registers.NUMBERS:
        found = registers.find(code, gen)
        if found and not found[1]:
            codes.setdefault(found[0].name, found[0].code)
    names = "|".join(sorted(codes, key=len, reverse=True))
    return re.compile(rf"({names})([0-9]{{0,2}})(?![0-9a-z_])"), codes


def read(scan: Scanner, gen: float, what: str) -> ParsedOperand:
    """A register, or a number with a type."""
    at = scan.skip()
    if scan.peek(NUMBER) or scan.peek(SQUARE):
        return _immediate(scan, at)
    sign, absolute = scan.take(SIGN), scan.take(ABS)
    scan.skip()
    file, number, address = _register(scan, gen, what if sign is None and absolute is None else "a register")
    macro = scan.glued(MACRO)
    sub = scan.glued(SUB) if address is None and macro is None else None
    region = _region(scan) if scan.take(OPEN) else None
    channels = scan.glued(CHANNEL) if scan.glued(DOT) else None
    kind = _type(scan)
    return ParsedOperand(
        at, file, kind, number,
        sub=int(sub[1]) if sub else 0,
        bytes=sub is not None and sub[2] == "b",
        special=int(macro[1]) if macro else None,
        indirect=address is not None,
        address_sub=address[0] if address else 0,
        offset=address[1] if address else 0,
        region=region,
        channels=channels[0] if channels else None,
        negate=sign is not None,
        absolute=absolute is not None,
    )  # fmt: skip


def _register(scan: Scanner, gen: float, what: str) -> tuple[str, int, tuple[int, int] | None]:
    """File, number, and for indirect registers address sub-register and offset."""
    at = scan.at
    if direct := scan.glued(DIRECT):
        file = "mrf" if direct[0] == "m" else "grf"
        if scan.glued(SQUARE):
            return file, 0, _addressed(scan)
        number = int(scan.expect_glued(DIGITS, "a register number")[0])
        if number not in registers.NUMBERS:
            raise scan.wrong(f"a register number up to {registers.NUMBERS[-1]}", at)
        return file, number, None
    pattern, codes = _named(gen)
    if named := scan.glued(pattern):
        index, row = int(named[2] or 0), registers.register(named[1], gen)
        alone = named[1] in ALONE or (row is not None and not row.count)
        if index > 15 or not (named[2] or alone):
            raise scan.wrong(what, at)
        return "arf", codes[named[1]] + index, None
    if (found := scan.glued(ARCHITECTURE)) and int(found[1]) in registers.NUMBERS:
        return "arf", int(found[1]), None
    raise scan.wrong(what, at)


def _addressed(scan: Scanner) -> tuple[int, int]:
    """What stands in brackets: a0.2 16."""
    sub = scan.expect(ADDRESS, "a0")
    offset = scan.take(NUMBER)
    scan.expect(UNSQUARE, "']'" if offset else "an offset or ']'")
    return int(sub[1] or 0), int(offset[0], 0) if offset else 0


def _region(scan: Scanner) -> tuple[int, ...]:
    """What stands in angle brackets."""
    values: list[int] = []
    while True:
        if not values and scan.take(ROWS):
            values.append(VXH)
        else:
            at = scan.skip()
            values.append(int(scan.expect(PLAIN, "a stride" if not values else "a width or stride")[0]))
            if values[-1] not in STRIDES:
                raise scan.wrong(f"one of {', '.join(map(str, STRIDES))}", at)
        if scan.take(CLOSE):
            return tuple(values)
        if len(values) == 3:
            raise scan.wrong("'>'")
        scan.expect(SEPARATOR, "',' or '>'")


def _type(scan: Scanner) -> str:
    at = scan.at
    found = scan.glued(TYPE)
    if found is None or found[1] not in LETTERS:
        raise scan.wrong("a type", at)
    return LETTERS[found[1]]


def number(scan: Scanner, what: str) -> int:
    return _integer(scan.expect(NUMBER, what)[0])


def _integer(text: str) -> int:
    return int(text, 16 if "0x" in text else 10)


def _immediate(scan: Scanner, at: int) -> ParsedOperand:
    if scan.take(SQUARE):
        lanes = []
        for place in range(4):
            lanes.append(number(scan, "a number") & 0xFF)
            scan.expect(UNSQUARE if place == 3 else COMMA, "']'" if place == 3 else "','")
        return ParsedOperand(at, "imm", _type(scan), immediate=int.from_bytes(lanes, "little"))
    value = number(scan, "a number")
    return ParsedOperand(at, "imm", _type(scan), immediate=value)


class OperandBuilder:
    """Makes operands of what was read, once the access mode is known."""

    def __init__(self, scan: Scanner, gen: float, align16: bool) -> None:
        self.scan, self.gen, self.align16 = scan, gen, align16

    def destination(self, raw: ParsedOperand, stride: bool = True) -> Operand:
        """`stride`: the form has one."""
        if raw.file == "imm" or raw.negate or raw.absolute:
            raise self.scan.wrong("a destination", raw.at)
        horizontal = 1 if raw.region is None else raw.region[0]
        if len(raw.region or (0,)) != 1 or horizontal not in HORIZONTALS or (not stride and horizontal != 1):
            raise self.scan.wrong("a destination with one stride: 0, 1, 2 or 4" if stride else "a destination with a stride of 1", raw.at)
        mask = self._mask(raw)
        return Operand(**self._place(raw), horizontal=horizontal if stride else 0, write_mask=mask if raw.special is None else None)

    def _mask(self, raw: ParsedOperand) -> int | None:
        if not self.align16:
            if raw.channels is not None:
                raise self.scan.wrong("no channels in align1", raw.at)
            return None
        if raw.channels is None:
            return FULL
        if list(raw.channels) != sorted(set(raw.channels), key=CHANNELS.index):
            raise self.scan.wrong("a write mask out of xyzw, in this order", raw.at)
        return sum(1 << CHANNELS.index(channel) for channel in raw.channels)

    def source(self, raw: ParsedOperand, wide: bool = False) -> Operand:
        if raw.file == "imm":
            return self.immediate(raw, 64 if wide else 0)
        vertical, width, horizontal = self._strides(raw)
        place = self._place(raw)
        if not self.align16:
            if raw.channels is not None:
                raise self.scan.wrong("no channels in align1", raw.at)
            return Operand(**place, vertical=vertical, width=width, horizontal=horizontal)
        return Operand(**place, vertical=vertical, swizzle=self.swizzle(raw, WHOLE) if raw.special is None else None)

    def swizzle(self, raw: ParsedOperand, default: int) -> int:
        if raw.channels is None:
            return default
        if len(raw.channels) not in (1, 4):
            raise self.scan.wrong("one channel or four", raw.at)
        chosen = raw.channels * 4 if len(raw.channels) == 1 else raw.channels
        return sum(CHANNELS.index(channel) << 2 * place for place, channel in enumerate(chosen))

    def _strides(self, raw: ParsedOperand) -> tuple[int, int, int]:
        region = raw.region
        if region is None:
            return 0, 1, 0
        if len(region) == 1:
            return region[0], 1, 0
        vertical, width, horizontal = region if len(region) == 3 else (VXH, *region)
        if width not in WIDTHS:
            raise self.scan.wrong(f"a region with a width of {', '.join(map(str, WIDTHS))}", raw.at)
        if horizontal not in HORIZONTALS:
            raise self.scan.wrong(f"a region with a horizontal stride of {', '.join(map(str, HORIZONTALS))}", raw.at)
        return vertical, width, horizontal

    def three(self, raw: ParsedOperand) -> Operand:
        """A source of the align16 three-source form."""
        if raw.file != "grf" or raw.indirect:
            raise self.scan.wrong("a register g0 to g255", raw.at)
        vertical, _, _ = self._strides(raw)
        single = vertical == 0
        swizzle = self.swizzle(raw, 0 if single else WHOLE)
        return Operand(**self._place(raw), replicate=single, swizzle=swizzle if raw.special is None else None)

    def three_align1(self, raw: ParsedOperand, last: bool) -> Operand:
        """A source of the align1 three-source form."""
        if raw.file == "imm":
            return self.immediate(raw, 16, once=True)
        vertical, _, horizontal = self._strides(raw)
        return Operand(**self._place(raw), vertical=0 if last else vertical, horizontal=horizontal)

    def payload(self, raw: ParsedOperand, typed: bool) -> Operand:
        """An operand of a split send: a register, without region; the destination alone has a type."""
        if raw.file == "imm" or raw.region is not None or raw.channels is not None or raw.negate or raw.absolute:
            raise self.scan.wrong("a register without region or modifiers", raw.at)
        return Operand(**self._place(raw) | ({} if typed else {"type": ""}))

    def immediate(self, raw: ParsedOperand, bits: int = 0, once: bool = False) -> Operand:
        """`bits`: whatever the type; `once`: 16 bits stand alone, not in both halves of 32."""
        width = bits or IMMEDIATE_BITS.get(raw.type, 32)
        value = raw.immediate
        if not -(1 << width - 1) <= value < 1 << width:
            raise self.scan.wrong(f"a number of {width} bits", raw.at)
        value &= (1 << width) - 1
        if width == 16 and not once:
            value |= value << 16
        return Operand("imm", raw.type, immediate=value)

    def _place(self, raw: ParsedOperand) -> dict[str, Any]:
        said: dict[str, Any] = {"file": raw.file, "type": raw.type, "negate": raw.negate, "absolute": raw.absolute, "special": raw.special}
        if raw.indirect:
            return said | {"indirect": True, "address_sub": raw.address_sub, "offset": raw.offset}
        return said | {"number": raw.number, "sub": raw.sub * (1 if raw.bytes else types.size(raw.type))}


def with_position(error: DecodeError, scan: Scanner, at: int) -> DecodeError:
    """An encoder's complaint, with the place of the instruction that caused it."""
    return DecodeError(f"{scan.place(at)}: {error}")


__all__ = ["OperandBuilder", "ParsedOperand", "number", "read", "with_position"]
