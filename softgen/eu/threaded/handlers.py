"""Handlers: shapes as code, written by running `step` on a State whose registers are loads and stores."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from softgen.bits.units import GRF_BYTES
from softgen.errors import SoftgenError
from softgen.eu.environment import CompiledEnvironment
from softgen.eu.isa.instruction import Operand
from softgen.eu.semantics.send import execute_message, has_lane_program, message_lengths
from softgen.eu.semantics.step import step
from softgen.eu.thread.block import BLOCK_OFFSETS, ControlBlock, ThreadStatus, offset
from softgen.eu.thread.regions import _indirect, destination_offsets, lane_type
from softgen.eu.thread.state import FloatMode
from softgen.eu.threaded import flow
from softgen.eu.threaded.record import SLOTS
from softgen.eu.threaded.shapes import Shape
from softgen.eu.threaded.state import ACTIVE, WORD, BlockState, Escape, Held, StreamState
from softgen.lanes.llvm import LlvmMachine
from softgen.lanes.llvm_text import LlvmModule
from softgen.lanes.value import Region, Value

STATUS = BLOCK_OFFSETS["control"] + offset(ControlBlock, "status")
BEHIND = SLOTS[3]  # of a send: the address of what follows
WAITING = BLOCK_OFFSETS["control"] + offset(ControlBlock, "waiting")
HEADER = "i64 @{}(ptr noalias %block, ptr noalias %op, ptr noalias %context, i64 %executed)"


PLAIN = FloatMode()


@dataclass(frozen=True)
class Kind:
    """Everything a handler is made from: the cache's key, and the process's."""

    what: str  # "compute" "branch" "label" "wait" "idle" "jump" "send" "mode" "gate" "stream" "start" "back"
    shape: Shape
    mode: FloatMode = PLAIN
    accumulates: bool = False
    single: bool = False  # one flow for all channels
    vector: bool = False  # the vector mask counts, not the dispatch mask
    parts: tuple[Kind, ...] = ()  # instructions of a stream that follow one another
    makers: tuple[tuple[int, ...], ...] = ()  # of each, by slot: which one of them makes that operand, or -1

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.what, self.shape, self.mode, self.accumulates, self.single, self.vector, self.parts, self.makers))


class Reach(NamedTuple):
    """What a handler touches."""

    extents: tuple[int, ...]  # bytes from each slot's start on
    indices: tuple[int, ...]  # binding table entries


def write(kind: Kind, name: str, module: LlvmModule) -> Reach | None:
    """Adds a handler to a module; None where the reference must do it."""
    m = LlvmMachine(module)
    state = BlockState(m, kind.shape, kind.mode, kind.accumulates)
    try:
        WRITERS[kind.what](state, kind)
    except (Escape, SoftgenError):
        return None
    m.define(HEADER.format(name))
    return Reach(tuple(state.extents), tuple(sorted(state.indices)))


def _compute(state: BlockState, kind: Kind) -> None:
    one = kind.shape.instruction
    if one.dst is not None and one.dst.indirect:  # before flags are written
        state.check(lane_type(one.dst), state.moved(_indirect(state, one, one.dst, destination_offsets(one))))
    step(state, one)
    state.end()


def _stream(state: BlockState, kind: Kind) -> None:
    """Several instructions of a stream, which never escape."""
    behind = WORD
    held: Held = []
    for part, makers in zip(kind.parts, kind.makers, strict=True):
        held.append(None)
        inner = StreamState(state.m, part.shape, part.mode, part.accumulates, behind, held, makers)
        behind = inner.behind
        step(inner, part.shape.instruction)
        if inner.escapes:
            raise Escape
    state.go_on(state.inside(behind), "%executed")


def _start(state: BlockState, kind: Kind) -> None:
    """Where a stream can be taken. No instruction of it changes which channels are on."""
    m = state.m
    need = state.field("need")
    on = m.emit(f"and i32 {m.emit(f'load i32, ptr {state.at(ACTIVE)}')}, {need}")
    all_, some = m.labels("all", "some")
    m.line(f"br i1 {m.emit(f'icmp eq i32 {on}, {need}')}, label %{all_}, label %{some}")
    m.start(some)
    state.go_on("%op", "%executed", state.field("first", "ptr"))
    m.start(all_)
    state.go_on(state.field("second", "ptr"), "%executed")


def _back(state: BlockState, kind: Kind) -> None:
    """The end of a stream."""
    m = state.m
    record, count = m.emit(f"load ptr, ptr {state.inside(WORD)}"), m.emit(f"load i64, ptr {state.inside(2 * WORD)}")
    state.go_on(record, m.emit(f"add i64 %executed, {count}"))


class _Environment(CompiledEnvironment):
    """What a message finds; remembers the binding table entries it was asked for."""

    def __init__(self, state: BlockState) -> None:
        ip = state.m.emit(f"zext i32 {state.field('ip')} to i64")
        super().__init__(state.m, state.gen, ip, lambda holds: self._escape(state, holds))
        self.state = state

    def _escape(self, state: BlockState, holds: Value) -> None:
        wrong = self.m.emit(f"xor <1 x i1> {holds.payload}, splat (i1 true)")
        state.escape_if(self.m.emit(f"extractelement <1 x i1> {wrong}, i64 0"))

    def bound(self, index: int) -> Region:
        self.state.indices.add(index)
        return super().bound(index)


def _send(state: BlockState, kind: Kind) -> None:
    """A message; the end of the thread comes behind it."""
    one, m = kind.shape.instruction, state.m
    if not has_lane_program(one):
        raise Escape
    assert isinstance(one.descriptor, int) and not isinstance(one.extended, Operand)
    count = message_lengths(one.descriptor, one.gen)
    state.extents[:3] = [register * GRF_BYTES for register in (count.response, count.payload, (one.extended or 0) >> 6 & 0xF)]
    if state.rules.message_registers:
        state.extents[1] = GRF_BYTES
    execute_message(state, one, _Environment(state))
    if not one.eot:
        state.end()
        return
    m.line(f"store i32 {int(ThreadStatus.ENDED)}, ptr {state.at(STATUS)}")
    state.leave(ThreadStatus.ENDED, state.field(BEHIND))


def _wait(state: BlockState, kind: Kind) -> None:
    """Takes one notification, or waits for it (IVB 2557-2560). The register is the first slot, its number the second."""
    m = state.m
    count = m.emit(f"load i32, ptr {state.pointers[0]}")
    some, none = m.labels("some", "none")
    m.line(f"br i1 {m.emit(f'icmp eq i32 {count}, 0')}, label %{none}, label %{some}")
    m.start(none)
    m.line(f"store i32 {m.emit(f'add i32 {state.field(SLOTS[1])}, 1')}, ptr {state.at(WAITING)}")
    state.leave(ThreadStatus.WAITING)
    m.start(some)
    m.line(f"store i32 {m.emit(f'sub i32 {count}, 1')}, ptr {state.pointers[0]}")
    m.line(f"store i32 0, ptr {state.at(WAITING)}")
    state.end()


def _branch(state: BlockState, kind: Kind) -> None:
    flow.branch(state, kind.shape.instruction, kind.single, kind.vector)


def _label(state: BlockState, kind: Kind) -> None:
    flow.label(state, kind.vector)


def _idle(state: BlockState, kind: Kind) -> None:
    state.end()


def _jump(state: BlockState, kind: Kind) -> None:
    state.go_on(state.field("first", "ptr"), "%executed")


def _mode(state: BlockState, kind: Kind) -> None:
    """A write to cr0 whose result was known when the program was linked: the thread goes on in the other mode's records."""
    m, control = state.m, state.at(BLOCK_OFFSETS["cr"])
    state.escape_if(m.emit(f"icmp ne i32 {m.emit(f'load i32, ptr {control}')}, {state.field(SLOTS[1])}"))
    m.line(f"store i32 {state.field(SLOTS[2])}, ptr {control}")
    state.go_on(state.field("first", "ptr"))


def _gate(state: BlockState, kind: Kind) -> None:
    """Where a thread comes back into a program of two modes."""
    m = state.m
    control = m.emit(f"load i32, ptr {state.at(BLOCK_OFFSETS['cr'])}")
    for slot, record in ((SLOTS[1], "first"), (SLOTS[2], "second")):
        here, on = m.labels("here", "on")
        m.line(f"br i1 {m.emit(f'icmp eq i32 {control}, {state.field(slot)}')}, label %{here}, label %{on}")
        m.start(here)
        state.go_on(state.field(record, "ptr"), "%executed")
        m.start(on)
    state.leave(ThreadStatus.CR0_CHANGED)


WRITERS = {"compute": _compute, "wait": _wait, "branch": _branch, "label": _label, "idle": _idle, "jump": _jump, "send": _send,
           "mode": _mode, "gate": _gate, "stream": _stream, "start": _start, "back": _back}  # fmt: skip
