"""Root threads of the media pipeline: which run, in which order, and what they start with."""

from __future__ import annotations

import struct
from itertools import islice
from typing import Any

import pytest

from softgen.bits.catalogue import layout
from softgen.bits.generation import device
from softgen.device.gpu import GpuDevice
from softgen.errors import DecodeError, SoftgenError, Unsupported
from softgen.media import objects
from softgen.media import walk as walks
from softgen.media.front_end import FrontEnd
from softgen.media.walk import BlockPosition
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.threads.payload import PayloadList
from softgen.trace.work import Work
from tests.gpgpu.engines import Choice, engines
from tests.gpgpu.job import BATCH, END, INDIRECT, Job, Ran, dwords, stores
from tests.gpgpu.test_walker import context

GPUS = ["bdw", "skl", "icl"]
# Each thread takes a ticket, then writes four dwords of its payload there. Surface 0 is the counter, 1 the list.
TICKETS = f"""
(W)  mov (8|M0) r127.0<1>:ud r0.0<8;8,1>:ud
(W)  mov (8|M0) r120.0<1>:ud 0x0:ud
(W)  mov (8|M0) r121.0<1>:ud 0x1:ud
(W)  send (1|M0) r112 r120 0xC 0x0410B700
(W)  shl (1|M0) r120.0<1>:ud r112.0<0;1,0>:ud 4:w
(W)  mov (1|M0) r121.0<1>:ud r0.1<0;1,0>:ud
(W)  mov (1|M0) r122.0<1>:ud r0.2<0;1,0>:ud
(W)  mov (1|M0) r123.0<1>:ud r1.0<0;1,0>:ud
(W)  mov (1|M0) r124.0<1>:ud r2.0<0;1,0>:ud
(W)  send (1|M0) null r120 0xC 0x0A026001
{END}
"""
# The thread at (0, 0) goes round for long, then says what a later one reads: dword 0 of surface 0. That one copies it into dword 1.
HANDS_ON = f"""
(W)  mov (8|M0) r127.0<1>:ud r0.0<8;8,1>:ud
(W)  mov (8|M0) r10.0<1>:ud 0x0:ud
(W)  mov (8|M0) r11.0<1>:ud 0x7:ud
(W)  mov (1|M0) r50.0<1>:d 0:d
(W)  and (1|M0) (ne)f0.0 null<1>:ud r0.1<0;1,0>:ud 0xFF:ud
(W&f0.0) jmpi later
again:
(W)  add (1|M0) r50.0<1>:d r50.0<0;1,0>:d 1:d
(W)  cmp (1|M0) (lt)f0.0 null<1>:d r50.0<0;1,0>:d 600:d
(W&f0.0) jmpi again
(W)  send (1|M0) null r10 0xC 0x04026E00
{END}
later:
(W)  send (1|M0) r11 r10 0xC 0x02106E00
(W)  mov (8|M0) r10.0<1>:ud 0x4:ud
(W)  send (1|M0) null r10 0xC 0x04026E00
{END}
"""


def data(*values: int) -> list[dict[str, int]]:
    return [{"inline_data": value} for value in values]


def job(gpu: str, kernel: str, buffers: list[bytes], *commands: tuple[str, dict[str, Any]], **more: Any) -> Job:
    made = Job(kernel, buffers, gpu, **{"fetched": False, **more})
    made.starts_threads = [made.pack(name, **values) for name, values in commands]
    return made


def listed(ran: Ran) -> list[tuple[int, ...]]:
    found = ran.buffer(1)
    return [found[4 * n : 4 * n + 4] for n in range(ran.buffer(0)[0])]


def header(ran: Ran, first: int, second: int) -> tuple[int, int, int, int]:
    """Position, colour and descriptor number of dwords 1 and 2 of r0."""
    held = layout("MEDIA_THREAD_HEADER", ran.job.gen).raw([0, first, second, *[0] * 5])
    return held.x_position, held.y_position, held.color, held.interface_descriptor_offset


