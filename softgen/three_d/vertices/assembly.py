"""Primitive assembly: from a draw's index list and topology to a plan for assembly.c.

Reads   3DSTATE_INDEX_BUFFER 3DSTATE_VF 3DSTATE_VS; 3DSTATE_SF or SF_STATE for provoking vertices
Writes  objects and the IDs of the chunk's vertices

    plan = assembly_plan(state, call)      # for struct assembly; AssembleStage is the stage of a draw
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

from softgen.bits.record import Record
from softgen.errors import DecodeError, Unsupported
from softgen.three_d import three_d_h
from softgen.three_d.draw.draw_structures import StageStruct
from softgen.three_d.draw.stage import BuiltRecord, Stage
from softgen.three_d.state.state import DrawCall, DrawState
from softgen.three_d.state.unit_state import unit_state
from softgen.three_d.structures import ChunkStruct, ObjectArray
from softgen.three_d.vertices.chunk import VERTICES, aligned
from softgen.three_d.vertices.vertex_fetch import PRIMITIVE_ID, VERTEX_ID

CACHE_LINES = 4096
FIRST = 255  # in Topology.back
RECTANGLE, BACK_FACING, LAST = three_d_h.OBJECT_RECTANGLE, three_d_h.OBJECT_BACK_FACING, three_d_h.OBJECT_LAST
PROVOKING_SHIFT, EDGES_SHIFT, TOPOLOGY_SHIFT = (
    three_d_h.OBJECT_PROVOKING_SHIFT, three_d_h.OBJECT_EDGES_SHIFT, three_d_h.OBJECT_TOPOLOGY_SHIFT)  # fmt: skip
ALL_EDGES = 7
PATCHES = three_d_h.LIST_VERTICES  # topologies from here on are patch lists: of 1 vertex, of 2, and so on
LEADING = 0  # reorder_mode
INDEX_BYTES = (1, 2, 4)  # index_format
CUT_TOPOLOGIES = (1, 2, 3, 4, 5, 9, 10, 11, 12)  # where cuts are enabled with the index buffer (G45 2031-2057)
SELECTS = {2: "line_strip_list_provoking_vertex_select", 3: "triangle_strip_list_provoking_vertex_select"}  # by vertices of an object
FAN_SELECT = "triangle_fan_provoking_vertex_select"


@dataclass(frozen=True)
class Topology:
    """How a topology's vertices make objects (G45 765-860, 4986-5154)."""

    minimum: int  # vertices of the first object
    step: int  # further vertices of each one after it
    back: tuple[int, ...]  # an object's vertices: how many vertices ago each came
    becomes: int  # the topology as later stages see it
    flags: int = 0
    select: str = ""  # the field that selects the provoking vertex; default: by the number of vertices
    inverts: int = 0  # 1: odd objects are inverted, 2: even ones
    closes: bool = False
    polygon: bool = False
    strip: bool = False  # of lines
    continued: bool = False
    quad_last: int = 0  # the provoking corner of a quadrilateral where the last vertex provokes


def _line_strip(becomes: int, flags: int = 0, continued: bool = False) -> Topology:
    return Topology(2, 1, (1, 0), becomes, flags, strip=True, continued=continued)


TOPOLOGIES = {
    1: Topology(1, 1, (0,), 1),
    2: Topology(2, 2, (1, 0), 2, LAST),
    3: _line_strip(3),
    4: Topology(3, 3, (2, 1, 0), 4),
    5: Topology(3, 1, (2, 1, 0), 5, inverts=1),
    6: Topology(3, 1, (FIRST, 1, 0), 6, select=FAN_SELECT),
    7: Topology(4, 4, (3, 2, 1, 0), 14, quad_last=3),  # quadrilaterals go on as polygons
    8: Topology(4, 2, (3, 2, 0, 1), 14, quad_last=2),
    9: Topology(4, 4, (2, 1), 2, LAST),  # adjacent vertices are for the GS alone
    10: Topology(4, 1, (2, 1), 3, strip=True),
    11: Topology(6, 6, (5, 3, 1), 4),
    12: Topology(6, 2, (5, 3, 1), 5, inverts=1),
    13: Topology(3, 1, (2, 1, 0), 13, inverts=2),
    14: Topology(3, 1, (FIRST, 1, 0), 14, polygon=True),
    15: Topology(3, 3, (2, 1, 0), 15, RECTANGLE),
    16: Topology(2, 1, (1, 0), 3, strip=True, closes=True),
    17: Topology(1, 1, (0,), 17, BACK_FACING),
    18: _line_strip(18, continued=True),
    19: _line_strip(19, BACK_FACING),
    20: _line_strip(20, BACK_FACING, continued=True),
    22: Topology(3, 1, (FIRST, 1, 0), 22, select=FAN_SELECT),
}


