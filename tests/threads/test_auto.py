"""auto: a dispatch begins on t0, and goes on as t1 when its kernel proves hot."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from softgen.eu import promotion
from softgen.eu.engine_protocol import AffineRange, CompiledFunction
from softgen.eu.interpreter import KernelProgram
from softgen.eu.promotion import PromotingEngine
from softgen.eu.translate.engine import Translator
from softgen.eu.translate.store import TranslationStore
from softgen.threads.dispatcher import EngineDispatcher
from softgen.threads.workers import groups, worker
from tests.gpgpu.engines import Leaving
from tests.gpgpu.job import ADD
from tests.threads.workers.test_pool import MANY, MODE, SLOW, job


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


class Interpreting(Leaving):
    """t0 of a kernel of which it knows nothing: every instruction is left to the interpreter."""

    def function(self, program: KernelProgram, control: int, simd: int, full: bool = True, entry: int | None = None,
                 payload: tuple[AffineRange, ...] = ()) -> CompiledFunction:  # fmt: skip
        return super().function(program, control, simd, full, entry, payload)._replace(program=1)

    def settled(self, chosen: CompiledFunction) -> bool:
        return False


@pytest.mark.parametrize("threads", [1, 2])
def test_a_dispatch_that_falls_back_all_the_time_goes_on_translated(threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All slices end between two fallbacks, none in compiled code."""
    for module in (groups, worker):
        monkeypatch.setattr(module, "SLICE", 100_000)
    monkeypatch.setattr(groups, "MIN_PARALLEL_TIME", 0.0)
    watched = Watched()
    watched.slow, watched.fast = Interpreting(), Translator(store=TranslationStore(tmp_path))  # type: ignore[assignment]
    dispatcher = EngineDispatcher("auto", threads, make=lambda name: watched)
    assert job(ADD, 512).run(groups=dispatcher).buffer(1)[: 16 * 512] == (1000,) * 16 * 512
    (program,) = {program for program, _ in dispatcher.ran}
    assert watched.translated and program.fallbacks.total() < 9 * 20  # ADD has 9 instructions


def test_fallbacks_leave_time_for_the_translation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter waits between two instructions, once in a slice: without that, one that takes Python's lock again and again may keep
    it from the thread that translates."""
    for module in (groups, worker):
        monkeypatch.setattr(module, "SLICE", 100_000)
    monkeypatch.setattr(promotion, "YIELD_TIME", 60.0)
    engine, at_work = PromotingEngine(hot=1), threading.Event()
    engine.slow, engine.fast = Interpreting(), Translator(store=TranslationStore(tmp_path))  # type: ignore[assignment]
    real, given = engine.fast.translated, list[bool]()

    def translated(*arguments: Any) -> CompiledFunction | None:
        at_work.wait(60.0)
        return real(*arguments)

    def yield_to_foreground() -> None:
        at_work.set()
        PromotingEngine.yield_to_foreground(engine)
        given.append(not any(thread.is_alive() for thread in engine.workers))

    monkeypatch.setattr(engine.fast, "translated", translated)
    monkeypatch.setattr(engine, "yield_to_foreground", yield_to_foreground)
    dispatcher = EngineDispatcher("auto", 1, make=lambda name: engine)
    assert job(ADD, 512).run(groups=dispatcher).buffer(1)[: 16 * 512] == (1000,) * 16 * 512
    assert given and all(given)
    (program,) = {program for program, _ in dispatcher.ran}
    assert program.fallbacks.total() < 9 * 20
