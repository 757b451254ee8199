"""BranchMachine: the interface that branch semantics are written against, and its implementation in the interpreter.

With an ip per channel, a branch gives each active channel a new ip and then chooses the thread's next ip; a channel is active where its own
ip is the thread's. A channel that waits at another ip is left alone until the thread reaches that ip. With a mask stack, if and do push
masks, endif and the end of a loop pop them, and a branch out of nested ifs pops as many as it encodes.

A branch's semantics take a BranchMachine and return the thread's next ip. They are written once: in the interpreter masks and ips are
numbers (InterpretedBranch); the compilers have implementations in which a target is a label and a mask is lanes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from softgen.bits.units import DWORD_MASK
from softgen.eu.isa import labels
from softgen.eu.isa.instruction import Instruction
from softgen.eu.isa.rules import ExecutionRules
from softgen.eu.thread.block import CHANNELS
from softgen.eu.thread.state import ThreadState

BranchSemantics = Callable[[Any], Any]  # BranchMachine -> the thread's next ip


class BranchMachine(ABC):
    """One execution of a branch: masks and conditions are numbers in the interpreter, lanes in compiled code."""

    instruction: Instruction
    rules: ExecutionRules
    next: int  # ip of the next instruction
    active: Any  # channels that execute the branch
    taken: Any  # active channels whose predicate holds

    @property
    @abstractmethod
    def jip(self) -> Any: ...

    @property
    @abstractmethod
    def uip(self) -> Any: ...

    @abstractmethod
    def instruction_after(self, address: int) -> int:
        """The ip of the instruction that follows the one at an address."""

    @abstractmethod
    def set_ip(self, channels: Any, to: int) -> None:
        """Set the ip of channels; those at another ip than the thread's wait there."""

    @abstractmethod
    def split(self, leave: Any, to: int) -> None:
        """Set the ip of the leaving channels to `to`, and that of the other active ones to the next instruction."""

    @abstractmethod
    def any(self, channels: Any) -> Any: ...

    @abstractmethod
    def includes_first(self, channels: Any) -> Any:
        """Whether a mask includes the first of the instruction's channels."""

    @abstractmethod
    def any_at(self, at: int) -> Any:
        """Whether any channel's ip is `at`."""

    @abstractmethod
    def choose(self, condition: Any, then: Any, other: Any) -> Any:
        """The thread's next ip, by a condition."""

    @abstractmethod
    def jump(self, condition: Any, then: int, other: int) -> Any:
        """Choose the thread's next ip and move all active channels to it."""

    def continue_or(self, otherwise: Any) -> Any:
        """The next instruction if any channel is there, else `otherwise`."""
        return self.choose(self.any_at(self.next), self.next, otherwise)


class OffsetBranch(BranchMachine):
    """A branch whose targets are computed from its encoded offsets."""

    @property
    def jip(self) -> int:
        return self._target(self.instruction.jip)

    @property
    def uip(self) -> int:
        return self._target(self.instruction.uip)

    @abstractmethod
    def _target(self, count: int | None) -> int:
        """The target of an encoded offset; None: the offset is in a register."""


class LinkingBranch(OffsetBranch):
    """A branch that may also be a call or a return: the call's link is the ip after it and the mask of its channels, two dwords of a
    register."""

    @property
    def absolute(self) -> int:
        """JIP as an address."""
        return self._target(None) if self.instruction.jip is None else self.instruction.jip

    @abstractmethod
    def link(self) -> Any:
        """Store the next ip and the taken channels to the destination if there are any; whether there are."""

    @abstractmethod
    def linked(self) -> tuple[Any, Any]:
        """The address and the mask that a call stored."""


@dataclass
class InterpretedBranch(LinkingBranch):
    """A branch in the interpreter, which changes a ThreadState."""

    thread: ThreadState
    instruction: Instruction
    ip: int
    next: int
    active: int
    taken: int
    predicated: int  # all channels whose predicate holds, active or not
    dwords: Callable[[], tuple[int, int]]  # reads two dwords of the register operand
    store: Callable[[int, int], None]  # writes two dwords to the destination
    following: Callable[[int], int]  # address of an instruction -> address of the next one

    def __post_init__(self) -> None:
        self.rules = self.thread.rules

    def _target(self, count: int | None) -> int:
        """The target of an offset; an offset in a register has the same unit, and ip the 32 bits that there are."""
        if count is None:
            return labels.target(self.instruction, self.ip, self.dwords()[0]) & DWORD_MASK
        return labels.target(self.instruction, self.ip, count)

    @property
    def absolute(self) -> int:
        return self.dwords()[0] if self.instruction.jip is None else self.instruction.jip

    def link(self) -> bool:
        if self.taken:
            self.store(self.next, self.taken)
        return bool(self.taken)

    def linked(self) -> tuple[int, int]:
        return self.dwords()

    def instruction_after(self, address: int) -> int:
        return self.following(address)

    def set_ip(self, channels: int, to: int) -> None:
        for channel in range(CHANNELS):
            if channels >> channel & 1:
                self.thread.channel_ip[channel] = to

    def split(self, leave: int, to: int) -> None:
        self.set_ip(self.active & ~leave, self.next)
        self.set_ip(leave, to)

    def any(self, channels: int) -> bool:
        return bool(channels)

    def includes_first(self, channels: int) -> bool:
        return bool(channels & 1)

    def any_at(self, at: int) -> bool:
        mask = self.thread.dispatch_mask
        return any(mask >> channel & 1 and ip == at for channel, ip in enumerate(self.thread.channel_ip))

    def choose(self, condition: bool, then: int, other: int) -> int:
        return then if condition else other

    def jump(self, condition: bool, then: int, other: int) -> int:
        to = then if condition else other
        self.split(self.active, to)
        return to


def semantics_of(table: dict[str, BranchSemantics], *names: str) -> Callable[[BranchSemantics], BranchSemantics]:
    """Decorator: enter a function in a table as the semantics of opcodes."""

    def register(function: BranchSemantics) -> BranchSemantics:
        table.update(dict.fromkeys(names, function))
        return function

    return register
