"""auto: a dispatch begins on t0, and goes on as t1 when its kernel proves hot."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from softgen.eu.engine_protocol import AffineRange, CompiledFunction
from softgen.eu.interpreter import KernelProgram
from softgen.eu.promotion import PromotingEngine
from softgen.threads import groups, worker
from softgen.threads.dispatcher import EngineDispatcher
from tests.gpgpu.job import ADD
from tests.threads.test_pool import MANY, MODE, SLOW, job


class Watched(PromotingEngine):
    """Waits for each translation that it began, and counts what it was asked and told."""

    def __init__(self) -> None:
        super().__init__(hot=1)
        self.translated = self.executed = 0

    def function(self, program: KernelProgram, control: int, simd: int, full: bool = True, entry: int | None = None,
                 payload: tuple[AffineRange, ...] = ()) -> CompiledFunction:  # fmt: skip
        found = super().function(program, control, simd, full, entry, payload)
        for thread in self.workers:
            thread.join()
        self.translated += not found.program
        return found

    def ran(self, program: KernelProgram, instructions: int) -> None:
        super().ran(program, instructions)
        self.executed += instructions


@pytest.mark.parametrize("kernel, expected", [(ADD, 1000), (SLOW, 1000), (MODE, 0x3F800001)])
def test_chunks_of_a_hot_kernel_run_translated(kernel: str, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "SLICE", 100_000)  # short slices
    monkeypatch.setattr(worker, "SLICE", 100_000)
    watched = Watched()
    made = job(kernel)
    if kernel is MODE:
        made = replace(made, shared=np.array([2.0**-24, *[0] * 7], np.float32).tobytes())
        made.address = job().address  # type: ignore[method-assign]
    dispatcher, began = EngineDispatcher("auto", 1, make=lambda name: watched), time.perf_counter()
    ran = made.run(groups=dispatcher)
    assert ran.buffer(1) == (expected,) * 16 * MANY
    assert watched.translated
    (program,) = {program for program, _ in dispatcher.ran}
    assert 0 < program.spent < time.perf_counter() - began
    assert watched.executed == ran.gpu.counters.instructions == made.run(groups=EngineDispatcher("t0", 1)).gpu.counters.instructions


def test_code_is_chosen_again_between_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """All threads of a group begin with the same code, though slices end in the middle of groups. That of t0 may always get better."""
    for module in (groups, worker):
        monkeypatch.setattr(module, "SLICE", 100_000)
    monkeypatch.setattr(worker, "TURN", 100)  # SLOW goes round 500 times
    inside, choose = list[bool](), worker.Worker.choose
    monkeypatch.setattr(worker.Worker, "choose", lambda self: (inside.append(bool(self.dispatch.inside)), choose(self))[1])
    ran = job(SLOW, 512).run(groups=EngineDispatcher("t0", 1))
    assert ran.buffer(1)[: 16 * 512] == (1000,) * 16 * 512
    assert len(inside) > 1 and not any(inside)
