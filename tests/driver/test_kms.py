"""Mode setting: what the display is made of, who is its master, page flips and their events; and programs that use it."""

from __future__ import annotations

import errno
import os
import select
import shutil
import struct
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from softgen.bits.generation import devices
from softgen.driver import display, drm, facts
from softgen.driver.display import ModeObject
from softgen.driver.uapi import ARGUMENTS, FLIP_EVENT, FORMAT_MODIFIER, FORMATS_HEAD, MODE, NAMES, PROPERTY_ENUM, Structure
from tests.driver.presenting import LLVMPIPE, presented
from tests.driver.program import Gpu, Held, Program, served
from tests.driver.running import PROGRAMS, Softgen, needs_driver, needs_shim, softgen_run
from tests.driver.test_gem import refused, submit
from tests.pictures.compare import Picture, compare

XR24, RG16 = (int.from_bytes(name, "little") for name in (b"XR24", b"RG16"))
UNIVERSAL_PLANES, ATOMIC = 2, 3
EVENT, ASYNC = 1, 2
# DRM_IOCTL_MODE_… of drm.h: they have the size of the argument in them
REQUESTS = [0xC04064A0, 0xC06864A1, 0xC06864A2, 0xC01464A6, 0xC05064A7, 0xC04064AA, 0xC01064AC, 0xC01C64AD, 0xC01C64AE, 0xC00464AF,
            0xC01864B0, 0xC01864B1, 0xC02064B2, 0xC01064B3, 0xC00464B4, 0xC01064B5, 0xC02064B6, 0xC06864B8, 0xC02064B9]  # fmt: skip


@pytest.fixture
def card(gpu: Gpu) -> Program:
    return gpu.program("card0")


def frame(program: Program, width: int = 640, height: int = 480, bits: int = 32, depth: int = 24) -> tuple[int, int]:
    """A framebuffer in a dumb buffer: its identifier and handle."""
    made = program.ioctl("DRM_IOCTL_MODE_CREATE_DUMB", width=width, height=height, bits=bits)
    fb = program.ioctl("DRM_IOCTL_MODE_ADDFB", width=width, height=height, pitch=made.pitch, bits=bits, depth=depth, handle=made.handle).fb
    return fb, made.handle


def show(program: Program, fb: int, **fields: object) -> None:
    mode = {"connectors": program.numbers("I", ModeObject.CONNECTOR), "connector_count": 1, "mode_valid": 1, "mode": display.mode(640, 480)}
    program.ioctl("DRM_IOCTL_MODE_SETCRTC", **{"crtc": ModeObject.CRTC, "fb": fb, **mode, **fields})


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
    return FLIP_EVENT.unpack(program.node.recv(1024))


# -- the interface


@pytest.mark.parametrize("request_number", REQUESTS, ids=lambda number: NAMES[number & 0xFF])
def test_arguments_have_the_sizes_of_the_kernels(request_number: int) -> None:
    assert ARGUMENTS[NAMES[request_number & 0xFF]].size == request_number >> 16 & 0x3FFF


@pytest.mark.parametrize("layout, size", [(MODE, 68), (PROPERTY_ENUM, 40), (FORMATS_HEAD, 24), (FORMAT_MODIFIER, 24), (FLIP_EVENT, 32)])
def test_structures_behind_pointers_have_the_sizes_of_the_kernels(layout: Structure, size: int) -> None:
    assert layout.size == size


def test_resources_are_counted_first_and_named_then(card: Program) -> None:
    counts = card.ioctl("DRM_IOCTL_MODE_GETRESOURCES")
    assert (counts.fb_count, counts.crtc_count, counts.connector_count, counts.encoder_count) == (0, 1, 1, 1)
    assert (counts.min_width, counts.max_width, counts.max_height) == (0, 16384, 16384)
    fb, _ = frame(card)
    rooms = {name: card.memory(4) for name in ("fbs", "crtcs", "connectors", "encoders")}
    card.ioctl("DRM_IOCTL_MODE_GETRESOURCES", fb_count=1, crtc_count=1, connector_count=1, encoder_count=0,
               **{name: room.address for name, room in rooms.items()})  # fmt: skip
    found = [int.from_bytes(bytes(room), "little") for room in rooms.values()]
    assert found == [fb, ModeObject.CRTC, ModeObject.CONNECTOR, 0]


