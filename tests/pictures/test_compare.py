"""The comparison of pictures: edges do not count, everything else does."""

from pathlib import Path

import numpy as np

from tests.pictures.compare import compare, read_pam, smooth


def reference() -> np.ndarray:
    """100 x 50 pixels: a slope on the left, an edge in the middle, one colour on the right."""
    found = np.zeros((50, 100, 4), np.uint8)
    found[:, :50] = (np.arange(50) * 3)[None, :, None]
    found[:, 50:] = 250
    return found


def test_only_the_edge_is_left_out() -> None:
    calm = smooth(reference())
    assert not calm[:, 48:52].any() and calm[:, :48].all() and calm[:, 52:].all()


def test_equal_pictures() -> None:
    result = compare(reference(), reference())
    assert result.agrees and result.equal and result.counted == 96 * 50 and result.worst == 0


def test_a_unit_or_two_is_near_and_three_are_not() -> None:
    near, far = reference(), reference()
    near[:, :40] += 2
    far[:, :40, 1] += 3
    assert compare(near, reference()).agrees and not compare(near, reference()).equal
    assert not compare(far, reference()).agrees and compare(far, reference()).worst == 3


def test_the_edge_may_be_elsewhere_by_a_pixel() -> None:
    moved = reference()
    moved[:, 50] = 147
    assert compare(moved, reference()).agrees


def test_one_pixel_in_a_thousand_may_be_wrong() -> None:
    few, many = reference(), reference()
    few[0, 60:64] = 0
    many[0, 60:65] = 0
    assert compare(few, reference()).agrees and not compare(many, reference()).agrees
    assert compare(many, reference()).where == (60, 0) and compare(many, reference()).worst == 250


def test_lines_have_no_smooth_places_and_count_all_the_same() -> None:
    line, elsewhere = np.zeros((50, 50, 4), np.uint8), np.zeros((50, 50, 4), np.uint8)
    line[10], elsewhere[11] = 255, 255
    assert compare(line, line).agrees and compare(line, line).drawn == 50
    assert not compare(elsewhere, line).agrees and compare(elsewhere, line).drawn_near == 0
    assert not compare(np.zeros_like(line), line).agrees  # nothing was drawn


def test_a_picture_without_smooth_places_agrees_with_nothing() -> None:
    noise = np.random.default_rng(1).integers(0, 256, (20, 20, 4), np.uint8)
    assert not compare(noise, noise).agrees


def test_files_of_the_programs(tmp_path: Path) -> None:
    pixels = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    (tmp_path / "a.pam").write_bytes(b"P7\nWIDTH 3\nHEIGHT 2\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n" + pixels.tobytes())
    assert np.array_equal(read_pam(tmp_path / "a.pam"), pixels)
