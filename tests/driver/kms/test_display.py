"""The display's state: what the CRTC shows, who is the master, how many frames were presented."""

from __future__ import annotations

import errno
import socket
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from softgen.driver.errors import Errno
from softgen.driver.kms import display as module
from softgen.driver.kms.crtc import Blob, Crtc, Framebuffer, ModeObject
from softgen.driver.kms.display import Display
from softgen.driver.kms.monitor import mode
from softgen.driver.objects.fence import Signals

XR24: Any = SimpleNamespace(name="XR24", bits=32)
TILED: Any = SimpleNamespace(unit=512)


@pytest.fixture
def display() -> Display:
    return Display(Signals())


def framebuffer(number: int = 1, owner: object = "node", width: int = 640, height: int = 480) -> Framebuffer:
    bo: Any = SimpleNamespace(sync_view=lambda: None, idle=lambda: True, busy=list)
    return Framebuffer(number, owner, bo, width, height, XR24, TILED, 4 * width, 0)


def shown(framebuffer: Framebuffer | None, width: int = 640, height: int = 480) -> Crtc:
    return Crtc.showing(framebuffer, Blob(1, mode(width, height)))


def refused(number: int, function: Any, *values: Any) -> None:
    with pytest.raises(Errno) as found:
        function(*values)
    assert found.value.number == number


def test_a_crtc_that_is_off() -> None:
    off = Crtc()
    assert (off.active, off.mode, off.framebuffer, off.framebuffers()) == (False, b"", None, [])
    assert shown(None, 800, 600).size == (800, 600)


@pytest.mark.parametrize("x, y, fits", [(0, 0, True), (640, 480, True), (641, 480, False), (640, 481, False)])
def test_the_viewport_is_inside_of_the_framebuffer(x: int, y: int, fits: bool) -> None:
    plane = Crtc.showing(framebuffer(width=1280, height=960), Blob(1, mode(640, 480)), x, y).primary
    if fits:
        plane.check_viewport()
    else:
        refused(errno.ENOSPC, plane.check_viewport)


@pytest.mark.parametrize("times, rate", [([], 0.0), ([5.0], 0.0), ([5.0, 5.5], 2.0), ([5.0, 5.25, 5.5, 6.0], 3.0), ([5.0, 5.0], 0.0)])
def test_frames_per_second(times: list[float], rate: float, display: Display, monkeypatch: pytest.MonkeyPatch) -> None:
    """Intervals between frames, not frames; the console is none."""
    left, reported = list(times), list[int]()
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: left.pop(0)))
    display.presented = lambda crtc, frame: reported.append(frame)
    for _ in times:
        display.present(shown(framebuffer(owner=None)))
        display.present(Crtc())
        display.present(shown(framebuffer()))
    assert display.rate() == {"presented": len(times), "per_second": rate} and reported == list(range(1, len(times) + 1))


@pytest.mark.parametrize("fast, rate", [(60, 10.0), (59, 8.676)])
def test_a_rate_is_that_of_the_last_sixty_frames(fast: int, rate: float, display: Display, monkeypatch: pytest.MonkeyPatch) -> None:
    """A frame in a second, and then ten: the last of the slow ones counts where there were 59 fast ones. To a thousandth."""
    times = [*range(100), *(100 + number / 10 for number in range(fast))]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: times.pop(0)))
    while times:
        display.present(shown(framebuffer()))
    assert display.rate() == {"presented": 100 + fast, "per_second": rate}


def test_one_master_at_a_time(display: Display) -> None:
    first, second = object(), object()
    connection, other = socket.socketpair()
    display.opened(first, connection)
    display.opened(second, other)
    assert display.master is first and display.masters_before == {first}
    display.set_master(first)
    refused(errno.EBUSY, display.set_master, second)
    refused(errno.EINVAL, display.drop_master, second)
    display.drop_master(first)
    display.set_master(second)
    assert display.master is second and display.masters_before == {first, second}
    display.closed(second)
    assert display.master is None and display.masters_before == {first} and list(display.connections) == [first]
    connection.close()
    other.close()


