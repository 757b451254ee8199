"""Surfaces and samplers that compiled messages find by the offset of their state: BoundSurfaces resolves them after a side exit. What
bindings were made from is compared before they are used again."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from softgen.bits.catalogue import layout
from softgen.bits.generation import generation
from softgen.lanes.numpy.machine import NumpyMachine
from softgen.lanes.types import u32
from softgen.lanes.value import Value
from softgen.memory.address_space import AddressSpace
from softgen.shared_functions import descriptors
from softgen.shared_functions.bindings import KEYED
from softgen.shared_functions.bound_surfaces import BoundSurfaces, SurfaceName
from softgen.shared_functions.pixel_backend import BackendState, TargetState
from softgen.shared_functions.pixel_backend.binding import BoundTargets, named_target
from softgen.shared_functions.pixel_backend.messages import Variant
from softgen.shared_functions.pixel_backend.records import NULL_TARGET, TARGETS
from softgen.shared_functions.texture.functions import COMPILE_AFTER
from softgen.shared_functions.texture.operations import TexelRequest, bindless_offset
from softgen.shared_functions.unit import DispatchBindings, HostRange
from tests.shared_functions.compiled import Compiled
from tests.shared_functions.rendering import Target
from tests.shared_functions.sending import BASE, DATA, PAGE, SLM, STATELESS, TABLE, Bench, Sent, header
from tests.shared_functions.test_sampler import coordinates, floats, modes
from tests.shared_functions.texture import BORDER, STATES, Texture

SECOND = 0x200 + 0x80  # from the first sampler table to the second
BINDLESS = 252
RENDER_CACHE, DATA_CACHE_0, DATA_CACHE_1 = 5, 10, 12  # shared function numbers


class Resolving(Bench):
    """A bench whose compiled messages use what BoundSurfaces resolves."""

    bound: BoundSurfaces | None = None

    def resolved(self) -> BoundSurfaces:
        if self.bound is None:
            bases = {"surface": BASE, "dynamic": BASE, "bindless": BASE}
            self.port.surfaces.bases = bases
            self.bound = BoundSurfaces(DispatchBindings(generation(self.gen), self.space, bases, TABLE, self.samplers))
        return self.bound

    def _compare(self, sent: Sent, *more: Any) -> None:
        self.resolved()
        super()._compare(sent, *more)

    def _prepare(self, twin: Compiled, sent: Sent, index: int) -> None:
        bound = self.resolved()
        found = descriptors.named(sent.sfid, sent.descriptor, self.gen)
        for _ in range(COMPILE_AFTER):
            bound.resolve(found, sent)
        twin.context.surfaces = ctypes.addressof(bound.bindings)


class Sampled(Resolving, Texture):
    """A texture with a second table of samplers, whose first sampler filters linearly."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.resolved()
        linear = {"mag_mode_filter": 1, "min_mode_filter": 1}
        self.put(self.state, STATES + SECOND, layout("SAMPLER_STATE", self.gen).pack(**linear))


@pytest.mark.parametrize("table", [STATES, STATES + SECOND])
def test_a_header_names_a_table_of_samplers(table: int) -> None:
    first, other = Sampled(), Texture(sampler={"mag_mode_filter": 1, "min_mode_filter": 1} if table != STATES else {})
    places = coordinates(first)
    found = first.send("sample_lz", header(d3=table), *places, answer=8, simd_mode=2, header_present=1)
    wanted = other.ask("sample_lz", *places)
    assert (found.view(np.uint32).reshape(-1, 16).T == wanted).all() and first.compiled == 1


def test_more_samplers_than_there_are_entries() -> None:
    """Those without an entry are left to the interpreter."""
    sampled = Sampled()
    places = coordinates(sampled)
    for number in range(KEYED + 3):
        at = 0xA00 + 32 * number
        sampled.put(sampled.state, at, layout("SAMPLER_STATE", sampled.gen).pack(mag_mode_filter=1, min_mode_filter=1))
        sampled.send("sample_lz", header(d3=at), *places, answer=8, simd_mode=2, header_present=1)
    assert sampled.compiled == KEYED


def test_a_bindless_texture() -> None:
    sampled = Sampled()
    places = coordinates(sampled)
    wanted = floats(Texture().ask("sample_lz", *places))
    sampled.put(sampled.state, 0x100, layout("RENDER_SURFACE_STATE", sampled.gen).pack())  # a null surface is at another offset
    found = sampled.ask("sample_lz", *places, binding_table_index=BINDLESS, extended=0)
    assert (floats(found) == wanted).all() and sampled.compiled == 1


