"""The registry of engines by name, and one thread run on any of them.

reference: the interpreter. t0: call-threaded, one compiled handler per instruction. t1: the whole kernel as one function.
auto: starts on t0 and continues on t1 once a kernel has proved hot.

    engine("t1").function(program, control=0, simd=16)      # -> CompiledFunction, for the scheduler of threads
    run("t1", thread, program, limit)                       # one thread, as interpreter.run does
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from softgen.errors import SoftgenError
from softgen.eu import interpreter
from softgen.eu.engine_protocol import CompiledFunction, CompilerEngine
from softgen.eu.interpreter import DEFAULT_BRANCH_BUDGET, LONG_BRANCH, Interpreter, KernelProgram, RunOutcome
from softgen.eu.thread.block import CHANNELS, Context, ThreadStatus
from softgen.eu.thread.state import ThreadState

NAMES = ("reference", "t0", "t1", "auto")
OUTCOMES = {ThreadStatus.ENDED: RunOutcome.ENDED, ThreadStatus.WAITING: RunOutcome.WAITING,
            ThreadStatus.OUT_OF_BUDGET: RunOutcome.OUT_OF_BUDGET}  # fmt: skip


def engine(name: str, messages: bool = True) -> CompilerEngine:
    """A compiling engine by name. Engines are imported on first use: llvmlite costs a tenth of a second."""
    if name == "t1":
        from softgen.eu.translate.engine import Translator

        return Translator(messages=messages)
    if name == "t0":
        from softgen.eu.threaded.engine import ThreadedEngine

        return ThreadedEngine(messages)
    if name == "auto":
        from softgen.eu.promotion import PromotingEngine

        return PromotingEngine()
    raise SoftgenError(f"there is no compiling engine {name!r}; engines are {' '.join(NAMES)}")


def run(name: str, thread: ThreadState, program: KernelProgram, limit: int = DEFAULT_BRANCH_BUDGET,
        compiler: CompilerEngine | None = None) -> RunOutcome:  # fmt: skip
    """Run one thread until it ends, waits, or has taken `limit` backward branches. The thread's own handlers answer its messages: a
    `compiler` that is passed in must have been made with messages=False."""
    if name == "reference":
        return interpreter.run(thread, program, limit)
    return drive(thread, program, limit, (compiler or engine(name, messages=False)).function)


def drive(thread: ThreadState, program: KernelProgram, limit: int, function: Callable[..., CompiledFunction]) -> RunOutcome:
    """Alternate between compiled code and, at side exits, the interpreter."""
    interpreted = Interpreter(thread, program)
    context = Context(budget=limit)
    compiled = None
    while True:
        if compiled is None or not compiled.steady:
            compiled = function(program, thread.cr0, CHANNELS, False, thread.ip)
        status = call(compiled, thread, context)
        if status in OUTCOMES:
            return OUTCOMES[status]
        if status is not ThreadStatus.ESCAPE:
            continue
        before = thread.ip
        if not interpreted.step():
            return RunOutcome.WAITING
        if thread.ended:
            return RunOutcome.ENDED
        if thread.ip <= before:
            context.budget -= 1 + (before - thread.ip) // LONG_BRANCH
            if context.budget <= 0:
                return RunOutcome.OUT_OF_BUDGET


def call(compiled: CompiledFunction, thread: ThreadState, context: Context) -> ThreadStatus:
    """Call compiled code once for a thread."""
    context.program = compiled.program
    function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)(compiled.address)
    thread.save()
    status = ThreadStatus(function(thread.block.ctypes.data, ctypes.addressof(context)))
    thread.load()
    return status
