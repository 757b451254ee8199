"""Hostile code: whatever stands in a kernel, a thread runs, or ends in an error that says where. Nothing else comes out, and it ends."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softgen.bits.layout import GENERATIONS
from softgen.errors import DecodeError, GpuFault, SoftgenError, Unsupported
from softgen.eu.encoding.encode import encode
from softgen.eu.interpreter import Interpreter, KernelProgram, RunOutcome
from softgen.eu.isa import opcodes
from softgen.eu.isa.instruction import Instruction, Operand
from softgen.eu.isa.rules import rules
from softgen.eu.thread.message import SentMessage
from softgen.eu.thread.state import ThreadState
from tests.conftest import SHARED
from tests.eu.semantics.build import Listing, arf, branch, dst, imm, instr, reg, scalar, thread
from tests.eu.strategies import instructions

HERE = Path(__file__).parents[2] / "data" / "kernels"
GENERATION = {"ivb": 7.0, "hsw": 7.5, "bdw": 8.0, "kbl": 9.0, "icl": 11.0, "icllp": 11.0}
MOST = 60  # instructions of one run
PIECE = 1024  # bytes of a kernel that are looked at
NATIVE = 16
EXTENDED_MATH = 1  # shared function of Gen4.5
EXPECTED = (DecodeError, Unsupported, GpuFault)
PLACE = re.compile(r"gen [\d.]+, hostile[+-]0x[0-9a-f]+")


@cache
def kernels() -> tuple[tuple[float, Path], ...]:
    """Those at hand, the repository's own first."""
    found = [(GENERATION[path.name.split(".")[1]], path) for path in sorted(HERE.glob("*.dat"))]
    for path in sorted(SHARED.glob("kernels/*/*/*.dat")):
        if path.parent.name in GENERATION:
            found.append((GENERATION[path.parent.name], path))
    return tuple(found)


def answer(made: ThreadState, sent: SentMessage) -> None:
    """Somebody who listens to every message and fills what is asked for."""
    sent.response[:] = sent.descriptor & 0xFF


def execute(gen: float, code: bytes, seed: int = 0, mask: int = 0xFFFF, most: int = MOST) -> SoftgenError | None:
    """Runs code on registers full of something, some instructions long; the error it ended in, which must say where."""
    listeners = {sfid: answer for sfid in range(16) if sfid != EXTENDED_MATH or rules(gen).math == "instruction"}
    made = ThreadState(gen, listeners, dispatch_mask=mask)
    random = np.random.default_rng(seed)
    if seed % 4:
        made.grf[:] = random.integers(0, 256, len(made.grf), np.uint8)
    if seed % 2:
        made.arf["a"][:] = random.integers(0, 256, len(made.arf["a"]), np.uint8)
        made.arf["f"][:] = random.integers(0, 256, len(made.arf["f"]), np.uint8)
    if seed % 8 == 1:
        made.dwords("cr")[:2] = random.integers(0, 1 << 32, 2, np.uint32)
    runs = Interpreter(made, KernelProgram(gen, code, name="hostile"))
    try:
        for _ in range(most):
            if made.ended or not runs.step():
                break
    except EXPECTED as error:
        assert type(error) in EXPECTED and PLACE.search(str(error)), str(error)
        return error
    return None


# -- anything at all -----------------------------------------------------------------------------------------------


seeds = st.integers(0, 1 << 16)
masks = st.sampled_from((0xFFFFFFFF, 0xFFFF, 0xFF, 0x5, 0))


@given(which=st.integers(0, 1 << 16), start=st.integers(0, 1 << 12), seed=seeds, mask=masks,
       flips=st.lists(st.integers(0, PIECE * 8 - 1), min_size=1, max_size=40))  # fmt: skip
