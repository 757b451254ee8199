"""Presented frames: what the display shows, as PNG files frame-0001.png, frame-0002.png, …

The first ten frames are written, then every sixtieth: a benchmark presents thousands. Numbers are those of the frames.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from softgen.errors import SoftgenError
from softgen.inspect.output_file import write_file
from softgen.inspect.report.pictures import Box, Room, any_room, picture, picture_bytes, png
from softgen.memory.address_space import AddressSpace
from softgen.surface.image import SurfaceImage

if TYPE_CHECKING:
    from PIL.Image import Image

    from softgen.driver.objects.display import Crtc, Framebuffer

FIRST, THEN_EVERY = 10, 60
BASE = 1 << 20  # where the framebuffer is in the address space that it is read from


def frame(crtc: Crtc) -> Image | None:
    """What the CRTC shows, as a Pillow image; None while it is off."""
    if crtc.framebuffer is None:
        return None
    space, buffer = AddressSpace("display"), crtc.framebuffer.bo.pieces[0].buffer
    space.map(BASE, buffer)
    return picture(space, surface(crtc.framebuffer), viewport(crtc))


def viewport(crtc: Crtc) -> Box:
    """The part of its framebuffer that the CRTC shows."""
    width, height = crtc.size
    return Box(crtc.x, crtc.y, crtc.x + width, crtc.y + height)


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
        framebuffer = crtc.framebuffer
        if framebuffer is None or number > FIRST and number % THEN_EVERY:
            return
        path = self.folder / f"frame-{number:04}.png"
        try:
            with self.room(framebuffer.bo.pid, picture_bytes(surface(framebuffer), viewport(crtc))):
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
