"""Branches: which channels go where.

With an ip per channel, a branch gives the channels it finds active a new ip each, and then decides where the thread itself goes on; a
channel executes where its own ip is the thread's. A channel that waits elsewhere is left alone, and wakes when the thread comes by.
With a mask stack, if and do push, endif and the end of a loop pop, and a branch out of nested ifs pops as many as it says.

A function gets a Flow and tells it; it returns the thread's next ip. Written once: the interpreter's Flow is a Branch, which acts at
once, and translators have their own, where a target is a label and a mask is lanes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from softgen.errors import DecodeError, Unsupported
from softgen.eu.isa import labels
from softgen.eu.isa.instruction import Instruction
from softgen.eu.isa.rules import Rules
from softgen.eu.thread.state import ALL, CHANNELS, Thread

MASKS = 16  # that a mask stack holds; what is pushed beyond goes to scratch space (G45 661)


class Flow(ABC):
    """One execution of a branch, on some machine: masks and conditions are numbers where it runs at once, lanes where it is translated."""

    instruction: Instruction
    rules: Rules
    next: int  # the instruction after this one
    active: Any  # channels that execute it
    taken: Any  # those of them whose predicate holds

    @property
    @abstractmethod
    def jip(self) -> Any: ...

    @property
    @abstractmethod
    def uip(self) -> Any: ...

    @abstractmethod
    def after(self, address: int) -> int:
        """The instruction behind the one at an address."""

    @abstractmethod
    def send(self, channels: Any, to: int) -> None:
        """Gives channels an ip. Those of them that wait elsewhere wait there from now on."""

    @abstractmethod
    def part(self, leave: Any, to: int) -> None:
        """The channels that leave go there, the other active ones go on."""

    @abstractmethod
    def any(self, channels: Any) -> Any: ...

    @abstractmethod
    def leader(self, channels: Any) -> Any:
        """Whether the first of the instruction's channels is among these."""

    @abstractmethod
    def anyone(self, at: int) -> Any:
        """Whether a channel is there."""

    @abstractmethod
    def either(self, condition: Any, one: Any, other: Any) -> Any:
        """The thread goes on here or there."""

    @abstractmethod
    def follow(self, condition: Any, one: int, other: int) -> Any:
        """The same, and all active channels go with it."""

    def on_or(self, otherwise: Any) -> Any:
        """Goes on if a channel is there, else goes elsewhere."""
        return self.either(self.anyone(self.next), self.next, otherwise)


class Counted(Flow):
    """A branch whose targets are addresses, known from what it counts."""

    @property
    def jip(self) -> int:
        return self._target(self.instruction.jip)

    @property
    def uip(self) -> int:
        return self._target(self.instruction.uip)

    @abstractmethod
    def _target(self, count: int | None) -> int:
        """Where a count leads; None stands in a register."""


@dataclass
class Branch(Counted):
    """A branch that runs at once, on a thread."""

    thread: Thread
    instruction: Instruction
    ip: int
    next: int
    active: int
    taken: int
    holds: int  # all channels whose predicate holds
    dwords: Callable[[], tuple[int, int]]  # what its register operand holds: two dwords
    store: Callable[[int, int], None]  # writes two dwords to its destination
    behind: Callable[[int], int]

    def __post_init__(self) -> None:
        self.rules = self.thread.rules

    def _target(self, count: int | None) -> int:
        """Where an offset leads; without one in the instruction, the register says it, in the same unit."""
        if count is None:
            count = (self.dwords()[0] ^ 1 << 31) - (1 << 31)
        return labels.target(self.instruction, self.ip, count)

    def after(self, address: int) -> int:
        return self.behind(address)

    def send(self, channels: int, to: int) -> None:
        for channel in range(CHANNELS):
            if channels >> channel & 1:
                self.thread.channel_ip[channel] = to

    def part(self, leave: int, to: int) -> None:
        self.send(self.active & ~leave, self.next)
        self.send(leave, to)

    def any(self, channels: int) -> bool:
        return bool(channels)

    def leader(self, channels: int) -> bool:
        return bool(channels & 1)

    def anyone(self, at: int) -> bool:
        mask = self.thread.execution_mask
        return any(mask >> channel & 1 and ip == at for channel, ip in enumerate(self.thread.channel_ip))

    def either(self, condition: bool, one: int, other: int) -> int:
        return one if condition else other

    def follow(self, condition: bool, one: int, other: int) -> int:
        to = one if condition else other
        self.part(self.active, to)
        return to


