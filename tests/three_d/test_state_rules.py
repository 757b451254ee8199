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
