"""A driver in a few lines: a GPU with memory behind page tables, contexts with rings, and their submission."""

from __future__ import annotations

import itertools
import struct
from dataclasses import dataclass
from typing import Any

from softgen.bits.catalogue import layout
from softgen.bits.generation import device
from softgen.device import submission
from softgen.device.gpu import GpuDevice
from softgen.device.memory import DeviceMemory

PAGE = 4096
LEGACY_64 = 3
INHIBIT_SWITCH = 0x00080008  # CTX_SR_CTL: stay at a semaphore
RESTORE_INHIBIT = 0x00010001
POSH_ENABLE, POSH_MASK = 0x00200020, 0x00200000
STATUS_PAGE = 0x10000
DATA = 0x40_0000  # in every context's space and in the global one, the same page


@dataclass
class Context:
    number: int
    address: int  # its status page; the image follows
    ring: int
    tail: int = 0
    second: int = 0  # where its POSH context is


class Host:
    def __init__(self, gpu: str = "skl", **options: Any) -> None:
        self.device = device(gpu)
        self.gen = self.device.generation.number
        self.memory = DeviceMemory(self.device.generation)
        self.gpu = GpuDevice(self.device, itertools.count(1).__next__, memory=self.memory, **options)
        self.table = submission.submission(self.device)
        self.next = 0x20000
        size = self.device.generation.ggtt_entry // 8
        for_pages = ((page | 1).to_bytes(size, "little") for page in range(0, 0x80_0000, PAGE))  # laid out alike on all generations
        self.memory.entries.write(0, b"".join(for_pages))  # the global table leads to the same addresses
        self.space = self.memory.global_space
        self.root = self.tables() if self.device.generation.ppgtt == "four_level" else 0

    def pages(self, count: int) -> int:
        self.next += count * PAGE
        return self.next - count * PAGE

    def tables(self) -> int:
        """Four levels that map the first 8 MiB of a context to the same addresses."""
        root, pointers, directory = self.pages(1), self.pages(1), self.pages(1)
        self.entry("PML4_ENTRY", root, table=pointers)
        self.entry("PAGE_DIRECTORY_POINTER_ENTRY", pointers, table=directory)
        for part in range(4):
            table = self.pages(1)
            self.entry("PAGE_DIRECTORY_ENTRY", directory + 8 * part, table=table)
            low, high = layout("PAGE_TABLE_ENTRY", self.gen).pack(present=1, writable=1, page=part * 512 * PAGE)
            self.memory.physical.write(table, struct.pack("<512Q", *((low | high << 32) + page * PAGE for page in range(512))))
        return root

    def entry(self, name: str, at: int, **values: int) -> None:
        self.memory.physical.write(at, struct.pack("<2I", *layout(name, self.gen).pack(present=1, writable=1, **values)))

    def pack(self, name: str, **values: Any) -> list[int]:
        return layout(name, self.gen).pack(**values)

    def put(self, address: int, *commands: list[int]) -> None:
        dwords = list(itertools.chain(*commands))
        self.space.write(address, struct.pack(f"<{len(dwords)}I", *dwords))

    def dwords(self, address: int, count: int) -> list[int]:
        return list(struct.unpack(f"<{count}I", self.space.read(address, 4 * count)))

    def store(self, offset: int, value: int) -> list[int]:
        whole = self.pack("MI_STORE_DATA_IMM", address=DATA + offset, immediate_data=value | 1 << 32)
        return [whole[0] - 1, *whole[1:-1]]

    def wait(self, offset: int, value: int, **fields: int) -> list[int]:
        """Until memory holds more than a value."""
        return self.pack("MI_SEMAPHORE_WAIT", **{"wait_mode": 1, "compare_operation": 1, "semaphore_data_dword": value,
                                                 "semaphore_address": DATA + offset, **fields})  # fmt: skip

    def context(self, number: int, control: int = RESTORE_INHIBIT | INHIBIT_SWITCH, engine: str = "render") -> Context:
        made = Context(number, self.pages(20), self.pages(1))
        base = self.table.base(engine)
        fields = {name: base + value if "_register" in name else value for name, value in submission.context_image().items()}
        image = self.pack("CONTEXT_IMAGE", **{**fields, "context_control": control}, start=made.ring, enable=1, page_directory_0=self.root)
        self.put(made.address + PAGE, image)
        return made

    def posh_context(self, number: int, start: int | None = None, enable: int = 1, control: int = INHIBIT_SWITCH) -> Context:
        """A context with POSH enabled (or not), whose second image is `second`."""
        made = self.context(number, RESTORE_INHIBIT | control | (POSH_ENABLE if enable else POSH_MASK))
        made.second = self.pages(4)
        where = made.address + PAGE
        posh = self.pack("MI_LOAD_REGISTER_IMM", force_posted=1, entry=[{"register_offset": 0x21B0, "data_dword": made.second}])
        self.put(where + 4 * 0x34, posh)
        ring = {0x244: 0, 0x34: 0, 0x30: 0, 0x38: made.ring if start is None else start, 0x3C: 1}
        entries = [{"register_offset": 0x18000 + offset, "data_dword": value} for offset, value in ring.items()]
        self.put(made.second + PAGE, [0], self.pack("MI_LOAD_REGISTER_IMM", force_posted=1, entry=entries))
        return made

    def say(self, context: Context, *commands: list[int]) -> None:
        """More commands in a context's ring, to a whole qword."""
        dwords = list(itertools.chain(*commands))
        dwords += [0] * (len(dwords) % 2)
        self.put(context.ring + context.tail, dwords)
        context.tail += 4 * len(dwords)
        where = context.address + PAGE + layout("CONTEXT_IMAGE", self.gen).field("tail").low // 32 * 4
        self.put(where, [context.tail])

    def submit(self, *contexts: Context, engine: str = "render", **flags: int) -> None:
        """One execlist of up to two contexts."""
        fields = {"privileged": 1, "addressing": LEGACY_64, "valid": 1, **flags}
        low = [self.pack("CONTEXT_DESCRIPTOR", context_id=context.number, context_address=context.address, **fields)
               for context in contexts]
        base, registers = self.table.base(engine), self.table.registers
        if "port" in registers:
            low += [[0, 0]] * (2 - len(low))
            writes = [(registers["port"], value) for item in reversed(low) for value in reversed(item)]
        else:
            writes = [(registers["low"] + 8 * i + 4 * k, item[k]) for i, item in enumerate(low)
                      for k in (0, 1)] + [(registers["control"], 1)]
        for offset, value in writes:
            self.gpu.write_register(base + offset, value)

    def events(self, count: int) -> list[dict[str, int]]:
        """What the status page says about contexts: the fields that are set of the first entries."""
        page = layout("CTXT_ST_BUF", self.gen)
        where = STATUS_PAGE + 4 * self.table.events["first"]
        records = [page.unpack(self.dwords(where + 8 * i, 2)) for i in range(count)]
        return [{name: int(value) for name, value in record._asdict().items() if value} for record in records]
