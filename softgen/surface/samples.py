"""Surfaces with several samples of a texel: where samples are, and the control surface that says which slice has each.

Samples are in slices of their own, those of an array element one after another (MSS), or beside each other in blocks of 2x2 texels
(interleaved: depth, stencil). A control surface (MCS) has a number for each texel, with a field for each sample: the slice that has its
value. All ones: no slice does, all samples have the clear colour.

Sources: KBL 19617-19669; public: Mesa blorp_blit.c, blorp_nir_builder.h, isl_surface_state.c.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

from softgen.bits.describe import value_name
from softgen.bits.formats import Format, surface_formats
from softgen.bits.layout import Layout
from softgen.bits.record import Record
from softgen.lanes.machine import Machine
from softgen.lanes.types import u32
from softgen.lanes.value import Value
from softgen.surface import texel

TILE_BYTES = 128  # of a row of a Y tile, which control surfaces have
CHANNELS = ("red", "green", "blue", "alpha")
ONE, EVEN = 0x3F800000, 0xFFFFFFFE
CONTROL_FORMATS = {2: "R8_UINT", 4: "R8_UINT", 8: "R32_UINT", 16: "R32G32_UINT"}
FIELD_BITS = {2: 1, 4: 2, 8: 3, 16: 4}  # of a sample
# Texels and rows that a texel of an interleaved surface takes, as powers of two.
SPREAD = {1: (0, 0), 2: (1, 0), 4: (1, 1), 8: (2, 1), 16: (2, 2)}


class SampleControl(NamedTuple):
    """The control surface of an image; numbers, or lanes of a compiled program."""

    base: Any
    pitch: Any  # bytes
    rows: Any  # from slice to slice
    clear: Any = (0, 0, 0, 0)  # the bits of the clear colour's channels
    clear_at: int = 0  # where they are in memory instead


# -- state -----------------------------------------------------------------------------------------------------------------


def sample_count(state: Record) -> int:
    return 1 << int(getattr(state, "number_of_multisamples", 0) or 0)


def is_interleaved(layout: Layout, state: Record) -> bool:
    return sample_count(state) > 1 and value_name(layout, state, "multisampled_surface_storage_format") == "depth_stencil"


def stored_rows(layout: Layout, state: Record, height: int) -> int:
    """Rows of a slice."""
    return height if not is_interleaved(layout, state) else spread(sample_count(state), 1, height)[1]


def spread(samples: int, width: int, height: int) -> tuple[int, int]:
    """The size of an interleaved surface in memory: whole blocks of 2x2 texels."""
    across, down = SPREAD[samples]
    return -(-width // 2) * 2 << across if across else width, -(-height // 2) * 2 << down if down else height


def sample_fields(layout: Layout, state: Record, format: Format, height: int) -> dict[str, Any]:
    """Samples of a surface state, as fields of a SurfaceImage."""
    if sample_count(state) == 1:
        return {}
    interleaved = is_interleaved(layout, state)
    control = None if interleaved else _control(layout, state, format, height)
    return {"samples": sample_count(state), "interleaved": interleaved, "control": control}


def _control(layout: Layout, state: Record, format: Format, height: int) -> SampleControl | None:
    if "mcs_enable" in state._fields:
        if not state.mcs_enable:
            return None
        rows = -(-height // 4) * 4
    elif value_name(layout, state, "auxiliary_surface_mode") in ("mcs", "ccs_d"):
        rows = 4 * int(state.auxiliary_surface_qpitch)
    else:
        return None
    colors = 1 if "mcs_enable" in state._fields or layout.field("red_clear_color").width == 1 else 32
    base, pitch = int(state.auxiliary_surface_base_address), (int(state.auxiliary_surface_pitch) + 1) * TILE_BYTES
    at = int(state.clear_value_address) if getattr(state, "clear_value_address_enable", 0) else 0
    return SampleControl(base, pitch, rows, (0, 0, 0, 0) if at else clear_bits(state, colors, texel.is_integer(format)), at)


def clear_bits(state: Record, bits: int, is_integer: bool) -> tuple[int, ...]:
    """The bits of the four channels of the clear colour in a surface state: numbers, or 0 and 1 for a bit each."""
    values = tuple(int(getattr(state, f"{name}_clear_color")) for name in CHANNELS)
    return tuple(ONE * value for value in values) if bits == 1 and not is_integer else values


def stored_fields(samples: int, interleaved: bool, size: tuple[int, int], slices: tuple[int, int]) -> dict[str, Any]:
    """The fields of a SurfaceImage of one sample whose texels are the samples of another: an image of more texels, or an array. `size`:
    width and height; `slices`: their number, and the first."""
    if samples == 1:
        return {}
    if interleaved:
        width, height = spread(samples, *size)
        return {"samples": 1, "interleaved": False, "width": width, "height": height}
    return {"samples": 1, "control": None, "is_array": True, "depth": slices[0] * samples, "first": slices[1] * samples}


@cache
def control_format(samples: int) -> Format:
    return next(format for format in surface_formats().values() if format.name == CONTROL_FORMATS[samples])


# -- lane programs ---------------------------------------------------------------------------------------------------------


def interleave(m: Machine, samples: int, x: Value, y: Value, sample: Value) -> tuple[Value, Value]:
    """Column and row of a sample in an interleaved surface."""
    across, down = SPREAD[samples]
    if across:
        x = (x & EVEN) << across | (sample & 4 if across > 1 else m.like(sample, 0)) | (sample & 1) << 1 | (x & 1)
    if down:
        y = (y & EVEN) << down | ((sample & 8) >> 1 if down > 1 else m.like(sample, 0)) | (sample & 2) | (y & 1)
    return x, y


def identity(samples: int) -> list[int]:
    """The dwords of a control value that says of each sample that its own slice has it."""
    bits = FIELD_BITS[samples]
    whole = sum(sample << bits * sample for sample in range(samples))
    return [whole & u32.highest] if samples < 16 else [whole & u32.highest, whole >> u32.bits]


def is_clear(m: Machine, samples: int, control: list[Value]) -> Value:
    """Where a control value says that all samples have the clear colour."""
    ones = {2: 3, 4: 0xFF}.get(samples, u32.highest)
    found = (control[0] & ones) == ones
    return found & (control[1] == u32.highest) if samples == 16 else found


def slice_of(m: Machine, samples: int, control: list[Value], sample: Value) -> Value:
    """The slice that has a sample, by the control value of its texel."""
    bits = FIELD_BITS[samples]
    if samples < 16:
        return control[0] >> (sample * bits & u32.bits - 1) & (1 << bits) - 1
    half = m.select(sample < 8, control[0], control[1])
    return half >> ((sample & 7) * bits) & (1 << bits) - 1


def clear_words(m: Machine, format: Format, clear: list[Value]) -> list[Value]:
    """The clear colour as the words of a texel. Drivers give sRGB colours as they are stored."""
    return texel.pack(m, replace(format, space="linear"), clear)


def clear_channels(m: Machine, control: SampleControl) -> list[Value]:
    """The channels of the clear colour, a lane each."""
    return [value if isinstance(value, Value) else m.constant(u32, value, 1) for value in control.clear]
