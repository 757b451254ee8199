"""SF threads of Gen4.5: how pixel shader threads get the coefficients that they write."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from softgen.three_d.stage_threads.setup_threads import MOST_READ, SetupThreads, attribute_major
from tests.three_d.g45_draw import Fields, G45Draw, moves, pixel_shader, urb_write, vertex

# Coefficients of 16 attributes: dword d of message register r has 100 r + d.
NUMBERS = [vertex(x, y, attribute=(1, 2, 3, 4)) for x, y in ((0, 0), (8, 0), (0, 8))]


def sf_kernel() -> str:
    """Writes rows Cx, Cy, Co of 8 attributes, twice."""
    ramp = "\n".join(f"mov(1) g20.{dword}<1>F {np.float32(dword).view(np.uint32):#010x}F {{ align1 nomask }};" for dword in range(8))
    rows = "\n".join(f"add(8) m{1 + row}<1>F g20<8,8,1>F {np.float32(100 * row).view(np.uint32):#010x}F {{ align1 nomask }};"
                     for row in range(6))  # fmt: skip
    return "\n".join([ramp, rows, urb_write(7, eot=True)])


def payload(offset: int, length: int, transposed: int) -> list[float]:
    """What threads get of the entry: `length` registers from `offset` on, four at a draw."""
    state: dict[str, Fields] = {"WM_STATE": {"setup_urb_entry_read_length": length, "setup_urb_entry_read_offset": offset,
                                             "transposed_urb_read_enable": transposed, "grf_register_count_0": 1}}  # fmt: skip
    found: list[float] = []
    for dword in range(0, 8 * length, 4):
        shader = pixel_shader(*(f"g{8 + (dword + n) // 8}.{(dword + n) % 8}<0,1,0>" for n in range(4)))
        found += G45Draw(NUMBERS, sf=sf_kernel(), ps=shader, state=state, fill=7.0).run().pixels[1, 1].tolist()
    return found


def group(attribute: int) -> list[float]:
    """Cx, Cy, 0 and Co of an attribute."""
    first, dword = 300 * (attribute // 8), attribute % 8
    return [first + dword, first + 100 + dword, 0.0, first + 200 + dword]


@pytest.mark.behaviour("G45-SF-55", shows="action")
@pytest.mark.parametrize("transposed", [0, 1])
def test_coefficients_are_transposed_when_they_are_read(transposed: int) -> None:
    found = payload(0, 4, transposed)
    rows = [100.0 * row + dword for row in range(4) for dword in range(8)]
    assert found == ([number for attribute in range(8) for number in group(attribute)] if transposed else rows)


@pytest.mark.behaviour("G45-SF-56", shows="action")
def test_read_offsets_are_those_of_the_transposed_layout() -> None:
    """Register 4 of it has attributes 8 and 9, which are in the second three rows that the thread wrote."""
    assert payload(4, 1, 1) == [*group(8), *group(9)]
    assert payload(7, 1, 1) == [*group(14), *group(15)]


def test_a_thread_without_a_whole_block_of_attributes() -> None:
    entries = np.arange(2 * 24, dtype=np.uint32).reshape(2, 24)
    made = attribute_major(entries)
    assert made.shape == (2, 32) and made[1, :4].tolist() == [24, 32, 0, 40]


@pytest.mark.parametrize(("bytes_", "blocks"), [(96, 1), (128, 2), (192, 2), (480, 5), (512, 6)])
def test_entries_are_transposed_in_whole_blocks(bytes_: int, blocks: int) -> None:
    """A block of 24 dwords for eight attributes becomes one of 32; what was in memory after the blocks that a thread owns is not read."""
    threads: Any = object.__new__(SetupThreads)
    threads.stage, threads.entry_bytes = SimpleNamespace(entry_bytes=bytes_), 128 * blocks
    entries = np.arange(3 * 32 * blocks, dtype=np.uint32).reshape(3, -1)
    threads.urb = SimpleNamespace(bytes=np.concatenate([entries.reshape(-1).view(np.uint8), np.full(64, 255, np.uint8)]))
    address = threads._transpose(3)
    assert len(threads._read) == 3 * 128 * blocks + 2 * 63 * 32, "reads go past the last entry by as much as state can say"
    found = np.frombuffer(ctypes.string_at(address, 3 * 128 * blocks), np.uint32).reshape(3, blocks, 8, 4)
    for record, block, attribute in np.ndindex(3, blocks, 8):
        cx, cy, co = (entries[record, 24 * block + 8 * row + attribute] for row in range(3))
        assert found[record, block, attribute].tolist() == [cx, cy, 0, co]


def test_large_draws_transpose_each_entry() -> None:
    """Several threads of a batch: the entries of all of them."""
    corners = [vertex(x + dx, y + dy) for y in range(0, 16, 4) for x in range(0, 16, 4) for dx, dy in ((0, 0), (4, 0), (0, 4))]
    state: dict[str, Fields] = {"WM_STATE": {"setup_urb_entry_read_length": 1, "transposed_urb_read_enable": 1}}
    sf = moves(1, "g1", "g2", "g3", "g4", "g5") + "\n" + urb_write(6, eot=True)
    drawn = G45Draw(corners, sf=sf, ps=pixel_shader("g8.2<0,1,0>"), state=state, fill=7.0).run(threads=2)
    lit = drawn.pixels[..., 0] == 0.0
    assert lit.sum() == 16 * 6 and (drawn.pixels[~lit] == 7.0).all(), "dword 2 of an attribute is zero"


class Stage:
    """Takes the loops of a piece: which entries they write to, and the numbers of their first threads."""

    entry_bytes, batch = 64, 8

    def __init__(self, scratch_threads: int = 0) -> None:
        self.fields = {"scratch": SimpleNamespace(threads=scratch_threads) if scratch_threads else None}
        self.first: list[int] = []
        self.loops: list[Any] = []

    def fill(self, loop: Any, entries: int, stride: int, first: int) -> None:
        assert (entries, stride) == (0x5000, 96)
        self.first.append(first)

    def run(self, cs: Any, name: str, loops: list[Any], urb: Any) -> int:
        self.loops = loops
        return 7


def fake(stage: Stage) -> Any:
    threads: Any = object.__new__(SetupThreads)
    threads.stage, threads.transposed, threads.entry_bytes = stage, False, stage.entry_bytes
    threads.urb = SimpleNamespace(size=0)
    return threads


def piece(count: int, capacity: int, new: bool = True) -> Any:
    records = SimpleNamespace(count=count, capacity=capacity, records=0x3000, attributes=0, attribute_stride=0)
    return SimpleNamespace(records=records, new=new, sf_inputs=0x4000, vertices=SimpleNamespace(entries=0x5000, stride=96))


def test_entries_of_a_piece_that_has_more_records_are_read_past_their_end_as_well() -> None:
    """Payloads may read that many bytes from the start of an entry on. Entries are kept while they are enough."""
    threads, kept = fake(Stage()), list[Any]()
    for capacity in (4, 4, 5, 3, 6):
        here = piece(1, capacity)
        assert threads.run(SimpleNamespace(dispatcher=SimpleNamespace(threads=1)), here) == 7
        assert threads.urb.size >= capacity * 64 + MOST_READ
        assert (here.records.attributes, here.records.attribute_stride) == (threads.urb.address, 64)
        kept.append(threads.urb)
    assert kept[1] is kept[0] and kept[2] is not kept[1] and kept[3] is kept[2] and kept[4] is not kept[3]


@pytest.mark.parametrize("records, host_threads, scratch_threads, loops", [
    (1, 4, 0, 1), (511, 4, 0, 1), (512, 4, 0, 2), (4096, 4, 0, 4), (4096, 4, 16, 2), (4096, 4, 23, 2), (4096, 4, 8, 1),
])  # fmt: skip
def test_host_threads_that_share_the_records_of_a_piece(records: int, host_threads: int, scratch_threads: int, loops: int) -> None:
    """256 records for each at least, and scratch space for each of its threads."""
    stage = Stage(scratch_threads)
    fake(stage).run(SimpleNamespace(dispatcher=SimpleNamespace(threads=host_threads)), piece(records, records))
    assert stage.first == [8 * number for number in range(loops)] and len(stage.loops) == loops
    assert {(loop.inputs, loop.records, loop.count, loop.entry_bytes) for loop in stage.loops} == {(0x4000, 0x3000, records, 64)}
    assert len({loop.next for loop in stage.loops}) == 1


@pytest.mark.parametrize("count, new", [(0, True), (1, False), (0, False)])
def test_records_that_are_set_up_already(count: int, new: bool) -> None:
    stage = Stage()
    assert fake(stage).run(None, piece(count, 4, new)) == 0 and not stage.loops
