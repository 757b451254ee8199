"""What an AUB trace plays: widths of registers, data in chunks, and the limits of a trace."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from softgen.errors import DecodeError
from softgen.trace import aub
from softgen.trace.aub import AubTrace, Player
from softgen.trace.work import Expectation
from tests.trace import aub_bytes as a
from tests.trace.aub_bytes import BATCH, dwords


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "t.aub"


def opened(path: Path, content: bytes, gpu: str | None = None) -> AubTrace:
    path.write_bytes(content)
    return AubTrace(path, gpu)


def refused(path: Path, content: bytes) -> str:
    with pytest.raises(DecodeError) as error:
        list(opened(path, content).events())
    return str(error.value).partition(": ")[2]


# -- registers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size, expected, mask", [(0, "88", 0xFF), (1, "8877", 0xFFFF), (2, "88776655", 0xFFFFFFFF),
                                                  (3, "8877665544332211", (1 << 64) - 1)])  # fmt: skip
def test_a_register_has_1_2_4_or_8_bytes(path: Path, size: int, expected: str, mask: int) -> None:
    value = 0x1122334455667788 if size == 3 else 0x55667788
    (found,) = opened(path, a.version() + a.register_compare(0x2358, value, (1 << 64) - 1, size=size)).events()
    assert isinstance(found, Expectation) and (found.expected.read().hex(), found.mask) == (expected, mask)


def test_a_narrow_write_has_no_more_than_its_bytes(path: Path) -> None:
    parts = a.register_write(0x2510, 0xDEAD6119, size=1) + a.register_write(0x2514, 0xABCDEF07, size=0)
    (work,) = opened(path, a.machine("icl") + parts + a.register_write(0x2550, 1)).work()
    assert (work.context, work.tail) == (7, 16)


def test_a_register_that_its_record_does_not_hold_is_refused(path: Path) -> None:
    wide = a.trace(0x03, 0x2230, 3 << 16, 0xFFFFFFFF, 0xFFFFFFFF, 1)
    assert refused(path, a.version() + wide) == "AUB_REGISTER_WRITE holds no register of size 3"
    assert refused(path, a.version() + a.trace(0x03, 0x2230, 4 << 16, 0, 0, 1, 2)) == "AUB_REGISTER_WRITE holds no register of size 4"


def test_the_last_register_is_below_8_mib(path: Path) -> None:
    assert list(opened(path, a.version() + a.register_write((1 << 23) - 4, 5)).events()) == []


# -- rings ---------------------------------------------------------------------------------------------------------


def test_a_ring_that_is_not_enabled_is_noted_and_runs(path: Path) -> None:
    trace = opened(path, a.machine() + a.memory_write(0x6000, a.image(16, enable=0)) + a.submit_ports())
    (work,) = trace.work()
    assert work.tail == 16 and trace.notes == ["a context was started whose ring is not enabled"]


def test_head_and_tail_are_inside_the_ring(path: Path) -> None:
    for head, tail in ((0x3FF8, 0), (0, 0x3FF8)):
        (work,) = opened(path, a.machine() + a.memory_write(0x6000, a.image(tail, head=head)) + a.submit_ports()).work()
        assert (work.head, work.tail) == (head, tail)
    for head, tail in ((0x4000, 8), (8, 0x4000)):
        content = a.machine() + a.memory_write(0x6000, a.image(tail, head=head)) + a.submit_ports()
        assert f"starts a ring of 0x4000 bytes with head {head:#x} and tail {tail:#x}" in refused(path, content)


def test_a_descriptor_that_is_not_valid_starts_nothing(path: Path) -> None:
    trace = opened(path, a.machine() + a.submit_ports(a.CONTEXT_AT | 0x118))
    assert list(trace.work()) == [] and trace.notes == []


@pytest.mark.parametrize("addressing", [2, 3])
def test_both_kinds_of_64_bit_context_have_four_levels(path: Path, addressing: int) -> None:
    (work,) = opened(path, a.machine() + a.submit_ports(a.CONTEXT_AT | 0x101 | addressing << 3)).work()
    assert work.space.read(BATCH, 8) == dwords(0x05000000, 0)


# -- data ----------------------------------------------------------------------------------------------------------


def test_data_larger_than_a_chunk_is_written_in_order(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aub, "CHUNK", 16)
    data = bytes(range(1, 51))
    (work,) = opened(path, a.machine() + a.memory_write(0x50000, data) + a.submit_ports()).work()
    assert work.space.read(BATCH, 64) == data + bytes(14)


def test_repeated_data_larger_than_a_chunk_ends_where_it_must(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aub, "CHUNK", 16)
    (work,) = opened(path, a.machine() + a.memory_write(0x50000, b"abcdefgh", flags=2, size=53) + a.submit_ports()).work()
    assert work.space.read(BATCH, 64) == (b"abcdefgh" * 7)[:53] + bytes(11)


def test_data_that_is_not_too_short_needs_no_repetition(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aub, "MAX_REPEAT", 0)
    (work,) = opened(path, a.machine() + a.memory_write(0x50000, b"abcdefgh", flags=2, size=6) + a.submit_ports()).work()
    assert work.space.read(BATCH, 8) == b"abcdef\0\0"


def test_pieces_take_their_parts_of_the_data(path: Path) -> None:
    pieces = [(0x50000, b"abcde"), (0x50010, b""), (0x50020, b"fgh")]
    (work,) = opened(path, a.machine() + a.memory_write_pieces(pieces) + a.submit_ports()).work()
    assert [work.space.read(BATCH + at, 6) for at in (0, 0x10, 0x20)] == [b"abcde\0", bytes(6), b"fgh\0\0\0"]


# -- limits --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size, limit", [(1 << 12, 1 << 30), (1 << 28, 1 << 30), (1 << 29, 2 << 30)])
def test_a_trace_may_touch_a_gibibyte_or_four_times_its_file(path: Path, size: int, limit: int) -> None:
    trace = opened(path, a.version())
    os.truncate(path, size)  # sparse: it takes no room
    memory = Player(AubTrace(path, trace.device.name)).memory
    assert memory.physical.limit == memory.loose.limit == memory.global_space.loose.limit == limit


def test_the_device_is_named_by_one_of_the_first_65_records(path: Path) -> None:
    comment = a.trace(0x08, 0, data=b"a comment\0")
    assert opened(path, comment * 64 + a.version("icl")).device.name == "icl"
    assert "nothing in its first records names a device" in refused(path, comment * 65 + a.version("icl"))


def test_expectations_beyond_the_list_are_still_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aub, "MAX_LISTED", 2)
    trace = opened(path, a.version() + a.memory_compare(0, b"x") * 2)
    assert len(list(trace.events())) == len(trace.expectations) == 2 and trace.notes == []
    trace = opened(path, a.version() + a.memory_compare(0, b"x") * 3)
    assert len(list(trace.events())) == 3 and len(trace.expectations) == 2
    assert trace.notes == ["more than 2 expectations; later ones are not listed"]
    assert len(list(trace.events())) == 3 and len(trace.expectations) == 2, "each run begins with an empty list"


def test_predicates_of_two_targets_are_open_until_both_are_closed(path: Path) -> None:
    """What is for the simulator too is played; the note names every other target that is open."""
    both = a.predicate(1, 4) + a.predicate(1, 0) + a.memory_write(0x50004, b"both") + a.predicate(0, 0)
    silicon = a.memory_write(0x50008, b"chip") + a.predicate(0, 4)
    trace = opened(path, a.machine() + both + silicon + a.memory_write(0x5000C, b"all!") + a.submit_ports())
    (work,) = trace.work()
    assert work.space.read(BATCH, 16) == dwords(0x05000000) + b"both" + bytes(4) + b"all!"
    assert trace.notes == ["records for silicon only were skipped"]
    trace = opened(path, a.machine() + a.predicate(1, 15) + a.predicate(1, 4) + a.submit_ports())
    assert list(trace.work()) == [] and trace.notes == ["records for silicon, target 15 only were skipped"]
