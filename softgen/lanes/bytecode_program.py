"""Bytecode programs: values get places in a frame, and the operations are encoded for the interpreter (bytecode.c).

A program is callable by address with up to six 64-bit arguments, like compiled code. The first of them points at the context, where the
table of graphics memory and the note of accesses are (shared_functions/context.py).
"""

from __future__ import annotations

import ctypes
import importlib.util
import itertools
import struct
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

from softgen.bits.units import QWORD
from softgen.errors import SoftgenError, Unsupported

CONSTANT, NO_OPERAND = 1 << 31, 0xFFFFFFFF
ARGUMENTS = 6
HANDLER_CONTEXT = 2  # number of the argument
LARGEST_FRAME = 1 << 18  # bytes of a host thread's stack
OPERATION = struct.Struct("<HHIIIIIQ")
_PLACE = 16  # bytes of the smallest place


class ProgramRecord(ctypes.Structure):
    """struct program of bytecode.h."""

    _fields_ = [("operations", ctypes.c_void_p), ("constants", ctypes.c_void_p), ("frame", ctypes.c_uint64), ("context", ctypes.c_uint64),
                ("table_at", ctypes.c_uint64), ("note_at", ctypes.c_uint64), ("address_mask", ctypes.c_uint64), ("result", ctypes.c_uint64),
                ("calls", ctypes.c_uint64), ("hot", ctypes.c_uint64), ("number", ctypes.c_uint64),
                ("compiled", ctypes.c_uint64)]  # fmt: skip


@cache
def library() -> ctypes.CDLL:
    found = importlib.util.find_spec("softgen.lanes._bytecode")
    again = "run `make` or `python setup.py build_ext --inplace` at the repository's root"
    if found is None or found.origin is None:
        raise SoftgenError(f"softgen.lanes._bytecode is not built; {again}")
    try:
        native, theirs = ctypes.CDLL(found.origin), (ctypes.c_uint64 * 3)()
        same = native.bytecode_layout(theirs) == 3 and list(theirs[:2]) == [OPERATION.size, ctypes.sizeof(ProgramRecord)]
        native.bytecode_name.restype, native.bytecode_name.argtypes = ctypes.c_char_p, (ctypes.c_uint64,)
        for function in (native.bytecode_function, native.bytecode_handler):
            function.restype, function.argtypes = ctypes.c_uint64, (ctypes.c_uint64, ctypes.POINTER(ProgramRecord))
    except (OSError, AttributeError) as error:
        raise SoftgenError(f"{found.origin} cannot be used: {error}; {again}") from None
    if not same:
        raise SoftgenError(f"{found.origin} is of another version; {again}")
    return native


@cache
def codes() -> dict[str, int]:
    """The operations of the interpreter by name."""
    names = (library().bytecode_name(code) for code in itertools.count())
    return {name.decode(): code for code, name in enumerate(itertools.takewhile(lambda name: name is not None, names))}


@dataclass(eq=False, slots=True)
class FramePlace:
    """Bytes of the frame while a value lives: `at` is known when the program is complete. A constant has `data`."""

    size: int
    data: bytes | None = None
    at: int = -1
    last: int = -1  # number of the last operation that reads it; -1: none does


@dataclass(eq=False, slots=True)
class Slot:
    """A value's payload: a place, and the byte in it where the value starts."""

    place: FramePlace
    offset: int = 0


@dataclass(eq=False, slots=True)
class BytecodeOperation:
    """An operation. One that is `pure` and whose result is not read is left out."""

    name: str
    lanes: int = 0
    result: Slot | None = None
    operands: tuple[Slot | None, Slot | None, Slot | None] = (None, None, None)
    flags: int = 0
    immediate: int = 0
    pure: bool = True
    reads: tuple[FramePlace, ...] = ()  # `result` too, of a store
    target: Label | None = None
    number: int = -1


@dataclass(eq=False)
class Label:
    """Where a jump goes: in front of an operation."""

    before: int = -1


