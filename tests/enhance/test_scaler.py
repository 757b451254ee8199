"""SFC behind VEBOX: polyphase scaling against sums written out, placement in the output frame, conversion, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from softgen.bits.catalogue import layout
from softgen.bits.record import join
from softgen.errors import DecodeError, Unsupported
from tests.enhance.bench import CURRENT, OUTPUT, PITCH, Bytes, EnhanceBench

NV12, RGBA = 4, 1  # SFC_Output_Format
ONE = 1 << 17
Table = np.ndarray[Any, np.dtype[np.int8]]


def tables(taps: int, seed: int) -> Table:
    """Coefficients by phase, tap, and x or y, that sum to one; phase 0 is the sample itself."""
    rng = np.random.default_rng(seed)
    found = rng.integers(-6, 14, (32, taps, 2))
    found[:, taps // 2 - 1] += 64 - found.sum(1)
    found[0] = 0
    found[0, taps // 2 - 1] = 64
    return found.astype(np.int8)


def packed_table(bench: EnhanceBench, name: str, table: Table) -> list[int]:
    body: int = int.from_bytes(table.tobytes(), "little")
    return bench.pack(name, body=body)


def scaler(bench: EnhanceBench, size: tuple[int, int], step: tuple[int, int], sharpness: int = 255, **more: Any) -> list[list[int]]:
    """Commands between the surface states and VEB_DI_IECP."""
    values = {"sfc_pipe_mode": 1, "input_frame_resolution_width": bench.width - 1, "input_frame_resolution_height": bench.height - 1,
              "output_surface_format_type": NV12, "avs_scaling_enable": 1, "avs_filter_mode": 1, "source_region_width": bench.width - 1,
              "source_region_height": bench.height - 1, "output_frame_width": size[0] - 1, "output_frame_height": size[1] - 1,
              "scaled_region_size_width": size[0] - 1, "scaled_region_size_height": size[1] - 1, "alpha_default_value": 1023,
              "scaling_factor_width": step[0] / ONE, "scaling_factor_height": step[1] / ONE, "output_frame_address": OUTPUT,
              "output_surface_pitch": PITCH - 1, "output_surface_y_offset_for_u": 256}  # fmt: skip
    avs = layout("SFC_AVS_STATE_BODY", bench.device.generation.number).pack(sharpness_level=sharpness)
    return [bench.pack("SFC_LOCK", body=1), bench.pack("SFC_STATE", **{**values, **more}), bench.pack("SFC_AVS_STATE", body=join(avs)),
            packed_table(bench, "SFC_AVS_LUMA_COEFF_TABLE", tables(8, 1)), packed_table(bench, "SFC_AVS_CHROMA_COEFF_TABLE", tables(4, 2)),
            bench.pack("SFC_FRAME_START", body=0)]  # fmt: skip


def run(bench: EnhanceBench, commands: list[list[int]], **more: int) -> None:
    bench.iecp()
    bench.run(bench.state(global_iecp_enable=1), bench.surface(0), bench.surface(1), *commands, bench.object(**more))


def scaled(plane: Bytes, size: tuple[int, int], step: tuple[int, int], table: Table, cosited: bool) -> Bytes:
    """Each sample as the sum over taps, with all positions written out."""
    taps, (rows, columns) = table.shape[1], plane.shape
    found = np.zeros((size[1], size[0]))
    for j in range(size[1]):
        for i in range(size[0]):
            x = i * step[0] + ((step[0] - ONE) >> 1 + cosited)
            y = j * step[1] + ((step[1] - ONE) >> 1)
            across, down = table[x >> 12 & 31, :, 0].astype(int), table[y >> 12 & 31, :, 1].astype(int)
            at_x = np.clip((x >> 17) - taps // 2 + 1 + np.arange(taps), 0, columns - 1)
            at_y = np.clip((y >> 17) - taps // 2 + 1 + np.arange(taps), 0, rows - 1)
            found[j, i] = down @ plane[np.ix_(at_y, at_x)].astype(int) @ across / 4096
    return np.clip(found, 0, 255)


@pytest.mark.behaviour("KBL-SFC-01", shows="layout")
@pytest.mark.parametrize("gpu", ["kbl", "icl"])
@pytest.mark.parametrize("size, step", [
    ((70, 34), (ONE, ONE)), ((106, 60), (86594, 74274)), ((30, 18), (305835, 247580)), ((140, 26), (65536, 171402)),
])  # fmt: skip
def test_planes_are_scaled_with_their_tables(gpu: str, size: tuple[int, int], step: tuple[int, int]) -> None:
    """Eight taps of table 0 for luma, four of table 1 for chroma, 32 phases, X and Y apart. Within 1."""
    bench = EnhanceBench(gpu)
    luma, chroma = bench.noise(31)
    bench.put_nv12(CURRENT, luma, chroma)
    run(bench, scaler(bench, size, step))
    assert np.abs(bench.get(OUTPUT, size[1], size[0]) - scaled(luma, size, step, tables(8, 1), False)).max() <= 1
    found, half = bench.get(OUTPUT, size[1] // 2, size[0], 256), (size[0] // 2, size[1] // 2)
    for n in (0, 1):
        assert np.abs(found[:, n::2] - scaled(chroma[:, n::2], half, step, tables(4, 2), True)).max() <= 1
    if step == (ONE, ONE):
        assert np.array_equal(bench.get(OUTPUT, size[1], size[0]), luma), "one to one is the identity"


@pytest.mark.parametrize("sharpness, mode", [(0, 1), (255, 2)])
def test_without_sharpness_the_filter_is_bilinear(sharpness: int, mode: int) -> None:
    bench = EnhanceBench("icl")
    luma, chroma = bench.noise(32)
    bench.put_nv12(CURRENT, luma, chroma)
    run(bench, scaler(bench, (140, 68), (ONE // 2, ONE // 2), sharpness, avs_filter_mode=mode))
    bilinear = np.zeros((32, 4, 2), np.int8)
    bilinear[:, 1], bilinear[:, 2] = (64 - 2 * np.arange(32))[:, None], (2 * np.arange(32))[:, None]
    assert np.abs(bench.get(OUTPUT, 68, 140) - scaled(luma, (140, 68), (ONE // 2, ONE // 2), bilinear, False)).max() <= 1


@pytest.mark.parametrize("fill", [0, 1])
def test_the_scaled_region_has_a_place_in_the_frame(fill: int) -> None:
    """What is beside it is filled or stays; the source is a region, too."""
    bench = EnhanceBench("icl")
    luma, chroma = bench.noise(33)
    bench.put_nv12(CURRENT, luma, chroma)
    bench.space.write(OUTPUT, bytes([77]) * PITCH * 400)
    more = {"source_region_width": 31, "source_region_height": 15, "source_region_horizontal_offset": 6, "source_region_vertical_offset": 4,
            "scaled_region_size_width": 31, "scaled_region_size_height": 15, "scaled_region_horizontal_offset": 8,
            "scaled_region_vertical_offset": 10, "color_fill_enable": fill, "gray_bar_pixel_y_r": 100 << 2, "gray_bar_pixel_u_g": 50 << 2,
            "gray_bar_pixel_v_b": 60 << 2, "avs_scaling_enable": 0}  # fmt: skip
    run(bench, scaler(bench, (64, 40), (ONE, ONE), **more))
    found, colours = bench.get(OUTPUT, 40, 64), bench.get(OUTPUT, 20, 64, 256)
    assert np.array_equal(found[10:26, 8:40], luma[4:20, 6:38]) and np.array_equal(colours[5:13, 8:40], chroma[2:10, 6:38])
    found[10:26, 8:40], colours[5:13, 8:40] = 100 if fill else 77, 77
    assert (found == (100 if fill else 77)).all()
    assert (colours[:5] == (np.tile([50, 60], 32) if fill else 77)).all()


def test_a_frame_becomes_rgb_behind_the_scaler() -> None:
    """SFC_IEF_STATE has the matrix; offsets are in quarters of a step of 8 bits."""
    bench = EnhanceBench("icl", (32, 16))
    luma, chroma = bench.noise(34)
    bench.put_nv12(CURRENT, luma, chroma)
    coefficients = [1.1640625, 0.0, 1.5966796875, 1.1640625, -0.3916015625, -0.8134765625, 1.1640625, 2.017578125, 0.0]
    fields = {f"c{n}": value for n, value in enumerate(coefficients)}
    fields |= {f"offset_in_{n + 1}": value * 4 / 256 for n, value in enumerate((-16, -128, -128))}
    body = join(layout("SFC_IEF_STATE_BODY", 11).pack(**fields, transform_enable=1))
    more = {"output_surface_format_type": RGBA, "csc_enable": 1, "avs_scaling_enable": 0}
    run(bench, [bench.pack("SFC_IEF_STATE", body=body), *scaler(bench, (32, 16), (ONE, ONE), **more)])
    found = bench.get(OUTPUT, 16, 128).reshape(16, 32, 4)
    u, v = (np.repeat(np.repeat(chroma[:, n::2], 2, 0), 2, 1) for n in (0, 1))
    expected = (np.stack([luma, u, v], 2) - np.array([16, 128, 128])) @ np.array(coefficients).reshape(3, 3).T
    assert np.abs(found[..., :3] - np.clip(expected, 0, 255)).max() <= 1 and (found[..., 3] == 255).all()


def test_the_scaler_needs_no_output_surface_of_vebox() -> None:
    """iHD sends VEBOX_SURFACE_STATE of the input alone where the scaler converts a decoded frame to RGBA, as for a browser's pictures."""
    bench = EnhanceBench("icl")
    luma, chroma = bench.noise(36)
    bench.put_nv12(CURRENT, luma, chroma)
    bench.iecp()
    commands = scaler(bench, (bench.width, bench.height), (ONE, ONE), avs_scaling_enable=0)
    bench.run(bench.state(global_iecp_enable=1), bench.surface(0), *commands, bench.object())
    assert np.array_equal(bench.get(OUTPUT, bench.height, bench.width), luma)
    with pytest.raises(DecodeError, match="output surface"):
        bench.run(bench.object())


