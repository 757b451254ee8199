"""Comparison, gather4, the forms of messages, and bad states, on every generation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from softgen.bits.catalogue import layout
from softgen.errors import GpuFault, Unsupported
from softgen.lanes.value import Value
from softgen.shared_functions.sampler import comparison
from softgen.shared_functions.texture.operations import OPERATIONS
from tests.conftest import every
from tests.shared_functions.levels import GENERATIONS, LINEAR, NEAREST, NONE, limits, sample_l, send, subspans, surface, values
from tests.shared_functions.mipmaps import PITCH, Mipmap, Twin
from tests.shared_functions.sending import header
from tests.shared_functions.test_sampler import filters, modes
from tests.shared_functions.texture import STATES, Texture

# -- comparison -------------------------------------------------------------------------------------------------------------

SHADOW = {0: lambda t, r: True, 1: lambda t, r: False, 2: lambda t, r: t < r, 3: lambda t, r: t == r, 4: lambda t, r: t <= r,
          5: lambda t, r: t > r, 6: lambda t, r: t != r, 7: lambda t, r: t >= r}  # fmt: skip


@pytest.mark.behaviour("KBL-SAMP-21", shows="action")
@pytest.mark.covering(1)
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


@pytest.mark.parametrize("bits", [8, 16, 24])
def test_quotients_are_in_the_order_of_steps(bits: int) -> None:
    """So steps are compared in place of them: of up to 24 bits, no two have the same quotient."""
    steps = np.arange(1 << bits, dtype=np.float32)
    assert (np.diff(steps / np.float32((1 << bits) - 1)) > 0).all() and (np.diff(steps) == 1).all()


@pytest.mark.parametrize("function", SHADOW)
@pytest.mark.parametrize("format", ["R24_UNORM_X8_TYPELESS", "R16_UNORM", "I24X8_UNORM", "R16_SNORM"])
def test_steps_are_compared_as_quotients_are(format: str, function: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers are the same where quotients are compared; formats whose other channels are texels too have these."""
    state, random = modes("clamp") | filters("linear") | {"shadow_function": function}, np.random.default_rng(function)
    u, v = (random.uniform(0, 1, 16).astype(np.float32) for _ in range(2))
    special = 0.5, 0.0, 1.0, -1.0, 2.0, np.nan, np.inf, 1 / 0xFFFF, 1.5 / 0xFFFF, 0xFFFFFE / 0xFFFFFF
    ref = np.array([*special, *random.uniform(0, 1, 6)], np.float32)

    def answers() -> Any:
        mipmap = surface(9, levels=1, format=format, sampler=state)
        for lane in range(10, 16):
            ref[lane] = mipmap.texel(lane, lane // 2, 0, 0)[0]
        return send(mipmap, "sample_c", ref, u, v)  # the interpreter and compiled code

    steps = answers()
    monkeypatch.setattr(comparison, "in_steps", lambda format, name: False)
    assert np.array_equal(steps, answers())


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
@pytest.mark.covering(1)
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


@pytest.mark.parametrize(("gen", "channel", "select"), [(7, 2, {}), (7.5, 1, {"shader_channel_select_green": 6})])
def test_gather4_has_green_of_two_dwords_in_the_place_of_blue(gen: float, channel: int, select: dict[str, int]) -> None:
    """Drivers ask for it there: kernels of Gen7 by blue's number, those of Gen7.5 through the channel select (public: Mesa)."""
    mipmap = surface(gen, levels=1, format="R32G32_FLOAT_LD", sampler=modes("wrap"), surface=select)
    texels = mipmap.data.array[: 12 * PITCH].view(np.uint32).reshape(12, -1, 2)
    top, (u, v) = header(d2=channel << 16, d3=STATES), (np.full(16, c, np.float32) for c in (8.6 / 16, 6.6 / 12))
    found = mipmap.send("gather4", top, u, v, answer=8, simd_mode=2, header_present=1).view(np.uint32).reshape(-1, 16).T
    assert found[0].tolist() == [texels[y, x, 1] for y, x in ((7, 8), (7, 9), (6, 9), (6, 8))] and texels[6, 8, 0] != texels[6, 8, 1]


@pytest.mark.behaviour("KBL-SAMP-28", shows="action")
@pytest.mark.covering(1)
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


@pytest.mark.parametrize(("masked", "wanted"), [(0, [2, 3, 0, 0]), (1, [3, 0, 0, 0]), (2, [2, 0, 0, 0]), (3, [0, 0, 0, 0])])
def test_a_header_masks_channels_of_the_level_of_detail(masked: int, wanted: list[float]) -> None:
    """Red is bit 12 of dword 2; what follows moves up."""
    mipmap = surface(9, levels=3, sampler=modes("wrap") | filters("linear") | limits(LINEAR))
    u, zero = (np.array([0, 1, 0, 1] * 4) / 2).astype(np.float32), np.zeros(16, np.float32)
    found = mipmap.send("lod", header(d2=masked << 12, d3=STATES), u, zero, answer=8, simd_mode=2, header_present=1)
    assert values(found.view(np.uint32).reshape(-1, 16).T).tolist() == [wanted] * 16


@pytest.mark.parametrize(("masked", "wanted"), [(0, [1, 5, 0, 0]), (1, [5, 0, 0, 0]), (2, [1, 0, 0, 0]), (12, [1, 5, 0, 0])])
def test_a_header_masks_channels_of_sampleinfo(masked: int, wanted: list[int]) -> None:
    """Two of its four channels are zero; registers of the answer after these four are not written."""
    texture, nothing = Texture(surface={"multisample_position_palette_index": 5}), np.zeros(16, np.uint32)
    found = texture.send("sampleinfo", header(d2=masked << 12, d3=STATES), nothing, answer=10, simd_mode=2, header_present=1)
    assert found.view(np.uint32).reshape(-1, 16).T.tolist() == [[*wanted, 0xEEEEEEEE]] * 16
    plain = texture.send("sampleinfo", nothing, answer=10, simd_mode=2)
    assert plain.view(np.uint32).reshape(-1, 16).T.tolist() == [[1, 5, 0, 0, 0xEEEEEEEE]] * 16


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


@pytest.mark.covering(1)
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


@pytest.mark.parametrize("seed", every(7, range(48)))
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


@pytest.mark.parametrize("gen", [8, 9, 11])
def test_resinfo_of_a_null_surface_is_zero(gen: float) -> None:
    assert not Texture(gen=gen, surface={"surface_type": 7}).ask("resinfo", np.zeros(16, np.int64)).any()
