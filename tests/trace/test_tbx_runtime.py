"""Intel's stock OpenCL runtime on the simulator's socket. It is an outside program: a long run, asked for with -m witness."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from softgen.bits.generation import device
from softgen.threads.dispatcher import EngineDispatcher
from softgen.trace.tbx import TbxServer
from tests.conftest import SHARED, needs_shared
from tests.trace.test_tbx import Running

RUNTIME = Path("/etc/OpenCL/vendors/intel.icd")
PYTHON = shutil.which("python3", path="/usr/bin:/bin")
# Newer versions of pyopencl have no create_image any more, which the cases were written with.
RUN = """import runpy, sys
import pyopencl as cl
if not hasattr(cl, "create_image"):
    cl.create_image = lambda context, flags, form, shape, hostbuf=None: cl.Image(context, flags, form, shape=shape, hostbuf=hostbuf)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def has_runtime() -> bool:
    if PYTHON is None or not RUNTIME.exists():
        return False
    return subprocess.run([PYTHON, "-c", "import pyopencl"], capture_output=True).returncode == 0


@pytest.mark.witness
@needs_shared("kernels")
@pytest.mark.parametrize("engine", ["t0", "t1", "auto"])
@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("gpu", ["bdw", "skl", "icllp"])
def test_kernels_through_the_stock_runtime(gpu: str, binary: bool, engine: str) -> None:
    """`binary`: what the compiler made of them before, instead of the source. What cannot be run there, the runtime's client skips."""
    if not has_runtime():
        pytest.skip("Intel's OpenCL runtime or pyopencl is absent")
    running = Running(gpu, groups=lambda: EngineDispatcher(engine), time_limit=120)
    assert isinstance(running.server, TbxServer) and device(gpu)
    environment = os.environ | {"NEOReadDebugKeys": "1", "SetCommandStreamReceiver": "2", "ProductFamilyOverride": gpu,
                                "TbxPort": str(running.server.port)}  # fmt: skip
    choice = ["--binary", {"skl": "kbl"}.get(gpu, gpu)] if binary else []
    kernels = SHARED / "kernels"
    cases = sorted(path.parent for path in kernels.glob("*/case.json"))
    command = [str(PYTHON), "-c", RUN, str(kernels / "run_case.py"), *choice, *map(str, cases)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    running.server.close()
    said = done.stdout + done.stderr[-2000:] + "\n".join(running.log)
    assert done.returncode == 0 and " 0 failed" in done.stdout and not [line for line in running.log if "out of bounds" in line], said
    assert int(done.stdout.split()[-6]) >= len(cases) - 4, said
