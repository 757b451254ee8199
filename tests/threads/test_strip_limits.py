"""Where strips could differ from groups one by one: faults, slots and scratch space, workers that had strips, engines that are compared."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from softgen.errors import GpuFault
from softgen.eu.text import dialect
from softgen.threads.compare.compare import ComparingDispatcher
from softgen.threads.dispatcher import EngineDispatcher
from softgen.threads.workers import group_cache, groups
from tests.gpgpu.job import CODE, Job
from tests.gpgpu.shaped import ENGINES, FLAT, outcome
from tests.threads.test_system_routine import HANDLER, RAISES, ROUTINE
from tests.threads.test_turns import NOWHERE
from tests.threads.workers.test_strips import ORDER, PLACE, ROWS, SIDE, TOLD, job, made

__all__ = ["made"]


def test_workers_of_strips_are_used_for_groups_one_by_one(made: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """With as many threads in a group as groups in a strip, blocks are neither made anew nor as their templates."""
    monkeypatch.setattr(group_cache, "MOST_KEPT", 1)
    first, dispatcher = job(TOLD, rows=8), EngineDispatcher("t1", 1)
    for end, strip in (((10, 4, 3), 8), ((10, 4, 2), 8), ((9, 4, 3), 0), ((5, 2, 2), 0)):
        task = replace(first, ends=end)
        (_, expected), ran = outcome(task, "reference")[1], task.run(groups=dispatcher)
        assert made[-1].shared.strip == strip and ran.space.read(task.address(1), len(expected)) == expected


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("engine", ENGINES)
def test_of_several_faults_one_is_reported(engine: str, workers: int, made: list[Any]) -> None:
    """The first that is met: on the reference, thread 1 of the first group comes before thread 0 of the fourth."""
    said = outcome(failing(), engine, workers)[0]
    assert said.startswith("GpuFault: read at") and any(f"{at:#x}" in said for at in (NOWHERE + 4 * SIDE, NOWHERE + 0x1000))
    assert made[0].shared.strip == 8


def test_engines_that_report_the_same_fault_agree(made: list[Any]) -> None:
    """Where they are compared, what counts is the first fault, and memory up to it."""
    with pytest.raises(GpuFault, match=f"read at {NOWHERE + 4 * SIDE:#x}"):
        failing().run(groups=ComparingDispatcher(EngineDispatcher("t1", 1), EngineDispatcher("reference")))


def failing() -> Job:
    body = PLACE + "(W)  mov (1|M0) r7.0<1>:ud 0x100000:ud\n"
    for number, (group, row) in enumerate(((0, 1), (3, 0))):
        body += f"""
(W)  cmp (1|M0) (eq)f0.0 null<1>:ud r30.0<0;1,0>:ud {4 * SIDE * (group * ROWS + row)}:ud
(W&f0.0) mov (1|M0) r7.0<1>:ud {NOWHERE + 0x1000 * number}:ud
"""
    body += "     add (16|M0) r10.0<1>:d r10.0<8;8,1>:d r7.0<0;1,0>:d\n     send (16|M0) r20:w r10 0xC 0x04205EFF\n"
    return job(FLAT + body)


@pytest.mark.parametrize("engine", ENGINES)
def test_threads_have_slots_of_their_own(engine: str, made: list[Any]) -> None:
    """Thread number and scratch space, in r0.5: with one worker, as on the reference."""
    task = job("     mov (16|M0) r20.0<1>:ud r0.5<0;1,0>:ud\n")
    found, expected = (np.frombuffer(outcome(task, name)[1][1], np.uint32).reshape(-1, ROWS, SIDE)[0, :, 0].tolist()
                       for name in (engine, "reference"))  # fmt: skip
    assert found == expected and made[0].shared.strip == 8


SCRATCH = 0x1800000
# What is written to scratch space before, and read after, something in which another thread may have its turn.
KEPT = FLAT + TOLD + """
(W)  mov (8|M0) r100.0<1>:ud r127.0<8;8,1>:ud
(W)  mov (8|M0) r101.0<1>:ud r20.0<8;8,1>:ud
(W)  send (8|M0) null r100 0xA 0x040E0000
{between}
(W)  send (8|M0) r20 r100 0xA 0x021C0000
"""
BETWEEN = {
    "nothing": "",
    "a loop by a write to ip": """
(W)  mov (1|M0) r5.0<1>:d 3:d
(W)  add (1|M0) (ne)f0.0 r5.0<1>:d r5.0<0;1,0>:d -1:d
(W&f0.0) add (1|M0) ip<1>:ud ip<0;1,0>:ud -16:d
""",
    "an exception that the kernel enables": RAISES["breakpoint"][0],
}


@pytest.mark.covering(1)
@pytest.mark.parametrize("between", BETWEEN)
@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("engine", ENGINES)
def test_scratch_space_is_a_threads_own(engine: str, workers: int, between: str, made: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads of a strip have the same slot: none may start before the one before it has ended."""
    monkeypatch.setattr(groups, "MIN_PARALLEL_TIME", 0.0)
    front = {"maximum_number_of_threads": 511, "per_thread_scratch_space": 0, "scratch_space_base_pointer": SCRATCH}
    handler = HANDLER.replace("{leaves}", RAISES["breakpoint"][1]).replace("r2.0", "r102.0")
    task = job(KEPT.replace("{between}", BETWEEN[between]), front=front)
    task.more = {SCRATCH: bytes(512 << 10), CODE + ROUTINE: dialect.read(handler, task.gen)}
    task.before = [task.pack("STATE_SIP", system_instruction_pointer=ROUTINE)]
    assert outcome(task, engine, workers) == outcome(task, "reference")


def test_with_one_worker_the_order_is_the_references(made: list[Any]) -> None:
    """Engines can be compared on kernels whose results depend on it."""
    task = job(ORDER)
    task.buffers = [bytes(4), task.buffers[1]]
    ran = task.run(groups=ComparingDispatcher(EngineDispatcher("t1", 1), EngineDispatcher("reference")))
    orders = np.array(ran.buffer(1), np.uint32).reshape(-1, SIDE)[:, 0]
    assert orders.tolist() == list(range(len(orders))) and [run.shared.strip for run in made] == [0]
