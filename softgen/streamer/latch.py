"""Latching: state commands kept as raw dwords in the slots of a hardware context, unpacked when something asks for them.

Reads   STATE_BASE_ADDRESS PIPELINE_SELECT
Writes  slots; groups of state that became dirty

Pages say how a command merges with what was latched before (bits/field.py, Effect). A table holds a rule per command of one engine,
made when the command is first met; latch.c applies rules. What is latched reads as if one command had said everything: elements in the
order of their index, gates open that were ever open.
"""

from __future__ import annotations

import ctypes
import importlib.util
import threading
from array import array
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from softgen.bits.catalogue import catalogue
from softgen.bits.field import Effect, Field, Group
from softgen.bits.layout import Layout
from softgen.bits.record import Record
from softgen.errors import SoftgenError, SpecError
from softgen.streamer.parser import Command

UNKNOWN = 0xFFFF
MOST_RULES = 1024
MOST_GATES = 1024
MOST_GROUPS = 64
MOST_PARTS = 3
INDEX_BITS = 6
GATED = 64  # dwords of the longest command or element with gates
STOP, REPLACE, ELEMENTS, RECORDS, GATES, MASK, POSITION = range(7)

# base -> (address, its modify enable) in STATE_BASE_ADDRESS
BASES = {
    "general": ("general_state_base_address", "general_state_base_address_modify_enable"),
    "surface": ("surface_state_base_address", "surface_state_base_address_modify_enable"),
    "dynamic": ("dynamic_state_base_address", "dynamic_state_base_address_modify_enable"),
    "instruction": ("instruction_base_address", "instruction_base_address_modify_enable"),
    "indirect": ("indirect_object_base_address", "indirect_object_base_address_modify_enable"),
    "bindless": ("bindless_surface_state_base_address", "bindless_surface_state_base_address_modify_enable"),
}
PIPELINE_NAMES = ("3d", "media", "gpgpu")  # PIPELINE_SELECT.pipeline_selection


def _words(*names: str) -> list[tuple[str, type[ctypes.c_uint32]]]:
    return [(name, ctypes.c_uint32) for name in names]


class IndexPart(ctypes.Structure):
    """struct part of latch.c."""

    _fields_ = _words("dword", "low", "width")


class Gate(ctypes.Structure):
    """struct gate of latch.c."""

    _fields_ = _words("bit_dword", "bits", "dword", "mask")


class LatchRule(ctypes.Structure):
    """struct rule of latch.c."""

    _fields_ = [
        *_words("mask", "value", "next", "kind", "stops", "length_low", "length_mask", "bias", "least", "most", "slot", "offset", "size",
                "first", "parts"),
        ("part", IndexPart * MOST_PARTS),
        *_words("group", "acts_dword", "acts_mask", "gates", "gate_count", "mask_dword", "mask_low", "mask_bits"),
    ]  # fmt: skip


class TablePointers(ctypes.Structure):
    """struct table of latch.c."""

    _fields_ = [("keys", ctypes.c_void_p), ("rules", ctypes.c_void_p), ("gates", ctypes.c_void_p)]


class LatchPointers(ctypes.Structure):
    """struct latches of latch.c."""

    _fields_ = [
        ("slots", ctypes.c_void_p), ("lengths", ctypes.c_void_p), ("counts", ctypes.c_void_p), ("present", ctypes.c_void_p),
        ("dirty", ctypes.c_uint64), *_words("slot_count", "consumed", "last"),
    ]  # fmt: skip


@cache
def library() -> ctypes.CDLL:
    """latch.c, loaded."""
    found = importlib.util.find_spec("softgen.streamer._latch")
    if found is None or found.origin is None:
        how = "run `make` or `python setup.py build_ext --inplace` at the repository's root"
        raise SoftgenError(f"softgen.streamer._latch is not built; {how}")
    try:
        native = ctypes.CDLL(found.origin)
        native.latch_one.argtypes = (ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32)
        native.latch_one.restype = None
        native.latch_run.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32)
        native.latch_run.restype = ctypes.c_uint32
    except (OSError, AttributeError) as error:
        raise SoftgenError(f"{found.origin} cannot be used: {error}; build it again with `python setup.py build_ext --inplace`") from None
    return native


