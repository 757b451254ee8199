"""Blits with patterns, monochrome sources and ranges of transparent colours, pixel by pixel again."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from softgen.bits.catalogue import layout
from softgen.blitter import operands
from softgen.errors import DecodeError, SoftgenError, Unsupported
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from tests.blitter.test_commands import GPUS, TILINGS, controls, corners, some_box, some_surface, tiled
from tests.blitter.twin import BATCH, BYTES, DATA, SIZE, Area, BlitBench, Bytes, combined, pixels

KINDS = {1: np.uint8, 2: np.uint16, 4: np.uint32}
PATTERN, SOURCE = DATA + 0x30000, DATA + 0x20000  # of 256 bytes; in memory
COLORS = 0x89ABCDEF, 0x10325476
BITS = bytes.fromhex("8040201008040281")


def pattern_at(bench: BlitBench, size: int, x: int, y: int, across: int, down: int) -> Any:
    colors = np.frombuffer(bench.space.read(PATTERN, 64 * size), KINDS[size]).reshape(8, 8)
    return colors[(y + down) % 8, (x + across) % 8]


def bit(data: bytes, row: int, column: int) -> bool:
    return bool(data[row] >> 7 - column & 1)


def after(bench: BlitBench, memory: Bytes, size: int, box: Any, to: Area, code: int, pattern: Any, source: Any, lit: Any,
          mask: int = 3) -> Bytes:  # fmt: skip
    """Memory after a blit, from functions of a pixel's place: its pattern and source, and whether it is written, which sees both sides."""
    result, (x1, y1, x2, y2) = memory.copy(), box
    places = pixels(to._replace(x=x1, y=y1), size, x2 - x1, y2 - y1) - bench.data
    keep = {3: 0, 1: 0xFF000000, 2: 0x00FFFFFF, 0: 0xFFFFFFFF}[mask] if size == 4 else 0
    for y in range(y1, y2):
        for x in range(x1, x2):
            at = places[y - y1, (x - x1) * size : (x - x1 + 1) * size]
            held = memory[at].view(KINDS[size])
            p, s = (np.array([value], np.uint32).astype(KINDS[size]) for value in (pattern(x, y), source(x, y)))
            new = combined(code, p, s, held)
            new = new & KINDS[size](~keep & 0xFFFFFFFF >> 32 - 8 * size) | held & KINDS[size](keep & 0xFFFFFFFF >> 32 - 8 * size)
            if lit(x, y, int(s[0]), int(held[0])):
                result[at] = new.view(np.uint8)
    return result


def always(x: int, y: int, source: int, held: int) -> bool:
    return True


def nothing(x: int, y: int) -> int:
    return 0


def setting(rng: random.Random, gpu: str) -> tuple[BlitBench, int, int, Any, Area]:
    bench, depth = BlitBench(gpu, rng.randrange(1000)), rng.randrange(4)
    to = some_surface(rng, TILINGS.get(gpu, ("linear", "x_major", "y_major")), DATA)
    return bench, depth, BYTES[depth], some_box(rng), to


def switch(bench: BlitBench, to: Area, source: Area | None = None) -> list[list[int]]:
    y_source = source is not None and source.tiling == "y_major"
    return [] if bench.engine == "render" else [bench.y_major(y_source, to.tiling == "y_major")]


