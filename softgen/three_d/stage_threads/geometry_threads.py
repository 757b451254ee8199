"""GS threads of Gen4.5: what a GS kernel makes of the objects of a draw, before CLIP tests them (geometry_threads.c).

    stage = GeometryThreads(cs, state, call)
    for chunk in front.chunks(cs, state, call):
        chunk = stage.run(chunk)

Reads   3DSTATE_PIPELINED_POINTERS GS_STATE GS_THREAD_PAYLOAD
Writes  a chunk with the vertices and objects that threads put out
"""

from __future__ import annotations

import ctypes

from softgen.bits.record import Record
from softgen.command import CommandStreamer
from softgen.errors import DecodeError
from softgen.three_d.stage_threads.stage_threads import BATCH, Loop, StageThreads, ThreadStage
from softgen.three_d.stage_threads.thread_output import ThreadOutput
from softgen.three_d.state.state import DrawCall, DrawState
from softgen.three_d.state.unit_state import unit_state
from softgen.three_d.vertices.assembly import ADJACENT, TOPOLOGIES, whole_objects
from softgen.three_d.vertices.chunk import Chunk

NO_INPUT = (17, 19)  # topologies: points and lines that are back-facing


class GeometryLoop(Loop):
    """struct geometry_threads of geometry_threads.c."""

    _fields_ = [("stage", StageThreads), *((name, ctypes.c_uint64) for name in ("objects", "output", "from", "next", "batch", "threads")),
                *((name, ctypes.c_uint32) for name in ("whole", "reorder", "topology", "reserved")),
                ("handle", ctypes.c_uint32 * BATCH), ("primitive", ctypes.c_uint32 * BATCH)]  # fmt: skip


def enabled(state: DrawState) -> bool:
    """Whether a draw has GS threads of this kind."""
    return state.generation.unit_state and bool(state.command("3DSTATE_PIPELINED_POINTERS").gs_enable)


def counts_objects(state: DrawState) -> bool:
    """Whether GS_PRIMITIVES_COUNT counts the objects that leave the stage (G45 4813)."""
    return bool(state.command("3DSTATE_PIPELINED_POINTERS").clip_enable and unit_state(state, "CLIP").gs_output_object_statistics_enable)


class GeometryThreads:
    """The GS stage of a draw, and what it and CLIP behind it count."""

    def __init__(self, cs: CommandStreamer, state: DrawState, call: DrawCall) -> None:
        self.cs, self.state, self.call, self.enabled = cs, state, call, enabled(state)
        clip = unit_state(state, "CLIP") if state.command("3DSTATE_PIPELINED_POINTERS").clip_enable else None
        self._counts_objects = counts_objects(state)
        kernels_count = state.generation.clip_invocations == "messages"  # G45 4809
        self._counts_clipping = kernels_count and clip is not None and bool(clip.clipper_statistics_enable)
        self.statistics = dict.fromkeys(("GS_INVOCATION_COUNT", "GS_PRIMITIVES_COUNT", "CL_INVOCATION_COUNT"), 0)
        if self.enabled:
            self._check(unit_state(state, "GS"), clip)
        if self.enabled and call.topology in NO_INPUT:
            raise DecodeError(f"3DPRIMITIVE: primitive_topology_type {call.topology}, which GS threads cannot have (G45 3287, 3300)")

    def _check(self, unit: Record, clip: Record | None) -> None:
        """Warn of what software must not do (G45 3103-3106, 3219)."""
        if not unit.single_program_flow:
            self.state.warn("GS_STATE: single_program_flow must be 1")
        if unit.statistics_enable and (clip is None or not clip.gs_output_object_statistics_enable):
            self.state.warn("GS_STATE: statistics_enable 1 needs CLIP enabled, with gs_output_object_statistics_enable 1")

    def run(self, chunk: Chunk) -> Chunk:
        """The chunk as it leaves the stage; the same one if there are no threads."""
        made = self._run_threads(chunk) if self.enabled else chunk
        if self._counts_objects:
            self.statistics["GS_PRIMITIVES_COUNT"] += int(made.objects.count)
        return made

    def _run_threads(self, chunk: Chunk) -> Chunk:
        state, call = self.state, self.call
        whole = whole_objects(state).get(call.topology)
        topology, vertices = TOPOLOGIES[call.topology], len(whole.back) if whole is not None else 0
        stage = ThreadStage(state, "GS", vertices or 3)
        output = ThreadOutput(state, chunk, stage.entry_bytes, int(chunk.objects.count) // (2 if vertices else 1))
        changes = whole is not None or topology.becomes != call.topology and call.topology not in ADJACENT
        loop = GeometryLoop(objects=ctypes.addressof(chunk.objects), output=ctypes.addressof(output.struct), whole=vertices,
                            reorder=stage.unit.reorder_enable, topology=call.topology if changes else 0)  # fmt: skip
        stage.fill(loop, output.struct.vertices.entries, output.struct.vertices.stride)
        started = stage.run(self.cs, "run_geometry_threads", [loop], output.urb)
        self.statistics["GS_INVOCATION_COUNT"] += started if stage.unit.statistics_enable else 0
        self.statistics["CL_INVOCATION_COUNT"] += output.invocations if self._counts_clipping else 0
        output.check("GS", stage.unit)
        return output.chunk("GS")
