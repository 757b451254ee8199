"""Rasterizer: which pixels an object covers (rasterizer.c), and what state says about it.

Reads   WM_STATE SF_STATE or 3DSTATE_WM; 3DSTATE_POLY_STIPPLE_PATTERN 3DSTATE_POLY_STIPPLE_OFFSET 3DSTATE_MULTISAMPLE 3DSTATE_SAMPLE_MASK
        3DSTATE_RASTER 3DSTATE_RAST_MULTISAMPLE 3DSTATE_SF 3DSTATE_LINE_STIPPLE 3DSTATE_AA_LINE_PARAMETERS 3DSTATE_SAMPLE_PATTERN
        3DSTATE_WM_DEPTH_STENCIL
Writes  a RasterPlan, which rasterizer.c and lines.c read
"""

from __future__ import annotations

import ctypes
from functools import cache

from softgen.bits.catalogue import catalogue
from softgen.bits.record import Record
from softgen.errors import DecodeError, Unsupported
from softgen.three_d.samples.sample_plan import MOST_SAMPLES, forced_samples, rasterization_mode, sample_plan, stored_samples
from softgen.three_d.state.state import DrawState
from softgen.three_d.state.unit_state import unit_state

U0_8 = 256  # one, in fixed-point fields of 8 fraction bits
ROWS = 32  # and columns of a polygon stipple
# Objects that polygon stipple masks (G45 6524-6536).
STIPPLED = ("polygon", "trifan", "trilist", "tristrip", "tristrip_reverse")
STATE = ("3DSTATE_POLY_STIPPLE_PATTERN", "3DSTATE_POLY_STIPPLE_OFFSET", "3DSTATE_MULTISAMPLE", "3DSTATE_SAMPLE_MASK", "3DSTATE_RASTER",
         "3DSTATE_RAST_MULTISAMPLE", "3DSTATE_SF", "3DSTATE_LINE_STIPPLE", "3DSTATE_AA_LINE_PARAMETERS",
         "3DSTATE_SAMPLE_PATTERN", "3DSTATE_WM_DEPTH_STENCIL")  # fmt: skip
POLYGONS = (*STIPPLED, "rectlist", "quadlist", "quadstrip")
REGIONS = (0.5, 1.0, 2.0, 4.0)  # pixels of enum Antialiasing_Region_Width
# State that changes coverage and is not built, by command.
NOT_BUILT = {
    "3DSTATE_RAST_MULTISAMPLE": ("number_of_rasterization_multisamples",),
}


class RasterPlan(ctypes.Structure):
    """struct raster_plan of pixels.h."""

    _fields_ = [("stipple", ctypes.c_uint32 * ROWS), ("stippled", ctypes.c_uint64),
                *((name, ctypes.c_uint32) for name in ("line_pattern", "line_repeat", "legacy_diamond", "antialiased", "aa_manhattan")),
                *((name, ctypes.c_float) for name in ("aa_region", "aa_cap_region", "aa_slope", "aa_bias", "aa_cap_slope", "aa_cap_bias",
                                                      "aa_point_slope", "aa_point_bias")),
                ("samples", ctypes.c_uint32), ("stored", ctypes.c_uint32), ("sample_mask", ctypes.c_uint32),
                ("sample", (ctypes.c_int32 * 2) * MOST_SAMPLES)]  # fmt: skip


def refuse(name: str, record: Record | None, fields: tuple[str, ...]) -> None:
    """Raises Unsupported if one of the fields is set."""
    for field in fields:
        if record is not None and field in record._fields and getattr(record, field):
            raise Unsupported(f"{name}: {field} = {getattr(record, field)}")


def raster_plan(state: DrawState, windower: Record) -> RasterPlan:
    """The plan for a draw; `windower` is WM_STATE or 3DSTATE_WM."""
    for name, fields in NOT_BUILT.items():
        refuse(name, state.get(name), fields)
    plan = RasterPlan()
    _set_samples(plan, state)
    _set_lines(plan, state, windower)
    if windower.polygon_stipple_enable:
        _set_polygon_stipple(plan, state)
    return plan


def _set_samples(plan: RasterPlan, state: DrawState) -> None:
    """Where objects are tested, and how many samples depth, stencil and colours have. Where only the rasterizer has several samples, there
    are no depth and stencil tests at them."""
    samples = sample_plan(state)
    if samples.stored == 1 and not samples.places:
        return
    depth = state.get("3DSTATE_WM_DEPTH_STENCIL")
    for field in ("depth_test_enable", "depth_buffer_write_enable", "stencil_test_enable") if samples.stored == 1 else ():
        if getattr(depth, field, 0):
            raise Unsupported(f"3DSTATE_RASTER: forced_sample_count {samples.tested}, and 3DSTATE_WM_DEPTH_STENCIL has {field} 1: "
                              "not yet simulated")  # fmt: skip
    plan.samples, plan.sample_mask, plan.stored = samples.tested, samples.mask, samples.stored if samples.stored > 1 else 0
    for number, place in enumerate(samples.places):
        plan.sample[number][:] = place


