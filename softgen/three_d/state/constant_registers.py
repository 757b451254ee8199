"""What the resource streamer keeps: binding tables that commands edit, and the constant registers of Direct3D 9.

A stage has 256 float, 32 integer and 16 Boolean registers, each of them twice: global and local (BDW 4504-4531). A constant buffer has the
floats first, from 4 KiB on the integers, then the Booleans, a dword each; the manual gives the sizes and not the places of the last two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from softgen.bits.record import Record

TABLE = 256  # entries of a binding table
BLOCK = 16  # entries that are cleared together
REGISTERS = {"F": (256, 4), "I": (32, 4), "B": (16, 1)}  # kind -> registers, dwords of each
CLAMPED = "F"
UNDEFINED = 0x7FBAD0FF  # as a float no number
Dwords = npt.NDArray[np.uint32]


def _files() -> dict[str, Dwords]:
    """Registers that nothing was written to: their values are undefined after reset (BDW 4266-4269), here such that they show."""
    return {kind: np.full(shape, UNDEFINED, np.uint32) for kind, shape in REGISTERS.items()}


def _flags() -> dict[str, npt.NDArray[np.bool_]]:
    return {kind: np.zeros(count, np.bool_) for kind, (count, _) in REGISTERS.items()}


@dataclass
class ConstantRegisters:
    """The constant registers of a stage."""

    shared: dict[str, Dwords] = field(default_factory=_files)  # the global ones
    local: dict[str, Dwords] = field(default_factory=_files)
    valid: dict[str, npt.NDArray[np.bool_]] = field(default_factory=_flags)

    def write(self, kind: str, is_global: bool, first: int, rows: Sequence[Sequence[int]]) -> None:
        """Set registers from `first` on, as far as there are any; local ones become valid."""
        rows = rows[: REGISTERS[kind][0] - first]
        if not rows:
            return
        (self.shared if is_global else self.local)[kind][first : first + len(rows)] = rows
        if not is_global:
            self.valid[kind][first : first + len(rows)] = True

    def forget(self) -> None:
        """No local register is valid any more."""
        for held in self.valid.values():
            held[:] = False

    def active(self, chooses_local: bool, clamps: bool) -> bytes:
        """The constant buffer: valid local registers win, unless the rules of Direct3D 8 hold; global floats may be clamped to -1..1
        (BDW 4318-4343)."""
        parts = []
        for kind, held in self.shared.items():
            shared = _clamped(held) if clamps and kind == CLAMPED else held
            parts.append(np.where(self.valid[kind][:, None], self.local[kind], shared) if chooses_local else shared)
        return b"".join(part.astype("<u4").tobytes() for part in parts)


def _clamped(dwords: Dwords) -> Dwords:
    """Floats between -1 and 1, as bits; what is no number stays what it is."""
    floats = dwords.view(np.float32)
    return np.where(np.isnan(floats), floats, np.clip(floats, -1, 1)).astype(np.float32).view(np.uint32)


@dataclass
class ResourceStreamer:
    """The resource streamer's part of a hardware context."""

    tables: dict[str, list[int]] = field(default_factory=dict)  # offsets of surface states, by stage
    written: dict[str, tuple[int, tuple[int, ...]]] = field(default_factory=dict)  # where and how tables were last written to the pool
    registers: dict[str, ConstantRegisters] = field(default_factory=dict)  # by stage
    pool: Record | None = None  # 3DSTATE_DX9_CONSTANT_BUFFER_POOL_ALLOC

    def table(self, stage: str) -> list[int]:
        return self.tables.setdefault(stage, [0] * TABLE)

    def constants(self, stage: str) -> ConstantRegisters:
        return self.registers.setdefault(stage, ConstantRegisters())
