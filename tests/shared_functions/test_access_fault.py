"""Faults of messages as they are reported: the first byte that is not mapped, on the interpreter and in compiled code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from softgen.errors import GpuFault, SoftgenError
from softgen.lanes.llvm.access import ATOMIC, BLOCK, CONTIGUOUS, SIZE_SHIFT, TABLE, WIDE
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.shared_functions.access_fault import explain
from softgen.shared_functions.context import ContextHead
from tests.shared_functions.sending import BOUND, DATA, PAGE, STATELESS, Bench, header

END = DATA + PAGE  # nothing is mapped from here on


@dataclass
class Faulting(Bench):
    """A surface of two pages, the second of which is not there; faults of both machines are kept."""

    size: int = 2 * PAGE
    faults: list[SoftgenError] = field(default_factory=list)

    def _attempt(self, run: Callable[[], object]) -> SoftgenError | None:  # type: ignore[override]
        found = Bench._attempt(run)
        self.faults += [] if found is None else [found]
        return found


def faults(name: str, *parts: Any, **fields: Any) -> list[tuple[int, str, str]]:
    """Address, access and reason of the fault on the interpreter and of the one in compiled code."""
    bench = Faulting(general=DATA)
    with pytest.raises(GpuFault):
        bench.send(name, *parts, **fields)
    assert bench.compiled == 1
    return [(fault.address, fault.access, fault.why) for fault in bench.faults if isinstance(fault, GpuFault)]


@pytest.mark.covering(2)
@pytest.mark.parametrize("before", [16, 112, 0, -16])
@pytest.mark.parametrize("what", ["read", "write"])
@pytest.mark.parametrize("place", ["a surface", "an address", "the general base"])
def test_a_block_is_at_fault_at_the_first_byte_that_is_not_mapped(place: str, what: str, before: int) -> None:
    """Of eight OWords that begin so many bytes before the end of what there is: the end, or where they begin."""
    at = PAGE - before
    name, top, index = {"a surface": ("oword_block", header(d2=at // 16), 0),
                        "an address": ("a64_oword_block", header(d0=DATA + at), STATELESS),
                        "the general base": ("oword_block", header(d2=at // 16), STATELESS)}[place]  # fmt: skip
    data = [np.arange(32, dtype=np.uint32)] if what == "write" else []
    found = faults(f"{name}_{what}", top, *data, answer=4 * (what == "read"), data_blocks="8_owords", binding_table_index=index)
    assert [each[:2] for each in found] == [(END + max(-before, 0), what)] * 2
    assert found[1][2].startswith("not mapped") and "lane" not in found[1][2], "a block has no lanes"


@pytest.mark.parametrize(("at", "lane"), [
    (np.arange(8) * 4 + PAGE - 12, 3), (np.full(8, PAGE + 8), 1), (np.array([0, 64, PAGE + 40, 4, PAGE + 8, 8, 12, PAGE]), 2)])  # fmt: skip
@pytest.mark.parametrize("what", ["read", "write"])
@pytest.mark.parametrize("place", ["a surface", "an address"])
def test_lanes_are_at_fault_at_the_lowest_one_that_is_not_mapped(place: str, what: str, at: np.ndarray[Any, Any], lane: int) -> None:
    """Contiguous, uniform and divergent ones; lane 0 is off."""
    addresses = at.astype(np.uint32) if place == "a surface" else (at + DATA).astype(np.uint64)
    name = "untyped_surface" if place == "a surface" else "a64_untyped_surface"
    data = [np.arange(8, dtype=np.uint32)] if what == "write" else []
    found = faults(f"{name}_{what}", addresses, *data, answer=int(what == "read"), simd_mode="simd8", channel_mask="r", width=8, mask=0xFE,
                   binding_table_index=0 if place == "a surface" else STATELESS)  # fmt: skip
    assert found == [(DATA + int(at[lane]), what, f"not mapped (lane {lane})")] * 2


@pytest.mark.parametrize(("place", "lane"), [
    (0xFFF, None), (0x1000, 0), (0x1003, 0), (0x1004, 1), (0x100B, 2), (0x100C, None), (0x1010, 4), (0x1014, None)])  # fmt: skip
def test_without_a_space_the_lane_that_holds_the_byte_is_named(place: int, lane: int | None) -> None:
    """Of contiguous dwords; lane 3 is off."""
    head = ContextHead(mask=0b10111 | TABLE | CONTIGUOUS | 4 << SIZE_SHIFT, base=0x1000)
    found = explain(head, 0x7000, place, "read", None, "a kernel")
    assert (found.address, found.access, found.why) == (place, "read", "not mapped" if lane is None else f"not mapped (lane {lane})")


@pytest.mark.parametrize(("kind", "base", "offsets"), [
    (TABLE | WIDE, 0x2000, [-0x1000, -0xFF0, 0x1008, -0xFFC]),  # of a base that is beyond them
    (TABLE | WIDE, (1 << 64) - 0x1000, [0x2000, 0x2010, 0x10, 0x2004]), (TABLE, 0x800, [0x800, 0x810, 0x1000, 0x804]),
])  # fmt: skip
def test_addresses_of_lanes_wrap(kind: int, base: int, offsets: list[int]) -> None:
    """Divergent dwords; the last lane's is the byte that is missing."""
    head = ContextHead(mask=0b1111 | kind | 4 << SIZE_SHIFT, base=base)
    held = np.array([offset & (1 << 64) - 1 for offset in offsets], np.uint64).astype(np.uint64 if kind & WIDE else np.uint32)
    memoryview(head.offsets).cast("B")[: held.nbytes] = held.tobytes()
    for place, lane in ((0x1005, 3), (0x1001, 0), (0x1013, 1), (0x1008, None)):
        found = explain(head, 0x7000, place, "read", None, "a kernel")
        assert found.why == ("not mapped" if lane is None else f"not mapped (lane {lane})")