# -- MEDIA_OBJECT --------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("BDW-MEDIA-06", "ICL-MEM-06", shows="action")
@pytest.mark.parametrize("engine", engines(), ids=str)
@pytest.mark.parametrize("gpu", GPUS)
def test_inline_and_indirect_data_follow_the_constants(gpu: str, engine: Choice) -> None:
    """Constants take one register here, inline data the next, filled up with zeros, and indirect data the one behind; it stands 32 bytes
    from the base of indirect objects."""
    kernel = TICKETS.replace("r2.0<0", "r3.0<0").replace("r1.0<0", "r2.1<0").replace("r0.1<0", "r1.0<0").replace("r0.2<0", "r2.0<0")
    fetch = {"indirect_data_length": 32, "indirect_data_start_address": 32}
    made = job(gpu, kernel, [bytes(4), bytes(64)], ("MEDIA_OBJECT", {"inline_data": data(22), **fetch}),
               shared=dwords(*[11] * 8, *[33] * 8), descriptor={"cross_thread_constant_data_read_length": 1})  # fmt: skip
    base = {"indirect_object_base_address": INDIRECT, "indirect_object_base_address_modify_enable": 1}
    made.before = [made.pack("STATE_BASE_ADDRESS", **base)]
    ran = made.run(groups=engine.groups())
    assert listed(ran) == [(11, 22, 0, 33)]
    assert (ran.gpu.counters.dispatches, ran.gpu.counters.threads) == (1, 1)


@pytest.mark.parametrize("engine", engines(), ids=str)
@pytest.mark.parametrize("gpu", GPUS)
def test_a_thread_is_told_where_it_stands(gpu: str, engine: Choice) -> None:
    names = ("x_position", "y_position", "block_color") if gpu == "icl" else ("scoreboard_x", "scoreboard_y", "scoreboard_color")
    where = dict(zip(names, (5, 9, 3), strict=True))
    ran = job(gpu, TICKETS, [bytes(4), bytes(64)], ("MEDIA_OBJECT", {**where, "inline_data": data(1)})).run(groups=engine.groups())
    ((first, second, *_),) = listed(ran)
    assert header(ran, first, second) == (5, 9, 3, 0)
    assert first == (5 | 9 << 12 | 3 << 24 if gpu == "icl" else 5 | 9 << 16) and second == (0 if gpu == "icl" else 3)


@pytest.mark.parametrize("traced", [True, False])
def test_dispatches_are_traced_where_somebody_listens(traced: bool) -> None:
    lines: list[tuple[str, str]] = []
    made = job("skl", TICKETS, [bytes(4), bytes(64)], ("MEDIA_OBJECT", {"inline_data": data(1)}))
    made.run(GpuDevice(made.device, trace=(lambda topic, text: lines.append((topic, text))) if traced else None))
    shown = [text for topic, text in lines if topic == "dispatches"]
    assert shown == ["kernel 0x40000, 1 groups of 1 threads, SIMD32, 0 bytes of local memory"] * traced


def test_several_commands_run_in_their_order() -> None:
    ran = job("skl", TICKETS, [bytes(4), bytes(64)], *(("MEDIA_OBJECT", {"inline_data": data(n)}) for n in (5, 6, 7))).run()
    assert [row[2] for row in listed(ran)] == [5, 6, 7] and ran.gpu.counters.dispatches == 3


def test_commands_that_threads_write_are_executed() -> None:
    """A thread ends the batch: it replaces the command that follows its own, which was read ahead."""
    kernel = stores("(8|M0) r11.0<1>:ud r1.1<0;1,0>:ud").replace("r10.0<1>:ud 0x0:ud", "r10.0<1>:ud r1.0<0;1,0>:ud")
    made = job("skl", kernel.replace("0x04026E00", "0x04026EFF"), [])  # in stateless memory
    end = made.pack("MI_BATCH_BUFFER_END")[0]
    made.after = [made.pack("MI_NOOP"), made.pack("MEDIA_OBJECT", inline_data=data(0, 0))]
    made.starts_threads = [made.pack("MEDIA_OBJECT", inline_data=data(0, 0))]
    at = BATCH + len(made.batch()) - 4 * sum(map(len, made.after)) - 4
    made.starts_threads = [made.pack("MEDIA_OBJECT", inline_data=data(at, end))]
    ran = made.run()
    assert ran.space.read32(at) == end and ran.gpu.counters.dispatches == 1


