"""Branches with a mask stack in the threaded engine: semantics/mask_stack.py over the control block."""

from __future__ import annotations

from collections.abc import Callable

from softgen.errors import SoftgenError
from softgen.eu.isa.instruction import Instruction
from softgen.eu.semantics.mask_stack import CONTROL, MASK_STACK, UNCHANGING, StackBranch
from softgen.eu.thread.predicate import first_channel, predicate
from softgen.eu.threaded import flow
from softgen.eu.threaded.flow import RecordTarget
from softgen.eu.threaded.record import FIRST, NEXT, OP
from softgen.eu.threaded.state import ACTIVE, BlockState, Escape
from softgen.eu.threaded.state import CONTROL as CONTROL_BLOCK
from softgen.lanes.code_machine import CodeMachine
from softgen.lanes.types import u32
from softgen.lanes.value import Value


class BlockStack(StackBranch):
    """One branch of a shape; its addresses are in the record."""

    m: CodeMachine

    def __init__(self, state: BlockState, inst: Instruction, vector: bool) -> None:
        self.state, self.m, self.instruction = state, state.m, inst
        self.control = state.m.record(CONTROL, state.at(CONTROL_BLOCK).memory("control block"))
        self.dispatched = flow.execution(state, vector)
        self.active = state.at(ACTIVE).load(u32).lane()
        predicated = state.m.scalar(state.m.bits_from_mask(predicate(state, inst)))
        self.predicated = (predicated << state.field("group") + first_channel(state, inst)).lane()
        self.next = RecordTarget(state.field(NEXT), state.inside(OP.itemsize))
        known = inst.jip is not None or inst.opcode != "jmpi"
        self.jip = RecordTarget(state.field(FIRST), state.record("first")) if known else flow.register_target(state, inst)

    def require(self, holds: Value, error: Callable[[], SoftgenError]) -> None:
        self.state.escape_if(self.m.scalar(~holds))

    def choose(self, condition: Value, then: RecordTarget, other: RecordTarget) -> RecordTarget:
        return flow.chosen(self.m, self.m.scalar(condition), then, other)


def branch(state: BlockState, inst: Instruction, vector: bool) -> None:
    meaning = MASK_STACK.get(inst.opcode)
    if meaning is None:
        raise Escape
    made = BlockStack(state, inst, vector)
    to = meaning(made)
    if inst.opcode not in UNCHANGING:
        active = made.dispatched
        for name in ("imask", "lmask", "cmask"):
            active = active & made.mask(name)
        state.at(ACTIVE).store(active)
    flow.take(state, to)
