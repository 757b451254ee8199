"""The executor of a run: failures that are reported, kept and counted, and the time that work took."""

from __future__ import annotations

import gc
import struct
import subprocess
import sys
import time
import weakref
from types import SimpleNamespace
from typing import Any

import pytest

from softgen.bits.generation import device
from softgen.driver.objects.budget import Budget
from softgen.driver.objects.buffer_list import BufferList
from softgen.driver.queue import execute
from softgen.driver.queue.execute import Executor
from softgen.driver.queue.parking import LOOK_AGAIN
from softgen.errors import SoftgenError, Unsupported
from tests.conftest import ROOT
from tests.driver.execbuffer import END, STORE, buffer, row, submit
from tests.driver.program import Program, served


def submission(number: int) -> Any:
    context = SimpleNamespace(cancelled=False, context_engines={})
    return SimpleNamespace(sequence=number, program="p", pid=0, engine="rcs0", slot=0, context=context)


def test_many_failures_are_counted_and_the_first_ones_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execute, "MOST_REPORTED", 2)
    told = list[str]()
    made = Executor(device("kbl"), [], lambda submission, text: f"capture of {submission.sequence}", told.append)
    for number in range(1, 6):
        made.failed(submission(number), SoftgenError("broken"))
    assert made.report.faults == [f"submission {number} of p (process 0, rcs0): broken; position {number}" for number in range(1, 6)]
    assert [text.split(" of ")[0] for text in told] == ["submission 1", "submission 2", "submission 3"]
    assert told[2].endswith("more failures are only counted (--report)") and made.report.captures == ["capture of 1", "capture of 2"]


def test_twenty_failing_submissions_are_kept() -> None:
    """Of each kind; a line says that there are more."""
    told = list[str]()
    made = Executor(device("kbl"), [], lambda submission, text: f"capture of {submission.sequence}", told.append)
    for number in range(1, 26):
        made.failed(submission(number), SoftgenError("broken"))
    made.failed(submission(26), Unsupported("a stage"))
    assert made.report.captures == [f"capture of {number}" for number in (*range(1, 21), 26)] and len(told) == 22


def test_a_programs_batch_is_no_ring_and_has_no_privileges() -> None:
    space: Any = object()
    found = execute.BatchWork("render", space, 0x1000)
    assert (found.kind, found.head, found.tail, found.size, found.context) == ("batch", 0, 0, 0, 0)
    assert found.privileged is False and found.global_space is None
    assert (found.engine, found.space, found.batch) == ("render", space, 0x1000)


@pytest.mark.parametrize(
    "error, faults, unsupported", [(SoftgenError("broken"), 1, 0), (Unsupported("a stage"), 0, 1), (ValueError("x"), 1, 0)]
)
def test_a_run_with_either_kind_of_failure_is_not_fine(error: Exception, faults: int, unsupported: int) -> None:
    made = Executor(device("kbl"), [], lambda submission, text: "", lambda text: None)
    assert made.report.fine
    made.failed(submission(1), error)
    assert (len(made.report.faults), len(made.report.unsupported)) == (faults, unsupported) and not made.report.fine


def test_the_seconds_of_a_run_are_those_its_work_took() -> None:
    with served("kbl") as gpu:
        began, program = time.monotonic(), gpu.program()
        assert gpu.executor is not None
        report = gpu.executor.report
        batch = buffer(program, struct.pack("<2I", END, 0))
        for _ in range(3):
            submit(program, [row(batch)])
            program.ioctl("DRM_IOCTL_I915_GEM_WAIT", handle=batch, timeout=20 * 10**9)
        assert report.submissions == 3 and 0 < report.seconds < time.monotonic() - began


@pytest.mark.parametrize("name, engine, instance", [
    ("rcs0", "render", 0), ("rcs", "render", 0), ("vcs1", "video", 1), ("vecs0", "video_enhance", 0), ("bcs0", "blitter", 0),
])  # fmt: skip
def test_an_engine_has_a_class_and_a_number(name: str, engine: str, instance: int) -> None:
    made = execute.ContextEngine(Executor(device("kbl"), [], lambda submission, text: "", lambda text: None), name)
    assert (made.engine, made.instance) == (engine, instance)


