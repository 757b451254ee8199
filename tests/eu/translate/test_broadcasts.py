"""Broadcasts that are hoisted above a rare branch: which reads these are, and that nobody sees a difference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from softgen.eu import engine
from softgen.eu.interpreter import Interpreter, RunOutcome
from softgen.eu.isa.instruction import Instruction
from softgen.eu.translate.broadcasts import MOST, RareBranch, hoisted
from softgen.eu.translate.engine import Translator
from softgen.eu.translate.kernel import Key, translate
from softgen.eu.translate.liveness import FlagUse
from softgen.eu.translate.registers import RegisterAccess
from softgen.lanes.llvm.text import LlvmModule
from softgen.lanes.types import f32
from tests.eu.semantics.build import Listing, dst, end, imm, instr, reg, thread

GEN = 9
RSQ = 5
NUMBERS = np.array([1, 2, 3, 4, 0.1, 1e30, 7, 1e-30, 0.25, 0.3, 11, 12, 13, 14, 15, 16], np.float32)


def read(at: int, lanes: int = 16, place: str = "grf") -> RegisterAccess:
    return RegisterAccess(place, f32, (at,) * lanes, result="%r1")


def write(at: int, place: str = "grf") -> RegisterAccess:
    return RegisterAccess(place, f32, (at,), value="%r2")


def found(*items: Any, before: int = 0) -> list[int]:
    """The places of the accesses that are hoisted."""
    reads = RareBranch(list(items), before).broadcasts({"mrf"})
    return [number for number, item in enumerate(items) if item in reads]


@pytest.mark.parametrize("items, before, expected", [
    ([read(8), read(12)], 0, [0, 1]),
    ([read(8), read(12)], 1, [1]),                                           # what precedes the branch stays
    ([write(8), read(8)], 1, [1]),
    ([write(8), read(8), read(12)], 0, [2]),                                 # written meanwhile
    ([write(5), read(8)], 0, []),
    ([write(4), write(12), read(8)], 0, [2]),                                # neighbours are written
    ([read(8), write(8), read(8)], 0, [0]),
    ([write(8, "acc"), read(8)], 0, [1]),
    ([read(8, lanes=1)], 0, []),                                             # one lane
    ([RegisterAccess("grf", f32, (0, 4, 8, 12), result="%r1")], 0, []),      # different ones
    ([read(8, place="mrf")], 0, []),                                         # an address register may reach it
    ([FlagUse(0, True, 0), read(8)], 0, [1]),
    ([read(4 * number) for number in range(MOST + 2)], 0, list(range(MOST))),
])  # fmt: skip
def test_which_broadcasts_are_hoisted(items: list[Any], before: int, expected: list[int]) -> None:
    assert found(*items, before=before) == expected


def test_each_read_is_hoisted_to_the_first_branch_before_it() -> None:
    """Between two branches that both precede it, it stands once, and everything else in its order."""
    a, b, c = read(8), read(12), write(12)
    items = [c, a, b]
    first, second = RareBranch(items, 0), RareBranch(items, 1)
    assert list(hoisted(["x", first, "y", c, second, "z", a, b, "end"], set())) == ["x", a, "y", c, b, "z", "end"]


def program(*behind: Instruction) -> Listing:
    """Both halves of a root, and what follows."""
    places = ((20, 10, 0), (22, 12, 2))
    halves = [instr(GEN, "math", dst(to, "f"), reg(of, "f"), size=16, quarter=quarter, function=RSQ) for to, of, quarter in places]
    return Listing(GEN, *halves, *behind, end(GEN))


def times(to: int, of: int, scalar: int, sub: int) -> Instruction:
    return instr(GEN, "mul", dst(to, "f"), reg(of, "f"), reg(scalar, "f", "0;1,0", sub=sub), size=16)


@pytest.mark.parametrize("behind", [
    [times(24, 20, 2, 12), times(26, 22, 2, 12)],
    [times(24, 20, 2, 12), instr(GEN, "mov", dst(2, "f", sub=12), imm(0x40400000, "f"), size=1, no_mask=True), times(26, 22, 2, 12)],
    [times(24, 10, 20, 4), times(26, 12, 22, 8)],                            # scalars that the halves themselves write
    [times(2, 20, 2, 12), times(24, 22, 2, 12), times(26, 22, 3, 0)],
])  # fmt: skip
@pytest.mark.parametrize("values", [NUMBERS, np.array([0, -1, np.inf, np.nan] * 4, np.float32)])
def test_nobody_sees_that_they_are_read_earlier(behind: list[Instruction], values: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LlvmModule, "loads_broadcast", True)
    code = program(*behind)
    given = {"r2": NUMBERS[:8], "r3": NUMBERS[8:], "r10": values, "r12": NUMBERS}
    made, expected = (thread(GEN, 0xFFFFFFFF, **given) for _ in range(2))
    assert engine.run("t1", made, code, 99, Translator(observe=True, messages=False)) is RunOutcome.ENDED
    Interpreter(expected, code).run()
    assert made.grf.tobytes() == expected.grf.tobytes()


@pytest.mark.parametrize("loads_broadcast", [False, True])
def test_scalars_are_broadcast_before_the_branch(loads_broadcast: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only where a load broadcasts: the shuffle stands before the label of the rare way, or behind it."""
    monkeypatch.setattr(LlvmModule, "loads_broadcast", loads_broadcast)
    text = translate(program(times(24, 20, 2, 12)), Key(0, 32, True, messages=False)).ir
    assert text.count("shufflevector <1 x float>") == 1
    assert (text.index("shufflevector <1 x float>") < text.index("\nthen")) is loads_broadcast
