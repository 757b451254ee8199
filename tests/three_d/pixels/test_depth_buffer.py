"""Depth and stencil buffers: where their levels and slices are, by hand, and which buffers are refused."""

from __future__ import annotations

from typing import Any

import pytest

from softgen.errors import DecodeError, Unsupported
from softgen.shared_functions.pixel_backend import SurfacePlacement
from softgen.three_d.pixels import depth_buffer
from softgen.three_d.pixels.depth_buffer import NOWHERE, DepthBuffers, depth_buffers
from tests.three_d.pixels.test_color_calculator import DEPTH, FORMATS, GENERATIONS, STENCIL, Draw

LEVEL = {"surface_format": FORMATS["d32_float"], "lod": 2, "width": 127, "height": 99, "minimum_array_element": 3,
         "render_target_view_extent": 4, "surface_pitch": 1023}  # fmt: skip
SOLID = {**LEVEL, "surface_type": 2, "depth": 15}  # 16 slices


def found(gen: float, depth: dict[str, int] | None, **stencil: Any) -> DepthBuffers:
    return depth_buffers(Draw(gen, depth=depth, stencil=stencil or None).state)


def pitched(gen: float, rows: int) -> dict[str, int]:
    """A distance of slices, where commands have it: in units of 4 rows."""
    return {"surface_qpitch": rows // 4} if gen >= 8 else {}


@pytest.mark.parametrize(("gen", "rows"), [(4.5, 100 + 50 + 11 * 2), (7, 100 + 52 + 12 * 4), (7.5, 100 + 52 + 12 * 4), (8, 40), (9, 40),
                                           (11, 40)])  # fmt: skip
def test_a_level_of_a_2d_buffer(gen: float, rows: int) -> None:
    """The third level is to the right of the second: 64 wide, and below the first. Sizes of levels are rounded up to 4 pixels and 4 rows,
    or 2 on Gen4.5 (public Mesa isl_gfx4.c, isl_gfx7.c)."""
    assert found(gen, LEVEL | pitched(gen, 40)).depth == SurfacePlacement(DEPTH, 32, 25, 5, 1024, rows, 3, 64, 100)
    below = LEVEL | {"lod": 3} | pitched(gen, 40)
    assert found(gen, below).depth == SurfacePlacement(DEPTH, 16, 12, 5, 1024, rows, 3, 64, 100 + (26 if gen == 4.5 else 28))


def test_levels_of_gen45_may_be_to_the_right_of_the_first() -> None:
    """mip_map_layout_mode (G45 7037)."""
    placed = found(4.5, LEVEL | {"mip_map_layout_mode": 1}).depth
    assert (placed.left, placed.top) == (128, 50)


@pytest.mark.parametrize(("across", "down", "placed"), [(0, 0, (0, 0)), (8, -16, (8, 0xFFFFFFF0)), (-24, 40, (0xFFFFFFE8, 40))])
def test_pixels_of_gen45_may_be_elsewhere_in_the_depth_buffer(across: int, down: int, placed: tuple[int, int]) -> None:
    """By offsets, which may be negative, of buffers without levels and slices (G45 7090-7113)."""
    flat = LEVEL | {"lod": 0, "minimum_array_element": 0, "render_target_view_extent": 0}
    depth = found(4.5, flat | {"depth_coordinate_offset_x": across, "depth_coordinate_offset_y": down}).depth
    assert (depth.left, depth.top) == placed


@pytest.mark.covering(2)
@pytest.mark.parametrize(("width", "height", "lod", "size"), [
    (4, 100, 2, (1, 25)), (3, 100, 2, (1, 25)), (1, 100, 5, (1, 3)), (128, 3, 1, (64, 1)), (128, 2, 2, (32, 1)), (6, 6, 14, (1, 1)),
])  # fmt: skip
@pytest.mark.parametrize("kind", [1, 2])
@pytest.mark.parametrize("gen", [4.5, 7, 8, 9])
def test_a_level_has_one_pixel_at_least(gen: float, kind: int, width: int, height: int, lod: int, size: tuple[int, int]) -> None:
    fields = SOLID | {"surface_type": kind, "width": width - 1, "height": height - 1, "lod": lod} | pitched(gen, 40)
    placed = found(gen, fields).depth
    assert (placed.width, placed.height) == size


@pytest.mark.parametrize("gen", [7, 8, 9, 11])
def test_a_level_of_16_bits_begins_at_a_multiple_of_8_pixels(gen: float) -> None:
    placed = found(gen, LEVEL | {"surface_format": FORMATS["d16_unorm"], "width": 113} | pitched(gen, 40)).depth
    assert (placed.left, placed.top, placed.width) == (64, 100, 28)  # 114 >> 1 is 57
    placed = found(gen, LEVEL | {"width": 113} | pitched(gen, 40)).depth
    assert (placed.left, placed.top, placed.width) == (60, 100, 28)


@pytest.mark.parametrize("gen", [7, 7.5, 8])
def test_slices_of_a_3d_buffer_are_beside_each_other(gen: float) -> None:
    """As those of 3D textures (public Mesa isl.c): vkCmdCopyBufferToImage draws into them. Of level L, 2^L are in a row: level 0 has 16
    rows of 100, level 1 four of 52; the third has slices of 32 by 28."""
    assert found(gen, SOLID | pitched(gen, 40)).depth == SurfacePlacement(DEPTH, 32, 25, 5, 1024, 28, 3, 0, 16 * 100 + 4 * 52, 2, 32)
    assert found(gen, SOLID | {"lod": 0} | pitched(gen, 40)).depth == SurfacePlacement(DEPTH, 128, 100, 5, 1024, 100, 3, 0, 0, 0, 128)


@pytest.mark.parametrize("kind", [2, 3])
def test_slices_of_3d_and_cube_buffers_of_gen45(kind: int) -> None:
    """Rows are rounded up to 2; a cube has six faces at each level."""
    top = 16 * 100 + 4 * 50 if kind == 2 else 6 * 100 + 3 * 50
    offsets = {"depth_coordinate_offset_x": 8, "depth_coordinate_offset_y": -16}
    placed = SurfacePlacement(DEPTH, 32, 25, 5, 1024, 26, 3, 8, top - 16, 2, 32)
    assert found(4.5, SOLID | {"surface_type": kind} | offsets).depth == placed


@pytest.mark.parametrize("gen", [9, 11])
def test_slices_of_a_3d_buffer_are_below_each_other_since_gen9(gen: float) -> None:
    assert found(gen, SOLID | pitched(gen, 40)).depth == SurfacePlacement(DEPTH, 32, 25, 5, 1024, 40, 3, 64, 100)


@pytest.mark.parametrize("gen", [7, 7.5, 8, 9, 11])
def test_a_stencil_buffer_has_the_sizes_of_the_depth_buffer(gen: float) -> None:
    """Address and distances are its own, and its levels begin at multiples of 8 pixels and rows."""
    rows = 48 if gen >= 8 else 104 + 56 + 12 * 8
    made = found(gen, LEVEL | pitched(gen, 40), surface_pitch=511, **pitched(gen, 48))
    assert made.stencil == SurfacePlacement(STENCIL, 32, 25, 5, 512, rows, 3, 64, 104) and made.has_stencil and made.separate_stencil
    if gen < 9:
        solid = found(gen, SOLID | pitched(gen, 40), surface_pitch=511, **pitched(gen, 48))
        assert solid.stencil == SurfacePlacement(STENCIL, 32, 25, 5, 512, 32, 3, 0, 16 * 104 + 4 * 56, 2, 32)


@pytest.mark.parametrize("gen", GENERATIONS)
def test_buffers_that_are_not_there(gen: float) -> None:
    """A null surface has no stencil buffer either; before any command there is nothing."""
    nothing = found(gen, None)
    assert (nothing.format, nothing.tiling, nothing.depth, nothing.stencil, nothing.has_stencil) == ("", "y_major", NOWHERE, NOWHERE, False)
    assert nothing.separate_stencil and nothing.depth_write and nothing.stencil_write
    null = found(gen, {"surface_type": 7, "surface_format": FORMATS["d32_float"]}, **({"surface_pitch": 511} if gen > 4.5 else {}))
    assert null == DepthBuffers(separate_stencil=gen > 4.5)
    plain = found(gen, {"surface_format": FORMATS["d32_float"]})
    assert (plain.format, plain.has_stencil, plain.stencil) == ("d32_float", False, NOWHERE)
    if gen > 7:
        off = found(gen, {"surface_format": FORMATS["d32_float"]}, stencil_buffer_enable=0)
        assert (off.has_stencil, off.stencil) == (False, NOWHERE)


@pytest.mark.parametrize("writes", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_which_buffers_may_be_written(writes: tuple[int, int]) -> None:
    enabled = dict(zip(("depth_write_enable", "stencil_write_enable"), writes, strict=True))
    made = found(9, {"surface_format": FORMATS["d32_float"]} | enabled)
    assert (made.depth_write, made.stencil_write) == (bool(writes[0]), bool(writes[1]))
    early = found(4.5, {"surface_format": FORMATS["d24_unorm_s8_uint"]})
    assert early.depth_write and early.stencil_write and early.has_stencil and not early.separate_stencil


@pytest.mark.parametrize(("fields", "tiling"), [({}, "linear"), ({"tile_walk": 1}, "linear"),
                                                ({"tiled_surface": 1, "tile_walk": 1}, "y_major")])  # fmt: skip
def test_buffers_of_gen45_are_linear_or_y_major(fields: dict[str, int], tiling: str) -> None:
    assert found(4.5, {"surface_format": 1} | fields).tiling == tiling and found(9, {"surface_format": 1}).tiling == "y_major"
    with pytest.raises(DecodeError, match="tile_walk 0 of a tiled depth buffer"):
        found(4.5, {"surface_format": 1, "tiled_surface": 1})


@pytest.mark.parametrize(("changed", "rows"), [
    ({}, 40 * 8 + 100 + 100), ({"render_target_view_extent": 5}, 40 * 9 + 100 + 100), ({"minimum_array_element": 4}, 40 * 9 + 100 + 100),
    ({"height": 103}, 40 * 8 + 104 + 104), ({"lod": 4}, 40 * 8 + 140 + 100), ({"surface_qpitch": 11}, 44 * 8 + 100 + 100),
    ({"surface_type": 2}, 28 * 3 + 1808 + 100), ({"surface_type": 2, "render_target_view_extent": 8}, 28 * 4 + 1808 + 100),
    ({"surface_type": 2, "minimum_array_element": 7}, 28 * 4 + 1808 + 100), ({"surface_type": 2, "lod": 3}, 12 * 2 + 1836 + 100),
])  # fmt: skip
def test_buffers_that_are_too_large_to_be_placed(changed: dict[str, int], rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of the slices before and in the view, of the levels above and of the first one are room enough."""
    fields = SOLID | {"surface_type": 1} | pitched(8, 40) | changed
    monkeypatch.setattr(depth_buffer, "REACH", rows * 1024 + 1)
    found(8, fields)
    monkeypatch.setattr(depth_buffer, "REACH", rows * 1024)
    with pytest.raises(Unsupported, match=f"3DSTATE_DEPTH_BUFFER: a buffer of more than {rows * 1024:#x} bytes: not yet simulated"):
        found(8, fields)


def test_a_buffer_reaches_over_less_than_4_gib() -> None:
    """16384 rows of 256 KiB are too many."""
    fields = {"surface_format": FORMATS["d32_float"], "surface_pitch": (1 << 18) - 1, "height": 99}
    assert found(8, fields | pitched(8, 16384 - 104)).depth.rows == 16384 - 104
    with pytest.raises(Unsupported, match="3DSTATE_DEPTH_BUFFER: a buffer of more than 0x100000000 bytes"):
        found(8, fields | pitched(8, 16384 - 100))
