"""ThreadOutput: the vertices and objects that GS and CLIP threads make of those of a chunk (thread_output.c)."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import numpy as np

from softgen.bits.record import Record
from softgen.errors import DecodeError, Unsupported
from softgen.shared_functions.urb.memory import ENTRY, POOL, ROW, UrbMemory
from softgen.three_d.stage_threads.stage_threads import ThreadOutputStruct
from softgen.three_d.state.state import DrawState
from softgen.three_d.state.unit_state import unit_state
from softgen.three_d.structures import ObjectArray, Position, PrimitiveObject, VertexArray
from softgen.three_d.vertices.assembly import ALL_EDGES, EDGES_SHIFT, PROVOKING_SHIFT, RECTANGLE, SELECTS, TOPOLOGIES, TOPOLOGY_SHIFT
from softgen.three_d.vertices.chunk import Chunk, aligned

# Topologies that leave GS and CLIP: no adjacency, quadrilaterals or loops (G45 3336-3341, 4735).
PUT_OUT = (1, 2, 3, 4, 5, 6, 13, 14, 15, 17, 18, 19, 20, 22)
PER_THREAD = 48  # entries of a thread, on average at most: a triangle clipped at 14 planes has 17 vertices, as outlines 34
OUTPUT_FULL = 0x10000
MOST_RETAINED = 16  # URB handles, of the only thread (G45 1634)
LEAST_HANDLES = {3: 3, 18: 3, 19: 3, 20: 3, 6: 4, 14: 4, 22: 4, 5: 5, 13: 5}  # of GS, by the topology that CLIP gets (G45 1424-1428)


def set_topologies(state: DrawState, output: ThreadOutputStruct) -> None:
    """Fill in how vertices that threads put out make objects."""
    for code in PUT_OUT:
        found, into = TOPOLOGIES[code], output.topology[code]
        corners = len(found.back)
        select = found.select or SELECTS.get(corners, "")
        fixed = not select or found.polygon or found.flags & RECTANGLE
        provoking = 0 if fixed else int(getattr(unit_state(state, "SF"), select))
        edges = ALL_EDGES << EDGES_SHIFT if corners == 3 else 0
        into.minimum, into.step, into.corners, into.back[:corners] = found.minimum, found.step, corners, found.back
        into.flags = corners | found.flags | provoking << PROVOKING_SHIFT | edges | found.becomes << TOPOLOGY_SHIFT
        into.inverts, into.polygon, into.line_strip, into.continued = found.inverts, found.polygon, found.strip, found.continued


def refuse_output(output: ThreadOutputStruct, stage: str) -> None:
    """Raise what is wrong with the vertices that threads put out."""
    if output.refused == OUTPUT_FULL:
        raise Unsupported(f"{stage} threads put out more vertices or objects than there is room for")
    if output.refused:
        raise DecodeError(f"a {stage} thread put out a vertex of topology {output.refused - 1}, which none may")


def _codes(bits: int) -> list[int]:
    """The topologies of a set of bits."""
    return [code for code in range(bits.bit_length()) if bits >> code & 1]


class ThreadOutput:
    """Arrays with the vertices of a chunk, room for those that `threads` threads make, and their objects."""

    def __init__(self, state: DrawState, chunk: Chunk, entry_bytes: int, threads: int) -> None:
        self.state = state
        stride = max(entry_bytes, int(chunk.vertices.stride))
        count, made = int(chunk.vertices.count), threads * PER_THREAD
        rows = stride // ROW
        self.urb = UrbMemory(aligned((count + made) * stride), np.zeros((count + made) * rows, ENTRY), np.zeros(1, POOL))
        self._copy(chunk, count, stride)
        assert self.urb.pools is not None and self.urb.entries is not None
        self.urb.pools[0] = (count * rows, (count + made) * rows, rows, 0)
        objects = int(chunk.objects.count) + made
        self.positions, self.held_objects = aligned((count + made) * ctypes.sizeof(Position)), aligned(
            objects * ctypes.sizeof(PrimitiveObject))  # fmt: skip
        ctypes.memmove(self.positions.ctypes.data, chunk.vertices.positions, count * ctypes.sizeof(Position))
        self.struct = ThreadOutputStruct(
            vertices=VertexArray(self.urb.address, stride, self.positions.ctypes.data, count, count + made),
            objects=ObjectArray(self.held_objects.ctypes.data, 0, objects), entries=self.urb.entries.ctypes.data,
            pool=self.urb.pools.ctypes.data,
        )  # fmt: skip
        set_topologies(state, self.struct)

    @property
    def invocations(self) -> int:
        """Messages that count CL_INVOCATIONS."""
        return int(self.struct.invocations)

    def check(self, stage: str, unit: Record) -> None:
        """Warn of rules about vertices and entries that a stage's threads have broken; `unit` is the stage's state."""
        for text in self._complaints(stage, unit):
            self.state.warn(text)

    def _complaints(self, stage: str, unit: Record) -> Iterator[str]:
        assert self.urb.pools is not None
        made = self.struct
        entries, threads = int(unit.number_of_urb_entries), int(unit.maximum_number_of_threads) + 1
        retained, most = int(self.urb.pools[0]["retained"]), min(MOST_RETAINED, entries) if threads == 1 else entries // 2
        if retained > most:  # G45 1629-1638
            yield f"a {stage} thread retains {retained} URB handles; {entries} entries and {threads} threads allow {most}"
        if made.rewritten:  # G45 1613
            yield f"a {stage} thread writes to a URB entry after the message that completed it"
        for code in _codes(made.incomplete):  # G45 4883-4903
            yield f"a {stage} thread puts out a primitive of topology {code} with a number of vertices that it cannot have"
        if stage == "GS" and self.state.command("3DSTATE_PIPELINED_POINTERS").clip_enable:
            for code in _codes(made.put_out):  # G45 1417-1432
                if entries < LEAST_HANDLES.get(code, 0) * threads:
                    yield (f"GS_STATE: number_of_urb_entries {entries}; {threads} threads that put out topology {code} to CLIP need "
                           f"{LEAST_HANDLES[code] * threads}")  # fmt: skip

    def _copy(self, chunk: Chunk, count: int, stride: int) -> None:
        """The entries that are there, each at the beginning of a new one."""
        old = int(chunk.vertices.stride)
        self.urb.bytes[: count * stride].reshape(count, stride)[:, :old] = chunk.urb.bytes[: count * old].reshape(count, old)

    def chunk(self, stage: str) -> Chunk:
        """What the threads have made, as a chunk."""
        refuse_output(self.struct, stage)
        made = Chunk.__new__(Chunk)
        made.urb, made.positions, made.held_objects = self.urb, self.positions, self.held_objects
        made.vertices, made.objects = VertexArray.from_buffer_copy(self.struct.vertices), ObjectArray.from_buffer_copy(self.struct.objects)
        return made