# PrimitiveIDs of vertices: how many of a primitive's first, and how many after each advance, do not advance them (G45 2673-2693, where the
# row of rectangles is garbled; they are lists of three, too).
PRIMITIVE_IDS = {1: (1, 0), 2: (1, 1), 3: (2, 0), 4: (1, 2), 5: (3, 0), 6: (3, 0), 7: (1, 3), 8: (3, 1), 9: (1, 3), 10: (3, 0), 11: (1, 5),
                 12: (5, 1), 13: (3, 0), 14: (3, 0), 15: (1, 2), 16: (2, 0), 17: (1, 0), 18: (2, 0), 19: (2, 0), 20: (2, 0),
                 22: (3, 0)}  # fmt: skip

# Objects as GS threads of Gen4.5 get them, where that is not as later stages do (G45 3281-3341).
TRISTRIP_ADJ = 12
NEED_GS = (7, 8, 16)  # quadrilaterals and loops
WHOLE = {7: Topology(4, 4, (3, 2, 1, 0), 7), 8: Topology(4, 2, (3, 2, 0, 1), 8)}
SIX = (5, 4, 3, 2, 1, 0)  # a triangle and its adjacent vertices; in a strip, only how many: which they are changes between triangles
ADJACENT = {9: Topology(4, 4, (3, 2, 1, 0), 9), 10: Topology(4, 1, (3, 2, 1, 0), 10), 11: Topology(6, 6, SIX, 11),
            TRISTRIP_ADJ: Topology(6, 2, SIX, TRISTRIP_ADJ)}  # fmt: skip


def whole_objects(state: DrawState) -> dict[int, Topology]:
    """Topologies whose objects go to GS threads with all of their vertices, more than three."""
    if not state.generation.unit_state or not state.command("3DSTATE_PIPELINED_POINTERS").gs_enable:
        return {}
    return WHOLE if unit_state(state, "GS").discard_adjacency else WHOLE | ADJACENT


def list_vertices(state: DrawState, topology: int) -> int:
    """The vertices of an object's list: of patches, and of objects whose adjacent vertices GS threads get; 0: objects have none."""
    if state.generation.unit_state:
        return 0
    geometry, hull = (_enabled(state, f"3DSTATE_{stage}") for stage in ("GS", "HS"))
    if topology >= PATCHES:
        if geometry is None and hull is None:
            raise Unsupported(f"3DPRIMITIVE: primitive_topology_type {topology}, a patch list")
        return topology - PATCHES + 1
    return len(ADJACENT[topology].back) if topology in ADJACENT and geometry is not None and not geometry.discard_adjacency else 0


def _enabled(state: DrawState, name: str) -> Record | None:
    found = state.get(name)
    return found if found is not None and found.enable else None


def cache_disabled(state: DrawState) -> bool:
    """Whether equal indices are different vertices to the VS: by its state (BDW 12879-12898), or before Gen7 because vertices have IDs
    (G45 2754-2759, 2940-2944)."""
    if not state.generation.unit_state:
        shader = state.get("3DSTATE_VS")
        return shader is not None and bool(shader.vertex_cache_disable)
    elements = state.get("3DSTATE_VERTEX_ELEMENTS")
    stores = (getattr(element, f"component_{n}_control") for element in (elements.vertex_element if elements is not None else ())
              if element.valid for n in range(4))  # fmt: skip
    return bool(unit_state(state, "VS").vertex_cache_disable) or any(control in (VERTEX_ID, PRIMITIVE_ID) for control in stores)


class CachedVertex(ctypes.Structure):
    """A line of the vertex cache (struct cached_vertex)."""

    _fields_ = [("vertex", ctypes.c_uint32), ("stamp", ctypes.c_uint32), ("entry", ctypes.c_uint32)]


class PendingObject(ctypes.Structure):
    """An object whose vertices are still IDs (struct pending_object)."""

    _fields_ = [("vertex", ctypes.c_uint32 * 3), ("flags", ctypes.c_uint32), ("primitive", ctypes.c_uint32), ("valid", ctypes.c_uint32)]


def _numbers(*names: str) -> list[tuple[str, type[ctypes.c_uint32]]]:
    return [(name, ctypes.c_uint32) for name in names]


