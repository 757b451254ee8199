"""VEBOX without motion: copies between formats, procamp and colour conversion."""

from __future__ import annotations

import numpy as np
import pytest

from softgen.errors import DecodeError, GpuFault, Unsupported
from tests.enhance.bench import AYUV, CURRENT, OUTPUT, P016, RGBA, UYVY, YUYV, Bytes, EnhanceBench

GPUS = ("hsw", "bdw", "kbl", "icl")


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("size", [(70, 34), (16, 2), (176, 144)])
def test_a_frame_of_which_nothing_is_changed_is_copied(gpu: str, size: tuple[int, int]) -> None:
    bench = EnhanceBench(gpu, size)
    luma, chroma = bench.noise(1)
    bench.put_nv12(CURRENT, luma, chroma)
    bench.iecp()
    bench.enhance(global_iecp_enable=1)
    found = bench.get_nv12(OUTPUT)
    assert np.array_equal(found[0], luma) and np.array_equal(found[1], chroma)


def test_only_the_columns_of_the_command_are_written() -> None:
    bench = EnhanceBench("kbl", (192, 8))
    luma, chroma = bench.noise(2)
    bench.put_nv12(CURRENT, luma, chroma)
    bench.iecp()
    bench.run(bench.state(global_iecp_enable=1), bench.surface(0), bench.surface(1), bench.object(starting_x=64, ending_x=127))
    found = bench.get_nv12(OUTPUT)
    for plane, expected in zip(found, (luma, chroma), strict=True):
        assert np.array_equal(plane[:, 64:128], expected[:, 64:128]) and not plane[:, :64].any() and not plane[:, 128:].any()


def packed(luma: Bytes, chroma: Bytes, order: str) -> Bytes:
    """Rows of 4:2:2 from luma and pairs of U and V."""
    letters = {"y": luma[:, ::2], "Y": luma[:, 1::2], "u": chroma[:, ::2], "v": chroma[:, 1::2]}
    return np.stack([letters[letter] for letter in order], 2).reshape(len(luma), -1)


@pytest.mark.parametrize("target, order", [(YUYV, "yuYv"), (UYVY, "uyvY"), (1, "vyuY"), (2, "yvYu")])
def test_chroma_of_two_rows_is_repeated_in_packed_formats(target: int, order: str) -> None:
    bench = EnhanceBench("kbl")
    luma, chroma = bench.noise(3)
    bench.put_nv12(CURRENT, luma, chroma)
    bench.iecp()
    bench.enhance(target=target, global_iecp_enable=1)
    assert np.array_equal(bench.get(OUTPUT, bench.height, 2 * bench.width), packed(luma, np.repeat(chroma, 2, 0), order))


@pytest.mark.parametrize("average", [False, True])
def test_chroma_of_packed_formats_is_dropped_or_averaged(average: bool) -> None:
    """downsample_method_422_to_420 (public: intel-vaapi-driver)."""
    bench = EnhanceBench("bdw")
    rng = np.random.default_rng(4)
    luma, chroma = (rng.integers(0, 256, (bench.height, bench.width), np.uint8) for _ in range(2))
    bench.put(CURRENT, packed(luma, chroma, "yuYv"))
    bench.iecp()
    bench.enhance(YUYV, global_iecp_enable=1, downsample_method_422_to_420=int(average))
    found, wide = bench.get_nv12(OUTPUT), chroma.astype(int)
    expected = (wide[::2] + wide[1::2] + 1) // 2 if average else wide[::2]
    assert np.array_equal(found[0], luma) and np.abs(found[1] - expected).max() <= int(average)


