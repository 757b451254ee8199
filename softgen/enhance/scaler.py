"""The scaler and format converter behind VEBOX (SFC): polyphase scaling, colour conversion, placement in the output frame.

Reads   SFC_LOCK SFC_FRAME_START, and SFC_STATE SFC_AVS_STATE SFC_AVS_LUMA_COEFF_TABLE SFC_AVS_CHROMA_COEFF_TABLE SFC_IEF_STATE
Writes  the output frame of SFC_STATE

Our reading where documents are silent: centres of the source region and of the scaled region fall together; chroma is co-sited with luma
across and between two rows down; a sharpness below 255 mixes the polyphase filter with a bilinear one; adaptive selection is not made.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from softgen.bits.catalogue import catalogue
from softgen.bits.record import split
from softgen.codec.picture import refuse_compression, tile_walk
from softgen.codec.structures import SurfaceLayout, VideoSurface
from softgen.command import CommandStreamer
from softgen.enhance.library import call
from softgen.enhance.state import converted, csc_matrix
from softgen.enhance.structures import PHASES, SCALE_BITS, TAPS, DeepPlane, ScaledPlane
from softgen.enhance.surface import FORMATS, Frame, PixelFormat, SurfacePlace, laid_out, load, resampled, store
from softgen.errors import DecodeError, Unsupported

Taps = npt.NDArray[np.int8]
ONE = 64  # a coefficient with six bits behind the point
MIDDLE = 3  # the tap at the place itself
FULL_SHARPNESS = 255
BILINEAR_ONLY = 2  # avs_filter_mode
OUTPUTS = {0: 5, 1: 8, 4: 4, 5: 0, 6: 3, 9: 12}  # SFC_Output_Format to VEBOX_Surface_Format
OUTPUT_NAMES = {2: "a2r10g10b10", 3: "r5g6b5", 7: "integral_32", 8: "integral_64"}
REFUSED = {"ief_enable": "edge enhancement (IEF)", "skin_tone_tuned_ief_enable": "skin tone", "rotation_mode": "rotation",
           "mirror_mode": "mirroring"}  # fmt: skip


@dataclass
class FilterTables:
    """Coefficients of a filter by phase, across and down."""

    x: Taps
    y: Taps


def bilinear_taps() -> Taps:
    """A bilinear filter of 32 phases."""
    found = np.zeros((PHASES, TAPS), np.int8)
    phase = np.arange(PHASES)
    found[:, MIDDLE], found[:, MIDDLE + 1] = ONE - 2 * phase, 2 * phase
    return found


class FrameScaler:
    """What SFC makes of a frame."""

    def __init__(self, cs: CommandStreamer) -> None:
        state = cs.latched.get("SFC_STATE")
        if state is None:
            raise DecodeError("no SFC_STATE came before")
        self.cs, self.state = cs, state
        for field, text in REFUSED.items():
            if getattr(state, field, 0):
                raise Unsupported(f"{text} of the scaler ({field}): not yet simulated")
        refuse_compression(cs.generation.number, state.output_frame_attributes)

    def write(self, frame: Frame, rgb: bool) -> None:
        """Scale, convert and store a frame."""
        state = self.state
        expected = state.input_frame_resolution_width + 1, state.input_frame_resolution_height + 1
        if (frame.width, frame.height) != expected:
            raise DecodeError(f"a frame of {frame.width}x{frame.height} samples where SFC_STATE says {expected[0]}x{expected[1]}")
        frame, place = self._scaled(frame, rgb), self._output()
        if state.csc_enable:
            frame = converted(self.cs, frame, self._conversion())
            rgb = place.format.rgb
        if rgb and state.rgba_channel_swap_enable:
            frame.planes[0], frame.planes[2] = frame.planes[2], frame.planes[0]
        frame = self._placed(resampled(self.cs, frame, place.format.shift, True), place)
        store(self.cs, place, state.output_frame_address, frame, (0, place.width), _ten_bits(state.alpha_default_value))

    def _conversion(self) -> Any:
        state = self.cs.latched.get("SFC_IEF_STATE")
        if state is None:
            raise DecodeError("csc_enable without SFC_IEF_STATE")
        layout = catalogue().layout("SFC_IEF_STATE_BODY", self.cs.generation.number)
        return csc_matrix(layout.unpack(split(state.body, layout.dwords)))

    # -- scaling ------------------------------------------------------------------------------------------------------

    def _scaled(self, frame: Frame, rgb: bool) -> Frame:
        state = self.state
        width, height = state.scaled_region_size_width + 1, state.scaled_region_size_height + 1
        source = self._source(frame)
        if not state.avs_scaling_enable:
            if (width, height) != (source.width, source.height):
                raise DecodeError(f"scaling is off, but {source.width}x{source.height} samples must become {width}x{height}")
            return source
        found, sharpness = Frame(width, height, source.shift, len(source.planes)), self._sharpness()
        for number in range(len(source.planes)):
            soft = np.empty_like(found.planes[number])
            if sharpness < FULL_SHARPNESS:
                self._filter(source, found, number, FilterTables(bilinear_taps(), bilinear_taps()))
                soft[:] = found.planes[number]
            if sharpness:
                self._filter(source, found, number, self._tables(number, rgb, source.shift == (0, 0)))
                if sharpness < FULL_SHARPNESS:
                    found.planes[number][:] = _mixed(found.planes[number], soft, sharpness)
        return found

    def _source(self, frame: Frame) -> Frame:
        """The source region."""
        state = self.state
        left, top = state.source_region_horizontal_offset, state.source_region_vertical_offset
        width, height = state.source_region_width + 1, state.source_region_height + 1
        if left + width > frame.width or top + height > frame.height:
            raise DecodeError(f"a source region of {width}x{height} at ({left}, {top}) is not within {frame.width}x{frame.height}")
        found = Frame(width, height, frame.shift, len(frame.planes))
        for number, (plane, part) in enumerate(zip(frame.planes, found.planes, strict=True)):
            x, y = (left >> frame.shift[0], top >> frame.shift[1]) if number in (1, 2) else (left, top)
            part[:] = plane[y : y + part.shape[0], x : x + part.shape[1]]
        return found

    def _sharpness(self) -> int:
        state = self.cs.latched.get("SFC_AVS_STATE")
        if self.state.avs_filter_mode == BILINEAR_ONLY:
            return 0
        if state is None:
            raise DecodeError("scaling without SFC_AVS_STATE")
        layout = catalogue().layout("SFC_AVS_STATE_BODY", self.cs.generation.number)
        return int(layout.raw(split(state.body, layout.dwords)).sharpness_level)

    def _tables(self, number: int, rgb: bool, full_chroma: bool) -> FilterTables:
        """Table 0 has luma, green and alpha, and all channels of 4:4:4 where SFC_STATE says so; table 1 has the others."""
        first = number in (1, 3) if rgb else number in (0, 3)
        luma = first or full_chroma and self.state.adaptive_filter_for_all_channels
        name = f"SFC_AVS_{'LUMA' if luma else 'CHROMA'}_COEFF_TABLE"
        state = self.cs.latched.get(name)
        if state is None:
            raise DecodeError(f"scaling without {name}")
        return filter_tables(state.body, TAPS if luma else TAPS // 2)

    def _filter(self, source: Frame, target: Frame, number: int, tables: FilterTables) -> None:
        chroma = number in (1, 2)
        shift = source.shift if chroma else (0, 0)
        steps = self.state.scaling_factor_width, self.state.scaling_factor_height  # with SCALE_BITS behind the point
        if not all(steps):
            raise DecodeError("a scaling factor of SFC_STATE is 0")
        starts = [step - (1 << SCALE_BITS) >> 1 for step in steps]
        if shift[0]:
            starts[0] >>= 1  # co-sited across
        planes = [DeepPlane(plane.ctypes.data, plane.shape[1], plane.shape[0]) for plane in (source.planes[number], target.planes[number])]
        rows = np.empty((TAPS, target.planes[number].shape[1]), np.int32)
        record = ScaledPlane(source=planes[0], target=planes[1], start_x=starts[0], start_y=starts[1], step_x=steps[0], step_y=steps[1],
                             rows=rows.ctypes.data)  # fmt: skip
        for room, taps in ((record.x, tables.x), (record.y, tables.y)):
            ctypes.memmove(room, np.ascontiguousarray(taps).ctypes.data, taps.nbytes)
        call(self.cs, "enhance_scale", record)

    # -- the output ---------------------------------------------------------------------------------------------------

    def _output(self) -> SurfacePlace:
        state = self.state
        if state.output_surface_format_type not in OUTPUTS:
            name = OUTPUT_NAMES.get(state.output_surface_format_type, str(state.output_surface_format_type))
            raise Unsupported(f"output_surface_format_type {name} of the scaler: not yet simulated")
        pixels: PixelFormat = FORMATS[OUTPUTS[state.output_surface_format_type]]
        walk = VideoSurface(pitch=state.output_surface_pitch + 1, layout=SurfaceLayout.PLANAR, row_step=1, sample_bytes=1)
        if state.output_surface_tiled:
            tile_walk(walk, "y_major" if state.output_surface_tile_walk else "x_major")
        layout = laid_out(walk, pixels, (state.output_surface_y_offset_for_u,) * 2, (state.output_surface_x_offset_for_u,) * 2)
        return SurfacePlace(state.output_frame_width + 1, state.output_frame_height + 1, pixels, layout)

    def _placed(self, frame: Frame, place: SurfacePlace) -> Frame:
        """The output frame with the scaled region in it: what is beside it is filled, or stays."""
        state = self.state
        left, top = state.scaled_region_horizontal_offset, state.scaled_region_vertical_offset
        if (left, top, frame.width, frame.height) == (0, 0, place.width, place.height):
            return frame
        if left < 0 or top < 0 or left + frame.width > place.width or top + frame.height > place.height:
            raise Unsupported("a scaled region that is not within the output frame: not yet simulated")
        found = load(self.cs, place, state.output_frame_address)
        if state.color_fill_enable:
            colours = state.gray_bar_pixel_y_r, state.gray_bar_pixel_u_g, state.gray_bar_pixel_v_b, state.gray_bar_pixel_a
            for plane, colour in zip(found.planes, colours, strict=False):
                plane[:] = _ten_bits(colour)
        for number, (plane, part) in enumerate(zip(found.planes, frame.planes, strict=False)):
            x, y = (left >> found.shift[0], top >> found.shift[1]) if number in (1, 2) else (left, top)
            plane[y : y + part.shape[0], x : x + part.shape[1]] = part
        for plane in found.planes[len(frame.planes) :]:
            plane[top : top + frame.height, left : left + frame.width] = _ten_bits(state.alpha_default_value)
        return found


def filter_tables(body: int, taps: int) -> FilterTables:
    """The body of a coefficient table: for each phase and tap a byte across and a byte down. Four taps are those in the middle."""
    raw = np.frombuffer(body.to_bytes(PHASES * taps * 2, "little"), np.int8).reshape(PHASES, taps, 2)
    whole, first = np.zeros((2, PHASES, TAPS), np.int8), (TAPS - taps) // 2
    whole[:, :, first : first + taps] = np.moveaxis(raw, 2, 0)
    return FilterTables(whole[0], whole[1])


def _mixed(sharp: npt.NDArray[np.uint16], soft: npt.NDArray[np.uint16], sharpness: int) -> npt.NDArray[Any]:
    return (sharp.astype(np.uint32) * sharpness + soft.astype(np.uint32) * (FULL_SHARPNESS - sharpness) + 127) // FULL_SHARPNESS


def _ten_bits(value: int) -> int:
    """A sample with 16 bits of one with ten."""
    return value << 6 | value >> 4
