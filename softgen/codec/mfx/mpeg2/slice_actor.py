"""SliceActor: slices of the open MPEG-2 picture in a walk over a batch (walked_slices.c).

In:  MFX_IND_OBJ_BASE_ADDR_STATE as it is latched, MFD_MPEG2_BSD_OBJECT. Out: what state.py makes of the same commands.

A picture has a slice for each row of macroblocks or more. Python opens it with its first slice and completes it with its last.
"""

from __future__ import annotations

import ctypes
from functools import cache

from softgen.bits.catalogue import catalogue
from softgen.bits.layout import Layout
from softgen.bits.record import Record
from softgen.codec.engine import VideoEngine
from softgen.codec.library import library
from softgen.codec.mfx.mpeg2.state import INLINE_DATA, Mpeg2VideoPicture, decode_slice
from softgen.codec.mfx.mpeg2.structures import FieldBits, WalkedSlices
from softgen.codec.structures import PADDING
from softgen.command import CommandStreamer, FieldPlace, MarkedLatched, VideoWork
from softgen.eu import native
from softgen.memory import guard

OBJECT, BASES = "MFD_MPEG2_BSD_OBJECT", "MFX_IND_OBJ_BASE_ADDR_STATE"
ROOM = 1 << 16  # bytes of a slice; Python executes longer ones


def _bits(layout: Layout, name: str, offset: int = 0) -> FieldBits:
    """A field of a command; `offset`: where the structure begins that has it."""
    shift, mask = FieldPlace.of(layout.field(name), offset)
    assert mask << shift % 32 < 1 << 64
    return FieldBits(shift // 32, shift % 32, mask)


@cache
def _places(gen: float) -> dict[str, FieldBits]:
    bases, command, inline = (catalogue().layout(name, gen) for name in (BASES, OBJECT, INLINE_DATA))
    at = command.field("inline_data").low
    return {
        "base": _bits(bases, "mfx_indirect_bitstream_object_address"),
        "upper_bound": _bits(bases, "mfx_indirect_bitstream_object_upper_bound"),
        "length": _bits(command, "indirect_bsd_data_length"), "start": _bits(command, "indirect_bsd_data_start_address"),
        "bit_offset": _bits(inline, "first_mb_bit_offset", at), "row": _bits(inline, "slice_vertical_position", at),
        "quantiser": _bits(inline, "quantizer_scale_code", at), "last": _bits(inline, "last_pic_slice", at),
    }  # fmt: skip


class SliceActor:
    """The actor of a context's MPEG-2 slices."""

    collects = False

    def __init__(self, gen: float) -> None:
        self.room = ctypes.create_string_buffer(ROOM + len(PADDING))
        self.struct = WalkedSlices(room=ctypes.addressof(self.room), room_size=ROOM, **_places(gen))
        self.function, self.address = native.address(library().mpeg2_act), ctypes.addressof(self.struct)

    def enter(self, cs: CommandStreamer) -> tuple[int, int] | None:
        picture, latched = cs.state(VideoEngine).picture, cs.latched
        bases = latched.place(BASES) if isinstance(latched, MarkedLatched) else None
        if not isinstance(picture, Mpeg2VideoPicture) or bases is None or not bases.latched:
            return None
        now = self.struct
        now.parameters, now.bases = ctypes.addressof(picture.parameters), bases.offset
        now.nanoseconds = now.slices = now.begun = 0
        return self.function, self.address

    def leave(self, cs: CommandStreamer) -> None:
        if self.struct.slices:
            cs.counters.video += VideoWork(seconds=self.struct.nanoseconds / 1e9)

    def go_on(self, cs: CommandStreamer, cmd: Record, fault: guard.FaultRecord | None) -> None:
        """Execute a slice whose data is not all mapped; one that met a reference which is not mapped ends there."""
        if fault is not None and self.struct.begun:
            fault.ip = guard.NO_IP
            raise guard.fault(fault, cs.space, str)
        decode_slice(cs, cs.state(VideoEngine), cmd)

    def settle(self, cs: CommandStreamer) -> None:
        """Nothing is left to be done."""


def slice_actor(cs: CommandStreamer) -> SliceActor | None:
    """What decodes slices in a walk; None before a picture is open."""
    engine = cs.state(VideoEngine)
    if not isinstance(engine.picture, Mpeg2VideoPicture):
        return None
    found = engine.actors.get(OBJECT)
    if not isinstance(found, SliceActor):
        found = engine.actors[OBJECT] = SliceActor(cs.generation.number)
    return found
