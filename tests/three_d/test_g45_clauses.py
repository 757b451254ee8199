"""Rows of the G45 volume with several clauses, each clause from commands and memory to pixels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from softgen.bits.catalogue import layout
from tests.three_d.g45_draw import (
    GEN,
    LINES,
    POINTS,
    TRIANGLES,
    Fields,
    G45Draw,
    moves,
    pixel_shader,
    put_out,
    setup_kernel,
    urb_write,
    vertex,
)
from tests.three_d.test_g45_geometry import ALL, TRIANGLE, merged
from tests.three_d.test_g45_pixels import ALPHA_BYTES, SMOOTH

SECOND = [vertex(8, 8, attribute=(30, 0, 0, 0)), vertex(16, 8), vertex(8, 16)]
PLACE = ("x", "y", "z", "rhw")


# -- setup -----------------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("G45-SF-12", shows="action")
@pytest.mark.parametrize("corner", range(3))
@pytest.mark.parametrize("component", PLACE)
def test_objects_with_a_nan_in_any_component_of_a_position_are_discarded(component: str, corner: int) -> None:
    """G45 5164: that object alone, not the primitive's others; an infinite attribute or a NaN in one discards nothing."""
    corners: list[dict[str, Any]] = [{"x": 0, "y": 0}, {"x": 8, "y": 0}, {"x": 0, "y": 8}]
    corners[corner][component] = math.nan
    drawn = G45Draw([*(vertex(**fields) for fields in corners), *SECOND]).run()
    assert len(drawn.lit) == 28 and min(drawn.lit) == (8, 8)
    odd = [vertex(x, y, attribute=(math.nan, math.inf, 3, 4)) for x, y in ((0, 0), (8, 0), (0, 8))]
    assert len(G45Draw([*odd, *SECOND]).run().lit) == 56


@pytest.mark.behaviour("G45-SF-15", shows="action")
@pytest.mark.parametrize("index", range(16))
def test_sixteen_viewports_are_eight_dwords_apart(index: int) -> None:
    """G45 5786: each moves to a column of its own; the third vertex's index does not count."""
    each = [{"viewport_matrix_element_m00": 1.0, "viewport_matrix_element_m11": 1.0, "viewport_matrix_element_m22": 1.0,
             "viewport_matrix_element_m30": float(n), "viewport_matrix_element_m31": float(15 - n)} for n in range(16)]  # fmt: skip
    state: dict[str, Fields] = {"SF_STATE": {"viewport_transform_enable": 1}, "SF_VIEWPORT": {"each": each}}
    drawn = G45Draw([vertex(0.5, 0.5, viewport=index)], POINTS, state).run()
    assert drawn.lit == [(index, 15 - index)]


FAR = 16384.0


@pytest.mark.behaviour("G45-SF-22", shows="action")
@pytest.mark.parametrize(("origin", "x", "y", "slope"), [
    (0, FAR, FAR / 2, 1.0),  # to (8191.99, 8191.99): twice as steep
    (0, 8191.0, 4095.5, 0.5),  # inside the range
    (-2000, 9000.0, 5500.0, 0.5),  # inside it once the origin has been added: (7000, 3500)
    (2000, 7000.0, 1000.0, 3000 / 8192),  # outside it then: (9000, 3000)
])  # fmt: skip
def test_positions_are_clamped_behind_the_drawing_rectangles_origin(origin: int, x: float, y: float, slope: float) -> None:
    """G45 5321: x and y by themselves, to -8K up to 8K; the slope of an edge that begins in the first pixel says where it ends."""
    rectangle = {"drawing_rectangle_origin_x": origin & 0xFFFF, "drawing_rectangle_origin_y": origin & 0xFFFF}
    corners = [vertex(-origin, -origin), vertex(x, y), vertex(-origin, 8000 - origin if origin >= 0 else 8000)]
    drawn = G45Draw(corners, state={"3DSTATE_DRAWING_RECTANGLE": rectangle}).run()
    assert set(drawn.lit) == {(px, py) for px in range(16) for py in range(16) if py + 0.5 > slope * (px + 0.5)}


