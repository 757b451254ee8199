"""`softgen run` as people call it, and a look at what it leaves behind."""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
import weakref
from pathlib import Path

import pytest

from softgen.driver.uapi.kernel_tables import runtimes_of
from tests.conftest import ROOT

PROGRAMS = ROOT / "tests" / "driver" / "programs"
SHIM = bool(glob.glob(str(ROOT / "softgen" / "driver" / "_shim*.so")))
# What the machine's user may have set about drivers: softgen leaves it as it is, and the tests are not about it.
DRIVER_CHOICES = {"OCL_ICD_VENDORS", "OCL_ICD_FILENAMES", "VK_ICD_FILENAMES", "VK_DRIVER_FILES", "LIBVA_DRIVER_NAME", "LIBVA_DRIVERS_PATH",
                  "MESA_LOADER_DRIVER_OVERRIDE", "LIBGL_ALWAYS_SOFTWARE", "LD_PRELOAD", "SOFTGEN_RUN"}  # fmt: skip
PATIENCE = 60.0  # seconds; only a run that hangs takes so long
needs_shim = pytest.mark.skipif(not SHIM, reason="the shim is not built (make setup)")


class Softgen:
    """A run, marked so that whatever belongs to it can be found."""

    def __init__(self, *arguments: str, state: Path | None = None, descriptors: int = 0, **environment: str) -> None:
        self.mark = f"SOFTGEN_TEST={uuid.uuid4()}"
        name, _, value = self.mark.partition("=")
        self.folder = tempfile.mkdtemp(prefix="sg-")
        weakref.finalize(self, shutil.rmtree, self.folder, True)
        places = {"TMPDIR": self.folder, "XDG_RUNTIME_DIR": "", "XDG_STATE_HOME": str(state or self.folder)}
        usual = {key: text for key, text in os.environ.items() if key not in DRIVER_CHOICES}
        told = {**usual, name: value, **places, **environment}
        limited = ("prlimit", f"--nofile={descriptors}:{descriptors}") if descriptors else ()
        self.process = subprocess.Popen([*limited, sys.executable, "-m", "softgen", "run", *arguments], cwd=ROOT, env=told, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
        self.out = self.err = ""

    def finish(self, text: str | None = None, seconds: float = 120) -> int:
        self.out, self.err = self.process.communicate(text, timeout=seconds)
        return self.process.returncode

    def children(self) -> list[int]:
        """The server, then the program, once both are there."""
        file = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(pid) for pid in file.read_text("ascii").split()]

    def alive(self) -> list[int]:
        """Processes of this run that still live."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                environment = Path(f"/proc/{pid}/environ").read_bytes()
                state = Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()[0]
            except OSError:
                continue
            if self.mark.encode() in environment and state != "Z":
                found.append(int(pid))
        return found

    def all_gone(self, seconds: float = PATIENCE) -> bool:
        """Within so long, no process of it lives and no file of it is left. A machine with much else to do may need all of it."""
        end = time.monotonic() + seconds
        while self.alive() or self.left():
            if time.monotonic() > end:
                return False
            time.sleep(0.02)
        return True

    def left(self) -> list[str]:
        return [name for name in os.listdir(self.folder) if name.startswith("softgen-")]


def softgen_run(*arguments: str, text: str | None = None, **environment: str) -> Softgen:
    run = Softgen(*arguments, **environment)
    run.finish(text)
    return run


def needs_driver(gpu: str, api: str) -> None:
    """Skips where the distribution's driver is not installed."""
    serving = [runtime for runtime in runtimes_of(gpu) if runtime.api == api]
    if not any(runtime.found() for runtime in serving):
        pytest.skip(f"no {api} driver for {gpu} is installed: {' or '.join(runtime.package for runtime in serving) or 'there is none'}")
