"""C functions over lanes: called alike on all machines."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from softgen.lanes.compile.signature import Lanes, Signature
from softgen.lanes.host_function import HostFunction, addresses
from softgen.lanes.machine import Machine
from softgen.lanes.numpy.machine import HOST, NumpyMachine
from softgen.lanes.types import f32, u32
from softgen.lanes.value import Value
from tests.lanes.both import agree
from tests.lanes.bytecode.test_machine import Interpreted


@HOST
def _sums(given: int, found: int, lanes: int) -> None:
    a = np.ctypeslib.as_array((ctypes.c_uint32 * (2 * lanes)).from_address(given)).reshape(2, lanes)
    np.ctypeslib.as_array((ctypes.c_uint32 * (2 * lanes)).from_address(found)).reshape(2, lanes)[:] = a[0] + a[1], a[0] - a[1]


SUMS = HostFunction("tests_sums", lambda: ctypes.cast(_sums, ctypes.c_void_p).value or 0)


@pytest.mark.parametrize("lanes", [2, 8, 16])
def test_a_host_function_has_lanes_of_arguments_and_of_results(lanes: int) -> None:
    def program(m: Machine, a: Value, b: Value) -> tuple[Value, ...]:
        total, rest = m.host(SUMS, [a * 3, b], 2)
        return total, rest + 1

    a, b = (np.random.default_rng(seed).integers(0, 1 << 32, lanes, np.uint32) for seed in (1, 2))
    shape = Lanes(u32, lanes)
    signature = Signature((shape, shape), (shape, shape))
    interpreted: Any = Interpreted(program, signature)
    for routine in (None, interpreted):
        total, rest = agree(program, signature, [a, b], routine)
        assert (total == 3 * a + b).all() and (rest == 3 * a - b + 1).all()


def test_arguments_are_checked() -> None:
    m = NumpyMachine()
    with pytest.raises(TypeError, match="tests_sums takes vectors of u32"):
        m.host(SUMS, [m.constant(u32, 0, 8), m.constant(f32, 0, 8)], 2)
    assert list(addresses(["tests_sums", "another"])) == ["tests_sums"]
