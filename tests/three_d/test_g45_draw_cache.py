"""Kept records of Gen4.5: the second draw of a batch uses that of the first, wherever its state is now, and sees what has changed.

Each batch has two triangles with commands between them. The picture must be that of draws whose records are not kept.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from softgen.bits.catalogue import layout
from softgen.streamer.latch_rules import latch_table
from softgen.three_d.draw import draw_walk
from softgen.three_d.draw.draw_cache import RecordCache
from tests.three_d.g45_draw import (
    BLOCKS,
    CONSTANTS,
    DATA,
    GEN,
    GENERAL,
    KERNELS,
    POINTS,
    SCRATCH,
    SIZE,
    TRIANGLES,
    Drawn,
    G45Draw,
    move,
    moves,
    pixel_shader,
    put_out,
    send,
    vertex,
)

MOVED = 0x8000  # from each block to its copy
LEFT = [vertex(1, 1), vertex(7, 1), vertex(1, 7)]
RIGHT = [vertex(9, 9, attribute=(2, 3, 4, 5)), vertex(15, 9, attribute=(2, 3, 4, 5)), vertex(9, 15, attribute=(2, 3, 4, 5))]
BOTH: tuple[dict[str, int], ...] = ({"vertex_count_per_instance": 3}, {"vertex_count_per_instance": 3, "start_vertex_location": 3})
CLIP_ALL = {"CLIP_STATE": {"clip_mode": 1}}
COUNTING: dict[str, dict[str, Any]] = {
    "VS_STATE": {"statistics_enable": 1}, "SF_STATE": {"statistics_enable": 1}, "WM_STATE": {"statistics_enable": 1},
    "CLIP_STATE": {"clipper_statistics_enable": 1, "gs_output_object_statistics_enable": 1},
    "3DSTATE_VF_STATISTICS": {"statistics_enable": 1}}  # fmt: skip


def command(name: str, **fields: Any) -> list[int]:
    return list(layout(name, GEN).pack(**fields))


def copies(draw: G45Draw, **changes: dict[str, Any]) -> dict[int, bytes]:
    """Copies of all blocks, with pointers that lead to copies; `changes` are fields of blocks that differ."""
    pointers = {"SF_STATE": ("sf_viewport_pointer", "SF_VIEWPORT"), "CLIP_STATE": ("clip_viewport_pointer", "CLIP_VIEWPORT"),
                "COLOR_CALC_STATE": ("cc_viewport_pointer", "CC_VIEWPORT")}  # fmt: skip
    found = {}
    for name, at in BLOCKS.items():
        fields = {**draw.fields(name), **changes.get(name, {})}
        if name in pointers:
            fields[pointers[name][0]] = BLOCKS[pointers[name][1]] + MOVED
        found[GENERAL + at + MOVED] = np.array(draw.pack(name, **fields), np.uint32).tobytes()
    return found


def moved_pointers(draw: G45Draw) -> list[int]:
    """Those of stages that are enabled lead to the copies."""
    pointers = draw._pointers()
    for stage in ("vs", "sf", "wm", "color_calc", *(["clip"] if draw.clip else [])):
        pointers[f"pointer_to_{stage}_state"] += MOVED
    return command("3DSTATE_PIPELINED_POINTERS", **pointers)


def check(draw: G45Draw, monkeypatch: pytest.MonkeyPatch, records: int, threads: int = 1) -> np.ndarray[Any, Any]:
    """The picture, which must be that of draws whose records are not kept, as statistics, threads and remarks must; `records`: how many."""
    made, add = list[Any](), RecordCache.add

    def counted(*given: Any) -> Any:
        made.append(add(*given))
        return made[-1]

    monkeypatch.setattr(RecordCache, "add", counted)
    found = draw.run(threads=threads)
    assert sum(record is not None for record in made) == records
    monkeypatch.setattr(RecordCache, "ready", lambda self, cs: False)
    plain = draw.run(threads=threads)
    assert np.array_equal(found.pixels, plain.pixels) and left(found) == left(plain)
    return found.pixels


def left(drawn: Drawn) -> dict[str, Any]:
    """Statistics registers, the work of threads, and remarks."""
    counters = drawn.gpu.counters
    return {"counts": [drawn.gpu.read_register(at) for at in range(0x2300, 0x2360, 4)], "threads": counters.threads,
            "instructions": counters.instructions, "remarks": list(drawn.gpu.remarks)}  # fmt: skip


def two(between: Sequence[Sequence[int]] = (), vertices: Sequence[bytes] = (*LEFT, *RIGHT), state: Mapping[str, Any] = {},
        **more: Any) -> G45Draw:  # fmt: skip
    """Two draws; all stages count what they do."""
    state = {**state, **{name: {**fields, **state.get(name, {})} for name, fields in COUNTING.items()}}
    return G45Draw(vertices, TRIANGLES, state, primitives=BOTH, between=between, **more)


def test_blocks_elsewhere_are_the_same_state(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = two()
    draw = two([moved_pointers(plain)], patch=copies(plain))
    picture = check(draw, monkeypatch, 1)
    assert picture[2, 2, 0] == 1 and picture[10, 10].tolist() == [2, 3, 4, 5]


@pytest.mark.parametrize(("block", "fields"), [
    ("SF_STATE", {"cull_mode": 0}), ("WM_STATE", {"thread_dispatch_enable": 0}), ("COLOR_CALC_STATE", {"logic_op_enable": 1}),
    ("CLIP_STATE", {"clip_mode": 3}),
])  # fmt: skip
def test_blocks_elsewhere_with_other_state(block: str, fields: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    plain = two(clip=put_out([0, 1, 2], TRIANGLES), format="R8G8B8A8_UNORM" if block == "COLOR_CALC_STATE" else "R32G32B32A32_FLOAT")
    draw = two([moved_pointers(plain)], patch=copies(plain, **{block: fields}), clip=plain.clip, format=plain.format)
    picture = check(draw, monkeypatch, 2)
    assert np.any(picture[2, 2]) and not np.any(picture[10, 10])


def test_other_pages_of_the_same_surface_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another surface state base, with binding table and surface states there."""
    plain = two()
    base = command("STATE_BASE_ADDRESS", surface_state_base_address=DATA, surface_state_base_address_modify_enable=1,
                   general_state_base_address=GENERAL, general_state_base_address_modify_enable=1)  # fmt: skip
    tables = command("3DSTATE_BINDING_TABLE_POINTERS", pointer_to_ps_binding_table=0x400, pointer_to_gs_binding_table=0x820)
    held = bytearray(plain._surfaces()[:SIZE])
    held[0x200:0x218], held[0x400:0x404] = held[:24], struct.pack("<I", 0x200)
    held[:24] = bytes(24)
    picture = check(two([base, tables], patch={DATA: bytes(held)}), monkeypatch, 1)
    assert picture[2, 2, 0] == 1 and picture[10, 10, 0] == 2
    target = plain.pack("RENDER_SURFACE_STATE", **{**plain.fields("RENDER_SURFACE_STATE"), "surface_format": plain._format, "width": 9,
                                                   "height": 15, "surface_pitch": 16 * 16 - 1})  # fmt: skip
    held[0x200:0x218] = np.array(target, np.uint32).tobytes()
    monkeypatch.undo()
    picture = check(two([base, tables], patch={DATA: bytes(held)}), monkeypatch, 2)
    assert picture[9, 9, 0] == 2 and not picture[10, 10].any(), "columns from 10 on are outside"


