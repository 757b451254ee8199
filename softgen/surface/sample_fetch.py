"""Fetch of samples: a sample of a texel by numbers, and of control surfaces what they say about texels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from softgen.lanes.machine import Machine
from softgen.lanes.types import LaneType, u32, u64
from softgen.lanes.value import Region, Value
from softgen.surface import samples
from softgen.surface.fetch import raw, selected_channels, unpack
from softgen.surface.image import CHANNEL_NAMES, SurfaceImage, extent, offset, slices


def control_image(image: SurfaceImage) -> SurfaceImage | None:
    """The control surface of an image as an image of integers; None if it has none."""
    if image.control is None:
        return None
    return replace(image, format=samples.control_format(image.samples), base=image.control.base, pitch=image.control.pitch,
                   rows=image.control.rows, tiling="y_major", samples=1, control=None, near=False, select=CHANNEL_NAMES)  # fmt: skip


def locate_sample(m: Machine, image: SurfaceImage, places: list[Value], sample: Value, type: LaneType) -> tuple[Value, Value]:
    """The byte offsets of samples from the base, and the lanes whose texel is inside the image. `sample`: its number, where samples are
    interleaved, or that of its slice."""
    lanes = sample.lanes
    u, v, r = places
    inside = (u < extent(m, image, 0, None, lanes)) & (v < extent(m, image, 1, None, lanes)) & (r < slices(m, image, None, lanes))
    if image.interleaved:
        u, v = samples.interleave(m, image.samples, u, v, sample)
        return offset(m, image, u, v, r, None, type), inside
    each: dict[str, Any] = {"is_array": True, "first": image.first * image.samples}
    return offset(m, replace(image, **each), u, v, r * image.samples + sample, None, type), inside


def fetch_sample(m: Machine, image: SurfaceImage, memory: Region, places: list[Value], sample: Value, control: list[Value],
                 mask: Value) -> list[Value]:  # fmt: skip
    """Load samples of the texels at integer coordinates: numbers that the surface does not have count as its last. `control`: what its
    control surface says about the texels."""
    last = m.like(sample, image.samples - 1)
    sample = m.select(sample < last, sample, last)
    where = samples.slice_of(m, image.samples, control, sample) if image.control is not None else sample
    at, inside = locate_sample(m, image, places, where, u32 if image.near else u64)
    held = raw(m, image, memory, at, mask & inside, selected_channels(image))
    if image.control is not None:
        clear = inside & samples.is_clear(m, image.samples, control)
        words = samples.clear_words(m, image.format, samples.clear_channels(m, image.control))
        held = [m.select(clear, m.broadcast(word, mask.lanes), value) for word, value in zip(words, held, strict=True)]
    return unpack(m, image, held)

