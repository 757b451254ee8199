"""AUB files as traces: records write memory and registers, and some of them start work.

The trace is synchronous: work has run before the next record is read, so polls succeed. A context that ran
to its tail has its head there the next time, unless the trace writes another one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from typing import Any

from softgen.bits import catalogue
from softgen.bits.generation import Device, device, device_by_pci
from softgen.bits.layout import Layout
from softgen.bits.units import PAGE_SIZE
from softgen.device import submission
from softgen.device.submission import EngineStart
from softgen.errors import DecodeError, GpuFault, SoftgenError, SpecError
from softgen.memory.space import Space
from softgen.trace import tables
from softgen.trace.aub_memory import AubMemory
from softgen.trace.aub_records import AubFile, AubRecord, FileData
from softgen.trace.work import Events, Expectation, Work

CHUNK = 1 << 20  # larger than any record, smaller than a classic block may be
MAX_REPEAT = 1 << 30  # bytes all repeated writes of a trace may make
MAX_LISTED = 1 << 20  # expectations kept in a list
LEAST_MEMORY = 1 << 30  # a trace may touch so much, or a few times what its file holds
REGISTERS_END = 1 << 23  # registers fill 8 MiB
LOOK_FOR_DEVICE = 64  # records; tools write the one that names it first
PCI_ID = re.compile(r"PCI-ID\s*=\s*(?:0[xX])?([0-9a-fA-F]{1,4})\b")
SIMULATOR = 0
REGISTER_BYTES = (1, 2, 4, 8)
LEGACY_64, ADVANCED_64 = 3, 2  # CONTEXT_DESCRIPTOR.addressing


class AubTrace(Events):
    """An AUB file."""

    def __init__(self, path: str | os.PathLike[str], gpu: str | None = None) -> None:
        self.file = AubFile(path)
        super().__init__(str(path), device(gpu) if gpu else find_device(self.file))

    def events(self) -> Iterator[Work | Expectation]:
        self.expectations.clear()
        player = Player(self)
        for record in self.file.records():
            try:
                yield from player.play(record)
            except GpuFault as fault:
                raise self.file.wrong(record.offset, f"{record.name}: {fault}") from None
            except DecodeError:
                raise
            except SoftgenError as error:
                raise self.file.wrong(record.offset, f"{record.name}: {error}") from None


def find_device(file: AubFile) -> Device:
    """The GPU a file is for: a PCI id in its first record's text, or that record's device number."""
    reason = "nothing in its first records names a device"
    for number, record in enumerate(file.records()):
        if record.name in ("AUB_VERSION", "AUB_HEADER"):
            text = record.data.text()
            known = tables.aub("device").get(record.fields.device) if record.name == "AUB_VERSION" else None
            try:
                if m := PCI_ID.search(text):
                    return device_by_pci(int(m[1], 16))
                if known:
                    return device(known)
                reason = f"its device number is {record.fields.device}" if record.name == "AUB_VERSION" else f"its text is {text[:60]!r}"
            except SpecError as error:
                reason = str(error)
            break
        if number == LOOK_FOR_DEVICE:
            break
    raise DecodeError(f"{file.path}: for which GPU? {reason}; name one with --gpu")


class Player:
    """State of one pass over a trace: memory, submission ports, registers and open predicates."""

    def __init__(self, trace: AubTrace) -> None:
        self.trace, self.device = trace, trace.device
        generation = trace.device.generation
        self.memory = AubMemory(generation, max(LEAST_MEMORY, 4 * trace.file.size))
        self.port = submission.port(trace.device)
        self.sequence = -1
        self.context: Space | None = None  # of the last context that ran
        self.only_for: set[int] = set()  # targets of open predicates
        self.registers: dict[int, int] = {}
        self.repeated = 0
        self.plays: dict[str, Callable[[AubRecord], Iterator[Work | Expectation] | None]] = {
            "AUB_BLOCK": self.block, "AUB_BLOCK_64": self.block, "AUB_REGISTER_WRITE": self.register_write,
            "AUB_REGISTER_COMPARE": self.register_compare, "AUB_MEMORY_WRITE": self.memory_write,
            "AUB_MEMORY_WRITE_DISCONTIGUOUS": self.memory_write_pieces, "AUB_MEMORY_COMPARE": self.memory_compare,
            "AUB_PPGTT_CONTEXT_CREATE": self.context_create,
        }  # fmt: skip

    def play(self, record: AubRecord) -> Iterator[Work | Expectation]:
        if record.name == "AUB_PREDICATE":
            self.predicate(record)
        elif self.only_for and SIMULATOR not in self.only_for:
            names = ", ".join(sorted(tables.aub("predicate_target").get(t, f"target {t}") for t in self.only_for))
            self.trace.note(f"records for {names} only were skipped")
        elif record.name in self.plays:
            yield from self.plays[record.name](record) or ()
        elif not record.name:
            self.trace.note(f"records with opcode {record.opcode:#x}, subopcode {record.subopcode:#x} are unknown and were skipped")
        # The remaining records (image dumps, delays, comments) need no action.

    def predicate(self, record: AubRecord) -> None:
        """Restrict the following records to a target, until it is disabled. Public sources give only the names of targets."""
        (self.only_for.add if record.fields.state else self.only_for.discard)(record.fields.target)

    # -- memory --------------------------------------------------------------------------------------------------------

    def memory_write(self, record: AubRecord) -> None:
        fields = record.fields
        self.note_tiling(fields.tiling)
        data = self.data(record, fields.bytes, fields.repeat)
        self.write(record, tables.aub("memory_space").get(fields.space), fields.space, fields.address, data, fields.bytes)

    def memory_write_pieces(self, record: AubRecord) -> None:
        fields, at = record.fields, 0
        if fields.pairs > len(fields.pieces):
            raise self.wrong(record, f"has at most {len(fields.pieces)} pieces, not {fields.pairs}")
        self.note_tiling(fields.tiling)
        for piece in fields.pieces[: fields.pairs]:
            if at + piece.bytes > len(record.data):
                raise self.wrong(record, f"has {len(record.data):#x} bytes of data, too few for its pieces")
            data = record.data.part(at, piece.bytes)
            self.write(record, tables.aub("memory_space").get(fields.space), fields.space, piece.address, data, piece.bytes)
            at += piece.bytes

    def write(self, record: AubRecord, space: str | None, number: int, address: int, data: FileData, size: int) -> None:
        """Write `size` bytes; data that is shorter is repeated."""
        if space is None:
            raise self.wrong(record, f"names address space {number}, which is unknown")
        loose, done = False, 0
        for piece in _pieces(data, size):
            loose |= self.memory.write(space, address + done, piece)
            done += len(piece)
        if loose and space == "global":
            self.trace.note("some of what is written at global addresses has no entry in the global table; it is kept at those addresses")

    def data(self, record: AubRecord, size: int, repeat: int) -> FileData:
        """A record's data, without the padding."""
        if size > len(record.data):
            if not repeat:
                raise self.wrong(record, f"states {size:#x} bytes but holds {len(record.data):#x}")
            if not len(record.data):
                raise self.wrong(record, "repeats data it does not have")
            self.repeated += size
            if self.repeated > MAX_REPEAT:
                raise self.wrong(record, f"repeats its data to {size:#x} bytes; at most {MAX_REPEAT:#x} are repeated in a trace")
        return record.data.part(0, min(size, len(record.data)))

    def note_tiling(self, tiling: int) -> None:
        if tiling:
            self.trace.note("some memory is marked as tiled; records give no pitch, so bytes are taken as they stand")

    def memory_compare(self, record: AubRecord) -> Iterator[Expectation]:
        fields = record.fields
        if fields.read_without_expectation:
            return
        space = tables.aub("memory_space").get(fields.space)
        if space is None:
            raise self.wrong(record, f"names address space {fields.space}, which is unknown")
        if fields.crc or fields.repeat:
            self.trace.note(f"{record.name} with {'a checksum' if fields.crc else 'repeated data'} is not checked")
            return
        self.note_tiling(fields.tiling)
        yield self.expect(record, Expectation(
            "memory", fields.address, self.data(record, fields.bytes, 0), self.memory.space(space, self.context),
            equal=not fields.not_equal, after=self.sequence, where=f"{self.trace.file.path} at {record.offset:#x}",
        ))  # fmt: skip

    def expect(self, record: AubRecord, expectation: Expectation) -> Expectation:
        if len(self.trace.expectations) < MAX_LISTED:
            self.trace.expectations.append(expectation)
        else:
            self.trace.note(f"more than {MAX_LISTED} expectations; later ones are not listed")
        return expectation

    # -- registers -----------------------------------------------------------------------------------------------------

    def register_write(self, record: AubRecord) -> Iterator[Work]:
        fields = record.fields
        if fields.space:  # anything but the GPU's own registers
            return
        if fields.offset >= REGISTERS_END:
            raise self.wrong(record, f"names register {fields.offset:#x}; registers end at {REGISTERS_END:#x}")
        value, mask = self.value(record), fields.mask
        value = self.registers.get(fields.offset, 0) & ~mask | value & mask
        self.registers[fields.offset] = value
        for start in self.port.write(fields.offset, value):
            if (work := self.start(record, start)) is not None:
                yield work
                self.finish(start)

    def register_compare(self, record: AubRecord) -> Iterator[Expectation]:
        fields = record.fields
        if fields.read_without_expectation or fields.space:
            return
        size = self.register_bytes(record)
        yield self.expect(record, Expectation(
            "register", fields.offset, FileData(self.trace.file, record.data.offset - 4, size), mask=fields.mask & (1 << 8 * size) - 1,
            after=self.sequence, where=f"{self.trace.file.path} at {record.offset:#x}",
        ))  # fmt: skip

    def value(self, record: AubRecord) -> int:
        return int.from_bytes(FileData(self.trace.file, record.data.offset - 4, self.register_bytes(record)).read(), "little")

    def register_bytes(self, record: AubRecord) -> int:
        """Width of the register in bytes; its value starts at the record's last dword."""
        if record.fields.size >= len(REGISTER_BYTES) or REGISTER_BYTES[record.fields.size] > 4 + len(record.data):
            raise self.wrong(record, f"holds no register of size {record.fields.size}")
        return REGISTER_BYTES[record.fields.size]

    # -- starting work -------------------------------------------------------------------------------------------------

    def block(self, record: AubRecord) -> Iterator[Work]:
        """Classic block: writes memory, or a ring's contents, which are executed at once."""
        fields = record.fields
        operation = tables.aub("block_operation").get(fields.operation)
        if operation is None:
            raise self.wrong(record, f"names operation {fields.operation}, which is unknown")
        if operation not in ("data", "command"):
            return
        self.write(record, tables.aub("block_space").get(fields.space), fields.space, fields.address, record.data, fields.bytes)
        if operation == "command":
            engine = tables.aub("block_ring").get(fields.type)
            if engine is None:
                raise self.wrong(record, f"feeds ring {fields.type}, which is unknown")
            self.memory.global_space.settle()
            space = self.memory.global_space
            yield self.work(engine, space, fields.address, 0, fields.bytes, fields.bytes)

    def start(self, record: AubRecord, start: EngineStart) -> Work | None:
        self.memory.global_space.settle()
        if start.ring is not None:
            ring = start.ring
            return self.ring_work(record, start.engine, self.memory.global_space, ring, 0)
        assert start.descriptor is not None
        descriptor = self.layout("CONTEXT_DESCRIPTOR").unpack(start.descriptor)
        if not descriptor.valid:
            return None
        image = self.image(descriptor)
        if descriptor.addressing in (LEGACY_64, ADVANCED_64):
            space = self.memory.context(image.page_directory_0)
        else:
            space = self.memory.context((image.page_directory_0, image.page_directory_1, image.page_directory_2, image.page_directory_3))
        space.settle()
        self.context = space
        return self.ring_work(record, start.engine, space, image, descriptor.context_id)

    def ring_work(self, record: AubRecord, engine: str, space: Space, ring: Any, context: int) -> Work | None:
        """Work from a ring described by registers or a context image."""
        if ring.head >= ring.ring_bytes or ring.tail >= ring.ring_bytes:
            raise self.wrong(record, f"starts a ring of {ring.ring_bytes:#x} bytes with head {ring.head:#x} and tail {ring.tail:#x}")
        if not ring.enable:
            self.trace.note("a context was started whose ring is not enabled")
        if ring.head == ring.tail:
            self.trace.note("a ring was started that holds nothing new")
            return None
        return self.work(engine, space, ring.start, ring.head, ring.tail, ring.ring_bytes, context)

    def work(self, engine: str, space: Space, ring: int, head: int, tail: int, size: int, context: int = 0) -> Work:
        self.sequence += 1
        return Work(engine, space, ring, "ring", self.sequence, f"submission {self.sequence} on {engine}", head, tail, size,
                    global_space=self.memory.global_space, context=context)  # fmt: skip

    def image(self, descriptor: Any) -> Any:
        layout = self.layout("CONTEXT_IMAGE")
        data = self.memory.global_space.read(descriptor.context_address + PAGE_SIZE, 4 * layout.dwords)
        return layout.unpack(memoryview(data).cast("I"))

    def finish(self, start: EngineStart) -> None:
        """Save the ring's head to the context image, as the hardware does when a context has run."""
        if start.descriptor is None:
            return
        layout = self.layout("CONTEXT_IMAGE")
        descriptor = self.layout("CONTEXT_DESCRIPTOR").unpack(start.descriptor)
        where = descriptor.context_address + PAGE_SIZE + layout.field("head").low // 32 * 4
        self.memory.global_space.write32(where, self.image(descriptor).tail)

    def context_create(self, record: AubRecord) -> None:
        self.trace.note("a context with page directories of its own was created; classic records never say which work uses it")

    def layout(self, name: str) -> Layout:
        return catalogue.layout(name, self.device.generation.number)

    def wrong(self, record: AubRecord, why: str) -> DecodeError:
        return self.trace.file.wrong(record.offset, f"{record.name} {why}")


def _pieces(data: FileData, size: int) -> Iterator[bytes]:
    """`size` bytes in chunks; shorter data is repeated."""
    if len(data) < size:
        block = data.read() * (CHUNK // len(data) + 1)
        yield from (block[: size - done] for done in range(0, size, len(block)))
    else:
        yield from (data.read(done, CHUNK) for done in range(0, size, CHUNK))
