"""Loads, stores and atomics of the LLVM machine.

Lanes that are out of bounds are masked off; the first of them in program order is kept in the fault words at the start of the arguments:
kind (0 for none, or a place in FAULTS), byte offset, number of the memory. The program goes on with zeros in these lanes.
A memory that is not checked has no size: who made it answers for it (a guard page, or offsets known when the program was built).
"""

from __future__ import annotations

from typing import Any

from softgen.lanes.llvm.mask import LlvmMasks
from softgen.lanes.llvm.text import LlvmText
from softgen.lanes.types import LaneType, u64
from softgen.lanes.value import Memory, Value

FAULTS = ("", "read", "write", "atomic", "misaligned")
FAULT_WORDS = 3
_RMW = {"exchange": "xchg", "add": "add", "sub": "sub", "and": "and", "or": "or", "xor": "xor"}


def _every(mask: Value | None) -> str:
    return "splat (i1 true)" if mask is None else str(mask.payload)


class LlvmMemory:
    """Accesses to a program's own memories. The payload of one is its pointer and, if it is checked, its size (an i64)."""

    def __init__(self, ir: LlvmText, masks: LlvmMasks) -> None:
        self.ir, self.masks = ir, masks

    def _inside(self, base: Memory, kind: str, lanes: int, size: int, offsets: str, mask: str) -> str:
        """The mask without the lanes out of bounds, which are a fault."""
        ir = self.ir
        if not base.checked:
            return mask
        vector, bools, (_, whole) = f"<{lanes} x i64>", f"<{lanes} x i1>", base.payload
        last = ir.emit(f"sub i64 {whole}, {size}")
        fits = ir.splat("i1", lanes, ir.emit(f"icmp uge i64 {whole}, {size}"))
        below = ir.emit(f"icmp ule {vector} {offsets}, {ir.splat('i64', lanes, last)}")
        return self._keep(base, kind, lanes, offsets, mask, ir.emit(f"and {bools} {below}, {fits}"))

    def _keep(self, base: Memory, kind: str, lanes: int, offsets: str, mask: str, good: str) -> str:
        """The lanes of the mask that are good; the lowest of the others is the fault, if there was none yet."""
        ir = self.ir
        bools = f"<{lanes} x i1>"
        bad = ir.emit(f"and {bools} {mask}, {ir.emit(f'xor {bools} {good}, splat (i1 true)')}")
        fault, first, fine = ir.labels("fault", "first", "fine")
        ir.line(f"br i1 {self.masks.any_lane(lanes, bad)}, label %{fault}, label %{fine}, !prof !0")
        ir.start(fault)
        before = ir.emit("load i64, ptr %arguments")
        ir.line(f"br i1 {ir.emit(f'icmp eq i64 {before}, 0')}, label %{first}, label %{fine}")
        ir.start(first)
        bits = ir.emit(f"bitcast {bools} {bad} to i{lanes}")
        lane = ir.intrinsic("llvm.cttz", f"i{lanes}", [(f"i{lanes}", bits), ("i1", "false")], (f"i{lanes}",))
        offset = ir.emit(f"extractelement <{lanes} x i64> {offsets}, i{lanes} {lane}")
        for place, word in enumerate((str(FAULTS.index(kind)), offset, str(base.number))):
            ir.line(f"store i64 {word}, ptr {ir.emit(f'getelementptr i64, ptr %arguments, i64 {place}')}")
        ir.line(f"br label %{fine}")
        ir.start(fine)
        return ir.emit(f"and {bools} {mask}, {good}")

    def _places(self, base: Memory, lanes: int, offsets: str) -> str:
        return self.ir.emit(f"getelementptr i8, ptr {base.payload[0]}, <{lanes} x i64> {offsets}")

    # -- each lane from its own place --------------------------------------------------------------------------------------

    def load(self, type: LaneType, base: Memory, offsets: Value, mask: Value | None) -> Any:
        ir = self.ir
        lanes, far = offsets.lanes, ir.far(offsets)
        inside = self._inside(base, "read", lanes, type.bytes, far, _every(mask))
        vector, places = ir.vector(type, lanes), f"<{lanes} x ptr>"
        operands = [(places, self._places(base, lanes, far)), ("i32", "1"), (f"<{lanes} x i1>", inside), (vector, "zeroinitializer")]
        return ir.intrinsic("llvm.masked.gather", vector, operands, (vector, places))

    def store(self, value: Value, base: Memory, offsets: Value, mask: Value | None) -> None:
        ir = self.ir
        lanes, far = offsets.lanes, ir.far(offsets)
        inside = self._inside(base, "write", lanes, value.type.bytes, far, _every(mask))
        vector, places = ir.vector(value.type, lanes), f"<{lanes} x ptr>"
        operands = [(vector, value.payload), (places, self._places(base, lanes, far)), ("i32", "1"), (f"<{lanes} x i1>", inside)]
        ir.intrinsic("llvm.masked.scatter", "void", operands, (vector, places))

    # -- contiguous ------------------------------------------------------------------------------------------------------------

    def _start_of_block(self, type: LaneType, lanes: int, base: Memory, kind: str, offset: Value, mask: Value | None) -> tuple[str, str]:
        """Pointer to the first lane, and the mask of lanes to touch (empty for all)."""
        ir = self.ir
        far = ir.far(offset)
        first = ir.emit(f"extractelement <1 x i64> {far}, i64 0")
        pointer = ir.emit(f"getelementptr i8, ptr {base.payload[0]}, i64 {first}")
        if not base.checked:
            return pointer, "" if mask is None else mask.payload
        steps = ir.constants(u64, [lane * type.bytes for lane in range(lanes)])
        offsets = ir.emit(f"add <{lanes} x i64> {ir.splat('i64', lanes, first)}, {steps}")
        return pointer, self._inside(base, kind, lanes, type.bytes, offsets, _every(mask))

    def load_block(self, type: LaneType, lanes: int, base: Memory, offset: Value, mask: Value | None) -> Any:
        ir = self.ir
        vector = ir.vector(type, lanes)
        pointer, inside = self._start_of_block(type, lanes, base, "read", offset, mask)
        if not inside:
            return ir.emit(f"load {vector}, ptr {pointer}, align 1")
        operands = [("ptr", pointer), ("i32", "1"), (f"<{lanes} x i1>", inside), (vector, "zeroinitializer")]
        return ir.intrinsic("llvm.masked.load", vector, operands, (vector, "ptr"))

    def store_block(self, value: Value, base: Memory, offset: Value, mask: Value | None) -> None:
        ir = self.ir
        vector, lanes = ir.vector(value.type, value.lanes), value.lanes
        pointer, inside = self._start_of_block(value.type, lanes, base, "write", offset, mask)
        if not inside:
            ir.line(f"store {vector} {value.payload}, ptr {pointer}, align 1")
            return
        operands = [(vector, value.payload), ("ptr", pointer), ("i32", "1"), (f"<{lanes} x i1>", inside)]
        ir.intrinsic("llvm.masked.store", "void", operands, (vector, "ptr"))

    # -- atomics -------------------------------------------------------------------------------------------------------------------

    def atomic(self, op: str, type: LaneType, base: Memory, offsets: Value, operands: list[Any], mask: Value | None) -> Any:
        ir = self.ir
        lanes, far, element = offsets.lanes, ir.far(offsets), ir.element(type)
        inside = self._inside(base, "atomic", lanes, type.bytes, far, _every(mask))
        rest = ir.emit(f"and <{lanes} x i64> {far}, splat (i64 {type.bytes - 1})")
        aligned = ir.emit(f"icmp eq <{lanes} x i64> {rest}, zeroinitializer")
        active = self._keep(base, "misaligned", lanes, far, inside, aligned)
        vector, places = ir.vector(type, lanes), self._places(base, lanes, far)
        old = ir.place(vector)
        ir.line(f"store {vector} zeroinitializer, ptr {old}")
        for lane in range(lanes):
            act, skip = ir.labels("act", "skip")
            ir.line(f"br i1 {ir.emit(f'extractelement <{lanes} x i1> {active}, i64 {lane}')}, label %{act}, label %{skip}")
            ir.start(act)
            place = ir.emit(f"extractelement <{lanes} x ptr> {places}, i64 {lane}")
            scalars = [ir.emit(f"extractelement {vector} {operand}, i64 {lane}") for operand in operands]
            found = atomic_lane(ir, op, type, place, scalars)
            changed = ir.emit(f"insertelement {vector} {ir.emit(f'load {vector}, ptr {old}')}, {element} {found}, i64 {lane}")
            ir.line(f"store {vector} {changed}, ptr {old}")
            ir.line(f"br label %{skip}")
            ir.start(skip)
        return ir.emit(f"load {vector}, ptr {old}")


