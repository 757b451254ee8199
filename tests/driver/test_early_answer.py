"""The answer to a submission that is waited for: as soon as its result is in memory, before the server's own last steps."""

import struct
import threading
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from tests.driver.program import Gpu, Program, served
from tests.driver.test_execbuffer import END, PINNED, buffer, content, row, submit

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
        monkeypatch.setattr(f"softgen.driver.queue.{limit}", LONG)  # whatever else the machine does
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
