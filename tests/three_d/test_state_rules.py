"""Rules of commands that software must keep, on state that breaks one of them."""

from __future__ import annotations

import pytest

from softgen.three_d.state_rules import check_commands
from tests.three_d.made import Fields, made_state

SAMPLE = 3  # of position_zw_interpolation_mode


@pytest.mark.parametrize("extra, remarked", [(None, True), ({"pixel_shader_is_per_sample": 0}, True),
                                             ({"pixel_shader_is_per_sample": 1}, False)])  # fmt: skip
def test_depth_of_samples_is_for_shaders_that_run_for_each(extra: Fields | None, remarked: bool) -> None:
    """BDW 13525-13526; a draw without 3DSTATE_PS_EXTRA runs none for each sample."""
    commands = {"3DSTATE_PS": {}, "3DSTATE_WM": {"position_zw_interpolation_mode": SAMPLE}}
    remarks: list[str] = []
    check_commands(made_state(8, {}, commands | ({"3DSTATE_PS_EXTRA": extra} if extra is not None else {}), warn=remarks.append))
    assert any("position_zw_interpolation_mode sample" in text for text in remarks) == remarked


PUSHED = "3DSTATE_PS: push_constant_enable {}, and 3DSTATE_CONSTANT_PS has lengths of {} (BDW 7429-7433)"


@pytest.mark.parametrize("commands, remarks", [
    ({}, []),
    ({"3DSTATE_WM": {"position_zw_interpolation_mode": SAMPLE}, "3DSTATE_CONSTANT_PS": {"read_length": [{"length": 1}]}}, []),
    ({"3DSTATE_PS": {}}, []),
    ({"3DSTATE_PS": {"push_constant_enable": 1}}, [PUSHED.format(1, 0)]),
    ({"3DSTATE_PS": {}, "3DSTATE_CONSTANT_PS": {"read_length": [{"length": 0}, {"length": 2}, {"length": 3}]}}, [PUSHED.format(0, 5)]),
    ({"3DSTATE_PS": {"push_constant_enable": 1}, "3DSTATE_CONSTANT_PS": {"read_length": [{"length": 2}]}}, []),
    ({"3DSTATE_PS": {"maximum_number_of_threads_per_psd": 62}}, []),
    ({"3DSTATE_PS": {"maximum_number_of_threads_per_psd": 63}},
     ["3DSTATE_PS: maximum_number_of_threads_per_psd 65; it must be from 2 to 64 (BDW 7413-7419)"]),
])  # fmt: skip
def test_rules_of_pixel_shaders(commands: dict[str, Fields], remarks: list[str]) -> None:
    """A draw without 3DSTATE_PS has no shader that could break them."""
    found: list[str] = []
    check_commands(made_state(8, {}, commands, warn=found.append))
    assert found == remarks


def pattern(counts: str, distances: list[int]) -> Fields:
    """A sample pattern whose samples are so many sixteenths right of the middle."""
    made = [{"x_offset": 0.5 + distance / 16, "y_offset": 0.5} for distance in distances]
    return {"samples_8x": made[:4], "samples_8x_from_4": made[4:]} if counts == "8x" else {f"samples_{counts}": made}


@pytest.mark.parametrize("counts, distances, number", [
    ("4x", [0, 1, 2, 3], None), ("4x", [2, 2, 2, 2], None), ("4x", [0, 3, 2, 1], 2), ("4x", [3, 0, 1, 2], 1), ("4x", [0, 1, 3, 2], 3),
    ("8x", [0, 1, 2, 3, 4, 5, 6, 7], None), ("8x", [0, 1, 2, 3, 2, 5, 6, 7], 4), ("8x", [0, 1, 1, 1, 7, 7, 7, 6], 7),
    ("16x", [0] * 8 + [5] * 8, None), ("16x", [0] * 7 + [4, 3] + [5] * 7, 8), ("16x", [1, -2, 3, -4] + [5] * 11 + [-3], 15),
])  # fmt: skip
def test_the_first_sample_that_is_nearer_to_the_middle_is_named(counts: str, distances: list[int], number: int | None) -> None:
    found: list[str] = []
    check_commands(made_state(9, {}, {"3DSTATE_SAMPLE_PATTERN": pattern(counts, distances)}, warn=found.append))
    told = f"3DSTATE_SAMPLE_PATTERN: sample {number} of {counts[:-1]} is nearer to the middle than the one before (BDW 8834-8838)"
    assert found == ([] if number is None else [told])
