"""The walker: which groups run in which order, and what each thread starts with."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from softgen.bits.catalogue import layout
from softgen.errors import DecodeError, GpuFault
from softgen.gpgpu import walker
from softgen.media.front_end import FrontEnd
from softgen.threads.dispatch import DispatchContext, ThreadDispatch
from softgen.threads.payload import TemplatePayload
from tests.gpgpu.job import DYNAMIC, END, INDIRECT, Job, dwords, stores, vector_add

KERNEL = f"""
(W)  mov (8|M0) r127.0<1>:ud r0.0<8;8,1>:ud
{END}
"""
# Each thread takes a ticket, then writes group ids and its number there: 4 dwords a ticket. Surface 0 is the counter, 1 the list.
TICKETS = f"""
(W)  mov (8|M0) r127.0<1>:ud r0.0<8;8,1>:ud
(W)  mov (8|M0) r10.0<1>:ud 0x0:ud
(W)  mov (8|M0) r11.0<1>:ud 0x1:ud
(W)  send (1|M0) r12 r10 0xC 0x0410B700
(W)  shl (1|M0) r20.0<1>:ud r12.0<0;1,0>:ud 4:w
(W)  mov (1|M0) r21.0<1>:ud r0.1<0;1,0>:ud
(W)  mov (1|M0) r22.0<1>:ud r0.6<0;1,0>:ud
(W)  mov (1|M0) r23.0<1>:ud r0.7<0;1,0>:ud
(W)  and (1|M0) r24.0<1>:ud r0.5<0;1,0>:ud 0x3FF:ud
(W)  send (1|M0) null r20 0xC 0x0A026001
{END}
"""


def context(job: Job) -> DispatchContext:
    return DispatchContext(job.device.generation, job.memory(), {"indirect": 0})


def planned(job: Job, dimensions: tuple[int, int, int] | None = None) -> ThreadDispatch:
    """The dispatch that the walker makes of a job, without running it."""
    front, table = FrontEnd(None, job.constants(), job.dynamic()[:32]), layout("GPGPU_WALKER", job.gen)
    batch = struct.unpack(f"<{len(job.batch()) // 4}I", job.batch())
    header = table.pack()[0]
    at = batch.index(header)
    return walker.dispatch(context(job), front, table.raw(list(batch[at : at + table.dwords])), dimensions)


@pytest.mark.behaviour("BDW-GPGPU-01", "KBL-GPGPU-15", shows="action")
def test_groups_run_x_fastest_from_start_to_dimension() -> None:
    job = Job(TICKETS, [bytes(4), bytes(16 * 24)], simd=8, starts=(1, 0, 2), ends=(4, 2, 4))
    ran = job.run()
    found = ran.buffer(1)
    ids = [found[4 * n : 4 * n + 3] for n in range(12)]
    assert ids == [(x, y, z) for z in (2, 3) for y in (0, 1) for x in (1, 2, 3)]
    assert ran.gpu.counters.threads == 12 and ran.gpu.counters.dispatches == 1


@pytest.mark.parametrize(("starts", "ends"), [((0, 0, 0), (4, 0, 1)), ((2, 0, 0), (2, 1, 1)), ((0, 0, 3), (1, 1, 2))])
def test_a_grid_that_ends_where_it_starts_has_no_groups(starts: tuple[int, int, int], ends: tuple[int, int, int]) -> None:
    ran = Job(TICKETS, [bytes(4), bytes(64)], simd=8, starts=starts, ends=ends).run()
    assert ran.gpu.counters.threads == ran.buffer(0)[0] == 0


@pytest.mark.parametrize("indirect", [False, True])
@pytest.mark.parametrize("state", [
    {"descriptor": {"number_of_threads_in_gpgpu_thread_group": 3, "barrier_enable": 1}}, {"descriptor": {"shared_local_memory_size": 9}},
    {"descriptor": {"constant_urb_entry_read_length": 200}}, {"walker": {"simd_size": 3}}, {"walker": {"interface_descriptor_offset": 9}},
    {"front": {"per_thread_scratch_space": 15}}])  # fmt: skip
def test_state_is_not_looked_at_where_there_are_no_groups(state: dict[str, Any], indirect: bool) -> None:
    """Nor by a walker that takes its dimensions from registers, which are 0 here."""
    walker = {**state.get("walker", {}), "indirect_parameter_enable": int(indirect)}
    ends = (4, 1, 1) if indirect else (4, 0, 1)
    ran = Job(TICKETS, [bytes(4), bytes(64)], simd=8, ends=ends, **{**state, "walker": walker}).run()
    assert ran.gpu.counters.threads == ran.buffer(0)[0] == 0
    with pytest.raises(DecodeError):
        Job(TICKETS, [bytes(4), bytes(64)], simd=8, ends=(4, 1, 1), **state).run()


def test_threads_of_a_group_are_numbered() -> None:
    job = Job(TICKETS, [bytes(4), bytes(16 * 6)], simd=8, shape=(3, 2, 1))
    found = job.run().buffer(1)
    assert [found[4 * n + 3] for n in range(6)] == list(range(6))


@pytest.mark.behaviour("BDW-GPGPU-02", shows="action")
def test_a_group_size_that_differs_from_the_descriptor_is_refused() -> None:
    job = Job(KERNEL, [bytes(4)], shape=(2, 1, 1), descriptor={"number_of_threads_in_gpgpu_thread_group": 3})
    with pytest.raises(DecodeError, match=r"GPGPU_WALKER at .*2 x 1 x 1 threads in a group, its interface descriptor says 3"):
        job.run()


@pytest.mark.behaviour("BDW-GPGPU-03", "BDW-GPGPU-04", shows="action")
@pytest.mark.parametrize("simd, full", [(8, 0xFF), (16, 0xFFFF), (32, 0xFFFFFFFF)])
def test_masks_are_for_the_last_column_and_row(simd: int, full: int) -> None:
    plan = planned(Job(KERNEL, [], simd=simd, shape=(2, 2, 1), right=0x3F, bottom=0x1F))
    assert [plan.mask(number) for number in range(4)] == [full, 0x3F, 0x1F, 0x1F]


@pytest.mark.parametrize("right, bottom, full", [(0xFFFFFFFF, 0xFFFFFFFF, True), (0xFFFF, 0xFFFFFFFF, True), (0x7FFF, 0xFFFF, False),
                                                 (0xFFFF, 0xFFFE, False)])  # fmt: skip
def test_a_dispatch_with_all_channels_on_needs_no_masks(right: int, bottom: int, full: bool) -> None:
    """Compiled code for such a dispatch looks at no mask; bits beyond the channels of a thread do not count."""
    assert planned(Job(KERNEL, [], simd=16, shape=(2, 2, 1), right=right, bottom=bottom)).full is full


@pytest.mark.behaviour("BDW-GPGPU-05", shows="action")
@pytest.mark.parametrize("gpu", ["bdw", "skl", "icl"])
@pytest.mark.parametrize("sizes", [(3, 2, 1), (1, 3, 4), (4, 1, 2)])
@pytest.mark.parametrize("starts", [(0, 0, 0), (1, 0, 0)])
def test_each_dimension_comes_from_a_register_of_its_own(sizes: tuple[int, int, int], starts: tuple[int, int, int], gpu: str) -> None:
    """BDW 21331-21341: GPGPU_DISPATCHDIMX, Y and Z, whatever the command has; where groups start remains the command's."""
    job = Job(TICKETS, [bytes(4), bytes(16 * 24)], gpu, simd=8, starts=starts, ends=(9, 9, 9), walker={"indirect_parameter_enable": 1})
    pairs = [{"register_offset": 0x2500 + 4 * n, "data_dword": size} for n, size in enumerate(sizes)]
    job.before = [job.pack("MI_LOAD_REGISTER_IMM", entry=pairs)]
    found = job.run().buffer(1)
    expected = [(x, y, z) for z in range(sizes[2]) for y in range(sizes[1]) for x in range(starts[0], sizes[0])]
    assert [found[4 * n : 4 * n + 3] for n in range(len(expected))] == expected and not any(found[4 * len(expected) :])


