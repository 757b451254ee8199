"""Decoding a trace: its submissions in order, their commands, and what those point to."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from softgen.errors import SoftgenError
from softgen.inspect.decode.indirect_state import Found, IndirectState, IndirectStateDecoder
from softgen.inspect.decode.video_slices import VideoSlice, VideoSlices
from softgen.memory.space import Space
from softgen.streamer.latch import LatchedState
from softgen.streamer.latch_rules import latch_table
from softgen.streamer.parser import Command, CommandParser, Remark
from softgen.trace.work import Work, WorkTrace

LONGEST_WAIT = 4096
MOST_FOUND = 4096  # structures, kernels and data behind one command; real commands lead to dozens
MOST_FOUND_IN_ALL = 100_000  # behind the commands of one submission; real ones lead to thousands


@dataclass(frozen=True, slots=True)
class Item:
    """A command, remark or pointed-to state, with its submission."""

    work: Work
    what: Command | Remark | Found | VideoSlice


class Decoder:
    def __init__(self, trace: WorkTrace) -> None:
        self.trace = trace
        self.generation = trace.device.generation
        self.contexts: dict[tuple[int, str], LatchedState] = {}
        self.targets: dict[int, str] = {}  # start of a mapped region -> who may have written it
        self.seen: set[tuple[int, int]] = set()  # surfaces already looked at
        self.regions: dict[Space, list[int]] = {}  # where those of a space begin, while memory stands still
        self.slices = VideoSlices(self.generation.number)  # of this submission
        self.left = 0  # things that may still be found in this submission

    def work(self) -> Iterator[tuple[Work, Iterator[Item]]]:
        for work in self.trace.work():
            yield work, self.items(work)

    def items(self, work: Work) -> Iterator[Item]:
        parser = CommandParser(self.generation, work.engine, work.space, work.global_space, self._stale)
        road = parser.ring(work.batch, work.head, work.tail, work.size) if work.kind == "ring" else parser.batch(work.batch)
        context = self._context(work)
        self.seen.clear()
        self.regions.clear()
        follower = IndirectStateDecoder(self.generation, work.engine, work.space)
        self.left, self.slices = MOST_FOUND_IN_ALL, VideoSlices(self.generation.number)
        waiting: list[Command | Remark] = []
        for met in road:
            if isinstance(met, Command) and met.name == "HUC_VIRTUAL_ADDR_STATE":
                self._huc(work, met)
            waiting.append(met)
            if isinstance(met, Remark) or starts(met) or len(waiting) >= LONGEST_WAIT:
                yield from self._release(work, waiting, follower, context)
                waiting = []
        yield from self._release(work, waiting, follower, context)

    def _context(self, work: Work) -> LatchedState:
        """The state of the work's hardware context."""
        key = work.context, work.engine
        if key not in self.contexts:
            self.contexts[key] = LatchedState(latch_table(self.generation.number, work.engine))
        return self.contexts[key]

    def _release(self, work: Work, waiting: list[Command | Remark], follower: IndirectStateDecoder,
                 context: LatchedState) -> Iterator[Item]:  # fmt: skip
        """Commands up to a draw, each followed by what it points to, with counts as they stand when the draw starts."""
        ahead = context.copy()
        for met in waiting:
            if isinstance(met, Command):
                ahead.note(met)
        for met in waiting:
            yield Item(work, met)
            if isinstance(met, Command):
                context.note(met)
                if (slice := self.slices.met(met, context)) is not None:
                    yield Item(work, slice)
                ahead.bases = context.bases
                yield from (Item(work, found) for found in self._follow(work, met, follower, ahead))

    def _follow(self, work: Work, command: Command, follower: IndirectStateDecoder, ahead: LatchedState) -> Iterator[Found | Remark]:
        """The state a command points to, up to a limit: tables that point into each other would otherwise take very long."""
        for number, found in enumerate(follower.follow(command, ahead) if self.left >= 0 else ()):
            self.left -= 1
            if number == MOST_FOUND or self.left < 0:
                origin = command.name if self.left >= 0 else "this submission"
                most = MOST_FOUND if self.left >= 0 else MOST_FOUND_IN_ALL
                yield Remark(command.batch, command.address, "limit",
                             f"{origin} leads to more than {most} structures; the rest is left out")  # fmt: skip
                return
            self._remember(work, found)
            yield found

    # -- memory the GPU was to write ---------------------------------------------------------------------------------

    def _remember(self, work: Work, found: Found) -> None:
        if isinstance(found, IndirectState) and found.layout.name == "RENDER_SURFACE_STATE":
            base = found.layout.raw(found.dwords).surface_base_address
            if (work.sequence, base) in self.seen:
                return
            self.seen.add((work.sequence, base))
            start = self._region(work.space, base)
            if start is not None:
                self.targets.setdefault(start, f"memory that kernels of {work.label} may have been about to fill")

    def _huc(self, work: Work, command: Command) -> None:
        """HuC's firmware writes batches that the same submission goes on to call; its regions are noted before the call is met."""
        for region in command.record.huc_virtual_address_region:
            start = self._region(work.space, region.address) if region.address else None
            if start is not None:
                self.targets.setdefault(start, f"memory that HuC in {work.label} may have been about to fill")

    def _stale(self, space: Space, address: int) -> str:
        start = self._region(space, address)
        return self.targets.get(start, "") if start is not None else ""

    def _region(self, space: Space, address: int) -> int | None:
        """The start of the mapped region around an address. Regions are listed once per space: large page tables take a second."""
        if not space.extent(address, 1):
            return None
        if space not in self.regions:
            self.regions[space] = _listed(space)
        starts = self.regions[space]
        at = bisect_right(starts, address)
        return starts[at - 1] if at else None


def starts(command: Command) -> bool:
    """Whether a command starts work, or ends a batch.

    A pointer's count is often set by a later command of the same draw, so commands wait until the draw that uses them is seen.
    """
    effect = command.layout.effect if command.layout else None
    return effect is not None and effect.kind == "starts" or command.name == "MI_BATCH_BUFFER_END"


def _listed(space: Space) -> list[int]:
    """Starts of the mapped regions of a space."""
    try:
        return [region.start for region in space.regions()]
    except SoftgenError:
        return []  # page tables too large to list
