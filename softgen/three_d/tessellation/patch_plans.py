"""PatchPlans: plans and memory of HS, TE and DS of one hardware context, kept from draw to draw."""

from __future__ import annotations

from softgen.three_d.state.plan_cache import PlanCache
from softgen.three_d.tessellation.domain_shader import DomainShaderPlan
from softgen.three_d.tessellation.hull_shader import HullShaderPlan
from softgen.three_d.tessellation.tessellation import DomainChunk, TessellatorMemory

MOST_CHUNKS = 4  # kept, by entry size


class PatchPlans:
    """What draws with patches have in common."""

    def __init__(self) -> None:
        self.hull, self.domain = PlanCache(HullShaderPlan), PlanCache(DomainShaderPlan)
        self._chunks: dict[int, DomainChunk] = {}
        self._memory: TessellatorMemory | None = None

    @property
    def memory(self) -> TessellatorMemory:
        """Points and indices by factors; made for the first patches."""
        if self._memory is None:
            self._memory = TessellatorMemory()
        return self._memory

    def chunk(self, entry_bytes: int) -> DomainChunk:
        """Arrays for entries of this size; those used last come last."""
        held = self._chunks
        found = held[entry_bytes] = held.pop(entry_bytes) if entry_bytes in held else DomainChunk(entry_bytes)
        if len(held) > MOST_CHUNKS:
            del held[next(iter(held))]
        return found
