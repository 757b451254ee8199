"""A compute job of our own: a kernel in text and buffers become memory with a batch in it, as a driver would have written it."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from softgen.bits.catalogue import layout
from softgen.bits.generation import Device, device
from softgen.device.gpu import GpuDevice
from softgen.eu.text import dialect
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.threads.dispatcher_protocol import Dispatcher
from softgen.trace.aub_write import AubWriter, Mapped
from softgen.trace.work import Work

BATCH, DYNAMIC, SURFACES, CODE, INDIRECT, FIRST = 0x10000, 0x20000, 0x30000, 0x40000, 0x50000, 0x100000
STEP = 0x10000  # between data buffers
PAGE = 0x1000
TABLE = 0x800  # the binding table, behind the surface states
LOCAL_CODES = {0: 0, 1024: 1, 2048: 2, 4096: 3, 8192: 4, 16384: 5, 32768: 6, 65536: 7}  # Gen9 and Gen11
SIMD_CODES = {8: 0, 16: 1, 32: 2}
END = "(W) send (8|M0) null r127 0x27 0x02000010 {EOT}"  # to the spawner, with r0 in r127

# Surface 1 gets what surface 0 holds, and a constant; 16 items a group, their numbers in r1.
ADD = f"""
(W)  mov (8|M0)  r127.0<1>:ud r0.0<8;8,1>:ud
     shl (16|M0) r10.0<1>:d r0.1<0;1,0>:d 4:w
     add (16|M0) r10.0<1>:d r10.0<8;8,1>:d r1.0<16;16,1>:uw
     shl (16|M0) r10.0<1>:d r10.0<8;8,1>:d 2:w
     send (16|M0) r20:w r10 0xC 0x04205E00
     add (16|M0) r12.0<1>:d r20.0<8;8,1>:d r2.0<0;1,0>:d
     send (16|M0) null:w r10 0xC 0x08025E01
{END}
"""


def dwords(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}I", *values)


def words(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}H", *values)


def stores(move: str) -> str:
    """A kernel whose first channel stores what it moves to r11 into surface 0."""
    return f"""
