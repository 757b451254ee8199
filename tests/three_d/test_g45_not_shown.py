"""The list of G45's behaviours that no test shows: those and no others, each with a reason."""

from __future__ import annotations

from pathlib import Path

from softgen.inspect import citations
from softgen.inspect.behaviours import COVERED, behaviours, status
from tests.conftest import ROOT

UNITS = tuple(f"G45-{unit}" for unit in ("CS", "URB", "FF", "SYNC", "VF", "VS", "GS", "CLIP", "SF", "WM", "CC"))
KINDS = ("missing", "no effect here", "another device", "undefined", "speed")
LIST = Path(__file__).with_name("g45_not_shown.txt")


def test_what_no_test_shows_is_on_the_list() -> None:
    rows = [line.split("\t") for line in LIST.read_text("utf-8").splitlines() if not line.startswith("#")]
    found = citations.read(ROOT / "tests")
    every = [row for row in behaviours().values() if row.unit in UNITS]
    open_ = [row.id for row in every if status(row, found.get(row.id, ())) != COVERED]
    assert [name for name, _ in rows] == open_ and len(every) == 369
    assert all(reason.split(":")[0] in KINDS and len(reason) > 20 for _, reason in rows if not reason.startswith("another device"))
