"""The front end that media and compute share: loads and their rules, interface descriptors, scratch space and local memory."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest

from softgen.bits.catalogue import layout
from softgen.bits.describe import value_name
from softgen.bits.generation import device
from softgen.errors import DecodeError
from softgen.media import checks, front_end
from softgen.media.front_end import FrontEnd
from softgen.threads.dispatcher_protocol import Dispatcher
from tests.gpgpu.job import CODE, INDIRECT, TABLE, Job, dwords, stores, vector_add
from tests.gpgpu.test_dispatch import SHOWS, groups, said, walker
from tests.gpgpu.test_walker import KERNEL, context, planned
from tests.three_d.noise import Noise, noisy

__all__ = ["groups"]  # a fixture


# -- rules ---------------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("BDW-MEDIA-04", shows="action")
def test_constants_have_room_and_begin_at_a_line() -> None:
    job = Job(SHOWS, [bytes(4)], simd=8, front={"curbe_allocation_size": 1})
    job.before = [job.pack("MEDIA_CURBE_LOAD", curbe_total_data_length=64, curbe_data_start_address=0x120)]
    assert said(job.run()) == ["constants at 0x120 should begin at a multiple of 64", "64 bytes of constants, 32 are allocated for them"]


@pytest.mark.parametrize("allocated, length, broken", [
    (None, 0, []), (None, 1, ["1 bytes of constants, 0 are allocated for them"]),
    (0, 1, ["1 bytes of constants, 0 are allocated for them"]),
    (2, 64, []), (2, 65, ["65 bytes of constants, 64 are allocated for them"])])  # fmt: skip
def test_without_media_vfe_state_there_is_no_room_for_constants(allocated: int | None, length: int, broken: list[str]) -> None:
    page, load = layout("MEDIA_VFE_STATE", 9), layout("MEDIA_CURBE_LOAD", 9)
    front = FrontEnd(None if allocated is None else page.raw(page.pack(curbe_allocation_size=allocated)))
    assert list(checks.constants(front, load.raw(load.pack(curbe_total_data_length=length, curbe_data_start_address=64)), 64)) == broken


@pytest.mark.behaviour("BDW-MEDIA-05", shows="action")
def test_descriptors_are_counted_and_not_loaded_while_old_ones_may_be_kept() -> None:
    job = Job(SHOWS, [bytes(4)], simd=8)
    load, length = (
        {"interface_descriptor_total_length": 32, "interface_descriptor_data_start_address": 0},
        "interface_descriptor_total_length",
    )
    job.after = [job.pack("MEDIA_STATE_FLUSH"), job.pack("MEDIA_INTERFACE_DESCRIPTOR_LOAD", **load), walker(job)]
    assert said(job.run()) == []
    job.after = [job.pack("MEDIA_INTERFACE_DESCRIPTOR_LOAD", **load)]
    assert said(job.run()) == ["descriptors have been used since the last MEDIA_STATE_FLUSH, and may still be kept"]
    job.after = [job.pack("MEDIA_STATE_FLUSH"), job.pack("MEDIA_INTERFACE_DESCRIPTOR_LOAD", **load | {length: 2080}),
                 job.pack("MEDIA_INTERFACE_DESCRIPTOR_LOAD", **load | {"interface_descriptor_data_start_address": 32})]  # fmt: skip
    assert said(job.run()) == ["2080 bytes are not 1 to 64 interface descriptors of 32",
                               "interface descriptors at 0x20 should begin at a multiple of 64"]  # fmt: skip


@pytest.mark.behaviour("BDW-MEDIA-05", shows="action")
@pytest.mark.covering(2)
@pytest.mark.parametrize(("length", "within"), [(0, False), (32, True), (48, False), (2048, True), (2064, False), (2080, False)])
@pytest.mark.parametrize(("start", "aligned"), [(0, True), (64, True), (96, False), (65, False)])
@pytest.mark.parametrize("used", [True, False])
def test_rules_of_a_load_of_descriptors(length: int, within: bool, start: int, aligned: bool, used: bool) -> None:
    """1 to 64 descriptors of 32 bytes that begin with a line, and none that may still be in use (BDW 22619-22694)."""
    broken = [rule.split()[0] for rule in checks.descriptor_load(FrontEnd(used=used), length, start, 64)]
    assert broken == [str(length)] * (not within) + ["interface"] * (not aligned) + ["descriptors"] * used


def test_a_stack_is_part_of_the_scratch_space() -> None:
    job = Job(SHOWS, [bytes(4)], simd=8, front={"stack_size": 3, "per_thread_scratch_space": 2})
    assert said(job.run()) == ["a stack of size 3 is part of the scratch space, whose size is 2"]


@pytest.mark.parametrize("gpu", ["ivb", "hsw", "bdw", "skl", "icl"])
def test_no_generation_remarks_a_front_end_without_a_stack(gpu: str) -> None:
    """Gen7 has no field for the size of a stack."""
    page = layout("MEDIA_VFE_STATE", device(gpu).generation.number)
    assert not list(checks.front_end(page.raw(page.pack()), 1 << 16))


def test_gen11_flushes_have_no_watermark_to_ask_for() -> None:
    job = Job(SHOWS, [bytes(4)], "icl", simd=8)
    job.before = [job.pack("MEDIA_STATE_FLUSH")]
    assert said(job.run()) == []


@pytest.mark.behaviour("BDW-MEDIA-04", "BDW-MEDIA-05", shows="action")
def test_loads_within_the_rules_are_not_remarked() -> None:
    """Constants that fill their room, and 64 descriptors; both begin at a line that is not the first."""
    job = Job(SHOWS, [bytes(4)], simd=8, front={"curbe_allocation_size": 2, "stack_size": 2, "per_thread_scratch_space": 2})
    job.before = [job.pack("MEDIA_CURBE_LOAD", curbe_total_data_length=64, curbe_data_start_address=0x140)]
    job.after = [job.pack("MEDIA_STATE_FLUSH"), job.pack("MEDIA_INTERFACE_DESCRIPTOR_LOAD", interface_descriptor_total_length=2048,
                                                         interface_descriptor_data_start_address=0x40)]  # fmt: skip
    assert said(job.run()) == []


# -- interface descriptors -----------------------------------------------------------------------------------------------


@pytest.mark.behaviour("BDW-GPGPU-07", shows="action")
def test_the_descriptor_is_chosen_by_its_number() -> None:
    job = Job(KERNEL, [])
    first, second = (dwords(*job.pack("INTERFACE_DESCRIPTOR_DATA", kernel_start_pointer=64 * n)) for n in (1, 2))
    front = FrontEnd(descriptors=first + second)
    assert front_end.descriptor(context(job).generation.number, front, 1, "GPGPU_WALKER").kernel_start_pointer == 128
    with pytest.raises(DecodeError, match="GPGPU_WALKER: interface descriptor 2 is asked for, 2 are loaded"):
        front_end.descriptor(context(job).generation.number, front, 2, "GPGPU_WALKER")


def test_a_size_that_means_nothing_is_refused() -> None:
    with pytest.raises(DecodeError, match="a size of local memory or scratch space has value 3, which means nothing"):
        planned(Job(KERNEL, [], gpu="bdw", descriptor={"shared_local_memory_size": 3}))


@pytest.mark.behaviour("KBL-GPGPU-11", shows="action")
@pytest.mark.parametrize("gpu, code, expected", [("skl", 0, 0), ("skl", 1, 1024), ("skl", 3, 4096), ("icl", 7, 65536), ("bdw", 1, 4096),
                                                 ("bdw", 16, 65536)])  # fmt: skip
def test_local_memory_sizes_are_the_generations(gpu: str, code: int, expected: int) -> None:
    assert planned(Job(KERNEL, [], gpu=gpu, descriptor={"shared_local_memory_size": code})).local_bytes == expected


@pytest.mark.behaviour("KBL-GPGPU-11", shows="layout")
@pytest.mark.parametrize("gpu", ["ivb", "hsw", "bdw", "skl", "kbl", "icl"])
def test_all_sizes_of_local_memory(gpu: str) -> None:
    page = layout("INTERFACE_DESCRIPTOR_DATA", Job("", [], gpu).gen).field("shared_local_memory_size")
    names = [name for _, name in page.type.values]
    assert names == (["0", "4k", "8k", "16k", "32k", "64k"] if gpu in ("ivb", "hsw", "bdw") else
                     ["0", "1k", "2k", "4k", "8k", "16k", "32k", "64k"])  # fmt: skip


@pytest.mark.behaviour("KBL-GPGPU-13", shows="action")
@pytest.mark.parametrize("mode", range(4))
def test_the_rounding_mode_a_thread_starts_with(mode: int) -> None:
    kernel = stores("(1|M0) r11.0<1>:ud cr0.0<0;1,0>:ud")
    control = Job(kernel, [bytes(4)], simd=8, descriptor={"rounding_mode": mode}).run().buffer(0)[0]
    assert control >> 4 & 3 == mode


@pytest.mark.behaviour("KBL-GPGPU-12", shows="action")
def test_global_barriers_cannot_be_used() -> None:
    """The bit tells the kind of a barrier, if there is one (KBL 12766-12772)."""
    with pytest.raises(DecodeError, match="global barriers cannot be used"):
        planned(Job(KERNEL, [], simd=8, descriptor={"barrier_enable": 1, "global_barrier_enable": 1}))
    assert not planned(Job(KERNEL, [], simd=8, descriptor={"global_barrier_enable": 1})).barrier


@pytest.mark.behaviour("ICL-TH-01", shows="action")
@pytest.mark.parametrize("gpu", ["bdw", "skl", "icl"])
@pytest.mark.parametrize("seed", range(4))
def test_state_that_a_kernel_has_no_use_for_makes_no_difference(gpu: str, seed: int) -> None:
    """Samplers, exceptions, the kind of a barrier that is off; of the front end, anything but the size of scratch space."""
    @dataclass
    class Noisy(Job):
        def pack(self, name: str, **values: Any) -> list[int]:
            used = ("kernel_start_pointer", "binding_table_pointer", "barrier_enable", "number_of_threads_in_gpgpu_thread_group",
                    "constant_urb_entry_read_length", "constant_urb_entry_read_offset", "cross_thread_constant_data_read_length",
                    "shared_local_memory_size", "single_program_flow", "software_exception_enable",
                    "illegal_opcode_exception_enable")  # fmt: skip
            noise: Noise = {"INTERFACE_DESCRIPTOR_DATA": used, "MEDIA_VFE_STATE": ("per_thread_scratch_space",)}
            return noisy(name, self.gen, super().pack(name, **values), noise, seed)

    found = []
    for kind in (Job, Noisy):
        plain = vector_add(gpu)
        found.append(kind(plain.kernel, plain.buffers, gpu, ends=plain.ends, shared=plain.shared, own=plain.own).run().buffer(1))
    assert found[0] == found[1] == tuple(range(1000, 1064))


@pytest.mark.parametrize("gpu, enable, pooled", [("icl", 1, True), ("icl", 0, False), ("skl", 1, False)])
def test_gen11_has_binding_tables_of_compute_in_the_pool(gpu: str, enable: int, pooled: bool, groups: Dispatcher) -> None:
    """The pool's table names the second buffer, that of the surface state base the first. A pointer into the pool counts 8 bytes."""
    table = {32: dwords(*[10] * 8, *[0] * 56, 64, *[0] * 7), TABLE: dwords(*[10] * 8)}  # pointer: constants, where the pool begins
    pointer = 32 if pooled else TABLE
    job = Job(SHOWS, [bytes(16), bytes(16)], gpu, simd=8, shared=table[pointer], descriptor={"binding_table_pointer": pointer})
    pool = {"binding_table_pool_base_address": INDIRECT, "binding_table_pool_enable": enable, "binding_table_pool_buffer_size": 1}
    job.before = [job.pack("3DSTATE_BINDING_TABLE_POOL_ALLOC", **pool)]
    ran = job.run(groups=groups)
    assert (ran.buffer(0)[0], ran.buffer(1)[0]) == ((0, 10) if pooled else (10, 0))


