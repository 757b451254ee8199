"""Extended math messages: all functions on random operands, on the interpreter and as compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from softgen.errors import DecodeError, Unsupported
from softgen.lanes.numpy.machine import NumpyMachine
from softgen.lanes.types import f16, f32
from softgen.lanes.value import Value
from softgen.memory.address_space import AddressSpace
from softgen.shared_functions import descriptors
from softgen.shared_functions.extended_math import functions
from softgen.shared_functions.extended_math.unit import extended_math
from softgen.shared_functions.unit import MessageHandler
from tests.shared_functions.compiled import Compiled
from tests.shared_functions.sending import Sender, Sent

GEN, SFID = 4.5, 1
FLOATS = ("inv", "log", "exp", "sqrt", "rsq", "sin", "cos", "sincos", "pow")
DIVISIONS = ("int_div_quotient_and_remainder", "int_div_quotient", "int_div_remainder")
TWO = ("pow", *DIVISIONS)


def send(name: str, *operands: Any, mask: int = 0xFF, width: int = 8, answer: int = 1, **fields: Any) -> Any:
    """The response of the interpreter, which compiled code must equal."""
    payload = np.concatenate([np.ascontiguousarray(operand).view(np.uint8) for operand in operands])
    descriptor = descriptors.encode("math", GEN, function=name, message_length=len(operands), response_length=answer, **fields)
    sent = Sent(SFID, descriptor, payload, np.zeros(0, np.uint8), np.full(32 * answer, 0xEE, np.uint8), mask, Sender(width))
    again = sent.response.copy()
    MessageHandler(GEN, extended_math())(None, sent)
    Compiled(GEN, AddressSpace("bench", 32), np.zeros(64, np.uint8), 0).run(SFID, descriptor, payload, sent.second, again, mask, width)
    assert again.tolist() == sent.response.tolist()
    return sent.response.view(np.uint32)


def floats(rng: np.random.Generator) -> Any:
    special = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 1, -1], np.float32)
    return np.where(rng.integers(0, 4, 8) > 0, rng.normal(0, 10, 8), rng.choice(special, 8)).astype(np.float32)


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("saturate", [0, 1])
def test_functions_of_floats(name: str, saturate: int) -> None:
    rng = np.random.default_rng(1)
    reference = {"inv": np.reciprocal, "sqrt": np.sqrt, "exp": np.exp2, "log": np.log2, "sin": np.sin, "cos": np.cos, "sincos": np.sin,
                 "pow": np.power, "rsq": lambda x: 1 / np.sqrt(x)}[name]  # fmt: skip
    for _ in range(20):
        operands = [floats(rng) for _ in range(1 + (name in TWO))]
        found = send(name, *operands, answer=1 + (name == "sincos"), mask=0x7F, saturate=saturate).view(np.float32)
        with np.errstate(all="ignore"):
            wanted = reference(*(operand.astype(np.float64) for operand in operands))
            cosines = np.cos(operands[0].astype(np.float64))
        good = np.isfinite(wanted) & (np.abs(wanted) < 1e30) & (np.abs(wanted) > 1e-30) & all(np.abs(o).min() > 1e-38 for o in operands)
        good[7] = False
        wanted = np.clip(wanted, 0, 1) if saturate else wanted
        assert np.allclose(found[:8][good], wanted[good], rtol=1e-6, atol=0 if not saturate else 1e-30)
        if name == "sincos" and not saturate:
            assert np.allclose(found[8:][good], cosines[good], rtol=1e-5)
        assert found.view(np.uint32)[7] == 0xEEEEEEEE, "a channel that is off"


NAN = np.nan
SPECIAL = [0.0, -0.0, np.inf, -np.inf, NAN, 1e-40, -1e-40, -1.0]  # denormals are zeros of their sign


@pytest.mark.parametrize(("name", "sources", "wanted"), [
    ("inv", SPECIAL, [np.inf, -np.inf, 0.0, -0.0, NAN, np.inf, -np.inf, -1.0]),
    ("log", SPECIAL, [-np.inf, -np.inf, np.inf, NAN, NAN, -np.inf, -np.inf, NAN]),
    ("exp", SPECIAL, [1.0, 1.0, np.inf, 0.0, NAN, 1.0, 1.0, 0.5]),
    ("sqrt", SPECIAL, [0.0, -0.0, np.inf, NAN, NAN, 0.0, -0.0, NAN]),
    ("rsq", SPECIAL, [np.inf, -np.inf, 0.0, NAN, NAN, np.inf, -np.inf, NAN]),
    ("log", [1.0, 2.0, 0.5, 2.0**127, 2.0**-126, 4.0, 8.0, 0.25], [0.0, 1.0, -1.0, 127.0, -126.0, 2.0, 3.0, -2.0]),
    ("exp", [127.0, 128.0, -126.0, -127.0, 200.0, -200.0, 3e38, -3e38], [2.0**127, np.inf, 2.0**-126, 0.0, np.inf, 0.0, np.inf, 0.0]),
])  # fmt: skip
def test_zeros_infinities_and_the_ends_of_floats(name: str, sources: list[float], wanted: list[float]) -> None:
    found = send(name, np.array(sources, np.float32)).view(np.float32)
    assert np.array_equal(found, np.array(wanted, np.float32), equal_nan=True)
    assert [bool(sign) for sign in np.signbit(found[~np.isnan(found)])] == [str(number)[0] == "-" for number in wanted if number == number]


@pytest.mark.parametrize(("name", "wanted"), [
    ("inv", [np.inf, -np.inf, 0.0, -0.0, NAN, 0.25, -1.0]), ("log", [-np.inf, -np.inf, np.inf, NAN, NAN, 2.0, NAN]),
    ("exp", [1.0, 1.0, np.inf, 0.0, NAN, 16.0, 0.5]), ("sqrt", [0.0, -0.0, np.inf, NAN, NAN, 2.0, NAN]),
    ("rsq", [np.inf, -np.inf, 0.0, NAN, NAN, 0.5, NAN]), ("sin", [0.0, -0.0, NAN, NAN, NAN, np.sin(4.0), np.sin(-1.0)]),
    ("cos", [1.0, 1.0, NAN, NAN, NAN, np.cos(4.0), np.cos(-1.0)]),
])  # fmt: skip
def test_zeros_infinities_and_no_numbers_of_halves(name: str, wanted: list[float]) -> None:
    m, sources = NumpyMachine(), [0.0, -0.0, np.inf, -np.inf, NAN, 4.0, -1.0]
    with np.errstate(all="ignore"):
        found = functions.evaluate(m, name, False, m.value(f16, np.array(sources, np.float16))).payload
    assert found.dtype == np.float16 and np.array_equal(found, np.array(wanted, np.float16), equal_nan=True)
    assert [bool(sign) for sign in np.signbit(found[~np.isnan(found)])] == [str(number)[0] == "-" for number in wanted if number == number]


def test_angles_too_far_to_be_reduced_count_as_zero() -> None:
    """From 2^45 radians on floats are thousands of turns apart."""
    last = np.float32(2.0**45)
    angles = np.array([last, -last, np.nextafter(last, np.float32(np.inf)), -(2.0**46), 2.0**100, -3e38, 2.0**44, 1.0], np.float32)
    for name, zero, reference in (("sin", 0.0, np.sin), ("cos", 1.0, np.cos)):
        found = send(name, angles).view(np.float32)
        near = np.abs(angles) <= last
        assert np.allclose(found[near], reference(angles[near].astype(np.float64)), rtol=1e-5) and (found[~near] == zero).all()


def test_a_scalar_goes_to_all_channels() -> None:
    found = send("inv", np.array([4, 0, 1, 1, 1, 1, 1, 1], np.float32), data_type="scalar")
    assert found.view(np.float32).tolist() == [0.25] * 8
    found = send("inv", np.array([4, 0, 1, 1, 1, 1, 1, 1], np.float32), data_type="scalar", width=1, mask=1)
    assert found.view(np.float32)[0] == 0.25 and (found[1:] == 0xEEEEEEEE).all()


@pytest.mark.parametrize("name", DIVISIONS)
@pytest.mark.parametrize("kind", ["unsigned", "signed"])
def test_integer_division(name: str, kind: str) -> None:
    rng = np.random.default_rng(2)
    for _ in range(10):
        dtype = np.int32 if kind == "signed" else np.uint32
        a, b = (rng.integers(0, 1 << 32, 8, np.uint64).astype(np.uint32).view(dtype) >> rng.integers(0, 30, 8).astype(dtype) for _ in "ab")
        b[0] = 0
        found = send(name, b, a, answer=1 + ("and" in name), integer_type=kind)
        for lane in range(1, 8):
            x, y = int(a[lane]), int(b[lane])
            quotient = 0 if not y else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
            if y:
                wanted = {"quotient": quotient, "remainder": x - quotient * y}
                first = wanted["remainder" if name.endswith("l_remainder") or name == "int_div_remainder" else "quotient"]
                assert int(found[lane]) == first & 0xFFFFFFFF
                if "and" in name:
                    assert int(found[8 + lane]) == wanted["remainder"] & 0xFFFFFFFF


def test_what_is_wrong_is_refused() -> None:
    with pytest.raises(DecodeError, match="pow takes 2 registers, not 1"):
        send("pow", np.zeros(8, np.float32))
    with pytest.raises(Unsupported, match="tan is not yet simulated"):
        send("tan", np.zeros(8, np.float32))


@pytest.mark.parametrize(("name", "source", "plain", "alt"), [
    ("log", -4.0, np.nan, 2.0), ("log", 8.0, 3.0, 3.0), ("sqrt", -9.0, np.nan, 3.0), ("rsq", -4.0, np.nan, 0.5), ("rsq", 0.25, 2.0, 2.0),
    ("inv", -4.0, -0.25, -0.25), ("exp", -1.0, 0.5, 0.5), ("sin", 0.0, 0.0, 0.0), ("cos", 0.0, 1.0, 1.0)])  # fmt: skip
def test_functions_of_the_absolute_value_in_alt_mode(name: str, source: float, plain: float, alt: float) -> None:
    """Logarithm, square root and its reciprocal; the others take their source as it is (IVB 1063-1073)."""
    m = NumpyMachine()
    with np.errstate(all="ignore"):
        given = m.value(f32, np.array([source], np.float32))
        found = [float(functions.evaluate(m, name, mode, given).payload[0]) for mode in (False, True)]
    assert found == pytest.approx([plain, alt], nan_ok=True)


def test_the_power_of_a_negative_number_is_none_in_alt_mode_either() -> None:
    m = NumpyMachine()
    two, negative = (m.value(f32, np.array([number], np.float32)) for number in (2.0, -2.0))
    with np.errstate(all="ignore"):
        found = [functions.evaluate(m, "pow", True, a, b).payload[0] for a, b in ((two, negative), (negative, two))]
    assert found[0] == 0.25 and np.isnan(found[1])


# -- hosts with an instruction that estimates 1 / sqrt(x) --------------------------------------------------------------


class Estimating(NumpyMachine):
    """A machine whose host estimates as well as it must: within 2^-14."""

    def estimate_rsq(self, a: Value) -> Value:
        with np.errstate(all="ignore"):
            return self.value(f32, (1 / np.sqrt(a.payload.astype(np.float64)) * (1 + 2**-15)).astype(np.float32))


def rsq_of(m: NumpyMachine, numbers: Any) -> list[int]:
    with np.errstate(all="ignore"):
        found: Any = functions.rsq(m, m.value(f32, np.asarray(numbers, np.float32))).payload
    return np.where(np.isnan(found), np.float32(np.nan), found).view(np.uint32).tolist()


@pytest.mark.parametrize("number", [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1.0, 4.0, 3.0])
def test_the_reciprocal_root_of_one_number_is_the_same_with_an_estimate(number: float) -> None:
    """Zeros, infinities and what has no root are never certain: they are computed without it."""
    assert rsq_of(Estimating(), [number]) == rsq_of(NumpyMachine(), [number])


def test_an_estimate_is_enough_for_most_numbers() -> None:
    """Both ends of the interval round to the root, or its neighbour; where they are equal nothing else is computed."""
    m, numbers = Estimating(), np.random.default_rng(3).uniform(1, 4, 256).astype(np.float32)
    x = m.value(f32, numbers)
    low, high = (end.payload for end in functions.enclose_rsq(m, x, m.estimate_rsq(x)))
    right = (1 / np.sqrt(numbers.astype(np.float64))).astype(np.float32)
    assert (np.abs(low - right) <= np.spacing(right)).all() and (np.abs(high - right) <= np.spacing(right)).all()
    assert (low == high).mean() > 0.9 and (low[low == high] == right[low == high]).all()
    assert rsq_of(m, numbers) == rsq_of(NumpyMachine(), numbers)


@pytest.mark.parametrize("machine", [NumpyMachine, Estimating])
def test_roots_that_are_certain_need_nothing_else(machine: type[NumpyMachine], monkeypatch: pytest.MonkeyPatch) -> None:
    """Normal numbers on every host, with an instruction that estimates or without."""
    rare: list[Value] = []

    def any_rsq(m: NumpyMachine, x: Value, bits: Value) -> Value:
        rare.append(x)
        return x

    monkeypatch.setattr(functions, "_any_rsq", any_rsq)
    numbers = np.array([2.0, 3.0, 4.0, 1e-30, 1e30], np.float32)
    right = (1 / np.sqrt(numbers.astype(np.float64))).astype(np.float32)
    assert rsq_of(machine(), numbers) == right.view(np.uint32).tolist() and not rare
    rsq_of(machine(), [0.0])
    assert len(rare) == 1


def uncertain_roots() -> tuple[list[float], list[int]]:
    """Numbers whose roots lie so near the middle between two floats that an estimate does not tell which is nearer; and the lower ends."""
    m, numbers, ends = Estimating(), [], []
    for x in np.random.default_rng(5).uniform(1, 4, (64, 256)).astype(np.float32):
        given = m.value(f32, x)
        low, high = (end.payload for end in functions.enclose_rsq(m, given, m.estimate_rsq(given)))
        numbers += x[low != high].tolist()
        ends += low[low != high].view(np.uint32).tolist()
    return numbers, ends


def test_an_uncertain_root_is_rounded_by_its_residual(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of the ends is the root's neighbour there. Only beside something special is everything computed from the start."""
    (numbers, ends), m = uncertain_roots(), Estimating()
    right = (1 / np.sqrt(np.array(numbers))).astype(np.float32).view(np.uint32).tolist()
    assert 4 < len(numbers) < 200 and ends != right
    mixed = [*numbers, 0.0, np.inf, 1e-40]
    assert rsq_of(m, mixed) == rsq_of(NumpyMachine(), mixed)
    monkeypatch.setattr(functions, "_any_rsq", lambda m, x, bits: x)
    assert rsq_of(m, numbers) == right
