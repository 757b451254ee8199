"""Block loads and stores of regions on the LLVM machine: contiguous bytes from one offset on, for all lanes together.

What is beyond the size of a flat region is not touched.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from softgen.lanes.llvm.access import BLOCK, READ, SIZE_SHIFT, TABLE, WRITE
from softgen.lanes.llvm.addressing import TableRegion
from softgen.lanes.llvm.affine import EVERY
from softgen.lanes.llvm.memory import _every
from softgen.lanes.llvm.region import LlvmRegions
from softgen.lanes.types import LaneType
from softgen.lanes.value import Memory, Region, Value

UNIFORMS = 32  # bytes of a block that is read element by element


class LlvmBlocks(LlvmRegions):
    """Loads and stores of blocks; those of other memory are the base class's."""

    def _load_block(self, type: LaneType, lanes: int, base: Memory, offset: Value, mask: Value | None, grain: int) -> Any:
        if not isinstance(base, Region):
            return super()._load_block(type, lanes, base, offset, mask, grain)
        if lanes * type.bytes <= UNIFORMS and _every(mask) in (EVERY, _every(None)) and self.module.loads_broadcast:
            return self._load_uniforms(type, lanes, base, offset, grain)
        vector = self.vector(type, lanes)
        found = self.place(vector)
        for pointer, inside in self._block_places(type, lanes, base, offset, mask, grain, READ):
            if inside:
                operands = [("ptr", pointer), ("i32", "1"), (f"<{lanes} x i1>", inside), (vector, "zeroinitializer")]
                value = self.intrinsic("llvm.masked.load", vector, operands, (vector, "ptr"))
            else:
                value = self.emit(f"load {vector}, ptr {pointer}, align 1")
            self.line(f"store {vector} {value}, ptr {found}")
        return self.emit(f"load {vector}, ptr {found}")

    def _load_uniforms(self, type: LaneType, lanes: int, base: Region, offset: Value, grain: int) -> Any:
        """A short block, element by element: programs broadcast them. One that is not whole inside is loaded from a copy."""
        vector, element, where = self.vector(type, lanes), self.element(type), self.place("ptr")
        for pointer, inside in self._block_places(type, lanes, base, offset, None, grain, READ):
            if inside:
                operands = [("ptr", pointer), ("i32", "1"), (f"<{lanes} x i1>", inside), (vector, "zeroinitializer")]
                value, pointer = self.intrinsic("llvm.masked.load", vector, operands, (vector, "ptr")), self.place(vector)
                self.line(f"store {vector} {value}, ptr {pointer}")
            self.line(f"store ptr {pointer}, ptr {where}")
        found, start = "poison", self.emit(f"load ptr, ptr {where}")
        for lane in range(lanes):
            pointer = self.emit(f"getelementptr {element}, ptr {start}, i64 {lane}")
            value = self.emit(f"load {element}, ptr {pointer}, align 1")
            found = self.emit(f"insertelement {vector} {found}, {element} {value}, i64 {lane}")
        return found

    def _store_block(self, value: Value, base: Memory, offset: Value, mask: Value | None, grain: int) -> None:
        if not isinstance(base, Region):
            super()._store_block(value, base, offset, mask, grain)
            return
        vector, lanes = self.vector(value.type, value.lanes), value.lanes
        for pointer, inside in self._block_places(value.type, lanes, base, offset, mask, grain, WRITE):
            if inside:
                operands = [(vector, value.payload), ("ptr", pointer), ("i32", "1"), (f"<{lanes} x i1>", inside)]
                self.intrinsic("llvm.masked.store", "void", operands, (vector, "ptr"))
            else:
                self.line(f"store {vector} {value.payload}, ptr {pointer}, align 1")

    def _block_places(self, type: LaneType, lanes: int, base: Region, offset: Value, mask: Value | None, grain: int,
                      access: int) -> Iterator[tuple[str, str]]:
        """The host address of a block, and which lanes to touch ('' for all): where it has an end, once for a block that lies whole before
        it and once for any other."""
        first, start = self.emit(f"extractelement <1 x i64> {self._far(offset)}, i64 0"), self._origin(base)
        if isinstance(base.payload, TableRegion):
            yield self._block_address(lanes, type, base, base.payload, first, mask, access), "" if mask is None else mask.payload
            return
        size, mapped = lanes * type.bytes, self._mapped(base)
        pointer = self.emit(f"getelementptr i8, ptr {start[0]}, i64 {first}")

        def note() -> None:
            self._write_note(base, str(BLOCK | size << SIZE_SHIFT), self.emit(f"ptrtoint ptr {pointer} to i64"))
        if not mapped:
            note()
        whole, part, done = self.labels("whole", "part", "block")
        self.line(f"br i1 {self.room_for(first, mapped or start[1], size)}, label %{whole}, label %{part}, !prof !1")
        self.start(whole)
        yield pointer, "" if mask is None else mask.payload
        self.line(f"br label %{done}")
        self.start(part)
        if mapped:
            note()
        inside = self._lanes_before(type, lanes, first, start[1], grain)
        yield pointer, inside if mask is None else self.emit(f"and <{lanes} x i1> {inside}, {mask.payload}")
        self.line(f"br label %{done}")
        self.start(done)

    def _block_address(self, lanes: int, type: LaneType, base: Region, place: TableRegion, first: str, mask: Value | None,
                       access: int) -> str:
        table, start = self._origin(base)
        address = self.emit(f"add i64 {start}, {first}")
        self._write_note(base, str(BLOCK | TABLE | lanes * type.bytes << SIZE_SHIFT), address)
        if place.canonical:
            touched = "true" if mask is None else self.any_lane(lanes, mask.payload)
            self.leave_unless(self.emit(f"or i1 {self.is_canonical(address)}, {self.emit(f'xor i1 {touched}, true')}"), address, access)
        return self.translate(table, address, place.bits)

    def _lanes_before(self, type: LaneType, lanes: int, first: str, size: str, grain: int) -> str:
        """The lanes of a block whose grains are whole inside a size."""
        left = self.intrinsic("llvm.usub.sat", "i64", [("i64", size), ("i64", first)], ("i64",))
        count = self.emit(f"mul i64 {self.emit(f'udiv i64 {left}, {grain}')}, {grain // type.bytes}")
        small = self.intrinsic("llvm.umin", "i64", [("i64", count), ("i64", str(lanes))], ("i64",))
        many = self._splat("i16", lanes, self.emit(f"trunc i64 {small} to i16"))
        numbers = f"<{', '.join(f'i16 {lane}' for lane in range(lanes))}>"
        return self.emit(f"icmp ult <{lanes} x i16> {numbers}, {many}")
