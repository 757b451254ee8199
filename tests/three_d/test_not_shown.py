"""The lists of behaviours that no test shows: those of their units and no others, each with a reason."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from softgen.inspect.spec import citations
from softgen.inspect.spec.behaviours import COVERED, behaviours, status
from tests.conftest import ROOT

KINDS = ("missing", "no effect here", "another device", "undefined", "speed", "postponed")
G45 = [f"G45-{unit}" for unit in ("CS", "URB", "FF", "SYNC", "VF", "VS", "GS", "CLIP", "SF", "WM", "CC")]
BROADWELL = [f"BDW-{unit}" for unit in ("BT", "CK", "CLIP", "CONST", "CS", "DP", "DS", "DX9", "GPGPU", "GS", "HS", "MEM", "PAL", "PS", "RS",
                                        "RT", "SBE", "SF", "SOL", "STAT", "TE", "URB", "VF", "VS", "WM", "Z")]  # fmt: skip
KABY_LAKE = [f"KBL-{unit}" for unit in ("ATOM", "BLEND", "BT", "CLIP", "CONST", "CS", "DP", "DX9", "GPGPU", "RT", "SAMP", "SBE", "SF",
                                        "SOL", "STAT", "VF", "Z")]  # fmt: skip
LISTS = {"g45_not_shown.txt": (G45, 369), "bdw_not_shown.txt": (BROADWELL + KABY_LAKE, 367)}


@pytest.mark.parametrize("name", LISTS)
def test_what_no_test_shows_is_on_the_list(name: str) -> None:
    units, count = LISTS[name]
    lines = Path(__file__).with_name(name).read_text("utf-8").splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    every = [row for row in behaviours().values() if row.unit in units]
    assert [row[0] for row in rows] == not_covered(units) and len(every) == count
    assert all(reason.split(":")[0] in KINDS and len(reason) > 20 for _, reason in rows if not reason.startswith("another device"))


@cache
def cited() -> dict[str, list[citations.Citation]]:
    return citations.read(ROOT / "tests")


def not_covered(units: Sequence[str]) -> list[str]:
    """The behaviours of units that no test shows, in the order of the list of all."""
    return [row.id for row in behaviours().values() if row.unit in units and status(row, cited().get(row.id, ())) != COVERED]
