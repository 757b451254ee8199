"""Framebuffers and dumb buffers: what is accepted, what is refused, and what lives how long."""

from __future__ import annotations

import errno
import mmap
import struct

import pytest

from softgen.driver.kms.crtc import ModeObject
from tests.driver.ioctl.test_gem import refused
from tests.driver.kms.test_resources import XR24, card, frame, show
from tests.driver.program import Gpu, Program, served

__all__ = ["card"]  # a fixture
LINEAR, X_TILED, Y_TILED, Y_TILED_CCS = 0, 1 << 56 | 1, 1 << 56 | 2, 1 << 56 | 4
MODIFIERS = 2
NV12 = int.from_bytes(b"NV12", "little")


def add(program: Program, handle: int, width: int = 640, height: int = 480, pitch: int = 2560, modifier: int | None = None, offset: int = 0,
        format: int = XR24, **fields: object) -> int:  # fmt: skip
    planes = {name: struct.pack("<4I", value, 0, 0, 0) for name, value in (("handles", handle), ("pitches", pitch), ("offsets", offset))}
    more = {"flags": MODIFIERS, "modifiers": struct.pack("<4Q", modifier, 0, 0, 0)} if modifier is not None else {}
    arguments = {"width": width, "height": height, "format": format, **planes, **more, **fields}
    return int(program.ioctl("DRM_IOCTL_MODE_ADDFB2", **arguments).fb)


def refused_fb(number: int, program: Program, handle: int, **fields: object) -> None:
    with pytest.raises(OSError) as found:
        add(program, handle, **fields)  # type: ignore[arg-type]
    assert found.value.errno == number


def buffer(program: Program, size: int = 2560 * 480) -> int:
    return int(program.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=size).handle)


# -- dumb buffers


@pytest.mark.parametrize("width, height, bits, pitch, size", [
    (640, 480, 32, 2560, 1228800), (641, 1, 32, 2624, 4096), (1, 1, 8, 64, 4096), (33, 3, 16, 128, 4096), (100, 100, 15, 256, 28672),
])  # fmt: skip
def test_dumb_buffers_have_aligned_rows(card: Program, width: int, height: int, bits: int, pitch: int, size: int) -> None:
    made = card.ioctl("DRM_IOCTL_MODE_CREATE_DUMB", width=width, height=height, bits=bits)
    assert (made.pitch, made.size) == (pitch, size) and made.handle


@pytest.mark.parametrize("width, height, bits", [
    (0, 1, 32), (1, 0, 32), (1, 1, 0), (1, 1, 24), (1, 1, 64), (1 << 31, 2, 32), (65536, 65536, 8),
])  # fmt: skip
def test_dumb_buffers_that_cannot_be(card: Program, width: int, height: int, bits: int) -> None:
    refused(errno.EINVAL, card, "DRM_IOCTL_MODE_CREATE_DUMB", width=width, height=height, bits=bits)


def test_a_dumb_buffer_is_mapped_and_destroyed(card: Program) -> None:
    made = card.ioctl("DRM_IOCTL_MODE_CREATE_DUMB", width=64, height=64, bits=32)
    descriptor, at = card.mmap(card.ioctl("DRM_IOCTL_MODE_MAP_DUMB", handle=made.handle).offset, made.size)
    with mmap.mmap(descriptor, made.size, offset=at) as view:
        view[:4] = b"seen"
        data = card.memory(4)
        card.ioctl("DRM_IOCTL_I915_GEM_PREAD", handle=made.handle, size=4, data=data.address)
        assert bytes(data) == b"seen"
    card.ioctl("DRM_IOCTL_MODE_DESTROY_DUMB", handle=made.handle)
    refused(errno.EINVAL, card, "DRM_IOCTL_MODE_DESTROY_DUMB", handle=made.handle)
    refused(errno.ENOENT, card, "DRM_IOCTL_MODE_MAP_DUMB", handle=made.handle)


# -- framebuffers


