"""Primitive assembly: assembly.c against a plain list of objects, in chunks of every size; provoking vertices, cuts and statistics."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgen.bits.generation import generations
from softgen.errors import DecodeError, GpuFault, Unsupported
from softgen.three_d.state.state import DrawCall, DrawState
from softgen.three_d.structures import PrimitiveObject, library
from softgen.three_d.vertices.assembly import TOPOLOGIES, TOPOLOGY_SHIFT, AssemblyStage, AssemblyState, assembly_plan
from softgen.three_d.vertices.chunk import Chunk
from tests.three_d.made import call, made_state, record
from tests.three_d.walk import Assembly

GENS = tuple(generations())
AT = 0x10000
(POINTLIST, LINELIST, LINESTRIP, TRILIST, TRISTRIP, TRIFAN, QUADLIST, QUADSTRIP, LINELIST_ADJ, LINESTRIP_ADJ, TRILIST_ADJ, TRISTRIP_ADJ,
 TRISTRIP_REVERSE, POLYGON, RECTLIST, LINELOOP, POINTLIST_BF, LINESTRIP_CONT, LINESTRIP_BF, LINESTRIP_CONT_BF) = range(1, 21)  # fmt: skip
TRIFAN_NOSTIPPLE = 22
LAST_CONVENTION, FIRST_CONVENTION = (2, 1, 2), (0, 0, 1)  # selects of triangle strip/list, line strip/list, fan, as drivers program them


@dataclass(frozen=True)
class Shape:
    """An object in plain terms: vertices, the provoking one among them, edges of the primitive, and what else there is to say."""

    vertices: tuple[int, ...]
    provoking: int
    edges: tuple[int, ...] = ()  # numbers of those that are edges of the primitive
    marks: frozenset[str] = frozenset()
    primitive: int = 0
    instance: int = 0


MARKS = {"rectangle": 1 << 2, "inverted": 1 << 3, "back": 1 << 9, "last": 1 << 10, "continues": 1 << 11}


# -- the twin: objects as the manual lists them ----------------------------------------------------------------------


def lines(ends: list[tuple[int, int]], select: int, continued: bool, *marks: str) -> Iterator[Shape]:
    for n, pair in enumerate(ends):
        own = {*marks, *(["continues"] if n or continued else []), *(["last"] if n == len(ends) - 1 else [])}
        yield Shape(pair, pair[select], marks=frozenset(own))


def quad(corners: list[int], start: int) -> Iterator[Shape]:
    """Two triangles of the polygon that begins with the provoking corner."""
    a, b, c, d = corners[start:] + corners[:start]
    yield Shape((a, b, c), a, (0, 1))
    yield Shape((a, c, d), a, (1, 2))


def objects(topology: int, v: list[int], selects: tuple[int, int, int]) -> Iterator[list[Shape]]:
    """The objects of one primitive; those of a quadrilateral together."""
    triangle, line, fan = selects
    n, edges, last = len(v), (0, 1, 2), triangle == 2
    back = ["back"] if topology in (POINTLIST_BF, LINESTRIP_BF, LINESTRIP_CONT_BF) else []
    match topology:
        case 1 | 17:
            yield from ([Shape((item,), item, marks=frozenset(back))] for item in v)
        case 2:
            yield from ([Shape((v[i], v[i + 1]), v[i + line], marks=frozenset(["last"]))] for i in range(0, n - 1, 2))
        case 9:
            yield from ([Shape((v[i + 1], v[i + 2]), v[i + 1 + line], marks=frozenset(["last"]))] for i in range(0, n - 3, 4))
        case 3 | 18 | 19 | 20:
            yield from ([object_line] for object_line in lines([(v[i], v[i + 1]) for i in range(n - 1)], line, topology in (18, 20), *back))
        case 10:
            yield from ([object_line] for object_line in lines([(v[i + 1], v[i + 2]) for i in range(n - 3)], line, False))
        case 16:
            yield from ([object_line] for object_line in lines([(v[i], v[(i + 1) % n]) for i in range(n if n > 1 else 0)], line, False))
        case 4:
            yield from ([Shape(tuple(v[i : i + 3]), v[i + triangle], edges)] for i in range(0, n - 2, 3))
        case 15:
            yield from ([Shape(tuple(v[i : i + 3]), v[i], edges, frozenset(["rectangle"]))] for i in range(0, n - 2, 3))
        case 11:
            yield from ([Shape(tuple(v[i : i + 6 : 2]), v[i + 2 * triangle], edges)] for i in range(0, n - 5, 6))
        case 5 | 13:
            for i in range(n - 2):
                yield [Shape(tuple(v[i : i + 3]), v[i + triangle], edges, frozenset(["inverted"] if i % 2 != (topology == 13) else []))]
        case 12:
            for i in range((n - 4) // 2 if n >= 6 else 0):
                corners = (v[2 * i], v[2 * i + 2], v[2 * i + 4])
                yield [Shape(corners, corners[triangle], edges, frozenset(["inverted"] if i % 2 else []))]
        case 6 | 22:
            for i in range(n - 2):
                corners = (v[0], v[i + 1], v[i + 2])
                yield [Shape(corners, corners[fan], edges)]
        case 14:
            for i in range(n - 2):
                yield [Shape((v[0], v[i + 1], v[i + 2]), v[0], (*([0] if not i else []), 1, *([2] if i == n - 3 else [])))]
        case 7:
            yield from (list(quad(v[i : i + 4], 3 if last else 0)) for i in range(0, n - 3, 4))
        case 8:
            for i in range(0, n - 3, 2):
                yield list(quad([v[i], v[i + 1], v[i + 3], v[i + 2]], 2 if last else 0))


@dataclass
class Expected:
    shapes: list[Shape] = field(default_factory=list)
    vertices: int = 0
    primitives: int = 0


def expected(topology: int, stream: list[int | None], instances: int, selects: tuple[int, int, int]) -> Expected:
    """All of a draw; None in the stream is a cut."""
    found = Expected()
    for instance in range(instances):
        primitive, parts = 0, [list[int]()]
        for vertex in stream:
            if vertex is None:
                parts.append([])
            else:
                parts[-1].append(vertex)
        for part in parts:
            made = list(objects(topology, part, selects))
            for shapes in made:
                found.shapes += [Shape(s.vertices, s.provoking, s.edges, s.marks, primitive, instance) for s in shapes]
                primitive += 1
            found.primitives += len(made) - (topology == LINELOOP and bool(made))  # the closing line is not counted (G45 2736)
            found.vertices += len(part)
    return found


# -- what assembly.c makes -------------------------------------------------------------------------------------------


def state_for(gen: float, selects: tuple[int, int, int], indices: bytes = b"", index_format: int = 2, cut: int | None = None,
              **buffer: Any) -> DrawState:  # fmt: skip
    """State with selects of provoking vertices and, at AT, an index buffer."""
    fields = dict(zip(("triangle_strip_list_provoking_vertex_select", "line_strip_list_provoking_vertex_select",
                       "triangle_fan_provoking_vertex_select"), selects, strict=True))  # fmt: skip
    commands: dict[str, Any] = {"3DSTATE_SF": fields} if gen > 4.5 else {"3DSTATE_PIPELINED_POINTERS": {"pointer_to_sf_state": 0x20000}}
    end = {"buffer_size": len(indices)} if gen >= 8 else {"buffer_ending_address": AT + len(indices) - 1}
    if gen < 7.5:
        end["cut_index_enable"] = cut is not None
    else:
        commands["3DSTATE_VF"] = {"indexed_draw_cut_index_enable": cut is not None, "cut_index": cut or 0}
    commands["3DSTATE_INDEX_BUFFER"] = {"buffer_starting_address": AT, "index_format": index_format, **end, **buffer}
    blocks = {} if gen > 4.5 else {0x20000: ("SF_STATE", fields)}
    return made_state(gen, {AT: indices, 0x20000: b""}, commands, blocks=blocks)


def assembled(state: DrawState, draw: DrawCall, vertices: int = 64, held: int = 64,
              one_instance: bool = False) -> tuple[list[list[Shape]], Assembly]:  # fmt: skip
    """The objects of each chunk, their vertices by ID again."""
    assembly, chunk, found = Assembly(state, draw, one_instance), Chunk(64, vertices, held), []
    while not assembly.finished:
        assembly.fill(chunk)
        assert chunk.vertices.count <= vertices and chunk.objects.count <= held
        found.append([shape(made, assembly) for made in (PrimitiveObject * chunk.objects.count).from_address(chunk.objects.objects)])
    return found, assembly


def shape(made: PrimitiveObject, assembly: Assembly) -> Shape:
    ids, instances = assembly.ids()
    corners, flags = [int(ids[entry]) for entry in made.vertex[: made.flags & 3]], made.flags
    (instance,) = {int(instances[entry]) for entry in made.vertex}
    return Shape(tuple(corners), corners[flags >> 4 & 3], tuple(n for n in range(3) if flags >> 6 + n & 1),
                 frozenset(name for name, bit in MARKS.items() if flags & bit), made.primitive, instance)  # fmt: skip


def indices_of(stream: list[int | None]) -> bytes:
    return struct.pack(f"<{len(stream)}I", *(0xFFFFFFFF if vertex is None else vertex for vertex in stream))


@pytest.mark.behaviour("G45-VF-10", "G45-VF-13", "G45-VF-33", "G45-VF-36", "BDW-VF-05", "BDW-VF-12", "BDW-VF-15", "BDW-CLIP-11",
                       shows="action")  # fmt: skip
@given(topology=st.sampled_from(sorted(TOPOLOGIES)), gen=st.sampled_from(GENS), seed=st.integers(0, 1 << 32), length=st.integers(1, 60),
       instances=st.integers(1, 3), room=st.sampled_from([(12, 4), (13, 5), (16, 64), (64, 7), (64, 64)]),
       selects=st.tuples(st.sampled_from([0, 2]), st.integers(0, 1), st.sampled_from([1, 2])))  # fmt: skip
def test_objects_are_those_of_the_topology(topology: int, gen: float, seed: int, length: int, instances: int, room: tuple[int, int],
                                           selects: tuple[int, int, int]) -> None:  # fmt: skip
    """Random index lists with cuts, in chunks so small that strips, fans and loops go on in the next."""
    draw = random.Random(seed)
    stream: list[int | None] = [None if draw.random() < 0.1 else draw.randrange(6 if seed % 2 else 5000) for _ in range(length)]
    state = state_for(gen, selects, indices_of(stream), cut=0xFFFFFFFF)
    chunks, assembly = assembled(state, call(length, topology, True, instances=instances), *room)
    quads = topology in (7, 8) and gen > 4.5  # their last vertex provokes whatever the select says
    right = expected(topology, stream, instances, LAST_CONVENTION if quads else selects)
    assert [made for chunk in chunks for made in chunk] == right.shapes
    assert (assembly.state.vertices_seen, assembly.state.objects_made) == (right.vertices, right.primitives)


@pytest.mark.behaviour("G45-VF-40", shows="action")
@pytest.mark.parametrize("topology", sorted(TOPOLOGIES))
def test_sequential_vertices_make_the_same_objects(topology: int) -> None:
    chunks, assembly = assembled(state_for(9, LAST_CONVENTION), call(31, topology, start_vertex=7), 16, 8)
    right = expected(topology, list(range(31)), 1, LAST_CONVENTION)
    assert [made for chunk in chunks for made in chunk] == right.shapes and right.shapes
    assert (assembly.state.vertices_seen, assembly.state.objects_made) == (31, right.primitives)
    assert (len(chunks) > 1) == (len(right.shapes) > 4)


@given(vertices=st.integers(1, 100), instances=st.integers(1, 3), room=st.sampled_from([(12, 4), (13, 5), (16, 64), (64, 7), (200, 100)]),
       selects=st.sampled_from([LAST_CONVENTION, FIRST_CONVENTION]), one_instance=st.booleans())  # fmt: skip
def test_lists_of_consecutive_triangles(vertices: int, instances: int, room: tuple[int, int], selects: tuple[int, int, int],
                                        one_instance: bool) -> None:  # fmt: skip
    """They are taken many at a time: the objects, chunks and counts are those of the same vertices by an index buffer."""
    listed = state_for(9, selects, indices_of(list(range(vertices))))
    chunks, assembly = assembled(state_for(9, selects), call(vertices, TRILIST, instances=instances), *room, one_instance)
    right, generic = assembled(listed, call(vertices, TRILIST, True, instances=instances), *room, one_instance)
    assert chunks == right
    for name in ("vertices_seen", "objects_made", "position", "instance", "count", "next", "made", "primitive"):
        assert getattr(assembly.state, name) == getattr(generic.state, name)


@given(length=st.integers(1, 120), kind=st.integers(0, 2), cuts=st.sampled_from([0.0, 0.03]), short=st.integers(0, 9),
       first=st.integers(0, 5), seed=st.integers(0, 1 << 32),
       room=st.sampled_from([(12, 4), (13, 5), (16, 64), (64, 7), (200, 100)]))  # fmt: skip
def test_lists_of_indexed_triangles(length: int, kind: int, cuts: float, short: int, first: int, seed: int, room: tuple[int, int]) -> None:
    """They are taken many at a time, up to a cut or the end of the buffer, past which indices are 0."""
    draw, cut = random.Random(seed), (0xFF, 0xFFFF, 0xFFFFFFFF)[kind]
    stream: list[int | None] = [None if draw.random() < cuts else draw.randrange(200) for _ in range(length)]
    numbers = [draw.randrange(200) for _ in range(first)] + [cut if vertex is None else vertex for vertex in stream]
    there = max(len(numbers) - short, 1)
    indices = struct.pack(f"<{there}{'BHI'[kind]}", *numbers[:there])
    state = state_for(9, LAST_CONVENTION, indices, kind, cut if cuts else None)
    chunks, assembly = assembled(state, call(length, TRILIST, True, instances=2, start_vertex=first), *room)
    read = [vertex if first + place < there else 0 for place, vertex in enumerate(stream)]
    right = expected(TRILIST, read, 2, LAST_CONVENTION)
    assert [made for chunk in chunks for made in chunk] == right.shapes
    assert (assembly.state.vertices_seen, assembly.state.objects_made) == (right.vertices, right.primitives)


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_later_stages_see_simpler_topologies(topology: int) -> None:
    """Quadrilaterals are polygons, loops are strips, and adjacent vertices are gone; all others stay as they are."""
    becomes = {QUADLIST: POLYGON, QUADSTRIP: POLYGON, LINELOOP: LINESTRIP, LINELIST_ADJ: LINELIST, LINESTRIP_ADJ: LINESTRIP,
               TRILIST_ADJ: TRILIST, TRISTRIP_ADJ: TRISTRIP}  # fmt: skip
    assembly, chunk = Assembly(state_for(9, LAST_CONVENTION), call(8, topology)), Chunk(64, 64, 64)
    assembly.fill(chunk)
    made = (PrimitiveObject * chunk.objects.count).from_address(chunk.objects.objects)
    assert {item.flags >> TOPOLOGY_SHIFT for item in made} == {becomes.get(topology, topology)}


def test_the_twin_by_hand() -> None:
    """A strip, a polygon, and a quadrilateral with either convention."""
    strip = [item[0] for item in objects(TRISTRIP, [5, 6, 7, 8], LAST_CONVENTION)]
    assert [(s.vertices, s.provoking, set(s.marks)) for s in strip] == [((5, 6, 7), 7, set()), ((6, 7, 8), 8, {"inverted"})]
    polygon = [item[0] for item in objects(POLYGON, [1, 2, 3, 4, 5], LAST_CONVENTION)]
    assert [(s.vertices, s.edges) for s in polygon] == [((1, 2, 3), (0, 1)), ((1, 3, 4), (1,)), ((1, 4, 5), (1, 2))]
    (last,), (first,) = (list(objects(QUADLIST, [0, 1, 2, 3], selects)) for selects in (LAST_CONVENTION, FIRST_CONVENTION))
    assert [(s.vertices, s.provoking) for s in last] == [((3, 0, 1), 3), ((3, 1, 2), 3)]
    assert [(s.vertices, s.provoking) for s in first] == [((0, 1, 2), 0), ((0, 2, 3), 0)]
    assert [item[0].vertices for item in objects(LINELOOP, [4, 5, 6], LAST_CONVENTION)] == [(4, 5), (5, 6), (6, 4)]


# -- lists -----------------------------------------------------------------------------------------------------------


def adjacent_strip(v: list[int], trailing: bool) -> list[tuple[int, ...]]:
    """Triangles of a strip with adjacent vertices, as GS threads get them (G45 3310-3341; BDW 5970-5988)."""
    found, count = list[tuple[int, ...]](), (len(v) - 4) // 2 if len(v) >= 6 else 0
    for k in range(count):
        n, far = 2 * k, 2 * k + (5 if k == count - 1 else 6)
        if k % 2 == 0:
            found.append((n, n - 2 if k else 1, n + 2, far, n + 4, n + 3))
        else:
            found.append((n + 2, n - 2, n, n + 3, n + 4, far) if trailing else (n, n + 3, n + 4, far, n + 2, n - 2))
    return [tuple(v[place] for place in places) for places in found]


def listed(topology: int, v: list[int], trailing: bool) -> list[tuple[int, ...]]:
    if topology == TRISTRIP_ADJ:
        return adjacent_strip(v, trailing)
    size, step = {LINELIST_ADJ: (4, 4), LINESTRIP_ADJ: (4, 1), TRILIST_ADJ: (6, 6)}.get(topology, (topology - 31, topology - 31))
    return [tuple(v[i : i + size]) for i in range(0, len(v) - size + 1, step)]


@given(gen=st.sampled_from([7, 7.5, 8, 9, 11]),
       topology=st.sampled_from([LINELIST_ADJ, LINESTRIP_ADJ, TRILIST_ADJ, TRISTRIP_ADJ, 32, 34, 37, 63]),
       seed=st.integers(0, 1 << 32), length=st.integers(1, 80), instances=st.integers(1, 2), mode=st.integers(0, 1),
       room=st.sampled_from([(33, 4), (40, 64), (200, 5), (200, 100)]))  # fmt: skip
def test_patches_and_adjacent_vertices_are_in_lists(gen: float, topology: int, seed: int, length: int, instances: int, mode: int,
                                                    room: tuple[int, int]) -> None:  # fmt: skip
    """With GS threads, which say how the odd triangles of strips are turned; Ivy Bridge's always begin with the vertex that leads."""
    draw = random.Random(seed)
    stream: list[int | None] = [None if draw.random() < 0.05 else draw.randrange(6 if seed % 2 else 5000) for _ in range(length)]
    state = state_for(gen, LAST_CONVENTION, indices_of(stream), cut=0xFFFFFFFF)
    state.latched["3DSTATE_GS"] = record("3DSTATE_GS", gen, {"enable": 1, "reorder_mode": mode})  # type: ignore[index]
    assembly, chunk, found = Assembly(state, call(length, topology, True, instances=instances)), Chunk(64, *room), []
    size = assembly.state.list
    while not assembly.finished:
        assembly.fill(chunk)
        ids, lists = assembly.ids()[0], chunk.lists.view(np.uint32)
        for made in (PrimitiveObject * chunk.objects.count).from_address(chunk.objects.objects):
            assert (made.flags, made.vertex[1], made.vertex[2]) == (topology << TOPOLOGY_SHIFT, 0, 0)
            entries = lists[made.vertex[0] * size :][:size]
            found.append((tuple(ids[entries].tolist()), made.primitive))
    parts = [list[int]()]
    for vertex in stream:
        if vertex is None:
            parts.append([])
        else:
            parts[-1].append(vertex)
    right = [corners for part in parts for corners in listed(topology, part, mode == 1 and gen > 7)]
    assert found == [(corners, number) for _ in range(instances) for number, corners in enumerate(right)]
    assert assembly.state.objects_made == instances * len(right)


