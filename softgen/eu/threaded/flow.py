"""Branches of the threaded engine: semantics/control.py over the channels in a block.

Masks are one lane of 32 bits. While a branch is executed `channels` are the ips of all channels; between branches an active channel's ip
is the thread's, and its entry in the block is stale.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from softgen.eu.interpreter import LONG_BRANCH
from softgen.eu.isa import labels
from softgen.eu.isa.instruction import Instruction
from softgen.eu.semantics.branch_machine import BranchMachine
from softgen.eu.semantics.control import LINKING, PER_CHANNEL, SINGLE_FLOW
from softgen.eu.thread.block import BLOCK_OFFSETS, CHANNELS, Context, ControlBlock, ThreadStatus, offset
from softgen.eu.thread.predicate import first_channel, predicate
from softgen.eu.threaded.record import FIRST, NEXT, NOWHERE, OFFSET, OP, SECOND, place
from softgen.eu.threaded.state import ACTIVE, CONTROL, BlockState, Escape
from softgen.lanes.code_machine import CodeMachine, HostPointer, Scalar
from softgen.lanes.record import RecordLayout
from softgen.lanes.types import bool_, i64, u32, u64
from softgen.lanes.value import Value

CHANNEL_IP = CONTROL + offset(ControlBlock, "channel_ip")
CONTEXT = RecordLayout.of(Context)
DISPATCH_MASK, VECTOR_MASK = BLOCK_OFFSETS["sr"] + 8, BLOCK_OFFSETS["sr"] + 12
NEAR = LONG_BRANCH.bit_length() - 1
STEP = labels.COMPACT  # bytes between addresses that may have a record


class RecordTarget(NamedTuple):
    """A branch target: ip and record; where a condition chose it, the condition and the records it chose from."""

    ip: Scalar
    record: HostPointer
    choice: tuple[Scalar, HostPointer, HostPointer] | None = None


class BlockFlow(BranchMachine):
    """One branch of a shape. Addresses, in which branches of a shape differ, are in the record."""

    def __init__(self, state: BlockState, inst: Instruction, single: bool, vector: bool) -> None:
        self.state, self.m, self.instruction, self.rules, self.single = state, state.m, inst, state.rules, single
        self.ip = state.field("ip")
        self.execution = execution(state, vector)
        here = state.at(ACTIVE).load(u32).lane()
        self.active = self.execution if single else here
        self.next: Any = RecordTarget(state.field(NEXT), state.inside(OP.itemsize))
        channel_ip = state.at(CHANNEL_IP).load_lanes(u32, CHANNELS, align=4)
        self.channels = self.m.select(self.m.mask_from_bits(here, CHANNELS), self._all(self.ip), channel_ip)
        self.taken = self._holds(inst)
        if inst.opcode != "jmpi":
            self.taken = self.taken & self.active

    def _all(self, scalar: Scalar) -> Value:
        return self.m.broadcast(scalar.lane(), CHANNELS)

    def _holds(self, inst: Instruction) -> Value:
        """Channels whose predicate holds, among all of the thread's."""
        m = self.m
        found = m.scalar(m.bits_from_mask(predicate(self.state, inst)))
        first = self.state.field("group") + first_channel(self.state, inst)
        return (found << first).lane()

    # -- what semantics ask for ----------------------------------------------------------------------------------------

    @property
    def jip(self) -> Any:
        if self.instruction.jip is None:
            return register_target(self.state, self.instruction)
        return RecordTarget(self.state.field(FIRST), self.state.record("first"))

    @property
    def uip(self) -> Any:
        if self.instruction.uip is None:
            raise Escape
        return RecordTarget(self.state.field(SECOND), self.state.record("second"))

    def instruction_after(self, address: Any) -> Any:
        return address  # the record has the address after it

    def set_ip(self, channels: Any, to: Any) -> None:
        if not self.single and isinstance(channels, Value):  # a number: none
            self.channels = self.m.select(self.m.mask_from_bits(channels, CHANNELS), self._all(to.ip), self.channels)

    def split(self, leave: Any, to: Any) -> None:
        self.set_ip(self.active, self.next)
        self.set_ip(leave, to)

    def any(self, channels: Value) -> Scalar:
        return self.m.scalar(channels) != 0

    def includes_first(self, channels: Value) -> Scalar:
        return self.m.scalar(channels).convert(bool_)

    def _at(self, ip: Scalar) -> Value:
        return self.m.bits_from_mask(self.channels == self._all(ip)) & self.execution

    def any_at(self, at: Any) -> Scalar:
        return self.any(self._at(at.ip))

    def choose(self, condition: Scalar, then: Any, other: Any) -> Any:
        return chosen(self.m, condition, then, other)

    def jump(self, condition: Scalar, then: Any, other: Any) -> Any:
        to = self.choose(condition, then, other)
        self.split(self.active, to)
        return to

    # -- the end of it -------------------------------------------------------------------------------------------------

    def go(self, to: RecordTarget) -> None:
        """Store the channels' ips and take the branch."""
        state = self.state
        if not self.single:
            active = self.m.scalar(self._at(to.ip))
            state.at(ACTIVE).store(active)
            state.at(CHANNEL_IP).store(self.channels, align=4)
        take(state, to)


