"""Messages that the manuals give by number, or leave to other sources: what their descriptors say."""

from __future__ import annotations

import pytest

from softgen.shared_functions import descriptors
from softgen.shared_functions.descriptors import encode, identify
from tests.shared_functions.test_message import must

DATA_CACHE_0, DATA_CACHE_1, RENDER_CACHE = 10, 12, 5


@pytest.mark.behaviour("BDW-RT-03", shows="layout")
@pytest.mark.parametrize(("sent", "returned", "wrong"), [(1, 0, 0), (15, 16, 0), (0, 0, 1), (1, 17, 1)])
def test_render_target_write(sent: int, returned: int, wrong: int) -> None:
    """BDW 21523-21550: type 0Ch, one to fifteen registers there, up to sixteen back, with a header of two or without."""
    for header in (0, 1):
        bits = encode("render_target_write", 8, message_length=sent, response_length=returned, header_present=header)
        found = must(RENDER_CACHE, bits, 8)
        assert (found.name, bits >> 14 & 15) == ("render_target_write", 0xC)
        assert (found.mlen, found.rlen, found.header) == (sent, returned, bool(header))
        assert len(descriptors.problems(found)) == wrong


@pytest.mark.behaviour("BDW-DP-09", shows="layout")
@pytest.mark.covering(2)
@pytest.mark.parametrize(("name", "kind"), [("a64_untyped_atomic", 0x12), ("a64_untyped_atomic_simd4x2", 0x13)])
@pytest.mark.parametrize("wide", [0, 1])
@pytest.mark.parametrize("returns", [0, 1])
@pytest.mark.parametrize("operation", [1, 2, 5, 14])  # and, or, increment, compare and write: two, two, one and three operands
def test_atomics_at_any_address(name: str, kind: int, wide: int, returns: int, operation: int) -> None:
    """BDW 14150-15072, 15870-16700."""
    bits = kind << 14 | returns << 13 | wide << 12 | operation << 8 | 0xFF | 2 << 25
    found = must(DATA_CACHE_1, bits, 8)
    assert (found.name, found.values.data_width, found.values.return_data, found.values.operation) == (name, wide, returns, operation)
    assert descriptors.problems(found) == []


@pytest.mark.behaviour("KBL-DP-31", shows="layout")
@pytest.mark.parametrize(("sfid", "bits", "name"), [
    (DATA_CACHE_0, 0 << 14, "oword_block_read"), (DATA_CACHE_0, 8 << 14, "oword_block_write"),
    (DATA_CACHE_0, 1 << 18, "scratch_block_read"), (DATA_CACHE_0, 3 << 14, "dword_scattered_read"),
    (DATA_CACHE_0, 4 << 14, "byte_scattered_read"),
    (DATA_CACHE_1, 1 << 14, "untyped_surface_read"), (DATA_CACHE_1, 9 << 14, "untyped_surface_write"),
    (DATA_CACHE_1, 5 << 14, "typed_surface_read"), (DATA_CACHE_1, 13 << 14, "typed_surface_write"),
    (6, 7, "urb_simd8_write"), (6, 8, "urb_simd8_read"), (3, 4, "barrier"), (11, 0, "interpolate_shared_offset"),
])  # fmt: skip
def test_descriptors_that_no_volume_describes(sfid: int, bits: int, name: str) -> None:
    found = identify(sfid, bits, 9)
    assert found is not None and found.name == name and found.row.page


@pytest.mark.behaviour("KBL-RT-17", shows="layout")
def test_render_targets_can_be_read() -> None:
    """KBL 20467: type 0dh of the render cache."""
    found = identify(RENDER_CACHE, 0xD << 14 | 1 << 19 | 2 << 25 | 1 << 20, 9)
    assert found and found.name == "render_target_read"
