"""Reductions in place of filters, a lowest level of detail in messages, and sRGB texels as they are stored."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from tests.shared_functions.levels import LINEAR, limits, send, surface, values
from tests.shared_functions.mipmaps import Mipmap, Twin
from tests.shared_functions.test_sampler import coordinates, filters, floats, modes
from tests.shared_functions.test_sampler_cube import SIZE, cube, direction, texel
from tests.shared_functions.texture import Model, Texture

STD_FILTER, COMPARISON, MINIMUM, MAXIMUM = range(4)
OF = {MINIMUM: np.minimum.reduce, MAXIMUM: np.maximum.reduce}


def reduced(kind: int) -> dict[str, int]:
    return {"reduction_type_enable": 1, "reduction_type": kind}


def expected(texture: Texture, places: list[Any], kind: int) -> Any:
    """Of the texels that weigh something, the least or greatest."""
    model, found = Model(texture), []
    for taps in product(*(model.along(axis, places[axis]) for axis in range(2))):
        (x, _, a), (y, _, b) = taps
        found.append(np.where((a * b > 0)[:, None], texture.texels[0, y, x], -OF[kind]([-np.inf, np.inf])))
    return OF[kind](found)


@pytest.mark.behaviour("KBL-SAMP-22", shows="action")
@pytest.mark.parametrize("format", ["R32G32B32A32_FLOAT", "R8G8B8A8_UNORM", "R16_SNORM"])
@pytest.mark.parametrize("kind", [MINIMUM, MAXIMUM])
@pytest.mark.parametrize("gen", [9, 11])
def test_the_least_or_greatest_texel_of_a_footprint(gen: float, kind: int, format: str) -> None:
    texture = Texture(gen=gen, format=format, sampler=modes("clamp") | filters("linear") | reduced(kind))
    places = coordinates(texture)
    places[0][:4] = np.float32(2.5 / 13)  # on a texel: its neighbours weigh nothing
    assert np.allclose(floats(texture.ask("sample_lz", *places)), expected(texture, places, kind), atol=1e-6) and texture.compiled == 1


@pytest.mark.parametrize("kind", [MINIMUM, MAXIMUM])
def test_levels_and_samples_along_a_gradient_are_reduced_too(kind: int) -> None:
    """Every texel that weighs something in one of the levels; an anisotropic footprint has at least the range of its middle."""
    mipmap = surface(9, sampler=modes("clamp") | filters("linear") | limits(LINEAR) | reduced(kind))
    at, twin = [np.full(16, 0.4, np.float32)] * 2, Twin(mipmap)
    found = values(send(mipmap, "sample_l", np.full(16, 1.5, np.float32), *at))[0]
    texels = [mipmap.texel(x, y, 0, level) for level in (1, 2) for x, _ in twin.taps(0, np.float32(0.4), level, True, 0)
              for y, _ in twin.taps(1, np.float32(0.4), level, True, 0)]  # fmt: skip
    assert found.tolist() == pytest.approx(OF[kind](texels).tolist(), abs=1e-6)
    wide = surface(9, sampler=modes("clamp") | {"mag_mode_filter": 2, "min_mode_filter": 2, "maximum_anisotropy": 7} | reduced(kind))
    steep = [np.resize(np.array([0.2, 0.7, 0.2, 0.7], np.float32), 16), np.resize(np.array([0.4, 0.4, 0.41, 0.41], np.float32), 16)]
    spread, middle = values(send(wide, "sample", *steep))[0], values(send(wide, "sample_l", np.zeros(16, np.float32), *steep))[0]
    assert (OF[kind]([spread, middle]) == spread).all() and (spread != middle).any()


@pytest.mark.parametrize("kind", [MINIMUM, MAXIMUM])
def test_cube_maps_are_reduced_across_their_edges(kind: int) -> None:
    """Just inside an edge of +X: two texels of that face and two of its neighbour."""
    mipmap = Mipmap(gen=9, kind="cube", shape=(8, 8, 1), levels=1,
                 sampler=modes("clamp") | filters("linear") | {"cube_surface_control_mode": 1} | reduced(kind))  # fmt: skip
    plain = Mipmap(gen=9, kind="cube", shape=(8, 8, 1), levels=1,
                   sampler=modes("clamp") | filters("nearest") | {"cube_surface_control_mode": 1})  # fmt: skip

    def look(at: Mipmap, z: float, y: float) -> Any:
        return values(send(at, "sample_l", np.zeros(16, np.float32), *(np.full(16, axis, np.float32) for axis in (1.0, y, z))))[0]

    texels = [look(plain, z, y * max(-z, 1)) for z in (-0.9, -1.2) for y in (0.125, 0.375)]
    found = look(mipmap, -0.97, 0.19)
    assert found.tolist() == pytest.approx(OF[kind](texels).tolist(), abs=1e-6)


@pytest.mark.parametrize("kind", [MINIMUM, MAXIMUM])
@pytest.mark.parametrize("face", range(6))
def test_texels_of_a_cube_map_that_weigh_nothing_do_not_count(kind: int, face: int) -> None:
    """On a texel: that one; between two: both; between four: all; at a corner: the three that there are."""
    mipmap = cube(9, **filters("linear"), **reduced(kind))
    places = {(0.125, 0.125): [(4, 4)], (0.125, 0.25): [(4, 4), (4, 5)], (0.25, 0.125): [(4, 4), (5, 4)],
              (0.25, 0.25): [(4, 4), (4, 5), (5, 4), (5, 5)], (-0.125, -0.875): [(3, 0)],
              (0.999, 0.999): [(7, 7), (8, 7), (7, 8)], (-0.999, 0.999): [(0, 7), (-1, 7), (0, 8)]}  # fmt: skip
    where = np.zeros((16, 3), np.float32)
    where[:] = [direction(face, 0, 0)] * 16
    where[: len(places)] = [direction(face, *place) for place in places]
    found = values(send(mipmap, "sample_l", np.zeros(16, np.float32), *where.T))
    for lane, texels in enumerate(places.values()):
        wanted = OF[kind]([texel(mipmap, face, *at, SIZE, 0) for at in texels])
        assert found[lane].tolist() == pytest.approx(wanted.tolist(), abs=1e-6), texels
    assert mipmap.compiled == 1


@pytest.mark.behaviour("KBL-SAMP-22", shows="action")
def test_the_state_decides_whether_texels_are_compared() -> None:
    """With COMPARISON every message compares, those without a reference with 0; with the others none does (KBL 22560-22570)."""
    common = modes("clamp") | filters("nearest") | {"shadow_function": 5}  # greater: 0 where the texel is greater
    at = coordinates(Texture())
    compared = Texture(gen=9, format="R32_FLOAT", sampler=common | reduced(COMPARISON))
    texels = floats(Texture(gen=9, format="R32_FLOAT", sampler=common).ask("sample_lz", *at))[:, 0]
    assert floats(compared.ask("sample_lz", *at))[:, 0].tolist() == np.where(texels > 0, 0.0, 1.0).tolist()
    for kind in (STD_FILTER, MINIMUM):
        texture = Texture(gen=9, format="R32_FLOAT", sampler=common | reduced(kind))
        assert floats(texture.ask("sample_c_lz", np.full(16, 0.5, np.float32), *at))[:, 0].tolist() == texels.tolist()


@pytest.mark.covering(1)
@pytest.mark.parametrize("gen", [9, 11])
@pytest.mark.parametrize("name", ["sample", "sample_b", "sample_c", "sample_d"])
def test_a_message_may_have_a_lowest_level_of_detail(name: str, gen: float) -> None:
    """After the coordinates; it holds back the level that the coordinates would have."""
    mipmap = surface(gen, sampler=modes("clamp") | filters("nearest") | limits(LINEAR, shadow_function=1))
    lanes, zero = 8, np.zeros(8, np.float32)
    at = [np.full(8, 0.4, np.float32), np.full(8, 0.3, np.float32)]  # no gradient: the first level
    first = {"sample": (), "sample_b": (zero,), "sample_c": (zero,), "sample_d": ()}[name]
    order = [at[0], zero, zero, at[1], *[zero] * 6] if name == "sample_d" else [*at, zero, zero]
    lowest = np.array([-1, 0, 0.5, 1, 1.25, 2, 2.5, 9], np.float32)
    found = values(send(mipmap, name, *first, *order, lowest, lanes=lanes))
    wanted = values(send(mipmap, "sample_l", lowest, *at, lanes=lanes))
    first_channel = 1 if name == "sample_c" else 0
    assert found[:, first_channel:].tolist() == wanted[:, first_channel:].tolist() and mipmap.compiled == 2
    assert len({tuple(row) for row in wanted.tolist()}) > 4, "levels must differ for this to show anything"


def test_srgb_texels_may_be_sampled_as_they_are_stored() -> None:
    raw = Texture(gen=11, format="R8G8B8A8_UNORM", sampler=modes("clamp") | filters("linear"))
    texture = Texture(gen=11, format="R8G8B8A8_UNORM_SRGB", sampler=modes("clamp") | filters("linear") | {"srgb_decode": 1})
    at = coordinates(texture)
    assert np.allclose(floats(texture.ask("sample_lz", *at)), floats(raw.ask("sample_lz", *at)), atol=1e-6) and texture.compiled == 1


@pytest.mark.parametrize("lanes", [8, 16])
def test_gen11_has_messages_with_parameters_of_16_bits(lanes: int) -> None:
    """A register for each parameter, words packed: half floats, or integers with a sign (public: Mesa brw_lower_logical_sends.cpp)."""
    texture = Texture(gen=11, shape=(16, 8), sampler=modes("clamp") | filters("linear"))
    random, mode = np.random.default_rng(4), {8: 5, 16: 6}[lanes]
    places = [random.uniform(-0.5, 1.5, lanes).astype(np.float16) for _ in range(2)]

    def registers(parts: list[Any]) -> list[Any]:
        return [np.resize(np.concatenate([part, np.zeros(16 - lanes, part.dtype)]), 16) for part in parts]

    plain = texture.ask("sample_lz", *(place.astype(np.float32) for place in places), lanes=lanes)
    found = texture.send("sample_lz", *registers(places), width=lanes, mask=(1 << lanes) - 1, answer=4 * lanes // 8, simd_mode=mode)
    assert found.view(np.uint32).reshape(-1, lanes).T.tolist() == plain.tolist() and texture.compiled == 2
    numbers = [np.arange(lanes, dtype=np.int16) - 2, np.full(lanes, 3, np.int16)]
    loaded = texture.send("ld_lz", *registers(numbers), width=lanes, mask=(1 << lanes) - 1, answer=4 * lanes // 8, simd_mode=mode)
    wide = texture.ask("ld_lz", *(part.astype(np.int32) for part in numbers), lanes=lanes)
    assert loaded.view(np.uint32).reshape(-1, lanes).T.tolist() == wide.tolist() and not wide[:2, 0].any() and wide[2:, 0].all()
