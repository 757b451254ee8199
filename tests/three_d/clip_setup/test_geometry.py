"""Geometry as draws use it: plans of captured state, and plans kept from draw to draw."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from softgen.bits import catalogue
from softgen.bits.record import Record
from softgen.command import CommandStreamer
from softgen.errors import GpuFault
from softgen.memory.space import Space
from softgen.memory.store import MemfdBuffer
from softgen.three_d.clip_setup.geometry import GeometryMemory, GeometryPlans, make_plans
from softgen.three_d.state.plan_cache import PlanCache
from softgen.three_d.state.state import DrawState
from softgen.three_d.structures import TILE
from tests.conftest import needs_shared
from tests.three_d.captured import walk
from tests.three_d.geometry_state import BASE, BLOCKS, EXTENT, GENERATIONS, SIZE, chunk_of, geometry_state, packed, triangle, vertex
from tests.three_d.walk import pieces_of

FAR = 1 << 40  # no memory is near


@needs_shared("traces")
@pytest.mark.parametrize("gpu,guardband", [("g45", 128), ("ivb", 256), ("hsw", 256), ("bdw", 256), ("kbl", 256), ("icl", 256)])
def test_plans_of_a_captured_cube(gpu: str, guardband: int) -> None:
    """kmscube draws 128 x 128 pixels, counter-clockwise front, back faces culled, four vertices a face."""
    seen: list[GeometryPlans] = []

    def draw(cs: CommandStreamer, cmd: Record) -> None:
        seen.append(make_plans(DrawState.of(cs), EXTENT))

    assert walk(f"{gpu}-kmscube", draw) == []
    cubes = [plans for plans in seen if plans.clip.enabled]
    assert len(cubes) == 36
    clip, setup, attributes = cubes[-1]
    assert (clip.test_xy, clip.test_guardband, clip.test_z_min, clip.test_z_max, clip.z_min) == (1, 1, 1, 1, -1)
    assert (clip.guardband[0].x_min, clip.guardband[0].y_max) == (-guardband, guardband)
    assert (setup.front_counter_clockwise, setup.cull_front, setup.cull_back, setup.sample_x, setup.grid) == (1, 0, 1, 128, 1)
    viewport = setup.viewport[0]
    assert [getattr(viewport, name) for name in ("m00", "m11", "m22", "m30", "m31", "m32")] == [64, -64, 0.5, 64, 64, 0.5]
    assert (viewport.x0, viewport.y0, viewport.x1, viewport.y1) == (0, 0, 64, 64)  # the extent, smaller than what is drawn
    assert (attributes.count, attributes.attributes[0].source) == ((0, 0) if gpu == "g45" else (1, 32))


@needs_shared("traces")
@pytest.mark.parametrize("gpu", ["g45", "ivb", "hsw", "bdw", "kbl", "icl"])
def test_state_that_drivers_repeat_makes_no_new_plans(gpu: str) -> None:
    memory, seen = GeometryMemory(), []

    def draw(cs: CommandStreamer, cmd: Record) -> None:
        seen.append(id(memory.plans.get(DrawState.of(cs), EXTENT).setup))

    assert walk(f"{gpu}-kmscube", draw) == []
    assert len(seen) == 43 and len(set(seen)) < 8


# -- plans kept ------------------------------------------------------------------------------------------------------------


class Counted:
    """make_plans, counting."""

    def __init__(self) -> None:
        self.made = 0

    def __call__(self, state: DrawState, extent: tuple[int, int]) -> GeometryPlans:
        self.made += 1
        return make_plans(state, extent)


@pytest.mark.parametrize("gen", GENERATIONS)
def test_plans_are_kept_while_state_holds(gen: float) -> None:
    state, counted = geometry_state(gen), Counted()
    cache = PlanCache(counted)
    first = cache.get(state, EXTENT)
    assert cache.get(state, EXTENT) is first
    assert counted.made == 1
    assert cache.get(state, (32, 32)) is not first
    assert cache.get(geometry_state(gen), EXTENT) is not first  # another address space


@pytest.mark.parametrize("gen", GENERATIONS)
def test_a_changed_command_makes_new_plans(gen: float) -> None:
    state = geometry_state(gen)
    cache = PlanCache(make_plans)
    first = cache.get(state, EXTENT)
    latched: Any = state.latched
    name = "3DSTATE_DRAWING_RECTANGLE"
    kept = latched[name]
    smaller = {"clipped_drawing_rectangle_x_max": 20, "clipped_drawing_rectangle_y_max": 9}
    latched[name] = catalogue.layout(name, gen).raw(packed(name, gen, smaller))
    assert cache.get(state, EXTENT).setup.viewport[0].x1 == 21
    latched[name] = catalogue.layout(name, gen).raw(packed(name, gen, dict(zip(kept._fields, kept, strict=True))))  # the same, said again
    assert cache.get(state, EXTENT) is first
    del latched[name]
    assert cache.get(state, EXTENT).setup.viewport[0].x1 == 64


@pytest.mark.parametrize("gen", GENERATIONS)
def test_changed_memory_makes_new_plans(gen: float) -> None:
    state = geometry_state(gen)
    cache = PlanCache(make_plans)
    assert cache.get(state, EXTENT).setup.viewport[0].m00 == 32
    where = BASE + BLOCKS["SF_VIEWPORT" if gen == 4.5 else "SF_CLIP_VIEWPORT"]
    state.space.write(where, b"\0\0\x80\x41")
    assert cache.get(state, EXTENT).setup.viewport[0].m00 == 16
    moved = DrawState(state.generation, state.space, state.latched, {"dynamic": BASE + 0x8000, "general": BASE + 0x8000}, state.register)
    with pytest.raises(GpuFault, match="should be there"):
        cache.get(moved, EXTENT)


def test_base_addresses_that_are_set_again_keep_plans() -> None:
    """To what they were; with others there are new plans."""
    state, counted = geometry_state(9), Counted()
    cache = PlanCache(counted)
    first = cache.get(state, EXTENT)
    again = DrawState(state.generation, state.space, state.latched, dict(state.bases), state.register)
    assert cache.get(again, EXTENT) is first and counted.made == 1
    cache.get(DrawState(state.generation, state.space, state.latched, {**state.bases, "indirect": BASE}, state.register), EXTENT)
    assert counted.made == 2


@pytest.mark.parametrize("ask", [
    lambda state: state.space.extent(BASE, 1 << 20), lambda state: list(state.space.regions()),
    lambda state: state.space.contiguous(FAR, 16), lambda state: state.space.mapped(FAR, 16), lambda state: state.register("CACHE_MODE"),
])  # fmt: skip
def test_what_cannot_be_compared_is_asked_again(ask: Callable[[DrawState], Any]) -> None:
    """What is mapped, and registers: plans that depend on that are made for each draw."""
    made, values = geometry_state(9), iter(range(9))
    state = DrawState(made.generation, made.space, made.latched, made.bases, lambda name: next(values))
    cache = PlanCache(ask)
    before = cache.get(state)
    for address in (BASE + SIZE, FAR):
        state.space.map(address, MemfdBuffer(SIZE))  # type: ignore[attr-defined]
    after = cache.get(state)
    assert after != before


@pytest.mark.parametrize("space_of", [
    lambda state: state.space, lambda state: state.table_space("PS"), lambda state: state.block_space("3DSTATE_BLEND_STATE_POINTERS"),
])  # fmt: skip
def test_memory_that_was_not_mapped_is_read_again(space_of: Callable[[DrawState], Space]) -> None:
    """By a reader that does without it."""

    def read(seen: DrawState) -> bytes:
        try:
            return space_of(seen).read(FAR, 4)
        except GpuFault:
            return b"none"

    state, cache = geometry_state(9), PlanCache(read)
    assert cache.get(state) == b"none"
    state.space.map(FAR, MemfdBuffer(SIZE))  # type: ignore[attr-defined]
    first = cache.get(state)
    assert first == bytes(4) and cache.get(state) is first


def test_what_is_written_while_plans_are_made_is_in_memory() -> None:
    """Nor does it matter for what is said of an address outside of it."""
    state = geometry_state(9)
    PlanCache(lambda seen: seen.space.write(BASE, b"here")).get(state)
    assert state.space.read(BASE, 4) == b"here"
    assert PlanCache(lambda seen: seen.space.outside(FAR)).get(state) == state.space.outside(FAR) != ""


@pytest.mark.parametrize("change", ["entry", "surface", "block", "memory"])
def test_plans_that_others_are_made_from_last_while_what_they_read_does(change: str) -> None:
    """An entry of a binding table, the surface state that it leads to, a block of state, other memory. New plans of the others do not
    change them, and still depend on all that."""
    places = {name: BASE + 0x3000 + 0x100 * number for number, name in enumerate(("entry", "surface", "block", "memory"))}
    made, state, name = list[int](), geometry_state(9), "3DSTATE_DRAWING_RECTANGLE"
    latched: Any = state.latched

    def read(seen: DrawState) -> tuple[bytes, ...]:
        made.append(1)
        table, block = seen.table_space("PS"), seen.block_space("3DSTATE_BLEND_STATE_POINTERS")
        return (table.read(places["entry"], 4), table.read(places["surface"], 64), block.read(places["block"], 16),
                seen.space.read(places["memory"], 8))  # fmt: skip

    inner = PlanCache(read)
    outer = PlanCache(lambda seen: (seen.command(name), inner.get(seen)))
    first = outer.get(state)
    latched[name] = catalogue.layout(name, 9).raw(packed(name, 9, {"clipped_drawing_rectangle_x_max": 20}))
    second = outer.get(state)
    assert second[0] != first[0] and second[1] is first[1] and len(made) == 1
    state.space.write(places[change], b"\x77")
    third = outer.get(state)
    assert third[1] != first[1] and len(made) == 2 and outer.get(state) is third


def test_few_plans_are_kept() -> None:
    """Those of four keys; with a fifth all others make room."""
    counted = Counted()
    cache, state = PlanCache(counted), geometry_state(9)
    made = []
    for side in (64, 65, 66, 67, 64, 65, 66, 67, 68, 68, 64, 67, 68, 64):
        cache.get(state, (side, side))
        made.append(counted.made)
    assert made == [1, 2, 3, 4, 4, 4, 4, 4, 5, 5, 6, 7, 7, 7]


def test_plans_used_last_are_kept() -> None:
    counted, state, name = Counted(), geometry_state(9), "3DSTATE_DRAWING_RECTANGLE"
    cache, latched = PlanCache(counted, kept=2), state.latched

    def of_width(last: int) -> GeometryPlans:
        latched[name] = catalogue.layout(name, 9).raw(packed(name, 9, {"clipped_drawing_rectangle_x_max": last}))  # type: ignore[index]
        return cache.get(state, EXTENT)

    first = of_width(20)
    of_width(30)
    assert of_width(20) is first
    of_width(40)  # the plans for 30 make room
    assert of_width(20) is first and counted.made == 3


def test_new_plans_replace_those_used_longest_ago() -> None:
    seen, state, name = list[int](), geometry_state(9), "3DSTATE_DRAWING_RECTANGLE"
    latched: Any = state.latched
    cache = PlanCache(lambda noted: seen.append(noted.command(name).clipped_drawing_rectangle_x_max), kept=2)
    for last in (20, 30, 40, 30, 40, 20):
        latched[name] = catalogue.layout(name, 9).raw(packed(name, 9, {"clipped_drawing_rectangle_x_max": last}))
        cache.get(state)
    assert seen == [20, 30, 40, 20]


def test_draws_of_several_sizes_share_memory() -> None:
    """Tiles of bins by the size of its surfaces, and as many attributes of a record as it has."""
    memory, chunk, sizes = GeometryMemory(), chunk_of([vertex(-1, -1), vertex(1, -1), vertex(-1, 1)], [triangle(0, 1, 2)]), []
    for outputs, extent in ((3, (4 * TILE, 2 * TILE)), (1, (TILE, TILE)), (3, (4 * TILE, 2 * TILE))):
        (piece,) = pieces_of(geometry_state(9, number_of_sf_output_attributes=outputs), chunk, extent, memory).pieces
        sizes.append((piece.tiles, len(piece.attributes[0])))
    assert sizes == [((4, 2), 192), ((1, 1), 64), ((4, 2), 192)]


# -- bad input -------------------------------------------------------------------------------------------------------------


def test_large_surfaces_have_as_many_tiles_as_they_need() -> None:
    state = geometry_state(9, {"x_max_viewport": 16383.0, "y_max_viewport": 16383.0})
    chunk = chunk_of([vertex(-1, -1), vertex(500, -1), vertex(-1, 500)], [triangle(0, 1, 2)])
    (piece,) = pieces_of(state, chunk, (16384, 16384)).pieces
    assert piece.tiles == (16384 // TILE, 16384 // TILE) and all(record.x1 <= 8192 for record in piece.records)
