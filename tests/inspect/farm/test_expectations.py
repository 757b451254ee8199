"""deqp-runner's files: baselines, flakes, skips; and what follows from them for the exit code."""

from __future__ import annotations

from pathlib import Path

import pytest

from softgen.errors import UsageError
from softgen.inspect.farm.expectations import Expectations, joined, read_baseline, read_expectations, read_patterns
from softgen.inspect.farm.reports import failures
from softgen.inspect.farm.summary import summarise
from softgen.inspect.farm.unit import FarmUnit
from tests.inspect.farm.farming import result


def written(path: Path, text: str) -> str:
    path.write_text(text, "utf-8")
    return str(path)


def test_a_baseline_of_deqp_runner(tmp_path: Path) -> None:
    text = "# comment\n\ndEQP-GLES2.a,Fail\n  dEQP-GLES2.b,Crash  \nspec@x@a,b and c,Timeout\ndEQP-GLES2.d,Pass,0.125\n"
    assert read_baseline(written(tmp_path / "f", text)) == {"dEQP-GLES2.a": "Fail", "dEQP-GLES2.b": "Crash", "spec@x@a,b and c": "Timeout",
                                                            "dEQP-GLES2.d": "Pass"}  # fmt: skip


@pytest.mark.parametrize("line", ["a", "a,Broken", ",Fail", "a,Fail,x", "a,0.5"])
def test_lines_that_are_no_baseline(line: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"f:2: must be a name, a comma and a status"):
        read_baseline(written(tmp_path / "f", f"a,Fail\n{line}\n"))


def test_patterns(tmp_path: Path) -> None:
    assert read_patterns([written(tmp_path / "f", "# no\na.*b\n\nc$\n")]) == ["a.*b", "c$"]
    with pytest.raises(UsageError, match=r"f:1: is no regular expression: .*position 0"):
        read_patterns([written(tmp_path / "f", "*\n")])
    with pytest.raises(UsageError, match="nowhere: cannot be read: No such file"):
        read_patterns(["nowhere"])


@pytest.mark.parametrize("status, result, found", [
    ("", "pass", ""), ("", "skip", ""), ("", "fail", "unexpected"), ("", "crash", "unexpected"), ("", "timeout", "unexpected"),
    ("Fail", "fail", "expected"), ("Fail", "pass", "unexpected"), ("Fail", "crash", "unexpected"), ("Fail", "skip", "unexpected"),
    ("Crash", "crash", "expected"), ("Crash", "fail", "unexpected"), ("Timeout", "timeout", "expected"), ("Skip", "skip", ""),
    ("Skip", "pass", "unexpected"), ("Pass", "pass", ""), ("Pass", "fail", "unexpected"), ("Warn", "pass", ""),
    ("Missing", "fail", "expected"), ("Flake", "pass", ""), ("Flake", "crash", "expected"), ("ExpectedFail", "fail", "expected"),
    ("UnexpectedImprovement(Pass)", "pass", ""), ("UnexpectedImprovement(Pass)", "fail", "unexpected"),
])  # fmt: skip
def test_what_a_status_expects(status: str, result: str, found: str) -> None:
    assert Expectations({"": {"unit": status} if status else {}}).verdict("unit", "kbl", result) == found


def test_flakes_may_fail_in_any_way() -> None:
    expected = Expectations({"": {"a.flaky": "Fail"}}, [r"flaky", r"^b\d$"])
    found = [expected.verdict(name, "kbl", "crash") for name in ("a.flaky", "b1", "b", "xb1")]
    assert found == ["flake", "flake", "unexpected", "unexpected"]
    assert expected.verdict("a.flaky", "kbl", "pass") == ""


def test_a_gpu_has_a_baseline_of_its_own(tmp_path: Path) -> None:
    everywhere, there = written(tmp_path / "all", "a,Fail\n"), written(tmp_path / "icl", "a,Crash\nb,Fail\n")
    expected = read_expectations([everywhere, f"icl={there}"], [])
    assert [expected.status("a", gpu) for gpu in ("kbl", "icl")] == ["Fail", "Crash"]
    assert [expected.status("b", gpu) for gpu in ("kbl", "icl")] == ["", "Fail"]
    with pytest.raises(UsageError, match="no GPU is called 'voodoo'"):
        read_expectations([f"voodoo={there}"], [])
    again = joined([expected.as_json(), {"baseline": {"kbl": {"c": "Fail"}}, "flakes": ["x"]}, None])
    assert again.status("a", "icl") == "Crash" and again.status("c", "kbl") == "Fail" and again.verdict("xx", "kbl", "fail") == "flake"


def test_failures_are_the_next_baseline(tmp_path: Path) -> None:
    text = failures([result("a,b", "fail"), result("c"), result("d", "skip"), result("e", "crash"), result("f", "timeout")])
    assert read_baseline(written(tmp_path / "f", text)) == {"a,b": "Fail", "e": "Crash", "f": "Timeout"}


def test_the_exit_code_follows_from_all_units() -> None:
    units = [FarmUnit(name, "kbl", name) for name in "abcd"]
    known = {"a": ("pass", "", ()), "b": ("fail", "", ()), "c": ("skip", "", ()), "d": ("crash", "", ())}
    expected = Expectations({"": {"b": "Fail"}}, ["^d$"])
    found = summarise(units, known, expected)
    assert found.fine and found.total == 4
    [line] = found.lines()
    assert line == "kbl: 4 units: 1 pass, 1 fail, 1 crash, 1 skip (of those that did not pass, 1 as expected and 1 known as flaky)"
    assert not summarise(units, known, Expectations({"": {"b": "Fail"}})).fine
    found = summarise([*units, FarmUnit("e", "icl", "e")], known, expected)
    assert not found.fine and found.lines()[0] == "icl: 1 unit: 1 missing" and found.as_json()["missing"] == 1
    found = summarise(units, known, expected)
    found.findings = 1
    assert not found.fine
