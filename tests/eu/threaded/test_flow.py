"""Branches, waits and budgets on handlers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from softgen.errors import GpuFault, SoftgenError
from softgen.eu.encoding import program
from softgen.eu.interpreter import Interpreter, KernelProgram, RunOutcome
from softgen.eu.isa import labels
from softgen.eu.threaded import run
from softgen.eu.threaded.engine import ThreadedEngine
from softgen.eu.threaded.engine import threaded as engine_of
from softgen.eu.threaded.record import OP
from softgen.eu.threaded.write import escape
from tests.eu.semantics.build import Listing, arf, branch, dst, end, imm, instr, reg, scalar, thread

CHANNELED = (7.0, 7.5, 8.0, 9.0, 11.0)


def loop(gen: float, **more: Any) -> Listing:
    """Counts to each channel's own limit, and ends when the last one is there."""
    return Listing(gen, "top", instr(gen, "add", dst(10), reg(10), imm(1)), instr(gen, "cmp", dst(20), reg(10), reg(12), condition=5),
                   branch(gen, "while", "top", predicate=1, **more), end(gen))  # fmt: skip


@pytest.mark.covering(2)
@pytest.mark.parametrize("gen", CHANNELED)
@pytest.mark.parametrize("limit", [1, 2, 3, 100])
@pytest.mark.parametrize("breakpoint", [False, True])
def test_budgets_run_out_where_the_references_do(gen: float, limit: int, breakpoint: bool) -> None:
    """Spent in the middle, gone on with again: the same turns, registers and counts. The reference executes what has a breakpoint."""
    made = [thread(gen, 0xFF, r12=np.array([1, 5, 2, 7, 3, 3, 1, 6], np.int32)) for _ in range(2)]
    code, outcomes = loop(gen, breakpoint=breakpoint), []
    for one_, go in zip(made, (lambda t: Interpreter(t, code).run(limit), lambda t: run(t, code, limit)), strict=True):
        outcomes.append(until_ended(one_, go))
    assert outcomes[0] == outcomes[1]
    first, second = made
    assert first.compare(second.snapshot()) == ()
    assert (first.ip, first.executed, first.ended) == (second.ip, second.executed, second.ended)


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
def test_a_long_branch_costs_more(limit: int) -> None:
    """Two and a half KiB back: three of the budget, which may then be overdrawn."""
    body = [instr(9, "mov", dst(30), imm(1))] * 158
    code = Listing(9, "top", instr(9, "add", dst(10), reg(10), imm(1)), *body, instr(9, "cmp", dst(20), reg(10), reg(12), condition=5),
                   branch(9, "while", "top", predicate=1), end(9))  # fmt: skip
    made = [thread(9, 0xFF, r12=np.full(8, 4, np.int32)) for _ in range(2)]
    found = [until_ended(made[0], lambda t: Interpreter(t, code).run(limit)), until_ended(made[1], lambda t: run(t, code, limit))]
    assert found[0] == found[1] == [RunOutcome.OUT_OF_BUDGET] * (3 // -(-limit // 3)) + [RunOutcome.ENDED]
    assert made[0].executed == made[1].executed and made[0].compare(made[1].snapshot()) == ()


def until_ended(made, go) -> list[RunOutcome]:
    found = []
    while not made.ended:
        found.append(go(made))
    return found


@pytest.mark.parametrize("gen", CHANNELED)
def test_a_loop_runs_without_the_reference(gen: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it but the message at the end."""
    steps = []
    before = Interpreter.step
    monkeypatch.setattr(Interpreter, "step", lambda self: steps.append(self.thread.ip) or before(self))
    made = thread(gen, 0xFF, r12=np.full(8, 50, np.int32))
    assert run(made, loop(gen)) is RunOutcome.ENDED
    assert steps == [48] and made.executed == 151


def table(gen: float, **more: Any) -> Listing:
    """Jumps by a count in r4, over instructions that add 1, 2, 4 and 8 to r10."""
    adds = [instr(gen, "add", dst(10), reg(10), imm(1 << n)) for n in range(4)]
    return Listing(gen, branch(gen, "jmpi", None, None, arf(0xA0), scalar(4), size=1, no_mask=True, **more), *adds, end(gen))


@pytest.mark.covering(2)
@pytest.mark.parametrize("gen", (4.5, *CHANNELED))
@pytest.mark.parametrize("skipped", range(5))
@pytest.mark.parametrize("flag", [None, 0xFE, 0x01])
def test_jumps_by_a_register_run_without_the_reference(gen: float, skipped: int, flag: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """As setup kernels choose the provoking vertex; its predicate is that of channel 0."""
    steps = []
    before = Interpreter.step
    made = thread(gen, 0xFF, r4=np.full(8, skipped * labels.NATIVE // labels.unit(gen, "jmpi"), np.int32), r10=np.zeros(8, np.int32))
    made.dwords("f")[0] = flag or 0
    code = table(gen, predicate=int(flag is not None))
    monkeypatch.setattr(Interpreter, "step", lambda self: steps.append(self.thread.ip) or before(self))
    assert run(made, code) is RunOutcome.ENDED
    taken = skipped if flag != 0xFE else 0
    assert made.register(10).view(np.int32).tolist() == [15 & -1 << taken] * 8
    assert steps == [5 * labels.NATIVE] and made.executed == 6 - taken


@pytest.mark.parametrize("gen", [4.5, 9.0])
def test_jumps_back_by_a_register_count_against_the_budget(gen: float) -> None:
    back = -2 * labels.NATIVE // labels.unit(gen, "jmpi")  # onto the first instruction
    code = Listing(gen, instr(gen, "add", dst(10), reg(10), imm(1)),
                   branch(gen, "jmpi", None, None, arf(0xA0), scalar(4), size=1, no_mask=True), end(gen))  # fmt: skip
    made = thread(gen, 0xFF, r4=np.full(8, back, np.int32), r10=np.zeros(8, np.int32))
    assert run(made, code, 7) is RunOutcome.OUT_OF_BUDGET
    other = thread(gen, 0xFF, r4=np.full(8, back, np.int32), r10=np.zeros(8, np.int32))
    assert Interpreter(other, code).run(7) is RunOutcome.OUT_OF_BUDGET
    assert made.compare(other.snapshot()) == () and (made.ip, made.executed) == (other.ip, other.executed) and made.executed > 2


@pytest.mark.covering(1)
@pytest.mark.parametrize("gen", (4.5, *CHANNELED))
@pytest.mark.parametrize("count", [1 << 20, -(1 << 20), -64, 0x7FFFFFFF, -0x80000000, 7])
def test_jumps_by_a_register_to_where_nothing_is_are_the_references_errors(gen: float, count: int) -> None:
    """In whatever unit: before the program, past its end, between instructions. An ip has 32 bits: some come round to an instruction."""
    outcomes = []
    for go in (lambda made, code: run(made, code, 100), lambda made, code: Interpreter(made, code).run(100)):
        made = thread(gen, 0xFF, r4=np.full(8, count, np.int32), r10=np.zeros(8, np.int32))
        try:
            outcomes.append(str(go(made, table(gen))))
        except SoftgenError as error:
            outcomes.append(f"{type(error).__name__}: {str(error).split(' at ')[0]} at {made.ip & 0xFFFFFFFF:#x}")
        outcomes.append(made.register(10).tobytes().hex())
    assert outcomes[:2] == outcomes[2:]


def test_a_wait_takes_a_notification_or_waits() -> None:
    notification = arf(0x90, "ud", region="0;1,0")
    code = Listing(9, instr(9, "wait", notification, notification, size=1, no_mask=True), instr(9, "mov", dst(3), imm(7)), end(9))
    made = thread(9)
    assert run(made, code) is RunOutcome.WAITING and made.waiting == 0 and made.ip == 0 and made.executed == 0
    made.dwords("n")[0] = 2
    assert run(made, code) is RunOutcome.ENDED
    assert made.dwords("n")[0] == 1 and made.waiting is None and made.register(3)[0] == 7


def test_a_thread_in_the_middle_of_a_program_goes_on_there() -> None:
    """And what it had not linked yet, because nothing leads there, is linked then."""
    code = Listing(9, instr(9, "mov", dst(3), imm(1)), end(9), "island", instr(9, "mov", dst(4), imm(2)), end(9))
    linked = engine_of(9.0).link(code, 0, messages=False)
    assert 32 not in linked.known
    made = thread(9)
    made.ip, made.channel_ip = 32, [32] * 32
    assert run(made, code) is RunOutcome.ENDED
    assert (made.register(3)[0], made.register(4)[0]) == (0, 2)
    assert 32 in engine_of(9.0).link(code, 0, 32, messages=False).known


def test_a_function_is_held_until_its_program_is_linked_again() -> None:
    """A dispatcher asks again for one that does not know where a thread is now."""
    code = Listing(9, instr(9, "mov", dst(3), imm(1)), end(9), "island", instr(9, "mov", dst(4), imm(2)), end(9))
    engine = ThreadedEngine(messages=False)
    first = engine.function(code, 0, 8)
    assert engine.holds(code, first) and engine.function(code, 0, 8).owner is first.owner
    second = engine.function(code, 0, 8, entry=code.labels["island"])
    assert second.owner is not first.owner and engine.holds(code, second) and not engine.holds(code, first)
    assert engine.function(code, 0, 8).owner is second.owner, "it has the beginning as well"


def test_a_program_that_is_linked_again_has_all_that_threads_were_found_in() -> None:
    """And keeps what it replaces, which a thread may still run. Where no instruction is, there is nothing to link again for."""
    islands = [instr(9, "mov", dst(4), imm(2)), end(9)]
    code, engine = Listing(9, instr(9, "mov", dst(3), imm(1)), end(9), "a", *islands, "b", *islands), engine_of(9.0)
    first = engine.link(code, 0, messages=False)
    second = engine.link(code, 0, code.labels["a"], messages=False)
    third = engine.link(code, 0, code.labels["b"], messages=False)
    assert [sorted(linked.known) for linked in (first, second, third)] == [[0, 16], [0, 16, 32, 48], [0, 16, 32, 48, 64, 80]]
    assert third.before is second and second.before is first and first.before is None
    assert engine.link(code, 0, 0x1000, messages=False) is engine.link(code, 0, code.labels["a"], messages=False) is third


@pytest.mark.parametrize("breakpoint", [False, True])
def test_a_jump_onto_itself_spends_the_budget(breakpoint: bool) -> None:
    """Also where the reference executes it."""
    made, code = thread(9), Listing(9, "here", branch(9, "jmpi", "here", size=1, no_mask=True, breakpoint=breakpoint), end(9))
    assert run(made, code, 5) is RunOutcome.OUT_OF_BUDGET and made.executed == 5 and made.ip == 0


@pytest.mark.parametrize("gen", CHANNELED)
def test_a_break_to_the_first_instruction_of_a_program_goes_behind_it(gen: float) -> None:
    """As behind any other while: what stands first is not executed again."""
    turns = instr(gen, "cmp", dst(21), reg(20), imm(3), condition=5)
    code = Listing(gen, "first", branch(gen, "while", "far", predicate=1), instr(gen, "add", dst(20), reg(20), imm(1)), turns,
                   branch(gen, "break", "first", "first", predicate=1), instr(gen, "add", dst(20), reg(20), imm(10)), end(gen),
                   "far", instr(gen, "add", dst(20), reg(20), imm(100)), end(gen))  # fmt: skip
    made = [thread(gen) for _ in range(2)]
    assert Interpreter(made[0], code).run(9) is run(made[1], code, 9) is RunOutcome.ENDED
    assert [list(state.register(20)) for state in made] == [[13] * 8] * 2 and made[0].executed == made[1].executed


@pytest.mark.parametrize("opcode, jip, uip, left", [
    ("if", "on", "on", False), ("if", -4096, "on", True), ("if", "on", -4096, True), ("if", -4096, -4096, True),
    ("break", "on", "on", False), ("break", "on", 0x4000, True), ("endif", "on", None, False), ("endif", -4096, None, True),
])  # fmt: skip
def test_a_branch_that_leads_nowhere_is_left_to_the_reference(opcode: str, jip: str | int, uip: str | int | None, left: bool) -> None:
    """With either of its targets: before the first address, or, for a break, to where no loop ends."""
    code = Listing(9, branch(9, opcode, jip, uip, predicate=0 if uip is None else 1), "on", instr(9, "mov", dst(3), imm(1)), end(9))
    records = engine_of(9.0).link(code, 0, messages=False).ops.view(OP)
    assert (records["function"][records["ip"] == 0] == escape()).all() == left
    made = [thread(9), thread(9)]
    for state in made:
        state.arf["f"][0] = 0xFF if opcode == "if" else 0
    outcomes = []
    for state, go in zip(made, (lambda t: Interpreter(t, code).run(), lambda t: run(t, code)), strict=True):
        try:
            outcomes.append(str(go(state)))
        except GpuFault as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1] and made[0].compare(made[1].snapshot()) == ()
    assert (outcomes[1] == str(RunOutcome.ENDED)) == (not left or opcode != "break"), "a break looks at its loop, others where they go"


@pytest.mark.parametrize("target", [0, 16, 48])
def test_a_branch_to_before_its_kernel_is_reported_as_the_reference_does(target: int) -> None:
    """Nothing is at such an address, the instruction base itself among them."""
    words = program.assemble([instr(9, "mov", dst(3), imm(1)), branch(9, "while", target - 80, predicate=1), end(9)])
    made, outcomes = [thread(9), thread(9)], []
    for state, go in zip(made, (lambda t, code: Interpreter(t, code).run(), run), strict=True):
        state.ip, state.channel_ip, state.arf["f"][0] = 64, [64] * 32, 0xFF
        with pytest.raises(GpuFault) as caught:
            go(state, KernelProgram(9, words, 64))
        outcomes.append(str(caught.value))
    assert outcomes[0] == outcomes[1] and made[0].compare(made[1].snapshot()) == ()
    assert made[1].ip == target


def test_channels_wait_across_a_change_of_mode() -> None:
    """Those that left before cr0 was written are woken where they wait, behind it."""
    control = arf(0x80, "ud", region="0;1,0")
    code = Listing(9, branch(9, "goto", "there", "there", predicate=1), instr(9, "mov", dst(3), imm(1)),
                   instr(9, "or", replace(control, horizontal=1), control, imm(0x10, "ud"), size=1, no_mask=True),
                   instr(9, "mov", dst(4), imm(2)), "there", branch(9, "join", "on"),
                   "on", instr(9, "mov", dst(5), imm(3)), end(9))  # fmt: skip
    made = [thread(9), thread(9)]
    for one_, go in zip(made, (lambda t: Interpreter(t, code).run(), lambda t: run(t, code)), strict=True):
        one_.arf["f"][0] = 0x0F
        go(one_)
        assert list(one_.register(5)) == [3] * 8 and sorted(set(one_.register(4))) == [0, 2]
    assert made[0].compare(made[1].snapshot()) == ()


@pytest.mark.parametrize("gen", [4.5, 7, 9])
@pytest.mark.parametrize("flags, taken", [(0x0001, True), (0x8000, True), (0x10000, False)])
def test_a_branch_for_half_a_group_that_asks_the_whole_group_has_a_handler(gen: float, flags: int, taken: bool) -> None:
    """any16h of channels 8 to 15: its flags are not those of channel 0 moved."""
    code = Listing(gen, branch(gen, "if", "end", "end", predicate=10, quarter=1), replace(instr(gen, "mov", dst(4), imm(1)), quarter=1),
                   "end", branch(gen, "endif", "after", quarter=1), "after", end(gen))  # fmt: skip
    made = [thread(gen, 0xFF00) for _ in range(2)]
    for state, go in zip(made, (lambda t: Interpreter(t, code).run(), lambda t: run(t, code)), strict=True):
        state.dwords("f")[0] = flags
        go(state)
        assert list(state.register(4)) == [int(taken)] * 8
    assert made[0].compare(made[1].snapshot()) == ()
