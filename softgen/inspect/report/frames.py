"""Presented frames: what the display shows, as PNG files frame-0001.png, frame-0002.png, …

The first ten frames are written, then every sixtieth: a benchmark presents thousands. Numbers are those of the frames.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from softgen.driver.kms.crtc import Rectangle, ScanoutPlane
from softgen.errors import SoftgenError
from softgen.inspect.output_file import write_file
from softgen.inspect.report.pictures import Box, Room, any_room, picture, picture_bytes, png
from softgen.memory.address_space import AddressSpace
from softgen.surface.image import SurfaceImage

if TYPE_CHECKING:
    from PIL.Image import Image

    from softgen.driver.kms.crtc import Crtc, Framebuffer

Array = npt.NDArray[Any]
WHITE = 255
FIRST, THEN_EVERY = 10, 60
BASE = 1 << 20  # where the framebuffer is in the address space that it is read from


def frame(crtc: Crtc) -> Image | None:
    """What the CRTC shows, as a Pillow image: its planes one over the other, through the gamma table; None while it is off."""
    from PIL import Image

    if not crtc.active or not crtc.framebuffers():
        return None
    primary = crtc.primary
    if primary.shown and primary.target == Rectangle(0, 0, *crtc.size):
        shown = np.asarray(plane_picture(primary))[..., :3]
    else:
        shown = over(np.zeros((crtc.size[1], crtc.size[0], 3), np.uint8), primary, opaque=True)
    for plane in crtc.planes[1:]:
        shown = over(shown, plane)
    return Image.fromarray(through_gamma(shown, crtc.gamma_blob.data) if crtc.gamma_blob else np.ascontiguousarray(shown))


def plane_picture(plane: ScanoutPlane, box: Box | None = None) -> Image:
    """What a plane scans out, or a part of its framebuffer."""
    assert plane.framebuffer is not None
    space, buffer = AddressSpace("display"), plane.framebuffer.bo.pieces[0].buffer
    space.map(BASE, buffer)
    return picture(space, surface(plane.framebuffer), box or viewport(plane))


def viewport(plane: ScanoutPlane) -> Box:
    """The part of its framebuffer that a plane scans out."""
    x, y, width, height = plane.pixels
    return Box(x, y, x + width, y + height)


def over(below: Array, plane: ScanoutPlane, opaque: bool = False) -> Array:
    """A plane over what is below it; its colours are multiplied by its alpha already, as the kernel's default blend mode has it."""
    x, y, width, height = plane.target
    left, top, right, bottom = max(x, 0), max(y, 0), min(x + width, below.shape[1]), min(y + height, below.shape[0])
    if not plane.shown or left >= right or top >= bottom:
        return below
    source = viewport(plane)
    part = Box(source.left + left - x, source.top + top - y, source.left + right - x, source.top + bottom - y)
    texels, shown = np.asarray(plane_picture(plane, part)), below.copy()
    if opaque or texels.shape[-1] < 4:
        shown[top:bottom, left:right] = texels[..., :3]
    else:
        rest = below[top:bottom, left:right].astype(np.uint32) * (WHITE - texels[..., 3:].astype(np.uint32))
        shown[top:bottom, left:right] = np.minimum(texels[..., :3] + (rest + WHITE // 2) // WHITE, WHITE)
    return shown


def through_gamma(shown: Array, table: bytes) -> Array:
    """Colours through a table of drm_color_lut entries, with linear interpolation between them."""
    entries = np.frombuffer(table, np.uint16).reshape(-1, 4)
    places = np.arange(WHITE + 1) * ((len(entries) - 1) / WHITE)
    ramps = [np.rint(np.interp(places, np.arange(len(entries)), entries[:, channel]) * (WHITE / 0xFFFF)) for channel in range(3)]
    return np.stack([ramp.astype(np.uint8)[shown[..., channel]] for channel, ramp in enumerate(ramps)], axis=-1)


def frame_bytes(crtc: Crtc) -> int:
    """Memory that the picture of a frame takes while it is made and written, about."""
    shown = [plane for plane in crtc.planes if plane.framebuffer is not None]
    return sum(picture_bytes(surface(plane.framebuffer), viewport(plane)) for plane in shown if plane.framebuffer is not None)


def surface(framebuffer: Framebuffer) -> SurfaceImage:
    """The surface in memory that a framebuffer describes."""
    from softgen.bits.formats import surface_formats

    format = next(entry for entry in surface_formats().values() if entry.name == framebuffer.format.surface)
    return SurfaceImage("2d", format, BASE + framebuffer.offset, framebuffer.width, framebuffer.height, 1, False, framebuffer.pitch,
                        framebuffer.modifier.tiling, rows=0, levels=1, level=0, first=0, align=(4, 4), at=(0, 0))  # fmt: skip


class FramePictures:
    """Frames written to a folder, and the paths of their files."""

    def __init__(self, folder: Path, files: list[str], complain: Callable[[str], None] = lambda text: None,
                 room: Room = any_room) -> None:  # fmt: skip
        """`files`: the list to which paths are added."""
        self.folder, self.files, self.complain, self.room = folder, files, complain, room

    def presented(self, crtc: Crtc, number: int) -> None:
        """Write a frame, if it is one of those that are written. One that cannot be shown or written is complained about."""
        framebuffer = next(iter(crtc.framebuffers()), None)
        if framebuffer is None or number > FIRST and number % THEN_EVERY:
            return
        path = self.folder / f"frame-{number:04}.png"
        try:
            with self.room(framebuffer.bo.pid, frame_bytes(crtc)):
                data = None if (image := frame(crtc)) is None else png(image)
        except SoftgenError as error:
            self.complain(f"{path.name}: {error}")
            return
        if data is not None:
            try:
                write_file(path, data)
            except SoftgenError as error:
                self.complain(str(error))
            else:
                self.files.append(str(path))
