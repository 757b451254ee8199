"""Flow control: every branch, nested and divergent, against what each channel alone would have done."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from softgen.errors import DecodeError, GpuFault
from softgen.eu.interpreter import RunOutcome
from softgen.eu.isa.instruction import Instruction
from softgen.eu.thread.state import SINGLE_PROGRAM_FLOW, ThreadState
from tests.eu.semantics.build import GE, NULL, NZ, L, Z, arf, branch, dst, engine, imm, instr, reg, run, scalar, thread  # noqa: F401

FLOWS = [7, 7.5, 8, 9, 11]
LANES = np.arange(8, dtype=np.int32)


def note(gen: float, amount: int, number: int = 20) -> Instruction:
    """Adds to r20: the sum says where a channel has been."""
    return instr(gen, "add", dst(number), reg(number), imm(amount))


def compare(gen: float, number: int, condition: int, value: int, flag: int = 0) -> Instruction:
    return instr(gen, "cmp", arf(0, "d"), reg(number), imm(value), condition=condition, flag=flag)


def sums(made: ThreadState, number: int = 20) -> list[int]:
    return [int(value) for value in made.register(number).view(np.int32)]


@pytest.mark.behaviour("EU-09", shows="action")
@pytest.mark.parametrize("gen", FLOWS)
def test_if_and_else(gen: float) -> None:
    made = thread(gen, r4=LANES)
    run(made, compare(gen, 4, L, 3), branch(gen, "if", "else", "end", predicate=1), note(gen, 1), branch(gen, "else", "end", "end"), "else",
        note(gen, 10), "end", branch(gen, "endif", "after"), "after", note(gen, 100))
    assert sums(made) == [101] * 3 + [110] * 5


@pytest.mark.covering(1)
@pytest.mark.parametrize("gen", FLOWS)
@pytest.mark.parametrize("flags, want", [(0x0001, 1), (0x8000, 1), (0x10000, 10), (0, 10)])
def test_a_branch_for_half_a_group_asks_the_whole_group(gen: float, flags: int, want: int) -> None:
    """any16h of channels 8 to 15 looks at the flags of channels 0 to 15."""
    made = thread(gen, 0xFF00)
    made.dwords("f")[0] = flags
    run(made, branch(gen, "if", "else", "end", predicate=10, quarter=1), replace(note(gen, 1), quarter=1),
        branch(gen, "else", "end", "end", quarter=1), "else", replace(note(gen, 10), quarter=1), "end",
        branch(gen, "endif", "after", quarter=1), "after")
    assert sums(made) == [want] * 8


@pytest.mark.behaviour("BDW-EU-21", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("gen", FLOWS)
@pytest.mark.parametrize("limit", [0, 8])
def test_an_empty_side_is_jumped_over(gen: float, limit: int) -> None:
    """Nobody takes one side: what is marked NoMask there does not run."""
    made = thread(gen, r4=LANES)
    poison = instr(gen, "mov", dst(30), imm(1), no_mask=True)
    run(made, compare(gen, 4, L, limit), branch(gen, "if", "else", "end", predicate=1), poison if not limit else note(gen, 1),
        branch(gen, "else", "end", "end"), "else", note(gen, 10) if not limit else poison, "end", branch(gen, "endif", "after"), "after")
    assert sums(made) == [1 if limit else 10] * 8 and sums(made, 30) == [0] * 8


@pytest.mark.behaviour("BDW-EU-21", shows="action")
@pytest.mark.parametrize("gen", [8, 9])
def test_else_with_branch_control(gen: float) -> None:
    """JIP is an instruction before endif, UIP endif: as compilers write it for these generations."""
    made = thread(gen, r4=LANES)
    run(made, compare(gen, 4, L, 3), branch(gen, "if", "else", "end", predicate=1), note(gen, 1),
        branch(gen, "else", "nop", "end", branch_control=True), "else", note(gen, 10), "nop", instr(gen, "nop"), "end",
        branch(gen, "endif", "after"), "after", note(gen, 100))
    assert sums(made) == [101] * 3 + [110] * 5


@pytest.mark.parametrize("gen", FLOWS)
def test_nested_ifs(gen: float) -> None:
    made = thread(gen, r4=LANES)
    run(made, compare(gen, 4, GE, 2), branch(gen, "if", "end", "end", predicate=1), note(gen, 1),
        compare(gen, 4, GE, 5), branch(gen, "if", "else", "inner", predicate=1), note(gen, 10), branch(gen, "else", "inner",
        "inner"), "else",
        note(gen, 100), "inner", branch(gen, "endif", "end"), note(gen, 1000), "end", branch(gen, "endif", "after"), "after")
    assert sums(made) == [0, 0, 1101, 1101, 1101, 1011, 1011, 1011]


@pytest.mark.parametrize("gen", FLOWS)
def test_a_loop_with_break_and_continue(gen: float) -> None:
    """for i = 1…: break where i > lane; continue where i is odd; sum += 1 otherwise."""
    made = thread(gen, r4=LANES)
    i = instr(gen, "add", dst(5), reg(5), imm(1))
    run(made, "loop", i, instr(gen, "cmp", arf(0, "d"), reg(5), reg(4), condition=3), branch(gen, "break", "while", "while", predicate=1),
        instr(gen, "and", dst(6), reg(5), imm(1), condition=NZ), branch(gen, "cont", "while", "while", predicate=1), note(gen, 1),
        "while", branch(gen, "while", "loop"), note(gen, 100))
    assert sums(made) == [100 + lane // 2 for lane in range(8)]


@pytest.mark.behaviour("BDW-EU-22", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("gen", FLOWS)
@pytest.mark.parametrize("opcode, want", [("break", [101, 101, 120, 120]), ("cont", [102, 102, 120, 120])])
def test_where_the_thread_goes_and_where_its_channels_wait(gen: float, opcode: str, want: list[int]) -> None:
    """Two channels of four leave inside an `if`: they wait at UIP, the `while`, and miss what stands before it; the thread goes to JIP, the
    end of the `if`, where the other two wait (BDW 17550-17553, 18440-18444). Two turns."""
    made = thread(gen, 0xF, r4=LANES)
    run(made, "loop", instr(gen, "add", dst(5), reg(5), imm(1)), compare(gen, 5, L, 2, flag=1), compare(gen, 4, L, 2),
        branch(gen, "if", "endif", "endif", predicate=1), note(gen, 1), branch(gen, opcode, "endif", "while"), note(gen, 5000),
        "endif", branch(gen, "endif", "while"), note(gen, 10), "while", branch(gen, "while", "loop", predicate=1, flag=1), note(gen, 100))
    assert sums(made)[:4] == want


@pytest.mark.behaviour("BDW-EU-22", shows="action")
@pytest.mark.parametrize("gen", FLOWS)
def test_single_program_flow_leaves_and_repeats_a_loop_by_uip(gen: float) -> None:
    """JIP leads to what nobody may run (BDW 17553, 18444)."""
    made = thread(gen)
    made.dwords("cr")[0] = SINGLE_PROGRAM_FLOW
    run(made, "loop", note(gen, 1), instr(gen, "cmp", arf(0, "d"), reg(20), imm(3), condition=GE),
        branch(gen, "break", "wrong", "while", predicate=1), branch(gen, "cont", "wrong", "while"), "wrong", note(gen, 5000),
        "while", branch(gen, "while", "loop"), note(gen, 100))
    assert sums(made) == [103] * 8


@pytest.mark.parametrize("gen", FLOWS)
def test_break_inside_an_if_inside_a_loop(gen: float) -> None:
    made = thread(gen, r4=LANES)
    run(made, "loop", instr(gen, "add", dst(5), reg(5), imm(1)), instr(gen, "cmp", arf(0, "d"), reg(5), reg(4), condition=GE),
        branch(gen, "if", "endif", "endif", predicate=1), note(gen, 10), branch(gen, "break", "endif", "while"), note(gen, 5000),
        "endif", branch(gen, "endif", "while"), note(gen, 1), "while", branch(gen, "while", "loop"), note(gen, 100))
    assert sums(made) == [110, *(110 + lane - 1 for lane in range(1, 8))]


@pytest.mark.parametrize("gen", FLOWS)
def test_a_loop_with_its_condition_at_the_end(gen: float) -> None:
    made = thread(gen, r4=LANES)
    run(made, "loop", note(gen, 1), instr(gen, "add", dst(4), reg(4), imm(-1 & 0xFFFFFFFF), condition=3), branch(gen, "while",
        "loop", predicate=1))
    assert sums(made) == [1, 1, 2, 3, 4, 5, 6, 7]


@pytest.mark.behaviour("BDW-EU-23", shows="action")
@pytest.mark.parametrize("gen", FLOWS)
def test_halt(gen: float) -> None:
    made = thread(gen, r4=LANES)
    run(made, compare(gen, 4, L, 3), branch(gen, "if", "end", "end", predicate=1), note(gen, 1), compare(gen, 4, Z, 1),
        branch(gen, "halt", "end", "stop", predicate=1), note(gen, 10), "end", branch(gen, "endif", "after"), "after", note(gen, 100),
        "stop", branch(gen, "halt", "out", "out"), "out", note(gen, 1000))
    assert sums(made) == [1111, 1001, 1111, *[1100] * 5]


@pytest.mark.behaviour("BDW-EU-24", shows="action")
@pytest.mark.parametrize("gen", [8, 9, 11])
def test_goto_and_join(gen: float) -> None:
    """Until gen 9 the channels without the predicate leave, from gen 11 on those with it."""
    made = thread(gen, r4=LANES)
    run(made, compare(gen, 4, L, 3), branch(gen, "goto", "join", "join", predicate=1), note(gen, 1), "join", branch(gen, "join", "after"),
        "after", note(gen, 10))
    stay = [11] * 3 + [10] * 5
    assert sums(made) == (stay if gen != 11 else [10] * 3 + [11] * 5)


@pytest.mark.behaviour("BDW-EU-24", shows="action")
@pytest.mark.parametrize("gen", [8, 9, 11])
def test_goto_back_with_branch_control(gen: float) -> None:
    """A loop: channels whose predicate holds go back, the others wait at the join after it."""
    made = thread(gen, r4=LANES)
    run(made, "loop", note(gen, 1), instr(gen, "add", dst(4), reg(4), imm(-1 & 0xFFFFFFFF), condition=3),
        branch(gen, "goto", "next", "loop", predicate=1, branch_control=True), "next", branch(gen, "join", "out"), "out", note(gen, 100))
    assert sums(made) == [101, 101, 102, 103, 104, 105, 106, 107]


def test_join_wakes_only_channels_with_the_predicate() -> None:
    made = thread(9, r4=LANES)
    made.dwords("f")[1] = 0x0F
    run(made, branch(9, "goto", "join", "join", predicate=1, flag=1), "join", branch(9, "join", "after", predicate=1, flag=1),
        "after", note(9, 1))
    assert sums(made) == [1] * 4 + [0] * 4


@pytest.mark.parametrize("gen", [8, 9, 11])
def test_channels_that_stayed_at_a_join_go_on_when_others_come_back_to_it(gen: float) -> None:
    """In the second turn all have the predicate."""
    made = thread(gen)
    made.dwords("f")[1] = 0x0F
    run(made, "join", branch(gen, "join", "after", predicate=1, flag=1), "after", note(gen, 1),
        instr(gen, "mov", arf(0x31, "uw"), imm(0xFF, "uw"), size=1, no_mask=True),
        instr(gen, "add", dst(30), reg(30), imm(1), no_mask=True), instr(gen, "cmp", NULL, reg(30), imm(2), condition=L, no_mask=True),
        branch(gen, "while", "join", predicate=1), note(gen, 10))
    assert sums(made) == [12] * 4 + [11] * 4


@pytest.mark.behaviour("BDW-EU-25", shows="action")
@pytest.mark.parametrize("gen", FLOWS)
def test_brd_and_brc(gen: float) -> None:
    made = thread(gen, r4=LANES)
    run(made, compare(gen, 4, L, 3), branch(gen, "brd", "away", predicate=1), note(gen, 1), "away", note(gen, 10))
    assert sums(made)[:3] == [10] * 3            # the thread follows those that leave; the rest waits behind
    made = thread(gen, r4=LANES)
    run(made, compare(gen, 4, L, 3), branch(gen, "brc", "meet", "meet", predicate=1), note(gen, 1), "meet", note(gen, 10))
    assert sums(made) == [10] * 3 + [11] * 5


@pytest.mark.behaviour("BDW-EU-26", shows="action")
@pytest.mark.parametrize("gen", FLOWS)
def test_call_and_return(gen: float) -> None:
    """Some channels call; what the call stored leads them back, and the others go on with them."""
    made = thread(gen, r4=LANES)
    run(made, compare(gen, 4, L, 3), branch(gen, "call", "sub", target=dst(10, "ud"), predicate=1), "back", note(gen, 100),
        branch(gen, "jmpi", "out", size=1, no_mask=True), "sub", note(gen, 1), branch(gen, "ret", None, None, reg(10, "ud",
        "2;2,1")), "out")
    assert sums(made) == [101] * 3 + [100] * 5
    assert made.register(10)[1] == 0b111 and made.register(10)[0] == 32


@pytest.mark.behaviour("BDW-EU-26", shows="action")
@pytest.mark.parametrize("gen", [7.5, 8, 9, 11])
def test_calla_takes_an_address(gen: float) -> None:
    made = thread(gen, r4=LANES)
    run(made, branch(gen, "calla", 48, target=dst(10, "ud")), note(gen, 100), branch(gen, "jmpi", "out", size=1, no_mask=True),
        note(gen, 1), branch(gen, "ret", None, None, reg(10, "ud", "2;2,1")), "out")
    assert sums(made) == [101] * 8


@pytest.mark.behaviour("BDW-EU-27", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("gen", [4.5, *FLOWS])
@pytest.mark.parametrize(("flag", "want"), [(1, 0), (2, 1)])
def test_jmpi_asks_channel_0(gen: float, flag: int, want: int) -> None:
    made = thread(gen, r4=LANES)
    made.dwords("f")[0] = flag
    run(made, branch(gen, "jmpi", "over", size=1, no_mask=True, predicate=1), note(gen, 1), "over")
    assert sums(made) == [want] * 8


@pytest.mark.parametrize(("gen", "count"), [(4.5, 1), (7, 2), (7.5, 16), (8, 16), (9, 16), (11, 16)])
def test_jmpi_by_a_register_counts_in_the_same_unit(gen: float, count: int) -> None:
    made = thread(gen, r4=np.array([count], np.int32))
    run(made, branch(gen, "jmpi", None, None, arf(0xA0), scalar(4), size=1, no_mask=True), note(gen, 1), note(gen, 10))
    assert sums(made) == [10] * 8


@pytest.mark.behaviour("BDW-EU-27", shows="action")
@pytest.mark.parametrize("gen, count", [(4.5, 1), (7, 2), (9, 16)])
def test_jmpi_by_the_last_dword_of_the_registers(gen: float, count: int) -> None:
    """No second one follows it, and none is asked for."""
    made = thread(gen, r127=np.full(8, count, np.int32))
    run(made, branch(gen, "jmpi", None, None, arf(0xA0), scalar(127, sub=28), size=1, no_mask=True), note(gen, 1), note(gen, 10))
    assert sums(made) == [10] * 8


@pytest.mark.parametrize("breakpoint", [False, True])
def test_jmpi_onto_itself_is_endless_and_stopped(breakpoint: bool) -> None:
    """Also where it is the interpreter's, for its breakpoint: each turn costs one of the budget."""
    made = thread(9)
    again = branch(9, "jmpi", "here", size=1, no_mask=True, breakpoint=breakpoint)
    assert run(made, "here", again, limit=50) is RunOutcome.OUT_OF_BUDGET
    assert made.ip == 0 and not made.ended and made.executed == 50


