"""Streams: straight code for threads whose channels are all on."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from softgen.eu.interpreter import Interpreter
from softgen.eu.threaded import run, streams
from softgen.eu.threaded.engine import threaded as engine_of
from softgen.eu.threaded.handlers import HandlerKind
from softgen.eu.threaded.record import OP
from softgen.eu.threaded.shapes import channels, computing
from softgen.eu.threaded.state import StreamState
from softgen.lanes.types import LaneType, u16, u32, u64
from tests.eu.semantics.build import Listing, arf, branch, dst, end, imm, instr, reg, thread

NUMBERS = np.arange(8, dtype=np.int32) * 77 + 5


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "SHORTEST", 4)
    monkeypatch.setattr(streams, "OFTEN", 2)
    engine_of.cache_clear()


def steps(*given) -> list[streams.Step]:
    return [(HandlerKind("compute", computing(item).shape), computing(item)) for item in given]


def add(to: int, a: int, b: int, **more):
    return instr(9, "add", dst(to, sub=more.pop("sub", 0)), reg(a), reg(b), **more)


def xor(to: int, a: int, **more):
    return instr(9, "xor", dst(to), reg(a), imm(0x1234, "w"), **more)


def same(code: Listing, mask: int = 0xFF, ip: int = 0, flags: int = 0):
    """Runs on both; the reference's thread."""
    made = [thread(9, mask, **{f"r{number}": NUMBERS * number for number in range(2, 12)}) for _ in range(2)]
    for one_, go in zip(made, (lambda t: Interpreter(t, code).run(), lambda t: run(t, code)), strict=True):
        one_.arf["f"][0] = flags & 0xFF
        one_.ip = ip
        one_.channel_ip = [ip] * 32
        go(one_)
    assert made[0].compare(made[1].snapshot()) == () and made[0].executed == made[1].executed
    return made[0]


def count(code: Listing, entry: int = 0) -> int:
    """How many streams a program has."""
    linked = engine_of(9.0).link(code, 0, entry, messages=False)
    return int((linked.ops.view(OP)["need"] != 0).sum())


STRAIGHT = [
    item for number in range(6) for item in (add(20 + number, 2 + number, 3), xor(30 + number, 20 + number), add(3, 30 + number, 3))
]


@pytest.mark.parametrize("mask", [0xFF, 0x5A, 0xFFFF])
@pytest.mark.parametrize("ip", [0, 16, 80])
def test_all_channels_or_some_from_the_start_or_the_middle(mask: int, ip: int) -> None:
    code = Listing(9, *STRAIGHT, end(9))
    assert count(code, ip) == 1
    same(code, mask, ip)


def test_a_stream_needs_the_channels_of_all_its_instructions() -> None:
    """The second quarter's are off: nothing of these may be written."""
    code = Listing(9, *(replace(item, quarter=number % 2) for number, item in enumerate(STRAIGHT)), end(9))
    linked = engine_of(9.0).link(code, 0, messages=False)
    assert max(linked.ops.view(OP)["need"]) == 0xFFFF
    made = same(code, 0xFF)
    assert not made.register(30).any() and made.register(20).any()


def test_predicates_and_conditions_in_a_stream() -> None:
    compare = instr(9, "cmp", dst(13), reg(4), reg(3), condition=5)
    chosen = [compare, add(14, 4, 5, predicate=1), xor(14, 14, predicate=1, predicate_invert=True)]
    code = Listing(9, *STRAIGHT[:6], *chosen, *chosen, add(15, 14, 3), end(9))
    assert count(code) == 1
    for flags in (0, 0x0F, 0xFF):
        same(code, flags=flags)


