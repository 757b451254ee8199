"""Group runs that are kept for later dispatches: by kind, and among those of a kind by the surfaces that they use.

A program with several sets of buffers in turn has a run for each set. A run is found by the surface states that the dispatch's binding
table leads to, as far as any run of the kind has used them; all else that can have changed is compared before the run is used again:
the kernel's bytes, base addresses, other state, mappings of buffers.
"""

from __future__ import annotations

from itertools import count
from operator import attrgetter
from typing import Any
from weakref import WeakKeyDictionary

from softgen.eu.engine_protocol import CompilerEngine
from softgen.shared_functions.unit import TABLES_END
from softgen.threads.bindings import BASES, BindingCache
from softgen.threads.dispatch import DispatchContext, ThreadDispatch
from softgen.threads.native.tables import SurfaceStateReader
from softgen.threads.payload import TemplatePayload
from softgen.threads.programs import DispatchProgram
from softgen.threads.workers.groups import GroupRun
from softgen.threads.workers.shared import SharedDispatch
from softgen.threads.workers.worker import WorkerState

MOST_KEPT = 128  # dispatches whose workers are kept,
MOST_BYTES = 32 << 20  # the memory of these,
MOST_PROGRAM_BYTES = 32 << 20  # and of their programs


class GroupKind:
    """The runs of one kind of dispatch."""

    def __init__(self, key: Any, context: DispatchContext, program: DispatchProgram, engine: CompilerEngine) -> None:
        self.key, self.space, self.bases, self.program, self.engine = key, context.space, context.bases, program, engine
        self.gen = context.generation.number
        self.runs: dict[bytes | None, GroupRun] = {}  # by the surface states that they were made for, which is never None
        self.indices: tuple[int, ...] = ()  # of these in the binding table: those that any run has used
        self.reader = SurfaceStateReader(context.space, context.bases, program, self.gen)

    def suits(self, context: DispatchContext) -> bool:
        """Whether a dispatch in this environment has the same memory and base addresses."""
        if context.space.table is not self.reader.memory:
            return False
        return context.bases is self.bases or self._same_bases(context)

    def _same_bases(self, context: DispatchContext) -> bool:
        if any(context.bases.get(name) != self.bases.get(name) for name in BASES):
            return False
        self.bases = context.bases
        return True

    def find(self, context: DispatchContext, dispatch: ThreadDispatch) -> GroupRun | None:
        """The run with the surfaces of a dispatch."""
        reader = self.reader
        if (self.program.read_routine is not None or context.space.table is not reader.memory
                or context.bases is not self.bases and not self._same_bases(context)):  # fmt: skip
            return None
        return self.runs.get(reader.read(dispatch.binding_table))

    def extend(self, used: dict[int, tuple[int, bytes]]) -> None:
        """Runs are found by these surface states too."""
        self.indices = tuple(sorted({*self.indices, *used}))
        size = len(next(iter(used.values()))[1])
        self.reader = SurfaceStateReader(self.space, self.bases, self.program, self.gen, self.indices, size)

    def states(self, run: GroupRun) -> bytes | None:
        """What a run that has been used can be found by; None where surface states have changed since it used them."""
        states, size = self.reader.read(run.shared.dispatch.binding_table), self.reader.size
        if states is None:
            return None
        parts = {index: states[number * size : number * size + size] for number, index in enumerate(self.indices)}
        return states if all(parts[index] == state for index, (_, state) in run.resolved.surfaces.items()) else None


