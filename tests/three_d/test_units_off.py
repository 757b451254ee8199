"""State of units that are off, or that a draw does not reach: whatever it says, the draw is the same.

Commands and blocks of memory get random bits in all of their fields, but for the few that say that the unit is off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from softgen.bits.catalogue import catalogue, layout
from softgen.bits.generation import device
from tests.three_d.gen7_draw import Gen7Draw
from tests.three_d.noise import Noise, noisy
from tests.three_d.own_draw import DEPTH, Drawn, Fields, OwnDraw, rectangle

GPUS = ("ivb", "hsw", "bdw", "skl", "icl")
SEEDS = 3


@dataclass
class Noisy(OwnDraw):
    """A draw with noise, and without commands that are `missing`."""

    noise: Noise = field(default_factory=dict)
    seed: int = 0
    missing: tuple[str, ...] = ()

    def pack(self, name: str, **fields: Any) -> list[int]:
        return [] if name in self.missing else noisy(name, self.gen, super().pack(name, **fields), self.noise, self.seed)


@dataclass
class NoisyGen7(Noisy, Gen7Draw):
    """The same on Gen7 and Gen7.5."""


@dataclass(frozen=True)
class Unit:
    """What is off: the draw's state, and the noise. `draws` says whether something is written all the same."""

    noise: Noise
    state: Mapping[str, Fields] = field(default_factory=dict)
    draws: bool = True


def names(*pages: str) -> tuple[str, ...]:
    """The fields of commands on all generations."""
    found = (catalogue().get(page, gen) for page in pages for gen in (7, 7.5, 8, 9, 11))
    return tuple({held.name for page in found if page is not None for held in page.fields})


def without(page: str, *fields: str) -> tuple[str, ...]:
    """The fields of a command but for some: those are the noise."""
    return tuple(set(names(page)) - set(fields))


VALID = "blend_state_pointer_valid", "color_calc_state_pointer_valid", "depth_stencil_state_pointer_valid"
TESTS = "depth_test_enable", "depth_buffer_write_enable", "stencil_test_enable"
ACTING = "render_target_fast_clear_enable", "render_target_resolve_enable", "render_target_resolve_type"  # without threads, too
DEPTH_BUFFER: Fields = {"surface_type": 1, "surface_format": 1, "surface_pitch": 127, "surface_base_address": DEPTH, "width": 15,
                        "height": 15, "depth_write_enable": 1}  # fmt: skip
TESTED: Fields = {"depth_test_enable": 1, "depth_buffer_write_enable": 1}
DEPTH_STENCIL: Noise = {"3DSTATE_DEPTH_BUFFER": (), "3DSTATE_STENCIL_BUFFER": (), "3DSTATE_HIER_DEPTH_BUFFER": (),
                        "3DSTATE_CLEAR_PARAMS": (), "3DSTATE_WM_DEPTH_STENCIL": (), "3DSTATE_DEPTH_STENCIL_STATE_POINTERS": VALID,
                        "DEPTH_STENCIL_STATE": (), "CC_VIEWPORT": (), "3DSTATE_VIEWPORT_STATE_POINTERS_CC": ()}  # fmt: skip
PIXELS: Noise = {"3DSTATE_PS": ACTING, "3DSTATE_PS_EXTRA": (), "3DSTATE_PS_BLEND": (), "3DSTATE_CONSTANT_PS": (),
                 "3DSTATE_BLEND_STATE_POINTERS": VALID, "BLEND_STATE": (), "3DSTATE_BINDING_TABLE_POINTERS_PS": (),
                 "3DSTATE_SAMPLER_STATE_POINTERS_PS": (), "3DSTATE_SBE_SWIZ": (), "3DSTATE_CC_STATE_POINTERS": VALID}  # fmt: skip
LINES = ("line_width", "line_end_cap_antialiasing_region_width", "last_pixel_enable", "antialiasing_enable", "smooth_point_enable",
         "aa_line_distance_mode", "point_width", "point_width_source", "line_stipple_enable", "line_antialiasing_region_width",
         "point_rasterization_rule", "legacy_diamond_line_rasterization", "global_depth_offset_constant", "global_depth_offset_scale",
         "global_depth_offset_clamp", "legacy_global_depth_bias_enable")  # fmt: skip
BLENDING = ("source_blend_factor", "destination_blend_factor", "color_blend_function", "source_alpha_blend_factor",
            "destination_alpha_blend_factor", "alpha_blend_function", "independent_alpha_blend_enable", "logic_op_function",
            "alpha_test_function", "x_dither_offset", "y_dither_offset", "color_clamp_range",
            "alpha_to_coverage_dither_enable")  # fmt: skip
