"""Geometry: from the objects of a chunk to setup records in bins.

    geometry = Geometry(state, memory, (width, height))
    for piece in geometry.pieces(chunk):
        rasterize(piece.records, piece.bins)

Out of each object come no, one or several records: CLIP decides (clip.py), SETUP makes them (setup.py, attributes.py), BIN sorts them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from softgen.errors import Unsupported, UsageError
from softgen.eu import native
from softgen.three_d.clip_setup import attributes, clip, setup
from softgen.three_d.clip_setup.attributes import ATTRIBUTE_BYTES, AttributePlan
from softgen.three_d.clip_setup.bins import BinMemory, Binning, grown
from softgen.three_d.clip_setup.clip import ClipPlan, ClipResult
from softgen.three_d.clip_setup.setup import SetupPlan, SfInput
from softgen.three_d.state.plan_cache import PlanCache
from softgen.three_d.state.state import DrawState
from softgen.three_d.structures import Bins, RecordArray, SetupRecord, VertexArray
from softgen.three_d.vertices.chunk import Chunk, aligned

RECORDS = 2048  # that a piece has at most
PARTS = 19  # records that an object may become (geometry.h)


class GeometryStruct(ctypes.Structure):
    """struct geometry of geometry.h."""

    _fields_ = [
        ("clip", ctypes.c_uint64), ("setup", ctypes.c_uint64), ("attributes", ctypes.c_uint64), ("vertices", ctypes.c_uint64),
        ("objects", ctypes.c_uint64), ("outcodes", ctypes.c_uint64), ("results", ctypes.c_uint64), ("records", ctypes.c_uint64),
        ("sf_inputs", ctypes.c_uint64), ("next", ctypes.c_uint64), ("invocations", ctypes.c_uint64), ("primitives", ctypes.c_uint64),
        ("stipple", ctypes.c_uint64), ("oversized", ctypes.c_uint64),
    ]  # fmt: skip


def layout() -> list[int]:
    """The numbers that geometry_layout gives, as Python has them."""
    return [*(ctypes.sizeof(kind) for kind in (ClipPlan, SetupPlan, AttributePlan, ClipResult, SfInput, GeometryStruct, Binning)), PARTS]


@cache
def library() -> ctypes.CDLL:
    """The C functions of CLIP, SETUP and BIN, their structures checked."""
    found = native.load("softgen.three_d._pipeline", "geometry_layout", layout())
    for function in (found.clip_test, found.setup_objects):
        function.restype, function.argtypes = ctypes.c_int64, (ctypes.c_void_p,)
    return found


def oversized(struct: GeometryStruct) -> str:
    """What to say of objects that are larger than SETUP allows (G45 5323)."""
    return f"3DPRIMITIVE: {struct.oversized} objects whose bounding box is larger than 8192 pixels"


class GeometryPlans(NamedTuple):
    """What a draw's state means to CLIP and SETUP."""

    clip: ClipPlan
    setup: SetupPlan
    attributes: AttributePlan


def make_plans(state: DrawState, extent: tuple[int, int]) -> GeometryPlans:
    return GeometryPlans(clip.plan(state), setup.plan(state, extent), attributes.plan(state))


class GeometryMemory:
    """Memory and plans of CLIP, SETUP and BIN, used by one draw after another."""

    def __init__(self, records: int = RECORDS, numbers: int | None = None) -> None:
        if records < PARTS:
            raise UsageError(f"GeometryMemory must have room for the {PARTS} records of one object, not {records}")
        self.plans = PlanCache(make_plans)
        self.bins = BinMemory() if numbers is None else BinMemory(numbers)
        self.capacity = records
        self.records = aligned(records * ctypes.sizeof(SetupRecord))
        self.attributes, self.outcodes, self.results, self.sf_inputs = (aligned(0) for _ in range(4))
        self.addresses, self._reserved = (0, 0), (0, 0)  # of outcodes and results; capacities of the last chunk
        self.user: Geometry | None = None  # of the sizes that were set last
        self.stipple = ctypes.c_uint32()  # the Line Stipple Counter
        self.array = RecordArray(records=self.records.ctypes.data, capacity=records)

    def reserve(self, outputs: int, threads: bool) -> None:
        """Room for this many attributes of each record, and for the inputs of SF threads."""
        self.attributes = grown(self.attributes, self.capacity * outputs * ATTRIBUTE_BYTES)
        self.array.attributes, self.array.attribute_stride = self.attributes.ctypes.data, outputs * ATTRIBUTE_BYTES
        if threads:
            self.sf_inputs = grown(self.sf_inputs, self.capacity * ctypes.sizeof(SfInput))

    def reserve_chunk(self, chunk: Chunk) -> None:
        size = chunk.vertices.capacity, chunk.objects.capacity
        if size != self._reserved:
            self.outcodes = grown(self.outcodes, 4 * size[0])
            self.results = grown(self.results, ctypes.sizeof(ClipResult) * size[1])
            self.addresses, self._reserved = (self.outcodes.ctypes.data, self.results.ctypes.data), size


