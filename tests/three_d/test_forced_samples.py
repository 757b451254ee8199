"""Target-independent rasterization: polygons tested at several samples of a pixel, drawn to targets of one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from softgen.errors import Unsupported
from tests.three_d.own_draw import ATTRIBUTE, LINES, RECTANGLES, TRIANGLES, OwnDraw, pixel_shader, vertex

GPUS = ["bdw", "kbl", "icl"]
GROUPS = {2: ("samples_2x",), 4: ("samples_4x",), 8: ("samples_8x", "samples_8x_from_4"), 16: ("samples_16x",)}
CODES = {2: 2, 4: 3, 8: 4, 16: 5}
TRIANGLE = [(1.25, 2.5), (14.0, 3.0), (4.75, 13.125)]  # clockwise
SHADER = pixel_shader(["g2<8,8,1>", *ATTRIBUTE[1:]]).replace(">F", ">UD")  # red is the input coverage mask


def sixteenths(count: int) -> list[tuple[int, int]]:
    """Places of samples from the middle outwards, none twice."""
    random = np.random.default_rng(count)
    places = [(int(x), int(y)) for x, y in random.permutation([(x, y) for x in range(16) for y in range(16)])[:count]]
    return sorted(places, key=lambda place: (place[0] - 8) ** 2 + (place[1] - 8) ** 2)


def state_of(count: int, places: list[tuple[int, int]], **more: Any) -> dict[str, Any]:
    samples = [{"x_offset": x / 16, "y_offset": y / 16} for x, y in places]
    size = len(samples) // len(GROUPS[count])
    pattern = {name: samples[size * n : size * (n + 1)] for n, name in enumerate(GROUPS[count])}
    return {"3DSTATE_RASTER": {"cull_mode": 1, "forced_sample_count": CODES[count]}, "3DSTATE_SAMPLE_PATTERN": pattern,
            "3DSTATE_VF_TOPOLOGY": {"primitive_topology_type": TRIANGLES}, "3DSTATE_SAMPLE_MASK": {"sample_mask": 0xFFFF},
            "3DSTATE_PS_EXTRA": {"pixel_shader_valid": 1, "attribute_enable": 1, "input_coverage_mask_state": 1},
            "RENDER_SURFACE_STATE": {"surface_format": 2}, **more}  # fmt: skip


def covered(corners: list[tuple[float, float]], x: float, y: float) -> bool:
    """Whether a place is inside a clockwise polygon; left and top edges belong to it."""
    inside = True
    for (ax, ay), (bx, by) in zip(corners, corners[1:] + corners[:1], strict=True):
        side = (bx - ax) * (y - ay) - (by - ay) * (x - ax)
        inside = inside and (side > 0 or side == 0 and (by < ay or by == ay and bx > ax))
    return inside


def masks(corners: list[tuple[float, float]], places: list[tuple[int, int]], counted: int = 0xFFFF) -> Any:
    found = np.zeros((16, 16), np.uint32)
    for y in range(16):
        for x in range(16):
            found[y, x] = sum(covered(corners, x + px / 16, y + py / 16) << n for n, (px, py) in enumerate(places) if counted >> n & 1)
    return found


@pytest.mark.behaviour("BDW-WM-05", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("engine", ["reference", "t0", "t1"])
@pytest.mark.parametrize(("gpu", "count"), [(gpu, count) for gpu in GPUS for count in (2, 4, 8, 16) if (gpu, count) != ("bdw", 16)])
def test_pixels_are_covered_if_one_of_their_samples_is(gpu: str, count: int, engine: str) -> None:
    """Threads are of pixels, and see which samples are covered."""
    places = sixteenths(count)
    drawn = OwnDraw(gpu, [vertex(x, y) for x, y in TRIANGLE], state_of(count, places), ps=SHADER).run(engine)
    wanted = masks(TRIANGLE, places)
    np.testing.assert_array_equal(drawn.texels(np.uint32)[:, :, 0], wanted)
    each = 4 if gpu == "bdw" else 1
    assert drawn.register("PS_INVOCATION_COUNT") == each * (wanted != 0).sum()
    assert (wanted != 0).sum() > (wanted == (1 << count) - 1).sum() > 0


@pytest.mark.behaviour("BDW-WM-05", shows="action")
@pytest.mark.parametrize("gpu", GPUS)
def test_a_sample_mask_and_rectangles(gpu: str) -> None:
    """Samples that the mask leaves out cover nothing; a rectangle's fourth corner counts too."""
    places = sixteenths(4)
    box = [(2.5, 3.25), (9.75, 3.25), (9.75, 12.5), (2.5, 12.5)]
    corners = [vertex(x, y) for x, y in (box[2], box[3], box[0])]
    for mask in (0b1111, 0b0110, 0b1000, 0):
        more = {"3DSTATE_VF_TOPOLOGY": {"primitive_topology_type": RECTANGLES}, "3DSTATE_SAMPLE_MASK": {"sample_mask": mask}}
        drawn = OwnDraw(gpu, corners, state_of(4, places, **more), ps=SHADER).run()
        np.testing.assert_array_equal(drawn.texels(np.uint32)[:, :, 0], masks(box, places, mask))


def test_lines_of_one_sample_are_drawn() -> None:
    state = {"3DSTATE_VF_TOPOLOGY": {"primitive_topology_type": LINES}, "3DSTATE_RASTER": {"forced_sample_count": 1}}
    assert len(OwnDraw("kbl", [vertex(2, 2), vertex(12, 2)], state).run().lit) >= 8


def test_what_is_refused() -> None:
    places = sixteenths(4)
    lines = "forced_sample_count 4 of lines or points"
    outlined = {"cull_mode": 1, "forced_sample_count": CODES[4]}
    for more, words in (({"3DSTATE_VF_TOPOLOGY": {"primitive_topology_type": LINES}}, lines),
                        ({"3DSTATE_RASTER": {**outlined, "front_face_fill_mode": 1}}, lines),
                        ({"3DSTATE_RASTER": {**outlined, "back_face_fill_mode": 2}}, lines),
                        ({"3DSTATE_WM_DEPTH_STENCIL": {"depth_test_enable": 1}}, "has depth_test_enable 1")):  # fmt: skip
        with pytest.raises(Unsupported, match=words):
            OwnDraw("kbl", [vertex(x, y) for x, y in TRIANGLE], state_of(4, places, **more)).run()