OTHER_KERNELS = ("kernel_start_pointer_1", "kernel_start_pointer_2", "dispatch_grf_start_register_for_constant_setup_data_1",
                 "dispatch_grf_start_register_for_constant_setup_data_2", "sampler_count", "binding_table_entry_count",
                 "thread_dispatch_priority")  # fmt: skip
SAMPLED = ("base_mip_level", "resource_min_lod", "surface_min_lod", "quilt_width", "quilt_height", "multisample_position_palette_index",
           "auxiliary_surface_base_address", "auxiliary_surface_pitch", "auxiliary_surface_qpitch", "vertical_line_stride_offset",
           "mip_tail_start_lod", "red_clear_color", "green_clear_color", "blue_clear_color", "alpha_clear_color", "coherency_type",
           "sampler_l2_out_of_order_mode_disable", "ewa_disable_for_cube", "mocs", "media_boundary_pixel_mode",
           *(f"cube_face_enable_{sign}_{axis}" for sign in ("negative", "positive") for axis in "xyz"))  # fmt: skip
PATTERNS: Noise = {f"3DSTATE_{name}": () for name in ("LINE_STIPPLE", "AA_LINE_PARAMETERS", "POLY_STIPPLE_PATTERN", "POLY_STIPPLE_OFFSET")}

UNITS = {
    "vertex shader": Unit({"3DSTATE_VS": ("enable",), "3DSTATE_CONSTANT_VS": (), "3DSTATE_BINDING_TABLE_POINTERS_VS": (),
                           "3DSTATE_SAMPLER_STATE_POINTERS_VS": ()}),
    "other shaders": Unit({f"3DSTATE_{stage}": ("enable",) for stage in ("HS", "TE", "DS", "GS")}),
    "stream output": Unit({"3DSTATE_STREAMOUT": ("enable", "rendering_disable", "force_rendering"), "3DSTATE_SO_BUFFER": ()}),
    "clipping": Unit({"3DSTATE_CLIP": ("clip_enable", "clipper_statistics_enable", "perspective_divide_disable", "maximum_vp_index",
                                       "force_zero_rta_index_enable")}),
    "viewports and scissors": Unit({"3DSTATE_VIEWPORT_STATE_POINTERS_SF_CLIP": (), "3DSTATE_SCISSOR_STATE_POINTERS": ()}),
    "lines and points": Unit({**PATTERNS, **{page: without(page, *LINES) for page in ("3DSTATE_SF", "3DSTATE_RASTER", "3DSTATE_WM")}},
                             {name: {} for name in PATTERNS}),
    "indices": Unit({"3DSTATE_INDEX_BUFFER": (), "3DSTATE_VF": ("component_packing_enable", "sequential_draw_cut_index_enable")},
                    {"3DSTATE_INDEX_BUFFER": {}, "3DSTATE_VF": {}}),
    "swizzles": Unit({"3DSTATE_SBE_SWIZ": (), "3DSTATE_SBE": (*names("3DSTATE_SBE"), "format")}),
    "pixel shader": Unit({**PIXELS, "3DSTATE_SBE": (), "3DSTATE_PS_EXTRA": ("pixel_shader_valid",)},
                         {"3DSTATE_PS_EXTRA": {"pixel_shader_valid": 0}, "3DSTATE_WM": {"thread_dispatch_enable": 0},
                          "3DSTATE_DEPTH_BUFFER": DEPTH_BUFFER, "3DSTATE_WM_DEPTH_STENCIL": TESTED, "DEPTH_STENCIL_STATE": TESTED}),
    "depth and stencil": Unit({**DEPTH_STENCIL, "3DSTATE_WM_DEPTH_STENCIL": TESTS, "DEPTH_STENCIL_STATE": TESTS,
                               "3DSTATE_DEPTH_STENCIL_STATE_POINTERS": names("3DSTATE_DEPTH_STENCIL_STATE_POINTERS")}),
    "depth and stencil buffers": Unit({**DEPTH_STENCIL, "3DSTATE_DEPTH_BUFFER": ("surface_type",)}),
    "blending": Unit({"BLEND_STATE": tuple(set(names("BLEND_STATE", "BLEND_STATE_ENTRY")) - set(BLENDING)), "COLOR_CALC_STATE": (),
                      "3DSTATE_PS_BLEND": ("has_writeable_rt", "alpha_test_enable", "alpha_to_coverage_enable")}),
    "other kernels": Unit({"3DSTATE_PS": without("3DSTATE_PS", *OTHER_KERNELS)}),
    "null target": Unit({"RENDER_SURFACE_STATE": ("surface_type",)}, {"RENDER_SURFACE_STATE": {"surface_type": 7}}, draws=False),
    "sampling of targets": Unit({"RENDER_SURFACE_STATE": without("RENDER_SURFACE_STATE", *SAMPLED)}),
    "constants": Unit({"3DSTATE_CONSTANT_PS": (), "3DSTATE_CONSTANT_VS": (), "3DSTATE_CONSTANT_GS": ()}),
    "all samples": Unit(PIXELS, {"3DSTATE_SAMPLE_MASK": {"sample_mask": 0}}, draws=False),
    "rendering": Unit({**PIXELS, **DEPTH_STENCIL, "3DSTATE_SBE": (), "3DSTATE_VIEWPORT_STATE_POINTERS_SF_CLIP": (),
                       "3DSTATE_SCISSOR_STATE_POINTERS": ()}, {"3DSTATE_STREAMOUT": {"rendering_disable": 1}}, draws=False),
}  # fmt: skip


