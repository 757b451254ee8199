"""Strips of groups: threads of neighbouring groups in turn. Nothing but the order of threads may differ from groups one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from softgen.device.gpu import GpuDevice
from softgen.threads.dispatch import ThreadDispatch
from softgen.threads.dispatcher import EngineDispatcher
from softgen.threads.payload import Counter, HeaderPatch, TemplatePayload
from softgen.threads.workers import groups, strips
from tests.gpgpu.job import END, Job
from tests.gpgpu.shaped import ENGINES, FLAT, HEAD, HELD, READS, Shape, outcome
from tests.threads.sets import runs_made
from tests.threads.test_turns import BARRIER, ESCAPES, NOWHERE, THREAD

Orders = npt.NDArray[np.uint32]

ROWS, SIDE = 3, 16  # of a group: as many threads, of so many items
STARTS, ENDS = (2, 1, 1), (10, 4, 3)  # X can be divided by 8
GROUPS = 8 * 3 * 2
MANY_THREADS = {"maximum_number_of_threads": 511}
# The place of an item in surface 1: groups in the order of their numbers, as if those began at 0.
PLACE = """
(W)  add (1|M0) r6.0<1>:d r0.6<0;1,0>:d -1:d
(W)  add (1|M0) r6.1<1>:d r0.7<0;1,0>:d -1:d
(W)  mul (1|M0) r6.0<1>:d r6.0<0;1,0>:d r4.0<0;1,0>:d
(W)  mul (1|M0) r6.1<1>:d r6.1<0;1,0>:d r4.1<0;1,0>:d
(W)  add (1|M0) r6.0<1>:d r6.0<0;1,0>:d r6.1<0;1,0>:d
(W)  add (1|M0) r6.0<1>:d r6.0<0;1,0>:d r0.1<0;1,0>:d
(W)  add (1|M0) r6.0<1>:d r6.0<0;1,0>:d -2:d
(W)  mul (1|M0) r6.0<1>:d r6.0<0;1,0>:d r4.7<0;1,0>:d
     add (16|M0) r30.0<1>:d r3.0<16;16,1>:uw r6.0<0;1,0>:d
     shl (16|M0) r30.0<1>:d r30.0<8;8,1>:d 2:w
"""
SHOW = PLACE + "     mov (16|M0) r32.0<1>:d r20.0<8;8,1>:d\n     send (16|M0) null:w r30 0xC 0x08025E01\n" + END
# What r20 shows: how many threads came before, by an atomic counter; or all that a thread was told.
ORDER = """
(W)  mov (8|M0) r10.0<1>:ud 0:ud
(W)  mov (8|M0) r11.0<1>:ud 1:ud
(W)  send (1|M0) r12 r10 0xC 0x0410B700
     mov (16|M0) r20.0<1>:d r12.0<0;1,0>:d
"""
TOLD = """
     shl (16|M0) r20.0<1>:d r2.0<16;16,1>:uw 8:w
     add (16|M0) r20.0<1>:d r20.0<8;8,1>:d r1.0<16;16,1>:uw
     shl (16|M0) r20.0<1>:d r20.0<8;8,1>:d 6:w
     add (16|M0) r20.0<1>:d r20.0<8;8,1>:d r0.1<0;1,0>:ud
     shl (16|M0) r20.0<1>:d r20.0<8;8,1>:d 6:w
     add (16|M0) r20.0<1>:d r20.0<8;8,1>:d r0.6<0;1,0>:ud
     add (16|M0) r20.0<1>:d r20.0<8;8,1>:d sr0.2<0;1,0>:ud
"""
LOOP = """
(W)  mov (1|M0) r5.0<1>:d 2:d
again:
(W)  add (1|M0) (ne)f0.0 r5.0<1>:d r5.0<0;1,0>:d -1:d
(W&f0.0) jmpi again
"""
ITSELF = """
     mov (1|M0) f0.0<1>:ud 0:ud
here:
     (f0.0) while (16|M0) here
