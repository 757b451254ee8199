"""Branches of the generation with a mask stack: IMask, LMask and CMask pushed and popped by if, do, else, endif and while.

Which masks a branch changes is public (Mesa's code generator relies on it). A branch jumps only when no channel of the block is left, and
then pops the loop's masks as the end of the loop would: that makes the encoded pop counts right.

The functions are lane programs over a StackBranch, on every engine: masks are one lane of 32 bits in the thread's control block. All that
a branch requires comes before its first effect. They return the thread's next ip, as the machine represents it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from softgen.errors import DecodeError, SoftgenError, Unsupported
from softgen.eu.isa import labels
from softgen.eu.isa.instruction import Instruction, Operand
from softgen.eu.isa.rules import rules
from softgen.eu.semantics.branch_machine import BranchSemantics, semantics_of
from softgen.eu.thread.block import BLOCK_OFFSETS, MASK_STACK_DEPTH, ControlBlock
from softgen.eu.thread.regions import register_location
from softgen.eu.thread.state import ALL_CHANNELS, ThreadState
from softgen.lanes.machine import Machine
from softgen.lanes.numpy.machine import NumpyMachine
from softgen.lanes.record import RecordLayout, RecordView
from softgen.lanes.types import u32
from softgen.lanes.value import Value

MASK_STACK: dict[str, BranchSemantics] = {}  # deeper nesting spills masks to scratch space (G45 661)
CONTROL = RecordLayout.of(ControlBlock)
ADD_IP = "add_ip"  # an addition to ip, as a branch
UNCHANGING = frozenset({"jmpi", ADD_IP})  # branches that leave all masks as they are


class StackBranch(ABC):
    """One execution of a branch. Masks are single lanes; conditions are single lanes of bool."""

    m: Machine
    instruction: Instruction
    control: RecordView  # the thread's ControlBlock
    dispatched: Value  # dispatch mask
    active: Value  # channels that execute the branch
    predicated: Value  # channels of the branch whose predicate holds, active or not
    next: Any
    jip: Any

    @abstractmethod
    def require(self, holds: Value, error: Callable[[], SoftgenError]) -> None:
        """An error where the condition does not hold. Compiled code leaves that to the interpreter."""

    @abstractmethod
    def choose(self, condition: Value, then: Any, other: Any) -> Any:
        """The thread's next ip."""

    @property
    def taken(self) -> Value:
        return self.active & self.predicated

    def mask(self, name: str) -> Value:
        return self.control.load(name)

    def set(self, name: str, value: Value) -> None:
        self.control.store(name, value)

    def depth(self, name: str) -> Value:
        return self.control.load(f"{name}_depth")

    def number(self, number: int) -> Value:
        return self.m.constant(u32, number, 1)


class MaskStackFault(Exception):
    """An overflow or underflow of a mask stack: the stack overflow exception, or `error` where that is not enabled."""

    def __init__(self, error: SoftgenError) -> None:
        super().__init__(str(error))
        self.error = error


class InterpretedStack(StackBranch):
    """A branch with a mask stack in the interpreter."""

    def __init__(self, m: NumpyMachine, thread: ThreadState, inst: Instruction, active: int, predicated: int, next_ip: int,
                 jip: int) -> None:  # fmt: skip
        self.m, self.instruction, self.next, self.jip = m, inst, next_ip, jip
        start = BLOCK_OFFSETS["control"]
        self.control = m.record(CONTROL, m.memory(thread.block[start : start + CONTROL.size], "control block"))
        self.dispatched, self.active, self.predicated = (self.number(mask) for mask in (thread.dispatch_mask, active, predicated))

    def require(self, holds: Value, error: Callable[[], SoftgenError]) -> None:
        if not holds:
            raise MaskStackFault(error())

    def choose(self, condition: Value, then: int, other: int) -> int:
        return then if condition else other


# -- the stacks --------------------------------------------------------------------------------------------------------


def _require_room(b: StackBranch, name: str, unless: Value | None = None) -> None:
    room = b.depth(name) < MASK_STACK_DEPTH
    what = f"{b.instruction.opcode} nested more than {MASK_STACK_DEPTH} deep"
    b.require(room if unless is None else room | unless,
              lambda: Unsupported(f"{what}: mask stacks that overflow to scratch space are not yet simulated"))  # fmt: skip


def _require_masks(b: StackBranch, unless: Value | None = None) -> None:
    """That the IMask stack has as many masks as the branch pops."""
    count, depth = b.instruction.pop or 0, b.depth("imask")
    if count:
        b.require(depth >= count if unless is None else (depth >= count) | unless, lambda: DecodeError(
            f"{b.instruction.opcode} pops {count} masks, but the IMask stack has {int(depth.payload[0])}"))  # fmt: skip


def _require_loop(b: StackBranch, unless: Value) -> None:
    b.require((b.depth("loop") > 0) | unless,
              lambda: DecodeError(f"{b.instruction.opcode} outside of a loop: the loop stack is empty"))  # fmt: skip


def _push(b: StackBranch) -> None:
    depth = b.depth("imask")
    b.control.store("imask_stack", b.mask("imask"), element=depth)
    b.set("imask_depth", depth + 1)


def _pop(b: StackBranch) -> None:
    """Pop as many masks as the branch encodes; IMask becomes the last one."""
    if b.instruction.pop:
        left = b.depth("imask") - b.instruction.pop
        b.set("imask", b.control.load("imask_stack", element=left))
        b.set("imask_depth", left)


