"""sample_unorm: blocks of 8x4 pixels, as words with eight bits behind the point."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from softgen.errors import Unsupported
from tests.shared_functions.test_sampler import filters, modes
from tests.shared_functions.texture import Texture

Array = np.ndarray[Any, Any]
RED, GREEN, BLUE, ALPHA = 1, 2, 4, 8


def blocks(texture: Texture, u: float, v: float, step: tuple[float, float], channels: int = RED, control: int = 0,
           name: str = "sample_unorm_media") -> Array:  # fmt: skip
    """The words of each channel, in 4 rows of 8."""
    head = np.array([0, 0, (~channels & 15) << 12 | control << 18, 0, 0, 0, 0, 0], np.uint32)
    places = struct.pack("<2I4f2I", 0x7FC00000, 0x7FC00000, u, v, *step, 0x7FC00000, 0xFFFFFFFF)  # what it has no use for
    count = bin(channels).count("1")
    found = texture.send(name, head, np.frombuffer(places, np.uint8), answer=2 * count, simd_mode=3, header_present=1)
    assert texture.compiled == 1, "compiled code gave the same words"
    return found.view(np.uint16).reshape(count, 4, 8)


def places(u: float, v: float, step: tuple[float, float]) -> list[Array]:
    column, row = np.arange(32) % 8, np.arange(32) // 8
    return [(u + step[0] * column).astype(np.float32), (v + step[1] * row).astype(np.float32)]


@pytest.mark.parametrize("gen", [8, 9, 11])
@pytest.mark.parametrize("name", ["sample_unorm", "sample_unorm_media"])
@pytest.mark.parametrize("filter", ["nearest", "linear"])
def test_a_block_is_what_the_sampler_makes_of_its_places(gen: float, name: str, filter: str) -> None:
    """From the left of the picture to its middle, and down beyond its end."""
    texture = Texture(gen=gen, format="R8G8B8A8_UNORM", shape=(13, 7), sampler=modes("clamp") | filters(filter))
    where = -0.21, 0.37, (0.083, 0.29)
    found, wanted = blocks(texture, *where, channels=RED | BLUE | ALPHA, name=name), texture.expected(places(*where)) * 0xFF00
    for number, channel in enumerate((0, 2, 3)):
        assert np.abs(found[number].ravel() - wanted[:, channel]).max() <= 1


def test_bytes_stay_as_they_are_after_drivers_have_rounded_them() -> None:
    """At the middles of texels; kernels add 0x80 and take the upper byte."""
    texture = Texture(format="R8_UNORM", shape=(8, 4), sampler=modes("clamp") | filters("linear"))
    texture.data.array[: 4 * texture.pitch].reshape(4, -1)[:, :8] = np.arange(32).reshape(4, 8) * 8 + 7
    found = blocks(texture, 0.5 / 8, 0.5 / 4, (1 / 8, 1 / 4))[0].astype(int)
    assert np.array_equal(np.minimum(found + 0x80, 0xFFFF) >> 8, np.arange(32).reshape(4, 8) * 8 + 7)


def test_others_are_refused_by_name() -> None:
    texture = Texture(format="R8_UNORM")
    with pytest.raises(Unsupported, match="sample_unorm_media with 8 bits: not yet simulated"):
        blocks(texture, 0, 0, (0, 0), control=2)
    with pytest.raises(Unsupported, match="sample_unorm_media of a surface with integers"):
        blocks(Texture(format="R8_UINT"), 0, 0, (0, 0))
    with pytest.raises(Unsupported, match="sample_unorm_media with a rotated surface"):
        blocks(Texture(format="R8_UNORM", surface={"render_target_and_sample_unorm_rotation": 2}), 0, 0, (0, 0))
