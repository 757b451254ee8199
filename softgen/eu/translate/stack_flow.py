"""Branches with a mask stack in a translated kernel: semantics/mask_stack.py over the control block of the thread."""

from __future__ import annotations

from collections.abc import Callable

from softgen.errors import SoftgenError
from softgen.eu.isa.instruction import Instruction
from softgen.eu.semantics.mask_stack import CONTROL, StackBranch
from softgen.eu.translate.flow import Choice
from softgen.lanes.llvm.machine import LlvmMachine
from softgen.lanes.llvm.scalar import LlvmPointer
from softgen.lanes.value import Value


class TranslatedStack(StackBranch):
    """A branch of a kernel; targets are addresses. Masks are given as lanes, one for each channel."""

    def __init__(self, m: LlvmMachine, inst: Instruction, control: LlvmPointer, masks: tuple[Value, Value, Value],
                 targets: tuple[int, int], escape: Callable[[Value], None]) -> None:  # fmt: skip
        self.m, self.instruction, self._escape = m, inst, escape
        self.control = m.record(CONTROL, control.memory("control block"))
        self.dispatched, self.active, self.predicated = (m.bits_from_mask(mask) for mask in masks)
        self.next, self.jip = targets

    def require(self, holds: Value, error: Callable[[], SoftgenError]) -> None:
        self._escape(~holds)

    def choose(self, condition: Value, then: Choice | int, other: Choice | int) -> Choice:
        return Choice(condition, then, other)

    def now_active(self) -> Value:
        """The channels that are active after the branch, as one lane."""
        found = self.dispatched
        for name in ("imask", "lmask", "cmask"):
            found = found & self.mask(name)
        return found
