"""RecordCache: the kept records of a hardware context, of which draw.c finds the one for a draw's state.

Records are kept for one environment: a plain address space, a dispatcher, most base addresses, registers. Another one forgets them all.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from softgen.command import CommandStreamer, MarkedLatched
from softgen.memory.address_space import AddressSpace
from softgen.three_d.draw.draw_record import DrawRecord
from softgen.three_d.draw.draw_structures import Base
from softgen.three_d.draw.record_keeper import RecordKeeper
from softgen.three_d.draw.stage import ThreadedStage
from softgen.three_d.draw.stage_loops import StageLoops
from softgen.three_d.draw.surface_moves import SurfaceMoves
from softgen.three_d.state.latched_state import NotKept
from softgen.three_d.state.state import DrawCall, DrawState

if TYPE_CHECKING:
    from softgen.three_d.draw.draw_plans import DrawPlans, PipelinePlans
    from softgen.three_d.draw.draw_walk import DrawWalk

LATEST, TRY_AGAIN = 16, 16  # records that show whether keeping pays; of draws for which none is kept then, one in how many is tried
MOST_DRAWS = 384  # kept: those of several frames, whose render targets differ
MOVING = {"surface", "dynamic"}  # bases that drivers set anew for each batch; a record says whether it allows that
MOST_WORKERS = 256  # besides the first of each stage; half a megabyte each


class RecordCache:
    """The records of one context."""

    def __init__(self, pipeline: PipelinePlans, walk: DrawWalk) -> None:
        self._pipeline, self._walk, self.stage_loops = pipeline, walk, StageLoops()
        self.records: dict[int, DrawRecord] = {}  # by the address of their structures
        self._sharing: dict[tuple[int, str], tuple[ThreadedStage, int]] = {}  # workers besides the first, by record and stage
        self._pointers: Any = (ctypes.c_uint64 * MOST_DRAWS)()
        self._now, walk.shared, self._surface_moves = walk.struct, self.shared, SurfaceMoves(walk.struct)
        self._now.draws = ctypes.addressof(self._pointers)
        # What all of them were made for.
        self._latched: object = None
        self._space: object = None
        self.changes: int | None = None  # of the space: buffers of all records are mapped as they were then
        self._dispatcher: object = None
        self._bases: Mapping[str, int] = {}
        self._slots = 0
        self._moves = False  # units read blocks of state, wherever pointers lead
        self._registers: dict[str, int] = {}
        self._latest: deque[DrawRecord] = deque(maxlen=LATEST)  # that were made
        self._unkept = 0  # draws without one, because it would not have paid

    @property
    def current(self) -> DrawRecord:
        """The record that was found."""
        return self.records[self._now.found]

    # -- what all records have in common -------------------------------------------------------------------------------------------

    def ready(self, cs: CommandStreamer) -> bool:
        """Before a draw: whether records can be kept for it. Those that can no longer be used are forgotten."""
        if not self._same_environment(cs) and not self._enter(cs):
            return False
        if cs.space.changes != self.changes:
            self._follow_mappings(cs)
        if self._moves:
            self._walk.set_curbe(cs)
        return True

    def _same_environment(self, cs: CommandStreamer) -> bool:
        """Whether all records were made for this."""
        latched, bases = cs.latched, cs.bases
        if latched is not self._latched or cs.space is not self._space or cs.dispatcher is not self._dispatcher:
            return False
        if bases is not self._bases:
            if bases != self._bases and any(bases.get(name) != self._bases.get(name) for name in {*bases, *self._bases} - MOVING):
                return False
            self._set_bases(bases)
        if latched.slots != self._slots:  # type: ignore[attr-defined]  # commands that were never met have places now
            return False
        for name, value in self._registers.items():
            if cs.get(name) != value:
                return False
        return True

    def _set_bases(self, bases: Mapping[str, int]) -> None:
        """Pointers count from there."""
        self._bases = bases
        for base in (Base.GENERAL, Base.SURFACE, Base.DYNAMIC):
            self._now.bases[base] = bases.get(base.name.lower(), 0)

    def _enter(self, cs: CommandStreamer) -> bool:
        """Forgets all records; False where none can be kept."""
        self.forget_all()
        latched, dispatcher = cs.latched, cs.dispatcher
        if type(cs.space) is not AddressSpace or not dispatcher.prepares or not isinstance(latched, MarkedLatched):
            return False
        now = self._now
        now.latches, now.memory, now.select = latched.address, ctypes.addressof(cs.space.table), 0
        self._walk.enter(cs)
        self._moves = cs.generation.unit_state
        now.wrap = (1 << cs.space.bits) - 1
        self._set_bases(cs.bases)
        self._latched, self._space, self._dispatcher, self._slots = latched, cs.space, dispatcher, latched.slots
        return True

    def _follow_mappings(self, cs: CommandStreamer) -> None:
        """Forgets records whose threads use buffers that are mapped in another way now."""
        self.changes = cs.space.changes
        used = {record: record.keeper.buffers() for record in self.records.values() if record.keeper is not None}
        changed = {held for held in {held for buffers in used.values() for held in buffers} if not held.holds(cs.space)}
        for record in [record for record, buffers in used.items() if not changed.isdisjoint(buffers)]:
            self.forget(record)

    # -- keeping ---------------------------------------------------------------------------------------------------------------------

    def forget_all(self) -> None:
        """Nothing is kept."""
        self._latched = None
        self.records.clear()
        self._sharing.clear()
        self._latest.clear()
        self._registers.clear()
        self.stage_loops.clear()
        self._now.draw_count = self._now.previous = 0

    def forget(self, record: DrawRecord) -> None:
        address, now = record.address, self._now
        left = [held for held in self._pointers[: now.draw_count] if held != address]
        self._pointers[: len(left)] = left
        now.draw_count, now.previous = len(left), 0
        del self.records[address]
        for key in [key for key in self._sharing if key[0] == address]:
            del self._sharing[key]
        for other in self.records.values():
            if other.struct.after == address:
                other.struct.after = 0

    def _remember(self, record: DrawRecord) -> None:
        """The record comes first; the one that was used longest ago makes room."""
        now = self._now
        if now.draw_count == MOST_DRAWS:
            self.forget(self.records[self._pointers[MOST_DRAWS - 1]])
        address, count = record.address, now.draw_count
        self._pointers[1 : count + 1] = self._pointers[:count]
        self._pointers[0], now.draw_count, self.records[address] = address, count + 1, record

    def follow_surfaces(self, cs: CommandStreamer) -> bool:
        """Whether a record, of a state that is the same but for its surfaces, is now for the draw under way."""
        return self._surface_moves.found(cs, self.records, self._now.draw_count == MOST_DRAWS)

    def add(self, cs: CommandStreamer, call: DrawCall, plans: DrawPlans) -> DrawRecord | None:
        """A record for the state, which is kept; None where that cannot be, or does not pay."""
        if not plans.keeps or not self._pays():
            return None
        try:
            keeper = RecordKeeper(self.stage_loops, cs, DrawState.of(cs))
            made = DrawRecord(self._pipeline, cs, keeper.seen, call, self._pipeline.plans.get(keeper.seen), None, keeper)
            keeper.complete(made)
        except NotKept:
            plans.keeps = False
            return None
        made.struct.follows = self._surface_moves.follows_next
        self._remember(made)
        self._latest.append(made)
        self._registers |= keeper.registers
        return made

    def _pays(self) -> bool:
        """Whether a record is worth keeping. Making it takes twice the time of a draw with one that is not kept, which is lost with a
        program that changes state with each draw, such as a test of all mip levels."""
        if len(self._latest) < LATEST or any(record.runs > 1 for record in self._latest):
            return True
        self._unkept += 1
        return self._unkept % TRY_AGAIN == 0

    def shared(self, record: DrawRecord, stage: ThreadedStage, loops: int) -> None:
        """A stage of a record has so many workers now; those that other records were given first make room."""
        sharing, address = self._sharing, record.address
        sharing[address, stage.name] = stage, loops - 1
        others = [key for key in sharing if key[0] != address]
        while others and sum(workers for _, workers in sharing.values()) > MOST_WORKERS:
            other, _ = sharing.pop(others.pop(0))
            other.unshare()

    def renew(self, cs: CommandStreamer, record: DrawRecord, instructions: Sequence[int], helped: bool, draws: int = 1) -> None:
        """After draws whose threads needed Python, or whose code is not the best yet."""
        keeper = record.keeper
        assert keeper is not None
        try:
            if helped:
                keeper.follow(cs)
                keeper.renew(record)
            if not keeper.settled and keeper.ran(instructions, draws):
                keeper.follow(cs)
                keeper.look(record)
        except NotKept:
            self.forget(record)
