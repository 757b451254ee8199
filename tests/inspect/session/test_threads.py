"""Threads of sessions: steps, steps back, registers by lane, in dispatches and in draws."""

import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from softgen.errors import UsageError
from softgen.inspect.session import Session, ThreadCursor
from softgen.lanes.compile import foreground
from softgen.position import Position
from tests.conftest import ROOT

COMPUTE, TRIANGLE, OLD = (ROOT / "tests/data" / name for name in ("kbl-vk-compute", "kbl-vk-tri", "g45-gles-tri"))
BARRIER = ROOT / "tests/data/kbl-ocl-barrier"
STORE = "2:17/cs/g1.t0+0x98"


def state(thread: ThreadCursor) -> tuple[Position, dict[str, bytes], int, bool]:
    return thread.position, thread.snapshot(), thread.channels, thread.ended


def to_the_end(thread: ThreadCursor) -> list[object]:
    seen: list[object] = [state(thread)]
    while not thread.ended:
        thread.step()
        seen.append(state(thread))
    return seen


@pytest.mark.parametrize(("capture", "position"), [(COMPUTE, "2:17/cs/g2.t0"), (TRIANGLE, "2:245/ps/g0.t4"), (TRIANGLE, "2:124/vs/g0.t0"),
                                                   (OLD, "3:25/vs/g0.t1"), (OLD, "3:25/sf/g0.t0"), (OLD, "3:25/ps/g0.t60")])  # fmt: skip
def test_any_walk_forwards_and_back_leaves_the_same_state(capture: Path, position: str) -> None:
    thread = Session(capture).thread(position)
    assert str(thread.position) == f"{position}+0x0#0"
    seen, at, walk = to_the_end(thread), 0, random.Random(7)
    while thread.position.instructions:
        thread.back()
    assert state(thread) == seen[0]
    for _ in range(60):
        if walk.random() < 0.55 and at < len(seen) - 1 or not at:
            thread.step()
            at += 1
        else:
            thread.back()
            at -= 1
        assert state(thread) == seen[at]


def test_a_thread_that_is_held_is_not_in_the_foreground(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels that are compiled in the background do not give way to a thread that waits for the session."""
    monkeypatch.setattr(foreground, "_threads", set[int]())
    thread = Session(COMPUTE).thread(STORE)
    assert not foreground._threads and not thread.ended


def test_a_session_that_nobody_has_any_more_ends_its_host_thread() -> None:
    before = set(threading.enumerate())
    session = Session(COMPUTE)
    thread = session.thread(STORE)
    (held,) = set(threading.enumerate()) - before
    del session, thread
    assert not held.is_alive()


def test_a_program_ends_while_a_thread_is_held() -> None:
    program = f"from softgen.inspect.session import Session; thread = Session({str(COMPUTE)!r}).thread({STORE!r})"
    assert subprocess.run([sys.executable, "-c", program], timeout=60).returncode == 0


def test_a_step_names_lanes_and_writes_to_memory() -> None:
    session = Session(COMPUTE)
    thread = session.thread(STORE)
    assert thread.text.startswith("sends") and thread.channels == 0xFFFF
    assert thread.lanes("r22:d")[:3] == (16016, 17017, 18018) and thread.lanes("r17.1:d") == (1,) * 7
    (write,) = thread.step().writes
    assert int.from_bytes(write.after[4:8], "little") == 17017 and thread.space.read(write.address, 64) == write.after
    thread.back()
    assert thread.space.read(write.address, 64) == write.before != write.after


def test_a_step_either_way_takes_less_than_five_milliseconds() -> None:
    thread = Session(TRIANGLE).thread("2:245/ps/g0.t4")
    thread.step()
    times: tuple[list[float], list[float]] = [], []
    for _ in range(15):
        for into, move in zip(times, (thread.step, thread.back), strict=True):
            began = time.thread_time()
            move()
            into.append(time.thread_time() - began)
    assert all(sorted(found)[len(found) // 2] < 0.005 for found in times)


def test_steps_back_beyond_what_is_kept_run_the_capture_again() -> None:
    thread = Session(COMPUTE).thread(f"{STORE[:-5]}")
    seen = to_the_end(thread)
    thread.history.clear()
    thread.back()
    assert state(thread) == seen[-2] and not thread.history or state(thread) == seen[-2]
    with pytest.raises(UsageError, match="the thread starts here"):
        while True:
            thread.back()


def test_a_register_that_is_written_changes_what_follows() -> None:
    thread = Session(COMPUTE).thread(STORE)
    thread.write("r22:d=-5")
    (write,) = thread.step().writes
    assert int.from_bytes(write.after[:4], "little", signed=True) == -5


def test_pixel_threads_name_their_pixels() -> None:
    thread = Session(TRIANGLE).thread("2:245/ps/g0.t4")
    pixels = thread.pixels()
    assert len(pixels) == thread.offered.dispatch.simd and any(pixels)
    assert len({pixel for pixel in pixels if pixel}) == sum(pixel is not None for pixel in pixels)


@pytest.mark.parametrize("name", ["q5", "r900", "r2:zz", "r2.99:ud", "", "r"])
def test_registers_that_do_not_exist_are_named(name: str) -> None:
    with pytest.raises(UsageError):
        Session(COMPUTE).thread(STORE).lanes(name)


def test_a_thread_waits_for_others_of_its_group_at_a_barrier() -> None:
    """Local memory and barriers: 64 values of a group are summed by each of its threads; the group's first thread arrives first."""
    thread = Session(BARRIER).thread("1:16/cs/g1.t0")
    steps = []
    while not thread.ended:
        steps.append(thread.step())
    (waited,) = (step for step in steps if not step.done)
    assert waited.text.startswith("(W) wait") and waited.position.offset == 0x110
    stored = {int.from_bytes(write.after[at : at + 4], "little") for step in steps for write in step.writes
              for at in range(0, len(write.after), 4)}  # fmt: skip
    assert stored == {sum(range(64, 128))}
    after, instructions = thread.snapshot(), thread.position.instructions
    while thread.position.offset != 0x100:  # back past the barrier, where the capture is executed again
        thread.back()
    assert thread.position.instructions == 17
    while not thread.ended:
        thread.step()
    assert thread.snapshot() == after and thread.position.instructions == instructions


@pytest.mark.parametrize("place", ["+0x6", "#99999", "+0x18#99999"])
def test_places_that_a_thread_does_not_come_to_are_named(place: str) -> None:
    with pytest.raises(UsageError, match="the thread does not come there; it ends after 5 instructions"):
        Session(TRIANGLE).thread(f"2:124/ps/g0.t4{place}")


def test_an_offset_and_a_count_that_do_not_belong_together_are_named() -> None:
    assert str(Session(TRIANGLE).thread("2:124/ps/g0.t4+0x8#1").position) == "2:124/ps/g0.t4+0x8#1"
    with pytest.raises(UsageError, match=r"there is no such place: after 1 instructions the thread stands at \+0x8"):
        Session(TRIANGLE).thread("2:124/ps/g0.t4+0x10#1")
