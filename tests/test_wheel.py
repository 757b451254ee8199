"""A wheel: built from a copy of the tree, installed in a fresh virtual environment, used from elsewhere."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from tests.conftest import ROOT

LIBRARIES = ("memory/_guard", "streamer/_latch", "eu/_native", "threads/_scheduler", "driver/_shim")
NOT_COPIED = shutil.ignore_patterns(".*", "build", "*.egg-info", "__pycache__", "*.so", "*_h.py", "tests", "shared")

pytestmark = [pytest.mark.witness, pytest.mark.skipif(not shutil.which("gcc"), reason="gcc is absent")]


def run(*command: object, **options: object) -> subprocess.CompletedProcess[str]:
    found = subprocess.run([str(item) for item in command], capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]
    assert found.returncode == 0, found.stdout + found.stderr
    return found  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    shutil.copytree(ROOT, folder / "tree", ignore=NOT_COPIED)
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", folder, folder / "tree")
    [found] = folder.glob("softgen-*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path) -> Path:
    """The `bin` of a virtual environment with the wheel in it. What softgen depends on comes from the environment of the tests."""
    venv = wheel.parent / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", venv)
    run(sys.executable, "-m", "pip", "--python", venv / "bin" / "python", "install", "--quiet", "--no-deps", "--no-index", wheel)
    [packages] = venv.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("platlib") + "\n")
    return venv / "bin"


def softgen(installed: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    told = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return run(installed / "softgen", *arguments, cwd="/", env=told)


def test_what_is_inside(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    for library in LIBRARIES:
        assert sum(name.startswith(f"softgen/{library}.") and name.endswith(".so") for name in names) == 1
    inside = {name.partition("softgen/")[2] for name in names}
    spec = {str(path.relative_to(ROOT / "softgen")) for path in (ROOT / "softgen" / "spec").rglob("*") if path.is_file()}
    assert {name for name in spec if "__pycache__" not in name} <= inside
    code = {str(path.relative_to(ROOT / "softgen")) for path in (ROOT / "softgen").rglob("*.py")}
    assert code <= inside
    assert not [name for name in names if name.startswith(("tests/", "bench/", "examples/", "build/"))]


def test_it_is_the_installed_one_that_runs(installed: Path) -> None:
    where = run(installed / "python", "-c", "import softgen; print(softgen.__file__)", cwd="/").stdout
    assert where.startswith(str(installed.parent))
    told = json.loads(softgen(installed, "doctor", "--json").stdout)
    assert told["ok"], [line for line in told["findings"] if line["status"] == "missing"]
    assert all(str(installed.parent) in line["detail"] for line in told["findings"] if line["name"] in ("shim library", "guard library"))


def test_a_program_runs_and_a_capture_is_replayed(installed: Path) -> None:
    loop = ROOT / "tests" / "driver" / "programs" / "doors.py"
    ran = softgen(installed, "run", "--json", "--", sys.executable, loop, "plainly")
    assert json.loads(ran.stderr.splitlines()[-1])["submissions"] > 0 and ran.stdout.strip().endswith("ok")
    replayed = json.loads(softgen(installed, "replay", "--json", ROOT / "tests" / "data" / "kbl-vk-compute").stdout)
    assert replayed["instructions"] == 60 and not replayed["faults"] and not replayed["unsupported"]
    assert "kernel_start_pointer" in softgen(installed, "spec", "3DSTATE_VS", "--gpu", "kbl").stdout
