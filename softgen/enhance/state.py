"""What VEBOX_STATE points to: denoise, deinterlace and colour parameters, from the tables to the structures of enhance.h.

Generations count thresholds in different units. The widths of the fields, and what their differences may be (KBL 27461-27470, 27552-27560),
lead to THRESHOLD_BITS.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from softgen.bits.catalogue import catalogue
from softgen.bits.field import BitField
from softgen.bits.record import Record, split
from softgen.command import CommandStreamer
from softgen.enhance.library import call
from softgen.enhance.structures import NEVER_HOT, RANGES, ColourMatrix, Deinterlacing, Denoising
from softgen.enhance.surface import Frame, resampled
from softgen.errors import DecodeError, Unsupported

COLOURS = ("y", "u", "v")
FRACTION = 1 << 16  # of coefficients
SHIFTS_DOWN, SHIFTS_UP = (4, 5, 6), (6, 7, 8)  # stmm_shift_down, stmm_shift_up (KBL 27709-27724)
PLAIN_WEIGHTS = ((8, 4, 0), (4, 2, 0), (0, 0, 0))  # by distance, where the table has none
NOT_BUILT = {  # switches of VEBOX_STATE
    "color_gamut_compression_enable": "gamut compression", "color_gamut_expansion_enable": "gamut expansion",
    "forward_gamma_correction_enable": "forward gamma correction", "lace_correction_enable": "local contrast",
    "alpha_plane_enable": "an alpha plane", "vignette_enable": "vignette correction", "demosaic_enable": "demosaicing",
    "lut3d_enable": "the 3D colour table", "scalar_mode": "scalar mode",
}  # fmt: skip
ALPHA_BITS = 16  # of channels in the engine; the field has 12 before Gen9
NOT_BUILT_COLOUR = {  # switches of VEBOX_IECP_STATE, by its parts
    "std_ste_state": {"std_enable": "skin tone detection", "ste_enable": "skin tone enhancement"},
    "ace_state": {"ace_enable": "adaptive contrast", "lace_histogram_enable": "histograms"},
    "tcc_state": {"tcc_enable": "total colour control"},
    "gamut_state": {"global_mode_enable": "gamut compression"},
}  # fmt: skip


def structure(cs: CommandStreamer, name: str, address: int) -> Record:
    """A table in memory, with numbers for its fields."""
    layout = catalogue().layout(name, cs.generation.number)
    data = cs.space.read(address, 4 * layout.dwords)
    return layout.unpack([int.from_bytes(data[at : at + 4], "little") for at in range(0, len(data), 4)])


def refuse_unbuilt(state: Record) -> None:
    """Raises Unsupported for what VEBOX_STATE switches on and this engine lacks."""
    for field, text in NOT_BUILT.items():
        if getattr(state, field, False):
            raise Unsupported(f"{text} of the video enhancement engine ({field}): not yet simulated")


@dataclass
class Colours:
    """What is done to colours, in this order: correction, front-end conversion, procamp, conversion."""

    correction: ColourMatrix | None = None
    front: ColourMatrix | None = None
    procamp: ColourMatrix | None = None
    back: ColourMatrix | None = None
    swap: bool = False  # the first and the third channel change places
    alpha: int | None = None  # of the result; None: that of the input


def colours(cs: CommandStreamer, address: int) -> Colours:
    """Of VEBOX_IECP_STATE."""
    gen, table = cs.generation.number, structure(cs, "VEBOX_IECP_STATE", address)
    layouts = {field.name: field for field in catalogue().layout("VEBOX_IECP_STATE", gen).fields}
    parts = {name: _part(layouts[name], value, gen) for name, value in table._asdict().items()}
    for part, fields in NOT_BUILT_COLOUR.items():
        for field, text in fields.items():
            if part in parts and getattr(parts[part], field, False):
                raise Unsupported(f"{text} of the video enhancement engine ({field}): not yet simulated")
    csc, alpha, found = parts["csc_state"], parts["alpha_aoi_state"], Colours()
    found.correction = _correction(parts["ccm_state"]) if "ccm_state" in parts else None
    if "front_end_csc" in parts:
        found.front = _front_end(parts["front_end_csc"])
    if parts["procamp_state"].procamp_enable:
        found.procamp = procamp(parts["procamp_state"])
    if csc.transform_enable:
        found.back = csc_matrix(csc)
        found.swap = bool(csc.yuv_channel_swap)
    if alpha.alpha_from_state_select:
        width = catalogue().layout(layouts["alpha_aoi_state"].type.target, gen).field("color_pipe_alpha").width
        found.alpha = alpha.color_pipe_alpha << ALPHA_BITS - width
    return found


def csc_matrix(state: Record) -> ColourMatrix:
    """Of VEBOX_CSC_STATE, or of SFC_IEF_STATE, which has the same fields."""
    return _matrix([getattr(state, f"c{n}") for n in range(9)], _offsets(state, "offset_in_"), _offsets(state, "offset_out_"))


def three_colours(frame: Frame) -> None:
    """Raise DecodeError where a frame has luma alone."""
    if len(frame.planes) < 3:
        raise DecodeError("a colour conversion of a surface that has luma alone")


def converted(cs: CommandStreamer, frame: Frame, matrix: ColourMatrix) -> Frame:
    """A frame with other colours. Matrices that mix luma and chroma need as many samples of both."""
    if any(matrix.coefficients[n] for n in (1, 2, 3, 6)):
        three_colours(frame)
        frame = resampled(cs, frame, (0, 0), False)
    matrix.frame = frame.record()
    call(cs, "enhance_colours", matrix)
    return frame


def _part(field: BitField, value: int, gen: float) -> Record:
    layout = catalogue().layout(field.type.target, gen)
    return layout.unpack(split(value, layout.dwords))


def procamp(state: Record) -> ColourMatrix:
    """Y' = (Y - 16) * contrast + 16 + brightness; chroma turns by cos_c_s and sin_c_s around 128."""
    cos, sin = state.cos_c_s, state.sin_c_s
    matrix = _matrix([state.contrast, 0, 0, 0, cos, sin, 0, -sin, cos], [-16 << 8, -128 << 8, -128 << 8], [16 << 8, 128 << 8, 128 << 8])
    matrix.offset_out[0] += round(state.brightness * 256)
    return matrix


