"""Setup: the plan of viewport transformation, culling, and what objects become (setup.c, planes.c, shapes.c).

Reads   3DSTATE_SF 3DSTATE_RASTER 3DSTATE_CLIP 3DSTATE_WM 3DSTATE_MULTISAMPLE 3DSTATE_DRAWING_RECTANGLE 3DSTATE_SCISSOR_STATE_POINTERS
        3DSTATE_VIEWPORT_STATE_POINTERS_SF_CLIP 3DSTATE_DEPTH_BUFFER 3DSTATE_GLOBAL_DEPTH_OFFSET_CLAMP SF_CLIP_VIEWPORT SCISSOR_RECT
        SF_STATE WM_STATE SF_VIEWPORT; and of samples (sample_plan.py)
Writes  SetupPlan
"""

from __future__ import annotations

import ctypes
import math
from functools import lru_cache

from softgen.bits import catalogue
from softgen.bits.generation import Generation
from softgen.bits.record import Record, to_float
from softgen.errors import Unsupported
from softgen.three_d.clip_setup.clip import VIEWPORTS, clip_viewports, viewport_count
from softgen.three_d.clip_setup.geometry_h import SetupPlan, SetupStagePlan, Viewport
from softgen.three_d.draw.draw_structures import StageStruct
from softgen.three_d.draw.stage import BuiltRecord, Stage
from softgen.three_d.pixels.rasterizer import REGIONS
from softgen.three_d.samples.sample_plan import SamplePlan, sample_plan
from softgen.three_d.state.fields import UnitFields, structures, unit_fields
from softgen.three_d.state.state import DrawState
from softgen.three_d.three_d_h import Coverage

OTHER_CORE = 2  # core_mode_select
PIXEL = 256  # positions are in 1/256 pixel
STATE = ("SF_STATE", "WM_STATE", "3DSTATE_RASTER", "3DSTATE_SF", "3DSTATE_WM", "3DSTATE_CLIP", "3DSTATE_MULTISAMPLE")
MATRIX = ("m00", "m11", "m22", "m30", "m31", "m32")
CULL_BOTH, CULL_NONE, CULL_FRONT, CULL_BACK = range(4)
# depth offset, by fill mode
OFFSET_ENABLES = ("global_depth_offset_enable_solid", "global_depth_offset_enable_wireframe", "global_depth_offset_enable_point")
DRAWING_LIMIT = 16384  # pixels of the largest surface
POINT_WIDTH_BIT = 8  # of a vertex header's dword 3 with a U8.3 (G45 1110)
DEPTH_UNITS = {"d24_unorm_s8_uint": 24, "d24_unorm_x8_uint": 24, "d16_unorm": 16}  # bits of a depth; others are floats

POLYGON, POINT, LINE, DIAMOND, DIAMOND_LAST, SMOOTH_LINE, SMOOTH_POINT = Coverage

Rectangle = tuple[int, int, int, int]  # x0, y0 and, outside it, x1, y1


class SetupStage(Stage):
    """Records of the objects that CLIP leaves, as many at a time as there is room for."""

    name, run = "setup", "stage_setup"

    def build(self, record: BuiltRecord, into: StageStruct) -> bool:
        self._plan = SetupStagePlan(record.geometry.attribute_stride)
        into.plan, into.loop = ctypes.addressof(self._plan), ctypes.addressof(record.geometry.struct)
        return True


def plan(state: DrawState, extent: tuple[int, int]) -> SetupPlan:
    """The plan of a draw's SETUP unit; `extent` is the size of its surfaces in pixels."""
    fields = unit_fields(state, *STATE)
    drawing = state.get("3DSTATE_DRAWING_RECTANGLE") or _everything(state.gen)
    if getattr(drawing, "core_mode_select", 0) == OTHER_CORE:
        raise Unsupported("3DSTATE_DRAWING_RECTANGLE: core_mode_select is core 1, state of a core that is not simulated (BDW 2998-3007)")
    viewports, scissors = _unit_viewports(state, fields) if state.generation.unit_state else _command_viewports(state, fields)
    return _make(state.generation, fields, drawing, viewport_count(state), viewports, scissors, extent, sample_plan(state),
                 *_depth_offset(state, fields))  # fmt: skip


@lru_cache(8)
def _everything(gen: float) -> Record:
    """The drawing rectangle of a context that has set none, as in captures that begin in the middle of a run."""
    layout = catalogue.layout("3DSTATE_DRAWING_RECTANGLE", gen)
    return layout.raw(layout.pack(clipped_drawing_rectangle_x_max=0xFFFF, clipped_drawing_rectangle_y_max=0xFFFF))


