"""Calls and returns in translated kernels: the return address is data, and channels return as the mask of their call says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from softgen.eu import engine
from softgen.eu.interpreter import RunOutcome
from softgen.eu.isa.instruction import Instruction
from softgen.eu.thread.block import Context, ThreadStatus
from softgen.eu.thread.state import SINGLE_PROGRAM_FLOW, ThreadState
from softgen.eu.translate import control_flow
from softgen.eu.translate.control_flow import Untranslatable
from softgen.eu.translate.engine import Translator
from softgen.eu.translate.kernel import Key, translate
from tests.eu.semantics.build import NULL, L, Listing, branch, dst, end, imm, instr, reg, scalar, thread

GEN = 9
LANES = np.arange(8, dtype=np.int32)
LINK, OTHER_LINK = 10, 11


def add(number: int, amount: int) -> Instruction:
    return instr(GEN, "add", dst(number), reg(number), imm(amount))


def low(value: int) -> Instruction:
    """f0 holds for the channels below a number."""
    return instr(GEN, "cmp", dst(30), reg(4), imm(value), condition=L)


def call(label: str, link: int = LINK, **controls: int) -> Instruction:
    return branch(GEN, "call", label, None, target=dst(link, "ud"), **controls)


def ret(link: int = LINK, **controls: int) -> Instruction:
    """As it is encoded: the second source is the null register."""
    return branch(GEN, "ret", None, None, reg(link, "ud", "2;2,1"), NULL, **controls)


def same(code: Listing, control: int = 0, limit: int = 100) -> tuple[ThreadState, ThreadState]:
    """The state of a thread after the reference and after t1, which must be equal."""
    threads = []
    for name in ("reference", "t1"):
        made = thread(GEN, r4=LANES)
        made.dwords("cr")[0] |= control
        compiler = None if name == "reference" else Translator(observe=True, messages=False)
        assert engine.run(name, made, code, limit, compiler) is RunOutcome.ENDED
        threads.append(made)
    expected, found = threads
    np.testing.assert_array_equal(found.grf, expected.grf)
    assert (found.executed, found.ip) == (expected.executed, expected.ip)
    return expected, found


def nested() -> Listing:
    """`outer` is called by all channels and by those below 3, and calls `inner` on both sides of an if."""
    return Listing(GEN, call("outer"), add(20, 1), low(3), branch(GEN, "if", "done", "done", predicate=1), call("outer"), add(20, 10),
                   "done", branch(GEN, "endif", "after"), "after", call("inner", OTHER_LINK), end(GEN),
                   "outer", low(5), branch(GEN, "if", "else", "joined", predicate=1), call("inner", OTHER_LINK), add(21, 1),
                   branch(GEN, "else", "joined", "joined"), "else", call("inner", OTHER_LINK), add(21, 100),
                   "joined", branch(GEN, "endif", "back"), "back", ret(),
                   "inner", add(22, 1), ret(OTHER_LINK))  # fmt: skip


def test_a_routine_returns_to_the_call_that_it_came_from() -> None:
    _, found = same(nested())
    assert list(found.register(20).view(np.int32)) == [11] * 3 + [1] * 5
    assert list(found.register(21).view(np.int32)) == [2] * 3 + [1] * 2 + [100] * 3
    assert list(found.register(22).view(np.int32)) == [3] * 3 + [2] * 5


def test_calls_are_translated_and_leave_nothing_to_the_interpreter() -> None:
    code = nested()
    made = translate(code, Key(0, 8, True, messages=False))
    assert [text.split(":")[0].split()[-1] for text in made.escapes] == ["send"]  # the end: there is no memory
    ran = thread(GEN, r4=LANES)
    status = engine.call(Translator(observe=True, messages=False).function(code, 0, 8, True), ran, Context(budget=100))
    assert status is ThreadStatus.ESCAPE and ran.ip == code.labels["outer"] - 16


def test_all_channels_are_active_in_a_routine_that_all_call() -> None:
    code = Listing(GEN, call("sub"), end(GEN), "sub", add(20, 1), ret())
    graph = control_flow.build(code, thread(GEN).rules, single=False, width=8)
    assert graph.blocks[code.labels["sub"]].pending == frozenset() and graph.returns == {16}
    same(code)


def test_channels_without_the_predicate_do_not_call_and_do_not_return() -> None:
    """Those at or above 3 stay after the call; of the others, those below 1 return first."""
    code = Listing(GEN, low(3), call("sub", predicate=1), add(20, 1), end(GEN),
                   "sub", add(21, 1), low(1), ret(predicate=1), add(22, 1), ret())  # fmt: skip
    _, found = same(code)
    assert list(found.register(21).view(np.int32)) == [1] * 3 + [0] * 5
    assert list(found.register(22).view(np.int32)) == [0] + [1] * 2 + [0] * 5


def test_a_call_by_no_channel_stores_nothing() -> None:
    code = Listing(GEN, low(0), call("sub", predicate=1), add(20, 1), end(GEN), "sub", add(21, 1), ret())
    _, found = same(code)
    assert not found.register(LINK).any() and not found.register(21).any()


def test_a_loop_of_calls_is_resumed_when_its_budget_is_spent() -> None:
    code = Listing(GEN, "loop", call("sub"), low(9), add(5, 1), instr(GEN, "cmp", dst(30), reg(5), imm(40), condition=L),
                   branch(GEN, "while", "loop", predicate=1), end(GEN), "sub", add(20, 1), ret())  # fmt: skip
    made, compiler = thread(GEN, r4=LANES), Translator(observe=True, messages=False)
    turns = 0
    while engine.run("t1", made, code, 7, compiler) is RunOutcome.OUT_OF_BUDGET:
        turns += 1
    assert turns > 5 and list(made.register(20).view(np.int32)) == [40] * 8


def test_single_program_flow_calls_with_all_channels() -> None:
    same(nested_single(), SINGLE_PROGRAM_FLOW)


def nested_single() -> Listing:
    return Listing(GEN, call("outer"), add(20, 1), call("inner", OTHER_LINK), low(0), call("outer", predicate=1), end(GEN),
                   "outer", add(21, 1), call("inner", OTHER_LINK), low(3), ret(predicate=1), add(23, 1), ret(),
                   "inner", add(22, 1), ret(OTHER_LINK))  # fmt: skip


# -- returns to where no call was ----------------------------------------------------------------------------------


def overwritten(word: int, value: int) -> Instruction:
    """The link of the last call with another address, or another mask."""
    return instr(GEN, "mov", replace(dst(LINK, "ud"), sub=4 * word), imm(value, "ud"), size=1, no_mask=True)


@pytest.mark.parametrize("word, value", [(0, 3 * 16), (1, 0b1111)])
def test_a_thread_that_returns_elsewhere_is_left_to_the_interpreter(word: int, value: int) -> None:
    """To an address after no call; or with a mask that leaves half of the channels after the return."""
    code = Listing(GEN, call("sub"), add(20, 1), add(20, 10), add(20, 100), end(GEN), "sub", add(21, 1), overwritten(word, value), ret(),
                   add(22, 1), end(GEN))  # fmt: skip
    _, found = same(code)
    assert found.control_block.stray


@pytest.mark.parametrize("code, why", [
    (Listing(GEN, ret(), end(GEN)), "no call to return from"),
    (Listing(GEN, call("sub"), end(GEN), "sub", branch(GEN, "ret", None, None, imm(16))), "no general register"),
    (Listing(GEN, call("sub"), end(GEN), "sub", branch(GEN, "ret", None, None, scalar(0, indirect=True), NULL)), "no general register"),
    (Listing(GEN, call("sub", 128), end(GEN), "sub", ret()), "byte 0x1000"),
    (Listing(GEN, branch(GEN, "call", None, None, scalar(4), target=dst(LINK, "ud")), end(GEN)), "target from a register"),
])  # fmt: skip
def test_what_has_no_translation(code: Listing, why: str) -> None:
    with pytest.raises(Untranslatable, match=why):
        translate(code, Key(0, 8, True))
