"""A GPU with memory for the enhancement engine: frames in linear surfaces, tables, and a batch that enhances one frame."""

from __future__ import annotations

import struct
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from softgen.bits.catalogue import layout
from softgen.bits.generation import device
from softgen.bits.record import join
from softgen.device.gpu import GpuDevice
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.trace.work import Work

BATCH, DNDI, IECP, FRAMES, ROOM = 0x10000, 0x20000, 0x21000, 0x100000, 0x40000
CURRENT, PREVIOUS, STMM_IN, STMM_OUT, DENOISED, OUTPUT, OUTPUT_OF_PREVIOUS = (FRAMES + n * ROOM for n in range(7))
NV12, YUYV, UYVY, AYUV, RGBA, P016 = 4, 0, 3, 5, 8, 12
PITCH = 512
IECP_PARTS = {"procamp": "procamp_state", "csc": "csc_state", "alpha": "alpha_aoi_state", "front": "front_end_csc", "ace": "ace_state",
              "tcc": "tcc_state", "std": "std_ste_state", "ccm": "ccm_state"}  # fmt: skip
Bytes = npt.NDArray[np.uint8]
DNDI_VALUES = {  # as both VA-API drivers send them
    "maximum_stmm": 150, "minimum_stmm": 118, "stmm_shift_up": 1, "stmm_output_shift": 5, "stmm_c2": 2, "multiplier_for_vecm": 30,
    "blending_constant_across_time_for_large_values_of_stmm": 64, "blending_constant_across_time_for_small_values_of_stmm": 125,
    "denoise_maximum_history": 192, "initial_denoise_history": 32, "denoise_history_increase": 8,
}  # fmt: skip


class EnhanceBench:
    """`size`: of the frames. Surfaces are linear but where `tiled` says otherwise."""

    def __init__(self, gpu: str, size: tuple[int, int] = (70, 34)) -> None:
        self.device, (self.width, self.height) = device(gpu), size
        self.gpu, self.space = GpuDevice(self.device), AddressSpace("frames", self.device.generation.address_bits)
        for base, length in ((BATCH, 0x2000), (DNDI, 0x4000), (FRAMES, 7 * ROOM)):
            self.space.map(base, MemfdBuffer(length))
        self.chroma_row = -(-size[1] // 32) * 32

    def pack(self, name: str, **values: Any) -> list[int]:
        return layout(name, self.device.generation.number).pack(**values)

    def known(self, name: str, values: dict[str, Any]) -> dict[str, Any]:
        """Those of the fields that the generation has."""
        fields = {field.name for field in layout(name, self.device.generation.number).fields}
        return {field: value for field, value in values.items() if field in fields}

    # -- memory -------------------------------------------------------------------------------------------------------

    def put(self, base: int, rows: Bytes, first: int = 0) -> None:
        """Rows of bytes in a linear surface."""
        for number, row in enumerate(rows):
            self.space.write(base + (first + number) * PITCH, row.tobytes())

    def get(self, base: int, count: int, width: int, first: int = 0) -> Bytes:
        data = np.frombuffer(self.space.read(base + first * PITCH, count * PITCH), np.uint8)
        return data.reshape(count, PITCH)[:, :width].copy()

    def put_nv12(self, base: int, luma: Bytes, chroma: Bytes) -> None:
        """`chroma`: U and V in turn."""
        self.put(base, luma)
        self.put(base, chroma, self.chroma_row)

    def get_nv12(self, base: int) -> tuple[Bytes, Bytes]:
        return self.get(base, self.height, self.width), self.get(base, self.height // 2, self.width, self.chroma_row)

    def noise(self, seed: int) -> tuple[Bytes, Bytes]:
        """Planes of a random NV12 frame."""
        rng = np.random.default_rng(seed)
        return rng.integers(0, 256, (self.height, self.width), np.uint8), rng.integers(0, 256, (self.height // 2, self.width), np.uint8)

    # -- commands -----------------------------------------------------------------------------------------------------

    def iecp(self, **parts: dict[str, Any]) -> None:
        """The container of colour tables, from the fields of its parts."""
        values = {}
        for short, fields in parts.items():
            field = layout("VEBOX_IECP_STATE", self.device.generation.number).field(IECP_PARTS[short])
            values[IECP_PARTS[short]] = join(self.pack(field.type.target, **fields))
        dwords = self.pack("VEBOX_IECP_STATE", **values)
        self.space.write(IECP, struct.pack(f"<{len(dwords)}I", *dwords))

    def dndi(self, **fields: Any) -> None:
        dwords = self.pack("VEBOX_DNDI_STATE", **{**self.known("VEBOX_DNDI_STATE", DNDI_VALUES), **fields})
        self.space.write(DNDI, struct.pack(f"<{len(dwords)}I", *dwords))

    def surface(self, number: int, surface_format: int = NV12, **more: Any) -> list[int]:
        values = {"surface_identification": number, "width": self.width - 1, "height": self.height - 1, "surface_format": surface_format,
                  "interleave_chroma": 1, "surface_pitch": PITCH - 1, "y_offset_for_u": self.chroma_row, "y_offset_for_v": self.chroma_row,
                  "derived_surface_pitch": PITCH - 1}  # fmt: skip
        known = {"derived_surface_pitch"} - {field.name for field in layout("VEBOX_SURFACE_STATE", self.device.generation.number).fields}
        return self.pack("VEBOX_SURFACE_STATE", **{name: value for name, value in {**values, **more}.items() if name not in known})

    def state(self, **switches: Any) -> list[int]:
        return self.pack("VEBOX_STATE", dn_di_state_pointer=DNDI, iecp_state_pointer=IECP, **{"di_output_frames": 2, **switches})

    def object(self, **more: int) -> list[int]:
        values = {"starting_x": 0, "ending_x": self.width - 1, "current_frame_input_address": CURRENT, "stmm_input_address": STMM_IN,
                  "previous_frame_input_address": PREVIOUS, "stmm_output_address": STMM_OUT, "current_frame_output_address": OUTPUT,
                  "denoised_current_frame_output_address": DENOISED, "previous_frame_output_address": OUTPUT_OF_PREVIOUS}  # fmt: skip
        return self.pack("VEB_DI_IECP", **{**values, **more})

    def run(self, *commands: list[int]) -> None:
        dwords = [*chain(*commands), *self.pack("MI_BATCH_BUFFER_END")]
        self.space.write(BATCH, struct.pack(f"<{len(dwords)}I", *dwords))
        self.gpu.execute(Work("video_enhance", self.space, BATCH))

    def enhance(self, source: int = NV12, target: int = NV12, **switches: Any) -> None:
        """One frame, all of its columns."""
        self.run(self.state(**switches), self.surface(0, source), self.surface(1, target), self.object())
