"""What names a translation: engines look for one by it without the translator being imported."""

from __future__ import annotations

from typing import NamedTuple

from softgen.eu.engine_protocol import AffineRange

NAME = "kernel"  # of the function in its object


class Key(NamedTuple):
    """What a translation depends on beside the code."""

    control: int  # cr0.0
    width: int  # channels of a thread: 8, 16 or 32
    full: bool  # every thread has all of them
    observe: bool = False  # registers are spilled when the thread ends, for inspection
    loops: bool = False  # loop headers are resume points
    messages: bool = True  # are compiled in, over the memory that the context names
    anywhere: bool = False  # channels may wait outside this code when a thread enters it at the start
    payload: tuple[AffineRange, ...] = ()  # affine ranges of every thread's payload
