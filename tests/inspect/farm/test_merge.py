"""Shards joined: together they are the whole, differences are findings, and what is missing is said."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from softgen.inspect.cli.main import main
from softgen.inspect.farm.shards import WHOLE, Shard
from softgen.inspect.farm.store import ResultStore
from softgen.inspect.farm.unit import JobOutcome, UnitResult
from tests.driver.running import needs_shim
from tests.inspect.farm.farming import farm, lines, result, write_list


def folder(path: Path, results: list[UnitResult], units: int, shard: Shard = WHOLE, expected: object = None) -> str:
    store = ResultStore(path, shard)
    store.open((), False)
    for found in results:
        store.add(found)
        store.attach(JobOutcome([found], {} if found.good else {found.key: f"log of {found.name}"}))
    store.write_plan({"list": "L", "units": units, "shard": str(shard), "there": 0, "began": 1.0, "expected": expected})
    store.close()
    return str(path)


@needs_shim
def test_shards_together_are_the_whole(tmp_path: Path) -> None:
    listed = write_list(tmp_path / "list", [f"sh -c 'exit {n % 3}; {n}'" for n in range(5)])
    command = ("run", "--tests", listed, "--gpu", "kbl,icl")
    whole = farm(*command, "--out", tmp_path / "whole")
    first = farm(*command, "--out", tmp_path / "one", "--shard", "1/2")
    second = farm(*command, "--out", tmp_path / "two", "--shard", "auto", CI_NODE_INDEX="2", CI_NODE_TOTAL="2")
    status = farm("status", tmp_path / "one")
    assert status.returncode == 1 and "5 of 10 units are done" in status.stdout and "not begun: 2/2" in status.stdout
    merged = farm("merge", tmp_path / "one", tmp_path / "two", "--out", tmp_path / "all", "--junit", tmp_path / "j.xml")
    assert [ran.returncode for ran in (whole, first, second, merged)] == [1, 1, 1, 1]

    def comparable(place: str) -> set[str]:
        return {json.dumps({**line, "seconds": 0}, sort_keys=True) for line in lines(tmp_path / place)}

    assert comparable("all") == comparable("whole") and len(comparable("all")) == 10
    assert {path.name for path in (tmp_path / "all" / "logs").iterdir()} == {path.name for path in (tmp_path / "whole" / "logs").iterdir()}
    assert merged.stdout.splitlines()[:2] == whole.stdout.splitlines()[-3:-1]
    assert len(list(ElementTree.parse(tmp_path / "j.xml").iter("testcase"))) == 10
    assert "10 of them were there already" in farm(*command, "--out", tmp_path / "all").stdout


def test_shards_in_one_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in (1, 2):
        folder(tmp_path / "shared", [result(f"unit {number}")], 2, Shard(number, 2))
    assert main(["farm", "status", str(tmp_path / "shared")]) == 0
    assert capsys.readouterr().out == "kbl: 2 units: 2 pass\n2 of 2 units are done (complete)\n"
    assert main(["farm", "merge", str(tmp_path / "shared"), "--out", str(tmp_path / "all")]) == 0
    assert [line["name"] for line in lines(tmp_path / "all")] == ["unit 1", "unit 2"]


def test_what_is_missing_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = folder(tmp_path / "one", [result("a"), result("b")], 9, Shard(2, 3))
    assert main(["farm", "merge", one, "--out", str(tmp_path / "all"), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["missing"], told["missing_shards"], told["fine"], told["pass"]) == (7, ["1/3", "3/3"], False, 2)
    assert main(["farm", "merge", one, "--out", str(tmp_path / "all")]) == 1
    assert "2 of 9 units are done (not running; the same command goes on)\nshards that have not begun: 1/3, 3/3" in capsys.readouterr().out


def test_results_of_one_hash_must_be_equal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = folder(tmp_path / "one", [result("a", seconds=1), result("b", "fail", "x")], 2)
    two = folder(tmp_path / "two", [result("a", seconds=2), result("b", "fail", "y")], 2)
    assert main(["farm", "merge", one, two, "--out", str(tmp_path / "all")]) == 1
    told = "kbl b: two runs of the same unit differ: {'result': 'fail', 'message': 'x'} and {'result': 'fail', 'message': 'y'}"
    assert told in capsys.readouterr().err
    [finding] = json.loads((tmp_path / "all" / "findings.json").read_text())
    assert finding["name"] == "b" and len(lines(tmp_path / "all")) == 2
    assert main(["farm", "status", str(tmp_path / "all")]) == 1


def test_results_of_two_hashes_are_both_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    places = [folder(tmp_path / key, [result("a", key=key)], 1) for key in ("old", "new")]
    assert main(["farm", "status", *places]) == 0
    assert "1 result of another hash: the same unit with another softgen, other drivers or options" in capsys.readouterr().out


def test_expectations_travel_with_the_shards(tmp_path: Path) -> None:
    expected = {"baseline": {"": {"a": "Fail"}}, "flakes": ["^b"]}
    one = folder(tmp_path / "one", [result("a", "fail")], 2, Shard(1, 2), expected)
    two = folder(tmp_path / "two", [result("b", "crash")], 2, Shard(2, 2), expected)
    assert main(["farm", "merge", one, two, "--out", str(tmp_path / "all")]) == 0 == main(["farm", "status", str(tmp_path / "all")])


def test_a_running_farm_is_seen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = ResultStore(tmp_path)
    store.open((), False)
    store.write_plan({"list": "L", "units": 4, "shard": "1/1", "there": 0, "began": 1.0})
    store.add(result("a"))
    assert main(["farm", "status", str(tmp_path)]) == 1 and "1 of 4 units are done (running, " in capsys.readouterr().out
    store.close()
    assert main(["farm", "status", str(tmp_path)]) == 1 and "(not running; the same command goes on)" in capsys.readouterr().out


def test_folders_that_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = folder(tmp_path / "one", [result("a")], 1)
    (tmp_path / "empty").mkdir()
    for arguments, told in ((["merge", one, "--out", one], "--out must be another folder"), (["merge", one, "--out", ""], "--out must be"),
                            (["merge", str(tmp_path / "none"), "--out", "x"], "none: no such folder"),
                            (["status", str(tmp_path / "empty")], "empty: has no results of a farm")):  # fmt: skip
        assert main(["farm", *arguments]) == 2 and told in capsys.readouterr().err
    (tmp_path / "one" / "results.jsonl").write_text("x\n")
    assert main(["farm", "status", one]) == 1 and "results.jsonl:1: is no result" in capsys.readouterr().err
