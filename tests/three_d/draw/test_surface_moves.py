"""Records that follow surfaces: draws of the same state to surfaces of the same kind have the bits of draws with nothing kept.

The first record stays, the second follows surfaces that no draw had before; what comes again, and what is of another kind, gets its own.
"""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from softgen.device.gpu import GpuDevice
from softgen.threads.dispatcher import EngineDispatcher
from softgen.three_d.draw.surface_moves import SurfaceMoves
from softgen.three_d.state.state import DrawState
from softgen.three_d.state.unit_state import binding_table
from softgen.trace.file import open_trace
from softgen.trace.replay import events
from softgen.trace.work import Work
from tests.conftest import SHARED, needs_shared
from tests.three_d.draw.test_draw_cache import GearDraws, at_the_last_draw, never_met

pytestmark = needs_shared("traces")
LEVELS = SHARED / "traces" / "kbl-piglit-fbo-generatemipmap"


def surface(draws: GearDraws) -> int:
    """The surface state of the first render target, from the surface state base on."""
    return int(draws.cs.space.read32(draws.cs.bases["surface"] + binding_table(DrawState.of(draws.cs), "PS")))


def changed(draws: GearDraws, **fields: int) -> None:
    draws.structure("RENDER_SURFACE_STATE", "surface", surface(draws), **fields)


def same_as_fresh(draws: GearDraws, records: int) -> dict[int, bytes]:
    """Draw with what is kept, twice: the records after that."""
    found = draws.again()
    assert found == draws.fresh() == draws.again()
    assert len(draws.records) == records
    return found


def test_a_record_follows_render_targets_of_one_kind() -> None:
    """Another height, pitch and address; a form that has code of its own gets a record of its own, and so does what comes again."""

    def check(draws: GearDraws) -> None:
        whole = same_as_fresh(draws, 1)
        state = DrawState.of(draws.cs).structure("RENDER_SURFACE_STATE", draws.cs.bases["surface"] + surface(draws))
        height, pitch, base = state.height, state.surface_pitch, state.surface_base_address
        changed(draws, height=height // 2)
        half = same_as_fresh(draws, 2)
        changed(draws, height=height // 4, surface_pitch=pitch - 128)
        narrow = same_as_fresh(draws, 2)
        changed(draws, height=height // 3, surface_pitch=pitch, surface_base_address=base + 0x1000)
        moved = same_as_fresh(draws, 2)
        assert len({str(picture) for picture in (whole, half, narrow, moved)}) > 2
        changed(draws, tile_mode=0, height=height // 5, surface_base_address=base)
        same_as_fresh(draws, 3)
        changed(draws, tile_mode=3, height=height // 2)
        assert same_as_fresh(draws, 4) == half
        changed(draws, height=height)
        assert same_as_fresh(draws, 4) == whole

    at_the_last_draw("t1", check)


def test_other_state_besides_surfaces_gets_a_record_of_its_own() -> None:
    def check(draws: GearDraws) -> None:
        same_as_fresh(draws, 1)
        for height in (20, 21):
            changed(draws, height=height)
            same_as_fresh(draws, 2)
        never_met(draws)
        changed(draws, height=22)
        assert draws.again() == draws.fresh() == draws.again()

    at_the_last_draw("t1", check)


def test_mip_levels_are_the_same_with_records_that_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mesa makes each level from the one before, by a draw: source and target are other surfaces each time."""
    moves = list[bool]()

    def executed() -> str:
        trace, memory = open_trace(LEVELS), hashlib.sha256()
        gpu = GpuDevice(trace.device, dispatcher=EngineDispatcher("t1", threads=1))
        works = [event for event in events(trace) if isinstance(event, Work)]
        for work in works:
            gpu.execute(work)
        for region in works[-1].space.regions():
            memory.update(work.space.read(region.start, region.size))
        return memory.hexdigest()

    def moved(self: SurfaceMoves, *given: Any) -> bool:
        moves.append(move(self, *given))
        return moves[-1]

    move = SurfaceMoves._move
    monkeypatch.setattr(SurfaceMoves, "_move", moved)
    found = executed()
    assert sum(moves) >= 6
    monkeypatch.setattr(SurfaceMoves, "found", lambda self, *given: False)
    assert executed() == found
