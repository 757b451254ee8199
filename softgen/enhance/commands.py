"""Commands of the video enhancement engine (VEBOX): frames that are denoised, deinterlaced, converted and scaled.

Reads   VEBOX_STATE VEBOX_SURFACE_STATE VEB_DI_IECP VEBOX_TILING_CONVERT and the tables that VEBOX_STATE points to
        SFC_LOCK SFC_FRAME_START
Writes  surfaces, and history of motion in the driver's buffers

A column of a frame starts with VEB_DI_IECP, whose stages are: hot pixels and denoise, deinterlace, colours. The denoised frame is in the
input's format, the others in the output's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softgen.bits.record import Record
from softgen.codec.structures import SurfaceLayout
from softgen.command import Commands, CommandStreamer, nothing_collected, registers_in
from softgen.enhance import state as tables
from softgen.enhance.library import call
from softgen.enhance.scaler import FrameScaler
from softgen.enhance.structures import Deinterlacing, Denoising
from softgen.enhance.surface import Frame, SurfacePlace, graphics, load, resampled, store, surface_place
from softgen.errors import DecodeError, Unsupported

COMMANDS: Commands = {}
handles = registers_in(COMMANDS)

INPUT, OUTPUT = 0, 1  # surface_identification
BOTH_FRAMES, PREVIOUS_ONLY, CURRENT_ONLY = 0, 1, 2  # di_output_frames
OPAQUE = 0xFFFF
COMPRESSION = 1 << 7  # memory_compression_enable of surface control bits


@dataclass
class Enhancer:
    """What commands leave for a frame."""

    scales: bool = False  # SFC_FRAME_START: the next frame goes to the scaler


def new_state() -> Enhancer:
    """The enhancement engine's part of a new hardware context."""
    return Enhancer()


finish = nothing_collected


@handles("VEB_DI_IECP")
def veb_di_iecp(cs: CommandStreamer, cmd: Record) -> None:
    switches = cs.latched.get("VEBOX_STATE")
    if switches is None:
        raise DecodeError("no VEBOX_STATE came before")
    tables.refuse_unbuilt(switches)
    _refuse_compression(cmd)
    state = cs.state(Enhancer)
    scales, state.scales = state.scales, False
    EnhancedColumns(cs, cmd, switches, FrameScaler(cs) if scales else None).run()


@handles("SFC_LOCK")
def sfc_lock(cs: CommandStreamer, cmd: Record) -> None:
    """The scaler belongs to the engine from here to the end of the frame; only this one has it."""
    if cs.engine != "video_enhance":
        raise Unsupported("scaling of pictures as they are decoded: not yet simulated")


@handles("SFC_FRAME_START")
def sfc_frame_start(cs: CommandStreamer, cmd: Record) -> None:
    if cs.engine != "video_enhance":
        raise Unsupported("scaling of pictures as they are decoded: not yet simulated")
    cs.state(Enhancer).scales = True


@handles("VEBOX_TILING_CONVERT")
def vebox_tiling_convert(cs: CommandStreamer, cmd: Record) -> None:
    _refuse_compression(cmd)
    source, target = _surface(cs, INPUT, "input"), _surface(cs, OUTPUT, "output")
    if (source.width, source.height, source.format) != (target.width, target.height, target.format):
        raise DecodeError("the surfaces of VEBOX_TILING_CONVERT differ in size or format")
    store(cs, target, cmd.output_address, load(cs, source, cmd.input_address), (0, target.width), OPAQUE)


def _refuse_compression(cmd: Record) -> None:
    for name, value in cmd._asdict().items():
        if name.endswith("_surface_control_bits") and value & COMPRESSION:
            raise Unsupported(f"memory compression ({name}): not yet simulated")


def _surface(cs: CommandStreamer, number: int, what: str) -> SurfacePlace:
    found = cs.latched.by_index("VEBOX_SURFACE_STATE").get(number)
    if found is None:
        raise DecodeError(f"no VEBOX_SURFACE_STATE of the {what} surface came before")
    return surface_place(found, what)


