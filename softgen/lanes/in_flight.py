"""Calls into LLVM that are in flight when the process ends: its end waits for them.

A process that ends runs the destructors of its libraries while daemon threads go on: a compilation under way would find LLVM's tables
gone, and crash a program that has done its work. So Python's exit waits for calls in flight, and no other thread begins a new one.
"""

from __future__ import annotations

import atexit
import os
import threading
from contextlib import ContextDecorator


class InFlight(ContextDecorator):
    """`@in_flight` before a function that makes such calls, which do not nest. A thread that makes one while another thread ends the
    process ends, too."""

    def __init__(self) -> None:
        self._reset()
        os.register_at_fork(after_in_child=self._reset)  # threads do not survive it

    def _reset(self) -> None:
        self._changed, self._calls = threading.Condition(), 0
        self._ending: threading.Thread | None = None

    def wait_at_exit(self) -> None:
        atexit.register(self.end)

    def __enter__(self) -> None:
        with self._changed:
            if self._ending not in (None, threading.current_thread()):
                raise SystemExit
            self._calls += 1

    def __exit__(self, *error: object) -> None:
        with self._changed:
            self._calls -= 1
            self._changed.notify_all()

    def end(self) -> None:
        """Wait for the calls in flight; the process ends after that."""
        with self._changed:
            self._ending = threading.current_thread()
            self._changed.wait_for(lambda: not self._calls)
