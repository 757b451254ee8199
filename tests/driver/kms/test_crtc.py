"""What a CRTC shows: modes that are set, page flips and their events, and what is left when programs end."""

from __future__ import annotations

import errno
import select
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from softgen.driver.kms import monitor, vblank
from softgen.driver.kms.crtc import ModeObject
from softgen.driver.uapi.uapi import MODE, VBLANK_EVENT
from tests.driver.ioctl.test_gem import refused, submit
from tests.driver.kms.test_resources import card, frame, show
from tests.driver.program import Gpu, Held, Program

__all__ = ["card"]  # a fixture
EVENT, ASYNC = 1, 2


def flip(program: Program, fb: int, flags: int = EVENT, user_data: int = 7) -> None:
    program.ioctl("DRM_IOCTL_MODE_PAGE_FLIP", crtc=ModeObject.CRTC, fb=fb, flags=flags, user_data=user_data)


def readable(program: Program, seconds: float = 0) -> bool:
    return bool(select.select([program.node], [], [], seconds)[0])


def wait_for(done: Callable[[], bool], seconds: float = 10) -> None:
    until = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < until
        time.sleep(0.01)


def event(program: Program) -> SimpleNamespace:
    assert readable(program, 5)
    return VBLANK_EVENT.unpack(program.node.recv(1024))


# -- what is shown


def test_a_crtc_shows_the_console_until_a_mode_is_set_and_can_be_restored(gpu: Gpu, card: Program) -> None:
    before = card.ioctl("DRM_IOCTL_MODE_GETCRTC", crtc=ModeObject.CRTC)
    assert before.mode_valid and before.fb and MODE.unpack(before.mode).hdisplay == 640
    console = card.ioctl("DRM_IOCTL_MODE_GETFB", fb=before.fb)
    assert (console.width, console.height, console.pitch, console.bits) == (640, 480, 2560, 32)
    picture = card.memory(b"x" * (2560 * 480))
    card.ioctl("DRM_IOCTL_I915_GEM_PREAD", handle=console.handle, size=len(bytes(picture)), data=picture.address)
    assert gpu.shared.display.framebuffer(before.fb).bo.size == 2560 * 480 and not any(bytes(picture)), "it is black"
    fb, _ = frame(card)
    show(card, fb)
    assert card.ioctl("DRM_IOCTL_MODE_GETCRTC", crtc=ModeObject.CRTC).fb == fb and gpu.shared.display.frames == 1
    show(card, before.fb, mode=before.mode)
    assert gpu.shared.display.frames == 1, "the console is no frame of the program"
    refused(errno.ENOENT, card, "DRM_IOCTL_MODE_RMFB", fb=before.fb)


def test_a_crtc_is_turned_off(card: Program) -> None:
    show(card, frame(card)[0])
    card.ioctl("DRM_IOCTL_MODE_SETCRTC", crtc=ModeObject.CRTC)
    found = card.ioctl("DRM_IOCTL_MODE_GETCRTC", crtc=ModeObject.CRTC, fb=9, x=9, y=9, gamma_size=9, mode_valid=9, mode=b"x" * 68)
    assert (found.mode_valid, found.fb, found.x, found.y, found.gamma_size, found.mode) == (0, 0, 0, 0, 256, bytes(68))
    refused(errno.EBUSY, card, "DRM_IOCTL_MODE_PAGE_FLIP", crtc=ModeObject.CRTC, fb=frame(card)[0])


def test_removing_what_is_shown_turns_the_crtc_off(card: Program) -> None:
    fb, _ = frame(card)
    show(card, fb)
    card.ioctl("DRM_IOCTL_MODE_RMFB", fb=fb)
    assert card.ioctl("DRM_IOCTL_MODE_GETCRTC", crtc=ModeObject.CRTC).mode_valid == 0
    refused(errno.ENOENT, card, "DRM_IOCTL_MODE_GETFB", fb=fb)


