"""Pointers of a kept record's state, where units read blocks that commands point to: what was read through each of them.

    pointers = StatePointers(latches, state)
    pointers.collect(notes, bound)                    # what to compare, at the places where it was read
    pointers.follow(state)                            # drivers have moved it: the same, at the places where it is now

Drivers write unit states, viewports, samplers, binding tables and surface states anew for every batch, mostly the same ones. So what a
pointer leads to is compared, and not the pointer (draw_pointers.c).

Reads   3DSTATE_PIPELINED_POINTERS 3DSTATE_BINDING_TABLE_POINTERS VS_STATE CLIP_STATE SF_STATE WM_STATE COLOR_CALC_STATE CLIP_VIEWPORT
        SF_VIEWPORT CC_VIEWPORT SAMPLER_STATE SAMPLER_BORDER_COLOR_STATE BINDING_TABLE_STATE RENDER_SURFACE_STATE
Writes  StatePointer PointedRange PointedBits
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from softgen.bits.units import DWORD_MASK
from softgen.shared_functions.unit import DispatchBindings
from softgen.three_d.draw.draw_structures import MOST_POINTERS, Base, PointedBits, PointedRange, StatePointer
from softgen.three_d.state.latched_state import LatchedBytes, NotKept
from softgen.three_d.state.plan_cache import ENTRY, Notes
from softgen.three_d.state.state import DrawState
from softgen.three_d.state.unit_state import BLOCKS

COMMAND, TABLES = "3DSTATE_PIPELINED_POINTERS", "3DSTATE_BINDING_TABLE_POINTERS"
UNITS = {stage: BLOCKS[stage][:2] for stage in ("VS", "CLIP", "SF", "PS")} | {"CC": ("pointer_to_color_calc_state", "COLOR_CALC_STATE")}
VIEWPORTS = {"CLIP": ("clip_viewport_pointer", "CLIP_VIEWPORT"), "SF": ("sf_viewport_pointer", "SF_VIEWPORT"),
             "CC": ("cc_viewport_pointer", "CC_VIEWPORT")}  # fmt: skip
SAMPLED, SAMPLERS, MOST_VIEWPORTS = ("VS", "PS"), 16, 16
UNIT = ""  # reader of ranges: plans; others are stages, for their messages
ROOT = -1

Ranges = dict[tuple[int, int], bytes]


@dataclass
class FollowedPointer:
    """A pointer: where it is, where it leads now, and what may be read through it."""

    parent: int  # number of the pointer that leads to it, or ROOT
    offset: int  # as StatePointer has it
    mask: int
    base: Base
    address: int
    size: int  # of a structure
    readers: tuple[str, ...] = (UNIT,)
    count: int = 1  # structures that follow one another
    compared: int = 1  # those of them that are compared
    inner: dict[int, int] = field(default_factory=dict)  # offsets and masks of pointers in what it leads to

    def number(self, reader: str, address: int, size: int, start: int) -> int | None:
        """Which of the structures a range is, if the pointer leads to `start`."""
        if size != self.size or reader not in self.readers:
            return None
        number, rest = divmod(address - start, size)
        return number if not rest and 0 <= number < self.count else None

    def covers(self, reader: str, address: int, size: int) -> bool:
        """Whether a range is among what is compared."""
        number = self.number(reader, address, size, self.address)
        return number is not None and number < self.compared


class Collected(NamedTuple):
    """What is compared, and ranges that no pointer leads to."""

    pointers: list[StatePointer]
    ranges: list[PointedRange]
    bits: list[PointedBits]
    elsewhere: Ranges


class StatePointers:
    """The pointers of one record."""

    def __init__(self, latches: LatchedBytes, state: DrawState) -> None:
        self.latches, self.state = latches, state
        self.pointers: list[FollowedPointer] = []
        self.names: dict[str, int] = {}  # numbers of pointers
        self._read: dict[str, Ranges] = {}

    # -- collecting ------------------------------------------------------------------------------------------------------------------

    def collect(self, notes: Notes, bound: Mapping[str, DispatchBindings]) -> Collected:
        """What was read until now, through all pointers that lead there."""
        self.pointers.clear()
        self.names.clear()
        surfaces = {(address, size): data for (_, address, size), data in notes.surfaces.items()}
        self._read = {UNIT: {**notes.memory, **surfaces}} | {stage: _resolved(dispatch) for stage, dispatch in bound.items()}
        if notes.blocks or any(dispatch.resolved.blend for dispatch in bound.values()):
            raise NotKept("blocks that pointers of other commands lead to")
        for stage, (pointer, block) in UNITS.items():
            self._add_unit(stage, pointer, block)
        bits = [bit for stage, dispatch in bound.items() for bit in self._add_table(stage, dispatch, notes)]
        if len(self.pointers) > MOST_POINTERS:
            raise NotKept("more pointers than there is room for")
        ranges, elsewhere = list[PointedRange](), dict[tuple[int, int], bytes]()
        for reader, found in self._read.items():
            for (address, size), data in found.items():
                made = [compared for number, pointer in enumerate(self.pointers) if pointer.covers(reader, address, size)
                        for compared in self._compared(number, address - pointer.address, data, bits)]  # fmt: skip
                ranges += made
                if not made and not self._other_viewport(reader, address, size):
                    elsewhere[address, size] = data
        pointers = [StatePointer(pointer.parent + 1, pointer.offset, pointer.mask, pointer.base) for pointer in self.pointers]
        return Collected(pointers, sorted(ranges, key=lambda made: made.pointer), sorted(bits, key=lambda made: made.pointer), elsewhere)

    def _compared(self, number: int, offset: int, data: bytes, bits: list[PointedBits]) -> list[PointedRange]:
        """Bytes without the pointers among them; bits of dwords that have pointers go into `bits`."""
        found, start, inner = [], 0, self.pointers[number].inner
        for at in sorted(inner):
            if not offset <= at < offset + len(data):
                continue
            if at - offset > start:
                found.append(PointedRange(number, offset + start, at - offset - start, data[start : at - offset]))
            value, start = int.from_bytes(data[at - offset : at - offset + ENTRY], "little"), at - offset + ENTRY
            if rest := ~inner[at] & DWORD_MASK:
                bits.append(PointedBits(number, at, rest, value & rest))
        if start < len(data):
            found.append(PointedRange(number, offset + start, len(data) - start, data[start:]))
        return found

    def _other_viewport(self, reader: str, address: int, size: int) -> bool:
        """Whether a range is that of a viewport after the first: those are looked at when a vertex names one (DRAW_VIEWPORTS)."""
        return any(pointer.number(reader, address, size, pointer.address) is not None for pointer in self.pointers)

    # -- pointers --------------------------------------------------------------------------------------------------------------------

    def _bytes(self, name: str) -> int:
        return 4 * self.latches.layout(name).dwords

    def _add(self, name: str, pointer: FollowedPointer) -> int:
        self.names[name] = len(self.pointers)
        self.pointers.append(pointer)
        if pointer.parent != ROOT:
            self.pointers[pointer.parent].inner[pointer.offset] = pointer.mask
        return len(self.pointers) - 1

    def _in_command(self, command: str, name: str, base: Base, size: int) -> FollowedPointer:
        found = self.latches.layout(command).field(name)
        place = self.latches.place(command)
        pointer = self.latches.pointer(found, place.offset)
        made = FollowedPointer(ROOT, pointer.offset, pointer.mask & DWORD_MASK, base, 0, size)
        return self._led(made)

    def _in_block(self, parent: int, block: str, name: str, base: Base, size: int, readers: tuple[str, ...] = (UNIT,),
                  start: int = 0) -> FollowedPointer:  # fmt: skip
        found = self.latches.layout(block).field(name)
        mask = (1 << found.high % 32 + 1) - (1 << found.low % 32)
        return self._led(FollowedPointer(parent, start + 4 * (found.low // 32), mask, base, 0, size, readers))

    def _led(self, pointer: FollowedPointer) -> FollowedPointer:
        """With the address that it leads to now."""
        state, wrap = self.state, (1 << self.state.space.bits) - 1
        if pointer.parent == ROOT:
            value = self.latches.latched.raw(pointer.offset, 1)[0]
        else:
            value = int.from_bytes(state.space.read(self.pointers[pointer.parent].address + pointer.offset & wrap, ENTRY), "little")
        pointer.address = base_of(state, pointer.base) + (value & pointer.mask) & wrap
        return pointer

    def _add_unit(self, stage: str, name: str, block: str) -> None:
        size, state = self._bytes(block), self.state
        address = state.address("general", getattr(state.command(COMMAND), name))
        if (address, size) not in self._read[UNIT]:
            return  # the pointer is compared
        unit = self._add(stage, self._in_command(COMMAND, name, Base.GENERAL, size))
        if stage in VIEWPORTS:
            field_name, viewport = VIEWPORTS[stage]
            made = self._in_block(unit, block, field_name, Base.GENERAL, self._bytes(viewport))
            made.count = MOST_VIEWPORTS
            self._add(f"viewport {stage}", made)
        if stage in SAMPLED:
            size = self._bytes("SAMPLER_STATE")
            table = self._in_block(unit, block, "sampler_state_pointer", Base.GENERAL, size, (stage,))
            table.count = table.compared = SAMPLERS
            self._add(f"samplers {stage}", table)
            self._add_borders(stage, size)

    def _add_borders(self, stage: str, size: int) -> None:
        number, border = self.names[f"samplers {stage}"], self._bytes("SAMPLER_BORDER_COLOR_STATE")
        table = self.pointers[number]
        for index in range(SAMPLERS):
            if (table.address + index * size, size) in self._read.get(stage, {}):
                made = self._in_block(number, "SAMPLER_STATE", "border_color_pointer", Base.GENERAL, border, (stage,), index * size)
                if (made.address, border) in self._read[stage]:
                    self._add(f"border {stage} {index}", made)

    def _add_table(self, stage: str, dispatch: DispatchBindings, notes: Notes) -> list[PointedBits]:
        """A binding table, and the surface states that were read through it. Entries that lead to none are compared."""
        if self.latches.latched.place(TABLES) is None:
            return []
        table = self._add(f"table {stage}", self._in_command(TABLES, BLOCKS[stage][2], Base.SURFACE, 0))
        entries = dict(dispatch.resolved.entries)
        entries |= {address - start >> 2: data for (reader, address), (start, data) in notes.entries.items() if reader == stage}
        size, bits = self._bytes("RENDER_SURFACE_STATE"), []
        for index, data in sorted(entries.items()):
            made = self._in_block(table, "BINDING_TABLE_STATE", "surface_state_pointer", Base.SURFACE, size, (UNIT, stage), ENTRY * index)
            if any((made.address, size) in self._read.get(reader, {}) for reader in made.readers):
                self._add(f"surface {stage} {index}", made)
            else:
                bits.append(PointedBits(table, ENTRY * index, DWORD_MASK, int.from_bytes(data, "little")))
        return bits

    # -- moved -----------------------------------------------------------------------------------------------------------------------

    def offset(self, name: str) -> int:
        """Where a pointer leads, from its base; 0 if there is none."""
        if name not in self.names:
            return 0
        pointer = self.pointers[self.names[name]]
        return pointer.address - base_of(self.state, pointer.base) & DWORD_MASK

    def follow(self, state: DrawState, notes: Notes, bound: Mapping[str, DispatchBindings]) -> bool:
        """What was read stands where pointers lead now; False if none has moved."""
        self.state, before = state, [pointer.address for pointer in self.pointers]
        for pointer in self.pointers:
            self._led(pointer)
        after = [pointer.address for pointer in self.pointers]
        if before == after:
            return False
        notes.memory = self._moved(UNIT, notes.memory, before)
        notes.surfaces = {(stage, *place): data for (stage, address, size), data in notes.surfaces.items()
                          for place in self._moved(UNIT, {(address, size): data}, before)}  # fmt: skip
        for stage, dispatch in bound.items():
            resolved = dispatch.resolved
            resolved.reads.clear()
            resolved.states = self._moved(stage, resolved.states, before)
            behind = {(dispatch.behind_address(offset), len(data)): data for offset, data in resolved.behind.items()}
            resolved.behind = {address - resolved.sampler_base: data for (address, _), data in self._moved(stage, behind, before).items()}
            for index in resolved.surfaces:
                self._move_surface(stage, index, dispatch)
            if (number := self.names.get(f"table {stage}")) is not None:
                by = after[number] - before[number]
                notes.entries = {(reader, address + by if reader == stage else address): (start + by if reader == stage else start, data)
                                 for (reader, address), (start, data) in notes.entries.items()}  # fmt: skip
        return True

    def _move_surface(self, stage: str, index: int, dispatch: DispatchBindings) -> None:
        """An entry of a binding table and the surface state that it leads to, as they are now."""
        number, table = self.names.get(f"surface {stage} {index}"), self.names[f"table {stage}"]
        if number is not None:
            resolved, place = dispatch.resolved, self.pointers[table].address + ENTRY * index
            resolved.entries[index] = self.state.space.read(place & (1 << self.state.space.bits) - 1, ENTRY)
            resolved.surfaces[index] = self.pointers[number].address, resolved.surfaces[index][1]

    def _moved(self, reader: str, ranges: Ranges, before: list[int]) -> Ranges:
        found: Ranges = {}
        for (address, size), data in ranges.items():
            places = [address - old + pointer.address for pointer, old in zip(self.pointers, before, strict=True)
                      if pointer.number(reader, address, size, old) is not None]  # fmt: skip
            found |= dict.fromkeys(((place, size) for place in places or [address]), data)
        return found


def _resolved(dispatch: DispatchBindings) -> Ranges:
    """All that units have read of surfaces and samplers, where it is."""
    found = dispatch.resolved
    surfaces = {(address, len(data)): data for address, data in found.surfaces.values()}
    samplers = {(dispatch.sampler_address(offset), len(data)): data for offset, data in found.samplers.items()}
    behind = {(dispatch.behind_address(offset), len(data)): data for offset, data in found.behind.items()}
    return {**found.states, **surfaces, **samplers, **behind}


def base_of(state: DrawState, base: Base) -> int:
    """What pointers count from, now."""
    return 0 if base == Base.NONE else state.bases.get(base.name.lower(), 0)
