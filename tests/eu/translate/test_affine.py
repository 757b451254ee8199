"""What translations believe of general registers, at every instruction: it must be so on the reference, whatever way a thread came."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from softgen.errors import SoftgenError
from softgen.eu.engine_protocol import AffineRange
from softgen.eu.interpreter import DecodedInstruction, Interpreter, KernelProgram
from softgen.eu.isa.instruction import Instruction
from softgen.eu.thread.state import ThreadState
from softgen.eu.translate.affine import AffineBlockEntries, AffineRegisters, written
from softgen.eu.translate.control_flow import Untranslatable
from softgen.eu.translate.kernel import KernelTranslator, Key
from softgen.lanes.compile.signature import Lanes, Signature
from softgen.lanes.llvm import affine
from softgen.lanes.llvm.affine import AffineValue
from softgen.lanes.llvm.machine import LlvmMachine
from softgen.lanes.types import f32, i32, u16, u32
from softgen.lanes.value import Value
from tests.eu.random_programs import cases
from tests.eu.semantics.build import G, L, Listing, arf, branch, dst, end, imm, instr, reg, scalar, thread
from tests.lanes.both import compile_

GEN = 9
IDS = AffineRange(32, 2, 16, 1, 1023)  # r1: local ids, words
CROOKED = np.array([5, 3, 9, 1, 1, 7, 0, 2], np.int32)
FLAG = 0x30  # f0 among the architecture registers


class Noting(KernelTranslator):
    """Keeps what was believed before each instruction that is no branch, and where blocks begin."""

    def __init__(self, program: KernelProgram, key: Key) -> None:
        super().__init__(program, key)
        self.facts: dict[int, frozenset[AffineRange]] = {}
        arrivals = self.affine_entries

        class Noted(AffineBlockEntries):
            def at(inner, ip: int) -> frozenset[AffineRange]:  # self is the kernel
                self.facts[ip] = arrivals.at(ip)
                return self.facts[ip]

        self.affine_entries = Noted(self.graph, key.payload)
        arrivals.known = self.affine_entries.known

    def _straight(self, line: DecodedInstruction, other: DecodedInstruction | None) -> bool:
        self.facts[line.ip] = frozenset(row for row, held in self.state.affine.ranges.items()
                                        if held is None or held.mask == affine.EVERY and not held.conditions)  # fmt: skip
        return super()._straight(line, other)


def facts(program: KernelProgram, *payload: AffineRange, width: int = 8, full: bool = True, control: int = 0,
          **more: Any) -> dict[int, frozenset[AffineRange]]:  # fmt: skip
    kernel = Noting(program, Key(control, width, full, messages=False, payload=payload, **more))
    kernel.translate()
    return kernel.facts


def holds(row: AffineRange, made: ThreadState) -> bool:
    values = made.grf[row.start : row.end].view(f"u{row.size}").astype(object)
    return all((b - a - row.stride) % (1 << 8 * row.size) == 0 for a, b in pairwise(values)) and (
        row.highest is None or max(values) <= row.highest
    )


def verify(program: KernelProgram, known: dict[int, frozenset[AffineRange]], made: ThreadState, most: int = 2000) -> int:
    """Runs the reference and looks at everything that is believed; how many beliefs that were."""
    runner, count = Interpreter(made, program), 0
    while not made.ended and most:
        for row in known.get(made.ip, ()):
            assert holds(row, made), f"{row} at {made.ip:#x}: {made.grf[row.start : row.end].view(f'u{row.size}')}"
            count += 1
        most -= 1
        if not runner.step():
            made.dwords("n")[0] += 1
    return count


def ids(first: int = 0, step: int = 1) -> np.ndarray[Any, Any]:
    return np.arange(first, first + 16 * step, step, np.uint16)[:16]


def mov(to: Any, source: Any, size: int = 8, **more: Any) -> Instruction:
    return instr(GEN, "mov", to, source, size=size, **more)


def add(to: Any, a: Any, b: Any, size: int = 8, **more: Any) -> Instruction:
    return instr(GEN, "add", to, a, b, size=size, **more)


def flag(mask: int) -> Instruction:
    return mov(arf(FLAG, "uw"), imm(mask, "uw"), size=1, no_mask=True)


ROW10 = AffineRange(320, 4, 8, 1, None)  # r10 as dwords
START = [mov(dst(10), reg(1, "uw"), no_mask=True)]  # r10 = ids
USE = [add(dst(20), reg(10), imm(4))]


def believed(items: Iterable[Instruction | str], at: str, number: int = 10, **more: Any) -> bool:
    """Whether r10 is believed to be a row at a label; all that is believed is looked at on the reference, with several masks and flags."""
    program = Listing(GEN, *items, end(GEN))
    known = facts(program, IDS, **more)
    for mask in (0xFF, 0x0F, 0xF0) if not more.get("full", True) else (0xFF,):
        for flags in (0x00, 0xFF, 0x0F, 0x10):
            made = thread(GEN, mask=mask, r1=ids(3), r2=CROOKED, r10=CROOKED)
            made.arf["f"][:2] = flags
            made.arf["a"].view(np.uint16)[:] = 320
            verify(program, known, made)
    size = IDS.size if number == 1 else ROW10.size
    return any((row.start, row.size) == (number * 32, size) for row in known[program.labels[at]])


# -- straight on -----------------------------------------------------------------------------------------------------


def test_what_the_payload_says_goes_through_moves_sums_and_shifts() -> None:
    items = [*START, instr(GEN, "shl", dst(11), reg(10), imm(2)), add(dst(12), reg(11), scalar(3)), "at", *USE]
    program = Listing(GEN, *items, end(GEN))
    known = facts(program, IDS)[program.labels["at"]]
    assert {IDS, AffineRange(320, 4, 8, 1, 1023), AffineRange(352, 4, 8, 4, 4092), AffineRange(384, 4, 8, 4, None)} == known
    assert believed(items, "at")


@pytest.mark.parametrize("over", [
    mov(dst(10, "uw", sub=2), imm(7, "uw"), size=1, no_mask=True), mov(dst(10, "ub", sub=31), imm(7, "uw"), size=1, no_mask=True),
    mov(dst(10), reg(2)), mov(dst(10, stride=2), reg(2), no_mask=True), mov(dst(10, sub=28), imm(9), size=1, no_mask=True),
    mov(dst(9, sub=16), reg(2), no_mask=True), mov(dst(9), reg(2, region="8;8,1"), size=16, no_mask=True),
    mov(dst(10, "f"), reg(2, "f"), no_mask=True), mov(dst(9, "q"), reg(1, "uw"), no_mask=True),
    mov(dst(8, "uw", stride=4), reg(2, "uw"), size=16),
    instr(GEN, "math", dst(9, "ud"), reg(2, "ud"), scalar(2, "ud"), function=11), add(dst(10), reg(10), reg(2), predicate=1),
    mov(dst(10), imm(5), predicate=1), instr(GEN, "mad", dst(10, "f"), reg(2, "f"), reg(2, "f"), reg(2, "f")),
    mov(dst(0, indirect=True), imm(1), size=1, no_mask=True), mov(dst(0, indirect=True), reg(2)),
])  # fmt: skip
def test_what_is_written_over_is_not_believed(over: Instruction) -> None:
    assert believed([*START, "at", *USE], "at")
    assert not believed([*START, over, "at", *USE], "at")


@pytest.mark.parametrize("beside", [
    mov(dst(9), reg(2)), mov(dst(11), reg(2)), mov(dst(9, "uw", sub=30), imm(1, "uw"), size=1), mov(dst(11, "ub"), imm(1, "uw"), size=1),
    mov(dst(8, "uw", stride=2), reg(2, "uw"), size=16),
])  # fmt: skip
def test_what_is_written_beside_does_no_harm(beside: Instruction) -> None:
    assert believed([*START, beside, "at", *USE], "at")


def test_the_reference_may_have_done_anything() -> None:
    """Reading the clock has no translation."""
    clock = mov(dst(30, "ud"), arf(0xC0, "ud", region="0;1,0"))
    assert not believed([*START, clock, "at", *USE], "at")
    assert not believed([*START, clock, branch(GEN, "jmpi", "at", size=1), "at", *USE], "at")


def test_a_wait_changes_no_registers() -> None:
    notification = arf(0x90, "ud", region="0;1,0")
    assert believed([*START, instr(GEN, "wait", notification, notification, size=1), "at", *USE], "at")


@pytest.mark.parametrize("start, size, lanes, step, highest", [
    ("w", 16, 16, 3, None), ("q", 8, 8, 1, 1023), ("uw", 16, 16, 1, 1023),
])  # fmt: skip
def test_other_widths(start: str, size: int, lanes: int, step: int, highest: int | None) -> None:
    """Words, quadwords, and halves of sixteen channels."""
    move = instr(GEN, "mul", dst(10, start), reg(1, "w", "16;16,1"), imm(3, "w"), size=size, no_mask=True)
    if step == 1:
        move = mov(dst(10, start), reg(1, "uw", "16;16,1"), size=size, no_mask=True)
    program = Listing(GEN, move, "at", *USE, end(GEN))
    known = facts(program, IDS)
    bytes_ = {"w": 2, "uw": 2, "q": 8}[start]
    found = {row for row in known[program.labels["at"]] if row.start == 320}
    assert {(row.size, row.count, row.stride) for row in found} == {(bytes_, lanes, step)}
    verify(program, known, thread(GEN, r1=ids(1000)))


# -- reading ---------------------------------------------------------------------------------------------------------


def reader(*rows: AffineRange) -> AffineRegisters:
    return AffineRegisters(LlvmMachine(), rows)


@pytest.mark.parametrize("type, offsets, step", [
    (u32, range(320, 352, 4), 4), (i32, range(320, 352, 4), 4), (u32, range(324, 340, 4), 4), (u32, range(320, 352, 8), 8),
    (u32, range(348, 316, -4), -4), (u32, [324] * 8, 0), (u32, [900] * 8, 0), (u32, [324], 0),
    (u16, range(320, 352, 2), None), (u32, range(322, 350, 4), None), (u32, range(324, 356, 4), None), (u32, range(316, 348, 4), None),
    (u32, [320, 324, 332, 336], None), (f32, range(320, 352, 4), None), (u32, range(320, 350, 6), None),
])  # fmt: skip
def test_parts_of_a_row_are_rows(type: Any, offsets: Iterable[int], step: int | None) -> None:
    registers = reader(AffineRange(320, 4, 8, 4))
    registers.read(type, tuple(offsets), "%x")
    found = registers.m.ir.affine.get("%x")
    assert (found and found.stride) == (None if step is None else step % (1 << type.bits))


@pytest.mark.parametrize("offsets, first, step", [
    (range(320, 352, 4), 12, 4), (range(328, 352, 4), 20, 4), (range(320, 352, 8), 12, 8), (range(348, 316, -4), 40, -4),
])  # fmt: skip
def test_rows_that_are_read_elsewhere_begin_elsewhere(offsets: Iterable[int], first: int, step: int) -> None:
    """Of what was written since, the first lane is still known as it was computed."""

    def program(m: LlvmMachine, start: Value) -> Value:
        registers = AffineRegisters(m)
        registers.wrote(m.broadcast(start, 8) + m.lane_index(8) * 4, tuple(range(320, 352, 4)), affine.EVERY)
        registers.read(u32, tuple(offsets), "%x")
        assert m.ir.affine["%x"].stride == step % (1 << 32)
        return Value(m, u32, 1, m.ir.emit(f"insertelement <1 x i32> poison, i32 {m.ir.affine['%x'].base()}, i64 0"))

    (found,) = compile_(program, Signature((Lanes(u32, 1),), (Lanes(u32, 1),)))(np.array([12], np.uint32))
    assert found.tolist() == [first]


def test_low_bits_move_with_their_lanes() -> None:
    m = LlvmMachine()
    registers = AffineRegisters(m)
    affine.declare(m.ir, u16, 8, "%ids", 1)
    registers.wrote(m.convert(Value(m, u16, 8, "%ids"), u32), tuple(range(320, 352, 4)), affine.EVERY)
    registers.read(u32, tuple(range(336, 352, 4)), "%x")
    assert m.ir.affine["%x"].low is None
    registers.read(u32, tuple(range(320, 352, 4)), "%y")
    assert m.ir.affine["%y"].low is not None


# -- under masks -----------------------------------------------------------------------------------------------------


MASKED = [mov(dst(10), reg(1, "uw"))]  # no (W)


def test_what_all_channels_wrote_is_whole() -> None:
    assert believed([*MASKED, "at", *USE], "at")
    assert not believed([*MASKED, "at", *USE], "at", full=False)


def test_what_some_channels_wrote_is_not_believed_by_others() -> None:
    """In an if, after it, and in one that is predicated."""
    inside = [flag(0x35), branch(GEN, "if", "end", "end", predicate=1), *MASKED, "in", *USE, "end", branch(GEN, "endif", "out"), "out",
              *USE]  # fmt: skip
    assert not believed(inside, "in")
    assert not believed(inside, "out")
    both = [flag(0x35), branch(GEN, "if", "else", "end", predicate=1), *MASKED, branch(GEN, "else", "end", "end"), "else", *MASKED, "end",
            branch(GEN, "endif", "out"), "out", *USE]  # fmt: skip
    assert not believed(both, "out")
    whole = [flag(0x35), branch(GEN, "if", "else", "end", predicate=1), *START, branch(GEN, "else", "end", "end"), "else", *START, "end",
             branch(GEN, "endif", "out"), "out", *USE]  # fmt: skip
    assert believed(whole, "out")


def test_masks_of_rows_are_those_they_were_written_under() -> None:
    m = LlvmMachine()
    registers, value = AffineRegisters(m), m.lane_index(8) * 4
    offsets = tuple(range(320, 352, 4))
    registers.wrote(value, offsets, "%mask")
    registers.read(u32, offsets, "%x")
    assert m.ir.affine["%x"].mask == "%mask"
    assert affine.usable(m.ir, "%x", "%mask") and not affine.usable(m.ir, "%x", affine.EVERY) and not affine.usable(m.ir, "%x", "%other")
    registers.read(u32, offsets[1:], "%y")
    assert "%y" not in m.ir.affine  # lanes that are others'
    m.ir.affine["%z"] = AffineValue(4, lambda: "0", mask="%other")
    registers.wrote(Value(m, u32, 8, "%z"), offsets, "%mask")
    assert not registers.ranges
    registers.wrote(value, offsets, "%mask")
    assert not registers.facts()
    registers.wrote(m.convert(m.bitcast(Value(m, u16, 8, "%narrow"), u16), u32), offsets, affine.EVERY)
    assert not registers.ranges


def test_what_holds_on_a_condition_is_forgotten_where_that_cannot_be_asked() -> None:
    m = LlvmMachine()
    registers, offsets = AffineRegisters(m), tuple(range(320, 352, 4))
    affine.declare(m.ir, u16, 8, "%ids", 1)
    registers.wrote(m.convert(Value(m, u16, 8, "%ids"), u32), offsets, affine.EVERY)
    assert registers.ranges and not registers.facts()


# -- ways ------------------------------------------------------------------------------------------------------------


def loop(*body: Instruction | str, before: Iterable[Instruction | str] = START) -> list[Instruction | str]:
    """The body three times."""
    count = [add(dst(30), reg(30), imm(1), no_mask=True), instr(GEN, "cmp", arf(0, "d"), reg(30), imm(3), condition=L, no_mask=True)]
    return [*before, "loop", *USE, *body, *count, branch(GEN, "while", "loop", predicate=1), "out", *USE]


@pytest.mark.parametrize("body", [
    [], [mov(dst(11), reg(2))], [mov(dst(9), reg(2))], [add(dst(1, "ud"), reg(1, "ud"), imm(0x10001), no_mask=True)],
])  # fmt: skip
def test_loops_that_leave_a_row_alone(body: list[Instruction]) -> None:
    assert believed(loop(*body), "loop") and believed(loop(*body), "out")


@pytest.mark.parametrize("body", [
    [mov(dst(10), reg(2))], [mov(dst(10, "ub", sub=13), imm(1, "uw"), size=1)], [mov(dst(9, "q"), reg(2), no_mask=True)],
    [mov(dst(8, "uw", stride=4), reg(2, "uw"), size=16, no_mask=True)], [mov(dst(9), reg(2), size=16, no_mask=True)],
    [mov(dst(0, indirect=True), imm(1), size=1, no_mask=True)],
    [instr(GEN, "math", dst(9, "ud"), reg(2, "ud"), scalar(2, "ud"), function=11)],
    [instr(GEN, "math", dst(8, "ud"), reg(2, "ud"), scalar(2, "ud"), function=11, size=16, no_mask=True)],
    [instr(GEN, "mad", dst(10, "f"), reg(2, "f"), reg(2, "f"), reg(2, "f"))], [mov(dst(10), reg(2), align16=True)],
    [flag(0x31), branch(GEN, "if", "endif", "endif", predicate=1), mov(dst(10), reg(2)), "endif", branch(GEN, "endif", "on"), "on"],
    [add(dst(10), reg(10), reg(2), predicate=1)],
])  # fmt: skip
def test_loops_that_write_a_row_somewhere(body: list[Instruction | str]) -> None:
    assert not believed(loop(*body), "loop")


def test_a_row_that_a_loop_makes_anew_is_known_behind_it() -> None:
    items = loop(mov(dst(10), reg(2)), *START, before=())
    assert not believed(items, "loop") and believed(items, "out")


@pytest.mark.parametrize("response, believes", [(1, True), (2, False), (3, False)])
def test_answers_of_messages_are_writes(response: int, believes: bool) -> None:
    """A message that answers with so many registers from r9 on."""
    row = instr(GEN, "send", dst(9, "uw"), reg(2), sfid=12, descriptor=2 << 25 | response << 20)
    assert written(row) == [(288, 288 + 32 * response)]
    program = Listing(GEN, *loop(row), end(GEN))
    assert (replace(ROW10, highest=1023) in facts(program, IDS)[program.labels["loop"]]) is believes
    by_register = instr(GEN, "send", dst(90, "uw"), reg(2), sfid=12, descriptor=arf(0x10, "ud", region="0;1,0"))
    assert written(by_register) == [(0, 4096)]


@pytest.mark.parametrize("inst, first, count", [
    (mov(dst(10), reg(2)), 320, 32), (mov(dst(10), reg(2), size=16), 320, 64), (mov(dst(10, sub=16), reg(2)), 320, 48),
    (mov(dst(10, stride=2), reg(2)), 320, 64), (mov(dst(10, stride=0), reg(2), size=16), 320, 64),
    (mov(dst(10, "uw", sub=2), reg(2, "uw"), size=1), 320, 32), (mov(dst(10, "uw"), reg(2, "uw"), size=16), 320, 32),
    (mov(dst(10, "df"), reg(2, "df"), size=4), 320, 64), (mov(dst(10, "q", sub=8), reg(2, "q")), 320, 136),
    (instr(GEN, "math", dst(10, "f"), reg(2, "f"), function=5), 320, 64),
    (mov(replace(dst(10), indirect=True), reg(2)), 0, 4096), (mov(dst(10, "nf"), reg(2)), 0, 4096), (mov(dst(10, ""), reg(2)), 0, 4096),
])  # fmt: skip
def test_bytes_that_an_instruction_may_write(inst: Instruction, first: int, count: int) -> None:
    """No fewer than its own: whole registers from the first on; twice those of wide types, and a register more of divisions.
    Anything, where that is not known."""
    assert written(inst) == [(first, first + count)]


def test_other_files_are_no_registers_that_are_written() -> None:
    assert [written(mov(to, reg(2))) for to in (arf(FLAG), None)] == [[], []]


def jump(to: str, mask: int = 0) -> list[Instruction]:
    """Taken if the first flag is set (predicated), or always."""
    return [branch(GEN, "jmpi", to, size=1, predicate=mask)]


@pytest.mark.parametrize("other, believes", [(START, True), ([mov(dst(10), reg(2))], False), ([], False)])
def test_ways_that_meet(other: list[Instruction], believes: bool) -> None:
    assert believed([*jump("there", 1), *START, *jump("at"), "there", *other, "at", *USE], "at") is believes


def test_steps_must_be_the_same_on_all_ways() -> None:
    twice = [add(dst(10), reg(1, "uw"), reg(1, "uw"), no_mask=True)]
    assert not believed([*jump("there", 1), *START, *jump("at"), "there", *twice, "at", *USE], "at")


def test_a_way_into_the_middle_of_a_loop_that_never_made_the_row() -> None:
    """The first turn may begin in the middle, where r10 is nothing yet."""
    items = [instr(GEN, "cmp", arf(0, "d"), reg(2), imm(3), condition=G), *jump("middle", 1), *START, "loop", *USE, "middle",
             add(dst(30), reg(30), imm(1), no_mask=True),
             instr(GEN, "cmp", arf(0, "d"), reg(30), imm(3), condition=L, no_mask=True), *jump("loop", 1)]  # fmt: skip
    assert not believed(items, "loop")
    assert believed(items, "loop", number=1)  # what is so from the start on is so on every way


@pytest.mark.parametrize("far", [[mov(dst(10), reg(2), no_mask=True)], USE])
def test_blocks_that_are_reached_from_behind(far: list[Instruction]) -> None:
    """The code jumps over a piece, and comes back to it without the row that another way makes."""
    items = [flag(0x01), *jump("far", 1), *START, *jump("piece"), "piece", *USE, *jump("done"), "far", *far, *jump("piece"), "done",
             *USE]  # fmt: skip
    assert not believed(items, "piece")


def test_nested_loops() -> None:
    inner = [mov(dst(31), imm(0), no_mask=True), "inner", *USE, add(dst(31), reg(31), imm(1), no_mask=True),
             instr(GEN, "cmp", arf(0, "d"), reg(31), imm(2), condition=L, no_mask=True),
             branch(GEN, "while", "inner", predicate=1)]  # fmt: skip
    assert believed(loop(*inner), "inner") and believed(loop(*inner), "loop")
    last = [*inner, mov(dst(10), reg(2))]
    assert not believed(loop(*last), "inner") and not believed(loop(*last), "loop")


# -- whole programs --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gen", [7.0, 8.0, 9.0, 11.0])
def test_random_programs_believe_nothing_that_is_not_so(gen: float) -> None:
    """Registers are made rows before the programs begin, in several types."""
    count, sizes = 0, (2, 4, 8)
    for number in range(3000, 3008):
        case = cases.generate(gen, number)
        program, made = case.program(), case.thread()
        rows = []
        for register in range(8, 112):
            size = sizes[(register + number) % 3]
            step = (1, 4, -2, 0)[register % 4]
            row = np.array([register + step * lane & 0xFFFF if step >= 0 else 500 + step * lane for lane in range(32 // size)], f"u{size}")
            made.grf[register * 32 : register * 32 + 32] = row.view(np.uint8)
            rows.append(AffineRange(register * 32, size, 32 // size, step, 1023))
        try:
            known = facts(program, *rows, width=32, full=False, control=case.control, anywhere=True)
            count += verify(program, known, made, 400)
        except (Untranslatable, SoftgenError):
            continue
    assert count > 2000
