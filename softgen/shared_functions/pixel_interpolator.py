"""The pixel interpolator as a unit: barycentrics of pixels, where a shader asks for them.

In:  messages with offsets from the pixel's centre, in sixteenths; the planes of the thread's object (PixelDispatch).
Out: b1 and b2 of eight channels, then of the next eight, as payloads have them (GRAPHICS_THREADS 3.6).

The positions of samples and what is covered of pixels stand in PixelDispatch, where pixels have several samples. Where they have one, it is
in the pixel's centre, and so are centroids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from softgen.bits.units import GRF_BYTES
from softgen.errors import Unsupported
from softgen.lanes.machine import Machine
from softgen.lanes.numpy.machine import NumpyMachine
from softgen.lanes.record import RecordLayout, RecordView
from softgen.lanes.types import f32, f64, i32, u16, u32
from softgen.lanes.value import Memory, Value
from softgen.shared_functions.message import Message, answers
from softgen.shared_functions.pixel_dispatch_h import PixelDispatch
from softgen.shared_functions.unit import GroupBindings, Unit

if TYPE_CHECKING:
    from softgen.shared_functions.compiled import MessageCode

NAME = "pixel interpolator"
PIXEL = RecordLayout.of(PixelDispatch)
PLACE_AT, PLANES_AT, COVERED_AT = PIXEL.offset("place"), PIXEL.offset("planes"), PIXEL.offset("sample_covered")
MOST_SAMPLES = 16
PLANE = 3  # numbers of a plane: at (0, 0), and the steps along x and y
RHW, LINEAR, PERSPECTIVE = 0, 1, 3  # planes
STEP = 1 / 16  # of offsets, in pixels
CORNER, INSIDE = 0xFFFC, 3  # parts of a coordinate: where its block of 4x4 pixels is, and where the pixel is in it
HIGH = 16  # first channel of the upper slot group
OFFSET_BITS = 4
LANES = 8  # of a register

_MACHINE = NumpyMachine()


class InterpolatorEnvironment(Protocol):
    def pixel(self) -> Memory:
        """The thread's PixelDispatch."""
        ...


InterpolatorMessage = Message[InterpolatorEnvironment]


