"""Rules that software must keep on Gen4.5: each broken once, and kept once."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from softgen.bits.catalogue import layout
from softgen.bits.generation import device
from softgen.errors import DecodeError, Unsupported
from softgen.three_d.draw.draw_cache import RecordCache
from softgen.three_d.stage_threads.stage_threads import ThreadOutputStruct
from softgen.three_d.stage_threads.thread_output import complaints
from tests.three_d.g45_draw import (
    GEN,
    LINES,
    POINTS,
    POLYGON,
    PS,
    STRIP,
    TRIANGLES,
    Fields,
    G45Draw,
    moves,
    put_out,
    send,
    urb_write,
    vertex,
)

TRIANGLE = [vertex(0, 0, attribute=(1, 2, 3, 4)), vertex(8, 0, attribute=(5, 6, 7, 8)), vertex(0, 8, attribute=(9, 10, 11, 12))]
ALL = (0, 1, 2)


def pack(name: str, **fields: object) -> list[int]:
    return list(layout(name, GEN).pack(**fields))


def remarks(*arguments: Any, **more: Any) -> str:
    """What a draw was remarked on, as one text."""
    return "\n".join(G45Draw(*arguments, **more).run().gpu.remarks)


def test_a_draw_that_keeps_the_rules_has_no_remarks() -> None:
    assert not remarks(TRIANGLE, gs=put_out(ALL, POLYGON), clip=put_out(ALL, POLYGON))


@pytest.mark.behaviour("G45-CS-10", shows="action")
@pytest.mark.parametrize("selected", [0, 1])
def test_a_draw_needs_the_3d_pipeline_selected(selected: int) -> None:
    draw = G45Draw(TRIANGLE, before=[pack("PIPELINE_SELECT", pipeline_selection=selected)])
    if not selected:
        assert len(draw.run().lit) == 28
        return
    with pytest.raises(DecodeError, match="while PIPELINE_SELECT has pipeline_selection 1, not the 3D pipeline"):
        draw.run()


# -- URB ---------------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("G45-URB-08", shows="action")
def test_other_entries_need_another_fence() -> None:
    """A second draw with SF entries of another size, before and after a URB_FENCE."""
    draw = G45Draw([*TRIANGLE, *TRIANGLE], primitives=({"vertex_count_per_instance": 3},) * 2)
    fence = pack("URB_FENCE", **{f"{stage}_unit_urb_reallocation_request": 1 for stage in ("vs", "gs", "clip", "sf")},
                 vs_fence=64, gs_fence=100, clip_fence=140, sf_fence=200)  # fmt: skip
    other = pack("3DSTATE_PIPELINED_POINTERS", **{**draw._pointers(), "pointer_to_sf_state": 0x8000})
    wider = G45Draw(TRIANGLE, state={"SF_STATE": {"urb_entry_allocation_size": 4}})._general()[0xC0:0xE0]
    draw.before, draw.patch = [fence], {(2 << 20) + 0x8000: wider}
    draw.between = [other]
    assert "SF_STATE: 8 entries of 5 rows, 8 of 3 at the last draw, and no URB_FENCE since" in "\n".join(draw.run().gpu.remarks)
    draw.between = [other, fence]
    assert not draw.run().gpu.remarks


@pytest.mark.behaviour("G45-URB-10", shows="action")
@pytest.mark.parametrize(("state", "wanted"), [
    ({"SF_STATE": {"vertex_urb_entry_read_length": 4, "vertex_urb_entry_read_offset": 0}}, ""),
    ({"SF_STATE": {"vertex_urb_entry_read_length": 4}},
     "SF_STATE: vertex_urb_entry_read_length 4 at 1 goes past the 128 bytes of VS_STATE's"),
    ({"WM_STATE": {"setup_urb_entry_read_length": 5, "setup_urb_entry_read_offset": 1}}, ""),
    ({"WM_STATE": {"setup_urb_entry_read_length": 5, "setup_urb_entry_read_offset": 2}},
     "WM_STATE: setup_urb_entry_read_length 5 at 2 goes past the 192 bytes of SF_STATE's"),
    ({"WM_STATE": {"setup_urb_entry_read_length": 7, "setup_urb_entry_read_offset": 1, "transposed_urb_read_enable": 1}}, ""),
    ({"WM_STATE": {"setup_urb_entry_read_length": 7, "setup_urb_entry_read_offset": 2, "transposed_urb_read_enable": 1}},
     "WM_STATE: setup_urb_entry_read_length 7 at 2 goes past the 256 bytes of SF_STATE's"),
    ({"VS_STATE": {"urb_entry_allocation_size": 15}, "SF_STATE": {"vertex_urb_entry_read_length": 32, "vertex_urb_entry_read_offset": 1}},
     "SF_STATE: vertex_urb_entry_read_length 32 at 1 goes past the 1024 bytes of VS_STATE's"),
])  # fmt: skip
def test_reads_past_an_entry_are_reported(state: dict[str, Fields], wanted: str) -> None:
    found = remarks(TRIANGLE, state=state)
    assert wanted in found and bool(wanted) == ("goes past" in found)


@pytest.mark.behaviour("G45-URB-10", shows="action")
def test_constants_past_their_entry_are_reported() -> None:
    state: dict[str, Fields] = {"CS_URB_STATE": {"urb_entry_allocation_size": 0, "number_of_urb_entries": 1},
                                "SF_STATE": {"constant_urb_entry_read_length": 3}}  # fmt: skip
    sf = moves(1, "g3", "g4") + "\n" + urb_write(3, eot=True)
    found = remarks(TRIANGLE, state=state, constants=bytes(128), sf=sf)
    assert "SF_STATE: constant_urb_entry_read_length 3 at 0 goes past the 64 bytes of CS_URB_STATE's entries" in found


@pytest.mark.behaviour("G45-URB-10", shows="action")
def test_gs_reads_entries_of_vs_and_clip_those_of_gs() -> None:
    state: dict[str, Fields] = {"VS_STATE": {"urb_entry_allocation_size": 2}, "GS_STATE": {"vertex_urb_entry_read_length": 7},
                                "CLIP_STATE": {"vertex_urb_entry_read_length": 5}}  # fmt: skip
    found = remarks(TRIANGLE, state=state, gs=put_out(ALL, POLYGON), clip=put_out(ALL, POLYGON))
    assert "GS_STATE: vertex_urb_entry_read_length 7 at 0 goes past the 192 bytes of VS_STATE's entries" in found
    assert "CLIP_STATE: vertex_urb_entry_read_length 5 at 0 goes past the 128 bytes of GS_STATE's entries" in found


@pytest.mark.behaviour("G45-URB-05", shows="action")
@pytest.mark.parametrize(("code", "size"), [(0, 64), (1, 128)])
def test_fetch_writes_entries_that_vs_owns(code: int, size: int) -> None:
    """With VS off, too, it is VS_STATE that says how large they are."""
    state: dict[str, Fields] = {"VS_STATE": {"urb_entry_allocation_size": code},
                                "SF_STATE": {"vertex_urb_entry_read_length": 3, "vertex_urb_entry_read_offset": 0}}  # fmt: skip
    found = remarks(TRIANGLE, state=state)
    assert (f"SF_STATE: vertex_urb_entry_read_length 3 at 0 goes past the {size} bytes of VS_STATE's entries" in found) == (size < 96)


@pytest.mark.behaviour("G45-URB-06", shows="action")
@pytest.mark.parametrize("engine", ["reference", "t0", "t1"])
def test_pixel_shader_threads_have_no_entries(engine: str) -> None:
    """A URB write of theirs is refused; neither WM_STATE nor URB_FENCE gives them any."""
    with pytest.raises(Unsupported, match="a URB message of a thread whose dispatch has no URB"):
        G45Draw(TRIANGLE, ps=moves(1, "g1", "g2") + "\n" + urb_write(3) + "\n" + PS).run(engine)
    names = {field.name for name in ("WM_STATE", "URB_FENCE") for field in layout(name, GEN).fields}
    assert not {name for name in names if name.startswith(("wm_", "ps_", "number_of_urb", "urb_entry_allocation"))}


def allocating(count: int) -> str:
    """A GS kernel that allocates handles ahead of use, gives all but the last back unused, and ends with that one."""
    lines = [send(0, 6, 0x2000, 1, 1, False, f"g{20 + number}<1>UD") for number in range(count)]
    for number in range(count - 1):
        lines += [f"mov(1) g0.0<1>UD g{20 + number}.0<0,1,0>UD {{ align1 nomask }};", urb_write(1, used=False)]
    return "\n".join([*lines, f"mov(1) g0.0<1>UD g{19 + count}.0<0,1,0>UD {{ align1 nomask }};", urb_write(1, eot=True, used=False)])


@pytest.mark.behaviour("G45-URB-15", shows="action")
@pytest.mark.parametrize(("entries", "threads", "most"), [(8, 1, 8), (8, 2, 4), (32, 1, 16)])
def test_threads_may_not_retain_more_handles_than_the_stage_allows(entries: int, threads: int, most: int) -> None:
    """A thread retains the handle that it starts with, and those that it has allocated."""
    state: dict[str, Fields] = {"GS_STATE": {"number_of_urb_entries": entries, "maximum_number_of_threads": threads - 1}}
    for engine in ("t0", "t1") if most == 4 else ("t0",):
        for ahead in (most - 1, most):
            found = "\n".join(G45Draw(TRIANGLE, state=state, gs=allocating(ahead)).run(engine).gpu.remarks)
            wanted = f"a GS thread retains {ahead + 1} URB handles; {entries} entries and {threads} threads allow {most}"
            assert (wanted in found) == (ahead == most), (engine, ahead)


def test_threads_that_allocate_no_handle_may_have_one_entry_between_them() -> None:
    state: dict[str, Fields] = {"GS_STATE": {"number_of_urb_entries": 1, "maximum_number_of_threads": 1}}
    assert "URB handles" not in remarks(TRIANGLE, state=state, gs=urb_write(1, eot=True, used=False))
    assert "retains 2 URB handles; 1 entries and 2 threads allow 0" in remarks(TRIANGLE, state=state, gs=allocating(1))


@pytest.mark.behaviour("G45-URB-17", shows="action")
@pytest.mark.parametrize("threads", [1, 3])
def test_how_many_handles_each_topology_needs(threads: int) -> None:
    """Line strips 3, fans and polygons 4, triangle strips 5 for each thread (G45 1424-1428); other topologies none."""
    least = dict.fromkeys((3, 18, 19, 20), 3) | dict.fromkeys((6, 14, 22), 4) | dict.fromkeys((5, 13), 5)
    output = ThreadOutputStruct(put_out=(1 << 23) - 1)
    for clip, entries in ((1, 0), (1, 3 * threads), (1, 4 * threads), (1, 5 * threads - 1), (1, 5 * threads), (0, 0)):
        unit: Any = SimpleNamespace(number_of_urb_entries=entries, maximum_number_of_threads=threads - 1)
        wanted = {code: handles * threads for code, handles in least.items() if clip and entries < handles * threads}
        assert list(complaints("CLIP", unit, output, 0, bool(clip))) == []
        assert list(complaints("GS", unit, output, 0, bool(clip))) == [
            f"GS_STATE: number_of_urb_entries {entries}; {threads} threads that put out topology {code} to CLIP need {wanted[code]}"
            for code in sorted(wanted)]  # fmt: skip


@pytest.mark.behaviour("G45-URB-17", shows="action")
@pytest.mark.parametrize(("topology", "least"), [(3, 3), (POLYGON, 4), (STRIP, 5)])
@pytest.mark.parametrize("threads", [1, 2])
def test_strips_that_gs_gives_to_clip_need_handles(topology: int, least: int, threads: int) -> None:
    for entries in (least * threads - 1, least * threads):
        state: dict[str, Fields] = {"GS_STATE": {"number_of_urb_entries": entries, "maximum_number_of_threads": threads - 1}}
        kernel = put_out(ALL, topology)
        found = remarks(TRIANGLE, state=state, gs=kernel, clip=put_out(ALL, POLYGON))
        wanted = f"number_of_urb_entries {entries}; {threads} threads that put out topology {topology} to CLIP need {least * threads}"
        assert (wanted in found) == (entries < least * threads)
        assert wanted not in remarks(TRIANGLE, state=state, gs=kernel), "without CLIP nobody keeps them"


@pytest.mark.behaviour("G45-URB-18", shows="action")
@pytest.mark.parametrize("engine", ["reference", "t0", "t1"])
@pytest.mark.parametrize("again", [0x8000 | 0x4000, 0])
def test_a_write_after_the_completing_one_is_reported(engine: str, again: int) -> None:
    """The entry that a thread starts with, written twice; the second message completes it once more, or does not."""
    twice = "\n".join(["mov(8) g20<1>UD g0<8,8,1>UD { align1 nomask };", "mov(1) g0.2<1>UD 0x00000007UD { align1 nomask };",
                       moves(1, "g1", "g2"), send(0, 6, 0x8000 | 0x4000 | 0x2000, 3, 1, False, "g21<1>UD"), moves(1, "g1", "g2"),
                       send(0, 6, again, 3), "mov(1) g0.0<1>UD g21.0<0,1,0>UD { align1 nomask };",
                       urb_write(1, eot=True, used=False)])  # fmt: skip
    wanted = "a GS thread writes to a URB entry after the message that completed it"
    assert wanted in "\n".join(G45Draw(TRIANGLE, gs=twice).run(engine).gpu.remarks)
    assert wanted not in "\n".join(G45Draw(TRIANGLE, gs=put_out(ALL, TRIANGLES)).run(engine).gpu.remarks)


@pytest.mark.behaviour("G45-VS-09", shows="action")
@pytest.mark.parametrize("engine", ["reference", "t0"])
def test_vs_threads_may_not_allocate(engine: str) -> None:
    kernel = moves(1, "g1", "g2") + "\n" + send(0, 6, 0x8000 | 0x4000 | 0x2000, 3, 1, False, "g0<1>UD") + "\n" + urb_write(1, eot=True)
    state: dict[str, Fields] = {"VS_STATE": {"enable": 1, "kernel_start_pointer": 0x1000, "vertex_urb_entry_read_length": 2,
                                             "dispatch_grf_start_register_for_urb_data": 1}}  # fmt: skip
    with pytest.raises(Unsupported, match="a thread allocates a URB entry, but its dispatch has no URB pool"):
        G45Draw(TRIANGLE, state=state, vs=kernel).run(engine)


SHADED = {"enable": 1, "kernel_start_pointer": 0x1000, "vertex_urb_entry_read_length": 2}


@pytest.mark.behaviour("G45-FF-04", shows="action")
@pytest.mark.parametrize(("stage", "start", "registers"), [("SF", 12, 15), ("WM", 12, 17), ("GS", 12, 18), ("CLIP", 10, 16),
                                                          ("CLIP", 11, 17), ("VS", 12, 16), ("VS", 13, 17)])  # fmt: skip
@pytest.mark.parametrize("kept", [True, False])
def test_payloads_must_fit_into_the_registers_of_a_thread(stage: str, start: int, registers: int, kept: bool,
                                                          monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    """16 registers for code 0, 32 for 1."""
    if not kept:
        monkeypatch.setattr(RecordCache, "ready", lambda self, cs: False)
    field = "dispatch_grf_start_register_for_" + ("constant_setup_data_0" if stage == "WM" else "urb_data")
    suffix = "_0" if stage == "WM" else ""
    for count in (0, 1):
        kernel = {stage.lower(): put_out((0, 1, 2), POLYGON, start=start)} if stage in ("GS", "CLIP") else {}
        if stage == "VS":
            kernel = {"vs": moves(1, *(f"g{start + number}" for number in range(4))) + "\n" + send(0, 6, 0xC400, 5, eot=True)}
        more = {"CLIP": {"clip_mode": 1}, "VS": SHADED}.get(stage, {})  # all objects are clipped; all vertices are shaded
        state: dict[str, Fields] = {f"{stage}_STATE": {field: start, f"grf_register_count{suffix}": count, **more}}
        wanted = f"{stage}_STATE: grf_register_count 0, 16 registers, and payloads have {registers}"
        found = remarks(TRIANGLE, state=state, **kernel)
        assert (wanted in found) == (count == 0 and registers > 16) == ("grf_register_count" in found)


@pytest.mark.behaviour("G45-FF-04", shows="action")
@pytest.mark.parametrize("constants", [1, 2])
def test_constants_of_vertex_shaders_take_registers_before_vertices(constants: int) -> None:
    """Eleven registers come before them, and four hold two vertices."""
    first = 11 + constants
    kernel = moves(1, *(f"g{first + number}" for number in range(4))) + "\n" + send(0, 6, 0xC400, 5, eot=True)
    state: dict[str, Fields] = {"CS_URB_STATE": {"urb_entry_allocation_size": 0, "number_of_urb_entries": 1}, "VS_STATE": {
        **SHADED, "dispatch_grf_start_register_for_urb_data": 11, "constant_urb_entry_read_length": constants}}  # fmt: skip
    found = remarks(TRIANGLE, state=state, constants=bytes(64), vs=kernel)
    assert ("VS_STATE: grf_register_count 0, 16 registers, and payloads have 17" in found) == (constants == 2)


@pytest.mark.behaviour("G45-WM-47", shows="action")
@pytest.mark.parametrize(("name", "most"), [("gm965", 32), ("g45", 50), ("g41", 50)])
def test_pixel_shader_threads_are_as_many_as_the_eus_have(name: str, most: int) -> None:
    found = device(name)
    assert most == found.limit("eus") * found.limit("threads") == found.limit("pixel_threads")
    for threads in (most, most + 1):
        text = remarks(TRIANGLE, state={"WM_STATE": {"maximum_number_of_threads": threads - 1}}, device=name)
        wanted = f"maximum_number_of_threads {threads}; {found.limit('eus')} EUs of {found.limit('threads')} threads each have {most}"
        assert (wanted in text) == (threads > most)


# -- SF ----------------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("G45-SF-01", shows="action")
@pytest.mark.parametrize(("topology", "counts"), [
    (POINTS, ()), (LINES, (1, 3)), (3, (1,)), (TRIANGLES, (1, 2, 4)), (STRIP, (1, 2)), (POLYGON, (1, 2)),
])  # fmt: skip
def test_primitives_of_gs_threads_have_numbers_of_vertices_that_sf_takes(topology: int, counts: tuple[int, ...]) -> None:
    for count in range(1, 5):
        found = remarks(TRIANGLE, gs=put_out([n % 3 for n in range(count)], topology))
        wanted = f"a GS thread puts out a primitive of topology {topology} with a number of vertices that it cannot have"
        assert (wanted in found) == (count in counts), count


@pytest.mark.behaviour("G45-SF-23", shows="action")
@pytest.mark.parametrize(("left", "right", "wanted"), [(-4096, 4096, False), (-4096, 4097, True), (-8000, 200, True), (-8000, 100, False)])
def test_objects_of_more_than_8192_pixels_are_reported(left: float, right: float, wanted: bool) -> None:
    for x, y in ((1, 0), (0, 1)):
        corners = [vertex(left * x, left * y), vertex(right * x + 2 * y, right * y + 2 * x), vertex(-4 * y, -4 * x)]
        assert ("1 objects whose bounding box is larger than 8192 pixels" in remarks(corners)) == wanted


# -- depth, stencil, colours -------------------------------------------------------------------------------------------


@pytest.mark.behaviour("G45-WM-49", shows="action")
def test_a_tiled_depth_buffer_is_y_major() -> None:
    """In Y-major tiles, 32 rows of 16 bytes: pixel (4, 1) is 528 bytes on."""
    calc = {"depth_test_enable": 1, "depth_test_function": 0, "depth_buffer_write_enable": 1}
    tiled = {"tiled_surface": 1, "tile_walk": 1, "surface_pitch": 127}
    point = [vertex(4.5, 1.5, 0.5)]
    state: dict[str, Fields] = {"COLOR_CALC_STATE": calc, "3DSTATE_DEPTH_BUFFER": tiled, "WM_STATE": {"early_depth_test_enable": 1}}
    drawn = G45Draw(point, POINTS, state, depth=np.zeros((32, 32), np.float32)).run()
    assert drawn.depth.reshape(-1).nonzero()[0].tolist() == [528 // 4]
    with pytest.raises(DecodeError, match="tile_walk 0 of a tiled depth buffer, which must be Y-major"):
        G45Draw(point, POINTS, {**state, "3DSTATE_DEPTH_BUFFER": {**tiled, "tile_walk": 0}}, depth=np.zeros((32, 32), np.float32)).run()


@pytest.mark.behaviour("G45-WM-56", shows="action")
@pytest.mark.parametrize(("format", "kind", "name"), [(1, np.float32, "d32_float"), (5, np.uint16, "d16_unorm"), (2, np.uint32, "")])
@pytest.mark.parametrize("field", ["stencil_test_enable", "stencil_buffer_write_enable"])
def test_stencil_needs_a_buffer_that_has_it(format: int, kind: Any, name: str, field: str) -> None:
    found = remarks(TRIANGLE, state={"COLOR_CALC_STATE": {field: 1}, "WM_STATE": {"early_depth_test_enable": 1}},
                    depth=np.zeros((16, 16), kind), depth_format=format)  # fmt: skip
    assert (f"COLOR_CALC_STATE: {field} 1, and the depth buffer, {name}, has no stencil" in found) == bool(name)


@pytest.mark.behaviour("G45-CC-33", shows="action")
@pytest.mark.parametrize(("blend", "logic"), [(0, 1), (1, 0), (1, 1)])
def test_blending_and_logic_operations_exclude_each_other(blend: int, logic: int) -> None:
    calc = {"color_buffer_blend_enable": blend, "source_blend_factor": 1, "destination_blend_factor": 17, "logic_op_enable": logic}
    found = remarks(TRIANGLE, state={"COLOR_CALC_STATE": calc}, format="R8G8B8A8_UNORM")
    assert ("color_buffer_blend_enable 1 with logic_op_enable 1" in found) == (blend == logic == 1)


@pytest.mark.behaviour("G45-CC-39", shows="action")
def test_yuv_targets_have_no_depth_and_integer_targets_no_smooth_lines() -> None:
    smooth: dict[str, Fields] = {"SF_STATE": {"antialiasing_enable": 1}}
    assert "antialiasing_enable 1 with a render target of format R8G8B8A8_UINT" in remarks(TRIANGLE, state=smooth, format="R8G8B8A8_UINT")
    assert not remarks(TRIANGLE, state=smooth)
    for field in ("depth_test_enable", "stencil_test_enable"):
        draw = G45Draw(TRIANGLE, state={"COLOR_CALC_STATE": {field: 1}, "WM_STATE": {"thread_dispatch_enable": 0}}, format="YCRCB_NORMAL")
        assert f"COLOR_CALC_STATE: {field} 1 with a render target of format YCRCB_NORMAL" in "\n".join(draw.run().gpu.remarks)


@pytest.mark.behaviour("G45-CC-41", shows="action")
@pytest.mark.parametrize(("device", "format", "independent", "here", "wrong"), [
    ("gm965", "R32G32B32A32_FLOAT", 0, 1, "source_blend_factor"), ("gm965", "R32G32B32A32_FLOAT", 1, 1, "destination_alpha_blend_factor"),
    ("gm965", "R32G32B32A32_FLOAT", 0, 0, ""), ("gm965", "R11G11B10_FLOAT", 0, 1, ""), ("g45", "R32G32B32A32_FLOAT", 0, 1, ""),
])  # fmt: skip
def test_saturated_alpha_of_float_targets(device: str, format: str, independent: int, here: int, wrong: str) -> None:
    """Erratum of BW and CL: the factor of alpha is wrong, so that software takes another one (G45 8379)."""
    calc = {"color_buffer_blend_enable": 1, "source_blend_factor": 6, "destination_blend_factor": 1, "source_alpha_blend_factor": 1,
            "destination_alpha_blend_factor": 6, "independent_alpha_blend_enable": independent}  # fmt: skip
    state: dict[str, Fields] = {"COLOR_CALC_STATE": calc, "RENDER_SURFACE_STATE": {"color_blend_enable": here}}
    found = remarks(TRIANGLE, state=state, format=format, device=device)
    named = [line for line in found.splitlines() if "SRC_ALPHA_SATURATE is wrong for alpha" in line]
    assert [f"COLOR_CALC_STATE: {wrong} " in line for line in named] == [True] * bool(wrong)


@pytest.mark.behaviour("G45-CC-41", shows="action")
@pytest.mark.parametrize(("clamp", "red"), [(0, 0x7E0), (1, 0)])
def test_nan_beside_saturated_alpha_and_clamps(clamp: int, red: int) -> None:
    """The manual leaves both undefined on BW and CL (G45 8380, 8400). Here NaN stays one, and a clamp makes it 0, on every engine."""
    calc = {"color_buffer_blend_enable": 1, "source_blend_factor": 6, "destination_blend_factor": 1, "color_clamp_range": 0,
            "post_blend_color_clamp_enable": clamp}  # fmt: skip
    state: dict[str, Fields] = {"COLOR_CALC_STATE": calc, "RENDER_SURFACE_STATE": {"color_blend_enable": 1}}
    corners = [vertex(x, y, attribute=(math.nan, 0.5, 0.25, 1)) for x, y in ((0, 0), (2, 0), (0, 2))]
    draw = G45Draw(corners, state=state, format="R11G11B10_FLOAT", device="gm965", fill=8 << 6 | 15 << 17)  # red 2^-7, green 1
    one, other = (draw.run(engine).pixels for engine in ("reference", "t1"))
    assert np.array_equal(one, other) and int(one[0, 0]) & 0x7FF == red and int(one[0, 0]) >> 11 & 0x7FF == 15 << 6
