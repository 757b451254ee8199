"""GS threads of Gen4.5: what a GS kernel makes of the objects of a draw, before CLIP tests them (geometry_threads.c).

    for chunk in front.chunks(cs, state, call):
        chunk = geometry_threads(cs, state, call, chunk)

Reads   3DSTATE_PIPELINED_POINTERS GS_STATE GS_THREAD_PAYLOAD
Writes  a chunk with the vertices and objects that threads put out
"""

from __future__ import annotations

import ctypes

from softgen.command import CommandStreamer
from softgen.errors import Unsupported
from softgen.three_d.assembly import TOPOLOGIES
from softgen.three_d.chunk import Chunk
from softgen.three_d.stage_threads import BATCH, Loop, StageThreads, ThreadStage
from softgen.three_d.state import DrawCall, DrawState
from softgen.three_d.thread_output import ThreadOutput
from softgen.three_d.unit_state import unit_state

ADJACENCY = frozenset({9, 10, 11, 12})  # topologies
STRIPS = frozenset({5, 12, 13})
QUADRILATERAL, LAST_PROVOKES = 4, 2


class GeometryLoop(Loop):
    """struct geometry_threads of geometry_threads.c."""

    _fields_ = [("stage", StageThreads), *((name, ctypes.c_uint64) for name in ("objects", "output", "from", "next", "batch", "threads")),
                *((name, ctypes.c_uint32) for name in ("quadrilaterals", "provoking", "topology", "reserved")),
                ("handle", ctypes.c_uint32 * BATCH), ("primitive", ctypes.c_uint32 * BATCH)]  # fmt: skip


def enabled(state: DrawState) -> bool:
    """Whether a draw has GS threads of this kind."""
    return state.generation.unit_state and bool(state.command("3DSTATE_PIPELINED_POINTERS").gs_enable)


def geometry_threads(cs: CommandStreamer, state: DrawState, call: DrawCall, chunk: Chunk) -> Chunk:
    """The chunk as GS threads leave it; the same one if there are none."""
    if not enabled(state):
        return chunk
    topology, stage = TOPOLOGIES[call.topology], ThreadStage(state, "GS", 4)
    if call.topology in ADJACENCY and not stage.unit.discard_adjacency:
        raise Unsupported(f"gen {state.gen:g}: GS threads of topology {call.topology}, with adjacent vertices")
    if call.topology in STRIPS and stage.unit.reorder_enable:
        raise Unsupported(f"gen {state.gen:g}: GS_STATE reorder_enable 1 with triangle strips")
    quadrilaterals = len(topology.back) == QUADRILATERAL
    threads = int(chunk.objects.count) // (2 if quadrilaterals else 1)
    output = ThreadOutput(state, chunk, stage.entry_bytes, threads)
    loop = GeometryLoop(objects=ctypes.addressof(chunk.objects), output=ctypes.addressof(output.struct), quadrilaterals=quadrilaterals,
                        topology=call.topology if topology.becomes != call.topology and call.topology not in ADJACENCY else 0)  # fmt: skip
    if quadrilaterals and unit_state(state, "SF").triangle_strip_list_provoking_vertex_select == LAST_PROVOKES:
        loop.provoking = topology.quad_last
    stage.fill(loop, output.struct.vertices.entries, output.struct.vertices.stride)
    stage.run(cs, "run_geometry_threads", [loop], output.urb)
    return output.chunk("GS")
