"""Linking: a program's instructions become records that point to handlers.

Only instructions that are reachable from the entries are linked; anything else is a record that falls back to the interpreter. A label
record precedes an instruction at which channels may wait while the thread reaches it from the previous instruction.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from softgen.errors import SoftgenError
from softgen.eu.interpreter import NOPS, SENDS, DecodedInstruction, KernelProgram
from softgen.eu.isa import labels
from softgen.eu.isa.instruction import Instruction
from softgen.eu.isa.padding import ILLEGAL, skips_illegal
from softgen.eu.isa.rules import rules
from softgen.eu.native_h import STEP
from softgen.eu.semantics import OPS
from softgen.eu.semantics.control import LINKING, PER_CHANNEL, SINGLE_FLOW
from softgen.eu.semantics.descriptor_bits import AddressImmediates, known_bits
from softgen.eu.semantics.mask_stack import MASK_STACK, branch_of
from softgen.eu.thread.block import BLOCK_OFFSETS
from softgen.eu.thread.exceptions import MASTER
from softgen.eu.thread.regions import notification
from softgen.eu.thread.state import ACCUMULATOR_DISABLE, SINGLE_PROGRAM_FLOW, VECTOR_MASK, FloatMode, float_mode
from softgen.eu.threaded import streams
from softgen.eu.threaded.handlers import PLAIN, HandlerKind
from softgen.eu.threaded.library import Handler, Library
from softgen.eu.threaded.record import NOWHERE, OP, PROGRAM
from softgen.eu.threaded.shapes import InstructionShape, ShapeUse, branching, computing, offset_register, place_of, sending
from softgen.eu.threaded.write import LinkedOp, LinkedPart, RecordWriter
from softgen.lanes.types import u16, u32

BACK = struct.Struct("<QQQ")


@dataclass
class Linked:
    """A program for the loop of native.c; kept alive while a thread may run it."""

    ops: npt.NDArray[np.uint8]
    index: npt.NDArray[np.uint32]
    header: npt.NDArray[np.void]
    library: Library
    control: int
    entries: frozenset[int]
    escapes: int = 0
    known: frozenset[int] = field(default_factory=frozenset)
    indices: frozenset[int] = frozenset()  # binding table entries that its messages name
    whole: bool = True  # no handler that could be made is missing
    before: Linked | None = None  # a thread may still run it
    replaced: bool = False  # by one that has more of the program, or other handlers
    streams: bytes = b""

    @property
    def address(self) -> int:
        return int(self.header.ctypes.data)


class Linker:
    """`messages`: whether compiled code carries them out, over the memory that its context names."""

    writer: type[RecordWriter] = RecordWriter

    def __init__(self, code: KernelProgram, control: int, library: Library, messages: bool = True) -> None:
        self.code, self.control, self.library, self.messages = code, control, library, messages
        self.gen = code.gen
        self.channels = rules(self.gen).flow == "channel"  # else masks and stacks
        self.single = self.channels and bool(control & SINGLE_PROGRAM_FLOW)
        self.table = (SINGLE_FLOW if self.single else PER_CHANNEL) if self.channels else MASK_STACK
        self.mode: FloatMode = float_mode(self.gen, control)
        self.accumulates = not control & ACCUMULATOR_DISABLE
        self.vector = bool(control & VECTOR_MASK)
        self.plain = ShapeUse(InstructionShape(Instruction(self.gen, "", 0, "none")))  # of operations that are no instruction
        self.other: Linker | None = None  # the same program in the mode that it changes to
        self.kinds: dict[tuple[str, InstructionShape], HandlerKind] = {}
        self.lines: dict[int, DecodedInstruction] = {}
        self.waited: set[int] = set()  # where channels may wait
        self.anywhere = False  # they may wait at any instruction

    # -- what there is -------------------------------------------------------------------------------------------------

    def explore(self, entries: Iterable[int], pause: bool = False) -> None:
        """Follow control flow from all entries; `pause`: not past a change of cr0."""
        todo = list(entries)
        while todo:
            ip = todo.pop()
            while ip not in self.lines:
                try:
                    line = with_instruction(self.code.line(ip), branch_of)
                except SoftgenError:
                    break
                self.lines[ip] = line
                targets = self._targets(line)
                todo += [target for target in targets if target >= 0]
                if line.instruction.eot and line.instruction.opcode in SENDS or self._is_end(line):
                    break
                if pause and new_control(line.instruction, self.control) not in (None, self.control):
                    break
                ip += line.size

    def _is_end(self, line: DecodedInstruction) -> bool:
        """Whether a thread stops at an opcode that is no instruction."""
        return line.instruction.opcode in ILLEGAL and (line.instruction.opcode_number != 0 or not skips_illegal(self.code, line))

    def _targets(self, line: DecodedInstruction) -> tuple[int, ...]:
        inst = line.instruction
        if inst.opcode in OPS or inst.opcode in SENDS or inst.opcode in NOPS or inst.opcode == "wait":
            return ()
        found = self.addresses(line)
        self.waited.update(found)
        if self.channels and (inst.opcode in LINKING or inst.jip is None and inst.uip is None and inst.opcode != "jmpi"):
            self.anywhere = self.anywhere or not self.single
        return found

    def addresses(self, line: DecodedInstruction) -> tuple[int, int, int]:
        """Next, jip and uip of a branch; -1 where it has none."""
        inst = line.instruction
        if labels.is_absolute(inst):
            return line.ip + line.size, -1, -1
        jip, uip = (-1 if count is None else labels.target(inst, line.ip, count) for count in (inst.jip, inst.uip))
        if inst.opcode == "break" and self.channels and uip >= 0:
            try:
                uip += self.code.line(uip).size
            except SoftgenError:
                uip = -1
        return line.ip + line.size, jip, uip

    # -- what becomes of it --------------------------------------------------------------------------------------------

    def ops(self) -> Iterator[LinkedOp]:
        """Operations in the order of their addresses; where an instruction's successor does not follow it, a jump to it does."""
        before: DecodedInstruction | None = None
        built = AddressImmediates()
        for ip in sorted(self.lines):
            if before is not None and before.ip + before.size != ip:
                yield self._bridge(before.ip + before.size)
            line = with_instruction(self.lines[ip], built.after)
            if self._needs_label(line, before):
                yield LinkedOp(ip, self.kind("label"), self.plain, counts=0)
            yield self._op(line)
            before = line
        if before is not None:
            yield self._bridge(before.ip + before.size)

    def _bridge(self, ip: int) -> LinkedOp:
        return LinkedOp(ip, self.kind("jump"), self.plain, 0, jump=ip) if ip in self.lines else LinkedOp(ip, None)

    def _needs_label(self, line: DecodedInstruction, before: DecodedInstruction | None) -> bool:
        if not self.channels or self.single:
            return False
        if self.anywhere:
            return True
        after_branch = before is not None and before.ip + before.size == line.ip and before.instruction.opcode in self.table
        return line.ip in self.waited and not after_branch

    def kind(self, what: str, shape: InstructionShape | None = None) -> HandlerKind:
        shape = shape or self.plain.shape
        found = self.kinds.get((what, shape))
        if found is None:
            if what == "compute":
                found = HandlerKind(what, shape, self.mode, self.accumulates)
            elif what == "send":
                mode = FloatMode(alt=self.mode.alt)  # accompanies messages
                found = HandlerKind(what, shape, mode, False, self.single, self.vector)
            else:
                found = HandlerKind(what, shape, PLAIN, False, self.single, self.vector)
            self.kinds[what, shape] = found
        return found

    def _op(self, line: DecodedInstruction) -> LinkedOp:
        inst = line.instruction
        if inst.breakpoint:
            return LinkedOp(line.ip, None)
        if (control := new_control(inst, self.control)) is not None:
            return self._mode(line, control)
        if inst.opcode in OPS:
            use = computing(inst)
            return LinkedOp(line.ip, self.kind("compute", use.shape), use)
        if inst.opcode in SENDS:
            return self._send(line)
        if inst.opcode in NOPS:
            return LinkedOp(line.ip, self.kind("idle"), self.plain)
        if inst.opcode == "wait":
            return self._wait(line)
        if inst.opcode in self.table:
            return self._branch(line)
        return LinkedOp(line.ip, None)

    def _mode(self, line: DecodedInstruction, control: int) -> LinkedOp:
        """A write to cr0: the other of two modes, or the same."""
        other = self if control == self.control else self.other
        if other is None or other.control != control or line.ip + line.size not in other.lines:
            return LinkedOp(line.ip, None)
        use = replace(self.plain, slots=(0, self.control, control, 0))
        return LinkedOp(line.ip, self.kind("mode"), use, jump=line.ip + line.size, control=control)

    def _send(self, line: DecodedInstruction) -> LinkedOp:
        inst = line.instruction
        known = known_bits(inst.descriptor) is not None and (inst.extended is None or known_bits(inst.extended) is not None)
        if not self.messages or not known or any(operand is not None and operand.indirect for operand in (inst.dst, *inst.sources)):
            return LinkedOp(line.ip, None)
        use = sending(inst)
        use = replace(use, slots=(*use.slots[:3], line.ip + line.size & NOWHERE))
        return LinkedOp(line.ip, self.kind("send", use.shape), use)

    def _wait(self, line: DecodedInstruction) -> LinkedOp:
        try:
            number = notification(line.instruction)
        except SoftgenError:
            return LinkedOp(line.ip, None)
        use = ShapeUse(self.plain.shape, (BLOCK_OFFSETS["n"] + 4 * number, number, 0, 0))
        return LinkedOp(line.ip, self.kind("wait"), use)

    def _branch(self, line: DecodedInstruction) -> LinkedOp:
        inst, addresses = line.instruction, self.addresses(line)
        if any(to < 0 and count is not None for to, count in zip(addresses[1:], (inst.jip, inst.uip), strict=True)):
            return LinkedOp(line.ip, None)
        if inst.jip is None and inst.opcode == "jmpi" and offset_register(inst) is None:
            return LinkedOp(line.ip, None)
        use = branching(inst)
        return LinkedOp(line.ip, self.kind("branch", use.shape), use, addresses=addresses)

    # -- records -------------------------------------------------------------------------------------------------------

    def link(self, entries: frozenset[int]) -> Linked:
        """Records of the program in this mode and, where cr0 changes to one known value, in the other one. Then a gate for each instruction
        dispatches on a thread's cr0; threads pass it only when they resume."""
        self.explore_modes(entries)
        linkers = [linker for linker in (self, self.other) if linker is not None]
        parts = [LinkedPart(linker.control, linker.lines, linker.waited, list(linker.ops())) for linker in linkers]
        gates = sorted({*self.lines, *self.other.lines}) if self.other is not None else []
        ops = [op for part in parts for op in part.ops]
        kinds = [op.kind for op in ops if op.kind is not None] + [self.kind("gate")] * bool(gates)
        handlers = self.library.get(kinds)
        total = sum(part.place(start) for part, start in zip(parts, (0, parts[0].size), strict=False))
        raw = np.zeros((total + len(gates) + 1) * OP.itemsize, np.uint8)
        shift = -raw.ctypes.data % OP.itemsize
        kept = raw[shift : shift + (total + len(gates)) * OP.itemsize]
        writer = self.writer(memoryview(kept.data), int(kept.ctypes.data), handlers, {part.control: part.body for part in parts})
        for part in parts:
            part.write(writer)
        made = self._streams(parts, writer)
        first = parts[0].first
        if gates:
            first = {ip: total + number for number, ip in enumerate(gates)}
            for ip, number in first.items():
                writer.gate(number, ip, self.kind("gate"), parts)
        linked = self._finish(kept, {ip: number for ip, number in first.items() if ip in self.lines or gates}, entries, writer.escapes)
        linked.streams = made
        linked.whole = all(kind in handlers for kind in kinds)
        linked.indices = frozenset(index for op in ops for index in self._indices(op, handlers))
        return linked

    def _indices(self, op: LinkedOp, handlers: dict[HandlerKind, Handler]) -> list[int]:
        """The binding table entries that an operation names."""
        if op.kind is None or op.use is None or op.kind not in handlers:
            return []
        own = op.use.immediate if op.kind.shape.indexed else 0
        return [own + index for index in handlers[op.kind].reach.indices]

    def _streams(self, parts: list[LinkedPart], writer: RecordWriter) -> bytes:
        """Streams of all runs that are worth one; those that lack a handler are left out."""
        found = [stream for part in parts for stream in part.streams(writer)]
        if not found:
            return b""
        start, back = self.kind("start"), self.kind("back")
        kinds = [start, back, *(kind for stream in found for kind, _ in stream.sequences)]
        handlers = {kind: handler.address for kind, handler in self.library.get(kinds, needed=False).items() if handler.address}
        found = [stream for stream in found if all(kind in handlers for kind in (start, back, *(kind for kind, _ in stream.sequences)))]
        texts = [streams.text(stream, handlers, BACK.pack(handlers[back], writer.address(stream.end), stream.end - stream.start))
                 for stream in found]  # fmt: skip
        made = b"".join(texts)
        at = int(np.frombuffer(made, np.uint8).ctypes.data)
        for stream, text in zip(found, texts, strict=True):
            writer.start(stream, handlers[start], at)
            at += len(text)
        return made

    def explore_modes(self, entries: frozenset[int]) -> None:
        """Instructions after a change of cr0 belong to the other mode, if it is always the same one."""
        self.explore(entries, pause=True)
        found = {line.ip + line.size: new_control(line.instruction, self.control) for line in self.lines.values()}
        found = {ip: control for ip, control in found.items() if control not in (None, self.control)}
        if len(set(found.values())) != 1:
            self.explore(found)
            return
        self.other = other = Linker(self.code, int(next(iter(found.values())) or 0), self.library, self.messages)
        other.explore(found)
        # Channels may wait in one mode for a thread that comes by in the other.
        self.waited = other.waited = self.waited | other.waited
        self.anywhere = other.anywhere = self.anywhere or other.anywhere

    def _finish(self, ops: npt.NDArray[np.uint8], first: dict[int, int], entries: frozenset[int], escapes: int) -> Linked:
        start = self.code.start
        places = {(ip - start) // STEP: number for ip, number in first.items() if ip >= start}
        index = np.full(max(places, default=0) + 1, NOWHERE, np.uint32)
        for where, number in places.items():
            index[where] = number
        header = np.zeros(1, PROGRAM)
        header[0] = (ops.ctypes.data, index.ctypes.data, start, len(index))
        return Linked(ops, index, header, self.library, self.control, entries, escapes, frozenset(self.lines))


def with_instruction(line: DecodedInstruction, become: Callable[[Instruction], Instruction]) -> DecodedInstruction:
    """A line with what its instruction becomes, which is most often the same."""
    inst = become(line.instruction)
    return line if inst is line.instruction else replace(line, instruction=inst)


UNCHANGED = SINGLE_PROGRAM_FLOW | VECTOR_MASK | MASTER  # what of cr0.0 decides where channels and threads are
UNSIGNED = {"ud": u32.highest, "uw": u16.highest}  # immediates that are taken as they are
RESULTS: dict[str, Callable[[int, int], int]] = {"and": operator.and_, "or": operator.or_}


def new_control(inst: Instruction, control: int) -> int | None:
    """The value of cr0.0 after an instruction, computed from cr0.0 and an immediate; else None, also if more than float modes change."""
    if inst.opcode not in RESULTS or inst.dst is None or inst.dst.file != "arf":
        return None
    modified = inst.align16 or inst.predicate or inst.condition or inst.saturate or inst.acc_write
    if inst.exec_size != 1 or not inst.no_mask or modified:
        return None
    (source, immediate), dst = inst.sources, inst.dst
    if place_of(dst, inst.gen) != "cr" or place_of(source, inst.gen) != "cr" or dst.sub or source.sub or immediate.file != "imm":
        return None
    if {dst.type, source.type} != {"ud"} or immediate.type not in UNSIGNED or source.negate or source.absolute:
        return None
    found = RESULTS[inst.opcode](control, immediate.immediate & UNSIGNED[immediate.type])
    return None if (found ^ control) & UNCHANGED else found