def atomic_lane(ir: LlvmText, op: str, type: LaneType, place: str, operands: list[str]) -> str:
    """The atomic of one lane on the host; gives what was there."""
    element = ir.element(type)
    if op == "compare_exchange":
        pair = ir.emit(f"cmpxchg ptr {place}, {element} {operands[0]}, {element} {operands[1]} seq_cst seq_cst, align {type.bytes}")
        return ir.emit(f"extractvalue {{ {element}, i1 }} {pair}, 0")
    name = _RMW.get(op) or (op if type.is_signed else f"u{op}")
    return ir.emit(f"atomicrmw {name} ptr {place}, {element} {operands[0]} seq_cst, align {type.bytes}")


def plain_lane(ir: LlvmText, op: str, type: LaneType, place: str, operands: list[str]) -> str:
    """The atomic of one lane as load and store, where no other thread can change the memory meanwhile."""
    element = ir.element(type)
    old = ir.emit(f"load {element}, ptr {place}, align {type.bytes}")
    if op == "compare_exchange":
        same = ir.emit(f"icmp eq {element} {old}, {operands[0]}")
        new = ir.emit(f"select i1 {same}, {element} {operands[1]}, {element} {old}")
    elif op in ("min", "max"):
        new = ir.intrinsic(f"llvm.{'s' if type.is_signed else 'u'}{op}", element, [(element, old), (element, operands[0])], (element,))
    else:
        new = operands[0] if op == "exchange" else ir.emit(f"{_RMW[op]} {element} {old}, {operands[0]}")
    ir.line(f"store {element} {new}, ptr {place}, align {type.bytes}")
    return old
