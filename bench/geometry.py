"""Geometry shaders, tessellation and transform feedback beside llvmpipe: frames of geometry.c with one host thread and with two.

Time is measured as for `graphics`. A mesh as fine as the terrain's covers most pixels by a few triangles, where rounding differs: there the
share of pixels that agree is less than elsewhere. Captured vertices agree if their floats do.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bench import Measurement
from bench.graphics import RENDERERS, Frames, lacking, measured_scene

SOURCE = Path(__file__).parent / "programs" / "geometry.c"
SCENES = (("terrain", 16, 16 * 16 * 16 * 16 * 2, "triangles"), ("sprites", 256, 256 * 256, "points"),
          ("instanced", 96, 96 * 96, "triangles"), ("feedback", 1000, 1000 * 1000, "vertices"))  # fmt: skip
CAPTURED = ("feedback",)
APART = 1e-6  # of captured floats, relatively


class GeometryFrames(Frames):
    """Frames of geometry.c."""

    def __init__(self, folder: Path, threads: int) -> None:
        super().__init__(folder, SOURCE, "-lGL", threads)

    def agreement(self, scene: str, count: int) -> float:
        if scene not in CAPTURED:
            return super().agreement(scene, count)
        ours, other = (np.fromfile(self.picture(renderer, scene, count), np.float32) for renderer in RENDERERS)
        return float(np.isclose(ours, other, rtol=APART, atol=APART).mean())


def measure() -> Iterator[Measurement]:
    if missing := lacking():
        yield Measurement("geometry", 1, "", 1.0, note=f"not measured: {missing} is not installed")
        return
    for threads in (1, 2):
        with tempfile.TemporaryDirectory(prefix="softgen-bench-") as folder:
            frames = GeometryFrames(Path(folder), threads)
            for scene, count, amount, unit in SCENES:
                yield measured_scene(frames, f"{scene}, {threads} thread{'s' * (threads > 1)}", scene, count, amount, unit)
