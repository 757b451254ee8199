"""The answer to a submission that is waited for: as soon as its result is in memory, before the server's own last steps."""

import socket
import struct
import threading
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from softgen.driver.objects.budget import Budget
from softgen.driver.run import protocol
from softgen.driver.run.protocol import MESSAGE, Channel
from softgen.driver.shim.shim_h import IOCTL
from tests.driver.execbuffer import END, PINNED, buffer, content, row, submit
from tests.driver.program import Gpu, Program, served

BATCH, TAGS = 0x10000, 0x20000
BAD_ADDRESS = 0x7F0000
SOON, LONG = 0.2, 10.0  # seconds; the latter far more than a test takes


def flush(address: int, tag: int) -> bytes:
    """PIPE_CONTROL that writes a tag, and the end of the batch."""
    return struct.pack("<8I", 0x7A000004, 1 << 20 | 1 << 14, address, 0, tag, 0, END, 0)


class WaitingProgram:
    """A program that submits prepared batches and waits for each."""

    def __init__(self, program: Program) -> None:
        self.program, self.tags, self.batch = program, buffer(program), buffer(program)

    def submit(self, tag: int, address: int = TAGS) -> None:
        data = self.program.memory(flush(address, tag))
        self.program.ioctl("DRM_IOCTL_I915_GEM_PWRITE", handle=self.batch, offset=0, size=32, data=data.address)
        submit(self.program, [row(self.tags, offset=TAGS, flags=PINNED), row(self.batch, offset=BATCH, flags=PINNED)])

    def wait(self) -> None:
        self.program.ioctl("DRM_IOCTL_I915_GEM_WAIT", handle=self.tags, timeout=10**10)


class HeldExecutor:
    """Holds the server back where it has executed a submission and counts it, until its program was answered or time is up."""

    def __init__(self, gpu: Gpu, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
        self.answered, self.answered_meanwhile = threading.Event(), list[bool]()
        monkeypatch.setattr(gpu.executor, "count", lambda spent: self.answered_meanwhile.append(self.answered.wait(seconds)))

    def submit(self, client: WaitingProgram, address: int = TAGS) -> bool:
        """Whether the program was answered while the server was held."""
        client.submit(100, address)
        self.answered.set()
        client.wait()
        return self.answered_meanwhile == [True]


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gpu]:
    for limit in ("SHORT", "PATIENT"):
        monkeypatch.setattr(f"softgen.driver.queue.queue.{limit}", LONG)  # whatever else the machine does
    with served("kbl") as found:
        yield found


@pytest.fixture
def client(gpu: Gpu) -> WaitingProgram:
    """One whose waits are predicted, and whose batch is prepared."""
    found = WaitingProgram(gpu.program())
    for tag in range(8):
        found.submit(tag)
        found.wait()
        assert gpu.shared.runner.drain(LONG)  # type: ignore[attr-defined]
    return found


def test_a_result_that_is_waited_for_comes_first(gpu: Gpu, client: WaitingProgram, monkeypatch: pytest.MonkeyPatch) -> None:
    assert HeldExecutor(gpu, monkeypatch, LONG).submit(client)
    assert content(client.program, client.tags)[0] == 100 and gpu.told == []


def test_a_program_is_answered_once(client: WaitingProgram) -> None:
    """A second answer would be taken for that of the next ioctl."""
    for tag in range(50, 60):
        client.submit(tag)
        assert client.program.ioctl("DRM_IOCTL_I915_GEM_BUSY", handle=client.tags).busy in (0, 1)
        assert content(client.program, client.tags)[0] == tag


