"""Images of surface states that differ from one decoded before in numbers only: address, width, height, pitch, rows between slices, levels.

Reads   RENDER_SURFACE_STATE

Textures of one kind come by the hundred, each of its own size at its own address (three_d/draw/surface_moves.py). Decoding a state takes
longer than all else that is done for another texture; here the image of another state of the kind gets the numbers. Of plain images only:
those of one slice and sample, without blocks, whose levels do not begin with tiles.
"""

from __future__ import annotations

from array import array
from dataclasses import fields
from functools import cache, lru_cache
from typing import Any, NamedTuple

from softgen.bits import catalogue
from softgen.bits.layout import Layout
from softgen.bits.record import Record
from softgen.surface import tiling
from softgen.surface.image import SurfaceImage, image_from_state, is_near, reach
from softgen.surface.samples import stored_rows
from softgen.surface.slices import is_spaced, rows_between, slice_rows
from softgen.surface.texel import is_paletted

SURFACE = "RENDER_SURFACE_STATE"
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
    page = catalogue.layout(SURFACE, gen)
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


class PlainKind(NamedTuple):
    """Plain images that differ in numbers only: one of them, and whether slices leave room for all levels."""

    image: SurfaceImage
    spaced: bool


_plain_kinds: dict[tuple[float, int], PlainKind] = {}  # by the bits of a state that are no numbers


def image_of_bits(gen: float, data: bytes) -> SurfaceImage | None:
    """The image of a surface state, if it is a plain one, of a kind that was met."""
    value = int.from_bytes(data, "little")
    key = gen, value & ~numbers_mask(gen)
    kind = _plain_kinds.get(key)
    if kind is None:
        layout = catalogue.layout(SURFACE, gen)
        state = layout.raw(array("I", data))
        found = _resized(gen, state)
        if found is not None and not is_paletted(found.format):
            if len(_plain_kinds) >= MOST_KINDS:
                _plain_kinds.clear()
            _plain_kinds[key] = PlainKind(found, is_spaced(layout, state))
        return found if key in _plain_kinds else None
    base, width, height, pitch, qpitch, levels, level = (value >> low & mask for low, mask in _bits(gen))
    step = _qpitch_step(gen)
    rows = rows_between(gen, height + 1, kind.image.align[1], qpitch * step if step else None, kind.spaced)
    return _numbered(kind.image, base, width + 1, height + 1, pitch + 1, rows, levels + 1, level)


@cache
def _bits(gen: float) -> tuple[tuple[int, int], ...]:
    """Where a state has address, width, height, pitch, QPitch, and levels (no bits where it has none)."""
    page = catalogue.layout(SURFACE, gen)
    known = {field.name: (field.low, (1 << field.width) - 1) for field in page.fields}
    names = "surface_base_address", "width", "height", "surface_pitch", "surface_qpitch", "mip_count_lod", "surface_min_lod"
    return tuple(known.get(name, (0, 0)) for name in names)


@cache
def _qpitch_step(gen: float) -> int:
    """The rows that 1 of QPitch stands for; 0: there is none."""
    page = catalogue.layout(SURFACE, gen)
    if "surface_qpitch" not in {field.name for field in page.fields}:
        return 0
    return int(getattr(page.raw(page.pack(surface_qpitch=1)), "qpitch_rows", 0))


def placed(image: SurfaceImage, **numbers: int) -> SurfaceImage:
    """The image with other numbers."""
    held, found = vars(image), SurfaceImage.__new__(SurfaceImage)  # its constructor takes longer than all the rest
    vars(found).update({name: held[name] for name in FIELDS}, **numbers)
    return found


@cache
def numbers_mask(gen: float) -> int:
    """The bits of a surface state that are numbers of a plain image."""
    found = 0
    for field in catalogue.layout(SURFACE, gen).fields:
        if field.name in NUMBERS:
            found |= field.mask
    return found


@lru_cache(1024)
def _resized(gen: float, state: Record) -> SurfaceImage | None:
    """The image of a state by that of another, if its kind was met when it was first asked for."""
    of_kind = _kinds.get(_kind(gen, state))
    return None if of_kind is None else _with_numbers(catalogue.layout(SURFACE, gen), state, of_kind)


def _is_plain(image: SurfaceImage) -> bool:
    one = image.depth == image.samples == 1 and image.block == (1, 1) and image.near
    return one and image.kind == "2d" and image.layout == "below" and not (image.first or image.tail or image.moved) and (
        image.lines == (1, 0) and not tiling.slices(image.tiling))  # fmt: skip


def _with_numbers(layout: Layout, state: Record, of_kind: SurfaceImage) -> SurfaceImage | None:
    """A plain image with the numbers of a state; None where it may reach into another part of the address space."""
    height = int(state.height) + 1
    rows = slice_rows(layout, state, of_kind.layout, stored_rows(layout, state, height), of_kind.align[1])
    return _numbered(of_kind, int(state.surface_base_address), int(state.width) + 1, height, int(state.surface_pitch) + 1, rows,
                     int(state.mip_count_lod) + 1, int(state.surface_min_lod))  # fmt: skip


def _numbered(of_kind: SurfaceImage, base: int, width: int, height: int, pitch: int, rows: int, levels: int,
              level: int) -> SurfaceImage | None:  # fmt: skip
    order = "" if of_kind.tiling == "linear" else tiling.orders()[of_kind.tiling]
    largest = (2 * height + MARGIN) * pitch + ((2 * width + MARGIN) * of_kind.size << order.count("Y")) + (1 << len(order))
    found = placed(of_kind, base=base, width=width, height=height, pitch=pitch, rows=rows, levels=levels, level=level)
    return found if is_near(base, largest) or is_near(base, reach(found)) else None
