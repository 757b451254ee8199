"""The register file."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable
from types import FrameType

import pytest

from softgen.bits import page
from softgen.bits.generation import device
from softgen.bits.registers import RegisterPlace
from softgen.device.clock import host_clock
from softgen.device.memory import DeviceMemory
from softgen.device.registers import ContextRegisters, DeviceRegisters, masked
from softgen.device.watchdog import Watchdog


def registers(gpu: str = "skl", start: int = 0) -> DeviceRegisters:
    return DeviceRegisters(device(gpu).generation, itertools.count(start).__next__)


def test_a_register_keeps_what_is_written() -> None:
    file = registers()
    file.write(0x2600, 0x1_2345_6789)
    assert file.read(0x2600) == 0x23456789 and file.read(0x2604) == 0


def test_a_unit_that_watches_one_of_several_registers_gets_what_is_written_there() -> None:
    file, seen = registers(), list[int]()
    file.write_plain((0x2600, 0x2604), (1, 2, 9))  # more than there are registers
    file.on_write(0x2604, seen.append)
    file.write_plain((0x2600, 0x2604), (3, 4))
    assert seen == [4] and (file.read(0x2600), file.read(0x2604)) == (3, 2)


def test_a_unit_answers_for_a_register_with_32_bits() -> None:
    file = registers()
    file.on_read(0x2600, lambda: 0x1_2345_6789)
    file.write(0x2600, 5)
    assert file.read(0x2600) == 0x23456789 and not file.belongs_to_contexts(0x2600) and file.belongs_to_contexts(0x2608)


def test_registers_are_saved_and_restored() -> None:
    file = registers()
    file.write(0x2600, 5)
    saved = file.save((0x2600, 0x2604))
    assert saved == {0x2600: 5, 0x2604: 0}
    for offset in (0x2600, 0x2604, 0x2608):
        file.write(offset, 9)
    assert file.restore(saved) is saved and [file.read(offset) for offset in (0x2600, 0x2604, 0x2608)] == [5, 0, 9]


def test_a_context_hands_over_what_its_commands_write_and_what_is_restored() -> None:
    """Instead of the register; a register that the context does not have yet is zero."""
    own, seen = ContextRegisters(registers(), {}), list[tuple[int, int]]()
    for offset in (0x2600, 0x2608):
        own.on_write(offset, lambda value, offset=offset: seen.append((offset, value)))  # type: ignore[misc]
    own.write(0x2600, 0x1_2345_6789)
    own.write(0x2604, 3)
    assert seen == [(0x2600, 0x23456789)] and own.own == {0x2604: 3}
    own.keep(0x2600, 7)
    assert own.read(0x2600) == 7 and own.save(()) is own.own
    seen.clear()
    assert own.restore({0x2600: 8, 0x2610: 1}) == {0x2604: 3, 0x2600: 8, 0x2610: 1} and seen == [(0x2600, 8), (0x2608, 0)]


def calls(work: Callable[[], None]) -> list[str]:
    """Functions of the register file that some work calls."""
    found, before = list[str](), sys.getprofile()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.endswith("device/registers.py"):
            found.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return found


def test_registers_that_keep_what_is_written_are_looked_up_once() -> None:
    """Batches write the same ones again and again: one call for one of them, and for several together."""
    file, pair = registers(), (0x2600, 0x2604)
    file.write(0x2608, 1)
    assert calls(lambda: file.write(0x2608, 0x1_0000_0002)) == ["write"] and file.read(0x2608) == 2
    file.write_plain(pair, (1, 2))
    assert calls(lambda: file.write_plain(pair, (3, 4))) == ["write_plain"] and [file.read(offset) for offset in pair] == [3, 4]


def test_a_contexts_own_registers_are_looked_up_once() -> None:
    own = ContextRegisters(registers(), {})
    own.write(0x2600, 1)
    assert calls(lambda: own.write(0x2600, 0x1_0000_0002)) == ["write", "is_plain"] and own.own == {0x2600: 2}
    own.write(0x2244, 0x00090009)  # CTX_SR_CTL has a mask
    own.write(0x2244, 0x00010000)
    assert own.read(0x2244) == 8


def test_masked_registers_are_never_written_as_they_are() -> None:
    """Neither alone nor together with others, however often."""
    file, pair = registers("bdw"), (0x2600, 0x2244)
    for value, held in ((0x00090009, 9), (0x00010000, 8), (0x00040004, 12)):
        file.write_plain(pair, (value, value))
        assert (file.read(0x2600), file.read(0x2244)) == (value, held) and not file.is_plain(0x2244)
    assert file.is_plain(0x2600) and not file.is_plain(0x2608)


def test_masked_registers_change_only_where_the_mask_says() -> None:
    file = registers("bdw")
    file.write(0x2244, 0x00090009)  # CTX_SR_CTL
    assert file.read(0x2244) == 9
    file.write(0x2244, 0x00010000)
    assert file.read(0x2244) == 8
    file.write(0x2244, 0x80008000)
    file.write(0x2244, 0x00080000)
    assert file.read(0x2244) == 0x8000
    file.write(0x2244, 0x1_00090009)  # more than 32 bits
    assert file.read(0x2244) == 0x8009


def test_registers_hold_zero_before_they_are_written() -> None:
    """Of a masked register all bits that the first write leaves alone; errors cannot be written."""
    file = registers("bdw")
    assert file.read(0x2244) == file.read(0x20B0) == file.read(0x2600) == 0
    file.write(0x2244, 0x00080008)
    file.write(0x20B0, 0)
    assert (file.read(0x2244), file.read(0x20B0)) == (8, 0)


@pytest.mark.parametrize("gpu", ["gm965", "ivb", "skl", "icl"])
def test_a_mask_may_be_one_field(gpu: str) -> None:
    """EXCC: bits 31:16 mask bits 15:0. A field that is called a mask and begins below bit 16 is none."""
    file = registers(gpu)
    file.write(0x2028, 0x001F_001F)
    file.write(0x2028, 0x0001_0000)
    assert file.read(0x2028) == 0x1E
    file.write(0x2098, 0xFFFF_0000)  # HWSTAM
    assert file.read(0x2098) == 0xFFFF_0000


@pytest.mark.parametrize("field, found", [("31:16  mode_mask", True), ("16  mode_mask", True), ("31:15  mode_mask", False),
                                          ("15  mode_mask", False), ("31:16  mode", False)])  # fmt: skip
def test_a_mask_is_in_the_upper_half(field: str, found: bool) -> None:
    made = page.read("p", f"source KBL 1\nregister R 0x2000\n  gen 9  1 dwords\n    0  {field}\n")["R", 9.0]
    assert masked(RegisterPlace(made, 0x2000, 0, 0)) == found


def test_ones_clear_errors_but_fatal_ones() -> None:
    file, identity = registers(), 0x20B0
    file.raise_error(identity, 0b101)
    file.write(identity, 0b010)
    assert file.read(identity) == 0b101
    file.write(identity, 0b111)
    assert file.read(identity) == 0b001  # an instruction error


@pytest.mark.parametrize("gpu, offset", [("skl", 0x2358), ("icl", 0x2358), ("icl", 0x1C0358), ("skl", 0x22358)])
def test_timestamps_move_by_themselves(gpu: str, offset: int) -> None:
    file = registers(gpu, 0xF_FFFF_FFF0)
    assert file.read(offset) == 0xFFFFFFF0 and file.read(offset) == 0xFFFFFFF1 and file.read(offset + 4) == 0xF
    file.write(offset, 5)
    assert file.read(offset) == 0xFFFFFFF3


def test_the_hosts_clock_ticks_in_36_bits() -> None:
    clock = host_clock(device("skl"))
    first = clock()
    assert 0 <= first < 1 << 36 and any(clock() != first for _ in range(100_000))


def test_the_hosts_clock_ticks_as_often_as_the_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = device("skl")
    monkeypatch.setattr(time, "monotonic_ns", lambda: 5000 * 10**9)
    assert host_clock(gpu)() == 5000 * gpu.limit("timestamp_hz")


def test_a_gpus_memory_keeps_at_most_16_gib() -> None:
    assert DeviceMemory(device("skl").generation).physical.limit == 16 << 30


def test_a_watchdog_ends_at_its_threshold() -> None:
    """And begins again from there; zeros stop it, any other value changes nothing (ICL 250-255)."""
    file, now, ends = registers("icl"), [100], list[int]()
    watchdog = Watchdog(device("icl").generation, file, 0x2000, lambda: now[0], lambda: ends.append(now[0]))

    def poll(*times: int) -> list[int]:
        ends.clear()
        for moment in times:
            now[0] = moment
            watchdog.poll()
        return list(ends)

    file.write(0x217C, 30)
    assert poll(1000) == []
    now[0] = 2000
    file.write(0x2178, 0xFFFFFFFF)
    assert poll(2001, 2029, 2030, 2059, 2060, 2091) == [2030, 2060, 2091]
    file.write(0x2178, 5)
    assert poll(2120, 2121) == [2121] and file.read(0x2178) == 5
    file.write(0x2178, 0)
    assert poll(9000) == []
