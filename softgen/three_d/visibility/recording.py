"""Draws of the position-only pipe: VFR, VSR, CLR and SFR as the render pipe's, and OVR, which records the objects that are left of them.

Reads   3DPRIMITIVE, and the state of the stages that the pipe has
Writes  visibility streams (streams.py)

What CLR and SFR leave out, no pixel of the render pipe could come of: objects outside of the view volume, scissors and drawing rectangle,
of a culled facing, or without an area.
"""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import numpy as np

from softgen.bits.catalogue import layout
from softgen.bits.record import Record
from softgen.errors import Unsupported
from softgen.three_d.clip_setup.clip import ClipStage
from softgen.three_d.clip_setup.setup import SetupStage
from softgen.three_d.draw.draw_plans import PipelinePlans
from softgen.three_d.draw.draw_record import DrawRecord
from softgen.three_d.draw.draw_structures import COUNTS, StageStruct
from softgen.three_d.draw.draw_walk import COUNTED, WORKS, DrawWalk
from softgen.three_d.draw.stage import BuiltRecord, Stage
from softgen.three_d.rules.urb_regions import CONSTANT_KIB, STAGES, entries_of
from softgen.three_d.stages import FIXED, FRONT, StageRow
from softgen.three_d.state.state import DrawCall, DrawState
from softgen.three_d.visibility import streams
from softgen.three_d.visibility.recording_h import VisibilityPlan

ZEROS = ("3DSTATE_WM", "3DSTATE_SBE", "3DSTATE_SBE_SWIZ", "3DSTATE_URB_HS", "3DSTATE_URB_DS", "3DSTATE_URB_GS")
POOL_ALLOC = "3DSTATE_BINDING_TABLE_POOL_ALLOC"
EXTENT = (1 << 14, 1 << 14)  # pixels of the largest render target: the pipe knows none
# Vertices of an object, and how many objects of a strip share: by topology.
LISTS, STRIPS = {1: 1, 2: 2, 4: 3, 15: 3}, {3: 1, 5: 2, 6: 2}


def objects_of(call: DrawCall) -> int:
    """Objects of an instance."""
    if call.topology in LISTS:
        return call.vertices // LISTS[call.topology]
    if call.topology in STRIPS:
        return max(call.vertices - STRIPS[call.topology], 0)
    raise Unsupported(f"visibility of objects of topology {call.topology} is not recorded")


class PositionOnlyLatched:
    """Latched commands of POCS, and those of units that the pipe does not have as if they were all zeros: SETUP's plan reads them."""

    def __init__(self, latched: Any, gen: float, pool: Record | None = None) -> None:
        self._latched, self._pool = latched, pool
        self._zeros: dict[str, Record] = {name: layout(name, gen).raw(layout(name, gen).pack()) for name in ZEROS}

    def get(self, name: str, default: Any = None, /) -> Any:
        if name == POOL_ALLOC and self._pool is not None:
            return self._pool
        return self._latched.get(name, self._zeros.get(name, default))

    def __getitem__(self, name: str, /) -> Record:
        found: Record | None = self.get(name)
        if found is None:
            raise KeyError(name)
        return found

    def __contains__(self, name: object, /) -> bool:
        return isinstance(name, str) and self.get(name) is not None

    def by_index(self, name: str) -> dict[int, Record]:
        found: dict[int, Record] = self._latched.by_index(name)
        return found


class RecordingStage(Stage):
    """OVR: sets the bits of the objects that have records."""

    name, run = "OVR", "stage_record_visibility"

    def __init__(self, plan: VisibilityPlan) -> None:
        self.plan = plan

    def build(self, record: BuiltRecord, into: StageStruct) -> bool:
        into.plan = ctypes.addressof(self.plan)
        return True


class PositionOnlyPipeline(PipelinePlans):
    """The position-only pipe of a hardware context."""

    def __init__(self) -> None:
        super().__init__()
        self.walk = DrawWalk(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> PositionOnlyPipeline:
        """A copy of a context has a pipe of its own."""
        return PositionOnlyPipeline()

    def record(self, cs: Any, call: DrawCall) -> None:
        """Run a draw's stages, and write what is visible of it."""
        count, state = objects_of(call), DrawState.of(cs)
        pool = _render_pool(cs, state)
        _check_urb(cs, state)
        state.latched, state.constant_start = PositionOnlyLatched(state.latched, state.gen, pool), CONSTANT_KIB
        found = [self._instance(cs, state, call._replace(instances=1, start_instance=call.start_instance + number), count)
                 for number in range(call.instances)]  # fmt: skip
        streams.write(cs, np.concatenate(found))

    def _instance(self, cs: Any, state: DrawState, call: DrawCall, count: int) -> streams.Visible:
        bits = np.zeros(-(-count // 8) + 1, np.uint8)
        plan = VisibilityPlan(bits.ctypes.data, count)
        plans: Any = SimpleNamespace(geometry=self.memory.plans.get(state, EXTENT), extent=EXTENT, draws_nothing=False, clear=None)
        rows = (*FRONT, StageRow("clip", FIXED, ClipStage), StageRow("setup", FIXED, SetupStage),
                StageRow("visibility", FIXED, lambda: RecordingStage(plan)))  # fmt: skip
        lease, fine = cs.dispatcher.lease(), False
        try:
            record = DrawRecord(self, cs, state, call, plans, lease, rows=rows)
            found = self.walk.run(cs, call, record)
            fine = True
        finally:
            lease.end(fine)
        cs.count(COUNTS, found[:COUNTED])
        cs.counters.threads += sum(found[WORKS::3])
        cs.counters.instructions += sum(found[WORKS + 1 :: 3])
        return np.unpackbits(bits, count=count, bitorder="little").astype(np.bool_)


def _render(cs: Any) -> Any:
    """What the render engine's commands have latched in the same context."""
    return cs.render.latched if cs.render is not None else None


def _render_pool(cs: Any, state: DrawState) -> Record | None:
    """The render engine's pool of binding tables governs this pipe too: software keeps both copies equal (ICL 642-648)."""
    latched = _render(cs)
    theirs, own = (held.get(POOL_ALLOC) if held is not None else None for held in (latched, state.latched))
    enables = [bool(pool is not None and pool.binding_table_pool_enable) for pool in (theirs, own)]
    if latched is not None and enables[0] != enables[1]:
        cs.warn(f"binding_table_pool_enable {enables[1]:d}, and on the render engine {enables[0]:d}, which both use (ICL 642-648)")
    return theirs


def _check_urb(cs: Any, state: DrawState) -> None:
    """VSR's entries must not overlap those of the render pipe's stages (ICL 2839-2845)."""
    own, latched = state.get("3DSTATE_URB_VS"), _render(cs)
    if own is None or latched is None:
        return
    ours = entries_of("VS", own)
    for stage in STAGES:
        region = latched.get(f"3DSTATE_URB_{stage}")
        if region is None or not region.number_of_urb_entries:
            continue
        theirs = entries_of(stage, region)
        if ours.start < theirs.end and theirs.start < ours.end:
            cs.warn(f"3DSTATE_URB_VS overlaps the render pipe's entries of {stage} (ICL 2839-2845)")
