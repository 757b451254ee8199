"""Where an engine is, for those who look: registers that follow the parser, and errors it finds.

Reads   IPEHR ACTHD ACTHD_UDW RING_BUFFER_HEAD BB_ADDR BB_ADDR_UDW BB_STATE SBB_ADDR SBB_ADDR_UDW SBB_STATE BB_START_ADDR
        BB_START_ADDR_UDW EIR ESR EMR HWS_PGA RCS_HWS_PGA VCS_HWS_PGA BCS_HWS_PGA VECS_HWS_PGA
Writes  these registers; an interrupt for an error that is not masked

The head moves when a command has been executed (ICL 80-82). A command that only privileged batches may hold is read as MI_NOOP and
parsing goes on; a dword that is no command is fatal (KBL 1672-1688).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from softgen.bits.catalogue import catalogue
from softgen.streamer.parser import Command, Place

if TYPE_CHECKING:
    from softgen.streamer.execute import Streamer

STATUS_PAGES = {"render": "RCS_HWS_PGA", "video": "VCS_HWS_PGA", "blitter": "BCS_HWS_PGA", "video_enhance": "VECS_HWS_PGA"}
BATCHES = (("BB_ADDR", "BB_ADDR_UDW", "BB_STATE"), ("SBB_ADDR", "SBB_ADDR_UDW", "SBB_STATE"))
DWORD = 0xFFFFFFFF


@cache
def bit(register: str, field: str, gen: float) -> int:
    """The mask of a register's field; none where the generation does not have it."""
    layout = catalogue().get(register, gen)
    return next((one.mask for one in layout.fields if one.name == field), 0) if layout else 0


@cache
def _offset(name: str, gen: float, base: int) -> int | None:
    """Where an engine's register is; None where the generation does not have it."""
    layout = catalogue().get(name, gen)
    return None if layout is None else (layout.offset or 0) + (base if layout.relative else 0)


@cache
def _offsets(gen: float, base: int) -> tuple[tuple[int, int], ...]:
    """The registers that say where the parser is, and how far the address is shifted down for each."""
    found = ((_offset(name, gen, base), shift) for name, shift in (("ACTHD", 0), ("ACTHD_UDW", 32)))
    return tuple((offset, shift) for offset, shift in found if offset is not None)


class Whereabouts:
    def __init__(self, cs: Streamer) -> None:
        self.cs, self.gen = cs, cs.generation.number

    def _offset(self, name: str) -> int | None:
        return _offset(name, self.gen, self.cs.base)

    def _put(self, name: str, value: int) -> None:
        offset = self._offset(name)
        if offset is not None:
            self.cs.registers.write(offset, value & DWORD)

    def at(self, command: Command) -> None:
        """A command begins."""
        cs, address = self.cs, command.address
        cs.machine.tick(cs.base)
        self._put("IPEHR", command.dwords[0])
        for offset, shift in _offsets(self.gen, cs.base):
            cs.registers.write(offset, address >> shift & DWORD)

    def after(self, place: Place) -> None:
        """A command has been executed."""
        ring = self.cs.ring_place() if place.level else place
        if ring is not None and ring.wrap is not None:
            self._put("RING_BUFFER_HEAD", ring.address - ring.wrap[0])

    def called(self, place: Place) -> None:
        """A batch is entered."""
        if place.level > len(BATCHES):
            return
        low, high, state = BATCHES[place.level - 1]
        self._put(low, place.address)
        self._put(high, place.address >> 32)
        self._put(state, 0 if place.privileged else bit(state, "address_space_indicator", self.gen))
        self._put("BB_START_ADDR", place.address)
        self._put("BB_START_ADDR_UDW", place.address >> 32)

    def status_page(self) -> int:
        """The engine's hardware status page; Gen7 keeps its registers apart."""
        name = "HWS_PGA" if catalogue().get("HWS_PGA", self.gen) else STATUS_PAGES.get(self.cs.engine, "")
        offset = self._offset(name) if name else None
        return 0 if offset is None else self.cs.registers.read(offset) & ~0xFFF

    # -- errors ----------------------------------------------------------------------------------------------------

    def wrong(self, command: Command) -> None:
        """A dword that is no command (KBL 1679-1688)."""
        self.at(command)
        self._error("instruction_error")

    def violation(self, command: Command) -> None:
        """A command that only privileged batches may hold (KBL 1672-1675)."""
        self._error("command_privilege_violation_error")
        self.cs.machine.remark(f"{command.name} at {command.address:#x} (batch {command.batch:#x}, {self.cs.generation}): "
                               "a privileged command in a batch that is not; read as MI_NOOP")  # fmt: skip

    def _error(self, name: str) -> None:
        """The status says so; the identity register and an interrupt only where the mask lets it (KBL 2003-2012)."""
        registers, mask = self.cs.registers, bit("ESR", name, self.gen)
        esr, emr, eir = (self.cs.own(one) for one in ("ESR", "EMR", "EIR"))
        registers.write(esr, registers.read(esr) | mask)
        if mask & ~registers.read(emr):
            registers.raise_error(eir, registers.read(eir) | mask)
            self.cs.machine.interrupt(self.cs.base, "error")
