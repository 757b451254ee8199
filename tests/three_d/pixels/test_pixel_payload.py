"""Payloads and batches: pixel_shader.c and payload.c against a twin here. A RecordingWorker keeps the threads that the loop starts."""

from __future__ import annotations

import ctypes
import platform
import shutil
import struct
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from softgen.errors import DecodeError
from softgen.eu.thread.block import BLOCK_OFFSETS
from softgen.shared_functions import pixel_interpolator
from softgen.shared_functions.descriptors import encode
from softgen.shared_functions.pixel_backend.blocks_h import DepthBlock
from softgen.shared_functions.pixel_dispatch_h import PixelDispatch
from softgen.three_d.clip_setup.setup import SMOOTH_LINE
from softgen.three_d.pixels.pixel_payload import HeaderFormat, PayloadParts, place_parts
from softgen.three_d.pixels.pixel_shader import PixelLoop, PixelPlan, library
from softgen.three_d.pixels.rasterizer import RasterPlan
from softgen.three_d.structures import Plane, SetupRecord, StageLoop
from tests.conftest import ROOT
from tests.shared_functions.test_gateway import Sent, connect
from tests.three_d.pixels.test_rasterizer import blocks
from tests.three_d.shaded import DONE, Binned, RecordingWorker, Records, Thread, triangle, with_planes

ALL = PayloadParts(HeaderFormat.BARYCENTRIC, 16, 40, (1 << 13, 0x40, 0, 0x123, 0x456, 0x40000, 0, 0), barycentrics=(True,) * 6,
                   depth=True, w=True, xy_offsets=True, coverage=True, scratch_step=2048)  # fmt: skip
OLD = PayloadParts(HeaderFormat.COEFFICIENTS, 16, 8, (0, 0x40, 0, 0x123, 0x456, 0x40000, 0, 0), flags=3 << 29, depth=True,
                   attribute_offset=64, scratch_step=1024)  # fmt: skip
NO_MODES = (False,) * 6
PERSPECTIVE = (True, *NO_MODES[1:])
BARE = replace(ALL, barycentrics=NO_MODES, depth=False, w=False, xy_offsets=False, coverage=False, start=6)
FORMS_OF_USUAL_DRAWS = (((True,) * 6, True), (PERSPECTIVE, False), (PERSPECTIVE[::-1], False), (NO_MODES, True))
USUAL = [replace(ALL, width=width, xy_offsets=False, coverage=False, barycentrics=modes, depth=wants, w=wants)
         for width in (8, 16) for modes, wants in FORMS_OF_USUAL_DRAWS]  # fmt: skip
Block = tuple[int, int, int, int]  # x, y, covered and lit pixels
CONSTANTS = np.arange(96, dtype=np.uint8)
DEPTH = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


class Draw:
    """Records, bins and a plan; `run` gives the threads."""

    def __init__(self, records: list[SetupRecord], parts: PayloadParts, tiles: tuple[int, int] = (1, 1), late: bool = False,
                 test: Callable[[DepthBlock], int] | None = None) -> None:  # fmt: skip
        self.records, self.parts = Records(records, 4), parts
        self.binned = Binned(self.records, *tiles)
        self.plan = PixelPlan(payload=place_parts(parts, len(CONSTANTS), 128 - parts.attribute_offset), late=late,
                              sideband=BLOCK_OFFSETS["pixel"])  # fmt: skip
        self.plan.payload.constant_data = CONSTANTS.ctypes.data
        self._test = DEPTH(lambda context, target, block: test(DepthBlock.from_address(block)) if test else 0)
        self.plan.depth = ctypes.cast(self._test, ctypes.c_void_p).value if test else 0
        self.next_tile = ctypes.c_uint64()
        self.loop = PixelLoop()

    def run(self, worker: RecordingWorker, first_slot: int = 0, built: ctypes.CDLL | None = None) -> list[Thread]:
        self.loop = PixelLoop(StageLoop(worker.address, first_slot), ctypes.addressof(self.plan), ctypes.addressof(self.records.array),
                              ctypes.addressof(self.binned.bins), ctypes.addressof(self.next_tile))  # fmt: skip
        self.returns = 0
        while (built or library()).shade_tiles(ctypes.byref(self.loop), ctypes.byref(ctypes.c_uint64())) != DONE:
            self.returns += 1
        assert self.loop.threads == len(worker.threads)
        return worker.threads


