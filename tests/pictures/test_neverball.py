"""neverball's menu on g45, at 640x480 on the display: frames come, and nothing is missing or at fault."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.driver.running import Softgen, needs_driver, needs_shim

PROGRAM = shutil.which("neverball") or "/usr/games/neverball"
SECONDS = 60
SETTINGS = "fullscreen 0\nwidth 640\nheight 480\nvsync 0\nmultisample 0\nsound_vol 0\nmusic_vol 0\n"


@needs_shim
@pytest.mark.witness
@pytest.mark.skipif(not Path(PROGRAM).exists(), reason="neverball is not installed")
def test_the_menu(tmp_path: Path) -> None:
    needs_driver("g45", "OpenGL")
    (tmp_path / ".neverball").mkdir()
    (tmp_path / ".neverball" / "neverballrc").write_text(SETTINGS)
    options = ("--gpu", "g45", "--display", "640x480", "--time-limit", str(SECONDS), "--images", str(tmp_path / "out"), "--json")
    ran = Softgen(*options, "--", PROGRAM, HOME=str(tmp_path), SDL_VIDEODRIVER="kmsdrm", SDL_AUDIODRIVER="dummy")
    ran.finish(seconds=SECONDS + 60)
    report = json.loads(next(line for line in reversed(ran.err.splitlines()) if line.startswith("{")))
    assert not report["faults"] and not report["unsupported"] and not report["approximate"] and report["draws"] > 100, report["trouble"]
    frames = sorted((tmp_path / "out").glob("frame-*.png"))
    assert len(frames) >= 3
    last = np.asarray(Image.open(frames[-1]).convert("RGB"))
    assert last.shape == (480, 640, 3) and len(np.unique(last.reshape(-1, 3), axis=0)) > 5000, "stars, a planet and a level"
