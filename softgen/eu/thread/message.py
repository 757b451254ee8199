"""SentMessage: one message of a thread as the interpreter hands it to a shared function."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from softgen.eu.isa.instruction import Instruction

Bytes = npt.NDArray[np.uint8]


@dataclass
class SentMessage:
    """A message: descriptors, payloads, execution mask, and the registers that the response is written to.

    `response` is a view of the register file; channels without a response keep their old bytes.
    """

    instruction: Instruction
    sfid: int
    descriptor: int
    extended: int  # extended message descriptor
    payload: Bytes
    second: Bytes  # payload of a split send's second source
    response: Bytes
    mask: int  # bit n: channel n of the instruction's channels
    first: int = 0  # the first of the instruction's channels among those of the thread
    alt: bool = False  # the thread's alternate float mode accompanies every message (IVB 2419-2422)
    header: bool = False
