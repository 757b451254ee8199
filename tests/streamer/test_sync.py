"""Interrupts, status pages, semaphores and reports."""

from __future__ import annotations

import dataclasses
import struct
from types import SimpleNamespace
from typing import Any

import pytest

from softgen.bits.catalogue import layout
from softgen.command import FieldPlace
from softgen.errors import SoftgenError, Unsupported
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.streamer import sync
from softgen.streamer.parser import Command
from softgen.trace.work import Work
from tests.streamer.bench import BATCH, DATA, OTHER, Bench

HWS_PGA = {"g45": 0x2080, "ivb": 0x4080, "bdw": 0x2080, "icl": 0x2080}


def dwords(bench: Bench, address: int, count: int) -> list[int]:
    return list(struct.unpack(f"<{count}I", bench.space.read(address, 4 * count)))


@pytest.mark.behaviour("KBL-INT-04", "KBL-INT-05", "G45-SYNC-11", "ICL-SYNC-13", "ICL-SYNC-08", "ICL-PC-29", shows="action")
@pytest.mark.parametrize("gpu", ["g45", "ivb", "kbl", "icl"])
def test_interrupts_are_events_and_nothing_stops_for_them(gpu: str) -> None:
    """What a flush writes, and what commands before it wrote, is in memory when its interrupt is raised."""
    bench = Bench(gpu)
    seen = []
    bench.gpu.interrupts.on_event = lambda event: seen.append((event.cause, event.engine, bench.data(3)[0::2]))
    bench.run(
        bench.store(8, 3),
        bench.pack("PIPE_CONTROL", post_sync_operation=1, address=DATA, immediate_data=7, notify_enable=1),
        bench.pack("MI_USER_INTERRUPT"),
        bench.store(0, 8),
    )
    assert seen == [("notify", "render", [7, 3]), ("user", "render", [7, 3])] and bench.data(1) == [8]


def test_a_flush_of_another_engine_notifies_too() -> None:
    bench = Bench()
    bench.run(bench.pack("MI_FLUSH_DW", notify_enable=1), engine="blitter")
    assert [(event.cause, event.engine) for event in bench.gpu.interrupts.events] == [("notify", "blitter")]


@pytest.mark.parametrize("gpu", HWS_PGA)
def test_store_data_index_goes_to_the_status_page(gpu: str) -> None:
    bench = Bench(gpu)
    whole = bench.pack("MI_STORE_DATA_INDEX", offset=0x30, data_dword_0=5, data_dword_1=6)
    with pytest.raises(Unsupported, match=r"MI_STORE_DATA_INDEX at 0x10000 .*no hardware status page is set up"):
        bench.run(whole)
    bench.gpu.registers.write(HWS_PGA[gpu], OTHER | 0xFFF)  # flags stand below the address
    bench.put(OTHER + 0xC4, [9])
    bench.run([whole[0] - 1, *whole[1:3]])
    assert dwords(bench, OTHER + 0xC0, 2) == [5, 9]
    bench.run(whole)
    assert dwords(bench, OTHER + 0xC0, 2) == [5, 6]


@pytest.mark.parametrize(
    "gpu, name, engine", [("ivb", "PIPE_CONTROL", "render"), ("skl", "PIPE_CONTROL", "render"), ("skl", "MI_FLUSH_DW", "blitter")]
)
def test_post_sync_writes_may_go_to_the_status_page(gpu: str, name: str, engine: str) -> None:
    bench = Bench(gpu)
    bench.gpu.registers.write({"render": HWS_PGA.get(gpu, 0x2080), "blitter": 0x22080}[engine], OTHER)
    bench.run(
        bench.pack(name, post_sync_operation=1, store_data_index=1, destination_address_type=1, address=0x100, immediate_data=9),
        engine=engine,
    )
    assert dwords(bench, OTHER + 0x100, 2) == [9, 0]


