"""State of units of Gen4.5 that are off, or that a draw does not reach: whatever it says, the draw is the same (test_units_off.py)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from softgen.bits.catalogue import layout
from softgen.three_d.draw.draw_cache import RecordCache
from tests.three_d.g45_draw import DATA, DEPTH, SCRATCH, SIZE, TARGET, Drawn, Fields, G45Draw, vertex
from tests.three_d.noise import Noise, noisy

SEEDS = 4


@dataclass
class Noisy(G45Draw):
    noise: Noise = field(default_factory=dict)
    seed: int = 0

    def pack(self, name: str, **fields: Any) -> list[int]:
        return noisy(name, self.gen, super().pack(name, **fields), self.noise, self.seed)


@dataclass(frozen=True)
class Unit:
    """What is off: the draw's state, and the noise."""

    noise: Noise
    state: Mapping[str, Fields] = field(default_factory=dict)


def without(page: str, *fields: str) -> tuple[str, ...]:
    """The fields of a page but for some: those are the noise."""
    return tuple({held.name for held in layout(page, 4.5).fields} - set(fields))


THREADS = ("kernel_start_pointer", "grf_register_count", "single_program_flow", "binding_table_entry_count", "thread_dispatch_priority",
           "floating_point_mode", "illegal_opcode_exception_enable", "mask_stack_exception_enable", "software_exception_enable",
           "scratch_space_base_pointer", "per_thread_scratch_space", "constant_urb_entry_read_length", "constant_urb_entry_read_offset",
           "vertex_urb_entry_read_length", "vertex_urb_entry_read_offset", "dispatch_grf_start_register_for_urb_data",
           "maximum_number_of_threads", "sampler_state_pointer", "sampler_count")  # fmt: skip
PIXEL_THREADS = ("kernel_start_pointer_0", "grf_register_count_0", "setup_urb_entry_read_length", "setup_urb_entry_read_offset",
                 "dispatch_grf_start_register_for_constant_setup_data_0", "pixel_shader_kills_pixel",
                 "pixel_shader_computed_depth", "pixel_shader_uses_source_depth", "early_depth_test_enable",
                 "contiguous_64_pixel_dispatch_enable", "contiguous_32_pixel_dispatch_enable", "32_pixel_dispatch_enable",
                 "16_pixel_dispatch_enable", "8_pixel_dispatch_enable", *THREADS)  # fmt: skip
STENCIL = tuple(f"{side}stencil_{what}" for side in ("", "backface_") for what in (
    "test_function", "fail_op", "pass_depth_fail_op", "pass_depth_pass_op", "reference_value", "test_mask", "write_mask"))  # fmt: skip
TESTS = (*STENCIL, "double_sided_stencil_enable", "depth_test_function")
COLORS = ("independent_alpha_blend_enable", "alpha_test_format", "alpha_test_function", "logic_op_function", "alpha_blend_function",
          "source_alpha_blend_factor", "destination_alpha_blend_factor", "color_blend_function", "source_blend_factor",
          "destination_blend_factor", "x_dither_offset", "y_dither_offset", "color_clamp_range", "alpha_reference_value_as_unorm8",
          "alpha_reference_value_as_float32")  # fmt: skip
ENABLES = ("alpha_test_enable", "color_buffer_blend_enable", "logic_op_enable", "color_dither_enable", "pre_blend_color_clamp_enable",
           "post_blend_color_clamp_enable")  # fmt: skip
LINES = ("line_width", "line_end_cap_antialiasing_region_width", "last_pixel_enable", "antialiasing_enable", "aa_line_distance_mode",
         "point_width", "point_width_source", "point_rasterization_rule", "sprite_point_enable", "line_stipple_enable",
         "line_antialiasing_region_width", "legacy_diamond_line_rasterization", "global_depth_offset_constant",
         "global_depth_offset_scale", "legacy_global_depth_bias_enable")  # fmt: skip
PATTERNS: Noise = {f"3DSTATE_{name}": () for name in ("LINE_STIPPLE", "AA_LINE_PARAMETERS", "POLY_STIPPLE_PATTERN", "POLY_STIPPLE_OFFSET")}
POINTERS, TABLES = "3DSTATE_PIPELINED_POINTERS", "3DSTATE_BINDING_TABLE_POINTERS"
TESTED: Fields = {"depth_test_enable": 1, "depth_buffer_write_enable": 1}