Meaning = Callable[[Any], Any]  # of a Flow: where the thread goes on
CHANNEL: dict[str, Meaning] = {}
SINGLE: dict[str, Meaning] = {}
STACK: dict[str, Meaning] = {}
AT_ONCE = frozenset({"call", "calla", "ret"})  # their targets stand in registers: they take a Branch


def _meaning(table: dict[str, Meaning], *names: str) -> Callable[[Meaning], Meaning]:
    def keep(function: Meaning) -> Meaning:
        table.update(dict.fromkeys(names, function))
        return function

    return keep


# -- an ip per channel ---------------------------------------------------------------------------------------------


@_meaning(CHANNEL, "if")
def if_(b: Flow) -> Any:
    """Channels without the predicate go behind else, or to endif (BDW 21604-21674)."""
    b.part(b.active & ~b.taken, b.uip if b.instruction.branch_control else b.jip)
    return b.on_or(b.jip)


@_meaning(CHANNEL, "else")
def else_(b: Flow) -> Any:
    """Channels that come here from above go on at endif, or at the join before it."""
    b.part(b.active, b.jip)
    return b.on_or(b.jip)


@_meaning(CHANNEL, "endif")
def endif(b: Flow) -> Any:
    b.part(0, b.next)
    return b.on_or(b.jip)


@_meaning(CHANNEL, "while")
def while_(b: Flow) -> Any:
    target = b.jip
    b.part(b.taken, target)
    return b.either(b.any(b.taken), target, b.next)


@_meaning(CHANNEL, "break")
def break_(b: Flow) -> Any:
    """UIP names the while; the channels wait behind it, where the loop is left."""
    b.part(b.taken, b.after(b.uip))
    return b.on_or(b.jip)


@_meaning(CHANNEL, "cont", "halt", "brc")
def leave(b: Flow) -> Any:
    b.part(b.taken, b.uip)
    return b.on_or(b.jip)


@_meaning(CHANNEL, "brd")
def brd(b: Flow) -> Any:
    target = b.jip
    b.part(b.taken, target)
    return b.either(b.anyone(target), target, b.next)


@_meaning(CHANNEL, "goto")
def goto(b: Flow) -> Any:
    """Who leaves: with branch control channels whose predicate holds, and the thread follows them; without it the others, or, on later
    generations, the same, and the thread stays with the rest (BDW 21108-21187)."""
    target = b.uip
    if b.instruction.branch_control:
        b.part(b.taken, target)
        return b.either(b.anyone(target), target, b.on_or(b.jip))
    b.part(b.taken if b.rules.goto_leaves == "true" else b.active & ~b.taken, target)
    return b.on_or(b.jip)


@_meaning(CHANNEL, "join")
def join(b: Flow) -> Any:
    """Channels without the predicate stay where they are."""
    b.send(b.taken, b.next)
    return b.on_or(b.jip)


def _call(b: Branch, target: int) -> int:
    b.part(b.taken, target)
    if not b.taken:
        return b.next
    b.store(b.next, b.taken)
    return target


@_meaning(CHANNEL, "call")
def call(b: Branch) -> int:
    return _call(b, b.jip)


@_meaning(CHANNEL, "calla")
def calla(b: Branch) -> int:
    """JIP is an address, not a distance."""
    return _call(b, b.dwords()[0] if b.instruction.jip is None else b.instruction.jip)


@_meaning(CHANNEL, "ret")
def ret(b: Branch) -> Any:
    """The channels of the call return to the address it left; the thread follows when none stays (public: the call's two dwords)."""
    address, mask = b.dwords()
    b.part(b.taken & mask, address)
    return b.on_or(address)


@_meaning(CHANNEL, "jmpi")
@_meaning(SINGLE, "jmpi")
def jmpi(b: Flow) -> Any:
    """All together, if channel 0's predicate holds. From the instruction after it."""
    return b.follow(b.leader(b.taken), b.jip, b.next)


# -- single program flow: one ip for all ---------------------------------------------------------------------------


@_meaning(SINGLE, "if", "break", "cont", "halt")
def all_leave(b: Flow) -> Any:
    """JIP is not used (BDW 21604-21616, 17535-17548)."""
    target = b.after(b.uip) if b.instruction.opcode == "break" else b.uip
    if b.instruction.opcode == "if":
        return b.either(b.any(b.taken), b.next, target)
    return b.either(b.any(b.taken), target, b.next)


