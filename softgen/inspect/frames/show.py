"""A running program in browsers: the simulator's side of `softgen run --show`.

Frames go to the process that serves the page (live.py) at most thirty times a second; of those in between only the last is kept in mind, so
that what a program shows when it stops drawing is seen.
"""

from __future__ import annotations

import secrets
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from softgen.errors import SoftgenError
from softgen.inspect.frames.slots import FrameSender
from softgen.inspect.frames.typed import events
from softgen.inspect.report.pictures import Room, any_room
from softgen.inspect.view.local_server import listen, url

if TYPE_CHECKING:
    from softgen.driver.kms.crtc import Crtc
    from softgen.driver.run.input_devices import Event

LIVE = "softgen.inspect.frames.live"
RATE = 30  # frames a second
IN_PLACE = 0.25  # seconds after which a frame is looked at again: X servers draw into what is shown
STATUS_EVERY = 1.0  # seconds
MOST_MESSAGES = 12
Status = Callable[[], dict[str, Any]]


class ShowOptions:
    """Where the page is: a socket that listens before the program starts, and the token of its address."""

    def __init__(self, port: int) -> None:
        self.listener: socket.socket = listen(port)
        self.token = secrets.token_urlsafe(24)

    @property
    def url(self) -> str:
        return url(self.listener, self.token, "index.html")


class LiveSink:
    """Hands frames and numbers to the page, and what people do there to input devices, by `send`."""

    def __init__(self, options: ShowOptions, complain: Callable[[str], None]) -> None:
        self.complain = complain
        fd = options.listener.fileno()
        self.sender = FrameSender(LIVE, {"listener": fd, "token": options.token}, (fd,))
        self.room: Room = any_room
        self.lock = threading.Lock()
        self.sent = self.told = 0.0
        self.owed: tuple[Crtc, int] | None = None  # a frame that came too early, or found no slot
        self.shown: tuple[Crtc, int] | None = None  # the last frame
        self.messages: deque[str] = deque(maxlen=MOST_MESSAGES)
        self.status: Status = dict
        self.send: Callable[[str, list[Event]], None] = lambda device, events: None
        self.ended = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._tick, name="live page", daemon=True).start()

    def log(self, text: str) -> None:
        """A message of the run, for the page as well."""
        self.messages.append(text)
        self.complain(text)

    def presented(self, crtc: Crtc, number: int) -> None:
        with self.lock:
            self.owed = self.shown = crtc, number
            if time.monotonic() - self.sent >= 1 / RATE:
                self._send()

    def _send(self) -> None:
        """Send the frame that is owed, if there is a slot; called with the lock held."""
        if self.owed is None or self.sender.dead:
            return
        crtc, number = self.owed
        framebuffer = next(iter(crtc.framebuffers()), None)
        self.sender.room = self.room
        try:
            message = self.sender.copy(crtc, number, False, framebuffer.bo.pid if framebuffer else 0)
        except (SoftgenError, OSError) as error:
            self.messages.append(f"frame {number} is not shown: {error}")
            self.owed = None
            return
        if message is not None:
            self.sender.send(message)
            self.owed, self.sent = None, time.monotonic()

    def _tick(self) -> None:
        """Send what is owed, take input, and tell the state of the run, until it ends."""
        while not self.ended.wait(1 / RATE):
            with self.lock:
                self.sender.listen()
                heard, self.sender.heard[:] = self.sender.heard[:], []
                if time.monotonic() - self.sent >= IN_PLACE:
                    self.owed = self.owed or self.shown
                if time.monotonic() - self.sent >= 1 / RATE:
                    self._send()
            for said in heard:
                for device, typed in events(said.get("input")):
                    self.send(device, typed)
            if time.monotonic() - self.told >= STATUS_EVERY:
                self.told = time.monotonic()
                self.tell({})

    def tell(self, more: dict[str, Any]) -> None:
        try:
            found = self.status()
        except RuntimeError:  # what is counted has changed meanwhile
            found = {}
        self.sender.send(found | {"messages": list(self.messages)} | more)

    def close(self) -> None:
        self.ended.set()
        with self.lock:
            self._send()
            self.tell({"running": False})
            self.sender.close()
