"""The socket: a client's messages over loopback, and what a simulator makes of bad ones."""

from __future__ import annotations

import errno
import os
import socket
import struct
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from softgen.bits.generation import device
from softgen.errors import SoftgenError
from softgen.trace import tbx
from softgen.trace.tbx import CHUNK, Options, TbxServer, TbxSimulator
from tests.conftest import witness
from tests.device.host import DATA, PAGE, Host

REGISTER, TABLE, WRITE, READ, CONTROL = 0, 2, 4, 5, 11


class Client:
    def __init__(self, port: int) -> None:
        self.stream = socket.create_connection(("127.0.0.1", port), timeout=20)
        self.number = 0

    def send(self, kind: int, *body: int, data: bytes = b"") -> None:
        self.number += 1
        self.stream.sendall(struct.pack(f"<3I{len(body)}I", kind, self.number, 4 * len(body), *body) + data)

    def take(self, count: int) -> bytes:
        found = b""
        while len(found) < count:
            more = self.stream.recv(count - len(found))
            if not more:
                raise ConnectionError("the server closed the connection")
            found += more
        return found

    def write_register(self, offset: int, value: int) -> None:
        self.send(REGISTER, 1, offset, value)

    def read_register(self, offset: int) -> int:
        self.send(REGISTER, 0, offset, 0)
        kind, number, size, value = struct.unpack("<4I", self.take(16))
        assert (kind, number, size) == (1, self.number, 4)
        return int(value)

    def write(self, address: int, data: bytes) -> None:
        self.send(WRITE, address >> 32 << 24, address & 0xFFFFFFFF, len(data), data=data)

    def read(self, address: int, size: int) -> bytes:
        self.send(READ, address >> 32 << 24, address & 0xFFFFFFFF, size)
        kind, number, body, high, low, count = struct.unpack("<6I", self.take(24))
        assert (kind, number, body, count) == (6, self.number, 12, size) and high >> 24 << 32 | low == address
        return self.take(size)

    def close(self) -> None:
        self.stream.close()


class Running:
    """A server in a thread."""

    def __init__(self, gpu: str = "skl", **options: Any) -> None:
        self.log: list[str] = []
        self.server = TbxServer(device(gpu), 0, Options(**options), self.log.append)
        self.thread = threading.Thread(target=self.server.serve, daemon=True)
        self.thread.start()

    def close(self) -> None:
        """Until none of its threads is left, which would take processor time from the next test."""
        self.server.close()
        self.thread.join(20)
        self.left()
        assert not self.thread.is_alive()

    def client(self) -> Client:
        return Client(self.server.port)

    def left(self) -> None:
        """Until nobody is connected."""
        with self.server.left:
            assert self.server.left.wait_for(lambda: not self.server.open, 20)


@pytest.fixture
def running() -> Iterator[Running]:
    made = Running(deterministic=True)
    yield made
    made.close()


