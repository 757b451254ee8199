"""Descriptors in address registers: what is known of them before a kernel runs, and what compiled code compares when it runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from softgen.eu.isa.instruction import Instruction, Operand
from softgen.eu.semantics import send
from softgen.eu.semantics.descriptor_bits import AddressImmediates, known_bits
from softgen.lanes.numpy.machine import NumpyMachine
from softgen.lanes.types import LaneType, u32
from softgen.lanes.value import Value
from softgen.shared_functions import descriptors, message
from tests.eu.semantics.build import arf, dst, imm, instr, reg, scalar

GEN = 9
A0, FLAG = 0x10, 0x30  # among the architecture registers
DATA_CACHE_1, SAMPLER = 12, 2  # shared functions
READ = descriptors.encode("untyped_surface_read", GEN, simd_mode="simd8", channel_mask="r", message_length=1, response_length=1)
SAMPLE = descriptors.encode("sample_lz", GEN, simd_mode="simd8", message_length=2, response_length=4)


def address(sub: int = 0, kind: str = "ud") -> Operand:
    return arf(A0, kind, sub, "0;1,0")


def build(value: int, sub: int = 0, opcode: str = "or", kind: str = "ud", size: int = 1, first: Operand | None = None) -> Instruction:
    sources = [imm(value, kind)] if opcode == "mov" else [first or scalar(12, kind), imm(value, kind)]
    return instr(GEN, opcode, arf(A0, kind, sub), *sources, size=size, no_mask=True)


def message_of(descriptor: int | Operand | None = None, extended: int | Operand | None = None, sfid: int = DATA_CACHE_1) -> Instruction:
    return Instruction(GEN, "send", 0x31, "send", exec_size=8, dst=dst(20), sources=(reg(10),), sfid=sfid,
                       descriptor=address() if descriptor is None else descriptor, extended=extended)  # fmt: skip


def known(*before: Instruction, sent: Instruction | None = None) -> Instruction:
    """The send after some instructions, with the bits that are known."""
    held = AddressImmediates()
    for inst in before:
        assert held.after(inst) is inst
    return held.after(sent or message_of())


def bits(*before: Instruction, sub: int = 0) -> int | None:
    return known_bits(known(*before, sent=message_of(address(sub))).descriptor)


def test_bits_of_a_descriptor() -> None:
    assert known_bits(0x1234) == 0x1234 and known_bits(0) == 0, "an immediate is known, whatever it is"
    assert known_bits(None) is None and known_bits(address()) is None
    assert known_bits(replace(address(), immediate=0x1234)) == 0x1234


@pytest.mark.parametrize("opcode", ["or", "add", "mov"])
@pytest.mark.parametrize("kind", ["ud", "d"])
def test_a_descriptor_is_built_from_an_immediate(opcode: str, kind: str) -> None:
    assert bits(build(0x0C84A000, opcode=opcode, kind=kind)) == 0x0C84A000
    assert bits(build(-1, opcode=opcode, kind=kind)) == 0xFFFFFFFF


@pytest.mark.parametrize("strange", [
    build(0x0C84A000, opcode="and"), build(0x0C84A000, opcode="mul"), build(0x0C84, kind="uw"), build(0x0C84A000, size=2),
    build(0x0C84A000, first=imm(7, "ud")), instr(GEN, "mov", arf(A0, "ud"), scalar(12, "ud"), size=1, no_mask=True),
    replace(build(0x0C84A000), dst=dst(16, "ud")), replace(build(0x0C84A000), dst=arf(FLAG, "ud")),
])  # fmt: skip
def test_what_builds_no_descriptor(strange: Instruction) -> None:
    """Other operations and types, several channels, no immediate or two, other registers."""
    assert bits(strange) is None


def test_registers_are_told_apart() -> None:
    code = [build(0x100, 0), build(0x200, 4), build(0x300, 8)]
    assert [bits(*code, sub=sub) for sub in (0, 4, 8, 12)] == [0x100, 0x200, 0x300, None]
    assert [bits(*code, build(0x400, 4), sub=sub) for sub in (0, 4, 8)] == [0x100, 0x400, 0x300], "the last one counts"


@pytest.mark.parametrize(("kind", "sub", "size", "left"), [
    ("ud", 0, 1, [4, 8]), ("ud", 4, 1, [0, 8]), ("ud", 4, 2, [0]), ("uw", 2, 1, [8]), ("uw", 12, 1, [0, 4, 8]), ("ud", 0, 8, []),
])  # fmt: skip
def test_registers_that_are_written_otherwise_are_not_known(kind: str, sub: int, size: int, left: list[int]) -> None:
    """Nor those that are written in part; every channel counts as a dword."""
    code = [build(0x100, 0), build(0x200, 4), build(0x300, 8),
            instr(GEN, "mov", arf(A0, kind, sub), reg(12, kind), size=size, no_mask=True)]
    assert [place for place in (0, 4, 8) if bits(*code, sub=place) is not None] == left


def test_other_registers_leave_descriptors_as_they_are() -> None:
    others = (instr(GEN, "mov", dst(16, "ud"), imm(5, "ud")), instr(GEN, "mov", arf(FLAG, "ud"), imm(5, "ud"), size=1),
              instr(GEN, "mov", dst(16, "ud", indirect=True), imm(5, "ud")), message_of(READ))  # fmt: skip
    assert bits(build(0x100), *others) == 0x100


def test_an_extended_descriptor_names_the_function_where_the_instruction_does_not() -> None:
    code = [build(READ, 0), build(0x1000 | SAMPLER, 4)]
    found = known(*code, sent=message_of(address(), address(4), sfid=0))
    assert (known_bits(found.descriptor), known_bits(found.extended), found.sfid) == (READ, 0x1000 | SAMPLER, SAMPLER)
    assert known(*code, sent=message_of(address(), address(4))).sfid == DATA_CACHE_1
    unknown = known(sent=message_of(READ, address(4), sfid=0))
    assert (unknown.descriptor, known_bits(unknown.extended), unknown.sfid) == (READ, None, 0)
    plain = known(*code, sent=message_of(address(), 0x1000 | SAMPLER, sfid=0))
    assert (plain.extended, plain.sfid) == (0x1000 | SAMPLER, 0), "an immediate is what the instruction was decoded from"


def test_messages_whose_descriptors_are_known_can_be_compiled() -> None:
    built = build(READ), build(DATA_CACHE_1, 4)
    assert send.has_lane_program(message_of(READ)) and send.has_lane_program(known(*built))
    assert not send.has_lane_program(message_of()) and not send.has_lane_program(message_of(READ, address(4)))
    assert send.has_lane_program(known(*built, sent=message_of(READ, address(4))))
    assert not send.has_lane_program(message_of(0x1F << 14))


@pytest.mark.parametrize(("name", "fields", "atomic"), [
    ("untyped_atomic", {"operation": "add", "simd_mode": "simd8"}, True), ("untyped_surface_read", {"simd_mode": "simd8"}, False),
])  # fmt: skip
def test_messages_that_may_be_atomic(name: str, fields: dict[str, str], atomic: bool) -> None:
    """Those are, of which nothing is known."""
    word = descriptors.encode(name, GEN, message_length=2, response_length=1, **fields)
    assert send.may_be_atomic(message_of(word)) is atomic
    assert send.may_be_atomic(message_of()) and send.may_be_atomic(message_of(0x1F << 14))


# -- when the message is sent ------------------------------------------------------------------------------------------------


class Registers:
    """What descriptors look at of a thread's state, and of the code they are in."""

    def __init__(self, **held: int) -> None:
        self.m, self.held, self.stays = NumpyMachine(), held, list[bool]()

    def read(self, place: str, type: LaneType, offsets: tuple[int, ...]) -> Value:
        assert place == "a" and type is u32
        return self.m.constant(u32, self.held[f"a{offsets[0]}"], 1)

    def escape(self, condition: Value) -> None:
        self.stays.append(bool(condition.payload[0]))


