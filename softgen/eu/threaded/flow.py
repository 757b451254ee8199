"""Branches as code: semantics/control.py over the channels in a block.

Masks are one lane of 32 bits. While a branch is executed `channels` are the ips of all channels; those of the block's active channels mean
nothing between branches, because they are the thread's.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from softgen.eu.interpreter import LONG_BRANCH
from softgen.eu.isa.instruction import Instruction
from softgen.eu.semantics.branch_machine import BranchMachine
from softgen.eu.semantics.control import INTERPRETED_ONLY, PER_CHANNEL, SINGLE_FLOW
from softgen.eu.thread.block import BLOCK_OFFSETS, CHANNELS, Context, ControlBlock, ThreadStatus, offset
from softgen.eu.thread.predicate import first_channel, predicate
from softgen.eu.threaded.record import FIRST, NEXT, OP, SECOND
from softgen.eu.threaded.state import ACTIVE, CONTROL, BlockState, Escape
from softgen.lanes.types import u32
from softgen.lanes.value import Value

CHANNEL_IP = CONTROL + offset(ControlBlock, "channel_ip")
BUDGET = offset(Context, "budget")
VECTOR = f"<{CHANNELS} x i32>"
DISPATCH_MASK, VECTOR_MASK = BLOCK_OFFSETS["sr"] + 8, BLOCK_OFFSETS["sr"] + 12
NEAR = LONG_BRANCH.bit_length() - 1


class Target(NamedTuple):
    """Where a thread can go on: an i32 and a pointer to the record there; or the condition that chose it, and the records it chose from."""

    ip: str
    record: str
    choice: tuple[str, str, str] | None = None


class BlockFlow(BranchMachine):
    """One branch of a shape. What differs between branches of a shape, its addresses, stands in the record."""

    def __init__(self, state: BlockState, one: Instruction, single: bool, vector: bool) -> None:
        self.state, self.m, self.instruction, self.rules, self.single = state, state.m, one, state.rules, single
        self.ip = state.field("ip")
        self.execution = execution(state, vector)
        here = self._bits(self.m.emit(f"load i32, ptr {state.at(ACTIVE)}"))
        self.active = self.execution if single else here
        self.next: Any = Target(state.field(NEXT), self.m.emit(f"getelementptr i8, ptr %op, i64 {OP.itemsize}"))
        held = self.m._value(u32, CHANNELS, self.m.emit(f"load {VECTOR}, ptr {state.at(CHANNEL_IP)}, align 4"))
        self.channels = self.m.select(self.m.mask_from_bits(here, CHANNELS), self._all(self.ip), held)
        self.taken = self._holds(one)
        if one.opcode != "jmpi":
            self.taken = self.taken & self.active

    def _bits(self, scalar: str) -> Value:
        return self.m._value(u32, 1, self.m.emit(f"insertelement <1 x i32> poison, i32 {scalar}, i64 0"))

    def _scalar(self, value: Value) -> str:
        return self.m.emit(f"extractelement <1 x i32> {value.payload}, i64 0")

    def _all(self, scalar: str) -> Value:
        return self.m.broadcast(self._bits(scalar), CHANNELS)

    def _holds(self, one: Instruction) -> Value:
        """Channels whose predicate holds, among all of the thread's."""
        m = self.m
        found = self._scalar(m.bits_from_mask(predicate(self.state, one)))
        first = m.emit(f"add i32 {self.state.field('group')}, {first_channel(self.state, one)}")
        return self._bits(m.emit(f"shl i32 {found}, {first}"))

    # -- what semantics ask for ----------------------------------------------------------------------------------------

    @property
    def jip(self) -> Any:
        if self.instruction.jip is None:  # it stands in a register
            raise Escape
        return Target(self.state.field(FIRST), self.state.field("first", "ptr"))

    @property
    def uip(self) -> Any:
        if self.instruction.uip is None:
            raise Escape
        return Target(self.state.field(SECOND), self.state.field("second", "ptr"))

    def instruction_after(self, address: Any) -> Any:
        return address  # the record has the place behind it

    def set_ip(self, channels: Any, to: Any) -> None:
        if not self.single and isinstance(channels, Value):  # a number: none
            self.channels = self.m.select(self.m.mask_from_bits(channels, CHANNELS), self._all(to.ip), self.channels)

    def split(self, leave: Any, to: Any) -> None:
        self.set_ip(self.active, self.next)
        self.set_ip(leave, to)

    def any(self, channels: Value) -> str:
        return self.m.emit(f"icmp ne i32 {self._scalar(channels)}, 0")

    def includes_first(self, channels: Value) -> str:
        return self.m.emit(f"trunc i32 {self._scalar(channels)} to i1")

    def _at(self, ip: str) -> Value:
        return self.m.bits_from_mask(self.channels == self._all(ip)) & self.execution

    def any_at(self, at: Any) -> str:
        return self.any(self._at(at.ip))

    def choose(self, condition: str, one: Any, other: Any) -> Any:
        m = self.m
        return Target(m.emit(f"select i1 {condition}, i32 {one.ip}, i32 {other.ip}"),
                      m.emit(f"select i1 {condition}, ptr {one.record}, ptr {other.record}"),
                      (condition, one.record, other.record))  # fmt: skip

    def jump(self, condition: str, one: Any, other: Any) -> Any:
        to = self.choose(condition, one, other)
        self.split(self.active, to)
        return to

    # -- the end of it -------------------------------------------------------------------------------------------------

    def go(self, to: Target) -> None:
        """Going back costs, and long ways back cost more, as the reference counts it."""
        m, state = self.m, self.state
        if not self.single:
            m.line(f"store i32 {self._scalar(self._at(to.ip))}, ptr {state.at(ACTIVE)}")
            m.line(f"store {VECTOR} {self.channels.payload}, ptr {state.at(CHANNEL_IP)}, align 4")
        back, on, spent = m.labels("back", "on", "spent")
        m.line(f"br i1 {m.emit(f'icmp ule i32 {to.ip}, {self.ip}')}, label %{back}, label %{on}")
        m.start(back)
        far = m.emit(f"lshr i32 {m.emit(f'sub i32 {self.ip}, {to.ip}')}, {NEAR}")
        cost = m.emit(f"add i64 {m.emit(f'zext i32 {far} to i64')}, 1")
        budget = m.emit(f"getelementptr i8, ptr %context, i64 {BUDGET}")
        left = m.emit(f"sub i64 {m.emit(f'load i64, ptr {budget}')}, {cost}")
        m.line(f"store i64 {left}, ptr {budget}")
        m.line(f"br i1 {m.emit(f'icmp sle i64 {left}, 0')}, label %{spent}, label %{on}, !prof !0")
        m.start(spent)
        state.leave(ThreadStatus.OUT_OF_BUDGET, to.ip)
        m.start(on)
        self._take(to)

    def _take(self, to: Target) -> None:
        """The host guesses a branch and looks at the record behind it at once; for a chosen pointer it would wait."""
        m, state = self.m, self.state
        if to.choice is None:
            state.go_on(to.record)
            return
        condition, *records = to.choice
        ways = m.labels("one", "other")
        m.line(f"br i1 {condition}, label %{ways[0]}, label %{ways[1]}")
        for way, record in zip(ways, records, strict=True):
            m.start(way)
            state.go_on(record)


