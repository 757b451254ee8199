"""The blitter's commands, compared with the twin on random rectangles, raster operations, depths, tilings and clip rectangles."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest

from softgen.blitter.raster import uses_pattern, uses_source
from softgen.errors import DecodeError, GpuFault, SoftgenError, Unsupported
from softgen.memory.store import MemfdBuffer
from tests.blitter.twin import BATCH, BYTES, DATA, SIZE, Area, BlitBench, twin

GPUS = ("g45", "ivb", "bdw", "kbl", "icl")
TILINGS = {"g45": ("linear", "x_major")}  # no Y-major there (KBL 2569-2574)
COPIES = [code for code in range(256) if not uses_pattern(code)]
FILLS = [code for code in range(256) if not uses_source(code)]
Box = tuple[int, int, int, int]


def corners(box: Box, prefix: str = "destination") -> dict[str, int]:
    return {f"{prefix}_{name}_coordinate": value for name, value in zip(("x1", "y1", "x2", "y2"), box, strict=True)}


def tiled(area: Area, which: str) -> dict[str, Any]:
    """The fields of a command for a surface; tiled pitches count dwords."""
    is_tiled = area.tiling != "linear"
    return {f"{which}_base_address": area.base, f"{which}_pitch": area.pitch >> 2 * is_tiled, f"{which}_tiling_enable": is_tiled}


def controls(depth: int, code: int, mask: int = 3, clip: bool = False) -> dict[str, Any]:
    return {"color_depth": depth, "raster_operation": code, "32bpp_byte_mask": mask, "clipping_enabled": clip}


def copy(bench: BlitBench, depth: int, code: int, box: Box, to: Area, source: Area, **more: Any) -> list[list[int]]:
    command = bench.pack("XY_SRC_COPY_BLT", **controls(depth, code, **more), **corners(box), **tiled(to, "destination"),
                         **tiled(source, "source"), source_x1_coordinate=source.x, source_y1_coordinate=source.y)  # fmt: skip
    switch = [] if bench.engine == "render" else [bench.y_major(source.tiling == "y_major", to.tiling == "y_major")]
    return [*switch, command]


def some_surface(rng: random.Random, tilings: tuple[str, ...], base: int) -> Area:
    tiling = rng.choice(tilings)
    pitch = rng.randrange(256, 700) if tiling == "linear" else rng.choice((512, 1024))
    return Area(base + (rng.randrange(3000) if tiling == "linear" else 0), pitch, tiling, rng.randrange(20), rng.randrange(20))


def some_box(rng: random.Random) -> Box:
    x, y = rng.randrange(30), rng.randrange(30)
    return x, y, x + rng.randrange(1, 45), y + rng.randrange(1, 40)


@pytest.mark.behaviour("KBL-BLT-05", shows="action")
@pytest.mark.parametrize("gpu", GPUS)
def test_copies(gpu: str) -> None:
    rng = random.Random(gpu)
    for _ in range(40):
        bench = BlitBench(gpu, rng.randrange(1 << 30))
        depth, code, mask, box = rng.randrange(4), rng.choice([0xCC, *COPIES]), rng.randrange(4), some_box(rng)
        to, source = (some_surface(rng, TILINGS.get(gpu, ("linear", "x_major", "y_major")), base) for base in (DATA, DATA + SIZE // 2))
        clip = some_box(rng) if rng.random() < 0.4 else None
        expected = twin(bench, bench.memory(), BYTES[depth], box, code, to, source, mask=mask, clip=clip)
        setup = [bench.pack("XY_SETUP_CLIP_BLT", **corners(clip, "cliprect"))] if clip else []
        bench.run(*setup, *copy(bench, depth, code, box, to, source, mask=mask, clip=bool(clip)))
        assert np.array_equal(bench.memory(), expected), (depth, hex(code), mask, box, to, source, clip)


@pytest.mark.behaviour("KBL-BLT-05", shows="action")
@pytest.mark.parametrize("gpu", GPUS)
def test_fills(gpu: str) -> None:
    rng = random.Random(gpu)
    for _ in range(40):
        bench = BlitBench(gpu, rng.randrange(1 << 30))
        depth, code, mask, color = rng.randrange(4), rng.choice([0xF0, *FILLS]), rng.randrange(4), rng.randrange(1 << 32)
        box, clip = some_box(rng), some_box(rng) if rng.random() < 0.4 else None
        to = some_surface(rng, TILINGS.get(gpu, ("linear", "x_major", "y_major")), DATA)
        expected = twin(bench, bench.memory(), BYTES[depth], box, code, to, color=color, mask=mask, clip=clip)
        commands = [bench.y_major(False, to.tiling == "y_major")] if bench.engine == "blitter" else []
        if clip:
            commands.append(bench.pack("XY_SETUP_CLIP_BLT", **corners(clip, "cliprect")))
        bench.run(*commands, bench.pack("XY_COLOR_BLT", **controls(depth, code, mask, bool(clip)), **corners(box),
                                        **tiled(to, "destination"), solid_pattern_color=color))  # fmt: skip
        assert np.array_equal(bench.memory(), expected), (depth, hex(code), mask, box, to, clip)


@pytest.mark.parametrize("tiling", ["linear", "x_major", "y_major"])
def test_a_surface_copied_onto_itself(tiling: str) -> None:
    """Eight directions and none: the source is as it was before the copy."""
    for dx, dy in [(dx, dy) for dx in (-5, 0, 5) for dy in (-3, 0, 3)]:
        bench = BlitBench("kbl", 10 * (dx + 5) + dy + 3)
        surface = Area(DATA, 512, tiling, 20, 10)
        box = (20 + dx, 10 + dy, 90 + dx, 50 + dy)
        expected = twin(bench, bench.memory(), 4, box, 0xCC, surface, surface)
        bench.run(*copy(bench, 3, 0xCC, box, surface, surface))
        assert np.array_equal(bench.memory(), expected), (dx, dy)


@pytest.mark.parametrize("tiling", ["x_major", "y_major"])
@pytest.mark.parametrize("tiles", [-3, -2, -1, 0, 1, 2, 3])
def test_a_surface_copied_onto_one_that_begins_whole_tiles_later(tiling: str, tiles: int) -> None:
    """The same memory under two bases: two tiles are a row of tiles, so the copy goes up or down by whole rows of them. It begins in the
    first tile of a row, or in the second, behind which the next row of tiles is."""
    pitch = {"x_major": 1024, "y_major": 256}[tiling]
    for left, dy in itertools.product((3, pitch // 8 + 3), (-9, -2, 0, 2, 9)):
        bench = BlitBench("kbl", 100 + tiles)
        source = Area(DATA + 8 * 4096, pitch, tiling, 2, 70)
        to = Area(source.base + tiles * 4096, pitch, tiling, 0, 0)
        box = (left, 70 + dy, left + 27, 120 + dy)
        expected = twin(bench, bench.memory(), 4, box, 0xCC, to, source)
        bench.run(*copy(bench, 3, 0xCC, box, to, source))
        assert np.array_equal(bench.memory(), expected) and not bench.gpu.remarks, (left, dy)


@pytest.mark.parametrize("tiling", ["x_major", "y_major"])
def test_a_pitch_of_less_than_a_tile(tiling: str) -> None:
    bench, source = BlitBench("kbl"), Area(DATA + 8 * 4096, 64, tiling, 0, 0)
    to = source._replace(base=source.base + 4096)
    expected = twin(bench, bench.memory(), 4, (0, 0, 10, 6), 0xCC, to, source)
    bench.run(*copy(bench, 3, 0xCC, (0, 0, 10, 6), to, source))
    assert np.array_equal(bench.memory(), expected)


@pytest.mark.parametrize(("start", "to"), [(0, 5), (5, 0)])
def test_rows_that_run_into_the_next_one(start: int, to: int) -> None:
    """Rows as wide as the pitch: what is written at the end of one is where the source of the next begins."""
    bench, surface = BlitBench("kbl"), Area(DATA + 0x1000, 512, "linear", start, 0)
    expected = twin(bench, bench.memory(), 4, (to, 0, to + 126, 10), 0xCC, surface, surface)
    bench.run(*copy(bench, 3, 0xCC, (to, 0, to + 126, 10), surface, surface))
    assert np.array_equal(bench.memory(), expected)


@pytest.mark.parametrize("rows", [-1, 1, 2])
@pytest.mark.parametrize(("tiling", "height"), [("x_major", 8), ("y_major", 32)])
def test_tiled_surfaces_that_begin_a_row_of_tiles_apart_overlap(tiling: str, height: int, rows: int) -> None:
    bench, source = BlitBench("kbl"), Area(DATA + 0x10000, 512, tiling, 0, 0)
    to = source._replace(base=source.base + rows * height * source.pitch)
    expected = twin(bench, bench.memory(), 4, (0, 0, 100, 90), 0xCC, to, source)
    bench.run(*copy(bench, 3, 0xCC, (0, 0, 100, 90), to, source))
    assert np.array_equal(bench.memory(), expected)


@pytest.mark.parametrize("pitch", [600, -600])
@pytest.mark.parametrize("offset", [-1300, -600, -4, 4, 600, 1300])
def test_overlapping_lines_without_coordinates(pitch: int, offset: int) -> None:
    """SRC_COPY_BLT: addresses of first bytes, signed pitches in bytes, widths in bytes."""
    bench, start = BlitBench("kbl"), DATA + 0x10000
    memory = bench.memory()
    expected, to = memory.copy(), start + offset
    for y in range(40):
        read = start - DATA + y * pitch
        expected[to - DATA + y * pitch : to - DATA + y * pitch + 500] = memory[read : read + 500]
    bench.run(bench.pack("SRC_COPY_BLT", color_depth=0, raster_operation=0xCC, destination_pitch=pitch, destination_height=40,
                         destination_width=500, destination_base_address=to, source_pitch=pitch, source_address=start))  # fmt: skip
    assert np.array_equal(bench.memory(), expected)


@pytest.mark.parametrize("gpu", ["g45", "hsw", "skl"])
def test_a_color_without_coordinates(gpu: str) -> None:
    """COLOR_BLT: a width that ends within a pixel writes the pixel's first bytes."""
    bench = BlitBench(gpu)
    expected = bench.memory()
    for y in range(3):
        expected[5 + y * 100 : 5 + y * 100 + 11] = np.frombuffer(b"\x44\x33\x22\x11" * 3, np.uint8)[:11]
    bench.run(bench.pack("COLOR_BLT", **{"32bpp_byte_mask": 3}, color_depth=3, raster_operation=0xF0, destination_pitch=100,
                         destination_height=3, destination_width=11, destination_base_address=DATA + 5,
                         solid_pattern_color=0x11223344))  # fmt: skip
    assert np.array_equal(bench.memory(), expected)