@pytest.mark.parametrize("number, fields", [
    (errno.ENOENT, {"fb": 9999}), (errno.EINVAL, {"connector_count": 0}), (errno.EINVAL, {"mode_valid": 0}),
    (errno.EINVAL, {"mode": bytes(68)}), (errno.ENOSPC, {"x": 1}), (errno.ENOSPC, {"mode": monitor.mode(641, 480)}),
    (errno.EFAULT, {"connectors": 8}), (errno.EINVAL, {"connector_count": 1 << 30}),
])  # fmt: skip
def test_a_crtc_that_cannot_be_set(card: Program, number: int, fields: dict[str, object]) -> None:
    fb, _ = frame(card)
    with pytest.raises(OSError) as found:
        show(card, **{"fb": fb, **fields})  # type: ignore[arg-type]
    assert found.value.errno == number


def test_setting_a_crtc_waits_for_the_rendering(gpu: Gpu, card: Program, held: Held) -> None:
    fb, handle = frame(card)
    submit(card, handle)
    seen: list[int] = []
    gpu.shared.display.presented = lambda crtc, number: seen.append(len(held.submissions))
    threading.Timer(0.2, held.finish).start()
    show(card, fb)
    assert seen == [0]


def test_a_plane_of_a_crtc_that_is_off_has_neither(card: Program) -> None:
    fb, _ = frame(card)
    show(card, fb)
    shown = card.ioctl("DRM_IOCTL_MODE_GETPLANE", plane=ModeObject.PLANE)
    assert (shown.crtc, shown.fb) == (ModeObject.CRTC, fb)
    card.ioctl("DRM_IOCTL_MODE_SETCRTC", crtc=ModeObject.CRTC)
    off = card.ioctl("DRM_IOCTL_MODE_GETPLANE", plane=ModeObject.PLANE)
    assert (off.crtc, off.fb) == (0, 0)


def test_sixteen_connectors_may_be_named(card: Program) -> None:
    fb, _ = frame(card)
    named = card.numbers("I", *[ModeObject.CONNECTOR] * 17)
    show(card, fb, connectors=named, connector_count=16)
    refused(errno.EINVAL, card, "DRM_IOCTL_MODE_SETCRTC", crtc=ModeObject.CRTC, fb=fb, connectors=named, connector_count=17, mode_valid=1,
            mode=monitor.mode(640, 480))  # fmt: skip


@pytest.mark.parametrize("others", [[ModeObject.CRTC], [0], [ModeObject.CONNECTOR, ModeObject.ENCODER], [9999, ModeObject.CONNECTOR]])
def test_all_that_are_named_are_connectors(card: Program, others: list[int]) -> None:
    refused(errno.ENOENT, card, "DRM_IOCTL_MODE_SETCRTC", crtc=ModeObject.CRTC, fb=frame(card)[0], connectors=card.numbers("I", *others),
            connector_count=len(others), mode_valid=1, mode=monitor.mode(640, 480))  # fmt: skip


def test_a_crtc_shows_a_part_of_a_framebuffer(card: Program) -> None:
    fb, _ = frame(card, 800, 600)
    show(card, fb, x=160, y=120)
    found = card.ioctl("DRM_IOCTL_MODE_GETCRTC", crtc=ModeObject.CRTC, gamma_size=9)
    assert (found.fb, found.x, found.y, found.gamma_size, found.mode_valid) == (fb, 160, 120, 256, 1)
    assert found.mode == monitor.mode(640, 480)
    other, _ = frame(card, 800, 600)
    flip(card, other, flags=0)
    found = card.ioctl("DRM_IOCTL_MODE_GETCRTC", crtc=ModeObject.CRTC)
    assert (found.fb, found.x, found.y) == (other, 160, 120)
    show(card, 0xFFFFFFFF, x=1)  # the one that is shown
    found = card.ioctl("DRM_IOCTL_MODE_GETCRTC", crtc=ModeObject.CRTC)
    assert (found.fb, found.x, found.y) == (other, 1, 0)


