"""The call-threaded engine with counts: how often each instruction of each kernel is executed, and by how many channels.

Records of a program lead to native_counted (native.c), which counts and calls the handler of the record. There are no streams, whose
handlers execute many instructions at once. One host thread at a time may count.
"""

from __future__ import annotations

import ctypes
from functools import cache
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from softgen.errors import Unsupported
from softgen.eu import native
from softgen.eu.engine_protocol import AffineRange, CompiledFunction
from softgen.eu.interpreter import KernelProgram
from softgen.eu.isa.instruction import Instruction
from softgen.eu.isa.rules import rules
from softgen.eu.native_h import NativeCount
from softgen.eu.thread.predicate import SECOND_HALF
from softgen.eu.thread.state import ALL_CHANNELS
from softgen.eu.threaded.engine import ThreadedEngine, ThreadedPrograms
from softgen.eu.threaded.library import Library
from softgen.eu.threaded.library import library as shared
from softgen.eu.threaded.link import Linked, Linker
from softgen.eu.threaded.record import OP
from softgen.eu.threaded.write import LinkedOp, LinkedPart, RecordWriter

COUNT = np.dtype(NativeCount)
MOST = 1 << 19  # operations of all programs


class CountTable:
    """The counters of operations, by number."""

    def __init__(self) -> None:
        self.rows: npt.NDArray[np.void] = np.zeros(MOST, COUNT)  # pages that nobody touches take no memory
        self.used = 0
        library = native.library()
        library.native_count_in.argtypes = (ctypes.c_void_p,)
        library.native_count_in(self.rows.ctypes.data)
        self.function = native.address(library.native_counted)
        self.owners: WeakKeyDictionary[KernelProgram, dict[int, list[int]]] = WeakKeyDictionary()  # numbers by ip

    def add(self, function: int, inst: Instruction) -> int:
        """A counter for an operation."""
        if self.used == MOST:
            raise Unsupported(f"counts of more than {MOST:,} instructions")
        number = self.used
        self.used += 1
        self.rows[number] = (function, 0, 0, channels(inst), inst.exec_size if inst.no_mask else 0, inst.opcode == "wait", 0)
        return number

    def counts(self) -> npt.NDArray[np.uint64]:
        """A copy of what was executed and by how many channels, of all operations."""
        rows = self.rows[: self.used]
        return np.stack([rows["executed"], rows["lanes"]])


def channels(inst: Instruction) -> int:
    """The channels that an instruction may concern."""
    if rules(inst.gen).second_half == "compression":
        first = 8 if inst.quarter == SECOND_HALF else 0
    else:
        first = inst.quarter * 8 + inst.nibble * 4
    return ((1 << inst.exec_size) - 1 << first) & ALL_CHANNELS


class CountingWriter(RecordWriter):
    """Writes records that count."""

    code: KernelProgram
    table: CountTable
    numbers: dict[int, list[int]]

    def write(self, number: int, op: LinkedOp, control: int) -> None:
        super().write(number, op, control)
        if not op.counts or number in self.left or op.kind is None:
            return
        record = np.frombuffer(self.memory, OP)[number : number + 1]
        counter = self.table.add(int(record["function"][0]), self.code.line(op.ip).instruction)
        record["need"], record["function"] = counter, self.table.function
        self.numbers.setdefault(op.ip, []).append(counter)


class CountingLinker(Linker):
    """Links programs without streams, whose records count."""

    def link(self, entries: frozenset[int]) -> Linked:
        numbers = counting().owners.setdefault(self.code, {})
        self.writer = type("ProgramWriter", (CountingWriter,), {"code": self.code, "table": counting(), "numbers": numbers})
        return super().link(entries)

    def _streams(self, parts: list[LinkedPart], writer: RecordWriter) -> bytes:
        return b""


class CountingPrograms(ThreadedPrograms):
    """The programs of a generation that count."""

    linker = CountingLinker

    def __init__(self, gen: float, library: Library | None = None) -> None:
        super().__init__(gen, library or shared(gen))


@cache
def counting() -> CountTable:
    """The counters of this process."""
    return CountTable()


@cache
def programs(gen: float) -> CountingPrograms:
    return CountingPrograms(gen)


class CountingEngine(ThreadedEngine):
    """The engine t0 with counts. `messages`: whether compiled code carries messages out, or leaves them to the interpreter."""

    name = "counting"

    def __init__(self, messages: bool = True) -> None:
        super().__init__(messages)
        self.programs: list[KernelProgram] = []  # that have run, so that their counts are kept

    def function(self, program: KernelProgram, control: int, simd: int, full: bool = True, entry: int | None = None,
                 payload: tuple[AffineRange, ...] = ()) -> CompiledFunction:  # fmt: skip
        if not any(program is known for known in self.programs):
            self.programs.append(program)
        return super().function(program, control, simd, full, entry, payload)

    def threaded(self, gen: float) -> CountingPrograms:
        return programs(gen)

    def ran(self, program: KernelProgram, instructions: int) -> None:
        """Counts are kept by instruction."""

