"""Binding tables of dispatches that come again: the surface states that they lead to, read in one call.

Drivers write tables and surface states anew for each dispatch. Equal surface states are the same surfaces, wherever they are.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import cache

from softgen.eu import native
from softgen.memory import guard
from softgen.memory.space import Space
from softgen.shared_functions.unit import pointer_bits
from softgen.threads.native import scheduler
from softgen.threads.native.tables_h import ReaderRecord
from softgen.threads.programs import DispatchProgram


@cache
def _reading() -> int:
    return native.address(scheduler.library().threads_read_table)


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
        self._call, self._arguments = guard.quick_call(), (_reading(), ctypes.addressof(self._record), ctypes.addressof(self._fault))

    def read(self, table: int) -> bytes | None:
        """The surface states that the table at an offset from the surface state base leads to; None where one cannot be read, or the
        program is no longer what is in memory."""
        self._record.table = table
        if self._call(*self._arguments) or not self._fault.result:
            return None
        return self._states.raw
