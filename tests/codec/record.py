"""Makes the captures of tests/codec/data again, and the digests of their frames: python -m tests.codec.record NAME …

A clip is made by ffmpeg, decoded by an unmodified VA-API driver on softgen, which records the submissions, and decoded by ffmpeg alone:
those frames are what clips.toml expects. It needs ffmpeg and the drivers. A clip that ffmpeg cannot make is a file beside clips.toml
(`stream`); its pictures may have several `sizes`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import numpy as np

from tests.codec import hevc_writer, vc1_writer
from tests.codec.frames import digest, video_frames
from tests.codec.mpeg2_writer import fields

DATA = Path(__file__).parent / "data"
CLIPS = DATA / "clips.toml"
VAAPI = ["-hwaccel", "vaapi", "-hwaccel_device", "/dev/dri/renderD128", "-hwaccel_output_format", "vaapi"]


def clips() -> dict[str, Any]:
    return tomllib.loads(CLIPS.read_text("utf-8"))


def ffmpeg(*arguments: str) -> list[str]:
    return ["ffmpeg", "-v", "error", "-nostdin", "-y", *arguments]


def make(clip: dict[str, Any], path: Path) -> None:
    """The clip as a file, coded by ffmpeg or made of random macroblocks."""
    if "stream" in clip:  # vp9-scaled.ivf: libvpx, whose size was set anew amid the stream, without further key pictures
        shutil.copyfile(DATA / clip["stream"], path)
        return
    width, height = clip["size"]
    if "syntax" in clip:
        path.write_bytes(hevc_writer.clip(count=clip["count"], width=width, height=height, **clip["syntax"]))
        return
    if "vc1" in clip:
        path.write_bytes(vc1_writer.clip(width, height, **clip["vc1"]))
        return
    if "seed" in clip:
        path.write_bytes(fields(width, height, clip["seed"]))
        return
    source = clip.get("source", "testsrc2=size={}x{}:rate=10").format(width, height)
    subprocess.run(ffmpeg("-f", "lavfi", "-i", source, "-frames:v", str(clip["count"]), *clip["coder"].split(), str(path)), check=True)


def software(clip: dict[str, Any], path: Path) -> list[str]:
    """Digests of the frames as ffmpeg decodes them, in the order in which they are shown."""
    plain = ["-cpuflags", "0"] if "vc1" in clip else []  # random coefficients are beyond what its vector code computes
    raw = subprocess.run(ffmpeg(*plain, "-i", str(path), "-fps_mode", "passthrough", "-autoscale", "0", "-f", "rawvideo", "-pix_fmt",
                                clip["decoded"], "-"), check=True, stdout=subprocess.PIPE).stdout  # fmt: skip
    found, sample_bytes = list[str](), 2 if clip["layout"] == "p010" else 1
    while raw:
        width, height = sizes(clip)[len(found)] if "sizes" in clip else clip["size"]
        planes, luma = chroma(width, height, clip["decoded"]) * sample_bytes, width * height * sample_bytes
        found.append(digest(arranged(raw[: luma + 2 * planes], luma, planes, clip["layout"])))
        raw = raw[luma + 2 * planes :]
    return found


def sizes(clip: dict[str, Any]) -> list[tuple[int, int]]:
    """Of each picture, where they are not all the same."""
    return [(width, height) for width, height in clip["sizes"]]


def shown(clip: dict[str, Any], found: list[str], expected: list[str]) -> list[str]:
    """Without pictures that are not shown: a field alone is no frame, and some are only references."""
    return [frame for frame in found if frame in expected] if "seed" in clip or clip.get("hidden") else found


def chroma(width: int, height: int, decoded: str) -> int:
    """Samples of a chroma plane."""
    across, down = {"420": (2, 2), "422": (2, 1), "444": (1, 1)}.get(decoded.removeprefix("yuvj").removeprefix("yuv")[:3], (0, 0))
    return -(-width // across) * -(-height // down) if across else 0


def arranged(planar: bytes, luma: int, size: int, layout: str) -> bytes:
    """A planar frame as it lies in a surface."""
    y, u, v = planar[:luma], planar[luma : luma + size], planar[luma + size :]
    if layout == "nv12":
        return y + bytes(sample for pair in zip(u, v, strict=True) for sample in pair)
    if layout == "p010":
        samples = np.frombuffer(planar, "<u2") << 6
        chroma = samples[luma // 2 :].reshape(2, -1)
        return samples[: luma // 2].tobytes() + chroma.T.tobytes()
    if layout == "yuyv422":
        return bytes(sample for a, b, c, d in zip(y[::2], u, y[1::2], v, strict=True) for sample in (a, b, c, d))
    return planar


def captured(name: str, threads: int = 1) -> list[str]:
    """Digests of the pictures that a clip's capture leaves."""
    clip = clips()[name]
    return video_frames(DATA / name, sizes(clip) if "sizes" in clip else tuple(clip["size"]), clip["layout"], threads)


def record(name: str) -> list[str]:
    """Record a clip; the digests of its frames, in the order in which they are coded."""
    clip = clips()[name]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / clip["file"]
        make(clip, path)
        expected = software(clip, path)
        shutil.rmtree(DATA / name, ignore_errors=True)
        command = [sys.executable, "-m", "softgen", "run", "--gpu", clip["gpu"], "--record", str(DATA / name), "--",
                   *ffmpeg(*VAAPI, "-i", str(path), "-autoscale", "0", "-f", "null", "-")]  # fmt: skip
        subprocess.run(command, check=True, env={**os.environ, "LIBVA_DRIVER_NAME": clip["driver"]})
    found = shown(clip, captured(name), expected)
    if sorted(found) != sorted(expected):
        raise SystemExit(f"{name}: the frames are not those that ffmpeg decodes")
    return found


if __name__ == "__main__":
    for chosen in sys.argv[1:]:
        print(f"[{chosen}]\nframes = {record(chosen)!r}".replace("'", '"'))
