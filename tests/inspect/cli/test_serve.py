"""`softgen serve`: how it is used, and how it ends."""

from __future__ import annotations

import json
import re
import socket
import struct
import subprocess
import sys
import threading

import pytest

from softgen.inspect.cli.main import main
from softgen.threads.dispatcher import EngineDispatcher


@pytest.mark.parametrize("arguments, why", [(["--tbx", "70000", "--gpu", "skl"], "a port is a number from 0 to 65535, not 70000"),
                                            (["--tbx", "0", "--gpu", "vax"], "no GPU is called 'vax'"),
                                            (["--tbx", "0", "--gpu", "skl", "--clients", "0"], "1 or more, not 0"),
                                            (["--tbx", "0", "--gpu", "skl", "--time-limit", "0"], "above zero, not 0")])  # fmt: skip
def test_wrong_use(arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", *arguments]) == 2
    assert why in capsys.readouterr().err


def test_a_port_that_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main(["serve", "--tbx", str(taken.getsockname()[1]), "--gpu", "skl"]) == 1
    assert "cannot listen on 127.0.0.1" in capsys.readouterr().err


@pytest.mark.parametrize("message, code", [(struct.pack("<6I", 0, 1, 12, 0, 0x2600, 0), 0), (b"more rubbish", 1)])
def test_one_client_and_the_end(message: bytes, code: int) -> None:
    server = subprocess.Popen([sys.executable, "-m", "softgen", "serve", "--tbx", "0", "--gpu", "icllp", "--clients", "1"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # fmt: skip
    watchdog = threading.Timer(60, server.kill)
    watchdog.start()
    assert server.stdout is not None
    said = server.stdout.readline()
    found = re.fullmatch(r"Ice Lake GT2 \(icl\) listens on 127\.0\.0\.1:(\d+)\n", said)
    assert found, said
    with socket.create_connection(("127.0.0.1", int(found[1]))) as client:
        client.sendall(message)
        client.shutdown(socket.SHUT_WR)
        while client.recv(4096):
            pass
    _, errors = server.communicate(timeout=30)
    watchdog.cancel()
    assert server.returncode == code and f"{code} failures" in errors, errors


def test_json_at_the_end(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from softgen.trace import tbx

    monkeypatch.setattr(tbx.TbxServer, "serve", lambda self, clients: self.close())
    assert main(["serve", "--tbx", "0", "--gpu", "bdw", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) | {"port": 0} == {"gpu": "bdw", "port": 0, "clients": 0, "failures": []}


@pytest.mark.parametrize("given, limit", [([], 120.0), (["--time-limit", "7"], 7.0)])
def test_submissions_have_a_limit_and_the_fast_engine_unless_told(given: list[str], limit: float, monkeypatch: pytest.MonkeyPatch) -> None:
    from softgen.trace import tbx

    seen: list[tbx.TbxServer] = []
    monkeypatch.setattr(tbx.TbxServer, "serve", lambda self, clients: (seen.append(self), self.close()))
    assert main(["serve", "--tbx", "0", "--gpu", "bdw", *given]) == 0
    options = seen[0].options
    assert options.time_limit == limit and options.groups
    first, second = options.groups(), options.groups()
    assert isinstance(first, EngineDispatcher) and first.name == "auto" and first is not second  # a simulator has its own