@pytest.mark.covering(2)
@pytest.mark.parametrize("unused", ["handles", "pitches", "offsets", "modifiers"])
@pytest.mark.parametrize("chosen", [False, True])
@pytest.mark.parametrize("plane", [1, 2, 3])
def test_other_planes_than_the_formats(card: Program, unused: str, chosen: bool, plane: int) -> None:
    """With the flag for modifiers they must be empty; without it there may be anything but modifiers (framebuffer_check: programs from
    before modifiers did not clear it)."""
    handle = buffer(card)
    values = {"handles": [handle, 0, 0, 0], "pitches": [2560, 0, 0, 0], "offsets": [0] * 4, "modifiers": [0] * 4}
    assert add(card, handle, flags=MODIFIERS * chosen)
    values[unused][plane] = handle if unused == "handles" else X_TILED if unused == "modifiers" else 4096
    fields = {name: struct.pack("<4Q" if name == "modifiers" else "<4I", *row) for name, row in values.items()}
    if chosen or unused == "modifiers":
        refused_fb(errno.EINVAL, card, handle, flags=MODIFIERS * chosen, **fields)
    else:
        assert add(card, handle, flags=0, **fields)


def test_a_modifier_needs_the_flag_for_modifiers(card: Program) -> None:
    handle, modifier = buffer(card), struct.pack("<4Q", X_TILED, 0, 0, 0)
    refused_fb(errno.EINVAL, card, handle, modifiers=modifier)
    assert add(card, handle, flags=MODIFIERS, modifiers=modifier)


@pytest.mark.parametrize("modifier", [None, LINEAR, X_TILED, Y_TILED])
def test_modifiers(card: Program, modifier: int | None) -> None:
    fb = add(card, buffer(card), modifier=modifier)
    found = card.ioctl("DRM_IOCTL_MODE_GETFB", fb=fb)
    assert (found.width, found.height, found.pitch, found.bits, found.depth) == (640, 480, 2560, 32, 24)


def test_without_a_modifier_the_buffers_tiling_counts(gpu: Gpu, card: Program) -> None:
    handle = buffer(card)
    card.ioctl("DRM_IOCTL_I915_GEM_SET_TILING", handle=handle, mode=1, stride=2560)
    assert gpu.shared.display.framebuffer(add(card, handle)).modifier.tiling == "x_major"
    assert gpu.shared.display.framebuffer(add(card, handle, modifier=X_TILED)).modifier.tiling == "x_major"
    refused_fb(errno.EINVAL, card, handle, modifier=LINEAR)  # another tiling than the buffer's
    refused_fb(errno.EINVAL, card, handle, width=512, pitch=2048)  # another stride
    card.ioctl("DRM_IOCTL_I915_GEM_SET_TILING", handle=handle, mode=2, stride=2560)
    refused_fb(errno.EINVAL, card, handle)
    assert add(card, handle, modifier=Y_TILED)


def test_y_tiling_is_not_scanned_out_before_gen9() -> None:
    with served("bdw") as gpu:
        program = gpu.program("card0")
        refused_fb(errno.EINVAL, program, buffer(program), modifier=Y_TILED)
        assert add(program, buffer(program), modifier=X_TILED)


@pytest.mark.parametrize("fields", [
    {"format": NV12}, {"width": 0}, {"height": 0}, {"width": 16385}, {"height": 481}, {"pitch": 2624}, {"pitch": 2496}, {"pitch": 2561},
    {"offset": 4096}, {"offset": 64, "height": 1}, {"modifier": Y_TILED_CCS}, {"modifier": 0x00FFFFFFFFFFFFFF}, {"flags": 1}, {"flags": 4},
    {"modifier": X_TILED, "pitch": 2560 + 64, "height": 1}, {"modifier": LINEAR, "handles": struct.pack("<4I", 1, 1, 0, 0)},
    {"handles": bytes(16)}, {"modifier": Y_TILED, "height": 481},
])  # fmt: skip
def test_framebuffers_that_cannot_be(card: Program, fields: dict[str, object]) -> None:
    handle = buffer(card)
    assert add(card, handle)
    refused_fb(errno.EINVAL, card, handle, **fields)


