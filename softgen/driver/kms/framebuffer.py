"""The ioctls on framebuffers (ADDFB, ADDFB2, RMFB, GETFB, DIRTYFB) and on dumb buffers, which programs draw to with the CPU."""

from __future__ import annotations

import errno
import struct
from types import SimpleNamespace
from typing import TYPE_CHECKING

from softgen.bits.units import PAGE_SIZE
from softgen.driver.errors import Errno
from softgen.driver.ioctl import gem
from softgen.driver.kms.crtc import Framebuffer
from softgen.driver.kms.handler import as_master
from softgen.driver.objects.gem_object import GemObject
from softgen.driver.run.protocol import Call
from softgen.driver.uapi import drm, kernel_tables
from softgen.driver.uapi import i915_drm as i915
from softgen.memory.host import round_up

if TYPE_CHECKING:
    from softgen.driver.objects.node import Node

TILINGS = {i915.I915_TILING_NONE: "linear", i915.I915_TILING_X: "x_major", i915.I915_TILING_Y: "y_major"}
FLAGS = drm.DRM_MODE_FB_INTERLACED | drm.DRM_MODE_FB_MODIFIERS
PLANES = struct.Struct("<4I")
MODIFIERS = struct.Struct("<4Q")
DUMB_BYTES = (1, 2, 4)  # a pixel
DUMB_PITCH = 64  # unit of pitches
LARGEST_DUMB = 1 << 32


def add(node: Node, call: Call, arg: SimpleNamespace) -> None:
    """DRM_IOCTL_MODE_ADDFB: the format by its bits and depth, the tiling that of the buffer."""
    known = kernel_tables.display(node.gpu.device.name).formats.values()
    format = next((entry for entry in known if entry.depth and (entry.bits, entry.depth) == (arg.bits, arg.depth)), None)
    if format is None:
        raise Errno(errno.EINVAL, f"a framebuffer of {arg.bits} bits a pixel and depth {arg.depth}")
    arg.fb = new(node, arg, format, arg.handle, arg.pitch, 0, None)


def add_with_modifiers(node: Node, call: Call, arg: SimpleNamespace) -> None:
    """DRM_IOCTL_MODE_ADDFB2: one plane; the tiling by its modifier, or that of the buffer."""
    display = kernel_tables.display(node.gpu.device.name)
    format = display.formats.get(arg.format)
    if format is None or arg.flags & ~FLAGS or arg.flags & drm.DRM_MODE_FB_INTERLACED:
        raise Errno(errno.EINVAL, f"a framebuffer of format {arg.format.to_bytes(4, 'little')!r}, flags {arg.flags:#x}")
    planes = list(zip(*(PLANES.unpack(entry) for entry in (arg.handles, arg.pitches, arg.offsets)), strict=True))
    modifiers, chosen = MODIFIERS.unpack(arg.modifiers), bool(arg.flags & drm.DRM_MODE_FB_MODIFIERS)
    handle, pitch, offset = planes[0]
    if not handle:
        raise Errno(errno.EINVAL, "a framebuffer without a buffer")
    if any(modifiers[1:] if chosen else modifiers):
        raise Errno(errno.EINVAL, "a modifier of a plane that there is not" if chosen else "a modifier without the flag for modifiers")
    if chosen and any(map(any, planes[1:])):  # programs from before modifiers left what they liked there (framebuffer_check)
        raise Errno(errno.EINVAL, f"more than one plane of format {format.name}")
    arg.fb = new(node, arg, format, handle, pitch, offset, modifiers[0] if chosen else None)


