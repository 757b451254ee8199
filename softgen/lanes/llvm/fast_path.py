"""The inline fast paths of accesses to graphics memory: contiguous or uniform offsets, and those of a known stride.

The test costs a few instructions and keeps the rest in registers; divergent offsets are a call of the access function (access.py).
"""

from __future__ import annotations

from collections.abc import Iterator

from softgen.bits.units import DWORD
from softgen.lanes.llvm import affine
from softgen.lanes.llvm.access import CONTIGUOUS, GATHERED, SIZE_SHIFT, TABLE, UNIFORM, AccessShape
from softgen.lanes.llvm.addressing import CANONICAL_BITS, LlvmAddressing
from softgen.lanes.llvm.affine import EVERY
from softgen.lanes.llvm.memory import _every
from softgen.lanes.value import Region, Value

FARTHEST = 1 << 12  # bytes between neighbouring lanes of a known stride
HIGHEST = (1 << 31) - 1  # signed offset of 32 bits


class FastPath:
    """`for pointer in path.contiguous(): …` writes the code for contiguous offsets, `uniform()` for uniform ones; what follows, up to
    `end()`, is for all others. Every lane counts, active or not: an inactive lane elsewhere makes the access a call."""

    nearest = 0  # bytes between neighbouring lanes of a known stride

    def __init__(self, addressing: LlvmAddressing, shape: AccessShape, base: Region, offsets: Value, mask: Value | None) -> None:
        self.addressing, self.ir, self.masks = addressing, addressing.ir, addressing.masks
        self.shape, self.note, ir = shape, base.payload.note, addressing.ir
        self.bools, self.mask = f"<{shape.lanes} x i1>", _every(mask)
        self.where, self.kind = offsets.payload, shape.offset
        self.origin, self.bound = addressing.origin(base)
        self.mapped = addressing.mapped(base)
        self.bound, self.quiet = self.mapped or self.bound, shape.quiet or bool(self.mapped)
        self.affine = affine.usable(ir, self.where, self.mask)
        self.first = self.affine.base() if self.affine else ir.emit(f"extractelement <{shape.lanes} x {self.kind}> {self.where}, i64 0")
        self.far = self.first if shape.wide else ir.emit(f"zext i32 {self.first} to i64")
        (self.done,) = ir.labels("near")

    def contiguous(self) -> Iterator[str]:
        size = self.shape.size
        if self.affine:
            yield from self._known(size, self.shape.lanes * size, CONTIGUOUS)
            return
        steps = f"<{', '.join(f'{self.kind} {lane * size}' for lane in range(self.shape.lanes))}>"
        expected = self.ir.emit(f"add <{self.shape.lanes} x {self.kind}> {self._splat()}, {steps}")
        yield from self._try(expected, self.shape.lanes * size, CONTIGUOUS)

    def uniform(self) -> Iterator[str]:
        if self.affine:
            yield from self._known(0, self.shape.size, UNIFORM)
            return
        yield from self._try(self._splat(), self.shape.size, UNIFORM)

    def strided(self) -> Iterator[str]:
        """Offsets of another stride that is known: the pointer to the first lane. Of narrow lanes, only if all are active."""
        shape, known = self.shape, self.affine
        if known is None or known.stride in (0, shape.size) or not self.nearest <= known.stride <= FARTHEST:
            return
        if shape.type.bits < GATHERED and self.mask not in (EVERY, _every(None)):
            return
        yield from self._known(known.stride, (shape.lanes - 1) * known.stride + shape.size, 0)

    def anywhere(self) -> Iterator[str]:
        """Lanes anywhere in memory that cannot be missing, where a gather or scatter is one instruction: the pointers of all. Hosts take
        offsets for signed: those that are not so small are left to the call."""
        ir, lanes = self.ir, self.shape.lanes
        known = self.affine is not None and not self.affine.conditions
        if not self.mapped or known or self.shape.wide or not ir.module.has("avx512f"):
            return
        last = self.addressing.at_most(ir.emit(f"sub i64 {self.mapped}, {DWORD}"), HIGHEST)
        near = ir.emit(f"icmp ule <{lanes} x i32> {self.where}, {ir.splat('i32', lanes, ir.emit(f'trunc i64 {last} to i32'))}")
        missed = ir.emit(f"and {self.bools} {self.mask}, {ir.emit(f'xor {self.bools} {near}, splat (i1 true)')}")
        bad = ir.emit(f"or i1 {self.masks.any_lane(lanes, missed)}, {ir.emit(f'icmp ult i64 {self.mapped}, {DWORD}')}")
        good, other = ir.labels("inside", "other")
        ir.line(f"br i1 {bad}, label %{other}, label %{good}, !prof !0")
        ir.start(good)
        signed = ir.emit(f"sext <{lanes} x i32> {self.where} to <{lanes} x i64>")
        yield ir.emit(f"getelementptr i8, ptr {self.origin}, <{lanes} x i64> {signed}")
        ir.line(f"br label %{self.done}")
        ir.start(other)

    def lane_pointer(self, pointer: str, lane: int) -> str:
        assert self.affine is not None
        return self.ir.emit(f"getelementptr i8, ptr {pointer}, i64 {lane * self.affine.stride}")

    def lane_pointers(self, pointer: str) -> str:
        return self.ir.emit(f"getelementptr i8, ptr {pointer}, <{self.shape.lanes} x i64> {self._steps('i64')}")

    def _steps(self, kind: str) -> str:
        assert self.affine is not None
        return f"<{', '.join(f'{kind} {lane * self.affine.stride}' for lane in range(self.shape.lanes))}>"

    def offsets(self, value: Value) -> Value:
        """The offsets for the call."""
        return self.addressing.rematerialised(value, self.mask)

    def end(self) -> None:
        self.ir.line(f"br label %{self.done}")
        self.ir.start(self.done)

    def _splat(self) -> str:
        return self.ir.splat(self.kind, self.shape.lanes, self.first)

    def _known(self, stride: int, total: int, how: int) -> Iterator[str]:
        """Offsets of known stride: the pattern fits, or it never does."""
        assert self.affine is not None
        if self.affine.stride != stride:
            return
        good = self._inside(total, how)
        for condition in self.affine.conditions:
            good = self.ir.emit(f"and i1 {good}, {condition()}")
        yield from self._if(good, how, ", !prof !1")

    def _try(self, expected: str, total: int, how: int) -> Iterator[str]:
        ir, shape = self.ir, self.shape
        all_same = self.masks.same_lanes(shape.lanes, self.kind, self.where, expected)
        yield from self._if(ir.emit(f"and i1 {all_same}, {self._inside(total, how)}"), how)

    def _if(self, condition: str, how: int, weights: str = "") -> Iterator[str]:
        ir = self.ir
        good, other = ir.labels("so", "other")
        ir.line(f"br i1 {condition}, label %{good}, label %{other}{weights}")
        ir.start(good)
        pointer, address = self._pointer()
        self._say(how, address)
        yield pointer
        ir.line(f"br label %{self.done}")
        ir.start(other)

    def _inside(self, total: int, how: int) -> str:
        """Whether `total` bytes from the first lane on may be touched. A uniform access also needs an active lane."""
        good = self._before_the_end(total)
        if how == CONTIGUOUS or self.quiet or self.mask in (EVERY, _every(None)):
            return good
        return self.ir.emit(f"and i1 {good}, {self.masks.any_lane(self.shape.lanes, self.mask)}")

    def _before_the_end(self, total: int) -> str:
        if self.shape.table:
            return self._together(self.ir.emit(f"add i64 {self.bound}, {self.far}"), total)
        end = self.bound if self.shape.wide else self.addressing.at_most(self.bound, 1 << 32)  # 32-bit offsets wrap
        return self.addressing.room_for(self.far, end, total)

    def _together(self, address: str, total: int) -> str:
        """Whether the offsets do not wrap, and canonical addresses stay in one half of the address space."""
        ir, shape = self.ir, self.shape
        good = "true" if shape.wide else ir.emit(f"icmp ule i64 {self.far}, {(1 << 32) - total}")
        if not shape.canonical:
            return good
        half = 1 << CANONICAL_BITS - 1
        near = ir.emit(f"icmp ule i64 {ir.emit(f'and i64 {address}, {half - 1}')}, {half - total}")
        return ir.emit(f"and i1 {ir.emit(f'and i1 {good}, {near}')}, {self.addressing.is_canonical(address)}")

    def _pointer(self) -> tuple[str, str]:
        """The host's pointer to the first lane, and the address for the note."""
        ir = self.ir
        if self.shape.table:
            address = ir.emit(f"and i64 {ir.emit(f'add i64 {self.bound}, {self.far}')}, {(1 << self.shape.bits) - 1}")
            return self.addressing.translate(self.origin, address, self.shape.bits), address
        pointer = ir.emit(f"getelementptr i8, ptr {self.origin}, i64 {self.far}")
        return pointer, ir.emit(f"ptrtoint ptr {pointer} to i64")

    def _say(self, how: int, address: str) -> None:
        ir = self.ir
        if self.quiet:
            return
        mask = ir.emit(f"zext {self.shape.integer} {ir.emit(f'bitcast {self.bools} {self.mask} to {self.shape.integer}')} to i64")
        word = ir.emit(f"or i64 {mask}, {self.shape.size << SIZE_SHIFT | TABLE * self.shape.table | how}")
        for place, text in enumerate((word, address)):
            ir.line(f"store i64 {text}, ptr {ir.emit(f'getelementptr i64, ptr {self.note}, i64 {place}')}")
        if not how:
            at = ir.emit(f"getelementptr i64, ptr {self.note}, i64 2")
            ir.line(f"store <{self.shape.lanes} x i32> {self._steps('i32')}, ptr {at}, align 8")
        self.addressing.noted()
