"""OpenGL and Vulkan with geometry shaders, tessellation and transform feedback: pictures and buffers beside Mesa's software renderers."""

import re
import shlex
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import in_ci
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


VULKAN_SCENES = ("geometry", "tessellation", "tessellated-geometry", "feedback")
INSTANCES = {"geometry": 12, "tessellation": 0, "tessellated-geometry": 594, "feedback": 0}  # of geometry shaders, three for each object


def needs_api(program: str, gpu: str) -> None:
    needs(program)
    needs_driver(gpu, "Vulkan" if program.startswith("vulkan") else "OpenGL")


@cache
def expected_text(program: str, scene: str) -> str:
    return on_processor(program, scene, "/dev/null").stdout


def check_pictures(gpu: str, program: str, scenes: Sequence[str]) -> None:
    needs_api(program, gpu)
    found = drawn(gpu, program, *((scene,) for scene in scenes))
    results = {scene: compare(picture, expected(program, scene)) for scene, picture in zip(scenes, found, strict=True)}
    assert all(result.agrees for result in results.values()), results
    assert len({picture.tobytes() for picture in found}) == len(scenes)


def printed(gpu: str, program: str, scenes: Sequence[str], picture: Path) -> str:
    """What a program prints on standard error. On standard output it is the same as with software renderers."""
    needs_api(program, gpu)
    script = " && ".join(shlex.join([built(program), scene, str(picture)]) for scene in scenes)
    run = softgen_run("--gpu", gpu, "--", "/bin/sh", "-c", script)
    assert run.process.returncode == 0, run.out + run.err
    assert run.out == "".join(expected_text(program, scene) for scene in scenes)
    return run.err


@pytest.mark.parametrize("gpu", in_ci(GPUS, "ivb", "icl"))
def test_pictures(gpu: str) -> None:
    check_pictures(gpu, "gl_geometry", [scene for scene in SCENES if scene not in OTHER_ORDER.get(gpu, ())])


@pytest.mark.parametrize("gpu", in_ci(GPUS, "ivb", "kbl"))
def test_captured_vertices_and_queries(gpu: str, tmp_path: Path) -> None:
    """What is drawn during a pause is not captured, nor what does not fit; as many vertices as were captured are drawn again."""
    said = printed(gpu, "gl_geometry", FEEDBACK, tmp_path / "picture")
    assert {scene: int(count) for scene, count in re.findall(r"(.*) again: (\d+)", said)} == AGAIN


@pytest.mark.parametrize("gpu", in_ci(GPUS, "hsw", "bdw"))
def test_pictures_of_vulkan(gpu: str) -> None:
    check_pictures(gpu, "vulkan_geometry", VULKAN_SCENES)


@pytest.mark.parametrize("gpu", in_ci(GPUS, "hsw", "icl"))
def test_captured_vertices_and_queries_of_vulkan(gpu: str, tmp_path: Path) -> None:
    """Pipeline statistics, too. The second capture begins where the first has ended, by the counter in memory."""
    said = printed(gpu, "vulkan_geometry", VULKAN_SCENES, tmp_path / "picture")
    assert {scene: int(count) for scene, count in re.findall(r"(.*): (\d+) geometry shader invocations", said)} == INSTANCES
