"""Records of draws walked up to a stage, for tests: what the stages before it have put out.

    seen = chunks_of(state, call)                     # as the vertex shader leaves them
    seen = pieces_of(state, chunk)                    # as setup and bins leave the objects of a chunk
    seen.pieces[0].records, seen.counts["CL_INVOCATION_COUNT"]
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from softgen.command import Counters
from softgen.threads.dispatch import told_nobody
from softgen.threads.dispatcher import EngineDispatcher
from softgen.three_d.clip_setup.bins import BinStage
from softgen.three_d.clip_setup.clip import ClipStage
from softgen.three_d.clip_setup.geometry import GeometryMemory
from softgen.three_d.clip_setup.setup import SetupStage
from softgen.three_d.draw.draw_plans import PipelinePlans
from softgen.three_d.draw.draw_record import DrawRecord
from softgen.three_d.draw.draw_structures import COUNTS, DrawStruct, StageStruct
from softgen.three_d.draw.draw_walk import COUNTED, DrawWalk
from softgen.three_d.draw.stage import Stage
from softgen.three_d.pixels.pixel_shader import PixelShader, PixelStage
from softgen.three_d.pixels.pixel_targets import PixelTargets
from softgen.three_d.pixels.rasterizer import draws_nothing
from softgen.three_d.stages import FIXED, StageRow
from softgen.three_d.state.state import DrawCall, DrawState
from softgen.three_d.structures import (
    Bins,
    ChunkStruct,
    ObjectArray,
    PrimitiveObject,
    RecordArray,
    SetupRecord,
    VertexArray,
    guarded_call,
)
from softgen.three_d.vertices.assembly import AssembleStage, AssemblyMemory, AssemblyPlan, assembly_plan
from softgen.three_d.vertices.chunk import VERTICES, Chunk
from softgen.three_d.vertices.vertex_fetch_h import VertexFetch
from softgen.three_d.vertices.vertex_shader import VertexStage

EXTENT = (64, 64)
DONE = 0
CALL = DrawCall(4, False, 3, 0, 1, 0, 0)
RUN = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
Floats, Words = npt.NDArray[np.float32], npt.NDArray[np.uint32]


class Streamer:
    """A command streamer with the state of a draw."""

    def __init__(self, state: DrawState, dispatcher: Any = None, timed_out: Callable[[], bool] = lambda: False) -> None:
        self.generation, self.space, self.bases, self.latched = state.generation, state.space, state.bases, state.latched
        self.warn, self.get, self.curbe = state.warn, state.register, state.curbe
        self.dispatcher, self.timed_out, self.counters = dispatcher or EngineDispatcher(), timed_out, Counters()
        self.system_routine, self.elapsed, self.told = None, 0, told_nobody


# -- stages of tests -------------------------------------------------------------------------------------------------


class Own(Stage):
    """A stage whose function is Python's: it gets the draw."""

    name = "test"

    def __init__(self, function: Callable[[DrawStruct], int]) -> None:
        self.entry = RUN(lambda draw, stage, record: function(DrawStruct.from_address(draw)))

    def build(self, record: DrawRecord, into: StageStruct) -> bool:
        return True


class Record(DrawRecord):
    """A record that may have such stages."""

    def _add(self, stage: Stage) -> None:
        if not isinstance(stage, Own):
            super()._add(stage)
            return
        stage.build(self, self.array[len(self.stages)])
        self.array[len(self.stages)].run = ctypes.cast(stage.entry, ctypes.c_void_p).value
        self.stages.append(stage)


class Pipeline(PipelinePlans):
    """A pipeline without records."""

    def __init__(self, memory: GeometryMemory | None = None) -> None:
        super().__init__()
        self.memory = memory or self.memory
        self.walk = DrawWalk(self)


@dataclass
class Seen:
    """What a test's last stage was given, and what the draw counted."""

    chunks: list[SeenChunk] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    record: Any = None
    threads: dict[str, int] = field(default_factory=dict)  # by stage

    def work(self, pipeline: Pipeline) -> None:
        self.threads = {stage.name: pipeline.walk.struct.works[n].threads for n, stage in enumerate(self.record.threaded)}


