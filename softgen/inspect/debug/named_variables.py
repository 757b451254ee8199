"""Variables of OpenCL kernels by name: where DWARF says their values are, and the values of all lanes of a thread.

    tables = variable_tables(data)                  # of an OpenCL binary, by kernel
    values(tables["saxpy"]["t"], thread.grf, offset, simd)

The compiler places a value in registers, the same for all lanes or a part for each. Three operators of its own say which: one pushes the
lane, one takes a register by its number from the stack, one a part of it by size and first bit (public: Intel's IGC, DwarfExpression;
register n of the EU is register 16 + n).
"""

from __future__ import annotations

import io
import operator
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from softgen.bits.units import GRF_BYTES
from softgen.errors import UsageError
from softgen.inspect.debug.dwarf import TEXT, kernel_of, relocated

FIRST_REGISTER = 16
KINDS = {(4, 4): "f4", (4, 8): "f8", (4, 2): "f2", (2, 1): "u1", (7, 8): "u8", (7, 4): "u4", (7, 2): "u2", (8, 1): "u1", (5, 8): "i8",
         (5, 4): "i4", (5, 2): "i2", (6, 1): "i1"}  # fmt: skip
POINTER = "u8"
QUALIFIERS = ("DW_TAG_const_type", "DW_TAG_volatile_type", "DW_TAG_restrict_type", "DW_TAG_typedef")
CONSTANTS = {0x08: "<B", 0x09: "<b", 0x0A: "<H", 0x0B: "<h", 0x0C: "<I", 0x0D: "<i", 0x0E: "<Q", 0x0F: "<q"}
BINARY: dict[int, Callable[[int, int], int]] = {
    0x1A: operator.and_, 0x1C: operator.sub, 0x1E: operator.mul, 0x21: operator.or_, 0x22: operator.add,
    0x24: lambda a, b: a << (b & 63), 0x25: lambda a, b: a >> (b & 63),
    0x29: operator.eq, 0x2A: operator.ge, 0x2B: operator.gt, 0x2C: operator.le, 0x2D: operator.lt, 0x2E: operator.ne}  # fmt: skip
BRANCH, SKIP = 0x28, 0x2F  # where a thread has so many lanes that a value takes several parts
MOST_OPERATORS = 1000  # that are executed
CONSTU, PLUS, LITERAL, REGISTER, LAST_REGISTER, REGX = 0x10, 0x23, 0x30, 0x50, 0x6F, 0x90
BIT_PIECE, IMPLICIT, STACK_VALUE, REGISTER_OF_STACK, PIECE_OF_STACK, LANE = 0x9D, 0x9E, 0x9F, 0xEB, 0xEC, 0xED
WHOLE = (1 << 64) - 1
Value = int | float


@dataclass(frozen=True)
class NamedVariable:
    """A variable of a kernel: its type as NumPy has it ('': one that is not shown), and where it is, by offsets of instructions."""

    name: str
    kind: str
    places: tuple[tuple[int, int, bytes], ...] = field(default=())


@dataclass(frozen=True)
class ValuePlace:
    """Bits of a register, from its first byte on, or a value."""

    register: int = 0
    bit: int = 0
    constant: bytes | None = None


def variable_tables(data: bytes) -> dict[str, dict[str, list[NamedVariable]]]:
    """For each kernel of an ELF file, its variables by name, those of inner blocks last; nothing without debug information."""
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        file = ELFFile(io.BytesIO(data))
        if file.get_section_by_name(".debug_info") is None:
            return {}
        texts = [(section.name[len(TEXT) :], section["sh_addr"], section["sh_size"]) for section in file.iter_sections()
                 if section.name.startswith(TEXT)]  # fmt: skip
        dwarf = ELFFile(io.BytesIO(relocated(file, data))).get_dwarf_info(relocate_dwarf_sections=False)
        found: dict[str, dict[str, list[NamedVariable]]] = {}
        for unit in dwarf.iter_CUs():
            kernel = kernel_of(unit, texts)
            for variable in _variables(dwarf, unit, kernel[1]) if kernel is not None else ():
                found.setdefault(kernel[0], {}).setdefault(variable.name, []).append(variable)  # type: ignore[index]
        return found
    except (ELFError, ValueError, KeyError, IndexError, AttributeError, struct.error, AssertionError):
        return {}  # registers remain


def _variables(dwarf: Any, unit: Any, start: int) -> Iterator[NamedVariable]:
    top, lists = unit.get_top_DIE(), dwarf.location_lists()
    low = top.attributes["DW_AT_low_pc"].value - start if "DW_AT_low_pc" in top.attributes else 0
    for die in unit.iter_DIEs():
        if die.tag in ("DW_TAG_variable", "DW_TAG_formal_parameter") and "DW_AT_name" in die.attributes:
            yield NamedVariable(die.attributes["DW_AT_name"].value.decode("utf-8", "replace"), _kind(die), tuple(_places(die, lists, low)))


def _kind(die: Any) -> str:
    while "DW_AT_type" in die.attributes:
        die = die.get_DIE_from_attribute("DW_AT_type")
        if die.tag == "DW_TAG_pointer_type":
            return POINTER
        if die.tag == "DW_TAG_base_type":
            return KINDS.get((die.attributes["DW_AT_encoding"].value, die.attributes["DW_AT_byte_size"].value), "")
        if die.tag not in QUALIFIERS:
            break
    return ""


