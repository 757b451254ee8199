"""Images of states that differ in numbers from one decoded before: the same as if decoded alone, on each generation."""

from __future__ import annotations

import random
from array import array
from dataclasses import replace

import pytest

from softgen.bits import catalogue
from softgen.surface import resized
from softgen.surface.image import image_from_state
from softgen.surface.resized import image_of_bits, numbers_mask, surface_image

STEPS = {"tile_mode": (0, 2, 3), "surface_format": (0xC7, 0x40, 0x140), "mip_count_lod": (0, 3, 14), "surface_min_lod": (0, 2),
         "depth": (0, 0, 2)}


@pytest.mark.parametrize("gen", [4.5, 7, 7.5, 8, 9, 11])
def test_resized_images_are_those_of_their_states(gen: float, monkeypatch: pytest.MonkeyPatch) -> None:
    layout, rng, taken = catalogue.layout("RENDER_SURFACE_STATE", gen), random.Random(str(gen)), list[bool]()
    made = resized._with_numbers

    def with_numbers(*given: object) -> object:
        taken.append((found := made(*given)) is not None)  # type: ignore[arg-type]
        return found

    monkeypatch.setattr(resized, "_with_numbers", with_numbers)
    monkeypatch.setattr(resized, "_plain_kinds", {})
    by_bits = 0
    names, levels = {field.name for field in layout.fields}, 0
    for _ in range(250):
        low = rng.choice((0x1000, 0x7FFF_F000, 0xFFFF_0000))
        given = {"surface_type": 1, "width": rng.randrange(300), "height": rng.randrange(300), "surface_base_address": low,
                 "surface_pitch": rng.randrange(1, 12) * 128 - 1, "surface_qpitch": rng.randrange(60), "surface_vertical_alignment": 1,
                 "surface_horizontal_alignment": 1, **{name: rng.choice(values) for name, values in STEPS.items()}}  # fmt: skip
        dwords = layout.pack(**{name: value for name, value in given.items() if name in names})
        state = layout.raw(dwords)
        found, alone = surface_image(layout, state, "it"), image_from_state(layout, state, "it")
        levels += bool(taken) and taken[-1] and found.mipmapped
        bits = image_of_bits(gen, array("I", dwords).tobytes())
        by_bits += bits is not None
        assert bits is None or bits == alone
        assert found == alone == replace(found) and found.table == alone.table and hash(found) == hash(alone)
    assert by_bits > 20 and sum(taken) > 20 and levels > 10 and not all(taken)


@pytest.mark.parametrize("gen", [4.5, 7, 7.5, 8, 9, 11])
def test_numbers_are_told_from_other_bits(gen: float) -> None:
    layout = catalogue.layout("RENDER_SURFACE_STATE", gen)

    def differs(**fields: int) -> bool:
        one, other = (int.from_bytes(array("I", layout.pack(**given)).tobytes(), "little") for given in ({}, fields))
        return bool((one ^ other) & ~numbers_mask(gen))

    assert not differs(width=299, height=15, surface_pitch=639, surface_base_address=0x7FFF_3000, mip_count_lod=5, surface_min_lod=3)
    for name in ("surface_type", "surface_format", "depth", "minimum_array_element"):
        assert differs(**{name: 1}), name
