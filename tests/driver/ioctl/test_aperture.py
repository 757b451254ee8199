"""The two memories of a tiled buffer: whether they are the same, and which parts of them have pages."""

from __future__ import annotations

import os

import numpy as np
import pytest

from softgen.driver.ioctl import aperture
from softgen.driver.objects.budget import Budget
from softgen.driver.objects.fence import Fence, Signals
from softgen.driver.uapi import i915_drm as i915
from softgen.memory.store import MemfdBuffer
from tests.driver.program import Gpu, served

PAGE = 4096


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("row", [1, 7, 8, 9, 16, 18, 24, 72])
def test_whether_arrays_are_the_same(row: int, whole: bool) -> None:
    """Rows of any length, in one piece and with gaps between them."""
    left, right = (np.arange(3 * 4 * row, dtype=np.uint8).reshape(3, 4, row) for _ in range(2))
    if not whole:
        left, right = (np.repeat(array, 2, axis=0)[::2] for array in (left, right))
        assert not left.flags.c_contiguous
    assert aperture.same(left, right)
    for place in ((0, 0, 0), (2, 3, row - 1), (1, 2, row // 2)):
        right[place] ^= 0x80
        assert not aperture.same(left, right) and not aperture.same(right, left)
        right[place] ^= 0x80
    assert aperture.same(left, right)


def test_what_either_side_wrote_is_merged_the_programs_first() -> None:
    before = np.zeros(6, np.uint8)
    shown, rows = np.array([0, 1, 0, 2, 9, 0], np.uint8), np.array([0, 0, 3, 4, 9, 0], np.uint8)
    aperture.merge(rows, shown, before)
    assert rows.tolist() == shown.tolist() == before.tolist() == [0, 1, 3, 2, 9, 0]
    shown[1] = 0
    aperture.merge(rows, shown, before)
    assert rows.tolist() == shown.tolist() == before.tolist() == [0, 0, 3, 2, 9, 0]
    rows[5] = 7
    aperture.merge(rows, shown, before)
    assert rows.tolist() == shown.tolist() == before.tolist() == [0, 0, 3, 2, 9, 7]


def test_nothing_is_written_where_nothing_changed() -> None:
    """Pages of large buffers that were never touched would become resident."""
    arrays = [np.arange(4096, dtype=np.uint8) for _ in range(3)]
    for array in arrays:
        array.flags.writeable = False
    aperture.merge(*arrays)


@pytest.mark.parametrize("pages, unit, size, found", [
    ([], PAGE, 8, []), ([0], PAGE, 8, [0]), ([7], PAGE, 8, [7]), ([1, 2, 5], PAGE, 8, [1, 2, 5]), ([1, 2, 5], 2 * PAGE, 8, [0, 1, 2]),
    ([3, 4], 4 * PAGE, 8, [0, 1]), ([5], PAGE, 5, []), ([4, 5], PAGE, 5, [4]), ([0, 1, 2, 3], 3 * PAGE, 8, [0, 1]),
])  # fmt: skip
def test_units_that_have_pages(pages: list[int], unit: int, size: int, found: list[int]) -> None:
    buffer = MemfdBuffer(8 * PAGE, "sparse")
    for page in pages:
        buffer.view[page * PAGE] = 1
    assert list(aperture.populated(buffer.fd, size * PAGE, unit)) == found


@pytest.mark.parametrize("stride, written, touched", [
    (512, [3], [3]), (512, [0, 7], [0, 7]), (1024, [5], [4, 5]), (1024, [2, 6], [2, 3, 6, 7]), (2048, [3], [0, 1, 2, 3]), (512, [], []),
    (4096, [7], list(range(8))), (4096, [0], list(range(8))), (2560, [4], list(range(5))),
])  # fmt: skip
def test_only_rows_of_tiles_with_pages_are_compared(stride: int, written: list[int], touched: list[int]) -> None:
    """Others take no memory, in neither of both. X tiles are 512 bytes wide, and take a page each: the buffer has one row of tiles or
    more, and perhaps pages below that fill none."""
    tiled = MemfdBuffer(8 * PAGE, "tiled")
    view = aperture.LinearView(tiled, 8 * PAGE, Budget(1 << 30), 5)
    view.arrange(i915.I915_TILING_X, stride)
    for page in written:
        tiled.view[page * PAGE] = 1
    view.sync()
    for buffer in (tiled, view.buffer):
        assert set(aperture.populated(buffer.fd, 8 * PAGE, PAGE)) <= set(touched)
    assert bytes(view.buffer.view).count(1) == len(written)


def test_a_buffer_of_less_than_a_row_of_tiles_shows_nothing() -> None:
    tiled = MemfdBuffer(8 * PAGE, "tiled")
    view = aperture.LinearView(tiled, 8 * PAGE, Budget(1 << 30), 5)
    view.arrange(i915.I915_TILING_X, 9 * 512)
    tiled.view[:] = b"x" * (8 * PAGE)
    view.sync()
    assert not any(view.buffer.view)


def test_a_linear_view_counts_with_its_memory_and_what_both_held() -> None:
    budget, size = Budget(1 << 30), 16 * PAGE
    view = aperture.LinearView(MemfdBuffer(size, "tiled"), size, budget, 5)
    assert budget.other == {5: 2 * size}
    del view
    budget.check(5, 1, "settled")
    assert not budget.other


DOORS = {"DRM_IOCTL_I915_GEM_SET_DOMAIN": {}, "DRM_IOCTL_I915_GEM_WAIT": {"timeout": -1}, "DRM_IOCTL_I915_GEM_SW_FINISH": {},
         "DRM_IOCTL_I915_GEM_PREAD": {"size": 4}, "DRM_IOCTL_I915_GEM_PWRITE": {"size": 4}}  # fmt: skip


@pytest.mark.parametrize("name", DOORS)
def test_what_was_written_through_the_aperture_is_there_when_a_program_asks(gpu: Gpu, name: str) -> None:
    """And what is in the memory is in the aperture. With X tiles the second row begins 512 bytes after the first."""
    program = gpu.program()
    handle = program.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=8 * PAGE).handle
    program.ioctl("DRM_IOCTL_I915_GEM_SET_TILING", handle=handle, mode=1, stride=1024)
    offsets = [program.ioctl("DRM_IOCTL_I915_GEM_MMAP_OFFSET", handle=handle, flags=flags).offset for flags in (2, 0)]
    raw, linear = (program.mmap(offset, 8 * PAGE)[0] for offset in offsets)
    os.pwrite(linear, b"program", 1024)
    os.pwrite(raw, b"memory", 3 * 512)
    fields: dict[str, int] = dict(DOORS[name])
    if "size" in fields:
        fields |= {"data": program.memory(4).address, "offset": 7 * PAGE}
    program.ioctl(name, handle=handle, **fields)
    assert os.pread(raw, 7, 512) == b"program" and os.pread(linear, 6, 3 * 1024) == b"memory"
    os.close(raw)
    os.close(linear)


def test_a_fence_brings_both_memories_to_the_same_contents() -> None:
    """Before the work starts and before its fence is done; a submission without such buffers has a plain fence."""
    tiled, signals = MemfdBuffer(2 * PAGE, "tiled"), Signals()
    view = aperture.LinearView(tiled, 2 * PAGE, Budget(1 << 30), 5)
    view.arrange(0, 0)
    view.buffer.view[7] = 1
    fence = aperture.fence(signals, [view])
    assert tiled.view[7] == 1 and not fence.done
    tiled.view[PAGE] = 2
    fence.signal(9)
    assert view.buffer.view[PAGE] == 2 and fence.done and fence.error == 9
    well = aperture.fence(signals, [view])
    well.signal()
    assert well.done and not well.error, "nothing went wrong, as with a plain fence"
    assert type(aperture.fence(signals, [])) is Fence


@pytest.mark.parametrize("name, longest", [("g45", 0x400 * 128), ("ivb", 0x800 * 128), ("kbl", 0x800 * 128)])
@pytest.mark.parametrize("mode", [i915.I915_TILING_X, i915.I915_TILING_Y])
def test_how_long_rows_of_a_tiled_buffer_may_be(name: str, longest: int, mode: int) -> None:
    """The limits of fence registers in i915_tiling_ok(). Of a row of tiles with a page in it all is compared, so it may not be huge."""
    with served(name) as gpu:
        program = gpu.program()
        fields = {"handle": program.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=4096).handle, "mode": mode}
        assert program.ioctl("DRM_IOCTL_I915_GEM_SET_TILING", stride=longest, **fields).stride == longest
        for stride in (longest + 512, 1 << 27, (1 << 32) - 512):
            with pytest.raises(OSError, match="Invalid"):
                program.ioctl("DRM_IOCTL_I915_GEM_SET_TILING", stride=stride, **fields)
