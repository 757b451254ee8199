"""One device for all submitters: contexts keep their own registers, engines run side by side, executions park and resume."""

from __future__ import annotations

import itertools
import struct
import threading
from collections.abc import Callable
from typing import Any

import pytest

from softgen.bits.catalogue import layout
from softgen.bits.generation import device
from softgen.command import Counters
from softgen.device import execution
from softgen.device.gpu import GpuDevice, handled_commands
from softgen.errors import SoftgenError
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.streamer.interface import SubmissionHooks
from softgen.threads.dispatcher import EngineDispatcher
from softgen.trace.work import Work
from tests.streamer.bench import BATCH, DATA, GPR, OTHER, Bench

BLITTER = 0x22000
UNKNOWN = 0x7FF4  # on no page
MASKED = 0x20D8  # CS_DEBUG_MODE2


def run(bench: Bench, *commands: list[int], context: int = 0, engine: str = "render") -> None:
    bench.put(BATCH, *commands, bench.pack("MI_BATCH_BUFFER_END"))
    bench.gpu.execute(Work(engine, bench.space, BATCH, context=context))


def kept(bench: Bench, offset: int, context: int, engine: str = "render") -> int:
    """A register as a context's command reads it."""
    run(bench, bench.pack("MI_STORE_REGISTER_MEM", register_address=offset, memory_address=DATA), context=context, engine=engine)
    return bench.data(1)[0]


# -- registers of contexts -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gpu", ["gm965", "g45", "ivb", "hsw", "bdw", "skl", "icl"])
def test_contexts_do_not_see_each_others_registers(gpu: str) -> None:
    bench = Bench(gpu)
    run(bench, bench.load({UNKNOWN: 5}), context=1)
    assert (kept(bench, UNKNOWN, 2), kept(bench, UNKNOWN, 1)) == (0, 5)
    run(bench, bench.load({UNKNOWN: 6}), context=2)
    assert (kept(bench, UNKNOWN, 1), kept(bench, UNKNOWN, 2)) == (5, 6)
    assert bench.gpu.read_register(UNKNOWN) == 6  # a host sees the context that ran last


def test_general_and_predicate_registers_are_saved_with_their_context() -> None:
    bench = Bench()
    run(bench, bench.load({GPR: 1, 0x2400: 7, 0x2408: 7}), bench.pack("MI_PREDICATE", load_operation=2, compare_operation=2), context=1)
    run(bench, bench.load({GPR: 2}), bench.pack("MI_PREDICATE", load_operation=2, compare_operation=1), context=2)
    assert (kept(bench, GPR, 1), kept(bench, 0x2418, 1), kept(bench, GPR, 2), kept(bench, 0x2418, 2)) == (1, 1, 2, 0)


def test_masked_registers_merge_within_their_context() -> None:
    bench = Bench()
    run(bench, bench.load({MASKED: 0x0010_0010}), bench.load({MASKED: 0x0001_0001}), context=1)
    run(bench, bench.load({MASKED: 0x0002_0002}), context=2)
    assert (kept(bench, MASKED, 1), kept(bench, MASKED, 2)) == (0x11, 0x2)


def test_registers_of_engine_and_gpu_are_shared() -> None:
    """ICL 1909-1993 lists what images save; a mailbox between engines and the no-op's number are not in it."""
    bench = Bench()
    run(bench, bench.pack("MI_NOOP", identification_number_register_write_enable=1, identification_number=0x77), context=1)
    nopid = layout("NOPID", 9.0)
    assert kept(bench, (nopid.offset or 0) + (0x2000 if nopid.relative else 0), 2) == 0x77


def test_a_context_has_registers_of_its_own_on_each_engine() -> None:
    bench = Bench()
    run(bench, bench.load({UNKNOWN: 5}), context=1)
    assert kept(bench, UNKNOWN, 1, "blitter") == 0


