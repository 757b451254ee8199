"""auto, without dispatches: which kernels it translates, and when."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from softgen.eu import promotion
from softgen.eu.engine_protocol import CompiledFunction
from softgen.eu.interpreter import KernelProgram
from softgen.eu.promotion import PromotingEngine
from tests.eu.semantics.build import Listing, dst, end, imm, instr


def test_a_translation_is_waited_for_once_it_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another host thread gives way while one begins it."""
    engine, code = PromotingEngine(hot=1), Listing(9, instr(9, "mov", dst(4), imm(1)), end(9))

    class Beginning(threading.Thread):
        def start(self) -> None:
            engine.yield_to_foreground()
            super().start()
            engine.yield_to_foreground()

    monkeypatch.setattr(promotion, "threading", SimpleNamespace(Thread=Beginning))
    code.executed = 1000
    engine.function(code, 0, 8)
    (translating,) = engine.workers
    translating.join()
    assert engine.fast.lookup_cached(code, 0, 8, True, ())


class Kernels:
    """Kernels on an engine that translates nothing: what it would, and what it left for when a processor is free."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.engine, self.begun, self.later = PromotingEngine(hot=100), list[Any](), list[Any]()
        monkeypatch.setattr(promotion, "in_turn", lambda job, later: self.later.append(job) if later else job())
        monkeypatch.setattr(self.engine.fast, "translated", lambda *given: self.begun.append(given))
        monkeypatch.setattr(self.engine.fast, "lookup_cached", lambda *given: None)
        monkeypatch.setattr(self.engine.slow, "function", lambda *given: CompiledFunction(1, 2))
        monkeypatch.setattr(self.engine.slow, "holds", lambda program, chosen: True)

    def kernel(self, executed: int) -> KernelProgram:
        """One that has run for so many executions of each of its instructions, and of what is the same for all kernels."""
        program = KernelProgram(9, b"")
        program.executed = executed * promotion.LEAST
        return program

    def ask(self, program: KernelProgram) -> None:
        self.engine.function(program, 0, 16)
        for thread in self.engine.workers:
            thread.join()


def test_a_warm_kernel_is_translated_when_a_processor_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, and at once if it is hot before."""
    kernels, t0 = Kernels(monkeypatch), CompiledFunction(1, 2)
    cold, warm, hot = (kernels.kernel(executed) for executed in (12, 13, 101))
    for program in (cold, warm, warm):
        kernels.ask(program)
    assert not kernels.begun and len(kernels.later) == 1
    assert [kernels.engine.holds(program, t0) for program in (cold, warm, hot)] == [True, False, False]
    kernels.ask(hot)
    assert [given[0] for given in kernels.begun] == [hot] and len(kernels.later) == 1
    warm.executed = hot.executed
    kernels.ask(warm)
    kernels.later.pop()()
    assert [given[0] for given in kernels.begun] == [hot, warm] and not kernels.later


def test_warm_kernels_are_translated_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    kernels, going = Kernels(monkeypatch), threading.Event()
    waiting = threading.Thread(target=going.wait, args=(60.0,), daemon=True)
    waiting.start()
    kernels.engine.workers = [waiting]
    kernels.engine.function(kernels.kernel(50), 0, 16)
    kernels.later.pop()()
    assert not kernels.begun and len(kernels.later) == 1
    going.set()
    waiting.join()
    kernels.later.pop()()
    for thread in kernels.engine.workers:
        thread.join()
    assert len(kernels.begun) == 1 and not kernels.later