def test_gs_threads_may_do_without_adjacent_vertices() -> None:
    state = state_for(9, LAST_CONVENTION)
    state.latched["3DSTATE_GS"] = record("3DSTATE_GS", 9, {"enable": 1, "discard_adjacency": 1})  # type: ignore[index]
    chunks, _ = assembled(state, call(12, TRISTRIP_ADJ))
    assert [made for chunk in chunks for made in chunk] == expected(TRISTRIP_ADJ, list(range(12)), 1, LAST_CONVENTION).shapes


# -- vertices of a chunk ---------------------------------------------------------------------------------------------


@pytest.mark.behaviour("G45-VF-37", "G45-VF-38", "G45-VF-39", "BDW-VS-08", shows="action")
def test_a_vertex_of_several_objects_has_one_entry() -> None:
    """Another instance has entries of its own, and so has another draw."""
    state = state_for(9, LAST_CONVENTION, indices_of([0, 1, 2, 2, 1, 3, 0, 2, 3]))
    chunk, assembly = Chunk(64, 64, 64), Assembly(state, call(9, TRILIST, True, instances=2))
    assembly.fill(chunk)
    ids, instances = assembly.ids()
    assert assembly.finished and chunk.objects.count == 6 and chunk.vertices.count == 8
    assert ids.tolist() == [0, 1, 2, 3] * 2 and instances.tolist() == [0] * 4 + [1] * 4
    Assembly(state, call(9, TRILIST, True)).fill(chunk)
    assert chunk.vertices.count == 4


