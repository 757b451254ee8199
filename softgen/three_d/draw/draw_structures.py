"""The structures of draw.h: records of draws, what they were made from, and the draw under way."""

from __future__ import annotations

import ctypes
from enum import IntEnum
from functools import cache

from softgen.eu import native
from softgen.threads.programs import MemoryRange
from softgen.three_d.structures import ChunkStruct

COUNTS = ("IA_VERTICES_COUNT", "IA_PRIMITIVES_COUNT", "VS_INVOCATION_COUNT", "GS_INVOCATION_COUNT", "GS_PRIMITIVES_COUNT",
          "CL_INVOCATION_COUNT", "CL_PRIMITIVES_COUNT", "PS_INVOCATION_COUNT", "PS_DEPTH_COUNT", "HS_INVOCATION_COUNT",
          "DS_INVOCATION_COUNT")  # fmt: skip
MOST_POINTERS, MOST_STAGES = 96, 16


def _words(*names: str) -> list[tuple[str, type[ctypes.c_uint32]]]:
    return [(name, ctypes.c_uint32) for name in names]


def _longs(*names: str) -> list[tuple[str, type[ctypes.c_uint64]]]:
    return [(name, ctypes.c_uint64) for name in names]


class Base(IntEnum):
    """enum draw_base: what pointers count from."""

    NONE = 0
    GENERAL = 1
    SURFACE = 2
    DYNAMIC = 3


# -- what plans were made from ---------------------------------------------------------------------------------------------------


class LatchedCommand(ctypes.Structure):
    """A command: whether it was latched; if it was, how long it is (0: that does not matter), and which items it has."""

    _fields_ = [*_words("slot", "latched", "length", "reserved"), *_longs("present")]


class LatchedDwords(ctypes.Structure):
    """Dwords of commands."""

    _fields_ = [*_words("offset", "count"), *_longs("data")]


class LatchedBits(ctypes.Structure):
    """A dword of which only the bits of a mask count."""

    _fields_ = _words("offset", "mask", "value")


class HostPlace(ctypes.Structure):
    """An address that plans have as a host address."""

    _fields_ = _longs("address", "host")


class TableEntry(ctypes.Structure):
    """An entry of a binding table: what was read of the surface state that it leads to; or, where nothing was, its value."""

    _fields_ = [*_words("index", "value"), *_longs("size"), ("surface", ctypes.c_char_p)]


class StageTable(ctypes.Structure):
    """The binding table of a stage, which may be elsewhere while its entries lead to the same surface states, wherever those are."""

    _fields_ = [*_words("offset", "mask", "pointer", "scale"), *_longs("table", "count", "entries", "header", "surface_mask")]


class MovedValue(ctypes.Structure):
    """A dword of a plan or a binding that counts from where a block of state is."""

    _fields_ = [*_longs("place"), *_words("value", "reserved")]


class StateBlock(ctypes.Structure):
    """A block of state behind a pointer, which may be elsewhere while what was read of it is the same."""

    _fields_ = [*_words("offset", "mask", "pointer", "range_count", "value_count", "reserved"), *_longs("ranges", "values")]


class StatePointer(ctypes.Structure):
    """A pointer in a command, or in memory that another pointer leads to."""

    _fields_ = _words("parent", "offset", "mask", "base")


class PointedRange(ctypes.Structure):
    """Bytes at an offset from where a pointer leads."""

    _fields_ = [*_words("pointer", "offset"), *_longs("size"), ("data", ctypes.c_char_p)]


class PointedBits(ctypes.Structure):
    """Bits of a dword there."""

    _fields_ = _words("pointer", "offset", "mask", "value")


# -- what is copied into plans ---------------------------------------------------------------------------------------------------


class LatchedPointer(ctypes.Structure):
    """A pointer of one or two dwords in a command."""

    _fields_ = [*_words("offset", "dwords"), *_longs("mask", "base")]


class ConstantRange(ctypes.Structure):
    """Constants, and where a payload's plan has them."""

    _fields_ = [("pointer", LatchedPointer), *_longs("size", "into")]


class VertexSource(ctypes.Structure):
    """A vertex buffer, and the fetch element that reads it."""

    _fields_ = [("pointer", LatchedPointer), *_longs("size_offset", "end_offset", "index_offset", "element")]


class PointerCopy(ctypes.Structure):
    """Where a pointer leads, as plans have it."""

    _fields_ = [*_words("pointer", "mask", "add", "reserved"), *_longs("into")]


class CurbePart(ctypes.Structure):
    """A part of the constant URB entry, and where a payload's plan has it."""

    _fields_ = _longs("first", "size", "into")


# -- stages ----------------------------------------------------------------------------------------------------------------------


class SharedLoops(ctypes.Structure):
    """Loops of a stage that run at the same time, each on a host thread of its own."""

    _fields_ = [*_longs("parts", "copies", "count", "size"), *_words("slots", "most")]


