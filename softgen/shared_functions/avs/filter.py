"""Sums over taps: 16x4 samples of a channel, with eight bits behind the point.

Positions are rounded to 1/512 of a sample, so that the arithmetic of coordinates does not move a whole number; the phase is their upper
five bits. Sums are integers with 12 bits behind the point, across first; four of them are dropped at the end. Sharpness below 255 mixes in
a bilinear filter. Where adaptive filtering is on, places whose neighbours differ by more than the limits become bilinear, with a ramp of
2^transition: that is our reading of the fields (KBL 22075-22131).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from softgen.shared_functions.avs.state import MIDDLE, ONE, PHASES, TAPS, ScalerState, bilinear

Numbers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
STEPS = 512  # of a position
FRACTION = 12  # bits of a sum
RESULT = 8  # bits of what is returned
MOST = 0xFFFF
FULL = 255  # sharpness


def positions(places: Floats) -> tuple[Numbers, Numbers]:
    """The sample left of each place, and the phase."""
    steps = np.floor(places * STEPS + 0.5).astype(np.int64)
    return steps // STEPS, steps % STEPS * PHASES // STEPS


def inside(at: Numbers, count: int, mirrored: bool) -> Numbers:
    """Samples beyond an edge: the nearest one, or those before it again."""
    if mirrored:
        at = np.where(at < 0, -1 - at, at) % (2 * count)
        at = np.where(at >= count, 2 * count - 1 - at, at)
    near: Numbers = np.clip(at, 0, count - 1)
    return near


def neighbours(first: Numbers) -> Numbers:
    """The samples that the taps of each place meet."""
    return first[:, None] + np.arange(TAPS) - MIDDLE


def filtered(samples: Numbers, x_phase: Numbers, y_phase: Numbers, state: ScalerState, table: int) -> Numbers:
    """`samples`: by row, tap down, column, tap across."""
    x_taps, y_taps = state.tables[table, 0][x_phase].astype(np.int64), state.tables[table, 1][y_phase].astype(np.int64)
    sharp = _sum(samples, x_taps, y_taps)
    if state.sharpness == FULL and not any(state.adaptive):
        return _result(sharp)
    soft = _sum(samples, bilinear()[x_phase].astype(np.int64), bilinear()[y_phase].astype(np.int64))
    weight = np.full(sharp.shape, state.sharpness)
    if any(state.adaptive):
        weight = np.full(sharp.shape, FULL) - _softness(samples, state)
    return _result((sharp * weight + soft * (FULL - weight)) // FULL)


def _sum(samples: Numbers, x_taps: Numbers, y_taps: Numbers) -> Numbers:
    found: Numbers = np.einsum("jki,jk->ji", np.einsum("jkil,il->jki", samples, x_taps), y_taps)
    return found


def _softness(samples: Numbers, state: ScalerState) -> Numbers:
    """How much of the bilinear filter a place gets, of 255: the most that any axis and reach asks for."""
    most = np.zeros((samples.shape[0], samples.shape[2]), np.int64)
    for on, lines in zip(state.adaptive, (samples[:, MIDDLE], samples[:, :, :, MIDDLE].swapaxes(1, 2)), strict=True):
        if not on:
            continue
        for taps, limit, ramp in zip((slice(2, 6), slice(0, TAPS)), state.derivatives, state.transitions, strict=True):
            steepest = np.abs(np.diff(lines[:, :, taps], axis=2)).max(2)
            most = np.maximum(most, np.clip((steepest - limit) * FULL >> ramp, 0, FULL))
    return most


def _result(sums: Numbers) -> Numbers:
    found: Numbers = np.clip(sums >> FRACTION - RESULT, 0, MOST)
    return found


__all__ = ["ONE", "filtered", "inside", "neighbours", "positions"]
