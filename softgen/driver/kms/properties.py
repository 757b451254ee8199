"""Properties of mode objects and their values, and the ioctls on them; property blobs."""

from __future__ import annotations

import errno
import struct
import weakref
from collections.abc import Callable
from itertools import chain
from types import SimpleNamespace
from typing import TYPE_CHECKING, NamedTuple

from softgen.bits.units import QWORD_MASK
from softgen.driver.errors import Errno
from softgen.driver.kms.crtc import PLANES, Blob, Crtc, ModeObject, ScanoutPlane
from softgen.driver.kms.handler import Handler, show_console, write_all, write_ids
from softgen.driver.kms.monitor import edid
from softgen.driver.kms.planes import formats_of, modifiers_of
from softgen.driver.run.protocol import Call
from softgen.driver.uapi import drm, kernel_tables
from softgen.driver.uapi.uapi import COLOR_LUT, FORMAT_MODIFIER, FORMATS_HEAD, PROPERTY_ENUM

if TYPE_CHECKING:
    from softgen.driver.kms.display import Display
    from softgen.driver.objects.node import Node

DPMS = ("On", "Standby", "Suspend", "Off")
MOST_UINT, MOST_INT = (1 << 32) - 1, (1 << 31) - 1
BLOB_BYTES = 512  # that a blob takes beside its data, about
MOST_BLOB = 16 << 20  # bytes: more than any property takes
LEGACY_GAMMA = 256  # entries that i915 takes beside GAMMA_LUT_SIZE
KINDS = {drm.DRM_MODE_OBJECT_CRTC: [ModeObject.CRTC], drm.DRM_MODE_OBJECT_CONNECTOR: [ModeObject.CONNECTOR],
         drm.DRM_MODE_OBJECT_ENCODER: [ModeObject.ENCODER], drm.DRM_MODE_OBJECT_PLANE: list(PLANES)}  # fmt: skip


class Property(NamedTuple):
    """A property: its name, flags with its type, values (bounds of a range, type of an object), and names of values."""

    name: str
    flags: int
    values: tuple[int, ...] = ()
    names: tuple[str, ...] = ()


IMMUTABLE, ATOMIC = drm.DRM_MODE_PROP_IMMUTABLE, drm.DRM_MODE_PROP_ATOMIC  # ATOMIC: for clients with DRM_CLIENT_CAP_ATOMIC only
EXTENDED_TYPE = drm.DRM_MODE_PROP_EXTENDED_TYPE
OBJECT, SIGNED_RANGE = drm.DRM_MODE_PROP_OBJECT, drm.DRM_MODE_PROP_SIGNED_RANGE
ENUM, RANGE, BLOB, BITMASK = drm.DRM_MODE_PROP_ENUM, drm.DRM_MODE_PROP_RANGE, drm.DRM_MODE_PROP_BLOB, drm.DRM_MODE_PROP_BITMASK
PROPERTIES = {
    ModeObject.PLANE_TYPE: Property("type", ENUM | IMMUTABLE, names=("Overlay", "Primary", "Cursor")),
    ModeObject.IN_FORMATS: Property("IN_FORMATS", BLOB | IMMUTABLE),
    ModeObject.ROTATION: Property("rotation", BITMASK, names=("rotate-0",)),
    ModeObject.ZPOS: Property("zpos", RANGE | IMMUTABLE, (0, len(PLANES) - 1)),
    ModeObject.GAMMA_LUT: Property("GAMMA_LUT", BLOB),
    ModeObject.GAMMA_LUT_SIZE: Property("GAMMA_LUT_SIZE", RANGE | IMMUTABLE, (0, MOST_UINT)),
    ModeObject.EDID: Property("EDID", BLOB | IMMUTABLE),
    ModeObject.DPMS: Property("DPMS", ENUM, names=DPMS),
    ModeObject.LINK_STATUS: Property("link-status", ENUM, names=("Good", "Bad")),
    ModeObject.NON_DESKTOP: Property("non-desktop", RANGE | IMMUTABLE, (0, 1)),
    ModeObject.FB_ID: Property("FB_ID", OBJECT | ATOMIC, (drm.DRM_MODE_OBJECT_FB,)),
    ModeObject.CRTC_ID: Property("CRTC_ID", OBJECT | ATOMIC, (drm.DRM_MODE_OBJECT_CRTC,)),
    ModeObject.SRC_X: Property("SRC_X", RANGE | ATOMIC, (0, MOST_UINT)),
    ModeObject.SRC_Y: Property("SRC_Y", RANGE | ATOMIC, (0, MOST_UINT)),
    ModeObject.SRC_W: Property("SRC_W", RANGE | ATOMIC, (0, MOST_UINT)),
    ModeObject.SRC_H: Property("SRC_H", RANGE | ATOMIC, (0, MOST_UINT)),
    ModeObject.CRTC_X: Property("CRTC_X", SIGNED_RANGE | ATOMIC, (-MOST_INT - 1, MOST_INT)),
    ModeObject.CRTC_Y: Property("CRTC_Y", SIGNED_RANGE | ATOMIC, (-MOST_INT - 1, MOST_INT)),
    ModeObject.CRTC_W: Property("CRTC_W", RANGE | ATOMIC, (0, MOST_INT)),
    ModeObject.CRTC_H: Property("CRTC_H", RANGE | ATOMIC, (0, MOST_INT)),
    ModeObject.IN_FENCE_FD: Property("IN_FENCE_FD", SIGNED_RANGE | ATOMIC, (-1, MOST_INT)),
    ModeObject.FB_DAMAGE_CLIPS: Property("FB_DAMAGE_CLIPS", BLOB | ATOMIC),
    ModeObject.ACTIVE: Property("ACTIVE", RANGE | ATOMIC, (0, 1)),
    ModeObject.MODE_ID: Property("MODE_ID", BLOB | ATOMIC),
    ModeObject.OUT_FENCE_PTR: Property("OUT_FENCE_PTR", RANGE | ATOMIC, (0, QWORD_MASK)),
}

