"""Rules of commands that software must keep, on state that breaks one of them."""

from __future__ import annotations

import pytest

from softgen.three_d.rules.state_rules import check_commands
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


UAV = "3DSTATE_VS: accesses_uav 1 and enable 0 (BDW 12719-12720)"
FETCHED = "3DSTATE_URB_VS: entries of {} bytes, and vertex elements have {} (BDW 11795-11798)"


@pytest.mark.parametrize("shader, rows, valid, remarks", [
    (None, None, None, []), (None, 1, None, []), (None, None, [1] * 9, []), (None, 1, [1] * 4, []), (None, 1, [1] * 4 + [0], []),
    (None, 1, [0] + [1] * 5, [FETCHED.format(64, 80)]), (None, 2, [1] * 8, []), (None, 2, [1] * 9, [FETCHED.format(128, 144)]),
    ({}, None, None, []), ({"accesses_uav": 1}, None, None, [UAV]), ({"accesses_uav": 1, "enable": 1}, None, None, []),
    ({"enable": 1}, None, [1], []), ({"accesses_uav": 1}, 1, [1] * 5, [UAV, FETCHED.format(64, 80)]),
])  # fmt: skip
def test_rules_of_vertex_shaders(shader: Fields | None, rows: int | None, valid: list[int] | None, remarks: list[str]) -> None:
    """Elements of 16 bytes, those that are valid, in entries of so many rows."""
    commands = {"3DSTATE_VS": shader, "3DSTATE_URB_VS": None if rows is None else {"urb_entry_allocation_size": rows - 1}}
    given = {name: fields for name, fields in commands.items() if fields is not None}
    for gen in (8, 9, 11):
        found: list[str] = []
        elements = None if valid is None else [{"valid": bit} for bit in valid]
        check_commands(made_state(gen, {}, given, elements=elements, warn=found.append))
        assert found == remarks


def pattern(counts: str, distances: list[int], axis: str) -> Fields:
    """A sample pattern whose samples are so many sixteenths right of the middle, or below it."""
    made = [{"x_offset": 0.5, "y_offset": 0.5, f"{axis}_offset": 0.5 + distance / 16} for distance in distances]
    return {"samples_8x": made[:4], "samples_8x_from_4": made[4:]} if counts == "8x" else {f"samples_{counts}": made}


@pytest.mark.parametrize("axis", ["x", "y"])
@pytest.mark.parametrize("counts, distances, number", [
    ("4x", [0, 1, 2, 3], None), ("4x", [2, 2, 2, 2], None), ("4x", [0, 3, 2, 1], 2), ("4x", [3, 0, 1, 2], 1), ("4x", [0, 1, 3, 2], 3),
    ("8x", [0, 1, 2, 3, 4, 5, 6, 7], None), ("8x", [0, 1, 2, 3, 2, 5, 6, 7], 4), ("8x", [0, 1, 1, 1, 7, 7, 7, 6], 7),
    ("16x", [0] * 8 + [5] * 8, None), ("16x", [0] * 7 + [4, 3] + [5] * 7, 8), ("16x", [1, -2, 3, -4] + [5] * 11 + [-3], 15),
])  # fmt: skip
def test_the_first_sample_that_is_nearer_to_the_middle_is_named(counts: str, distances: list[int], number: int | None, axis: str) -> None:
    found: list[str] = []
    check_commands(made_state(9, {}, {"3DSTATE_SAMPLE_PATTERN": pattern(counts, distances, axis)}, warn=found.append))
    told = f"3DSTATE_SAMPLE_PATTERN: sample {number} of {counts[:-1]} is nearer to the middle than the one before (BDW 8834-8838)"
    assert found == ([] if number is None else [told])
