"""Commands of a batch together: several walkers, constants loaded again, flushes, masks at the edges, scratch space, and broken rules."""

from __future__ import annotations

from typing import Any

import pytest

from softgen.threads.dispatcher_protocol import Dispatcher
from tests.gpgpu.engines import engines
from tests.gpgpu.job import CODE, DYNAMIC, END, INDIRECT, SURFACES, Job, Ran, dwords, vector_add

ALL = 0xFFFFFFFF
# Each thread writes dword 0 of r1 to surface 0, at its group's place.
SHOWS = f"""
(W)  mov (8|M0) r127.0<1>:ud r0.0<8;8,1>:ud
(W)  shl (8|M0) r10.0<1>:ud r0.1<0;1,0>:ud 2:w
(W)  mov (8|M0) r11.0<1>:ud r1.0<8;8,1>:ud
(W)  send (1|M0) null r10 0xC 0x04026E00
{END}
"""
# Each channel that is on writes 1 + its thread's number at its place: surface 0, 32 dwords a thread.
MARKS = f"""
(W)  mov (8|M0) r127.0<1>:ud r0.0<8;8,1>:ud
(W)  and (1|M0) r5.0<1>:ud r0.5<0;1,0>:ud 0x3FF:ud
(W)  shl (1|M0) r6.0<1>:ud r5.0<0;1,0>:ud 7:w
(W)  add (1|M0) r5.0<1>:ud r5.0<0;1,0>:ud 1:ud
(W)  mov (8|M0) r4.0<1>:uw 0x76543210:v
(W)  add (8|M0) r4.8<1>:uw r4.0<8;8,1>:uw 8:uw
(W)  add (16|M0) r7.0<1>:uw r4.0<16;16,1>:uw 16:uw
     shl (16|M0) r10.0<1>:ud r4.0<16;16,1>:uw 2:w
     shl (16|M16) r20.0<1>:ud r7.0<16;16,1>:uw 2:w
     add (16|M0) r10.0<1>:ud r10.0<8;8,1>:ud r6.0<0;1,0>:ud
     add (16|M16) r20.0<1>:ud r20.0<8;8,1>:ud r6.0<0;1,0>:ud
     mov (16|M0) r12.0<1>:ud r5.0<0;1,0>:ud
     mov (16|M16) r22.0<1>:ud r5.0<0;1,0>:ud
     send (16|M0) null:w r10 0xC 0x08025E00
     send (16|M16) null:w r20 0xC 0x08025E00
{END}
"""


@pytest.fixture(params=engines(), ids=lambda item: item.name)
def groups(request: pytest.FixtureRequest) -> Dispatcher:
    made: Dispatcher = request.param.groups()
    return made


def walker(job: Job, **values: Any) -> list[int]:
    ends = {f"thread_group_id_{axis}_dimension": 1 for axis in "xyz"}
    return job.pack("GPGPU_WALKER", **{"simd_size": 0, "right_execution_mask": 0xFF, "bottom_execution_mask": 0xFF, **ends, **values})


@pytest.mark.behaviour("BDW-MEDIA-04", shows="action")
def test_each_walker_has_the_constants_that_were_loaded_last(groups: Dispatcher) -> None:
    """The same CURBE, loaded three times in a batch; the last load begins a register later."""
    job = Job(SHOWS, [bytes(16)], simd=8, shared=dwords(*[10] * 8), fetched=False, front={"curbe_allocation_size": 2})
    job.starts_threads = []
    for number, value in enumerate((10, 20, 30)):
        job.starts_threads += [
            job.pack("MI_STORE_DATA_IMM", address=DYNAMIC + 0x100, immediate_data=value),
            job.pack("MEDIA_CURBE_LOAD", curbe_total_data_length=32, curbe_data_start_address=0x100),
            job.pack("MI_STORE_DATA_IMM", address=DYNAMIC + 0x100, immediate_data=99),
            walker(job, thread_group_id_starting_x=number, thread_group_id_x_dimension=number + 1),
        ]
    ran = job.run(groups=groups)
    assert ran.buffer(0)[:3] == (10, 20, 30) and ran.gpu.counters.dispatches == 3 and not ran.gpu.remarks


def test_the_curbe_may_be_read_from_an_offset_on(groups: Dispatcher) -> None:
    job = Job(SHOWS, [bytes(16)], simd=8, shared=dwords(*[10] * 8, *[20] * 8, *[30] * 8), fetched=False)
    job.descriptor = {"cross_thread_constant_data_read_length": 1, "constant_urb_entry_read_offset": 2}
    assert job.run(groups=groups).buffer(0)[0] == 30


@pytest.mark.parametrize("gpu", ["bdw", "skl", "icl"])
def test_behind_a_flush_everything_has_been_written(gpu: str, groups: Dispatcher) -> None:
    """A command copies what the thread wrote, and a second walker finds the copy among its constants."""
    job = Job(SHOWS, [bytes(16)], gpu, simd=8, shared=dwords(*[10] * 8), fetched=False)
    job.after = [
        job.pack("MEDIA_STATE_FLUSH", flush_to_go=1),
        job.pack("MI_COPY_MEM_MEM", destination_memory_address=job.address(0) + 12, source_memory_address=job.address(0)),
    ]
    assert job.run(groups=groups).buffer(0) == (10, 0, 0, 10)


