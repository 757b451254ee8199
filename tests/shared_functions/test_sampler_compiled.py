"""Functions for the texels of a surface: when they are made, what is left to the reference, and that code leaves once and not for ever."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from softgen.bits.catalogue import layout
from softgen.bits.generation import generation
from softgen.cache import Cache
from softgen.errors import GpuFault, Unsupported
from softgen.lanes.compile import compile_policy
from softgen.shared_functions import descriptors
from softgen.shared_functions.bindings import (
    LANES,
    PLAIN,
    SAMPLING,
    Bindings,
    Picture,
    SampleFunctions,
    named_texels,
    plain_slot,
    sampling_slot,
    texels_named,
)
from softgen.shared_functions.bound_surfaces import BoundSurfaces, SurfaceName
from softgen.shared_functions.pixel_backend.binding import NAMED as TARGET_NAMED
from softgen.shared_functions.pixel_backend.binding import named_target
from softgen.shared_functions.pixel_backend.messages import Variant
from softgen.shared_functions.texture import functions as textured
from softgen.shared_functions.texture.functions import COMPILE_AFTER, Pictures
from softgen.shared_functions.texture.operations import textured as requested
from softgen.shared_functions.unit import DispatchBindings
from tests.shared_functions.sending import BASE, TABLE
from tests.shared_functions.test_sampler import filters, modes
from tests.shared_functions.texture import STATES, Texture


def pictures() -> Pictures:
    return Pictures(Bindings(), 48)


def fill(to: Pictures, texture: Texture, what: str = "sample_l", hurry: bool = False) -> bool:
    """There is no hurry unless one says so."""
    said = {"hurry": True} if hurry else {}
    return to.fill(0, what, 16, 0, texture.port.picture(0, False), texture.port.sampling(0), **said)


def test_a_function_is_there_once() -> None:
    """Code that leaves although its function is there has another reason, which is for the reference: it must not be sent back."""
    to, texture = pictures(), Texture(sampler=modes("wrap"))
    assert fill(to, texture, hurry=True) and to.address(0, "sample_l", 16, 0) and to.bindings.pictures[0].samplers[0]
    assert not fill(to, texture, hurry=True)


def test_code_is_made_for_what_is_asked_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(textured, "_made", {})
    monkeypatch.setattr(textured, "_asked", type(textured._asked)())
    monkeypatch.setattr(Cache, "load", lambda self, key: None)
    monkeypatch.setattr(Cache, "save", lambda self, key, data: None)
    to, texture = pictures(), Texture(sampler=modes("mirror") | filters("linear"), format="R16G16_SNORM")
    answers = [fill(to, texture) for _ in range(COMPILE_AFTER)]
    assert answers == [False] * (COMPILE_AFTER - 1) + [True] and not answers[0], "what is sent once is left to the interpreter"
    assert fill(pictures(), texture), "another dispatch need not wait"


def test_a_side_exit_asks_like_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message that left compiled code is executed by the interpreter until its function was asked for often; one that code names is
    made at once if there is a hurry."""
    for hurry in (False, True):
        monkeypatch.setattr(textured, "_made", {})
        monkeypatch.setattr(textured, "_asked", type(textured._asked)())
        monkeypatch.setattr(Cache, "load", lambda self, key: None)
        monkeypatch.setattr(Cache, "save", lambda self, key, data: None)
        texture = Texture(sampler=modes("mirror"), format="R16_SNORM")
        bases = {"surface": BASE, "dynamic": BASE}
        bound = BoundSurfaces(DispatchBindings(generation(texture.gen), texture.space, bases, TABLE, STATES))
        if hurry:
            bound.prepare(frozenset({named_texels(0, "sample_l", 16, 0)}), hurry=True)
            assert bound.pictures.address(0, "sample_l", 16, 0)
            continue
        sent = descriptors.encode("sample_l", texture.gen, simd_mode="simd16", message_length=6, response_length=8)
        asked = descriptors.named(2, sent, texture.gen)
        assert [bound.resolve(asked) for _ in range(COMPILE_AFTER)] == [False] * (COMPILE_AFTER - 1) + [True]


