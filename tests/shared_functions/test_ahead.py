"""Functions that are compiled before a kernel calls them."""

from __future__ import annotations

from pathlib import Path

import pytest

from softgen.bits.catalogue import layout
from softgen.bits.formats import surface_formats
from softgen.cache import Cache
from softgen.lanes.compile import jit
from softgen.shared_functions import ahead
from softgen.shared_functions.texture import functions
from softgen.shared_functions.texture.functions import TexelForm, generic
from softgen.surface.image import SurfaceImage, image_from_state

SURFACE_2D, Y_MAJOR = 1, 3


def image_of_runtime(gen: float, format: str, width: int) -> SurfaceImage:
    """An image as OpenCL's runtime describes it to its own kernels: alignments of four, and a base address."""
    page = layout("RENDER_SURFACE_STATE", gen)
    value = next(value for value, found in surface_formats().items() if found.name == format)
    selects = {f"shader_channel_select_{color}": 4 + number for number, color in enumerate(("red", "green", "blue", "alpha"))}
    state = page.pack(surface_type=SURFACE_2D, surface_format=value, width=width - 1, height=63, surface_pitch=16 * width - 1,
                      tile_mode=Y_MAJOR, surface_horizontal_alignment=1, surface_vertical_alignment=1, surface_qpitch=16,
                      surface_base_address=0x8000_0000, **selects)  # fmt: skip
    return image_from_state(page, page.raw(state), "surface 0")


@pytest.mark.parametrize("gen", [8, 9, 11])
def test_functions_of_copies_are_those_that_images_of_the_runtime_need(gen: float) -> None:
    forms = set(ahead.common(gen))
    assert len(forms) == len(ahead.FORMATS) * len(ahead.COPIES)
    for format in ahead.FORMATS:
        image = generic(image_of_runtime(gen, format, 1024))
        assert image == generic(image_of_runtime(gen, format, 640))
        assert {TexelForm(what, lanes, image, None, 48) for what, lanes in ahead.COPIES} <= forms


def test_they_are_compiled_once_until_work_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, stops = list[TexelForm](), iter([False, False, True, False, True, False, False, False])
    for module in (jit, ahead):
        monkeypatch.setattr(module, "Cache", lambda folder: Cache(tmp_path))
    text = functions.text
    monkeypatch.setattr(functions, "text", lambda *form: (made.append(TexelForm(*form)), text(*form))[1])
    monkeypatch.setattr(ahead, "FORMATS", ("R32_UINT",))
    ahead.compile_ahead(9, stops.__next__)
    assert [(form.what, form.lanes) for form in made] == [("write", 8), ("load", 16)]
    ahead.compile_ahead(9, stops.__next__)  # asks for the first and stops at the second
    ahead.compile_ahead(9, stops.__next__)
    assert [form.what for form in made] == ["write", "load", "load_offset"]
    assert all(functions.is_cached(form) for form in made)
    ahead.compile_ahead(9, stops.__next__)  # asks for nothing: it is done, which is remembered
    with pytest.raises(StopIteration):
        ahead.compile_ahead(11, stops.__next__)
