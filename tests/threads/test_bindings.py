"""Bindings are kept from dispatch to dispatch until something they depend on changes."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from softgen.device.gpu import GpuDevice
from softgen.errors import GpuFault
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.shared_functions.bound_surfaces import BoundSurfaces, SurfaceName
from softgen.shared_functions.dataport.surface import Surfaces
from softgen.shared_functions.sampler.state import Samplers
from softgen.threads.bindings import BindingCache, BoundUnits
from softgen.threads.dispatch import DispatchContext, ThreadDispatch
from softgen.threads.dispatcher import EngineDispatcher
from softgen.threads.programs import load
from softgen.threads.workers.shared import SharedDispatch
from softgen.trace.work import Work
from tests.gpgpu.engines import Choice, Recording, engines
from tests.gpgpu.job import ADD, BATCH, DYNAMIC, PAGE, SURFACES, TABLE, Job, dwords, vector_add

BASE_ADDRESS = 8 * 4  # of RENDER_SURFACE_STATE


@pytest.fixture
def resolved(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Indices that were resolved, one after another."""
    seen: list[int] = []
    resolve = BoundSurfaces.resolve_buffer
    monkeypatch.setattr(BoundSurfaces, "resolve_buffer", lambda self, name: (seen.append(name.number), resolve(self, name))[1])
    yield seen


def recorded(job: Job) -> tuple[DispatchContext, ThreadDispatch]:
    recorder = Recording()
    job.run(groups=recorder)
    return recorder.seen[0]


def test_dispatches_of_a_batch_share_bindings(resolved: list[int]) -> None:
    job = vector_add("skl")
    context, dispatch = recorded(job)
    dispatcher = EngineDispatcher("t1", 1)
    for _ in range(3):
        list(dispatcher.run(context, dispatch))
    assert sorted(resolved) == [0, 1]


@pytest.mark.parametrize("bit", ["state_cache_invalidation_enable", "texture_cache_invalidation_enable", "tlb_invalidate", ""])
def test_flushes_keep_bindings_that_still_hold(bit: str, resolved: list[int]) -> None:
    """Two walkers with a PIPE_CONTROL between them."""
    job = vector_add("skl")
    batch = job.batch()
    page = job.pack("GPGPU_WALKER")[0].to_bytes(4, "little")
    at = batch.index(page)
    walker = [int.from_bytes(batch[at + 4 * n : at + 4 * n + 4], "little") for n in range(len(job.pack("GPGPU_WALKER")))]
    job.before = [walker, job.pack("PIPE_CONTROL", **({bit: 1} if bit else {}))]
    assert job.run(groups=EngineDispatcher("t1", 1)).buffer(1) == tuple(range(1000, 1064))
    assert sorted(resolved) == [0, 1]


def test_bindings_that_still_hold_outlive_a_batch(resolved: list[int]) -> None:
    job = vector_add("skl")
    gpu, space = GpuDevice(job.device, dispatcher=EngineDispatcher("t1", 1)), job.memory()
    for _ in range(2):
        gpu.execute(Work("render", space, BATCH))
    assert sorted(resolved) == [0, 1]


# -- what entries depend on --------------------------------------------------------------------------------------------


def bound(units: BoundUnits) -> BoundSurfaces:
    return units.dispatch.state(BoundSurfaces)


class Kept:
    """Bound units with both surfaces resolved, in a cache."""

    def __init__(self) -> None:
        self.context, self.dispatch = recorded(vector_add("skl"))
        self.cache = BindingCache()
        self.table = self.find()
        assert self.surfaces.resolve_buffer(SurfaceName(0)) and self.surfaces.resolve_buffer(SurfaceName(1))

    @property
    def surfaces(self) -> BoundSurfaces:
        return bound(self.table)

    @property
    def space(self) -> AddressSpace:
        assert isinstance(self.context.space, AddressSpace)
        return self.context.space

    def find(self, **changes: int) -> BoundUnits:
        _ = self.context.space.table
        return self.cache.find(self.context, replace(self.dispatch, **changes) if changes else self.dispatch)  # type: ignore[arg-type]


@pytest.mark.parametrize(("groups", "threads", "joint", "hurry"), [
    (1, 1, False, False), (1, 1, True, True), (8191, 1, False, False), (1024, 8, False, True), (8192, 1, False, True)])  # fmt: skip
