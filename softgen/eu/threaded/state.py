"""The lane state of handlers: registers are loads and stores at pointers from the record.

A block belongs to one host thread, so inactive lanes may be written back with their old values. A region whose lanes are close together
is one load of all the bytes it covers, and a shuffle.
"""

from __future__ import annotations

from softgen.bits.units import GRF_BYTES, GRF_COUNT, QWORD
from softgen.eu.isa.instruction import Instruction
from softgen.eu.isa.rules import ExecutionRules, rules
from softgen.eu.thread.block import BLOCK_OFFSETS, ControlBlock, ThreadStatus, offset
from softgen.eu.thread.lane_state import Offsets
from softgen.eu.thread.predicate import first_channel
from softgen.eu.thread.state import READ_ONLY, FloatMode, register_sizes
from softgen.eu.threaded.record import OP, SLOTS, at
from softgen.eu.threaded.shapes import SLOT, InstructionShape
from softgen.lanes.code_machine import CodeMachine, HostPointer, Scalar
from softgen.lanes.types import LaneType, bool_, u16, u32, u64
from softgen.lanes.value import Memory, Value

CONTROL = BLOCK_OFFSETS["control"]
ACTIVE = CONTROL + offset(ControlBlock, "active")
IP, EXECUTED = CONTROL + offset(ControlBlock, "ip"), CONTROL + offset(ControlBlock, "executed")
WIDEST = 128  # bytes that are worth a load and a shuffle instead of a load for each lane
SHOWN = 8  # ip has three zero bits
ALL = ("splat (i1 true)", "splat (i1 1)")  # payloads of masks with all lanes
LEFT_TO_REFERENCE = frozenset({"tm", "cr", "ip", "sr", "tdr"})  # tm: reading it; the others: writing them


class Escape(Exception):
    """This shape has no handler: the interpreter executes it."""


