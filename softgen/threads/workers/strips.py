"""The order of threads across groups: in a strip, the same thread of neighbouring groups one after another, then the next thread of each.

Where each thread of a group has rows of an image to itself, the next thread's memory is a row away, while processors prefetch what follows
in the same row. In a strip of groups that are neighbours in X, thread 0 of each group runs, then thread 1 of each: a row goes on from group
to group. No program may rely on the order of threads: only the start of groups has one (BDW 21416-21434). Where engines are compared there
are no strips.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from softgen.bits.units import GRF_BYTES
from softgen.threads.dispatch import ThreadDispatch
from softgen.threads.payload import TemplatePayload
from softgen.threads.workers.affine import own_data
from softgen.threads.workers.shared import SharedDispatch

LENGTHS = (32, 16, 8, 4, 2)  # groups of a strip
BATCHES = 64  # of threads, for each worker, so that all end at about the same time


def strip_length(shared: SharedDispatch, workers: int) -> int:
    """How many groups a strip of a dispatch should have; 0 where groups are better run one by one. A kernel with loops has an order of its
    own, in which threads of a group often share what is in the cache; so has one with exceptions enabled (cr0.1)."""
    dispatch = shared.dispatch
    if any(dispatch.control[1:]) or not _in_rows(dispatch) or not (found := _longest(dispatch, workers)):
        return 0
    return found if shared.independent() and not shared.program.loops else 0


def _in_rows(dispatch: ThreadDispatch) -> bool:
    """Whether threads of a group differ, but not in X: compilers let local IDs in X come first in each thread's own data."""
    payload = dispatch.payload
    if not isinstance(payload, TemplatePayload) or dispatch.threads < 2 or not dispatch.full:
        return False
    start, size = differing(dispatch)
    return bool(size) and start >= payload.own_offset + GRF_BYTES


def _longest(dispatch: ThreadDispatch, workers: int) -> int:
    """The longest strip by which the first axis can be divided; 0 where there is none."""
    if dispatch.patch is None or not dispatch.patch.counters:
        return 0
    across, most = dispatch.patch.counters[0].count, dispatch.groups * dispatch.threads // (BATCHES * workers)
    return next((length for length in LENGTHS if length <= most and across % length == 0), 0)


def differing(dispatch: ThreadDispatch) -> tuple[int, int]:
    """In which bytes of their TemplatePayload threads of a group differ, in whole registers: the first, and how many."""
    payload = dispatch.payload
    assert isinstance(payload, TemplatePayload)
    start, size = _differing(own_data(dispatch), payload.own)
    return payload.own_offset + start, size


@lru_cache(256)
def _differing(data: bytes, own: int) -> tuple[int, int]:
    if not own or own % GRF_BYTES:
        return 0, own
    registers = np.frombuffer(data, np.uint8).reshape(-1, own // GRF_BYTES, GRF_BYTES)
    (differ,) = (registers != registers[0]).any(axis=(0, 2)).nonzero()
    return (int(differ[0]) * GRF_BYTES, int(differ[-1] - differ[0] + 1) * GRF_BYTES) if len(differ) else (0, 0)
