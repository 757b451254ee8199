"""Where a value came from that nothing has written: one group in two worlds on the interpreter, and every byte in which they differ.

The group runs with zeros first, and all that its threads change is kept. Then it runs with the other fill; bytes of a thread that differ
from those of the first run depend on the fill. Each remembers the instruction that made it of a byte that nothing had written.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from softgen.bits.units import GRF_BYTES
from softgen.errors import SoftgenError
from softgen.eu.interpreter import SENDS
from softgen.eu.isa.instruction import Instruction, Operand
from softgen.eu.semantics.send import message_lengths
from softgen.eu.thread.block import BLOCK_OFFSETS
from softgen.eu.thread.regions import lane_type
from softgen.eu.thread.state import ThreadState
from softgen.inspect.check.accesses import MOST_INSTRUCTIONS
from softgen.position import Position
from softgen.shared_functions.dataport.watched import MemoryAccess
from softgen.threads import places
from softgen.threads.bindings import dispatch_bindings
from softgen.threads.compare.snapshot import MemorySnapshot
from softgen.threads.dispatch import DispatchContext, ThreadDispatch
from softgen.threads.programs import load
from softgen.threads.reference import ReferenceGroup
from softgen.threads.world import World

Bytes = npt.NDArray[np.uint8]
VISIBLE = BLOCK_OFFSETS["sr"]  # bytes of a block before it are registers that instructions write
NOTHING = -1  # of bytes that nothing has written
MOST_PAYLOAD = 16  # registers, where a register says how many
RESERVED = "reserved bits of the thread's header"
BRANCHES = frozenset({"if", "while", "break", "cont", "goto", "join", "jmpi", "halt", "else", "endif"})


@dataclass
class OriginStep:
    """What one instruction of one thread did."""

    thread: int
    ip: int
    next: int
    where: npt.NDArray[np.intp]  # bytes of the block that it changed
    values: Bytes
    accesses: list[MemoryAccess] = field(default_factory=list)


@dataclass(frozen=True)
class Undefined:
    """The first effect of a value that nothing has written."""

    effect: str  # branch, address or store
    lines: tuple[str, ...]
    position: Position


class Stepper:
    """A group, instruction by instruction in turns, as both runs take them."""

    def __init__(self, context: DispatchContext, dispatch: ThreadDispatch, number: int, fill: int) -> None:
        self.program = load(context, dispatch)
        self._accesses: list[MemoryAccess] = []
        bindings = dispatch_bindings(context, dispatch)
        self.group = ReferenceGroup(context, dispatch, number, self.program, bindings, fill, self._accesses.append)
        self._turn = 0

    def threads(self) -> list[ThreadState]:
        return self.group.threads

    def step(self) -> OriginStep | None:
        """The next instruction; None where no thread can go on."""
        runners = self.group.runners
        for _ in range(len(runners) + 1):
            number = self._turn % len(runners)
            thread = runners[number].thread
            if not thread.ended and (made := self._step(number)) is not None:
                return made
            self._turn += 1
        return None

    def _step(self, number: int) -> OriginStep | None:
        runner = self.group.runners[number]
        thread, before, ip = runner.thread, runner.thread.block[:VISIBLE].copy(), runner.thread.ip
        self._accesses.clear()
        if not runner.step():
            return None
        if thread.ip <= ip:
            self._turn += 1
        where = np.flatnonzero(before != thread.block[:VISIBLE])
        return OriginStep(number, ip, -1 if thread.ended else thread.ip, where, thread.block[where].copy(), list(self._accesses))


def undefined_value(context: DispatchContext, dispatch: ThreadDispatch, number: int, world: World) -> Undefined | None:
    """The first branch, address or store of a group that depends on the fill or on reserved bits; memory is left as before."""
    memory = MemorySnapshot(context.space)
    steps: list[OriginStep] = []
    try:
        first = Stepper(context, dispatch, number, 0)
        start = [thread.block[:VISIBLE].copy() for thread in first.threads()]
        while len(steps) < MOST_INSTRUCTIONS and (made := first.step()) is not None:
            steps.append(made)
        memory.restore()
        started = world.started(context.generation.number, dispatch)
        origin = RESERVED if world.reserved else "a register that nothing has written"
        return _Comparison(Stepper(context, started, number, world.fill), start, number, origin).run(steps)
    except SoftgenError:
        return None
    finally:
        memory.restore()


class _Comparison:
    """The second run, beside the kept steps of the first."""

    def __init__(self, stepper: Stepper, start: list[Bytes], group: int, origin: str) -> None:
        self.stepper, self.shadow, self.group, self.first_origin = stepper, start, group, origin
        self.origins = [np.full(VISIBLE, NOTHING, np.int32) for _ in start]  # of bytes that differ: numbers in `made`
        self.made: list[str] = []
        self.differ = [thread.block[:VISIBLE] != mine for thread, mine in zip(stepper.threads(), start, strict=True)]

    def run(self, steps: list[OriginStep]) -> Undefined | None:
        for theirs in steps:
            mine = self.stepper.step()
            if mine is None or (mine.thread, mine.ip) != (theirs.thread, theirs.ip):
                return None
            tainted = self._sources(mine)
            if mine.next != theirs.next:
                return self._found("branch", mine, tainted, "decides the branch")
            if (effect := _effect(mine.accesses, theirs.accesses)) is not None:
                what = "is an address" if effect == "address" else "is stored"
                return self._found(effect, mine, tainted, what)
            self._follow(mine, theirs, tainted)
        return None

    def _sources(self, step: OriginStep) -> npt.NDArray[np.int32]:
        """Origins of the bytes that an instruction reads and that differed before it."""
        read = np.zeros(VISIBLE, np.bool_)
        for first, last in source_bytes(self.stepper.program.line(step.ip).instruction):
            read[first:last] = True
        found: npt.NDArray[np.int32] = self.origins[step.thread][read & self.differ[step.thread]]
        return found

    def _follow(self, mine: OriginStep, theirs: OriginStep, tainted: npt.NDArray[np.int32]) -> None:
        """Bytes that the instruction changed have its origin now."""
        thread, shadow, origins = self.stepper.threads()[mine.thread], self.shadow[mine.thread], self.origins[mine.thread]
        shadow[theirs.where] = theirs.values
        now = thread.block[:VISIBLE] != shadow
        written = np.zeros(VISIBLE, np.bool_)
        written[mine.where] = written[theirs.where] = True
        first, last = destination_bytes(self.stepper.program.line(mine.ip).instruction)
        written[first:last] = True  # also where both runs wrote what was there before
        new = written & now
        if new.any():
            origins[new] = self._origin(mine, tainted)
        self.differ[mine.thread] = now

    def _origin(self, step: OriginStep, tainted: npt.NDArray[np.int32]) -> int:
        known = tainted[tainted != NOTHING]
        if len(known) and not (tainted == NOTHING).any():
            return int(known[0])
        local = any(access.local for access in step.accesses)
        loads = any(access.kind == "read" for access in step.accesses)
        what = "local memory that nothing has written" if local else "memory that nothing has written" if loads else self.first_origin
        text = f"made at {self._at(step.ip)}, of {what}"
        if text not in self.made:
            self.made.append(text)
        return self.made.index(text)

    def _found(self, effect: str, step: OriginStep, tainted: npt.NDArray[np.int32], what: str) -> Undefined:
        known = tainted[tainted != NOTHING]
        origin = self.made[int(known[0])] if len(known) else self.first_origin
        thread, program = self.stepper.threads()[step.thread], self.stepper.program
        executed = thread.executed - 1
        where = Position(stage="cs", group=self.group, thread=step.thread, offset=step.ip - program.start, instructions=executed)
        return Undefined(effect, (origin, f"{what} at {self._at(step.ip)}"), where)

    def _at(self, ip: int) -> str:
        return places.instruction_at(self.stepper.program, ip)


def _effect(mine: list[MemoryAccess], theirs: list[MemoryAccess]) -> str | None:
    """Whether accesses of the same instruction have other addresses, or store other bytes into memory that others can see."""
    if len(mine) != len(theirs):
        return "address"
    for a, b in zip(mine, theirs, strict=True):
        if not np.array_equal(a.addresses, b.addresses) or not np.array_equal(a.lanes, b.lanes) or not np.array_equal(a.beyond, b.beyond):
            return "address"
        if a.data is not None and b.data is not None and not a.local and not np.array_equal(a.data, b.data):
            return "store"
    return None


def destination_bytes(inst: Instruction) -> tuple[int, int]:
    """The bytes of a thread's block that an instruction may write, in general registers."""
    dst = inst.dst
    if dst is None or dst.file != "grf" or dst.indirect:
        return 0, 0
    start = dst.number * GRF_BYTES + dst.sub
    if inst.opcode in SENDS:
        size = message_lengths(inst.descriptor, inst.gen).response * GRF_BYTES if isinstance(inst.descriptor, int) else GRF_BYTES
    else:
        size = inst.exec_size * max(dst.horizontal, 1) * (lane_type(dst).bytes if dst.type else 4)
    return start, min(start + size, BLOCK_OFFSETS["mrf"])


