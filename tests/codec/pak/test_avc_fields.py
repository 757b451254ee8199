"""Field pictures of H.264 (PAFF): random macroblocks in fields and frames, which both decoders make the reconstruction of."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.codec.pak.avc_bench import B_SLICE, BOTTOM_FIELD, I_SLICE, P_SLICE, TOP_FIELD, AvcBench, Picture
from tests.codec.pak.bit_writer import parameter_sets
from tests.codec.pak.random_macroblocks import RandomMacroblocks
from tests.codec.pak.test_avc_pak import put_source
from tests.codec.pak.test_vdenc import decoded, needs_ffmpeg

WIDTH, HEIGHT = 3, 6
CODED = [(0, I_SLICE, 0), (1, P_SLICE, 16), (2, B_SLICE, 8), (3, P_SLICE, 32), (4, B_SLICE, 24), (5, P_SLICE, 48), (6, B_SLICE, 40)]


def pictures(seed: int) -> Iterator[Picture]:
    """Frames and pairs of fields in coding order, which refer to four frames or their fields in any order."""
    rng, references, frame_num = random.Random(seed), list[int](), 0
    for number, type, order in CODED:
        is_frame, bottom_first = rng.random() < 0.4, rng.random() < 0.3
        if is_frame:
            yield Picture(type, number, order, frame_num, lists(rng, type, references), type != B_SLICE, rows(rng, HEIGHT))
        else:
            fields = [2 * store + parity for store in references for parity in (0, 1)]
            for second, parity in enumerate((bottom_first, not bottom_first)):
                own = P_SLICE if type == I_SLICE and second and rng.random() < 0.7 else type
                yield Picture(own, number, order + second, frame_num, lists(rng, own, fields), type != B_SLICE, rows(rng, HEIGHT // 2),
                              structure=BOTTOM_FIELD if parity else TOP_FIELD)  # fmt: skip
                fields += [2 * number + parity] if type != B_SLICE else []
        if type != B_SLICE:
            references, frame_num = [*references, number][-4:], frame_num + 1


def rows(rng: random.Random, height: int) -> tuple[int, ...]:
    return (0, *sorted(rng.sample(range(1, height), rng.randrange(3))))


def lists(rng: random.Random, type: int, references: list[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Both lists of a picture of this type."""
    first = tuple(rng.sample(references, min(len(references), rng.randint(1, 6))))
    if type != B_SLICE:
        return (first if type == P_SLICE else ()), ()
    second = tuple(rng.sample(references, min(len(references), rng.randint(1, 4))))
    return first, second


CASES = [(cabac, spatial, implicit) for cabac in (False, True) for spatial in (False, True) for implicit in (False, True)]


@needs_ffmpeg
@pytest.mark.parametrize(("cabac", "spatial", "implicit"), CASES)
def test_decoders_make_the_reconstruction_of_field_pictures(cabac: bool, spatial: bool, implicit: bool, tmp_path: Path) -> None:
    seed = 4 * cabac + 2 * spatial + implicit
    bench = AvcBench("icl" if seed % 2 else "kbl", WIDTH, HEIGHT, cabac, True, spatial, fields=True, implicit=implicit)
    macroblocks = RandomMacroblocks(seed, True)
    stream, expected = parameter_sets(WIDTH, HEIGHT, cabac, True, True, implicit), {}
    for picture in pictures(seed):
        put_source(bench, 10 * seed + picture.number)
        data, reconstruction = bench.encode(picture, macroblocks)
        assert bench.decode(picture, data) == reconstruction
        stream += data
        expected[picture.number] = picture.order, reconstruction
    frames = decoded(stream, tmp_path / "stream", len(reconstruction))
    assert frames == [frame for _, frame in sorted(expected.values())]