def _correction(state: Record) -> ColourMatrix | None:
    """The colour correction matrix, of red, green and blue before the front-end conversion. How many bits behind the
    point the coefficients of other generations than Gen9 have, no manual at hand says."""
    if not state.color_correction_matrix_enable:
        return None
    coefficients = [getattr(state, f"c{n}", None) for n in range(9)]
    if not all(isinstance(value, float) for value in coefficients):
        raise Unsupported("colour correction matrix of the video enhancement engine (color_correction_matrix_enable): not yet simulated")
    return _matrix([float(value) for value in coefficients if value is not None], [0, 0, 0], [0, 0, 0])


def _front_end(state: Record) -> ColourMatrix | None:
    if getattr(state, "front_end_csc_transform_enable", 0):
        coefficients = [getattr(state, f"fecsc_c{n}_transform_coefficient") for n in range(9)]
        return _matrix(coefficients, [2 * value for name, value in state._asdict().items() if "_offset_in_" in name[:18]],
                       [2 * value for name, value in state._asdict().items() if "_offset_out_" in name[:19]])  # fmt: skip
    if getattr(state, "ffront_end_c_sc_transform_enable", 0):
        raise Unsupported("front-end colour conversion of Gen8: not yet simulated")
    return None


def _offsets(state: Record, prefix: str) -> list[int]:
    """Of samples with 16 bits. Offsets are multiplied by 2 before they are added (KBL 27358-27394); earlier tables have quarters of a step
    of 8 bits (public: intel-vaapi-driver, gen75_vpp_vebox.c), which the page reads as s2.8."""
    values = [getattr(state, f"{prefix}{n}") for n in (1, 2, 3)]
    return [round(value * 256) * 64 if isinstance(value, float) else 2 * value for value in values]


def _matrix(coefficients: list[float], offset_in: list[int], offset_out: list[int]) -> ColourMatrix:
    matrix = ColourMatrix()
    matrix.coefficients[:] = [round(value * FRACTION) for value in coefficients]
    matrix.offset_in[:], matrix.offset_out[:] = offset_in, offset_out
    return matrix


# -- denoise and deinterlace -------------------------------------------------------------------------------------------


THRESHOLD_BITS = {7: (8, 8), 8: (8, 8), 9: (12, 8), 11: (16, 16)}  # of samples that thresholds of luma and of chroma are for


