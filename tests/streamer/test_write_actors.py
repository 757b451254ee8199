"""Flushes and stores that a walk executes leave what their handlers leave: memory, registers, remarks, errors, the state of the context."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from softgen.bits.catalogue import catalogue
from softgen.errors import SoftgenError
from softgen.streamer.write_actors import FlushActor, StoreActor
from softgen.trace.work import Work
from tests.streamer.bench import BATCH, DATA, Bench, count_draw

GPUS = ["g45", "ivb", "hsw", "bdw", "kbl", "icl"]
LENGTH = 60  # commands of a batch
UNMAPPED = 0x7000_0000
# Fields of PIPE_CONTROL that drivers set, some that break rules, and some that are Python's.
FIELDS = ("depth_stall_enable", "render_target_cache_flush_enable", "depth_cache_flush_enable", "command_streamer_stall_enable",
          "texture_cache_invalidation_enable", "state_cache_invalidation_enable", "tile_cache_flush_enable", "dc_flush_enable",
          "notify_enable", "indirect_state_pointers_disable", "destination_address_type")  # fmt: skip


class Executed:
    """What is left of a batch, executed so often, by walks or by handlers alone; commands that walks have executed."""

    def __init__(self, gpu: str, commands: list[list[int]], times: int, walks: bool, on_error: bool = False) -> None:
        bench, self.walked, self.errors = Bench(gpu), 0, list[str]()
        handlers: dict[str, Any] = {**bench.gpu.interface.commands, "3DPRIMITIVE": count_draw}
        if not walks:
            handlers.update({name: self._handler(handlers[name]) for name in bench.gpu.interface.actors})
        bench.gpu.interface = replace(bench.gpu.interface, commands=handlers)
        bench.gpu.hooks = replace(bench.gpu.hooks, on_error=self._on_error if on_error else lambda error: False)
        bench.put(BATCH, *commands, bench.pack("MI_BATCH_BUFFER_END"))
        states = []
        for _ in range(times):
            execution = bench.gpu.begin(Work("render", bench.space, BATCH))
            try:
                execution.run_to_end()
            except SoftgenError as error:
                self.errors.append(str(error))
            saved = execution.streamer.saved
            states.append((saved.unflushed, saved.earlier))
        self.left = (bytes(bench.space.read(DATA, 0x1000)), [bench.gpu.read_register(at) for at in range(0x2000, 0x2100, 4)],
                     list(bench.gpu.remarks), bench.causes(), bench.gpu.counters.commands, states, self.errors)  # fmt: skip

    def _handler(self, handler: Any) -> Any:
        """One that no actor stands for."""
        return lambda cs, cmd: handler(cs, cmd)

    def _on_error(self, error: SoftgenError) -> bool:
        self.errors.append(str(error))
        return True


@pytest.fixture
def walked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The commands of each walk that its actors have executed."""
    found = list[int]()
    for kind, count in ((FlushActor, "flushes"), (StoreActor, "stores")):
        def leave(actor: Any, cs: Any, old: Any = kind.leave, count: str = count) -> None:
            found.append(getattr(actor.struct, count))
            old(actor, cs)

        monkeypatch.setattr(kind, "leave", leave)
    return found


def flush(bench: Bench, chosen: random.Random) -> list[int]:
    """A flush of a few kinds, to another address with other data each time."""
    page = catalogue().layout("PIPE_CONTROL", bench.device.generation.number)
    names = {field.name for field in page.fields}
    fields = {name: 1 for name in chosen.sample(FIELDS, chosen.choice((0, 1, 2, 3))) if name in names}
    operation = chosen.choice((0, 0, 1, 1, 1, 3))
    return bench.pack("PIPE_CONTROL", post_sync_operation=operation, address=DATA + 8 * chosen.randrange(64),
                      immediate_data=chosen.getrandbits(64), **fields)  # fmt: skip


def commands(gpu: str, seed: int) -> list[list[int]]:
    """Flushes and stores between draws and state; a small number of kinds, so that most come again."""
    bench, chosen = Bench(gpu), random.Random(seed)
    made = [flush(bench, chosen) for _ in range(12)]
    draw = bench.pack("3DPRIMITIVE", vertex_count_per_instance=3, instance_count=1)
    for _ in range(6):
        made += [bench.store(4 * chosen.randrange(128), chosen.getrandbits(chosen.choice((31, 62)))), [0], draw]
    made.append(bench.pack("PIPELINE_SELECT", pipeline_selection=0, **({"mask_bits": 3} if gpu in ("kbl", "icl") else {})))
    if bench.device.generation.number < 8:
        made.append(bench.pack("MI_FLUSH"))
    return [chosen.choice(made) for _ in range(LENGTH)]


