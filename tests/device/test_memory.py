"""The memory behind page tables: whose translations are kept, and for how many contexts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from softgen.bits.generation import device
from softgen.device.memory import DeviceMemory
from softgen.errors import GpuFault
from softgen.memory.space import Space

Find = Callable[[DeviceMemory, int], Space]
KINDS: dict[str, Any] = {
    "one table": ("skl", lambda memory, number: memory.context(number << 12)),
    "four directories": ("skl", lambda memory, number: memory.context((number << 12, 0, 0, 0))),
    "two levels": ("ivb", lambda memory, number: memory.two_level(number << 16, 0xFFFFFFFF)),
    "what of them is valid": ("ivb", lambda memory, number: memory.two_level(1 << 16, number)),
}


@pytest.mark.parametrize("gpu, find", KINDS.values(), ids=KINDS)
def test_the_same_tables_are_the_same_space_until_there_are_too_many(gpu: str, find: Find) -> None:
    memory = DeviceMemory(device(gpu).generation)
    spaces = [find(memory, number) for number in range(1, 65)]
    assert len({id(space) for space in spaces}) == 64
    assert all(find(memory, number) is spaces[number - 1] for number in range(1, 65))
    find(memory, 65)
    assert find(memory, 1) is not spaces[0]


def test_a_context_is_named_by_its_first_table() -> None:
    memory = DeviceMemory(device("skl").generation)
    assert memory.context(0x3000).name == memory.context((0x3000, 0x5000, 0, 0)).name == "context memory (tables at 0x3000)"


@pytest.mark.parametrize("gpu, size", [("ivb", 4), ("hsw", 4), ("bdw", 8), ("icl", 8)])
def test_an_entry_of_the_global_table_has_four_bytes_or_eight(gpu: str, size: int) -> None:
    """Bits above them are dropped."""
    memory = DeviceMemory(device(gpu).generation)
    memory.write_entry(3, 1 << 8 * size | 0x5001)
    memory.update_table(4 << 12, [-1, 0x6001])
    assert memory.entries.read(2 * size, 5 * size) == b"".join(
        value.to_bytes(size, "little") for value in (0, 0x5001, (1 << 8 * size) - 1, 0x6001, 0))  # fmt: skip


@pytest.mark.parametrize("gpu", ["ivb", "hsw", "skl", "icl"])
def test_the_global_table_maps_4_gib(gpu: str) -> None:
    """Up to the last page, and no further."""
    memory = DeviceMemory(device(gpu).generation)
    memory.physical.write(0x5000, b"last page")
    memory.update_table((1 << 32) - 4096, [0x5001])
    assert memory.global_space.read((1 << 32) - 4096, 9) == b"last page"
    if memory.generation.ggtt_entry == 64:
        with pytest.raises(GpuFault, match="global table"):
            memory.update_table(1 << 32, [0x5001])
