"""MFC_AVC_PAK_OBJECT: random legal macroblocks, which our decoder and ffmpeg's decode to the reconstruction, bit for bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from softgen.errors import SoftgenError
from tests.codec.pak.avc_bench import B_SLICE, I_SLICE, P_SLICE, SOURCE, AvcBench, Picture
from tests.codec.pak.bit_writer import parameter_sets
from tests.codec.pak.random_macroblocks import RandomMacroblocks
from tests.codec.pak.test_vdenc import decoded, needs_ffmpeg

WIDTH, HEIGHT = 4, 5


def pictures() -> list[Picture]:
    """In coding order: I, P, B between them, P from two frames, B with two frames in each list."""
    return [Picture(I_SLICE, 0, 0, 0, rows=(0, 2)), Picture(P_SLICE, 1, 8, 1, ((0,), ()), rows=(0, 3, 4)),
            Picture(B_SLICE, 2, 4, 2, ((0,), (1,)), False), Picture(P_SLICE, 3, 16, 2, ((1, 0), ()), rows=(0, 1)),
            Picture(B_SLICE, 4, 12, 3, ((1, 0), (3, 1)), False, rows=(0, 2))]  # fmt: skip


def put_source(bench: AvcBench, seed: int) -> None:
    """Gradients with noise, so that there are many coefficients and few."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[: 24 * bench.height, : 16 * bench.width]
    noise = rng.integers(-60, 61, y.shape) * (rng.random(y.shape) < rng.choice([0.02, 0.3, 0.9]))
    bench.put(SOURCE, np.clip(128 + 60 * np.sin(x / 9 + seed) + 50 * np.cos(y / 7) + noise, 0, 255).astype(np.uint8))


CASES = [(cabac, transform8, spatial) for cabac in (False, True) for transform8 in (False, True) for spatial in (False, True)]


@pytest.mark.behaviour("BDW-MFX-06", shows="action")
@needs_ffmpeg
@pytest.mark.parametrize(("cabac", "transform8", "spatial"), CASES)
def test_decoders_make_the_reconstruction_of_random_macroblocks(cabac: bool, transform8: bool, spatial: bool, tmp_path: Path) -> None:
    """One object a macroblock, whose position is counted from its slice's start; vectors where the object says, and nowhere else."""
    for seed in range(2):
        bench = AvcBench("bdw" if seed % 2 else "kbl", WIDTH, HEIGHT, cabac, transform8, spatial)
        macroblocks = RandomMacroblocks(seed, transform8)
        stream, expected = parameter_sets(WIDTH, HEIGHT, cabac, transform8), {}
        for picture in pictures():
            put_source(bench, 10 * seed + picture.number)
            data, reconstruction = bench.encode(picture, macroblocks)
            assert bench.decode(picture, data) == reconstruction
            stream += data
            expected[picture.order] = reconstruction
        frames = decoded(stream, tmp_path / f"stream{seed}", len(reconstruction))
        assert frames == [expected[order] for order in sorted(expected)]


class OneObject(RandomMacroblocks):
    """The same macroblock again and again: `inline` is its dwords."""

    def __init__(self, inline: dict[int, int], vectors: bytes = b"") -> None:
        super().__init__(0, False)
        self.inline, self.vectors = inline, vectors

    def draw(self, type: int, x: int, y: int, first_row: int, counts: tuple[int, ...], last: bool) -> tuple[list[int], bytes]:
        dwords = [self.inline.get(dword, 0) for dword in range(3, 11)]
        dwords[3] |= last << 26
        return dwords, self.vectors


INTRA, DC_MODES = 1 << 13, 0x22222222
ILLEGAL = [  # type of the slice, the object's dwords, its vectors, what is said
    (I_SLICE, {3: INTRA | 26 << 8}, b"", "macroblock 0 has a type that"),
    (I_SLICE, {3: 1 << 8}, b"", "macroblock 0 has a type that"),
    (P_SLICE, {3: 2 << 8}, bytes(32), "macroblock 0 has a type that"),  # of list 1
    (I_SLICE, {3: INTRA | 1 << 15, 7: DC_MODES, 8: DC_MODES}, b"", "macroblock 0 has a type that"),  # 8x8, without its transform
    (I_SLICE, {3: INTRA, 7: DC_MODES - 2, 8: DC_MODES}, b"", "macroblock 0 has an intra mode"),  # vertical, at the top
    (I_SLICE, {3: INTRA | 4 << 8}, b"", "macroblock 0 has an intra mode"),
    (I_SLICE, {3: INTRA | 3 << 8, 9: 3}, b"", "macroblock 0 has an intra mode"),
    (I_SLICE, {3: INTRA | 3 << 8, 6: 52}, b"", "macroblock 0 has a QP above 51"),
    (P_SLICE, {3: 1 << 8}, bytes(24), "macroblock 0 has neither 4 nor 16 pairs of vectors"),
    (P_SLICE, {3: 1 << 8, 8: 0x01010101}, bytes(32), "macroblock 0 has a reference"),
]  # fmt: skip


@pytest.mark.parametrize(("type", "inline", "vectors", "message"), ILLEGAL)
def test_macroblocks_that_no_stream_has_are_refused(type: int, inline: dict[int, int], vectors: bytes, message: str) -> None:
    bench = AvcBench("kbl", 2, 1, True, False)
    picture = Picture(type, 1, 0, 1, ((0,) if type == P_SLICE else (), ()))
    with pytest.raises(SoftgenError, match=message):
        bench.encode(picture, OneObject(inline, vectors))


def test_objects_beyond_the_picture_are_refused() -> None:
    """Of two rows of objects in a picture of one."""
    bench, small = AvcBench("kbl", 2, 2, False, False), AvcBench("kbl", 2, 1, False, False)
    bench._state = small._state  # type: ignore[method-assign]
    with pytest.raises(SoftgenError, match="4 macroblocks from 0 on: the picture has 2"):
        bench.encode(Picture(I_SLICE, 0, 0, 0), OneObject({3: INTRA | 3 << 8, 6: 26}))


@pytest.mark.parametrize("seed", range(6))
def test_random_objects_are_refused_or_encoded_alike(seed: int) -> None:
    """Objects of random bits, in random slices: either a reason, or a picture, the same each time."""
    rng = np.random.default_rng(seed)
    inline = {dword: int(rng.integers(0, 1 << 32)) & ~(1 << 26) for dword in range(3, 11)}
    inline[6] = inline[6] & ~0xFF | 26

    def outcome() -> object:
        bench = AvcBench("kbl", 2, 2, bool(seed & 1), True)
        try:
            return bench.encode(Picture(seed % 3, 2, 4, 1, ((0, 1), (1,))), OneObject(inline, bytes(32)))
        except SoftgenError as error:
            return str(error)

    assert outcome() == outcome()