@pytest.mark.parametrize(("own", "shared"), [(0, 0), (2, 0), (0, 3), (2, 3), (3, 2), (3, 3)])
@pytest.mark.parametrize("skipped", [0, 1])
@pytest.mark.parametrize("loaded", range(5, 9))
def test_constants_of_a_thread_of_no_group(own: int, shared: int, skipped: int, loaded: int) -> None:
    """As many registers of the CURBE as threads have of their own and in common, from an offset on."""
    made = Job("", [], "skl")
    length = {"constant_urb_entry_read_length": own, "cross_thread_constant_data_read_length": shared}
    described = made.pack("INTERFACE_DESCRIPTOR_DATA", constant_urb_entry_read_offset=skipped, **length)
    front = FrontEnd(constants=b"".join(bytes([n] * 32) for n in range(loaded)),
                     descriptors=dwords(*described))  # fmt: skip
    page = layout("MEDIA_OBJECT", made.gen)
    command = page.raw(page.pack())
    if own + shared + skipped <= loaded:
        wanted = b"".join(bytes([n] * 32) for n in range(skipped, skipped + own + shared))
        assert objects.constants(context(made), front, command) == wanted
    else:
        asked, there = 32 * (own + shared), 32 * (loaded - skipped)
        with pytest.raises(DecodeError, match=f"{asked} bytes of constants are asked for, the CURBE holds {there} there"):
            objects.constants(context(made), front, command)


@pytest.mark.behaviour("BDW-MEDIA-06", shows="action")
def test_too_much_data_is_refused() -> None:
    """55 registers inline and 57 or 56 fetched."""
    made = job("skl", TICKETS, [bytes(4), bytes(64)], ("MEDIA_OBJECT", {"inline_data": data(*range(440)), "indirect_data_length": 57 * 32}))
    with pytest.raises(DecodeError, match=r"MEDIA_OBJECT at .*: 112 registers of inline and indirect data; there must be fewer than 112"):
        made.run()
    rows = ("MEDIA_OBJECT_GRPID", {"indirect_data_length": 112 * 32, "end_of_thread_group": 1})
    with pytest.raises(DecodeError, match=r"MEDIA_OBJECT_GRPID at .*: 112 registers of inline and indirect data; there must be fewer"):
        job("skl", TICKETS, [bytes(4), bytes(64)], rows).run()
    fits = {"inline_data": data(*range(440)), "indirect_data_length": 56 * 32, "indirect_data_start_address": made.address(1)}
    assert listed(job("skl", TICKETS, [bytes(4), bytes(64)], ("MEDIA_OBJECT", fits)).run()) == [(0, 0, 0, 8)]


def test_synchronized_threads_are_refused_by_name() -> None:
    with pytest.raises(Unsupported, match=r"MEDIA_OBJECT at .*gen 9\): thread_synchronization is not yet simulated"):
        job("skl", TICKETS, [bytes(4)], ("MEDIA_OBJECT", {"thread_synchronization": 1})).run()


@pytest.mark.parametrize("engine", engines(), ids=str)
@pytest.mark.parametrize("gpu", GPUS)
def test_persistent_threads_have_twelve_dwords(gpu: str, engine: Choice) -> None:
    made = job(gpu, TICKETS, [bytes(4), bytes(64)], ("MEDIA_OBJECT_PRT", {"inline_data": data(*range(100, 112)), "prt_fence_needed": 1}))
    assert [row[2:] for row in listed(made.run(groups=engine.groups()))] == [(100, 108)]


def test_generations_without_a_header_for_it_say_so() -> None:
    space, buffer = AddressSpace("job", 32), MemfdBuffer(4096, "batch")
    batch = dwords(*layout("MEDIA_OBJECT", 4.5).pack(), *layout("MI_BATCH_BUFFER_END", 4.5).pack())
    buffer.view[: len(batch)] = batch
    space.map(0x10000, buffer)
    with pytest.raises(Unsupported, match=r"MEDIA_OBJECT at .*gen 4.5\): not yet simulated"):
        GpuDevice(device("g45")).execute(Work("render", space, 0x10000))


# -- MEDIA_OBJECT_GRPID --------------------------------------------------------------------------------------------------

# Each thread adds its number (r1.0) to dword 0 of local memory, waits for the others, and shows the sum: surface 1, dword r1.0.
SUM = f"""
(W)  mov (8|M0) r127.0<1>:ud r0.0<8;8,1>:ud
(W)  mov (8|M0) r10.0<1>:ud 0x0:ud
(W)  mov (8|M0) r11.0<1>:ud r1.0<0;1,0>:ud
(W)  send (1|M0) r12 r10 0xC 0x0410B7FE
(W)  send (1|M0) null r127 0x3 0x02000004
(W)  wait n0.0<0;1,0>:ud
(W)  send (1|M0) r11 r10 0xC 0x02106EFE
(W)  shl (8|M0) r10.0<1>:ud r1.0<0;1,0>:ud 2:w
(W)  send (1|M0) null r10 0xC 0x04026E00
{END}
"""


