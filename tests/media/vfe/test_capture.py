"""The capture of intel-vaapi-driver decoding MPEG-2 with EU kernels on G45: its first picture against a model of their arithmetic.

The model has what the kernels do (public: intel-vaapi-driver, shaders/mpeg2/vld): levels times matrix and scale, four bits dropped, the
inverse transform of ffmpeg's "simple" constants, 128 added. It takes levels from the records that the front end made for the threads.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from softgen.device.gpu import GpuDevice
from softgen.media.vfe.vld import threads as vld_threads
from softgen.memory.space import Space
from softgen.threads.dispatcher import EngineDispatcher
from softgen.trace.file import open_trace
from softgen.trace.replay import events
from softgen.trace.work import Work
from tests.conftest import SHARED, needs_shared

CAPTURE = "traces/g45-i965-dec-m2"
SIZE = 128
DCT = np.array([[16383] * 8,
                [22725, 19266, 12873, 4520, -4520, -12873, -19266, -22725], [21407, 8867, -8867, -21407, -21407, -8867, 8867, 21407],
                [19266, -4520, -22725, -12873, 12873, 22725, 4520, -19266], [16383, -16383, -16383, 16383, 16383, -16383, -16383, 16383],
                [12873, -22725, 4520, 19266, -19266, -4520, 22725, -12873], [8867, -21407, 21407, -8867, -8867, 21407, -21407, 8867],
                [4520, -12873, 19266, -22725, 22725, -19266, 12873, -4520]], np.int64)  # fmt: skip
Picture = npt.NDArray[np.int64]


@dataclass
class Seen:
    """What the first picture's threads got, and where it is."""

    slices: list[Any] = field(default_factory=list)
    matrix: Picture = field(default_factory=lambda: np.zeros(0, np.int64))
    planes: list[bytes] = field(default_factory=list)


def first_picture(engine: str, monkeypatch: pytest.MonkeyPatch) -> Seen:
    seen, plain = Seen(), vld_threads.dispatches

    def noted(context: Any, slices: Any) -> Iterator[Any]:
        held = tuple(slices)
        seen.slices += held
        for made in plain(context, held):
            seen.planes.append(struct.pack("<2Q", context.bases.get("surface", 0), made.binding_table))
            yield made

    monkeypatch.setattr("softgen.media.vfe.spawner.dispatches", noted)
    trace = open_trace(SHARED / CAPTURE)
    event = next(event for event in events(trace) if isinstance(event, Work))
    gpu = GpuDevice(trace.device, dispatcher=EngineDispatcher(engine, threads=1))
    gpu.execute(event)
    base, table = struct.unpack("<2Q", seen.planes[0])
    kind = next(iter(seen.slices[0].kinds.values()))
    seen.matrix = np.frombuffer(kind.constants[:64], np.uint8).astype(np.int64).reshape(8, 8)
    seen.planes = [plane(event.space, base + table + 4 * number) for number in range(3)]
    return seen


def plane(space: Space, entry: int) -> bytes:
    """The samples of a linear surface that a binding table entry leads to; the driver's width is in samples."""
    (state,) = struct.unpack("<I", space.read(entry, 4))
    words = struct.unpack("<6I", space.read(state, 24))
    width, height = (words[2] >> 6 & 0x1FFF) + 1, (words[2] >> 19) + 1
    return space.read(words[1], width * height)


def model(seen: Seen) -> list[Picture]:
    """The picture, of intra macroblocks alone."""
    planes = [np.zeros((SIZE >> shift, SIZE >> shift), np.int64) for shift in (0, 1, 1)]
    for piece in seen.slices:
        for offset, size, _, _ in piece.threads.tolist():
            held = piece.data[offset : offset + size]
            record = struct.unpack("<8I", held[:32].tobytes())
            x, y, scale = record[3] >> 4 & 127, record[3] >> 20 & 127, 2 * (record[2] & 31)
            levels = np.frombuffer(held[32:].tobytes(), np.int16).reshape(6, 8, 8)
            for number, block in enumerate(levels):
                samples = decoded(block.astype(np.int64), seen.matrix, scale, 3 - (record[2] >> 13 & 3))
                if number < 4:
                    top, left, target = 16 * y + 8 * (number >> 1), 16 * x + 8 * (number & 1), planes[0]
                else:
                    top, left, target = 8 * y, 8 * x, planes[number - 3]
                target[top : top + 8, left : left + 8] = samples
    return planes


def decoded(levels: Picture, matrix: Picture, scale: int, shift: int) -> Picture:
    scaled = levels * matrix * scale >> 4
    scaled[0, 0] = levels[0, 0] << shift
    rows = scaled @ DCT + 1024 >> 11
    found: Picture = np.clip((DCT.T @ rows + (1 << 19) >> 20) + 128, 0, 255)
    return found


@pytest.mark.behaviour("G45-KRN-01", "G45-KRN-02", "G45-KRN-04", "G45-VLD-01", "G45-VLD-02", "G45-VLD-26", shows="action")
@needs_shared(CAPTURE)
def test_the_first_picture_is_that_of_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within one: the kernels may round where the model does not. Most samples are the same."""
    seen = first_picture("t0", monkeypatch)
    assert sum(len(piece.threads) for piece in seen.slices) == 64
    for found, expected in zip(seen.planes, model(seen), strict=True):
        difference = np.frombuffer(found, np.uint8).astype(np.int64).reshape(expected.shape) - expected
        assert abs(difference).max() <= 1 and (difference != 0).mean() < 0.02
