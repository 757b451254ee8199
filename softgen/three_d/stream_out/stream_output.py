"""Stream output: from its state to a plan for stream_output.c, which writes vertices to buffers.

Reads   3DSTATE_STREAMOUT 3DSTATE_SO_DECL_LIST 3DSTATE_SO_BUFFER SO_WRITE_OFFSET0 SO_WRITE_OFFSET1 SO_WRITE_OFFSET2 SO_WRITE_OFFSET3
Writes  buffers; SO_WRITE_OFFSET, SO_NUM_PRIMS_WRITTEN and SO_PRIM_STORAGE_NEEDED of each buffer and stream

What state says of buffers is not part of a kept record: it is taken at the first objects of each draw.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from typing import NamedTuple

from softgen.bits.record import Record
from softgen.bits.units import DWORD, DWORD_MASK
from softgen.command import CommandStreamer
from softgen.errors import DecodeError
from softgen.library import load
from softgen.memory import guard
from softgen.three_d.draw.draw_structures import DrawReason, StageStruct
from softgen.three_d.draw.stage import BuiltRecord, Stage, WalkedDraw
from softgen.three_d.state.fields import UnitFields
from softgen.three_d.state.state import DrawState
from softgen.three_d.state.stream_offsets import store_offset
from softgen.three_d.stream_out import stream_output_h
from softgen.three_d.stream_out.stream_output_h import (
    STREAM_BUFFERS,
    STREAM_COPIES,
    STREAM_ZEROS,
    STREAMS,
    StreamBuffer,
    StreamCopy,
    StreamPlan,
)
from softgen.three_d.structures import VertexArray

SLOT, UNIT = 16, 32  # bytes; SLOT: of a register, UNIT: of read offsets and lengths
COMPONENTS = 4
MOST_ENTRIES = STREAM_COPIES // STREAMS // 2  # of a stream (BDW 10686); one may be two pieces
HOLES = (0, 1, 3, 7, 15)  # component masks that a hole may have (KBL 24413-24418)
FORCE_OFF, FORCE_ON = 2, 3  # of force_rendering
BUFFER, OFFSET = "3DSTATE_SO_BUFFER", "SO_WRITE_OFFSET{}"
BY = "stream output"  # what accesses memory, in messages


# -- what goes on to CLIP ------------------------------------------------------------------------------------------------


def stops(state: DrawState) -> bool:
    """Whether no object goes on to CLIP: what the API says, or against it what is forced; also while nothing is streamed out (BDW
    10883-10903, 10996-11004)."""
    unit = state.get("3DSTATE_STREAMOUT")
    if unit is None:
        return False
    forced = getattr(unit, "force_rendering", 0)
    return bool(unit.rendering_disable) if forced not in (FORCE_OFF, FORCE_ON) else forced == FORCE_OFF


# -- declarations --------------------------------------------------------------------------------------------------------


class Dword(NamedTuple):
    """A dword of a vertex that is written: to which buffer, where after the vertex's first byte, and from where in the entry."""

    buffer: int
    place: int
    source: int


def declared(state: DrawState, stream: int) -> list[Record]:
    """The declarations of a stream; others that are in the list stand there for longer streams (BDW 10675-10695)."""
    held = state.command("3DSTATE_SO_DECL_LIST")
    count, entries = int(held.num_entries[stream].count), held.entry
    if count > min(len(entries), MOST_ENTRIES):
        raise DecodeError(f"3DSTATE_SO_DECL_LIST: num_entries {count} of stream {stream}; there are {len(entries)}, at most {MOST_ENTRIES}")
    return [entry.stream[stream] for entry in entries[:count]]


def dwords_of(state: DrawState, stream: int, end: int) -> Iterator[Dword]:
    """What declarations write, one after another; `end`: of a vertex entry. Each buffer has a pointer, which starts at the vertex's first
    byte (KBL 24400-24468)."""
    unit = state.command("3DSTATE_STREAMOUT").stream[stream]
    first = UNIT * int(unit.vertex_read_offset)
    end = min(end, first + UNIT * (int(unit.vertex_read_length) + 1))
    pointers = [0] * STREAM_BUFFERS
    for number, declaration in enumerate(declared(state, stream)):
        mask, buffer = int(declaration.component_mask), int(declaration.output_buffer_slot)
        where = f"3DSTATE_SO_DECL_LIST: entry {number} of stream {stream}"
        if declaration.hole_flag:
            if mask not in HOLES:
                state.warn(f"{where}: hole_flag with component_mask {mask:#x} (KBL 24413-24418)")
            pointers[buffer] += DWORD * mask.bit_count()
            continue
        components = [n for n in range(COMPONENTS) if mask >> n & 1]
        if components and len(components) != components[-1] - components[0] + 1:
            state.warn(f"{where}: component_mask {mask:#x}, which is not contiguous (KBL 24459-24460)")
        for component in components:
            source = first + SLOT * int(declaration.register_index) + DWORD * component
            if source >= end:
                state.warn(f"{where}: register_index {declaration.register_index}, which is past the vertex (BDW 11059-11064)")
            yield Dword(buffer, pointers[buffer], source if source < end else STREAM_ZEROS)
            pointers[buffer] += DWORD