def test_the_next_frame_is_not_scaled_again() -> None:
    bench = EnhanceBench("icl")
    luma, chroma = bench.noise(35)
    bench.put_nv12(CURRENT, luma, chroma)
    run(bench, scaler(bench, (140, 68), (ONE // 2, ONE // 2)))
    bench.run(bench.object())
    assert np.array_equal(bench.get_nv12(OUTPUT)[0], luma)


@pytest.mark.parametrize("more, error, text", [
    ({"ief_enable": 1}, Unsupported, "edge enhancement"), ({"rotation_mode": 1}, Unsupported, "rotation"),
    ({"output_surface_format_type": 2}, Unsupported, "a2r10g10b10"), ({"input_frame_resolution_width": 63}, DecodeError, "64x34"),
    ({"source_region_horizontal_offset": 2}, DecodeError, "source region"), ({"scaling_factor_width": 0}, DecodeError, "factor"),
    ({"scaled_region_horizontal_offset": -4}, Unsupported, "scaled region"), ({"avs_scaling_enable": 0}, DecodeError, "scaling is off"),
])  # fmt: skip
def test_bad_state_is_refused(more: dict[str, int], error: type[Exception], text: str) -> None:
    bench = EnhanceBench("icl")
    with pytest.raises(error, match=text):
        run(bench, scaler(bench, (140, 68), (ONE // 2, ONE // 2), **more))


def test_columns_and_other_engines_are_refused() -> None:
    bench = EnhanceBench("icl")
    with pytest.raises(Unsupported, match="columns"):
        run(bench, scaler(bench, (140, 68), (ONE // 2, ONE // 2)), ending_x=63)
