"""Where a thread goes in and out of a function: what it finds in its block when it is taken up, and what is kept there when it is left.

A function runs one thread after another, as many as its context says (block.py, `turns`): what they have in common is done once.
"""

from __future__ import annotations

from typing import NamedTuple

from softgen.eu.engine import Row
from softgen.eu.thread.block import BLOCK_OFFSETS, BLOCK_SIZE, Context, ControlBlock, ThreadStatus, offset
from softgen.eu.thread.state import VECTOR_MASK
from softgen.eu.translate.liveness import Leave, Segment
from softgen.eu.translate.registers import Part
from softgen.eu.translate.state import Translated
from softgen.lanes.llvm import LlvmMachine
from softgen.lanes.types import bool_, i64, u32
from softgen.lanes.value import Value, Variable

TURN_OVER = (ThreadStatus.ENDED, ThreadStatus.WAITING)  # the next thread has its turn


class Key(NamedTuple):
    """What a translation depends on beside the code."""

    control: int  # cr0.0
    width: int  # channels of a thread: 8, 16 or 32
    full: bool  # every thread has all of them
    observe: bool = False  # registers can be looked at when the thread has ended
    loops: bool = False  # a thread may be taken up again at its loops
    messages: bool = True  # are carried out here, over the memory that the context names
    anywhere: bool = False  # channels may wait where this code does not reach when a thread comes to its start
    payload: tuple[Row, ...] = ()  # how lanes of the payload lie in every thread


