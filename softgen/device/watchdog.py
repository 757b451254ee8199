"""The watchdog of an engine: a counter that software cannot read, and an interrupt when it reaches a threshold (ICL 250-255).

Reads   PR_CTR_CTL PR_CTR_THRSH
Writes  an interrupt

All ones in the control register let it run, zeros stop it; reaching the threshold starts it again from zero. It counts ticks of the
GPU's clock, looked at whenever a command begins.
"""

from __future__ import annotations

from collections.abc import Callable

from softgen.bits.catalogue import catalogue
from softgen.bits.generation import Generation
from softgen.bits.units import DWORD_MASK
from softgen.device.registers import ContextRegisters, DeviceRegisters

REGISTERS = ("PR_CTR_THRSH", "PR_CTR_CTL")


class Watchdog:
    def __init__(self, generation: Generation, registers: DeviceRegisters | ContextRegisters, base: int, clock: Callable[[], int],
                 on_timeout: Callable[[], None], warn: Callable[[str], None] = lambda text: None) -> None:  # fmt: skip
        self.generation, self.base = generation, base
        self.registers, self.clock, self.on_timeout, self.warn = registers, clock, on_timeout, warn
        self.since: int | None = None  # when it started to count; None: it does not
        self.threshold, self.control = (base + (catalogue().layout(name, generation.number).offset or 0) for name in REGISTERS)
        registers.on_write(self.control, self._control)

    def of_context(self, registers: ContextRegisters) -> Watchdog:
        """The watchdog as a context has it, whose image holds both registers (ICL 1952-1953): it counts while that context's commands run,
        and is no other's."""
        found = Watchdog(self.generation, registers, self.base, self.clock, self.on_timeout, self.warn)
        if registers.own.get(self.control) == DWORD_MASK:
            found.since = self.clock()
        return found

    def _control(self, value: int) -> None:
        self.registers.keep(self.control, value)
        if value == DWORD_MASK:
            self.since = self.clock()
            if not self.registers.read(self.threshold):
                self.warn(f"the watchdog at {self.control:#x} is started without a threshold: every command ends it (ICL 252-253)")
        elif value == 0:
            self.since = None

    def poll(self) -> None:
        if self.since is None:
            return
        now = self.clock()
        if now - self.since >= self.registers.read(self.threshold):
            self.since = now
            self.on_timeout()
