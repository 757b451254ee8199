"""Stages of prepared draws on several host threads: loops that share the work of a stage, and what they need of Python."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from softgen.errors import GpuFault
from softgen.three_d.draw import prepared_draws
from softgen.three_d.draw.draw_structures import Stage
from softgen.three_d.draw.prepared import PreparedDraw
from tests.three_d.g45_draw import GENERAL, SCRATCH, SIZE, STRIP, TARGET, TRIANGLES, Drawn, G45Draw, moves, send, vertex

WIDE = 128  # pixels of the target in x and y: four tiles
COVERED = [vertex(0, 0, attribute=(1, 0, 1, 0)), vertex(2 * WIDE, 0, attribute=(0, 1, 0, 1)), vertex(0, 2 * WIDE, attribute=(1, 1, 0, 1))]
COUNTS = ("VS_INVOCATION_COUNT", "CL_PRIMITIVES_COUNT", "PS_INVOCATION_COUNT", "PS_DEPTH_COUNT")
OBJECTS = 200
COPY = moves(1, "g1", "g2", "g3", "g4") + "\n" + send(0, 6, 0xC400, 5, eot=True)
VS_STATE = {"enable": 1, "kernel_start_pointer": 0x1000, "vertex_urb_entry_read_length": 2, "statistics_enable": 1,
            "dispatch_grf_start_register_for_urb_data": 1, "maximum_number_of_threads": 3}  # fmt: skip


def scene(**state: Any) -> G45Draw:
    """Two draws of triangles that cover the target."""
    state = {"VS_STATE": VS_STATE, **state}
    state["WM_STATE"] = {"statistics_enable": 1, **state.get("WM_STATE", {})}
    return G45Draw(COVERED * OBJECTS, TRIANGLES, state, vs=COPY, primitives=({}, {}), size=(WIDE, WIDE),
                   format="B8G8R8A8_UNORM")  # fmt: skip


@pytest.fixture(autouse=True)
def made(monkeypatch: pytest.MonkeyPatch) -> list[PreparedDraw]:
    """Prepared draws, whose work is shared even if it is little."""
    found: list[PreparedDraw] = []

    class Kept(PreparedDraw):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            found.append(self)

    monkeypatch.setattr(prepared_draws, "PreparedDraw", Kept)
    monkeypatch.setattr(prepared_draws, "LOOP_PIXELS", 64)
    monkeypatch.setattr(prepared_draws, "PER_LOOP", 1)
    return found


def registers(drawn: Drawn) -> list[int]:
    return [drawn.register(name) for name in COUNTS]


@pytest.mark.parametrize("threads", [2, 3])
def test_loops_share_the_work_of_a_stage(threads: int, made: list[PreparedDraw]) -> None:
    """Pictures, statistics and counts of threads are those of one host thread."""
    alone = scene().run(threads=1)
    assert not made[0].struct.pixel_loops.count
    shared = scene().run(threads=threads)
    assert np.array_equal(shared.pixels, alone.pixels) and shared.pixels.all()
    assert registers(shared) == registers(alone)
    assert shared.gpu.counters.threads == alone.gpu.counters.threads
    assert shared.gpu.counters.instructions == alone.gpu.counters.instructions
    prepared = made[1].struct
    assert [loops.count for loops in (prepared.vertex_loops, prepared.setup_loops, prepared.pixel_loops)] == 3 * [threads]


@pytest.mark.parametrize("stage", ["VS", "SF", "WM"])
def test_threads_with_scratch_space_are_not_shared_by_the_loops_of_a_draw(stage: str, made: list[PreparedDraw],
                                                                          monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    """Loops would have the same numbers of threads, and so the same scratch space: plans share the work out anew for each draw."""
    shared, share = list[int](), prepared_draws.PreparedDraws._share_scratch

    def noted(self: Any, *arguments: Any) -> None:
        shared.append(int(self._now.stage))
        share(self, *arguments)

    monkeypatch.setattr(prepared_draws.PreparedDraws, "_share_scratch", noted)
    fields = {"VS": VS_STATE, "SF": {}, "WM": {}}[stage]
    state: Any = {f"{stage}_STATE": {**fields, "scratch_space_base_pointer": SCRATCH - GENERAL, "maximum_number_of_threads": 3}}
    alone = scene(**state).run(threads=1)
    assert not shared
    found = scene(**state).run(threads=2)
    assert np.array_equal(found.pixels, alone.pixels) and found.pixels.all() and registers(found) == registers(alone)
    assert found.gpu.counters.threads == alone.gpu.counters.threads
    prepared = made[1].struct
    assert set(shared) == {{"VS": Stage.VERTICES, "SF": Stage.SETUP_THREADS, "WM": Stage.PIXELS}[stage]}
    loops = {"VS": prepared.vertex_loops, "SF": prepared.setup_loops, "WM": prepared.pixel_loops}
    found_loops = {name: (held.scratch, held.count) for name, held in loops.items()}
    assert found_loops == {name: (1, 0) if name == stage else (0, 2) for name in loops}


def test_workers_that_were_made_first_make_room(monkeypatch: pytest.MonkeyPatch, made: list[PreparedDraw]) -> None:
    """Draws of two states, in turn; there is room for the workers of one."""
    monkeypatch.setattr(prepared_draws, "MOST_WORKERS", 1)
    draw = replace(scene(), primitives=({}, {"primitive_topology_type": STRIP}, {}))
    alone = draw.run(threads=1)
    shared = draw.run(threads=2)
    assert np.array_equal(shared.pixels, alone.pixels) and registers(shared) == registers(alone)
    first, second = (prepared.struct.pixel_loops for prepared in made[2:])
    assert (first.count, second.count) == (2, 0) and len(made[2].loops["PS"].workers) == 2 and len(made[3].loops["PS"].workers) == 1


def test_loops_that_are_past_their_deadline_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    alone, polls = scene().run(threads=1), list[int]()
    answer = prepared_draws.PreparedDraws._answer_loops

    def counted(self: Any, *arguments: Any) -> None:
        polls.append(int(self._now.running_count))
        answer(self, *arguments)

    monkeypatch.setattr(prepared_draws.PreparedDraws, "_answer_loops", counted)
    monkeypatch.setattr(prepared_draws, "SLICE", 1)
    shared = scene().run(threads=2)
    assert set(polls) <= {1, 2} and polls
    assert np.array_equal(shared.pixels, alone.pixels) and registers(shared) == registers(alone)


def test_a_fault_of_one_loop_ends_the_draw() -> None:
    """The target has more rows than memory."""
    with pytest.raises(GpuFault, match="3DPRIMITIVE") as found:
        scene(RENDER_SURFACE_STATE={"surface_base_address": TARGET + SIZE // 2}).run(threads=2)
    assert TARGET + SIZE <= found.value.address < TARGET + 2 * SIZE and found.value.access == "write"
