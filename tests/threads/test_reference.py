"""Thread groups: real kernels of our own, with barriers, local memory and everything that can go wrong, on every engine."""

from __future__ import annotations

import re

import pytest

from softgen import position
from softgen.device.gpu import GpuDevice
from softgen.errors import GpuFault, SoftgenError, Unsupported
from softgen.position import Position
from softgen.threads.dispatcher_protocol import Dispatcher
from tests.gpgpu.engines import engines
from tests.gpgpu.job import ADD, END, Job, dwords, vector_add, words

# Each thread puts its number + 1 into local memory at its own place, waits, and copies its neighbour's to surface 0.
NEIGHBOUR = f"""
(W)  mov (8|M0)  r127.0<1>:ud r0.0<8;8,1>:ud
(W)  mov (8|M0)  r10.0<1>:ud 0x0:ud
(W)  and (1|M0)  r5.0<1>:ud r0.5<0;1,0>:ud 0x3FF:ud
(W)  shl (1|M0)  r10.0<1>:ud r5.0<0;1,0>:ud 2:w
(W)  add (1|M0)  r11.0<1>:ud r5.0<0;1,0>:ud 0x1:ud
(W)  send (1|M0) null r10 0xC 0x04026EFE
(W)  and (8|M0)  r15.0<1>:ud r0.2<0;1,0>:ud 0x8F000000:ud
(W)  send (8|M0) null r15 0x3 0x02008004
(W)  wait        n0.0<0;1,0>:ud
(W)  xor (1|M0)  r6.0<1>:ud r5.0<0;1,0>:ud 0x1:ud
(W)  mov (8|M0)  r12.0<1>:ud 0x0:ud
(W)  shl (1|M0)  r12.0<1>:ud r6.0<0;1,0>:ud 2:w
(W)  send (1|M0) r11 r12 0xC 0x02106EFE
(W)  send (1|M0) null r10 0xC 0x04026E00
{END}
"""
BARRIER_FOR_ONE = f"""
(W)  mov (8|M0)  r127.0<1>:ud r0.0<8;8,1>:ud
(W)  wait        n0.0<0;1,0>:ud
{END}
"""
ENDLESS = """
(W)  mov (8|M0)  r127.0<1>:ud r0.0<8;8,1>:ud
again:
(W)  add (1|M0)  r10.0<1>:ud r10.0<0;1,0>:ud 0x1:ud
(W)  jmpi again
"""


@pytest.fixture(params=engines(), ids=lambda item: item.name)
def groups(request: pytest.FixtureRequest) -> Dispatcher:
    made: Dispatcher = request.param.groups()
    return made


@pytest.mark.parametrize("gpu", ["bdw", "skl", "kbl", "icl"])
def test_a_kernel_reads_adds_and_writes(gpu: str, groups: Dispatcher) -> None:
    ran = vector_add(gpu).run(groups=groups)
    assert ran.buffer(1) == tuple(range(1000, 1064))
    done = ran.gpu.counters
    assert (done.dispatches, done.threads, done.instructions) == (1, 4, 32)


def test_lanes_the_walker_left_out_do_nothing(groups: Dispatcher) -> None:
    found = vector_add("skl", ends=1, right=0x00FF).run(groups=groups).buffer(1)
    assert found[:16] == (*range(1000, 1008), *[0] * 8)


@pytest.mark.behaviour("KBL-GPGPU-12", shows="action")
@pytest.mark.behaviour("BDW-GPGPU-14", shows="action")
def test_a_barrier_holds_threads_until_all_have_come(groups: Dispatcher) -> None:
    """Without it the first thread would read its neighbour's place before anything stands there."""
    ran = Job(NEIGHBOUR, [bytes(16)], simd=8, shape=(4, 1, 1), local=1024, descriptor={"barrier_enable": 1}).run(groups=groups)
    assert ran.buffer(0) == (2, 1, 4, 3)


@pytest.mark.behaviour("BDW-GPGPU-14", shows="action")
def test_local_memory_is_the_groups_own(groups: Dispatcher) -> None:
    """Groups write at places 64 bytes apart and read where the first one writes: the second must find nothing there."""
    apart = "(W)  shl (1|M0) r7.0<1>:ud r0.1<0;1,0>:ud 6:w\n(W)  add (1|M0) r10.0<1>:ud r10.0<0;1,0>:ud r7.0<0;1,0>:ud\n"
    kernel = NEIGHBOUR.replace("(W)  add (1|M0)  r11", f"{apart}(W)  add (1|M0)  r11")
    found = Job(kernel, [bytes(128)], simd=8, shape=(2, 1, 1), ends=(2, 1, 1), local=1024).run(groups=groups).buffer(0)
    assert found[:2] == (2, 1) and found[16:18] == (0, 0)


def test_local_memory_ends_where_the_descriptor_says(groups: Dispatcher) -> None:
    ran = Job(NEIGHBOUR, [bytes(16)], simd=8, shape=(4, 1, 1), local=0, descriptor={"barrier_enable": 1}).run(groups=groups)
    assert ran.buffer(0) == (0, 0, 0, 0)