@dataclass
class BytecodeAssembly:
    """A program being written."""

    operations: list[BytecodeOperation] = field(default_factory=list)
    loops: list[tuple[int, int]] = field(default_factory=list)  # first operation, and the one after the last
    labels: list[Label] = field(default_factory=list)
    constants: dict[bytes, Slot] = field(default_factory=dict)
    kept: list[FramePlace] = field(default_factory=list)

    def constant(self, data: bytes) -> Slot:
        found = self.constants.get(data)
        if found is None:
            found = self.constants[data] = Slot(FramePlace(len(data), data))
        return found

    def keep(self, size: int) -> Slot:
        place = FramePlace(size)
        self.kept.append(place)
        return Slot(place)

    def add(self, operation: BytecodeOperation) -> None:
        self.operations.append(operation)

    def finished(self, result: Slot, table_at: int, note_at: int, bits: int, handler: bool = False) -> BytecodeProgram:
        self.add(BytecodeOperation("end", pure=False, reads=(result.place,)))
        used = self._used()
        frame = self._placed(used)
        first_from = _following({operation.number: number for number, operation in enumerate(used)}, len(self.operations))
        known, data, pool = codes(), [], bytearray()
        for slot in self.constants.values():
            pool += bytes(-len(pool) % _PLACE)
            slot.place.at = CONSTANT | len(pool)
            pool += slot.place.data or b""
        pack = OPERATION.pack
        for operation in used:
            made, (a, b, c) = operation.result, operation.operands
            immediate = first_from[operation.target.before] if operation.target is not None else operation.immediate
            data.append(pack(
                known[operation.name], operation.lanes, NO_OPERAND if made is None else made.place.at + made.offset,
                NO_OPERAND if a is None else a.place.at + a.offset, NO_OPERAND if b is None else b.place.at + b.offset,
                NO_OPERAND if c is None else c.place.at + c.offset, operation.flags, immediate))  # fmt: skip
        at = result.place.at + result.offset
        return BytecodeProgram(b"".join(data), bytes(pool) or b"\0", frame, at, table_at, note_at, (1 << bits) - 1, handler)

    def _used(self) -> list[BytecodeOperation]:
        """The operations whose results are read or that act otherwise; places know where they are last read."""
        found, number = [], len(self.operations)
        for operation in reversed(self.operations):  # in reverse order, the first reader of a place is its last reader
            number -= 1
            operation.number = number
            result = operation.result
            if result is not None and result.place.last < 0:
                if operation.pure:
                    continue
                result.place.last = number
            found.append(operation)
            for slot in operation.operands:
                if slot is not None and slot.place.last < 0:
                    slot.place.last = number
            for place in operation.reads:
                if place.last < 0:
                    place.last = number
        found.reverse()
        return found

    def _placed(self, used: list[BytecodeOperation]) -> int:
        """Give each value a place in the frame, which others have before and after it; returns the frame's size."""
        end = 0
        for place in self.kept:
            place.at, end = end, end + -(-place.size // QWORD) * QWORD
        end = -(-end // 64) * 64
        free: dict[int, list[int]] = {}
        dying: dict[int, list[tuple[int, int]]] = {}
        for operation in used:
            if operation.result is not None:
                place = operation.result.place
                if place.at < 0 and place.data is None:
                    size = max(_PLACE, 1 << (place.size - 1).bit_length())
                    held = free.get(size)
                    if held:
                        place.at = held.pop()
                    else:
                        place.at, end = end, end + size
                    last = self._end(operation.number, place.last) if self.loops else place.last
                    dying.setdefault(last, []).append((size, place.at))
            for size, at in dying.pop(operation.number, ()):
                free.setdefault(size, []).append(at)
        if end > LARGEST_FRAME:
            raise Unsupported(f"a bytecode program with a frame of {end} bytes: at most {LARGEST_FRAME}")
        return end

    def _end(self, born: int, last: int) -> int:
        """The operation after which a place is free: not before the end of a loop that the value comes from outside of."""
        for first, after in self.loops:
            if born < first <= last < after:
                last = after - 1
        return last


def _following(numbers: dict[int, int], count: int) -> list[int]:
    """For each operation as it was written, the number of the first one from it on that is used."""
    found, following = [0] * (count + 1), len(numbers)
    for number in range(count, -1, -1):
        following = numbers.get(number, following)
        found[number] = following
    return found


_numbers = {False: itertools.count(), True: itertools.count()}  # of handlers, and of functions
_lock = threading.Lock()


class BytecodeProgram:
    """An encoded program with an address; it is never freed, as compiled code may be about to call it. `handler`: it is one of the threaded
    engine, whose third argument is the context."""

    def __init__(self, operations: bytes, constants: bytes, frame: int, result: int, table_at: int, note_at: int, mask: int,
                 handler: bool = False) -> None:  # fmt: skip
        self._operations, self._constants = ctypes.create_string_buffer(operations), ctypes.create_string_buffer(constants)
        pointers = ctypes.addressof(self._operations), ctypes.addressof(self._constants)
        self.record = ProgramRecord(*pointers, frame, HANDLER_CONTEXT if handler else 0, table_at, note_at, mask, result)
        self.size = len(operations) // OPERATION.size
        with _lock:
            number = self.record.number = next(_numbers[not handler])
        self.address = int((library().bytecode_handler if handler else library().bytecode_function)(number, self.record))
        if not self.address:
            raise Unsupported(f"more than {number} bytecode programs in one process")
        _kept.append(self)

    @property
    def calls(self) -> int:
        return int(self.record.calls)

    def become(self, compiled: int) -> None:
        """From now on, calls go to the function at an address."""
        self.record.compiled = compiled


_kept: list[BytecodeProgram] = []


def slots_of(payloads: Sequence[Slot]) -> tuple[Slot | None, Slot | None, Slot | None]:
    """One to three operands."""
    return (*payloads, None, None, None)[:3]  # type: ignore[return-value]
