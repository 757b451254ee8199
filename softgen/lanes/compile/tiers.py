"""Functions in two speeds: bytecode that is ready at once, and compiled code that takes its place when it is ready.

A function is compiled in the background once its bytecode has run often; its address stays the same, and both give the same bits. Bytecode
that an earlier process has written is read from the cache (bytecode/kept_programs.py), which takes less than linking code. Where nothing
must change while a program runs (the engines t0 and t1), functions are compiled when they are made (compile_policy.py).
"""

from __future__ import annotations

import gc
import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

from softgen.errors import SoftgenError, Unsupported
from softgen.lanes.bytecode import kept_programs
from softgen.lanes.bytecode.program import BytecodeProgram, library
from softgen.lanes.compile import jit
from softgen.lanes.compile.compile_policy import in_background

HOT = 1_000_000  # operations of bytecode after which compiling a function has paid for itself: a few milliseconds of them
HOT_KEPT = HOT // 4  # the same of bytecode from the cache, where the code may be, too
NUMBER = 8  # bytes
JOB = (1 << 64) - 1  # no program's number
MOST_REPORTS = 64  # read at a time
GAP = 0.25  # seconds in which a processor was free: the program rests; one that is about to end has no such gap
MOST_BUSY = 0.9  # of the time of the others; of a single processor, of half its time


@contextmanager
def uncollected() -> Iterator[None]:
    """Keep the garbage collector away from thousands of objects that are about to be freed: it would look through all others, too."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class TieredFunction:
    """A function by what makes it: `write` makes bytecode, `compile` the code, and `kept` says whether that is in the cache. `form`
    describes it completely (its repr), for bytecode that is kept, too; None: it is not."""

    def __init__(self, name: str, write: Callable[[], BytecodeProgram], compile: Callable[[], jit.LoadedCode],
                 kept: Callable[[], bool], form: object = None) -> None:  # fmt: skip
        self.name, self._compile, self._promoting = name, compile, threading.Lock()
        self.code: jit.LoadedCode | None = None
        self.program: BytecodeProgram | None = None
        hot = HOT
        if in_background():
            described = None if form is None else f"{name} {form!r}"
            if described is not None and (found := kept_programs.load(described)) is not None:
                self.program, hot = found, HOT_KEPT
            elif not kept():
                self.program = self._written(write, described)
        if self.program is None:
            self.code = compile()
        else:
            _worker().watch(self, self.program, hot)

    @staticmethod
    def _written(write: Callable[[], BytecodeProgram], described: str | None) -> BytecodeProgram | None:
        """Bytecode made now, which is kept; None where the compiler knows more."""
        with suppress(Unsupported), uncollected():
            program = write()
            if described is not None:
                in_turn(partial(kept_programs.save, described, program))
            return program
        return None

    @property
    def address(self) -> int:
        if self.code is not None:
            return self.code.address(self.name)
        assert self.program is not None
        return self.program.address

    def promote(self) -> None:
        """Compile the function now, unless that was done."""
        with self._promoting:  # whoever runs the first code keeps it: a second would take its place
            if self.code is None:
                code = self._compile()
                assert self.program is not None
                self.program.become(code.address(self.name))
                self.code = code


class BackgroundCompiler:
    """The host thread that compiles functions whose bytecode is hot; the interpreter reports their numbers through a pipe."""

    def __init__(self) -> None:
        self._watched: dict[int, TieredFunction] = {}
        self._jobs: deque[Callable[[], None]] = deque()
        self._later: deque[Callable[[], None]] = deque()
        self._hot, self._reports = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._reports, False)
        library().bytecode_report_to(self._reports)
        self.errors: list[SoftgenError] = []
        threading.Thread(target=self._run, name="compiling functions", daemon=True).start()

    def watch(self, function: TieredFunction, program: BytecodeProgram, hot: int) -> None:
        """Compile a function after so many operations of its bytecode."""
        self._watched[int(program.record.number)] = function
        program.record.hot = max(1, hot // max(program.size, 1))

    def submit(self, job: Callable[[], None], later: bool = False) -> None:
        """Do something else when it is its turn; `later`: when a processor is free."""
        (self._later if later else self._jobs).append(job)
        with suppress(BlockingIOError):  # whatever fills the pipe wakes the thread, too
            os.write(self._reports, JOB.to_bytes(NUMBER, "little"))

    def _run(self) -> None:
        """Functions that are reported come before the next job: threads run their bytecode now."""
        waiting = select.poll()
        waiting.register(self._hot, select.POLLIN)
        while True:
            if self._told(waiting):
                reports = os.read(self._hot, MOST_REPORTS * NUMBER)
                if not reports:
                    return
                for at in range(0, len(reports), NUMBER):
                    if (function := self._watched.pop(int.from_bytes(reports[at : at + NUMBER], "little"), None)) is not None:
                        self._try(function.promote)
            if self._jobs:
                self._try(self._jobs.popleft())

    def _told(self, waiting: select.poll) -> bool:
        """Waits while there is nothing to do; whether the pipe has something. Where a processor was free, it is the turn of a job that
        could wait for one."""
        if self._jobs or not self._later:
            return bool(waiting.poll(0 if self._jobs else None))
        began, used = time.monotonic(), time.process_time()
        if waiting.poll(1000 * GAP):
            return True
        enough = MOST_BUSY * max(len(os.sched_getaffinity(0)) - 1, 0.5)
        if time.process_time() - used < enough * (time.monotonic() - began):
            self._jobs.append(self._later.popleft())
        return False

    def _try(self, work: Callable[[], None]) -> None:
        try:
            work()
        except SoftgenError as error:  # it stays bytecode
            self.errors.append(error)


def in_turn(job: Callable[[], None], later: bool = False) -> None:
    """Do something on the host thread that compiles; `later`: when a processor is free."""
    _worker().submit(job, later)


_workers: list[BackgroundCompiler] = []
_making = threading.Lock()


def _worker() -> BackgroundCompiler:
    with _making:
        if not _workers:
            _workers.append(BackgroundCompiler())
        return _workers[0]


os.register_at_fork(after_in_child=_workers.clear)  # threads do not survive it
