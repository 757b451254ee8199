"""UrbMemory: the bytes of a URB, handles of its entries, and what threads did with entries that they may allocate.

A handle is the number of the 64-byte row at which an entry begins. The manuals leave the value open; kernels only pass it on. It has 27
bits: on Gen7 the same dword of a geometry shader's payload holds the instance ID above them (public: Mesa brw_vec4_gs_visitor.cpp).

Threads of the Gen4.5 GS and CLIP stages allocate entries and say for each one what becomes of it. The pipeline that starts them gives
the URB an `UrbEntry` for each row and `UrbPool`s to allocate from (three_d/stage_threads/stage_threads.h has the same structures). An
entry's record holds its pool; the C loop sets it for the first entry of each thread. `next` links a thread's entries in the order of
allocation, which is the order they leave the stage in (G45 1615), so the loop reads a thread's output by following that of its first entry.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

ROW = 64  # bytes
HANDLE = (1 << 27) - 1
COMPLETE, USED, END_OF_THREAD, REWRITTEN = 1, 2, 4, 8  # UrbEntry.flags; rewritten: a write came after the completing one


class UrbEntry(ctypes.Structure):
    """What a thread did with an entry, by handle."""

    _fields_ = [
        ("flags", ctypes.c_uint32),
        ("dw2", ctypes.c_uint32),  # of the completing message's header: topology << 2 | PrimStart << 1 | PrimEnd
        ("next", ctypes.c_uint32),  # handle of the entry that the thread allocated next, or 0
        ("pool", ctypes.c_uint32),
    ]


class UrbPool(ctypes.Structure):
    """Free rows, from handle `next` up to `end`; entries have `step` rows. One worker uses a pool at a time. `retained`: the most handles
    that a thread held without having completed their entries."""

    _fields_ = [("next", ctypes.c_uint32), ("end", ctypes.c_uint32), ("step", ctypes.c_uint32), ("retained", ctypes.c_uint32)]


ENTRY = np.dtype(UrbEntry)
POOL = np.dtype(UrbPool)


@dataclass(frozen=True, eq=False)
class UrbMemory:
    """A URB as pipelines give it to threads: the state of the unit "urb" (ThreadDispatch.unit_states).

    `entries` has a record for each row, and `pools` at least one pool, where threads may allocate entries."""

    bytes: npt.NDArray[np.uint8] = field(repr=False)
    entries: npt.NDArray[np.void] | None = field(default=None, repr=False)
    pools: npt.NDArray[np.void] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if (self.entries is None) != (self.pools is None) or self.entries is not None and len(self.entries) * ROW < len(self.bytes):
            raise ValueError("a URB that threads allocate from must have an entry record for each row, and pools")

    @property
    def address(self) -> int:
        return int(self.bytes.ctypes.data)

    @property
    def size(self) -> int:
        return len(self.bytes)