@settings(max_examples=settings().max_examples * 3)
def test_flipped_kernels(which: int, start: int, seed: int, mask: int, flips: list[int]) -> None:
    gen, path = kernels()[which % len(kernels())]
    code = path.read_bytes()
    first = start * NATIVE % len(code)
    piece = bytearray(code[first : first + PIECE])
    for bit in flips:
        bit %= min(len(piece), 1 << 4 + seed % 7) * 8  # mostly what is executed first
        piece[bit // 8] ^= 1 << bit % 8
    execute(gen, bytes(piece), seed, mask)


@given(gen=st.sampled_from(GENERATIONS), data=st.data(), seed=seeds, mask=masks)
@settings(max_examples=settings().max_examples * 3)
def test_random_words(gen: float, data: st.DataObject, seed: int, mask: int) -> None:
    """Opcodes that exist, with anything behind them."""
    known = st.sampled_from([row.number for row in opcodes.of_generation(gen)])
    pairs = data.draw(st.lists(st.tuples(known, st.integers(0, (1 << 121) - 1)), min_size=1, max_size=6))
    execute(gen, b"".join((rest << 7 | number).to_bytes(NATIVE, "little") for number, rest in pairs), seed, mask)


@given(made=instructions(), seed=seeds, mask=masks)
@settings(max_examples=settings().max_examples * 3)
def test_whatever_the_fields_can_say(made: Instruction, seed: int, mask: int) -> None:
    execute(made.gen, encode(made).to_bytes(NATIVE, "little"), seed, mask)


# -- what was found that way ---------------------------------------------------------------------------------------


def refused(made: Instruction | Listing, kind: type[SoftgenError], words: str) -> None:
    code = made if isinstance(made, Listing) else Listing(made.gen, made)
    code.name = "hostile"
    with pytest.raises(kind, match=words) as caught:
        Interpreter(thread(code.gen), code).run()
    assert PLACE.search(str(caught.value)), str(caught.value)


@pytest.mark.covering(1)
@pytest.mark.parametrize("gen", GENERATIONS)
@pytest.mark.parametrize("opcode", ["rndu", "rndd", "rnde", "rndz", "frc"])
def test_rounding_takes_floats(gen: float, opcode: str) -> None:
    refused(instr(gen, opcode, dst(4, "f"), reg(8, "d")), DecodeError, f"{opcode} takes sources of types f, not d")


@pytest.mark.covering(1)
@pytest.mark.parametrize("gen", GENERATIONS)
@pytest.mark.parametrize("opcode", ["and", "shl", "shr", "avg", "mach"])
def test_bits_are_those_of_integers(gen: float, opcode: str) -> None:
    refused(instr(gen, opcode, dst(4, "ud"), reg(8, "f"), reg(9, "f")), DecodeError, "takes sources of types .*, not f f")


@pytest.mark.parametrize("gen", GENERATIONS)
def test_an_immediate_is_no_destination(gen: float) -> None:
    refused(instr(gen, "mov", imm(0), reg(8)), DecodeError, "the destination is an immediate")
    refused(instr(gen, "mov", Operand("imm", "d", indirect=True, horizontal=1), reg(8)), DecodeError, "the destination is an immediate")


def test_a_vector_has_four_channels() -> None:
    refused(
        instr(8.0, "dp4", dst(4, "f"), reg(8, "f"), reg(9, "f"), size=2),
        DecodeError,
        "dp4 needs groups of four channels; the execution size is 2",
    )


def test_planes_stand_in_registers() -> None:
    plane = Operand("grf", "f", indirect=True, width=1)
    refused(instr(8.0, "pln", dst(4, "f"), plane, reg(9, "f")), Unsupported, "pln with a register-indirect source")
    refused(instr(8.0, "line", dst(4, "f"), imm(0, "f"), reg(9, "f")), DecodeError, "a register operand is required here, not an immediate")


@pytest.mark.parametrize("gen", GENERATIONS)
def test_registers_end_at_r127(gen: float) -> None:
    refused(instr(gen, "mov", dst(127, sub=4), reg(8)), GpuFault, "write at 0x1000 in grf .*outside its 0x1000 bytes")
    refused(instr(gen, "mov", dst(4), reg(255)), GpuFault, "read at 0x1fe0 in grf")
    indirect = Operand("grf", "d", indirect=True, offset=-4, vertical=8, width=8, horizontal=1)
    refused(instr(gen, "mov", dst(4), indirect), GpuFault, "read at 0xfffffffc in grf")


@pytest.mark.parametrize("gen", [8.0, 9.0, 11.0])
def test_a_type_wider_than_its_register(gen: float) -> None:
    """Nothing of it is inside: reads are zero."""
    made = thread(gen, 1, r4=np.full(2, 7, np.uint64))
    Interpreter(made, Listing(gen, instr(gen, "mov", dst(4, "uq"), arf(0xA0, "uq", region="0;1,0"), size=1))).step()
    assert made.grf[4 * 32 :].view(np.uint64)[:2].tolist() == [0, 7]


def test_branches_by_registers_that_are_not_there() -> None:
    refused(branch(9.0, "ret", None, None, scalar(200)), GpuFault, "read at 0x1900 in grf")
    refused(branch(9.0, "call", 16, None, target=dst(200)), GpuFault, "write at 0x1900 in grf")


def test_descriptors_in_registers_that_are_not_there() -> None:
    row = opcodes.opcode("send", 7.0)
    assert row is not None
    sent = Instruction(7.0, "send", row.number, "send", 8, sfid=7, descriptor=Operand("grf", "ud", 129), dst=arf(0), sources=(reg(1),))
    refused(sent, GpuFault, "read at 0x1020 in grf")


@pytest.mark.parametrize(("function", "length"), [(4, 5), (1, 0), (10, 1), (12, 3)])
def test_extended_math_takes_what_its_function_has(function: int, length: int) -> None:
    row = opcodes.opcode("send", 4.5)
    assert row is not None
    sent = Instruction(4.5, "send", row.number, "send", 8, sfid=EXTENDED_MATH, descriptor=length << 20 | 1 << 16 | function,
                       dst=dst(4, "f"), sources=(arf(0),))  # fmt: skip
    refused(sent, DecodeError, f"takes [12] registers, not {length}")


def test_a_double_immediate_needs_doubles() -> None:
    refused(
        instr(7.5, "dim", dst(4, "f"), imm(1 << 62, "f"), size=4), DecodeError, "dim needs a 64-bit immediate and a destination of type df"
    )


@pytest.mark.parametrize("gen", GENERATIONS)
def test_waiting_for_what_notifies_nobody(gen: float) -> None:
    for operand in (arf(0x20), reg(4), arf(0x90, sub=12), arf(0x90, sub=28)):
        refused(instr(gen, "wait", arf(0), operand, size=1), DecodeError, "wait needs a notification register")
    refused(instr(gen, "wait", arf(0), imm(0), size=1), DecodeError, "a register operand is required here, not an immediate")


# -- it ends -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gen", GENERATIONS)
def test_far_jumps_and_endless_loops(gen: float) -> None:
    for count in (-(1 << 24), 1 << 24):
        refused(branch(gen, "jmpi", count, size=1), GpuFault, r"instruction fetch at -?0x\w+ by gen [\d.]+, hostile[+-]0x")
    code = Listing(gen, "here", branch(gen, "jmpi", "here", size=1))
    assert Interpreter(thread(gen), code).run(100) is RunOutcome.OUT_OF_BUDGET


@pytest.mark.parametrize("gen", GENERATIONS)
def test_long_loops_are_spent_sooner(gen: float) -> None:
    """A hundred branches of 4 KiB each, counted as five."""
    nops = [instr(gen, "nop", size=1)] * 256
    made = thread(gen)
    assert Interpreter(made, Listing(gen, "here", *nops, branch(gen, "jmpi", "here", size=1))).run(100) is RunOutcome.OUT_OF_BUDGET
    assert made.executed == 20 * 257


@pytest.mark.parametrize("opcode", ["if", "do"])
def test_mask_stacks_overflow(opcode: str) -> None:
    made = thread(4.5)
    pushes = Listing(4.5, "again", branch(4.5, opcode, 1), branch(4.5, "jmpi", "again", size=1))
    with pytest.raises(Unsupported, match=f"{opcode} nested more than 16 deep"):
        Interpreter(made, pushes).run()
    assert len(made.masks.imask_stack) + len(made.masks.loop_stack) == 16


EMPTY = [("endif", "pops 1 masks, but the IMask stack has 0"), ("else", "else outside of an if: the IMask stack is empty"),
         ("while", "while outside of a loop: the loop stack is empty"),
         ("break", "break outside of a loop: the loop stack is empty")]  # fmt: skip


@pytest.mark.parametrize(("opcode", "words"), EMPTY)
def test_mask_stacks_underflow(opcode: str, words: str) -> None:
    made = branch(4.5, opcode, 1, pop=0 if opcode == "break" else 1, predicate=1 if opcode == "while" else 0)
    refused(made, DecodeError, words)