@pytest.mark.behaviour("BDW-GPGPU-05", shows="action")
def test_dimensions_come_from_registers_where_the_command_says_so() -> None:
    job = Job(TICKETS, [bytes(4), bytes(16 * 24)], simd=8, ends=(9, 9, 9), walker={"indirect_parameter_enable": 1})
    pairs = [{"register_offset": 0x2500 + 4 * n, "data_dword": size} for n, size in enumerate((3, 2, 1))]
    job.before = [job.pack("MI_LOAD_REGISTER_IMM", entry=pairs)]
    assert job.run().gpu.counters.threads == 6


# -- payload -------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("KBL-GPGPU-10", shows="action")
@pytest.mark.parametrize("fetched", [True, False])
def test_constants_of_all_threads_and_of_each(fetched: bool) -> None:
    """Data the walker fetches puts each thread's own first; the CURBE keeps the order of memory."""
    shared, own = bytes([1]) * 64, [bytes([number]) * 32 for number in (10, 11, 12)]
    plan = planned(Job(KERNEL, [], shape=(3, 1, 1), shared=shared, own=own, fetched=fetched))
    for number in range(3):
        registers = plan.start_registers(0, number)[32:]
        assert registers == (own[number] + shared if fetched else shared + own[number])


@pytest.mark.parametrize("gpu", ["bdw", "skl", "icl"])
def test_indirect_data_is_relative_to_its_base(gpu: str) -> None:
    job = vector_add(gpu)
    job.indirect_base = INDIRECT - 0x1000
    assert job.run().buffer(1) == tuple(range(1000, 1064))


