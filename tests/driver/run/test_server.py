"""The server without sockets of its own: connections that cannot be accepted, programs that are gone when their answer is ready."""

from __future__ import annotations

import errno
import gc
import os
import socket
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from softgen.driver.errors import Errno, Gone
from softgen.driver.objects.budget import Budget
from softgen.driver.run import protocol, server
from softgen.driver.run.protocol import MESSAGE, Call, Channel, ShimMessage
from softgen.driver.run.server import Server
from softgen.driver.shim import shim_h
from tests.driver.program import Gpu

NAME = b"\0\x30\x30\x30\x30\x31\0\0"


class Listener:
    """A listening socket whose accept() has these outcomes, one after another."""

    def __init__(self, world: World, *outcomes: int | socket.socket) -> None:
        self.world, self.outcomes = world, list(outcomes)

    def accept(self) -> tuple[socket.socket, bytes]:
        outcome = self.outcomes.pop(0)
        self.world.done.append("accept with spare descriptors" if self.world.lent else "accept")
        if isinstance(outcome, int):
            raise OSError(outcome, "accept")
        return outcome, b""


class World:
    """A server and what it did: the names of what it called."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.done, self.log, self.lent = list[Any](), list[str](), False
        gpu: Any = SimpleNamespace(budget=Budget(1 << 30), log_once=self.log.append, log=self.log.append,
                                   reclaim=lambda: self.done.append("reclaim"), count_refused=lambda *row: None)  # fmt: skip
        service: Any = SimpleNamespace(listening={}, admit=lambda: None, reserve=SimpleNamespace(lent=self.lend))
        self.server = Server(gpu, service)
        monkeypatch.setattr(server, "time", SimpleNamespace(sleep=self.done.append))

    @contextmanager
    def lend(self) -> Iterator[None]:
        self.lent = True
        yield
        self.lent = False

    def accept(self, *outcomes: int | socket.socket) -> list[Any]:
        listening: Any = {"server": Listener(self, *outcomes)}
        self.server.listening = listening
        self.server._accept("server")
        return self.done


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


@pytest.mark.parametrize("error", [errno.EMFILE, errno.ENFILE])
def test_a_connection_for_which_no_descriptor_is_left_is_refused(world: World, error: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "resource", SimpleNamespace(getrlimit=lambda which: (300, 4000), RLIMIT_NOFILE=7))
    theirs, ours = socket.socketpair()
    assert world.accept(error, ours) == ["accept", "reclaim", "accept with spare descriptors"]
    kind, _, result, _, _, _ = MESSAGE.unpack(theirs.recv(4096))
    assert kind == shim_h.WELCOME and result == (1 << 64) - errno.EMFILE
    assert theirs.recv(1) == b"" and len(world.log) == 1
    assert world.log[0].startswith("all 300 descriptors of the server are in use: programs get EMFILE until some are closed")
    theirs.close()


def test_where_not_even_that_is_possible_it_is_tried_again_later(world: World) -> None:
    assert world.accept(errno.EMFILE, errno.EMFILE) == ["accept", "reclaim", "accept with spare descriptors", 0.05]


@pytest.mark.parametrize("error", [errno.ECONNABORTED, errno.EAGAIN])
def test_a_connection_that_went_away_again_is_forgotten(world: World, error: int) -> None:
    assert world.accept(error) == ["accept"] and not world.log


def test_a_channel_for_which_no_thread_is_left_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """EAGAIN, as the kernel's clone() says it."""

    def start(function: object) -> None:
        raise RuntimeError("can't start new thread")

    theirs, ours = socket.socketpair()
    theirs.settimeout(10)
    monkeypatch.setattr(world.server.threads, "start", start)
    assert world.accept(ours) == ["accept"]
    kind, _, result, _, _, _ = MESSAGE.unpack(theirs.recv(4096))
    assert kind == shim_h.WELCOME and result == (1 << 64) - errno.EAGAIN
    assert theirs.recv(1) == b"" and not world.log
    theirs.close()


def test_nodes_that_are_opened_are_counted_and_belong_to_their_process(gpu: Gpu) -> None:
    """A report says how many were opened; memory counts for the process."""
    gpu.program()
    first, second = gpu.program("card0"), gpu.program()
    assert gpu.shared.opened == 3 and [node.pid for node in gpu.server.nodes.values()] == [os.getpid()] * 3
    assert [gpu.server.nodes[program.name].render for program in (first, second)] == [False, True]


