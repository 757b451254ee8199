"""Palettes and chroma keys: loaded by commands, used by the sampler on both machines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from softgen.bits.generation import generation
from softgen.errors import Unsupported
from softgen.shared_functions.dataport import Surfaces
from softgen.shared_functions.sampler import SamplerPort, Samplers
from softgen.shared_functions.texture_tables import NAME, TextureTables, texture_tables
from softgen.three_d.draw.draw_plans import pixel_targets
from tests.shared_functions.sending import BASE, TABLE
from tests.shared_functions.test_sampler import coordinates, filters, floats, modes
from tests.shared_functions.texture import STATES, Texture
from tests.streamer.bench import Bench
from tests.three_d.pixels.test_color_calculator import Draw

Array = np.ndarray[Any, Any]
RANDOM = np.random.default_rng(7)
PALETTES = tuple(tuple(int(entry) for entry in RANDOM.integers(0, 1 << 32, 256)) for _ in range(2))
BLACK = {"chromakey_enable": 1, "chromakey_mode": 1}
KILL = {"chromakey_enable": 1, "chromakey_mode": 0, "chromakey_index": 2}
WHOLE = 0, 0xFFFFFFFF  # a range that everything is in


def loaded(texture: Texture, palettes: tuple[tuple[int, ...], ...] = PALETTES, key: tuple[int, int] = WHOLE) -> Texture:
    """The texture, and tables in its sampler: the key is number 2."""
    tables, bases = TextureTables(palettes, ((1, 0), (1, 0), key, (1, 0))), {"surface": BASE, "dynamic": BASE}
    surfaces = Surfaces(generation(texture.gen), texture.space, bases, TABLE)
    surfaces.palettes = tables.palettes
    texture.port = SamplerPort(surfaces, Samplers(generation(texture.gen), texture.space, bases, STATES, tables))
    return texture


def nearest(texture: Texture) -> tuple[list[Any], Array]:
    """Sixteen places in the middle of texels, and the bytes of these texels."""
    size, raw = texture.look.bits // 8, texture.data.array[: texture.pitch * texture.rows].reshape(texture.rows, texture.pitch)
    x, y = (RANDOM.integers(0, texture.shape[axis], 16) for axis in (0, 1))
    held = np.array([raw[b, a * size : a * size + size] for a, b in zip(x, y, strict=True)])
    return [((x + 0.5) / texture.shape[0]).astype(np.float32), ((y + 0.5) / texture.shape[1]).astype(np.float32)], held


def colour(entry: Any) -> Array:
    """Red, green, blue and alpha of entries of a palette."""
    return np.stack([(np.asarray(entry) >> shift & 0xFF) / 255 for shift in (16, 8, 0, 24)], -1)


# -- commands -------------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("BDW-PAL-01", shows="action")
@pytest.mark.parametrize("gpu", ["ivb", "bdw", "kbl", "icl"])
def test_commands_load_palettes_from_their_first_entry_on(gpu: str) -> None:
    bench = Bench(gpu)
    entries = [{"alpha": n, "red": 255 - n, "green": 7, "blue": n // 2} for n in range(256)]
    bench.run(bench.pack("3DSTATE_SAMPLER_PALETTE_LOAD1", palette_entry=entries),
              bench.pack("3DSTATE_SAMPLER_PALETTE_LOAD1", palette_entry=[{"red": 1}, {"blue": 2}]),
              bench.pack("3DSTATE_SAMPLER_PALETTE_LOAD0", palette_entry=[{"green": 3}]))  # fmt: skip
    [(name, tables)] = texture_tables(bench.gpu.contexts[0, "render"].latched)
    assert name == NAME and isinstance(tables, TextureTables)
    assert tables.palettes[0] == (0x300, *[0] * 255)
    assert tables.palettes[1][:3] == (0x10000, 2, 0x02FD0701) and tables.palettes[1][255] == 0xFF00077F


@pytest.mark.behaviour("BDW-CK-01", shows="action")
@pytest.mark.parametrize("gpu", ["bdw", "kbl", "icl"])
def test_commands_load_four_keys(gpu: str) -> None:
    bench = Bench(gpu)
    assert texture_tables(Draw(9).state.latched) == ()
    bench.run(*(bench.pack("3DSTATE_CHROMA_KEY", chromakey_table_index=index, chromakey_low_value=low, chromakey_high_value=low + 1)
                for index, low in ((3, 5), (1, 9), (3, 7))))  # fmt: skip
    [(_, tables)] = texture_tables(bench.gpu.contexts[0, "render"].latched)
    assert isinstance(tables, TextureTables) and tables.keys == ((0, 0), (9, 10), (0, 0), (7, 8))


def test_draws_hand_tables_to_the_sampler() -> None:
    draw = Draw(9)
    plain = pixel_targets(draw.state, True).unit_states
    draw.latch("3DSTATE_SAMPLER_PALETTE_LOAD0", palette_entry=[{"green": 3}])
    tables = dict(pixel_targets(draw.state, True).unit_states)[NAME]
    assert NAME not in dict(plain) and isinstance(tables, TextureTables) and tables.palettes[0][0] == 0x300


# -- palettes -------------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("BDW-PAL-01", shows="action")
@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("format", ["P8", "P8A8", "A8P8", "P4A4", "A4P4"])
def test_texels_are_entries_of_a_palette(format: str, number: int) -> None:
    """A format may have an alpha of its own."""
    texture = loaded(Texture(format=f"{format}_UNORM_PALETTE{number}", sampler=modes("clamp") | filters("nearest")))
    places, held = nearest(texture)
    found = floats(texture.ask("sample_lz", *places))
    bits = 4 if "4" in format else 8
    word = held.astype(np.uint32) @ (1 << 8 * np.arange(held.shape[1]))
    low, high = word & (1 << bits) - 1, word >> bits & (1 << bits) - 1
    index, alpha = (high, low) if format.startswith("A") else (low, high)
    wanted = colour(np.array(PALETTES[number], np.uint32)[index])
    if "A" in format:
        wanted[:, 3] = alpha / ((1 << bits) - 1)
    assert np.allclose(found, wanted, atol=1e-6) and texture.compiled == 1
    assert len({tuple(row) for row in found.tolist()}) > 3


@pytest.mark.parametrize("format", ["P8_UNORM_PALETTE0", "P8_UNORM_PALETTE1"])
def test_a_palette_that_was_never_loaded_is_zero(format: str) -> None:
    texture = Texture(format=format, sampler=modes("clamp") | filters("nearest"))
    places, _ = nearest(texture)
    assert not texture.ask("sample_lz", *places).any() and texture.compiled == 1


def test_colours_of_a_palette_are_filtered_not_indices() -> None:
    texture = loaded(Texture(format="P8_UNORM_PALETTE0", sampler=modes("wrap") | filters("linear")))
    palette = colour(np.array(PALETTES[0], np.uint32))
    texture.texels = palette[texture.data.array[: texture.pitch * texture.rows].reshape(1, texture.rows, texture.pitch)[:, :7, :13]]
    places = coordinates(texture)
    assert np.allclose(floats(texture.ask("sample_lz", *places)), texture.expected(places), atol=3e-6)


def test_another_palette_needs_no_other_code_and_is_seen() -> None:
    places = [np.full(16, 0.5, np.float32)] * 2
    found = [loaded(Texture(format="P8_UNORM_PALETTE0", sampler=filters("nearest")), (palette,) * 2).ask("sample_lz", *places)
             for palette in PALETTES]  # fmt: skip
    assert (found[0] != found[1]).any()


def test_several_texels_in_a_byte_are_refused() -> None:
    with pytest.raises(Unsupported, match="P2_UNORM_PALETTE0"):
        Texture(format="P8_UNORM_PALETTE0", surface={"surface_format": 388}).ask("sample_lz", np.zeros(16, np.float32))


# -- chroma keys ----------------------------------------------------------------------------------------------------------


def repeated(value: Array, bits: int, wanted: int) -> Array:
    """The highest bits of a channel, again and again."""
    text = [f"{number:0{bits}b}" * 8 for number in value.tolist()]
    return np.array([int(item[:wanted], 2) for item in text])


def channels(texture: Texture, held: Array) -> Array:
    """Alpha, red, green and blue of texels as a key has them."""
    word = held.astype(np.uint32) @ (1 << 8 * np.arange(held.shape[1], dtype=np.uint32))
    signed, found, at = any(channel.type == "snorm" for channel in texture.look.channels), {}, 0
    for channel in texture.look.channels:
        raw = word >> at & (1 << channel.bits) - 1
        at += channel.bits
        if channel.type == "snorm":
            value = raw.astype(np.int64) - ((raw >> channel.bits - 1).astype(np.int64) << channel.bits)
            size = np.minimum(np.abs(value), (1 << channel.bits - 1) - 1)
            found[channel.name] = np.sign(value) * repeated(size, channel.bits - 1, 7)
        elif channel.type != "void":
            found[channel.name] = repeated(raw, channel.bits, 8 - signed)
    grey = found.get("l")
    return np.stack([found.get(name, np.zeros(16, int) if grey is None or name == "a" else grey) for name in "argb"], -1)


FORMATS = ["B8G8R8A8_UNORM", "B8G8R8X8_UNORM", "B5G6R5_UNORM", "B5G5R5A1_UNORM", "B4G4R4A4_UNORM", "R8G8_SNORM", "R5G5_SNORM_B6_UNORM",
           "R8_UNORM", "A8_UNORM", "L8_UNORM", "L8A8_UNORM"]  # fmt: skip


def key_of(middle: Array, signed: bool, reach: int = 60) -> tuple[tuple[int, int], Array, Array]:
    """A key around a texel, and its bounds: alpha, red, green and blue. Channels that are zero everywhere have the full range."""
    least = -127 if signed else 0
    low, high = np.maximum(middle - reach, least), np.minimum(middle + reach, 127 if signed else 255)
    return (code_of(low, signed), code_of(high, signed)), low, high


def code_of(bound: Array, signed: bool) -> int:
    return sum((int(abs(part)) | 0x80 * int(signed and part < 0)) << 24 - 8 * place for place, part in enumerate(bound))


@pytest.mark.behaviour("KBL-SAMP-23", shows="action")
@pytest.mark.behaviour("BDW-CK-01", shows="action")
@pytest.mark.parametrize("format", FORMATS)
def test_texels_that_match_are_black(format: str) -> None:
    """Ranges are inclusive; narrow channels are widened, and SNORM is sign and magnitude."""
    texture = Texture(format=format, sampler=modes("clamp") | filters("nearest") | BLACK | {"chromakey_index": 2})
    places, held = nearest(texture)
    values, signed = channels(texture, held), "SNORM" in format
    for width in (0, 60):
        key, low, high = key_of(values[5], signed, width)
        found = floats(loaded(texture, key=key).ask("sample_lz", *places))
        matching = ((values >= low) & (values <= high)).all(1)
        plain = floats(Texture(format=format, sampler=modes("clamp") | filters("nearest")).ask("sample_lz", *places))
        assert matching[5] and (found == np.where(matching[:, None], 0.0, plain)).all()
        assert width == 0 or not matching.all()
    assert texture.compiled == 2


@pytest.mark.behaviour("KBL-SAMP-23", shows="action")
def test_texels_are_replaced_before_they_are_filtered() -> None:
    texture = Texture(format="B8G8R8A8_UNORM", sampler=modes("wrap") | filters("linear") | BLACK | {"chromakey_index": 2})
    places, green = coordinates(texture), texture.data.array[: texture.pitch * texture.rows].reshape(1, texture.rows, texture.pitch)[:,
        :7, 1 : 4 * 13 : 4]
    texture.texels[green >= 128] = 0
    found = floats(loaded(texture, key=(0x00008000, 0xFFFFFFFF)).ask("sample_lz", *places))
    assert np.allclose(found, texture.expected(places), atol=3e-6)


@pytest.mark.behaviour("KBL-SAMP-23", shows="action")
def test_yuv_texels_match_by_the_average_of_their_neighbours_chrominance() -> None:
    """The key is A Cr Y Cb, and black is 16 with no chrominance."""
    texture = Texture(format="YCRCB_NORMAL", shape=(8, 4), sampler=modes("clamp") | filters("nearest") | BLACK | {"chromakey_index": 2})
    texture.data.array[:] = 0x60
    texture.data.array[:16] = [10, 100, 11, 20, 12, 200, 13, 40, 14, 0, 15, 60, 16, 0, 17, 80]  # Y Cb Y Cr of four pairs
    at = ((np.arange(16) % 8 + 0.5) / 8).astype(np.float32), np.full(16, 0.125, np.float32)
    for key, which in (((0x001E0000, 0xFF1EFFFF), {1}), ((0x000A0B96, 0xFF1E0B96), {1}), ((0x00140A64, 0xFF140A64), {0}),
                       ((0x00500000, 0xFF50FFFF), {6, 7})):  # fmt: skip
        found = floats(loaded(texture, key=key).ask("sample_lz", *at))[:8]
        black = {lane for lane in range(8) if np.allclose(found[lane], [128 / 255, 16 / 255, 128 / 255, 0], atol=1e-6)}
        assert black == which


@pytest.mark.behaviour("KBL-SAMP-23", shows="action")
@pytest.mark.parametrize("lanes", [8, 16])
def test_a_texel_that_matches_kills_its_pixel(lanes: int) -> None:
    """Only sample_killpix reports it: colours stay what they are."""
    texture = Texture(format="B8G8R8A8_UNORM", sampler=modes("clamp") | filters("nearest") | KILL)
    places, held = nearest(texture)
    loaded(texture, key=(0x00008000, 0xFFFFFFFF))
    places = [place[:lanes] for place in places]
    plain = texture.ask("sample_lz", *places, lanes=lanes)
    found = texture.send("sample_killpix", *places, answer=4 * lanes // 8 + 1, width=lanes, simd_mode=lanes // 8).view(np.uint32)
    assert (found[: 4 * lanes].reshape(4, lanes).T == plain).all()
    assert found[4 * lanes] == 0xFFFF & ~sum(int(held[lane, 1] >= 128) << lane for lane in range(lanes))


def test_a_texel_without_weight_kills_nothing() -> None:
    texture = Texture(format="B8G8R8A8_UNORM", shape=(4, 4), sampler=modes("clamp") | filters("linear") | KILL)
    texture.data.array[: texture.pitch * 4] = 0
    texture.data.array[texture.pitch + 4 : texture.pitch + 8] = 0xFF  # texel 1, 1
    u = np.array([0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 1.25], np.float32) / 4
    v = np.full(8, 1.5 / 4, np.float32)
    found = loaded(texture, key=(0xFF000000, 0xFFFFFFFF)).send("sample_killpix", u, v, answer=5, width=8, simd_mode=1)
    assert found.view(np.uint32)[32] == 0xFFFF & ~0b10001110


@pytest.mark.parametrize("index", range(4))
def test_a_key_that_was_never_loaded_matches_zero_alone(index: int) -> None:
    sampler = modes("clamp") | filters("nearest") | KILL | {"chromakey_index": index}
    texture = Texture(format="B8G8R8A8_UNORM", shape=(4, 4), sampler=sampler)
    texture.data.array[: texture.pitch * 4] = 0
    texture.data.array[[4, 11]] = 1  # blue of the second texel, alpha of the third
    u, v = (np.arange(8, dtype=np.float32) % 4 + 0.5) / 4, np.full(8, 0.5 / 4, np.float32)
    found = texture.send("sample_killpix", u, v, answer=5, width=8, simd_mode=1)
    assert found.view(np.uint32)[32] == 0xFFFF & ~0b1001_1001


@pytest.mark.parametrize("more", [{"surface": {"surface_type": 7}}, {"sampler": {"sampler_disable": 1, **KILL}}], ids=["null", "disabled"])
def test_a_null_surface_and_a_disabled_sampler_kill_nothing(more: dict[str, Any]) -> None:
    """Their texels are zeros, which a key of zeros would match."""
    texture = Texture(format="B8G8R8A8_UNORM", **more)
    found = texture.send("sample_killpix", *[np.zeros(8, np.float32)] * 2, answer=5, width=8, simd_mode=1).view(np.uint32)
    assert not found[:32].any() and found[32] == 0xFFFF
