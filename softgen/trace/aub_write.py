"""Writer of memory trace AUB files: buffers in physical pages, page tables, a context and ring per engine, submissions, expectations.

The file says what the machine's memory held before each submission. A buffer is written when it first appears; after that only
bytes that changed, so that what an earlier submission made of the others survives when the file is executed.
"""

from __future__ import annotations

import os
import struct
import tempfile
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from softgen.bits import catalogue
from softgen.bits.generation import Device
from softgen.bits.units import PAGE_SIZE
from softgen.device import submission
from softgen.errors import SoftgenError, Unsupported
from softgen.trace import tables
from softgen.trace.aub_records import encode
from softgen.trace.capture import CaptureTrace
from softgen.trace.capture_json import ZERO, Exec
from softgen.trace.work import Work, WorkTrace

CHUNK = 128 << 10  # of data in one record; a length field has room for 256 KiB less a header
FIRST_PHYSICAL, FIRST_GLOBAL = 0x1000000, 0x10000
CONTEXT_PAGES, RING_PAGES = 21, 4  # a status page and the largest image of Gen8 to Gen11; a small ring
LEGACY_64_BIT = 3
PHYSICAL, GLOBAL_ENTRY = 2, 4  # address spaces every reader knows
DWORD_REGISTER = 2  # size of a register
VERSION, PHYSICAL_METHOD = 1, 1
LEVELS = (("PML4_ENTRY", 39), ("PAGE_DIRECTORY_POINTER_ENTRY", 30), ("PAGE_DIRECTORY_ENTRY", 21), ("PAGE_TABLE_ENTRY", 12))


class Mapped(NamedTuple):
    """A buffer's content at an address. The same `key` is the same memory, wherever it is mapped."""

    address: int
    key: Hashable
    data: memoryview


@dataclass
class Tables:
    """Page tables of one context that have been written so far."""

    root: int
    tables: dict[tuple[int, int], int] = field(default_factory=dict)  # (level, address >> its shift) -> physical
    mapped: dict[int, tuple[int, int]] = field(default_factory=dict)  # address -> physical, size


