"""Fast clears, HiZ clears and resolves: clear values in the surfaces themselves, nowhere else."""

from __future__ import annotations

import ctypes
import itertools
import struct
from typing import Any

import numpy as np
import pytest

from softgen.errors import DecodeError, GpuFault, Unsupported
from softgen.lanes.numpy.machine import NumpyMachine
from softgen.lanes.types import u32, u64
from softgen.shared_functions.pixel_backend import SurfacePlacement
from softgen.surface import samples, tiling
from softgen.three_d.pixels import clears, fill
from softgen.three_d.state.state import DrawState
from softgen.three_d.structures import RecordArray, SetupRecord
from tests.three_d import own_draw
from tests.three_d.made import made_state, memory, record
from tests.three_d.own_draw import OwnDraw, rectangle

TABLE, SURFACE, TARGET, COLOR = 0x1000, 0x2000, 0x100000, 0x4000
R8G8B8A8_UNORM, R32_UINT, R16G16B16A16_FLOAT = 199, 215, 132
Y, X = 3, 2
RED, ORANGE = 0x3F800000, struct.unpack("<I", struct.pack("<f", 0.5))[0]


def boxes(*rectangles: tuple[int, int, int, int, int]) -> tuple[Any, RecordArray]:
    held = (SetupRecord * len(rectangles))(*[SetupRecord(x0=a, y0=b, x1=c, y1=d, layer=layer) for a, b, c, d, layer in rectangles])
    return held, RecordArray(records=ctypes.addressof(held), count=len(held), capacity=len(held))


def detiled(data: bytes, name: str, pitch: int, width: int, height: int, size: int = 4) -> np.ndarray[Any, Any]:
    """Pixels of a surface by the lane program that the sampler uses."""
    m = NumpyMachine()
    rows = []
    for y in range(height):
        x = m.value(u64, np.arange(width, dtype=np.uint64) * np.uint64(size))
        at = tiling.offset(m, name, pitch, x, m.constant(u64, y, width)).payload
        rows.append([data[int(start) : int(start) + size] for start in at])
    return np.array([[int.from_bytes(item, "little") for item in row] for row in rows])


@pytest.mark.parametrize(("name", "pitch"), [("y_major", 256), ("x_major", 512), ("linear", 256), ("tileyf_32", 256)])
def test_a_fill_writes_its_rectangle_and_no_other_pixel(name: str, pitch: int) -> None:
    space = memory(9, {TARGET: bytes([0xEE]) * 0x8000})
    place = SurfacePlacement(base=TARGET, width=40, height=30, pitch=pitch, rows=32, slices=1)
    held, records = boxes((3, 5, 17, 9, 0), (30, 28, 99, 99, 0))
    fill.fill(space, fill.plan(place, name, b"\x01\x02\x03\x04", b"\xff" * 4), records)
    expected = np.full((32, 64), 0xEEEEEEEE)
    expected[5:9, 3:17] = expected[28:30, 30:40] = 0x04030201
    np.testing.assert_array_equal(detiled(space.read(TARGET, 0x8000), name, pitch, 64, 32), expected)
    assert held


def test_a_fill_keeps_bits_outside_its_mask_and_finds_its_slice() -> None:
    space = memory(9, {TARGET: bytes([0xEE]) * 0x8000})
    place = SurfacePlacement(base=TARGET, width=8, height=4, pitch=128, rows=32, slices=2, first=1, left=4, top=2)
    held, records = boxes((0, 0, 8, 4, 1), (0, 0, 8, 4, 2))  # the second layer is outside
    fill.fill(space, fill.plan(place, "y_major", b"\x11\x22\x33\x00", b"\xff\xff\xff\x00"), records)
    found = detiled(space.read(TARGET, 0x8000), "y_major", 128, 32, 128)
    expected = np.full_like(found, 0xEEEEEEEE)
    expected[66:70, 4:12] = 0xEE332211
    np.testing.assert_array_equal(found, expected)
    assert held


@pytest.mark.covering(1)
@pytest.mark.parametrize(("name", "size"), [*itertools.product(("y_major", "x_major", "linear"), (1, 2, 4, 8, 16)), ("tileyf_32", 4),
                                            ("w_major", 1)])  # fmt: skip
