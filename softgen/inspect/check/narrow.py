"""A submission again, dispatch by dispatch: which dispatch differs between two worlds, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from softgen.bits.units import PAGE_SIZE
from softgen.errors import SoftgenError
from softgen.inspect.check.accesses import unordered_accesses
from softgen.inspect.check.finding import ERROR, WARNING, Finding
from softgen.inspect.check.observed import ObservedDispatcher
from softgen.inspect.check.undefined import undefined_value
from softgen.inspect.report.kernel_names import KernelNames
from softgen.memory.space import Space
from softgen.position import Position
from softgen.threads.compare.selection import TileSelection, WorkNames
from softgen.threads.compare.snapshot import EngineResult, MemorySnapshot
from softgen.threads.dispatch import DispatchContext, Finished, ResultT, ThreadDispatch, TimedOut, never
from softgen.threads.programs import load
from softgen.threads.workers.kept_loop import KeptLoop, LoopLease
from softgen.threads.world import PLAIN, World

Differing = list[tuple[int, bytes, bytes]]  # address, and what the plain world and another have there
VALUES = {"fill": ("uninitialised", "uninitialised value"), "unspecified": ("unspecified", "undefined bits")}  # by axis: class, and words
MOST_EXPLAINED = 3  # dispatches of a submission


@dataclass(frozen=True)
class StoreEffect:
    """Bytes that a dispatch or draw left otherwise in another world."""

    address: int
    count: int
    plain: int  # the first differing dword
    other: int
    error: str = ""

    def __str__(self) -> str:
        if self.error:
            return self.error
        bytes_ = f"{self.count} byte{'s' if self.count > 1 else ''} differ"
        return f"{bytes_}, first at {self.address:#x}: {self.plain:#010x} and {self.other:#010x}"


class NarrowingDispatcher:
    """A Dispatcher that, while `worlds` are set, runs each dispatch and draw in every one of them from the same memory."""

    prepares = fills = False

    def __init__(self, engine: str, position: Callable[[], Position], names: KernelNames) -> None:
        self.plain, self.engine, self.position, self.names = ObservedDispatcher(engine, PLAIN), engine, position, names
        self.current = self.plain
        self.worlds: list[World] = []
        self.findings: list[Finding] = []
        self._dispatchers: dict[World, ObservedDispatcher] = {}
        self._whole = False

    def _of(self, world: World) -> ObservedDispatcher:
        return self._dispatchers.setdefault(world, ObservedDispatcher(self.engine, world))

    # -- what pipelines ask for ----------------------------------------------------------------------------------------

    def run(self, context: DispatchContext, dispatch: ThreadDispatch, timed_out: TimedOut = never) -> Iterable[Finished]:
        if not self.worlds or self._whole:
            return self.current.run(context, dispatch, timed_out)
        done: list[Finished] = []

        def work() -> None:
            done[:] = self.current.run(context, dispatch, timed_out)

        def explain(world: World, effect: StoreEffect) -> Finding:
            return self._explain(context, dispatch, world, effect, timed_out)

        self._compare(context.space, work, explain)
        return done

    def whole(self, space: Space, work: Callable[[], ResultT], names: WorkNames) -> ResultT:
        if not self.worlds or self._whole:
            return work()
        found: list[ResultT] = []
        self._whole = True

        def draw() -> None:
            found[:] = [work()]

        try:
            self._compare(space, draw, lambda world, effect: self._draw(names, world, effect))
        finally:
            self._whole = False
        return found[0]

    def prepare(self, context: DispatchContext, dispatch: ThreadDispatch) -> KeptLoop:
        return self.current.prepare(context, dispatch)

    def lease(self) -> LoopLease:
        return self.current.lease()

    def watched(self, context: DispatchContext) -> DispatchContext:
        return context

    def count_memory(self, charge: Callable[[int], None]) -> None:
        """Nobody counts."""

    def retire(self) -> None:
        for dispatcher in (self.plain, *self._dispatchers.values()):
            dispatcher.retire()

    @property
    def selection(self) -> TileSelection | None:
        return None

    @property
    def reserved(self) -> int:
        return self.current.reserved

    @property
    def threads(self) -> int:
        return 1

    # -- comparison ----------------------------------------------------------------------------------------------------

    def _compare(self, space: Space, work: Callable[[], None], explain: Callable[[World, StoreEffect], Finding]) -> None:
        """Do work in every world; memory is left, and errors are raised, as in the plain one."""
        before = MemorySnapshot(space)
        others = [self._in(self._of(world), before, work) for world in self.worlds]
        plain = self._in(self.plain, before, work)
        found = [(world, effect) for world, other in zip(self.worlds, others, strict=True)
                 if (effect := self._effect(before, plain, other, self._of(world))) is not None]  # fmt: skip
        seen = set[str]()
        for world, effect in found:
            if world.axis not in seen:
                seen.add(world.axis)
                before.restore()
                self.findings.append(explain(world, effect))
        if found:
            before.restore()
            for at, data in plain.pages.items():
                space.write(at, data)
        if plain.error is not None:
            raise plain.error

    def _in(self, dispatcher: ObservedDispatcher, before: MemorySnapshot, work: Callable[[], None]) -> EngineResult:
        before.restore()
        dispatcher.scratch.clear()
        self.current, error = dispatcher, None
        try:
            work()
        except SoftgenError as raised:
            error = raised
        finally:
            self.current = self.plain
        return EngineResult((), error, before.changed())

    def _effect(self, before: MemorySnapshot, plain: EngineResult, other: EngineResult,
                dispatcher: ObservedDispatcher) -> StoreEffect | None:  # fmt: skip
        undefined = self.plain.scratch | dispatcher.scratch
        first, count, values = None, 0, (0, 0)
        for page in sorted({*plain.pages, *other.pages}):
            here, there = (np.frombuffer(_page(before, result, page), np.uint8) for result in (plain, other))
            where = [at for at in np.flatnonzero(here != there).tolist()
                     if not any(start <= page + at < start + size for start, size in undefined)]  # fmt: skip
            if where and first is None:
                at = where[0] & ~3
                first = page + at
                values = int.from_bytes(here[at : at + 4].tobytes(), "little"), int.from_bytes(there[at : at + 4].tobytes(), "little")
            count += len(where)
        texts = [str(result.error) if result.error else "" for result in (plain, other)]
        error = f"in this world: {texts[1] or 'no error'}" if texts[0] != texts[1] else ""
        return StoreEffect(first or 0, count, *values, error) if count or error else None

    # -- explanations --------------------------------------------------------------------------------------------------

    def _kernel(self, context: DispatchContext, dispatch: ThreadDispatch) -> str:
        program = load(context, dispatch)
        return self.names.find(program.beginning(program.size), context.generation.number) or program.title

    def _explain(self, context: DispatchContext, dispatch: ThreadDispatch, world: World, effect: StoreEffect,
                 timed_out: TimedOut) -> Finding:  # fmt: skip
        kernel, witness = self._kernel(context, dispatch), (PLAIN.name, world.name)
        if world.axis in VALUES:
            return self._explain_value(context, dispatch, world, effect, kernel)
        found = unordered_accesses(context, dispatch, timed_out)
        where = found.position.within(self.position())
        if found.conflict is None and found.atomics:
            what = f"results of atomic operations depend on the order of threads: {effect}"
            return Finding("order", WARNING, what, kernel, where, witness)
        details = found.lines if found.conflict is not None else () if found.complete else ("the accesses were not all looked at",)
        return Finding("race", ERROR, f"data race: {effect}", kernel, where, witness, details)

    def _explain_value(self, context: DispatchContext, dispatch: ThreadDispatch, world: World, effect: StoreEffect, kernel: str) -> Finding:
        witness = PLAIN.name, world.name
        number = self._first_group(context, dispatch, world)
        found = None if number is None else undefined_value(context, dispatch, number, world)
        where = Position(stage="cs") if found is None else found.position
        level = WARNING if found is not None and found.effect == "store" else ERROR
        kind, what = VALUES[world.axis]
        return Finding(kind, level, f"{what}: {effect}", kernel, where.within(self.position()), witness,
                       () if found is None else found.lines)  # fmt: skip

    def _first_group(self, context: DispatchContext, dispatch: ThreadDispatch, world: World) -> int | None:
        """The first group that alone differs between the plain world and another."""
        for number in range(dispatch.groups):
            try:
                alone, before = dispatch.only(number), MemorySnapshot(context.space)
            except SoftgenError:
                return None
            results = [self._in(dispatcher, before, lambda alone=alone: _drain(self.current, context, alone))  # type: ignore[misc]
                       for dispatcher in (self._of(world), self.plain)]  # fmt: skip
            before.restore()
            if self._effect(before, results[1], results[0], self._of(world)) is not None:
                return number
            for at, data in results[1].pages.items():  # groups go on from what those before have left
                context.space.write(at, data)
        return None

    def _draw(self, names: WorkNames, world: World, effect: StoreEffect) -> Finding:
        pixel = names.pixel(effect.address) if not effect.error else None
        details = (pixel.text,) if pixel is not None else ()
        kind, _ = VALUES.get(world.axis, ("race", ""))
        return Finding(kind, ERROR, f"{names.title}: {effect}", "", self.position(), (PLAIN.name, world.name), details)


def _drain(dispatcher: ObservedDispatcher, context: DispatchContext, dispatch: ThreadDispatch) -> None:
    for _ in dispatcher.run(context, dispatch):
        pass


def _page(before: MemorySnapshot, result: EngineResult, page: int) -> bytes:
    found: Any = result.pages.get(page)
    if found is not None:
        return bytes(found)
    at = max(start for start in before.pieces if start <= page)
    return before.pieces[at][page - at : page - at + PAGE_SIZE]
