"""A GPU with memory for blits, and the twin of the blitter: raster operations pixel by pixel in plain Python on NumPy bytes."""

from __future__ import annotations

import struct
from collections.abc import Callable
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from softgen.bits.catalogue import layout
from softgen.bits.generation import device
from softgen.device.gpu import GpuDevice
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.trace.work import Work

BATCH, DATA, SIZE = 0x10000, 0x100000, 0x40000
SWCTRL = 0x22200
DEPTHS = {8: 0, 565: 1, 1555: 2, 32: 3}
BYTES = (1, 2, 2, 4)
Bytes = npt.NDArray[np.uint8]


class Area(NamedTuple):
    """Pixels in memory from (x, y) on; the pitch in bytes."""

    base: int
    pitch: int
    tiling: str
    x: int
    y: int


class BlitBench:
    """A batch and data with noise in it; nothing is mapped around them."""

    def __init__(self, gpu: str, seed: int = 0, data: int = DATA, timed_out: Callable[[], bool] = lambda: False) -> None:
        self.device, self.data = device(gpu), data
        self.gpu = GpuDevice(self.device, timed_out=timed_out)
        self.engine = "render" if gpu == "g45" else "blitter"
        self.space = AddressSpace("blits", self.device.generation.address_bits)
        self.batch = MemfdBuffer(0x1000, "batch")
        self.buffer = MemfdBuffer(SIZE, "data")
        self.space.map(BATCH, self.batch)
        self.space.map(data, self.buffer)
        self.space.write(data, np.random.default_rng(seed).integers(0, 256, SIZE, np.uint8).tobytes())

    def pack(self, name: str, **values: Any) -> list[int]:
        return layout(name, self.device.generation.number).pack(**values)

    def run(self, *commands: list[int], engine: str = "") -> None:
        dwords = [*chain(*commands), *self.pack("MI_BATCH_BUFFER_END")]
        self.space.write(BATCH, struct.pack(f"<{len(dwords)}I", *dwords))
        self.gpu.execute(Work(engine or self.engine, self.space, BATCH))

    def memory(self) -> Bytes:
        return np.frombuffer(self.space.read(self.data, SIZE), np.uint8).copy()

    def y_major(self, source: bool, destination: bool) -> list[int]:
        """Which tiled surfaces are Y-major; only the bits of its mask change."""
        return self.pack("MI_LOAD_REGISTER_IMM", entry=[{"register_offset": SWCTRL, "data_dword": 3 << 16 | destination << 1 | source}])


def place(area: Area, x: int, y: int) -> int:
    """The address of byte `x` of row `y`, written out for each tiling."""
    if area.tiling == "linear":
        return area.base + y * area.pitch + x
    if area.tiling == "x_major":
        tile, inside = (y // 8) * (area.pitch // 512) + x // 512, y % 8 * 512 + x % 512
    else:
        tile, inside = (y // 32) * (area.pitch // 128) + x // 128, x % 128 // 16 * 512 + y % 32 * 16 + x % 16
    return area.base + tile * 4096 + inside


def pixels(area: Area, size: int, width: int, height: int) -> npt.NDArray[np.int64]:
    """Addresses of the bytes of a rectangle, row by row."""
    return np.array([[place(area, area.x * size + x, area.y + y) for x in range(width * size)] for y in range(height)], np.int64)


def combined(code: int, pattern: Bytes, source: Bytes, destination: Bytes) -> Bytes:
    """A raster operation by its truth table."""
    result = np.zeros_like(destination)
    for index in range(8):
        if code >> index & 1:
            p, s, d = (value if index & bit else ~value for value, bit in ((pattern, 4), (source, 2), (destination, 1)))
            result |= p & s & d
    return result


def clipped(area: tuple[int, int, int, int], clip: tuple[int, int, int, int] | None) -> tuple[int, int, int, int]:
    if clip is None:
        return area
    return max(area[0], clip[0]), max(area[1], clip[1]), min(area[2], clip[2]), min(area[3], clip[3])


def twin(bench: BlitBench, memory: Bytes, size: int, box: tuple[int, int, int, int], code: int, to: Area, source: Area | None = None,
         color: int = 0, mask: int = 3, clip: tuple[int, int, int, int] | None = None) -> Bytes:  # fmt: skip
    """Memory after a blit of pixels of `size` bytes. `box`: x1, y1, x2, y2."""
    result, part = memory.copy(), clipped(box, clip)
    width, height = part[2] - part[0], part[3] - part[1]
    if width <= 0 or height <= 0:
        return result
    places = pixels(to._replace(x=part[0], y=part[1]), size, width, height) - bench.data
    read = np.zeros_like(places, np.uint8)
    if source is not None:
        moved = source._replace(x=source.x + part[0] - box[0], y=source.y + part[1] - box[1])
        read = memory[pixels(moved, size, width, height) - bench.data]
    pattern = np.tile(np.frombuffer(struct.pack("<I", color)[:size], np.uint8), (height, width))
    new = combined(code, pattern, read, memory[places])
    alpha = np.arange(width * size) % size == 3
    written = (bool(mask & 2) & alpha) | (bool(mask & 1) & ~alpha) if size == 4 else np.ones(width * size, bool)
    result[places[:, written]] = new[:, written]
    return result
