"""Media blocks: masks of writes, lines beyond an edge, and what a surface is said to be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from softgen.errors import DecodeError, GpuFault, Unsupported
from softgen.shared_functions.dataport.media import MediaBlock, nearest, pitch, signed
from softgen.shared_functions.dataport.watched import MemoryAccess
from tests.shared_functions.sending import DATA, header
from tests.shared_functions.test_typed import BOUND, PITCH, control, picture, regs

BYTE_MASK, PIXEL_MASK = 2, 1
# Which dword of 4 rows by 8 a bit of the pixel mask means: squares of 2 x 2, in squares of these, and the same again on the right
# (KBL 17758-17762). A row of this table is a row of the block.
PIXELS = (
    (0, 1, 4, 5, 16, 17, 20, 21),
    (2, 3, 6, 7, 18, 19, 22, 23),
    (8, 9, 12, 13, 24, 25, 28, 29),
    (10, 11, 14, 15, 26, 27, 30, 31),
)


def written(mode: int, bits: int, width: int, height: int) -> list[tuple[int, int]]:
    """(row, byte) of what a masked write changes."""
    bench = picture(format="R8_UINT", width=16, height=8)
    bench.data.array[:] = 0
    data = np.full((1 << (width - 1).bit_length()) * height, 9, np.uint8)
    bench.send("media_block_write", header(d2=control(width, height, mode=mode), d3=bits), data, **BOUND)
    return [divmod(int(at), PITCH) for at in np.flatnonzero(bench.data.array)]


@pytest.mark.parametrize("bit", range(32))
def test_every_bit_of_a_pixel_mask_is_a_dword(bit: int) -> None:
    (row,) = (number for number, bits in enumerate(PIXELS) if bit in bits)
    column = PIXELS[row].index(bit)
    assert written(PIXEL_MASK, 1 << bit, 32, 4) == [(row, 4 * column + byte) for byte in range(4)]


@pytest.mark.parametrize("bit", [0, 1, 15, 30, 31])
def test_every_bit_of_a_byte_mask_is_a_byte_of_each_row(bit: int) -> None:
    assert written(BYTE_MASK, 1 << bit, 32, 2) == [(0, bit), (1, bit)]


def test_a_mask_of_all_bits_and_of_none() -> None:
    whole = [(row, byte) for row in range(4) for byte in range(32)]
    assert written(PIXEL_MASK, 0xFFFFFFFF, 32, 4) == written(BYTE_MASK, 0xFFFFFFFF, 32, 4) == whole
    assert written(PIXEL_MASK, 0, 32, 4) == written(BYTE_MASK, 0, 32, 4) == []
    assert written(0, 0, 32, 4) == whole  # no mask


@pytest.mark.parametrize(("width", "height"), [(1, 1), (16, 6), (64, 64)])
def test_a_pixel_mask_covers_four_rows_of_32_bytes_whatever_the_size(width: int, height: int) -> None:
    """KBL 17789-17792."""
    bench = picture(format="R8_UINT", width=16, height=8)
    bench.data.array[:] = 0
    top = header(d2=control(width, height, mode=PIXEL_MASK), d3=0xFFFFFFFF)
    bench.send("media_block_write", top, np.full(128, 9, np.uint8), **BOUND)
    assert [divmod(int(at), PITCH) for at in np.flatnonzero(bench.data.array)] == [(row, byte) for row in range(4) for byte in range(32)]


def test_a_reserved_mode_is_refused() -> None:
    with pytest.raises(DecodeError, match="message_mode 3 is reserved"):
        written(3, 1, 32, 1)


def test_blocks_with_masks_have_32_bytes_a_row_at_most() -> None:
    with pytest.raises(DecodeError, match="32 bytes a row at most, not 33"):
        written(BYTE_MASK, 1, 33, 1)


@pytest.mark.parametrize(("base", "low", "high"), [(0, 0, 0), (0x1_2345_6000, 0x2345_6000, 1), (0xFFFF_F000, 0xFFFF_F000, 0)])
def test_surface_info_has_the_instruction_base(base: int, low: int, high: int) -> None:
    """Dwords 6 and 7 of the first register; the others are zero (KBL 18771-18884)."""
    bench = picture(format="R8_UINT", width=64, height=8)
    bench.port.surfaces.bases = {**bench.port.surfaces.bases, "instruction": base}
    found = bench.send("read_surface_info", regs(0), answer=2, **BOUND).view(np.uint32)
    assert found[:8].tolist() == [0, 0, 0, 0, 0, 0, low, high] and found[14:].tolist() == [0, 0]


def test_rows_take_a_power_of_two_of_bytes_four_at_least() -> None:
    assert [pitch(width) for width in (1, 3, 4, 5, 8, 9, 16, 17, 32, 33, 64)] == [4, 4, 4, 8, 8, 16, 16, 32, 32, 64, 64]
    assert [signed(value) for value in (0, 5, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)] == [0, 5, 0x7FFFFFFF, -0x80000000, -1]


@pytest.mark.parametrize(
    ("mode", "step", "first", "expected"),
    [
        ("normal", 1, 0, {-2: 0, -1: 0, 0: 0, 6: 6, 7: 6, 9: 6}),
        ("normal", 2, 0, {-1: 0, 0: 0, 1: 2, 3: 6, 4: 6}),
        ("normal", 2, 1, {-1: 1, 0: 1, 2: 5, 3: 5}),
        ("progressive_frame", 1, 0, {-1: 0, 3: 3, 7: 6}),
        ("progressive_frame", 2, 0, {-1: 0, 3: 6, 4: 6}),
        ("progressive_frame", 2, 1, {-2: 0, -1: 0, 2: 5, 3: 6, 4: 6}),  # the nearest line of the frame
        ("interlaced_frame", 1, 0, {-2: 0, -1: 1, 0: 0, 6: 6, 7: 5, 8: 6, 9: 5}),  # of the same field
        ("interlaced_frame", 2, 1, {-1: 1, 2: 5, 3: 5}),
    ],
)
def test_lines_beyond_an_edge(mode: str, step: int, first: int, expected: dict[int, int]) -> None:
    """Seven lines; KBL 19156-19176."""
    rows = (7 - first + step - 1) // step
    assert {y: nearest(MediaBlock(0, y, 4, 1, step, first), 0, rows, 7, mode) for y in expected} == expected


@pytest.mark.parametrize(("right", "down"), [(0, 0), (4, 0), (0, 4), (12, 8)])
def test_a_surface_may_begin_inside_a_tile(right: int, down: int) -> None:
    """X offset in four dwords whatever the format, Y offset in four rows (KBL 19691-19694). Reads repeat edges, writes leave them."""
    offsets = {"x_offset": right // 4, "y_offset": down // 4}
    bench = picture(format="R8_UINT", tile="y_major", pitch=128, width=4, height=8, **offsets)

    def place(x: int, y: int) -> int:
        column, row = 4 * right + x, down + y
        return column // 16 * 512 + row * 16 + column % 16

    found = bench.send("media_block_read", header(d0=12, d1=6, d2=control(8, 4)), answer=1, **BOUND).reshape(4, 8)
    expected = [[int(bench.data.array[place(min(12 + x, 15), min(6 + y, 7))]) for x in range(8)] for y in range(4)]
    assert found.tolist() == expected
    held, data = bench.data.array.copy(), np.arange(200, 232, dtype=np.uint8)
    for y in range(2):
        for x in range(4):
            held[place(12 + x, 6 + y)] = data[8 * y + x]
    bench.send("media_block_write", header(d0=12, d1=6, d2=control(8, 4)), data, **BOUND)
    assert bench.data.array.tolist() == held.tolist()


def test_a_null_surface_reads_zero_and_keeps_nothing() -> None:
    """Its block lies in mapped memory, which stays as it is."""
    bench = picture(format="R8_UINT", width=16, height=8, kind=7)
    before = bench.data.array.copy()
    found = bench.send("media_block_read", header(d2=control(8, 4)), answer=1, **BOUND)
    bench.send("media_block_write", header(d2=control(8, 4)), np.full(32, 9, np.uint8), **BOUND)
    assert not found.any() and (bench.data.array == before).all()


def test_a_block_of_256_bytes_is_the_largest() -> None:
    bench = picture(format="R8_UINT", width=16, height=8)
    found = bench.send("media_block_read", header(d2=control(64, 4)), answer=8, **BOUND)
    assert found.tolist() == bench.data.array[: 4 * PITCH].tolist()
    for width, height in ((64, 5), (33, 5), (16, 17)):
        with pytest.raises(DecodeError, match=f"{width} bytes by {height} rows is more than 256 bytes"):
            bench.send("media_block_read", header(d2=control(width, height)), answer=15, **BOUND)


@pytest.mark.parametrize(("kind", "array", "depth", "refused"), [(1, 0, 0, False), (1, 1, 0, False), (1, 1, 1, True), (2, 0, 1, True),
                                                                 (0, 0, 0, True)])  # fmt: skip
def test_blocks_are_those_of_one_picture(kind: int, array: int, depth: int, refused: bool) -> None:
    """An array of one is one; others are refused by name."""
    bench = picture(format="R8_UINT", width=16, height=8 if kind else 1, kind=kind, surface_array=array, depth=depth)
    if refused:
        with pytest.raises(Unsupported, match=r"media_block_read of a \dd surface: not yet simulated"):
            bench.send("media_block_read", header(d2=control(8, 1)), answer=1, **BOUND)
        return
    assert bench.send("media_block_read", header(d2=control(8, 1)), answer=1, **BOUND)[:8].tolist() == bench.data.array[:8].tolist()


@pytest.mark.parametrize(("mode", "stride", "y", "line"), [
    (0, 0, 8, 7), (0, 1, 5, 6), (2, 0, 8, 7), (2, 1, 5, 7), (3, 0, 8, 6), (3, 0, 9, 7), (3, 1, 5, 6), (1, 0, 8, 7), (1, 1, 5, 6),
])  # fmt: skip
def test_a_surface_says_which_line_is_nearest_beyond_its_edge(mode: int, stride: int, y: int, line: int) -> None:
    """Of a frame or of its even lines: by default the last of those that count, in progressive frames the last of all, in interlaced ones
    the last of the same field (KBL 19156-19176)."""
    bench = picture(format="R8_UINT", width=16, height=8, media_boundary_pixel_mode=mode, vertical_line_stride=stride)
    found = bench.send("media_block_read", header(d1=y, d2=control(4, 1)), answer=1, **BOUND)[:4]
    assert found.tolist() == bench.data.array[line * PITCH : line * PITCH + 4].tolist()


@pytest.mark.parametrize("tiling", [0, 2, 3])
def test_accesses_of_blocks_are_told_to_who_watches(tiling: int) -> None:
    """A byte is a lane; bytes that a mask leaves out are not accessed."""
    bench, seen = picture(format="R8_UINT", width=16, height=8, tile_mode=tiling), list[MemoryAccess]()
    bench.port.watch = seen.append
    before = bench.data.array.copy()
    bench.send("media_block_write", header(d2=control(4, 2, mode=BYTE_MASK), d3=0b101), np.arange(200, 232, dtype=np.uint8), **BOUND)
    (write,) = seen
    changed = np.flatnonzero(bench.data.array != before)
    assert write.kind == "write" and sorted(write.addresses - DATA) == changed.tolist()
    assert write.data is not None and np.array_equal(bench.data.array[(write.addresses - DATA).astype(int)], write.data[:, 0])
    bench.send("media_block_read", header(d2=control(4, 2)), answer=1, **BOUND)
    assert seen[1].kind == "read" and len(seen[1].addresses) == 8 and set(write.addresses) <= set(seen[1].addresses)


@pytest.mark.parametrize("surface", [
    {"tile": "linear", "pitch": 32, "height": 9, "width": 7}, {"tile": "y_major", "pitch": 128, "x_offset": 1, "y_offset": 1},
    {"tile": "x_major", "pitch": 512, "vertical_line_stride": 1, "vertical_line_stride_offset": 1, "media_boundary_pixel_mode": 2},
    {"tile": "linear", "pitch": 20, "height": 5, "width": 16, "media_boundary_pixel_mode": 3}, {"format": "R16G16_UINT"},
])  # fmt: skip
def test_compiled_blocks_of_any_place_and_size(surface: dict[str, Any]) -> None:
    """The bench compares each message with the interpreter's: edges, masks, lines, sizes, no channel at all."""
    state: dict[str, Any] = {"format": "R8_UINT", "width": 16, "height": 8}
    bench, random, sent = picture(**state | surface), np.random.default_rng(45), 0
    for number in range(24):
        width, mode = int(random.integers(1, 33)), number % 3
        height = int(random.integers(1, 256 // pitch(width) + 1))
        left, top = (int(value) & 0xFFFFFFFF for value in random.integers((-20, -6), (36, 12)))
        asked = header(d0=left, d1=top, d2=control(width, height, mode=mode), d3=int(random.integers(1 << 32)))
        lines = BOUND | {"vertical_line_stride_override": number // 8 % 2, "vertical_line_stride": 1, "vertical_line_stride_offset": 1}
        bench.send("media_block_read", asked, answer=8, mask=0xFF * (number != 5), **lines)
        bench.send("media_block_write", asked, random.integers(0, 256, 256, np.uint8), mask=0xFF * (number != 7), **lines)
        sent += 2
        assert bench.compiled == sent


@pytest.mark.parametrize("message", ["media_block_read", "media_block_write"])
def test_compiled_blocks_fault_where_nothing_is_mapped(message: str) -> None:
    """The fourth row of 1024 bytes is the last one on the page."""
    bench = picture(format="R8_UINT", width=16, height=8, pitch=1024)
    with pytest.raises(GpuFault) as caught:
        bench.send(message, header(d0=8, d1=2, d2=control(8, 4)), *([np.zeros(32, np.uint8)] * (message == "media_block_write")),
                   answer=message == "media_block_read", **BOUND)  # fmt: skip
    assert caught.value.address == DATA + 4096 + 8 and bench.compiled == 1
