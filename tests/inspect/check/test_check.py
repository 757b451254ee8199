"""`softgen check`: each mistake that is planted is found, and its repaired twin is not."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from softgen.errors import UsageError
from softgen.inspect.check.finding import CLASSES, Finding, allowed
from softgen.inspect.check.worlds import worlds
from softgen.inspect.cli.main import main
from softgen.position import parse
from tests.conftest import ROOT, SHARED, in_ci, needs_shared
from tests.gpgpu.job import Job
from tests.inspect.check.planted import PLANTED, SPIN, UNSPECIFIED, file
from tests.threads.test_reference import ENDLESS


def check(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    code = main(["check", "--json", *arguments])
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    return code, report


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_mistake_is_found_and_its_repaired_twin_is_not(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    planted, repaired, kind = PLANTED[name]
    code, report = check(capsys, file(tmp_path / "planted.aub", planted))
    assert code == 1 and report["result"] == "findings" and kind in [finding["class"] for finding in report["findings"]]
    code, report = check(capsys, file(tmp_path / "repaired.aub", repaired))
    assert (code, report["result"], report["findings"], len(report["worlds"])) == (0, "fine", [], 8)


@pytest.mark.parametrize("name", UNSPECIFIED)
def test_results_that_depend_on_what_the_manual_leaves_undefined(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    planted, repaired = UNSPECIFIED[name]
    code, report = check(capsys, file(tmp_path / "planted.aub", planted), "--worlds", "unspecified", "--runs", "2")
    (finding,) = report["findings"]
    assert code == 1 and finding["class"] == "unspecified" and finding["witness"][0] == "plain"
    if name == "reserved bits":
        assert finding["witness"][1] == "unspecified 0xff" and "is stored at" in finding["details"][-1]
        assert "of reserved bits of the thread's header" in finding["details"][0]
    else:
        assert finding["witness"][1] == "unspecified lanes" and finding["message"].startswith("lanes 0 and 2 store different values to 0x")
    code, report = check(capsys, file(tmp_path / "repaired.aub", repaired), "--worlds", "unspecified", "--runs", "2")
    assert (code, report["findings"], report["worlds"]) == (0, [], ["unspecified 0xff", "unspecified 0xaa", "unspecified lanes"])


def found(capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, *options: str) -> dict[str, Any]:
    planted, _, kind = PLANTED[name]
    _, report = check(capsys, file(tmp_path / f"{name}.aub", planted), *options)
    (finding,) = [finding for finding in report["findings"] if finding["class"] == kind]
    assert isinstance(finding, dict)
    return finding


def test_a_race_names_both_accesses_and_two_worlds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    finding = found(capsys, tmp_path, "local race", "--worlds", "order")
    first, second, why = finding["details"]
    assert re.match(r"group 0, thread \d, lane 0 (reads|writes) local memory 0x\w+: kernel 0x40000\+0x\w+: \(W\) send", first)
    assert re.match(r"group 0, thread \d, lane 0 (reads|writes) local memory 0x\w+: kernel 0x40000\+0x\w+: \(W\) send", second)
    assert why == "no barrier is between them" and finding["witness"][0] == "plain" and finding["witness"][1].startswith("order")
    position = parse(finding["position"])
    assert position.stage == "cs" and position.group == 0 and position.command and position.offset and position.instructions


def test_a_race_between_groups(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    details = found(capsys, tmp_path, "global race")["details"]
    assert details[2] == "groups have no barrier in common" and "0x100004" in details[0]


def test_updates_are_lost_where_threads_take_turns_after_each_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No order of whole threads shows it."""
    finding = found(capsys, tmp_path, "lost update", "--worlds", "order")
    assert finding["witness"] == ["plain", "order messages"] and finding["level"] == "error"
    assert "0x100000 holds 0x00000001 in place of 0x00000006" in finding["message"] and "groups have no barrier" in finding["details"][2]
    assert finding["position"].endswith("/cs/g1.t0+0x20#2")


def test_an_uninitialised_value_says_where_it_was_made_and_stored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    finding = found(capsys, tmp_path, "uninitialised")
    made, stored = finding["details"]
    assert made.startswith("made at kernel 0x40000+0x20: (W) send") and made.endswith("of local memory that nothing has written")
    assert stored.startswith("is stored at kernel 0x40000+0x30: (W) send") and finding["level"] == "warning"
    assert finding["position"].endswith("/cs/g0.t0+0x30#3")


def test_an_uninitialised_value_that_decides_a_branch_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    finding = found(capsys, tmp_path, "branch")
    made, decided = finding["details"]
    assert "add (1|M0) r40" in made and made.endswith("of a register that nothing has written")
    assert decided.startswith("decides the branch at") and "jmpi" in decided and finding["level"] == "error"


def test_a_store_outside_names_instruction_and_lanes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    finding = found(capsys, tmp_path, "bounds")
    assert re.fullmatch(r"writes outside of a surface of 0x80 bytes: lane 0 at 0x80, 1 at 0x84, 2 at 0x88, 3 at 0x8c and 12 more; "
                        r"nothing is stored", finding["message"])  # fmt: skip
    assert finding["level"] == "error" and finding["position"].endswith("/cs/g2.t0+0x60#6") and len(finding["details"]) == 1
    finding = found(capsys, tmp_path, "local bounds")
    assert finding["message"] == "writes outside of local memory of 0x400 bytes: lane 0 at 0x400; nothing is stored"


