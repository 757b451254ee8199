"""Groups of a dispatch on compiled engines, shared among host threads.

The calling thread is worker 0; others run on helpers (helpers.c), without Python. Each takes a chunk of groups after another in C code, and
returns where Python is needed: then all return, the calling thread answers for each of them, and they go on. Only the calling thread polls
the time limit and Ctrl-C, for which compiled code returns at intervals. With one host thread groups run in order, and results are
reproducible.

Workers are kept for the next dispatch of the same kind (GroupCache): programs dispatch a kernel many times, with other arguments, and
drivers write its binding table to another place each time.
"""

from __future__ import annotations

import struct
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakKeyDictionary

from softgen.errors import SoftgenError
from softgen.eu.engine_protocol import CompilerEngine
from softgen.eu.thread.block import BLOCK_SIZE
from softgen.threads import places, scheduler
from softgen.threads.bindings import BindingCache
from softgen.threads.dispatch import DispatchContext, Finished, ThreadDispatch, TimedOut, never
from softgen.threads.payload import TemplatePayload
from softgen.threads.programs import DispatchProgram
from softgen.threads.scheduler import GroupShare, ReturnReason, WorkerPart
from softgen.threads.shared import SharedDispatch
from softgen.threads.staffing import STAGE, Staffing, Stages
from softgen.threads.worker import SLICE, Worker, WorkerState

MIN_PARALLEL_TIME = 0.0002  # seconds of work that justify another host thread
MOST_KEPT = 64  # dispatches whose workers are kept,
MOST_BYTES = 16 << 20  # the blocks of these,
MOST_OF_A_KIND = 16  # and of those of a kind, which have different surfaces: to look through more takes as long as to make workers anew
FEW = 2  # of a kind that are looked at where none was found as often: a program has more sets of surfaces in turn
NOTHING = Finished(0, 0)
NO_PARTS = (WorkerPart * 0)()


