"""Connections of the server: events of one that fail, nodes and contexts at their end."""

from __future__ import annotations

import errno
import os
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from softgen.driver.errors import Errno, Gone
from softgen.driver.objects.budget import Budget
from softgen.driver.objects.fence import Pipes
from softgen.driver.run import protocol, server
from softgen.driver.run.protocol import MESSAGE, Channel, ShimMessage
from softgen.driver.run.server import Server, cancel_later
from softgen.driver.shim import shim_h
from tests.driver.execbuffer import PINNED, buffer, row, submit
from tests.driver.program import Gpu, Held

NAME = b"\0\x30\x30\x30\x30\x31\0\0"


# -- events


class Events:
    """A selector with these events, one after another."""

    def __init__(self, *events: Any) -> None:
        self.events, self.registered = list(events), list[Any]()

    def register(self, what: Any, events: int, data: Any) -> None:
        assert events == 1  # EVENT_READ
        self.registered.append((what, data))

    def select(self) -> list[tuple[Any, int]]:
        return [(SimpleNamespace(fileobj="connection", data=self.events.pop(0)), 1)]


def served(*events: Any) -> tuple[Server, Events, list[str]]:
    log, selector = list[str](), Events(*events)
    gpu: Any = SimpleNamespace(log_once=log.append, count_refused=lambda *refused: None, sync_files=SimpleNamespace(closed="files"),
                               syncobjs=SimpleNamespace(closed="objects"))  # fmt: skip
    listener = SimpleNamespace(setblocking=lambda blocking: log.append(f"blocking {blocking}"))
    service: Any = SimpleNamespace(listening={"card0": listener}, control="control socket", command=lambda: b"stop")
    made = Server(gpu, service)
    made.selector = selector  # type: ignore[assignment]
    return made, selector, log


def test_what_the_server_waits_for() -> None:
    """Programs that connect, the launcher, and descriptors that were closed everywhere."""
    made, selector, log = served("control")
    assert made.run() == b"stop" and log == ["blocking False"]
    listener, control, *pipes = selector.registered
    assert listener[1] == "card0" and control == ("control socket", "control")
    assert pipes == [("files", made.gpu.sync_files), ("objects", made.gpu.syncobjs)]


def test_one_connection_that_fails_ends_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    pipes = Pipes[str]()
    made, _, log = served("card0", pipes, ("key", "node"), "control")
    swept = list[str]()
    monkeypatch.setattr(pipes, "sweep", lambda: swept.append("swept"))
    monkeypatch.setattr(made, "_accept", lambda name: 1 / 0 if name == "card0" else None)
    monkeypatch.setattr(made, "_closed", lambda *what: swept.append(what))
    assert made.run() == b"stop" and swept == ["swept", ("connection", "key", "node")]
    assert log[1:] == ["softgen itself failed at a connection: ZeroDivisionError: division by zero"]


@pytest.mark.parametrize("spare, patience", [(False, 0.0), (True, 0.003)])
def test_how_long_programs_wait_awake(spare: bool, patience: float) -> None:
    """For an answer: only where a processor is left for it."""
    service: Any = SimpleNamespace(listening={})
    assert Server(SimpleNamespace(), service, spare_processor=spare).patience == patience  # type: ignore[arg-type]
    assert Server(SimpleNamespace(), service).patience == 0.0  # type: ignore[arg-type]


def test_a_program_is_admitted_before_its_connection_is_accepted() -> None:
    """While modules are loaded, descriptors are kept for them (service.py)."""
    made, _, _ = served()
    order = list[str]()

    def accept() -> None:
        order.append("accept")
        raise OSError(errno.EAGAIN, "went away")

    made.service.admit = lambda: order.append("admit")  # type: ignore[method-assign, assignment, func-returns-value]
    made.listening["card0"].accept = accept  # type: ignore[method-assign, assignment]
    made._accept("card0")
    assert order == ["admit", "accept"]


def test_events_of_the_display_go_to_primary_nodes(gpu: Gpu) -> None:
    """Each node ends with its connection."""
    card, render = gpu.program("card0"), gpu.program()
    nodes = gpu.server.nodes
    assert list(gpu.shared.display.connections) == [nodes[card.name]] and len(nodes) == 2
    for program, left in ((render, 1), (card, 0)):
        program.node.close()
        end = time.monotonic() + 20
        while len(nodes) > left:
            assert time.monotonic() < end
            time.sleep(0.005)
    assert not gpu.shared.display.connections


