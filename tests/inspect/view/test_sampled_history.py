"""Pixel history where pixels have several samples: bytes, threads and tests of each."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from softgen.errors import UsageError
from softgen.inspect.session import Session
from softgen.inspect.view.data import ViewData
from tests.inspect.view.own_capture import write_capture_of
from tests.three_d.own_draw import ATTRIBUTE, BATCH, DATA, DEPTH, SIZE, OwnDraw, pixel_shader, vertex
from tests.three_d.samples.test_sampled_draws import EACH, SIDE, TRIANGLE, masks, state_of
from tests.three_d.test_forced_samples import sixteenths

COUNT = 4
CLEAR, WHITE = "ff000000", "ffffffff"  # red without alpha
AUX = {"auxiliary_surface_mode": 1, "auxiliary_surface_base_address": DATA, "auxiliary_surface_qpitch": 8, "red_clear_color": 0x3F800000}
BUFFER = {"surface_type": 1, "surface_format": 1, "surface_base_address": DEPTH, "surface_pitch": 511, "width": 15, "height": 15}
LESS = {"depth_test_enable": 1, "depth_test_function": 1 + 1}
KILLS = {"pixel_shader_valid": 1, "attribute_enable": 1, "pixel_shader_kills_pixel": 1, "omask_present_to_render_target": 1}
NOT_3 = pixel_shader(("g100<8,8,1>", *ATTRIBUTE), before="mov(8) g100<1>UW 0xfff7UW { align1 1Q };")


def view(path: Path, ps: str, **more: Any) -> tuple[ViewData, str]:
    """The data of a draw that covers part of a target that is clear; and the draw's number in names."""
    patch = {DATA: b"\xff" * 0x4000, DEPTH: np.full(SIZE // 4, 0.5, np.float32).tobytes()}
    state = state_of(COUNT, sixteenths(COUNT), **{"RENDER_SURFACE_STATE": AUX, **more})
    corners = [vertex(x, y, z=depth(x, y)) for x, y in TRIANGLE]
    draw = OwnDraw("kbl", corners, state, ps=ps, format="R8G8B8A8_UNORM", pitch=128, patch=patch)
    data = ViewData(Session(write_capture_of(path / "capture", "kbl", draw.memory(), BATCH)), count=False)
    (event,) = data.session.work()
    return data, f"{event.position.submission}-{event.position.command}"


def depth(x: float, y: float) -> float:
    return 0.25 + x / 32 - y / 64


@pytest.fixture(scope="module")
def tested(tmp_path_factory: pytest.TempPathFactory) -> tuple[ViewData, str]:
    """Late depth tests, and a shader that leaves sample 3 out."""
    return view(tmp_path_factory.mktemp("samples"), NOT_3, **{"3DSTATE_DEPTH_BUFFER": BUFFER, "3DSTATE_WM_DEPTH_STENCIL": LESS,
                                                             "3DSTATE_PS_EXTRA": KILLS})  # fmt: skip


def edges() -> list[tuple[int, int]]:
    """A pixel with all samples covered, one with some, of those that depth cuts through one, and one with none."""
    lit, middle = masks(COUNT), [(x, y) for y in range(SIDE) for x in range(SIDE)]
    below = {(x, y): sum(depth(x + px / 16, y + py / 16) < 0.5 for px, py in sixteenths(COUNT)[:3]) for x, y in middle}
    whole = [(x, y) for x, y in middle if lit[y, x] == 15]
    return [next(at for at in whole if below[at] == 3), next((x, y) for x, y in middle if 0 < lit[y, x] < 15),
            next(at for at in whole if 0 < below[at] < 3), (0, 0)]  # fmt: skip


@pytest.mark.parametrize(("x", "y"), edges())
def test_every_sample_names_the_test_that_it_fails(tested: tuple[ViewData, str], x: int, y: int) -> None:
    data, draw = tested
    rows, lit = data.json(f"history-{draw}-0-{x}-{y}"), int(masks(COUNT)[y, x])
    failed = {n: "output mask" if n == 3 else "" if depth(x + px / 16, y + py / 16) < 0.5 else "depth test"
              for n, (px, py) in enumerate(sixteenths(COUNT)) if lit >> n & 1}  # fmt: skip
    assert rows[0]["after"] == " ".join([CLEAR] * COUNT) and rows[0]["color"] == [255, 0, 0, 0]
    if not lit:
        assert len(rows) == 1
        return
    assert {fragment["sample"]: fragment["failed"] for fragment in rows[1]["fragments"]} == failed
    assert rows[1]["after"].split() == [WHITE if failed.get(n) == "" else CLEAR for n in range(COUNT)]
    for fragment in rows[1]["fragments"]:
        assert not fragment["failed"] or all(write["after"] == CLEAR for write in fragment["writes"])


def test_one_sample_has_its_own_history(tested: tuple[ViewData, str]) -> None:
    data, draw = tested
    x, y = edges()[0]
    rows = data.json(f"history-{draw}-0-{x}-{y}-2")
    assert [row["after"] for row in rows] == [CLEAR, WHITE] and [each["sample"] for each in rows[1]["fragments"]] == [2]
    for name, says in ((f"{x}-{y}-4", "a pixel of the target has 4"), (f"{SIDE}-0", "is outside the target of 16 x 16")):
        with pytest.raises(UsageError, match=says):
            data.json(f"history-{draw}-0-{name}")


def test_threads_of_samples_are_told_apart(tmp_path: Path) -> None:
    data, draw = view(tmp_path, pixel_shader(), **{"3DSTATE_PS_EXTRA": EACH})
    x, y = edges()[0]
    fragments = data.json(f"history-{draw}-0-{x}-{y}")[1]["fragments"]
    assert [each["sample"] for each in fragments] == [0, 1, 2, 3] and len({(each["thread"], each["lane"]) for each in fragments}) == 4
    assert all(each["writes"][-1]["after"] == WHITE and not each["failed"] for each in fragments)
