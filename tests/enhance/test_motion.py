"""Denoise and deinterlace: what any reading of their parameters has to keep (docs/video.md says which is ours)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from softgen.bits.catalogue import layout
from tests.enhance.bench import CURRENT, DENOISED, OUTPUT, OUTPUT_OF_PREVIOUS, PREVIOUS, STMM_IN, STMM_OUT, Bytes, EnhanceBench

GPUS = ("hsw", "bdw", "kbl", "icl")
Planes = tuple[Bytes, Bytes]


def put(bench: EnhanceBench, previous: Planes, current: Planes) -> None:
    bench.put_nv12(PREVIOUS, *previous)
    bench.put_nv12(CURRENT, *current)


def flat(bench: EnhanceBench, luma: int, chroma: int) -> Planes:
    return np.full((bench.height, bench.width), luma, np.uint8), np.full((bench.height // 2, bench.width), chroma, np.uint8)


def bob(plane: Bytes, kept: int) -> Bytes:
    """Lines of one field, and the means of those above and below."""
    found = plane.astype(int)
    for y in range(1 - kept, len(plane), 2):
        above, below = (y - 1 if y else 1), (y + 1 if y + 1 < len(plane) else y - 1)
        found[y] = (found[above] + found[below] + 1) // 2
    return found.astype(np.uint8)


def equal(found: Planes, expected: Planes) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))


# -- deinterlace ---------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("KBL-VEBOX-08", shows="action")
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("top_first", [0, 1])
def test_static_pictures_are_woven(gpu: str, top_first: int) -> None:
    bench = EnhanceBench(gpu)
    frame = bench.noise(11)
    put(bench, frame, frame)
    bench.dndi(dn_di_top_first=top_first)
    bench.enhance(di_enable=1)
    assert equal(bench.get_nv12(OUTPUT), frame)


@pytest.mark.behaviour("KBL-VEBOX-08", shows="action")
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("top_first", [0, 1])
def test_where_all_moves_lines_come_from_those_beside(gpu: str, top_first: int) -> None:
    """The kept field is the first of the current frame; of the previous frame the second one."""
    bench = EnhanceBench(gpu)
    current = tuple(plane // 2 for plane in bench.noise(12))
    previous = tuple(plane + 128 for plane in current)
    put(bench, previous, current)  # type: ignore[arg-type]
    bench.dndi(dn_di_top_first=top_first, multiplier_for_vecm=0)
    bench.enhance(di_enable=1, di_output_frames=0)
    assert equal(bench.get_nv12(OUTPUT), tuple(bob(plane, 1 - top_first) for plane in current))  # type: ignore[arg-type]
    assert equal(bench.get_nv12(OUTPUT_OF_PREVIOUS), tuple(bob(plane, top_first) for plane in previous))  # type: ignore[arg-type]


@pytest.mark.parametrize("gpu", GPUS)
def test_the_first_frame_has_no_motion_to_go_by(gpu: str) -> None:
    """The previous frame's address may be anything then."""
    bench = EnhanceBench(gpu)
    frame = bench.noise(13)
    bench.put_nv12(CURRENT, *frame)
    bench.dndi(dn_di_top_first=1)
    state = bench.state(di_enable=1, dn_di_first_frame=1)
    bench.run(state, bench.surface(0), bench.surface(1), bench.object(previous_frame_input_address=0))
    assert equal(bench.get_nv12(OUTPUT), tuple(bob(plane, 0) for plane in frame))  # type: ignore[arg-type]


@pytest.mark.behaviour("KBL-VEBOX-08", shows="action")
def test_between_the_thresholds_both_are_mixed() -> None:
    """Motion of 9 samples that differ by 5 is 45 * 8 / 3 = 120 here: 2 of 32 parts of the way from 118 to 150."""
    bench = EnhanceBench("kbl")
    current, previous = flat(bench, 80, 90), flat(bench, 85, 90)
    current[0][1::2] = previous[0][1::2] = 180
    previous[0][1::2] += 5
    put(bench, previous, current)
    bench.dndi(dn_di_top_first=1, multiplier_for_vecm=0)
    bench.enhance(di_enable=1)
    woven, spatial = (180 + 185 + 1) / 2, 80
    assert np.abs(bench.get_nv12(OUTPUT)[0][1::2] - (woven * 30 + spatial * 2) / 32).max() <= 1
    bench.dndi(dn_di_top_first=1, multiplier_for_vecm=0, minimum_stmm=0, maximum_stmm=32)
    bench.enhance(di_enable=1)
    assert (bench.get_nv12(OUTPUT)[0] == 80).all(), "both limits count"


