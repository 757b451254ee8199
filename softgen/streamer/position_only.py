"""The position-only streamer (POCS): it walks the ring of a context beside the render engine's, and executes only what is marked for it.

Reads   MI_BATCH_BUFFER_START MI_BATCH_BUFFER_END MI_CONDITIONAL_BATCH_BUFFER_END
Writes  what the commands of batches with POSH Start do

A batch is skipped, traversed (POSH Enable: read for batch starts alone) or executed (POSH Start), ICL 439-600. In the ring only batch
starts that have one of the bits count.
"""

from __future__ import annotations

import tomllib
from functools import cache

from softgen.bits.catalogue import catalogue
from softgen.bits.generation import SPEC
from softgen.bits.record import Record
from softgen.errors import DecodeError, SoftgenError
from softgen.streamer.execute import Streamer, flag
from softgen.streamer.parser import Command, FetchPointer

ENGINE = "position_only"
SKIPPED, TRAVERSED, EXECUTED = range(3)
MEDIA = 2  # command subtype of GPGPU and media


@cache
def forbidden() -> frozenset[str]:
    """Commands that no batch with POSH Start may hold."""
    text = (SPEC / "streamer" / "position_only.toml").read_text("utf-8")
    return frozenset(tomllib.loads(text)["forbidden"])


class NoSimpleCommands:
    """A table of simple commands (command_kinds.py) without any: this streamer looks at each."""

    def __getitem__(self, header: int) -> None:
        return None


class PositionOnlyStreamer(Streamer):
    """POCS at work on a context's ring."""

    render: Streamer | None = None  # the render engine's, in the same context

    def walk_ring(self, start: int, head: int, tail: int, size: int) -> None:
        """Starts in the ring, whose commands are those of the render engine."""
        self.simple_commands = NoSimpleCommands()  # type: ignore[assignment]
        self.parsed_for = "render"
        self.start_ring(start, head, tail, size)

    @property
    def in_batch(self) -> bool:
        """Whether it is in the middle of a batch that it executes."""
        return self.place is not None and self.place.traversal == EXECUTED

    def _time_is_up(self, place: FetchPointer) -> SoftgenError:
        error = super()._time_is_up(place)
        placed = SoftgenError(f"{ENGINE}: {error}")  # which of the two streamers of the context
        placed.position = error.position
        return placed

    def _walk_ahead(self, place: FetchPointer) -> bool:
        return False

    def _fresh_batch(self) -> FetchPointer | None:
        return None

    def _leaves_out(self, place: FetchPointer, command: Command) -> bool:
        return False

    def _step(self, place: FetchPointer, command: Command) -> None:
        self.status.at(command.address, command.dwords[0])
        match command.name:
            case "MI_BATCH_BUFFER_END":
                self.place = self._return()
            case "MI_BATCH_BUFFER_START":
                self._executing = command
                self.place = self._follow(place, command)
            case "MI_CONDITIONAL_BATCH_BUFFER_END" if place.traversal:
                self._execute(command)
            case _ if place.traversal == EXECUTED:
                self._obey(command)

    def _follow(self, place: FetchPointer, command: Command) -> FetchPointer:
        """Where a batch start leads: nowhere, if nothing there is for this streamer."""
        mode = self._mode(place, command.record)
        called = self._call(place, command) if mode != SKIPPED else place
        if called is not place:
            called.traversal = mode
        return called

    def _mode(self, place: FetchPointer, start: Record) -> int:
        """POSH Start is inherited by every batch that is called or chained to; POSH Enable by those at the same level alone; Start comes
        before Enable (ICL 446-464, 565-589)."""
        if place.traversal == EXECUTED or flag(start, "posh_start"):
            return EXECUTED
        chained = place.level > 0 and not (start.second_level_batch_buffer and place.level < self.generation.batch_levels)
        return TRAVERSED if flag(start, "posh_enable") or chained and place.traversal == TRAVERSED else SKIPPED

    def _obey(self, command: Command) -> None:
        assert command.layout is not None and command.name is not None
        self._executing = command
        header = command.dwords[0]
        if command.name in forbidden() or header >> 29 == 3 and header >> 27 & 3 == MEDIA:
            raise self._placed(DecodeError(f"{command.name} is not for the position-only streamer (ICL 479-495, 631-640)"), command)
        if catalogue().find_command(header, self.generation.number, ENGINE) is not None:  # others are read as MI_NOOP
            self._execute(command)
