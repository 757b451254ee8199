"""Wait prediction: when the work of a submission is done before its answer."""

import struct

import pytest

from softgen.driver.queue import queue
from softgen.driver.queue.execute import Executor
from softgen.driver.run.protocol import Call
from softgen.driver.run.wait_prediction import CERTAIN, PROBED, WaitPrediction
from softgen.driver.uapi.uapi import NAMES
from tests.driver.execbuffer import END, buffer, row, submit
from tests.driver.program import Held, served

NUMBERS = {name: number for number, name in NAMES.items()}
ARB_CHECK = 0x05 << 23  # MI_ARB_CHECK
WAIT, BUSY = NUMBERS["DRM_IOCTL_I915_GEM_WAIT"], NUMBERS["DRM_IOCTL_I915_GEM_BUSY"]


def submissions(prediction: WaitPrediction, count: int, then: int) -> list[bool]:
    """Submissions, each followed by an ioctl: which of them were done first."""
    found = []
    for _ in range(count):
        found.append(prediction.work_first())
        prediction.ioctl(then)
    return found


def test_a_thread_that_waits_each_time_gets_its_answer_after_the_work() -> None:
    prediction = WaitPrediction()
    assert submissions(prediction, CERTAIN, WAIT) == [False] * CERTAIN
    assert submissions(prediction, PROBED - 1, WAIT) == [True] * (PROBED - 1)


def test_now_and_then_one_is_answered_first_to_see_whether_it_is_waited_for() -> None:
    prediction = WaitPrediction()
    submissions(prediction, CERTAIN + PROBED - 1, WAIT)
    assert submissions(prediction, 3, WAIT) == [False, True, True]
    other = WaitPrediction()
    submissions(other, CERTAIN + PROBED - 1, WAIT)
    assert submissions(other, 3, BUSY) == [False, False, False]


def test_a_thread_that_submits_several_before_it_waits_goes_on_meanwhile() -> None:
    prediction = WaitPrediction()
    for _ in range(10):
        assert submissions(prediction, 2, BUSY) == [False, False]
        assert submissions(prediction, 1, WAIT) == [False]


def test_after_one_that_is_not_waited_for_the_count_begins_again() -> None:
    prediction = WaitPrediction()
    assert submissions(prediction, CERTAIN - 1, WAIT) == [False] * (CERTAIN - 1)
    assert submissions(prediction, 1, BUSY) == [False]
    assert submissions(prediction, CERTAIN + 1, WAIT) == [False] * CERTAIN + [True]


def test_other_ioctls_are_no_waits() -> None:
    assert submissions(WaitPrediction(), 100, BUSY) == [False] * 100


def test_a_submission_that_had_to_be_queued_counts_as_answered_first() -> None:
    prediction = WaitPrediction()
    submissions(prediction, CERTAIN, WAIT)
    assert prediction.work_first()
    prediction.queued()  # nothing waits for it
    assert not prediction.work_first()


def test_work_that_has_to_be_queued_shows_whether_it_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its answer came first, whatever was predicted."""
    held, predicted = Held(), list[bool]()
    monkeypatch.setattr(held, "at_once", lambda submission, awaited: predicted.append(awaited))
    with served("kbl", held) as gpu:
        program = gpu.program()
        batch = buffer(program)
        for waits in [True] * CERTAIN + [True, False, False, True]:
            submit(program, [row(batch)])
            held.finish()
            if waits:
                program.ioctl("DRM_IOCTL_I915_GEM_WAIT", handle=batch, timeout=10**10)
    assert predicted == [False] * CERTAIN + [True, True, False, False]


@pytest.mark.parametrize("waiting", [True, False])
def test_work_is_done_before_the_answer_where_the_thread_waits_each_time(waiting: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    events, answer, execute = list[str](), Call.done, Executor.execute
    monkeypatch.setattr(queue, "SHORT", 60.0)  # whatever else the machine does
    monkeypatch.setattr(queue, "PATIENT", 60.0)
    monkeypatch.setattr(Call, "done", lambda *values, **how: (events.append("answer"), answer(*values, **how))[1])
    monkeypatch.setattr(Executor, "execute", lambda *values: (execute(*values), events.append("work"))[0])
    with served("kbl") as gpu:
        program = gpu.program()
        batch = buffer(program, struct.pack("<2I", ARB_CHECK, END))  # one that is not prepared: that would be answered in the middle
        for _ in range(10):
            events.clear()
            submit(program, [row(batch)])
            if waiting:
                program.ioctl("DRM_IOCTL_I915_GEM_WAIT", handle=batch, timeout=10**10)
            assert gpu.shared.runner.drain(10)  # type: ignore[attr-defined]
    assert events[:2] == (["work", "answer"] if waiting else ["answer", "work"])