def test_framebuffers_have_numbers_and_a_limit(display: Display) -> None:
    assert [display.add(framebuffer) for _ in range(1 << 14)] == list(range(101, 101 + (1 << 14)))
    refused(errno.ENOMEM, display.add, framebuffer)
    refused(errno.ENOENT, display.framebuffer, 100)
    display.crtc = shown(display.framebuffer(101))
    display.remove(display.framebuffer(102))
    assert display.crtc.framebuffer is not None and display.untouched
    display.remove(display.framebuffer(101))
    assert display.crtc == Crtc() and not display.untouched and display.add(framebuffer) == 101 + (1 << 14), "no number is used again"


@pytest.mark.parametrize("size, pitch", [((640, 480), 2560), ((641, 3), 3072), ((100, 100), 512), ((128, 4), 512), ((129, 4), 1024)])
def test_the_console_has_whole_tiles_in_a_row(size: tuple[int, int], pitch: int, display: Display) -> None:
    display.mode, made = mode(*size), list[int]()
    display.boot(lambda size: made.append(size) or framebuffer().bo, XR24, TILED)  # type: ignore[func-returns-value]
    console = display.crtc.framebuffer
    assert console is not None and made == [pitch * size[1]] and display.crtc.mode == display.mode
    assert (console.owner, console.width, console.height, console.pitch, console.offset) == (None, *size, pitch, 0)
    display.boot(lambda size: made.append(size), XR24, TILED)  # type: ignore[arg-type, func-returns-value]
    assert len(made) == 1


@pytest.mark.parametrize("touched", [True, False])
def test_the_console_is_shown_until_a_program_has_touched_the_crtc(touched: bool, display: Display) -> None:
    display.untouched = not touched
    display.boot(lambda size: framebuffer().bo, XR24, TILED)
    assert (display.crtc.framebuffer is None) is touched


@pytest.mark.parametrize("user_data", [7, None])
def test_a_flip_of_a_node_that_is_being_closed(user_data: int | None, display: Display) -> None:
    """Its event has nowhere to go; the picture is shown."""
    first, second = framebuffer(1), framebuffer(2)
    display.crtc = shown(first)
    display.flip("node", second, user_data)
    assert display.crtc.framebuffer is second and display.pending is None and display.frames == 1


def test_no_two_mode_objects_have_the_same_identifier() -> None:
    """Framebuffers get those above."""
    assert len(ModeObject) == len(ModeObject.__members__) and 0 < min(ModeObject) and max(ModeObject) < module.FIRST_NUMBER


def test_what_a_program_has_drawn_through_the_aperture_is_in_the_frame(display: Display) -> None:
    """The linear view of a tiled buffer is synchronised before the frame is reported."""
    order, picture = list[str](), framebuffer()
    picture.bo.sync_view = lambda: order.append("view")  # type: ignore[method-assign]
    display.presented = lambda crtc, frame: order.append(f"frame {frame}")
    for _ in range(2):
        display.present(shown(picture))
    assert order == ["view", "frame 1", "view", "frame 2"]


def test_who_waits_for_a_flip_learns_of_its_end(display: Display, monkeypatch: pytest.MonkeyPatch) -> None:
    """At once, when it is no longer pending."""
    told, first = list[object](), framebuffer()
    monkeypatch.setattr(display.signals, "notify", lambda: told.append(display.pending))
    display.crtc = shown(first)
    display.flip(object(), framebuffer(2), None)
    assert told == [None] and display.frames == 1


def test_an_event_for_which_there_is_no_room_any_more_is_lost(display: Display) -> None:
    """A program that does not read its events keeps nobody waiting."""
    node, (ours, theirs) = object(), socket.socketpair()
    ours.setblocking(False)
    with pytest.raises(BlockingIOError):
        while True:
            ours.send(bytes(4096))
    ours.setblocking(True)
    display.opened(node, ours)
    sending = threading.Thread(target=display.send, args=(node, bytes(32)), daemon=True)
    sending.start()
    sending.join(10)
    assert not sending.is_alive()
    ours.close()
    theirs.close()