@pytest.mark.parametrize("breakpoint", [False, True])
@pytest.mark.parametrize("between, turns", [(1, 9), (62, 9), (63, 5), (126, 5), (127, 3)])
def test_a_long_way_back_costs_more_of_the_budget(between: int, turns: int, breakpoint: bool) -> None:
    """One more for each KiB, whoever executes the jump; the budget may be overdrawn."""
    made = thread(9)
    back = branch(9, "jmpi", "here", size=1, no_mask=True, breakpoint=breakpoint)
    assert run(made, "here", note(9, 1), *[note(9, 0)] * between, back, limit=9) is RunOutcome.OUT_OF_BUDGET
    assert sums(made) == [turns] * 8 and made.ip == 0


@pytest.mark.behaviour("EU-13", "EU-216", shows="action")
@pytest.mark.parametrize("gen", [4.5, *FLOWS])
def test_a_write_to_ip_jumps(gen: float) -> None:
    made = thread(gen)
    run(made, instr(gen, "mov", dst(21, "ud"), arf(0xA0, "ud", 0, "0;1,0"), size=1),
        instr(gen, "mov", arf(0xA0), imm(48 + 5, "ud"), size=1),
        note(gen, 1), note(gen, 10), instr(gen, "mov", dst(22, "ud"), arf(0xA0, "ud", 0, "0;1,0"), size=1))
    assert sums(made) == [10] * 8 and sums(made, 21)[0] == 0 and sums(made, 22)[0] == 64


