"""Rows of the Broadwell volume with several clauses, each clause from a field of a command to memory."""

from __future__ import annotations

import struct
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from softgen.errors import Unsupported
from tests.three_d.clip_setup.test_lines import leaves
from tests.three_d.own_draw import DATA, DEPTH, LINES, STENCIL, TRIANGLES, OwnDraw, box, pixel_shader, rectangle, vertex
from tests.three_d.samples.test_sampled_draws import TRIANGLE, at_samples, slices, state_of
from tests.three_d.test_forced_samples import covered, sixteenths
from tests.three_d.test_own_draw import PASS_VERTICES, VERTEX_SHADER

GPUS = ["bdw", "kbl", "icl"]
PLAIN = {"3DSTATE_VF_TOPOLOGY": {"primitive_topology_type": TRIANGLES}}

# -- stencil ---------------------------------------------------------------------------------------------------------------

STORED, FRONT, BACK = 0x5B, 0xAB, 0x5C  # in the buffer; references of both faces
EQUAL, REPLACE, INVERT = 3, 2, 7
CORNERS = [(0, 0), (6, 0), (0, 6)]  # clockwise
UPPER = {(x, y) for x in range(6) for y in range(6) if x + y + 1 < 6}


def stencil(gpu: str, **fields: int) -> OwnDraw:
    """A clockwise triangle in the upper left corner, and one the other way around eight pixels to the right and below."""
    front = [vertex(x, y) for x, y in CORNERS]
    back = [vertex(x + 8, y + 8) for x, y in reversed(CORNERS)]
    references = {"stencil_reference_value": FRONT, "backface_stencil_reference_value": BACK}
    unit = {"stencil_test_enable": 1, "stencil_buffer_write_enable": 1, "stencil_test_function": EQUAL,
            "backface_stencil_test_function": EQUAL,
            "stencil_pass_depth_pass_op": REPLACE, "backface_stencil_pass_depth_pass_op": REPLACE, "stencil_fail_op": INVERT,
            "backface_stencil_fail_op": INVERT, **(references if gpu != "bdw" else {}), **fields}  # fmt: skip
    depth = {"surface_type": 1, "surface_format": 1, "width": 15, "height": 15, "surface_pitch": 127, "surface_base_address": 7 << 20,
             "stencil_write_enable": 1}  # fmt: skip
    state: dict[str, Any] = {**PLAIN, "3DSTATE_WM_DEPTH_STENCIL": unit, "3DSTATE_DEPTH_BUFFER": depth,
                             "3DSTATE_STENCIL_BUFFER": {"stencil_buffer_enable": 1, "surface_pitch": 127, "surface_base_address": STENCIL},
                             "COLOR_CALC_STATE": references if gpu == "bdw" else {}}  # fmt: skip
    return OwnDraw(gpu, [*front, *back], state, patch={STENCIL: bytes([STORED]) * 4096})


