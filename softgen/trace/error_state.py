"""i915 error states as traces: registers and memory that the kernel saved when an engine hung.

    trace = ErrorStateTrace("error.txt")
    trace.text.engines        registers, as the driver read them
    next(trace.work())        the request that was running: its ring, or its batch where the ring does not lead to it

Reads   RING_REGISTERS RING_BUFFER_HEAD ACTHD BB_ADDR

Error states hold memory but no page tables: each block is mapped at the address the file gives, a context's blocks in a space per engine,
rings and other kernel memory in the global space. `Work.stop` is where the engine was.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from softgen.bits import catalogue
from softgen.bits.generation import Device, device, device_by_pci
from softgen.bits.layout import Layout
from softgen.bits.units import DWORD_MASK, PAGE_SIZE
from softgen.errors import DecodeError, SoftgenError, SpecError
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.streamer.parser import Command, CommandParser
from softgen.trace import tables
from softgen.trace.error_data import ZEROS, Room
from softgen.trace.error_text import Block, Engine, engine_of, read_text, wrong
from softgen.trace.work import Events, Mark, Stop, Work

MOST_UNFOLDED = 1 << 30  # bytes of memory in one file; what is zero costs nothing
MOST_NAME = 40  # characters of an engine's name that are repeated in messages
INCOMPLETE = ("an error state holds the ring, the batch and those buffers the driver asked the kernel to save; "
              "the state its context held is not restored, and other memory is missing")  # fmt: skip


@dataclass
class ErrorStateMemory:
    """An address space, and the blocks to be mapped in it."""

    space: AddressSpace
    blocks: dict[int, tuple[Block, list[bytes], int]] = field(default_factory=dict)  # address -> block, pieces, size


class ErrorStateTrace(Events):
    """An error state."""

    def __init__(self, path: str | os.PathLike[str], gpu: str | None = None) -> None:
        self.path = Path(path)
        self.text = read_text(self.path)
        super().__init__(str(path), device(gpu) if gpu else self._device())
        self.generation = self.device.generation

    def _device(self) -> Device:
        pci_id = self.text.value("PCI ID")
        if pci_id is None or pci_id.number is None:
            raise DecodeError(f"{self.path}: for which GPU? it has no line 'PCI ID'; name one with --gpu")
        try:
            return device_by_pci(pci_id.number)
        except SpecError as error:
            raise wrong(self.path, pci_id.line, f"{error}; name a GPU with --gpu") from None

    def layout(self, name: str) -> Layout:
        return catalogue.layout(name, self.generation.number)

    # -- registers -----------------------------------------------------------------------------------------------------

    def register(self, label: str, engine: str | None) -> Layout | None:
        """The page of what a line calls `label`: an engine's register, or the GPU's when there is no engine."""
        named = tables.error_state()["register"]
        names = [named[kind].get(label) for kind in ((engine, "all") if engine else ("gpu",) if engine is None else ("all",))]
        pages = (catalogue.catalogue().get(name, self.generation.number) for name in names if name)
        return next((page for page in pages if page and (not page.engines or not engine or engine in page.engines)), None)

    # -- memory --------------------------------------------------------------------------------------------------------

    def _memories(self) -> dict[tuple[str, int] | None, ErrorStateMemory]:
        """A space for each engine's context, and under None the global one."""
        bits, room = self.generation.address_bits, Room(MOST_UNFOLDED)
        found: dict[tuple[str, int] | None, ErrorStateMemory] = {None: ErrorStateMemory(AddressSpace("global", bits))}
        for block in self.text.blocks:
            known = tables.error_state()["memory"].get(block.name.lower())
            if known is None:
                self.note(f"line {block.line}: memory called {block.name!r} is unknown and was left out")
                continue
            if block.nowhere:
                continue  # no engine can reach it
            key = engine_of(block.owner) if known["table"] == "context" else None
            if key not in found:
                found[key] = ErrorStateMemory(AddressSpace(f"{block.owner[:MOST_NAME]} context", bits))
            self._place(found[key], block, room)
        for memory in found.values():
            self._fill(memory)
        return found

    def _place(self, memory: ErrorStateMemory, block: Block, room: Room) -> None:
        pieces = block.unfold(room, self.path)
        size = sum(map(len, pieces))
        if size == 0:
            self.note(f"line {block.line}: {block.owner} {block.name} holds no bytes")
            return
        if block.address % PAGE_SIZE or block.address + size > 1 << memory.space.bits:
            raise wrong(self.path, block.line, f"{size:#x} bytes at {block.address:#x} are no pages of a {memory.space.bits}-bit space")
        if (other := memory.blocks.get(block.address)) is not None and other[1] == pieces:
            return  # the batch stands in the list of the user's buffers once more
        for address, (older, _, taken) in memory.blocks.items():
            if address < block.address + size and block.address < address + taken:
                self.note(f"line {block.line}: {block.owner} {block.name} overlaps {older.owner} {older.name} and was left out")
                return
        memory.blocks[block.address] = block, pieces, size

    def _fill(self, memory: ErrorStateMemory) -> None:
        """One buffer for all blocks of a space: each buffer costs a descriptor, and there may be hundreds of blocks."""
        starts, total = {}, 0
        for address, (_, _, size) in memory.blocks.items():
            starts[address], total = total, total + -(-size // PAGE_SIZE) * PAGE_SIZE
        if not total:
            return
        try:
            buffer = MemfdBuffer(total, memory.space.name)
        except (SoftgenError, OSError, MemoryError) as error:
            raise DecodeError(f"{self.path}: no memory for {total:#x} bytes: {error}") from None
        for address, (_, pieces, size) in memory.blocks.items():
            at = starts[address]
            for piece in pieces:
                if piece is not ZEROS:
                    buffer.view[at : at + len(piece)] = piece
                at += len(piece)
            pieces.clear()  # the buffer has them now
            memory.space.map(address, buffer, starts[address], size)

    # -- work ----------------------------------------------------------------------------------------------------------

    def events(self) -> Iterator[Work]:
        self.note(INCOMPLETE)
        if not self.text.whole:
            self.note("the last line has no end; the file may be cut off")
        if self.text.strange:
            self.note(f"{len(self.text.strange)} lines are of no known kind, the first is line {self.text.strange[0]}")
        memories, sequence = self._memories(), 0
        for engine in self._engines():
            for work in self._work(engine, memories):
                yield replace(work, sequence=sequence)
                sequence += 1

    def _engines(self) -> list[Engine]:
        """Engines with registers, then engines that have memory only."""
        found = list(self.text.engines)
        for block in self.text.blocks:
            kind, instance = engine_of(block.owner)
            if not kind and block.owner != "global":
                self.note(f"line {block.line}: engine {block.owner!r} is unknown")
            elif kind and not any((engine.kind, engine.instance) == (kind, instance) for engine in found):
                found.append(Engine(block.owner, kind, instance, block.line))
        return [engine for engine in found if engine.kind]

    def _work(self, engine: Engine, memories: dict[tuple[str, int] | None, ErrorStateMemory]) -> Iterator[Work]:
        key = (engine.kind, engine.instance)
        empty = ErrorStateMemory(AddressSpace(f"{engine.name} context", self.generation.address_bits))
        own, shared = memories.get(key, empty), memories[None]
        batches = [block for block, _, _ in own.blocks.values() if _is(block, "batch")]
        rings = [(block, size) for block, _, size in shared.blocks.values() if _is(block, "ring") and engine_of(block.owner) == key]
        base = Work(engine.kind, own.space, 0, global_space=shared.space, context=engine.instance)
        ring = self._ring(engine, *rings[0], base) if rings else None
        stop = self._stop(engine, own.space, rings[0] if rings else None)
        apart = [batch for batch in batches if not (ring and self._reaches(ring, batch.address, own.blocks[batch.address][2]))]
        if ring:
            yield replace(ring, stop=_part(stop, True) if apart else stop)
        for block in apart:
            label = f"batch of {engine.name}" + (f", submitted by {block.by}" if block.by else "")
            yield replace(base, batch=block.address, label=label, stop=_part(stop, False))

    def _ring(self, engine: Engine, block: Block, size: int, base: Work) -> Work | None:
        """The request that was running where the kernel says which part of the ring it is; otherwise all that was left to do."""
        head, tail = engine.get("HEAD"), engine.get("TAIL")
        if head is None or tail is None:
            self.note(f"{engine.name}: its registers do not say which part of the ring was to run")
            return None
        registers = self._ring_registers(engine)
        start, end, what = registers.head, registers.tail, "all that was left to do"
        if head.others and len(tail.others) >= 2 and head.others[0] != tail.others[1]:
            start, end, what = head.others[0], tail.others[1], "the request that was running"
        elif not head.others and block.owner in self.text.tails:
            end, what = self.text.tails[block.owner], "the request that was running"
        if start >= size or end >= size or start % 4 or end % 4:
            self.note(f"{engine.name}: its ring has {size:#x} bytes; from {start:#x} to {end:#x} is no part of it")
            return None
        if start == end:
            self.note(f"{engine.name}: nothing was left to do in its ring")
            return None
        label = f"ring of {engine.name}, {what}"
        return replace(base, kind="ring", batch=block.address, head=start, tail=end, size=size, label=label)

    def _ring_registers(self, engine: Engine) -> Any:
        values = [engine.number(label) or 0 for label in ("TAIL", "HEAD", "START", "CTL")]
        return self.layout("RING_REGISTERS").unpack([value & DWORD_MASK for value in values])

    def _stop(self, engine: Engine, space: AddressSpace, ring: tuple[Block, int] | None) -> Stop:
        """Positions that registers point to. In a ring the active head is an offset, with its wrap count above it."""
        marks, inside = [], (1 << space.bits) - 1  # addresses may be read with their sign above
        head, active, batch = engine.number("HEAD"), engine.number("ACTHD"), engine.number("BBADDR")
        if head is not None and ring:
            offset = self.layout("RING_BUFFER_HEAD").unpack([head & DWORD_MASK]).head_offset
            marks.append(Mark("HEAD", ring[0].address + offset, ring=True))
        if active is not None:
            place = (active >> 32 << 32 | self.layout("ACTHD").unpack([active & DWORD_MASK]).head_pointer) & inside
            offset = self.layout("RING_BUFFER_HEAD").unpack([active & DWORD_MASK]).head_offset
            if ring and offset < ring[1] and (active == head or not space.extent(place, 4)):
                marks.append(Mark("ACTHD", ring[0].address + offset, ring=True))
            else:
                marks.append(Mark("ACTHD", place))
        page = catalogue.catalogue().get("BB_ADDR", self.generation.number)
        if batch and page:
            marks.append(Mark("BBADDR", (batch >> 32 << 32 | page.unpack([batch & DWORD_MASK]).batch_buffer_address) & inside))
        header = engine.number("IPEHR")
        return Stop(tuple(marks), header and header & DWORD_MASK)

    def _reaches(self, ring: Work, address: int, size: int) -> bool:
        """Whether a walk along the ring comes to this batch."""
        road = CommandParser(self.generation, ring.engine, ring.space, ring.global_space).ring(ring.batch, ring.head, ring.tail, ring.size)
        return any(isinstance(item, Command) and item.level and address <= item.address < address + size for item in road)


def _part(stop: Stop, ring: bool) -> Stop:
    """What concerns a ring, or a batch the ring does not lead to; the header belongs to where the active head is."""
    active = next((mark.ring for mark in stop.marks if mark.label == "ACTHD"), False)
    return Stop(tuple(mark for mark in stop.marks if mark.ring == ring), stop.header if active == ring else None)


def _is(block: Block, what: str) -> bool:
    return bool(tables.error_state()["memory"][block.name.lower()]["is"] == what)
