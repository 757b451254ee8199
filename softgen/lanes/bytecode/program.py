"""Bytecode programs: their assembly, and records of those that the interpreter runs (bytecode.c).

A program is callable by address with up to six 64-bit arguments, like compiled code. The first of them points at the context, where the
table of graphics memory and the note of accesses are (shared_functions/context.py).
"""

from __future__ import annotations

import ctypes
import itertools
import threading
from array import array
from functools import cache
from typing import NamedTuple

from softgen.bits.units import QWORD
from softgen.errors import Unsupported
from softgen.lanes.bytecode import assembly_h, bytecode_h, memory_h
from softgen.lanes.bytecode.assembly_h import JUMPS, PURE, READS_RESULT, SLOT_SHIFT, AssemblyRecord, WrittenOperation
from softgen.lanes.bytecode.bytecode_h import ARGUMENTS, CONSTANT_SHIFT, NO_OPERAND, WIDE_OFFSETS, EncodedOperation, ProgramRecord
from softgen.library import load

CONSTANT = 1 << CONSTANT_SHIFT
HANDLER_CONTEXT = 2  # number of the argument
LARGEST_FRAME = 1 << 18  # bytes of a host thread's stack
OPERATION = ctypes.sizeof(EncodedOperation)
ALIGNMENT = 16  # of constants
PLACE = 1 << SLOT_SHIFT  # slots from a place to the next
WRITTEN = ctypes.sizeof(WrittenOperation) // QWORD  # numbers of an operation before it is encoded


@cache
def library() -> ctypes.CDLL:
    native = load("softgen.lanes._bytecode", bytecode_h, assembly_h, memory_h)
    native.bytecode_name.restype, native.bytecode_name.argtypes = ctypes.c_char_p, (ctypes.c_uint64,)
    for function in (native.bytecode_function, native.bytecode_handler):
        function.restype, function.argtypes = ctypes.c_uint64, (ctypes.c_uint64, ctypes.POINTER(ProgramRecord))
    return native


@cache
def codes() -> dict[str, int]:
    """The operations of the interpreter by name."""
    names = (library().bytecode_name(code) for code in itertools.count())
    return {name.decode(): code for code, name in enumerate(itertools.takewhile(lambda name: name is not None, names))}


class Label:
    """Where jumps go: in front of an operation. Assemblies number their labels."""

    __slots__ = ("before", "number")

    def __init__(self, number: int) -> None:
        self.number, self.before = number, -1


