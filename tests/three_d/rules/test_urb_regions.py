"""Rules about URB regions since Gen8: what breaks one is remarked, what drivers do is not."""

from __future__ import annotations

from typing import Any

import pytest

from softgen.three_d.rules.urb_fences import FencedEntries, check_entries
from softgen.three_d.rules.urb_regions import check_regions
from tests.three_d.made import made_state

FINE: dict[str, dict[str, int]] = {
    "3DSTATE_URB_VS": {"urb_starting_address": 4, "urb_entry_allocation_size": 1, "number_of_urb_entries": 640},
    **{f"3DSTATE_URB_{stage}": {"urb_starting_address": 20} for stage in ("HS", "DS", "GS")},
    "3DSTATE_PUSH_CONSTANT_ALLOC_VS": {"constant_buffer_size": 16},
    **{f"3DSTATE_PUSH_CONSTANT_ALLOC_{stage}": {"constant_buffer_size": 0} for stage in ("HS", "DS", "GS")},
    "3DSTATE_PUSH_CONSTANT_ALLOC_PS": {"constant_buffer_offset": 16, "constant_buffer_size": 16},
}


def remarks(gen: float = 8, without: str = "", **changes: dict[str, int]) -> list[str]:
    found: list[str] = []
    commands: dict[str, Any] = {name: {**fields, **changes.get(name.removeprefix("3DSTATE_"), {})} for name, fields in FINE.items()}
    commands.pop(without, None)
    check_regions(made_state(gen, {}, commands, warn=found.append))
    return found


@pytest.mark.parametrize("gen", [8, 9, 11])
def test_regions_that_keep_all_rules(gen: float) -> None:
    assert remarks(gen) == []


@pytest.mark.behaviour("BDW-URB-04", shows="action")
@pytest.mark.parametrize("stage", ["VS", "HS", "DS", "GS"])
def test_the_four_commands_are_given_together(stage: str) -> None:
    assert remarks(without=f"3DSTATE_URB_{stage}") == [f"3DSTATE_URB_{stage}: not set; the four URB commands must be given together"]


@pytest.mark.behaviour("BDW-URB-02", shows="action")
@pytest.mark.parametrize("gen", [8, 9, 11])
def test_small_entries_come_in_multiples_of_eight(gen: float) -> None:
    """Sizes are 9 units and more, or less (BDW 11476-11478)."""
    odd = {"number_of_urb_entries": 604}
    assert remarks(gen, URB_VS=odd | {"urb_entry_allocation_size": 8}) == []
    assert remarks(gen, URB_VS=odd | {"urb_entry_allocation_size": 7}) == [
        "3DSTATE_URB_VS: number_of_urb_entries 604; entries of fewer than 9 units come in multiples of 8"]  # fmt: skip


@pytest.mark.behaviour("BDW-URB-01", shows="action")
@pytest.mark.parametrize(("stage", "low", "high"), [("VS", 64, 2560), ("HS", 0, 504), ("DS", 0, 1536), ("GS", 0, 960)])
def test_each_stage_has_a_range_of_counts(stage: str, low: int, high: int) -> None:
    for entries in (low, high):
        assert remarks(**{f"URB_{stage}": {"number_of_urb_entries": entries}}) == []
    for entries in (low - 8, high + 8):
        if entries >= 0:
            assert remarks(**{f"URB_{stage}": {"number_of_urb_entries": entries}}) == [
                f"3DSTATE_URB_{stage}: number_of_urb_entries {entries}; it must be from {low} to {high}"]  # fmt: skip
    assert remarks(9, URB_VS={"number_of_urb_entries": 2568}) == [], "the manual of another generation"


@pytest.mark.behaviour("BDW-URB-01", shows="action")
@pytest.mark.parametrize("stage", ["VS", "HS", "DS", "GS"])
def test_entries_of_two_stages_have_ten_units_at_most(stage: str) -> None:
    """The field has one unit less (BDW 11444-11450, 11788-11794)."""
    small = stage in ("VS", "DS")
    ten, eleven = ({f"URB_{stage}": {"urb_entry_allocation_size": units - 1, "number_of_urb_entries": 64}} for units in (10, 11))
    assert remarks(**ten) == []
    assert remarks(**eleven) == [f"3DSTATE_URB_{stage}: urb_entry_allocation_size 11 units; there must be at most 10"] * small
    assert remarks(9, **eleven) == [], "the manual of another generation"


