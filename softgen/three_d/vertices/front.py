"""The front of the pipeline: from a draw to chunks of shaded vertices and objects.

    front = Front()                     # kept from draw to draw
    for chunk in front.chunks(cs, DrawState.of(cs), call):
        …                               # clip, setup and raster use the chunk before the next one is made
    front.counts                        # what statistics registers advance by
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from softgen.command import CommandStreamer
from softgen.errors import SoftgenError
from softgen.shared_functions.urb.memory import ROW
from softgen.three_d.rules.urb_fences import check_entries
from softgen.three_d.rules.urb_regions import check_regions
from softgen.three_d.state.plan_cache import PlanCache
from softgen.three_d.state.state import DrawCall, DrawState
from softgen.three_d.vertices.assembly import Assembly, AssemblyMemory, cache_disabled
from softgen.three_d.vertices.chunk import Chunk, aligned
from softgen.three_d.vertices.vertex_fetch import Destination, FetchPlan, fetch_key, vertex_dwords, vertex_fetch
from softgen.three_d.vertices.vertex_shader import VertexShader, VertexShaderPlan

MOST_CHUNKS = 4  # kept, by entry size
FETCHES = 16  # plans that are kept: objects of a scene have vertex buffers of their own


@dataclass
class FrontCounts:
    """By how much a draw advances statistics registers; 0 where statistics are disabled."""

    ia_vertices: int = 0
    ia_primitives: int = 0
    vs_invocations: int = 0


class Front:
    """Vertex fetch, vertex shader and primitive assembly of one hardware context."""

    def __init__(self) -> None:
        self.counts = FrontCounts()
        self._chunks: dict[int, Chunk] = {}
        self.memory = AssemblyMemory()
        self._plans, self._fetches = PlanCache(FrontPlan), PlanCache(_fetch, FETCHES)

    def chunks(self, cs: CommandStreamer, state: DrawState, call: DrawCall) -> Iterator[Chunk]:
        """The draw in chunks, vertex entries complete and objects in drawing order. A chunk is valid until the next is asked for."""
        self.counts = FrontCounts()
        if not call.vertices or not call.instances:
            return
        plan = self.plan(state)
        fetch = self.fetch(state, call, plan)
        draw = FrontDraw(state, call, plan, fetch, self.memory)
        chunk = self.chunk(draw.entry_bytes)
        while not draw.assembly.finished:
            draw.fill(cs, chunk)
            draw.count(self.counts)
            if not draw.assembly.finished and cs.timed_out():
                raise SoftgenError("time is up: 3DPRIMITIVE has more vertices")
            if chunk.objects.count:
                yield chunk

    def plan(self, state: DrawState) -> FrontPlan:
        return self._plans.get(state)

    def fetch(self, state: DrawState, call: DrawCall, plan: FrontPlan) -> FetchPlan:
        return self._fetches.get(state, plan, fetch_key(state, call), _Values(call)).starting(call)

    def chunk(self, entry_bytes: int) -> Chunk:
        """Arrays for vertex entries of this size."""
        found = self._chunks.pop(entry_bytes, None) or Chunk(entry_bytes)
        self._chunks[entry_bytes] = found
        if len(self._chunks) > MOST_CHUNKS:
            del self._chunks[next(iter(self._chunks))]
        return found


class FrontPlan:
    """What the state of the front means, without vertex buffers and constants."""

    def __init__(self, state: DrawState) -> None:
        self.shader = VertexShaderPlan(state)
        self.uncached = cache_disabled(state)
        check_entries(state)
        check_regions(state)
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
    if plan.shader.enabled:
        return vertex_fetch(state, values.call, plan.shader.destination)
    return vertex_fetch(state, values.call, Destination.entry(entry_bytes(state, values.call, plan.shader) // 4))


def entry_bytes(state: DrawState, call: DrawCall, shader: VertexShaderPlan) -> int:
    """The size of vertex entries. Without a shader fetch writes them, whole rows; what no element stores is zero."""
    if shader.enabled:
        return shader.entry_bytes
    return max(shader.entry_bytes, -(-4 * vertex_dwords(state, call) // ROW) * ROW)


class FrontDraw:
    """The stages of one draw."""

    def __init__(self, state: DrawState, call: DrawCall, plan: FrontPlan, fetch: FetchPlan, memory: AssemblyMemory | None = None) -> None:
        self.plan, self.fetch, self.shader = plan, fetch, VertexShader(state, call, plan.shader, fetch)
        self.assembly = Assembly(state, call, plan.shader.one_instance, memory, plan.uncached)
        self.entry_bytes = entry_bytes(state, call, plan.shader)
        self.shaded = 0

    def fill(self, cs: CommandStreamer, chunk: Chunk) -> None:
        """The next part of the draw."""
        assembly, fetch = self.assembly, self.fetch
        assembly.fill(chunk)
        count = chunk.vertices.count
        if not count:
            return
        if self.shader.enabled:
            self.shader.run(cs, chunk, assembly)
            self.shaded += count
        else:
            fetch.run(assembly.vertex_ids, assembly.instance_ids, count, chunk.vertices.entries, chunk.vertices.stride,
                      assembly.primitive_ids)  # fmt: skip
        if fetch.structure.has_edge_flag:
            flags = aligned(count)
            fetch.mark_edges(assembly.vertex_ids, assembly.instance_ids, count, assembly.objects_address, flags.ctypes.data)

    def count(self, into: FrontCounts) -> None:
        if self.plan.counts:
            into.ia_vertices, into.ia_primitives = self.assembly.state.vertices_seen, self.assembly.state.objects_made
        if self.shader.enabled and self.shader.counts:
            into.vs_invocations = self.shaded
