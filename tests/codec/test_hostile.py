"""Damaged streams, state and side buffers: decoding ends and touches nothing that is not mapped; streams have the same result each time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np
import pytest

from softgen.codec.engine import VideoEngine
from softgen.device.gpu import GpuDevice
from softgen.errors import SoftgenError
from softgen.memory.address_space import AddressSpace
from softgen.trace.file import open_trace
from softgen.trace.replay import events
from softgen.trace.work import Work
from tests.codec.record import DATA, clips
from tests.conftest import every

ROUNDS = 3
COMMAND = 0x70000000  # the two highest bytes of MFX commands: dwords that keep them are not made other commands


def damaged(name: str, seed: int, ratio: float, is_state: bool) -> Iterator[tuple[GpuDevice, Work]]:
    """A capture's submissions with some bytes of their data, or some dwords of their batches, changed."""
    trace = open_trace(DATA / name)
    device, random = GpuDevice(trace.device, clock=lambda: 0), np.random.default_rng(seed)
    for event in events(trace):
        if not isinstance(event, Work):
            continue
        assert isinstance(event.space, AddressSpace)
        for mapping in sorted(event.space._held.values(), key=lambda held: held.start):
            is_batch = mapping.start <= event.batch < mapping.end
            if is_batch is is_state:
                damage(mapping.store.array, random, ratio, is_batch)
        yield device, event


def damage(array: np.ndarray[tuple[int], np.dtype[np.uint8]], random: np.random.Generator, ratio: float, is_batch: bool) -> None:
    used = np.flatnonzero(array)
    if not len(used):
        return
    chosen = random.choice(used, max(int(len(used) * ratio), 1))
    if is_batch:
        dwords = array[: len(array) & ~3].view(np.uint32)
        chosen = np.array([at for at in np.unique(chosen // 4) if dwords[at] & 0xF0000000 != COMMAND and dwords[at] < 0x2000000], int)
        dwords[chosen] ^= np.uint32(1) << random.integers(0, 24, len(chosen), dtype=np.uint32)
    else:
        array[chosen] = random.integers(0, 256, len(chosen))


def outcome(name: str, seed: int, ratio: float, is_state: bool) -> tuple[str, int]:
    """A digest of memory, errors and registers after all submissions; how many pictures were completed."""
    found, pictures = hashlib.md5(), 0
    for device, work in damaged(name, seed, ratio, is_state):
        try:
            device.execute(work)
        except SoftgenError as error:
            found.update(str(error).encode())
        assert isinstance(work.space, AddressSpace)
        for mapping in sorted(work.space._held.values(), key=lambda held: held.start):
            found.update(bytes(mapping.view))
        engine = device.saved_context(work.context, work.engine).state(VideoEngine, device.interface.pipelines)
        pictures += engine.completed
    return found.hexdigest(), pictures


@pytest.mark.parametrize("name", every(3, clips()))
def test_damaged_data_decodes_to_the_same_each_time(name: str) -> None:
    decoded = 0
    for seed in range(ROUNDS):
        ratio = (0.001, 0.02, 0.3)[seed]
        first, pictures = outcome(name, seed, ratio, False)
        assert outcome(name, seed, ratio, False) == (first, pictures)
        decoded += pictures
    assert decoded


@pytest.mark.parametrize("name", every(2, clips()))
def test_damaged_state_is_refused_or_decoded(name: str) -> None:
    """Each submission ends, or is refused in words: any other exception, or a crash, fails here."""
    for seed in range(ROUNDS):
        outcome(name, seed, 0.02, True)
