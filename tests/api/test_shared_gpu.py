"""A Gpu that several Python threads share."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest

import softgen
from softgen.api.memory import Heap
from tests.api.test_execute import IGA

THREADS, ROUNDS = 4, 12


@pytest.mark.parametrize("engine", ["reference", "auto"])
def test_each_thread_gets_its_own_results_and_counts(engine: str) -> None:
    code = softgen.assemble(IGA, "kbl")
    begin = threading.Barrier(THREADS)
    with softgen.Gpu("kbl", engine=engine, threads=2) as gpu:

        def work(number: int) -> list[tuple[list[int], int]]:
            begin.wait(100)
            found = []
            for turn in range(ROUNDS):
                x = gpu.empty(16 + turn, np.int32)
                run = gpu.execute(code, simd=16, payload=np.arange(16, dtype=np.int32), surfaces=[x], scratch_bytes=1024 << turn % 3)
                found.append((x.array[:16].tolist(), run.instructions))
                x.free()
            return found

        with ThreadPoolExecutor(THREADS) as pool:
            for found in pool.map(work, range(THREADS)):
                assert found == [(list(range(0, 48, 3)), 5)] * ROUNDS


def test_allocations_of_threads_do_not_overlap() -> None:
    heap, begin = Heap("memory", 32), threading.Barrier(THREADS)

    def work(number: int) -> list[tuple[int, int]]:
        begin.wait(100)
        kept = []
        for turn in range(50):
            one, two = heap.allocate(5000 * (1 + turn % 3), "one"), heap.allocate(100, "two")
            kept.append((two.address, two.address + two.store.capacity))
            heap.free(one)
        return kept

    with ThreadPoolExecutor(THREADS) as pool:
        places = sorted(place for found in pool.map(work, range(THREADS)) for place in found)
    assert len(places) == 50 * THREADS and all(first[1] < second[0] for first, second in pairwise(places))
    heap.close()
