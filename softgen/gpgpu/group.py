"""A thread group on the reference: its threads run in turns on one host thread, with shared local memory and a barrier of their own.

A thread runs until it ends, waits, or has gone round its loops often enough for others to have a turn. When all that are left wait for
notifications nobody will send, that is an error and not a hang.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from softgen.bits import catalogue
from softgen.errors import GpuFault, SoftgenError
from softgen.eu.encoding.program import LONGEST
from softgen.eu.interpreter import Interpreter, KernelProgram, RunOutcome
from softgen.eu.isa.instruction import Instruction
from softgen.eu.thread.state import ThreadState
from softgen.gpgpu.walker import Done, Plan, Spent, Start, Surroundings, starts
from softgen.shared_functions.dataport import DataPort, LocalMemory, Surfaces
from softgen.shared_functions.gateway import Gateway
from softgen.shared_functions.sampler import SamplerPort, Samplers
from softgen.shared_functions.spawner import Spawner

TURN = 500  # backward branches a thread may take before others have a turn
NOTIFICATION = 0  # the register of n0 that barriers count in (public Intel PRM, message gateway)


def run(around: Surroundings, plan: Plan, spent: Spent = lambda: False, program: KernelProgram | None = None) -> Iterator[Done]:
    """Every group of a dispatch, in order. `spent` says when time is up."""
    program = program or load(around, plan.kernel)
    surfaces = Surfaces(around.generation, around.space, around.bases, plan.binding_table)
    surfaces.tell = lambda sender, index, what: around.tell(accessed(program, sender, what))
    for group in plan.groups():
        if spent():
            raise too_late(group, program)
        yield Group(around, plan, group, program, surfaces).run(spent)


def load(around: Surroundings, kernel: int) -> KernelProgram:
    address, held = code(around, kernel)
    return KernelProgram(around.generation.number, held, kernel, f"kernel {address:#x}")


def code(around: Surroundings, kernel: int) -> tuple[int, bytes]:
    """Where a kernel is, and the bytes that stand there now; where it ends nobody says."""
    address = around.address("instruction", kernel)
    held = around.space.extent(address, LONGEST)
    if not held:
        raise GpuFault(address, "instruction fetch", around.space.name)
    return address, around.space.read(address, held)


def text(instruction: Instruction) -> str:
    """An instruction in words, for messages."""
    from softgen.eu.text import dialect  # only who has something to complain about needs them
    from softgen.eu.text.iga import format as iga_format  # only who has something to complain about needs them
    from softgen.eu.text.mesa import format as mesa_format  # only who has something to complain about needs them

    writers = {"iga": iga_format.text, "mesa": mesa_format.text}
    return " ".join(writers[dialect.select_dialect(None, instruction.gen)](instruction).split())


def set_mode(thread: ThreadState, single_flow: bool, alternate: bool, rounding: int) -> None:
    """The interface descriptor's part of cr0."""
    layout = catalogue.layout("EU_CONTROL_REGISTER", thread.gen)
    control = layout.pack(single_program_flow=single_flow, alternate_float_mode=alternate, rounding_mode=rounding)
    thread.dwords("cr")[: layout.dwords] = control


# -- words that all engines use --------------------------------------------------------------------------------------


def where(code: KernelProgram, ip: int) -> str:
    """A place in a kernel, with the instruction that stands there."""
    return f"{code.title}+{ip - code.start:#x}: {text(code.line(ip).instruction)}"


def place(number: int, group: tuple[int, int, int], code: KernelProgram, ip: int) -> str:
    return f"thread {number} of group {group}, {where(code, ip)}"


def accessed(code: KernelProgram, sender: object, what: str) -> str:
    """What a thread's message did, with its place."""
    return f"{where(code, sender.ip)}: {what}" if isinstance(sender, ThreadState) else what


def stuck(place: str, left: int, threads: int) -> SoftgenError:
    what = "waits for a barrier that others of its group will not reach"
    return SoftgenError(f"{place} {what}; {left} of {threads} threads are left")


def late(place: str) -> SoftgenError:
    return SoftgenError(f"time is up: {place}")


def too_late(group: tuple[int, int, int], code: KernelProgram) -> SoftgenError:
    return SoftgenError(f"time is up before group {group} of {code.title}")


# -- the reference ---------------------------------------------------------------------------------------------------


class Group:
    def __init__(self, around: Surroundings, plan: Plan, group: tuple[int, int, int], program: KernelProgram, surfaces: Surfaces) -> None:
        self.gen, self.plan, self.group = around.generation.number, plan, group
        port = DataPort(surfaces, LocalMemory(plan.local_bytes))
        gateway = Gateway(self.gen, plan.threads, self._notify)
        sampler = SamplerPort(surfaces, Samplers(around.generation, around.space, around.bases, plan.sampler))
        messages: dict[int, Any] = {**port.handlers(), **gateway.handlers(), **Spawner(self.gen).handlers(), **sampler.handlers()}
        header = around.layout("GPGPU_THREAD_HEADER")
        self.threads = [self._thread(start, messages) for start in starts(plan, group, header)]
        self.runners = [Interpreter(thread, program, text=text) for thread in self.threads]

    def _thread(self, start: Start, messages: dict[int, Any]) -> ThreadState:
        thread = ThreadState(self.gen, messages, self.plan.kernel, start.mask)
        thread.grf[: len(start.registers)] = np.frombuffer(start.registers, np.uint8)
        set_mode(thread, self.plan.single_flow, self.plan.alternate, self.plan.rounding)
        return thread

    def _notify(self) -> None:
        for thread in self.threads:
            thread.dwords("n")[NOTIFICATION] += 1

    def run(self, spent: Spent) -> Done:
        left = self.runners
        while left:
            moved = False
            for runner in left:
                before = runner.thread.executed
                outcome = runner.run(TURN)
                moved |= runner.thread.executed > before
                if outcome is RunOutcome.OUT_OF_BUDGET and spent():
                    raise late(self._place(runner))
            left = [runner for runner in left if not runner.thread.ended]
            if left and not moved:
                raise stuck(self._place(left[0]), len(left), len(self.threads))
        return Done(len(self.threads), sum(thread.executed for thread in self.threads))

    def _place(self, runner: Interpreter) -> str:
        return place(self.threads.index(runner.thread), self.group, runner.code, runner.thread.ip)