def indices(descriptor: int, held: int, indexed: bool = True, sfid: int = DATA_CACHE_1) -> tuple[bool, Any, Any]:
    """Whether compiled code stays, and the surface and sampler index that it uses."""
    registers: Any = Registers(a0=held)
    operand = replace(address(), immediate=descriptor)
    inst, plan = message_of(operand, sfid=sfid), message.plan(sfid, descriptor, GEN)
    surface, sampler = (int(index.payload[0]) if isinstance(index, Value) else index
                        for index in send._indices(registers, inst, operand, plan, indexed, registers))  # fmt: skip
    return registers.stays == [True], surface, sampler


@pytest.mark.parametrize(("held", "stays"), [(READ, True), (READ | 7, True), (READ | 251, True), (READ | 252, False), (READ | 255, False),
                                             (READ ^ 0x100, False), (READ ^ 1 << 25 | 7, False)])  # fmt: skip
def test_a_surface_index_comes_from_the_register(held: int, stays: bool) -> None:
    """An entry of the binding table; all other bits must be as they were known."""
    found, surface, sampler = indices(READ, held)
    assert found is stays and (not stays or (surface, sampler) == (held & 0xFF, 0))


def test_a_sampler_index_comes_from_the_register() -> None:
    assert indices(SAMPLE, SAMPLE | 5 << 8 | 3, sfid=SAMPLER) == (True, 3, 5)
    assert indices(SAMPLE, SAMPLE | 15 << 8, sfid=SAMPLER) == (True, 0, 15)
    assert not indices(SAMPLE, SAMPLE ^ 1 << 12, sfid=SAMPLER)[0]


@pytest.mark.parametrize("index", [0, 252, 254, 255])
def test_other_units_and_special_surfaces_are_compiled_for_one_index(index: int) -> None:
    """A unit that is not indexed, or a descriptor that was built for memory without an entry."""
    for held, stays in ((READ | index, True), (READ | 1, False)):
        assert indices(READ | index, held, indexed=index != 0) == (stays, index, 0)


@pytest.mark.parametrize("index", [0, 252])
def test_an_extended_descriptor_names_a_bindless_surface(index: int) -> None:
    """Only of that may it be another one than was known."""
    for held, same in ((0x1000 | DATA_CACHE_1, True), (0x5000 | DATA_CACHE_1, False), (0x1000 | SAMPLER, False)):
        registers: Any = Registers(a4=held)
        operand, plan = replace(address(4), immediate=0x1000 | DATA_CACHE_1), message.plan(DATA_CACHE_1, READ | index, GEN)
        found = send._extended(registers, message_of(READ | index, operand), operand, plan, registers)
        if index == 252:
            assert isinstance(found, Value) and found.payload.tolist() == [held]
            assert registers.stays == [held & 0xFFF == DATA_CACHE_1]
        else:
            assert found == 0x1000 | DATA_CACHE_1 and registers.stays == [same]
