"""Pixels of MPEG-2 clips that the VA-API driver of G45 decodes with its kernels on softgen, beside ffmpeg's own decoder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from softgen.driver.uapi.kernel_tables import runtimes
from softgen.trace.file import open_trace
from softgen.trace.replay import events
from tests.codec.record import ffmpeg
from tests.driver.running import needs_shim, softgen_run
from tests.driver.test_drivers import needs_program
from tests.media.vfe.replayed import pictures

SOURCE = "mandelbrot=size={}x{}:rate=10,gblur=sigma=1"
Size = tuple[int, int]
LARGE, SMALL = (176, 144), (48, 32)
INTRA, P, B = 1, 2, 3
WORST = {INTRA: 50, P: 40, B: 40}  # dB: the kernels round vectors and coefficients otherwise than the standard
INTERLACED = "-flags +ilme+ildct"
Frames = np.ndarray[Any, np.dtype[np.uint8]]
pytestmark = needs_shim


def clip(folder: Path, coder: str, count: int, size: Size = LARGE) -> Path:
    path = folder / "clip.m2v"
    options = f"-frames:v {count} -c:v mpeg2video -g 6 -bf 2 -qscale:v 4 -pix_fmt yuv420p {coder}".split()
    subprocess.run(ffmpeg("-f", "lavfi", "-i", SOURCE.format(*size), *options, str(path)), check=True)
    return path


def frames(data: bytes, size: Size) -> Frames:
    return np.frombuffer(data, np.uint8).reshape(-1, size[0] * size[1] * 3 // 2)


def software(path: Path) -> bytes:
    made = ffmpeg("-i", str(path), "-fps_mode", "passthrough", "-f", "rawvideo", "-pix_fmt", "yuv420p", "-")
    return subprocess.run(made, check=True, stdout=subprocess.PIPE).stdout


def on_g45(path: Path, *options: str) -> tuple[list[int], bytes]:
    """Types and samples of a clip, in the order in which they are shown."""
    found = path.with_suffix(".yuv")
    run = softgen_run("--gpu", "g45", *options, "--", sys.executable, "-m", "tests.media.vfe.va_mpeg2", str(path), str(found),
                      LIBVA_DRIVER_NAME="i965")  # fmt: skip
    assert run.process.returncode == 0, run.err
    return [int(word) for word in run.out.split()], found.read_bytes()


def psnr(a: Frames, b: Frames) -> float:
    error = float(((a.astype(float) - b) ** 2).mean())
    return 99.0 if not error else float(10 * np.log10(255**2 / error))


@pytest.fixture(autouse=True)
def _needs() -> None:
    needs_program("ffmpeg", "ffmpeg")
    if not next(runtime for runtime in runtimes() if runtime.name == "i965").found():
        pytest.skip("the VA-API driver i965 is absent")


def compare(path: Path, *options: str, size: Size = LARGE) -> Frames:
    """The frames, which have the quality that the kernels' arithmetic allows."""
    types, made = on_g45(path, *options)
    found, expected = frames(made, size), frames(software(path), size)
    assert len(types) == len(found) == len(expected)
    for number, kind in enumerate(types):
        assert psnr(found[number], expected[number]) >= WORST[kind], (number, kind)
    return found


def test_a_clip_has_the_pixels_that_ffmpeg_decodes(tmp_path: Path) -> None:
    compare(clip(tmp_path, "-bf 0", 2, SMALL), "--engine", "t0", size=SMALL)


@pytest.mark.witness
@pytest.mark.behaviour("G45-KRN-06", shows="action")
@pytest.mark.parametrize("coder", [
    "", INTERLACED, f"{INTERLACED} -alternate_scan 1", "-intra_vlc 1 -qscale:v 2", "-slices 9", "-non_linear_quant 1 -qmax 28 -dc 10",
    f"{INTERLACED} -alternate_scan 1 -intra_vlc 1 -slices 9",
], ids=["progressive", "interlaced", "alternate scan", "intra VLC format 1", "slices", "other scale and precision", "all"])  # fmt: skip
def test_clips_of_all_kinds(coder: str, tmp_path: Path) -> None:
    compare(clip(tmp_path, coder, 5))


@pytest.mark.witness
def test_a_recorded_run_replays_to_the_same_pixels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interlaced: an I and a P picture, whose macroblocks have frame and field vectors."""
    path = clip(tmp_path, f"{INTERLACED} -alternate_scan 1 -intra_vlc 1 -bf 0", 2)
    found = compare(path, "--record", str(tmp_path / "run"))
    replayed = pictures(tmp_path / "run", LARGE, monkeypatch)
    assert np.array_equal(frames(b"".join(replayed), LARGE), found)


@pytest.mark.witness
def test_recordings_of_ffmpeg_are_whole(tmp_path: Path) -> None:
    """It ends without waiting for its last pictures."""
    path, folder = clip(tmp_path, "", 7), tmp_path / "run"
    device = ["-hwaccel", "vaapi", "-hwaccel_device", "/dev/dri/renderD128", "-hwaccel_output_format", "vaapi"]
    program = ffmpeg(*device, "-i", str(path), "-f", "null", "-")
    run = softgen_run("--gpu", "g45", "--record", str(folder), "--", *program, LIBVA_DRIVER_NAME="i965")
    assert run.process.returncode == 0, run.err
    assert len(list(events(open_trace(folder)))) >= 7 and not (folder / "incomplete").exists()