class AssemblyPlan(ctypes.Structure):
    """A draw's index list and its topology: the first bytes of struct assembly."""

    _fields_ = [
        ("memory", ctypes.c_uint64), ("index_address", ctypes.c_uint64), ("index_size", ctypes.c_uint64),
        *_numbers("index_bytes", "first_index", "cut_enable", "cut_index", "vertices", "instances", "minimum", "step", "corners", "whole",
                  "adjacent_strip", "list", "trailing", "id_skip", "id_step", "id_extra", "uncached"),
        ("back", ctypes.c_uint8 * 8),
        *_numbers("flags", "inverts", "closes", "polygon", "line_strip", "continued", "provoking", "one_instance"),
    ]  # fmt: skip


class AssemblyState(AssemblyPlan):
    """A draw's plan, the chunk to fill, and how far it has got (struct assembly)."""

    _fields_ = [
        ("vertex_ids", ctypes.c_uint64), ("instance_ids", ctypes.c_uint64), ("primitive_ids", ctypes.c_uint64),
        *_numbers("entries", "most_entries"),
        ("objects", ObjectArray), ("lists", ctypes.c_uint64),
        *_numbers("position", "instance", "count", "next", "made", "id_base", "id_start"),
        ("recent", ctypes.c_uint32 * 32),
        *_numbers("first", "primitive", "stamp"),
        ("held", PendingObject),
        ("vertices_seen", ctypes.c_uint64), ("objects_made", ctypes.c_uint64),
        ("cache", CachedVertex * CACHE_LINES),
    ]  # fmt: skip


class AssemblyMemory:
    """What assembly needs in memory, for one draw after another."""

    def __init__(self) -> None:
        self.vertex_ids, self.instance_ids, self.primitive_ids = (aligned(4 * VERTICES) for _ in range(3))
        self.state = AssemblyState(vertex_ids=self.vertex_ids.ctypes.data, instance_ids=self.instance_ids.ctypes.data,
                                   primitive_ids=self.primitive_ids.ctypes.data)  # fmt: skip


class AssemblyStage(ctypes.Structure):
    """struct assembly_stage of assembly.h."""

    _fields_ = [("chunk", ChunkStruct), ("counts", ctypes.c_uint64)]


class AssembleStage(Stage):
    """Objects and the vertices they share, chunk by chunk."""

    name, run = "assembly", "stage_assemble"

    def build(self, record: BuiltRecord, into: StageStruct) -> bool:
        front, chunk = record.front, record.chunk
        if getattr(record.state.get("3DSTATE_VF"), "sequential_draw_cut_index_enable", 0):
            record.not_kept("cuts without indices")
        plan = assembly_plan(record.state, record.call, front.shader.one_instance, front.uncached)
        record.struct.assembly_plan = ctypes.addressof(plan)
        if record.call.indexed and record.keeper is not None:
            record.keeper.index_buffer(record.struct)
        out = record.put_out(chunk.vertices, chunk.objects, chunk.urb)
        out.lists, out.list_vertices = chunk.lists.ctypes.data, plan.list
        self._plan = plan, AssemblyStage(out, front.counts)
        into.plan = ctypes.addressof(self._plan[1])
        return True


# -- plans -----------------------------------------------------------------------------------------------------------------------


def assembly_plan(state: DrawState, call: DrawCall, one_instance: bool = False, uncached: bool = False) -> AssemblyPlan:
    """The plan of a draw. `uncached`: equal indices are different vertices."""
    plan = AssemblyPlan(ctypes.addressof(state.space.table), vertices=call.vertices, instances=call.instances,
                        first_index=call.start_vertex, one_instance=one_instance, uncached=uncached)  # fmt: skip
    plan.list = list_vertices(state, call.topology)
    if plan.list:
        _set_lists(plan, state, call.topology)
    else:
        _set_topology(plan, state, call)
    plan.id_skip, between = PRIMITIVE_IDS.get(call.topology, (1, plan.list - 1))
    plan.id_step, plan.id_extra = between + 1, call.topology == TRISTRIP_ADJ
    _set_indices(plan, state, call)
    return plan


def _set_lists(plan: AssemblyPlan, state: DrawState, topology: int) -> None:
    """Objects whose vertices are in lists."""
    strip = ADJACENT.get(topology)
    plan.minimum, plan.step = (strip.minimum, strip.step) if strip is not None else (plan.list, plan.list)
    plan.adjacent_strip = topology == TRISTRIP_ADJ
    if plan.adjacent_strip and state.generation.strip_reorder == "mode":
        plan.trailing = state.command("3DSTATE_GS").reorder_mode != LEADING
    plan.flags = topology << TOPOLOGY_SHIFT