def test_threads_that_wait_for_nobody_are_an_error_and_not_a_hang(groups: Dispatcher) -> None:
    match = r"thread 0 of group \(0, 0, 0\), kernel 0x40000\+0x10: .*wait.*barrier that others .*; 2 of 2 threads are left"
    with pytest.raises(SoftgenError, match=match):
        Job(BARRIER_FOR_ONE, [bytes(4)], simd=8, shape=(2, 1, 1)).run(groups=groups)


def test_an_endless_kernel_ends_with_the_time_and_says_where_it_was(groups: Dispatcher) -> None:
    left = iter(range(12))
    job = Job(ENDLESS, [bytes(4)], simd=8)
    gpu = GpuDevice(job.device, timed_out=lambda: next(left, None) is None, dispatcher=groups)
    place = r"GPGPU_WALKER at .*time is up: thread 0 of group \(0, 0, 0\), kernel 0x40000\+0x\d+: .*(add|jmpi)"
    with pytest.raises(SoftgenError, match=place) as raised:
        job.run(gpu)
    assert re.fullmatch(r"7:4/cs/g0\.t0\+0x[12]0#\d+", str(position.of(raised.value, Position(7))))


def test_a_fault_names_command_kernel_instruction_and_lane(groups: Dispatcher) -> None:
    kernel = ADD.replace("0x04205E00", "0x04205EFF")  # stateless: the general base is 0, and nothing is mapped at low addresses
    who = r"GPGPU_WALKER at 0x[0-9a-f]+ \(batch 0x10000, gen 9\), gen 9, kernel 0x40000\+0x40: send .*"
    with pytest.raises(GpuFault, match=rf"read at 0x0 in job by {who}: not mapped \(lane 0\)") as raised:
        Job(kernel, [bytes(4), bytes(4)], own=[words(*range(16))], shared=bytes(32)).run(groups=groups)
    assert str(position.of(raised.value, Position(7))).split("#")[0] == "7:4/cs/g0.t0+0x40"


@pytest.mark.parametrize("size, lane", [(256, None), (128 + 12, 3), (128, 0)])
def test_accesses_outside_a_buffer_are_told_once_and_do_nothing(size: int, lane: int | None, groups: Dispatcher) -> None:
    """Surface 0 has so many bytes; the third group is the first that goes beyond its end."""
    job = vector_add("skl")
    job.buffers = [bytes(size), bytes(256)]
    ran = job.run(groups=groups)
    assert ran.buffer(1) == (1000,) * 64
    place = r"GPGPU_WALKER at 0x[0-9a-f]+ \(batch 0x10000, gen 9\): kernel 0x40000\+0x40: send .*"
    if lane is None:
        assert not ran.gpu.remarks
    else:
        (said,) = ran.gpu.remarks
        offset = 128 + 4 * lane
        assert re.fullmatch(rf"{place}: out of bounds: untyped_surface_read at offset {offset:#x} of surface 0, "
                            rf"which has {size:#x} bytes \(lane {lane}\)", said)  # fmt: skip


def test_null_surfaces_are_no_mistake(groups: Dispatcher) -> None:
    job, null = vector_add("skl"), dwords(*vector_add("skl").pack("RENDER_SURFACE_STATE", surface_type=7))
    job.surface = lambda number, data: Job.surface(job, number, data) if number else null  # type: ignore[method-assign]
    ran = job.run(groups=groups)
    assert ran.buffer(1) == (1000,) * 64 and not ran.gpu.remarks


# An atomic addition at an offset that is no multiple of four, in surface 0; only lanes 2 and 3 of 16.
MISALIGNED = f"""
(W)  mov (8|M0)  r127.0<1>:ud r0.0<8;8,1>:ud
     mov (8|M0)  r10.0<1>:ud 0x6:ud
     mov (8|M0)  r11.0<1>:ud 0x1:ud
     send (8|M0) r12 r10 0xC 0x0410B700
{END}
"""


def test_misaligned_atomics_are_faults_with_their_lane(groups: Dispatcher) -> None:
    who = r"GPGPU_WALKER at 0x[0-9a-f]+ \(batch 0x10000, gen 9\), gen 9, kernel 0x40000\+0x30: send .*"
    with pytest.raises(GpuFault, match=rf"atomic at 0x100006 in job by {who}: not a multiple of 4 \(lane 2\)"):
        Job(MISALIGNED, [bytes(16)], simd=8, right=0xC).run(groups=groups)


def test_a_message_that_is_not_built_is_named_with_its_place(groups: Dispatcher) -> None:
    kernel = f"""
(W)  mov (8|M0)  r127.0<1>:ud r0.0<8;8,1>:ud
     send (8|M0) null r127 0x3 0x02000002
{END}
"""
    with pytest.raises(Unsupported, match=r"GPGPU_WALKER at .*kernel 0x40000\+0x10: send .*gateway: forward_message"):
        Job(kernel, [bytes(4)], simd=8).run(groups=groups)
