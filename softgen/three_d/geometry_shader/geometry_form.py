"""What the state of a geometry shader means: how threads get objects, and where their entries have vertices (struct geometry_form).

Reads   3DSTATE_GS 3DSTATE_URB_GS 3DSTATE_TE 3DSTATE_DS GS_THREAD_PAYLOAD GS_SIMD8_PAYLOAD
Writes  GeometryForm

    form = geometry_form(state, topology, constant_bytes)
"""

from __future__ import annotations

from softgen.bits import catalogue
from softgen.bits.describe import value_name
from softgen.bits.record import Record
from softgen.bits.units import GRF_BYTES
from softgen.errors import DecodeError
from softgen.shared_functions.urb.memory import ROW
from softgen.threads.payload import check_length
from softgen.three_d.geometry_shader.geometry_shader_h import GeometryCount, GeometryForm, GeometryOrder
from softgen.three_d.shader_stage import CHANNELS, place, thread_mask
from softgen.three_d.stage_threads.thread_output import PUT_OUT, set_topology
from softgen.three_d.state.state import DrawState
from softgen.three_d.vertices.assembly import TOPOLOGIES, list_vertices

SLOT, UNIT = 16, 32  # bytes of a vertex element; of read lengths and offsets, and of the control data header
MOST_DUAL, MOST_SIMD8 = 16, 6  # vertices of an object in these modes (BDW 5889-5926)
COUNT_BYTES = 32  # in front of entries whose threads count their vertices there
SID = 1  # control_data_format
SINGLE, DUAL_INSTANCE, DUAL_OBJECT, WIDE = "single", "dual_instance", "dual_object", "simd8"
LANES = {SINGLE: 1, DUAL_INSTANCE: 2, DUAL_OBJECT: 2, WIDE: 8}
ORDERS = {"enable": (GeometryOrder.AS_DRAWN, GeometryOrder.LEADING), "mode": (GeometryOrder.LEADING, GeometryOrder.TRAILING)}
TESSELLATED = {0: 1, 1: 2, 2: 3, 3: 3}  # output_topology of 3DSTATE_TE -> vertices of an object
POINTLIST = 1


def object_vertices(state: DrawState, topology: int) -> int:
    """Vertices of the objects that a geometry shader gets."""
    domain = state.get("3DSTATE_DS")
    if domain is not None and domain.enable:
        return TESSELLATED[state.command("3DSTATE_TE").output_topology]
    found = TOPOLOGIES.get(topology)
    return list_vertices(state, topology) or (min(len(found.back), 3) if found is not None else 0)


def dispatch_mode(state: DrawState, unit: Record) -> str:
    return str(value_name(catalogue.layout("3DSTATE_GS", state.gen), unit, "dispatch_mode"))


def payload_page(mode: str) -> str:
    return "GS_SIMD8_PAYLOAD" if mode == WIDE else "GS_THREAD_PAYLOAD"


def geometry_form(state: DrawState, topology: int, constant_bytes: int) -> GeometryForm:
    """The form of a draw's threads and entries. Refuses payloads that do not fit, and state that says nothing."""
    unit = state.command("3DSTATE_GS")
    mode, vertices, instances = dispatch_mode(state, unit), object_vertices(state, topology), int(unit.instance_control) + 1
    _check_mode(mode, vertices, instances)
    page, lanes = payload_page(mode), LANES[mode]
    form = GeometryForm(lanes=lanes, instances=instances, one_object=mode in (SINGLE, DUAL_INSTANCE) or instances > 1,
                        lane_channels=1 if mode == WIDE else CHANNELS // 2, vertices=vertices, transposed=mode == WIDE,
                        thread_mask=thread_mask(state.gen, page))  # fmt: skip
    form.order = ORDERS[state.generation.strip_reorder][unit.reorder_mode]
    form.topology_bits = catalogue.layout(page, state.gen).pack(hint=int(unit.hint), primitive_topology_type=topology & 63)[2]
    _place_payload(form, state, unit, page, constant_bytes)
    _place_output(form, state, unit)
    form.dropped = vertices != getattr(unit, "expected_vertex_count", vertices)  # BDW 5677-5684
    if unit.statistics_enable:
        form.invocations = int(unit.invocations_increment_value) + 1
    return form


