"""The list of the media pipeline's behaviours that no test shows: those and no others, each with a reason."""

from __future__ import annotations

from pathlib import Path

from softgen.inspect.spec.behaviours import behaviours
from tests.three_d.test_not_shown import KINDS, not_covered

UNITS = [*(f"G45-{unit}" for unit in ("AIT", "AMC", "IS", "KRN", "TS", "VFE", "VIT", "VLD")), "BDW-MEDIA", "KBL-MEDIA", "KBL-MSAMP"]


def test_what_no_test_shows_is_on_the_list() -> None:
    lines = Path(__file__).with_name("media_not_shown.txt").read_text("utf-8").splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    assert [row[0] for row in rows] == not_covered(UNITS) and sum(row.unit in UNITS for row in behaviours().values()) == 174
    assert all(reason.split(":")[0] in KINDS and len(reason) > 20 for _, reason in rows)