class AubWriter:
    """Writer of a new AUB file, which appears at `path` when it is complete; an existing file is never replaced.

    with AubWriter("trace.aub", device("skl")) as writer:
        writer.submit("render", "my context", batch, [Mapped(batch, "batch", content)])
        writer.expect("my context", result, bytes that must be there)
    """

    def __init__(self, path: str | os.PathLike[str], device: Device) -> None:
        self.path, self.device, self.gen = Path(path), device, device.generation.number
        self.port = submission.port(device)
        if not hasattr(self.port, "sequence") or device.generation.ppgtt != "four_level":
            raise Unsupported(f"{device.name}: AUB files are written for GPUs that are given contexts, from Broadwell on")
        if os.path.lexists(self.path):
            raise SoftgenError(f"{self.path}: already exists")
        self._physical, self._global = FIRST_PHYSICAL, FIRST_GLOBAL
        self._objects: dict[Hashable, tuple[int, memoryview]] = {}  # key -> physical, what was written
        self._spaces: dict[Hashable, Tables] = {}
        self._contexts: dict[tuple[Hashable, str], AubContext] = {}
        number = next((n for n, name in tables.aub("device").items() if name == device.name), 0)
        text = f"PCI-ID={device.pci_id:#06x} {device.name}".encode() + b"\0"
        version = encode("AUB_VERSION", text, version=VERSION, device=number, method=PHYSICAL_METHOD)
        try:
            descriptor, name = tempfile.mkstemp(prefix=f".{self.path.name}.", dir=self.path.parent)
        except OSError as error:
            raise SoftgenError(f"{self.path}: cannot be written: {error.strerror}") from None
        self.temporary, self.file = Path(name), os.fdopen(descriptor, "wb")
        self.file.write(version)

    # -- records -------------------------------------------------------------------------------------------------------

    def record(self, name: str, data: bytes = b"", **fields: Any) -> None:
        self.file.write(encode(name, data, **fields))

    def comment(self, text: str) -> None:
        self.record("AUB_COMMENT", text.encode() + b"\0")

    def memory(self, address: int, data: bytes | memoryview, space: int = PHYSICAL, hint: str = "none") -> None:
        for at in range(0, len(data), CHUNK):
            piece = bytes(data[at : at + CHUNK])
            self.record("AUB_MEMORY_WRITE", piece, address=address + at, space=space, hint=tables.hints()[hint], bytes=len(piece))

    def register(self, offset: int, value: int) -> None:
        self.record("AUB_REGISTER_WRITE", offset=offset, size=DWORD_REGISTER, mask=0xFFFFFFFF, value=value)

    # -- work ----------------------------------------------------------------------------------------------------------

    def submit(self, engine: str, space: Hashable, batch: int, mapped: Iterable[Mapped], label: str = "") -> None:
        """Memory as it is now, then a batch to start. `space` names the address space; the same name is the same tables."""
        if label:
            self.comment(label)
        mapped = list(mapped)
        _refuse_overlap(mapped)
        where = {buffer.address: (self._object(buffer), len(buffer.data)) for buffer in mapped}
        self._map(self._tables(space), where)
        self._start(self._context(space, engine), engine, batch)

    def expect(self, space: Hashable, address: int, data: bytes | memoryview, equal: bool = True) -> None:
        """Write an expectation about a context's memory, checked when the file is replayed."""
        mapped = self._spaces[space].mapped if space in self._spaces else {}
        for start, (physical, size) in mapped.items():
            if start <= address and address + len(data) <= start + size:
                return self._compare(physical + address - start, data, equal)
        raise SoftgenError(f"{self.path}: nothing is mapped at {address:#x}, {len(data):#x} bytes, to expect something of")

    def _compare(self, physical: int, data: bytes | memoryview, equal: bool) -> None:
        for at in range(0, len(data), CHUNK):
            piece = bytes(data[at : at + CHUNK])
            self.record("AUB_MEMORY_COMPARE", piece, address=physical + at, space=PHYSICAL, not_equal=int(not equal), bytes=len(piece))

    def _object(self, buffer: Mapped) -> int:
        """Physical address of a buffer, after its changed bytes are written."""
        physical, before = self._objects.get(buffer.key, (0, memoryview(b"")))
        if len(before) != len(buffer.data):
            physical, before = self._allocate(len(buffer.data)), memoryview(bytes(0))
        for start, end in changes(before, buffer.data):
            self.memory(physical + start, buffer.data[start:end])
        self._objects[buffer.key] = physical, buffer.data
        return physical

    def _allocate(self, size: int) -> int:
        address = self._physical
        self._physical += -(-size // PAGE_SIZE) * PAGE_SIZE
        return address

    # -- page tables ---------------------------------------------------------------------------------------------------

    def _tables(self, space: Hashable) -> Tables:
        if space not in self._spaces:
            self._spaces[space] = Tables(self._allocate(PAGE_SIZE))
            self.memory(self._spaces[space].root, bytes(PAGE_SIZE))
        return self._spaces[space]

    def _map(self, space: Tables, mapping: dict[int, tuple[int, int]]) -> None:
        """Update a context's tables to map exactly the given buffers."""
        for address, (physical, size) in list(space.mapped.items()):
            if mapping.get(address) != (physical, size):
                self._entries(space, address, size, None)
                del space.mapped[address]
        for address, (physical, size) in mapping.items():
            if address not in space.mapped:
                self._entries(space, address, size, physical)
                space.mapped[address] = physical, size

    def _entries(self, space: Tables, address: int, size: int, physical: int | None) -> None:
        """Write page table entries for a range of addresses; None unmaps it."""
        shift, end, at = LEVELS[-1][1], address + size, address
        while at < end:
            stop = min(end, ((at >> 21) + 1) << 21)
            pages = (stop - at) // PAGE_SIZE
            data = bytes(8 * pages) if physical is None else self._run(physical + at - address, pages)
            self.memory(self._table(space, at) + 8 * (at >> shift & 511), data)
            at = stop

    def _run(self, physical: int, pages: int) -> bytes:
        """Page table entries for pages that follow one another. An entry holds its page's address in place, so it grows by a page."""
        low, high = catalogue.layout("PAGE_TABLE_ENTRY", self.gen).pack(page=physical, present=1, writable=1)
        return (np.arange(pages, dtype=np.uint64) * PAGE_SIZE + (high << 32 | low)).astype("<u8").tobytes()

    def _table(self, space: Tables, address: int) -> int:
        """The page table of an address; missing levels are allocated."""
        table = space.root
        for level, (name, shift) in enumerate(LEVELS[:-1]):
            key = level, address >> shift
            if key not in space.tables:
                space.tables[key] = self._allocate(PAGE_SIZE)
                self.memory(space.tables[key], bytes(PAGE_SIZE))
                entry = catalogue.layout(name, self.gen).pack(table=space.tables[key], present=1, writable=1)
                self.memory(table + 8 * (address >> shift & 511), struct.pack("<2I", *entry))
            table = space.tables[key]
        return table

    def _global_pages(self, pages: int) -> tuple[int, int]:
        """Allocate memory mapped in the GGTT; its graphics and physical address."""
        address, physical = self._global, self._allocate(pages * PAGE_SIZE)
        layout = catalogue.layout("GLOBAL_TABLE_ENTRY", self.gen)
        entries = [dword for page in range(pages) for dword in layout.pack(page=physical + page * PAGE_SIZE, present=1)]
        self.memory(address // PAGE_SIZE * 4 * layout.dwords, struct.pack(f"<{len(entries)}I", *entries), GLOBAL_ENTRY)
        self._global += pages * PAGE_SIZE
        return address, physical

    # -- contexts and rings --------------------------------------------------------------------------------------------

    def _context(self, space: Hashable, engine: str) -> AubContext:
        if (space, engine) not in self._contexts:
            address, physical = self._global_pages(CONTEXT_PAGES)
            ring, ring_physical = self._global_pages(RING_PAGES)
            self._contexts[space, engine] = AubContext(len(self._contexts) + 1, address, physical, ring, ring_physical)
            base, made = submission.submission(self.device).base(engine), submission.context_image()
            fields = {name: base + value if "_register" in name else value for name, value in made.items()}
            image = catalogue.layout("CONTEXT_IMAGE", self.gen).pack(
                **fields, start=ring, last_page=RING_PAGES - 1, enable=1, page_directory_0=self._spaces[space].root
            )
            self.memory(physical, bytes(PAGE_SIZE) + struct.pack(f"<{len(image)}I", *image), hint=f"context_{engine}")
        return self._contexts[space, engine]

    def _start(self, context: AubContext, engine: str, batch: int) -> None:
        """A ring that calls the batch, the context's head and tail, and the registers that start it."""
        start = catalogue.layout("MI_BATCH_BUFFER_START", self.gen).pack(address_space_indicator=1, batch_buffer_start_address=batch)
        start += [0] * (len(start) % 2)  # a tail is whole qwords
        self.memory(context.ring_physical, struct.pack(f"<{len(start)}I", *start), hint="ring")
        image = catalogue.layout("CONTEXT_IMAGE", self.gen)
        for name, value in (("head", 0), ("tail", 4 * len(start))):
            self.memory(context.physical + PAGE_SIZE + image.field(name).low // 32 * 4, struct.pack("<I", value))
        low, high = catalogue.layout("CONTEXT_DESCRIPTOR", self.gen).pack(
            context_id=context.number, context_address=context.address, privileged=1, addressing=LEGACY_64_BIT, valid=1
        )
        for offset, value in self.port.sequence(engine, low, high):
            self.register(offset, value)
        table = submission.submission(self.device)
        done, offset = table.done, table.base(engine) + table.done["register"]
        self.record("AUB_REGISTER_POLL", offset=offset, size=DWORD_REGISTER, mask=done["mask"], value=done["value"])

    # -- the file ------------------------------------------------------------------------------------------------------

    def __enter__(self) -> AubWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        try:
            self.file.close()
            if kind is None:
                self.temporary.chmod(0o666 & ~_umask())
                os.link(self.temporary, self.path)  # unlike rename, this never replaces a file
        except OSError as failure:
            raise SoftgenError(f"{self.path}: cannot be written: {failure.strerror}") from None
        finally:
            self.temporary.unlink(missing_ok=True)


@dataclass(frozen=True)
class AubContext:
    number: int
    address: int
    physical: int
    ring: int
    ring_physical: int


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _refuse_overlap(mapped: list[Mapped]) -> None:
    end = 0
    for buffer in sorted(mapped, key=lambda m: m.address):
        address, size = buffer.address, len(buffer.data)
        if address % PAGE_SIZE or not size or size % PAGE_SIZE or address < end or address + size > 1 << 48:
            raise SoftgenError(f"{size:#x} bytes at {address:#x}: buffers are whole pages in 48 bits and do not overlap")
        end = address + size


def changes(before: memoryview, now: memoryview) -> Iterator[tuple[int, int]]:
    """Runs of bytes (start, end) that differ. With nothing before, pages that are not zero: memory starts as zero."""
    for at in range(0, len(now), CHUNK):
        new = np.frombuffer(now[at : at + CHUNK], np.uint8)
        if before:
            unit, differs = 1, new != np.frombuffer(before[at : at + CHUNK], np.uint8)
        else:
            unit, differs = PAGE_SIZE, new.reshape(-1, PAGE_SIZE).any(axis=1)
        if differs.any():
            edges = unit * np.flatnonzero(np.diff(differs.view(np.int8), prepend=np.int8(0), append=np.int8(0)))
            yield from ((at + int(start), at + int(end)) for start, end in edges.reshape(-1, 2))


def write_aub(path: str | os.PathLike[str], trace: WorkTrace) -> None:
    """Write a trace as an AUB file; traces of Gen8 and later whose work is batches can be."""
    with AubWriter(path, trace.device) as writer:
        if isinstance(trace, CaptureTrace):
            for exec_ in trace.execs():
                _write_exec(writer, trace, exec_)
        else:
            for work in trace.work():
                _write_work(writer, work)


def _write_exec(writer: AubWriter, trace: CaptureTrace, exec_: Exec) -> None:
    """A submission of a capture: buffers are known by uid, contents after it become expectations."""
    space = ("vm", exec_.pid, exec_.vm) if exec_.vm else ("context", exec_.pid, exec_.ctx)
    mapped = [Mapped(bo.gpu_addr, (exec_.pid, bo.uid, bo.size), trace.contents(bo).view) for bo in exec_.bos]
    writer.submit(exec_.engine_name, space, exec_.batch.gpu_addr, mapped, f"submission {exec_.seq}")
    for bo in exec_.bos:
        if bo.after is not None:
            after = memoryview(bytes(bo.size)) if bo.after == ZERO else trace.blobs.get(bo.after, bo.size).view
            writer.expect(space, bo.gpu_addr, after)


def _write_work(writer: AubWriter, work: Work) -> None:
    if work.kind != "batch":
        raise Unsupported(f"{work.label or 'work'}: comes from a ring; AUB files are written from batches")
    mapped = [Mapped(r.start, (work.context, r.start), memoryview(work.space.read(r.start, r.size))) for r in work.space.regions()]
    writer.submit(work.engine, work.context, work.batch, mapped, work.label)
