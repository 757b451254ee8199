"""Samples of texels: where they are in memory, and what control surfaces say, by formulas written out again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from softgen.bits.catalogue import layout
from softgen.lanes.numpy.machine import NumpyMachine
from softgen.lanes.types import u32
from softgen.surface import samples
from softgen.surface.image import SurfaceImage, as_stored, image_from_state

M = NumpyMachine()
COUNTS = (2, 4, 8, 16)
CODE = {2: 1, 4: 2, 8: 3, 16: 4}


def decoded(gen: float, **fields: Any) -> SurfaceImage:
    page = layout("RENDER_SURFACE_STATE", gen)
    values = {"surface_type": 1, "surface_format": 0xC7, "width": 12, "height": 6, "surface_pitch": 511, **fields}
    return image_from_state(page, page.raw(page.pack(**values)), "surface 0")


@pytest.mark.behaviour("KBL-SAMP-27", shows="action")
@pytest.mark.parametrize("count", COUNTS)
def test_interleaved_samples(count: int) -> None:
    """Blocks of 2x2 texels are kept; sample bits come between their number and the texel's place in them (public: Mesa isl.c)."""
    seen = {}
    for s in range(count):
        bits = [s >> n & 1 for n in range(4)]
        for y in range(6):
            for x in range(6):
                across, down = {2: ([bits[0]], []), 4: ([bits[0]], [bits[1]]), 8: ([bits[2], bits[0]], [bits[1]]),
                                16: ([bits[2], bits[0]], [bits[3], bits[1]])}[count]  # fmt: skip
                wanted = (x >> 1 << len(across) | sum(bit << n for n, bit in enumerate(reversed(across)))) << 1 | x & 1
                lower = y if not down else (y >> 1 << len(down) | sum(bit << n for n, bit in enumerate(reversed(down)))) << 1 | y & 1
                found = [int(part.payload[0]) for part in samples.interleave(M, count, *(M.constant(u32, value, 1) for value in (x, y, s)))]
                assert found == [wanted, lower]
                seen[found[0], found[1]] = s
    width, height = samples.spread(count, 6, 6)
    assert len(seen) == 36 * count == width * height and max(seen)[0] == width - 1


@pytest.mark.parametrize("count", COUNTS)
def test_control_values(count: int) -> None:
    """The identity gives each sample its own slice; all ones the clear colour; other values what their fields say."""
    bits = {2: 1, 4: 2, 8: 3, 16: 4}[count]
    random = np.random.default_rng(count)
    values = [sum(s << bits * s for s in range(count)), *(sum(int(f) << bits * s for s, f in enumerate(random.integers(0, count, count)))
                                                         for _ in range(20))]  # fmt: skip
    held = [M.value(u32, np.array([value >> 32 * n & 0xFFFFFFFF for value in values], np.uint32)) for n in (0, 1)]
    for s in range(count):
        found = samples.slice_of(M, count, held, M.constant(u32, s, len(values))).payload
        assert found.tolist() == [value >> bits * s & (1 << bits) - 1 for value in values]
    assert samples.identity(count) == [values[0] & 0xFFFFFFFF, values[0] >> 32][: 1 + (count == 16)]
    ones = [M.constant(u32, 0xFFFFFFFF, 1)] * 2
    assert samples.is_clear(M, count, ones).payload.all() and not samples.is_clear(M, count, held).payload[0]


@pytest.mark.behaviour("KBL-SAMP-27", shows="action")
@pytest.mark.parametrize(("gen", "count"), [(7, 4), (7.5, 8), (8, 2), (9, 16), (11, 4)])
def test_a_surface_state_says_how_samples_are_stored(gen: float, count: int) -> None:
    """Slices of each array element one after another, or interleaved; and where its control surface is."""
    sampled = {"number_of_multisamples": CODE[count]}
    plain = decoded(gen, **sampled)
    assert (plain.samples, plain.interleaved, plain.control) == (count, False, None)
    inside = decoded(gen, multisampled_surface_storage_format=1, **sampled)
    assert inside.interleaved
    aux = {"mcs_enable": 1} if gen < 8 else {"auxiliary_surface_mode": 1, "auxiliary_surface_qpitch": 8}
    controlled = decoded(gen, **sampled, **aux, auxiliary_surface_base_address=0x12000, auxiliary_surface_pitch=2,
                         red_clear_color=1 if gen < 9 else 0x3F000000)  # fmt: skip
    assert controlled.control is not None
    assert controlled.control[:3] == (0x12000, 3 * 128, 8 if gen < 8 else 32)
    assert controlled.control.clear == ((0x3F800000 if gen < 9 else 0x3F000000), 0, 0, 0)
    assert as_stored(plain).depth == count and as_stored(inside).width == samples.spread(count, 13, 7)[0]


def test_a_clear_colour_may_be_in_memory() -> None:
    found = decoded(11, number_of_multisamples=2, auxiliary_surface_mode=1, clear_value_address_enable=1, clear_value_address=0x4440)
    assert found.control is not None and found.control.clear_at == 0x4440
    integer = decoded(8, number_of_multisamples=2, surface_format=0xD7, auxiliary_surface_mode=1, green_clear_color=1)  # R32_UINT
    assert integer.control is not None and integer.control.clear == (0, 1, 0, 0)
