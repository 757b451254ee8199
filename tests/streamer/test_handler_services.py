"""What a streamer does for handlers of commands: its context's memory, status pages, render targets that a draw wrote to."""

from __future__ import annotations

import dataclasses
from typing import Any, cast

import pytest

from softgen.errors import GpuFault, Unsupported
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.streamer.context import SavedContext
from softgen.streamer.execute import Streamer
from softgen.streamer.interface import SubmissionHooks
from softgen.streamer.latch import LatchedState
from softgen.streamer.latch_rules import latch_table
from softgen.streamer.parser import FetchPointer
from softgen.streamer.window import Window
from tests.streamer.bench import BATCH, DATA, Bench

HWS_PGA = 0x2080


def streamer(bench: Bench, global_space: AddressSpace | None = None, hooks: SubmissionHooks | None = None, **values: Any) -> Streamer:
    gpu, saved = bench.gpu, SavedContext(LatchedState(latch_table(bench.device.generation.number, "render")))
    return Streamer(gpu.interface, "render", bench.space, global_space, saved, gpu.counters, hooks or SubmissionHooks(), **values)


def test_who_submitted_a_draw_is_told_its_render_targets() -> None:
    bench, told = Bench(), list[tuple[object, object]]()
    targets: Any = [object(), object()]
    streamer(bench).drawn(targets)  # nobody listens
    streamer(bench, hooks=SubmissionHooks(drawn=lambda space, images: told.append((space, images)))).drawn(targets)
    assert told == [(bench.space, targets)]


def test_the_time_is_that_of_who_submitted_the_work() -> None:
    assert [streamer(Bench(), hooks=SubmissionHooks(timed_out=lambda up=up: up)).timed_out() for up in (True, False)] == [True, False]


def test_the_work_of_threads_is_counted_and_may_have_changed_memory() -> None:
    class Finishes:
        def run(self, *arguments: object) -> list[tuple[int, int]]:
            asked.append(arguments)
            return [(2, 10), (3, 5)]

    asked, hooks, context, dispatch = list[tuple[object, ...]](), SubmissionHooks(dispatcher=cast(Any, Finishes())), object(), object()
    cs = streamer(Bench(), hooks=hooks)
    for times in (1, 2):
        cs._read_ahead_is_stale = False
        cs.run_threads(cast(Any, context), cast(Any, dispatch))
        assert (cs.counters.threads, cs.counters.instructions, cs._read_ahead_is_stale) == (5 * times, 15 * times, True)
    assert asked == [(context, dispatch, hooks.timed_out)] * 2


@pytest.mark.parametrize("privileged, is_global, found", [(None, 1, "global"), (True, 1, "global"), (False, 1, "own"), (True, 0, "own"),
                                                          (None, 0, "own")])  # fmt: skip
def test_the_global_space_is_for_privileged_batches(privileged: bool | None, is_global: int, found: str) -> None:
    """And for what is executed outside of any batch."""
    bench, other = Bench(), AddressSpace("global", 48)
    other.map(DATA, MemfdBuffer(0x1000, "global page"))
    spaces = {"own": bench.space, "global": other}
    cs = streamer(bench, other)
    if privileged is not None:
        cs.place = FetchPointer(Window(bench.space), BATCH, BATCH, 1, privileged=privileged)
    assert cs.memory(is_global) is spaces[found]
    cs.write(DATA + 4, b"\x05\0\0\0", is_global)
    assert cs.read(DATA + 4, 4, is_global) == b"\x05\0\0\0"
    assert {name: space.read32(DATA + 4) for name, space in spaces.items()} == {"own": 0, "global": 0, found: 5}


def test_commands_read_and_write_their_own_space_unless_they_ask_for_the_global_one() -> None:
    """Also where they may."""
    bench, other = Bench(), AddressSpace("global", 48)
    other.map(DATA, MemfdBuffer(0x1000, "global page"))
    cs = streamer(bench, other)
    cs._read_ahead_is_stale = False
    cs.write(DATA, b"\x05\0\0\0")
    assert cs._read_ahead_is_stale and (bench.space.read32(DATA), other.read32(DATA)) == (5, 0)
    assert cs.read(DATA, 4) == b"\x05\0\0\0" and cs.memory() is bench.space


