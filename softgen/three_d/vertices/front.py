"""The front of the pipeline: plans and memory of vertex fetch, vertex shader and primitive assembly, kept from draw to draw."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

import numpy as np

from softgen.shared_functions.urb.memory import ENTRY, POOL, ROW, UrbMemory
from softgen.three_d.rules.geometry_rules import check_geometry
from softgen.three_d.rules.stage_rules import check_stages
from softgen.three_d.rules.urb_fences import check_entries
from softgen.three_d.rules.urb_regions import check_regions
from softgen.three_d.state.plan_cache import PlanCache
from softgen.three_d.state.state import DrawCall, DrawState
from softgen.three_d.vertices.assembly import AssemblyMemory, cache_disabled
from softgen.three_d.vertices.chunk import MADE_VERTICES, VERTICES, Chunk, OutputChunk
from softgen.three_d.vertices.vertex_fetch import Destination, FetchPlan, fetch_key, vertex_dwords, vertex_fetch
from softgen.three_d.vertices.vertex_shader import VertexShaderPlan

KeyT = TypeVar("KeyT", bound=Hashable)
HeldT = TypeVar("HeldT", Chunk, OutputChunk, UrbMemory)
MOST_CHUNKS = 4  # kept, by entry size
FETCHES = 16  # plans that are kept: objects of a scene have vertex buffers of their own


class Front:
    """Vertex fetch, vertex shader and primitive assembly of one hardware context."""

    def __init__(self) -> None:
        self._chunks: dict[int, Chunk] = {}
        self._outputs: dict[tuple[int, str], OutputChunk] = {}
        self._own: dict[tuple[int, str], Chunk] = {}
        self._recorded: dict[UrbMemory, UrbMemory] = {}
        self.memory = AssemblyMemory()
        self._plans, self._fetches = PlanCache(FrontPlan), PlanCache(_fetch, FETCHES)

    def plan(self, state: DrawState) -> FrontPlan:
        return self._plans.get(state)

    def fetch(self, state: DrawState, call: DrawCall, plan: FrontPlan) -> FetchPlan:
        return self._fetches.get(state, plan, fetch_key(state, call), _Values(call)).starting(call)

    def chunk(self, entry_bytes: int) -> Chunk:
        """Arrays for vertex entries of this size, which assembly and VS put out."""
        return _kept(self._chunks, entry_bytes, lambda: Chunk(entry_bytes))

    def own_chunk(self, entry_bytes: int, stage: str) -> Chunk:
        """Arrays for vertices and objects that a stage puts out by itself: an object for each vertex at most."""
        return _kept(self._own, (entry_bytes, stage), lambda: Chunk(entry_bytes, objects=VERTICES + MADE_VERTICES))

    def with_records(self, urb: UrbMemory) -> UrbMemory:
        """The same URB with records of its entries."""
        return _kept(self._recorded, urb, lambda: UrbMemory(urb.bytes, np.zeros(urb.size // ROW, ENTRY), np.zeros(1, POOL)))

    def output(self, entry_bytes: int, stage: str) -> OutputChunk:
        """Arrays for what threads of a stage put out."""
        return _kept(self._outputs, (entry_bytes, stage), lambda: OutputChunk(entry_bytes))


def _kept(held: dict[KeyT, HeldT], key: KeyT, make: Callable[[], HeldT]) -> HeldT:
    """What is held for a key; those used last come last."""
    found = held[key] = held.pop(key) if key in held else make()
    if len(held) > MOST_CHUNKS:
        del held[next(iter(held))]
    return found


class FrontPlan:
    """What the state of the front means, without vertex buffers and constants."""

    def __init__(self, state: DrawState) -> None:
        self.shader = VertexShaderPlan(state)
        self.uncached = cache_disabled(state)
        check_entries(state)
        check_regions(state)
        check_geometry(state)
        check_stages(state)
        statistics = state.get("3DSTATE_VF_STATISTICS")
        self.counts = statistics is not None and bool(statistics.statistics_enable)


class _Values:
    """The parameters of a draw as part of a key in which they do not count: fetch_key has those that do."""

    def __init__(self, call: DrawCall) -> None:
        self.call = call

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Values)

    def __hash__(self) -> int:
        return 0


def _fetch(state: DrawState, plan: FrontPlan, key: tuple[int, ...], values: _Values) -> FetchPlan:
    size = entry_bytes(state, values.call, plan.shader)
    made = vertex_fetch(state, values.call, plan.shader.destination if plan.shader.enabled else Destination.entry(size // 4))
    made.entry_bytes = size
    return made


def entry_bytes(state: DrawState, call: DrawCall, shader: VertexShaderPlan) -> int:
    """The size of vertex entries. Without a shader fetch writes them, whole rows; what no element stores is zero."""
    if shader.enabled:
        return shader.entry_bytes
    return max(shader.entry_bytes, -(-4 * vertex_dwords(state, call) // ROW) * ROW)
