"""The rules by which state commands are latched: a table of them for each engine, in the form that latch.c reads (latch_rules.h).

A rule is made from a command's page (bits/field.py, Effect) when the command is first met.
"""

from __future__ import annotations

import ctypes
import threading
from functools import cache

from softgen import latches_h, walk_h
from softgen.bits.catalogue import catalogue
from softgen.bits.field import BitField, Effect
from softgen.bits.layout import Layout
from softgen.errors import SpecError
from softgen.library import load
from softgen.streamer import latch_rules_h, write_actors_h
from softgen.streamer.latch_rules_h import (
    ELEMENTS,
    GATED,
    GATES,
    KEYS,
    MASK,
    MOST_PARTS,
    POSITION,
    RECORDS,
    REPLACE,
    STOP,
    UNKNOWN,
    Gate,
    IndexPart,
    LatchRule,
    RuleTable,
)

MOST_RULES = 1024
MOST_GATES = 1024
INDEX_BITS = 6


@cache
def library() -> ctypes.CDLL:
    """latch.c, loaded."""
    native = load("softgen.streamer._latch", latches_h, latch_rules_h, walk_h, write_actors_h)
    native.latch_one.argtypes = (ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32)
    native.latch_one.restype = None
    native.latch_run.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32)
    native.latch_run.restype = ctypes.c_uint32
    return native


class LatchTable:
    """The rules of one engine's commands, made as commands are met. Commands named in `stops` are left to their handlers; those of `acting`
    have the actors of these numbers, from 1 on, in a walk."""

    def __init__(self, gen: float, engine: str, stops: frozenset[str] = frozenset(), acting: tuple[str, ...] = ()) -> None:
        self.gen, self.engine, self.stops, self.acting = gen, engine, stops, acting
        self.keys, self.rules, self.gates = (ctypes.c_uint16 * KEYS)(), (LatchRule * MOST_RULES)(), (Gate * MOST_GATES)()
        ctypes.memset(self.keys, 0xFF, ctypes.sizeof(self.keys))
        self.pointers = RuleTable(ctypes.addressof(self.keys), ctypes.addressof(self.rules), ctypes.addressof(self.gates))
        self.address = ctypes.addressof(self.pointers)
        self.known: set[int] = set()  # keys, header >> 16
        self.latching: set[int] = set()  # those with a command that latch_run may latch,
        self.walking: set[int] = set()  # or that has an actor
        self.numbers: dict[str, int] = {}  # rule by command
        self.layouts: dict[int, Layout] = {}
        self.slots = self.size = self._gates = 0
        self.slot_names: list[str] = []  # the command of each slot
        self.slot_of: dict[str, int] = {}
        self._lock = threading.Lock()

    def add(self, header: int) -> None:
        """Makes the rules of all commands that share a header's key."""
        key = header >> 16
        with self._lock:
            chain = [self._rule(layout) for layout in catalogue().commands_like(header, self.gen, self.engine)]
            for position, number in enumerate(chain):
                self.rules[number].next = chain[position + 1] if position + 1 < len(chain) else UNKNOWN
            if any(not self.rules[number].stops for number in chain):
                self.latching.add(key)
            if any(not self.rules[number].stops or self.rules[number].actor for number in chain):
                self.walking.add(key)
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
        rule.actor = self.acting.index(layout.name) + 1 if layout.name in self.acting else 0
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
        self.slot_names.append(layout.name)
        self.slot_of[layout.name] = self.slots
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

    def _add_gates(self, rule: LatchRule, fields: tuple[BitField, ...]) -> None:
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
def latch_table(gen: float, engine: str, stops: frozenset[str] = frozenset(), acting: tuple[str, ...] = ()) -> LatchTable:
    return LatchTable(gen, engine, stops, acting)
