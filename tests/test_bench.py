"""The benchmark runner prints rates and ratios."""

import ctypes
import hashlib
import importlib
import json
import os
import re
import struct
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest

import bench
from bench import _work as bench_work
from bench import compute, driver, farm, geometry, graphics, growth, kernels, scenes, starts
from bench.__main__ import as_json, available, measurements, row
from bench._plot import plot
from bench._program import Dispatch, kernel
from softgen.errors import SoftgenError
from tests.conftest import ROOT


def test_rate_and_ratio() -> None:
    measurement = bench.Measurement("decode", 1000, "commands", 0.5, "peer", 1.0)
    assert (measurement.rate, measurement.ratio) == (2000, 2.0)
    assert row("x", measurement)[1:] == ("decode", "2,000", "commands/s", "2.00 x peer")
    assert bench.Measurement("decode", 1000, "commands", 0.5).ratio is None


def test_a_summary_has_no_rate_and_a_note_comes_last() -> None:
    measurement = bench.Measurement("mean", 1, "", 1.0, "C", 0.7, "worst: conv")
    assert row("x", measurement)[1:] == ("mean", "", "", "0.70 x C", "worst: conv")
    assert as_json("x", measurement)["ratio"] == 0.7 and as_json("x", measurement)["note"] == "worst: conv"


@pytest.mark.covering(1)
@pytest.mark.parametrize("engine", ["t0", "t1"])
@pytest.mark.parametrize("name", ["saxpy", "matmul", "hist", "sha"])
def test_programs_compute_what_numpy_does(name: str, engine: str) -> None:
    """Small ones, as the compiler made them for a real GPU."""
    rng = np.random.default_rng(3)
    a, b, n = rng.random((32, 32), np.float32), rng.random((32, 32), np.float32), np.uint32(32)
    numbers = rng.integers(0, 1 << 32, 512, np.uint32)
    counts = np.bincount(numbers & 255, minlength=256)
    sums = [struct.unpack(">I", hashlib.sha256(struct.pack(">II", i, 7)).digest()[:4])[0] for i in range(256)]
    arguments, size, group, result, expected = {
        "saxpy": ([a.ravel(), b.ravel(), np.float32(2.5)], (1024,), (256,), 1, 2.5 * a.ravel() + b.ravel()),
        "matmul": ([a, b, np.zeros_like(a), n], (32, 32), (16, 16), 2, a @ b),
        "hist": ([numbers, np.zeros(256, np.uint32), np.uint32(2), np.uint32(256)], (256,), (256,), 1, counts),
        "sha": ([np.zeros(256, np.uint32), np.uint32(7)], (256,), (256,), 0, np.array(sums)),
    }[name]  # fmt: skip
    dispatch = Dispatch(name, arguments, size, group, engine)
    assert dispatch.run().threads == np.prod(size) // dispatch.kernel.simd
    assert np.allclose(dispatch.arrays[result], expected, rtol=1e-5, atol=0)


def test_every_work_has_a_program_and_a_peer() -> None:
    source = (bench_work.SOURCE).read_text("utf-8")
    for work in bench_work.works():
        assert kernel(work.name).arguments and f"void {work.name}(" in source


def test_best_time_calls_often_enough() -> None:
    calls: list[int] = []
    assert bench.best_time(lambda: calls.append(1), least=0.0, rounds=4) > 0
    assert len(calls) == 4


