"""Typed surface messages, media blocks and their relatives: texels by coordinates, bounds, tilings, levels, slices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from softgen.bits.formats import surface_formats
from softgen.errors import DecodeError, Unsupported
from tests.shared_functions.sending import BASE, DATA, Bench, header

u32 = np.uint32
NUMBER = {surface_format.name: value for value, surface_format in surface_formats().items()}
BOUND = {"binding_table_index": 0}
TILES = {"linear": 0, "w_major": 1, "x_major": 2, "y_major": 3}
WIDTH, HEIGHT, PITCH = 10, 6, 64


def picture(gen: float = 9, format: str = "R32_UINT", tile: str = "linear", pitch: int = PITCH, width: int = WIDTH, height: int = HEIGHT,
            kind: int = 1, **more: int) -> Bench:  # fmt: skip
    values = {"surface_type": kind, "surface_format": NUMBER[format], "width": width - 1, "height": height - 1, "surface_pitch": pitch - 1,
              "depth": 0}  # fmt: skip
    tiling = {"tile_mode": TILES[tile]} if gen >= 8 else {"tiled_surface": int(tile != "linear"), "tile_walk": int(tile == "y_major")}
    return Bench(gen=gen, surface=values | tiling | {"surface_vertical_alignment": 1, "surface_horizontal_alignment": 1} | more)


def regs(*rows: Any) -> np.ndarray[Any, Any]:
    return np.concatenate([np.broadcast_to(np.array(row, np.int64), 8).astype(u32) for row in rows])


X = list(range(8))


@pytest.mark.parametrize("gen", [7, 7.5, 8, 9, 11])
def test_a_typed_read_takes_texels_by_their_coordinates(gen: float) -> None:
    bench = picture(gen)
    found = bench.send("typed_surface_read", regs(X, 2), answer=1, slot_group="low_8", channel_mask="r", **BOUND).view(u32)
    row = bench.data.array[2 * PITCH :].view(u32)
    assert found.tolist() == row[:8].tolist()
    assert bench.compiled == 1, "compiled code was not asked"


@pytest.mark.behaviour("KBL-DP-27", shows="action")
def test_coordinates_out_of_bounds_read_zero_and_write_nothing() -> None:
    bench = picture()
    at = regs([0, 9, 10, 0, 0, -1, 3, 0], [0, 5, 5, 6, -1, 0, 3, 1])
    found = bench.send("typed_surface_read", at, answer=1, slot_group="low_8", channel_mask="r", **BOUND).view(u32)
    held = bench.data.array.view(u32)
    places = [0, 5 * 16 + 9, None, None, None, None, 3 * 16 + 3, 16]
    assert found.tolist() == [0 if place is None else held[place] for place in places]
    before = held.copy()
    bench.send("typed_surface_write", at, regs(np.arange(8) + 1000), slot_group="low_8", channel_mask="r", **BOUND)
    changed = {place: 1000 + lane for lane, place in enumerate(places) if place is not None}
    assert {int(place): int(held[place]) for place in np.flatnonzero(held != before)} == changed


@pytest.mark.behaviour("KBL-DP-15", shows="action")
def test_the_slot_group_chooses_the_channels() -> None:
    bench = picture()
    bench.send("typed_surface_write", regs(X, 0), regs(7), mask=0x0300, slot_group="high_8", channel_mask="r", **BOUND)
    assert bench.data.array.view(u32)[:3].tolist()[:2] == [7, 7] and bench.data.array.view(u32)[2] != 7


@pytest.mark.parametrize("name", ["typed_surface_write", "typed_atomic"])
@pytest.mark.behaviour("KBL-DP-15", shows="action")
def test_an_instruction_of_eight_channels_has_those_of_its_slot_group(name: str) -> None:
    """send (8|M8): its channels are slots 8 to 15, whose bits of the header's mask are the upper ones."""
    bench = picture()
    more = {"channel_mask": "r"} if name == "typed_surface_write" else {"operation": "mov"}
    bench.send(name, header(d7=0x8300), regs(X, 0), regs(7), mask=0x83, width=8, slot_group="high_8", header_present=1, **more, **BOUND)
    assert np.flatnonzero(bench.data.array.view(u32)[:8] == 7).tolist() == [0, 1, 7]