@pytest.mark.parametrize("gpu", GPUS)
def test_walks_leave_what_handlers_leave(gpu: str, walked: list[int]) -> None:
    for seed in range(6):
        batch = commands(gpu, seed)
        assert Executed(gpu, batch, 3, walks=True).left == Executed(gpu, batch, 3, walks=False).left
    assert sum(walked) > 3 * LENGTH  # of 18 * LENGTH commands


@pytest.mark.parametrize("gpu", GPUS)
def test_flushes_after_a_draw_need_python_once_for_each_kind(gpu: str, walked: list[int]) -> None:
    bench = Bench(gpu)
    writes = [bench.pack("PIPE_CONTROL", post_sync_operation=1, address=DATA + 8 * n, immediate_data=n + 1 << 33) for n in range(20)]
    executed = Executed(gpu, writes, 1, walks=True)
    assert sum(walked) >= 19 and not executed.errors
    data = executed.left[0]
    assert [int.from_bytes(data[8 * n : 8 * n + 8], "little") for n in range(20)] == [n + 1 << 33 for n in range(20)]


@pytest.mark.parametrize("on_error", [False, True])
@pytest.mark.parametrize("gpu", ["ivb", "kbl"])
def test_writes_to_memory_that_is_not_mapped(gpu: str, on_error: bool, walked: list[int]) -> None:
    """The error names the command; those after it are executed where the submitter goes on."""
    bench = Bench(gpu)
    fields = {"post_sync_operation": 1, "immediate_data": 5}
    good, bad = (bench.pack("PIPE_CONTROL", address=address, **fields) for address in (DATA, UNMAPPED))
    batch = [good, good, bad, bench.store(16, 7), bench.store(0, 9, UNMAPPED), bench.store(24, 11)]
    runs = [Executed(gpu, batch, 1, walks, on_error) for walks in (True, False)]
    assert runs[0].left == runs[1].left and len(runs[0].errors) == (2 if on_error else 1)
    assert "PIPE_CONTROL" in runs[0].errors[0] and sum(walked) >= 1


def test_a_flush_that_changes_the_next_command(walked: list[int]) -> None:
    """The batch is read after the write."""
    bench = Bench("kbl")
    fields = {"post_sync_operation": 1, "command_streamer_stall_enable": 1}
    size = 4 * len(bench.pack("PIPE_CONTROL"))
    noop = bench.pack("MI_NOOP", identification_number_register_write_enable=1, identification_number=0x55)[0]
    batch = [bench.pack("PIPE_CONTROL", address=DATA, **fields), bench.pack("PIPE_CONTROL", address=BATCH + 2 * size + 8,
             immediate_data=noop, **fields), [0], [0], [0], [0]]  # fmt: skip
    runs = [Executed("kbl", batch, 1, walks) for walks in (True, False)]
    assert runs[0].left == runs[1].left and 0x55 in runs[0].left[1] and sum(walked) >= 1


def test_a_long_row_of_flushes_looks_at_the_time_limit(walked: list[int]) -> None:
    bench, looks = Bench("kbl"), list[int]()
    bench.gpu.hooks = replace(bench.gpu.hooks, timed_out=lambda: looks.append(0) or False)
    bench.space.map(DATA + 0x10_0000, bench.buffer.__class__(0x10000, "flushes"))
    row = bench.pack("PIPE_CONTROL", command_streamer_stall_enable=1) * 1000
    bench.put(DATA + 0x10_0000, row, bench.pack("MI_BATCH_BUFFER_END"))
    bench.gpu.execute(Work("render", bench.space, DATA + 0x10_0000))
    assert sum(walked) >= 999 and len(looks) >= 4


def test_nothing_is_asked_for_whatever_flushes_came_before(walked: list[int]) -> None:
    """A flush of the same kind with an address asks for something (ICL-PC-10)."""
    bench = Bench("icl")
    flushes = bench.pack("PIPE_CONTROL", address=DATA), bench.pack("PIPE_CONTROL")
    for flush in flushes:
        bench.run(*[flush] * 3)
    assert [remark.rpartition(": ")[2] for remark in bench.gpu.remarks] == ["nothing is asked for"] * 3


def test_stores_are_left_to_handlers_where_memory_is_seen_between_them(walked: list[int]) -> None:
    bench, polled = Bench("kbl"), set[bytes]()

    def timed_out() -> bool:
        polled.add(bytes(bench.space.read(DATA, 12)))
        return False

    bench.gpu.hooks = replace(bench.gpu.hooks, ordered=lambda: True, timed_out=timed_out)
    bench.run(*(bench.pack("MI_STORE_DATA_IMM", address=DATA + 4 * number, immediate_data=7 + number) for number in range(3)))
    assert not walked and len(polled) >= 3