def test_constants_are_those_of_the_last_constant_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
    state = {"WM_STATE": {"constant_urb_entry_read_length": 1}, "CS_URB_STATE": {"number_of_urb_entries": 1}}
    other = command("CONSTANT_BUFFER", valid=1, buffer_starting_address=CONSTANTS + 0x1000 - GENERAL, buffer_length=0)
    draw = two([other], state=state, constants=struct.pack("<16f", *range(10, 26)), ps=pixel_shader("g8.0<0,1,0>", "g8.1<0,1,0>"),
               patch={CONSTANTS + 0x1000: struct.pack("<16f", *range(30, 46))})  # fmt: skip
    picture = check(draw, monkeypatch, 1)
    assert picture[2, 2, :2].tolist() == [10, 11] and picture[10, 10, :2].tolist() == [30, 31]


def test_viewports_after_the_first_are_those_of_the_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are not compared, but looked at when a vertex names one."""
    scale = {"viewport_matrix_element_m00": 1.0, "viewport_matrix_element_m11": 1.0, "viewport_matrix_element_m22": 1.0}
    third = {**scale, "viewport_matrix_element_m31": 4.0}
    each = [scale, {**scale, "viewport_matrix_element_m30": 3.0}] + [scale] * 14
    state = {"SF_STATE": {"viewport_transform_enable": 1}, "SF_VIEWPORT": {"each": each}}
    plain, at = two(state=state), GENERAL + BLOCKS["SF_VIEWPORT"] + MOVED
    held = [np.array(plain.pack("SF_VIEWPORT", **fields), np.uint32).tobytes() for fields in (scale, third)]
    blocks = {**copies(two(state={"SF_STATE": {"viewport_transform_enable": 1}})), at: held[0], at + len(held[0]): held[1]}
    named = [vertex(1, 1, viewport=1), vertex(7, 1, viewport=1), vertex(1, 7, viewport=1)]
    picture = check(two([moved_pointers(plain)], (*named, *named), state=state, patch=blocks), monkeypatch, 1)
    lit = np.any(picture != 0, axis=-1)
    assert lit[1, 4] and lit[5, 1] and not lit[1, 1], "the second viewport is 3 to the right, then 4 down"


@pytest.mark.parametrize("objects", [2, 400])
def test_clip_threads_put_vertices_after_those_of_the_chunk(objects: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or into a chunk of their own, where there may be no room. They are others than those of the draw: all have the
    attribute of the second."""
    clip = put_out([0, 1, 2], TRIANGLES).replace("g2<8,8,1>", "g4<8,8,1>").replace("g6<8,8,1>", "g4<8,8,1>")
    indices = struct.pack("<6H", *range(6)) * (objects // 2)
    left = [vertex(1, 1), vertex(7, 1, attribute=(6, 7, 8, 9)), vertex(1, 7)]
    draw = G45Draw([*left, *RIGHT], TRIANGLES, CLIP_ALL, indices=indices, clip=clip, primitives=({}, {}))
    picture = check(draw, monkeypatch, 1)
    assert picture[2, 2].tolist() == [6, 7, 8, 9] and picture[10, 10].tolist() == [2, 3, 4, 5]


def test_objects_that_pass_beside_clipped_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Triangles that cross the edge go through CLIP threads, those inside do not; both are drawn where they are."""
    normal = {"clip_mode": 0, "viewport_xy_clip_test_enable": 1, "vertex_position_space": 1, "screen_space_viewport_x_max": 16.0,
              "screen_space_viewport_y_max": 16.0}  # fmt: skip
    crossing = [vertex(1, 1), vertex(20, 1), vertex(1, 7)]
    draw = two(vertices=(*crossing, *RIGHT, *LEFT, *crossing, *RIGHT, *LEFT), state={"CLIP_STATE": normal},
               clip=put_out((0, 1, 2), TRIANGLES))  # fmt: skip
    draw.primitives = tuple({"vertex_count_per_instance": 9, "start_vertex_location": start} for start in (0, 9))
    picture = check(draw, monkeypatch, 1)
    assert picture[10, 10].tolist() == [2, 3, 4, 5] and picture[2, 12].any() and picture[6, 1].any() and not picture[8, 8].any()


def test_many_threads_are_shared_by_host_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two workers have the work of SF threads of many objects."""
    indices = struct.pack("<6H", *range(6)) * 400
    picture = check(G45Draw([*LEFT, *RIGHT], TRIANGLES, indices=indices, primitives=({}, {})), monkeypatch, 1, threads=2)
    assert picture[2, 2, 0] == 1 and picture[10, 10].tolist() == [2, 3, 4, 5]


def test_threads_with_scratch_space_are_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """SF threads of many objects; the second draw has other objects than the first."""
    monkeypatch.setattr(draw_walk, "PER_LOOP", 1)  # little work is shared, too
    indices = struct.pack("<3H", 0, 1, 2) * 400 + struct.pack("<3H", 3, 4, 5) * 400
    parts = ({"vertex_count_per_instance": 1200}, {"vertex_count_per_instance": 1200, "start_vertex_location": 1200})
    scratch = {"SF_STATE": {"scratch_space_base_pointer": SCRATCH - GENERAL, "maximum_number_of_threads": 7}}
    picture = check(G45Draw([*LEFT, *RIGHT], TRIANGLES, scratch, indices=indices, primitives=parts), monkeypatch, 1, threads=2)
    assert picture[2, 2, 0] == 1 and picture[10, 10].tolist() == [2, 3, 4, 5]


def test_a_moved_pointer_leaves_the_bits_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """r0.3 has the sampler state pointer and, in its low bits, the scratch space of a thread."""
    state = {"WM_STATE": {"scratch_space_base_pointer": SCRATCH - GENERAL, "per_thread_scratch_space": 3, "maximum_number_of_threads": 7}}
    shader = pixel_shader("g0.3<0,1,0>", "g0.3<0,1,0>")
    plain = two(state=state, ps=shader)
    picture = check(two([moved_pointers(plain)], patch=copies(plain), state=state, ps=shader), monkeypatch, 1)
    assert [int(picture.view(np.uint32)[y, y, 0]) & 15 for y in (2, 10)] == [3, 3]


def test_vertex_shader_threads_have_the_scratch_space_of_their_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """r0.5 of the first thread of each draw, which has its first two vertices; the third is the next thread's."""
    base, step = SCRATCH - GENERAL, 1024
    shader = f"{moves(1, 'g1', 'g2')}\n{move('m3', 'g0.5<0,1,0>')}\n{moves(4, 'g4')}\n{send(0, 6, 0xC400, 5, eot=True)}"
    state = {"VS_STATE": {"enable": 1, "kernel_start_pointer": KERNELS["vs"], "vertex_urb_entry_read_length": 2,
                          "dispatch_grf_start_register_for_urb_data": 1, "maximum_number_of_threads": 3,
                          "scratch_space_base_pointer": base}}  # fmt: skip
    picture = check(two(vs=shader, state=state), monkeypatch, 1).view(np.uint32)
    assert (picture[2, 2, 0], picture[10, 10, 0]) == (base, base)
    points = [vertex(n + 0.5, 0.5) for n in range(6)]
    draw = G45Draw(points, POINTS, state, vs=shader, primitives=({}, {}))
    monkeypatch.undo()
    assert check(draw, monkeypatch, 1).view(np.uint32)[0, :6, 0].tolist() == [base + n // 2 * step + n // 2 for n in range(6)]


def bordered(draw: G45Draw, at: int, red: float) -> dict[int, bytes]:
    """A sampler, from `at` on, that answers a border colour outside its texture; the colour is behind it."""
    sampler = draw.pack("SAMPLER_STATE", border_color_pointer=at + 0x80, **{f"tc{axis}_address_control_mode": 4 for axis in "xyz"})
    color = draw.pack("SAMPLER_BORDER_COLOR_STATE", border_color_red_as_float=red)
    return {GENERAL + at + n: np.array(block, np.uint32).tobytes() for n, block in ((0, sampler), (0x80, color))}


@pytest.mark.parametrize(("red", "prepared"), [(0.5, 1), (0.25, 2)])
def test_a_border_colour_elsewhere_is_the_same_state(red: float, prepared: int, monkeypatch: pytest.MonkeyPatch) -> None:
    first = 0x6000
    state: dict[str, Any] = {"WM_STATE": {"sampler_state_pointer": first},
                             "surfaces": {"more": [{"surface_type": 1, "surface_base_address": DATA, "surface_pitch": 15}]}}  # fmt: skip
    place = "\n".join(move(f"m{2 + n}", "0x40000000") for n in range(3))  # 2.0
    shader = pixel_shader("g12<8,8,1>", before=f"{place}\n{send(1, 2, 1, 4, 4, to='g12<1>UW', name='sampler')}")
    plain = two(state=state, ps=shader)
    blocks = {**copies(plain, WM_STATE={"sampler_state_pointer": first + MOVED}), **bordered(plain, first, 0.5),
              **bordered(plain, first + MOVED, red)}  # fmt: skip
    picture = check(two([moved_pointers(plain)], state=state, ps=shader, patch=blocks), monkeypatch, prepared)
    assert (picture[2, 2, 0], picture[10, 10, 0]) == (0.5, red)


def test_a_command_that_no_batch_has_had_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no place among latched commands when the first record is made."""
    latch_table.cache_clear()
    stipple = command("3DSTATE_POLY_STIPPLE_PATTERN", row=[{"pattern": 0xFFFFFFFF if row < 8 else 0} for row in range(32)])
    offset = command("3DSTATE_POLY_STIPPLE_OFFSET", polygon_stipple_y_offset=24)
    picture = check(two([offset], before=[stipple], state={"WM_STATE": {"polygon_stipple_enable": 1}}), monkeypatch, 2)
    assert picture[2, 2, 0] == 1 and picture[10, 10, 0] == 2


def test_a_buffer_that_no_element_reads_may_change(monkeypatch: pytest.MonkeyPatch) -> None:
    unused = [command("3DSTATE_VERTEX_BUFFERS", vertex_buffer=[{"vertex_buffer_index": 3, "buffer_pitch": 16,
                                                                "buffer_starting_address": DATA + at}]) for at in (0, 64)]  # fmt: skip
    picture = check(two([unused[1]], before=[unused[0]]), monkeypatch, 1)
    assert picture[10, 10, 0] == 2


@pytest.mark.parametrize(("end", "lit"), [(DATA + 5, {3, 4, 5}), (DATA + 3, {3, 4}), (0, {3, 4, 5}), (DATA - 1, set())])
def test_indices_elsewhere(end: int, lit: set[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Indices after the buffer's last byte are 0; 0 as its address disables the check (G45 2024-2028)."""
    moved = command("3DSTATE_INDEX_BUFFER", index_format=1, buffer_starting_address=DATA, buffer_ending_address=end)
    points = [vertex(n + 0.5, 0.5, attribute=(n + 1, 0, 0, 0)) for n in range(6)]
    three: dict[str, int] = {"vertex_count_per_instance": 3}
    draw = G45Draw(points, POINTS, indices=struct.pack("<3H", 1, 1, 1), primitives=(three, three), between=[moved],
                   patch={DATA: struct.pack("<3H", 3, 4, 5)})  # fmt: skip
    picture = check(draw, monkeypatch, 1)
    assert {int(x) for x in np.flatnonzero(picture[0, :, 0])} == {1, *lit, *([0] if len(lit) < 3 else [])}
