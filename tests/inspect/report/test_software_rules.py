"""Rules for software: each remark of spec/streamer/rules.toml is one of theirs, and reports quote them."""

from __future__ import annotations

import tomllib

import pytest

from softgen.bits.generation import SPEC
from softgen.inspect.check.remarks import from_remarks
from softgen.inspect.report.kernel_names import KernelNames
from softgen.inspect.report.report import gathered
from softgen.inspect.report.software_rules import rule_of, table
from softgen.trace.replay import Report

RULES = tomllib.loads((SPEC / "streamer" / "rules.toml").read_text("utf-8"))
PLACE = "PIPE_CONTROL at 0x1000 (batch 0x1000, gen {gen}): "


def test_each_is_a_numbered_behaviour() -> None:
    known = {line.split("\t")[0] for line in (SPEC / "behaviours.tsv").read_text("utf-8").splitlines()}
    assert len(table()) == 42 and set(table()) <= known and all(row["says"] and row["lines"].startswith("ICL ") for row in table().values())


@pytest.mark.parametrize("says", [row["says"] for rows in RULES["icl"].values() for row in rows])
def test_each_rule_of_a_command_has_its_line(says: str) -> None:
    assert rule_of(PLACE.format(gen=11) + says) is not None and rule_of(PLACE.format(gen=9) + says) is None


def test_report_and_check_quote_the_rule() -> None:
    remark = PLACE.format(gen=11) + "tlb_invalidate needs command_streamer_stall_enable"
    (rule,) = gathered(Report(remarks=[remark, "else"]), [], KernelNames())["rules"]
    assert (rule["behaviour"], rule["lines"], rule["remark"]) == ("ICL-PC-21", "ICL 1147", remark)
    (finding, other) = from_remarks([remark, "else"])
    assert finding.details == (f"ICL-PC-21 (ICL 1147): {rule['says']}",) and not other.details and finding.kind == "rule"
