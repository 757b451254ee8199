"""The ioctls on the gamma ramp of the CRTC (GETGAMMA, SETGAMMA), which is applied to the frames that are presented."""

from __future__ import annotations

import errno
import struct
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING

from softgen.driver.errors import Errno
from softgen.driver.kms.crtc import ModeObject
from softgen.driver.kms.handler import Handler, as_master, find, show_console
from softgen.driver.run.protocol import Call
from softgen.driver.uapi.uapi import COLOR_LUT

if TYPE_CHECKING:
    from softgen.driver.objects.node import Node

SIZE = 256  # entries of the legacy ramp
RAMP = struct.Struct(f"<{SIZE}H")
LINEAR = RAMP.pack(*(entry << 8 for entry in range(SIZE)))  # until a program sets another (drm_mode_crtc_set_gamma_size)


def check_size(arg: SimpleNamespace) -> None:
    find(arg.crtc, ModeObject.CRTC)
    if arg.size != SIZE:
        raise Errno(errno.EINVAL, f"a gamma ramp of {arg.size} entries instead of {SIZE}")


def get_gamma(node: Node, call: Call, arg: SimpleNamespace) -> None:
    check_size(arg)
    for address, ramp in zip((arg.red, arg.green, arg.blue), node.gpu.display.ramps or (LINEAR,) * 3, strict=True):
        call.write(address, ramp)


def set_gamma(node: Node, call: Call, arg: SimpleNamespace) -> None:
    """DRM_IOCTL_MODE_SETGAMMA: three ramps, which become a GAMMA_LUT of as many entries."""
    check_size(arg)
    ramps = [call.read(address, RAMP.size) for address in (arg.red, arg.green, arg.blue)]
    entries = zip(*map(RAMP.unpack, ramps), strict=True)
    table = b"".join(COLOR_LUT.pack(SimpleNamespace(red=red, green=green, blue=blue, pad=0)) for red, green, blue in entries)
    display = node.gpu.display
    show_console(node, call)
    with display.lock:
        display.ramps = ramps
        display.crtc = replace(display.crtc, gamma_blob=display.new_blob(table))


HANDLERS: dict[str, Handler] = {"DRM_IOCTL_MODE_GETGAMMA": get_gamma, "DRM_IOCTL_MODE_SETGAMMA": as_master(set_gamma)}
