"""Binding tables and samplers of stages: where state says they are, and what of it is only a hint."""

from __future__ import annotations

from typing import Any

import pytest

from softgen.three_d.state import DrawState
from softgen.three_d.unit_state import binding_table, samplers
from tests.three_d.made import made_state

SURFACE, POOL = 0x40_0000, 0x90_0000


def made(gen: float, **commands: Any) -> DrawState:
    state = made_state(gen, {}, {f"3DSTATE_{name}": fields for name, fields in commands.items()})
    state.bases = {"surface": SURFACE}
    return state


@pytest.mark.behaviour("BDW-BT-01", shows="action")
@pytest.mark.parametrize("gen", [7, 7.5, 8, 9])
@pytest.mark.parametrize("stage", ["VS", "PS"])
def test_a_table_is_at_an_offset_from_the_surface_base(gen: float, stage: str) -> None:
    """In steps of 32 bytes; without a pointer it is at the base."""
    assert binding_table(made(gen, **{f"BINDING_TABLE_POINTERS_{stage}": {"pointer_to_binding_table": 0x660}}), stage) == 0x660
    assert binding_table(made(gen), stage) == 0


def test_gen4_has_one_command_for_the_tables_of_all_stages() -> None:
    stages = ("VS", "GS", "CLIP", "SF", "PS")
    pointers = {f"pointer_to_{stage.lower()}_binding_table": 0x20 * (number + 1) for number, stage in enumerate(stages)}
    assert [binding_table(made(4.5, BINDING_TABLE_POINTERS=pointers), stage) for stage in stages] == [0x20, 0x40, 0x60, 0x80, 0xA0]
    assert [binding_table(made(4.5), stage) for stage in stages] == [0] * 5


@pytest.mark.behaviour("BDW-BT-01", shows="action")
@pytest.mark.parametrize("gen", [7.5, 8, 9])
@pytest.mark.parametrize("enabled", [0, 1])
def test_a_pool_has_tables_in_steps_of_64_bytes(gen: float, enabled: int) -> None:
    """The same bits of the command count 64 bytes from the pool, if it is enabled (BDW 864-879)."""
    pool = {"binding_table_pool_base_address": POOL, "binding_table_pool_enable": enabled}
    state = made(gen, BINDING_TABLE_POINTERS_PS={"pointer_to_binding_table": 0x660}, BINDING_TABLE_POOL_ALLOC=pool)
    assert binding_table(state, "PS") + SURFACE == (POOL + 2 * 0x660 if enabled else SURFACE + 0x660)


def test_samplers_are_at_an_offset() -> None:
    assert samplers(made(9, SAMPLER_STATE_POINTERS_PS={"pointer_to_sampler_state": 0x5540}), "PS") == 0x5540
    assert samplers(made(9), "PS") == 0