def test_a_bindless_buffer_is_compiled() -> None:
    bench = Resolving()
    bench.resolved()
    at = np.arange(8, dtype=np.uint32) * 4
    found = bench.send("untyped_surface_read", at, answer=1, simd_mode="simd8", channel_mask="r", binding_table_index=BINDLESS, width=8,
                       mask=0xFF, extended=0)  # fmt: skip
    assert (found == bench.data.array[:32]).all() and bench.compiled == 1


def test_a_register_may_have_the_extended_descriptor() -> None:
    """Then the offset of a bindless surface's state is known when the message is sent."""
    m, plan = NumpyMachine(), SimpleNamespace(gen=9.0)
    for extended, offset in ((0, 0), (0x1000, 0x40), (0xABCDE_000 | 0x14C, 0xABCDE * 0x40)):
        message: Any = SimpleNamespace(plan=plan, extended=m.constant(u32, extended, 1))
        found = bindless_offset(message)
        assert isinstance(found, Value) and found.payload.tolist() == [offset]
        assert bindless_offset(SimpleNamespace(plan=plan, extended=extended)) == offset  # type: ignore[arg-type]


def test_state_of_bindless_surfaces_and_keyed_samplers_is_compared() -> None:
    sampled = Sampled()
    sampled.send("sample_lz", header(d3=STATES + SECOND), *coordinates(sampled), answer=8, simd_mode=2, header_present=1)
    bound = sampled.resolved()
    assert bound.dispatch.current()
    sampled.put(sampled.state, STATES + SECOND, layout("SAMPLER_STATE", sampled.gen).pack(mag_mode_filter=0))
    assert not bound.dispatch.current()


@pytest.mark.parametrize("bindless", [False, True])
@pytest.mark.parametrize("gen, size", [(7, 32), (9, 64)])
@pytest.mark.parametrize("image", [False, True])
def test_surface_states_are_compared_to_their_last_byte(image: bool, gen: float, size: int, bindless: bool) -> None:
    """Of what was resolved, and not of the state behind it."""
    bench = Resolving(gen=gen)
    bound, name = bench.resolved(), SurfaceName(0, bindless=bindless)
    assert bound.resolve_image(TexelRequest("resinfo", 16), name, hurry=True) if image else bound.resolve_buffer(name)
    assert bound.dispatch.current()
    bench.state.array[size] ^= 1
    assert bound.dispatch.current()
    bench.state.array[size - 1] ^= 1
    assert not bound.dispatch.current()


def test_border_colours_of_samplers_are_compared() -> None:
    sampled = Sampled()
    sampled.ask("sample_lz", *coordinates(sampled))
    bound = sampled.resolved()
    assert bound.dispatch.current()
    sampled.put(sampled.state, BORDER, [0x3F800000])
    assert not bound.dispatch.current()


def test_a_border_colour_that_is_not_mapped_is_not_compared() -> None:
    """Drivers leave the pointer as it was where no address mode needs a border."""
    sampled = Sampled(sampler=modes("wrap"))
    sampled.put(sampled.state, STATES, layout("SAMPLER_STATE", sampled.gen).pack(border_color_pointer=0x100000, **modes("wrap")))
    sampled.ask("sample_lz", *coordinates(sampled))
    assert sampled.compiled == 1 and sampled.resolved().dispatch.current()


def test_a_null_surface_is_compiled_as_a_buffer_without_bytes() -> None:
    bench = Resolving(surface={"surface_type": 7})
    at = np.arange(8, dtype=np.uint32) * 4
    found = bench.send("untyped_surface_read", at, answer=1, simd_mode="simd8", channel_mask="r", binding_table_index=0, width=8, mask=0xFF)
    assert not found.any() and bench.compiled == 1


@pytest.mark.parametrize(("size", "mapped"), [(256, 256), (PAGE, PAGE), (PAGE + 4, PAGE)])
def test_an_entry_says_where_a_buffer_is_and_how_much_of_it_is_mapped(size: int, mapped: int) -> None:
    """A page of it is."""
    bench = Resolving(size=size)
    bound = bench.resolved()
    assert bound.resolve_buffer(SurfaceName(0))
    entry, host = bound.bindings.surfaces[0], bench.space.contiguous(DATA, size)
    assert (entry.host, entry.size, entry.mapped) == (host, size, mapped)
    assert bound.dispatch.resolved.hosts[0] == HostRange(DATA, size, host or 0, mapped)


