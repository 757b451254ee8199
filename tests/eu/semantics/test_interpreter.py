"""Running: ends, waits, budgets, errors that name the place, what changed; messages; what is not built."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from softgen.bits.layout import GENERATIONS
from softgen.errors import DecodeError, GpuFault, SpecError, Unsupported
from softgen.eu import engine as engines
from softgen.eu.encoding import program
from softgen.eu.interpreter import Interpreter, KernelProgram, RunOutcome, unsupported_opcodes
from softgen.eu.isa import opcodes
from softgen.eu.isa.instruction import Instruction, Operand
from softgen.eu.isa.rules import execution_type, read, rules
from softgen.eu.semantics import OPS
from softgen.eu.semantics.send import RegisterMessage
from softgen.eu.thread.message import SentMessage
from softgen.eu.thread.state import FloatMode, ThreadState
from softgen.eu.translate.engine import Translator
from softgen.lanes.numpy.machine import NumpyMachine
from softgen.lanes.types import bool_
from softgen.lanes.value import Value
from tests.eu.semantics.build import NULL, Listing, arf, branch, dst, end, imm, instr, reg, run, thread

LANES = np.arange(8, dtype=np.int32)


# -- running -------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("EU-18", shows="action")
@pytest.mark.parametrize("gen", GENERATIONS)
def test_a_thread_ends_with_the_message_that_says_so(gen: float) -> None:
    made = thread(gen)
    assert run(made, instr(gen, "nop")) is RunOutcome.ENDED
    assert made.ended and made.executed == 2


@pytest.mark.behaviour("EU-01", shows="action")
@pytest.mark.parametrize("gen", [7, 9])
def test_code_is_decoded_as_it_is_reached(gen: float) -> None:
    """Native and compact instructions mixed; what comes after the end is never looked at."""
    listing = [instr(gen, "mov", dst(20), reg(4)), instr(gen, "add", dst(20), reg(20), imm(5, "d")), end(gen)]
    code = program.assemble([replace(item, sources=item.sources) for item in listing], compact=True) + b"\xff" * 16
    assert len(code) < 16 * 4
    made = thread(gen, r4=LANES)
    assert Interpreter(made, KernelProgram(9, code)).run() is RunOutcome.ENDED
    assert list(made.register(20)) == [lane + 5 for lane in range(8)]


@pytest.mark.behaviour("EU-214", shows="action")
@pytest.mark.parametrize("gen", GENERATIONS)
def test_wait_leaves_until_somebody_notifies(gen: float) -> None:
    notification = arf(0x90, "ud", 0, "0;1,0")
    made = thread(gen)
    interpreter = Interpreter(made, Listing(gen, instr(gen, "wait", notification, notification, NULL, size=1, no_mask=True), end(gen)))
    assert interpreter.run() is RunOutcome.WAITING and made.waiting == 0 and made.ip == 0
    assert interpreter.run() is RunOutcome.WAITING
    made.dwords("n")[0] = 2
    assert interpreter.run() is RunOutcome.ENDED
    assert made.dwords("n")[0] == 1 and made.waiting is None


def waiting(gen: float, engine: str, kind: str, sub: int, counts: list[int]) -> tuple[RunOutcome, ThreadState]:
    """A wait for a notification register, by an offset in bytes, with notifications pending."""
    notification, made = arf(0x90, kind, sub, "0;1,0"), thread(gen)
    made.dwords("n")[:] = counts
    code = Listing(gen, instr(gen, "wait", notification, notification, NULL, size=1, no_mask=True), end(gen))
    return engines.run(engine, made, code, 9, Translator(observe=True, messages=False) if engine == "t1" else None), made


@pytest.mark.parametrize("engine", ["reference", "t0", "t1"])
@pytest.mark.parametrize("gen", [4.5, 7, 9, 11])
def test_each_notification_register_counts_for_itself(gen: float, engine: str) -> None:
    """Dwords, of which any byte names the register: two on Gen4.5, three later (IVB 2574-2618)."""
    count = 2 if gen == 4.5 else 3
    for kind, sub, number in (("ud", 0, 0), ("ud", 4, 1), ("ud", 8, 2), ("uw", 6, 1), ("ub", 11, 2))[: 2 if count == 2 else 5]:
        others = [0 if place == number else 5 for place in range(count)]
        outcome, made = waiting(gen, engine, kind, sub, others)
        assert outcome is RunOutcome.WAITING and made.waiting == number and made.dwords("n").tolist() == others
        outcome, made = waiting(gen, engine, kind, sub, [other or 1 for other in others])
        assert outcome is RunOutcome.ENDED and made.waiting is None and made.dwords("n").tolist() == others
    with pytest.raises(DecodeError, match="wait needs a notification register"):
        waiting(gen, engine, "ud", 4 * count, [5] * count)


def test_a_spent_budget_can_be_renewed() -> None:
    made = thread(9, r4=np.full(8, 10, np.int32))
    items = ("loop", instr(9, "add", dst(4), reg(4), imm(-1 & 0xFFFFFFFF), condition=3), branch(9, "while", "loop", predicate=1), end(9))
    interpreter = Interpreter(made, Listing(9, *items))
    assert [interpreter.run(4), interpreter.run(4), interpreter.run(4)] == [
        RunOutcome.OUT_OF_BUDGET,
        RunOutcome.OUT_OF_BUDGET,
        RunOutcome.ENDED,
    ]
    assert list(made.register(4)) == [0] * 8


def test_what_each_step_changed() -> None:
    made = thread(9, r4=LANES)
    listing = Listing(9, instr(9, "add", dst(20), reg(4), imm(1), condition=2, acc_write=True), instr(9, "nop"), end(9))
    interpreter = Interpreter(made, listing, watch=True)
    interpreter.step()
    assert [change.name for change in made.changed] == ["r20", "acc0", "f0"]
    assert made.changed[0].before == bytes(32) and made.changed[0].after == (LANES + 1).tobytes()
    interpreter.step()
    assert made.changed == ()


def test_the_clock_is_whatever_it_was_given() -> None:
    made = ThreadState(9, {7: lambda thread, sent: None}, clock=lambda: 0x1_2345_6789)
    run(made, instr(9, "mov", dst(20, "ud"), arf(0xC0, "ud", 0, "4;4,1"), size=2))
    assert list(made.register(20)[:2]) == [0x23456789, 1]


def test_the_channel_enable_register() -> None:
    made = thread(9, 0xF5, r4=LANES)
    enables = instr(9, "mov", dst(20, "ud"), arf(0x40, "ud", 0, "0;1,0"), size=1, no_mask=True)
    run(made, instr(9, "cmp", arf(0, "d"), reg(4), imm(3), condition=5), branch(9, "if", "end", "end", predicate=1), enables, "end",
        branch(9, "endif", "after"), "after")
    assert made.register(20)[0] == 0b101


# -- errors --------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("EU-201", "EU-210", "BDW-EU-20", shows="action")
@pytest.mark.parametrize("gen", [7, 9])
def test_no_instruction_is_an_error_and_is_recorded(gen: float) -> None:
    for word in (0, 0x7F, 0x0D):
        made = thread(gen)
        code = program.assemble([instr(gen, "nop")]) + word.to_bytes(16, "little")
        with pytest.raises(DecodeError, match=rf"gen {gen}, kernel 0x40\+0x10: .*opcode {word} is not an instruction of gen {gen}"):
            made.ip, made.channel_ip = 0x40, [0x40] * 32
            Interpreter(made, KernelProgram(gen, code, start=0x40)).run()
        assert made.dwords("cr")[1] == 1 << 28


def test_unsupported_names_kernel_place_and_text() -> None:
    made = thread(9)
    listing = Listing(9, instr(9, "nop"), instr(9, "mul", dst(20, "q"), reg(4, "q", "4;4,1"), reg(6, "q", "4;4,1"), size=4, saturate=True))
    with pytest.raises(Unsupported, match=r"^gen 9, kernel 0x0\+0x10: mul\.sat\(4\) g20<1>Q.*: mul of quadwords with saturation"):
        Interpreter(made, listing).run()
    listing.name = "saxpy"
    del listing.__dict__["title"]
    with pytest.raises(Unsupported, match=r"^gen 9, saxpy\+0x10: MUL!: "):
        Interpreter(thread(9), listing, text=lambda item: f"{item.opcode.upper()}!").run()


def test_sources_that_cannot_be_computed_together() -> None:
    with pytest.raises(Unsupported, match="operands of type nf"):
        run(thread(11), instr(11, "mov", dst(20, "f"), reg(4, "nf")))


OLD = {"halt", "msave", "mrest", "push", "pop"}
UNBUILT = {4: OLD, 4.5: OLD, 7: set(), 7.5: set(), 8: set(), 9: set(), 11: set()}


@pytest.mark.parametrize("gen", GENERATIONS)
def test_the_list_of_what_is_not_built_is_exact(gen: float) -> None:
    """Those on the list raise Unsupported by name; all others have a meaning."""
    assert unsupported_opcodes(gen) == UNBUILT[gen]
    for name in UNBUILT[gen]:
        row = opcodes.opcode(name, gen)
        assert row is not None
        item = Instruction(gen, name, row.number, row.form, 8, dst=NULL, sources=(NULL, NULL), jip=0, pop=0)
        with pytest.raises(Unsupported, match=f"{name} is not yet simulated"):
            run(thread(gen), item)
    assert set(OPS) <= {row.name for known in GENERATIONS for row in opcodes.of_generation(known)}


# -- messages ------------------------------------------------------------------------------------------------------


def send(gen: float, sfid: int, descriptor: int | Operand, target: Operand, *sources: Operand, **more: object) -> Instruction:
    opcode = "sends" if len(sources) > 1 else "send"
    return instr(gen, opcode, target, *sources, sfid=sfid, descriptor=descriptor, **more)


@pytest.mark.parametrize("gen", [7, 7.5, 8, 9, 11])
def test_a_message_carries_registers_and_brings_some_back(gen: float) -> None:
    seen: list[SentMessage] = []

    def echo(thread: ThreadState, sent: SentMessage) -> None:
        seen.append(sent)
        sent.response[:] = sent.payload[::-1]

    made = thread(gen, 0x0F, r10=np.arange(16, dtype=np.uint32))
    made.messages[12] = echo
    made.dwords("cr")[0] = 1
    run(made, send(gen, 12, 2 << 25 | 2 << 20 | 1 << 19 | 0x1234, dst(30, "ud"), reg(10, "ud"), quarter=0))
    sent = seen[0]
    assert (sent.sfid, sent.descriptor & 0x7FFFF, sent.header, sent.mask, sent.alt) == (12, 0x1234, True, 0x0F, True)
    assert bytes(made.grf[30 * 32 : 32 * 32]) == bytes(sent.payload[::-1]) != bytes(64)


@pytest.mark.behaviour("KBL-EU-16", shows="action")
@pytest.mark.parametrize("gen", [9, 11])
def test_a_split_message_has_two_payloads(gen: float) -> None:
    seen: list[SentMessage] = []
    made = thread(gen, r10=np.arange(16, dtype=np.uint32), r40=np.arange(100, 124, dtype=np.uint32))
    made.messages[10] = lambda thread, sent: seen.append(sent)
    run(made, send(gen, 10, 2 << 25, NULL, Operand("grf", "", 10), Operand("grf", "", 40), extended=3 << 6))
    assert len(seen[0].payload) == 64 and list(seen[0].second.view(np.uint32)) == list(range(100, 124))


@pytest.mark.behaviour("EU-149", shows="action")
@pytest.mark.parametrize("gen", [7, 9])
def test_a_descriptor_may_stand_in_a0(gen: float) -> None:
    seen: list[SentMessage] = []
    made = thread(gen)
    made.messages[12] = lambda thread, sent: seen.append(sent)
    made.dwords("a")[0] = 1 << 25 | 0xABC
    run(made, send(9, 12, Operand("arf", "ud", 0x10), NULL, reg(10, "ud")))
    assert seen[0].descriptor == 1 << 25 | 0xABC and len(seen[0].payload) == 32


def test_a_response_of_sixteen_registers() -> None:
    made = thread(9)
    made.messages[12] = lambda thread, sent: sent.response.fill(0xFF)
    run(made, send(9, 12, 1 << 25 | 16 << 20, dst(30, "ud"), reg(10, "ud")))
    assert made.grf[30 * 32 : 46 * 32].all() and not made.grf[46 * 32 :].any() and not made.grf[: 30 * 32].any()


@pytest.mark.behaviour("EU-142", shows="action")
@pytest.mark.parametrize("gen", [7, 9])
def test_a_null_destination_takes_no_answer(gen: float) -> None:
    made = thread(gen)
    made.messages[12] = lambda thread, sent: sent.response.fill(0xFF)
    run(made, send(9, 12, 1 << 25 | 1 << 20, NULL, reg(10, "ud")))
    assert not made.grf.any()


def test_a_predicated_message_is_for_fewer_channels() -> None:
    seen: list[SentMessage] = []
    made = thread(9, 0xFF00)
    made.messages[12] = lambda thread, sent: seen.append(sent)
    made.dwords("f")[0] = 0x5A00
    run(made, send(9, 12, 1 << 25, NULL, reg(10, "ud"), quarter=1, predicate=1))
    assert seen[0].mask == 0x5A and seen[0].first == 8


@pytest.mark.behaviour("EU-143", shows="action")
def test_message_registers_and_the_implied_move() -> None:
    seen: list[SentMessage] = []
    made = thread(4.5, r10=np.arange(8, dtype=np.uint32), r11=np.arange(8, 16, dtype=np.uint32))
    made.messages[6] = lambda thread, sent: seen.append(sent)
    run(made, instr(4.5, "mov", Operand("mrf", "ud", 3, horizontal=1), reg(11, "ud")),
        send(4.5, 6, 2 << 20, NULL, reg(10, "ud"), base_mrf=2), send(4.5, 6, 2 << 20, NULL, NULL, base_mrf=3))
    assert list(seen[0].payload.view(np.uint32)) == list(range(16))
    assert list(seen[1].payload.view(np.uint32)) == [*range(8, 16), *[0] * 8]


def test_a_compressed_write_to_message_registers_side_by_side() -> None:
    made = thread(4.5, 0xFFFF, r10=np.arange(16, dtype=np.uint32))
    run(made, instr(4.5, "mov", Operand("mrf", "ud", 2, horizontal=1), reg(10, "ud"), size=16, quarter=2))
    assert list(made.dwords("mrf")[16:32]) == list(range(16))


def test_a_compressed_write_to_message_registers_four_apart() -> None:
    made = thread(4.5, 0xFFFF, r10=np.arange(16, dtype=np.uint32))
    run(made, instr(4.5, "mov", Operand("mrf", "ud", 0x82, horizontal=1), reg(10, "ud"), size=16, quarter=2))
    held = made.dwords("mrf")
    assert list(held[16:24]) == list(range(8)) and list(held[48:56]) == list(range(8, 16))


PLAN = SimpleNamespace(fields=(), indices=(0, 0))


def test_an_implied_move_takes_a_whole_register() -> None:
    """In compiled code, too, where registers belong to a generic State."""
    m, moved = NumpyMachine(), []

    def write(place: str, value: Value, offsets: tuple[int, ...], mask: Value) -> None:
        moved.append((place, offsets, value.payload.tolist(), mask.payload.all()))

    state = SimpleNamespace(m=m, gen=4.5, mode=FloatMode(), rules=rules(4.5), enabled=lambda item: m.constant(bool_, 1, 8), write=write,
                            read=lambda place, type, offsets: m.constant(type, [at // 4 for at in offsets]))  # fmt: skip
    sent = send(4.5, 1, 4 | 1 << 20 | 1 << 16, dst(20, "f"), reg(10, "f"), base_mrf=2)
    RegisterMessage(state, sent, PLAN, None)  # type: ignore[arg-type]
    assert moved == [("mrf", tuple(range(64, 96, 4)), list(range(80, 88)), True)]


def test_a_payload_by_address_may_lie_before_it() -> None:
    m = NumpyMachine()
    state = SimpleNamespace(m=m, gen=9, mode=FloatMode(), rules=rules(9), enabled=lambda item: m.constant(bool_, 1, 8), flags=None,
                            read=lambda place, type, offsets: m.constant(type, 96, len(offsets)))  # fmt: skip
    sent = send(9, 7, 1 << 25, NULL, Operand("grf", "ud", indirect=True, offset=-32))
    held = RegisterMessage(state, sent, PLAN, None).first  # type: ignore[arg-type]
    assert isinstance(held, Value) and held.payload.tolist() == [64]


def test_an_implied_move_is_a_move() -> None:
    """Region, swizzle and modifiers of source 0 count, and the channel enables of the destination (vertex shaders of Mesa)."""
    made = thread(4.5, 0xFF, r10=np.array([1, 2, 4, 8, 16, 32, 64, 128], np.float32), r20=np.zeros(8, np.float32))
    inv = 1 | 1 << 20 | 1 << 16
    source = Operand("grf", "f", 10, vertical=4, width=4, horizontal=1, swizzle=0b01010101, negate=True)
    to = Operand("grf", "f", 20, horizontal=1, write_mask=0b1000)
    run(made, replace(send(4.5, 1, inv, to, source, base_mrf=2), align16=True))
    assert list(made.register(20).view(np.float32)) == [0, 0, 0, -0.5, 0, 0, 0, -1 / 32]
    made = thread(4.5, 0xFF, r10=np.array([1, 2, 4, 8, 16, 32, 64, 128], np.float32))
    scalar_source, scalar_to = Operand("grf", "f", 10, 12, width=1), Operand("grf", "f", 21, 4, horizontal=1)
    run(made, replace(send(4.5, 1, inv | 1 << 7, scalar_to, scalar_source, base_mrf=2), exec_size=1))
    assert list(made.register(21).view(np.float32))[:3] == [0, 1 / 8, 0]
    for negate, sign in ((False, 1), (True, -1)):
        made = thread(4.5, 0xFF, r10=np.array([1, -2, 4, -8, 16, -32, 64, -128], np.float32))
        run(made, send(4.5, 1, inv, dst(20, "f"), reg(10, "f", negate=negate, absolute=True), base_mrf=2))
        assert list(made.register(20).view(np.float32)) == [sign / 2**channel for channel in range(8)]


def test_a_compressed_message_is_two() -> None:
    made = thread(4.5, 0xFFF0, r10=np.arange(1, 9, dtype=np.float32), r11=np.arange(9, 17, dtype=np.float32))
    both = replace(send(4.5, 1, 1 | 1 << 20 | 1 << 16, dst(20, "f"), reg(10, "f"), base_mrf=2), exec_size=16, quarter=2)
    run(made, both)
    wanted = [0] * 4 + [float(np.float32(1) / np.float32(n)) for n in range(5, 17)]
    assert [*made.register(20).view(np.float32), *made.register(21).view(np.float32)] == wanted
    with pytest.raises(GpuFault, match="there is no m16"):
        run(thread(4.5), replace(both, base_mrf=15))


def test_a_scalar_source_is_that_of_both_halves() -> None:
    made = thread(4.5, 0xFFFF, r10=np.arange(1, 9, dtype=np.float32), r11=np.full(8, 64, np.float32))
    source = Operand("grf", "f", 10, 12, width=1)
    run(made, replace(send(4.5, 1, 1 | 1 << 7 | 1 << 20 | 1 << 16, dst(20, "f"), source, base_mrf=2), exec_size=16, quarter=2))
    assert [*made.register(20).view(np.float32), *made.register(21).view(np.float32)] == [0.25] * 16


def test_math_as_a_message() -> None:
    made = thread(4.5, 0xFF, r10=np.array([4, 16, 0.25, 1, -1, 0, 9, 2], np.float32), r11=np.array([0.5] * 8, np.float32))
    load = instr(4.5, "mov", Operand("mrf", "f", 2, horizontal=1), reg(10, "f"))
    power = instr(4.5, "mov", Operand("mrf", "f", 3, horizontal=1), reg(11, "f"))
    run(made, load, power, send(4.5, 1, 4 | 1 << 20 | 1 << 16, dst(20, "f"), NULL, base_mrf=2),
        send(4.5, 1, 10 | 2 << 20 | 1 << 16, dst(21, "f"), NULL, base_mrf=2))
    root, same = made.register(20).view(np.float32), made.register(21).view(np.float32)
    assert list(root[:4]) == [2, 4, 0.5, 1] and np.isnan(root[4]) and list(same[:4]) == [2, 4, 0.5, 1]


def test_a_saturated_zero_of_a_message_is_positive() -> None:
    made = thread(4.5, 0xFF, r10=np.full(8, -0.0, np.float32))
    run(made, instr(4.5, "mov", Operand("mrf", "f", 2, horizontal=1), reg(10, "f")),
        send(4.5, 1, 4 | 1 << 6 | 1 << 20 | 1 << 16, dst(20, "f"), NULL, base_mrf=2))
    assert list(made.register(20)) == [0] * 8


def test_integer_division_as_a_message() -> None:
    """The denominator comes first."""
    made = thread(4.5, r10=np.full(8, 7, np.int32), r11=np.arange(-4, 4, dtype=np.int32) * 10)
    run(made, instr(4.5, "mov", Operand("mrf", "d", 2, horizontal=1), reg(10)), instr(4.5, "mov", Operand("mrf", "d", 3, horizontal=1),
        reg(11)),
        send(4.5, 1, 11 | 1 << 4 | 2 << 20 | 2 << 16, dst(20), NULL, base_mrf=2))
    assert list(made.register(20).view(np.int32)) == [-5, -4, -2, -1, 0, 1, 2, 4]
    assert list(made.register(21).view(np.int32)) == [-5, -2, -6, -3, 0, 3, 6, 2]


def test_a_message_to_nobody_and_one_too_long() -> None:
    with pytest.raises(Unsupported, match=r"messages to shared function 2 \(descriptor 0x2000000\)"):
        run(thread(9), send(9, 2, 1 << 25, NULL, reg(10, "ud")))
    with pytest.raises(GpuFault, match="4 registers from r126 exceed the register file"):
        run(thread(9), send(9, 7, 4 << 25, NULL, reg(126, "ud")))


@pytest.mark.behaviour("KBL-MSAMP-06", shows="layout")
@pytest.mark.parametrize("gen, function, kind, name", [
    (7, 8, 1, "vme_inter"), (7, 8, 2, "vme_intra"), (9, 8, 2, "integer_motion_estimation"), (9, 13, 1, "skip_and_intra_check"),
    (9, 13, 3, "fractional_and_bidirectional_refinement"),
])  # fmt: skip
def test_motion_estimation_is_refused_by_the_name_of_its_message(gen: float, function: int, kind: int, name: str) -> None:
    """No manual has payloads of VME and CRE: only descriptors are known, from drivers and compilers."""
    with pytest.raises(Unsupported, match=rf"video motion estimation \({name}\) is described in no public manual"):
        run(thread(gen), send(gen, function, 4 << 25 | 1 << 20 | 1 << 19 | kind << 13, dst(20), reg(10, "ud")))


# -- rules ---------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("EU-111", shows="action")
@pytest.mark.parametrize(("types", "want"), [("ub b", "w"), ("w ub", "w"), ("uw d", "d"), ("ud q", "q"), ("hf hf", "hf"), ("hf f", "f"),
                                             ("f d", "f"), ("df df", "df"), ("uv w", "w"), ("vf f", "f"), ("d", "d"), ("nf f", "df")])
def test_execution_types(types: str, want: str) -> None:
    assert execution_type(types.split()) == want
    assert execution_type(reversed(types.split())) == want


@pytest.mark.parametrize(("text", "complaint"), [
    ("rule flow 7 channel\nrule flow 7+ stack", "t:2: rule flow of gen 7 is already given"),
    ("rule flew 7 channel", "t:1: there is no rule flew"),
    ("rule flow 7+ channel", "t: gen 4 has no rule flow"),
    ("execute w d d\nexecute d w d", "t:2: d w is already given, or not an execution type"),
    ("execute w ud d", "t:1: w ud is already given, or not an execution type"),
    ("rule flow", "t:1: a line is 'rule', name, generations, value or 'execute' and three types, not 'rule flow'"),
])
def test_a_wrong_table_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(SpecError) as error:
        read("t", text)
    assert str(error.value) == complaint


def test_rules_differ_where_generations_do() -> None:
    assert [rules(gen).flow for gen in GENERATIONS] == ["stack", "stack", *["channel"] * 5]
    assert [rules(gen).multiply for gen in GENERATIONS] == ["low_first", "low_first", "low_second", "low_second", "full", "full", "full"]
