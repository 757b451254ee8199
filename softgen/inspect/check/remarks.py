"""Findings that a replay itself remarks: accesses outside of buffers, and rules of the manual that commands break."""

from __future__ import annotations

import re
from collections.abc import Iterable

from softgen.inspect.check.finding import ERROR, NOTE, WARNING, Finding
from softgen.inspect.report.software_rules import rule_of

BOUNDS = re.compile(r"(?P<where>.*?): (?P<kernel>kernel 0x[0-9a-f]+)(?P<place>\+0x[0-9a-f]+: .*?): out of bounds: "
                    r"(?P<what>\S+) (?P<rest>at .*)")  # fmt: skip
READS = ("read", "sample", "load")


def from_remarks(remarks: Iterable[str]) -> list[Finding]:
    """A finding for each remark: a store outside of a buffer is an error, a load there reads zeros and is a note."""
    return [_finding(remark) for remark in remarks]


def _finding(remark: str) -> Finding:
    found = BOUNDS.match(remark)
    if found is None:
        rule = rule_of(remark)
        return Finding("bounds" if "out of bounds" in remark else "rule", WARNING, remark, details=() if rule is None else (str(rule),))
    reads = any(word in found["what"] for word in READS)
    effect = "reads zeros" if reads else "stores nothing"
    return Finding("bounds", NOTE if reads else ERROR, f"{found['what']} outside of a surface {effect}: {found['rest']}", found["kernel"],
                   details=(f"{found['kernel']}{found['place']}", found["where"]))  # fmt: skip
