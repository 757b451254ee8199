"""Vertical blanks: their numbers, waits for them and events at them."""

from __future__ import annotations

import errno
import threading
import time
from types import SimpleNamespace

import pytest

from softgen.driver.kms import sequence, vblank
from softgen.driver.kms.crtc import ModeObject
from softgen.driver.kms.vblank import PERIOD, VblankCounter
from softgen.driver.uapi.uapi import SEQUENCE_EVENT, VBLANK_EVENT
from tests.driver.ioctl.test_gem import refused
from tests.driver.kms.test_crtc import flip, readable
from tests.driver.kms.test_resources import card, frame, show
from tests.driver.program import Gpu, Program

__all__ = ["card"]  # a fixture
RELATIVE, EVENT, NEXT = 1, 1 << 26, 1 << 28


def current(program: Program) -> SimpleNamespace:
    return program.ioctl("DRM_IOCTL_CRTC_GET_SEQUENCE", crtc=ModeObject.CRTC)


def test_vertical_blanks_come_sixty_times_a_second_or_with_a_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000]
    monkeypatch.setattr(vblank, "time", SimpleNamespace(monotonic_ns=lambda: now[0]))
    counter = VblankCounter()
    assert counter.now() == (0, 1000)
    now[0] += 2 * PERIOD + 5
    assert counter.now() == (2, 1000 + 2 * PERIOD)
    assert counter.frame() == (3, now[0]) == counter.now() and counter.due(5) == (now[0] + 2 * PERIOD) / 1e9
    now[0] += PERIOD - 1
    assert counter.now().sequence == 3
    now[0] += 1
    assert counter.frame().sequence == 5


def test_a_frame_is_a_vertical_blank(card: Program) -> None:
    show(card, frame(card)[0])
    before = current(card)
    flip(card, frame(card)[0], flags=0)
    after = current(card)
    assert after.sequence > before.sequence and after.active == 1 and abs(after.when - time.monotonic_ns()) < 10**10


def test_a_wait_for_the_next_vertical_blank(card: Program) -> None:
    show(card, frame(card)[0])
    now = card.ioctl("DRM_IOCTL_WAIT_VBLANK", kind=RELATIVE)
    found = card.ioctl("DRM_IOCTL_WAIT_VBLANK", kind=RELATIVE, sequence=2)
    assert found.kind == 0 and found.sequence >= now.sequence + 2
    assert found.seconds * 10**6 + found.microseconds >= now.seconds * 10**6 + now.microseconds + 2 * PERIOD // 1000 - 2
    assert card.ioctl("DRM_IOCTL_WAIT_VBLANK", sequence=now.sequence).sequence >= found.sequence, "one that has passed is not waited for"


def test_a_wait_ends_with_a_frame_or_after_three_seconds(gpu: Gpu, card: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequence, "LONGEST_WAIT", 0.2)
    show(card, frame(card)[0])
    assert card.refused("DRM_IOCTL_WAIT_VBLANK", kind=RELATIVE, sequence=100000)[0] == errno.EBUSY
    monkeypatch.setattr(sequence, "LONGEST_WAIT", 30.0)
    frames, other = [frame(card)[0] for _ in range(2)], card.thread()

    def present() -> None:
        for number in range(700):
            flip(other, frames[number % 2], flags=0)

    presenting = threading.Thread(target=present)
    presenting.start()
    began = time.monotonic()
    card.ioctl("DRM_IOCTL_WAIT_VBLANK", kind=RELATIVE, sequence=600)
    assert time.monotonic() - began < 600 / 60, "frames come faster than sixty a second"
    presenting.join()


def test_an_event_at_a_vertical_blank(card: Program) -> None:
    show(card, frame(card)[0])
    asked = card.ioctl("DRM_IOCTL_WAIT_VBLANK", kind=RELATIVE | EVENT, sequence=3, seconds=-2)
    assert readable(card, 5)
    found = VBLANK_EVENT.unpack(card.node.recv(1024))
    assert (found.kind, found.size, found.user_data, found.crtc) == (1, 32, (1 << 64) - 2, ModeObject.CRTC)
    assert found.sequence >= asked.sequence