def test_the_connector_has_one_preferred_mode(gpu: Gpu, card: Program) -> None:
    gpu.shared.display.mode = display.mode(800, 600)
    room = card.memory(MODE.size)
    assert bytes(room) == bytes(MODE.size) and card.ioctl("DRM_IOCTL_MODE_GETCONNECTOR", connector=ModeObject.CONNECTOR).mode_count == 1
    assert bytes(room) == bytes(MODE.size)
    found = card.ioctl("DRM_IOCTL_MODE_GETCONNECTOR", connector=ModeObject.CONNECTOR, mode_count=1, modes=room.address)
    mode = MODE.unpack(bytes(room))
    assert (mode.hdisplay, mode.vdisplay, mode.vrefresh, mode.name.rstrip(b"\0")) == (800, 600, 60, b"800x600") and mode.kind == 0x48
    assert (found.status, found.encoder, found.encoder_count, found.property_count, found.subpixel) == (1, ModeObject.ENCODER, 1, 0, 0)
    assert (found.kind, found.number) == (11, 1)  # HDMI-A
    encoder = card.ioctl("DRM_IOCTL_MODE_GETENCODER", encoder=found.encoder)
    assert (encoder.crtc, encoder.kind, encoder.possible_crtcs, encoder.possible_clones) == (ModeObject.CRTC, 2, 1, 0)  # TMDS
    assert card.ioctl("DRM_IOCTL_I915_GET_PIPE_FROM_CRTC_ID", crtc=encoder.crtc, pipe=9).pipe == 0


@pytest.mark.parametrize("size, clock, sync, total", [
    ((1920, 1080), 138500, 5, 1111), ((1920, 1200), 154000, 6, 1235), ((1680, 1050), 119000, 6, 1080), ((1280, 800), 71000, 6, 823),
    ((1600, 1200), 130250, 4, 1235), ((1400, 1050), 101000, 4, 1080), ((1024, 768), 56000, 4, 790), ((1280, 768), 68250, 7, 790),
    ((1280, 1024), 91000, 7, 1054), ((1366, 768), 72250, 10, 790), ((16, 16), 250, 10, 35),
])  # fmt: skip
def test_timings_of_a_mode(size: tuple[int, int], clock: int, sync: int, total: int) -> None:
    """VESA's CVT-RB: the clock in kHz, and by aspect ratio the lines of the sync pulse; the first eight are in VESA's list of modes."""
    mode, (width, height) = MODE.unpack(display.mode(*size)), size
    assert (mode.clock, mode.vrefresh, mode.flags) == (clock, 60, 1 << 0 | 1 << 3)  # positive hsync, negative vsync
    assert (mode.hdisplay, mode.hsync_start, mode.hsync_end, mode.htotal) == (width, width + 48, width + 80, width + 160)
    assert (mode.vdisplay, mode.vsync_start, mode.vsync_end, mode.vtotal) == (height, height + 3, height + 3 + sync, total)
    assert mode.hskew == mode.vscan == 0


@pytest.mark.parametrize("name, field", [
    ("DRM_IOCTL_MODE_GETCONNECTOR", "connector"), ("DRM_IOCTL_MODE_GETENCODER", "encoder"),
    ("DRM_IOCTL_MODE_GETCRTC", "crtc"), ("DRM_IOCTL_MODE_SETCRTC", "crtc"),
    ("DRM_IOCTL_MODE_GETPLANE", "plane"), ("DRM_IOCTL_MODE_GETPROPERTY", "property"),
    ("DRM_IOCTL_MODE_GETPROPBLOB", "blob"), ("DRM_IOCTL_MODE_OBJ_GETPROPERTIES", "object"),
    ("DRM_IOCTL_MODE_PAGE_FLIP", "crtc"), ("DRM_IOCTL_MODE_RMFB", "fb"), ("DRM_IOCTL_MODE_GETFB", "fb"),
    ("DRM_IOCTL_MODE_DIRTYFB", "fb"), ("DRM_IOCTL_I915_GET_PIPE_FROM_CRTC_ID", "crtc"),
])  # fmt: skip
def test_a_bad_identifier(card: Program, name: str, field: str) -> None:
    refused(errno.ENOENT, card, name, **{field: 9999})
    if field != "fb":
        refused(errno.ENOENT, card, name, **{field: frame(card)[0]})  # the identifier of something else


@pytest.mark.parametrize("number", range(0xA0, 0xBF))
def test_a_render_node_has_no_display(gpu: Gpu, number: int) -> None:
    with pytest.raises(OSError) as found:
        gpu.program().raw(number, bytes(104))
    assert found.value.errno == errno.EACCES


