"""Levels: surfaces with mip levels on every generation, level of detail from subspans, gradients and messages, and comparison."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from softgen.bits.catalogue import layout
from softgen.bits.generation import generation
from softgen.errors import GpuFault, Unsupported
from softgen.lanes.value import Value
from softgen.shared_functions.texture.operations import OPERATIONS
from softgen.surface import tiling
from tests.shared_functions.mipmaps import PITCH, Mipmap, Twin
from tests.shared_functions.sending import header
from tests.shared_functions.test_sampler import filters, modes
from tests.shared_functions.texture import STATES

GENERATIONS = (4.5, 7, 7.5, 8, 9, 11)
KINDS: dict[str, tuple[str, bool, tuple[int, int, int]]] = {
    "1d": ("1d", False, (29, 1, 1)), "1d array": ("1d", True, (29, 1, 3)), "2d": ("2d", False, (16, 12, 1)),
    "2d array": ("2d", True, (13, 9, 3)), "3d": ("3d", False, (14, 9, 6)),
}  # fmt: skip
NONE, NEAREST, LINEAR = 0, 1, 3  # mip filters


def surface(gen: float, kind: str = "2d", **more: Any) -> Mipmap:
    type, array, shape = KINDS[kind]
    return Mipmap(gen=gen, kind=type, array=array, shape=shape, **more)


def limits(mip: int, **more: float) -> dict[str, float]:
    return {"mip_mode_filter": mip, "max_lod": 13.0, **more}


def send(mipmap: Mipmap, name: str, *parts: Any, lanes: int = 16, mask: int = 0xFFFF, dword: Any = np.float32, **more: Any) -> Any:
    """The answer of a message with all its parameters in the order of Gen7 and later; lanes down, channels across."""
    registers = [np.broadcast_to(np.asarray(part, dword), lanes).copy() for part in parts]
    if mipmap.gen == 4.5:
        top = header(d3=STATES)
        return mipmap.send(name, top, *registers, mask=mask, width=lanes, answer=4 * lanes // 8).view(np.uint32).reshape(-1, lanes).T
    mode = {8: 1, 16: 2}[lanes]
    found = mipmap.send(name, *registers, mask=mask, width=lanes, answer=4 * lanes // 8, simd_mode=mode, **more)
    return found.view(np.uint32).reshape(-1, lanes).T


def values(bits: Any) -> Any:
    return np.ascontiguousarray(bits).view(np.float32).astype(np.float64)


def slices(mipmap: Mipmap, lanes: int = 16) -> Any:
    return np.arange(lanes) % (mipmap.shape[2] if mipmap.array or mipmap.kind == "3d" else 1)


def sample_l(mipmap: Mipmap, places: list[Any], lods: Any) -> Any:
    """With an explicit level, in the order of the generation."""
    if mipmap.gen == 4.5:
        filled = [*places, *[np.zeros(16, np.float32)] * 3][:3]
        return send(mipmap, "sample_l", *filled, lods)
    return send(mipmap, "sample_l", lods, *places)


# -- explicit levels --------------------------------------------------------------------------------------------------------


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


def subspans(lanes: int, step: float, seed: int) -> list[Any]:
    """Coordinates of 2x2 subspans whose neighbours are up to `step` apart."""
    random = np.random.default_rng(seed)
    found = []
    for _ in range(2):
        corner, right, down = (random.uniform(-scale, scale, lanes // 4) for scale in (1, step, step))
        found.append(np.stack([corner, corner + right, corner + down, corner + right + down], 1).reshape(-1).astype(np.float32))
    return found


@pytest.mark.behaviour("KBL-SAMP-17", shows="action")
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


# -- comparison -------------------------------------------------------------------------------------------------------------

SHADOW = {0: lambda t, r: True, 1: lambda t, r: False, 2: lambda t, r: t < r, 3: lambda t, r: t == r, 4: lambda t, r: t <= r,
          5: lambda t, r: t > r, 6: lambda t, r: t != r, 7: lambda t, r: t >= r}  # fmt: skip


@pytest.mark.behaviour("KBL-SAMP-21", shows="action")
@pytest.mark.parametrize("function", SHADOW)
@pytest.mark.parametrize("gen", GENERATIONS)
def test_texels_are_compared_before_they_are_filtered(gen: float, function: int) -> None:
    """Red is 0 where (texel, function, reference) holds, else 1 (public: Mesa iris_state.c; KBL 22478-22492)."""
    state = modes("clamp") | filters("linear") | {"shadow_function": function}
    mipmap = surface(gen, levels=1, format="R24_UNORM_X8_TYPELESS", sampler=state)
    twin, random = Twin(mipmap), np.random.default_rng(8)
    u, v, ref = (random.uniform(0, 1, 16).astype(np.float32) for _ in range(3))
    ref[3] = np.float32(mipmap.texel(5, 5, 0, 0)[0])
    u[3], v[3] = 5.5 / 16, 5.5 / 12
    parts = (u, v, np.zeros(16), ref) if gen == 4.5 else (ref, u, v)
    found = values(send(mipmap, "sample_c", *parts))
    for lane in range(16):
        step = np.float32(np.ceil(np.float64(ref[lane]) * 0xFFFFFF - 0.5) / 0xFFFFFF)
        compare = lambda texel, step=step: float(not SHADOW[function](texel, step))  # noqa: E731
        wanted = twin.filtered([u[lane], v[lane]], 0, 0, True, compare=compare)
        assert np.allclose(found[lane], [wanted[0], 0, 0, 1], atol=1e-6), lane
    assert mipmap.compiled == 1


@pytest.mark.parametrize(("format", "wanted"), [("R24_UNORM_X8_TYPELESS", [0, 0, 0, 0]), ("R32_FLOAT", [1, 1, 1, 1])])
def test_references_have_the_precision_of_normalised_texels(format: str, wanted: list[int]) -> None:
    """0.5 is the step below it, as drivers store it; what is above 1 or below 0 is as far as texels go. Floats are compared as they are."""
    texels = {"R24_UNORM_X8_TYPELESS": [0x7FFFFF, 0xFFFFFF, 0], "R32_FLOAT": [0x3EFFFFFF, 0x3F7FFFFF, 0x80000000]}[format]
    mipmap = surface(9, levels=1, format=format, sampler=modes("clamp") | filters("nearest") | {"shadow_function": 3})
    found = []
    for held, ref in zip([*texels, texels[1]], (0.5, 1.5, -3.0, 1.0), strict=True):
        mipmap.data.array[:] = np.full(len(mipmap.data.array) // 4, held, np.uint32).view(np.uint8)
        found.append(int(values(send(mipmap, "sample_c", np.full(16, ref), np.full(16, 0.5), np.full(16, 0.5)))[0, 0]))
    assert found == wanted


@pytest.mark.parametrize(("format", "clamped"), [("R16_UNORM", True), ("R32_FLOAT", False)])
def test_references_of_unorm_texels_are_clamped_to_their_range(format: str, clamped: bool) -> None:
    """A texel of 1 is not less than a reference of 2, but equal (3: EQUAL holds, red is 0)."""
    mipmap = surface(9, levels=1, format=format, sampler=modes("clamp") | {"shadow_function": 3})
    texel = np.array([1.0], np.float32) if format == "R32_FLOAT" else np.array([0xFFFF], np.uint16)
    mipmap.data.array[:] = np.resize(texel.view(np.uint8), len(mipmap.data.array))
    parts = np.full(16, 2.0, np.float32), *(np.full(16, 0.5, np.float32) for _ in range(2))
    assert (values(send(mipmap, "sample_c", *parts))[:, 0] == (0 if clamped else 1)).all()


@pytest.mark.parametrize(("format", "held", "wanted"), [
    ("R8G8B8A8_UINT", [0x04030201, 9, 9, 9], [1, 2, 3, 4]), ("R8G8_SINT", [0x04030280, 9, 9, 9], [-128, 2, 0, 1]),
    ("R16G16B16A16_UINT", [0x00020001, 9, 0x00040003, 9], [1, 2, 3, 4]), ("R32G32B32A32_UINT", [1, 2, 3, 4], [1, 2, 3, 4]),
    ("R32G32_UINT", [1, 2, 3, 4], [1, 3, 0, 1]), ("R32G32_SINT", [0xFFFF8000, 2, 0xFFFFFFFF, 4], [-0x8000, -1, 0, 1]),
    ("R32_SINT", [0x8000, 2, 3, 4], [0x8000, 0, 0, 1]), ("R8G8B8A8_UINT", [0x84838281, 9, 9, 9], [0x81, 0x82, 0x83, 0x84]),
    ("R8G8B8A8_SINT", [0x7F80FF01, 9, 9, 9], [1, -1, -128, 127]), ("R16G16_UINT", [0x80028001, 9, 9, 9], [0x8001, 0x8002, 0, 1]),
    ("R16G16B16A16_SINT", [0x7FFF8000, 9, 0x0080FFFF, 9], [-0x8000, 0x7FFF, -1, 0x80]),
])  # fmt: skip
def test_borders_of_integers_stand_apart_on_gen75(format: str, held: list[int], wanted: list[int]) -> None:
    """Dwords 16 to 19, in the width of the format; the green of two dwords is where blue would be (public: Mesa crocus_state.c)."""
    mipmap = surface(7.5, levels=1, format=format, sampler=modes("clamp_border"), border=np.array([7] * 16 + held, np.uint32))
    found = sample_l(mipmap, [np.full(16, -3, np.float32)] * 2, np.zeros(16, np.float32))
    assert found[0].view(np.int32).tolist() == wanted and mipmap.compiled == 1


# -- gather4 ----------------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("KBL-SAMP-28", shows="action")
@pytest.mark.parametrize("gen", [7, 8, 9, 11])
@pytest.mark.parametrize("channel", range(4))
def test_gather4_gives_a_channel_of_four_texels(gen: float, channel: int) -> None:
    """Lower left, lower right, upper right, upper left of the four (public: OpenGL textureGather); offsets come with the header."""
    mipmap = surface(gen, levels=1, sampler=modes("wrap") | filters("nearest"))
    random = np.random.default_rng(1)
    u, v = (random.uniform(0, 1, 16).astype(np.float32) for _ in range(2))
    top = header(d2=channel << 16 | 2 << 8 | 0xF << 4, d3=STATES)  # u + 2, v - 1
    found = values(mipmap.send("gather4", top, u, v, answer=8, simd_mode=2, header_present=1).view(np.uint32).reshape(-1, 16).T)
    for lane in range(16):
        i, j = (int(np.floor(np.floor(float(c[lane] * np.float32(n)) * 256) / 256 - 0.5)) + by for c, n, by in ((u, 16, 2), (v, 12, -1)))
        wanted = [mipmap.texel((i + x) % 16, (j + y) % 12, 0, 0)[channel] for x, y in ((0, 1), (1, 1), (1, 0), (0, 0))]
        assert found[lane].tolist() == pytest.approx(wanted), lane
    assert mipmap.compiled == 1


@pytest.mark.behaviour("KBL-SAMP-28", shows="action")
@pytest.mark.parametrize("function", [0, 1, 2, 3, 7])
@pytest.mark.parametrize("gen", [7, 9, 11])
def test_gather4_c_compares_each_of_four_texels(gen: float, function: int) -> None:
    """Of red, as sample_c does: 0 where it holds, else 1; none is weighed."""
    mipmap = surface(gen, levels=1, format="R32_FLOAT", sampler=modes("wrap") | filters("linear") | {"shadow_function": function})
    held = np.random.default_rng(2).integers(0, 5, len(mipmap.data.array) // 4).astype(np.float32)
    mipmap.data.array[:] = held.view(np.uint8)
    u, v = (np.random.default_rng(seed).uniform(0, 1, 16).astype(np.float32) for seed in (3, 4))
    reference = np.resize(np.arange(5, dtype=np.float32), 16)
    found = values(send(mipmap, "gather4_c", reference, u, v))
    for lane in range(16):
        i, j = (int(np.floor(np.floor(float(c[lane] * np.float32(n)) * 256 + 0.5) / 256 - 0.5)) for c, n in ((u, 16), (v, 12)))
        four = [mipmap.texel((i + x) % 16, (j + y) % 12, 0, 0)[0] for x, y in ((0, 1), (1, 1), (1, 0), (0, 0))]
        assert found[lane].tolist() == [float(not SHADOW[function](texel, reference[lane])) for texel in four], lane
    assert mipmap.compiled == 1


@pytest.mark.parametrize("mode", ["mirror", "mirror_once"])
@pytest.mark.parametrize("filter", ["nearest", "linear"])
def test_offsets_count_before_the_image_is_mirrored(mode: str, filter: str) -> None:
    """An offset moves away from a mirrored coordinate's place in the image to the other side (public: OpenGL, texel offsets)."""
    mipmap = Mipmap(gen=9, shape=(200, 150, 1), levels=1, sampler=modes(mode) | filters(filter))
    random = np.random.default_rng(1)
    u, v = (random.uniform(-1, 1, 16).astype(np.float32) for _ in range(2))
    top = header(d2=2 << 8 | 0xF << 4, d3=STATES)  # u + 2, v - 1
    found = values(mipmap.send("sample_lz", top, u, v, answer=8, simd_mode=2, header_present=1).view(np.uint32).reshape(-1, 16).T)
    wanted = [Twin(mipmap).filtered([u[lane], v[lane]], 0, 0, filter == "linear", (2, -1, 0)) for lane in range(16)]
    assert np.allclose(found, wanted, atol=3e-6) and mipmap.compiled == 1