# -- properties that an object has, and their values

PLANE_TYPES = {ModeObject.PLANE: drm.DRM_PLANE_TYPE_PRIMARY, ModeObject.OVERLAY: drm.DRM_PLANE_TYPE_OVERLAY,
               ModeObject.CURSOR: drm.DRM_PLANE_TYPE_CURSOR}  # fmt: skip


def blob_number(blob: Blob | None) -> int:
    return blob.number if blob else 0


def plane_values(number: ModeObject, plane: ScanoutPlane) -> dict[int, int]:
    formats = ModeObject.CURSOR_FORMATS_BLOB if number == ModeObject.CURSOR else ModeObject.IN_FORMATS_BLOB
    names = (ModeObject.SRC_X, ModeObject.SRC_Y, ModeObject.SRC_W, ModeObject.SRC_H,
             ModeObject.CRTC_X, ModeObject.CRTC_Y, ModeObject.CRTC_W, ModeObject.CRTC_H)  # fmt: skip
    return {ModeObject.PLANE_TYPE: PLANE_TYPES[number], ModeObject.IN_FORMATS: formats, ModeObject.ROTATION: drm.DRM_MODE_ROTATE_0,
            ModeObject.ZPOS: list(PLANES).index(number), ModeObject.FB_ID: plane.framebuffer.number if plane.framebuffer else 0,
            ModeObject.CRTC_ID: ModeObject.CRTC if plane.attached else 0, **dict(zip(names, (*plane.source, *plane.target), strict=True)),
            ModeObject.IN_FENCE_FD: -1, ModeObject.FB_DAMAGE_CLIPS: 0}  # fmt: skip


def crtc_values(crtc: Crtc, display: kernel_tables.DisplayFacts) -> dict[int, int]:
    return {ModeObject.GAMMA_LUT: blob_number(crtc.gamma_blob), ModeObject.GAMMA_LUT_SIZE: display.gamma,
            ModeObject.ACTIVE: int(crtc.active), ModeObject.MODE_ID: blob_number(crtc.mode_blob), ModeObject.OUT_FENCE_PTR: 0}  # fmt: skip


def connector_values(display: Display) -> dict[int, int]:
    return {ModeObject.EDID: ModeObject.EDID_BLOB, ModeObject.DPMS: display.dpms, ModeObject.LINK_STATUS: 0, ModeObject.NON_DESKTOP: 0,
            ModeObject.CRTC_ID: ModeObject.CRTC if display.crtc.connected else 0}  # fmt: skip