def test_planes_are_for_clients_that_know_primary_ones(card: Program) -> None:
    assert card.ioctl("DRM_IOCTL_MODE_GETPLANERESOURCES").plane_count == 0
    card.ioctl("DRM_IOCTL_SET_CLIENT_CAP", capability=UNIVERSAL_PLANES, value=1)
    room = card.memory(4)
    assert card.ioctl("DRM_IOCTL_MODE_GETPLANERESOURCES", planes=room.address, plane_count=1).plane_count == 1
    [plane] = struct.unpack("<I", bytes(room))
    formats = card.memory(4 * card.ioctl("DRM_IOCTL_MODE_GETPLANE", plane=plane).format_count)
    found = card.ioctl("DRM_IOCTL_MODE_GETPLANE", plane=plane, formats=formats.address, format_count=len(bytes(formats)) // 4)
    assert (found.possible_crtcs, found.gamma_size) == (1, 0) and XR24 in struct.unpack(f"<{found.format_count}I", bytes(formats))


@pytest.mark.parametrize("name, modifiers", [("bdw", {0, 1 << 56 | 1}), ("kbl", {0, 1 << 56 | 1, 1 << 56 | 2})])
def test_properties_of_the_plane(name: str, modifiers: set[int]) -> None:
    with served(name) as gpu:
        card = gpu.program("card0")
        ids, values = card.memory(8), card.memory(16)
        found = card.ioctl("DRM_IOCTL_MODE_OBJ_GETPROPERTIES", object=ModeObject.PLANE, properties=ids.address, values=values.address,
                           property_count=2)  # fmt: skip
        held = dict(zip(struct.unpack("<2I", bytes(ids)), struct.unpack("<2Q", bytes(values)), strict=True))
        names = {card.ioctl("DRM_IOCTL_MODE_GETPROPERTY", property=number).name.rstrip(b"\0"): value for number, value in held.items()}
        assert found.property_count == 2 and names[b"type"] == 1
        size = card.ioctl("DRM_IOCTL_MODE_GETPROPBLOB", blob=names[b"IN_FORMATS"]).size
        blob = card.memory(size)
        card.ioctl("DRM_IOCTL_MODE_GETPROPBLOB", blob=names[b"IN_FORMATS"], size=size, data=blob.address)
        head = FORMATS_HEAD.unpack(bytes(blob))
        assert head.formats == 24 and head.modifiers % 8 == 0 and size == head.modifiers + 24 * head.modifier_count
        assert XR24 in struct.unpack_from(f"<{head.format_count}I", bytes(blob), head.formats)
        rows = FORMAT_MODIFIER.unpack_all(bytes(blob)[head.modifiers :])
        assert {row.modifier for row in rows} == modifiers and {row.formats for row in rows} == {(1 << head.format_count) - 1}


def test_the_values_of_a_plane_type_have_names(card: Program) -> None:
    room = card.memory(3 * PROPERTY_ENUM.size)
    found = card.ioctl("DRM_IOCTL_MODE_GETPROPERTY", property=ModeObject.PLANE_TYPE, enums=room.address, enum_count=3)
    rows = PROPERTY_ENUM.unpack_all(bytes(room))
    names = [(row.value, row.name.rstrip(b"\0")) for row in rows]
    assert found.value_count == found.enum_count == 3 and names == [(0, b"Overlay"), (1, b"Primary"), (2, b"Cursor")]
    assert found.flags == 1 << 3 | 1 << 2  # an enumeration that cannot be changed,
    blob = card.ioctl("DRM_IOCTL_MODE_GETPROPERTY", property=ModeObject.IN_FORMATS, value_count=3, enum_count=3)
    assert (blob.flags, blob.value_count, blob.enum_count) == (1 << 4 | 1 << 2, 0, 0)  # and a blob, which has no such values
    refused(errno.EINVAL, card, "DRM_IOCTL_MODE_OBJ_GETPROPERTIES", object=ModeObject.ENCODER)
    refused(errno.ENOENT, card, "DRM_IOCTL_MODE_OBJ_GETPROPERTIES", object=ModeObject.PLANE, kind=0xCCCCCCCC)


def test_capabilities_of_clients(card: Program) -> None:
    refused(errno.EOPNOTSUPP, card, "DRM_IOCTL_SET_CLIENT_CAP", capability=ATOMIC, value=1)
    refused(errno.EINVAL, card, "DRM_IOCTL_SET_CLIENT_CAP", capability=UNIVERSAL_PLANES, value=2)
    refused(errno.EINVAL, card, "DRM_IOCTL_SET_CLIENT_CAP", capability=99, value=1)
    capabilities = drm.DRM_CAP_DUMB_BUFFER, drm.DRM_CAP_ADDFB2_MODIFIERS, drm.DRM_CAP_ASYNC_PAGE_FLIP
    assert [card.ioctl("DRM_IOCTL_GET_CAP", capability=number).value for number in capabilities] == [1, 1, 0]


# -- the master


def test_the_first_program_is_the_master_until_it_drops_that(gpu: Gpu) -> None:
    first, second = gpu.program("card0"), gpu.program("card0")
    fb, _ = frame(second)
    with pytest.raises(OSError) as found:
        show(second, fb)
    assert found.value.errno == errno.EACCES
    refused(errno.EBUSY if os.getuid() == 0 else errno.EACCES, second, "DRM_IOCTL_SET_MASTER")
    refused(errno.EINVAL, second, "DRM_IOCTL_DROP_MASTER")
    first.ioctl("DRM_IOCTL_SET_MASTER")
    first.ioctl("DRM_IOCTL_DROP_MASTER")
    refused(errno.EACCES, first, "DRM_IOCTL_MODE_PAGE_FLIP", crtc=ModeObject.CRTC, fb=fb)
    first.ioctl("DRM_IOCTL_SET_MASTER")  # it was one before
    first.node.close()
    third = gpu.program("card0")
    show(third, frame(third)[0])


# -- what is shown


def test_a_crtc_shows_the_console_until_a_mode_is_set_and_can_be_restored(gpu: Gpu, card: Program) -> None:
    before = card.ioctl("DRM_IOCTL_MODE_GETCRTC", crtc=ModeObject.CRTC)
    assert before.mode_valid and before.fb and MODE.unpack(before.mode).hdisplay == 640
    console = card.ioctl("DRM_IOCTL_MODE_GETFB", fb=before.fb)
    assert (console.width, console.height, console.pitch, console.bits) == (640, 480, 2560, 32)
    assert gpu.shared.display.framebuffer(before.fb).bo.size == 2560 * 480
    fb, _ = frame(card)
    show(card, fb)
    assert card.ioctl("DRM_IOCTL_MODE_GETCRTC", crtc=ModeObject.CRTC).fb == fb and gpu.shared.display.frames == 1
    show(card, before.fb, mode=before.mode)
    assert gpu.shared.display.frames == 1, "the console is no frame of the program"
    refused(errno.ENOENT, card, "DRM_IOCTL_MODE_RMFB", fb=before.fb)


def test_a_crtc_is_turned_off(card: Program) -> None:
    show(card, frame(card)[0])
    card.ioctl("DRM_IOCTL_MODE_SETCRTC", crtc=ModeObject.CRTC)
    found = card.ioctl("DRM_IOCTL_MODE_GETCRTC", crtc=ModeObject.CRTC)
    assert (found.mode_valid, found.fb) == (0, 0)
    refused(errno.EBUSY, card, "DRM_IOCTL_MODE_PAGE_FLIP", crtc=ModeObject.CRTC, fb=frame(card)[0])


def test_removing_what_is_shown_turns_the_crtc_off(card: Program) -> None:
    fb, _ = frame(card)
    show(card, fb)
    card.ioctl("DRM_IOCTL_MODE_RMFB", fb=fb)
    assert card.ioctl("DRM_IOCTL_MODE_GETCRTC", crtc=ModeObject.CRTC).mode_valid == 0
    refused(errno.ENOENT, card, "DRM_IOCTL_MODE_GETFB", fb=fb)


@pytest.mark.parametrize("number, fields", [
    (errno.ENOENT, {"fb": 9999}), (errno.EINVAL, {"connector_count": 0}), (errno.EINVAL, {"mode_valid": 0}),
    (errno.EINVAL, {"mode": bytes(68)}), (errno.ENOSPC, {"x": 1}), (errno.ENOSPC, {"mode": display.mode(641, 480)}),
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
            mode=display.mode(640, 480))  # fmt: skip


# -- page flips


def test_a_flip_without_rendering_completes_at_once(card: Program) -> None:
    first, second = (frame(card)[0] for _ in range(2))
    show(card, first)
    assert not readable(card)
    for number, fb in enumerate((second, first), 2):
        flip(card, fb, user_data=0x1234_5678_9ABC_DEF0 + fb)
        found = event(card)
        assert (found.kind, found.size, found.user_data) == (2, 32, 0x1234_5678_9ABC_DEF0 + fb)
        assert (found.sequence, found.crtc) == (number, ModeObject.CRTC)
        assert not readable(card) and card.ioctl("DRM_IOCTL_MODE_GETCRTC", crtc=ModeObject.CRTC).fb == fb


def test_the_event_of_a_flip_has_the_time_of_the_monotonic_clock(card: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    now = SimpleNamespace(monotonic=time.monotonic, monotonic_ns=lambda: 12_345_678_901_999)
    monkeypatch.setattr(display, "time", now)
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
    assert [FLIP_EVENT.unpack(data[at:]).user_data for at in (0, 32)] == [1, 2]
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


# -- programs


@needs_shim
def test_the_event_of_a_flip_through_the_shim(tmp_path: Path) -> None:
    run = Softgen("--images", str(tmp_path / "out"), "--display", "320x200", "--", sys.executable, str(PROGRAMS / "kms.py"))
    assert run.process.stdout is not None
    code = run.process.wait(60)  # standard input stays open: the program selects on it too
    run.finish()
    assert code == 0 and run.out.splitlines() == [
        "connector 1 1 True", "mode 320x200 320 200 60", "before [False, False, False]", "after [True, True, True]",
        "event 2 32 0x123456789abcdef0 True 2 True", "drained [False, False, False]", "refused True True", "restored True True",
    ], run.out + run.err  # fmt: skip
    assert sorted(os.listdir(tmp_path / "out")) == ["frame-0001.png", "frame-0002.png"]
    for name, colour in (("frame-0001.png", (255, 0, 0)), ("frame-0002.png", (0, 255, 0))):
        pixels = np.asarray(Image.open(tmp_path / "out" / name))
        assert pixels.shape == (200, 320, 3) and (pixels == colour).all()


@pytest.mark.parametrize("text", ["640", "8x8", "640x480x2", "9000x9000", "-1x5"])
def test_a_mode_that_is_none(text: str) -> None:
    run = softgen_run(f"--display={text}", "--", "true")
    assert run.process.returncode == 2 and "WIDTHxHEIGHT" in run.err


def kmscube(folder: Path, *options: str, mode: str, **environment: str) -> list[Picture]:
    """The frames of kmscube: a cleared one, then two of the cube, which turns."""
    frames, said = presented(folder, *options, "--", "kmscube", "--mode", mode, "--count", "2", **environment)
    assert len(frames) == 3 and "Rendered" in said, said
    return frames


@pytest.fixture(scope="module")
def cubes(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[Picture]]:
    """The frames of kmscube in a mode as llvmpipe draws them, on the same display with dumb buffers."""
    found = {}

    def cube(mode: str) -> list[Picture]:
        if mode not in found:
            folder = tmp_path_factory.mktemp("llvmpipe") / mode
            found[mode] = kmscube(folder, mode=mode, **LLVMPIPE)
            assert not list(folder.glob("submission-*")), "the GPU has drawn"
        return found[mode]

    return cube


@needs_shim
@pytest.mark.parametrize("gpu_name, mode", [
    ("gm965", "smooth"), ("g45", "smooth"), ("g45", "rgba"), ("g45", "nv12-2img"),
    ("ivb", "smooth"), ("bdw", "smooth"), ("kbl", "smooth"), ("icl", "smooth"),
    ("kbl", "rgba"),
])  # fmt: skip
def test_kmscube_draws_what_llvmpipe_draws(gpu_name: str, mode: str, cubes: Callable[[str], list[Picture]], tmp_path: Path) -> None:
    if shutil.which("kmscube") is None:
        pytest.skip("kmscube is not installed: apt-get install kmscube")
    needs_driver(gpu_name, "OpenGL")
    expected, found = cubes(mode), kmscube(tmp_path / "out", "--gpu", gpu_name, mode=mode)
    for reference, picture in zip(expected, found, strict=True):
        assert compare(picture, reference).agrees, str(compare(picture, reference))
    assert (expected[1] != 128).any(-1).mean() > 0.1 and (expected[1] != expected[2]).any(), "no cube, or it does not turn"


def test_every_gpu_has_a_display() -> None:
    for each in devices():
        assert XR24 in facts.display(each).formats and 0 in facts.display(each).modifiers
