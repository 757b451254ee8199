"""What compiled messages find around a thread: a Context (block.py) behind the pointer %context, as regions of the LLVM machine.

Before a message touches graphics memory its instruction's ip goes into the guard's record and a note of its lanes into the context;
`explain` reads them after a fault.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from softgen.bits.generation import generation
from softgen.errors import GpuFault, Unsupported
from softgen.eu.thread.block import KNOWN, TEXTURED, Bindings, Context, Picture, Surface, offset
from softgen.lanes import affine
from softgen.lanes.llvm import LlvmMachine
from softgen.lanes.llvm_access import ATOMIC, BLOCK, CANONICAL_BITS, ONE, ROW, SIZE_SHIFT, TABLE, WIDE
from softgen.lanes.llvm_region import LEAVE, Flat, Table, region
from softgen.lanes.types import LaneType, bool_, u32, u64
from softgen.lanes.value import Region, Value
from softgen.memory import arena
from softgen.memory.space import Space
from softgen.shared_functions.exchange import Exchange

BARRIER = "native_barrier"
SLOT = 4  # bytes: what a lane reaches, mostly
IMPORTS = (LEAVE, BARRIER)  # what code with messages may call: who loads it gives their addresses


class CompiledEnvironment:
    """`ip` is an operand (i64) with the address of the send, counted as in the block's control. `escape` gets a lane of truth that must
    hold: where it does not, the thread must leave for the reference before anything has happened."""

    def __init__(self, m: LlvmMachine, gen: float, ip: str, escape: Callable[[Value], None]) -> None:
        self.m, self.gen, self.ip, self.escape = m, gen, ip, escape
        self.bits = generation(gen).address_bits
        self._checked = False  # that the message under way has a buffer

    def within(self, index: int, offsets: Value, mask: Value, what: str) -> None:
        """The first lane outside a buffer is the reference's to tell. Lanes that are known to lie evenly are inside if the last one is;
        then there is a buffer, too."""
        m, (size, known) = self.m, (self._surface(index, name) for name in ("size", "known"))
        sure, check = m.labels("sure", "check")
        self.part()
        m.line(f"br i1 {self._evenly(size, offsets, mask)}, label %{sure}, label %{check}, !prof !1")
        m.start(check)
        least = m.call("llvm.umin", "i64", [("i64", size), ("i64", str(offsets.type.highest))], ("i64",))
        if offsets.type.bits < 64:
            least = m.emit(f"trunc i64 {least} to i{offsets.type.bits}")
        end = m.broadcast(self._lane(offsets.type, least), offsets.lanes)
        inside = ~m.any(mask & (offsets >= end)) | self._lane(bool_, m.emit(f"icmp ugt i64 {known}, {KNOWN}"))
        self.escape(inside & self._there(index))
        m.line(f"br label %{sure}")
        m.start(sure)
        self._checked = True

    def part(self) -> None:
        """The code parts, and may be left on one of the ways only: what is said when it is left must hold on both."""

    def _evenly(self, size: str, offsets: Value, mask: Value) -> str:
        """Whether lanes are known to be all inside (an i1)."""
        m, held = self.m, affine.usable(self.m, offsets.payload, mask.payload)
        if held is None or held.step >> offsets.type.bits - 1:
            return "false"
        total = held.step * (offsets.lanes - 1) + SLOT
        first = held.first() if offsets.type.bits == 64 else m.emit(f"zext i{offsets.type.bits} {held.first()} to i64")
        good = m.room_for(first, size, total)
        for condition in held.conditions:
            good = m.emit(f"and i1 {good}, {condition()}")
        return good

    def _there(self, index: int) -> Value:
        return self._lane(bool_, self.m.emit(f"icmp ne i64 {self._surface(index, 'host')}, 0"))

    def bound(self, index: int) -> Region:
        m, (place, size) = self.m, (self._surface(index, name) for name in ("host", "size"))
        if not self._checked:
            self.escape(self._there(index))
        self._checked = False
        return region(m, Flat(place, size, self._announce()), f"surface {index}")

    def bindless(self, offset: int) -> Region:
        raise Unsupported(f"compiled code has no table of bindless surfaces (offset {offset:#x})")

    def general(self, base: Value | None = None) -> Region:
        start = self._field("general")
        if base is not None:
            start = self.m.emit(f"add i64 {start}, {self.m.emit(f'extractelement <1 x i64> {base.payload}, i64 0')}")
        return region(self.m, Table(self._field("table", "ptr"), start, self._announce(), self.bits), "memory")

    def addresses(self) -> Region:
        return region(self.m, Table(self._field("table", "ptr"), "0", self._announce(), self.bits, canonical=True), "memory")

    def local(self, plain: bool = False) -> Region:
        note = "null" if plain else self._announce()
        return region(self.m, Flat(self._field("local"), self._field("local_size"), note, quiet=True), "local memory")

    def textured(self, x: Exchange, what: str, sampler: int, given: list[Value], mask: Value, count: int) -> list[Value]:
        """A call of the function that was made for the surface."""
        m, lanes, index = self.m, mask.lanes, int(x.plan.fields.binding_table_index)
        bindings = self._field("surfaces", "ptr")
        place = offset(Bindings, "pictures") + index * ctypes.sizeof(Picture)
        function = self._load("i64", bindings, place + 8 * (TEXTURED[what, lanes] + sampler))
        self.escape(self._lane(bool_, m.emit(f"icmp ne i64 {function}, 0")))
        room = m.place(f"[{max(len(given), count)} x <{lanes} x i32>], align 64")
        places = [m.emit(f"getelementptr i8, ptr {room}, i64 {4 * lanes * number}") for number in range(max(len(given), count))]
        for pointer, value in zip(places, given, strict=False):
            m.line(f"store {m.typed(m.bitcast(value, u32))}, ptr {pointer}, align 4")
        self._announce()
        bits = m.emit(f"extractelement <1 x i32> {m.bits_from_mask(mask).payload}, i64 0")
        picture = m.emit(f"getelementptr i8, ptr {bindings}, i64 {place}")
        code = m.emit(f"inttoptr i64 {function} to ptr")
        m.line(f"call void {code}(ptr %context, ptr {picture}, ptr {room}, i32 {bits})")
        return [Value(m, u32, lanes, m.emit(f"load <{lanes} x i32>, ptr {pointer}, align 4")) for pointer in places[:count]]

    def moved(self, offsets: list[Value]) -> list[Value]:
        """Messages that add offsets to coordinates are for the reference."""
        for one in offsets:
            self.escape(one == 0)
        return []

    def table(self, given: Value) -> None:
        """The table of samplers that a message points at must be that of the dispatch."""
        place = self._load("i64", self._field("surfaces", "ptr"), offset(Bindings, "samplers"))
        self.escape(self.m.convert(given, u64) == self._lane(u64, place))

    def barrier(self) -> None:
        self.m.line(f"call void {self.m.outside(BARRIER, 'void', ('ptr',))}(ptr %context)")

    def _announce(self) -> str:
        """Says which instruction is about to touch memory; where the note goes."""
        self.m.line(f"store i64 {self.ip}, ptr {self._field('record', 'ptr')}")
        return self.m.emit(f"getelementptr i8, ptr %context, i64 {offset(Context, 'mask')}")

    def _lane(self, type: LaneType, operand: str) -> Value:
        """One scalar as a lane."""
        kind = f"i{1 if type is bool_ else type.bits}"
        return Value(self.m, type, 1, self.m.emit(f"insertelement <1 x {kind}> poison, {kind} {operand}, i64 0"))

    def _surface(self, index: int, name: str) -> str:
        bindings = self._field("surfaces", "ptr", f", !dereferenceable !{{i64 {ctypes.sizeof(Bindings)}}}, !align !{{i64 8}}")
        return self._load("i64", bindings, index * ctypes.sizeof(Surface) + offset(Surface, name))

    def _field(self, name: str, kind: str = "i64", more: str = "") -> str:
        return self._load(kind, "%context", offset(Context, name), more)

    def _load(self, kind: str, base: str, place: int, more: str = "") -> str:
        """Nothing of this changes while a function runs."""
        return self.m.emit(f"load {kind}, ptr {self.m.emit(f'getelementptr i8, ptr {base}, i64 {place}')}, !invariant.load !2{more}")


# -- after a fault -------------------------------------------------------------------------------------------------


def places(context: Context) -> dict[int, int]:
    """Where each lane of the message under way was going to: host addresses for what a surface's messages reach, else graphics addresses
    as the program has them."""
    word, width = int(context.mask), 8 if int(context.mask) & WIDE else 4
    lanes = [lane for lane in range(32) if word >> lane & 1]
    if word & (ROW | ONE):
        step = word >> SIZE_SHIFT if word & ROW else 0
        return {lane: int(context.base) + step * lane & (1 << 64) - 1 for lane in lanes}
    held = bytes(memoryview(context.offsets).cast("B"))
    return {lane: int(context.base) + int.from_bytes(held[lane * width : (lane + 1) * width], "little") & (1 << 64) - 1 for lane in lanes}


def explain(context: Context, address: int, place: int | None, access: str, space: Space | None, by: str) -> GpuFault:
    """The fault of a message. `address` is what the guard's record has, `place` the graphics address it stands for; None where the code
    left by itself, with the offset or address that it found wrong. Hosts gather in any order: the lowest lane that is wrong is named."""
    word, name = int(context.mask), space.name if space else ""
    size, access = word >> SIZE_SHIFT, "atomic" if word & ATOMIC else access
    if place is None:
        return _left(context, address, access, name, by)
    if word & BLOCK:
        return _missing(int(context.base) if word & TABLE else int(context.base) + place - address, size, None, place, access, space, by)
    lanes = places(context)
    if not word & TABLE:
        lanes = {lane: one + place - address for lane, one in lanes.items()}  # a surface is in one piece
    lanes = {lane: one & (1 << CANONICAL_BITS) - 1 for lane, one in lanes.items()}
    for lane, one in lanes.items():
        if space is not None and space.extent(one, size) < size:
            return _missing(one, size, lane, place, access, space, by)
    touched = (lane for lane, one in lanes.items() if one <= place < one + size)
    return _missing(place, size, next(touched, None), place, access, space, by)


def _missing(start: int, size: int, lane: int | None, place: int, access: str, space: Space | None, by: str) -> GpuFault:
    """Something from `start` on is not there; `place` is what the host noticed."""
    there = space.extent(start, size) if space is not None else size
    first = start + there if there < size else place
    where = "" if lane is None else f" (lane {lane})"
    return GpuFault(first, access, space.name if space else "", by, (space.outside(first) if space else "not mapped") + where)


def _left(context: Context, address: int, access: str, name: str, by: str) -> GpuFault:
    word, size = int(context.mask), int(context.mask) >> SIZE_SHIFT
    base = 0 if word & TABLE else int(context.base)
    lanes = {} if word & BLOCK else places(context)
    whole = (1 << (CANONICAL_BITS if word & TABLE and not address >> CANONICAL_BITS else 64)) - 1
    lane = next((lane for lane, one in lanes.items() if one & whole == address + base & whole), None)
    where = "" if lane is None else f" (lane {lane})"
    if not word & ATOMIC or word & TABLE and not address % size:
        return GpuFault(address, access, name, by, f"not a canonical address{where}")
    found = arena.locate(address + base)
    address, name = (address, name) if word & TABLE else (found.address, name) if found else (address, "local memory")
    return GpuFault(address, access, name, by, f"not a multiple of {size}{where}")
