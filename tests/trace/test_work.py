"""Work, expectations and notes, which all traces have in common."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from softgen.bits.generation import device
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.trace import work
from softgen.trace.work import Events, Expectation, Work


@dataclass(frozen=True)
class Bytes:
    content: bytes

    def __len__(self) -> int:
        return len(self.content)

    def read(self, start: int = 0, size: int | None = None) -> bytes:
        return self.content[start:] if size is None else self.content[start : start + size]


def space_with(content: bytes, address: int = 0x4000) -> AddressSpace:
    space, buffer = AddressSpace("memory", 48), MemfdBuffer(4096, "buffer")
    buffer.view[: len(content)] = content
    space.map(address, buffer)
    return space


CONTENT = bytes(range(1, 41))


@pytest.mark.parametrize("at", [0, 7, 8, 17, 39])
def test_the_first_byte_that_differs_is_told_in_whatever_chunk(at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "CHUNK", 8)
    space, other = space_with(CONTENT), bytearray(CONTENT)
    assert Expectation("memory", 0x4000, Bytes(CONTENT), space, where="here").check() == ""
    other[at:] = b"\xff" * (40 - at)
    wrong = Expectation("memory", 0x4000, Bytes(bytes(other)), space, where="here").check()
    assert wrong == f"here: at {0x4000 + at:#x} expected 0xff, found {at + 1:#04x}"
    assert Expectation("memory", 0x4000, Bytes(bytes(other)), space, equal=False).check() == ""


def test_what_must_differ_and_what_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "CHUNK", 8)
    same = Expectation("memory", 0x4008, Bytes(CONTENT[8:]), space_with(CONTENT), equal=False, where="here")
    assert same.check() == "here: 0x4008 holds what it must not hold"
    beyond = Expectation("memory", 0x4FF8, Bytes(bytes(16)), space_with(b""), where="here").check()
    assert beyond.startswith("here: read at 0x5000 in memory")
    assert Expectation("register", 0x2358, Bytes(b"x")).check() == "", "registers are compared elsewhere"


def test_the_commands_of_a_ring_run_from_head_to_tail() -> None:
    space, own = space_with(bytes(range(32))), space_with(b"")
    assert Work("render", space, 0x4000, "ring", head=8, tail=16, size=32).ring() == bytes(range(8, 16))
    assert Work("render", space, 0x4000, "ring", head=8, tail=8, size=32).ring() == b""
    assert Work("render", own, 0x4000, "ring", head=24, tail=8, size=32, global_space=space).ring() == bytes([*range(24, 32), *range(8)])


def test_a_note_is_kept_once() -> None:
    class Two(Events):
        def events(self):  # type: ignore[no-untyped-def]
            yield Work("render", space_with(b""), 0)
            yield Expectation("memory", 0, Bytes(b""))

    trace = Two("two", device("kbl"))
    for text in ("odd", "other", "odd"):
        trace.note(text)
    assert trace.notes == ["odd", "other"] and [found.engine for found in trace.work()] == ["render"]
