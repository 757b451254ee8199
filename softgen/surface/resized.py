"""Images of surface states that differ from one decoded before in numbers only: address, width, height, pitch, rows between slices, levels.

Reads   RENDER_SURFACE_STATE

Textures of one kind come by the hundred, each of its own size at its own address (three_d/draw/surface_moves.py). Decoding a state takes
longer than all else that is done for another texture; here the image of another state of the kind gets the numbers. Of plain images only:
those of one slice and sample, without blocks, whose levels do not begin with tiles.
"""

from __future__ import annotations

from dataclasses import fields
from functools import cache, lru_cache
from typing import Any

from softgen.bits import catalogue
from softgen.bits.layout import Layout
from softgen.bits.record import Record
from softgen.surface import tiling
from softgen.surface.image import SurfaceImage, image_from_state, is_near, slice_rows
from softgen.surface.samples import stored_rows

# Fields of a plain image's numbers, other names of their bits, and what is only read of auxiliary surfaces, which it has none of.
NUMBERS = ("surface_base_address", "width", "height", "surface_pitch", "surface_qpitch", "qpitch_rows", "qpitch_texels", "mip_count_lod",
           "surface_min_lod", "number_of_entries", "auxiliary_surface_base_address", "auxiliary_surface_pitch",
           "auxiliary_surface_qpitch")  # fmt: skip
LEVELS_ELSEWHERE = ("tiled_resource_mode", "mip_map_layout_mode")  # fields
MOST_KINDS = 256
MARGIN = 512  # texels and rows that 16 levels, each one texel larger than it is, take at most besides twice the first
FIELDS = tuple(field.name for field in fields(SurfaceImage))
_kinds: dict[tuple[float, tuple[Any, ...]], SurfaceImage] = {}  # the image of a state without its numbers


@cache
def _places(gen: float) -> tuple[int, ...]:
    """Places of NUMBERS in a record of the state."""
    page = catalogue.layout("RENDER_SURFACE_STATE", gen)
    names = page.raw([0] * page.dwords)._fields
    return tuple(names.index(name) for name in NUMBERS if name in names)


def surface_image(layout: Layout, state: Record, what: str) -> SurfaceImage:
    """The image of a surface state, as image_from_state has it."""
    found = _resized(layout.gen, state)
    if found is None:
        found = image_from_state(layout, state, what)
        if _is_plain(found) and not any(getattr(state, name, 0) for name in LEVELS_ELSEWHERE):
            if len(_kinds) >= MOST_KINDS:
                _kinds.clear()
            _kinds[_kind(layout.gen, state)] = found
    return found


def _kind(gen: float, state: Record) -> tuple[float, tuple[Any, ...]]:
    """The state that images of a kind share: without its numbers."""
    values = list(state)
    for place in _places(gen):
        values[place] = 0
    return gen, tuple(values)


@lru_cache(1024)
def _resized(gen: float, state: Record) -> SurfaceImage | None:
    """The image of a state by that of another, if its kind was met when it was first asked for."""
    of_kind = _kinds.get(_kind(gen, state))
    return None if of_kind is None else _with_numbers(catalogue.layout("RENDER_SURFACE_STATE", gen), state, of_kind)


def _is_plain(image: SurfaceImage) -> bool:
    one = image.depth == image.samples == 1 and image.block == (1, 1) and image.near
    return one and image.kind == "2d" and image.layout == "below" and not (image.first or image.tail or image.moved) and (
        image.lines == (1, 0) and not tiling.slices(image.tiling))  # fmt: skip


def _with_numbers(layout: Layout, state: Record, of_kind: SurfaceImage) -> SurfaceImage | None:
    """A plain image with the numbers of a state; None where it may reach into another part of the address space."""
    base, width, height, pitch = int(state.surface_base_address), int(state.width) + 1, int(state.height) + 1, int(state.surface_pitch) + 1
    order = "" if of_kind.tiling == "linear" else tiling.orders()[of_kind.tiling]
    largest = (2 * height + MARGIN) * pitch + ((2 * width + MARGIN) * of_kind.size << order.count("Y")) + (1 << len(order))
    if not is_near(base, largest):
        return None
    rows = slice_rows(layout, state, of_kind.layout, stored_rows(layout, state, height), of_kind.align[1])
    held, found = vars(of_kind), SurfaceImage.__new__(SurfaceImage)  # its constructor takes longer than all the rest
    vars(found).update({name: held[name] for name in FIELDS}, base=base, width=width, height=height, pitch=pitch, rows=rows,
                       levels=int(state.mip_count_lod) + 1, level=int(state.surface_min_lod))  # fmt: skip
    return found