def values(node: Node, number: int) -> dict[int, int]:
    """The properties of an object that a client sees, and their values."""
    found, hidden = all_values(node, number), 0 if node.client_caps.get(drm.DRM_CLIENT_CAP_ATOMIC) else ATOMIC
    return {property: value for property, value in found.items() if not PROPERTIES[ModeObject(property)].flags & hidden}


def all_values(node: Node, number: int) -> dict[int, int]:
    display = node.gpu.display
    if number in PLANES:
        return plane_values(ModeObject(number), display.crtc.plane(ModeObject(number)))
    if number == ModeObject.CRTC:
        return crtc_values(display.crtc, kernel_tables.display(node.gpu.device.name))
    if number == ModeObject.CONNECTOR:
        return connector_values(display)
    raise Errno(errno.EINVAL, "an encoder has no properties")


def write_properties(call: Call, arg: SimpleNamespace, found: dict[int, int]) -> None:
    """Write as many properties and values as the program has room for."""
    count = min(arg.property_count, len(found))
    call.write(arg.values, struct.pack(f"<{count}Q", *(value & QWORD_MASK for value in list(found.values())[:count])))
    arg.property_count = write_ids(call, arg.properties, arg.property_count, list(found))


def find_object(number: int, kind: int = drm.DRM_MODE_OBJECT_ANY) -> ModeObject:
    """An object of a type."""
    kinds = list(chain(*KINDS.values())) if kind == drm.DRM_MODE_OBJECT_ANY else KINDS.get(kind, [])
    if number not in kinds:
        raise Errno(errno.ENOENT, f"no object {number} of type {kind:#x}")
    return ModeObject(number)


def object_properties(node: Node, call: Call, arg: SimpleNamespace) -> None:
    """DRM_IOCTL_MODE_OBJ_GETPROPERTIES: identifiers and values."""
    show_console(node, call)
    write_properties(call, arg, values(node, find_object(arg.object, arg.kind)))


def get_property(node: Node, call: Call, arg: SimpleNamespace) -> None:
    found = PROPERTIES.get(arg.property)
    if found is None:
        raise Errno(errno.ENOENT, f"no property {arg.property}")
    arg.name, arg.flags = found.name.encode("ascii"), found.flags
    listed = found.values or tuple(range(len(found.names)))
    enums = [PROPERTY_ENUM.pack(SimpleNamespace(value=value, name=name.encode("ascii"))) for value, name in enumerate(found.names)]
    arg.value_count = write_all(call, arg.values, arg.value_count, [struct.pack("<Q", value & QWORD_MASK) for value in listed])
    arg.enum_count = write_all(call, arg.enums, arg.enum_count, enums)


# -- setting them


def signed(value: int) -> int:
    """A 64-bit value as a signed one."""
    return value - (1 << 64) if value >> 63 else value


def check_value(node: Node, number: ModeObject, value: int) -> None:
    """EINVAL where a property cannot have a value (drm_property_change_valid_get)."""
    found, display = PROPERTIES[number], node.gpu.display
    fine = not found.flags & IMMUTABLE
    if found.flags & EXTENDED_TYPE == SIGNED_RANGE:
        fine &= found.values[0] <= signed(value) <= found.values[1]
    elif found.flags & EXTENDED_TYPE == OBJECT:
        fine &= not value or (value in display.framebuffers if number == ModeObject.FB_ID else value == ModeObject.CRTC)
    elif found.flags & RANGE:
        fine &= found.values[0] <= value <= found.values[1]
    elif found.flags & BLOB:
        fine &= not value or value in display.blobs
    elif found.flags & BITMASK:
        fine &= value == drm.DRM_MODE_ROTATE_0
    else:
        fine &= value < len(found.names)
    if not fine:
        raise Errno(errno.EINVAL, f"property {found.name} set to {value:#x}")


def gamma_lut(node: Node, number: int) -> Blob | None:
    """The blob of a GAMMA_LUT: drm_color_lut entries, as many as the CRTC has or the legacy ramp (i915 check_luts)."""
    if not number:
        return None
    blob, size = node.gpu.display.blobs.get(number), kernel_tables.display(node.gpu.device.name).gamma
    if blob is None or len(blob.data) not in (COLOR_LUT.size * size, COLOR_LUT.size * LEGACY_GAMMA):
        raise Errno(errno.EINVAL, f"blob {number} is no gamma table of {size} or {LEGACY_GAMMA} entries")
    return blob


