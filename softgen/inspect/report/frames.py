"""Presented frames: what the display shows, as PNG files frame-0001.png, frame-0002.png, …

The first ten frames are written, then every sixtieth: a benchmark presents thousands. Numbers are those of the frames.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from softgen.errors import SoftgenError
from softgen.inspect.frames.scanout import bytes_of, compose, copied
from softgen.inspect.output_file import write_file
from softgen.inspect.report.pictures import COPIES, Room, any_room, png

if TYPE_CHECKING:
    from PIL.Image import Image

    from softgen.driver.kms.crtc import Crtc

FIRST, THEN_EVERY = 10, 60
CHANNELS = 3  # red, green and blue


def frame(crtc: Crtc) -> Image | None:
    """What the CRTC shows, as a Pillow image: its planes one over the other, through the gamma table; None while it is off."""
    from PIL import Image

    copy = copied(crtc)
    return None if copy is None else Image.fromarray(compose(copy))


def frame_bytes(crtc: Crtc) -> int:
    """Memory that the picture of a frame takes while it is made and written, about: the copy of its planes, the picture, and its file."""
    width, height = crtc.size
    return bytes_of(crtc) + COPIES * CHANNELS * width * height


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
