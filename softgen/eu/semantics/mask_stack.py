"""Branches of the generation with a mask stack: IMask, LMask and CMask pushed and popped by if, do, else, endif and while.

Which masks a branch changes is public (Mesa's code generator relies on it). A branch jumps only when no channel of the block is left, and
then pops the loop's masks as the end of the loop would: that makes the encoded pop counts right.
"""

from __future__ import annotations

from collections.abc import Sequence

from softgen.errors import DecodeError, Unsupported
from softgen.eu.semantics.branch_machine import BranchSemantics, InterpretedBranch, semantics_of
from softgen.eu.thread.block import MASK_STACK_DEPTH
from softgen.eu.thread.state import ALL_CHANNELS

MASK_STACK: dict[str, BranchSemantics] = {}  # deeper nesting spills masks to scratch space (G45 661)


def _check_depth(b: InterpretedBranch, stack: Sequence[object]) -> None:
    if len(stack) >= MASK_STACK_DEPTH:
        what = f"{b.instruction.opcode} nested more than {MASK_STACK_DEPTH} deep"
        raise Unsupported(f"{what}: mask stacks that overflow to scratch space are not yet simulated")


def _pop(b: InterpretedBranch, count: int) -> None:
    masks = b.thread.masks
    if count > len(masks.imask_stack):
        raise DecodeError(f"{b.instruction.opcode} pops {count} masks, but the IMask stack has {len(masks.imask_stack)}")
    for _ in range(count):
        masks.imask = masks.imask_stack.pop()


@semantics_of(MASK_STACK, "if", "iff")
def stack_if(b: InterpretedBranch) -> int:
    masks = b.thread.masks
    if b.instruction.opcode == "iff" and not b.taken:
        return b.jip  # after endif, which would pop
    _check_depth(b, masks.imask_stack)
    masks.imask_stack.append(masks.imask)
    masks.imask = b.taken
    return b.next if b.taken else b.jip


@semantics_of(MASK_STACK, "else")
def stack_else(b: InterpretedBranch) -> int:
    masks = b.thread.masks
    if not masks.imask_stack:
        raise DecodeError("else outside of an if: the IMask stack is empty")
    masks.imask = masks.imask_stack[-1] & ~masks.imask
    if b.thread.active:
        return b.next
    _pop(b, b.instruction.pop or 0)
    return b.jip


@semantics_of(MASK_STACK, "endif")
def stack_endif(b: InterpretedBranch) -> int:
    _pop(b, b.instruction.pop or 0)
    return b.next


@semantics_of(MASK_STACK, "do")
def stack_do(b: InterpretedBranch) -> int:
    masks = b.thread.masks
    _check_depth(b, masks.loop_stack)
    masks.loop_stack.append((masks.lmask, masks.cmask))
    masks.lmask, masks.cmask = b.active, ALL_CHANNELS
    return b.next


def _pop_loop(b: InterpretedBranch) -> None:
    masks = b.thread.masks
    if not masks.loop_stack:
        raise DecodeError(f"{b.instruction.opcode} outside of a loop: the loop stack is empty")
    masks.lmask, masks.cmask = masks.loop_stack.pop()


@semantics_of(MASK_STACK, "break")
def stack_break(b: InterpretedBranch) -> int:
    masks = b.thread.masks
    masks.lmask &= ~b.taken
    if masks.lmask & b.thread.dispatch_mask:
        return b.next
    _pop(b, b.instruction.pop or 0)
    _pop_loop(b)
    return b.jip


@semantics_of(MASK_STACK, "cont")
def stack_continue(b: InterpretedBranch) -> int:
    masks = b.thread.masks
    masks.cmask &= ~b.taken
    if masks.cmask & masks.lmask & b.thread.dispatch_mask:
        return b.next
    _pop(b, b.instruction.pop or 0)
    return b.jip


@semantics_of(MASK_STACK, "while")
def stack_while(b: InterpretedBranch) -> int:
    """CMask is reset; channels whose predicate holds run another iteration."""
    masks = b.thread.masks
    again = masks.lmask & b.thread.dispatch_mask & masks.imask & b.predicated
    if again:
        masks.lmask, masks.cmask = again, ALL_CHANNELS
        return b.jip
    _pop_loop(b)
    return b.next


@semantics_of(MASK_STACK, "jmpi")
def stack_jmpi(b: InterpretedBranch) -> int:
    return b.jip if b.taken & 1 else b.next