def test_measurements_are_told_as_they_come(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [bench.Measurement("one", 1000, "commands", 0.5), bench.Measurement("two", 1, "", 0.5, "C", 1.0, "a note")]
    monkeypatch.setattr(importlib, "import_module", lambda name: SimpleNamespace(measure=lambda: iter(rows)))
    found = measurements(["decode"])
    assert next(found) == ("decode", rows[0])
    assert capsys.readouterr().err == "measuring decode …\none  2,000  commands/s\n"
    assert list(found) == [("decode", rows[1])]
    assert capsys.readouterr().err == "two  2.00 x C  a note\n"


def test_an_unknown_benchmark_is_misuse() -> None:
    found = subprocess.run([sys.executable, "-m", "bench", "nonsense"], capture_output=True, text=True, cwd=ROOT, check=False)
    assert found.returncode == 2 and "no benchmark 'nonsense'" in found.stderr
    assert "nonsense" not in available()


def test_what_a_program_says_about_its_waits() -> None:
    assert driver.wait_times("1024 sums, 0 of them wrong\nwaits 700.5 900.0 12000.0 us\n") == pytest.approx((700.5e-6, 900e-6, 12e-3))
    with pytest.raises(SoftgenError, match="said nothing about waits"):
        driver.wait_times("1024 sums, 0 of them wrong\n")


def test_memory_of_a_server_that_is_not_there() -> None:
    assert driver.server_memory(os.getpid()) == 0.0


def test_without_a_driver_nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("softgen.driver.uapi.kernel_tables.glob.glob", lambda pattern: [])
    true, *rest = driver.measure()
    assert true.what == "run true" and true.ratio and [row.ratio for row in rest] == [None, None]
    assert "intel-opencl-icd" in rest[0].note and "libgl1-mesa-dri" in rest[1].note


def test_kernels_without_a_driver_are_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("softgen.driver.uapi.kernel_tables.glob.glob", lambda pattern: [])
    [measurement] = compute.measure()
    assert "intel-opencl-icd" in measurement.note and measurement.ratio is None


def test_peers_are_found_by_icd_file_or_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pocl, intel = compute.PEERS
    (tmp_path / "icds").mkdir()
    (tmp_path / "icds" / "one.icd").write_text("/somewhere/libpocl.so.2\n", "utf-8")
    (tmp_path / "libintelocl.so").touch()
    monkeypatch.setattr(compute, "SYSTEM_LIBRARIES", ())
    monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path / "icds"))
    monkeypatch.setenv("LD_LIBRARY_PATH", f":{tmp_path}")
    assert (pocl.found(), intel.found()) == ("/somewhere/libpocl.so.2", str(tmp_path / "libintelocl.so"))
    monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path))
    assert pocl.found() == ""


def test_kernels_beside_a_peer_and_their_mean() -> None:
    ours, theirs = compute.Runner.__new__(compute.Runner), compute.Runner.__new__(compute.Runner)
    theirs.name = "peer"
    ours.times = {"a": compute.Times([[2.0, 1.0, 3.0], [6.0, 5.0, 6.0], [3.0]]), "b": compute.Times([[1.0]])}
    theirs.times = {"a": compute.Times([[4.0, 4.0], [4.0]]), "b": compute.Times([[1.0]])}
    rows = list(compute.table(ours, theirs, 2))
    assert [row.ratio for row in rows] == pytest.approx([4.0, 1.0, 2.0]) and rows[0].what == "a, 2 threads"
    assert "over best 3.00 beside 1.00, in a turn 1.20 beside 1.00" in rows[0].note and "of medians 1.15" in rows[2].note


def test_runtimes_take_turns() -> None:
    order = []

    class Turns:
        def __init__(self, name: str) -> None:
            self.name, self.times = name, dict[str, compute.Times]()

        def turn(self, kernel: str, seconds: float) -> list[float]:
            order.append((self.name, kernel, seconds))
            return [float(len(order))]

    ours, theirs = Turns("ours"), Turns("theirs")
    compute.take_turns([ours, theirs], "a", 2, 0.5)  # type: ignore[list-item]
    assert order == [("ours", "a", 0.5), ("theirs", "a", 0.5)] * 2
    assert (ours.times["a"].turns, theirs.times["a"].turns) == ([[1.0], [3.0]], [[2.0], [4.0]])