def _set_topology(plan: AssemblyPlan, state: DrawState, call: DrawCall) -> None:
    whole = whole_objects(state).get(call.topology)
    _check_stages(state, call.topology)
    found = whole or TOPOLOGIES.get(call.topology)
    if found is None:
        raise DecodeError(f"3DPRIMITIVE: primitive_topology_type {call.topology} is no topology")
    corners = len(found.back)
    vertices = min(corners, 3)
    selected = _selected_by(state, found, vertices)
    plan.minimum, plan.step, plan.corners, plan.back[:corners] = found.minimum, found.step, corners, found.back
    plan.inverts, plan.closes, plan.polygon, plan.line_strip = found.inverts, found.closes, found.polygon, found.strip
    plan.continued = found.continued
    plan.whole, plan.adjacent_strip = whole is not None, whole is not None and call.topology == TRISTRIP_ADJ
    provoking = int(getattr(selected, found.select or SELECTS[vertices])) if selected is not None else 0
    if corners == 4:
        last = provoking == 2 or not state.generation.unit_state  # the select is for triangles: GL, quads do not follow the convention
        plan.provoking, provoking = (found.quad_last if last else 0), 0
    edges = ALL_EDGES << EDGES_SHIFT if vertices == 3 else 0
    plan.flags = vertices | found.flags | provoking << PROVOKING_SHIFT | edges | found.becomes << TOPOLOGY_SHIFT


def _selected_by(state: DrawState, topology: Topology, vertices: int) -> Record | None:
    """The record that selects which of an object's vertices provokes; none for polygons and rectangles (G45 5129, 5135)."""
    if topology.polygon or topology.flags & RECTANGLE or not topology.select and vertices not in SELECTS:
        return None
    return unit_state(state, "SF")


def _set_indices(plan: AssemblyPlan, state: DrawState, call: DrawCall) -> None:
    fetch = state.get("3DSTATE_VF")
    if not call.indexed:
        _check_sequential(fetch, call)
        return
    buffer = state.command("3DSTATE_INDEX_BUFFER")
    if buffer.index_format >= len(INDEX_BYTES):
        raise DecodeError(f"3DSTATE_INDEX_BUFFER: index_format {buffer.index_format} is none")
    plan.index_bytes = INDEX_BYTES[buffer.index_format]
    plan.index_address = state.address("", buffer.buffer_starting_address)
    unbounded = "buffer_ending_address" in buffer._fields and not buffer.buffer_ending_address  # G45 2028
    plan.index_size = (1 << 64) - 1 if unbounded else max(buffer.buffer_size, 0)
    plan.cut_enable, plan.cut_index = _cut(buffer, fetch, plan.index_bytes)
    if "cut_index_enable" in buffer._fields and plan.cut_enable and call.topology not in CUT_TOPOLOGIES:
        state.warn(f"3DSTATE_INDEX_BUFFER: cut_index_enable 1 with primitive_topology_type {call.topology}, which has no cuts")


def _check_sequential(fetch: Record | None, call: DrawCall) -> None:
    if fetch is None or "sequential_draw_cut_index_enable" not in fetch._fields or not fetch.sequential_draw_cut_index_enable:
        return
    if call.start_vertex <= fetch.cut_index < call.start_vertex + call.vertices:
        raise Unsupported("3DSTATE_VF: sequential_draw_cut_index_enable 1, and the cut index is among the vertices")


def _check_stages(state: DrawState, topology: int) -> None:
    """Warn of topologies that need stages which are off (G45 781-852)."""
    if not state.generation.unit_state:
        return
    pointers = state.command("3DSTATE_PIPELINED_POINTERS")
    if topology in NEED_GS and not pointers.gs_enable:
        state.warn(f"3DPRIMITIVE: primitive_topology_type {topology} needs GS threads, and the GS stage is off")
    if topology in ADJACENT and not pointers.gs_enable and not pointers.clip_enable:
        state.warn(f"3DPRIMITIVE: primitive_topology_type {topology}: with the GS stage off, the CLIP stage must be on")


def _cut(buffer: Record, fetch: Record | None, index_bytes: int) -> tuple[int, int]:
    """Whether cuts are on and the index that is one: that of 3DSTATE_VF, or before it all ones (G45 1995-1999; BDW 12005-12024)."""
    if "cut_index_enable" in buffer._fields:
        return buffer.cut_index_enable, (1 << 8 * index_bytes) - 1
    return (fetch.indexed_draw_cut_index_enable, fetch.cut_index) if fetch is not None else (0, 0)
