"""Masks of the LLVM machine on hosts without mask registers.

Vectors of i1 are best where a host has registers for them, and inside a basic block. LLVM takes those of NEON apart where they leave
a block (a general register for each lane), and where they are made of the bits of an integer. There they are vectors of bytes instead, all
ones or zero.
"""

from __future__ import annotations

from softgen.lanes.llvm.text import LlvmText
from softgen.lanes.types import bool_
from softgen.lanes.value import Value

YES, NO = "splat (i1 1)", "splat (i1 0)"  # masks that are known; programs that look at them see less work
BYTES = 16  # of a vector register
ZEROS = "@zeros"


class LlvmMasks:
    """Masks as bytes and as bits."""

    def __init__(self, ir: LlvmText) -> None:
        self.ir = ir

    def mask_bytes(self, lanes: int, mask: str) -> str:
        """A mask as bytes. LLVM must take them as they are, as an empty piece of assembly may have changed them: it would move the
        extension behind the next phi."""
        ir = self.ir
        many, part = f"<{lanes} x i8>", f"<{BYTES} x i8>"
        held = ir.emit(f"sext <{lanes} x i1> {mask} to {many}")
        if mask in (YES, NO):
            return held
        starts = range(0, lanes, BYTES)
        pieces = [held] if lanes == BYTES else [self._bytes(many, held, "poison", range(start, start + BYTES)) for start in starts]
        pieces = [ir.emit(f'call {part} asm "", "=w,0"({part} {piece})') for piece in pieces]
        if lanes == BYTES:
            return pieces[0]
        low, high = pieces
        return self._bytes(part, low, high, range(lanes))

    def from_mask_bytes(self, lanes: int, held: str) -> str:
        return self.ir.emit(f"icmp slt <{lanes} x i8> {held}, zeroinitializer")

    def mask_of_bits(self, lanes: int, bits: str) -> str:
        """The mask whose lane i is bit i of an integer."""
        ir = self.ir
        if not ir.module.neon or lanes % 8:
            return ir.emit(f"bitcast i{lanes} {bits} to <{lanes} x i1>")
        many, few = f"<{lanes} x i8>", f"<{lanes // 8} x i8>"
        spread = self._bytes(few, ir.emit(f"bitcast i{lanes} {bits} to {few}"), "poison", [lane // 8 for lane in range(lanes)])
        powers = ", ".join(f"i8 {1 << lane % 8}" for lane in range(lanes))
        return ir.emit(f"icmp ne {many} {ir.emit(f'and {many} {spread}, <{powers}>')}, zeroinitializer")

    def across_blocks(self, mask: Value) -> Value:
        """The same mask, for use in other basic blocks."""
        if mask.payload in (YES, NO) or not self.ir.module.masks_in_bytes(bool_, mask.lanes):
            return mask
        held = self.from_mask_bytes(mask.lanes, self.mask_bytes(mask.lanes, mask.payload))
        return Value(mask.machine, bool_, mask.lanes, held)

    def same_lanes(self, lanes: int, kind: str, a: str, b: str) -> str:
        """Whether two vectors of integers are the same."""
        ir = self.ir
        vector = f"<{lanes} x {kind}>"
        if ir.module.neon:
            apart = ir.emit(f"xor {vector} {a}, {b}")
            return ir.emit(f"icmp eq {kind} {ir.intrinsic('llvm.vector.reduce.or', kind, [(vector, apart)], (vector,))}, 0")
        same = ir.emit(f"icmp eq {vector} {a}, {b}")
        return ir.emit(f"icmp eq i{lanes} {ir.emit(f'bitcast <{lanes} x i1> {same} to i{lanes}')}, -1")

    def any_lane(self, lanes: int, mask: str) -> str:
        ir = self.ir
        if not ir.module.neon or lanes not in (BYTES, 2 * BYTES):
            bits = ir.emit(f"bitcast <{lanes} x i1> {mask} to i{lanes}")
            return ir.emit(f"icmp ne i{lanes} {bits}, 0")
        bools, part = f"<{lanes} x i1>", f"<{BYTES} x i8>"
        if lanes > BYTES:
            halves = [self._bytes(bools, mask, "poison", range(start, start + BYTES)) for start in (0, BYTES)]
            mask = ir.emit(f"or <{BYTES} x i1> {halves[0]}, {halves[1]}")
        held = ir.emit(f"sext <{BYTES} x i1> {mask} to {part}")
        most = ir.intrinsic("llvm.aarch64.neon.umaxv", "i32", [(part, held)], ("i32", part))
        return ir.emit(f"icmp ne i32 {most}, 0")

    def _bytes(self, kind: str, a: str, b: str, order: range | list[int]) -> str:
        places = ", ".join(f"i32 {place}" for place in order)
        return self.ir.emit(f"shufflevector {kind} {a}, {kind} {b}, <{len(order)} x i32> <{places}>")

    def zeros(self) -> str:
        """A pointer to zeros."""
        self.ir.declared[ZEROS] = f"{ZEROS} = internal unnamed_addr constant [{BYTES} x i8] zeroinitializer"
        return ZEROS
