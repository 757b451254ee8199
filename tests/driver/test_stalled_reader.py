"""Programs that read no answers: the server waits for them where nobody else has to wait."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from softgen.driver.objects.budget import Budget
from softgen.driver.run import server
from softgen.driver.run.protocol import AT_ONCE, HEADER, MESSAGE, Call, Channel, ShimMessage
from softgen.driver.run.server import Server
from softgen.driver.shim import shim_h
from softgen.driver.shim.shim_h import DONE

PATIENCE = 20.0  # seconds; only a hang takes so long
NAME = b"\0\x30\x30\x30\x30\x31\0\0"


class Stalled:
    """A channel whose program has not read what was sent to it, and a server."""

    def __init__(self) -> None:
        self.program, ours = socket.socketpair()
        self.program.settimeout(PATIENCE)
        self.channel, self.unread = Channel(ours, Budget(1 << 30)), 0
        gpu: Any = SimpleNamespace(log=print)
        service: Any = SimpleNamespace(listening={}, admit=lambda: True)
        self.server = Server(gpu, service)
        self.order: list[str] = []

    def stall(self) -> None:
        try:
            while True:
                self.unread += self.channel.connection.send(bytes(HEADER), socket.MSG_DONTWAIT)
        except BlockingIOError:
            pass

    def read_on(self) -> None:
        while self.unread:
            self.unread -= len(self.program.recv(self.unread))

    def answer(self) -> tuple[int, int, int]:
        kind, _, result, offset, _, _ = MESSAGE.unpack(self.program.recv(HEADER, socket.MSG_WAITALL))
        return kind, result, offset

    def later(self, hand_over: Callable[[], None], completed: Callable[[], None] | None = None) -> None:
        """Work that takes long, is completed, and has the engine all the time."""
        hand_over()
        assert completed is not None
        completed()
        self.order.append("worked")


@pytest.fixture
def stalled() -> Iterator[Stalled]:
    found = Stalled()
    yield found
    found.channel.close()
    found.program.close()


def in_time(function: Callable[[], object]) -> bool:
    """Whether a function returns."""
    thread = threading.Thread(target=function, daemon=True)
    thread.start()
    thread.join(PATIENCE / 4)
    return not thread.is_alive()


def test_a_message_is_sent_at_once_or_not_at_all(stalled: Stalled) -> None:
    stalled.channel.send(DONE, 1, wait=False)
    assert stalled.answer() == (DONE, 1, 0)
    with pytest.raises(BlockingIOError):
        stalled.channel.send(DONE, payload=bytes(AT_ONCE), wait=False)
    stalled.stall()
    with pytest.raises(BlockingIOError):
        stalled.channel.send(DONE, wait=False)
    stalled.read_on()
    stalled.channel.send(DONE, 2, wait=False)
    assert stalled.answer() == (DONE, 2, 0)


def test_an_answer_that_is_not_sent_yet_keeps_its_descriptors(stalled: Stalled) -> None:
    """And the memory that is counted for it."""
    call = Call(stalled.channel)
    call.hand(0, os.open(os.devnull, os.O_RDONLY))
    [descriptor] = call.handed
    call.reserve(1 << 20)
    stalled.stall()
    with pytest.raises(BlockingIOError):
        call.done(0, 0, wait=False)
    assert os.path.exists(f"/proc/self/fd/{descriptor}") and call.reserved == 1 << 20
    stalled.read_on()
    call.done(0, 0, wait=False)
    assert stalled.answer()[0] == DONE and not os.path.exists(f"/proc/self/fd/{descriptor}") and not call.reserved


@pytest.mark.parametrize("thread", [True, False])
def test_work_has_the_engine_no_longer_where_its_program_reads_nothing(
    stalled: Stalled, thread: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread answers, or this one when the engine is free."""
    functions = list[Callable[[], None]]()

    def start(function: Callable[[], None]) -> None:
        if not thread:
            raise RuntimeError("can't start new thread")
        functions.append(function)

    monkeypatch.setattr(stalled.server.threads, "start", start)
    monkeypatch.setattr(stalled.server, "_go_on", lambda channel: stalled.order.append("goes on"))
    stalled.stall()
    returned = in_time(lambda: stalled.server._work(stalled.later, Call(stalled.channel), 0x7000))
    assert stalled.order == ["worked"] and returned is thread
    answering = threading.Thread(target=functions[0] if thread else lambda: None)
    answering.start()
    stalled.read_on()
    assert stalled.answer() == (DONE, 0, 0x7000)
    answering.join(PATIENCE)
    assert stalled.order == ["worked"] + ["goes on"] * thread


def test_work_is_not_kept_waiting_for_a_program_that_reads_nothing(stalled: Stalled, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others may wait for it: it is done first where the answer, which would come first, has to wait."""

    def submit(node: object, call: Call, request: int, data: bytes) -> None:
        call.later = lambda hand_over, completed=None: stalled.order.append("worked")

    monkeypatch.setattr(server.ioctls, "answer", submit)
    monkeypatch.setattr(stalled.server, "node", lambda call, message: None)
    stalled.stall()
    assert not in_time(lambda: stalled.server._answer(stalled.channel, ShimMessage(shim_h.IOCTL, 0x6469, 0, 0, NAME, b"")))
    assert stalled.order == ["worked"]
    stalled.read_on()
    assert stalled.answer() == (DONE, 0, 0)