def test_deep_samples_keep_their_upper_byte() -> None:
    """Rounded to the nearest, and not past the largest."""
    bench = EnhanceBench("icl")
    rng = np.random.default_rng(5)
    luma, chroma = rng.integers(0, 1 << 16, (bench.height, bench.width)), rng.integers(0, 1 << 16, (bench.height // 2, bench.width))
    bench.put_nv12(CURRENT, luma.astype("<u2").view(np.uint8), chroma.astype("<u2").view(np.uint8))
    bench.iecp()
    bench.enhance(P016, global_iecp_enable=1)
    found = bench.get_nv12(OUTPUT)
    assert np.array_equal(found[0], np.minimum(luma + 128 >> 8, 255)) and np.array_equal(found[1], np.minimum(chroma + 128 >> 8, 255))


# -- procamp -----------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("KBL-VEBOX-12", shows="action")
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("contrast, brightness, cos, sin", [
    (1.0, 0.0, 1.0, 0.0), (1.5, 0.0, 1.0, 0.0), (0.25, -20.5, 0.75, 0.0), (1.1953125, 10.25, 0.5, 0.8125), (2.0, 30.0, -1.0, -0.25),
])  # fmt: skip
def test_procamp(gpu: str, contrast: float, brightness: float, cos: float, sin: float) -> None:
    """Contrast scales luma from black on and brightness lifts it; hue turns chroma and saturation scales it. Within 1."""
    bench = EnhanceBench(gpu)
    luma, chroma = bench.noise(6)
    bench.put_nv12(CURRENT, luma, chroma)
    bench.iecp(procamp={"procamp_enable": 1, "contrast": contrast, "brightness": brightness, "cos_c_s": cos, "sin_c_s": sin})
    bench.enhance(global_iecp_enable=1)
    found, (u, v) = bench.get_nv12(OUTPUT), (chroma[:, n::2] - 128.0 for n in (0, 1))
    lifted = np.clip((luma - 16.0) * contrast + 16 + brightness, 0, 255)
    assert np.abs(found[0] - lifted).max() <= 1
    for n, turned in enumerate((u * cos + v * sin, v * cos - u * sin)):
        assert np.abs(found[1][:, n::2] - np.clip(turned + 128, 0, 255)).max() <= 1


def test_procamp_that_is_off_changes_nothing() -> None:
    bench = EnhanceBench("kbl")
    luma, chroma = bench.noise(7)
    bench.put_nv12(CURRENT, luma, chroma)
    bench.iecp(procamp={"procamp_enable": 0, "contrast": 3.0, "brightness": 40.0, "cos_c_s": 0.0, "sin_c_s": 1.0})
    bench.enhance(global_iecp_enable=1)
    assert np.array_equal(bench.get_nv12(OUTPUT)[0], luma)


# -- colour conversion ---------------------------------------------------------------------------------------------------

TO_RGB = np.array([[1.164, 0.0, 1.596], [1.164, -0.392, -0.813], [1.164, 2.017, 0.0]])  # BT.601, of luma from 16 to 235
OFFSETS = np.array([-16, -128, -128])


def conversion(matrix: np.ndarray[tuple[int, int], np.dtype[np.float64]], offsets: list[int], out: list[int]) -> dict[str, float]:
    """Fields of VEBOX_CSC_STATE of Gen9: offsets are half of what is added to samples with 16 bits."""
    fields = {f"c{n}": round(value * 65536) / 65536 for n, value in enumerate(matrix.ravel())}
    return {**fields, **{f"offset_in_{n + 1}": value * 128 for n, value in enumerate(offsets)},
            **{f"offset_out_{n + 1}": value * 128 for n, value in enumerate(out)}, "transform_enable": 1}  # fmt: skip


@pytest.mark.behaviour("KBL-VEBOX-06", shows="action")
@pytest.mark.parametrize("gpu", ["kbl", "icl"])
@pytest.mark.parametrize("swap", [0, 1])
def test_yuv_becomes_rgb(gpu: str, swap: int) -> None:
    """Offsets are added before and after the matrix; the swap gives B, G, R (KBL 27250-27268). Alpha comes from the state."""
    bench = EnhanceBench(gpu)
    luma, chroma = bench.noise(8)
    bench.put_nv12(CURRENT, luma, chroma)
    out = [3, -5, 7]
    bench.iecp(csc={**conversion(TO_RGB, [-16, -128, -128], out), "yuv_channel_swap": swap},
               alpha={"alpha_from_state_select": 1, "color_pipe_alpha": 0x5A00})  # fmt: skip
    bench.enhance(target=RGBA, global_iecp_enable=1)
    found = bench.get(OUTPUT, bench.height, 4 * bench.width).reshape(bench.height, bench.width, 4)
    u, v = (np.repeat(np.repeat(chroma[:, n::2], 2, 0), 2, 1) for n in (0, 1))
    expected = np.clip((np.stack([luma, u, v], 2) + OFFSETS) @ TO_RGB.T + out, 0, 255)
    assert np.abs(found[..., :3] - (expected[..., ::-1] if swap else expected)).max() <= 1
    assert (found[..., 3] == 0x5A).all()


@pytest.mark.behaviour("KBL-VEBOX-06", shows="action")
def test_rgb_becomes_yuv_before_procamp() -> None:
    """The front-end conversion: procamp works on its luma."""
    bench = EnhanceBench("kbl")
    pixels = np.random.default_rng(9).integers(0, 256, (bench.height, bench.width, 4), np.uint8)
    bench.put(CURRENT, pixels.reshape(bench.height, -1))
    to_yuv = np.array([[0.257, 0.504, 0.098], [-0.148, -0.291, 0.439], [0.439, -0.368, -0.071]])
    fields = {f"fecsc_c{n}_transform_coefficient": round(value * 65536) / 65536 for n, value in enumerate(to_yuv.ravel())}
    names = ("fec_sc_offset_out_1_offset_out_for_y_r", "fec_sc_offset_out_2_offset_out_for_u_g", "fec_sc_offset_out_3_offset_out_for_v_b")
    offsets = {name: value * 128 for name, value in zip(names, (16, 128, 128), strict=True)}
    bench.iecp(front={**fields, **offsets, "front_end_csc_transform_enable": 1},
               procamp={"procamp_enable": 1, "contrast": 0.5, "cos_c_s": 1.0})  # fmt: skip
    bench.enhance(RGBA, AYUV, global_iecp_enable=1)
    found = bench.get(OUTPUT, bench.height, 4 * bench.width).reshape(bench.height, bench.width, 4)
    expected = pixels[..., :3] @ to_yuv.T + np.array([16, 128, 128])
    expected[..., 0] = (expected[..., 0] - 16) * 0.5 + 16
    assert np.abs(found[..., 2::-1] - expected).max() <= 1
    assert np.array_equal(found[..., 3], pixels[..., 3]), "alpha is that of the input"


@pytest.mark.behaviour("KBL-VEBOX-05", shows="action")
@pytest.mark.parametrize("front", [False, True])
def test_correction_matrix_mixes_red_green_and_blue_before_other_conversions(front: bool) -> None:
    """Rows are red, green and blue of the result; coefficients have 12 bits behind the point. Off, they do nothing."""
    bench = EnhanceBench("kbl")
    pixels = np.random.default_rng(10).integers(0, 256, (bench.height, bench.width, 4), np.uint8)
    bench.put(CURRENT, pixels.reshape(bench.height, -1))
    matrix = np.array([2792, 1141, 34, 71, 3363, -52, -1200, 168, 4434]).reshape(3, 3) / 4096
    fields = {f"c{n}": value for n, value in enumerate(matrix.ravel().tolist())}
    parts: dict[str, dict[str, float]] = {"ccm": {**fields, "color_correction_matrix_enable": 1}}
    corrected = np.clip(pixels[..., :3] @ matrix.T, 0, 255)
    if front:  # takes but green, and halves it: behind the correction, which clips
        own = {f"fecsc_c{n}_transform_coefficient": value for n, value in ((0, 0.0), (1, 0.5), (4, 0.0), (8, 1.0))}
        parts["front"] = {**own, "front_end_csc_transform_enable": 1}
        corrected = corrected @ np.array([[0, 0.5, 0], [0, 0, 0], [0, 0, 1]]).T
    for enable in (1, 0):
        parts["ccm"]["color_correction_matrix_enable"] = enable
        bench.iecp(**(parts if enable else {"ccm": parts["ccm"]}))
        bench.enhance(RGBA, RGBA, global_iecp_enable=1)
        found = bench.get(OUTPUT, bench.height, 4 * bench.width).reshape(bench.height, bench.width, 4)
        assert np.abs(found[..., :3] - (corrected if enable else pixels[..., :3])).max() <= enable
        assert np.array_equal(found[..., 3], pixels[..., 3])


def test_correction_matrix_of_other_layouts_is_refused() -> None:
    bench = EnhanceBench("icl")
    bench.iecp(ccm={"color_correction_matrix_enable": 1})
    with pytest.raises(Unsupported, match="colour correction matrix"):
        bench.enhance(global_iecp_enable=1)


@pytest.mark.parametrize("part, field, text", [
    ("ace", "ace_enable", "adaptive contrast"), ("tcc", "tcc_enable", "total colour control"), ("std", "std_enable", "skin tone detection"),
])  # fmt: skip
def test_what_is_not_built_is_refused_by_name(part: str, field: str, text: str) -> None:
    bench = EnhanceBench("kbl")
    bench.iecp(**{part: {field: 1}})
    with pytest.raises(Unsupported, match=f"{text} .*{field}"):
        bench.enhance(global_iecp_enable=1)


@pytest.mark.parametrize("field", ["demosaic_enable", "vignette_enable", "color_gamut_expansion_enable", "lace_correction_enable"])
def test_stages_that_are_not_built_are_refused_by_name(field: str) -> None:
    with pytest.raises(Unsupported, match=field):
        EnhanceBench("kbl").enhance(**{field: 1})


def test_bad_input_is_refused() -> None:
    bench = EnhanceBench("kbl")
    bench.iecp()
    state = bench.state(global_iecp_enable=1)
    with pytest.raises(DecodeError, match="must be as large as the input"):
        bench.run(state, bench.surface(0), bench.surface(1, width=64), bench.object())
    with pytest.raises(Unsupported, match="bayer"):
        bench.run(state, bench.surface(0, 14), bench.surface(1), bench.object())
    with pytest.raises(GpuFault):
        bench.run(state, bench.surface(0), bench.surface(1), bench.object(current_frame_input_address=0x50000000))
    bench.iecp(csc=conversion(TO_RGB, [0, 0, 0], [0, 0, 0]))
    with pytest.raises(DecodeError, match="luma alone"):
        bench.run(state, bench.surface(0, 11), bench.surface(1, 11), bench.object())
    bench.iecp(csc={**conversion(np.eye(3), [0, 0, 0], [0, 0, 0]), "yuv_channel_swap": 1})
    with pytest.raises(DecodeError, match="luma alone"):
        bench.run(state, bench.surface(0, 11), bench.surface(1, 11), bench.object())
    with pytest.raises(DecodeError, match="no address"):
        bench.run(state, bench.surface(0), bench.surface(1), bench.object(current_frame_output_address=0))