def walked(cs: Any, state: DrawState, call: DrawCall, stages: Sequence[Callable[[], Stage]], plans: Any = None, lease: Any = None,
           pipeline: Any = None) -> tuple[DrawRecord, dict[str, int]]:  # fmt: skip
    """Walk a draw that has these stages; its record, and what it counted."""
    pipeline, own = pipeline or Pipeline(), lease is None
    lease = lease or cs.dispatcher.lease()
    fine = False
    try:
        record = Record(pipeline, cs, state, call, plans, lease, rows=tuple(StageRow("", FIXED, stage) for stage in stages))
        found = pipeline.walk.run(cs, call, record)
        fine = True
    finally:
        if own:
            lease.end(fine)
    return record, dict(zip(COUNTS, found[:COUNTED], strict=True))


# -- chunks ----------------------------------------------------------------------------------------------------------


@dataclass
class SeenChunk:
    """The vertex entries of a chunk, and its objects."""

    words: Floats
    objects: list[PrimitiveObject]
    stride: int

    @classmethod
    def of(cls, chunk: ChunkStruct) -> SeenChunk:
        vertices, objects = VertexArray.from_address(chunk.vertices), ObjectArray.from_address(chunk.objects)
        data = np.frombuffer(ctypes.string_at(vertices.entries, vertices.count * vertices.stride), np.float32)
        held = (PrimitiveObject * objects.count).from_buffer_copy(ctypes.string_at(objects.objects, objects.count * 20))
        return cls(data.reshape(vertices.count, -1), list(held), vertices.stride)

    @property
    def corners(self) -> list[list[int]]:
        return [list(made.vertex) for made in self.objects]


def chunks_of(state: DrawState, call: DrawCall, cs: Any = None, stages: Sequence[Callable[[], Stage]] = (AssembleStage, VertexStage),
              **more: Any) -> Seen:  # fmt: skip
    """The chunks of a draw, as some of its stages put them out."""
    seen, pipeline = Seen(), more.pop("pipeline", None) or Pipeline()

    def look(draw: DrawStruct) -> int:
        if VertexArray.from_address(draw.chunk.vertices).count:
            seen.chunks.append(SeenChunk.of(draw.chunk))
        return DONE

    seen.record, seen.counts = walked(cs or Streamer(state), state, call, [*stages, lambda: Own(look)], pipeline=pipeline,
                                      **more)  # fmt: skip
    seen.work(pipeline)
    return seen


# -- records and bins ------------------------------------------------------------------------------------------------


@dataclass
class Piece:
    """Records, their attributes, and their numbers by tile."""

    records: list[SetupRecord]
    attributes: list[bytes]
    bins: dict[int, list[int]]
    tiles: tuple[int, int]
    addresses: tuple[int, ...]
    new: bool  # and not those of the piece before, whose bins could not hold them all


def _copied(array: RecordArray) -> list[SetupRecord]:
    size = ctypes.sizeof(SetupRecord)
    return [SetupRecord.from_buffer_copy(ctypes.string_at(array.records + i * size, size)) for i in range(array.count)]


def binned(bins: Bins) -> dict[int, list[int]]:
    """Record numbers of each tile that has some."""
    tiles = bins.tiles_x * bins.tiles_y
    first = (ctypes.c_uint32 * (tiles + 1)).from_address(bins.first)
    numbers = (ctypes.c_uint32 * first[tiles]).from_address(bins.numbers)
    return {t: list(numbers[first[t] : first[t + 1]]) for t in range(tiles) if first[t] < first[t + 1]}


def given(chunk: Chunk) -> Callable[[], Stage]:
    """The front of a draw whose vertices and objects are those of a chunk."""

    def give(draw: DrawStruct) -> int:
        draw.chunk = ChunkStruct(ctypes.addressof(chunk.vertices), ctypes.addressof(chunk.objects))
        return DONE

    return lambda: Front(give, chunk)