def test_the_lane_of_an_address_that_is_not_canonical_is_named() -> None:
    """As the program has it: the sum of base and offset in 64 bits."""
    head = ContextHead(mask=0b11 | TABLE | WIDE | 4 << SIZE_SHIFT, base=0xFFFF_0000_0000_0000)
    memoryview(head.offsets).cast("B")[:16] = np.array([0x1_0000_0000_1000, 0x1_8000_0000_0000], np.uint64).tobytes()
    found = explain(head, 0x8000_0000_0000, None, "write", None, "a kernel")
    assert (found.address, found.why) == (0x8000_0000_0000, "not a canonical address (lane 1)")


@pytest.mark.parametrize("kind, access", [(ATOMIC, "atomic"), (0, "write")])
@pytest.mark.parametrize("space", [None, AddressSpace("empty")], ids=["no space", "a space"])
@pytest.mark.parametrize("place", [None, 0x1004])
def test_an_atomic_is_called_one(kind: int, access: str, space: AddressSpace | None, place: int | None) -> None:
    """Whether the code refused its address or nothing was there; for the host it is a write."""
    head = ContextHead(mask=0b11 | TABLE | CONTIGUOUS | 4 << SIZE_SHIFT | kind, base=0x1000)
    found = explain(head, 0x8000_0000_0000, place, "write", space, "a kernel")
    assert (found.access, found.space) == (access, space.name if space else "")


@pytest.mark.parametrize(("what", "base", "named"), [
    (0b11, 0x1FFC, True), (0b11, 0x2FFC, True), (0b11, 0x3000, False), (0b11, 0x1FF8, False), (0, 0x2000, False),
    (BLOCK, 0x1FFD, True), (BLOCK, 0x1FFC, False), (BLOCK, 0x2FFF, True), (BLOCK, 0x3000, False),
    (0b11, 0x5_0000_1FFC, True), (0b11, 0x5_0000_3000, False)])  # fmt: skip  # where nothing is mapped, low bits are all that is known
def test_a_note_of_another_access_does_not_name_the_instruction(what: int, base: int, named: bool) -> None:
    """Memory that was mapped for certain leaves none: where it is gone, what is left is of an access to other pages."""
    kind = TABLE | 4 << SIZE_SHIFT | (what if what == BLOCK else what | CONTIGUOUS | ATOMIC)
    found = explain(ContextHead(mask=kind, base=base), 0x7000, 0x2800, "read", None, "an instruction")
    atomic = named and what != BLOCK
    assert (found.by, found.access, found.address) == ("an instruction" if named else "", "atomic" if atomic else "read", 0x2800)


def test_where_the_note_is_of_another_access_the_byte_that_the_host_noticed_is_named() -> None:
    """The last one of a page, which its space has: what lies behind it was not touched."""
    space = AddressSpace("gone")
    space.map(0x4000, MemfdBuffer(PAGE, "held"))
    head = ContextHead(mask=TABLE | CONTIGUOUS | 0b11 | 4 << SIZE_SHIFT, base=0x1000)
    found = explain(head, 0x7000, 0x4FFF, "write", space, "an instruction")
    assert (found.address, found.access, found.space, found.by) == (0x4FFF, "write", "gone", "")
    assert "lane" not in found.why


@dataclass
class ReadOnly(Faulting):
    """Two pages, the second of which is mapped read-only."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.space.map(END, MemfdBuffer(PAGE, "constants"), writable=False)


@pytest.mark.parametrize("name", ["untyped_surface_write", "byte_scattered_write", "untyped_atomic"])
@pytest.mark.parametrize(("at", "lane"), [
    (np.arange(8) * 4 + PAGE - 12, 3), (np.array([0, 64, PAGE + 40, 4, PAGE + 8, 2 * PAGE + 4, 12, PAGE]), 2)])  # fmt: skip
def test_writes_are_at_fault_at_the_lowest_lane_that_is_read_only(name: str, at: np.ndarray[Any, Any], lane: int) -> None:
    """The host names any; a page that is not mapped at all counts no more than one that is read-only."""
    fields = {"untyped_surface_write": {"channel_mask": "r"}, "byte_scattered_write": {"data_size": "dword"},
              "untyped_atomic": {"operation": "add"}}[name]  # fmt: skip
    bench = ReadOnly(size=3 * PAGE)
    with pytest.raises(GpuFault):
        bench.send(name, at.astype(np.uint32), np.arange(8, dtype=np.uint32), simd_mode="simd8", width=8, **fields, **BOUND)
    assert bench.compiled == 1
    access = "atomic" if name == "untyped_atomic" else "write"
    assert [(fault.address, fault.access) for fault in bench.faults if isinstance(fault, GpuFault)] == [(DATA + int(at[lane]), access)] * 2


@pytest.mark.parametrize("before", [0, 16, 112])
def test_a_block_is_at_fault_at_its_first_byte_that_is_read_only(before: int) -> None:
    """Of eight OWords, which hosts store in any order."""
    bench = ReadOnly()
    with pytest.raises(GpuFault):
        bench.send("oword_block_write", header(d2=(PAGE - before) // 16), np.arange(32, dtype=np.uint32), data_blocks="8_owords", **BOUND)
    assert [fault.address for fault in bench.faults if isinstance(fault, GpuFault)] == [END] * 2 and bench.compiled == 1
