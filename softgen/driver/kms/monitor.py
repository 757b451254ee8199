"""The virtual monitor: its modes, and the EDID that describes it (VESA E-EDID 1.4)."""

from __future__ import annotations

import errno
import struct
from types import SimpleNamespace

from softgen.driver.errors import Errno
from softgen.driver.uapi import drm
from softgen.driver.uapi.uapi import MODE

DEFAULT_SIZE = 640, 480
SIZES = (1920, 1080), (1680, 1050), (1280, 1024), (1280, 720), (1024, 768), (800, 600), (640, 480)  # of modes beside the preferred one
SIZE_MM = 300, 200
REFRESH = 60  # Hz, that modes name
# VESA CVT with reduced blanking: pixels and lines around the picture
H_FRONT, H_SYNC, H_BLANK = 48, 32, 160
V_FRONT, V_BACK_LEAST, V_BLANK_LEAST = 3, 6, 460.0  # lines, lines, microseconds
V_SYNCS = {(4, 3): 4, (16, 9): 5, (16, 10): 6, (5, 4): 7, (15, 9): 7}  # lines, by aspect ratio
V_SYNC_OTHER = 10
CLOCK_STEP = 250  # kHz


def mode(width: int, height: int, preferred: bool = True) -> bytes:
    """A drm_mode_modeinfo of a size, with the timings of VESA CVT reduced blanking at 60 Hz."""
    sync = next((lines for (across, down), lines in V_SYNCS.items() if width * down == height * across), V_SYNC_OTHER)
    line = (1e6 / REFRESH - V_BLANK_LEAST) / height  # microseconds
    total = height + max(int(V_BLANK_LEAST / line) + 1, V_FRONT + sync + V_BACK_LEAST)
    clock = REFRESH * total * (width + H_BLANK) // 1000 // CLOCK_STEP * CLOCK_STEP
    return MODE.pack(SimpleNamespace(
        clock=clock, hdisplay=width, hsync_start=width + H_FRONT, hsync_end=width + H_FRONT + H_SYNC, htotal=width + H_BLANK, hskew=0,
        vdisplay=height, vsync_start=height + V_FRONT, vsync_end=height + V_FRONT + sync, vtotal=total, vscan=0, vrefresh=REFRESH,
        flags=drm.DRM_MODE_FLAG_PHSYNC | drm.DRM_MODE_FLAG_NVSYNC,
        kind=drm.DRM_MODE_TYPE_DRIVER | (drm.DRM_MODE_TYPE_PREFERRED if preferred else 0),
        name=f"{width}x{height}".encode("ascii")))  # fmt: skip


def check_mode(data: bytes) -> None:
    """EINVAL where a drm_mode_modeinfo is no mode: pixels, lines, a clock, and some time around each line and picture."""
    found = MODE.unpack(data)
    if not (0 < found.hdisplay < found.htotal and 0 < found.vdisplay < found.vtotal and found.clock):
        raise Errno(errno.EINVAL, f"a mode of {found.hdisplay}x{found.vdisplay} pixels")


def mode_size(data: bytes) -> tuple[int, int]:
    """Width and height of a drm_mode_modeinfo."""
    found = MODE.unpack(data)
    return found.hdisplay, found.vdisplay


EDID_HEAD = struct.Struct("<8sHHIBBBBBBBBB10s3s16s")
ESTABLISHED = bytes([0x21, 0x08, 0])  # 640x480, 800x600, 1024x768 at 60 Hz
ASPECTS = {(16, 10): 0, (4, 3): 1, (5, 4): 2, (16, 9): 3}
SRGB = bytes.fromhex("ee91a3544c99260f5054")
SEPARATE_SYNC, HSYNC_POSITIVE = 0x18, 0x02
LARGEST_DETAILED = 4095  # pixels, and the clock in units of 10 kHz has 16 bits
NAME_DESCRIPTOR, DUMMY_DESCRIPTOR = 0xFC, 0x10
DIGITAL_8_BITS_HDMI, SRGB_AND_NATIVE, GAMMA = 0xA2, 0x06, 120


def edid(preferred: bytes) -> bytes:
    """The EDID of the monitor: its preferred mode in detail, its other sizes, its name."""
    letters = sum(ord(letter) - ord("@") << shift for letter, shift in zip("SGN", (10, 5, 0), strict=True))
    maker = int.from_bytes(letters.to_bytes(2, "big"), "little")
    standard = b"".join(_standard(*size) for size in SIZES if size[0] > 1024).ljust(16, b"\x01")
    data = EDID_HEAD.pack(b"\0" + b"\xff" * 6 + b"\0", maker, 1, 0, 0, 36, 1, 4, DIGITAL_8_BITS_HDMI, SIZE_MM[0] // 10, SIZE_MM[1] // 10,
                          GAMMA, SRGB_AND_NATIVE, SRGB, ESTABLISHED, standard)  # fmt: skip
    data += _detailed(preferred) + _descriptor(NAME_DESCRIPTOR, b"softgen\n".ljust(13)) + _descriptor(DUMMY_DESCRIPTOR) * 2 + b"\0"
    return data + bytes([-sum(data) & 0xFF])


def _standard(width: int, height: int) -> bytes:
    """A standard timing: width, aspect ratio, refresh rate."""
    aspect = next(code for (across, down), code in ASPECTS.items() if width * down == height * across)
    return bytes([width // 8 - 31, aspect << 6 | REFRESH - 60])


def _descriptor(kind: int, data: bytes = bytes(13)) -> bytes:
    return bytes([0, 0, 0, kind, 0]) + data


def _detailed(data: bytes) -> bytes:
    """A detailed timing; a dummy where the mode does not fit into one."""
    found = MODE.unpack(data)
    width, height, clock = found.hdisplay, found.vdisplay, found.clock // 10
    if max(width, height) > LARGEST_DETAILED or clock >= 1 << 16:
        return _descriptor(DUMMY_DESCRIPTOR)
    across, down = found.htotal - width, found.vtotal - height
    h_front, h_sync, v_front, v_sync = (found.hsync_start - width, found.hsync_end - found.hsync_start, found.vsync_start - height,
                                        found.vsync_end - found.vsync_start)  # fmt: skip
    return struct.pack(
        "<H16B", clock, width & 0xFF, across & 0xFF, width >> 8 << 4 | across >> 8,
        height & 0xFF, down & 0xFF, height >> 8 << 4 | down >> 8,
        h_front & 0xFF, h_sync & 0xFF, (v_front & 0xF) << 4 | v_sync & 0xF,
        h_front >> 8 << 6 | h_sync >> 8 << 4 | v_front >> 4 << 2 | v_sync >> 4,
        SIZE_MM[0] & 0xFF, SIZE_MM[1] & 0xFF, SIZE_MM[0] >> 8 << 4 | SIZE_MM[1] >> 8, 0, 0, SEPARATE_SYNC | HSYNC_POSITIVE)  # fmt: skip
