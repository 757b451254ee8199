"""Groups that take turns on the interpreter, for a bounded number of instructions: what takes longer is not looked at."""

from __future__ import annotations

from dataclasses import dataclass

from softgen.eu.interpreter import SENDS, Interpreter
from softgen.threads.dispatch import TimedOut
from softgen.threads.programs import DispatchProgram
from softgen.threads.reference import ReferenceGroup


@dataclass
class Turns:
    """Groups of a dispatch at the same time; `messages`: a thread's turn ends after a message, not only where it waits."""

    groups: list[ReferenceGroup]
    program: DispatchProgram
    messages: bool = False

    def run(self, most: int, timed_out: TimedOut) -> int | None:
        """To the end of all threads; how many instructions. None: there are more than `most`, or threads wait for ever."""
        left, all_done = [runner for group in self.groups for runner in group.runners], 0
        while left:
            done = 0
            for runner in left:
                done += self._turn(runner, most - all_done - done)
            all_done += done
            left = [runner for runner in left if not runner.thread.ended]
            if left and (not done or all_done >= most or timed_out()):
                return None
        return all_done

    def _turn(self, runner: Interpreter, most: int) -> int:
        """How many instructions a thread does in its turn. One that waits does none."""
        before = runner.thread.executed
        while not runner.thread.ended and runner.thread.executed - before < most:
            sends = self.messages and self.program.line(runner.thread.ip).instruction.opcode in SENDS
            if not runner.step() or sends:
                break
        return int(runner.thread.executed - before)
