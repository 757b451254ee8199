"""State and commands of a compute dispatch, packed by spec pages as a driver would write them.

Reads   RENDER_SURFACE_STATE BINDING_TABLE_STATE SAMPLER_STATE INTERFACE_DESCRIPTOR_DATA PIPELINE_SELECT STATE_BASE_ADDRESS
        MEDIA_VFE_STATE MEDIA_CURBE_LOAD MEDIA_INTERFACE_DESCRIPTOR_LOAD GPGPU_WALKER MEDIA_STATE_FLUSH MI_BATCH_BUFFER_END
Writes  bytes
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from softgen.api.memory import Buffer, Image, Sampler
from softgen.bits.catalogue import catalogue
from softgen.bits.describe import values_of
from softgen.bits.generation import Device
from softgen.bits.layout import Layout
from softgen.bits.units import GRF_BYTES
from softgen.errors import UsageError

SURFACE_TYPES = {"2d": 1, "3d": 2, "buffer": 4, "null": 7}
RAW = 0x1FF
KIB = 1024
ALL = 0xFFFFFFFF
PIPELINE_GPGPU = 2
ADDRESSING = {"none": "clamp", "repeat": "wrap", "clamp_border": "clamp_border", "clamp_edge": "clamp", "mirror": "mirror"}
CHANNELS = ("red", "green", "blue", "alpha")
ALIGNED = 64  # what state in memory is aligned to
ENTRIES = 256  # of a binding table


@dataclass
class Dispatch:
    """Threads of one GPGPU_WALKER; addresses of state are offsets from the bases."""

    simd: int
    group_threads: int
    groups: tuple[int, int, int]
    first_group: tuple[int, int, int] = (0, 0, 0)
    right_mask: int = ALL
    per_thread: int = 0  # registers
    cross_thread: int = 0  # registers
    indirect: tuple[int, int] | None = None  # offset and bytes of payload that the walker fetches
    curbe: tuple[int, int] | None = None  # offset and bytes of payload that MEDIA_CURBE_LOAD loads
    local_bytes: int = 0
    barrier: bool = False
    scratch_bytes: int = 0
    descriptor: int = 0
    binding_table: int = 0
    samplers: int = 0
    sampler_count: int = 0


class Parts:
    """Pieces of state one after another, each aligned."""

    def __init__(self) -> None:
        self.data = b""

    def add(self, piece: bytes) -> int:
        offset = -(-len(self.data) // ALIGNED) * ALIGNED
        self.data = self.data.ljust(offset, b"\0") + piece
        return offset


class Packer:
    """Packs structures and commands for one GPU."""

    def __init__(self, device: Device) -> None:
        self.device, self.gen = device, device.generation.number
        if catalogue().get("GPGPU_WALKER", self.gen) is None:
            raise UsageError(f"{device.title} has no GPGPU_WALKER: it cannot run compute kernels")

    def pack(self, name: str, **values: Any) -> bytes:
        dwords = catalogue().layout(name, self.gen).pack(**values)
        return struct.pack(f"<{len(dwords)}I", *dwords)

    def optional(self, name: str, **values: Any) -> dict[str, Any]:
        """The fields that this generation has."""
        known = {field.name for field, _ in self.layout(name).walk()}
        return {field: value for field, value in values.items() if field in known}

    def layout(self, name: str) -> Layout:
        return catalogue().layout(name, self.gen)

    def sizes(self, structure: str, field: str) -> dict[int, int]:
        """Codes of a field whose values are named 0, 1k, 2k, …, with the bytes that each stands for."""
        names = values_of(self.layout(structure).field(field).type, self.gen)
        return {code: int(name.removesuffix("k")) * KIB for code, name in names.items() if name.removesuffix("k").isdigit()}

    def smallest(self, structure: str, field: str, size: int) -> int:
        """The code of the smallest size that is enough, of a field whose values are named 0, 1k, 2k, …."""
        sizes = self.sizes(structure, field)
        enough = [code for code, capacity in sizes.items() if capacity >= size]
        if not enough:
            raise UsageError(f"{size:,} bytes are too many for {field} of {self.device.title}; at most {max(sizes.values()):,}")
        return min(enough, key=sizes.__getitem__)

    # -- surfaces and samplers -----------------------------------------------------------------------------------------

    def surface(self, surface: Buffer | Image | None) -> bytes:
        """A RENDER_SURFACE_STATE; None is the null surface."""
        if surface is None:
            return self.pack("RENDER_SURFACE_STATE", surface_type=SURFACE_TYPES["null"])
        if isinstance(surface, Image):
            return self._image(surface)
        return self.raw(surface.address, max(surface.nbytes, 1))

    def raw(self, address: int, size: int) -> bytes:
        """A buffer of bytes."""
        last = size - 1
        high, deep = (self.layout("RENDER_SURFACE_STATE").field(name).width for name in ("height", "depth"))
        if last >> 7 + high + deep:
            raise UsageError(f"a buffer of {size:,} bytes is too large for a surface of {self.device.title}")
        return self.pack("RENDER_SURFACE_STATE", surface_type=SURFACE_TYPES["buffer"], surface_format=RAW, surface_base_address=address,
                         width=last & 0x7F, height=last >> 7 & (1 << high) - 1, depth=last >> 7 + high)  # fmt: skip

    def check_size(self, size: tuple[int, ...]) -> None:
        """Refuse an image with more texels in a dimension than RENDER_SURFACE_STATE can encode."""
        for name, texels in zip(("width", "height", "depth"), size, strict=False):
            most = 1 << self.layout("RENDER_SURFACE_STATE").field(name).width
            if texels > most:
                raise UsageError(f"an image's {name} is at most {most:,} on {self.device.title}, not {texels:,}")

    def _image(self, image: Image) -> bytes:
        width, height, *more = image.size
        deep = bool(more) and not image.layered
        slices = more[0] if more else 1
        values = self.optional(
            "RENDER_SURFACE_STATE", surface_array=int(image.layered), surface_vertical_alignment=1,
            surface_horizontal_alignment=self._alignment(), surface_qpitch=image.rows >> 2 if more else 0, surface_array_spacing=1,
            **{f"shader_channel_select_{name}": 4 + number for number, name in enumerate(CHANNELS)})  # fmt: skip
        return self.pack("RENDER_SURFACE_STATE", surface_type=SURFACE_TYPES["3d" if deep else "2d"], surface_format=image.format.value,
                         surface_base_address=image.address, width=width - 1, height=height - 1, depth=slices - 1,
                         surface_pitch=image.pitch - 1, render_target_view_extent=slices - 1, **values)  # fmt: skip

    def _alignment(self) -> int:
        """The code of 4 texels."""
        names = values_of(self.layout("RENDER_SURFACE_STATE").field("surface_horizontal_alignment").type, self.gen)
        return next(code for code, name in names.items() if name.startswith("4"))

    def sampler(self, sampler: Sampler) -> bytes:
        modes = {name: code for code, name in catalogue().enumeration("Texture_Coordinate_Mode", self.gen).items()}
        mode = modes[ADDRESSING[sampler.addressing]]
        filters = {"nearest": 0, "linear": 1}
        return self.pack(
            "SAMPLER_STATE", mag_mode_filter=filters[sampler.filter], min_mode_filter=filters[sampler.filter],
            tcx_address_control_mode=mode, tcy_address_control_mode=mode, tcz_address_control_mode=mode,
            non_normalized_coordinate_enable=int(not sampler.normalized),
            **{f"{axis}_address_{size}_filter_rounding_enable": filters[sampler.filter] for axis in "uvr" for size in ("mag", "min")},
        )  # fmt: skip

    # -- commands ------------------------------------------------------------------------------------------------------

    def bases(self, general: int, surface: int, dynamic: int, indirect: int, instruction: int) -> bytes:
        """PIPELINE_SELECT and STATE_BASE_ADDRESS."""
        addresses = {"general_state_base_address": general, "surface_state_base_address": surface, "dynamic_state_base_address": dynamic,
                     "indirect_object_base_address": indirect, "instruction_base_address": instruction}  # fmt: skip
        enables = {f"{name}_modify_enable": 1 for name in addresses}
        sizes = {f"{name}_buffer_size": ALL >> 12 for name in ("general_state", "dynamic_state", "indirect_object", "instruction")}
        sizes |= {f"{name}_modify_enable": 1 for name in sizes}
        select = self.pack("PIPELINE_SELECT", pipeline_selection=PIPELINE_GPGPU, **self.optional("PIPELINE_SELECT", mask_bits=3))
        return select + self.pack("STATE_BASE_ADDRESS", **addresses, **enables, **self.optional("STATE_BASE_ADDRESS", **sizes))

    def front_end(self, scratch_bytes: int, curbe_bytes: int) -> bytes:
        curbe = -(-curbe_bytes // (2 * GRF_BYTES)) * 2  # in registers, an even number
        return self.pack(
            "MEDIA_VFE_STATE", per_thread_scratch_space=self.smallest("MEDIA_VFE_STATE", "per_thread_scratch_space", scratch_bytes),
            maximum_number_of_threads=self.device.limit("compute_threads") * self.device.limit("subslices") - 1, number_of_urb_entries=2,
            urb_entry_allocation_size=2, curbe_allocation_size=curbe, **self.optional("MEDIA_VFE_STATE", gpgpu_mode=1))  # fmt: skip

    def descriptor(self, dispatch: Dispatch) -> bytes:
        """INTERFACE_DESCRIPTOR_DATA."""
        name = "INTERFACE_DESCRIPTOR_DATA"
        return self.pack(
            name, kernel_start_pointer=0, binding_table_pointer=dispatch.binding_table, sampler_state_pointer=dispatch.samplers,
            sampler_count=min(-(-dispatch.sampler_count // 4), 4), number_of_threads_in_gpgpu_thread_group=dispatch.group_threads,
            constant_urb_entry_read_length=dispatch.per_thread, barrier_enable=int(dispatch.barrier),
            shared_local_memory_size=self.smallest(name, "shared_local_memory_size", dispatch.local_bytes),
            **self.optional(name, cross_thread_constant_data_read_length=dispatch.cross_thread, denorm_mode=1))  # fmt: skip

    def dispatch(self, dispatch: Dispatch) -> bytes:
        """The commands from loading constants to the flush after the walker."""
        size = 4 * self.layout("INTERFACE_DESCRIPTOR_DATA").dwords
        load = b""
        if dispatch.curbe:
            load = self.pack("MEDIA_CURBE_LOAD", curbe_total_data_length=dispatch.curbe[1], curbe_data_start_address=dispatch.curbe[0])
        load += self.pack("MEDIA_INTERFACE_DESCRIPTOR_LOAD", interface_descriptor_total_length=size,
                          interface_descriptor_data_start_address=dispatch.descriptor)  # fmt: skip
        return load + self.walker(dispatch) + self.pack("MEDIA_STATE_FLUSH")

    def walker(self, dispatch: Dispatch) -> bytes:
        (x, y, z), (first_x, first_y, first_z) = dispatch.groups, dispatch.first_group
        fetch: dict[str, int] = {}
        if dispatch.indirect:
            fetch = {"indirect_data_start_address": dispatch.indirect[0], "indirect_data_length": dispatch.indirect[1]}
        return self.pack(
            "GPGPU_WALKER", simd_size={8: 0, 16: 1, 32: 2}[dispatch.simd], thread_width_counter_maximum=dispatch.group_threads - 1,
            thread_group_id_starting_x=first_x, thread_group_id_x_dimension=first_x + x, thread_group_id_starting_y=first_y,
            thread_group_id_y_dimension=first_y + y, thread_group_id_starting_resume_z=first_z, thread_group_id_z_dimension=first_z + z,
            right_execution_mask=dispatch.right_mask, bottom_execution_mask=ALL, **fetch)  # fmt: skip

    def end(self) -> bytes:
        return self.pack("MI_BATCH_BUFFER_END") + bytes(4)
