"""Who runs a snippet: the reference, an instruction at a time, or a compiling engine, an instruction or a stretch at a time."""

from __future__ import annotations

from typing import Protocol

from softgen.eu import engine
from softgen.eu.interpreter import Interpreter, KernelProgram
from softgen.eu.thread.block import CHANNELS, Context, ThreadStatus
from softgen.eu.translate.engine import Translator

STRETCH = 1000  # backward branches until somebody looks at limits


class Runner(Protocol):
    def step(self) -> bool:
        """Goes on; False where the thread waits for a notification."""
        ...


class Compiled:
    """A compiling engine on a snippet's thread; what it leaves is the reference's."""

    def __init__(self, name: str, interpreter: Interpreter, code: bytes, single: bool) -> None:
        """`code` ends where the snippet does; `single`: every instruction is seen by itself."""
        self.interpreter, self.thread, self.single = interpreter, interpreter.thread, single
        known = interpreter.code
        self.program = KernelProgram(known.gen, code, known.start, known.name)
        if name == "t1":
            self.engine: engine.Engine = Translator(observe=True, messages=False, anywhere=single)
        else:
            self.engine = engine.engine(name, messages=False)

    def step(self) -> bool:
        thread = self.thread
        executed, ip = thread.executed, thread.ip
        program = self._alone(ip) if self.single else self.program
        made = self.engine.function(program, thread.cr0, CHANNELS, False, ip)
        status = engine.call(made, thread, Context(budget=1 if self.single else STRETCH))
        if status is ThreadStatus.WAITING:
            return False
        if status is ThreadStatus.ESCAPE and (thread.executed, thread.ip) == (executed, ip):
            return self.interpreter.step()
        return True

    def _alone(self, ip: int) -> KernelProgram:
        """One instruction, with nothing before or behind it."""
        known = self.program
        start = ip - known.start
        return KernelProgram(known.gen, known.code[start : start + known.line(ip).size], ip, known.name)
