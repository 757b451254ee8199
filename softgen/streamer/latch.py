"""Latching: state commands kept as raw dwords in the slots of a hardware context, unpacked when something asks for them.

Reads   STATE_BASE_ADDRESS PIPELINE_SELECT
Writes  slots

Pages say how a command merges with what was latched before; latch.c applies the rules made from them (latch_rules.py). What is latched
reads as if one command had said everything: elements in the order of their index, gates open that were ever open.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from softgen.bits.field import Group
from softgen.bits.layout import Layout
from softgen.bits.record import Record
from softgen.command import MarkedLatched, SlotPlace
from softgen.latches_h import Latches
from softgen.streamer.latch_rules import LatchTable, library
from softgen.streamer.latch_rules_h import ELEMENTS, RECORDS, LatchRule
from softgen.streamer.parser import Command

# base -> (address, its modify enable) in STATE_BASE_ADDRESS
BASES = {
    "general": ("general_state_base_address", "general_state_base_address_modify_enable"),
    "surface": ("surface_state_base_address", "surface_state_base_address_modify_enable"),
    "dynamic": ("dynamic_state_base_address", "dynamic_state_base_address_modify_enable"),
    "instruction": ("instruction_base_address", "instruction_base_address_modify_enable"),
    "indirect": ("indirect_object_base_address", "indirect_object_base_address_modify_enable"),
    "bindless": ("bindless_surface_state_base_address", "bindless_surface_state_base_address_modify_enable"),
}
PART = 32  # bytes of marks that are compared at once
PIPELINE_NAMES = ("3d", "media", "gpgpu")  # PIPELINE_SELECT.pipeline_selection


class LatchedState(Mapping[str, Record], MarkedLatched):
    """State commands as they were latched, by name; base addresses.

    `latched["3DSTATE_VS"]` is the command's record. Of commands that merge by an index, `by_index` has the parts.
    """

    def __init__(self, table: LatchTable) -> None:
        self.table = table
        self._slots, self._lengths, self._counts = (ctypes.c_uint32 * 0)(), (ctypes.c_uint32 * 0)(), (ctypes.c_uint32 * 0)()
        self._present = (ctypes.c_uint64 * 0)()
        self._pointers = Latches()
        self._address, self._latch = ctypes.addressof(self._pointers), library().latch_run
        self._records: dict[str, tuple[int, list[int], Record]] = {}  # how often it had been latched, its dwords and record then
        self._indexed: dict[str, tuple[int, dict[int, Record]]] = {}  # the same for parts by index
        self._changed: tuple[bytes, bytes, list[str]] = b"", b"", []  # the last answer of `changed`
        self.latches = 0
        self._structures: dict[str, Record] = {}  # noted by name: structures that pointers lead to
        self._bases: dict[str, int] = {}
        self._bases_slot: int | None = None  # of STATE_BASE_ADDRESS, once it has one
        self._bases_at = 0  # how often STATE_BASE_ADDRESS had been latched when they were read
        self._bases_of: Record | None = None  # the record they were read from

    # -- latching ----------------------------------------------------------------------------------------------------

    def _grow(self) -> None:
        """Makes room for the slots of commands that were met since."""
        table = self.table
        with table._lock:
            slots, size = table.slots, table.size
        self._slots, self._lengths = _grown(self._slots, size), _grown(self._lengths, slots)
        self._counts, self._present = _grown(self._counts, slots), _grown(self._present, slots)
        pointers = self._pointers
        pointers.slots, pointers.lengths = ctypes.addressof(self._slots), ctypes.addressof(self._lengths)
        pointers.counts, pointers.present = ctypes.addressof(self._counts), ctypes.addressof(self._present)
        pointers.slot_count = slots
        slot = table.slot_of.get("STATE_BASE_ADDRESS")
        self._bases_slot = slot if slot is not None and slot < slots else None

    def may_latch(self, header: int) -> bool:
        """Whether a header dword may be that of a command which `run` latches."""
        key, table = header >> 16, self.table
        if key not in table.known:
            table.add(header)
        return key in table.latching

    def may_walk(self, header: int) -> bool:
        """Whether a header dword may be that of a command which a walk executes."""
        key, table = header >> 16, self.table
        if key not in table.known:
            table.add(header)
        return key in table.walking

    def room(self) -> None:
        """Makes room for the slots of commands that were met since."""
        if len(self._slots) != self.table.size:
            self._grow()

    def run(self, address: int, count: int, limit: int) -> int:
        """Latches consecutive state commands from a host address on, where `count` dwords are readable; how many there were."""
        table = self.table
        self.room()
        done = int(self._latch(table.address, self._address, address, count, limit))
        self.latches += done
        return done

    def consumed(self) -> tuple[int, int]:
        """After `run`: the dwords of its commands, and where the last began."""
        return self._pointers.consumed, self._pointers.last

    def note(self, command: Command) -> None:
        """Latches one command if it sets state, whatever its handler does. Missing dwords count as zero."""
        layout = command.layout
        if layout is None or layout.effect is None or not layout.effect.sets_state:
            return
        number = self.table.rule_of(layout)
        self.room()
        most, least = self.table.rules[number].most, layout.dwords
        dwords = array("I", command.dwords[:most])
        dwords.extend([0] * (least - len(dwords)))
        library().latch_one(self.table.address, number, self._address, dwords.buffer_info()[0], len(dwords))
        self.latches += 1

    def note_structure(self, layout: Layout, values: Record) -> None:
        """Keeps a structure that a command pointed to, under its name."""
        self._structures[layout.name] = values
        self.latches += 1

    # -- reading -----------------------------------------------------------------------------------------------------

    def latched_count(self, name: str) -> int:
        slot = self.table.slot_of.get(name)
        return int(self._counts[slot]) if slot is not None and slot < len(self._counts) else 0

    def __getitem__(self, name: str) -> Record:
        count = self.latched_count(name)
        if not count:
            return self._structures[name]
        seen = self._records.get(name)
        if seen is None or seen[0] != count:
            layout, dwords = self.dwords(name)
            record = seen[2] if seen is not None and seen[1] == dwords else layout.raw(dwords)  # drivers repeat most state
            seen = self._records[name] = count, dwords, record
        return seen[2]

    if not TYPE_CHECKING:  # its type is Mapping's

        def get(self, name, default=None, /):
            """A latched command; Mapping's own would raise and catch KeyError for each that was never latched."""
            slot, counts = self.table.slot_of.get(name), self._counts
            count = counts[slot] if slot is not None and slot < len(counts) else 0
            if not count:
                return self._structures.get(name, default)
            seen = self._records.get(name)
            return seen[2] if seen is not None and seen[0] == count else self[name]

    def __iter__(self) -> Iterator[str]:
        yield from (name for name in list(self.table.numbers) if self.latched_count(name))  # a copy: other engines may add commands
        yield from self._structures

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and bool(self.latched_count(name)) or name in self._structures

    def dwords(self, name: str) -> tuple[Layout, list[int]]:
        """A latched command's page and raw dwords, as if one command had set all of it; of commands by index the last one's."""
        number = self.table.numbers[name]
        rule, layout = self.table.rules[number], self.table.layouts[number]
        length = int(self._lengths[rule.slot])
        if rule.kind == ELEMENTS:
            found = self._items(rule)
            group = _indexed_group(layout)
            padding = [0] * (rule.first - 1)
            return layout, [self._slots[rule.offset], *padding, *(dword for at in found for dword in self._at(at, group.size // 32))]
        if rule.kind == RECORDS:
            return layout, self._at(rule.offset + (length - 1) * rule.size, rule.size)
        return layout, self._at(rule.offset, length)

    def by_index(self, name: str) -> dict[int, Record]:
        """The parts of a command that merges by an index: elements of its group, or the commands themselves."""
        count = self.latched_count(name)
        if not count:
            return {}
        seen = self._indexed.get(name)
        if seen is None or seen[0] != count:
            seen = self._indexed[name] = count, self._parts(name)
        return dict(seen[1])

    def _parts(self, name: str) -> dict[int, Record]:
        number = self.table.numbers[name]
        rule, layout = self.table.rules[number], self.table.layouts[number]
        present = int(self._present[rule.slot])
        indices = [index for index in range(present.bit_length()) if present >> index & 1]
        if rule.kind == ELEMENTS:
            return dict(zip(indices, getattr(self[name], _indexed_group(layout).name), strict=True))
        return {index: layout.raw(self._at(rule.offset + index * rule.size, rule.size)) for index in indices}

    def _items(self, rule: LatchRule) -> list[int]:
        """Where the latched elements of a slot begin."""
        present = int(self._present[rule.slot])
        return [rule.offset + 1 + index * rule.size for index in range(present.bit_length()) if present >> index & 1]

    def _at(self, first: int, count: int) -> list[int]:
        return self._slots[first : first + count]

    # -- for C code ----------------------------------------------------------------------------------------------------

    @property
    def address(self) -> int:
        return self._address

    @property
    def slots(self) -> int:
        return self.table.slots

    def place(self, name: str) -> SlotPlace | None:
        slot = self.table.slot_of.get(name)
        if slot is None:
            return None
        rule = self.table.rules[self.table.numbers[name]]
        if not self.latched_count(name):
            return SlotPlace(slot, False, rule.offset, 0, 0, 0, rule.size)
        length, present = int(self._lengths[slot]), int(self._present[slot])
        if rule.kind == ELEMENTS:  # with how many of them the last command came does not matter
            return SlotPlace(slot, True, rule.offset + 1, present.bit_length() * rule.size, 0, present, rule.size)
        size = present.bit_length() * rule.size if rule.kind == RECORDS else length
        return SlotPlace(slot, True, rule.offset, size, length, present, rule.size)

    def raw(self, offset: int, count: int) -> list[int]:
        return self._at(offset, count)

    # -- changes -------------------------------------------------------------------------------------------------------

    def marks(self) -> bytes:
        """How often each command has been latched; equal marks mean that none was in between."""
        return bytes(self._counts)

    def changed(self, before: bytes, after: bytes) -> list[str]:
        """Commands that were latched between two marks."""
        seen = self._changed
        if seen[0] != before or seen[1] != after:  # several ask about the same two
            padded, names, found = before.ljust(len(after), b"\0"), self.table.slot_names, []
            for start in range(0, len(after), PART):
                part = after[start : start + PART]
                if padded[start : start + PART] != part:
                    found += [names[at // 4] for at in range(start, start + len(part), 4) if padded[at : at + 4] != after[at : at + 4]]
            seen = self._changed = before, after, found
        return seen[2]

    # -- what many ask for ---------------------------------------------------------------------------------------------

    @property
    def bases(self) -> dict[str, int]:
        """Base addresses that STATE_BASE_ADDRESS set, by short name."""
        slot = self._bases_slot
        if slot is not None and self._counts[slot] != self._bases_at:
            self._read_bases(self._counts[slot])
        return self._bases

    @bases.setter
    def bases(self, bases: dict[str, int]) -> None:
        self._bases, self._bases_at, self._bases_of = bases, self.latched_count("STATE_BASE_ADDRESS"), None
        self.latches += 1

    def _read_bases(self, count: int) -> None:
        state, self._bases_at = self["STATE_BASE_ADDRESS"], count
        if state is not self._bases_of:
            named = {base: names for base, names in BASES.items() if names[0] in state._fields}
            changed = {base: getattr(state, address) for base, (address, enable) in named.items() if getattr(state, enable)}
            self._bases, self._bases_of = {**self._bases, **changed}, state

    def base(self, name: str) -> int | None:
        """A base address; None when no command has set it."""
        return self.bases.get(name) if name else 0

    def pipeline(self) -> str:
        """The selected pipeline's name; "" when none was selected yet."""
        selected = self.get("PIPELINE_SELECT")
        return PIPELINE_NAMES[selected.pipeline_selection] if selected is not None and selected.pipeline_selection < 3 else ""

    def copy(self) -> LatchedState:
        other = LatchedState(self.table)
        other._slots, other._lengths, other._counts, other._present = self._slots, self._lengths, self._counts, self._present
        other._grow()
        other._records, other._structures = dict(self._records), dict(self._structures)
        other._bases, other._bases_at, other._bases_of = dict(self._bases), self._bases_at, self._bases_of
        return other

    def commands(self, name: str) -> list[list[int]]:
        """Commands that latch the same again: one, or of those that merge whole one for each index."""
        if not self.latched_count(name):
            return []
        dwords = self.dwords(name)[1]
        rule = self.table.rules[self.table.numbers[name]]
        if rule.kind == RECORDS:
            present = int(self._present[rule.slot])
            return [self._at(rule.offset + n * rule.size, rule.size) for n in range(present.bit_length()) if present >> n & 1]
        if rule.kind == ELEMENTS:  # with how many of them the last command came does not matter
            dwords[0] = dwords[0] & ~(rule.length_mask << rule.length_low) | len(dwords) - rule.bias << rule.length_low
        return [dwords]

    def without(self, names: Iterable[str]) -> LatchedState:
        """A copy in which some commands were never latched."""
        other = self.copy()
        for name in names:
            slot = self.table.slot_of[name]
            other._lengths[slot] = other._counts[slot] = other._present[slot] = 0
            other._records.pop(name, None)
        return other


def _grown(buffer: Any, count: int) -> Any:
    """A copy of a ctypes array with room for `count`."""
    new = (buffer._type_ * count)()
    ctypes.memmove(new, buffer, min(ctypes.sizeof(buffer), ctypes.sizeof(new)))
    return new


def _indexed_group(layout: Layout) -> Group:
    assert layout.effect is not None
    by = layout.effect.by
    return next(group for group in layout.groups if any(field.name in by for field in group.fields))