FAST = {"linear": 0, "x_major": 1, "y_major": 2}


@pytest.mark.parametrize("gpu", ["skl", "icl"])
def test_fast_copies(gpu: str) -> None:
    rng = random.Random(gpu)
    for depth, size in ((0, 1), (1, 2), (3, 4), (4, 8), (5, 16)):
        for _ in range(5):
            bench, box = BlitBench(gpu, rng.randrange(1 << 30)), (*(rng.randrange(8) for _ in "xy"), *(rng.randrange(9, 28) for _ in "xy"))
            to, source = (some_surface(rng, tuple(FAST), base)._replace(pitch=512) for base in (DATA, DATA + SIZE // 2))
            source = source._replace(x=source.x % 5)
            in_bytes = (box[0] * size, box[1], box[2] * size, box[3])
            expected = twin(bench, bench.memory(), 1, in_bytes, 0xCC, to, source._replace(x=source.x * size))
            bench.run(fast_copy(bench, depth, box, to, source))
            assert np.array_equal(bench.memory(), expected), (size, box, to, source)


def fast_copy(bench: BlitBench, depth: int, box: Box, to: Area, source: Area, **more: int) -> list[int]:
    fields: dict[str, Any] = {}
    for area, which in ((to, "destination"), (source, "source")):
        fields |= {f"{which}_base_address": area.base, f"{which}_pitch": area.pitch >> 2 * (area.tiling != "linear"),
                   f"{which}_tiling_method": FAST.get(area.tiling, 2)}  # fmt: skip
    return bench.pack("XY_FAST_COPY_BLT", color_depth=depth, **corners(box), **{**fields, **more}, source_x1_coordinate=source.x,
                      source_y1_coordinate=source.y)  # fmt: skip


@pytest.mark.parametrize(("method", "kind", "columns", "bits"), [
    (2, 1, 128, "XYXYXYYYXXXX"), (3, 0, 512, "XYXYXYXYXYYYXXXX"),
])  # fmt: skip
def test_fast_copies_from_yf_and_ys(method: int, kind: int, columns: int, bits: str) -> None:
    """A 32-bit picture one tile wide, out of its tiles into lines; the bits of a tile's offset are written out here."""
    bench = BlitBench("skl")
    memory, height = bench.memory(), 40
    expected = memory.copy()
    for y in range(height):
        for x in range(columns):
            left = {"X": x, "Y": y % (1 << bits.count("Y"))}
            inside = 0
            for at, letter in enumerate(reversed(bits)):
                inside |= (left[letter] & 1) << at
                left[letter] >>= 1
            expected[0x20000 + y * columns + x] = memory[(y >> bits.count("Y") << len(bits)) + inside]
    to, source = Area(DATA + 0x20000, columns, "linear", 0, 0), Area(DATA, columns, "tiled", 0, 0)
    bench.run(fast_copy(bench, 3, (0, 0, columns // 4, height), to, source, source_tiling_method=method, source_tile_y_type=kind))
    assert np.array_equal(bench.memory(), expected)


@pytest.mark.behaviour("KBL-BLT-04", shows="action")
def test_rows_across_4_gib_with_48_bit_addresses() -> None:
    base = 0x7F_0000_0000 - SIZE // 2
    bench = BlitBench("bdw", data=base)
    to, source = Area(base + SIZE // 2 - 700, 1000, "linear", 0, 0), Area(base, 1000, "linear", 3, 1)
    expected = twin(bench, bench.memory(), 4, (0, 0, 240, 5), 0xCC, to, source)
    bench.run(*copy(bench, 3, 0xCC, (0, 0, 240, 5), to, source))
    assert np.array_equal(bench.memory(), expected)


def test_negative_coordinates() -> None:
    bench, surface = BlitBench("ivb"), Area(DATA + 0x8000, 512, "x_major", -30, -9)
    to = surface._replace(base=DATA + 0x20000)
    expected = twin(bench, bench.memory(), 4, (-40, -20, 3, 5), 0xCC, to, surface)
    bench.run(*copy(bench, 3, 0xCC, (-40, -20, 3, 5), to, surface))
    assert np.array_equal(bench.memory(), expected)


# -- setup -------------------------------------------------------------------------------------------------------------


def fill(bench: BlitBench, box: Box, clip: bool = True, **more: Any) -> list[int]:
    values = {**controls(0, 0xF0, clip=clip), "destination_base_address": DATA, "destination_pitch": 64, "solid_pattern_color": 7, **more}
    return bench.pack("XY_COLOR_BLT", **corners(box), **values)


def test_the_last_setup_command_has_the_clip_rectangle() -> None:
    bench = BlitBench("hsw")
    bench.space.write(DATA, bytes(0x1000))
    whole = bench.pack("XY_SETUP_BLT", **corners((0, 0, 4, 4), "cliprect"))
    bench.run(whole, bench.pack("XY_SETUP_CLIP_BLT", **corners((2, 1, 5, 3), "cliprect")), fill(bench, (0, 0, 64, 64)))
    assert np.argwhere(bench.memory()[:0x1000].reshape(64, 64)).tolist() == [[y, x] for y in (1, 2) for x in (2, 3, 4)]
    bench.space.write(DATA, bytes(0x1000))
    bench.run(fill(bench, (0, 0, 3, 2)))  # the context keeps it
    assert np.argwhere(bench.memory()[:0x1000].reshape(64, 64)).tolist() == [[1, 2]]
    bench.run(whole, fill(bench, (3, 3, 64, 64)))
    assert np.argwhere(bench.memory()[:0x1000].reshape(64, 64)).tolist() == [[1, 2], [3, 3]]


def test_a_new_context_clips_everything() -> None:
    bench = BlitBench("kbl")
    before = bench.memory()
    bench.run(fill(bench, (0, 0, 64, 64)))
    assert np.array_equal(bench.memory(), before)


@pytest.mark.parametrize("gpu", ["g45", "kbl"])
def test_solid_scanlines_and_pixels(gpu: str) -> None:
    """The setup command has depth, raster operation, destination, clip rectangle and the colour: its background."""
    bench, to = BlitBench(gpu), Area(DATA, 512, "x_major", 0, 0)
    held = {**controls(1, 0x5A, clip=True), **tiled(to, "destination"), **corners((0, 0, 30, 30), "cliprect"), "background_color": 0x1234}
    expected = twin(bench, bench.memory(), 2, (10, 20, 50, 24), 0x5A, to, color=0x1234, clip=(0, 0, 30, 30))
    expected = twin(bench, expected, 2, (3, 4, 4, 5), 0x5A, to, color=0x1234)
    bench.run(bench.pack("XY_SETUP_MONO_PATTERN_SL_BLT", **held, solid_pattern_select=True),
              bench.pack("XY_SCANLINES_BLT", **corners((10, 20, 50, 24)), destination_tiling_enable=True),
              bench.pack("XY_PIXEL_BLT", destination_x1_coordinate=3, destination_y1_coordinate=4, destination_tiling_enable=True))
    assert np.array_equal(bench.memory(), expected)


def test_scanlines_whose_raster_operation_has_no_pattern_read_none() -> None:
    """The setup command's pattern would be at address 0, where nothing is mapped."""
    bench, to = BlitBench("kbl"), Area(DATA, 512, "linear", 0, 0)
    expected = twin(bench, bench.memory(), 4, (1, 2, 9, 8), 0x55, to)
    bench.run(bench.pack("XY_SETUP_BLT", **controls(3, 0x55), **tiled(to, "destination")),
              bench.pack("XY_SCANLINES_BLT", **corners((1, 2, 9, 8))))  # fmt: skip
    assert np.array_equal(bench.memory(), expected) and not bench.gpu.remarks


@pytest.mark.parametrize("name", ["XY_PIXEL_BLT", "XY_SCANLINES_BLT", "XY_TEXT_BLT", "XY_TEXT_IMMEDIATE_BLT"])
def test_pixels_scanlines_and_text_need_a_setup_command(name: str) -> None:
    bench = BlitBench("kbl")
    with pytest.raises(DecodeError, match=rf"{name} at 0x10000 .*no XY_SETUP_BLT"):
        bench.run(bench.pack(name))


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_what_is_not_built_says_so_by_name() -> None:
    bench, area = BlitBench("kbl"), Area(DATA, 512, "linear", 0, 0)
    with pytest.raises(Unsupported, match=r"XY_SRC_COPY_BLT at .*raster_operation 0xc0, which depends on a pattern"):
        bench.run(*copy(bench, 3, 0xC0, (0, 0, 1, 1), area, area))
    with pytest.raises(Unsupported, match=r"XY_COLOR_BLT at .*raster_operation 0x66, which depends on a source"):
        bench.run(fill(bench, (0, 0, 1, 1), raster_operation=0x66))
    with pytest.raises(Unsupported, match=r"XY_MONO_PAT_FIXED_BLT at .*not yet simulated"):
        bench.run(bench.pack("XY_MONO_PAT_FIXED_BLT"))
    with pytest.raises(DecodeError, match=r"XY_FAST_COPY_BLT at .*color_depth 2 is reserved"):
        bench.run(fast_copy(bench, 2, (0, 0, 1, 1), area, area))


def test_blits_belong_to_the_blitter_engine() -> None:
    for gpu, engine in (("kbl", "render"), ("g45", "blitter")):
        bench = BlitBench(gpu)
        with pytest.raises(DecodeError, match="is no command"):
            bench.run(fill(bench, (0, 0, 1, 1)), engine=engine)


def test_surfaces_off_their_tiles_are_remarked() -> None:
    bench, area = BlitBench("kbl"), Area(DATA + 0x800, 512, "x_major", 0, 0)
    bench.run(*copy(bench, 3, 0xCC, (0, 0, 1, 1), area, Area(DATA, 1000, "x_major", 0, 0)))
    text = "\n".join(bench.gpu.remarks)
    assert "x_major surface at 0x100800, which is not aligned to 4096 bytes" in text
    assert "pitch of 1000 bytes is not a multiple of 512, the width of a x_major tile" in text


# -- faults and hostile sizes ------------------------------------------------------------------------------------------


def test_a_fault_names_the_first_byte_and_the_command() -> None:
    bench = BlitBench("kbl")
    with pytest.raises(GpuFault, match=r"write.*0x140000.*XY_COLOR_BLT at 0x10000") as found:
        bench.run(fill(bench, (0, 0, 64, 40), clip=False, destination_base_address=DATA + SIZE - 32 * 64 - 10))
    assert found.value.address == DATA + SIZE
    assert (bench.memory()[SIZE - 32 * 64 - 10 :] == 7).all()  # rows before it are written
    source = Area(DATA - 300, 100, "linear", 0, 0)
    with pytest.raises(GpuFault, match="read") as found:
        bench.run(*copy(bench, 0, 0xCC, (0, 0, 64, 40), Area(DATA, 64, "linear", 0, 0), source))
    assert found.value.address == DATA - 300


@pytest.mark.parametrize("width", [1, 3, 7, 20, 40, 100, 300, 700, 1000, 1500, 3000])
def test_a_row_faults_at_its_first_byte(width: int) -> None:
    bench, there, not_there = BlitBench("kbl"), Area(DATA, 4096, "linear", 0, 0), Area(0x800000, 4096, "linear", 5, 0)
    for to, source in ((there, not_there), (not_there, there)):
        with pytest.raises(GpuFault) as found:
            bench.run(*copy(bench, 0, 0xCC, (to.x, 0, to.x + width, 2), to, source))
        assert found.value.address == not_there.base + not_there.x


def test_addresses_wrap_around_at_the_end_of_the_space() -> None:
    bench, last = BlitBench("ivb"), MemfdBuffer(0x1000, "last")
    bench.space.map(0xFFFFF000, last)
    bench.run(fill(bench, (-8, 0, -3, 1), clip=False, destination_base_address=0))
    assert bench.space.read(0xFFFFFFF0, 16) == bytes(8) + b"\x07" * 5 + bytes(3)


def test_memory_that_is_read_only_is_not_written() -> None:
    bench = BlitBench("ivb")
    bench.space.unmap(DATA, SIZE)
    bench.space.map(DATA, bench.buffer, writable=False)
    before = bench.memory()
    with pytest.raises(GpuFault, match="'data' is mapped read-only"):
        bench.run(fill(bench, (0, 0, 4, 4), clip=False))
    assert np.array_equal(bench.memory(), before)


@pytest.mark.parametrize("box", [(5, 5, 5, 9), (5, 5, 9, 5), (9, 5, 5, 9), (5, 9, 9, 5), (32767, 0, -32768, 9)])
def test_empty_rectangles_touch_nothing(box: Box) -> None:
    bench = BlitBench("kbl")
    before = bench.memory()
    bench.run(fill(bench, box, clip=False, destination_base_address=0))  # where nothing is mapped: a single pixel would be a fault
    bench.run(fill(bench, box, clip=False))
    assert np.array_equal(bench.memory(), before)


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("tiling", ["linear", "x_major", "y_major"])
def test_the_largest_rectangle_faults(gpu: str, tiling: str) -> None:
    bench = BlitBench(gpu)
    box, pitch = (-32768, -32768, 32767, 32767), -32768 * (1 if tiling == "linear" else 4)
    area = Area((1 << bench.space.bits) - 4096 & 0xFFFF_FFFF_F000, pitch, tiling, 32767, 32767)
    with pytest.raises(GpuFault):
        bench.run(*copy(bench, 3, 0x66, box, area, area._replace(base=DATA)))


def test_a_blit_that_takes_for_ever_is_stopped() -> None:
    """Rows without pitch: 2^32 bytes are written to the same place."""
    polls = iter([False] * 4)
    bench = BlitBench("kbl", timed_out=lambda: next(polls, True))
    with pytest.raises(SoftgenError, match=r"XY_COLOR_BLT at 0x10000 .*time is up: \d+ of 65535 rows left"):
        bench.run(fill(bench, (-32768, -32768, 32767, 32767), clip=False, destination_pitch=0, destination_base_address=DATA + 0x8000))


def test_a_blit_over_its_own_batch() -> None:
    """Commands after a blit are read when it is done."""
    bench = BlitBench("kbl")
    first = fill(bench, (0, 0, 16, 1), clip=False, destination_base_address=BATCH + 28, solid_pattern_color=0)
    bench.run(first, [0xFFFFFFFF] * 4)  # no command; the blit makes them MI_NOOP
    assert bench.space.read(BATCH + 28, 16) == bytes(16)