def test_gather4_takes_its_channel_through_the_channel_select() -> None:
    """KBL 20110-20113: asked for red, it gives what red is selected from."""
    mipmap = surface(9, levels=1, sampler=modes("wrap"), surface={"shader_channel_select_red": 6, "shader_channel_select_green": 1})
    at = [np.full(16, c, np.float32) for c in (8.6 / 16, 6.6 / 12)]
    for channel, wanted in ((0, mipmap.texel(8, 6, 0, 0)[2]), (1, 1.0), (3, mipmap.texel(8, 6, 0, 0)[3])):
        top = header(d2=channel << 16, d3=STATES)
        found = values(mipmap.send("gather4", top, *at, answer=8, simd_mode=2, header_present=1).view(np.uint32).reshape(-1, 16).T)
        assert found[0, 3] == pytest.approx(wanted)


@pytest.mark.behaviour("KBL-SAMP-28", shows="action")
def test_gather4_po_has_offsets_for_each_lane() -> None:
    mipmap = surface(9, levels=1, sampler=modes("wrap"))
    at, by = np.full(8, 8.5 / 16, np.float32), np.arange(8) - 4
    v = np.full(8, 6.5 / 12, np.float32)
    parts = [at, v, by.astype(np.int32), (by * 2).astype(np.int32)]
    found = values(mipmap.send("gather4_po", header(d3=STATES), *parts, answer=4, width=8, simd_mode=1, header_present=1).view(np.uint32)
                   .reshape(-1, 8).T)  # fmt: skip
    assert found[:,
                 3].tolist() == pytest.approx([mipmap.texel((8 + lane - 4) % 16, (6 + 2 * (lane - 4)) % 12, 0, 0)[0] for lane in range(8)])
    assert mipmap.compiled == 1


