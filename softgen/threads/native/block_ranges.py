"""Block ranges: the parts of a thread block that are initialised again before the next thread starts in it.

In:  a payload's length and what the thread's code reads. Out: BlockRange for scheduler.c.
"""

from __future__ import annotations

import ctypes
from functools import cache
from itertools import pairwise

from softgen.bits.units import GRF_BYTES, GRF_COUNT
from softgen.eu.thread import block
from softgen.eu.thread.block import ControlBlock
from softgen.threads.native.scheduler import BlockRange
from softgen.threads.native.templates import LINE
from softgen.threads.world import undefined_bytes

# What a thread may have changed, as ranges of its block from one register up to another, and whether a thread starts with zeros there.
GRF_END, END = "mrf", ""
RANGES = (("acc", "sr", True), ("sr", "n", False), ("ip", "tdr", True), ("control", END, False))  # n is cleared with the group
RARE = (("mrf", "acc", True), ("tdr", "control", True))  # message registers, stacks and the like
STACK_POINTER = ("sp", "fc", True)  # what threads may have changed of them where no stack is in use (ICL 3003-3006)


@cache
def block_ranges(registers: int, flow: str, needs: tuple[tuple[int, int], ...] | None, copies_payload: bool,
                 fill: int = 0) -> ctypes.Array[BlockRange]:  # fmt: skip
    """The ranges for threads with a payload of so many registers. `flow`: the generation's; `needs`: live-in bytes of the code, or None;
    `fill`: what undefined bytes hold."""
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
    if not copies_payload or fill:  # what follows a written payload in its last line is zero
        end = registers * GRF_BYTES
        copied_part = [(0, end, False)] if copies_payload else []
        spans = [*copied_part, (end, payload - end, True), *(span for span in spans if span[0])]
    parts = [part for span in spans for part in _valued(*span, fill)]
    return (BlockRange * len(parts))(*[BlockRange(*part) for part in parts])


def _valued(start: int, size: int, plain: bool, fill: int) -> list[tuple[int, int, bool, int]]:
    """A range, divided where what is undefined begins and ends."""
    if not plain or not fill:
        return [(start, size, plain, 0)]
    undefined = undefined_bytes()
    edges = sorted({start, start + size, *(edge for span in undefined for edge in span if start < edge < start + size)})
    return [(at, end - at, True, fill if any(first <= at < last for first, last in undefined) else 0) for at, end in pairwise(edges)]
