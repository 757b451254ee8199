"""piglit: tests of its on a software GPU, and the list of those that do not pass.

    python -m tests.pictures.piglit g45 [TEXT…]      runs the tests of shared/piglit/g45.txt whose name has one of the texts, prints results
    python -m tests.pictures.piglit icl [TEXT…]      the same for shared/piglit/kbl-core.txt on another GPU

`piglit_g45.txt` and `piglit_kbl.txt` beside this module have the tests that do not pass, each with the reason.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.conftest import ROOT, SHARED
from tests.driver.running import DRIVER_CHOICES

FOLDERS = (Path("/usr/lib/x86_64-linux-gnu/piglit"), Path("/usr/lib/piglit"), Path("/usr/lib64/piglit"))
RESULT = re.compile(r'PIGLIT: \{"result": "(\w+)"')
CORE = "kbl-core"  # the list for GPUs from bdw on
OLD = ("gm965", "g45", "g41")  # GPUs with the list of g45
PATIENCE = 900.0  # seconds for a test: tex-miplevel-selection *GradARB draws 58,226 times, with other state each time


class PiglitTest(NamedTuple):
    """A test: piglit's name of it, and its program with arguments."""

    name: str
    command: tuple[str, ...]


def installed() -> Path | None:
    return next((folder for folder in FOLDERS if (folder / "bin").is_dir()), None)


def listed(gpu: str) -> list[PiglitTest]:
    """The tests that shared/piglit has for a GPU."""
    rows = (line.split("\t") for line in (SHARED / "piglit" / f"{gpu}.txt").read_text().splitlines() if not line.startswith("#"))
    return [PiglitTest(row[1], tuple(row[2].split())) for row in rows]


def failing(gpu: str) -> dict[str, tuple[str, str]]:
    """Tests that do not pass: what becomes of them, and why."""
    rows = (line.split("\t") for line in Path(__file__).with_name(f"piglit_{gpu}.txt").read_text().splitlines() if not line.startswith("#"))
    return {row[0]: (row[1], row[2]) for row in rows}


def run(gpu: str, command: Sequence[str], seconds: float = PATIENCE) -> str:
    """The result of a test: pass, fail, warn or skip; timeout; or how its process ended."""
    folder = installed()
    assert folder is not None, "piglit is not installed"
    usual = {name: text for name, text in os.environ.items() if name not in DRIVER_CHOICES}
    told = {**usual, "PYTHONPATH": str(ROOT), "PIGLIT_PLATFORM": "surfaceless_egl", "PIGLIT_SOURCE_DIR": str(folder)}
    words = [sys.executable, "-m", "softgen", "run", "--gpu", gpu, "--", str(folder / "bin" / command[0]), *command[1:], "-auto", "-fbo"]
    ran = subprocess.Popen(words, cwd=folder, env=told, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           text=True, errors="replace", start_new_session=True)  # fmt: skip
    try:
        said, _ = ran.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(ran.pid, signal.SIGKILL)
        ran.communicate()
        return "timeout"
    found = RESULT.findall(said)
    return found[-1] if found else f"ends with code {ran.returncode}"


def main() -> None:
    gpu, *texts = sys.argv[1:]
    for test in listed("g45" if gpu in OLD else CORE):
        if not texts or any(text in test.name for text in texts):
            print(f"{test.name}\t{run(gpu, test.command)}", flush=True)


if __name__ == "__main__":
    main()