def test_a_chunk_may_keep_to_one_instance() -> None:
    state = state_for(11, LAST_CONVENTION)
    chunks, _ = assembled(state, call(3, TRILIST, instances=3), one_instance=True)
    assert [[made.instance for made in chunk] for chunk in chunks] == [[0], [1], [2]]


@pytest.mark.behaviour("G45-VF-36", shows="action")
def test_dangling_vertices_get_no_entry() -> None:
    state = state_for(9, LAST_CONVENTION)
    for topology, count, entries in ((TRILIST, 5, 3), (TRISTRIP, 2, 0), (LINELIST, 3, 2), (LINELOOP, 1, 0), (QUADSTRIP, 7, 6)):
        assembly, chunk = Assembly(state, call(count, topology)), Chunk(64, 64, 64)
        assembly.fill(chunk)
        assert (assembly.finished, chunk.vertices.count) == (True, entries)


# -- indices ---------------------------------------------------------------------------------------------------------


def points(state: DrawState, count: int, start: int = 0) -> list[int]:
    chunks, _ = assembled(state, call(count, POINTLIST, True, start))
    return [made.vertices[0] for chunk in chunks for made in chunk]


@pytest.mark.behaviour("G45-VF-09", "BDW-VF-10", shows="action")
@pytest.mark.parametrize("gen", GENS)
def test_indices_of_all_formats(gen: float) -> None:
    data = bytes([0xFE, 0xFF, 0xFD, 0xFF, 1, 0, 2, 0])
    assert points(state_for(gen, LAST_CONVENTION, data, 0), 8) == list(data)
    assert points(state_for(gen, LAST_CONVENTION, data, 1), 3, 1) == [0xFFFD, 1, 2]
    assert points(state_for(gen, LAST_CONVENTION, data, 2), 2) == [0xFFFDFFFE, 0x20001]


