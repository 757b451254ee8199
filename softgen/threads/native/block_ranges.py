"""Block ranges: the parts of a thread block that are initialised again before the next thread starts in it.

In:  a payload's length and what the thread's code reads. Out: BlockRange for scheduler.c.
"""

from __future__ import annotations

import ctypes
from functools import cache

from softgen.bits.units import GRF_BYTES, GRF_COUNT
from softgen.eu.thread import block
from softgen.eu.thread.block import ControlBlock
from softgen.threads.native.scheduler import BlockRange
from softgen.threads.native.templates import LINE

# What a thread may have changed, as ranges of its block from one register up to another, and whether a thread starts with zeros there.
GRF_END, END = "mrf", ""
RANGES = (("acc", "sr", True), ("sr", "n", False), ("ip", "tdr", True), ("control", END, False))  # n is cleared with the group
RARE = (("mrf", "acc", True), ("tdr", "control", True))  # message registers, stacks and the like
STACK_POINTER = ("sp", "fc", True)  # what threads may have changed of them where no stack is in use (ICL 3003-3006)


@cache
def block_ranges(registers: int, flow: str, needs: tuple[tuple[int, int], ...] | None, copies_payload: bool) -> ctypes.Array[BlockRange]:
    """The ranges for threads with a payload of so many registers. `flow`: the generation's; `needs`: live-in bytes of the code, or None."""
    assert registers <= GRF_COUNT
    payload = -(-registers * GRF_BYTES // LINE) * LINE
    at = {**block.BLOCK_OFFSETS, END: block.BLOCK_OFFSETS["control"] + ctypes.sizeof(ControlBlock)}
    spans = [(at[first], at[last] - at[first], zero) for first, last, zero in RANGES + RARE]
    spans += [(0, payload, False), (payload, at[GRF_END] - payload, True)]
    if needs is not None:
        copied = [(start, start + size) for start, size, zero in spans if not zero]
        after = [(max(start, payload), start + size) for start, size in needs if start + size > payload]
        zeros = [need for need in after if not any(start <= need[0] < end for start, end in copied)]  # sr and cr are not
        spans = [*(span for span in spans if not span[2]), *((start, end - start, True) for start, end in zeros)]
    elif flow == "channel":  # no message registers, and no stack in use
        first, last, zero = STACK_POINTER
        spans = [span for span in spans if span[0] not in (at[rare] for rare, *_ in RARE)] + [(at[first], at[last] - at[first], zero)]
    if not copies_payload:  # what follows a written payload in its last line is zero
        end = registers * GRF_BYTES
        spans = [(end, payload - end, True) if not span[0] else span for span in spans]
    return (BlockRange * len(spans))(*[BlockRange(*span) for span in spans])
