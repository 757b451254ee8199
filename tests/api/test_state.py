"""State and commands of a dispatch: what their fields say, and the memory that they need."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np
import pytest

import softgen
from softgen.api.state import Dispatch, Packer
from softgen.bits.catalogue import layout
from softgen.bits.generation import device
from softgen.bits.record import Record

GPUS = ("ivb", "hsw", "bdw", "kbl", "icl")
END = "(W) mov (8|M0) r127.0<1>:ud r0.0<8;8,1>:ud\n(W) send (8|M0) null r127 0x27 0x02000010 {EOT}"


@pytest.fixture(params=GPUS)
def packer(request: pytest.FixtureRequest) -> Iterator[Packer]:
    yield Packer(device(request.param))


def fields(packer: Packer, name: str, data: bytes) -> Record:
    found = layout(name, packer.gen)
    return found.unpack(struct.unpack(f"<{found.dwords}I", data[: 4 * found.dwords]))


@pytest.mark.parametrize("size", [1, 128, 300, 1 << 20, (1 << 21) + 5, 1 << 26])
def test_the_size_of_a_buffer_is_spread_over_three_fields(packer: Packer, size: int) -> None:
    """Its last byte's number: 7 bits in the width, 14 in the height, the rest in the depth."""
    state = fields(packer, "RENDER_SURFACE_STATE", packer.raw(0x10_0000, size))
    assert state.width | state.height << 7 | state.depth << 21 == size - 1
    assert (state.surface_type, state.surface_format, state.surface_base_address) == (4, 0x1FF, 0x10_0000)


@pytest.mark.parametrize("size, last", [(0, 0), (1, 0), (2, 1), (100, 99)])
def test_a_buffer_of_nothing_is_a_surface_of_one_byte(packer: Packer, size: int, last: int) -> None:
    with softgen.Gpu(packer.device.name) as gpu:
        assert fields(packer, "RENDER_SURFACE_STATE", packer.surface(gpu.empty(size, np.uint8))).width == last


@pytest.mark.parametrize("shape, layered, last", [((4, 5, 4), False, 0), ((3, 4, 5, 4), False, 2), ((3, 4, 5, 4), True, 2)])
def test_an_image_has_its_slices_in_two_fields(packer: Packer, shape: tuple[int, ...], layered: bool, last: int) -> None:
    with softgen.Gpu(packer.device.name) as gpu:
        state = fields(packer, "RENDER_SURFACE_STATE", packer.surface(gpu.image(np.zeros(shape, np.uint8), layered=layered)))
    assert (state.depth, state.render_target_view_extent) == (last, last)


@pytest.mark.parametrize("shape, layered, type, array", [((6, 5), False, 1, 0), ((3, 6, 5), True, 1, 1), ((3, 6, 5), False, 2, 0)])
def test_the_surface_state_of_an_image(packer: Packer, shape: tuple[int, ...], layered: bool, type: int, array: int) -> None:
    """Surface types are 1 (2D) and 2 (3D); sizes are stored less one, rows are 64 bytes and slices 8 rows apart."""
    with softgen.Gpu(packer.device.name) as gpu:
        image = gpu.image(np.zeros(shape, np.float32), layered=layered)
        state = fields(packer, "RENDER_SURFACE_STATE", packer.surface(image))
    assert (state.surface_type, state.surface_format, state.surface_array) == (type, 0xD8, array)  # R32_FLOAT
    assert (state.width, state.height, state.surface_pitch) == (4, 5, 63) and state.surface_base_address == image.address
    qpitch = 2 if len(shape) > 2 else 0  # in fours of rows, from Gen8 on; before that slices are as close as alignment lets them
    assert getattr(state, "surface_qpitch", qpitch) == qpitch and getattr(state, "surface_array_spacing", 1) == 1
    assert state.surface_vertical_alignment == 1 and state.surface_horizontal_alignment == (0 if packer.gen < 8 else 1)  # 4 and 4


