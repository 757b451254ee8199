"""Messages about samples of texels: with control surfaces and without, in all their forms, on both machines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from softgen.errors import Unsupported
from softgen.memory.store import MemfdBuffer
from softgen.surface.samples import identity
from tests.shared_functions.sending import DATA
from tests.shared_functions.texture import Texture

CODE = {2: 1, 4: 2, 8: 3, 16: 4}
CONTROL = DATA + (1 << 24)
WIDTH, HEIGHT = 13, 7
OTHERS = {2: 0b01, 4: 0b00011011, 8: 0o01234567, 16: 0x0123456789ABCDEF}  # samples in slices of others


def sampled(count: int, gen: float = 9, control: Any = None, format: str = "R32G32B32A32_FLOAT", **more: Any) -> Texture:
    """A texture whose slices are samples; `control`: a value for each texel, in a Y-tiled surface of one tile."""
    fields = {"number_of_multisamples": CODE[count], "surface_array": 0, "depth": 0, **more}
    if control is not None:
        fields |= {"auxiliary_surface_base_address": CONTROL, "auxiliary_surface_mode": 1, "auxiliary_surface_qpitch": 8}
    texture = Texture(gen=gen, shape=(WIDTH, HEIGHT, count), array=True, format=format, surface=fields)
    if control is not None:
        held = texture.extra_control = MemfdBuffer(1 << 12)  # type: ignore[attr-defined]
        texture.space.map(CONTROL, held)
        size = {2: 1, 4: 1, 8: 4, 16: 8}[count]
        for (y, x), value in np.ndenumerate(control):
            at = x * size % 16 + y * 16 + x * size // 16 * 512
            held.view[at : at + size] = int(value).to_bytes(size, "little")
    return texture


def places(lanes: int = 16, seed: int = 3) -> list[Any]:
    """Texels, some of them outside."""
    random = np.random.default_rng(seed)
    return [random.integers(0, size + 2, lanes) for size in (WIDTH, HEIGHT)]


def values(texture: Texture, u: Any, v: Any, where: Any) -> Any:
    """Texels in slices; zero outside."""
    inside = (u < WIDTH) & (v < HEIGHT)
    return np.where(inside[:, None], texture.texels[where, np.minimum(v, HEIGHT - 1), np.minimum(u, WIDTH - 1)], [0, 0, 0, 0])


@pytest.mark.behaviour("KBL-SAMP-27", shows="action")
@pytest.mark.parametrize("lanes", [8, 16])
@pytest.mark.parametrize(("count", "name"), [(2, "ld2dms"), (4, "ld2dms"), (8, "ld2dms"), (16, "ld2dms_w"), (4, "ld2dms_w"), (4, "ld2dss")])
def test_samples_have_slices_of_their_own(count: int, name: str, lanes: int) -> None:
    """Without a control surface, what the message says of one means nothing; sample numbers that there are not count as the last."""
    texture, (u, v) = sampled(count), places(lanes)
    si = np.random.default_rng(1).integers(0, count + 1, lanes)
    control = {"ld2dms": [np.full(lanes, 0xFFFFFFFF)], "ld2dms_w": [np.full(lanes, 0xFFFFFFFF)] * 2, "ld2dss": []}[name]
    found = texture.ask(name, si, *control, u, v, np.zeros(lanes, np.int64), lanes=lanes).copy().view(np.float32)
    np.testing.assert_array_equal(found, values(texture, u, v, np.minimum(si, count - 1)).astype(np.float32))
    assert texture.compiled == 1


@pytest.mark.behaviour("KBL-SAMP-27", shows="action")
@pytest.mark.parametrize("count", [2, 4, 8, 16])
def test_control_surfaces_say_which_slice_has_a_sample(count: int) -> None:
    """Each texel's value is returned by ld_mcs, and given back with the message; all ones is the clear colour."""
    own = sum(value << 32 * n for n, value in enumerate(identity(count)))
    ones = (1 << {2: 8, 4: 8, 8: 32, 16: 64}[count]) - 1
    control = np.random.default_rng(5).choice(np.array([own, OTHERS[count], ones], object), (HEIGHT, WIDTH))
    clear = np.array([0.25, -1.5, 2.0, 0.75], np.float32)
    colors = {f"{name}_clear_color": int(bits) for name, bits in zip(("red", "green", "blue", "alpha"), clear.view(np.uint32), strict=True)}
    texture, (u, v) = sampled(count, control=control, **colors), places()
    zero = np.zeros(16, np.int64)
    told = texture.ask("ld_mcs", u, v, zero)
    inside = (u < WIDTH) & (v < HEIGHT)
    wanted = [int(control[y, x]) if there else 0 for x, y, there in zip(u % WIDTH, v % HEIGHT, inside, strict=True)]
    assert [int(low) | int(high) << 32 for low, high in told[:, :2]] == wanted and not told[:, 2:].any()
    bits = {2: 1, 4: 2, 8: 3, 16: 4}[count]
    for sample in range(count):
        where = np.array([value >> bits * sample & count - 1 for value in wanted])
        parts = [told[:, 0], told[:, 1]] if count == 16 else [told[:, 0]]
        found = texture.ask("ld2dms_w" if count == 16 else "ld2dms", np.full(16, sample), *parts, u, v, zero).copy().view(np.float32)
        expected = values(texture, u, v, where).astype(np.float32)
        expected[[value == ones for value in wanted]] = clear
        np.testing.assert_array_equal(found, expected)
    assert texture.compiled == 1 + count


def test_a_surface_without_a_control_surface_says_nothing_of_it() -> None:
    texture, (u, v) = sampled(4), places()
    assert not texture.ask("ld_mcs", u, v, np.zeros(16, np.int64)).any() and texture.compiled == 1


@pytest.mark.behaviour("KBL-SAMP-27", shows="action")
@pytest.mark.parametrize("count", [2, 4, 8])
def test_depth_has_samples_beside_each_other(count: int) -> None:
    """A linear surface of one row of blocks: four texels of a block at each sample in turn."""
    texture = Texture(shape=(2 << {2: 1, 4: 1, 8: 2}[count], 2 << (count > 2)), format="R32_FLOAT",
                      surface={"number_of_multisamples": CODE[count], "multisampled_surface_storage_format": 1, "width": 1, "height": 1})
    for s in range(count):
        x = 2 * (s & 1) + (s & 4)
        found = texture.ask("ld2dms", np.full(16, s), np.zeros(16, np.int64), np.array([0, 1] * 8), np.array([0, 0, 1, 1] * 4),
                            np.zeros(16, np.int64)).copy().view(np.float32)[:4, 0]  # fmt: skip
        corner = texture.texels[0, s & 2 : (s & 2) + 2, x : x + 2, 0].reshape(-1)
        np.testing.assert_array_equal(found, corner.astype(np.float32))


@pytest.mark.behaviour("KBL-SAMP-28", shows="action")
@pytest.mark.parametrize("count", [2, 4, 8, 16])
def test_sampleinfo_and_resinfo(count: int) -> None:
    texture = sampled(count, multisample_position_palette_index=5)
    assert texture.ask("sampleinfo", np.zeros(16, np.int64))[0].tolist() == [count, 5, 0, 0]
    assert texture.ask("resinfo", np.zeros(16, np.int64))[0].tolist() == [WIDTH, HEIGHT, 0, 1]


def test_other_messages_are_refused() -> None:
    texture = sampled(4)
    for name in ("sample_lz", "ld"):
        with pytest.raises(Unsupported, match=r"surface 0 .* has number_of_multisamples 4 samples: not yet simulated for this message"):
            texture.ask(name, *[np.zeros(16, np.int64)] * 3)
