"""The call-threaded engine (t0): programs linked per generation and cr0, and threads run on them."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from functools import cache
from weakref import WeakKeyDictionary

from softgen.errors import SoftgenError
from softgen.eu import native
from softgen.eu.engine_protocol import AffineRange, CompiledFunction
from softgen.eu.interpreter import DEFAULT_BRANCH_BUDGET, LONG_BRANCH, Interpreter, KernelProgram, RunOutcome
from softgen.eu.thread.block import Context, ThreadStatus
from softgen.eu.thread.state import ThreadState
from softgen.eu.threaded.library import Library
from softgen.eu.threaded.library import library as shared
from softgen.eu.threaded.link import Linked, Linker


class ThreadedPrograms:
    """The linked programs of one generation."""

    linker: type[Linker] = Linker

    def __init__(self, gen: float, library: Library | None = None) -> None:
        self.gen, self.library = gen, library or shared(gen)
        self.lock = threading.Lock()
        self.linked: WeakKeyDictionary[KernelProgram, dict[tuple[int, bool], Linked]] = WeakKeyDictionary()

    def link(self, code: KernelProgram, control: int = 0, entry: int | None = None, messages: bool = True) -> Linked:
        """The program for threads whose cr0.0 is `control`; `entry`: where one of them is, if it is not the start."""
        with self.lock:  # host threads ask for the same program at the same time
            return self._link(code, control, code.start if entry is None else entry, messages)

    def _link(self, code: KernelProgram, control: int, entry: int, messages: bool) -> Linked:
        known = self.linked.setdefault(code, {})
        found = known.get((control, messages))
        if found is None or not found.whole or entry not in found.known and self._is_there(code, entry):
            # Channels may wait for a thread wherever it has been: all of that is linked again, whatever its mode was then.
            entries = frozenset({code.start, entry}).union(*(linked.entries for linked in known.values()))
            linked = self.linker(code, control, self.library, messages).link(entries)
            linked.before = found
            if found is not None:
                found.replaced = True
            found = known[control, messages] = linked
        return found

    def _is_there(self, code: KernelProgram, ip: int) -> bool:
        try:
            code.line(ip)
        except SoftgenError:
            return False
        return True


@cache
def threaded(gen: float) -> ThreadedPrograms:
    return ThreadedPrograms(gen)


class ThreadedEngine:
    """The engine t0. With messages=False every send is a side exit: for threads whose context names no memory."""

    name = "t0"

    def __init__(self, messages: bool = True) -> None:
        self.messages = messages

    def function(self, program: KernelProgram, control: int, simd: int, full: bool = True, entry: int | None = None,
                 payload: tuple[AffineRange, ...] = ()) -> CompiledFunction:  # fmt: skip
        linked = self.threaded(program.gen).link(program, control, entry, self.messages)
        return CompiledFunction(native.imports()["native_threaded"], linked.address, owner=linked, indices=linked.indices)

    def threaded(self, gen: float) -> ThreadedPrograms:
        """What links the kernels of a generation."""
        return threaded(gen)

    def ran(self, program: KernelProgram, instructions: int) -> None:
        """Ignored: t0 does not profile."""

    def holds(self, program: KernelProgram, chosen: CompiledFunction) -> bool:
        return isinstance(chosen.owner, Linked) and chosen.owner.whole and not chosen.owner.replaced

    def settled(self, chosen: CompiledFunction) -> bool:
        """Programs are linked again when threads are found elsewhere in them."""
        return False

    def yield_to_foreground(self) -> None:
        """Nothing is done in the background."""


@cache
def _loop() -> Callable[[int, int], int]:
    """The loop, for a thread of which no instruction touches memory by itself."""
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)(native.imports()["native_threaded"])


def run(thread: ThreadState, code: KernelProgram, limit: int = DEFAULT_BRANCH_BUDGET) -> RunOutcome:
    """As the interpreter's: until the thread ends, waits, or has gone back `limit` times. Messages are the reference's."""
    return drive(Interpreter(thread, code), limit)


def drive(reference: Interpreter, limit: int = DEFAULT_BRANCH_BUDGET) -> RunOutcome:
    """Run a thread whose interpreter executes what has no handler."""
    thread, code, context = reference.thread, reference.code, Context()
    engine = threaded(thread.gen)
    context.budget = limit
    loop = _loop()
    thread.save()
    while not thread.ended:
        linked = engine.link(code, thread.cr0, thread.ip, messages=False)
        context.program = linked.address
        status = loop(thread.block.ctypes.data, ctypes.addressof(context))
        thread.load()
        if status == ThreadStatus.OUT_OF_BUDGET:
            return RunOutcome.OUT_OF_BUDGET
        here = thread.ip
        if not reference.step():
            return RunOutcome.WAITING
        if thread.ip <= here and not thread.ended:
            context.budget -= 1 + (here - thread.ip) // LONG_BRANCH
            if context.budget <= 0:
                return RunOutcome.OUT_OF_BUDGET
        thread.save()
    return RunOutcome.ENDED
