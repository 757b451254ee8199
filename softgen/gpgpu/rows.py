"""How the lanes of a payload lie: local ids that count up or are all the same, in every thread of a group alike.

In:  a Plan. Out: Rows, which translated kernels may rely on (softgen.eu.engine).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from softgen.eu.engine import Row
from softgen.gpgpu.walker import REGISTER, Plan

WORD = 2  # bytes of an id
BOUNDS = (1023, 0xFFFF)  # few, so that groups of one size and another share their code
COUNTS = (REGISTER // WORD, REGISTER // WORD // 2)  # ids of a register: all of it, or half


def rows(plan: Plan) -> tuple[Row, ...]:
    """Of each thread's own registers. Payloads of the media pipeline have their own ways."""
    if plan.payloads is not None or not plan.own:
        return ()
    first = REGISTER * (1 if plan.own_first else 1 + plan.shared)
    start = plan.shared * REGISTER
    return _rows(bytes(plan.data[start : start + plan.own * plan.threads * REGISTER]), plan.own, first)


@lru_cache(1024)
def _rows(data: bytes, own: int, first: int) -> tuple[Row, ...]:
    words = np.frombuffer(data, np.uint16).reshape(-1, own, REGISTER // WORD)
    return tuple(_found(words, first))


def _found(words: npt.NDArray[np.uint16], first: int) -> Iterator[Row]:
    for number in range(words.shape[1]):
        held = words[:, number].astype(np.int32)
        steps = held[:, 1:] - held[:, :-1]
        for count in COUNTS:
            if (steps[:, : count - 1] == steps[0, 0]).all():
                highest = next(one for one in BOUNDS if held[:, :count].max() <= one)
                yield Row(first + number * REGISTER, WORD, count, int(steps[0, 0]), highest)
                break
