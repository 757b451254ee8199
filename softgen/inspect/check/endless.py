"""Proof that a group of threads never ends: its whole state returns, and it has stored nothing in between.

Threads whose registers, masks and local memory are as they were before, and which no one else can reach, do the same again. A group that
only counts for long is not proved to be endless, nor one that stores. Of a draw one thread is looked at, and proved to be endless where it
sends no message in between: other threads of the draw may write what it reads.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from softgen.errors import SoftgenError
from softgen.eu.interpreter import SENDS, Interpreter
from softgen.eu.thread.block import BLOCK_OFFSETS, ControlBlock
from softgen.inspect.check.finding import ERROR, Finding
from softgen.inspect.check.observed import ObservedDispatcher, observe
from softgen.inspect.check.replays import PATIENCE, Opener
from softgen.inspect.session.execution import CaptureExecution
from softgen.position import Position
from softgen.shared_functions.dataport.watched import MemoryAccess
from softgen.threads import places
from softgen.threads.bindings import dispatch_bindings
from softgen.threads.dispatch import DispatchContext, Finished, ThreadDispatch, TimedOut, never
from softgen.threads.programs import load
from softgen.threads.reference import ReferenceGroup
from softgen.threads.world import PLAIN

MOST_STEPS = 4000  # instructions on the interpreter, some seconds
EXECUTED = BLOCK_OFFSETS["control"] + ControlBlock.executed.offset
COUNTED = range(EXECUTED, EXECUTED + ControlBlock.executed.size)  # bytes of a block that count instructions


class ProvingGroup:
    """A group on the interpreter, instruction by instruction in turns, until its state returns."""

    def __init__(self, context: DispatchContext, dispatch: ThreadDispatch, number: int) -> None:
        self.stores = 0
        program = load(context, dispatch)
        self.group = ReferenceGroup(context, dispatch, number, program, dispatch_bindings(context, dispatch), watch=self._note)

    def _note(self, access: MemoryAccess) -> None:
        self.stores += access.kind != "read" and (not access.local or access.kind == "atomic")

    def state(self) -> bytes:
        """A digest of all threads; local memory is part of it as far as they have written it."""
        found = hashlib.blake2b(digest_size=16)
        for thread in self.group.threads:
            thread.save()
            data = bytearray(thread.block.tobytes())
            data[COUNTED.start : COUNTED.stop] = bytes(len(COUNTED))
            found.update(data)
        found.update(self.group.local.tobytes())
        return found.digest()

    def run(self) -> tuple[int, str] | None:
        """After how many rounds the state returns, and where a thread is then; None where that is not seen (Brent's cycle detection)."""
        held, stores, power, length, steps = self.state(), 0, 1, 0, 0
        while steps < MOST_STEPS:
            moved = 0
            for runner in self.group.runners:
                if not runner.thread.ended:
                    moved += runner.step()
            steps += max(moved, 1)
            if not moved:
                return None
            length += 1
            now = self.state()
            if now == held and self.stores == stores:
                runner = next(runner for runner in self.group.runners if not runner.thread.ended)
                return length, places.instruction_at(runner.code, runner.thread.ip)
            if length == power or self.stores != stores:
                held, stores, power, length = now, self.stores, 2 * power, 0
        return None


class EndlessDispatcher(ObservedDispatcher):
    """Tries to prove that the group of a position never ends, when its dispatch comes."""

    def __init__(self, engine: str, suspect: Position, position: Callable[[], Position]) -> None:
        super().__init__(engine, PLAIN)
        self.suspect, self.position = suspect, position
        self.finding: Finding | None = None

    def run(self, context: DispatchContext, dispatch: ThreadDispatch, timed_out: TimedOut = never) -> Iterable[Finished]:
        here, number = self.position(), self.suspect.group or 0
        if (here.submission, here.command) != (self.suspect.submission, self.suspect.command) or number >= dispatch.groups:
            return super().run(context, dispatch, timed_out)
        for group in range(number):  # groups before it may have written what it reads
            for _ in super().run(context, dispatch.only(group), timed_out):
                pass
        proof = ProvingGroup(context, dispatch, number).run()
        if proof is not None:
            rounds, where = proof
            threads = dispatch.group_size(number)
            message = f"endless: {threads} threads of group {number} are as they were {rounds} instructions of each before"
            details = (where, "they have stored nothing in between, and nothing else runs that could write what they read")
            self.finding = Finding("endless", ERROR, message, load(context, dispatch).title, self.suspect, (), details)
        raise SoftgenError("the rest is not of interest")


class ProvingThread:
    """A thread of a draw on the interpreter, until its state returns."""

    def __init__(self, runner: Interpreter) -> None:
        self.runner = runner

    def state(self) -> bytes:
        self.runner.thread.save()
        data = bytearray(self.runner.thread.block.tobytes())
        data[COUNTED.start : COUNTED.stop] = bytes(len(COUNTED))
        return bytes(data)

    def run(self) -> int | None:
        """After how many instructions the state returns with no message in between; None where that is not seen."""
        thread, code = self.runner.thread, self.runner.code
        held, power, length = self.state(), 1, 0
        for _ in range(MOST_STEPS):
            sends = code.line(thread.ip).instruction.opcode in SENDS
            if thread.ended or not self.runner.step() or thread.ended:
                return None
            length += 1
            now = self.state()
            if now == held and not sends:
                return length
            if length == power or sends:
                held, power, length = now, 2 * power, 0
        return None


def prove_thread(opener: Opener, engine: str, suspect: Position) -> Finding | None:
    """A proof that a thread of a draw never ends."""
    assert suspect.submission is not None and suspect.command is not None
    run, wanted = CaptureExecution(opener(), engine, 1), replace(suspect, offset=None, instructions=None)
    if not run.run_to(suspect.submission, suspect.command):
        return None
    control = run.offer_threads(lambda offered: offered.position in wanted)
    try:
        offered = control.next()
        length = ProvingThread(offered.runner).run() if offered is not None else None
        if offered is None or length is None:
            return None
        code = offered.runner.code
        message = f"endless: the thread is as it was {length} instructions before"
        details = (places.instruction_at(code, offered.runner.thread.ip), "it has sent no message in between, so that nothing can end it")
        return Finding("endless", ERROR, message, code.title, offered.here, (), details)
    finally:
        run.end_control()


def prove_endless(opener: Opener, engine: str, suspect: Position, seconds: float = PATIENCE) -> Finding | None:
    """A proof that the group at a position of a capture never ends; None where there is none, or where what comes before takes too long."""
    if suspect.stage != "cs":
        return prove_thread(opener, engine, suspect)
    end = time.monotonic() + seconds

    def late() -> bool:
        return time.monotonic() > end

    return observe(opener(), lambda position: EndlessDispatcher(engine, suspect, position), late, suspect.submission).finding