# -- lines -----------------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("G45-WM-07", shows="action")
@pytest.mark.parametrize(("start", "below"), [(2.25, 6.25), (2.625, 6.375), (2.5, 6.125)])
def test_alphas_of_a_lines_edges_are_multiplied(start: float, below: float) -> None:
    """G45 6410-6416: where the ramp of the end meets that of a side, alpha is the product of what each has alone."""
    line = [vertex(start, below, attribute=(0, 0, 0, 1)), vertex(12, below, attribute=(0, 0, 0, 1))]
    drawn = G45Draw(line, LINES, SMOOTH, ps=ALPHA_BYTES, fill=7).run()
    alpha = np.where((drawn.bits != 7).any(-1), drawn.pixels[..., 3], 0.0)
    sides, ends = alpha[:, 7], alpha[6, :]
    assert ends[7] == 1.0, "in the middle of the line no edge is near"
    corners = [(y, x) for y, x in np.argwhere(alpha > 0) if 0 < sides[y] < 1 and 0 < ends[x] < 1]
    assert corners and all(alpha[y, x] == pytest.approx(sides[y] * ends[x], abs=1.5 / 255) for y, x in corners)
    assert any(alpha[y, x] < min(sides[y], ends[x]) - 2 / 255 for y, x in corners)


# -- vertices that threads put out -----------------------------------------------------------------------------------------

INDICES = pixel_shader("g1.7<0,1,0>")


@pytest.mark.behaviour("G45-GS-17", shows="action")
@pytest.mark.parametrize("gs", ["", put_out(ALL, TRIANGLES)], ids=["passed through", "put out"])
def test_headers_of_all_exiting_vertices_are_read_back(gs: str) -> None:
    """G45 1096-1116, 3512: array and viewport index, and positions, of vertices from fetch and from threads."""
    corners = [vertex(0, 0, layer=5, viewport=3), vertex(8, 0, layer=9), vertex(0, 8, layer=9)]
    drawn = G45Draw(corners, gs=gs, ps=INDICES, state={"GS_STATE": {"maximum_vpindex": 15}}).run()
    assert len(drawn.lit) == 28 and {int(drawn.bits[y, x, 0]) for x, y in drawn.lit} == {3 << 27 | 5 << 16}


@pytest.mark.behaviour("G45-GS-17", shows="action")
@pytest.mark.parametrize("gs", ["", put_out((0,), POINTS)], ids=["passed through", "put out"])
@pytest.mark.parametrize("width", [2.0, 4.0])
def test_widths_of_points_are_read_back(gs: str, width: float) -> None:
    drawn = G45Draw([vertex(8, 8, width=width)], POINTS, {"SF_STATE": {"point_width_source": 0}}, gs=gs).run()
    half = int(width / 2)
    assert drawn.lit == [(x, y) for y in range(8 - half, 8 + half) for x in range(8 - half, 8 + half)]


@pytest.mark.behaviour("G45-GS-17", shows="action")
@pytest.mark.parametrize("gs", ["", put_out(ALL, TRIANGLES)], ids=["passed through", "put out"])
@pytest.mark.parametrize(("flags", "enabled", "lit"), [
    ((1, 1, 1), 0xFF, 0), ((2, 2, 2), 0xFD, 28), ((4, 4, 0), 0xFF, None), ((1, 2, 4), 0xFF, None)])  # fmt: skip
def test_clip_flags_of_users_are_read_back(gs: str, flags: tuple[int, ...], enabled: int, lit: int | None) -> None:
    """An object whose vertices all have one enabled flag is rejected; one that some have goes to a CLIP thread (which drops it here)."""
    places = [(-0.5, -0.5), (0.5, -0.5), (-0.5, 0.5)]
    corners = [vertex(x, y, flags=bits) for (x, y), bits in zip(places, flags, strict=True)]
    clip = {"clip_mode": 0, "user_clip_distance_clip_test_enable_bitmask": enabled, "viewport_xy_clip_test_enable": 0,
            "user_clip_flags_must_clip_enable": 1}  # fmt: skip
    viewport = {"viewport_matrix_element_m00": 8.0, "viewport_matrix_element_m11": 8.0, "viewport_matrix_element_m22": 1.0,
                "viewport_matrix_element_m30": 4.0, "viewport_matrix_element_m31": 4.0}  # fmt: skip
    state = merged({"CLIP_STATE": clip, "SF_STATE": {"viewport_transform_enable": 1}, "SF_VIEWPORT": viewport})
    drop = moves(1, "g1") + "\n" + urb_write(2, eot=True, used=False)
    shows = put_out(ALL, TRIANGLES)
    seen = [len(G45Draw(corners, state=state, gs=gs, clip=kernel).run().lit) for kernel in (drop, shows)]
    assert seen == ([0, 28] if lit is None else [lit, lit])


