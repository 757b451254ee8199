"""The mode-setting ioctls (KMS): what the display is made of, what its CRTC shows, page flips. framebuffer.py has those on framebuffers.

Legacy mode setting only; a client that asks for the atomic interface is refused, as by a driver that has none.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING

from softgen.driver.errors import Errno
from softgen.driver.ioctl import gem
from softgen.driver.objects.display import Crtc, ModeObject
from softgen.driver.objects.gem_object import GemObject, Piece
from softgen.driver.run.protocol import Call
from softgen.driver.uapi import drm, facts
from softgen.driver.uapi.uapi import FORMAT_MODIFIER, FORMATS_HEAD, MODE, PROPERTY_ENUM
from softgen.memory.store import MemfdBuffer

if TYPE_CHECKING:
    from softgen.driver.objects.node import Node

Handler = Callable[["Node", Call, SimpleNamespace], None]
FIRST_CRTC = 1 << 0  # in masks of CRTCs
SIZE_MM = 300, 200  # of the display
CURRENT = 0xFFFFFFFF  # as a framebuffer's identifier in SETCRTC: the one that is shown
MOST_CONNECTORS = 16  # that SETCRTC may name
CONSOLE_FORMAT = int.from_bytes(b"XR24", "little")
DPMS = ("On", "Standby", "Suspend", "Off")
ENUMS = {ModeObject.PLANE_TYPE: (b"type", drm.DRM_MODE_PROP_IMMUTABLE, ("Overlay", "Primary", "Cursor")),
         ModeObject.DPMS: (b"DPMS", 0, DPMS)}  # properties: name, more flags, names of their values
CURSOR_SIZES = (64, 128, 256)  # pixels across and down
CURSOR_FLAGS = drm.DRM_MODE_CURSOR_BO | drm.DRM_MODE_CURSOR_MOVE
KINDS = {drm.DRM_MODE_OBJECT_CRTC: ModeObject.CRTC, drm.DRM_MODE_OBJECT_CONNECTOR: ModeObject.CONNECTOR,
         drm.DRM_MODE_OBJECT_ENCODER: ModeObject.ENCODER, drm.DRM_MODE_OBJECT_PLANE: ModeObject.PLANE}  # fmt: skip


def find(number: int, expected: ModeObject) -> None:
    """Check the identifier of a mode object."""
    if number != expected:
        raise Errno(errno.ENOENT, f"no {expected.name} {number}")


def write_ids(call: Call, address: int, room: int, ids: Sequence[int]) -> int:
    """Write as many identifiers as the program has room for; their number is returned to it."""
    call.write(address, struct.pack(f"<{min(room, len(ids))}I", *ids[:room]))
    return len(ids)


def write_all(call: Call, address: int, room: int, rows: Sequence[bytes]) -> int:
    """Write an array if the program has room for all of it; the number of its rows is returned to it."""
    if room >= len(rows):
        call.write(address, b"".join(rows))
    return len(rows)


def as_master(handler: Handler) -> Handler:
    """A handler of an ioctl that only the master of the display may use."""

    def checked(node: Node, call: Call, arg: SimpleNamespace) -> None:
        if node.gpu.display.master is not node:
            raise Errno(errno.EACCES, "only the master of the display may do that")
        handler(node, call, arg)

    return checked


def set_master(node: Node, call: Call, arg: SimpleNamespace) -> None:
    if call.channel.uid and node not in node.gpu.display.masters_before:
        raise Errno(errno.EACCES, "the node was never the master of the display, and the program is not root's")
    node.gpu.display.set_master(node)


def drop_master(node: Node, call: Call, arg: SimpleNamespace) -> None:
    node.gpu.display.drop_master(node)


def client_capability(node: Node, call: Call, arg: SimpleNamespace) -> None:
    if arg.capability == drm.DRM_CLIENT_CAP_ATOMIC:
        raise Errno(errno.EOPNOTSUPP, "atomic mode setting is not there")
    if arg.capability not in (drm.DRM_CLIENT_CAP_STEREO_3D, drm.DRM_CLIENT_CAP_UNIVERSAL_PLANES, drm.DRM_CLIENT_CAP_ASPECT_RATIO):
        raise Errno(errno.EINVAL, f"client capability {arg.capability}")
    if arg.value > 1:
        raise Errno(errno.EINVAL, f"client capability {arg.capability} of {arg.value}")
    node.client_caps[arg.capability] = arg.value


def get_resources(node: Node, call: Call, arg: SimpleNamespace) -> None:
    display = node.gpu.display
    own = [number for number, framebuffer in display.framebuffers.copy().items() if framebuffer.owner is node]
    arg.fb_count = write_ids(call, arg.fbs, arg.fb_count, own)
    arg.crtc_count = write_ids(call, arg.crtcs, arg.crtc_count, [ModeObject.CRTC])
    arg.connector_count = write_ids(call, arg.connectors, arg.connector_count, [ModeObject.CONNECTOR])
    arg.encoder_count = write_ids(call, arg.encoders, arg.encoder_count, [ModeObject.ENCODER])
    arg.min_width = arg.min_height = 0
    arg.max_width = arg.max_height = facts.display(node.gpu.device.name).largest


def get_connector(node: Node, call: Call, arg: SimpleNamespace) -> None:
    find(arg.connector, ModeObject.CONNECTOR)
    arg.mode_count = write_all(call, arg.modes, arg.mode_count, [node.gpu.display.mode])
    arg.encoder_count = write_ids(call, arg.encoders, arg.encoder_count, [ModeObject.ENCODER])
    _write_properties(call, arg, _properties(node, ModeObject.CONNECTOR))
    arg.encoder, arg.kind, arg.number = ModeObject.ENCODER, drm.DRM_MODE_CONNECTOR_HDMIA, 1
    arg.status, arg.subpixel, (arg.width_mm, arg.height_mm) = drm.DRM_MODE_CONNECTED, drm.DRM_MODE_SUBPIXEL_UNKNOWN, SIZE_MM


def get_encoder(node: Node, call: Call, arg: SimpleNamespace) -> None:
    find(arg.encoder, ModeObject.ENCODER)
    arg.kind, arg.crtc, arg.possible_crtcs, arg.possible_clones = drm.DRM_MODE_ENCODER_TMDS, ModeObject.CRTC, FIRST_CRTC, 0


def get_crtc(node: Node, call: Call, arg: SimpleNamespace) -> None:
    find(arg.crtc, ModeObject.CRTC)
    show_console(node, call)
    crtc = node.gpu.display.crtc
    arg.fb, arg.x, arg.y = crtc.framebuffer.number if crtc.framebuffer else 0, crtc.x, crtc.y
    arg.gamma_size, arg.mode_valid, arg.mode = 0, int(crtc.framebuffer is not None), crtc.mode


def show_console(node: Node, call: Call) -> None:
    """Show the console where no program has set a mode yet, before the state of the CRTC is used."""
    gpu, known = node.gpu, facts.display(node.gpu.device.name)

    def new_bo(size: int) -> GemObject:
        return gpu.new_object(call.channel.pid, [Piece(MemfdBuffer(size, "console"), 0, size)])

    gpu.display.boot(new_bo, known.formats[CONSOLE_FORMAT], known.modifiers[drm.DRM_FORMAT_MOD_LINEAR])


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
    mode = MODE.unpack(arg.mode)
    if framebuffer is None:
        raise Errno(errno.EINVAL, "no framebuffer is shown")
    if not (0 < mode.hdisplay < mode.htotal and 0 < mode.vdisplay < mode.vtotal and mode.clock):
        raise Errno(errno.EINVAL, f"a mode of {mode.hdisplay}x{mode.vdisplay} pixels")
    crtc = Crtc(framebuffer, arg.mode, arg.x, arg.y)
    crtc.check_viewport(framebuffer)
    display.set_crtc(crtc, call.channel.gone)


def page_flip(node: Node, call: Call, arg: SimpleNamespace) -> None:
    if arg.flags & ~drm.DRM_MODE_PAGE_FLIP_EVENT or arg.sequence:
        raise Errno(errno.EINVAL, f"page flip flags {arg.flags:#x}, target {arg.sequence}")
    find(arg.crtc, ModeObject.CRTC)
    show_console(node, call)
    framebuffer = node.gpu.display.framebuffer(arg.fb)
    node.gpu.display.flip(node, framebuffer, arg.user_data if arg.flags & drm.DRM_MODE_PAGE_FLIP_EVENT else None)


def cursor(node: Node, call: Call, arg: SimpleNamespace) -> None:
    """DRM_IOCTL_MODE_CURSOR and MODE_CURSOR2: programs that set one go on; the display shows none."""
    if not arg.flags or arg.flags & ~CURSOR_FLAGS:
        raise Errno(errno.EINVAL, f"cursor flags {arg.flags:#x}")
    find(arg.crtc, ModeObject.CRTC)
    if not arg.flags & drm.DRM_MODE_CURSOR_BO or not arg.handle:
        return
    bo = gem.lookup(node, arg.handle)
    if arg.width != arg.height or arg.width not in CURSOR_SIZES or 4 * arg.width * arg.height > bo.size:
        raise Errno(errno.EINVAL, f"a cursor of {arg.width}x{arg.height} pixels in a buffer of {bo.size:#x} bytes")
    node.gpu.log_once("a program has set a cursor: the display shows frames without it")


def pipe_of_crtc(node: Node, call: Call, arg: SimpleNamespace) -> None:
    find(arg.crtc, ModeObject.CRTC)
    arg.pipe = 0


# -- planes and properties


def get_planes(node: Node, call: Call, arg: SimpleNamespace) -> None:
    """DRM_IOCTL_MODE_GETPLANERESOURCES. The primary plane is shown to clients with UNIVERSAL_PLANES only; there are no overlays."""
    universal = node.client_caps.get(drm.DRM_CLIENT_CAP_UNIVERSAL_PLANES)
    arg.plane_count = write_ids(call, arg.planes, arg.plane_count, [ModeObject.PLANE] if universal else [])


def get_plane(node: Node, call: Call, arg: SimpleNamespace) -> None:
    find(arg.plane, ModeObject.PLANE)
    show_console(node, call)
    crtc, formats = node.gpu.display.crtc, facts.display(node.gpu.device.name).formats
    arg.crtc, arg.fb = (ModeObject.CRTC, crtc.framebuffer.number) if crtc.framebuffer else (0, 0)
    arg.possible_crtcs, arg.gamma_size = FIRST_CRTC, 0
    arg.format_count = write_all(call, arg.formats, arg.format_count, [struct.pack("<I", fourcc) for fourcc in formats])


def object_properties(node: Node, call: Call, arg: SimpleNamespace) -> None:
    """DRM_IOCTL_MODE_OBJ_GETPROPERTIES: identifiers and values."""
    _write_properties(call, arg, _properties(node, _object(arg)))


def _object(arg: SimpleNamespace) -> int:
    """The object that an argument names by identifier and type."""
    kinds = list(KINDS.values()) if arg.kind == drm.DRM_MODE_OBJECT_ANY else [KINDS[arg.kind]] if arg.kind in KINDS else []
    if arg.object not in kinds:
        raise Errno(errno.ENOENT, f"no object {arg.object} of type {arg.kind:#x}")
    return int(arg.object)


def _properties(node: Node, number: int) -> dict[int, int]:
    """The properties of an object, and their values."""
    if number == ModeObject.PLANE:
        return {ModeObject.PLANE_TYPE: drm.DRM_PLANE_TYPE_PRIMARY, ModeObject.IN_FORMATS: ModeObject.IN_FORMATS_BLOB}
    if number == ModeObject.ENCODER:
        raise Errno(errno.EINVAL, "an encoder has no properties")
    return {ModeObject.DPMS: node.gpu.display.dpms} if number == ModeObject.CONNECTOR else {}


def _write_properties(call: Call, arg: SimpleNamespace, found: dict[int, int]) -> None:
    count = min(arg.property_count, len(found))
    call.write(arg.values, struct.pack(f"<{count}Q", *list(found.values())[:count]))
    arg.property_count = write_ids(call, arg.properties, arg.property_count, list(found))


def get_property(node: Node, call: Call, arg: SimpleNamespace) -> None:
    if arg.property in ENUMS:
        arg.name, flags, names = ENUMS[arg.property]
        arg.flags = drm.DRM_MODE_PROP_ENUM | flags
        enums = [PROPERTY_ENUM.pack(SimpleNamespace(value=value, name=name.encode("ascii"))) for value, name in enumerate(names)]
        arg.value_count = write_all(call, arg.values, arg.value_count, [struct.pack("<Q", value) for value in range(len(enums))])
        arg.enum_count = write_all(call, arg.enums, arg.enum_count, enums)
    elif arg.property == ModeObject.IN_FORMATS:
        arg.name, arg.flags = b"IN_FORMATS", drm.DRM_MODE_PROP_BLOB | drm.DRM_MODE_PROP_IMMUTABLE
        arg.value_count = arg.enum_count = 0
    else:
        raise Errno(errno.ENOENT, f"no property {arg.property}")


def set_connector_property(node: Node, call: Call, arg: SimpleNamespace) -> None:
    """DRM_IOCTL_MODE_SETPROPERTY, of a connector."""
    find(arg.connector, ModeObject.CONNECTOR)
    _set_property(node, ModeObject.CONNECTOR, arg)


def set_property(node: Node, call: Call, arg: SimpleNamespace) -> None:
    """DRM_IOCTL_MODE_OBJ_SETPROPERTY."""
    _set_property(node, _object(arg), arg)


def _set_property(node: Node, number: int, arg: SimpleNamespace) -> None:
    """Set a property of an object. DPMS alone can be set; it is kept, and the display goes on."""
    if number != ModeObject.CONNECTOR or arg.property != ModeObject.DPMS or arg.value >= len(DPMS):
        raise Errno(errno.EINVAL, f"property {arg.property} of object {number} set to {arg.value}")
    node.gpu.display.dpms = arg.value
    if arg.value != drm.DRM_MODE_DPMS_ON:
        node.gpu.log_once("a program has turned the display off (DPMS): what it draws is shown nevertheless")


def get_blob(node: Node, call: Call, arg: SimpleNamespace) -> None:
    find(arg.blob, ModeObject.IN_FORMATS_BLOB)
    data = in_formats(facts.display(node.gpu.device.name))
    if arg.size == len(data):
        call.write(arg.data, data)
    arg.size = len(data)


def in_formats(display: facts.DisplayFacts) -> bytes:
    """The blob IN_FORMATS (drm_format_modifier_blob): formats, and for each modifier a mask of the formats that have it: all of them."""
    formats = struct.pack(f"<{len(display.formats)}I", *display.formats)
    padded = formats.ljust(-len(formats) // 8 * -8, b"\0")
    head = SimpleNamespace(version=1, flags=0, format_count=len(display.formats), formats=FORMATS_HEAD.size,
                           modifier_count=len(display.modifiers), modifiers=FORMATS_HEAD.size + len(padded))  # fmt: skip
    every = (1 << len(display.formats)) - 1
    rows = [FORMAT_MODIFIER.pack(SimpleNamespace(formats=every, first=0, pad=0, modifier=value)) for value in display.modifiers]
    return FORMATS_HEAD.pack(head) + padded + b"".join(rows)


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
    "DRM_IOCTL_MODE_CURSOR": as_master(cursor),
    "DRM_IOCTL_MODE_CURSOR2": as_master(cursor),
    "DRM_IOCTL_MODE_GETPLANERESOURCES": get_planes,
    "DRM_IOCTL_MODE_GETPLANE": get_plane,
    "DRM_IOCTL_MODE_OBJ_GETPROPERTIES": object_properties,
    "DRM_IOCTL_MODE_GETPROPERTY": get_property,
    "DRM_IOCTL_MODE_SETPROPERTY": as_master(set_connector_property),
    "DRM_IOCTL_MODE_OBJ_SETPROPERTY": as_master(set_property),
    "DRM_IOCTL_MODE_GETPROPBLOB": get_blob,
    "DRM_IOCTL_I915_GET_PIPE_FROM_CRTC_ID": pipe_of_crtc,
}