def _command_viewports(state: DrawState, fields: UnitFields) -> tuple[tuple[Record, ...], tuple[Record, ...]]:
    """Viewports and scissor rectangles, as far as they are enabled."""
    count = viewport_count(state)
    viewports = clip_viewports(state, count) if fields.viewport_transform_enable else ()
    if not fields.scissor_rectangle_enable:
        return viewports, ()
    name = "3DSTATE_SCISSOR_STATE_POINTERS"
    return viewports, structures(state, "SCISSOR_RECT", state.block_address(state.command(name).scissor_rect_pointer), count, name)


def _unit_viewports(state: DrawState, fields: UnitFields) -> tuple[tuple[Record, ...], tuple[Record, ...]]:
    """The same where one structure has both (G45 5786-5812)."""
    if not fields.viewport_transform_enable and not fields.scissor_rectangle_enable:
        return (), ()
    found = structures(state, "SF_VIEWPORT", state.address("general", fields.sf_viewport_pointer), VIEWPORTS)
    return (found if fields.viewport_transform_enable else ()), (found if fields.scissor_rectangle_enable else ())


def _depth_offset(state: DrawState, fields: UnitFields) -> tuple[str, float]:
    """The depth format that a depth offset's constant counts in, and the offset's limit, where it is enabled."""
    if not any(fields.get(name) for name in (*OFFSET_ENABLES, "global_depth_offset_enable")):
        return "", 0.0
    code = fields.get("depth_buffer_surface_format", -1)
    if code < 0:
        depth = state.get("3DSTATE_DEPTH_BUFFER")
        code = -1 if depth is None else depth.surface_format
    name = catalogue.enumeration("Depth_Format", state.gen).get(code, "d24_unorm_x8_uint")  # without a buffer as D24 (G45 6654)
    clamp = state.get("3DSTATE_GLOBAL_DEPTH_OFFSET_CLAMP")
    record = fields if clamp is None else UnitFields(state.gen, (("3DSTATE_GLOBAL_DEPTH_OFFSET_CLAMP", clamp),))
    return name, to_float(record.get("global_depth_offset_clamp"))


@lru_cache(512)
def _make(generation: Generation, fields: UnitFields, drawing: Record, count: int, viewports: tuple[Record, ...],
          scissors: tuple[Record, ...], extent: tuple[int, int], samples: SamplePlan, depth_format: str,
          offset_clamp: float) -> SetupPlan:  # fmt: skip
    found = SetupPlan.from_buffer_copy(_without_viewports(generation, fields, drawing, count, samples, depth_format, offset_clamp))
    for i in range(min([count, *(len(held) for held in (viewports, scissors) if held)])):  # others have no pixels
        found.viewport[i] = _viewport(drawing, viewports[i] if viewports else None, scissors[i] if scissors else None, extent)
    return found


@lru_cache(128)
def _without_viewports(generation: Generation, fields: UnitFields, drawing: Record, count: int, samples: SamplePlan, depth_format: str,
                       offset_clamp: float) -> SetupPlan:  # fmt: skip
    """What is the same for targets of all sizes."""
    sample = _sample(fields)
    cull = fields.cull_mode
    found = SetupPlan(
        transform=fields.viewport_transform_enable, front_counter_clockwise=fields.front_winding,
        cull_front=cull in (CULL_BOTH, CULL_FRONT), cull_back=cull in (CULL_BOTH, CULL_BACK),
        fill_front=fields.get("front_face_fill_mode"), fill_back=fields.get("back_face_fill_mode"),
        line_coverage=POLYGON if samples.rectangles else _line_coverage(fields),
        point_coverage=SMOOTH_POINT if _smooth_points(fields) and not samples.rectangles else POINT,
        last_pixel=fields.last_pixel_enable, line_stipple=fields.line_stipple_enable and not samples.rectangles,
        conservative=fields.get("conservative_rasterization_enable"), sampled=bool(samples.places),
        line_cap=0.0 if samples.rectangles else REGIONS[fields.line_end_cap_antialiasing_region_width],
        origin_x=drawing.drawing_rectangle_origin_x, origin_y=drawing.drawing_rectangle_origin_y,
        grid=16 if fields.vertex_sub_pixel_precision_select else 1, sample_x=sample[0], sample_y=sample[1],
        diamond_grid=generation.diamond_grid,
        limit=generation.screen_limit * PIXEL, viewports=count, zero_layer=fields.get("force_zero_rta_index_enable"),
        point_width_bits=POINT_WIDTH_BIT if generation.unit_state else 0, point_width_vertex=not fields.point_width_source,
        point_right=fields.point_rasterization_rule, point_width=fields.fixed("point_width"),
        line_width=fields.fixed("line_width") or float(samples.rectangles),
        point_width_min=0.0, point_width_max=255.875,
        start_vertex=generation.unit_state, sprite=fields.get("sprite_point_enable"), statistics=fields.statistics_enable,
    )  # fmt: skip
    found.steps, found.limit_steps = PIXEL / found.grid, found.limit / found.grid
    if not generation.unit_state:
        found.point_width_min, found.point_width_max = fields.fixed("minimum_point_width"), fields.fixed("maximum_point_width")
    if depth_format:
        _set_offset(found, fields, depth_format, offset_clamp)
    return found


