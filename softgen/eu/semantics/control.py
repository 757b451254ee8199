"""Branches: which channels go where.

With an ip per channel, a branch gives the channels it finds active a new ip each, and then decides where the thread itself goes on; a
channel executes where its own ip is the thread's. A channel that waits elsewhere is left alone, and wakes when the thread comes by.
With a mask stack, if and do push, endif and the end of a loop pop, and a branch out of nested ifs pops as many as it says.

A function gets a Branch and tells it; it returns the thread's next ip.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from softgen.errors import DecodeError, Unsupported
from softgen.eu import labels
from softgen.eu.instruction import Instruction
from softgen.eu.thread import ALL, CHANNELS, Thread

MASKS = 16  # that a mask stack holds; what is pushed beyond goes to scratch space (G45 661)


@dataclass
class Branch:
    """One execution of a branch."""

    thread: Thread
    instruction: Instruction
    ip: int
    next: int  # the instruction after this one
    active: int  # channels that execute it
    taken: int  # those of them whose predicate holds
    holds: int  # all channels whose predicate holds
    register: Callable[[], tuple[int, int]]  # what its register operand holds: two dwords
    store: Callable[[int, int], None]  # writes two dwords to its destination
    after: Callable[[int], int]  # the instruction behind the one at an address

    @property
    def jip(self) -> int:
        return self._target(self.instruction.jip)

    @property
    def uip(self) -> int:
        return self._target(self.instruction.uip)

    def _target(self, count: int | None) -> int:
        """Where an offset leads; without one in the instruction, the register says it, in the same unit."""
        if count is None:
            count = (self.register()[0] ^ 1 << 31) - (1 << 31)
        return labels.target(self.instruction, self.ip, count)

    def send(self, channels: int, to: int) -> None:
        for channel in range(CHANNELS):
            if channels >> channel & 1:
                self.thread.channel_ip[channel] = to

    def part(self, leave: int, to: int) -> None:
        """The channels that leave go there, the other active ones go on."""
        self.send(self.active & ~leave, self.next)
        self.send(leave, to)

    def anyone(self, at: int) -> bool:
        mask = self.thread.execution_mask
        return any(mask >> channel & 1 and ip == at for channel, ip in enumerate(self.thread.channel_ip))

    def on_or(self, otherwise: int) -> int:
        """Goes on if a channel is there, else goes elsewhere."""
        return self.next if self.anyone(self.next) else otherwise


Meaning = Callable[[Branch], int]
CHANNEL: dict[str, Meaning] = {}
SINGLE: dict[str, Meaning] = {}
STACK: dict[str, Meaning] = {}


def _meaning(table: dict[str, Meaning], *names: str) -> Callable[[Meaning], Meaning]:
    def keep(function: Meaning) -> Meaning:
        table.update(dict.fromkeys(names, function))
        return function

    return keep


# -- an ip per channel ---------------------------------------------------------------------------------------------


@_meaning(CHANNEL, "if")
def if_(b: Branch) -> int:
    """Channels without the predicate go behind else, or to endif (BDW 21604-21674)."""
    b.part(b.active & ~b.taken, b.uip if b.instruction.branch_control else b.jip)
    return b.on_or(b.jip)


@_meaning(CHANNEL, "else")
def else_(b: Branch) -> int:
    """Channels that come here from above go on at endif, or at the join before it."""
    b.part(b.active, b.jip)
    return b.on_or(b.jip)


@_meaning(CHANNEL, "endif")
def endif(b: Branch) -> int:
    b.part(0, b.next)
    return b.on_or(b.jip)


@_meaning(CHANNEL, "while")
def while_(b: Branch) -> int:
    target = b.jip
    b.part(b.taken, target)
    return target if b.taken else b.next


@_meaning(CHANNEL, "break")
def break_(b: Branch) -> int:
    """UIP names the while; the channels wait behind it, where the loop is left."""
    b.part(b.taken, b.after(b.uip))
    return b.on_or(b.jip)


@_meaning(CHANNEL, "cont", "halt", "brc")
def leave(b: Branch) -> int:
    b.part(b.taken, b.uip)
    return b.on_or(b.jip)


@_meaning(CHANNEL, "brd")
def brd(b: Branch) -> int:
    target = b.jip
    b.part(b.taken, target)
    return target if b.anyone(target) else b.next


@_meaning(CHANNEL, "goto")
def goto(b: Branch) -> int:
    """Who leaves: with branch control channels whose predicate holds, and the thread follows them; without it the others, or, on later
    generations, the same, and the thread stays with the rest (BDW 21108-21187)."""
    target = b.uip
    if b.instruction.branch_control:
        b.part(b.taken, target)
        return target if b.anyone(target) else b.on_or(b.jip)
    b.part(b.taken if b.thread.rules.goto_leaves == "true" else b.active & ~b.taken, target)
    return b.on_or(b.jip)


@_meaning(CHANNEL, "join")
def join(b: Branch) -> int:
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
    return _call(b, b.register()[0] if b.instruction.jip is None else b.instruction.jip)


@_meaning(CHANNEL, "ret")
def ret(b: Branch) -> int:
    """The channels of the call return to the address it left; the thread follows when none stays (public: the call's two dwords)."""
    address, mask = b.register()
    b.part(b.taken & mask, address)
    return b.on_or(address)


@_meaning(CHANNEL, "jmpi")
@_meaning(SINGLE, "jmpi")
def jmpi(b: Branch) -> int:
    """All together, if channel 0's predicate holds. From the instruction after it."""
    target = b.jip if b.taken & 1 else b.next
    b.part(b.active, target)
    return target


# -- single program flow: one ip for all ---------------------------------------------------------------------------


@_meaning(SINGLE, "if", "break", "cont", "halt")
def all_leave(b: Branch) -> int:
    """JIP is not used (BDW 21604-21616, 17535-17548)."""
    leaves = not b.taken if b.instruction.opcode == "if" else bool(b.taken)
    target = b.after(b.uip) if b.instruction.opcode == "break" else b.uip
    return target if leaves else b.next


@_meaning(SINGLE, "else")
def all_else(b: Branch) -> int:
    return b.jip


@_meaning(SINGLE, "endif", "join")
def all_on(b: Branch) -> int:
    return b.next


@_meaning(SINGLE, "while", "brd")
def all_jump(b: Branch) -> int:
    return b.jip if b.taken else b.next


@_meaning(SINGLE, "brc")
def all_converge(b: Branch) -> int:
    return b.uip if b.taken else b.next


@_meaning(SINGLE, "goto")
def all_goto(b: Branch) -> int:
    leaves = b.instruction.branch_control or b.thread.rules.goto_leaves == "true"
    return b.uip if bool(b.taken) == leaves else b.next


@_meaning(SINGLE, "call", "calla")
def all_call(b: Branch) -> int:
    return call(b) if b.instruction.opcode == "call" else calla(b)


@_meaning(SINGLE, "ret")
def all_return(b: Branch) -> int:
    return b.register()[0] if b.taken else b.next


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
