"""Whatever a host writes, only softgen's own errors come out, and nothing runs for ever."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgen.bits.generation import device
from softgen.device.gpu import GpuDevice
from softgen.device.memory import DeviceMemory
from softgen.errors import SoftgenError
from tests.device.host import DATA, PAGE, Host

OFFSETS = [
    *(0x2030, 0x2034, 0x2038, 0x203C, 0x2080, 0x2098, 0x20A8, 0x20B0, 0x20B4, 0x2178, 0x217C, 0x2230, 0x2244, 0x2358, 0x23A0, 0x23A8),
    *(0x2510, 0x2514, 0x2550, 0x2600, 0x44304, 0x44308),
]
VALUES = st.integers(0, 0xFFFFFFFF) | st.sampled_from([0, 1, 0x119, 0x1119, 0x2119, 0x19, 0xFFFFFFFF, 0x1000, 0x2000])


def budget(commands: int) -> object:
    left = iter(range(commands))
    return lambda: next(left, None) is None


@given(
    st.sampled_from(["g45", "ivb", "bdw", "icl"]),
    st.lists(st.tuples(st.sampled_from(OFFSETS), VALUES), max_size=24),
    st.integers(0, 1 << 32),
)
def test_any_register_writes_over_any_memory(gpu: str, writes: list[tuple[int, int]], seed: int) -> None:
    made = device(gpu)
    memory = DeviceMemory(made.generation, 1 << 24)
    noise = random.Random(seed)
    memory.physical.write(0, noise.randbytes(4 * PAGE))
    for page in range(4):
        memory.write_entry(page, page * PAGE | 1)
    machine = GpuDevice(made, itertools.count(1).__next__, budget(300), memory, on_error=lambda error: True)  # type: ignore[arg-type]
    for offset, value in writes:
        try:
            machine.write_register(offset, value)
        except SoftgenError as error:
            assert str(error)


@pytest.mark.parametrize("gpu", ["skl", "icl"])
@given(st.lists(st.tuples(st.integers(0, 0x140), VALUES), min_size=1, max_size=6))
def test_any_damage_to_an_image(gpu: str, damage: list[tuple[int, int]]) -> None:
    host = Host(gpu, timed_out=budget(300))
    host.say(context := host.context(1), host.store(0, 1))
    for dword, value in damage:
        host.put(context.address + PAGE + 4 * dword, [value])
    for _ in range(2):
        try:
            host.submit(context)
        except SoftgenError as error:
            assert str(error)
    assert host.dwords(DATA, 1)[0] in (0, 1)
