"""Scattered messages: how many lanes a message has, by its mode."""

from __future__ import annotations

import numpy as np
import pytest

from softgen.errors import DecodeError, Unsupported
from softgen.shared_functions import descriptors
from softgen.shared_functions.bindings import KNOWN, TOLD
from softgen.shared_functions.dataport.scattered import runs
from tests.shared_functions.sending import Bench

u32 = np.uint32
BLOCKS = [(gen, row.name) for gen in (4, 4.5, 7, 7.5, 8, 9, 11) for row in descriptors.rows(gen)
          if row.name in ("dword_scattered_read", "dword_scattered_write", "constant_dword_scattered_read")]  # fmt: skip


@pytest.mark.parametrize(("gen", "name"), BLOCKS)
@pytest.mark.parametrize("lanes", [8, 16])
def test_dwords_of_eight_or_sixteen_lanes(gen: float, name: str, lanes: int) -> None:
    """Exactly so many registers hold offsets, data and answer: one for eight lanes, two for sixteen."""
    bench, at = Bench(gen=gen), np.arange(lanes, dtype=u32) * 3
    mode = {"block_size": f"{lanes}_dwords"} if gen < 7 else {"simd_mode": f"simd{lanes}"}
    parts = [*([np.zeros(8, u32)] if gen < 7 else []), at, *([np.arange(lanes, dtype=u32)] if name.endswith("write") else [])]
    held = bench.data.array.view(u32)
    if name.endswith("write"):
        bench.send(name, *parts, answer=0, width=16, **mode, binding_table_index=0)
        assert held[: 3 * lanes : 3].tolist() == list(range(lanes))
        with pytest.raises(DecodeError, match=f"{name} has .* registers of payload, too few"):
            bench.send(name, *parts[:-1], parts[-1][:-8], answer=0, width=16, **mode, binding_table_index=0)
        return
    found = bench.send(name, *parts, answer=lanes // 8, width=16, **mode, binding_table_index=0).view(u32)
    assert found.tolist() == held[: 3 * lanes : 3].tolist()
    with pytest.raises(DecodeError, match=f"{name} has .* registers for its answer, too few; {lanes // 8} are needed"):
        bench.send(name, *parts, answer=lanes // 8 - 1, width=16, **mode, binding_table_index=0)


def test_a_mode_without_lanes_is_refused() -> None:
    with pytest.raises(Unsupported, match="untyped_surface_read in mode reserved: not yet simulated"):
        Bench().send("untyped_surface_read", np.zeros(8, u32), answer=1, simd_mode=3, channel_mask="r", binding_table_index=0)


@pytest.mark.parametrize(("channels", "found"), [
    ([], []), ([0], [(0, 1)]), ([0, 1, 2, 3], [(0, 4)]), ([0, 2], [(0, 1), (2, 1)]), ([1, 2], [(1, 2)]), ([0, 1, 3], [(0, 2), (3, 1)]),
    ([0, 2, 3], [(0, 1), (2, 2)])])  # fmt: skip
def test_channels_that_follow_one_another(channels: list[int], found: list[tuple[int, int]]) -> None:
    assert runs(channels) == found


@pytest.mark.parametrize(("at", "mask", "known", "inside"), [
    ([8, 0, 252, 4, 12, 12, 16, 20], 0xFF, KNOWN, True), ([8, 0, 256, 4, 12, 12, 16, 20], 0xFB, KNOWN, True),
    ([8, 0, 256, 4, 12, 12, 16, 20], 0xFF, KNOWN, False), ([8, 0, 256, 4, 12, 12, 16, 20], 0xFF, TOLD, True),
    ([8, 0, 4, 12, 12, 16, 20, 0xFFFFFFFC], 0xFF, KNOWN, False), ([8, 0, 4, 12, 12, 16, 20, 0xFFFFFFFC], 0x7F, KNOWN, True),
])  # fmt: skip
def test_compiled_code_is_left_at_the_first_lane_outside(at: list[int], mask: int, known: int, inside: bool) -> None:
    """Of those that are on, so that the interpreter reports it; never again after that."""
    bench = Bench(known=known)
    bench.send("untyped_surface_read", np.array(at, u32), answer=1, simd_mode="simd8", channel_mask="r", width=8, mask=mask,
               binding_table_index=0)  # fmt: skip
    assert bench.compiled == inside