def chosen(m: CodeMachine, condition: Scalar, then: RecordTarget, other: RecordTarget) -> RecordTarget:
    return RecordTarget(m.choose(condition, then.ip, other.ip), m.choose(condition, then.record, other.record),
                        (condition, then.record, other.record))  # fmt: skip


def register_target(state: BlockState, inst: Instruction) -> RecordTarget:
    """The target of a jmpi whose offset is in a register: the record of that address. A side exit where the program has none."""
    if inst.opcode != "jmpi":
        raise Escape
    m = state.m
    count = state.at(0).at(state.field(OFFSET).convert(u64)).load(u32)
    to = state.field(NEXT if labels.base(inst, 0) else "ip") + count * labels.unit(inst.gen, inst.opcode)
    program = m.pointer("context").field(CONTEXT, "program").load_pointer()
    ops, index = (program.at(place(name)).load_pointer() for name in ("ops", "index"))
    start, steps = (program.at(place(name)).load(u64) for name in ("start", "count"))
    at = to.convert(u64) - start
    step = at >> STEP.bit_length() - 1
    state.escape_if((at & STEP - 1) != 0)
    state.escape_if(step >= steps)
    number = index.at(step * u32.bytes).load(u32)
    state.escape_if(number == NOWHERE)
    return RecordTarget(to, ops.at(number.convert(u64) * OP.itemsize))


def take(state: BlockState, to: RecordTarget) -> None:
    """Take a branch. Backward branches are charged to the budget, long ones more, as in the interpreter."""
    m, here = state.m, state.field("ip")
    back, on, spent = m.labels("back", "on", "spent")
    m.branch(to.ip <= here, back, on)
    m.start(back)
    cost = ((here - to.ip) >> NEAR).convert(u64) + 1
    budget = m.pointer("context").field(CONTEXT, "budget")
    left = budget.load(i64) - cost
    budget.store(left)
    m.branch(left <= 0, spent, on, likely=False)
    m.start(spent)
    state.leave(ThreadStatus.OUT_OF_BUDGET, to.ip)
    m.start(on)
    if to.choice is None:
        state.go_on(to.record)
        return
    condition, *records = to.choice  # the host predicts a branch, but would wait for a selected pointer
    ways = m.labels("one", "other")
    m.branch(condition, ways[0], ways[1])
    for way, record in zip(ways, records, strict=True):
        m.start(way)
        state.go_on(record)


def execution(state: BlockState, vector: bool) -> Value:
    """Channels the dispatcher gave the thread."""
    return state.at(VECTOR_MASK if vector else DISPATCH_MASK).load(u32).lane()


def branch(state: BlockState, inst: Instruction, single: bool, vector: bool) -> None:
    meaning = (SINGLE_FLOW if single else PER_CHANNEL).get(inst.opcode)
    if meaning is None or inst.opcode in LINKING:
        raise Escape
    made = BlockFlow(state, inst, single, vector)
    made.go(meaning(made))


def label(state: BlockState, vector: bool) -> None:
    """Activate the channels that wait at this instruction."""
    m = state.m
    ip = state.field("ip").lane()
    channel_ip = state.at(CHANNEL_IP).load_lanes(u32, CHANNELS, align=4)
    waiting = m.bits_from_mask(channel_ip == m.broadcast(ip, CHANNELS)) & execution(state, vector)
    active = state.at(ACTIVE).load_lanes(u32, 1) | waiting
    state.at(ACTIVE).store(active)
    state.end(0)