"""


def job(body: str, rows: int = ROWS, ends: tuple[int, int, int] = ENDS, **more: Any) -> Job:
    across, down, deep = (end - start for start, end in zip(STARTS, ends, strict=True))
    items = SIDE * rows
    buffers, parameters = [HELD, bytes(4 * items * across * down * deep)], (across, across * down, 0, 0, 0, 0, 0, items)
    task = Shape((SIDE, rows)).job(HEAD + body + SHOW, buffers, parameters, **{"local": 0, "front": MANY_THREADS, **more})
    return replace(task, starts=STARTS, ends=ends)


def orders(task: Job, engine: str = "t1", rows: int = ROWS) -> Orders:
    """How many threads came before each, by Z, Y, X and row."""
    task.buffers = [bytes(4), task.buffers[1]]
    ran = task.run(groups=EngineDispatcher(engine, 1))
    across, down, deep = (end - start for start, end in zip(task.starts, task.ends, strict=True))
    found = np.array(ran.buffer(1), np.uint32).reshape(deep, down, across, rows, SIDE)
    assert (found[..., :8] == found[..., :1]).all()
    return found[..., 0]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The runs of dispatches, for which a few groups are many."""
    monkeypatch.setattr(strips, "BATCHES", 1)
    return runs_made(monkeypatch)


@pytest.mark.covering(1)
@pytest.mark.parametrize("end, strip", [(10, 8), (34, 32), (66, 32), (6, 4), (8, 2)])
@pytest.mark.parametrize("engine", [*ENGINES, "auto"])
def test_a_row_goes_on_from_group_to_group(engine: str, end: int, strip: int, made: list[Any]) -> None:
    found = orders(job(ORDER, ends=(end, 4, 3)), engine)
    assert made[0].shared.strip == strip
    by_strip = found.reshape(2, 3, -1, strip, ROWS).transpose(0, 1, 2, 4, 3)
    assert by_strip.ravel().tolist() == list(range(found.size))


@pytest.mark.parametrize("what, task", [
    ("a loop", job(LOOP + ORDER)), ("a loop of one instruction", job(ITSELF + ORDER)),
    ("a barrier", job(ORDER, descriptor={"barrier_enable": 1})),
    ("a barrier that no command has enabled", job(ORDER + BARRIER)), ("local memory", job(ORDER, local=1024)),
    ("an exception that is enabled", job(ORDER, descriptor={"software_exception_enable": 1})),
    ("an odd number of groups", job(ORDER, ends=(9, 4, 3))), ("channels that are off", replace(job(ORDER), right=0xFF)),
])  # fmt: skip
def test_other_groups_run_one_by_one(what: str, task: Job, made: list[Any]) -> None:
    found = orders(task)
    assert found.ravel().tolist() == list(range(found.size)) and made[0].shared.strip == 0


def test_groups_of_one_row_run_one_by_one(made: list[Any]) -> None:
    assert orders(job(ORDER, rows=1), rows=1).ravel().tolist() == list(range(GROUPS)) and made[0].shared.strip == 0


SOME = f"""{THREAD}
(W)  cmp (1|M0) (eq)f0.0 null<1>:ud r5.0<0;1,0>:ud {SIDE}:ud
(W&~f0.0) jmpi on
{ESCAPES["clock"]}
on:
"""
BODIES = {"plain": "", "reads": READS["surface"], "the interpreter": ESCAPES["clock"], "some on the interpreter": SOME,
          "another mode": ESCAPES["mode"]}  # fmt: skip


