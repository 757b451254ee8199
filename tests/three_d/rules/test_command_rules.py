"""The order of commands on Ice Lake: what must have come before a draw, and again when bases change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from softgen.bits.catalogue import layout
from softgen.three_d.rules.command_rules import NEEDED, POINTERS
from tests.three_d.own_draw import DYNAMIC, SURFACES, OwnDraw, rectangle
from tests.three_d.test_own_draw import PASS_VERTICES, VERTEX_SHADER


@dataclass
class Without(OwnDraw):
    """A draw without a command."""

    missing: str = ""

    def pack(self, name: str, **fields: Any) -> list[int]:
        return [] if name == self.missing else super().pack(name, **fields)


def remarks(made: OwnDraw) -> list[str]:
    return [text.partition("): ")[2] for text in made._executed("t0", 1).remarks]


@pytest.mark.behaviour("ICL-CMD-08", "ICL-CMD-07", shows="action")
@pytest.mark.parametrize("name", ["3DSTATE_VF_STATISTICS", "3DSTATE_DEPTH_BUFFER"])
def test_state_that_every_draw_needs(name: str) -> None:
    assert f"3DPRIMITIVE before any {name} (ICL 1505-1547)" in remarks(Without("icl", rectangle(0, 0, 4, 4), missing=name))
    assert not remarks(OwnDraw("icl", rectangle(0, 0, 4, 4)))


@pytest.mark.behaviour("ICL-CMD-07", "ICL-CMD-08", shows="action")
@pytest.mark.parametrize(("name", "state", "own"), [
    ("STATE_SIP", {"3DSTATE_VS": {**VERTEX_SHADER, "software_exception_enable": 1}}, {}),
    ("3DSTATE_POLY_STIPPLE_PATTERN", {"3DSTATE_WM": {"polygon_stipple_enable": 1}}, {"pattern": [{"pattern": 0xFFFFFFFF}] * 32}),
    ("3DSTATE_LINE_STIPPLE", {"3DSTATE_WM": {"line_stipple_enable": 1}}, {"line_stipple_repeat_count": 1, "line_stipple_pattern": 1}),
])  # fmt: skip
def test_state_that_some_draws_need(name: str, state: dict[str, Any], own: dict[str, Any]) -> None:
    """The system routine where exceptions are on, patterns where they are used, and not otherwise (ICL 1505-1547)."""
    text = f"3DPRIMITIVE before any {name} (ICL 1505-1547)"
    made = OwnDraw("icl", rectangle(0, 0, 4, 4), state, vs=PASS_VERTICES)
    groups = [group.name for group in layout(name, 11).groups]
    given = {groups[0]: own["pattern"]} if groups else own
    assert text in remarks(made)
    made.before = [made.pack(name, **given)]
    assert text not in remarks(made)
    assert text not in remarks(OwnDraw("icl", rectangle(0, 0, 4, 4)))
    assert name in NEEDED


@pytest.mark.behaviour("ICL-CMD-04", shows="action")
@pytest.mark.parametrize(("base", "address"), [("surface", SURFACES), ("dynamic", DYNAMIC)])
@pytest.mark.parametrize("again", [True, False])
@pytest.mark.parametrize("moved", [True, False])
def test_pointers_come_again_when_bases_change(base: str, address: int, again: bool, moved: bool) -> None:
    """The commands that hold offsets from a base that is another one now (ICL 1460-1464); one that sets the same base asks nothing."""
    made = OwnDraw("icl", rectangle(0, 0, 4, 4), primitives=[{}, {}])
    to = made.pack("STATE_BASE_ADDRESS", **{f"{base}_state_base_address": address + 0x4000 * moved,
                                            f"{base}_state_base_address_modify_enable": 1})  # fmt: skip
    pointers: Sequence[Sequence[int]] = [made.pack(name, **made.fields(name)) for name in POINTERS[base]] if again else []
    made.between = [to, *pointers]
    held = made._surfaces() if base == "surface" else made._dynamic()
    made.patch = {address + 0x4000: held[:0x4000]}
    told = [text for text in remarks(made) if "has not come again since" in text]
    assert len(told) == (len(POINTERS[base]) if moved and not again else 0)
