"""Draws in media mode of GM965, which preload indirect data (three_d/vertices/media_preload.py)."""

from __future__ import annotations

import pytest

from softgen.errors import DecodeError, GpuFault
from tests.media.vfe.batch import INDIRECT, Fields, Media, media_object, words

NUMBERS = list(range(201, 217))  # two vertices of eight dwords
ELEMENTS = [{"valid": 1, "source_element_format": 2, "source_element_offset": 16 * n, "destination_element_offset": 16 * n,
             **{f"component_{c}_control": 1 for c in range(4)}} for n in range(2)]  # fmt: skip


def media(device: str = "gm965", at: int = INDIRECT + 64, elements: int = 2, element: Fields | None = None, pitch: int = 32,
          **draw: int) -> Media:  # fmt: skip
    """An object of 64 bytes of indirect data at 64, after a draw that preloads them."""
    made = Media([], kernels=[], indirect=bytes(64) + words(NUMBERS), device=device)
    fields = {"primitive_topology_type": 1, "vertex_count_per_instance": 2, "instance_count": 1, **draw}
    each = [{**held, **(element or {})} for held in ELEMENTS[:elements]]
    made.kernels = Media([]).kernels
    made.commands = [
        made.pack("3DSTATE_VERTEX_BUFFERS", vertex_buffer=[{"buffer_pitch": pitch, "buffer_starting_address": at}]),
        made.pack("3DSTATE_VERTEX_ELEMENTS", vertex_element=each), made.pack("3DPRIMITIVE", **fields),
        media_object(inline=[9], indirect_data_length=64, indirect_data_start_address=64),
    ]  # fmt: skip
    return made


@pytest.mark.behaviour("G45-VF-47", shows="action")
def test_a_draw_of_points_preloads_indirect_data() -> None:
    """G45 8608-8668: nothing is drawn, and the object has its data."""
    ran = media().run()
    assert ran.registers(0, 1, 3) == (9, *[0] * 7, *NUMBERS) and not ran.warnings
    assert (ran.gpu.counters.draws, ran.gpu.counters.threads) == (0, 1)
    with pytest.raises(GpuFault, match=r"preload of indirect data.*3DPRIMITIVE"):
        media(at=0xF000_0000).run()


@pytest.mark.behaviour("G45-VF-47", shows="action")
@pytest.mark.parametrize(("more", "says"), [
    ({"primitive_topology_type": 4}, "3DPRIMITIVE has primitive_topology_type 4; it must be 1"),
    ({"pitch": 16}, "has buffer_pitch 16; it must be 32"), ({"base_vertex_location": 3}, "has base_vertex_location 3; it must be 0"),
    ({"elements": 1}, "1 vertex elements; there must be two"),
    ({"element": {"source_element_format": 0}}, "vertex element 1 has source_element_format 0; it must be 2"),
])  # fmt: skip
def test_other_programming_is_undefined(more: Fields, says: str) -> None:
    """G45 8611, 8632, 8652."""
    assert any(says in text for text in media(**more).run().warnings)


@pytest.mark.behaviour("G45-VF-47", shows="action")
def test_other_products_have_no_draws_in_media_mode() -> None:
    with pytest.raises(DecodeError, match="3DPRIMITIVE while PIPELINE_SELECT has pipeline_selection 1, not the 3D pipeline"):
        media("g45").run()
