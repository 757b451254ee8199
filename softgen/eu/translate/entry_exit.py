"""Entries, exits and resume points of a translated kernel: reloads at entries, spills at exits.

The function runs several threads in one call, as many as the context says (block.py, `turns`). Where threads can be entered at the start
only, those that end leave their blocks as they were, so that nothing has to be done there before the next thread starts.
"""

from __future__ import annotations

from ctypes import sizeof

from softgen.eu.thread.block import BLOCK_OFFSETS, BLOCK_SIZE, Context, ControlBlock, ThreadStatus
from softgen.eu.thread.state import VECTOR_MASK
from softgen.eu.translate.key import Key
from softgen.eu.translate.liveness import Exit, Segment
from softgen.eu.translate.registers import RegisterPart
from softgen.eu.translate.state import TranslationState
from softgen.lanes.llvm.machine import LlvmMachine
from softgen.lanes.llvm.scalar import LlvmPointer, LlvmScalar
from softgen.lanes.record import RecordLayout
from softgen.lanes.types import bool_, i64, u32, u64
from softgen.lanes.value import Variable
from softgen.shared_functions.bindings import Bindings

CONTROL, CONTEXT = RecordLayout.of(ControlBlock), RecordLayout.of(Context)
SURFACES = "surfaces"  # the context's pointer to bindings
TURN_OVER = (ThreadStatus.ENDED, ThreadStatus.WAITING)  # the next thread runs


class EntryExit:
    """The entries and exits of a kernel. `active` channels are at the thread's ip, others wait at an address; entries are segments."""

    def __init__(self, m: LlvmMachine, key: Key, state: TranslationState) -> None:
        self.m, self.key, self.state = m, key, state
        self.dispatched, self.active = (m.variable(state.none(key.width)) for _ in range(2))
        self.waiting: dict[int, Variable] = {}
        self.executed, self.budget = (m.variable(m.constant(i64, 0, 1)) for _ in range(2))
        self.segments: dict[int, Segment] = {}
        self.links = False  # there are calls and returns: threads may stray
        self.in_order = False  # threads that end leave no trace in their blocks

    def _place(self, name: str, more: int = 0) -> LlvmPointer:
        return self.m.pointer("block").at(BLOCK_OFFSETS[name] + more)

    def _control(self, name: str) -> LlvmPointer:
        return self._place("control", CONTROL.offset(name))

    def _context(self, name: str) -> LlvmPointer:
        return self.m.pointer("context").field(CONTEXT, name)

    # -- exits ---------------------------------------------------------------------------------------------------------

    def _write_exit(self, exit: Exit, parts: list[RegisterPart]) -> None:
        m, registers = self.m, self.state.registers
        m.start(exit.label)
        if self.in_order and exit.status is ThreadStatus.ENDED:
            self._count_in(self._context("executed"))
            m.jump("next")
            return
        for number, part in enumerate(parts):
            if part.variable and part.written and exit.live >> number & 1:
                registers.spill(part)
        if exit.status is not ThreadStatus.ENDED or self.key.observe:
            self._spill_flags(exit.live >> len(parts))
            self._save_channels(exit)
            self._place("cr").store(m.number(u32, exit.control))
        for name, value in (("ip", exit.ip), ("status", int(exit.status)), ("waiting", exit.wait)):
            self._control(name).store(m.number(u32, value))
        if exit.stray:
            self._control("stray").store(m.number(u32, 1))
        self._count_in(self._control("executed"))
        if exit.status in TURN_OVER:
            m.jump("next")
        else:
            self._return(m.number(i64, int(exit.status)))

    def _count_in(self, total: LlvmPointer) -> None:
        """Adds the instructions of this turn to a count."""
        executed = total.load_lanes(i64, 1) + self.executed.value
        total.store(executed)

    def _return(self, status: LlvmScalar) -> None:
        budget = self.budget.value
        self._context("budget").store(budget)
        self.m.give(status)

    def _spill_flags(self, live: int) -> None:
        for number, flag in enumerate(self.state.flag):
            if live >> number & 1:
                at = self._place("f", 2 * number)
                at.store(flag.value)

    def _save_channels(self, exit: Exit) -> None:
        m, width = self.m, self.key.width
        active = m.bits_from_mask(self.active.value)
        self._control("active").store(active)
        if not exit.pending:
            return
        at = self._control("channel_ip")
        where = at.load_lanes(u32, width, align=4)
        for ip in sorted(exit.pending):
            where = m.select(self.waiting[ip].value, m.like(where, ip), where)
        at.store(where, align=4)

    # -- entries -------------------------------------------------------------------------------------------------------

    def _write_entries(self, parts: list[RegisterPart]) -> None:
        """Switch on the thread's ip. An ip that is no entry is the interpreter's, one instruction at a time."""
        m = self.m
        entries = [segment for segment in self.segments.values() if segment.entry]
        self._loop_over_threads()
        ip = self._control("ip").load(u32)
        self.executed.value = m.constant(i64, 0, 1)
        self.budget.value = self._context("budget").load_lanes(i64, 1)
        self._load_channels()
        if self.links:
            m.branch(self._control("stray").load(u32) == 0, "known", "unknown")
            m.start("known")
        m.code.switch(ip, "unknown", {segment.ip: f"enter{segment.ip:x}" for segment in entries})
        for segment in entries:
            m.start(f"enter{segment.ip:x}")
            for number, part in enumerate(parts):
                if part.variable and segment.live_in >> number & 1:
                    self.state.registers.reload(part)
            self._reload_flags(segment.live_in >> len(parts))
            m.jump(f"at{segment.ip:x}")
        m.start("unknown")
        m.give(m.number(i64, int(ThreadStatus.ESCAPE)))

    def _loop_over_threads(self) -> None:
        """The loop over the threads of a call; threads that have ended are skipped."""
        m = self.m
        block, turns = m.pointer("block"), m.argument(i64, "turns")
        given = self._context("turns").load(i64)
        self._context(SURFACES).load_pointer_as(SURFACES, sizeof(Bindings))  # here, so that loads of bindings move out of the loop
        m.jump("thread")
        m.start("next")
        fewer = turns - 1
        following = block.at(BLOCK_SIZE)
        m.branch(fewer > 0, "thread", "over")
        m.start("over")
        self._return(m.number(i64, int(ThreadStatus.ENDED)) if self.in_order else self._control("status").load(u32).convert(u64))
        m.start("thread")
        m.code.phi(block, {"entry": m.pointer("first"), "next": following})
        m.code.phi(turns, {"entry": given, "next": fewer})
        self._context("turns").store(turns)
        m.branch(self._control("status").load(u32) == int(ThreadStatus.ENDED), "next", "take")
        m.start("take")

    def _load_channels(self) -> None:
        m, width = self.m, self.key.width
        mask = self._place("sr", 4 * (3 if self.key.control & VECTOR_MASK else 2))
        dispatched = m.mask_from_bits(mask.load_lanes(u32, 1), width)
        active = m.mask_from_bits(self._control("active").load_lanes(u32, 1), width)
        self.dispatched.value, self.active.value = dispatched, active
        if self.waiting:
            where = self._control("channel_ip").load_lanes(u32, width, align=4)
            away = dispatched & ~active
            for ip, variable in self.waiting.items():
                variable.value = away & (where == ip)

    def _reload_flags(self, live: int) -> None:
        for number, flag in enumerate(self.state.flag):
            if live >> number & 1:
                flag.value = self._place("f", 2 * number).load_lanes(bool_, 16)
