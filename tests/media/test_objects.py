"""Root threads of the media pipeline: which run, in which order, and what they start with."""

from __future__ import annotations

from typing import Any

import pytest

from softgen.bits.catalogue import layout
from softgen.device.gpu import GpuDevice
from softgen.errors import DecodeError, Unsupported
from softgen.media import objects
from softgen.media.front_end import FrontEnd
from tests.gpgpu.engines import Choice, engines
from tests.gpgpu.job import BATCH, INDIRECT, Job, dwords, stores
from tests.gpgpu.test_walker import context
from tests.media.root_threads import GPUS, SUM, TICKETS, data, header, job, listed, walk

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


@pytest.mark.behaviour("ICL-TH-01", shows="action")
@pytest.mark.parametrize("gpu", GPUS)
def test_threads_of_no_group_have_no_use_for_barriers_and_local_memory(gpu: str) -> None:
    """Whatever their interface descriptor says of both: a size that means nothing, a kind of barrier that cannot be used."""
    of_its_kind = {"shared_local_memory_size": 3} if gpu == "bdw" else {"shared_local_memory_size": 9, "global_barrier_enable": 1}
    descriptor = {"barrier_enable": 1, "number_of_threads_in_gpgpu_thread_group": 5, **of_its_kind}
    ran = job(gpu, TICKETS, [bytes(4), bytes(64)], ("MEDIA_OBJECT", {"inline_data": data(3)}), descriptor=descriptor).run()
    assert ran.buffer(0)[0] == 1


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


@pytest.mark.covering(2)
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
    with pytest.raises(Unsupported, match=r"MEDIA_OBJECT_WALKER at .*gen 9\): thread_synchronization is not yet simulated"):
        job("skl", TICKETS, [bytes(4)], ("MEDIA_OBJECT_WALKER", {"thread_synchronization": 1, **walk(1, 1)})).run()


@pytest.mark.parametrize("engine", engines(), ids=str)
@pytest.mark.parametrize("gpu", GPUS)
def test_persistent_threads_have_twelve_dwords(gpu: str, engine: Choice) -> None:
    made = job(gpu, TICKETS, [bytes(4), bytes(64)], ("MEDIA_OBJECT_PRT", {"inline_data": data(*range(100, 112)), "prt_fence_needed": 1}))
    assert [row[2:] for row in listed(made.run(groups=engine.groups()))] == [(100, 108)]


# -- MEDIA_OBJECT_GRPID --------------------------------------------------------------------------------------------------


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
