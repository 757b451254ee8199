"""VideoEngine: the video engine's part of a hardware context: state that a picture keeps, and the picture that is open."""

from __future__ import annotations

from dataclasses import dataclass, field

from softgen.bits.generation import Generation
from softgen.bits.record import Record
from softgen.codec.image import picture_images
from softgen.codec.pak.avc.headers import ParameterSets
from softgen.codec.pak.stream import CodedStream
from softgen.codec.picture import REFERENCE_PICTURE, FramePool, VideoPicture
from softgen.command import Actor, CommandStreamer, VideoWork
from softgen.errors import DecodeError, GpuFault, Unsupported

MOST_DATA = 64 << 20  # bytes of an object
MODES = ("vld", "it", "deblocker", "interlayer")  # decoder_mode_select


@dataclass
class VideoEngine:
    """What commands leave for objects."""

    mode: Record | None = None  # MFX_PIPE_MODE_SELECT
    hcp_mode: Record | None = None  # HCP_PIPE_MODE_SELECT
    surfaces: dict[int, Record] = field(default_factory=dict)  # MFX_SURFACE_STATE by surface_id
    matrices: dict[int, bytes] = field(default_factory=dict)  # MFX_QM_STATE of this picture, by kind
    huffman_tables: dict[int, Record] = field(default_factory=dict)  # MFX_JPEG_HUFF_TABLE_STATE of this picture
    forward_matrices: dict[int, list[int]] = field(default_factory=dict)  # MFX_FQM_STATE of this picture, by kind
    encode_tables: dict[int, Record] = field(default_factory=dict)  # MFC_JPEG_HUFF_TABLE_STATE of this picture
    picture: VideoPicture | None = None
    stream: CodedStream | None = None  # of the picture that is being encoded
    parameters: ParameterSets = field(default_factory=ParameterSets)  # of H.264 that is being encoded
    objects: list[bytes] = field(default_factory=list)  # macroblocks of the slice that is being encoded
    frames: FramePool = field(default_factory=FramePool)
    actors: dict[str, Actor] = field(default_factory=dict)  # of objects in walks, by command name
    completed: int = 0  # pictures that were decoded
    encoded: int = 0  # pictures

    def selected(self, generation: Generation) -> str:
        """The standard that is decoded from a bitstream; raises Unsupported for other uses of the engine."""
        mode = self.mode
        if mode is None:
            raise DecodeError("no MFX_PIPE_MODE_SELECT came before")
        if mode.codec_select:
            raise Unsupported("an object to decode while MFX_PIPE_MODE_SELECT selects encoding")
        if mode.decoder_mode_select:
            raise Unsupported(f"decoder_mode_select {MODES[mode.decoder_mode_select]}: not yet simulated")
        return STANDARDS.get(mode.standard_select, str(mode.standard_select))

    def selected_to_encode(self) -> str:
        """The standard that is encoded; raises DecodeError where MFX_PIPE_MODE_SELECT selects decoding."""
        if self.mode is None:
            raise DecodeError("no MFX_PIPE_MODE_SELECT came before")
        if not self.mode.codec_select:
            raise DecodeError("an object to encode while MFX_PIPE_MODE_SELECT selects decoding")
        return STANDARDS.get(self.mode.standard_select, str(self.mode.standard_select))

    def selected_of_hcp(self) -> str:
        """The standard that HCP decodes; raises Unsupported for other uses of it."""
        mode = self.hcp_mode
        if mode is None:
            raise DecodeError("no HCP_PIPE_MODE_SELECT came before")
        if mode.codec_select:
            raise Unsupported("an object to decode while HCP_PIPE_MODE_SELECT selects encoding")
        if getattr(mode, "pipe_working_mode", 0) or getattr(mode, "multi_engine_mode", 0):
            raise Unsupported("a picture divided among video engines: not yet simulated")
        return HCP_STANDARDS.get(mode.codec_standard_select, str(mode.codec_standard_select))

    def close(self, cs: CommandStreamer) -> None:
        """Write the open picture to its surface, and what became of it to the registers."""
        picture, self.picture = self.picture, None
        assert picture is not None
        picture.complete(cs)
        self.completed += 1
        cs.counters.video += VideoWork({self._kind(picture.pipe): 1}, picture.record.concealed)
        picture.report(cs)
        if cs.reports_targets:
            surface = None if picture.pipe == "hcp" else self.surfaces.get(REFERENCE_PICTURE)
            cs.drawn(picture_images(picture, surface, self._kind(picture.pipe) == "jpeg"))

    def close_stream(self, cs: CommandStreamer) -> None:
        """Write the coded stream's end to memory, and its counts to the registers."""
        stream, self.stream = self.stream, None
        assert stream is not None
        stream.finish(cs)
        self.encoded += 1
        if (kind := self._kind("mfx")) == STREAM_ALONE:
            cs.counters.video += VideoWork({kind: 1})

    def _kind(self, pipe: str) -> str:
        """The standard of what a pipe has done, as counters name it."""
        if pipe == "hcp":
            return HCP_STANDARDS.get(getattr(self.hcp_mode, "codec_standard_select", 0), "")
        name = STANDARDS.get(getattr(self.mode, "standard_select", 0), "")
        return f"{name} encoded" if getattr(self.mode, "codec_select", 0) else name


HCP_STANDARDS = {0: "hevc", 1: "vp9"}  # codec_standard_select
STANDARDS = {0: "mpeg2", 1: "vc1", 2: "avc", 3: "jpeg", 5: "vp8", 15: "uvld"}  # standard_select
STREAM_ALONE = "jpeg encoded"  # without a picture that is reconstructed


def bitstream(cs: CommandStreamer, length: int, offset: int, pipe: str = "mfx") -> bytes:
    """The data of an object of MFX or HCP, as far as it is mapped. Raises GpuFault where none is."""
    name, prefix = f"{pipe.upper()}_IND_OBJ_BASE_ADDR_STATE", f"{pipe}_indirect_bitstream_object"
    bases = cs.latched.get(name)
    if bases is None:
        raise DecodeError(f"no {name} came before")
    start = getattr(bases, f"{prefix}_address") + offset & (1 << cs.space.bits) - 1
    end = getattr(bases, f"{prefix}_upper_bound")
    if end and start + length > end:
        cs.warn(f"the object ends at {start + length:#x}, beyond {prefix}_upper_bound {end:#x}")
        length = max(end - start, 0)
    found = cs.space.read_mapped(start, min(length, MOST_DATA)) if length else b""
    if length and not found:
        raise GpuFault(start, "read", cs.space.name, "bitstream", cs.space.outside(start))
    return found
