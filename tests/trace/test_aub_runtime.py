"""AUB files as Intel's stock OpenCL runtime writes them, with expectations, executed on every engine. A long run: -m witness."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from softgen.threads.dispatcher import EngineDispatcher
from softgen.trace.file import open_trace
from softgen.trace.replay import replay
from tests.conftest import ROOT, SHARED, needs_shared
from tests.trace.test_tbx_runtime import PYTHON, has_runtime

CASES = ["i32_arith", "slm_reduce", "ndrange_ids", "atom_global", "cf_collatz", "sg_reduce_scan", "priv_big", "app_bitonic", "slm_scan",
         "vec_shuffle", "conv_int_sat", "i64_divmod", "cf_calls_stack", "app_crc_lev", "wide_ldst"]  # fmt: skip


@pytest.mark.witness
@needs_shared("kernels")
@pytest.mark.parametrize("gpu", ["bdw", "skl", "icllp"])
@pytest.mark.parametrize("case", CASES)
def test_files_of_the_stock_runtime(case: str, gpu: str, tmp_path: Path) -> None:
    if not has_runtime():
        pytest.skip("Intel's OpenCL runtime or pyopencl is absent")
    keys = {"NEOReadDebugKeys": "1", "SetCommandStreamReceiver": "1", "ProductFamilyOverride": gpu, "AUBDumpCaptureFileName": "made.aub"}
    command = [str(PYTHON), str(ROOT / "tests" / "trace" / "runtime_aub.py"), str(SHARED / "kernels" / case)]
    done = subprocess.run(command, env=os.environ | keys, cwd=tmp_path, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr[-2000:]
    expected = int(done.stdout.split()[-1])
    for engine in ("reference", "t0", "t1", "auto"):
        report = replay(open_trace(tmp_path / "made.aub"), groups=EngineDispatcher(engine))
        assert report.fine and report.passed >= expected > 0, (engine, report.failed, report.faults, report.unsupported)
        assert not report.remarks, report.remarks
