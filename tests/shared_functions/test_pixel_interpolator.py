"""The pixel interpolator: barycentrics at offsets from pixels, on both machines, against planes in plain Python."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from softgen.errors import Unsupported
from softgen.shared_functions.pixel_dispatch_h import PixelDispatch
from softgen.shared_functions.pixel_interpolator import PixelInterpolator
from tests.shared_functions.compiled import PIXEL, Compiled
from tests.shared_functions.rendering import Thread
from tests.shared_functions.sending import Bench, Sent

Array = np.ndarray[Any, Any]
GENERATIONS = [7, 7.5, 8, 9, 11]
PLACES = [(8, 4), (10, 4), (8, 6), (10, 6), (20, 16), (22, 16), (20, 18), (22, 18)]
# At (0, 0), along x and y: 1/w, b1, b2, b1/w, b2/w
PLANES = [(0.5, 0.0625, -0.03125), (0.25, 0.125, 0.0), (0.5, -0.0625, 0.25), (0.125, 0.03125, 0.0625), (0.25, 0.0, 0.125)]


@dataclass
class Interpolated(Bench):
    """A thread of 32 channels whose object has PLANES."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.pixel = PixelDispatch(lit=0xFFFFFFFF)
        for number, (x, y) in enumerate(PLACES):
            self.pixel.place[number] = x | y << 16
        for number, plane in enumerate(PLANES):
            self.pixel.planes[3 * number : 3 * number + 3] = plane
        self.port: Any = PixelInterpolator()
        self.port.surfaces = type("None_", (), {"known": dict})()

    def sender(self) -> object:
        return Thread(self.pixel)

    def _prepare(self, twin: Compiled, sent: Sent, index: int) -> None:
        twin.block[PIXEL : PIXEL + ctypes.sizeof(PixelDispatch)] = np.frombuffer(bytes(self.pixel), np.uint8)


def expected(linear: bool, channels: range, offsets: list[tuple[float, float]]) -> list[tuple[float, float]]:
    found = []
    for channel, (across, down) in zip(channels, offsets, strict=True):
        x, y = PLACES[channel // 4]
        x, y = x + channel % 2 + across, y + channel % 4 // 2 + down
        value = [c + dx * x + dy * y for c, dx, dy in PLANES]
        found.append((value[1], value[2]) if linear else (value[3] / value[0], value[4] / value[0]))
    return found


def taken(answer: Array, lanes: int) -> list[tuple[float, float]]:
    registers = answer.view(np.float32).reshape(-1, 8)
    return [(registers[2 * (n // 8)][n % 8], registers[2 * (n // 8) + 1][n % 8]) for n in range(lanes)]


def send(bench: Interpolated, name: str, lanes: int, *parts: Any, linear: bool = False, high: bool = False, **fields: Any) -> list[Any]:
    fields |= {"simd_mode": int(lanes == 16), "interpolation_mode": int(linear), "slot_group": int(high)}
    answer = bench.send(name, *(parts or (np.zeros(8, np.uint32),)), mask=(1 << lanes) - 1, answer=lanes // 4, width=lanes, **fields)
    return taken(answer, lanes)


@pytest.mark.parametrize("gen", GENERATIONS)
@pytest.mark.parametrize("lanes", [8, 16])
@pytest.mark.parametrize("linear", [False, True])
def test_an_offset_for_all_channels(gen: float, lanes: int, linear: bool) -> None:
    """Signed sixteenths: x is +5/16, y -8/16."""
    bench = Interpolated(gen=gen)
    found = send(bench, "interpolate_shared_offset", lanes, linear=linear, message_data=0x85)
    assert np.allclose(found, expected(linear, range(lanes), [(5 / 16, -0.5)] * lanes), atol=1e-6) and bench.compiled == 1


@pytest.mark.parametrize("lanes", [8, 16])
def test_an_offset_for_each_channel(lanes: int) -> None:
    bench, random = Interpolated(), np.random.default_rng(2)
    x, y = (random.integers(-8, 8, lanes, np.int32) for _ in range(2))
    found = send(bench, "interpolate_per_slot_offset", lanes, x, y)
    wanted = expected(False, range(lanes), list(zip(x / 16, y / 16, strict=True)))
    assert np.allclose(found, wanted, atol=1e-6) and bench.compiled == 1


@pytest.mark.parametrize("name", ["interpolate_sample_position", "interpolate_centroid"])
def test_the_only_sample_is_in_the_middle(name: str) -> None:
    assert np.allclose(send(Interpolated(), name, 16), expected(False, range(16), [(0, 0)] * 16), atol=1e-6)


def test_upper_channels_have_pixels_of_their_own() -> None:
    found = send(Interpolated(), "interpolate_shared_offset", 16, linear=True, high=True, message_data=0)
    assert np.allclose(found, expected(True, range(16, 32), [(0, 0)] * 16), atol=1e-6)


def test_channels_that_do_not_send_keep_their_registers() -> None:
    bench = Interpolated()
    answer = bench.send("interpolate_shared_offset", np.zeros(8, np.uint32), mask=0x00F0, answer=2, width=8, simd_mode=0)
    assert (answer.reshape(2, 8, 4)[:, :4] == 0xEE).all() and not (answer.reshape(2, 8, 4)[:, 4:] == 0xEE).all()


def test_threads_without_pixels_and_coarse_pixels_are_refused() -> None:
    bench = Interpolated(gen=11)
    with pytest.raises(Unsupported, match="coarse_pixel"):
        bench.send("interpolate_centroid", np.zeros(8, np.uint32), answer=2, width=8, shading_rate=1)
    bench.sender = lambda: None  # type: ignore[method-assign]
    with pytest.raises(Unsupported, match="no pixels"):
        bench.send("interpolate_centroid", np.zeros(8, np.uint32), answer=2, width=8)


SAMPLES = [(0.25, -0.125), (-0.375, 0.0625), (0.4375, 0.25), (-0.0625, -0.4375)]


def sampled(gen: float = 9) -> Interpolated:
    """Four samples; of each pixel, those of its channel's number are covered."""
    bench = Interpolated(gen=gen)
    bench.pixel.samples = 4
    for number, (x, y) in enumerate(SAMPLES):
        bench.pixel.sample_x[number], bench.pixel.sample_y[number] = x, y
    for channel in range(32):
        bench.pixel.sample_covered[channel] = channel & 15
    return bench


@pytest.mark.covering(2)
@pytest.mark.parametrize("gen", GENERATIONS)
@pytest.mark.parametrize("lanes", [8, 16])
@pytest.mark.parametrize("sample", range(5))
def test_the_position_of_a_sample(gen: float, lanes: int, sample: int) -> None:
    """A number that there is not counts as the last."""
    bench = sampled(gen)
    found = send(bench, "interpolate_sample_position", lanes, linear=True, sample_index=sample)
    assert np.allclose(found, expected(True, range(lanes), [SAMPLES[min(sample, 3)]] * lanes), atol=1e-6) and bench.compiled == 1


@pytest.mark.parametrize("gen", GENERATIONS)
@pytest.mark.parametrize("high", [False, True])
def test_centroids(gen: float, high: bool) -> None:
    """At the first sample that is covered; in the pixel's centre where all are, or none is."""
    bench = sampled(gen)
    offsets = [(0.0, 0.0) if channel in (0, 15) else SAMPLES[(channel & -channel).bit_length() - 1] for channel in range(16)]
    found = send(bench, "interpolate_centroid", 16, high=high)
    assert np.allclose(found, expected(False, range(16 * high, 16 * high + 16), offsets), atol=1e-6) and bench.compiled == 1
