"""MFC_AVC_PAK_OBJECT: macroblocks that commands have decided.

In:  MFX_AVC_IMG_STATE, MFX_AVC_SLICE_STATE, MFX_IND_OBJ_BASE_ADDR_STATE, MFC_AVC_PAK_OBJECT with its vectors. Out: slice data, the
     reconstruction.

A slice's macroblocks follow each other without gaps from its start on (BDW 24397), so objects are kept until the slice's last one, then
encoded at once.
"""

from __future__ import annotations

import ctypes

from softgen.bits.record import Record
from softgen.codec.engine import VideoEngine
from softgen.codec.library import library, run_rows
from softgen.codec.pak.avc.state import begin_slice, picture_to_encode
from softgen.codec.pak.avc.structures import PakObject, PakObjects
from softgen.codec.structures import GraphicsTable
from softgen.command import CommandStreamer
from softgen.errors import DecodeError

FIRST_INLINE = 3  # dword of the command
FLAGS, LAST_MACROBLOCK = 6, 1 << 26
WHAT = ("", "a type that its slice or the picture does not have", "an intra mode whose samples or code do not exist", "a QP above 51",
        "neither 4 nor 16 pairs of vectors", "a reference that its slice does not have")  # fmt: skip


def pak_object(cs: CommandStreamer, engine: VideoEngine, cmd: Record) -> None:
    """Keep a macroblock; the last one of a slice encodes them."""
    found = PakObject(cmd.indirect_pak_mv_data_length, cmd.indirect_pak_mv_data_start_address_offset)
    for number, item in enumerate(cmd.inline_data, FIRST_INLINE):
        found.dwords[number] = item.value
    engine.objects.append(bytes(found))
    cs.collected()
    if found.dwords[FLAGS] & LAST_MACROBLOCK:
        objects, engine.objects = engine.objects, []
        _encode(cs, engine, objects)


def _encode(cs: CommandStreamer, engine: VideoEngine, objects: list[bytes]) -> None:
    image, state = cs.latched.get("MFX_AVC_IMG_STATE"), cs.latched.get("MFX_AVC_SLICE_STATE")
    bases = cs.latched.get("MFX_IND_OBJ_BASE_ADDR_STATE")
    if image is None or state is None or bases is None:
        raise DecodeError("no MFX_AVC_IMG_STATE, no MFX_AVC_SLICE_STATE or no MFX_IND_OBJ_BASE_ADDR_STATE came before")
    picture = picture_to_encode(cs, engine, image)
    begun = begin_slice(cs, engine, picture, image, state)
    packed, table = b"".join(objects), cs.space.table
    kept = ctypes.create_string_buffer(packed, len(packed))
    run = PakObjects(ctypes.addressof(begun.encoder), ctypes.addressof(kept), count=len(objects))
    run.memory = GraphicsTable(ctypes.addressof(table), (1 << cs.space.bits) - 1)
    run.vectors = bases.mfx_indirect_mv_object_address
    run_rows(cs, library().avc_pak, run)
    first = begun.slice.first_y * picture.avc.width + begun.slice.first_x
    if run.error:
        raise DecodeError(f"macroblock {first + run.next} has {WHAT[run.error]}")
    if run.next < run.count:
        raise DecodeError(f"{run.count} macroblocks from {first} on: the picture has {picture.avc.width * picture.avc.height}")
    assert engine.stream is not None
    begun.finish(engine.stream)
    if first + run.count == picture.avc.width * picture.avc.height:
        engine.close(cs)
