"""The ioctls on planes and on the cursor, which is a plane of its own."""

from __future__ import annotations

import errno
import struct
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING

from softgen.driver.errors import Errno
from softgen.driver.ioctl import gem
from softgen.driver.kms.crtc import OFF, PLANES, Crtc, Framebuffer, ModeObject, Rectangle, ScanoutPlane
from softgen.driver.kms.handler import FIRST_CRTC, Handler, as_master, find, show_console, write_all, write_ids
from softgen.driver.run.protocol import Call
from softgen.driver.uapi import drm, kernel_tables

if TYPE_CHECKING:
    from softgen.driver.objects.node import Node

CURSOR_SIZES = (64, 128, 256)  # pixels across and down
CURSOR_FLAGS = drm.DRM_MODE_CURSOR_BO | drm.DRM_MODE_CURSOR_MOVE
CURSOR_FORMAT = int.from_bytes(b"AR24", "little")


def formats_of(number: int, display: kernel_tables.DisplayFacts) -> dict[int, kernel_tables.ScanoutFormat]:
    """The formats of a plane, by fourcc."""
    return {CURSOR_FORMAT: display.formats[CURSOR_FORMAT]} if number == ModeObject.CURSOR else display.formats


def modifiers_of(number: int, display: kernel_tables.DisplayFacts) -> dict[int, kernel_tables.ScanoutModifier]:
    """The tilings of a plane, by modifier."""
    linear = drm.DRM_FORMAT_MOD_LINEAR
    return {linear: display.modifiers[linear]} if number == ModeObject.CURSOR else display.modifiers


def find_plane(number: int) -> ModeObject:
    if number not in PLANES:
        raise Errno(errno.ENOENT, f"no plane {number}")
    return ModeObject(number)


def get_planes(node: Node, call: Call, arg: SimpleNamespace) -> None:
    """DRM_IOCTL_MODE_GETPLANERESOURCES. The primary plane and the cursor are shown to clients with UNIVERSAL_PLANES only."""
    universal = node.client_caps.get(drm.DRM_CLIENT_CAP_UNIVERSAL_PLANES)
    arg.plane_count = write_ids(call, arg.planes, arg.plane_count, list(PLANES) if universal else [ModeObject.OVERLAY])


def get_plane(node: Node, call: Call, arg: SimpleNamespace) -> None:
    number = find_plane(arg.plane)
    show_console(node, call)
    plane, formats = node.gpu.display.crtc.plane(number), formats_of(number, kernel_tables.display(node.gpu.device.name))
    arg.crtc = ModeObject.CRTC if plane.attached else 0
    arg.fb = plane.framebuffer.number if plane.framebuffer else 0
    arg.possible_crtcs, arg.gamma_size = FIRST_CRTC, 0
    arg.format_count = write_all(call, arg.formats, arg.format_count, [struct.pack("<I", fourcc) for fourcc in formats])


def set_plane(node: Node, call: Call, arg: SimpleNamespace) -> None:
    """DRM_IOCTL_MODE_SETPLANE: shows a framebuffer on a plane when the rendering into it is done, or turns the plane off."""
    number, display = find_plane(arg.plane), node.gpu.display
    plane, waits = OFF, list[Framebuffer]()
    if arg.fb:
        framebuffer = display.framebuffer(arg.fb)
        find(arg.crtc, ModeObject.CRTC)
        plane = ScanoutPlane(framebuffer, True, Rectangle(arg.x, arg.y, arg.width, arg.height),
                      Rectangle(arg.crtc_x, arg.crtc_y, arg.crtc_width, arg.crtc_height))  # fmt: skip
        waits.append(framebuffer)
    show_console(node, call)

    def change(crtc: Crtc) -> Crtc:
        changed = crtc.with_plane(number, plane)
        check(node, changed)
        return changed

    display.apply(change, waits, call.channel.gone)


