"""Filters of integers: the state may name any, and texels are as they are."""

from __future__ import annotations

import numpy as np
import pytest

from tests.shared_functions.levels import LINEAR, NEAREST, limits, sample_l, surface
from tests.shared_functions.mipmaps import Twin
from tests.shared_functions.test_sampler import modes


@pytest.mark.parametrize("ways", [(0, 1), (1, 0), (1, 1), (0, 0)])
@pytest.mark.parametrize("mip", [NEAREST, LINEAR])
@pytest.mark.parametrize(("gen", "format"), [(9, "R8G8B8A8_UINT"), (8, "R16G16_SINT"), (4.5, "R8G8B8A8_SINT"), (11, "R32_UINT")])
def test_integers_are_not_filtered(gen: float, format: str, mip: int, ways: tuple[int, int]) -> None:
    """Neither when magnified nor when minified, and no two levels are mixed: the nearest texel of the nearer level (KBL 22336-22340)."""
    sampler = modes("wrap") | limits(mip, mag_mode_filter=ways[0], min_mode_filter=ways[1])
    mipmap, random = surface(gen, format=format, sampler=sampler), np.random.default_rng(6)
    places = [random.uniform(-1, 2, 16).astype(np.float32) for _ in range(2)]
    lods = np.array([-2, -1, 0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2, 2.25, 2.5, 3, 4, 9], np.float32)
    found = sample_l(mipmap, places, lods)
    twin = Twin(mipmap)
    for lane in range(16):
        _, levels = twin.levels(float(lods[lane]))
        wanted = twin.filtered([place[lane] for place in places], 0, levels[0][0], False)
        assert found[lane].view(np.int32).tolist() == wanted.astype(np.int64).astype(np.int32).tolist(), lane
    assert mipmap.compiled == 1