def check_topology(state: DrawState, topology: int) -> None:
    """Raise errors for polygons whose stipple no command has set, and for lines and points whose pixels have several samples."""
    if stippled_topologies(state.gen) >> topology & 1 and state.get("3DSTATE_POLY_STIPPLE_PATTERN") is None:
        windower = unit_state(state, "PS") if state.generation.unit_state else state.get("3DSTATE_WM")
        if getattr(windower, "polygon_stipple_enable", 0):
            raise DecodeError("polygon_stipple_enable, but no 3DSTATE_POLY_STIPPLE_PATTERN has set a pattern")
    count, raster = forced_samples(state), state.get("3DSTATE_RASTER")
    if count == 1 or stored_samples(state) > 1:
        return
    if not topologies(state.gen, POLYGONS) >> topology & 1 or any(getattr(raster, f"{side}_face_fill_mode") for side in ("front", "back")):
        raise Unsupported(f"3DSTATE_RASTER: forced_sample_count {count} of lines or points: not yet simulated")


def _set_polygon_stipple(plan: RasterPlan, state: DrawState) -> None:
    pattern, offset = state.get("3DSTATE_POLY_STIPPLE_PATTERN"), state.get("3DSTATE_POLY_STIPPLE_OFFSET")
    if pattern is None:  # no matter: see check_topology
        return
    x, y = (offset.polygon_stipple_x_offset, offset.polygon_stipple_y_offset) if offset is not None else (0, 0)
    rows = [pattern.row[(number + y) % ROWS].pattern for number in range(ROWS)]
    plan.stipple[:] = [(row << x | row >> ROWS - x) & 0xFFFFFFFF for row in rows]
    plan.stippled = stippled_topologies(state.gen)


def _set_lines(plan: RasterPlan, state: DrawState, windower: Record) -> None:
    """Line stipple, the rules of one-pixel lines, and antialias alpha."""
    plan.legacy_diamond = windower.legacy_diamond_line_rasterization
    stipple = state.get("3DSTATE_LINE_STIPPLE")
    if windower.line_stipple_enable and stipple is not None:
        plan.line_pattern, plan.line_repeat = stipple.line_stipple_pattern, max(stipple.line_stipple_repeat_count, 1)
    if not is_antialiased(state):
        return
    setup, given = unit_state(state, "SF"), state.get("3DSTATE_AA_LINE_PARAMETERS")
    plan.antialiased, plan.aa_manhattan = 1, not setup.aa_line_distance_mode
    plan.aa_region = REGIONS[windower.line_antialiasing_region_width] / 2
    plan.aa_cap_region = REGIONS[windower.line_end_cap_antialiasing_region_width]
    for ours, theirs in (("aa", "aa_coverage"), ("aa_cap", "aa_coverage_endcap"), ("aa_point", "aa_point_coverage")):
        for kind in ("slope", "bias"):
            setattr(plan, f"{ours}_{kind}", getattr(given, f"{theirs}_{kind}", 0) / U0_8)


def is_antialiased(state: DrawState) -> bool:
    """Whether lines or points of a draw have an antialias alpha; lines of width 0 have none (G45 5397), nor has what samples cover."""
    if stored_samples(state) > 1 and rasterization_mode(state, stored_samples(state)).startswith("on"):
        return False
    if state.generation.unit_state:
        records = [unit_state(state, "SF")]
    else:
        records = [record for name in ("3DSTATE_RASTER", "3DSTATE_SF") if (record := state.get(name)) is not None]
    lines, width = (next((getattr(record, name) for record in records if name in record._fields), 0)
                    for name in ("antialiasing_enable", "line_width"))  # fmt: skip
    points = [record.smooth_point_enable for record in records if "smooth_point_enable" in record._fields]
    return bool(lines and width or points and all(points))


def draws_nothing(state: DrawState) -> bool:
    """Whether the sample mask excludes all samples (BDW-WM-02)."""
    mask = state.get("3DSTATE_SAMPLE_MASK")
    return mask is not None and not mask.sample_mask & (1 << max(forced_samples(state), stored_samples(state))) - 1


@cache
def topologies(gen: float, names: tuple[str, ...]) -> int:
    """3DPRIM_* codes as a set of bits."""
    codes = {name: code for code, name in catalogue().enumeration("3D_Prim_Topo_Type", gen).items()}
    return sum(1 << codes[name] for name in names if name in codes)


def stippled_topologies(gen: float) -> int:
    return topologies(gen, STIPPLED)
