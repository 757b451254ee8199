"""Surfaces of the video scaler for compiled code: a ScalerSurface for each binding table entry that sample_8x8 names (scaler.c).

In:  surface and scaler state. Out: host addresses in Bindings.scalers. One scaler state for each surface: messages with another one, and
surfaces that are refused, are left to the interpreter.
"""

from __future__ import annotations

import ctypes
from functools import cache

import numpy as np

from softgen.errors import SoftgenError
from softgen.library import AGAIN
from softgen.library import load as load_part
from softgen.shared_functions import block_access
from softgen.shared_functions.avs import scaler_h
from softgen.shared_functions.avs.scaler_h import ScalerSurface
from softgen.shared_functions.avs.state import ALL_EIGHT, ScalerState, bilinear, scaler_state
from softgen.shared_functions.avs.surface import ALPHA, GREEN, MediaImage, media_image
from softgen.shared_functions.bindings import Bindings
from softgen.shared_functions.block_access import SurfaceWalk
from softgen.shared_functions.dataport.surface import Surfaces
from softgen.shared_functions.sampler.state import Samplers

ORDER = "rgba"
OPAQUE = 0xFF00


@cache
def _function() -> int:
    """The host address of scaler_sample()."""
    found = ctypes.cast(load_part("softgen.shared_functions._blocks", scaler_h).scaler_sample, ctypes.c_void_p).value
    if not found:
        raise SoftgenError(f"softgen.shared_functions._blocks is of another version; {AGAIN}")
    return found


@cache
def _bilinear() -> np.ndarray[tuple[int, ...], np.dtype[np.int16]]:
    return np.ascontiguousarray(bilinear(), np.int16)


class ScalerSurfaces:
    """The surfaces of a binding table that are scaled, entered into its Bindings."""

    def __init__(self, bindings: Bindings, surfaces: Surfaces, samplers: Samplers) -> None:
        self.bindings, self.surfaces, self.samplers = bindings, surfaces, samplers
        self._held: dict[int, tuple[ScalerSurface, object]] = {}  # what the entries point to, and what these do

    def fill(self, index: int, sampler: int) -> bool:
        """Enter a surface with a scaler state; whether it was not there."""
        if index in self._held:
            return False
        image = media_image(self.surfaces.gen, self.surfaces.media_state(index), f"surface {index}")
        state = scaler_state(self.samplers, sampler)
        made, taps = scaler_surface(self.surfaces, image, state, sampler)
        self._held[index] = made, taps
        self.bindings.scalers[index] = ctypes.addressof(made)
        return True

    def holds(self, index: int) -> bool:
        return index in self._held


def scaler_surface(surfaces: Surfaces, image: MediaImage, state: ScalerState, sampler: int) -> tuple[ScalerSurface, object]:
    """The numbers of a surface and a state, and the coefficients that they point to."""
    made, space, taps = ScalerSurface(), surfaces.space, np.ascontiguousarray(state.tables, np.int16)
    made.sample, made.sampler = _function(), sampler
    made.table, made.address_mask = ctypes.addressof(space.table), (1 << space.bits) - 1
    made.width, made.height, made.mirrored = image.width, image.height, image.mirrored
    made.taps, made.bilinear = taps.ctypes.data, _bilinear().ctypes.data
    made.sharpness, (made.adaptive_x, made.adaptive_y) = state.sharpness, state.adaptive
    made.shuffled, made.edges = state.shuffled, state.edges
    (made.derivative_4, made.derivative_8), (made.transition_4, made.transition_8) = state.derivatives, state.transitions
    for letter, channel in zip(ORDER, made.channels, strict=True):
        place = image.channels.get(letter)
        if place is None:
            channel.value = OPAQUE if letter == ALPHA else 0
            continue
        block_access.place(made, SurfaceWalk(space, image.base, image.tiling, image.pitch // 2 if place.half_pitch else image.pitch))
        made.run = block_access.run(image.tiling)
        channel.held, channel.across, channel.table = 1, made.across, 0 if letter == GREEN or state.eight_taps in ALL_EIGHT else 1
        channel.row, channel.offset, channel.step, channel.width, channel.height = place[:5]
        (channel.shift_x, channel.shift_y), (channel.siting_x, channel.siting_y) = place.shift, image.siting
    return made, taps
