"""Whole kernels as functions: entries and exits, what they keep, and which instructions fall back to the reference."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from softgen.eu import engine
from softgen.eu.engine_protocol import AffineRange
from softgen.eu.interpreter import Interpreter, RunOutcome
from softgen.eu.isa.instruction import Instruction
from softgen.eu.thread.block import Context, ThreadStatus
from softgen.eu.thread.state import ROUNDING_MODE, ThreadState
from softgen.eu.translate import control_flow, cr0_propagation, inactive_lanes, liveness
from softgen.eu.translate.control_flow import Untranslatable
from softgen.eu.translate.engine import Translator
from softgen.eu.translate.kernel import KernelTranslator, Key, translate
from softgen.eu.translate.registers import RegisterPartition
from softgen.eu.translate.state import _apart, moved_lanes
from softgen.lanes.compile import foreground
from tests.eu.semantics.build import GE, L, Listing, arf, branch, dst, end, imm, instr, reg, scalar, thread

GEN = 9
LANES = np.arange(8, dtype=np.int32)
CR = 0x80


def add(number: int, amount: int) -> Instruction:
    return instr(GEN, "add", dst(number), reg(number), imm(amount))


def compare(number: int, condition: int, value: int) -> Instruction:
    return instr(GEN, "cmp", arf(0, "d"), reg(number), imm(value), condition=condition)


def divergent() -> Listing:
    """r20 += 1 for channels below 3, 10 for the others, 100 for all."""
    return Listing(GEN, compare(4, L, 3), branch(GEN, "if", "else", "end", predicate=1), add(20, 1),
                   branch(GEN, "else", "end", "end"), "else", add(20, 10), "end", branch(GEN, "endif", "after"), "after", add(20, 100),
                   end(GEN))  # fmt: skip


def loop(turns: int) -> Listing:
    return Listing(GEN, "loop", add(5, 1), compare(5, L, turns), branch(GEN, "while", "loop", predicate=1), add(20, 1), end(GEN))


def sums(made: ThreadState, number: int = 20) -> list[int]:
    return [int(value) for value in made.register(number).view(np.int32)]


# -- where channels are --------------------------------------------------------------------------------------------


def test_all_channels_are_back_where_nobody_waits_elsewhere() -> None:
    code = divergent()
    found = control_flow.build(code, thread(GEN).rules, single=False, width=8)
    blocks = list(found.blocks.values())
    assert [bool(block.pending) for block in blocks] == [False, True, True, False, False]
    assert found.targets == {code.labels["else"], code.labels["end"]}
    text = translate(code, Key(0, 8, full=True)).ir
    last = text[text.index(f"at{code.labels['after']:x}:") :]
    assert "select <8 x i1>" not in last[: last.index("br label")]


def test_all_channels_are_back_behind_a_loop() -> None:
    """A while that no channel takes has sent none to the top of the loop; behind one that some take, others may wait."""
    leave = branch(GEN, "break", "while", "while", predicate=1)
    again = branch(GEN, "while", "top", predicate=1)
    end = instr(GEN, "mov", dst(12), reg(4))
    code = Listing(GEN, "top", instr(GEN, "mov", dst(10), reg(4)), leave, instr(GEN, "mov", dst(11), reg(4)), "while", again, end)
    blocks = list(control_flow.build(code, thread(GEN).rules, single=False, width=8).blocks.values())
    assert [bool(block.pending) for block in blocks] == [True, True, True, False]
    assert blocks[0].pending == blocks[2].pending == {blocks[3].start}


def test_a_join_for_fewer_channels_than_the_thread_has_leaves_the_others_behind() -> None:
    code = Listing(GEN, branch(GEN, "join", "after", size=1), "after", add(20, 1), end(GEN))
    assert control_flow.build(code, thread(GEN).rules, single=False, width=8).targets == {0}


@pytest.mark.parametrize("items, why", [
    ([branch(GEN, "jmpi", None, None, arf(0xA0), scalar(4), size=1)], "register"),
])
def test_what_cannot_be_one_function(items: list[Instruction], why: str) -> None:
    with pytest.raises(Untranslatable, match=why):
        translate(Listing(GEN, *items, "end", end(GEN)), Key(0, 8, True))


def test_a_mask_that_is_full_and_one_that_is_not_come_to_the_same() -> None:
    for full in (True, False):
        made = thread(GEN, r4=LANES)
        function = Translator(observe=True, messages=False).function(divergent(), 0, 8, full)
        status = engine.call(function, made, Context(budget=10))
        assert status is ThreadStatus.ESCAPE  # the last message, which a thread without memory around it leaves to the reference
        assert sums(made) == [101] * 3 + [110] * 5


def test_dispatched_threads_have_no_channel_outside_their_code() -> None:
    """So that a branch over which nobody jumps needs no masks; loops may be resumed, and messages are compiled in."""
    assert [Translator()._key(0, simd, True, ()) for simd in (8, 16)] == [Key(0, simd, True, loops=True) for simd in (8, 16)]
    assert Translator()._key(0, 16, False, ()) == Key(0, 16, False, loops=True)
    assert Translator()._key(0, 4, True, ()) == Key(0, 8, False, loops=True), "fewer channels than any mask has"


def test_loads_are_prefetched_for_iterations_in_loops_and_for_threads_elsewhere() -> None:
    """For iterations in all blocks of a loop, and not before or behind it: r10 are offsets of dwords in surface 0."""
    load = replace(instr(GEN, "send", dst(20), reg(10), size=8), sfid=0xC, descriptor=0x02106E00)
    leave = branch(GEN, "break", "end", "end", predicate=1)
    items = [load, "loop", load, compare(5, L, 3), leave, "second", load, "end", branch(GEN, "while", "loop"), load, end(GEN)]
    code = Listing(GEN, *items)
    text = translate(code, Key(0, 8, True, payload=(AffineRange(320, 4, 8, 4, 1023),))).ir
    before = text.split("call void @llvm.prefetch")[:-1]
    starts = [int(re.findall(r"^at([0-9a-f]+):", "".join(before[: number + 1]), re.MULTILINE)[-1], 16) for number in range(len(before))]
    by_thread = [part.rstrip().endswith("i64 2048") for part in before]
    loop, second, last = code.labels["loop"], code.labels["second"], code.labels["end"] + 16
    assert list(zip(starts, by_thread, strict=True)) == [(0, True), (loop, False), (second, False), (last, True)]


# -- leaving and coming back ---------------------------------------------------------------------------------------


def test_a_loop_is_left_when_its_turns_are_spent_and_taken_up_where_it_was() -> None:
    made, code, translator = thread(GEN), loop(100), Translator(observe=True, messages=False)
    turns = 0
    while (outcome := engine.run("t1", made, code, 30, translator)) is RunOutcome.OUT_OF_BUDGET:
        turns += 1
    assert outcome is RunOutcome.ENDED and turns == 3
    assert sums(made, 5) == [100] * 8 and sums(made) == [1] * 8
    assert made.executed == 302


@pytest.mark.parametrize("before, inside, turns", [(130, 1, 30), (0, 100, 15), (130, 100, 15)])
def test_a_backward_branch_costs_by_its_length(before: int, inside: int, turns: int) -> None:
    """Wherever it is: instructions before the loop, and in it, of 16 bytes each; from 1 KiB on it costs two."""
    items = [*[add(6, 1)] * before, "loop", add(5, 1), *[add(7, 1)] * inside, compare(5, L, 100), branch(GEN, "while", "loop", predicate=1)]
    code, made, expected = Listing(GEN, *items, end(GEN)), thread(GEN), thread(GEN)
    assert engine.run("t1", made, code, 30, Translator(observe=True, messages=False)) is RunOutcome.OUT_OF_BUDGET
    assert Interpreter(expected, code).run(30) is RunOutcome.OUT_OF_BUDGET
    assert sums(made, 5) == sums(expected, 5) == [turns] * 8


def test_what_is_not_read_any_more_is_not_kept() -> None:
    """r30 is only used inside a turn; r20 is needed behind the loop."""
    items = ["loop", instr(GEN, "mov", dst(30), imm(7), no_mask=True), add(20, 3), add(5, 1), compare(5, L, 100),
             branch(GEN, "while", "loop", predicate=1), instr(GEN, "mov", dst(40), reg(20)), end(GEN)]  # fmt: skip
    made = thread(GEN)
    function = Translator(messages=False).function(Listing(GEN, *items), 0, 8, True)
    assert engine.call(function, made, Context(budget=10)) is ThreadStatus.OUT_OF_BUDGET
    assert sums(made) == [30] * 8 and sums(made, 30) == [0] * 8


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_a_call_runs_as_many_threads_as_the_context_says(turns: int) -> None:
    function = Translator(observe=True).function(Listing(GEN, add(20, 1), end(GEN)), 0, 8, True)
    threads = [thread(GEN) for _ in range(3)]
    for made in threads:
        made.save()
    blocks = np.concatenate([made.block for made in threads])
    context = Context(budget=10, turns=turns, program=function.program)
    run = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)(function.address)
    assert run(blocks.ctypes.data, ctypes.addressof(context)) == ThreadStatus.ENDED
    assert [int(block.view(np.int32)[20 * 8]) for block in blocks.reshape(3, -1)] == [1] * turns + [0] * (3 - turns)


@pytest.mark.parametrize("size", [1, 8])
def test_a_load_for_one_channel_looks_at_one_lane(size: int) -> None:
    """SIMD8 messages of one channel are how compilers load uniform values; the other lanes hold anything."""
    load = instr(GEN, "send", dst(20, "ud"), reg(5, "ud"), size=size, no_mask=True)
    code = Listing(GEN, replace(load, sfid=0xA, descriptor=0x02110001), end(GEN))  # byte_scattered_read of surface 1
    made = translate(code, Key(0, 8, full=True))
    assert not made.escapes and ("@read_u8x8_flat" in made.ir) is (size == 8)


@pytest.mark.parametrize("wrote", ["flags", "accumulator"])
def test_an_address_is_checked_before_anything_is_written(wrote: str) -> None:
    """Channels that are off would write behind the last register. The interpreter executes the instruction, with the same predicate and the
    same accumulator."""
    made = instr(GEN, "add", dst(0, indirect=True), reg(4), imm(7), predicate=1, condition=L)
    if wrote == "accumulator":
        made = instr(GEN, "mach", dst(0, indirect=True), reg(4), reg(5), predicate=1, acc_write=True)
    code = Listing(GEN, made, end(GEN))

    def state(run: Callable[[ThreadState], RunOutcome]) -> dict[str, bytes]:
        made = thread(GEN, r4=LANES + 500, r5=LANES + 100 << 22)
        made.arf["a"].view(np.uint16)[0], made.arf["f"][0] = 127 * 32 + 16, 0x0F
        made.arf["acc_d"].view(np.int64)[:] = 1 << 33
        assert run(made) is RunOutcome.ENDED
        return made.snapshot()

    expected = state(lambda made: Interpreter(made, code).run())
    assert state(lambda made: engine.run("t1", made, code, compiler=Translator(observe=True, messages=False))) == expected
    assert state(lambda made: engine.run("t0", made, code)) == expected


def test_an_access_spans_registers_that_stay_in_the_block_and_others() -> None:
    """r10 is used in the loop; the others of the group are only live across the wait, and wait in the block."""
    notification = arf(0x90, "ud", 0, "0;1,0")
    wide = [instr(GEN, "add", dst(number), reg(number), imm(number), size=16) for number in range(10, 15)]
    code = Listing(GEN, *wide, instr(GEN, "wait", notification, notification, size=1), "loop", add(10, 3), compare(10, L, 200),
                   branch(GEN, "while", "loop", predicate=1), *wide, end(GEN))  # fmt: skip

    def results(run: Callable[[ThreadState], RunOutcome]) -> list[list[int]]:
        made = thread(GEN, r10=LANES, r11=LANES * 5, r12=LANES * 7, r13=LANES * 11, r14=LANES * 13)
        assert run(made) is RunOutcome.WAITING
        made.dwords("n")[0] = 1
        assert run(made) is RunOutcome.ENDED
        return [sums(made, number) for number in range(10, 16)]

    expected = results(lambda made: Interpreter(made, code).run())
    assert results(lambda made: engine.run("t1", made, code, compiler=Translator(observe=True, messages=False))) == expected


def test_a_wait_takes_a_notification_or_leaves() -> None:
    notification = arf(0x90, "ud", region="0;1,0")
    code = Listing(GEN, add(20, 1), instr(GEN, "wait", notification, notification, size=1), add(20, 10), end(GEN))
    made, translator = thread(GEN), Translator(observe=True, messages=False)
    assert engine.run("t1", made, code, 9, translator) is RunOutcome.WAITING
    assert made.waiting == 0 and sums(made) == [1] * 8
    made.dwords("n")[0] = 1
    assert engine.run("t1", made, code, 9, translator) is RunOutcome.ENDED
    assert made.dwords("n")[0] == 0 and sums(made) == [11] * 8


@pytest.mark.parametrize("waits, in_block", [(True, {22}), (False, set())])
def test_what_is_live_across_a_wait_stays_in_the_block_unless_a_loop_uses_it(waits: bool, in_block: set[int]) -> None:
    """r20 is written in a loop and r21 read there; r22 is only used before and after the wait, r23 not across it."""
    notification = arf(0x90, "ud", region="0;1,0")
    wait = [instr(GEN, "wait", notification, notification, size=1)] if waits else []
    used = (instr(GEN, "add", dst(20), reg(20), reg(21)), compare(20, L, 100), branch(GEN, "while", "loop", predicate=1))
    items = [*(add(number, 1) for number in (20, 21, 22)), *wait, "loop", *used, instr(GEN, "mov", dst(23), reg(22)), add(23, 1)]
    code = Listing(GEN, *items, instr(GEN, "mov", dst(20), reg(23)), end(GEN))
    made = KernelTranslator(code, Key(0, 8, full=True))
    made.translate()
    parts = [part for part in made.state.registers.all() if part.place == "grf" and 20 <= part.start // 32 <= 23]
    assert {part.start // 32 for part in parts} == {20, 21, 22, 23}
    assert {part.start // 32 for part in parts if not part.variable} == in_block


def test_the_reference_lends_a_hand_in_the_middle() -> None:
    """Reading the clock has no translation."""
    code = Listing(GEN, add(20, 1), instr(GEN, "mov", dst(30, "ud"), arf(0xC0, "ud", region="0;1,0")), add(20, 10), end(GEN))
    made = translate(code, Key(0, 8, True, messages=False))
    assert made.entries == (0, 32, 48) or len(made.escapes) == 2
    ran = thread(GEN)
    ran.clock = lambda: 77
    engine.run("t1", ran, code, 9, Translator(observe=True, messages=False))
    assert sums(ran) == [11] * 8 and sums(ran, 30) == [77] * 8


@pytest.mark.parametrize("kind", ["ud", "d", "uw"])
def test_the_channels_that_are_on_are_known_without_the_reference(kind: str) -> None:
    """As a number of 32 bits; parts of it have no translation."""
    channels = instr(GEN, "mov", dst(20, "ud"), arf(0x40, kind, region="0;1,0"))
    code = Listing(GEN, compare(4, L, 3), branch(GEN, "if", "end", "end", predicate=1), channels, "end", branch(GEN, "endif", "after"),
                   "after", end(GEN))  # fmt: skip
    assert len(translate(code, Key(0, 8, full=True, messages=False)).escapes) == 1 + (kind == "uw"), "the message at the end"
    made = thread(GEN, r4=LANES)
    assert engine.run("t1", made, code, 9, Translator(observe=True, messages=False)) is RunOutcome.ENDED
    assert sums(made) == [0b111] * 3 + [0] * 5


@pytest.mark.parametrize("quarter, size", [(1, 8), (2, 8), (3, 8), (2, 16)])
def test_an_instruction_for_channels_that_a_thread_does_not_have_does_nothing(quarter: int, size: int) -> None:
    for full in (True, False):
        items = [instr(GEN, "add", dst(20), reg(20), imm(5), size=size, quarter=quarter, condition=GE, flag=1), add(22, 1)]
        code = Listing(GEN, *items, end(GEN))
        assert "add <" in translate(code, Key(0, 8, full=full)).ir
        made = thread(GEN, r20=LANES)
        assert engine.run("t1", made, code, 9, Translator(observe=True, messages=False)) is RunOutcome.ENDED
        assert sums(made) == list(LANES) and sums(made, 22) == [1] * 8 and not made.arf["f"].any()


@pytest.mark.parametrize("offsets, rounds", [((0, 4, 8, 12), [[0, 1, 2, 3]]), ((0, 0, 4, 4), [[0, 2], [1, 3]]), ((4, 0, 4), [[0, 1], [2]]),
                                             ((8, 8, 0, 8), [[0, 2], [1], [3]]), ((0,), [[0]])])  # fmt: skip
def test_lanes_for_one_place_are_written_one_after_the_other(offsets: tuple[int, ...], rounds: list[list[int]]) -> None:
    """So that the last one that is active is the one that stays."""
    assert _apart(offsets) == rounds


def test_a_function_reads_nothing_for_an_instruction_of_the_reference() -> None:
    """Its first source has a translation, the clock has none; no other instruction uses registers."""
    code = Listing(GEN, instr(GEN, "add", dst(30, "ud"), reg(4, "ud"), arf(0xC0, "ud", region="0;1,0")), end(GEN))
    assert "load <8 x i32>" not in translate(code, Key(0, 8, True, messages=False)).ir
    ran = thread(GEN, r4=LANES)
    ran.clock = lambda: 77
    assert engine.run("t1", ran, code, 9, Translator(observe=True, messages=False)) is RunOutcome.ENDED
    assert sums(ran, 30) == list(range(77, 85)) and ran.executed == 2


def test_lanes_of_a_register_that_stays_in_the_block() -> None:
    """Contiguous, all the same, and every other one."""
    sources = [arf(0x70, "ud", region=region) for region in ("4;4,1", "0;1,0", "4;2,2")]
    code = Listing(GEN, *(instr(GEN, "mov", dst(20 + at), source, size=2) for at, source in enumerate(sources)), end(GEN))
    made, expected = thread(GEN), thread(GEN)
    for state in (made, expected):
        state.dwords("sr")[:3] = 100, 101, 0xFF  # the third is the dispatch mask
    assert engine.run("t1", made, code, 9, Translator(observe=True, messages=False)) is RunOutcome.ENDED
    Interpreter(expected, code).run()
    for state in (made, expected):
        assert [sums(state, 20 + at)[:2] for at in range(3)] == [[100, 101], [100, 100], [100, 0xFF]]


def test_a_block_that_is_not_written_to_is_said_to_be_clean() -> None:
    small, by_address = divergent(), Listing(GEN, instr(GEN, "mov", dst(20, indirect=True), imm(1)), end(GEN))
    assert translate(small, Key(0, 8, True)).clean
    assert not translate(by_address, Key(0, 8, True)).clean


@pytest.mark.parametrize("bits", [0x1, 0x20, 0x81, 0xFF, 0])
def test_an_smov_by_address_writes_the_lanes_of_its_mask_alone(bits: int) -> None:
    """One lane by a load and a store, at an address of its own, not one of a vector; several by a scatter. Channels that are off or have no
    bit keep their registers."""
    addresses = instr(GEN, "add", arf(0x10, "uw"), reg(6, "uw"), imm(20 * 32, "uw"), no_mask=True)
    code = Listing(GEN, addresses, compare(4, L, 6), branch(GEN, "if", "end", "end", predicate=1),
                   instr(GEN, "smov", dst(0, indirect=True), reg(4), imm(bits, "uw")),
                   "end", branch(GEN, "endif", "after"), "after", end(GEN))  # fmt: skip
    moved = [lane if lane < 6 and bits >> lane & 1 else (lane + 2) % 8 for lane in range(8)]  # r20.2 is lane 0's
    assert len(moved_lanes(code.line(3 * 16).instruction, 8)) == bits.bit_count()
    lines = translate(code, Key(0, 8, True)).ir.splitlines()
    picked = [text for text in lines if "shufflevector <8 x i32>" in text and "<1 x i32> <" in text]
    assert len(picked) == (bits.bit_count() == 1)  # the value
    for name in ("reference", "t1"):
        made = thread(GEN, r4=LANES, r6=np.full(8, 0x00080008, np.int32), r20=LANES, r21=LANES)
        engine.run(name, made, code, 9, None if name == "reference" else Translator(observe=True, messages=False))
        assert made.grf[648:680].view(np.int32).tolist() == moved and sums(made)[:2] == [0, 1]


# -- cr0 -----------------------------------------------------------------------------------------------------------


def rounding(value: int, opcode: str = "or") -> Instruction:
    return instr(GEN, opcode, arf(CR, "ud"), arf(CR, "ud", region="0;1,0"), imm(value, "ud"), size=1, no_mask=True)


def test_a_kernel_that_changes_its_rounding_computes_by_it() -> None:
    third = instr(GEN, "mul", dst(20, "f"), reg(4, "f"), reg(5, "f"))
    code = Listing(GEN, third, rounding(ROUNDING_MODE), replace(third, dst=dst(21, "f")), end(GEN))
    values = {"r4": np.linspace(0.1, 0.9, 8, dtype=np.float32), "r5": np.linspace(1.1, 1.7, 8, dtype=np.float32)}
    expected, made = thread(GEN, **values), thread(GEN, **values)
    Interpreter(expected, code).run()
    engine.run("t1", made, code, 9, Translator(observe=True, messages=False))
    assert sums(made) != sums(made, 21)
    assert made.snapshot() == expected.snapshot()


@pytest.mark.parametrize("kind, sub", [("ud", 0), ("d", 0), ("uw", 0), ("uw", 2), ("ub", 0), ("ub", 3)])
def test_what_is_read_of_cr0_is_what_was_written(kind: str, sub: int) -> None:
    """A function is for one value of it, and knows each that comes after; a thread's block has it only when that is left."""
    read = instr(GEN, "mov", dst(20, "ud"), arf(CR, kind, sub, "0;1,0"))
    code = Listing(GEN, read, rounding(ROUNDING_MODE), replace(read, dst=dst(21, "ud")), end(GEN))
    made, expected = thread(GEN), thread(GEN)
    Interpreter(expected, code).run()
    assert engine.run("t1", made, code, 9, Translator(observe=True, messages=False)) is RunOutcome.ENDED
    assert made.snapshot() == expected.snapshot() and sums(made) == [0] * 8
    assert sums(made, 21) == [ROUNDING_MODE if not sub else 0] * 8


