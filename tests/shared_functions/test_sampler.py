"""The sampler: address modes, filters, formats, kinds of surfaces, and how messages ask and are answered."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from softgen.bits.catalogue import layout
from softgen.errors import DecodeError, GpuFault, Unsupported
from softgen.memory.store import MemfdBuffer
from tests.shared_functions.sending import BASE, DATA, header
from tests.shared_functions.texture import AXES, MODES, ROUNDING, STATES, Texture

Kind = tuple[str, bool]
SHAPES: dict[Kind, tuple[int, ...]] = {("1d", False): (13,), ("1d", True): (13, 4), ("2d", False): (13, 7), ("2d", True): (13, 7, 4),
                                       ("3d", False): (13, 7, 5)}  # fmt: skip
CHANNELS = ("R8", "R8G8", "R8G8B8A8", "R16", "R16G16", "R16G16B16A16")
FILTERED = [f"{channel}_{type}" for channel in CHANNELS for type in ("UNORM", "SNORM")]
FILTERED += ["R16_FLOAT", "R16G16_FLOAT", "R16G16B16A16_FLOAT", "R32_FLOAT", "R32G32_FLOAT", "R32G32B32A32_FLOAT", "B8G8R8A8_UNORM",
             "B8G8R8X8_UNORM", "A8_UNORM", "L8_UNORM", "I8_UNORM", "L16_UNORM", "R10G10B10A2_UNORM", "B5G6R5_UNORM"]  # fmt: skip
WHOLE = [f"{channel}_{type}" for channel in (*CHANNELS, "R32", "R32G32", "R32G32B32A32") for type in ("UINT", "SINT")]


def modes(name: str) -> dict[str, int]:
    return {f"tc{axis}_address_control_mode": MODES[name] for axis in "xyz"}


def filters(name: str) -> dict[str, int]:
    linear = int(name == "linear")
    return {"mag_mode_filter": linear, "min_mode_filter": linear} | (ROUNDING if linear else {})


def coordinates(texture: Texture, lanes: int = 16, seed: int = 2) -> list[Any]:
    """Some inside and many outside, slices too."""
    random, normal = np.random.default_rng(seed), not texture.sampler.get("non_normalized_coordinate_enable")
    found = [random.uniform(-2.5, 3.5, lanes) * (1 if normal else size) for size in texture.shape]
    if texture.array:
        found[-1] = random.uniform(-1, texture.shape[-1] + 1, lanes)
    return [place.astype(np.float32) for place in found]


def floats(bits: Any) -> Any:
    return np.ascontiguousarray(bits).view(np.float32).astype(np.float64)


def agrees(texture: Texture, lanes: int = 16, **more: Any) -> None:
    for seed in range(3):
        places = coordinates(texture, lanes, seed)
        got, wanted = floats(texture.ask("sample_lz", *places, lanes=lanes, **more)), texture.expected(places)
        assert np.allclose(got, wanted, rtol=1e-6, atol=2e-6), f"lane {np.argmax(np.abs(got - wanted).max(1))}"
    assert texture.compiled == 3, "compiled code was not asked"


# -- addresses and filters ------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("KBL-SAMP-02", shows="action")
@pytest.mark.behaviour("KBL-SAMP-19", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("filter", ["nearest", "linear"])
@pytest.mark.parametrize("mode", ["wrap", "mirror", "clamp", "clamp_border", "mirror_once", "half_border"])
@pytest.mark.parametrize("kind", SHAPES)
def test_every_kind_of_surface_in_every_mode(kind: Kind, mode: str, filter: str) -> None:
    agrees(Texture(kind=kind[0], array=kind[1], shape=SHAPES[kind], sampler=modes(mode) | filters(filter)))


@pytest.mark.parametrize("filter", ["nearest", "linear"])
@pytest.mark.parametrize("mode", ["wrap", "mirror", "clamp", "clamp_border", "mirror_once", "half_border"])
def test_coordinates_at_the_edges_in_every_mode(mode: str, filter: str) -> None:
    """Just below zero a wrapped coordinate is rounded to 1: the texel behind the last is the first."""
    texture = Texture(sampler=modes(mode) | filters(filter))
    edges = np.array([-1e-9, 1e-9, 0, 1, 1 - 2**-24, -(2**-24), 2, -1, 1 + 2**-23, 0.5, -2, 2 - 2**-23, -1e-30, 3, -1.5, 1.5], np.float32)
    places = [edges, np.roll(edges, 5)]
    assert np.allclose(floats(texture.ask("sample_lz", *places)), texture.expected(places), rtol=1e-6, atol=2e-6)
    assert texture.compiled == 1


@pytest.mark.parametrize("kind", [("2d", True), ("1d", True)])
@pytest.mark.parametrize("plain", [0, 1])
def test_a_slice_half_way_between_two_is_the_even_one(kind: Kind, plain: int) -> None:
    """The slice is rint(r): ties go to even (OpenCL 3.0, 8.3.1), and what is outside is the first or the last."""
    shape = (*SHAPES[kind][:-1], 7)
    sampler = modes("clamp") | filters("nearest") | {"non_normalized_coordinate_enable": plain}
    texture = Texture(kind=kind[0], array=True, shape=shape, sampler=sampler)
    slices = {-0.5: 0, 0.5: 0, 1.5: 2, 2.5: 2, 3.5: 4, 4.5: 4, 5.5: 6, 6.5: 6, 7.5: 6, 0.49: 0, 0.51: 1, 1.49: 1, 2.51: 3, 5.49: 5, 5.0: 5,
              -9.0: 0}  # fmt: skip
    places = [np.zeros(16, np.float32)] * (len(shape) - 1) + [np.array(list(slices), np.float32)]
    found = floats(texture.ask("sample_lz", *places))
    held = texture.texels if kind[0] != "1d" else texture.texels[:, :1]
    assert found.tolist() == [held[number, 0, 0].tolist() for number in slices.values()]


@pytest.mark.parametrize("filter", ["nearest", "linear"])
@pytest.mark.parametrize("mode", ["clamp", "clamp_border", "half_border"])
@pytest.mark.parametrize("kind", [("2d", False), ("2d", True), ("3d", False)])
def test_coordinates_may_count_texels(kind: Kind, mode: str, filter: str) -> None:
    plain = {"non_normalized_coordinate_enable": 1}
    agrees(Texture(kind=kind[0], array=kind[1], shape=SHAPES[kind], sampler=modes(mode) | filters(filter) | plain))


@pytest.mark.parametrize("filter", ["nearest", "linear"])
@pytest.mark.parametrize("width", [1, 13])
def test_gen_11_mirrors_without_the_edge_twice(width: int, filter: str) -> None:
    agrees(Texture(gen=11, shape=(width, 7), sampler=modes("mirror_101") | filters(filter)))


@pytest.mark.parametrize("gen", [8, 9, 11])
def test_axes_have_modes_of_their_own(gen: float) -> None:
    chosen = {"tcx_address_control_mode": MODES["wrap"], "tcy_address_control_mode": MODES["clamp_border"],
              "tcz_address_control_mode": MODES["mirror"]}  # fmt: skip
    texture = Texture(gen=gen, kind="3d", shape=(13, 7, 5), sampler=chosen | filters("linear"))
    places = coordinates(texture)
    assert np.allclose(floats(texture.ask("sample_l", np.zeros(16, np.float32), *places)), texture.expected(places), rtol=1e-6, atol=2e-6)


@pytest.mark.behaviour("KBL-SAMP-20", shows="action")
@pytest.mark.parametrize(("axis", "way"), [(axis, way) for axis in range(3) for way in ("mag", "min")])
def test_addresses_are_rounded_or_cut_to_a_256th_of_a_texel(axis: int, way: str) -> None:
    """Each coordinate by itself, for larger and for smaller pictures."""
    name = "uvr"[axis]
    at, ways = np.float32(0.5 + 3.0 / 512), {"mag_mode_filter": 1, "min_mode_filter": 1}  # one and a half 256ths behind a texel
    texture = Texture(
        kind="3d", shape=(4, 4, 4), format="R32_FLOAT", sampler=modes("clamp") | ways | {f"{name}_address_{way}_filter_rounding_enable": 1}
    )
    lods = np.array([0, 5] * 8, np.float32)  # magnified and not
    for along in range(3):
        places = [np.full(16, at if along == other else 0.5, np.float32) / np.float32(4) for other in range(3)]
        found = floats(texture.ask("sample_l", lods, *places))[:2, 0]
        first, second = texture.texels[0, 0, 0, 0], texture.texels[tuple(int(2 - along == place) for place in range(3))][0]
        for lane, now in enumerate(("mag", "min")):
            part = (2 if along == axis and now == way else 1) / 256
            assert found[lane] == pytest.approx(first * (1 - part) + second * part, rel=1e-6)


def test_nearest_and_linear_differ() -> None:
    places = [np.full(16, 0.1, np.float32), np.full(16, 0.3, np.float32)]
    found = {way: floats(Texture(sampler=modes("clamp") | filters(way)).ask("sample_lz", *places))[0] for way in ("nearest", "linear")}
    texels = Texture().texels[0]
    assert (found["nearest"] == texels[2, 1]).all()  # 0.1 * 13 = 1.3, 0.3 * 7 = 2.1
    x, y = round((1.3 - 0.5) * 256) / 256, round((2.1 - 0.5) * 256) / 256 - 1
    assert found["linear"] == pytest.approx(
        (texels[1, 0] * (1 - x) + texels[1, 1] * x) * (1 - y) + (texels[2, 0] * (1 - x) + texels[2, 1] * x) * y
    )


def test_what_weighs_nothing_does_not_count() -> None:
    texture = Texture(kind="1d", shape=(4,), format="R32_FLOAT", sampler=modes("clamp") | filters("linear"))
    texture.data.array[:16].view(np.float32)[:] = [1, np.nan, np.inf, 2]
    places = np.array([0.5, 3.5, 0.0, 9.0], np.float32) / 4
    assert floats(texture.ask("sample_lz", np.resize(places, 16)))[:4, 0].tolist() == [1, 2, 1, 2]


def test_coordinates_that_are_no_numbers_are_zero_and_large_ones_are_outside() -> None:
    odd = np.resize(np.array([np.nan, np.inf, -np.inf, 1e30, -1e30], np.float32), 16)
    for mode, wanted in (("clamp", [0, 12, 0, 12, 0]), ("wrap", [0, 0, 0, 0, 0])):
        texture = Texture(kind="1d", shape=(13,), format="R32_FLOAT", sampler=modes(mode))
        assert floats(texture.ask("sample_lz", odd))[:5, 0].tolist() == texture.texels[0, 0, wanted, 0].tolist()


# -- formats --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", FILTERED)
def test_formats_are_filtered(format: str) -> None:
    agrees(Texture(format=format, sampler=modes("clamp_border") | filters("linear")))


@pytest.mark.parametrize("format", WHOLE)
def test_integers_arrive_as_they_are(format: str) -> None:
    border = np.array([5, 6, 7, 8], np.int64)
    texture = Texture(format=format, sampler=modes("clamp_border"), border=border)
    places = coordinates(texture)
    got = texture.ask("sample_lz", *places)
    signed = format.endswith("SINT")
    assert (got.view(np.int32) if signed else got).astype(np.int64).tolist() == texture.expected(places).astype(np.int64).tolist()


def test_srgb_is_made_linear_and_alpha_is_not() -> None:
    texture = Texture(kind="1d", shape=(256,), format="R8G8B8A8_UNORM_SRGB", sampler=modes("clamp"))
    texture.data.array[:1024].reshape(256, 4)[:] = np.arange(256)[:, None]
    c = np.arange(256) / 255
    linear = np.where(c > 0.04045, ((c + 0.055) / 1.055) ** 2.4, c / 12.92)
    for first in range(0, 256, 16):
        found = floats(texture.ask("ld_lz", np.arange(first, first + 16)))
        assert found[:, :3] == pytest.approx(np.repeat(linear[first : first + 16, None], 3, 1), rel=2e-7, abs=1e-9)
        assert found[:, 3] == pytest.approx(c[first : first + 16], rel=1e-7)


@pytest.mark.behaviour("KBL-SAMP-24", shows="action")
def test_a_border_has_only_the_channels_of_its_format() -> None:
    outside = [np.full(16, -3, np.float32)] * 2
    wanted = {"R8_UNORM": [0.25, 0, 0, 1], "R8G8_UNORM": [0.25, 0.5, 0, 1], "B8G8R8A8_UNORM": [0.25, 0.5, 0.75, 2],
              "A8_UNORM": [0, 0, 0, 2], "L8_UNORM": [0.25, 0.25, 0.25, 1], "I8_UNORM": [0.25] * 4,
              "R9G9B9E5_SHAREDEXP": [0.25, 0.5, 0.75, 1]}  # fmt: skip
    for format, colour in wanted.items():
        found = floats(Texture(format=format, sampler=modes("clamp_border")).ask("sample_lz", *outside))
        assert found[0].tolist() == colour, format
    small = Texture(
        format="R8_UNORM", sampler=modes("clamp_border") | {"texture_border_color_mode": 1}, border=np.array([0x80FF3300, 0, 0, 0])
    )
    assert floats(small.ask("sample_lz", *outside))[0] == pytest.approx([0, 0x33 / 255, 1, 0x80 / 255])


@pytest.mark.behaviour("KBL-SAMP-10", shows="action")
def test_channel_selects_choose_but_not_for_resinfo() -> None:
    chosen = dict(zip((f"shader_channel_select_{name}" for name in ("red", "green", "blue", "alpha")), (6, 1, 0, 4), strict=True))
    texture, plain = Texture(surface=chosen), Texture()
    places = coordinates(texture)
    found, before = (floats(each.ask("sample_lz", *places)) for each in (texture, plain))
    assert (found[:, [0, 3]] == before[:, [2, 0]]).all() and (found[:, 1] == 1).all() and (found[:, 2] == 0).all()
    assert (texture.ask("resinfo", np.zeros(16, np.int64)) == plain.ask("resinfo", np.zeros(16, np.int64))).all()
    whole = Texture(format="R32_UINT", surface={"shader_channel_select_green": 1})
    assert (whole.ask("sample_lz", *places)[:, 1] == 1).all()


@pytest.mark.behaviour("KBL-SAMP-11", shows="action")
@pytest.mark.parametrize("mode", ["none", "ccs_d", "append", "hiz", "ccs_e"])
def test_auxiliary_surfaces_are_not_looked_at(mode: str) -> None:
    """Memory is always resolved: texels are what the surface itself has, even where its auxiliary surface is not mapped."""
    number = {"none": 0, "ccs_d": 1, "append": 2, "hiz": 3, "ccs_e": 5}[mode]
    aux = {"auxiliary_surface_mode": number, "auxiliary_surface_base_address": 0x7000_0000, "auxiliary_surface_pitch": 3}
    texture, plain = Texture(format="R32_FLOAT", surface=aux), Texture(format="R32_FLOAT")
    places = coordinates(texture)
    assert (texture.ask("sample_lz", *places) == plain.ask("sample_lz", *places)).all()


# -- messages -------------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("KBL-SAMP-01", shows="action")
@pytest.mark.parametrize("lanes", [8, 16])
def test_simd_modes_and_masked_lanes(lanes: int) -> None:
    texture = Texture()
    places, mask = coordinates(texture, lanes), 0b1010_0110
    found = texture.ask("sample_lz", *places, lanes=lanes, mask=mask)
    on = np.array([mask >> lane & 1 for lane in range(lanes)], bool)
    assert (floats(found)[on] == texture.expected(places)[on]).all() and (found[~on] == 0xEEEEEEEE).all()


@pytest.mark.parametrize("lanes", [8, 16])
def test_a_short_answer_has_the_first_channels(lanes: int) -> None:
    texture = Texture()
    places = coordinates(texture, lanes)
    whole = texture.ask("sample_lz", *places, lanes=lanes)
    assert (texture.ask("sample_lz", *places, lanes=lanes, answer=2 * lanes // 8) == whole[:, :2]).all()


@pytest.mark.parametrize("masked", range(16))
def test_masked_channels_are_left_out_in_compiled_code_too(masked: int) -> None:
    texture = Texture()
    places, whole = coordinates(texture), Texture().ask("sample_lz", *coordinates(texture))
    left = [channel for channel in range(4) if not masked >> channel & 1]
    found = texture.send("sample_lz", header(d2=masked << 12, d3=STATES), *places, answer=2 * len(left), simd_mode=2, header_present=1)
    assert (found.view(np.uint32).reshape(-1, 16).T == whole[:, left]).all() and texture.compiled == 1


def test_a_header_brings_offsets_and_a_table_of_samplers() -> None:
    first, other = Texture(kind="3d", shape=(13, 7, 5), sampler=modes("wrap")), STATES + 0x40
    first.put(first.state, other, layout("SAMPLER_STATE", 9).pack(**modes("clamp")))
    places = [np.full(16, 0.5, np.float32)] * 3
    for table, wanted in ((STATES, (0, 6, 2)), (other, (0, 6, 4))):
        top = header(d2=(2 << 8 | 0b1101 << 4 | 5), d3=table | 7)  # u + 2, v - 3, r + 5; the lowest bits are scratch space
        found = first.send("sample_lz", top, *places, answer=8, simd_mode=2, header_present=1, split=None).view(np.float32)
        z, y, x = (2 + 5) % 5 if table == STATES else 4, 3 - 3, 6 + 2
        assert found[0] == first.texels[z, y, x, 0], wanted
    assert first.compiled == 1, "compiled code leaves a table of its own to the interpreter"


@pytest.mark.behaviour("KBL-SAMP-28", shows="action")
@pytest.mark.parametrize(("gen", "order"), [(8, (0, 3, 1, 2)), (9, (0, 1, 3, 2)), (11, (0, 1, 3, 2))])
def test_ld_takes_texels_by_number(gen: float, order: tuple[int, ...]) -> None:
    texture = Texture(gen=gen, kind="2d", array=True, shape=(13, 7, 4))
    random = np.random.default_rng(4)
    places = [*(random.integers(0, size, 16) for size in texture.shape), np.zeros(16, np.int64)]
    places[0][1], places[1][2], places[2][3], places[3][4] = 13, 7, 4, 1
    found = floats(texture.ask("ld", *(places[place] for place in order)))
    for lane in range(16):
        x, y, z, _ = (int(place[lane]) for place in places)
        assert found[lane].tolist() == ([0] * 4 if 1 <= lane <= 4 else texture.texels[z, y, x].tolist())


def test_outside_channels_that_a_format_lacks_stay_what_they_are() -> None:
    texture = Texture(format="R8G8_UINT")
    assert texture.ask("ld_lz", np.full(16, 99), np.zeros(16, np.int64))[0].tolist() == [0, 0, 0, 1]


@pytest.mark.parametrize("gen", [8, 9])
def test_ld_of_a_buffer(gen: float) -> None:
    texture = Texture(
        gen=gen, kind="buffer", format="R32_UINT", shape=(100,), surface={"width": 99, "height": 0, "depth": 0, "surface_pitch": 3}
    )
    found = texture.ask("ld", np.array([0, 5, 99, 100, *range(12)]))
    held = texture.data.array.view(np.uint32)
    assert found[:4, 0].tolist() == [held[0], held[5], held[99], 0]


def test_channel_selects_hold_for_buffers_too() -> None:
    """Mesa has GL_ALPHA8 of buffer textures as red, selected into alpha."""
    chosen = dict(zip((f"shader_channel_select_{name}" for name in ("red", "green", "blue", "alpha")), (0, 0, 1, 4), strict=True))
    sizes = {"width": 99, "height": 0, "depth": 0, "surface_pitch": 3}
    texture = Texture(kind="buffer", format="R32_UINT", shape=(100,), surface=sizes | chosen)
    assert texture.ask("ld", np.arange(16))[3].tolist() == [0, 0, 1, texture.data.array.view(np.uint32)[3]] and texture.compiled == 1


@pytest.mark.behaviour("KBL-SAMP-08", shows="action")
@pytest.mark.parametrize("first", [0, 1])
def test_a_field_of_a_frame_is_a_surface_of_its_own(first: int) -> None:
    """Every other line from the first or second on; the height counts those of the field (KBL 19102-19120)."""
    field = {"vertical_line_stride": 1, "vertical_line_stride_offset": first, "height": 5}
    texture = Texture(shape=(13, 12), surface=field, sampler=modes("clamp") | filters("nearest"))
    rows = texture.texels[0, first::2]
    at = np.arange(16) % 6
    assert floats(texture.ask("ld_lz", np.full(16, 3), at)).tolist() == [rows[y, 3].tolist() for y in at]
    high = (at.astype(np.float32) + np.float32(0.5)) / np.float32(6)
    found = floats(texture.ask("sample_lz", np.full(16, 3.5 / 13, np.float32), high))
    assert found.tolist() == [rows[y, 3].tolist() for y in at] and texture.compiled == 2
    plain = Texture(shape=(13, 12), surface={"vertical_line_stride_offset": first}, sampler=modes("clamp") | filters("nearest"))
    assert floats(plain.ask("ld_lz", np.full(16, 3), at)).tolist() == [plain.texels[0, y, 3].tolist() for y in at]


@pytest.mark.behaviour("KBL-SAMP-03", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("gen", [8, 9, 11])
@pytest.mark.parametrize("entries", [100, 200, 0x300000])
def test_the_size_of_a_buffer_is_spread_over_three_fields(entries: int, gen: float) -> None:
    """Entries less one: 7 bits in the width, 14 in the height, the rest in the depth; beyond them texels are zero."""
    last = entries - 1
    sizes = {"width": last & 0x7F, "height": last >> 7 & 0x3FFF, "depth": last >> 21, "surface_pitch": 0}
    texture = Texture(gen=gen, kind="buffer", format="R8_UINT", shape=(64,), surface=sizes)
    texture.space.map(DATA + 0x100000, MemfdBuffer(0x300000, "more"))
    texture.space.write(DATA + 0x100000, b"\x07" * 0x300000)
    texture.data.array[:] = 7
    held = [0, 63] + ([0x100000, last] if entries > 0x100000 else [])
    lanes = np.resize(np.array([*held, entries, entries + 1]), 16)
    assert texture.ask("resinfo", np.zeros(16, np.int64))[0, 0] == entries
    assert texture.ask("ld", lanes)[: len(held) + 2, 0].tolist() == [7] * len(held) + [0, 0]


@pytest.mark.behaviour("KBL-SAMP-25", shows="action")
def test_a_disabled_sampler_and_a_null_surface_give_zeros() -> None:
    """Bits that say how finely the level of detail is computed change nothing: it is always computed finely (KBL 22271-22284, 22382)."""
    for item in (Texture(sampler={"sampler_disable": 1}), Texture(surface={"surface_type": 7})):
        assert (item.ask("sample_lz", *coordinates(item)) == 0).all()
    common = modes("wrap") | filters("linear")
    coarse = Texture(gen=9, sampler=common | {"lod_algorithm": 1, "coarse_lod_quality_mode": 31})
    places = coordinates(coarse)
    assert (coarse.ask("sample", *places) == Texture(gen=9, sampler=common).ask("sample", *places)).all()
    assert (Texture(surface={"surface_type": 7}).ask("ld_lz", np.zeros(16, np.int64)) == 0).all()


@pytest.mark.behaviour("KBL-SAMP-28", shows="action")
def test_resinfo_tells_sizes_of_levels() -> None:
    levels = np.resize([0, 1, 2, 3], 16)
    wanted = {("1d", True): [13, 4, 0], ("2d", False): [13, 7, 0], ("2d", True): [13, 7, 4], ("3d", False): [13, 7, 5]}
    for (kind, array), sizes in wanted.items():
        texture = Texture(kind=kind, array=array, shape=SHAPES[kind, array], surface={"mip_count_lod": 2})
        found = texture.ask("resinfo", levels)
        for lane in range(4):
            less = (
                [max(size >> lane, 1) if size and axis < AXES[kind] else size for axis, size in enumerate(sizes)] if lane < 3 else [0, 0, 0]
            )
            assert found[lane].tolist() == [*less, 3]


@pytest.mark.behaviour("KBL-SAMP-28", shows="action")
def test_sampleinfo_tells_of_one_sample() -> None:
    assert Texture(surface={"multisample_position_palette_index": 5}).ask("sampleinfo", np.zeros(16, np.int64))[0].tolist() == [1, 5, 0, 0]


@pytest.mark.behaviour("KBL-SAMP-01", shows="action")
@pytest.mark.parametrize("lanes", [8, 16])
def test_answers_of_16_bits_fill_a_register_for_a_channel(lanes: int) -> None:
    for format, kind in (("R8G8B8A8_UNORM", np.float16), ("R16G16B16A16_UINT", np.uint16)):
        texture = Texture(format=format)
        places = coordinates(texture, lanes)
        mode = {8: 1, 16: 2}[lanes]
        found = texture.send("sample_lz", *places, answer=4, width=lanes, simd_mode=mode, return_format=1).view(np.uint16).reshape(4, 16)
        assert (found[:, :lanes].T == texture.expected(places).astype(np.float32).astype(kind).view(np.uint16)).all()
        assert (found[:, lanes:] == 0xEEEE).all()


def test_two_slots_of_a_register() -> None:
    texture = Texture(gen=8, sampler=modes("wrap"))
    at = np.array([0.1, 0.2, 0, 0, 0.7, 0.9, 0, 0], np.float32)
    found = texture.send("sample_l", at, answer=1, width=8, simd_mode=0).view(np.float32).reshape(2, 4)
    assert (found == texture.expected([at[::4], at[1::4]])).all()
    nine = Texture(gen=9, sampler=modes("wrap"))
    top = header(d2=1 << 22, d3=STATES)
    assert (nine.send("sample_l", top, at, answer=1, width=8, simd_mode=0, header_present=1).view(np.float32).reshape(2, 4) == found).all()


# -- levels ---------------------------------------------------------------------------------------------------------------


def test_levels_are_clamped_and_chosen_or_mixed() -> None:
    shape = {"mip_count_lod": 2, "height": 7, "width": 7}
    limits = {"max_lod": 3.0}
    lods = np.resize(np.array([-1, 0, 0.25, 0.5, 1, 1.75, 2, 9], np.float32), 16)
    middle = [np.full(16, 0.99, np.float32)] * 2

    def picture(**state: float) -> Any:
        texture = Texture(shape=(8, 20), format="R32_FLOAT", surface=shape, sampler=modes("clamp") | limits | state)
        held = texture.data.array[: texture.pitch * 20].view(np.float32).reshape(20, -1)
        held[:8, :8], held[8:12, :4], held[8:10, 4:6] = 0, 1, 2  # levels 0 and 1 below each other, 2 beside
        return floats(texture.ask("sample_l", lods, *middle))[:8, 0].tolist()

    assert picture(mip_mode_filter=1) == [0, 0, 0, 1, 1, 2, 2, 2]
    assert picture(mip_mode_filter=3) == [0, 0, 0.25, 0.5, 1, 1.75, 2, 2]
    assert picture(mip_mode_filter=0, min_lod=1.0) == [1] * 8  # the level of the lowest (KBL 22290-22292)
    assert picture(mip_mode_filter=3, min_lod=1.5) == [1, 1, 1.5, 1.5, 1.5, 1.75, 2, 2]  # magnified: KBL 22527-22533
    assert picture(mip_mode_filter=3, min_lod=1.5, lod_clamp_magnification_mode=1) == [1.5, 1.5, 1.5, 1.5, 1.5, 1.75, 2, 2]
    assert picture(mip_mode_filter=3, min_lod=1.5, lod_preclamp_mode=2) == [1.5, 1.5, 1.5, 1.5, 1.5, 1.75, 2, 2]
    assert picture(mip_mode_filter=3, texture_lod_bias=0.5) == [0, 0.5, 0.75, 1, 1.5, 2, 2, 2]
    assert picture(mip_mode_filter=3, min_lod=2.0, max_lod=1.0) == [2] * 8
    assert picture(mip_mode_filter=3, max_lod=1.25) == [0, 0, 0.25, 0.5, 1, 1.25, 1.25, 1.25]


@pytest.mark.behaviour("KBL-SAMP-18", shows="action")
@pytest.mark.parametrize(("quality", "margin"), list(enumerate([0, 1 / 8, 1 / 4, 3 / 8])))
def test_trilinear_quality_leaves_out_levels_that_contribute_little(quality: int, margin: float) -> None:
    lods = np.arange(16, dtype=np.float32) / 16
    state = modes("clamp") | {"max_lod": 3.0, "mip_mode_filter": 3, "trilinear_filter_quality": quality}
    texture = Texture(shape=(8, 20), format="R32_FLOAT", surface={"mip_count_lod": 1, "height": 7, "width": 7}, sampler=state)
    held = texture.data.array[: texture.pitch * 20].view(np.float32).reshape(20, -1)
    held[:8, :8], held[8:12, :4] = 0, 1
    found = floats(texture.ask("sample_l", lods, *[np.full(16, 0.5, np.float32)] * 2))[:, 0]
    assert found.tolist() == [0 if part < margin else 1 if part > 1 - margin else part for part in lods.tolist()] and texture.compiled == 1


def test_larger_and_smaller_have_filters_of_their_own() -> None:
    texture = Texture(sampler=modes("clamp") | {"mag_mode_filter": 1, "min_mode_filter": 0})
    ways = {way: Texture(sampler=modes("clamp") | {"mag_mode_filter": way, "min_mode_filter": way}) for way in (0, 1)}
    places, lods = coordinates(texture), np.resize(np.array([-1, 0, 0.1, 3], np.float32), 16)
    found = texture.ask("sample_l", lods, *places)
    for lane in range(16):
        assert found[lane].tolist() == ways[int(lods[lane] <= 0)].ask("sample_lz", *places)[lane].tolist()


# -- what is refused ------------------------------------------------------------------------------------------------------


def test_what_is_not_simulated_is_named() -> None:
    at = [np.zeros(16, np.float32)] * 2
    for item, words in ((Texture(sampler={"mag_mode_filter": 6}), "mag_mode_filter mono"),
                       (Texture(surface={"quilt_width": 3}), "a quilted texture, 4 by 1 slices"),
                       (Texture(sampler=modes("cube")), "address mode cube")):  # fmt: skip
        with pytest.raises(Unsupported, match=words):
            item.ask("sample_lz", *at)
    with pytest.raises(Unsupported, match="simd8d"):
        Texture().send("sample_lz", *at, answer=4, simd_mode=0)


@pytest.mark.behaviour("ICL-TH-01", shows="action")
@pytest.mark.parametrize("gen", [9, 11])
def test_filters_that_mean_nothing_are_not_looked_at_where_nothing_is_filtered(gen: float) -> None:
    """By a sampler that is disabled, and of levels where there is one; gather4 takes the four texels as they are."""
    wrong, at = {"mag_mode_filter": 5, "min_mode_filter": 7}, [np.linspace(0.1, 0.9, 16, dtype=np.float32)] * 2
    assert not Texture(gen, sampler={**wrong, "sampler_disable": 1}).ask("sample_lz", *at).any()
    one_level = modes("clamp") | {"mip_mode_filter": 2}
    assert (Texture(gen, sampler=one_level).ask("sample_lz", *at) == Texture(gen, sampler=modes("clamp")).ask("sample_lz", *at)).all()
    found, plain = (Texture(gen, sampler=modes("clamp") | state).ask("gather4", *at) for state in (wrong, {}))
    assert (found == plain).all() and found.any()
    with pytest.raises(Unsupported, match="sampler 0: a sampler state with min_mode_filter value 7"):
        Texture(gen, sampler=modes("clamp") | {"min_mode_filter": 7}).ask("sample_lz", *at)


def test_states_that_are_not_there_are_faults() -> None:
    texture, top = Texture(), header(d3=0x100000)
    with pytest.raises(GpuFault, match="state of sampler 3 should be there") as caught:
        texture.send("sample_lz", top, np.zeros(32, np.float32), answer=8, simd_mode=2, header_present=1, sampler_index=3)
    assert caught.value.address == BASE + 0x100000 + 3 * 16


def test_a_texel_that_is_not_mapped_is_a_fault_of_its_lane() -> None:
    texture = Texture(format="R8_UNORM", shape=(16, 4), surface={"height": 4000})
    rows = np.zeros(16, np.float32)
    rows[5] = 0.9
    with pytest.raises(GpuFault, match="lane 5"):
        texture.ask("sample_lz", np.zeros(16, np.float32), rows)


def test_missing_parameters_are_zero_and_a_header_must_be_there() -> None:
    texture = Texture(sampler=modes("wrap"))
    u = coordinates(texture)[0]
    assert (texture.ask("sample_lz", u) == texture.ask("sample_lz", u, np.zeros(16, np.float32))).all()
    with pytest.raises(DecodeError, match="header"):
        texture.send("sample_lz", answer=8, simd_mode=2, header_present=1)
