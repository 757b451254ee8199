"""Pointers of prepared draws: what was read through one stands where it leads now."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from softgen.shared_functions.unit import ResolvedState
from softgen.three_d.draw_structures import Base
from softgen.three_d.plan_cache import Notes
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
