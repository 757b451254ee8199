"""`softgen farm run`: the contract, a second run, and everything that may end a farm early."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest

from softgen.inspect.cli.main import main
from tests.conftest import ROOT, witness
from tests.driver.running import needs_shim
from tests.inspect.farm.farming import by_name, farm, lines, start, write_list

pytestmark = needs_shim


def counting(folder: Path, name: str, code: int = 0) -> str:
    """A test that leaves a mark of each of its runs."""
    return f"sh -c {shlex.quote(f'echo >> {folder}/{name}; exit {code}')}"


def runs(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in sorted(folder.iterdir())}


def test_the_contract(tmp_path: Path) -> None:
    tests = ["true", "sh -c 'exit 3'", "sh -c 'kill -SEGV $$'", "sleep 1234.125", "sh -c 'exit 77'", 'printf "%s\\n" "a b" c\\ d']
    listed = write_list(tmp_path / "list", ["# a comment", "", *tests, "  true  "])
    ran = farm("run", "--tests", listed, "--out", tmp_path / "out", "--gpu", "kbl,icl", "--time-limit", "4", "--junit", tmp_path / "j.xml")
    found = lines(tmp_path / "out")
    assert ran.returncode == 1 and {line["gpu"] for line in found} == {"kbl", "icl"} and len(found) == 12
    assert all(set(line) == {"name", "gpu", "result", "seconds", "message", "hash"} for line in found)
    results = {(line["gpu"], line["name"]): line["result"] for line in found}
    for gpu in ("kbl", "icl"):
        assert [results[gpu, test] for test in tests] == ["pass", "fail", "crash", "timeout", "skip", "pass"]
    assert all(4 <= line["seconds"] < 20 for line in found if line["result"] == "timeout")
    assert {suite.get("name"): suite.get("tests") for suite in ElementTree.parse(tmp_path / "j.xml").getroot()} == {"icl": "6", "kbl": "6"}
    assert "icl: 6 units: 2 pass, 1 fail, 1 crash, 1 timeout, 1 skip" in ran.stdout and "crash  kbl  sh -c" in ran.stdout


def test_a_second_run_does_what_is_missing(tmp_path: Path) -> None:
    (marks := tmp_path / "marks").mkdir()
    one, two, three = (counting(marks, name) for name in ("one", "two", "three"))
    out = tmp_path / "out"
    assert farm("run", "--tests", write_list(tmp_path / "list", [one, two]), "--out", out).returncode == 0
    assert runs(marks) == {"one": 1, "two": 1}
    more = write_list(tmp_path / "list", [one, two, three])
    ran = farm("run", "--tests", more, "--out", out)
    assert ran.returncode == 0 and runs(marks) == {"one": 1, "three": 1, "two": 1} and "2 of them were there already" in ran.stdout
    assert farm("run", "--tests", more, "--out", out, "--again").returncode == 0
    assert runs(marks) == {"one": 2, "three": 2, "two": 2} and len(lines(out)) == 3
    assert farm("run", "--tests", more, "--out", out, "--gpu", "icl").returncode == 0 and runs(marks)["one"] == 3 and len(lines(out)) == 6


def test_another_program_is_another_unit(tmp_path: Path) -> None:
    program = tmp_path / "program"
    listed = write_list(tmp_path / "list", [str(program)])
    for code in (0, 5):
        program.write_text(f"#!/bin/sh\nexit {code}\n")
        program.chmod(0o755)
        assert farm("run", "--tests", listed, "--out", tmp_path / "out").returncode == bool(code)
    [line] = lines(tmp_path / "out")
    assert (line["result"], line["message"]) == ("fail", "exit code 5")


def test_a_unit_that_differs_is_a_finding(tmp_path: Path) -> None:
    """It passes once, and fails ever after."""
    listed = write_list(tmp_path / "list", [f"sh -c 'test ! -e {tmp_path}/mark && touch {tmp_path}/mark'"])
    command = ("run", "--tests", listed, "--out", tmp_path / "out")
    assert farm(*command).returncode == 0
    ran = farm(*command, "--again")
    assert ran.returncode == 1 and "two runs of the same unit differ: {'result': 'pass', 'message': ''} and {'result': 'fail'" in ran.stderr
    [finding] = json.loads((tmp_path / "out" / "findings.json").read_text())
    assert finding["finding"] == "two runs of the same unit differ" and len(lines(tmp_path / "out")) == 1


def test_expected_failures_leave_the_exit_code_alone(tmp_path: Path) -> None:
    listed = write_list(tmp_path / "list", ["true", "false", "sh -c 'exit 4'", "sh -c 'exit 5'"])
    baseline, flakes = write_list(tmp_path / "fails.csv", ["false,Fail"]), write_list(tmp_path / "flakes", ["exit 4"])
    skips = write_list(tmp_path / "skips", ["exit 5"])
    command = ("run", "--tests", listed, "--out", tmp_path / "out", "--baseline", baseline, "--flakes", flakes)
    ran = farm(*command, "--skips", skips, "--json")
    found = json.loads(ran.stdout)
    assert ran.returncode == 0 and found["fine"] and (found["units"], found["fail"], found["expected"], found["flake"]) == (3, 2, 1, 1)
    assert farm(*command).returncode == 1
    passing = write_list(tmp_path / "passes", ["true,Fail"])
    ran = farm("run", "--tests", write_list(tmp_path / "list", ["true"]), "--out", tmp_path / "out", "--baseline", passing)
    assert ran.returncode == 1 and (tmp_path / "out" / "failures.csv").read_text() == ""


@pytest.mark.parametrize("arguments, told", [
    (("--tests", "{list}", "--gpu", "voodoo"), "no GPU is called 'voodoo'"), (("--tests", "{list}", "--gpu", ","), "--gpu needs names"),
    (("--tests", "{tmp}/none"), "none: cannot be read: No such file"), (("--tests", "{empty}"), "empty: has no tests"),
    (("--tests", "{quote}"), "quote:2: cannot be split as a shell does: No closing quotation"),
    (("--tests", "{binary}"), "binary: is no list: byte 0 is not text"),
    (("--tests", "{list}", "--time-limit", "0"), "above zero, not 0"),
    (("--tests", "{list}", "--time-limit", "nan"), "above zero, not nan"),
    (("--tests", "{list}", "--workers", "0"), "workers are 1 to 4096"),
    (("--tests", "{list}", "--memory-limit", "1K"), "a memory limit is a size"),
    (("--tests", "{list}", "--threads", "0"), "host threads are 1"),
    (("--tests", "{list}", "--baseline", "{quote}"), "quote:1: must be a name, a comma and a status"),
    (("--tests", "{list}", "--flakes", "{quote}x"), "cannot be read"),
])  # fmt: skip
def test_wrong_options_are_refused_before_anything_runs(arguments: tuple[str, ...], told: str, tmp_path: Path,
                                                        capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    texts = {"list": "true\n", "empty": "# nothing\n", "quote": "true\necho 'x\n"}
    places = {name: write_list(tmp_path / name, [text]) for name, text in texts.items()} | {"tmp": tmp_path, "binary": tmp_path / "binary"}
    places["binary"].write_bytes(b"\xff\x00")
    assert main(["farm", "run", "--out", str(tmp_path / "out"), *(word.format(**places) for word in arguments)]) == 2
    assert told in capsys.readouterr().err and not (tmp_path / "out").exists()


def test_a_report_that_cannot_be_written_is_refused_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    listed = write_list(tmp_path / "list", ["true"])
    for place in (tmp_path / "none" / "j.xml", tmp_path):
        assert main(["farm", "run", "--out", str(tmp_path / "out"), "--tests", str(listed), "--junit", str(place)]) == 1
        assert "--junit" in capsys.readouterr().err and not (tmp_path / "out").exists()


def until(condition: object, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.05)


def processes(mark: str) -> list[str]:
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if mark.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
        except OSError:
            continue
    return found


@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), witness((signal.SIGTERM, 130)), (signal.SIGKILL, -9)])
def test_a_farm_that_is_ended_goes_on_later(number: signal.Signals, code: int, tmp_path: Path) -> None:
    """What is done is kept, what runs is ended, and the next run does the rest."""
    (marks := tmp_path / "marks").mkdir()
    gate = tmp_path / "gate"
    waits = f"sh -c {shlex.quote(f'echo >> {marks}/waits; while [ ! -e {gate} ]; do sleep 0.1; done')}"
    listed = write_list(tmp_path / "list", [counting(marks, "first"), waits, counting(marks, "last")])
    command = ("run", "--tests", listed, "--out", tmp_path / "out", "--workers", "1")
    process = start(*command)
    until(lambda: runs(marks) == {"first": 1, "waits": 1})
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code and [line["result"] for line in lines(tmp_path / "out")] == ["pass"]
    if number != signal.SIGKILL:
        assert "interrupted: 1 of 3 units are done and kept" in err and "the same command goes on" in err
    until(lambda: not processes(str(gate)))
    gate.touch()
    assert farm(*command).returncode == 0 and runs(marks) == {"first": 1, "last": 1, "waits": 2}
    assert len(by_name(tmp_path / "out")) == 3


def test_the_folder_a_command_runs_in_is_the_farms(tmp_path: Path) -> None:
    """And its files do not stand in for modules of Python."""
    (tmp_path / "argparse.py").write_text("raise SystemExit(9)")
    (tmp_path / "script").write_text("#!/bin/sh\ntest -e argparse.py")
    (tmp_path / "script").chmod(0o755)
    listed = write_list(tmp_path / "list", ["./script"])
    assert farm("run", "--tests", listed, "--out", "out", folder=tmp_path, PYTHONSAFEPATH="1").returncode == 0


def test_a_disk_that_is_full_keeps_what_is_done(tmp_path: Path) -> None:
    """Here files may have 4 KiB: the results of the first units fit."""
    tests = [f"sh -c 'exit 0; {n} {'x' * 300}'" for n in range(12)]
    command = ("run", "--tests", write_list(tmp_path / "list", tests), "--out", tmp_path / "out", "--workers", "1")
    code = ("import resource, signal, sys; from softgen.inspect.cli.main import main; from softgen.inspect.farm import suites\n"
            "from tests.inspect.farm.farming import passing; suites.SUITES['run'] = lambda job, stop: passing(job)\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, -1)); signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
            "sys.exit(main(sys.argv[1:]))")  # fmt: skip
    ran = subprocess.run([sys.executable, "-c", code, "farm", *map(str, command)], cwd=ROOT, capture_output=True, text=True, check=False)
    kept = lines(tmp_path / "out")
    assert ran.returncode == 1 and 5 <= len(kept) < 12 and "Traceback" not in ran.stderr
    assert "results.jsonl: cannot be written: " in ran.stderr
    assert f"; {len(kept)} of 12 units are done and kept in {tmp_path}/out; the same command goes on" in ran.stderr
    assert farm(*command).returncode == 0 and len(lines(tmp_path / "out")) == 12


def test_memory_is_limited(tmp_path: Path) -> None:
    grow = "python3 -c 'import time; x = bytearray(400 << 20); time.sleep(60)'"
    farm("run", "--tests", write_list(tmp_path / "list", [grow]), "--out", tmp_path / "out", "--memory-limit", "300M")
    [line] = lines(tmp_path / "out")
    assert (line["result"], line["message"]) == ("crash", "more than 300 MiB of memory")