(W)  mov (8|M0) r127.0<1>:ud r0.0<8;8,1>:ud
(W)  mov (8|M0) r10.0<1>:ud 0x0:ud
(W)  mov {move}
(W)  send (1|M0) null r10 0xC 0x04026E00
{END}
"""


@dataclass
class Job:
    """What to run; memory() is what the GPU then sees."""

    kernel: str
    buffers: Sequence[bytes]
    gpu: str = "skl"
    simd: int = 16
    shape: tuple[int, int, int] = (1, 1, 1)
    starts: tuple[int, int, int] = (0, 0, 0)
    ends: tuple[int, int, int] = (1, 1, 1)
    right: int = 0xFFFFFFFF
    bottom: int = 0xFFFFFFFF
    shared: bytes = b""  # constants of all threads
    own: Sequence[bytes] = ()  # constants of each
    fetched: bool = True  # the walker fetches them; else they are loaded into the CURBE
    indirect_base: int = 0  # what the walker's addresses of indirect data are relative to
    local: int = 0
    descriptor: dict[str, Any] = field(default_factory=dict)
    walker: dict[str, Any] = field(default_factory=dict)
    front: dict[str, Any] = field(default_factory=dict)
    before: list[list[int]] = field(default_factory=list)  # commands before the walker
    after: list[list[int]] = field(default_factory=list)
    starts_threads: list[list[int]] | None = None  # commands in place of the walker

    @property
    def device(self) -> Device:
        return device(self.gpu)

    @property
    def gen(self) -> float:
        return self.device.generation.number

    def pack(self, name: str, **values: Any) -> list[int]:
        return layout(name, self.gen).pack(**values)

    def address(self, number: int) -> int:
        return FIRST + number * STEP

    def constants(self) -> bytes:
        return self.shared + b"".join(self.own)

    def batch(self) -> bytes:
        bases: dict[str, Any] = {f"{name}_modify_enable": 1 for name in
                                 ("surface_state_base_address", "dynamic_state_base_address", "instruction_base_address",
                                  "general_state_base_address", "indirect_object_base_address")}  # fmt: skip
        bases |= {"surface_state_base_address": SURFACES, "dynamic_state_base_address": DYNAMIC, "instruction_base_address": CODE,
                  "indirect_object_base_address": self.indirect_base}  # fmt: skip
        data = self.constants()
        fetch = {"indirect_data_length": len(data), "indirect_data_start_address": INDIRECT - self.indirect_base}
        fetch = fetch if self.fetched and data else {}
        names = ("thread_group_id_starting_x", "thread_group_id_starting_y", "thread_group_id_starting_resume_z")
        ends = ("thread_group_id_x_dimension", "thread_group_id_y_dimension", "thread_group_id_z_dimension")
        counters = ("thread_width_counter_maximum", "thread_height_counter_maximum", "thread_depth_counter_maximum")
        walker = {**dict(zip(names, self.starts, strict=True)), **dict(zip(ends, self.ends, strict=True)), **fetch,
                  **{name: size - 1 for name, size in zip(counters, self.shape, strict=True)}, "simd_size": SIMD_CODES[self.simd],
                  "right_execution_mask": self.right, "bottom_execution_mask": self.bottom, **self.walker}  # fmt: skip
        load = self.pack("MEDIA_CURBE_LOAD", curbe_total_data_length=len(data), curbe_data_start_address=0x100)
        commands = [
            self.pack("STATE_BASE_ADDRESS", **bases), self.pack("MEDIA_VFE_STATE", **self.front),
            *([load] if data and not self.fetched else []),
            self.pack("MEDIA_INTERFACE_DESCRIPTOR_LOAD", interface_descriptor_total_length=32, interface_descriptor_data_start_address=0),
            *self.before, *([self.pack("GPGPU_WALKER", **walker)] if self.starts_threads is None else self.starts_threads), *self.after,
            self.pack("MI_BATCH_BUFFER_END"),
        ]  # fmt: skip
        return b"".join(dwords(*command) for command in commands)

    def dynamic(self) -> bytes:
        width, height, depth = self.shape
        values = {"binding_table_pointer": TABLE, "number_of_threads_in_gpgpu_thread_group": width * height * depth,
                  "constant_urb_entry_read_length": len(self.own[0]) // 32 if self.own else 0,
                  "cross_thread_constant_data_read_length": len(self.shared) // 32,
                  "shared_local_memory_size": LOCAL_CODES[self.local], **self.descriptor}  # fmt: skip
        return dwords(*self.pack("INTERFACE_DESCRIPTOR_DATA", **values)).ljust(0x100, b"\0") + self.constants()

    def surfaces(self) -> bytes:
        states = b"".join(self.surface(number, data) for number, data in enumerate(self.buffers))
        return states.ljust(TABLE, b"\0") + dwords(*(64 * number for number in range(len(self.buffers))))

    def surface(self, number: int, data: bytes) -> bytes:
        size = len(data) - 1
        return dwords(*self.pack("RENDER_SURFACE_STATE", surface_type=4, surface_format=0x1FF, surface_base_address=self.address(number),
                                 width=size & 0x7F, height=size >> 7 & 0x3FFF, depth=size >> 21))  # fmt: skip

    def pieces(self) -> dict[int, bytes]:
        code = dialect.read(self.kernel, self.gen)
        fixed = {BATCH: self.batch(), DYNAMIC: self.dynamic(), SURFACES: self.surfaces(), CODE: code, INDIRECT: self.constants()}
        return fixed | {self.address(number): data for number, data in enumerate(self.buffers)}

    def memory(self) -> AddressSpace:
        space = AddressSpace("job", self.device.generation.address_bits)
        for address, data in self.pieces().items():
            if data:
                buffer = MemfdBuffer(-(-len(data) // PAGE) * PAGE, f"{address:#x}")
                buffer.view[: len(data)] = data
                space.map(address, buffer)
        return space

    def mapped(self) -> list[Mapped]:
        """For AUB files."""
        return [Mapped(address, hex(address), memoryview(data.ljust(-(-len(data) // PAGE) * PAGE, b"\0")))
                for address, data in self.pieces().items() if data]  # fmt: skip

    def run(self, gpu: GpuDevice | None = None, groups: Dispatcher | None = None) -> Ran:
        gpu, space = gpu or GpuDevice(self.device, clock=lambda: 0x123456789, dispatcher=groups), self.memory()
        gpu.execute(Work("render", space, BATCH))
        return Ran(self, gpu, space)


@dataclass
class Ran:
    job: Job
    gpu: GpuDevice
    space: AddressSpace

    def buffer(self, number: int) -> tuple[int, ...]:
        """A data buffer as dwords."""
        size = len(self.job.buffers[number])
        return struct.unpack(f"<{size // 4}I", self.space.read(self.job.address(number), size))


def vector_add(gpu: str, ends: int = 4, right: int = 0xFFFFFFFF) -> Job:
    constants = {"shared": dwords(1000, *[0] * 7), "own": [words(*range(16))]}
    return Job(ADD, [dwords(*range(64)), bytes(256)], gpu, ends=(ends, 1, 1), right=right, **constants)


def local_dword(offset: int) -> Job:
    """A dword of local memory, of 1024 bytes: written, read, and what was read goes to surface 0."""
    return Job(f"""
(W)  mov (8|M0)  r127.0<1>:ud r0.0<8;8,1>:ud
(W)  mov (8|M0)  r10.0<1>:ud {offset:#x}:ud
(W)  mov (8|M0)  r11.0<1>:ud 0x7:ud
(W)  send (1|M0) null r10 0xC 0x04026EFE
(W)  mov (8|M0)  r11.0<1>:ud 0x0:ud
(W)  send (1|M0) r11 r10 0xC 0x02106EFE
(W)  mov (8|M0)  r10.0<1>:ud 0x0:ud
(W)  send (1|M0) null r10 0xC 0x04026E00
{END}
""", [dwords(99)], simd=8, local=1024)  # fmt: skip


def aub(path: Path, job: Job, expected: bytes, equal: bool = True) -> Path:
    """A file like those Intel's runtime writes, with one expectation."""
    with AubWriter(path, job.device) as writer:
        writer.submit("render", "context", BATCH, job.mapped())
        writer.expect("context", job.address(1), expected, equal)
    return path
