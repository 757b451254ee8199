"""JUnit XML: a suite for each GPU, counts that agree with the cases, and any text in it."""

from __future__ import annotations

from xml.etree import ElementTree

from softgen.inspect.farm.expectations import Expectations
from softgen.inspect.farm.junit import junit
from tests.inspect.farm.farming import result

RESULTS = [result("a"), result("b", "fail", "why"), result("c", "crash", "ended by SIGSEGV"), result("d", "timeout"),
           result("e", "skip", "no"), result("f", "fail"), result("g"), result("a", gpu="icl")]  # fmt: skip


def test_cases_and_counts_agree() -> None:
    root = ElementTree.fromstring(junit(RESULTS, Expectations({"kbl": {"f": "Fail", "g": "Crash"}}), {"kbl-b": "log of b"}))
    icl, kbl = root.findall("testsuite")
    assert root.tag == "testsuites" and (icl.get("name"), icl.get("tests"), icl.get("failures")) == ("icl", "1", "0")
    assert {name: kbl.get(name) for name in ("tests", "failures", "errors", "skipped", "time")} == {
        "tests": "7", "failures": "2", "errors": "2", "skipped": "2", "time": "3.500"}  # fmt: skip
    found = {case.get("name"): [(child.tag, child.get("type"), child.get("message")) for child in case] for case in kbl}
    assert found["a"] == [] and found["b"] == [("failure", "fail", "why"), ("system-err", None, None)]
    assert found["c"] == [("error", "crash", "ended by SIGSEGV")] and found["d"] == [("error", "timeout", "timeout")]
    assert found["e"] == [("skipped", "skip", "no")] and found["f"] == [("skipped", "fail", "fail")]
    assert found["g"] == [("failure", "pass", "passes, but the baseline has a failure: remove its line")]
    [log] = kbl.iter("system-err")
    assert log.text == "log of b" and all(case.get("classname") == "kbl" and case.get("time") == "0.500" for case in kbl)


def test_any_text_can_be_written() -> None:
    odd = "a <&> \"'\x00\x1b\ud800\uffff ü \U0001f600\n"
    root = ElementTree.fromstring(junit([result(odd, "fail", odd)], Expectations(), {f"kbl-{odd}": odd}))
    [case] = root.iter("testcase")
    assert case.get("name") == "a <&> \"'\ufffd\ufffd\ufffd\ufffd ü \U0001f600\n"