def test_events_of_sequences_come_in_their_order(card: Program) -> None:
    show(card, frame(card)[0])
    asked = [card.ioctl("DRM_IOCTL_CRTC_QUEUE_SEQUENCE", crtc=ModeObject.CRTC, flags=1, sequence=number, user_data=number).sequence
             for number in (5, 2, 0)]  # fmt: skip
    assert asked[0] > asked[1] > asked[2]
    found = []
    while len(found) < 3:
        assert readable(card, 5)
        found.append(SEQUENCE_EVENT.unpack(card.node.recv(32)))
    assert [entry.user_data for entry in found] == [0, 2, 5] and {(entry.kind, entry.size) for entry in found} == {(3, 32)}
    assert [entry.sequence >= number for entry, number in zip(found, reversed(asked), strict=True)] == [True] * 3


def test_one_that_was_missed_is_now_or_the_next(card: Program) -> None:
    show(card, frame(card)[0])
    now = current(card).sequence
    missed = card.ioctl("DRM_IOCTL_CRTC_QUEUE_SEQUENCE", crtc=ModeObject.CRTC, sequence=now).sequence
    assert readable(card, 5) and missed >= now
    following = card.ioctl("DRM_IOCTL_CRTC_QUEUE_SEQUENCE", crtc=ModeObject.CRTC, flags=2, sequence=now).sequence
    assert following > missed
    assert card.ioctl("DRM_IOCTL_WAIT_VBLANK", kind=NEXT, sequence=now & 0xFFFFFFFF).sequence > now


def test_a_crtc_that_is_turned_off_sends_its_events_and_takes_no_others(card: Program) -> None:
    show(card, frame(card)[0])
    card.ioctl("DRM_IOCTL_CRTC_QUEUE_SEQUENCE", crtc=ModeObject.CRTC, flags=1, sequence=100000, user_data=77)
    assert not readable(card, 0.05)
    card.ioctl("DRM_IOCTL_MODE_SETCRTC", crtc=ModeObject.CRTC)
    assert readable(card, 5) and SEQUENCE_EVENT.unpack(card.node.recv(32)).user_data == 77
    refused(errno.EINVAL, card, "DRM_IOCTL_CRTC_QUEUE_SEQUENCE", crtc=ModeObject.CRTC, flags=1, sequence=1)
    refused(errno.EINVAL, card, "DRM_IOCTL_WAIT_VBLANK", kind=RELATIVE, sequence=1)
    assert current(card).active == 0


@pytest.mark.parametrize("name, fields, number", [
    ("CRTC_GET_SEQUENCE", {"crtc": 9}, errno.ENOENT), ("CRTC_QUEUE_SEQUENCE", {"crtc": 9}, errno.ENOENT),
    ("CRTC_QUEUE_SEQUENCE", {"crtc": ModeObject.CRTC, "flags": 4}, errno.EINVAL), ("WAIT_VBLANK", {"kind": 1 << 30}, errno.EINVAL),
    ("WAIT_VBLANK", {"kind": RELATIVE | 2}, errno.EINVAL), ("WAIT_VBLANK", {"kind": 1 << 27}, errno.EINVAL)])  # fmt: skip
def test_waits_that_cannot_be(card: Program, name: str, fields: dict[str, int], number: int) -> None:
    refused(number, card, f"DRM_IOCTL_{name}", **fields)


def test_a_program_waits_for_so_many_events_and_takes_none_along(gpu: Gpu, card: Program) -> None:
    show(card, frame(card)[0])
    far = {"crtc": ModeObject.CRTC, "flags": 1, "sequence": 1 << 20}
    for _ in range(128):
        card.ioctl("DRM_IOCTL_CRTC_QUEUE_SEQUENCE", **far)
    refused(errno.ENOMEM, card, "DRM_IOCTL_CRTC_QUEUE_SEQUENCE", **far)
    other = gpu.program("card0")
    other.ioctl("DRM_IOCTL_CRTC_QUEUE_SEQUENCE", **far)
    card.close()
    events = gpu.shared.display.vblank_events
    until = time.monotonic() + 10
    while len(events.waiting) > 1:
        assert time.monotonic() < until
        time.sleep(0.01)
    other.close()
    while events.running:
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_server_without_threads_left_refuses_events(card: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    show(card, frame(card)[0])
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", none_left)
        refused(errno.ENOMEM, card, "DRM_IOCTL_CRTC_QUEUE_SEQUENCE", crtc=ModeObject.CRTC, flags=1, sequence=5)
    card.ioctl("DRM_IOCTL_CRTC_QUEUE_SEQUENCE", crtc=ModeObject.CRTC, flags=1, sequence=1)
    assert readable(card, 5)
