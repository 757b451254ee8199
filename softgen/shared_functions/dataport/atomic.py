"""Integer atomics on dwords and qwords: each lane reads, computes and writes before the next does, and gets what stood there.

Operands are sets of registers behind the addresses; compare-and-write has two, the value compared first (KBL 1310-1390).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from softgen.errors import Unsupported
from softgen.shared_functions.dataport.port import DataPort, Request, answers
from softgen.shared_functions.dataport.scattered import offsets, respond, surface_lanes
from softgen.shared_functions.dataport.target import Bytes, Mask, Offsets, Target

Operation = Callable[[int, int, int, int], int]  # old value, first and second operand, bits -> new value


def signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> bits - 1 else value


OPERATIONS: dict[str, Operation] = {
    "and": lambda old, a, b, bits: old & a,
    "or": lambda old, a, b, bits: old | a,
    "xor": lambda old, a, b, bits: old ^ a,
    "mov": lambda old, a, b, bits: a,
    "inc": lambda old, a, b, bits: old + 1,
    "dec": lambda old, a, b, bits: old - 1,
    "predec": lambda old, a, b, bits: old - 1,
    "add": lambda old, a, b, bits: old + a,
    "sub": lambda old, a, b, bits: old - a,
    "revsub": lambda old, a, b, bits: a - old,
    "imax": lambda old, a, b, bits: max(old, a, key=lambda value: signed(value, bits)),
    "imin": lambda old, a, b, bits: min(old, a, key=lambda value: signed(value, bits)),
    "umax": lambda old, a, b, bits: max(old, a),
    "umin": lambda old, a, b, bits: min(old, a),
    "cmpwr": lambda old, a, b, bits: b if old == a else old,
}
OPERANDS = {"inc": 0, "dec": 0, "predec": 0, "cmpwr": 2}  # all others have one
LANES = {"simd8": 8, "simd16": 16}


@answers("untyped_atomic", "a64_untyped_atomic")
def untyped_atomic(port: DataPort, request: Request) -> None:
    words, name = request.plan.words, request.plan.words["operation"]
    if name not in OPERATIONS:
        raise Unsupported(f"{request.plan.name} {name}: not yet simulated")
    surface_lanes(port, request)
    lanes, size = LANES[words.get("simd_mode", "simd8")], 8 if words.get("data_width") == "qword" else 4
    at, start = offsets(request, lanes)
    count = OPERANDS.get(name, 1)
    operands = [request.take(start + number * size * lanes, size * lanes).reshape(lanes, size) for number in range(count)]
    old, new = exchange(port.target(request), at, operands, request.lanes(lanes), size, OPERATIONS[name])
    if request.plan.fields.return_data:
        respond(request, 0, new if name == "predec" else old, size)  # (KBL 1393-1394)


def exchange(target: Target, at: Offsets, operands: list[Bytes], mask: Mask, size: int, operation: Operation) -> tuple[Bytes, Bytes]:
    """Lane by lane, so that lanes at one address see each other: what stood there, and what stands there now."""
    old, new = np.zeros((2, len(at), size), np.uint8)
    for lane in np.flatnonzero(mask):
        here, only = at[lane : lane + 1], mask[lane : lane + 1]
        old[lane] = target.load(here, size, only)[0]
        a, b = (number(one[lane]) for one in [*operands, old, old][:2])
        value = operation(number(old[lane]), a, b, 8 * size) & (1 << 8 * size) - 1
        new[lane] = np.frombuffer(value.to_bytes(size, "little"), np.uint8)
        target.store(here, new[lane : lane + 1], only)
    return old, new


def number(data: Bytes) -> int:
    return int.from_bytes(data.tobytes(), "little")