@pytest.mark.behaviour("G45-VF-14", "BDW-VF-09", "BDW-VF-11", "BDW-MEM-05", shows="action")
@pytest.mark.parametrize("gen", GENS)
def test_indices_beyond_the_buffer_are_zero(gen: float) -> None:
    """One that straddles the end too."""
    data = struct.pack("<3H", 7, 8, 9)
    short = {"buffer_size": 5} if gen >= 8 else {"buffer_ending_address": AT + 4}
    assert points(state_for(gen, LAST_CONVENTION, data, 1), 5) == [7, 8, 9, 0, 0]
    assert points(state_for(gen, LAST_CONVENTION, data, 1, **short), 4) == [7, 8, 0, 0]
    for nothing in ([{"buffer_size": 0}] if gen >= 8 else [{"buffer_ending_address": AT - 1}, {"buffer_ending_address": AT - 9}]):
        assert points(state_for(gen, LAST_CONVENTION, data, 0, **nothing), 2) == [0, 0]


@pytest.mark.behaviour("G45-VF-14", shows="action")
def test_ending_address_0_disables_the_check() -> None:
    assert points(state_for(4.5, LAST_CONVENTION, struct.pack("<3H", 7, 8, 9), 1, buffer_ending_address=0), 4) == [7, 8, 9, 0]