def test_the_header_says_where_a_thread_is() -> None:
    job = Job(KERNEL, [], shape=(4, 1, 1), front={"scratch_space_base_pointer": 0x8000, "per_thread_scratch_space": 1})
    front = FrontEnd(layout("MEDIA_VFE_STATE", 9).raw(job.pack("MEDIA_VFE_STATE", **job.front)), b"", job.dynamic()[:32])
    command = layout("GPGPU_WALKER", 9).raw(job.pack("GPGPU_WALKER", thread_width_counter_maximum=3))
    plan = walker.dispatch(context(job), front, command, (6, 7, 8))
    table = layout("GPGPU_THREAD_HEADER", 9)
    header = table.raw(struct.unpack("<8I", plan.start_registers(5 + 6 * (6 + 7 * 7), 3)))
    assert (header.thread_group_id_x, header.thread_group_id_y, header.thread_group_id_z) == (5, 6, 7)
    assert header.scratch_space_offset == 0x8000 + 3 * 2048 and header.per_thread_scratch_space == 1
    assert header.fixed_function_thread_id == 3
    assert header.binding_table_pointer == plan.binding_table == 0x800


def test_too_few_constants_are_refused() -> None:
    with pytest.raises(DecodeError, match="2 threads need 64 bytes of constants, the CURBE holds 32"):
        planned(Job(KERNEL, [], shape=(2, 1, 1), own=[bytes(32)], fetched=False))


def test_what_is_not_fetched_is_zero_and_told() -> None:
    job = Job(KERNEL, [], shape=(2, 1, 1), own=[b"\x07" * 32], fetched=True)
    told = [remark for remark in job.run().gpu.remarks if "constants" in remark]
    assert len(told) == 1 and told[0].endswith("2 threads need 64 bytes of constants, 32 are fetched: the rest is taken as zeros")
    payload = planned(job).payload
    assert isinstance(payload, TemplatePayload) and payload.data == b"\x07" * 32 + bytes(32)


@pytest.mark.behaviour("BDW-MEDIA-04", shows="action")
def test_the_curbe_keeps_what_was_loaded_when_it_was_loaded() -> None:
    """The batch changes the constants in memory after the load; the thread sees what was there before."""
    job = Job(stores("(8|M0) r11.0<1>:ud r1.0<8;8,1>:ud"), [bytes(4)], simd=8, shared=dwords(77, *[0] * 7), fetched=False)
    job.before = [job.pack("MI_STORE_DATA_IMM", address=DYNAMIC + 0x100, immediate_data=99)]
    assert job.run().buffer(0) == (77,)


@pytest.mark.behaviour("BDW-CS-08", shows="action")
@pytest.mark.parametrize("result", [0, 1])
def test_a_predicated_walker_runs_when_the_predicate_says_so(result: int) -> None:
    job = Job(TICKETS, [bytes(4), bytes(64)], simd=8, walker={"predicate_enable": 1})
    job.before = [job.pack("MI_LOAD_REGISTER_IMM", entry=[{"register_offset": 0x2418, "data_dword": result}])]
    job.after = [job.pack("MI_STORE_DATA_IMM", address=job.address(1) + 32, immediate_data=7)]  # what follows is executed anyway
    ran = job.run()
    assert ran.gpu.counters.threads == ran.gpu.counters.dispatches == ran.buffer(0)[0] == result and ran.buffer(1)[8] == 7


def test_a_kernel_that_is_not_there_faults() -> None:
    with pytest.raises(GpuFault, match="instruction fetch at 0x900000 in job by GPGPU_WALKER"):
        Job(KERNEL, [bytes(4)], descriptor={"kernel_start_pointer": 0x900000 - 0x40000}).run()


@pytest.mark.behaviour("KBL-GPGPU-09", shows="action")
def test_tables_are_where_the_descriptor_says_and_counts_are_hints() -> None:
    given = {"binding_table_pointer": 0x660, "sampler_state_pointer": 0x5540}
    plain = planned(Job(KERNEL, [], descriptor=given))
    hinted = planned(Job(KERNEL, [], descriptor={**given, "binding_table_entry_count": 31, "sampler_count": 4}))
    assert [(plan.binding_table, plan.samplers) for plan in (plain, hinted)] == [(0x660, 0x5540)] * 2