def test_a_header_gets_another_binding_table_and_keeps_the_rest() -> None:
    page = layout("GPGPU_THREAD_HEADER", 9)
    held = page.pack(binding_table_pointer=0x7E0, sampler_state_pointer=0x5540, per_thread_scratch_space=3, thread_group_id_x=9)
    for table in (0x820, 0x1_0000_0820, -0x1000):  # a pool of tables may be below the surface state base, or far above
        expected = page.pack(**{**page.raw(held)._asdict(), "binding_table_pointer": table & 0xFFFFFFFF})
        assert front_end.with_table(9, "GPGPU_THREAD_HEADER", dwords(*held), table) == dwords(*expected)


def test_dynamic_state_beyond_the_last_address_begins_at_the_first() -> None:
    space = Job(KERNEL, []).memory()
    cs: Any = SimpleNamespace(space=space, bases={"dynamic": 0xFFFF_FFFF_F000})
    for offset in (CODE, CODE + 1):
        assert front_end.dynamic(cs, 0x1000 + offset, 31) == space.read(offset, 31) != bytes(31)


# -- scratch space -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gpu, code, size", [("bdw", 0, 1 << 10), ("skl", 3, 8 << 10), ("icl", 11, 2 << 20), ("kbl", 1, 2 << 10)])
def test_each_thread_has_scratch_space_of_its_own(gpu: str, code: int, size: int, groups: Dispatcher) -> None:
    kernel = SHOWS.replace("r0.1<0;1,0>:ud 2:w", "r5.0<0;1,0>:ud 2:w").replace("r1.0<8;8,1>", "r0.5<0;1,0>")
    kernel = kernel.replace("(W)  shl", "(W)  and (1|M0) r5.0<1>:ud r0.5<0;1,0>:ud 0x3FF:ud\n(W)  shl")
    front = {"scratch_space_base_pointer": 0x8000, "per_thread_scratch_space": code}
    found = Job(kernel, [bytes(16)], gpu, simd=8, shape=(4, 1, 1), front=front).run(groups=groups).buffer(0)
    assert found == tuple(0x8000 + number * size + number for number in range(4))


