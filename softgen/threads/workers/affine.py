"""Affine lane values in payloads: local IDs that count up or are uniform, in the same way in every thread of a group.

In:  a ThreadDispatch. Out: AffineRanges, which translated kernels may rely on (eu/engine_protocol.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from softgen.bits.units import GRF_BYTES, WORD
from softgen.eu.engine_protocol import AffineRange
from softgen.threads.dispatch import ThreadDispatch
from softgen.threads.payload import TemplatePayload

BOUNDS = (1023, 0xFFFF)  # few, so that groups of different sizes share their code
COUNTS = (GRF_BYTES // WORD, GRF_BYTES // WORD // 2)  # IDs of a register: a whole one, or half


def affine_rows(dispatch: ThreadDispatch) -> tuple[AffineRange, ...]:
    """Affine values in the own data of threads. Other payload sources have none that is known."""
    payload = dispatch.payload
    if not isinstance(payload, TemplatePayload) or not payload.own or payload.own % GRF_BYTES:
        return ()
    return _rows(own_data(dispatch), payload.own, payload.own_offset)


def own_data(dispatch: ThreadDispatch) -> bytes:
    """The data that a payload has for each thread, of all threads of a group; what AffineRanges depend on in dispatches of a kind."""
    payload = dispatch.payload
    if not isinstance(payload, TemplatePayload):
        return b""
    return payload.data[payload.common : payload.common + payload.own * dispatch.threads]


@lru_cache(1024)
def _rows(data: bytes, own: int, first: int) -> tuple[AffineRange, ...]:
    words = np.frombuffer(data, np.uint16).reshape(-1, own // GRF_BYTES, GRF_BYTES // WORD)
    return tuple(_found(words, first))


def _found(words: npt.NDArray[np.uint16], first: int) -> Iterator[AffineRange]:
    for number in range(words.shape[1]):
        ids = words[:, number].astype(np.int32)
        strides = ids[:, 1:] - ids[:, :-1]
        for count in COUNTS:
            if (strides[:, : count - 1] == strides[0, 0]).all():
                highest = next(bound for bound in BOUNDS if ids[:, :count].max() <= bound)
                yield AffineRange(first + number * GRF_BYTES, WORD, count, int(strides[0, 0]), highest)
                break