def test_more_bindless_surfaces_than_there_are_entries() -> None:
    """Those without an entry are left to the interpreter."""
    bench = Resolving()
    bound, request = bench.resolved(), TexelRequest("resinfo", 16)
    for number in range(1, KEYED + 1):
        bench.state.array[64 * number : 64 * number + 64] = bench.state.array[:64]
    *names, last = (SurfaceName(64 * number, bindless=True) for number in range(KEYED + 1))
    assert all(bound.resolve_buffer(name) for name in names) and all(bound.resolve_image(request, name, hurry=True) for name in names)
    assert not bound.resolve_buffer(last) and not bound.resolve_image(request, last, hurry=True)
    assert None not in bound.known and sorted(bound.known) == list(range(256, 256 + KEYED))


@pytest.mark.parametrize("index", [BINDLESS, 253, SLM, STATELESS])
def test_special_indices_name_no_surface_of_the_table(index: int) -> None:
    """However long it is."""
    bound, request = Resolving().resolved(), TexelRequest("resinfo", 16)
    assert bound.surfaces.plain(index) == (DATA, 256), "as the table has it"
    assert not bound.resolve_buffer(SurfaceName(index)) and not bound.resolve_image(request, SurfaceName(index), hurry=True)
    bound.prepare(frozenset({index}))
    assert not bound.dispatch.resolved.entries and not bound.bindings.surfaces[index].known
    assert bound.resolve_image(request, SurfaceName(251), hurry=True) and list(bound.dispatch.resolved.entries) == [251]
    assert bound.resolve_buffer(SurfaceName(251))


def test_messages_that_name_no_surface_are_not_resolved() -> None:
    bound, lengths = Resolving().resolved(), {"message_length": 1, "response_length": 1}
    scratch = descriptors.encode("scratch_block_read", 9, hword_offset=3, **lengths)
    local = descriptors.encode("untyped_surface_read", 9, simd_mode="simd8", channel_mask="r", binding_table_index=SLM, **lengths)
    assert not bound.resolve(descriptors.named(DATA_CACHE_0, scratch, 9)) and not bound.resolve(descriptors.named(DATA_CACHE_1, local, 9))
    assert not bound.known and not bound.dispatch.resolved.entries


@dataclass(frozen=True)
class BlendBytes:
    """Blend states in memory, of a byte each: bit 0 disables writes of red."""

    address: int

    def place(self, index: int) -> tuple[int, int]:
        return self.address + index, 1

    def parse(self, data: bytes) -> TargetState:
        return TargetState(write_disable="r" if data[0] & 1 else "")


def test_blend_states_of_further_targets_are_compared() -> None:
    bench = Target(state_of_backend=BackendState(more=BlendBytes(BASE + 0x600)))
    bound = BoundTargets(bench.dispatch)
    assert bound.fill(0, Variant(16, dual=False, alpha=False, depth=False, stencil=False), (3,)) and bench.dispatch.current()
    bench.state.array[0x602] = 1  # of another target
    assert bench.dispatch.current()
    bench.state.array[0x603] = 1
    assert not bench.dispatch.current()


@pytest.mark.parametrize(("index", "depends"), [(0, False), (1, False), (2, True), (3, True)])
def test_targets_beyond_those_that_were_told_have_their_blend_states_in_memory(index: int, depends: bool) -> None:
    bench = Target(state_of_backend=BackendState((TargetState(), TargetState()), more=BlendBytes(BASE + 0x600)))
    assert BoundTargets(bench.dispatch).fill(0, Variant(16, dual=False, alpha=False, depth=False, stencil=False), (index,))
    assert list(bench.dispatch.resolved.blend) == ([(BASE + 0x600 + index, 1)] if depends else [])


def test_surface_states_of_targets_are_compared() -> None:
    """All 16 dwords of the one that was resolved; the null target has none."""
    bench, variant = Target(), Variant(16, dual=False, alpha=False, depth=False, stencil=False)
    bound = BoundTargets(bench.dispatch)
    assert bound.fill(NULL_TARGET, variant, (0,)) and not bench.dispatch.resolved.entries
    assert bound.fill(0, variant, (0,)) and list(bench.dispatch.resolved.entries) == [0] and bench.dispatch.current()
    bench.state.array[64] ^= 1  # of another surface
    assert bench.dispatch.current()
    bench.state.array[63] ^= 1
    assert not bench.dispatch.current()


class MovingSpace(AddressSpace):
    """A space whose host addresses, and counted changes, are set by hand."""

    moved = 0
    changes: Any = 0  # type: ignore[assignment]

    def contiguous(self, address: int, size: int) -> int | None:
        return address + size + self.moved


