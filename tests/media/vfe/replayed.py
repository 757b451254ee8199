"""Pictures that a capture of the MPEG-2 driver of G45 leaves when it is replayed: what its kernels' first three surfaces hold."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from softgen.device.gpu import GpuDevice
from softgen.media.vfe.vld import threads as vld_threads
from softgen.memory.space import Space
from softgen.threads.dispatcher import EngineDispatcher
from softgen.trace.file import open_trace
from softgen.trace.replay import events
from softgen.trace.work import Work


def pictures(path: Path, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> Iterator[bytes]:
    """Three planes of each picture, in the order in which they are coded."""
    tables, plain = list[int](), vld_threads.dispatches

    def noted(context: Any, slices: Any) -> Iterator[Any]:
        for made in plain(context, slices):
            tables.append(context.bases.get("surface", 0) + made.binding_table)
            yield made

    monkeypatch.setattr("softgen.media.vfe.spawner.dispatches", noted)
    trace = open_trace(path)
    gpu = GpuDevice(trace.device, dispatcher=EngineDispatcher("t0", threads=1))
    for event in events(trace):
        if isinstance(event, Work):
            gpu.execute(event)
            yield b"".join(plane(event.space, tables[-1] + 4 * n, size[0] >> (n > 0), size[1] >> (n > 0)) for n in range(3))


def plane(space: Space, entry: int, width: int, height: int) -> bytes:
    """Samples of a linear surface that a binding table entry leads to."""
    (state,) = struct.unpack("<I", space.read(entry, 4))
    words = struct.unpack("<6I", space.read(state, 24))
    pitch = (words[3] >> 3 & 0x1FFFF) + 1
    return np.frombuffer(space.read(words[1], pitch * height), np.uint8).reshape(height, pitch)[:, :width].tobytes()
