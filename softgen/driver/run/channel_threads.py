"""Pool of the threads that answer channels: an idle thread is used again, since starting one takes longer than an ioctl."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

LINGER = 2.0  # seconds that a thread waits for another channel


class ChannelThreads:
    """Runs functions, each on a thread of its own."""

    def __init__(self) -> None:
        self._functions: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._free = 0  # threads that wait for a function, beyond those that are in the queue

    def start(self, function: Callable[[], None]) -> None:
        """Run a function; RuntimeError where no thread is left for it."""
        with self._lock:
            if self._free:
                self._free -= 1
                self._functions.put(function)
                return
        threading.Thread(target=self._run, args=([function],), name="channel", daemon=True).start()

    def _run(self, first: list[Callable[[], None]]) -> None:
        function = first.pop()  # the thread has its argument as long as it lives
        while True:
            function()
            del function  # so that its channel can be freed
            with self._lock:
                self._free += 1
            try:
                function = self._functions.get(timeout=LINGER)
            except queue.Empty:
                with self._lock:
                    if self._free:  # otherwise there is one for this thread
                        self._free -= 1
                        return
                function = self._functions.get()
