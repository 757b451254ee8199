"""Filters of ffmpeg through unmodified VA-API drivers: what they leave of a clip, beside ffmpeg's own filters or sums."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.codec.record import VAAPI, ffmpeg
from tests.conftest import ROOT, in_ci

DRIVERS = Path("/usr/lib/x86_64-linux-gnu/dri")
WIDTH, HEIGHT, FRAMES = 176, 144, 2
Frames = np.ndarray[Any, np.dtype[np.uint8]]


@cache
def clip(folder: Path) -> Path:
    """A soft moving picture."""
    path = folder / "clip.mp4"
    source = f"testsrc2=size={WIDTH}x{HEIGHT}:rate=5,gblur=sigma=2"
    coder = ["-frames:v", str(FRAMES), "-c:v", "libx264", "-qp", "8", "-pix_fmt", "yuv420p", str(path)]
    subprocess.run(ffmpeg("-f", "lavfi", "-i", source, *coder), check=True)
    return path


def raw(command: list[str], size: int, **more: Any) -> Frames:
    ran = subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd=ROOT, **more)
    return np.frombuffer(ran.stdout, np.uint8).reshape(-1, size)


def filtered(gpu: str, driver: str, folder: Path, filters: str, size: int, frames: int = FRAMES) -> Frames:
    """Frames (NV12) that a driver makes on softgen."""
    if shutil.which("ffmpeg") is None or not (DRIVERS / f"{driver}_drv_video.so").exists():
        pytest.skip(f"ffmpeg or the VA-API driver {driver} is not installed")
    output = "-frames:v", str(frames), "-vf", f"{filters},hwdownload,format=nv12", "-f", "rawvideo", "-"
    run = [sys.executable, "-m", "softgen", "run", "--gpu", gpu, "--", *ffmpeg(*VAAPI, "-i", str(clip(folder)), *output)]
    return raw(run, size, env={**os.environ, "LIBVA_DRIVER_NAME": driver}, timeout=300)


def software(folder: Path, filters: str, size: int) -> Frames:
    return raw(ffmpeg("-i", str(clip(folder)), "-vf", filters, "-f", "rawvideo", "-pix_fmt", "nv12", "-"), size)


def psnr(a: Frames, b: Frames) -> float:
    error = float(((a.astype(float) - b) ** 2).mean())
    return 99.0 if not error else float(10 * np.log10(255**2 / error))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("clips")


SIZE = WIDTH * HEIGHT * 3 // 2


@pytest.mark.parametrize("gpu, driver", in_ci([("icl", "iHD"), ("hsw", "i965")], ("icl", "iHD")))
def test_procamp_is_within_one(gpu: str, driver: str, folder: Path) -> None:
    found, source = filtered(gpu, driver, folder, "procamp_vaapi=c=1.2:b=10:s=1.5", SIZE), software(folder, "null", SIZE).astype(float)
    luma = (source[:, : WIDTH * HEIGHT] - 16) * 1.2 + 26
    chroma = (source[:, WIDTH * HEIGHT :] - 128) * 1.2 * 1.5 + 128
    expected = np.clip(np.concatenate([luma, chroma], 1), 0, 255)
    assert np.abs(found - expected).max() <= 1.5


def test_deinterlacing_goes_through_the_scaler_of_ice_lake(folder: Path) -> None:
    """The first frame of each sequence is bob."""
    found, source = filtered("icl", "iHD", folder, "deinterlace_vaapi", SIZE), software(folder, "null", SIZE)
    assert len(found) == FRAMES
    for number in range(FRAMES):
        assert psnr(found[number], source[number]) > 28


@pytest.mark.witness
@pytest.mark.parametrize("gpu, driver", [("icl", "iHD"), ("ivb", "i965")])
def test_kernels_scale_as_ffmpeg_does(gpu: str, driver: str, folder: Path) -> None:
    width, height = 240, 192
    found = filtered(gpu, driver, folder, f"scale_vaapi=w={width}:h={height}", width * height * 3 // 2, frames=1)
    expected = software(folder, f"scale={width}:{height}:flags=bicubic", width * height * 3 // 2)
    assert psnr(found[0, : width * height], expected[0, : width * height]) > 45
    assert psnr(found[0], expected[0]) > 40
