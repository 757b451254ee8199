"""Groups of a dispatch on compiled engines, shared among host threads.

The calling thread is worker 0; others run on helpers (helpers.c), without Python. Each takes a chunk of groups after another in C code, and
returns where Python is needed: then all return, the calling thread answers for each of them, and they go on. Only the calling thread polls
the time limit and Ctrl-C, for which compiled code returns at intervals. With one host thread the order is always the same, and results are
reproducible.

Where there are few groups, whose threads are independent, workers take pieces of groups; those are then counted in place of groups. Where
there are many, and their threads have rows to themselves, workers take strips of groups (strips.py), a thread of each group at a time. Of
several threads of a strip that fail, another may then be reported than on the reference engine.

Workers are kept for the next dispatch of the same kind with the same surfaces (group_cache.py): programs dispatch a kernel many times,
with other arguments, and drivers write its binding table to another place each time.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from softgen.errors import SoftgenError
from softgen.eu.thread.block import BLOCK_SIZE
from softgen.lanes.compile import foreground
from softgen.threads import places
from softgen.threads.dispatch import DispatchContext, Finished, ThreadDispatch, TimedOut, never
from softgen.threads.native import scheduler
from softgen.threads.native.scheduler import GroupShare, ReturnReason, WorkerPart
from softgen.threads.payload import TemplatePayload
from softgen.threads.workers.shared import SharedDispatch
from softgen.threads.workers.strips import strip_length
from softgen.threads.workers.worker import SLICE, Worker, WorkerState
from softgen.threads.workers.worker_count import STAGE, Stages, WorkerCountTuner, most_pieces

if TYPE_CHECKING:
    from softgen.threads.statistics import KernelStatistics

MIN_PARALLEL_TIME = 0.0002  # seconds of work that justify another host thread
BINDINGS_BYTES = 16 << 10  # of a run besides blocks, about
NOTHING = Finished(0, 0)
NO_PARTS = (WorkerPart * 0)()


class GroupRun:
    """A dispatch, from its first group to its last; afterwards another one of its kind."""

    def __init__(self, shared: SharedDispatch, state: Callable[[int], WorkerState], threads: int, strips: bool = True) -> None:
        """`state`: what a worker keeps, by its number; `threads`: workers at most; `strips`: there may be some."""
        self.shared, self.state, self.timed_out = shared, state, never
        dispatch = shared.dispatch
        threads = min(threads, dispatch.concurrent_groups)
        pieces = most_pieces(dispatch.groups, dispatch.threads, threads)
        self.most_pieces = pieces if pieces > 1 and shared.independent() else 1  # of a group
        shared.strip = strip_length(shared, threads) if strips and self.most_pieces == 1 else 0
        self.groups = dispatch.groups * dispatch.threads // shared.strip if shared.strip else dispatch.groups  # or what is counted instead
        self.most = self.limit = min(threads, self.groups * self.most_pieces)
        self.share = GroupShare(end=self.groups, pieces=1)
        self.employed: list[Worker] = []  # those that some dispatch needed
        self.workers: list[Worker] = []  # of this dispatch; before it starts, of the one before
        self.parts = NO_PARTS  # of the same
        self._restart: Callable[[], int] = never  # runs these for another dispatch: what the one before left in them is cleared
        self._staffed = 0, 0  # how many they are, and how many at most: a dispatch with the same numbers has them again
        self.all_done = False
        self.failed: tuple[int, SoftgenError] | None = None  # the first group that failed, and why
        self.done = NOTHING
        self.reconsidering = False  # workers end their groups, to go on with better code if there is some
        self.overdue = False  # a deadline has passed between instructions that were left to the interpreter
        self.pace = 0.0  # seconds of a group in the last dispatch
        self.tuner = WorkerCountTuner(lambda: shared.program.contends)
        self.stages = Stages(self.tuner, self.groups, alone=False)
        self.work = 0.0  # seconds that it is expected to take
        self.spent = 0.0  # seconds in compiled code, and those of all workers
        self.taken = 0.0
        self.header = dispatch.payload.header if isinstance(dispatch.payload, TemplatePayload) else b""
        self.constant: Any = None  # offset of the dword in the header that differs between dispatches,
        self._rest = b"", b""  # what is before and after it,
        self._split = struct.Struct("<0sI0s")  # and what gives these and the dword
        self.resolved = shared.bound.dispatch.resolved
        # Where it is kept (group_cache.py):
        self.kind: Any = None  # a GroupKind
        self.states, self.surface_count = b"", -1  # surface states that it is found by, and surfaces that it had used by then
        self.used = 0  # when it was used last, counted in dispatches
        self.statistics: KernelStatistics | None = None  # of the kernel

    @property
    def bytes(self) -> int:
        """The memory that it takes, nearly all of it for blocks of threads and their templates."""
        blocks = self.shared.dispatch.threads + (self.shared.strip or self.shared.dispatch.threads)
        return BINDINGS_BYTES + len(self.employed) * blocks * BLOCK_SIZE

    def run(self, timed_out: TimedOut) -> Iterator[Finished]:
        """All of the work, with counts as it goes on."""
        yield self.start(timed_out)
        yield from self.resume()

    def start(self, timed_out: TimedOut) -> Finished:
        """The work until workers return for the first time: most often it is `all_done` then, and otherwise `resume` has the rest."""
        self.timed_out = timed_out
        if timed_out():
            raise places.timed_out_before(self.shared.dispatch, 0, self.shared.program)
        self.work = self.pace * self.groups
        finished = self._run_parts(self._begin())
        if self.all_done:
            self._end()
        return finished

    def resume(self) -> Iterator[Finished]:
        """The rest of the work, with counts as it goes on."""
        if self.all_done:
            return
        while not self.all_done and self._answer():
            yield self._run_parts(False)
        self._end()

    def _run_parts(self, anew: bool) -> Finished:
        """Lets workers run until all have returned. `anew`: what they have is of the dispatch before."""
        foreground.leave()
        try:
            self.all_done = bool(self._restart()) if anew else scheduler.run_parts(self.parts)
        except BaseException:  # threads may have been left in the middle
            self.mark_dirty()
            raise
        elapsed = self.share.seconds
        self.spent += elapsed
        elapsed *= len(self.parts)
        self.taken += elapsed
        self.shared.program.spent += elapsed
        return self._finished()

    def _end(self) -> None:
        if self.failed is not None:
            self.mark_dirty()
            (_, error), self.failed = self.failed, None
            try:
                raise error
            finally:
                del error  # its traceback leads here, and to all that called: none of it should wait for the garbage collector
        if self.work > MIN_PARALLEL_TIME and not self.stages.count:
            self.tuner.ran(self.limit == 1, self.spent)
        pace, most = self.taken / self.groups, 1.5 * self.pace
        self.pace = most if 0 < most < pace else pace  # what disturbs only adds; one that is too low is found out

    def _begin(self) -> bool:
        """Finds workers for the work that is expected; whether they are those of the dispatch before."""
        self.spent = self.taken = 0.0
        if self._staffed == (self._plan() if self.most > 1 else 1, self.limit):
            self._choose_again()
            return True
        if self.workers:  # of the dispatch before, which has left nothing
            self.workers, self.share.next, self.share.halted = [], 0, 0
        self._staff(self.work)
        return False

    def _plan(self) -> int:
        """How many workers the work should have at first, of several."""
        alone = self.work > MIN_PARALLEL_TIME and self.tuner.alone(self.work)
        self.limit = 1 if alone else self.most
        if self.most_pieces > 1:
            self._divide()
        self.stages = Stages(self.tuner, self.share.end, alone)
        return self._wanted(self.work)

    def _choose_again(self) -> None:
        """Chooses the code that threads start with: most often the one before, of all workers."""
        first, *others = self.workers
        first.choose()
        for worker in others:
            if worker.chosen != first.chosen or worker.rows is not first.rows:
                worker.choose()

    def _divide(self) -> None:
        """Divides groups, if one takes as long as is worth another worker, and there may be one; else they are whole."""
        worthwhile = self.limit > 1 and not 0 < self.pace <= MIN_PARALLEL_TIME
        pieces, groups = self.most_pieces if worthwhile else 1, self.groups
        self.share.pieces, self.share.end = pieces, groups * pieces
        self.limit = min(self.limit, groups * pieces)

    def renew(self, context: DispatchContext, dispatch: ThreadDispatch) -> bool:
        """For another dispatch of the same kind with the same surfaces; False where all has to be made anew."""
        if len(self.workers) > 1:
            scheduler.alert(len(self.workers) - 1)  # it will have as many again
        shared, share = self.shared, self.share
        held: Any = shared.dispatch.payload  # TemplatePayloads, as all that are kept have
        payload: Any = dispatch.payload
        header, value = payload.header, share.constant
        if header != held.header:
            if self.constant is None and not self._find_constant(dispatch):
                return False
            before, value, after = self._split.unpack(header)
            if (before, after) != self._rest:
                return False
        if not shared.renew(context, dispatch):
            return False
        if payload.data != held.data:
            shared.follow_rows()
            for worker in self.employed:
                worker.fill()
        share.constant, self.done = value, NOTHING
        return True

    def _find_constant(self, dispatch: ThreadDispatch) -> bool:
        """The dword of the header that differs, if it is only one, and nothing else writes it: workers can write it as they write counters.
        From now on it is the only one that may differ."""
        payload: Any = dispatch.payload
        header = payload.header
        new, old = (struct.unpack(f"<{len(self.header) // 4}I", data) for data in (header, self.header))
        differ = {4 * number for number, (a, b) in enumerate(zip(new, old, strict=True)) if a != b}
        assert dispatch.patch is not None
        taken = {slot.offset for slot in payload.slots} | {counter.offset for counter in dispatch.patch.counters}
        if len(differ) != 1 or not differ.isdisjoint(taken):
            return False
        at = self.constant = differ.pop()
        self._split = struct.Struct(f"<{at}sI{len(header) - at - 4}s")
        before, self.share.constant, after = self._split.unpack(self.header)
        self._rest = before, after
        self.share.constants, self.share.constant_offset = 1, at
        self._staffed = 0, 0  # workers have to learn of it
        return True

    def _staff(self, seconds: float) -> None:
        """Workers for so many seconds of work; unknown if 0: a worker that is alone asks for help."""
        wanted = max(self._wanted(seconds), len(self.workers)) if self.most > 1 else 1
        if len(self.employed) < wanted:
            self._employ(wanted)
        for worker in self.employed[len(self.workers) : wanted]:
            worker.join(self.share)
            self.workers.append(worker)
        if self._staffed != (wanted, self.limit):
            self._staffed, self.parts = (wanted, self.limit), (WorkerPart * wanted)(*(worker.part() for worker in self.workers))
            self._restart = scheduler.restarting(self.parts, SLICE)
            for worker in self.workers:
                worker.context.alone = int(wanted == 1)
            self.share.workers = wanted
            self.share.worthwhile = max(int(MIN_PARALLEL_TIME * 1e9), 1) if wanted < self.limit else 0

    def _wanted(self, seconds: float) -> int:
        """How many workers so many seconds of work should have."""
        wanted = self.limit if seconds > self.limit * MIN_PARALLEL_TIME else 1 + int(seconds / max(MIN_PARALLEL_TIME, 1e-9))
        return min(wanted, self.limit)

    def _employ(self, count: int) -> None:
        """Makes workers, until there are so many."""
        for number in range(len(self.employed), count):
            self.employed.append(Worker(self.shared, number, self.state(number), self._poll_overdue))

    def _unfinished(self) -> bool:
        """Whether groups are left; after a failure only those before it matter, since the first one is reported."""
        if self.failed is None:
            return self.share.next < self.share.end or any(worker.unfinished for worker in self.workers)
        return any(worker.unfinished and worker.dispatch.first < self.failed[0] for worker in self.workers)

    def _answer(self) -> bool:
        """Does what workers returned for; whether any work is left."""
        foreground.enter()
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
        return self._unfinished()

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
        unfinished = next((worker for worker in self.workers if worker.unfinished), None)
        if unfinished is not None or self.failed is None:  # the one that failed may have seen that time is up
            self._poll(unfinished or self.workers[0])
        if self.failed is not None:
            self._give_up(self.failed[0] // self.share.pieces)
        for worker in self.workers:
            worker.dispatch.deadline = time.monotonic_ns() + SLICE
        chosen = self.workers[0].chosen
        settled = chosen is None or self.shared.engine.settled(chosen)
        if self.share.next < self.share.end:
            if not settled:
                self.stages.begin(self._groups_done(), self.spent)
            elif len(self.workers) == self.limit and self.most > 1:
                alone = self.stages.end(self.limit, self._groups_done(), self.spent)
                self.limit = 1 if alone else min(self.most, self.share.end)
            self._staff(self.limit * MIN_PARALLEL_TIME + 1.0)
        if not settled:
            self._choose(wait=not self.reconsidering)  # for one slice: a group may wait for another that nobody has begun

    def _give_up(self, group: int) -> None:
        """Leaves pieces of a group of which another has failed: they may wait for it."""
        for worker in self.workers:
            if worker.dispatch.first // self.share.pieces == group:
                worker.dispatch.first, worker.dispatch.inside = worker.dispatch.last, 0

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

    def _choose(self, wait: bool = True) -> None:
        """Chooses the code of the next groups, of workers that are between two; until all are, none begins another chunk if they `wait`."""
        for worker in self.workers:
            if not worker.dispatch.inside:
                worker.choose()
        self.reconsidering = wait and any(worker.dispatch.inside for worker in self.workers)
        self.share.halted = int(self.reconsidering)

    def _poll(self, worker: Worker) -> None:
        self.shared.reports.context.told(lambda: worker.place(worker.busy()))
        if self.timed_out():
            raise places.timed_out(worker.place(worker.busy()))

    def _poll_overdue(self, worker: Worker) -> None:
        """Poll between instructions that are left to the interpreter: a dispatch of which all time goes there has no other slices."""
        self.overdue = True
        self._poll(worker)

    def _finished(self) -> Finished:
        """Counts since the last call."""
        shared, share, done = self.shared, self.share, self.done
        new = self.done = Finished(share.threads_done, share.instructions)
        if done is not NOTHING:
            new = Finished(new.threads - done.threads, new.instructions - done.instructions)
        shared.engine.ran(shared.program, new.instructions)
        return new

    def mark_dirty(self) -> None:
        """Blocks are not as threads start."""
        for worker in self.employed:
            worker.state.mark_dirty()
