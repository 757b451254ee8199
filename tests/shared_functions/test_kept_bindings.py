"""What bindings keep from one dispatch to the next: what is forgotten, and state that cannot be read, for which nothing is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from softgen.bits.catalogue import layout
from softgen.bits.generation import generation
from softgen.errors import GpuFault, Unsupported
from softgen.shared_functions.bindings import KNOWN, TOLD
from softgen.shared_functions.bound_surfaces import BoundSurfaces, SurfaceName
from softgen.shared_functions.dataport import DataPort, LocalMemory
from softgen.shared_functions.pixel_backend import BackendState, TargetState
from softgen.shared_functions.pixel_backend.binding import BoundTargets
from softgen.shared_functions.pixel_backend.messages import Variant
from softgen.shared_functions.texture.operations import TexelRequest
from softgen.shared_functions.unit import TABLES_END, DispatchBindings
from tests.shared_functions.rendering import Target
from tests.shared_functions.sending import BASE, DATA, PAGE, TABLE, Bench, lanes
from tests.shared_functions.texture import STATES, Texture

MISSING = 0x90000  # nothing is mapped there
PIXELS = Variant(16, dual=False, alpha=False, depth=False, stencil=False)


def bound(bench: Bench, **bases: int) -> BoundSurfaces:
    return BoundSurfaces(DispatchBindings(generation(bench.gen), bench.space, {"surface": BASE, **bases}, TABLE, bench.samplers))


# -- another dispatch --------------------------------------------------------------------------------------------------


def test_an_access_outside_a_buffer_is_reported_once_in_each_dispatch() -> None:
    """With the thread that made it. Compiled code leaves for the first of them: its entry says whether one was reported."""
    bench, told = Bench(), list[tuple[object, str]]()
    held = bound(bench)
    bench.port, held.dispatch.warn = DataPort(held.surfaces, LocalMemory(0)), lambda sender, what: told.append((sender, what))
    bench.sender = lambda: "a thread"  # type: ignore[method-assign]
    assert held.resolve_buffer(SurfaceName(0)) and held.bindings.surfaces[0].known == KNOWN
    for dispatch in range(1, 3):
        for _ in range(2):
            bench.send("untyped_surface_read", lanes(8, 4, 252), answer=1, simd_mode="simd8", channel_mask="r", binding_table_index=0)
            assert held.bindings.surfaces[0].known == TOLD and len(told) == dispatch
        held.renew()
        assert held.bindings.surfaces[0].known == KNOWN and not held.reported
    assert told[0] == told[1] and told[0][0] == "a thread"
    assert told[0][1].endswith("at offset 0x100 of surface 0, which has 0x100 bytes (lane 1)")


def test_a_null_surface_stays_one_whose_accesses_are_not_reported() -> None:
    held = bound(Bench(surface={"surface_type": 7}))
    assert held.resolve_buffer(SurfaceName(0))
    held.renew()
    entry = held.bindings.surfaces[0]
    assert (entry.known, entry.size) == (TOLD, 0) and entry.host, "an address at which every access faults"


def test_another_dispatch_reads_surfaces_and_samplers_again() -> None:
    """Those that only the interpreter has used are not compared."""
    texture = Texture()
    held = bound(texture, dynamic=BASE)
    assert held.surfaces.picture(0, False).width > 1 and not held.samplers.sampling(0).disabled
    texture.put(texture.state, 0, layout("RENDER_SURFACE_STATE", texture.gen).pack(surface_type=7))
    texture.put(texture.state, STATES, layout("SAMPLER_STATE", texture.gen).pack(sampler_disable=1))
    assert held.surfaces.picture(0, False).kind != "null" and not held.samplers.sampling(0).disabled
    held.renew()
    assert held.surfaces.picture(0, False).kind == "null" and held.samplers.sampling(0).disabled


def test_another_dispatch_reads_the_surfaces_of_targets_again() -> None:
    bench = Target()
    held = BoundTargets(bench.dispatch)
    assert held.surfaces.picture(0, False).kind == "2d"
    bench.put(bench.state, 0, layout("RENDER_SURFACE_STATE", bench.gen).pack(surface_type=7))
    held.renew()
    assert held.surfaces.picture(0, False).kind == "null"


@pytest.mark.parametrize("moved", [0, 0x40])
def test_another_dispatch_names_the_samplers_of_its_own_table(moved: int) -> None:
    """Draws that were prepared write the keys by themselves: those of another table are put right."""
    texture = Texture()
    held = bound(texture, dynamic=BASE)
    own = held.sampler_keys()
    for number in range(len(own)):
        held.bindings.sampler_keys[number] += moved
    assert (held.sampler_keys() == own) == (not moved)
    held.renew()
    assert held.sampler_keys() == own


# -- what cannot be resolved ----------------------------------------------------------------------------------------------


def test_a_buffer_that_does_not_fit_into_the_address_space_is_left_to_the_interpreter() -> None:
    bench = Bench(surface={"surface_base_address": (1 << 48) - PAGE}, size=2 * PAGE)
    held = bound(bench)
    assert not held.resolve_buffer(SurfaceName(0)) and not held.bindings.surfaces[0].host and not held.dispatch.resolved.hosts


def test_pictures_that_are_not_simulated_are_left_to_the_interpreter() -> None:
    """It reports what is wrong."""
    bench = Bench(surface={"surface_type": 1, "surface_format": 0x1A5})
    held = bound(bench)
    with pytest.raises(Unsupported):
        held.surfaces.picture(0, False)
    assert not held.resolve_image(TexelRequest("resinfo", 16), SurfaceName(0), hurry=True)
    assert list(held.dispatch.resolved.entries) == [0], "which is compared: another state may be simulated"


def test_targets_that_are_not_simulated_are_left_to_the_interpreter() -> None:
    held = BoundTargets(Target(surface={"surface_type": 4}).dispatch)
    assert not held.fill(0, PIXELS, (0,)) and not any(held.records[0][0].functions)


def test_a_dispatch_without_a_pixel_backend_has_no_targets() -> None:
    bench = Target()
    held = BoundTargets(DispatchBindings(generation(bench.gen), bench.space, {"surface": BASE}, TABLE))
    assert not held.fill(0, PIXELS, (0,)) and not held.records


# -- what cannot be read ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depend", [
    lambda dispatch: dispatch.depend(MISSING, 4), lambda dispatch: dispatch.depend_on_sampler(MISSING, 0, 16),
    lambda dispatch: dispatch.depend_on_blend(MISSING, 4), lambda dispatch: dispatch.depend_on_surface(1, 64),
    lambda dispatch: dispatch.depend_on_surface(MISSING // 4, 64),
], ids=["state", "sampler", "blend state", "surface state", "binding table"])  # fmt: skip
def test_nothing_is_kept_that_was_made_of_state_that_is_not_mapped(depend: Callable[[DispatchBindings], Any]) -> None:
    """What was read before counts no more."""
    bench = Bench()
    bench.put(bench.state, TABLE + 4, [MISSING])
    dispatch = bound(bench).dispatch
    dispatch.depend_on_surface(0, 64)
    assert dispatch.current() and dispatch.rest_current()
    assert not depend(dispatch)
    assert not dispatch.current() and not dispatch.rest_current() and not dispatch.follow_table(TABLE)


@pytest.mark.parametrize(("depend", "rest"), [
    (lambda dispatch: dispatch.depend(DATA, 4), False), (lambda dispatch: dispatch.depend_on_sampler(DATA, 8, 16), False),
    (lambda dispatch: dispatch.depend_on_blend(DATA, 4), False), (lambda dispatch: dispatch.depend_on_surface(1, 64), True),
], ids=["state", "sampler", "blend state", "surface state"])  # fmt: skip
def test_bindings_do_not_outlive_the_memory_they_were_made_from(depend: Callable[[DispatchBindings], Any], rest: bool) -> None:
    bench = Bench()
    bench.put(bench.state, TABLE + 4, [DATA - BASE])
    dispatch = bound(bench).dispatch
    depend(dispatch)
    assert dispatch.current() and dispatch.rest_current()
    bench.space.unmap(DATA, PAGE)
    assert not dispatch.current() and dispatch.rest_current() == rest
    bench.space.map(DATA, bench.data)
    assert dispatch.current() and dispatch.rest_current()


def test_a_table_that_is_not_mapped_means_no_surfaces() -> None:
    bench = Bench()
    dispatch = bound(bench).dispatch
    assert dispatch.follow_table(MISSING) and dispatch.binding_table == MISSING, "none were resolved"
    dispatch.binding_table = TABLE
    dispatch.depend_on_surface(0, 64)
    assert not dispatch.follow_table(MISSING) and dispatch.binding_table == TABLE


def test_faults_name_the_state_that_should_be_there() -> None:
    bench = Bench()
    bench.put(bench.state, TABLE, [MISSING])
    with pytest.raises(GpuFault, match="state of surface 0 should be there"):
        bound(bench).surfaces.plain(0)


# -- the pool of binding tables --------------------------------------------------------------------------------------------


def test_an_entry_past_the_pool_of_tables_means_the_state_at_the_base() -> None:
    """It reads as zero (BDW 1413-1414): that state is compared, and not the one that the bytes lead to."""
    bench = Bench()
    bench.put(bench.state, TABLE, [0x40, 0x80])
    dispatch = bound(bench, **{TABLES_END: BASE + TABLE + 4}).dispatch
    for index, offset in ((0, 0x40), (1, 0)):
        dispatch.depend_on_surface(index, 64)
        assert dispatch.resolved.surfaces[index] == (BASE + offset, bench.state.array[offset : offset + 64].tobytes())
    bench.state.array[0x80] ^= 1
    assert dispatch.current()
    bench.state.array[0] ^= 1
    assert not dispatch.current()


def test_a_table_that_moves_past_its_pool_means_other_surfaces() -> None:
    """Whatever bytes are there."""
    bench, other = Bench(), TABLE + 0x40
    bench.put(bench.state, TABLE, [0x40])
    bench.put(bench.state, other, [0x40])
    bench.state.array[0x40:0x80] = bench.state.array[:0x40]
    dispatch = bound(bench, **{TABLES_END: BASE + TABLE + 0x40}).dispatch
    dispatch.depend_on_surface(0, 64)
    assert dispatch.follow_table(other) and dispatch.resolved.surfaces[0][0] == BASE, "the same state is at the base"
    assert dispatch.follow_table(TABLE) and dispatch.resolved.surfaces[0][0] == BASE + 0x40
    bench.state.array[0] ^= 1
    assert not dispatch.follow_table(other) and dispatch.follow_table(TABLE)


@pytest.mark.parametrize(("count", "expected"), [(1, (DATA, 256)), (2, None)])
def test_a_surface_state_may_be_named_by_its_address(count: int, expected: tuple[int, int] | None) -> None:
    """Address and size of a buffer; a null surface has none."""
    bench = Bench()
    bench.put(bench.state, 0x40, layout("RENDER_SURFACE_STATE", bench.gen).pack(surface_type=7))
    assert bound(bench).surfaces.plain_at(BASE + 0x40 * (count - 1), "a surface") == expected


def test_states_of_a_draw_are_compared_where_they_have_moved_to() -> None:
    bench = Target(state_of_backend=BackendState((TargetState(),)))
    dispatch = bench.dispatch
    dispatch.depend_on_blend(DATA, 4)
    dispatch.blend_moved = 0x40
    bench.data.array[0x40:0x44] = bench.data.array[:4]
    assert dispatch.current()
    bench.data.array[0x40] ^= 1
    assert not dispatch.current()
