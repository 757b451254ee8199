"""Filters: integers are as they are, whatever the state says; sums of normalised texels are exact, and rounded once."""

from __future__ import annotations

import numpy as np
import pytest

from softgen.errors import GpuFault
from softgen.lanes.numpy.machine import NumpyMachine
from softgen.lanes.types import f32, i32
from softgen.shared_functions.sampler.address import FAR, MODES, brings_near, scaled, texel
from tests.shared_functions.levels import LINEAR, NEAREST, limits, sample_l, send, surface, values
from tests.shared_functions.mipmaps import Mipmap, Twin
from tests.shared_functions.sending import DATA, PAGE
from tests.shared_functions.test_sampler import coordinates, filters, modes
from tests.shared_functions.texture import Texture


@pytest.mark.covering(2)
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


# The levels of detail of an even and an odd lane, by what lanes may need: the page that holds level 0, or the one of level 1.
@pytest.mark.parametrize(("there", "ways", "mip", "lods"), [
    (0, (1, 1), LINEAR, (0, 0.5)), (1, (1, 1), LINEAR, (1, 0.5)), (0, (0, 1), LINEAR, (-1, 1)), (1, (0, 1), NEAREST, (1, -1)),
    (1, (1, 0), NEAREST, (1, 0)),
])  # fmt: skip
def test_a_level_that_no_lane_needs_is_not_read(there: int, ways: tuple[int, int], mip: int, lods: tuple[float, float]) -> None:
    """Neither the next one nor that of the other filter: its memory need not be there. Lanes that are off need nothing."""
    sampler = modes("clamp") | limits(mip, mag_mode_filter=ways[0], min_mode_filter=ways[1])
    mipmap = Mipmap(shape=(16, 8, 1), levels=2, sampler=sampler)  # eight rows are a page
    mipmap.space.unmap(DATA + (1 - there) * PAGE, PAGE)
    u, lod = np.linspace(0.1, 0.9, 16, dtype=np.float32), np.array(lods * 8)
    found, twin = values(send(mipmap, "sample_l", lod, u, u[::-1], mask=0x5555)), Twin(mipmap)
    for lane in range(0, 16, 2):
        assert np.allclose(found[lane], twin.sample([u[lane], u[15 - lane]], 0, lods[0]), atol=3e-6), lane
    assert mipmap.compiled == 1
    with pytest.raises(GpuFault):
        send(mipmap, "sample_l", lod, u, u[::-1])


@pytest.mark.parametrize("mode", ["wrap", "mirror", "clamp", "mirror_once"])
@pytest.mark.parametrize("format", ["R8G8B8A8_UNORM", "R8G8_SNORM", "B5G6R5_UNORM"])
def test_texels_are_added_as_steps_and_divided_once(format: str, mode: str) -> None:
    """Four texels of 8 bits with weights of 16: the sum has 24 bits, as many as a float."""
    texture = Texture(format=format, sampler=modes(mode) | filters("linear"))
    for seed in range(3):
        places = coordinates(texture, seed=seed)
        assert texture.ask("sample_lz", *places).view(np.float32).tolist() == texture.expected(places).astype(np.float32).tolist()
    assert texture.compiled == 3


# The texels that texel numbers mean from 0 on, over and over, in both directions.
PATTERNS = {("wrap", 1): "a", ("wrap", 2): "ab", ("wrap", 5): "abcde", ("mirror", 1): "a", ("mirror", 2): "abba",
            ("mirror", 5): "abcdeedcba", ("mirror_101", 1): "a", ("mirror_101", 2): "ab", ("mirror_101", 3): "abcb",
            ("mirror_101", 5): "abcdedcb"}  # fmt: skip
# Texel numbers from -4 on, and where the border may be instead.
ENDS = {("clamp", 3): "aaaaabcccc", ("mirror_once", 3): "ccbaabcccc", ("clamp", 1): "aaaaaaaaaa", ("mirror_once", 2): "bbbaabbbbb",
        ("clamp_border", 3): "aaaaabcccc", ("half_border", 3): "aaaaabcccc"}  # fmt: skip
EDGES = {"clamp_border": "1111000111", "half_border": "1111000111"}


@pytest.mark.parametrize(("mode", "size"), PATTERNS)
def test_texels_beyond_the_edges_repeat(mode: str, size: int) -> None:
    m, pattern, numbers = NumpyMachine(), PATTERNS[mode, size], range(-23, 24)
    for smooth in (False, True):
        at, border = texel(m, mode, m.constant(i32, list(numbers)), m.constant(i32, size, len(numbers)), smooth, False)
        assert "".join("abcde"[number] for number in at.payload) == "".join(pattern[number % len(pattern)] for number in numbers)
        assert border is None


@pytest.mark.parametrize(("mode", "size"), ENDS)
@pytest.mark.parametrize("smooth", [False, True])
def test_texels_beyond_the_edges_are_the_last_or_the_border(mode: str, size: int, smooth: bool) -> None:
    """Of half_border only where neighbours count, too."""
    m, letters, numbers = NumpyMachine(), ENDS[mode, size], list(range(-4, 6))
    at, border = texel(m, mode, m.constant(i32, numbers), m.constant(i32, size, len(numbers)), smooth, False)
    assert "".join("abc"[number] for number in at.payload) == letters
    found = None if border is None else "".join(str(int(on)) for on in border.payload)
    assert found == (EDGES.get(mode) if smooth or mode != "half_border" else None)


@pytest.mark.covering(2)
@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_coordinates_are_near_the_picture_where_the_address_mode_brings_them_there(mode: str, normalised: bool, offset: bool) -> None:
    """The others may be anywhere; what is no number is never far."""
    m, numbers = NumpyMachine(), [0.3, -0.7, 5.25, -3.0, 1e6, -1e6, 3e38, -3e38, np.inf, -np.inf, np.nan]
    with np.errstate(all="ignore"):
        u = m.value(f32, np.array(numbers, np.float32))
        found = scaled(m, mode, normalised, u, m.constant(i32, 1000, len(numbers)), offset).payload
    assert bool(((found >= -FAR) & (found <= 1000 + FAR)).all()) == brings_near(mode, normalised, offset)
    assert found[-1] == 0
