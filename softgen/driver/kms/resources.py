"""The ioctls on what the display is made of, on its master and on the state of the CRTC as a whole: modes and page flips."""

from __future__ import annotations

import errno
import struct
from types import SimpleNamespace
from typing import TYPE_CHECKING

from softgen.driver.errors import Errno
from softgen.driver.kms.crtc import Crtc, ModeObject
from softgen.driver.kms.gamma import SIZE as GAMMA_SIZE
from softgen.driver.kms.handler import FIRST_CRTC, Handler, as_master, find, show_console, write_all, write_ids
from softgen.driver.kms.monitor import SIZE_MM, check_mode
from softgen.driver.kms.properties import values, write_properties
from softgen.driver.run.protocol import Call
from softgen.driver.uapi import drm, kernel_tables

if TYPE_CHECKING:
    from softgen.driver.objects.node import Node

CURRENT = 0xFFFFFFFF  # as a framebuffer's identifier in SETCRTC: the one that is shown
MOST_ATOMIC = 2  # value of DRM_CLIENT_CAP_ATOMIC
MOST_CONNECTORS = 16  # that SETCRTC may name


def set_master(node: Node, call: Call, arg: SimpleNamespace) -> None:
    if call.channel.uid and node not in node.gpu.display.masters_before:
        raise Errno(errno.EACCES, "the node was never the master of the display, and the program is not root's")
    node.gpu.display.set_master(node)


def drop_master(node: Node, call: Call, arg: SimpleNamespace) -> None:
    node.gpu.display.drop_master(node)


def client_capability(node: Node, call: Call, arg: SimpleNamespace) -> None:
    if arg.capability == drm.DRM_CLIENT_CAP_ATOMIC:
        set_atomic(node, call, arg.value)
        return
    if arg.capability == drm.DRM_CLIENT_CAP_WRITEBACK_CONNECTORS and node.client_caps.get(drm.DRM_CLIENT_CAP_ATOMIC) and arg.value <= 1:
        return  # there are none to show
    if arg.capability not in (drm.DRM_CLIENT_CAP_STEREO_3D, drm.DRM_CLIENT_CAP_UNIVERSAL_PLANES, drm.DRM_CLIENT_CAP_ASPECT_RATIO):
        raise Errno(errno.EINVAL, f"client capability {arg.capability}")
    if arg.value > 1:
        raise Errno(errno.EINVAL, f"client capability {arg.capability} of {arg.value}")
    node.client_caps[arg.capability] = arg.value


def set_atomic(node: Node, call: Call, value: int) -> None:
    """DRM_CLIENT_CAP_ATOMIC. An X server that asks for 1 is refused: the kernel knows that it uses it wrongly (drm_setclientcap)."""
    if not kernel_tables.display(node.gpu.device.name).atomic:
        raise Errno(errno.EOPNOTSUPP, "the driver has no atomic mode setting on this GPU")
    if call.channel.program.startswith("X") and value == 1:
        raise Errno(errno.EOPNOTSUPP, "an X server gets no atomic mode setting")
    if value > MOST_ATOMIC:
        raise Errno(errno.EINVAL, f"client capability ATOMIC of {value}")
    for capability in (drm.DRM_CLIENT_CAP_ATOMIC, drm.DRM_CLIENT_CAP_UNIVERSAL_PLANES, drm.DRM_CLIENT_CAP_ASPECT_RATIO):
        node.client_caps[capability] = value


def get_resources(node: Node, call: Call, arg: SimpleNamespace) -> None:
    display = node.gpu.display
    own = [number for number, framebuffer in display.framebuffers.copy().items() if framebuffer.owner is node]
    arg.fb_count = write_ids(call, arg.fbs, arg.fb_count, own)
    arg.crtc_count = write_ids(call, arg.crtcs, arg.crtc_count, [ModeObject.CRTC])
    arg.connector_count = write_ids(call, arg.connectors, arg.connector_count, [ModeObject.CONNECTOR])
    arg.encoder_count = write_ids(call, arg.encoders, arg.encoder_count, [ModeObject.ENCODER])
    arg.min_width = arg.min_height = 0
    arg.max_width = arg.max_height = kernel_tables.display(node.gpu.device.name).largest


