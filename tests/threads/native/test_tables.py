"""Binding tables that are read for dispatches that come again: which surface states they lead to, and where nothing can be read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.threads.native.tables import SurfaceStateReader
from softgen.threads.programs import DispatchProgram, load
from tests.gpgpu.job import dwords, vector_add
from tests.threads.workers.test_pool import recorded

PAGE = 0x1000
CODE = 0x40000  # of the job


def memory(*pages: int, bits: int = 48) -> tuple[AddressSpace, DispatchProgram]:
    """A space with a program and these pages, whose bytes are all other ones."""
    context, dispatch = recorded(vector_add("skl"))
    space = AddressSpace("tables", bits)
    space.map(CODE, MemfdBuffer(PAGE))
    space.write(CODE, context.space.read(CODE, PAGE))
    for number, page in enumerate(pages):
        space.map(page, MemfdBuffer(PAGE))
        space.write(page, bytes((7 * at + at // 256 + 101 * number) & 0xFF for at in range(PAGE)))
    return space, load(replace(context, space=space), dispatch)


@pytest.mark.parametrize("indices, entries, states", [
    ((), {}, []), ((0,), {0: 0x400}, [0x400]), ((3,), {3: 0x440}, [0x440]),
    ((0, 2, 5), {0: 0x500, 2: 0x400, 5: 0x500}, [0x500, 0x400, 0x500]),
])  # fmt: skip
@pytest.mark.parametrize("base", [0x200000, None])
def test_states_are_read_in_the_order_of_the_indices(base: int | None, indices: tuple[int, ...], entries: dict[int, int],
                                                     states: list[int]) -> None:  # fmt: skip
    """Tables and states are where the surface state base says; without one, they count from 0."""
    space, program = memory(base or 0)
    reader = SurfaceStateReader(space, {"dynamic": 0x3000} | ({"surface": base} if base else {}), program, 9.0, indices, 64)
    for table in (0x80, 0xA0):
        for index, entry in entries.items():
            space.write32((base or 0) + table + 4 * index, entry)
        assert reader.read(table) == b"".join(space.read((base or 0) + at, 64) for at in states)
    assert reader.size == 64 and reader.memory is space.table


@pytest.mark.parametrize("gen, entry, state", [(9.0, 0x43F, 0x400), (9.0, 0x47F, 0x440), (7.0, 0x43F, 0x420), (7.0, 0x41F, 0x400)])
def test_low_bits_of_an_entry_are_no_part_of_its_pointer(gen: float, entry: int, state: int) -> None:
    """Six of them since Gen8, five before."""
    space, program = memory(0x200000)
    space.write32(0x200080, entry)
    assert SurfaceStateReader(space, {"surface": 0x200000}, program, gen, (0,), 32).read(0x80) == space.read(0x200000 + state, 32)


@pytest.mark.parametrize("bits", [32, 40, 48])
def test_after_the_last_address_comes_the_first(bits: int) -> None:
    """For the table, its entries and the surface states."""
    last = (1 << bits) - PAGE
    space, program = memory(last, 0, bits=bits)
    reader = SurfaceStateReader(space, {"surface": last}, program, 9.0, (0, 3), 64)
    space.write(last + PAGE - 12, dwords(0x1400, 0, 0))
    space.write32(0, 0x40)
    assert reader.read(PAGE - 12) == space.read(0x400, 64) + space.read(last + 0x40, 64)
    space.write(0x20, dwords(0x1440, 0, 0, 0x80))
    assert reader.read(PAGE + 0x20) == space.read(0x440, 64) + space.read(last + 0x80, 64)
    space.write(0x61, dwords(0x1440, 0, 0, 0x80))
    assert reader.read(PAGE + 0x61) == space.read(0x440, 64) + space.read(last + 0x80, 64)  # to the byte: nothing is said of alignment


def test_what_is_not_mapped_is_no_state() -> None:
    """Neither a table nor what an entry leads to; what is mapped is read as before."""
    space, program = memory(0x200000)
    reader = SurfaceStateReader(space, {"surface": 0x200000}, program, 9.0, (0,), 64)
    space.write(0x200080, dwords(0x400, 0x1000))
    for table, found in ((0x80, True), (PAGE, False), (0x80, True), (0x84, False), (0x80, True)):
        assert reader.read(table) == (space.read(0x200400, 64) if found else None)


def test_another_program_in_memory_has_no_state() -> None:
    """As far as the program has been reached."""
    space, program = memory(0x200000)
    space.write32(0x200080, 0x400)
    program.line(program.start)
    reader, first = SurfaceStateReader(space, {"surface": 0x200000}, program, 9.0, (0,), 64), space.read(CODE, 16)
    space.write32(CODE + 16, 0)
    assert reader.read(0x80) == space.read(0x200400, 64)
    space.write(CODE, bytes(16))
    assert reader.read(0x80) is None
    space.write(CODE, first)
    assert reader.read(0x80) == space.read(0x200400, 64)
