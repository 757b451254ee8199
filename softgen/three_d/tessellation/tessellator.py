"""TE, the tessellator: the points of a patch's domain, and the triangles or lines between them (tessellator.c).

    plan = tessellator.plan(state)
    made = tessellator.tessellate(plan, outer=(3.0, 2.0, 4.0, 1.0), inner=(2.5, 3.0))
    made.points, made.indices

Reads   3DSTATE_TE
Writes  points (u, v) of the domain, and the numbers of those that make each triangle or line

The manual names the modes and leaves the algorithm open; this is Direct3D 11's, bit for bit.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from softgen.bits.record import to_float
from softgen.three_d.state.state import DrawState
from softgen.three_d.structures import library
from softgen.three_d.tessellation.tessellator_h import TESS_MOST_INDICES as MOST_INDICES
from softgen.three_d.tessellation.tessellator_h import TESS_MOST_POINTS as MOST_POINTS
from softgen.three_d.tessellation.tessellator_h import TessFactors as TessellationFactors
from softgen.three_d.tessellation.tessellator_h import TessPlan as TessellatorPlan
from softgen.three_d.tessellation.tessellator_h import TessResult as TessellatorResult

CORNERS = {"point": 1, "line": 2, "tri_cw": 3, "tri_ccw": 3}  # by output topology


def plan(state: DrawState) -> TessellatorPlan:
    """What 3DSTATE_TE means."""
    unit = state.command("3DSTATE_TE")
    return TessellatorPlan(unit.partitioning, unit.output_topology, unit.domain, to_float(unit.maximum_tessellation_factor_odd),
                           to_float(unit.maximum_tessellation_factor_not_odd))  # fmt: skip


class TessellatedDomain(NamedTuple):
    """The points of a patch's domain, and the numbers of those that make each triangle or line; of points themselves there are none."""

    points: npt.NDArray[np.float32]
    indices: npt.NDArray[np.uint16]


def tessellate(plan: TessellatorPlan, outer: Sequence[float], inner: Sequence[float]) -> TessellatedDomain:
    """One patch: for tests and tools. Draws call tessellator.c."""
    points, indices = np.zeros((MOST_POINTS, 2), np.float32), np.zeros(MOST_INDICES, np.uint16)
    factors, made = TessellationFactors(), TessellatorResult(points.ctypes.data, indices.ctypes.data)
    library().tess_read_factors(ctypes.byref(plan), (ctypes.c_float * 4)(*outer), (ctypes.c_float * 2)(*inner), ctypes.byref(factors))
    library().tessellate(ctypes.byref(plan), ctypes.byref(factors), ctypes.byref(made))
    return TessellatedDomain(points[: made.point_count].copy(), indices[: made.index_count].copy())