@pytest.mark.behaviour("KBL-VEBOX-08", shows="action")
@pytest.mark.parametrize("fade, moving", [(0, False), (127, True)])
def test_motion_fades(fade: int, moving: bool) -> None:
    """What moved before still counts, less each time: STMM goes through the driver's buffers."""
    bench = EnhanceBench("kbl")
    still, moved = bench.noise(14), bench.noise(15)
    put(bench, moved, still)
    constants = {"blending_constant_across_time_for_large_values_of_stmm": fade, "multiplier_for_vecm": 0,
                 "blending_constant_across_time_for_small_values_of_stmm": 2 * fade, "dn_di_top_first": 1}  # fmt: skip
    bench.dndi(**constants)
    bench.enhance(di_enable=1)
    bench.space.write(STMM_IN, bench.space.read(STMM_OUT, bench.height * 512))
    put(bench, still, still)
    bench.enhance(di_enable=1)
    luma = bench.get_nv12(OUTPUT)[0]
    assert np.array_equal(luma, still[0]) is not moving
    if moving:
        assert np.mean(luma == bob(still[0], 0)) > 0.9


@pytest.mark.behaviour("KBL-VEBOX-08", shows="action")
@pytest.mark.parametrize("cadence", ["with_previous_field", "with_next_field"])
def test_film_is_put_together_again(cadence: str) -> None:
    """The other lines come from the field before or after, whatever moves (KBL 27803-27832)."""
    bench = EnhanceBench("kbl")
    previous, current = bench.noise(16), bench.noise(17)
    put(bench, previous, current)
    name = "progressive_cadence_reconstruction_for_{}"
    value = 1 if cadence == "with_previous_field" else 2
    bench.dndi(dn_di_top_first=1, **{name.format("1st_field_of_current_frame"): value, name.format("2nd_field_of_previous_frame"): value})
    bench.enhance(di_enable=1, di_output_frames=0)
    for found, kept, first in ((bench.get_nv12(OUTPUT), current, 0), (bench.get_nv12(OUTPUT_OF_PREVIOUS), previous, 1)):
        for plane, own, before, after in zip(found, kept, previous, current, strict=True):
            assert np.array_equal(plane[first::2], own[first::2])
            assert np.array_equal(plane[1 - first :: 2], (before if value == 1 else after)[1 - first :: 2])


# -- denoise -------------------------------------------------------------------------------------------------------------


def denoised(bench: EnhanceBench, first: bool = False, **fields: Any) -> Planes:
    values = {**bench.known("VEBOX_DNDI_STATE", WEIGHTS), **thresholds(bench), "chroma_denoise_enable": 1, **fields}
    bench.dndi(**values)
    bench.enhance(dn_enable=1, dn_di_first_frame=int(first))
    return bench.get_nv12(DENOISED)


WEIGHTS = {f"{prefix}wd{j}{i}": 8 >> i + j for prefix in ("dn_", "dny_", "dnu_", "dnv_") for j in range(3) for i in range(3) if i + j < 4}
WEIGHTS |= {f"{prefix}wr{k}": 16 >> k for prefix in ("dn_", "dny_", "dnu_", "dnv_") for k in range(6)}
WEIGHTS |= {f"{prefix}prt{k}": 200 * (k + 1) for prefix in ("dn_", "dny_", "dnu_", "dnv_") for k in range(6)}
NAMES = ("temporal_difference_threshold", "low_temporal_difference_threshold", "denoise_stad_threshold", "denoise_asd_threshold")


def thresholds(bench: EnhanceBench, shift: int | None = None) -> dict[str, int]:
    """Temporal differences of 8 and 4 steps, sums of 140; each generation in its own units."""
    gen = int(bench.device.generation.number)
    luma, chroma = {7: (0, 0), 8: (0, 0), 9: (4, 0), 11: (8, 8)}[gen]
    found = {name: value << luma for name, value in zip(NAMES, (8, 4, 100, 100), strict=True)}
    for name, value in zip(NAMES, (8, 4, 100, 100), strict=True):
        field = f"chroma_{name}"
        if field in {each.name for each in layout("VEBOX_DNDI_STATE", bench.device.generation.number).fields}:
            width = layout("VEBOX_DNDI_STATE", bench.device.generation.number).field(field).width
            found[field] = min(value << chroma, (1 << width) - 1)
    limits = {field.name: (1 << field.width) - 1 for field in layout("VEBOX_DNDI_STATE", bench.device.generation.number).fields}
    return {name: min(value, limits[name]) for name, value in found.items()} | {"denoise_moving_pixel_threshold": 4}


@pytest.mark.behaviour("KBL-VEBOX-07", shows="action")
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("progressive", [0, 1])
def test_static_pictures_stay(gpu: str, progressive: int) -> None:
    bench = EnhanceBench(gpu)
    frame = bench.noise(21)
    put(bench, frame, frame)
    assert equal(denoised(bench, progressive_dn=progressive), frame)
    assert equal(denoised(bench, first=True, progressive_dn=progressive), frame)