def test_the_null_surface(packer: Packer) -> None:
    assert fields(packer, "RENDER_SURFACE_STATE", packer.surface(None)).surface_type == 7


@pytest.mark.parametrize("gpu", ["hsw", "bdw", "kbl", "icl"])
def test_channels_of_an_image_are_selected_in_their_order(gpu: str) -> None:
    """Shader Channel Select: 4 to 7 are red, green, blue and alpha; Ivy Bridge has no such fields."""
    packer = Packer(device(gpu))
    with softgen.Gpu(gpu) as made:
        state = fields(packer, "RENDER_SURFACE_STATE", packer.surface(made.image(np.zeros((4, 5), np.uint8))))
    assert [getattr(state, f"shader_channel_select_{name}") for name in ("red", "green", "blue", "alpha")] == [4, 5, 6, 7]


@pytest.mark.parametrize("group, enabled", [(1, 0), (2, 1), (8, 1)])
def test_groups_of_several_threads_have_a_barrier(group: int, enabled: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[bytes] = []
    with softgen.Gpu("kbl", engine="reference", threads=1) as gpu:
        packed = gpu._packer.descriptor
        monkeypatch.setattr(gpu._packer, "descriptor", lambda dispatch: made.append(packed(dispatch)) or made[-1])
        gpu.execute(softgen.assemble(END, "kbl"), threads=8, group=group)
        state = fields(gpu._packer, "INTERFACE_DESCRIPTOR_DATA", made[0])
    assert (state.barrier_enable, state.number_of_threads_in_gpgpu_thread_group) == (enabled, group)


@pytest.mark.parametrize("payload, registers", [(0, 0), (1, 2), (64, 2), (65, 4)])
def test_the_curbe_has_room_for_the_payload(payload: int, registers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[bytes] = []
    with softgen.Gpu("kbl", engine="reference", threads=1) as gpu:
        packed = gpu._packer.front_end
        monkeypatch.setattr(gpu._packer, "front_end", lambda *sizes: made.append(packed(*sizes)) or made[-1])
        gpu.execute(softgen.assemble(END, "kbl"), threads=2, payload=np.zeros(payload, np.uint8))
        assert fields(gpu._packer, "MEDIA_VFE_STATE", made[0]).curbe_allocation_size == registers


def test_the_pipeline_is_selected_whatever_was_before(packer: Packer) -> None:
    """From Gen9 on only the bits change whose mask bits are set."""
    select = fields(packer, "PIPELINE_SELECT", packer.bases(0, 0, 0, 0, 0))
    assert select.pipeline_selection == 2 and getattr(select, "mask_bits", 3) == 3


@pytest.mark.parametrize("gpu", ["bdw", "kbl", "icl"])
def test_state_may_be_anywhere_from_its_base_on(gpu: str) -> None:
    """Sizes are in pages: 4 GiB."""
    packer = Packer(device(gpu))
    bases = fields(packer, "STATE_BASE_ADDRESS", packer.bases(0, 0, 0, 0, 0)[4 * layout("PIPELINE_SELECT", packer.gen).dwords :])
    for name in ("general_state", "dynamic_state", "indirect_object", "instruction"):
        assert (getattr(bases, f"{name}_buffer_size"), getattr(bases, f"{name}_buffer_size_modify_enable")) == (0xFFFFF, 1)


def test_the_front_end_may_use_all_threads() -> None:
    packer = Packer(device("kbl"))
    state = fields(packer, "MEDIA_VFE_STATE", packer.front_end(0, 0))
    assert state.maximum_number_of_threads == 56 * 3 - 1


@pytest.mark.parametrize("constant_bytes, registers", [(0, 0), (1, 2), (64, 2), (65, 4), (256, 8)])
def test_constants_have_an_even_number_of_registers_beside_two_entries(packer: Packer, constant_bytes: int, registers: int) -> None:
    state = fields(packer, "MEDIA_VFE_STATE", packer.front_end(0, constant_bytes))
    assert (state.curbe_allocation_size, state.number_of_urb_entries, state.urb_entry_allocation_size) == (registers, 2, 2)


def test_a_batch_ends_with_a_whole_qword(packer: Packer) -> None:
    assert packer.end() == struct.pack("<2I", 0x05000000, 0)


@pytest.mark.parametrize("samplers, expected", [(0, 0), (1, 1), (4, 1), (5, 2), (13, 4), (16, 4), (40, 4)])
def test_samplers_are_counted_in_fours(packer: Packer, samplers: int, expected: int) -> None:
    dispatch = Dispatch(16, 1, (1, 1, 1), sampler_count=samplers)
    assert fields(packer, "INTERFACE_DESCRIPTOR_DATA", packer.descriptor(dispatch)).sampler_count == expected


def test_a_dispatch_that_says_nothing_more_has_no_payload_and_no_samplers(packer: Packer) -> None:
    state = fields(packer, "INTERFACE_DESCRIPTOR_DATA", packer.descriptor(Dispatch(16, 1, (1, 1, 1))))
    assert (state.constant_urb_entry_read_length, state.sampler_count, state.sampler_state_pointer, state.binding_table_pointer) == (0,) * 4
    assert (state.barrier_enable, state.shared_local_memory_size) == (0, 0)
    load = fields(packer, "MEDIA_INTERFACE_DESCRIPTOR_LOAD", packer.dispatch(Dispatch(16, 1, (1, 1, 1)))[:16])
    assert (load.interface_descriptor_total_length, load.interface_descriptor_data_start_address) == (32, 0), "one descriptor, the first"
    walker = fields(packer, "GPGPU_WALKER", packer.walker(Dispatch(16, 1, (1, 1, 1))))
    assert (walker.right_execution_mask, walker.bottom_execution_mask) == (0xFFFFFFFF, 0xFFFFFFFF), "all channels run"
    assert (walker.thread_group_id_starting_x, walker.thread_group_id_starting_y, walker.thread_group_id_starting_resume_z) == (0, 0, 0)


@pytest.mark.parametrize("simd, size", [(8, 0), (16, 1), (32, 2)])
def test_a_walker_has_the_width_of_its_kernel(packer: Packer, simd: int, size: int) -> None:
    assert fields(packer, "GPGPU_WALKER", packer.walker(Dispatch(simd, 1, (1, 1, 1)))).simd_size == size


@pytest.mark.parametrize("gpu, size, expected", [
    ("kbl", 0, 0), ("kbl", 1, 1), ("kbl", 1024, 1), ("kbl", 1025, 2), ("kbl", 65536, 7), ("ivb", 1024, 1), ("ivb", 4097, 2),
])  # fmt: skip
def test_local_memory_has_the_smallest_size_that_is_enough(gpu: str, size: int, expected: int) -> None:
    packer = Packer(device(gpu))
    assert packer.smallest("INTERFACE_DESCRIPTOR_DATA", "shared_local_memory_size", size) == expected
    with pytest.raises(softgen.UsageError, match="at most 65,536"):
        packer.smallest("INTERFACE_DESCRIPTOR_DATA", "shared_local_memory_size", 65537)


# -- binding tables ----------------------------------------------------------------------------------------------------


def test_a_binding_table_has_256_entries() -> None:
    with softgen.Gpu("kbl", engine="reference", threads=1) as gpu:
        code, buffer = softgen.assemble(END, "kbl"), gpu.empty(4)
        assert gpu.execute(code, surfaces=[buffer] * 256).threads == 1
        with pytest.raises(softgen.UsageError, match="a binding table has at most 256 entries"):
            gpu.execute(code, surfaces=[buffer] * 257)


@pytest.mark.parametrize("places", [(), (0,), (2,), (3, 1)])
def test_entries_of_a_binding_table_lead_to_surfaces_or_the_null_surface(places: tuple[int, ...]) -> None:
    with softgen.Gpu("kbl", engine="reference", threads=1) as gpu:
        packer, buffers = gpu._packer, [gpu.empty(number + 1, np.uint8) for number in range(4)]
        dispatch = Dispatch(16, 1, (1, 1, 1))
        prepared = gpu._prepare(softgen.assemble(END, "kbl"), dispatch, {at: packer.surface(buffers[at]) for at in places}, [])
        surfaces = prepared.memory[0].store.view[4096:8192]  # the second of three parts, each whole pages; the first is a descriptor
        for at in range(max(places, default=0) + 1):
            entry = int.from_bytes(surfaces[dispatch.binding_table + 4 * at :][:4], "little")
            assert bytes(surfaces[entry : entry + 64]) == packer.surface(buffers[at] if at in places else None), at


def test_base_addresses_lead_to_the_three_parts_of_state() -> None:
    """Dynamic state, surface state and the payload that a walker fetches are of 2, 3 and 4 pages here, one after another."""
    with softgen.Gpu("kbl", engine="reference", threads=1) as gpu:
        samplers, table = [number.to_bytes(16, "little") for number in range(300)], dict.fromkeys(range(140), gpu._packer.surface(None))
        fetched, dispatch = bytes(range(256)) * 64, Dispatch(16, 1, (1, 1, 1))
        prepared = gpu._prepare(softgen.assemble(END, "kbl"), dispatch, table, samplers, fetched)
        assert (prepared.groups, prepared.batch) == (1, prepared.memory[0].address + 9 * 4096)
        command = prepared.batch + 4 * layout("PIPELINE_SELECT", 9.0).dwords
        bases = fields(gpu._packer, "STATE_BASE_ADDRESS", gpu._heap.space.read(command, 4 * layout("STATE_BASE_ADDRESS", 9.0).dwords))
        found = [bases.dynamic_state_base_address, bases.surface_state_base_address, bases.indirect_object_base_address]
        assert found == [prepared.memory[0].address + pages * 4096 for pages in (0, 2, 5)]
        assert gpu._heap.space.read(found[0] + dispatch.samplers, 16 * 300) == b"".join(samplers)
        assert gpu._heap.space.read(found[0] + dispatch.descriptor, 32) == gpu._packer.descriptor(dispatch)
        assert gpu._heap.space.read(found[1], 140 * 64) == gpu._packer.surface(None) * 140
        assert gpu._heap.space.read(found[2], len(fetched)) == fetched and dispatch.indirect == (0, len(fetched))


# -- scratch space -----------------------------------------------------------------------------------------------------


def test_scratch_space_grows_with_host_threads_and_stays_for_launches_that_were_prepared() -> None:
    with softgen.Gpu("kbl", engine="t0", threads=32) as gpu:
        code = softgen.assemble(END, "kbl")
        gpu.execute(code, scratch_bytes=1024)
        first = gpu._scratch
        assert first is not None and first.store.size == 1024 * 1024
        gpu.execute(code, threads=56, group=56, scratch_bytes=1024)
        assert gpu._scratch is not None and gpu._scratch.store.size == 56 * 32 * 1024
        assert gpu._heap.maps(first)
        for scratch_bytes in (1024, 0):
            second = gpu._scratch
            gpu.execute(code, threads=56, group=56, scratch_bytes=scratch_bytes)
            assert gpu._scratch is second and gpu._heap.maps(second), "what is large enough is kept"


def test_many_walkers_in_one_batch() -> None:
    """A row of payload for each thread takes a walker each; together they are longer than a page."""
    with softgen.Gpu("kbl", engine="reference", threads=1) as gpu:
        assert gpu.execute(softgen.assemble(END, "kbl"), threads=60, payload=np.zeros((60, 8), np.int32)).threads == 60