@pytest.mark.parametrize("field, least", [("hdisplay", 1), ("vdisplay", 1), ("clock", 1), ("htotal", 641), ("vtotal", 481)])
def test_modes_that_are_none(card: Program, field: str, least: int) -> None:
    """Pixels, lines, a clock, and some time around each line and picture."""
    mode, (fb, _) = MODE.unpack(monitor.mode(640, 480)), frame(card)
    setattr(mode, field, least - 1)
    with pytest.raises(OSError) as found:
        show(card, fb, mode=MODE.pack(mode))
    assert found.value.errno == errno.EINVAL
    setattr(mode, field, least)
    show(card, fb, mode=MODE.pack(mode))


# -- page flips


def test_a_program_may_flip_from_the_console(gpu: Gpu, card: Program) -> None:
    """As on a machine that has booted: a mode is set."""
    fb, _ = frame(card)
    flip(card, fb)
    assert event(card).sequence >= gpu.shared.display.frames == 1
    assert card.ioctl("DRM_IOCTL_MODE_GETCRTC", crtc=ModeObject.CRTC).fb == fb


@pytest.mark.parametrize("crtc", [0, ModeObject.CONNECTOR, 9999])
def test_a_flip_names_the_crtc(card: Program, crtc: int) -> None:
    fb, _ = frame(card)
    show(card, fb)
    refused(errno.ENOENT, card, "DRM_IOCTL_MODE_PAGE_FLIP", crtc=crtc, fb=fb)


def test_a_flip_without_rendering_completes_at_once(card: Program) -> None:
    first, second = (frame(card)[0] for _ in range(2))
    show(card, first)
    assert not readable(card)
    last = 0
    for fb in (second, first):
        flip(card, fb, user_data=0x1234_5678_9ABC_DEF0 + fb)
        found = event(card)
        assert (found.kind, found.size, found.user_data) == (2, 32, 0x1234_5678_9ABC_DEF0 + fb)
        assert found.sequence > last and found.crtc == ModeObject.CRTC
        last = found.sequence
        assert not readable(card) and card.ioctl("DRM_IOCTL_MODE_GETCRTC", crtc=ModeObject.CRTC).fb == fb


