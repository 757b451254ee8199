"""Engines compared on sampled tiles of draws, and the names of a difference: draw, pixel, object, instruction."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from softgen.device.gpu import GpuDevice
from softgen.memory.space import Space
from softgen.surface.image import SurfaceImage
from softgen.surface.texels import texel_at, texel_offsets
from softgen.threads.compare.compare import ComparingDispatcher
from softgen.threads.compare.selection import PixelPlace, TileSelection, WorkNames
from softgen.threads.dispatch import DispatchContext, ResultT, ThreadDispatch
from softgen.threads.dispatcher import EngineDispatcher
from softgen.threads.workers.kept_loop import KeptLoop, LoopLease
from softgen.three_d.clip_setup.bins import select
from softgen.three_d.draw import draw_names
from softgen.three_d.draw.draw_names import DrawNames
from softgen.three_d.state.state import DrawCall
from softgen.three_d.structures import Bins
from softgen.trace.file import open_trace
from softgen.trace.replay import events, replay
from softgen.trace.work import Work
from tests.conftest import ROOT, SHARED
from tests.three_d.made import made_state

TRIANGLE = ROOT / "tests" / "data" / "kbl-vk-tri"
LARGE = SHARED / "traces" / "kbl-kmscube"  # 640x480


def bins_of(tiles: list[list[int]], across: int) -> tuple[Bins, object]:
    """Bins with the record numbers of each tile."""
    first = np.cumsum([0, *map(len, tiles)]).astype(np.uint32)
    numbers = np.array([number for tile in tiles for number in tile], np.uint32)
    return Bins(first.ctypes.data, numbers.ctypes.data, across, len(tiles) // across, len(numbers)), (first, numbers)


def tiles_of(bins: Bins) -> list[list[int]]:
    count = bins.tiles_x * bins.tiles_y
    first = (ctypes.c_uint32 * (count + 1)).from_address(bins.first)
    numbers = (ctypes.c_uint32 * bins.capacity).from_address(bins.numbers) if bins.capacity else []
    return [list(numbers[first[tile] : first[tile + 1]]) for tile in range(count)]


TILES = [[0, 3], [], [1, 2, 3], [0], [], [4, 5]]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 9])
def test_selected_bins_have_whole_tiles_and_no_others(count: int) -> None:
    def selected_tiles(count: int, seed: int) -> list[list[int]]:
        bins, _owner = bins_of(TILES, 3)
        select(bins, TileSelection(count, seed))
        return tiles_of(bins)

    seen = set()
    for seed in range(20):
        selected = selected_tiles(count, seed)
        assert sum(map(bool, selected)) == min(count, 4)
        assert all(not ours or ours == theirs for ours, theirs in zip(selected, TILES, strict=True))
        assert selected == selected_tiles(count, seed)  # for the other engine
        seen.add(str(selected))
    assert (len(seen) > 1) == (count < 4), "other draws have other tiles"


def test_one_tile_and_its_first_objects() -> None:
    bins, _owner = bins_of(TILES, 2)
    selection = TileSelection(tile=2, objects=2)
    select(bins, selection)
    assert tiles_of(bins) == [[], [], [1, 2], [], [], []] and selection.objects_seen == 3
    nothing = TileSelection(tile=1)
    select(bins, nothing)
    assert tiles_of(bins) == [[]] * 6 and nothing.objects_seen == 0


# -- planted faults ----------------------------------------------------------------------------------------------------


class Wrong(EngineDispatcher):
    """An engine with a fault planted: a dword is wrong once a draw has changed it."""

    def __init__(self, address: int) -> None:
        super().__init__("t1", 1)
        self.address = address

    def lease(self) -> LoopLease:
        lease, address = super().lease(), self.address
        space, held, end = None, 0, lease.end
        loop = lease.loop

        def first(context: DispatchContext, dispatch: ThreadDispatch) -> KeptLoop:
            nonlocal space, held
            if space is None:
                space, held = context.space, context.space.read32(address)
            return loop(context, dispatch)

        def last(fine: bool) -> None:
            end(fine)
            if space is not None and space.read32(address) != held:
                space.write32(address, space.read32(address) ^ 0x100)

        lease.loop, lease.end = first, last  # type: ignore[method-assign]
        return lease


def targets() -> tuple[SurfaceImage, Space]:
    found: list[tuple[SurfaceImage, Space]] = []
    replay(open_trace(TRIANGLE), groups=EngineDispatcher("t1", 1), drawn=lambda space, images: found.append((images[0], space)))
    return found[-1]


@pytest.mark.parametrize("tiles", [0, 1])
def test_a_difference_in_a_draw_is_named_by_draw_pixel_object_and_instruction(tiles: int) -> None:
    image, _ = targets()
    address = image.base + int(texel_offsets(image)[20, 32])
    assert texel_at(image, address + 3) == (32, 20) and texel_at(image, image.base - 1) is None
    wrong = ComparingDispatcher(EngineDispatcher("reference"), Wrong(address), tiles)
    report = replay(open_trace(TRIANGLE), groups=wrong)
    (fault,) = report.faults
    text = str(fault)
    assert "reference and t1 differ: draw 4 (3 vertices, 1 instances), pixel (32, 20) of render target 0, object 0 of its tile, " in text
    assert "stored by kernel " in text and "sendc" in text and f"at {address:#x} reference has " in text


def test_draws_are_numbered_within_their_submission() -> None:
    """Also where the execution of the submission before goes on with it: a capture of this one alone has the same numbers."""
    titles: list[str] = []

    class Titles(EngineDispatcher):
        prepares = fills = False

        def whole(self, space: Space, work: Callable[[], ResultT], names: WorkNames) -> ResultT:
            titles.append(names.title)
            return work()

    trace = open_trace(TRIANGLE)
    gpu = GpuDevice(trace.device, dispatcher=Titles("t1", 1))
    for work in events(trace):
        if isinstance(work, Work):
            execution = gpu.begin(work)
            execution.run_to_end()
            if titles:
                break
    first = list(titles)
    for _ in range(2):
        titles.clear()
        gpu.begin_again(execution, work.batch).run_to_end()
        assert titles == first and first[-1] == "draw 4 (3 vertices, 1 instances)"


@pytest.mark.parametrize(("width", "height", "across"), [(400, 80, 7), (80, 400, 2), (128, 128, 2), (129, 128, 3)])
def test_tiles_of_a_render_target_are_numbered_row_by_row(width: int, height: int, across: int, monkeypatch: pytest.MonkeyPatch) -> None:
    image = replace(targets()[0], width=width, height=height, pitch=2048)
    monkeypatch.setattr(draw_names, "render_target", lambda state, index: image if index == 1 else None)
    names = DrawNames(3, made_state(9, {}, {}, {}, []), DrawCall(4, False, 3, 0, 2, 0, 0), image)
    assert names.title == "draw 3 (3 vertices, 2 instances)"
    for x, y in ((0, 0), (64, 63), (63, 64), (79, 79)):
        found = names.pixel(image.base + int(texel_offsets(image)[y, x]))
        assert found == PixelPlace(f"pixel ({x}, {y}) of render target 1", y // 64 * across + x // 64)
    assert names.pixel(image.base - 1) is None


@pytest.mark.skipif(not LARGE.exists(), reason="shared/traces is absent")
def test_the_reference_shades_no_more_than_the_sampled_tiles() -> None:
    """And memory is left as by the whole draw."""
    compared = ComparingDispatcher(EngineDispatcher("t1", 1), EngineDispatcher("t0", 1), tiles=2)
    alone = EngineDispatcher("t1", 1)
    pictures = []
    for dispatcher in (compared, alone):
        held: list[bytes] = []
        report = replay(open_trace(LARGE), groups=dispatcher,
                        drawn=lambda space, images, held=held: held.append(space.read(images[0].base, images[0].pitch * 64)))  # type: ignore[misc]
        assert report.fine
        pictures.append(held)
    assert len(pictures[0]) == len(pictures[1]) and pictures[0][-1] == pictures[1][-1]  # walks tell of draws once they return
    threads = [sum(ran.threads for ran in each.ran.values()) for each in (compared.second, alone)]
    assert threads[0] < threads[1] * 0.6  # both run all vertices
