"""Intel's stock OpenCL runtime on the simulator's socket. It is an outside program: a long run, asked for with -m witness."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from softgen.bits.generation import device
from softgen.trace.tbx import Server
from tests.conftest import SHARED, needs_shared
from tests.trace.test_tbx import Running

RUNTIME = Path("/etc/OpenCL/vendors/intel.icd")
PYTHON = shutil.which("python3", path="/usr/bin:/bin")
CASES = ["i32_arith", "vec4_ops", "ndrange_ids", "const_table", "conv_int_sat", "f32_arith", "bitrev_loop", "cf_uniform", "slm_reduce",
         "atom_global", "sg_vote", "struct_aos"]  # fmt: skip


def has_runtime() -> bool:
    if PYTHON is None or not RUNTIME.exists():
        return False
    return subprocess.run([PYTHON, "-c", "import pyopencl"], capture_output=True).returncode == 0


@pytest.mark.witness
@needs_shared("kernels")
@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("gpu", ["bdw", "skl", "icllp"])
def test_kernels_through_the_stock_runtime(gpu: str, binary: bool) -> None:
    """`binary`: what the compiler made of them before, instead of the source."""
    if not has_runtime():
        pytest.skip("Intel's OpenCL runtime or pyopencl is absent")
    running = Running(gpu)
    assert isinstance(running.server, Server) and device(gpu)
    environment = os.environ | {"NEOReadDebugKeys": "1", "SetCommandStreamReceiver": "2", "ProductFamilyOverride": gpu,
                                "TbxPort": str(running.server.port)}  # fmt: skip
    choice = ["--binary", {"skl": "kbl"}.get(gpu, gpu)] if binary else []
    kernels = SHARED / "kernels"
    command = [str(PYTHON), str(kernels / "run_case.py"), *choice, *(str(kernels / name) for name in CASES)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    running.server.close()
    assert done.returncode == 0 and f"{len(CASES)} passed, 0 failed" in done.stdout, (
        done.stdout + done.stderr[-2000:] + "\n".join(running.log)
    )
