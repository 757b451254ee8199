"""The Line Stipple Counter: lines advance it from draw to draw, 3DSTATE_LINE_STIPPLE may set it, and each context has its own."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import pytest

from softgen.bits.generation import device
from softgen.three_d.draw.draw import Pipeline3D
from softgen.three_d.state.state import PipelineContext
from tests.three_d.gen7_draw import Gen7Draw
from tests.three_d.own_draw import Fields, OwnDraw, vertex

GPUS = ("ivb", "hsw", "bdw", "skl", "icl")
STRIP, CONTINUED = 3, 18  # topologies
PATTERN, REPEAT = 0b1010_0110_0000_1101, 3
LENGTH = 7  # pixels of each line


def lines(gpu: str, stipples: Sequence[Fields], topologies: Sequence[int]) -> list[str]:
    """Draws of a line each, one below the other, with 3DSTATE_LINE_STIPPLE before each; the pixels of each as a row of 0 and 1."""
    made = Gen7Draw if device(gpu).generation.number < 8 else OwnDraw
    corners = [vertex(x, row + 0.5) for row in range(len(topologies)) for x in (1.5, 1.5 + LENGTH)]
    enable: Fields = {"line_stipple_enable": 1}
    state: dict[str, Fields] = {"3DSTATE_WM": enable, **({"3DSTATE_SF": enable} if gpu == "hsw" else {})}
    draw = made(gpu, corners, state)
    held: list[Sequence[int]] = []
    for row, (stipple, topology) in enumerate(zip(stipples, topologies, strict=True)):
        where: dict[str, Any] = {"start_vertex_location": 2 * row, "vertex_count_per_instance": 2, "instance_count": 1}
        if made is Gen7Draw:
            where["primitive_topology_type"] = topology
        else:
            held.append(draw.pack("3DSTATE_VF_TOPOLOGY", primitive_topology_type=topology))
        held += [draw.pack("3DSTATE_LINE_STIPPLE", line_stipple_pattern=PATTERN, line_stipple_repeat_count=REPEAT, **stipple),
                 draw.pack("3DPRIMITIVE", **where)]  # fmt: skip
    draw.primitives, draw.after = [{"vertex_count_per_instance": 0}], held
    lit = draw.run().lit
    return ["".join(str(int((x, row) in lit)) for x in range(1, 1 + LENGTH)) for row in range(len(topologies))]


def stippled(start: int) -> str:
    return "".join(str(PATTERN >> (start + n) // REPEAT % 16 & 1) for n in range(LENGTH))


@pytest.mark.behaviour("BDW-WM-09", shows="action")
@pytest.mark.parametrize("gpu", GPUS)
def test_the_modify_bit_sets_the_running_counters(gpu: str) -> None:
    """Repeats from 1 on, and the pattern's index; without the bit, neither field means anything. A strip begins anew in any case."""
    reset, moved, ignored = ({"modify_enable": bit, "current_repeat_counter": repeat, "current_stipple_index": index}
                             for bit, repeat, index in ((1, 1, 0), (1, 3, 11), (0, 2, 5)))  # fmt: skip
    found = lines(gpu, [{}, {}, ignored, reset, {}, moved, {}, moved], [STRIP, *6 * [CONTINUED], STRIP])
    assert found == [stippled(start) for start in (0, 7, 14, 0, 7, 11 * 3 + 2, 11 * 3 + 2 + 7, 0)]


@pytest.mark.behaviour("BDW-WM-09", shows="action")
def test_the_modify_bit_may_come_before_the_first_draw() -> None:
    for topology, start in ((CONTINUED, 4 * 3 + 1), (STRIP, 0)):
        state = {"modify_enable": 1, "current_repeat_counter": 2, "current_stipple_index": 4}
        assert lines("bdw", [state], [topology]) == [stippled(start)]


@pytest.mark.behaviour("BDW-CTX-10", shows="action")
def test_a_copy_of_a_context_goes_on_from_the_counter_of_the_other() -> None:
    """And each counts for itself then."""
    part = PipelineContext()
    part.stipple.value = 38
    part.pipeline = Pipeline3D(part.stipple)
    made = copy.deepcopy(part)
    assert isinstance(made.pipeline, Pipeline3D) and made.pipeline.memory.stipple is made.stipple is not part.stipple
    assert made.stipple.value == 38
