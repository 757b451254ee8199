"""The parser: rings and batches as the streamer walks them.

Reads   MI_BATCH_BUFFER_START MI_BATCH_BUFFER_END
Writes  one Command per command met, in order, and a Remark where the road ends otherwise than a batch should

A ring calls a batch; a batch may chain to another (the first is forgotten) or call a second-level batch, which comes back
(BDW-era public facts; ICL 520-560). Nothing here executes: a conditional end is taken as not ending, a predicated start as taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from softgen.bits.catalogue import catalogue
from softgen.bits.generation import Generation
from softgen.bits.layout import Layout, guess_length
from softgen.bits.record import Record
from softgen.memory.space import Space
from softgen.streamer.window import Window

MOST_COMMANDS = 500_000  # of one submission; a real one has thousands
MOST_AGAIN = 50_000  # of one submission, at addresses where it has been: batches that call each other over and over
MOST_ZEROS = 1 << 16  # zero dwords in a row, after which the rest is taken to be unwritten memory
SHORT = 16  # dwords of a command whose record is kept
TRIAL = 4096  # commands read to see whether something is a batch
MOST_UNKNOWN = 8  # in a row, after which the rest is taken to be no batch


@lru_cache(1 << 12)
def _record(layout: Layout, dwords: tuple[int, ...]) -> Record:
    """The record of a short command: the same dwords come again and again."""
    return layout.raw(dwords)


@dataclass(slots=True)
class Command:
    batch: int  # where the batch (or ring) that holds it began
    address: int
    level: int  # 0 ring, 1 batch, 2 second-level batch
    layout: Layout | None
    dwords: list[int]  # as they stand in memory; fewer than the length says when memory ends
    problems: tuple[str, ...] = ()
    _record: Record | None = field(default=None, compare=False, repr=False)

    @property
    def name(self) -> str | None:
        return self.layout.name if self.layout else None

    @property
    def record(self) -> Record:
        if self._record is None:
            assert self.layout is not None
            self._record = record(self.layout, self.dwords)
        return self._record


def record(layout: Layout, dwords: list[int]) -> Record:
    """The record of a command."""
    return _record(layout, tuple(dwords)) if len(dwords) <= SHORT else layout.raw(dwords)


@dataclass(frozen=True, slots=True)
class Remark:
    """Something about the road, not about a command. `kind` is one of unmapped, loop, gpu_written, limit, no_batch."""

    batch: int
    address: int
    kind: str
    text: str


@dataclass
class FetchPointer:
    """Where the streamer reads: a batch in a space, or a ring that wraps."""

    window: Window
    start: int
    address: int
    level: int
    end: int | None = None  # rings: where the tail is
    wrap: tuple[int, int] | None = None  # rings: (start, end) of the buffer
    unknown: int = 0  # unknown commands in a row
    zeros: int = 0  # zero dwords in a row
    privileged: bool = True  # may it do what only the kernel driver may?
    traversal: int = 0  # what the position-only streamer does with it (position_only.py)

    def done(self) -> bool:
        return self.end is not None and self.address == self.end

    def peek(self, count: int) -> list[int]:
        if self.wrap is None:
            return self.window.dwords(self.address, count)
        if self.end is not None:  # nothing past the tail belongs to the ring's commands
            count = min(count, (self.end - self.address) % (self.wrap[1] - self.wrap[0]) // 4)
        room = (self.wrap[1] - self.address) // 4
        dwords = self.window.dwords(self.address, min(count, room))
        return dwords + self.window.dwords(self.wrap[0], count - room) if count > room else dwords

    def header(self) -> int | None:
        """The next dword, if there is one."""
        return self.window.first(self.address) if self.wrap is None else next(iter(self.peek(1)), None)

    def advance(self, count: int) -> None:
        self.address += 4 * count
        if self.wrap is None:
            self.address &= (1 << self.window.space.bits) - 1
        elif self.address >= self.wrap[1]:
            self.address -= self.wrap[1] - self.wrap[0]


@lru_cache(1 << 12)
def understood(header: int, gen: float, engine: str) -> tuple[Layout | None, int, tuple[str, ...]]:
    """Parse a header dword: the command, how many dwords it has, and what is wrong with that."""
    layout = catalogue().find_command(header, gen, engine)
    if layout is None:
        return None, guess_length(header) or 1, ()
    length = layout.length(header)
    if length >= layout.dwords and (layout.maximum is None or length <= layout.maximum):
        return layout, length, ()
    upper = "" if layout.maximum == layout.dwords else f" to {layout.maximum}" if layout.maximum else " or more"
    return layout, length, (f"its length says {length} dwords, not {layout.dwords}{upper}",)


Stale = Callable[[Space, int], str]


class CommandParser:
    """Walks one submission. `stale(space, address)` says why memory there may not hold what the GPU would have put there."""

    def __init__(self, generation: Generation, engine: str, space: Space, global_space: Space | None = None,
                 stale: Stale | None = None) -> None:  # fmt: skip
        self.generation, self.engine, self.space = generation, engine, space
        self.parsed_for = engine  # whose commands a ring and its batches hold
        self.global_space = global_space or space
        self.address_mask = (1 << space.bits) - 1
        self.stale = stale or (lambda space, address: "")
        self.catalogue = catalogue()
        self.seen: set[tuple[int, ...]] = set()
        self.stack: list[FetchPointer] = []
        self.left, self.again = MOST_COMMANDS, MOST_AGAIN
        self.walked: set[int] = set()  # addresses of commands

    def batch(self, address: int) -> Iterator[Command | Remark]:
        yield from self._walk(FetchPointer(Window(self.space), address, address, 1))

    def ring(self, start: int, head: int, tail: int, size: int) -> Iterator[Command | Remark]:
        place = FetchPointer(Window(self.global_space), start, start + head, 0, start + tail, (start, start + size))
        yield from self._walk(place)

    def _walk(self, place: FetchPointer | None) -> Iterator[Command | Remark]:
        while place is not None and not place.done():
            self.left -= 1
            self.again -= place.address in self.walked
            if self.left < 0 or self.again < 0:
                many = f"{MOST_COMMANDS} commands" if self.left < 0 else f"{MOST_AGAIN} commands that were met before"
                yield Remark(place.start, place.address, "limit", f"stopped after {many}")
                return
            self.walked.add(place.address)
            command = self._command(place, place.header())
            if isinstance(command, Remark):
                yield command
                return
            yield command
            if command.layout is None:
                place.unknown += 1
                if guess_length(command.dwords[0]) is None or place.unknown >= MOST_UNKNOWN:
                    yield Remark(place.start, place.address, "no_batch", "what follows cannot be read as commands")
                    return
            else:
                place.unknown = 0
            place.advance(len(command.dwords))
            place.zeros = 0 if command.dwords[0] else place.zeros + 1
            if place.zeros == MOST_ZEROS:
                yield Remark(place.start, place.address, "limit", f"stopped after {MOST_ZEROS} zero dwords in a row: unwritten memory")
                return
            match command.name:
                case "MI_BATCH_BUFFER_END":
                    place = self._return()
                case "MI_BATCH_BUFFER_START":
                    remark, place = self._jump(place, command)
                    if remark:
                        yield remark

    def _command(self, place: FetchPointer, header: int | None) -> Command | Remark:
        """The command at a place, which starts with this dword, or why there is none."""
        if header is None:
            what = "the batch" if place.level else "the ring"
            return Remark(place.start, place.address, "unmapped", f"{what} leaves mapped memory at {place.address:#x} without an end")
        layout, length, problems = understood(header, self.generation.number, self.parsed_for)
        dwords = place.peek(length)
        if layout is not None and len(dwords) < length:
            short = f"its length says {length} dwords, {'memory' if place.end is None else 'the ring'} ends after {len(dwords)}"
            problems = (short, *problems)
        return Command(place.start, place.address, place.level, layout, dwords, problems)

    def _jump(self, place: FetchPointer, command: Command) -> tuple[Remark | None, FetchPointer | None]:
        """The target of MI_BATCH_BUFFER_START, and its problems."""
        start = command.record
        target = start.batch_buffer_start_address & (1 << self.space.bits) - 1
        space = self._space_of(start, target)
        level = self._enter(place, start)
        road = (command.address, target, *(p.address for p in self.stack))
        if road in self.seen:
            return self._remark(command, "loop", f"jumps back to {target:#x}, where it has been; not followed again"), self._return()
        self.seen.add(road)
        why = self.stale(space, target)
        if why and not self._reads(space, target):
            return self._remark(command, "gpu_written", f"jumps to {target:#x}, {why}; what stands there is no batch"), self._return()
        remark = self._remark(command, "gpu_written", f"jumps to {target:#x}, {why}; shown as it stands") if why else None
        return remark, FetchPointer(Window(space), target, target, level)

    def _enter(self, place: FetchPointer, start: Record) -> int:
        """The level a batch runs at. From a ring, or to the second level, the streamer comes back; otherwise it does not."""
        second = "second_level_batch_buffer" in start._fields and start.second_level_batch_buffer
        if place.level == 0 or second and place.level < self.generation.batch_levels:
            self.stack.append(place)
            return place.level + 1
        return place.level

    def _return(self) -> FetchPointer | None:
        return self.stack.pop() if self.stack else None

    def _remark(self, command: Command, kind: str, text: str) -> Remark:
        return Remark(command.batch, command.address, kind, text)

    def _space_of(self, start: Record, target: int) -> Space:
        """A batch is in the context's space or, where the command says so, in the global one."""
        says_global = "address_space_indicator" in start._fields and start.address_space_indicator == 0
        return self.global_space if says_global and not self.space.extent(target, 4) else self.space

    def _reads(self, space: Space, target: int) -> bool:
        """Whether there is a valid batch at an address, from its first command to its end."""
        trial = CommandParser(self.generation, self.engine, space, self.global_space)
        trial.left = TRIAL
        last: Command | Remark | None = None
        for last in trial.batch(target):
            if isinstance(last, Remark) or last.layout is None or last.problems:
                return False
        return True