def upload(client: Client, host: Host) -> None:
    """What a host has prepared: its memory and global table."""
    for region in host.memory.physical.regions():
        client.write(region.start, host.memory.physical.read(region.start, region.size))
    for page in range(0, 0x80_0000, PAGE):
        client.send(TABLE, 1, page // PAGE, page | 1, 0)


def start(client: Client, host: Host, address: int, number: int) -> None:
    low, high = host.pack("CONTEXT_DESCRIPTOR", context_id=number, context_address=address, privileged=1, addressing=3, valid=1)
    for value in (0, 0, high, low):
        client.write_register(0x2230, value)


def test_a_deterministic_clock_counts_from_1(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise it is the host's."""
    monkeypatch.setattr(time, "monotonic_ns", lambda: 5000 * 10**9)
    first, second = (tbx.TbxSimulator(device("skl"), Options(deterministic=counted), lambda text: None).gpu for counted in (True, False))
    assert [first.clock() for _ in range(3)] == [1, 2, 3]
    assert second.clock() == 5000 * device("skl").limit("timestamp_hz")


def test_registers_memory_and_the_global_table(running: Running) -> None:
    client = running.client()
    client.send(CONTROL, 0x00320002)
    client.write_register(0x2600, 5)
    assert client.read_register(0x2600) == 5 and client.read_register(0x2604) == 0
    client.write(0x12_3456_7000, b"abcdef")
    assert client.read(0x12_3456_7002, 3) == b"cde" and client.read(0x5000, 2) == b"\0\0"
    client.send(TABLE, 1, 7, 0x7001, 0)
    client.send(TABLE, 0, 7, 0, 0)
    assert struct.unpack("<5I", client.take(20)) == (3, client.number, 8, 0x7001, 0)
    client.close()
    running.left()
    told = "disconnected after 9 messages, 0 batches, 0 dispatches, 0 instructions; 0 failures"
    assert running.log == ["client 1: connected", f"client 1: {told}"] and [done.messages for done in running.server.done] == [9]


def test_work_runs_when_the_port_is_written(running: Running) -> None:
    host, client = Host("skl"), running.client()
    host.say(context := host.context(1), host.store(0, 7))
    upload(client, host)
    start(client, host, context.address, 1)
    assert client.read(DATA, 4) == struct.pack("<I", 7)
    assert client.read_register(0x2234) & 0x100


def test_a_semaphore_that_the_client_satisfies(running: Running) -> None:
    host, client = Host("skl"), running.client()
    host.say(context := host.context(1), host.wait(0, 5), host.store(4, 1))
    upload(client, host)
    start(client, host, context.address, 1)
    assert client.read(DATA + 4, 4) == bytes(4)
    client.write(DATA, struct.pack("<I", 5))
    assert client.read(DATA + 4, 4) == struct.pack("<I", 1)


def test_work_that_waited_and_then_fails_is_told(running: Running) -> None:
    """Its batch is in no memory, which shows when the client satisfies its semaphore; the client is served on."""
    host, client = Host("skl"), running.client()
    nowhere = host.pack("MI_BATCH_BUFFER_START", batch_buffer_start_address=0x7000_0000_0000, address_space_indicator=1)
    host.say(context := host.context(1), host.wait(0, 5), nowhere)
    upload(client, host)
    start(client, host, context.address, 1)
    client.write(DATA, struct.pack("<I", 5))
    assert client.read(DATA, 4) == struct.pack("<I", 5)
    assert [line.partition(" in ")[0] for line in running.log[1:]] == ["client 1: command fetch at 0x700000000000"]


def test_a_command_that_fails_is_told_and_the_rest_is_executed(running: Running) -> None:
    """The runtime waits for the last write of its submission and knows no errors."""
    host, client = Host("skl"), running.client()
    host.say(context := host.context(1), host.pack("MI_LOAD_SCAN_LINES_INCL"), host.store(0, 7))
    upload(client, host)
    start(client, host, context.address, 1)
    assert client.read(DATA, 4) == struct.pack("<I", 7)
    assert any("MI_LOAD_SCAN_LINES_INCL at 0x" in line and "not yet simulated" in line for line in running.log)
    client.close()
    running.left()
    assert running.log[-1].endswith("1 failures")


def test_clients_come_one_after_another_and_each_has_a_machine_of_its_own(running: Running) -> None:
    for number in range(3):
        client = running.client()
        assert client.read_register(0x2600) == 0 and client.read(0x1000, 1) == b"\0"
        client.write_register(0x2600, number + 1)
        client.write(0x1000, b"x")
        assert client.read_register(0x2600) == number + 1
        client.close()
        running.left()
    assert [line for line in running.log if line.endswith("connected")] == [f"client {n}: connected" for n in (1, 2, 3)]


def test_connections_at_the_same_time_have_machines_of_their_own(running: Running) -> None:
    """The runtime opens one connection per engine context, each with an allocator of physical memory that starts at the same address."""
    host, clients = Host("skl"), [running.client() for _ in range(3)]
    host.say(context := host.context(1), host.store(0, 7))
    for client in clients:
        upload(client, host)
    start(clients[1], host, context.address, 1)
    clients[0].write_register(0x2600, 5)
    assert [client.read(DATA, 4)[0] for client in clients] == [0, 7, 0]
    assert [client.read_register(0x2600) for client in clients] == [5, 0, 0]
    for client in clients:
        client.close()
    running.left()
    assert running.server.clients == 1 and len(running.server.done) == 3
    assert sorted(line for line in running.log if line.endswith("connected")) == [
        "client 1, connection 2: connected", "client 1, connection 3: connected", "client 1: connected"]  # fmt: skip


@pytest.mark.parametrize("half", [struct.pack("<6I", WRITE, 1, 12, 0, 0x1000, 1 << 20) + b"abc", struct.pack("<2I", REGISTER, 1)])
def test_a_stalled_message_keeps_nobody_waiting(running: Running, half: bytes) -> None:
    stalled, other = running.client(), running.client()
    stalled.stream.sendall(half)
    time.sleep(0.1)  # so that its thread has taken what there is
    other.stream.settimeout(10)
    other.write(0x1000, b"x")
    assert other.read(0x1000, 2) == b"x\0"


def test_a_client_that_reads_no_answers_keeps_nobody_waiting(running: Running) -> None:
    stalled, other = running.client(), running.client()
    for _ in range(3):
        stalled.send(READ, 0, 0, 1 << 26)
    other.stream.settimeout(10)
    assert other.read_register(0x2600) == 0


def test_work_that_never_ends_keeps_nobody_waiting() -> None:
    """It ends with the server, which does not wait for the time limit."""
    running = Running(time_limit=600)
    host, busy, other = Host("skl"), running.client(), running.client()
    batch = host.pages(1)
    host.put(batch, host.pack("MI_BATCH_BUFFER_START", batch_buffer_start_address=batch, address_space_indicator=1))
    host.say(context := host.context(1), host.pack("MI_BATCH_BUFFER_START", batch_buffer_start_address=batch, address_space_indicator=1))
    upload(busy, host)
    start(busy, host, context.address, 1)
    end = time.monotonic() + 20
    while all(simulator.statistics.messages < busy.number for simulator in list(running.server.simulators)):
        assert time.monotonic() < end
        time.sleep(0.01)
    other.stream.settimeout(10)
    assert other.read_register(0x2600) == 0
    running.close()


def test_large_writes_and_reads_go_in_chunks(running: Running) -> None:
    client, data = running.client(), bytes(range(256)) * (3 << 12)  # three chunks
    assert len(data) == 3 * CHUNK
    client.write(0x1234, data + b"end")
    assert client.read(0x1234, len(data) + 3) == data + b"end" and client.read(0x1233, 1) == b"\0"


def test_too_many_connections_are_refused(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tbx, "MOST_CONNECTIONS", 2)
    clients = [running.client() for _ in range(2)]
    assert [client.read_register(0x2600) for client in clients] == [0, 0]
    assert running.client().stream.recv(1) == b""
    assert running.log[-1] == "a connection is refused: 2 are open, the most there may be"
    assert [client.read_register(0x2600) for client in clients] == [0, 0]


@pytest.mark.parametrize("part", [b"", b"\0", struct.pack("<3I", 0, 1, 12), struct.pack("<3I", 0, 1, 12) + bytes(4)])
def test_a_connection_without_a_message_gives_its_place_to_others(running: Running, part: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """64 idle connections once shut others out for ever. Who has sent a message may take its time."""
    monkeypatch.setattr(tbx, "FIRST_MESSAGE", 0.5)
    monkeypatch.setattr(tbx, "MOST_CONNECTIONS", 2)
    patient, idle = running.client(), running.client()
    assert patient.read_register(0x2600) == 0
    idle.stream.sendall(part)
    assert idle.stream.recv(1) == b"" and "it has sent no message in 0.5 s; the connection is closed" in "\n".join(running.log)
    time.sleep(0.5)
    assert running.client().read_register(0x2600) == 0 == patient.read_register(0x2600)


@pytest.mark.parametrize("taken", [63, 64])
def test_64_connections_are_served_at_once(running: Running, taken: int) -> None:
    pairs = [socket.socketpair() for _ in range(taken)]
    running.server.open.update(ours for ours, _ in pairs)  # as if so many were connected
    client = running.client()
    if taken < 64:
        assert client.read_register(0x2600) == 0
    else:
        assert client.stream.recv(1) == b"" and running.log == ["a connection is refused: 64 are open, the most there may be"]
    running.server.open.difference_update(ours for ours, _ in pairs)
    for stream in (stream for pair in pairs for stream in pair):
        stream.close()


def test_a_connection_without_memory_is_refused_and_the_next_is_served(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of descriptors, for example; what disconnected clients have left is collected first."""
    made, tries = tbx.TbxSimulator, list[int]()

    def few(*args: Any) -> TbxSimulator:
        tries.append(1)
        if len(tries) < 4:
            raise SoftgenError("host memory: Too many open files")
        return made(*args)

    monkeypatch.setattr(tbx, "TbxSimulator", few)
    refused = running.client()
    assert refused.stream.recv(1) == b""
    running.left()
    assert any("refused: host memory: Too many open files" in line for line in running.log) and running.server.done[0].failures
    served = running.client()
    served.write_register(0x2600, 5)
    assert served.read_register(0x2600) == 5 and len(tries) == 4


@pytest.mark.parametrize("refusals, clients", [(1, 1), witness((2, 1))])
def test_a_client_that_is_refused_is_not_one_of_those_to_serve(refusals: int, clients: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--clients 1` ends after the first whose work could run."""
    made, tries, log = tbx.TbxSimulator, list[int](), list[str]()

    def few(*args: Any) -> TbxSimulator:
        tries.append(1)
        if len(tries) <= 2 * refusals:  # each is tried twice
            raise SoftgenError("no memory")
        return made(*args)

    monkeypatch.setattr(tbx, "TbxSimulator", few)
    server = TbxServer(device("skl"), 0, Options(), log.append)
    thread = threading.Thread(target=server.serve, args=(1,), daemon=True)
    thread.start()
    for _ in range(refusals):
        assert Client(server.port).stream.recv(1) == b""
        with server.left:
            assert server.left.wait_for(lambda: not server.open, 20)
    client = Client(server.port)
    assert client.read_register(0x2600) == 0 and server.clients == clients
    client.close()
    thread.join(20)
    assert not thread.is_alive() and [bool(statistics.failures) for statistics in server.done] == [True] * refusals + [False]


def test_connections_share_a_limit_of_memory() -> None:
    """Each may write 16 GiB; the host has less than all of them could have."""
    running = Running(all_memory=3 << 20)
    first, second = running.client(), running.client()
    first.write(0, bytes([1]) * (2 << 20))
    assert first.read(0, 4) == b"\1" * 4
    second.write(0, bytes(1 << 20))
    assert second.read(0, 4) == bytes(4)
    first.write(0x800000, bytes(4096))
    with running.server.left:
        assert running.server.left.wait_for(lambda: len(running.server.done) == 1, 20)
    third = running.client()
    third.write(0, bytes(1 << 20))
    assert third.read(0, 4) == second.read(0, 4) == bytes(4)
    assert "all connections together may have 3 MiB" in running.server.done[0].failures[0]
    assert {simulator.memory.physical.limit for simulator in running.server.simulators} == {16 << 30}
    running.close()


@pytest.mark.parametrize("given, limit", [(None, 3000), (1, 1), (9000, 9000)])
def test_connections_may_have_three_quarters_of_the_hosts_memory(monkeypatch: pytest.MonkeyPatch, given: int | None, limit: int) -> None:
    monkeypatch.setattr(tbx, "host_memory", lambda: 4001)
    server = TbxServer(device("skl"), 0, Options(all_memory=given))
    server.close()
    assert server.all_memory == limit


def test_a_connection_without_a_thread_is_refused(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Thread.start

    def none(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", none)
    refused = running.client()
    assert refused.stream.recv(1) == b""
    monkeypatch.setattr(threading.Thread, "start", start)
    running.left()
    assert running.client().read_register(0x2600) == 0 and running.thread.is_alive()


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ECONNABORTED])
def test_the_server_goes_on_where_a_connection_cannot_be_accepted(number: int) -> None:
    log, left = list[str](), [OSError(number, os.strerror(number))] * 2
    server = TbxServer(device("skl"), 0, Options(), log.append)
    accept = server.listener.accept

    class Listener:
        """The server's, which first fails."""

        def accept(self) -> Any:
            if left:
                raise left.pop()
            return accept()

        def __getattr__(self, name: str) -> Any:
            return getattr(listener, name)

    listener, server.listener = server.listener, Listener()  # type: ignore[assignment]
    thread = threading.Thread(target=server.serve, args=(1,), daemon=True)
    thread.start()
    client = Client(server.port)
    assert client.read_register(0x2600) == 0 and not left
    client.close()
    thread.join(20)
    assert not thread.is_alive() and [line for line in log if "has to wait" in line] == [f"a connection has to wait: {os.strerror(number)}"]


def test_a_mistake_of_ours_ends_one_connection(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TbxSimulator, "register", lambda simulator, request: 1 // 0)
    client = running.client()
    client.write_register(0x2600, 5)
    assert client.stream.recv(1) == b""
    running.left()
    assert "softgen itself failed: ZeroDivisionError" in running.server.done[0].failures[0]


def test_failures_of_a_connection_are_listed_up_to_a_hundred() -> None:
    log: list[str] = []
    simulator = tbx.TbxSimulator(device("skl"), Options(), log.append)
    for number in range(101):
        simulator.failed(f"failure {number}")
    assert simulator.statistics.failures == [f"failure {number}" for number in range(100)] and len(log) == 101


BAD = {
    "message type 0x47455420 is unknown": b"GET / HTTP/1.1\r\n\r\n"[:0] + b" TEG" + bytes(8),
    "TBX_REGISTER_REQUEST has 12 bytes, not 4096": struct.pack("<3I", 0, 1, 4096),
    "register 0x1000000 does not exist": struct.pack("<6I", 0, 1, 12, 1, 0x1000000, 0),
    "register 0x2001 does not exist": struct.pack("<6I", 0, 1, 12, 0, 0x2001, 0),
    "the global table has no entry 0xffffffff": struct.pack("<7I", 2, 1, 16, 1, 0xFFFFFFFF, 0, 0),
    "0xffffffff bytes at once; the most is": struct.pack("<6I", 4, 1, 12, 0, 0, 0xFFFFFFFF),
    "0xfffffff0 bytes at once": struct.pack("<6I", 5, 1, 12, 0, 0, 0xFFFFFFF0),
    "0x40000001 bytes at once; the most is 0x40000000": struct.pack("<6I", 4, 1, 12, 0, 0, 0x40000001),
    "disconnected in the middle of a message: 0 of 1048576 bytes": struct.pack("<6I", 4, 1, 12, 0, 0, 0x40000000),  # as many are taken
    "register 0x800000 does not exist": struct.pack("<6I", 0, 1, 12, 0, 0x800000, 0),
    "the global table has no entry 0x100000": struct.pack("<7I", 2, 1, 16, 0, 0x100000, 0, 0),
    "disconnected in the middle of a message: 5 of 12 bytes": b"\0\0\0\0\1",
    "disconnected in the middle of a message: 3 of 16 bytes": struct.pack("<6I", 4, 1, 12, 0, 0, 16) + b"abc",
}


@pytest.mark.parametrize("why", BAD)
def test_a_client_that_sends_rubbish_is_told_of_and_the_next_is_served(running: Running, why: str) -> None:
    client = running.client()
    client.stream.sendall(BAD[why])
    client.stream.shutdown(socket.SHUT_WR)
    running_log = lambda: "\n".join(running.log)  # noqa: E731
    assert client.stream.recv(1) == b""  # the server hung up
    running.left()
    assert why in running_log(), running_log()
    client = running.client()
    client.write_register(0x2600, 5)
    assert client.read_register(0x2600) == 5


def test_work_that_takes_too_long_is_given_up() -> None:
    running = Running(time_limit=0.2)
    host, client = Host("skl"), running.client()
    batch = host.pages(1)
    host.put(batch, host.pack("MI_BATCH_BUFFER_START", batch_buffer_start_address=batch, address_space_indicator=1))
    host.say(context := host.context(1), host.pack("MI_BATCH_BUFFER_START", batch_buffer_start_address=batch, address_space_indicator=1))
    upload(client, host)
    start(client, host, context.address, 1)
    assert client.read_register(0x2600) == 0
    assert any("time is up at" in line for line in running.log)
    running.close()
