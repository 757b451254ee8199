"""The pytest plugin, as a project uses it: tests of its own in a folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.conftest import ROOT
from tests.driver.running import needs_shim

FAULTY = ROOT / "tests" / "inspect" / "farm" / "programs" / "faulty"
TESTS = f"""
import pytest

@pytest.mark.softgen(gpu=["kbl", "icl"])
def test_each(softgen_run, softgen_gpu):
    ran = softgen_run()(["sh", "-c", "echo out; echo err >&2; test -e /dev/dri/renderD128"])
    assert ran.ok and (ran.stdout, ran.stderr) == ("out\\n", "err\\n") and ran.report == {{}} or ran.report["gpu"] == softgen_gpu

@pytest.mark.softgen(gpu="skl")
def test_one(softgen_run, softgen_gpu, tmp_path):
    assert softgen_gpu == "skl"
    ran = softgen_run("hsw", "--engine", "reference")(["sh", "-c", "cat; pwd; exit 7"], cwd=tmp_path, input="given ")
    assert ran.returncode == 7 and not ran.ok and ran.stdout == f"given {{tmp_path}}\\n"

def test_unmarked(softgen_run, softgen_gpu):
    assert softgen_gpu == "kbl" and softgen_run()(["true"]).ok

def test_a_fault(softgen_run):
    ran = softgen_run("kbl", "--keep-going")([{str(FAULTY)!r}])
    assert not ran.ok and "0x7f0000" in ran.faults[0] and ran.report["submissions"] == 1

def test_a_limit(softgen_run):
    ran = softgen_run()(["sleep", "60"], time_limit=1)
    assert ran.returncode == 1 and "time is up" in ran.stderr

@pytest.mark.softgen(gpu=["g45"], api="OpenCL")
def test_no_driver(softgen_run):
    softgen_run()(["true"])
    assert False
"""


@needs_shim
def test_a_project_uses_it(tmp_path: Path) -> None:
    (tmp_path / "test_own.py").write_text(TESTS)
    told = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "XDG_STATE_HOME": str(tmp_path / "state")}
    command = [sys.executable, "-m", "pytest", "-p", "softgen.inspect.pytest_plugin", "-v", "-rs", "--strict-markers", str(tmp_path)]
    ran = subprocess.run(command, cwd=tmp_path, env=told, capture_output=True, text=True, check=False)
    assert ran.returncode == 0 and "6 passed, 1 skipped" in ran.stdout, ran.stdout
    assert "test_each[kbl]" in ran.stdout and "test_each[icl]" in ran.stdout
    assert "OpenCL: no driver supports" in ran.stdout


def test_it_is_an_entry_point() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"softgen": "softgen.inspect.pytest_plugin"}
