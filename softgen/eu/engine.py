"""Engines: who runs threads. The reference is Python; t0 calls a compiled handler for each instruction; t1 is the whole kernel as one
function; auto begins with t0 and goes on with t1 when a kernel has proved hot.

    engine("t1").function(program, control=0, simd=16)      # -> Function, for the scheduler of thread groups
    run("t1", thread, program, limit)                       # one thread, as interpreter.run does
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from softgen.errors import SoftgenError
from softgen.eu import interpreter, native
from softgen.eu.interpreter import DEFAULT_BRANCH_BUDGET, Interpreter, KernelProgram, RunOutcome
from softgen.eu.thread.block import CHANNELS, Context, ThreadStatus
from softgen.eu.thread.state import ThreadState

NAMES = ("reference", "t0", "t1", "auto")
OUTCOMES = {
    ThreadStatus.ENDED: RunOutcome.ENDED,
    ThreadStatus.WAITING: RunOutcome.WAITING,
    ThreadStatus.OUT_OF_BUDGET: RunOutcome.OUT_OF_BUDGET,
}


class Function(NamedTuple):
    """Compiled code that runs a thread (block.py)."""

    address: int
    program: int = 0  # for context.program
    clean: bool = False  # registers are as they were when a thread ends on its first call
    steady: bool = False  # goes on being right when a thread changes its cr0
    joint: bool = False  # runs several threads, one behind the other (block.py)
    needs: tuple[tuple[int, int], ...] | None = None  # bytes of a block (from, how many) that must be as a thread starts; none: all
    owner: object = None  # lives as long as the code is used
    indices: frozenset[int] = frozenset()  # binding table entries that its messages name


@dataclass(frozen=True)
class Row:
    """Elements of general registers, side by side from byte `start` on, each `step` more than the one before it, modulo their width."""

    start: int
    size: int  # bytes of an element
    count: int
    step: int
    highest: int | None = None  # none of them is more, as an unsigned number

    @property
    def end(self) -> int:
        return self.start + self.size * self.count


class Engine(Protocol):
    name: str

    def function(self, program: KernelProgram, control: int, simd: int, full: bool = True, entry: int | None = None,
                 payload: tuple[Row, ...] = ()) -> Function:  # fmt: skip
        """Code for threads with this cr0.0 and so many channels; `full`: all of them are on in every thread; `entry`: where one of them
        is, if it is not at the start; `payload`: what lies evenly in registers when any of them starts."""
        ...

    def ran(self, program: KernelProgram, instructions: int) -> None:
        """So many instructions of a kernel were executed."""
        ...


class Threaded:
    """t0. Without `messages`, the reference carries them out: for threads that have no memory of their own around them."""

    name = "t0"

    def __init__(self, messages: bool = True) -> None:
        self.messages = messages

    def function(self, program: KernelProgram, control: int, simd: int, full: bool = True, entry: int | None = None,
                 payload: tuple[Row, ...] = ()) -> Function:  # fmt: skip
        from softgen.eu.threaded.engine import threaded

        engine = threaded(program.gen)
        linked = engine.link(program, control, entry, self.messages)
        return Function(native.imports()["native_threaded"], linked.address, owner=linked, indices=linked.indices)

    def ran(self, program: KernelProgram, instructions: int) -> None:
        """Nothing to learn from that."""


def engine(name: str, messages: bool = True) -> Engine:
    """An engine that compiles, by name."""
    if name == "t1":
        from softgen.eu.translate.engine import Translator

        return Translator(messages=messages)
    if name == "t0":
        return Threaded(messages)
    if name == "auto":
        from softgen.eu.promotion import Promoting

        return Promoting()
    raise SoftgenError(f"there is no compiling engine {name!r}; engines are {' '.join(NAMES)}")


def run(
    name: str, thread: ThreadState, program: KernelProgram, limit: int = DEFAULT_BRANCH_BUDGET, made: Engine | None = None
) -> RunOutcome:
    """Runs one thread on its own until it ends, waits, or has spent its backward branches. Its messages go where the thread says; an
    engine that is given must leave them alone."""
    if name == "reference":
        return interpreter.run(thread, program, limit)
    return drive(thread, program, limit, (made or engine(name, messages=False)).function)


def drive(thread: ThreadState, program: KernelProgram, limit: int, function: Callable[..., Function]) -> RunOutcome:
    """Calls compiled code for a thread, and the reference for what it leaves."""
    interpreted = Interpreter(thread, program)
    context = Context(budget=limit)
    made = None
    while True:
        if made is None or not made.steady:
            made = function(program, thread.cr0, CHANNELS, False, thread.ip)
        status = call(made, thread, context)
        if status in OUTCOMES:
            return OUTCOMES[status]
        before = thread.ip
        if status is ThreadStatus.ESCAPE and not interpreted.step():
            return RunOutcome.WAITING
        if thread.ended:
            return RunOutcome.ENDED
        if thread.ip < before:
            context.budget -= 1
            if context.budget <= 0:
                return RunOutcome.OUT_OF_BUDGET


def call(made: Function, thread: ThreadState, context: Context) -> ThreadStatus:
    """One call of compiled code."""
    context.program = made.program
    function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)(made.address)
    thread.save()
    status = ThreadStatus(function(thread.block.ctypes.data, ctypes.addressof(context)))
    thread.load()
    return status