def test_a_context_whose_work_failed_ends_with_its_program() -> None:
    with served("kbl") as gpu:
        program = Program(gpu.folder)
        batch = buffer(program, struct.pack("<6I", STORE, 0x7F0000, 0, 7, END, 0))
        submit(program, [row(batch)])
        program.ioctl("DRM_IOCTL_I915_GEM_WAIT", handle=batch, timeout=20 * 10**9)
        assert len(gpu.told) == 1 and "not mapped" in gpu.told[0]
        (node,) = gpu.server.nodes.values()
        ended = [weakref.ref(held) for held in (node.contexts.get(0), node.objects.get(batch))]
        del node
        program.close()
        until = time.monotonic() + 20
        while any(held() is not None for held in ended) and time.monotonic() < until:
            time.sleep(0.01)
            gc.collect()
        assert [held() for held in ended] == [None, None]


# -- an engine of a context ----------------------------------------------------------------------------------------


def context_engine(drawn: Any = None, recorders: Any = ()) -> Any:
    executor = Executor(device("kbl"), list(recorders), lambda submission, text: "", lambda text: None, drawn=drawn)
    return execute.ContextEngine(executor, "rcs0")


def slot(until: float = float("inf"), waiting: bool = False) -> Any:
    """The slot of a submission, which notes pauses and completion."""
    found = SimpleNamespace(engine=SimpleNamespace(waiting=waiting), submission=submission(1), notes=[])
    found.caller = SimpleNamespace(until=until, completed=lambda: found.notes.append("completed"))
    found.pause = lambda: found.notes.append("pause")
    return found


def test_a_submission_goes_on_after_a_hundred_errors_at_most() -> None:
    engine, error = context_engine(), SoftgenError("broken")
    assert [engine.on_error(error) for _ in range(102)] == [True] * 100 + [False] * 2 and len(engine.errors) == 100


@pytest.mark.parametrize("ending, cancelled, over", [(False, False, False), (True, False, True), (False, True, True), (True, True, True)])
def test_a_submission_whose_result_nothing_needs_ends(ending: bool, cancelled: bool, over: bool) -> None:
    engine = context_engine()
    engine.slot, engine.executor.ending = slot(), ending
    engine.slot.submission.context.cancelled = cancelled
    assert engine.over() is engine.timed_out() is over and engine.on_error(SoftgenError("broken")) is not over
    engine.slot = None
    assert engine.over() is engine.timed_out() is ending


@pytest.mark.parametrize("waiting, until, paused", [(False, float("inf"), False), (True, float("inf"), True), (False, 0.0, True)])
def test_a_slot_is_given_up_to_others_that_wait_and_when_its_time_is_over(waiting: bool, until: float, paused: bool) -> None:
    engine = context_engine()
    engine.slot = slot(until, waiting)
    assert not engine.timed_out() and engine.slot.notes == ["pause"] * paused


def test_copied_memory_is_given_back_once_after_each_command() -> None:
    engine, given = context_engine(), list[int]()
    engine.slot, engine.execution = slot(), SimpleNamespace(counters=SimpleNamespace(commands=0))
    engine.copies = [SimpleNamespace(give_back=lambda: given.append(engine.execution.counters.commands))] * 2
    for commands in (0, 0, 1, 1, 3):
        engine.execution.counters.commands = commands
        engine.timed_out()
    assert given == [0, 0, 1, 1, 3, 3]


@pytest.mark.parametrize("errors, copies, recorders, told", [
    ([], [], [], True), ([SoftgenError("broken")], [], [], False), ([], [None], [], False), ([], [], [None], False),
])  # fmt: skip
def test_completion_is_told_early_unless_something_is_still_to_be_done(errors: Any, copies: Any, recorders: Any, told: bool) -> None:
    engine = context_engine(recorders=recorders)
    engine.completed()  # nothing runs
    engine.slot, engine.errors, engine.copies = slot(), errors, copies
    engine.completed()
    assert engine.slot.notes == ["completed"] * told
    engine.slot.caller.completed = None
    engine.completed()


