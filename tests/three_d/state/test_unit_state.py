"""Binding tables and samplers of stages: where state says they are, and what of it is only a hint."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from softgen.bits.generation import generation
from softgen.command import ConstantUrbEntry
from softgen.shared_functions.unit import TABLES_END
from softgen.three_d.state.state import DrawState
from softgen.three_d.state.unit_state import binding_table, dispatch_context, samplers, stage_bases
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


def test_a_pool_needs_no_surface_base() -> None:
    """Which is 0 while no command has set it."""
    pool = {"binding_table_pool_base_address": POOL, "binding_table_pool_enable": 1}
    state = made(9, BINDING_TABLE_POINTERS_PS={"pointer_to_binding_table": 0x660}, BINDING_TABLE_POOL_ALLOC=pool)
    state.bases = {}
    assert binding_table(state, "PS") == POOL + 2 * 0x660


def test_samplers_are_at_an_offset() -> None:
    assert samplers(made(9, SAMPLER_STATE_POINTERS_PS={"pointer_to_sampler_state": 0x5540}), "PS") == 0x5540
    assert samplers(made(9), "PS") == 0


def test_kernels_and_samplers_of_gen4_count_from_the_general_base() -> None:
    bases = {"general": 0x1000, "surface": 0x2000, "dynamic": 0x3000, "instruction": 0x4000}
    assert stage_bases(generation(4.5), bases) == {**bases, "dynamic": 0x1000, "instruction": 0x1000}
    assert stage_bases(generation(4.5), {"surface": 0x2000}) == {"surface": 0x2000, "dynamic": 0, "instruction": 0}
    assert all(stage_bases(generation(gen), bases) == bases for gen in (7, 7.5, 8, 9, 11))


@pytest.mark.parametrize(("enable", "pages", "end"), [(1, 3, POOL + 3 * 4096), (1, 127, POOL + 127 * 4096), (1, 128, None), (0, 3, None),
                                                    (1, None, None)])  # fmt: skip
def test_tables_end_with_their_pool(enable: int, pages: int | None, end: int | None) -> None:
    """Where a table's pointer can lead past it: pools of 512 KiB and more have no such table."""
    fields = {"binding_table_pool_base_address": POOL, "binding_table_pool_enable": enable, "binding_table_pool_buffer_size": pages or 0}
    latched = made(9, BINDING_TABLE_POOL_ALLOC=fields).latched if pages else {}
    cs: Any = SimpleNamespace(generation=generation(9), bases={"surface": SURFACE}, latched=latched, space=None, warn=None,
                              system_routine=None, elapsed=None, told=None)  # fmt: skip
    assert dispatch_context(cs).bases == {"surface": SURFACE} | ({TABLES_END: end} if end else {})


@pytest.mark.parametrize("gen", [4.5, 7, 9])
def test_only_gen4_has_constants_in_the_curbe(gen: float) -> None:
    held = {ConstantUrbEntry: ConstantUrbEntry(b"constants")}
    cs: Any = SimpleNamespace(generation=generation(gen), space=None, latched={}, bases={}, get=None, warn=None, state=held.__getitem__)
    assert DrawState.of(cs).curbe == (b"constants" if gen == 4.5 else None)