def test_many_threads_or_a_translated_kernel_are_in_a_hurry(groups: int, threads: int, joint: bool, hurry: bool,
                                                            monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    """Functions for their messages are compiled before; once for each function of a kernel."""
    seen, found = list[object](), SimpleNamespace(indices=frozenset({1}), joint=joint)
    monkeypatch.setattr(BoundUnits, "prepare", lambda self, indices, hurry: seen.append((indices, hurry)))
    context, dispatch = recorded(vector_add("skl"))
    engine: Any = SimpleNamespace(function=lambda *key: found)
    shared = SharedDispatch(context, replace(dispatch, groups=groups, threads=threads), load(context, dispatch), engine)
    assert shared.function(0) is shared.function(0) is found and seen == [({1}, hurry)]


def test_a_table_that_nothing_changed_is_found_again() -> None:
    kept = Kept()
    kept.space.write(vector_add("skl").address(0), b"data")  # what is in buffers does not matter
    assert kept.find() is kept.table


@pytest.mark.parametrize("address, data", [(SURFACES + TABLE, dwords(64)), (SURFACES + 64 + 8, dwords(0)), (SURFACES, dwords(0))])
def test_state_that_was_rewritten_in_place_is_read_again(address: int, data: bytes) -> None:
    kept = Kept()
    old = kept.space.read(address, 4)
    assert old != data, "the change must be one"
    kept.space.write(address, data)
    assert kept.find() is not kept.table
    assert kept.surfaces.bindings.surfaces[1].size  # the old one is as it was, for those that still use it


def test_a_table_elsewhere_is_another() -> None:
    kept = Kept()
    assert kept.find(binding_table=TABLE + 64) is not kept.table
    assert kept.find(samplers=64) is not kept.table
    kept.context = replace(kept.context, bases={**kept.context.bases, "surface": 0})
    assert kept.find() is not kept.table


def test_another_address_space_has_other_tables() -> None:
    kept = Kept()
    kept.context = replace(kept.context, space=vector_add("skl").memory())
    other = kept.find()
    assert other is not kept.table and not bound(other).known


def test_state_that_is_gone_drops_the_table() -> None:
    kept = Kept()
    kept.space.unmap(SURFACES, PAGE)
    assert kept.find() is not kept.table


def test_buffers_may_move_to_other_pages() -> None:
    """Compiled code reaches pages through the arena, whose addresses stay."""
    kept, address = Kept(), vector_add("skl").address(0)
    kept.space.unmap(address, PAGE)
    kept.space.map(address, MemfdBuffer(PAGE, "new"))
    again = kept.find()
    assert bound(again).bindings.surfaces[0].host == kept.space.contiguous(address, 256)


def test_a_buffer_that_is_mapped_otherwise_drops_the_table() -> None:
    """Compiled code counts on the bytes that were mapped for certain, wherever the host has them."""
    kept, address = Kept(), vector_add("skl").address(0)
    entry = bound(kept.table).bindings.surfaces[0]
    assert entry.mapped == entry.size > 0
    kept.space.unmap(address, PAGE)
    assert kept.space.contiguous(address, entry.size) == entry.host and kept.find() is not kept.table


@pytest.mark.parametrize("engine", ["t0", "t1"])
def test_a_buffer_that_is_gone_while_its_kernel_runs(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was mapped for certain: no note says which instruction faults, but the thread is named, and the address."""
    context, dispatch = recorded(vector_add("skl"))
    address = vector_add("skl").address(0)
    context.space.unmap(address, PAGE)  # type: ignore[attr-defined]
    monkeypatch.setattr(type(context.space), "mapped", lambda space, address, limit: limit)
    with pytest.raises(GpuFault, match=rf"^read at {address:#x} in job by thread 0 of group \(0, 0, 0\), .*: not mapped"):
        list(EngineDispatcher(engine, 1).run(context, dispatch))


def test_state_that_cannot_be_read_is_not_kept() -> None:
    kept = Kept()
    assert not kept.surfaces.resolve_buffer(SurfaceName(200_000 // 4))  # an entry of the table that is not mapped
    assert kept.find() is not kept.table


@pytest.mark.parametrize("others, found", [(15, True), (16, False)])
def test_sixteen_tables_are_kept(others: int, found: bool) -> None:
    """Those that were used last."""
    kept = Kept()
    for number in range(others):
        kept.find(samplers=32 * (number + 1))
    assert (kept.find() is kept.table) is found


def test_a_table_that_is_found_is_the_last_that_was_used() -> None:
    kept = Kept()
    for number in range(30):
        kept.find(samplers=32 * (number + 1))
        assert kept.find() is kept.table


# -- what is elsewhere now -------------------------------------------------------------------------------------------------

MOVED = 0x100  # bytes by which base addresses move
ELSEWHERE = {"table": 0x900, "samplers": 0x80}


class Moved(Kept):
    """The same, after what units have read, and with another table, another surface and another sampler elsewhere in the same pages."""

    def __init__(self) -> None:
        super().__init__()
        self.read_surfaces, self.read_samplers = self.table.dispatch.state(Surfaces.of), self.table.dispatch.state(Samplers.of)
        assert self.read() == (vector_add("skl").address(0), False)
        for base in (0, MOVED):
            state = bytearray(self.space.read(SURFACES, 64))
            state[BASE_ADDRESS : BASE_ADDRESS + 4] = dwords(0x7000 + base)
            self.space.write(SURFACES + base + ELSEWHERE["table"], dwords(0xC00))
            self.space.write(SURFACES + base + 0xC00, bytes(state))
            self.space.write(DYNAMIC + base + ELSEWHERE["samplers"], dwords(0x8000_0000 if base else 0))  # sampler_disable

    def read(self) -> tuple[int, bool]:
        return self.read_surfaces.bound(0).base, self.read_samplers.sampling(0).disabled


def test_a_table_that_moves_leads_to_its_surfaces() -> None:
    moved = Moved()
    moved.table.move_table(ELSEWHERE["table"])
    assert moved.read() == (0x7000, False) and moved.table.dispatch.binding_table == ELSEWHERE["table"]
    bases = moved.context.bases
    assert not moved.table.in_place(bases, moved.dispatch)
    assert moved.table.in_place(bases, replace(moved.dispatch, binding_table=ELSEWHERE["table"]))


def test_samplers_that_move_are_read_there() -> None:
    """And messages that name them by their offset are known by it."""
    moved, before = Moved(), Moved().table.sampler_keys()
    moved.table.move_samplers(MOVED + ELSEWHERE["samplers"])
    assert moved.read() == (vector_add("skl").address(0), True) and moved.table.dispatch.samplers == MOVED + ELSEWHERE["samplers"]
    assert [value - old for (_, value), (_, old) in zip(moved.table.sampler_keys(), before, strict=True)] == [0x180] * len(before)
    bases = moved.context.bases
    assert not moved.table.in_place(bases, moved.dispatch) and moved.table.in_place(bases, replace(moved.dispatch, samplers=0x180))
    assert not moved.table.in_place({**bases, "dynamic": 0x40}, replace(moved.dispatch, samplers=0x180)), "another base"


def test_base_addresses_that_move_take_tables_and_samplers_with_them() -> None:
    moved = Moved()
    bases = {name: at + MOVED for name, at in moved.context.bases.items()}
    moved.table.move(bases, ELSEWHERE["table"], ELSEWHERE["samplers"])
    held = moved.table.dispatch
    assert moved.read() == (0x7000 + MOVED, True) and held.bases == bases
    assert (held.binding_table, held.samplers, held.sampler_address(16)) == (0x900, 0x80, DYNAMIC + MOVED + 0x80 + 16)


# -- what only the interpreter has used --------------------------------------------------------------------------------

INDIRECT = "(W)  mov (1|M0)  a0.0<1>:ud 0x04205E00:ud" + ADD.replace("0xC 0x04205E00", "0xC a0.0")


@pytest.mark.parametrize("choice", engines(), ids=str)
@pytest.mark.parametrize("kernel", [ADD, INDIRECT], ids=["direct", "indirect"])
def test_a_batch_rewrites_the_surface_of_its_next_dispatch(kernel: str, choice: Choice) -> None:
    """The descriptor of an indirect message is in a0: its surface is resolved when it is sent."""
    job = vector_add("skl")
    job = replace(job, kernel=kernel, buffers=[*job.buffers, dwords(*range(5000, 5064))])
    at = job.batch().index(dwords(job.pack("GPGPU_WALKER")[0]))
    walker = list(struct.unpack_from(f"<{len(job.pack('GPGPU_WALKER'))}I", job.batch(), at))
    store = job.pack("MI_STORE_DATA_IMM", address=SURFACES + BASE_ADDRESS, immediate_data=job.address(2))
    job.after = [store, walker]
    assert job.run(groups=choice.groups()).buffer(1) == tuple(range(6000, 6064))


def test_surfaces_and_samplers_that_no_entry_depends_on_are_read_again() -> None:
    kept = Kept()
    table = kept.find(samplers=64)
    surfaces, samplers = table.dispatch.state(Surfaces.of), table.dispatch.state(Samplers.of)
    before = surfaces.bound(0).base, samplers.sampling(0).disabled
    kept.space.write(SURFACES + BASE_ADDRESS, dwords(0x7000))
    kept.space.write(DYNAMIC + 64, dwords(0x8000_0000))  # sampler_disable
    table = kept.find(samplers=64)
    surfaces, samplers = table.dispatch.state(Surfaces.of), table.dispatch.state(Samplers.of)
    assert before == (vector_add("skl").address(0), False)
    assert (surfaces.bound(0).base, samplers.sampling(0).disabled) == (0x7000, True)


def test_another_instruction_base_is_another_table() -> None:
    """Messages that describe a surface answer with the base."""
    kept = Kept()
    kept.context = replace(kept.context, bases={**kept.context.bases, "instruction": 0x9000})
    assert kept.find().dispatch.bases["instruction"] == 0x9000
