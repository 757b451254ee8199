"""OpenGL and Vulkan programs with stock Mesa on every GPU draw what Mesa's software renderers draw, the same bits on every engine."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.driver.running import needs_driver, needs_shim, softgen_run
from tests.pictures.compare import compare
from tests.pictures.running import built, drawn, expected, needs
from tests.pictures.test_programs import GL_SCENES, VULKAN_SCENES

pytestmark = needs_shim
GPUS = ("g45", "ivb", "hsw", "bdw", "skl", "kbl", "icl")
VULKAN = GPUS[1:]  # those with a Vulkan driver
DEPTH = {"crossing": "depth=24", "near": "depth=24"}
PLAIN = {"INTEL_DEBUG": "norbc,nohiz,nofc"}  # no colour compression, no HiZ, no fast clears
ENGINES = (("--engine", "t0"), ("--engine", "t1"), ("--threads", "1"), ("--threads", "4"))


def needs_gl(gpu: str) -> None:
    needs("gl_scene")
    needs_driver(gpu, "OpenGL")


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("scene", GL_SCENES)
def test_a_scene_of_opengl(scene: str, gpu: str) -> None:
    needs_gl(gpu)
    options = (scene, DEPTH.get(scene, "depth=0"))
    result = compare(drawn(gpu, "gl_scene", *options), expected("gl_scene", *options))
    assert result.agrees, result


@pytest.mark.parametrize("gpu", VULKAN)
@pytest.mark.parametrize("scene", VULKAN_SCENES)
def test_a_scene_of_vulkan(scene: str, gpu: str) -> None:
    needs("vulkan_scene")
    needs_driver(gpu, "Vulkan")
    result = compare(drawn(gpu, "vulkan_scene", scene), expected("vulkan_scene", scene))
    assert result.agrees, result


@pytest.mark.parametrize("gpu", VULKAN)
def test_transfers_of_vulkan(gpu: str) -> None:
    """Fills, copies, clears and blits, which drivers draw."""
    needs("vulkan_transfer")
    needs_driver(gpu, "Vulkan")
    run = softgen_run("--gpu", gpu, "--", built("vulkan_transfer"))
    assert run.process.returncode == 0 and "15 of 15 right" in run.out, run.out + run.err


@pytest.mark.parametrize("gpu", GPUS)
def test_every_engine_draws_the_same_bits(gpu: str) -> None:
    needs_gl(gpu)
    usual = drawn(gpu, "gl_scene", "triangle", "depth=24")
    for options in ENGINES:
        assert np.array_equal(drawn(gpu, "gl_scene", "triangle", "depth=24", options=options), usual), options
    assert np.array_equal(drawn(gpu, "gl_scene", "triangle", "depth=24", **PLAIN), usual), "without compression, HiZ and fast clears"


@pytest.mark.witness
@pytest.mark.parametrize("gpu", GPUS)
def test_the_reference_draws_the_same_bits(gpu: str) -> None:
    needs_gl(gpu)
    found = drawn(gpu, "gl_scene", "triangle", "depth=24", options=("--engine", "reference"), seconds=900)
    assert np.array_equal(found, drawn(gpu, "gl_scene", "triangle", "depth=24"))


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("options", [("clear=0,1,1,1",), ("clear=1,0.5,0.25,0",), ("width=1000", "height=700"), ("frames=3",),
                                     ("target=texture",), ("target=pbuffer",), ("platform=gbm",)], ids="-".join)  # fmt: skip
def test_a_triangle_in_other_circumstances(options: tuple[str, ...], gpu: str) -> None:
    needs_gl(gpu)
    result = compare(drawn(gpu, "gl_scene", "triangle", *options), expected("gl_scene", "triangle", *options))
    assert result.agrees, result


@pytest.mark.parametrize("gpu", ["g45", "kbl"])
def test_images_of_a_run(gpu: str, tmp_path: Path) -> None:
    """The last picture is what the program read back, upside down."""
    needs_gl(gpu)
    file, folder = tmp_path / "picture.pam", tmp_path / "images"
    run = softgen_run("--gpu", gpu, "--images", str(folder), "--json", "--", built("gl_scene"), "triangle", str(file))
    report = json.loads(run.err.splitlines()[-1])
    assert run.process.returncode == 0 and report["images"] and f"in {folder}" in run.err, run.err
    pictures = [np.asarray(Image.open(path)) for path in report["images"]]
    wanted = expected("gl_scene", "triangle")
    assert any(picture.shape == wanted.shape and compare(picture, wanted).agrees for picture in pictures)
