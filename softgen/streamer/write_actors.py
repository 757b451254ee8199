"""FlushActor and StoreActor: flushes, and stores of immediate data, in a walk over a batch (write_actors.c).

Reads   PIPE_CONTROL MI_FLUSH MI_STORE_DATA_IMM PIPELINE_SELECT
Writes  struct walked_flushes, struct walked_stores

A flush is executed in C once Python has executed one of its kind: one that differs in address and data alone. Python says then in which
states of the context that kind breaks no rule, and what it does. Flushes that write timestamps, counts or registers, interrupt, invalidate
state or write to the global space stay Python's.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple, Protocol

from softgen.bits import catalogue
from softgen.bits.layout import Layout
from softgen.bits.record import Record
from softgen.bits.units import DWORD_MASK
from softgen.command import Actor, CommandStreamer, FieldPlace
from softgen.memory import guard
from softgen.memory.space import Space
from softgen.streamer import rules
from softgen.streamer.context import SavedContext
from softgen.streamer.latch import PIPELINE_NAMES
from softgen.streamer.latch_rules import library
from softgen.streamer.parser import Command, FetchPointer
from softgen.streamer.write_actors_h import (
    FLUSH_KINDS,
    FLUSH_REREADS,
    FLUSH_STALLS,
    FLUSH_WRITES,
    FlushKind,
    FlushKinds,
    WalkedFlushes,
    WalkedStores,
    WritePlaces,
)

PIPELINES = ("", *PIPELINE_NAMES)  # by their numbers in flush_kind.allowed
DATA = ("address", "immediate_data")
STORE = "MI_STORE_DATA_IMM"


class WritingStreamer(CommandStreamer, Protocol):
    """The parts of a Streamer that these actors use."""

    rules: str
    saved: SavedContext
    place: FetchPointer | None
    address_mask: int
    own_actors: dict[str, Actor]
    _work: int

    @property
    def command(self) -> Command: ...

    def note_work(self) -> None: ...
    def _warn_of_rules(self, name: str, command: Command) -> None: ...


class WalkedEffects(NamedTuple):
    """What a kind of flush does that a walk can do."""

    stalls: bool = False
    writes: bool = False
    rereads: bool = False

    @property
    def bits(self) -> int:
        return FLUSH_STALLS * self.stalls | FLUSH_WRITES * self.writes | FLUSH_REREADS * self.rereads


def _places(layout: Layout) -> WritePlaces:
    """Where a command has its address and data; of one that has none, anywhere."""
    if not {field.name for field in layout.fields}.issuperset(DATA):
        return WritePlaces()
    at, data = (FieldPlace.of(layout.field(name)) for name in DATA)
    assert at.shift % 32 == data.shift % 32 == 0
    return WritePlaces(at.shift // 32, data.shift // 32, at.mask)


@cache
def _function(name: str) -> int:
    return ctypes.cast(getattr(library(), name), ctypes.c_void_p).value or 0


# -- flushes -------------------------------------------------------------------------------------------------------


class FlushTable:
    """The kinds of a flush command on an engine of a generation, added as Python executes them."""

    def __init__(self, name: str, gen: float, engine: str, rules_name: str) -> None:
        self.name, self.engine, self.rules, layout = name, engine, rules_name, catalogue.layout(name, gen)
        self.layout = layout
        self._varying = varying = sum(field.mask for field in layout.fields if field.name in DATA)
        controls = sum(field.mask for field in layout.fields if field.name not in DATA)
        assert controls < 1 << 64  # in the first two dwords
        self.struct = FlushKinds(DWORD_MASK & ~(varying >> 32), 0, _places(layout))
        self.address = ctypes.addressof(self.struct)
        self._fields = sorted(rules.earlier_fields(name, rules_name))
        self._known: set[tuple[int, int]] = set()
        self._lock = threading.Lock()

    def add(self, command: Command, effects: WalkedEffects) -> None:
        """Keep a command's kind, unless it is known or there is no room."""
        dwords, struct = command.dwords, self.struct
        kind = dwords[0], dwords[1] & struct.control_mask if len(dwords) > 1 else 0
        if kind in self._known:
            return
        with self._lock:
            if kind not in self._known and struct.count < FLUSH_KINDS:
                values = self._without_data(dwords)
                struct.kinds[struct.count] = FlushKind(*kind, effects.bits, self._allowed(values), self.bits_of_earlier(values))
                struct.count += 1  # last: walks of other engines may look
                self._known.add(kind)

    def _without_data(self, dwords: Sequence[int]) -> Record:
        """A command's record with neither address nor data: none of its kind breaks more rules (ICL-PC-10: nothing is asked for)."""
        return self.layout.raw([dword & ~(self._varying >> 32 * number) & DWORD_MASK for number, dword in enumerate(dwords)])

    def _allowed(self, values: Record) -> int:
        """The states in which a command breaks no rule, whatever commands before had set."""
        return sum(1 << 2 * number + unflushed for number, pipeline in enumerate(PIPELINES) for unflushed in (False, True)
                   if not rules.broken(self.name, values, self.rules, self.engine, pipeline, unflushed))  # fmt: skip

    def bits_of_earlier(self, values: Record | frozenset[str]) -> int:
        """The fields of rules that a command has set, or that are in a set, as bits."""
        found = values if isinstance(values, frozenset) else {name for name in self._fields if getattr(values, name)}
        return sum(1 << number for number, name in enumerate(self._fields) if name in found)

    def earlier_of_bits(self, bits: int) -> frozenset[str]:
        return frozenset(name for number, name in enumerate(self._fields) if bits >> number & 1)