@pytest.mark.behaviour("KBL-DP-15", shows="action")
def test_the_high_group_of_an_instruction_that_has_only_high_channels() -> None:
    """As compilers split a write of sixteen channels: send (8|M0) for the low group, send (8|M8) for the high one."""
    bench = picture()
    bench.send("typed_surface_write", regs(X, 0), regs(7), mask=0x03, width=8, slot_group="high_8", channel_mask="r", **BOUND)
    assert bench.data.array.view(u32)[:2].tolist() == [7, 7] and bench.data.array.view(u32)[2] != 7


@pytest.mark.behaviour("KBL-DP-15", shows="action")
def test_the_low_group_does_not_see_the_high_channels() -> None:
    bench = picture()
    before = bench.data.array.copy()
    bench.send("typed_surface_write", regs(X, 0), regs(7), mask=0xFF00, slot_group="low_8", channel_mask="r", **BOUND)
    assert (bench.data.array == before).all()


def test_formats_convert_both_ways() -> None:
    bench = picture(format="R8G8B8A8_UNORM")
    one, half = np.array([1.0], np.float32).view(u32)[0], np.array([0.5], np.float32).view(u32)[0]
    colour = regs(one, half, 0, one)
    bench.send("typed_surface_write", regs(X, 1), colour, slot_group="low_8", channel_mask="rgba", **BOUND)
    assert bench.data.array[PITCH : PITCH + 4].tolist() == [255, 128, 0, 255]
    found = bench.send("typed_surface_read", regs(X, 1), answer=4, slot_group="low_8", channel_mask="rgba", **BOUND).view(np.float32)
    assert found[0] == 1.0 and found[8] == np.float32(128 / 255) and found[16] == 0.0 and found[24] == 1.0


@pytest.mark.parametrize("tile", ["x_major", "y_major"])
def test_tiled_surfaces_read_back_what_was_written(tile: str) -> None:
    bench = picture(tile=tile, pitch=512, width=100, height=8)
    bench.send("typed_surface_write", regs(X, X), regs(np.arange(8) + 50), slot_group="low_8", channel_mask="r", **BOUND)
    step = {"x_major": 512, "y_major": 16}[tile]
    for lane in range(8):
        byte = lane * 4
        column = byte if tile == "x_major" else byte // 16 * 512 + byte % 16
        assert bench.data.array[column + lane * step] == 50 + lane
    found = bench.send("typed_surface_read", regs(X, X), answer=1, slot_group="low_8", channel_mask="r", **BOUND).view(u32)
    assert found.tolist() == list(range(50, 58))


@pytest.mark.behaviour("KBL-SAMP-05", shows="action")
@pytest.mark.parametrize("gen", [8, 9, 11])
@pytest.mark.parametrize("qpitch", [2, 3, 5])
def test_slices_are_four_times_the_qpitch_apart(gen: float, qpitch: int) -> None:
    """In rows, whatever the height (KBL 19302-19343)."""
    bench = picture(gen, width=8, height=4, surface_array=1, depth=2, surface_qpitch=qpitch)
    held = bench.data.array.view(u32)
    found = bench.send("typed_surface_read", regs(1, 2, [0, 1, 2, 0, 0, 0, 0, 0]), answer=1, slot_group="low_8", channel_mask="r", **BOUND)
    assert found.view(u32)[:3].tolist() == [held[16 * (4 * qpitch * layer + 2) + 1] for layer in range(3)]


@pytest.mark.behaviour("KBL-DP-27", shows="action")
def test_slices_and_levels() -> None:
    bench = picture(width=8, height=4, surface_array=1, depth=2, surface_qpitch=2, mip_count_lod=1)
    held = bench.data.array.view(u32)
    level = bench.send("typed_surface_read", regs(0, 0, 0, [0, 1, 2, 1, 0, 0, 0, 0]), answer=1, slot_group="low_8", channel_mask="r",
                       **BOUND).view(u32)  # fmt: skip
    assert level[:4].tolist() == [held[0], held[4 * 16], 0, held[4 * 16]]
    slices = bench.send("typed_surface_read", regs(0, 0, [0, 1, 2, 3, 0, 0, 0, 0]), answer=1, slot_group="low_8", channel_mask="r",
                        **BOUND).view(u32)  # fmt: skip
    assert slices[:4].tolist() == [held[0], held[8 * 16], held[16 * 16], 0]


