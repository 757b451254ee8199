"""pyopencl's and silx's own tests, and OpenCV's functions on the GPU against the CPU: long runs, where these packages are installed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.driver import strangers
from tests.driver.running import PROGRAMS, Softgen, needs_driver, needs_shim

PARTS = 4  # of a suite: runs that several workers can share
EXACT, ROUNDED, FLOAT, LONG_SUM = 0.0, 1 / 128, 1e-6, 1e-4  # difference in parts of the largest value; ROUNDED: 1 of 255, and less
OPENCV = {"matchTemplate": LONG_SUM, "matchTemplate-normed": LONG_SUM, "GaussianBlur": EXACT, "GaussianBlur-float": FLOAT,
          "cvtColor-gray": EXACT, "cvtColor-hsv": ROUNDED, "resize": ROUNDED, "resize-area": ROUNDED, "dft": FLOAT,
          "filter2D": FLOAT}  # fmt: skip
JUNIT = """<testsuites><testsuite>
<testcase classname="test_a" name="test_one[&lt;context factory for &lt;x [1]&gt;&gt;]"/>
<testcase classname="test_a" name="test_two[&lt;context factory for &lt;x [1]&gt;&gt;-float32]"><failure message=""/></testcase>
<testcase classname="test_a.TestB" name="test_three"><skipped message=""/></testcase>
<testcase classname="test_a" name="test_four"/>
<testcase classname="test_a" name="test_four"><error message="in its teardown"/></testcase>
</testsuite></testsuites>"""


@pytest.mark.witness
@needs_shim
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("suite", ["pyopencl", "silx"])
def test_a_suite_of_strangers(suite: str, part: int) -> None:
    """Nothing fails but what is listed, and all that is listed fails, but for tests that fail sometimes."""
    needs_driver("kbl", "OpenCL")
    place = strangers.folder(suite)
    if isinstance(place, str):
        pytest.skip(place)
    names = strangers.files(place)[part::PARTS]
    outcome = strangers.run(place, names)
    modules = tuple(f"{strangers.module(name)}." for name in names)
    listed = {test: reason for test, reason in strangers.known(suite).items() if test.startswith(modules)}
    unsteady = {test for test, reason in listed.items() if reason.startswith("sometimes:")}
    assert outcome.failed - unsteady == set(listed) - unsteady, outcome.said
    assert outcome.passed, f"no test ran: {outcome.said}"


@pytest.mark.witness
@needs_shim
@pytest.mark.parametrize("function", OPENCV)
def test_opencv_on_the_gpu_and_on_the_cpu(function: str, tmp_path: Path) -> None:
    needs_driver("kbl", "OpenCL")
    if strangers.package("cv2") is None:
        pytest.skip(f"{strangers.INTERPRETER} has no cv2 (SOFTGEN_STRANGERS_PYTHON names another interpreter)")
    report = tmp_path / "report"
    program = [strangers.INTERPRETER, str(PROGRAMS / "opencv_umat.py"), function]
    run = Softgen("--report", str(report), "--", *program, XDG_CACHE_HOME=str(tmp_path))
    assert run.finish(seconds=600) == 0, run.out + run.err
    found = json.loads(run.out)
    assert "Intel" in found["device"] and found["difference"] <= OPENCV[function], found
    assert sum(kernel["dispatches"] for kernel in json.loads(report.read_text("utf-8"))["kernels"]) > 0, "OpenCV did it on the CPU"


def test_results_are_read() -> None:
    assert strangers.read("test_a.py", JUNIT) == {"test_a.test_one": "pass", "test_a.test_two[float32]": "fail",
                                                  "test_a.TestB.test_three": "skip", "test_a.test_four": "fail"}  # fmt: skip
    assert strangers.read("sub/test_b.py", "") == {"sub.test_b.*": "fail"}, "it crashed, or took too long"


def test_known_failures_have_reasons() -> None:
    rows = [line.split("\t") for line in strangers.KNOWN.read_text("utf-8").splitlines() if not line.startswith("#")]
    assert rows and all(len(row) == 3 and all(row) and row[0] in ("pyopencl", "silx") for row in rows)


def test_an_interpreter_without_the_packages_is_a_reason_to_skip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\n", "ascii")
    python.chmod(0o755)
    monkeypatch.setattr(strangers, "INTERPRETER", str(python))
    strangers.package.cache_clear()
    assert str(strangers.folder("silx")).startswith(f"{python} has no silx")
    strangers.package.cache_clear()


def test_each_file_is_run_alone_and_failures_once_more(tmp_path: Path) -> None:
    """The loop itself, without a GPU: one test that fails always, one that fails after another only, a crash, a file that is fine."""
    (tmp_path / "test_a.py").write_text("state = []\ndef test_first():\n    state.append(1)\n    assert False\n"
                                        "def test_second():\n    assert not state\n", "ascii")  # fmt: skip
    (tmp_path / "test_b.py").write_text("import os\ndef test_crash():\n    os._exit(3)\n", "ascii")
    (tmp_path / "test_c.py").write_text("def test_fine():\n    pass\n", "ascii")
    out = tmp_path / "out"
    out.mkdir()
    names = ["test_a.py", "test_b.py", "test_c.py"]
    subprocess.run([sys.executable, "-c", strangers.LOOP, tmp_path, out, *names], check=True, capture_output=True)
    assert strangers.results(out, names) == {"test_a.test_first": "fail", "test_a.test_second": "pass", "test_b.*": "fail",
                                             "test_c.test_fine": "pass"}  # fmt: skip
