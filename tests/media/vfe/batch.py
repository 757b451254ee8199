"""Batches with root threads of Gen4.5's video front end, and what the threads found in their registers.

    ran = Media([media_object(inline=[1, 2, 3])]).run()
    ran.registers(0, 1)     # r1 of the thread whose number in r0.6 is 0, as dwords

The kernel `dump` writes its first registers to a buffer, at a place that r0.6 names: so the order of threads does not matter.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from softgen.bits.catalogue import layout
from softgen.bits.generation import device
from softgen.device.gpu import GpuDevice
from softgen.eu.text import dialect
from softgen.memory.address_space import AddressSpace
from softgen.threads.dispatcher import EngineDispatcher
from softgen.trace.work import Work
from tests.three_d.draw_memory import filled_space
from tests.three_d.g45_draw import move, send

GEN = 4.5
BATCH, GENERAL, SURFACES, CURBE, INDIRECT, OUT, SCRATCH, EXTRA = (number << 20 for number in range(1, 9))
SIZE = 1 << 17
VFE, EXTENSION, DESCRIPTORS, KERNEL = 0x0, 0x40, 0x100, 0x1000
KERNEL_STEP = 0x1000  # between kernels: interface descriptor n has number n, the last one those behind it, too
TABLE = 0x400
ROW = 64  # registers that the buffer has room for, for each thread
MODES = {"generic": 0, "vld": 1, "is": 2, "avc-mc": 4, "avc-it": 7, "vc1-it": 11}
Fields = Mapping[str, Any]
END = send(0, 7, 0, 1, eot=True, name="thread_spawner")


def dump(registers: int, first: int = 0, end: str = END) -> str:
    """A kernel that writes registers to the buffer of surface 0, at row r0.6."""
    lines = [move("g120", "g0<8,8,1>"), "shl(1) g120.2<1>UD g0.6<0,1,0>UD 0x0000000bUD { align1 nomask };",
             f"add(1) g120.2<1>UD g120.2<0,1,0>UD {32 * first:#010x}UD {{ align1 nomask }};"]  # fmt: skip
    for number in range(first, first + registers):
        lines += [move("m2", f"g{number}<8,8,1>"), send(1, 5, 0x200, 2, name="write", source="g120"),
                  "add(1) g120.2<1>UD g120.2<0,1,0>UD 0x00000020UD { align1 nomask };"]  # fmt: skip
    return "\n".join([*lines, end])


def pack(name: str, **fields: Any) -> list[int]:
    return list(layout(name, GEN).pack(**fields))


def words(data: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(data)}I", *data)


def media_object(name: str = "MEDIA_OBJECT", inline: Sequence[int] = (0,), **fields: Any) -> list[int]:
    return pack(name, inline_data=[{"inline_data": value & 0xFFFFFFFF} for value in inline], **fields)


def store(address: int, value: int) -> list[int]:
    """MI_STORE_DATA_IMM of a dword."""
    header, *rest = pack("MI_STORE_DATA_IMM", address=address, immediate_data=value)
    return [header - 1, *rest[:3]]


@dataclass
class Media:
    """A batch of objects in generic mode with `dump`, unless said otherwise. `descriptors` have more fields, by number."""

    commands: Sequence[Sequence[int]]
    kernels: Sequence[str] = (dump(4),)
    mode: str = "generic"
    vfe: Fields = field(default_factory=dict)
    extension: tuple[str, Fields] | None = None
    pointers: Fields = field(default_factory=dict)
    descriptor: Fields = field(default_factory=dict)
    descriptors: Mapping[int, Fields] = field(default_factory=dict)
    curbe: bytes = b""
    indirect: bytes = b""
    bases: Fields = field(default_factory=dict)
    before: Sequence[Sequence[int]] = ()
    surfaces: Sequence[Fields] = ()
    patch: Mapping[int, bytes] = field(default_factory=dict)
    device: str = "g45"

    @property
    def gen(self) -> float:
        return device(self.device).generation.number

    def pack(self, name: str, **fields: Any) -> list[int]:
        return list(layout(name, self.gen).pack(**fields))

    def batch(self) -> bytes:
        bases = {"general_state_base_address": GENERAL, "surface_state_base_address": SURFACES, "indirect_object_base_address": INDIRECT}
        loads = [self.pack("CS_URB_STATE", urb_entry_allocation_size=max(len(self.curbe) // 64 - 1, 0), number_of_urb_entries=1),
                 self.pack("CONSTANT_BUFFER", valid=1, buffer_starting_address=CURBE - GENERAL,
                      buffer_length=len(self.curbe) // 64 - 1)] if self.curbe else []  # fmt: skip
        commands = [
            self.pack("MI_FLUSH"), self.pack("PIPELINE_SELECT", pipeline_selection=1),
            self.pack("URB_FENCE", vfe_unit_urb_reallocation_request=1, vfe_fence=256, cs_unit_urb_reallocation_request=1, cs_fence=384),
            self.pack("STATE_BASE_ADDRESS", **bases, **{f"{name}_modify_enable": 1 for name in bases}, **self.bases),
            *self.before, self.state_pointers(), *loads, *self.commands, self.pack("MI_FLUSH"), self.pack("MI_BATCH_BUFFER_END"),
        ]  # fmt: skip
        return b"".join(words(command) for command in commands)

    def state_pointers(self) -> list[int]:
        fields = {"vfe_state_pointer": VFE, "extended_vfe_state_enable": int(self.extension is not None),
                  "extended_state_pointer": EXTENSION, **self.pointers}  # fmt: skip
        return self.pack("MEDIA_STATE_POINTERS", **fields)

    def general(self) -> bytes:
        held = bytearray(SIZE)
        vfe = {"vfe_mode": MODES[self.mode], "urb_entry_allocation_size": 63, "number_of_urb_entries": 4, "maximum_number_of_threads": 3,
               "interface_descriptor_base_pointer": DESCRIPTORS, "debug_counter_control": 0,
               "extended_vfe_state_present": int(self.extension is not None), **self.vfe}  # fmt: skip
        place(held, VFE, words(self.pack("VFE_STATE", **vfe)))
        if self.extension is not None:
            place(held, EXTENSION, words(self.pack(self.extension[0], **self.extension[1])))
        for number in range(128):
            kernel = min(number, len(self.kernels) - 1)
            fields = {"kernel_start_pointer": KERNEL + KERNEL_STEP * kernel, "binding_table_pointer": TABLE, "grf_register_blocks": 15,
                      **self.descriptor, **self.descriptors.get(number, {})}  # fmt: skip
            place(held, DESCRIPTORS + 16 * number, words(self.pack("INTERFACE_DESCRIPTOR_DATA", **fields)))
        for number, text in enumerate(self.kernels):
            place(held, KERNEL + KERNEL_STEP * number, dialect.read(text, self.gen))
        return bytes(held)

    def surface_states(self) -> bytes:
        held = bytearray(SIZE)
        for number, fields in enumerate(self.surfaces or [buffer_surface(OUT)]):
            place(held, 0x20 * number, words(self.pack("RENDER_SURFACE_STATE", **fields)))
            place(held, TABLE + 4 * number, words([0x20 * number]))
        return bytes(held)

    def memory(self) -> AddressSpace:
        held = {BATCH: self.batch(), GENERAL: self.general(), SURFACES: self.surface_states(), CURBE: self.curbe, INDIRECT: self.indirect,
                OUT: bytes(SIZE), SCRATCH: bytes(SIZE), EXTRA: bytes(SIZE)}  # fmt: skip
        return filled_space(self.device, 32, SIZE, held, self.patch)

    def run(self, engine: str = "reference", threads: int = 1, **more: Any) -> Ran:
        """Executes the batch; an error stops it and is raised."""
        space = self.memory()
        gpu = GpuDevice(device(self.device), dispatcher=EngineDispatcher(engine, threads=threads), **more)
        gpu.execute(Work("render", space, BATCH))
        return Ran(self, gpu, space)


def place(held: bytearray, at: int, data: bytes) -> None:
    held[at : at + len(data)] = data


def buffer_surface(address: int, size: int = SIZE) -> Fields:
    """A buffer of bytes."""
    last = size - 1
    return {"surface_type": 4, "surface_format": 0x140, "surface_base_address": address, "width": last & 0x7F, "height": last >> 7 & 0x1FFF,
            "depth": last >> 20, "surface_pitch": 0}  # fmt: skip


@dataclass
class Ran:
    media: Media
    gpu: GpuDevice
    space: AddressSpace

    @property
    def warnings(self) -> list[str]:
        """What broke a rule, without its place."""
        return [remark.partition("): ")[2] for remark in self.gpu.remarks]

    def data(self, thread: int, first: int, count: int = 1) -> bytes:
        """Registers of a thread, by its number in r0.6."""
        return self.space.read(OUT + 32 * (ROW * thread + first), 32 * count)

    def registers(self, thread: int, first: int, count: int = 1) -> tuple[int, ...]:
        return struct.unpack(f"<{8 * count}I", self.data(thread, first, count))

    def header(self, thread: int) -> Any:
        return layout("MEDIA_ROOT_THREAD_HEADER", GEN).raw(self.registers(thread, 0))
