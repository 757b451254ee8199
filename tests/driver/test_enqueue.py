"""Enqueues of Intel's OpenCL runtime, as bench/enqueue.py makes them, through the driver: results, heaps that begin anew, faults."""

from __future__ import annotations

import errno
import gc
import time
import weakref
from collections.abc import Iterator

import numpy as np
import pytest

from bench._program import kernel
from bench.enqueue import GPU, ITEMS, Arguments, Bo, Client, arguments_of, program_of_server
from softgen.bits.generation import device
from softgen.driver.queue.execute import Executor
from softgen.driver.queue.queue import Queues
from softgen.streamer.execute import Streamer
from softgen.threads.dispatcher import EngineDispatcher
from tests.driver.program import Program, served

SETS = 3


@pytest.fixture
def program() -> Iterator[Program]:
    with program_of_server() as made:
        yield made


@pytest.fixture
def prepared_runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The batches that were executed as prepared ones."""
    found: list[int] = []
    run = Streamer._run_prepared
    monkeypatch.setattr(Streamer, "_run_prepared", lambda self, place, batch: (found.append(place.start), run(self, place, batch))[1])
    return found


def sets(program: Program) -> tuple[Client, list[tuple[Bo, Bo]], list[Arguments]]:
    """saxpy with several sets of buffers: each enqueue adds 1, 2 or 3 to all of y."""
    client = Client(program, kernel("saxpy").code, kernel("saxpy").simd)
    buffers = [(Bo(program, 4 * ITEMS), Bo(program, 4 * ITEMS)) for _ in range(SETS)]
    for number, (x, _) in enumerate(buffers):
        x.view[:] = np.full(ITEMS, 2.0 * (1 + number), np.float32).tobytes()
    return client, buffers, [arguments_of(client, x, y) for x, y in buffers]


def test_enqueues_with_sets_of_buffers_in_turn(program: Program, prepared_runs: list[int]) -> None:
    """So many that heaps are full several times."""
    client, buffers, arguments = sets(program)
    rng, counts = np.random.default_rng(1), [0] * SETS
    for number in range(120):
        chosen = number % 2 if number < 60 else int(rng.integers(SETS))
        client.enqueue(arguments[chosen])
        counts[chosen] += 1
    for number, (_, y) in enumerate(buffers):
        assert (np.frombuffer(y.view, np.float32) == counts[number] * (1.0 + number)).all()
    assert len(prepared_runs) > 100


def test_a_fault_bans_the_context(program: Program, prepared_runs: list[int]) -> None:
    """A buffer was closed that the kernel writes to; the same batch of another node's context goes on."""
    client, buffers, arguments = sets(program)
    for _ in range(5):
        client.enqueue(arguments[0])
    assert prepared_runs
    program.ioctl("DRM_IOCTL_GEM_CLOSE", handle=buffers[0][1].handle)
    missing = Arguments(arguments[0].surfaces, arguments[0].cross_thread, (buffers[0][0],))
    client.enqueue(missing)  # its tag is written
    with pytest.raises(OSError) as found:
        client.enqueue(arguments[1])
    assert found.value.errno == errno.EIO
    other = Program(program.folder)
    try:
        client, buffers, arguments = sets(other)
        for _ in range(4):
            client.enqueue(arguments[1])
        assert (np.frombuffer(buffers[1][1].view, np.float32) == 8.0).all()
    finally:
        other.close()


def test_a_context_that_has_ended_leaves_statistics_alone() -> None:
    """`run` keeps the dispatchers of all contexts for its report; their address spaces and workers go with the contexts."""
    dispatchers = list[EngineDispatcher]()

    def dispatcher() -> EngineDispatcher:
        dispatchers.append(EngineDispatcher("t0", 1))
        return dispatchers[-1]

    executor = Executor(device(GPU), [], lambda submission, text: "", print, new_dispatcher=dispatcher)
    with served(GPU, Queues(executor.execute, executor.failed)) as gpu:
        other = Program(gpu.folder)
        client, _, arguments = sets(other)
        client.enqueue(arguments[0])
        (node,) = gpu.server.nodes.values()
        space = weakref.ref(node.contexts.get(0).vm.space)  # type: ignore[union-attr]
        del node
        other.close()
        until = time.monotonic() + 20
        while space() is not None and time.monotonic() < until:
            time.sleep(0.01)
            gc.collect()
        assert space() is None
    (kept,) = dispatchers
    assert [total.dispatches for total in kept.ran.values()] == [1]
