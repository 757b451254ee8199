"""The Debug Adapter Protocol, by a small client: `softgen debug --dap` as an editor starts it."""

from __future__ import annotations

import base64
import io
import json
import queue
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from softgen.errors import UsageError
from softgen.inspect.debug.dap import Adapter
from tests.conftest import ROOT

COMPUTE, TRIANGLE = (ROOT / "tests/data" / name for name in ("kbl-vk-compute", "kbl-vk-tri"))
PATIENCE = 120.0


class Client:
    """An editor: sends requests, and keeps answers apart from events."""

    def __init__(self) -> None:
        self.process = subprocess.Popen([sys.executable, "-m", "softgen", "debug", "--dap"], cwd=ROOT, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)  # fmt: skip
        self.answers: queue.Queue[dict[str, Any]] = queue.Queue()
        self.events: queue.Queue[dict[str, Any]] = queue.Queue()
        self.sequence = 0
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        while header := stream.readline():
            stream.readline()
            message = json.loads(stream.read(int(header.split(b":")[1])))
            (self.events if message["type"] == "event" else self.answers).put(message)

    def send(self, command: str, **arguments: Any) -> dict[str, Any]:
        self.sequence += 1
        data = json.dumps({"seq": self.sequence, "type": "request", "command": command, "arguments": arguments}).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)
        self.process.stdin.flush()
        answer = self.answers.get(timeout=PATIENCE)
        assert answer["request_seq"] == self.sequence and answer["command"] == command
        return answer

    def ask(self, command: str, **arguments: Any) -> Any:
        answer = self.send(command, **arguments)
        assert answer["success"], answer
        return answer["body"]

    def event(self, name: str) -> dict[str, Any]:
        found = self.events.get(timeout=PATIENCE)
        assert found["event"] == name, found
        return dict(found["body"])

    def stopped(self, command: str, **arguments: Any) -> str:
        self.ask(command, threadId=1, **arguments)
        return str(self.event("stopped")["text"])

    def registers(self) -> dict[str, str]:
        scopes = self.ask("scopes", frameId=1)["scopes"]
        found = {}
        for scope in scopes[:2]:
            for row in self.ask("variables", variablesReference=scope["variablesReference"])["variables"]:
                found[row["name"]] = row["value"]
        return found


@pytest.fixture
def client() -> Iterator[Client]:
    made = Client()
    yield made
    if made.process.poll() is None:
        made.send("disconnect")
    assert made.process.wait(PATIENCE) == 0


def launch(client: Client, capture: Path, functions: list[str], **more: Any) -> None:
    assert client.ask("initialize", adapterID="softgen")["supportsStepBack"]
    client.ask("launch", capture=str(capture), **more)
    client.event("initialized")
    points = client.ask("setFunctionBreakpoints", breakpoints=[{"name": name} for name in functions])["breakpoints"]
    assert all(point["verified"] for point in points)
    client.ask("configurationDone")


