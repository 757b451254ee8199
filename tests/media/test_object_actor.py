"""Objects in a walk over a batch: consecutive ones, with flushes between them, run as one dispatch, and before any other command."""

from __future__ import annotations

from typing import Any

import pytest

from softgen.threads.dispatch import ThreadDispatch
from softgen.threads.dispatcher import EngineDispatcher
from softgen.threads.payload import PayloadWriter
from tests.gpgpu.job import dwords
from tests.media.root_threads import GPUS, TICKETS, data, header, job, listed

COUNT = 21
FLUSH: tuple[str, dict[str, Any]] = ("MEDIA_STATE_FLUSH", {})


class Spy(EngineDispatcher):
    """An engine that remembers its dispatches."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.seen: list[ThreadDispatch] = []

    def run(self, context: Any, dispatch: ThreadDispatch, *more: Any) -> Any:
        self.seen.append(dispatch)
        return super().run(context, dispatch, *more)

    @property
    def sizes(self) -> list[int]:
        """Threads of each dispatch."""
        return [sum(dispatch.group_size(n) for n in range(dispatch.groups)) for dispatch in self.seen]


def objects(numbers: range, **more: Any) -> list[tuple[str, dict[str, Any]]]:
    """Objects, each with its number twice as large and a flush behind it."""
    return [item for n in numbers for item in (("MEDIA_OBJECT", {"inline_data": data(2 * n, n, 7), **more}), FLUSH)]


@pytest.mark.parametrize("flushed", [False, True])
@pytest.mark.parametrize("engine", [("reference", 1), ("t0", 1), ("t1", 1), ("t1", 2)], ids=str)
@pytest.mark.parametrize("gpu", GPUS)
def test_consecutive_objects_are_one_dispatch(gpu: str, engine: tuple[str, int], flushed: bool) -> None:
    """After the first, which says what the others have in common; each thread has its own data behind the constants."""
    kernel = TICKETS.replace("r2.0<0", "r2.1<0").replace("r1.0<0", "r1.3<0")
    commands = objects(range(COUNT)) if flushed else [item for item in objects(range(COUNT)) if item is not FLUSH]
    made = job(gpu, kernel, [bytes(4), bytes(16 * COUNT)], *commands, shared=dwords(*[5] * 3, 11, *[0] * 4),
               descriptor={"cross_thread_constant_data_read_length": 1})  # fmt: skip
    spy = Spy(*engine)
    ran = made.run(groups=spy)
    assert sorted(row[3] for row in listed(ran)) == list(range(COUNT)) and {row[2] for row in listed(ran)} == {11}
    assert (ran.gpu.counters.dispatches, ran.gpu.counters.threads) == (COUNT, COUNT)
    assert spy.sizes == [1, COUNT - 1]
    assert isinstance(spy.seen[1].payload, PayloadWriter)


@pytest.mark.parametrize("gpu", GPUS)
def test_objects_that_differ_in_more_than_data_are_another_dispatch(gpu: str) -> None:
    names = ("x_position", "y_position") if gpu == "icl" else ("scoreboard_x", "scoreboard_y")
    where = [{}, dict(zip(names, (3, 4), strict=True)), {}]
    commands = [item for n in range(3) for item in objects(range(3 * n, 3 * n + 3), **where[n])]
    spy = Spy("t1", 1)
    ran = job(gpu, TICKETS, [bytes(4), bytes(16 * 9)], *commands).run(groups=spy)
    assert spy.sizes == [1, 2, 1, 2, 1, 2]
    assert [header(ran, *row[:2])[:2] for row in listed(ran)] == [(0, 0)] * 3 + [(3, 4)] * 3 + [(0, 0)] * 3
    assert [row[2] for row in listed(ran)] == [2 * n for n in range(9)]


@pytest.mark.parametrize("between", ["MI_STORE_DATA_IMM", "PIPE_CONTROL"])
def test_other_commands_come_after_the_threads(between: str) -> None:
    """A store to the counter of tickets: threads before it have theirs, the others begin with the number that it writes."""
    made = job("skl", TICKETS, [bytes(4), bytes(16 * 12)], *objects(range(4)))
    if between == "PIPE_CONTROL":
        store = made.pack(between, post_sync_operation=1, address=made.address(0), immediate_data=8)
    else:
        store = made.pack(between, address=made.address(0), immediate_data=8)
    made.starts_threads = [*(made.starts_threads or []), store, *(made.pack(name, **values) for name, values in objects(range(4, 8)))]
    ran = made.run(groups=(spy := Spy("t1", 1)))
    assert spy.sizes == [1, 3, 4]
    assert [row[2] for row in listed(ran)] == [0, 2, 4, 6, 0, 0, 0, 0, 8, 10, 12, 14]


def test_threads_that_run_together_have_numbers_and_scratch_space_of_their_own() -> None:
    """r0.5 has the thread's number and where its scratch space begins: 16 threads of a group, 1 KiB each; the state says 20 threads."""
    made = job("skl", TICKETS.replace("r2.0<0", "r0.5<0"), [bytes(4), bytes(16 * 20)], *objects(range(20)))
    ran = made.run(groups=(spy := Spy("t1", 1)))
    assert spy.sizes == [1, 19]
    seen = [row[3] for row in listed(ran)][1:17]
    assert len(set(seen)) == min(16, spy.seen[1].threads)


def test_engines_that_watch_threads_get_each_object_alone() -> None:
    spy = Spy("t1", 1)
    spy.prepares = False
    job("skl", TICKETS, [bytes(4), bytes(16 * 5)], *objects(range(5))).run(groups=spy)
    assert spy.sizes == [1] * 5