# -- URB -------------------------------------------------------------------------------------------------------------------


def pack(name: str, **fields: object) -> list[int]:
    return list(layout(name, GEN).pack(**fields))


@pytest.mark.behaviour("G45-URB-02", shows="action")
@pytest.mark.parametrize("units", [3, 4, 5])
def test_entries_are_pairs_of_rows_apart_and_accesses_are_rows(units: int) -> None:
    """G45 1377: handles of two SF threads count in units of 512 bits; what they read of vertices begins at an odd row of 256."""
    sf = "\n".join(("mov(8) g5<1>UD g0.0<0,1,0>UD { align1 nomask };", setup_kernel()))
    state: dict[str, Fields] = {"SF_STATE": {"urb_entry_allocation_size": units - 1, "number_of_urb_entries": 4}}
    drawn = G45Draw([*TRIANGLE, *SECOND], sf=sf, ps=pixel_shader(*(f"g12.{n}<0,1,0>" for n in range(4))), state=state).run()
    first, second = int(drawn.bits[1, 1, 0]) & 0xFFF, int(drawn.bits[9, 9, 0]) & 0xFFF
    assert second - first == units, "in pairs of rows"


@pytest.mark.behaviour("G45-URB-08", shows="action")
@pytest.mark.parametrize(("stage", "change", "said"), [
    ("SF", {"urb_entry_allocation_size": 4}, "SF_STATE: 8 entries of 5 rows, 8 of 3 at the last draw, and no URB_FENCE since"),
    ("SF", {"number_of_urb_entries": 6}, "SF_STATE: 6 entries of 3 rows, 8 of 3 at the last draw, and no URB_FENCE since"),
    ("VS", {"urb_entry_allocation_size": 2}, "VS_STATE: 32 entries of 3 rows, 32 of 2 at the last draw, and no URB_FENCE since"),
    ("VS", {"number_of_urb_entries": 16}, "VS_STATE: 16 entries of 2 rows, 32 of 2 at the last draw, and no URB_FENCE since"),
    ("SF", {}, "")])  # fmt: skip
def test_sizes_and_counts_of_entries_need_another_fence(stage: str, change: Fields, said: str) -> None:
    """G45 1381, 2894, 2905: before the next draw; a fence behind the state that changed, or none where nothing of it did."""
    draw = G45Draw([*TRIANGLE, *TRIANGLE], primitives=({"vertex_count_per_instance": 3},) * 2)
    fence = pack("URB_FENCE", **{f"{name}_unit_urb_reallocation_request": 1 for name in ("vs", "gs", "clip", "sf")},
                 vs_fence=100, gs_fence=120, clip_fence=140, sf_fence=200)  # fmt: skip
    other = pack("3DSTATE_PIPELINED_POINTERS", **{**draw._pointers(), f"pointer_to_{stage.lower()}_state": 0x8000})
    at = {"VS": 0x000, "SF": 0x0C0}[stage]
    changed = G45Draw(TRIANGLE, state={f"{stage}_STATE": change})._general()[at : at + 0x20]
    draw.before, draw.patch = [fence], {(2 << 20) + 0x8000: changed}
    draw.between = [other]
    remarks = "\n".join(draw.run().gpu.remarks)
    assert said in remarks and bool(said) == bool(remarks)
    draw.between = [other, fence]
    assert not draw.run().gpu.remarks


@pytest.mark.behaviour("G45-URB-11", shows="action")
@pytest.mark.parametrize("used", [0, 1, 2, 3])
def test_entries_that_a_thread_completes_and_uses_go_on(used: int) -> None:
    """G45 1613: of two points, those whose message has Used; the others' entries are given back, and go nowhere."""
    lines = []
    for number in range(2):
        lines += [f"mov(1) g0.2<1>UD {POINTS << 2 | 3:#010x}UD {{ align1 nomask }};",
                  moves(1, f"g{1 + 2 * number}", f"g{2 + 2 * number}"),
                  urb_write(3, eot=number == 1, used=bool(used >> number & 1), allocate=number == 0)]  # fmt: skip
    drawn = G45Draw([vertex(2.5, 3.5), vertex(9.5, 5.5)], LINES, gs="\n".join(lines)).run()
    assert drawn.lit == [place for number, place in enumerate(((2, 3), (9, 5))) if used >> number & 1]
