"""Streams: superinstructions for straight-line code, for threads whose channels are all active.

A stream has records of its own. They are short: a handler, then for each of its instructions the operands' offsets, and an immediate and a
flag where it has these. Frequent sequences have one handler for all of their instructions, in which results are also kept in host registers
for later operands. Handlers of streams test no mask and count nothing: the last record counts for all, and returns to the program's
records. These remain for threads with inactive channels and for threads that resume in the middle; the first of them tests whether the
stream can be taken.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from softgen.eu.isa.instruction import Instruction
from softgen.eu.threaded.handlers import HandlerKind
from softgen.eu.threaded.shapes import FREE, InstructionShape, ShapeUse, channels
from softgen.eu.threaded.state import flagged
from softgen.lanes.types import u32

LONGEST = 32  # instructions of one handler
OFTEN = 4  # how often a sequence must occur
MOST = 512  # instructions of all sequences of a program, which take half a second to compile
SHORTEST, SHORTEST_IN_LOOP = 64, 4  # instructions that a stream is made for

FOUR, ONE = struct.Struct("<4H"), struct.Struct("<Q")
Row = npt.NDArray[np.int64]
Step = tuple[HandlerKind, ShapeUse]  # an instruction
Extents = Callable[[HandlerKind], tuple[int, ...]]  # how many bytes of each slot a kind's handler touches
UNKNOWN = (-1,) * 4
Place = tuple[int, int]  # of a run: its first step, and the one after its last


def joins(kind: HandlerKind) -> bool:
    """Whether it may be part of a stream: what looks for registers by address may have to leave in the middle."""
    inst = kind.shape.instruction
    return kind.what == "compute" and not any(operand is not None and operand.indirect for operand in (inst.dst, *inst.sources))


def runs(steps: Sequence[Step | None], heads: set[int], loops: set[int]) -> list[Place]:
    """What is worth a stream. None is what belongs to none; threads come in at `heads`; `loops` are the places inside one."""
    found, start = [], 0
    for at in range(len(steps) + 1):
        stops = at == len(steps) or steps[at] is None
        if stops or at in heads:
            if at - start >= (SHORTEST_IN_LOOP if start in loops else SHORTEST):
                found.append((start, at))
            start = at + stops
    return found


def sequences(steps: Sequence[Step | None], places: list[Place]) -> list[list[int]]:
    """Each run as the lengths of its sequences: again and again, the two neighbours that are found most often become one."""
    known: dict[HandlerKind, int] = {}
    numbers: list[int] = []
    for start, end in places:
        numbers += [known.setdefault(step[0], len(known)) for step in steps[start:end] if step is not None]
        numbers.append(-1)
    row, lengths = np.array(numbers, np.int64), [1] * len(known)
    while (pair := _most_often(row, np.array(lengths))) is not None:
        row = _joined(row, pair, len(lengths))
        lengths.append(lengths[pair[0]] + lengths[pair[1]])
    found: list[list[int]] = [[] for _ in places]
    run = 0
    for number in row.tolist():
        if number < 0:
            run += 1
        else:
            found[run].append(lengths[number])
    return found


def _most_often(row: Row, lengths: Row) -> tuple[int, int] | None:
    count = len(lengths)
    used = lengths[sorted(set(row[row >= 0].tolist()))]
    if used[used > 1].sum() >= MOST:
        return None
    found = np.sort((row[:-1] * count + row[1:])[(row[:-1] >= 0) & (row[1:] >= 0)])
    edges = np.flatnonzero(np.diff(found, prepend=-1))
    pairs, times = found[edges], np.diff(edges, append=len(found))
    together = lengths[pairs // count] + lengths[pairs % count] if count else pairs
    times[(together > LONGEST) | (times < OFTEN)] = 0
    if not times.any():
        return None
    best = int(pairs[times.argmax()])
    return best // count, best % count


def _joined(row: Row, pair: tuple[int, int], number: int) -> Row:
    at = np.flatnonzero((row[:-1] == pair[0]) & (row[1:] == pair[1]))
    if pair[0] == pair[1]:  # of three in a row, the first two
        kept, last = [], -2
        for index in at.tolist():
            if index > last + 1:
                kept.append(last := index)
        at = np.array(kept, np.int64)
    row = row.copy()
    row[at] = number
    return np.delete(row, at + 1)


class Stream(NamedTuple):
    """A run: its first record, the one after its last, the channels that must be on, and its sequences."""

    start: int
    end: int
    need: int
    sequences: list[tuple[HandlerKind, Sequence[Step]]]


def find(steps: Sequence[Step | None], first: int, heads: set[int], loops: set[int], extents: Extents) -> list[Stream]:
    """The streams of a part of a program, which begins with record number `first`."""
    places = runs(steps, heads, loops)
    cut = [_cut(steps, start, lengths) for (start, _), lengths in zip(places, sequences(steps, places), strict=True)]
    made = [[_kind(tuple(kind for kind, _ in sequence), makers(sequence, extents)) for sequence in row] for row in cut]
    times = Counter(kind for row in made for kind in row)
    found = []
    for (start, end), row, kinds in zip(places, cut, made, strict=True):
        need = 0
        for use in {(use.shape, use.group): use for sequence in row for _, use in sequence}.values():
            need |= channels(use)
        if need <= u32.highest:
            kinds = [kind if times[kind] >= OFTEN else _kind(kind.parts, (UNKNOWN,) * len(kind.parts)) for kind in kinds]
            found.append(Stream(first + start, first + end, need, list(zip(kinds, row, strict=True))))
    return found


def _cut(steps: Sequence[Step | None], start: int, lengths: list[int]) -> list[list[Step]]:
    ends = np.cumsum([start, *lengths]).tolist()
    return [[step for step in steps[first:other] if step is not None] for first, other in pairwise(ends)]


def makers(steps: Sequence[Step], extents: Extents) -> tuple[tuple[int, ...], ...]:
    """By instruction of a sequence and slot: the instruction whose result that operand is, as long as nothing else was written there."""
    found: list[tuple[int, ...]] = []
    results: dict[int, tuple[int, int]] = {}  # by where they start: whose they are, and where they end
    for number, (kind, use) in enumerate(steps):
        found.append(tuple(results[start][0] if start in results and limit < FREE else -1 for start, limit in _operands(use)))
        start, end = use.slots[0], use.slots[0] + extents(kind)[0]
        if use.limits[0] < FREE:
            results = {first: rest for first, rest in results.items() if first >= end or rest[1] <= start}
            results[start] = number, end
    return tuple(found)


def _operands(use: ShapeUse) -> Iterator[tuple[int, int]]:
    """Slots and limits; what is written is no operand."""
    return zip((0, *use.slots[1:]), (FREE, *use.limits[1:]), strict=True)


@lru_cache(1 << 12)
def _kind(parts: tuple[HandlerKind, ...], made: tuple[tuple[int, ...], ...]) -> HandlerKind:
    plain = InstructionShape(Instruction(parts[0].shape.instruction.gen, "", 0, "none"))
    return HandlerKind("stream", plain, parts=parts, makers=made)


def text(stream: Stream, handlers: dict[HandlerKind, int], back: bytes) -> bytes:
    """A stream's records."""
    found = []
    for kind, steps in stream.sequences:
        found.append(ONE.pack(handlers[kind]))
        for part, use in steps:
            found.append(FOUR.pack(*use.slots))
            if max(part.shape.immediates) >= 0:
                found.append(ONE.pack(use.immediate))
            if flagged(part.shape.instruction):
                found.append(ONE.pack(use.flag))
    return b"".join([*found, back])
