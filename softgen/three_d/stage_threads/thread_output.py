"""OutputStage: stages whose threads make vertices and objects of those of a chunk, GS and CLIP (thread_output.c)."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

from softgen.bits.record import Record
from softgen.command import CommandStreamer
from softgen.errors import DecodeError, Unsupported
from softgen.threads.dispatch import DispatchContext
from softgen.three_d.draw.draw_structures import DrawReason, StageStruct
from softgen.three_d.draw.stage import BuiltRecord, ThreadedStage, WalkedDraw
from softgen.three_d.stage_threads.stage_threads import StageThreads, ThreadOutputStruct, ThreadStage
from softgen.three_d.state.state import DrawState
from softgen.three_d.state.unit_state import unit_state
from softgen.three_d.structures import VertexArray
from softgen.three_d.three_d_h import OutputTopology
from softgen.three_d.vertices.assembly import ALL_EDGES, EDGES_SHIFT, PROVOKING_SHIFT, RECTANGLE, SELECTS, TOPOLOGIES, TOPOLOGY_SHIFT

# Topologies that leave GS and CLIP: no adjacency, quadrilaterals or loops (G45 3336-3341, 4735).
PUT_OUT = (1, 2, 3, 4, 5, 6, 13, 14, 15, 17, 18, 19, 20, 22)
OUTPUT_FULL = 0x10000
MOST_RETAINED = 16  # URB handles, of the only thread (G45 1634)
LEAST_HANDLES = {3: 3, 18: 3, 19: 3, 20: 3, 6: 4, 14: 4, 22: 4, 5: 5, 13: 5}  # of GS, by the topology that CLIP gets (G45 1424-1428)


def set_topologies(state: DrawState, output: ThreadOutputStruct) -> None:
    """Fill in how vertices that threads put out make objects."""
    for code in PUT_OUT:
        set_topology(state, code, output.topology[code])


def set_topology(state: DrawState, code: int, into: OutputTopology) -> None:
    """Fill in how vertices of one topology make objects."""
    found = TOPOLOGIES[code]
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


class OutputStage(ThreadedStage):
    """A stage whose threads put out vertices: GS or CLIP. They follow those of the stage before it, or have a chunk of their own."""

    reports = True

    def put_out(self, record: BuiltRecord, state: DrawState, threads: ThreadStage, in_place: bool) -> None:
        """Arrays for what threads put out; `in_place`: after the vertices that there are, if those have entries as long."""
        self._state, self._unit = state, threads.unit
        before = VertexArray.from_address(record.last_chunk.vertices)
        stride = max(threads.entry_bytes, int(before.stride))
        own = record.pipeline.front.output(stride, self.name)
        in_place = in_place and stride == before.stride
        self.urb = own.sharing(record.last_urb) if in_place else own.urb
        assert self.urb.entries is not None and self.urb.pools is not None
        self.urb.pools[0]["retained"] = 0
        self.output = ThreadOutputStruct(
            vertices=before if in_place else own.vertices, objects=own.objects, entries=self.urb.entries.ctypes.data,
            pool=self.urb.pools.ctypes.data,
        )  # fmt: skip
        self._kept = own
        set_topologies(state, self.output)
        record.put_out(self.output.vertices, self.output.objects, self.urb)

    def start_output(self, record: BuiltRecord, into: StageStruct, threads: ThreadStage, loop: Any,
                     context: DispatchContext | None = None) -> None:  # fmt: skip
        """Threads that put out vertices."""
        loop.out.output = ctypes.addressof(self.output)
        threads.fill(loop, record.constants(self.name)[0])
        self.start(record, into, threads.dispatch(self.urb), loop, ctypes.addressof(loop) + StageThreads.header.offset, context)

    def answer(self, walk: WalkedDraw, why: int | None) -> None:
        if why == DrawReason.REFUSED:
            self.report(walk.cs)
            refuse_output(self.output, self.name)
        super().answer(walk, why)

    def report(self, cs: CommandStreamer) -> None:
        if self.kept is None:
            return
        made, pools = self.output, self.urb.pools
        assert pools is not None
        clips = bool(self._state.command("3DSTATE_PIPELINED_POINTERS").clip_enable)
        for text in complaints(self.name, self._unit, made, int(pools[0]["retained"]), clips):
            cs.warn(text)
        made.rewritten = made.incomplete = made.put_out = 0
        pools[0]["retained"] = 0


def complaints(stage: str, unit: Record, made: ThreadOutputStruct, retained: int, clips: bool) -> Iterator[str]:
    """What a stage's threads have done wrong in a draw; `retained`: the most handles that one held, `clips`: CLIP is enabled."""
    entries, threads = int(unit.number_of_urb_entries), int(unit.maximum_number_of_threads) + 1
    most = min(MOST_RETAINED, entries) if threads == 1 else entries // 2
    if retained > most:  # G45 1629-1638
        yield f"a {stage} thread retains {retained} URB handles; {entries} entries and {threads} threads allow {most}"
    if made.rewritten:  # G45 1613
        yield f"a {stage} thread writes to a URB entry after the message that completed it"
    for code in _codes(made.incomplete):  # G45 4883-4903
        yield f"a {stage} thread puts out a primitive of topology {code} with a number of vertices that it cannot have"
    for code in _codes(made.put_out) if stage == "GS" and clips else ():  # G45 1417-1432
        if entries < LEAST_HANDLES.get(code, 0) * threads:
            yield (f"GS_STATE: number_of_urb_entries {entries}; {threads} threads that put out topology {code} to CLIP need "
                   f"{LEAST_HANDLES[code] * threads}")  # fmt: skip
