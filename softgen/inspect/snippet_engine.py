"""Engines for snippets: the reference runs one instruction at a time, a compiling engine one instruction or a stretch of code."""

from __future__ import annotations

from typing import Protocol

from softgen.eu import engine
from softgen.eu.engine_protocol import CompilerEngine
from softgen.eu.interpreter import Interpreter, KernelProgram
from softgen.eu.thread.block import CHANNELS, Context, ThreadStatus
from softgen.eu.translate.engine import Translator

STRETCH = 1000  # backward branches between checks of the limits


class Runner(Protocol):
    def step(self) -> bool:
        """Run on; False if the thread waits for a notification."""
        ...


class Compiled:
    """A compiling engine on a snippet's thread, with the reference as fallback."""

    def __init__(self, name: str, interpreter: Interpreter, code: bytes, single: bool) -> None:
        """`code` ends with the snippet; `single`: run one instruction per step."""
        self.interpreter, self.thread, self.single = interpreter, interpreter.thread, single
        known = interpreter.code
        self.program = KernelProgram(known.gen, code, known.start, known.name)
        if name == "t1":
            self.engine: CompilerEngine = Translator(observe=True, messages=False, anywhere=single)
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
        """A program of one instruction."""
        known = self.program
        start = ip - known.start
        return KernelProgram(known.gen, known.code[start : start + known.line(ip).size], ip, known.name)