@pytest.mark.parametrize("code", [None, 0, 3])
def test_headers_have_the_scratch_size_of_the_front_end_state(code: int | None) -> None:
    """Without MEDIA_VFE_STATE there is no scratch space: size and offset are 0."""
    job, page, header = Job(KERNEL, []), layout("MEDIA_VFE_STATE", 9), layout("GPGPU_THREAD_HEADER", 9)
    state = None if code is None else page.raw(page.pack(per_thread_scratch_space=code, scratch_space_base_pointer=0x8000))
    front = FrontEnd(state, descriptors=job.dynamic()[:32])
    fields = front_end.dispatch_fields(context(job), front, front_end.descriptor(9, front, 0, ""))
    made = front_end.thread_header(context(job), "GPGPU_THREAD_HEADER", fields, front)
    assert header.raw(struct.unpack("<8I", made.data)).per_thread_scratch_space == (code or 0)
    assert [(slot.offset, slot.base, slot.step) for slot in made.slots] == [
        (20, 0, 1), (20, *((0, 0) if code is None else (0x8000, 1024 << code)))]  # fmt: skip


@pytest.mark.parametrize("page, gen, field, slot", [
    ("GPGPU_THREAD_HEADER", 9, "fixed_function_thread_id", (20, 0x3FF, 3, 1)),
    ("GPGPU_THREAD_HEADER", 9, "scratch_space_offset", (20, 0xFFFF_FC00, 3, 1)),
    ("EU_STATE_REGISTER", 7, "fixed_function_thread_id", (4, 0xFF00_0000, 3 << 24, 1 << 24))])  # fmt: skip
