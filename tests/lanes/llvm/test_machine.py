"""The LLVM machine against the NumPy machine: every row of the table, every type, every rounding, on this host and on a plain AVX2 one."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from softgen.errors import Unsupported
from softgen.lanes.compile import jit
from softgen.lanes.compile.routine import Routine
from softgen.lanes.compile.signature import Lanes, Signature
from softgen.lanes.llvm.machine import LlvmMachine
from softgen.lanes.llvm.text import LlvmModule
from softgen.lanes.machine import Machine
from softgen.lanes.numpy.machine import DTYPES
from softgen.lanes.operations import OPERATIONS
from softgen.lanes.types import BY_NAME, FLOATS, INTEGERS, ROUNDINGS, LaneType, bool_, u32
from softgen.lanes.value import Value
from tests.lanes.both import NOTHING_KEPT, agree, compile_, random_lanes
from tests.lanes.numbers import specials

WIDTH = 32
TURNS = 24
NUMBERS = (*INTEGERS, *FLOATS)
TARGETS = ["host"] + ["x86-64-v3"] * (platform.machine() == "x86_64")


@cache
def target(name: str) -> jit.Target:
    return jit.host() if name == "host" else jit.Target(jit.host().triple, name, "")


def check_rows(type: LaneType, mode: str, where: str, constants: bool) -> None:
    """All rows of a type as one program with an output each."""
    rows = [row for row in OPERATIONS.values() if type in row.domain and (mode == "rne" or row.rounded)]
    outputs = tuple(Lanes(bool_ if row.gives_bool else type, WIDTH) for row in rows)
    inputs = (Lanes(type, WIDTH),) * 3

    def program(m: Machine, *given: Value) -> tuple[Value, ...]:
        found = []
        for row in rows:
            operands = list(given[:row.operands])
            if row.name.startswith("shift"):
                operands[1] = operands[1] & type.bits - 1
            options: dict[str, Any] = {"rounding": mode} if row.rounded else {}
            found.append(getattr(m, row.name)(*operands, **options))
        return tuple(found)

    rng = np.random.default_rng(list(f"{type} {mode} {where}".encode()))
    if constants:
        check_folding(program, type, outputs, rng)
        return
    routine = compile_(program, Signature(inputs, outputs), target(where))
    for _ in range(TURNS):
        agree(program, Signature(inputs, outputs), [random_lanes(type, WIDTH, rng, specials(type)) for _ in range(3)], routine)


def check_folding(program: Callable[..., Any], type: LaneType, outputs: tuple[Lanes, ...], rng: np.random.Generator) -> None:
    lanes = [random_lanes(type, WIDTH, rng, specials(type)) for _ in range(3)]
    if type.is_bool:
        given = [[int(bit) for bit in lane] for lane in lanes]
    else:
        given = [lane.view(DTYPES[type.unsigned]).tolist() for lane in lanes]

    def folded(m: Machine) -> Any:
        """The same with operands LLVM sees through."""
        return program(m, *(m.bitcast(m.constant(type if type.is_bool else type.unsigned, value), type) for value in given))
    agree(folded, Signature((), outputs), [])


@pytest.mark.parametrize("where", TARGETS)
@pytest.mark.parametrize("type", FLOATS, ids=str)
def test_comparisons_with_constants_select(type: LaneType, where: str) -> None:
    """Of a NaN and a number the comparison's result, also of a signalling one; AArch64's FMAXNM and FMINNM would leave that a NaN."""

    def program(m: Machine, a: Value) -> tuple[Value, ...]:
        one = m.like(a, 1.0)
        held = m.variable(a > one)
        chosen = [m.max(a, 0.0), m.min(a, 0.0), m.max(a, -2.0), m.select(one < a, a, one), m.select(a <= one, a, one)]
        return *chosen, m.select(held.value, a, one), m.select(~(a >= 2.0), m.like(a, 2.0), a)

    outputs, rng = (Lanes(type, WIDTH),) * 7, np.random.default_rng(5)
    routine = compile_(program, Signature((Lanes(type, WIDTH),), outputs), target(where))
    for _ in range(TURNS):
        numbers = random_lanes(type, WIDTH, rng, specials(type))
        agree(program, Signature((Lanes(type, WIDTH),), outputs), [numbers], routine)


@pytest.mark.covering(1)
@pytest.mark.parametrize("where", TARGETS)
@pytest.mark.parametrize("type", [*NUMBERS, bool_], ids=str)
def test_rows_to_nearest(type: LaneType, where: str) -> None:
    check_rows(type, "rne", where, constants=False)


@pytest.mark.parametrize("type", [*NUMBERS, bool_], ids=str)
def test_constants_fold_to_the_same(type: LaneType) -> None:
    check_rows(type, "rne", "host", constants=True)


@pytest.mark.parametrize("name", ["leading_zeros", "trailing_zeros"])
def test_zeros_of_a_zero_are_counted(name: str) -> None:
    """LLVM's operations have a flag that leaves this result undefined; it is off."""
    m = LlvmMachine()
    getattr(m, name)(Value(m, u32, 8, "%x"))
    assert m.ir.lines[-1].endswith("(<8 x i32> %x, i1 false)")