# -- the twin --------------------------------------------------------------------------------------------------------------


def at(plane: Plane, x: int, y: int) -> np.float32:
    """In double at the corner of a block, then float steps, added to the corner: doubles hold what a step needs, so it is rounded once."""
    left, top = x & ~3, y & ~3
    corner = plane.dx * left + (plane.dy * top + plane.c)
    near = np.float32(corner)
    rest, dx, dy = np.float32(corner - float(near)), float(np.float32(plane.dx)), float(np.float32(plane.dy))
    steps = np.float32(dx * (x - left) + float(np.float32(dy * (y - top) + float(rest))))
    return np.float32(steps + near)


def order(lit: int) -> list[int]:
    """The subspans of a block as they become channels: those with a lit pixel first."""
    return sorted(range(4), key=lambda subspan: not lit >> 4 * subspan & 0xF)


def arranged(pixels: int, subspans: list[int]) -> int:
    """Pixels of a block as channels."""
    return sum((pixels >> 4 * subspan & 0xF) << 4 * number for number, subspan in enumerate(subspans))


def pixel(first: tuple[int, int], channel: int, subspans: Sequence[int] = range(4)) -> tuple[int, int]:
    """The pixel of a channel of a 4x4 block; the pixels of a subspan are in reading order."""
    subspan, number = subspans[channel // 4], channel % 4
    return first[0] + 2 * (subspan % 2) + number % 2, first[1] + 2 * (subspan // 2) + number // 2


def half(record: SetupRecord, block: Block, channels: range, parts: PayloadParts) -> bytes:
    """What channels of a block have of their own, part by part (GRAPHICS_THREADS 2.6)."""
    x, y, covered, lit = block
    places, covered = [pixel((x, y), channel, order(lit)) for channel in channels], arranged(covered, order(lit))
    w = [np.float32(1) / at(record.rhw, *place) for place in places]
    linear = [[at(plane, *place) for place in places] for plane in record.linear]
    perspective = [[at(plane, *place) * reciprocal for place, reciprocal in zip(places, w, strict=True)] for plane in record.perspective]
    if not record.rhw.dx and not record.rhw.dy:
        perspective = linear
    made = b""
    for mode, wanted in enumerate(parts.barycentrics):
        for group in range(0, len(places) if wanted else 0, 8):  # b1 and b2 of eight channels, then of the next eight
            made += b"".join(np.array(b[group : group + 8], np.float32).tobytes() for b in (perspective if mode < 3 else linear))
    made += np.array([at(record.z, *place) for place in places], np.float32).tobytes() * parts.depth
    made += np.array(w, np.float32).tobytes() * parts.w
    made += struct.pack("<16H", *([0x0808] * len(places) + [0] * (16 - len(places)))) * parts.xy_offsets
    return made + struct.pack(f"<{len(places)}I", *(covered >> channel & 1 for channel in channels)) * parts.coverage


def subspans(block: Block, channels: range) -> list[int]:
    found = [y << 16 | x for x, y in (pixel(block[:2], channel, order(block[3])) for channel in channels[::4])]
    return found + [0] * (4 - len(found))


def place_word(record: SetupRecord) -> int:
    return int(record.viewport << 27 | record.layer << 16)


def payload(number: int, records: Records, blocks: list[Block], channels: range, parts: PayloadParts, slot: int) -> bytes:
    """A thread of one record."""
    record, low = records.held[number], len(channels)
    header, lits = list(parts.header), [arranged(lit, order(lit)) >> channels[0] & (1 << low) - 1 for *_, lit in blocks]
    header[5] += parts.scratch_step * slot + slot
    header[0] |= place_word(record) | record.back_facing << 15 | record.topology
    made = struct.pack("<8I", *header)
    for block, lit in zip(blocks, lits, strict=True):
        made += struct.pack("<8I", 0, 0, *subspans(block, channels), 0, lit << 16 | lit)
    made = made.ljust(32 * (3 if parts.width == 32 else 2), b"\0")
    for block in blocks:
        made += half(record, block, channels, parts)
    return made.ljust(parts.start * 32, b"\0") + CONSTANTS.tobytes() + records.data[number].tobytes()


def old_payload(number: int, records: Records, blocks: list[Block], channels: range, parts: PayloadParts, slot: int) -> bytes:
    """The same where planes are coefficients (GRAPHICS_THREADS 2.5)."""
    record = records.held[number]
    header, lits = list(parts.header), [arranged(lit, order(lit)) >> channels[0] & (1 << len(channels)) - 1 for *_, lit in blocks]
    header[5] += parts.scratch_step * slot + slot
    header[0] = lits[0] << 16 | lits[0]
    made = struct.pack("<8I", *header) + struct.pack("<2f", record.x_start, record.y_start)
    flags = parts.flags | record.back_facing << 31 | record.topology
    made += struct.pack("<6I", *subspans(blocks[0], channels), flags, place_word(record))
    for number_of_block, block in enumerate(blocks):
        if number_of_block:
            made += struct.pack("<8I", lits[1] << 16 | lits[1], 0, *subspans(block, channels), 0, 0)
        places = [pixel(block[:2], channel, order(block[3])) for channel in channels]
        made += np.array([at(record.z, *place) for place in places], np.float32).tobytes().ljust(64, b"\0")
    return made.ljust(parts.start * 32, b"\0") + CONSTANTS.tobytes() + records.data[number][parts.attribute_offset :].tobytes()


def expected(draw: Draw, slot: int = 0, capacity: int = 64) -> list[tuple[bytes, int]]:
    """Payloads and dispatch masks of a draw of one tile without early tests, in order."""
    parts, found, used = draw.parts, list[tuple[bytes, int]](), set[tuple[int, int]]()
    make, batch = old_payload if parts.format is HeaderFormat.COEFFICIENTS else payload, 0
    width, step = parts.width, 2 if parts.width == 32 else 1
    for number, record in enumerate(draw.records):
        covered = [(block.x, block.y, block.mask, block.mask) for block in blocks(record)]
        groups = list[list[Block]]()
        for block in covered:
            full, clash = batch + 2 > capacity and not (groups and len(groups[-1]) < step), block[:2] in used
            if full or clash:
                batch, used = 0, set()
                found += [(b"", 0)]  # a batch ends here
            used.add(block[:2])
            if groups and len(groups[-1]) < step and not (full or clash):
                groups[-1].append(block)
                found.pop()
            else:
                groups.append([block])
            for first in range(0, 16, min(width, 16)):
                channels = range(first, first + min(width, 16))
                lit = [arranged(group[3], order(group[3])) >> first & (1 << len(channels)) - 1 for group in groups[-1]]
                if any(lit):
                    mask = sum(0xF << 4 * s for s in range(4 * step) if (lit[0] | sum(m << 16 for m in lit[1:])) >> 4 * s & 0xF)
                    batch += len(groups[-1]) == 1
                    found.append((make(number, draw.records, groups[-1], channels, parts, slot + batch - 1), mask))
    return [item for item in found if item[0]]


def scene(seed: int, count: int = 6) -> list[SetupRecord]:
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        x, y, size = *rng.uniform(-10, 60, 2), rng.uniform(4, 40)
        record = triangle([(x, y), (x + size, y + rng.uniform(0, size)), (x, y + size)], (0, 0, 64, 64),
                          back_facing=int(rng.integers(2)), layer=int(rng.integers(2048)), viewport=int(rng.integers(16)))  # fmt: skip
        found.append(with_planes(record, rng))
    return found


FORMS = [replace(ALL, width=8), ALL, replace(ALL, width=32, start=70), replace(ALL, barycentrics=PERSPECTIVE, depth=False, w=False),
         replace(ALL, width=32, barycentrics=NO_MODES, xy_offsets=False, coverage=False),
         replace(OLD, width=8), OLD, replace(OLD, width=32, start=16)]  # fmt: skip


def shown(parts: PayloadParts) -> str:
    return f"{parts.format.name.lower()}, {parts.width}, r{parts.start}"


@pytest.mark.behaviour("G45-WM-32", "G45-WM-33", "G45-WM-34", "G45-WM-35", "G45-WM-36", "G45-WM-37", "G45-WM-38", shows="action")
@pytest.mark.behaviour("BDW-WM-06", shows="action")
@pytest.mark.parametrize("parts", FORMS, ids=shown)
def test_payloads_and_masks(parts: PayloadParts) -> None:
    """BDW-PS-03, BDW-WM-06, BDW-WM-07, G45-WM-32 to G45-WM-38: every register of every thread, and whole subspans on (G45-WM-33)."""
    draw = Draw(scene(parts.width), parts)
    threads, wanted = draw.run(RecordingWorker(), first_slot=3), expected(draw, slot=3)
    assert len(threads) == len(wanted) > 20
    for thread, (registers, mask) in zip(threads, wanted, strict=True):
        assert thread.registers[: len(registers)] == registers and thread.mask == mask
        assert len(registers) == draw.plan.payload.size


@pytest.mark.parametrize("parts", FORMS[:3], ids=shown)
def test_the_backend_is_told_places_and_lit_pixels(parts: PayloadParts) -> None:
    """Nothing of what an earlier thread left is in it."""
    draw = Draw(scene(5), parts, late=True)
    for thread in draw.run(RecordingWorker()):
        told = thread.told
        record = next(r for r in draw.records if (r.layer, r.viewport, r.back_facing) == (told.layer, told.viewport, told.back_facing))
        assert 0 < told.lit < 1 << parts.width and told.lit & ~thread.mask == 0 and told.passed == 0
        for channel in range(32):
            if thread.mask >> channel & 1:
                place, number = told.place[channel // 4], channel % 4
                x, y = (place & 0xFFFF) + number % 2, (place >> 16) + number // 2
                assert told.depth[channel] == at(record.z, x, y)
                edges = [record.edge[n] + record.edge_dx[n] * x + record.edge_dy[n] * y for n in range(3)]
                assert (told.lit >> channel & 1) == (min(edges) >= 0)
        assert all(told.place[n] == 0 for n in range(parts.width // 4, 8))


@pytest.mark.parametrize("parts", FORMS, ids=shown)
def test_channel_0_of_a_thread_is_always_on(parts: PayloadParts) -> None:
    """Subspans without a lit pixel come last: compilers take values that all channels share from channel 0."""
    threads = Draw(scene(parts.width), parts).run(RecordingWorker())
    for thread in threads:
        for first in range(0, parts.width, 16):  # each half of a thread has a block of its own
            on = thread.mask >> first & 0xFFFF
            assert on & on + 1 == 0 and (on or first)
    assert len({thread.mask for thread in threads}) > 1


@pytest.mark.behaviour("G45-WM-44", shows="action")
@pytest.mark.parametrize("capacity", [2, 3, 7, 64])
@pytest.mark.parametrize("parts", FORMS[:3], ids=shown)
def test_a_batch_has_a_block_once_and_records_come_in_order(parts: PayloadParts, capacity: int) -> None:
    """G45-WM-44: pixels that objects have in common are written in the objects' order, since batches run one after another."""
    records = scene(7, 12)
    for number, record in enumerate(records):
        record.layer = number
    draw = Draw(records, parts)
    threads = draw.run(RecordingWorker(capacity))
    assert [thread.told.layer for thread in threads] == sorted(thread.told.layer for thread in threads)
    pairs = set()
    for thread in threads:
        for subspan in range(8):
            if thread.mask >> 4 * subspan & 1:
                where = (thread.batch, thread.told.place[subspan])
                assert where not in pairs
                pairs.add(where)
    assert sum(thread.told.lit.bit_count() for thread in threads) == draw.loop.lit == draw.loop.covered


@pytest.mark.parametrize("parts", FORMS[:3], ids=shown)
def test_leaving_the_loop_changes_nothing(parts: PayloadParts) -> None:
    calm, left = Draw(scene(9), parts).run(RecordingWorker(8)), Draw(scene(9), parts)
    worker = RecordingWorker(8, leaves=2)
    assert [(t.registers, t.mask) for t in left.run(worker)] == [(t.registers, t.mask) for t in calm]
    assert left.returns == 2 * worker.batches > 2


def test_loops_share_tiles_out() -> None:
    """Each tile is taken once."""
    records = [with_planes(triangle([(-10, -10), (600, -10), (-10, 600)], (0, 0, 256, 192)), np.random.default_rng(2))]
    first, second = Draw(records, ALL, (4, 3)), Draw(records, ALL, (4, 3))
    whole = first.run(RecordingWorker())
    second.next_tile.value = 5  # as if others had taken five
    rest = second.run(RecordingWorker())
    assert len(whole) > len(rest) > 0 and {t.registers for t in rest} < {t.registers for t in whole}
    assert {(t.told.place[0] & 0xFFFF) // 64 + (t.told.place[0] >> 16) // 64 * 4 for t in rest} == set(range(5, 12))


def test_empty_tiles_are_passed() -> None:
    """Of thousands of tiles, those with records are taken once each, in order, whether a loop begins before, between or after them."""
    corners = [(40 * 64 + 8, 30 * 64 + 8), (63 * 64 + 8, 63 * 64 + 8)]
    records = [with_planes(triangle([(x, y), (x + 20, y), (x, y + 20)]), np.random.default_rng(2)) for x, y in corners]
    tiles = [30 * 64 + 40, 63 * 64 + 63]
    for start, left in ((0, 2), (tiles[0], 2), (tiles[0] + 1, 1), (tiles[1], 1), (tiles[1] + 1, 0), (5000, 0)):
        draw = Draw(records, ALL, (64, 64))
        draw.next_tile.value = start
        found = [(t.told.place[0] & 0xFFFF) // 64 + (t.told.place[0] >> 16) // 64 * 64 for t in draw.run(RecordingWorker())]
        assert list(dict.fromkeys(found)) == tiles[2 - left :]


def test_a_loop_without_threads_returns_for_the_clock() -> None:
    """Thousands of records that cover nothing: the time limit can still be seen."""
    tiny = triangle([(5.6, 5.6), (5.7, 5.6), (5.6, 5.7)])
    draw = Draw([tiny] * 40_000, ALL)
    assert not draw.run(RecordingWorker()) and draw.returns >= 2


@pytest.mark.parametrize("flags", ["", "-march=x86-64-v2", "-march=x86-64-v3", "-O0"])
def test_every_host_gets_the_same(flags: str, tmp_path: Path) -> None:
    """The library chooses among vector code for several hosts; here each is built alone."""
    if not shutil.which("gcc") or platform.machine() != "x86_64":
        pytest.skip("gcc is absent, or the host is another one")
    names = ("pixels/rasterizer", "clip_setup/lines", "pixels/payload", "pixels/pixel_shader", "pixels/pixel_threads", "pixels/one_color",
             "pixels/fill", "draw/draw_loops", "samples/sample_coverage", "samples/sample_threads")
    files = [str(ROOT / "softgen" / "three_d" / f"{name}.c") for name in names]
    made, common = str(tmp_path / "one.so"), ["-O3", "-DVECTORIZED=", "-ffp-contract=off", "-shared", "-fPIC"]
    subprocess.run(["gcc", *common, *flags.split(), *files, "-o", made, "-lm"], check=True)
    for parts in (ALL, *USUAL):
        wanted = Draw(scene(21), parts).run(RecordingWorker())
        found = Draw(scene(21), parts).run(RecordingWorker(), built=ctypes.CDLL(made))
        assert [(t.registers, t.mask) for t in found] == [(t.registers, t.mask) for t in wanted]


def half_of_it(block: DepthBlock) -> int:
    """About half of the pixels of a block; outside of the mask too, which does not count."""
    return sum(int(block.z[bit] * 500 % 2) << bit for bit in range(16))


# -- tests before the shader ----------------------------------------------------------------------------------------------


@pytest.mark.behaviour("G45-WM-21", shows="action")
def test_early_tests_remove_pixels() -> None:
    """Threads get what passed; coverage in the payload is that of the object (G45-WM-21, BDW-PS-03)."""
    seen = list[DepthBlock]()

    def test(block: DepthBlock) -> int:
        seen.append(DepthBlock.from_buffer_copy(block))
        return half_of_it(block)

    records = scene(11)
    draw = Draw(records, ALL, test=test)
    threads = draw.run(RecordingWorker())
    every = [block for record in records for block in blocks(record)]
    assert [(b.x, b.y, b.mask) for b in seen] == [(b.x, b.y, b.mask) for b in every]
    passed = [(b.x, b.y, b.mask, lit) for b in seen if (lit := b.mask & half_of_it(b))]
    assert [(t.told.place[0] & 0xFFFF, t.told.place[0] >> 16, t.told.lit) for t in threads] == [
        (*pixel((x, y), 0, order(lit)), arranged(lit, order(lit))) for x, y, _, lit in passed]  # fmt: skip
    assert sum(mask != lit for _, _, mask, lit in passed) > 10
    coverage = draw.plan.payload.coverage
    assert [[int(v) for v in np.frombuffer(t.registers, np.uint32, 16, coverage)] for t in threads] == [
        [arranged(mask, order(lit)) >> bit & 1 for bit in range(16)] for _, _, mask, lit in passed]  # fmt: skip
    assert draw.loop.lit == draw.loop.passed == sum(lit.bit_count() for *_, lit in passed) < draw.loop.covered
    by_place = {(r.layer, r.viewport): r for r in records}
    for block in seen:
        record = by_place[block.layer, block.viewport]
        assert block.back_facing == record.back_facing and block.z[5] == at(record.z, block.x + 3, block.y)


def test_late_tests_are_counted_after_the_batch() -> None:
    """PS_DEPTH_COUNT is what the pixel backend says that passed."""
    draw = Draw(scene(12), ALL, late=True)
    threads = draw.run(RecordingWorker(8, leaves=1, passed=0x5555))
    assert draw.loop.passed == sum((thread.told.lit & 0x5555).bit_count() for thread in threads) > 0


# -- where parts are ---------------------------------------------------------------------------------------------------------


def test_constants_may_start_after_a_gap_but_not_within_the_payload() -> None:
    assert place_parts(BARE, 32, 64).size == 9 * 32 and place_parts(BARE, 0, 0).size == 2 * 32
    with pytest.raises(DecodeError, match="constants start at r2, but 4 registers come before them"):
        place_parts(replace(BARE, start=2, depth=True), 32, 0)
    with pytest.raises(DecodeError, match="a payload of 129 registers"):
        place_parts(BARE, 32 * 123, 0)


@pytest.mark.parametrize("parts, before", [
    (replace(ALL, width=8), 18), (ALL, 33), (replace(ALL, width=32), 65), (replace(BARE, width=32), 3),
    (replace(OLD, width=8), 4), (OLD, 4), (replace(OLD, width=32), 7), (replace(OLD, width=32, held_stencil=True, held_depth=True), 13),
    (replace(OLD, antialias=True), 5), (replace(OLD, antialias=True, held_stencil=True), 5)])  # fmt: skip
def test_constants_may_start_right_behind_the_parts_of_every_width(parts: PayloadParts, before: int) -> None:
    """A 32-wide thread has two headers of channels and its parts twice."""
    assert place_parts(replace(parts, start=before), 32, 0).constants == 32 * before
    assert place_parts(parts, 0, 0).size == 32 * before
    with pytest.raises(DecodeError, match=f"but {before} registers come before them"):
        place_parts(replace(parts, start=before - 1), 32, 0)


def test_a_thread_of_the_twin_is_what_kernels_expect() -> None:
    """GRAPHICS_THREADS 7: 16-wide with perspective barycentrics has b1 in r2 and r4, b2 in r3 and r5, constants at r6."""
    plan: Any = place_parts(replace(BARE, barycentrics=PERSPECTIVE), 32, 64)
    assert (plan.barycentric[0], plan.constants, plan.attributes, plan.size) == (2 * 32, 6 * 32, 7 * 32, 9 * 32)
    assert plan.gap_bytes == 0  # its parts fill all registers before the constants: no zeros are written there


@pytest.mark.parametrize("width", [8, 16, 32])
def test_threads_of_smooth_lines_have_an_antialias_alpha_for_each_channel(width: int) -> None:
    """A level smooth line of three rows, whose upper and lower row are half covered; a triangle beside it is not smooth."""
    line = triangle([(2, 3), (61, 3), (61, 6), (2, 6)])
    line.coverage = SMOOTH_LINE
    draw = Draw([line, triangle([(2, 20), (40, 20), (2, 60)])], replace(BARE, width=width))
    draw.plan.raster = RasterPlan(antialiased=1, aa_region=1.0, aa_cap_region=0.5)
    seen = set()
    for thread in draw.run(RecordingWorker()):
        for channel in range(width):
            x, y = thread.told.place[channel // 4] & 0xFFFF, thread.told.place[channel // 4] >> 16
            row = y + channel % 4 // 2
            if thread.told.lit >> channel & 1 and 2 < x < 58:
                seen.add((min(row, 10), round(thread.told.antialias[channel], 2)))
    assert seen == {(3, 0.5), (4, 1.0), (5, 0.5), (10, 1.0)}


@pytest.mark.behaviour("BDW-PS-03", shows="action")
def test_coverage_of_a_conservative_triangle_is_that_of_whole_pixels() -> None:
    """input_coverage_mask_state 2: of the pixels that are touched, those that are inside with all their corners."""
    corners = [(4.25, 3.5), (50.75, 20.0), (10.0, 55.25)]
    record = triangle(corners)
    for edge in range(3):  # as setup widens it
        record.edge[edge] += (abs(record.edge_dx[edge]) + abs(record.edge_dy[edge])) * 257 // 512 + 1
    draw = Draw([record], replace(BARE, coverage=2))
    found: dict[bool, set[tuple[int, int]]] = {False: set(), True: set()}
    for thread in draw.run(RecordingWorker()):
        told = np.frombuffer(thread.registers, np.uint32, 16, draw.plan.payload.coverage)
        for channel in range(16):
            place = pixel((thread.told.place[channel // 4] & 0xFFFF, thread.told.place[channel // 4] >> 16), channel % 4)
            if thread.told.lit >> channel & 1:
                found[bool(told[channel])].add(place)
    whole = {(x, y) for x, y in found[False] | found[True]
             if all(inside(corners, x + dx, y + dy) for dx in (-1 / 512, 513 / 512) for dy in (-1 / 512, 513 / 512))}  # fmt: skip
    assert found[True] == whole and len(whole) > 500 and len(found[False]) > 100


def inside(corners: list[tuple[float, float]], x: float, y: float) -> bool:
    pairs = zip(corners, [*corners[1:], corners[0]], strict=True)
    return all((b[0] - a[0]) * (y - a[1]) - (b[1] - a[1]) * (x - a[0]) > 0 for a, b in pairs)


def test_coverage_may_be_what_early_tests_left() -> None:
    """input_coverage_mask_state 3."""
    draw = Draw(scene(11), replace(ALL, coverage=3), test=half_of_it)
    threads = draw.run(RecordingWorker())
    at_all = [np.frombuffer(t.registers, np.uint32, 16, draw.plan.payload.coverage) for t in threads]
    assert [sum(int(v) << bit for bit, v in enumerate(told)) for told in at_all] == [t.told.lit for t in threads]


def test_a_value_that_a_float_can_hold_is_exact() -> None:
    """A texture of 512 texels over 320 pixels has a boundary of texels in the middle of every fifth: the last bit of a coordinate decides
    there what nearest filtering finds."""
    plane, found = Plane(0.5 / 320, 1 / 320, 0), (ctypes.c_float * 16)()
    for x in range(0, 320, 4):
        library().interpolate_depth(ctypes.byref(plane), x, 0, found)
        for column, z in zip((0, 1, 0, 1, 2, 3, 2, 3), found, strict=False):
            assert abs(z - (x + column + 0.5) / 320) <= np.spacing(np.float32(z))
            assert (x + column) % 5 != 2 or z == (x + column + 0.5) / 320


def test_barycentrics_of_one_w_are_linear() -> None:
    """Where w is the same at all vertices, a division by it would only cost precision."""
    record = with_planes(triangle([(0, 0), (60, 0), (0, 60)], (0, 0, 64, 64)), np.random.default_rng(1))
    record.rhw = Plane(0.3, 0, 0)
    draw = Draw([record], ALL)
    perspective, linear = (int(draw.plan.payload.barycentric[mode]) for mode in (0, 3))
    for thread in draw.run(RecordingWorker()):
        assert thread.registers[perspective : perspective + 128] == thread.registers[linear : linear + 128]


@pytest.mark.parametrize("width", [8, 16, 32])
def test_threads_that_may_ask_for_barycentrics_have_their_objects_planes(width: int) -> None:
    """The pixel interpolator reads them; without an offset it finds the payload's values, bit for bit, also where those at pixel (0, 0) are
    much larger, and where subspans of several blocks share a thread (as piglit's fs-interpolateAtOffset-swizzle compares them)."""
    records = scene(9)
    for record in records:
        for plane in (*record.linear, *record.perspective):
            plane.c, plane.dx, plane.dy = plane.c - 3e5, 1e4, 100
    draw = Draw(records, replace(BARE, width=width, barycentrics=PERSPECTIVE, start=20))
    draw.plan.interpolated = 1
    for thread in draw.run(RecordingWorker()):
        told = thread.told
        record = next(r for r in draw.records if (r.layer, r.viewport, r.back_facing) == (told.layer, told.viewport, told.back_facing))
        planes = [record.rhw, *record.linear, *record.perspective]
        assert list(told.planes)[:15] == [number for plane in planes for number in (plane.c, plane.dx, plane.dy)]
        if width == 8:
            descriptor = encode("interpolate_centroid", 9, message_length=1, response_length=2)
            sent = Sent(11, descriptor, np.zeros(32, np.uint8), response=np.zeros(64, np.uint8))
            connect(pixel_interpolator.UNIT)[11](PixelThread(told), sent)
            at = draw.plan.payload.barycentric[0]
            ours, payload = (np.frombuffer(data, np.float32) for data in (sent.response.tobytes(), thread.registers[at : at + 64]))
            assert ours.tolist() == payload.tolist()


class PixelThread:
    """A thread as the pixel interpolator sees it."""

    def __init__(self, told: PixelDispatch) -> None:
        self.pixel = np.frombuffer(memoryview(told).cast("B"), np.uint8)
