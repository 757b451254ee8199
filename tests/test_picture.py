"""The pictures of `make demo`: plain OpenCL and OpenGL programs on the stock drivers, checked; and what is said without a driver."""

import importlib.util
import os
import shutil
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from tests.conftest import ROOT, in_ci
from tests.driver.running import needs_driver, needs_shim, softgen_run

WIDTH, HEIGHT = 160, 120


@pytest.fixture(scope="module")
def picture() -> Any:
    spec = importlib.util.spec_from_file_location("picture", ROOT / "examples" / "picture.py")
    assert spec and spec.loader
    module = sys.modules["picture"] = importlib.util.module_from_spec(spec)  # dataclasses look for their module there
    spec.loader.exec_module(module)
    return module


def pixels(png: bytes) -> npt.NDArray[np.uint8]:
    """The pixels of a PNG without filters, every checksum looked at."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, {}
    while at < len(png):
        size, name = struct.unpack_from(">I4s", png, at)
        data = png[at + 8 : at + 8 + size]
        assert zlib.crc32(name + data) == struct.unpack_from(">I", png, at + 8 + size)[0]
        chunks[name], at = data, at + 12 + size
    width, height, *rest = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert rest == [8, 2, 0, 0, 0] and list(chunks)[-1] == b"IEND"
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, 1 + 3 * width)
    assert not lines[:, 0].any()
    return lines[:, 1:].reshape(height, width, 3)


def inside() -> npt.NDArray[np.bool_]:
    """Points that stay, as the kernel computes them."""
    scale = np.float32(2.6) / np.float32(HEIGHT)
    cx = (np.arange(WIDTH, dtype=np.float32)[None, :] - np.float32(0.72) * WIDTH) * scale
    cy = (np.arange(HEIGHT, dtype=np.float32)[:, None] - np.float32(0.5) * HEIGHT) * scale
    x, y = np.zeros((2, HEIGHT, WIDTH), np.float32)
    stays = np.ones((HEIGHT, WIDTH), bool)
    for _ in range(255):
        stays &= x * x + y * y < 16
        x, y = np.where(stays, x * x - y * y + cx, x), np.where(stays, 2 * x * y + cy, y)
    return stays


def built(example: Any, gpu: str, folder: Path) -> Path:
    if packages := example.lacking(gpu):
        pytest.skip(f"not installed: {' '.join(packages)}")
    build = ["cc", "-O2", "-Wall", "-Werror", "-o", str(folder / example.name), str(example.source), *example.libraries]
    subprocess.run(build, check=True)
    return folder / str(example.name)


@needs_shim
@pytest.mark.parametrize("gpu", in_ci(["bdw", "kbl", "icl"], "icl"))
def test_the_picture_is_the_mandelbrot_set(gpu: str, picture: Any, tmp_path: Path) -> None:
    needs_driver(gpu, "OpenCL")
    program, file = built(picture.MANDELBROT, gpu, tmp_path), tmp_path / "picture.png"
    run = softgen_run("--gpu", gpu, "--", str(program), str(file), str(WIDTH), str(HEIGHT))
    assert run.process.returncode == 0 and run.out.startswith(f"{WIDTH} x {HEIGHT} pixels on Intel"), run.err
    found = pixels(file.read_bytes())
    black = ~found.any(axis=2) & inside()
    assert np.mean(black != inside()) < 0.002 and found[:, :, 2].max() > 200  # rounding decides a few at the edge


@needs_shim
@pytest.mark.parametrize("gpu", in_ci(["g45", "hsw", "kbl"], "hsw"))
def test_the_triangle_has_its_colours(gpu: str, picture: Any, tmp_path: Path) -> None:
    """At a point with the weights a, b and c of the corners, the colour is a red, b green and c blue."""
    needs_driver(gpu, "OpenGL")
    program, file = built(picture.TRIANGLE, gpu, tmp_path), tmp_path / "picture.ppm"
    run = softgen_run("--gpu", gpu, "--", str(program), str(file), str(WIDTH), str(HEIGHT))
    assert run.process.returncode == 0 and run.out.startswith(f"{WIDTH} x {HEIGHT} pixels on Mesa Intel"), run.err
    found = np.asarray(Image.open(file)).astype(int)
    x, y = (2 * (np.arange(size) + 0.5) / size - 1 for size in (WIDTH, HEIGHT))
    blue = (-y[:, None] + 0.8) / 1.7 + 0 * x  # rows from the top down
    red, green = ((1 - blue) / 2 + side * x / 1.8 for side in (-1, 1))
    weights = np.stack([red, green, blue], -1)
    inside, outside = (weights > 0.02).all(-1), (weights < -0.02).any(-1)
    assert np.abs(found - 255 * weights)[inside].max() <= 2 and (np.abs(found - [25.5, 30.6, 40.8]) <= 1)[outside].all()


def test_without_a_driver_it_says_how_to_get_one(picture: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("softgen.driver.uapi.kernel_tables.glob.glob", lambda pattern: [])
    monkeypatch.setattr(picture.os.path, "exists", lambda path: False)
    assert picture.main([]) == 0
    told = capsys.readouterr().out
    assert "apt-get install intel-opencl-icd ocl-icd-opencl-dev" in told
    assert "apt-get install libgl1-mesa-dri libegl-dev libgles-dev" in told


def test_a_gpu_without_opencl_shows_the_rest(picture: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(picture.Example, "lacking", lambda example, gpu: ["anything"])
    assert picture.main(["g45"]) == 0
    told = capsys.readouterr().out
    assert "No OpenCL driver supports g45" in told and "Here an OpenGL program" in told


def drivers(folder: Path, user: int, **told: str) -> subprocess.CompletedProcess[str]:
    """tools/drivers where neither driver nor headers are there, apt-get only writes down what it is asked for."""
    script = (ROOT / "tools" / "drivers").read_text("utf-8").replace("\n/etc/", "\n/nowhere/").replace("\n/usr/", "\n/nowhere/")
    for name, text in (("id", f"echo {user}"), ("apt-get", f"echo $* >> {folder}/asked; exit ${{FAILS:-0}}"), ("uname", "echo x86_64")):
        (folder / name).write_text(f"#!/bin/bash\n{text}\n")
        (folder / name).chmod(0o755)
    (folder / "timeout").write_text('#!/bin/bash\nshift; exec "$@"\n')
    (folder / "timeout").chmod(0o755)
    path = f"{folder}:{os.path.dirname(str(shutil.which('bash')))}"
    return subprocess.run(["bash", "-c", script], env={"PATH": path, **told}, capture_output=True, text=True, check=False)


def test_driver_packages_are_named_and_then_installed(tmp_path: Path) -> None:
    found = drivers(tmp_path, 0)
    packages = ("intel-opencl-icd ocl-icd-opencl-dev libgl1-mesa-dri libegl-dev libgles-dev mesa-vulkan-drivers libvulkan-dev "
                "glslang-tools")  # fmt: skip
    assert found.returncode == 0 and f"installing Debian packages: {packages}" in found.stdout
    assert (tmp_path / "asked").read_text() == f"update -qq\ninstall -y -qq --no-install-recommends {packages}\n"
    assert "going on without" in drivers(tmp_path, 0, FAILS="1").stdout


@pytest.mark.parametrize("user, told, said", [(0, {"DRIVERS": "skip"}, "leaves the system alone"), (1000, {}, "as root on Debian")])
def test_driver_packages_are_left_alone(user: int, told: dict[str, str], said: str, tmp_path: Path) -> None:
    found = drivers(tmp_path, user, **told)
    assert found.returncode == 0 and said in found.stdout and "intel-opencl-icd" in found.stdout and not (tmp_path / "asked").exists()
