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
