"""VideoEngine: the video engine's part of a hardware context: state that a picture keeps, and the picture that is open."""

from __future__ import annotations

from dataclasses import dataclass, field

from softgen.bits.generation import Generation
from softgen.bits.record import Record
from softgen.codec.picture import FramePool, VideoPicture
from softgen.command import CommandStreamer
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
    picture: VideoPicture | None = None
    frames: FramePool = field(default_factory=FramePool)
    completed: int = 0  # pictures

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
        picture.report(cs)


HCP_STANDARDS = {0: "hevc", 1: "vp9"}  # codec_standard_select
STANDARDS = {0: "mpeg2", 1: "vc1", 2: "avc", 3: "jpeg", 5: "vp8", 15: "uvld"}  # standard_select


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
