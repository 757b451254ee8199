"""Binding tables of dispatches that come again: the surface states that they lead to, read in one call.

Drivers write tables and surface states anew for each dispatch. Equal surface states are the same surfaces, wherever they are.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import cache
from typing import Any

from softgen.errors import SoftgenError
from softgen.eu import native
from softgen.memory import guard
from softgen.memory.space import Space
from softgen.shared_functions.unit import pointer_bits
from softgen.threads.native import scheduler
from softgen.threads.programs import DispatchProgram


class ReaderRecord(ctypes.Structure):
    """What is read: `struct table_reader` of tables.c, which describes the fields."""

    _fields_ = [
        ("memory", ctypes.c_uint64),
        ("program", ctypes.c_uint64),
        ("table", ctypes.c_uint64),
        ("base", ctypes.c_uint64),
        ("address_bits", ctypes.c_uint64),
        ("pointer_bits", ctypes.c_uint64),
        ("indices", ctypes.c_uint64),
        ("count", ctypes.c_uint64),
        ("size", ctypes.c_uint64),
        ("states", ctypes.c_uint64),
    ]


@cache
def _reading() -> tuple[Any, int]:
    """guard_call, called without letting go of the interpreter lock, since so short a call would only give it away; and what it calls."""
    library = scheduler.library()
    library.threads_table_layout.restype = ctypes.c_uint64
    if library.threads_table_layout() != ctypes.sizeof(ReaderRecord):
        raise SoftgenError("softgen.threads._scheduler is of another version; build it again with `python setup.py build_ext --inplace`")
    guarded = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(scheduler.guard_function())
    return guarded, native.address(library.threads_read_table)


class SurfaceStateReader:
    """Reads entries of binding tables in one address space, for dispatches of one program with the same base addresses."""

    def __init__(self, space: Space, bases: Mapping[str, int], program: DispatchProgram, gen: float, indices: tuple[int, ...] = (),
                 size: int = 0) -> None:  # fmt: skip
        """`indices`: of the entries; `size`: bytes of a surface state."""
        self.memory, self.size = space.table, size
        self._program, self._indices = program, (ctypes.c_uint32 * len(indices))(*indices)
        self._states, self._fault = ctypes.create_string_buffer(len(indices) * size), guard.FaultRecord()
        self._record = ReaderRecord(
            ctypes.addressof(self.memory), ctypes.addressof(program.range), 0, bases.get("surface", 0), (1 << space.bits) - 1,
            pointer_bits(gen), ctypes.addressof(self._indices), len(indices), size, ctypes.addressof(self._states))  # fmt: skip
        self._call, function = _reading()
        self._arguments = function, ctypes.addressof(self._record), ctypes.addressof(self._fault)

    def read(self, table: int) -> bytes | None:
        """The surface states that the table at an offset from the surface state base leads to; None where one cannot be read, or the
        program is no longer what is in memory."""
        self._record.table = table
        if self._call(*self._arguments) or not self._fault.result:
            return None
        return self._states.raw
