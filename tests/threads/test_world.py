"""Worlds: what registers and local memory hold before anything is written, and the order of groups and threads, on every engine."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise
from typing import Any, cast

import pytest

from softgen.threads.dispatcher import EngineDispatcher
from softgen.threads.payload import Counter as Axis
from softgen.threads.payload import HeaderPatch
from softgen.threads.world import World, _pieces
from tests.gpgpu.engines import Leaving, Recording
from tests.gpgpu.job import END, Job, vector_add
from tests.threads.test_reference import NEIGHBOUR
from tests.threads.workers.test_pool import COUNT

ENGINES = ("reference", "leaving", "t0", "t1")
# The first channel stores a general register, the accumulator, a flag register and a dword of local memory, which nothing has written.
UNWRITTEN = f"""
(W)  mov (8|M0)  r127.0<1>:ud r0.0<8;8,1>:ud
(W)  mov (8|M0)  r10.0<1>:ud 0x0:ud
(W)  send (1|M0) r11 r10 0xC 0x02106EFE
(W)  send (1|M0) null r10 0xC 0x04026E00
(W)  add (1|M0)  r10.0<1>:ud r10.0<0;1,0>:ud 4:ud
(W)  mov (1|M0)  r11.0<1>:ud r60.0<0;1,0>:ud
(W)  send (1|M0) null r10 0xC 0x04026E00
(W)  add (1|M0)  r10.0<1>:ud r10.0<0;1,0>:ud 4:ud
(W)  mov (1|M0)  r11.0<1>:ud acc0.0<0;1,0>:ud
(W)  send (1|M0) null r10 0xC 0x04026E00
(W)  add (1|M0)  r10.0<1>:ud r10.0<0;1,0>:ud 4:ud
(W)  mov (1|M0)  r11.0<1>:ud f1.0<0;1,0>:ud
(W)  send (1|M0) null r10 0xC 0x04026E00
(W)  mov (1|M0)  r60.0<1>:ud 0x5:ud
(W)  mov (1|M0)  f1.0<1>:ud 0x6:ud
{END}
"""


def dispatcher(engine: str, world: World) -> EngineDispatcher:
    make = (lambda name: Leaving()) if engine == "leaving" else None
    return EngineDispatcher(engine, 1, make, world)


@pytest.mark.covering(1)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("fill", [0, 0xAA])
def test_what_nothing_has_written_holds_the_fill_in_every_thread(engine: str, fill: int) -> None:
    job = Job(UNWRITTEN, [bytes(16)], simd=8, shape=(2, 1, 1), ends=(3, 1, 1), local=1024)
    ran = job.run(groups=dispatcher(engine, World(fill=fill)))
    assert ran.buffer(0) == (fill * 0x01010101,) * 4


@pytest.mark.parametrize("engine", ENGINES)
def test_payloads_are_the_same_in_every_world(engine: str) -> None:
    ran = vector_add("skl").run(groups=dispatcher(engine, World(fill=0x55)))
    assert ran.buffer(1) == tuple(range(1000, 1064))


@pytest.mark.covering(1)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_each_group_and_each_thread_runs_once_in_any_order(engine: str, seed: int) -> None:
    job = Job(COUNT, [bytes(4)], simd=8, shape=(3, 2, 1), ends=(5, 7, 2))
    ran = job.run(groups=dispatcher(engine, World(seed=seed)))
    assert ran.buffer(0) == (8 * 6 * 70,) and ran.gpu.counters.threads == 6 * 70


def test_orders_differ_between_seeds_and_are_the_same_for_one() -> None:
    def order(seed: int) -> list[int]:
        recording = Recording()
        Job(COUNT, [bytes(4)], simd=8, shape=(4, 1, 1), ends=(6, 1, 1)).run(groups=cast(Any, recording))
        (_, dispatch), = recording.seen
        parts = list(World(seed=seed).reordered(dispatch))
        return [max(part.patch.values(group)) for part in parts if part.patch for group in range(part.groups)]

    orders = [order(seed) for seed in range(1, 5)]
    assert all(sorted(found) == list(range(6)) for found in orders)
    assert len({tuple(found) for found in orders}) > 1 and order(1) == orders[0]


def test_masks_and_data_of_threads_move_together() -> None:
    """The last thread of a group has fewer channels; barriers still hold all of them."""
    job = Job(NEIGHBOUR, [bytes(16)], simd=8, shape=(4, 1, 1), local=1024, descriptor={"barrier_enable": 1})
    for seed in range(1, 4):
        assert job.run(groups=dispatcher("t1", World(seed=seed))).buffer(0) == (2, 1, 4, 3)
    short = vector_add("skl", ends=1, right=0x00FF)
    assert short.run(groups=dispatcher("t1", World(seed=1))).buffer(1)[:16] == (*range(1000, 1008), *[0] * 8)


def test_pieces_have_all_groups_of_long_axes() -> None:
    patch = HeaderPatch((Axis(2, 100, 4), Axis(0, 3, 24)))
    parts = _pieces(patch, random.Random(1))
    seen: Counter[tuple[int, int]] = Counter()
    for part in parts:
        at = [counter.offset for counter in part.counters]
        seen.update((values[at.index(4)], values[at.index(24)]) for values in map(part.values, range(part.groups)))
    assert len(parts) == 16 and seen == Counter({(x, y): 1 for x in range(2, 102) for y in range(3)})
    starts = [next(counter.start for counter in part.counters if counter.offset == 4) for part in parts]
    assert any(later < earlier for earlier, later in pairwise(starts))
