"""Media surfaces: where the channels of their formats are.

Reads   MEDIA_SURFACE_STATE
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from softgen.bits import catalogue
from softgen.bits.describe import value_name
from softgen.bits.record import Record
from softgen.errors import Unsupported

RED, GREEN, BLUE, ALPHA = "rgba"  # of YUV: V, Y, U
Shift = tuple[int, int]
FRAME = "frame"


class MediaChannel(NamedTuple):
    """Where a channel's samples are: sample (x, y) is at byte `offset + step * x` of row `row + y`."""

    row: int
    offset: int
    step: int
    width: int
    height: int
    shift: Shift = (0, 0)  # log2 of luma samples for one
    half_pitch: bool = False


@dataclass(frozen=True)
class MediaImage:
    """A media surface understood."""

    base: int
    pitch: int
    tiling: str
    width: int
    height: int
    channels: dict[str, MediaChannel]
    siting: tuple[float, float]  # of chroma, in luma samples from the first of its group
    mirrored: bool  # beyond edges, else the nearest sample counts
    rgb: bool


PACKED = {  # bytes of a group, and where channels begin in it
    "ycrcb_normal": (4, "g0 b1 r3"), "ycrcb_swapuvy": (4, "g1 r0 b2"), "ycrcb_swapuv": (4, "g0 r1 b3"), "ycrcb_swapy": (4, "g1 b0 r2"),
    "r8g8b8a8_unorm": (4, "r0 g1 b2 a3"), "b8g8r8a8_unorm": (4, "b0 g1 r2 a3"), "a8y8u8v8_unorm": (4, "r0 b1 g2 a3"),
    "r8b8_unorm": (2, "r0 b1"), "r8_unorm": (1, "r0"), "y8_unorm": (1, "g0"),
}  # fmt: skip
PLANAR: dict[str, Shift] = {"planar_420_8": (1, 1), "planar_422_8": (1, 0), "planar_411_8": (2, 0)}
RGB = ("r8g8b8a8_unorm", "b8g8r8a8_unorm")


@lru_cache(1024)
def media_image(gen: float, state: Record, what: str) -> MediaImage:
    """Of a MEDIA_SURFACE_STATE."""
    layout = catalogue.layout("MEDIA_SURFACE_STATE", gen)
    word = {name: value_name(layout, state, name) for name in ("surface_format", "tile_mode", "picture_structure")}
    _refuse(state, what, word["picture_structure"])
    width, height = state.width + 1, state.height + 1
    if word["surface_format"] in PLANAR:
        channels = _planar(state, width, height, PLANAR[word["surface_format"]])
    elif word["surface_format"] in PACKED:
        channels = _packed(word["surface_format"], width, height)
    else:
        raise Unsupported(f"{what} has the format {word['surface_format']}: not yet simulated for this message")
    down = state.cr_v_cb_u_pixel_offset_v_direction / 4 + getattr(state, "cr_v_cb_u_pixel_offset_v_direction_msb", 0)
    siting = getattr(state, "cr_v_cb_u_pixel_offset_u_direction", 0) / 2, down
    return MediaImage(int(state.surface_base_address), state.surface_pitch + 1, word["tile_mode"], width, height, channels, siting,
                      bool(getattr(state, "address_control", 0)), word["surface_format"] in RGB)  # fmt: skip


def _refuse(state: Record, what: str, structure: str) -> None:
    for name in ("rotation", "x_offset", "y_offset", "memory_compression_enable", "vertical_line_stride"):
        if getattr(state, name, 0):
            raise Unsupported(f"{what} has {name}: not yet simulated for this message")
    if structure != FRAME:
        raise Unsupported(f"{what} has picture_structure {structure}: not yet simulated for this message")


def _planar(state: Record, width: int, height: int, shift: Shift) -> dict[str, MediaChannel]:
    sides = (width + (1 << shift[0]) - 1) >> shift[0], (height + (1 << shift[1]) - 1) >> shift[1]
    rows, columns = (state.y_offset_for_u_cb, state.y_offset_for_v_cr), (state.x_offset_for_u_cb, state.x_offset_for_v_cr)
    half = bool(state.half_pitch_for_chroma)
    found = {GREEN: MediaChannel(0, 0, 1, width, height)}
    if state.interleave_chroma:
        found |= {name: MediaChannel(rows[0], columns[0] + at, 2, *sides, shift, half) for at, name in enumerate((BLUE, RED))}
    else:
        found |= {name: MediaChannel(rows[at], columns[at], 1, *sides, shift, half) for at, name in enumerate((BLUE, RED))}
    return found


def _packed(name: str, width: int, height: int) -> dict[str, MediaChannel]:
    step, places = PACKED[name]
    found = {}
    for place in places.split():
        letter, at = place[0], int(place[1:])
        if name.startswith("ycrcb") and letter != GREEN:
            found[letter] = MediaChannel(0, at, step, (width + 1) // 2, height, (1, 0))
        else:
            found[letter] = MediaChannel(0, at, step // 2 if name.startswith("ycrcb") else step, width, height)
    return found