@pytest.mark.parametrize("kind, sub, region, found, left", [
    ("ud", 0, "2;2,1", [ROUNDING_MODE, 77], True), ("uw", 0, "0;2,2", [ROUNDING_MODE, 77], True),
    ("uq", 0, "0;1,0", [ROUNDING_MODE] * 2, True), ("uw", 2, "2;2,1", [0, 77], True),
    ("uw", 0, "2;2,1", [ROUNDING_MODE, 0], False), ("ud", 4, "2;2,1", [77, 78], False),
])  # fmt: skip
def test_what_was_written_to_cr0_is_read_together_with_the_rest(kind: str, sub: int, region: str, found: list[int], left: bool) -> None:
    """Dwords that a function does not know are in the block, where the first is brought up to date for the interpreter alone."""
    code = Listing(GEN, rounding(ROUNDING_MODE), instr(GEN, "mov", dst(21, "ud"), arf(CR, kind, sub, region), size=2), end(GEN))
    assert len(translate(code, Key(0, 8, True, messages=False)).escapes) == 1 + left, "the message at the end"
    made, expected = thread(GEN), thread(GEN)
    for state in (made, expected):
        state.dwords("cr")[1:3] = 77, 78
    Interpreter(expected, code).run()
    assert engine.run("t1", made, code, 9, Translator(observe=True, messages=False)) is RunOutcome.ENDED
    assert sums(made, 21)[:2] == sums(expected, 21)[:2] == found


