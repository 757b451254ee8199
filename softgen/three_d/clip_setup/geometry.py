"""Geometry: what CLIP, SETUP and BIN share on the way from the objects of a chunk to setup records in bins.

Out of each object come no, one or several records: CLIP decides (clip.py), SETUP makes them (setup.py, attributes.py), BIN sorts them.
"""

from __future__ import annotations

import ctypes
from typing import NamedTuple

from softgen.errors import UsageError
from softgen.three_d.clip_setup import attributes, clip, setup
from softgen.three_d.clip_setup.attributes import ATTRIBUTE_BYTES
from softgen.three_d.clip_setup.bins import BinMemory
from softgen.three_d.clip_setup.geometry_h import AttributePlan, ClipPlan, ClipResult, GeometryStruct, ScreenPlace, SetupPlan, SfInput
from softgen.three_d.state.plan_cache import PlanCache
from softgen.three_d.state.state import DrawState
from softgen.three_d.structures import RecordArray, SetupRecord
from softgen.three_d.vertices.chunk import MADE_VERTICES, OBJECTS, VERTICES, aligned

RECORDS = 2048  # that SETUP makes before they are drawn
MOST_VERTICES = VERTICES + MADE_VERTICES  # of a chunk
PARTS = 19  # records that an object may become (geometry.h)


def oversized(count: int) -> str:
    """What to say of objects that are larger than SETUP allows (G45 5323)."""
    return f"3DPRIMITIVE: {count} objects whose bounding box is larger than 8192 pixels"


class GeometryPlans(NamedTuple):
    """What a draw's state means to CLIP and SETUP."""

    clip: ClipPlan
    setup: SetupPlan
    attributes: AttributePlan


def make_plans(state: DrawState, extent: tuple[int, int], shaded: bool = True) -> GeometryPlans:
    clipping = clip.plan(state)
    if clip.rejects_all(clipping) and not state.generation.unit_state:  # what comes after CLIP is not looked at
        return GeometryPlans(clipping, SetupPlan(), AttributePlan())
    return GeometryPlans(clipping, setup.plan(state, extent), attributes.plan(state) if shaded else AttributePlan())


class GeometryMemory:
    """Memory and plans of CLIP, SETUP and BIN, used by one draw after another."""

    def __init__(self, records: int = RECORDS, numbers: int | None = None, stipple: ctypes.c_uint32 | None = None) -> None:
        if records < PARTS:
            raise UsageError(f"GeometryMemory must have room for the {PARTS} records of one object, not {records}")
        self.plans = PlanCache(make_plans)
        self.bins = BinMemory() if numbers is None else BinMemory(numbers)
        self.capacity = records
        self.records = aligned(records * ctypes.sizeof(SetupRecord))
        self.attributes, self.sf_inputs = aligned(0), aligned(0)
        self.outcodes, self.results = aligned(4 * MOST_VERTICES), aligned(ctypes.sizeof(ClipResult) * (MOST_VERTICES + OBJECTS))
        self.places = aligned(ctypes.sizeof(ScreenPlace) * MOST_VERTICES)
        self.addresses = self.outcodes.ctypes.data, self.results.ctypes.data, self.places.ctypes.data
        self.inputs = 0  # address of sf_inputs
        self.stipple = ctypes.c_uint32() if stipple is None else stipple  # the Line Stipple Counter
        self.array = RecordArray(records=self.records.ctypes.data, capacity=records)

    def reserve(self, outputs: int, threads: bool) -> None:
        """Room for this many attributes of each record, and for the inputs of SF threads."""
        if len(self.attributes) < (size := self.capacity * outputs * ATTRIBUTE_BYTES):
            self.attributes = aligned(size)
        if not threads and size:
            self.array.attributes = self.attributes.ctypes.data
        elif threads and not self.inputs:
            self.sf_inputs = aligned(self.capacity * ctypes.sizeof(SfInput))
            self.inputs = self.sf_inputs.ctypes.data


class Geometry:
    """CLIP and SETUP of a record, and the memory that they share with BIN."""

    def __init__(self, plans: GeometryPlans, memory: GeometryMemory) -> None:
        self.clip, self.setup, self.attributes = plans
        by_threads = bool(plans.setup.start_vertex)
        memory.reserve(plans.attributes.count, by_threads)
        self.attribute_stride = plans.attributes.count * ATTRIBUTE_BYTES
        self.struct = GeometryStruct(
            clip=ctypes.addressof(plans.clip), setup=ctypes.addressof(plans.setup), attributes=ctypes.addressof(plans.attributes),
            outcodes=memory.addresses[0], tested=memory.addresses[1], places=memory.addresses[2], records=ctypes.addressof(memory.array),
            sf_inputs=memory.inputs if by_threads else 0, stipple=ctypes.addressof(memory.stipple),
        )  # fmt: skip
        self._kept = plans

    def resize(self, plan: SetupPlan) -> None:
        """For draws to surfaces of another size."""
        self.setup, self.struct.setup = plan, ctypes.addressof(plan)
