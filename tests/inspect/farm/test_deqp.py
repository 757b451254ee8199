"""dEQP in groups: one case pays where the program dies, and what goes wrong in a group counts as it is alone.

A stand-in prints what dEQP prints; what its cases do is in their names.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from softgen.errors import UsageError
from softgen.inspect.cli.main import main
from softgen.inspect.farm.deqp import group_size, read_cases
from tests.conftest import ROOT
from tests.driver.running import needs_shim
from tests.inspect.farm.farming import by_name, farm, lines, write_list

PROGRAM = ROOT / "tests" / "inspect" / "farm" / "programs" / "deqp"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return Path(shutil.copy(PROGRAM, tmp_path / "deqp-gles2"))


def starts(program: Path) -> list[list[str]]:
    """The cases of each start of the program."""
    return [line.partition(" | ")[0].split()[1:] for line in (program.parent / "starts").read_text().splitlines()]


def run(program: Path, *cases: str, out: str = "out", limit: str = "5", more: tuple[object, ...] = ()) -> dict[str, tuple[str, str]]:
    """Results and messages by case."""
    listed = write_list(program.parent / "cases.txt", cases)
    farm("deqp", "--program", program, "--cases", listed, "--out", program.parent / out, "--time-limit", limit, "--workers", "1", *more)
    return {name: (line["result"], line["message"]) for name, line in by_name(program.parent / out).items()}


@needs_shim
def test_a_case_that_dies_costs_itself(program: Path) -> None:
    cases = ["d.pass1", "d.crash", "d.pass2", "d.hang", "d.fail", "d.skip", "d.warn", "d.unknown", "d.exit0", "d.exit3", "d.pass3"]
    found = run(program, *cases)
    assert found == {
        "d.pass1": ("pass", ""), "d.pass2": ("pass", ""), "d.pass3": ("pass", ""), "d.crash": ("crash", "ended by SIGSEGV"),
        "d.hang": ("timeout", "no output after 5 s"), "d.fail": ("fail", "Fail: Image comparison failed"),
        "d.skip": ("skip", "NotSupported: no such extension at x.cpp:3"), "d.warn": ("pass", "QualityWarning: ugly"),
        "d.unknown": ("fail", "the program has no such case"), "d.exit0": ("fail", "the program ended within the case"),
        "d.exit3": ("fail", "exit code 3: Test case 'd.exit3'..")}  # fmt: skip
    alone = sorted(cases[0] for cases in starts(program) if len(cases) == 1)
    assert set(alone) >= {"d.crash", "d.hang", "d.exit0", "d.exit3", "d.fail"} and len(starts(program)) < 16
    assert sum("d.pass1" in cases for cases in starts(program)) == 1


@needs_shim
def test_good_cases_take_one_start(program: Path) -> None:
    run(program, *(f"d.pass{n}" for n in range(30)), more=("--group", "30"))
    assert len(starts(program)) == 1
    run(program, *(f"d.pass{n}" for n in range(40)), more=("--group", "7"))
    assert sorted(map(len, starts(program))) == [5, 5, 30]


@needs_shim
def test_the_limit_is_for_each_case(program: Path) -> None:
    found = run(program, *(f"d.slow{n}" for n in range(5)), limit="2")
    assert {result for result, _ in found.values()} == {"pass"} and len(starts(program)) == 1
    assert all(0.7 < line["seconds"] < 2 for line in by_name(program.parent / "out").values())


@needs_shim
def test_what_fails_after_others_only_is_a_finding(program: Path) -> None:
    found = run(program, "e.pass", "d.spoilt")
    assert found == {"e.pass": ("pass", ""), "d.spoilt": ("pass", "")}
    [finding] = json.loads((program.parent / "out" / "findings.json").read_text())
    assert (finding["name"], finding["finding"]) == ("d.spoilt", "goes wrong after other cases and not alone")
    assert finding["first"] == {"result": "fail", "message": "Fail: something was left behind"}
    listed, flakes = program.parent / "cases.txt", write_list(program.parent / "flakes", ["spoilt"])
    command = ("deqp", "--program", program, "--cases", listed, "--out", program.parent / "second")
    assert farm(*command).returncode == 1 and farm(*command, "--again", "--flakes", flakes).returncode == 0


@needs_shim
def test_a_failure_has_its_log_and_pictures(program: Path) -> None:
    run(program, "d.pass", "d.fail")
    key = by_name(program.parent / "out")["d.fail"]["hash"]
    assert (program.parent / "out" / "pictures" / key / "000-Result.png").read_bytes().startswith(b"\x89PNG\r\n")
    log = (program.parent / "out" / "logs" / f"{key}.txt").read_text()
    assert "what it drew" in log and "Test case 'd.fail'" in log
    assert len(list((program.parent / "out" / "logs").iterdir())) == 1
    group, alone = (program.parent / "starts").read_text().splitlines()
    assert "--deqp-log-images=disable" in group and "--deqp-log-images" not in alone


@needs_shim
def test_a_program_that_does_not_start_is_tried_twice(program: Path) -> None:
    found = run(program, *(f"d.pass{n}" for n in range(30)), more=("--", "--deqp-surface-type=window"))
    assert set(found.values()) == {("crash", "ended by SIGKILL: FATAL ERROR: no window here")} and len(found) == 30


@needs_shim
def test_arguments_of_the_user_replace_the_usual_ones(program: Path) -> None:
    run(program, "d.pass", more=("--", "--deqp-surface-width=64", "--deqp-visibility=hidden"))
    arguments = (program.parent / "starts").read_text().split()
    assert "--deqp-surface-width=64" in arguments and "--deqp-surface-width=256" not in arguments
    assert "--deqp-surface-height=256" in arguments and "--deqp-visibility=hidden" in arguments


@pytest.mark.witness
@needs_shim
def test_another_group_size_gives_the_same_results(program: Path) -> None:
    cases = ["d.pass1", "d.crash", "d.fail", "d.skip", "d.exit3", "d.pass2"]
    found = [run(program, *cases, out=f"of {size}", more=("--group", size)) for size in (1, 2, 6)]
    assert found[0] == found[1] == found[2]
    hashes = [{line["name"]: line["hash"] for line in lines(program.parent / f"of {size}")} for size in (1, 2, 6)]
    assert hashes[0] == hashes[1] == hashes[2]


def test_lists_of_cases(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    write_list(tmp_path / "more" / "api.txt", ["dEQP-VK.api.one", "dEQP-VK.api.two"])
    main_list = write_list(tmp_path / "vk.txt", ["# all", "more/api.txt", "GROUP: dEQP-VK.info", "TEST: dEQP-VK.info.x", "dEQP-VK.api.one"])
    assert read_cases([str(main_list)]) == ["dEQP-VK.api.one", "dEQP-VK.api.two", "dEQP-VK.info.x"]
    for line, told in (("a b", "is no name of a case: 'a b'"), ("vk.txt", "names itself"), ("none.txt", "none.txt: cannot be read")):
        with pytest.raises(UsageError, match=told):
            read_cases([str(write_list(tmp_path / "vk.txt", ["x", line]))])
    with pytest.raises(UsageError, match="has no cases"):
        read_cases([str(write_list(tmp_path / "vk.txt", ["GROUP: x"]))])


def test_groups_keep_all_workers_busy() -> None:
    assert [group_size(cases, 2, None) for cases in (1, 60, 1000, 14_000)] == [10, 10, 125, 500] and group_size(14_000, 1000, None) == 10
    assert group_size(1000, 2, 7) == 7


@pytest.mark.parametrize("arguments, told", [
    (("--program", "/nowhere/deqp"), "--program /nowhere/deqp: not found, or not executable"), (("--program", "/tmp"), "not found, or not"),
    (("--program", "/bin/true", "--group", "0"), "a group has 1 to 10,000 cases, not 0"),
    (("--program", "/bin/true", "--skips", "{skips}"), "skips:1: is no regular expression"),
])  # fmt: skip
def test_wrong_options(arguments: tuple[str, ...], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    places = {"skips": write_list(tmp_path / "skips", ["*"])}
    listed = write_list(tmp_path / "cases", ["a.b"])
    command = ["farm", "deqp", "--cases", str(listed), "--out", str(tmp_path / "out"), *(word.format(**places) for word in arguments)]
    assert main(command) == 2 and told in capsys.readouterr().err and not (tmp_path / "out").exists()