@pytest.mark.behaviour("BDW-Z-05", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("double", [1, 0])
@pytest.mark.parametrize(("front", "back"), [(0x0F, 0xF0), (0xFF, 0xF0), (0x0F, 0xFF), (0x1C, 0x03)])
def test_each_face_has_masks_of_its_own(gpu: str, double: int, front: int, back: int) -> None:
    """BDW 13233-13263: a mask for what is compared, another for what is written; without a second side, the front's for both."""
    writes = 0x3C, 0x81
    made = stencil(gpu, double_sided_stencil_enable=double, stencil_test_mask=front, backface_stencil_test_mask=back,
                   stencil_write_mask=writes[0], backface_stencil_write_mask=writes[1])  # fmt: skip
    drawn = made.run()
    faces = [(FRONT, front, writes[0]), (BACK, back, writes[1]) if double else (FRONT, front, writes[0])]
    lit: set[tuple[int, int]] = set()
    expected = {STORED: 4096 - 2 * len(UPPER)}
    for (reference, mask, write), step in zip(faces, (0, 8), strict=True):
        passes = reference & mask == STORED & mask
        new = (STORED & ~write | (reference if passes else ~STORED) & write) & 0xFF
        expected[new] = expected.get(new, 0) + len(UPPER)
        lit |= {(x + step, y + step) for x, y in UPPER} if passes else set()
    assert drawn.lit == lit and not drawn.remarks
    values, counts = np.unique(np.frombuffer(drawn.space.read(STENCIL, 4096), np.uint8), return_counts=True)
    assert dict(zip(values.tolist(), counts.tolist(), strict=True)) == expected


ALWAYS, NEVER = 0, 1
OPS = {"stencil_fail": (1, 7), "stencil_pass_depth_fail": (5, 6), "stencil_pass_depth_pass": (REPLACE, 3)}  # of front and back
RESULTS = {1: 0, 7: ~STORED & 0xFF, 5: STORED + 1, 6: STORED - 1, REPLACE: FRONT, 3: STORED + 1}


@pytest.mark.behaviour("BDW-Z-03", "BDW-Z-04", shows="action")
@pytest.mark.parametrize("double", [1, 0])
@pytest.mark.parametrize(("functions", "depth", "events"), [
    ((NEVER, ALWAYS), ALWAYS, ("stencil_fail", "stencil_pass_depth_pass")),
    ((ALWAYS, NEVER), ALWAYS, ("stencil_pass_depth_pass", "stencil_fail")),
    ((ALWAYS, ALWAYS), NEVER, ("stencil_pass_depth_fail",) * 2), ((ALWAYS, NEVER), NEVER, ("stencil_pass_depth_fail", "stencil_fail")),
])  # fmt: skip
def test_each_face_has_a_function_and_operations_of_its_own(double: int, functions: tuple[int, int], depth: int,
                                                            events: tuple[str, str]) -> None:  # fmt: skip
    """BDW 13099-13175: what is done where the stencil test fails, the depth test, or none; without a second side, the front's for both."""
    fields = {f"{side}{event}_op": op for event, pair in OPS.items() for side, op in zip(("", "backface_"), pair, strict=True)}
    masks = {f"{side}stencil_{mask}_mask": 0xFF for side in ("", "backface_") for mask in ("test", "write")}
    made = stencil("bdw", double_sided_stencil_enable=double, depth_test_enable=1, depth_test_function=depth,
                   stencil_test_function=functions[0], backface_stencil_test_function=functions[1], **masks, **fields)  # fmt: skip
    drawn = made.run()
    faces = (0, 1) if double else (0, 0)
    if not double:
        events = events[0], events[0]
    held = np.frombuffer(drawn.space.read(STENCIL, 4096), np.uint8)
    expected = {STORED: 4096 - 2 * len(UPPER)}
    for face, event in zip(faces, events, strict=True):
        new = RESULTS[OPS[event][face]]
        expected[new] = expected.get(new, 0) + len(UPPER)
    values, counts = np.unique(held, return_counts=True)
    assert dict(zip(values.tolist(), counts.tolist(), strict=True)) == expected
    passing = [step for event, step in zip(events, (0, 8), strict=True) if event == "stencil_pass_depth_pass"]
    assert drawn.lit == {(x + step, y + step) for step in passing for x, y in UPPER}


@pytest.mark.behaviour("BDW-Z-15", "BDW-Z-11", shows="action")
@pytest.mark.parametrize("bit", ["clear", "resolve", "hierarchical"])
def test_a_draw_clears_or_resolves_depth_as_the_windower_s_command_says(bit: str) -> None:
    """BDW 13362-13438: the rectangle gets the clear value, whatever its own depth, and no shader runs; resolves write nothing."""
    name = {"clear": "depth_buffer_clear", "resolve": "depth_buffer_resolve", "hierarchical": "hierarchical_depth_buffer_resolve"}[bit]
    depth = {"surface_type": 1, "surface_format": 1, "width": 15, "height": 15, "surface_pitch": 127, "surface_base_address": DEPTH,
             "depth_write_enable": 1}  # fmt: skip
    state: dict[str, Any] = {"3DSTATE_WM": {f"legacy_{name}_enable": 1}, "3DSTATE_DEPTH_BUFFER": depth, "3DSTATE_CLEAR_PARAMS": {
        "depth_clear_value": 0.375, "depth_clear_value_valid": 1}}  # fmt: skip
    drawn = OwnDraw("bdw", rectangle(0, 4, 8, 12, z=0.75), state, patch={DEPTH: struct.pack("<f", 0.5) * 1024}).run()
    values, counts = np.unique(np.frombuffer(drawn.space.read(DEPTH, 4096), np.float32), return_counts=True)
    assert not drawn.lit and dict(zip(values.tolist(), counts.tolist(), strict=True)) == (
        {0.375: 64, 0.5: 1024 - 64} if bit == "clear" else {0.5: 1024})  # fmt: skip


# -- lines and the place of pixels -----------------------------------------------------------------------------------------

# Ends at corners of diamonds, in directions that the two rules treat otherwise.
ENDS = [((1.5, 1.0), (4.0, 3.5)), ((8.0, 1.5), (11.5, 5.0)), ((2.0, 8.5), (5.5, 12.0)), ((13.5, 13.0), (10.0, 9.5)),
        ((1.0, 14.5), (6.0, 14.5))]  # fmt: skip


def pixels_of(ends: Any, legacy: bool) -> set[tuple[int, int]]:
    a, b = (tuple(Fraction(value) for value in end) for end in ends)
    return {(x, y) for x in range(16) for y in range(16) if leaves(a, b, (x, y), legacy)}  # type: ignore[arg-type]


@pytest.mark.behaviour("BDW-WM-11", shows="action")
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("legacy", [0, 1])
def test_lines_of_width_0_follow_the_rule_that_state_chooses(gpu: str, legacy: int) -> None:
    """BDW 13439-13447: the diamonds of DX9 have other corners and edges than those of DX10."""
    state: dict[str, Any] = {
             "3DSTATE_SF": {"line_width": 0.0, "statistics_enable": 1}, "3DSTATE_VF_TOPOLOGY": {"primitive_topology_type": LINES},
             "3DSTATE_WM": {"legacy_diamond_line_rasterization": legacy}}  # fmt: skip
    expected, other = (set().union(*(pixels_of(ends, rule) for ends in ENDS)) for rule in (bool(legacy), not legacy))
    assert OwnDraw(gpu, [vertex(*end) for ends in ENDS for end in ends], state).run().lit == expected != other


@pytest.mark.behaviour("BDW-WM-03", shows="action")
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize(("corner", "expected"), [(0, box(2, 3, 8, 10)), (1, box(3, 4, 9, 11))])
def test_a_pixel_is_its_centre_or_its_upper_left_corner(gpu: str, offset: int, corner: int, expected: set[tuple[int, int]]) -> None:
    """BDW 6884-6896; the offset does nothing to pixels of one sample (BDW 6866-6870)."""
    state = {"3DSTATE_MULTISAMPLE": {"pixel_location": corner, "pixel_position_offset_enable": offset}}
    assert OwnDraw(gpu, rectangle(2.25, 3.25, 8.25, 10.25), state).run().lit == expected


@pytest.mark.behaviour("BDW-WM-03", shows="action")
@pytest.mark.parametrize(("corner", "offset", "half"), [(0, 0, 0.0), (0, 1, 0.0), (1, 0, 0.0), (1, 1, 0.5)])
def test_pixels_of_several_samples_are_moved_by_half_where_they_are_corners(corner: int, offset: int, half: float) -> None:
    """BDW 6866-6870: with the offset, the pattern's middle is at the corner of its pixel."""
    state = state_of(4, sixteenths(4), **{"3DSTATE_MULTISAMPLE": {"pixel_location": corner, "pixel_position_offset_enable": offset}})
    found = slices(OwnDraw("bdw", [vertex(x, y) for x, y in TRIANGLE], state, format="R8G8B8A8_UNORM", pitch=128).run(), 4)
    lit = np.zeros((16, 16), np.uint32)
    for (y, x), _ in np.ndenumerate(lit):
        lit[y, x] = sum(covered(TRIANGLE, x + px / 16 - half, y + py / 16 - half) << n for n, (px, py) in enumerate(sixteenths(4)))
    np.testing.assert_array_equal(found != 0, at_samples(lit, 4))


# -- pixel shaders ---------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("BDW-WM-06", shows="action")
@pytest.mark.parametrize("mask", [0, 1, 8, 9, 0b001001 | 2, 0b010000, 0b011011])
@pytest.mark.parametrize("gpu", GPUS)
def test_the_payload_has_the_barycentrics_that_the_mask_names(gpu: str, mask: int) -> None:
    """BDW 13529-13556: two registers of each kind, in the order of the bits; what follows moves. Vertices differ in w, for
    perspective; centroids of whole pixels are those of the pixel."""
    corners = [(0, 0, 1.0), (16, 0, 0.25), (0, 16, 0.5)]
    kinds = [bit for bit in range(6) if mask >> bit & 1]
    at = 2 + 2 * (len(kinds) - 1)
    colors = [f"g{at}<8,8,1>", f"g{at + 1}<8,8,1>", "g40<8,8,1>", "g40<8,8,1>"] if kinds else ["g2.3<0,1,0>"] * 4
    start = 2 + 2 * len(kinds)
    state = {**PLAIN, "3DSTATE_WM": {"barycentric_interpolation_mode": mask},
             "3DSTATE_PS": {"dispatch_grf_start_register_for_constant_setup_data_0": start}}  # fmt: skip
    one = "mov(8) g40<1>F 0x3f800000F { align1 WE_all 1Q };"
    made = OwnDraw(gpu, [vertex(x, y, w=w, attribute=(7, 7, 7, 7)) for x, y, w in corners], state, ps=pixel_shader(colors, one))
    drawn = made.run()
    if not kinds:
        assert drawn.pixels[1, 2].tolist() == [7] * 4
        return
    for x, y in ((1, 2), (5, 3), (9, 4)):
        weights = np.array([1 - (x + y + 1) / 16, (x + 0.5) / 16, (y + 0.5) / 16])  # of the vertices, linear
        if kinds[-1] < 3:
            weights = weights * [w for _, _, w in corners] / (weights * [w for _, _, w in corners]).sum()
        found = sorted(drawn.pixels[y, x, :2].tolist())
        pairs = [sorted(pair) for pair in ((weights[0], weights[1]), (weights[1], weights[2]), (weights[0], weights[2]))]
        assert any(np.allclose(found, pair, atol=2e-4) for pair in pairs), (found, weights)


WIDE = {"8_pixel_dispatch_enable": 0, "16_pixel_dispatch_enable": 1}
TILED = {"tile_mode": 3}


@pytest.mark.behaviour("BDW-PS-11", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize(("gpu", "field", "clears"), [
    ("bdw", "render_target_fast_clear_enable", True), ("bdw", "render_target_resolve_enable", False),
    ("kbl", "render_target_fast_clear_enable", True), ("kbl", "render_target_resolve_type", False)])  # fmt: skip
@pytest.mark.parametrize("eight", [0, 1])
def test_clears_and_resolves_have_no_threads_of_eight_pixels(gpu: str, field: str, clears: bool, eight: int) -> None:
    """BDW 7440-7461, 7536-7540: a clear colours all that its rectangle stands for, a resolve changes nothing; neither runs a thread."""
    unit = {**({} if eight else WIDE), field: 1}
    color = {"green_clear_color": 1} if gpu == "bdw" else {"green_clear_color": 0x3F800000}
    drawn = OwnDraw(gpu, rectangle(0, 0, 1, 1), size=(128, 128), format="R8G8B8A8_UNORM",
                    state={"3DSTATE_PS": unit, "RENDER_SURFACE_STATE": {**TILED, **color}}).run()  # fmt: skip
    held = np.frombuffer(drawn.space.read(6 << 20, 1 << 16), np.uint32)
    assert set(held.tolist()) == ({0, 0xFF00} if clears else {0}) and not drawn.gpu.counters.threads
    said = f"3DSTATE_PS: 8_pixel_dispatch_enable 1, and {field} 1 (BDW 7536-7540)"
    assert [text.split(": ", 1)[1] for text in drawn.remarks] == [said][:eight]


KILLED = {"alpha_test_enable": {"alpha_test_enable": 1, "alpha_test_function": 5},  # greater
          "alpha_to_coverage_enable": {"alpha_to_coverage_enable": 1}}


@pytest.mark.behaviour("BDW-PS-14", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("field", KILLED)
@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_depth_of_pixels_that_alpha_kills_is_not_written(gpu: str, field: str, alpha: float) -> None:
    """BDW 7093-7174: the command says before the shader runs that alpha may kill pixels, which then write no depth."""
    depth = {"surface_type": 1, "surface_format": 1, "width": 15, "height": 15, "surface_pitch": 127, "surface_base_address": 7 << 20,
             "depth_write_enable": 1}  # fmt: skip
    state: dict[str, Any] = {
        "BLEND_STATE": KILLED[field], "3DSTATE_PS_BLEND": {"has_writeable_rt": 1, field: 1}, "COLOR_CALC_STATE": ALPHA_REFERENCE,
        "3DSTATE_DEPTH_BUFFER": depth, "3DSTATE_WM_DEPTH_STENCIL": {"depth_test_enable": 1, "depth_buffer_write_enable": 1}}  # fmt: skip
    drawn = OwnDraw(gpu, rectangle(2, 3, 8, 10, attribute=(1, 1, 1, alpha)), state).run()
    written = np.frombuffer(drawn.space.read(7 << 20, 1 << 16), np.float32)
    assert [len(drawn.lit), int(np.count_nonzero(written == 0.5))] == ([42, 42] if alpha else [0, 0]) and set(written.tolist()) <= {0, 0.5}


ALPHA_REFERENCE = {"alpha_test_format": 1, "alpha_reference_value_as_float32": 0x3F000000}


@pytest.mark.behaviour("BDW-PS-14", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize(("blend", "runs"), [
    ({"has_writeable_rt": 1}, True), ({}, False), ({"alpha_test_enable": 1}, True), ({"alpha_to_coverage_enable": 1}, True),
    ({"color_buffer_blend_enable": 1}, False)])  # fmt: skip
def test_threads_run_where_the_command_says_that_they_could_change_something(gpu: str, blend: dict[str, int], runs: bool) -> None:
    """BDW 7093-7174: a target to write, or a test of alpha, without which depth alone decides. BLEND_STATE writes colour in any case."""
    fields = {"has_writeable_rt": 0, **blend}
    drawn = OwnDraw(gpu, rectangle(2, 3, 8, 10), {"3DSTATE_PS_BLEND": fields}).run()
    assert bool(drawn.gpu.counters.threads) is runs and drawn.lit == (box(2, 3, 8, 10) if runs else set())


# -- drawing rectangle, vertex cache, entries ------------------------------------------------------------------------------


@pytest.mark.behaviour("BDW-CS-12", shows="action")
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("core", [0, 1])
def test_a_drawing_rectangle_is_for_both_cores_or_for_the_one_there_is(gpu: str, core: int) -> None:
    """BDW 2997-3007; one for core 1 alone is refused, rather than taken for core 0's."""
    def drawn(select: int) -> set[tuple[int, int]]:
        state = {"3DSTATE_DRAWING_RECTANGLE": {"core_mode_select": select, "clipped_drawing_rectangle_x_min": 4}}
        return OwnDraw(gpu, rectangle(2, 3, 8, 10), state).run().lit

    assert drawn(core) == box(4, 3, 8, 10)
    with pytest.raises(Unsupported, match="core_mode_select is core 1"):
        drawn(2)


INDICES = [0, 1, 2, 2, 1, 0, 1, 2, 0]


@pytest.mark.behaviour("BDW-VS-08", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize(("fields", "instances", "draws", "threads"), [
    ({}, 1, 1, 3), ({"vertex_cache_disable": 1}, 1, 1, 9), ({}, 2, 1, 6), ({}, 1, 2, 6),
    ({"vertex_cache_disable": 1}, 2, 2, 36)])  # fmt: skip
def test_an_index_that_comes_again_is_shaded_once(gpu: str, fields: dict[str, int], instances: int, draws: int, threads: int) -> None:
    """BDW 12878-12898: while the cache is enabled, and within an instance of a draw."""
    indices = b"".join(index.to_bytes(2, "little") for index in INDICES)
    state: dict[str, Any] = {**PLAIN, "3DSTATE_VS": {**VERTEX_SHADER, **fields},
                             "3DSTATE_INDEX_BUFFER": {"index_format": 1, "buffer_starting_address": DATA, "buffer_size": len(indices)}}
    each = {"vertex_access_type": 1, "vertex_count_per_instance": len(INDICES), "instance_count": instances}
    corners = [vertex(x, y) for x, y in CORNERS]
    drawn = OwnDraw(gpu, corners, state, vs=PASS_VERTICES, patch={DATA: indices}, primitives=[each] * draws).run()
    assert drawn.register("VS_INVOCATION_COUNT") == threads and drawn.lit == UPPER


@pytest.mark.behaviour("BDW-VS-08", shows="action")
@pytest.mark.parametrize("gpu", GPUS)
def test_the_vertex_cache_is_invalid_when_the_shader_is_enabled_or_disabled(gpu: str) -> None:
    """Vertices that a draw without a shader has put there are not those of the next draw, which has one."""
    made = OwnDraw(gpu, [])
    shaded = PASS_VERTICES.replace("g13", "g12")  # alpha gets what blue has
    between = [made.pack("3DSTATE_VS", **{**VERTEX_SHADER, "kernel_start_pointer": 0})]
    corners = [vertex(x, y, attribute=(1, 2, 3, 4)) for x, y in CORNERS]
    drawn = OwnDraw(gpu, corners, {**PLAIN, "3DSTATE_VS": {}}, vs=shaded, primitives=[{}, {}], between=between).run()
    assert drawn.pixels[1, 1].tolist() == [1, 2, 3, 3] and drawn.register("VS_INVOCATION_COUNT") == 3


@pytest.mark.behaviour("ICL-URB-04", shows="action")
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("entries", [0, 64])
def test_a_draw_without_entries_of_vertices_is_remarked(gpu: str, entries: int) -> None:
    """ICL 3269-3272, with a shader and without."""
    for shader in ({}, VERTEX_SHADER):
        state: dict[str, Any] = {"3DSTATE_URB_VS": {"urb_starting_address": 4, "number_of_urb_entries": entries}, "3DSTATE_VS": shader}
        remarks = OwnDraw(gpu, rectangle(0, 0, 4, 4), state, vs=PASS_VERTICES).run().remarks
        assert any("number_of_urb_entries 0; it must be at least 1 here" in text for text in remarks) is not bool(entries)
