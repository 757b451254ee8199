"""Exceptions: into the system routine and back."""

from __future__ import annotations

import numpy as np
import pytest

from softgen.errors import DecodeError, Unsupported
from softgen.eu.interpreter import Interpreter, RunOutcome
from softgen.eu.isa.instruction import Instruction
from softgen.eu.thread.exceptions import BREAKPOINT, ILLEGAL, MASTER, SOFTWARE, SUPPRESS
from softgen.eu.thread.state import ThreadState
from tests.eu.semantics.build import Listing, arf, dst, end, imm, instr, reg, thread

LANES = np.arange(8, dtype=np.int32)


def note(amount: int, **more: object) -> Instruction:
    return instr(9, "add", dst(20), reg(20), imm(amount), **more)


def control(opcode: str, word: int, value: int) -> Instruction:
    """cr0.word = cr0.word OP value."""
    return instr(9, opcode, arf(0x80, "ud", 4 * word), arf(0x80, "ud", 4 * word, "0;1,0"), imm(value, "ud"), size=1, no_mask=True,
        thread_control=2)


def run(made: ThreadState, *items: Instruction | str, routine: tuple[Instruction, ...]) -> Listing:
    listing = Listing(9, *items, end(9), "routine", *routine)
    made.system_routine = listing.labels["routine"]
    Interpreter(made, listing).run()
    return listing


BACK = control("and", 0, ~MASTER & 0xFFFFFFFF)


@pytest.mark.behaviour("EU-197", "EU-203", "EU-187", shows="action")
def test_a_software_exception_goes_and_returns_behind() -> None:
    made = thread(9, r4=LANES)
    made.dwords("cr")[1] = SOFTWARE.enable
    seen = instr(9, "mov", dst(21, "ud"), arf(0x80, "ud", 0, "4;4,1"), size=2, no_mask=True)
    keep = instr(9, "mov", dst(22, "ud"), arf(0x80, "ud", 8, "0;1,0"), size=1, no_mask=True)
    run(made, control("or", 1, SOFTWARE.status), note(1), routine=(seen, keep, note(100), control("and", 1,
        ~SOFTWARE.status & 0xFFFFFFFF), BACK))
    assert list(made.register(20)) == [101] * 8
    assert made.register(21)[0] & MASTER and made.register(21)[1] & SOFTWARE.status        # both are set inside
    assert made.register(22)[0] == 16                                                        # the instruction after (IVB 2511-2516)
    assert not made.cr0 & MASTER


@pytest.mark.behaviour("EU-187", shows="action")
def test_software_cannot_set_the_master_bit() -> None:
    made = thread(9)
    run(made, control("or", 0, MASTER), note(1), routine=(note(100), BACK))
    assert list(made.register(20)) == [1] * 8 and not made.cr0 & MASTER


@pytest.mark.behaviour("EU-201", shows="action")
def test_a_disabled_exception_is_recorded_only() -> None:
    made = thread(9)
    run(made, control("or", 1, SOFTWARE.status), note(1), routine=(note(100), BACK))
    assert list(made.register(20)) == [1] * 8 and made.dwords("cr")[1] == SOFTWARE.status


@pytest.mark.behaviour("EU-188", "EU-189", "EU-204", "KBL-EU-12", shows="action")
def test_a_breakpoint_comes_before_its_instruction_and_is_suppressed_once() -> None:
    made = thread(9)
    made.dwords("cr")[1] = BREAKPOINT.enable
    resume = (note(100), control("or", 0, SUPPRESS), control("and", 1, ~BREAKPOINT.status & 0xFFFFFFFF), BACK)
    run(made, note(1, breakpoint=True), note(10), note(1000, breakpoint=True), routine=resume)
    assert list(made.register(20)) == [1211] * 8
    assert not made.cr0 & SUPPRESS and made.dwords("cr")[2] == 32


def test_breakpoints_that_are_not_enabled_do_nothing() -> None:
    made = thread(9)
    run(made, note(1, breakpoint=True), routine=(note(100), BACK))
    assert list(made.register(20)) == [1] * 8