def copies_of(dwords: Iterator[Dword]) -> Iterator[StreamCopy]:
    """Consecutive dwords in one piece."""
    def origin(numbered: tuple[int, Dword]) -> tuple[int, int, int]:
        number, (buffer, place, source) = numbered
        return buffer, place - DWORD * number, source if source == STREAM_ZEROS else source - DWORD * number

    for _, run in groupby(enumerate(dwords), origin):
        (_, first), *rest = run
        yield StreamCopy(first.buffer, first.place, first.source, DWORD * (1 + len(rest)))


def stream_plan(state: DrawState, entry_bytes: int) -> StreamPlan:
    """The plan of a draw, but for its buffers."""
    unit = state.command("3DSTATE_STREAMOUT")
    plan = StreamPlan(enabled=unit.enable, trailing=unit.reorder_mode, rendered=unit.render_stream_select, stops=stops(state))
    if not unit.enable:
        return plan
    selects, made = state.command("3DSTATE_SO_DECL_LIST").stream_to_buffer_selects, 0
    for stream in range(STREAMS):
        plan.selected[stream] = selects[stream].buffer_mask
        for copy in copies_of(dwords_of(state, stream, entry_bytes)):
            if not plan.selected[stream] >> copy.buffer & 1:
                state.warn(f"3DSTATE_SO_DECL_LIST: stream_to_buffer_selects {plan.selected[stream]:#x} of stream {stream}, which writes to "
                           f"buffer {copy.buffer} (BDW 10651-10655)")  # fmt: skip
                plan.selected[stream] |= 1 << copy.buffer
            plan.extent[copy.buffer] = max(plan.extent[copy.buffer], copy.place + copy.bytes)
            plan.copies[made] = copy
            made += 1
        plan.first[stream + 1] = made
    return plan


# -- buffers -------------------------------------------------------------------------------------------------------------


def stream_buffer(cs: CommandStreamer, number: int) -> StreamBuffer:
    """A buffer as commands and registers have it now. One that is not enabled or not bound has no bytes (BDW 10476-10486, 11100-11104)."""
    made, buffer = StreamBuffer(offset=cs.get(OFFSET.format(number))), cs.latched.by_index(BUFFER).get(number)
    if buffer is None:
        return made
    fields = UnitFields(cs.generation.number, ((BUFFER, buffer), ("3DSTATE_STREAMOUT", cs.latched["3DSTATE_STREAMOUT"].buffer[number])))
    made.pitch = fields.surface_pitch
    if fields.so_buffer_enable and made.pitch:
        made.address, made.size = buffer.surface_base_address, max(buffer.surface_bytes, 0)
    return made


@cache
def _loaded() -> ctypes.CDLL:
    return load("softgen.three_d._pipeline", stream_output_h)


class StreamOutputStage(Stage):
    """Vertices of objects, written to buffers; and which objects go on."""

    name, run, reports = "SOL", "stage_stream_output", True
    _begun = False  # the draw under way has come as far as this stage

    def build(self, record: BuiltRecord, into: StageStruct) -> bool:
        _loaded()
        unit = record.state.get("3DSTATE_STREAMOUT")
        self.ends = stops(record.state)
        if unit is None or not (unit.enable or self.ends):
            return False
        stride = int(VertexArray.from_address(record.last_chunk.vertices).stride)
        self._plan, self._counts = stream_plan(record.state, stride), bool(unit.statistics_enable)
        into.plan = ctypes.addressof(self._plan)
        return True

    def answer(self, walk: WalkedDraw, why: int | None) -> None:
        if why != DrawReason.STREAM_BUFFERS:
            walk.fault.ip = 0  # no instruction's
            raise guard.fault(walk.fault, walk.cs.space, lambda ip: BY)
        plan, self._begun = self._plan, True
        for number in range(STREAM_BUFFERS):
            plan.buffers[number] = stream_buffer(walk.cs, number)
        for stream in range(STREAMS):
            plan.written[stream] = plan.needed[stream] = 0

    def report(self, cs: CommandStreamer) -> None:
        """Advance registers: where the next draw goes on in buffers, and how many primitives there were."""
        if not self._begun:  # nothing came as far as this stage
            return
        plan, self._begun = self._plan, False
        for number, buffer in enumerate(plan.buffers):
            cs.set(OFFSET.format(number), buffer.offset & DWORD_MASK)
            store_offset(cs, number)
        for stream in range(STREAMS) if self._counts else ():
            cs.add(f"SO_NUM_PRIMS_WRITTEN{stream}", plan.written[stream])
            cs.add(f"SO_PRIM_STORAGE_NEEDED{stream}", plan.needed[stream])
