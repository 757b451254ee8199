"""Loops in two stages: which loops are, and that nobody sees a difference, wherever they are left."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import softgen
from softgen.eu import engine
from softgen.eu.interpreter import Interpreter, RunOutcome
from softgen.eu.isa.instruction import Instruction, Operand
from softgen.eu.thread.block import Context, ThreadStatus
from softgen.eu.thread.state import ThreadState
from softgen.eu.translate import pipelining
from softgen.eu.translate.engine import Translator
from softgen.eu.translate.kernel import KernelTranslator, Key, translate
from softgen.eu.translate.registers import RegisterAccess
from softgen.lanes.llvm.machine import LlvmMachine
from softgen.lanes.llvm.text import LlvmModule
from softgen.lanes.types import f32, u16, u32
from tests.eu.semantics.build import L, Listing, arf, branch, dst, end, imm, instr, reg, scalar, thread

GEN = 9
SIMD = 16
EVERYBODY = 0xFFFF
RSQ = 5
TURNS = 7
VALUES = np.array([1, 2, 3, 4, 0.1, 1e30, 7, 1e-30, 0, -1, np.inf, np.nan, 1e-40, 14, 15, 16], np.float32)


@pytest.fixture(autouse=True)
def room(monkeypatch: pytest.MonkeyPatch) -> None:
    """On every host."""
    monkeypatch.setattr(pipelining, "has_room", lambda module: True)


def alu(opcode: str, to: int, *sources: Operand, **controls: Any) -> Instruction:
    return instr(GEN, opcode, dst(to, "f"), *sources, size=SIMD, **controls)


def floats(number: int) -> Operand:
    return reg(number, "f")


def rsq(to: int, of: int, **controls: Any) -> Instruction:
    return alu("math", to, floats(of), function=RSQ, **controls)


def counted(turns: int) -> list[Instruction]:
    """r5 counts iterations; the flag says whether there is another."""
    return [instr(GEN, "add", dst(5), scalar(5), imm(1), size=1, no_mask=True),
            instr(GEN, "cmp", arf(0, "d"), scalar(5), imm(turns), size=SIMD, condition=L, no_mask=True)]  # fmt: skip


FIRST = [alu("add", 20, floats(20), floats(10)), alu("mul", 22, floats(20), floats(12))]
SECOND = [rsq(24, 22), alu("mul", 26, floats(24), scalar(20, "f", sub=8)), alu("add", 30, floats(30), floats(26))]
BACK = branch(GEN, "jmpi", "loop", size=1, predicate=1, no_mask=True)


def loop(first: list[Instruction] = FIRST, second: list[Instruction] = SECOND, back: Instruction = BACK, turns: int = TURNS) -> Listing:
    return Listing(GEN, "loop", *counted(turns), *first, *second, back, alu("mov", 40, floats(30)), end(GEN))


def state() -> ThreadState:
    return thread(GEN, EVERYBODY, r10=VALUES, r12=VALUES[::-1].copy(), r14=np.arange(16, dtype=np.float32), r20=VALUES, r30=VALUES)


def is_pipelined(code: Listing, **options: Any) -> bool:
    return "drain" in translate(code, Key(**{"control": 0, "width": SIMD, "full": True, "messages": False} | options)).ir


def statuses(made: ThreadState, code: Listing, budget: int) -> Iterator[RunOutcome]:
    """Runs a thread to its end, as often as it is out of budget on its way."""
    function = Translator(observe=True, messages=False).function(code, 0, SIMD, True)
    while (status := engine.call(function, made, Context(budget=budget))) is ThreadStatus.OUT_OF_BUDGET:
        yield RunOutcome.OUT_OF_BUDGET
    assert status is ThreadStatus.ESCAPE and Interpreter(made, code).run() is RunOutcome.ENDED  # its last message
    yield RunOutcome.ENDED


def registers(made: ThreadState) -> np.ndarray:
    """The general registers, in which all NaNs are one: which of two a sum has is not said."""
    found = made.grf.view(np.float32)
    return np.where(np.isnan(found), np.float32(np.nan), found).view(np.uint32)


def check(code: Listing, budget: int) -> None:
    """All registers, wherever the thread stops."""
    made, expected = state(), state()
    for outcome in statuses(made, code, budget):
        assert Interpreter(expected, code).run(budget) is outcome
        assert (made.ip, made.executed) == (expected.ip, expected.executed)
        differ = np.flatnonzero(registers(made) != registers(expected))
        assert not differ.size, f"r{differ[0] // 8} after {made.executed} instructions"


# -- nobody sees a difference --------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [1, 2, 3, 1000])
@pytest.mark.parametrize("turns", [1, 2, 3, TURNS])
def test_registers_are_those_of_one_iteration_after_the_other(turns: int, budget: int) -> None:
    assert is_pipelined(loop(turns=turns), observe=True)
    check(loop(turns=turns), budget)


@pytest.mark.parametrize("second", [
    [*SECOND, alu("add", 32, floats(32), floats(10))],  # what is the same in every iteration
    [*SECOND, alu("add", 32, floats(26), scalar(14, "f", sub=4))],
    [*SECOND, instr(GEN, "add", dst(34, "hf"), reg(20, "hf"), reg(22, "hf"), size=SIMD)],  # the same registers in another type
    [*SECOND, instr(GEN, "mov", dst(36, "d"), scalar(5), size=1, no_mask=True)],
    [*SECOND, rsq(32, 30), alu("mul", 34, floats(32), floats(32))],
    [*SECOND, instr(GEN, "add", dst(36), reg(36), reg(34), size=8), instr(GEN, "mov", dst(34), scalar(14), size=8)],
    [rsq(24, 22), rsq(26, 20), alu("mad", 30, floats(30), floats(24), floats(26))],
], ids=["invariant", "scalar", "halves", "counter", "two", "integers", "pair"])
def test_what_a_second_stage_reads(second: list[Instruction]) -> None:
    assert is_pipelined(loop(second=second))
    for budget in (1, 1000):
        check(loop(second=second), budget)


@pytest.mark.parametrize("seed", range(40))
def test_random_loops(seed: int) -> None:
    """Of few registers, so that stages depend on each other in every way."""
    rng = random.Random(seed)
    few = rng.choice((6, 12, 24))

    def register() -> int:
        return 10 + 2 * rng.randrange(few)

    def source() -> Operand:
        return rng.choice((floats, floats, lambda number: scalar(number, "f", sub=4 * rng.randrange(8))))(register())

    def some(count: int) -> list[Instruction]:
        return [alu(rng.choice(("add", "mul")), register(), source(), source()) for _ in range(count)]

    code = loop(some(rng.randint(1, 4)), [rsq(register(), register()), *some(rng.randint(0, 4))])
    check(code, rng.choice((1, 2, 1000)))


# -- which loops ---------------------------------------------------------------------------------------------------


def test_stages_have_registers_of_their_own() -> None:
    """r10 and r12 are read by the first stage, r20 and r22 written."""
    alone = [number for number in range(10, 40, 2) if is_pipelined(loop(second=[*SECOND, alu("mov", number, floats(26))]))]
    assert alone == [number for number in range(10, 40, 2) if number not in (10, 12, 20, 22)]


def test_registers_are_saved_lane_after_lane() -> None:
    """So that one load reads them; each operand by itself, once, and only what the first stage writes."""
    m = LlvmMachine()
    wrote = RegisterAccess("grf", f32, tuple(range(640, 672, 4)), value="%value")
    earlier = [wrote, RegisterAccess("grf", f32, (960,), result="%read")]
    made = pipelining.PipelinedLoop(0x100, [], [], earlier, m.variable(m.constant(u32, 0, 1)))
    backwards, halves = tuple(range(668, 636, -4)), tuple(range(640, 656, 2))
    for _ in range(2):
        assert made.renamed("grf", f32, backwards) == ("saved", tuple(range(0, 32, 4)))
        assert made.renamed("grf", u16, halves) == ("saved", tuple(range(256, 272, 2)))
    for place, offset in (("grf", 672), ("grf", 960), ("acc", 640), ("grf", 636)):
        assert made.renamed(place, f32, (offset,)) == (place, (offset,))
    assert len(made.saved) == 2


@pytest.mark.parametrize("changed", [
    {"second": [replace(SECOND[0], predicate=1), *SECOND[1:]]},
    {"second": [*SECOND[:2], replace(SECOND[2], condition=L)]},
    {"second": [*SECOND, replace(SECOND[2], acc_write=True)]},
    {"second": [*SECOND, alu("mul", 32, arf(0x20, "f"), floats(26))]},
    {"first": [*FIRST, alu("mov", 34, floats(22), acc_write=True)], "second": [*SECOND, alu("mul", 32, arf(0x20, "f"), floats(26))]},
    {"first": [*FIRST, instr(GEN, "mov", arf(0x10, "uw"), scalar(5, "uw"), size=1, no_mask=True)],
     "second": [*SECOND, instr(GEN, "mov", dst(36, "uw"), arf(0x10, "uw", region="0;1,0"), size=1, no_mask=True)]},
    {"second": [*SECOND, alu("mov", 32, replace(floats(0), indirect=True))]},
    {"second": [*SECOND, replace(SECOND[2], breakpoint=True)]},
    {"second": [*SECOND, instr(GEN, "nop")]},
    {"second": [alu("add", 30, floats(30), floats(22))]},  # nothing takes long
    {"first": [alu("mov", 20, replace(floats(0), indirect=True)), *FIRST]},
    {"second": [*SECOND, alu("mul", 22, floats(22), floats(26))]},  # the next iteration's registers
    {"second": [*SECOND, alu("add", 12, floats(12), floats(26))]},  # read by the first stage
    {"second": [*SECOND, *[alu("add", 30, floats(30), floats(26))] * pipelining.MOST]},
    {"back": branch(GEN, "while", "loop", predicate=1)},
], ids=["predicate", "condition", "accumulator written", "accumulator read", "accumulator in both", "address register in both",
        "by address", "breakpoint", "nop", "short", "first by address", "writes what is saved", "writes what is read", "long",
        "while"])  # fmt: skip
def test_loops_that_are_left_as_they_are(changed: dict[str, Any]) -> None:
    assert is_pipelined(loop()) and not is_pipelined(loop(**changed))
    if not any(item.breakpoint for item in changed.get("second", ())):
        check(loop(**changed), 2)


def test_masks_of_a_loop_that_is_left_as_it_is() -> None:
    """Of 32 channels that the thread has half of: what was tried is gone with its names."""
    words = instr(GEN, "add", dst(36, "w"), reg(36, "w"), reg(34, "w"), size=32)
    assert is_pipelined(loop(second=[*SECOND, words]))
    code = loop(second=[*SECOND, words, alu("mul", 22, floats(22), floats(26)), words])
    assert not is_pipelined(code)
    check(code, 2)


def test_how_long_a_second_stage_may_be() -> None:
    sums = [alu("add", 30, floats(30), floats(26))] * pipelining.MOST
    assert [is_pipelined(loop(second=[*SECOND, *sums[count:]])) for count in (2, 3, 4)] == [False, True, True]


def test_a_jump_that_is_no_loop() -> None:
    out = branch(GEN, "jmpi", "out", size=1, predicate=1, no_mask=True)
    code = Listing(GEN, *counted(TURNS), *FIRST, *SECOND, out, alu("mov", 40, floats(30)), "out", end(GEN))
    assert not is_pipelined(code)
    check(code, 2)


def test_a_loop_that_only_some_channels_reach() -> None:
    """The others wait behind it."""
    some = instr(GEN, "cmp", arf(0, "f", sub=0), floats(14), imm(0x40A00000, "f"), size=SIMD, condition=L)
    code = Listing(GEN, some, branch(GEN, "if", "end", "end", size=SIMD, predicate=1), "loop", *counted(TURNS), *FIRST, *SECOND, BACK,
                   "end", branch(GEN, "endif", "after", size=SIMD), "after", alu("mov", 40, floats(30)), end(GEN))  # fmt: skip
    assert not is_pipelined(code)
    check(code, 2)


def test_a_loop_that_changes_how_floats_are_rounded() -> None:
    """Up for its first instructions, to nearest for the others."""
    up, nearest = (instr(GEN, opcode, arf(0x80, "ud"), arf(0x80, "ud", region="0;1,0"), imm(bits, "ud"), size=1, no_mask=True)
                   for opcode, bits in (("or", 0x10), ("and", 0xFFFFFFCF)))  # fmt: skip
    code = loop([up, *FIRST], [SECOND[0], nearest, *SECOND[1:]])
    assert not is_pipelined(code)
    check(code, 2)


def test_threads_come_back_to_where_they_did_before() -> None:
    made = KernelTranslator(loop(), Key(0, SIMD, True, messages=False))
    assert made.translate().entries == (0,)
    assert [exit.status for exit in made.exits] == [ThreadStatus.OUT_OF_BUDGET, ThreadStatus.ESCAPE]


@pytest.mark.parametrize("option", [{"full": False}, {"anywhere": True}])
def test_channels_that_may_be_inactive(option: dict[str, Any]) -> None:
    assert not is_pipelined(loop(), **option)


def test_registers_that_both_stages_write_in_part() -> None:
    """r21 is the second stage's, r20 the first's; a read of both belongs to neither."""
    low = instr(GEN, "add", dst(20, "f"), floats(20), floats(10), size=8, no_mask=True)
    high = instr(GEN, "add", dst(21, "f"), floats(21), floats(26), size=8, no_mask=True)
    both = [rsq(24, 12), alu("mul", 26, floats(24), floats(20)), high]
    code = loop([low], both)
    assert not is_pipelined(code) and is_pipelined(loop([low], [*both[:2], replace(high, dst=dst(31, "f"))]))
    check(code, 1)


def test_hosts_with_wide_registers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    for features, room in ((("avx512f",), True), (("avx2", "fma"), False)):
        monkeypatch.setattr(LlvmModule, "has", lambda self, feature, features=features: feature in features)
        assert pipelining.has_room(LlvmModule()) is room


# -- with memory ---------------------------------------------------------------------------------------------------

# Each channel adds 1 / sqrt(x) of dwords from its payload's byte on, a page from one to the next, and stores the sum there in surface 1.
SUMS = """
(W) mov (8|M0)  r127.0<1>:ud r0.0<8;8,1>:ud
    mov (16|M0) r10.0<1>:ud r1.0<8;8,1>:ud
    mov (16|M0) r30.0<1>:f 0.0:f
    mov (16|M0) r6.0<1>:ud r1.0<8;8,1>:ud