@pytest.mark.behaviour("EU-189", shows="action")
def test_a_routine_that_does_not_suppress_a_breakpoint_comes_back_for_ever() -> None:
    made = thread(9)
    made.dwords("cr")[1] = BREAKPOINT.enable
    listing = Listing(9, note(1, breakpoint=True), end(9), "routine", note(100), control("and", 1, ~BREAKPOINT.status & 0xFFFFFFFF), BACK)
    made.system_routine = listing.labels["routine"]
    assert Interpreter(made, listing).run(30) is RunOutcome.OUT_OF_BUDGET
    assert made.register(20)[0] > 100 and not any(made.register(20) % 100)          # the instruction itself has never run


@pytest.mark.behaviour("EU-198", "EU-204", "EU-205", "BDW-EU-20", shows="action")
def test_the_routine_may_change_where_it_returns_to() -> None:
    """An illegal opcode has its own address as return; this routine skips it. The status it leaves set does nothing (IVB 2444-2452)."""
    made = thread(9)
    made.dwords("cr")[1] = ILLEGAL.enable
    illegal = Instruction(9, "illegal", 0, "basic")
    listing = run(made, note(1), illegal, note(10), routine=(note(100), control("add", 2, 16 + 5), BACK))
    assert list(made.register(20)) == [111] * 8 and listing.labels["routine"] == 64
    assert made.dwords("cr")[1] & ILLEGAL.status


@pytest.mark.behaviour("EU-206", shows="action")
def test_the_dispatch_gives_the_system_routine_and_no_register_shows_it() -> None:
    """Two threads of one kernel: STATE_SIP's address decides where an exception goes, and no register holds it."""
    listing = Listing(9, note(1), Instruction(9, "illegal", 0, "basic"), end(9), "first", note(100), end(9), "second", note(200), end(9))
    for label, total in (("first", 101), ("second", 201)):
        made = ThreadState(9, messages={7: lambda thread, message: None}, system_routine=listing.labels[label])
        made.dwords("cr")[1] = ILLEGAL.enable
        assert not any(value for name, value in made.snapshot().items() if name.startswith(("sr", "cr")) and listing.labels[label] in value)
        assert Interpreter(made, listing).run() is RunOutcome.ENDED
        assert list(made.register(20)[:8]) == [total] * 8
        assert made.cr0 & MASTER and made.dwords("cr")[2] == 16
        assert not any(name != "ip" and listing.labels[label] in value for name, value in made.snapshot().items())


def test_without_a_routine_an_enabled_exception_is_not_simulated() -> None:
    made = thread(9)
    made.dwords("cr")[1] = ILLEGAL.enable
    with pytest.raises(Unsupported, match="illegal opcode: the exception is enabled, but no STATE_SIP has set a system routine"):
        Interpreter(made, Listing(9, Instruction(9, "illegal", 0, "basic"))).run()


def test_inside_the_routine_nothing_nests() -> None:
    made = thread(9)
    made.dwords("cr")[:2] = MASTER, ILLEGAL.enable
    made.system_routine = 0
    with pytest.raises(DecodeError):
        Interpreter(made, Listing(9, Instruction(9, "illegal", 0, "basic"))).run()


@pytest.mark.parametrize("count", [1, 8, 64, 65])
@pytest.mark.parametrize("gen", [7, 9, 11])
def test_an_illegal_opcode_whose_exception_is_off_sets_its_status_and_is_skipped(gen: float, count: int) -> None:
    """BDW 21675-21710. Kernels that intel-media-driver links have 128 bytes of zeros between their parts; longer ones are an error."""
    made = thread(gen)
    first, last = (instr(gen, "add", dst(20), reg(20), imm(amount)) for amount in (1, 10))
    listing = Listing(gen, first, *[Instruction(gen, "illegal", 0, "basic")] * count, last, end(gen))
    if count > 64:
        with pytest.raises(DecodeError, match="opcode 0 is not an instruction"):
            Interpreter(made, listing).run()
        return
    assert Interpreter(made, listing).run() is RunOutcome.ENDED
    assert list(made.register(20)[:8]) == [11] * 8 and made.dwords("cr")[1] & ILLEGAL.status
