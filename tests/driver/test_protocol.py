"""Messages between the shim and the server: both sides mean the same by them."""

from __future__ import annotations

import errno
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from softgen.driver import protocol
from softgen.driver.budget import Budget
from softgen.driver.errors import Errno
from softgen.driver.process import SMALL
from softgen.driver.protocol import LARGEST_READ, UNCOUNTED, Call, Channel, ShimMessage
from tests.driver.program import Memory

SHIM = Path(protocol.__file__).with_name("shim.h")


def test_kinds_of_messages_are_those_of_the_shim() -> None:
    lines = [line for line in SHIM.read_text("utf-8").splitlines() if re.search(r"/\* (to the server|from it) \*/$", line)]
    shim = {name: int(number) for line in lines for name, number in re.findall(r"\b([A-Z_]+) = (\d+)", line)}
    assert {"IOCTL", "REPLY", "DONE", "WELCOME"} <= set(shim)
    assert {name: getattr(protocol, name) for name in shim} == shim


@pytest.fixture
def call() -> Iterator[Call]:
    """A call of this process, whose memory may be read from here."""
    theirs, ours = socket.socketpair()
    channel = Channel(ours, Budget(1 << 30))
    yield Call(channel)
    channel.close()
    theirs.close()


@pytest.mark.parametrize("size, counted", [(16, 0), (UNCOUNTED, 0), (UNCOUNTED + 1, 2 * UNCOUNTED + 2)])
def test_large_data_of_an_ioctl_counts_until_it_is_answered(call: Call, size: int, counted: int) -> None:
    """Twice: as it is read, and as it is unpacked."""
    budget, memory = call.channel.budget, Memory(bytes(range(256)) * (size // 256 + 1))
    assert call.read_all([(memory.address + 1, size - 4), (memory.address, 4)]) == bytes(memory)[1 : size - 3] + bytes(memory)[:4]
    assert call.reserved == budget.other.total() == counted
    call.release()
    budget.check(0, 1, "settled")
    assert call.reserved == budget.other.total() == 0


@pytest.mark.parametrize("ranges", [[(4096, LARGEST_READ + 1)], [(4096, LARGEST_READ), (4096, 1)], [(1 << 64, 1)], [((1 << 64) - 4, 4)],
                                    [(4096, 8), (4096, -4)]])  # fmt: skip
def test_memory_that_no_program_has(call: Call, ranges: list[tuple[int, int]]) -> None:
    with pytest.raises(Errno) as refused:
        call.read_all(ranges)
    assert refused.value.number == errno.EFAULT and not call.reserved


def test_what_a_program_says_of_its_memory_has_at_most_64_mib(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which are counted before it is asked, and given back with its answer."""
    asked: list[tuple[int, ...]] = []

    def ask(kind: int, start: int, end: int, most: int) -> ShimMessage:
        asked.append((kind, start, end, most))
        assert call.channel.budget.other.total() == 64 << 20
        return ShimMessage(protocol.REPLY, 0, 0, 0, b"", b"1000-2000 rw-p \xff\n")

    monkeypatch.setattr(call.channel, "ask", ask)
    assert call.maps(0x1000, 0x3000) == "1000-2000 rw-p \ufffd\n" and asked == [(protocol.MAPS, 0x1000, 0x3000, 64 << 20)]
    call.release()
    call.channel.budget.check(0, 1, "settled")
    assert not call.reserved and not call.channel.budget.other.total()


def test_nothing_is_read_of_nothing(call: Call) -> None:
    assert call.read_all([]) == call.read_all([(1 << 64, 0)]) == call.read(0, 0) == b""


@pytest.mark.parametrize("near, address, size, small", [
    (True, 4096, 1, True), (True, 4096, SMALL, True), (True, 4096, SMALL + 1, False), (True, 4096, 0, False), (True, 4096, -4, False),
    (True, (1 << 64) - 5, 4, True), (True, (1 << 64) - 4, 4, False), (False, 4096, 4, False),
])  # fmt: skip
@pytest.mark.parametrize("there", [True, False])
def test_a_few_bytes_are_read_without_allocation(call: Call, monkeypatch: pytest.MonkeyPatch, near: bool, address: int, size: int,
                                                 small: bool, there: bool) -> None:  # fmt: skip
    """Where that fails, and for all others, memory is read as for several pieces."""
    asked: list[object] = []
    monkeypatch.setattr(protocol, "read_small", lambda *of: asked.append(of) or (b"few" if there else None))
    monkeypatch.setattr(call, "read_all", lambda ranges: asked.append(ranges) or bytearray(b"any"))
    call.channel.near = near
    few, any_ = (call.channel.pid, address, size), [(address, size)]
    assert call.read(address, size) == (b"few" if small and there else b"any")
    assert asked == ([few] if small and there else [few, any_] if small else [any_])