def group_of(gpu: str, *rows: tuple[int, int, int], **more: Any) -> Job:
    """`rows`: group id, inline data, last of its group."""
    commands = [
        ("MEDIA_OBJECT_GRPID", {"groupid": id, "inline_data": data(value), "end_of_thread_group": last}) for id, value, last in rows
    ]
    said = {"number_of_threads_in_gpgpu_thread_group": 3, "barrier_enable": 1, "shared_local_memory_size": {"bdw": 1}.get(gpu, 3)}
    return job(gpu, SUM, [bytes(64)], *commands, descriptor=said, **more)


@pytest.mark.behaviour("BDW-MEDIA-11", shows="action")
@pytest.mark.parametrize("engine", engines(), ids=str)
@pytest.mark.parametrize("gpu", GPUS)
def test_threads_with_one_group_id_share_barrier_and_local_memory(gpu: str, engine: Choice) -> None:
    ran = group_of(gpu, (7, 1, 0), (7, 2, 0), (7, 3, 1), (8, 4, 0), (8, 5, 0), (8, 6, 1)).run(groups=engine.groups())
    assert ran.buffer(0)[1:7] == (6, 6, 6, 15, 15, 15)
    assert (ran.gpu.counters.dispatches, ran.gpu.counters.threads) == (2, 6) and not ran.gpu.remarks


@pytest.mark.behaviour("BDW-MEDIA-11", shows="action")
@pytest.mark.parametrize("closes", ["", "MEDIA_STATE_FLUSH", "MEDIA_VFE_STATE", "MEDIA_CURBE_LOAD", "MEDIA_INTERFACE_DESCRIPTOR_LOAD",
                                    "MEDIA_OBJECT", "MEDIA_OBJECT_WALKER"])  # fmt: skip
def test_a_group_without_an_end_runs_and_is_told(closes: str) -> None:
    """It runs before the next command that loads state or starts threads, or at the end of the batch."""
    made = group_of("skl", (7, 1, 0), (7, 2, 0), (7, 3, 0))
    made.after = [made.pack(closes), made.pack("MI_NOOP")] if closes else []
    ran = made.run()
    assert ran.buffer(0)[1:4] == (6, 6, 6)
    remark = next(iter(ran.gpu.remarks))
    assert remark.endswith("gen 9): no MEDIA_OBJECT_GRPID of group 0x7 has its end_of_thread_group set")
    assert remark.startswith(f"{closes or 'MEDIA_OBJECT_GRPID'} at ")


@pytest.mark.behaviour("BDW-MEDIA-11", shows="action")
def test_a_group_ends_where_another_begins() -> None:
    ran = group_of("skl", (7, 1, 0), (7, 2, 0), (7, 3, 0), (8, 4, 0), (8, 5, 0), (8, 6, 1)).run()
    assert ran.buffer(0)[1:7] == (6, 6, 6, 15, 15, 15) and ran.gpu.counters.dispatches == 2
    assert [remark.partition("): ")[2] for remark in ran.gpu.remarks] == [
        "no MEDIA_OBJECT_GRPID of group 0x7 has its end_of_thread_group set"]  # fmt: skip


def test_a_thread_of_no_group_runs_after_the_group_before_it() -> None:
    rows = [("MEDIA_OBJECT_GRPID", {"groupid": 1, "inline_data": data(n)}) for n in (5, 6)]
    ran = job("skl", TICKETS, [bytes(4), bytes(64)], *rows, ("MEDIA_OBJECT", {"inline_data": data(7)})).run()
    assert [row[2] for row in listed(ran)] == [5, 6, 7]
    assert ran.gpu.counters.instructions == 3 * 11 and ran.gpu.counters.dispatches == 2


@pytest.mark.behaviour("BDW-MEDIA-18", shows="action")
@pytest.mark.parametrize("flushes", [True, False])
@pytest.mark.parametrize("gpu", GPUS)
def test_a_flush_waits_for_threads_and_what_they_write(gpu: str, flushes: bool) -> None:
    """Without it the group that has no end yet has not run when a command copies the sum (BDW 23688-23775)."""
    made = group_of(gpu, (7, 1, 0), (7, 2, 0), (7, 3, 0))
    flush = made.pack("MEDIA_STATE_FLUSH", flush_to_go=1)
    copy = made.pack("MI_COPY_MEM_MEM", destination_memory_address=made.address(0) + 32, source_memory_address=made.address(0) + 4)
    made.after = [flush, copy] if flushes else [copy]
    assert made.run().buffer(0)[8] == (6 if flushes else 0)


