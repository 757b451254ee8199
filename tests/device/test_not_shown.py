"""The lists of behaviours of Ice Lake, of contexts and interrupts, and of the EU that no test shows: those and no others, with a reason."""

from __future__ import annotations

import pytest

from softgen.inspect.spec.behaviours import behaviours
from tests.conftest import ROOT
from tests.three_d.test_not_shown import KINDS, not_covered

ICE_LAKE = [f"ICL-{unit}" for unit in ("CS", "WD", "POSH", "SYNC", "PC", "REG", "CMD", "MEM", "CTX", "3D", "TH", "URB")]
LISTS = {"device/device_not_shown.txt": (["BDW-CTX", "KBL-CTX", "KBL-INT", *ICE_LAKE], 199), "eu/eu_not_shown.txt": (["EU"], 236)}


@pytest.mark.parametrize("name", LISTS)
def test_what_no_test_shows_is_listed_with_a_reason(name: str) -> None:
    units, count = LISTS[name]
    lines = (ROOT / "tests" / name).read_text("utf-8").splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    assert [row[0] for row in rows] == not_covered(units) and sum(row.unit in units for row in behaviours().values()) == count
    assert all(reason.split(":")[0] in KINDS and len(reason) > 20 for _, reason in rows)
