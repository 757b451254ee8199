"""GS threads of Gen4.5: what a GS kernel makes of the objects of a draw, before CLIP tests them (geometry_threads.c).

Reads   3DSTATE_PIPELINED_POINTERS GS_STATE GS_THREAD_PAYLOAD
Writes  a chunk with the vertices and objects that threads put out
"""

from __future__ import annotations

import ctypes

from softgen.bits.record import Record
from softgen.errors import DecodeError
from softgen.three_d.draw.draw_structures import StageStruct
from softgen.three_d.draw.stage import BuiltRecord
from softgen.three_d.stage_threads.stage_threads import BATCH, Loop, OutputThreads, StageThreads, ThreadStage
from softgen.three_d.stage_threads.thread_output import OutputStage
from softgen.three_d.state.state import DrawState
from softgen.three_d.state.unit_state import unit_state
from softgen.three_d.vertices.assembly import ADJACENT, TOPOLOGIES, whole_objects

NO_INPUT = (17, 19)  # topologies: points and lines that are back-facing


class GeometryLoop(Loop):
    """struct geometry_threads of geometry_threads.c."""

    _fields_ = [("stage", StageThreads), ("out", OutputThreads),
                *((name, ctypes.c_uint32) for name in ("whole", "reorder", "topology", "counts_threads", "counts_clipping", "reserved")),
                ("primitive", ctypes.c_uint32 * BATCH)]  # fmt: skip


def enabled(state: DrawState) -> bool:
    """Whether a draw has GS threads of this kind."""
    return bool(state.command("3DSTATE_PIPELINED_POINTERS").gs_enable)


class GeometryThreads(OutputStage):
    """A thread for each object; what they put out takes the place of all."""

    name, run, function = "GS", "stage_geometry", "run_geometry_threads"

    def build(self, record: BuiltRecord, into: StageStruct) -> bool:
        state, call = record.state, record.call
        if not enabled(state):
            return False
        record.not_kept("GS threads")
        if call.topology in NO_INPUT:
            raise DecodeError(f"3DPRIMITIVE: primitive_topology_type {call.topology}, which GS threads cannot have (G45 3287, 3300)")
        clip = unit_state(state, "CLIP") if state.command("3DSTATE_PIPELINED_POINTERS").clip_enable else None
        _check(state, unit_state(state, "GS"), clip)
        whole = whole_objects(state).get(call.topology)
        vertices, becomes = len(whole.back) if whole is not None else 0, TOPOLOGIES[call.topology].becomes
        changes = whole is not None or becomes != call.topology and call.topology not in ADJACENT
        threads: ThreadStage = record.pipeline.thread_stages.get(state, "GS", vertices or 3)
        loop = GeometryLoop(whole=vertices, reorder=threads.unit.reorder_enable, topology=call.topology if changes else 0,
                            counts_threads=threads.unit.statistics_enable)  # fmt: skip
        if state.generation.clip_invocations == "messages" and clip is not None:  # G45 4809
            loop.counts_clipping = clip.clipper_statistics_enable
        self.put_out(record, record.state, threads, in_place=False)
        self.start_output(record, into, threads, loop)
        return True


def _check(state: DrawState, unit: Record, clip: Record | None) -> None:
    """Warn of what software must not do (G45 3103-3106, 3219)."""
    if not unit.single_program_flow:
        state.warn("GS_STATE: single_program_flow must be 1")
    if unit.statistics_enable and (clip is None or not clip.gs_output_object_statistics_enable):
        state.warn("GS_STATE: statistics_enable 1 needs CLIP enabled, with gs_output_object_statistics_enable 1")
