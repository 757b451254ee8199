"""Render target writes: message forms of each generation, which pixels they write, and where."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from softgen.bits import catalogue
from softgen.errors import DecodeError, GpuFault, Unsupported
from softgen.shared_functions.pixel_backend import BackendState, BlendEquation, TargetState, messages
from tests.shared_functions.rendering import BLOCK, GENERATIONS, Target, place_of

Array = np.ndarray[Any, Any]
TILINGS = ["linear", "x_major", "y_major"]
HEADERS = [7, 7.5, 8, 9, 11]


def colors(lanes: int = 16) -> Array:
    """A colour for each lane that no other lane has, in 1/255."""
    lane = np.arange(lanes)
    return (np.stack([lane * 3 + 1, lane * 5 + 2, lane * 7 + 3, lane * 11 + 4], axis=1) / 255).astype(np.float32)


def bgra(color: Array) -> list[int]:
    red, green, blue, alpha = (round(float(value) * 255) for value in color)
    return [blue, green, red, alpha]


def pixels(places: list[tuple[int, int]], lanes: int = 16, first: int = 0) -> list[tuple[int, int]]:
    """The pixels of channels."""
    return [(places[channel // 4][0] + place_of(channel)[0], places[channel // 4][1] + place_of(channel)[1])
            for channel in range(first, first + lanes)]  # fmt: skip


def check(bench: Target, wanted: dict[tuple[int, int], list[int]], before: Array) -> None:
    """These pixels have these bytes; all others, and all other memory, are as they were."""
    expected = before.copy()
    for (x, y), texel in wanted.items():
        at = bench.place(x, y)
        expected[at : at + len(texel)] = texel
    assert np.flatnonzero(bench.data.array != expected).tolist() == []


@pytest.mark.behaviour("G45-CC-02", shows="action")
@pytest.mark.parametrize("tiling", TILINGS)
@pytest.mark.parametrize("gen", GENERATIONS)
def test_sixteen_pixels_go_to_their_places(gen: float, tiling: str) -> None:
    for places in (BLOCK, [(8, 4), (10, 4), (8, 6), (10, 6)], [(2, 2), (20, 30), (38, 34), (0, 8)], [(6, 2), (8, 2), (6, 4), (8, 4)]):
        bench = Target(gen=gen, tiling=tiling)
        bench.at(places)
        before = bench.data.array.copy()
        bench.write(colors())
        check(bench, {place: bgra(color) for place, color in zip(pixels(places), colors(), strict=True)}, before)
        assert bench.compiled == 1, "compiled code was not asked"


@pytest.mark.parametrize("gen", GENERATIONS)
def test_eight_pixels(gen: float) -> None:
    bench = Target(gen=gen)
    before = bench.data.array.copy()
    bench.write(colors(8), "simd8")
    check(bench, {place: bgra(color) for place, color in zip(pixels(BLOCK, 8), colors(8), strict=True)}, before)
    assert bench.compiled == 1


@pytest.mark.parametrize("gen", GENERATIONS)
def test_one_colour_for_all_pixels(gen: float) -> None:
    bench = Target(gen=gen)
    before = bench.data.array.copy()
    bench.write(colors(1), "simd16_replicated")
    check(bench, {place: bgra(colors(1)[0]) for place in pixels(BLOCK)}, before)
    assert bench.compiled == 1


@pytest.mark.behaviour("BDW-RT-02", shows="action")
@pytest.mark.parametrize("gen", GENERATIONS)
@pytest.mark.parametrize(("subtype", "first"), [("simd8_dual_source_low", 0), ("simd8_dual_source_high", 8)])
def test_dual_source_messages_pick_the_low_or_high_slots(gen: float, subtype: str, first: int) -> None:
    bench = Target(gen=gen)
    before = bench.data.array.copy()
    both = np.concatenate([colors(8), 1 - colors(8)], axis=1)
    bench.write(both, subtype)
    check(bench, {place: bgra(color) for place, color in zip(pixels(BLOCK, 8, first), colors(8), strict=True)}, before)
    assert bench.compiled == 1


@pytest.mark.parametrize("gen", HEADERS)
def test_the_upper_slot_group_has_channels_16_to_31(gen: float) -> None:
    places = [(0, 0), (2, 0), (0, 2), (2, 2), (12, 8), (14, 8), (12, 10), (30, 10)]
    bench = Target(gen=gen)
    bench.at(places)
    before = bench.data.array.copy()
    bench.write(colors(), slot_group="high_16")
    check(bench, {place: bgra(color) for place, color in zip(pixels(places, 16, 16), colors(), strict=True)}, before)
    assert bench.compiled == 1


@pytest.mark.behaviour("KBL-RT-09", shows="action")
@pytest.mark.parametrize("gen", GENERATIONS)
def test_a_pixel_is_written_where_lane_thread_and_header_have_it_on(gen: float) -> None:
    bench = Target(gen=gen)
    bench.at(BLOCK, lit=0x0FF7)
    before = bench.data.array.copy()
    bench.write(colors(), header=bench.header(pixels=0xF3FE), mask=0x7FBF)
    on = 0x0FF7 & 0xF3FE & 0x7FBF
    wanted = {place: bgra(color) for lane, (place, color) in enumerate(zip(pixels(BLOCK), colors(), strict=True)) if on >> lane & 1}
    check(bench, wanted, before)
    assert bench.compiled == 1


@pytest.mark.behaviour("KBL-RT-12", shows="action")
@pytest.mark.behaviour("G45-CC-38", shows="action")
@pytest.mark.parametrize("gen", GENERATIONS)
def test_a_null_surface_takes_writes_and_keeps_none(gen: float) -> None:
    bench = Target(gen=gen)
    before = bench.data.array.copy()
    bench.write(colors(), surface=2)
    assert (bench.data.array == before).all() and bench.compiled == 1


def test_the_extended_descriptor_names_the_null_target() -> None:
    bench = Target(gen=11)
    before = bench.data.array.copy()
    bench.write(colors(), extended=1 << 20)
    assert (bench.data.array == before).all() and bench.compiled == 1


@pytest.mark.parametrize("gen", GENERATIONS)
def test_pixels_outside_the_surface_are_dropped(gen: float) -> None:
    places = [(36, 32), (38, 34), (40, 0), (0, 36)]
    bench = Target(gen=gen, width=39, height=35)
    bench.at(places)
    before = bench.data.array.copy()
    bench.write(colors())
    inside = [(place, color) for place, color in zip(pixels(places), colors(), strict=True) if place[0] < 39 and place[1] < 35]
    assert 4 <= len(inside) < 8
    check(bench, {place: bgra(color) for place, color in inside}, before)
    assert bench.compiled == 1


@pytest.mark.behaviour("KBL-RT-13", shows="action")
@pytest.mark.behaviour("KBL-RT-08", shows="action")
@pytest.mark.behaviour("G45-CC-42", shows="action")
@pytest.mark.parametrize(("layer", "slice"), [(0, 1), (2, 3), (3, 1), (700, 1)])
@pytest.mark.parametrize("gen", [8, 9, 11])
def test_an_array_index_counts_from_the_first_element_and_is_checked(gen: float, layer: int, slice: int) -> None:
    """One that is out of range becomes the minimum array element (KBL 20625-20629)."""
    bench = Target(gen=gen, surface={"surface_array": 1, "depth": 3, "minimum_array_element": 1, "render_target_view_extent": 2,
                                     "surface_qpitch": 9})  # fmt: skip
    bench.pixel.layer = layer
    before = bench.data.array.copy()
    bench.write(colors())
    expected = before.copy()
    for (x, y), color in zip(pixels(BLOCK), colors(), strict=True):
        at = bench.place(x, y, 36 * slice)
        expected[at : at + 4] = bgra(color)
    assert (bench.data.array == expected).all() and bench.compiled == 1


@pytest.mark.parametrize(("layer", "slice"), [(0, 0), (1, 1), (5, 5), (6, 0), (7, 0)])
def test_an_array_index_of_a_cube_map_is_one_of_its_six_faces(layer: int, slice: int) -> None:
    """Whatever the view's extent is."""
    faces = {f"cube_face_enable_{sign}_{axis}": 1 for sign in ("negative", "positive") for axis in "xyz"}
    bench = Target(gen=9, width=16, height=16, surface={"surface_type": 3, "surface_qpitch": 4, **faces})
    bench.pixel.layer = layer
    expected = bench.data.array.copy()
    bench.write(colors())
    for (x, y), color in zip(pixels(BLOCK), colors(), strict=True):
        at = bench.place(x, y, 16 * slice)
        expected[at : at + 4] = bgra(color)
    assert (bench.data.array == expected).all() and bench.compiled == 1


