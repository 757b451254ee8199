"""URB since Gen8: whether the regions that stages ask for keep the manual's rules.

Entries in flight are not counted (DESIGN 12.1); what software must not ask for is reported.

Reads   3DSTATE_URB_VS 3DSTATE_URB_HS 3DSTATE_URB_DS 3DSTATE_URB_GS 3DSTATE_PUSH_CONSTANT_ALLOC_VS 3DSTATE_PUSH_CONSTANT_ALLOC_HS
        3DSTATE_PUSH_CONSTANT_ALLOC_DS 3DSTATE_PUSH_CONSTANT_ALLOC_GS 3DSTATE_PUSH_CONSTANT_ALLOC_PS
Writes  warnings
"""

from __future__ import annotations

from collections.abc import Iterator

from softgen.bits.record import Record
from softgen.three_d.state.state import DrawState

STAGES = ("VS", "HS", "DS", "GS")
SMALL = 9  # units of 512 bits: counts of smaller entries are multiples of GROUP (BDW 11476-11478)
GROUP = 8
LARGEST = {"VS": 10, "DS": 10}  # units of an entry; other stages use all 9 bits of the field (BDW 11450, 11794)
CONSTANT_KIB = 32  # that push constants of a pipe may occupy (BDW 7841-7845, ICL 3266-3280)
START_KIB = 8  # of a start address


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
    _check_constants(state, regions)


def _complaints(region: Record, limits: tuple[int, ...], largest: int | None) -> Iterator[str]:
    entries, size = int(region.number_of_urb_entries), int(region.urb_entry_allocation_size) + 1
    if size < SMALL and entries % GROUP:
        yield f"number_of_urb_entries {entries}; entries of fewer than {SMALL} units come in multiples of {GROUP}"
    if limits and not limits[0] <= entries <= limits[1]:
        yield f"number_of_urb_entries {entries}; it must be from {limits[0]} to {limits[1]}"
    if limits and largest and size > largest:
        yield f"urb_entry_allocation_size {size} units; there must be at most {largest}"


def _check_constants(state: DrawState, regions: dict[str, Record]) -> None:
    """Push constants are in front of all regions (BDW 11378-11383)."""
    starts = {stage: START_KIB * int(region.urb_starting_address) for stage, region in regions.items() if region.number_of_urb_entries}
    for stage in (*STAGES, "PS"):
        name = f"3DSTATE_PUSH_CONSTANT_ALLOC_{stage}"
        given = state.get(name)
        if given is None or not given.constant_buffer_size:
            continue
        end = int(given.constant_buffer_offset) + int(given.constant_buffer_size)
        if end > CONSTANT_KIB:
            state.warn(f"{name}: offset and size reach {end} KiB; push constants have {CONSTANT_KIB}")
        end += state.unnoted.constant_start
        for other, start in starts.items():
            if end > start:
                state.warn(f"{name}: up to {end} KiB; the entries of {other} begin at {start} KiB")