@pytest.mark.behaviour("KBL-BLT-07", shows="action")
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("kind", ["memory", "immediate", "monochrome", "transparent"])
def test_patterns_of_8_by_8_pixels(gpu: str, kind: str) -> None:
    """Their seeds are the pixel at X and Y 0; monochrome bits choose between two colours, or between a colour and nothing."""
    rng = random.Random(f"{gpu} {kind}")
    for code in (0xF0, 0x5A, 0xA0, 0xFF):
        bench, depth, size, box, to = setting(rng, gpu)
        across, down = rng.randrange(8), rng.randrange(8)
        fields: dict[str, Any] = {**controls(depth, code), **corners(box), **tiled(to, "destination"), "pattern_horizontal_seed": across,
                                  "pattern_vertical_seed": down}  # fmt: skip
        seen, lit = (lambda x, y: pattern_at(bench, size, x, y, across, down)), always  # noqa: B023
        if kind == "memory":
            command = bench.pack("XY_PAT_BLT", pattern_base_address=PATTERN, **fields)
        elif kind == "immediate":
            data = np.frombuffer(bench.space.read(PATTERN, 64 * size), np.uint32).tolist()
            command = bench.pack("XY_PAT_BLT_IMMEDIATE", immediate_data=[{"dword": dword} for dword in data], **fields)
        else:
            first, second = (int.from_bytes(BITS[at : at + 4], "little") for at in (0, 4))
            command = bench.pack("XY_MONO_PAT_BLT", pattern_foreground_color=COLORS[0], pattern_background_color=COLORS[1],
                                 pattern_data_0=first, pattern_data_1=second,
                                 monochrome_pattern_transparency_mode=kind == "transparent", **fields)  # fmt: skip
            on = lambda x, y: bit(BITS, (y + down) % 8, (x + across) % 8)  # noqa: B023, E731
            seen = lambda x, y: COLORS[0] if on(x, y) else COLORS[1]  # noqa: B023, E731
            lit = (lambda x, y, s, d: on(x, y)) if kind == "transparent" else always  # noqa: B023
        before = bench.memory()
        wanted = after(bench, before, size, box, to, code, seen, nothing, lit)
        bench.run(*switch(bench, to), command)
        assert np.flatnonzero(bench.memory() != wanted).tolist() == []


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("transparent", [0, 1])
@pytest.mark.parametrize("immediate", [False, True])
def test_monochrome_sources(gpu: str, transparent: int, immediate: bool) -> None:
    """Rows begin with a word, at a bit of its first byte; the highest bit is the leftmost pixel."""
    rng = random.Random(f"{gpu} {transparent} {immediate}")
    for code in (0xCC, 0x66):
        bench, depth, size, box, to = setting(rng, gpu)
        start, (width, height) = rng.randrange(8), (box[2] - box[0], box[3] - box[1])
        row = -(-(start + width) // 16) * 2
        held = bench.space.read(SOURCE, row * height + 4)
        fields = {**controls(depth, code), **corners(box), **tiled(to, "destination"), "monochrome_source_start": start,
                  "monochrome_source_transparency_mode": transparent, "source_foreground_color": COLORS[0],
                  "source_background_color": COLORS[1]}  # fmt: skip
        if immediate:
            data = np.frombuffer(held[: (row * height + 3) // 4 * 4], np.uint32).tolist()
            command = bench.pack("XY_MONO_SRC_COPY_IMMEDIATE_BLT", immediate_data=[{"dword": dword} for dword in data], **fields)
        else:
            command = bench.pack("XY_MONO_SRC_COPY_BLT", source_address=SOURCE, **fields)

        def on(x: int, y: int) -> bool:
            column = x - box[0] + start  # noqa: B023
            return bit(held[(y - box[1]) * row :], column // 8, column % 8)  # noqa: B023

        before = bench.memory()
        wanted = after(bench, before, size, box, to, code, nothing, lambda x, y: COLORS[0] if on(x, y) else COLORS[1],
                       (lambda x, y, s, d: on(x, y)) if transparent else always)  # fmt: skip
        bench.run(*switch(bench, to), command)
        assert np.flatnonzero(bench.memory() != wanted).tolist() == []


COMPONENTS = {0: (8,), 1: (5, 6, 5), 2: (5, 5, 5, 1), 3: (8, 8, 8, 8)}


def in_range(pixel: int, low: int, high: int, depth: int, alpha: bool) -> bool:
    at, found = 0, True
    for number, bits in enumerate(COMPONENTS[depth]):
        value, least, most = (each >> at & (1 << bits) - 1 for each in (pixel, low, high))
        found, at = found and (least <= value <= most or number == 3 and not alpha), at + bits
    return found


@pytest.mark.behaviour("KBL-BLT-03", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("mode", [0, 1, 3, 5, 7])
def test_a_range_of_colours_may_be_transparent(gpu: str, mode: int) -> None:
    """Each component is compared: sources outside the range are written, or pixels whose destination is inside."""
    rng = random.Random(f"{gpu} {mode}")
    for code in (0xCC, 0x66):
        bench, depth, size, box, to = setting(rng, gpu)
        source = some_surface(rng, TILINGS.get(gpu, ("linear", "x_major", "y_major")), SOURCE)
        low, high = 0x20182008, 0xE0F7DFD9
        read = pixels(source, size, box[2] - box[0], box[3] - box[1]) - DATA
        before = bench.memory()
        taken = before[read].view(KINDS[size])

        def lit(x: int, y: int, s: int, d: int) -> bool:
            inside = in_range(s if mode in (1, 3) else d, low, high, depth, mode in (3, 5))  # noqa: B023
            return not inside if mode in (1, 3) else inside if mode else True

        command = bench.pack("XY_SRC_COPY_CHROMA_BLT", **controls(depth, code), **corners(box), **tiled(to, "destination"),
                             **tiled(source, "source"), source_x1_coordinate=source.x, source_y1_coordinate=source.y,
                             transparency_range_mode=mode, transparency_color_low=low, transparency_color_high=high)  # fmt: skip
        wanted = after(bench, before, size, box, to, code, nothing, lambda x, y: int(taken[y - box[1], x - box[0]]), lit)  # noqa: B023
        bench.run(*switch(bench, to, source), command)
        changed = np.flatnonzero(bench.memory() != wanted).tolist()
        assert changed == []


@pytest.mark.parametrize("depth, mode, low, high, pixel, inside", [
    (0, 1, 0x100, 0xFFF7F, 0x7F, True), (0, 1, 0x100, 0xFFF7F, 0x80, False),  # bits above the pixel's are no part of a colour
    (1, 3, 0x10000, 0xFFFF, 0xF81F, True), (1, 3, 0x0801, 0xFFFF, 0xF801, True), (1, 3, 0x0801, 0xFFFF, 0xF800, False),
    (1, 3, 0, 0x07FF, 0x07FF, True), (1, 3, 0, 0x07FF, 0x0800, False), (1, 3, 0, 0xF81F, 0x0020, False),
    (2, 3, 0x10000, 0x7FFF, 0x7FFF, True), (2, 3, 0, 0x7FFF, 0x8000, False), (2, 3, 0x8000, 0xFFFF, 0x7FFF, False),
    (2, 1, 0x8000, 0xFFFF, 0x7FFF, True), (2, 5, 0, 0x17FFF, 0x8000, False), (2, 7, 0, 0x7FFF, 0x8000, True),
    (2, 1, 0, 0xFC1F, 0x0020, False), (2, 1, 0, 0x83FF, 0x0400, False), (2, 1, 0, 0x03FF, 0x03FF, True),
    (3, 3, 0x01000000, 0xFFFFFFFF, 0x00FFFFFF, False), (3, 1, 0x01000000, 0xFFFFFFFF, 0x00FFFFFF, True),
])  # fmt: skip
def test_the_components_of_a_colour_in_a_range(depth: int, mode: int, low: int, high: int, pixel: int, inside: bool) -> None:
    """8 bits; 5, 6 and 5; 5, 5, 5 and 1 of alpha; 8 each. Modes 3 and 5 compare alpha as well (KBL 2592-2622)."""
    command = BlitBench("kbl").pack("XY_SRC_COPY_CHROMA_BLT", color_depth=depth, transparency_range_mode=mode, transparency_color_low=low,
                                    transparency_color_high=high)  # fmt: skip
    record, seen = layout("XY_SRC_COPY_CHROMA_BLT", 9).unpack(command), np.array([[pixel]], KINDS[BYTES[depth]])
    lit = operands.keyed(record, seen if mode in (1, 3) else None, seen)
    assert lit is not None and lit.tolist() == [[inside == (mode in (5, 7))]]


@pytest.mark.behaviour("KBL-BLT-07", shows="action")
@pytest.mark.parametrize("gpu", ["bdw", "kbl"])
@pytest.mark.parametrize("mono_source", [False, True])
@pytest.mark.parametrize("mono_pattern", [False, True])
def test_all_operands_together(gpu: str, mono_source: bool, mono_pattern: bool) -> None:
    """Raster operations of three operands, byte masks, and a clip rectangle that leaves pattern and source where they are."""
    rng = random.Random(f"{gpu} {mono_source} {mono_pattern}")
    names = {(False, False): "XY_FULL_BLT", (True, False): "XY_FULL_MONO_SRC_BLT", (False, True): "XY_FULL_MONO_PATTERN_BLT",
             (True, True): "XY_FULL_MONO_PATTERN_MONO_SRC_BLT"}  # fmt: skip
    for code, mask in ((0xCA, 3), (0xE2, 1), (0x96, 2)):
        bench, depth, size, box, to = setting(rng, gpu)
        clip = box[0] + 3, box[1] + 2, box[2] - 1, box[3] - 2
        if clip[2] <= clip[0] or clip[3] <= clip[1]:
            clip = box
        source, before = Area(SOURCE, 256, "linear", 3, 4), bench.memory()
        fields: dict[str, Any] = {**controls(depth, code, mask, clip=True), **corners(box), **tiled(to, "destination"),
                                  "pattern_horizontal_seed": 3, "pattern_vertical_seed": 5}  # fmt: skip
        read = pixels(source, size, box[2] - box[0], box[3] - box[1]) - DATA
        taken = before[read].view(KINDS[size])
        row = -(-(box[2] - box[0]) // 16) * 2
        bits = bench.space.read(SOURCE, row * (box[3] - box[1]) + 2)
        seen: Any = lambda x, y: int(taken[y - box[1], x - box[0]])  # noqa: B023, E731
        of: Any = lambda x, y: pattern_at(bench, size, x, y, 3, 5)  # noqa: B023, E731
        if mono_source:
            fields |= {"source_address": SOURCE, "source_foreground_color": COLORS[0], "source_background_color": COLORS[1]}
            seen = lambda x, y: COLORS[not bit(bits[(y - box[1]) * row :], (x - box[0]) // 8, (x - box[0]) % 8)]  # noqa: B023, E731
        else:
            fields |= {**tiled(source, "source"), "source_x1_coordinate": 3, "source_y1_coordinate": 4}
        if mono_pattern:
            first, second = (int.from_bytes(BITS[at : at + 4], "little") for at in (0, 4))
            fields |= {"pattern_foreground_color": COLORS[1], "pattern_background_color": COLORS[0], "pattern_data_0": first,
                       "pattern_data_1": second}  # fmt: skip
            of = lambda x, y: COLORS[bit(BITS, (y + 5) % 8, (x + 3) % 8)]  # noqa: E731
        else:
            fields["pattern_base_address"] = PATTERN
        wanted = after(bench, before, size, clip, to, code, of, seen, always, mask)
        rectangle = bench.pack("XY_SETUP_CLIP_BLT", **corners(clip, "cliprect"))
        bench.run(*switch(bench, to), rectangle, bench.pack(names[mono_source, mono_pattern], **fields))
        assert np.flatnonzero(bench.memory() != wanted).tolist() == []


# -- setup commands ----------------------------------------------------------------------------------------------------


def held_by_setup(rng: random.Random, depth: int, code: int, to: Area, box: Any) -> tuple[dict[str, Any], int, Any]:
    """Fields of a setup command, its byte mask, and what is left of a box in its clip rectangle."""
    mask, clip = rng.randrange(4), (box[0] + rng.randrange(3), box[1] + rng.randrange(3), 60, 60)
    left = max(box[0], clip[0]), max(box[1], clip[1]), max(min(box[2], clip[2]), clip[0]), max(min(box[3], clip[3]), clip[1])
    return {**controls(depth, code, mask, clip=True), **tiled(to, "destination"), **corners(clip, "cliprect"),
            "foreground_color": COLORS[0], "background_color": COLORS[1]}, mask, left  # fmt: skip


@pytest.mark.behaviour("KBL-BLT-02", shows="action")
@pytest.mark.behaviour("KBL-BLT-07", shows="action")
@pytest.mark.behaviour("KBL-BLT-08", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("kind", ["memory", "monochrome", "transparent", "solid", "solid transparent"])
def test_scanlines_with_the_pattern_of_a_setup_command(gpu: str, kind: str) -> None:
    """The seeds are of the scan lines; pattern, colours, depth, raster operation, byte mask and clip rectangle of the setup command. All
    bits of a solid pattern are 0."""
    rng = random.Random(f"{gpu} {kind}")
    for code in (0xF0, 0x5A, 0xA0, 0x55):
        bench, depth, size, box, to = setting(rng, gpu)
        across, down = rng.randrange(8), rng.randrange(8)
        held, mask, left = held_by_setup(rng, depth, code, to, box)
        bits = bytes(8) if "solid" in kind else BITS
        on = lambda x, y: bit(bits, (y + down) % 8, (x + across) % 8)  # noqa: B023, E731
        if kind == "memory":
            setup = bench.pack("XY_SETUP_BLT", pattern_base_address=PATTERN, **held)
            seen: Any = lambda x, y: pattern_at(bench, size, x, y, across, down)  # noqa: B023, E731
        else:
            first, second = (int.from_bytes(BITS[at : at + 4], "little") for at in (0, 4))
            setup = bench.pack("XY_SETUP_MONO_PATTERN_SL_BLT", pattern_data_0=first, pattern_data_1=second,
                               monochrome_pattern_transparency_mode="transparent" in kind, solid_pattern_select="solid" in kind,
                               **held)  # fmt: skip
            seen = lambda x, y: COLORS[not on(x, y)]  # noqa: B023, E731
        lit = (lambda x, y, s, d: on(x, y)) if "transparent" in kind else always  # noqa: B023
        wanted = after(bench, bench.memory(), size, left, to, code, seen, nothing, lit, mask)
        lines = bench.pack("XY_SCANLINES_BLT", **corners(box), destination_tiling_enable=to.tiling != "linear",
                           pattern_horizontal_seed=across, pattern_vertical_seed=down)  # fmt: skip
        bench.run(*switch(bench, to), setup, lines)
        assert np.flatnonzero(bench.memory() != wanted).tolist() == []


@pytest.mark.behaviour("KBL-BLT-01", shows="action")
@pytest.mark.behaviour("KBL-BLT-08", shows="action")
@pytest.mark.covering(2)
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("transparent", [False, True])
@pytest.mark.parametrize("packing", [0, 1])
@pytest.mark.parametrize("name", ["XY_TEXT_BLT", "XY_TEXT_IMMEDIATE_BLT"])
def test_text(gpu: str, name: str, packing: int, transparent: bool) -> None:
    """Rows of bits without a gap, or rows that begin with a byte, in the colours of either setup command; clipping leaves the bits where
    they are. The raster operation and byte mask are the setup command's."""
    rng = random.Random(f"{gpu} {name} {packing} {transparent}")
    for code in (0xCC, 0x66):
        bench, depth, size, box, to = setting(rng, gpu)
        held, mask, left = held_by_setup(rng, depth, code, to, box)
        width, height = box[2] - box[0], box[3] - box[1]
        row = -(-width // 8) * 8 if packing else width
        data = bench.space.read(SOURCE, -(-row * height // 32) * 4)
        setup = bench.pack(rng.choice(["XY_SETUP_BLT", "XY_SETUP_MONO_PATTERN_SL_BLT"]),
                           monochrome_source_transparency_mode=transparent, **held)  # fmt: skip
        fields: dict[str, Any] = {**corners(box), "packing": packing, "destination_tiling_enable": to.tiling != "linear"}
        if name == "XY_TEXT_BLT":
            fields["source_address"] = SOURCE
        else:
            fields["immediate_data"] = [{"dword": dword} for dword in np.frombuffer(data, np.uint32).tolist()]

        def on(x: int, y: int) -> bool:
            place = (y - box[1]) * row + x - box[0]  # noqa: B023
            return bit(data, place // 8, place % 8)  # noqa: B023

        wanted = after(bench, bench.memory(), size, left, to, code, nothing, lambda x, y: COLORS[not on(x, y)],
                       (lambda x, y, s, d: on(x, y)) if transparent else always, mask)  # fmt: skip
        bench.run(*switch(bench, to), setup, bench.pack(name, **fields))
        assert np.flatnonzero(bench.memory() != wanted).tolist() == []


@pytest.mark.parametrize("clip", [(0, 0, 13, 31), (5, 0, 6, 31)])
def test_rows_of_text_that_are_packed_bit_by_bit_are_read_where_they_begin(monkeypatch: pytest.MonkeyPatch, clip: Any) -> None:
    """A blit in parts: each begins within a byte of the source, and reads as many rows of it, however much is clipped."""
    counts, monochrome = [], operands.monochrome
    monkeypatch.setattr(operands, "monochrome", lambda *given: (counts.append(given[-1]), monochrome(*given))[1])
    monkeypatch.setattr("softgen.blitter.commands.AT_ONCE", 13 * 3)
    bench, box, to = BlitBench("kbl"), (0, 0, 13, 31), Area(DATA, 64, "linear", 0, 0)
    data = bench.space.read(SOURCE, 64)
    on = lambda x, y: bit(data, (13 * y + x) // 8, (13 * y + x) % 8)  # noqa: E731
    wanted = after(bench, bench.memory(), 1, clip, to, 0xCC, nothing, lambda x, y: COLORS[not on(x, y)], always)
    setup = bench.pack("XY_SETUP_BLT", **controls(0, 0xCC, clip=True), **tiled(to, "destination"), **corners(clip, "cliprect"),
                       foreground_color=COLORS[0], background_color=COLORS[1])  # fmt: skip
    bench.run(setup, bench.pack("XY_TEXT_BLT", **corners(box), source_address=SOURCE))
    assert counts == [3] * 10 + [1]
    assert np.flatnonzero(bench.memory() != wanted).tolist() == []


def test_what_text_and_scanlines_refuse() -> None:
    bench, area = BlitBench("kbl"), Area(DATA, 512, "linear", 0, 0)
    before = bench.memory()

    def setup(code: int) -> list[int]:
        return bench.pack("XY_SETUP_BLT", **controls(3, code), **tiled(area, "destination"), pattern_base_address=PATTERN)

    with pytest.raises(Unsupported, match=r"XY_TEXT_BLT at .*raster_operation 0xca, which depends on a pattern"):
        bench.run(setup(0xCA), bench.pack("XY_TEXT_BLT", **corners((0, 0, 4, 4)), source_address=SOURCE))
    with pytest.raises(Unsupported, match=r"XY_SCANLINES_BLT at .*raster_operation 0xca, which depends on a source"):
        bench.run(setup(0xCA), bench.pack("XY_SCANLINES_BLT", **corners((0, 0, 4, 4))))
    with pytest.raises(DecodeError, match="4 bytes of immediate data; the source has 5"):
        bench.run(setup(0xCC), bench.pack("XY_TEXT_IMMEDIATE_BLT", **corners((0, 0, 4, 10)), immediate_data=[{"dword": 0}]))
    assert np.array_equal(bench.memory(), before)


def test_what_patterned_blits_refuse() -> None:
    bench, area = BlitBench("kbl"), Area(DATA, 512, "linear", 0, 0)
    fields = {**controls(3, 0xF0), **corners((0, 0, 4, 4)), **tiled(area, "destination")}
    with pytest.raises(DecodeError, match="4 bytes of immediate data; the pattern has 256"):
        bench.run(bench.pack("XY_PAT_BLT_IMMEDIATE", immediate_data=[{"dword": 1}], **fields))
    with pytest.raises(Unsupported, match="raster_operation 0xca, which depends on a source"):
        bench.run(bench.pack("XY_PAT_BLT", pattern_base_address=PATTERN, **{**fields, "raster_operation": 0xCA}))
    for name in ("XY_MONO_SRC_COPY_BLT", "XY_SRC_COPY_CHROMA_BLT"):
        source = {"source_address": SOURCE} if "MONO" in name else {"source_base_address": SOURCE, "source_pitch": 64}
        with pytest.raises(Unsupported, match="raster_operation 0xca, which depends on a pattern"):
            bench.run(bench.pack(name, **source, **{**fields, "raster_operation": 0xCA}))
    with pytest.raises(Unsupported, match="transparency_range_mode 1, of a source, in a blit that has none"):
        bench.run(bench.pack("XY_PAT_CHROMA_BLT", pattern_base_address=PATTERN, transparency_range_mode=1, **fields))


@pytest.mark.behaviour("KBL-BLT-07", shows="action")
@pytest.mark.parametrize("depth", range(4))
def test_patterns_that_are_not_aligned_to_their_size_are_remarked(depth: int) -> None:
    """64 pixels (KBL 3134-3137)."""
    bench, held = BlitBench("kbl"), 64 * BYTES[depth]
    fields = {**controls(depth, 0xF0), **corners((0, 0, 4, 4)), **tiled(Area(DATA, 512, "linear", 0, 0), "destination")}
    for at in (PATTERN, PATTERN + held, PATTERN + 64, PATTERN + held + 64):
        bench.run(bench.pack("XY_PAT_BLT", pattern_base_address=at, **fields))
    said = [remark.partition("): ")[2] for remark in bench.gpu.remarks]
    assert said == [f"pattern at {at:#x}, which is not aligned to its {held} bytes (KBL 3134-3137)"
                    for at in (PATTERN + 64, PATTERN + held + 64) if depth]  # fmt: skip


@pytest.mark.parametrize("at", [PATTERN, PATTERN + 64, PATTERN + 256 + 128])
def test_a_pattern_is_read_where_it_begins_aligned_to_its_size_or_not(at: int) -> None:
    bench, to = BlitBench("kbl"), Area(DATA, 64, "linear", 0, 0)
    wanted = bench.space.read(at, 256)
    bench.run(bench.pack("XY_PAT_BLT", pattern_base_address=at, **controls(3, 0xF0), **corners((0, 0, 8, 8)), **tiled(to, "destination")))
    assert bench.memory()[: 8 * 64].reshape(8, 64)[:, :32].tobytes() == wanted


def test_a_tile_at_the_end_of_memory() -> None:
    """Nothing is mapped after it."""
    bench, to = BlitBench("kbl"), Area(DATA + SIZE - 0x1000, 512, "x_major", 0, 0)
    wanted = after(bench, bench.memory(), 4, (3, 1, 9, 8), to, 0xF0, lambda x, y: pattern_at(bench, 4, x, y, 0, 0), nothing, always)
    fields = {**controls(3, 0xF0), **corners((3, 1, 9, 8)), **tiled(to, "destination"), "pattern_base_address": PATTERN}
    bench.run(*switch(bench, to), bench.pack("XY_PAT_BLT", **fields))
    assert np.flatnonzero(bench.memory() != wanted).tolist() == []


def test_the_rows_of_a_source_wrap_at_the_end_of_the_address_space(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("softgen.blitter.commands.AT_ONCE", 2 * 16)  # two rows at a time
    bench, to = BlitBench("kbl"), Area(DATA, 64, "linear", 0, 0)
    end = 1 << bench.space.bits
    for address in (0, end - 0x1000):
        bench.space.map(address, MemfdBuffer(0x1000, "source"))
    bench.space.write(end - 4, b"\x12\x34\x56\x78")
    bench.space.write(0, b"\x9a\xbc\xde\xf0")
    bits = 0x123456789ABCDEF0
    bench.run(bench.pack("XY_MONO_SRC_COPY_BLT", **controls(0, 0xCC), **corners((0, 0, 16, 4)), **tiled(to, "destination"),
                         source_address=end - 4, source_foreground_color=1, source_background_color=0))  # fmt: skip
    found = bench.memory()[: 4 * 64].reshape(4, 64)[:, :16]
    assert found.tolist() == [[bits >> 63 - 16 * y - x & 1 for x in range(16)] for y in range(4)]


def test_the_address_of_a_pattern_wraps_in_a_smaller_space() -> None:
    """Global memory has 32 bits, whatever the command has."""
    found = []
    for above in (0, 1 << 32, 0x8765 << 32):
        bench, to = BlitBench("kbl"), Area(DATA, 512, "linear", 0, 0)
        bench.space = AddressSpace("global", 32)
        bench.space.map(BATCH, bench.batch)
        bench.space.map(DATA, bench.buffer)
        fields = {**controls(3, 0xF0), **corners((3, 1, 9, 8)), **tiled(to, "destination")}
        bench.run(bench.pack("XY_PAT_BLT", pattern_base_address=above + PATTERN, **fields))
        found.append(bench.memory())
    assert np.array_equal(found[0], found[1]) and np.array_equal(found[0], found[2])
    assert not np.array_equal(found[0], BlitBench("kbl").memory())


@pytest.mark.parametrize("box", [(5, 2, 5, 9), (5, 9, 8, 9), (9, 2, 5, 9)])
def test_an_empty_rectangle_of_a_patterned_blit_changes_nothing(box: Any) -> None:
    bench, area = BlitBench("kbl"), Area(DATA, 512, "linear", 0, 0)
    before = bench.memory()
    bench.run(bench.pack("XY_PAT_BLT", pattern_base_address=PATTERN, **controls(3, 0xF0), **corners(box), **tiled(area, "destination")))
    assert np.array_equal(bench.memory(), before)


def test_a_patterned_blit_that_takes_for_ever_is_stopped() -> None:
    """The largest rectangle is made of some rows at a time; the first ones fit the memory that is there."""
    polls = iter([False, False])
    bench = BlitBench("kbl", timed_out=lambda: next(polls, True))
    fields = {**controls(0, 0xF0), **corners((0, 0, 32767, 32767)), **tiled(Area(DATA, 0, "linear", 0, 0), "destination")}
    with pytest.raises(SoftgenError, match=r"time is up: \d+ of 32767 rows left"):
        bench.run(bench.pack("XY_PAT_BLT", pattern_base_address=PATTERN, **fields))