def _sample(fields: UnitFields) -> tuple[int, int]:
    """Where in a pixel its sample is, in 1/256."""
    if fields.get("pixel_location", -1) < 0:
        bias = fields.fixed("destination_origin_horizontal_bias"), fields.fixed("destination_origin_vertical_bias")
        return int(bias[0] * PIXEL), int(bias[1] * PIXEL)
    # pixel_position_offset_enable moves pixels of several samples only (BDW 6866-6870).
    return (0, 0) if fields.pixel_location else (PIXEL // 2, PIXEL // 2)


def _smooth_points(fields: UnitFields) -> bool:
    """Whether all commands that say so have points smooth: 3DSTATE_SF and 3DSTATE_RASTER, where they exist."""
    said = [record.smooth_point_enable for _, record in fields.records if "smooth_point_enable" in record._fields]
    return bool(said) and all(said)


def _line_coverage(fields: UnitFields) -> int:
    """How lines cover pixels. Width 0 is never antialiased (G45 5393-5403)."""
    if not fields.line_width:
        return DIAMOND
    return SMOOTH_LINE if fields.antialiasing_enable else LINE


def _set_offset(plan: SetupPlan, fields: UnitFields, depth_format: str, clamp: float) -> None:
    """Depth offset: what its constant is multiplied by (G45 6654-6660)."""
    constant, legacy = fields.real("global_depth_offset_constant"), fields.legacy_global_depth_bias_enable
    bits = DEPTH_UNITS.get(depth_format)
    plan.offset = sum(fields.get(name) << i for i, name in enumerate(OFFSET_ENABLES)) | fields.get("global_depth_offset_enable")
    plan.offset_scale, plan.offset_clamp = fields.real("global_depth_offset_scale"), clamp
    plan.offset_float = bits is None and not legacy
    plan.offset_constant = constant if bits is None or legacy else constant / ((1 << bits) - 1)


def _viewport(drawing: Record, viewport: Record | None, scissor: Record | None, extent: tuple[int, int]) -> Viewport:
    """A viewport's matrix, and its rectangle: all that limits it is inclusive, and counts from the drawing rectangle's origin or, of
    that rectangle itself, from the surface's."""
    x, y = drawing.drawing_rectangle_origin_x, drawing.drawing_rectangle_origin_y
    limits = [(0, 0, min(extent[0], DRAWING_LIMIT), min(extent[1], DRAWING_LIMIT)),
              (drawing.clipped_drawing_rectangle_x_min, drawing.clipped_drawing_rectangle_y_min,
               drawing.clipped_drawing_rectangle_x_max + 1, drawing.clipped_drawing_rectangle_y_max + 1)]  # fmt: skip
    if scissor is not None:
        limits.append((scissor.scissor_rectangle_x_min + x, scissor.scissor_rectangle_y_min + y,
                       scissor.scissor_rectangle_x_max + x + 1, scissor.scissor_rectangle_y_max + y + 1))  # fmt: skip
    matrix = [0.0] * len(MATRIX)
    if viewport is not None:
        matrix = [to_float(getattr(viewport, f"viewport_matrix_element_{name}")) for name in MATRIX]
        if hasattr(type(viewport), "x_min_viewport"):
            limits.append(_extents(viewport, x, y))
    left, top, right, bottom = zip(*limits, strict=True)
    return Viewport(*matrix, max(left), max(top), min(right), min(bottom))


def _extents(viewport: Record, x: int, y: int) -> Rectangle:
    """Pixels whose centre is within a viewport's extents; its maxima are those of the last pixel (capture kbl-kmscube: 0 to 127)."""
    left, top = to_float(viewport.x_min_viewport), to_float(viewport.y_min_viewport)
    right, bottom = to_float(viewport.x_max_viewport), to_float(viewport.y_max_viewport)
    return _pixel(left) + x, _pixel(top) + y, _pixel(right + 1) + x, _pixel(bottom + 1) + y


def _pixel(edge: float) -> int:
    """The first pixel whose centre is not before an edge."""
    if math.isnan(edge):
        return 0
    return math.ceil(max(-DRAWING_LIMIT, min(edge, 2 * DRAWING_LIMIT)) - 0.5)
