"""Shapes: instructions without their register numbers, immediates, flag registers and quarters, which their records hold.

A shape is itself an Instruction, so that `step` runs on it. Where an operand's start was taken out, its sub-register is a slot's number
times SLOT: the offsets that `step` passes to the state name the slot and the byte of the operand.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import Any, NamedTuple, cast

from softgen.bits.units import GRF_BYTES
from softgen.eu.isa import registers
from softgen.eu.isa.instruction import Instruction, Operand, make_instruction, make_operand
from softgen.eu.isa.rules import ExecutionRules, rules, writes_accumulator
from softgen.eu.semantics.mask_stack import ADD_IP
from softgen.eu.semantics.send import halves, surface_bits
from softgen.eu.thread.block import BLOCK_OFFSETS
from softgen.eu.thread.lane_state import LaneState
from softgen.eu.thread.predicate import FLAG, HORIZONTAL, first_channel
from softgen.eu.thread.regions import COMPRESSED_4, PACKED, row_in_each_register
from softgen.lanes.types import u16, u32

SLOT = 1 << 16
FREE = 1 << 30  # a limit that nothing reaches
IMMEDIATES = (0, 4)  # where in a record's immediate the first one stands, and a second

NAMES = [field.name for field in fields(Instruction)]
DEFAULTS: dict[str, Any] = {field.name: field.default for field in fields(Instruction)}
FIELDS = attrgetter(*NAMES)
OPERAND = {field.name: number for number, field in enumerate(fields(Operand))}
VALUES = attrgetter(*OPERAND)
OperandValues = tuple[Any, ...]  # of its fields, in their order
# What `step` looks at, but for operands and what a record holds.
COMPUTING = ("gen", "opcode", "opcode_number", "form", "exec_size", "align16", "no_mask", "predicate", "predicate_invert", "condition",
             "saturate", "acc_write", "function")  # fmt: skip
COMPUTED = attrgetter(*COMPUTING)
BRANCHING = ("gen", "opcode", "opcode_number", "form", "exec_size", "align16", "predicate", "predicate_invert", "branch_control", "pop")
QUARTER, FLAGS = ("quarter", "nibble"), ("flag", "flag_sub")
SENDING = ("gen", "opcode", "opcode_number", "form", "exec_size", "align16", "no_mask", "predicate", "predicate_invert", "sfid", "base_mrf",
           "eot", "descriptor", "extended")  # fmt: skip
KEEPS_GROUP = frozenset({"mac", "mach", "sada2"})  # the accumulator they read goes by the quarter
ALIGNED = frozenset({"line", "pln"})  # take dwords around the place that source 0 names
BY_VALUE = frozenset({"add", "and", "or", "xor", "shl", "shr", "asr"})  # what they compute in, dwords decide
WHOLE_IMMEDIATE = ALIGNED | {"dim", "movi", "smov"}  # what they do with an immediate or an offset is not a source's way


@dataclass(frozen=True)
class InstructionShape:
    """An instruction for all that differ from it in their records only."""

    instruction: Instruction
    immediates: tuple[int, ...] = ()  # by slot: -1, or where in the record's immediate it stands
    moves: bool = False  # the one indirect operand's offset is in its slot
    indexed: bool = False  # a message's index in the binding table is in the record's immediate

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.instruction, self.immediates, self.moves, self.indexed))


@dataclass(frozen=True)
class ShapeUse:
    """An instruction as a shape and what goes into its record."""

    shape: InstructionShape
    slots: tuple[int, int, int, int] = (0, 0, 0, 0)
    limits: tuple[int, int, int, int] = (FREE, FREE, FREE, FREE)  # how many bytes of its file follow each start
    immediate: int = 0
    group: int = 0
    flag: int = 0


class _Taken:
    """What was taken out of an instruction's operands."""

    def __init__(self, inst: Instruction) -> None:
        self.inst = inst
        self.slots, self.limits, self.immediates = [0] * 4, [FREE] * 4, [-1] * 4
        self.immediate, self.used = 0, 0
        indirect = [operand for operand in (inst.dst, *inst.sources) if operand is not None and operand.indirect]
        self.moves = len(indirect) == 1 and inst.opcode not in WHOLE_IMMEDIATE  # with two, it is unknown whose offset a slot has

    def operand(self, slot: int, operand: Operand) -> OperandValues:
        """What is left of an operand, as the values of its fields."""
        if operand.file == "imm":
            return self._immediate(slot, operand)
        if operand.file == "arf":
            return VALUES(operand)
        if operand.indirect:
            return self._indirect(slot, operand)
        number, start = 0, operand.number * GRF_BYTES + operand.sub
        size = GRF_BYTES * 128
        if operand.file == "mrf":
            number = operand.number & COMPRESSED_4
            start -= number * GRF_BYTES
            size = rules(self.inst.gen).message_registers * GRF_BYTES
        rest = start % 16 if self.inst.opcode in ALIGNED else 0
        self.slots[slot], self.limits[slot] = BLOCK_OFFSETS[operand.file] + start - rest, size - start + rest
        return changed(operand, number=number, sub=(slot + 1) * SLOT + rest)

    def _indirect(self, slot: int, operand: Operand) -> OperandValues:
        if not self.moves:
            return VALUES(operand)
        self.slots[slot] = operand.offset & u32.highest
        return changed(operand, offset=0)

    def _immediate(self, slot: int, operand: Operand) -> OperandValues:
        wide = operand.type in ("df", "q", "uq")
        if operand.type in PACKED or self.inst.opcode in WHOLE_IMMEDIATE or wide and self.used or self.used > 1 or not slot:
            return VALUES(operand)
        operand = self._widened(operand)
        where = IMMEDIATES[self.used]
        self.used += 2 if wide else 1
        self.immediate |= (operand.immediate & ((1 << 64) - 1 if wide else u32.highest)) << 8 * where
        self.immediates[slot] = where
        return changed(operand, file="grf", number=0, sub=(slot + 1) * SLOT, vertical=0, width=1, horizontal=0, replicate=True, immediate=0)

    def _widened(self, given: Operand) -> Operand:
        """A word beside dwords as the dword it becomes anyway: hosts spread that with less ado."""
        dwords = any(operand.file != "imm" and operand.type in ("d", "ud") for operand in self.inst.sources)
        if given.type not in ("w", "uw") or self.inst.opcode not in BY_VALUE or not dwords or given.negate or given.absolute:
            return given
        value = given.immediate & u16.highest
        widened = value - (1 << u16.bits) if given.type == "w" and value >> u16.bits - 1 else value
        return make_operand(*changed(given, type="d", immediate=widened))


