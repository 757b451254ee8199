"""glmark2-es2-drm: the first frame of its scenes beside llvmpipe's, and many frames with page flips."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from tests.driver.presenting import LLVMPIPE, presented
from tests.driver.running import needs_driver, needs_shim
from tests.pictures.compare import Picture, compare, smooth

PROGRAM = "glmark2-es2-drm"
SCENES = ("build", "texture", "shading", "bump", "effect2d", "desktop", "shadow", "conditionals", "buffer", "function", "ideas",
          "jellyfish", "loop", "pulsar", "refract", "terrain")  # fmt: skip
# Sampled at texel boundaries, where rounding decides between neighbours: as many must be as near as where mip levels are blended
ROUNDED = {"texture"}
NEAR, ENOUGH = 8, 0.98
# Details of a pixel or less all over, through mip levels that llvmpipe rounds up, half a step each: squares of BOX pixels must be as bright
COARSE, BOX, AS_BRIGHT = {"refract", "terrain"}, 8, 8.0
SINGLE = {"GALLIUM_OVERRIDE_CPU_CAPS": "sse4.1"}  # without F16C, llvmpipe computes mediump in 32 bits, as iris does


@pytest.fixture(autouse=True)
def installed() -> None:
    if shutil.which(PROGRAM) is None:
        pytest.skip(f"{PROGRAM} is not installed: apt-get install {PROGRAM}")


def first_frame(folder: Path, scene: str, *options: str, **environment: str) -> Picture:
    frames, said = presented(folder, *options, "--", PROGRAM, "-b", f"{scene}:nframes=1", **environment)
    assert len(frames) == 1 and f"[{scene}]" in said and "Failed" not in said, said
    return frames[0]


def boxes(picture: Picture) -> npt.NDArray[np.float64]:
    """The mean colours of squares."""
    height, width, _ = picture.shape
    means: npt.NDArray[np.float64] = picture.reshape(height // BOX, BOX, width // BOX, BOX, -1).mean((1, 3))
    return means


@needs_shim
@pytest.mark.witness
@pytest.mark.parametrize("gpu", ["kbl", "bdw", "icl", "g45"])
@pytest.mark.parametrize("scene", SCENES)
def test_the_first_frame_of_a_scene(scene: str, gpu: str, tmp_path: Path) -> None:
    needs_driver(gpu, "OpenGL")
    expected = first_frame(tmp_path / "llvmpipe", scene, **LLVMPIPE, **(SINGLE if scene in COARSE else {}))
    found = first_frame(tmp_path / gpu, scene, "--gpu", gpu)
    assert expected.max() - expected.min() > 100, "an empty frame"
    if scene in ROUNDED:
        near = np.abs(found.astype(int) - expected).max(-1)[smooth(expected)] <= NEAR
        assert near.mean() >= ENOUGH
    elif scene in COARSE:
        assert np.abs(boxes(found) - boxes(expected)).mean() <= AS_BRIGHT
    else:
        assert compare(found, expected).agrees, str(compare(found, expected))


@needs_shim
@pytest.mark.witness
def test_frames_are_flipped(tmp_path: Path) -> None:
    needs_driver("kbl", "OpenGL")
    frames, said = presented(tmp_path / "out", "--gpu", "kbl", "--", PROGRAM, "-b", "build:nframes=8")
    assert re.search(r"\[build\] nframes=8: FPS: \d+", said) and "Failed" not in said, said
    assert 3 <= len(frames) <= 8 and all((frame != frames[0]).any() for frame in frames[1:]), f"{len(frames)} frames"
