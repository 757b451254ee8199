"""Frames on their way to another process: copies in memory that both have, announced over a socket.

    sender = FrameSender("softgen.inspect.frames.writer", options, complain)    in the simulator's process
    receiver = FrameReceiver(sys.argv[1])                                      in the other

A slot is a memfd; the receiver gives its number back when its frame has been used. The sender never waits, except in `slot(wait=True)`.
"""

from __future__ import annotations

import json
import mmap
import os
import pickle
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from softgen.driver.kms.crtc import Crtc, Rectangle
from softgen.errors import SoftgenError
from softgen.inspect.frames.scanout import PlaneCopy, ScanoutCopy, bytes_of, copied
from softgen.inspect.report.pictures import Room, any_room

Octets = npt.NDArray[np.uint8]
SLOTS = 3  # one that is written, one that waits, one that is compressed
MOST_MESSAGE = 1 << 16
ENDING = 20.0  # seconds the other process has to write what it still has
PAGE = mmap.PAGESIZE


@dataclass
class FrameMessage:
    """A frame in a slot: its copy without the bytes, and what is to be done with it."""

    slot: int
    bytes: int  # of the slot
    number: int
    when: float  # monotonic, in seconds
    size: tuple[int, int]
    planes: list[tuple[str, tuple[int, ...], int, tuple[int, ...]]]  # format, target, offset and shape of the rows
    gamma: tuple[int, int]  # offset and size
    uses: tuple[str, ...] = ()


class Slot:
    """Memory of one frame: a memfd, which grows with the frames."""

    def __init__(self, fd: int) -> None:
        self.fd, self.size, self.used = fd, 0, 0
        self.memory: Octets = np.empty(0, np.uint8)

    def grow(self, size: int) -> None:
        """Have so many bytes, which were added by either process."""
        if size > self.size:
            self.size = -(-size // PAGE) * PAGE
            if os.fstat(self.fd).st_size < self.size:
                os.ftruncate(self.fd, self.size)
            self.memory = np.frombuffer(mmap.mmap(self.fd, self.size), np.uint8)

    def take(self, size: int) -> Octets:
        """The next bytes of the frame that is being written."""
        at, self.used = self.used, self.used + size
        return self.memory[at : self.used]


class FrameSender:
    """The simulator's end. `dead`: the other process has ended, or could not be started."""

    def __init__(self, module: str, options: dict[str, Any], descriptors: tuple[int, ...] = ()) -> None:
        """`descriptors` are for the other process as well."""
        self.slots = [Slot(os.memfd_create("frame", os.MFD_CLOEXEC)) for _ in range(SLOTS)]
        self.free = list(range(SLOTS))
        self.room: Room = any_room
        self.rooms = [ExitStack() for _ in range(SLOTS)]
        self.heard: list[dict[str, Any]] = []
        self.dead = False
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        fds = [theirs.fileno(), *(slot.fd for slot in self.slots)]
        with theirs:
            command = [sys.executable, "-m", module, ",".join(map(str, fds)), json.dumps(options)]
            self.process = subprocess.Popen(command, pass_fds=[*fds, *descriptors], stdin=subprocess.DEVNULL, start_new_session=True,
                                            env=without_shim())  # fmt: skip

    def listen(self, seconds: float | None = 0.0) -> bool:
        """Take what the other process says, and wait at most so long for it; False where it has ended."""
        self.socket.settimeout(seconds)
        try:
            while data := self.socket.recv(MOST_MESSAGE):
                self._hear(json.loads(data))
                self.socket.settimeout(0.0)
            self.dead = True
        except (BlockingIOError, TimeoutError):
            pass
        except OSError:
            self.dead = True
        return not self.dead

    def _hear(self, said: dict[str, Any]) -> None:
        if "free" in said:
            self.free.append(said["free"])
        else:
            self.heard.append(said)

    def slot(self, wait: bool) -> int | None:
        """A free slot; None where there is none (for `wait`: where the other process has ended)."""
        while self.listen() and not self.free and wait:
            self.listen(None)
        return self.free.pop() if self.free and not self.dead else None

    def copy(self, crtc: Crtc, number: int, wait: bool, pid: int) -> FrameMessage | None:
        """Copy what a CRTC shows into a slot; None where there is none, or nothing is shown."""
        if (found := self.slot(wait)) is None:
            return None
        slot, size = self.slots[found], bytes_of(crtc) + (len(crtc.gamma_blob.data) if crtc.gamma_blob else 0)
        try:
            if size > slot.size:
                self.rooms[found].close()
                self.rooms[found].enter_context(self.room(pid, size))
                slot.grow(size)
            slot.used = 0
            frame = copied(crtc, slot.take)
            if frame is None:
                raise SoftgenError("the display is off")
            message = FrameMessage(found, slot.size, number, time.monotonic(), frame.size, [], (0, 0))
        except (SoftgenError, OSError):
            self.free.append(found)
            raise
        at = 0
        for plane in frame.planes:
            message.planes.append((plane.format, tuple(plane.target), at, plane.rows.shape))
            at += plane.rows.nbytes
        if frame.gamma:
            message.gamma = slot.used, len(frame.gamma)
            slot.take(len(frame.gamma))[:] = np.frombuffer(frame.gamma, np.uint8)
        return message

    def send(self, message: object) -> None:
        """Send a message, which is lost where the other process has ended."""
        with suppress(OSError):
            self.socket.settimeout(None)
            self.socket.send(pickle.dumps(message))

    def close(self) -> list[dict[str, Any]]:
        """Tell the other process that there are no more frames, and wait for its last words."""
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)
        until = time.monotonic() + ENDING
        while not self.dead and (left := until - time.monotonic()) > 0:
            self.listen(left)
        if not self.dead:
            self.process.kill()
        self.process.wait()
        self.socket.close()
        return self.heard


def without_shim() -> dict[str, str]:
    """The environment of the simulator itself; the shim is not preloaded there."""
    return {name: value for name, value in os.environ.items() if name != "SOFTGEN_RUN"}


class FrameReceiver:
    """The other process's end."""

    def __init__(self, descriptors: str) -> None:
        connection, *slots = map(int, descriptors.split(","))
        self.socket = socket.socket(fileno=connection)
        self.slots = [Slot(fd) for fd in slots]

    def messages(self) -> Iterator[Any]:
        """What the simulator sends, until it has ended."""
        while True:
            try:
                data = self.socket.recv(MOST_MESSAGE)
            except OSError:
                return
            if not data:
                return
            yield pickle.loads(data)

    def frame(self, message: FrameMessage) -> ScanoutCopy:
        """The copy in a slot, which stays there until it is given back."""
        slot = self.slots[message.slot]
        slot.grow(message.bytes)
        planes = [PlaneCopy(format, Rectangle(*target), slot.memory[at : at + int(np.prod(shape))].reshape(shape))
                  for format, target, at, shape in message.planes]  # fmt: skip
        at, size = message.gamma
        return ScanoutCopy(message.size, planes, slot.memory[at : at + size].tobytes())

    def say(self, message: dict[str, Any]) -> None:
        with suppress(OSError):
            self.socket.send(json.dumps(message).encode())

    def give_back(self, message: FrameMessage) -> None:
        self.say({"free": message.slot})
