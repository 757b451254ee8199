"""Input devices of a run: a keyboard (event0) and a pointer (event1), as evdev has them (shim_input.c answers their ioctls).

A descriptor of one is a socket, to which events are sent as struct input_event; a program that does not read loses them, as with evdev.
"""

from __future__ import annotations

import select
import socket
import struct
import threading
import time
from collections.abc import Sequence

from softgen.driver.run.node_name import ended
from softgen.driver.uapi.input import EV_SYN, INPUT_EVENT

MOST_LISTENERS = 64  # descriptors of a device
MICROSECONDS = 10**6

Event = tuple[int, int, int]  # type, code, value


class InputDevices:
    """The opened descriptors of each device."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.listeners: dict[str, list[socket.socket]] = {}

    def opened(self, name: str, connection: socket.socket) -> bool:
        """A program has opened a device; False where too many are open."""
        with self.lock:
            self._forget(name)
            listeners = self.listeners.setdefault(name, [])
            if len(listeners) >= MOST_LISTENERS:
                return False
            listeners.append(connection)
            return True

    def _forget(self, name: str) -> None:
        """Close what programs have closed."""
        alive = []
        for connection in self.listeners.get(name, []):
            if ended(connection):
                connection.close()
            else:
                alive.append(connection)
        self.listeners[name] = alive

    def send(self, name: str, events: Sequence[Event]) -> None:
        """Send events that happen at once, and the report that ends them, to all who listen."""
        seconds, microseconds = divmod(time.monotonic_ns() // 1000, MICROSECONDS)
        data = b"".join(INPUT_EVENT.pack(seconds, microseconds, *event) for event in (*events, (EV_SYN, 0, 0)))
        with self.lock:
            self._forget(name)
            for connection in self.listeners[name]:
                poll = select.poll()
                poll.register(connection, select.POLLOUT)
                if poll.poll(0):  # a quarter of its buffer is free, so that events are never torn apart
                    try:
                        connection.send(data, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
                    except (OSError, struct.error):
                        pass  # it is gone: forgotten the next time
