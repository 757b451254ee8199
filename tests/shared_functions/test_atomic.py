"""Untyped atomics: answers without room."""

from __future__ import annotations

import numpy as np
import pytest

from softgen.errors import DecodeError
from tests.shared_functions.sending import Bench

BOUND = {"binding_table_index": 0}
FAR = {"binding_table_index": 255}


@pytest.mark.parametrize("returns", [0, 1])
@pytest.mark.parametrize(
    ("name", "operands", "fields", "needed"),
    [
        ("untyped_atomic", 1, {"operation": "add", "simd_mode": "simd8", **BOUND}, 1),
        ("untyped_atomic", 2, {"operation": "add", "simd_mode": "simd16", **BOUND}, 2),
        ("untyped_atomic", 4, {"operation": "cmpwr_2w", "simd_mode": "simd8", **BOUND}, 2),
        ("untyped_atomic", 8, {"operation": "cmpwr_2w", "simd_mode": "simd16", **BOUND}, 4),
        ("untyped_atomic_simd4x2", 1, {"operation": "add", **BOUND}, 1),
        ("a64_untyped_atomic", 2, {"operation": "add", "data_width": "qword", **FAR}, 2),
    ],
)
def test_an_answer_without_room_is_refused_before_memory_changes(
    name: str, operands: int, fields: dict[str, str], needed: int, returns: int
) -> None:
    """One that returns nothing needs none."""
    bench = Bench()
    at = np.full(8, 0x20000, np.uint64) if name.startswith("a64") else np.zeros(16 if fields.get("simd_mode") == "simd16" else 8, np.uint32)
    bench.data.array[:] = 1
    before, data = bench.data.array.copy(), np.full(8 * operands, 0x01010101, np.uint32)
    if fields["operation"] == "cmpwr_2w":
        data[4 * operands :] = 0x02020202  # what is there, then what would be
    if not returns:
        bench.send(name, at, data, answer=0, return_data=0, **fields)
        return
    with pytest.raises(DecodeError, match=f"{name} has {needed - 1} registers for its answer, too few; {needed} are needed"):
        bench.send(name, at, data, answer=needed - 1, return_data=1, **fields)
    assert (bench.data.array == before).all()
    bench.send(name, at, data, answer=needed, return_data=1, **fields)