class GroupRun:
    """A dispatch, from its first group to its last; afterwards another one of its kind."""

    def __init__(self, shared: SharedDispatch, state: Callable[[int], WorkerState], threads: int) -> None:
        """`state`: what a worker keeps, by its number; `threads`: workers at most."""
        self.shared, self.state, self.timed_out = shared, state, never
        dispatch = shared.dispatch
        self.most = self.limit = min(threads, dispatch.concurrent_groups, dispatch.groups)
        self.block_bytes = self.most * dispatch.threads * BLOCK_SIZE  # of its workers, at most
        self.share = GroupShare(end=dispatch.groups)
        self.employed: list[Worker] = []  # those that some dispatch needed
        self.workers: list[Worker] = []  # of this dispatch
        self.parts = NO_PARTS  # of the same
        self._kept_parts = self.parts  # of the dispatch before: workers have the same again,
        self._staffed = 0, 0  # if there are as many, and as many at most
        self.failed: tuple[int, SoftgenError] | None = None  # the first group that failed, and why
        self.done = NOTHING
        self.reconsidering = False  # workers end their groups, to go on with better code if there is some
        self.overdue = False  # a deadline has passed between instructions that were left to the interpreter
        self.pace = 0.0  # seconds of a group in the last dispatch
        self.staffing = Staffing()
        self.stages = Stages(self.staffing, dispatch.groups, alone=False)
        self.spent = 0.0  # seconds in compiled code
        self.next = self  # of its kind, the run of the dispatch that came after this one's last dispatch
        self.header = dispatch.payload.header if isinstance(dispatch.payload, TemplatePayload) else b""
        self.constant: int | None = None  # offset of the dword in the header that differs between dispatches

    def run(self, timed_out: TimedOut) -> Iterator[Finished]:
        """All of the work, with counts as it goes on."""
        self.timed_out = timed_out
        if timed_out():
            raise places.timed_out_before(self.shared.dispatch, 0, self.shared.program)
        used, first = 0.0, int(self.share.next)  # seconds of all workers
        work = self.pace * self.share.end
        self.limit = 1 if self.most > 1 and work > MIN_PARALLEL_TIME and self.staffing.alone(work) else self.most
        self.spent, self.stages = 0.0, Stages(self.staffing, self.share.end, self.limit < self.most)
        self._staff(work)
        try:
            while self._unfinished():
                began = time.perf_counter()
                scheduler.run_parts(self.parts)
                elapsed = time.perf_counter() - began
                self.spent, used = self.spent + elapsed, used + elapsed * len(self.parts)
                self.shared.program.spent += elapsed * len(self.parts)
                yield self._finished()
                self._answer()
        except BaseException:  # threads may have been left in the middle
            self._mark_dirty()
            raise
        if self.failed is not None:
            self._mark_dirty()
            raise self.failed[1]
        if work > MIN_PARALLEL_TIME and not self.stages.count:
            self.staffing.ran(self.limit == 1, self.spent)
        pace = used / max(self.share.end - first, 1)
        self.pace = min(pace, 1.5 * self.pace) if self.pace else pace  # what disturbs only adds; one that is too low is found out

    def renew(self, context: DispatchContext, dispatch: ThreadDispatch, program: DispatchProgram) -> bool:
        """For another dispatch of the same kind; False where all has to be made anew."""
        scheduler.alert(len(self.workers) - 1)  # it will have as many again
        if not self._same_header(dispatch) or not self.shared.holds(context, program, dispatch):
            return False
        constant = self._constant_value()
        for worker in self.employed:
            worker.renew(constant)
        self.workers, self.parts, self.done = [], NO_PARTS, NOTHING
        self.share.next = self.share.halted = 0
        return True

    def _same_header(self, dispatch: ThreadDispatch) -> bool:
        """Whether the header differs in one dword at most, always the same, which workers can write as they write counters."""
        payload, patch = dispatch.payload, dispatch.patch
        assert isinstance(payload, TemplatePayload) and patch is not None
        header, held, at = payload.header, self.header, self.constant
        if header == held or at is not None and header[:at] == held[:at] and header[at + 4 :] == held[at + 4 :]:
            return True
        new, old = (struct.unpack(f"<{len(self.header) // 4}I", header) for header in (payload.header, self.header))
        differ = {4 * number for number, (a, b) in enumerate(zip(new, old, strict=True)) if a != b}
        taken = {slot.offset for slot in payload.slots} | {counter.offset for counter in patch.counters}
        if self.constant is not None or len(differ) != 1 or not differ.isdisjoint(taken):
            return False
        self.constant = differ.pop()
        return True

    def _constant_value(self) -> tuple[int, int] | None:
        """Offset and value of that dword."""
        payload = self.shared.dispatch.payload
        if self.constant is None or not isinstance(payload, TemplatePayload):
            return None
        return self.constant, struct.unpack_from("<I", payload.header, self.constant)[0]

    def _staff(self, seconds: float) -> None:
        """Workers for so many seconds of work; unknown if 0: a worker that is alone asks for help."""
        wanted = self.limit if seconds > self.limit * MIN_PARALLEL_TIME else 1 + int(seconds / max(MIN_PARALLEL_TIME, 1e-9))
        wanted = max(min(wanted, self.limit), len(self.workers))
        for number in range(len(self.employed), wanted):
            self.employed.append(Worker(self.shared, number, self.state(number), self._poll_overdue))
            self.employed[-1].renew(self._constant_value())
        for worker in self.employed[len(self.workers) : wanted]:
            worker.join(self.share)
            self.workers.append(worker)
        if self._staffed != (wanted, self.limit):
            self._staffed, self._kept_parts = (wanted, self.limit), (WorkerPart * wanted)(*(worker.part() for worker in self.workers))
            for worker in self.workers:
                worker.context.alone = int(wanted == 1)
            self.share.workers = wanted
            self.share.worthwhile = max(int(MIN_PARALLEL_TIME * 1e9), 1) if wanted < self.limit else 0
        self.parts = self._kept_parts

    def _unfinished(self) -> bool:
        """Whether groups are left; after a failure only those before it matter, since the first one is reported."""
        if self.failed is None:
            return self.share.next < self.share.end or any(worker.unfinished for worker in self.workers)
        return any(worker.unfinished and worker.dispatch.first < self.failed[0] for worker in self.workers)

    def _answer(self) -> None:
        """Does what workers returned for."""
        self.share.halted, help_wanted, late, before = 0, False, False, len(self.workers)
        for worker, part in zip(self.workers, self.parts, strict=True):
            why = None if part.signal else worker.call.record.result
            if not part.done or why == ReturnReason.DONE:
                continue
            help_wanted |= why == ReturnReason.HELP
            late |= why == ReturnReason.DEADLINE
            if why not in (ReturnReason.HELP, ReturnReason.DEADLINE):
                self._answer_one(worker, why)
        if late or self.overdue:
            self._late()
        elif self.reconsidering:
            self._choose()
        if help_wanted:
            self._staff(self.limit * MIN_PARALLEL_TIME + 1.0)
        if len(self.workers) > self.limit:
            self._dismiss()
        if len(self.workers) != before:
            self.stages.begin(self._groups_done(), self.spent)

    def _answer_one(self, worker: Worker, why: int | None) -> None:
        try:
            worker.answer(why)
        except SoftgenError as error:
            group = int(worker.dispatch.first)
            if self.failed is None or group < self.failed[0]:
                self.failed = group, error
            self.share.next = self.share.end
            worker.dispatch.first, worker.dispatch.inside = worker.dispatch.last, 0

    def _late(self) -> None:
        """The deadline has passed: the time limit is polled, and the engine may have better code by now."""
        self.overdue = False
        for worker in self.workers:
            self._poll(worker)
            worker.dispatch.deadline = time.monotonic_ns() + SLICE
        chosen = self.workers[0].chosen
        settled = chosen is None or self.shared.engine.settled(chosen)
        if self.share.next < self.share.end:
            if not settled:
                self.stages.begin(self._groups_done(), self.spent)
            elif len(self.workers) == self.limit and self.most > 1:
                self.limit = 1 if self.stages.end(self.limit, self._groups_done(), self.spent) else self.most
            self._staff(self.limit * MIN_PARALLEL_TIME + 1.0)
        if not settled:
            self._choose()

    def _groups_done(self) -> int:
        """Groups of this dispatch that have been done."""
        return int(self.share.next - sum(worker.dispatch.last - worker.dispatch.first for worker in self.workers))

    def _dismiss(self) -> None:
        """Lets one worker go on, once the others have done the groups that they took."""
        if any(worker.unfinished for worker in self.workers[1:]):
            self.share.halted = 1
            return
        del self.workers[1:]
        first = self.workers[0].dispatch
        self.done = Finished(int(first.threads_done), int(first.instructions))
        self._staff(0.0)
        first.deadline = time.monotonic_ns() + int(1e9 * STAGE)

    def _choose(self) -> None:
        """Chooses the code of the next groups, of workers that are between two; until all are, none begins another chunk."""
        for worker in self.workers:
            if not worker.dispatch.inside:
                worker.choose()
        self.reconsidering = any(worker.dispatch.inside for worker in self.workers)
        self.share.halted = int(self.reconsidering)

    def _poll(self, worker: Worker) -> None:
        if self.timed_out():
            raise places.timed_out(worker.place(worker.busy()))

    def _poll_overdue(self, worker: Worker) -> None:
        """The same, between instructions that are left to the interpreter: a dispatch of which all time goes there has no other slices."""
        self.overdue = True
        self._poll(worker)

    def _finished(self) -> Finished:
        """Counts since the last call."""
        threads = instructions = 0
        for worker in self.workers:
            threads += worker.dispatch.threads_done
            instructions += worker.dispatch.instructions
        done, self.done = self.done, Finished(threads, instructions)
        new = Finished(threads - done.threads, instructions - done.instructions) if done is not NOTHING else self.done
        self.shared.engine.ran(self.shared.program, new.instructions)
        return new

    def _mark_dirty(self) -> None:
        for worker in self.workers:
            worker.state.mark_dirty()


