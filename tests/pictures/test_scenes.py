"""OpenGL and Vulkan programs with stock Mesa on every GPU draw what Mesa's software renderers draw, the same bits on every engine."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.conftest import in_ci
from tests.driver.running import needs_driver, needs_shim, softgen_run
from tests.pictures.compare import compare
from tests.pictures.running import built, drawn, expected, needs
from tests.pictures.test_programs import GL_SCENES, VULKAN_SCENES

pytestmark = needs_shim
GPUS = ("gm965", "g45", "ivb", "hsw", "bdw", "skl", "kbl", "icl")
VULKAN = GPUS[2:]  # those with a Vulkan driver
SIZES = ((), ("width=1000", "height=700"))
DEPTH = {"crossing": ("depth=24",), "near": ("depth=16",)}
CIRCUMSTANCES = (("clear=0,1,1,1",), ("clear=1,0.5,0.25,0",), ("width=1000", "height=700"), ("width=61", "height=3"), ("frames=3",),
                 ("target=texture",), ("target=pbuffer", "depth=24"), ("platform=gbm",), ("platform=device",))  # fmt: skip
PLAIN = {"INTEL_DEBUG": "norbc,nohiz,nofc"}  # no colour compression, no HiZ, no fast clears
SAME = (("triangle", "depth=24"), ("textured", "depth=24"), ("near",), ("line-loop",), ("triangle", "width=1000", "height=700"))


def needs_gl(gpu: str) -> None:
    needs("gl_scene")
    needs_driver(gpu, "OpenGL")


def disagreements(gpu: str, program: str, *scenes: tuple[str, ...], **more: str) -> list[str]:
    """Scenes that look different from what Mesa's software renderers draw."""
    found = zip(scenes, drawn(gpu, program, *scenes, **more), strict=True)  # type: ignore[arg-type]
    results = {" ".join(scene): compare(picture, expected(program, *scene)) for scene, picture in found}
    return [f"{scene}: {result}" for scene, result in results.items() if not result.agrees]


@pytest.mark.parametrize("gpu", in_ci(GPUS, "g45", "hsw", "icl"))
def test_scenes_of_opengl(gpu: str) -> None:
    needs_gl(gpu)
    scenes = [(scene, *DEPTH.get(scene, ())) for scene in GL_SCENES]
    assert not disagreements(gpu, "gl_scene", *scenes)


@pytest.mark.parametrize("gpu", in_ci(GPUS, "kbl"))
def test_a_triangle_in_other_circumstances(gpu: str) -> None:
    """Other colours, sizes, render targets and EGL platforms; frame after frame."""
    needs_gl(gpu)
    assert not disagreements(gpu, "gl_scene", *(("triangle", *options) for options in CIRCUMSTANCES))


@pytest.mark.parametrize("gpu, size", in_ci(itertools.product(VULKAN, SIZES), ("ivb", SIZES[0]), ("kbl", SIZES[0])))
def test_scenes_of_vulkan(gpu: str, size: tuple[str, ...]) -> None:
    needs("vulkan_scene")
    needs_driver(gpu, "Vulkan")
    scenes = [(scene, *size) for scene in VULKAN_SCENES]
    assert not disagreements(gpu, "vulkan_scene", *scenes)


@pytest.mark.parametrize("gpu", in_ci(VULKAN, "ivb", "icl"))
def test_transfers_of_vulkan(gpu: str) -> None:
    """Fills, copies, clears and blits, which drivers draw."""
    needs("vulkan_transfer")
    needs_driver(gpu, "Vulkan")
    run = softgen_run("--gpu", gpu, "--", built("vulkan_transfer"))
    assert run.process.returncode == 0 and "15 of 15 right" in run.out, run.out + run.err


@pytest.mark.parametrize("gpu", in_ci(GPUS, "kbl"))
def test_every_engine_draws_the_same_bits(gpu: str) -> None:
    """Also with one host thread and with several, and without colour compression, HiZ and fast clears."""
    needs_gl(gpu)
    usual = drawn(gpu, "gl_scene", *SAME)
    ways = [(("--engine", "t0"), {}), (("--engine", "t1"), {}), (("--threads", "1"), {}), (("--threads", "4"), {}), ((), PLAIN)]
    for options, environment in ways:
        found = drawn(gpu, "gl_scene", *SAME, options=options, **environment)
        assert [np.array_equal(*both) for both in zip(found, usual, strict=True)] == [True] * len(SAME), (options, environment)


@pytest.mark.witness
@pytest.mark.parametrize("gpu", GPUS)
def test_the_reference_draws_the_same_bits(gpu: str) -> None:
    needs_gl(gpu)
    scenes = [scene for scene in SAME if "width=1000" not in scene]
    found, usual = drawn(gpu, "gl_scene", *scenes, options=("--engine", "reference"), seconds=1800), drawn(gpu, "gl_scene", *scenes)
    assert [np.array_equal(*both) for both in zip(found, usual, strict=True)] == [True] * len(scenes)


@pytest.mark.parametrize("gpu", in_ci(GPUS, "hsw"))
def test_the_reference_draws_the_same_bits_in_sampled_tiles_of_a_large_picture(gpu: str) -> None:
    needs_gl(gpu)
    large = ("triangle", "width=1000", "height=700")
    found = drawn(gpu, "gl_scene", large, options=("--compare", "t1,reference", "--compare-tiles", "2"), seconds=1800)
    assert np.array_equal(found[0], drawn(gpu, "gl_scene", large)[0])


@pytest.mark.parametrize("gpu", in_ci(["gm965", "g45", "kbl"], "gm965"))
def test_images_of_a_run(gpu: str, tmp_path: Path) -> None:
    """Among the pictures is the one that the program read back."""
    needs_gl(gpu)
    file, folder = tmp_path / "picture.pam", tmp_path / "images"
    run = softgen_run("--gpu", gpu, "--images", str(folder), "--json", "--", built("gl_scene"), "triangle", str(file))
    report = json.loads(run.err.splitlines()[-1])
    assert run.process.returncode == 0 and report["images"] and f"in {folder}" in run.err, run.err
    wanted = expected("gl_scene", "triangle")
    pictures = [np.asarray(Image.open(path)) for path in report["images"]]
    assert any(picture.shape == wanted.shape and compare(picture, wanted).agrees for picture in pictures)