def test_plain_c_has_turns_as_a_runtime_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its answer is that of one call."""
    answer = np.zeros(1, np.uint32)
    monkeypatch.setattr(compute._work, "peer", lambda library, name, work: (lambda: np.add(answer, 1, answer), answer))
    loop, work = compute.PlainLoop(ctypes.CDLL(None)), compute.works()[0]
    loop.add(work, tmp_path)
    assert loop.result(work, tmp_path).tolist() == [1]
    times = loop.turn(work.name, 1.0)
    assert len(times) == 1 + compute.MOST and answer.tolist() == [1 + len(times)] and all(time > 0 for time in times)
    assert len(loop.turn(work.name, 0.0)) == 3
    loop.close()


def case(folder: Path, **spec: object) -> kernels.Case:
    folder.mkdir()
    held = {"kernel": "work", "global": [64], "local": [16], "offset": [0], "options": "", "args": [], **spec}
    (folder / "case.json").write_text(json.dumps(held), "utf-8")
    return kernels.Case(folder)


def test_a_case_is_enlarged_in_a_dimension_that_it_does_not_use(tmp_path: Path) -> None:
    line, plane = case(tmp_path / "line"), case(tmp_path / "plane", **{"global": [8, 4], "local": [4, 2], "offset": [1, 2]})
    assert line.size(7) == "size work 64 7 1 16 1 1 0 0 0" and plane.size(7) == "size work 8 4 7 4 2 1 1 2 0"
    space = case(tmp_path / "space", **{"global": [8, 4, 2], "local": [4, 2, 1]})
    assert not space.grows and space.size(7) == "size work 8 4 2 4 2 1 0 0 0"


def test_arguments_of_a_case_are_files_and_bytes(tmp_path: Path) -> None:
    given = [{"index": 1, "kind": "scalar", "name": "n", "dt": "i2", "v": -2}, {"index": 2, "kind": "local", "name": "l", "nbytes": 64},
             {"index": 0, "kind": "in", "name": "a", "dt": "f4", "n": 3, "file": "in_a.npy"},
             {"index": 3, "kind": "img_out", "name": "i", "order": "RGBA", "ctype": "FLOAT", "shape": [32, 16]},
             {"index": 4, "kind": "out", "name": "o", "dt": "u4", "n": 5}]  # fmt: skip
    found = case(tmp_path / "one", args=given)
    np.save(found.folder / "in_a.npy", np.array([1, 2, 3], np.float32))
    first, *lines = found.order(tmp_path).splitlines()
    assert first == f"kernel work {tmp_path}/one/one.cl 1 1 1 1 5"
    assert lines == [f"buffer {tmp_path}/one-a", "bytes feff", "local 64", "image 1 4277 4318 32 16 -", f"buffer {tmp_path}/one-o"]
    assert np.fromfile(tmp_path / "one-a", np.float32).tolist() == [1, 2, 3] and (tmp_path / "one-o").stat().st_size == 20


class Growing(compute.Runner):
    """Takes so many seconds a repetition."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.count = seconds, 1

    def ask(self, order: str) -> str:
        self.count = int(order.split()[3])
        return "sized work"

    def run(self, name: str, count: int) -> list[float]:
        return [self.seconds * self.count] * count


def test_cases_take_long_enough_and_not_too_long(tmp_path: Path) -> None:
    one = case(tmp_path / "one")
    runners: list[compute.Runner] = [Growing(1e-5), Growing(1e-4)]
    assert kernels.enlarged(one, runners) == 1024 and min(runners[0].run("", 1)) >= kernels.LEAST
    assert kernels.enlarged(one, [Growing(1e-7), Growing(1e-2)]) == 16  # the slowest may take half a second


def test_a_device_that_is_no_gpu_is_not_called_softgen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A peer's loader may find its own device in place of softgen's."""
    closed = list[compute.Runner]()
    monkeypatch.setattr(compute.Runner, "__init__", lambda self, name, command, environment: None)
    monkeypatch.setattr(compute.Runner, "ask", lambda self, order: "other\n")
    monkeypatch.setattr(compute.Runner, "close", lambda self: closed.append(self))
    with pytest.raises(SoftgenError, match="another OpenCL device"):
        compute.runners(tmp_path / "program", tmp_path, 1, [])
    assert len(closed) == 1


def test_cases_are_translated_before_they_are_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a peer all time is in compiled code; one that translates in the background would be timed before it has."""
    commands = list[list[str]]()
    monkeypatch.setattr(compute.Runner, "__init__", lambda self, name, command, environment: commands.append(command))
    monkeypatch.setattr(kernels, "prepared", lambda case, everyone, folder: [])
    monkeypatch.setattr(compute.Runner, "close", lambda self: None)
    monkeypatch.setattr(compute.Runner, "ask", lambda self, order: "gpu\n")
    with pytest.raises(SoftgenError, match="does not run"):
        list(kernels.measured(case(tmp_path / "one"), tmp_path / "program", tmp_path, []))
    [command] = commands
    assert command[command.index("--engine") + 1] == "t1" and command[-2:] == ["--", str(tmp_path / "program")]