class GroupCache:
    """Group runs by kind of dispatch. One dispatch at a time uses it."""

    def __init__(self, threads: int, bindings: BindingCache) -> None:
        self.threads, self.bindings = threads, bindings
        self._kept: dict[tuple[Any, ...], list[GroupRun]] = {}  # of each kind, the one used last first
        self._misses: Counter[tuple[Any, ...]] = Counter()  # by kind, one after another
        self._free: list[WorkerState] = []
        self._paces: WeakKeyDictionary[DispatchProgram, float] = WeakKeyDictionary()

    def run(self, context: DispatchContext, dispatch: ThreadDispatch, program: DispatchProgram, engine: CompilerEngine,
            timed_out: TimedOut) -> Iterator[Finished]:  # fmt: skip
        kind = (dispatch.kind,) if dispatch.kind is not None else _kind(dispatch)
        run = self._renewed(kind, context, dispatch, program, engine) if kind else None
        if run is None:
            shared = SharedDispatch(context, dispatch, program, engine, None if kind else self.bindings)  # a kept one follows its table
            run = GroupRun(shared, lambda number: self._free.pop() if self._free else WorkerState(), self.threads)
            run.pace = self._pace(program)
            if kind:
                self._keep(kind, run)
        done = False
        try:
            yield from run.run(timed_out)
            done = True
        finally:
            if not kind:
                self._release(run)
            elif not done:
                self._drop(kind, run)

    def _renewed(self, kind: tuple[Any, ...], context: DispatchContext, dispatch: ThreadDispatch, program: DispatchProgram,
                 engine: CompilerEngine) -> GroupRun | None:  # fmt: skip
        """A kept run with the surfaces of a dispatch: programs use several sets of buffers in turn."""
        runs = self._kept.get(kind)
        if runs is None:
            return None
        last = runs[0]
        likely = runs if last.next is last else [last.next, *(run for run in runs if run is not last.next)]
        for run in likely if self._misses[kind] < MOST_OF_A_KIND else likely[:FEW]:
            if run.shared.engine is engine and run.renew(context, dispatch, program):
                if run is not last:
                    runs.remove(run)
                    runs.insert(0, run)
                last.next = run
                self._misses.pop(kind, None)
                return run
        self._misses[kind] += 1
        for run in [run for run in runs if run.shared.engine is not engine or run.shared.program is not program]:
            self._drop(kind, run)
        return None

    def _pace(self, program: DispatchProgram) -> float:
        """What is known of the pace of a program's dispatches, of any kind."""
        kept = (run.pace for runs in self._kept.values() for run in runs if run.shared.program is program)
        return next(kept, self._paces.get(program, 0.0))

    def _keep(self, kind: tuple[Any, ...], run: GroupRun) -> None:
        runs = self._kept.pop(kind, [])
        runs.insert(0, run)
        self._kept[kind] = runs  # the last kind that was extended comes last
        if len(runs) > MOST_OF_A_KIND:
            self._drop(kind, runs[-1])
        while (kept := [(kind, run) for kind, runs in self._kept.items() for run in reversed(runs)])[1:] and (
            len(kept) > MOST_KEPT or sum(run.block_bytes for _, run in kept) > MOST_BYTES
        ):
            self._drop(*kept[0])

    def _drop(self, kind: tuple[Any, ...], run: GroupRun) -> None:
        runs = self._kept[kind]
        runs.remove(run)
        for other in runs:
            if other.next is run:
                other.next = other
        if not runs:
            del self._kept[kind]
            self._misses.pop(kind, None)
        self._release(run)

    def _release(self, run: GroupRun) -> None:
        self._paces[run.shared.program] = run.pace
        self._free += [worker.state for worker in run.employed]


def _kind(dispatch: ThreadDispatch) -> tuple[Any, ...]:
    """All that dispatches of the same kind have in common; nothing where workers cannot be kept."""
    payload = dispatch.payload
    if not isinstance(payload, TemplatePayload) or dispatch.patch is None:
        return ()
    return (dispatch.kernel, dispatch.control, dispatch.simd, dispatch.threads, dispatch.masks, dispatch.patch, dispatch.samplers,
            dispatch.scratch, dispatch.local_bytes, dispatch.units, dispatch.unit_states, dispatch.system_routine,
            payload.common, payload.own, payload.own_first, payload.slots)  # fmt: skip
