"""Whatever a program sends, the server answers with an error number or goes on without it; others notice nothing."""

import random
import socket
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from softgen.driver import protocol
from softgen.driver.protocol import MESSAGE
from softgen.driver.queue import Submission
from softgen.driver.uapi import ARGUMENTS
from tests.driver.program import Gpu, Program, served

NAMES = sorted(ARGUMENTS)
NEVER = {"timeout": 0}  # or the test would wait as long as the program asked to


class Instant:
    """Work is done the moment it is submitted."""

    def submit(self, submission: Submission) -> None:
        submission.vm.enter([(bound.bo, bound.address) for bound in submission.bound])
        submission.vm.leave([bound.bo for bound in submission.bound])
        submission.fence.signal()


@pytest.fixture(scope="module")
def gpu() -> Iterator[Gpu]:
    with served("kbl", Instant()) as one:
        yield one


def memory(program: Program, chance: random.Random) -> int:
    """An address with something at it: zeros, small numbers, noise, or a chain that leads on."""
    kind = chance.randrange(4)
    data = bytes(512) if kind == 0 else bytes(chance.choice((0, 0, 0, 1, 2)) for _ in range(512)) if kind == 1 else chance.randbytes(512)
    if kind == 3:
        data = memory(program, chance).to_bytes(8, "little") + bytes(504)
    return program.memory(data).address


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_any_sequence_of_ioctls_is_answered(gpu: Gpu, seed: int) -> None:
    chance = random.Random(seed)
    program = gpu.program(chance.choice(("card0", "renderD128")))
    for _ in range(20):
        name = chance.choice(NAMES)
        fields: dict[str, Any] = {}
        for field in ARGUMENTS[name].names:
            pick = chance.randrange(6)
            value = (0, chance.randrange(8), 4096 * chance.randrange(16), memory(program, chance), chance.getrandbits(20), 1)[pick]
            fields[field] = NEVER.get(field, value)
        if name == "SYNCOBJ_TRANSFER":
            fields["flags"] = 0  # it may wait for ever for somebody to submit, and that is right
        packed = fields_that_fit(name, fields)
        try:
            program.ioctl(name, **packed)
        except OSError:
            pass
    program.close()
    gpu.programs.remove(program)
    assert [line for line in gpu.log if "itself failed" in line] == []


def fields_that_fit(name: str, fields: dict[str, Any]) -> dict[str, Any]:
    """Cut to the width of each field."""
    layout, found = ARGUMENTS[name], {}
    for field in layout.names:
        at = layout.offsets[field]
        sizes = [other for other in [*layout.offsets.values(), layout.size] if other > at]
        found[field] = fields[field] & (1 << 8 * (min(sizes) - at) - 1) - 1
    return found


def test_noise_on_a_channel_ends_that_channel_alone(gpu: Gpu) -> None:
    program = gpu.program()
    for seed in range(20):
        channel = socket.socket(socket.AF_UNIX)
        channel.connect(str(gpu.folder / "server"))
        channel.sendall(random.Random(seed).randbytes(200))
        channel.close()
    assert program.ioctl("VERSION").major == 1
    assert [line for line in gpu.log if "itself failed" in line] == []


def test_a_node_that_is_not_open(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("softgen.driver.server.PATIENCE", 0.05)
    program = gpu.program()
    program.name = b"\0nobody\0"
    with pytest.raises(OSError, match="Bad file"):
        program.ioctl("VERSION")


def test_a_program_that_goes_away_in_the_middle_of_an_answer(gpu: Gpu) -> None:
    for _ in range(10):
        program = gpu.program()
        argument = ARGUMENTS["I915_GEM_EXECBUFFER2"].pack(
            SimpleNamespace(**{**dict.fromkeys(ARGUMENTS["I915_GEM_EXECBUFFER2"].names, 0), "buffers": 1 << 20, "count": 3})
        )
        program.channel.sendall(MESSAGE.pack(protocol.IOCTL, len(argument), 0x6469, 1 << 20, 0, program.name) + argument)
        program.close()
    assert gpu.program().ioctl("VERSION").major == 1
    end = time.monotonic() + 5
    while len(gpu.server.nodes) > 3 and time.monotonic() < end:
        time.sleep(0.01)
    assert [line for line in gpu.log if "itself failed" in line] == []
