"""sample_8x8: a block of 16x4 pixels, scaled.

Reads   MH_SAMPLER MH_SAMPLE_8X8 MDP_SAMPLE_8X8
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Any

import numpy as np

from softgen.bits import catalogue
from softgen.bits.record import Record
from softgen.bits.units import GRF_BYTES
from softgen.errors import DecodeError, Unsupported
from softgen.lanes.types import u8, u16
from softgen.shared_functions import block_access, descriptors
from softgen.shared_functions.avs.filter import Numbers, filtered, inside, neighbours, positions
from softgen.shared_functions.avs.state import ALL_EIGHT, ScalerState, scaler_state
from softgen.shared_functions.avs.surface import ALPHA, GREEN, MediaChannel, MediaImage, media_image
from softgen.shared_functions.block_access import SurfaceWalk
from softgen.shared_functions.message import MessagePlan, answers
from softgen.shared_functions.sampler.environment import SamplerMessage, StateMessage

COLUMNS, ROWS = 16, 4
FUNCTIONS = ("avs", "convolve", "minmax", "minmax filter", "erode", "dilate", "boolean centroid", "centroid")
BLOCKS = ("16x4", "8x4", "16x8", "4x4")
OUTPUTS = ("16 bits", "16 bits with chroma halved", "8 bits", "8 bits with chroma halved")
ORDER = "rgba"
HALF = 8  # columns of a shuffled half


@lru_cache(256)
def _parameters(gen: float, data: bytes) -> Record:
    return catalogue.layout("MDP_SAMPLE_8X8", gen).unpack(struct.unpack("<8I", data))


def is_scaled(name: str) -> bool:
    """Whether a message is the video scaler's."""
    return name == "sample_8x8"


def _in_tables(plan: MessagePlan) -> bool:
    """Whether a message names its surface by an entry of the binding table: then it can be compiled."""
    return plan.header and plan.indices[0] not in catalogue.enumeration(descriptors.SURFACES, plan.gen)


@answers("sample_8x8", compiled=_in_tables)
def sample_8x8(x: SamplerMessage) -> None:
    x.environment.scaled(x)


def scale(x: StateMessage) -> None:
    """A message on the interpreter. Channels follow one another, each 16x4 words row by row; shuffled, the left eight columns of all of
    them come first."""
    given = _parameters(x.plan.gen, bytes(np.asarray(x.take(u8, 0, GRF_BYTES).payload)))
    header = {name: int(x.header("MH_SAMPLER", f"{name}_channel_mask").payload[0]) for name in ("red", "green", "blue", "alpha")}
    wanted = [letter for letter, masked in zip(ORDER, header.values(), strict=True) if not masked]
    _check(x, given)
    image, state = _surface(x), _state(x)
    if state.edges and not given.ief_bypass:
        raise Unsupported("edge enhancement (IEF) of the video scaler: not yet simulated")
    planes = {letter: _channel(x, image, state, given, letter) for letter in wanted}
    _respond(x, [planes[letter] for letter in wanted], state.shuffled)


def _check(x: StateMessage, given: Record) -> None:
    if given.function:
        name = FUNCTIONS[given.function] if given.function < len(FUNCTIONS) else str(given.function)
        raise Unsupported(f"sample_8x8 with the function {name}: not yet simulated")
    if given.execution_mode:
        raise Unsupported(f"sample_8x8 of {BLOCKS[given.execution_mode]} pixels: not yet simulated")
    output = int(x.header("MH_SAMPLE_8X8", "output_format_control").payload[0])
    if output:
        raise Unsupported(f"sample_8x8 with {OUTPUTS[output]}: not yet simulated")


def _surface(x: StateMessage) -> MediaImage:
    index = int(x.plan.fields.binding_table_index)
    return media_image(x.plan.gen, x.environment.media_state(index), f"surface {index}")


def _state(x: StateMessage) -> ScalerState:
    """The header names no table of its own: i965's kernels leave zero there."""
    return scaler_state(x.environment.samplers, int(x.plan.fields.sampler_index))


def _places(first: float, step: float, second: float, count: int, start: int) -> Any:
    number = np.arange(start, start + count, dtype=np.float64)
    return first + step * number + second * number * (number - 1) / 2


def _channel(x: StateMessage, image: MediaImage, state: ScalerState, given: Record, letter: str) -> Numbers:
    """The 16x4 results of a channel; a channel that the format lacks is zero, alpha is one."""
    place = image.channels.get(letter)
    if place is None:
        return np.full((ROWS, COLUMNS), 0xFF00 if letter == ALPHA else 0, np.int64)
    across = _places(given.u, given.delta_u, given.second_derivative_u, COLUMNS, 0) * image.width
    down = _places(given.v, given.delta_v, given.second_derivative_v, ROWS, ROWS * given.vertical_block_number) * image.height
    if not (np.isfinite(across).all() and np.isfinite(down).all()) or max(np.abs(across).max(), np.abs(down).max()) > 1 << 30:
        raise DecodeError("sample_8x8 with coordinates that are no numbers, or far outside")
    if place.shift != (0, 0):
        across, down = ((at - image.siting[n] * (place.shift[n] > 0)) / (1 << place.shift[n]) for n, at in enumerate((across, down)))
    (left, x_phase), (top, y_phase) = positions(across), positions(down)
    columns, rows = inside(neighbours(left), place.width, image.mirrored), inside(neighbours(top), place.height, image.mirrored)
    samples = _fetched(x, image, place, columns, rows)
    return filtered(samples, x_phase, y_phase, state, 0 if letter == GREEN or state.eight_taps in ALL_EIGHT else 1)


def _fetched(x: StateMessage, image: MediaImage, place: MediaChannel, columns: Numbers, rows: Numbers) -> Numbers:
    """Samples by row, tap down, column, tap across. Each sample that occurs is read once."""
    x_values, x_places = np.unique(columns, return_inverse=True)
    y_values, y_places = np.unique(rows, return_inverse=True)
    walk = SurfaceWalk(x.environment.surfaces.space, image.base, image.tiling, image.pitch // 2 if place.half_pitch else image.pitch)
    texels = block_access.read(walk, place.offset + x_values * place.step, place.row + y_values).astype(np.int64)
    found: Numbers = texels[y_places.reshape(rows.shape)][:, :, x_places.reshape(columns.shape)]
    return found


def _respond(x: StateMessage, planes: list[Numbers], shuffled: bool) -> None:
    size = COLUMNS * ROWS * u16.bytes
    x.expect(size * len(planes))
    for number, plane in enumerate(planes):
        if not shuffled:
            x.give(x.m.constant(u16, plane.ravel().tolist()), number * size, x.any(COLUMNS * ROWS))
            continue
        for half in (0, 1):
            part = plane[:, half * HALF : (half + 1) * HALF].ravel().tolist()
            x.give(x.m.constant(u16, part), (half * len(planes) + number) * size // 2, x.any(HALF * ROWS))


