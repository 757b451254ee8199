"""UrbMemory: the bytes of a URB, and handles of its entries.

A handle is the number of the 64-byte row at which an entry begins. The manuals leave the value open; kernels only pass it on.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

ROW = 64  # bytes


@dataclass(frozen=True, eq=False)
class UrbMemory:
    """A URB as pipelines give it to threads: the state of the unit "urb" (ThreadDispatch.unit_states)."""

    bytes: npt.NDArray[np.uint8] = field(repr=False)

    @property
    def address(self) -> int:
        return int(self.bytes.ctypes.data)

    @property
    def size(self) -> int:
        return len(self.bytes)
