"""Findings as text, JUnit XML, SARIF and annotations of GitHub's checks."""

from __future__ import annotations

import re
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from softgen import __version__
from softgen.inspect.check.finding import CLASSES, ERROR, NOTE, WARNING, CheckReport, Finding
from softgen.inspect.cli.output import Paint, counted
from softgen.inspect.farm.junit import text

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
COLOURS = {ERROR: "bad", WARNING: "warn", NOTE: "name"}


def lines(file: str, report: CheckReport, colour: Paint) -> list[str]:
    """The report for people."""
    what = [counted(report.submissions, "submission"), counted(report.dispatches, "dispatch"), counted(report.draws, "draw")]
    found = [colour(f"{file}: {report.gpu}", "heading"), f"  {', '.join(what)}"]
    for finding in report.findings:
        found += _lines(finding, colour)
    found += [f"  allowed: {headline(finding)}" for finding in report.allowed]
    found += [f"  {colour('failed', 'bad')} {failure}" for failure in report.failures]
    found += [f"  note: {note}" for note in report.notes]
    if not report.failures and not any(finding.witness for finding in report.findings + report.allowed):
        found.append(f"  {colour(report.silence, 'good')}")
    return found


def headline(finding: Finding) -> str:
    """A finding in one line, its position first."""
    where = " ".join(filter(None, (str(finding.position), finding.kernel)))
    return f"{where}: {finding.message}" if where else finding.message


def _lines(finding: Finding, colour: Paint) -> list[str]:
    found = [f"  {colour(finding.level, COLOURS[finding.level])} {finding.kind}: {headline(finding)}"]
    found += [f"      {line}" for line in finding.details]
    if finding.witness:
        found.append(f"      witness: {' and '.join(finding.witness)}")
    if finding.source:
        found.append(f"      {finding.source[0]}:{finding.source[1]}")
    return found


def junit(file: str, report: CheckReport) -> bytes:
    """A suite with a case for each class of findings: those without any have passed."""
    kinds = [*dict.fromkeys(finding.kind for finding in report.findings if finding.level != NOTE)]
    root = Element("testsuites", name="softgen check")
    suite = SubElement(root, "testsuite", name=text(file), tests=str(len(CLASSES) + 1), failures=str(len(kinds)),
                       errors=str(int(bool(report.failures))))  # fmt: skip
    work = SubElement(suite, "testcase", classname=text(report.gpu), name="execution")
    if report.failures:
        SubElement(work, "error", message=text(report.failures[0])).text = text("\n".join(report.failures))
    for kind in CLASSES:
        case = SubElement(suite, "testcase", classname=text(report.gpu), name=kind)
        found = [finding for finding in report.findings if finding.kind == kind and finding.level != NOTE]
        if found:
            failure = SubElement(case, "failure", message=text(headline(found[0])), type=kind)
            failure.text = text("\n".join("\n".join([headline(finding), *finding.details]) for finding in found))
    indent(root, " ")
    written: bytes = tostring(root, "utf-8", xml_declaration=True)
    return written + b"\n"


def sarif(file: str, report: CheckReport) -> dict[str, Any]:
    """SARIF 2.1.0: a rule for each class, a result for each finding."""
    rules = [{"id": kind, "shortDescription": {"text": meaning}} for kind, meaning in CLASSES.items()]
    results = [_result(file, finding) for finding in report.findings]
    driver = {"name": "softgen check", "version": __version__, "rules": rules}
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def _result(file: str, finding: Finding) -> dict[str, Any]:
    message = {"text": "\n".join([headline(finding), *finding.details])}
    more = {"position": str(finding.position), "witness": list(finding.witness)}
    return {"ruleId": finding.kind, "level": finding.level, "message": message, "locations": [_location(file, finding)], "properties": more}


def _location(file: str, finding: Finding) -> dict[str, Any]:
    name, line = finding.source or (file, 1)
    logical = [{"fullyQualifiedName": "@".join(filter(None, (finding.kernel, str(finding.position))))}]
    place = {"artifactLocation": {"uri": name.lstrip("/")}, "region": {"startLine": line}}
    return {"physicalLocation": place, **({"logicalLocations": logical} if finding.kernel or str(finding.position) else {})}


def github_annotations(file: str, report: CheckReport) -> list[str]:
    """Lines that GitHub shows at the source: https://docs.github.com/actions/reference/workflow-commands-for-github-actions."""
    found = []
    for finding in report.findings:
        level = {ERROR: "error", WARNING: "warning", NOTE: "notice"}[finding.level]
        name, line = finding.source or (file, 1)
        message = escaped("\n".join([headline(finding), *finding.details]))
        found.append(f"::{level} file={property_(name)},line={line},title={property_(finding.kind)}::{message}")
    return found


def escaped(value: str) -> str:
    return value.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def property_(value: str) -> str:
    return re.sub("[:,]", lambda found: f"%{ord(found[0]):02X}", escaped(value))
