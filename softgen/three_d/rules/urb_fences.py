"""URB of Gen4 and Gen4.5: whether the entries that stages ask for fit between the fences, and other rules about their numbers.

Entries in flight are not counted (DESIGN 12.1); what software must not ask for is reported.

Reads   URB_FENCE 3DSTATE_PIPELINED_POINTERS VS_STATE GS_STATE CLIP_STATE SF_STATE
Writes  warnings
"""

from __future__ import annotations

from softgen.bits.generation import Generation, most_of
from softgen.bits.record import Record
from softgen.three_d.state.state import DrawState
from softgen.three_d.state.unit_state import unit_state

STAGES = ("VS", "GS", "CLIP", "SF")  # in the order of their regions
THREAD_LIMITS = {"VS": "vertex_threads", "GS": "geometry_threads", "CLIP": "clip_threads", "SF": "setup_threads"}  # of devices
MOST_SETUP_ENTRIES = 64  # G45 5653


def check_entries(state: DrawState) -> None:
    """Warn of stages whose entries do not fit, or are too few or too many (G45 1356-1381)."""
    fences = state.get("URB_FENCE")
    if not state.generation.unit_state or fences is None:
        return
    pointers, start = state.command("3DSTATE_PIPELINED_POINTERS"), 0
    for stage in STAGES:
        end = int(getattr(fences, f"{stage.lower()}_fence"))
        if getattr(pointers, f"{stage.lower()}_enable", 1):
            for text in _complaints(state.generation, stage, unit_state(state, stage), end - start):
                state.warn(f"{stage}_STATE: {text}")
        start = end


class FencedEntries:
    """Numbers and sizes of the entries of a context's stages, as they were when URB_FENCE last came."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[int, int]] = {}
        self._marks = b""

    def check(self, state: DrawState) -> None:
        """Warn of a stage whose entries changed without a URB_FENCE since (G45 1381, 2894, 2905)."""
        if not state.generation.unit_state or state.get("URB_FENCE") is None:
            return
        if not self._marks or "URB_FENCE" in state.changed(self._marks):
            self._held = {}
        pointers = state.command("3DSTATE_PIPELINED_POINTERS")
        for stage in STAGES:
            if getattr(pointers, f"{stage.lower()}_enable", 1):
                unit = unit_state(state, stage)
                now = int(unit.number_of_urb_entries), int(unit.urb_entry_allocation_size) + 1
                before = self._held.setdefault(stage, now)
                if now != before:
                    state.warn(f"{stage}_STATE: {now[0]} entries of {now[1]} rows, {before[0]} of {before[1]} at the last draw, and no "
                               "URB_FENCE since")  # fmt: skip
        self._marks = state.marks


def _complaints(generation: Generation, stage: str, unit: Record, rows: int) -> list[str]:
    """What is wrong with a stage's entries; `rows` of 512 bits are between its fence and the one before."""
    entries, size = int(unit.number_of_urb_entries), int(unit.urb_entry_allocation_size) + 1
    threads, most, found = int(unit.maximum_number_of_threads) + 1, most_of(generation, THREAD_LIMITS[stage]), []
    if not entries:
        found.append("number_of_urb_entries is 0; the stage needs entries")
    if entries * size > rows:
        found.append(f"{entries} entries of {size} rows do not fit into the {max(rows, 0)} rows before its fence")
    if threads > most:
        found.append(f"maximum_number_of_threads {threads}; the stage may have {most}")
    if stage == "VS" and entries and entries not in generation.vertex_urb_entries:
        found.append(f"number_of_urb_entries {entries}; it must be one of {', '.join(map(str, generation.vertex_urb_entries))}")
    if stage in ("GS", "CLIP") and threads == most and entries % 2:
        found.append(f"number_of_urb_entries {entries}; two threads need an even number")
    if stage == "SF" and entries > MOST_SETUP_ENTRIES:
        found.append(f"number_of_urb_entries {entries}; there may be {MOST_SETUP_ENTRIES}")
    return found