@pytest.mark.parametrize("gpu, canonical, address", [
    ("kbl", 0xFFFF_8000_0000_1001, 0x8000_0000_1001), ("kbl", 0x7FFF_FFFF_FFFF, 0x7FFF_FFFF_FFFF), ("kbl", 1 << 48, 0),
    ("g45", 0x1_2345_6789, 0x2345_6789), ("g45", 0xFFFF_FFFF, 0xFFFF_FFFF),
])  # fmt: skip
def test_addresses_have_as_many_bits_as_the_space(gpu: str, canonical: int, address: int) -> None:
    cs = streamer(Bench(gpu))
    assert cs.address(canonical) == address
    cs.start_batch(canonical)
    assert cs.place is not None and (cs.place.start, cs.place.address) == (address, address)


@pytest.mark.parametrize("per_process, offset", [(0, 0x20), (1, 0x820)])
def test_status_pages_are_in_the_global_space(per_process: int, offset: int) -> None:
    """The engine's register has flags below the address of its page."""
    bench, other = Bench(), AddressSpace("global", 48)
    page = MemfdBuffer(0x1000, "status pages")
    other.map(0x5000, page)
    bench.gpu.registers.write(HWS_PGA, 0x5FFF)
    cs = streamer(bench, other, process_page=0x5800)
    cs._read_ahead_is_stale = False
    cs.write_status(0x20, b"\x07\0\0\0", per_process)
    assert {at: byte for at, byte in enumerate(page.array) if byte} == {offset: 7} and cs._read_ahead_is_stale


@pytest.mark.parametrize("per_process, what", [(0, "no hardware status page"), (1, "no per-process hardware status page")])
def test_a_status_page_that_is_not_there_is_refused(per_process: int, what: str) -> None:
    with pytest.raises(Unsupported, match=f"{what} is set up"):
        streamer(Bench()).write_status(0, bytes(4), per_process)


def test_remarks_name_the_command_if_there_is_one() -> None:
    bench, lines = Bench(), list[str]()
    bench.gpu.interface = dataclasses.replace(bench.gpu.interface, warn=lines.append, commands={
        **bench.gpu.interface.commands, "3DPRIMITIVE": lambda cs, cmd: cs.warn("odd")})  # fmt: skip
    streamer(bench).warn("odd")
    bench.run(bench.pack("MI_NOOP"), bench.pack("3DPRIMITIVE"))
    assert lines == ["odd", "3DPRIMITIVE at 0x10004 (batch 0x10000, gen 9): odd"]


@pytest.mark.parametrize("by, named", [("", ""), ("thread 3", ", thread 3")])
def test_a_fault_is_by_the_command_and_what_it_started(by: str, named: str) -> None:
    def draw(cs: object, cmd: object) -> None:
        raise GpuFault(0x900000, "read", "bench", by, "nobody mapped it")

    bench = Bench()
    bench.gpu.interface = dataclasses.replace(bench.gpu.interface, commands={**bench.gpu.interface.commands, "3DPRIMITIVE": draw})
    with pytest.raises(GpuFault) as caught:
        bench.run(bench.pack("MI_NOOP"), bench.pack("3DPRIMITIVE"))
    fault = caught.value
    assert (fault.address, fault.access, fault.space, fault.why) == (0x900000, "read", "bench", "nobody mapped it")
    assert fault.by == f"3DPRIMITIVE at 0x10004 (batch 0x10000, gen 9){named}"


@pytest.mark.parametrize("gpu", ["ivb", "kbl", "icl"])
def test_the_system_routine_is_the_one_that_a_command_has_set(gpu: str) -> None:
    """There is none before."""
    bench, seen = Bench(gpu), list[int | None]()
    bench.gpu.interface = dataclasses.replace(bench.gpu.interface, commands={
        **bench.gpu.interface.commands, "3DPRIMITIVE": lambda cs, cmd: seen.append(cs.system_routine)})  # fmt: skip
    draw = bench.pack("3DPRIMITIVE")
    bench.run(draw, bench.pack("STATE_SIP", system_instruction_pointer=0x1230), draw, bench.pack("STATE_SIP"), draw)
    assert seen == [None, 0x1230, 0]


def test_a_batch_that_is_started_is_read_from_memory_as_it_is_then() -> None:
    bench = Bench()
    cs = streamer(bench)
    for value in (5, 7):  # where something was read ahead before, too
        bench.space.write32(BATCH, value)
        cs.start_batch(BATCH)
        assert cs.place is not None and cs.place.window.first(BATCH) == value