def test_without_a_driver_nothing_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("softgen.driver.uapi.kernel_tables.glob.glob", lambda pattern: [])
    for module in (growth, kernels):
        [measurement] = module.measure()
        assert "intel-opencl-icd" in measurement.note and measurement.ratio is None


def test_growth_is_plotted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the time of the smallest size, in rows and in a picture."""
    monkeypatch.setattr(growth, "lacking", lambda: "")
    monkeypatch.setattr(growth, "Programs", lambda *values: None)
    monkeypatch.setattr(growth, "unit_time", lambda programs, what, number: 1e-6 * (2 if number == 1024 else 1))
    monkeypatch.setenv("PLOT", str(tmp_path / "growth.svg"))
    rows = list(growth.measure())
    assert [row.ratio for row in rows] == [1, 1, 1, 0.5, 1, 1, 1, 1, 1, 1, 1, 1] and rows[7].what == "10,000,000 threads"
    drawn = ElementTree.parse(tmp_path / "growth.svg").getroot()
    lines = [line.get("points", "").split() for line in drawn.iter("{http://www.w3.org/2000/svg}polyline")]
    heights = [[float(point.split(",")[1]) for point in line] for line in lines]
    assert len(lines) == 3 and heights[0][3] < heights[0][2] == heights[1][3]


def test_a_program_that_says_nothing_about_growth() -> None:
    class Silent(driver.Programs):
        def __init__(self) -> None: ...

        def run(self, *arguments: str, cache: str = "warm", simulated: bool = True) -> str:
            return "12.5 ns\n" if arguments == ("threads", "3") else ""

    assert growth.unit_time(Silent(), "threads", 3) == pytest.approx(12.5e-9)
    with pytest.raises(SoftgenError, match="said nothing about buffers"):
        growth.unit_time(Silent(), "buffers", 3)


def test_a_plot_shows_all_of_its_values() -> None:
    drawn = plot({"a": [1.0, 30.0], "b": [1.0, 0.01]}, (1, 4), "title")
    heights = [float(y) for y in re.findall(r"[\d.]+,([\d.]+)", drawn)]
    assert all(0 <= height <= 320 for height in heights) and len(heights) == 4


def test_a_farm_is_beside_its_goals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Units that do nothing leave the farm's own cost; captures are replayed by one worker and by two."""
    monkeypatch.setattr(farm, "UNITS", 50)
    monkeypatch.setattr(farm, "LEAST", 2)
    monkeypatch.delenv("FARM_CAPTURES", raising=False)
    monkeypatch.setattr(farm, "CAPTURES", farm.CAPTURES[1:2])
    monkeypatch.setattr(farm, "processors", lambda: 2)
    monkeypatch.delenv("SOFTGEN_DEQP", raising=False)
    own, memory, two, cases = farm.measure()
    assert own.amount == 50 and own.peer_seconds == pytest.approx(0.5) and memory.quantity == "megabytes"
    assert two.what == "2 workers, 2 captures" and two.ratio and "goal 1.8" in two.note and "; 0 did not pass" in two.note
    assert "name no program and list" in cases.note


def test_memory_is_not_called_time() -> None:
    measurement = bench.Measurement("memory", 1, "", 101.0, "the goal", 200.0, quantity="megabytes")
    assert as_json("x", measurement)["megabytes"] == 101.0 and "seconds" not in as_json("x", measurement) and row("x",
        measurement)[-1] == "1.98 x the goal"


def test_drawing_without_a_driver_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("softgen.driver.uapi.kernel_tables.glob.glob", lambda pattern: [])
    for benchmark in (graphics, geometry):
        [measurement] = benchmark.measure()
        assert "libgl1-mesa-dri" in measurement.note and measurement.ratio is None


