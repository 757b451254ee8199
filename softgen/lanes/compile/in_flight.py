"""Calls into LLVM that are in flight when the process ends or forks: both wait for them.

A process that ends runs the destructors of its libraries while daemon threads go on: a compilation under way would find LLVM's tables
gone, and crash a program that has done its work. So Python's exit waits for calls in flight, and no other thread begins a new one.

A child process has none of the other threads, but all they had: locks that nobody gives back, and modules that were being changed, which
Python frees with the threads before anything else is done. So os.fork() waits, too.
"""

from __future__ import annotations

import atexit
import os
import threading
from contextlib import AbstractContextManager, ContextDecorator, nullcontext


class InFlight(ContextDecorator):
    """`@in_flight` before a function that makes such calls, which do not nest. A thread that makes one while another thread ends the
    process ends, too. `lock`: what else a fork must not find taken, by calls that take little time."""

    def __init__(self) -> None:
        self.lock: AbstractContextManager[object] = nullcontext()
        self._reset()
        os.register_at_fork(before=self._before_fork, after_in_parent=self._after_fork, after_in_child=self._in_child)

    def _reset(self) -> None:
        self._changed, self._calls = threading.Condition(), list[int]()
        self._ending: threading.Thread | None = None
        self._forks = False

    def _before_fork(self) -> None:
        """Wait for the calls of other threads; none begins one before the fork is done."""
        self._changed.acquire()
        self._forks = True
        self._changed.wait_for(lambda: not set(self._calls) - {threading.get_ident()})
        self._held = self.lock
        self._held.__enter__()

    def _after_fork(self) -> None:
        self._held.__exit__(None, None, None)
        self._forks = False
        self._changed.notify_all()
        self._changed.release()

    def _in_child(self) -> None:
        self._after_fork()
        self._reset()

    def wait_at_exit(self) -> None:
        atexit.register(self.end)

    def __enter__(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._forks)
            if self._ending not in (None, threading.current_thread()):
                raise SystemExit
            self._calls.append(threading.get_ident())

    def __exit__(self, *error: object) -> None:
        with self._changed:
            if threading.get_ident() in self._calls:  # unless this is a child process, and the call began before it
                self._calls.remove(threading.get_ident())
            self._changed.notify_all()

    def end(self) -> None:
        """Wait for the calls in flight; the process ends after that."""
        with self._changed:
            self._ending = threading.current_thread()
            self._changed.wait_for(lambda: not self._calls)
