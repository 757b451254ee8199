"""The innermost loop of a walk: points along a ray, until it leaves the block for good."""

from __future__ import annotations

import pytest

from softgen.media import walk
from softgen.media.walk import Point, StepCounter, ray

WIDE, HIGH = (range(4), range(2)), (range(2), range(4))


def test_a_walk_polls_once_in_4096_steps() -> None:
    polls: list[int] = []
    counter = StepCounter(lambda: polls.append(counter.steps))
    for _ in range(3 * 4096 + 4095):
        counter.step()
    assert polls == [4096, 2 * 4096, 3 * 4096]


# The numbers of the steps that are inside a block of 4 x 2, and how many positions are looked at.
@pytest.mark.parametrize(("start", "unit", "inside", "looked_at"), [
    ((0, 0), (1, 0), [0, 1, 2, 3], 5),
    ((1, 1), (2, 0), [0, 1], 3),
    ((3, 1), (-1, 0), [0, 1, 2, 3], 5),
    ((3, 0), (0, 1), [0, 1], 3),
    ((0, 0), (1, 1), [0, 1], 3),
    ((0, 0), (0, 0), [0], 1),
    # beside or above the block: on the way in, however far, or never
    ((6, 0), (-2, 0), [2, 3], 5),
    ((-3, 1), (2, 0), [2, 3], 5),
    ((3, -2), (0, 1), [2, 3], 5),
    ((0, -1), (0, 1), [1, 2], 4),
    ((2, 3), (0, -1), [2, 3], 5),
    ((5, -2), (-1, 1), [2, 3], 5),
    ((-1, -1), (1, 1), [1, 2], 4),
    ((-2, 1), (3, -1), [1], 3),
    ((6, 0), (-1, 1), [], 3),
    ((4, 0), (1, 0), [], 1),
    ((4, 0), (0, 0), [], 1),
    ((4, 0), (0, 1), [], 1),
    ((-1, 0), (0, 1), [], 1),
    ((-1, 0), (-1, 0), [], 1),
    ((0, 2), (1, 0), [], 1),
    ((0, -1), (1, -1), [], 1),
])  # fmt: skip
def test_points_of_a_ray(start: Point, unit: Point, inside: list[int], looked_at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same with columns and rows exchanged, in a block of 2 x 4."""
    monkeypatch.setattr(walk, "POLL_STEPS", 1)
    polls: list[int] = []
    counter = StepCounter(lambda: polls.append(1))
    wanted = [(n, (start[0] + n * unit[0], start[1] + n * unit[1])) for n in inside]
    assert list(ray(start, unit, WIDE, counter)) == wanted and len(polls) == looked_at
    assert list(ray(start[::-1], unit[::-1], HIGH, counter)) == [(n, point[::-1]) for n, point in wanted] and len(polls) == 2 * looked_at