@dataclass
class GeometryPiece:
    """Records of a part of a chunk. They, and what `bins` sort of them, are valid until the next piece is asked for.

    `new` says that the records are new, and not those of the piece before, whose bins could not hold them all.
    """

    records: RecordArray
    bins: Bins
    sf_inputs: int  # address of a struct sf_input for each record; 0 where threads do not set up attributes
    vertices: VertexArray  # of the objects
    new: bool = True


ThreadClipper = Callable[["Geometry", Chunk], Chunk]


class Geometry:
    """CLIP, SETUP and BIN of a draw. `extent` is the size of its surfaces in pixels.

    `clipper`: where threads clip, a chunk in which what its threads make of them replaces the objects that must be clipped
    (`struct.results`).
    """

    def __init__(self, state: DrawState, memory: GeometryMemory, extent: tuple[int, int], clipper: ThreadClipper | None = None) -> None:
        self.state, self.memory, self.clipper = state, memory, clipper
        self.clip, self.setup, self.attributes = memory.plans.get(state, extent)
        self.extent = extent
        memory.reserve(self.attributes.count, bool(self.setup.start_vertex))
        memory.bins.resize(extent)
        memory.user = self
        self.struct = GeometryStruct(
            clip=ctypes.addressof(self.clip), setup=ctypes.addressof(self.setup), attributes=ctypes.addressof(self.attributes),
            records=ctypes.addressof(memory.array), sf_inputs=memory.sf_inputs.ctypes.data if self.setup.start_vertex else 0,
            stipple=ctypes.addressof(memory.stipple),
        )  # fmt: skip

    def begin(self) -> None:
        """Another draw with the same state."""
        memory, struct = self.memory, self.struct
        struct.invocations = struct.primitives = struct.oversized = 0
        if memory.user is not self:  # other draws have used the memory since
            memory.reserve(self.attributes.count, bool(self.setup.start_vertex))
            memory.bins.resize(self.extent)
            memory.user = self
            struct.sf_inputs = memory.sf_inputs.ctypes.data if self.setup.start_vertex else 0

    @property
    def invocations(self) -> int:
        """What CL_INVOCATION_COUNT has grown by."""
        return int(self.struct.invocations)

    @property
    def primitives(self) -> int:
        """What CL_PRIMITIVES_COUNT has grown by."""
        return int(self.struct.primitives)

    def pieces(self, chunk: Chunk) -> Iterator[GeometryPiece]:
        """The records of a chunk's objects, in order."""
        memory, struct = self.memory, self.struct
        memory.reserve_chunk(chunk)
        struct.vertices, struct.objects = ctypes.addressof(chunk.vertices), ctypes.addressof(chunk.objects)
        struct.outcodes, struct.results = memory.addresses
        struct.next = 0
        if library().clip_test(ctypes.byref(struct)) and not self.clip.clip_space:
            chunk = self._clip_by_threads(chunk)
        while struct.next < chunk.objects.count:
            memory.array.count = 0
            library().setup_objects(ctypes.byref(struct))
            yield from self._binned(chunk)

    def _binned(self, chunk: Chunk) -> Iterator[GeometryPiece]:
        memory, done = self.memory, 0
        while done < memory.array.count:
            start, done = done, done + memory.bins.fill(memory.array, done)
            yield GeometryPiece(memory.array, memory.bins.bins, self.struct.sf_inputs, chunk.vertices, start == 0)

    def _clip_by_threads(self, chunk: Chunk) -> Chunk:
        if self.clipper is None:
            raise Unsupported(f"{self.state.generation}: an object must be clipped by a CLIP thread, and there is none")
        made = self.clipper(self, chunk)
        self.struct.vertices, self.struct.objects = ctypes.addressof(made.vertices), ctypes.addressof(made.objects)
        self.struct.results = 0  # what the objects are now, all pass
        return made