class Doors:
    """`active` channels are where the thread is, others wait at an address; `segments` are what may be entered."""

    def __init__(self, m: LlvmMachine, key: Key, state: Translated) -> None:
        self.m, self.key, self.state = m, key, state
        self.dispatched, self.active = (m.variable(state.none(key.width)) for _ in range(2))
        self.waiting: dict[int, Variable] = {}
        self.executed, self.budget = (m.variable(m.constant(i64, 0, 1)) for _ in range(2))
        self.segments: dict[int, Segment] = {}

    # -- out -----------------------------------------------------------------------------------------------------------

    def _place(self, name: str, more: int = 0) -> str:
        return self.m.emit(f"getelementptr i8, ptr %block, i64 {BLOCK_OFFSETS[name] + more}")

    def _field(self, name: str) -> str:
        return self._place("control", offset(ControlBlock, name))

    def _context(self, name: str) -> str:
        return self.m.emit(f"getelementptr i8, ptr %context, i64 {offset(Context, name)}")

    def _leave(self, leave: Leave, parts: list[Part]) -> None:
        m, registers = self.m, self.state.registers
        m.start(leave.label)
        for number, part in enumerate(parts):
            if part.variable and part.written and leave.live >> number & 1:
                registers.save(part)
        whole = leave.status is not ThreadStatus.ENDED or self.key.observe
        if whole:
            self._keep_flags(leave.live >> len(parts))
            self._keep_channels(leave)
            m.line(f"store i32 {leave.control}, ptr {self._place('cr')}")
        for name, value in (("ip", leave.ip), ("status", int(leave.status)), ("waiting", leave.wait)):
            m.line(f"store i32 {value}, ptr {self._field(name)}")
        m.line(f"store <1 x i64> {self.executed.value.payload}, ptr {self._field('executed')}")
        if leave.status in TURN_OVER:
            m.line("br label %next")
        else:
            self._return(str(int(leave.status)))

    def _return(self, status: str) -> None:
        self.m.line(f"store <1 x i64> {self.budget.value.payload}, ptr {self._context('budget')}")
        self.m.line(f"ret i64 {status}")

    def _keep_flags(self, live: int) -> None:
        for number, flag in enumerate(self.state.flag):
            if live >> number & 1:
                at = self._place("f", 2 * number)
                self.m.line(f"store <16 x i1> {flag.value.payload}, ptr {at}")

    def _keep_channels(self, leave: Leave) -> None:
        m, width = self.m, self.key.width
        active = m.bits_from_mask(self.active.value) if width <= 32 else None
        assert active is not None
        m.line(f"store <1 x i32> {active.payload}, ptr {self._field('active')}")
        if not leave.pending:
            return
        at = self._field("channel_ip")
        where = Value(m, u32, width, m.emit(f"load <{width} x i32>, ptr {at}, align 4"))
        for ip in sorted(leave.pending):
            where = m.select(self.waiting[ip].value, m.like(where, ip), where)
        m.line(f"store <{width} x i32> {where.payload}, ptr {at}, align 4")

    # -- in ------------------------------------------------------------------------------------------------------------

    def _enter(self, parts: list[Part]) -> None:
        """Goes where the thread is. What is no entry is the reference's, one instruction at a time."""
        m = self.m
        entries = [one for one in self.segments.values() if one.entry]
        self._threads()
        ip = m.emit(f"load i32, ptr {self._field('ip')}")
        self.executed.value = Value(m, i64, 1, m.emit(f"load <1 x i64>, ptr {self._field('executed')}"))
        self.budget.value = Value(m, i64, 1, m.emit(f"load <1 x i64>, ptr {self._context('budget')}"))
        self._enter_channels()
        cases = " ".join(f"i32 {one.ip}, label %enter{one.ip:x}" for one in entries)
        m.line(f"switch i32 {ip}, label %unknown [ {cases} ]")
        for one in entries:
            m.start(f"enter{one.ip:x}")
            for number, part in enumerate(parts):
                if part.variable and one.live >> number & 1:
                    self.state.registers.load(part)
            self._load_flags(one.live >> len(parts))
            m.line(f"br label %at{one.ip:x}")
        m.start("unknown")
        m.line(f"ret i64 {int(ThreadStatus.ESCAPE)}")

    def _threads(self) -> None:
        """One thread after another, as many as the context says: those that ended are passed over."""
        m, given = self.m, self._context("turns")
        m.line(f"%given = load i64, ptr {given}")
        m.line("br label %thread")
        m.start("next")
        m.line("%fewer = sub i64 %turns, 1")
        m.line(f"%following = getelementptr i8, ptr %block, i64 {BLOCK_SIZE}")
        m.line(f"br i1 {m.emit('icmp sgt i64 %fewer, 0')}, label %thread, label %over")
        m.start("over")
        status = m.emit(f"load i32, ptr {self._field('status')}")
        self._return(m.emit(f"zext i32 {status} to i64"))
        m.start("thread")
        m.line("%block = phi ptr [ %first, %entry ], [ %following, %next ]")
        m.line("%turns = phi i64 [ %given, %entry ], [ %fewer, %next ]")
        m.line(f"store i64 %turns, ptr {self._context('turns')}")
        status = m.emit(f"load i32, ptr {self._field('status')}")
        m.line(f"br i1 {m.emit(f'icmp eq i32 {status}, {int(ThreadStatus.ENDED)}')}, label %next, label %take")
        m.start("take")

    def _enter_channels(self) -> None:
        m, width = self.m, self.key.width
        mask = self._place("sr", 4 * (3 if self.key.control & VECTOR_MASK else 2))
        dispatched = m.mask_from_bits(Value(m, u32, 1, m.emit(f"load <1 x i32>, ptr {mask}")), width)
        active = m.mask_from_bits(Value(m, u32, 1, m.emit(f"load <1 x i32>, ptr {self._field('active')}")), width)
        self.dispatched.value, self.active.value = dispatched, active
        if self.waiting:
            where = Value(m, u32, width, m.emit(f"load <{width} x i32>, ptr {self._field('channel_ip')}, align 4"))
            away = dispatched & ~active
            for ip, variable in self.waiting.items():
                variable.value = away & (where == ip)

    def _load_flags(self, live: int) -> None:
        for number, flag in enumerate(self.state.flag):
            if live >> number & 1:
                flag.value = Value(self.m, bool_, 16, self.m.emit(f"load <16 x i1>, ptr {self._place('f', 2 * number)}"))