@pytest.mark.parametrize("where", TARGETS)
@pytest.mark.parametrize("mode", ROUNDINGS[1:])
@pytest.mark.parametrize("type", FLOATS, ids=str)
def test_rows_rounded(type: LaneType, mode: str, where: str) -> None:
    check_rows(type, mode, where, constants=False)


@pytest.mark.parametrize("where", TARGETS)
@pytest.mark.parametrize("source", NUMBERS, ids=str)
def test_conversions(source: LaneType, where: str) -> None:
    pairs = [(type, mode) for type in NUMBERS for mode in ROUNDINGS if mode == "rne" or type.is_float]

    def program(m: Machine, a: Value) -> tuple[Value, ...]:
        return tuple(m.convert(a, type, mode) for type, mode in pairs)

    signature = Signature((Lanes(source, WIDTH),), tuple(Lanes(type, WIDTH) for type, _ in pairs))
    routine = compile_(program, signature, target(where))
    rng = np.random.default_rng(source.bits)
    for turn in range(TURNS):
        lanes = random_lanes(source, WIDTH, rng, specials(source))
        if source.is_float and turn % 2:                # beside the limits of other types, and beside halves of smaller floats
            near = rng.choice([*(2.0**power for power in (7, 8, 15, 16, 31, 32, 63, 64, -25)), 65519.0, 65520.0, 2049.0, 2.5], WIDTH)
            with np.errstate(over="ignore"):
                lanes = (near * rng.choice([1, -1, 1 + 2.0**-23, 1 - 2.0**-24, 1 + 2.0**-50], WIDTH)).astype(lanes.dtype)
        elif turn % 2:                                  # half way between two floats, or one off
            top, half = rng.integers(0, source.bits, (2, WIDTH)).astype(np.uint64)
            near = (np.uint64(1) << top) + (np.uint64(1) << half) + rng.integers(0, 3, WIDTH).astype(np.uint64) - np.uint64(1)
            lanes = near.astype(DTYPES[source.unsigned]).view(lanes.dtype)
        agree(program, signature, [lanes], routine)


@pytest.mark.parametrize("mode", ROUNDINGS)
@pytest.mark.parametrize("type", FLOATS, ids=str)
def test_fma_near_cancellation(type: LaneType, mode: str) -> None:
    """c close to minus the product, or far smaller or larger than it, and products that underflow."""
    signature = Signature((Lanes(type, WIDTH),) * 3, (Lanes(type, WIDTH),))

    def program(m: Machine, a: Value, b: Value, c: Value) -> Value:
        return m.fma(a, b, c, rounding=mode)

    routine = compile_(program, signature)
    rng = np.random.default_rng(type.bits)
    unsigned = DTYPES[type.unsigned]
    for turn in range(TURNS * 2):
        a, b = (random_lanes(type, WIDTH, rng, specials(type)) for _ in range(2))
        with np.errstate(all="ignore"):
            product = (a * b).view(unsigned) ^ unsigned.type(type.sign_mask if turn % 2 else 0)
        units = rng.integers(0, 5, WIDTH).astype(unsigned) - unsigned.type(2)
        powers = rng.integers(0, 60 if turn % 4 > 1 else 1, WIDTH).astype(unsigned) << unsigned.type(type.fraction)
        agree(program, signature, [a, b, (product - units - powers).view(a.dtype)], routine)