def test_work_that_still_runs_is_reported_every_ten_seconds_with_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its threads, or, where there are none, by the command."""
    monkeypatch.setattr(time, "monotonic", lambda: now)
    now, made = 100.0, context_engine()
    told, made.executor.tell = [], lambda text: told.append(text)
    streamer = SimpleNamespace(where=lambda: ["GPGPU_WALKER at 0x40"], command_number=3)
    made.slot, made.execution = slot(), SimpleNamespace(streamer=streamer, counters=None)
    made.slot.submission, made.began, made.tell_at = submission(7), 100.0, 110.0
    for seconds in (105, 111, 112, 119, 123):
        now = float(seconds)
        made.told(lambda: "thread 3")
        made.timed_out()
    now = 140.0
    made.timed_out()
    where = "submission 7 of p (process 0, rcs0): GPGPU_WALKER at 0x40"
    assert told == [f"still running after 11 s: {where}: thread 3; position 7:3",
                    f"still running after 23 s: {where}: thread 3; position 7:3",
                    f"still running after 40 s: {where}; position 7:3"]  # fmt: skip


def test_work_that_is_cut_short_says_where_it_was_and_is_kept() -> None:
    """It is no failure. What had not begun, or is done, says nothing."""
    logged, told, begun = list[str](), list[str](), submission(1)
    made = Executor(device("kbl"), [], lambda submission, text: f"capture of {submission.sequence}", logged.append)
    made.tell = told.append
    made.under_way.add(id(begun))
    made.end(0.0)
    made.failed(begun, SoftgenError("GPGPU_WALKER at 0x40: time is up: thread 3"))
    made.failed(submission(2), SoftgenError("time is up at 0x80"))
    text = "the run ended while work was running: submission 1 of p (process 0, rcs0): GPGPU_WALKER at 0x40: thread 3; position 1"
    assert made.report.cut_short == [text] and told == [f"{text}; kept in capture of 1"]
    assert not (logged or made.report.faults or made.under_way)


def test_draws_are_told_with_their_submission() -> None:
    told = list[Any]()
    engine = context_engine(lambda *what: told.append(what))
    engine.drawn("space", ["image"])
    engine.slot = slot()
    engine.hooks.drawn("space", ["image"])
    assert told == [(engine.slot.submission, "space", ["image"])] and context_engine().hooks.drawn is None


class Execution:
    """Waits at a semaphore so many times before it comes to its end."""

    def __init__(self, waits: int) -> None:
        self.waits, self.runs, self.counters = waits, 0, SimpleNamespace(commands=1)
        self.streamer = SimpleNamespace(space="another one", waiting=None)  # so that no batch follows it

    def run(self) -> bool:
        self.runs += 1
        return self.runs > self.waits

    def stuck(self) -> SoftgenError:
        return SoftgenError("stuck")


def test_a_submission_waits_at_a_semaphore_until_it_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, here, waited = context_engine(), slot(), list[float]()
    here.wait = lambda seconds, woken: waited.append(seconds)
    work = SimpleNamespace(bound=BufferList(), vm=SimpleNamespace(space=None), batch=0)
    execution = Execution(3)
    engine.executor.device = SimpleNamespace(begin=lambda *work: execution)
    engine.run(work, here)
    assert execution.runs == 4 and waited == [LOOK_AGAIN, LOOK_AGAIN, 2 * LOOK_AGAIN] and engine.done is execution
    assert engine.slot is engine.execution is None and engine.executor.report.submissions == 1
    for hang, ending in ((-1.0, False), (10.0, True)):
        monkeypatch.setattr(execute, "HANG", hang)
        engine.executor.ending, execution, engine.done = ending, Execution(3), None
        with pytest.raises(SoftgenError, match="stuck"):
            engine.run(work, here)
        assert execution.runs == 1 and engine.slot is engine.execution is engine.done is None


def test_a_batch_after_another_of_its_address_space_needs_no_new_execution() -> None:
    """One that did not come to its end is not gone on with, nor one of another space."""
    engine, begun, first, second = context_engine(), list[Any](), object(), object()

    def begin(work: Any, saved: Any, hooks: Any, instance: int) -> Execution:
        begun.append((work.space, work.batch, instance))
        made = Execution(0)
        made.streamer.space = work.space
        return made

    engine.executor.device = SimpleNamespace(begin=begin, begin_again=lambda execution, batch: begun.append(batch))
    for space, batch in ((first, 0x1000), (first, 0x2000), (second, 0x3000), (second, 0x4000), (first, 0x5000)):
        engine.run(SimpleNamespace(bound=BufferList(), vm=SimpleNamespace(space=space), batch=batch), slot())
    assert begun == [(first, 0x1000, 0), 0x2000, (second, 0x3000, 0), 0x4000, (first, 0x5000, 0)]
    engine.done = None
    engine.run(SimpleNamespace(bound=BufferList(), vm=SimpleNamespace(space=first), batch=0x6000), slot())
    assert begun[5:] == [(first, 0x6000, 0)]


@pytest.mark.parametrize("fails", [True, False])
def test_who_waits_for_memory_of_a_submission_looks_when_it_is_over(fails: bool) -> None:
    engine, bo, other, execution = context_engine(), object(), object(), Execution(0)
    if fails:
        execution.run = lambda: 1 // 0  # type: ignore[method-assign, assignment]
    engine.executor.device = SimpleNamespace(begin=lambda *work: execution)
    work = SimpleNamespace(bound=SimpleNamespace(copies=[], bos=[bo]), vm=SimpleNamespace(space=None), batch=0)
    with engine.executor.parking.parked(bo) as woken, engine.executor.parking.parked(other) as not_woken:
        if fails:
            with pytest.raises(ZeroDivisionError):
                engine.run(work, slot())
        else:
            engine.run(work, slot())
        assert woken.is_set() and not not_woken.is_set()


def test_a_semaphore_is_waited_for_ten_seconds() -> None:
    """Looks that were brought forward count as a millisecond each: somebody works."""
    engine, here, waited = context_engine(), slot(), list[float]()
    work = SimpleNamespace(bound=BufferList(), vm=SimpleNamespace(space=None), batch=0)
    engine.executor.device = SimpleNamespace(begin=lambda *work: Execution(1 << 20))
    here.wait = lambda seconds, woken: waited.append(seconds)
    with pytest.raises(SoftgenError, match="stuck"):
        engine.run(work, here)
    assert 10 < sum(waited) < 10.1
    waited.clear()
    here.wait = lambda seconds, woken: (waited.append(seconds), woken.set())
    with pytest.raises(SoftgenError, match="stuck"):
        engine.run(work, here)
    assert 10_000 <= len(waited) <= 10_002


def test_the_first_error_of_a_submission_is_raised_after_all_of_it_was_done() -> None:
    engine, execution = context_engine(), Execution(0)
    work = SimpleNamespace(bound=BufferList(), vm=SimpleNamespace(space=None), batch=0)

    def begin(*work: Any) -> Execution:
        engine.errors += [SoftgenError("first"), SoftgenError("second")]
        return execution

    engine.executor.device = SimpleNamespace(begin=begin)
    for _ in range(2):
        with pytest.raises(SoftgenError, match="first"):
            engine.run(work, slot())
        assert not engine.errors and engine.done is execution
    assert engine.executor.report.submissions == execution.runs == 2


class Context:
    """As much of a context as an executor needs, and what a finalizer may be about."""

    def __init__(self) -> None:
        self.context_engines: dict[tuple[str, int], Any] = {}


@pytest.mark.parametrize("error, fine", [(None, True), (SoftgenError("broken"), False)])
def test_recorders_see_what_runs_before_and_after(error: SoftgenError | None, fine: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    told, work = list[Any](), SimpleNamespace(pid=1, engine="rcs0", slot=0, context=Context())
    recorder = SimpleNamespace(before=lambda what: told.append("before"), after=lambda what, fine: told.append(fine))

    def run(self: Any, submission: Any, slot: Any) -> None:
        told.append("run")
        if error is not None:
            raise error

    monkeypatch.setattr(execute.ContextEngine, "run", run)
    made = Executor(device("kbl"), [recorder] * 2, lambda submission, text: "", lambda text: None)  # type: ignore[list-item]
    if fine:
        made.execute(work, slot())  # type: ignore[arg-type]
    else:
        with pytest.raises(SoftgenError, match="broken"):
            made.execute(work, slot())  # type: ignore[arg-type]
    assert told == ["before", "before", "run", fine, fine]


def test_failures_of_what_was_cancelled_are_not_reported_and_what_cannot_be_kept_is_told() -> None:
    told, kept = list[str](), list[str]()

    def save(submission: Any, text: str) -> str:
        kept.append(text)
        raise OSError("no space left")

    made = Executor(device("kbl"), [], save, told.append)
    cancelled = submission(1)
    cancelled.context.cancelled = True
    made.failed(cancelled, SoftgenError("broken"))
    made.ending = True
    made.failed(submission(2), SoftgenError("broken"))
    assert made.report.fine and not told and not kept
    made.ending = False
    made.failed(submission(3), ValueError("x"))
    what = "submission 3 of p (process 0, rcs0): softgen itself failed: ValueError: x; position 3"
    assert told == ["the failing submission could not be kept: no space left", what] and made.report.captures == []
    assert kept == [f"{what}\nValueError: x\n"]
    made.failed(submission(4), SoftgenError("broken"))
    assert kept[1] == "submission 4 of p (process 0, rcs0): broken; position 4\n"


class Waiting:
    """An execution that waits at semaphores: so many times at each."""

    def __init__(self, *waits: int) -> None:
        self.waits, self.counters, self.streamer = list(waits), SimpleNamespace(commands=1), SimpleNamespace(space=None, waiting=None)

    def run(self) -> bool:
        while self.waits and not self.waits[0]:
            self.waits.pop(0)
            self.counters.commands += 1
        if self.waits:
            self.waits[0] -= 1
        return not self.waits

    def stuck(self) -> SoftgenError:
        return SoftgenError("waits for ever")


@pytest.mark.parametrize("waits, fine", [((11,), True), ((11, 11, 11), True), ((14,), False), ((5, 14), False)])
def test_the_time_of_a_semaphore_is_its_own(waits: tuple[int, ...], fine: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the work before it took, and others have had the engine meanwhile."""
    monkeypatch.setattr(execute, "HANG", 100 * LOOK_AGAIN)
    made = context_engine()
    made.executor.device = SimpleNamespace(begin=lambda *work: Waiting(*waits))
    clock = iter(range(0, 1 << 20, 60))
    monkeypatch.setattr(execute, "time", SimpleNamespace(monotonic=lambda: float(next(clock))))
    slot: Any = SimpleNamespace(submission=submission(1), wait=lambda seconds, woken: None)
    queued: Any = SimpleNamespace(bound=BufferList(), vm=SimpleNamespace(space=None), batch=0)
    if fine:
        made.run(queued, slot)
    else:
        with pytest.raises(SoftgenError, match="waits for ever"):
            made.run(queued, slot)


