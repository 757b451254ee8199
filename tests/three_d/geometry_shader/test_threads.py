"""Threads of geometry shaders: which objects and instances they get, with which vertices in which order, and their counters."""

from __future__ import annotations

from typing import Any

import pytest

from softgen.errors import DecodeError
from tests.three_d.geometry_shader.shading import (
    ATTRIBUTE,
    CHANNELS,
    DUAL_INSTANCE,
    DUAL_OBJECT,
    EVERY,
    LANES,
    MODES,
    SIMD8,
    SINGLE,
    URB,
    Kernel,
    Put,
    Shading,
    scalar,
)
from tests.three_d.own_draw import POINTS, TRIANGLES, move, send
from tests.three_d.stream_out.streaming import corners

NOT_RENDERED = {"unit": {"rendering_disable": 1}}
LINES, LINE_STRIP, TRIANGLE_STRIP, FAN = 2, 3, 5, 6
LINES_ADJACENT, LINE_STRIP_ADJACENT, TRIANGLES_ADJACENT, STRIP_ADJACENT, STRIP_REVERSE = range(9, 14)
PATCHES = 0x1F  # of no vertices
LEADING, TRAILING = range(2)
FEW = [("ivb", DUAL_OBJECT), ("hsw", SINGLE), ("bdw", DUAL_INSTANCE), ("icl", SIMD8)]


def instanced(mode: int) -> list[int]:
    """Numbers of instances that a mode may have, odd ones and more than the lanes of a thread."""
    return [1] if mode == DUAL_OBJECT else [1, 11] if mode == SIMD8 else [1, 5]


# -- objects and instances ---------------------------------------------------------------------------------------------