def test_early_generations_compare_at_a_level_with_eight_lanes() -> None:
    """sample_l_c of six registers: header, coordinates, level, reference."""
    function = next(code for code, compare in SHADOW.items() if compare(0, 1) and not compare(1, 0))
    state = modes("clamp") | filters("nearest") | {"shadow_function": function}
    mipmap, at = surface(4.5, levels=1, format="R24_UNORM_X8_TYPELESS", sampler=state), np.full(8, 0.35, np.float32)
    for reference, wanted in ((0.0, 1.0), (1.0, 0.0)):  # of a texel between them
        found = values(send(mipmap, "sample_l_c", at, at, 0 * at, 0 * at, 0 * at + reference, lanes=8))
        assert found[:, 0].tolist() == [wanted] * 8


def test_the_level_of_detail_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clamped as a sample would, and as it is (public: OpenGL textureQueryLod); compiled messages have room for four results."""
    results, plain = list[int](), OPERATIONS["lod"]

    def counted(*operands: Any) -> list[Value]:
        found = plain(*operands)
        results.append(len(found))
        return found

    monkeypatch.setitem(OPERATIONS, "lod", counted)
    mipmap = surface(9, levels=3, sampler=modes("wrap") | filters("linear") | limits(LINEAR))
    u = np.array([0, 1, 0, 1] * 4) / np.repeat([16, 8, 2, 0.25], 4)
    found = values(send(mipmap, "lod", u, np.zeros(16)))
    assert found[::4].tolist() == [[0, 0, 0, 0], [1, 1, 0, 0], [2, 3, 0, 0], [2, 6, 0, 0]] and set(results) == {4}


@pytest.mark.parametrize(("mip", "levels"), [(NONE, [0, 0, 0, 0]), (NEAREST, [0, 1, 1, 2]), (LINEAR, [0, 0.75, 1.25, 2])])
def test_the_level_of_detail_is_that_of_levels_which_are_sampled(mip: int, levels: list[float]) -> None:
    """Whole levels where the nearest is sampled, the first where there is no other; before clamps it is the same for all."""
    mipmap = surface(9, levels=3, sampler=modes("wrap") | filters("linear") | limits(mip))
    before = np.array([-1, 0.75, 1.25, 4])
    u = np.array([0, 1, 0, 1] * 4) / np.repeat(16 / 2**before, 4)
    found = values(send(mipmap, "lod", u, np.zeros(16)))[::4]
    assert found[:, 0].tolist() == pytest.approx(levels, abs=1 / 128) and found[:, 1].tolist() == pytest.approx(before, abs=1 / 128)


# -- forms of messages ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gen", [4.5, 7, 7.5, 8])
def test_vertex_shaders_have_two_slots(gen: float) -> None:
    """SIMD4x2, in compiled code too: ld with its level last, sample_l with its level in the next register, or last on Gen4.5."""
    mipmap = surface(gen, sampler=modes("clamp") | filters("linear") | limits(LINEAR))
    top, mode = ([header(d3=STATES)], {}) if gen == 4.5 else ([], {"simd_mode": 0})
    at = np.array([3, 2, 0, 1, 1, 0, 0, 2], np.uint32)
    found = values(mipmap.send("ld", *top, at, width=8, mask=0xFF, answer=1, **mode)).reshape(2, 4)
    assert found.tolist() == [pytest.approx(mipmap.texel(3, 2, 0, 1)), pytest.approx(mipmap.texel(1, 0, 0, 2))]
    twin, places, lods = Twin(mipmap), np.array([[0.3, 0.7], [0.8, 0.1]], np.float32), (0.5, 1.25)
    first = np.zeros((2, 4), np.float32)
    first[:, :2] = places
    registers = [first.reshape(-1)]
    if gen == 4.5:
        first[:, 3] = lods
    else:
        registers.append(np.array([lods[0], 0, 0, 0, lods[1], 0, 0, 0], np.float32))
    found = values(mipmap.send("sample_l", *top, *registers, width=8, mask=0xFF, answer=1, **mode)).reshape(2, 4)
    for slot in range(2):
        assert np.allclose(found[slot], twin.sample(list(places[slot]), 0, lods[slot]), atol=3e-6)
    assert mipmap.compiled == 2


@pytest.mark.parametrize("gen", [7, 8, 9, 11])
@pytest.mark.parametrize("lanes", [8, 16])
def test_a_short_answer_of_sample(gen: float, lanes: int) -> None:
    """Three channels without a header, as Mesa asks for them (observed: glmark2 on kbl and icl)."""
    mipmap = surface(gen, sampler=modes("clamp") | filters("linear"))
    u, v = subspans(lanes, 0.1, 4)
    whole = send(mipmap, "sample", u, v, lanes=lanes)
    short = mipmap.send("sample", u, v, width=lanes, answer=3 * lanes // 8, simd_mode={8: 1, 16: 2}[lanes]).view(np.uint32).reshape(3,
                                                                                                                                    lanes).T
    assert (short == whole[:, :3]).all() and mipmap.compiled == 2


@pytest.mark.parametrize("offsets", [(3, 2, 0), (1, 1, 1), (0, 1, 0), (-2, 0, 0), (0, 0, 0)])
def test_gen45_leaves_offsets_to_the_interpreter(offsets: tuple[int, int, int]) -> None:
    """Headers without any are compiled."""
    mipmap, (x, y, z) = surface(4.5, levels=1, sampler=modes("wrap")), offsets
    u, v = (np.full(16, c, np.float32) for c in (4.5 / 16, 3.5 / 12))
    first = header(d2=(x & 0xF) << 8 | y << 4 | z, d3=STATES)
    found = values(mipmap.send("sample", first, u, v, answer=8).view(np.uint32).reshape(-1, 16).T)
    assert found[0].tolist() == pytest.approx(mipmap.texel(4 + x, 3 + y, 0, 0)) and mipmap.compiled == (not any(offsets))


# -- bad states -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function, touches", [(0, False), (1, False), (2, True)])
def test_texels_that_decide_nothing_are_not_touched(function: int, touches: bool) -> None:
    """By either machine: a comparison that always or never holds needs no memory."""
    mipmap = surface(9, levels=1, format="R32_FLOAT", sampler=modes("clamp") | {"shadow_function": function}, surface={"height": 16000})
    parts = (np.zeros(16), np.zeros(16), np.full(16, 0.9))
    if touches:
        with pytest.raises(GpuFault, match="lane 0"):
            send(mipmap, "sample_c", *parts)
    else:
        assert (values(send(mipmap, "sample_c", *parts))[:, 0] == function).all() and mipmap.compiled == 1


@pytest.mark.parametrize("seed", range(48))
def test_any_state_is_sampled_alike_or_refused(seed: int) -> None:
    """Fields of surface and sampler states at random: both machines give the same answer or fault, or the state is refused by name."""
    gen, random = GENERATIONS[seed % len(GENERATIONS)], np.random.default_rng(seed)
    mipmap = surface(gen, sampler=modes("wrap") | filters("linear") | limits(LINEAR))
    fixed = {"surface_base_address", "number_of_multisamples", "border_color_pointer"}
    for name, start, count in (("RENDER_SURFACE_STATE", 0, 3), ("SAMPLER_STATE", STATES, 4)):
        page = layout(name, gen)
        words = mipmap.state.array[start : start + 4 * page.dwords].view(np.uint32)
        fields = [field for field in page.fields if field.name not in fixed and not field.alternate]
        for number in random.choice(len(fields), count, replace=False):
            high, low = fields[number].pieces[0]
            mask, value = (1 << high - low + 1) - 1, int(random.integers(0, 1 << min(high - low + 1, 30)))
            words[low // 32] = int(words[low // 32]) & ~(mask << low % 32) & 0xFFFFFFFF | (value & mask) << low % 32 & 0xFFFFFFFF
    mipmap.port.surfaces.forget()
    places = list(random.uniform(-2, 2, (2, 16)).astype(np.float32))
    try:
        sample_l(mipmap, places, random.uniform(-1, 6, 16)) if seed % 2 else send(mipmap, "sample", *places)
    except (Unsupported, GpuFault):
        return
    assert mipmap.compiled == 1
