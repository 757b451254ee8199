"""Which presented frames are saved and filmed: the simulator's side of `softgen run --frames` and `--video`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from softgen.errors import SoftgenError
from softgen.inspect.frames.options import FrameOptions
from softgen.inspect.frames.slots import FrameSender
from softgen.inspect.report.pictures import Room, any_room

if TYPE_CHECKING:
    from softgen.driver.kms.crtc import Crtc

WRITER = "softgen.inspect.frames.writer"
RATE = 30  # frames a second of a film
SAVE, FILM = "save", "film"


class FrameSink:
    """Hands frames to the process that writes them."""

    def __init__(self, options: FrameOptions, complain: Callable[[str], None]) -> None:
        self.options, self.complain = options, complain
        self.sender = FrameSender(WRITER, options._asdict())
        self.presented_count = self.skipped = 0
        self.filmed: float | None = None  # when the last frame of the film was
        self.shown: Crtc | None = None  # of the last frame
        self.room: Room = any_room

    def presented(self, crtc: Crtc, number: int) -> None:
        """Take a frame, if it is one of those that are kept."""
        self.presented_count, self.shown = number, crtc
        uses = self.uses(number)
        if uses:
            self._send(crtc, number, uses)

    def _send(self, crtc: Crtc, number: int, uses: tuple[str, ...]) -> None:
        """Copy a frame for the writer."""
        if self.sender.dead:
            return
        self.sender.room = self.room
        framebuffer = next(iter(crtc.framebuffers()), None)
        try:
            waits = SAVE in uses and (self.options.every is not None or self.options.last)
            message = self.sender.copy(crtc, number, waits, framebuffer.bo.pid if framebuffer else 0)
        except (SoftgenError, OSError) as error:
            self.complain(f"frame {number} is not saved: {error}")
            return
        if message is None:
            self.skipped += SAVE in uses
            return
        message.uses = uses
        self.filmed = message.when if FILM in uses else self.filmed
        self.sender.send(message)

    def uses(self, number: int) -> tuple[str, ...]:
        """What a frame is for."""
        every, film = self.options.every, self.options.video is not None
        film = film and (self.filmed is None or time.monotonic() - self.filmed >= 1 / RATE)
        save = self.options.folder is not None and ((number - 1) % every == 0 if every is not None else not self.options.last)
        return (SAVE,) * save + (FILM,) * film

    def close(self) -> dict[str, Any]:
        """Wait for the files; what was presented and saved, for the report. The last frame is what the display shows in the end: X servers
        draw into it."""
        if self.options.last and self.shown is not None:
            self._send(self.shown, self.presented_count, (SAVE,))
        found = {"presented": self.presented_count, "saved": 0, "skipped": self.skipped, "folder": self.options.folder, "video": None}
        for said in self.sender.close():
            if "trouble" in said:
                self.complain(said["trouble"])
            found |= {name: said[name] for name in ("saved", "video") if name in said}
        if self.sender.process.returncode:
            self.complain(f"the process that writes frames ended with exit code {self.sender.process.returncode}")
        return found | {"summary": summary(found)}


def summary(found: dict[str, Any]) -> str:
    """A line about what `close` has found."""
    parts = []
    if found["folder"] is not None:
        more = f" ({found['skipped']} skipped while others were written: --every N waits)" if found["skipped"] else ""
        parts.append(f"{found['saved']} saved in {found['folder']}{more}")
    if found["video"]:
        parts.append(f"filmed in {found['video']}")
    return f"{found['presented']} frame{'s' if found['presented'] != 1 else ''} presented, {', '.join(parts) or 'none kept'}"
