"""Atomic commits (MODE_ATOMIC): many properties of several objects become one new state, or none does (drm_atomic_uapi.c)."""

from __future__ import annotations

import errno
import struct
from collections.abc import Callable, Iterable
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, NamedTuple

from softgen.driver.errors import Errno
from softgen.driver.ioctl import syncobj
from softgen.driver.kms.crtc import PLANES, Blob, Crtc, ModeObject, ScanoutPlane
from softgen.driver.kms.display import Commit, rendering
from softgen.driver.kms.handler import Handler, as_master, find, show_console
from softgen.driver.kms.monitor import check_mode
from softgen.driver.kms.planes import check
from softgen.driver.kms.properties import check_value, find_object, gamma_lut, signed, values
from softgen.driver.objects.fence import Fence, all_of
from softgen.driver.run.protocol import Call
from softgen.driver.uapi import drm, kernel_tables
from softgen.driver.uapi.uapi import MODE

if TYPE_CHECKING:
    from softgen.driver.objects.node import Node

FLAGS = (drm.DRM_MODE_PAGE_FLIP_EVENT | drm.DRM_MODE_ATOMIC_TEST_ONLY | drm.DRM_MODE_ATOMIC_NONBLOCK | drm.DRM_MODE_ATOMIC_ALLOW_MODESET)
MOST_OBJECTS, MOST_PROPERTIES = 1 << 10, 1 << 14  # that a request names; there are six objects
RECTANGLE_BYTES = 16  # of drm_mode_rect in FB_DAMAGE_CLIPS
NO_FENCE = -1


class PropertySetting(NamedTuple):
    """A property of an object that is set to a value."""

    object: ModeObject
    property: ModeObject
    value: int


class AtomicRequest:
    """Settings of one commit: which state they make of another, and the fences that it waits for."""

    def __init__(self, node: Node, call: Call, settings: list[PropertySetting]) -> None:
        self.node, self.settings, self.out_fences = node, settings, list[int]()
        self.in_fences: dict[ModeObject, Fence] = {}  # by plane
        for setting in settings:
            check_value(node, setting.property, setting.value)
            if setting.property == ModeObject.IN_FENCE_FD and signed(setting.value) != NO_FENCE:
                if setting.object in self.in_fences:
                    raise Errno(errno.EINVAL, f"two fences for plane {setting.object}")
                self.in_fences[setting.object] = syncobj.sync_file(node.gpu, call, setting.value)
            elif setting.property == ModeObject.OUT_FENCE_PTR and setting.value:
                call.read(setting.value, 4)  # EFAULT where there is no memory
                self.out_fences.append(setting.value)

    def apply(self, crtc: Crtc) -> Crtc:
        """The state with these settings."""
        for number, property, value in self.settings:
            if number in PLANES:
                crtc = crtc.with_plane(number, self._set_plane(crtc.plane(number), property, value))
            else:
                crtc = self._set(crtc, property, value)
        return crtc

    def _set_plane(self, plane: ScanoutPlane, property: ModeObject, value: int) -> ScanoutPlane:
        if property == ModeObject.FB_ID:
            return replace(plane, framebuffer=self.node.gpu.display.framebuffer(value) if value else None)
        if property == ModeObject.CRTC_ID:
            return replace(plane, attached=bool(value))
        if property in SOURCE:
            return replace(plane, source=plane.source._replace(**{SOURCE[property]: value}))
        if property in TARGET:
            return replace(plane, target=plane.target._replace(**{TARGET[property]: signed(value)}))
        if property == ModeObject.FB_DAMAGE_CLIPS and value and len(self._blob(value).data) % RECTANGLE_BYTES:
            raise Errno(errno.EINVAL, f"blob {value} has no whole number of rectangles")
        return plane  # rotation has one value; the whole of a frame is shown, whatever its damage

    def _blob(self, number: int) -> Blob:
        blob = self.node.gpu.display.blobs.get(number)
        if blob is None:
            raise Errno(errno.EINVAL, f"blob {number} is gone")
        return blob

    def _set(self, crtc: Crtc, property: ModeObject, value: int) -> Crtc:
        """Set a property of the CRTC or the connector."""
        if property == ModeObject.ACTIVE:
            return replace(crtc, active=bool(value))
        if property == ModeObject.MODE_ID:
            blob = self._blob(value) if value else None
            if blob is not None:
                if len(blob.data) != MODE.size:
                    raise Errno(errno.EINVAL, f"blob {value} of {len(blob.data)} bytes is no mode")
                check_mode(blob.data)
            return replace(crtc, mode_blob=blob)
        if property == ModeObject.GAMMA_LUT:
            return replace(crtc, gamma_blob=gamma_lut(self.node, value))
        if property == ModeObject.CRTC_ID:
            return replace(crtc, connected=bool(value))
        if property == ModeObject.DPMS:
            raise Errno(errno.EINVAL, "DPMS is no property of atomic commits: ACTIVE is")
        return crtc  # OUT_FENCE_PTR, link-status

    def touches(self, before: Crtc, after: Crtc) -> bool:
        """Whether the commit has state of the CRTC in it: its own, or that of what is attached to it."""
        for number, _, _ in self.settings:
            if number == ModeObject.CRTC or number == ModeObject.CONNECTOR and (before.connected or after.connected):
                return True
            if number in PLANES and (before.plane(number).attached or after.plane(number).attached):
                return True
        return False

    def fences(self, crtc: Crtc) -> Iterable[Fence]:
        """What is waited for: for each plane that is set, the fence that came with it, or the rendering into its framebuffer."""
        for number in {setting.object for setting in self.settings if setting.object in PLANES}:
            framebuffer = crtc.plane(number).framebuffer
            if number in self.in_fences:
                yield self.in_fences[number]
            elif framebuffer is not None:
                yield rendering(self.node.gpu.signals, framebuffer.bo)


