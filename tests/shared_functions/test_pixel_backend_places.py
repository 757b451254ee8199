"""Render target writes: places of subspans that a header has, and targets that are rotated in memory."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from softgen.errors import DecodeError, Unsupported
from softgen.lanes.numpy.machine import NumpyMachine
from softgen.lanes.types import u32
from softgen.shared_functions.dataport import Surfaces
from softgen.shared_functions.pixel_backend import BackendState, BlendEquation, DepthTarget, TargetState, functions
from softgen.shared_functions.pixel_backend.binding import BoundTargets
from softgen.shared_functions.pixel_backend.messages import Variant
from softgen.shared_functions.pixel_backend.surface import one_block, subspans, target_surface
from softgen.shared_functions.pixel_backend.targets import Targets
from tests.shared_functions.rendering import BLOCK, Target
from tests.shared_functions.sending import DATA, PAGE
from tests.shared_functions.test_pixel_backend import HEADERS, bgra, check, colors, pixels


@pytest.mark.behaviour("KBL-RT-10", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("subtype", ["simd16", "simd8", "simd8_dual_source_high"])
@pytest.mark.parametrize("gen", HEADERS)
def test_subspans_are_where_a_header_says(gen: float, subtype: str) -> None:
    """A message without a header means the pixels of the thread, also after one with others in its header."""
    bench, moved = Target(gen=gen), [(20, 2), (6, 30), (12, 12), (34, 8)]
    bench.at(moved)
    header = bench.header()
    bench.at(BLOCK)
    before, lanes, first = bench.data.array.copy(), 16 if subtype == "simd16" else 8, 8 if subtype.endswith("high") else 0
    given = np.concatenate([colors(lanes)] * 2, axis=1) if "dual" in subtype else colors(lanes)
    bench.write(given, subtype, header, width=16 if first else lanes)
    check(bench, {place: bgra(color) for place, color in zip(pixels(moved, lanes, first), colors(lanes), strict=True)}, before)
    before = bench.data.array.copy()
    bench.write(colors())
    check(bench, {place: bgra(color) for place, color in zip(pixels(BLOCK), colors(), strict=True)}, before)
    assert bench.compiled == 2


@pytest.mark.parametrize("places, block", [
    ([(4, 8), (6, 8), (4, 10), (6, 10)], True), ([(4, 8), (6, 8)], True), ([(4, 8), (6, 8), (4, 10), (6, 12)], False),
    ([(4, 8), (6, 8), (4, 12), (6, 10)], False), ([(4, 8), (6, 10), (4, 10), (6, 10)], False), ([(4, 8), (8, 8), (4, 10), (6, 10)], False),
    ([(4, 8), (6, 8), (6, 10), (4, 10)], False), ([(4, 8), (6, 8), (4, 10), (8, 10)], False), ([(4, 8), (4, 10)], False),
    ([(0xFFFC, 0), (0xFFFE, 0), (0xFFFC, 2), (0xFFFE, 2)], True), ([(4, 8), (6, 8), (0, 0), (0, 0)], False),
])  # fmt: skip
def test_subspans_are_a_block_where_they_are_beside_and_below_the_first(places: list[tuple[int, int]], block: bool) -> None:
    """A block is accessed at once: one that is none would be written where the others should be."""
    m = NumpyMachine()
    found = subspans(m, m.constant(u32, [x | y << 16 for x, y in places]))
    assert list(zip(found.x.payload.tolist(), found.y.payload.tolist(), strict=True)) == pixels(places, 4 * len(places))
    assert found.block is not None and found.block.payload.tolist() == [block] and found.lanes == 4 * len(places)


def test_a_block_has_four_subspans() -> None:
    m = NumpyMachine()
    found = one_block(m, m.constant(u32, 8, 1), m.constant(u32, 20, 1))
    places = [(8, 20), (9, 20), (8, 21), (9, 21), (10, 20), (11, 20), (10, 21), (11, 21),
              (8, 22), (9, 22), (8, 23), (9, 23), (10, 22), (11, 22), (10, 23), (11, 23)]  # fmt: skip
    assert list(zip(found.x.payload.tolist(), found.y.payload.tolist(), strict=True)) == places and found.block is None


ROTATIONS = {90: 1, 180: 2, 270: 3}


@pytest.mark.behaviour("KBL-RT-14", shows="action")
@pytest.mark.parametrize("gen", [8, 9, 11])
@pytest.mark.parametrize("degrees", [90, 270])
@pytest.mark.parametrize("format", ["B8G8R8A8_UNORM", "R16G16B16A16_FLOAT"])
def test_targets_may_be_rotated_in_memory(gen: float, degrees: int, format: str) -> None:
    """Clockwise: the picture's upper left pixel is at the right, or lower, end of the first column or row; blending finds it there."""
    turned = {"surface": {"render_target_and_sample_unorm_rotation": ROTATIONS[degrees]}}
    bench = Target(gen=gen, tiling="x_major", format=format, **turned)
    plain = Target(gen=gen, tiling="x_major", format=format)
    for target in (bench, plain):
        target.at([(8, 4), (10, 4), (8, 6), (38, 34)])
        target.write(colors())
    places = pixels([(8, 4), (10, 4), (8, 6), (38, 34)])
    at = [(bench.height - 1 - y, x) if degrees == 90 else (y, bench.width - 1 - x) for x, y in places]
    assert [bench.texel(*place) for place in at] == [plain.texel(*place) for place in places] and bench.compiled == 1


