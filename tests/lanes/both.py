"""One program on both machines: results, memories and faults must agree bit for bit, a NaN that arithmetic made with any other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from softgen.cache import Cache
from softgen.errors import GpuFault
from softgen.lanes.compile.jit import Target
from softgen.lanes.compile.routine import Routine
from softgen.lanes.compile.signature import Bytes, Lanes, Signature
from softgen.lanes.numpy.machine import DTYPES, NumpyMachine
from softgen.lanes.types import LaneType

NOTHING_KEPT = Cache(None)
Array = np.ndarray[Any, Any]


def random_lanes(type: LaneType, lanes: int, rng: np.random.Generator, choices: list[int]) -> Array:
    """Half special values, half random bits. `choices` are integers, or the bits of floats."""
    if type.is_bool:
        return rng.integers(0, 2, lanes).astype(np.bool_)
    unsigned = DTYPES[type.unsigned]
    special = np.array([choice % (1 << type.bits) for choice in choices], unsigned)[rng.integers(0, len(choices), lanes)]
    anything = rng.integers(0, type.unsigned.highest, lanes, unsigned, endpoint=True)
    return np.where(rng.integers(0, 2, lanes) == 1, special, anything).view(DTYPES[type])


def compile_(program: Callable[..., Any], signature: Signature, target: Target | None = None) -> Routine:
    return Routine(program, signature, NOTHING_KEPT, target)


def on_numpy(program: Callable[..., Any], signature: Signature, inputs: list[Any]) -> list[Array]:
    m = NumpyMachine()
    given = [m.memory(array, shape.name) if isinstance(shape, Bytes) else m.value(shape.type, array)
             for shape, array in zip(signature.inputs, inputs, strict=True)]
    found = program(m, *given)
    outputs = found if isinstance(found, tuple) else () if found is None else (found,)
    assert tuple(Lanes(output.type, output.lanes) for output in outputs) == signature.outputs
    return [output.payload for output in outputs]


def same(a: Array, b: Array, any_nan: bool) -> Array:
    """Per lane: equal bits, or both NaN where that is enough."""
    equal: Array = a.view(f"u{a.itemsize}") == b.view(f"u{b.itemsize}")
    return equal | np.isnan(a) & np.isnan(b) if any_nan and a.dtype.kind == "f" else equal


def agree(program: Callable[..., Any], signature: Signature, inputs: list[Any], routine: Routine | None = None,
          any_nan: bool = True) -> list[Array]:
    """Runs both and compares everything; gives the NumPy machine's results. Memories are not changed for the caller."""
    routine = routine or compile_(program, signature)
    first, second = ([array.copy() for array in inputs] for _ in range(2))
    want, want_fault = attempt(lambda: on_numpy(program, signature, first))
    found, found_fault = attempt(lambda: routine(*second))
    assert (found_fault and key(found_fault)) == (want_fault and key(want_fault))
    if want_fault:
        return []
    for number, (a, b) in enumerate(zip(want, found, strict=True)):
        matches = same(a, b, any_nan)
        assert matches.all(), f"output {number}, lanes {np.flatnonzero(~matches)}: NumPy {a[~matches]}, LLVM {b[~matches]}"
    for shape, a, b in zip(signature.inputs, first, second, strict=True):
        assert not isinstance(shape, Bytes) or a.tobytes() == b.tobytes(), f"{shape.name} differs"
    return want


def attempt(run: Callable[[], list[Array]]) -> tuple[list[Array], GpuFault | None]:
    try:
        return run(), None
    except GpuFault as fault:
        return [], fault


def key(fault: GpuFault) -> tuple[int, str, str, bool]:
    return fault.address, fault.access, fault.space, "multiple" in fault.why
