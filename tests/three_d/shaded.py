"""Setup records, bins and state for tests of rasterizer and pixel shader, and a worker that keeps the threads it is given."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from softgen.bits.catalogue import layout
from softgen.bits.generation import device
from softgen.command import Counters
from softgen.eu.thread.block import BLOCK_OFFSETS, BLOCK_SIZE
from softgen.memory.address_space import AddressSpace
from softgen.shared_functions.pixel_dispatch_h import PixelDispatch
from softgen.threads.dispatch import told_nobody
from softgen.three_d.state.state import DrawState
from softgen.three_d.structures import TILE, Bins, Plane, RecordArray, SetupRecord

SCALE = 1 << 8  # sub-pixel positions of a pixel; edge functions count in 1/65536 of a square pixel
Point = tuple[float, float]


def triangle(points: Sequence[Point], box: tuple[int, int, int, int] = (0, 0, 1 << 14, 1 << 14), **more: Any) -> SetupRecord:
    """A record whose edges are those of a triangle or quadrilateral, clockwise on the screen; the top-left rule holds."""
    fixed = [(round(x * SCALE), round(y * SCALE)) for x, y in points]
    record = SetupRecord(edges=len(points), topology=4, **more)
    for number, ((x0, y0), (x1, y1)) in enumerate(zip(fixed, fixed[1:] + fixed[:1], strict=True)):
        dx, dy = x1 - x0, y1 - y0
        inclusive = dy < 0 or dy == 0 and dx > 0  # left edges go up, top edges to the right
        record.edge_dx[number], record.edge_dy[number] = -dy * SCALE, dx * SCALE
        record.edge[number] = dx * (SCALE // 2 - y0) - dy * (SCALE // 2 - x0) - (not inclusive)
    columns, rows = [x // SCALE for x, _ in fixed], [y // SCALE for _, y in fixed]
    record.x0, record.y0 = max(min(columns), box[0]), max(min(rows), box[1])
    record.x1, record.y1 = min(max(columns) + 1, box[2]), min(max(rows) + 1, box[3])
    return record


def with_planes(record: SetupRecord, rng: np.random.Generator) -> SetupRecord:
    """Planes whose values need no more bits than a double has, so that a test rounds each step once."""

    def plane(low: float = -1) -> Plane:
        c, dx, dy = (np.float32(value) for value in rng.uniform((low, -0.01, -0.01), (2, 0.01, 0.01)))
        return Plane(c, dx, dy)

    record.z, record.rhw = plane(), plane(1.5)
    record.linear[:], record.perspective[:] = (plane(), plane()), (plane(), plane())
    record.x_start, record.y_start = (np.float32(value) for value in rng.uniform(-3, 60, 2))
    return record


class Records:
    """A RecordArray with its memory: `attributes` registers of random bytes for each record."""

    def __init__(self, records: Sequence[SetupRecord], attributes: int = 0, seed: int = 1) -> None:
        self.held = (SetupRecord * max(len(records), 1))(*records)
        self.data = np.random.default_rng(seed).integers(0, 256, (max(len(records), 1), 32 * attributes), np.uint8)
        for number in range(len(records)):
            self.held[number].attributes = number * 32 * attributes
        self.array = RecordArray(ctypes.addressof(self.held), self.data.ctypes.data, 32 * attributes, len(records), len(records))

    def __iter__(self) -> Any:
        return iter(self.held[: self.array.count])


class Binned:
    """Bins of records: each tile has those whose bounding box meets it."""

    def __init__(self, records: Records, tiles_x: int = 1, tiles_y: int = 1) -> None:
        lists = [[number for number, record in enumerate(records) if meets(record, tile % tiles_x * TILE, tile // tiles_x * TILE)]
                 for tile in range(tiles_x * tiles_y)]  # fmt: skip
        self.first = np.cumsum([0, *(len(numbers) for numbers in lists)]).astype(np.uint32)
        self.numbers = np.array([number for numbers in lists for number in numbers] or [0], np.uint32)
        self.bins = Bins(self.first.ctypes.data, self.numbers.ctypes.data, tiles_x, tiles_y, len(self.numbers))


def meets(record: SetupRecord, x: int, y: int) -> bool:
    return bool(record.x0 < x + TILE and record.x1 > x and record.y0 < y + TILE and record.y1 > y)


# -- state -------------------------------------------------------------------------------------------------------------


@dataclass
class Stream:
    """A command streamer with latched state, as far as the pixel shader sees one."""

    gpu: str = "skl"
    latched: dict[str, Any] = field(default_factory=dict)
    space: AddressSpace = field(default_factory=lambda: AddressSpace("job"))
    bases: dict[str, int] = field(default_factory=dict)
    dispatcher: Any = None
    counters: Counters = field(default_factory=Counters)
    warnings: list[str] = field(default_factory=list)
    elapsed: int = 0
    told: Any = field(default=told_nobody)
    system_routine: int | None = None
    late: bool = False

    @property
    def generation(self) -> Any:
        return device(self.gpu).generation

    def latch(self, name: str, **values: Any) -> None:
        page = layout(name, self.generation.number)
        self.latched[name] = page.raw(page.pack(**values))

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    def get(self, name: str, number: int = 0) -> int:
        return 0

    def timed_out(self) -> bool:
        return self.late

    def state(self) -> DrawState:
        return DrawState(self.generation, self.space, self.latched, self.bases, self.get, self.warn)


# -- a worker without threads -------------------------------------------------------------------------------------------

DONE, ESCAPED = 0, 1
_API = (
    ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p), ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64),
    ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p),
    ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64, ctypes.POINTER(ctypes.c_uint32)),
    ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p), ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p),
)  # fmt: skip


@dataclass(frozen=True)
class Thread:
    """A thread as it was started."""

    registers: bytes
    mask: int
    told: PixelDispatch  # the sideband
    batch: int

    @property
    def dwords(self) -> list[int]:
        return np.frombuffer(self.registers, np.uint32).tolist()

    def floats(self, offset: int, count: int = 8) -> list[float]:
        return np.frombuffer(self.registers, np.float32, count, offset).tolist()


class RecordingWorker:
    """A struct threads_worker (threads.h) that runs nothing. Each batch first leaves the loop `leaves` times."""

    def __init__(self, capacity: int = 64, leaves: int = 0, passed: int = 0) -> None:
        self.capacity, self.leaves, self.passed = capacity, leaves, passed
        self.threads: list[Thread] = []
        self.batches = self.left = 0
        self.blocks = np.full(capacity * BLOCK_SIZE, 0xA5, np.uint8)  # what an earlier thread left
        self.context = ctypes.create_string_buffer(4096)
        functions = (lambda w: self.capacity, lambda w, number: self.blocks.ctypes.data + number * BLOCK_SIZE,
                     lambda w: int(self.left > 0), self._run, self._resume, lambda w: ctypes.addressof(self.context))  # fmt: skip
        self._functions = [kind(function) for kind, function in zip(_API, functions, strict=True)]
        self._table = (ctypes.c_uint64 * len(_API))(*(ctypes.cast(f, ctypes.c_void_p).value or 0 for f in self._functions))
        self._public = ctypes.c_uint64(ctypes.addressof(self._table))
        self.address = ctypes.addressof(self._public)

    def _run(self, worker: int, record: int, count: int, masks: Any) -> int:
        assert count <= self.capacity
        for number in range(count):
            block = self.blocks[number * BLOCK_SIZE : (number + 1) * BLOCK_SIZE]
            told = PixelDispatch.from_buffer_copy(block, BLOCK_OFFSETS["pixel"])
            self.threads.append(Thread(block[: 128 * 32].tobytes(), masks[number], told, self.batches))
            PixelDispatch.from_buffer(block, BLOCK_OFFSETS["pixel"]).passed = told.lit & self.passed  # type: ignore[arg-type]
        self.batches, self.left = self.batches + 1, self.leaves
        return ESCAPED if self.left else DONE

    def _resume(self, worker: int, record: int) -> int:
        self.left -= 1
        return ESCAPED if self.left else DONE
