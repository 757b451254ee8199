"""Hull shader: from its state to the threads that make an entry of each patch; hull_shader.c starts them.

Reads   3DSTATE_HS 3DSTATE_URB_HS HS_THREAD_PAYLOAD
Writes  patch URB entries, behind the vertices of the chunk that they are made of

The manuals leave open how vertices that are pushed lie in registers, and eight patches' payloads: see the comments here.
"""

from __future__ import annotations

import ctypes

from softgen.bits.record import Record
from softgen.bits.units import GRF_BYTES
from softgen.errors import DecodeError, Unsupported
from softgen.shared_functions.urb.memory import ROW
from softgen.three_d.draw.draw_structures import StageStruct
from softgen.three_d.draw.stage import BuiltRecord, ThreadedStage
from softgen.three_d.state.state import DrawState
from softgen.three_d.structures import VertexArray
from softgen.three_d.tessellation.patch_threads import PatchThreads, byte_of
from softgen.three_d.tessellation.tessellation import tessellates
from softgen.three_d.tessellation.tessellation_h import POINT_GROUP, HullInput, HullShader, PatchArray
from softgen.three_d.vertices.assembly import PATCHES
from softgen.three_d.vertices.chunk import ANNEX, OBJECTS, aligned
from softgen.three_d.vertices.vertex_fetch import optional

DUAL_PATCH, EIGHT_PATCH = 1, 2  # dispatch_mode


class HullShaderPlan:
    """What the state of the hull shader means, without the values of constants."""

    def __init__(self, state: DrawState) -> None:
        self.threads = threads = PatchThreads(state, "HS", "HS_THREAD_PAYLOAD")
        self.unit = unit = threads.unit
        mode = optional(unit, "dispatch_mode")
        if mode == DUAL_PATCH:
            raise Unsupported("3DSTATE_HS: dispatch_mode dual_patch, of whose payload nothing is public")
        self.lanes = POINT_GROUP if mode == EIGHT_PATCH else 1
        self.instances = int(unit.instance_count) + 1
        self.read_bytes = int(unit.vertex_urb_entry_read_length) * GRF_BYTES
        if not unit.include_vertex_handles and not self.read_bytes:  # BDW 6512-6518
            raise DecodeError("3DSTATE_HS: include_vertex_handles 0 and vertex_urb_entry_read_length 0; threads get nothing of their patch")
        self.handle_offset, self.primitive_offset = self._places(unit)

    def _places(self, unit: Record) -> tuple[int, int]:
        """Where payloads have vertex handles and PrimitiveIDs, as far as they are in registers of their own: of eight patches, behind the
        patches' handles (public: Mesa brw_fs_thread_payload.cpp)."""
        handles, primitives = byte_of(self.threads.page, "vertex"), 0
        if self.lanes > 1:
            handles += GRF_BYTES
            if optional(unit, "include_primitive_id"):
                primitives, handles = handles, handles + GRF_BYTES
        return handles if unit.include_vertex_handles else 0, primitives

    def fixed_bytes(self, corners: int) -> int:
        """The part of a payload before constants."""
        if not self.handle_offset:
            return GRF_BYTES
        return self.handle_offset + corners * (GRF_BYTES if self.lanes > 1 else 4)

    def loop(self, constants: tuple[int, int], corners: int) -> HullShader:
        page = self.threads.page
        instance, barrier = page.field("instance_number"), page.field("barrier_id")
        threads = max(self.threads.most_threads, self.instances)  # those of a group run at the same time
        return HullShader(
            common=self.threads.header(constants), corners=corners, instances=self.instances, lanes=self.lanes,
            groups=1 if self.instances > 1 else threads, instance_shift=instance.low % 32, barrier_shift=barrier.low % 32,
            barriers=1 << barrier.width, handle_offset=self.handle_offset, primitive_offset=self.primitive_offset,
            read_offset=int(self.unit.vertex_urb_entry_read_offset) * GRF_BYTES, read_bytes=self.read_bytes,
        )  # fmt: skip


class HullStage(ThreadedStage):
    """Threads that make the entries of patches."""

    name, run, function = "HS", "stage_hull", "run_hull_shader"

    def build(self, record: BuiltRecord, into: StageStruct) -> bool:
        state, corners = record.state, record.call.topology - PATCHES + 1
        if not tessellates(state):
            return False
        plan: HullShaderPlan = record.pipeline.tessellation.hull.get(state)
        if corners < 1:
            state.warn(f"3DPRIMITIVE: HS is enabled, and primitive_topology_type {record.call.topology} has no patches: nothing is drawn")
            corners = 1
        loop, urb = plan.loop(record.constants("HS"), corners), record.last_urb
        vertices = VertexArray.from_address(record.last_chunk.vertices)
        first = int(vertices.entries) - urb.address
        annex = first + vertices.capacity * vertices.stride
        self._primitives, self._next = aligned(4 * OBJECTS), ctypes.c_uint64()
        entries = plan.threads.entry_bytes
        record.patches = self._patches = PatchArray(urb.address + annex, entries, self._primitives.ctypes.data, 0,
                                                    min(ANNEX // entries, OBJECTS))  # fmt: skip
        self._plan = HullInput(counts=bool(plan.unit.statistics_enable))
        loop.chunk, loop.patches = ctypes.addressof(self._plan) + HullInput.chunk.offset, ctypes.addressof(self._patches)
        loop.next, loop.vertex_row, loop.patch_row = ctypes.addressof(self._next), first // ROW, annex // ROW
        into.plan = ctypes.addressof(self._plan)
        at = ctypes.addressof(loop) + HullShader.common.offset
        threads = loop.groups * loop.instances
        dispatch = plan.threads.dispatch(urb, threads, plan.fixed_bytes(corners), loop.common.data_offset + corners * loop.read_bytes)
        self.start(record, into, dispatch, loop, at + type(loop.common).header.offset)
        if self.kept is not None and self.kept.program.waits:  # a barrier is of one group
            loop.groups = 1
        return True
