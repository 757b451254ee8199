"""Branches of a translated kernel: targets are labels, and each target has a mask of the channels that wait there.

A branch leaves some channels at the next instruction and makes others wait at targets; then the thread continues at one of a few addresses,
which may depend on the waiting channels. A Choice is that decision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from softgen.eu.interpreter import DecodedInstruction
from softgen.eu.translate.control_flow import ControlFlowGraph, StaticFlow, link_location, link_operand
from softgen.eu.translate.state import TranslationState
from softgen.lanes.types import bool_, u32
from softgen.lanes.value import Value, Variable


@dataclass
class ReturnTo:
    """The target of a return: one of the addresses after calls, by the one-lane value that a call stored."""

    address: Value
    returns: tuple[int, ...]

    def choice(self) -> Choice | int:
        """The decision between the addresses; the value is known to be one of them."""
        found: Choice | int = self.returns[0]
        for to in self.returns[1:]:
            found = Choice(self.address == to, to, found)
        return found


@dataclass
class Choice:
    """A conditional branch target: `then` where the one-lane condition holds, else `other`; `follow`: all active channels go there."""

    condition: Value
    then: Choice | int
    other: Choice | int
    follow: bool = False
    none_left: bool = False  # no channel is at the next instruction if `other` is taken


class Branching(StaticFlow):
    """`waiting` has a variable for each place where channels may wait; `stray` is the side exit of a return to an unknown place."""

    def __init__(self, state: TranslationState, graph: ControlFlowGraph, line: DecodedInstruction, taken: Value,
                 waiting: dict[int, Variable], stray: Callable[[Value], None]) -> None:  # fmt: skip
        super().__init__(graph.program, line)
        self.m, self.rules, self.state, self.stray = state.m, state.rules, state, stray
        self.active, self.taken, self.waiting, self.returns = state.active, taken, waiting, tuple(sorted(graph.returns))
        self.left = self.active  # channels at the next instruction
        self.all_left = False  # it is known that none are

    def set_ip(self, channels: Any, to: int) -> None:
        """Of a join: channels without its predicate stay with it."""
        if channels is not self.active:
            self.wait(self.line.ip, self.left & ~channels)
            self.left = channels

    def split(self, leave: Any, to: Any) -> None:
        if isinstance(leave, int):
            assert not leave
            return
        if isinstance(to, ReturnTo):
            self._return(leave, to)
            return
        self.wait(to, leave)
        self.all_left = leave is self.active
        self.left = self.m.like(leave, 0) if self.all_left else self.left & ~leave

    def _return(self, leave: Value, to: ReturnTo) -> None:
        m, left = self.m, self.left & ~leave
        if not self.instruction.predicate:  # all are expected to return
            there = self.waiting.get(self.next)
            self.stray(m.any(left if there is None else left | there.value))
            self.all_left, left = True, m.like(leave, 0)
        for at in to.returns:
            self.wait(at, leave & m.broadcast(to.address == at, leave.lanes))
        self.left = left

    def link(self) -> Value:
        m, start = self.m, link_location(self.instruction.dst, self.line)
        called = m.any(self.taken)
        words = m.concat(m.constant(u32, self.next, 1), m.bits_from_mask(self.taken))
        self.state.write("grf", words, (start, start + 4), m.broadcast(called, 2))
        return called

    def linked(self) -> tuple[ReturnTo, Value]:
        m, start = self.m, link_location(link_operand(self.instruction), self.line)
        address, mask = (self.state.read("grf", u32, (at,)) for at in (start, start + 4))
        known = m.constant(bool_, 0, 1)
        for at in self.returns:
            known = known | (address == at)
        self.stray(~known)
        return ReturnTo(address, self.returns), m.mask_from_bits(mask, self.active.lanes)

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
        return Choice(condition, then.choice() if isinstance(then, ReturnTo) else then, other)

    def continue_or(self, otherwise: Any) -> Choice | int:
        if isinstance(otherwise, ReturnTo):
            back = otherwise.choice()
            return back if self.all_left else Choice(self.any_at(self.next), self.next, back, none_left=True)
        return Choice(self.any_at(self.next), self.next, otherwise, none_left=True)

    def jump(self, condition: Value, then: int, other: int) -> Choice:
        return Choice(condition, then, other, follow=True)
