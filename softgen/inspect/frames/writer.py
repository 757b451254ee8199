"""The process that writes frames: PNG files and a film (`python -m softgen.inspect.frames.writer`, started by slots.py)."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from softgen.errors import SoftgenError
from softgen.inspect.frames.options import FrameOptions
from softgen.inspect.frames.scanout import compose
from softgen.inspect.frames.sink import FILM, RATE, SAVE
from softgen.inspect.frames.slots import FrameMessage, FrameReceiver
from softgen.inspect.output_file import write_file

Octets = npt.NDArray[np.uint8]
NICE = 5  # the program comes first
FAST = 1  # zlib's level
EVEN = ["-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2", "-pix_fmt", "yuv420p"]  # half the pixels have colours
MOST_TROUBLE = 5  # messages


def png(pixels: Octets) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG", compress_level=FAST)
    return file.getvalue()


class Film:
    """A film by ffmpeg, in real time: a frame stays until the next one comes."""

    def __init__(self, path: str, size: tuple[int, int]) -> None:
        self.size, self.shown, self.begun = size, 0, 0.0
        self.frame: Octets | None = None
        raw = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{size[0]}x{size[1]}", "-r", f"{RATE}"]
        command = ["ffmpeg", "-loglevel", "error", "-y", *raw, "-i", "-", *EVEN, path]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def add(self, pixels: Octets, when: float) -> None:
        """Show a frame from a moment on; one of another size is scaled."""
        if self.frame is None:
            self.begun = when
        else:
            self._until(when)
        if pixels.shape[1::-1] != self.size:
            pixels = np.asarray(Image.fromarray(pixels).resize(self.size))
        self.frame = pixels

    def _until(self, when: float) -> None:
        assert self.process.stdin is not None and self.frame is not None
        data = self.frame.tobytes()
        while self.shown < (when - self.begun) * RATE:
            with suppress(BrokenPipeError):  # its exit code is told
                self.process.stdin.write(data)
            self.shown += 1

    def close(self, when: float) -> str:
        """End the film; '' or what went wrong."""
        self._until(max(when, self.begun + (self.shown + 1) / RATE))
        _, said = self.process.communicate()
        if not self.process.returncode:
            return ""
        return said.decode(errors="replace").strip() or f"ffmpeg ended with exit code {self.process.returncode}"


class FrameWriter:
    """What is done with each frame."""

    def __init__(self, options: FrameOptions, complain: Callable[[str], None]) -> None:
        self.options, self.complain = options, complain
        self.saved = self.troubles = 0
        self.film: Film | None = None
        self.when = 0.0

    def use(self, pixels: Octets, message: FrameMessage) -> None:
        self.when = message.when
        if SAVE in message.uses:
            self.save(pixels, message.number)
        if FILM in message.uses and self.options.video is not None:
            self.film = self.film or Film(self.options.video, message.size)
            self.film.add(pixels, message.when)

    def save(self, pixels: Octets, number: int) -> None:
        assert self.options.folder is not None
        try:
            write_file(Path(self.options.folder) / f"frame-{number:05}.png", png(pixels))
            self.saved += 1
        except SoftgenError as error:
            self.trouble(str(error))

    def trouble(self, text: str) -> None:
        self.troubles += 1
        if self.troubles <= MOST_TROUBLE:
            self.complain(text)

    def close(self) -> str | None:
        """End the film; its file, if it was made."""
        if self.film is None:
            return None
        if why := self.film.close(self.when):
            self.complain(f"--video {self.options.video}: {why}")
        return None if why else self.options.video


def main() -> None:
    os.nice(NICE)
    receiver = FrameReceiver(sys.argv[1])
    writer = FrameWriter(FrameOptions(**json.loads(sys.argv[2])), lambda text: receiver.say({"trouble": text}))
    for message in receiver.messages():
        try:
            writer.use(compose(receiver.frame(message)), message)
        except SoftgenError as error:
            writer.trouble(f"frame {message.number}: {error}")
        receiver.give_back(message)
    video = writer.close()
    receiver.say({"saved": writer.saved, "video": video})


if __name__ == "__main__":
    main()