# -- blobs


def in_formats(formats: dict[int, kernel_tables.ScanoutFormat], modifiers: dict[int, kernel_tables.ScanoutModifier]) -> bytes:
    """The blob IN_FORMATS (drm_format_modifier_blob): formats, and for each modifier a mask of the formats that have it: all of them."""
    listed = struct.pack(f"<{len(formats)}I", *formats)
    padded = listed.ljust(-len(listed) // 8 * -8, b"\0")
    head = SimpleNamespace(version=1, flags=0, format_count=len(formats), formats=FORMATS_HEAD.size,
                           modifier_count=len(modifiers), modifiers=FORMATS_HEAD.size + len(padded))  # fmt: skip
    every = (1 << len(formats)) - 1
    rows = [FORMAT_MODIFIER.pack(SimpleNamespace(formats=every, first=0, pad=0, modifier=value)) for value in modifiers]
    return FORMATS_HEAD.pack(head) + padded + b"".join(rows)


def plane_formats(number: int) -> Callable[[Node], bytes]:
    """The formats of a plane, as a blob."""

    def made(node: Node) -> bytes:
        display = kernel_tables.display(node.gpu.device.name)
        return in_formats(formats_of(number, display), modifiers_of(number, display))

    return made


def monitor_edid(node: Node) -> bytes:
    return edid(node.gpu.display.mode)


STANDING = {  # blobs that always exist
    ModeObject.IN_FORMATS_BLOB: plane_formats(ModeObject.PLANE),
    ModeObject.CURSOR_FORMATS_BLOB: plane_formats(ModeObject.CURSOR),
    ModeObject.EDID_BLOB: monitor_edid,
}


def create_blob(node: Node, call: Call, arg: SimpleNamespace) -> None:
    """DRM_IOCTL_MODE_CREATEPROPBLOB."""
    if not arg.size:
        raise Errno(errno.EINVAL, "a blob of no bytes")
    if arg.size > MOST_BLOB:
        raise Errno(errno.ENOMEM, f"a blob of {arg.size} bytes")
    data = call.read(arg.data, arg.size)
    node.gpu.budget.take(node.pid, len(data) + BLOB_BYTES, "a property blob")
    blob = node.gpu.display.new_blob(data, node)
    weakref.finalize(blob, node.gpu.budget.give, node.pid, len(data) + BLOB_BYTES).atexit = False
    arg.blob = blob.number


def destroy_blob(node: Node, call: Call, arg: SimpleNamespace) -> None:
    """DRM_IOCTL_MODE_DESTROYPROPBLOB, of a blob of the same node; a state that has it keeps it."""
    display = node.gpu.display
    blob = display.blobs.get(arg.blob)
    if blob is None and arg.blob not in STANDING:
        raise Errno(errno.ENOENT, f"no blob {arg.blob}")
    with display.lock:
        if display.blobs_of.get(node, {}).pop(arg.blob, None) is None:
            raise Errno(errno.EPERM, f"blob {arg.blob} belongs to another program")


def get_blob(node: Node, call: Call, arg: SimpleNamespace) -> None:
    if arg.blob in STANDING:
        data = STANDING[arg.blob](node)
    elif (blob := node.gpu.display.blobs.get(arg.blob)) is not None:
        data = blob.data
    else:
        raise Errno(errno.ENOENT, f"no blob {arg.blob}")
    if arg.size == len(data):
        call.write(arg.data, data)
    arg.size = len(data)


HANDLERS: dict[str, Handler] = {
    "DRM_IOCTL_MODE_OBJ_GETPROPERTIES": object_properties,
    "DRM_IOCTL_MODE_GETPROPERTY": get_property,
    "DRM_IOCTL_MODE_GETPROPBLOB": get_blob,
    "DRM_IOCTL_MODE_CREATEPROPBLOB": create_blob,
    "DRM_IOCTL_MODE_DESTROYPROPBLOB": destroy_blob,
}
