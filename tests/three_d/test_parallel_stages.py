"""Stages of a draw on several host threads: loops that share the work of a stage, and what they need of Python."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from softgen.errors import GpuFault
from softgen.three_d.draw import draw_cache, draw_walk
from softgen.three_d.draw.stage import ThreadedStage
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
def shared(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Stages that were given workers, and how many: work is shared even if it is little."""
    found, share = list[tuple[str, int]](), ThreadedStage.share

    def noted(self: ThreadedStage, loops: int) -> None:
        found.append((self.name, loops))
        share(self, loops)

    monkeypatch.setattr(ThreadedStage, "share", noted)
    monkeypatch.setattr(draw_walk, "LOOP_PIXELS", 64)
    monkeypatch.setattr(draw_walk, "PER_LOOP", 1)
    return found


def registers(drawn: Drawn) -> list[int]:
    return [drawn.register(name) for name in COUNTS]


def same(found: Drawn, alone: Drawn) -> bool:
    counters = [(drawn.gpu.counters.threads, drawn.gpu.counters.instructions) for drawn in (found, alone)]
    return np.array_equal(found.pixels, alone.pixels) and registers(found) == registers(alone) and counters[0] == counters[1]


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("threads", [2, 3])
def test_loops_share_the_work_of_a_stage(threads: int, kept: bool, shared: list[tuple[str, int]],
                                         monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    """Pictures, statistics and counts of threads are those of one host thread."""
    if not kept:
        monkeypatch.setattr(draw_cache.RecordCache, "ready", lambda self, cs: False)
    alone = scene().run(threads=1)
    assert not shared
    found = scene().run(threads=threads)
    assert same(found, alone) and found.pixels.all()
    assert set(shared) == {(stage, threads) for stage in ("VS", "SF", "PS")} and len(shared) == (3 if kept else 6)


@pytest.mark.parametrize(("stage", "most", "loops"), [("VS", 7, 2), ("SF", 7, 2), ("WM", 63, 3), ("WM", 31, 2), ("WM", 15, None)])
def test_loops_have_scratch_space_of_their_own(stage: str, most: int, loops: int | None, shared: list[tuple[str, int]]) -> None:
    """As many as there is space for a batch of each: four threads of each loop of VS and SF, 16 of pixel shaders."""
    fields = {"VS": VS_STATE, "SF": {}, "WM": {}}[stage]
    scratch = {"scratch_space_base_pointer": SCRATCH - GENERAL, "maximum_number_of_threads": most}
    alone = scene(**{f"{stage}_STATE": {**fields, **scratch}}).run(threads=1)
    found = scene(**{f"{stage}_STATE": {**fields, **scratch}}).run(threads=3)
    assert same(found, alone) and found.pixels.all()
    assert dict(shared).get({"WM": "PS"}.get(stage, stage)) == (None if stage != "WM" else loops)


def test_workers_that_were_made_first_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draws of two states, in turn; there is room for the workers of one."""
    freed = list[str]()
    unshare = ThreadedStage.unshare

    def noted(self: ThreadedStage) -> None:
        freed.append(self.name)
        unshare(self)

    monkeypatch.setattr(ThreadedStage, "unshare", noted)
    monkeypatch.setattr(draw_cache, "MOST_WORKERS", 1)
    draw = replace(scene(), primitives=({}, {"primitive_topology_type": STRIP}, {}))
    alone = draw.run(threads=1)
    assert same(draw.run(threads=2), alone) and "PS" in freed


def test_loops_that_are_past_their_deadline_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    alone, polls = scene().run(threads=1), list[int]()
    answer = ThreadedStage._answer_loops

    def counted(self: Any, walk: Any, parts: Any) -> None:
        polls.append(len(parts))
        answer(self, walk, parts)

    monkeypatch.setattr(ThreadedStage, "_answer_loops", counted)
    monkeypatch.setattr(draw_walk, "SLICE", 1)
    shared = scene().run(threads=2)
    assert set(polls) <= {1, 2} and polls
    assert same(shared, alone)


def test_a_fault_of_one_loop_ends_the_draw() -> None:
    """The target has more rows than memory."""
    with pytest.raises(GpuFault, match="3DPRIMITIVE") as found:
        scene(RENDER_SURFACE_STATE={"surface_base_address": TARGET + SIZE // 2}).run(threads=2)
    assert TARGET + SIZE <= found.value.address < TARGET + 2 * SIZE and found.value.access == "write"
