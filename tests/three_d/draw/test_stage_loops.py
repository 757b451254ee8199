"""Loops of stage threads, which records share where threads read no surfaces."""

from __future__ import annotations

import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from softgen.shared_functions.unit import ResolvedState
from softgen.threads.dispatch import ThreadDispatch, control_register
from softgen.threads.payload import LoopPayload
from softgen.three_d.draw.stage_loops import StageLoops
from tests.conftest import needs_shared
from tests.three_d.draw.test_draw_cache import GearDraws, at_the_last_draw
from tests.three_d.own_draw import OwnDraw, rectangle

DISPATCH = ThreadDispatch(0, control_register(4.5), 16, 16, 0, LoopPayload(3))


class Dispatcher:
    """Makes a loop for every dispatch it is asked to prepare; their threads have read `entries` of the binding table."""

    def __init__(self, entries: dict[int, bytes] | None = None) -> None:
        self.resolved = ResolvedState()
        self.resolved.entries |= entries or {}

    def prepare(self, context: Any, dispatch: ThreadDispatch) -> Any:
        bound, program = SimpleNamespace(dispatch=SimpleNamespace(resolved=self.resolved)), SimpleNamespace(current=lambda context: True)
        return SimpleNamespace(dispatch=dispatch, program=program, shared=SimpleNamespace(bound=bound))


def test_records_share_a_loop_wherever_their_tables_are_until_all_are_forgotten() -> None:
    loops, dispatcher = StageLoops(), Dispatcher()
    first: Any = loops.get(dispatcher, None, DISPATCH)  # type: ignore[arg-type]
    assert first is not None and first.dispatch == replace(DISPATCH, binding_table=0, samplers=0)
    assert loops.get(dispatcher, None, replace(DISPATCH, binding_table=64, samplers=32)) is first  # type: ignore[arg-type]
    loops.clear()
    assert loops.get(dispatcher, None, DISPATCH) is not first  # type: ignore[arg-type]


def test_threads_that_read_surfaces_have_loops_of_their_own() -> None:
    loops = StageLoops()
    assert loops.get(Dispatcher({0: bytes(4)}), None, DISPATCH) is None  # type: ignore[arg-type]
    assert loops.get(Dispatcher(), None, DISPATCH) is None  # type: ignore[arg-type]  # known of its kernel now
    loops.clear()
    assert loops.get(Dispatcher(), None, DISPATCH) is not None  # type: ignore[arg-type]


def test_kernels_of_draws_have_the_seconds_that_their_threads_took() -> None:
    began = time.perf_counter()
    drawn = OwnDraw("skl", rectangle(0, 0, 16, 16), primitives=({}, {}))._executed("t1", 1)
    (kernel,) = drawn.gpu.hooks.dispatcher.ran.values()  # type: ignore[attr-defined]
    assert (kernel.dispatches, kernel.threads) == (2, drawn.gpu.counters.threads) and 0 < kernel.seconds < time.perf_counter() - began


@needs_shared("traces")
def test_records_of_commands_share_loops_over_vertices() -> None:
    """Of another state of pixels, with the same vertex shader; each draw is as with nothing kept."""

    def check(draws: GearDraws) -> None:
        found = list[object]()
        for cull in (1, 2, 3):
            draws.command("3DSTATE_RASTER", cull_mode=cull)
            assert draws.again() == draws.fresh()
            stages = {stage.name: stage.kept for stage in draws.kept.cache.current.threaded}
            found += [stages["VS"], *([stages["PS"]] if "PS" in stages else [])]
        assert len(draws.records) == 3 and len(set(found)) == len(found) - 2
        assert draws.again() == draws.fresh()

    at_the_last_draw("t1", check)