@pytest.mark.behaviour("BDW-DP-15", shows="action")
@pytest.mark.parametrize("gen", [7.5, 8, 9])
def test_typed_atomics(gen: float) -> None:
    bench = picture(gen)
    at = 3 * PITCH // 4 + 2
    first = bench.data.array.view(u32)[at]
    found = bench.send("typed_atomic", regs(2, 3), regs(5), answer=1, operation="add", return_data=1, slot_group="low_8", **BOUND).view(u32)
    assert found.tolist() == [int(first) + 5 * lane for lane in range(8)] and bench.data.array.view(u32)[at] == first + 40
    slots = bench.send("typed_atomic_simd4x2", np.array([2, 3, 0, 0, 1, 0, 0, 0], u32), regs(1), answer=1, operation="umax", return_data=1,
                       width=8, **BOUND).view(u32)  # fmt: skip
    assert slots[0] == first + 40 and slots[4] == bench.data.array.view(u32)[1]


def test_typed_simd4x2() -> None:
    bench = picture(format="R32G32B32A32_UINT", pitch=256)
    places = np.array([1, 2, 0, 0, 3, 0, 0, 0], u32)
    found = bench.send("typed_surface_read", places, answer=1, slot_group="simd4x2", channel_mask="rgba", width=8, **BOUND).view(u32)
    held = bench.data.array.view(u32)
    assert found.tolist() == [*held[2 * 64 + 4 :][:4], *held[12:16]]


def test_typed_buffers_and_what_is_not_built() -> None:
    bench = Bench(surface={"surface_format": NUMBER["R16_UINT"], "surface_pitch": 1, "width": 3, "height": 0})
    found = bench.send("typed_surface_read", regs(X), answer=1, slot_group="low_8", channel_mask="r", **BOUND).view(u32)
    assert found.tolist() == [*bench.data.array.view(np.uint16)[:4].tolist(), 0, 0, 0, 0]
    with pytest.raises(Unsupported, match="BC1_UNORM"):
        picture(format="BC1_UNORM").send("typed_surface_read", regs(X, 0), answer=1, slot_group="low_8", channel_mask="r", **BOUND)
    with pytest.raises(Unsupported, match="no counter"):
        picture().send("atomic_counter", header(), answer=1, operation="inc", return_data=1, simd_mode="simd8", **BOUND)


@pytest.mark.behaviour("BDW-DP-14", shows="action")
@pytest.mark.parametrize(("gen", "more"), [(7.5, {"append_counter_enable": 1, "append_counter_address": DATA + 0x400}),
                                           (8, {"auxiliary_surface_mode": 2, "auxiliary_surface_base_address": DATA})])  # fmt: skip
def test_a_counter_gives_each_lane_a_number(gen: float, more: dict[str, int]) -> None:
    bench = picture(gen, **more)
    place = bench.data.array[0x400 if gen < 8 else 0 :].view(u32)
    before = int(place[0])
    fields = {"return_data": 1, "simd_mode": "simd8", **BOUND}
    found = bench.send("atomic_counter", header(), mask=0b10110, answer=1, operation="inc", **fields).view(u32)
    assert [int(found[lane]) for lane in (1, 2, 4)] == [before, before + 1, before + 2] and place[0] == before + 3
    down = bench.send("atomic_counter", header(), mask=1, answer=1, operation="predec", **fields).view(u32)
    assert down[0] == before + 2
    assert bench.port.surfaces.counter(0).size == 4
    held = int(place[0])
    slots = bench.send("atomic_counter_simd4x2", header(), mask=0x81, answer=1, operation="inc", width=8, return_data=1, **BOUND).view(u32)
    assert [slots[0], slots[4]] == [held, held + 1] and place[0] == held + 2
    assert (np.delete(slots, (0, 4)) == 0xEEEEEEEE).all(), "the rest of the answer stays as it was"


