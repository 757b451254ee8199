"""Media kernels of VA-API drivers: MPEG-2 on G45, and scaling with conversion to RGB on Kaby Lake, beside ffmpeg on one thread.

A clip goes through the unmodified driver on softgen, which records the submissions. Those are executed twice, on one thread: the second
time counts, when all kernels are compiled. Processor seconds are counted, of softgen and of ffmpeg. Without ffmpeg or the driver there is
nothing to measure.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bench import Measurement
from bench.video import DEVICE, ffmpeg_seconds
from softgen.device.gpu import GpuDevice
from softgen.media.vfe import objects
from softgen.threads.dispatcher import EngineDispatcher
from softgen.trace.file import open_trace
from softgen.trace.replay import events
from softgen.trace.work import Work

DRIVER = "i965"
PLACE = Path("/usr/lib/x86_64-linux-gnu/dri", f"{DRIVER}_drv_video.so")
MOVING = "mandelbrot=size={}:rate=25,gblur=sigma=1"


class Job(NamedTuple):
    """A clip, the GPU whose driver gets it, and what ffmpeg does without one."""

    what: str
    gpu: str
    size: str
    frames: int
    coder: str
    filters: str  # of the driver
    peer: str  # filters of ffmpeg
    goal: str


JOBS = (
    Job("MPEG-2 720x576", "g45", "720x576", 9, "-c:v mpeg2video -b:v 4M -bf 2", "null", "null", "goal 25 frames/s"),
    Job("1080p NV12 to 720p RGBX", "kbl", "1920x1080", 4, "-c:v libx264 -preset ultrafast", "scale_vaapi=w=1280:h=720:format=rgb0",
        "format=nv12,scale=1280:720:flags=bilinear,format=rgb0", "goal 0.25"),
)  # fmt: skip


def measure() -> Iterator[Measurement]:
    if shutil.which("ffmpeg") is None or not PLACE.exists():
        return
    for job in JOBS:
        with tempfile.TemporaryDirectory() as folder:
            yield _measured(job, Path(folder))


def _measured(job: Job, folder: Path) -> Measurement:
    clip, capture = folder / "clip.mkv", folder / "capture"
    source = ["-f", "lavfi", "-i", MOVING.format(job.size), "-frames:v", str(job.frames), "-pix_fmt", "yuv420p"]
    quiet = ["ffmpeg", "-v", "error", "-nostdin"]
    subprocess.run([*quiet, *source, *job.coder.split(), str(clip)], check=True)
    decoding, filters = DEVICE, job.filters
    if filters != "null":  # the picture is uploaded: the driver's decoder is not measured
        decoding = ["-init_hw_device", f"vaapi=va:{DEVICE[3]}", "-filter_hw_device", "va"]
        filters = f"format=nv12,hwupload,{filters}"
    program = [*quiet, *decoding, "-i", str(clip), "-vf", filters, "-f", "null", "-"]
    subprocess.run([sys.executable, "-m", "softgen", "run", "--gpu", job.gpu, "--record", str(capture), "--", *program], check=True,
                   env={**os.environ, "LIBVA_DRIVER_NAME": DRIVER}, stderr=subprocess.DEVNULL)  # fmt: skip
    own = ffmpeg_seconds(clip, job.peer) - (ffmpeg_seconds(clip, "null") if job.peer != "null" else 0.0)
    total, shares = _executed(capture)
    note = ", ".join([job.goal, *(f"{name} {100 * seconds / total:.0f} %" for name, seconds in shares.items())])
    return Measurement(job.what, job.frames, "frames", total, "ffmpeg -threads 1", max(own, 1e-4), note)


def _executed(capture: Path) -> tuple[float, dict[str, float]]:
    """Processor seconds of all submissions once kernels are compiled, and of their parts."""
    trace = open_trace(capture)
    dispatcher: Any = EngineDispatcher("t1", threads=1)
    device, total, spent = GpuDevice(trace.device, dispatcher=dispatcher), 0.0, dict[str, float]()
    run = dispatcher.run
    dispatcher.run = _timed(lambda *given: tuple(run(*given)), spent, "threads")
    front_end: Any = objects
    plain = front_end.decode
    front_end.decode = _timed(plain, spent, "VLD")
    try:
        for _ in range(2):
            total = 0.0
            spent.clear()
            for event in events(trace):
                if isinstance(event, Work):
                    start = time.process_time()
                    device.execute(event)
                    total += time.process_time() - start
    finally:
        front_end.decode = plain
    return total, {**spent, "rest": max(total - sum(spent.values()), 0.0)}


def _timed(function: Callable[..., Any], spent: dict[str, float], name: str) -> Callable[..., Any]:
    def timed(*arguments: Any) -> Any:
        start = time.process_time()
        try:
            return function(*arguments)
        finally:
            spent[name] = spent.get(name, 0.0) + time.process_time() - start

    return timed