@pytest.mark.parametrize("gen", GENERATIONS)
def test_a_level_is_where_the_surface_has_it(gen: float) -> None:
    """The mip count is the level of a render target."""
    bench = Target(gen=gen, width=32, height=16, tiling="x_major", surface={"mip_count_lod": 2})
    before = bench.data.array.copy()
    bench.at([(0, 0), (2, 0), (0, 2), (6, 2)])
    bench.write(colors())
    expected = before.copy()
    for (x, y), color in zip(pixels([(0, 0), (2, 0), (0, 2), (6, 2)]), colors(), strict=True):
        at = bench.place(16 + x, 16 + y)  # right of level 1, which has 16 texels, below level 0
        expected[at : at + 4] = bgra(color)
    assert (bench.data.array == expected).all() and bench.compiled == 1


@pytest.mark.behaviour("KBL-BLEND-03", shows="action")
@pytest.mark.behaviour("G45-CC-34", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("disabled", ["a", "rg", "b", "rgba", "gba"])
@pytest.mark.parametrize("gen", GENERATIONS)
def test_disabled_channels_stay_as_they_are(gen: float, disabled: str) -> None:
    names = {"r": "red", "g": "green", "b": "blue", "a": "alpha"}
    if gen == 4.5:
        bench = Target(gen=gen, surface={f"write_disable_{names[item]}": 1 for item in disabled})
    else:
        bench = Target(gen=gen, state_of_backend=BackendState((TargetState(write_disable=disabled),)))
    before = bench.data.array.copy()
    bench.write(colors())
    wanted = {}
    for place, color in zip(pixels(BLOCK), colors(), strict=True):
        at = bench.place(*place)
        wanted[place] = [int(before[at + n]) if name in disabled else bgra(color)[n] for n, name in enumerate("bgra")]
    check(bench, wanted, before)
    assert bench.compiled == 1


@pytest.mark.behaviour("KBL-BLEND-11", shows="action")
@pytest.mark.parametrize("gen", HEADERS)
def test_the_header_picks_the_blend_state_of_a_target(gen: float) -> None:
    state = BackendState((TargetState(write_disable="rgb"), TargetState(write_disable="a")))
    bench = Target(gen=gen, state_of_backend=state)
    before = bench.data.array.copy()
    bench.write(colors(), header=bench.header(index=1), surface=1, last=1)
    texel = before[0x8000 + bench.place(0, 0) :][:4].tolist()
    assert list(bench.texel(0, 0, base=0x8000)) == [*bgra(colors()[0])[:3], texel[3]]
    bench.write(colors(), header=bench.header(index=0))
    assert list(bench.texel(0, 0)) == [*before[bench.place(0, 0) :][:3].tolist(), bgra(colors()[0])[3]]
    assert bench.compiled == 2
    with pytest.raises(DecodeError, match="render target index 2"):
        bench.write(colors(), header=bench.header(index=2))


def test_the_extended_descriptor_picks_the_blend_state() -> None:
    bench = Target(gen=11, state_of_backend=BackendState((TargetState(write_disable="rgb"), TargetState(write_disable="a"))))
    before = bench.data.array.copy()
    bench.write(colors(), extended=1 << 12)
    assert list(bench.texel(0, 0)) == [*bgra(colors()[0])[:3], before[bench.place(0, 0) + 3]] and bench.compiled == 1


@pytest.mark.parametrize("gen", [9, 11])
def test_a_split_send_has_its_second_payload_after_the_first(gen: float) -> None:
    bench = Target(gen=gen)
    before = bench.data.array.copy()
    payload = colors().T.reshape(-1).view(np.uint32)
    bench.send("render_target_write", payload[:24], split=payload[24:], message_subtype="simd16", binding_table_index=0,
               last_render_target=1, header_present=0)  # fmt: skip
    check(bench, {place: bgra(color) for place, color in zip(pixels(BLOCK), colors(), strict=True)}, before)
    assert bench.compiled == 1


@pytest.mark.behaviour("KBL-RT-15", shows="action")
def test_channel_selects_reorder_channels() -> None:
    bench = Target(surface={"shader_channel_select_red": 6, "shader_channel_select_blue": 4})
    bench.write(colors())
    red, green, blue, alpha = bgra(colors()[0])[2::-1] + bgra(colors()[0])[3:]
    assert list(bench.texel(0, 0)) == [red, green, blue, alpha] and bench.compiled == 1


def test_a_channel_that_no_select_names_is_not_written() -> None:
    """Where it is alpha, it is 0 to blending."""
    bench = Target(format="R32G32B32A32_UINT", surface={"shader_channel_select_blue": 4})  # red, a second time
    before = np.frombuffer(bench.texel(0, 0), np.uint32)
    bench.write(np.arange(64, dtype=np.uint32).reshape(16, 4) + 7)
    assert np.frombuffer(bench.texel(0, 0), np.uint32).tolist() == [7, 8, before[2], 10] and bench.compiled == 1
    state = BackendState((TargetState(color=BlendEquation("add", "src_alpha", "zero")),))
    bench = Target(format="R32G32B32A32_FLOAT", surface={"shader_channel_select_alpha": 4}, state_of_backend=state)
    before = np.frombuffer(bench.texel(0, 0), np.uint32)
    bench.write(np.ones((16, 4), np.float32))
    assert np.frombuffer(bench.texel(0, 0), np.uint32).tolist() == [0, 0, 0, before[3]] and bench.compiled == 1


@pytest.mark.behaviour("KBL-RT-06", "BDW-PS-07", shows="action")
@pytest.mark.parametrize("subtype, first", [("simd8", 0), ("simd8_dual_source_low", 0), ("simd8_dual_source_high", 8)])
def test_a_message_uses_its_half_of_an_output_mask(subtype: str, first: int) -> None:
    """A word for each slot; the words of other slots are not used."""
    bench = Target(gen=9, state_of_backend=BackendState(parts=frozenset({"omask"})))
    mask, before, dual = np.full(16, 1, np.uint16), bench.data.array.copy(), "dual" in subtype
    mask[first : first + 8] = [1, 0, 1, 1, 0, 0, 1, 0]
    mask[8 - first : 16 - first] = ~mask[first : first + 8] & 1
    bench.write(np.concatenate([colors(8)] * (1 + dual), 1), subtype, before=(mask,))
    places = pixels(BLOCK, 16)[first : first + 8]
    lit = {place: bgra(color) for lane, (place, color) in enumerate(zip(places, colors(8), strict=True)) if mask[first + lane]}
    check(bench, lit, before)


@pytest.mark.behaviour("BDW-PS-07", shows="action")
def test_an_output_mask_clears_pixels() -> None:
    bench = Target(gen=9, state_of_backend=BackendState(parts=frozenset({"omask"})))
    mask = np.array([0xFFFF if lane % 3 else 0xFFFE for lane in range(16)], np.uint16)
    before = bench.data.array.copy()
    bench.write(colors(), before=(mask,))
    wanted = {place: bgra(color) for lane, (place, color) in enumerate(zip(pixels(BLOCK), colors(), strict=True)) if lane % 3}
    check(bench, wanted, before)
    assert bench.compiled == 1


def test_what_is_not_built_and_what_is_wrong_is_refused_by_name() -> None:
    bench = Target(gen=9)
    with pytest.raises(Unsupported, match="per_coarse_pixel"):
        Target(gen=11).write(colors(), per_coarse_pixel=1)
    with pytest.raises(DecodeError, match="14 registers after its header"):
        bench.write(colors(), extra=(np.zeros(24 + 24, np.uint32),), mask=0xFFFF)
    with pytest.raises(Unsupported, match="YCRCB"):
        Target(gen=9, format="YCRCB_NORMAL").write(colors())
    bare = Target(gen=9)
    bare.dispatch.unit_states = {}
    with pytest.raises(Unsupported, match="no state for the pixel backend"):
        bare.write(colors())


@pytest.mark.parametrize("tiling", TILINGS)
def test_a_fault_names_the_address(tiling: str) -> None:
    bench = Target(gen=9, tiling=tiling, surface={"surface_base_address": 0x7000000})
    with pytest.raises(GpuFault, match="0x7000"):
        bench.write(colors())
    assert bench.compiled == 1


@pytest.mark.parametrize("layer", [0, 1, 2, 3, 5])
def test_slices_of_a_levels_3d_surface_are_beside_each_other(layer: int) -> None:
    """Level 1 of a 3D surface before Gen9 has two in a row."""
    bench = Target(gen=8, width=32, height=16, pitch=256, surface={"surface_type": 2, "depth": 15, "render_target_view_extent": 7,
                                                                   "mip_count_lod": 1})  # fmt: skip
    bench.pixel.layer = layer
    before = bench.data.array.copy()
    bench.write(colors())
    expected = before.copy()
    for (x, y), color in zip(pixels(BLOCK), colors(), strict=True):
        at = bench.place(16 * (layer % 2) + x, 16 * 16 + 8 * (layer // 2) + y)  # below the sixteen slices of level 0
        expected[at : at + 4] = bgra(color)
    assert (bench.data.array == expected).all() and bench.compiled == 1


def test_slices_of_a_1d_surface_follow_each_other() -> None:
    bench = Target(gen=9, tiling="linear", width=64, height=1, surface={"surface_type": 0, "surface_array": 1, "depth": 3,
                                                                       "render_target_view_extent": 3, "surface_qpitch": 16})  # fmt: skip
    bench.pixel.layer = 2
    before = bench.data.array.copy()
    bench.write(colors())
    expected = before.copy()
    for (x, y), color in zip(pixels(BLOCK), colors(), strict=True):
        if not y:
            expected[(2 * 64 + x) * 4 :][:4] = bgra(color)
    assert (bench.data.array == expected).all() and bench.compiled == 1


# -- payloads --------------------------------------------------------------------------------------------------------

FIELDS = {"source0_alpha": "source_0_alpha", "omask": "omask", "colors": ("red", "src0_red", "rgba"), "source_depth": "source_depth",
          "stencil": "stencil"}  # fmt: skip
LETTERS = {"S": "stencil", "Z": "source_depth", "M": "omask", "A": "source0_alpha"}


def payload_pages() -> list[str]:
    return [name for name in catalogue.names(gen=9) if re.fullmatch(r"MDP_RTWH?_[SZMA]*(8|16)(DS|REP)?", name)]


@pytest.mark.behaviour("KBL-RT-04", shows="layout")
@pytest.mark.behaviour("KBL-RT-05", shows="layout")
@pytest.mark.parametrize("name", payload_pages())
def test_payloads_are_as_the_manual_has_them(name: str) -> None:
    """All combinations of parts, by page: each part begins where the page has it, and the message is as long."""
    m = re.fullmatch(r"MDP_RTW(H?)_([SZMA]*)(8|16)(DS|REP)?", name)
    assert m is not None
    form = messages.WriteForm(int(m[3]), dual=m[4] == "DS", replicated=m[4] == "REP", half=bool(m[1]))
    parts = tuple(part for part in messages.PARTS if part in {LETTERS[letter] for letter in m[2]})
    page = catalogue.layout(name, 9)
    for part, register in messages.places(form, parts).items():
        starts = [field.pieces[0][1] // 256 for field in page.fields if field.name.startswith(FIELDS[part])]
        assert min(starts) == register, part
    assert parts in messages.combinations_of(9, form, page.dwords // 8)


def test_there_are_pages_of_all_kinds() -> None:
    assert len(payload_pages()) >= 60


@pytest.mark.parametrize("gen", [8, 9, 11])
def test_half_precision(gen: float) -> None:
    """Eight slots use the lower half of a register; a second source the upper one."""
    halves = colors().astype(np.float16)
    rounded = halves.astype(np.float32)
    bench = Target(gen=gen)
    before = bench.data.array.copy()
    said = {"binding_table_index": 0, "last_render_target": 1, "header_present": 0, "precision": "half"}
    bench.send("render_target_write", halves.T.reshape(-1), message_subtype="simd16", **said)
    check(bench, {place: bgra(color) for place, color in zip(pixels(BLOCK), rounded, strict=True)}, before)
    for subtype, first in (("simd8", 0), ("simd8_dual_source_low", 0), ("simd8_dual_source_high", 8)):
        bench = Target(gen=gen)
        registers = np.zeros((4, 16), np.float16)
        registers[:, :8], registers[:, 8:] = halves[:8].T, 1 - halves[:8].T
        bench.send("render_target_write", registers.reshape(-1), message_subtype=subtype, width=8, **said)
        check(bench, {place: bgra(color) for place, color in zip(pixels(BLOCK, 8, first), rounded[:8], strict=True)}, before)
        assert bench.compiled == 1
    bench = Target(gen=gen)
    zero = np.zeros(16, np.float16)
    zero[:4] = halves[3]
    bench.send("render_target_write", zero, message_subtype="simd16_replicated", **said)
    check(bench, {place: bgra(rounded[3]) for place in pixels(BLOCK)}, before)
    assert bench.compiled == 1