@pytest.mark.covering(1)
@pytest.mark.parametrize("gen", [4.5, *FLOWS])
@pytest.mark.parametrize("mask, controls, jumps", [
    (0xFF, {"predicate": 1}, False), (0xFF, {"predicate": 1, "predicate_invert": True}, True), (0xFE, {}, False),
    (0xFE, {"no_mask": True}, True),
])  # fmt: skip
def test_a_write_to_ip_that_no_channel_makes_is_no_jump(gen: float, mask: int, controls: dict[str, Any], jumps: bool) -> None:
    made = thread(gen, mask)
    write = instr(gen, "mov", arf(0xA0), imm(32, "ud"), size=1, **controls)
    run(made, write, note(gen, 1), note(gen, 10), limit=50)
    assert made.ended and sums(made)[1:] == [10 if jumps else 11] * 7


@pytest.mark.behaviour("EU-14", "EU-193", shows="action")
@pytest.mark.parametrize("gen", FLOWS)
def test_single_program_flow(gen: float) -> None:
    """All channels go where any goes: else if none has the predicate."""
    for limit, want in ((3, 101), (0, 110)):
        made = thread(gen, r4=LANES)
        made.dwords("cr")[0] = SINGLE_PROGRAM_FLOW
        run(made, compare(gen, 4, L, limit), branch(gen, "if", "else", "else", predicate=1), note(gen, 1), branch(gen, "else",
            "end", "end"),
            "else", note(gen, 10), "end", branch(gen, "endif", "after"), "after", note(gen, 100))
        assert sums(made) == [want] * 8