def pieces_of(state: DrawState, chunk: Chunk | None, extent: tuple[int, int] = EXTENT, memory: GeometryMemory | None = None,
              stages: Sequence[Callable[[], Stage]] = (ClipStage, SetupStage, BinStage), call: DrawCall = CALL, cs: Any = None,
              attribute_bytes: int = 0) -> Seen:  # fmt: skip
    """The records of a chunk's objects, in bins; without a chunk, of those that the stages make."""
    seen, pipeline = Seen(), Pipeline(memory)
    memory = pipeline.memory
    plans = SimpleNamespace(geometry=memory.plans.get(state, extent), extent=extent, draws_nothing=False, clear=None)
    last = [-1]

    def look(draw: DrawStruct) -> int:
        array, bins = RecordArray.from_address(draw.records), memory.bins.bins
        records, size = _copied(array), attribute_bytes or array.attribute_stride
        new = draw.binned <= last[0] or last[0] < 0
        last[0] = draw.binned if draw.binned < array.count else -1
        attributes = [ctypes.string_at(array.attributes + item.attributes, size) for item in records]
        addresses = array.records, array.attributes, bins.first, bins.numbers
        seen.pieces.append(Piece(records, attributes, binned(bins), (bins.tiles_x, bins.tiles_y), addresses, new))
        seen.chunks.append(SeenChunk.of(draw.chunk))
        return DONE

    front = [given(chunk)] if chunk is not None else []
    seen.record, seen.counts = walked(cs or Streamer(state), state, call, [*front, *stages, lambda: Own(look)], plans,
                                      pipeline=pipeline)  # fmt: skip
    seen.work(pipeline)
    return seen


class Front(Own):
    """Gives a chunk to the stages after it."""

    def __init__(self, function: Callable[[DrawStruct], int], chunk: Chunk) -> None:
        super().__init__(function)
        self.chunk, self.unused = chunk, (AssemblyPlan(), VertexFetch())

    def build(self, record: DrawRecord, into: StageStruct) -> bool:
        record.put_out(self.chunk.vertices, self.chunk.objects, self.chunk.urb)
        record.struct.assembly_plan, record.struct.fetch = map(ctypes.addressof, self.unused)
        return True


# -- pixels ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PixelCounts:
    """Work of a draw's pixels; PS_INVOCATION_COUNT and PS_DEPTH_COUNT."""

    threads: int = 0
    invocations: int = 0
    depth: int = 0


class Given(Front):
    """Gives records in bins to the stages after it."""

    def __init__(self, records: RecordArray) -> None:
        super().__init__(lambda draw: DONE, Chunk(64, 1, 1))
        self.records = records

    def build(self, record: DrawRecord, into: StageStruct) -> bool:
        record.geometry = SimpleNamespace(attribute_stride=self.records.attribute_stride)  # type: ignore[assignment]
        return super().build(record, into)


def shade(cs: Any, records: RecordArray, bins: Bins, state: DrawState, shader: PixelShader,
          targets: PixelTargets | None = None) -> PixelCounts:  # fmt: skip
    """Shade the pixels of records in bins."""
    pipeline: Any = Pipeline()
    call = CALL
    pipeline.memory.bins = SimpleNamespace(bins=bins)
    pipeline.walk.struct.records = ctypes.addressof(records)
    plans = SimpleNamespace(shader=shader, backend=targets or PixelTargets(), draws_nothing=draws_nothing(state), clear=None)
    lease, fine = cs.dispatcher.lease(), False
    try:
        stages = (lambda: Given(records), PixelStage) if bins.capacity and records.count else (lambda: Given(records),)
        record, counts = walked(cs, state, call, stages, plans, lease, pipeline)
        work = pipeline.walk.struct.works[0]
        threads, cs.counters.instructions = work.threads if record.threaded else 0, work.instructions
        cs.counters.threads += threads
        fine = True
    finally:
        lease.end(fine)
    return PixelCounts(threads, counts["PS_INVOCATION_COUNT"], counts["PS_DEPTH_COUNT"])


# -- assembly alone --------------------------------------------------------------------------------------------------


class Assembly:
    """Objects of a draw, chunk by chunk."""

    def __init__(self, state: DrawState, call: DrawCall, one_instance: bool = False, uncached: bool = False) -> None:
        self.memory, self.space, self.finished = AssemblyMemory(), state.space, False
        self.state, plan = self.memory.state, assembly_plan(state, call, one_instance, uncached)
        ctypes.memmove(ctypes.addressof(self.state), ctypes.addressof(plan), ctypes.sizeof(plan))
        self.state.next = plan.minimum

    def fill(self, chunk: Chunk) -> None:
        self.state.objects, self.state.most_entries = chunk.objects, min(VERTICES, chunk.vertices.capacity)
        self.state.lists = chunk.lists.ctypes.data
        self.finished = bool(guarded_call("assemble", self.state, self.space))
        chunk.vertices.count, chunk.objects.count = self.state.entries, self.state.objects.count

    def ids(self) -> tuple[Words, Words]:
        """VertexIDs and InstanceIDs of the chunk's entries."""
        count = 4 * self.state.entries
        return self.memory.vertex_ids[:count].view(np.uint32), self.memory.instance_ids[:count].view(np.uint32)