def execution(state: BlockState, vector: bool) -> Value:
    """Channels the dispatcher gave the thread."""
    m = state.m
    found = m.emit(f"load i32, ptr {state.at(VECTOR_MASK if vector else DISPATCH_MASK)}")
    return m._value(u32, 1, m.emit(f"insertelement <1 x i32> poison, i32 {found}, i64 0"))


def branch(state: BlockState, one: Instruction, single: bool, vector: bool) -> None:
    meaning = None if state.rules.flow == "stack" else (SINGLE_FLOW if single else PER_CHANNEL).get(one.opcode)
    if meaning is None or one.opcode in INTERPRETED_ONLY:
        raise Escape
    made = BlockFlow(state, one, single, vector)
    made.go(meaning(made))


def label(state: BlockState, vector: bool) -> None:
    """Channels that wait here go on with the others."""
    m = state.m
    ip = m._value(u32, 1, m.emit(f"insertelement <1 x i32> poison, i32 {state.field('ip')}, i64 0"))
    held = m._value(u32, CHANNELS, m.emit(f"load {VECTOR}, ptr {state.at(CHANNEL_IP)}, align 4"))
    waiting = m.bits_from_mask(held == m.broadcast(ip, CHANNELS)) & execution(state, vector)
    before = m._value(u32, 1, m.emit(f"load <1 x i32>, ptr {state.at(ACTIVE)}"))
    m.line(f"store <1 x i32> {(before | waiting).payload}, ptr {state.at(ACTIVE)}")
    state.end(0)
