"""The stage before rasterization: whose state says where attributes are and which clip distances count; and the order of all stages."""

from __future__ import annotations

from typing import Any

import pytest

from softgen.bits.catalogue import layout
from softgen.eu.text import dialect
from tests.three_d.geometry_shader.shading import SIMD8, Shading
from tests.three_d.geometry_shader.test_output import CLIP_SPACE, TRIANGLE_STRIP
from tests.three_d.own_draw import CODE, Drawn, vertex
from tests.three_d.tessellation.patches import Patch, Patches, domain8
from tests.three_d.test_own_draw import PASS_VERTICES, VERTEX_SHADER

CLIP, CULL = (f"user_clip_distance_{test}_test_enable_bitmask" for test in ("clip", "cull"))
READ, LENGTH = "vertex_urb_entry_output_read_offset", "vertex_urb_entry_output_length"
OWN_CODE = 0x6000
ATTRIBUTE = [0.25, 0.5, -0.5, 0.75]  # clip distances as well: the third is outside


def drawn(vs: dict[str, int], gs: dict[str, int], clip: dict[str, int] | None = None, sbe: dict[str, int] | None = None) -> Drawn:
    """A triangle whose vertices VS passes on, and GS where it is enabled."""
    state = {**CLIP_SPACE, "3DSTATE_VS": {**VERTEX_SHADER, LENGTH: 1, **vs},
             "3DSTATE_CLIP": {**CLIP_SPACE["3DSTATE_CLIP"], **(clip or {})},
             "3DSTATE_SBE": {**CLIP_SPACE["3DSTATE_SBE"], **(sbe or {})}}  # fmt: skip
    vertices = [vertex(x, y, 0.5, 1.0, ATTRIBUTE) for x, y in ((0, 0), (0, 1), (1, 0))]
    shading = Shading("icl", SIMD8, vertices=vertices, unit={"output_topology": TRIANGLE_STRIP, LENGTH: 1, **gs}, state=state,
                      more={"unit": {"rendering_disable": 0}, "more": {"vs": PASS_VERTICES}})  # fmt: skip
    return shading.run().streamed.drawn


def colour(found: Drawn) -> list[float]:
    shown: list[float] = found.pixels[2, 3].tolist()
    return shown


@pytest.mark.behaviour("ICL-TH-20", shows="action")
def test_attributes_begin_where_the_last_stage_says() -> None:
    """VS where GS is disabled, else GS; SBE's own offset where it is forced (ICL 3165-3214). HS has no such state."""
    assert colour(drawn({READ: 1}, {"enable": 0, READ: 0})) == ATTRIBUTE != colour(drawn({READ: 0}, {"enable": 0, READ: 1}))
    assert colour(drawn({READ: 0}, {READ: 1})) == ATTRIBUTE != colour(drawn({READ: 1}, {READ: 0}))
    forced = {"force_vertex_urb_entry_read_offset": 1, "vertex_urb_entry_read_offset": 1}
    assert colour(drawn({READ: 0}, {READ: 0}, sbe=forced)) == ATTRIBUTE
    names = {stage: {field.name for field in layout(f"3DSTATE_{stage}", 11).fields} for stage in ("VS", "HS", "DS", "GS")}
    assert {stage: {READ, LENGTH, CLIP, CULL} & own for stage, own in names.items()} == {
        stage: set() if stage == "HS" else {READ, LENGTH, CLIP, CULL} for stage in names}  # fmt: skip