@pytest.mark.behaviour("G45-VF-10", "G45-VF-11", shows="action")
@pytest.mark.parametrize("gen", [4.5, 7])
@pytest.mark.parametrize("form,ones", [(0, 0xFF), (1, 0xFFFF), (2, 0xFFFFFFFF)])
def test_all_ones_of_the_format_are_a_cut_if_enabled(gen: float, form: int, ones: int) -> None:
    data = struct.pack(f"<4{'BHI'[form]}", 1, ones, 2, ones >> 1)
    assert points(state_for(gen, LAST_CONVENTION, data, form, cut=0), 4) == [1, 2, ones >> 1]
    assert points(state_for(gen, LAST_CONVENTION, data, form), 4) == [1, ones, 2, ones >> 1]


@pytest.mark.behaviour("BDW-VF-12", "BDW-VF-13", shows="action")
@pytest.mark.parametrize("gen", [7.5, 8, 9, 11])
def test_the_cut_index_is_state(gen: float) -> None:
    """32 bits: short indices never equal one that they cannot reach."""
    data = struct.pack("<4H", 1, 5, 0xFFFF, 2)
    assert points(state_for(gen, LAST_CONVENTION, data, 1, cut=5), 4) == [1, 0xFFFF, 2]
    assert points(state_for(gen, LAST_CONVENTION, data, 1, cut=0x10005), 4) == [1, 5, 0xFFFF, 2]
    assert points(state_for(gen, LAST_CONVENTION, data, 1), 4) == [1, 5, 0xFFFF, 2]