class BytecodeAssembly:
    """A program being written, as flat lists of numbers: assembly.c leaves out what is not read and places the rest in a frame.

    A slot says where a value is: the number of a place times PLACE, and the byte in it where the value starts. Slots below PLACE are
    operands as the interpreter has them: constants, and NO_OPERAND."""

    def __init__(self) -> None:
        self._codes = codes()
        self.operations: list[int] = []  # WRITTEN numbers of each
        self.sizes = [0]  # of places, in bytes
        self.loops: list[int] = []  # pairs: the first operation, and the one after the last
        self.labels: list[Label] = []
        self.kept: list[int] = []
        self._pool = bytearray()
        self._constants: dict[bytes, int] = {}

    def constant(self, data: bytes) -> int:
        """The slot of a constant."""
        found = self._constants.get(data)
        if found is None:
            self._pool += bytes(-len(self._pool) % ALIGNMENT)
            found = self._constants[data] = CONSTANT | len(self._pool)
            self._pool += data
        return found

    def place(self, size: int) -> int:
        """A slot for a value that an operation is going to make."""
        sizes = self.sizes
        sizes.append(size)
        return (len(sizes) - 1) * PLACE

    def keep(self, size: int) -> int:
        """A slot that has its bytes for the whole program."""
        found = self.place(size)
        self.kept.append(found // PLACE)
        return found

    def label(self) -> Label:
        found = Label(len(self.labels))
        self.labels.append(found)
        return found

    @property
    def count(self) -> int:
        """Operations so far."""
        return len(self.operations) // WRITTEN

    def add(self, name: str, lanes: int = 0, result: int = NO_OPERAND, a: int = NO_OPERAND, b: int = NO_OPERAND, c: int = NO_OPERAND,
            flags: int = 0, immediate: int = 0, how: int = 0) -> None:  # fmt: skip
        """An operation. One that is PURE and whose result is not read is left out. JUMPS: `immediate` is the number of a label."""
        self.operations += (self._codes[name], lanes, how, result, a, b, c, flags, immediate)

    def finished(self, result: int, table_at: int, note_at: int, bits: int, handler: bool = False) -> BytecodeProgram:
        """The program, whose result is in a kept slot."""
        self.add("end", result=result, how=READS_RESULT)
        count, encoded = self.count, bytearray(OPERATION * self.count)
        labels = [label.before for label in self.labels]
        lists = [array("Q", numbers) for numbers in (self.operations, self.sizes, self.kept, labels, self.loops)]
        record = AssemblyRecord(*(numbers.buffer_info()[0] for numbers in lists), count, len(self.sizes), len(self.kept), len(labels),
                                len(self.loops) // 2, ctypes.addressof(ctypes.c_char.from_buffer(encoded)))  # fmt: skip
        if library().bytecode_assemble(ctypes.byref(record)):
            raise MemoryError("a bytecode program")
        if record.frame > LARGEST_FRAME:
            raise Unsupported(f"a bytecode program with a frame of {record.frame} bytes: at most {LARGEST_FRAME}")
        operations = bytes(encoded[: record.used * OPERATION])
        at = sum(-(-self.sizes[place] // QWORD) * QWORD for place in self.kept[: self.kept.index(result // PLACE)]) + result % PLACE
        return BytecodeProgram(operations, bytes(self._pool) or b"\0", record.frame, at, table_at, note_at, (1 << bits) - 1, handler)


_numbers = {False: itertools.count(), True: itertools.count()}  # of handlers, and of functions
_lock = threading.Lock()


class ProgramText(NamedTuple):
    """What is written of a program: operations and constants, bytes of the frame, and where in it the result is; where in the context the
    table of graphics memory and the note of accesses are; the bits of addresses. `handler`: it is one of the threaded engine, whose third
    argument is the context."""

    operations: bytes
    constants: bytes
    frame: int
    result: int
    table_at: int
    note_at: int
    mask: int
    handler: bool = False


class BytecodeProgram:
    """An encoded program with an address; it is never freed, as compiled code may be about to call it. The arguments are those of its
    ProgramText."""

    def __init__(self, operations: bytes, constants: bytes, frame: int, result: int, table_at: int, note_at: int, mask: int,
                 handler: bool = False) -> None:  # fmt: skip
        self._operations, self._constants = array("B", operations), array("B", constants)
        pointers = self._operations.buffer_info()[0], self._constants.buffer_info()[0]
        self.record = ProgramRecord(*pointers, frame, HANDLER_CONTEXT if handler else 0, table_at, note_at, mask, result)
        self.size = len(operations) // OPERATION
        with _lock:
            number = self.record.number = next(_numbers[not handler])
        self.address = int((library().bytecode_handler if handler else library().bytecode_function)(number, self.record))
        if not self.address:
            raise Unsupported(f"more than {number} bytecode programs in one process")
        _kept.append(self)

    @property
    def calls(self) -> int:
        return int(self.record.calls)

    @property
    def text(self) -> ProgramText:
        record = self.record
        return ProgramText(self._operations.tobytes(), self._constants.tobytes(), record.frame, record.result, record.table_at,
                           record.note_at, record.address_mask, bool(record.context))  # fmt: skip

    def become(self, compiled: int) -> None:
        """From now on, calls go to the function at an address."""
        self.record.compiled = compiled


_kept: list[BytecodeProgram] = []


__all__ = ["ARGUMENTS", "CONSTANT", "JUMPS", "NO_OPERAND", "PLACE", "PURE", "READS_RESULT", "WIDE_OFFSETS", "BytecodeAssembly",
           "BytecodeProgram", "Label", "codes", "library"]  # fmt: skip