@pytest.mark.parametrize("gen", FLOWS)
def test_a_call_and_its_return_in_single_program_flow(gen: float) -> None:
    made = thread(gen, r4=LANES)
    made.dwords("cr")[0] = SINGLE_PROGRAM_FLOW
    run(made, branch(gen, "call", "sub", target=dst(10, "ud")), "back", note(gen, 100), branch(gen, "jmpi", "out", size=1, no_mask=True),
        "sub", note(gen, 1), branch(gen, "ret", None, None, reg(10, "ud", "2;2,1")), "out")
    assert sums(made) == [101] * 8
    assert made.register(10)[0] == 16 != made.register(10)[1]


@pytest.mark.covering(2)
@pytest.mark.parametrize("gen", [8, 9, 11])
@pytest.mark.parametrize("control", [False, True])
@pytest.mark.parametrize("limit", [0, 3, 8])
def test_a_goto_in_single_program_flow(gen: float, control: bool, limit: int) -> None:
    """All channels leave if any has the predicate; up to Gen9, without branch control, if none has it (BDW 21108-21187)."""
    made = thread(gen, r4=LANES)
    made.dwords("cr")[0] = SINGLE_PROGRAM_FLOW
    run(made, compare(gen, 4, L, limit), branch(gen, "goto", "wrong", "far", predicate=1, branch_control=control), note(gen, 1),
        branch(gen, "jmpi", "far", size=1, no_mask=True), "wrong", note(gen, 5000), "far", note(gen, 100))
    leaves = bool(limit) if control or gen == 11 else not limit
    assert sums(made) == [100 if leaves else 101] * 8