class StageStruct(ctypes.Structure):
    """struct stage, which describes the fields."""

    _fields_ = [*_longs("run", "plan", "loop", "function", "worker"), ("loops", SharedLoops), ("work", ctypes.c_uint64 * 3),
                *_words("begun", "more", "used", "threaded"), ("total", ctypes.c_uint64 * 3), *_longs("dispatches")]  # fmt: skip


# -- draws -----------------------------------------------------------------------------------------------------------------------


class RecordStruct(ctypes.Structure):
    """struct draw_record, which describes the fields."""

    _fields_ = [
        *_longs("after"), *_words("topology", "indexed"), *_longs("fixed_start"),
        *_words("start_vertex", "start_instance", "base_vertex", "fixed_bases"), ("bases", ctypes.c_uint64 * len(Base)),
        *_longs("commands", "dwords", "bits", "memory", "programs", "hosts", "tables", "blocks", "constants", "sources",
                "pointers", "ranges", "pointed_bits", "copies", "parts"),
        *_words("command_count", "dwords_count", "bits_count", "memory_count", "program_count", "host_count", "table_count",
                "block_count", "constant_count", "source_count", "pointer_count", "range_count", "pointed_bits_count", "copy_count",
                "part_count", "reserved_count", "index_source", "index_end"),
        ("index_pointer", LatchedPointer),
        *_longs("index_size_offset", "assembly_plan", "fetch", "stages", "stage_count", "runs", "touched", "reports", "follows"),
    ]  # fmt: skip


# Arrays of a record: the fields with their address and length.
ARRAYS: dict[type[ctypes.Structure], tuple[str, str]] = {
    LatchedCommand: ("commands", "command_count"), LatchedDwords: ("dwords", "dwords_count"), LatchedBits: ("bits", "bits_count"),
    MemoryRange: ("memory", "memory_count"), HostPlace: ("hosts", "host_count"), StageTable: ("tables", "table_count"),
    StateBlock: ("blocks", "block_count"),
    ConstantRange: ("constants", "constant_count"), VertexSource: ("sources", "source_count"),
    StatePointer: ("pointers", "pointer_count"), PointedRange: ("ranges", "range_count"),
    PointedBits: ("pointed_bits", "pointed_bits_count"), PointerCopy: ("copies", "copy_count"), CurbePart: ("parts", "part_count"),
}  # fmt: skip


class Phase(IntEnum):
    """enum draw_phase: a record is to be found; there is one; its stages are under way."""

    FIND = 0
    BEGIN = 1
    WALK = 2


class DrawReason(IntEnum):
    """enum draw_reason: why draw_run returns, besides the reasons of threads.h."""

    DONE = 0
    NOT_FOUND = 100
    MORE = 101
    NEEDED = 102
    REFUSED = 103
    VIEWPORTS = 104
    SELECT = 105
    NO_WORKERS = 106
    LOOPS = 107
    STREAM_BUFFERS = 108


class DrawStruct(ctypes.Structure):
    """struct draw, which describes the fields."""

    _fields_ = [
        *_words("topology", "indexed", "vertices", "start_vertex", "instances", "start_instance", "base_vertex", "phase"),
        *_longs("stage", "found", "previous", "compared"),
        ("counts", ctypes.c_uint64 * len(COUNTS)), ("oversized", ctypes.c_uint64),
        ("works", ctypes.c_uint64 * (3 * MOST_STAGES)),  # threads, instructions and time of each stage that has threads
        *_longs("draws", "draw_count", "latches", "memory", "assembly", "records", "host_threads", "slice",
                "share_vertices", "share_pixels", "guard", "loops", "running", "running_count"),
        *_words("most_vertices", "select"), *_longs("deadline"), ("chunk", ChunkStruct), *_longs("must_clip", "binned", "next_tile"),
        *_longs("wrap"), ("bases", ctypes.c_uint64 * len(Base)), ("curbe", ctypes.c_char_p),
        *_longs("curbe_size", "viewports"),
        ("addresses", ctypes.c_uint64 * MOST_POINTERS),
    ]  # fmt: skip


def layout() -> list[int]:
    """The numbers that draw_layout gives, as Python has them."""
    checked = (LatchedCommand, LatchedDwords, LatchedBits, MemoryRange, HostPlace, TableEntry, StageTable, MovedValue, StateBlock,
               ConstantRange, VertexSource, StatePointer, PointedRange, PointedBits, PointerCopy, CurbePart, SharedLoops,
               StageStruct)  # fmt: skip
    return [*(ctypes.sizeof(kind) for kind in checked), MOST_POINTERS, MOST_STAGES, len(COUNTS), ctypes.sizeof(RecordStruct),
            RecordStruct.index_pointer.offset, RecordStruct.stages.offset,
            ctypes.sizeof(DrawStruct), DrawStruct.counts.offset, DrawStruct.draws.offset, DrawStruct.chunk.offset]  # fmt: skip


@cache
def library() -> ctypes.CDLL:
    return native.load("softgen.three_d._pipeline", "draw_layout", layout())


@cache
def function(name: str) -> int:
    """The host address of a function of the stages."""
    return native.address(getattr(library(), name))
