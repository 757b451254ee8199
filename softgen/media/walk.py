"""The walk of MEDIA_OBJECT_WALKER: two nests of loops, the local one inside each step of the global one.

Reads   MEDIA_OBJECT_WALKER
Writes  positions of threads, in dispatch order

A loop has a position, which outer loops set and inner loops advance. Outer loops run so many times and one more; an inner loop runs
along its unit through what is inside, however far outside it begins: so diagonal walks work (public iHD driver and CM runtime: a
walk with steps of (-2, 1) has width + 2 * (height - 1) outer steps, and gives that number less one; BDW 23325-23676 has the fields).
The middle loop lies between and has its extra steps; the colour loop is the innermost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from typing import NamedTuple

from softgen.bits.record import Record

Point = tuple[int, int]
Box = tuple[range, range]
POLL_STEPS = 4096  # steps between two polls


class BlockPosition(NamedTuple):
    """The block of a picture that a thread works on."""

    x: int
    y: int
    color: int


Steps = tuple[int, ...]  # of the loops, outermost first: global outer and inner, local outer, mid and inner


def positions(command: Record, poll: Callable[[], None]) -> Iterator[BlockPosition]:
    for _, position in walk(command, poll):
        yield position


def groups(command: Record, level: int, poll: Callable[[], None]) -> Iterator[list[BlockPosition]]:
    """Threads of one group after another. Level 1: each iteration of the colour loop is a group; 5: all below the global outer loop
    (BDW 23270-23299)."""
    for _, members in groupby(walk(command, poll), key=lambda step: step[0][: 6 - level]):
        yield [position for _, position in members]


def walk(command: Record, poll: Callable[[], None]) -> Iterator[tuple[Steps, BlockPosition]]:
    width, height = pair(command, "global_resolution")
    whole = range(width), range(height)
    start, stride, unit = (pair(command, f"global_{name}") for name in ("start", "outer_loop_stride", "inner_loop_unit"))
    counter = StepCounter(poll)
    for i in range(command.global_loop_exec_count + 1):
        for j, corner in ray(moved(start, i, stride), unit, whole, counter):
            for steps, (x, y) in block(command, inside(command, corner, whole), counter):
                for color in range(command.color_count_minus_one + 1):
                    yield (i, j, *steps), BlockPosition(corner[0] + x, corner[1] + y, color)


def inside(command: Record, corner: Point, whole: Box) -> Box:
    """A block, clipped to the global resolution."""
    size = pair(command, "block_resolution")
    x, y = (range(min(size[axis], len(whole[axis]) - corner[axis])) for axis in (0, 1))
    return x, y


def block(command: Record, box: Box, counter: StepCounter) -> Iterator[tuple[Steps, Point]]:
    """The local loops, over one block."""
    start, stride, unit = (pair(command, f"local_{name}") for name in ("start", "outer_loop_stride", "inner_loop_unit"))
    middle = command.mid_loop_unit_x, command.local_mid_loop_unit_y
    for i in range(command.local_loop_exec_count + 1):
        for j in range(command.middle_loop_extra_steps + 1):
            for k, point in ray(moved(moved(start, i, stride), j, middle), unit, box, counter):
                yield (i, j, k), point


class StepCounter:
    """Calls `poll` at intervals, also while a walk finds no thread."""

    def __init__(self, poll: Callable[[], None]) -> None:
        self.poll, self.steps = poll, 0

    def step(self) -> None:
        self.steps += 1
        if self.steps % POLL_STEPS == 0:
            self.poll()


def ray(start: Point, unit: Point, box: Box, counter: StepCounter) -> Iterator[tuple[int, Point]]:
    """Points from `start` on that are in a box, each with the number of its step."""
    (x, y), step = start, 0
    while True:
        counter.step()
        if x in box[0] and y in box[1]:
            yield step, (x, y)
        elif _leaves(x, unit[0], box[0]) or _leaves(y, unit[1], box[1]):
            return
        if unit == (0, 0):
            return
        (x, y), step = moved((x, y), 1, unit), step + 1


def _leaves(at: int, step: int, side: range) -> bool:
    """Whether a position is outside and moves no closer."""
    return at < 0 and step <= 0 or at >= len(side) and step >= 0


def pair(command: Record, name: str) -> Point:
    return getattr(command, f"{name}_x"), getattr(command, f"{name}_y")


def moved(start: Point, times: int, step: Point) -> Point:
    return start[0] + times * step[0], start[1] + times * step[1]