def test_what_is_meant_to_be_is_allowed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = file(tmp_path / "tickets.aub", PLANTED["tickets"][0])
    code, report = check(capsys, path, "--allow", "order:kernel*")
    assert code == 0 and not report["findings"] and [finding["class"] for finding in report["allowed"]] == ["order"]
    assert check(capsys, path, "--allow", "order:other*")[0] == 1 and check(capsys, path, "--allow", "race:*")[0] == 1


@pytest.mark.parametrize("text", ["order", "order:", ":x", "speed:x"])
def test_allowing_needs_a_class_and_a_kernel(text: str) -> None:
    with pytest.raises(UsageError, match="CLASS:KERNEL"):
        allowed([text])


@pytest.mark.parametrize("arguments", [[], ["x", "--worlds", "luck"], ["x", "--runs", "0"], ["x", "--junit", "/nowhere/at/all"],
                                       ["x", "--time-limit", "-1"], ["--", "no-such-program"],
                                       ["x", "--source", "/nowhere.cl"], ["x", "--kernels", "/nowhere"]])  # fmt: skip
def test_wrong_use_is_exit_code_2(arguments: list[str]) -> None:
    assert main(["check", *arguments]) == 2


def test_work_that_fails_is_exit_code_1_and_says_so(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    planted, _, _ = PLANTED["bounds"]
    planted.kernel = planted.kernel.replace("0x04205E00", "0x04205EFF")  # reads where nothing is mapped
    code, report = check(capsys, file(tmp_path / "fault.aub", planted))
    assert code == 1 and report["result"] == "failed" and "not mapped" in report["failures"][0] and not report["findings"]


def test_a_capture_that_cannot_be_read_has_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Machines read why, where they look for results."""
    code, report = check(capsys, str(tmp_path / "nowhere"), "--junit", str(tmp_path / "out.xml"), "--sarif", str(tmp_path / "out.sarif"))
    assert code == 1 and report["result"] == "failed" and "No such file" in report["failures"][0]
    suite = ElementTree.parse(tmp_path / "out.xml").getroot().find("testsuite")
    assert suite is not None and suite.get("errors") == "1"
    assert json.loads((tmp_path / "out.sarif").read_text())["runs"][0]["results"] == []


def test_junit_sarif_and_annotations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    junit, sarif = tmp_path / "out.xml", tmp_path / "out.sarif"
    path = file(tmp_path / "race.aub", PLANTED["local race"][0])
    assert main(["check", path, "--worlds", "order", "--junit", str(junit), "--sarif", str(sarif), "--annotate"]) == 1
    suite = ElementTree.parse(junit).getroot().find("testsuite")
    assert suite is not None and suite.get("failures") == "1" and suite.get("errors") == "0"
    cases = {case.get("name"): case for case in suite}
    assert set(cases) == {"execution", *CLASSES} and cases["race"].find("failure") is not None and not len(cases["bounds"])
    (ran,) = json.loads(sarif.read_text())["runs"]
    (result,) = ran["results"]
    assert result["ruleId"] == "race" and result["level"] == "error"
    assert result["ruleId"] in [rule["id"] for rule in ran["tool"]["driver"]["rules"]]
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("::error ")]
    assert ",title=race::" in line and "%0A" in line


def test_silence_says_how_many_worlds_do_not_differ(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", file(tmp_path / "fine.aub", PLANTED["local race"][1]), "--runs", "5"]) == 0
    assert "  5 worlds, no difference" in capsys.readouterr().out.splitlines()


def test_worlds_take_turns_and_are_all_different() -> None:
    chosen = worlds(("order", "fill"), 40)
    assert [world.axis for world in chosen[:4]] == ["order", "fill", "order", "fill"]
    assert len({(world.fill, world.seed) for world in chosen}) == 40 and all(world.fill or world.seed for world in chosen)


def test_json_of_a_finding() -> None:
    assert Finding("race", "error", "text", source=("a.cl", 3)).as_json()["source"] == {"file": "a.cl", "line": 3}


@pytest.mark.parametrize("name", ["kbl-vk-compute", "kbl-vk-tri"])
def test_captures_of_drivers_have_no_findings(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, report = check(capsys, str(ROOT / "tests" / "data" / name))
    assert code == 0 and not [finding for finding in report["findings"] if finding["level"] != "note"], report["findings"]


@needs_shared("aub")
@pytest.mark.parametrize("name", in_ci(["bdw", "skl", "icllp"], "skl"))
def test_files_of_intels_runtime_have_no_findings(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, report = check(capsys, str(SHARED / "aub" / f"vadd_selfcheck_{name}.aub"))
    assert code == 0 and not [finding for finding in report["findings"] if finding["level"] != "note"], report["findings"]


@pytest.mark.parametrize("kernel, proved", [(SPIN, True), (ENDLESS, False)])
def test_work_that_never_ends_is_proved_to_where_its_state_returns(kernel: str, proved: bool, tmp_path: Path,
                                                                   capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    """A loop that counts for long is only still running."""
    path = file(tmp_path / "endless.aub", Job(kernel, [bytes(4)], simd=8, shape=(2, 1, 1), ends=(3, 1, 1)))
    code, report = check(capsys, path, "--time-limit", "1")
    assert code == 1 and report["result"] == "failed" and "time is up" in report["failures"][0] and "/cs/g0.t" in report["failures"][0]
    endless = [finding for finding in report["findings"] if finding["class"] == "endless"]
    assert bool(endless) == proved
    if proved:
        assert re.fullmatch("endless: 2 threads of group 0 are as they were 3 instructions of each before", endless[0]["message"])


def test_work_that_waits_for_what_is_there_ends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(capsys, file(tmp_path / "ends.aub", Job(SPIN, [b"\1\0\0\0"], simd=8)))[1]["findings"] == []
