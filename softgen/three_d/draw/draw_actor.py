"""DrawActor: draws in a walk over a batch (draw_actor.c), with records that are kept.

Reads   3DPRIMITIVE 3DSTATE_VF_TOPOLOGY PIPELINE_SELECT STATE_BASE_ADDRESS
Writes  struct walked_draws

Compiled code executes a draw whose record is kept; what it needs Python for, Python completes. Before a walk Python looks at what only it
changes: the environment of records (draw_cache.py), registers, mappings. After the walk it counts what was done.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

from softgen.bits import catalogue
from softgen.bits.layout import Layout
from softgen.bits.record import Record
from softgen.command import CommandStreamer, MarkedLatched
from softgen.memory import guard
from softgen.three_d.draw.draw_actor_h import REFUSED_BITS, DrawBits, DrawField, WalkedDraws
from softgen.three_d.draw.draw_h import StageWork
from softgen.three_d.draw.draw_structures import COUNTS, function
from softgen.three_d.draw.draw_walk import NANOSECOND

if TYPE_CHECKING:
    from softgen.three_d.draw.draw_cache import RecordCache
    from softgen.three_d.draw.draw_record import DrawRecord
    from softgen.three_d.draw.draw_walk import DrawWalk
    from softgen.three_d.state.state import DrawCall

DRAW, TOPOLOGY = "3DPRIMITIVE", "3DSTATE_VF_TOPOLOGY"
# Fields of 3DPRIMITIVE by those of struct walked_draws.
FIELDS = {"topology": "primitive_topology_type", "indexed": "vertex_access_type", "vertices": "vertex_count_per_instance",
          "start_vertex": "start_vertex_location", "instances": "instance_count", "start_instance": "start_instance_location",
          "base_vertex": "base_vertex_location"}  # fmt: skip
# Bits that leave a draw to Python: it may not happen, or its parameters are not all in the command.
PYTHON_ONLY = ("predicate_enable", "indirect_parameter_enable", "indirect_vertex_count", "end_offset_enable", "extended_parameters_present",
               "posh_enable")  # fmt: skip
LOGGED = 1024  # draws of a walk whose render targets somebody sees
NO_COUNTS = (0,) * len(COUNTS)


def _field(layout: Layout, name: str, start: int = 0) -> DrawField:
    """A field of a command whose first dword has this number."""
    field = layout.field(name)
    return DrawField(start + field.low // 32, field.low % 32, (1 << field.width) - 1)


@lru_cache(16)
def _refused(gen: float) -> tuple[tuple[int, int], ...]:
    """Dwords of 3DPRIMITIVE with the bits of PYTHON_ONLY."""
    layout, found = catalogue.layout(DRAW, gen), dict[int, int]()
    for field in layout.fields:
        if field.name in PYTHON_ONLY:
            found[field.low // 32] = found.get(field.low // 32, 0) | field.mask >> field.low // 32 * 32
    assert len(found) <= REFUSED_BITS
    return tuple(found.items())


class WalkedPipeline(Protocol):
    """The pipeline whose draws a walk executes (Pipeline3D)."""

    walk: DrawWalk
    cache: RecordCache

    def follows_bases(self, cs: CommandStreamer) -> bool: ...
    def complete(self, cs: CommandStreamer, call: DrawCall, why: int | None) -> None: ...


class DrawActor:
    """The actor of one context's draws."""

    collects = False

    def __init__(self, pipeline: WalkedPipeline) -> None:
        self.pipeline, self.struct = pipeline, WalkedDraws(draw=ctypes.addressof(pipeline.walk.struct))
        self._address, self._function = ctypes.addressof(self.struct), function("draw_act")
        self._log = (ctypes.c_uint64 * LOGGED)()
        self.struct.log = ctypes.addressof(self._log)
        self._made_for: tuple[object, ...] = ()
        self._ran: list[tuple[DrawRecord, int, list[int]]] = []  # records of the last walk: their draws, instructions of their stages

    # -- before a walk -------------------------------------------------------------------------------------------------------------------

    def enter(self, cs: CommandStreamer) -> tuple[int, int] | None:
        pipeline, now = self.pipeline, self.struct
        self._ran.clear()
        if not pipeline.cache.ready(cs) or not pipeline.follows_bases(cs) or not pipeline.walk.struct.draw_count:
            return None
        latched: Any = cs.latched
        assert isinstance(latched, MarkedLatched)
        made_for = cs.generation.number, latched, latched.slots
        if made_for != self._made_for:
            self._place(cs.generation.number, latched)
            self._made_for = made_for
        now.log_room = LOGGED if cs.reports_targets else 0
        space: Any = cs.space
        now.changes, now.seen_changes = space.changes_address, pipeline.cache.changes
        if now.bases_slot:
            now.bases_count = latched.latched_count("STATE_BASE_ADDRESS")
        return self._function, self._address

    def _place(self, gen: float, latched: MarkedLatched) -> None:
        """Where the command and the state commands have their fields."""
        now, layout = self.struct, catalogue.layout(DRAW, gen)
        for into, name in FIELDS.items():
            setattr(now, into, _field(layout, name))
        for number, (dword, mask) in enumerate(_refused(gen)):
            now.refused[number] = DrawBits(dword, mask)
        now.topology_slot = now.pipeline_slot = now.bases_slot = 0
        if (place := latched.place("STATE_BASE_ADDRESS")) is not None:
            now.bases_slot = place.slot + 1
        if (place := latched.place("PIPELINE_SELECT")) is not None:
            now.pipeline_slot = place.slot + 1
            now.pipeline = _field(catalogue.layout("PIPELINE_SELECT", gen), "pipeline_selection", place.offset)
        if (place := latched.place(TOPOLOGY)) is not None:
            now.topology_slot = place.slot + 1
            now.topology = _field(catalogue.layout(TOPOLOGY, gen), "primitive_topology_type", place.offset)

    # -- after it ------------------------------------------------------------------------------------------------------------------------

    def leave(self, cs: CommandStreamer) -> None:
        now = self.struct
        cs.counters.draws += now.draws
        if now.finished:
            cs.count(COUNTS, now.counts[:])
            now.counts[:] = NO_COUNTS
        records, address = self.pipeline.cache.records, now.touched
        for logged in self._log[: now.finished] if now.log_room else ():
            if targets := records[logged].plans.targets:
                cs.drawn(targets)
        while address:
            record = records[address]
            address = record.struct.touched
            self._count(cs, record)
        now.draws = now.finished = now.touched = 0

    def _count(self, cs: CommandStreamer, record: DrawRecord) -> None:
        """What the draws of a record have done."""
        draws, instructions, counters = record.struct.runs, list[int](), cs.counters
        for statistics, stage in zip(record.counted, record.threaded, strict=True):
            total = stage.into.total
            instructions.append(total.instructions)
            if stage.into.dispatches:
                counters.threads += total.threads
                counters.instructions += total.instructions
                statistics.add(total.threads, total.instructions, total.nanoseconds * NANOSECOND, stage.into.dispatches)
                stage.into.total, stage.into.dispatches = StageWork(), 0
        record.runs += draws
        record.struct.runs = record.struct.touched = 0
        self._ran.append((record, draws, instructions))

    def go_on(self, cs: CommandStreamer, cmd: Record, fault: guard.FaultRecord | None) -> None:
        walk = self.pipeline.walk
        if fault is not None:
            ctypes.pointer(walk.fault)[0] = fault
        self.pipeline.complete(cs, walk.call(), None if fault is not None else self.struct.why)

    def settle(self, cs: CommandStreamer) -> None:
        cache = self.pipeline.cache
        for record, draws, instructions in self._ran:
            if record.keeper is not None and not record.keeper.settled and cache.records.get(record.address) is record:
                cache.renew(cs, record, instructions, False, draws)
        self._ran.clear()
