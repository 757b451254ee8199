"""The inline fast paths of accesses to graphics memory: contiguous or uniform offsets, and those of a known stride.

The test costs a few instructions and keeps the rest in registers; divergent offsets are a call of the access function (llvm_access.py).
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

    def __init__(self, m: LlvmAddressing, shape: AccessShape, base: Region, offsets: Value, mask: Value | None) -> None:
        self.m, self.shape, self.note = m, shape, base.payload.note
        self.bools, self.mask = f"<{shape.lanes} x i1>", _every(mask)
        self.where, self.kind = offsets.payload, shape.offset
        self.origin, self.bound = m._origin(base)
        self.mapped = m._mapped(base)
        self.bound, self.quiet = self.mapped or self.bound, shape.quiet or bool(self.mapped)
        self.affine = affine.usable(m, self.where, self.mask)
        self.first = self.affine.base() if self.affine else m.emit(f"extractelement <{shape.lanes} x {self.kind}> {self.where}, i64 0")
        self.far = self.first if shape.wide else m.emit(f"zext i32 {self.first} to i64")
        (self.done,) = m.labels("near")

    def contiguous(self) -> Iterator[str]:
        size = self.shape.size
        if self.affine:
            yield from self._known(size, self.shape.lanes * size, CONTIGUOUS)
            return
        steps = f"<{', '.join(f'{self.kind} {lane * size}' for lane in range(self.shape.lanes))}>"
        expected = self.m.emit(f"add <{self.shape.lanes} x {self.kind}> {self._splat()}, {steps}")
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
        m, lanes = self.m, self.shape.lanes
        known = self.affine is not None and not self.affine.conditions
        if not self.mapped or known or self.shape.wide or not m.module.has("avx512f"):
            return
        last = m.at_most(m.emit(f"sub i64 {self.mapped}, {DWORD}"), HIGHEST)
        near = m.emit(f"icmp ule <{lanes} x i32> {self.where}, {m._splat('i32', lanes, m.emit(f'trunc i64 {last} to i32'))}")
        missed = m.emit(f"and {self.bools} {self.mask}, {m.emit(f'xor {self.bools} {near}, splat (i1 true)')}")
        bad = m.emit(f"or i1 {m.any_lane(lanes, missed)}, {m.emit(f'icmp ult i64 {self.mapped}, {DWORD}')}")
        good, other = m.labels("inside", "other")
        m.line(f"br i1 {bad}, label %{other}, label %{good}, !prof !0")
        m.start(good)
        signed = m.emit(f"sext <{lanes} x i32> {self.where} to <{lanes} x i64>")
        yield m.emit(f"getelementptr i8, ptr {self.origin}, <{lanes} x i64> {signed}")
        m.line(f"br label %{self.done}")
        m.start(other)

    def lane_pointer(self, pointer: str, lane: int) -> str:
        assert self.affine is not None
        return self.m.emit(f"getelementptr i8, ptr {pointer}, i64 {lane * self.affine.stride}")

    def lane_pointers(self, pointer: str) -> str:
        return self.m.emit(f"getelementptr i8, ptr {pointer}, <{self.shape.lanes} x i64> {self._steps('i64')}")

    def _steps(self, kind: str) -> str:
        assert self.affine is not None
        return f"<{', '.join(f'{kind} {lane * self.affine.stride}' for lane in range(self.shape.lanes))}>"

    def offsets(self, value: Value) -> Value:
        """The offsets for the call."""
        return self.m.rematerialised(value, self.mask)

    def end(self) -> None:
        self.m.line(f"br label %{self.done}")
        self.m.start(self.done)

    def _splat(self) -> str:
        return self.m._splat(self.kind, self.shape.lanes, self.first)

    def _known(self, stride: int, total: int, how: int) -> Iterator[str]:
        """Offsets of known stride: the pattern fits, or it never does."""
        assert self.affine is not None
        if self.affine.stride != stride:
            return
        good = self._inside(total, how)
        for condition in self.affine.conditions:
            good = self.m.emit(f"and i1 {good}, {condition()}")
        yield from self._if(good, how, ", !prof !1")

    def _try(self, expected: str, total: int, how: int) -> Iterator[str]:
        m, shape = self.m, self.shape
        all_same = m.same_lanes(shape.lanes, self.kind, self.where, expected)
        yield from self._if(m.emit(f"and i1 {all_same}, {self._inside(total, how)}"), how)

    def _if(self, condition: str, how: int, weights: str = "") -> Iterator[str]:
        m = self.m
        good, other = m.labels("so", "other")
        m.line(f"br i1 {condition}, label %{good}, label %{other}{weights}")
        m.start(good)
        pointer, address = self._pointer()
        self._say(how, address)
        yield pointer
        m.line(f"br label %{self.done}")
        m.start(other)

    def _inside(self, total: int, how: int) -> str:
        """Whether `total` bytes from the first lane on may be touched. A uniform access also needs an active lane."""
        good = self._before_the_end(total)
        if how == CONTIGUOUS or self.quiet or self.mask in (EVERY, _every(None)):
            return good
        return self.m.emit(f"and i1 {good}, {self.m.any_lane(self.shape.lanes, self.mask)}")

    def _before_the_end(self, total: int) -> str:
        m = self.m
        if self.shape.table:
            return self._together(m.emit(f"add i64 {self.bound}, {self.far}"), total)
        return m.room_for(self.far, self.bound if self.shape.wide else m.at_most(self.bound, 1 << 32), total)  # 32-bit offsets wrap

    def _together(self, address: str, total: int) -> str:
        """Whether the offsets do not wrap, and canonical addresses stay in one half of the address space."""
        m, shape = self.m, self.shape
        good = "true" if shape.wide else m.emit(f"icmp ule i64 {self.far}, {(1 << 32) - total}")
        if not shape.canonical:
            return good
        half = 1 << CANONICAL_BITS - 1
        near = m.emit(f"icmp ule i64 {m.emit(f'and i64 {address}, {half - 1}')}, {half - total}")
        return m.emit(f"and i1 {m.emit(f'and i1 {good}, {near}')}, {m.is_canonical(address)}")

    def _pointer(self) -> tuple[str, str]:
        """The host's pointer to the first lane, and the address for the note."""
        m = self.m
        if self.shape.table:
            address = m.emit(f"and i64 {m.emit(f'add i64 {self.bound}, {self.far}')}, {(1 << self.shape.bits) - 1}")
            return m.translate(self.origin, address, self.shape.bits), address
        pointer = m.emit(f"getelementptr i8, ptr {self.origin}, i64 {self.far}")
        return pointer, m.emit(f"ptrtoint ptr {pointer} to i64")

    def _say(self, how: int, address: str) -> None:
        if self.quiet:
            return
        m = self.m
        mask = m.emit(f"zext {self.shape.integer} {m.emit(f'bitcast {self.bools} {self.mask} to {self.shape.integer}')} to i64")
        word = m.emit(f"or i64 {mask}, {self.shape.size << SIZE_SHIFT | TABLE * self.shape.table | how}")
        for place, text in enumerate((word, address)):
            m.line(f"store i64 {text}, ptr {m.emit(f'getelementptr i64, ptr {self.note}, i64 {place}')}")
        if not how:
            at = m.emit(f"getelementptr i64, ptr {self.note}, i64 2")
            m.line(f"store <{self.shape.lanes} x i32> {self._steps('i32')}, ptr {at}, align 8")
        m.noted()