def denoising(cs: CommandStreamer, table: Record, temporal: bool, hot: bool) -> Denoising:
    """Thresholds and weights of VEBOX_DNDI_STATE; frames and history are left to the caller."""
    found, bits = Denoising(), THRESHOLD_BITS[int(cs.generation.number)]
    found.history_start, found.history_step = table.initial_denoise_history, table.denoise_history_increase
    found.history_max, found.fields = table.denoise_maximum_history, 1 if table.progressive_dn else 2
    for n, channel in enumerate(found.channels):
        prefix, shift = "chroma_" if n else "", 16 - bits[n > 0]
        channel.enable, channel.temporal = not n or table.chroma_denoise_enable, temporal
        channel.low = getattr(table, f"{prefix}low_temporal_difference_threshold") << shift
        channel.high = getattr(table, f"{prefix}temporal_difference_threshold") << shift
        channel.moving_threshold = channel.high
        channel.moving_pixels = _of_channel(table, prefix, "denoise_moving_pixel_threshold")
        channel.sad = getattr(table, f"{prefix}denoise_stad_threshold") << shift
        channel.sum = _of_channel(table, prefix, "denoise_asd_threshold") << shift
        _ranges(table, channel, n, shift)
        channel.hot_count, channel.hot_threshold = _hot(table, n) if hot else (NEVER_HOT, 0)
    _distances(table, found)
    return found


def _of_channel(table: Record, prefix: str, name: str) -> int:
    """Chroma has thresholds of its own, or shares those of luma."""
    return int(getattr(table, prefix + name, getattr(table, name)))


def _name(table: Record, n: int) -> str:
    """The prefix of spatial weights: one set, or one for each channel (Gen11); none before Gen9."""
    return next((prefix for prefix in (f"dn{COLOURS[n]}_", "dn_") if hasattr(table, f"{prefix}wr0")), "")


def _ranges(table: Record, channel: Any, n: int, shift: int) -> None:
    prefix = _name(table, n)
    if not prefix:
        channel.range_threshold[0] = table.good_neighbor_threshold << shift
        channel.range_weight[0] = 1
        return
    for k in range(RANGES):
        channel.range_threshold[k] = getattr(table, f"{prefix}prt{k}") << 16 - 13
        channel.range_weight[k] = getattr(table, f"{prefix}wr{k}")


def _distances(table: Record, found: Denoising) -> None:
    prefix = _name(table, 0)
    for j in range(3):
        for i in range(3):
            low, high = sorted((i, j))
            name = f"{prefix}wd{j}{i}" if hasattr(table, f"{prefix}wd{j}{i}") else f"{prefix}wd{high}{low}"
            found.distance_weight[j][i] = getattr(table, name) if prefix else PLAIN_WEIGHTS[j][i]


def _hot(table: Record, n: int) -> tuple[int, int]:
    """Count and threshold; "is shifted up to 16-bits before compare" (KBL 27514)."""
    suffix = ("_luma", "_chroma_u", "_chroma_v")[n]
    count: int = getattr(table, f"hot_pixel_count{suffix}", getattr(table, "hot_pixel_count", NEVER_HOT))
    return count, getattr(table, f"hot_pixel_threshold{suffix}", getattr(table, "hot_pixel_threshold", 0)) << 8


def deinterlacing(table: Record, of_previous: bool) -> Deinterlacing:
    """Parameters of VEBOX_DNDI_STATE: the first field of the current frame is kept, or the second one of the previous frame."""
    cadence = table.progressive_cadence_reconstruction_for_1st_field_of_current_frame
    if of_previous:
        cadence = table.progressive_cadence_reconstruction_for_2nd_field_of_previous_frame
    bottom_first = not table.dn_di_top_first
    return Deinterlacing(
        kept=bottom_first ^ of_previous, of_previous=of_previous, cadence=cadence,
        shift_up=SHIFTS_UP[min(table.stmm_shift_up, 2)], shift_down=SHIFTS_DOWN[min(table.stmm_shift_down, 2)],
        divisor=table.stmm_c2 + 1, complexity_factor=table.multiplier_for_vecm,
        motion_min=table.minimum_stmm, motion_max=table.maximum_stmm, output_shift=min(table.stmm_output_shift, 16),
        fade_small=table.blending_constant_across_time_for_small_values_of_stmm,
        fade_large=2 * table.blending_constant_across_time_for_large_values_of_stmm,
    )  # fmt: skip