@pytest.mark.behaviour("BDW-MEDIA-11", shows="action")
def test_a_barrier_for_more_threads_than_there_are_is_refused() -> None:
    with pytest.raises(DecodeError, match=r"_GRPID at .*: 2 threads in a group with a barrier, its interface descriptor says 3"):
        group_of("skl", (7, 1, 0), (7, 2, 1)).run()


@pytest.mark.behaviour("BDW-MEDIA-11", shows="action")
@pytest.mark.parametrize("fetched", [True, False])
def test_constants_are_split_between_the_threads_of_a_group(fetched: bool) -> None:
    """A register for all and one for each; from indirect data, each thread's own comes first."""
    fetch = {"indirect_data_length": 96, "indirect_data_start_address": INDIRECT} if fetched else {}
    rows = [("MEDIA_OBJECT_GRPID", {"groupid": 1, "end_of_thread_group": n == 1, **fetch}) for n in range(2)]
    made = job("skl", TICKETS, [bytes(4), bytes(64)], *rows, shared=dwords(*[5] * 8), own=[dwords(*[n] * 8) for n in (10, 11)])
    assert [row[2:] for row in listed(made.run())] == ([(10, 5), (11, 5)] if fetched else [(5, 10), (5, 11)])


@pytest.mark.behaviour("BDW-MEDIA-11", shows="action")
def test_only_one_kind_of_payload_is_allowed() -> None:
    fetch = {"indirect_data_length": 32, "indirect_data_start_address": INDIRECT}
    with pytest.raises(DecodeError, match="inline data, and indirect data or constants too; only one of them is allowed"):
        job("skl", TICKETS, [bytes(4)], ("MEDIA_OBJECT_GRPID", {"inline_data": data(1), "end_of_thread_group": 1, **fetch})).run()


@pytest.mark.parametrize("name", ["MEDIA_OBJECT", "MEDIA_OBJECT_WALKER"])
def test_threads_of_no_group_have_no_local_memory(name: str) -> None:
    """What they add to it is not there."""
    kernel = "".join(line + "\n" for line in SUM.splitlines() if "wait" not in line and "0x02000004" not in line)
    values = {**(walk(1, 1) if name == "MEDIA_OBJECT_WALKER" else {}), "inline_data": data(3)}
    ran = job("skl", kernel, [bytes(64)], (name, values), descriptor={"shared_local_memory_size": 3}).run()
    assert ran.gpu.counters.threads == 1 and ran.buffer(0)[3] == 0


# -- MEDIA_OBJECT_WALKER -------------------------------------------------------------------------------------------------


def walk(width: int, height: int, **more: Any) -> dict[str, Any]:
    """Row by row over one block by default."""
    return {
        "block_resolution_x": width, "block_resolution_y": height, "global_resolution_x": width, "global_resolution_y": height,
        "local_loop_exec_count": 0x3FF, "global_loop_exec_count": 0x3FF, "global_outer_loop_stride_x": width,
        "global_inner_loop_unit_y": height, "local_outer_loop_stride_y": 1, "local_inner_loop_unit_x": 1, **more,
    }  # fmt: skip


def walked(gen: float = 9, **values: Any) -> list[tuple[int, int]]:
    page = layout("MEDIA_OBJECT_WALKER", gen)
    return [(x, y) for x, y, _ in walks.positions(page.raw(page.pack(**values)), lambda: None)]


@pytest.mark.behaviour("BDW-MEDIA-14", shows="action")
@pytest.mark.parametrize("gen", [7, 7.5, 8, 9, 11])
def test_a_walk_goes_through_its_loops(gen: float) -> None:
    assert walked(gen, **walk(3, 2)) == [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)]
    columns = walk(3, 2, local_outer_loop_stride_x=1, local_outer_loop_stride_y=0, local_inner_loop_unit_x=0, local_inner_loop_unit_y=1)
    assert walked(gen, **columns) == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]


@pytest.mark.behaviour("BDW-MEDIA-14", shows="action")
def test_steps_may_go_backwards_and_starts_may_be_anywhere() -> None:
    back = walk(3, 2, local_start_x=2, local_start_y=1, local_outer_loop_stride_y=-1, local_inner_loop_unit_x=-2)
    assert walked(**back) == [(2, 1), (0, 1), (2, 0), (0, 0)]