@pytest.mark.behaviour("ICL-TH-20", shows="action")
def test_clip_distances_count_that_the_last_stage_names() -> None:
    """The third is negative. The clipper's own mask counts where it is forced."""
    assert not drawn({READ: 1, CLIP: 4}, {"enable": 0}).lit and not drawn({CLIP: 0}, {READ: 1, CULL: 4}).lit
    assert not drawn({READ: 1, CULL: 4}, {"enable": 0}).lit and not drawn({CULL: 0}, {READ: 1, CLIP: 4}).lit
    force = {f"force_{CLIP}": 1, f"force_{CULL}": 1}
    assert len(drawn({CLIP: 4, CULL: 4}, {READ: 1, CLIP: 3, CULL: 3}).lit) == 28
    assert len(drawn({}, {READ: 1, CLIP: 4, CULL: 4}, {**force, CLIP: 3}).lit) == 28 and not drawn({}, {READ: 1}, {**force, CULL: 4}).lit


@pytest.mark.behaviour("ICL-3D-01", shows="action")
def test_stages_are_in_order() -> None:
    """Each works on what the one before has made: VS doubles a factor and a value that HS puts into the patch's entry, TE makes points of
    the factors, DS gives each the patch's record, GS makes points of two vertices of an object, in another order; stream output has all
    of them, the clipper lets those of the first patch through, of which setup makes squares and the rasterizer pixels, which are shaded
    (ICL 2601-2678, 2738-2768)."""
    doubled = f"mul(8) g11<1>F g11<8,8,1>F 0x40000000F {{ align1 1Q }};\n{PASS_VERTICES}"
    shading = Shading("icl", SIMD8, put=(2, 0), unit={READ: 1, LENGTH: 1, CLIP: 4, "kernel_start_pointer": OWN_CODE})
    state: dict[str, Any] = {"3DSTATE_VS": VERTEX_SHADER, "3DSTATE_GS": shading.fields(), **CLIP_SPACE,
                             "SF_CLIP_VIEWPORT": {**CLIP_SPACE["SF_CLIP_VIEWPORT"], "viewport_matrix_element_m30": 1.5,
                                                  "viewport_matrix_element_m31": 1.5},
                             "3DSTATE_URB_GS": {"urb_starting_address": 12, "number_of_urb_entries": 64,
                                                "urb_entry_allocation_size": 15}}  # fmt: skip
    marks = [Patch((2, 1, 1), (1,), (0.25, 0.5)), Patch((1, 1, 1), (1,), (-0.25, 0.5))]
    patches = Patches("icl", marks, "tri", state=state, unit={"rendering_disable": 0},
                      patch={CODE + OWN_CODE: dialect.read(shading.kernel().text(), 11, "mesa")})  # fmt: skip
    patches.evaluation = domain8(patches.gen).replace("g109<1>UD g0.1<0,1,0>UD", "g109<1>UD 0x3f800000UD")  # w
    streaming = patches.streaming()
    streaming.more = {**streaming.more, "vs": doubled}
    streamed = streaming.run()
    patches.patches = [Patch((2, 1, 2), (1,), (0.25, 1.0)), Patch((1, 1, 2), (1,), (-0.25, 1.0))]
    made = patches.expected()
    points = [made[n + corner] for n in range(0, len(made), 3) for corner in (2, 0)]
    rows = streamed.words(0)[: 12 * len(points)].reshape(-1, 12)
    assert streamed.offset(0) == 48 * len(points)
    assert [[*row.view("f4")[:2].tolist(), int(row[5]), *row.view("f4")[6:8].tolist()] for row in rows] == [
        [*point[:2], *point[5:]] for point in points]  # fmt: skip
    first = {(int(8 * float(u) + 1.5), int(8 * float(v) + 1.5)) for u, v, _, _, _, patch, *_ in points if not patch}
    found = streamed.drawn
    assert found.lit == first and all(found.pixels[y, x].tolist()[2:] == [0.25, 1.0] for x, y in first)
    names = ("IA_VERTICES", "VS_INVOCATION", "HS_INVOCATION", "GS_INVOCATION", "GS_PRIMITIVES", "CL_INVOCATION", "CL_PRIMITIVES")
    objects, kept = len(made) // 3, sum(not point[5] for point in points)
    assert [found.register(f"{name}_COUNT") for name in names] == [6, 6, 2, objects, len(points), len(points), kept]
