"""What the display scans out, copied plane by plane, and composed to one picture.

    copy = copied(crtc)            the planes' pixels as rows, so that the program may draw the next frame
    compose(copy)                  red, green and blue of each pixel: planes one over the other, through the gamma table
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from softgen.bits.formats import Format, surface_formats
from softgen.driver.kms.crtc import Crtc, Framebuffer, Rectangle, ScanoutPlane
from softgen.inspect.report.pictures import bits, eight_bits, shown_channels
from softgen.surface.detile import TiledRows, detile

Array = npt.NDArray[Any]
Octets = npt.NDArray[np.uint8]
New = Callable[[int], Octets]  # memory for the rows of a plane
WHITE = 255
BITS = 8


@dataclass
class PlaneCopy:
    """Pixels of a plane that are on the screen, as they are in memory, and where they are shown."""

    format: str  # of surfaces
    target: Rectangle
    rows: Octets  # bytes of each row


@dataclass
class ScanoutCopy:
    """What a CRTC shows at one moment."""

    size: tuple[int, int]
    planes: list[PlaneCopy]  # the lowest first
    gamma: bytes  # drm_color_lut entries; b"": none


def on_screen(plane: ScanoutPlane, size: tuple[int, int]) -> tuple[Rectangle, Rectangle]:
    """The part of its framebuffer that a plane shows, and where on the screen; empty where it shows nothing."""
    x, y, width, height = plane.target
    left, top, right, bottom = max(x, 0), max(y, 0), min(x + width, size[0]), min(y + height, size[1])
    if not plane.shown or left >= right or top >= bottom:
        return Rectangle(), Rectangle()
    wide, high = right - left, bottom - top
    return Rectangle(plane.pixels.x + left - x, plane.pixels.y + top - y, wide, high), Rectangle(left, top, wide, high)


def bytes_of(crtc: Crtc) -> int:
    """Memory of the rows of a copy."""
    sizes = ((plane, on_screen(plane, crtc.size)[0]) for plane in crtc.planes)
    return sum(part.width * part.height * plane.framebuffer.format.bits // BITS for plane, part in sizes if plane.framebuffer is not None)


def copied(crtc: Crtc, new: New = lambda size: np.empty(size, np.uint8)) -> ScanoutCopy | None:
    """What a CRTC shows, in memory that `new` gives; None while it is off."""
    if not crtc.active or not crtc.framebuffers():
        return None
    planes = []
    for plane in crtc.planes:
        part, target = on_screen(plane, crtc.size)
        if plane.framebuffer is not None and target.width:
            planes.append(PlaneCopy(plane.framebuffer.format.surface, target, plane_rows(plane.framebuffer, part, new)))
    return ScanoutCopy(crtc.size, planes, crtc.gamma_blob.data if crtc.gamma_blob else b"")


def plane_rows(framebuffer: Framebuffer, part: Rectangle, new: New) -> Octets:
    """A part of a framebuffer as rows."""
    size, piece = framebuffer.format.bits // BITS, framebuffer.bo.pieces[0]
    wanted = TiledRows(framebuffer.modifier.tiling, framebuffer.pitch, part.x * size, part.y, part.width * size, part.height)
    rows = new(wanted.bytes * wanted.lines)
    detile(piece.buffer.view[piece.offset + framebuffer.offset :], wanted, rows)
    return rows.reshape(wanted.lines, wanted.bytes)


# -- composition


def compose(copy: ScanoutCopy) -> Octets:
    """Red, green and blue of each pixel."""
    width, height = copy.size
    shown = np.zeros((height, width, 3), np.uint8)
    for number, plane in enumerate(copy.planes):
        x, y, wide, high = plane.target
        texels = colours(plane.format, plane.rows)
        whole = number == 0 or texels.shape[-1] < 4  # nothing is below the first
        below = shown[y : y + high, x : x + wide]
        below[:] = texels[..., :3] if whole else over(below, texels)
    return through_gamma(shown, copy.gamma) if copy.gamma else shown


def over(below: Octets, texels: Octets) -> Octets:
    """Texels over what is below them; they are multiplied by their alpha already, as the kernel's default blend mode has it."""
    rest = below.astype(np.uint32) * (WHITE - texels[..., 3:].astype(np.uint32))
    found: Octets = np.minimum(texels[..., :3] + (rest + WHITE // 2) // WHITE, WHITE).astype(np.uint8)
    return found


@cache
def surface_format(name: str) -> Format:
    return next(entry for entry in surface_formats().values() if entry.name == name)


def colours(format: str, rows: Octets) -> Octets:
    """Red, green, blue and, where there is one, alpha of texels, as 0 to 255."""
    known = surface_format(format)
    channels = list(shown_channels(known).values())
    texels = rows.reshape(len(rows), -1, known.bits // BITS)
    if all(channel.bits == BITS and at % BITS == 0 and channel.type == "unorm" for channel, at in channels):
        return texels[..., [at // BITS for _, at in channels]]
    words = np.ascontiguousarray(texels).view(f"<u{known.bits // BITS}")[..., 0].astype(np.uint32)
    return np.stack([eight_bits(channel, bits([words], at, channel.bits)) for channel, at in channels], axis=-1)


def through_gamma(shown: Octets, table: bytes) -> Octets:
    """Colours through a table of drm_color_lut entries, with linear interpolation between them."""
    entries = np.frombuffer(table, np.uint16).reshape(-1, 4)
    places = np.arange(WHITE + 1) * ((len(entries) - 1) / WHITE)
    ramps = [np.rint(np.interp(places, np.arange(len(entries)), entries[:, channel]) * (WHITE / 0xFFFF)) for channel in range(3)]
    found: Octets = np.stack([ramp.astype(np.uint8)[shown[..., channel]] for channel, ramp in enumerate(ramps)], axis=-1)
    return found