class EnhancedColumns:
    """Columns of a frame on their way through the engine."""

    def __init__(self, cs: CommandStreamer, cmd: Record, switches: Record, scaler: FrameScaler | None) -> None:
        self.cs, self.cmd, self.switches, self.scaler = cs, cmd, switches, scaler
        self.input = _surface(cs, INPUT, "input")
        self.output = _surface(cs, OUTPUT, "output") if scaler is None else self.input  # the scaler's own state names its output
        self.columns = cmd.starting_x, cmd.ending_x + 1
        if scaler is not None and (self.columns[0] or self.columns[1] < self.input.width):
            raise Unsupported("columns of a frame on their way to the scaler: not yet simulated")
        self.first = bool(switches.dn_di_first_frame)
        self.table = tables.structure(cs, "VEBOX_DNDI_STATE", switches.dn_di_state_pointer) if self.uses_table else None

    @property
    def uses_table(self) -> bool:
        """Whether denoise, deinterlace or the hot pixel filter is on."""
        return bool(self.switches.dn_enable or self.switches.di_enable or getattr(self.switches, "hot_pixel_filtering_enable", 0))

    def run(self) -> None:
        """Read the frames, write those that are asked for."""
        current = load(self.cs, self.input, self.cmd.current_frame_input_address)
        previous = self._previous()
        if self.table is not None:
            current = self._denoised(current, previous)
        if not self.switches.di_enable:
            if self.switches.global_iecp_enable or self.scaler is not None:
                self._finish(current, self.cmd.current_frame_output_address)
            return
        which = self.switches.di_output_frames
        if which in (BOTH_FRAMES, CURRENT_ONLY):
            self._finish(self._deinterlaced(current, previous, False), self.cmd.current_frame_output_address)
        if which in (BOTH_FRAMES, PREVIOUS_ONLY):
            self._finish(self._deinterlaced(current, previous, True), self.cmd.previous_frame_output_address)

    def _previous(self) -> Frame | None:
        if self.table is None or self.first:
            return None
        return load(self.cs, self.input, self.cmd.previous_frame_input_address)

    # -- stages -------------------------------------------------------------------------------------------------------

    def _denoised(self, current: Frame, previous: Frame | None) -> Frame:
        hot, denoise = bool(getattr(self.switches, "hot_pixel_filtering_enable", 0)), bool(self.switches.dn_enable)
        if not hot and not denoise:
            return current
        assert self.table is not None
        temporal = not getattr(self.switches, "disable_temporal_denoise_filter", 0)
        record, result = tables.denoising(self.cs, self.table, temporal, hot), current.like()
        if not denoise:
            for channel in record.channels:
                channel.enable = 0
        lines = self._frames(record, current, previous, result)
        call(self.cs, "enhance_denoise", record)
        del lines
        if len(current.planes) > 3:
            result.planes[3] = current.planes[3]
        if denoise:
            store(self.cs, self.input, self.cmd.denoised_current_frame_output_address, result, self.columns, OPAQUE)
        return result

    def _deinterlaced(self, current: Frame, previous: Frame | None, of_previous: bool) -> Frame:
        assert self.table is not None
        if self.input.format.rgb:
            raise DecodeError("di_enable with an RGB surface")
        record, result = tables.deinterlacing(self.table, of_previous and previous is not None), current.like()
        lines = self._frames(record, current, previous, result)
        call(self.cs, "enhance_deinterlace", record)
        del lines
        return result

    def _frames(self, record: Denoising | Deinterlacing, current: Frame, previous: Frame | None, result: Frame) -> object:
        """Frames and history of a stage; what is returned must outlive its call."""
        record.memory, record.first_frame = graphics(self.cs), previous is None
        record.current, record.result = current.record(), result.record()
        record.previous = (previous or current).record()
        state = self.cs.latched.by_index("VEBOX_SURFACE_STATE")[INPUT]
        pitch = getattr(state, "derived_surface_pitch", state.surface_pitch) + 1
        history = record.history
        for place, address in ((history.source, self.cmd.stmm_input_address), (history.target, self.cmd.stmm_output_address)):
            place.base, place.pitch, place.layout = address, pitch, SurfaceLayout.LUMA_ONLY
        history.have_in = bool(self.cmd.stmm_input_address and previous is not None)
        history.have_out = bool(self.cmd.stmm_output_address)
        lines = np.zeros((2, current.width + 16), np.uint8)
        record.line_in, record.line_out = lines[0].ctypes.data, lines[1].ctypes.data
        return lines

    def _finish(self, frame: Frame, address: int) -> None:
        """Colours, the output's sampling, and the output itself."""
        done = tables.Colours()
        if self.switches.global_iecp_enable:
            done = tables.colours(self.cs, self.switches.iecp_state_pointer)
        frame = coloured(self.cs, frame, done)
        alpha = OPAQUE if done.alpha is None else done.alpha
        if done.alpha is not None:
            frame.planes = frame.planes[:3]
        if self.scaler is not None:
            self.scaler.write(frame, self.input.format.rgb)
            return
        average = bool(getattr(self.switches, "downsample_method_422_to_420", 1))
        frame = resampled(self.cs, frame, self.output.format.shift, average)
        if (frame.width, frame.height) != (self.output.width, self.output.height):
            raise DecodeError(f"an output surface of {self.output.width}x{self.output.height} samples must be as large as the input "
                              f"surface, {frame.width}x{frame.height}")  # fmt: skip
        store(self.cs, self.output, address, frame, self.columns, alpha)


def coloured(cs: CommandStreamer, frame: Frame, done: tables.Colours) -> Frame:
    """A frame after conversions and procamp."""
    for matrix in (done.correction, done.front, done.procamp, done.back):
        if matrix is not None:
            frame = tables.converted(cs, frame, matrix)
    if done.swap:
        tables.three_colours(frame)
        frame.planes[0], frame.planes[2] = frame.planes[2], frame.planes[0]
    return frame