@pytest.mark.parametrize(("moved", "mapped", "holds"), [(0, 0x800, True), (0x100, 0x800, False), (0, 0x7FF, False), (0, 0x801, False),
                                                        (0x100, 0, False)])  # fmt: skip
def test_a_buffer_holds_while_it_is_where_it_was_and_as_much_of_it_is_mapped(moved: int, mapped: int, holds: bool) -> None:
    space: Any = MovingSpace("bench")
    space.moved, space.mapped = moved, lambda address, limit: mapped if (address, limit) == (0x1000, 0x1000) else 0
    assert HostRange(0x1000, 0x1000, 0x2000, 0x800).holds(space) is holds


@pytest.mark.parametrize("counts", [True, False])
@pytest.mark.parametrize("check", ["current", "rest_current"])
def test_host_addresses_of_buffers_are_compared_when_the_space_has_changed(check: str, counts: bool) -> None:
    """Each time where changes are not counted."""
    space: Any = MovingSpace("bench")
    space.changes = 7 if counts else None
    dispatch = DispatchBindings(generation(9), space, {})
    dispatch.resolved.hosts = {0: HostRange(0x1000, 16, 0x1010, 0), 1: HostRange(0x5000, 64, 0x5040, 0)}
    assert getattr(dispatch, check)() and (not counts or dispatch.resolved.hosts_at == space.changes)
    space.moved = 0x100
    assert getattr(dispatch, check)() is counts, "nothing has changed as far as one can tell"
    space.changes = 8 if counts else None
    assert not getattr(dispatch, check)() and not getattr(dispatch, check)()
    dispatch.resolved.hosts[0] = HostRange(0x1000, 16, 0x1110, 0)
    assert not getattr(dispatch, check)(), "each is compared"
    dispatch.resolved.hosts[1] = HostRange(0x5000, 64, 0x5140, 0)
    assert getattr(dispatch, check)() and (not counts or dispatch.resolved.hosts_at == space.changes)


@pytest.mark.parametrize(("gen", "subtype", "registers", "header", "count"), [
    (9, "simd16", 8, 0, 3), (9, "simd8", 4, 0, 3), (9, "simd8_dual_source_high", 8, 0, 3), (7, "simd16", 8, 0, 1), (7, "simd8", 6, 1, 3),
])  # fmt: skip
def test_targets_that_were_not_prepared_are_resolved_from_a_message(gen: float, subtype: str, registers: int, header: int,
                                                                    count: int) -> None:  # fmt: skip
    """The first, or all that the draw has where a header or an extended descriptor names one; once: what is there need not be made."""
    bench = Target(gen=gen, state_of_backend=BackendState((TargetState(),) * 3))
    bound = BoundTargets(bench.dispatch)
    word = descriptors.encode("render_target_write", gen, message_subtype=subtype, binding_table_index=0, last_render_target=1,
                              message_length=registers, response_length=0, header_present=header)  # fmt: skip
    found = descriptors.named(RENDER_CACHE, word, gen)
    assert bound.resolve(found) and not bound.resolve(found)
    assert [any(record.functions) for record in bound.records[0]] == [True] * count + [False] * (TARGETS - count)


@pytest.mark.parametrize("header", [0, 1])
@pytest.mark.parametrize(("precision", "registers", "fewest"), [("single", 8, 0), ("single", 10, 2), ("single", 12, 4), ("half", 4, 0),
                                                                 ("half", 6, 2), ("half", 8, 4), ("half", 9, 5)])  # fmt: skip
def test_variants_that_a_message_may_have_are_resolved(precision: str, registers: int, fewest: int, header: int) -> None:
    """By the registers of its first payload after the header: colours are eight, or four of half floats; alpha two, or one; depth two, an
    output mask one: together at least what colours leave (`fewest`)."""
    alphas = 2 if precision == "single" else 1
    parts = [(alpha, depth, omask) for alpha in (False, True) for depth in (False, True) for omask in (False, True)
             if alphas * alpha + 2 * depth + omask >= fewest]  # fmt: skip
    bound = BoundTargets(Target().dispatch)
    word = descriptors.encode("render_target_write", 9, message_subtype="simd16", precision=precision, binding_table_index=0,
                              last_render_target=1, message_length=registers + 2 * header, response_length=0,
                              header_present=header)  # fmt: skip
    assert bound.resolve(descriptors.named(RENDER_CACHE, word, 9)) == bool(parts)
    found = [number for number, address in enumerate(bound.records[0][0].functions) if address] if parts else []
    assert found == sorted(Variant(16, False, alpha, depth, False, omask=omask).number for alpha, depth, omask in parts)


