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
from softgen.lanes.value import Region, Value

UNIFORMS = 32  # bytes of a block that is read element by element


class LlvmBlocks:
    """Loads and stores of blocks."""

    def __init__(self, regions: LlvmRegions) -> None:
        self.regions, self.addressing, self.ir, self.masks = regions, regions.addressing, regions.ir, regions.masks

    def load(self, type: LaneType, lanes: int, base: Region, offset: Value, mask: Value | None, grain: int) -> Any:
        ir = self.ir
        if lanes * type.bytes <= UNIFORMS and _every(mask) in (EVERY, _every(None)) and ir.module.loads_broadcast:
            return self._load_uniforms(type, lanes, base, offset, grain)
        vector = ir.vector(type, lanes)
        found = ir.place(vector)
        for pointer, inside in self._block_places(type, lanes, base, offset, mask, grain, READ):
            if inside:
                operands = [("ptr", pointer), ("i32", "1"), (f"<{lanes} x i1>", inside), (vector, "zeroinitializer")]
                value = ir.intrinsic("llvm.masked.load", vector, operands, (vector, "ptr"))
            else:
                value = ir.emit(f"load {vector}, ptr {pointer}, align 1")
            ir.line(f"store {vector} {value}, ptr {found}")
        return ir.emit(f"load {vector}, ptr {found}")

    def _load_uniforms(self, type: LaneType, lanes: int, base: Region, offset: Value, grain: int) -> Any:
        """A short block, element by element: programs broadcast them. One that is not whole inside is loaded from a copy."""
        ir = self.ir
        vector, element, where = ir.vector(type, lanes), ir.element(type), ir.place("ptr")
        for pointer, inside in self._block_places(type, lanes, base, offset, None, grain, READ):
            if inside:
                operands = [("ptr", pointer), ("i32", "1"), (f"<{lanes} x i1>", inside), (vector, "zeroinitializer")]
                value, pointer = ir.intrinsic("llvm.masked.load", vector, operands, (vector, "ptr")), ir.place(vector)
                ir.line(f"store {vector} {value}, ptr {pointer}")
            ir.line(f"store ptr {pointer}, ptr {where}")
        found, start = "poison", ir.emit(f"load ptr, ptr {where}")
        for lane in range(lanes):
            pointer = ir.emit(f"getelementptr {element}, ptr {start}, i64 {lane}")
            value = ir.emit(f"load {element}, ptr {pointer}, align 1")
            found = ir.emit(f"insertelement {vector} {found}, {element} {value}, i64 {lane}")
        return found

    def store(self, value: Value, base: Region, offset: Value, mask: Value | None, grain: int) -> None:
        ir = self.ir
        vector, lanes = ir.vector(value.type, value.lanes), value.lanes
        for pointer, inside in self._block_places(value.type, lanes, base, offset, mask, grain, WRITE):
            if inside:
                operands = [(vector, value.payload), ("ptr", pointer), ("i32", "1"), (f"<{lanes} x i1>", inside)]
                ir.intrinsic("llvm.masked.store", "void", operands, (vector, "ptr"))
            else:
                ir.line(f"store {vector} {value.payload}, ptr {pointer}, align 1")

    def _block_places(self, type: LaneType, lanes: int, base: Region, offset: Value, mask: Value | None, grain: int,
                      access: int) -> Iterator[tuple[str, str]]:
        """The host address of a block, and which lanes to touch ('' for all): where it has an end, once for a block that lies whole before
        it and once for any other."""
        ir = self.ir
        first, start = ir.emit(f"extractelement <1 x i64> {ir.far(offset)}, i64 0"), self.addressing.origin(base)
        if isinstance(base.payload, TableRegion):
            yield self._block_address(lanes, type, base, base.payload, first, mask, access), "" if mask is None else mask.payload
            return
        size, mapped = lanes * type.bytes, self.addressing.mapped(base)
        pointer = ir.emit(f"getelementptr i8, ptr {start[0]}, i64 {first}")

        def note() -> None:
            self.regions.write_note(base, str(BLOCK | size << SIZE_SHIFT), ir.emit(f"ptrtoint ptr {pointer} to i64"))
        if not mapped:
            note()
        whole, part, done = ir.labels("whole", "part", "block")
        ir.line(f"br i1 {self.addressing.room_for(first, mapped or start[1], size)}, label %{whole}, label %{part}, !prof !1")
        ir.start(whole)
        yield pointer, "" if mask is None else mask.payload
        ir.line(f"br label %{done}")
        ir.start(part)
        if mapped:
            note()
        inside = self._lanes_before(type, lanes, first, start[1], grain)
        yield pointer, inside if mask is None else ir.emit(f"and <{lanes} x i1> {inside}, {mask.payload}")
        ir.line(f"br label %{done}")
        ir.start(done)

    def _block_address(self, lanes: int, type: LaneType, base: Region, place: TableRegion, first: str, mask: Value | None,
                       access: int) -> str:
        ir = self.ir
        table, start = self.addressing.origin(base)
        address = ir.emit(f"add i64 {start}, {first}")
        self.regions.write_note(base, str(BLOCK | TABLE | lanes * type.bytes << SIZE_SHIFT), address)
        if place.canonical:
            touched = "true" if mask is None else self.masks.any_lane(lanes, mask.payload)
            canonical = self.addressing.is_canonical(address)
            self.addressing.leave_unless(ir.emit(f"or i1 {canonical}, {ir.emit(f'xor i1 {touched}, true')}"), address, access)
        return self.addressing.translate(table, address, place.bits)

    def _lanes_before(self, type: LaneType, lanes: int, first: str, size: str, grain: int) -> str:
        """The lanes of a block whose grains are whole inside a size."""
        ir = self.ir
        left = ir.intrinsic("llvm.usub.sat", "i64", [("i64", size), ("i64", first)], ("i64",))
        count = ir.emit(f"mul i64 {ir.emit(f'udiv i64 {left}, {grain}')}, {grain // type.bytes}")
        small = ir.intrinsic("llvm.umin", "i64", [("i64", count), ("i64", str(lanes))], ("i64",))
        many = ir.splat("i16", lanes, ir.emit(f"trunc i64 {small} to i16"))
        numbers = f"<{', '.join(f'i16 {lane}' for lane in range(lanes))}>"
        return ir.emit(f"icmp ult <{lanes} x i16> {numbers}, {many}")
