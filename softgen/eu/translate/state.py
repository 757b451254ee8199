"""The lane state of a translation: registers are accesses that are expanded when the partition is known.

Channels are lanes of one mask, as many as the thread was dispatched with. Flags are four masks of sixteen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from softgen.errors import Unsupported
from softgen.eu.isa.instruction import Instruction
from softgen.eu.isa.rules import ExecutionRules, rules, writes_accumulator
from softgen.eu.thread.lane_state import Offsets
from softgen.eu.thread.predicate import FLAG, first_channel
from softgen.eu.thread.regions import _indirect, destination_offsets, lane_type
from softgen.eu.thread.state import ACCUMULATOR_DISABLE, READ_ONLY, FloatMode, float_mode, register_sizes
from softgen.eu.translate.affine import AffineRegisters
from softgen.eu.translate.flushed import FlushedRegisters
from softgen.eu.translate.inactive_lanes import by_lane
from softgen.eu.translate.liveness import Exit, FlagUse, Use
from softgen.eu.translate.registers import SAVED, TRUE, RegisterAccess, RegisterPartition
from softgen.lanes.llvm.machine import LlvmMachine
from softgen.lanes.types import LaneType, bool_, i32, u8, u16, u32, u64
from softgen.lanes.value import Value, Variable

KEPT = frozenset({"grf", "mrf", "acc", "acc_d", "acc_w", "a"})  # places that instructions may write; the rest is read where it stands
NOT_HERE = frozenset({"tm"})  # changes by itself
MASK_TYPES = frozenset({"uw", "w", "ud", "d"})  # of an immediate
SavedRegister = tuple[LaneType, tuple[int, ...]]
Renaming = Callable[[str, LaneType, tuple[int, ...]], tuple[str, tuple[int, ...]]]
SHOWN = 8  # low bits of ip that are always zero


class TranslationState:
    def __init__(self, m: LlvmMachine, gen: float, control: int, width: int, escape: Callable[[Value], None]) -> None:
        """`escape` is a side exit to the interpreter where a condition of one lane holds; no write may precede it."""
        self.m, self.gen, self.width, self.escape = m, gen, width, escape
        self.rules: ExecutionRules = rules(gen)
        self.control = control  # cr0.0 at the instruction that is being written
        self.registers = RegisterPartition(m)
        self.renamed: Renaming | None = None  # where an instruction of an earlier iteration reads its registers (pipelining.py)
        self.sizes = {"grf": 4096, "mrf": self.rules.message_registers * 32, **dict(register_sizes(gen))}
        self.affine = AffineRegisters(m)
        self.flushed = FlushedRegisters()
        self.active: Value = self.every(width)
        self._parts: dict[tuple[str, int, int], Value] = {}  # of the active channels
        self.items: list[Use | Exit] = []  # of the segment that is being written
        self.scattered = False  # something is written by address
        self.indices: set[int] = set()  # binding table entries that messages name
        self.ip = 0
        self.instruction: Instruction | None = None  # that is being written
        self.count: Callable[[], None] = lambda: None  # the instructions so far
        no = m.constant(bool_, 0, FLAG)
        self.flag = [m.variable(no) for _ in range(self.sizes["f"] * 8 // FLAG)]

    @property
    def mode(self) -> FloatMode:
        return float_mode(self.gen, self.control)

    @property
    def accumulates(self) -> bool:
        return not self.control & ACCUMULATOR_DISABLE

    def every(self, lanes: int) -> Value:
        return self.m.constant(bool_, 1, lanes)

    def none(self, lanes: int) -> Value:
        return self.m.constant(bool_, 0, lanes)

    # -- registers -----------------------------------------------------------------------------------------------------

    def read(self, place: str, type: LaneType, offsets: Offsets) -> Value:
        if isinstance(offsets, Value):
            return self._gather(place, type, offsets)
        self._check(place, type, offsets)
        if place == "f":
            return self._flag_bytes(type, offsets)
        if place == "ce" and type in (u32, i32):
            return self.m.bitcast(self.m.broadcast(self.m.bits_from_mask(self.active), len(offsets)), type)
        if place == "ip":
            return self._known(self.ip & ~(SHOWN - 1), type, offsets)
        if place == "cr" and min(offsets) < 4:  # the block has this dword at exits only
            if max(offsets) + type.bytes > 4:
                raise Unsupported("cr0.0 together with other parts of cr0 has no translation")
            return self._known(self.control, type, offsets)
        if place in NOT_HERE or place == "ce":
            raise Unsupported(f"{place} has no translation")
        if place == "a" and len(offsets) > 1 and len(set(offsets)) == 1:  # known as uniform then
            return self.m.broadcast(self.read(place, type, offsets[:1]), len(offsets))
        if place not in KEPT:
            self.registers.in_block.add(place)
        if self.renamed is not None:
            place, offsets = self.renamed(place, type, offsets)
        result = self.m.code.promise(type, len(offsets))
        self._add(RegisterAccess(place, type, offsets, result.payload))
        if place == "grf":
            self.affine.read(type, offsets, result.payload)
            if self.renamed is None:
                self.flushed.read(type, offsets, result, self._reader(len(offsets)))
        return result

    def _reader(self, lanes: int) -> str:
        """The mask of lanes that read a register; none where they are not those of the instruction's channels."""
        inst = self.instruction
        return self.enabled(inst).payload if inst is not None and lanes == inst.exec_size else ""

    def saving(self, saved: Mapping[SavedRegister, tuple[int, ...]]) -> list[tuple[Value, tuple[int, ...]]]:
        """Read general registers that are to be saved, with their places."""
        return [(self.read("grf", type, offsets), places) for (type, offsets), places in saved.items()]

    def save(self, values: list[tuple[Value, tuple[int, ...]]]) -> None:
        """Write them to their places."""
        for value, places in values:
            self._add(RegisterAccess(SAVED, value.type, places, value=value.payload))

    def _known(self, number: int, type: LaneType, offsets: tuple[int, ...]) -> Value:
        """Parts of a number that is known now."""
        raw = number.to_bytes(8, "little")
        numbers = [int.from_bytes(raw[offset : offset + type.bytes], "little") for offset in offsets]
        return self.m.bitcast(self.m.constant(type.unsigned, numbers), type)

    def write(self, place: str, value: Value, offsets: Offsets, mask: Value) -> None:
        if place in READ_ONLY:
            return
        if isinstance(offsets, Value):
            self._scatter(place, value, offsets, mask)
            return
        self._check(place, value.type, offsets)
        if place == "f":
            self._set_flag_bytes(value, offsets, mask)
        elif place not in KEPT:
            raise Unsupported(f"a write to {place} has no translation")
        elif mask.payload == TRUE or len(set(offsets)) == len(offsets):
            self._add(RegisterAccess(place, value.type, offsets, value=value.payload, mask=mask.payload))
            if place == "grf":
                self.affine.wrote(value, offsets, mask.payload)
                self.flushed.wrote(value, offsets, mask.payload)
        else:
            spans = [(min(offsets), max(offsets) + value.type.bytes)] if place == "grf" else []
            self.affine.invalidate(spans)
            self.flushed.invalidate(spans)
            for lanes in _apart(offsets):
                part, on = self.m.shuffle(value, lanes), self.m.shuffle(mask, lanes)
                self._add(RegisterAccess(place, value.type, tuple(offsets[lane] for lane in lanes), value=part.payload, mask=on.payload))

    def _add(self, access: RegisterAccess) -> None:
        access.ip = self.ip
        inst = self.instruction
        if inst is not None and not inst.no_mask and len(access.offsets) == inst.exec_size and by_lane(inst):
            access.channel = first_channel(self, inst)
            access.everyone = not access.result and access.mask == self.enabled(inst).payload
        self.registers.accesses.append(access)
        self.items.append(access)
        self.m.ir.defer(access)  # expanded when the partition is known

    def _check(self, place: str, type: LaneType, offsets: tuple[int, ...]) -> None:
        if min(offsets) < 0 or max(offsets) + type.bytes > self.sizes.get(place, 0):
            raise Unsupported(f"a register outside {place} has no translation")

    # -- by address ----------------------------------------------------------------------------------------------------

    def _reach(self, place: str, type: LaneType, offsets: Value) -> str:
        """Pointers for lanes. Addresses outside the register file are a side exit: the interpreter reports them."""
        m = self.m
        if place != "grf":
            raise Unsupported(f"{place} by address has no translation")
        self.registers.in_block.add(place)
        self.escape(m.any(offsets > self.sizes[place] - type.bytes))
        return m.pointer("block").lanes_at(m.convert(offsets, u64))

    def check_destination(self, inst: Instruction) -> None:
        """Where an address leads is checked before an instruction writes flags or the accumulator: the interpreter executes it anew."""
        if inst.dst is not None and inst.dst.indirect and (inst.condition or writes_accumulator(inst)):
            self._reach("grf", lane_type(inst.dst), _indirect(self, inst, inst.dst, destination_offsets(inst)))

    def _gather(self, place: str, type: LaneType, offsets: Value) -> Value:
        return self.m.code.gather_lanes(type, self._reach(place, type, offsets), self.every(offsets.lanes))

    def _scatter(self, place: str, value: Value, offsets: Value, mask: Value) -> None:
        m, lanes = self.m, moved_lanes(self.instruction, value.lanes)
        self.scattered = True
        self.affine.invalidate([(0, self.sizes[place])])
        self.flushed.clear()
        if not lanes:
            return
        if len(lanes) < value.lanes:
            value, mask = m.shuffle(value, lanes), m.shuffle(mask, lanes)
            offsets = m.code.one_lane(offsets, *lanes) if len(lanes) == 1 else m.shuffle(offsets, lanes)
        places = self._reach(place, value.type, offsets)
        if len(lanes) == 1 and mask.payload != TRUE:  # a load and a store cost less than a branch
            value, mask = m.select(mask, value, m.code.gather_lanes(value.type, places, self.every(1))), self.every(1)
        m.code.scatter_lanes(value, places, mask)

    # -- channels and flags --------------------------------------------------------------------------------------------

    def enabled(self, instruction: Instruction) -> Value:
        lanes = instruction.exec_size
        return self.every(lanes) if instruction.no_mask else self.channels(first_channel(self, instruction), lanes)

    def channels(self, first: int, lanes: int) -> Value:
        """Active channels from one on; those the thread was not dispatched with are off."""
        here = max(min(lanes, self.width - first), 0)
        if not here:
            return self.none(lanes)
        if self.active.payload == TRUE and here == lanes:
            return self.every(lanes)
        key = self.active.payload, first, lanes
        if key not in self._parts:  # the same mask by the same name, as long as the same channels are active
            part = self.m.slice(self.active, first, here)
            self._parts[key] = part if here == lanes else self.m.concat(part, self.none(lanes - here))
        return self._parts[key]

    def entered(self) -> None:
        """Start a segment that may be a resume point: no SSA value of before is available."""
        self._parts.clear()
        self.affine.resume_point()
        self.flushed.clear()

    def flags(self, first: int, count: int) -> Value:
        bits = [(first + channel) % (FLAG * len(self.flag)) for channel in range(count)]
        used = sorted({bit // FLAG for bit in bits})
        self.items += [FlagUse(number, False, self.ip) for number in used]
        whole = self.m.concat(*(self.flag[number].value for number in used))
        indices = [used.index(bit // FLAG) * FLAG + bit % FLAG for bit in bits]
        return whole if indices == list(range(whole.lanes)) else self.m.shuffle(whole, indices)

    def write_flags(self, first: int, value: Value, mask: Value) -> None:
        if mask.payload != TRUE:
            value = self.m.select(mask, value, self.flags(first, value.lanes))
        bits = [(first + channel) % (FLAG * len(self.flag)) for channel in range(value.lanes)]
        for number in sorted({bit // FLAG for bit in bits}):
            lanes = {bit % FLAG: channel for channel, bit in enumerate(bits) if bit // FLAG == number}
            self.items.append(FlagUse(number, len(lanes) == FLAG, self.ip))
            self.flag[number].value = self._placed(self.flag[number], value, lanes)

    def _placed(self, flag: Variable, value: Value, lanes: dict[int, int]) -> Value:
        """The flag with some of its bits replaced by lanes of a value."""
        if len(lanes) == FLAG:
            order = [lanes[bit] for bit in range(FLAG)]
            return value if order == list(range(value.lanes)) else self.m.shuffle(value, order)
        both = self.m.concat(flag.value, value)
        return self.m.shuffle(both, [FLAG + lanes[bit] if bit in lanes else bit for bit in range(FLAG)])

    def _flag_bytes(self, type: LaneType, offsets: tuple[int, ...]) -> Value:
        m = self.m
        self.items += [FlagUse(number, False, self.ip) for number in range(len(self.flag))]
        raw = m.regroup(m.concat(*(m.bits_from_mask(flag.value, u16) for flag in self.flag)), u8)
        picked = m.shuffle(raw, [offset + byte for offset in offsets for byte in range(type.bytes)])
        return m.regroup(picked, type)

    def _set_flag_bytes(self, value: Value, offsets: tuple[int, ...], mask: Value) -> None:
        m, size = self.m, value.type.bytes
        if len(offsets) != 1 or size > 4 or mask.payload != TRUE:
            raise Unsupported("such a write to a flag register has no translation")
        bits = m.convert(m.bitcast(value, value.type.unsigned), u32)
        new = m.mask_from_bits(bits, 8 * size) if size < 4 else m.mask_from_bits(bits, 32)
        self.write_flags(8 * offsets[0], new, self.every(8 * size))


def moved_lanes(inst: Instruction | None, lanes: int) -> list[int]:
    """The lanes that an instruction may write: of an smov, those with a bit in its immediate mask."""
    bits = -1
    if inst is not None and inst.opcode == "smov" and inst.exec_size == lanes and inst.sources[1].file == "imm":
        mask = inst.sources[1]
        bits = mask.immediate & (1 << lane_type(mask).bits) - 1 if mask.type in MASK_TYPES else -1
    return [lane for lane in range(lanes) if bits >> lane & 1]


def _apart(offsets: tuple[int, ...]) -> list[list[int]]:
    """Lanes in rounds without overlap within a round: of lanes at one offset, the last active one wins."""
    turns: list[list[int]] = []
    for lane, at in enumerate(offsets):
        before = sum(offset == at for offset in offsets[:lane])
        if before == len(turns):
            turns.append([])
        turns[before].append(lane)
    return turns