@pytest.mark.behaviour("G45-VF-12", shows="action")
def test_cuts_of_topologies_that_have_none_are_remarked() -> None:
    """All topologies have them where 3DSTATE_VF enables cuts."""
    data, remarks = indices_of([0, 1, 2, 3]), list[str]()
    strips_and_lists = (POINTLIST, LINELIST, LINESTRIP, TRILIST, TRISTRIP, LINELIST_ADJ, LINESTRIP_ADJ, TRILIST_ADJ, TRISTRIP_ADJ)
    for gen, topology in (*((4.5, topology) for topology in strips_and_lists), (4.5, TRIFAN), (7, POLYGON), (9, POLYGON)):
        state = state_for(gen, LAST_CONVENTION, data, cut=0xFFFFFFFF)
        state.warn = remarks.append
        Assembly(state, call(4, topology, True))
    told = "3DSTATE_INDEX_BUFFER: cut_index_enable 1 with primitive_topology_type {}, which has no cuts"
    assert [remark for remark in remarks if "no cuts" in remark] == [told.format(TRIFAN), told.format(POLYGON)]


def test_an_index_buffer_that_is_not_there_faults() -> None:
    with pytest.raises(GpuFault, match="read at 0x11000 in made"):
        points(state_for(9, LAST_CONVENTION, b"", buffer_size=1 << 20), 2000)


