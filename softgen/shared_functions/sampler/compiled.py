"""The sampler in compiled code: calls of functions that were compiled for surfaces and samplers."""

from __future__ import annotations

from softgen.lanes.types import u64
from softgen.lanes.value import Value
from softgen.shared_functions.texture.compiled import BINDINGS, CompiledTexels


class CompiledSampler(CompiledTexels):
    """A SamplerEnvironment in compiled code."""

    def moved(self, offsets: list[Value]) -> list[Value]:
        """Messages that add offsets to coordinates are side exits."""
        for offset in offsets:
            self.code.escape(offset == 0)
        return []

    def table(self, given: Value) -> None:
        """A side exit where the sampler table is not that of the dispatch."""
        code = self.code
        table = code.pointer("surfaces").field(BINDINGS, "samplers").load(u64, invariant=True)
        code.escape(code.m.convert(given, u64) == table.lane())