def test_whole_tiles_get_what_single_texels_get(name: str, size: int) -> None:
    """Tiles that a rectangle covers are filled in one run; those at its border, and all bits outside the mask, stay as they are."""
    pitch, width, height = 1024, 1024 // size, 72
    before = np.random.default_rng(size).integers(0, 256, pitch * 128 * 2, np.uint8)
    for mask in (b"\xff" * size, (b"\xff\x0f\x00\xc0" * 4)[:size]):
        space = memory(9, {TARGET: before.tobytes()})
        place = SurfacePlacement(base=TARGET, width=width, height=height, pitch=pitch * (1 + (name == "w_major")), rows=128, slices=1)
        value = bytes(range(1, size + 1))
        rectangle = width // 16 + 3, 5, width - 7, height - 1
        held, records = boxes((*rectangle, 0))
        fill.fill(space, fill.plan(place, name, value, mask), records)
        m, found, left = NumpyMachine(), np.frombuffer(space.read(TARGET, len(before)), np.uint8), np.ones(len(before), bool)
        columns = np.arange(rectangle[0], rectangle[2], dtype=np.uint64) * np.uint64(size)
        for y, first in itertools.product(range(rectangle[1], rectangle[3]), range(0, len(columns), 256)):
            x = m.value(u64, columns[first : first + 256])
            at = np.asarray(tiling.offset(m, name, place.pitch, x, m.constant(u64, y, x.lanes)).payload, np.int64)
            for byte in range(size):
                expected = before[at + byte] & (255 - mask[byte]) | value[byte] & mask[byte]
                np.testing.assert_array_equal(found[at + byte], expected)
                left[at + byte] = False
        np.testing.assert_array_equal(found[left], before[left])
        assert held


def test_a_fill_of_memory_that_is_not_mapped_names_the_clear() -> None:
    space = memory(9, {TARGET: bytes(0x1000)})
    held, records = boxes((0, 0, 64, 64, 0))
    with pytest.raises(GpuFault, match="by a clear"):
        fill.fill(space, fill.plan(SurfacePlacement(TARGET, 64, 64, 1, 256), "y_major", bytes(4), b"\xff" * 4), records)
    assert held


# -- fast clears -------------------------------------------------------------------------------------------------------


def target(gen: float, shader: dict[str, int], **surface: int) -> DrawState:
    held = {TABLE: struct.pack("<I", SURFACE), SURFACE: b"", COLOR: struct.pack("<4I", ORANGE, 0, 0, RED), TARGET: bytes(0x40000)}
    fields = {"surface_type": 1, "surface_format": R8G8B8A8_UNORM, "width": 255, "height": 127, "surface_pitch": 1023,
              "surface_base_address": TARGET, **({"tile_mode": Y} if gen >= 8 else {"tiled_surface": 1, "tile_walk": 1}), **surface}
    return made_state(gen, held, {"3DSTATE_PS": shader, "3DSTATE_BINDING_TABLE_POINTERS_PS": {"pointer_to_binding_table": TABLE}},
                      blocks={SURFACE: ("RENDER_SURFACE_STATE", fields)})


FAST = {"render_target_fast_clear_enable": 1}


@pytest.mark.behaviour("BDW-PS-11", shows="action")
@pytest.mark.parametrize(("gen", "fields", "texel"), [
    (7.5, {"red_clear_color": 1, "alpha_clear_color": 1}, 0xFF0000FF),
    (8, {"green_clear_color": 1}, 0x0000FF00),
    (9, {"red_clear_color": ORANGE, "alpha_clear_color": RED}, 0xFF000080),
    (11, {"clear_value_address_enable": 1, "clear_value_address": COLOR}, 0xFF000080),
])  # fmt: skip
def test_a_fast_clear_writes_its_colour_to_all_pixels_its_rectangle_stands_for(gen: float, fields: dict[str, int], texel: int) -> None:
    """A unit is 64 pixels wide, 32 or 64 high: eight control blocks of 8x4 pixels, and 8 or 16 of them (public: Mesa blorp_clear.c)."""
    state = target(gen, FAST, **fields)
    plan = clears.rectangle_clear(state)
    assert plan is not None
    held, records = boxes((1, 1, 2, 2, 0))
    fill.fill(state.space, plan, records)
    found = detiled(state.space.read(TARGET, 0x20000), "y_major", 1024, 256, 128)
    rows = 64 if gen < 9 else 32
    expected = np.zeros_like(found)
    expected[rows : 2 * rows, 64:128] = texel
    np.testing.assert_array_equal(found, expected)
    assert held