@pytest.mark.behaviour("G45-VF-44", shows="action")
def test_an_indexed_draw_needs_an_index_buffer() -> None:
    with pytest.raises(DecodeError, match="3DPRIMITIVE needs 3DSTATE_INDEX_BUFFER, which no command has set"):
        Assembly(made_state(9, {AT: b""}, {"3DSTATE_SF": {}}), call(3, TRILIST, True))


# -- refusals, and both languages ------------------------------------------------------------------------------------


def test_patches_and_unknown_topologies_are_refused() -> None:
    state = state_for(9, LAST_CONVENTION)
    with pytest.raises(Unsupported, match="primitive_topology_type 34, a patch list"):
        Assembly(state, call(3, 34))
    with pytest.raises(DecodeError, match="primitive_topology_type 21 is no topology"):
        Assembly(state, call(3, 21))


def test_a_cut_among_sequential_vertices_is_not_built() -> None:
    commands = {"3DSTATE_SF": {}, "3DSTATE_VF": {"sequential_draw_cut_index_enable": 1, "cut_index": 12}}
    state = made_state(9, {AT: b""}, commands)
    Assembly(state, call(3, TRILIST, start_vertex=13))
    with pytest.raises(Unsupported, match="3DSTATE_VF: sequential_draw_cut_index_enable 1"):
        Assembly(state, call(3, TRILIST, start_vertex=10))