@pytest.mark.covering(1)
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize("engine", [*ENGINES, "auto"])
def test_threads_are_told_the_same(engine: str, workers: int, body: str, made: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The same memory, remarks and counts, time after time, also where workers begin in the middle of a strip."""
    monkeypatch.setattr(groups, "MIN_PARALLEL_TIME", 0.0)
    task = job(FLAT + BODIES[body] + TOLD)
    expected, gpu = outcome(task, "reference"), GpuDevice(task.device, dispatcher=EngineDispatcher(engine, workers))
    for count in (1, 2, 3):
        ran = task.run(gpu)
        held = [ran.space.read(task.address(number), len(data)) for number, data in enumerate(task.buffers)]
        assert held == expected[1] and gpu.counters.threads == count * GROUPS * ROWS and gpu.counters.instructions == count * expected[3]
    assert {run.shared.strip for run in made} <= {8, 4, 2} and made


def test_what_threads_differ_in_may_change(made: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """From one dispatch of a kind to the next: nothing is left of the one before."""
    task = job(TOLD)
    task.after = [task.pack("MEDIA_STATE_FLUSH")]
    plain, memory, gpu = task.own, task.memory(), GpuDevice(task.device, dispatcher=EngineDispatcher("t1", 1))
    owns = [plain, [data[:32] + bytes(32) + data[64:] for data in plain],
            [bytes([row] * 32) + data[32:] for row, data in enumerate(plain)], [data[:32] + bytes([row] * 32) + data[64:]
                                                                                for row, data in enumerate(plain)]]  # fmt: skip
    expected = [outcome(replace(task, own=own), "reference")[1][1] for own in owns]
    monkeypatch.setattr(Job, "memory", lambda self: memory)
    for own, held in zip(owns, expected, strict=True):
        task.own = own
        for address, data in task.pieces().items():
            memory.write(address, data)
        task.run(gpu)
        assert memory.read(task.address(1), len(held)) == held
    assert len(made) == 1 and made[0].shared.strip == 8


@pytest.mark.covering(1)
@pytest.mark.parametrize("group, row", [(0, 1), (5, 0), (12, 2), (GROUPS - 1, 1)])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_fault_names_its_thread(engine: str, group: int, row: int, made: list[Any]) -> None:
    """One thread goes where nothing is, another instruction than all the others."""
    who = PLACE + f"""
(W)  cmp (1|M0) (eq)f0.0 null<1>:ud r30.0<0;1,0>:ud {4 * SIDE * (group * ROWS + row)}:ud
(W)  mov (1|M0) r7.0<1>:ud 0x100000:ud
(W&f0.0) mov (1|M0) r7.0<1>:ud {NOWHERE}:ud
     add (16|M0) r10.0<1>:d r10.0<8;8,1>:d r7.0<0;1,0>:d
     send (16|M0) r20:w r10 0xC 0x04205EFF
"""
    task = job(FLAT + who)
    found, expected = outcome(task, engine), outcome(task, "reference")
    assert found[0] == expected[0] and f"{NOWHERE + 4 * SIDE * row:#x}" in found[0] and made[0].shared.strip == 8


def test_workers_know_which_thread_of_which_group_runs(made: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """And scratch space is counted in threads of a group."""
    monkeypatch.setattr(groups, "MIN_PARALLEL_TIME", 0.0)
    outcome(job(TOLD), "t1", threads=2)
    second = made[0].employed[1]
    second.dispatch.first = 2 * ROWS + 1  # in the third strip, which begins at (2, 3, 1)
    assert second.place(3).startswith("thread 1 of group (5, 3, 1), kernel 0x40000+") and second.first_slot == ROWS


def dispatch(threads: int = 8, across: int = 64, groups: int = 4096, own: int = 96, data: bytes = b"") -> ThreadDispatch:
    patch = HeaderPatch((Counter(0, across, 4), Counter(0, groups // across, 24)))
    return ThreadDispatch(0, (0,), 16, threads, groups, TemplatePayload(bytes(32), 0, own, data=data), patch=patch)


@pytest.mark.parametrize("across, groups, workers, length", [
    (64, 4096, 1, 32), (16, 4096, 1, 16), (12, 4092, 1, 4), (7, 4095, 1, 0), (64, 4096, 64, 8), (64, 64, 1, 8), (64, 64, 8, 0),
])  # fmt: skip
def test_strips_are_long_and_many(across: int, groups: int, workers: int, length: int) -> None:
    assert strips._longest(dispatch(8, across, groups), workers) == length


def test_what_threads_differ_in() -> None:
    """Whole registers, from the first that differs to the last; the first is X."""
    def data(*differ: int) -> bytes:
        return b"".join(bytes(row if at in differ else 0 for at in range(128)) for row in range(4))

    found = {differ: strips.differing(dispatch(4, own=128, data=data(*differ))) for differ in ((), (33,), (40, 127), (0, 31), (64,))}
    assert found == {(): (32, 0), (33,): (64, 32), (40, 127): (64, 96), (0, 31): (32, 32), (64,): (96, 32)}
    assert [strips._in_rows(dispatch(4, own=128, data=data(*differ))) for differ in ((), (33,), (0, 40))] == [False, True, False]
