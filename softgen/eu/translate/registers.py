"""Registers of a kernel that is one function: parts of the register file that no instruction uses across their borders.

Instructions say which bytes they read and write; what that becomes is decided when all of them are known. Bytes used together are one
part, a vector of dwords in a variable of its own, which LLVM makes a register. Where registers are used in ever other company, each is a
part by itself, and an access may be of several. What an address register may reach stays in the thread's block.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from softgen.eu.thread.block import BLOCK_OFFSETS
from softgen.lanes.llvm import YES, LlvmMachine
from softgen.lanes.types import LaneType

UNIT, WIDE = 4, 8  # bytes that every part is a multiple of, and where something in it is as large
LARGEST = 128  # bytes of a part that is more than one register
REGISTER = 32
TRUE = YES


Span = tuple[int, int, bool]  # from, to, and whether something in it is wide


@dataclass(eq=False)
class Access:
    """A read (`result` is the register that gets it) or a write (`value` under `mask`), at a place in the function's text."""

    place: str
    type: LaneType
    offsets: tuple[int, ...]
    result: str = ""
    value: str = ""
    mask: str = TRUE
    ip: int = 0  # of the instruction
    channel: int | None = None  # that the first lane is for, where each lane is for a channel, and none for one that is not active
    everyone: bool = False  # a write that reaches every active channel of the instruction's

    @property
    def span(self) -> tuple[int, int]:
        return min(self.offsets), max(self.offsets) + self.type.bytes


@dataclass(eq=False)
class Part:
    """Bytes of one place from `start` to `end`."""

    place: str
    start: int
    end: int
    variable: str = ""  # empty where it stays in the block
    written: bool = False

    @property
    def dwords(self) -> int:
        return (self.end - self.start) // 4

    @property
    def vector(self) -> str:
        return f"<{self.dwords} x i32>"


