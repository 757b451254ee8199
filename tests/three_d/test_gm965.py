"""GM965, Gen4: draws of its own commands and state blocks, with the limits of its URB and threads."""

from __future__ import annotations

import numpy as np
import pytest

from softgen.bits.catalogue import layout
from softgen.bits.generation import device
from tests.three_d.g45_draw import RECTANGLES, TRIANGLES, Fields, G45Draw, put_out, vertex
from tests.three_d.test_g45_commands import FENCES, LEFT


@pytest.mark.parametrize("engine", ["reference", "t0", "t1"])
def test_a_draw_is_what_it_is_on_g45(engine: str) -> None:
    """Surface states of five dwords, a depth buffer command of five (G45 6889), no coordinate offsets."""
    lengths = {name: layout(name, 4.0).dwords for name in ("RENDER_SURFACE_STATE", "3DSTATE_DEPTH_BUFFER")}
    assert lengths == {"RENDER_SURFACE_STATE": 5, "3DSTATE_DEPTH_BUFFER": 5}
    clip = put_out((0, 1, 2), TRIANGLES)
    depth = np.full((16, 16), 1.0, np.float32)
    own, other = (G45Draw(LEFT, clip=clip, depth=depth, device=name).run(engine) for name in ("gm965", "g45"))
    assert own.lit and np.array_equal(own.bits, other.bits) and np.array_equal(own.depth, other.depth)


@pytest.mark.parametrize(("stage", "fields", "text"), [
    ("VS", {"number_of_urb_entries": 32}, ""), ("VS", {"number_of_urb_entries": 64}, "it must be one of 8, 12, 16, 32"),
    ("VS", {"maximum_number_of_threads": 15}, ""), ("VS", {"maximum_number_of_threads": 16}, "the stage may have 16"),
])  # fmt: skip
def test_vertex_shader_entries_and_threads(stage: str, fields: Fields, text: str) -> None:
    """[Pre-DevCTG-B] (G45 2889, 2910-2912)."""
    state: dict[str, Fields] = {"URB_FENCE": {**FENCES, "vs_fence": 200, "gs_fence": 216, "clip_fence": 232, "sf_fence": 250},
                                f"{stage}_STATE": fields}  # fmt: skip
    remarks = [remark for remark in G45Draw(LEFT, state=state, device="gm965").run().gpu.remarks if f"{stage}_STATE: " in remark]
    assert [text in remark for remark in remarks] == ([True] if text else [])


@pytest.mark.parametrize(("name", "mode", "counted"), [("gm965", 1, 1), ("gm965", 4, 0), ("g45", 1, 0)])
def test_invocations_of_clip_are_threads(name: str, mode: int, counted: int) -> None:
    """[Pre-DevCTG] counts CLIP threads (G45 1683, 4805); later, kernels count."""
    state: dict[str, Fields] = {"CLIP_STATE": {"clip_mode": mode, "clipper_statistics_enable": 1}}
    drawn = G45Draw(LEFT, clip=put_out((0, 1, 2), TRIANGLES), state=state, device=name).run()
    assert drawn.lit and drawn.register("CL_INVOCATION_COUNT") == counted


def test_the_device() -> None:
    """Mesa's device info: 256 rows of 512 bits, 8 EUs of 4 threads; Linux i915: no video engine."""
    found = device("gm965")
    assert found.limit("urb_kib") * 1024 == 256 * 64 and found.limit("pixel_threads") == found.limit("eus") * found.limit("threads") == 32


@pytest.mark.behaviour("G45-CC-06", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("engine", ["reference", "t0", "t1"])
@pytest.mark.parametrize("disabled", [0, 1])
@pytest.mark.parametrize(("format", "across"), [("B8G8R8A8_UNORM", 4), ("B5G6R5_UNORM", 8)])
@pytest.mark.parametrize("origin", [(4, 4), (6, 7), (3, 2), (9, 5)])
def test_depth_is_where_it_is_without_the_drawing_rectangles_origin(
    origin: tuple[int, int], format: str, across: int, disabled: int, engine: str
) -> None:
    """G45 7773-7780: colours are moved by the origin; depth, where that is disabled, by its lowest bits alone: two of x and y, three of x
    beside colours of 16 bits."""
    x, y = origin
    state: dict[str, Fields] = {
        "3DSTATE_DRAWING_RECTANGLE": {"drawing_rectangle_origin_x": x, "drawing_rectangle_origin_y": y},
        "3DSTATE_DEPTH_BUFFER": {"depth_buffer_coordinate_offset_disable": disabled},
        "COLOR_CALC_STATE": {"depth_test_enable": 1, "depth_test_function": 0, "depth_buffer_write_enable": 1}}  # fmt: skip
    corners = [vertex(5, 4, 0.25), vertex(0, 4, 0.25), vertex(0, 0, 0.25)]
    drawn = G45Draw(corners, RECTANGLES, state, depth=np.ones((16, 16), np.float32), format=format, device="gm965").run(engine)
    assert set(drawn.lit) == {(x + column, y + row) for column in range(5) for row in range(4)}
    left, top = (x % across, y % 4) if disabled else (x, y)
    found = {(int(column), int(row)) for row, column in np.argwhere(drawn.depth == 0.25)}
    assert found == {(left + column, top + row) for column in range(5) for row in range(4)}
