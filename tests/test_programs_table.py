"""tools/programs: its table, how it judges a run, its page; and, as a witness, the subset of programs that is quick."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.conftest import ROOT
from tests.driver.running import needs_shim

FOLDER = ROOT / "tools" / "programs"


@pytest.fixture(scope="module")
def tool() -> Any:
    def load(name: str, file: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(name, FOLDER / file)
        assert spec is not None and spec.loader is not None
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    before = sys.path[:]
    try:
        load("soak", "soak.py")
        load("page", "page.py")
        yield load("programs_tool", "__main__.py")
    finally:
        sys.path[:] = before
        for name in ("page", "soak"):
            sys.modules.pop(name, None)


def test_the_table_has_programs_of_each_kind(tool: Any) -> None:
    programs = list(tool.table())
    names = [program.name for program in programs]
    assert len(programs) >= 120 and len(set(names)) == len(names)
    assert {program.on for program in programs} == {"kms", "wayland", "x", "none"} and any(program.witness for program in programs)
    binaries = {program.name: program.binary for program in programs}
    assert binaries["foot"] == "foot" and binaries["modetest"] == "modetest" and binaries["gtk4-demo-gtk4-demo"] == "gtk4-demo"


def ran(tool: Any, output: str = "", code: int | None = 0, colours: int = 2, **report: Any) -> Any:
    pixels = np.zeros((2, 2, 3), np.uint8)
    pixels[0, 0] = colours - 1
    return tool.Ran(code, output, report, pixels, {})


def test_a_run_is_judged_by_messages_picture_and_output(tool: Any) -> None:
    program = tool.Program("p", "pack", "p", "kms", rate=r"(\d+) fps", expect="done")
    fine = tool.judge(program, ran(tool, "20 fps\n60 fps\ndone\nsoftgen: 9 frames presented, 1 saved in x", frames={"presented": 9}))
    assert (fine.verdict, fine.picture, fine.rate, fine.frames, fine.error) == ("runs", "2 colours", 60.0, 9, "")
    for output, code, colours, verdict, error in (
        ("done\nsoftgen: geometry shader: not yet", 0, 2, "fails", "geometry shader: not yet"),
        ("x\noops", 3, 2, "fails", "exit code 3: oops"), ("done", 0, 1, "fails", "nothing is on the display"),
        ("done", tool.SEEN, 2, "runs", ""),
        ("done\nsoftgen: time is up after 20 s; the program is ended", 1, 2, "runs", ""),
        ("", None, 2, "hangs", "its output has no 'done'"), ("x", 0, 2, "fails", "its output has no 'done'")):  # fmt: skip
        found = tool.judge(program, ran(tool, output, code, colours))
        assert (found.verdict, found.error) == (verdict, error)


def test_a_rate_may_be_of_milliseconds(tool: Any) -> None:
    program = tool.Program("p", "pack", "p", rate=r"FrameTime: (?P<ms>\S+) ms")
    assert tool.own_rate(program, "FPS: 1 FrameTime: 900.0 ms\nFPS: 1 FrameTime: 625.0 ms") == 1.6
    assert tool.own_rate(program, "FrameTime: inf ms") == 0 and tool.own_rate(program, "FrameTime: x ms") is None


def test_results_are_merged_into_a_page(tool: Any, tmp_path: Path) -> None:
    program = next(iter(tool.table()))
    row = tool.Result(program.name, "pack", "a | b", "kbl", "runs", "7 colours", 3, 12.5, 0.25)
    tool.merged(tmp_path / "r.json", [row])
    rows = tool.merged(tmp_path / "r.json", [tool.Result(program.name, "pack", "a | b", "kbl", "runs", "7 colours", 3, 13.5)])
    assert len(rows) == 1 and rows[0]["ratio"] == 0.25
    page = tool.page(rows)
    assert "1 programs: 1 runs." in page and "`a \\| b` | kbl | runs | 7 colours | 13.5 | 0.25 |  |" in page


def test_a_page_is_read_again_where_no_results_are_kept(tool: Any, tmp_path: Path) -> None:
    first, second, *_ = tool.table()
    settled = {"memory": 200 << 20, "descriptors": 50, "processes": 3}
    soak = {"settled": settled, "end": {"memory": 210 << 20, "descriptors": 51, "processes": 4}}
    rows = [tool.Result(first.name, "pack", "a | b", "kbl", "fails", "7 colours", 0, 12.5, 0.25, "x | y", soak),
            tool.Result(second.name, "pack", "c", "g45", "runs")]  # fmt: skip
    page = tmp_path / "page.md"
    page.write_text(tool.page(tool.merged(tmp_path / "r.json", rows)), "utf-8")
    assert "| 200 → 210 | 50 → 51 | 3 → 4 |" in page.read_text("utf-8")
    assert tool.page(tool.merged(tmp_path / "other.json", [], page)) == page.read_text("utf-8")
    assert tool.merged(tmp_path / "other.json", rows[1:], page)[0]["error"] == "x | y"


def test_results_of_runs_beside_each_other_are_merged(tool: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [program.name for program in tool.table()][:3]
    for name in reversed(names):
        tool.merged(tmp_path / f"{name}.json", [tool.Result(name, "pack", "c", "g45", "runs")])
    kept, page = tmp_path / "kept.json", tmp_path / "page.md"
    merge = ["--merge", *(str(tmp_path / f"{name}.json") for name in reversed(names)), "--results", str(kept), "--page", str(page)]
    monkeypatch.setattr(sys, "argv", ["tools/programs", *merge])
    assert tool.main() == 0 and [row["name"] for row in tool.rows_of(page.read_text("utf-8"))] == names


def test_a_display_that_is_blank_on_llvmpipe_too_is_no_fault(tool: Any) -> None:
    program = tool.Program("p", "pack", "p", "kms", rate=r"(\d+) fps")
    assert tool.judge(program, ran(tool, "no display", colours=1)).error == tool.ENDED
    for colours, verdict in ((1, "runs"), (2, "fails")):
        result = tool.judge(program, ran(tool, "20 fps", tool.SEEN, colours=1))
        tool.beside_llvmpipe(program, result, ran(tool, "80 fps", colours=colours))
        assert (result.verdict, result.ratio) == (verdict, 0.25)


def test_growth_is_complained_about(tool: Any) -> None:
    settled = {"memory": 200 << 20, "descriptors": 50, "processes": 3}
    for more, text in (({"memory": 400 << 20}, "memory grew from 200 to 400 MiB"), ({"descriptors": 90}, "descriptors grew"),
                       ({"processes": 9}, "processes grew")):  # fmt: skip
        assert text in tool.Growth(settled, settled | more).complaint()
    assert tool.Growth(settled, settled).complaint() == ""


@pytest.mark.witness
@needs_shim
def test_programs_of_the_table_run(tmp_path: Path) -> None:
    command = [sys.executable, str(FOLDER), "--witness", "--results", str(tmp_path / "r.json"), "--page", str(tmp_path / "p.md")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
