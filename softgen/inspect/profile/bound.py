"""Lower bounds of time: what the arithmetic of a kernel takes at least on a GPU, if nothing else took any.

An EU has two floating-point pipes of 128 bits, and every instruction but a message, a branch or a nop occupies one of them for as many
cycles as its active lanes fill. Latency, contention, caches and clock are left out: the hardware takes longer. This is no prediction, and
it was not validated on hardware.
"""

from __future__ import annotations

from softgen.bits.generation import Device
from softgen.eu.isa import types
from softgen.eu.isa.instruction import Instruction
from softgen.eu.semantics import OPS
from softgen.eu.thread.regions import LANES

PIPE_BYTES = 16  # that one pipe computes in a cycle
PIPES = 2  # of an EU
LABEL = "at least; no latency, no contention; not validated on hardware"
FIRST = 7.0  # generation whose EUs are known to be so


def pipe_bytes(inst: Instruction, lanes: int) -> int:
    """The bytes of results that lanes of an instruction need of the pipes."""
    if inst.opcode not in OPS or inst.dst is None:
        return 0
    kind = inst.dst.type if inst.dst.type in LANES else "ud"
    return lanes * types.size(kind)


def cycles(device: Device, size: int) -> float | None:
    """Cycles of all EUs together for so many bytes of results; None where a GPU's EUs are others."""
    if device.generation.number < FIRST:
        return None
    return size / (PIPE_BYTES * PIPES * device.limit("eus"))
