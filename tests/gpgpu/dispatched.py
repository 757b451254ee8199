"""A case of `shared/kernels` as the hardware gets it: state, surfaces and a walker in memory, and a batch to start with."""

from __future__ import annotations

import itertools
import struct
from typing import Any

import numpy as np

from softgen.bits.catalogue import layout
from softgen.bits.generation import device
from softgen.device.gpu import GpuDevice
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.threads.dispatcher_protocol import Dispatcher
from softgen.trace.work import Work
from tests.eu.semantics.case import Case
from tests.gpgpu.job import BATCH, CODE, DYNAMIC, INDIRECT, PAGE, SIMD_CODES, SURFACES, TABLE, dwords

SCRATCH = 0x2000_0000
SCRATCH_CODE, SCRATCH_BYTES = 6, 64 << 10  # of each thread
MOST_THREADS = 64
BASES = {"general": SCRATCH, "surface": SURFACES, "dynamic": DYNAMIC, "instruction": CODE}


class Dispatched(Case):
    """The same case, through streamer, walker and data port."""

    groups: Dispatcher | None = None  # default: the reference

    def run(self) -> None:
        total, size, offset = (tuple([*self.spec[name], *([fill] * 3)][:3]) for name, fill in (("global", 1), ("local", 1), ("offset", 0)))
        shared, own = self.cross_thread(size, total, offset), self.local_ids(size)
        left = size[0] * size[1] * size[2] - self.simd * (len(own) - 1)
        walker = {
            "simd_size": SIMD_CODES[self.simd], "thread_width_counter_maximum": len(own) - 1,
            "right_execution_mask": (1 << left) - 1, "bottom_execution_mask": 0xFFFFFFFF,
            "thread_group_id_x_dimension": total[0] // size[0], "thread_group_id_y_dimension": total[1] // size[1],
            "thread_group_id_z_dimension": total[2] // size[2],
            "indirect_data_start_address": INDIRECT, "indirect_data_length": len(shared) + sum(map(len, own)),
        }  # fmt: skip
        descriptor = {
            "binding_table_pointer": TABLE, "number_of_threads_in_gpgpu_thread_group": len(own), "barrier_enable": 1,
            "constant_urb_entry_read_length": len(own[0]) // 32, "cross_thread_constant_data_read_length": len(shared) // 32,
            "shared_local_memory_size": self.local_code(), "denorm_mode": 1,
        }  # fmt: skip
        space = self.space({BATCH: self.batch(walker), DYNAMIC: self.pack("INTERFACE_DESCRIPTOR_DATA", **descriptor),
                            SURFACES: self.surface_states(), CODE: bytes(self.code), INDIRECT: shared + b"".join(own)})  # fmt: skip
        self.gpu = GpuDevice(device({8.0: "bdw", 9.0: "kbl", 11.0: "icl"}[self.gen]), dispatcher=self.groups)
        self.gpu.execute(Work("render", space, BATCH))
        for start, data in self.memory.buffers:
            data[:] = np.frombuffer(space.read(start, len(data)), np.uint8)

    def local_ids(self, size: tuple[int, ...]) -> list[bytes]:
        """A block for each thread: x, y and z of its items, a row each."""
        items = list(itertools.product(*(range(extent) for extent in reversed(size))))
        row = 64 if self.simd == 32 else 32
        blocks = []
        for first in range(0, len(items), self.simd):
            part = items[first : first + self.simd]
            rows = [np.array([item[axis] for item in part], np.uint16).tobytes().ljust(row, b"\0") for axis in (2, 1, 0)]
            blocks.append(b"".join(rows) if self.info.get("per_thread_payload_arguments") else bytes(32))
        return blocks

    def local_code(self) -> int:
        """The smallest size that is enough, as the generation writes it."""
        page = layout("INTERFACE_DESCRIPTOR_DATA", self.gen).field("shared_local_memory_size")
        sizes = {code: int(name.removesuffix("k")) * 1024 for code, name in page.type.values}
        return min((code for code, size in sizes.items() if size >= self.inline), key=sizes.__getitem__)

    def pack(self, name: str, **values: Any) -> bytes:
        return dwords(*layout(name, self.gen).pack(**values))

    def batch(self, walker: dict[str, int]) -> bytes:
        bases = {f"{name}_state_base_address" if name != "instruction" else "instruction_base_address": at for name, at in BASES.items()}
        bases |= {f"{name}_modify_enable": 1 for name in [*bases, "indirect_object_base_address"]}
        return b"".join([
            self.pack("STATE_BASE_ADDRESS", **bases), self.pack("MEDIA_VFE_STATE", per_thread_scratch_space=SCRATCH_CODE),
            self.pack("MEDIA_INTERFACE_DESCRIPTOR_LOAD", interface_descriptor_total_length=32),
            self.pack("GPGPU_WALKER", **walker), self.pack("MI_BATCH_BUFFER_END"),
        ])  # fmt: skip

    def surface_states(self) -> bytes:
        states, table = b"", [0] * (max(self.memory.surfaces, default=0) + 1)
        for index, (start, data) in self.memory.surfaces.items():
            table[index], last = len(states), len(data) - 1
            states += self.pack("RENDER_SURFACE_STATE", surface_type=4, surface_format=0x1FF, surface_base_address=start,
                                width=last & 0x7F, height=last >> 7 & 0x3FFF, depth=last >> 21)  # fmt: skip
        return states.ljust(TABLE, b"\0") + struct.pack(f"<{len(table)}I", *table)

    def space(self, pieces: dict[int, bytes]) -> AddressSpace:
        space = AddressSpace(self.spec["name"], 48)
        held = {start: data.tobytes() for start, data in self.memory.buffers}
        for address, data in {**pieces, **held, SCRATCH: bytes(MOST_THREADS * SCRATCH_BYTES)}.items():
            buffer = MemfdBuffer(-(-len(data) // PAGE) * PAGE, f"{address:#x}")
            buffer.view[: len(data)] = data
            space.map(address, buffer)
        return space
