"""16-bit floats where rounding twice would show, on every way that a host has to compute with them."""

from __future__ import annotations

import platform
from functools import cache
from typing import Any

import numpy as np
import pytest

from softgen.lanes.compile import jit
from softgen.lanes.compile.routine import Routine
from softgen.lanes.compile.signature import Bytes, Lanes, Signature, build
from softgen.lanes.machine import Machine
from softgen.lanes.types import f16, f64, u64
from softgen.lanes.value import Memory, Value
from tests.lanes.both import agree, compile_, random_lanes
from tests.lanes.numbers import specials

MANY = 1 << 16
ROW = 32
FUSED, PLAIN = {"aarch64": ("fullfp16", "generic")}.get(platform.machine(), ("avx512fp16", "x86-64-v3"))
WAYS = {"fused": FUSED, "rounding in the instruction": "avx512f", "to nearest": ""}  # and what each must have

Array = np.ndarray[Any, Any]


@cache
def target(way: str) -> jit.Target:
    """This host, without what is better."""
    features, wanted = jit.host().features, WAYS[way]
    if wanted and not jit.host().has(wanted):
        pytest.skip(f"this CPU has no {wanted}")
    names = list(WAYS.values())
    better = names[:names.index(wanted)]
    return jit.Target(jit.host().triple, PLAIN, "") if not wanted else jit.host()._replace(features=features + "".join(
        f",-{item}" for item in better))


@cache
def routine(way: str) -> Routine:
    """A fused multiply-add of all that three memories hold."""
    def program(m: Machine, a: Memory, b: Memory, c: Memory, to: Memory) -> None:
        at = m.variable(m.constant(u64, 0))
        for _ in m.While(lambda: at.value < 2 * MANY):
            m.store_block(m.fma(*(m.load_block(f16, ROW, item, at.value) for item in (a, b, c))), to, at.value)
            at.value = at.value + 2 * ROW
    return compile_(program, Signature(tuple(Bytes(name) for name in ("a", "b", "c", "to"))), target(way))


def any_halves(rng: np.random.Generator) -> Array:
    return rng.integers(0, 1 << 16, MANY, np.uint16)


def few_bits(rng: np.random.Generator) -> Array:
    """Products of these often lie half way between two f16."""
    bits = sum(np.uint16(1) << rng.integers(0, 10, MANY, np.uint16) for _ in range(2)) & np.uint16(0x3FF)
    return bits | rng.integers(0, 31, MANY, np.uint16) << np.uint16(10) | rng.integers(0, 2, MANY, np.uint16) << np.uint16(15)


def exactly(a: Array, b: Array, c: Array) -> Array:
    """f64 holds every sum of a product and an f16 but those where one is too small to matter, and NumPy rounds it to f16 at once."""
    a, b, c = (item.view(np.float16).astype(np.float64) for item in (a, b, c))
    return (a * b + c).astype(np.float16)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["anything", "few bits", "small addends", "half way"])
def test_a_fused_multiply_add_is_rounded_once(kind: str, way: str) -> None:
    rng = np.random.default_rng(list(kind.encode()))
    with np.errstate(all="ignore"):
        if kind == "anything":
            a, b, c = (any_halves(rng) for _ in range(3))
        else:
            a, b, c = few_bits(rng), few_bits(rng), few_bits(rng)
        if kind == "small addends":
            c &= np.uint16(0x87FF)
        if kind == "half way":
            product = a.view(np.float16).astype(np.float64) * b.view(np.float16)
            near = product.astype(np.float16)
            middle = (near.astype(np.float64) + np.nextafter(near, np.float16(np.inf))) / 2
            c = (middle - product + product * 2.0 ** rng.integers(-30, 0, MANY)).astype(np.float16).view(np.uint16)
        want = exactly(a, b, c)
        twice = (a.view(np.float16).astype(np.float32) * b.view(np.float16) + c.view(np.float16)).astype(np.float16)
    found = np.zeros(MANY, np.float16)
    routine(way)(a, b, c, found)
    differs = (found.view(np.uint16) != want.view(np.uint16)) & ~(np.isnan(found) & np.isnan(want))
    assert not differs.any(), [hex(item[differs][0]) for item in (a, b, c, found.view(np.uint16), want.view(np.uint16))]
    if kind != "anything":
        assert (twice != want)[~np.isnan(want)].any()  # or nothing was tried


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("lanes", [1, 4, 8, 16, 24, 32])
def test_as_many_lanes_as_one_likes(lanes: int, way: str) -> None:
    def program(m: Machine, a: Value, b: Value, c: Value) -> Value:
        return m.fma(a, b, c)
    signature = Signature((Lanes(f16, lanes),) * 3, (Lanes(f16, lanes),))
    compiled, rng = compile_(program, signature, target(way)), np.random.default_rng(lanes)
    for _ in range(20):
        agree(program, signature, [random_lanes(f16, lanes, rng, specials(f16)) for _ in range(3)], compiled)