def _check_mode(mode: str, vertices: int, instances: int) -> None:
    if mode not in LANES:
        raise DecodeError(f"3DSTATE_GS: dispatch_mode {mode} is none")
    if mode == DUAL_OBJECT and (vertices > MOST_DUAL or instances > 1):
        raise DecodeError(f"3DSTATE_GS: dispatch_mode dual_object of {instances} instances, objects of {vertices} vertices; it is for 1 "
                          f"instance, and for {MOST_DUAL} vertices at most (BDW 5906-5913)")  # fmt: skip
    if mode == WIDE and vertices > MOST_SIMD8:
        raise DecodeError(f"3DSTATE_GS: dispatch_mode simd8, objects of {vertices} vertices; it is for {MOST_SIMD8} at most (BDW 5914)")


def _place_payload(form: GeometryForm, state: DrawState, unit: Record, page: str, constant_bytes: int) -> None:
    """Where payloads have what (BDW 5761-5818; facts about Gen7 are those of Mesa's brw_vec4_gs_visitor.cpp)."""
    layout = catalogue.layout(page, state.gen)
    form.handle_offset = place(state.gen, page, "urb_return_handle_0")
    form.instance_shift = layout.field("instance_id_0").low % 32
    after = GRF_BYTES if not form.transposed else 2 * GRF_BYTES
    if unit.include_primitive_id:
        form.primitive_offset = after
        form.primitive_stride = 4 if form.transposed else GRF_BYTES // 2
        after += GRF_BYTES
    if unit.include_vertex_handles:
        form.input_offset = after
        if form.one_object:
            form.input_vertex = 4
        else:
            form.input_vertex, form.input_lane = (GRF_BYTES, 4) if form.transposed else (8, 4)
    form.constant_offset = int(unit.dispatch_grf_start_register_for_urb_data) * GRF_BYTES
    form.constant_bytes, form.push_offset = constant_bytes, form.constant_offset + constant_bytes
    form.push_from, form.push_bytes = UNIT * int(unit.vertex_urb_entry_read_offset), UNIT * int(unit.vertex_urb_entry_read_length)
    wide = CHANNELS if form.transposed else 1 if form.one_object else 2
    handles = form.input_offset + form.input_vertex * form.vertices
    form.registers_end = max(form.push_offset + form.vertices * form.push_bytes * wide, handles, after)
    check_length(-(-form.registers_end // GRF_BYTES), "GS")


def _place_output(form: GeometryForm, state: DrawState, unit: Record) -> None:
    """Where entries have the vertex count, the control data header and vertices."""
    form.entry_bytes = (int(state.command("3DSTATE_URB_GS").urb_entry_allocation_size) + 1) * ROW
    if state.generation.gs_vertex_count == "message":
        form.counted = GeometryCount.IN_MESSAGE
    elif unit.static_output:
        form.counted, form.count = GeometryCount.STATIC, unit.static_output_vertex_count
    else:
        form.counted, form.control_offset = GeometryCount.IN_ENTRY, COUNT_BYTES
    form.control_bytes, form.stream = UNIT * int(unit.control_data_header_size), unit.default_stream_id
    form.has_streams = bool(form.control_bytes) and unit.control_data_format == SID
    form.vertex_offset = form.control_offset + form.control_bytes
    form.vertex_bytes = SLOT * (int(unit.output_vertex_size) + 1)
    form.most_vertices = max(form.entry_bytes - form.vertex_offset, 0) // form.vertex_bytes
    if form.control_bytes:
        form.most_vertices = min(form.most_vertices, form.control_bytes * 8 >> form.has_streams)
    topology = int(unit.output_topology)
    if topology not in PUT_OUT:
        raise DecodeError(f"3DSTATE_GS: output_topology {topology}, which no geometry shader may put out")
    if form.has_streams and topology != POINTLIST:
        state.warn(f"3DSTATE_GS: control_data_format sid with output_topology {topology}; it must be a list of points (BDW 6020-6026)")
    set_topology(state, topology, form.topology)