@pytest.mark.parametrize(("gpu", "fields", "texel"), [
    ("bdw", {"green_clear_color": 1}, 0x0000FF00), ("skl", {"red_clear_color": ORANGE, "alpha_clear_color": RED}, 0xFF000080),
])  # fmt: skip
def test_a_draw_with_fast_clear_enabled_clears_its_rectangles_and_runs_no_threads(gpu: str, fields: dict[str, int], texel: int) -> None:
    drawn = OwnDraw(gpu, [*rectangle(1, 0, 2, 1), *rectangle(0, 1, 1, 2)], size=(128, 128), format="R8G8B8A8_UNORM",
                    state={"3DSTATE_PS": FAST, "RENDER_SURFACE_STATE": {"tile_mode": Y, **fields}}).run()  # fmt: skip
    rows = 64 if gpu == "bdw" else 32
    expected = np.zeros((128, 128), np.int64)
    expected[:rows, 64:] = expected[rows : 2 * rows, :64] = texel
    np.testing.assert_array_equal(detiled(drawn.space.read(own_draw.TARGET, 1 << 16), "y_major", 512, 128, 128), expected)
    assert not drawn.gpu.counters.threads


@pytest.mark.parametrize(("gen", "count", "unit"), [(7, 4, (8, 2)), (8, 2, (8, 2)), (9, 8, (2, 2)), (9, 16, (1, 2)), (11, 4, (8, 2))])
def test_a_fast_clear_of_samples_stores_ones_in_the_control_surface(gen: float, count: int, unit: tuple[int, int]) -> None:
    """A unit of the rectangle stands for other pixels there (public: Mesa blorp_clear.c); colours are not written."""
    size = {2: 1, 4: 1, 8: 4, 16: 8}[count]
    aux = {"mcs_enable": 1} if gen < 8 else {"auxiliary_surface_mode": 1}
    state = target(gen, FAST, number_of_multisamples={2: 1, 4: 2, 8: 3, 16: 4}[count], auxiliary_surface_base_address=TARGET + 0x20000,
                   auxiliary_surface_pitch=256 * size // 128 - 1, **aux)  # fmt: skip
    plan = clears.rectangle_clear(state)
    assert plan is not None
    held, records = boxes((1, 2, 3, 4, 0))
    fill.fill(state.space, plan, records)
    found = detiled(state.space.read(TARGET + 0x20000, 0x20000), "y_major", 256 * size, 256, 64, size)
    expected = np.zeros_like(found)
    expected[2 * unit[1] : 4 * unit[1], unit[0] : 3 * unit[0]] = (1 << 8 * size) - 1
    np.testing.assert_array_equal(found, expected)
    assert held and not any(state.space.read(TARGET, 0x10000))
    bare = target(gen, FAST, number_of_multisamples=2)
    with pytest.raises(Unsupported, match="4 samples without a control surface"):
        clears.rectangle_clear(bare)


def test_integer_targets_of_one_bit_clear_colours_hold_integers() -> None:
    plan = clears.rectangle_clear(target(7.5, FAST, surface_format=R32_UINT, red_clear_color=1))
    assert plan is not None and bytes(plan.value[:4]) == b"\1\0\0\0"


def test_wider_pixels_and_x_tiles_have_other_rectangles() -> None:
    plan = clears.rectangle_clear(target(9, FAST, surface_format=R16G16B16A16_FLOAT, surface_pitch=2047))
    assert plan is not None and (plan.scale_x, plan.scale_y) == (32, 32)
    plan = clears.rectangle_clear(target(8, FAST, tile_mode=X))
    assert plan is not None and (plan.scale_x, plan.scale_y) == (128, 32)


def test_a_fast_clear_of_a_linear_surface_is_refused_by_name() -> None:
    with pytest.raises(Unsupported, match="tiling linear"):
        clears.rectangle_clear(target(9, FAST, tile_mode=0))


@pytest.mark.behaviour("BDW-PS-11", shows="action")
@pytest.mark.parametrize(("gen", "fields"), [
    (7, {"render_target_resolve_enable": 1}), (8, {"render_target_resolve_enable": 1}),
    (9, {"render_target_resolve_type": 1}), (11, {"render_target_resolve_type": 3, **FAST}),
])  # fmt: skip
def test_resolves_have_nothing_to_do(gen: float, fields: dict[str, int]) -> None:
    assert clears.is_resolve(target(gen, fields))
    assert not clears.is_resolve(target(gen, FAST))


@pytest.mark.parametrize(("gpu", "fields"), [
    ("bdw", {"render_target_resolve_enable": 1}), ("kbl", {"render_target_resolve_type": 1}), ("icl", {"render_target_resolve_type": 2}),
    ("icl", {"render_target_resolve_type": 3, **FAST}),
])  # fmt: skip
def test_draws_that_resolve_change_nothing_and_run_no_threads(gpu: str, fields: dict[str, int]) -> None:
    unit = {"8_pixel_dispatch_enable": 0, "16_pixel_dispatch_enable": 1, **fields}
    drawn = OwnDraw(gpu, rectangle(0, 0, 4, 4), {"3DSTATE_PS": unit}).run()
    assert not drawn.lit and not drawn.gpu.counters.threads and not drawn.targets and not drawn.remarks


# -- depth and stencil -------------------------------------------------------------------------------------------------


def buffers(gen: float, format: int, clear: int, **more: Any) -> DrawState:
    depth = {"surface_type": 1, "surface_format": format, "surface_pitch": 511, "surface_base_address": TARGET, "width": 99, "height": 59,
             "depth_write_enable": 1}  # fmt: skip
    stencil = {"surface_pitch": 255, "surface_base_address": TARGET + 0x20000, **({"stencil_buffer_enable": 1} if gen >= 7.5 else {})}
    return made_state(gen, {TARGET: bytes([0xEE]) * 0x40000}, {"3DSTATE_DEPTH_BUFFER": depth, "3DSTATE_STENCIL_BUFFER": stencil,
                      "3DSTATE_CLEAR_PARAMS": {"depth_clear_value": clear, "depth_clear_value_valid": 1}, **more})  # fmt: skip


HALF = struct.unpack("<I", struct.pack("<f", 0.25))[0]


@pytest.mark.behaviour("BDW-Z-12", shows="action")
@pytest.mark.behaviour("BDW-Z-11", shows="action")
@pytest.mark.parametrize(("format", "stored"), [(1, HALF), (3, 0xEE400000)])
def test_a_hiz_clear_writes_the_depth_value_in_the_buffers_format(format: int, stored: int) -> None:
    """D24 keeps the byte above its depth."""
    state = buffers(9, format, HALF)
    command = record("3DSTATE_WM_HZ_OP", 9, {"depth_buffer_clear_enable": 1, "clear_rectangle_x_max": 96, "clear_rectangle_y_max": 40,
                                                  "sample_mask": 1})  # fmt: skip
    clears.hiz(state, command)
    found = detiled(state.space.read(TARGET, 0x10000), "y_major", 512, 128, 64)
    expected = np.full_like(found, 0xEEEEEEEE)
    expected[:40, :96] = stored
    np.testing.assert_array_equal(found, expected)


@pytest.mark.behaviour("BDW-Z-17", shows="action")
@pytest.mark.parametrize(("own", "state_mask", "cleared"), [(0, 1, False), (1, 0, True), (0xFFFE, 0xFFFF, False)])
def test_a_hiz_operation_has_a_sample_mask_of_its_own(own: int, state_mask: int, cleared: bool) -> None:
    """Of one sample bit 0 counts; 3DSTATE_SAMPLE_MASK does not (BDW 13954-13971)."""
    state = buffers(9, 1, HALF, **{"3DSTATE_SAMPLE_MASK": {"sample_mask": state_mask}})
    fields = {"depth_buffer_clear_enable": 1, "clear_rectangle_x_max": 96, "clear_rectangle_y_max": 40, "sample_mask": own}
    clears.hiz(state, record("3DSTATE_WM_HZ_OP", 9, fields))
    assert (set(state.space.read(TARGET, 0x10000)) == {0xEE}) != cleared


@pytest.mark.behaviour("BDW-Z-13", shows="action")
def test_a_clear_of_the_full_surface_clears_whole_blocks() -> None:
    """8x4 pixels of depth, 8x8 of stencil; nothing outside the surface."""
    state = buffers(9, 1, HALF)
    fields = {"depth_buffer_clear_enable": 1, "stencil_buffer_clear_enable": 1, "stencil_clear_value": 3,
              "full_surface_depth_and_stencil_clear": 1, "clear_rectangle_x_min": 9, "clear_rectangle_x_max": 97,
              "clear_rectangle_y_min": 6, "clear_rectangle_y_max": 13, "sample_mask": 1}  # fmt: skip
    clears.hiz(state, record("3DSTATE_WM_HZ_OP", 9, fields))
    depth = detiled(state.space.read(TARGET, 0x10000), "y_major", 512, 128, 64)
    stencil = detiled(state.space.read(TARGET + 0x20000, 0x4000), "w_major", 256, 128, 64, 1)
    assert (depth[4:16, 8:100] == HALF).all() and (depth == HALF).sum() == 12 * 92
    assert (stencil[0:16, 8:100] == 3).all() and (stencil == 3).sum() == 16 * 92


@pytest.mark.behaviour("BDW-Z-17", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("count", [2, 4, 8, 16])
@pytest.mark.parametrize("box", [(0, 0, 40, 28), (3, 5, 21, 10)])
def test_a_hiz_clear_clears_the_samples_of_its_own_count_and_mask(count: int, box: tuple[int, int, int, int]) -> None:
    """Whatever 3DSTATE_MULTISAMPLE and 3DSTATE_SAMPLE_MASK say (BDW 13887-13898, 13954-13971)."""
    code, (left, top, right, bottom), m = {2: 1, 4: 2, 8: 3, 16: 4}[count], box, NumpyMachine()
    for mask in ((1 << count) - 1, 0b10, (1 << count - 1) + 1):
        state = buffers(9, 1, HALF, **{"3DSTATE_MULTISAMPLE": {"number_of_multisamples": 0}, "3DSTATE_SAMPLE_MASK": {"sample_mask": 1},
                                       "3DSTATE_DEPTH_BUFFER": {"surface_type": 1, "surface_format": 1, "surface_pitch": 639, "width": 39,
                                                                "height": 27, "surface_base_address": TARGET, "depth_write_enable": 1}})
        fields = {"depth_buffer_clear_enable": 1, "number_of_multisamples": code, "sample_mask": mask, "clear_rectangle_x_min": left,
                  "clear_rectangle_x_max": right, "clear_rectangle_y_min": top, "clear_rectangle_y_max": bottom}  # fmt: skip
        clears.hiz(state, record("3DSTATE_WM_HZ_OP", 9, fields))
        width, height = samples.spread(count, 40, 28)
        found = detiled(state.space.read(TARGET, 640 * 128), "y_major", 640, width, height)
        expected = np.full_like(found, 0xEEEEEEEE)
        for s in (s for s in range(count) if mask >> s & 1):
            for y in range(top, bottom):
                x = np.arange(left, right, dtype=np.uint32)
                at, row = samples.interleave(m, count, m.value(u32, x), m.constant(u32, y, len(x)), m.constant(u32, s, len(x)))
                expected[row.payload.astype(int), at.payload.astype(int)] = HALF
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("full", [0, 1])
def test_a_clear_writes_all_slices_of_the_view(full: int) -> None:
    """From the first array element on; slices are 64 rows apart."""
    view = {"surface_type": 1, "surface_format": 1, "surface_pitch": 511, "surface_base_address": TARGET, "width": 99, "height": 59,
            "depth_write_enable": 1, "surface_qpitch": 16, "minimum_array_element": 1, "render_target_view_extent": 1}  # fmt: skip
    state = buffers(9, 1, HALF, **{"3DSTATE_DEPTH_BUFFER": view})
    fields = {"depth_buffer_clear_enable": 1, "full_surface_depth_and_stencil_clear": full, "clear_rectangle_x_min": 3,
              "clear_rectangle_x_max": 21, "clear_rectangle_y_min": 5, "clear_rectangle_y_max": 10, "sample_mask": 1}  # fmt: skip
    clears.hiz(state, record("3DSTATE_WM_HZ_OP", 9, fields))
    found = detiled(state.space.read(TARGET, 0x20000), "y_major", 512, 128, 256)
    expected, (left, top, right, bottom) = np.full_like(found, 0xEEEEEEEE), (0, 4, 24, 12) if full else (3, 5, 21, 10)
    for slice_ in (1, 2):
        expected[64 * slice_ + top : 64 * slice_ + bottom, left:right] = HALF
    np.testing.assert_array_equal(found, expected)


@pytest.mark.behaviour("BDW-Z-08", shows="action")
def test_a_stencil_clear_writes_the_w_tiled_buffer() -> None:
    state = buffers(9, 1, HALF)
    fields = {"stencil_buffer_clear_enable": 1, "stencil_clear_value": 0x5A, "clear_rectangle_x_min": 3, "clear_rectangle_x_max": 71,
              "clear_rectangle_y_min": 5, "clear_rectangle_y_max": 9, "sample_mask": 1}  # fmt: skip
    clears.hiz(state, record("3DSTATE_WM_HZ_OP", 9, fields))
    found = detiled(state.space.read(TARGET + 0x20000, 0x4000), "w_major", 256, 128, 64, 1)
    expected = np.full_like(found, 0xEE)
    expected[5:9, 3:71] = 0x5A
    np.testing.assert_array_equal(found, expected)


@pytest.mark.behaviour("BDW-Z-15", "KBL-Z-18", shows="action")
@pytest.mark.parametrize(("format", "clear", "value", "mask"), [
    (3, 0xABCDEF, b"\xef\xcd\xab\0", b"\xff\xff\xff\0"), (5, 0xABCD, b"\xcd\xab", b"\xff\xff"),
    (1, HALF, struct.pack("<f", 0.25), b"\xff\xff\xff\xff")])  # fmt: skip
def test_older_generations_clear_depth_by_a_rectangle_with_the_stored_value(format: int, clear: int, value: bytes, mask: bytes) -> None:
    """A float, or 24 or 16 bits at the lower end of the field."""
    state = buffers(7, format, clear, **{"3DSTATE_WM": {"legacy_depth_buffer_clear_enable": 1}})
    plan = clears.rectangle_clear(state)
    assert plan is not None and bytes(plan.value[: len(value)]) == value and bytes(plan.mask[: len(mask)]) == mask


@pytest.mark.parametrize(("bits", "stored"), [
    (24, {0.0: 0, 1.0: 0xFFFFFF, 0.5: 0x800000, -3.0: 0, 7.0: 0xFFFFFF}), (16, {0.0: 0, 1.0: 0xFFFF, 0.25: 0x4000, 1.5: 0xFFFF}),
    (0, {value: struct.unpack("<I", struct.pack("<f", value))[0] for value in (0.0, 1.0, 0.25, -3.0, 7.0)})])  # fmt: skip
def test_a_depth_clear_value_in_the_buffers_format(bits: int, stored: dict[float, int]) -> None:
    """The nearest of its numbers, of which the last is 1.0; floats are stored as they are, and so is what is no float."""
    given = {value: struct.unpack("<I", struct.pack("<f", value))[0] for value in stored}
    assert {value: clears.depth_bits(given[value], bits, True) for value in stored} == stored
    assert all(clears.depth_bits(value, bits, False) == value for value in (0, 1, 0xABCD, 0xFFFFFF))


@pytest.mark.behaviour("BDW-Z-14", shows="action")
def test_hiz_resolves_have_nothing_to_do() -> None:
    state = buffers(9, 1, HALF)
    clears.hiz(state, record("3DSTATE_WM_HZ_OP", 9, {"depth_buffer_resolve_enable": 1, "clear_rectangle_x_max": 96}))
    assert set(state.space.read(TARGET, 0x40000)) == {0xEE}
    assert clears.is_resolve(buffers(7, 3, 0, **{"3DSTATE_WM": {"legacy_hierarchical_depth_buffer_resolve_enable": 1}}))


def test_a_depth_clear_without_a_buffer_says_so() -> None:
    state = made_state(9, {}, {"3DSTATE_DEPTH_BUFFER": {"surface_type": 7}, "3DSTATE_CLEAR_PARAMS": {"depth_clear_value_valid": 1}})
    with pytest.raises(DecodeError, match="without a depth buffer"):
        clears.hiz(state, record("3DSTATE_WM_HZ_OP", 9, {"depth_buffer_clear_enable": 1, "sample_mask": 1}))
