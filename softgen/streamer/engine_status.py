"""Registers that show where an engine is, and the errors that its parser finds.

Reads   IPEHR ACTHD ACTHD_UDW RING_BUFFER_HEAD BB_ADDR BB_ADDR_UDW BB_STATE SBB_ADDR SBB_ADDR_UDW SBB_STATE BB_START_ADDR
        BB_START_ADDR_UDW EIR ESR EMR HWS_PGA RCS_HWS_PGA VCS_HWS_PGA BCS_HWS_PGA VECS_HWS_PGA
Writes  these registers; an interrupt for an error that is not masked

The head moves when a command has been executed (ICL 80-82). A command that only privileged batches may hold is read as MI_NOOP and
parsing goes on; a dword that is no command is fatal (KBL 1672-1688).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from softgen.bits.catalogue import catalogue
from softgen.bits.units import DWORD_MASK
from softgen.streamer.interface import SharedRegisterFile
from softgen.streamer.parser import FetchPointer

STATUS_PAGES = {"render": "RCS_HWS_PGA", "video": "VCS_HWS_PGA", "blitter": "BCS_HWS_PGA", "video_enhance": "VECS_HWS_PGA"}
BATCHES = (("BB_ADDR", "BB_ADDR_UDW", "BB_STATE"), ("SBB_ADDR", "SBB_ADDR_UDW", "SBB_STATE"))


@cache
def bit(register: str, field: str, gen: float) -> int:
    """The mask of a register's field; 0 where the generation does not have it."""
    layout = catalogue().get(register, gen)
    return next((item.mask for item in layout.fields if item.name == field), 0) if layout else 0


@cache
def _offset(name: str, gen: float, base: int) -> int | None:
    """An engine's register by name; None where the generation does not have it."""
    layout = catalogue().get(name, gen)
    return None if layout is None else (layout.offset or 0) + (base if layout.relative else 0)


@cache
def _head_registers(gen: float, base: int) -> tuple[int, ...]:
    """Offsets of the registers that show where a command is: the lower half of its address, and the upper where there is a register."""
    found = (_offset(name, gen, base) for name in ("ACTHD", "ACTHD_UDW"))
    return tuple(offset for offset in found if offset is not None)


class EngineStatusRegisters:
    """The status registers of the engine whose registers start at `base`."""

    def __init__(self, registers: SharedRegisterFile, gen: float, engine: str, base: int, interrupt: Callable[[int, str], None]) -> None:
        self.registers, self.gen, self.engine, self.base, self.interrupt = registers, gen, engine, base, interrupt
        headers = tuple(offset for offset in [self._offset("IPEHR")] if offset is not None)
        self._shows_header, self._shown = bool(headers), headers + _head_registers(gen, base)
        self.address: int | None = None  # of a command that the registers do not show yet,
        self.header = 0  # and its first dword

    def _offset(self, name: str) -> int | None:
        return _offset(name, self.gen, self.base)

    def _put(self, name: str, value: int) -> None:
        offset = self._offset(name)
        if offset is not None:
            self.registers.write(offset, value & DWORD_MASK)

    def at(self, address: int, header: int) -> None:
        """A command begins: its address and first dword."""
        self.address = None
        values = header, address & DWORD_MASK, address >> 32 & DWORD_MASK
        self.registers.write_plain(self._shown, values if self._shows_header else values[1:])

    def show(self) -> None:
        """Writes where the engine is to the registers: when a command may read them, and when it stops. In between it only says where."""
        if self.address is not None:
            self.at(self.address, self.header)

    def ring_head(self, ring: FetchPointer | None) -> None:
        """A command of a ring, or of a batch that it called, has been executed."""
        if ring is not None and ring.wrap is not None:
            self._put("RING_BUFFER_HEAD", ring.address - ring.wrap[0])

    def batch_entered(self, pointer: FetchPointer) -> None:
        if pointer.level > len(BATCHES):
            return
        low, high, state = BATCHES[pointer.level - 1]
        self._put(low, pointer.address)
        self._put(high, pointer.address >> 32)
        self._put(state, 0 if pointer.privileged else bit(state, "address_space_indicator", self.gen))
        self._put("BB_START_ADDR", pointer.address)
        self._put("BB_START_ADDR_UDW", pointer.address >> 32)

    def status_page(self) -> int:
        """The address of the engine's hardware status page; Gen7's register stands elsewhere."""
        name = "HWS_PGA" if catalogue().get("HWS_PGA", self.gen) else STATUS_PAGES[self.engine]
        offset = self._offset(name)
        assert offset is not None  # every engine of every generation has one
        return self.registers.read(offset) & ~0xFFF

    # -- errors ----------------------------------------------------------------------------------------------------

    def instruction_error(self, address: int, header: int) -> None:
        """A dword that is no command (KBL 1679-1688)."""
        self.at(address, header)
        self._error("instruction_error")

    def privilege_violation(self) -> None:
        """A command that only privileged batches may hold (KBL 1672-1675)."""
        self._error("command_privilege_violation_error")

    def _error(self, name: str) -> None:
        """ESR has the bit; EIR and an interrupt only where EMR does not mask it (KBL 2003-2012)."""
        registers, mask = self.registers, bit("ESR", name, self.gen)
        esr, emr, eir = (_offset(register, self.gen, self.base) or 0 for register in ("ESR", "EMR", "EIR"))
        registers.write(esr, registers.read(esr) | mask)
        if mask & ~registers.read(emr):
            registers.raise_error(eir, registers.read(eir) | mask)
            self.interrupt(self.base, "error")