class Registers:
    def __init__(self, m: LlvmMachine) -> None:
        self.m = m
        self.accesses: list[Access] = []
        self.in_block: set[str] = set()  # places that an address register reaches
        self.parts: dict[str, list[Part]] = {}
        self._starts: dict[str, list[int]] = {}

    def partition(self) -> None:
        """Call when every access is known."""
        spans: dict[str, list[Span]] = {}
        for access in self.accesses:
            low, high = access.span
            spans.setdefault(access.place, []).append((low // UNIT * UNIT, -(-high // UNIT) * UNIT, access.type.bytes > UNIT))
        for place, found in spans.items():
            parts = [Part(place, low, high) for span in _merged(found) for low, high in self._apart(place, *span)]
            for part in parts:
                if place not in self.in_block:
                    part.variable = self.m.place(part.vector)
            self.parts[place], self._starts[place] = parts, [part.start for part in parts]
        for access in self.accesses:
            for part in self.covering(access) if not access.result else ():
                part.written = True

    def _apart(self, place: str, low: int, high: int) -> list[tuple[int, int]]:
        """Bytes that are used in one way or another with all the rest."""
        if high - low <= LARGEST or place in self.in_block:
            return [(low, high)]
        cuts = [low, *range(low // REGISTER * REGISTER + REGISTER, high, REGISTER), high]
        return list(pairwise(cuts))

    def covering(self, access: Access) -> list[Part]:
        """The parts that an access is of, side by side."""
        place, (low, high) = access.place, access.span
        first, last = (bisect_right(self._starts[place], at) for at in (low, high - 1))
        return self.parts[place][first - 1 : last]

    def all(self) -> Iterable[Part]:
        return (part for parts in self.parts.values() for part in parts)

    # -- text ----------------------------------------------------------------------------------------------------------

    def expand(self, access: Access) -> None:
        """Writes the lines that an access is, where the machine stands."""
        parts = self.covering(access)
        if access.result:
            self._read(access, parts, access.result)
        else:
            self._write(access, parts)

    def load(self, part: Part) -> None:
        """From the block into the variable."""
        self.m.line(f"store {part.vector} {self.m.emit(f'load {part.vector}, ptr {self.home(part)}, align 8')}, ptr {part.variable}")

    def save(self, part: Part) -> None:
        self.m.line(f"store {part.vector} {self.m.emit(f'load {part.vector}, ptr {part.variable}')}, ptr {self.home(part)}, align 8")

    def home(self, part: Part) -> str:
        return self.m.emit(f"getelementptr i8, ptr %block, i64 {BLOCK_OFFSETS[part.place] + part.start}")

    def _whole(self, parts: list[Part], vector: str) -> str:
        """All of an access's parts as one vector."""
        found, count = "", 0
        for part in parts:
            here = part.variable or self.home(part)
            value = self.m.emit(f"load {part.vector}, ptr {here}{'' if part.variable else ', align 8'}")
            found = self._joined(found, count, value, part.dwords) if found else value
            count += part.dwords
        return found if vector == f"<{count} x i32>" else self.m.emit(f"bitcast <{count} x i32> {found} to {vector}")

    def _joined(self, a: str, a_count: int, b: str, b_count: int) -> str:
        widest = max(a_count, b_count)
        a, b = (one if count == widest else self._widened(one, count, widest) for one, count in ((a, a_count), (b, b_count)))
        order = ", ".join(f"i32 {one}" for one in (*range(a_count), *range(widest, widest + b_count)))
        kind = f"<{widest} x i32>"
        return self.m.emit(f"shufflevector {kind} {a}, {kind} {b}, <{a_count + b_count} x i32> <{order}>")

    def _widened(self, value: str, count: int, to: int) -> str:
        order = ", ".join(f"i32 {one}" if one < count else "i32 poison" for one in range(to))
        return self.m.emit(f"shufflevector <{count} x i32> {value}, <{count} x i32> poison, <{to} x i32> <{order}>")

    def _read(self, access: Access, parts: list[Part], result: str) -> None:
        type, lanes = access.type, len(access.offsets)
        if not any(part.variable for part in parts):
            self._read_directly(access, result)
            return
        element, count, indices, bytes_ = self._elements(access, parts)
        whole = self._whole(parts, f"<{count} x {element}>")
        order = ", ".join(f"i32 {one}" for one in indices)
        shuffle = f"shufflevector <{count} x {element}> {whole}, <{count} x {element}> poison, <{len(indices)} x i32> <{order}>"
        if bytes_:
            picked = self.m.emit(shuffle)
            self._name(result, f"bitcast <{len(indices)} x i8> {picked} to {self.m.vector(type, lanes)}")
        else:
            self._name(result, shuffle)

    def _elements(self, access: Access, parts: list[Part]) -> tuple[str, int, list[int], bool]:
        """The parts as elements, and which of them the access is: elements of its type, or bytes where it stands across these."""
        size, start, end = access.type.bytes, parts[0].start, parts[-1].end
        offsets = [one - start for one in access.offsets]
        if any(one % size for one in offsets):
            return "i8", end - start, [one + byte for one in offsets for byte in range(size)], True
        return self.m.element(access.type), (end - start) // size, [one // size for one in offsets], False

    def _read_directly(self, access: Access, result: str) -> None:
        """Straight from the block."""
        type, offsets = access.type, access.offsets
        at = self.m.emit(f"getelementptr i8, ptr %block, i64 {BLOCK_OFFSETS[access.place] + offsets[0]}")
        vector, element = self.m.vector(type, len(offsets)), self.m.element(type)
        if all(one == offsets[0] + lane * type.bytes for lane, one in enumerate(offsets)):
            self._name(result, f"load {vector}, ptr {at}, align 1")
            return
        if len(set(offsets)) == 1:
            one = self.m.emit(f"insertelement {vector} poison, {element} {self.m.emit(f'load {element}, ptr {at}, align 1')}, i64 0")
            self._name(result, f"shufflevector {vector} {one}, {vector} poison, <{len(offsets)} x i32> zeroinitializer")
            return
        found = "poison"
        for lane, offset in enumerate(offsets):
            at = self.m.emit(f"getelementptr i8, ptr %block, i64 {BLOCK_OFFSETS[access.place] + offset}")
            one = self.m.emit(f"load {element}, ptr {at}, align 1")
            found = self.m.emit(f"insertelement {vector} {found}, {element} {one}, i64 {lane}")
        self._name(result, f"bitcast {vector} {found} to {vector}")

    def _name(self, result: str, text: str) -> None:
        self.m.line(f"{result} = {text}")

    def _write(self, access: Access, parts: list[Part]) -> None:
        vector, value = self.m.vector(access.type, len(access.offsets)), access.value
        if access.mask != TRUE:
            old = self.m.fresh()
            self._read(Access(access.place, access.type, access.offsets, old), parts, old)
            value = self.m.emit(f"select <{len(access.offsets)} x i1> {access.mask}, {vector} {value}, {vector} {old}")
        if not any(part.variable for part in parts):
            self._write_directly(access, vector, value)
            return
        element, count, indices, bytes_ = self._elements(access, parts)
        if bytes_:
            value = self.m.emit(f"bitcast {vector} {value} to <{len(indices)} x i8>")
        whole, dwords = f"<{count} x {element}>", sum(part.dwords for part in parts)
        if indices != list(range(count)):
            value = self._blend(element, count, indices, self._whole(parts, whole), value)
        if whole != f"<{dwords} x i32>":
            value = self.m.emit(f"bitcast {whole} {value} to <{dwords} x i32>")
        at = 0
        for part in parts:
            piece = value if len(parts) == 1 else self._piece(value, dwords, at, part.dwords)
            self.m.line(f"store {part.vector} {piece}, ptr {part.variable or self.home(part)}, align {8 if part.variable else 4}")
            at += part.dwords

    def _piece(self, value: str, dwords: int, at: int, count: int) -> str:
        order = ", ".join(f"i32 {one}" for one in range(at, at + count))
        return self.m.emit(f"shufflevector <{dwords} x i32> {value}, <{dwords} x i32> poison, <{count} x i32> <{order}>")

    def _blend(self, element: str, count: int, indices: Sequence[int], old: str, value: str) -> str:
        """New elements among old ones; where two are for one place, the later wins."""
        source = {to: lane for lane, to in enumerate(indices)}
        wide, given = f"<{count} x {element}>", f"<{len(indices)} x {element}>"
        order = ", ".join(f"i32 {source[to]}" if to in source else "i32 poison" for to in range(count))
        spread = self.m.emit(f"shufflevector {given} {value}, {given} poison, <{count} x i32> <{order}>")
        choice = ", ".join(f"i32 {count + to if to in source else to}" for to in range(count))
        return self.m.emit(f"shufflevector {wide} {old}, {wide} {spread}, <{count} x i32> <{choice}>")

    def _write_directly(self, access: Access, vector: str, value: str) -> None:
        type, offsets = access.type, access.offsets
        if all(one == offsets[0] + lane * type.bytes for lane, one in enumerate(offsets)):
            at = self.m.emit(f"getelementptr i8, ptr %block, i64 {BLOCK_OFFSETS[access.place] + offsets[0]}")
            self.m.line(f"store {vector} {value}, ptr {at}, align 1")
            return
        element = self.m.element(type)
        for lane, offset in enumerate(offsets):
            at = self.m.emit(f"getelementptr i8, ptr %block, i64 {BLOCK_OFFSETS[access.place] + offset}")
            self.m.line(f"store {element} {self.m.emit(f'extractelement {vector} {value}, i64 {lane}')}, ptr {at}, align 1")


def _merged(spans: list[Span]) -> list[tuple[int, int]]:
    """Spans that overlap become one; where something in it is wide, it begins and ends accordingly."""
    while True:
        merged: list[Span] = []
        for low, high, wide in sorted(set(spans)):
            if merged and low < merged[-1][1]:
                first, last, before = merged[-1]
                merged[-1] = first, max(last, high), before or wide
            else:
                merged.append((low, high, wide))
        spans = [(low // WIDE * WIDE, -(-high // WIDE) * WIDE, True) if wide else (low, high, False) for low, high, wide in merged]
        if spans == merged:
            return [(low, high) for low, high, _ in merged]