class _Planes:
    """The planes of a thread's object, at some channels' pixels moved by offsets: computed as payloads have them, so that where a pixel is
    not moved the result is the payload's, as with hardware that has one interpolator."""

    def __init__(self, m: Machine, pixel: Memory, lanes: int, first: int, offsets: tuple[Value, Value]) -> None:
        self.m, self.pixel, self.lanes = m, pixel, lanes
        places = m.load_block(u32, lanes // 4, pixel, m.constant(u32, PLACE_AT + first, 1))
        spread, number = m.shuffle(places, [lane // 4 for lane in range(lanes)]), m.lane_index(lanes)
        left, top, inside = spread & CORNER, spread >> 16 & CORNER, (number & 1, number >> 1 & 1)
        self.left, self.top = (m.convert(m.bitcast(corner, i32), f64) for corner in (left, top))  # corners of the pixels' blocks
        x, y = ((spread >> shift & INSIDE) + offset for shift, offset in zip((0, 16), inside, strict=True))
        self.x, self.y = (m.convert(m.bitcast(pixel, i32), f32) + offset for pixel, offset in zip((x, y), offsets, strict=True))

    def value(self, plane: int) -> Value:
        """In doubles at the corner of the block, from there in floats; what the corner loses as a float is added before it."""
        m, (c, dx, dy) = self.m, (self._number(PLANE * plane + n) for n in range(PLANE))
        corner = m.fma(dx, self.left, m.fma(dy, self.top, c))
        near = m.convert(corner, f32)
        rest = m.convert(corner - m.convert(near, f64), f32)
        rest = m.select(near - near == 0.0, rest, m.like(rest, 0.0))  # not where the corner is infinite
        return m.fma(m.convert(dx, f32), self.x, m.fma(m.convert(dy, f32), self.y, rest)) + near

    def _number(self, number: int) -> Value:
        m = self.m
        held = m.load_block(f64, 1, self.pixel, m.constant(u32, PLANES_AT + number * f64.bytes, 1))
        return m.broadcast(held, self.lanes)

    def barycentrics(self, linear: bool) -> list[Value]:
        if linear:
            return [self.value(LINEAR + number) for number in (0, 1)]
        w = self.m.div(self.m.constant(f32, 1.0, self.lanes), self.value(RHW))
        return [self.value(PERSPECTIVE + number) * w for number in (0, 1)]


def _signed(field: int) -> float:
    """An offset of the descriptor, in pixels."""
    return (field - (1 << OFFSET_BITS) if field >> OFFSET_BITS - 1 & 1 else field) * STEP


def _offsets(x: InterpolatorMessage, lanes: int) -> tuple[Value, Value]:
    m = x.m
    if x.plan.name == "interpolate_per_slot_offset":
        across, down = (m.convert(x.take(i32, part * lanes * i32.bytes, lanes), f32) * STEP for part in (0, 1))
        return across, down
    if x.plan.name in ("interpolate_sample_position", "interpolate_centroid"):
        return _sample_offsets(x, lanes)
    data = int(x.plan.fields.message_data)
    mask = (1 << OFFSET_BITS) - 1
    return m.constant(f32, _signed(data & mask), lanes), m.constant(f32, _signed(data >> OFFSET_BITS & mask), lanes)


def _sample_offsets(x: InterpolatorMessage, lanes: int) -> tuple[Value, Value]:
    """Where a sample is, or each pixel's centroid: the pixel's centre if all samples are covered, else the first one that is."""
    m, view = x.m, RecordView(x.m, PIXEL, x.environment.pixel(), 0)
    count = view.load("samples")
    several = m.broadcast(count != 0, lanes)
    if x.plan.name == "interpolate_centroid":
        first = HIGH if x.plan.words["slot_group"] == "high_16" else 0
        held = m.load_block(u16, lanes, view.memory, m.constant(u32, COVERED_AT + first * u16.bytes, 1))
        covered, every = m.convert(held, u32), (m.like(count, 1) << (count & MOST_SAMPLES * 2 - 1)) - 1
        moved = several & (covered != 0) & (covered != m.broadcast(every, lanes))
        index = m.select(moved, m.trailing_zeros(covered), 0)
    else:
        last = m.select(count != 0, count - 1, m.like(count, 0))
        index = m.broadcast(m.min(m.constant(u32, int(x.plan.fields.sample_index), 1), last), lanes)
        moved = several
    found = []
    for name in ("sample_x", "sample_y"):
        table = m.load_block(f32, MOST_SAMPLES, view.memory, m.constant(u32, PIXEL.offset(name), 1))
        value = m.permute(table, index & MOST_SAMPLES - 1)
        found.append(m.select(moved, value, m.like(value, 0.0)))
    return found[0], found[1]


@answers("interpolate_shared_offset", "interpolate_sample_position", "interpolate_centroid", "interpolate_per_slot_offset")
def interpolate(x: InterpolatorMessage) -> None:
    if getattr(x.plan.fields, "shading_rate", 0):
        raise Unsupported(f"{x.plan.name} with shading_rate coarse_pixel: not yet simulated")
    lanes = 2 * LANES if x.plan.words["simd_mode"] == "simd16" else LANES
    first = HIGH if x.plan.words["slot_group"] == "high_16" else 0
    planes = _Planes(x.m, x.environment.pixel(), lanes, first, _offsets(x, lanes))
    found = planes.barycentrics(x.plan.words["interpolation_mode"] == "linear")
    for group in range(lanes // LANES):
        for number, value in enumerate(found):
            mask = x.lanes(LANES, LANES * group)
            x.give(x.m.slice(value, LANES * group, LANES), (2 * group + number) * GRF_BYTES, mask)


class PixelInterpolator:
    """An InterpolatorEnvironment on the interpreter."""

    def __init__(self) -> None:
        self._pixel: npt.NDArray[np.uint8] | None = None

    def begin(self, sender: object) -> None:
        self._pixel = getattr(sender, "pixel", None)

    def pixel(self) -> Memory:
        if self._pixel is None:
            raise Unsupported("a pixel interpolator message of a thread that has no pixels")
        return Memory(_MACHINE, self._pixel, "pixel dispatch")


class CompiledInterpolator:
    """An InterpolatorEnvironment in compiled code."""

    def __init__(self, code: MessageCode) -> None:
        self.code = code

    def pixel(self) -> Memory:
        return self.code.pixel().memory("pixel")


def interpolator(group: GroupBindings) -> PixelInterpolator:
    return PixelInterpolator()


UNIT = Unit(name=NAME, functions=("pixel_interpolator",), interpreter=interpolator, compiled=CompiledInterpolator)
