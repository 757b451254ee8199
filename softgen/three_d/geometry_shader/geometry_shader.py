"""Geometry shader since Gen7: threads for the objects of a chunk, and a chunk of what they put out (geometry_shader.c).

Reads   3DSTATE_GS 3DSTATE_URB_GS 3DSTATE_CONSTANT_GS 3DSTATE_BINDING_TABLE_POINTERS_GS 3DSTATE_SAMPLER_STATE_POINTERS_GS
Writes  a chunk with vertices and objects; GS_INVOCATION_COUNT GS_PRIMITIVES_COUNT
"""

from __future__ import annotations

import ctypes

from softgen.bits.units import GRF_BYTES
from softgen.command import CommandStreamer
from softgen.shared_functions.texture_tables import texture_tables
from softgen.threads.dispatch import UNITS, ThreadDispatch
from softgen.threads.payload import LoopPayload, WrittenMasks
from softgen.three_d.draw.draw_structures import StageStruct
from softgen.three_d.draw.stage import BuiltRecord, ThreadedStage
from softgen.three_d.geometry_shader.geometry_form import SLOT, dispatch_mode, geometry_form, payload_page
from softgen.three_d.geometry_shader.geometry_shader_h import GEOMETRY_BATCH, GeometryCount, GeometryShader, GeometryStage
from softgen.three_d.shader_stage import CHANNELS, payload_header, stage_fields, stage_tables
from softgen.three_d.vertices.chunk import ANNEX

HEADER_DWORDS = GRF_BYTES // 4  # r0


class GeometryShaderStage(ThreadedStage):
    """Threads for each object, or for its instances; what they put out takes the place of all."""

    name, run, function = "GS", "stage_geometry_shader", "run_geometry_shader"
    reports = True

    def build(self, record: BuiltRecord, into: StageStruct) -> bool:
        state = record.state
        unit = state.get("3DSTATE_GS")
        if unit is None or not unit.enable:
            return False
        pairs = 2 if state.generation.gs_threads else 1  # that the limit of threads counts (BDW 5819-5840)
        fields = {**stage_fields(state.gen, unit, "GS", pairs), **stage_tables(state, self.name)}
        constants, size = record.constants(self.name)
        form = self._form = geometry_form(state, record.call.topology, size)
        scratch = fields["scratch"]
        form.scratch_step = scratch.size if scratch is not None else 0
        batch = max(min(GEOMETRY_BATCH, scratch.threads), 1) if scratch is not None else GEOMETRY_BATCH
        urb = record.last_urb
        if form.counted == GeometryCount.IN_MESSAGE:
            urb = record.pipeline.front.with_records(urb)
        self._urb = urb
        header = payload_header(state.gen, payload_page(dispatch_mode(state, unit)), fields)[:HEADER_DWORDS]
        loop = GeometryShader(form=ctypes.addressof(form), constants=constants, urb=urb.address, room=urb.address + urb.size - ANNEX,
                              slots=batch, header=(ctypes.c_uint32 * HEADER_DWORDS)(*header))  # fmt: skip
        self._plan_stage(record, into, loop)
        registers = -(-form.registers_end // GRF_BYTES)
        dispatch = ThreadDispatch(simd=CHANNELS, threads=batch, groups=0, payload=LoopPayload(registers), masks=WrittenMasks(),
                                  units=(*UNITS, "urb"), unit_states=(("urb", urb), *texture_tables(state.latched)),
                                  **fields)  # fmt: skip
        self.start(record, into, dispatch, loop, ctypes.addressof(loop) + GeometryShader.header.offset)
        return True

    def _plan_stage(self, record: BuiltRecord, into: StageStruct, loop: GeometryShader) -> None:
        """What the stage puts out."""
        form, urb = self._form, self._urb
        chunk = self._chunk = record.pipeline.front.own_chunk(max(form.vertex_bytes, 2 * SLOT), self.name)
        entries = urb.entries.ctypes.data if urb.entries is not None else 0
        plan = self._plan = GeometryStage(loop=ctypes.addressof(loop), form=ctypes.addressof(form), entries=entries,
                                          vertices=ctypes.addressof(chunk.vertices), objects=ctypes.addressof(chunk.objects),
                                          room_bytes=ANNEX)  # fmt: skip
        into.plan = ctypes.addressof(plan)
        record.put_out(chunk.vertices, chunk.objects, chunk.urb)

    def report(self, cs: CommandStreamer) -> None:
        if self._plan.clamped:
            cs.warn(f"a GS thread puts out more than the {self._form.most_vertices} vertices that its entry has room for")
            self._plan.clamped = 0