def _go_on_or_pop(b: StackBranch, name: str, mask: Value, stays: Value) -> Any:
    """Set a mask. Where channels stay active, the next ip is that of the next instruction; else pop masks and go to JIP."""
    _require_masks(b, unless=stays)
    b.set(name, mask)
    for _ in b.m.If(~stays):
        _pop(b)
    return b.choose(stays, b.next, b.jip)


def _pop_loop(b: StackBranch) -> None:
    left = b.depth("loop") - 1
    for number, name in enumerate(("lmask", "cmask")):
        b.set(name, b.control.load("loop_stack", element=left * 2 + number))
    b.set("loop_depth", left)


# -- branches ----------------------------------------------------------------------------------------------------------


@semantics_of(MASK_STACK, "if")
def stack_if(b: StackBranch) -> Any:
    taken = b.taken
    _require_room(b, "imask")
    _push(b)
    b.set("imask", taken)
    return b.choose(taken != 0, b.next, b.jip)


@semantics_of(MASK_STACK, "iff")
def stack_iff(b: StackBranch) -> Any:
    """An if without else: if no channel is left it goes on after the endif, which would pop."""
    taken = b.taken
    _require_room(b, "imask", unless=taken == 0)
    for _ in b.m.If(taken != 0):
        _push(b)
        b.set("imask", taken)
    return b.choose(taken != 0, b.next, b.jip)


@semantics_of(MASK_STACK, "else")
def stack_else(b: StackBranch) -> Any:
    depth = b.depth("imask")
    b.require(depth > 0, lambda: DecodeError("else outside of an if: the IMask stack is empty"))
    imask = b.control.load("imask_stack", element=depth - 1) & ~b.mask("imask")
    stays = (b.dispatched & imask & b.mask("lmask") & b.mask("cmask")) != 0
    return _go_on_or_pop(b, "imask", imask, stays)


@semantics_of(MASK_STACK, "endif")
def stack_endif(b: StackBranch) -> Any:
    _require_masks(b)
    _pop(b)
    return b.next


@semantics_of(MASK_STACK, "do")
def stack_do(b: StackBranch) -> Any:
    _require_room(b, "loop")
    depth = b.depth("loop")
    for number, name in enumerate(("lmask", "cmask")):
        b.control.store("loop_stack", b.mask(name), element=depth * 2 + number)
    b.set("loop_depth", depth + 1)
    b.set("lmask", b.active)
    b.set("cmask", b.number(ALL_CHANNELS))
    return b.next


@semantics_of(MASK_STACK, "break")
def stack_break(b: StackBranch) -> Any:
    lmask = b.mask("lmask") & ~b.taken
    stays = (lmask & b.dispatched) != 0
    _require_masks(b, unless=stays)
    _require_loop(b, unless=stays)
    b.set("lmask", lmask)
    for _ in b.m.If(~stays):
        _pop(b)
        _pop_loop(b)
    return b.choose(stays, b.next, b.jip)


@semantics_of(MASK_STACK, "cont")
def stack_continue(b: StackBranch) -> Any:
    cmask = b.mask("cmask") & ~b.taken
    stays = (cmask & b.mask("lmask") & b.dispatched) != 0
    return _go_on_or_pop(b, "cmask", cmask, stays)


@semantics_of(MASK_STACK, "while")
def stack_while(b: StackBranch) -> Any:
    """CMask is reset; channels whose predicate holds run another iteration."""
    again = b.mask("lmask") & b.dispatched & b.mask("imask") & b.predicated
    _require_loop(b, unless=again != 0)
    for _ in b.m.If(again != 0):
        b.set("lmask", again)
        b.set("cmask", b.number(ALL_CHANNELS))
    for _ in b.m.If(again == 0):
        _pop_loop(b)
    return b.choose(again != 0, b.jip, b.next)


@semantics_of(MASK_STACK, "jmpi")
def stack_jmpi(b: StackBranch) -> Any:
    """Channel 0's predicate decides, whether it is active or not."""
    return b.choose((b.predicated & 1) != 0, b.jip, b.next)


@semantics_of(MASK_STACK, ADD_IP)
def stack_add_ip(b: StackBranch) -> Any:
    """An addition to ip: a jump if its channel is on and its predicate holds (public: Mesa branches so in single program flow)."""
    return b.choose((b.predicated if b.instruction.no_mask else b.taken) != 0, b.jip, b.next)


def branch_of(inst: Instruction) -> Instruction:
    """An addition of a number to ip as a branch, for compilers; any other instruction as it is."""
    if inst.opcode != "add" or inst.exec_size != 1 or rules(inst.gen).flow != "stack" or inst.breakpoint:
        return inst
    unit = labels.unit(inst.gen, ADD_IP)
    dst, (source, count) = inst.dst, inst.sources
    plain = not (inst.align16 or inst.condition or inst.saturate or inst.acc_write or count.negate or count.absolute)
    if not plain or dst is None or not _is_ip(dst, inst.gen) or not _is_ip(source, inst.gen) or count.file != "imm":
        return inst
    if dst.type not in ("ud", "d") or source.type not in ("ud", "d") or count.type not in ("ud", "d"):
        return inst
    offset = (count.immediate ^ 1 << 31) - (1 << 31)
    if offset % unit:
        return inst
    return replace(inst, opcode=ADD_IP, form="branch", dst=None, sources=(), jip=offset // unit)


def _is_ip(operand: Operand, gen: float) -> bool:
    named = operand.file == "arf" and not (operand.indirect or operand.negate or operand.absolute)
    return named and register_location(operand, gen) == ("ip", 0)