def test_in_loops_short_ones_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Channels that are through wait: the stream is taken only as long as all go round."""
    monkeypatch.setattr(streams, "SHORTEST", 64)
    code = Listing(9, "top", add(20, 2, 3), add(21, 20, 3), xor(22, 21), instr(9, "add", dst(10), reg(10), imm(-99)),
                   instr(9, "cmp", dst(23), reg(10), imm(0), condition=3), branch(9, "while", "top", predicate=1), end(9))  # fmt: skip
    assert count(code) == 1
    same(code)
    same(code, 0xA5)


def test_in_a_loop_behind_a_change_of_cr0_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """These records are the second of two parts. Short code before the loop is no stream."""
    monkeypatch.setattr(streams, "SHORTEST", 64)
    rounding = instr(9, "or", arf(0x80, "ud"), arf(0x80, "ud", region="0;1,0"), imm(0x10, "ud"), size=1, no_mask=True)
    code = Listing(9, rounding, *STRAIGHT[:6], "top", add(20, 2, 3), add(21, 20, 3), xor(22, 21),
                   instr(9, "add", dst(10), reg(10), imm(-99)), instr(9, "cmp", dst(23), reg(10), imm(0), condition=3),
                   branch(9, "while", "top", predicate=1), end(9))  # fmt: skip
    linked = engine_of(9.0).link(code, 0, 0, messages=False)
    assert [ip for ip, need in linked.ops.view(OP)[["ip", "need"]].tolist() if need] == [code.labels["top"]]
    same(code)
    same(code, 0xA5)


def test_registers_that_overlap_are_not_taken_for_one_another() -> None:
    """Results that are written over, in part or as a whole, and ones of which only a part is read."""
    wide = instr(9, "add", dst(40), reg(2), reg(4), size=16)
    items = [wide, add(41, 2, 3), add(24, 41, 40), instr(9, "xor", dst(42), reg(40), reg(4), size=16), add(40, 2, 40, sub=4),
             add(25, 40, 3),
             instr(9, "mov", dst(26, "w"), reg(40, "w", region="16;8,2")), add(40, 5, 40), xor(27, 40)]  # fmt: skip
    code = Listing(9, *items, *items, add(30, 2, 3), end(9))
    assert count(code) == 1
    same(code, 0xFFFF)


# -- how they are made -------------------------------------------------------------------------------------------------


def test_what_follows_one_another_often_is_one_sequence(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, c = steps(add(20, 2, 3), xor(21, 2), add(20, 2, 3, size=16))
    row = [a, b, a, b, c, a, b, c]
    assert streams.sequences(row, [(0, 8)]) == [[2, 3, 3]]
    assert streams.sequences(row, [(0, 4), (5, 8)]) == [[2, 2], [2, 1]]
    assert streams.sequences([c] * 5, [(0, 5)]) == [[2, 2, 1]]
    monkeypatch.setattr(streams, "LONGEST", 2)
    assert streams.sequences(row, [(0, 8)]) == [[2, 2, 1, 2, 1]]
    monkeypatch.setattr(streams, "MOST", 0)
    assert streams.sequences(row, [(0, 8)]) == [[1] * 8]


def test_runs_end_at_heads_and_at_what_does_not_join() -> None:
    step = steps(add(20, 2, 3))[0]
    row = [step] * 6 + [None] + [step] * 3 + [None] + [step] * 5
    assert streams.runs(row, set(), set()) == [(0, 6), (11, 16)]
    assert streams.runs(row, {1, 12}, set()) == [(1, 6), (12, 16)]
    assert streams.runs(row, {2, 7}, set()) == [(2, 6), (11, 16)]


def test_what_is_by_address_does_not_join() -> None:
    assert streams.joins(steps(add(20, 2, 3))[0][0])
    assert not streams.joins(steps(instr(9, "mov", dst(4), reg(4, indirect=True)))[0][0])
    assert not streams.joins(steps(instr(9, "mov", dst(4, indirect=True), reg(4)))[0][0])


def test_operands_are_known_by_who_made_them() -> None:
    row = steps(add(20, 2, 3), add(21, 20, 3), add(20, 20, 21), instr(9, "mov", dst(20, sub=16), reg(21)), add(22, 20, 21))
    assert streams.makers(row, lambda kind: (32, 32, 32, 0)) == ((-1,) * 4, (-1, 0, -1, -1), (-1, 0, 1, -1), (-1, 1, -1, -1), (-1,) * 4)


class Operand:
    """Where an operand is; it says what is loaded from it."""

    def __init__(self, low: int = 0) -> None:
        self.low = low

    def at(self, low: int) -> Operand:
        return Operand(low)

    def load_lanes(self, type: LaneType, lanes: int, align: int) -> tuple[str, int, LaneType, int]:
        return "loaded", self.low, type, lanes


@pytest.mark.parametrize("operand, low, type, lanes, kept", [
    (1, 4, u32, 8, True), (1, 4, u16, 16, True), (1, 4, u64, 4, True),  # the same bytes, of whatever type
    (1, 4, u16, 8, False), (1, 4, u32, 16, False), (1, 4, u64, 8, False), (1, 0, u32, 8, False), (1, 8, u32, 8, False),
    (0, 4, u32, 8, False), (2, 4, u32, 8, False), (3, 4, u32, 8, False), (4, 4, u32, 8, False),
])  # fmt: skip
def test_a_result_in_host_registers_is_not_loaded_again(operand: int, low: int, type: LaneType, lanes: int, kept: bool) -> None:
    """Operand 1 is what the first instruction before it stored from byte 4 on; operand 2 what the second one did, which is not known as a
    vector; 0 and 3 are nobody's, and 4 is no operand at all."""
    state, pointers = object.__new__(StreamState), [Operand() for _ in range(5)]
    state.pointers, state.makers = pointers[:4], (-1, 0, 1, -1)
    state.held = [(4, SimpleNamespace(type=u32, lanes=8, payload="result")), None, None]
    state.m = SimpleNamespace(_value=lambda *given: given, _regroup=lambda *given: given)
    expected = (type, lanes, (u32, 8, type, lanes, "result")) if kept else ("loaded", low, type, lanes)
    assert state._whole(pointers[operand], low, type, lanes) == expected


@pytest.mark.parametrize("item, mask", [
    (add(20, 2, 3), 0xFF), (add(20, 2, 3, quarter=2), 0xFF0000), (add(20, 2, 3, no_mask=True), 0),
    (instr(9, "mach", dst(20), reg(2), reg(3), quarter=1, acc_write=True), 0xFF00),
])  # fmt: skip
def test_channels_that_an_instruction_looks_at(item, mask: int) -> None:
    assert channels(computing(item)) == mask
