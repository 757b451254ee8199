"""The walk of MEDIA_OBJECT_WALKER: two nests of loops, the local one inside each step of the global one.

Reads   MEDIA_OBJECT_WALKER
Writes  places of threads, in the order of their dispatch

A loop has a position that outer loops begin and inner ones go on from. Outer loops run so many times and one more; an inner loop runs
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
OFTEN = 4096  # steps between two looks around


class Place(NamedTuple):
    """Where a thread stands."""

    x: int
    y: int
    color: int


Steps = tuple[int, ...]  # of the loops, outermost first: global outer and inner, local outer, mid and inner


def places(command: Record, look: Callable[[], None]) -> Iterator[Place]:
    for _, place in walk(command, look):
        yield place


def groups(command: Record, level: int, look: Callable[[], None]) -> Iterator[list[Place]]:
    """Threads of one group after another. Level 1: each iteration of the colour loop is a group; 5: all below the global outer loop
    (BDW 23270-23299)."""
    for _, members in groupby(walk(command, look), key=lambda one: one[0][: 6 - level]):
        yield [place for _, place in members]


def walk(command: Record, look: Callable[[], None]) -> Iterator[tuple[Steps, Place]]:
    width, height = pair(command, "global_resolution")
    whole = range(width), range(height)
    start, stride, unit = (pair(command, f"global_{name}") for name in ("start", "outer_loop_stride", "inner_loop_unit"))
    watch = Watch(look)
    for i in range(command.global_loop_exec_count + 1):
        for j, corner in ray(moved(start, i, stride), unit, whole, watch):
            for steps, (x, y) in block(command, inside(command, corner, whole), watch):
                for color in range(command.color_count_minus_one + 1):
                    yield (i, j, *steps), Place(corner[0] + x, corner[1] + y, color)


def inside(command: Record, corner: Point, whole: Box) -> Box:
    """A block, without what of it is beyond the end of everything."""
    size = pair(command, "block_resolution")
    x, y = (range(min(size[axis], len(whole[axis]) - corner[axis])) for axis in (0, 1))
    return x, y


def block(command: Record, box: Box, watch: Watch) -> Iterator[tuple[Steps, Point]]:
    """The local loops, over one block."""
    start, stride, unit = (pair(command, f"local_{name}") for name in ("start", "outer_loop_stride", "inner_loop_unit"))
    middle = command.mid_loop_unit_x, command.local_mid_loop_unit_y
    for i in range(command.local_loop_exec_count + 1):
        for j in range(command.middle_loop_extra_steps + 1):
            for k, point in ray(moved(moved(start, i, stride), j, middle), unit, box, watch):
                yield (i, j, k), point


class Watch:
    """Looks around now and then, also where a walk finds nothing."""

    def __init__(self, look: Callable[[], None]) -> None:
        self.look, self.steps = look, 0

    def step(self) -> None:
        self.steps += 1
        if self.steps % OFTEN == 0:
            self.look()


def ray(start: Point, unit: Point, box: Box, watch: Watch) -> Iterator[tuple[int, Point]]:
    """Points from `start` on that are in a box, each with the number of its step."""
    (x, y), step = start, 0
    while True:
        watch.step()
        if x in box[0] and y in box[1]:
            yield step, (x, y)
        elif _leaves(x, unit[0], box[0]) or _leaves(y, unit[1], box[1]):
            return
        if unit == (0, 0):
            return
        (x, y), step = moved((x, y), 1, unit), step + 1


def _leaves(at: int, step: int, side: range) -> bool:
    """Outside, and not on the way in."""
    return at < 0 and step <= 0 or at >= len(side) and step >= 0


def pair(command: Record, name: str) -> Point:
    return getattr(command, f"{name}_x"), getattr(command, f"{name}_y")


def moved(start: Point, times: int, step: Point) -> Point:
    return start[0] + times * step[0], start[1] + times * step[1]
