"""Registers of a kernel that is one function: parts of the register file that no instruction uses across their borders.

Instructions say which bytes they read and write; what that becomes is decided when all of them are known. Bytes used together are one
part, a vector of dwords in a variable of its own, which LLVM makes a register. Parts that are too large, or that an address register may
reach, stay in the thread's block.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from softgen.eu.block import PLACES
from softgen.lanes.llvm import LlvmMachine
from softgen.lanes.types import LaneType

UNIT = 8  # bytes that every part is a multiple of
LARGEST = 256  # bytes of a part that is kept in registers
TRUE = "splat (i1 1)"


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
    reads: list[Access] = field(default_factory=list)

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
        spans: dict[str, list[tuple[int, int]]] = {}
        for access in self.accesses:
            low, high = access.span
            spans.setdefault(access.place, []).append((low // UNIT * UNIT, -(-high // UNIT) * UNIT))
        for place, found in spans.items():
            parts: list[Part] = []
            for low, high in sorted(set(found)):
                if parts and low < parts[-1].end:
                    parts[-1].end = max(parts[-1].end, high)
                else:
                    parts.append(Part(place, low, high))
            for part in parts:
                if part.end - part.start <= LARGEST and place not in self.in_block:
                    part.variable = self.m.place(part.vector)
            self.parts[place], self._starts[place] = parts, [part.start for part in parts]
        for access in self.accesses:
            if not access.result:
                self.part(access).written = True

    def part(self, access: Access) -> Part:
        place = access.place
        return self.parts[place][bisect_right(self._starts[place], access.span[0]) - 1]

    def all(self) -> Iterable[Part]:
        return (part for parts in self.parts.values() for part in parts)

    # -- text ----------------------------------------------------------------------------------------------------------

    def expand(self, access: Access) -> None:
        """Writes the lines that an access is, where the machine stands."""
        part = self.part(access)
        if access.result:
            self._read(access, part, access.result)
        else:
            self._write(access, part)

    def load(self, part: Part) -> None:
        """From the block into the variable."""
        self.m.line(f"store {part.vector} {self.m.emit(f'load {part.vector}, ptr {self.home(part)}, align 8')}, ptr {part.variable}")

    def save(self, part: Part) -> None:
        self.m.line(f"store {part.vector} {self.m.emit(f'load {part.vector}, ptr {part.variable}')}, ptr {self.home(part)}, align 8")

    def home(self, part: Part) -> str:
        return self.m.emit(f"getelementptr i8, ptr %block, i64 {PLACES[part.place] + part.start}")

    def _whole(self, part: Part, vector: str) -> str:
        if part.variable:
            found = self.m.emit(f"load {part.vector}, ptr {part.variable}")
        else:
            found = self.m.emit(f"load {part.vector}, ptr {self.home(part)}, align 8")
        return found if vector == part.vector else self.m.emit(f"bitcast {part.vector} {found} to {vector}")

    def _read(self, access: Access, part: Part, result: str) -> None:
        type, lanes = access.type, len(access.offsets)
        if not part.variable and self._read_directly(access, part, result):
            return
        element, count, indices, bytes_ = self._elements(access, part)
        whole = self._whole(part, f"<{count} x {element}>")
        order = ", ".join(f"i32 {one}" for one in indices)
        shuffle = f"shufflevector <{count} x {element}> {whole}, <{count} x {element}> poison, <{len(indices)} x i32> <{order}>"
        if bytes_:
            picked = self.m.emit(shuffle)
            self._name(result, f"bitcast <{len(indices)} x i8> {picked} to {self.m.vector(type, lanes)}")
        else:
            self._name(result, shuffle)

    def _elements(self, access: Access, part: Part) -> tuple[str, int, list[int], bool]:
        """The part as elements, and which of them the access is: elements of its type, or bytes where it stands across these."""
        size, offsets = access.type.bytes, [one - part.start for one in access.offsets]
        if any(one % size for one in offsets):
            return "i8", part.end - part.start, [one + byte for one in offsets for byte in range(size)], True
        return self.m.element(access.type), (part.end - part.start) // size, [one // size for one in offsets], False

    def _read_directly(self, access: Access, part: Part, result: str) -> bool:
        """Straight from the block, where lanes stand side by side or are all one."""
        type, offsets = access.type, access.offsets
        at = self.m.emit(f"getelementptr i8, ptr %block, i64 {PLACES[part.place] + offsets[0]}")
        vector, element = self.m.vector(type, len(offsets)), self.m.element(type)
        if all(one == offsets[0] + lane * type.bytes for lane, one in enumerate(offsets)):
            self._name(result, f"load {vector}, ptr {at}, align 1")
            return True
        if len(set(offsets)) == 1:
            one = self.m.emit(f"insertelement {vector} poison, {element} {self.m.emit(f'load {element}, ptr {at}, align 1')}, i64 0")
            self._name(result, f"shufflevector {vector} {one}, {vector} poison, <{len(offsets)} x i32> zeroinitializer")
            return True
        if part.end - part.start <= LARGEST:
            return False
        found = "poison"
        for lane, offset in enumerate(offsets):
            at = self.m.emit(f"getelementptr i8, ptr %block, i64 {PLACES[part.place] + offset}")
            one = self.m.emit(f"load {element}, ptr {at}, align 1")
            found = self.m.emit(f"insertelement {vector} {found}, {element} {one}, i64 {lane}")
        self._name(result, f"bitcast {vector} {found} to {vector}")
        return True

    def _name(self, result: str, text: str) -> None:
        self.m.line(f"{result} = {text}")

    def _write(self, access: Access, part: Part) -> None:
        vector, value = self.m.vector(access.type, len(access.offsets)), access.value
        if access.mask != TRUE:
            old = self.m.fresh()
            self._read(Access(access.place, access.type, access.offsets, old), part, old)
            value = self.m.emit(f"select <{len(access.offsets)} x i1> {access.mask}, {vector} {value}, {vector} {old}")
        if not part.variable and self._write_directly(access, part, vector, value):
            return
        element, count, indices, bytes_ = self._elements(access, part)
        if bytes_:
            value = self.m.emit(f"bitcast {vector} {value} to <{len(indices)} x i8>")
        whole = f"<{count} x {element}>"
        if indices != list(range(count)):
            value = self._blend(element, count, indices, self._whole(part, whole), value)
        if whole != part.vector:
            value = self.m.emit(f"bitcast {whole} {value} to {part.vector}")
        self.m.line(f"store {part.vector} {value}, ptr {part.variable or self.home(part)}{'' if part.variable else ', align 8'}")

    def _blend(self, element: str, count: int, indices: Sequence[int], old: str, value: str) -> str:
        """New elements among old ones; where two are for one place, the later wins."""
        source = {to: lane for lane, to in enumerate(indices)}
        wide, given = f"<{count} x {element}>", f"<{len(indices)} x {element}>"
        order = ", ".join(f"i32 {source[to]}" if to in source else "i32 poison" for to in range(count))
        spread = self.m.emit(f"shufflevector {given} {value}, {given} poison, <{count} x i32> <{order}>")
        choice = ", ".join(f"i32 {count + to if to in source else to}" for to in range(count))
        return self.m.emit(f"shufflevector {wide} {old}, {wide} {spread}, <{count} x i32> <{choice}>")

    def _write_directly(self, access: Access, part: Part, vector: str, value: str) -> bool:
        type, offsets = access.type, access.offsets
        if all(one == offsets[0] + lane * type.bytes for lane, one in enumerate(offsets)):
            at = self.m.emit(f"getelementptr i8, ptr %block, i64 {PLACES[part.place] + offsets[0]}")
            self.m.line(f"store {vector} {value}, ptr {at}, align 1")
            return True
        if part.end - part.start <= LARGEST:
            return False
        element = self.m.element(type)
        for lane, offset in enumerate(offsets):
            at = self.m.emit(f"getelementptr i8, ptr %block, i64 {PLACES[part.place] + offset}")
            self.m.line(f"store {element} {self.m.emit(f'extractelement {vector} {value}, i64 {lane}')}, ptr {at}, align 1")
        return True
