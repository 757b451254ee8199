"""Mask-stack branches and additions to ip on every engine: hand-made programs, and what compilers leave to the reference."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from softgen.errors import DecodeError, Unsupported
from softgen.eu.interpreter import RunOutcome
from softgen.eu.isa.instruction import Instruction
from softgen.eu.isa.rules import rules
from softgen.eu.semantics.mask_stack import ADD_IP, branch_of
from softgen.eu.thread.block import MASK_STACK_DEPTH
from softgen.eu.translate import control_flow
from softgen.eu.translate.control_flow import stack_successors
from softgen.eu.translate.kernel import KernelTranslator, Key, translate
from tests.eu.random_programs.cases import generate
from tests.eu.random_programs.engines import ENGINES, left_to_reference
from tests.eu.semantics.build import NZ, L, Listing, arf, branch, dst, end, engine, imm, instr, reg, run, scalar, thread  # noqa: F401

GEN = 4.5
IP = 0xA0  # architecture register
COUNT = np.arange(16, dtype=np.int32)
SINGLE_PROGRAM_FLOW = 4


def add_ip(offset: int, **more: object) -> Instruction:
    return instr(GEN, "add", arf(IP, "ud"), arf(IP, "ud", region="0;1,0"), imm(offset & 0xFFFFFFFF, "d"), size=1, **more)


def compare(number: int, condition: int = L) -> Instruction:
    """Channels whose number is below another."""
    return instr(GEN, "cmp", arf(0, "d"), reg(4), imm(number), condition=condition)


def test_additions_to_ip_are_branches_for_compilers() -> None:
    found = branch_of(add_ip(-48, predicate=1, no_mask=True))
    assert found.opcode == ADD_IP and found.jip == -3 and found.predicate == 1 and found.no_mask
    for other in (add_ip(4), add_ip(16, condition=NZ), instr(GEN, "add", dst(4), reg(5), imm(8))):
        assert branch_of(other) == other
    later = instr(9, "add", arf(IP, "ud"), arf(IP, "ud", region="0;1,0"), imm(16, "d"), size=1)
    assert branch_of(later) == later


@pytest.mark.parametrize("opcode, predicate, no_mask, successors", [
    ("jmpi", 0, False, {64}), ("jmpi", 0, True, {64}), ("jmpi", 1, True, {16, 64}), (ADD_IP, 0, True, {64}), (ADD_IP, 0, False, {16, 64}),
    (ADD_IP, 1, True, {16, 64}), ("if", 0, True, {16, 64}), ("while", 1, False, {16, 64}), ("else", 0, False, {16, 64}),
    ("endif", 0, True, {16}), ("do", 0, False, {16}),
])  # fmt: skip
def test_the_successors_of_branches_with_a_mask_stack(opcode: str, predicate: int, no_mask: bool, successors: set[int]) -> None:
    """The next instruction follows unless the branch is taken for certain; an addition to ip is where no mask can hold it back."""
    inst = SimpleNamespace(opcode=opcode, predicate=predicate, no_mask=no_mask)
    probe: Any = SimpleNamespace(instruction=inst, next=16, jip=64, successors=set())
    stack_successors(probe)
    assert probe.successors == successors


@pytest.mark.parametrize(("items", "changes"), [
    ([], False), ([branch(GEN, "jmpi", "end", size=1)], False), ([add_ip(16)], False),
    ([branch(GEN, "if", "end", predicate=1, pop=0), "end", branch(GEN, "endif", pop=1, jip=0)], True),
])  # fmt: skip
def test_masks_change_where_a_branch_pushes_or_pops_them(items: list[Any], changes: bool) -> None:
    """Threads of other kernels have the channels they were dispatched with all along: what they write last need not be in their blocks."""
    code = Listing(GEN, *items, "end" if "end" not in items else "last", instr(GEN, "mov", dst(20), imm(7)), end(GEN))
    assert control_flow.build(code, rules(GEN), False, 8).changes_masks is changes
    assert KernelTranslator(code, Key(0, 8, full=True)).diverges is changes and translate(code, Key(0, 8, full=True)).clean is not changes


@pytest.mark.parametrize("control", [0, SINGLE_PROGRAM_FLOW])
def test_a_loop_by_additions_to_ip(control: int) -> None:
    """As clip kernels branch: count down, jump back while it is not zero, skip an instruction."""
    made = thread(GEN, 0xFF, r4=COUNT, r10=np.zeros(8, np.int32))
    made.dwords("cr")[0] = control
    count = instr(GEN, "mov", dst(11), imm(5), size=1, no_mask=True)
    down = instr(GEN, "add", dst(11), scalar(11), imm(0xFFFFFFFF), size=1, no_mask=True, condition=NZ)
    work = instr(GEN, "add", dst(10), reg(10), imm(3))
    never = instr(GEN, "mov", dst(10), imm(0))
    assert run(made, count, work, down, add_ip(-32, predicate=1), add_ip(32, no_mask=True), never) is RunOutcome.ENDED
    assert list(made.register(10).view(np.int32)) == [15] * 8
    assert made.executed == 1 + 5 * 3 + 1 + 1


def test_an_addition_to_ip_needs_its_channel() -> None:
    made = thread(GEN, 0xFE, r10=np.zeros(8, np.int32))
    run(made, add_ip(32), instr(GEN, "mov", dst(10), imm(7)))
    assert list(made.register(10).view(np.int32)) == [0] + [7] * 7, "channel 0 is off: no jump"


def save_ip() -> Instruction:
    return instr(GEN, "mov", dst(20, "ud"), arf(IP, "ud", region="0;1,0"), size=1, no_mask=True)


def return_to(offset: int, **more: object) -> Instruction:
    return instr(GEN, "add", arf(IP, "ud"), scalar(20, "ud"), imm(offset, "ud"), size=1, **more)


def calls(offset: int, lost: bool, **more: object) -> list[Any]:
    """A subroutine that is called twice, and returns `offset` bytes behind the mov that has read ip; `lost`: less 16."""
    to_sub = branch(GEN, "jmpi", "sub", size=1, no_mask=True)
    return [save_ip(), to_sub, *[instr(GEN, "mov", dst(10), imm(50))] * (offset // 16 - 2), instr(GEN, "add", dst(10), reg(10), imm(1)),
            save_ip(), to_sub, *[instr(GEN, "mov", dst(10), imm(90))] * (offset // 16 - 2), instr(GEN, "add", dst(10), reg(10), imm(100)),
            branch(GEN, "jmpi", "over", size=1, no_mask=True),
            "sub", instr(GEN, "add", dst(10), reg(10), reg(10)), instr(GEN, "add", dst(10), reg(10), imm(3)),
            *([instr(GEN, "add", dst(20, "ud"), scalar(20, "ud"), imm(-16 & 0xFFFFFFFF, "ud"), size=1, no_mask=True)] if lost else []),
            return_to(offset, **more), instr(GEN, "mov", dst(10), imm(70)), "over"]  # fmt: skip


@pytest.mark.parametrize("offset, lost, expected", [(32, False, 111), (48, False, 111), (48, True, 190)])
def test_returns_by_additions_to_a_saved_ip(offset: int, lost: bool, expected: int) -> None:
    """As the MPEG-2 kernels of intel-vaapi-driver call; 2 * (2 * 0 + 3 + 1) + 3 + 100, or by way of the movs in between."""
    made = thread(GEN, 0xFF, r10=np.zeros(8, np.int32))
    assert run(made, *calls(offset, lost, no_mask=True)) is RunOutcome.ENDED
    assert list(made.register(10).view(np.int32)) == [expected] * 8


def test_a_return_whose_channel_is_off_is_not_taken() -> None:
    made = thread(GEN, 0xFE, r10=np.zeros(8, np.int32))
    run(made, *calls(32, False))
    assert list(made.register(10).view(np.int32)) == [0] + [70] * 7


def test_code_behind_a_return_is_not_translated() -> None:
    """Only movs of ip say where it leads; behind it may be anything."""
    code = Listing(GEN, *calls(32, False, no_mask=True), end(GEN))
    graph = control_flow.build(code, rules(GEN), False, 8)
    (jump,) = graph.computed
    block = next(block for block in graph.blocks.values() if block.lines[-1].ip == jump)
    assert block.successors == (32, 80) and jump + 16 not in graph.blocks


@pytest.mark.parametrize("mask", [0xFF, 0xA5, 0x01])
def test_nested_ifs_and_loops(mask: int) -> None:
    """for each channel: while (n < 6) { n++; if (n == 3) continue; total += n; if (channel < n) break }."""
    made = thread(GEN, mask, r4=COUNT, r10=np.zeros(8, np.int32), r11=np.zeros(8, np.int32))
    total, n = dst(10), dst(11)
    run(made, branch(GEN, "do"), "top",
        instr(GEN, "add", n, reg(11), imm(1)),
        instr(GEN, "cmp", arf(0, "d"), reg(11), imm(3), condition=1), branch(GEN, "cont", "bottom", predicate=1, pop=0),
        instr(GEN, "add", total, reg(10), reg(11)),
        instr(GEN, "cmp", arf(0, "d"), reg(4), reg(11), condition=L),
        branch(GEN, "if", "skip", predicate=1), branch(GEN, "break", "after", pop=1), "skip", branch(GEN, "endif", pop=1),
        "bottom", instr(GEN, "cmp", arf(0, "d"), reg(11), imm(6), condition=L),
        branch(GEN, "while", "top", predicate=1), "after")  # fmt: skip

    def wanted(channel: int) -> int:
        count = total = 0
        while mask >> channel & 1 and count < 6:
            count += 1
            if count == 3:
                continue
            total += count
            if channel < count:
                break
        return total

    assert list(made.register(10).view(np.int32)) == [wanted(channel) for channel in range(8)]


def test_wrong_programs_end_in_the_same_errors() -> None:
    deep = [branch(GEN, "if", "end") for _ in range(MASK_STACK_DEPTH + 1)]
    for items, error, why in (
        ([branch(GEN, "endif", pop=1)], DecodeError, "pops 1 masks, but the IMask stack has 0"),
        ([branch(GEN, "else", "end", pop=1)], DecodeError, "else outside of an if"),
        ([branch(GEN, "break", "end", pop=0)], DecodeError, "the loop stack is empty"),
        ([branch(GEN, "while", "end", predicate=1)], DecodeError, "the loop stack is empty"),
        (deep, Unsupported, "nested more than"),
    ):
        with pytest.raises(error, match=why):
            run(thread(GEN), *items, "end")


def test_compilers_execute_the_branches_themselves(engine: str) -> None:  # noqa: F811
    if engine == "reference":
        return
    left = sum((left_to_reference(ENGINES[engine], generate(GEN, number)) for number in range(8)), start=left_to_reference(
        ENGINES[engine], generate(GEN, 8)))  # fmt: skip
    assert not set(left) & {"if", "iff", "else", "endif", "do", "while", "break", "cont"}, left
