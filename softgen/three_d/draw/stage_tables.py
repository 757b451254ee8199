"""Binding tables of a kept record's stages: entries that plans and units were made from, wherever the tables are.

Reads   3DSTATE_BINDING_TABLE_POINTERS_VS 3DSTATE_BINDING_TABLE_POINTERS_PS 3DSTATE_BINDING_TABLE_POOL_ALLOC BINDING_TABLE_STATE
Writes  StageTable TableEntry
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from softgen.threads.bindings import BoundUnits
from softgen.threads.dispatch import ThreadDispatch
from softgen.three_d.draw.draw_structures import Base, StageTable, TableEntry
from softgen.three_d.pixels.pixel_state import HEADER_DWORDS
from softgen.three_d.state.latched_state import LatchedBytes, NotKept
from softgen.three_d.state.plan_cache import Notes
from softgen.three_d.state.state import DrawState
from softgen.three_d.state.state_pointers import base_of
from softgen.three_d.state.unit_state import binding_table


class TablePlace(NamedTuple):
    """The pointer of a binding table: the offset of its dword, its bits and their value, and the bytes that 1 of it is worth."""

    offset: int
    mask: int
    pointer: int
    scale: int


class KeptTables(Protocol):
    """What reads binding tables while a record is built (RecordKeeper)."""

    state: DrawState
    notes: Notes
    latches: LatchedBytes
    bound: dict[str, BoundUnits]
    dispatches: dict[str, ThreadDispatch]
    headers: dict[str, int]  # addresses of r0 in plans of payloads, by stage

    def header_pointer(self, field: str) -> tuple[int, int] | None: ...


class StageTables:
    """The binding tables of one record."""

    def __init__(self, keeper: KeptTables) -> None:
        self._keeper, self._kept = keeper, dict[str, Any]()
        self._unused = ctypes.c_uint32()  # takes the pointer where headers have none
        self.tables: dict[str, int] = {}  # offsets from the surface state base, by stage
        self._places: dict[str, TablePlace] = {}
        self._made: dict[str, StageTable] = {}

    def read_alone(self, state: DrawState, stage: str) -> None:
        """The table of a stage without threads, of which plans have read entries."""
        unused = self._kept["header"] = (ctypes.c_uint32 * HEADER_DWORDS)()
        self._keeper.headers[stage], self.tables[stage] = ctypes.addressof(unused), binding_table(state, stage)

    def complete(self) -> None:
        """After the record was built: stages with units have tables."""
        self.tables |= {stage: dispatch.binding_table for stage, dispatch in self._keeper.dispatches.items()}
        self._places = {stage: self._place(stage) for stage in self.tables}

    def compared(self) -> list[StageTable]:
        """What is compared of each table, with all that was read of it until now."""
        return [self._table(stage) for stage in self.tables]

    def _table(self, stage: str) -> StageTable:
        keeper, array = self._keeper, self._entries(stage)
        header, place, offset = keeper.headers[stage], self._places[stage], self.tables[stage]
        latches = keeper.latches
        self._kept[stage] = array
        pointer = latches.layout("BINDING_TABLE_STATE").field("surface_state_pointer")
        place_in_header = keeper.header_pointer("binding_table_pointer")
        header = header + place_in_header[0] if place_in_header is not None else ctypes.addressof(self._unused)
        made = self._made[stage] = StageTable(*place, offset, len(array), ctypes.addressof(array), header,
                                              (1 << pointer.high + 1) - (1 << pointer.low))  # fmt: skip
        return made

    def _entries(self, stage: str) -> ctypes.Array[TableEntry]:
        """Entries with what was read of their surface states, by plans or units."""
        keeper = self._keeper
        base, wrap, notes = base_of(keeper.state, Base.SURFACE), keeper.latches.wrap, keeper.notes
        read = {address: data for (of, address, _), data in notes.surfaces.items() if of == stage}
        entries = {address - table >> 2: data for (of, address), (table, data) in notes.entries.items() if of == stage}
        found, led, page = {}, set[int](), keeper.latches.layout("BINDING_TABLE_STATE")
        for index, data in entries.items():
            address = base + page.raw(memoryview(data).cast("I")).surface_state_pointer & wrap
            found[index], led = (data, read.get(address, b"")), led | {address}
        if read.keys() - led:
            raise NotKept("a surface state that no entry leads to")
        if stage in keeper.bound:
            resolved = keeper.bound[stage].dispatch.resolved
            found |= {index: (data, resolved.surfaces.get(index, (0, b""))[1]) for index, data in resolved.entries.items()}
        made = [TableEntry(index, int.from_bytes(data, "little"), len(surface), surface) for index, (data, surface) in found.items()]
        self._kept[f"{stage} entries"] = made
        return (TableEntry * len(made))(*made)

    def _place(self, stage: str) -> TablePlace:
        """The pointer of a stage's table; none where no command has set it."""
        name, latches, state = f"3DSTATE_BINDING_TABLE_POINTERS_{stage}", self._keeper.latches, self._keeper.state
        command, pool = state.get(name), state.get("3DSTATE_BINDING_TABLE_POOL_ALLOC")
        if command is None or not command.pointer_to_binding_table:
            return TablePlace(0, 0, 0, 0)  # compared whole
        scale = command.pool_offset // command.pointer_to_binding_table if pool is not None and pool.binding_table_pool_enable else 1
        pointer = latches.pointer(latches.layout(name).field("pointer_to_binding_table"), latches.place(name).offset)
        return TablePlace(pointer.offset, pointer.mask, command.pointer_to_binding_table, scale)

    def now_compared(self) -> Iterator[tuple[str, int, StageTable, ctypes.Array[TableEntry]]]:
        """Of each stage: where its table is now, and what is compared of it."""
        for stage in self.tables:
            yield stage, self.now(stage), self._made[stage], self._kept[stage]

    def read_by_plans(self, stage: str) -> set[int]:
        """The entries that plans were made from."""
        return {address - table >> 2 for (of, address), (table, _) in self._keeper.notes.entries.items() if of == stage}

    def now(self, stage: str) -> int:
        """Where commands say that the table of a stage is: its offset."""
        place = self._places[stage]
        pointer = self._keeper.latches.latched.raw(place.offset, 1)[0] & place.mask
        return self.tables[stage] + (pointer - place.pointer) * place.scale
