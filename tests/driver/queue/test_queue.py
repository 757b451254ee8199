"""Queues: order, fences, turns, failures."""

import errno
import gc
import threading
import time
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from softgen.driver.errors import Errno
from softgen.driver.objects.buffer_list import BufferList
from softgen.driver.objects.fence import Fence, Signals
from softgen.driver.objects.submission import Submission
from softgen.driver.queue.queue import EngineSlot, Queues
from softgen.errors import SoftgenError, Unsupported

SIGNALS = Signals()
NOWHERE: Any = SimpleNamespace(enter=lambda wanted, before: None, leave=lambda bos: None)


class Context:
    """As much of a context as queues look at."""

    def __init__(self, name: str) -> None:
        self.name, self.banned, self.guilty = name, False, 0
        self.queues: dict[tuple[str, int], Any] = {}


def submission(sequence: int, context: Any, engine: str = "rcs0", after: list[Fence] | None = None, vm: Any = NOWHERE) -> Submission:
    return Submission(sequence, 1, "test", context, engine, vm, BufferList(), 0, 0, 0, 0, 0, 0, Fence(SIGNALS), after or [])


def wait(*ones: Submission) -> None:
    assert SIGNALS.wait(lambda: all(queued.fence.done for queued in ones), time.monotonic() + 20)


def nobody(submission: Submission, error: BaseException) -> None:
    raise AssertionError(error)


def test_a_context_keeps_its_order() -> None:
    """And has one thread for all of it."""
    done, threads = list[int](), set[threading.Thread]()
    queues = Queues(lambda queued, turn: (done.append(queued.sequence), threads.add(threading.current_thread())), nobody)
    context = Context("a")
    ones = [submission(number, context) for number in range(50)]
    for queued in ones:
        queues.submit(queued)
    wait(*ones)
    assert done == list(range(50)) and len(threads) == 1 and queues.drain(1)


def test_who_waits_for_the_end_of_all_work_is_told() -> None:
    gate, began, context = Fence(SIGNALS), time.monotonic(), Context("a")
    queues = Queues(lambda queued, turn: None, nobody)
    for number in range(2):
        queues.submit(submission(number, context, after=[gate]))
    assert not queues.drain(0.01)
    opens = threading.Timer(0.05, gate.signal)
    opens.start()
    assert queues.drain(10) and time.monotonic() - began < 8
    opens.join()


def test_who_waits_for_a_fence_holds_up_only_its_own_context() -> None:
    done: list[str] = []
    queues = Queues(lambda queued, turn: done.append(queued.context.name), nobody)  # type: ignore[attr-defined]
    gate, parked, free = Fence(SIGNALS), Context("parked"), Context("free")
    first, second, third = submission(1, parked, after=[gate]), submission(2, parked), submission(3, free)
    for queued in (first, second, third):
        queues.submit(queued)
    wait(third)
    assert done == ["free"] and not queues.drain(0.01)
    gate.signal()
    wait(first, second)
    assert done == ["free", "parked", "parked"]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_all_fences_are_waited_for(order: tuple[int, ...]) -> None:
    """In whichever order they are done, and whichever is done before the submission comes."""
    done: list[int] = []
    queues, context = Queues(lambda queued, turn: done.append(queued.sequence), nobody), Context("a")
    fences = [Fence(SIGNALS) for _ in order]
    first, *rest = (fences[number] for number in order)
    first.signal()
    waits = submission(1, context, after=fences)
    assert queues.at_once(waits) is None
    queues.submit(waits)
    for fence in rest:
        time.sleep(0.05)
        SIGNALS.notify()  # somebody else is done: it looks again
        assert not done and not waits.fence.done
        fence.signal()
    wait(waits)
    assert done == [1]


def test_short_work_with_a_fence_that_is_not_done_is_not_run_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("softgen.driver.queue.queue.SHORT", 60.0)  # whatever else the machine does
    queues, context = Queues(lambda queued, turn: None, nobody), Context("a")
    short = submission(1, context)
    queues.submit(short)
    wait(short)
    assert queues.drain(5)
    assert queues.at_once(submission(2, context, after=[Fence(SIGNALS, done=True), Fence(SIGNALS)])) is None
    ready = queues.at_once(submission(3, context, after=[Fence(SIGNALS, done=True)]))
    assert ready is not None
    ready(lambda: None)
    assert queues.drain(5)


