"""URB since Gen8: whether the regions that stages ask for keep the manual's rules.

Entries in flight are not counted (DESIGN 12.1); what software must not ask for is reported.

Reads   3DSTATE_URB_VS 3DSTATE_URB_HS 3DSTATE_URB_DS 3DSTATE_URB_GS 3DSTATE_PUSH_CONSTANT_ALLOC_VS 3DSTATE_PUSH_CONSTANT_ALLOC_HS
        3DSTATE_PUSH_CONSTANT_ALLOC_DS 3DSTATE_PUSH_CONSTANT_ALLOC_GS 3DSTATE_PUSH_CONSTANT_ALLOC_PS
Writes  warnings
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from softgen.bits.generation import most_of
from softgen.bits.record import Record
from softgen.three_d.state.state import DrawState

STAGES = ("VS", "HS", "DS", "GS")
SMALL = 9  # units of 512 bits: counts of smaller entries are multiples of GROUP (BDW 11476-11478)
GROUP = 8
LARGEST = {"VS": 10, "DS": 10}  # units of an entry; other stages use all 9 bits of the field (BDW 11450, 11794)
CONSTANT_KIB = 32  # that push constants of a pipe may occupy (BDW 7841-7845, ICL 3266-3280)
START_KIB = 8  # of a start address
UNIT, KIB = 64, 1024  # bytes; UNIT: of an entry's size


class UrbAllocation(NamedTuple):
    """Bytes of the URB that a command asks for."""

    start: int
    end: int
    command: str

    def __str__(self) -> str:
        return f"{self.start / KIB:g} to {self.end / KIB:g} KiB"


def check_regions(state: DrawState) -> None:
    """Warn of regions that break rules of the URB commands."""
    if not state.generation.urb_rules:
        return
    regions = {stage: found for stage in STAGES if (found := state.get(f"3DSTATE_URB_{stage}")) is not None}
    if missing := [f"3DSTATE_URB_{stage}" for stage in STAGES if regions and stage not in regions]:
        state.warn(f"{', '.join(missing)}: not set; the four URB commands must be given together")
    for stage, region in regions.items():
        first = 2 * STAGES.index(stage)
        for text in _complaints(region, state.generation.urb_entries[first : first + 2], LARGEST.get(stage)):
            state.warn(f"3DSTATE_URB_{stage}: {text}")
    entries, constants = [*stage_entries(state)], [*constant_spaces(state)]
    last = CONSTANT_KIB + state.unnoted.constant_start
    for text in (*_overlaps(constants), *beyond(constants, last, "push constants have"), *_in_front(constants, entries),
                 *_overlaps(entries), *beyond(entries, most_of(state.generation, "urb_kib"), "the URB has")):  # fmt: skip
        state.warn(text)


def _complaints(region: Record, limits: tuple[int, ...], largest: int | None) -> Iterator[str]:
    entries, size = int(region.number_of_urb_entries), int(region.urb_entry_allocation_size) + 1
    if size < SMALL and entries % GROUP:
        yield f"number_of_urb_entries {entries}; entries of fewer than {SMALL} units come in multiples of {GROUP}"
    if limits and not limits[0] <= entries <= limits[1]:
        yield f"number_of_urb_entries {entries}; it must be from {limits[0]} to {limits[1]}"
    if limits and largest and size > largest:
        yield f"urb_entry_allocation_size {size} units; there must be at most {largest}"


# -- places ------------------------------------------------------------------------------------------------------------


def stage_entries(state: DrawState) -> Iterator[UrbAllocation]:
    """Entries of each stage that has any: from its start address on, as many as there are of their size (ICL 3282-3286)."""
    for stage in STAGES:
        region = state.get(f"3DSTATE_URB_{stage}")
        if region is not None and region.number_of_urb_entries:
            yield entries_of(stage, region)


def entries_of(stage: str, region: Record) -> UrbAllocation:
    """The entries that a stage's URB command asks for."""
    start = START_KIB * KIB * int(region.urb_starting_address)
    size = int(region.number_of_urb_entries) * UNIT * (int(region.urb_entry_allocation_size) + 1)
    return UrbAllocation(start, start + size, f"3DSTATE_URB_{stage}")


def constant_spaces(state: DrawState) -> Iterator[UrbAllocation]:
    """Room for each stage's push constants."""
    for stage in (*STAGES, "PS"):
        name = f"3DSTATE_PUSH_CONSTANT_ALLOC_{stage}"
        given = state.get(name)
        if given is not None and given.constant_buffer_size:
            start = KIB * (int(given.constant_buffer_offset) + state.unnoted.constant_start)
            yield UrbAllocation(start, start + KIB * int(given.constant_buffer_size), name)


def _overlaps(found: list[UrbAllocation]) -> Iterator[str]:
    """Allocations lie apart (ICL 2687-2692, 3262-3264)."""
    for first, second in pairwise(sorted(found)):
        if second.start < first.end:
            yield f"{second.command}: {second}; {first.command} has {first}"


def beyond(found: list[UrbAllocation], limit: int, what: str) -> Iterator[str]:
    """Allocations that end behind so many KiB."""
    for allocation in found:
        if allocation.end > limit * KIB:
            yield f"{allocation.command}: {allocation}; {what} {limit}"


def _in_front(constants: list[UrbAllocation], entries: list[UrbAllocation]) -> Iterator[str]:
    """Push constants are in front of all regions (BDW 11378-11383)."""
    for constant in constants:
        for region in entries:
            if constant.end > region.start:
                yield f"{constant.command}: {constant}; {region.command} has {region}"