def test_a_framebuffer_of_no_buffer(card: Program) -> None:
    refused_fb(errno.ENOENT, card, 99)
    refused(errno.ENOENT, card, "DRM_IOCTL_MODE_ADDFB", width=64, height=64, pitch=256, bits=32, depth=24, handle=99)
    refused(errno.EINVAL, card, "DRM_IOCTL_MODE_ADDFB", width=64, height=64, pitch=256, bits=24, depth=24, handle=buffer(card))


def test_a_framebuffer_at_an_offset(card: Program) -> None:
    assert add(card, buffer(card, 2560 * 480 + 4096), offset=4096)


def test_a_framebuffer_keeps_its_buffer_and_gives_the_master_a_handle(card: Program) -> None:
    fb, handle = frame(card, 64, 64)
    card.ioctl("DRM_IOCTL_I915_GEM_PWRITE", handle=handle, size=4, data=card.memory(b"kept").address)
    card.ioctl("DRM_IOCTL_GEM_CLOSE", handle=handle)
    again = card.ioctl("DRM_IOCTL_MODE_GETFB", fb=fb).handle
    data = card.memory(4)
    card.ioctl("DRM_IOCTL_I915_GEM_PREAD", handle=again, size=4, data=data.address)
    assert bytes(data) == b"kept"


def test_framebuffers_of_others(gpu: Gpu, card: Program) -> None:
    other = gpu.program("card0")
    fb, _ = frame(card)
    assert other.ioctl("DRM_IOCTL_MODE_GETFB", fb=fb).handle == 0
    refused(errno.ENOENT, other, "DRM_IOCTL_MODE_RMFB", fb=fb)
    assert other.ioctl("DRM_IOCTL_MODE_GETRESOURCES").fb_count == 0 and card.ioctl("DRM_IOCTL_MODE_GETRESOURCES").fb_count == 1
    card.ioctl("DRM_IOCTL_MODE_RMFB", fb=fb)
    refused(errno.ENOENT, card, "DRM_IOCTL_MODE_RMFB", fb=fb)


def test_what_the_cpu_has_drawn_is_another_frame(gpu: Gpu, card: Program) -> None:
    (shown, _), (hidden, _) = frame(card), frame(card)
    show(card, shown)
    card.ioctl("DRM_IOCTL_MODE_DIRTYFB", fb=hidden)
    assert gpu.shared.display.frames == 1
    card.ioctl("DRM_IOCTL_MODE_DIRTYFB", fb=shown)
    assert gpu.shared.display.frames == 2 and card.ioctl("DRM_IOCTL_MODE_GETCRTC", crtc=ModeObject.CRTC).fb == shown


def test_a_framebuffer_is_described_with_format_and_modifier(gpu: Gpu, card: Program) -> None:
    """GETFB2, as ADDFB2 takes it; a handle for the master alone."""
    bo = card.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=1 << 20).handle
    fourcc, tiled = int.from_bytes(b"AR24", "little"), 1 << 56 | 2
    fb = card.ioctl("DRM_IOCTL_MODE_ADDFB2", width=100, height=60, format=fourcc, flags=2, handles=struct.pack("<4I", bo, 0, 0, 0),
                    pitches=struct.pack("<4I", 512, 0, 0, 0), offsets=struct.pack("<4I", 8192, 0, 0, 0),
                    modifiers=struct.pack("<4Q", tiled, 0, 0, 0)).fb  # fmt: skip
    found = card.ioctl("DRM_IOCTL_MODE_GETFB2", fb=fb)
    assert (found.width, found.height, found.format, found.flags) == (100, 60, fourcc, 2)
    assert struct.unpack("<4I", found.pitches) == (512, 0, 0, 0) and struct.unpack("<4I", found.offsets) == (8192, 0, 0, 0)
    assert struct.unpack("<4Q", found.modifiers) == (tiled, 0, 0, 0) and struct.unpack("<4I", found.handles) == (bo, 0, 0, 0)
    assert struct.unpack("<4I", gpu.program("card0").ioctl("DRM_IOCTL_MODE_GETFB2", fb=fb).handles) == (0, 0, 0, 0)
    refused(errno.ENOENT, card, "DRM_IOCTL_MODE_GETFB2", fb=9999)