@pytest.mark.parametrize("error, number, says, reclaims, logs", [
    (MemoryError(), errno.ENOMEM, "no memory left", 0, 0), (OSError(errno.ENOMEM, ""), errno.ENOMEM, "no memory left", 0, 0),
    (OSError(errno.EMFILE, ""), errno.EMFILE, "no descriptor left", 1, 0), (OSError(errno.ENFILE, ""), errno.EMFILE, "no descriptor", 1, 0),
    (OSError(errno.ENOSPC, "no space"), errno.EIO, "", 0, 1),
])  # fmt: skip
def test_the_answer_of_an_exhausted_host(world: World, error: OSError, number: int, says: str, reclaims: int, logs: int) -> None:
    result, why = world.server._short_of(error, ShimMessage(shim_h.IOCTL, 0x6469, 0, 0, NAME, b""))
    assert result == -number and (says in why if says else not why)
    assert world.done == ["reclaim"] * reclaims and len(world.log) == logs
    if logs:
        assert world.log == ["softgen itself failed in DRM_IOCTL_I915_GEM_EXECBUFFER2: OSError: [Errno 28] no space"]


@pytest.mark.parametrize("error, number, log", [
    (None, 0, []), (Errno(errno.EINVAL, "no such flag"), errno.EINVAL, []), (MemoryError(), errno.ENOMEM, []),
    (ValueError("x"), errno.EIO, ["softgen itself failed in DRM_IOCTL_I915_GEM_EXECBUFFER2: ValueError: x"]),
    (OSError(errno.ENOSPC, "y"), errno.EIO, ["softgen itself failed in DRM_IOCTL_I915_GEM_EXECBUFFER2: OSError: [Errno 28] y"]),
])  # fmt: skip
def test_a_program_gets_the_number_of_an_error(world: World, error: Exception | None, number: int, log: list[str],
                                               monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    """Negative, as the kernel returns it; EIO for what is an error of softgen."""
    theirs, ours = socket.socketpair()
    channel, node = Channel(ours, Budget(1 << 30)), Node()

    def answer(node: object, call: Call, request: int, data: bytes) -> None:
        if error is not None:
            raise error

    monkeypatch.setattr(server.ioctls, "answer", answer)
    world.server.nodes[NAME] = node  # type: ignore[assignment]
    channel.nodes.add(node)
    assert world.server._answer(channel, ShimMessage(shim_h.IOCTL, 0x6469, 0, 0, NAME, b""))
    _, _, result, _, _, _ = MESSAGE.unpack(theirs.recv(4096))
    assert result == -number % (1 << 64) and world.log == log
    channel.close()
    theirs.close()


def test_a_refused_call_writes_its_argument_and_nothing_else(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel's drm_ioctl() copies the argument back whatever its handler returns; descriptors that were to be handed out are closed."""
    theirs, ours = socket.socketpair()
    channel, node, (reading, writing) = Channel(ours, Budget(1 << 30)), Node(), os.pipe()

    def answer(node: object, call: Call, request: int, data: bytes) -> None:
        call.returned = b"argument"
        call.write(0x2000, b"behind a pointer")
        call.hand(0x3000, writing)
        raise Errno(errno.ETIME)

    monkeypatch.setattr(server.ioctls, "answer", answer)
    world.server.nodes[NAME] = node  # type: ignore[assignment]
    channel.nodes.add(node)
    assert world.server._answer(channel, ShimMessage(shim_h.IOCTL, 0x646C, 0x1000, 0, NAME, b""))
    data, control, _, _ = theirs.recvmsg(4096, 64)
    assert data[MESSAGE.size :] == protocol.PART.pack(0x1000, 8, 0) + b"argument" and not control
    assert os.read(reading, 1) == b"", "nobody can write any more"
    os.close(reading)
    channel.close()
    theirs.close()


@pytest.mark.parametrize("submitted", [True, False])
def test_work_of_a_program_that_is_gone_before_its_answer_is_done(world: World, submitted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others may wait for it."""
    theirs, ours = socket.socketpair()
    channel, node, ran = Channel(ours, Budget(1 << 30)), Node(), list[str]()

    def submit(node: object, call: Call, request: int, data: bytes) -> None:
        theirs.close()
        if submitted:
            call.later = lambda hand_over, completed=None: ran.append("work")

    monkeypatch.setattr(server.ioctls, "answer", submit)
    world.server.nodes[NAME] = node  # type: ignore[assignment]
    channel.nodes.add(node)
    with pytest.raises(Gone):
        world.server._answer(channel, ShimMessage(shim_h.IOCTL, 0x6469, 0, 0, NAME, b""))
    assert ran == ["work"] * submitted
    channel.close()


class Node:
    """A node of which only the identity is used."""


@pytest.mark.parametrize("work_first", [True, False])
@pytest.mark.parametrize("thread_left", [True, False])
def test_a_channel_is_answered_on_where_no_thread_is_left_to_take_over(
    world: World, work_first: bool, thread_left: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The work takes long: another thread answers from then on, or this one when the work is done."""
    theirs, ours = socket.socketpair()
    channel, node, started, left = Channel(ours, Budget(1 << 30)), Node(), list[object](), list[str]()
    gone = list[weakref.ref[Call]]()

    def start(function: object) -> None:
        if not thread_left:
            raise RuntimeError("can't start new thread")
        started.append(function)

    def submit(node: object, call: Call, request: int, data: bytes) -> None:
        def later(hand_over: Callable[[], None], completed: Callable[[], None] | None = None) -> None:
            hand_over()
            left.append("work")

        call.later, call.work_first = later, work_first
        gone.append(weakref.ref(call))

    monkeypatch.setattr(server.ioctls, "answer", submit)
    monkeypatch.setattr(world.server.threads, "start", start)
    world.server.nodes[NAME] = node  # type: ignore[assignment]
    channel.nodes.add(node)
    assert world.server._answer(channel, ShimMessage(shim_h.IOCTL, 0x6469, 0, 0, NAME, b"")) is not thread_left
    assert left == ["work"] and len(started) == thread_left
    gc.collect()
    assert [call() for call in gone] == [None]  # nor does the other thread have what was submitted
    assert MESSAGE.unpack(theirs.recv(4096))[0] == shim_h.DONE  # once
    channel.close()
    theirs.close()


DEVICE, DMA_BUF, SYNC_FILE = 0x6400, 0xC008_6200, 0xC008_3E00  # the type of an ioctl, and how its argument goes


@pytest.mark.parametrize("kind, request_number, payload, expected", [
    (shim_h.IOCTL, DEVICE + 0x5B, b"\0\x10\0\0\0\0\0\0", "DRM_IOCTL_I915_GEM_CREATE size=0x1000"),
    (shim_h.IOCTL, DEVICE + 0x5C, b"\7\0\0\0\1\0\0\0", "DRM_IOCTL_I915_GEM_PREAD handle=0x7"),  # not its padding
    (shim_h.IOCTL, DEVICE + 0xAA, bytes(24) + b"rotation", "DRM_IOCTL_MODE_GETPROPERTY name=726f746174696f6e"),
    (shim_h.IOCTL, DEVICE + 0x58, b"", "DRM_IOCTL_I915_GEM_THROTTLE"),
    (shim_h.IOCTL, DEVICE + 0xC6, b"", "DRM_IOCTL_MODE_CREATE_LEASE (0x64c6)"),
    (shim_h.IOCTL, DEVICE + 0xFF, b"", "ioctl 0xff (0x64ff)"),
    (shim_h.FOREIGN, DMA_BUF, bytes(8), "DMA_BUF_IOCTL_SYNC (0xc0086200)"),
    (shim_h.FOREIGN, DMA_BUF + 2, bytes(8), "DMA_BUF_IOCTL_EXPORT_SYNC_FILE (0xc0086202)"),
    (shim_h.FOREIGN, DMA_BUF + 3, bytes(8), "DMA_BUF_IOCTL_IMPORT_SYNC_FILE (0xc0086203)"),
    (shim_h.FOREIGN, DMA_BUF + 1, bytes(8), "ioctl 0x01 of type 'b' (0xc0086201)"),
    (shim_h.FOREIGN, SYNC_FILE + 3, bytes(48), "SYNC_IOC_MERGE (0xc0083e03)"),
    (shim_h.FOREIGN, SYNC_FILE + 4, bytes(56), "SYNC_IOC_FILE_INFO (0xc0083e04)"),
    (shim_h.MMAP, 0x7000, b"", "mmap of 0x2000 bytes at 0x7000"),
])  # fmt: skip
def test_requests_are_named_in_a_trace(kind: int, request_number: int, payload: bytes, expected: str) -> None:
    """Fields of arguments that are zero are not shown."""
    assert server.requested(ShimMessage(kind, request_number, 0x2000, 0, NAME, payload)) == expected


@pytest.mark.parametrize("kind, request_number, name", [
    (shim_h.IOCTL, DEVICE + 0x5B, "DRM_IOCTL_I915_GEM_CREATE"), (shim_h.FOREIGN, DMA_BUF, "DMA_BUF_IOCTL_SYNC"),
    (shim_h.MMAP, 0x5B, "mmap"),
])  # fmt: skip
def test_a_request_in_which_softgen_fails_is_named(world: World, kind: int, request_number: int, name: str) -> None:
    world.server._short_of(OSError(errno.ENOSPC, "no space"), ShimMessage(kind, request_number, 0, 0, NAME, b""))
    assert world.log == [f"softgen itself failed in {name}: OSError: [Errno 28] no space"]


@pytest.mark.parametrize("name", ["server", "card0", "renderD128"])
def test_a_connection_that_went_away_is_not_waited_for(gpu: Gpu, name: str) -> None:
    """All others would wait too."""
    gpu.program()
    accepting = threading.Thread(target=gpu.server._accept, args=(name,), daemon=True)
    accepting.start()
    accepting.join(20)
    assert not accepting.is_alive()
