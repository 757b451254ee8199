"""Slices and pictures of video batches: what an object to decode belongs to, from the state that was latched before it.

A picture begins with the first object after MFX_PIPE_MODE_SELECT or HCP_PIPE_MODE_SELECT; both count from 1, pictures in a submission.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from softgen.bits import describe
from softgen.bits.catalogue import catalogue
from softgen.bits.layout import Layout
from softgen.bits.record import Record
from softgen.streamer.latch import LatchedState
from softgen.streamer.parser import Command

MB = 16  # luma samples of a macroblock's side
JPEG_BLOCK = 8
VC1_TYPES = ("i", "p", "b", "bi")  # picture_type
VP9_STATE = "HCP_VP9_PIC_STATE"


@dataclass(frozen=True, slots=True)
class VideoSlice:
    """An object to decode."""

    by: int  # address of the command
    standard: str
    picture: int
    slice: int
    type: str  # of the slice, or of the picture where slices have none
    structure: str  # frame or field
    size: tuple[int, int]  # luma samples of the frame, in whole blocks
    address: int
    bytes: int
    problem: str = ""

    @property
    def title(self) -> str:
        kind = " ".join(part for part in (self.standard, self.type, self.structure) if part)
        return f"slice {self.slice} of picture {self.picture}: {kind}, {self.size[0]}x{self.size[1]}, {self.bytes:,} bytes"


class PictureFacts(NamedTuple):
    """What state says of a slice."""

    type: str
    structure: str
    width: int
    height: int


class StateReader:
    """Latched state by command name, with names of values."""

    def __init__(self, context: LatchedState, gen: float) -> None:
        self.context, self.gen = context, gen

    def record(self, name: str) -> Record | None:
        return self.context.get(name)

    def name(self, command: str, field: str) -> str:
        layout, record = catalogue().get(command, self.gen), self.context.get(command)
        return describe.value_name(layout, record, field) if layout is not None and record is not None else ""


def _avc(state: StateReader) -> PictureFacts | None:
    image = state.record("MFX_AVC_IMG_STATE")
    if image is None:
        return None
    structure = state.name("MFX_AVC_IMG_STATE", "image_structure")
    return PictureFacts(state.name("MFX_AVC_SLICE_STATE", "slice_type"), f"MBAFF {structure}" if image.mbaff_mode else structure,
                        MB * (image.frame_width + 1), MB * (image.frame_height + 1))  # fmt: skip


def _mpeg2(state: StateReader) -> PictureFacts | None:
    name = "MFX_MPEG2_PIC_STATE"
    if (picture := state.record(name)) is None:
        return None
    return PictureFacts(state.name(name, "picture_coding_type"), state.name(name, "picture_structure"),
                        MB * (picture.frame_width_in_mbs + 1), MB * (picture.frame_height_in_mbs + 1))  # fmt: skip


def _vc1(state: StateReader) -> PictureFacts | None:
    if (picture := state.record("MFD_VC1_LONG_PIC_STATE")) is None:
        return None
    type = VC1_TYPES[picture.picture_type] if picture.picture_type < len(VC1_TYPES) else f"value {picture.picture_type}"
    return PictureFacts(type, state.name("MFD_VC1_LONG_PIC_STATE", "frame_coding_mode"), MB * (picture.picture_width_in_mbs + 1),
                        MB * (picture.picture_height_in_mbs + 1))  # fmt: skip


def _vp8(state: StateReader) -> PictureFacts | None:
    if (picture := state.record("MFX_VP8_PIC_STATE")) is None:
        return None
    return PictureFacts("key" if picture.key_frame else "inter", "frame", MB * (picture.frame_width + 1), MB * (picture.frame_height + 1))


def _jpeg(state: StateReader) -> PictureFacts | None:
    if (picture := state.record("MFX_JPEG_PIC_STATE")) is None:
        return None
    return PictureFacts("", "frame", JPEG_BLOCK * (picture.frame_width_in_blocks + 1), JPEG_BLOCK * (picture.frame_height_in_blocks + 1))


def _hevc(state: StateReader) -> PictureFacts | None:
    if (picture := state.record("HCP_PIC_STATE")) is None:
        return None
    width, height = (getattr(picture, f"frame_{side}_in_minimum_coding_block_size") + 1 for side in ("width", "height"))
    return PictureFacts(state.name("HCP_SLICE_STATE", "slice_type"), "frame", width << 3 + picture.min_cu_size,
                        height << 3 + picture.min_cu_size)  # fmt: skip


def _vp9(state: StateReader) -> PictureFacts | None:
    if (picture := state.record(VP9_STATE)) is None:
        return None
    type = "intra only" if picture.frame_type and picture.intra_only else state.name(VP9_STATE, "frame_type")
    return PictureFacts(type, "frame", picture.frame_width + 1, picture.frame_height + 1)


# By object: the standard and what reads its state.
Reader = Callable[[StateReader], PictureFacts | None]
OBJECTS: dict[str, tuple[str, Reader]] = {
    "MFD_AVC_BSD_OBJECT": ("H.264", _avc), "MFD_MPEG2_BSD_OBJECT": ("MPEG-2", _mpeg2), "MFD_VC1_BSD_OBJECT": ("VC-1", _vc1),
    "MFD_VP8_BSD_OBJECT": ("VP8", _vp8), "MFD_JPEG_BSD_OBJECT": ("JPEG", _jpeg), "HCP_BSD_OBJECT": ("HEVC", _hevc),
}  # fmt: skip
HCP_VP9 = ("VP9", _vp9)  # where HCP_PIPE_MODE_SELECT selects it
MODE_SELECTS = ("MFX_PIPE_MODE_SELECT", "HCP_PIPE_MODE_SELECT")


class VideoSlices:
    """Counts the slices and pictures of a submission."""

    def __init__(self, gen: float) -> None:
        self.gen, self.picture, self.slice, self.is_new = gen, 0, 0, True

    def met(self, command: Command, context: LatchedState) -> VideoSlice | None:
        """The slice that a command decodes; `context` has the state before it."""
        if command.name in MODE_SELECTS:
            self.is_new = True
        if command.name not in OBJECTS or command.layout is None:
            return None
        if self.is_new:
            self.picture, self.slice, self.is_new = self.picture + 1, 0, False
        self.slice += 1
        standard, read = OBJECTS[command.name]
        mode = context.get("HCP_PIPE_MODE_SELECT")
        if command.name == "HCP_BSD_OBJECT" and mode is not None and mode.codec_standard_select:
            standard, read = HCP_VP9
        found = read(StateReader(context, self.gen))
        address, size = _data(command.layout, command.record, context)
        facts, problem = (found, "") if found else (PictureFacts("", "", 0, 0), "its picture's state is not in what was captured")
        return VideoSlice(command.address, standard, self.picture, self.slice, facts.type, facts.structure,
                          (facts.width, facts.height), address, size, problem)  # fmt: skip


def _data(layout: Layout, record: Record, context: LatchedState) -> tuple[int, int]:
    """Where an object's data begins, and how much it is, of all partitions together."""
    pipe = "hcp" if layout.name.startswith("HCP") else "mfx"
    bases = context.get(f"{pipe.upper()}_IND_OBJ_BASE_ADDR_STATE")
    base = getattr(bases, f"{pipe}_indirect_bitstream_object_address") if bases is not None else 0
    if "indirect_partition" in record._fields:
        parts = record.indirect_partition
        return base + parts[0].data_start_offset, sum(part.data_length for part in parts)
    prefix = "indirect_data" if "indirect_data_length" in record._fields else "indirect_bsd_data"
    return base + getattr(record, f"{prefix}_start_address"), getattr(record, f"{prefix}_length")
