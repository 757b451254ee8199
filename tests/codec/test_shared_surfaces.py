"""Surfaces that several engines, decoders and processes touch: what programs show or save is what ffmpeg decodes without a driver."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.codec.record import VAAPI, ffmpeg
from tests.codec.test_clips import DRIVERS
from tests.conftest import ROOT, in_ci
from tests.driver.presenting import presented
from tests.driver.running import needs_driver

NOISE = "testsrc2=size={}:rate=25,noise=alls=8:allf=t"
AVC = "-pix_fmt yuv420p -c:v libx264 -x264-params bframes=2:b-adapt=0:keyint=6:slices=2"
SIZE = (208, 128)
FRAME = SIZE[0] * SIZE[1] * 3 // 2
SEEKS = (0.2, 0.44, 0.04, 0.3, 0.0)
# a script of mpv: shows the frame of each time in turn
SEEKING = """
local times, at = {%s}, 0
mp.register_event("playback-restart", function()
    at = at + 1
    mp.add_timeout(0.3, function()
        if at <= #times then mp.commandv("seek", times[at], "absolute+exact") else mp.commandv("quit") end
    end)
end)
"""
MPV = ["mpv", "--no-config", "--no-audio", "--osc=no", "--osd-level=0", "--vo=gpu", "--gpu-context=drm"]


def needs(*programs: str, driver: str = "iHD") -> None:
    """Skips the test where a program or the VA-API driver is not installed."""
    missing = [name for name in ("ffmpeg", *programs) if shutil.which(name) is None]
    if missing or not (DRIVERS / f"{driver}_drv_video.so").exists():
        pytest.skip(f"not installed: {', '.join(missing) or f'the VA-API driver {driver}'}")


def clip(path: Path, count: int = 12, size: str = "208x128", coder: str = AVC) -> Path:
    subprocess.run(ffmpeg("-f", "lavfi", "-i", NOISE.format(size), "-frames:v", str(count), *coder.split(), str(path)), check=True)
    return path


def software(path: Path, *filters: str) -> bytes:
    command = ffmpeg("-i", str(path), "-vf", ",".join(("format=nv12", *filters)), "-fps_mode", "passthrough", "-autoscale", "0",
                     "-f", "rawvideo", "-")  # fmt: skip
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout


def softgen(gpu: str, driver: str, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "softgen", "run", "--gpu", gpu, "--", *command], cwd=ROOT, capture_output=True, text=True,
                          check=False, env={**os.environ, "LIBVA_DRIVER_NAME": driver})  # fmt: skip


def saving(path: Path, into: Path, chain: str = "hwdownload,format=nv12") -> list[str]:
    """Arguments of ffmpeg: a file is decoded on the GPU, and its frames are saved."""
    return ["-vf", chain, "-fps_mode", "passthrough", "-autoscale", "0", "-f", "rawvideo", str(into)]


@pytest.mark.parametrize(("gpu", "driver"), in_ci([("kbl", "iHD"), ("icl", "iHD"), ("ivb", "i965")], ("icl", "iHD")))
def test_two_decoders_of_a_process_take_turns_on_one_engine(gpu: str, driver: str, tmp_path: Path) -> None:
    """Of i965 ffmpeg reads the surfaces of Ivy Bridge through kernels on another engine."""
    needs(driver=driver)
    one, other = clip(tmp_path / "one.mp4"), clip(tmp_path / "other.mkv", 9, "144x96", "-c:v mpeg2video -bf 2 -q:v 3")
    raw = tmp_path / "one", tmp_path / "other"
    command = ffmpeg(*VAAPI, "-i", str(one), *VAAPI, "-i", str(other), "-map", "0:v", *saving(one, raw[0]),
                     "-map", "1:v", *saving(other, raw[1]))  # fmt: skip
    done = softgen(gpu, driver, *command)
    assert done.returncode == 0, done.stderr
    assert [path.read_bytes() for path in raw] == [software(one), software(other)]


@pytest.mark.witness
def test_two_processes_decode_at_once(tmp_path: Path) -> None:
    needs()
    one, other = clip(tmp_path / "one.mp4"), clip(tmp_path / "other.mp4", 20, "160x112")
    raw = tmp_path / "one", tmp_path / "other"
    commands = [" ".join(ffmpeg(*VAAPI, "-i", str(path), *saving(path, into))) for path, into in ((one, raw[0]), (other, raw[1]))]
    done = softgen("kbl", "iHD", "sh", "-c", f"{commands[0]} & {commands[1]}; wait")
    assert done.returncode == 0, done.stderr
    assert [path.read_bytes() for path in raw] == [software(one), software(other)]


@pytest.mark.witness
@pytest.mark.parametrize(("gpu", "driver"), [("skl", "iHD"), ("kbl", "i965")])
def test_a_decoder_that_is_opened_again_with_another_size(gpu: str, driver: str, tmp_path: Path) -> None:
    needs(driver=driver)
    parts = [clip(tmp_path / "one.ts", 7), clip(tmp_path / "two.ts", 5, "144x96"), clip(tmp_path / "three.ts", 6)]
    whole, raw = tmp_path / "whole.ts", tmp_path / "raw"
    whole.write_bytes(b"".join(part.read_bytes() for part in parts))
    done = softgen(gpu, driver, *ffmpeg(*VAAPI, "-i", str(whole), *saving(whole, raw)))
    assert done.returncode == 0, done.stderr
    assert raw.read_bytes() == software(whole)


@pytest.mark.witness
@pytest.mark.parametrize(("gpu", "driver"), [("kbl", "iHD"), ("icl", "iHD"), ("kbl", "i965")])
def test_opencl_reads_surfaces_that_were_decoded(gpu: str, driver: str, tmp_path: Path) -> None:
    """The kernel waits for the video engine, and the next picture for the kernel."""
    needs(driver=driver)
    needs_driver(gpu, "OpenCL")
    path, raw = clip(tmp_path / "clip.mp4"), tmp_path / "raw"
    shared = ["-init_hw_device", "vaapi=va:/dev/dri/renderD128", "-init_hw_device", "opencl=cl@va", "-filter_hw_device", "cl"]
    command = ffmpeg(*shared, "-hwaccel", "vaapi", "-hwaccel_device", "va", "-hwaccel_output_format", "vaapi", "-i", str(path),
                     *saving(path, raw, "hwmap,transpose_opencl=clock,hwdownload,format=nv12"))  # fmt: skip
    done = softgen(gpu, driver, *command)
    assert done.returncode == 0, done.stderr
    assert raw.read_bytes() == software(path, "transpose=clock")


@pytest.mark.witness
@pytest.mark.parametrize(("gpu", "driver"), [("kbl", "iHD"), ("icl", "iHD"), ("bdw", "iHD"), ("hsw", "i965")])
def test_mpv_draws_surfaces_while_others_are_decoded(gpu: str, driver: str, tmp_path: Path) -> None:
    needs("mpv", driver=driver)
    path = clip(tmp_path / "clip.mp4")
    found = []
    for decoder in ("vaapi", "no"):
        command = [*MPV, f"--hwdec={decoder}", "--untimed", "--frames=7", str(path)]
        pictures, said = presented(tmp_path / decoder, "--gpu", gpu, "--", *command, LIBVA_DRIVER_NAME=driver)
        assert ("Using hardware decoding (vaapi)" in said) == (decoder == "vaapi")
        found.append(Counter(picture.tobytes() for picture in pictures))
    assert set(found[0]) <= set(found[1]) and len(found[0]) >= 6


@pytest.mark.witness
@pytest.mark.parametrize(("gpu", "driver"), [("kbl", "iHD"), ("ivb", "i965")])
def test_mpv_seeks_back_and_forth(gpu: str, driver: str, tmp_path: Path) -> None:
    needs("mpv", driver=driver)
    path, script = clip(tmp_path / "clip.mp4"), tmp_path / "seek.lua"
    script.write_text(SEEKING % ", ".join(map(str, SEEKS)), "utf-8")
    found = []
    for decoder in ("vaapi", "no"):
        command = [*MPV, f"--hwdec={decoder}", "--pause", f"--script={script}", str(path)]
        pictures, said = presented(tmp_path / decoder, "--gpu", gpu, "--", *command, LIBVA_DRIVER_NAME=driver)
        assert ("Using hardware decoding (vaapi)" in said) == (decoder == "vaapi")
        shown = [picture.tobytes() for picture in pictures]
        found.append([one for one, before in zip(shown, [b"", *shown], strict=False) if one != before])
    assert found[0] == found[1] and len(found[0]) >= len(SEEKS)


@pytest.mark.witness
def test_a_file_that_ends_early_plays_to_its_end(tmp_path: Path) -> None:
    """The last picture is incomplete: what it lacks is concealed, and the program is told nothing. iHD reports it (docs/video.md)."""
    needs(driver="i965")
    path, raw = clip(tmp_path / "clip.ts"), tmp_path / "raw"
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 4 // 5])
    done = softgen("kbl", "i965", *ffmpeg(*VAAPI, "-i", str(path), *saving(path, raw)))
    assert done.returncode == 0, done.stderr
    found, expected = raw.read_bytes(), software(path)
    assert len(found) == len(expected) > 6 * FRAME
    differing = [at for at in range(0, len(found), FRAME) if found[at : at + FRAME] != expected[at : at + FRAME]]
    assert len(differing) <= 2