@pytest.mark.covering(2)
@pytest.mark.parametrize("gen", FLOWS)
@pytest.mark.parametrize("limit", [0, 3])
@pytest.mark.parametrize(("opcode", "targets"), [("brd", ("far",)), ("brc", ("wrong", "far")), ("halt", ("wrong", "far"))])
def test_branches_in_single_program_flow(gen: float, opcode: str, targets: tuple[str, ...], limit: int) -> None:
    """All channels leave if any has the predicate: a brd to JIP, the others to UIP."""
    made = thread(gen, r4=LANES)
    made.dwords("cr")[0] = SINGLE_PROGRAM_FLOW
    run(made, compare(gen, 4, L, limit), branch(gen, opcode, *targets, predicate=1), note(gen, 1),
        branch(gen, "jmpi", "far", size=1, no_mask=True), "wrong", note(gen, 5000), "far", note(gen, 100))
    assert sums(made) == [100 if limit else 101] * 8


# -- the mask stack ------------------------------------------------------------------------------------------------

OLD = 4.5


def test_stack_if_and_else() -> None:
    made = thread(OLD, r4=LANES)
    run(made, compare(OLD, 4, L, 3), branch(OLD, "if", "else", predicate=1, pop=0), note(OLD, 1), "else", branch(OLD, "else",
        "past", pop=1),
        note(OLD, 10), branch(OLD, "endif", pop=1, jip=0), "past", note(OLD, 100))
    assert sums(made) == [101] * 3 + [110] * 5
    assert made.masks.imask_stack == [] and made.active == 0xFF