def _source_size(inst: Instruction, operand: Operand) -> int:
    if inst.opcode in SENDS:
        return GRF_BYTES * (message_lengths(inst.descriptor, inst.gen).payload if isinstance(inst.descriptor, int) else MOST_PAYLOAD)
    if not operand.type or inst.form != "basic" or inst.align16:
        return 2 * GRF_BYTES
    width = max(operand.width, 1)
    last = (max(inst.exec_size // width, 1) - 1) * max(operand.vertical, 0) + (min(width, inst.exec_size) - 1) * operand.horizontal
    return (last + 1) * lane_type(operand).bytes


def source_bytes(inst: Instruction) -> list[tuple[int, int]]:
    """The bytes of a thread's block that an instruction may read: from the first to the last of a region."""
    found: list[tuple[int, int]] = []
    for operand in inst.sources:
        if operand.file == "grf" and not operand.indirect:
            start = operand.number * GRF_BYTES + operand.sub
            found.append((start, min(start + _source_size(inst, operand), BLOCK_OFFSETS["mrf"])))
        elif operand.file == "grf":
            found.append((0, BLOCK_OFFSETS["mrf"]))
        elif operand.file == "arf":
            found.append((BLOCK_OFFSETS["acc"], VISIBLE))
    if inst.predicate or inst.opcode in BRANCHES:
        found.append((BLOCK_OFFSETS["f"], BLOCK_OFFSETS["mask"]))
    return found