@_meaning(SINGLE, "else")
def all_else(b: Flow) -> Any:
    return b.jip


@_meaning(SINGLE, "endif", "join")
def all_on(b: Flow) -> Any:
    return b.next


@_meaning(SINGLE, "while", "brd")
def all_jump(b: Flow) -> Any:
    return b.either(b.any(b.taken), b.jip, b.next)


@_meaning(SINGLE, "brc")
def all_converge(b: Flow) -> Any:
    return b.either(b.any(b.taken), b.uip, b.next)


@_meaning(SINGLE, "goto")
def all_goto(b: Flow) -> Any:
    if b.instruction.branch_control or b.rules.goto_leaves == "true":
        return b.either(b.any(b.taken), b.uip, b.next)
    return b.either(b.any(b.taken), b.next, b.uip)


@_meaning(SINGLE, "call", "calla")
def all_call(b: Branch) -> Any:
    return call(b) if b.instruction.opcode == "call" else calla(b)


@_meaning(SINGLE, "ret")
def all_return(b: Branch) -> int:
    return b.dwords()[0] if b.taken else b.next


# -- a mask stack (Gen 4.5) ----------------------------------------------------------------------------------------
# Which masks a branch changes is public (Mesa's code generator relies on it); that it jumps only when no channel of the block is left, and
# leaves the loop's masks as its end would, is what makes its pop counts right.


def _room(b: Branch, stack: Sequence[object]) -> None:
    if len(stack) >= MASKS:
        raise Unsupported(f"{b.instruction.opcode} inside {MASKS} others: masks that go to scratch space are not yet simulated")


def _pop(b: Branch, count: int) -> None:
    masks = b.thread.masks
    if count > len(masks.conditionals):
        raise DecodeError(f"{b.instruction.opcode} pops {count} masks where {len(masks.conditionals)} were pushed")
    for _ in range(count):
        masks.conditional = masks.conditionals.pop()


@_meaning(STACK, "if", "iff")
def push_if(b: Branch) -> int:
    masks = b.thread.masks
    if b.instruction.opcode == "iff" and not b.taken:
        return b.jip  # past endif: nothing to pop there
    _room(b, masks.conditionals)
    masks.conditionals.append(masks.conditional)
    masks.conditional = b.taken
    return b.next if b.taken else b.jip


@_meaning(STACK, "else")
def flip(b: Branch) -> int:
    masks = b.thread.masks
    if not masks.conditionals:
        raise DecodeError("else where no if pushed a mask")
    masks.conditional = masks.conditionals[-1] & ~masks.conditional
    if b.thread.active:
        return b.next
    _pop(b, b.instruction.pop or 0)
    return b.jip


@_meaning(STACK, "endif")
def pop_if(b: Branch) -> int:
    _pop(b, b.instruction.pop or 0)
    return b.next


@_meaning(STACK, "do")
def push_loop(b: Branch) -> int:
    masks = b.thread.masks
    _room(b, masks.loops)
    masks.loops.append((masks.loop, masks.carry_on))
    masks.loop, masks.carry_on = b.active, ALL
    return b.next


def _pop_loop(b: Branch) -> None:
    masks = b.thread.masks
    if not masks.loops:
        raise DecodeError(f"{b.instruction.opcode} where no do pushed a mask")
    masks.loop, masks.carry_on = masks.loops.pop()


@_meaning(STACK, "break")
def stack_break(b: Branch) -> int:
    masks = b.thread.masks
    masks.loop &= ~b.taken
    if masks.loop & b.thread.execution_mask:
        return b.next
    _pop(b, b.instruction.pop or 0)
    _pop_loop(b)
    return b.jip


@_meaning(STACK, "cont")
def stack_continue(b: Branch) -> int:
    masks = b.thread.masks
    masks.carry_on &= ~b.taken
    if masks.carry_on & masks.loop & b.thread.execution_mask:
        return b.next
    _pop(b, b.instruction.pop or 0)
    return b.jip


@_meaning(STACK, "while")
def stack_while(b: Branch) -> int:
    """Channels that continued are back; those the predicate keeps go round again."""
    masks = b.thread.masks
    again = masks.loop & b.thread.execution_mask & masks.conditional & b.holds
    if again:
        masks.loop, masks.carry_on = again, ALL
        return b.jip
    _pop_loop(b)
    return b.next


@_meaning(STACK, "jmpi")
def stack_jump(b: Branch) -> int:
    return b.jip if b.taken & 1 else b.next
