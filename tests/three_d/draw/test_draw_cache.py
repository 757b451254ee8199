"""Kept records: the one of the draw before is used where only values differ that draws may differ in, and never where others do.

The state is that of the last draw of kbl-es2gears, with push constants and vertex buffers. A draw is repeated, something changes, and the
next draw must leave what a pipeline leaves that has seen nothing before; it must have the same record where only constants, addresses of
buffers or the place of the binding table have changed.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from softgen.bits import catalogue
from softgen.device.gpu import COMMANDS, GpuDevice
from softgen.errors import GpuFault
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.streamer.parser import Command
from softgen.threads.dispatcher import EngineDispatcher
from softgen.three_d.commands import primitive
from softgen.three_d.draw.draw_cache import LATEST, TRY_AGAIN, RecordCache
from softgen.three_d.draw.draw_record import DrawRecord
from softgen.three_d.state.constants import constant_ranges
from softgen.three_d.state.state import DrawState
from softgen.three_d.state.unit_state import binding_table
from softgen.trace.file import open_trace
from softgen.trace.replay import events
from softgen.trace.work import Work
from tests.conftest import SHARED, needs_shared
from tests.three_d.test_repeated_draws import Draws, merged, viewport

CAPTURE = SHARED / "traces" / "kbl-es2gears"
pytestmark = needs_shared("traces")
COPY = 0x7100_0000  # a page that is free
MOVED_BY = 1 << 40  # to addresses that are free
PAGE = 4096
Streamer = Any


class GearDraws(Draws):
    """The last draw of the capture, with a page of memory for copies."""

    def __init__(self, cs: Streamer, cmd: Any, name: str, threads: int = 1) -> None:
        super().__init__(cs, cmd, name)
        self.dispatcher = EngineDispatcher(name, threads=threads)
        assert isinstance(cs.space, AddressSpace)
        cs.space.map(COPY, MemfdBuffer(16 * PAGE, "copies"))

    @property
    def records(self) -> list[DrawRecord]:
        return list(self.kept.cache.records.values())

    def dwords(self, name: str, change: Callable[[list[int]], None]) -> None:
        """Latch a command with other dwords."""
        layout, dwords = self.cs.latched.dwords(name)
        change(dwords)
        self.cs.latched.note(Command(0, 0, 0, layout, dwords))

    def copied(self, address: int, size: int, at: int = COPY) -> None:
        self.cs.space.write(at, self.cs.space.read(address, size))

    def constants(self) -> tuple[int, int, int]:
        """Number, address and size of the vertex shader's push constants."""
        number, pointer, size = constant_ranges(self.cs.latched["3DSTATE_CONSTANT_VS"])[0]
        return number, pointer & (1 << self.cs.space.bits) - 1, size

    def point_at_copy(self) -> None:
        number, _, _ = self.constants()

        def change(dwords: list[int]) -> None:
            dwords[3 + 2 * number : 5 + 2 * number] = COPY, 0

        self.dwords("3DSTATE_CONSTANT_VS", change)

    def vertex_buffer(self) -> Any:
        return next(iter(self.cs.latched.by_index("3DSTATE_VERTEX_BUFFERS").values()))

    def table(self) -> int:
        return int(self.cs.bases["surface"] + binding_table(DrawState.of(self.cs), "PS"))


def scaled(draws: GearDraws, address: int) -> None:
    """Another matrix: its first value is halved."""
    (value,) = struct.unpack("<f", draws.cs.space.read(address, 4))
    draws.cs.space.write(address, struct.pack("<f", value / 2))


# -- changes that a record follows ------------------------------------------------------------------------------------------


def constants_written(draws: GearDraws) -> None:
    scaled(draws, draws.constants()[1])


def constants_moved(draws: GearDraws) -> None:
    _, address, size = draws.constants()
    draws.copied(address, size)
    scaled(draws, COPY)
    draws.point_at_copy()


def vertices_written(draws: GearDraws) -> None:
    buffer = draws.vertex_buffer()
    address = buffer.buffer_starting_address & (1 << draws.cs.space.bits) - 1
    draws.cs.space.write(address + draws.call.start_vertex * buffer.buffer_pitch, bytes(8))


