"""Planes: the overlay by SETPLANE, the cursor, and what the kernel refuses of them."""

from __future__ import annotations

import errno
import threading

import pytest

from softgen.driver.kms.crtc import Crtc, ModeObject
from tests.driver.ioctl.test_gem import refused, submit
from tests.driver.kms.test_resources import card, frame, show
from tests.driver.program import Gpu, Held, Program

__all__ = ["card"]  # a fixture
SET = {"plane": ModeObject.OVERLAY, "crtc": ModeObject.CRTC, "crtc_x": 30, "crtc_y": -20, "crtc_width": 100, "crtc_height": 80,
       "x": 5 << 16, "y": 7 << 16, "width": 100 << 16, "height": 80 << 16}  # fmt: skip


def test_an_overlay_is_shown_at_once_and_turned_off(gpu: Gpu, card: Program) -> None:
    show(card, frame(card)[0])
    fb, seen = frame(card, 120, 90)[0], list[Crtc]()
    gpu.shared.display.presented = lambda crtc, number: seen.append(crtc)
    card.ioctl("DRM_IOCTL_MODE_SETPLANE", fb=fb, **SET)
    overlay = seen[0].overlay
    assert overlay.shown and overlay.pixels == (5, 7, 100, 80) and overlay.target == (30, -20, 100, 80)
    found = card.ioctl("DRM_IOCTL_MODE_GETPLANE", plane=ModeObject.OVERLAY)
    assert (found.fb, found.crtc) == (fb, ModeObject.CRTC)
    card.ioctl("DRM_IOCTL_MODE_SETPLANE", plane=ModeObject.OVERLAY)
    assert len(seen) == 2 and not seen[1].overlay.shown
    found = card.ioctl("DRM_IOCTL_MODE_GETPLANE", plane=ModeObject.OVERLAY)
    assert (found.fb, found.crtc) == (0, 0)


def test_an_overlay_waits_for_its_rendering(gpu: Gpu, card: Program, held: Held) -> None:
    show(card, frame(card)[0])
    (fb, handle), seen = frame(card, 120, 90), list[int]()
    gpu.shared.display.presented = lambda crtc, number: seen.append(len(held.submissions))
    submit(card, handle)
    threading.Timer(0.2, held.finish).start()
    card.ioctl("DRM_IOCTL_MODE_SETPLANE", fb=fb, **SET)
    assert seen == [0]


@pytest.mark.parametrize("number, fields", [
    (errno.ENOENT, {"plane": 9}), (errno.ENOENT, {"fb": 9}), (errno.ENOENT, {"crtc": 9}),
    (errno.ENOSPC, {"x": 21 << 16}), (errno.ENOSPC, {"y": 11 << 16}), (errno.ENOSPC, {"x": 0xFFFF_FFFF}),
    (errno.ERANGE, {"crtc_width": 99}), (errno.ERANGE, {"height": 79 << 16}), (errno.ERANGE, {"width": (100 << 16) - 1}),
    (errno.ERANGE, {"crtc_width": 1 << 31}), (errno.ERANGE, {"crtc_x": (1 << 31) - 1}),
])  # fmt: skip
def test_planes_that_cannot_be(card: Program, number: int, fields: dict[str, int]) -> None:
    show(card, frame(card)[0])
    refused(number, card, "DRM_IOCTL_MODE_SETPLANE", **{"fb": frame(card, 120, 90)[0], **SET, **fields})
    assert card.ioctl("DRM_IOCTL_MODE_GETPLANE", plane=ModeObject.OVERLAY).fb == 0


def test_removing_the_framebuffer_of_an_overlay_turns_that_off_alone(gpu: Gpu, card: Program) -> None:
    show(card, frame(card)[0])
    fb, _ = frame(card, 120, 90)
    card.ioctl("DRM_IOCTL_MODE_SETPLANE", fb=fb, **SET)
    card.ioctl("DRM_IOCTL_MODE_RMFB", fb=fb)
    crtc = gpu.shared.display.crtc
    assert not crtc.overlay.shown and crtc.active and crtc.primary.shown


