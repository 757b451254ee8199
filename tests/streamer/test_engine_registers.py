"""An engine's registers by their names: where they are, registers of several dwords, and those that count."""

from __future__ import annotations

from collections import defaultdict

import pytest

from softgen.bits.generation import device
from softgen.streamer.engine_registers import EngineRegisters

BASE = 0x22000  # of the blitter
DEPTH_COUNT, CS_GPR, RESULT = BASE + 0x350, BASE + 0x600, BASE + 0x418  # of two dwords; sixteen of two dwords; of one
GUARD = 0xDEAD0001


class Registers:
    """Registers that remember what is written to them."""

    def __init__(self) -> None:
        self.values, self.written = defaultdict[int, int](int), list[int]()

    def read(self, offset: int) -> int:
        return self.values[offset]

    def write(self, offset: int, value: int) -> None:
        assert 0 <= value <= 0xFFFFFFFF
        self.values[offset] = value
        self.written.append(offset)


@pytest.fixture
def registers() -> Registers:
    return Registers()


@pytest.fixture
def engine(registers: Registers) -> EngineRegisters:
    made = EngineRegisters(registers, BASE)
    made.generation = device("kbl").generation
    return made


def test_registers_have_offsets_of_the_engine_or_of_the_device(engine: EngineRegisters) -> None:
    assert engine.register(0x34) == 0x34 and engine.register(0x34, relative=1) == BASE + 0x34
    assert engine.own("SO_NUM_PRIMS_WRITTEN1") == 0x5208 and engine.own("MI_PREDICATE_RESULT") == RESULT
    assert [engine.own("CS_GPR", number) for number in (0, 1, 15)] == [CS_GPR, CS_GPR + 8, CS_GPR + 120]


def test_a_register_of_two_dwords_has_its_lower_one_first(engine: EngineRegisters, registers: Registers) -> None:
    engine.set("CS_GPR", 0x1122334455667788, 2)
    place = CS_GPR + 16
    assert registers.values == {place: 0x55667788, place + 4: 0x11223344}
    assert engine.get("CS_GPR", 2) == 0x1122334455667788 and engine.get("CS_GPR", 1) == engine.get("CS_GPR", 3) == 0


@pytest.mark.parametrize("value, holds", [(0, False), (1, True), (2, False), (3, True)])
def test_the_predicate_is_one_bit(engine: EngineRegisters, value: int, holds: bool) -> None:
    engine.set("MI_PREDICATE_RESULT", value)
    assert engine.predicate() is holds


@pytest.mark.parametrize("held, more", [
    (0, 1), (0x7FFFFFFF, 1), (0x7FFFFFFF, 0x80000000), (0xFFFFFFFE, 1), (0xFFFFFFFF, 1), (0xFFFFFFF0, 0x30), (0x1_FFFFFFFF, 1),
    (5, 0x3_00000002), (0x2_FFFFFFFF, 0xFFFFFFFF), ((1 << 64) - 1, 1), ((1 << 64) - 2, 5),
])  # fmt: skip
def test_a_register_that_counts_carries_from_dword_to_dword_and_wraps(
    engine: EngineRegisters, registers: Registers, held: int, more: int
) -> None:
    registers.values |= {DEPTH_COUNT - 4: GUARD, DEPTH_COUNT + 8: GUARD}
    for _ in range(2):  # the place of the register is found once
        engine.set("PS_DEPTH_COUNT", held)
        engine.add("PS_DEPTH_COUNT", more)
        assert engine.get("PS_DEPTH_COUNT") == (held + more) % (1 << 64)
    assert registers.values[DEPTH_COUNT - 4] == registers.values[DEPTH_COUNT + 8] == GUARD


@pytest.mark.parametrize("held, more, written", [(0, 1, 1), (0x7FFFFFFF, 1, 1), (0xFFFFFFFF, 1, 2), (0, 1 << 32, 2)])
def test_an_upper_dword_is_written_where_there_is_a_carry(
    engine: EngineRegisters, registers: Registers, held: int, more: int, written: int
) -> None:
    engine.set("PS_DEPTH_COUNT", held)
    registers.written.clear()
    engine.add("PS_DEPTH_COUNT", more)
    assert registers.written == [DEPTH_COUNT, DEPTH_COUNT + 4][:written]


def test_counts_wait_until_they_are_looked_at(engine: EngineRegisters, registers: Registers) -> None:
    """Those of the same registers are added up; other registers have the ones before written; none is written for a count of nothing."""
    pixels, others = ("PS_DEPTH_COUNT", "CL_PRIMITIVES_COUNT"), ("IA_VERTICES_COUNT",)
    engine.count(pixels, (7, 0))
    engine.count(pixels, [3, 0])
    assert not registers.written
    engine.count(others, (2,))
    assert registers.written == [DEPTH_COUNT] and registers.values[DEPTH_COUNT] == 10
    engine.count(others, (2,))
    assert engine.get("IA_VERTICES_COUNT") == 4 and engine.get("CL_PRIMITIVES_COUNT") == 0
    engine.count(pixels, (1, 5))
    engine.set("PS_DEPTH_COUNT", 100)  # after what was counted before
    assert (engine.get("PS_DEPTH_COUNT"), engine.get("CL_PRIMITIVES_COUNT")) == (100, 5)
    written = len(registers.written)
    engine.write_counts()
    assert len(registers.written) == written and engine.counted_names == ()
