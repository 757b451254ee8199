"""Fuzz targets on captured pictures, one for each parser of the video engine: bytes of their slices and fields of their state mutated."""

from __future__ import annotations

import struct
from functools import cache

from softgen.command import Counters
from softgen.inspect.decode.video_slices import VideoSlice
from tests.fuzz.captured_targets import MOST_EDITS, Budget, Place, fields, items, path_of, run

STANDARDS = {
    "mpeg2": ("mpeg2-fields", "mpeg2-interlaced", "mpeg2-matrix"),
    "jpeg": ("jpeg-420", "jpeg-422", "jpeg-420-planar"),
    "h264": ("h264-cavlc", "h264-cabac", "h264-mbaff", "h264-mbaff-temporal", "h264-pcm", "h264-gray"),
    "vp8": ("vp8-segments", "vp8-bilinear", "vp8-full-pixel"),
    "hevc": ("hevc-inter", "hevc-intra", "hevc-tiles", "hevc-wavefront", "hevc-long-term", "hevc-10"),
    "vp9": ("vp9-tiles", "vp9-segments", "vp9-compound", "vp9-lossless", "vp9-10bit", "vp9-scaled"),
    "vc1": ("vc1-main", "vc1-simple", "vc1-advanced", "vc1-skipped"),
}
STATE = 0x80  # of an edit's first byte: a field of the state; otherwise the slice, over the bit for flips


@cache
def slices(name: str) -> tuple[tuple[int, VideoSlice], ...]:
    """The slices of a capture whose data is mapped, each with its submission."""
    return tuple((sequence, what) for sequence, space, what in items(name)
                 if isinstance(what, VideoSlice) and what.bytes >= 4 and space.extent(what.address, what.bytes) == what.bytes)  # fmt: skip


def place_of(name: str, kind: int, number: int) -> Place:
    """What an edit changes: a field, or four bytes of a slice."""
    if kind & STATE:
        return fields(name)[number % len(fields(name))]
    sequence, slice = slices(name)[(kind >> 1) % len(slices(name))]
    return Place(sequence, slice.address + number % (slice.bytes - 3), 4, 0xFFFFFFFF)


def decode_pictures(standard: str, data: bytes, budget: Budget) -> Counters | None:
    """Byte 0: the capture. Then edits of seven bytes: what, where, value. Bit 0 of what: flip its bits, not set them."""
    name = STANDARDS[standard][(data[0] if data else 0) % len(STANDARDS[standard])]
    if not path_of(name).exists():
        return None
    edits = []
    for at in range(1, min(len(data), 1 + 7 * MOST_EDITS) - 6, 7):
        kind, number, value = struct.unpack_from("<BHI", data, at)
        edits.append((place_of(name, kind, number), value, bool(kind & 1)))
    return run(name, "reference", edits, budget)