@pytest.mark.parametrize(("gen", "more"), [(7.5, {"append_counter_enable": 1}), (8, {"auxiliary_surface_mode": 2}), (9, {})])
def test_a_null_surface_counts_nothing(gen: float, more: dict[str, int]) -> None:
    """All messages may be sent to one; whatever else its state says of a counter is ignored (KBL 18918-18928)."""
    bench = picture(gen, surface_type=7, **more)
    before = bench.data.array.copy()
    found = bench.send("atomic_counter", header(), mask=0b10110, answer=1, operation="inc", return_data=1, simd_mode="simd8", **BOUND)
    assert not found.view(u32)[[1, 2, 4]].any() and (bench.data.array == before).all()


@pytest.mark.parametrize(("name", "more"), [("atomic_counter", {"simd_mode": "simd8"}), ("atomic_counter_simd4x2", {})])
def test_a_counter_whose_answer_has_no_room_does_not_count(name: str, more: dict[str, str]) -> None:
    """One that returns nothing needs none."""
    bench = picture(8, auxiliary_surface_mode=2, auxiliary_surface_base_address=DATA)
    place, before = bench.data.array.view(u32), int(bench.data.array.view(u32)[0])
    with pytest.raises(DecodeError, match=f"{name} has 0 registers for its answer, too few; 1 are needed"):
        bench.send(name, header(), mask=1, answer=0, operation="inc", return_data=1, width=8, **more, **BOUND)
    assert place[0] == before
    bench.send(name, header(), mask=1, answer=0, operation="inc", return_data=0, width=8, **more, **BOUND)
    assert place[0] == before + 1


def test_surfaces_that_are_refused_are_named_by_their_place() -> None:
    """Of the binding table by their number, others by the offset of their state."""
    surfaces = picture(number_of_multisamples=2).port.surfaces
    surfaces.bases = {"surface": BASE, "bindless": BASE - 0x40}
    for index, bindless, named in ((0, False, "surface 0"), (0x40, True, "bindless surface 0x40")):
        with pytest.raises(Unsupported, match=rf"^{named} \(state at {BASE:#x}\) has number_of_multisamples"):
            surfaces.picture(index, bindless)


# -- media blocks ---------------------------------------------------------------------------------------------------


def control(width: int, height: int, **more: int) -> int:
    return width - 1 | height - 1 << 16 | more.get("pitch", 0) << 8 | more.get("sub", 0) << 24 | more.get("mode", 0) << 30


@pytest.mark.behaviour("BDW-DP-17", shows="action")
@pytest.mark.parametrize("gen", [7.5, 8, 9, 11])
def test_a_media_block_repeats_the_edges(gen: float) -> None:
    bench = picture(gen, format="R8_UINT", width=5, height=5)  # dwords
    block = header(d0=16, d1=3, d2=control(6, 4))
    found = bench.send("media_block_read", block, answer=1, **BOUND).reshape(4, 8)[:, :6]
    rows = bench.data.array[: 5 * PITCH].reshape(5, PITCH)
    wanted = [[rows[min(3 + y, 4)][min(16 + x, 19)] for x in range(6)] for y in range(4)]
    assert found.tolist() == [[int(item) for item in row] for row in wanted]
    left = bench.send("media_block_read", header(d0=0xFFFFFFFE, d1=0xFFFFFFFF, d2=control(4, 2)), answer=1, **BOUND)[:8]
    assert left.tolist() == [rows[0][0], rows[0][0], rows[0][0], rows[0][1]] * 2


def test_a_media_block_write_drops_what_is_outside() -> None:
    bench = picture(format="R8_UINT", width=5, height=5)
    before = bench.data.array.copy()
    bench.send("media_block_write", header(d0=16, d1=4, d2=control(8, 2)), np.full(32, 9, np.uint8), **BOUND)
    assert np.flatnonzero(bench.data.array != before).tolist() == [4 * PITCH + x for x in (16, 17, 18, 19)]


