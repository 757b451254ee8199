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


# -- scaling by kernels ------------------------------------------------------------------------------------------------------

KERNELS = [("ivb", "i965"), ("hsw", "i965"), ("kbl", "i965"), ("icl", "iHD")]
SOURCES = ("mandelbrot=size={}x{},gblur=sigma=1.5", "testsrc2=size={}x{},gblur=sigma=5", "color=c=0x6040A0:size={}x{}")
WORST = (40, 45, 99)  # dB of these
SOFTER = {"kbl": 2}  # dB less: this driver's tables take more away than ffmpeg's filters where they make pictures smaller


@cache
def pictures(folder: Path, size: tuple[int, int]) -> Path:
    """A picture of each source, as NV12."""
    path = folder / "{}x{}.nv12".format(*size)
    one = ("-frames:v", "1", "-f", "rawvideo", "-pix_fmt", "nv12", "-")
    made = [ffmpeg("-f", "lavfi", "-i", source.format(*size), *one) for source in SOURCES]
    path.write_bytes(b"".join(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout for command in made))
    return path


def scaled(gpu: str, driver: str, folder: Path, size: tuple[int, int], to: tuple[int, int], *options: str) -> tuple[Frames, Frames]:
    """What the driver makes of the pictures on softgen, and what ffmpeg does."""
    if shutil.which("ffmpeg") is None or not (DRIVERS / f"{driver}_drv_video.so").exists():
        pytest.skip(f"ffmpeg or the VA-API driver {driver} is not installed")
    given = ("-f", "rawvideo", "-pix_fmt", "nv12", "-s", "{}x{}".format(*size), "-i", str(pictures(folder, size)))
    device = ("-init_hw_device", "vaapi=va:/dev/dri/renderD128", "-filter_hw_device", "va")
    out = ("-f", "rawvideo", "-pix_fmt", "nv12", "-")
    filters = "hwupload,scale_vaapi=w={}:h={},hwdownload,format=nv12".format(*to)
    run = [sys.executable, "-m", "softgen", "run", "--gpu", gpu, *options, "--", *ffmpeg(*device, *given, "-vf", filters, *out)]
    made = raw(run, to[0] * to[1] * 3 // 2, env={**os.environ, "LIBVA_DRIVER_NAME": driver}, timeout=300)
    kind = "bicubic" if to >= size else "bilinear"  # which averages where it makes pictures smaller, as the driver's tables do
    return made, raw(ffmpeg(*given, "-vf", f"scale={to[0]}:{to[1]}:flags={kind}+accurate_rnd", *out), to[0] * to[1] * 3 // 2)


def as_ffmpeg_does(found: Frames, expected: Frames, less: int = 0) -> None:
    assert len(found) == len(expected) == len(SOURCES)
    for number, least in enumerate(WORST):
        assert psnr(found[number], expected[number]) >= least - less * (least < 99), SOURCES[number]


@pytest.mark.parametrize("gpu, driver", in_ci(KERNELS, *KERNELS[2:]))
def test_kernels_scale_as_ffmpeg_does(gpu: str, driver: str, folder: Path) -> None:
    as_ffmpeg_does(*scaled(gpu, driver, folder, (72, 48), (96, 80)))


@pytest.mark.witness
@pytest.mark.parametrize("gpu, driver", KERNELS)
@pytest.mark.parametrize(("size", "to"), [((128, 96), (170, 122)), ((160, 120), (144, 110)), ((96, 64), (150, 90))])
def test_kernels_scale_to_many_sizes(gpu: str, driver: str, size: tuple[int, int], to: tuple[int, int], folder: Path) -> None:
    as_ffmpeg_does(*scaled(gpu, driver, folder, size, to), less=SOFTER.get(gpu, 0) if to < size else 0)


@pytest.mark.witness
@pytest.mark.parametrize("gpu, driver", KERNELS)
def test_one_to_one_is_the_identity(gpu: str, driver: str, folder: Path) -> None:
    found, expected = scaled(gpu, driver, folder, (144, 80), (144, 80))
    assert np.array_equal(found, expected)
