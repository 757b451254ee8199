"""The engine auto: kernels start on t0, whose handlers are precompiled; hot ones are translated in the background and continue on t1.

Warm ones are translated, too, when a processor is free: they may be hot in the end, and the next process has them at once.
"""

from __future__ import annotations

import os
import threading
from functools import partial
from weakref import WeakKeyDictionary

from softgen.eu.engine_protocol import AffineRange, CompiledFunction
from softgen.eu.interpreter import KernelProgram
from softgen.eu.threaded.engine import ThreadedEngine
from softgen.eu.translate.engine import Translator
from softgen.lanes.compile.tiers import in_turn

TranslationKey = tuple[int, int, bool, tuple[AffineRange, ...]]  # control, simd, full, payload

HOT = 600_000  # executions of each instruction that take as long as translating it, divided among the processors that do both,
MOST_PROCESSORS = 16  # up to so many: translations have Python's lock in common
WARM = 8  # a kernel that has run for this part of that may run for long
LEAST = 100  # instructions that take as long to translate as what is the same for each kernel
INSTRUCTION = 5e-9  # seconds of each on t0; messages, extended math and wide instructions on hosts with short vectors take far longer
FALLBACK = 60_000  # instructions of t0 that take as long as one left to the interpreter (0.3 ms)
YIELD_TIME = 0.02  # seconds that a dispatch waits for a translation, once in a slice


class PromotingEngine:
    """The engine auto."""

    name = "auto"

    def __init__(self, hot: int | None = None) -> None:
        self.hot = HOT // min(len(os.sched_getaffinity(0)), MOST_PROCESSORS) if hot is None else hot
        self.slow, self.fast = ThreadedEngine(), Translator()
        self._asked: WeakKeyDictionary[KernelProgram, set[TranslationKey]] = WeakKeyDictionary()
        self._offered: WeakKeyDictionary[KernelProgram, set[TranslationKey]] = WeakKeyDictionary()  # for when a processor is free
        self.workers: list[threading.Thread] = []

    def function(self, program: KernelProgram, control: int, simd: int, full: bool = True, entry: int | None = None,
                 payload: tuple[AffineRange, ...] = ()) -> CompiledFunction:  # fmt: skip
        key = control, simd, full, payload
        at_start = entry is None or entry == program.start
        if at_start and (found := self.fast.lookup_cached(program, *key)):
            return found
        if at_start and self._is_hot(program):
            self._translate(program, key)
        elif at_start and self._is_hot(program, WARM):
            self._offer(program, key)
        return self.slow.function(program, control, simd, full, entry)

    def _translate(self, program: KernelProgram, key: TranslationKey) -> None:
        requested = self._asked.setdefault(program, set())
        if key not in requested:
            requested.add(key)
            translating = threading.Thread(target=self.fast.translated, args=(program, *key), name="translating", daemon=True)
            translating.start()  # before other host threads find it to wait for
            self.workers = [*(worker for worker in self.workers if worker.is_alive()), translating]

    def _offer(self, program: KernelProgram, key: TranslationKey) -> None:
        offered = self._offered.setdefault(program, set())
        if key not in offered:
            offered.add(key)
            in_turn(partial(self._translate_alone, program, key), later=True)

    def _translate_alone(self, program: KernelProgram, key: TranslationKey) -> None:
        """Translates when nothing else is: Python's lock, which requests of programs need as well, is taken by one at a time."""
        if any(worker.is_alive() for worker in self.workers):
            in_turn(partial(self._translate_alone, program, key), later=True)
        else:
            self._translate(program, key)

    def ran(self, program: KernelProgram, instructions: int) -> None:
        program.executed += instructions

    def holds(self, program: KernelProgram, chosen: CompiledFunction) -> bool:
        """A kernel that is not even warm is not being translated."""
        return not chosen.program or not self._is_hot(program, WARM) and self.slow.holds(program, chosen)

    def settled(self, chosen: CompiledFunction) -> bool:
        return self.fast.settled(chosen)

    def yield_to_foreground(self) -> None:
        """Waits for the translations under way, for a while. A thread that calls compiled code every few instructions takes Python's lock
        back before one that waits for it has woken up: on some hosts the translation would not get on at all."""
        for worker in self.workers[-1:]:
            worker.join(YIELD_TIME)

    def _is_hot(self, program: KernelProgram, part: int = 1) -> bool:
        """Whether a kernel has run for as long as its translation would take, or a part of that. Where all processors run threads, that
        takes one of them away; of many it is a small part, and comes sooner."""
        enough = self.hot * (len(program.lines) + LEAST) // part
        if program.fallbacks:
            enough -= FALLBACK * program.fallbacks.total()
        return program.executed > enough or program.spent > INSTRUCTION * enough