@pytest.mark.parametrize("limit", [0, 8])
def test_stack_sides_nobody_takes(limit: int) -> None:
    made = thread(OLD, r4=LANES)
    poison = instr(OLD, "mov", dst(30), imm(1), no_mask=True)
    run(made, compare(OLD, 4, L, limit), branch(OLD, "if", "else", predicate=1, pop=0), note(OLD, 1) if limit else poison, "else",
        branch(OLD, "else", "past", pop=1), poison if limit else note(OLD, 10), branch(OLD, "endif", pop=1, jip=0), "past", note(OLD, 100))
    assert sums(made) == [101 if limit else 110] * 8 and sums(made, 30) == [0] * 8
    assert made.masks.imask_stack == [] and made.active == 0xFF


def test_stack_ifs_inside_one_another() -> None:
    made = thread(OLD, r4=LANES)
    run(made, compare(OLD, 4, GE, 2), branch(OLD, "iff", "past", predicate=1, pop=0), note(OLD, 1), compare(OLD, 4, GE, 5),
        branch(OLD, "if", "else", predicate=1, pop=0), note(OLD, 10), "else", branch(OLD, "else", "inner", pop=1), note(OLD, 100),
        branch(OLD, "endif", pop=1, jip=0), "inner", note(OLD, 1000), branch(OLD, "endif", pop=1, jip=0), "past")
    assert sums(made) == [0, 0, 1101, 1101, 1101, 1011, 1011, 1011]


