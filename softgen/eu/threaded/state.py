"""A thread's block as the State that `step` writes code for: registers are loads and stores around a pointer from the record.

The block belongs to one host thread, so lanes that are not to be written may be written with what they were. Regions whose lanes stand
close together are one load of all the bytes they cover, and a shuffle.
"""

from __future__ import annotations

from softgen.bits.units import GRF_BYTES, GRF_COUNT
from softgen.eu.isa.instruction import Instruction
from softgen.eu.isa.rules import ExecutionRules, rules
from softgen.eu.thread.block import BLOCK_OFFSETS, ControlBlock, ThreadStatus, offset
from softgen.eu.thread.lane_state import Offsets
from softgen.eu.thread.predicate import first_channel
from softgen.eu.thread.state import READ_ONLY, FloatMode, register_sizes
from softgen.eu.threaded.record import OP, SLOTS, at
from softgen.eu.threaded.shapes import SLOT, Shape
from softgen.lanes.llvm import LlvmMachine
from softgen.lanes.types import LaneType, bool_, u32
from softgen.lanes.value import Memory, Value

CONTROL = BLOCK_OFFSETS["control"]
ACTIVE = CONTROL + offset(ControlBlock, "active")
IP, EXECUTED = CONTROL + offset(ControlBlock, "ip"), CONTROL + offset(ControlBlock, "executed")
WIDEST = 128  # bytes that are worth a load and a shuffle instead of a load for each lane
SHOWN = 8  # ip has three zero bits
WORD = 8  # bytes that a record of a stream is made of
LEFT_TO_REFERENCE = frozenset({"tm", "cr", "ip", "sr"})  # tm: reading it; the others: writing them


class Escape(Exception):
    """This shape has no handler: the reference executes it."""


