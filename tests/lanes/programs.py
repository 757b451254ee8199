"""Random lane programs: lists of steps made from the operation table, which any machine can run.

Each pair of operation and type is a kind of step; programs are filled from the kinds used least so far, so coverage is what was counted
and not what was hoped for. A NaN that arithmetic made is replaced by one fixed NaN, because which one it is is left open.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from softgen.lanes.compile.signature import Bytes, Lanes, Signature
from softgen.lanes.machine import Machine
from softgen.lanes.operations import ATOMICS, OPERATIONS
from softgen.lanes.types import FLOATS, INTEGERS, ROUNDINGS, TYPES, LaneType, bool_, u8, u16, u32, u64
from softgen.lanes.value import Memory, Value

WIDTH = 8
ROOM = 512              # bytes of memory
NUMBERS = (*INTEGERS, *FLOATS)


class Kind(NamedTuple):
    name: str
    type: LaneType
    detail: Any = None


class Step(NamedTuple):
    kind: Kind
    seed: int           # decides operands and constants


class Slots:
    """Values so far, by type; a step takes the ones its generator picks."""

    def __init__(self, m: Machine, rng: random.Random, values: dict[LaneType, list[Value]], memory: Memory) -> None:
        self.m, self.rng, self.values, self.memory = m, rng, values, memory

    def take(self, type: LaneType) -> Value:
        recent = self.values[type][-4:]
        return self.rng.choice([*recent, self.values[type][0]])

    def offsets(self, size: int) -> Value:
        return self.take(u32) & (ROOM - 1 - 7) & -size % (1 << 32)


def clean(m: Machine, value: Value) -> Value:
    return m.canonical(value) if value.type.is_float else value


def row(slots: Slots, kind: Kind) -> Value:
    operation, m = OPERATIONS[kind.name], slots.m
    operands = [slots.take(kind.type) for _ in range(operation.operands)]
    if kind.name.startswith("shift"):
        operands[1] = operands[1] & kind.type.bits - 1
    options = {"rounding": kind.detail} if kind.detail else {}
    found: Value = getattr(m, kind.name)(*operands, **options)
    return found if kind.name == "negate" else clean(m, found)


def bitcast(slots: Slots, kind: Kind) -> Value:
    return slots.m.bitcast(slots.take(kind.type), kind.detail)


def regroup(slots: Slots, kind: Kind) -> Value:
    m, a = slots.m, slots.take(kind.type)
    other = m.regroup(a, kind.detail)
    return m.regroup(m.shuffle(other, [slots.rng.randrange(other.lanes) for _ in range(other.lanes)]), kind.type)


def concat(slots: Slots, kind: Kind) -> Value:
    cut = slots.rng.randrange(1, WIDTH)
    return slots.m.concat(slots.m.slice(slots.take(kind.type), slots.rng.randrange(WIDTH - cut + 1), cut),
                          slots.m.slice(slots.take(kind.type), cut, WIDTH - cut))


def shuffle(slots: Slots, kind: Kind) -> Value:
    return slots.m.shuffle(slots.take(kind.type), [slots.rng.randrange(WIDTH) for _ in range(WIDTH)])


def broadcast(slots: Slots, kind: Kind) -> Value:
    return slots.m.broadcast(slots.m.slice(slots.take(kind.type), slots.rng.randrange(WIDTH), 1), WIDTH)


def constant(slots: Slots, kind: Kind) -> Value:
    if kind.type.is_float:
        return slots.m.constant(kind.type, [slots.rng.uniform(-9, 9) * 2.0 ** slots.rng.randrange(-30, 30) for _ in range(WIDTH)])
    return slots.m.constant(kind.type, [slots.rng.randint(kind.type.lowest, kind.type.highest) for _ in range(WIDTH)])


def select(slots: Slots, kind: Kind) -> Value:
    return slots.m.select(slots.take(bool_), slots.take(kind.type), slots.take(kind.type))


def convert(slots: Slots, kind: Kind) -> Value:
    to, mode = kind.detail
    return clean(slots.m, slots.m.convert(slots.take(kind.type), to, mode))


def unary(slots: Slots, kind: Kind) -> Value:
    found: Value = getattr(slots.m, kind.name)(slots.take(kind.type))
    return found


def copysign(slots: Slots, kind: Kind) -> Value:
    return slots.m.copysign(slots.take(kind.type), slots.take(kind.type))


def carry(slots: Slots, kind: Kind) -> Value:
    first, second = getattr(slots.m, kind.name)(slots.take(kind.type), slots.take(kind.type))
    return first ^ second << kind.type.bits - 1 if slots.rng.random() < 0.5 else second         # type: ignore[no-any-return]


def saturate_int(slots: Slots, kind: Kind) -> Value:
    return slots.m.saturate_int(slots.take(kind.type), kind.detail)


def masks(slots: Slots, kind: Kind) -> Value:
    m, mask = slots.m, slots.take(bool_)
    if kind.name == "mask_bits":
        bits = m.bits_from_mask(mask, kind.type)
        return m.mask_from_bits(bits ^ slots.rng.randrange(1 << WIDTH - 1), WIDTH)
    return m.broadcast(getattr(m, kind.name)(mask), WIDTH)


def load(slots: Slots, kind: Kind) -> Value:
    return slots.m.load(kind.type, slots.memory, slots.offsets(1), slots.take(bool_) if slots.rng.random() < 0.5 else None)


def store(slots: Slots, kind: Kind) -> None:
    slots.m.store(slots.take(kind.type), slots.memory, slots.offsets(1), slots.take(bool_) if slots.rng.random() < 0.5 else None)


def load_block(slots: Slots, kind: Kind) -> Value:
    m = slots.m
    offset = m.slice(slots.take(u32), 0, 1) & (ROOM // 2 - 1)
    return m.load_block(kind.type, WIDTH, slots.memory, offset, slots.take(bool_) if slots.rng.random() < 0.5 else None)


def store_block(slots: Slots, kind: Kind) -> None:
    offset = slots.m.slice(slots.take(u64), 0, 1) & (ROOM // 2 - 1)
    slots.m.store_block(slots.take(kind.type), slots.memory, offset, slots.take(bool_) if slots.rng.random() < 0.5 else None)


def atomic(slots: Slots, kind: Kind) -> Value:
    operands = [slots.take(kind.type) for _ in range(1 + (kind.detail == "compare_exchange"))]
    return slots.m.atomic(kind.detail, slots.memory, slots.offsets(kind.type.bytes), operands, slots.take(bool_))


def decision(slots: Slots, kind: Kind) -> Value:
    """If and Else, each with a step inside that writes a variable, and an If in the first."""
    m, a, b = slots.m, slots.take(kind.type), slots.take(kind.type)
    mask = slots.take(bool_)
    found = m.variable(a)
    for _ in m.If(m.slice(mask, 0, 1)):
        found.value = b
        for _ in m.If(m.all(mask)):
            found.value = m.shuffle(found.value, list(range(WIDTH))[::-1])
    for _ in m.Else():
        found.value = m.shuffle(found.value, [1] * WIDTH)
    return found.value


def repetition(slots: Slots, kind: Kind) -> Value:
    """A While in which each lane takes its own number of turns."""
    m, other = slots.m, slots.take(kind.type)           # picked before: a body runs once on one machine and often on the other
    left, found = m.variable(slots.take(u32) & 7), m.variable(slots.take(kind.type))
    for _ in m.While(lambda: m.any(left.value != 0)):
        active = left.value != 0
        found.value = m.select(active, m.shuffle(found.value, [*range(1, WIDTH), 0]), found.value)
        for _ in m.If(m.any(left.value == 2)):
            found.value = m.select(left.value == 2, other, found.value)
        left.value = m.select(active, left.value - 1, left.value)
    return found.value


KINDS: dict[Kind, Callable[[Slots, Kind], Value | None]] = {}
for _row in OPERATIONS.values():
    for _type in _row.domain:
        for _mode in ROUNDINGS if _row.rounded and _type.is_float else ("",):
            KINDS[Kind(_row.name, _type, _mode)] = row
for _type in TYPES:
    for _name, _step in {"constant": constant, "select": select, "shuffle": shuffle, "broadcast": broadcast, "concat": concat,
                         "if": decision, "while": repetition}.items():
        KINDS[Kind(_name, _type)] = _step
for _type in NUMBERS:
    KINDS |= {Kind("bitcast", _type, other): bitcast for other in NUMBERS if other.bits == _type.bits and other is not _type}
    KINDS |= {Kind("regroup", _type, other): regroup for other in (u8, u16, u32, u64) if other.bits <= _type.bits * WIDTH}
    KINDS |= {Kind("convert", _type, (other, mode)): convert for other in NUMBERS for mode in ROUNDINGS if mode == "rne" or other.is_float}
    KINDS |= {Kind(_name, _type): step for _name, step in {"load": load, "store": store, "load_block": load_block,
                                                         "store_block": store_block, "absolute": unary, "sign_bit": unary}.items()}
for _type in FLOATS:
    KINDS |= {Kind(_name, _type): unary for _name in ("flush", "is_nan", "is_inf", "is_denormal")}
    KINDS[Kind("copysign", _type)] = copysign
for _type in INTEGERS:
    KINDS |= {Kind("saturate_int", _type, other): saturate_int for other in INTEGERS}
    KINDS[Kind("mask_bits", _type)] = masks
    if not _type.is_signed:
        KINDS |= {Kind(_name, _type): carry for _name in ("add_carry", "sub_borrow")}
    if _type.bits >= 32:
        KINDS |= {Kind("atomic", _type, op): atomic for op in ATOMICS}
KINDS |= {Kind(_name, bool_): masks for _name in ("any", "all")}

SIGNATURE = Signature((*(Lanes(type_, WIDTH) for type_ in TYPES), Bytes("memory")),
                      tuple(Lanes(type_, WIDTH) for type_ in TYPES for _ in range(4)))


def random_program(rng: random.Random, length: int, used: Counter[Kind]) -> list[Step]:
    """Steps of the kinds used least, in random order; counts them."""
    kinds = sorted(KINDS, key=lambda kind: (used[kind], rng.random()))[:length]
    used.update(kinds)
    return [Step(kind, rng.getrandbits(32)) for kind in rng.sample(kinds, len(kinds))]


def runner(steps: list[Step]) -> Callable[..., tuple[Value, ...]]:
    """The steps as a lane program of SIGNATURE: out come the last four values of every type."""
    def program(m: Machine, *given: Any) -> tuple[Value, ...]:
        values = {value.type: [value] for value in given[:-1]}
        for step in steps:
            found = KINDS[step.kind](Slots(m, random.Random(step.seed), values, given[-1]), step.kind)
            if found is not None:
                values[found.type].append(found)
        return tuple(([values[type][0]] * 4 + values[type])[-1 - back] for type in TYPES for back in range(4))
    return program