class BlockState:
    """The state of one handler, whose parameters are block, op, context and executed. `extents`: bytes of each slot that it touches."""

    def __init__(self, m: CodeMachine, shape: InstructionShape, mode: FloatMode, accumulates: bool) -> None:
        self.m, self.shape, self.mode, self.accumulates = m, shape, mode, accumulates
        self.gen: float = shape.instruction.gen
        self.rules: ExecutionRules = rules(self.gen)
        self.sizes = {"mrf": self.rules.message_registers * GRF_BYTES, **dict(register_sizes(self.gen))}  # of what is not in slots
        self.extents = [0] * len(SLOTS)
        self.pointers = [self._slot_pointer(slot) for slot in range(len(SLOTS))]
        self.escapes = False
        self.indices: set[int] = set()  # binding table entries that a message names

    # -- places --------------------------------------------------------------------------------------------------------

    def field(self, name: str) -> Scalar:
        """A field of the record."""
        return self.inside(at(name)).load(u32)

    def record(self, name: str) -> HostPointer:
        """A field of the record that points to another record or to a handler."""
        return self.inside(at(name)).load_pointer()

    def inside(self, place: int) -> HostPointer:
        """A pointer into the record."""
        return self.m.pointer("op").at(place)

    def immediate(self, place: int) -> HostPointer:
        return self.inside(at("immediate") + place)

    def at(self, place: int) -> HostPointer:
        """A pointer into the block."""
        return self.m.pointer("block").at(place)

    @property
    def executed(self) -> Scalar:
        """Instructions executed in this turn, before this one."""
        return self.m.argument(u64, "executed")

    def _slot_pointer(self, slot: int) -> HostPointer:
        immediates = self.shape.immediates
        if immediates and immediates[slot] >= 0:
            return self.immediate(immediates[slot])
        return self.m.pointer("block").at(self.field(SLOTS[slot]).convert(u64))

    def _start(self, place: str, size: int, offsets: tuple[int, ...]) -> tuple[HostPointer, list[int]]:
        """A pointer, and the offsets counted from there."""
        slot = offsets[0] // SLOT
        if not slot:
            if place == "mrf" and max(offsets) + size > self.sizes[place]:
                raise Escape
            return self.at(BLOCK_OFFSETS[place]), list(offsets)
        counted = [offset - slot * SLOT for offset in offsets]
        if self.shape.immediates[slot - 1] < 0:
            self.extents[slot - 1] = max(self.extents[slot - 1], max(counted) + size)
        return self.pointers[slot - 1], counted

    def escape_if(self, condition: Scalar) -> None:
        """A side exit to the interpreter; no write may precede it."""
        self.escapes = True
        (fine,) = self.m.labels("fine")
        self.m.branch(condition, "escape", fine, likely=False)
        self.m.start(fine)

    def end(self, counts: int = 1) -> None:
        """Continue with the next record."""
        self.go_on(self.inside(OP.itemsize), self._executed(counts))

    def go_on(self, record: HostPointer, executed: Scalar | None = None, function: HostPointer | None = None) -> None:
        """Continue with another record: its handler, or `function`. By default one more instruction was executed."""
        m = self.m
        function = function or record.load_pointer()
        executed = executed or self._executed(1)
        m.tail_call(function, u64, m.pointer("block"), record, m.pointer("context"), executed)
        self._end_escapes()

    def leave(self, status: ThreadStatus, ip: Scalar | None = None) -> None:
        """Exit: the instruction was executed and the thread is at `ip` now; without `ip` it was not executed."""
        m, before = self.m, self.at(EXECUTED)
        executed = before.load(u64) + self._executed(int(ip is not None))
        before.store(executed)
        ip = ip or self.field("ip")
        self.at(IP).store(ip)
        m.give(m.number(u64, int(status)))
        self._end_escapes()

    def _executed(self, counts: int) -> Scalar:
        return self.executed + counts if counts else self.executed

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
            return self._load(type, pointer, counted)
        inside = [offset + type.bytes <= self.sizes[place] for offset in offsets]
        value = self._load(type, pointer, [offset if fine else 0 for offset, fine in zip(offsets, inside, strict=True)])
        return self.m.select(self.m.constant(bool_, [int(fits) for fits in inside]), value, self.m.like(value, 0))

    def _refresh(self, place: str) -> None:
        """Registers whose value is known without a load."""
        if place == "tm":
            raise Escape
        if place == "ip":
            shown = self.field("ip") & -SHOWN
            self.at(BLOCK_OFFSETS["ip"]).store(shown)
        elif place == "ce":
            active = self.at(ACTIVE).load(u32)
            self.at(BLOCK_OFFSETS["ce"]).store(active)

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
            inside = [offset + value.type.bytes <= self.sizes[place] for offset in offsets]
            kept = mask & self.m.constant(bool_, [int(fits) for fits in inside])
            self.m.store(value, pointer.memory(place), self.m.constant(u32, counted), kept)
            return
        self._store(value, pointer, counted, mask)

    # -- regions as vectors --------------------------------------------------------------------------------------------

    def _covered(self, type: LaneType, counted: list[int]) -> tuple[int, list[int]] | None:
        """The first byte of a vector that has all lanes, and where in it they are; None where it would be too long."""
        low = min(counted)
        if any((offset - low) % type.bytes for offset in counted) or max(counted) - low + type.bytes > WIDEST:
            return None
        return low, [(offset - low) // type.bytes for offset in counted]

    def _load(self, type: LaneType, pointer: HostPointer, counted: list[int]) -> Value:
        m, lanes = self.m, len(counted)
        covered = self._covered(type, counted)
        if covered is None:
            return m.load(type, pointer.memory("registers"), m.constant(u32, counted))
        low, places = covered
        whole = self._whole(pointer, low, type, max(places) + 1)
        return whole if places == list(range(lanes)) else m._value(type, lanes, m._shuffle(type, whole.lanes, whole.payload, places))

    def _store(self, value: Value, pointer: HostPointer, counted: list[int], mask: Value) -> None:
        """Load, select, store: later loads are forwarded from it, which a masked store would prevent."""
        m, type, lanes = self.m, value.type, value.lanes
        covered = self._covered(type, counted)
        if covered is None or len(set(counted)) != lanes:
            m.store(value, pointer.memory("registers"), m.constant(u32, counted), mask)
            self._written(pointer, 0, None)
            return
        low, places = covered
        here = pointer.at(low) if low else pointer
        count = max(places) + 1
        if places != list(range(lanes)):
            value = m.pick(value, [places.index(i) if i in places else None for i in range(count)])
            mask = m.pick(mask, [places.index(i) if i in places else lanes for i in range(count)], m.constant(bool_, 0, lanes))
        if mask.payload not in ALL:
            # Volatile, or LLVM would make a masked store of it after all.
            before = here.load_lanes(type, count, align=1, volatile=True)
            value = m.select(mask, value, before)
        here.store(value, align=1)
        self._written(pointer, low, value)

    def _whole(self, pointer: HostPointer, low: int, type: LaneType, lanes: int) -> Value:
        return (pointer.at(low) if low else pointer).load_lanes(type, lanes, align=1)

    def _written(self, pointer: HostPointer, low: int, value: Value | None) -> None:
        """A hook for streams: what was stored at an operand, None if that is not one vector."""

    # -- registers by address ------------------------------------------------------------------------------------------

    def _block(self) -> Memory:
        return self.m.pointer("block").memory("grf")

    def moved(self, offsets: Value) -> Value:
        """Addresses with the offset that was taken out of the instruction."""
        inst = self.shape.instruction
        if not self.shape.moves:
            return offsets
        slot = next(slot for slot, operand in enumerate((inst.dst, *inst.sources)) if operand is not None and operand.indirect)
        return offsets + self.m.broadcast(self.field(SLOTS[slot]).lane(), offsets.lanes)

    def check(self, type: LaneType, offsets: Value) -> None:
        """Addresses that are no registers are for the reference to complain about."""
        wrong = offsets > GRF_COUNT * GRF_BYTES - type.bytes
        self.escape_if(self.m.any_scalar(wrong))

    def _read_indirect(self, type: LaneType, offsets: Value) -> Value:
        where = self.moved(offsets)
        self.check(type, where)
        return self.m.load(type, self._block(), where)

    # -- channels and flags --------------------------------------------------------------------------------------------

    def enabled(self, instruction: Instruction) -> Value:
        m, lanes = self.m, instruction.exec_size
        if instruction.no_mask:
            return m.constant(bool_, 1, lanes)
        active = self.at(ACTIVE).load(u32)
        first = self.field("group") + first_channel(self, instruction)
        return m.mask_from_bits((active >> first).lane(), lanes)

    def _flag_register(self, first: int) -> tuple[HostPointer, Scalar, Scalar]:
        """Its pointer, its bits, and the number of the bit that is meant."""
        type = u64 if self.sizes["f"] * 8 == u64.bits else u32
        pointer = self.at(BLOCK_OFFSETS["f"])
        place = self.field("flag").convert(type)
        return pointer, pointer.load(type), place + first

    def flags(self, first: int, count: int) -> Value:
        _, bits, place = self._flag_register(first)
        found = bits.rotate_right(place)
        if count > bits.type.bits:  # groups of channels that the thread does not have: flags begin again
            found = found.convert(u64) | found.convert(u64) << bits.type.bits
        return found.mask(count)

    def write_flags(self, first: int, value: Value, mask: Value) -> None:
        pointer, bits, place = self._flag_register(first)
        kept, new = (self.m.mask_scalar(lanes, bits.type).rotate_left(place) for lanes in (mask, value & mask))
        pointer.store((bits & ~kept) | new)


def flagged(inst: Instruction) -> bool:
    """Whether an instruction in a stream has a flag in its record."""
    return bool(inst.predicate or inst.condition)


Held = list[tuple[int, Value] | None]  # by instruction: the byte of its destination from which on it stored which vector


class StreamState(BlockState):
    """One instruction of a stream, whose part of the record begins at `start`. All channels are on. `makers`: of which instructions before
    it in the same handler its operands are the results; `held` has them, and room for its own."""

    def __init__(
        self, m: CodeMachine, shape: InstructionShape, mode: FloatMode, accumulates: bool, start: int, held: Held, makers: tuple[int, ...]
    ) -> None:
        self.start, self.held, self.makers = start, held, makers
        self.fields = {"immediate": start + QWORD}
        end = start + QWORD + QWORD * (max(shape.immediates) >= 0)
        if flagged(shape.instruction):
            self.fields["flag"], end = end, end + QWORD
        self.end_of_part = end
        super().__init__(m, shape, mode, accumulates)

    def field(self, name: str) -> Scalar:
        if name in SLOTS:
            return self.inside(self.start + 2 * SLOTS.index(name)).load(u16).convert(u32)
        if name not in self.fields:
            raise Escape
        return self.inside(self.fields[name]).load(u32)

    def immediate(self, place: int) -> HostPointer:
        return self.inside(self.fields["immediate"] + place)

    def _whole(self, pointer: HostPointer, low: int, type: LaneType, lanes: int) -> Value:
        maker = self.makers[self.pointers.index(pointer)] if pointer in self.pointers else -1
        if maker >= 0 and (known := self.held[maker]) is not None:
            at, value = known
            if at == low and value.lanes * value.type.bytes == lanes * type.bytes:
                return self.m._value(type, lanes, self.m._regroup(value.type, value.lanes, type, lanes, value.payload))
        return super()._whole(pointer, low, type, lanes)

    def _written(self, pointer: HostPointer, low: int, value: Value | None) -> None:
        if pointer is self.pointers[0]:
            self.held[-1] = None if self.m.conditional() or value is None else (low, value)  # a store under a condition defines no value

    def enabled(self, instruction: Instruction) -> Value:
        return self.m.constant(bool_, 1, instruction.exec_size)


__all__ = ["BlockState", "Escape", "Held", "StreamState", "flagged"]
