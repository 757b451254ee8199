"""TE as a stage: from patch entries to points for DS threads, and the objects between them (tessellation.c; tessellator.c has the points).

Reads   3DSTATE_TE 3DSTATE_HS 3DSTATE_DS PATCH_HEADER_QUAD PATCH_HEADER_TRI PATCH_HEADER_ISOLINE PATCH_HEADER_SW_TESS
Writes  the vertices, without entries, and the objects of a chunk
"""

from __future__ import annotations

import ctypes
from functools import cache

from softgen.bits import catalogue
from softgen.errors import DecodeError, Unsupported
from softgen.shared_functions.urb.memory import ROW
from softgen.three_d.draw.draw_structures import StageStruct
from softgen.three_d.draw.stage import BuiltRecord, Stage
from softgen.three_d.stage_threads.thread_output import set_topology
from softgen.three_d.state.state import DrawState
from softgen.three_d.tessellation import tessellator
from softgen.three_d.tessellation.patch_threads import byte_of
from softgen.three_d.tessellation.tessellation_h import PATCH_ROWS, DomainPoints, PatchArray, PointGroup, TessCache
from softgen.three_d.tessellation.tessellation_h import Tessellation as TessellationStruct
from softgen.three_d.tessellation.tessellator_h import TESS_MOST_INDICES as MOST_INDICES
from softgen.three_d.tessellation.tessellator_h import TESS_MOST_POINTS as MOST_POINTS
from softgen.three_d.three_d_h import OutputTopology
from softgen.three_d.vertices.chunk import MADE_VERTICES, OBJECTS, VERTICES, Chunk, aligned

STAGES = ("HS", "TE", "DS")
DOMAINS = ("QUAD", "TRI", "ISOLINE")
POINT, LINE, TRI_CW, TRI_CCW = range(4)  # output_topology
ISOLINE, PARTITIONINGS = 2, 3
CORNERS = {POINT: 1, LINE: 2, TRI_CW: 3, TRI_CCW: 3}
PUT_OUT = {1: 1, 2: 3, 3: 4}  # topologies by corners: points, line strips, triangle lists (BDW 11279-11292)
SW_TESS = 1  # mode
# Where headers have outer factors, and inner ones; what a domain has none of is not read.
FACTORS = {"QUAD": (("outer_u0", "outer_v0", "outer_u1", "outer_v1"), ("inner_u", "inner_v")),
           "TRI": (("outer_u0", "outer_v0", "outer_w0"), ("inner",)), "ISOLINE": (("density", "detail"), ())}  # fmt: skip


def tessellates(state: DrawState) -> bool:
    """Whether a draw has patches; HS, TE and DS are enabled together (BDW 6338-6342, 11332-11335)."""
    found = [state.get(f"3DSTATE_{stage}") for stage in STAGES]
    enabled = [bool(command is not None and command.enable) for command in found]
    if any(enabled) and not all(enabled):
        states = ", ".join(f"3DSTATE_{stage} {int(on)}" for stage, on in zip(STAGES, enabled, strict=True))
        raise DecodeError(f"enable of {states}: the three stages must be enabled together")
    return all(enabled)


class DomainChunk(Chunk):
    """A chunk for the points of patches, with the patches' entries in front of its own: what TE fills, and DS threads shade."""

    def __init__(self, entry_bytes: int) -> None:
        super().__init__(entry_bytes, objects=VERTICES + MADE_VERTICES + OBJECTS, front=PATCH_ROWS * ROW)
        capacity = self.vertices.capacity
        self._held = aligned(8 * capacity), aligned(ctypes.sizeof(PointGroup) * capacity)
        self.points = DomainPoints(*(held.ctypes.data for held in self._held), 0)


class TessellatorMemory:
    """Points and indices of patches, for one draw after another."""

    def __init__(self) -> None:
        self.cache = TessCache()
        count = len(self.cache.held)
        self._points, self._indices = aligned(8 * MOST_POINTS * count), aligned(2 * MOST_INDICES * count)
        for number, held in enumerate(self.cache.held):
            held.result.points = self._points.ctypes.data + 8 * MOST_POINTS * number
            held.result.indices = self._indices.ctypes.data + 2 * MOST_INDICES * number


@cache
def _factor_places(domain: str, gen: float) -> tuple[tuple[int, ...], tuple[int, ...]]:
    page = catalogue.layout(f"PATCH_HEADER_{domain}", gen)
    outer, inner = (tuple(byte_of(page, name) for name in names) for names in FACTORS[domain])
    return outer, inner


def tessellation(state: DrawState, uncached: bool, per_thread: int) -> TessellationStruct:
    """The plan of a draw's TE."""
    unit = state.command("3DSTATE_TE")
    if unit.domain >= len(DOMAINS) or unit.partitioning >= PARTITIONINGS:
        raise DecodeError(f"3DSTATE_TE: domain {unit.domain}, partitioning {unit.partitioning}, of which one is none")
    if unit.output_topology != POINT and (unit.output_topology == LINE) != (unit.domain == ISOLINE):  # BDW 11281-11288
        raise DecodeError(f"3DSTATE_TE: output_topology {unit.output_topology} with domain {DOMAINS[unit.domain].lower()}")
    outer, inner = _factor_places(DOMAINS[unit.domain], state.gen)
    corners, objects = CORNERS[unit.output_topology], OutputTopology()
    set_topology(state, PUT_OUT[corners], objects)
    made = TessellationStruct(plan=tessellator.plan(state), outer=outer, inner=inner, corners=corners,
                              flags=objects.flags, uncached=uncached, per_thread=per_thread,
                              memory=ctypes.addressof(state.space.table))  # fmt: skip
    if unit.mode == SW_TESS:
        page = catalogue.catalogue().get("PATCH_HEADER_SW_TESS", state.gen)
        if page is None:
            raise Unsupported("3DSTATE_TE: mode sw_tess, which this generation has no more")
        made.software, made.count_offset = 1, byte_of(page, "domain_point_count")
        made.address_offset = byte_of(page, "domain_point_address")
    return made


class TessellationStage(Stage):
    """Points and objects of patches, chunk by chunk."""

    name, run = "TE", "stage_tessellation"

    def build(self, record: BuiltRecord, into: StageStruct) -> bool:
        if record.patches is None:
            return False
        plans, patches = record.pipeline.tessellation, record.patches
        memory, domain = plans.memory, plans.domain.get(record.state)
        record.points = chunk = plans.chunk(domain.threads.entry_bytes)
        made = self._plan = tessellation(record.state, bool(domain.unit.cache_disable), domain.points)
        self._held = memory, chunk, patches
        made.cache, made.patches = ctypes.addressof(memory.cache), ctypes.addressof(patches)
        made.chunk = record.put_out(chunk.vertices, chunk.objects, chunk.urb)
        made.copies = PatchArray(chunk.urb.address, patches.stride, 0, 0, PATCH_ROWS * ROW // patches.stride)
        made.out = ctypes.addressof(chunk.points)
        into.loop = ctypes.addressof(made)
        return True