def new(node: Node, arg: SimpleNamespace, format: kernel_tables.ScanoutFormat, handle: int, pitch: int, offset: int,
        modifier: int | None) -> int:  # fmt: skip
    """Check and add a framebuffer; `modifier` None: as the buffer is tiled."""
    display = kernel_tables.display(node.gpu.device.name)
    if not (0 < arg.width <= display.largest and 0 < arg.height <= display.largest):
        raise Errno(errno.EINVAL, f"a framebuffer of {arg.width}x{arg.height} pixels")
    bo = gem.lookup(node, handle)
    if bo.user:
        raise Errno(errno.EINVAL, "memory of the program itself cannot be scanned out")
    tiling = find_modifier(display, bo, pitch, modifier)
    if pitch % tiling.unit or pitch < arg.width * format.bits // 8:
        raise Errno(errno.EINVAL, f"a pitch of {pitch} bytes for {arg.width} pixels of {format.bits} bits, {tiling.name}")
    if offset % PAGE_SIZE or offset + pitch * -(-arg.height // tiling.rows) * tiling.rows > round_up(bo.size):
        raise Errno(errno.EINVAL, f"{arg.height} rows of {pitch} bytes at {offset:#x} of a buffer of {bo.size:#x} bytes, {tiling.name}")
    return node.gpu.display.add(lambda number: Framebuffer(number, node, bo, arg.width, arg.height, format, tiling, pitch, offset))


def find_modifier(display: kernel_tables.DisplayFacts, bo: GemObject, pitch: int, value: int | None) -> kernel_tables.ScanoutModifier:
    """The modifier of a framebuffer; EINVAL where the display has none such, or the buffer's own tiling is another."""
    by_tiling = {modifier.tiling: modifier for modifier in display.modifiers.values()}
    if value is None:
        if bo.tiling == i915.I915_TILING_Y:
            raise Errno(errno.EINVAL, "a Y-tiled framebuffer without a modifier")
        found = by_tiling[TILINGS[bo.tiling]]
    elif value not in display.modifiers:
        raise Errno(errno.EINVAL, f"a framebuffer with modifier {value:#x}")
    else:
        found = display.modifiers[value]
    if bo.tiling and TILINGS[bo.tiling] != found.tiling:
        raise Errno(errno.EINVAL, f"a {found.name} framebuffer in a buffer with tiling {bo.tiling}")
    if bo.tiling == i915.I915_TILING_X and pitch != bo.stride:
        raise Errno(errno.EINVAL, f"a pitch of {pitch} bytes in a tiled buffer with a stride of {bo.stride}")
    return found


def remove(node: Node, call: Call, arg: SimpleNamespace) -> None:
    """DRM_IOCTL_MODE_RMFB, of a framebuffer that was added on the same node."""
    framebuffer = node.gpu.display.framebuffer(arg.fb)
    if framebuffer.owner is not node:
        raise Errno(errno.ENOENT, f"framebuffer {arg.fb} belongs to another program")
    node.gpu.display.remove(framebuffer)


def get(node: Node, call: Call, arg: SimpleNamespace) -> None:
    """DRM_IOCTL_MODE_GETFB. The master gets a handle of the buffer, others none."""
    found = node.gpu.display.framebuffer(arg.fb)
    arg.width, arg.height, arg.pitch, arg.bits, arg.depth = found.width, found.height, found.pitch, found.format.bits, found.format.depth
    arg.handle = gem.add_handle(node, found.bo) if node.gpu.display.master is node else 0


def get_with_modifiers(node: Node, call: Call, arg: SimpleNamespace) -> None:
    """DRM_IOCTL_MODE_GETFB2: GETFB with format and modifier, as ADDFB2 takes them."""
    found = node.gpu.display.framebuffer(arg.fb)
    arg.width, arg.height, arg.format, arg.flags = found.width, found.height, found.format.fourcc, drm.DRM_MODE_FB_MODIFIERS
    handle = gem.add_handle(node, found.bo) if node.gpu.display.master is node else 0
    first = (PLANES.pack(value, 0, 0, 0) for value in (handle, found.pitch, found.offset))
    arg.handles, arg.pitches, arg.offsets = first
    arg.modifiers = MODIFIERS.pack(found.modifier.value, 0, 0, 0)


def close(node: Node, call: Call, arg: SimpleNamespace) -> None:
    """DRM_IOCTL_MODE_CLOSEFB: RMFB for a framebuffer that goes on being shown."""
    if arg.pad:
        raise Errno(errno.EINVAL, f"CLOSEFB pad {arg.pad:#x}")
    framebuffer = node.gpu.display.framebuffer(arg.fb)
    if framebuffer.owner is not node:
        raise Errno(errno.ENOENT, f"framebuffer {arg.fb} belongs to another program")
    node.gpu.display.framebuffers.pop(arg.fb, None)


def dirty(node: Node, call: Call, arg: SimpleNamespace) -> None:
    """DRM_IOCTL_MODE_DIRTYFB: the CPU has drawn. If the framebuffer is shown, that is a new frame."""
    display = node.gpu.display
    framebuffer = display.framebuffer(arg.fb)
    with display.lock:
        if display.crtc.framebuffer is framebuffer and display.pending is None:
            display.present(display.crtc)


# -- dumb buffers


def create_dumb(node: Node, call: Call, arg: SimpleNamespace) -> None:
    size = -(-arg.bits // 8)
    pitch = -(-arg.width * size // DUMB_PITCH) * DUMB_PITCH
    if size not in DUMB_BYTES or not arg.width or not arg.height or arg.flags or pitch * arg.height >= LARGEST_DUMB:
        raise Errno(errno.EINVAL, f"a dumb buffer of {arg.width}x{arg.height} pixels of {arg.bits} bits, flags {arg.flags:#x}")
    arg.handle, arg.size = gem.new(node, call, pitch * arg.height)
    arg.pitch = pitch


def map_dumb(node: Node, call: Call, arg: SimpleNamespace) -> None:
    if gem.lookup(node, arg.handle).user:
        raise Errno(errno.ENODEV, "memory of the program itself cannot be mapped")
    arg.offset = arg.handle << gem.OFFSET_BITS


HANDLERS = {
    "DRM_IOCTL_MODE_ADDFB": add,
    "DRM_IOCTL_MODE_ADDFB2": add_with_modifiers,
    "DRM_IOCTL_MODE_RMFB": remove,
    "DRM_IOCTL_MODE_GETFB": get,
    "DRM_IOCTL_MODE_GETFB2": get_with_modifiers,
    "DRM_IOCTL_MODE_CLOSEFB": close,
    "DRM_IOCTL_MODE_DIRTYFB": as_master(dirty),
    "DRM_IOCTL_MODE_CREATE_DUMB": create_dumb,
    "DRM_IOCTL_MODE_MAP_DUMB": map_dumb,
    "DRM_IOCTL_MODE_DESTROY_DUMB": gem.close,
}
