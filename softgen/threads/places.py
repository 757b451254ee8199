"""Error messages about threads, in the words that all engines use."""

from __future__ import annotations

from typing import TypeVar

from softgen.errors import SoftgenError
from softgen.eu.interpreter import KernelProgram
from softgen.eu.isa.instruction import Instruction
from softgen.eu.thread.state import ThreadState
from softgen.position import Position
from softgen.threads.dispatch import ThreadDispatch
from softgen.threads.programs import DispatchProgram

ErrorT = TypeVar("ErrorT", bound=SoftgenError)
TIME_IS_UP = "time is up: "


def text(inst: Instruction) -> str:
    """An instruction as assembly, in the generation's usual dialect."""
    from softgen.eu.text import dialect  # imported late: only error messages need text
    from softgen.eu.text.iga import format as iga_format
    from softgen.eu.text.mesa import format as mesa_format

    writers = {"iga": iga_format.text, "mesa": mesa_format.text}
    return " ".join(writers[dialect.select_dialect(None, inst.gen)](inst).split())


def instruction_at(program: KernelProgram, ip: int) -> str:
    """An address in a kernel, with the instruction there; the kernel alone where it has none, as before a thread's first instruction."""
    held = program.routine(ip) or program if isinstance(program, DispatchProgram) else program
    try:
        return f"{held.title}+{ip - held.start:#x}: {text(held.line(ip).instruction)}"
    except SoftgenError:
        return held.title


class ThreadPlace(str):
    """The words for a thread and the instruction it is at, with its position and the kernel."""

    position: Position
    program: KernelProgram


def thread_at(dispatch: ThreadDispatch, group: int, number: int, program: KernelProgram, ip: int,
              executed: int | None = None) -> ThreadPlace:  # fmt: skip
    """A thread of a group and the instruction it is at, after so many instructions."""
    made = ThreadPlace(f"thread {number} of group {dispatch.group_name(group)}, {instruction_at(program, ip)}")
    inside = 0 <= ip - program.start  # not in a system routine before it
    made.position = Position(None, None, dispatch.stage, group, number, ip - program.start if inside else None, executed)
    made.program = program
    return made


def placed(error: ErrorT, place: str) -> ErrorT:
    """An error with the position of a place, where it has none."""
    if error.position is None and isinstance(place, ThreadPlace):
        error.position = place.position
    return error


def accessed(program: KernelProgram, sender: object, text: str) -> str:
    """A message's remark, with the instruction that sent the message."""
    return f"{instruction_at(program, sender.ip)}: {text}" if isinstance(sender, ThreadState) else text


def deadlock(place: str, left: int, threads: int) -> SoftgenError:
    text = f"{place} waits for a barrier that others of its group will not reach; {left} of {threads} threads are left"
    return placed(SoftgenError(text), place)


def timed_out(place: str) -> SoftgenError:
    return placed(SoftgenError(f"{TIME_IS_UP}{place}"), place)


def timed_out_before(dispatch: ThreadDispatch, group: int, program: KernelProgram) -> SoftgenError:
    error = SoftgenError(f"time is up before group {dispatch.group_name(group)} of {program.title}")
    error.position = Position(None, None, dispatch.stage, group)
    return error