@pytest.mark.behaviour("KBL-VEBOX-07", shows="action")
@pytest.mark.parametrize("gpu", GPUS)
def test_flat_pictures_stay_however_they_change(gpu: str) -> None:
    bench = EnhanceBench(gpu)
    put(bench, flat(bench, 200, 30), flat(bench, 20, 90))
    assert equal(denoised(bench), flat(bench, 20, 90))


@pytest.mark.behaviour("KBL-VEBOX-07", shows="action")
@pytest.mark.parametrize("gpu", GPUS)
def test_noise_on_static_pictures_shrinks_as_history_grows(gpu: str) -> None:
    """Luma and chroma; chroma only where it is enabled."""
    bench = EnhanceBench(gpu)
    rng, clean = np.random.default_rng(22), (flat(bench, 100, 120))
    noisy = [tuple((plane + rng.integers(-2, 3, plane.shape)).astype(np.uint8) for plane in clean) for _ in range(12)]
    found: Any = noisy[0]
    for frame in noisy[1:]:
        put(bench, found, frame)  # type: ignore[arg-type]
        found = denoised(bench, denoise_history_increase=15)
        bench.space.write(STMM_IN, bench.space.read(STMM_OUT, bench.height * 512))
    for plane, last, wanted in zip(found, noisy[-1], clean, strict=True):
        before, after = np.std(last.astype(float) - wanted), np.std(plane.astype(float) - wanted)
        assert after < 0.75 * before
    assert np.array_equal(denoised(bench, chroma_denoise_enable=0)[1], noisy[-1][1])


@pytest.mark.behaviour("KBL-VEBOX-07", shows="action")
@pytest.mark.parametrize("gpu", GPUS)
def test_moving_pictures_are_smoothed_but_edges_stay(gpu: str) -> None:
    """Neighbours count less the more they differ: noise of 2 goes, a step of 100 stays."""
    bench = EnhanceBench(gpu)
    edge = np.repeat(np.where(np.arange(bench.width) < 31, 60, 160)[None], bench.height, 0)
    noisy = (edge + np.random.default_rng(23).integers(-2, 3, edge.shape)).astype(np.uint8)
    chroma = flat(bench, 0, 128)[1]
    put(bench, (255 - noisy, chroma), (noisy, chroma))
    weights = {**WEIGHTS, **{name: 0 for name in WEIGHTS if name.endswith(("wr4", "wr5"))}}
    fields = bench.known("VEBOX_DNDI_STATE", {**weights, "good_neighbor_threshold": 8})
    luma = denoised(bench, False, **fields)[0].astype(float)
    assert np.std(luma - edge) < 0.75 * np.std(noisy.astype(float) - edge)
    assert np.abs(luma - edge).max() <= 3


@pytest.mark.behaviour("KBL-VEBOX-07", shows="action")
@pytest.mark.parametrize("gpu, names", [
    ("bdw", ("hot_pixel_count", "hot_pixel_threshold")), ("kbl", ("hot_pixel_count", "hot_pixel_threshold")),
    ("icl", ("hot_pixel_count_luma", "hot_pixel_threshold_luma")),
])  # fmt: skip
def test_hot_pixels_become_the_median(gpu: str, names: tuple[str, str]) -> None:
    """A pixel is hot if enough of its eight neighbours differ by more than the threshold; a count of 0 filters all (KBL 27504-27518)."""
    bench = EnhanceBench(gpu)
    luma = np.add.outer(np.arange(bench.height), np.arange(bench.width)).astype(np.uint8)
    luma[10, 20] = luma[17, 41] = 250
    bench.put_nv12(CURRENT, luma, flat(bench, 0, 128)[1])
    bench.iecp()
    switches = {"hot_pixel_filtering_enable": 1, "dn_di_first_frame": 1, "global_iecp_enable": 1}
    for count in (8, 0):
        bench.dndi(progressive_dn=1, **{names[0]: count, names[1]: 40})
        bench.enhance(**switches)
        padded = np.pad(luma, 1, mode="edge")
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3)).reshape(bench.height, bench.width, 9)
        differing = (np.abs(windows.astype(int) - luma[..., None]) > 40).sum(2)
        expected = np.where(differing >= count, np.median(windows, axis=2), luma)
        assert np.array_equal(bench.get_nv12(OUTPUT)[0], expected)
    bench.dndi(progressive_dn=1, **{names[0]: 8, names[1]: 255})
    bench.enhance(**switches)
    assert np.array_equal(bench.get_nv12(OUTPUT)[0], luma)
