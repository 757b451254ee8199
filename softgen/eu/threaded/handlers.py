"""Handlers: instruction shapes as code, written by running `step` on a state whose registers are loads and stores."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from softgen.bits.units import GRF_BYTES, QWORD
from softgen.errors import SoftgenError
from softgen.eu.semantics.descriptor_bits import known_bits
from softgen.eu.semantics.send import execute_message, halves, has_lane_program, message_lengths, second_length
from softgen.eu.semantics.step import step
from softgen.eu.thread.block import BLOCK_OFFSETS, ControlBlock, ThreadStatus, offset
from softgen.eu.thread.regions import _indirect, destination_offsets, lane_type
from softgen.eu.thread.state import FloatMode
from softgen.eu.threaded import flow, stack_flow
from softgen.eu.threaded.flow import CONTEXT
from softgen.eu.threaded.record import SLOTS
from softgen.eu.threaded.shapes import InstructionShape
from softgen.eu.threaded.state import ACTIVE, BlockState, Escape, Held, StreamState
from softgen.lanes.bytecode.program import BytecodeProgram
from softgen.lanes.bytecode.scalar import ScalarBytecode
from softgen.lanes.llvm.machine import LlvmMachine
from softgen.lanes.llvm.scalar import Parameter
from softgen.lanes.llvm.text import LlvmModule
from softgen.lanes.types import u32, u64
from softgen.shared_functions.compiled import MessageCode

STATUS = BLOCK_OFFSETS["control"] + offset(ControlBlock, "status")
AFTER = SLOTS[3]  # of a send: the address of the next instruction
WAITING = BLOCK_OFFSETS["control"] + offset(ControlBlock, "waiting")
PARAMETERS = (*(Parameter(name, noalias=True) for name in ("block", "op", "context")), Parameter("executed", u64))


PLAIN = FloatMode()


@dataclass(frozen=True)
class HandlerKind:
    """Everything a handler is made from: the cache's key, and the process's."""

    what: str  # "compute" "branch" "label" "wait" "idle" "jump" "send" "mode" "gate" "stream" "start" "back"
    shape: InstructionShape
    mode: FloatMode = PLAIN
    accumulates: bool = False
    single: bool = False  # one flow for all channels
    vector: bool = False  # the vector mask counts, not the dispatch mask
    parts: tuple[HandlerKind, ...] = ()  # instructions of a stream that follow one another
    makers: tuple[tuple[int, ...], ...] = ()  # of each, by slot: which one of them makes that operand, or -1

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.what, self.shape, self.mode, self.accumulates, self.single, self.vector, self.parts, self.makers))


class Reach(NamedTuple):
    """What a handler touches."""

    extents: tuple[int, ...]  # bytes from each slot's start on
    indices: tuple[int, ...]  # binding table entries; of a shape that is indexed, counted from its own


def write(kind: HandlerKind, name: str, module: LlvmModule) -> Reach | None:
    """Adds a handler to a module; None where the reference must do it."""
    m = LlvmMachine(module)
    state = BlockState(m, kind.shape, kind.mode, kind.accumulates)
    try:
        WRITERS[kind.what](state, kind)
    except (Escape, SoftgenError):
        return None
    m.code.frame(name, u64, PARAMETERS)
    return Reach(tuple(state.extents), tuple(sorted(state.indices)))


def write_bytecode(kind: HandlerKind) -> tuple[BytecodeProgram, Reach]:
    """A handler as bytecode; a SoftgenError or Escape where there is none, or the reference must do it."""
    m = ScalarBytecode()
    state = BlockState(m, kind.shape, kind.mode, kind.accumulates)
    WRITERS[kind.what](state, kind)
    return m.finished(), Reach(tuple(state.extents), tuple(sorted(state.indices)))


def _compute(state: BlockState, kind: HandlerKind) -> None:
    inst = kind.shape.instruction
    if inst.dst is not None and inst.dst.indirect:  # before flags are written
        state.check(lane_type(inst.dst), state.moved(_indirect(state, inst, inst.dst, destination_offsets(inst))))
    step(state, inst)
    state.end()


def _stream(state: BlockState, kind: HandlerKind) -> None:
    """Several instructions of a stream, which never escape."""
    at = QWORD
    held: Held = []
    for part, makers in zip(kind.parts, kind.makers, strict=True):
        held.append(None)
        inner = StreamState(state.m, part.shape, part.mode, part.accumulates, at, held, makers)
        at = inner.end_of_part
        step(inner, part.shape.instruction)
        if inner.escapes:
            raise Escape
    state.go_on(state.inside(at), state.executed)


def _start(state: BlockState, kind: HandlerKind) -> None:
    """Where a stream can be taken. No instruction of it changes which channels are on."""
    m = state.m
    need = state.field("need")
    on = state.at(ACTIVE).load(u32) & need
    all_, some = m.labels("all", "some")
    m.branch(on == need, all_, some)
    m.start(some)
    state.go_on(m.pointer("op"), state.executed, state.record("first"))
    m.start(all_)
    state.go_on(state.record("second"), state.executed)


def _back(state: BlockState, kind: HandlerKind) -> None:
    """The end of a stream."""
    record, count = state.inside(QWORD).load_pointer(), state.inside(2 * QWORD).load(u64)
    state.go_on(record, state.executed + count)


def _send(state: BlockState, kind: HandlerKind) -> None:
    """A message; the end of the thread follows it."""
    inst = kind.shape.instruction
    if not has_lane_program(inst):
        raise Escape
    count = message_lengths(known_bits(inst.descriptor) or 0, inst.gen)
    lengths = count.response, count.payload, second_length(known_bits(inst.extended) or 0)
    state.extents[:3] = [registers * GRF_BYTES for registers in lengths]
    if state.rules.message_registers:
        state.extents[1] = 0  # the implied move knows how much it reads
        state.extents[0] *= len(halves(inst))
    ip = state.field("ip").convert(u64)
    code = MessageCode(state.m, state.gen, ip, lambda holds: state.escape_if(state.m.scalar(~holds)), CONTEXT, state.indices,
                       pixel_at=BLOCK_OFFSETS["pixel"], resolved=kind.shape.indexed)  # fmt: skip
    execute_message(state, inst, code, state.immediate(0).load(u32).lane() if kind.shape.indexed else None)
    if not inst.eot:
        state.end()
        return
    state.at(STATUS).store(state.m.number(u32, int(ThreadStatus.ENDED)))
    state.leave(ThreadStatus.ENDED, state.field(AFTER))


def _wait(state: BlockState, kind: HandlerKind) -> None:
    """Takes one notification, or waits for it (IVB 2557-2560). The register is the first slot, its number the second."""
    m = state.m
    count = state.pointers[0].load(u32)
    some, none = m.labels("some", "none")
    m.branch(count == 0, none, some)
    m.start(none)
    number = state.field(SLOTS[1]) + 1
    state.at(WAITING).store(number)
    state.leave(ThreadStatus.WAITING)
    m.start(some)
    state.pointers[0].store(count - 1)
    state.at(WAITING).store(m.number(u32, 0))
    state.end()


def _branch(state: BlockState, kind: HandlerKind) -> None:
    if state.rules.flow == "stack":
        stack_flow.branch(state, kind.shape.instruction, kind.vector)
    else:
        flow.branch(state, kind.shape.instruction, kind.single, kind.vector)


def _label(state: BlockState, kind: HandlerKind) -> None:
    flow.label(state, kind.vector)


def _idle(state: BlockState, kind: HandlerKind) -> None:
    state.end()


def _jump(state: BlockState, kind: HandlerKind) -> None:
    state.go_on(state.record("first"), state.executed)


def _mode(state: BlockState, kind: HandlerKind) -> None:
    """A write to cr0 whose result was known when the program was linked: the thread goes on in the other mode's records."""
    control = state.at(BLOCK_OFFSETS["cr"])
    state.escape_if(control.load(u32) != state.field(SLOTS[1]))
    control.store(state.field(SLOTS[2]))
    state.go_on(state.record("first"))


def _gate(state: BlockState, kind: HandlerKind) -> None:
    """Where a thread comes back into a program of two modes."""
    m = state.m
    control = state.at(BLOCK_OFFSETS["cr"]).load(u32)
    for slot, record in ((SLOTS[1], "first"), (SLOTS[2], "second")):
        here, on = m.labels("here", "on")
        m.branch(control == state.field(slot), here, on)
        m.start(here)
        state.go_on(state.record(record), state.executed)
        m.start(on)
    state.leave(ThreadStatus.CR0_CHANGED)


WRITERS = {"compute": _compute, "wait": _wait, "branch": _branch, "label": _label, "idle": _idle, "jump": _jump, "send": _send,
           "mode": _mode, "gate": _gate, "stream": _stream, "start": _start, "back": _back}  # fmt: skip