def computing(inst: Instruction) -> ShapeUse:
    """An instruction that `step` executes."""
    taken = _Taken(inst)
    dst = None if inst.dst is None else taken.operand(0, inst.dst)
    sources = tuple([taken.operand(slot, operand) for slot, operand in enumerate(inst.sources, 1)])
    by_quarter = writes_accumulator(inst) or inst.opcode in KEEPS_GROUP
    by_quarter |= bool(inst.nibble) and rules(inst.gen).double_pairs  # then doubles have no pairs of channels
    by_quarter |= any(row_in_each_register(inst, operand) for operand in inst.sources)
    first, flag = _places(inst)
    placed: tuple[int, ...] = ()
    if not _moves(inst, flag) or by_quarter and inst.predicate in HORIZONTAL:
        placed = inst.quarter, inst.nibble, inst.flag, inst.flag_sub
        first = flag = 0
    elif by_quarter:
        placed = inst.quarter, inst.nibble
        first, flag = 0, flag - first
    shape = _computing_shape(COMPUTED(inst), placed, dst, sources, tuple(taken.immediates), taken.moves)
    return ShapeUse(shape, _four(taken.slots), _four(taken.limits), taken.immediate, first, flag)


@lru_cache(1 << 15)
def _computing_shape(kept: tuple[Any, ...], placed: tuple[int, ...], dst: OperandValues | None, sources: tuple[OperandValues, ...],
                     immediates: tuple[int, ...], moves: bool) -> InstructionShape:  # fmt: skip
    """The shape of these values: most instructions have one that is known, for which no object is made."""
    fields = dict(zip((*COMPUTING, *QUARTER, *FLAGS), (*kept, *placed), strict=False))
    fields |= {"dst": None if dst is None else make_operand(*dst), "sources": tuple(make_operand(*values) for values in sources)}
    return _one(InstructionShape(_instruction(fields), immediates, moves))


@lru_cache(1 << 12)
def branching(inst: Instruction) -> ShapeUse:
    """A branch: what is left is its predicate. Slot 3 is the register that a jmpi without a known target takes its offset from."""
    kept = _kept(inst, BRANCHING)
    kept |= {name: None if getattr(inst, name) is None else 0 for name in ("jip", "uip")}
    kept |= _kept(inst, ("no_mask",)) if inst.opcode == ADD_IP else {}
    first, flag = _places(inst)
    if not _moves(inst, flag):
        kept |= _kept(inst, (*QUARTER, *FLAGS))
        first = flag = 0
    return ShapeUse(_one(InstructionShape(_instruction(kept))), (0, 0, 0, offset_register(inst) or 0), group=first, flag=flag)