def vertices_moved(draws: GearDraws) -> None:
    """A copy of the buffer, without its first vertices."""
    buffer = draws.vertex_buffer()
    address = buffer.buffer_starting_address & (1 << draws.cs.space.bits) - 1
    skipped = 3 * buffer.buffer_pitch
    draws.copied(address + skipped, min(buffer.buffer_size - skipped, 8 * PAGE))

    def change(dwords: list[int]) -> None:
        dwords[2:5] = COPY, 0, min(buffer.buffer_size - skipped, 8 * PAGE)

    draws.dwords("3DSTATE_VERTEX_BUFFERS", change)


def vertices_fewer(draws: GearDraws) -> None:
    """The buffer ends before the last vertices: they are zero."""
    buffer = draws.vertex_buffer()

    def change(dwords: list[int]) -> None:
        dwords[4] = (draws.call.start_vertex + 2) * buffer.buffer_pitch

    draws.dwords("3DSTATE_VERTEX_BUFFERS", change)


def other_call(draws: GearDraws) -> None:
    draws.call = draws.call._replace(vertices=max(draws.call.vertices // 2, 3))


def table_moved(draws: GearDraws) -> None:
    """The same table, elsewhere: the picture is the same, the header of threads differs."""
    table = draws.table()
    draws.copied(table, 64, table + 0x40)
    draws.command("3DSTATE_BINDING_TABLE_POINTERS_PS", pointer_to_binding_table=table - draws.cs.bases["surface"] + 0x40 >> 5)


def moved_base(draws: GearDraws, name: str) -> None:
    """The state behind a base is at another one; where it was, it is gone."""
    space, base = draws.cs.space, draws.cs.bases[name]
    for region in [region for region in space.regions() if base <= region.start < base + (1 << 32)]:
        space.map(region.start + MOVED_BY, MemfdBuffer(region.size, "moved"))
        space.write(region.start + MOVED_BY, space.read(region.start, region.size))
        space.write(region.start, bytes(region.size))
    draws.cs.latched.bases = {**draws.cs.bases, name: base + MOVED_BY}


def surfaces_moved(draws: GearDraws) -> None:
    moved_base(draws, "surface")


def blocks_moved(draws: GearDraws) -> None:
    moved_base(draws, "dynamic")


FOLLOWED = {change.__name__: change for change in (constants_written, constants_moved, vertices_written, vertices_moved, vertices_fewer,
                                                   other_call, table_moved, surfaces_moved, blocks_moved)}  # fmt: skip
SAME_PICTURE = {"table_moved", "surfaces_moved", "blocks_moved"}


# -- changes after which it is not used ----------------------------------------------------------------------------------------------


def other_entry(draws: GearDraws) -> None:
    """The table moves, and its first entry leads to a smaller surface."""
    surface, table = draws.cs.bases["surface"], draws.table()
    state = draws.cs.space.read32(table)
    moved = (state & ~63) + 0x2000
    draws.copied(surface + state, 64, surface + moved)
    table_moved(draws)
    draws.cs.space.write32(draws.table(), moved)
    draws.structure("RENDER_SURFACE_STATE", "surface", moved, height=31)


def longer_constants(draws: GearDraws) -> None:
    """Fewer constants: attributes come earlier in the payload."""
    number = draws.constants()[0]

    def change(dwords: list[int]) -> None:
        dwords[1 + number // 2] -= 1 << 16 * (number % 2)

    draws.dwords("3DSTATE_CONSTANT_VS", change)


def pitch(draws: GearDraws) -> None:
    def change(dwords: list[int]) -> None:
        dwords[1] = merged(catalogue.layout("VERTEX_BUFFER_STATE", 9), dwords[1], {"buffer_pitch": draws.vertex_buffer().buffer_pitch + 4})

    draws.dwords("3DSTATE_VERTEX_BUFFERS", change)


def topology(draws: GearDraws) -> None:
    draws.call = draws.call._replace(topology=1)


def kernel(draws: GearDraws) -> None:
    """The first instruction that writes the message of the render target: its destination becomes another register."""
    shader = draws.cs.latched["3DSTATE_PS"]
    starts = {name: getattr(shader, name) for name in shader._fields if name.startswith("kernel_start_pointer") and getattr(shader, name)}
    for start in starts.values():
        draws.cs.space.write(draws.cs.bases["instruction"] + start, draws.cs.space.read(draws.cs.bases["instruction"] + start + 16, 16))


def never_met(draws: GearDraws) -> None:
    """A command that no batch had sent before: polygon stipple, which masks most pixels."""
    pattern = catalogue.layout("3DSTATE_POLY_STIPPLE_PATTERN", 9)
    draws.cs.latched.note(Command(0, 0, 0, pattern, pattern.pack(row=[{"pattern": 0x1111_1111}] * 32)))
    draws.command("3DSTATE_WM", polygon_stipple_enable=1)


def other_viewport(draws: GearDraws) -> None:
    """The dynamic state base moves; the viewport that is there is smaller."""
    blocks_moved(draws)
    viewport(draws)


REFUSED = {change.__name__: change for change in (other_viewport, other_entry, longer_constants, pitch, topology, kernel, never_met)}


def executed(draw: Callable[[Streamer, Any], None], capture: Path = CAPTURE) -> None:
    """Execute the capture with another 3DPRIMITIVE."""
    trace = open_trace(capture)
    gpu = GpuDevice(trace.device, dispatcher=EngineDispatcher("t1", threads=1))
    gpu.interface = dataclasses.replace(gpu.interface, commands={**COMMANDS, "3DPRIMITIVE": draw})
    for event in events(trace):
        if isinstance(event, Work):
            gpu.execute(event)


@cache
def draw_count(capture: Path = CAPTURE) -> int:
    seen = list[int]()
    executed(lambda cs, cmd: seen.append(1), capture)
    return len(seen)


def at_the_last_draw(name: str, hook: Callable[[GearDraws], None], threads: int = 1, capture: Path = CAPTURE,
                     before: Callable[[Streamer, Any], None] = lambda cs, cmd: None) -> None:  # fmt: skip
    """Call a hook in the place of the last draw, and `before` in the place of others: if not told otherwise, they are not executed."""
    seen = list[int]()

    def draw(cs: Streamer, cmd: Any) -> None:
        seen.append(1)
        if len(seen) == draw_count(capture):
            hook(GearDraws(cs, cmd, name, threads))
        else:
            before(cs, cmd)

    executed(draw, capture)
    assert len(seen) == draw_count(capture)


@pytest.mark.covering(1)
@pytest.mark.parametrize("change", FOLLOWED)
@pytest.mark.parametrize("name", ["t1", "auto"])
def test_a_record_takes_values_that_draws_differ_in(name: str, change: str) -> None:
    def check(draws: GearDraws) -> None:
        first = draws.again()
        assert first and draws.again() == first
        (record,) = draws.records
        FOLLOWED[change](draws)
        after = draws.again()
        assert draws.records == [record]
        assert record.stages[-1]._plan.payload.header[4] == binding_table(DrawState.of(draws.cs), "PS")  # r0.4 of threads
        assert (after == first) == (change in SAME_PICTURE)
        assert after == draws.fresh() == draws.again()

    at_the_last_draw(name, check)


@pytest.mark.behaviour("G45-VF-15", "BDW-VF-09", "KBL-VF-17", shows="action")
@pytest.mark.parametrize("gpu", ["g45", "ivb", "hsw", "bdw", "kbl", "icl"])
def test_vertices_beyond_their_buffer_are_zero_of_kept_records(gpu: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However commands say where it ends: by the last index, the last byte, or the size; and where it ends before it begins."""

    def check(draws: GearDraws) -> None:
        buffer, gen = draws.vertex_buffer(), draws.cs.generation.number
        start, pitch, page = int(buffer.buffer_starting_address), int(buffer.buffer_pitch), catalogue.layout("VERTEX_BUFFER_STATE", gen)
        count = draws.call.start_vertex + (2 if gen < 7 else 1)  # 0 as the last index is none

        def shortened(**end: int) -> dict[int, bytes]:
            def change(dwords: list[int]) -> None:
                held = merged(page, sum(dword << 32 * n for n, dword in enumerate(dwords[1:5])), end)
                dwords[1:5] = (held >> 32 * n & 0xFFFFFFFF for n in range(4))

            draws.dwords("3DSTATE_VERTEX_BUFFERS", change)
            found = draws.again()
            assert len(draws.records) == 1
            with monkeypatch.context() as patch:
                patch.setattr(RecordCache, "ready", lambda self, cs: False)
                assert draws.fresh() == found
            return found

        whole, ends = draws.again(), [{"max_index": count - 1}] if gen < 7 else [{"buffer_size": count * pitch}, {"buffer_size": 0}]
        if gen in (7, 7.5):
            ends = [{"end_address": start + count * pitch - 1}, {"end_address": start - 1}, {"end_address": start - 9}]
        found = [shortened(**end) for end in ends]
        assert whole and whole not in found and found[1:] == found[1:2] * len(found[1:])

    at_the_last_draw("t0", check, capture=SHARED / "traces" / f"{gpu}-gles-tri", before=primitive)


@pytest.mark.behaviour("BDW-CS-09", shows="action")
@pytest.mark.parametrize("change", REFUSED)
def test_a_record_is_not_used_for_other_state(change: str) -> None:
    def check(draws: GearDraws) -> None:
        first = draws.again()
        assert first and draws.again() == first
        REFUSED[change](draws)
        after = draws.again()
        assert after != first
        assert after == draws.fresh() == draws.again()

    at_the_last_draw("t1", check)


def test_a_record_whose_constants_are_gone_is_forgotten() -> None:
    """The draw faults as one without a record does; those of other state are still found, and one is made again later."""

    def check(draws: GearDraws) -> None:
        first = draws.again()
        constants_moved(draws)
        moved, data = draws.again(), draws.cs.space.read(COPY, PAGE)
        assert len(draws.records) == 1 and moved != first
        draws.cs.space.unmap(COPY, 16 * PAGE)
        with pytest.raises(GpuFault, match=f"{COPY:#x}"):
            draws.again()
        assert not draws.records
        draws.cs.space.map(COPY, MemfdBuffer(16 * PAGE, "copies"))
        draws.cs.space.write(COPY, data)
        assert draws.again() == moved and len(draws.records) == 1

    at_the_last_draw("t1", check)


def test_a_draw_that_follows_the_same_one_as_before_is_found_at_once() -> None:
    """Frames repeat the order of their draws: in the third, one comparison finds each, and the order of the kept draws stays as it is."""

    def check(draws: GearDraws) -> None:
        kept, compared, order = draws.kept.cache, list[int](), list[list[int]]()
        for _ in range(3):
            for number in (1, 2, 3):
                draws.dwords("3DSTATE_VF", lambda dwords, number=number: dwords.__setitem__(1, number))  # type: ignore[misc]
                draws.again()
                compared.append(int(kept._now.compared))
                order.append(list(kept._pointers[:3]))
        assert len(draws.records) == 3 and compared[3:] == [4, 4, 4, 1, 1, 1] and order[5:] == [order[5]] * 4

    at_the_last_draw("t1", check)


def test_records_are_kept_where_that_pays() -> None:
    """Not where state is another one with each draw; again, when the same state comes back."""

    def check(draws: GearDraws) -> None:
        def other_state(number: int) -> None:
            draws.dwords("3DSTATE_VF", lambda dwords: dwords.__setitem__(1, number))  # the cut index, of a draw without indices

        first = draws.again()
        for number in range(1, 3 * LATEST):
            other_state(number)
            assert draws.again() == first
        assert LATEST <= len(draws.records) <= LATEST + 2 * LATEST // TRY_AGAIN
        for _ in range(TRY_AGAIN + 1):
            assert draws.again() == first
        made = len(draws.records)
        other_state(3 * LATEST)
        assert draws.again() == first and len(draws.records) == made + 1

    at_the_last_draw("t1", check)