@pytest.mark.parametrize("way", WAYS)
def test_doubles_become_halves_at_once(way: str) -> None:
    def program(m: Machine, a: Value) -> Value:
        return m.convert(a, f16)
    compiled = compile_(program, Signature((Lanes(f64, ROW),), (Lanes(f16, ROW),)), target(way))
    ties = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float64)
    ties = np.concatenate([ties, (ties + np.append(ties[1:], 65536.0)) / 2])
    near = [ties * (1 + step * 2.0**-52) for step in (-1, 0, 1)] + [ties + step * 2.0**-50 for step in (-1, 1)]
    strange = np.array([1, 0x7FF0000000000001, 0x7FF0000000000000, 0x7FEFFFFFFFFFFFFF, 0x36A0000000000001, 0x47EFFFFFFFFFFFFF],
                       np.uint64).view(np.float64)
    given = np.concatenate([*near, strange, np.zeros(-(5 * len(ties) + len(strange)) % ROW)])
    for lanes in (item for sign in (given, -given) for item in sign.reshape(-1, ROW)):
        with np.errstate(all="ignore"):
            want = lanes.astype(np.float16)
        (found,) = compiled(lanes)
        assert np.array_equal(found, want, equal_nan=True) and np.array_equal(np.signbit(found), np.signbit(want))


def test_a_sign_changes_no_other_bit() -> None:
    """Of NaNs, too, which arithmetic would make quiet."""
    negated = compile_(lambda m, a: -a, Signature((Lanes(f16, ROW),), (Lanes(f16, ROW),)))
    for bits in np.arange(1 << 16, dtype=np.uint16).reshape(-1, ROW):
        (found,) = negated(bits.view(np.float16))
        assert (found.view(np.uint16) == bits ^ 0x8000).all()


def test_what_a_target_has() -> None:
    plain = jit.Target("x86_64-unknown-linux-gnu", "sapphirerapids", "+fma,+avx512f,-avx512fp16")
    assert plain.has("avx512f") and not plain.has("avx512fp16") and not plain.has("avx512")
    assert not plain._replace(features="+avx512fp16,+fma,-avx512fp16").has("avx512fp16")


def test_code_is_written_for_its_target() -> None:
    signature = Signature((Lanes(f16, 16),) * 3, (Lanes(f16, 16),))
    texts = [build(lambda m, a, b, c: m.fma(a, b, c), signature, jit.Target("x86_64-unknown-linux-gnu", "", features))
             for features in ("+avx512f,+avx512fp16", "+avx512f", "+avx2")]
    assert ["llvm.fma.v16f16" in text for text in texts] == [True, False, False]
    assert ["avx512.vfmadd" in text for text in texts] == [False, True, False]
    calls = [line for line in texts[1].splitlines() if "call" in line and "avx512.vfmadd" in line]
    assert [line.rpartition("i32 ")[2] for line in calls] == ["9)", "10)", "11)"]  # down, up and toward zero, each without exceptions
    arm = [build(lambda m, a, b, c: m.fma(a, b, c), signature, jit.Target("aarch64-unknown-linux-gnu", "", features))
           for features in ("+neon,+fullfp16", "+neon")]
    assert ["llvm.fma.v16f16" in text for text in arm] == [True, False]
