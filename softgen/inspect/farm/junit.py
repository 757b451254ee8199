"""Results as JUnit XML, which CI systems read: a suite for each GPU, a case for each unit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from softgen.inspect.farm.expectations import Expectations
from softgen.inspect.farm.unit import UnitResult

# Characters that XML 1.0 has no way to write.
FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
ELEMENTS = {"fail": "failure", "crash": "error", "timeout": "error"}


def text(value: object) -> str:
    return FORBIDDEN.sub("\ufffd", str(value))


def junit(results: Iterable[UnitResult], expected: Expectations, logs: Mapping[str, str] | None = None) -> bytes:
    """The XML. Failures that are expected are skipped cases, as CI has no third kind."""
    suites: dict[str, list[UnitResult]] = {}
    for result in results:
        suites.setdefault(result.gpu, []).append(result)
    root = Element("testsuites", name="softgen")
    for gpu, members in sorted(suites.items()):
        kinds = [kind(result, expected) for result in members]
        suite = SubElement(root, "testsuite", name=text(gpu), tests=str(len(members)), failures=str(kinds.count("failure")),
                           errors=str(kinds.count("error")), skipped=str(kinds.count("skipped")),
                           time=f"{sum(result.seconds for result in members):.3f}")  # fmt: skip
        for result, what in zip(members, kinds, strict=True):
            add_case(suite, result, what, (logs or {}).get(result.key, ""))
    indent(root, " ")
    written: bytes = tostring(root, "utf-8", xml_declaration=True)
    return written + b"\n"


def kind(result: UnitResult, expected: Expectations) -> str:
    """What a case contains: "failure", "error", "skipped", or nothing."""
    if result.result == "skip":
        return "skipped"
    verdict = expected.verdict(result.name, result.gpu, result.result)
    return {"": "", "unexpected": ELEMENTS.get(result.result, "failure")}.get(verdict, "skipped")


def add_case(suite: Element, result: UnitResult, what: str, log: str) -> None:
    case = SubElement(suite, "testcase", classname=text(result.gpu), name=text(result.name), time=f"{result.seconds:.3f}")
    if what:
        message = result.message if result.result != "pass" else "passes, but the baseline has a failure: remove its line"
        SubElement(case, what, message=text(message or result.result), type=result.result)
    if log:
        SubElement(case, "system-err").text = text(log)
