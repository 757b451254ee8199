"""Submissions that wait at semaphores: how often they look, and when they are woken."""

from __future__ import annotations

import struct
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

from softgen.bits.generation import device
from softgen.driver.queue import parking
from softgen.driver.queue.execute import ContextEngine, Executor
from softgen.driver.queue.parking import LOOK_AGAIN, LOOK_SELDOM, Parking
from tests.driver.execbuffer import END, PINNED, SEMAPHORE, STORE, buffer, content, row, submit
from tests.driver.program import Program, served

ASYNC = 1 << 6  # EXEC_OBJECT_ASYNC
FLAG, TARGET, BATCH = 0x30000, 0x20000, 0x10000


def test_who_waits_for_a_buffer_is_woken() -> None:
    here, first, second = Parking(), *(object() for _ in range(2))
    here.written([first])  # type: ignore[list-item]
    with here.parked(first) as one, here.parked(first) as two, here.parked(second) as three, here.parked(None) as four:  # type: ignore[arg-type]
        here.written([first, object()])  # type: ignore[list-item]
        assert [woken.is_set() for woken in (one, two, three, four)] == [True, True, False, False] and here.count == 4
    assert not here.waiting and not here.count


def test_looks_become_more_seldom() -> None:
    here, waited, found = Parking(), 0.0, list[float]()
    with here.parked(None):
        for _ in range(8):
            found.append(here.interval(waited))
            waited += found[-1]
    assert found == [LOOK_AGAIN * times for times in (1, 1, 2, 4, 8, 16, 16, 16)] and found[-1] == LOOK_SELDOM


def test_all_together_look_as_often_as_a_single_one() -> None:
    here = Parking()
    here.count = 300
    assert [here.interval(waited) for waited in (0.0, 1.0)] == [300 * LOOK_AGAIN] * 2


# -- contexts of a program


def store(address: int, value: int) -> bytes:
    return struct.pack("<4I", STORE, address, 0, value)


def semaphore(value: int) -> bytes:
    """MI_SEMAPHORE_WAIT: poll until the flag equals the value."""
    return struct.pack("<4I", SEMAPHORE | 1 << 15 | 4 << 12, value, FLAG, 0)


def work(program: Program, buffers: dict[int, int], code: bytes) -> int:
    """A context of its own executes some commands; the handle of its batch."""
    context = program.ioctl("DRM_IOCTL_I915_GEM_CONTEXT_CREATE").context
    batch = buffer(program, code + struct.pack("<2I", END, 0))
    rows = [row(handle, offset=at, flags=PINNED | ASYNC) for at, handle in buffers.items()]
    submit(program, [*rows, row(batch, offset=BATCH, flags=PINNED)], context=context)
    return batch


def test_work_of_another_context_wakes_a_parked_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without waiting for the next look, also where the other one waits in its turn."""
    monkeypatch.setattr(parking, "LOOK_AGAIN", 1000.0)
    monkeypatch.setattr(parking, "LOOK_SELDOM", 1000.0)
    with served("kbl") as gpu:
        program = gpu.program()
        buffers = {FLAG: buffer(program), TARGET: buffer(program)}
        waits = work(program, buffers, semaphore(5) + store(TARGET, 1) + store(FLAG, 6) + semaphore(7) + store(TARGET + 4, 2))
        assert gpu.executor is not None
        end = time.monotonic() + 20
        while not gpu.executor.parking.waiting and time.monotonic() < end:
            time.sleep(0.001)
        work(program, buffers, store(FLAG, 5) + semaphore(6) + store(FLAG, 7))
        program.ioctl("DRM_IOCTL_I915_GEM_WAIT", handle=waits, timeout=20 * 10**9)
        assert content(program, buffers[TARGET])[:2] == (1, 2) and gpu.told == []


def test_many_parked_contexts_leave_the_processor_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fifty that wait for ever look as often as one would, each sooner or later."""
    looks, run, count = list[int](), ContextEngine._pass_semaphores, 50

    def counted(self: Any, execution: Any, submission: Any, slot: Any) -> None:
        wait = slot.wait
        slot.wait = lambda *args: (looks.append(submission.sequence), wait(*args))
        run(self, execution, submission, slot)

    monkeypatch.setattr(ContextEngine, "_pass_semaphores", counted)
    with served("kbl") as gpu:
        program = gpu.program()
        batches = [work(program, {FLAG: buffer(program)}, semaphore(1)) for _ in range(count)]
        assert gpu.executor is not None
        while gpu.executor.parking.count < count:
            time.sleep(0.001)
        time.sleep(0.1)  # those that began when few were parked
        looks.clear()
        time.sleep(0.5)
        assert len(looks) < 0.5 / LOOK_AGAIN + count
        for context in [context for node in gpu.server.nodes.values() for _, context in node.contexts]:
            context.cancelled = True
        for batch in batches:
            program.ioctl("DRM_IOCTL_I915_GEM_WAIT", handle=batch, timeout=20 * 10**9)
        assert not gpu.executor.parking.count


# -- submissions at semaphores


class WaitingExecution:
    """Comes to its end when it has waited at a semaphore of an address so often."""

    def __init__(self, address: int | None, waits: int) -> None:
        self.left, self.counters = waits, SimpleNamespace(commands=1)
        self.streamer = SimpleNamespace(space=None, waiting=None if address == -1 else SimpleNamespace(address=address))

    def run(self) -> bool:
        self.left -= 1
        return self.left < 0


@pytest.mark.parametrize("address, found", [(0x1000, True), (None, False), (-1, False)])
def test_a_submission_is_parked_at_the_buffer_of_its_semaphore(address: int | None, found: bool) -> None:
    """Where it waits for memory: there it is woken. Those that wait for memory of its own buffers look when it begins to wait."""
    executor = Executor(device("kbl"), [], lambda submission, text: "", lambda text: None)
    engine, bo, own, seen = ContextEngine(executor, "rcs0"), object(), object(), list[Any]()
    executor.device = SimpleNamespace(begin=lambda *work: WaitingExecution(address, 3))  # type: ignore[assignment]
    bound = SimpleNamespace(copies=[], bos=[own], at=lambda where: bo if where == 0x1000 else None)
    work: Any = SimpleNamespace(bound=bound, vm=SimpleNamespace(space=None), batch=0)
    with executor.parking.parked(own) as other:  # type: ignore[arg-type]

        def wait(seconds: float, woken: threading.Event) -> None:
            seen.append((other.is_set(), woken.is_set(), bo in executor.parking.waiting, executor.parking.count))
            executor.parking.written([bo])  # type: ignore[list-item]
            woken.set()

        engine.run(work, SimpleNamespace(wait=wait, submission=SimpleNamespace(context=SimpleNamespace(cancelled=False))))  # type: ignore[arg-type]
    assert seen == [(True, False, found, 2)] * 3 and not executor.parking.waiting and executor.parking.count == 0