@cache
def flush_table(name: str, gen: float, engine: str, rules_name: str) -> FlushTable:
    return FlushTable(name, gen, engine, rules_name)


def learn_flush(cs: WritingStreamer, name: str, effects: WalkedEffects) -> None:
    """Keep the kind of the flush being executed, for walks."""
    flush_table(name, cs.generation.number, cs.engine, cs.rules).add(cs.command, effects)


class WriteActor:
    """An actor of a streamer whose commands a walk executes, or leaves to their handler from the start."""

    collects = False

    def __init__(self, name: str, handler: Callable[[Any, Record], None]) -> None:
        self.name, self._handler = name, handler

    def go_on(self, cs: Any, cmd: Record, fault: guard.FaultRecord | None) -> None:
        """Execute a command whose write has met an address that is not mapped."""
        cs._warn_of_rules(self.name, cs.command)
        self._handler(cs, cmd)

    def settle(self, cs: Any) -> None:
        """Nothing is left to be done."""


class FlushActor(WriteActor):
    """The actor of a streamer's flushes."""

    def __init__(self, table: FlushTable, handler: Callable[[Any, Record], None]) -> None:
        super().__init__(table.name, handler)
        self.table, self.struct, self._before = table, WalkedFlushes(known=table.address), 0

    def enter(self, cs: Any) -> tuple[int, int] | None:
        if not _in_own_space(cs) or not self.table.struct.count:
            return None
        saved, now = cs.saved, self.struct
        cs.note_work()  # until this walk; what it has begun so far is not counted yet
        self._before = cs._work
        now.address_mask, now.pipeline = cs.address_mask, PIPELINES.index(saved.latched.pipeline())
        now.unflushed, now.earlier, now.work = saved.unflushed, self.table.bits_of_earlier(saved.earlier), 0
        now.flushes = now.rereads = 0
        return _function("flush_act"), ctypes.addressof(now)

    def leave(self, cs: Any) -> None:
        now, saved = self.struct, cs.saved
        if not now.flushes:
            return
        cs._work, saved.unflushed = self._before + now.work, bool(now.unflushed)
        saved.earlier = self.table.earlier_of_bits(now.earlier)
        if now.rereads:
            cs.memory_changed()


# -- stores --------------------------------------------------------------------------------------------------------


class StoreActor(WriteActor):
    """The actor of a streamer's MI_STORE_DATA_IMM."""

    def __init__(self, gen: float, handler: Callable[[Any, Record], None]) -> None:
        super().__init__(STORE, handler)
        layout = catalogue.layout(STORE, gen)
        self.struct = WalkedStores(layout.field("use_global_gtt").mask, _places(layout))

    def enter(self, cs: Any) -> tuple[int, int] | None:
        now = self.struct
        if not _in_own_space(cs):
            return None
        now.address_mask, now.stores = cs.address_mask, 0
        return _function("store_act"), ctypes.addressof(now)

    def leave(self, cs: Any) -> None:
        if self.struct.stores:
            cs.memory_changed()


def _in_own_space(cs: Any) -> bool:
    """Whether a walk's batch is in the space that its commands write to, no pipeline has collected work that a flush completes, and nobody
    has to see memory between two writes."""
    space: Space = cs.space
    return cs.place is not None and cs.place.window.space is space and not cs.saved.unfinished and not cs.hooks.ordered()
