"""Engines agree bit for bit on random legal programs; and the programs, the comparison and its shrinking are what they say.

A sample runs always; `-m witness` runs about 2,000 programs and asks that they cover 95 % of the cells of every generation.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from softgen.bits.layout import GENERATIONS
from softgen.eu.check.restrictions import check
from softgen.eu.encoding.decode import decode
from softgen.eu.encoding.encode import encode
from softgen.eu.interpreter import Interpreter, KernelProgram, RunOutcome
from softgen.eu.isa.instruction import Instruction
from softgen.eu.thread.state import ThreadState
from softgen.lanes.numpy.machine import NumpyMachine
from softgen.lanes.types import f32
from tests.eu.random_programs.cases import Case, end, generate
from tests.eu.random_programs.coverage import measure
from tests.eu.random_programs.engines import (
    BUDGET,
    ENGINES,
    OtherNaNs,
    compare,
    execute,
    left_to_reference,
    reference,
    shrink,
    varied,
)
from tests.eu.semantics.build import dst, imm, instr, reg

SAMPLE, MANY = 3, 335
PAIRS = list(combinations(ENGINES, 2)) or [("reference", "reference")]
LEAST = 0.95


class Broken(NumpyMachine):
    """Subtracts the wrong way round."""

    def _compute(self, name, type, lanes, payloads):  # type: ignore[no-untyped-def]
        return super()._compute(name, type, lanes, payloads[::-1] if name == "sub" else payloads)


def broken(thread: ThreadState, code: KernelProgram) -> RunOutcome:
    return Interpreter(thread, code, Broken()).run(BUDGET)


def agree(gen: float, numbers: range) -> None:
    for a, b in PAIRS:
        for number in numbers:
            found = compare(a, b, generate(gen, number))
            if found is not None:
                small = shrink(found.case, lambda case, a=a, b=b: compare(a, b, case) is not None)
                pytest.fail(f"gen {gen:g}, program {number}:\n{compare(a, b, small)}")


@pytest.mark.parametrize("gen", GENERATIONS)
def test_engines_agree(gen: float) -> None:
    agree(gen, range(SAMPLE))


@pytest.mark.witness
@pytest.mark.parametrize("gen", GENERATIONS)
def test_engines_agree_on_many(gen: float) -> None:
    agree(gen, range(MANY))


@pytest.mark.witness
@pytest.mark.parametrize("gen", GENERATIONS)
def test_programs_cover_the_tables(gen: float, capsys: pytest.CaptureFixture[str]) -> None:
    report = measure(gen, range(MANY))
    with capsys.disabled():
        print(f"\n{report.row()}")
    assert report.share >= LEAST, "\n".join(map(str, report.missed))


# -- the programs --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gen", GENERATIONS)
def test_programs_are_legal_and_end(gen: float) -> None:
    for number in range(SAMPLE):
        case = generate(gen, number)
        for made in case.instructions():
            assert not check(made), case.text()
            assert decode(encode(made), gen).opcode == made.opcode
        execute(reference, case)


@pytest.mark.parametrize("gen", GENERATIONS)
def test_a_few_programs_cover_something_of_every_kind(gen: float) -> None:
    report = measure(gen, range(SAMPLE), probe=False)
    assert set(report.reached) == {"types", "region", "shape", "mode", "float", "flow"} and all(report.reached.values())
    assert sum(report.reached.values()) > 300 and report.missed


def test_the_same_number_is_the_same_program() -> None:
    first = generate(9, 5)
    generate.cache_clear()
    assert generate(9, 5) == first and generate(9, 7) != first


# -- comparing -----------------------------------------------------------------------------------------------------


def case_of(gen: float, *items: Instruction, seed: int = 1) -> Case:
    return Case(gen, (*items, end(gen)), 0xFF, 0, seed)


def test_a_broken_engine_is_found_and_its_program_made_small() -> None:
    """The machine subtracts for frc alone (and in extended math), so that is what is left."""
    number = next(number for number in range(200) if compare(reference, broken, generate(9, number)) is not None)
    found = compare(reference, broken, generate(9, number))
    small = shrink(generate(9, number), lambda case: compare(reference, broken, case) is not None)
    left = [item for item in small.items if isinstance(item, Instruction)]
    assert len(left) == 2 and left[0].opcode in ("frc", "math", "subb", "lrp") and left[1].eot
    found = compare(reference, broken, small)
    assert found is not None and found.register[0] in "rfa" and found.values[0] != found.values[1]
    text = str(found)
    assert f"{found.register} differs" in text and "reference: " in text and "broken: " in text and left[0].opcode in text


def test_an_engine_that_fails_is_a_difference() -> None:
    def fails(thread: ThreadState, code: KernelProgram) -> RunOutcome:
        raise ValueError("nothing works")

    found = compare("reference", fails, case_of(9, instr(9, "nop", size=1)))
    assert found is not None and found.register == "the error" and found.values == ("none", "ValueError: nothing works")


def test_an_engine_that_stops_early_is_a_difference() -> None:
    found = compare("reference", lambda thread, code: RunOutcome.OUT_OF_BUDGET, case_of(9, instr(9, "nop", size=1)))
    assert found is not None and "does not end" in found.values[1]


def test_a_register_too_many_is_a_difference() -> None:
    def writes(thread: ThreadState, code: KernelProgram) -> RunOutcome:
        thread.arf["acc_d"][3] ^= 1
        return reference(thread, code)

    found = compare("reference", writes, case_of(9, instr(9, "nop", size=1)))
    assert found is not None and found.register == "acc (whole dwords)"


def test_what_an_engine_leaves_to_the_reference_is_counted() -> None:
    case = case_of(9, instr(9, "nop", size=1), instr(9, "nop", size=1))
    assert left_to_reference(reference, case) == {"nop": 2, "send": 1}


NAN = 0x7FC00000
INF = imm(0x7F800000, "f")
MINUS = imm(0xFF800000, "f")


def of_nan(*more: Instruction) -> Case:
    """r20 is a NaN that arithmetic made."""
    return case_of(9, instr(9, "mov", dst(10, "f"), INF), instr(9, "add", dst(20, "f"), reg(10, "f"), MINUS), *more)


def test_a_nan_of_arithmetic_equals_any_other() -> None:
    for seed in range(3):
        assert compare("reference", varied(seed), of_nan()) is None
        assert execute(varied(seed), of_nan())["r20"] != execute(reference, of_nan())["r20"]


def test_what_follows_from_a_nan_is_open() -> None:
    followed = of_nan(instr(9, "shr", dst(21, "ud"), reg(20, "ud"), imm(4, "ud")), instr(9, "mov", dst(22, "f"), reg(20, "f", negate=True)))
    assert compare("reference", varied(3), followed) is None


def test_where_nans_stand_there_must_be_one() -> None:
    def zeroes(thread: ThreadState, code: KernelProgram) -> RunOutcome:
        found = reference(thread, code)
        thread.register(20)[:] = 0
        return found

    found = compare("reference", zeroes, of_nan())
    assert found is not None and found.register == "r20"


@pytest.mark.parametrize("source", [reg(12, "f"), reg(12, "ud"), reg(12, "f", negate=True)])
def test_moves_keep_nans(source) -> None:  # type: ignore[no-untyped-def]
    """A payload that a move loses is a difference."""
    kind = source.type
    case = case_of(9, instr(9, "mov", dst(12, "ud"), imm(NAN + 5, "ud")), instr(9, "mov", dst(22, kind), source))

    def forgets(thread: ThreadState, code: KernelProgram) -> RunOutcome:
        found = reference(thread, code)
        thread.register(22)[:] = NAN
        return found

    found = compare("reference", forgets, case)
    assert found is not None and found.register == "r22"


def test_other_nans_are_quiet_and_other() -> None:
    for seed in range(4):
        m = OtherNaNs(seed)
        made = m.add(m.value(f32, np.array([np.inf, 1], np.float32)), m.value(f32, np.array([-np.inf, 1], np.float32)))
        bits = made.payload.view(np.uint32)
        assert np.isnan(made.payload[0]) and bits[0] & 1 << 22 and made.payload[1] == 2


def test_shrinking_tries_only_what_ends() -> None:
    """A wait for ever, or a loop without its count, never reaches the engines."""
    tried: list[Case] = []

    def fails(case: Case) -> bool:
        tried.append(case)
        return True

    case = next(generate(9, number) for number in range(1, 40, 2) if "loop" in " ".join(map(str, generate(9, number).items)))
    shrink(replace(case, seed=3), fails)
    assert tried
    for one_of in tried:
        execute(reference, one_of)