class GroupCache:
    """Group runs by kind of dispatch. One dispatch at a time uses it."""

    def __init__(self, threads: int, bindings: BindingCache, strips: bool, fill: int = 0) -> None:
        self.threads, self.bindings, self.strips, self.fill = threads, bindings, strips, fill
        self._kinds: dict[Any, GroupKind] = {}  # those with a run
        self._free: list[WorkerState] = []
        self._paces: WeakKeyDictionary[DispatchProgram, float] = WeakKeyDictionary()
        self._uses = count()

    def kept(self) -> list[GroupRun]:
        return [run for kind in self._kinds.values() for run in kind.runs.values()]

    def find(self, context: DispatchContext, dispatch: ThreadDispatch) -> GroupRun | None:
        """A kept run for a dispatch, ready for it."""
        kind = self._kinds.get(dispatch.kind or _kind(context, dispatch))
        run = kind.find(context, dispatch) if kind is not None else None
        if run is None:
            return None
        try:
            return run if run.renew(context, dispatch) else None
        except BaseException:  # it is of neither dispatch now
            self.done(run, False)
            raise

    def make(self, context: DispatchContext, dispatch: ThreadDispatch, program: DispatchProgram, engine: CompilerEngine) -> GroupRun:
        """A new run for a dispatch."""
        key = dispatch.kind or _kind(context, dispatch)
        kind = self._kinds.get(key)
        if kind is not None and (kind.program is not program or kind.engine is not engine or not kind.suits(context)):
            for other in list(kind.runs.values()):
                self._drop(other)
            kind = None
        shared = SharedDispatch(context, dispatch, program, engine, None if key else self.bindings)  # a kept one follows its table
        run = GroupRun(shared, lambda number: self._free.pop() if self._free else WorkerState(self.fill), self.threads, self.strips)
        run.kind = kind or GroupKind(key, context, program, engine) if key else None
        run.pace = self._pace(program)
        return run

    def done(self, run: GroupRun, fine: bool) -> None:
        """A run has come to its end. One that failed is not used again: threads may have been left in the middle."""
        run.used = next(self._uses)
        if fine and run.surface_count == len(run.resolved.entries):
            return
        self._forget(run)
        if not fine:
            run.mark_dirty()
        if not (fine and run.kind is not None and self._keep(run, run.kind)):
            self._release(run)

    def _keep(self, run: GroupRun, kind: GroupKind) -> bool:
        """Keeps a run that has used surfaces for the first time; False where it cannot be found again."""
        if not run.resolved.surfaces.keys() <= set(kind.indices):
            for other in list(kind.runs.values()):
                self._drop(other)  # they were found by fewer states
            kind.extend(run.resolved.surfaces)
        states = kind.states(run)
        if states is None:
            return False
        if states in kind.runs:  # which did not suit for another reason
            self._drop(kind.runs[states])
        kind.runs[states], run.states, run.surface_count = run, states, len(run.resolved.entries)
        self._kinds[kind.key] = kind
        kept = sorted(self.kept(), key=attrgetter("used"))
        while len(kept) > 1 and (len(kept) > MOST_KEPT or sum(held.bytes for held in kept) > MOST_BYTES
                                 or program_bytes(kept) > MOST_PROGRAM_BYTES):  # fmt: skip
            self._drop(kept.pop(0))
        return True

    def _drop(self, run: GroupRun) -> None:
        self._forget(run)
        self._release(run)

    def _forget(self, run: GroupRun) -> None:
        kind = run.kind
        if kind is not None and kind.runs.get(run.states) is run:
            del kind.runs[run.states]
            if not kind.runs:
                del self._kinds[kind.key]

    def _release(self, run: GroupRun) -> None:
        """What its workers have is for the next ones."""
        self._paces[run.shared.program] = run.pace
        if run.constant is not None:
            run.mark_dirty()  # blocks have another header than their templates
        self._free += [worker.state for worker in run.employed]

    def _pace(self, program: DispatchProgram) -> float:
        """What is known of the pace of a program's dispatches, of any kind."""
        kept = (run.pace for run in self.kept() if run.shared.program is program)
        return next(kept, self._paces.get(program, 0.0))


def _kind(context: DispatchContext, dispatch: ThreadDispatch) -> tuple[Any, ...]:
    """All that dispatches of the same kind have in common; nothing where workers cannot be kept."""
    payload = dispatch.payload
    if not isinstance(payload, TemplatePayload) or dispatch.patch is None or TABLES_END in context.bases:
        return ()
    return (dispatch.kernel, dispatch.control, dispatch.thread_state, dispatch.simd, dispatch.threads, dispatch.masks, dispatch.patch,
            dispatch.samplers, dispatch.scratch, dispatch.local_bytes, dispatch.barrier, dispatch.units, dispatch.unit_states,
            dispatch.system_routine, payload.common, payload.own, payload.own_first, payload.slots,
            *(context.bases.get(name) for name in BASES))  # fmt: skip


def program_bytes(runs: list[GroupRun]) -> int:
    """Memory of the programs of runs, which ProgramCache may have dropped."""
    return sum(program.memory_bytes for program in {run.shared.program for run in runs})
