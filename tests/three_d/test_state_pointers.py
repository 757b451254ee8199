"""Pointers of prepared draws: what was read through one stands where it leads now."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from softgen.shared_functions.unit import ResolvedState
from softgen.three_d.draw_structures import Base
from softgen.three_d.plan_cache import Notes, noted
from softgen.three_d.state_blocks import BLEND, CC, SAMPLERS, StateBlocks
from softgen.three_d.state_pointers import ROOT, UNIT, FollowedPointer, StatePointers
from tests.three_d.made import made_state

TABLE, MOVED, BLOCK, SIZE = 0x1000, 0x1240, 0x3000, 32


def pointers(command: list[int]) -> StatePointers:
    """A binding table of pixel shaders at dword 0 of the latched commands, and a block of state at dword 1."""
    latches: Any = SimpleNamespace(latched=SimpleNamespace(raw=lambda offset, count: command[offset : offset + count]))
    made = StatePointers(latches, made_state(4.5, {}))
    places = (TABLE, 0), (BLOCK, SIZE)
    made.pointers = [FollowedPointer(ROOT, n, 0xFFFFFFE0, Base.NONE, address, size) for n, (address, size) in enumerate(places)]
    made.names = {"table PS": 0, UNIT: 1}
    return made


def notes() -> Notes:
    found = Notes()
    found.entries = {("PS", TABLE + 8): (TABLE, b"two!"), ("VS", 0x2004): (0x2000, b"one!")}
    found.memory = {(BLOCK, SIZE): bytes(SIZE), (0x5000, 4): b"else"}
    return found


def bound() -> Any:
    return {"PS": SimpleNamespace(resolved=ResolvedState())}


def test_what_has_not_moved_stays() -> None:
    kept = notes()
    assert not pointers([TABLE, BLOCK]).follow(made_state(4.5, {}), kept, bound())
    assert vars(kept) == vars(notes())


def test_entries_move_with_their_table_and_memory_with_its_block() -> None:
    kept = notes()
    assert pointers([MOVED | 5, BLOCK + 0x100]).follow(made_state(4.5, {}), kept, bound())
    assert kept.entries == {("PS", MOVED + 8): (MOVED, b"two!"), ("VS", 0x2004): (0x2000, b"one!")}
    assert kept.memory == {(BLOCK + 0x100, SIZE): bytes(SIZE), (0x5000, 4): b"else"}


def test_a_pointer_leads_to_an_offset_from_its_base() -> None:
    made = pointers([TABLE, BLOCK])
    assert [made.offset(name) for name in ("table PS", UNIT, "samplers PS")] == [TABLE, BLOCK, 0]


def test_memory_that_no_pointer_leads_to_is_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for viewports after the first, which are looked at when a vertex names one."""
    made, kept = pointers([TABLE, BLOCK]), notes()
    block = made.pointers[1]
    block.count = 4
    monkeypatch.setattr(made, "_add_unit", lambda stage, pointer, name: made._add(UNIT, block) if UNIT not in made.names else 0)
    monkeypatch.setattr(made, "_add_table", lambda *parts: [])
    kept.memory |= {(BLOCK + SIZE, SIZE): bytes(SIZE), (BLOCK + 4 * SIZE, SIZE): b"4" * SIZE}
    found = made.collect(kept, bound())
    assert [(compared.pointer, compared.offset, compared.size) for compared in found.ranges] == [(0, 0, SIZE)]
    assert found.elsewhere == {(0x5000, 4): b"else", (BLOCK + 4 * SIZE, SIZE): b"4" * SIZE}


def test_units_read_blending_through_its_own_pointer() -> None:
    resolved = ResolvedState()
    resolved.blend, resolved.samplers, resolved.sampler_base = {(0x100, 4): b"blue"}, {16: b"near"}, 0x1000
    made: Any = object.__new__(StateBlocks)
    made._bound = {"PS": SimpleNamespace(dispatch=SimpleNamespace(resolved=resolved, space=SimpleNamespace(bits=48)))}
    made._dispatches = {"PS": SimpleNamespace(samplers=0x200)}
    assert made._read_by_units(BLEND) == {(0x100, 4): b"blue"} and made._read_by_units(SAMPLERS + "PS") == {(0x1210, 4): b"near"}
    assert made._read_by_units(SAMPLERS + "VS") == made._read_by_units(CC) == {}


def test_tables_beyond_the_last_address_begin_at_the_first() -> None:
    kept = Notes()
    state = made_state(9, {0: b"1234"}, {"3DSTATE_BINDING_TABLE_POINTERS_PS": {"pointer_to_binding_table": 0x40}})
    state.bases = {"surface": (1 << 48) - 0x40}
    assert noted(state, kept).table_space("PS").read(0, 4) == b"1234"
    assert kept.entries == {("PS", 0): (0, b"1234")}
