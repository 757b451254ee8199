"""Exceptions that wait for their turn, a halt from outside, and stacks that overflow: into the system routine and back, on every engine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from softgen.errors import DecodeError, SoftgenError, Unsupported
from softgen.eu import engine as engines
from softgen.eu.interpreter import Interpreter, RunOutcome
from softgen.eu.isa.instruction import Instruction
from softgen.eu.thread.block import MASK_STACK_DEPTH
from softgen.eu.thread.exceptions import EXTERNAL_HALT, MASTER, SOFTWARE, STACK_OVERFLOW, external_halt
from softgen.eu.thread.state import ThreadState
from softgen.eu.translate.engine import Translator
from tests.eu.semantics.build import CHOSEN, NZ, Listing, arf, branch, dst, end, engine, imm, instr, scalar, thread  # noqa: F401

CR0 = 0x80
ENTRIES, KINDS, FIRST, LEFT, BIT = 20, 21, 22, 23, 24  # registers of the routines below
Items = tuple[Instruction | str, ...]


def one(opcode: str, number: int, *sources: Any, **more: Any) -> Instruction:
    return instr(7, opcode, dst(number, "ud"), *sources, size=1, no_mask=True, **more)


def note(number: int, amount: int, gen: float = 7) -> Instruction:
    return instr(gen, "add", dst(number, "ud"), scalar(number, "ud"), imm(amount, "ud"), size=1, no_mask=True)


def control(opcode: str, word: int, value: int, gen: float = 7) -> Instruction:
    """cr0.word = cr0.word OP value."""
    return instr(gen, opcode, arf(CR0, "ud", 4 * word), arf(CR0, "ud", 4 * word, "0;1,0"), imm(value & 0xFFFFFFFF, "ud"), size=1,
                 no_mask=True, thread_control=2)  # fmt: skip


BACK = control("and", 0, ~MASTER)
STATES = one("and", LEFT, arf(CR0, "ud", 4, "0;1,0"), imm(0xFFFF0000, "ud"), thread_control=2)
HANDLE: Items = (  # the status of most weight is found with lzd, noted as a digit and cleared
    STATES, one("lzd", FIRST, scalar(LEFT, "ud")),
    one("mul", KINDS, scalar(KINDS, "ud"), imm(10, "uw")), one("add", KINDS, scalar(KINDS, "ud"), scalar(FIRST, "ud")),
    one("mov", BIT, imm(0x80000000, "ud")), one("shr", BIT, scalar(BIT, "ud"), scalar(FIRST, "ud")),
    instr(7, "xor", arf(CR0, "ud", 4), arf(CR0, "ud", 4, "0;1,0"), scalar(BIT, "ud"), size=1, no_mask=True, thread_control=2),
)  # fmt: skip
ONE_AT_A_TIME: Items = (note(ENTRIES, 1), *HANDLE, BACK)
ALL: Items = (note(ENTRIES, 1), "again", *HANDLE, replace(STATES, condition=NZ),
              branch(7, "jmpi", "again", size=1, no_mask=True, predicate=1), BACK)  # fmt: skip
BOTH = SOFTWARE.status | EXTERNAL_HALT.status


def run(made: ThreadState, routine: Items, *items: Instruction | str) -> RunOutcome:
    listing = Listing(made.gen, *items, end(made.gen), "routine", *routine)
    made.system_routine = listing.labels["routine"]
    return resume(made, listing)


def resume(made: ThreadState, listing: Listing) -> RunOutcome:
    return engines.run(CHOSEN[-1], made, listing, 100, Translator(observe=True, messages=False) if CHOSEN[-1] == "t1" else None)


@pytest.mark.behaviour("EU-209", "EU-202", shows="action")
@pytest.mark.parametrize(("routine", "entries"), [(ONE_AT_A_TIME, 2), (ALL, 1)], ids=["one at a time", "all"])
def test_a_routine_handles_one_exception_or_all_that_are_there(routine: Items, entries: int) -> None:
    """IVB 2256-2263: a halt (bit 30, one leading zero) and a software exception (bit 29) at once; the application goes on behind."""
    made = thread(7)
    made.dwords("cr")[1] = SOFTWARE.enable | EXTERNAL_HALT.enable
    assert run(made, routine, control("or", 1, BOTH), note(25, 7)) is RunOutcome.ENDED
    assert [int(made.register(number)[0]) for number in (ENTRIES, KINDS, 25)] == [entries, 12, 7]
    assert not made.dwords("cr")[1] & BOTH and not made.cr0 & MASTER


@pytest.mark.behaviour("EU-196", shows="action")
@pytest.mark.parametrize("enabled", [True, False])
def test_a_halt_from_outside_sets_its_bit_and_leads_to_the_routine(enabled: bool) -> None:
    """IVB 2427-2433: the broadcast comes between two instructions, and the thread goes on where it was. Disabled, it only sets the bit."""
    made = thread(7)
    made.dwords("cr")[1] = EXTERNAL_HALT.enable if enabled else 0
    listing = Listing(7, note(25, 1), note(25, 10), end(7), "routine", *ONE_AT_A_TIME)
    made.system_routine = listing.labels["routine"]
    runner = Interpreter(made, listing)
    runner.step()
    external_halt(made)
    assert made.dwords("cr")[1] & EXTERNAL_HALT.status and bool(made.cr0 & MASTER) is enabled
    assert made.ip == (listing.labels["routine"] if enabled else 16) and (not enabled or made.dwords("cr")[2] == 16)
    assert resume(made, listing) is RunOutcome.ENDED
    assert [int(made.register(number)[0]) for number in (ENTRIES, KINDS, 25)] == [int(enabled), int(enabled), 11]
    assert bool(made.dwords("cr")[1] & EXTERNAL_HALT.status) is not enabled, "the routine alone clears it"


@pytest.mark.behaviour("EU-196", shows="action")
def test_software_sets_and_clears_the_bit_of_a_halt() -> None:
    made = thread(7)
    run(made, (), control("or", 1, EXTERNAL_HALT.status), one("mov", 25, arf(CR0, "ud", 4, "0;1,0"), thread_control=2),
        control("and", 1, ~EXTERNAL_HALT.status), one("mov", 26, arf(CR0, "ud", 4, "0;1,0"), thread_control=2))  # fmt: skip
    assert (made.register(25)[0], made.register(26)[0]) == (EXTERNAL_HALT.status, 0)


@pytest.mark.behaviour("EU-196", shows="action")
def test_a_routine_that_leaves_the_bit_set_is_entered_for_ever() -> None:
    """IVB 2429-2431: to avoid that, it resets the bit before it returns."""
    made = thread(7)
    made.dwords("cr")[1] = EXTERNAL_HALT.enable
    loop = (note(ENTRIES, 1), note(ENTRIES, 1), BACK)
    assert run(made, loop, control("or", 1, EXTERNAL_HALT.status), note(25, 7)) is RunOutcome.OUT_OF_BUDGET
    assert made.register(ENTRIES)[0] > 100 and made.register(25)[0] == 0


# -- stacks ----------------------------------------------------------------------------------------------------------------

IF = branch(4.5, "if", "out", pop=0)
OVERFLOW: Items = (*[IF] * (MASK_STACK_DEPTH + 1), note(25, 7, 4.5), "out")
UNDERFLOW: Items = (instr(4.5, "endif", pop=1), note(25, 7, 4.5))


@pytest.mark.behaviour("EU-211", "EU-199", shows="action")
@pytest.mark.parametrize("code", [OVERFLOW, UNDERFLOW], ids=["overflow", "underflow"])
@pytest.mark.parametrize("leaves", [True, False])
def test_overflow_and_underflow_of_a_stack_are_an_exception(code: Items, leaves: bool) -> None:
    """IVB 2454-2462, 2496-2516, on the generation whose threads have a stack: of masks. The routine returns behind the instruction; the
    bit that it leaves set raises nothing."""
    made = thread(4.5)
    made.dwords("cr")[1] = STACK_OVERFLOW.enable
    clears = () if leaves else (control("and", 1, ~STACK_OVERFLOW.status, 4.5),)
    routine = (note(ENTRIES, 1, 4.5), *clears, control("and", 0, ~MASTER, 4.5))
    assert run(made, routine, *code) is RunOutcome.ENDED
    assert [int(made.register(number)[0]) for number in (ENTRIES, 25)] == [1, 7]
    assert bool(made.dwords("cr")[1] & STACK_OVERFLOW.status) is leaves
    assert len(made.masks.imask_stack) == MASK_STACK_DEPTH * (code is OVERFLOW)


@pytest.mark.behaviour("EU-211", "EU-201", shows="action")
@pytest.mark.parametrize(("code", "error"), [(OVERFLOW, Unsupported), (UNDERFLOW, DecodeError)], ids=["overflow", "underflow"])
def test_a_stack_that_overflows_without_a_handler_is_an_error(code: Items, error: type[SoftgenError]) -> None:
    """The bit is set all the same."""
    made = thread(4.5)
    with pytest.raises(error, match=r"IMask stack|deep"):
        run(made, (note(ENTRIES, 1, 4.5),), *code)
    assert made.dwords("cr")[1] == STACK_OVERFLOW.status and not made.register(ENTRIES)[0]
