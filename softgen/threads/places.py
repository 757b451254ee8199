"""Error messages about threads, in the words that all engines use."""

from __future__ import annotations

from softgen.errors import SoftgenError
from softgen.eu.interpreter import KernelProgram
from softgen.eu.isa.instruction import Instruction
from softgen.eu.thread.state import ThreadState
from softgen.threads.dispatch import ThreadDispatch
from softgen.threads.programs import DispatchProgram

TIME_IS_UP = "time is up: "


def text(inst: Instruction) -> str:
    """An instruction as assembly, in the generation's usual dialect."""
    from softgen.eu.text import dialect  # imported late: only error messages need text
    from softgen.eu.text.iga import format as iga_format
    from softgen.eu.text.mesa import format as mesa_format

    writers = {"iga": iga_format.text, "mesa": mesa_format.text}
    return " ".join(writers[dialect.select_dialect(None, inst.gen)](inst).split())


def instruction_at(program: KernelProgram, ip: int) -> str:
    """An address in a kernel, with the instruction there."""
    held = program.routine(ip) or program if isinstance(program, DispatchProgram) else program
    return f"{held.title}+{ip - held.start:#x}: {text(held.line(ip).instruction)}"


def thread_at(dispatch: ThreadDispatch, group: int, number: int, program: KernelProgram, ip: int) -> str:
    """A thread of a group and the instruction it is at."""
    return f"thread {number} of group {dispatch.group_name(group)}, {instruction_at(program, ip)}"


def accessed(program: KernelProgram, sender: object, text: str) -> str:
    """A message's remark, with the instruction that sent the message."""
    return f"{instruction_at(program, sender.ip)}: {text}" if isinstance(sender, ThreadState) else text


def deadlock(place: str, left: int, threads: int) -> SoftgenError:
    return SoftgenError(f"{place} waits for a barrier that others of its group will not reach; {left} of {threads} threads are left")


def timed_out(place: str) -> SoftgenError:
    return SoftgenError(f"{TIME_IS_UP}{place}")


def timed_out_before(dispatch: ThreadDispatch, group: int, program: KernelProgram) -> SoftgenError:
    return SoftgenError(f"time is up before group {dispatch.group_name(group)} of {program.title}")
