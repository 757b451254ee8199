"""State of the CRTC and its planes: immutable records, and what the kernel checks about them (drm_atomic.c, drm_atomic_helper.c).

A change makes a new state; the display (display.py) replaces the old one by it and shows it when the rendering is done.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import NamedTuple

from softgen.driver.errors import Errno
from softgen.driver.kms.monitor import mode_size
from softgen.driver.objects.gem_object import GemObject
from softgen.driver.uapi.kernel_tables import ScanoutFormat, ScanoutModifier

NODE = object  # an opened node (node.py): only its identity is used here
MOST = (1 << 31) - 1  # pixels in a rectangle of the CRTC
FIXED_POINT = 16  # bits of fraction in the source rectangle of a plane


class ModeObject(IntEnum):
    """Identifiers of the mode objects that always exist; those of framebuffers and of programs' blobs follow."""

    IN_FORMATS_BLOB = 21
    CURSOR_FORMATS_BLOB = 22
    EDID_BLOB = 23
    PLANE = 31
    OVERLAY = 32
    CURSOR = 33
    CRTC = 41
    ENCODER = 51
    CONNECTOR = 61
    PLANE_TYPE = 71
    IN_FORMATS = 72
    DPMS = 73
    ROTATION = 74
    ZPOS = 75
    GAMMA_LUT = 76
    GAMMA_LUT_SIZE = 77
    EDID = 78
    LINK_STATUS = 79
    NON_DESKTOP = 80
    FB_ID = 81
    CRTC_ID = 82
    SRC_X = 83
    SRC_Y = 84
    SRC_W = 85
    SRC_H = 86
    CRTC_X = 87
    CRTC_Y = 88
    CRTC_W = 89
    CRTC_H = 90
    IN_FENCE_FD = 91
    FB_DAMAGE_CLIPS = 92
    ACTIVE = 93
    MODE_ID = 94
    OUT_FENCE_PTR = 95


PLANES = {ModeObject.PLANE: "primary", ModeObject.OVERLAY: "overlay", ModeObject.CURSOR: "cursor"}  # the lowest first


class Rectangle(NamedTuple):
    x: int = 0
    y: int = 0
    width: int = 0
    height: int = 0

    def scaled(self) -> Rectangle:
        """The rectangle in the unit of plane sources, 1/65536 of a pixel."""
        return Rectangle(*(value << FIXED_POINT for value in self))


NOWHERE = Rectangle()


@dataclass(frozen=True, eq=False)
class Framebuffer:
    """A buffer object with the size, format and tiling of the picture in it. It keeps the memory, also without a handle."""

    number: int
    owner: NODE | None  # None: the console
    bo: GemObject
    width: int
    height: int
    format: ScanoutFormat
    modifier: ScanoutModifier
    pitch: int
    offset: int


@dataclass(frozen=True, eq=False)
class Blob:
    """A property blob: bytes with an identifier. `owner`: the node that made it, None where the display did."""

    number: int
    data: bytes
    owner: NODE | None = None