def test_a_failure_is_known_before_the_answer(gpu: Gpu, client: WaitingProgram, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not HeldExecutor(gpu, monkeypatch, SOON).submit(client, BAD_ADDRESS)
    assert len(gpu.told) == 1 and f"{BAD_ADDRESS:#x}" in gpu.told[0]


def test_what_is_recorded_comes_before_the_program_goes_on(gpu: Gpu, client: WaitingProgram, monkeypatch: pytest.MonkeyPatch) -> None:
    assert gpu.executor is not None
    gpu.executor.recorders.append(SimpleNamespace(before=lambda submission: None, after=lambda submission, fine: None))
    assert not HeldExecutor(gpu, monkeypatch, SOON).submit(client)


def test_copied_memory_is_given_back_before_the_program_goes_on(gpu: Gpu, client: WaitingProgram, monkeypatch: pytest.MonkeyPatch) -> None:
    [node] = gpu.server.nodes.values()
    context = node.contexts.get(0)
    assert context is not None
    [listed] = context.listed.values()
    listed.bound.copies.append(SimpleNamespace(give_back=lambda: None))  # type: ignore[attr-defined]
    assert not HeldExecutor(gpu, monkeypatch, SOON).submit(client)


class Requests:
    """A channel, and a program's end of it. `spins`: how often its thread looked for a request without sleeping."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.program, ours = socket.socketpair()
        self.channel, self.spins = Channel(ours, Budget(1 << 30)), 0
        spin = self.channel._spin

        def counted(until: float) -> None:
            self.spins += 1
            spin(until)

        monkeypatch.setattr(self.channel, "_spin", counted)

    def next(self, delay: float = 0.0) -> int:
        """The number of the next request, which comes after a delay."""
        timer = threading.Timer(delay, self.program.sendall, [MESSAGE.pack(IOCTL, 0, 77, 0, 0, b"")])
        timer.start()
        found = self.channel.next_request()
        timer.join()
        return found.a


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Iterator[Requests]:
    found = Requests(monkeypatch)
    yield found
    found.channel.close()
    found.program.close()


@pytest.mark.parametrize("hopeful", [True, False])
def test_a_request_is_hoped_for_where_the_last_one_came_soon(hopeful: bool, requests: Requests, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "SOON", LONG)
    requests.channel.waited_for, requests.channel.hopeful = True, hopeful
    assert requests.next(0.05) == 77 and requests.spins == hopeful
    assert requests.channel.hopeful and not requests.channel.waited_for


def test_a_thread_that_looked_for_a_request_in_vain_sleeps_the_next_time(requests: Requests, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "SOON", 0.01)
    requests.channel.waited_for = requests.channel.hopeful = True
    assert requests.next(0.1) == 77 and requests.spins == 1 and not requests.channel.hopeful
    requests.channel.waited_for = True
    assert requests.next() == 77 and requests.spins == 1


@pytest.mark.parametrize("took, soon", [(0.0, True), (0.00025, True), (0.00035, False), (1.0, False)])
def test_what_comes_within_300_microseconds_is_soon(took: float, soon: bool, requests: Requests, monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([5.0, 5.0 + took])
    monkeypatch.setattr(protocol, "time", SimpleNamespace(monotonic=lambda: next(times)))
    requests.channel.waited_for = True
    requests.program.sendall(MESSAGE.pack(IOCTL, 0, 77, 0, 0, b""))
    assert requests.channel.next_request().a == 77 and requests.channel.hopeful is soon


def test_only_after_a_submission_that_was_waited_for_the_next_is_hoped_for(requests: Requests) -> None:
    requests.channel.hopeful = True
    assert requests.next() == 77 and not requests.spins and requests.channel.hopeful


@pytest.mark.parametrize("answers, until, looks", [([False, False, True], LONG, 3), ([True], LONG, 1), ([False] * 9, 2.5, 3)])
def test_a_thread_that_looks_for_a_request_does_not_sleep(answers: list[bool], until: float, looks: int, requests: Requests,
                                                          monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    """It lets others run between two looks. The clock goes on by a second with each."""
    looked, yields, left = list[int](), list[None](), iter(answers)
    poll = SimpleNamespace(poll=lambda timeout: (looked.append(timeout), next(left))[1])
    monkeypatch.setattr(requests.channel, "_readable", poll)
    monkeypatch.setattr(protocol, "time", SimpleNamespace(monotonic=lambda: float(len(looked))))
    monkeypatch.setattr(protocol, "os", SimpleNamespace(sched_yield=lambda: yields.append(None)))
    Channel._spin(requests.channel, until)
    assert looked == [0] * looks and len(yields) == looks - 1


@pytest.mark.parametrize("waiting", [True, False])
def test_the_server_says_which_submissions_were_waited_for(waiting: bool, gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    said, receive = list[bool](), Channel.next_request
    monkeypatch.setattr(Channel, "next_request", lambda channel: (said.append(channel.waited_for), receive(channel))[1])
    client = WaitingProgram(gpu.program())
    for tag in range(8):
        client.submit(tag)
        if waiting:
            client.wait()
        assert gpu.shared.runner.drain(LONG)  # type: ignore[attr-defined]
    assert any(said) == waiting and content(client.program, client.tags)[0] == 7
