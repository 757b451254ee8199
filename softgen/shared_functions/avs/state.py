"""States of the adaptive video scaler: coefficients of each phase, and which filters are on.

Reads   SAMPLER_STATE_8X8 SAMPLER_8X8_STATE SAMPLER_STATE_8X8_AVS
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from softgen.bits import catalogue
from softgen.bits.layout import Layout
from softgen.errors import GpuFault, Unsupported
from softgen.shared_functions.sampler.state import Samplers

Taps = npt.NDArray[np.int32]
PHASES, TAPS, MIDDLE = 32, 8, 3  # MIDDLE: the tap at the place itself
ONE = 64  # coefficients have six bits behind the point
STATE_UNIT = 2048  # bytes that an index counts from Gen8 on (observed: intel-media-driver)
ALL_EIGHT = (2, 3)  # enable_8_tap_filter: eight taps for all channels


@dataclass(frozen=True)
class ScalerState:
    """A scaler state understood. Tables are indexed by table, axis, phase and tap."""

    tables: npt.NDArray[np.int32]
    sharpness: int
    adaptive: tuple[bool, bool]  # across, down
    derivatives: tuple[int, int]  # the largest of four and of eight samples that are filtered sharply
    transitions: tuple[int, int]  # log2
    eight_taps: int  # enable_8_tap_filter
    shuffled: bool
    edges: bool  # the state asks for edge enhancement


def bilinear() -> Taps:
    """A bilinear filter by phase and tap."""
    found = np.zeros((PHASES, TAPS), np.int32)
    found[:, MIDDLE], found[:, MIDDLE + 1] = ONE - 2 * np.arange(PHASES), 2 * np.arange(PHASES)
    return found


def scaler_state(samplers: Samplers, index: int) -> ScalerState:
    """The state of an index in the dispatch's table."""
    gen, start = samplers.gen, samplers.base + samplers.table
    if (whole := catalogue.catalogue().get("SAMPLER_STATE_8X8_AVS", gen)) is not None:
        return _in_line(gen, _read(samplers, whole, start + index * STATE_UNIT))
    layout = catalogue.layout("SAMPLER_STATE_8X8", gen)
    data = _read(samplers, layout, start + index * 4 * layout.dwords)
    state = layout.raw(array("I", data))
    if state.disable_8x8_filter:
        raise Unsupported("sample_8x8 with disable_8x8_filter: not yet simulated")
    pointed = _read(samplers, catalogue.layout("SAMPLER_8X8_STATE", gen), samplers.base + int(state.sampler_8x8_state_pointer))
    return _pointed(gen, pointed, bool(state.ief_bypass))


def state_places(samplers: Samplers, index: int) -> Iterator[tuple[bool, int, int]]:
    """The parts of a state: whether an offset counts from the sampler base, and not from the table; the offset; bytes."""
    gen, pages = samplers.gen, catalogue.catalogue()
    if (whole := pages.get("SAMPLER_STATE_8X8_AVS", gen)) is not None:
        yield False, index * STATE_UNIT, 4 * whole.dwords
        return
    layout, pointed = catalogue.layout("SAMPLER_STATE_8X8", gen), catalogue.layout("SAMPLER_8X8_STATE", gen)
    yield False, index * 4 * layout.dwords, 4 * layout.dwords
    state = layout.raw(array("I", _read(samplers, layout, samplers.base + samplers.table + index * 4 * layout.dwords)))
    yield True, int(state.sampler_8x8_state_pointer), 4 * pointed.dwords


def _read(samplers: Samplers, layout: Layout, address: int) -> bytes:
    address &= (1 << samplers.space.bits) - 1
    try:
        return bytes(samplers.space.read(address, 4 * layout.dwords))
    except GpuFault as fault:
        why = f"{fault.why}; a state of the video scaler should be there"
        raise GpuFault(fault.address, fault.access, fault.space, fault.by, why) from None


@lru_cache(64)
def _in_line(gen: float, data: bytes) -> ScalerState:
    state = catalogue.layout("SAMPLER_STATE_8X8_AVS", gen).unpack(array("I", data))
    sets = [*state.filter_coefficient, *state.filter_coefficient_from_17]
    found = np.zeros((2, 2, PHASES, TAPS), np.int32)
    for phase, item in enumerate(sets):
        for tap, pair in enumerate(item.table_0):
            found[0, 0, phase, tap], found[0, 1, phase, tap] = pair.x_filter_coefficient * ONE, pair.y_filter_coefficient * ONE
        for axis, taps in enumerate((item.table_1x_from_2, item.table_1y_from_2)):
            found[1, axis, phase, 2:6] = [tap.filter_coefficient * ONE for tap in taps]
    return _with_switches(state, _filled(found, 17), state.enable_8_tap_filter, bool(getattr(state, "shuffle_output_writeback", 0)), False)


@lru_cache(64)
def _pointed(gen: float, data: bytes, bypassed: bool) -> ScalerState:
    state = catalogue.layout("SAMPLER_8X8_STATE", gen).unpack(array("I", data))
    found = np.zeros((2, 2, PHASES, TAPS), np.int32)
    for phase, item in enumerate(state.filter_coefficient):
        for number, taps in enumerate((item.table_0x, item.table_0y, item.table_1x, item.table_1y)):
            found[number // 2, number % 2, phase] = [tap.filter_coefficient * ONE for tap in taps]
    found[1, :, :, :2] = found[1, :, :, 6:] = 0  # four taps
    return _with_switches(state, _filled(found, 17), 1, False, not bypassed)


def _filled(tables: npt.NDArray[np.int32], known: int) -> npt.NDArray[np.int32]:
    """Drivers that leave the phases after the middle out have them mirrored: a place right of the middle is left of the next sample."""
    for phase in range(known, PHASES):
        if not tables[:, :, phase].any():
            tables[:, :, phase] = tables[:, :, PHASES - phase, ::-1]
    return tables


def _with_switches(state: Any, tables: npt.NDArray[np.int32], eight: int, shuffled: bool, edges: bool) -> ScalerState:
    tables.flags.writeable = False
    adaptive = not state.bypass_x_adaptive_filtering, not state.bypass_y_adaptive_filtering
    return ScalerState(tables, state.default_sharpness_level, adaptive, (state.max_derivative_4_pixels, state.max_derivative_8_pixels),
                       (state.transition_area_with_4_pixels, state.transition_area_with_8_pixels), eight, shuffled, edges)  # fmt: skip
