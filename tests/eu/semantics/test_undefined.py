"""What Ivy Bridge leaves undefined, and its floats at their limits: what softgen does there, on every engine (docs/accuracy.md)."""

from __future__ import annotations

import re

import numpy as np
import pytest

from softgen.errors import GpuFault, SoftgenError
from softgen.eu import engine as engines
from softgen.eu.encoding.decode import decode
from softgen.eu.interpreter import RunOutcome
from softgen.eu.isa import opcodes
from softgen.eu.isa.instruction import Instruction, Operand
from softgen.eu.thread.exceptions import BREAKPOINT, EXTERNAL_HALT, ILLEGAL, SOFTWARE
from softgen.eu.translate.engine import Translator
from tests.eu.semantics.build import CHOSEN, Listing, O, arf, dst, end, engine, imm, instr, reg, run, scalar, thread  # noqa: F401

ACC0 = 0x20
INV, LOG, EXP, SQRT, RSQ = 1, 2, 3, 4, 5
NO_SECOND = Operand("arf", "f", 0, vertical=8, width=8, horizontal=1)
FMAX = np.float32(3.4028235e38)
STACK_OVERFLOW_ENABLE = 1 << 11


def floats(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def accumulator(kind: str) -> Operand:
    return Operand("arf", kind, ACC0, horizontal=1)


def vector(number: int) -> Operand:
    return Operand("grf", "f", number, vertical=4, swizzle=0b11100100)


def single(made: object, number: int) -> list[float]:
    return made.register(number).view(np.float32).tolist()  # type: ignore[attr-defined, no-any-return]


def math(function: int, target: int, source: int) -> Instruction:
    return instr(7, "math", dst(target, "f"), reg(source, "f"), NO_SECOND, function=function)


# -- floats ----------------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("EU-80", shows="action")
def test_fused_operations_overflow_in_between_but_for_mad() -> None:
    """IVB 919-923 permits infinity and the result in range; dp4 and mac round at every step, mad rounds once."""
    made = thread(7, r4=np.tile(floats(3e38, 3e38, -3e38, -3e38), 2), r5=np.ones(8, np.float32), r6=np.full(8, 2, np.float32),
                  r10=np.full(8, 3e38, np.float32), r11=np.full(8, -3e38, np.float32))  # fmt: skip
    run(made, instr(7, "dp4", Operand("grf", "f", 20, horizontal=1, write_mask=15), vector(4), vector(5), align16=True),
        instr(7, "mul", accumulator("f"), reg(10, "f"), reg(6, "f")), instr(7, "mac", dst(21, "f"), reg(11, "f"), reg(6, "f")),
        instr(7, "mad", Operand("grf", "f", 22, write_mask=15), vector(11), vector(10), vector(6)))  # fmt: skip
    assert single(made, 20) == [np.inf] * 8 == single(made, 21)
    assert made.register(22).view(np.float32).tolist() == [float(np.float32(3e38))] * 8


@pytest.mark.behaviour("EU-81", "EU-167", shows="action")
def test_float_accumulators_are_as_precise_as_registers_and_no_more() -> None:
    """IVB 925-926 permits more; the table has exactly the precision of a register (IVB 2034-2037): 1 + 2^-24 is rounded in both."""
    made = thread(7, r4=floats(*[1] * 8), r5=floats(*(2.0**-24 * n for n in range(8))))
    run(made, instr(7, "add", accumulator("f"), reg(4, "f"), reg(5, "f")), instr(7, "add", dst(20, "f"), reg(4, "f"), reg(5, "f")),
        instr(7, "add", dst(21, "f"), arf(ACC0, "f"), imm(0xBF800000, "f")),
        instr(7, "add", dst(22, "f"), reg(20, "f"), imm(0xBF800000, "f")))  # fmt: skip
    assert single(made, 21) == single(made, 22) == [0, 0, 2.0**-23, 2.0**-22, 2.0**-22, 2.0**-22, 6 * 2.0**-24, 2.0**-21]


@pytest.mark.behaviour("EU-82", shows="action")
def test_a_division_is_a_reciprocal_and_a_product_each_rounded() -> None:
    """IVB 928-930: 1/y to one unit in the last place, then a product that is rounded right; not the quotient rounded once."""
    x, y = floats(1, 10, 41, -7, 5e-20, 3e38, 1, 2), floats(3, 10, 41, 3, 7e9, -3, -41, 3)
    made = thread(7, r4=x, r5=y)
    run(made, math(INV, 20, 5), instr(7, "mul", dst(21, "f"), reg(4, "f"), reg(20, "f")))
    inverse = made.register(20).view(np.float32)
    assert (np.abs(inverse.astype(np.float64) - 1 / y.astype(np.float64)) <= np.spacing(np.abs(inverse))).all()
    assert single(made, 21) == (x * inverse).tolist()
    assert float(made.register(21).view(np.float32)[2]) != 1.0, "41 x (1/41)"


@pytest.mark.behaviour("EU-88", "EU-78", shows="action")
def test_no_float_operation_traps() -> None:
    """IVB 890-891: every exception is enabled, and the system routine is never entered; infinities and NaNs are results and flags."""
    made = thread(7, r4=floats(0, -0.0, -1, np.inf, np.nan, 3e38, 1e-40, 1), r5=floats(0, 0, 0, -np.inf, 1, 3e38, 1e-30, 0))
    enables = BREAKPOINT.enable | EXTERNAL_HALT.enable | SOFTWARE.enable | ILLEGAL.enable | STACK_OVERFLOW_ENABLE
    made.dwords("cr")[1] = enables
    body = [*(math(function, 20 + function, 4) for function in (INV, LOG, EXP, SQRT, RSQ)),
            instr(7, "add", dst(30, "f"), reg(4, "f"), reg(5, "f"), condition=O),
            instr(7, "mul", dst(31, "f"), reg(4, "f"), reg(5, "f")), instr(7, "mov", dst(32, "d"), reg(5, "f")),
            instr(7, "mov", dst(33, "d"), imm(1)), end(7)]  # fmt: skip
    listing = Listing(7, *body, "routine", instr(7, "mov", dst(33, "d"), imm(2)), end(7))
    made.system_routine = listing.labels["routine"]
    translator = Translator(observe=True, messages=False) if CHOSEN[-1] == "t1" else None
    assert engines.run(CHOSEN[-1], made, listing, 1000, translator) is RunOutcome.ENDED
    assert made.dwords("cr")[1] == enables and made.register(33)[0] == 1
    assert single(made, 21)[:2] == [np.inf, -np.inf] and np.isnan(single(made, 24)[2]) and np.isnan(single(made, 30)[3])
    assert made.flags & 0xFF == 0b00100000, "3e38 + 3e38 alone overflows"


@pytest.mark.behaviour("EU-94", "EU-95", shows="action")
def test_reciprocals_of_zero_and_what_alt_mode_is_not_for() -> None:
    """IVB 1075-1136: 1/0 gives fmax, as every infinity; infinities and denormals are read as EU-89 says, NaN as 0."""
    made = thread(7, r4=floats(0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, -4), r5=floats(*[2] * 8))
    made.dwords("cr")[0] = 1
    run(made, math(INV, 20, 4), math(RSQ, 21, 4), instr(7, "mul", dst(22, "f"), reg(4, "f"), imm(0, "f")),
        instr(7, "mul", dst(23, "f"), reg(4, "f"), reg(5, "f")))  # fmt: skip
    top, low = float(FMAX), float(np.float32(5.421010862427522e-20))
    assert single(made, 20) == [top, -top, 0, 0, top, top, -top, -0.25]
    assert single(made, 21) == [top, top, low, low, top, top, top, 0.5]
    assert single(made, 22) == [0] * 8 and single(made, 23) == [0, 0, top, -top, 0, 0, 0, -8]


@pytest.mark.behaviour("EU-108", shows="action")
def test_the_upper_dwords_behind_floats_made_of_doubles_stay_as_they_were() -> None:
    """IVB 1222 leaves them undefined."""
    made = thread(7, r4=np.array([1.5, -2.5, 1e300, 5e-324]), r8=np.full(8, 0xDEADBEEF, np.uint32))
    run(made, instr(7, "mov", dst(8, "f"), reg(4, "df")))
    assert made.register(8)[1::2].tolist() == [0xDEADBEEF] * 4
    assert made.register(8).view(np.float32)[::2].tolist() == [1.5, -2.5, float(FMAX), 0]


# -- integers --------------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("EU-28", shows="action")
def test_a_negated_unsigned_dword_has_33_bits() -> None:
    """IVB 2014-2016: -FFFFFFFF is below every D. As a factor its product is unpredictable; softgen keeps 64 bits of it."""
    made = thread(7, 1, r4=np.array([0xFFFFFFFF, 3], np.uint32))
    low = scalar(4, "ud", 0, negate=True)
    run(made, instr(7, "add", dst(20), low, imm(5), size=1, saturate=True), instr(7, "mov", dst(21), low, size=1),
        instr(7, "add", dst(22), low, scalar(4, "ud", 0), size=1, saturate=True),
        instr(7, "mul", accumulator("d"), low, scalar(4, "uw", 4), size=1))  # fmt: skip
    assert [int(made.register(number).view(np.int32)[0]) for number in (20, 21, 22)] == [-(2**31), 1, 0]
    assert made.arf["acc_d"].view(np.int64)[0] == -0xFFFFFFFF * 3


@pytest.mark.behaviour("EU-170", shows="action")
def test_sums_of_products_of_words_beyond_33_bits_are_right_modulo_their_bits() -> None:
    """IVB 2018-2023: FFFF x FFFF twice reaches bit 32. The low bits are right; saturation, which is unpredictable, sees the exact sum."""
    made = thread(7, r4=np.full(16, 0xFFFF, np.uint16), r5=np.arange(0xFFF8, 0x10000, dtype=np.uint16))
    pair = reg(4, "uw"), reg(5, "uw")
    run(made, instr(7, "mul", accumulator("uw"), *pair), instr(7, "mac", dst(20, "uw"), *pair),
        instr(7, "mac", dst(21, "uw"), *pair, saturate=True))  # fmt: skip
    held = [made.register(number).view(np.uint16)[:8].tolist() for number in (20, 21)]
    assert held == [[2 * 0xFFFF * (0xFFF8 + n) & 0xFFFF for n in range(8)], [0xFFFF] * 8]


# -- registers and encodings -----------------------------------------------------------------------------------------------


@pytest.mark.behaviour("EU-133", shows="action")
def test_registers_behind_the_payload_start_as_zeros() -> None:
    """IVB 1626-1628 does not initialise them."""
    made = thread(7, r2=np.full(8, 5, np.int32))
    run(made, instr(7, "add", dst(20), reg(90), reg(2)), instr(7, "mov", dst(21), arf(ACC0, "d")))
    assert made.register(20).tolist() == [5] * 8 and made.register(21).tolist() == [0] * 8


@pytest.mark.behaviour("EU-135", shows="action")
@pytest.mark.parametrize(("address", "offset", "fine"), [(4064, 0, True), (4068, 0, False), (0, -4, False), (4000, 511, False),
                                                       (4095, 0, False)])  # fmt: skip
@pytest.mark.parametrize("writes", [False, True])
def test_addresses_outside_the_file_are_an_error_that_names_the_instruction(address: int, offset: int, fine: bool, writes: bool) -> None:
    """IVB 1646-1647: unpredictable on hardware; nothing is changed before the error."""
    made = thread(7, r4=np.full(8, 7, np.int32), r127=np.arange(8, dtype=np.int32), r20=np.full(8, 1, np.int32))
    made.arf["a"].view(np.uint16)[0] = address
    there = Operand("grf", "d", indirect=True, offset=offset, vertical=8, width=8, horizontal=1)
    inst = instr(7, "mov", there, reg(4)) if writes else instr(7, "mov", dst(20), there)
    if fine:
        run(made, inst)
        assert made.register(127 if writes else 20).tolist() == ([7] * 8 if writes else list(range(8)))
        return
    before = made.grf.tobytes()
    with pytest.raises(GpuFault, match=re.escape("mov(8)")):
        run(made, inst)
    assert made.grf.tobytes() == before


@pytest.mark.behaviour("EU-236", shows="action")
@pytest.mark.parametrize("number", [number for number in range(128) if opcodes.numbered(number, 7.0) is None])
def test_reserved_opcodes_are_an_error_and_change_nothing_before(number: int) -> None:
    """IVB 512-517: undefined on hardware, and not confined to the instruction; here what was executed before it stays as it was."""
    made = thread(7)
    with pytest.raises(SoftgenError, match=f"opcode {number} is not an instruction of gen 7"):
        run(made, instr(7, "mov", dst(20), imm(3)), decode(number, 7.0), instr(7, "mov", dst(20), imm(4)))
    assert made.register(20).tolist() == [3] * 8 and made.ip == 16
