"""Domain shader: from its state to the threads that make vertices of points; domain_shader.c starts them.

Reads   3DSTATE_DS 3DSTATE_URB_DS DS_THREAD_PAYLOAD DS_SIMD8_PAYLOAD
Writes  vertex URB entries of the chunk that TE has filled
"""

from __future__ import annotations

import ctypes

from softgen.bits.units import DWORD_MASK, GRF_BYTES
from softgen.shared_functions.urb.memory import ROW
from softgen.threads.native.scheduler_h import UndefinedDwords
from softgen.three_d.draw.draw_structures import StageStruct
from softgen.three_d.draw.stage import BuiltRecord, ThreadedStage
from softgen.three_d.shader_stage import lane_dwords
from softgen.three_d.state.state import DrawState
from softgen.three_d.tessellation.patch_threads import PatchThreads, byte_of
from softgen.three_d.tessellation.tessellation_h import DomainShader
from softgen.three_d.vertices.vertex_fetch import optional

SECOND = 0xF0  # channels of the second point of a SIMD4x2 thread
SIMD4X2 = 0  # dispatch_mode; both others run one patch's points, which the mode for one or two of them leaves open


class DomainShaderPlan:
    """What the state of the domain shader means, without the values of constants."""

    def __init__(self, state: DrawState) -> None:
        self.simd8 = optional(state.command("3DSTATE_DS"), "dispatch_mode") != SIMD4X2
        self.lanes = 8 if self.simd8 else 2
        self.threads = PatchThreads(state, "DS", "DS_SIMD8_PAYLOAD" if self.simd8 else "DS_THREAD_PAYLOAD")
        self.unit = unit = self.threads.unit
        self.points = 1 if not self.simd8 and optional(unit, "single_domain_point_dispatch") else self.lanes  # of a thread
        self.read_bytes = int(unit.patch_urb_entry_read_length) * GRF_BYTES

    def _places(self) -> tuple[int, int, int, int]:
        names = ("point_u", "point_v", "point_w", "vertex") if self.simd8 else ("u_0", "v_0", "w_0", "urb_return_handle_0")
        u, v, w, handles = (byte_of(self.threads.page, name) for name in names)
        return u, v, w, handles

    def undefined(self) -> list[UndefinedDwords]:
        """What threads have of points that they lack."""
        *coordinates, handles = self._places()
        found = lane_dwords(handles, self.lanes)
        if self.simd8:
            return [*found, *(dwords for at in coordinates for dwords in lane_dwords(at, self.lanes))]
        second = UndefinedDwords(min(coordinates) + GRF_BYTES // 2, 4 * len(coordinates), SECOND, DWORD_MASK)
        return [*found, second]  # the fourth dwords of both halves are of the patch

    def loop(self, constants: tuple[int, int]) -> DomainShader:
        u, v, w, handles = self._places()
        return DomainShader(
            common=self.threads.header(constants), counts=bool(self.unit.statistics_enable), lanes=self.lanes, simd8=self.simd8,
            compute_w=self.unit.compute_w_coordinate_enable, patch_offset=byte_of(self.threads.page, "patch_urb_handle"),
            primitive_offset=byte_of(self.threads.page, "primitive_id"), u_offset=u, v_offset=v, w_offset=w, handle_offset=handles,
            read_offset=int(self.unit.patch_urb_entry_read_offset) * GRF_BYTES, read_bytes=self.read_bytes,
        )  # fmt: skip


class DomainStage(ThreadedStage):
    """Threads that make the vertices of points."""

    name, run, function = "DS", "stage_domain", "run_domain_shader"

    def build(self, record: BuiltRecord, into: StageStruct) -> bool:
        made = record.points
        if made is None:
            return False
        plan: DomainShaderPlan = record.pipeline.tessellation.domain.get(record.state)
        loop, urb, self._next = plan.loop(record.constants("DS")), made.urb, ctypes.c_uint64()
        loop.work, loop.next = ctypes.addressof(made.points), ctypes.addressof(self._next)
        loop.entries, loop.stride = made.vertices.entries, made.vertices.stride
        loop.vertex_row = (loop.entries - urb.address) // ROW
        loop.patches, loop.patch_stride = urb.address, record.patches.stride
        at = ctypes.addressof(loop) + DomainShader.common.offset
        dispatch = plan.threads.dispatch(urb, plan.threads.most_threads, plan.threads.page.dwords * 4,
                                         loop.common.data_offset + loop.read_bytes)  # fmt: skip
        self.start(record, into, dispatch, loop, at + type(loop.common).header.offset,
                   undefined=lambda: plan.undefined())  # fmt: skip
        return True
