"""Decoding video: frames a second of the video engine beside ffmpeg's own decoder on one thread.

A clip that ffmpeg codes is decoded by an unmodified VA-API driver on softgen, which records the submissions; what is timed is their
execution, without driver and program. ffmpeg's time is the processor time that it reports. A stage of VEBOX is timed alike, beside
ffmpeg's own filter.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bench import Measurement
from softgen.device.gpu import GpuDevice
from softgen.trace.file import open_trace
from softgen.trace.replay import events
from softgen.trace.work import Work

GPU, DRIVER = "icl", "iHD"
SIZE, FRAMES = "640x360", 24
DEVICE = ["-hwaccel", "vaapi", "-hwaccel_device", "/dev/dri/renderD128", "-hwaccel_output_format", "vaapi"]
PEERS: dict[str, list[str]] = {"ffmpeg -threads 1": [], "ffmpeg -threads 1 -cpuflags 0": ["-cpuflags", "0"]}  # with its assembly, without
PLACE = Path("/usr/lib/x86_64-linux-gnu/dri", f"{DRIVER}_drv_video.so")


class Clip(NamedTuple):
    """A clip, the engine whose work is timed, and the filters of driver and ffmpeg."""

    what: str
    coder: str
    file: str
    engine: str = "video"
    filters: tuple[str, str] = ("null", "null")


CLIPS = (
    Clip("H.264", "-c:v libx264 -b:v 1M", "clip.mp4"), Clip("MPEG-2", "-c:v mpeg2video -b:v 2M", "clip.m2v"),
    Clip("VP8", "-c:v libvpx -b:v 1M", "clip.webm"), Clip("VP9", "-c:v libvpx-vp9 -b:v 1M -deadline realtime", "clip.webm"),
    Clip("HEVC", "-c:v libx265 -x265-params log-level=none -b:v 1M", "clip.mp4"),
    Clip("VEBOX, procamp", "-c:v libx264 -b:v 1M", "clip.mp4", "video_enhance",
         ("procamp_vaapi=c=1.2:b=10", "eq=contrast=1.2:brightness=0.04")),
)  # fmt: skip


def measure() -> Iterator[Measurement]:
    if shutil.which("ffmpeg") is None or not PLACE.exists():
        return
    for clip in CLIPS:
        with tempfile.TemporaryDirectory() as folder:
            yield from _measured(clip, Path(folder))


def _measured(clip: Clip, folder: Path) -> Iterator[Measurement]:
    path, capture = folder / clip.file, folder / "capture"
    source = ["-f", "lavfi", "-i", f"testsrc2=size={SIZE}:rate=25", "-frames:v", str(FRAMES), "-pix_fmt", "yuv420p"]
    subprocess.run(["ffmpeg", "-v", "error", "-nostdin", *source, *clip.coder.split(), str(path)], check=True)
    program = ["ffmpeg", "-v", "error", "-nostdin", *DEVICE, "-i", str(path), "-vf", clip.filters[0], "-f", "null", "-"]
    subprocess.run([sys.executable, "-m", "softgen", "run", "--gpu", GPU, "--record", str(capture), "--", *program], check=True,
                   env={**os.environ, "LIBVA_DRIVER_NAME": DRIVER}, stderr=subprocess.DEVNULL)  # fmt: skip
    spent = min(_executed(capture, clip.engine) for _ in range(2))
    for peer, options in PEERS.items():
        own = ffmpeg_seconds(path, clip.filters[1], options) - (ffmpeg_seconds(path, "null", options) if clip.filters[1] != "null" else 0.0)
        yield Measurement(f"{clip.what} {SIZE}", FRAMES, "frames", spent, peer, max(own, 1e-4))


def _executed(capture: Path, engine: str) -> float:
    """Processor seconds of an engine's submissions."""
    trace, spent = open_trace(capture), 0.0
    device = GpuDevice(trace.device)
    for event in events(trace):
        if isinstance(event, Work):
            _ = event.space.table  # a replay maps all buffers for each submission; a driver has done it long before
            start = time.process_time()
            device.execute(event)
            spent += (time.process_time() - start) * (event.engine == engine)
    return spent


def ffmpeg_seconds(path: Path, filters: str, options: Sequence[str] = ()) -> float:
    """Processor seconds of ffmpeg on one thread."""
    output = ["-filter_threads", "1", "-vf", filters, "-f", "null", "-"]
    command = ["ffmpeg", "-nostdin", *options, "-benchmark", "-threads", "1", "-i", str(path), *output]
    said = subprocess.run(command, check=True, stderr=subprocess.PIPE, text=True).stderr
    found = re.search(r"utime=([\d.]+)s", said)
    return float(found[1]) if found else 0.0