SOURCE = {ModeObject.SRC_X: "x", ModeObject.SRC_Y: "y", ModeObject.SRC_W: "width", ModeObject.SRC_H: "height"}
TARGET = {ModeObject.CRTC_X: "x", ModeObject.CRTC_Y: "y", ModeObject.CRTC_W: "width", ModeObject.CRTC_H: "height"}


def read_settings(node: Node, call: Call, arg: SimpleNamespace) -> list[PropertySetting]:
    """The settings of a request: objects, the number of properties of each, properties, and values."""
    if arg.object_count > MOST_OBJECTS:
        raise Errno(errno.EINVAL, f"{arg.object_count} objects")
    objects = numbers(call, arg.objects, arg.object_count, "I")
    counts = numbers(call, arg.counts, arg.object_count, "I")
    if sum(counts) > MOST_PROPERTIES:
        raise Errno(errno.EINVAL, f"{sum(counts)} properties")
    names, found = (numbers(call, address, sum(counts), letter) for address, letter in ((arg.properties, "I"), (arg.values, "Q")))
    settings, at = list[PropertySetting](), 0
    for number, count in zip(objects, counts, strict=True):
        owned = values(node, object_ := find_object(number))
        for place in range(at, at + count):
            if names[place] not in owned:
                raise Errno(errno.ENOENT, f"object {number} has no property {names[place]}")
            settings.append(PropertySetting(object_, ModeObject(names[place]), found[place]))
        at += count
    return settings


def numbers(call: Call, address: int, count: int, letter: str) -> tuple[int, ...]:
    layout = struct.Struct(f"<{count}{letter}")
    return layout.unpack(call.read(address, layout.size))


def check_flags(node: Node, arg: SimpleNamespace) -> None:
    if not kernel_tables.display(node.gpu.device.name).atomic:
        raise Errno(errno.EOPNOTSUPP, "the driver has no atomic mode setting on this GPU")
    if not node.client_caps.get(drm.DRM_CLIENT_CAP_ATOMIC):
        raise Errno(errno.EINVAL, "an atomic commit of a client without DRM_CLIENT_CAP_ATOMIC")
    if arg.flags & ~FLAGS or arg.reserved:
        raise Errno(errno.EINVAL, f"flags {arg.flags:#x} of an atomic commit, reserved {arg.reserved:#x}")
    if arg.flags & drm.DRM_MODE_ATOMIC_TEST_ONLY and arg.flags & drm.DRM_MODE_PAGE_FLIP_EVENT:
        raise Errno(errno.EINVAL, "a test makes no event")