@pytest.mark.behaviour("BDW-MEDIA-14", shows="action")
def test_rays_may_begin_outside_and_come_in() -> None:
    """From below the block up its first column, from its right to the left along its first row, and from its left."""
    up = {"local_inner_loop_unit_x": 0, "local_inner_loop_unit_y": -1, "local_start_y": 4, "local_loop_exec_count": 0}
    assert walked(**walk(3, 2, **up)) == [(0, 1), (0, 0)]
    left = {"local_inner_loop_unit_x": -1, "local_start_x": 4, "local_loop_exec_count": 0}
    assert walked(**walk(3, 2, **left)) == [(2, 0), (1, 0), (0, 0)]
    slanted = {"local_outer_loop_stride_x": -2, "local_loop_exec_count": 1}  # the second row begins two to the left of the block
    assert walked(**walk(3, 2, **slanted)) == [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)]


@pytest.mark.behaviour("BDW-MEDIA-14", shows="action")
def test_a_step_of_nothing_is_one_thread() -> None:
    page = layout("MEDIA_OBJECT_WALKER", 9)
    still = walks.positions(page.raw(page.pack(**walk(3, 2, local_inner_loop_unit_x=0))), lambda: None)
    assert [(x, y) for x, y, _ in islice(still, 9)] == [(0, 0), (0, 1)]


@pytest.mark.behaviour("BDW-MEDIA-14", shows="action")
def test_a_diagonal_walk_comes_in_from_outside() -> None:
    """26 degrees: each thread behind its left, upper left, upper and upper right neighbours."""
    steps = {"local_outer_loop_stride_x": 1, "local_outer_loop_stride_y": 0, "local_inner_loop_unit_x": -2, "local_inner_loop_unit_y": 1}
    found = walked(**walk(4, 3, **steps, local_loop_exec_count=4 + 2 * 2 - 1, global_loop_exec_count=0))
    assert found == [(0, 0), (1, 0), (2, 0), (0, 1), (3, 0), (1, 1), (2, 1), (0, 2), (3, 1), (1, 2), (2, 2), (3, 2)]


@pytest.mark.behaviour("BDW-MEDIA-14", shows="action")
def test_counts_end_loops_early_and_the_middle_loop_has_extra_steps() -> None:
    assert walked(**walk(2, 9, local_loop_exec_count=1)) == [(0, 0), (1, 0), (0, 1), (1, 1)]
    middle = walk(2, 4, local_outer_loop_stride_y=2, middle_loop_extra_steps=1, local_mid_loop_unit_y=1, local_loop_exec_count=0)
    assert walked(**middle) == [(0, 0), (1, 0), (0, 1), (1, 1)]


@pytest.mark.behaviour("BDW-MEDIA-14", shows="action")
def test_blocks_are_walked_one_after_another_and_end_where_everything_does() -> None:
    blocks = {"block_resolution_x": 2, "block_resolution_y": 2, "global_outer_loop_stride_x": 0, "global_outer_loop_stride_y": 2,
              "global_inner_loop_unit_x": 2, "global_inner_loop_unit_y": 0}  # fmt: skip
    found = walked(**walk(3, 3, **blocks))
    assert found == [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (2, 1), (0, 2), (1, 2), (2, 2)]
    assert walked(**walk(3, 3, **blocks, global_loop_exec_count=0)) == found[:6]  # one row of blocks


@pytest.mark.behaviour("BDW-MEDIA-14", "BDW-MEDIA-15", "BDW-MEDIA-17", shows="action")
@pytest.mark.parametrize("engine", engines(), ids=str)
@pytest.mark.parametrize("gpu", GPUS)
def test_walked_threads_have_their_place_and_common_data(gpu: str, engine: Choice) -> None:
    values = walk(3, 2, color_count_minus_one=1, inline_data=data(77))
    ran = job(gpu, TICKETS, [bytes(4), bytes(256)], ("MEDIA_OBJECT_WALKER", values)).run(groups=engine.groups())
    found = listed(ran)
    assert [header(ran, *row[:2])[:3] for row in found] == [(x, y, color) for y in (0, 1) for x in (0, 1, 2) for color in (0, 1)]
    assert {row[2] for row in found} == {77} and ran.gpu.counters.threads == 12 and ran.gpu.counters.dispatches == 1


