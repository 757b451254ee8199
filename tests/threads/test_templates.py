"""Memory of templates: where it begins and when it is made anew."""

from __future__ import annotations

import pytest

from softgen.threads.templates import LINE, AlignedMemory


@pytest.mark.parametrize("size", [1, 63, 64, 65, 4000, 1 << 16])
def test_memory_begins_at_a_cache_line(size: int) -> None:
    made = [AlignedMemory() for _ in range(16)]  # the allocator may give one of them an address that happens to be right
    for memory in made:
        held = memory.fit(size)
        assert len(held) == size and memory.address % LINE == 0 and held.ctypes.data == memory.address and not held.any()
        held[:] = 7


def test_memory_is_kept_while_it_is_large_enough() -> None:
    memory = AlignedMemory()
    memory.fit(100)[:] = 7
    first = memory.address
    assert memory.fit(100).tolist() == [7] * 100 and memory.fit(60).tolist() == [7] * 60 and memory.address == first
    assert len(memory.bytes) == 100 and len(memory.fit(0)) == 0
    larger = memory.fit(101)
    assert len(larger) == 101 and not larger.any() and larger.ctypes.data == memory.address
