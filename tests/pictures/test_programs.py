"""The programs on Mesa's software renderers: what the pictures of GPUs are compared with."""

import subprocess

import numpy as np
import pytest

from tests.pictures import running
from tests.pictures.running import LAVAPIPE, built, expected, needs

GL_SCENES = ("triangle", "crossing", "near", "textured", "textured-nearest", "blended", "line-loop", "fan", "strip", "points", "indexed",
             "culled", "quads", "unfilled", "mip", "mip-by-level", "desktop-triangle")  # fmt: skip
VULKAN_SCENES = ("triangle", "crossing", "instanced", "blended")
SCENES = [("gl_scene", scene) for scene in GL_SCENES] + [("vulkan_scene", scene) for scene in VULKAN_SCENES]
CLEAR = (51, 82, 102, 255)


@pytest.mark.parametrize("program, scene", SCENES)
def test_every_scene_shows_something_else(program: str, scene: str) -> None:
    needs(program)
    picture, empty = expected(program, scene), expected(program, "clear")
    assert (empty == CLEAR).all() and picture.shape == (64, 64, 4)
    others = [expected(program, other) for other in ("clear", "triangle") if other != scene]
    assert scene == "desktop-triangle" or not any(np.array_equal(picture, other) for other in others)


def test_transfers_are_right_on_the_processor() -> None:
    needs("vulkan_transfer")
    run = subprocess.run([built("vulkan_transfer")], env={"VK_ICD_FILENAMES": str(LAVAPIPE)}, capture_output=True, text=True, check=False)
    assert run.returncode == 0 and "15 of 15 right" in run.stdout, run.stdout + run.stderr


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert running.lacking("gl_scene").split()[0] == "gcc" and "glslang-tools" in running.lacking("vulkan_scene")