def offset_register(inst: Instruction) -> int | None:
    """Where in the block a branch has its offset, if it is in a register: the last source that is one (interpreter.py)."""
    operand = next((operand for operand in reversed(inst.sources) if operand.file in ("grf", "imm") and not operand.indirect), None)
    if operand is None or operand.file == "imm":
        return None
    return BLOCK_OFFSETS["grf"] + operand.number * GRF_BYTES + operand.sub


@lru_cache(1 << 12)
def sending(inst: Instruction) -> ShapeUse:
    """A message whose descriptor is known, from and to registers that are. Messages to different surfaces have the same shape."""
    taken = _Taken(inst)
    dst = None if inst.dst is None else make_operand(*taken.operand(0, inst.dst))
    sources = tuple(make_operand(*taken.operand(slot, operand)) if operand.file == "grf" else operand
                    for slot, operand in enumerate(inst.sources, 1))  # fmt: skip
    kept = {"dst": dst, "sources": sources, **_kept(inst, SENDING)}
    kept |= _kept(inst, ("quarter",)) if len(halves(inst)) > 1 else {}
    first, flag = _places(inst)
    if not _moves(inst, flag):
        kept |= _kept(inst, (*QUARTER, *FLAGS))
        first = flag = 0
    surface = bits = 0
    if isinstance(inst.descriptor, int):
        bits = surface_bits(inst.sfid, inst.descriptor, inst.gen)
        surface, kept["descriptor"] = inst.descriptor & bits, inst.descriptor & ~bits
    shape = _one(InstructionShape(_instruction(kept), tuple(taken.immediates), indexed=bits != 0))
    return ShapeUse(shape, _four(taken.slots), _four(taken.limits), surface, first, flag)


_shapes: dict[InstructionShape, InstructionShape] = {}


def _one(shape: InstructionShape) -> InstructionShape:
    """Equal shapes are one object, so that comparing them is quick."""
    return _shapes.setdefault(shape, shape)


def _kept(inst: Instruction, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: getattr(inst, name) for name in names}


def _places(inst: Instruction) -> tuple[int, int]:
    """The first channel and the first flag bit."""
    first = first_channel(cast(LaneState, _Ruled(rules(inst.gen))), inst)
    return first, inst.flag * 2 * FLAG + inst.flag_sub * FLAG + first


def channels(use: ShapeUse) -> int:
    """Those that must be on for an instruction to be executed in all of its channels, as a mask."""
    inst = use.shape.instruction
    return 0 if inst.no_mask else (1 << inst.exec_size) - 1 << use.group + _places(inst)[0]


class _Ruled(NamedTuple):
    """The part of a lane state that determines an instruction's quarter."""

    rules: ExecutionRules


def _moves(inst: Instruction, flag: int) -> bool:
    """Whether the flag bits it looks at are those of channel 0 moved: groups of them are counted from a multiple of their size."""
    return not flag % HORIZONTAL.get(inst.predicate, (1, ""))[0]


def _instruction(kept: dict[str, Any]) -> Instruction:
    return make_instruction(*(DEFAULTS | kept).values())


def changed(operand: Operand, **new: Any) -> OperandValues:
    """The values of an operand's fields, some of them replaced."""
    values = list(VALUES(operand))
    for name, value in new.items():
        values[OPERAND[name]] = value
    return tuple(values)


def _four(given: list[int]) -> tuple[int, int, int, int]:
    a, b, c, d = given
    return a, b, c, d


def text(shape: InstructionShape) -> str:
    """A shape in words: the same for equal ones, whatever the process."""
    inst = shape.instruction
    operands = [None if operand is None else VALUES(operand) for operand in (inst.dst, *inst.sources)]
    rest = [value for name, value in zip(NAMES, FIELDS(inst), strict=True) if name not in ("dst", "sources")]
    return repr((rest, operands, shape.immediates, shape.moves, shape.indexed))


def place_of(operand: Operand, gen: float) -> str:
    """The architecture register an operand names, or ''."""
    if operand.file != "arf" or operand.indirect:
        return ""
    found = registers.find(operand.number, gen)
    return found[0].name if found else ""


__all__ = ["FREE", "SLOT", "InstructionShape", "ShapeUse", "branching", "channels", "computing", "place_of", "sending", "text"]
