"""Images of states that differ in numbers from one decoded before: the same as if decoded alone, on each generation."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from softgen.bits import catalogue
from softgen.surface import resized
from softgen.surface.image import image_from_state
from softgen.surface.resized import surface_image

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
    names, levels = {field.name for field in layout.fields}, 0
    for _ in range(250):
        low = rng.choice((0x1000, 0x7FFF_F000, 0xFFFF_0000))
        given = {"surface_type": 1, "width": rng.randrange(300), "height": rng.randrange(300), "surface_base_address": low,
                 "surface_pitch": rng.randrange(1, 12) * 128 - 1, "surface_qpitch": rng.randrange(60), "surface_vertical_alignment": 1,
                 "surface_horizontal_alignment": 1, **{name: rng.choice(values) for name, values in STEPS.items()}}  # fmt: skip
        state = layout.raw(layout.pack(**{name: value for name, value in given.items() if name in names}))
        found, alone = surface_image(layout, state, "it"), image_from_state(layout, state, "it")
        levels += bool(taken) and taken[-1] and found.mipmapped
        assert found == alone == replace(found) and found.table == alone.table and hash(found) == hash(alone)
    assert sum(taken) > 20 and levels > 10 and not all(taken)
