"""The process that shows a running program in browsers (`python -m softgen.inspect.frames.live`, started by slots.py).

A browser asks for the frame after the one it has; frames that nobody asks for are not composed. Kernels, faults and messages come as
numbers from the simulator, every second.
"""

from __future__ import annotations

import io
import json
import socket
import sys
import threading
import time
from importlib import resources
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from softgen.errors import SoftgenError, UsageError
from softgen.inspect.frames.scanout import compose
from softgen.inspect.frames.slots import FrameMessage, FrameReceiver
from softgen.inspect.view.local_server import HTML, JSON, SCRIPT, STYLE, Answer, LocalServer

FILES = {"index.html": HTML, "live.js": SCRIPT, "live.css": STYLE}
PATIENCE = 5.0  # seconds in which a frame comes, or the page asks again
WATCHED = 3.0  # seconds after a request in which frames are composed
QUALITY = 90


class LiveState:
    """What the page shows: the newest frame, and what the simulator says of itself."""

    def __init__(self, receiver: FrameReceiver) -> None:
        self.receiver = receiver
        self.changed = threading.Condition()
        self.number, self.pixels = 0, np.zeros((1, 1, 3), np.uint8)
        self.status: dict[str, Any] = {"running": True}
        self.asked = -WATCHED  # when a frame was last asked for
        self.waiting: FrameMessage | None = None  # a frame that nobody has asked for yet

    def show(self, message: FrameMessage) -> None:
        """Take a frame; the one before goes."""
        with self.changed:
            if self.waiting is not None:
                self.receiver.give_back(self.waiting)
            self.waiting = message
            if time.monotonic() - self.asked < WATCHED:
                self._compose()

    def _compose(self) -> None:
        """Make the picture of the frame that waits; called with the lock held."""
        message, self.waiting = self.waiting, None
        if message is None:
            return
        try:
            pixels = compose(self.receiver.frame(message))
            if not self.number or not np.array_equal(pixels, self.pixels):
                self.number, self.pixels = self.number + 1, pixels
        except SoftgenError as error:
            self.status["trouble"] = f"frame {message.number}: {error}"
        self.receiver.give_back(message)
        self.changed.notify_all()

    def frame(self, after: int) -> tuple[int, npt.NDArray[np.uint8]] | None:
        """The newest frame, if there is one after a number within some seconds."""
        with self.changed:
            self.asked = time.monotonic()
            self._compose()
            if not self.changed.wait_for(lambda: self.number != after, PATIENCE):
                return None
            return self.number, self.pixels

    def update(self, status: dict[str, Any]) -> None:
        with self.changed:
            self.status |= status


class LiveServer(LocalServer):
    """Serves the page of a running program."""

    takes_posts = True

    def __init__(self, listener: socket.socket, token: str, state: LiveState) -> None:
        super().__init__(listener, token)
        self.state = state

    def content(self, path: str) -> Answer:
        if path in FILES:
            return Answer(FILES[path], (resources.files("softgen.inspect.frames") / "page" / path).read_bytes())
        if path == "status.json":
            return Answer(JSON, json.dumps(self.state.status).encode())
        folder, _, number = path.partition("/")
        if folder == "frame" and number.isascii() and number.isdigit():
            return self._frame(int(number))
        raise UsageError(f"there is no {path}")

    def _frame(self, after: int) -> Answer:
        found = self.state.frame(after)
        if found is None:
            return Answer("image/jpeg", b"", {"X-Frame": str(after)})
        file = io.BytesIO()
        Image.fromarray(found[1]).save(file, "JPEG", quality=QUALITY)
        return Answer("image/jpeg", file.getvalue(), {"X-Frame": str(found[0])})

    def posted(self, path: str, body: bytes) -> None:
        if path != "input":
            raise UsageError(f"there is no {path}")
        try:
            events = json.loads(body)
        except ValueError:
            raise UsageError("input is JSON") from None
        self.state.receiver.say({"input": events})


def main() -> None:
    options = json.loads(sys.argv[2])
    state = LiveState(FrameReceiver(sys.argv[1]))
    server = LiveServer(socket.socket(fileno=options["listener"]), options["token"], state)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for message in state.receiver.messages():
        if isinstance(message, FrameMessage):
            state.show(message)
        else:
            state.update(message)


if __name__ == "__main__":
    main()