def test_a_ring_goes_on_with_the_registers_of_the_context_it_loaded() -> None:
    """MI_SET_CONTEXT loads it; a batch that is submitted without a ring has the registers of its own context."""
    bench = Bench("ivb")
    store = bench.pack("MI_STORE_REGISTER_MEM", register_address=UNKNOWN, memory_address=DATA)
    bench.ring(bench.pack("MI_SET_CONTEXT", logical_context_address=0x7000, restore_inhibit=1), bench.load({UNKNOWN: 5}))
    bench.ring(store)
    assert bench.data(1) == [5]
    bench.run(store)
    assert bench.data(1) == [0]


# -- executions ----------------------------------------------------------------------------------------------------------


def semaphore(bench: Bench, **more: int) -> list[int]:
    return bench.pack("MI_SEMAPHORE_WAIT", semaphore_address=DATA, semaphore_data_dword=1, compare_operation=4, **more)


def test_an_execution_is_parked_and_resumed_with_its_own_registers() -> None:
    bench = Bench()
    store = bench.pack("MI_STORE_REGISTER_MEM", register_address=GPR, memory_address=DATA + 8)
    bench.put(BATCH, bench.load({GPR: 1}), semaphore(bench), store, bench.pack("MI_BATCH_BUFFER_END"))
    bench.put(OTHER, bench.load({GPR: 2}), bench.store(0, 1), bench.pack("MI_BATCH_BUFFER_END"))
    first = bench.gpu.begin(Work("render", bench.space, BATCH, context=1))
    assert not first.run() and first.counters.commands == 1
    bench.gpu.execute(Work("render", bench.space, OTHER, context=2))
    assert first.run() and bench.data(3)[2] == 1
    assert first.counters.commands == 4 and bench.gpu.counters.commands == 7


def test_a_wait_that_nothing_ends_is_an_error() -> None:
    bench = Bench()
    bench.put(BATCH, semaphore(bench), bench.pack("MI_BATCH_BUFFER_END"))
    execution = bench.gpu.begin(Work("render", bench.space, BATCH))
    assert not execution.run()
    assert "MI_SEMAPHORE_WAIT at 0x10000" in str(execution.stuck()) and "waits for ever" in str(execution.stuck())
    with pytest.raises(SoftgenError, match="waits for ever"):
        bench.gpu.execute(Work("render", bench.space, BATCH))


def test_a_gpus_own_hooks_are_those_it_is_made_with() -> None:
    """Without them nothing stops work, errors are raised, and engines dispatch threads."""
    own = GpuDevice(device("skl")).hooks
    assert isinstance(own.dispatcher, EngineDispatcher) and own.drawn is None
    assert not own.timed_out() and not own.on_error(SoftgenError("x"))
    dispatcher = EngineDispatcher()
    given = SubmissionHooks(lambda: True, lambda error: True, dispatcher, lambda *drawn: None)
    hooks = GpuDevice(device("skl"), None, given.timed_out, None, given.on_error, dispatcher, None, given.drawn).hooks
    assert hooks == given and hooks.dispatcher is dispatcher


def test_hooks_belong_to_their_submission() -> None:
    bench, errors = Bench(), list[SoftgenError]()
    bench.put(BATCH, bench.pack("MI_LOAD_SCAN_LINES_INCL"), bench.store(0, 3), bench.pack("MI_BATCH_BUFFER_END"))

    def on_error(error: SoftgenError) -> bool:
        errors.append(error)
        return True

    assert bench.gpu.begin(Work("render", bench.space, BATCH), hooks=SubmissionHooks(on_error=on_error)).run()
    assert len(errors) == 1 and bench.data(1) == [3]
    with pytest.raises(SoftgenError, match="MI_LOAD_SCAN_LINES_INCL"):
        bench.gpu.execute(Work("render", bench.space, BATCH))