def test_llvm_does_not_fuse_or_reorder() -> None:
    """a × b + c in two steps, and (a + b) - a, differ from what fusing or cancelling would give."""
    def program(m: Machine, a: Value, b: Value, c: Value) -> tuple[Value, ...]:
        return a * b + c, (a + b) - a, a - 0.0, a + 0.0, m.div(a, m.like(a, 3.0))

    signature = Signature((Lanes(BY_NAME["f32"], 4),) * 3, (Lanes(BY_NAME["f32"], 4),) * 5)
    a, b, c = (np.array(item, np.float32) for item in ([1 + 2**-12, 1, -0.0, 7], [1 + 2**-12, 2**-30, 1, 5], [-1 - 2**-11, 1, 0, 1e9]))
    want = agree(program, signature, [a, b, c])
    assert want[0][0] == 0.0 and want[1][1] == 0.0 and np.signbit(want[2][2]) and not np.signbit(want[3][2])


def test_an_outside_call_is_refused() -> None:
    """A program that LLVM turned into calls of a library would be rounded as the library likes."""
    ir = "declare float @sinf(float)\ndefine float @program(float %x) {\n %y = call float @sinf(float %x)\n ret float %y\n}\n"
    with pytest.raises(Unsupported, match="made calls of sinf"):
        jit.load(ir, ("program",), NOTHING_KEPT)


