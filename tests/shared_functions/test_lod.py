"""Which level a lane samples: limits of the level of detail, and lanes that are magnified."""

from __future__ import annotations

import numpy as np
import pytest

from tests.shared_functions.levels import LINEAR, NEAREST, limits, sample_l, surface, values
from tests.shared_functions.mipmaps import Twin
from tests.shared_functions.test_sampler import filters, modes
from tests.surface.test_image import place

LODS = np.array([-2, -0.5, 0, 1 / 256, 0.5, 0.75, 1, 1.25, 1.49, 1.5, 1.75, 2, 2.25, 2.5, 3, 9], np.float32)


@pytest.mark.covering(2)
@pytest.mark.parametrize("low", [0.0, 1 / 256, 0.25, 1.0, 1.5, 2.75])
@pytest.mark.parametrize("mip", [NEAREST, LINEAR])
@pytest.mark.parametrize("filter", ["nearest", "linear"])
def test_magnified_lanes_have_the_lowest_level_without_a_mip_filter(low: float, mip: int, filter: str) -> None:
    """The whole level below the lowest level of detail; minified ones have what is between the limits (KBL 22259-22267, 22290)."""
    mipmap = surface(9, sampler=modes("wrap") | filters(filter) | limits(mip, min_lod=low))
    random, twin = np.random.default_rng(4), Twin(mipmap)
    places = [random.uniform(-1, 2, 16).astype(np.float32) for _ in range(2)]
    found = values(sample_l(mipmap, places, LODS))
    for lane in range(16):
        assert np.allclose(found[lane], twin.sample([place[lane] for place in places], 0, float(LODS[lane])), atol=3e-6), LODS[lane]
    assert mipmap.compiled == 1


def test_levels_of_lanes_by_hand() -> None:
    """Every level of one colour: the weights of levels can be seen."""
    mipmap = surface(9, format="R32_FLOAT", sampler=modes("wrap") | filters("nearest") | limits(LINEAR, min_lod=1.5, max_lod=2.5))
    held = mipmap.data.array.view(np.float32)
    for level in range(4):
        for y in range(max(12 >> level, 1)):
            for x in range(max(16 >> level, 1)):
                at = place(mipmap.image, x, y, 0, level)
                assert at is not None
                held[at // 4] = level
    lods = np.array([-1, 0, 1 / 256, 1, 1.5, 1.75, 2, 2.25, 2.5, 2.75, 3, 9, 0.5, 1.25, -9, 1.625], np.float32)
    found = values(sample_l(mipmap, [np.full(16, 0.4, np.float32)] * 2, lods))[:, 0]
    assert found.tolist() == [1, 1, 1.5, 1.5, 1.5, 1.75, 2, 2.25, 2.5, 2.5, 2.5, 2.5, 1.5, 1.5, 1, 1.625]
