"""Anisotropic filtering: several samples along the longer gradient of a pixel, at the level of detail of its share.

Where the longer gradient is N times the shorter one, N samples side by side have equal weights; N is rounded up and at most what the state
says (KBL 22579-22601; placement and weights are not in the manuals: public, EXT_texture_filter_anisotropic). Cube maps and 3D surfaces are
filtered linearly, as are samples with an explicit level (KBL 22328-22341).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from softgen.lanes.machine import Machine
from softgen.lanes.value import Value
from softgen.shared_functions.sampler.lod import lengths, logarithm, rounded
from softgen.shared_functions.sampler.reduction import Reduction


@dataclass(frozen=True)
class Footprint:
    """The samples of a pixel: how many (f32), how far they reach along each axis, and the level of detail before bias."""

    count: Value
    reach: list[Value]
    lod: Value


def footprint(m: Machine, gradients: list[tuple[Value, Value]], sizes: list[Value], most: int) -> Footprint:
    across, down = lengths(m, gradients, sizes)
    steeper = across >= down
    longer, shorter = m.select(steeper, across, down), m.select(steeper, down, across)
    ratio = m.sqrt(m.div(longer, shorter))
    count = m.ceil(m.select(m.is_nan(ratio), 1.0, m.min(ratio, float(most))))  # both may be nothing
    count = m.max(count, 1.0)
    lod = rounded(m, logarithm(m, longer) * 0.5 - logarithm(m, count))
    return Footprint(count, [m.select(steeper, pair[0], pair[1]) for pair in gradients], lod)


def mean(m: Machine, footprint: Footprint, places: list[Value], mask: Value, sample: Callable[[list[Value]], list[Value]],
         reduction: Reduction | None = None) -> list[Value]:  # fmt: skip
    """The mean of samples along a footprint, or what a reduction makes of them; `sample` gives the channels at coordinates."""
    number = m.variable(m.like(footprint.count, 0.0))
    total = [m.variable(m.like(footprint.count, 0.0 if reduction is None else reduction.first)) for _ in range(4)]
    for _ in m.While(lambda: m.any((number.value < footprint.count) & mask)):
        along = m.div(number.value + 0.5, footprint.count) - 0.5
        values = sample([m.fma(reach, along, place) for reach, place in zip(footprint.reach, places, strict=True)])
        counts = number.value < footprint.count
        for so_far, value in zip(total, values, strict=True):
            more = so_far.value + value if reduction is None else reduction.of(so_far.value, value)
            so_far.value = m.select(counts, more, so_far.value)
        number.value = number.value + 1.0
    return [so_far.value if reduction else m.div(so_far.value, footprint.count) for so_far in total]