def test_a_closed_framebuffer_goes_on_being_shown(card: Program) -> None:
    """CLOSEFB, unlike RMFB."""
    fb, _ = frame(card)
    show(card, fb)
    refused(errno.EINVAL, card, "DRM_IOCTL_MODE_CLOSEFB", fb=fb, pad=1)
    card.ioctl("DRM_IOCTL_MODE_CLOSEFB", fb=fb)
    assert card.ioctl("DRM_IOCTL_MODE_GETCRTC", crtc=ModeObject.CRTC).mode_valid == 1
    refused(errno.ENOENT, card, "DRM_IOCTL_MODE_GETFB", fb=fb)
    refused(errno.ENOENT, card, "DRM_IOCTL_MODE_CLOSEFB", fb=fb)


def test_a_cursor_survives_modes_and_comes_with_the_next_frame(gpu: Gpu, card: Program) -> None:
    seen = list[Crtc]()
    gpu.shared.display.presented = lambda crtc, number: seen.append(crtc)
    handle = card.ioctl("DRM_IOCTL_MODE_CREATE_DUMB", width=64, height=64, bits=32).handle
    card.ioctl("DRM_IOCTL_MODE_CURSOR2", flags=3, crtc=ModeObject.CRTC, x=9, y=-8, width=64, height=64, handle=handle, hot_x=4, hot_y=5)
    show(card, frame(card)[0])
    assert seen[0].cursor.shown and seen[0].cursor.target == (9, -8, 64, 64), "the hotspot moves nothing"
    card.ioctl("DRM_IOCTL_MODE_SETCRTC", crtc=ModeObject.CRTC)
    show(card, frame(card)[0])
    assert seen[-1].cursor.target == (9, -8, 64, 64)


def test_a_cursor_that_is_moved_while_a_flip_is_pending_is_in_its_frame(gpu: Gpu, card: Program, held: Held) -> None:
    show(card, frame(card)[0])
    handle = card.ioctl("DRM_IOCTL_MODE_CREATE_DUMB", width=64, height=64, bits=32).handle
    card.ioctl("DRM_IOCTL_MODE_CURSOR", flags=1, crtc=ModeObject.CRTC, width=64, height=64, handle=handle)
    (fb, drawn), seen = frame(card), list[Crtc]()
    submit(card, drawn)
    gpu.shared.display.presented = lambda crtc, number: seen.append(crtc)
    card.ioctl("DRM_IOCTL_MODE_PAGE_FLIP", crtc=ModeObject.CRTC, fb=fb)
    card.ioctl("DRM_IOCTL_MODE_CURSOR", flags=2, crtc=ModeObject.CRTC, x=11, y=12)
    held.finish()
    assert seen[0].cursor.target == (11, 12, 64, 64) and seen[0].framebuffer is gpu.shared.display.framebuffer(fb)


@pytest.mark.parametrize("name", ["CURSOR", "SETGAMMA"])
def test_what_is_set_before_a_mode_is_set_over_the_console(gpu: Gpu, card: Program, name: str) -> None:
    room = card.memory(512).address
    handle = card.ioctl("DRM_IOCTL_MODE_CREATE_DUMB", width=64, height=64, bits=32).handle
    ramps = {"size": 256, **dict.fromkeys(("red", "green", "blue"), room)}
    fields = {"flags": 1, "width": 64, "height": 64, "handle": handle} if name == "CURSOR" else ramps
    card.ioctl(f"DRM_IOCTL_MODE_{name}", crtc=ModeObject.CRTC, **fields)
    crtc = gpu.shared.display.crtc
    assert crtc.framebuffer is not None and crtc.framebuffer.owner is None and crtc.active
    assert crtc.cursor.shown if name == "CURSOR" else crtc.gamma_blob is not None


def test_a_cursor_whose_buffer_is_closed_goes_on_being_shown(gpu: Gpu, card: Program) -> None:
    handle = card.ioctl("DRM_IOCTL_MODE_CREATE_DUMB", width=64, height=64, bits=32).handle
    card.ioctl("DRM_IOCTL_MODE_CURSOR", flags=1, crtc=ModeObject.CRTC, width=64, height=64, handle=handle)
    card.ioctl("DRM_IOCTL_GEM_CLOSE", handle=handle)
    seen = list[Crtc]()
    gpu.shared.display.presented = lambda crtc, number: seen.append(crtc)
    show(card, frame(card)[0])
    picture = seen[0].cursor.framebuffer
    assert picture is not None and len(picture.bo.read(0, 4 * 64 * 64)) == 4 * 64 * 64
