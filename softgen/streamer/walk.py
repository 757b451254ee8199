"""BatchWalk: the walk of walk.c over consecutive commands of a batch, and what Python does before and after it.

    more = walk.run(streamer, place)

State commands are latched; commands with an actor (softgen/command.py) are executed by it. The walk returns for any other command, for one
that its actor leaves to Python or needs Python for, and after WALK_TIME, when the time limit is looked at.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Mapping
from functools import cache
from typing import Any, Protocol

from softgen.bits.generation import Generation
from softgen.command import Actor, Actors, CommandStreamer
from softgen.errors import SoftgenError
from softgen.memory import guard
from softgen.memory.address_space import AddressSpace
from softgen.streamer.command_kinds import SimpleCommands
from softgen.streamer.context import SavedContext
from softgen.streamer.engine_status import EngineStatusRegisters
from softgen.streamer.interface import StreamerHandler
from softgen.streamer.latch_rules import library
from softgen.streamer.parser import FetchPointer, record, understood
from softgen.walk_h import WALK_ACTORS, WALK_AT_ONCE, Walk, WalkActor, WalkReason

WALK_TIME = 20_000_000  # nanoseconds after which the time limit is looked at
PART = 1 << 32  # bytes of the address space that are one after another in the host's
NOT_READY = WalkActor()
HALF_DONE, ACTOR, COMMAND = int(WalkReason.HALF_DONE), int(WalkReason.ACTOR), int(WalkReason.COMMAND)
ACTING = int(WalkReason.ACTING)


def no_actor(cs: object) -> None:
    return None


@cache
def walk_function() -> int:
    """The host address of walk_run."""
    return ctypes.cast(library().walk_run, ctypes.c_void_p).value or 0


class WalkingStreamer(CommandStreamer, Protocol):
    """The parts of a Streamer that walks use."""

    saved: SavedContext
    simple_commands: SimpleCommands
    status: EngineStatusRegisters
    parked: int | None
    _executing: Any
    _read_ahead_is_stale: bool

    def _read_again(self, place: FetchPointer) -> None: ...
    def _failed(self, error: SoftgenError) -> None: ...


class BatchWalk:
    """Walks of one streamer, one after another."""

    def __init__(self, actors: Actors, handlers: Mapping[str, StreamerHandler], generation: Generation) -> None:
        """Commands whose handlers are not those that actors stand for are left to them."""
        assert len(actors) <= WALK_ACTORS
        self.acting = frozenset(name for name, row in actors.items() if row.acts(generation))
        self._finders = tuple(row.find if handlers.get(name) is row.handler else no_actor for name, row in actors.items())
        self.fault, self.struct = guard.FaultRecord(), Walk()
        self._function, self._address = walk_function(), ctypes.addressof(self.struct)
        self._call = guard.library().guard_call
        self._entered: dict[int, Actor] = {}  # actors of the walk under way, by number

    def may(self, cs: WalkingStreamer, header: int) -> bool:
        """Whether compiled code may execute a command with this header: it sets state, or has an actor."""
        simple = cs.simple_commands[header]
        return (simple is None or simple.layout.name in self.acting) and cs.saved.latched.may_walk(header)

    def run(self, cs: WalkingStreamer, place: FetchPointer) -> bool:
        """Execute commands from a place on; whether more may follow in another walk. False: the next one is Python's."""
        space = place.window.space
        return self._run(cs, place, space) if type(space) is AddressSpace else self._latch(cs, place)

    def _run(self, cs: WalkingStreamer, place: FetchPointer, space: AddressSpace) -> bool:
        self._begin(cs, place, space)
        reason, faulted = self._walk(cs)
        now, entered = self.struct, list(self._entered.values())
        half_done = reason in (HALF_DONE, ACTING)
        self._count(cs, place)
        for actor in entered:
            actor.leave(cs)
        if half_done:
            self._go_on(cs, place, faulted)
        for actor in entered:
            actor.settle(cs)
        if cs._read_ahead_is_stale:
            cs._read_again(place)
        if reason == COMMAND or reason == ACTOR:
            header = place.window.first(place.address)
            return bool(now.commands) and header is not None and header >> 16 not in cs.saved.latched.table.known and self.may(cs, header)
        return True

    def _begin(self, cs: WalkingStreamer, place: FetchPointer, space: AddressSpace) -> None:
        latched, now, address = cs.saved.latched, self.struct, place.address
        latched.room()
        now.table, now.latches, now.memory = latched.table.address, latched.address, ctypes.addressof(space.table)
        now.address, now.end = address, min((address // PART + 1) * PART, 1 << space.bits)
        now.deadline, now.commands, now.latched = time.monotonic_ns() + WALK_TIME, 0, 0
        now.work = now.collected = 0
        for number in self._entered:
            now.actors[number - 1] = NOT_READY
        self._entered.clear()

    def _walk(self, cs: WalkingStreamer) -> tuple[int, bool]:
        """Why the walk returns, and whether that was an access to memory that is not mapped."""
        now = self.struct
        while True:
            faulted = bool(self._call(self._function, self._address, self.fault))
            reason = now.reason
            if reason != ACTOR or not self._enter(cs):
                return reason, faulted

    def _enter(self, cs: WalkingStreamer) -> bool:
        """Readies the actor of the next command; False: Python has to execute that."""
        now, table = self.struct, cs.saved.latched.table
        header = ctypes.c_uint32.from_address(self._host(now.address)).value
        layout, _, _ = understood(header, cs.generation.number, cs.engine)
        if layout is None or layout.name not in table.acting:
            return False
        number = table.acting.index(layout.name) + 1
        actor = self._finders[number - 1](cs)
        addresses = actor.enter(cs) if actor is not None else None
        if actor is None or addresses is None:
            return False
        now.actors[number - 1], self._entered[number] = WalkActor(*addresses, actor.collects), actor
        return True

    def _host(self, address: int) -> int:
        """The host address of a dword that the walk has read."""
        part = ctypes.c_uint64.from_address(self.struct.memory + 8 * (address >> 32 & 0xFFFF)).value
        return part + (address & PART - 1)

    def _count(self, cs: WalkingStreamer, place: FetchPointer) -> None:
        """Takes note of the commands that were executed."""
        now = self.struct
        if not now.commands:
            return
        cs.counters.commands += now.commands
        cs.saved.latched.latches += now.latched
        cs.parked, place.address = None, now.address & (1 << place.window.space.bits) - 1
        header, last = now.last_header, now.last
        self._show(cs, place, last, header)

    def _show(self, cs: WalkingStreamer, place: FetchPointer, at: int, header: int) -> None:
        """Makes a command the one being executed."""
        cs.status.at(at, header)
        layout, _, _ = understood(header, cs.generation.number, cs.engine)
        assert layout is not None
        cs._executing = place.start, at, place.level, layout, [header]

    def _latch(self, cs: WalkingStreamer, place: FetchPointer) -> bool:
        """Latches state commands that were read ahead, in a space whose memory compiled code does not find."""
        window, latched = place.window, cs.saved.latched
        host, count = window.host(place.address)
        done = latched.run(host, count, WALK_AT_ONCE)
        if not done:
            return False
        consumed, last = latched.consumed()
        cs.counters.commands += done
        cs.parked, at = None, place.address + 4 * last
        place.advance(consumed)
        self._show(cs, place, at, window.first(at) or 0)
        following = window.ahead(place.address)
        return done == WALK_AT_ONCE or following is None or latched.may_latch(following)

    def _go_on(self, cs: WalkingStreamer, place: FetchPointer, faulted: bool) -> None:
        """Completes the last command, of which a part was done."""
        now = self.struct
        layout, length, _ = understood(now.last_header, cs.generation.number, cs.engine)
        assert layout is not None
        dwords = place.window.dwords(now.last, length)
        cs._executing = place.start, now.last, place.level, layout, dwords
        actor = self._entered[cs.saved.latched.table.acting.index(layout.name) + 1]
        try:
            actor.go_on(cs, record(layout, dwords), self.fault if faulted else None)
        except SoftgenError as error:
            cs._failed(error)