def test_stack_iff() -> None:
    for limit, want in ((3, [101] * 3 + [100] * 5), (0, [100] * 8)):
        made = thread(OLD, r4=LANES)
        run(made, compare(OLD, 4, L, limit), branch(OLD, "iff", "past", predicate=1, pop=0), note(OLD, 1), branch(OLD, "endif",
            pop=1, jip=0),
            "past", note(OLD, 100))
        assert sums(made) == want and made.masks.imask_stack == []


def test_stack_loop_with_break_and_continue_inside_an_if() -> None:
    made = thread(OLD, r4=LANES)
    run(made, instr(OLD, "do", arf(0), arf(0), arf(0)), "loop", instr(OLD, "add", dst(5), reg(5), imm(1)),
        instr(OLD, "cmp", arf(0, "d"), reg(5), reg(4), condition=3), branch(OLD, "iff", "past", predicate=1, pop=0), note(OLD, 1000),
        branch(OLD, "break", "out", pop=1), branch(OLD, "endif", pop=1, jip=0), "past", instr(OLD, "and", dst(6), reg(5), imm(1),
        condition=NZ),
        branch(OLD, "cont", "while", predicate=1, pop=0), note(OLD, 1), "while", branch(OLD, "while", "loop", pop=0), "out", note(OLD, 100))
    assert sums(made) == [1100 + lane // 2 for lane in range(8)]
    assert made.masks.imask_stack == [] and made.masks.loop_stack == [] and made.active == 0xFF


def test_stack_loop_inside_a_loop() -> None:
    """Channels that have left the outer loop stay off when the inner one ends."""
    made, do = thread(OLD, r4=LANES), instr(OLD, "do", arf(0), arf(0), arf(0))
    run(made, do, "outer", instr(OLD, "add", dst(5), reg(5), imm(1)), instr(OLD, "cmp", arf(0, "d"), reg(5), reg(4), condition=3),
        branch(OLD, "break", "out", predicate=1, pop=0), instr(OLD, "mov", dst(6), imm(0)),
        do, "inner", note(OLD, 1), instr(OLD, "add", dst(6), reg(6), imm(1)), compare(OLD, 6, L, 2),
        branch(OLD, "while", "inner", predicate=1, pop=0), note(OLD, 10), branch(OLD, "while", "outer", pop=0), "out", note(OLD, 100))
    assert sums(made) == [100 + 12 * lane for lane in range(8)]
    assert made.masks.loop_stack == [] and made.active == 0xFF


def test_stack_break_of_all_channels_leaves_the_loop_at_once() -> None:
    made = thread(OLD, r4=LANES)
    run(made, instr(OLD, "do", arf(0), arf(0), arf(0)), "loop", note(OLD, 1), branch(OLD, "break", "out", pop=0),
        instr(OLD, "mov", dst(30), imm(1), no_mask=True), branch(OLD, "while", "loop", pop=0), "out", note(OLD, 100))
    assert sums(made) == [101] * 8 and sums(made, 30) == [0] * 8
    assert made.masks.loop_stack == [] and made.active == 0xFF


def test_stack_loop_with_its_condition_at_the_end() -> None:
    made = thread(OLD, r4=LANES)
    run(made, instr(OLD, "do", arf(0), arf(0), arf(0)), "loop", note(OLD, 1),
        instr(OLD, "add", dst(4), reg(4), imm(0xFFFFFFFF), condition=3),
        branch(OLD, "while", "loop", predicate=1, pop=0), note(OLD, 100))
    assert sums(made) == [101, 101, 102, 103, 104, 105, 106, 107]


def test_more_pops_than_pushes_is_an_error() -> None:
    with pytest.raises(DecodeError, match="endif pops 1 masks, but the IMask stack has 0"):
        run(thread(OLD), branch(OLD, "endif", pop=1, jip=0))


def test_a_jump_out_of_the_kernel_is_a_fault() -> None:
    with pytest.raises(GpuFault, match="instruction fetch at 0x1010"):
        run(thread(9), branch(9, "jmpi", 0x1000, size=1, no_mask=True))
