"""Seven bugs, each from the start to the line that is wrong, as a user types it, with the clock on.

Programs that real drivers run are witnesses; what needs no driver is tried each time.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from softgen.inspect.check.endless import ProvingThread
from softgen.inspect.cli.main import main
from softgen.inspect.snippet import Snippet
from tests.conftest import ROOT
from tests.driver.running import needs_driver

JOBS, TRIANGLE = ROOT / "tests/inspect/jobs", ROOT / "tests/data/kbl-vk-tri"
MOST = 60.0  # seconds for a job
SHADE = "gl_FragColor = vec4(shade, 1.0);"  # of examples/triangle.c
LOOP = """
again:
mov (16|M0) r10.0<1>:f r2.0<8;8,1>:f
jmpi again
"""


@pytest.fixture
def clock() -> Iterator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < MOST


Softgen = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def softgen(tmp_path: Path, clock: None) -> Softgen:
    """A user's shell in a folder of its own."""

    def run(*words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        ran = subprocess.run([sys.executable, "-m", "softgen", *words], cwd=tmp_path, text=True, capture_output=True, check=False,
                             timeout=2 * MOST)  # fmt: skip
        assert ran.returncode == code, ran.stdout + ran.stderr
        return ran

    return run


@pytest.fixture
def opencl(tmp_path: Path) -> None:
    """The folder has a program and its kernels."""
    needs_driver("kbl", "OpenCL")
    compiled(JOBS / "opencl.c", tmp_path / "opencl", "-lOpenCL")
    for file in JOBS.glob("*.cl"):
        shutil.copy(file, tmp_path)


def compiled(source: Path, program: Path, *libraries: str) -> None:
    compiler = shutil.which("cc")
    if compiler is None or subprocess.run([compiler, "-o", program, source, *libraries], check=False, capture_output=True).returncode:
        pytest.skip(f"{source.name} cannot be compiled (Debian: gcc ocl-icd-opencl-dev opencl-c-headers libegl-dev libgles-dev)")


def triangle(folder: Path, shader: str) -> None:
    """The example's program with another fragment shader, in a folder."""
    needs_driver("kbl", "OpenGL")
    source = (ROOT / "examples/triangle.c").read_text()
    assert SHADE in source
    (folder / "triangle.c").write_text(source.replace(SHADE, shader))
    compiled(folder / "triangle.c", folder / "triangle", "-lEGL", "-lGLESv2")


# -- as a user types it ------------------------------------------------------------------------------------------------


@pytest.mark.witness
def test_a_shader_that_never_ends(tmp_path: Path, softgen: Softgen) -> None:
    triangle(tmp_path, "float x = shade.x; while (x < 2.0) x = x * 0.5 + 0.1; gl_FragColor = vec4(x);")
    ran = softgen("check", "--gpu", "kbl", "--time-limit", "5", "--", "./triangle", "picture.ppm", "64", "64", code=1)
    assert re.search(r"error endless: 1:\d+/ps/g0\.t\d+\+0x\w+#\d+ kernel 0x\w+: endless: the thread is as it was 5 instructions before",
                     ran.stdout)  # fmt: skip
    assert "it has sent no message in between" in ran.stdout and "position 1:" in ran.stderr


@pytest.mark.witness
@pytest.mark.parametrize(("kernel", "kind", "lines"), [
    ("spin", "endless", ["spin.cl:6"]), ("beyond", "bounds", ["beyond.cl:8"]),
    ("unwritten", "uninitialised", ["unwritten.cl:9", "unwritten.cl:10"]), ("race", "race", ["race.cl:6", "race.cl:10"])])  # fmt: skip
def test_an_opencl_program_to_the_line(kernel: str, kind: str, lines: list[str], opencl: None, softgen: Softgen) -> None:
    options = ["--time-limit", "5"] if kernel == "spin" else []
    ran = softgen("check", "--gpu", "kbl", "--json", "--debug-info", *options, "--", "./opencl", f"{kernel}.cl", kernel, "256", "64", "-g",
                  code=1)  # fmt: skip
    (found, *_) = [finding for finding in json.loads(ran.stdout)["findings"] if finding["class"] == kind]
    assert all(line in " ".join(found["details"]) for line in lines), found
    assert found["kernel"] == kernel and f"{kernel}.cl:{found['source']['line']}" in lines


@pytest.mark.witness
def test_repaired_programs_have_no_findings(opencl: None, softgen: Softgen) -> None:
    for kernel in ("spin", "beyond", "unwritten", "race"):
        ran = softgen("check", "--gpu", "kbl", "--", "./opencl", f"{kernel}.cl", kernel, "256", "64", "-D FIXED")
        assert "8 worlds, no difference" in ran.stdout


@pytest.mark.witness
def test_a_race_in_the_debugger_stops_at_its_line(opencl: None, softgen: Softgen) -> None:
    ran = softgen("debug", "--gpu", "kbl", "--debug-info", "-c", "break race.cl:10", "-c", "continue", "-c", "where", "--", "./opencl",
                  "race.cl", "race", "256", "64", "-g")  # fmt: skip
    assert re.search(r"breakpoint 1: \d:\d+/cs/g0.t0\+0x\w+#\d+", ran.stdout) and "race.cl:10" in ran.stdout


@pytest.mark.witness
def test_a_wrong_pixel_of_a_program(tmp_path: Path, softgen: Softgen) -> None:
    """Green is missing: the fragment's thread shows which instruction makes the colour that is sent."""
    triangle(tmp_path, "gl_FragColor = vec4(shade.x, shade.x, shade.z, 1.0);")
    ran = softgen("debug", "--gpu", "kbl", "-c", "pixel 32 20", "-c", "list", "-c", "step 3", "--", "./triangle", "picture.ppm", "64", "64")
    assert re.search(r"start: \d:\d+/ps/g0\.t\d+\+0x0#0  pln", ran.stdout) and ran.stdout.count("pln (16|M0)") >= 2


@pytest.mark.witness
@pytest.mark.parametrize("verb", ["check", "debug"])
def test_a_program_that_dies_before_it_submits_anything(verb: str, softgen: Softgen) -> None:
    ran = softgen(verb, "--", "sh", "-c", "kill -SEGV $$", code=1)
    assert "sh has submitted nothing to the GPU, exit code 139: there is nothing to look at" in ran.stderr


# -- without a driver --------------------------------------------------------------------------------------------------


def test_a_register_that_nothing_has_written(clock: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eu", str(JOBS / "never.asm"), "--gpu", "kbl", "--set", "r2:d=1,2,3"]) == 0
    assert "never.asm:3:1: add (8|M0) r11.0<1>:d r10.0<8;8,1>:d r20.0<8;8,1>:d: depends on r20, which nothing has written" in \
        capsys.readouterr().out  # fmt: skip


@pytest.mark.parametrize("settings", [["r2:d=1,2,3", "r20:d=1*8"], ["r2:d=1*8", "r20:d=4"]])
def test_registers_that_are_set_are_known(settings: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    words = [word for setting in settings for word in ("--set", setting)]
    assert main(["eu", str(JOBS / "never.asm"), "--gpu", "kbl", "--json", *words]) == 0
    assert json.loads(capsys.readouterr().out)["unwritten"] is None


def test_channels_that_are_off_keep_their_flags(capsys: pytest.CaptureFixture[str]) -> None:
    """A comparison in a loop writes some bits of a flag that nothing has written; the others are looked at by nobody."""
    assert main(["eu", str(ROOT / "examples/collatz.asm"), "--gpu", "kbl", "--json", "--set", "r2:d=3,4"]) == 0
    assert json.loads(capsys.readouterr().out)["unwritten"] is None


def test_a_predicate_that_nothing_has_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "flag.asm").write_text("(f0.0) mov (8|M0) r10.0<1>:d r2.0<8;8,1>:d\n")
    assert main(["eu", str(tmp_path / "flag.asm"), "--gpu", "kbl", "--json", "--set", "r2:d=1*8"]) == 0
    assert "depends on a flag, which nothing has written" in json.loads(capsys.readouterr().out)["unwritten"]


def test_a_thread_is_proved_to_be_endless_where_its_state_returns() -> None:
    assert ProvingThread(Snippet(LOOP, 9.0, simd=16).interpreter).run() == 2
    counting = LOOP.replace("jmpi", "add (1|M0) r20.0<1>:d r20.0<0;1,0>:d 1:w\njmpi")
    assert ProvingThread(Snippet(counting, 9.0, simd=16).interpreter).run() is None


@pytest.mark.witness
def test_a_wrong_pixel_of_a_capture(clock: None, capsys: pytest.CaptureFixture[str]) -> None:
    """Its history names the draw and the thread, and the debugger begins there."""
    assert main(["view", str(TRIANGLE), "--no-counts", "--json", "history-2-124-0-32-20"]) == 0
    (fragment,) = json.loads(capsys.readouterr().out)[-1]["fragments"]
    assert main(["debug", str(TRIANGLE), "--at", fragment["thread"], "-c", "where", "-c", "step"]) == 0
    assert "(32,20)" in capsys.readouterr().out
