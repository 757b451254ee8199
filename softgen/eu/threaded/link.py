"""Linking: a program's instructions become records that point to handlers.

Only what can be reached from where a thread starts is linked; whatever lies elsewhere is a record that leaves it to the reference. A label
stands before an instruction that channels may wait at while the thread comes to it from the instruction before.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from softgen.errors import SoftgenError
from softgen.eu import labels
from softgen.eu.block import PLACES
from softgen.eu.instruction import Instruction, Operand
from softgen.eu.interpreter import IDLE, SENDS, Line, Program
from softgen.eu.regions import place
from softgen.eu.rules import rules
from softgen.eu.semantics import OPS
from softgen.eu.semantics.control import AT_ONCE, CHANNEL, SINGLE
from softgen.eu.thread import ACCUMULATOR_OFF, SINGLE_FLOW, VECTOR_MASK, Mode, mode_of
from softgen.eu.threaded.handlers import PLAIN, Kind
from softgen.eu.threaded.library import REFERENCE, Handler, Library
from softgen.eu.threaded.record import NOWHERE, OP, PROGRAM
from softgen.eu.threaded.shapes import Shape, Use, branching, computing, sending

STEP = labels.COMPACT
PACK = struct.Struct("<QLLLLLLQLLQQ")
assert PACK.size == OP.itemsize


@dataclass
class Op:
    """A record in the making; targets are addresses until all records have their places."""

    ip: int
    kind: Kind | None  # None: for the reference
    use: Use | None = None
    counts: int = 1
    addresses: tuple[int, int, int] = (0, 0, 0)  # of a branch: next, jip, uip
    jump: int | None = None  # an op that goes on elsewhere


@dataclass
class Linked:
    """A program for the loop of native.c; lives as long as somebody may run it."""

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
    before: Linked | None = None  # somebody may still run it

    @property
    def address(self) -> int:
        return int(self.header.ctypes.data)


class Linker:
    """`messages`: whether compiled code carries them out, over the memory that its context names."""

    def __init__(self, code: Program, control: int, library: Library, messages: bool = True) -> None:
        self.code, self.control, self.library, self.messages = code, control, library, messages
        self.gen = code.gen
        self.channels = rules(self.gen).flow == "channel"
        self.single = self.channels and bool(control & SINGLE_FLOW)
        self.table = (SINGLE if self.single else CHANNEL) if self.channels else {}
        self.mode: Mode = mode_of(self.gen, control)
        self.accumulates = not control & ACCUMULATOR_OFF
        self.vector = bool(control & VECTOR_MASK)
        self.plain = Use(Shape(Instruction(self.gen, "", 0, "none")))  # of operations that are no instruction
        self.kinds: dict[tuple[str, Shape], Kind] = {}
        self.lines: dict[int, Line] = {}
        self.waited: set[int] = set()  # where channels may wait
        self.anywhere = False  # they may wait at any instruction

    # -- what there is -------------------------------------------------------------------------------------------------

    def explore(self, entries: frozenset[int]) -> None:
        todo = list(entries)
        while todo:
            ip = todo.pop()
            while ip not in self.lines:
                try:
                    line = self.code.line(ip)
                except SoftgenError:
                    break
                self.lines[ip] = line
                targets = self._targets(line)
                todo += [one for one in targets if one >= 0]
                if line.instruction.eot and line.instruction.opcode in SENDS or line.instruction.opcode in ("", "illegal"):
                    break
                ip += line.size

    def _targets(self, line: Line) -> tuple[int, ...]:
        one = line.instruction
        if one.opcode in OPS or one.opcode in SENDS or one.opcode in IDLE or one.opcode == "wait":
            return ()
        found = self.addresses(line)
        self.waited.update(found)
        if self.channels and (one.opcode in AT_ONCE or one.jip is None and one.uip is None and one.opcode != "jmpi"):
            self.anywhere = self.anywhere or not self.single
        return found

    def addresses(self, line: Line) -> tuple[int, int, int]:
        """Next, jip and uip of a branch; -1 where it has none."""
        one = line.instruction
        if labels.absolute(one):
            return line.ip + line.size, -1, -1
        jip, uip = (-1 if count is None else labels.target(one, line.ip, count) for count in (one.jip, one.uip))
        if one.opcode == "break" and self.channels and uip >= 0:
            try:
                uip += self.code.line(uip).size
            except SoftgenError:
                uip = -1
        return line.ip + line.size, jip, uip

    # -- what becomes of it --------------------------------------------------------------------------------------------

    def ops(self) -> Iterator[Op]:
        """In the order of their addresses; where an instruction's successor does not follow, something that leads there does."""
        before: Line | None = None
        for ip in sorted(self.lines):
            if before is not None and before.ip + before.size != ip:
                yield self._bridge(before.ip + before.size)
            line = self.lines[ip]
            if self._needs_label(line, before):
                yield Op(ip, self._kind("label"), self.plain, counts=0)
            yield self._op(line)
            before = line
        if before is not None:
            yield self._bridge(before.ip + before.size)

    def _bridge(self, ip: int) -> Op:
        return Op(ip, self._kind("jump"), self.plain, 0, jump=ip) if ip in self.lines else Op(ip, None)

    def _needs_label(self, line: Line, before: Line | None) -> bool:
        if not self.channels or self.single:
            return False
        if self.anywhere:
            return True
        after_branch = before is not None and before.ip + before.size == line.ip and before.instruction.opcode in self.table
        return line.ip in self.waited and not after_branch

    def _kind(self, what: str, shape: Shape | None = None) -> Kind:
        shape = shape or self.plain.shape
        found = self.kinds.get((what, shape))
        if found is None:
            computes = what == "compute"
            found = (
                Kind(what, shape, self.mode, self.accumulates) if computes else Kind(what, shape, PLAIN, False, self.single, self.vector)
            )
            self.kinds[what, shape] = found
        return found

    def _op(self, line: Line) -> Op:
        one = line.instruction
        if one.breakpoint:
            return Op(line.ip, None)
        if one.opcode in OPS:
            use = computing(one)
            return Op(line.ip, self._kind("compute", use.shape), use)
        if one.opcode in SENDS:
            return self._send(line)
        if one.opcode in IDLE:
            return Op(line.ip, self._kind("idle"), self.plain)
        if one.opcode == "wait":
            return self._wait(line)
        if one.opcode in self.table:
            return self._branch(line)
        return Op(line.ip, None)

    def _send(self, line: Line) -> Op:
        one = line.instruction
        known = isinstance(one.descriptor, int) and not isinstance(one.extended, Operand)
        if not self.messages or not known or any(operand is not None and operand.indirect for operand in (one.dst, *one.sources)):
            return Op(line.ip, None)
        use = sending(one)
        use = replace(use, slots=(*use.slots[:3], line.ip + line.size & NOWHERE))
        return Op(line.ip, self._kind("send", use.shape), use)

    def _wait(self, line: Line) -> Op:
        one = line.instruction
        operand = one.dst if one.dst is not None and one.dst.file == "arf" and one.dst.number else one.sources[0]
        try:
            name, start = place(operand, one.gen)
        except SoftgenError:
            return Op(line.ip, None)
        if name != "n" or start // 4 > 2:
            return Op(line.ip, None)
        use = Use(self.plain.shape, (PLACES["n"] + start // 4 * 4, start // 4, 0, 0))
        return Op(line.ip, self._kind("wait"), use)

    def _branch(self, line: Line) -> Op:
        one, addresses = line.instruction, self.addresses(line)
        if any(to < 0 and count is not None for to, count in zip(addresses[1:], (one.jip, one.uip), strict=True)):
            return Op(line.ip, None)
        use = branching(one)
        return Op(line.ip, self._kind("branch", use.shape), use, addresses=addresses)

    # -- records -------------------------------------------------------------------------------------------------------

    def link(self, entries: frozenset[int]) -> Linked:
        self.explore(entries)
        ops = list(self.ops())
        handlers = self.library.get(op.kind for op in ops if op.kind is not None)
        strays = self._strays(ops)
        raw = np.zeros((len(ops) + len(strays) + 1) * OP.itemsize, np.uint8)
        shift = -raw.ctypes.data % OP.itemsize
        kept = raw[shift : shift + (len(ops) + len(strays)) * OP.itemsize]
        first: dict[int, int] = {}
        for number, op in enumerate(ops):
            if op.jump is None:
                first.setdefault(op.ip, number)
        body = {op.ip: number for number, op in enumerate(ops) if op.counts}  # behind its label
        body.update({ip: len(ops) + number for number, ip in enumerate(strays) if ip not in body})
        base, memory = int(kept.ctypes.data), memoryview(kept.data)
        escapes = 0
        for number, op in enumerate(ops):
            handler = handlers.get(op.kind, REFERENCE) if op.kind is not None else REFERENCE
            escapes += self._pack(memory, number, op, handler, base, body)
        for number, ip in enumerate(strays, len(ops)):
            PACK.pack_into(memory, number * OP.itemsize, 0, ip & NOWHERE, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0)
        linked = self._finish(kept, first, entries, escapes)
        linked.whole = all(op.kind in handlers for op in ops if op.kind is not None)
        linked.indices = frozenset(index for handler in handlers.values() for index in handler.reach.indices)
        return linked

    def _strays(self, ops: list[Op]) -> list[int]:
        """Targets where no instruction is: the reference complains when a thread comes there."""
        there = {op.ip for op in ops if op.counts}
        return sorted({one for op in ops for one in (*op.addresses[1:],) if op.addresses[0] and one >= 0} - there)

    def _pack(self, memory: memoryview, number: int, op: Op, handler: Handler, base: int, body: dict[int, int]) -> int:
        use, function = op.use, handler.address
        if use is None or not function:
            PACK.pack_into(memory, number * OP.itemsize, 0, op.ip & NOWHERE, op.counts, 0, 0, 0, 0, 0, 0, 0, 0, 0)
            return op.counts
        if any(extent > limit for extent, limit in zip(handler.reach.extents, use.limits, strict=True)):
            function = 0
        slots: tuple[int, ...] = use.slots
        jumps = [0, 0]
        if op.addresses[0]:
            slots = *(one & NOWHERE for one in op.addresses), 0
            jumps = [base + body[one] * OP.itemsize if one >= 0 else 0 for one in op.addresses[1:]]
        elif op.jump is not None:
            jumps[0] = base + body[op.jump] * OP.itemsize
        PACK.pack_into(
            memory, number * OP.itemsize, function, op.ip & NOWHERE, op.counts, *slots, use.immediate, use.group, use.flag, *jumps
        )
        return 0 if function else op.counts

    def _finish(self, ops: npt.NDArray[np.uint8], first: dict[int, int], entries: frozenset[int], escapes: int) -> Linked:
        start = self.code.start
        places = {(ip - start) // STEP: number for ip, number in first.items() if ip >= start and ip in self.lines}
        index = np.full(max(places, default=0) + 1, NOWHERE, np.uint32)
        for where, number in places.items():
            index[where] = number
        header = np.zeros(1, PROGRAM)
        header[0] = (ops.ctypes.data, index.ctypes.data, start, len(index))
        return Linked(ops, index, header, self.library, self.control, entries, escapes, frozenset(self.lines))
