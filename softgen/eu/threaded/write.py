"""Writing records: operations of the linker get their numbers, handlers and streams."""

from __future__ import annotations

import operator
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np

from softgen.eu import native
from softgen.eu.isa.instruction import Instruction
from softgen.eu.threaded import streams
from softgen.eu.threaded.handlers import HandlerKind
from softgen.eu.threaded.library import REFERENCE, Handler
from softgen.eu.threaded.record import NOWHERE, OP
from softgen.eu.threaded.shapes import InstructionShape, ShapeUse

PACK = struct.Struct("<QLLLLLLQLLQQ")
assert PACK.size == OP.itemsize
NOTHING = Instruction(0, "", 0, "none")


@dataclass
class LinkedOp:
    """A record in the making; targets are addresses until all records have their places."""

    ip: int
    kind: HandlerKind | None  # None: for the reference
    use: ShapeUse | None = None
    counts: int = 1
    addresses: tuple[int, int, int] = (0, 0, 0)  # of a branch: next, jip, uip
    jump: int | None = None  # an op that goes on elsewhere
    control: int | None = None  # what it makes of cr0.0


@cache
def escape() -> int:
    """The handler of instructions that fall back to the interpreter."""
    return native.address(native.library().native_escape)


class LinkedPart:
    """The records for one value of cr0: operations, then branch targets without an instruction, which the interpreter reports.

    `lines` are the addresses with an instruction, `waited` those where channels may wait."""

    def __init__(self, control: int, lines: Iterable[int], waited: set[int], ops: list[LinkedOp]) -> None:
        self.control, self.lines, self.waited, self.ops = control, frozenset(lines), waited, ops
        there = {op.ip for op in ops if op.counts}
        self.strays = sorted({to for op in ops if op.addresses[0] for to in op.addresses[1:] if to >= 0} - there)
        self.size = len(ops) + len(self.strays)
        self.first: dict[int, int] = {}  # of an instruction's label, where threads enter
        self.body: dict[int, int] = {}  # of the instruction itself

    def place(self, start: int) -> int:
        """Gives everything its number; how many there are."""
        self.start = start
        for number, op in enumerate(self.ops, start):
            if op.jump is None or op.counts:
                self.first.setdefault(op.ip, number)
            if op.counts:
                self.body[op.ip] = number
        for number, ip in enumerate(self.strays, start + len(self.ops)):
            self.body[ip] = number
        return self.size

    def streams(self, writer: RecordWriter) -> list[streams.Stream]:
        """What of it is worth a stream."""
        steps = [
            (op.kind, op.use) if op.kind and op.use and streams.joins(op.kind) and number not in writer.left else None
            for number, op in enumerate(self.ops, self.start)
        ]
        heads = {number for number, op in enumerate(self.ops) if op.ip in self.waited}
        loops: set[int] = set()
        for number, op in enumerate(self.ops):
            back = [self.body[to] - self.start for to in op.addresses[1:] if 0 <= to <= op.ip and op.addresses[0]]
            if back:
                loops.update(range(min(back), number))
        return streams.find(steps, self.start, heads, loops, lambda kind: writer.handlers[kind].reach.extents)

    def write(self, writer: RecordWriter) -> None:
        for number, op in enumerate(self.ops, self.start):
            writer.write(number, op, self.control)
        for ip in self.strays:
            writer.write(self.body[ip], LinkedOp(ip, None), self.control)


class RecordWriter:
    """Writes records into memory."""

    def __init__(self, memory: memoryview, base: int, handlers: dict[HandlerKind, Handler], bodies: dict[int, dict[int, int]]) -> None:
        self.memory, self.base, self.handlers, self.bodies, self.escapes = memory, base, handlers, bodies, 0
        self.left: set[int] = set()  # records that fall back to the interpreter

    def address(self, number: int) -> int:
        return self.base + number * OP.itemsize

    def write(self, number: int, op: LinkedOp, control: int) -> None:
        handler = self.handlers.get(op.kind, REFERENCE) if op.kind is not None else REFERENCE
        use, body = op.use or ShapeUse(InstructionShape(NOTHING)), self.bodies[control]
        function = handler.address
        if not function or any(map(operator.gt, handler.reach.extents, use.limits)):
            self.escapes += op.counts
            self.left.add(number)
            PACK.pack_into(self.memory, number * OP.itemsize, escape(), op.ip & NOWHERE, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
            return
        slots: tuple[int, ...] = use.slots
        jumps = [0, 0]
        if op.addresses[0]:
            slots = *(address & NOWHERE for address in op.addresses), use.slots[3]
            jumps = [self.address(body[address]) if address >= 0 else 0 for address in op.addresses[1:]]
        elif op.jump is not None:
            jumps[0] = self.address(self.bodies[control if op.control is None else op.control][op.jump])
        rest = *slots, use.immediate, use.group, use.flag, *jumps
        PACK.pack_into(self.memory, number * OP.itemsize, function, op.ip & NOWHERE, 0, *rest)

    def start(self, stream: streams.Stream, handler: int, address: int) -> None:
        """Make a record the entry of a stream."""
        record = np.frombuffer(self.memory, OP)[stream.start : stream.start + 1]
        record["first"], record["second"] = record["function"], address
        record["function"], record["need"] = handler, stream.need

    def gate(self, number: int, ip: int, kind: HandlerKind, parts: list[LinkedPart]) -> None:
        function = self.handlers.get(kind, REFERENCE).address or escape()
        there = [part for part in parts if ip in part.lines]
        one, other = there[0], there[-1]  # the same where only one has it
        records = self.address(one.first[ip]), self.address(other.first[ip])
        PACK.pack_into(self.memory, number * OP.itemsize, function, ip & NOWHERE, 0, 0, one.control, other.control, 0, 0, 0, 0, *records)