@pytest.mark.behaviour("BDW-MEM-04", "ICL-MEM-04", "ICL-MEM-05", "BDW-GPGPU-06", shows="action")
@pytest.mark.parametrize("gpu", ["bdw", "skl", "icl"])
def test_everything_is_found_from_its_base(gpu: str, groups: Dispatcher) -> None:
    """Descriptor, kernel and binding table stand at bases that are not 0; here the walker's data does as well."""
    job = vector_add(gpu)
    base = {"indirect_object_base_address": INDIRECT - 0x1000, "indirect_object_base_address_modify_enable": 1}
    job.before, job.walker = [job.pack("STATE_BASE_ADDRESS", **base)], {"indirect_data_start_address": 0x1000}
    assert job.run(groups=groups).buffer(1) == tuple(1000 + n for n in range(64))
    assert min(DYNAMIC, SURFACES, CODE, INDIRECT) >= 0x20000 and job.dynamic()[:4] == bytes(4)


@pytest.mark.behaviour("BDW-GPGPU-03", "BDW-GPGPU-04", shows="action")
@pytest.mark.parametrize("simd", [8, 16, 32])
@pytest.mark.parametrize(
    "right, bottom", [(0xFFFFFFFF, 0xFFFFFFFF), (0x0001FF37, 0xFFFFFFFF), (0xFFFFFFFF, 0x80000085), (0x0F0F0F0F, 0x00FFFF3C)]
)
def test_channels_at_the_edges(simd: int, right: int, bottom: int, groups: Dispatcher) -> None:
    """Two by two threads: the right mask holds for the last column, the bottom mask for the last row, both in the corner."""
    ran = Job(MARKS, [bytes(4 * 128)], simd=simd, shape=(2, 2, 1), right=right, bottom=bottom).run(groups=groups)
    found, full = ran.buffer(0), (1 << simd) - 1
    for number, mask in enumerate((full, full & right, full & bottom, full & right & bottom)):
        assert found[32 * number : 32 * number + 32] == tuple(number + 1 if mask >> n & 1 else 0 for n in range(32)), number


# -- rules ---------------------------------------------------------------------------------------------------------------


def said(ran: Ran) -> list[str]:
    return [remark.partition("): ")[2] for remark in ran.gpu.remarks]


@pytest.mark.behaviour("BDW-GPGPU-06", shows="action")
@pytest.mark.parametrize("gpu, size, told", [("bdw", 4032, False), ("bdw", 4064, True), ("skl", 4064, False), ("skl", 63488, True)])
def test_indirect_data_has_a_largest_size(gpu: str, size: int, told: bool) -> None:
    job = Job(SHOWS, [bytes(1 << 16)], gpu, simd=8)
    job.walker = {"indirect_data_length": size, "indirect_data_start_address": job.address(0)}
    most = 4032 if gpu == "bdw" else 63487
    assert said(job.run()) == ([f"{size} bytes of indirect data; there should be at most {most}"] if told else [])


@pytest.mark.behaviour("BDW-GPGPU-06", shows="action")
def test_indirect_data_is_whole_registers() -> None:
    job = Job(SHOWS, [bytes(64)], simd=8)
    job.walker = {"indirect_data_length": 48, "indirect_data_start_address": job.address(0)}
    assert said(job.run()) == ["48 bytes of indirect data are no multiple of 32"]


@pytest.mark.behaviour("BDW-GPGPU-16", shows="action")
@pytest.mark.parametrize("asked", [0, 1])
def test_a_walker_needs_no_watermark_before_it(asked: int) -> None:
    job = Job(SHOWS, [bytes(4)], "bdw", simd=8)
    job.after = [job.pack("MEDIA_STATE_FLUSH", watermark_required=asked), walker(job), walker(job)]
    assert [text.split(":")[0] for text in said(job.run())] == ["a walker checks the watermark itself"] * asked


# Each thread writes the low dwords of two time stamps.
STAMPS = f"""
(W)  mov (8|M0) r127.0<1>:ud r0.0<8;8,1>:ud
(W)  mov (1|M0) r11.0<1>:ud tm0.0<0;1,0>:ud
(W)  shl (1|M0) r10.0<1>:ud r0.1<0;1,0>:ud 3:w
(W)  add (1|M0) r12.0<1>:ud r10.0<0;1,0>:ud 4:ud
(W)  mov (1|M0) r13.0<1>:ud tm0.0<0;1,0>:ud
(W)  send (1|M0) null r10 0xC 0x04026E00
(W)  send (1|M0) null r12 0xC 0x04026E00
{END}
"""


def test_time_stamps_rise_in_a_thread_and_from_dispatch_to_dispatch(groups: Dispatcher) -> None:
    job = Job(STAMPS, [bytes(32)], simd=8)
    job.starts_threads = [walker(job, thread_group_id_starting_x=number, thread_group_id_x_dimension=number + 1) for number in range(4)]
    stamps = job.run(groups=groups).buffer(0)[:8]
    assert list(stamps) == sorted(set(stamps))