def test_memory_of_programs_is_charged_to_the_process_of_their_context() -> None:
    charged, budget = list[tuple[int, int]](), Budget(1 << 30)
    budget.note = lambda pid, size: charged.append((pid, size))  # type: ignore[method-assign]
    made = Executor(device("kbl"), [], lambda submission, text: "", lambda text: None, budget=budget)

    class Context:
        context_engines: dict[tuple[str, int], Any] = {}

    work: Any = SimpleNamespace(context=Context(), engine="rcs0", slot=0, pid=77)
    programs = made._new_context_engine(work).hooks.dispatcher.programs  # type: ignore[attr-defined]
    programs._charge(5000)
    assert charged == [(77, 5000)]
    del work.context
    gc.collect()
    assert charged == [(77, 5000), (77, -5000)]


ENDING = """
from types import SimpleNamespace
from softgen.bits.generation import device
from softgen.driver.queue.execute import Executor

class Context:
    context_engines = {}

dispatcher = SimpleNamespace(count_memory=lambda charge: None, retire=lambda: print("retired"))
made = Executor(device("kbl"), [], lambda submission, text: "", print, new_dispatcher=lambda: dispatcher)
kept, other = (SimpleNamespace(context=Context(), engine="rcs0", slot=0, pid=1) for _ in range(2))
for work in (kept, other):
    made._new_context_engine(work)
del other, work
print("ends")
"""


def test_what_contexts_keep_goes_with_them_or_with_the_process() -> None:
    """Nothing is to be done for it at its end, when threads that run their work may still hold what would be needed for that."""
    run = subprocess.run([sys.executable, "-c", ENDING], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout == "retired\nends\n"


def test_a_report_names_no_more_failures_than_anybody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """With --keep-going a program may go on failing."""
    monkeypatch.setattr(execute, "MOST_LISTED", 3)
    made = Executor(device("kbl"), [], lambda submission, text: "", lambda text: None)
    for number in range(5):
        made.failed(submission(number), SoftgenError("fault"))
        made.failed(submission(number), Unsupported("draw"))
    assert len(made.report.faults) == len(made.report.unsupported) == 3
    assert made.report.faults[2].startswith("submission 2 of p")
