"""The codecs' C code: its structures checked against Python's, and its entries called under the guard."""

from __future__ import annotations

import ctypes
import time
from functools import cache

from softgen.codec.hcp.hevc.structures import DECODER_BYTES as HEVC_DECODER_BYTES
from softgen.codec.hcp.hevc.structures import MOTION_BYTES as HEVC_MOTION_BYTES
from softgen.codec.hcp.hevc.structures import HevcPicture, HevcSlice
from softgen.codec.hcp.vp9.structures import BLOCK_BYTES, COUNT_BYTES, PROBABILITY_BYTES, Vp9Picture
from softgen.codec.hcp.vp9.structures import MOTION_BYTES as VP9_MOTION_BYTES
from softgen.codec.mfx.avc.structures import DECODER_BYTES, MB_BYTES, MOTION_BYTES, AvcPicture, AvcSlice
from softgen.codec.mfx.jpeg.structures import TABLE_ROOM, JpegScan, JpegTable
from softgen.codec.mfx.mpeg2.structures import Mpeg2Slice, WalkedSlices
from softgen.codec.mfx.vc1.structures import MB_BYTES as VC1_MB_BYTES
from softgen.codec.mfx.vc1.structures import Vc1Picture, Vc1Slice
from softgen.codec.mfx.vp8.structures import ABOVE_BYTES, Vp8Picture
from softgen.codec.mfx.vp8.structures import MB_BYTES as VP8_MB_BYTES
from softgen.codec.pak.avc.structures import CHOICE_BYTES, AvcEncoder, PakObject, PakObjects
from softgen.codec.pak.jpeg.structures import JpegEncoder
from softgen.codec.pak.mpeg2.structures import Mpeg2Encoder
from softgen.codec.pak.structures import Insertion, Writer
from softgen.codec.structures import PictureRecord
from softgen.codec.vdenc.structures import VdencScaling, VdencSearch
from softgen.command import CommandStreamer, VideoWork
from softgen.errors import SoftgenError
from softgen.eu import native


def structure_sizes() -> list[int]:
    """In the order of layout.c."""
    structures = PictureRecord, JpegTable, JpegScan, Mpeg2Slice, AvcPicture, AvcSlice, Vp8Picture, Vp9Picture, HevcPicture, HevcSlice
    numbers = TABLE_ROOM, MB_BYTES, DECODER_BYTES, MOTION_BYTES, VP8_MB_BYTES, ABOVE_BYTES
    of_vp9 = PROBABILITY_BYTES, COUNT_BYTES, BLOCK_BYTES, VP9_MOTION_BYTES
    of_encoders = map(ctypes.sizeof, (Writer, Insertion, JpegEncoder, AvcEncoder, VdencSearch, VdencScaling, Mpeg2Encoder))
    of_pak = CHOICE_BYTES, *map(ctypes.sizeof, (PakObject, PakObjects))
    of_vc1 = *map(ctypes.sizeof, (Vc1Picture, Vc1Slice)), VC1_MB_BYTES
    of_hevc = HEVC_DECODER_BYTES, HEVC_MOTION_BYTES
    return [*map(ctypes.sizeof, structures), *numbers, *of_vc1, *of_vp9, *of_hevc, *of_encoders, *of_pak, ctypes.sizeof(WalkedSlices)]


def run_rows(cs: CommandStreamer, function: ctypes._NamedFuncPointer, argument: ctypes.Structure, writes: bool = True) -> None:
    """Call an entry of the C code until nothing is left, polling the time limit in between. Raises GpuFault.

    `writes`: it may write to graphics memory, so commands that were read ahead are read again.
    """
    call, began = native.GuardedCall(function), time.perf_counter()
    try:
        while left := call(argument):
            if cs.timed_out():
                raise SoftgenError(f"time is up: {left} rows of macroblocks left")
    finally:
        cs.counters.video += VideoWork(seconds=time.perf_counter() - began)
        if writes:
            cs.memory_changed()
    if left is None:
        raise call.fault(cs.space, str)


@cache
def library() -> ctypes.CDLL:
    """The codecs' C code."""
    found = native.load("softgen.codec._codec", "codec_layout", structure_sizes())
    found.hevc_room.restype = ctypes.c_uint64
    return found