def test_addresses_stand_in_place_and_numbers_at_the_lowest_bit_of_their_field(
        page: str, gen: float, field: str, slot: tuple[int, ...]) -> None:  # fmt: skip
    """Byte of the dword, mask in it, base and step."""
    found = front_end.slot_field(gen, page, field, 3, 1)
    assert (found.offset, found.mask, found.base, found.step) == slot


@pytest.mark.parametrize("most, groups", [(1, 1), (7, 2), (8, 2), (11, 3)])
def test_as_many_groups_run_at_once_as_there_is_scratch_space_for(most: int, groups: int) -> None:
    """Threads are counted from 0: a number of 7 means 8 threads, which are two groups of four."""
    job, page = Job(KERNEL, [], shape=(4, 1, 1)), layout("MEDIA_VFE_STATE", 9)
    state = page.raw(page.pack(per_thread_scratch_space=1, maximum_number_of_threads=most))
    found = front_end.descriptor(9, FrontEnd(descriptors=job.dynamic()[:32]), 0, "")
    fields = front_end.dispatch_fields(context(job), FrontEnd(state), found)
    plan = replace(planned(job), **fields)
    assert plan.concurrent_groups == groups


@pytest.mark.parametrize("gpu, code, expected", [("ivb", 1, 1024 * 2), ("hsw", 1, 1024 * 4), ("bdw", 1, 1024 * 2), ("icl", 11, 2 << 20)])
def test_scratch_sizes_are_the_generations(gpu: str, code: int, expected: int) -> None:
    gen = device(gpu).generation.number
    table = layout("MEDIA_VFE_STATE", gen)
    state = table.raw(table.pack(per_thread_scratch_space=code))
    assert front_end.kibibytes(value_name(table, state, "per_thread_scratch_space")) == expected
