"""OpenGL programs with geometry shaders, tessellation and transform feedback: pictures and buffers beside Mesa's software renderer."""

import re
import shlex
from functools import cache
from pathlib import Path

import pytest

from tests.driver.running import needs_driver, needs_shim, softgen_run
from tests.pictures.compare import compare
from tests.pictures.running import built, drawn, expected, needs, on_processor

pytestmark = needs_shim
GPUS = ("ivb", "hsw", "bdw", "skl", "kbl", "icl")
SCENES = ("strips", "fixed", "nothing", "instanced", "adjacent", "adjacent-strip", "sprites", "quads", "quads-even", "triangles",
          "isolines", "points", "no-control", "tessellated-strips")  # fmt: skip
FEEDBACK = ("streams", "feedback", "feedback-strip", "feedback-overflow", "feedback-points")
AGAIN = {"feedback": 12, "feedback-strip": 30, "feedback-overflow": 6}  # vertices that were captured
OTHER_ORDER = {"ivb": ("adjacent-strip",)}  # odd triangles begin elsewhere there (public: Mesa crocus_state.c)


@pytest.fixture(autouse=True)
def program() -> None:
    needs("gl_geometry")


@cache
def expected_text(scene: str) -> str:
    return on_processor("gl_geometry", scene, "/dev/null").stdout


@pytest.mark.parametrize("gpu", GPUS)
def test_pictures(gpu: str) -> None:
    needs_driver(gpu, "OpenGL")
    scenes = [scene for scene in SCENES if scene not in OTHER_ORDER.get(gpu, ())]
    found = drawn(gpu, "gl_geometry", *((scene,) for scene in scenes))
    results = {scene: compare(picture, expected("gl_geometry", scene)) for scene, picture in zip(scenes, found, strict=True)}
    assert all(result.agrees for result in results.values()), results
    assert len({picture.tobytes() for picture in found}) == len(scenes)


@pytest.mark.parametrize("gpu", GPUS)
def test_captured_vertices_and_queries(gpu: str, tmp_path: Path) -> None:
    """What is captured during a pause, or does not fit, is not; as many vertices as were captured are drawn again."""
    needs_driver(gpu, "OpenGL")
    script = " && ".join(shlex.join([built("gl_geometry"), scene, str(tmp_path / "picture")]) for scene in FEEDBACK)
    run = softgen_run("--gpu", gpu, "--", "/bin/sh", "-c", script)
    assert run.process.returncode == 0, run.out + run.err
    assert run.out == "".join(expected_text(scene) for scene in FEEDBACK)
    assert {scene: int(count) for scene, count in re.findall(r"(.*) again: (\d+)", run.err)} == AGAIN