def test_llvm_is_told_to_leave_the_order_of_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its scheduler would order them for few registers: long kernels take twice the time then."""
    told = list[str]()
    monkeypatch.setattr("llvmlite.binding.set_option", lambda name, option: told.append(option))
    jit._llvm.__wrapped__()
    assert told == ["-enable-misched=0"]


def test_python_cannot_decide_what_is_known_later() -> None:
    def program(m: Machine, a: Value) -> Value:
        return a if a == a else -a
    with pytest.raises(TypeError, match="must be on Python values"):
        Routine(program, Signature((Lanes(BY_NAME["f32"], 1),), (Lanes(BY_NAME["f32"], 1),)))


@pytest.mark.parametrize("lanes", [8, 16, 32])
def test_masks_from_block_to_block(lanes: int) -> None:
    """Variables, bits of an integer, and masks of before a branch."""

    def program(m: Machine, numbers: Value, bits: Value) -> tuple[Value, ...]:
        on, left = m.variable(m.mask_from_bits(bits, lanes)), m.variable(numbers)
        was = ~on.value
        for _ in m.While(lambda: m.any(on.value)):
            left.value = m.select(on.value, left.value - 1, left.value)
            for _ in m.If(m.any(left.value == 3)):
                even = (left.value & 1) == 0
                left.value = m.select(was & even, left.value + 101, left.value)
                on.value = on.value & ((left.value != 3) | even)
            on.value = on.value & (left.value != 0)
        return left.value, was, m.bits_from_mask(was | on.value, u32)

    signature = Signature((Lanes(u32, lanes), Lanes(u32, 1)), (Lanes(u32, lanes), Lanes(bool_, lanes), Lanes(u32, 1)))
    routine, rng = compile_(program, signature), np.random.default_rng(lanes)
    for bits in (0, 1, (1 << lanes) - 1, *rng.integers(0, 1 << lanes, 8)):
        numbers = rng.integers(1, 20, lanes, np.uint32)
        agree(program, signature, [numbers, np.array([bits], np.uint32)], routine)


def test_masks_that_are_known_leave_no_instruction() -> None:
    """Programs that look at masks then see the other operand, or a mask that is known."""
    m = LlvmMachine()
    some, yes, no = Value(m, bool_, 8, "%some"), m.constant(bool_, 1, 8), m.constant(bool_, 0, 8)
    found = [(some & yes, some), (yes & some, some), (some & no, no), (no & some, no), (some | yes, yes), (yes | some, yes),
             (some | no, some), (no | some, some), (~yes, no), (~no, yes)]  # fmt: skip
    found += [(a & b, yes if a is b is yes else no) for a in (yes, no) for b in (yes, no)]
    found += [(a | b, no if a is b is no else yes) for a in (yes, no) for b in (yes, no)]
    found += [(act(mask), mask) for mask in (yes, no) for act in (
        lambda mask: m.shuffle(mask, [3, 0, 7]), lambda mask: m.slice(mask, 2, 4), lambda mask: m.broadcast(m.slice(mask, 5, 1), 16),
        m.any)]  # fmt: skip
    a, b = (Value(m, u32, 8, f"%{name}") for name in "ab")
    found += [(m.select(yes, a, b), a), (m.select(no, a, b), b)]
    assert [value.payload for value, _ in found] == [expected.payload for _, expected in found] and not m.ir.lines
    assert {(some & some).payload, (some | some).payload, (~some).payload}.isdisjoint({yes.payload, no.payload}) and len(m.ir.lines) == 3


def test_what_is_rare_is_out_of_the_way() -> None:
    for rare in (False, True):
        m = LlvmMachine()
        for _ in m.If(m.any(m.lane_index(16) == 3), rare=rare):
            m.lane_index(16)
        assert any(line.endswith("!prof !0") for line in map(str, m.ir.lines) if "br i1" in line) is rare
    m = LlvmMachine()
    for _ in m.If(m.any(m.lane_index(16) == 3)):
        m.lane_index(16)
    assert not any("!prof" in line for line in map(str, m.ir.lines)), "what is not said to be rare"


@pytest.mark.parametrize("features, lanes, calls", [
    ("+avx512f,+avx512vl", 16, ["512"]), ("+avx512f", 32, ["512", "512"]), ("+avx512f,+avx512vl", 8, ["256"]),
    ("+avx512f", 8, []), ("+avx2", 16, []), ("+avx512f,+avx512vl", 4, []), ("+avx512f,+avx512vl", 24, []),
])  # fmt: skip
def test_estimates_of_reciprocal_square_roots_by_what_the_target_has(features: str, lanes: int, calls: list[str]) -> None:
    module = LlvmModule(jit.Target("x86_64-unknown-linux-gnu", "", features))
    m = LlvmMachine(module)
    found = m.estimate_rsq(Value(m, BY_NAME["f32"], lanes, "%x"))
    assert [line.split("rsqrt14.ps.")[1][:3] for line in m.ir.lines if "rsqrt14" in line] == calls
    assert (found.lanes if found is not None else 0) == (lanes if calls else 0)


@pytest.mark.parametrize("type, lanes, calls", [("f32", 4, 1), ("f32", 16, 4), ("f32", 6, 0), ("f64", 4, 0)])
def test_neon_estimates_four_reciprocal_square_roots_at_a_time(type: str, lanes: int, calls: int) -> None:
    m = LlvmMachine(LlvmModule(jit.Target("aarch64-unknown-linux-gnu", "", "+neon")))
    found = m.estimate_rsq(Value(m, BY_NAME[type], lanes, "%x"))
    assert [sum(f"neon.{name}.v4f32" in line for line in m.ir.lines) for name in ("frsqrte", "frsqrts")] == [calls] * 2
    assert (found.lanes if found is not None else 0) == (lanes if calls else 0)


def test_an_estimate_of_neon_and_a_step_of_newtons_are_near_the_reciprocal_root() -> None:
    """Where FRSQRTE is within 2^-8 and FRSQRTS is (3 - a b) / 2, as AArch64 has them; both are plain functions here."""
    m = LlvmMachine(LlvmModule(jit.Target("aarch64-unknown-linux-gnu", "", "+neon")))
    found = m.estimate_rsq(Value(m, BY_NAME["f32"], 8, m.ir.emit("load <8 x float>, ptr %x, align 4")))
    assert found is not None
    m.ir.line(f"store <8 x float> {found.payload}, ptr %x, align 4")
    m.ir.line("ret void")
    m.ir.define("void @f(ptr %x)")
    text = "\n".join(line for line in m.ir.module.text().replace("llvm.aarch64.neon.", "").splitlines() if "declare" not in line)
    code = jit.load(text + NEON_ROOTS, ("f",), NOTHING_KEPT)
    numbers = np.array([1, 2, 3, 0.3, 1e-20, 1e20, 7, 1.999], np.float32)
    given = numbers.copy()
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code.address("f"))(given.ctypes.data)
    assert np.allclose(given * np.sqrt(numbers.astype(np.float64)), 1, rtol=0, atol=2.0**-15)


NEON_ROOTS = """
declare <4 x float> @llvm.sqrt.v4f32(<4 x float>)
define <4 x float> @frsqrte.v4f32(<4 x float> %x) {
  %root = call <4 x float> @llvm.sqrt.v4f32(<4 x float> %x)
  %y = fdiv <4 x float> splat (float 1.0), %root
  %bits = bitcast <4 x float> %y to <4 x i32>
  %few = and <4 x i32> %bits, splat (i32 -32768)
  %found = bitcast <4 x i32> %few to <4 x float>
  ret <4 x float> %found
}
define <4 x float> @frsqrts.v4f32(<4 x float> %a, <4 x float> %b) {
  %product = fmul <4 x float> %a, %b
  %rest = fsub <4 x float> splat (float 3.0), %product
  %half = fmul <4 x float> %rest, splat (float 0.5)
  ret <4 x float> %half
}
"""


@pytest.mark.parametrize("triple, features, broadcast, bytes", [("x86_64", "+avx2", True, False), ("aarch64", "+neon", False, True)])
def test_what_depends_on_the_architecture(triple: str, features: str, broadcast: bool, bytes: bool) -> None:
    module = LlvmModule(jit.Target(f"{triple}-unknown-linux-gnu", "", features))
    assert (module.loads_broadcast, module.neon) == (broadcast, not broadcast)
    assert [module.masks_in_bytes(BY_NAME["bool"], lanes) for lanes in (8, 16, 32)] == [False, bytes, bytes]


@pytest.mark.parametrize("features, type, lanes, count, call", [
    ("+avx512f,+avx2", "u32", 16, 16, "llvm.x86.avx512.permvar.si.512"), ("+avx512f,+avx2", "f32", 8, 8, "llvm.x86.avx2.permd"),
    ("+avx2", "i32", 8, 8, "llvm.x86.avx2.permd"), ("+avx2", "u32", 16, 16, ""), ("+avx2", "u32", 8, 4, ""), ("+avx2", "u16", 8, 8, ""),
    ("+sse2", "u32", 8, 8, ""),
])  # fmt: skip
def test_lanes_are_permuted_by_an_instruction_where_the_target_has_it(features: str, type: str, lanes: int, count: int, call: str) -> None:
    m = LlvmMachine(LlvmModule(jit.Target("x86_64-unknown-linux-gnu", "", features)))
    found = m.permute(Value(m, BY_NAME[type], lanes, "%x"), Value(m, BY_NAME["u32"], count, "%i"))
    assert [line for line in map(str, m.ir.lines) if "llvm.x86" in line] == [line for line in map(str, m.ir.lines) if call and call in line]
    assert any(call in str(line) for line in m.ir.lines) and found.lanes == count


@pytest.mark.parametrize("lanes, once", [(4, False), (8, True), (16, True), (32, True)])
def test_lanes_that_are_all_the_same_are_compared_once_where_hosts_keep_masks_as_numbers(lanes: int, once: bool) -> None:
    m = LlvmMachine()
    a, b = (m.broadcast(Value(m, BY_NAME["u32"], 1, name), lanes) for name in ("%a", "%b"))
    assert ("sext i1" in " ".join([(a < b).payload, *map(str, m.ir.lines)])) is once


@pytest.mark.parametrize("name, avoided", [("i8", "-128"), ("i32", "-2147483648"), ("i64", "-9223372036854775808"), ("u32", "")])
def test_divisions_that_overflow_are_by_one_instead(name: str, avoided: str) -> None:
    """On some hosts they trap: by zero, and the lowest signed integer by -1."""
    m, type = LlvmMachine(), BY_NAME[name]
    m.divide_int(Value(m, type, 8, "%a"), Value(m, type, 8, "%b"))
    text = " ".join(map(str, m.ir.lines))
    assert f"icmp eq <8 x i{type.bits}> %b, zeroinitializer" in text
    assert (f"icmp eq <8 x i{type.bits}> %a, splat (i{type.bits} {avoided})" in text) is bool(avoided)
    assert (f"icmp eq <8 x i{type.bits}> %b, splat (i{type.bits} -1)" in text) is bool(avoided)
