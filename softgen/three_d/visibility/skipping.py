"""The render pipe's draws with visibility: VF takes the tokens that were recorded, and leaves out the objects that were culled.

Reads   3DSTATE_HS 3DSTATE_GS 3DSTATE_VF_STATISTICS, visibility streams
Writes  draws of visible objects; IA_VERTICES_COUNT and IA_PRIMITIVES_COUNT, which count all
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from softgen.three_d.state.state import DrawCall
from softgen.three_d.visibility import streams
from softgen.three_d.visibility.recording import LISTS, objects_of

IA = ("IA_VERTICES_COUNT", "IA_PRIMITIVES_COUNT")
Draw = Callable[[Any, DrawCall], None]


def draw_visible(cs: Any, call: DrawCall, draw: Draw) -> None:
    """Draw the objects that are visible, as far as their record says; all of them where there is none."""
    count = objects_of(call)
    visible = streams.read(cs, count * call.instances)
    if visible is None:
        cs.warn(f"posh_enable, and no record of the {count * call.instances} objects is in the render list: all are drawn")
        draw(cs, call)
        return
    if visible.all() or visible.any() and not _divisible(cs, call):
        draw(cs, call)
        return
    for number, part in enumerate(visible.reshape(call.instances, count)):
        for first, end in _runs(part):
            size = LISTS.get(call.topology, 0)
            draw(cs, call._replace(vertices=(end - first) * size, start_vertex=call.start_vertex + first * size, instances=1,
                                   start_instance=call.start_instance + number))  # fmt: skip
    _count(cs, call, int(len(visible) - visible.sum()), whole=not visible.any())


def _divisible(cs: Any, call: DrawCall) -> bool:
    """Whether runs of objects can be drawn one by one: lists whose objects nothing counts. The position-only pipe has no other stages."""
    stages = (cs.latched.get(f"3DSTATE_{name}") for name in ("HS", "GS"))
    setup = cs.latched.get("3DSTATE_SBE")
    numbered = setup is not None and any(getattr(setup, f"primitive_id_override_component_{c}", 0) for c in "xyzw")
    return call.topology in LISTS and not any(unit is not None and unit.enable for unit in stages) and not numbered


def _runs(visible: streams.Visible) -> list[tuple[int, int]]:
    """First and end of runs of visible objects."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], visible, [False])).astype(np.int8)))
    return [(int(first), int(end)) for first, end in edges.reshape(-1, 2)]


def _count(cs: Any, call: DrawCall, skipped: int, whole: bool) -> None:
    """VF reads the tokens of objects that it skips: they count as if they had been assembled."""
    statistics = cs.latched.get("3DSTATE_VF_STATISTICS")
    if statistics is not None and statistics.statistics_enable:
        vertices = call.vertices * call.instances if whole else skipped * LISTS[call.topology]
        cs.count(IA, (vertices, skipped))