def test_report_head_goes_to_dword_4() -> None:
    bench = Bench()
    bench.gpu.registers.write(0x2080, OTHER)
    bench.put(OTHER, [0xFFFFFFFF] * 6)
    bench.ring(bench.pack("MI_NOOP"), bench.pack("MI_NOOP"), bench.pack("MI_REPORT_HEAD"))
    assert dwords(bench, OTHER, 6) == [*[0xFFFFFFFF] * 4, 8, 0xFFFFFFFF]


@pytest.mark.behaviour("KBL-STAT-02", shows="action")
@pytest.mark.parametrize("gpu", ["bdw", "kbl", "icl"])
def test_a_performance_report(gpu: str) -> None:
    """256 bytes: its number, the time, the context, ticks; 36 counters of 40 bits less four, then 8 and 8 of 32."""
    bench = Bench(gpu)
    bench.put(DATA, [0xFFFFFFFF] * 65)
    bench.run(bench.pack("MI_REPORT_PERF_COUNT", memory_address=DATA, report_id=0x1234))
    found = dwords(bench, DATA, 65)
    assert found[0] == 0x1234 and found[1] == found[3] == 0 and found[64] == 0xFFFFFFFF and not any(found[4:64])
    page = layout("PERFORMANCE_COUNTER_REPORT", bench.device.generation.number)
    record = page.unpack([*range(64)])
    assert [item.low for item in record.a_counter] == [*range(4, 40)] and [item.count for item in record.c_counter] == [*range(56, 64)]
    assert record.a_counter_high[4].high == 41 and len(record.a_counter_high) == 32


def test_a_performance_report_of_another_format_is_refused() -> None:
    bench = Bench("hsw")
    with pytest.raises(Unsupported, match="the report's format on this generation is on no page"):
        bench.run(bench.pack("MI_REPORT_PERF_COUNT", memory_address=DATA))


def test_a_semaphore_may_be_a_register() -> None:
    bench = Bench()
    wait = bench.pack(
        "MI_SEMAPHORE_WAIT", register_poll_mode=1, wait_mode=1, compare_operation=4, semaphore_data_dword=5, semaphore_address=0x2600
    )
    with pytest.raises(SoftgenError, match="waits for ever: register 0x2600 holds 0x0, sad_equal_sdd 0x5"):
        bench.run(wait)
    bench.run(bench.load({0x2600: 5}), wait, bench.store(0, 1))
    assert bench.data(1) == [1]


@pytest.mark.parametrize("gpu", ["bdw", "kbl", "icl"])
@pytest.mark.parametrize("memory_type, wanted", [(0, 5), (1, 6)])
def test_a_semaphore_is_in_the_space_its_memory_type_names(gpu: str, memory_type: int, wanted: int) -> None:
    """The same address holds 5 in the context's space and 6 in the global one (MI_SEMAPHORE_WAIT, memory type)."""
    bench, other, page = Bench(gpu), AddressSpace("global", 48), MemfdBuffer(0x1000, "global page")
    other.map(DATA, page)
    page.array[0] = 6
    bench.put(DATA, [5])
    for value in (5, 6):
        wait = bench.pack("MI_SEMAPHORE_WAIT", memory_type=memory_type, wait_mode=1, compare_operation=4, semaphore_data_dword=value,
                          semaphore_address=DATA)  # fmt: skip
        bench.put(BATCH, wait, bench.store(4, value), bench.pack("MI_BATCH_BUFFER_END"))
        work = Work("render", bench.space, BATCH, global_space=other)
        if value == wanted:
            bench.gpu.execute(work)
        else:
            with pytest.raises(SoftgenError, match=f"holds {wanted:#x}, sad_equal_sdd {value:#x}"):
                bench.gpu.execute(work)
    assert bench.data(2) == [5, wanted]