@pytest.mark.parametrize("gen", [8, 9, 11])
def test_headers_have_room_for_the_last_position_of_any_walk(gen: float) -> None:
    """The largest resolution and the largest local start, one thread in the corner."""
    page, made = layout("MEDIA_OBJECT_WALKER", gen), job({8: "bdw", 9: "skl", 11: "icl"}[gen], TICKETS, [])
    most = (1 << page.field("global_resolution_x").width) - 1
    values = walk(most, most, local_start_x=most - 1, local_start_y=most - 1, local_loop_exec_count=0, global_loop_exec_count=0)
    (found,) = objects.walked(context(made), FrontEnd(descriptors=made.dynamic()[:32]), page.raw(page.pack(**values)), lambda: None)
    assert isinstance(found.payload, PayloadList)
    held = layout("MEDIA_THREAD_HEADER", gen).raw(struct.unpack_from("<8I", found.payload.of(0)))
    assert (held.x_position, held.y_position) == (most - 1, most - 1)


@pytest.mark.behaviour("BDW-MEDIA-16", shows="action")
@pytest.mark.parametrize("level, sizes", [(1, [2] * 12), (2, [6] * 4), (3, [6] * 4), (4, [12] * 2), (5, [12] * 2)])
def test_a_loop_makes_groups(level: int, sizes: list[int]) -> None:
    """2 blocks of 3 x 2, two colours."""
    page = layout("MEDIA_OBJECT_WALKER", 9)
    blocks = {"block_resolution_y": 2, "global_outer_loop_stride_x": 0, "global_outer_loop_stride_y": 2, "global_inner_loop_unit_x": 3,
              "global_inner_loop_unit_y": 0}  # fmt: skip
    values = walk(3, 4, **blocks, color_count_minus_one=1)
    assert [len(group) for group in walks.groups(page.raw(page.pack(**values)), level, lambda: None)] == sizes


@pytest.mark.behaviour("BDW-MEDIA-16", shows="action")
@pytest.mark.parametrize("engine", engines(), ids=str)
def test_groups_of_a_walk_share_barrier_and_local_memory(engine: Choice) -> None:
    """Each row is a group; a thread's number is its column, and one more."""
    kernel = SUM.replace(
        "(W)  mov (8|M0) r10.0<1>:ud 0x0:ud",
        """(W)  and (1|M0) r1.0<1>:ud r0.1<0;1,0>:ud 0xFF:ud
(W)  add (1|M0) r1.0<1>:ud r1.0<0;1,0>:ud 1:ud
(W)  mov (8|M0) r10.0<1>:ud 0x0:ud""",
    )
    said = {"number_of_threads_in_gpgpu_thread_group": 3, "barrier_enable": 1, "shared_local_memory_size": 3}
    made = job("skl", kernel, [bytes(64)], ("MEDIA_OBJECT_WALKER", walk(3, 2, group_id_loop_select=2)), descriptor=said)
    assert made.run(groups=engine.groups()).buffer(0)[1:4] == (6, 6, 6)