def test_an_editor_steps_forwards_and_back_with_the_same_state(client: Client) -> None:
    launch(client, COMPUTE, ["2:17/cs/g1.t0"])
    assert client.event("stopped")["text"] == "2:17/cs/g1.t0+0x0#0"
    places, states, times = ["2:17/cs/g1.t0+0x0#0"], [client.registers()], []
    for _ in range(12):
        places.append(client.stopped("next", granularity="instruction"))
        states.append(client.registers())
    assert places[-1] == "2:17/cs/g1.t0+0x98#12" and states[0] != states[-1]
    for number in range(11, -1, -1):
        began = time.monotonic()
        assert client.stopped("stepBack", granularity="instruction") == places[number]
        times.append(time.monotonic() - began)
        back = client.registers()
        assert {name.split(":")[0] for name in back} == {name.split(":")[0] for name in states[number]}
    assert sorted(times)[len(times) // 2] < 0.05  # with the protocol; the step itself is measured elsewhere
    assert client.send("stepBack", granularity="instruction")["success"]
    assert client.event("stopped")["description"] == "start of thread"


def test_breakpoints_of_all_kinds(client: Client) -> None:
    launch(client, COMPUTE, ["cs"])
    client.event("stopped")
    (frame,) = client.ask("stackTrace", threadId=1)["stackFrames"]
    text = client.ask("source", sourceReference=frame["source"]["sourceReference"])["content"].splitlines()
    line = next(number for number, row in enumerate(text, 1) if "sends" in row)
    assert client.ask("setBreakpoints", source=frame["source"], breakpoints=[{"line": line}])["breakpoints"][0]["verified"]
    client.ask("setFunctionBreakpoints", breakpoints=[])
    assert client.stopped("continue") == "2:17/cs/g0.t0+0x98#12"
    assert client.stopped("continue") == "2:17/cs/g1.t0+0x98#12"
    assert client.stopped("reverseContinue") == "2:17/cs/g0.t0+0x98#12"
    client.ask("setBreakpoints", source=frame["source"], breakpoints=[])
    rows = client.ask("disassemble", memoryReference=frame["instructionPointerReference"], instructionOffset=-1, instructionCount=17)
    rows = rows["instructions"]
    assert len(rows) == 17 and rows[0]["presentationHint"] == rows[-1]["presentationHint"] == "invalid"
    assert "sends" in rows[13]["instruction"]
    client.ask("setInstructionBreakpoints", breakpoints=[{"instructionReference": rows[12]["address"]}])
    assert client.stopped("continue") == "2:17/cs/g1.t0+0x90#11"
    client.ask("setInstructionBreakpoints", breakpoints=[])
    assert client.ask("dataBreakpointInfo", name="r22:d")["dataId"] == "r22:d"
    client.ask("setDataBreakpoints", breakpoints=[{"dataId": "r22:d"}])
    client.ask("continue", threadId=1)
    stopped = client.event("stopped")
    assert (stopped["text"], stopped["reason"]) == ("2:17/cs/g1.t0+0x98#12", "data breakpoint")
    assert not client.ask("setFunctionBreakpoints", breakpoints=[{"name": "no such place"}])["breakpoints"][0]["verified"]


def test_variables_memory_and_expressions(client: Client) -> None:
    launch(client, COMPUTE, ["/cs+0x98 if r22:d == 17017"])
    client.event("stopped")
    assert client.ask("threads")["threads"][0]["name"] == "2:17/cs/g1.t0"
    assert client.registers()["r22:d"].startswith("16016 17017 18018")
    row = client.ask("evaluate", expression="r22:d")
    elements = client.ask("variables", variablesReference=row["variablesReference"])["variables"]
    assert [element["value"] for element in elements[:2]] == ["16016", "17017"]
    assert "2:17/cs/g1.t0" in client.ask("evaluate", expression="> where")["result"]
    client.ask("setVariable", variablesReference=1, name="r22:d", value="7 8")
    client.stopped("next", granularity="instruction")
    client.stopped("stepBack", granularity="instruction")
    address = client.ask("evaluate", expression="> step")["result"].split("0x")[1].split(":")[0]
    client.event("stopped")
    memory = client.ask("readMemory", memoryReference=f"0x{address}", count=8)
    assert base64.b64decode(memory["data"]) == bytes([7, 0, 0, 0, 8, 0, 0, 0])


def test_threads_of_draws(client: Client) -> None:
    launch(client, TRIANGLE, ["ps if pixel == (32, 20)"])
    stopped = client.event("stopped")
    assert stopped["reason"] == "breakpoint" and stopped["text"].startswith("2:124/ps/g0.t")
    scopes = client.ask("scopes", frameId=1)["scopes"]
    thread = client.ask("variables", variablesReference=scopes[3]["variablesReference"])["variables"]
    assert {"name": "pixel of lane 0", "value": "32, 20", "variablesReference": 0} in thread
    client.ask("setFunctionBreakpoints", breakpoints=[{"name": "2:190/cs"}])
    client.ask("continue", threadId=1)
    client.event("terminated")


def test_requests_that_fail_say_why(client: Client) -> None:
    for command, arguments, says in (
        ("next", {}, "nothing was launched"), ("launch", {}, "launch what?"), ("fly", {}, "there is no request 'fly'"),
        ("launch", {"capture": "nowhere"}, "nowhere"), ("variables", {}, "variables lacks 'variablesReference'"),
    ):  # fmt: skip
        answer = client.send(command, **arguments)
        assert not answer["success"] and says in answer["message"], command


@pytest.mark.parametrize("data", [b"Content-Length: 9\r\n\r\nnot json!", b"\r\n", b"Content-Length: 99999999\r\n\r\n",
                                  b"Content-Length: 2\r\n\r\n[]"])  # fmt: skip
def test_messages_that_are_none_are_refused(data: bytes) -> None:
    with pytest.raises(UsageError):
        Adapter(io.BytesIO(data), io.BytesIO()).run()


def test_the_extension_of_vs_code_starts_this_adapter() -> None:
    package = json.loads((ROOT / "editors/vscode/package.json").read_text())
    (debugger,) = package["contributes"]["debuggers"]
    assert debugger["type"] == "softgen" and debugger["args"] == ["debug", "--dap"]
    attributes = debugger["configurationAttributes"]["launch"]
    assert attributes["required"] == ["capture"] and set(attributes["properties"]) == {"capture", "gpu", "at", "sources"}


@pytest.mark.witness
def test_the_test_client_of_vs_code(tmp_path: Path) -> None:
    """Steps forwards and back through a pixel's thread leave equal registers."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        pytest.skip("no npm (Debian: npm): VS Code's test client is not installed")
    install = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(tmp_path), "@vscode/debugadapter-testsupport@1.68.0"]
    try:
        installed = subprocess.run(install, text=True, capture_output=True, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip("npm does not reach its registry: VS Code's test client is not installed")
    if installed.returncode:
        pytest.skip(f"npm does not install VS Code's test client: {installed.stderr.strip().splitlines()[-1]}")
    script = Path(__file__).with_name("vscode_client.js")
    ran = subprocess.run([node, str(script), str(tmp_path), sys.executable, str(TRIANGLE)], cwd=ROOT, text=True, capture_output=True,
                         timeout=2 * PATIENCE, check=False)  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    here = ["2:124/ps/g0.t53+0x0#0", "2:124/ps/g0.t53+0x8#1", "2:124/ps/g0.t53+0x10#2", "2:124/ps/g0.t53+0x18#3"]
    assert found["verified"] and found["equal"] and found["different"] == len(here)
    assert [text.split()[-1] for text in found["texts"]] == [*here, *here[-2::-1]]