def test_a_hurry_does_not_wait_until_bytecode_is_hot(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the compiler refuses stays bytecode."""
    monkeypatch.setattr(textured, "_made", {})
    monkeypatch.setattr(compile_policy._Mode, "background", True)
    monkeypatch.setattr(Cache, "load", lambda self, key: None)
    monkeypatch.setattr(Cache, "save", lambda self, key, data: None)
    texture = Texture(sampler=modes("mirror"), format="R8G8_SNORM")
    assert fill(pictures(), texture)
    (made,) = textured._made.values()
    assert made.code is None and made.program is not None
    with monkeypatch.context() as patch:
        patch.setattr(made, "_compile", lambda: refused())
        assert fill(pictures(), texture, hurry=True) and made.code is None
    assert fill(pictures(), texture, hurry=True) and made.code is not None
    compiled = made.code
    made.promote()
    assert made.code is compiled


def refused() -> Any:
    raise Unsupported("nothing for it")


def test_what_is_in_the_cache_is_used_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    texture = Texture(sampler=modes("mirror"), format="R16G16_UNORM")
    for _ in range(2):  # the second time it is on disk
        monkeypatch.setattr(textured, "_made", {})
        monkeypatch.setattr(textured, "_asked", type(textured._asked)())
        assert fill(pictures(), texture, hurry=not any(tmp_path.rglob("objects/*")))


def test_what_is_unknown_is_for_the_reference() -> None:
    for item in (Texture(kind="buffer", shape=(16,)), Texture(sampler=modes("cube"))):
        to = pictures()
        assert not fill(to, item, hurry=True) and not fill(to, item, hurry=True)
        assert not any(to.bindings.pictures[0].samplers)


def test_images_of_a_kind_share_their_code() -> None:
    """Sizes, levels and offsets are read at run time."""
    levels = [{"mip_count_lod": 1}, {"mip_count_lod": 3, "surface_min_lod": 1}]
    for more in ([{}, {}], levels, [{"x_offset": 1}, {"y_offset": 1}]):
        texture, other = (Texture(shape=shape, sampler=modes("clamp"), surface=state)
                      for shape, state in zip(((13, 7), (40, 9)), more, strict=True))  # fmt: skip
        to, again = pictures(), pictures()
        assert fill(to, texture, hurry=True)
        assert fill(again, other) and again.address(0, "sample_l", 16, 0) == to.address(0, "sample_l", 16, 0)
        assert again.bindings.pictures[0].width == 40 and to.bindings.pictures[0].width == 13


def test_samplers_of_a_kind_share_their_code() -> None:
    """Levels of detail, bias and border colour are read at run time, and each sampler has its own."""
    few = {"mip_mode_filter": 1, **modes("clamp_border")}
    texture, other = (Texture(surface={"mip_count_lod": 3}, sampler={**few, **more}, border=border) for more, border in (
        ({"min_lod": 1.0, "max_lod": 2.0, "texture_lod_bias": 0.5}, (0.25, 0.5, 0.75, 2.0)),
        ({"min_lod": 0.0, "max_lod": 3.0, "texture_lod_bias": -1.5}, (1.0, 0.0, 0.5, 0.25))))  # fmt: skip
    to, again = pictures(), pictures()
    assert fill(to, texture, hurry=True) and fill(again, other)
    assert again.address(0, "sample_l", 16, 0) == to.address(0, "sample_l", 16, 0)
    held, differs = (SampleFunctions.from_address(each.bindings.pictures[0].samplers[0]) for each in (to, again))
    assert (list(held.lods), held.bias) == ([1, 2], 0.5) and (list(differs.lods), differs.bias) == ([0, 3], -1.5)
    assert np.array(held.outside, np.uint32).view(np.float32).tolist() == [0.25, 0.5, 0.75, 2.0] and differs.outside[0] == 0x3F800000


def test_each_sampler_has_its_functions() -> None:
    to, texture = pictures(), Texture(sampler=modes("wrap"))
    for sampler in (0, 3):
        assert to.fill(7, "sample_l", 8, sampler, texture.port.picture(0, False), texture.port.sampling(0), True)
        assert to.address(7, "sample_l", 8, sampler) and not to.address(7, "sample_l", 16, sampler)
    assert not to.address(7, "sample_l", 8, 1)


def test_code_finds_the_functions_of_any_sampler() -> None:
    """The table has another sampler before it."""
    texture, alone = Texture(sampler=modes("wrap")), Texture(sampler=modes("mirror"))
    states = layout("SAMPLER_STATE", texture.gen)
    texture.put(texture.state, STATES + 3 * 4 * states.dwords, states.pack(border_color_pointer=0x600, **modes("mirror")))
    places = np.linspace(-2, 2, 16, dtype=np.float32), np.linspace(3, -3, 16, dtype=np.float32)
    found = [texture.ask("sample_lz", *places, sampler_index=number).tolist() for number in (0, 3)]
    assert found[1] == alone.ask("sample_lz", *places).tolist() != found[0] and texture.compiled == 2


def test_operations_that_code_names_are_prepared() -> None:
    """Compiled code of a whole kernel has no entry behind a side exit: what it will ask for is there before it runs."""
    texture = Texture(sampler=modes("wrap"))
    fill(pictures(), texture, hurry=True)
    bases = {"surface": BASE, "dynamic": BASE}
    bound = BoundSurfaces(DispatchBindings(generation(texture.gen), texture.space, bases, TABLE, STATES))
    bound.prepare(frozenset({named_texels(0, "sample_l", 16, 0)}))
    assert bound.pictures.address(0, "sample_l", 16, 0) and bound.bindings.pictures[0].width == texture.shape[0]
    texture.space.write(BASE + STATES, bytes(4 * 4))
    assert not bound.dispatch.current(), "it depends on the sampler state"


def test_operations_are_prepared_once_and_once_more_in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dispatches name them again each time: they are neither looked up nor counted again. Buffers know no hurry."""
    seen, buffers = list[bool](), list[SurfaceName]()
    resolve_buffer = BoundSurfaces.resolve_buffer
    monkeypatch.setattr(BoundSurfaces, "resolve_image", lambda self, request, name, hurry: seen.append(hurry))
    monkeypatch.setattr(BoundSurfaces, "resolve_buffer", lambda self, name: buffers.append(name) or resolve_buffer(self, name))
    texture = Texture(sampler=modes("wrap"))
    bound = BoundSurfaces(DispatchBindings(generation(texture.gen), texture.space, {"surface": BASE, "dynamic": BASE}, TABLE, STATES))
    named = frozenset({5, named_texels(0, "sample_l", 16, 0), named_target(3, Variant(16, False, False, False, False), 7)})
    for hurry in (False, False, True, True, False):
        bound.prepare(named, hurry)
    bound.prepare(named | {named_texels(1, "sample_l", 16, 0)}, hurry=True)
    bound.prepare(named | {named_texels(1, "sample_l", 16, 0)})
    assert seen == [False, True, True] and buffers == [SurfaceName(5)]


def test_a_border_colour_is_read_only_where_one_is_needed() -> None:
    """By an address mode, or for a surface that lacks parts."""
    texture = Texture(sampler=modes("wrap"))
    texture.put(texture.state, STATES, layout("SAMPLER_STATE", texture.gen).pack(border_color_pointer=0x100000, **modes("wrap")))
    assert texture.port.sampling(0) == texture.port.sampling(0, STATES, False)
    with pytest.raises(GpuFault, match="the border colour of sampler 0 should be there"):
        texture.port.sampling(0, None, True)


def test_each_operation_has_a_slot_for_its_function() -> None:
    slots = (plain_slot, PLAIN), (sampling_slot, SAMPLING)
    plain, sampling = ([slot(what, lanes) for what in names for lanes in LANES] for slot, names in slots)
    assert plain == list(range(len(Picture().functions))) and sampling == list(range(len(SampleFunctions().functions)))


def test_names_of_operations_are_told_apart() -> None:
    every = [(surface, what, lanes, sampler) for surface in (0, 7, 255) for what in (*PLAIN, *SAMPLING) for lanes in LANES
             for sampler in (0, 15)]  # fmt: skip
    names = [named_texels(*each) for each in every]
    assert [texels_named(name) for name in names] == every and len(set(names)) == len(names)
    assert texels_named(255) is texels_named(named_target(3, Variant(16, False, False, False, False), 7)) is None
    assert not any(name & TARGET_NAMED for name in names)


@pytest.mark.parametrize(("mode", "lanes"), [("simd8", 8), ("simd16", 16), ("simd8h", 8), ("simd16h", 16)])
def test_a_message_asks_for_an_operation_of_its_lanes(mode: str, lanes: int) -> None:
    """Parameters of 16 bits are as many as those of 32."""
    descriptor = descriptors.encode("sample_lz", 11, simd_mode=mode, message_length=4, response_length=lanes // 2)
    sfid = next(number for number, name in descriptors.shared_functions(11).items() if name == "sampler")
    found = requested(sfid, descriptor, 11)
    assert found is not None and found.lanes == lanes
