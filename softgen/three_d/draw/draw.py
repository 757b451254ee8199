"""Pipeline3D: draws of a hardware context, one after another.

In:  a DrawCall and the state it sees. Out: memory changed; statistics registers.

The kept record for a draw's state is found in C (draw_cache.py); else one is built (draw_record.py). Either is walked (draw_walk.py).
"""

from __future__ import annotations

import copy
import ctypes
from typing import Any

from softgen.command import Actor, CommandStreamer
from softgen.three_d.clip_setup.geometry import oversized
from softgen.three_d.draw.draw_actor import DrawActor
from softgen.three_d.draw.draw_cache import RecordCache
from softgen.three_d.draw.draw_names import DrawNames
from softgen.three_d.draw.draw_plans import DrawPlans, PipelinePlans
from softgen.three_d.draw.draw_record import DrawRecord
from softgen.three_d.draw.draw_structures import COUNTS, Phase
from softgen.three_d.draw.draw_walk import COUNTED, DONE, FIND, NANOSECOND, WORKS, DrawWalk, Results
from softgen.three_d.state.state import DrawCall, DrawState


class Pipeline3D(PipelinePlans):
    """The 3D pipeline of a hardware context."""

    def __init__(self, stipple: ctypes.c_uint32 | None = None) -> None:
        super().__init__(stipple)
        self.walk = DrawWalk(self)
        self.cache = RecordCache(self, self.walk)
        self.actor: Actor = DrawActor(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Pipeline3D:
        """A copy of a context has a pipeline of its own, with the copy's Line Stipple Counter."""
        return Pipeline3D(copy.deepcopy(self.memory.stipple, memo))

    def draw(self, cs: CommandStreamer, call: DrawCall) -> None:
        """Execute a draw to its end."""
        if not self.cache.ready(cs):
            self._draw_new(cs, call)
            return
        if not self.follows_bases(cs):
            self.check_bases(DrawState.of(cs), call)
        self.complete(cs, call, self.walk.find(call))

    def complete(self, cs: CommandStreamer, call: DrawCall, why: int | None) -> None:
        """Go on with a draw after draw.c has returned, to its end, and count it."""
        if why != DONE and not self._go_on(cs, call, why):
            return
        record = self.cache.current
        self._finish(cs, record, self.walk.results(len(record.counted)))

    def follows_bases(self, cs: CommandStreamer) -> bool:
        """Whether base addresses are those of the last draw that was looked at, or do not matter."""
        return not cs.generation.stage_rules or cs.bases is self._bases

    # -- with a kept record ------------------------------------------------------------------------------------------------------------

    def _go_on(self, cs: CommandStreamer, call: DrawCall, why: int | None) -> bool:
        """After draw.c has returned to Python; False: the draw is done, with a record that is not kept."""
        why = self._search(why)
        if self.walk.struct.phase == FIND and self.cache.follow_surfaces(cs):
            self.walk.struct.previous = 0
            why = self._search(self.walk.find(call))
        if self.walk.struct.phase == FIND:
            state = DrawState.of(cs)
            plans = self._plans(state, call)
            record = self.cache.add(cs, call, plans) if plans is not None else None
            if record is not None:
                self.walk.struct.previous = 0
                why = self.walk.find(call)
            if record is None or self.walk.struct.phase != Phase.WALK:
                if record is not None and plans is not None:  # its state is written while it is built
                    plans.keeps = False
                    self.cache.forget(record)
                if plans is not None:
                    self._draw_unkept(cs, state, call, plans)
                return False
        try:
            self.walk.go_on(cs, self.cache.current, why)
        except BaseException:  # threads may have been left in the middle, and records share them
            self.cache.forget_all()
            raise
        return True

    def _search(self, why: int | None) -> int | None:
        """Goes on after accesses to memory that is not mapped, while records are compared."""
        now = self.walk.struct
        while why is None and now.phase != Phase.WALK:
            if now.phase == Phase.BEGIN:  # of the one that was found: its constants are gone
                self.cache.forget(self.cache.current)
                now.compared, now.phase = 0, FIND
            why = self.walk.resume()  # else pointers of one that was compared lead nowhere now
        return why

    def _finish(self, cs: CommandStreamer, record: DrawRecord, found: Results) -> None:
        """Counts what a draw has done."""
        counters, keeper = cs.counters, record.keeper
        record.runs += 1
        cs.count(COUNTS, found[:COUNTED])
        for statistics, threads, instructions, spent in zip(record.counted, found[WORKS::3], found[WORKS + 1 :: 3], found[WORKS + 2 :: 3],
                                                            strict=True):  # fmt: skip
            if threads:
                counters.threads += threads
                counters.instructions += instructions
                statistics.add(threads, instructions, spent * NANOSECOND)
        if found[COUNTED] and cs.generation.unit_state:
            cs.warn(oversized(found[COUNTED]))
        for stage in record.reporting:
            stage.report(cs)
        helped, self.walk.helped = self.walk.helped, False
        if keeper is not None and (helped or not keeper.settled):
            self.cache.renew(cs, record, found[WORKS + 1 :: 3], helped)
        if record.plans.targets:
            cs.drawn(record.plans.targets)

    # -- without -----------------------------------------------------------------------------------------------------------------------

    def _plans(self, state: DrawState, call: DrawCall) -> DrawPlans | None:
        """What the state means; None: the draw has nothing to do."""
        self.check(state, call)
        plans = self.plans.get(state)
        return None if plans.resolve else plans

    def _draw_new(self, cs: CommandStreamer, call: DrawCall) -> None:
        state = DrawState.of(cs)
        plans = self._plans(state, call)
        if plans is not None:
            self._draw_unkept(cs, state, call, plans)

    def _draw_unkept(self, cs: CommandStreamer, state: DrawState, call: DrawCall, plans: DrawPlans) -> None:
        """Execute a draw with a record for it alone; where engines are compared, on each of them."""
        names = DrawNames(cs.counters.draws - cs.earlier_draws, state, call, plans.target)
        record, found = cs.dispatcher.whole(cs.space, lambda: self._walk_once(cs, state, call, plans), names)
        self._finish(cs, record, found)

    def _walk_once(self, cs: CommandStreamer, state: DrawState, call: DrawCall, plans: DrawPlans) -> tuple[DrawRecord, Results]:
        lease, fine = cs.dispatcher.lease(), False
        try:
            record = DrawRecord(self, cs, state, call, plans, lease)
            found = self.walk.run(cs, call, record)
            fine = True
        finally:
            lease.end(fine)
        return record, found
