"""Answers: what Python did for a thread that left compiled code, as scheduler.c repeats it for others at the same ip (native/answers.c)."""

from __future__ import annotations

from ctypes import Array

from softgen.eu.thread.block import BLOCK_OFFSETS, ThreadStatus
from softgen.eu.thread.regions import IpJump
from softgen.threads.native.scheduler import FallbackAnswer, SchedulerState

ANSWERS = 32  # fallbacks that scheduler.c can repeat without Python


def add_answer(dispatch: SchedulerState, answers: Array[FallbackAnswer], answer: FallbackAnswer) -> None:
    """Valid until the end of the chunk. What has no room is asked again."""
    count = dispatch.answer_count
    if count < ANSWERS and not (answer.source and any(known.source and known.ip == answer.ip for known in answers[:count])):
        answers[count] = answer
        dispatch.answer_count = count + 1


def jump_answer(control: int, ip: int, jump: IpJump) -> FallbackAnswer:
    """A jump to where a register says; other answers say for each place that it leads to which code goes on."""
    answer = FallbackAnswer(ThreadStatus.ESCAPE, control, ip, control, ip, 1)
    answer.source, answer.addend, answer.masked = BLOCK_OFFSETS["grf"] + jump.source, jump.addend, jump.masked
    return answer