(W) mov (1|M0)  r5.0<1>:d 0:w
loop:
(W) add (1|M0)  r5.0<1>:d r5.0<0;1,0>:d 1:w
    send (16|M0) r20:w r10 0xC 0x04205EBTI
(W) cmp (16|M0) (lt)f0.0 null<1>:d r5.0<0;1,0>:d TURNS:w
    add (16|M0) r10.0<1>:ud r10.0<8;8,1>:ud 4096:w
    math.rsqt (16|M0) r24.0<1>:f r20.0<8;8,1>:f
    add (16|M0) r30.0<1>:f r30.0<8;8,1>:f r24.0<8;8,1>:f
(W&f0.0) jmpi loop
    mov (16|M0) r8.0<1>:f r30.0<8;8,1>:f
    send (16|M0) null:w r6 0xC 0x08025E01
(W) send (8|M0) null r127 0x27 0x02000010 {EOT}
"""
PAGE = 4096


def code(turns: int, index: int = 0) -> bytes:
    return softgen.assemble(SUMS.replace("BTI", f"{index:02X}").replace("TURNS", str(turns)), "kbl")


def outcome(name: str, program: bytes, payload: np.ndarray) -> tuple[bytes, int, list[str]]:
    with softgen.Gpu("kbl", engine=name, threads=1, on_fault="collect") as gpu:
        x, y = gpu.buffer(np.arange(1, 8 * PAGE // 4 + 1, dtype=np.float32)), gpu.empty(16, np.float32)
        run = gpu.execute(program, payload=payload.astype(np.int32), surfaces=[x, y])
        return y.array.tobytes(), run.instructions, [str(fault) for fault in run.faults]


@pytest.mark.parametrize("turns", [1, 8, 9, 30])
def test_loads_of_the_next_iteration(turns: int) -> None:
    """Behind the surface's eighth page there are zeros."""
    lanes = 4 * np.arange(16)
    found = outcome("t1", code(turns), lanes)
    assert found == outcome("reference", code(turns), lanes) and found[1:] == (8 + 7 * turns, [])
    assert (np.frombuffer(found[0], np.float32)[0] == np.inf) is np.bool_(turns > 8)


def test_a_load_of_a_later_iteration_that_faults() -> None:
    """Stateless, page after page until one is not there: the same as without stages."""
    found = outcome("t1", code(1000, 0xFF), np.zeros(16))
    _, _, (fault,) = found
    assert found == outcome("reference", code(1000, 0xFF), np.zeros(16)) and "read at" in fault and "not mapped" in fault
    once = outcome("t1", code(1, 0xFF), np.zeros(16))
    assert not once[2], "the first page is there"