def test_one_at_a_time_on_an_engine_and_engines_side_by_side() -> None:
    running: dict[str, int] = {}
    most: dict[str, int] = {}
    both = threading.Barrier(2)

    def execute(submission: Submission, turn: EngineSlot) -> None:
        running[submission.engine] = running.get(submission.engine, 0) + 1
        most[submission.engine] = max(most.get(submission.engine, 0), running[submission.engine])
        if submission.sequence < 2:
            both.wait(10)  # only passes if two engines run at once
        time.sleep(0.005)
        running[submission.engine] -= 1

    queues = Queues(execute, nobody)
    ones = [submission(number, Context(str(number)), "rcs0" if number % 2 else "bcs0") for number in range(8)]
    for queued in ones:
        queues.submit(queued)
    wait(*ones)
    assert most == {"rcs0": 1, "bcs0": 1}


def test_one_that_hangs_lets_others_have_their_turn() -> None:
    over = threading.Event()

    def execute(submission: Submission, turn: EngineSlot) -> None:
        while submission.sequence == 1 and not over.is_set():
            time.sleep(0.001)
            turn.pause()

    queues = Queues(execute, nobody)
    hanging, fine = submission(1, Context("hangs")), [submission(number, Context("fine")) for number in (2, 3, 4)]
    queues.submit(hanging)
    for queued in fine:
        queues.submit(queued)
    wait(*fine)
    assert not hanging.fence.done
    over.set()
    wait(hanging)