@pytest.mark.parametrize(("surface", "index", "filled"), [(0, 0, 0), (0, 2, 2), (1, None, 1), (1, 0, 0), (2, 1, 1), (8, None, 0),
                                                          (NULL_TARGET, None, 0)])  # fmt: skip
@pytest.mark.parametrize("variant", [Variant(8, False, False, False, False), Variant(16, False, True, True, False),
                                     Variant(16, False, False, False, False, read=True)])  # fmt: skip
def test_targets_are_prepared_by_the_names_that_code_has_for_them(variant: Variant, surface: int, index: int | None, filled: int) -> None:
    """A render target index that only the message knows is likely that of the binding table."""
    bound = BoundTargets(Target(state_of_backend=BackendState((TargetState(),) * 3)).dispatch)
    bound.prepare(frozenset({named_target(surface, variant, index), surface}))
    found = [(at, number, kind) for at, held in bound.records.items() for number, record in enumerate(held)
             for kind, address in enumerate(record.functions) if address]  # fmt: skip
    assert found == [(surface, filled, variant.number)]


def test_messages_without_a_target_to_resolve() -> None:
    """Of threads that have no pixel backend, and of forms that are not simulated."""
    bench, lengths = Target(gen=7), {"message_length": 8, "response_length": 0}
    known, unknown = (descriptors.named(RENDER_CACHE, descriptors.encode("render_target_write", 7, message_subtype=subtype, **lengths), 7)
                      for subtype in ("simd16", "simd8_image_write"))  # fmt: skip
    bare = BoundTargets(DispatchBindings(generation(7), bench.space, {"surface": BASE}, TABLE))
    assert not bare.resolve(known) and not bare.records and not bare.fields()["targets"]
    bound = BoundTargets(bench.dispatch)
    assert not bound.resolve(unknown) and not bound.records and bound.resolve(known) and bound.fields()["targets"]


class Unprepared(Target):
    """A target whose functions compiled messages do not find."""

    def _prepare(self, twin: Compiled, sent: Sent, index: int) -> None:
        self.keep = BoundTargets(self.dispatch)
        twin.context.targets = self.keep.fields()["targets"]


def test_a_target_that_was_not_prepared_is_left_to_the_interpreter() -> None:
    bench = Unprepared()
    before = bench.data.array.copy()
    bench.write(np.zeros((16, 4), np.float32))
    assert bench.compiled == 0 and (bench.data.array != before).any()


def test_a_table_may_move_with_its_surfaces() -> None:
    """A driver writes tables and surface state anew: the same state elsewhere is the same surface, another state is not."""
    bench = Resolving()
    at = np.arange(8, dtype=np.uint32) * 4
    bench.send("untyped_surface_read", at, answer=1, simd_mode="simd8", channel_mask="r", width=8, mask=0xFF)
    dispatch, moved = bench.resolved().dispatch, TABLE + 0x100
    bench.state.array[0x400:0x440] = bench.state.array[:0x40]
    bench.put(bench.state, moved, [0x400])
    assert dispatch.follow_table(moved) and dispatch.binding_table == moved
    assert dispatch.resolved.surfaces[0][0] == BASE + 0x400
    bench.put(bench.state, moved + 0x40, [0x440])
    assert not dispatch.follow_table(moved + 0x40) and dispatch.binding_table == moved


def test_samplers_that_move_are_read_and_compared_where_they_are_now() -> None:
    """At another offset from their base, and from another base; what had been read is forgotten."""
    bench = Sampled()
    bound, space = bench.resolved(), bench.space
    held, size = bound.dispatch, bound.sampler_size
    place = BASE + bench.samplers
    words = [np.frombuffer(space.read(place, size), np.uint32).tolist(), layout("SAMPLER_STATE", bench.gen).pack(sampler_disable=1)]
    states = [np.array(each, np.uint32).tobytes() for each in words]
    assert not bound.samplers.sampling(0).disabled
    space.write(place + 0x40, states[1])
    bound.move_samplers(bench.samplers + 0x40)
    assert bound.samplers.sampling(0).disabled and held.samplers == bound.samplers.table == bench.samplers + 0x40
    assert bound.sampler_keys()[1][1] - bound.sampler_keys()[0][1] == size
    space.write(place + 0x40, states[0])
    held.bases = {**held.bases, "dynamic": BASE - 0x40}
    space.write(place, states[1])
    bound.move_samplers(bench.samplers + 0x40)
    assert bound.samplers.sampling(0).disabled and held.sampler_address(size) == place + size
