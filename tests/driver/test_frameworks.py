"""Frameworks, unchanged: wgpu, taichi, ncnn and moderngl of an interpreter that has them, and ffmpeg's Vulkan filters.

    python3 -m venv /tmp/frameworks && /tmp/frameworks/bin/pip install wgpu taichi ncnn moderngl numpy
    SOFTGEN_FRAMEWORKS_PYTHON=/tmp/frameworks/bin/python make witness TESTS=tests/driver/test_frameworks.py
"""

import itertools
import json
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from tests.conftest import every
from tests.driver.running import DRIVER_CHOICES, PROGRAMS, Softgen, needs_driver, needs_shim
from tests.pictures.compare import compare

pytestmark = needs_shim
INTERPRETER = os.environ.get("SOFTGEN_FRAMEWORKS_PYTHON", "/usr/bin/python3")
LAVAPIPE = Path("/usr/share/vulkan/icd.d/lvp_icd.x86_64.json")
GPUS = ("kbl", "bdw", "icl")
APART = 1e-5  # in parts of the largest value
WIDTH, HEIGHT, FRAMES = 64, 64, 2  # whole groups of the filters: where a part of one has nothing to do, it passes their barriers by
SOURCE = ("-v", "error", "-f", "lavfi", "-i", f"testsrc2=size={WIDTH}x{HEIGHT}:rate=5:duration={FRAMES / 5}")
RAW = ("-f", "rawvideo", "-")
# avgblur_vulkan has no barrier between the planes of a picture, which share its memory: so it gets one plane
FORMATS = {"avgblur_vulkan": "gray8"}
FILTERS = ("hflip_vulkan", "vflip_vulkan", "transpose_vulkan", "scale_vulkan=w=32:h=32", "avgblur_vulkan", "gblur_vulkan",
           "chromaber_vulkan=1:1")  # fmt: skip
ENOUGH = 0.999  # of the values: chromaber_vulkan divides zero by zero in the middle of a picture
ROUNDED = 2  # units of 8-bit colour by which results may differ from lavapipe's: the filters interpolate between texels


@cache
def has(package: str) -> bool:
    look = f"import importlib.util as u, sys; sys.exit(u.find_spec({package!r}) is None)"
    return shutil.which(INTERPRETER) is not None and subprocess.run([INTERPRETER, "-c", look], check=False).returncode == 0


@pytest.mark.witness
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("framework", ["wgpu", "taichi", "ncnn"])
def test_a_framework_computes_what_numpy_does(framework: str, gpu: str, tmp_path: Path) -> None:
    needs_driver(gpu, "Vulkan")
    if not has(framework) or not has("numpy"):
        pytest.skip(f"{INTERPRETER} has no {framework} or no numpy (SOFTGEN_FRAMEWORKS_PYTHON names another interpreter)")
    report = tmp_path / "report"
    program = [INTERPRETER, str(PROGRAMS / "vulkan_framework.py"), framework]
    run = Softgen("--gpu", gpu, "--report", str(report), "--", *program, XDG_CACHE_HOME=str(tmp_path))
    assert run.finish(seconds=600) == 0, run.out + run.err
    found = json.loads(run.out.splitlines()[-1])
    assert found["difference"] <= APART and "llvmpipe" not in found["device"], found
    assert sum(kernel["dispatches"] for kernel in json.loads(report.read_text("utf-8"))["kernels"]) > 0, "it was done on the processor"


@pytest.mark.witness
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("framework, api", [("moderngl", "OpenGL"), ("wgpu", "Vulkan")])
def test_a_framework_draws_what_it_draws_on_the_processor(framework: str, api: str, gpu: str, tmp_path: Path) -> None:
    needs_driver(gpu, api)
    if not has(framework) or not has("numpy"):
        pytest.skip(f"{INTERPRETER} has no {framework} or no numpy (SOFTGEN_FRAMEWORKS_PYTHON names another interpreter)")
    program = [INTERPRETER, str(PROGRAMS / "framework_scene.py"), framework]
    usual = {name: text for name, text in os.environ.items() if name not in DRIVER_CHOICES}
    software = {"LIBGL_ALWAYS_SOFTWARE": "1", "GALLIUM_DRIVER": "llvmpipe", "VK_ICD_FILENAMES": str(LAVAPIPE)}
    expected, found = tmp_path / "expected.npy", tmp_path / "found.npy"
    said = subprocess.run([*program, str(expected)], env={**usual, **software}, capture_output=True, text=True, check=True).stdout
    run = Softgen("--gpu", gpu, "--", *program, str(found), XDG_CACHE_HOME=str(tmp_path))
    assert run.finish(seconds=600) == 0, run.out + run.err
    assert "llvmpipe" in said and "Intel" in run.out
    comparison = compare(np.load(found), np.load(expected))
    assert comparison.agrees and comparison.drawn > 4000, str(comparison)


def on_vulkan(chosen: str) -> list[str]:
    device = ["-init_hw_device", "vulkan=vk:0", "-filter_hw_device", "vk"]
    format = FORMATS.get(chosen, "yuv420p")
    return ["ffmpeg", *SOURCE, *device, "-vf", f"format={format},hwupload,{chosen},hwdownload,format={format}", *RAW]


def frames(command: list[str], **told: str) -> npt.NDArray[np.uint8]:
    usual = {name: text for name, text in os.environ.items() if name not in DRIVER_CHOICES}
    made = subprocess.run(command, env={**usual, **told}, capture_output=True, check=True).stdout
    return np.frombuffer(made, np.uint8)


@pytest.mark.parametrize("chosen, gpu", every(5, itertools.product(FILTERS, GPUS)))
def test_a_vulkan_filter_of_ffmpeg(chosen: str, gpu: str, tmp_path: Path) -> None:
    needs_driver(gpu, "Vulkan")
    if not shutil.which("ffmpeg") or not LAVAPIPE.exists():
        pytest.skip("not installed: ffmpeg mesa-vulkan-drivers")
    expected = frames(on_vulkan(chosen), VK_ICD_FILENAMES=str(LAVAPIPE))
    out = tmp_path / "frames"
    run = Softgen("--gpu", gpu, "--", *on_vulkan(chosen)[:-1], str(out))
    assert run.finish(seconds=300) == 0, run.err
    found = np.frombuffer(out.read_bytes(), np.uint8)
    assert found.size == expected.size > 0
    assert (np.abs(found.astype(int) - expected) <= ROUNDED).mean() >= ENOUGH