@pytest.mark.behaviour("KBL-RT-14", shows="action")
@pytest.mark.parametrize(("degrees", "more"), [
    (180, {}), (90, {"tiling": "y_major"}), (270, {"format": "R32G32B32A32_FLOAT"}), (90, {"width": 39}),
    (90, {"surface": {"surface_array": 1}})])  # fmt: skip
def test_targets_that_cannot_be_rotated(degrees: int, more: dict[str, Any]) -> None:
    surface = {"render_target_and_sample_unorm_rotation": ROTATIONS[degrees], **more.get("surface", {})}
    bench = Target(gen=9, **{"tiling": "x_major", **more, "surface": surface})
    with pytest.raises(DecodeError, match=f"is rotated by {degrees} degrees: .*KBL 195"):
        bench.write(colors())


def test_arguments_of_a_compiled_write_have_slots_of_their_own() -> None:
    starts = {functions.COLOR: 4, functions.SECOND: 4, functions.ALPHA: 1, functions.DEPTH_SLOT: 1, functions.STENCIL: 1,
              functions.OMASK: 1}  # fmt: skip
    slots = [slot for start, count in starts.items() for slot in range(start, start + count)]
    assert sorted(slots) == list(range(functions.SLOTS))


@pytest.mark.parametrize("gen", [8, 9])
def test_a_message_of_two_sources_may_have_the_alpha_of_source_0_besides(gen: float) -> None:
    """Pixels are compared by that; the second source only decides what is written."""
    state = TargetState(color=BlendEquation("add", "src1_alpha", "zero"), alpha_test="greater")
    bench = Target(gen=gen, state_of_backend=BackendState((state,), alpha_reference=0.5))
    alphas, first, second = np.array([0.25, 0.75] * 4, np.float32), np.full((8, 4), 1.0), np.full((8, 4), 0.0)
    second[:, 3] = np.arange(8) * 17 / 255
    before = [bench.texel(x, y) for x, y in pixels(BLOCK, 8)]
    bench.write(np.concatenate([first, second], 1), "simd8_dual_source_low", bench.header(source0_alpha_present=1), before=(alphas,))
    found = [bench.texel(x, y) for x, y in pixels(BLOCK, 8)]
    assert found == [bytes([17 * lane] * 4) if lane % 2 else before[lane] for lane in range(8)] and bench.compiled == 1


def test_surfaces_that_are_not_there_have_no_pixels() -> None:
    """A null surface, the null target, and depth and stencil buffers that were not said."""
    bench = Target()
    targets = Targets(bench.dispatch.state(Surfaces.of), BackendState())
    found = [targets.target(surface, 0).placement for surface in (2, None)] + [DepthTarget().depth, DepthTarget().stencil]
    assert [(place.width, place.height) for place in found] == [(0, 0)] * 4


