"""Programs that present frames on the display, under `softgen run --images`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from PIL import Image

from tests.conftest import ROOT
from tests.pictures.compare import Picture

SIZE = "320x240"
LLVMPIPE = {"MESA_LOADER_DRIVER_OVERRIDE": "kms_swrast"}  # the same program on the same display, drawn by the CPU


def presented(folder: Path, *arguments: str, seconds: float = 120, **environment: str) -> tuple[list[Picture], str]:
    """The frames that a program presents, and what it says. Its standard input stays open and empty: kmscube waits for it too."""
    command = [sys.executable, "-m", "softgen", "run", "--display", SIZE, "--images", str(folder), *arguments]
    reading, writing = os.pipe()
    try:
        done = subprocess.run(command, cwd=ROOT, stdin=reading, capture_output=True, text=True, timeout=seconds, check=False,
                              env={**os.environ, **environment})  # fmt: skip
    finally:
        os.close(reading)
        os.close(writing)
    assert done.returncode == 0, done.stdout + done.stderr
    return [np.asarray(Image.open(path)) for path in sorted(folder.glob("frame-*.png"))], done.stdout + done.stderr
