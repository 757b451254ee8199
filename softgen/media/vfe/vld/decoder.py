"""MEDIA_OBJECT in VLD mode: a slice of MPEG-2 as macroblock threads.

Reads   MEDIA_OBJECT MEDIA_OBJECT_VLD_INLINE_DATA VLD_STATE
Writes  DecodedSlice records in the spawner's queue

A slice ends where the stream has no further macroblock_address_increment: drivers put the most that fits into macroblock_count. The
slice's position is that of its first macroblock, whose increment is read and ignored.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from softgen.bits import catalogue
from softgen.bits.record import Record
from softgen.command import CommandStreamer, ConstantUrbEntry
from softgen.errors import DecodeError
from softgen.media.queued import QueuedThread
from softgen.media.vfe.payload import root_thread
from softgen.media.vfe.state import FrontEndState, VideoFrontEnd, remap
from softgen.media.vfe.vld.structures import DATA_BYTES, ENDS, MOST_MACROBLOCKS, STREAM_PADDING, THREAD, VldSlice, library

COUNTER = (1 << 24) - 1
FROZEN = 1  # debug_counter_control
INLINE = "MEDIA_OBJECT_VLD_INLINE_DATA"


class DecodedSlice(NamedTuple):
    """The macroblock threads of a slice."""

    threads: npt.NDArray[np.void]  # THREAD records
    numbers: npt.NDArray[np.uint32]  # the debug counter of each
    data: Any  # their registers behind header and constants
    kinds: dict[int, QueuedThread]  # by macroblock index: interface, header and constants; those of other slices, too


class MacroblockKinds(NamedTuple):
    """The kinds of macroblock threads, for slices with the same state and constants."""

    state: FrontEndState
    constants: object
    threads: dict[int, QueuedThread]  # by macroblock index


def decode(cs: CommandStreamer, state: FrontEndState, cmd: Record, data: bytes) -> DecodedSlice:
    """The threads of a slice whose bytes are `data`."""
    layout = catalogue.layout(INLINE, cs.generation.number)
    if len(cmd.inline_data) < layout.dwords:
        raise DecodeError(f"{len(cmd.inline_data)} dwords of inline data in VLD mode, there must be {layout.dwords} (G45 9654)")
    inline = layout.raw([entry.inline_data for entry in cmd.inline_data][: layout.dwords])
    stream = np.frombuffer(data + bytes(STREAM_PADDING), np.uint8)
    out, threads = np.empty(DATA_BYTES, np.uint8), np.empty(MOST_MACROBLOCKS, THREAD)
    assert state.vld is not None
    made = _slice(state.vld, inline)
    made.bits.data, made.bits.size, made.bits.at = int(stream.ctypes.data), len(data), inline.first_macroblock_bit_offset
    made.data, made.threads = int(out.ctypes.data), int(threads.ctypes.data)
    found = library().vld_decode(ctypes.byref(made))
    count, end = found & 0xFFFF, found >> 16
    if end:
        cs.warn(f"the slice at macroblock ({inline.slice_horizontal_position}, {inline.slice_vertical_position}) ends after {count} "
                f"macroblocks: {ENDS[end]}")  # fmt: skip
    return _threads(cs, state, threads[:count].copy(), out)


def _slice(vld: Record, inline: Record) -> VldSlice:
    made = VldSlice(intra_dc_precision=vld.intra_dc_precision, structure=vld.picture_structure, top_field_first=vld.top_field_first,
                    frame_pred_frame_dct=vld.frame_prediction_frame_dct, concealment_mv=vld.concealment_motion_vector,
                    q_scale_type=vld.quantizer_scale_type, intra_vlc=vld.intra_vlc_format, alternate_scan=vld.scan_order,
                    type=vld.picture_coding_type, x=inline.slice_horizontal_position, y=inline.slice_vertical_position,
                    macroblocks=inline.macroblock_count, quantiser_code=inline.quantizer_scale_code)  # fmt: skip
    for direction in range(2):
        for axis in range(2):
            made.f_code[direction][axis] = getattr(vld, f"f_code_{direction}_{axis}")
    return made


def _threads(cs: CommandStreamer, state: FrontEndState, threads: npt.NDArray[np.void], data: npt.NDArray[np.uint8]) -> DecodedSlice:
    """Numbers the threads, and finds their kernels by index of the macroblock."""
    front = cs.state(VideoFrontEnd)
    steps = np.arange(len(threads)) * (state.vfe.debug_counter_control != FROZEN)
    numbers = (front.counter + steps & COUNTER).astype(np.uint32)
    if state.vfe.debug_counter_control != FROZEN:
        front.counter = front.counter + len(threads) & COUNTER
    kinds = _kinds(cs, state, set(threads["index"].tolist()))
    used = int(threads["offset"][-1] + threads["bytes"][-1]) if len(threads) else 0
    return DecodedSlice(threads, numbers, data[:used].copy(), kinds)



def _kinds(cs: CommandStreamer, state: FrontEndState, indices: set[int]) -> dict[int, QueuedThread]:
    """Interface, header and constants by macroblock index, of these at least."""
    front, constants = cs.state(VideoFrontEnd), cs.state(ConstantUrbEntry).data
    held: MacroblockKinds | None = front.kinds
    if held is None or held.state is not state or held.constants is not constants:
        held = front.kinds = MacroblockKinds(state, constants, {})
    assert state.vld is not None
    for index in indices - held.threads.keys():
        held.threads[index] = root_thread(cs, state, remap(state.vld, index), 0, 0, b"")
    return held.threads