def check(node: Node, crtc: Crtc) -> None:
    """Refuse a state that the GPU's display cannot show, with the kernel's errors (drm_atomic_check_only)."""
    display = kernel_tables.display(node.gpu.device.name)
    crtc.check()
    for number, field in PLANES.items():
        plane = crtc.plane(number)
        plane.check(field)
        if plane.framebuffer is not None:
            format, modifier = plane.framebuffer.format, plane.framebuffer.modifier
            if format.fourcc not in formats_of(number, display) or modifier.value not in modifiers_of(number, display):
                raise Errno(errno.EINVAL, f"the {field} plane shows no framebuffer of format {format.name}, {modifier.name}")
    if crtc.cursor.framebuffer is not None:
        check_cursor(crtc.cursor.target.width, crtc.cursor.target.height)
    if not display.windowed_primary:
        crtc.check_covered()


def check_cursor(width: int, height: int) -> None:
    if width != height or width not in CURSOR_SIZES:
        raise Errno(errno.EINVAL, f"a cursor of {width}x{height} pixels")


def cursor(node: Node, call: Call, arg: SimpleNamespace) -> None:
    """DRM_IOCTL_MODE_CURSOR and MODE_CURSOR2: sets, moves or removes the cursor; it is in the frames that are presented from then on.

    The hotspot of CURSOR2 is for virtual machines that draw the host's cursor; it moves nothing (drm_mode_cursor_universal)."""
    if not arg.flags or arg.flags & ~CURSOR_FLAGS:
        raise Errno(errno.EINVAL, f"cursor flags {arg.flags:#x}")
    find(arg.crtc, ModeObject.CRTC)
    display, framebuffer = node.gpu.display, None
    show_console(node, call)
    if arg.flags & drm.DRM_MODE_CURSOR_BO and arg.handle:
        framebuffer = _cursor_framebuffer(node, arg)
    with display.lock:
        now = display.crtc.cursor
        if not arg.flags & drm.DRM_MODE_CURSOR_BO:
            framebuffer = now.framebuffer
        if arg.flags & drm.DRM_MODE_CURSOR_MOVE:
            display.cursor_at = arg.x, arg.y
        size = (framebuffer.width, framebuffer.height) if framebuffer else (0, 0)
        target = Rectangle(*display.cursor_at, *size)
        plane = OFF if framebuffer is None else ScanoutPlane(framebuffer, True, Rectangle(0, 0, *size).scaled(), target)
        display.crtc = replace(display.crtc, cursor=plane)


def _cursor_framebuffer(node: Node, arg: SimpleNamespace) -> Framebuffer:
    """The picture of a cursor in a buffer: ARGB, row after row."""
    bo, format = gem.lookup(node, arg.handle), kernel_tables.display(node.gpu.device.name).formats[CURSOR_FORMAT]
    check_cursor(arg.width, arg.height)
    pitch = arg.width * format.bits // 8
    if pitch * arg.height > bo.size or bo.user or bo.tiling:
        raise Errno(errno.EINVAL, f"a cursor of {arg.width}x{arg.height} pixels in a buffer of {bo.size:#x} bytes, tiling {bo.tiling}")
    linear = modifiers_of(ModeObject.CURSOR, kernel_tables.display(node.gpu.device.name))[drm.DRM_FORMAT_MOD_LINEAR]
    return Framebuffer(node.gpu.display.new_number(), node, bo, arg.width, arg.height, format, linear, pitch, 0)


HANDLERS: dict[str, Handler] = {
    "DRM_IOCTL_MODE_GETPLANERESOURCES": get_planes,
    "DRM_IOCTL_MODE_GETPLANE": get_plane,
    "DRM_IOCTL_MODE_SETPLANE": as_master(set_plane),
    "DRM_IOCTL_MODE_CURSOR": as_master(cursor),
    "DRM_IOCTL_MODE_CURSOR2": as_master(cursor),
}
