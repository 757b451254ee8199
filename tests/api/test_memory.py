"""Addresses of the Python interface, and images in memory."""

from __future__ import annotations

import numpy as np
import pytest

import softgen
from softgen.api.memory import Heap, find_format, image_bytes, layout, picture

PAGE, FIRST, GAP = 0x1000, 0x10_0000, 0x1_0000


@pytest.mark.parametrize("size, pages", [(0, 1), (1, 1), (4096, 1), (4097, 2), (3 * 4096, 3)])
def test_64_kib_behind_an_allocation_are_not_mapped(size: int, pages: int) -> None:
    """An overrun faults, and so does a null pointer."""
    heap = Heap("heap", 48)
    first, second = heap.allocate(size, "first"), heap.allocate(1, "second")
    assert (first.address, second.address) == (FIRST, FIRST + pages * PAGE + GAP)
    assert (first.store.size, second.store.size) == (max(size, 1), 1)
    assert heap.space.extent(FIRST, 1 << 20) == pages * PAGE and heap.space.extent(0, 1) == heap.space.extent(FIRST - 1, 1) == 0


def test_an_allocation_takes_the_first_hole_it_fits_with_its_gap() -> None:
    heap = Heap("heap", 48)
    made = [heap.allocate(pages * PAGE, "made") for pages in (1, 3, 2, 1)]
    assert heap.allocate(PAGE, "last").address == FIRST + 7 * PAGE + 4 * GAP
    for number in (2, 1):
        heap.free(made[number])
    hole = made[1].address  # of five pages and two gaps
    assert heap.allocate(5 * PAGE + GAP + 1, "too large").address > FIRST + 8 * PAGE
    assert heap.allocate(5 * PAGE + GAP, "as large").address == hole
    heap.free(made[0])
    assert heap.allocate(PAGE, "first").address == FIRST


def test_the_last_allocation_ends_with_its_gap_inside_the_space() -> None:
    heap = Heap("heap", 32)
    with pytest.raises(softgen.UsageError, match="large: 4,293,853,185 bytes do not fit into an address space of 32 bits"):
        heap.allocate((1 << 32) - FIRST - GAP + 1, "large")
    assert heap.allocate((1 << 32) - FIRST - GAP, "large").address == FIRST


def test_bytes_are_written_at_an_offset() -> None:
    allocation = Heap("heap", 48).allocate(8, "eight")
    allocation.write(b"abcd")
    allocation.write(b"xy", 3)
    assert allocation.heap.space.read(allocation.address, 8) == b"abcxy\0\0\0"


@pytest.mark.parametrize("size, dtype, channels, pitch, rows, whole", [
    ((16, 4), np.uint32, 1, 64, 4, 256), ((17, 5), np.uint32, 1, 128, 8, 1024), ((1, 1), np.uint8, 1, 64, 4, 256),
    ((64, 1, 3), np.uint8, 1, 64, 4, 768), ((5, 9, 2), np.float32, 4, 128, 12, 3072)])  # fmt: skip
def test_rows_of_an_image_are_aligned_to_64_bytes_and_slices_to_4_rows(size: tuple[int, ...], dtype: type, channels: int, pitch: int,
                                                                       rows: int, whole: int) -> None:  # fmt: skip
    format = find_format(np.dtype(dtype), channels, False)
    assert (layout(size, format), image_bytes(size, format)) == ((pitch, rows), whole)


@pytest.mark.parametrize("layered", [False, True])
def test_texels_of_an_image_are_at_their_pitches(layered: bool) -> None:
    with softgen.Gpu("kbl") as gpu:
        image = gpu.image(np.arange(2 * 3 * 5 * 2, dtype=np.uint16).reshape(2, 3, 5, 2), layered=layered)
        for slice_, y, x, channel in ((0, 0, 0, 0), (1, 2, 4, 1), (1, 0, 3, 0), (0, 2, 0, 1)):
            at = image.address + slice_ * 4 * 64 + y * 64 + x * 4 + channel * 2
            assert int.from_bytes(gpu._heap.space.read(at, 2), "little") == slice_ * 30 + y * 10 + x * 2 + channel


def test_the_picture_of_a_deep_image_is_its_first_slice() -> None:
    with softgen.Gpu("kbl") as gpu:
        data = np.arange(24, dtype=np.uint8).reshape(2, 3, 4) * 10
        for layered in (False, True):
            assert np.array_equal(np.asarray(gpu.image(data, channels=1, layered=layered).picture()), data[0])
        assert np.array_equal(np.asarray(gpu.image(data[1]).picture()), data[1])


def test_pictures_have_bytes_for_channels() -> None:
    """Floats from 0 to 1 are clipped and scaled, what is not a number is 0; two channels are red and green."""
    floats = np.array([[-1, 0, 0.5], [1, 2, np.nan]], np.float32)
    assert np.asarray(picture(floats)).tolist() == [[0, 0, 127], [255, 255, 0]]
    assert np.asarray(picture(np.array([[-5, 7, 300]], np.int16))).tolist() == [[0, 7, 255]]
    two = np.array([[[1, 2], [3, 4]]], np.uint8)
    assert np.asarray(picture(two)).tolist() == [[[1, 2, 0], [3, 4, 0]]] and picture(two).mode == "RGB"
    assert picture(np.zeros((1, 2, 4), np.uint8)).mode == "RGBA" and picture(np.zeros((1, 2), np.uint8)).mode == "L"