def draw(gpu: str, unit: Unit, noise: Noise | None = None, seed: int = 0, missing: tuple[str, ...] = ()) -> Drawn:
    made = NoisyGen7 if gpu in ("ivb", "hsw") else Noisy
    gen, corners = device(gpu).generation.number, rectangle(1, 2, 9, 7, attribute=(0.125, 0.25, 0.5, 0.75))
    state = {page: {key: value for key, value in fields.items() if key in names_of(page, gen)}
             for page, fields in unit.state.items() if catalogue().get(page, gen) is not None}  # fmt: skip
    return made(gpu, corners, state, noise=noise or {}, seed=seed, missing=missing).run()


def names_of(page: str, gen: float) -> set[str]:
    return {held.name for held in layout(page, gen).fields}


def left(drawn: Drawn) -> Fields:
    """What is left of a draw; rules may remark on a unit that is off, and targets are described with all that their state says."""
    found = drawn.left()
    return {**found, "targets": [target.kind for target in found["targets"]], "remarks": []}


@pytest.mark.behaviour("ICL-TH-01", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("name", UNITS)
def test_state_of_what_is_off_makes_no_difference(name: str, gpu: str) -> None:
    unit = UNITS[name]
    plain = left(draw(gpu, unit))
    assert any(any(data) for data in plain["memory"].values()) == unit.draws
    for seed in range(SEEDS):
        assert left(draw(gpu, unit, unit.noise, seed)) == plain, seed


@pytest.mark.covering(1)
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("name", UNITS)
def test_state_of_what_is_off_may_be_missing(name: str, gpu: str) -> None:
    """No command has set it since the context was made; but shaders that may be on are asked for by name."""
    unit, asked = UNITS[name], ("3DSTATE_VS", "3DSTATE_PS") if "shader" in name else ()
    plain, off = left(draw(gpu, unit)), {"enable", "pixel_shader_valid", *VALID, *ACTING}
    missing = tuple(page for page, kept in unit.noise.items() if page.startswith("3DSTATE") and set(kept) <= off and page not in asked)
    assert left(draw(gpu, unit, missing=missing)) == plain


@pytest.mark.behaviour("ICL-TH-01", shows="action")
@pytest.mark.parametrize("gpu", GPUS)
def test_elements_that_are_not_valid_and_buffers_that_none_reads_make_no_difference(gpu: str) -> None:
    plain = left(draw(gpu, Unit({})))
    made: Any = NoisyGen7 if gpu in ("ivb", "hsw") else Noisy
    corners = rectangle(1, 2, 9, 7, attribute=(0.125, 0.25, 0.5, 0.75))
    for seed in range(SEEDS):
        other, rng = made(gpu, corners), np.random.default_rng(seed)
        element = layout("VERTEX_ELEMENT_STATE", other.gen)
        words = [int(word) for word in rng.integers(0, 1 << 32, 2)]
        words[0] &= ~element.field("valid").mask
        buffer = [int(word) for word in rng.integers(0, 1 << 32, 4)]
        buffer[0] = buffer[0] & (1 << 26) - 1 | 5 << 26  # number 5
        other.before = [[other.pack("3DSTATE_VERTEX_BUFFERS", vertex_buffer=[{}])[0], *buffer]]
        elements = next(command for command in other.commands() if command[0] >> 16 == other.pack("3DSTATE_VERTEX_ELEMENTS")[0] >> 16)
        other.before = [*other.before, grown(elements, words)]
        assert left(other.run()) == plain, seed


def grown(command: Sequence[int], more: Sequence[int]) -> list[int]:
    """A command with more dwords at its end."""
    return [command[0] + len(more), *command[1:], *more]