@pytest.mark.parametrize(("x", "y"), [(0, 0), (16, 0), (-4, 0), (0, 3), (0, -2), (17, 4), (-7, -3), (20, 0), (0, 5), (0, -4), (-8, 1)])
def test_bytes_of_a_media_block_write_are_those_of_their_places(x: int, y: int) -> None:
    """Of 4 rows by 8 bytes, each another number: none is written in the place of its neighbour at an edge."""
    bench = picture(format="R8_UINT", width=5, height=5)  # dwords
    expected, data = bench.data.array.copy(), np.arange(200, 232, dtype=np.uint8)
    for row in range(4):
        for column in range(8):
            if 0 <= x + column < 20 and 0 <= y + row < 5:
                expected[(y + row) * PITCH + x + column] = data[8 * row + column]
    bench.send("media_block_write", header(d0=x % (1 << 32), d1=y % (1 << 32), d2=control(8, 4)), data, **BOUND)
    assert bench.data.array.tolist() == expected.tolist()


@pytest.mark.behaviour("KBL-DP-19", shows="action")
def test_masks_of_a_media_block_write() -> None:
    bench = picture(format="R8_UINT", width=16, height=8)
    before = bench.data.array.copy()
    bench.send("media_block_write", header(d2=control(32, 1, mode=2), d3=1 << 31 | 1), np.full(32, 200, np.uint8), **BOUND)
    assert np.flatnonzero(bench.data.array != before).tolist() == [0, 31]
    before = bench.data.array.copy()
    bench.send("media_block_write", header(d2=control(32, 4, mode=1), d3=1 << 17 | 1 << 2), np.full(128, 201, np.uint8), **BOUND)
    assert np.flatnonzero(bench.data.array != before).tolist() == [*range(20, 24), *range(PITCH, PITCH + 4)]


@pytest.mark.behaviour("KBL-DP-20", shows="action")
def test_merged_blocks_share_registers() -> None:
    bench = picture(format="R8_UINT", width=64, height=8)
    found = bench.send("media_block_read", header(d2=control(8, 2, pitch=1, sub=8)), answer=1, **BOUND)
    rows = bench.data.array.reshape(-1, PITCH)
    assert found[8:16].tolist() == rows[0][:8].tolist() and found[24:32].tolist() == rows[1][:8].tolist()
    assert (found[:8] == 0xEE).all() and (found[16:24] == 0xEE).all()


@pytest.mark.behaviour("KBL-DP-21", shows="action")
def test_the_descriptor_can_leave_out_every_other_line() -> None:
    bench = picture(format="R8_UINT", width=64, height=8)
    found = bench.send("media_block_read", header(d2=control(4, 2)), answer=1, vertical_line_stride_override=1, vertical_line_stride=1,
                       vertical_line_stride_offset=1, **BOUND)[:8]  # fmt: skip
    rows = bench.data.array.reshape(-1, PITCH)
    assert found.tolist() == [*rows[1][:4].tolist(), *rows[3][:4].tolist()]


def test_a_block_that_is_too_large_is_an_error() -> None:
    with pytest.raises(DecodeError, match="64 bytes by 8 rows"):
        picture().send("media_block_read", header(d2=control(64, 8)), answer=8, **BOUND)


