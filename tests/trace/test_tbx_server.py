"""The server of the socket: when it ends, and what it leaves behind."""

from __future__ import annotations

import socket
import threading

import pytest

from softgen.bits.generation import device
from softgen.errors import SoftgenError
from softgen.trace.tbx import Options, TbxServer, TbxSimulator
from tests.trace.test_tbx import Client, Running


@pytest.mark.parametrize("clients", [1, 2])
def test_a_server_for_some_clients_serves_all_their_connections_and_ends(clients: int) -> None:
    """A connection that is opened while another is open is of the same client: the runtime opens three."""
    server = TbxServer(device("skl"), 0, Options(), lambda text: None)
    thread = threading.Thread(target=server.serve, args=(clients,), daemon=True)
    thread.start()
    for _ in range(clients):
        assert thread.is_alive()
        first, second = Client(server.port), Client(server.port)
        for client in (first, second):
            client.write_register(0x2600, 5)
            assert client.read_register(0x2600) == 5
        first.close()
        third = Client(server.port)
        assert (second.read_register(0x2600), third.read_register(0x2600)) == (5, 0)
        second.close()
        third.close()
        with server.left:
            assert server.left.wait_for(lambda: not server.open, 20)
    thread.join(20)
    assert not thread.is_alive() and server.clients == clients and len(server.done) == 3 * clients
    with pytest.raises(ConnectionRefusedError):
        Client(server.port)


def test_a_server_that_is_closed_from_outside_has_not_served_its_clients() -> None:
    server = TbxServer(device("skl"), 0, Options(), lambda text: None)
    server.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        server.serve(1)


def test_a_connection_that_was_being_made_when_the_server_closed_runs_no_work() -> None:
    running, made = Running(), list[TbxSimulator]()
    simulator = running.server._simulator

    def late(name: str) -> TbxSimulator:
        running.server.close()
        made.append(simulator(name))
        return made[0]

    running.server._simulator = late  # type: ignore[method-assign]
    assert running.client().stream.recv(1) == b""
    running.close()
    assert made[0].gpu.hooks.timed_out()


def test_work_goes_on_after_a_command_that_fails_unless_it_was_stopped() -> None:
    log: list[str] = []
    simulator = TbxSimulator(device("skl"), Options(), log.append)
    hooks = simulator.gpu.hooks
    assert hooks.on_error(SoftgenError("first")) and not hooks.timed_out()
    simulator.stop()
    assert not hooks.on_error(SoftgenError("second")) and hooks.timed_out() and log == ["first", "second"]


def test_a_server_that_is_interrupted_hangs_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its port is free, and clients that wait for an answer come to know that there will be none."""
    server = TbxServer(device("skl"), 0, Options(), lambda text: None)
    streams = [server.listener]

    def accept() -> socket.socket:
        if len(streams) == 1:
            streams.append(server.listener.accept()[0])
            return streams[1]
        raise KeyboardInterrupt

    monkeypatch.setattr(server, "_accept", accept)
    client = Client(server.port)
    with pytest.raises(KeyboardInterrupt):
        server.serve()
    assert client.stream.recv(1) == b""
    with pytest.raises(ConnectionRefusedError):
        Client(server.port)


def test_a_port_that_is_taken_is_named() -> None:
    running = Running()
    with pytest.raises(SoftgenError, match=rf"cannot listen on 127.0.0.1:{running.server.port}: Address already in use"):
        TbxServer(device("skl"), running.server.port)
    running.server.close()