def _places(die: Any, lists: Any, low: int) -> Iterator[tuple[int, int, bytes]]:
    """Ranges of offsets, and the expression for each."""
    location = die.attributes.get("DW_AT_location")
    if location is None:
        return
    if location.form != "DW_FORM_sec_offset":
        yield 0, 1 << 32, bytes(location.value)
        return
    for entry in lists.get_location_list_at_offset(location.value):
        if hasattr(entry, "base_address"):
            low = entry.base_address
        else:
            yield low + entry.begin_offset, low + entry.end_offset, bytes(entry.loc_expr)


# -- values ------------------------------------------------------------------------------------------------------------


def values(variable: NamedVariable, registers: npt.NDArray[np.uint8], offset: int, simd: int) -> tuple[Value, ...]:
    """The values of all lanes before the instruction at an offset."""
    name = variable.name
    if not variable.kind:
        raise UsageError(f"{name} is a structure, an array or a vector: their parts are not shown by name; registers are (print r12:f)")
    expression = next((code for begin, end, code in variable.places if begin <= offset < end), None)
    if expression is None:
        where = ", ".join(f"+{begin:#x} to +{end:#x}" for begin, end, _ in variable.places)
        raise UsageError(f"{name} is in no register here{f'; it is in instructions {where}' if where else ': the compiler removed it'}")
    return tuple(_read(name, _evaluate(name, expression, lane), registers, np.dtype(f"<{variable.kind}")) for lane in range(simd))


def _read(name: str, place: ValuePlace, registers: npt.NDArray[np.uint8], kind: np.dtype[Any]) -> Value:
    at = place.register * GRF_BYTES + place.bit // 8
    data = registers[max(at, 0) : max(at, 0) + kind.itemsize].tobytes() if place.constant is None else place.constant[: kind.itemsize]
    if len(data) < kind.itemsize or place.bit % 8 or at < 0:
        raise UsageError(f"{name}: its debug information names r{place.register}, bit {place.bit}, where no such value is")
    return np.frombuffer(data, kind)[0].item()  # type: ignore[no-any-return]


def _evaluate(name: str, code: bytes, lane: int) -> ValuePlace:
    """A location expression for one lane."""
    try:
        return LaneExpression(code, lane).place()
    except UnknownOperator as error:
        why = f"operator {error.args[0]:#x} of its location"
        raise UsageError(f"{name} is not in registers ({why}): only values that are can be shown by name") from None
    except (IndexError, struct.error):
        raise UsageError(f"{name}: its debug information is damaged") from None


class UnknownOperator(Exception):
    """An operator that names no register."""


class LaneExpression:
    """A location expression under way: a stack, and the register and first bit so far."""

    def __init__(self, code: bytes, lane: int) -> None:
        self.code, self.lane, self.at = code, lane, 0
        self.stack: list[int] = []
        self.register: int | None = None
        self.bit = 0

    def place(self) -> ValuePlace:
        for _ in range(MOST_OPERATORS):
            if self.at >= len(self.code):
                break
            op, self.at = self.code[self.at], self.at + 1
            if op == IMPLICIT:
                size = self._number()
                return ValuePlace(constant=self.code[self.at : self.at + size])
            if not self._pushes(op) and not self._places(op) and not self._jumps(op):
                raise UnknownOperator(op)
        if self.register is not None:
            return ValuePlace(self.register - FIRST_REGISTER, self.bit)
        return ValuePlace(constant=(self.stack[-1] & WHOLE).to_bytes(8, "little"))

    def _pushes(self, op: int) -> bool:
        """Execute an operator that leaves a number on the stack."""
        stack = self.stack
        if op in CONSTANTS:
            stack.append(struct.unpack_from(CONSTANTS[op], self.code, self.at)[0])
            self.at += struct.calcsize(CONSTANTS[op])
        elif LITERAL <= op < REGISTER:
            stack.append(op - LITERAL)
        elif op in BINARY:
            second, first = stack.pop(), stack.pop()
            stack.append(BINARY[op](first, second) & WHOLE)
        elif op == CONSTU:
            stack.append(self._number())
        elif op == PLUS:
            stack.append(stack.pop() + self._number() & WHOLE)
        elif op == LANE:
            stack.append(self.lane)
        else:
            return op == STACK_VALUE
        return True

    def _places(self, op: int) -> bool:
        """Execute an operator that says in which register, or where in it."""
        if REGISTER <= op <= LAST_REGISTER:
            self.register = op - REGISTER
        elif op == REGX:
            self.register = self._number()
        elif op == REGISTER_OF_STACK:
            self.register = self.stack.pop()
        elif op == PIECE_OF_STACK:
            _, self.bit = self.stack.pop(), self.stack.pop()
        elif op == BIT_PIECE:
            _, self.bit = self._number(), self._number()
        else:
            return False
        return True

    def _jumps(self, op: int) -> bool:
        if op not in (BRANCH, SKIP):
            return False
        (distance,) = struct.unpack_from("<h", self.code, self.at)
        taken = op == SKIP or self.stack.pop() != 0
        self.at = max(self.at + 2 + (distance if taken else 0), 0)
        return True

    def _number(self) -> int:
        """An unsigned LEB128 number."""
        value = shift = 0
        while True:
            byte, self.at = self.code[self.at], self.at + 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return value
