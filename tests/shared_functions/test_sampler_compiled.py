"""Functions for the texels of a surface: when they are made, what is left to the reference, and that code leaves once and not for ever."""

from __future__ import annotations

from pathlib import Path

import pytest

from softgen.lanes.cache import Cache
from softgen.shared_functions.bindings import Bindings
from softgen.shared_functions.texture import functions as textured
from softgen.shared_functions.texture.functions import COMPILE_AFTER, Pictures
from tests.shared_functions.test_sampler import filters, modes
from tests.shared_functions.texture import Texture


def pictures() -> Pictures:
    return Pictures(Bindings(), 48)


def fill(to: Pictures, one: Texture, what: str = "sample_l", hurry: bool = False) -> bool:
    return to.fill(0, what, 16, 0, one.port.picture(0, False), one.port.sampling(0), hurry)


def test_a_function_is_there_once() -> None:
    """Code that leaves although its function is there has another reason, which is for the reference: it must not be sent back."""
    to, one = pictures(), Texture(sampler=modes("wrap"))
    assert fill(to, one, hurry=True) and to.address(0, "sample_l", 16, 0) and to.bindings.pictures[0].samplers[0]
    assert not fill(to, one, hurry=True)


def test_code_is_made_for_what_is_asked_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(textured, "_made", {})
    monkeypatch.setattr(textured, "_asked", type(textured._asked)())
    monkeypatch.setattr(Cache, "load", lambda self, key: None)
    monkeypatch.setattr(Cache, "save", lambda self, key, data: None)
    to, one = pictures(), Texture(sampler=modes("mirror") | filters("linear"), format="R16G16_SNORM")
    answers = [fill(to, one) for _ in range(COMPILE_AFTER)]
    assert answers == [False] * (COMPILE_AFTER - 1) + [True]
    assert fill(pictures(), one), "another dispatch need not wait"


def test_what_is_in_the_cache_is_used_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    one = Texture(sampler=modes("mirror"), format="R16G16_UNORM")
    for _ in range(2):  # the second time it is on disk
        monkeypatch.setattr(textured, "_made", {})
        monkeypatch.setattr(textured, "_asked", type(textured._asked)())
        assert fill(pictures(), one, hurry=not any(tmp_path.rglob("objects/*")))


def test_what_is_unknown_is_for_the_reference() -> None:
    for one in (Texture(kind="buffer", shape=(16,)), Texture(sampler=modes("cube")), Texture(format="BC7_UNORM", shape=(16, 8))):
        to = pictures()
        assert not fill(to, one, hurry=True) and not fill(to, one, hurry=True)
        assert not any(to.bindings.pictures[0].samplers)


def test_images_of_a_kind_share_their_code() -> None:
    """Sizes, levels and offsets are read at run time."""
    levels = [{"mip_count_lod": 1}, {"mip_count_lod": 3, "surface_min_lod": 1}]
    for more in ([{}, {}], levels, [{"x_offset": 1}, {"y_offset": 1}]):
        one, other = (Texture(shape=shape, sampler=modes("clamp"), surface=state)
                      for shape, state in zip(((13, 7), (40, 9)), more, strict=True))  # fmt: skip
        to, again = pictures(), pictures()
        assert fill(to, one, hurry=True)
        assert fill(again, other) and again.address(0, "sample_l", 16, 0) == to.address(0, "sample_l", 16, 0)
        assert again.bindings.pictures[0].width == 40 and to.bindings.pictures[0].width == 13


def test_each_sampler_has_its_functions() -> None:
    to, one = pictures(), Texture(sampler=modes("wrap"))
    for sampler in (0, 3):
        assert to.fill(7, "sample_l", 8, sampler, one.port.picture(0, False), one.port.sampling(0), True)
        assert to.address(7, "sample_l", 8, sampler) and not to.address(7, "sample_l", 16, sampler)
    assert not to.address(7, "sample_l", 8, 1)