def test_a_semaphore_in_global_memory_is_read_there() -> None:
    """KBL 1955-1960: Memory Type says whether the address is in the global or in the context's own space."""
    gpu = device("skl")
    machine = GpuDevice(gpu, itertools.count(1).__next__)
    own, everyones = (AddressSpace(name, gpu.generation.address_bits) for name in ("own", "global"))
    own.map(BATCH, MemfdBuffer(0x1000, "batch"))
    own.map(DATA, MemfdBuffer(0x1000, "own data"))
    everyones.map(DATA, MemfdBuffer(0x1000, "global data"))
    bench = Bench("skl")
    for is_global, ready in ((1, everyones), (0, own)):
        own.write(DATA, bytes(4))
        everyones.write(DATA, bytes(4))
        dwords = [*semaphore(bench, memory_type=is_global), *bench.pack("MI_BATCH_BUFFER_END")]
        own.write(BATCH, struct.pack(f"<{len(dwords)}I", *dwords))
        execution = machine.begin(Work("render", own, BATCH, global_space=everyones))
        other = own if ready is everyones else everyones
        other.write(DATA, struct.pack("<I", 1))
        assert not execution.run()
        ready.write(DATA, struct.pack("<I", 1))
        assert execution.run()


# -- several host threads --------------------------------------------------------------------------------------------------


def together(*jobs: Callable[[], None]) -> None:
    """Runs jobs on host threads at the same time; their errors are raised here."""
    errors, gate = list[BaseException](), threading.Barrier(len(jobs))

    def work(job: Callable[[], None]) -> None:
        try:
            gate.wait(10)
            job()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    if errors:
        raise errors[0]


def test_engines_run_side_by_side_on_one_device() -> None:
    """Counts add up and no engine disturbs another's registers, however the host interleaves them."""
    gpu = device("skl")
    machine, spaces = GpuDevice(gpu), {}
    rounds, engines = 25, {"render": 0x2600, "blitter": 0x22600, "video": 0x12600, "video_enhance": 0x1A600}
    for engine, register in engines.items():
        bench = Bench("skl")
        math = [bench.load({register: 1}), *[bench.load({UNKNOWN: n}) for n in range(40)], bench.pack("MI_USER_INTERRUPT")]
        store = bench.pack("MI_STORE_REGISTER_MEM", register_address=UNKNOWN, memory_address=DATA)
        bench.put(BATCH, *math, store, bench.pack("MI_BATCH_BUFFER_END"))
        spaces[engine] = bench

    def submit(engine: str) -> None:
        for number in range(rounds):
            spaces[engine].put(DATA, [99])
            machine.execute(Work(engine, spaces[engine].space, BATCH, context=number % 3))
            assert spaces[engine].data(1) == [39]

    together(*(lambda engine=engine: submit(engine) for engine in engines))  # type: ignore[misc]
    assert machine.counters.commands == rounds * len(engines) * 44 and machine.counters.batches == rounds * len(engines)
    assert len(machine.interrupts.events) == rounds * len(engines)


def test_a_host_may_read_registers_while_an_engine_runs() -> None:
    bench = Bench()
    bench.put(BATCH, *[bench.load({UNKNOWN: n, GPR: n}) for n in range(60)], bench.pack("MI_BATCH_BUFFER_END"))

    def submit() -> None:
        for context in range(40):
            bench.gpu.execute(Work("render", bench.space, BATCH, context=context))

    def look() -> None:
        for _ in range(5000):
            assert bench.gpu.read_register(GPR) < 60 and bench.gpu.read_register(BLITTER) == 0

    together(submit, look)


def test_a_host_reads_the_register_of_the_engine_that_ran_last() -> None:
    bench = Bench()
    for engine, value in (("render", 1), ("video", 2), ("render", 3)):
        bench.run(bench.load({UNKNOWN: value}), engine=engine)
        assert bench.gpu.read_register(UNKNOWN) == value