UNITS = {
    "vertex shader": Unit({"VS_STATE": without("VS_STATE", *THREADS), TABLES: without(TABLES, "pointer_to_vs_binding_table")}),
    "geometry shader": Unit({"GS_STATE": (), POINTERS: without(POINTERS, "pointer_to_gs_state"),
                             TABLES: without(TABLES, "pointer_to_gs_binding_table")}),
    "clipping": Unit({"CLIP_STATE": (), "CLIP_VIEWPORT": (), POINTERS: without(POINTERS, "pointer_to_clip_state"),
                      TABLES: without(TABLES, "pointer_to_clip_binding_table")}),
    "viewports": Unit({"SF_VIEWPORT": (), "SF_STATE": without("SF_STATE", "sf_viewport_pointer")}),
    "lines and points": Unit({**PATTERNS, **{page: without(page, *LINES) for page in ("SF_STATE", "WM_STATE")}},
                             {name: {} for name in PATTERNS}),
    "pixel shader": Unit({"WM_STATE": without("WM_STATE", *PIXEL_THREADS), "RENDER_SURFACE_STATE": (), TABLES: (),
                          "COLOR_CALC_STATE": without("COLOR_CALC_STATE", *COLORS, *ENABLES)},
                         {"WM_STATE": {"thread_dispatch_enable": 0}, "COLOR_CALC_STATE": TESTED}),
    "depth and stencil": Unit({"3DSTATE_DEPTH_BUFFER": (), "CC_VIEWPORT": (),
                               "COLOR_CALC_STATE": without("COLOR_CALC_STATE", "cc_viewport_pointer", *TESTS)}),
    "depth and stencil buffers": Unit({"3DSTATE_DEPTH_BUFFER": ("surface_type",), "CC_VIEWPORT": (),
                                       "COLOR_CALC_STATE": without("COLOR_CALC_STATE", "cc_viewport_pointer", "stencil_test_enable",
                                                                   "depth_test_enable", "depth_buffer_write_enable", *TESTS)},
                                      {"3DSTATE_DEPTH_BUFFER": {"surface_type": 7}}),
    "blending": Unit({"COLOR_CALC_STATE": without("COLOR_CALC_STATE", *COLORS)}),
    "indices": Unit({"3DSTATE_INDEX_BUFFER": ()}, {"3DSTATE_INDEX_BUFFER": {}}),
}  # fmt: skip


def draw(unit: Unit, noise: Noise | None = None, seed: int = 0, null: bool = False) -> dict[str, Any]:
    """What is left of a draw, prepared and not."""
    corners = [vertex(x, y, z=0.25, attribute=(0.125, 0.25, 0.5, 0.75)) for x, y in ((1, 2), (9, 2), (1, 8))]
    made = Noisy(corners, state=unit.state, depth=None if null else np.ones((16, 16), np.float32), noise=noise or {}, seed=seed)
    made.before = [made.pack(name) for name in unit.state if name == "3DSTATE_INDEX_BUFFER"]  # which nothing else sets
    drawn = made.run()
    with patch.object(RecordCache, "ready", lambda *given: False):
        assert left(made.run()) == left(drawn)
    return left(drawn)


def left(drawn: Drawn) -> dict[str, Any]:
    counts = [drawn.gpu.read_register(at) for at in range(0x2300, 0x2360, 4)]
    memory = {at: drawn.space.read(at, SIZE) for at in (TARGET, DEPTH, DATA, SCRATCH) if drawn.space.mapped(at, 1)}
    return {"memory": memory, "counts": counts, "work": (drawn.gpu.counters.threads, drawn.gpu.counters.instructions)}


@pytest.mark.behaviour("ICL-TH-01", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("name", UNITS)
def test_state_of_what_is_off_makes_no_difference(name: str) -> None:
    unit, null = UNITS[name], "buffers" in name
    plain = draw(unit, null=null)
    assert any(plain["memory"][TARGET]) == (name != "pixel shader")
    for seed in range(SEEDS):
        assert draw(unit, unit.noise, seed, null) == plain, seed
