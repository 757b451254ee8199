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
from itertools import accumulate, pairwise
from typing import NamedTuple

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
Pair = tuple[int, int]  # numbers of neighbours
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
    row, lengths = numbers, [1] * len(known)
    while (pair := _most_often(row, lengths)) is not None:
        row = _joined(row, pair, len(lengths))
        lengths.append(lengths[pair[0]] + lengths[pair[1]])
    found: list[list[int]] = [[] for _ in places]
    run = 0
    for number in row:
        if number < 0:
            run += 1
        else:
            found[run].append(lengths[number])
    return found


def _most_often(row: list[int], lengths: list[int]) -> Pair | None:
    """The neighbours to join; of several that are found as often, those that were seen first."""
    if sum(lengths[number] for number in set(row) if number >= 0 and lengths[number] > 1) >= MOST:
        return None
    best: Pair | None = None
    times = OFTEN
    for pair, count in Counter(pairwise(row)).items():
        if count < times or min(pair) < 0 or lengths[pair[0]] + lengths[pair[1]] > LONGEST:
            continue
        if best is None or count > times or pair < best:
            best, times = pair, count
    return best


def _joined(row: list[int], pair: Pair, number: int) -> list[int]:
    """The row with a number for each such pair; of three in a row that are the same, for the first two."""
    found: list[int] = []
    for one in row:
        if found and (found[-1], one) == pair:
            found[-1] = number
        else:
            found.append(one)
    return found


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
    ends = accumulate(lengths, initial=start)
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
