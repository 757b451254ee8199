"""A GPU with four pages of memory, for the tests of commands."""

from __future__ import annotations

import itertools
import struct
from typing import Any

from softgen.bits.catalogue import layout
from softgen.bits.generation import device
from softgen.device.gpu import GpuDevice
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.trace.work import Work

BATCH, OTHER, DATA, RING = 0x10000, 0x11000, 0x12000, 0x13000
PAGES = 4
GPR = 0x2600  # CS_GPR of the render engine


def count_draw(cs: Any, cmd: object) -> None:
    """A handler of draws that only counts them."""
    cs.counters.draws += 1


class Bench:
    """Four pages: a batch, another, data, a ring."""

    def __init__(self, gpu: str = "kbl", timed_out: Any = lambda: False) -> None:
        self.device = device(gpu)
        self.gpu = GpuDevice(self.device, clock=itertools.count(0xA_0000_0000).__next__, timed_out=timed_out)
        self.space = AddressSpace("bench", self.device.generation.address_bits)
        self.buffer = MemfdBuffer(PAGES * 0x1000, "pages")
        self.space.map(BATCH, self.buffer)

    def pack(self, name: str, **values: Any) -> list[int]:
        return layout(name, self.device.generation.number).pack(**values)

    def put(self, address: int, *commands: list[int]) -> None:
        dwords = list(itertools.chain(*commands))
        self.space.write(address, struct.pack(f"<{len(dwords)}I", *dwords))

    def start(self, address: int, **values: Any) -> list[int]:
        return self.pack("MI_BATCH_BUFFER_START", batch_buffer_start_address=address, **values)

    def store(self, offset: int, value: int, address: int = DATA) -> list[int]:
        """A dword, or a qword where the value needs one: pages pack two dwords of data unless there is none."""
        whole = self.pack("MI_STORE_DATA_IMM", address=address + offset, immediate_data=value | 1 << 32)
        return [whole[0], *whole[1:-1], value >> 32] if value >> 32 else [whole[0] - 1, *whole[1:-1]]

    def load(self, values: dict[int, int]) -> list[int]:
        """Registers loaded with dwords."""
        return self.pack("MI_LOAD_REGISTER_IMM", entry=[{"register_offset": at, "data_dword": value} for at, value in values.items()])

    def load64(self, first: int, *values: int) -> list[int]:
        """64-bit registers in a row."""
        return self.load({first + 8 * i + 4 * half: value >> 32 * half & 0xFFFFFFFF for i, value in enumerate(values) for half in (0, 1)})

    def run(self, *commands: list[int], engine: str = "render") -> Bench:
        if commands:
            self.put(BATCH, *commands, self.pack("MI_BATCH_BUFFER_END"))
        self.gpu.execute(Work(engine, self.space, BATCH))
        return self

    def ring(self, *commands: list[int], engine: str = "render", **work: Any) -> Bench:
        """The same from a ring."""
        dwords = list(itertools.chain(*commands))
        self.put(RING, dwords)
        self.gpu.execute(Work(engine, self.space, RING, "ring", tail=4 * len(dwords), size=0x1000, **work))
        return self

    def data(self, count: int = 4) -> list[int]:
        return list(struct.unpack(f"<{count}I", self.space.read(DATA, 4 * count)))

    def qword(self, register: int) -> int:
        return self.gpu.read_register(register) | self.gpu.read_register(register + 4) << 32

    def causes(self) -> list[str]:
        return [event.cause for event in self.gpu.interrupts.events]