def test_whether_anything_has_written_a_register() -> None:
    """A host, or the context that any engine ran last."""
    bench = Bench()
    written = bench.gpu.register_written
    assert not written(UNKNOWN) and not written(GPR)
    bench.run(bench.load({UNKNOWN: 0}))
    bench.run(bench.load({GPR: 0}), engine="video")
    assert written(UNKNOWN) and written(GPR) and not written(UNKNOWN + 4)
    bench.gpu.write_register(UNKNOWN + 4, 0)
    assert written(UNKNOWN + 4)


def test_what_a_host_writes_it_and_the_loaded_context_read() -> None:
    bench = Bench()
    bench.run(bench.load({UNKNOWN: 1}))
    bench.gpu.write_register(UNKNOWN, 2)
    assert bench.gpu.read_register(UNKNOWN) == 2
    bench.run(bench.pack("MI_STORE_REGISTER_MEM", register_address=UNKNOWN, memory_address=DATA))
    assert bench.data(1) == [2]


def test_another_batch_of_a_context_begins_as_the_first_did() -> None:
    """What a submission leaves does not outlive it: a predicate that skips commands. Counts go on."""
    bench = Bench()
    bench.put(BATCH, bench.store(0, 1), bench.pack("MI_SET_PREDICATE", predicate_enable=1), bench.pack("MI_BATCH_BUFFER_END"))
    first = bench.gpu.begin(Work("render", bench.space, BATCH))
    first.run_to_end()
    before = first.streamer.skipping
    bench.put(OTHER, bench.store(4, 2), bench.pack("MI_BATCH_BUFFER_END"))
    second = bench.gpu.begin_again(first, OTHER)
    second.run_to_end()
    assert before and not second.streamer.skipping
    assert (bench.space.read32(DATA), bench.space.read32(DATA + 4)) == (1, 2)
    assert second.counters.commands == bench.gpu.counters.commands == 5 and bench.gpu.counters.batches == 2


