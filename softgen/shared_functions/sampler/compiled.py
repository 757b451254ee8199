"""The sampler in compiled code: calls of functions that were compiled for surfaces and samplers."""

from __future__ import annotations

from softgen.bits import catalogue
from softgen.lanes.code_machine import Scalar
from softgen.lanes.types import u64
from softgen.lanes.value import Value
from softgen.shared_functions.bindings import KEYED, SAMPLERS
from softgen.shared_functions.texture.compiled import CompiledTexels


class CompiledSampler(CompiledTexels):
    """A SamplerEnvironment in compiled code."""

    def moved(self, offsets: list[Value]) -> list[Value]:
        """Messages that add offsets to coordinates are side exits."""
        for offset in offsets:
            self.code.escape(offset == 0)
        return []

    def sampler(self, index: int | Value, table: Value | None) -> int | Scalar:
        """An entry of a Picture's samplers: an index into the table of the dispatch is one, samplers of other tables have a key."""
        m = self.code.m
        if table is None:
            return index if isinstance(index, int) else m.scalar(m.convert(index, u64))
        size = 4 * catalogue.layout("SAMPLER_STATE", self.code.gen).dwords
        return self.keyed("sampler_keys", SAMPLERS + KEYED, table + index * size)
