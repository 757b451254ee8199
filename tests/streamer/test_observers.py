"""What is seen of commands while they are executed, and what others do meanwhile: traces, counts of draws, the watchdog, memory."""

from __future__ import annotations

import dataclasses

import pytest

from softgen.device.gpu import COMMANDS, GpuDevice
from softgen.memory.store import MemfdBuffer
from softgen.streamer.execute import Streamer
from softgen.trace.work import Work
from tests.streamer.bench import BATCH, DATA, OTHER, Bench

# -- traces ----------------------------------------------------------------------------------------------------------


def test_a_trace_has_a_line_for_each_command_that_is_executed() -> None:
    """With its engine, address and name; commands that are skipped are not executed."""
    lines, bench = list[tuple[str, str]](), Bench()
    bench.gpu = GpuDevice(bench.device, trace=lambda topic, text: lines.append((topic, text)))
    bench.put(OTHER, bench.pack("3DSTATE_SAMPLE_MASK"), bench.pack("MI_BATCH_BUFFER_END"))
    noop, skip = bench.pack("MI_NOOP"), bench.pack("MI_SET_PREDICATE", predicate_enable=15)
    bench.run(noop, bench.store(0, 1), bench.start(OTHER, second_level_batch_buffer=1), skip, noop)
    store, start = BATCH + 4, BATCH + 4 + 4 * len(bench.store(0, 1))
    assert lines == [("commands", f"render {at:#x} {name}") for at, name in [
        (BATCH, "MI_NOOP"), (store, "MI_STORE_DATA_IMM"), (OTHER, "3DSTATE_SAMPLE_MASK"),
        (start + 4 * len(bench.start(OTHER)), "MI_SET_PREDICATE")]]  # fmt: skip
    lines.clear()
    bench.run(noop, engine="blitter")
    assert lines == [("commands", f"blitter {BATCH:#x} MI_NOOP")]


def test_handlers_trace_where_somebody_listens() -> None:
    lines, bench = list[tuple[str, str]](), Bench()
    for trace in (lambda topic, text: lines.append((topic, text)), None):
        bench.gpu = GpuDevice(bench.device, trace=trace)
        handlers = {**COMMANDS, "3DPRIMITIVE": lambda cs, cmd: cs.trace("draws", f"traced {cs.traced}")}
        bench.gpu.interface = dataclasses.replace(bench.gpu.interface, commands=handlers)
        bench.run(bench.pack("3DPRIMITIVE"))
    assert [text for topic, text in lines if topic == "draws"] == ["traced True"]


# -- counts of draws -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("traced", [False, True])
def test_commands_that_read_registers_find_what_draws_counted(traced: bool) -> None:
    """With and without a trace: commands are executed one by one there."""
    bench, counted = Bench(), ("PS_DEPTH_COUNT",)
    bench.gpu = GpuDevice(bench.device, trace=(lambda topic, text: None) if traced else None)
    handlers = {**COMMANDS, "3DPRIMITIVE": lambda cs, cmd: cs.count(counted, (7,))}
    bench.gpu.interface = dataclasses.replace(bench.gpu.interface, commands=handlers)
    primitive, read = bench.pack("3DPRIMITIVE"), bench.pack("MI_STORE_REGISTER_MEM", register_address=0x2350, memory_address=DATA)
    bench.run(primitive, primitive, read, primitive)
    assert bench.data(1) == [14] and bench.qword(0x2350) == 21


def test_counts_of_draws_are_there_before_registers_are_used() -> None:
    """A command after draws finds what they counted, and what it writes stays."""
    def draw(cs: Streamer, cmd: object) -> None:
        cs.count(counted, (7,))  # pixels

    bench, counted = Bench(), ("PS_DEPTH_COUNT",)
    bench.gpu.interface = dataclasses.replace(bench.gpu.interface, commands={**COMMANDS, "3DPRIMITIVE": draw})
    depth = {"post_sync_operation": 2, "depth_stall_enable": 1, "address": DATA}
    write = bench.pack("PIPE_CONTROL", lri_post_sync_operation=1, address=0x2350, immediate_data=100)
    primitive, plain = bench.pack("3DPRIMITIVE"), bench.pack("PIPE_CONTROL", dc_flush_enable=1)
    bench.run(primitive, plain, primitive, bench.pack("PIPE_CONTROL", **depth), primitive, write, primitive)
    assert bench.data(2) == [14, 0] and bench.qword(0x2350) == 107


# -- the watchdog ----------------------------------------------------------------------------------------------------


def test_the_watchdog_sees_commands_that_begin_while_it_runs() -> None:
    """Each of them is looked at once: the clock, which ticks when it is read, has ticked once for each."""
    bench, threshold, control = Bench("icl"), 0x217C, 0x2178
    noop = bench.pack("MI_NOOP")
    bench.run(noop, bench.load({threshold: 3}), bench.load({control: 0xFFFFFFFF}), *[noop] * 7, bench.load({control: 0}), *[noop] * 9)
    assert bench.causes() == ["timeout"] * 2


# -- memory ----------------------------------------------------------------------------------------------------------


def test_commands_that_others_wrote_while_one_waited_are_executed() -> None:
    """They had been read ahead when the wait began."""
    bench = Bench()
    wait = bench.pack("MI_SEMAPHORE_WAIT", compare_operation=4, semaphore_data_dword=1, semaphore_address=DATA, wait_mode=1)
    bench.put(BATCH, wait, bench.store(4, 7), bench.store(8, 7), bench.pack("MI_BATCH_BUFFER_END"))
    execution = bench.gpu.begin(Work("render", bench.space, BATCH))
    assert not execution.run()
    bench.put(BATCH, wait, bench.store(4, 9), bench.pack("MI_BATCH_BUFFER_END"))
    bench.put(DATA, [1])
    assert execution.run() and bench.data(3) == [1, 9, 0]


@pytest.mark.parametrize("gpu", ["g45", "kbl"])
def test_a_batch_goes_on_at_the_beginning_of_the_space_after_its_end(gpu: str) -> None:
    """Whatever its commands need: a handler, or more."""
    bench = Bench(gpu)
    bench.space.map(0, MemfdBuffer(0x1000, "first page"))
    bench.space.map((1 << bench.space.bits) - 0x1000, MemfdBuffer(0x1000, "last page"))
    first, last = [bench.store(0, 5), bench.load({0x2600: 3})], bench.pack("MI_BATCH_BUFFER_END")
    for before in (first, first[::-1]):
        bench.put(DATA, [0, 0])
        bench.put(0, bench.store(4, 6), last)
        start = (1 << bench.space.bits) - 4 * sum(map(len, before))
        bench.put(start, *before)
        bench.gpu.execute(Work("render", bench.space, start))
        assert bench.data(2) == [5, 6]