def test_scenes_without_their_module_are_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenes, "MODULE", "no_module_of_this_name")
    [measurement] = scenes.measure()
    assert "no_module_of_this_name (pip install" in measurement.note and measurement.ratio is None


def test_a_scene_is_a_command_of_its_program(tmp_path: Path) -> None:
    command = scenes.SceneFrames(tmp_path).command("blur", 0, 20, tmp_path / "picture")
    assert command[0] == sys.executable and command[2:] == ["blur", "20", str(tmp_path / "picture")]
    assert (ROOT / "bench" / "programs" / "scenes.py").samefile(command[1])


class Known(graphics.Frames):
    """Frames whose times are given."""

    def __init__(self) -> None:
        self.times = {("softgen", "flat", 20): 0.5, ("softgen", "flat", 0): 0.1, ("llvmpipe", "flat", 20): 0.3,
                      ("llvmpipe", "flat", 0): 0.1}  # fmt: skip

    def agreement(self, scene: str, count: int) -> float:
        return 0.5


def test_a_step_of_drawing_is_a_difference_of_frames() -> None:
    step = graphics.STEPS[-1]
    measurement = graphics.measured_step(Known(), step)
    assert measurement.seconds == pytest.approx(0.4) and measurement.ratio == pytest.approx(50e-9 * 20 * 65536 / 0.4)
    assert "305 ns; goal 50 ns, llvmpipe 153 ns" in measurement.note


def test_a_scene_is_beside_llvmpipe() -> None:
    measurement = graphics.measured_scene(Known(), "flat", "flat", 20, 1000, "pixels")
    assert measurement.rate == 2000 and measurement.ratio == pytest.approx(0.6) and "50.00% of the pixels agree" in measurement.note


def test_captured_vertices_agree_if_their_floats_do(tmp_path: Path) -> None:
    frames = object.__new__(geometry.GeometryFrames)
    frames.folder = tmp_path
    for renderer, values in (("softgen", [1.0, 2.0, 3.0, 1e9]), ("llvmpipe", [1.0, 2.0 + 1e-6, 3.1, 1e9])):
        np.array(values, np.float32).tofile(frames.picture(renderer, "feedback", 2))
    assert frames.agreement("feedback", 2) == 0.75


def test_texture_functions_are_called_as_kernels_call_them() -> None:
    """In a process of its own: a function called with other arguments than its own would read wild addresses."""
    code = "from bench import sampler; sampler.CALLS = 64; print(next(iter(sampler.measure())).note)"
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0 and ran.stdout.endswith("ns a message\n"), ran.stderr


def test_each_part_of_the_cold_start_can_be_switched_off() -> None:
    """The module is there, and has what is replaced."""
    code = ("import importlib, sys; from bench._without import PARTS, Switch\n"
            "for part, (name, _) in PARTS.items():\n"
            "    sys.modules.pop(name, None); sys.meta_path.insert(0, Switch(part)); importlib.import_module(name); del sys.meta_path[0]\n"
            "from softgen.bits import store; from softgen.lanes.compile import compile_policy\n"
            "print(len(PARTS), store.PageStore.load(None, 9.0, 'key') is store.MISSING, compile_policy.in_background())")
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.stdout == f"{len(starts.PARTS)} True False\n", found.stderr


def test_starts_are_compared_by_their_medians() -> None:
    slow = [starts.Start(number, number / 2) for number in (5.0, 2.0, 9.0)]
    quick = [starts.Start(number, 0.5) for number in (1.0, 4.0, 1.0)]
    whole, part = starts.compared("true", {starts.WITHOUT: quick, "pages": slow})
    assert (whole.what, whole.seconds) == ("true with all parts", 1.0)
    assert (part.what, part.ratio, part.note) == ("true without pages", 0.2, "+4000 ms, +2000 ms of CPU")


def test_a_part_that_does_not_exist_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARTS", "pages,engine")
    with pytest.raises(SoftgenError, match="no part of the cold start is called engine; parts are pages, loading, "):
        next(iter(starts.measure()))
