"""Answers: what Python did for a thread that left compiled code, as scheduler.c repeats it for others at the same ip (native/answers.c).

Those that depend on the program and the engine alone are kept with the program: the next dispatch of the kernel starts with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from ctypes import Array
from typing import NamedTuple

from softgen.eu.engine_protocol import CompiledFunction
from softgen.eu.thread.block import BLOCK_OFFSETS, ThreadStatus
from softgen.eu.thread.regions import IpJump
from softgen.threads.native.scheduler import FallbackAnswer, SchedulerState

ANSWERS = 32  # fallbacks that scheduler.c can repeat without Python


class KnownAnswer(NamedTuple):
    """An answer that holds for later dispatches of a program, too."""

    answer: FallbackAnswer
    chosen: CompiledFunction | None  # the code that a thread goes on with; None: other answers say


def add_answer(dispatch: SchedulerState, answers: Array[FallbackAnswer], answer: FallbackAnswer) -> bool:
    """Valid until the end of the dispatch. What has no room is asked again: False."""
    count = dispatch.answer_count
    if count >= ANSWERS or answer.source and any(known.source and known.ip == answer.ip for known in answers[:count]):
        return False
    answers[count] = answer
    dispatch.answer_count = count + 1
    return True


def recall_answers(known: Iterable[KnownAnswer], prepare: Callable[[CompiledFunction], None], dispatch: SchedulerState,
                   answers: Array[FallbackAnswer], functions: dict[tuple[int, int], CompiledFunction]) -> None:  # fmt: skip
    """Begins a dispatch with the answers of earlier ones; `prepare` resolves the surfaces of their code."""
    dispatch.answer_count = 0
    for answer, chosen in known:
        if chosen is not None:
            prepare(chosen)
            functions[chosen.address, chosen.program] = chosen
        add_answer(dispatch, answers, answer)


def jump_answer(control: int, ip: int, jump: IpJump) -> FallbackAnswer:
    """A jump to where a register says; other answers say for each place that it leads to which code goes on."""
    answer = FallbackAnswer(ThreadStatus.ESCAPE, control, ip, control, ip, 1)
    answer.source, answer.addend, answer.masked = BLOCK_OFFSETS["grf"] + jump.source, jump.addend, jump.masked
    return answer