def test_cr0_must_be_known_at_every_place() -> None:
    jump = branch(GEN, "jmpi", "over", size=1, predicate=1)
    depends = Listing(GEN, compare(4, GE, 3), jump, rounding(ROUNDING_MODE), "over", add(20, 1), end(GEN))
    with pytest.raises(Untranslatable, match="one thing or another"):
        translate(depends, Key(0, 8, True))
    for strange in (rounding(4), replace(rounding(ROUNDING_MODE), predicate=1), replace(rounding(ROUNDING_MODE), no_mask=False)):
        with pytest.raises(Untranslatable, match="not known"):
            cr0_propagation.written(strange, 0)
    for first in (reg(CR, "ud"), imm(0, "ud"), arf(CR, "ud", indirect=True), arf(CR, "uw"), arf(CR, "ud", 4), arf(0x70, "ud"),
                  arf(CR, "ud", negate=True), arf(CR, "ud", absolute=True)):  # fmt: skip
        with pytest.raises(Untranslatable, match="not known"):
            cr0_propagation.written(replace(rounding(ROUNDING_MODE), sources=(first, imm(ROUNDING_MODE, "ud"))), 0)
    assert cr0_propagation.written(rounding(ROUNDING_MODE, "xor"), ROUNDING_MODE) == 0