@pytest.mark.behaviour("BDW-URB-06", "ICL-URB-01", shows="action")
@pytest.mark.parametrize("gen", [8, 9, 11])
def test_push_constants_are_in_front_of_the_entries(gen: float) -> None:
    assert remarks(gen, URB_VS={"urb_starting_address": 3}) == [
        "3DSTATE_PUSH_CONSTANT_ALLOC_PS: 16 to 32 KiB; 3DSTATE_URB_VS has 24 to 104 KiB"]  # fmt: skip
    assert remarks(gen, URB_GS={"urb_starting_address": 3}) == [], "a stage without entries has no region"
    assert remarks(gen, PUSH_CONSTANT_ALLOC_PS={"constant_buffer_size": 18}) == [
        "3DSTATE_PUSH_CONSTANT_ALLOC_PS: 16 to 34 KiB; push constants have 32",
        "3DSTATE_PUSH_CONSTANT_ALLOC_PS: 16 to 34 KiB; 3DSTATE_URB_VS has 32 to 112 KiB"]  # fmt: skip


@pytest.mark.behaviour("ICL-3D-06", shows="action")
@pytest.mark.parametrize("gen", [8, 9, 11])
@pytest.mark.parametrize("stage", ["VS", "HS", "DS", "GS"])
def test_push_constants_of_stages_lie_apart(gen: float, stage: str) -> None:
    def given(offset: int, size: int) -> list[str]:
        own = {"constant_buffer_offset": offset, "constant_buffer_size": size}
        return remarks(gen, **{"PUSH_CONSTANT_ALLOC_VS": {"constant_buffer_size": 0}, f"PUSH_CONSTANT_ALLOC_{stage}": own})

    name = f"3DSTATE_PUSH_CONSTANT_ALLOC_{stage}"
    assert given(0, 16) == given(20, 0) == []
    assert given(4, 14) == [f"3DSTATE_PUSH_CONSTANT_ALLOC_PS: 16 to 32 KiB; {name} has 4 to 18 KiB"]
    assert given(30, 2) == [f"{name}: 30 to 32 KiB; 3DSTATE_PUSH_CONSTANT_ALLOC_PS has 16 to 32 KiB"]


@pytest.mark.behaviour("ICL-URB-02", "ICL-URB-05", shows="action")
@pytest.mark.parametrize(("gen", "kib"), [(8, 384), (9, 384), (11, 1024)])
@pytest.mark.parametrize(("stage", "other"), [("VS", "HS"), ("HS", "DS"), ("DS", "GS"), ("GS", "VS")])
def test_entries_of_stages_lie_apart_and_in_the_urb(gen: float, kib: int, stage: str, other: str) -> None:
    """A stage's region begins at its start address and has the number of its entries times their size."""
    def given(start: int, entries: int, size: int) -> list[str]:
        region = {"urb_starting_address": start, "number_of_urb_entries": entries, "urb_entry_allocation_size": size - 1}
        fixed = {"urb_starting_address": 20, "number_of_urb_entries": 64, "urb_entry_allocation_size": 3}  # 160 to 176 KiB
        nobody = {"number_of_urb_entries": 0}
        others = {f"URB_{name}": nobody for name in ("VS", "HS", "DS", "GS")}
        found = remarks(gen, **{**others, f"URB_{other}": fixed, f"URB_{stage}": region})
        return [text for text in found if "must" not in text]

    name, fixed = f"3DSTATE_URB_{stage}", f"3DSTATE_URB_{other}"
    assert given(8, 96, 16) == given(22, 96, 16) == []
    assert given(8, 104, 16) == [f"{fixed}: 160 to 176 KiB; {name} has 64 to 168 KiB"]
    assert given(21, 8, 4) == [f"{name}: 168 to 170 KiB; {fixed} has 160 to 176 KiB"]
    assert given(kib // 8 - 1, 32, 4) == []
    assert given(kib // 8 - 1, 40, 4) == [f"{name}: {kib - 8} to {kib + 2} KiB; the URB has {kib}"]


@pytest.mark.parametrize("gen", [4.5, 7, 8, 9, 11])
def test_without_fences_there_is_nothing_to_fit_into(gen: float) -> None:
    """Later generations have none; on Gen4.5 none may have come yet."""
    warnings: list[str] = []
    state = made_state(gen, {}, warn=warnings.append)
    check_entries(state)
    FencedEntries().check(state)
    assert not warnings
