"""Both machines on random programs, with the coverage of operations × types counted and printed."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from softgen.lanes.types import TYPES
from tests.lanes.both import agree, compile_
from tests.lanes.both import random_lanes as lanes_of
from tests.lanes.numbers import specials
from tests.lanes.programs import KINDS, ROOM, SIGNATURE, WIDTH, Kind, random_program, runner

PROGRAMS, LENGTH, TURNS = 28, 60, 4


def test_machines_agree_on_random_programs(capsys: pytest.CaptureFixture[str]) -> None:
    rng, numbers = random.Random(4), np.random.default_rng(4)
    used: Counter[Kind] = Counter()
    for _ in range(PROGRAMS):
        steps = random_program(rng, LENGTH, used)
        program = runner(steps)
        routine = compile_(program, SIGNATURE)
        for _ in range(TURNS):
            inputs = [lanes_of(type, WIDTH, numbers, specials(type)) for type in TYPES]
            agree(program, SIGNATURE, [*inputs, numbers.integers(0, 256, ROOM, np.uint8)], routine, any_nan=False)
    pairs = {(kind.name, kind.type) for kind in KINDS}
    covered = {(kind.name, kind.type) for kind in used}
    with capsys.disabled():
        print(f"\nlanes: {PROGRAMS} random programs, {sum(used.values())} steps; operations × types {len(covered)} of {len(pairs)}, "
              f"with roundings and conversions {len(used)} of {len(KINDS)}")
    assert set(used) == set(KINDS)
