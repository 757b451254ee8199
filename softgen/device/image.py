"""Context images: what a context's registers held, kept in memory while it does not run.

Reads   CONTEXT_DESCRIPTOR CONTEXT_IMAGE MI_LOAD_REGISTER_IMM CTX_SR_CTL
Writes  registers when a context is restored, memory when it is saved

An image stands behind the context's own status page. It is a list of commands (ICL 2353-2354): restoring executes its
MI_LOAD_REGISTER_IMM, saving writes values behind the registers' numbers. Where the lists stand is in submission.toml; an engine's list
that is not there yet is written when the context is first saved. State that commands say is kept beside the image, by context.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from softgen.bits.catalogue import catalogue
from softgen.bits.generation import Generation
from softgen.bits.units import DWORD_MASK, PAGE_SIZE
from softgen.device.registers import DeviceRegisters, masked
from softgen.device.submission import ImageList, image_lists
from softgen.errors import SoftgenError, Unsupported
from softgen.memory.space import Space

LEGACY_32, LEGACY_64 = 1, 3  # CONTEXT_DESCRIPTOR.addressing
ALL_BITS = 0xFFFF0000  # mask of a masked register
RESTORE_INHIBIT = "engine_context_restore_inhibit"


class ContextImage:
    """The image of the context at a global address, for the engine whose registers start at `base`."""

    def __init__(self, generation: Generation, space: Space, descriptor: tuple[int, int], engine: str, base: int) -> None:
        self.generation, self.space, self.engine, self.base = generation, space, engine, base
        self.descriptor: Any = catalogue().layout("CONTEXT_DESCRIPTOR", generation.number).unpack(descriptor)
        self.address: int = self.descriptor.context_address
        self._layout = catalogue().layout("CONTEXT_IMAGE", generation.number)
        self._load = catalogue().layout("MI_LOAD_REGISTER_IMM", generation.number)

    def ring(self) -> Any:
        """The ring and the page tables it names."""
        data = memoryview(self.space.read(self.address + PAGE_SIZE, 4 * self._layout.dwords)).cast("I")
        ring: Any = self._layout.unpack(data)
        if ring.head >= ring.ring_bytes or ring.tail >= ring.ring_bytes:
            raise SoftgenError(f"the context at {self.address:#x} has a ring of {ring.ring_bytes:#x} bytes with head {ring.head:#x} "
                               f"and tail {ring.tail:#x}")  # fmt: skip
        return ring

    def tables(self, ring: Any) -> int | tuple[int, ...]:
        """The root of its page tables: one of four levels, or four directories (KBL 5314-5340)."""
        if self.descriptor.addressing not in (LEGACY_32, LEGACY_64):
            raise Unsupported(f"the context at {self.address:#x} names its page tables by a PASID: advanced contexts are not simulated")
        if self.descriptor.addressing == LEGACY_64:
            return int(ring.page_directory_0)
        return ring.page_directory_0, ring.page_directory_1, ring.page_directory_2, ring.page_directory_3

    # -- lists -----------------------------------------------------------------------------------------------------

    def _lists(self) -> Iterator[ImageList]:
        return (image_list for image_list in image_lists() if image_list.engine in ("", self.engine))

    def _dword(self, at: int) -> int:
        return self.space.read32(self.address + PAGE_SIZE + 4 * at)

    def _pairs(self, at: int) -> list[tuple[int, int]]:
        """(where the value stands, register) of a list; none where no list is."""
        header = self._dword(at)
        if catalogue().find_command(header, self.generation.number, self.engine) is not self._load:
            return []
        count = (self._load.length(header) - 1) // 2
        data = memoryview(self.space.read(self.address + PAGE_SIZE + 4 * at + 4, 8 * count)).cast("I")
        return [(self.address + PAGE_SIZE + 4 * (at + 2 + 2 * i), data[2 * i] & 0x7FFFFC) for i in range(count)]

    def restore(self, registers: DeviceRegisters) -> bool:
        """DeviceRegisters from the image; an engine's own lists unless the image inhibits it. Was it inhibited?"""
        inhibited = False
        for image_list in self._lists():
            if image_list.engine and inhibited:
                break
            for where, register in self._pairs(image_list.at):
                registers.write(register, self.space.read32(where))
            if not image_list.engine:
                inhibited = self._inhibited(registers)
        return inhibited

    def _inhibited(self, registers: DeviceRegisters) -> bool:
        layout = catalogue().layout("CTX_SR_CTL", self.generation.number)
        return bool(getattr(layout.raw([registers.read(self.base + (layout.offset or 0))]), RESTORE_INHIBIT))

    def save(self, registers: DeviceRegisters) -> None:
        """DeviceRegisters into the image. What was restored once may be restored again: the inhibition is not saved."""
        control = catalogue().layout("CTX_SR_CTL", self.generation.number)
        inhibit = control.field(RESTORE_INHIBIT).mask
        for image_list in self._lists():
            pairs = self._pairs(image_list.at) or self._new(image_list)
            for where, register in pairs:
                value, place = registers.read(register), registers.place(register)
                if place is not None and place.layout is control:
                    value &= ~inhibit
                self.space.write32(where, value | ALL_BITS if place is not None and masked(place) else value)

    def _new(self, images: ImageList) -> list[tuple[int, int]]:
        """An engine's list, where there was none."""
        if not images.engine:
            return []
        numbers = [number for name in images.registers for number in self._offsets(name)]
        start = self.address + PAGE_SIZE + 4 * images.at
        self.space.write32(start, images.header & ~0xFF | 2 * len(numbers) - 1)
        for i, number in enumerate(numbers):
            self.space.write32(start + 4 + 8 * i, number)
        return [(start + 8 + 8 * i, number) for i, number in enumerate(numbers)]

    def _offsets(self, name: str) -> Iterator[int]:
        """Every dword of a register that belongs to the engine; of one that moves by itself the lower."""
        layout = catalogue().get(name, self.generation.number)
        if layout is not None:
            dwords = 1 if name == "TIMESTAMP" else layout.dwords
            for number in range(layout.count):
                first = (layout.offset or 0) + 4 * layout.dwords * number + (self.base if layout.relative else 0)
                yield from (first + 4 * dword & DWORD_MASK for dword in range(dwords))
