"""Functions for the texels of a surface: when they are made, what is left to the reference, and that code leaves once and not for ever."""

from __future__ import annotations

from pathlib import Path

import pytest

from softgen.lanes.cache import Cache
from softgen.shared_functions.bindings import TEXTURED, Bindings
from softgen.shared_functions.texture import functions as textured
from softgen.shared_functions.texture.functions import COMPILE_AFTER, Pictures
from tests.shared_functions.test_sampler import filters, modes
from tests.shared_functions.texture import Texture


def pictures() -> Pictures:
    return Pictures(Bindings(), 48)


def fill(to: Pictures, one: Texture, what: str = "sample", hurry: bool = False) -> bool:
    return to.fill(0, what, 16, 0, one.port.picture(0, False), one.port.sampling(0), hurry)


def test_a_function_is_there_once() -> None:
    """Code that leaves although its function is there has another reason, which is for the reference: it must not be sent back."""
    to, one = pictures(), Texture(sampler=modes("wrap"))
    assert fill(to, one, hurry=True) and to.bindings.pictures[0].functions[TEXTURED["sample", 16]]
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


def test_levels_and_what_is_unknown_are_for_the_reference() -> None:
    for one in (Texture(surface={"mip_count_lod": 1}), Texture(kind="cube"), Texture(format="BC1_UNORM", shape=(16, 8))):
        to = pictures()
        assert not fill(to, one, hurry=True) and not fill(to, one, hurry=True)
        assert not any(to.bindings.pictures[0].functions)


def test_images_of_a_kind_share_their_code() -> None:
    one, other = (Texture(shape=shape, sampler=modes("clamp")) for shape in ((13, 7), (40, 9)))
    to = pictures()
    assert fill(to, one, hurry=True)
    before = to.bindings.pictures[0].functions[TEXTURED["sample", 16]]
    again = pictures()
    assert fill(again, other) and again.bindings.pictures[0].functions[TEXTURED["sample", 16]] == before
    assert again.bindings.pictures[0].width == 40 and to.bindings.pictures[0].width == 13
