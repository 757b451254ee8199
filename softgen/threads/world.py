"""Worlds: choices of what the manuals leave open, such as the order of thread groups and what registers hold that nothing has written.

    dispatcher = EngineDispatcher("t1", threads=1, world=World("fill 0xaa", "fill", fill=0xAA))

A correct program computes the same in every world (inspect/check compares them). What varies:
fill   general registers above the payload, accumulators, flags, local memory and scratch space: no state sets them (public Intel PRM,
       "Thread Payload"; shared local memory is not initialised, KBL 2479-2486)
order  the order of groups, and of threads within a group: only groups start in order, and nothing orders their work (BDW 21416-21434)
reserved  reserved bits of the header that compute threads start with, which are "undefined and unpredictable" (IVB 496-500)
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from softgen.bits import catalogue
from softgen.eu.thread.block import BLOCK_OFFSETS
from softgen.threads.dispatch import ThreadDispatch
from softgen.threads.payload import HeaderPatch, Payload, PayloadList, TemplatePayload, ThreadMasks

UNDEFINED = (("grf", "a"), ("f", "mask"))  # of a thread's block, from one register up to another
HEADER_BYTES = 32
BARRIER_BITS = 0xFF000000  # of r0.2
MOST_PARTS = 16  # pieces of a dispatch that are put into another order


@dataclass(frozen=True)
class World:
    """`fill`: each byte that nothing has written; `seed`: of the order of groups and threads, 0 for the usual one; `reserved`: each byte of
    the thread header, as far as its bits are reserved."""

    name: str = "plain"
    axis: str = ""
    fill: int = 0
    seed: int = 0
    reserved: int = 0

    def started(self, gen: float, dispatch: ThreadDispatch) -> ThreadDispatch:
        """A dispatch whose threads find something in the reserved bits of their headers."""
        payload = dispatch.payload
        if not self.reserved or dispatch.stage != "cs" or not isinstance(payload, TemplatePayload) or len(payload.header) < HEADER_BYTES:
            return dispatch
        bits = int.from_bytes(bytes([self.reserved]) * HEADER_BYTES, "little") & reserved_bits(gen)
        header = (int.from_bytes(payload.header[:HEADER_BYTES], "little") | bits).to_bytes(HEADER_BYTES, "little")
        return replace(dispatch, payload=replace(payload, header=header + payload.header[HEADER_BYTES:]), kind=None)

    def reordered(self, dispatch: ThreadDispatch) -> Iterator[ThreadDispatch]:
        """A dispatch in parts: pieces of its groups, one after another, with threads of groups in another order."""
        chance = random.Random(self.seed)
        if dispatch.threads > 1 and (own := _shuffled(dispatch, chance)) is not None:
            dispatch = own
        if dispatch.patch is None or dispatch.groups < 2:
            yield dispatch
            return
        parts = _pieces(dispatch.patch, chance)
        for patch in parts:
            yield replace(dispatch, patch=patch, groups=patch.groups, kind=None)


PLAIN = World()


@cache
def reserved_bits(gen: float) -> int:
    """The bits of a compute thread's header that no field has, apart from those that compilers copy into barrier messages; a number whose
    lowest bit is bit 0 of r0.0."""
    layout = catalogue.catalogue().get("GPGPU_THREAD_HEADER", gen)
    if layout is None:
        return 0
    found = (1 << 8 * HEADER_BYTES) - 1 & ~(BARRIER_BITS << 64)
    for field in layout.fields:
        for high, low in field.pieces:
            found &= ~((1 << high + 1) - (1 << low))
    return found


@cache
def undefined_bytes() -> tuple[tuple[int, int], ...]:
    """Bytes of a thread's block that no state sets when a thread starts, unless the payload has them: ranges."""
    return tuple((BLOCK_OFFSETS[first], BLOCK_OFFSETS[last]) for first, last in UNDEFINED)


def _pieces(patch: HeaderPatch, chance: random.Random) -> list[HeaderPatch]:
    """All groups of an odometer in pieces, in another order; within a piece another axis may be the fastest."""
    axes = list(patch.counters)
    longest = max(range(len(axes)), key=lambda axis: axes[axis].count)
    counter = axes[longest]
    count = min(MOST_PARTS, counter.count)
    inner = sorted(chance.sample(range(1, counter.count), count - 1))
    found = []
    for first, end in zip([0, *inner], [*inner, counter.count], strict=True):
        part = [replace(counter, start=counter.start + first, count=end - first) if axis == longest else other
                for axis, other in enumerate(axes)]  # fmt: skip
        chance.shuffle(part)
        found.append(HeaderPatch(tuple(part)))
    chance.shuffle(found)
    return found


def _shuffled(dispatch: ThreadDispatch, chance: random.Random) -> ThreadDispatch | None:
    """Copy of a dispatch with the threads of its groups in another order; None where a C function writes what they start with."""
    order = list(range(dispatch.threads))
    chance.shuffle(order)
    payload: Payload = dispatch.payload
    if isinstance(payload, TemplatePayload):
        common, own = payload.data[: payload.common], np.frombuffer(payload.data, np.uint8)[payload.common :]
        rows = own[: payload.own * len(order)].reshape(len(order), payload.own)
        payload = replace(payload, data=common + rows[order].tobytes())
    elif isinstance(payload, PayloadList):
        payload = replace(payload, payloads=tuple(payload.payloads[number] for number in order))
    else:
        return None
    masks = dispatch.masks
    if isinstance(masks, ThreadMasks):
        masks = ThreadMasks(tuple(masks.masks[number] for number in order))
    return replace(dispatch, payload=payload, masks=masks, kind=None)
