"""Threads of usual draws: pixel_threads.c gives every pixel what the generic version gives it."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import Any

import pytest

from softgen.shared_functions.pixel_backend.blocks_h import DepthBlock, SampledBlock
from softgen.three_d.pixels.pixel_payload import PayloadParts
from tests.three_d.pixels.test_pixel_payload import USUAL, Draw, half_of_it, scene, shown
from tests.three_d.shaded import RecordingWorker, Thread


def by_pixel(draw: Draw, threads: list[Thread]) -> dict[tuple[int, int], list[object]]:
    """What each pixel of a lit subspan has in its threads, one after another: which threads these are does not count."""
    found, plan = dict[tuple[int, int], list[object]](), draw.plan.payload
    pairs = [(plan.barycentric[mode] + at, 64) for mode in range(6) if plan.barycentric[mode] for at in (0, 32)]
    places = [*pairs, *((offset, 32) for offset in (plan.depth, plan.w) if offset)]
    for thread in threads:
        told, common = thread.told, thread.registers[plan.constants : plan.size]
        header = [dword for number, dword in enumerate(thread.dwords[:8]) if number != 5]
        assert thread.dwords[10:14] == told.place[:4] and thread.dwords[15] == told.lit * 0x10001 and not any(told.place[4:])
        for channel in range(draw.parts.width):
            if thread.mask >> channel & 1:
                values = [thread.dwords[(offset + channel // 8 * step) // 4 + channel % 8] for offset, step in places]
                place, number = told.place[channel // 4], channel % 4
                where = (place & 0xFFFF) + number % 2, (place >> 16) + number // 2
                facts: tuple[object, ...] = told.lit >> channel & 1, told.layer, told.viewport, told.back_facing, told.passed
                facts = *facts, told.depth[channel] if draw.plan.late else None, told.samples
                facts = *facts, *(told.sample_lit[sample] >> channel & 1 for sample in range(told.samples))
                if draw.plan.late and told.samples:
                    steps = list(told.sample_depth)[: told.samples]
                    facts = *facts, *steps, any(told.sample_tested), any(told.sample_passed)
                found.setdefault(where, []).append((facts, header, values, common))
    return found


@pytest.mark.covering(1)
@pytest.mark.parametrize(("early", "late"), [(None, False), (half_of_it, False), (None, True)], ids=["", "early", "late"])
@pytest.mark.parametrize("parts", USUAL, ids=lambda parts: f"{shown(parts)} {sum(parts.barycentrics)} {parts.depth}")
def test_the_specialised_version_gives_pixels_what_the_generic_one_gives_them(parts: PayloadParts, early: Any, late: bool) -> None:
    for capacity in (7, 64):
        generic, special = (Draw(scene(capacity, 5), parts, test=early, late=late) for _ in range(2))
        generic.plan.generic = 1
        worker = RecordingWorker(capacity, leaves=capacity % 2)
        right, found = generic.run(RecordingWorker()), special.run(worker)
        assert by_pixel(special, found) == by_pixel(generic, right)
        assert len(found) < len(right) or capacity < 64, "lit subspans share threads"
        for name in ("covered", "lit", "passed"):
            assert getattr(special.loop, name) == getattr(generic.loop, name)
        slots = [thread.dwords[5] - parts.header[5] for thread in found]
        assert all(slot == (parts.scratch_step + 1) * (slot & 0xFF) for slot in slots)
        for thread in found:
            assert thread.mask & thread.mask + 1 == 0, "channel 0 is on, and there are no gaps"
        blocks_of = [(t.batch, p & 0xFFFC_FFFC, t.told.layer) for t in found for n, p in enumerate(t.told.place[:4]) if t.mask >> 4 * n & 1]
        owners = dict[tuple[int, int], int]()  # of blocks, in each batch
        assert all(owners.setdefault((batch, place), layer) == layer for batch, place, layer in blocks_of)


def half_of_the_samples(block: DepthBlock) -> int:
    """About half of the samples of the pixels of a block that are tested."""
    given, any_of_them = SampledBlock.from_address(ctypes.addressof(block)), 0
    for sample in range(16):
        given.masks[sample] &= sum(int((given.z[bit] + given.steps[sample]) * 500 % 2) << bit for bit in range(16))
        any_of_them |= given.masks[sample]
    return any_of_them


def at_samples(draw: Draw, count: int) -> None:
    """Tests at samples of a pixel that are beside each other along a diagonal, one of which is masked out."""
    raster = draw.plan.raster
    raster.samples = raster.stored = count
    raster.sample_mask = (1 << count) - 1 & ~2
    for sample in range(count):
        raster.sample[sample][:] = [256 * sample // count - 128, 128 - 256 * sample // count]


@pytest.mark.covering(1)
@pytest.mark.parametrize(("early", "late"), [(None, False), (half_of_the_samples, False), (None, True)], ids=["", "early", "late"])
@pytest.mark.parametrize("count", [2, 4, 8, 16])
@pytest.mark.parametrize("parts", [USUAL[1], USUAL[3], USUAL[5]], ids=shown)
def test_the_same_of_pixels_with_several_samples(parts: PayloadParts, count: int, early: Any, late: bool) -> None:
    plain = replace(parts, barycentrics=tuple(wanted and mode % 3 == 0 for mode, wanted in enumerate(parts.barycentrics)))
    for capacity in (7, 64):
        generic, special = (Draw(scene(capacity, 5), plain, test=early, late=late) for _ in range(2))
        generic.plan.generic = 1
        for draw in (generic, special):
            at_samples(draw, count)
        right, found = generic.run(RecordingWorker()), special.run(RecordingWorker(capacity, leaves=capacity % 2))
        assert by_pixel(special, found) == by_pixel(generic, right) and {thread.told.samples for thread in found} == {count}
        assert len(found) < len(right) or capacity < 64, "lit subspans share threads"
        for name in ("covered", "lit", "passed"):
            assert getattr(special.loop, name) == getattr(generic.loop, name)
