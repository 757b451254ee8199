"""Records that follow surfaces: draws of the same state to surfaces of the same kind have the bits of draws with nothing kept.

The first record stays, the second follows surfaces that no draw had before; what comes again, and what is of another kind, gets its own.
"""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from softgen.device.gpu import GpuDevice
from softgen.shared_functions.bindings import Picture
from softgen.shared_functions.bound_surfaces import BoundSurfaces
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


def renumbered(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each surface that a record followed was another in numbers only."""
    found, renumber = list[bool](), SurfaceMoves._renumber

    def seen(self: SurfaceMoves, *given: Any) -> bool:
        found.append(renumber(self, *given))
        return found[-1]

    monkeypatch.setattr(SurfaceMoves, "_renumber", seen)
    return found


def test_numbers_of_plain_targets_are_taken_from_their_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of other levels, and where more than numbers is another, all of the state is looked at."""
    found = renumbered(monkeypatch)

    def check(draws: GearDraws) -> None:
        same_as_fresh(draws, 1)
        state = DrawState.of(draws.cs).structure("RENDER_SURFACE_STATE", draws.cs.bases["surface"] + surface(draws))
        height, base = state.height, state.surface_base_address
        changed(draws, height=height - 9)
        same_as_fresh(draws, 2)
        assert found == []
        changed(draws, height=height // 2, width=state.width - 70, surface_base_address=base + 0x3000)
        small = same_as_fresh(draws, 2)
        changed(draws, height=height // 3, surface_pitch=state.surface_pitch - 128)
        assert same_as_fresh(draws, 2) != small
        assert found == [True, True]
        changed(draws, height=height // 4, shader_channel_select_red=6, shader_channel_select_blue=4)
        same_as_fresh(draws, 3)
        assert found[:3] == [True, True, False]

    at_the_last_draw("t1", check)


def test_numbers_of_plain_textures_are_taken_from_their_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """What compiled code reads of a texture is what it reads with a record that is made for it."""
    found = renumbered(monkeypatch)

    def described(draws: GearDraws) -> bytes:
        """The numbers of the texture that the last record has."""
        record = draws.kept.cache.current
        assert record.keeper is not None
        (surfaces,) = (held for held in record.keeper.bound["PS"].bindings if isinstance(held, BoundSurfaces))
        picture = surfaces.bindings.pictures[1]
        start, end = Picture.base.offset, Picture.control_base.offset
        return bytes(picture)[start:end]

    def check(draws: GearDraws) -> None:
        place = draws.cs.bases["surface"] + draws.cs.space.read32(draws.table() + 4)
        state = DrawState.of(draws.cs).structure("RENDER_SURFACE_STATE", place)
        place, texts = place - draws.cs.bases["surface"], list[bytes]()
        draws.structure("RENDER_SURFACE_STATE", "surface", place, mip_count_lod=0, surface_min_lod=0)
        same_as_fresh(draws, 1)
        for number, smaller in enumerate((1, 2, 4, 8)):
            base = state.surface_base_address + 0x1000 * number
            draws.structure("RENDER_SURFACE_STATE", "surface", place, width=(state.width + 1) // (2 * smaller) - 1,
                            height=state.height // (3 * smaller), surface_base_address=base)  # fmt: skip
            same_as_fresh(draws, 2)
            texts.append(described(draws))
            draws.kept.cache.forget_all()
            draws.again()
            assert described(draws) == texts[-1]
            draws.structure("RENDER_SURFACE_STATE", "surface", place, width=state.width)
            draws.again()
        assert found and all(found) and len(set(texts)) == 4

    at_the_last_draw("t1", check, capture=LEVELS)


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