@pytest.mark.covering(1)
@pytest.mark.parametrize("gen", [4.5, 7, 8, 9, 11])
@pytest.mark.parametrize(("right", "down"), [(8, 0), (0, 4), (12, 8)])
def test_a_target_may_begin_inside_a_tile(gen: float, right: int, down: int) -> None:
    """X offset in 4 pixels, Y offset in 2 rows, or 4 since 8 (KBL 19670-19746)."""
    offsets = {"x_offset": right // 4, "y_offset": down // (2 if gen < 8 else 4)}
    bench = Target(gen=gen, width=16, height=16, pitch=256, surface=offsets)
    before = bench.data.array.copy()
    bench.write(colors())
    expected = before.copy()
    for (x, y), color in zip(pixels(BLOCK), colors(), strict=True):
        at = bench.place(x + right, y + down)
        expected[at : at + 4] = bgra(color)
    assert (bench.data.array == expected).all() and bench.compiled == 1


LARGEST = 1 << 14  # pixels across and down


@pytest.mark.parametrize(("format", "tiling", "size", "gen"), [
    *(("B8G8R8A8_UNORM", "y_major", 4, gen) for gen in (7, 8, 9, 11)),
    *(("R16G16B16A16_FLOAT", "x_major", 8, gen) for gen in (7, 8, 9, 11)),
    *(("R32G32B32A32_FLOAT", "y_major", 16, gen) for gen in (8, 9, 11)),
])  # fmt: skip
def test_the_largest_targets_are_written_up_to_their_last_pixel(format: str, tiling: str, size: int, gen: float) -> None:
    """Some have 4 GiB, which addresses of Gen7 cannot reach."""
    end = DATA + LARGEST * LARGEST * size
    bench = Target(gen=gen, format=format, tiling=tiling, width=LARGEST, height=LARGEST, buffers={end - PAGE: np.zeros(PAGE, np.uint8)})
    bench.at([(LARGEST - 2, LARGEST - 2)] * 4)
    bench.write(np.ones((16, 4), np.float32), mask=0x8)
    (last,) = bench.extra
    assert last.array[-size:].any() and not last.array[:-size].any() and bench.compiled == 1


@pytest.mark.parametrize("tiling", ["linear", "x_major", "y_major"])
@pytest.mark.parametrize(("height", "first", "slices", "fits"), [
    (LARGEST, 0, 1, True), (LARGEST, 0, 2, True), (LARGEST, 0, 3, False), (LARGEST, 1, 1, True), (LARGEST, 1, 2, False),
    (LARGEST, 2, 1, False), (LARGEST - 1, 0, 2, True), (LARGEST - 63, 1, 2, False), (LARGEST // 2, 0, 4, True), (LARGEST // 2, 3, 2, False),
])  # fmt: skip
def test_targets_extend_over_4_gigabytes_at_most(tiling: str, height: int, first: int, slices: int, fits: bool) -> None:
    """Slices of 128 KiB a row; the one before the first counts, those after the last do not."""
    surface = {"surface_array": 1, "depth": 7, "minimum_array_element": first, "render_target_view_extent": slices - 1}
    bench = Target(format="R16G16B16A16_FLOAT", tiling=tiling, width=LARGEST, height=height, surface=surface)
    form = Variant(8, dual=False, alpha=False, depth=False, stencil=False)
    if fits:
        assert BoundTargets(bench.dispatch).fill(0, form, (0,))
        return
    with pytest.raises(Unsupported, match=r"surface 0 .* extends over 0x1\w{8} bytes: not yet simulated for render targets"):
        bench.write(np.ones((16, 4), np.float32))


@pytest.mark.parametrize(("tiling", "pitch", "rows", "fits"), [
    ("linear", 132224, 32482, True), ("linear", 132224, 32483, False), ("y_major", 132224, 32480, True), ("y_major", 132224, 32481, False),
    ("linear", 132608, 32388, True), ("x_major", 132608, 32384, True), ("x_major", 132608, 32385, False),
])  # fmt: skip
def test_tiles_are_whole_in_what_a_target_extends_over(tiling: str, pitch: int, rows: int, fits: bool) -> None:
    """The rows of two slices; tiles have 8 or 32 of them."""
    surface = {"surface_array": 1, "depth": 1, "surface_qpitch": LARGEST // 4, "render_target_view_extent": 1}
    bench = Target(format="R16G16B16A16_FLOAT", tiling=tiling, width=LARGEST, height=rows - LARGEST, pitch=pitch, surface=surface)
    image, state = bench.port.surfaces.picture(0, False), bench.port.surfaces.state(0)
    if fits:
        assert target_surface(image, state, "a target")[1].pitch == pitch
        return
    with pytest.raises(Unsupported, match=r"a target extends over 0x100\w{6} bytes"):
        target_surface(image, state, "a target")


def test_every_variant_of_a_message_has_a_number() -> None:
    """64 of them: eight or sixteen lanes, a second source, alpha, depth and stencil of a source, and reads."""
    made = [Variant(lanes, *flags) for flags in product((False, True), repeat=5) for lanes in (8, 16)]
    assert sorted(variant.number for variant in made) == list(range(64))
    assert [Variant.of(variant.number) for variant in made] == made
    assert [Variant(8, *(n == flag for n in range(5))).number for flag in range(5)] == [2, 4, 8, 16, 32]