def test_the_total_has_what_restarted_executions_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of those that are gone, too, of which nothing is kept."""
    monkeypatch.setattr(execution, "FEW", 3)
    bench = Bench()
    bench.put(BATCH, bench.store(0, 1), bench.pack("MI_BATCH_BUFFER_END"))
    total, expected = bench.gpu.counters, 0
    for _ in range(10):
        made = bench.gpu.begin(Work("render", bench.space, BATCH))
        made.run_to_end()
        for _ in range(3):
            made = bench.gpu.begin_again(made, BATCH)
            made.run_to_end()
        expected += 4
        assert len(bench.gpu._total._followed) <= 4
    assert bench.gpu.counters is total and total.batches == expected and total.commands == 2 * expected
    bench.gpu.begin_again(made, BATCH).run_to_end()
    assert total.batches == expected and bench.gpu.counters.batches == total.batches == expected + 1
    del made
    assert bench.gpu.counters.batches == expected + 1 and not bench.gpu._total._followed


class Owner:
    """What is followed, as long as it lives."""


def test_executions_that_are_gone_are_dropped_before_there_are_twice_as_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "FEW", 3)
    total = execution.CounterTotal()

    def followed(owner: Any) -> int:
        total.follow(owner, Counters(batches=3), Counters(batches=1))
        return len(total._followed)

    assert [followed(Owner()) for _ in range(6)] == [1, 2, 1, 2, 1, 2] and total().batches == 12
    alive = [Owner() for _ in range(3)]
    assert [followed(owner) for owner in alive] == [1, 2, 3]
    alive.clear()
    assert [followed(Owner()) for _ in range(5)] == [4, 5, 1, 2, 1] and total().batches == 28


@pytest.mark.parametrize("gpu, engine, bases", [
    ("kbl", "render", [0x2000, 0x2000]), ("kbl", "video", [0x12000, 0x1C000, 0x1C000]), ("ivb", "video", [0x12000, 0x12000]),
    ("icl", "video", [0x1C0000, 0x1C4000, 0x1D0000, 0x1D4000, 0x1D4000]), ("ivb", "video_enhance", [0, 0]),
])  # fmt: skip
def test_engines_of_one_kind_have_registers_of_their_own(gpu: str, engine: str, bases: list[int]) -> None:
    """An instance that the GPU does not have is the last; an engine that it does not have has none."""
    bench = Bench(gpu)
    work = Work(engine, bench.space, BATCH)
    assert [bench.gpu.begin(work, instance=number).streamer.base for number in range(len(bases))] == bases


def test_a_total_is_whole_while_another_thread_adds_it_up(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, found = Bench(), list[int]()
    bench.put(BATCH, bench.store(0, 1), bench.pack("MI_BATCH_BUFFER_END"))
    made = bench.gpu.begin(Work("render", bench.space, BATCH))
    made.run_to_end()
    bench.gpu.begin_again(made, BATCH).run_to_end()
    other = threading.Thread(target=lambda: found.append(bench.gpu.counters.batches))
    copied = execution.replace

    def meanwhile(counters: Counters) -> Counters:
        if other.ident is None:
            other.start()
            other.join(0.2)
        return copied(counters)

    monkeypatch.setattr(execution, "replace", meanwhile)
    assert bench.gpu.counters.batches == 2
    other.join()
    assert found == [2]


def test_another_batch_sees_the_registers_of_its_context() -> None:
    bench = Bench()
    bench.put(BATCH, bench.load({GPR: 7}), bench.pack("MI_BATCH_BUFFER_END"))
    first = bench.gpu.begin(Work("render", bench.space, BATCH))
    first.run_to_end()
    bench.put(OTHER, bench.pack("MI_STORE_REGISTER_MEM", register_address=GPR, memory_address=DATA), bench.pack("MI_BATCH_BUFFER_END"))
    bench.gpu.begin_again(first, OTHER).run_to_end()
    assert bench.space.read32(DATA) == 7 and bench.gpu.read_register(GPR) == 7


def test_another_batch_has_the_registers_of_its_context_after_one_that_switched_to_another() -> None:
    bench = Bench("ivb")
    switch = bench.pack("MI_SET_CONTEXT", logical_context_address=0x7000, restore_inhibit=1)
    bench.put(BATCH, bench.load({UNKNOWN: 3}), switch, bench.load({UNKNOWN: 5}), bench.pack("MI_BATCH_BUFFER_END"))
    first = bench.gpu.begin(Work("render", bench.space, BATCH))
    first.run_to_end()
    store = bench.pack("MI_STORE_REGISTER_MEM", register_address=UNKNOWN, memory_address=DATA)
    bench.put(OTHER, store, bench.load({UNKNOWN: 4}), bench.pack("MI_BATCH_BUFFER_END"))
    found = []
    for _ in range(2):
        bench.gpu.begin_again(first, OTHER).run_to_end()
        found.append(bench.space.read32(DATA))
    assert found == [3, 4] and bench.gpu.read_register(UNKNOWN) == 4


@pytest.mark.parametrize("name", ["MI_STORE_DATA_IMM", "MI_MATH", "PIPE_CONTROL", "MI_SET_CONTEXT", "MEDIA_OBJECT", "GPGPU_WALKER",
                                  "3DPRIMITIVE", "XY_COLOR_BLT"])  # fmt: skip
def test_commands_of_the_streamer_and_of_every_pipeline_are_handled(name: str) -> None:
    assert name in handled_commands("kbl")


def test_a_blit_is_executed() -> None:
    bench = Bench()
    fields = {"32bpp_byte_mask": 3, "color_depth": 3, "raster_operation": 0xF0, "destination_pitch": 8, "destination_x2_coordinate": 2,
              "destination_y2_coordinate": 1, "destination_base_address": DATA, "solid_pattern_color": 0x12345678}  # fmt: skip
    run(bench, bench.pack("XY_COLOR_BLT", **fields), engine="blitter")
    assert bench.data(3) == [0x12345678, 0x12345678, 0]
