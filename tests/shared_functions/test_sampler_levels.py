"""Levels: surfaces with mip levels on every generation, level of detail from subspans, gradients and messages."""

from __future__ import annotations

import numpy as np
import pytest

from softgen.bits.generation import generation
from softgen.surface import tiling
from tests.shared_functions.levels import GENERATIONS, KINDS, LINEAR, NEAREST, limits, sample_l, send, slices, subspans, surface, values
from tests.shared_functions.mipmaps import PITCH, Mipmap, Twin
from tests.shared_functions.test_sampler import filters, modes

# -- explicit levels --------------------------------------------------------------------------------------------------------


@pytest.mark.covering(2)
@pytest.mark.parametrize("tiling", ["linear", "x_major", "y_major"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("gen", GENERATIONS)
def test_texels_of_every_level_are_loaded(gen: float, kind: str, tiling: str) -> None:
    """On both machines, at every place of every level: layouts of every generation (public: Mesa isl.c)."""
    if tiling != "linear" and kind.startswith("1d"):
        return
    mipmap = surface(gen, kind, tiling=tiling, levels=4)
    random = np.random.default_rng(7)
    compiled = 0
    for level in range(5):
        u, v = random.integers(0, (mipmap.shape[0] >> level) + 2, 16), random.integers(0, (mipmap.shape[1] >> level) + 1, 16)
        r, lod = slices(mipmap), np.full(16, level)
        names = {"u": u, "v": v, "r": r, "lod": lod} if mipmap.kind != "1d" else {"u": u, "v": r, "r": 0 * r, "lod": lod}
        order = {4.5: "u v r lod", 9: "u v lod r", 11: "u v lod r"}.get(gen, "u lod v r").split()
        found = values(send(mipmap, "ld", *(names[name] for name in order), dword=np.uint32))
        for lane in range(16):
            wanted = mipmap.texel(int(u[lane]), 0 if mipmap.kind == "1d" else int(v[lane]), int(r[lane]), level)
            assert found[lane].tolist() == pytest.approx(wanted, rel=1e-7), (level, lane)
        compiled += 1
    assert mipmap.compiled == compiled


@pytest.mark.behaviour("KBL-SAMP-16", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("mip", [NEAREST, LINEAR])
@pytest.mark.parametrize("filter", ["nearest", "linear"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("gen", GENERATIONS)
def test_explicit_levels_are_chosen_or_mixed(gen: float, kind: str, filter: str, mip: int) -> None:
    mipmap = surface(gen, kind, sampler=modes("wrap") | filters(filter) | limits(mip))
    twin, random = Twin(mipmap), np.random.default_rng(3)
    places = [random.uniform(-1, 2, 16).astype(np.float32) for _ in range(twin.axes)] + [slices(mipmap).astype(np.float32)] * mipmap.array
    lods = random.integers(-256, 5 * 256, 16).astype(np.float32) / 256
    found = values(sample_l(mipmap, places, lods))
    for lane in range(16):
        wanted = twin.sample([place[lane] for place in places], int(slices(mipmap)[lane]), float(lods[lane]))
        assert np.allclose(found[lane], wanted, atol=3e-6), lane
    assert mipmap.compiled == 1


@pytest.mark.behaviour("KBL-SAMP-04", shows="action")
@pytest.mark.parametrize("gen", [9, 11])
@pytest.mark.parametrize("mode", [1, 2])
def test_texels_of_a_mip_tail(gen: float, mode: int) -> None:
    """Level 0 has tiles of its own, the others share one; bits of addresses as tilings.toml has them."""
    resource = {"tile_mode": 3, "tiled_resource_mode": mode, "mip_tail_start_lod": 1}
    mipmap = Mipmap(gen=gen, shape=(30, 30, 1), levels=5, surface=resource)
    order, m = tiling.orders()[mipmap.image.tiling], np.random.default_rng(3)
    lod = m.integers(0, 5, 16)
    x, y = (m.integers(0, np.maximum(30 >> lod, 1)) for _ in range(2))
    order_of = {"u": x, "v": y, "r": np.zeros(16, int), "lod": lod}
    found = values(send(mipmap, "ld", *(order_of[name] for name in generation(gen).ld_parameters), dword=np.uint32))
    for lane in range(16):
        left, top, _, _ = mipmap.image.level_box(int(lod[lane]))
        at = tile_place(order, (left + int(x[lane])) * 4, top + int(y[lane]), PITCH)
        wanted = mipmap.data.array[at : at + 4] / 255
        assert found[lane].tolist() == pytest.approx(wanted.tolist()), (lane, lod[lane])


def tile_place(order: str, x: int, y: int, pitch: int, z: int = 0, rows: int = 0) -> int:
    """Where a byte is: its tile, then bit by bit from the lowest; `rows` of a slice are a row of tiles or more."""
    wide, high, deep = (order.count(letter) for letter in "XYZ")
    found = (((z >> deep) * (rows >> high) + (y >> high)) * (pitch >> wide) + (x >> wide)) << len(order)
    left = {"X": x, "Y": y, "Z": z}
    for place, letter in enumerate(reversed(order)):
        found, left[letter] = found | (left[letter] & 1) << place, left[letter] >> 1
    return found


@pytest.mark.behaviour("KBL-SAMP-04", shows="action")
@pytest.mark.parametrize("gen", [9, 11])
@pytest.mark.parametrize(("mode", "levels"), [(1, 3), (2, 1)])
def test_texels_of_3d_tiles(gen: float, mode: int, levels: int) -> None:
    """Levels have tiles of their own; a slice has 32 rows, as the surface state says."""
    resource = {"tile_mode": 3, "tiled_resource_mode": mode, "mip_tail_start_lod": 15, "surface_qpitch": 32 // 4}
    mipmap = Mipmap(gen=gen, kind="3d", shape=(20, 14, 9), levels=levels, surface=resource)
    order, m = tiling.orders()[mipmap.image.tiling], np.random.default_rng(3)
    lod = m.integers(0, levels, 16)
    x, y, z = (m.integers(0, np.maximum(side >> lod, 1)) for side in (20, 14, 9))
    order_of = {"u": x, "v": y, "r": z, "lod": lod}
    found = values(send(mipmap, "ld", *(order_of[name] for name in generation(gen).ld_parameters), dword=np.uint32))
    for lane in range(16):
        left, top, _, _ = mipmap.image.level_box(int(lod[lane]))
        at = tile_place(order, (left + int(x[lane])) * 4, top + int(y[lane]), PITCH, int(z[lane]), 32)
        wanted = mipmap.data.array[at : at + 4] / 255
        assert found[lane].tolist() == pytest.approx(wanted.tolist()), (lane, lod[lane])
    assert mipmap.compiled == 1


@pytest.mark.behaviour("KBL-SAMP-26", shows="action")
@pytest.mark.parametrize("gen", GENERATIONS)
def test_the_base_mip_level_decides_between_filters(gen: float) -> None:
    """Levels of detail up to it are magnified; it is in the sampler state until 8, in the surface state since 9 (KBL 19270-19282)."""
    state, where = {"mag_mode_filter": 0, "min_mode_filter": 1}, {"base_mip_level": 1.5}
    mipmap = surface(gen, levels=1, sampler=modes("clamp") | state | (where if gen <= 8 else {}), surface=where if gen > 8 else {})
    at = [np.full(16, 0.4, np.float32)] * 2
    found = values(sample_l(mipmap, at, np.resize(np.array([-1, 1.5, 1.75], np.float32), 16)))
    wanted = [Twin(mipmap).filtered([np.float32(0.4)] * 2, 0, 0, linear) for linear in (False, False, True)]
    assert np.allclose(found[:3], wanted, atol=3e-6) and mipmap.compiled == 1


@pytest.mark.behaviour("KBL-SAMP-07", shows="action")
@pytest.mark.parametrize("gen", GENERATIONS)
def test_an_image_may_begin_inside_a_tile(gen: float) -> None:
    """X offset in 4 texels, Y offset in 2 rows, or 4 since 8 (KBL 19670-19746)."""
    mipmap = surface(gen, levels=1, tiling="y_major", surface={"x_offset": 3, "y_offset": 2})
    whole = surface(gen, levels=1, tiling="y_major", surface={"width": 99, "height": 99})
    at = np.arange(16) % 12
    places = {4.5: [at, at, 0 * at, 0 * at], 9: [at, at, 0 * at], 11: [at, at, 0 * at]}.get(gen, [at, 0 * at, at])
    found = values(send(mipmap, "ld", *places, dword=np.uint32))
    rows = 4 if gen < 8 else 8
    assert found.tolist() == [pytest.approx(whole.texel(12 + c, rows + c, 0, 0)) for c in at.tolist()] and mipmap.compiled == 1


@pytest.mark.behaviour("KBL-SAMP-09", shows="action")
@pytest.mark.parametrize("gen", GENERATIONS)
def test_a_view_may_begin_at_a_level(gen: float) -> None:
    """Surface Min LOD: messages address it as level 0 (KBL 19862-19881)."""
    first = {"surface_min_lod": 2, "mip_count_lod": 1}
    mipmap = surface(gen, surface=first, sampler=modes("clamp") | filters("linear") | limits(LINEAR))
    twin, at = Twin(mipmap), [np.linspace(0, 1, 16, dtype=np.float32)] * 2
    found = values(sample_l(mipmap, at, np.full(16, 0.5, np.float32)))
    for lane in range(16):
        assert np.allclose(found[lane], twin.sample([at[0][lane]] * 2, 0, 0.5), atol=3e-6)
    sizes = send(mipmap, "resinfo", [0, 1, 2, 3] * 4, dword=np.uint32)[:3].tolist()
    assert sizes == [[4, 3, 0, 2], [2, 1, 0, 2], [0, 0, 0, 2]] and mipmap.compiled == 2


# -- implicit levels --------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("KBL-SAMP-17", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("lanes", [8, 16])
@pytest.mark.parametrize("gen", GENERATIONS)
def test_the_level_follows_from_the_four_lanes_of_a_subspan(gen: float, lanes: int) -> None:
    """d/dx is right less left, d/dy lower less upper, in texels of level 0; lanes that are off count too."""
    mipmap = surface(gen, levels=5, sampler=modes("wrap") | filters("linear") | limits(LINEAR))
    twin = Twin(mipmap)
    for seed, step in enumerate((0.02, 0.1, 0.3, 1.0)):
        u, v = subspans(lanes, step, seed)
        mask = 0b1001_0110_1111_0001 if seed % 2 else 0xFFFF
        parts = (u, v, np.zeros(8, np.float32)) if gen == 4.5 and lanes == 8 else (u, v)
        found = values(send(mipmap, "sample", *parts, lanes=lanes, mask=mask))
        for lane in range(lanes):
            if mask >> lane & 1:
                p = lane // 4 * 4
                gradients = [(float(c[p + 1] - c[p]), float(c[p + 2] - c[p])) for c in (u, v)]
                wanted = twin.sample([u[lane], v[lane]], 0, twin.detail(gradients))
                assert np.allclose(found[lane], wanted, atol=1.2 / 256), (seed, lane)
    assert mipmap.compiled == 4


def test_one_texel_for_a_pixel_is_level_0_and_magnified() -> None:
    """The level of detail of exact powers of two is exact, so that blits of equal size are not filtered as smaller images."""
    for scale, wanted in ((1, 0), (2, 1), (4, 2), (0.5, 0)):
        mipmap = surface(9, levels=4, sampler=modes("clamp") | limits(NEAREST) | {"mag_mode_filter": 0, "min_mode_filter": 1})
        x, y = np.array([0, 1, 0, 1] * 4), np.array([0, 0, 1, 1] * 4)
        u, v = ((c + 0.5) * scale / size for c, size in ((x, 16), (y, 12)))
        found = values(send(mipmap, "sample", u, v))
        twin = Twin(mipmap)
        assert np.allclose(found[0], twin.filtered([np.float32(u[0]), np.float32(v[0])], 0, wanted, wanted > 0), atol=3e-6), scale


@pytest.mark.behaviour("KBL-SAMP-17", shows="action")
@pytest.mark.parametrize("gen", GENERATIONS)
def test_bias_moves_levels_and_limits_hold(gen: float) -> None:
    """The sampler's bias and the message's are added before filters are chosen and levels clamped (KBL 22368-22423)."""
    state = limits(LINEAR, min_lod=0.5, max_lod=2.25, texture_lod_bias=-0.5)
    mipmap = surface(gen, levels=5, sampler=modes("wrap") | filters("linear") | state)
    twin = Twin(mipmap)
    u, v = subspans(16, 0.3, 9)
    bias = np.repeat(np.array([-1, 0, 0.75, 3], np.float32), 4)
    parts = (u, v, np.zeros(16), bias) if gen == 4.5 else (bias, u, v)
    found = values(send(mipmap, "sample_b", *parts))
    for lane in range(16):
        p = lane // 4 * 4
        gradients = [(float(c[p + 1] - c[p]), float(c[p + 2] - c[p])) for c in (u, v)]
        wanted = twin.sample([u[lane], v[lane]], 0, twin.detail(gradients) + float(bias[lane]))
        assert np.allclose(found[lane], wanted, atol=1.2 / 256), lane
    assert mipmap.compiled == 1


@pytest.mark.parametrize("gen", GENERATIONS)
def test_gradients_of_a_message(gen: float) -> None:
    """sample_d: each lane has gradients of its own."""
    mipmap = surface(gen, levels=5, sampler=modes("wrap") | filters("linear") | limits(LINEAR))
    twin, random = Twin(mipmap), np.random.default_rng(2)
    u, v = (random.uniform(0, 1, 8).astype(np.float32) for _ in range(2))
    dudx, dudy, dvdx, dvdy = (random.uniform(-0.4, 0.4, 8).astype(np.float32) for _ in range(4))
    parts = (u, v, dudx, dvdx, dudy, dvdy) if gen == 4.5 else (u, dudx, dudy, v, dvdx, dvdy)
    found = values(send(mipmap, "sample_d", *parts, lanes=8))
    for lane in range(8):
        lod = twin.detail([(float(dudx[lane]), float(dudy[lane])), (float(dvdx[lane]), float(dvdy[lane]))])
        assert np.allclose(found[lane], twin.sample([u[lane], v[lane]], 0, lod), atol=1.2 / 256), lane
    assert mipmap.compiled == 1


@pytest.mark.behaviour("KBL-SAMP-16", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("most", [0, 1, 7])
@pytest.mark.parametrize("gen", GENERATIONS)
def test_anisotropic_samples_lie_along_the_longer_gradient(gen: float, most: int) -> None:
    """As many as it is longer, rounded up, at most 2 to 16; their level is that of its share (KBL 22579-22601)."""
    state = {"mag_mode_filter": 2, "min_mode_filter": 2, "maximum_anisotropy": most} | limits(LINEAR)
    rounding = {key: 1 for key in filters("linear") if "round" in key}
    mipmap = Mipmap(gen=gen, shape=(64, 64, 1), levels=7, sampler=modes("wrap") | rounding | state)
    twin = Twin(mipmap)
    steps = ((0.3, 0.02), (0.01, 0.05)), ((0.004, 0), (0, 0.2)), ((0.1, 0.1), (0.1, -0.09)), ((0, 0), (0, 0))
    for seed, (right, down) in enumerate(steps):
        u, v = (np.resize([c, c + right[axis], c + down[axis], c + right[axis] + down[axis]], 16) for axis, c in ((0, 0.2), (1, 0.7)))
        found = values(send(mipmap, "sample", u, v))[0]
        gradients = [(float(np.float32(c[1]) - np.float32(c[0])), float(np.float32(c[2]) - np.float32(c[0]))) for c in (u, v)]
        lengths = [np.hypot(*(pair[side] * 64 for pair in gradients)) for side in (0, 1)]
        side, ratio = int(lengths[1] > lengths[0]), max(lengths) / min(lengths) if min(lengths) else 1.0
        count = max(int(np.ceil(min(ratio, 2 * most + 2))), 1)
        lod = round((np.log2(max(lengths)) - np.log2(count)) * 256) / 256 if max(lengths) else -99.0
        places = [[c[0] + pair[side] * ((k + 0.5) / count - 0.5) for c, pair in zip((u, v), gradients, strict=True)] for k in range(count)]
        wanted = sum(twin.sample(place, 0, lod) for place in places) / count
        assert np.allclose(found, wanted, atol=3 / 256), (seed, count)
    assert mipmap.compiled == 4


def test_an_explicit_level_is_not_anisotropic() -> None:
    """KBL 22340-22341."""
    ways = [surface(9, sampler=modes("wrap") | limits(LINEAR) | {"mag_mode_filter": way, "min_mode_filter": way}) for way in (1, 2)]
    at = subspans(16, 0.4, 1)
    assert (sample_l(ways[0], at, np.full(16, 0.7)) == sample_l(ways[1], at, np.full(16, 0.7))).all()


def test_coordinates_in_texels_have_level_0() -> None:
    plain = {"non_normalized_coordinate_enable": 1, "mag_mode_filter": 0, "min_mode_filter": 1}
    mipmap = Mipmap(gen=9, levels=1, sampler=modes("clamp") | plain)
    found = values(send(mipmap, "sample", np.arange(16), np.arange(16) % 12))
    assert all(found[lane].tolist() == pytest.approx(mipmap.texel(lane, lane % 12, 0, 0)) for lane in range(16))
