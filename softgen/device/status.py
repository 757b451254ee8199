"""Status that an engine reports about its contexts: the hardware status page, the context's own page, status registers, interrupts.

Reads   CTXT_ST_BUF CTXT_ST_PTR EXECLIST_STATUS HWS_PGA CTX_TIMESTAMP
Writes  dwords 16 to 31 of the status page (KBL 11516-11522), the context's own page (KBL 18205-18254), these registers
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from softgen.bits.catalogue import catalogue
from softgen.bits.generation import Generation
from softgen.bits.units import DWORD_MASK
from softgen.device.memory import TableMemory
from softgen.device.registers import DeviceRegisters
from softgen.device.submission import SubmissionTable
from softgen.errors import GpuFault
from softgen.streamer.parser import Command

# Dwords of the context's own status page.
RUN_TIME, ELEMENT, RESTORED, SAVED, SEMAPHORE = 16, 17, 20, 22, 24


class StatusDevice(Protocol):
    """The parts of a device that the status uses."""

    generation: Generation
    registers: DeviceRegisters
    clock: Callable[[], int]

    def interrupt(self, base: int, cause: str) -> None: ...
    def warn(self, text: str) -> None: ...


class ContextStatus:
    """An engine's report about its contexts."""

    def __init__(self, gpu: StatusDevice, memory: TableMemory, table: SubmissionTable, engine: str, base: int) -> None:
        self.gpu, self.memory, self.table, self.engine, self.base = gpu, memory, table, engine, base
        self.layout = catalogue().get("CTXT_ST_BUF", gpu.generation.number)
        self.pointer = catalogue().get("CTXT_ST_PTR", gpu.generation.number)
        self.written = -1  # the last entry
        self.began = 0  # when the context that runs was loaded
        self.run_time = 0  # what it had run before
        self._count_run_time()
        self.state(active=False)

    def _offset(self, name: str) -> int:
        return self.base + (catalogue().layout(name, self.gpu.generation.number).offset or 0)

    def state(self, active: bool) -> None:
        """The value of EXECLIST_STATUS."""
        if self.table.status:
            self.gpu.registers.write(self.base + self.table.status["register"], self.table.status["active" if active else "idle"])

    # -- run time --------------------------------------------------------------------------------------------------

    def _count_run_time(self) -> None:
        """CTX_TIMESTAMP counts while a context runs, and is restored and saved with it (ICL 1375-1410)."""
        if self.table.events:
            self.running = False
            offset = self._offset("CTX_TIMESTAMP")
            self.gpu.registers.on_read(offset, lambda: self.run_time + (self.gpu.clock() - self.began if self.running else 0))
            self.gpu.registers.on_write(offset, self._set_run_time)

    def _set_run_time(self, value: int) -> None:
        self.run_time = value
        self.began = self.gpu.clock()

    def loaded(self, page: int, first: bool) -> None:
        """A context whose status page is at `page` begins to run; `first`: it is its execlist's first element."""
        self.began, self.running = self.gpu.clock(), True
        self._page(page, ELEMENT, [int(first)])
        now = self.gpu.clock()
        self._page(page, RESTORED, [now & DWORD_MASK, now >> 32])

    def unloaded(self) -> None:
        self.run_time, self.running = self.run_time + self.gpu.clock() - self.began & DWORD_MASK, False

    def saved(self, page: int, semaphore: Command | None) -> None:
        """A context has been saved; `semaphore` is the command it waits at."""
        now = self.gpu.clock()
        self._page(page, RUN_TIME, [self.run_time])
        self._page(page, SAVED, [now & DWORD_MASK, now >> 32])
        if semaphore is not None:
            self._page(page, SEMAPHORE, semaphore.dwords[:4])

    def _page(self, page: int, dword: int, values: list[int]) -> None:
        data = b"".join(value.to_bytes(4, "little") for value in values)
        self.memory.global_space.write(page + 4 * dword, data)

    # -- events ----------------------------------------------------------------------------------------------------

    def event(self, context: int, **what: int) -> None:
        """One entry of the context status, in the status page and in registers, and an interrupt."""
        assert self.layout is not None and self.pointer is not None  # devices with contexts have both
        entries = self.table.events["entries"]
        self.written = (self.written + 1) % entries
        entry = self.layout.pack(context_id=context, **what)
        if self.written < self.layout.count:
            for dword, value in enumerate(entry):
                self.gpu.registers.write(self._offset("CTXT_ST_BUF") + 8 * self.written + 4 * dword, value)
        write = self.pointer.pack(write_pointer=self.written & 7, write_pointer_mask=7)[0]
        self.gpu.registers.write(self._offset("CTXT_ST_PTR"), write)
        page = self.gpu.registers.read(self._offset("HWS_PGA")) & ~0xFFF
        if page:
            self._to_page(page, entry)
        self.gpu.interrupt(self.base, "context_switch")

    def _to_page(self, page: int, entry: list[int]) -> None:
        space, first = self.memory.global_space, self.table.events["first"]
        try:
            space.write(page + 4 * (first + 2 * self.written), b"".join(dword.to_bytes(4, "little") for dword in entry))
            space.write32(page + 4 * self.table.events["pointer"], self.written)
        except GpuFault as fault:
            self.gpu.warn(f"the {self.engine} engine's status page at {page:#x} cannot be written: {fault}")