class BlockState:
    """`%block`, `%op`, `%context` and `%executed` are the handler's arguments. `extents`: how many bytes of each slot it touches."""

    def __init__(self, m: LlvmMachine, shape: Shape, mode: FloatMode, accumulates: bool) -> None:
        self.m, self.shape, self.mode, self.accumulates = m, shape, mode, accumulates
        self.gen: float = shape.instruction.gen
        self.rules: ExecutionRules = rules(self.gen)
        self.sizes = {"grf": GRF_COUNT * GRF_BYTES, "mrf": self.rules.message_registers * GRF_BYTES, **dict(register_sizes(self.gen))}
        self.extents = [0] * len(SLOTS)
        self.pointers = [self._slot_pointer(slot) for slot in range(len(SLOTS))]
        self.escapes = False
        self.indices: set[int] = set()  # binding table entries that a message names

    # -- places --------------------------------------------------------------------------------------------------------

    def field(self, name: str, kind: str = "i32") -> str:
        """A field of the record."""
        return self.m.emit(f"load {kind}, ptr {self.inside(at(name))}")

    def inside(self, place: int) -> str:
        """A pointer into the record."""
        return self.m.emit(f"getelementptr i8, ptr %op, i64 {place}")

    def immediate(self, place: int) -> str:
        return self.inside(at("immediate") + place)

    def at(self, place: int) -> str:
        """A pointer into the block."""
        return self.m.emit(f"getelementptr i8, ptr %block, i64 {place}")

    def _slot_pointer(self, slot: int) -> str:
        immediates = self.shape.immediates
        if immediates and immediates[slot] >= 0:
            return self.immediate(immediates[slot])
        far = self.m.emit(f"zext i32 {self.field(SLOTS[slot])} to i64")
        return self.m.emit(f"getelementptr i8, ptr %block, i64 {far}")

    def _start(self, place: str, size: int, offsets: tuple[int, ...]) -> tuple[str, list[int]]:
        """A pointer, and the offsets counted from there."""
        slot = offsets[0] // SLOT
        if not slot:
            if place in ("grf", "mrf") and max(offsets) + size > self.sizes[place]:
                raise Escape
            return self.at(BLOCK_OFFSETS[place]), list(offsets)
        counted = [one - slot * SLOT for one in offsets]
        if self.shape.immediates[slot - 1] < 0:
            self.extents[slot - 1] = max(self.extents[slot - 1], max(counted) + size)
        return self.pointers[slot - 1], counted

    def escape_if(self, condition: str) -> None:
        """Leaves the instruction to the reference; nothing may have been written yet."""
        self.escapes = True
        (fine,) = self.m.labels("fine")
        self.m.line(f"br i1 {condition}, label %escape, label %{fine}, !prof !0")
        self.m.start(fine)

    def end(self, counts: int = 1) -> None:
        """Goes on with the record behind this one."""
        self.go_on(self.inside(OP.itemsize), self._executed(counts))

    def go_on(self, record: str, executed: str = "", function: str = "") -> None:
        """In another record, with its handler or the one given. If not told, one instruction more was executed."""
        m = self.m
        function, executed = function or m.emit(f"load ptr, ptr {record}"), executed or self._executed(1)
        answer = m.emit(f"musttail call i64 {function}(ptr %block, ptr {record}, ptr %context, i64 {executed})")
        m.line(f"ret i64 {answer}")
        self._end_escapes()

    def leave(self, status: ThreadStatus, ip: str | None = None) -> None:
        """The instruction was executed and the thread is at `ip` now, or it was not and is where it was."""
        m, before = self.m, self.at(EXECUTED)
        executed = m.emit(f"add i64 {m.emit(f'load i64, ptr {before}')}, {self._executed(int(ip is not None))}")
        m.line(f"store i64 {executed}, ptr {before}")
        m.line(f"store i32 {ip or self.field('ip')}, ptr {self.at(IP)}")
        m.line(f"ret i64 {int(status)}")
        self._end_escapes()

    def _executed(self, counts: int) -> str:
        return self.m.emit(f"add i64 %executed, {counts}") if counts else "%executed"

    def _end_escapes(self) -> None:
        if self.escapes:
            self.escapes = False
            self.m.start("escape")
            self.leave(ThreadStatus.ESCAPE)

    # -- registers -----------------------------------------------------------------------------------------------------

    def read(self, place: str, type: LaneType, offsets: Offsets) -> Value:
        if isinstance(offsets, Value):
            return self._read_indirect(type, offsets)
        self._refresh(place)
        pointer, counted = self._start(place, type.bytes, offsets)
        if offsets[0] >= SLOT or max(offsets) + type.bytes <= self.sizes[place]:
            return self.m._value(type, len(counted), self._load(type, pointer, counted))
        inside = [one + type.bytes <= self.sizes[place] for one in offsets]
        found = self._load(type, pointer, [one if fine else 0 for one, fine in zip(offsets, inside, strict=True)])
        value = self.m._value(type, len(offsets), found)
        return self.m.select(self.m.constant(bool_, [int(one) for one in inside]), value, self.m.like(value, 0))

    def _refresh(self, place: str) -> None:
        """Registers that show what is known elsewhere."""
        if place == "tm":
            raise Escape
        m = self.m
        if place == "ip":
            shown = m.emit(f"and i32 {self.field('ip')}, {-SHOWN}")
            m.line(f"store i32 {shown}, ptr {self.at(BLOCK_OFFSETS['ip'])}")
        elif place == "ce":
            m.line(f"store i32 {m.emit(f'load i32, ptr {self.at(ACTIVE)}')}, ptr {self.at(BLOCK_OFFSETS['ce'])}")

    def write(self, place: str, value: Value, offsets: Offsets, mask: Value) -> None:
        if place in READ_ONLY:
            return
        if place in LEFT_TO_REFERENCE:
            raise Escape
        if isinstance(offsets, Value):
            self.m.store(value, self._block(), self.moved(offsets), mask)
            return
        pointer, counted = self._start(place, value.type.bytes, offsets)
        if offsets[0] < SLOT and max(offsets) + value.type.bytes > self.sizes[place]:
            inside = [one + value.type.bytes <= self.sizes[place] for one in offsets]
            kept = mask & self.m.constant(bool_, [int(one) for one in inside])
            self.m.store(value, Memory(self.m, (pointer, ""), place, False), self.m.constant(u32, counted), kept)
            return
        self._store(value, pointer, counted, mask)

    # -- regions as vectors --------------------------------------------------------------------------------------------

    def _covered(self, type: LaneType, counted: list[int]) -> tuple[int, list[int]] | None:
        """The first byte of a vector that has all lanes, and where in it they are; None where it would be too long."""
        low = min(counted)
        if any((one - low) % type.bytes for one in counted) or max(counted) - low + type.bytes > WIDEST:
            return None
        return low, [(one - low) // type.bytes for one in counted]

    def _load(self, type: LaneType, pointer: str, counted: list[int]) -> str:
        m, lanes = self.m, len(counted)
        covered = self._covered(type, counted)
        if covered is None:
            memory = Memory(m, (pointer, ""), "registers", False)
            return str(m.load(type, memory, m.constant(u32, counted)).payload)
        low, places = covered
        count = max(places) + 1
        whole = self._whole(pointer, low, m.vector(type, count), count * type.bytes)
        if places == list(range(lanes)):
            return whole
        return str(m._shuffle(type, count, whole, places))

    def _store(self, value: Value, pointer: str, counted: list[int], mask: Value) -> None:
        """Load, choose, store: what follows can read it at once, which a store under a mask would hold up."""
        m, type, lanes = self.m, value.type, value.lanes
        covered = self._covered(type, counted)
        if covered is None or len(set(counted)) != lanes:
            m.store(value, Memory(m, (pointer, ""), "registers", False), m.constant(u32, counted), mask)
            self._written(pointer, 0, "", 0, "")
            return
        low, places = covered
        here = m.emit(f"getelementptr i8, ptr {pointer}, i64 {low}") if low else pointer
        count = max(places) + 1
        vector = m.vector(type, count)
        stored, kept = str(value.payload), str(mask.payload)
        if places != list(range(lanes)):
            back = [places.index(one) if one in places else None for one in range(count)]
            stored = self._spread(m.vector(type, lanes), stored, "poison", back, lanes)
            kept = self._spread(f"<{lanes} x i1>", kept, "zeroinitializer", back, lanes)
        if kept not in ("splat (i1 true)", "splat (i1 1)"):
            # Volatile, lest LLVM makes a store under a mask of it after all.
            before = m.emit(f"load volatile {vector}, ptr {here}, align 1")
            stored = m.emit(f"select <{count} x i1> {kept}, {vector} {stored}, {vector} {before}")
        m.line(f"store {vector} {stored}, ptr {here}, align 1")
        self._written(pointer, low, vector, count * type.bytes, stored)

    def _whole(self, pointer: str, low: int, vector: str, size: int) -> str:
        here = self.m.emit(f"getelementptr i8, ptr {pointer}, i64 {low}") if low else pointer
        return self.m.emit(f"load {vector}, ptr {here}, align 1")

    def _written(self, pointer: str, low: int, vector: str, size: int, value: str) -> None:
        pass

    def _spread(self, vector: str, value: str, rest: str, back: list[int | None], lanes: int) -> str:
        order = ", ".join(f"i32 {lanes if one is None else one}" for one in back)
        return self.m.emit(f"shufflevector {vector} {value}, {vector} {rest}, <{len(back)} x i32> <{order}>")

    # -- registers by address ------------------------------------------------------------------------------------------

    def _block(self) -> Memory:
        return Memory(self.m, ("%block", ""), "grf", False)

    def moved(self, offsets: Value) -> Value:
        """Addresses with the offset that was taken out of the instruction."""
        one = self.shape.instruction
        if not self.shape.moves:
            return offsets
        slot = next(slot for slot, operand in enumerate((one.dst, *one.sources)) if operand is not None and operand.indirect)
        m = self.m
        given = m._value(u32, 1, m.emit(f"insertelement <1 x i32> poison, i32 {self.field(SLOTS[slot])}, i64 0"))
        return offsets + m.broadcast(given, offsets.lanes)

    def check(self, type: LaneType, offsets: Value) -> None:
        """Addresses that are no registers are for the reference to complain about."""
        wrong = offsets > GRF_COUNT * GRF_BYTES - type.bytes
        self.escape_if(self.m.any_lane(wrong.lanes, str(wrong.payload)))

    def _read_indirect(self, type: LaneType, offsets: Value) -> Value:
        where = self.moved(offsets)
        self.check(type, where)
        return self.m.load(type, self._block(), where)

    # -- channels and flags --------------------------------------------------------------------------------------------

    def enabled(self, instruction: Instruction) -> Value:
        m, lanes = self.m, instruction.exec_size
        if instruction.no_mask:
            return m.constant(bool_, 1, lanes)
        active = m.emit(f"load i32, ptr {self.at(ACTIVE)}")
        first = m.emit(f"add i32 {self.field('group')}, {first_channel(self, instruction)}")
        bits = m.emit(f"lshr i32 {active}, {first}")
        return m.mask_from_bits(m._value(u32, 1, m.emit(f"insertelement <1 x i32> poison, i32 {bits}, i64 0")), lanes)

    def _flag_register(self, first: int) -> tuple[str, str, str, str]:
        """Type, pointer, all bits, and which of them is meant."""
        m, kind = self.m, f"i{self.sizes['f'] * 8}"
        pointer = self.at(BLOCK_OFFSETS["f"])
        place = self.field("flag")
        if kind != "i32":
            place = m.emit(f"zext i32 {place} to {kind}")
        return kind, pointer, m.emit(f"load {kind}, ptr {pointer}"), m.emit(f"add {kind} {place}, {first}")

    def flags(self, first: int, count: int) -> Value:
        m = self.m
        kind, _, bits, place = self._flag_register(first)
        turned = m.call("llvm.fshr", kind, [(kind, bits), (kind, bits), (kind, place)], (kind,))
        if kind != f"i{count}":
            turned = m.emit(f"trunc {kind} {turned} to i{count}")
        return m._value(bool_, count, m.emit(f"bitcast i{count} {turned} to <{count} x i1>"))

    def write_flags(self, first: int, value: Value, mask: Value) -> None:
        m, lanes = self.m, value.lanes
        kind, pointer, bits, place = self._flag_register(first)
        turned = []
        for one in (mask, value & mask):
            wide = m.emit(f"bitcast <{lanes} x i1> {one.payload} to i{lanes}")
            if kind != f"i{lanes}":
                wide = m.emit(f"zext i{lanes} {wide} to {kind}")
            turned.append(m.call("llvm.fshl", kind, [(kind, wide), (kind, wide), (kind, place)], (kind,)))
        rest = m.emit(f"and {kind} {bits}, {m.emit(f'xor {kind} {turned[0]}, -1')}")
        m.line(f"store {kind} {m.emit(f'or {kind} {rest}, {turned[1]}')}, ptr {pointer}")


def flagged(one: Instruction) -> bool:
    """Whether an instruction in a stream has a flag in its record."""
    return bool(one.predicate or one.condition)


Held = list[tuple[int, int, str, str] | None]  # by instruction: where in its destination it wrote how many bytes, as what, and these


class StreamState(BlockState):
    """One instruction of a stream, whose part of the record begins at `start`. All channels are on. `makers`: of which instructions before
    it in the same handler its operands are the results; `held` has them, and room for its own."""

    def __init__(
        self, m: LlvmMachine, shape: Shape, mode: FloatMode, accumulates: bool, start: int, held: Held, makers: tuple[int, ...]
    ) -> None:
        self.start, self.held, self.makers = start, held, makers
        self.fields = {"immediate": start + WORD}
        behind = start + WORD + WORD * (max(shape.immediates) >= 0)
        if flagged(shape.instruction):
            self.fields["flag"], behind = behind, behind + WORD
        self.behind = behind
        super().__init__(m, shape, mode, accumulates)

    def field(self, name: str, kind: str = "i32") -> str:
        m = self.m
        if name in SLOTS:
            return m.emit(f"zext i16 {m.emit(f'load i16, ptr {self.inside(self.start + 2 * SLOTS.index(name))}')} to i32")
        if name not in self.fields:
            raise Escape
        return m.emit(f"load {kind}, ptr {self.inside(self.fields[name])}")

    def immediate(self, place: int) -> str:
        return self.inside(self.fields["immediate"] + place)

    def _whole(self, pointer: str, low: int, vector: str, size: int) -> str:
        maker = self.makers[self.pointers.index(pointer)] if pointer in self.pointers else -1
        if maker >= 0 and (known := self.held[maker]) is not None and known[:2] == (low, size):
            _, _, kind, value = known
            return value if kind == vector else self.m.emit(f"bitcast {kind} {value} to {vector}")
        return super()._whole(pointer, low, vector, size)

    def _written(self, pointer: str, low: int, vector: str, size: int, value: str) -> None:
        if pointer == self.pointers[0]:
            self.held[-1] = None if self.m.open else (low, size, vector, value)  # what a condition decides on is no value for all

    def enabled(self, instruction: Instruction) -> Value:
        return self.m.constant(bool_, 1, instruction.exec_size)


__all__ = ["BlockState", "Escape", "Held", "StreamState", "flagged"]