@pytest.mark.behaviour("BDW-DP-22", shows="action")
def test_a_transposed_read_gives_columns() -> None:
    bench = picture(format="R8_UINT", width=64, height=8)
    found = bench.send("transpose_read", header(d2=1 | 2 << 20), answer=1, **BOUND).view(u32)
    rows = bench.data.array.view(u32).reshape(-1, PITCH // 4)
    assert found.tolist() == [*rows[:4, 0].tolist(), *rows[:4, 1].tolist()]
    moved = bench.send("transpose_read", header(d0=8, d1=3, d2=1 | 2 << 20), answer=1, **BOUND).view(u32)
    assert moved.tolist() == [*rows[3:7, 2].tolist(), *rows[3:7, 3].tolist()]
    field = picture(format="R8_UINT", width=64, height=8, vertical_line_stride=1, vertical_line_stride_offset=1)
    other = field.send("transpose_read", header(d2=1 | 2 << 20), answer=1, **BOUND).view(u32)
    assert other.tolist() == [*rows[1:8:2, 0].tolist(), *rows[1:8:2, 1].tolist()]
    with pytest.raises(DecodeError, match="transpose_read has 1 registers for its answer, too few; 2 are needed"):
        bench.send("transpose_read", header(d2=1 | 3 << 20), answer=1, **BOUND)


@pytest.mark.parametrize("name, size", [("media_block_read", control(4, 2)), ("transpose_read", 1 << 20)])
def test_an_offset_of_lines_counts_where_every_other_one_does(name: str, size: int) -> None:
    bench = picture(format="R8_UINT", width=64, height=8, vertical_line_stride_offset=1)
    found, held = bench.send(name, header(d2=size), answer=1, **BOUND), bench.data.array
    assert found[:8].tolist() == [*held[:4], *held[PITCH : PITCH + 4]]


@pytest.mark.behaviour("KBL-DP-29", shows="action")
def test_what_a_surface_is() -> None:
    bench = picture(format="R8_UINT", width=64, height=8)
    found = bench.send("read_surface_info", regs(0), answer=2, **BOUND).view(u32)
    assert found[8:14].tolist() == [64, 8, 0, 0, 1, NUMBER["R8_UINT"]]
    nothing = Bench(surface={"surface_type": 7}).send("read_surface_info", regs(0), answer=2, **BOUND).view(u32)
    assert nothing[8:11].tolist() == [0, 0, 0]
    with pytest.raises(DecodeError, match="read_surface_info has 1 registers for its answer, too few; 2 are needed"):
        bench.send("read_surface_info", regs(0), answer=1, **BOUND)


@pytest.mark.parametrize(("kind", "array", "told"), [
    (0, 0, [64, 0, 0]), (0, 1, [64, 6, 0]), (1, 0, [64, 8, 0]), (1, 1, [64, 8, 6]), (2, 0, [64, 8, 6])])  # fmt: skip
def test_what_surfaces_of_other_types_are(kind: int, array: int, told: list[int]) -> None:
    """Elements of an array are counted after the dimensions of its type; levels are half as large, but their arrays are not."""
    bench = picture(format="R8_UINT", width=64, height=8 if kind else 1, kind=kind, surface_array=array,
                    depth=5 if array or kind == 2 else 0, mip_count_lod=2)  # fmt: skip
    for level in range(2):
        found = bench.send("read_surface_info", regs(level | 0xABCDEF00), answer=2, **BOUND).view(u32)[8:14]
        halved = [size if array and axis == kind + 1 else size >> level for axis, size in enumerate(told)]
        assert found.tolist() == [*halved, 2, kind, NUMBER["R8_UINT"]]


def test_streamed_writes_put_dwords_of_the_header_into_an_element() -> None:
    """Gen4.5: as many as the format has, once for the message; past the end of the buffer nothing is written (G45 3482)."""
    bench = Bench(gen=4.5, surface={"surface_format": NUMBER["R32G32_FLOAT"], "surface_pitch": 7, "width": 15, "height": 0})
    before = bench.data.array.view(u32).copy()
    for element in (3, 16):
        bench.send("streamed_vertex_buffer_write", header(d0=11, d1=22, d2=33, d3=44, d5=element, d6=7), width=8, mask=0xFF, **BOUND)
    held = bench.data.array.view(u32)
    assert held[6:8].tolist() == [11, 22] and np.flatnonzero(held != before).tolist() == [6, 7]
    for mask in (0, 0x10):
        bench.send("streamed_vertex_buffer_write", header(d0=55, d1=66, d5=4), width=8, mask=mask, **BOUND)
        assert held[8:10].tolist() == ([55, 66] if mask else before[8:10].tolist()), "for any channel"
    with pytest.raises(Unsupported, match="streamed_vertex_buffer_write with message_control 1, which counts: not yet simulated"):
        bench.send("streamed_vertex_buffer_write", header(d5=3), width=8, mask=0xFF, message_control=1, **BOUND)