@pytest.mark.parametrize("name", ["card0", "renderD128"])
def test_a_node_that_is_refused_is_answered_with_the_error(gpu: Gpu, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def new(node: object) -> None:
        raise Errno(errno.ENOSPC, "no room")

    monkeypatch.setattr(server.context, "new", new)
    with socket.socket(socket.AF_UNIX) as theirs:
        theirs.settimeout(20)
        theirs.bind("")
        theirs.connect(str(gpu.folder / name))
        kind, _, result, _, _, _ = MESSAGE.unpack(theirs.recv(4096))
        assert (kind, result) == (shim_h.WELCOME, (1 << 64) - errno.ENOSPC) and theirs.recv(1) == b""
    assert not gpu.server.nodes and gpu.shared.opened == 0


# -- nodes


class Node:
    """A node of which only the identity is used."""


@pytest.fixture
def channel() -> Iterator[Channel]:
    theirs, ours = socket.socketpair()
    made = Channel(ours, Budget(1 << 30))
    yield made
    made.close()
    theirs.close()


def test_a_program_has_a_descriptor_of_the_node_it_names(channel: Channel, monkeypatch: pytest.MonkeyPatch) -> None:
    """That is looked at once for each node of a channel; the one that was named last is not looked for at all."""
    made, _, _ = served()
    first, second, asked = Node(), Node(), list[int]()
    names = {3: NAME, 4: b"\0other\0\0", 5: b""}
    made.nodes = {NAME: first, b"\0other\0\0": second}  # type: ignore[dict-item]
    call: Any = SimpleNamespace(channel=channel, take=lambda number: (asked.append(number), number)[1])
    made.connections = {node: name for name, node in made.nodes.items()}  # type: ignore[misc]
    monkeypatch.setattr(server, "leads_to", lambda descriptor, connection: names[descriptor] == connection)

    def named(name: bytes, descriptor: int) -> Any:
        return made.node(call, ShimMessage(shim_h.IOCTL, 0, 0, descriptor, name, b""))

    for name, descriptor in ((NAME, 4), (NAME, 5), (b"\0none\0\0\0", 3)):
        with pytest.raises(Errno) as refused:
            named(name, descriptor)
        assert refused.value.number == errno.EBADF
    assert asked == [4, 5]
    found = [named(name, descriptor) for name, descriptor in ((NAME, 3), (NAME, 3), (b"\0other\0\0", 4), (NAME, 3), (b"\0other\0\0", 4))]
    assert found == [first, first, second, first, second] and asked == [4, 5, 3, 4]


@pytest.mark.parametrize("sent, ends", [(b"data", False), (None, False), (b"", True)])
def test_a_node_ends_with_its_last_descriptor(gpu: Gpu, sent: bytes | None, ends: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not where data comes, or nothing after all."""
    program, left = gpu.program(), list[Any]()
    [(key, node)] = gpu.server.nodes.items()
    theirs, ours = socket.socketpair()
    monkeypatch.setattr(gpu.server, "selector", SimpleNamespace(select=gpu.server.selector.select, unregister=left.append))
    if sent:
        theirs.send(sent)
    elif ends:
        theirs.close()
    gpu.server._closed(ours, key, node)
    assert (gpu.server.nodes == {}) is ends and (ours.fileno() == -1) is ends and left == [ours] * ends
    assert (node.contexts.get(0) is None) is ends
    if not ends:
        assert program.ioctl("DRM_IOCTL_VERSION").major == 1
        ours.close()
    theirs.close()


def test_what_a_node_has_goes_with_it(gpu: Gpu, held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    """Buffers, contexts, address spaces, sync objects, and its memory; a context of which work is left is cancelled later."""
    cancelled, budget = list[list[Any]](), gpu.shared.budget
    monkeypatch.setattr(server, "cancel_later", lambda contexts, seconds: cancelled.append(contexts))
    before = budget.other.total()
    program = gpu.program("card0")
    exported, handle = buffer(program), buffer(program)
    os.close(program.ioctl("DRM_IOCTL_PRIME_HANDLE_TO_FD", handle=exported, flags=0).fd)
    program.received.clear()
    working, idle = (program.ioctl("DRM_IOCTL_I915_GEM_CONTEXT_CREATE").context for _ in range(2))
    program.ioctl("DRM_IOCTL_I915_GEM_CONTEXT_DESTROY", context=idle)
    program.ioctl("DRM_IOCTL_I915_GEM_VM_CREATE")
    program.ioctl("DRM_IOCTL_SYNCOBJ_CREATE")
    submit(program, [row(handle, offset=0x10000, flags=PINNED)], context=working)
    [node] = gpu.server.nodes.values()
    context = node.contexts.get(working)
    assert context is not None and context.listed and len(gpu.shared.objects) == 2 and node.lists
    program.node.close()
    end = time.monotonic() + 20
    while node.syncobjs.items:  # the last
        assert time.monotonic() < end
        time.sleep(0.005)
    assert not (gpu.server.nodes or gpu.shared.objects or gpu.shared.orphans or gpu.shared.display.connections or context.listed)
    assert not (node.handles or node.vms.items or node.contexts.items or node.objects.items or node.lists)
    assert cancelled == [[context]]
    held.finish()
    cancelled.clear()
    del context  # with its work, its address space
    budget.check(0, 1, "settled")
    assert budget.other.total() == before


@pytest.mark.parametrize("count, thread", [(0, True), (3, True), (3, False)])
def test_contexts_are_cancelled_five_seconds_after_their_node(count: int, thread: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or at once, where no thread is left that could wait."""
    contexts: list[Any] = [SimpleNamespace(cancelled=False) for _ in range(count)]
    started = list[Any]()

    def timer(seconds: float, function: Any) -> Any:
        def start() -> None:
            if not thread:
                raise RuntimeError("can't start new thread")
            started.append((seconds, function))

        return SimpleNamespace(start=start)

    monkeypatch.setattr(threading, "Timer", timer)
    cancel_later(contexts)
    assert [context.cancelled for context in contexts] == [not thread] * count and len(started) == (1 if count and thread else 0)
    for seconds, function in started:
        function()
        assert seconds == 5 and all(context.cancelled for context in contexts)


# -- channels


@pytest.mark.parametrize("outcome, ours", [([True, True, Gone()], True), ([True, False], False), ([Gone()], True), ([ValueError()], True)])
def test_a_channel_is_served_until_its_program_ends_or_another_thread_serves_it(
    channel: Channel, outcome: list[Any], ours: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who serves it last closes it."""
    made, _, _ = served()
    left, closed = list(outcome), list[str]()
    made.service.clients = [7, channel.pid, channel.pid]

    def answer(channel: Channel, message: object) -> bool:
        found = left.pop(0)
        if isinstance(found, Exception):
            raise found
        return bool(found)

    monkeypatch.setattr(channel, "next_request", lambda: None)
    monkeypatch.setattr(channel, "close", lambda: closed.append("closed"))
    monkeypatch.setattr(made, "_answer", answer)
    if isinstance(outcome[-1], ValueError):
        with pytest.raises(ValueError):
            made._go_on(channel)
    else:
        made._go_on(channel)
    assert not left and closed == ["closed"] * ours and made.service.clients == [7] + [channel.pid] * (1 if ours else 2)
    monkeypatch.undo()


def test_a_channel_is_greeted_with_the_patience_of_its_server(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs, ours = socket.socketpair()
    channel = Channel(ours, Budget(1 << 30))
    made, _, _ = served()
    made.patience, made.service.clients, going = 0.25, [], list[Any]()
    monkeypatch.setattr(made, "_go_on", going.append)
    made._serve(channel)
    kind, _, result, patience, _, _ = MESSAGE.unpack(theirs.recv(4096))
    assert (kind, result) == (shim_h.WELCOME, 0) and patience and made.service.clients == [channel.pid] and going == [channel]
    channel.close()
    theirs.close()


def test_requests_are_admitted_until_all_modules_are_loaded(channel: Channel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then nobody is asked any more."""
    made, _, _ = served()
    left, node = [False, False, True], Node()
    made.service.admit = lambda: left.pop(0)  # type: ignore[method-assign]
    made.nodes = {NAME: node}  # type: ignore[dict-item]
    channel.nodes.add(node)  # type: ignore[arg-type]
    monkeypatch.setattr(server.ioctls, "answer", lambda *what: None)
    for number in range(5):
        assert made._answer(channel, ShimMessage(shim_h.IOCTL, 0x6469, 0, 0, NAME, b"")) and len(left) == max(2 - number, 0)


@pytest.mark.parametrize("mine", [True, False])
def test_an_ioctl_of_another_kind_of_file(mine: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel answers it, if the file is not one of the server's."""
    theirs, ours = socket.socketpair()
    channel, (made, _, _), asked = Channel(ours, Budget(1 << 30)), served(), list[Any]()
    made.loaded = True
    monkeypatch.setattr(server.ioctls, "foreign", lambda gpu, call, *what: (asked.append(what), mine)[1])
    assert made._answer(channel, ShimMessage(shim_h.FOREIGN, 0xC0086200, 0x1000, 9, NAME, b"argument"))
    kind, size, result, offset, _, _ = MESSAGE.unpack(theirs.recv(4096))
    assert (kind, size, result, offset) == (shim_h.DONE if mine else shim_h.NOT_MINE, 0, 0, 0)
    assert asked == [(0xC0086200, 9, b"argument")]
    channel.close()
    theirs.close()


def test_a_mapping_has_a_descriptor_and_an_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    """The descriptor is a copy: the buffer keeps its own."""
    theirs, ours = socket.socketpair()
    channel, (made, _, _), node = Channel(ours, Budget(1 << 30)), served(), Node()
    made.loaded, made.nodes = True, {NAME: node}  # type: ignore[dict-item]
    channel.nodes.add(node)  # type: ignore[arg-type]
    with tempfile.TemporaryFile() as file:
        asked = list[Any]()
        monkeypatch.setattr(server.gem, "mapped", lambda *what: (asked.append(what), (file.fileno(), 0x7000))[1])
        assert made._answer(channel, ShimMessage(shim_h.MMAP, 0x100000, 0x2000, 0, NAME, b""))
        data, [(_, _, descriptors)], _, _ = theirs.recvmsg(4096, 64)
        kind, _, result, offset, _, _ = MESSAGE.unpack(data[: MESSAGE.size])
        assert (kind, result, offset) == (shim_h.DONE, 0, 0x7000) and asked == [(node, 0x100000, 0x2000)]
        assert data[MESSAGE.size :] == protocol.PART.pack(0, 4, 1), "its number is written nowhere"
        given = int.from_bytes(descriptors, "little")
        assert os.path.samestat(os.fstat(given), os.fstat(file.fileno())) and given != file.fileno()
        os.close(given)
    channel.close()
    theirs.close()


def test_an_unknown_message_ends_the_channel(channel: Channel) -> None:
    made, _, _ = served()
    made.loaded = True
    with pytest.raises(Gone, match="message 250"):
        made._answer(channel, ShimMessage(250, 0, 0, 0, NAME, b""))


@pytest.mark.parametrize("error, shown", [
    (None, ""), (Errno(errno.ENOENT, "no buffer 7"), " ENOENT: no buffer 7"), (Errno(4000, "odd"), " 4000: odd"),
])  # fmt: skip
def test_requests_are_shown_with_what_became_of_them(
    channel: Channel, error: Errno | None, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, _, _ = served()
    lines, node = list[str](), Node()
    made.trace, made.loaded, made.nodes = lines.append, True, {NAME: node}  # type: ignore[dict-item]
    channel.nodes.add(node)  # type: ignore[arg-type]

    def answer(*what: object) -> None:
        if error is not None:
            raise error

    monkeypatch.setattr(server.ioctls, "answer", answer)
    made._answer(channel, ShimMessage(shim_h.IOCTL, 0x645B, 0, 0, NAME, b"\0\x10\0\0\0\0\0\0"))
    assert lines == [f"{channel.program} {os.getpid()}: DRM_IOCTL_I915_GEM_CREATE size=0x1000{shown}"]


@pytest.mark.parametrize("work_first", [True, False])
def test_which_ioctls_come_between_submissions_is_noted(channel: Channel, work_first: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """By their number alone; a submission is noted by itself (execbuffer.py), and its work comes before its answer where that is asked."""
    made, _, _ = served()
    order, node = list[Any](), Node()
    made.loaded, made.nodes = True, {NAME: node}  # type: ignore[dict-item]
    channel.nodes.add(node)  # type: ignore[arg-type]

    def answer(node: object, call: Any, request: int, data: bytes) -> None:
        if request & 0xFF == 0x69:
            call.later, call.work_first = lambda hand_over, completed=None: order.append("work"), work_first

    monkeypatch.setattr(server.ioctls, "answer", answer)
    monkeypatch.setattr(channel, "wait_prediction", SimpleNamespace(ioctl=lambda number: order.append(f"noted {number:#x}")))
    monkeypatch.setattr(protocol.Call, "done", lambda call, *what, wait=True: order.append("answer" if what[:2] == (0, 0) else what))
    for request in (0xC010_646C, 0x4040_6469, 0xC010_645D):
        assert made._answer(channel, ShimMessage(shim_h.IOCTL, request, 0, 0, NAME, b""))
    submission = ["work", "answer"] if work_first else ["answer", "work"]
    assert order == ["noted 0x6c", "answer", *submission, "noted 0x5d", "answer"] and channel.waited_for is work_first


@pytest.mark.parametrize("offset", [0x7000, None])
@pytest.mark.parametrize("thread", [True, False])
def test_work_that_takes_long_is_answered_before_it_is_done(
    channel: Channel, offset: int | None, thread: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once; nobody waits for its end then, unless no thread is left for the next request."""
    made, _, _ = served()
    order, call = list[Any](), SimpleNamespace(channel=channel, done=lambda result, offset, wait: order.append((result, offset)))

    def start(function: object) -> None:
        if not thread:
            raise RuntimeError("can't start new thread")

    def later(hand_over: Any, completed: Any) -> None:
        hand_over()
        order.append("work")
        completed()

    monkeypatch.setattr(made.threads, "start", start)
    assert made._work(later, call, offset) is not thread  # type: ignore[arg-type]
    assert order == ([] if offset is None else [(0, 0x7000)]) + ["work"]
    assert channel.waited_for is (not thread and offset is not None)