def test_the_event_of_a_flip_has_the_time_of_the_monotonic_clock(card: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    now = SimpleNamespace(monotonic=time.monotonic, monotonic_ns=lambda: 12_345_678_901_999)
    monkeypatch.setattr(vblank, "time", now)
    show(card, frame(card)[0])
    flip(card, frame(card)[0])
    found = event(card)
    assert (found.seconds, found.microseconds) == (12_345, 678_901)


def test_a_flip_completes_when_the_rendering_is_done_and_a_second_one_is_busy(gpu: Gpu, card: Program, held: Held) -> None:
    (first, _), (second, handle) = frame(card), frame(card)
    show(card, first)
    submit(card, handle)
    seen: list[int] = []
    gpu.shared.display.presented = lambda crtc, number: seen.append(crtc.framebuffer.number if crtc.framebuffer else 0)
    flip(card, second)
    assert not readable(card, 0.05) and not seen
    refused(errno.EBUSY, card, "DRM_IOCTL_MODE_PAGE_FLIP", crtc=ModeObject.CRTC, fb=first, flags=EVENT)
    held.finish()
    assert event(card).user_data == 7 and seen == [second]
    flip(card, first)
    assert event(card).user_data == 7 and seen == [second, first]


def test_a_flip_without_an_event(card: Program) -> None:
    first, second = (frame(card)[0] for _ in range(2))
    show(card, first)
    flip(card, second, flags=0)
    assert not readable(card, 0.05)


def test_events_that_were_not_read_come_one_after_another_and_have_a_limit(card: Program) -> None:
    frames = [frame(card)[0] for _ in range(2)]
    show(card, frames[0])
    flip(card, frames[1], user_data=1)
    flip(card, frames[0], user_data=2)
    data = card.node.recv(64)
    assert [VBLANK_EVENT.unpack(data[at:]).user_data for at in (0, 32)] == [1, 2]
    with pytest.raises(OSError) as found:
        for number in range(10000):
            flip(card, frames[number % 2])
    assert found.value.errno == errno.ENOMEM
    while readable(card):
        card.node.recv(4096)
    flip(card, frames[0])
    assert event(card).user_data == 7


@pytest.mark.parametrize("flags", [ASYNC | EVENT, 4, 1 << 31])
def test_flips_that_are_not_there(card: Program, flags: int) -> None:
    fb, _ = frame(card)
    show(card, fb)
    refused(errno.EINVAL, card, "DRM_IOCTL_MODE_PAGE_FLIP", crtc=ModeObject.CRTC, fb=fb, flags=flags)
    refused(errno.EINVAL, card, "DRM_IOCTL_MODE_PAGE_FLIP", crtc=ModeObject.CRTC, fb=fb, flags=EVENT, sequence=1)


def test_a_flip_keeps_size_and_format(card: Program) -> None:
    show(card, frame(card)[0])
    refused(errno.ENOSPC, card, "DRM_IOCTL_MODE_PAGE_FLIP", crtc=ModeObject.CRTC, fb=frame(card, 320, 240)[0])
    refused(errno.EINVAL, card, "DRM_IOCTL_MODE_PAGE_FLIP", crtc=ModeObject.CRTC, fb=frame(card, bits=16, depth=16)[0])


def test_a_program_that_ends_with_a_flip_pending_leaves_the_display_usable(gpu: Gpu, card: Program, held: Held) -> None:
    (first, _), (second, handle) = frame(card), frame(card)
    show(card, first)
    submit(card, handle)
    flip(card, second)
    card.close()
    wait_for(lambda: not gpu.shared.display.connections)
    held.finish()
    other = gpu.program("card0")
    show(other, frame(other)[0])
    flip(other, frame(other)[0])
    assert event(other).user_data == 7


def test_setting_a_crtc_waits_for_a_pending_flip(gpu: Gpu, card: Program, held: Held) -> None:
    (first, _), (second, handle) = frame(card), frame(card)
    show(card, first)
    submit(card, handle)
    flip(card, second)
    seen: list[int] = []
    gpu.shared.display.presented = lambda crtc, number: seen.append(crtc.framebuffer.number if crtc.framebuffer else 0)
    threading.Timer(0.2, held.finish).start()
    show(card, first)
    assert seen == [second, first]


def test_a_closed_node_takes_its_framebuffers_along(gpu: Gpu, card: Program) -> None:
    fb, _ = frame(card)
    show(card, fb)
    other = gpu.program("card0")
    other.ioctl("DRM_IOCTL_MODE_GETFB", fb=fb)
    card.close()
    wait_for(lambda: len(gpu.shared.display.connections) == 1)
    refused(errno.ENOENT, other, "DRM_IOCTL_MODE_GETFB", fb=fb)
    assert other.ioctl("DRM_IOCTL_MODE_GETCRTC", crtc=ModeObject.CRTC).mode_valid == 0


def test_the_console_is_back_when_the_last_program_has_closed_the_display(gpu: Gpu, card: Program) -> None:
    console = card.ioctl("DRM_IOCTL_MODE_GETCRTC", crtc=ModeObject.CRTC).fb
    show(card, frame(card)[0])
    card.close()
    wait_for(lambda: not gpu.shared.display.connections)
    shown = gpu.program("card0").ioctl("DRM_IOCTL_MODE_GETCRTC", crtc=ModeObject.CRTC)
    assert (shown.fb, shown.mode_valid) == (console, 1)
