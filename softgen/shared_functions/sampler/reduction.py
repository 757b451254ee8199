"""Reductions: the minimum or maximum of the texels of a footprint, in place of their weighted mean (KBL 22548-22578).

Texels that weigh nothing do not count; the manual is silent about them (public: Direct3D 11.3 functional specification, 7.18.14).
"""

from __future__ import annotations

from dataclasses import dataclass

from softgen.lanes.machine import Machine
from softgen.lanes.value import Value

NAMES = ("minimum", "maximum")


@dataclass(frozen=True)
class Reduction:
    """The minimum or maximum of floats on a machine."""

    m: Machine
    name: str

    @property
    def first(self) -> float:
        """The value that changes nothing."""
        return float("inf") if self.name == "minimum" else float("-inf")

    def of(self, a: Value, b: Value) -> Value:
        return self.m.min(a, b) if self.name == "minimum" else self.m.max(a, b)

    def where(self, counts: Value, so_far: list[Value], values: list[Value]) -> list[Value]:
        """With more values, in the lanes where they count."""
        return [self.m.select(counts, self.of(a, b), a) for a, b in zip(so_far, values, strict=True)]