def test_a_long_one_is_not_kept_waiting_by_those_that_keep_coming(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("softgen.driver.queue.queue.SLICE", 0.001)
    done: list[int] = []

    def execute(submission: Submission, turn: EngineSlot) -> None:
        for _ in range(5 if submission.sequence == 1 else 1):
            time.sleep(0.003)
            turn.pause()
        done.append(submission.sequence)

    queues = Queues(execute, nobody)
    streams = Context("even"), Context("odd")
    long, others = submission(1, Context("long")), [submission(number, streams[number % 2]) for number in range(2, 60)]
    for other in (long, *others):
        queues.submit(other)
    wait(long, *others)
    assert done.index(1) < 30


def test_a_failure_is_told_and_what_follows_it_in_its_context_fails_too() -> None:
    told: list[tuple[int, str]] = []

    def execute(submission: Submission, turn: EngineSlot) -> None:
        if submission.sequence == 1:
            raise ValueError("broken")

    queues = Queues(execute, lambda queued, error: told.append((queued.sequence, str(error))))
    context: Any = Context("a")
    first, second, other = submission(1, context), submission(2, context), submission(3, Context("b"))
    for queued in (first, second, other):
        queues.submit(queued)
    wait(first, second, other)
    assert told == [(1, "broken")] and context.banned and context.guilty == 1
    assert first.fence.error and second.fence.error and not other.fence.error


def test_a_context_stays_in_use_after_what_is_not_simulated() -> None:
    """Its fence has the error; a banned context would make Mesa drop the next batch, and wait for ever for the queries in it."""

    def execute(submission: Submission, turn: EngineSlot) -> None:
        if submission.sequence == 1:
            raise Unsupported("a stage: not yet simulated")

    queues = Queues(execute, lambda queued, error: None)
    context: Any = Context("a")
    first, second = submission(1, context), submission(2, context)
    queues.submit(first)
    queues.submit(second)
    wait(first, second)
    assert first.fence.error and not second.fence.error and context.guilty == 1 and not context.banned


def test_memory_that_cannot_be_mapped_is_a_failure_too() -> None:
    def enter(wanted: object, before: object) -> None:
        raise ValueError("no room")

    told, left = list[str](), list[object]()
    queues = Queues(lambda queued, turn: None, lambda queued, error: told.append(str(error)))
    queued = submission(1, Context("a"), vm=SimpleNamespace(enter=enter, leave=left.append))
    queues.submit(queued)
    wait(queued)
    assert queues.drain(5) and told == ["no room"] and queued.fence.error and not left


@pytest.mark.parametrize("fails", [False, True])
def test_work_has_its_memory_while_it_runs(fails: bool) -> None:
    """Copies go back to the program when all is done and before anybody is told so; where it fails, nothing does."""
    order: list[str] = []

    def note(what: str) -> None:
        order.append(f"{what}, done" if queued.fence.done else what)

    def execute(submission: Submission, turn: EngineSlot) -> None:
        note("run")
        if fails:
            raise ValueError("broken")

    bound: Any = SimpleNamespace(copies=[SimpleNamespace(give_back=lambda: note("back"))] * 2)
    vm = SimpleNamespace(enter=lambda wanted, before: note("enter"), leave=lambda wanted: note("leave"))
    queued = submission(1, Context("a"), vm=vm)._replace(bound=bound)
    queues = Queues(execute, lambda queued, error: note("failed"))
    queues.submit(queued)
    assert queues.drain(10) and order == ["enter", "run", *(["failed"] if fails else ["back", "back"]), "leave, done"]


def test_a_context_that_is_banned_stays_so() -> None:
    """Work of it on another engine meets something that is not simulated, which by itself bans nobody."""
    context = Context("a")
    first, second = submission(1, context), submission(2, context, "bcs0")

    def execute(queued: Submission, turn: EngineSlot) -> None:
        if queued is first:
            both.wait(20)
            raise SoftgenError("a fault")
        both.wait(20)
        wait(first)
        raise Unsupported("a stage")

    both, queues = threading.Barrier(2), Queues(execute, lambda queued, error: None)
    queues.submit(first)
    queues.submit(second)
    wait(first, second)
    assert queues.drain(5) and context.banned and context.guilty == 2


@pytest.mark.parametrize("more", [True, False])
def test_a_submission_that_no_thread_is_left_for_is_refused(more: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is over then, for whoever waits for it; the next one may find a thread. One that came meanwhile and is lost bans its context."""
    done: list[int] = []
    queues, context = Queues(lambda queued, turn: done.append(queued.sequence), nobody), Context("a")
    refused, meanwhile, later = (submission(number, context) for number in range(3))

    def start(thread: threading.Thread) -> None:
        if more:
            queues.submit(meanwhile)  # of another thread of the program
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", start)
        with pytest.raises(Errno) as found:
            queues.submit(refused)
    assert found.value.number == errno.ENOMEM
    assert refused.fence.error == errno.ENOMEM and meanwhile.fence.error == (errno.ENOMEM if more else 0)
    assert queues.drain(1) and context.banned is more
    context.banned = False
    queues.submit(later)
    wait(later)
    assert done == [2] and queues.drain(5)
    monkeypatch.setattr("softgen.driver.queue.queue.SHORT", 60.0)  # whatever else the machine does
    at_once = queues.at_once(submission(3, context))
    assert at_once is not None, "nothing of what was refused waits any more"
    at_once(lambda: None)
    assert done == [2, 3] and queues.drain(5)


def test_a_context_that_rested_gets_a_thread_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its thread ends when nothing comes for a while."""
    monkeypatch.setattr("softgen.driver.queue.queue.LINGER", 0.01)
    ran: list[threading.Thread] = []
    queues, context = Queues(lambda queued, turn: ran.append(threading.current_thread()), nobody), Context("a")
    for number in range(3):
        queues.submit(queued := submission(number, context))
        wait(queued)
        assert len(ran) == number + 1
        ran[-1].join(20)
        assert not ran[-1].is_alive() and ran[-1].daemon, "nor does work that never ends keep the process"


# -- at once


class AtOnce:
    """Queues whose submissions take a given time; records which thread ran which."""

    def __init__(self) -> None:
        self.ran: list[tuple[int, int]] = []
        self.long: dict[int, threading.Event] = {}
        self.queues = Queues(self.execute, nobody)

    def execute(self, submission: Submission, turn: EngineSlot) -> None:
        self.ran.append((submission.sequence, threading.get_ident()))
        while submission.sequence in self.long and not self.long[submission.sequence].is_set():
            time.sleep(0.0005)
            turn.pause()

    def warm(self, context: Any) -> None:
        """One that is short, and over."""
        first = submission(0, context)
        self.queues.submit(first)
        wait(first)
        assert self.queues.drain(5)

    def hand_over(self, later: Callable[[Callable[[], None]], None] | None) -> None:
        """Carries out what cannot be done at once: the thread that brought it is replaced, and then the work ends."""
        assert later is not None
        replaced = threading.Event()
        working = threading.Thread(target=later, args=(replaced.set,))
        working.start()
        assert replaced.wait(10)
        self.long[1].set()
        working.join(10)


def refuse() -> None:
    raise AssertionError("it was short")


def test_short_work_is_done_by_who_brings_it() -> None:
    here, context = AtOnce(), Context("a")
    assert here.queues.at_once(submission(1, context)) is None  # nobody knows how long it takes
    here.warm(context)
    for number in (2, 3):
        queued = submission(number, context)
        later = here.queues.at_once(queued)
        assert later is not None
        assert len(here.ran) == number - 1
        later(refuse)
        assert queued.fence.done and here.ran[-1] == (number, threading.get_ident())
    assert here.queues.at_once(submission(4, Context("another"))) is None and here.queues.drain(1)


@pytest.mark.parametrize("spent, unless_awaited, awaited", [
    (0.0005, True, True), (0.001, True, True), (0.0015, False, True), (0.02, False, True), (0.025, False, False),
])  # fmt: skip
def test_what_is_done_at_once_was_short_before(spent: float, unless_awaited: bool, awaited: bool) -> None:
    """A millisecond, or twenty where the program's thread waits for the work anyway."""
    here, context = AtOnce(), Context("a")
    here.warm(context)
    for expected, arguments in ((unless_awaited, ()), (unless_awaited, (False,)), (awaited, (True,))):
        context.queues["rcs0", 0].spent = spent
        later = here.queues.at_once(submission(1, context), *arguments)
        assert (later is not None) is expected
        if later is not None:
            later(lambda: None)
    assert here.queues.drain(5)


def test_what_must_wait_is_not_done_at_once() -> None:
    here, context, gate = AtOnce(), Context("a"), Fence(SIGNALS)
    here.warm(context)
    assert here.queues.at_once(submission(1, context, after=[gate])) is None
    waiting = submission(2, context, after=[gate])
    here.queues.submit(waiting)
    assert here.queues.at_once(submission(3, context)) is None  # one is before it
    gate.signal()
    wait(waiting)


def test_who_comes_later_runs_later() -> None:
    """Between the moment work is taken and the one it runs."""
    here, context = AtOnce(), Context("a")
    here.warm(context)
    queued = submission(1, context)
    later, behind = here.queues.at_once(queued), submission(2, context, after=[queued.fence])
    here.queues.submit(behind)
    time.sleep(0.02)
    assert later is not None and not behind.fence.done
    later(refuse)
    wait(behind)
    assert [number for number, _ in here.ran] == [0, 1, 2]


def test_work_that_takes_long_after_all_lets_its_thread_be_replaced() -> None:
    here, context = AtOnce(), Context("a")
    here.warm(context)
    here.long[1] = threading.Event()
    later = here.queues.at_once(submission(1, context))
    here.hand_over(later)
    assert here.queues.drain(1) and here.queues.at_once(submission(2, context)) is None  # the next may be as long


def test_an_engine_that_is_taken_is_not_waited_for() -> None:
    here, context = AtOnce(), Context("a")
    here.warm(context)
    here.long[1] = threading.Event()
    hanging, queued = submission(1, Context("hangs")), submission(2, context)
    here.queues.submit(hanging)
    while len(here.ran) < 2:
        time.sleep(0.001)
    later = here.queues.at_once(queued)
    here.hand_over(later)
    wait(hanging, queued)


def test_contexts_are_not_kept_by_their_lines() -> None:
    here, context = AtOnce(), Context("a")
    here.warm(context)
    gone = weakref.ref(context)
    del context
    gc.collect()
    assert gone() is None