@pytest.mark.behaviour("BDW-GS-02", "BDW-GS-03", "BDW-GS-12", shows="action")
@pytest.mark.behaviour("BDW-GS-14", shows="action")
@pytest.mark.behaviour("ICL-3D-04", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize(("gpu", "mode", "instances"), [(*which, n) for which in EVERY for n in instanced(which[1])])
def test_objects_and_instances_in_order(gpu: str, mode: int, instances: int) -> None:
    """Eleven objects: the last threads have fewer than they could. Instances of an object are counted each."""
    unit = {"instance_control": instances - 1, "invocations_increment_value": 2}
    vertices = corners(33)
    shown = Shading(gpu, mode, vertices=vertices, put=(2, 0), unit=unit, more=NOT_RENDERED).run()
    expected = [Put(3 * k + n, k, i) for k in range(11) for i in range(instances) for n in (2, 0)]
    assert shown.vertices() == expected[: 0x800 // 16] and not shown.remarks
    per = 11 if mode == DUAL_OBJECT or instances == 1 else instances
    threads = -(-per // LANES[mode]) * (1 if per == 11 and instances == 1 and mode != DUAL_INSTANCE else 11)
    if mode in (SINGLE, DUAL_INSTANCE):
        threads = 11 * -(-instances // LANES[mode])
    assert shown.streamed.drawn.gpu.counters.threads == threads
    assert shown.register("GS_INVOCATION_COUNT") == 3 * 11 * instances
    assert shown.register("GS_PRIMITIVES_COUNT") == 2 * 11 * instances


@pytest.mark.covering(1)
@pytest.mark.parametrize(("gpu", "mode"), FEW)
@pytest.mark.parametrize(("engine", "threads"), [("reference", 1), ("t1", 3)])
def test_engines_and_host_threads_agree(gpu: str, mode: int, engine: str, threads: int) -> None:
    shading = Shading(gpu, mode, vertices=corners(33), control={0: 0b100}, header_size=1, unit={"output_topology": 5})
    assert shading.run(engine, threads).rows() == shading.run().rows() != []


@pytest.mark.behaviour("BDW-GS-15", shows="action")
@pytest.mark.parametrize("gpu", MODES)
def test_statistics_can_be_off(gpu: str) -> None:
    shown = Shading(gpu, MODES[gpu][-1], unit={"statistics_enable": 0}).run()
    assert shown.numbers() == list(range(6))
    assert [shown.register(f"GS_{name}_COUNT") for name in ("INVOCATION", "PRIMITIVES")] == [0, 0]


@pytest.mark.behaviour("BDW-GS-02", "BDW-GS-03", shows="action")
@pytest.mark.parametrize(("mode", "given", "instances"), [(DUAL_OBJECT, 3, 2), (DUAL_OBJECT, 17, 1), (SIMD8, 7, 1)])
def test_modes_have_limits(mode: int, given: int, instances: int) -> None:
    topology = TRIANGLES if given == 3 else PATCHES + given
    shading = Shading("bdw", mode, topology, given, corners(given), put=(0,), unit={"instance_control": instances - 1})
    with pytest.raises(DecodeError, match="3DSTATE_GS: dispatch_mode"):
        shading.run()


@pytest.mark.behaviour("BDW-GS-02", "BDW-GS-03", shows="action")
@pytest.mark.parametrize(("mode", "given"), [(DUAL_OBJECT, 16), (SIMD8, 6), (SINGLE, 17)])
def test_as_many_vertices_as_a_mode_may_have(mode: int, given: int) -> None:
    shown = Shading("bdw", mode, PATCHES + given, given, corners(2 * given), put=(given - 1, 0)).run()
    assert shown.vertices() == [Put(n, k, 0) for k in range(2) for n in (given * (k + 1) - 1, given * k)]


# -- vertices of objects -----------------------------------------------------------------------------------------------

LISTS: dict[int, list[tuple[int, ...]]] = {
    POINTS: [(n,) for n in range(12)], LINES: [(n, n + 1) for n in range(0, 12, 2)], LINE_STRIP: [(n, n + 1) for n in range(11)],
    TRIANGLES: [(n, n + 1, n + 2) for n in range(0, 12, 3)], FAN: [(0, n, n + 1) for n in range(1, 11)],
    LINES_ADJACENT: [(n, n + 1, n + 2, n + 3) for n in range(0, 12, 4)], LINE_STRIP_ADJACENT: [(n, n + 1, n + 2, n + 3) for n in range(9)],
    TRIANGLES_ADJACENT: [tuple(range(6)), tuple(range(6, 12))],
}  # fmt: skip


def put_out(objects: list[tuple[int, ...]]) -> list[tuple[int, int]]:
    return [(number, k) for k, vertices in enumerate(objects) for number in vertices]


@pytest.mark.covering(1)
@pytest.mark.parametrize(("gpu", "mode"), FEW)
@pytest.mark.parametrize("topology", LISTS)
def test_vertices_of_objects(gpu: str, mode: int, topology: int) -> None:
    shown = Shading(gpu, mode, topology, len(LISTS[topology][0]), corners(12)).run()
    assert [put[:2] for put in shown.vertices()] == put_out(LISTS[topology])


@pytest.mark.behaviour("BDW-GS-05", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize(("gpu", "mode"), FEW)
@pytest.mark.parametrize(
    ("topology", "interior"), [(LINES_ADJACENT, (1, 2)), (LINE_STRIP_ADJACENT, (1, 2)), (TRIANGLES_ADJACENT, (0, 2, 4))]
)
def test_adjacent_vertices_can_be_discarded(gpu: str, mode: int, topology: int, interior: tuple[int, ...]) -> None:
    shown = Shading(gpu, mode, topology, len(interior), corners(12), unit={"discard_adjacency": 1}).run()
    assert [put[:2] for put in shown.vertices()] == put_out([tuple(held[n] for n in interior) for held in LISTS[topology]])


def strip(gpu: str, topology: int, mode: int) -> list[tuple[int, ...]]:
    """The triangles of a strip of six (BDW 5970-5988; public: Mesa crocus_state.c)."""
    found: list[tuple[int, ...]] = []
    for k in range(4):
        a, b, c = k, k + 1, k + 2
        if k % 2 == (topology != STRIP_REVERSE):
            leading, trailing = ((a, b, c), (a, c, b)) if gpu == "ivb" else ((a, c, b), (b, a, c))
            a, b, c = trailing if mode == TRAILING else leading
        found.append((a, b, c))
    return found


@pytest.mark.behaviour("BDW-GS-06", shows="action")
@pytest.mark.parametrize("gpu", ["ivb", "hsw", "icl"])
@pytest.mark.parametrize("topology", [TRIANGLE_STRIP, STRIP_REVERSE])
@pytest.mark.parametrize("order", [LEADING, TRAILING])
def test_odd_triangles_of_strips(gpu: str, topology: int, order: int) -> None:
    shown = Shading(gpu, MODES[gpu][-1], topology, unit={"reorder_mode": order}).run()
    assert [put[:2] for put in shown.vertices()] == put_out(strip(gpu, topology, order))


def adjacent_strip(gpu: str, mode: int) -> list[tuple[int, ...]]:
    """The triangles of a strip of twelve, with the vertices next to them (G45 3310-3341; OpenGL 4.6 table 10.1)."""
    even = [(0, 1, 2, 6, 4, 3), (4, 2, 6, 10, 8, 7)]
    odd = [(2, 5, 6, 8, 4, 0), (6, 9, 10, 11, 8, 4)]
    if mode == TRAILING and gpu != "ivb":
        odd = [(4, 0, 2, 5, 6, 8), (8, 4, 6, 9, 10, 11)]
    return [even[0], odd[0], even[1], odd[1]]


@pytest.mark.behaviour("BDW-GS-05", "BDW-GS-06", shows="action")
@pytest.mark.parametrize(("gpu", "mode"), FEW)
@pytest.mark.parametrize("order", [LEADING, TRAILING])
@pytest.mark.parametrize("discard", [0, 1])
def test_strips_of_triangles_with_adjacent_vertices(gpu: str, mode: int, order: int, discard: int) -> None:
    unit = {"reorder_mode": order, "discard_adjacency": discard}
    shown = Shading(gpu, mode, STRIP_ADJACENT, 3 if discard else 6, corners(12), unit=unit).run()
    objects = adjacent_strip(gpu, order)
    if discard and gpu == "ivb":  # the order of the strip without adjacent vertices
        objects = [tuple(2 * n for n in held) for held in strip(gpu, TRIANGLE_STRIP, order)]
    elif discard:
        objects = [held[::2] for held in objects]
    assert [put[:2] for put in shown.vertices()] == put_out(objects)


@pytest.mark.behaviour("BDW-GS-04", shows="action")
@pytest.mark.parametrize("gpu", ["bdw"])
@pytest.mark.parametrize(("topology", "discard", "expected", "passes"), [
    (TRIANGLES, 0, 3, True), (TRIANGLES, 0, 6, False), (LINES, 0, 3, False), (TRIANGLES_ADJACENT, 1, 3, True),
    (TRIANGLES_ADJACENT, 0, 3, False), (TRIANGLES, 1, 3, True),
])  # fmt: skip
def test_objects_of_another_size_are_dropped(gpu: str, topology: int, discard: int, expected: int, passes: bool) -> None:
    """Without a word, and after adjacent vertices have been discarded. No thread is counted."""
    unit = {"discard_adjacency": discard, "expected_vertex_count": expected}
    shown = Shading(gpu, SIMD8, topology, 3, put=(0,), unit=unit, more=NOT_RENDERED).run()
    assert bool(shown.vertices()) == passes == bool(shown.register("GS_INVOCATION_COUNT")) and not shown.remarks
    assert bool(shown.streamed.drawn.gpu.counters.threads) == passes


# -- payloads ----------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("BDW-GS-13", shows="action")
@pytest.mark.parametrize(("gpu", "mode"), EVERY)
def test_payloads_have_hint_and_topology(gpu: str, mode: int) -> None:
    shown = Shading(gpu, mode, FAN, unit={"hint": mode != SINGLE}).run()
    assert {row[3] for row in shown.rows()} == {(mode != SINGLE) << 31 | FAN}


@pytest.mark.behaviour("BDW-GS-12", shows="action")
@pytest.mark.parametrize(("gpu", "mode"), EVERY)
def test_payloads_without_primitive_ids(gpu: str, mode: int) -> None:
    """What follows has the registers (BDW 5803-5818)."""
    shown = Shading(gpu, mode, primitive_ids=False).run()
    assert shown.vertices() == [Put(n, 0, 0) for n in range(6)]


@pytest.mark.behaviour("BDW-GS-12", "BDW-GS-16", shows="action")
@pytest.mark.parametrize(("gpu", "mode"), EVERY)
@pytest.mark.parametrize(("ids", "instances"), [(False, 1), (True, 2)])
def test_threads_read_vertices_by_handle(gpu: str, mode: int, ids: bool, instances: int) -> None:
    """Nothing is pushed. Vertices' handles begin behind R0, handles of entries and PrimitiveIDs; a dual thread has those of two
    objects side by side, eight objects have a register for each vertex, and instances of one object its handles only."""
    if mode == DUAL_OBJECT and instances > 1:
        pytest.skip("dual object has one instance")
    given = 5
    registers = {SINGLE: 1, DUAL_INSTANCE: 1, DUAL_OBJECT: 2, SIMD8: given if instances == 1 else 1}[mode]
    unit: dict[str, Any] = {"vertex_urb_entry_read_length": 0, "instance_control": instances - 1}
    shading = Pulling(gpu, mode, PATCHES + given, given, corners(3 * given), ids, handles=registers, unit=unit)
    shown = shading.run()
    assert [put[0] for put in shown.vertices()] == [
        n for k in range(3) for _ in range(instances) for n in range(given * k, given * k + given)
    ]


class Pulling(Shading):
    """A draw whose threads read the attributes of vertices from their entries."""

    def kernel(self) -> Kernel:
        made = super().kernel()
        instanced = bool(self.unit["instance_control"])
        first = self.start - self.handles
        reads = [self.read(n, first, instanced) for n in range(self.given)]
        made.before = [*made.before, *(line for lines in reads for line in lines)]
        made.vertices = [{1: self.pushed(n, 1), 2: self.pulled(n), 3: held[3]} for n, held in enumerate(made.vertices)]
        return made

    def pulled(self, vertex: int) -> list[str]:
        return [f"g{20 + 4 * vertex + n}<8,8,1>" for n in range(4 if self.mode == SIMD8 else 1)]

    def read(self, vertex: int, first: int, instanced: bool) -> list[str]:
        offset = 3 if self.gen < 8 else 4
        if self.mode == SIMD8:
            handle = f"g{first}.{vertex}<0,1,0>" if instanced else f"g{first + vertex}<8,8,1>"
            lines, bits, rlen = [move("g113", handle, "UD")], 8, 4
        else:
            places = (2 * vertex, 2 * vertex + 1) if self.mode == DUAL_OBJECT else (vertex, vertex)
            lines = [*CHANNELS, *(scalar("mov", f"g113.{n}", f"g{first + at // 8}.{at % 8}<0,1,0>UD") for n, at in enumerate(places))]
            bits, rlen = 3 | 1 << (14 if self.gen < 8 else 15), 1
        read = send(bits | ATTRIBUTE << offset | 1 << 19, 1, rlen, 113, f"g{20 + 4 * vertex}<1>UD", False, URB, "send")
        return [*lines, read]