@pytest.mark.behaviour("BDW-MEDIA-16", shows="action")
@pytest.mark.parametrize("barrier, local, groups", [(0, 0, 1), (1, 0, 2), (0, 3, 2), (1, 3, 2)])
def test_threads_of_a_walk_are_in_groups_where_they_share_something(barrier: int, local: int, groups: int) -> None:
    """Rows of three threads: a barrier or local memory makes each of them a group."""
    said = {"number_of_threads_in_gpgpu_thread_group": 3, "barrier_enable": barrier, "shared_local_memory_size": local}
    made, page = job("skl", TICKETS, [], descriptor=said), layout("MEDIA_OBJECT_WALKER", 9)
    command = page.raw(page.pack(**walk(3, 2, group_id_loop_select=2)))
    found = list(objects.walked(context(made), FrontEnd(descriptors=made.dynamic()[:32]), command, lambda: None))
    assert [dispatch.threads for dispatch in found] == [6 // groups] * groups
    assert {dispatch.local_bytes for dispatch in found} == {4096 if local else 0}


def test_modes_of_the_walker_that_are_not_built_are_refused_by_name() -> None:
    for gpu, name in (("skl", "masked_dispatch"), ("hsw", "dual_mode")):
        page = layout("MEDIA_OBJECT_WALKER", device(gpu).generation.number)
        made = Job("", [], gpu)
        with pytest.raises(Unsupported, match=f"{name} is not yet simulated"):
            next(objects.walked(context(made), FrontEnd(), page.raw(page.pack(**{name: 1})), lambda: None))


# -- the scoreboard ------------------------------------------------------------------------------------------------------

LEFT = {"scoreboard_enable": 1, "scoreboard_mask": 0x05, "scoreboard_0_delta_x": -1, "scoreboard_2_delta_y": -1}


@pytest.mark.behaviour("BDW-MEDIA-10", shows="action")
@pytest.mark.parametrize("engine", engines(), ids=str)
@pytest.mark.parametrize("use, mask, found", [(1, 0x01, 7), (1, 0x02, 0), (0, 0x01, 0)])
def test_a_thread_waits_for_those_the_scoreboard_names(use: int, mask: int, found: int, engine: Choice) -> None:
    """State and command must both name a distance, and the command must use the scoreboard. The thread on the right reads what
    the left one says after a while; it is in time for that only if it waits."""
    values = walk(2, 1, use_scoreboard=use, scoreboard_mask=mask)
    made = job("skl", HANDS_ON, [bytes(8)], ("MEDIA_OBJECT_WALKER", values), front=LEFT)
    ran = made.run(groups=engine.groups())
    assert ran.buffer(0)[0] == 7
    if found or engine.name == "reference":  # who does not wait is early, or lucky
        assert ran.buffer(0)[1] == found


@pytest.mark.behaviour("BDW-MEDIA-10", shows="action")
@pytest.mark.parametrize("gen", [7, 7.5, 8, 9])
def test_there_are_eight_scoreboard_distances(gen: float) -> None:
    """A distance of (0, 0) is that of a thread to itself: nothing is waited for."""
    page, walker = layout("MEDIA_VFE_STATE", gen), layout("MEDIA_OBJECT_WALKER", gen)
    wanted = [(1, 0), (0, 1), (-1, 0), (0, -1), (2, 3), (0, 0), (-8, 7), (7, -8)]
    held = {f"scoreboard_{n}_delta_{axis}": value for n, each in enumerate(wanted) for axis, value in zip("xy", each, strict=True)}
    front = FrontEnd(page.raw(page.pack(scoreboard_enable=1, scoreboard_mask=0xFF, **held)))

    def found(mask: int) -> list[tuple[int, int]]:
        return objects.distances(front, walker.raw(walker.pack(use_scoreboard=1, scoreboard_mask=mask)))

    assert found(0xFF) == [each for each in wanted if each != (0, 0)]
    assert [found(1 << n) for n in range(8)] == [[each] if each != (0, 0) else [] for each in wanted]


@pytest.mark.behaviour("BDW-MEDIA-10", shows="action")
def test_only_threads_of_the_same_colour_that_were_dispatched_before_are_waited_for() -> None:
    def cut(*places: tuple[int, int, int]) -> list[int]:
        return [len(item) for item in objects.independent((BlockPosition(*place) for place in places), [(-1, 0), (0, 1)])]

    assert cut((0, 0, 0), (2, 0, 0), (1, 0, 1)) == [3]
    assert cut((0, 0, 0), (2, 0, 0), (1, 0, 0)) == [2, 1]
    assert cut((0, 1, 0), (1, 1, 0), (3, 0, 0)) == [1, 2]
    assert cut((5, 5, 0), (4, 5, 0)) == cut((7, 5, 0), (7, 6, 0)) == [2]  # distances have a direction
    assert cut((4, 5, 0), (5, 5, 0)) == cut((7, 6, 0), (7, 5, 0)) == [1, 1]
    assert cut(*[(5, 5, 0)] * 130) == [64, 64, 2]


def test_the_time_limit_is_polled_now_and_then() -> None:
    """At intervals of some thousand steps, not at each."""
    page, polls = layout("MEDIA_OBJECT_WALKER", 9), []
    found = walks.positions(page.raw(page.pack(**walk(100, 100))), lambda: polls.append(1))
    assert len(list(found)) == 10_000 and 1 <= len(polls) <= 5


def test_an_endless_walk_is_stopped() -> None:
    """Nothing is ever inside."""
    values = walk(1, 1, local_start_x=1, local_inner_loop_unit_x=1, middle_loop_extra_steps=31, local_loop_exec_count=0xFFF,
                  global_loop_exec_count=0xFFF, global_outer_loop_stride_x=0)  # fmt: skip
    made = job("skl", TICKETS, [bytes(4)], ("MEDIA_OBJECT_WALKER", values))
    calls = iter(range(1000))
    with pytest.raises(SoftgenError, match=r"MEDIA_OBJECT_WALKER at .*: time is up before the walk has ended"):
        made.run(GpuDevice(made.device, timed_out=lambda: next(calls) > 20))
