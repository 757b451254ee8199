"""Six scenes through moderngl beside llvmpipe: a lit mesh, a procedural shader, sprites, small draws, a shadow map, a blur.

Frames of programs/scenes.py (640 x 480 pixels), measured as for `graphics`, with one host thread and with two.
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench import Measurement
from bench.graphics import Frames, lacking, measured_scene

SOURCE = Path(__file__).parent / "programs" / "scenes.py"
MODULE = "moderngl"
PIXELS = 640 * 480
SCENES = (("mesh", 2 * 256 * 256, "triangles"), ("procedural", PIXELS, "pixels"), ("sprites", 3000, "sprites"), ("cubes", 1000, "draws"),
          ("shadow", PIXELS, "pixels"), ("blur", 2 * PIXELS, "pixels"))  # fmt: skip


class SceneFrames(Frames):
    """Frames of scenes.py; a scene has no count."""

    def __init__(self, folder: Path, threads: int = 1) -> None:
        self.folder, self.threads = folder, threads
        self.times: dict[tuple[str, str, int], float] = {}

    def command(self, scene: str, count: int, frames: int, picture: Path) -> list[str]:
        return [sys.executable, str(SOURCE), scene, str(frames), str(picture)]


def measure() -> Iterator[Measurement]:
    missing = lacking() if importlib.util.find_spec(MODULE) else f"{MODULE} (pip install {MODULE})"
    if missing:
        yield Measurement("scenes", 1, "", 1.0, note=f"not measured: {missing} is not installed")
        return
    for threads in (1, 2):
        with tempfile.TemporaryDirectory(prefix="softgen-bench-") as folder:
            frames = SceneFrames(Path(folder), threads)
            for scene, amount, unit in SCENES:
                yield measured_scene(frames, f"{scene}, {threads} thread{'s' * (threads > 1)}", scene, 0, amount, unit)