def test_structures_are_the_same_in_both_languages() -> None:
    import ctypes

    from softgen.three_d.vertices.vertex_fetch_h import FetchElement, FetchRun, FetchStore, VertexFetch
    from softgen.three_d.vertices.vertex_shader import VertexShaderLoop, VertexStagePlan

    theirs = (ctypes.c_uint64 * 16)()
    count = library().front_layout(theirs)
    ours = [*map(ctypes.sizeof, (FetchStore, FetchElement, VertexFetch, AssemblyState)), AssemblyState.objects.offset,
            AssemblyState.held.offset, AssemblyState.cache.offset, *map(ctypes.sizeof, (FetchRun, AssemblyStage))]  # fmt: skip
    assert list(theirs[:count]) == ours
    count = library().vertex_shader_layout(theirs)
    assert list(theirs[:count]) == [ctypes.sizeof(VertexShaderLoop), ctypes.sizeof(VertexStagePlan)]


@pytest.mark.parametrize("gen", [7, 7.5, 8, 9, 11])
@pytest.mark.parametrize("topology", [7, 8])
def test_the_last_vertex_of_a_quadrilateral_provokes_whatever_the_select_for_triangles_says(gen: float, topology: int) -> None:
    """As drivers count on: Mesa says that quads do not follow the convention of GL_ARB_provoking_vertex."""
    for selects in (LAST_CONVENTION, FIRST_CONVENTION):
        chunks, _ = assembled(state_for(gen, selects), call(4, topology))
        assert {made.provoking for chunk in chunks for made in chunk} == {3}


@pytest.mark.parametrize("topology", [QUADLIST, QUADSTRIP, LINELIST_ADJ, LINESTRIP_ADJ, TRILIST_ADJ, TRISTRIP_ADJ, TRILIST])
def test_gs_threads_get_whole_objects(topology: int) -> None:
    """And see the topology of the draw."""
    blocks: dict[int, tuple[str, dict[str, Any]]] = {0x20000: ("SF_STATE", {}), 0x20040: ("GS_STATE", {})}
    state = made_state(4.5, {0x20000: b""}, blocks=blocks)
    for enabled in (0, 1):
        pointers = {"gs_enable": enabled, "pointer_to_gs_state": 0x20040, "pointer_to_sf_state": 0x20000}
        state.latched["3DSTATE_PIPELINED_POINTERS"] = record("3DSTATE_PIPELINED_POINTERS", 4.5, pointers)  # type: ignore[index]
        plan = assembly_plan(state, call(12, topology))
        assert (plan.whole, plan.adjacent_strip) == (enabled and topology != TRILIST, enabled and topology == TRISTRIP_ADJ)
        assert not enabled or plan.flags >> TOPOLOGY_SHIFT == topology
