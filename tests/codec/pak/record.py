"""Makes the captures of tests/codec/pak/data again: python -m tests.codec.pak.record NAME …

ffmpeg makes raw pictures, and an unmodified VA-API driver on softgen encodes them, which records the submissions.
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

from tests.codec.record import ffmpeg

DATA = Path(__file__).parent / "data"
DEVICE = "/dev/dri/renderD128"


def clips() -> dict[str, Any]:
    return tomllib.loads((DATA / "clips.toml").read_text("utf-8"))


def make(clip: dict[str, Any], path: Path) -> None:
    """The pictures, raw."""
    width, height = clip["size"]
    source = clip.get("pattern", "testsrc2=size={}x{}:rate=10").format(width, height)
    subprocess.run(ffmpeg("-f", "lavfi", "-i", source, "-frames:v", str(clip["count"]), "-pix_fmt", clip["source"], "-f", "rawvideo",
                          str(path)), check=True)  # fmt: skip


def encode(clip: dict[str, Any], source: Path, stream: Path, *options: str) -> None:
    """The pictures as the driver encodes them, on softgen."""
    width, height = clip["size"]
    command = ffmpeg("-vaapi_device", DEVICE, "-f", "rawvideo", "-pix_fmt", clip["source"], "-s", f"{width}x{height}", "-i", str(source),
                     "-vf", "hwupload", *clip["coder"].split(), "-f", clip["format"], str(stream))  # fmt: skip
    subprocess.run([sys.executable, "-m", "softgen", "run", "--gpu", clip["gpu"], *options, "--", *command], check=True,
                   env={**os.environ, "LIBVA_DRIVER_NAME": clip["driver"]})  # fmt: skip


def record(name: str) -> None:
    clip = clips()[name]
    with tempfile.TemporaryDirectory() as folder:
        source, stream = Path(folder) / "source", Path(folder) / "stream"
        make(clip, source)
        shutil.rmtree(DATA / name, ignore_errors=True)
        encode(clip, source, stream, "--record", str(DATA / name))


if __name__ == "__main__":
    for chosen in sys.argv[1:]:
        record(chosen)
