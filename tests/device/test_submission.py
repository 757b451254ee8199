"""Submission ports: which register writes start an engine, and on what."""

from __future__ import annotations

import pytest

from softgen.bits.generation import device
from softgen.device.submission import EngineStart, port

LOW, HIGH = 0x1234_5009, 0x8765_4321


@pytest.mark.parametrize("gpu, engine, base, empty", [
    ("bdw", "render", 0x2000, 1), ("skl", "blitter", 0x22000, 1), ("icl", "render", 0x2000, 7), ("icl", "blitter", 0x22000, 7),
])  # fmt: skip
def test_a_sequence_of_writes_starts_one_context_whole(gpu: str, engine: str, base: int, empty: int) -> None:
    """Both halves of its descriptor; the other elements are empty. Only the last write starts."""
    made = port(device(gpu))
    for _ in range(2):
        *before, last = [list(made.write(*write)) for write in made.sequence(engine, LOW, HIGH)]
        assert before == [[]] * len(before)
        assert last == [EngineStart(engine, base, (LOW, HIGH)), *[EngineStart(engine, base, (0, 0))] * empty]


def test_four_writes_to_an_execlist_port_are_two_elements() -> None:
    """The second first, and of each the high half first. Engines have ports of their own, and other registers are none."""
    made, render, blitter = port(device("skl")), 0x2230, 0x22230
    writes = [(render, 1), (blitter, 5), (render, 2), (render + 4, 9), (render, 3)]
    assert [made.write(*write) for write in writes] == [[]] * 5
    assert made.write(render, 0x1_0000_0004) == [EngineStart("render", 0x2000, (4, 3)), EngineStart("render", 0x2000, (2, 1))]
    assert [made.write(blitter, value) for value in (6, 7)] == [[], []]
    assert made.write(blitter, 8) == [EngineStart("blitter", 0x22000, (8, 7)), EngineStart("blitter", 0x22000, (6, 5))]


def test_a_submit_queue_is_started_by_its_control_register_and_then_empty() -> None:
    made = port(device("icl"))
    low, control = 0x2000 + made.table.registers["low"], 0x2000 + made.table.registers["control"]
    for number in range(16):
        assert made.write(low + 4 * number, 0x1_0000_0000 + number) == []
    assert low + 64 == control and made.write(low - 4, 99) == made.write(control, 2) == made.write(control + 4, 1) == []
    assert [start.descriptor for start in made.write(control, 1)] == [(2 * slot, 2 * slot + 1) for slot in range(8)]
    assert [start.descriptor for start in made.write(control, 1)] == [(0, 0)] * 8


def test_a_ring_is_started_by_its_tail_where_it_is_enabled() -> None:
    """What was executed is not executed again: the head is where the tail was."""
    made, tail, head, start, control = port(device("ivb")), 0x2030, 0x2034, 0x2038, 0x203C
    assert made.write(tail, 0x40) == made.write(start, 0x10000) == made.write(head, 8) == []
    assert made.write(tail, 0x40) == []  # not enabled
    assert made.write(control, 1) == made.write(0x2040, 1) == made.write(0x20000 + tail, 0x40) == []
    (first,) = made.write(tail, 0x80)
    assert (first.engine, first.base, first.descriptor) == ("render", 0x2000, None)
    assert (first.ring.tail, first.ring.head, first.ring.start, first.ring.enable) == (0x80, 8, 0x10000, 1)
    (second,) = made.write(tail, 0x1_0000_0100)
    assert (second.ring.tail, second.ring.head) == (0x100, 0x80)
    for offset, value in ((0x22038, 0x5000), (0x2203C, 1)):
        assert made.write(offset, value) == []
    (other,) = made.write(0x22030, 0x10)
    assert (other.engine, other.base, other.ring.start, other.ring.head) == ("blitter", 0x22000, 0x5000, 0)
