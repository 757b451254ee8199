"""The structures of draw.h: records of draws, what they were made from, and the draw under way."""

from __future__ import annotations

import ctypes
from functools import cache

from softgen.eu import native
from softgen.memory.graphics_memory_h import MemoryRange
from softgen.three_d.draw.draw_h import (
    MOST_POINTERS,
    MOST_STAGES,
    ConstantRange,
    CurbePart,
    DrawReason,
    DrawStruct,
    HostPlace,
    LatchedBits,
    LatchedCommand,
    LatchedDwords,
    LatchedPointer,
    MovedValue,
    PointedBits,
    PointedRange,
    PointerCopy,
    RecordStruct,
    StageStruct,
    StageTable,
    StateBlock,
    StatePointer,
    TableEntry,
    VertexSource,
)
from softgen.three_d.draw.draw_h import DrawBase as Base
from softgen.three_d.draw.draw_h import DrawPhase as Phase
from softgen.three_d.structures import library

# Registers that `counts` of a draw adds to, in the order of enum draw_count.
COUNTS = ("IA_VERTICES_COUNT", "IA_PRIMITIVES_COUNT", "VS_INVOCATION_COUNT", "GS_INVOCATION_COUNT", "GS_PRIMITIVES_COUNT",
          "CL_INVOCATION_COUNT", "CL_PRIMITIVES_COUNT", "PS_INVOCATION_COUNT", "PS_DEPTH_COUNT", "HS_INVOCATION_COUNT",
          "DS_INVOCATION_COUNT")  # fmt: skip

# Arrays of a record: the fields with their address and length.
ARRAYS: dict[type[ctypes.Structure], tuple[str, str]] = {
    LatchedCommand: ("commands", "command_count"), LatchedDwords: ("dwords", "dwords_count"), LatchedBits: ("bits", "bits_count"),
    MemoryRange: ("memory", "memory_count"), HostPlace: ("hosts", "host_count"), StageTable: ("tables", "table_count"),
    StateBlock: ("blocks", "block_count"),
    ConstantRange: ("constants", "constant_count"), VertexSource: ("sources", "source_count"),
    StatePointer: ("pointers", "pointer_count"), PointedRange: ("ranges", "range_count"),
    PointedBits: ("pointed_bits", "pointed_bits_count"), PointerCopy: ("copies", "copy_count"), CurbePart: ("parts", "part_count"),
}  # fmt: skip


@cache
def function(name: str) -> int:
    """The host address of a function of the stages."""
    return native.address(getattr(library(), name))


__all__ = [
    "ARRAYS", "COUNTS", "MOST_POINTERS", "MOST_STAGES", "Base", "ConstantRange", "CurbePart", "DrawReason", "DrawStruct", "HostPlace",
    "LatchedBits", "LatchedCommand", "LatchedDwords", "LatchedPointer", "MovedValue", "Phase", "PointedBits", "PointedRange",
    "PointerCopy", "RecordStruct", "StageStruct", "StageTable", "StateBlock", "StatePointer", "TableEntry", "VertexSource", "function",
]  # fmt: skip
