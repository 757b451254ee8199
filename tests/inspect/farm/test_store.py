"""The folder of results: what is kept, whatever ends its writer, and what is read again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from softgen.errors import DecodeError, SoftgenError
from softgen.inspect.farm.shards import Shard
from softgen.inspect.farm.store import ResultStore, read_findings, read_plans, read_results
from softgen.inspect.farm.unit import FarmUnit, JobOutcome, UnitResult, parse_result
from tests.conftest import ROOT
from tests.inspect.farm.farming import lines, result


def unit(name: str, gpu: str = "kbl", key: str = "") -> FarmUnit:
    return FarmUnit(name, gpu, key or f"{gpu}-{name}")


def opened(folder: Path, *units: FarmUnit, again: bool = False, shard: Shard | None = None) -> ResultStore:
    store = ResultStore(folder, shard) if shard else ResultStore(folder)
    store.open(units, again)
    return store


def test_a_line_is_what_the_contract_says() -> None:
    line = result('a "b" ü', "fail", "why", seconds=1.23456).line()
    assert json.loads(line) == {"name": 'a "b" ü', "gpu": "kbl", "result": "fail", "seconds": 1.235, "message": "why",
                                "hash": 'kbl-a "b" ü'}  # fmt: skip
    assert parse_result(line) == UnitResult('a "b" ü', "kbl", "fail", 1.235, "why", 'kbl-a "b" ü')
    found = UnitResult("a", "kbl", "fail", 1.0, "", "k", ("race", "leak"))
    assert parse_result(found.line()) == found


@pytest.mark.parametrize("line", ["", "nonsense", "[]", "3", '{"name": "a"}', '{"name": 1, "gpu": "", "result": "pass", "seconds": 1, '
                                  '"message": "", "hash": ""}', result().line().replace("pass", "good"), "[" * 100_000,
                                  result().line().replace("0.5", '"x"')])  # fmt: skip
def test_lines_that_are_no_results(line: str) -> None:
    with pytest.raises(DecodeError, match="is no result"):
        parse_result(line)


def test_results_are_found_again(tmp_path: Path) -> None:
    store = opened(tmp_path / "new" / "folder")
    store.add(result("one"))
    store.add(result("two", "fail", "why"))
    store.close()
    again = opened(store.folder, unit("one"))
    assert again.known == {"kbl-one": ("pass", "", ()), "kbl-two": ("fail", "why", ())} and again.path.name == "results.jsonl"
    assert [found.name for found in read_results(store.folder)] == ["one", "two"]


def test_half_a_line_is_dropped(tmp_path: Path) -> None:
    """Its writer was killed, or the disk was full."""
    whole = f"{result('one').line()}\n"
    (tmp_path / "results.jsonl").write_text(whole + result("two").line()[:30])
    assert [found.name for found in read_results(tmp_path)] == ["one"]
    store = opened(tmp_path)
    store.add(result("three"))
    assert [line["name"] for line in lines(tmp_path)] == ["one", "three"]


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    (tmp_path / "results.jsonl").write_text(f"{result('one').line()}\n{{}}\n")
    with pytest.raises(DecodeError, match=r"results\.jsonl:2: is no result: it has no 'name'"):
        opened(tmp_path)


def test_two_farms_do_not_write_to_one_file(tmp_path: Path) -> None:
    first = opened(tmp_path)
    with pytest.raises(SoftgenError, match=r"results\.jsonl: another farm is writing to it"):
        opened(tmp_path)
    first.close()
    shard = opened(tmp_path, shard=Shard(2, 3))
    shard.add(result("x"))
    with pytest.raises(SoftgenError, match=r"results-2-of-3\.jsonl: another farm"):
        opened(tmp_path)
    opened(tmp_path, shard=Shard(1, 3)).close()


def test_a_result_of_another_hash_is_superseded(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.add(result("one", key="old"))
    store.add(result("other", key="other"))
    store.close()
    opened(tmp_path, unit("one", key="new")).close()
    assert [line["hash"] for line in lines(tmp_path)] == ["other"]


def test_shards_become_one_file_when_the_whole_is_run(tmp_path: Path) -> None:
    for index in (1, 2):
        store = opened(tmp_path, shard=Shard(index, 2))
        store.add(result(f"unit {index}"))
        store.close()
    assert sorted(path.name for path in tmp_path.glob("*.jsonl")) == ["results-1-of-2.jsonl", "results-2-of-2.jsonl"]
    shard = opened(tmp_path, shard=Shard(1, 2))
    assert set(shard.known) == {"kbl-unit 1", "kbl-unit 2"}
    shard.close()
    opened(tmp_path).close()
    assert [path.name for path in tmp_path.glob("*.jsonl")] == ["results.jsonl"]
    assert sorted(line["name"] for line in lines(tmp_path)) == ["unit 1", "unit 2"]


def test_again_compares_with_what_was_there(tmp_path: Path) -> None:
    store = opened(tmp_path)
    for name in ("same", "other", "not in the list"):
        store.add(result(name, "pass"))
    store.close()
    store = opened(tmp_path, unit("same"), unit("other"), again=True)
    assert set(store.known) == {"kbl-not in the list"}
    store.add(result("same", "pass", seconds=9))
    store.add(result("other", "fail", "why"))
    store.write_findings()
    [finding] = read_findings(tmp_path)
    assert finding["name"] == "other" and finding["first"] == {"result": "pass", "message": ""}
    assert finding["second"] == {"result": "fail", "message": "why"} and finding["hash"] == "kbl-other"
    assert sorted(line["name"] for line in lines(tmp_path)) == ["not in the list", "other", "same"]
    store.findings.clear()
    store.write_findings()
    assert read_findings(tmp_path) == []


def test_a_unit_that_came_twice_is_kept_once_and_compared(tmp_path: Path) -> None:
    """A worker that was taken for lost may have done its work."""
    store = opened(tmp_path)
    for again in (result("one"), result("one", seconds=3)):
        store.add(again)
    assert len(lines(tmp_path)) == 1 and not store.findings
    store.add(result("one", "fail"))
    assert len(lines(tmp_path)) == 1 and len(store.findings) == 1


def test_a_full_disk_keeps_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened(tmp_path)
    store.add(result("one"))
    whole = store.path.read_bytes()
    real = os.write
    monkeypatch.setattr(os, "write", lambda file, data: real(file, data[:7]))
    with pytest.raises(SoftgenError, match=r"results\.jsonl: cannot be written: No space left on device"):
        store.add(result("two"))
    assert store.path.read_bytes() == whole


def test_logs_and_pictures_are_those_of_the_last_run(tmp_path: Path) -> None:
    store = opened(tmp_path)
    bad = JobOutcome([result("a", "fail", key="k")], {"k": "what it said"}, {"k": {"one.png": b"1", "two.png": b"2"}})
    store.attach(bad)
    assert (tmp_path / "logs" / "k.txt").read_text() == "what it said" and (tmp_path / "pictures/k/two.png").read_bytes() == b"2"
    store.attach(JobOutcome([result("a", key="k")], {}, {"k": {"one.png": b"3"}}))
    assert not (tmp_path / "logs" / "k.txt").exists() and os.listdir(tmp_path / "pictures" / "k") == ["one.png"]


def test_plans_are_checked(tmp_path: Path) -> None:
    store = opened(tmp_path, shard=Shard(2, 5))
    store.write_plan({"list": "L", "shard": "2/5", "units": 7})
    assert read_plans(tmp_path) == [{"list": "L", "shard": "2/5", "units": 7}]
    (tmp_path / "plan.json").write_text('{"units": "many"}')
    with pytest.raises(DecodeError, match=r"plan\.json: is no plan of a farm"):
        read_plans(tmp_path)


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SoftgenError, match="file"):
        opened(tmp_path / "file" / "folder")


def test_whole_lines_survive_the_death_of_the_writer(tmp_path: Path) -> None:
    code = (f"import os, sys; sys.path.insert(0, {str(ROOT)!r})\nfrom pathlib import Path\n"
            "from softgen.inspect.farm.store import ResultStore\nfrom tests.inspect.farm.farming import result\n"
            "store = ResultStore(Path(sys.argv[1])); store.open((), False)\n"
            "for n in range(10**6):\n    store.add(result(f'unit {n}'))\n    print(n, flush=True)\n")  # fmt: skip
    writer = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert writer.stdout
    for _ in range(200):
        said = int(writer.stdout.readline())
    writer.kill()
    writer.communicate()
    found = [line.name for line in read_results(tmp_path)]
    assert len(found) > said and found == [f"unit {n}" for n in range(len(found))]
