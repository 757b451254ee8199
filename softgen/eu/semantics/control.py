"""Branches: the channels that a branch moves, and the thread's next ip.

PER_CHANNEL has the semantics of threads with an ip per channel, SINGLE_FLOW those of single program flow; branches with a mask stack are in
mask_stack.py. The functions take a BranchMachine (branch_machine.py).
"""

from __future__ import annotations

from typing import Any

from softgen.eu.semantics.branch_machine import BranchMachine, BranchSemantics, LinkingBranch, semantics_of

PER_CHANNEL: dict[str, BranchSemantics] = {}
SINGLE_FLOW: dict[str, BranchSemantics] = {}
LINKING = frozenset({"call", "calla", "ret"})  # their return address is in a register: they need a LinkingBranch


# -- an ip per channel ---------------------------------------------------------------------------------------------


@semantics_of(PER_CHANNEL, "if")
def if_(b: BranchMachine) -> Any:
    """Channels whose predicate is false go to the instruction after else, or to endif (BDW 21604-21674)."""
    b.split(b.active & ~b.taken, b.uip if b.instruction.branch_control else b.jip)
    return b.continue_or(b.jip)


@semantics_of(PER_CHANNEL, "else")
def else_(b: BranchMachine) -> Any:
    """Active channels go to endif, or to the join before it."""
    b.split(b.active, b.jip)
    return b.continue_or(b.jip)


@semantics_of(PER_CHANNEL, "endif")
def endif(b: BranchMachine) -> Any:
    b.split(0, b.next)
    return b.continue_or(b.jip)


@semantics_of(PER_CHANNEL, "while")
def while_(b: BranchMachine) -> Any:
    target = b.jip
    b.split(b.taken, target)
    return b.choose(b.any(b.taken), target, b.next)


@semantics_of(PER_CHANNEL, "break")
def break_(b: BranchMachine) -> Any:
    """UIP is the address of the while; leaving channels wait at the instruction after it."""
    b.split(b.taken, b.instruction_after(b.uip))
    return b.continue_or(b.jip)


@semantics_of(PER_CHANNEL, "cont", "halt", "brc")
def cont_halt_brc(b: BranchMachine) -> Any:
    b.split(b.taken, b.uip)
    return b.continue_or(b.jip)


@semantics_of(PER_CHANNEL, "brd")
def brd(b: BranchMachine) -> Any:
    target = b.jip
    b.split(b.taken, target)
    return b.choose(b.any_at(target), target, b.next)


@semantics_of(PER_CHANNEL, "goto")
def goto(b: BranchMachine) -> Any:
    """With branch control, channels whose predicate holds leave and the thread follows them. Without it, the other channels leave (on later
    generations also those whose predicate holds), and the thread continues with the rest (BDW 21108-21187)."""
    target = b.uip
    if b.instruction.branch_control:
        b.split(b.taken, target)
        return b.choose(b.any_at(target), target, b.continue_or(b.jip))
    b.split(b.taken if b.rules.goto_leaves == "true" else b.active & ~b.taken, target)
    return b.continue_or(b.jip)


@semantics_of(PER_CHANNEL, "join")
def join(b: BranchMachine) -> Any:
    """Channels whose predicate is false stay at the join."""
    b.set_ip(b.taken, b.next)
    return b.continue_or(b.jip)


@semantics_of(PER_CHANNEL, "call", "calla")
def call(b: LinkingBranch) -> Any:
    """JIP of a calla is an absolute address."""
    target = b.jip if b.instruction.opcode == "call" else b.absolute
    called = b.link()
    b.split(b.taken, target)
    return b.choose(called, target, b.next)


@semantics_of(PER_CHANNEL, "ret")
def ret(b: LinkingBranch) -> Any:
    """The channels of the call's mask return to the address it stored; the thread follows when no channel is left here (public: the call's
    two dwords)."""
    address, mask = b.linked()
    b.split(b.taken & mask, address)
    return b.continue_or(address)


@semantics_of(PER_CHANNEL, "jmpi")
@semantics_of(SINGLE_FLOW, "jmpi")
def jmpi(b: BranchMachine) -> Any:
    """All active channels jump if channel 0's predicate holds; the offset counts from the next instruction."""
    return b.jump(b.includes_first(b.taken), b.jip, b.next)


# -- single program flow: one ip for all channels ------------------------------------------------------------------


@semantics_of(SINGLE_FLOW, "if", "break", "cont", "halt")
def single_if_break(b: BranchMachine) -> Any:
    """JIP is not used (BDW 21604-21616, 17535-17548)."""
    target = b.instruction_after(b.uip) if b.instruction.opcode == "break" else b.uip
    if b.instruction.opcode == "if":
        return b.choose(b.any(b.taken), b.next, target)
    return b.choose(b.any(b.taken), target, b.next)


@semantics_of(SINGLE_FLOW, "else")
def single_else(b: BranchMachine) -> Any:
    return b.jip


@semantics_of(SINGLE_FLOW, "endif", "join")
def single_endif(b: BranchMachine) -> Any:
    return b.next


@semantics_of(SINGLE_FLOW, "while", "brd")
def single_while(b: BranchMachine) -> Any:
    return b.choose(b.any(b.taken), b.jip, b.next)


@semantics_of(SINGLE_FLOW, "brc")
def single_brc(b: BranchMachine) -> Any:
    return b.choose(b.any(b.taken), b.uip, b.next)


@semantics_of(SINGLE_FLOW, "goto")
def single_goto(b: BranchMachine) -> Any:
    if b.instruction.branch_control or b.rules.goto_leaves == "true":
        return b.choose(b.any(b.taken), b.uip, b.next)
    return b.choose(b.any(b.taken), b.next, b.uip)


@semantics_of(SINGLE_FLOW, "call", "calla")
def single_call(b: LinkingBranch) -> Any:
    return b.choose(b.link(), b.jip if b.instruction.opcode == "call" else b.absolute, b.next)


@semantics_of(SINGLE_FLOW, "ret")
def single_ret(b: LinkingBranch) -> Any:
    return b.choose(b.any(b.taken), b.linked()[0], b.next)
