"""Draws of real captures, from the driver's commands to the picture: the same on every engine, and on every GPU of one program."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from softgen.inspect.report.pictures import picture
from softgen.memory.space import Space
from softgen.surface.image import SurfaceImage
from softgen.threads.compare.compare import ComparingDispatcher
from softgen.threads.dispatcher import EngineDispatcher
from softgen.threads.dispatcher_protocol import Dispatcher
from softgen.three_d.draw import draw_plans
from softgen.trace.file import open_trace
from softgen.trace.replay import replay
from tests.conftest import ROOT, SHARED
from tests.three_d.pixels.test_color_calculator import TESTS, Draw, buffers

Array = np.ndarray[Any, np.dtype[Any]]

DATA = ROOT / "tests" / "data"
TRACES = SHARED / "traces"
BACKGROUND = (0x33, 0x66, 0x99)
SIZE = 64
GLES = ["ivb", "hsw", "bdw", "skl", "kbl", "icl"]
ENGINES = [("t0", 1), ("t1", 1), ("t1", 4), ("auto", 2)]


def pictures(path: Path, dispatcher: Dispatcher) -> list[Array]:
    """The render target after each draw of a capture."""
    found: list[Array] = []

    def drawn(space: Space, targets: list[SurfaceImage]) -> None:
        found.extend(np.asarray(picture(space, target).convert("RGB")) for target in targets)

    report = replay(open_trace(path), groups=dispatcher, drawn=drawn)
    assert report.fine, [*report.failed, *map(str, report.faults), *map(str, report.unsupported)]
    return found


@cache
def last_picture(name: str) -> Array:
    """The picture after the last draw of a capture's first frame."""
    frames = pictures(TRACES / name, EngineDispatcher("t1", threads=1))
    return next(frame for frame in frames if frame.shape[:2] == (SIZE, SIZE) and len(np.unique(frame.reshape(-1, 3), axis=0)) > 2)


@cache
def vulkan_triangle() -> list[Array]:
    return pictures(DATA / "kbl-vk-tri", EngineDispatcher("reference"))


def test_the_triangle_covers_its_half_of_the_square_and_shows_its_corners_colours() -> None:
    """Corners at (6, 6), (58, 6) and (32, 57): red, green and blue; elsewhere the clear colour."""
    frame = vulkan_triangle()[-1]
    lit = np.any(frame != BACKGROUND, axis=-1)
    assert tuple(frame[0, 0]) == BACKGROUND and tuple(frame[63, 63]) == BACKGROUND
    assert [int(rows.min()) for rows in np.nonzero(lit)] == [6, 6] and [int(rows.max()) for rows in np.nonzero(lit)] == [56, 57]
    assert frame[6, 7].argmax() == 0 and frame[6, 56].argmax() == 1 and frame[55, 31].argmax() == 2
    assert frame[6, 7].max() > 230 and frame[6, 56].max() > 230 and frame[55, 31].max() > 230


@pytest.mark.parametrize(("engine", "threads"), ENGINES)
def test_every_engine_draws_the_same_picture(engine: str, threads: int) -> None:
    for ours, reference in zip(pictures(DATA / "kbl-vk-tri", EngineDispatcher(engine, threads=threads)), vulkan_triangle(), strict=True):
        np.testing.assert_array_equal(ours, reference)


def test_engines_are_compared_draw_by_draw() -> None:
    pictures(DATA / "kbl-vk-tri", ComparingDispatcher(EngineDispatcher("t0", threads=1), EngineDispatcher("t1", threads=1)))


@pytest.mark.skipif(not TRACES.exists(), reason="shared/traces is absent")
@pytest.mark.covering(1)
@pytest.mark.parametrize("gpu", GLES)
def test_one_gl_program_has_the_same_picture_on_every_gpu(gpu: str) -> None:
    np.testing.assert_array_equal(last_picture(f"{gpu}-gles-tri"), last_picture("kbl-gles-tri"))


@pytest.mark.skipif(not TRACES.exists(), reason="shared/traces is absent")
@pytest.mark.parametrize("gpu", GLES)
def test_one_vulkan_program_has_the_same_picture_on_every_gpu(gpu: str) -> None:
    np.testing.assert_array_equal(last_picture(f"{gpu}-vk-tri"), vulkan_triangle()[-1])


@pytest.mark.parametrize("shaded", [False, True])
def test_draws_without_threads_test_depth_early_whatever_the_alpha_test_says(shaded: bool) -> None:
    draw = Draw(9, tests=TESTS, common={"alpha_test_enable": 1, "alpha_test_function": 1}, **buffers(9))
    targets = draw_plans.pixel_targets(draw.state, shaded)
    assert (targets.late, bool(targets.depth_function)) == (shaded, not shaded)