def get_connector(node: Node, call: Call, arg: SimpleNamespace) -> None:
    find(arg.connector, ModeObject.CONNECTOR)
    show_console(node, call)
    arg.mode_count = write_all(call, arg.modes, arg.mode_count, node.gpu.display.modes())
    arg.encoder_count = write_ids(call, arg.encoders, arg.encoder_count, [ModeObject.ENCODER])
    write_properties(call, arg, values(node, ModeObject.CONNECTOR))
    arg.encoder, arg.kind, arg.number = ModeObject.ENCODER, drm.DRM_MODE_CONNECTOR_HDMIA, 1
    arg.status, arg.subpixel, (arg.width_mm, arg.height_mm) = drm.DRM_MODE_CONNECTED, drm.DRM_MODE_SUBPIXEL_UNKNOWN, SIZE_MM


def get_encoder(node: Node, call: Call, arg: SimpleNamespace) -> None:
    find(arg.encoder, ModeObject.ENCODER)
    arg.kind, arg.crtc, arg.possible_crtcs, arg.possible_clones = drm.DRM_MODE_ENCODER_TMDS, ModeObject.CRTC, FIRST_CRTC, 0


def get_crtc(node: Node, call: Call, arg: SimpleNamespace) -> None:
    find(arg.crtc, ModeObject.CRTC)
    show_console(node, call)
    crtc = node.gpu.display.crtc
    arg.fb = crtc.framebuffer.number if crtc.framebuffer else 0
    arg.x, arg.y = crtc.primary.pixels[:2]
    arg.gamma_size, arg.mode_valid, arg.mode = GAMMA_SIZE, int(crtc.mode_blob is not None), crtc.mode


def set_crtc(node: Node, call: Call, arg: SimpleNamespace) -> None:
    find(arg.crtc, ModeObject.CRTC)
    display = node.gpu.display
    if arg.connector_count > MOST_CONNECTORS:
        raise Errno(errno.EINVAL, f"{arg.connector_count} connectors")
    for number in struct.unpack(f"<{arg.connector_count}I", call.read(arg.connectors, 4 * arg.connector_count)):
        find(number, ModeObject.CONNECTOR)
    if bool(arg.mode_valid) != bool(arg.connector_count):
        raise Errno(errno.EINVAL, f"{arg.connector_count} connectors and {'a' if arg.mode_valid else 'no'} mode")
    if not arg.mode_valid:
        display.set_crtc(Crtc(), call.channel.gone)
        return
    framebuffer = display.crtc.framebuffer if arg.fb == CURRENT else display.framebuffer(arg.fb)
    if framebuffer is None:
        raise Errno(errno.EINVAL, "no framebuffer is shown")
    check_mode(arg.mode)
    crtc = Crtc.showing(framebuffer, display.new_blob(arg.mode), arg.x, arg.y)
    crtc.primary.check_viewport()
    display.set_crtc(crtc, call.channel.gone)


def page_flip(node: Node, call: Call, arg: SimpleNamespace) -> None:
    if arg.flags & ~drm.DRM_MODE_PAGE_FLIP_EVENT or arg.sequence:
        raise Errno(errno.EINVAL, f"page flip flags {arg.flags:#x}, target {arg.sequence}")
    find(arg.crtc, ModeObject.CRTC)
    show_console(node, call)
    framebuffer = node.gpu.display.framebuffer(arg.fb)
    node.gpu.display.flip(node, framebuffer, arg.user_data if arg.flags & drm.DRM_MODE_PAGE_FLIP_EVENT else None)


def pipe_of_crtc(node: Node, call: Call, arg: SimpleNamespace) -> None:
    find(arg.crtc, ModeObject.CRTC)
    arg.pipe = 0


HANDLERS: dict[str, Handler] = {
    "DRM_IOCTL_SET_MASTER": set_master,
    "DRM_IOCTL_DROP_MASTER": drop_master,
    "DRM_IOCTL_SET_CLIENT_CAP": client_capability,
    "DRM_IOCTL_MODE_GETRESOURCES": get_resources,
    "DRM_IOCTL_MODE_GETCONNECTOR": get_connector,
    "DRM_IOCTL_MODE_GETENCODER": get_encoder,
    "DRM_IOCTL_MODE_GETCRTC": get_crtc,
    "DRM_IOCTL_MODE_SETCRTC": as_master(set_crtc),
    "DRM_IOCTL_MODE_PAGE_FLIP": as_master(page_flip),
    "DRM_IOCTL_I915_GET_PIPE_FROM_CRTC_ID": pipe_of_crtc,
}