@dataclass(frozen=True)
class ScanoutPlane:
    """What a plane scans out (a rectangle of a framebuffer, in 1/65536 of a pixel), and where on the CRTC it is shown."""

    framebuffer: Framebuffer | None = None
    attached: bool = False  # to the CRTC
    source: Rectangle = NOWHERE
    target: Rectangle = NOWHERE

    @property
    def shown(self) -> bool:
        return self.attached and self.framebuffer is not None

    @property
    def pixels(self) -> Rectangle:
        """The source in whole pixels."""
        return Rectangle(*(value >> FIXED_POINT for value in self.source))

    def check_viewport(self) -> None:
        """ENOSPC where the source is not inside of the framebuffer."""
        if self.framebuffer is None:
            return
        x, y, width, height = self.source
        across, down = self.framebuffer.width << FIXED_POINT, self.framebuffer.height << FIXED_POINT
        if width > across or x > across - width or height > down or y > down - height:
            found = f"{width / 65536:g}x{height / 65536:g} at {x / 65536:g}, {y / 65536:g}"
            raise Errno(errno.ENOSPC, f"{found} of {self.framebuffer.width}x{self.framebuffer.height} pixels")

    def check(self, name: str) -> None:
        """Errors of drm_atomic_plane_check and drm_atomic_helper_check_plane_state: no plane scales."""
        if self.attached != (self.framebuffer is not None):
            missing = "a CRTC and no framebuffer" if self.attached else "a framebuffer and no CRTC"
            raise Errno(errno.EINVAL, f"the {name} plane has {missing}")
        if self.framebuffer is None:
            return
        x, y, width, height = self.target
        if width > MOST or height > MOST or x > MOST - width or y > MOST - height:
            raise Errno(errno.ERANGE, f"the {name} plane is shown with {width}x{height} pixels at {x}, {y}")
        self.check_viewport()
        if self.source[2:] != self.target.scaled()[2:]:
            found = f"{self.source.width / 65536:g}x{self.source.height / 65536:g} to {width}x{height}"
            raise Errno(errno.ERANGE, f"the {name} plane scales {found} pixels")


OFF = ScanoutPlane()


@dataclass(frozen=True)
class Crtc:
    """What the CRTC shows. It is enabled by a mode, and shows frames while it is active."""

    primary: ScanoutPlane = OFF
    overlay: ScanoutPlane = OFF
    cursor: ScanoutPlane = OFF
    mode_blob: Blob | None = None
    active: bool = False
    connected: bool = False  # the connector is attached
    gamma_blob: Blob | None = None  # drm_color_lut entries; None: frames are shown as they are

    @classmethod
    def showing(cls, framebuffer: Framebuffer | None, mode: Blob, x: int = 0, y: int = 0) -> Crtc:
        """The state that SETCRTC makes: a rectangle, the size of the mode, of a framebuffer."""
        size = mode_size(mode.data)
        plane = ScanoutPlane(framebuffer, framebuffer is not None, Rectangle(x, y, *size).scaled(), Rectangle(0, 0, *size))
        return cls(plane, mode_blob=mode, active=True, connected=True)

    @property
    def framebuffer(self) -> Framebuffer | None:
        """The framebuffer of the primary plane."""
        return self.primary.framebuffer

    @property
    def mode(self) -> bytes:
        return self.mode_blob.data if self.mode_blob else b""

    @property
    def size(self) -> tuple[int, int]:
        return mode_size(self.mode)

    @property
    def planes(self) -> tuple[ScanoutPlane, ScanoutPlane, ScanoutPlane]:
        """The planes, the lowest first."""
        return self.primary, self.overlay, self.cursor

    def plane(self, number: ModeObject) -> ScanoutPlane:
        """A plane by its identifier."""
        return self.planes[list(PLANES).index(number)]

    def with_plane(self, number: ModeObject, plane: ScanoutPlane) -> Crtc:
        """The state with another plane."""
        if number == ModeObject.PLANE:
            return replace(self, primary=plane)
        return replace(self, overlay=plane) if number == ModeObject.OVERLAY else replace(self, cursor=plane)

    def framebuffers(self) -> list[Framebuffer]:
        return [plane.framebuffer for plane in self.planes if plane.framebuffer is not None]

    def check(self) -> None:
        """Errors of drm_atomic_crtc_check and drm_atomic_helper_check_modeset."""
        if self.active and self.mode_blob is None:
            raise Errno(errno.EINVAL, "the CRTC is active without a mode")
        if self.connected != (self.mode_blob is not None):
            raise Errno(errno.EINVAL, f"the CRTC has {'a connector and no mode' if self.connected else 'a mode and no connector'}")

    def check_covered(self) -> None:
        """EINVAL where the primary plane leaves a part of the CRTC uncovered."""
        if self.active and self.primary.framebuffer is not None and self.primary.target != Rectangle(0, 0, *self.size):
            raise Errno(errno.EINVAL, "the primary plane must cover the whole CRTC")
