"""Messages between the shim and the server: both sides mean the same by them."""

from __future__ import annotations

import ctypes
import errno
import socket
from collections.abc import Iterator

import pytest

from softgen.driver.errors import Errno, Gone
from softgen.driver.objects.budget import Budget
from softgen.driver.run import protocol
from softgen.driver.run.process import SMALL
from softgen.driver.run.protocol import LARGEST_READ, MESSAGE, PART, UNCOUNTED, Call, Channel, ShimMessage
from softgen.driver.shim import shim_h
from tests.driver.program import Memory


def test_a_message_is_packed_as_the_shim_has_it() -> None:
    packed = shim_h.MessageHead.from_buffer_copy(MESSAGE.pack(1, 2, 3, 4, 5, b"node"))
    fields = {name: getattr(packed, name) for name, *_ in shim_h.MessageHead._fields_}
    assert fields == {"kind": 1, "size": 2, "a": 3, "b": 4, "c": 5, "name": b"node"} and ctypes.sizeof(packed) == MESSAGE.size


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


def test_what_a_program_says_of_its_memory_has_at_most_16_mib(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which are counted before it is asked, with what they become here, and given back with its answer."""
    asked: list[tuple[int, ...]] = []

    def ask(kind: int, start: int, end: int, most: int) -> ShimMessage:
        asked.append((kind, start, end, most))
        assert call.channel.budget.other.total() == 64 << 20
        return ShimMessage(shim_h.REPLY, 0, 0, 0, b"", b"1000-2000 rw-p \xff\n")

    monkeypatch.setattr(call.channel, "ask", ask)
    assert call.maps(0x1000, 0x3000) == "1000-2000 rw-p \ufffd\n" and asked == [(shim_h.MAPS, 0x1000, 0x3000, 16 << 20)]
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


def test_messages_that_come_together_are_received_one_by_one() -> None:
    """With and without something behind the header, and in pieces."""
    theirs, ours = socket.socketpair()
    channel, payloads = Channel(ours, Budget(1 << 30)), (b"", b"", b"abc", b"", b"x" * 1000)
    data = b"".join(MESSAGE.pack(shim_h.IOCTL, len(payload), number, 2 * number, 3 * number, b"name") + payload
                    for number, payload in enumerate(payloads))  # fmt: skip
    theirs.sendall(data)
    theirs.close()
    for number, payload in enumerate(payloads):
        assert channel.receive() == ShimMessage(shim_h.IOCTL, number, 2 * number, 3 * number, b"name\0\0\0\0", payload)
    with pytest.raises(Gone):
        channel.receive()
    channel.close()


@pytest.mark.parametrize("more, fine", [(0, True), (1, False)])
def test_a_request_has_16384_bytes_at_most(more: int, fine: bool) -> None:
    """As many as the number of an ioctl can say."""
    theirs, ours = socket.socketpair()
    channel, payload = Channel(ours, Budget(1 << 30)), bytes((1 << 14) + more)
    theirs.sendall(MESSAGE.pack(shim_h.IOCTL, len(payload), 0, 0, 0, b"") + payload)
    if fine:
        assert channel.receive().payload == payload
    else:
        with pytest.raises(Gone, match="16385 bytes"):
            channel.receive()
    channel.close()
    theirs.close()


def test_near_memory_is_read_and_written_without_a_question(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    memory, into, asked = Memory(bytes(range(100))), bytearray(30), list[object]()
    monkeypatch.setattr(call.channel, "ask", lambda *question, **fields: asked.append(question))
    call.read_into(memory.address + 5, memoryview(into))
    call.write_now(memory.address + 50, memoryview(bytearray(b"written")))
    assert into == bytes(range(5, 35)) and bytes(memory) == bytes(range(50)) + b"written" + bytes(range(57, 100))
    assert call.read_all([(memory.address, 2), (memory.address + 50, 3)]) == b"\0\1wri" and not asked and call.channel.near


@pytest.mark.parametrize("name", ["read_into", "write_now"])
@pytest.mark.parametrize("address", [1 << 64, (1 << 64) - 4, (1 << 64) - 1])
def test_no_view_is_beyond_the_last_address(call: Call, name: str, address: int) -> None:
    with pytest.raises(Errno) as refused:
        getattr(call, name)(address, memoryview(bytearray(4)))
    assert refused.value.number == errno.EFAULT


class Distant:
    """A program whose memory may not be touched from here: it is asked, for no more than 16 bytes at a time."""

    def __init__(self, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked = list[tuple[int, list[int]]]()
        call.channel.near = False
        monkeypatch.setattr(protocol, "CHUNK", 16)
        monkeypatch.setattr(call.channel, "ask", self.ask)

    def ask(self, kind: int, payload: bytes, most: int = 0) -> ShimMessage:
        if kind == shim_h.WRITE:
            address, size, _ = PART.unpack_from(payload)
            assert len(payload) == PART.size + size
            ctypes.memmove(address, payload[PART.size :], size)
            self.asked.append((kind, [size]))
            return ShimMessage(shim_h.REPLY, 0, 0, 0, b"", b"")
        parts = list(PART.iter_unpack(payload))
        self.asked.append((kind, [size for _, size, _ in parts]))
        found = b"".join(ctypes.string_at(address, size) for address, size, _ in parts)
        assert len(found) == most and all(zero == 0 for _, _, zero in parts)
        return ShimMessage(shim_h.REPLY, 0, 0, 0, b"", found)


def test_distant_memory_is_read_and_written_in_chunks(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    distant, memory = Distant(call, monkeypatch), Memory(bytes(range(100)))
    into = bytearray(40)
    call.read_into(memory.address + 3, memoryview(into))
    assert into == bytes(range(3, 43)) and distant.asked == [(shim_h.READ, [16]), (shim_h.READ, [16]), (shim_h.READ, [8])]
    distant.asked.clear()
    call.write_now(memory.address + 50, memoryview(bytearray(b"x" * 16 + b"y" * 16 + b"z")))
    assert bytes(memory) == bytes(range(50)) + b"x" * 16 + b"y" * 16 + b"z" + bytes(range(83, 100))
    assert distant.asked == [(shim_h.WRITE, [16]), (shim_h.WRITE, [16]), (shim_h.WRITE, [1])]


@pytest.mark.parametrize("name", ["read_into", "write_now", "read_all"])
def test_who_may_not_touch_memory_asks_from_then_on(call: Call, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in some containers: the kernel refuses, and the program can."""
    distant, memory = Distant(call, monkeypatch), Memory(bytes(range(100)))
    call.channel.near = True
    for function in ("read_ranges", "write_range"):
        monkeypatch.setattr(protocol, function, lambda *arguments: False)
    for turn in (1, 2):
        if name == "read_all":
            assert call.read_all([(memory.address, 8)]) == bytes(range(8))
        else:
            getattr(call, name)(memory.address, memoryview(bytearray(bytes(memory)[:8])))
        assert not call.channel.near and len(distant.asked) == turn


def test_small_pieces_of_distant_memory_are_read_together(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as a question may be for; pieces that are longer than that by parts."""
    distant, memory = Distant(call, monkeypatch), Memory(bytes(range(100)))
    ranges = [(memory.address, 4), (memory.address + 10, 8), (memory.address + 20, 4), (memory.address + 30, 1), (memory.address + 40, 20)]
    wanted = b"".join(bytes(range(at, at + size)) for at, size in ((0, 4), (10, 8), (20, 4), (30, 1), (40, 20)))
    assert call.read_all(ranges) == wanted
    assert distant.asked == [(shim_h.READ, [4, 8, 4]), (shim_h.READ, [1]), (shim_h.READ, [16]), (shim_h.READ, [4])]


def test_an_answer_has_no_more_bytes_than_were_asked_for(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """None, where nothing is said: a program that sends one all the same does not speak the protocol."""
    monkeypatch.setattr(call.channel, "send", lambda *question: None)
    for size, fields in ((0, {}), (3, {"most": 3})):
        call.channel.rest = MESSAGE.pack(shim_h.REPLY, size, 0, 0, 0, b"") + bytes(size)
        assert call.channel.ask(shim_h.READ, **fields).payload == bytes(size)
        call.channel.rest = MESSAGE.pack(shim_h.REPLY, size + 1, 0, 0, 0, b"") + bytes(size + 1)
        with pytest.raises(Gone, match=f"a message of {size + 1} bytes"):
            call.channel.ask(shim_h.READ, **fields)