def test_a_mailbox_is_passed_when_it_holds_more() -> None:
    """register_select 2 of the render engine is the blitter's mailbox."""
    bench = Bench("ivb")
    wait = bench.pack("MI_SEMAPHORE_MBOX", compare_semaphore=1, compare_register=1, register_select=2, semaphore_data_dword=4)
    with pytest.raises(SoftgenError, match="waits for ever: the mailbox holds 0x4, not more than 0x4"):
        bench.run(bench.load({0x2044: 4}), wait)
    bench.run(bench.load({0x2044: 5}), wait, bench.store(0, 1))
    assert bench.data(1) == [1]


@pytest.mark.parametrize("gpu, name, values, on_signal, address", [
    ("ivb", "MI_SEMAPHORE_MBOX", {"compare_semaphore": 1, "semaphore_address": DATA}, False, DATA),
    ("ivb", "MI_SEMAPHORE_MBOX", {"compare_semaphore": 1, "compare_register": 1, "register_select": 2}, False, None),
    ("kbl", "MI_SEMAPHORE_WAIT", {"compare_operation": 0, "semaphore_address": DATA, "wait_mode": 1}, False, DATA),
    ("kbl", "MI_SEMAPHORE_WAIT", {"compare_operation": 0, "semaphore_address": DATA, "wait_mode": 0}, True, DATA),
    ("kbl", "MI_SEMAPHORE_WAIT", {"compare_operation": 0, "semaphore_address": 0x2600, "wait_mode": 1, "register_poll_mode": 1}, False,
     None),
])  # fmt: skip
def test_what_is_polled_and_what_waits_for_a_signal(gpu: str, name: str, values: dict[str, int], on_signal: bool,
                                                    address: int | None) -> None:  # fmt: skip
    """And for what of memory: a register has no address there."""
    bench = Bench(gpu)
    bench.put(BATCH, bench.pack(name, **values), bench.pack("MI_BATCH_BUFFER_END"))
    execution = bench.gpu.begin(Work("render", bench.space, BATCH))
    assert not execution.run() and execution.streamer.waiting is not None
    assert execution.streamer.waiting.on_signal == on_signal and execution.streamer.waiting.address == address


@pytest.mark.parametrize("gpu", ["kbl", "icl"])
@pytest.mark.parametrize("inhibited, causes", [(0, []), (1, ["semaphore"])])
def test_a_wait_that_is_not_switched_out_interrupts_once(gpu: str, inhibited: int, causes: list[str]) -> None:
    """However often it is looked at; the next wait interrupts again (KBL 1976-1979)."""
    bench = Bench(gpu)
    control = layout("CTX_SR_CTL", bench.device.generation.number).pack(
        inhibit_synchronous_context_switch=inhibited, inhibit_synchronous_context_switch_mask=1)  # fmt: skip
    waits = [bench.pack("MI_SEMAPHORE_WAIT", compare_operation=4, semaphore_data_dword=1, semaphore_address=DATA + 4 * number, wait_mode=1)
             for number in range(2)]  # fmt: skip
    bench.put(BATCH, bench.load({0x2244: control[0]}), *waits, bench.pack("MI_BATCH_BUFFER_END"))
    execution = bench.gpu.begin(Work("render", bench.space, BATCH))
    for _ in range(3):
        assert not execution.run() and bench.causes() == causes
    bench.put(DATA, [1])
    for _ in range(2):
        assert not execution.run() and bench.causes() == 2 * causes
    bench.put(DATA, [1, 1])
    assert execution.run() and bench.causes() == 2 * causes


def test_a_mailbox_semaphore_in_memory() -> None:
    bench = Bench("hsw")
    update = bench.pack("MI_SEMAPHORE_MBOX", update_semaphore=1, semaphore_data_dword=0x80000009, semaphore_address=DATA)
    wait = bench.pack("MI_SEMAPHORE_MBOX", compare_semaphore=1, semaphore_data_dword=0x80000008, semaphore_address=DATA)
    bench.put(DATA, [0, 0x55])
    bench.run(update, wait, bench.store(8, 1))
    assert bench.data(3) == [0x80000009, 0x55, 1]
    bench.put(DATA, [0x80000008, 0xFFFFFFFF])  # the dword after it does not count
    with pytest.raises(SoftgenError, match="the mailbox holds 0x80000008, not more than 0x80000008"):
        bench.run(wait)


