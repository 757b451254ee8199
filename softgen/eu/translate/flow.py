"""Branches of a translated kernel: targets are labels, and each target has a mask of the channels that wait there.

A branch leaves some channels at the next instruction and makes others wait at targets; then the thread continues at one of a few addresses,
which may depend on the waiting channels. A Choice is that decision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from softgen.eu.interpreter import DecodedInstruction, KernelProgram
from softgen.eu.isa.rules import ExecutionRules
from softgen.eu.translate.control_flow import StaticFlow
from softgen.lanes.machine import Machine
from softgen.lanes.value import Value, Variable


@dataclass
class Choice:
    """A conditional branch target: `then` where the one-lane condition holds, else `other`; `follow`: all active channels go there."""

    condition: Value
    then: Choice | int
    other: Choice | int
    follow: bool = False
    none_left: bool = False  # no channel is at the next instruction if `other` is taken


class Branching(StaticFlow):
    """`waiting` has a variable for each place where channels may wait."""

    def __init__(self, m: Machine, program: KernelProgram, line: DecodedInstruction, rules: ExecutionRules, active: Value, taken: Value,
                 waiting: dict[int, Variable]) -> None:  # fmt: skip
        super().__init__(program, line)
        self.m, self.rules, self.active, self.taken, self.waiting = m, rules, active, taken, waiting
        self.left = active  # channels at the next instruction

    def set_ip(self, channels: Any, to: int) -> None:
        """Of a join: channels without its predicate stay with it."""
        if channels is not self.active:
            self.wait(self.line.ip, self.left & ~channels)
            self.left = channels

    def split(self, leave: Any, to: int) -> None:
        if isinstance(leave, int):
            assert not leave
            return
        self.wait(to, leave)
        self.left = self.m.like(leave, 0) if leave is self.active else self.left & ~leave

    def wait(self, at: int, channels: Value) -> None:
        variable = self.waiting[at]
        variable.value = variable.value | channels

    def any(self, channels: Value) -> Value:
        return self.m.any(channels)

    def includes_first(self, channels: Value) -> Value:
        return self.m.slice(channels, 0, 1)

    def any_at(self, at: int) -> Value:
        there = self.waiting[at].value if at in self.waiting else None
        if at == self.next:
            return self.m.any(self.left if there is None else self.left | there)
        assert there is not None
        return self.m.any(there)

    def choose(self, condition: Value, then: Any, other: Any) -> Choice:
        return Choice(condition, then, other)

    def continue_or(self, otherwise: Any) -> Choice:
        return Choice(self.any_at(self.next), self.next, otherwise, none_left=True)

    def jump(self, condition: Value, then: int, other: int) -> Choice:
        return Choice(condition, then, other, follow=True)