def atomic(node: Node, call: Call, arg: SimpleNamespace) -> None:
    """DRM_IOCTL_MODE_ATOMIC."""
    check_flags(node, arg)
    request = AtomicRequest(node, call, read_settings(node, call, arg))
    show_console(node, call)
    event = bool(arg.flags & drm.DRM_MODE_PAGE_FLIP_EVENT)
    modeset = bool(arg.flags & drm.DRM_MODE_ATOMIC_ALLOW_MODESET)
    if arg.flags & drm.DRM_MODE_ATOMIC_TEST_ONLY:
        with node.gpu.display.lock:
            new_state(request, node.gpu.display.crtc, False, modeset)
        return
    user_data = arg.user_data if event else None
    node.gpu.display.commit(committer(request, call, user_data, modeset), call.channel.gone, not arg.flags & drm.DRM_MODE_ATOMIC_NONBLOCK)


def set_connector_property(node: Node, call: Call, arg: SimpleNamespace) -> None:
    """DRM_IOCTL_MODE_SETPROPERTY, of a connector."""
    find(arg.connector, ModeObject.CONNECTOR)
    set_one(node, call, ModeObject.CONNECTOR, arg)


def set_property(node: Node, call: Call, arg: SimpleNamespace) -> None:
    """DRM_IOCTL_MODE_OBJ_SETPROPERTY."""
    set_one(node, call, find_object(arg.object, arg.kind), arg)


def set_one(node: Node, call: Call, number: ModeObject, arg: SimpleNamespace) -> None:
    """Set one property in a commit of its own. DPMS is kept, and the display goes on."""
    display = node.gpu.display
    if arg.property not in values(node, number):
        raise Errno(errno.EINVAL, f"object {number} has no property {arg.property}")
    if arg.property == ModeObject.DPMS:
        check_value(node, ModeObject.DPMS, arg.value)
        display.dpms = arg.value
        if arg.value != drm.DRM_MODE_DPMS_ON:
            node.gpu.log_once("a program has turned the display off (DPMS): what it draws is shown nevertheless")
        return
    request = AtomicRequest(node, call, [PropertySetting(number, ModeObject(arg.property), arg.value)])
    show_console(node, call)
    display.commit(committer(request, call, None, True), call.channel.gone, True)


def new_state(request: AtomicRequest, before: Crtc, signals: bool, modeset: bool) -> Crtc:
    """The state that a request makes of another, checked; `signals`: it has an event or an out-fence."""
    after = request.apply(before)
    check(request.node, after)
    touched = request.touches(before, after)
    if signals and not (touched and (before.active or after.active)):
        raise Errno(errno.EINVAL, "an event or fence of a commit that shows nothing: the CRTC is not in it, or off")
    if needs_modeset(before, after) and not modeset:
        raise Errno(errno.EINVAL, "the commit needs DRM_MODE_ATOMIC_ALLOW_MODESET")
    return after


def needs_modeset(before: Crtc, after: Crtc) -> bool:
    return (before.mode, before.active, before.connected) != (after.mode, after.active, after.connected)


def committer(request: AtomicRequest, call: Call, user_data: int | None, modeset: bool) -> Callable[[Crtc], Commit]:
    """What makes the commit of a request from the state that it finds. The out-fence is handed out last, when nothing can fail."""
    node, display = request.node, request.node.gpu.display

    def made(before: Crtc) -> Commit:
        after = new_state(request, before, user_data is not None or bool(request.out_fences), modeset)
        display.check_free()
        if user_data is not None:
            display.check_room(node)
        commit = Commit(node, after, user_data, Fence(node.gpu.signals), all_of(node.gpu.signals, list(request.fences(after))),
                        request.touches(before, after))  # fmt: skip
        for address in request.out_fences[-1:]:
            call.hand(address, node.gpu.sync_files.make(commit.finished))
        return commit

    return made


HANDLERS: dict[str, Handler] = {
    "DRM_IOCTL_MODE_ATOMIC": as_master(atomic),
    "DRM_IOCTL_MODE_SETPROPERTY": as_master(set_connector_property),
    "DRM_IOCTL_MODE_OBJ_SETPROPERTY": as_master(set_property),
}