def test_a_count_that_no_product_may_reset_is_refused() -> None:
    bench = Bench()
    with pytest.raises(Unsupported, match="global_snapshot_count_reset"):
        bench.run(bench.pack("PIPE_CONTROL", global_snapshot_count_reset=1))


@pytest.mark.parametrize("select, number", [(0, 0), (2, 1), (1, 2)])
def test_a_mailbox_of_the_engine_is_written(select: int, number: int) -> None:
    """Three registers, in an order of their own (public Linux i915 intel_gpu_commands.h)."""
    bench = Bench("ivb")
    bench.run(bench.pack("MI_SEMAPHORE_MBOX", update_semaphore=1, compare_register=1, register_select=select, semaphore_data_dword=7))
    assert [bench.gpu.read_register(0x2040 + 4 * index) for index in range(3)] == [7 * (index == number) for index in range(3)]


def test_registers_that_stand_elsewhere_are_found_by_their_names() -> None:
    """Gen7's status pages are not among the engine's own registers."""
    bench = Bench("ivb")
    bench.put(BATCH, bench.pack("MI_BATCH_BUFFER_END"))
    streamer = bench.gpu.begin(Work("blitter", bench.space, BATCH)).streamer
    assert streamer.own("RCS_HWS_PGA") == 0x4080 and streamer.own("RING_BUFFER_HEAD") == 0x22034


@pytest.mark.parametrize("prepared", [False, True])
@pytest.mark.parametrize("collected, stalls, operation, notifies, shown, written", [
    (True, 1, 1, 1, [("finished", [0, 0]), ("notify", [7, 0])], [7, 0]), (False, 1, 1, 0, [], [7, 0]),
    (True, 0, 0, 0, [("finished", [0, 0])], [0, 0]),
    (False, 0, 3, 1, [("notify", [0, 0xA])], [0, 0xA]), (False, 0, 0, 1, [("notify", [0, 0])], [0, 0]), (False, 1, 0, 0, [], [0, 0]),
])  # fmt: skip
def test_a_flush_finishes_writes_and_then_interrupts(collected: bool, stalls: int, operation: int, notifies: int, prepared: bool,
                                                     shown: list[tuple[str, list[int]]], written: list[int]) -> None:  # fmt: skip
    """First what pipelines have collected; a stall leaves no work unflushed. The same in a batch that was prepared, where there is nothing
    that they have collected."""
    prepared = prepared and not collected
    bench, seen = Bench(), list[tuple[str, list[int]]]()
    collects: Any = SimpleNamespace(finish=lambda cs: seen.append(("finished", bench.data(2))))
    streamer: Any = bench.gpu.begin(Work("render", bench.space, BATCH)).streamer
    streamer.device = dataclasses.replace(bench.gpu.interface, pipelines=(collects,),
                                          interrupt=lambda base, cause: seen.append((cause, bench.data(2))))  # fmt: skip
    streamer.saved.unfinished, streamer.counters.draws, streamer.counters.dispatches = collected, 1, 2
    page = layout("PIPE_CONTROL", 9.0)
    command = page.pack(command_streamer_stall_enable=stalls, post_sync_operation=operation, notify_enable=notifies, address=DATA,
                        immediate_data=7)  # fmt: skip
    record = page.raw(command)
    if prepared:
        run = sync.PREPARED["PIPE_CONTROL"](streamer, record, lambda name: FieldPlace.of(page.field(name)))
        assert run is not None
        run(streamer, int.from_bytes(struct.pack(f"<{len(command)}I", *command), "little"))
    else:
        streamer._executing = Command(BATCH, BATCH, 1, page, command)
        sync.COMMANDS["PIPE_CONTROL"](streamer, record)
    assert seen == shown and bench.data(2) == written and not streamer.saved.unfinished
    streamer.note_work()
    assert streamer.saved.unflushed is not bool(stalls)