# -- rules -----------------------------------------------------------------------------------------------------------


class LatchTable:
    """The rules of one engine's commands, made as commands are met. Commands named in `stops` are left to their handlers."""

    def __init__(self, gen: float, engine: str, stops: frozenset[str] = frozenset()) -> None:
        self.gen, self.engine, self.stops = gen, engine, stops
        self.keys, self.rules, self.gates = (ctypes.c_uint16 * 65536)(), (LatchRule * MOST_RULES)(), (Gate * MOST_GATES)()
        ctypes.memset(self.keys, 0xFF, ctypes.sizeof(self.keys))
        self.pointers = TablePointers(ctypes.addressof(self.keys), ctypes.addressof(self.rules), ctypes.addressof(self.gates))
        self.address = ctypes.addressof(self.pointers)
        self.known: set[int] = set()  # keys, header >> 16
        self.latching: set[int] = set()  # those with a command that latch_run may latch
        self.numbers: dict[str, int] = {}  # rule by command
        self.layouts: dict[int, Layout] = {}
        self.groups: dict[str, int] = {}
        self.slots = self.size = self._gates = 0
        self._lock = threading.Lock()

    def add(self, header: int) -> None:
        """Makes the rules of all commands that share a header's key."""
        key = header >> 16
        with self._lock:
            if key in self.known:
                return
            chain = [self._rule(layout) for layout in catalogue().commands_like(header, self.gen, self.engine)]
            for position, number in enumerate(chain):
                self.rules[number].next = chain[position + 1] if position + 1 < len(chain) else UNKNOWN
            if any(not self.rules[number].stops for number in chain):
                self.latching.add(key)
            if chain:
                self.keys[key] = chain[0]
            self.known.add(key)

    def rule_of(self, layout: Layout) -> int:
        """The number of a state command's rule."""
        with self._lock:
            return self._rule(layout)

    def _rule(self, layout: Layout) -> int:
        if layout.name in self.numbers:
            return self.numbers[layout.name]
        number, header = len(self.numbers), layout.header
        if number >= MOST_RULES or header is None:
            raise SpecError(f"{layout.name} has no place in the table of commands that are latched")
        rule = self.rules[number]
        high, low = header.length or (0, 0)
        rule.mask, rule.value, rule.next = header.mask, header.value, UNKNOWN
        rule.length_low, rule.length_mask = low, 0 if header.length is None else (1 << high - low + 1) - 1
        rule.bias = layout.dwords if header.length is None else header.bias
        rule.least, rule.most = layout.dwords, longest(layout)
        effect = layout.effect
        if effect is None or not effect.sets_state:
            rule.kind, rule.stops = STOP, 1
        else:
            rule.stops = layout.name in self.stops
            self._slot(rule, layout, effect)
        self.numbers[layout.name], self.layouts[number] = number, layout
        return number

    def _slot(self, rule: LatchRule, layout: Layout, effect: Effect) -> None:
        rule.slot, rule.offset, rule.size = self.slots, self.size, rule.most
        rule.group = self.groups.setdefault(effect.group, len(self.groups))
        if rule.group >= MOST_GROUPS:
            raise SpecError(f"{layout.page}: group {effect.group} is one too many; there may be {MOST_GROUPS}")
        size: int = rule.most
        match effect.rule:
            case "index":
                size = self._index(rule, layout, effect)
            case "gates":
                rule.kind = GATES
                self._add_gates(rule, layout.fields)
            case "mask":
                (field,) = (item for item in layout.fields if item.name in effect.by)
                rule.kind, rule.mask_dword, rule.mask_low = MASK, field.low // 32, field.low % 32
                rule.mask_bits = (1 << field.width) - 1
            case "position":
                rule.kind = POSITION
            case _:
                rule.kind = REPLACE
        self._acts(rule, layout, effect)
        self.slots, self.size = self.slots + 1, self.size + size

    def _index(self, rule: LatchRule, layout: Layout, effect: Effect) -> int:
        """Commands by index, or the elements of a group; answers the dwords of the slot."""
        group = next((item for item in layout.groups if any(field.name in effect.by for field in item.fields)), None)
        fields = group.fields if group else layout.fields
        parts = [next(field for field in fields if field.name == name) for name in effect.by]
        bits = sum(field.width for field in parts)
        if bits > INDEX_BITS or len(parts) > MOST_PARTS:
            raise SpecError(f"{layout.page}: {layout.name} merges by {bits} bits; at most {INDEX_BITS} in {MOST_PARTS} fields are possible")
        rule.parts = len(parts)
        for number, field in enumerate(parts):
            rule.part[number] = IndexPart(field.low // 32, field.low % 32, field.width)
        if group is None:
            rule.kind = RECORDS
            return int(rule.size) << bits
        rule.kind, rule.first, rule.size = ELEMENTS, group.start // 32, group.size // 32
        self._add_gates(rule, group.fields)
        return 1 + (int(rule.size) << bits)

    def _add_gates(self, rule: LatchRule, fields: tuple[Field, ...]) -> None:
        rule.gates = self._gates
        for field in fields:
            bits = [item for item in fields if item.name in field.gates]
            if not bits:
                continue
            if len({item.low // 32 for item in bits}) > 1:
                raise SpecError(f"the gates of {field.name} stand in different dwords")
            mask = field.mask
            for dword in range(field.high // 32 + 1):
                if mask >> 32 * dword & 0xFFFFFFFF:
                    self.gates[self._gates] = Gate(bits[0].low // 32, sum(1 << item.low % 32 for item in bits), dword,
                                                   mask >> 32 * dword & 0xFFFFFFFF)  # fmt: skip
                    self._gates += 1
        rule.gate_count = self._gates - rule.gates
        if rule.gate_count and rule.size > GATED:
            raise SpecError(f"a command or element of {rule.size} dwords has gates; at most {GATED} are possible")

    def _acts(self, rule: LatchRule, layout: Layout, effect: Effect) -> None:
        fields = [field for field in layout.fields if field.name in effect.acts_when]
        if fields:
            (rule.acts_dword,) = {field.low // 32 for field in fields}
            rule.acts_mask = sum(field.mask >> 32 * rule.acts_dword for field in fields)


def longest(layout: Layout) -> int:
    """The most dwords a command can have."""
    if layout.maximum is not None or layout.header is None or layout.header.length is None:
        return layout.maximum or layout.dwords
    high, low = layout.header.length
    return (1 << high - low + 1) - 1 + layout.header.bias


@cache
def latch_table(gen: float, engine: str, stops: frozenset[str] = frozenset()) -> LatchTable:
    return LatchTable(gen, engine, stops)


# -- a context's state -------------------------------------------------------------------------------------------------


class LatchedState(Mapping[str, Record]):
    """State commands as they were latched, by name; base addresses; which groups of state are dirty.

    `latched["3DSTATE_VS"]` is the command's record. Of commands that merge by an index, `by_index` has the parts.
    """

    def __init__(self, table: LatchTable) -> None:
        self.table = table
        self._slots, self._lengths, self._counts = (ctypes.c_uint32 * 0)(), (ctypes.c_uint32 * 0)(), (ctypes.c_uint32 * 0)()
        self._present = (ctypes.c_uint64 * 0)()
        self._pointers = LatchPointers()
        self._address = ctypes.addressof(self._pointers)
        self._records: dict[str, tuple[int, Record]] = {}  # how often it had been latched, and the record then
        self._structures: dict[str, Record] = {}  # noted by name: structures that pointers lead to
        self._bases: dict[str, int] = {}
        self._bases_at = 0  # how often STATE_BASE_ADDRESS had been latched when they were read

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

    def may_latch(self, header: int) -> bool:
        """Whether a header dword may be that of a command which `run` latches."""
        key, table = header >> 16, self.table
        if key not in table.known:
            table.add(header)
        return key in table.latching

    def run(self, address: int, count: int, limit: int) -> int:
        """Latches consecutive state commands from a host address on, where `count` dwords are readable; how many there were."""
        table = self.table
        if len(self._slots) != table.size:
            self._grow()
        return int(library().latch_run(table.address, self._address, address, count, limit))

    def consumed(self) -> tuple[int, int]:
        """After `run`: the dwords of its commands, and where the last began."""
        return self._pointers.consumed, self._pointers.last

    def note(self, command: Command) -> None:
        """Latches one command if it sets state, whatever its handler does. Missing dwords count as zero."""
        layout = command.layout
        if layout is None or layout.effect is None or not layout.effect.sets_state:
            return
        number = self.table.rule_of(layout)
        if len(self._slots) != self.table.size:
            self._grow()
        most, least = self.table.rules[number].most, layout.dwords
        dwords = array("I", command.dwords[:most])
        dwords.extend([0] * (least - len(dwords)))
        library().latch_one(self.table.address, number, self._address, dwords.buffer_info()[0], len(dwords))

    def note_structure(self, layout: Layout, values: Record) -> None:
        """Keeps a structure that a command pointed to, under its name."""
        self._structures[layout.name] = values

    # -- reading -----------------------------------------------------------------------------------------------------

    def _count(self, name: str) -> int:
        number = self.table.numbers.get(name)
        if number is None:
            return 0
        rule = self.table.rules[number]
        return int(self._counts[rule.slot]) if rule.kind != STOP and rule.slot < len(self._counts) else 0

    def __getitem__(self, name: str) -> Record:
        count = self._count(name)
        if not count:
            return self._structures[name]
        seen = self._records.get(name)
        if seen is None or seen[0] != count:
            layout, dwords = self.dwords(name)
            seen = self._records[name] = count, layout.raw(dwords)
        return seen[1]

    def __iter__(self) -> Iterator[str]:
        yield from (name for name in list(self.table.numbers) if self._count(name))  # a copy: other engines may add commands
        yield from self._structures

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and bool(self._count(name)) or name in self._structures

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
        if not self._count(name):
            return {}
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

    # -- what many ask for ---------------------------------------------------------------------------------------------

    @property
    def bases(self) -> dict[str, int]:
        """Base addresses that STATE_BASE_ADDRESS set, by short name."""
        count = self._count("STATE_BASE_ADDRESS")
        if count != self._bases_at:
            state = self["STATE_BASE_ADDRESS"]
            named = {base: names for base, names in BASES.items() if names[0] in state._fields}
            told = {base: getattr(state, address) for base, (address, enable) in named.items() if getattr(state, enable)}
            self._bases = {**self._bases, **told}
            self._bases_at = count
        return self._bases

    @bases.setter
    def bases(self, bases: dict[str, int]) -> None:
        self._bases, self._bases_at = bases, self._count("STATE_BASE_ADDRESS")

    def base(self, name: str) -> int | None:
        """A base address; None when no command has set it."""
        return self.bases.get(name) if name else 0

    def pipeline(self) -> str:
        """The selected pipeline's name; "" when none was selected yet."""
        selected = self.get("PIPELINE_SELECT")
        return PIPELINE_NAMES[selected.pipeline_selection] if selected is not None and selected.pipeline_selection < 3 else ""

    # -- dirty groups --------------------------------------------------------------------------------------------------

    @property
    def dirty(self) -> frozenset[str]:
        """Groups of state that commands have set since they were last marked clean."""
        return frozenset(name for name, bit in list(self.table.groups.items()) if self._pointers.dirty >> bit & 1)

    def mark_clean(self, *groups: str) -> None:
        """Marks these groups as used; all of them when none is named."""
        bits = sum(1 << self.table.groups[name] for name in groups if name in self.table.groups)
        self._pointers.dirty = self._pointers.dirty & ~bits if groups else 0

    def mark_all_dirty(self) -> None:
        """Everything latched has to be looked at again, as after a context switch."""
        self._pointers.dirty = (1 << MOST_GROUPS) - 1

    def copy(self) -> LatchedState:
        other = LatchedState(self.table)
        other._slots, other._lengths, other._counts, other._present = self._slots, self._lengths, self._counts, self._present
        other._grow()
        other._pointers.dirty = self._pointers.dirty
        other._records, other._structures = dict(self._records), dict(self._structures)
        other._bases, other._bases_at = dict(self._bases), self._bases_at
        return other


def _grown(held: Any, count: int) -> Any:
    """A copy of a ctypes array with room for `count`."""
    new = (held._type_ * count)()
    ctypes.memmove(new, held, min(ctypes.sizeof(held), ctypes.sizeof(new)))
    return new


def _indexed_group(layout: Layout) -> Group:
    assert layout.effect is not None
    by = layout.effect.by
    return next(group for group in layout.groups if any(field.name in by for field in group.fields))