@pytest.mark.parametrize("opcode, kind, value, after", [
    ("and", "ud", 0xFFFFFFCF, 0x80008000), ("and", "d", 0xFFFFFFCF, 0x80008000), ("and", "w", 0xFFCF, 0x80008000),
    ("and", "w", 0x1234FFCF, 0x80008000), ("and", "uw", 0xFFCF, None), ("and", "w", 0x7FCF, None), ("or", "w", 0x20, 0x80008030),
    ("or", "uw", 0xABCD0020, 0x80008030), ("or", "w", 0xABCD8020, None), ("xor", "uw", 0x30, 0x80008020),
])  # fmt: skip
def test_an_immediate_for_cr0_is_as_wide_as_its_type(opcode: str, kind: str, value: int, after: int | None) -> None:
    """A word has its sign; what stands in the other half is nothing. Only the modes of floats may change."""
    change = replace(rounding(0, opcode), sources=(arf(CR, "ud", region="0;1,0"), imm(value, kind)))
    if after is None:
        with pytest.raises(Untranslatable, match="not known"):
            cr0_propagation.written(change, 0x80008010)
    else:
        assert cr0_propagation.written(change, 0x80008010) == after


def test_a_translation_gives_way_between_any_two_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two instructions, and as often in the passes after them."""
    seen: list[str] = []
    monkeypatch.setattr(foreground, "yield_to_foreground", lambda: seen.append("give way"))
    steps: list[tuple[Any, str]] = [(KernelTranslator, "_straight"), (KernelTranslator, "_branch"), (KernelTranslator, "_write_exit"),
                                    (RegisterPartition, "expand"), (liveness, "effect"), (inactive_lanes, "effect")]  # fmt: skip
    for place, name in steps:
        real = getattr(place, name)
        monkeypatch.setattr(place, name, lambda *given, real=real, name=name: (seen.append(name), real(*given))[1])
    for code in (divergent(), loop(3)):
        translate(code, Key(0, 8, True))
    assert {name for _, name in steps} <= set(seen)
    assert not [step for step, following in pairwise(seen) if step == following != "give way"]


def test_padding_is_translated() -> None:
    """Zeros between parts of a kernel (isa/padding.py); opcodes that lead nowhere are not."""
    padding = Instruction(GEN, "illegal", 0, "basic")
    made = translate(Listing(GEN, *[padding] * 3, add(20, 1), end(GEN)), Key(0, 8, full=True))
    assert not made.escapes
    with pytest.raises(Untranslatable, match="opcode 0 at 0x0 is no instruction"):
        translate(Listing(GEN, *[padding] * 66, end(GEN)), Key(0, 8, full=True))
