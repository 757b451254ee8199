"""Gen4.5 from the batch on: commands, constants, synchronisation, and what all stages with threads have in common."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from softgen.bits.catalogue import layout
from softgen.errors import DecodeError
from tests.three_d.g45_draw import (
    CONSTANTS,
    DATA,
    GEN,
    GENERAL,
    POLYGON,
    SCRATCH,
    SF,
    SURFACES,
    TARGET,
    TRIANGLES,
    VERTICES,
    Fields,
    G45Draw,
    moves,
    pixel_shader,
    put_out,
    urb_write,
    vertex,
)

LEFT = [vertex(0, 0, attribute=(1, 2, 3, 4)), vertex(8, 0, attribute=(5, 6, 7, 8)), vertex(0, 8, attribute=(9, 10, 11, 12))]
RIGHT = [vertex(8, 8, attribute=(21, 22, 23, 24)), vertex(16, 8), vertex(8, 16)]
FIRST, SECOND = {"vertex_count_per_instance": 3}, {"vertex_count_per_instance": 3, "start_vertex_location": 3}
CONSTANT = pixel_shader("g8.0<0,1,0>", "g8.1<0,1,0>", "g8.2<0,1,0>", "g8.3<0,1,0>")
ROW = {"WM_STATE": {"constant_urb_entry_read_length": 1}}
ROWS = struct.pack("<32f", *range(32))


def pack(name: str, **fields: object) -> list[int]:
    return list(layout(name, GEN).pack(**fields))


def two(between: list[list[int]], **more: object) -> G45Draw:
    """A triangle on the left, commands, and one on the right."""
    return G45Draw([*LEFT, *RIGHT], primitives=(FIRST, SECOND), between=between, **more)  # type: ignore[arg-type]


# -- CS ----------------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("G45-CS-03", "G45-CS-07", shows="action")
def test_a_state_command_is_for_later_draws() -> None:
    later = pack("CONSTANT_BUFFER", valid=1, buffer_starting_address=CONSTANTS + 64 - GENERAL)
    drawn = two([later], constants=ROWS, ps=CONSTANT, state=ROW).run()
    assert drawn.pixels[0, 0].tolist() == [0, 1, 2, 3] and drawn.pixels[8, 8].tolist() == [16, 17, 18, 19]


@pytest.mark.behaviour("G45-CS-07", shows="action")
def test_constants_are_those_of_the_moment_of_their_command() -> None:
    """Memory that changes between CONSTANT_BUFFER and the draw does not matter."""
    store = pack("MI_STORE_DATA_IMM", address=CONSTANTS, immediate_data=0x3F800000)
    drawn = G45Draw(LEFT, constants=ROWS, ps=CONSTANT, state=ROW, before=[store]).run()
    assert drawn.pixels[0, 0].tolist() == [0, 1, 2, 3]
    assert struct.unpack("<f", drawn.space.read(CONSTANTS, 4)) == (1.0,), "the store has happened"


@pytest.mark.behaviour("G45-CS-08", shows="action")
def test_stages_have_windows_of_one_buffer() -> None:
    """PS has rows 1 and 2, SF rows 2 and 3: its kernel puts them into the primitive entry."""
    sf = moves(1, "g3", "g4") + "\n" + urb_write(3, eot=True)
    state: dict[str, Fields] = {
        "WM_STATE": {"constant_urb_entry_read_length": 2, "constant_urb_entry_read_offset": 1, "setup_urb_entry_read_length": 2},
        "SF_STATE": {"constant_urb_entry_read_length": 2, "constant_urb_entry_read_offset": 2},
    }
    shader = pixel_shader("g8.0<0,1,0>", "g9.0<0,1,0>", "g10.0<0,1,0>", "g11.0<0,1,0>")
    drawn = G45Draw(LEFT, constants=ROWS, ps=shader, sf=sf, state=state).run()
    assert drawn.pixels[0, 0].tolist() == [8, 16, 16, 24]


@pytest.mark.behaviour("G45-CS-09", shows="action")
def test_constants_need_a_buffer() -> None:
    with pytest.raises(DecodeError, match="constant_urb_entry_read_length 1, but no CONSTANT_BUFFER is valid"):
        G45Draw(LEFT, ps=CONSTANT, state=ROW).run()


@pytest.mark.behaviour("G45-CS-04", "G45-FF-03", shows="action")
def test_state_and_kernels_are_offsets_from_the_general_base() -> None:
    """WM_STATE elsewhere, with another kernel."""
    shader = G45Draw(LEFT, ps=pixel_shader("g11.0<0,1,0>"))
    elsewhere = G45Draw(LEFT, state={"3DSTATE_PIPELINED_POINTERS": {"pointer_to_wm_state": 0x8000}})
    general = shader._general()
    block = bytearray(general[0x100:0x120])
    block[0:4] = struct.pack("<I", struct.unpack("<I", block[0:4])[0] & 63 | 0x9000)
    elsewhere.patch = {GENERAL + 0x8000: bytes(block), GENERAL + 0x9000: general[0x5000:0x5400]}
    assert elsewhere.run().pixels[0, 0].tolist() == [5, 2, 3, 4]


@pytest.mark.behaviour("G45-CS-05", "G45-FF-16", shows="action")
def test_state_of_stages_that_are_off_is_not_read() -> None:
    """Nothing is mapped at their pointers. Enabled by a later command, the stage has the kernel that it always pointed at."""
    nowhere = {"pointer_to_gs_state": 0x0F000000, "pointer_to_clip_state": 0x0F000000}
    assert len(G45Draw(LEFT, state={"3DSTATE_PIPELINED_POINTERS": nowhere}).run().lit) == 28
    draw = G45Draw([*LEFT, *RIGHT], primitives=(FIRST, SECOND), gs=put_out((0, 1, 2), TRIANGLES))
    on = draw.pack("3DSTATE_PIPELINED_POINTERS", **draw._pointers())
    draw.state, draw.between = {"3DSTATE_PIPELINED_POINTERS": {"gs_enable": 0}, "GS_STATE": {"statistics_enable": 1}}, [on]
    drawn = draw.run()
    assert drawn.register("GS_INVOCATION_COUNT") == 1 and len(drawn.lit) == 56


@pytest.mark.behaviour("G45-CS-06", shows="action")
def test_binding_tables_are_offsets_from_the_surface_base() -> None:
    """Another table, whose first surface is in other memory."""
    draw = G45Draw(LEFT, state={"3DSTATE_BINDING_TABLE_POINTERS": {"pointer_to_ps_binding_table": 0x1000}})
    other = pack("RENDER_SURFACE_STATE", surface_type=1, surface_base_address=DATA, width=15, height=15, surface_pitch=255)
    draw.patch = {SURFACES + 0x1000: struct.pack("<I", 0x1040), SURFACES + 0x1040: np.array(other, np.uint32).tobytes()}
    drawn = draw.run()
    assert not drawn.lit and struct.unpack("<4f", drawn.space.read(DATA, 16)) == (1, 2, 3, 4)


@pytest.mark.behaviour("G45-CS-12", shows="action")
def test_state_that_is_not_pipelined_is_that_of_its_draw() -> None:
    """The blend colour changes between two draws."""
    color = {"color_buffer_blend_enable": 1, "source_blend_factor": 7, "destination_blend_factor": 17}
    state: dict[str, Fields] = {"COLOR_CALC_STATE": color, "RENDER_SURFACE_STATE": {"color_blend_enable": 1},
                                "3DSTATE_CONSTANT_COLOR": {"blend_constant_color_red": 2.0}}  # fmt: skip
    drawn = two([pack("3DSTATE_CONSTANT_COLOR", blend_constant_color_red=3.0)], state=state).run()
    assert drawn.pixels[0, 0, 0] == 1 * 2 and drawn.pixels[8, 8, 0] == 21 * 3


# -- threads in general ------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("G45-FF-05", shows="action")
@pytest.mark.parametrize(("fields", "bits"), [
    ({}, 0), ({"floating_point_mode": 1}, 1), ({"single_program_flow": 1}, 4), ({"illegal_opcode_exception_enable": 1}, 1 << 12),
    ({"mask_stack_exception_enable": 1}, 1 << 11), ({"software_exception_enable": 1}, 1 << 13),
])  # fmt: skip
def test_cr0_is_as_the_state_says(fields: Fields, bits: int) -> None:
    modes = "cr0<0,1,0>"
    enables = "cr0.1<0,1,0>"
    drawn = G45Draw(LEFT, ps=pixel_shader(modes, enables), state={"WM_STATE": fields}).run("reference")
    found = drawn.bits[0, 0]
    assert found[0] & 5 | found[1] & 0x3800 == bits


@pytest.mark.behaviour("G45-FF-08", "G45-FF-09", "G45-URB-02", shows="action")
@pytest.mark.parametrize(("offset", "length"), [(0, 1), (1, 1), (0, 2)])
def test_every_vertex_is_read_from_the_same_offset_on(offset: int, length: int) -> None:
    """In units of 256 bits, one vertex after the other: header and position, or the attribute behind them."""
    registers = [f"g{3 + n}" for n in range(3 * length)]
    sf = moves(1, *registers[:5]) + "\n" + urb_write(1 + len(registers[:5]), eot=True)
    state: dict[str, Fields] = {"SF_STATE": {"vertex_urb_entry_read_offset": offset, "vertex_urb_entry_read_length": length}}
    second = 8 + length
    shader = pixel_shader("g8.0<0,1,0>", "g8.4<0,1,0>", f"g{second}.0<0,1,0>", f"g{second}.4<0,1,0>")
    corners = [vertex(0, 0, attribute=(1, 2, 3, 4)), vertex(8, 1, attribute=(5, 6, 7, 8)), vertex(0, 8)]
    drawn = G45Draw(corners, sf=sf, ps=shader, state=state).run()
    wanted = {(0, 1): [0, 0, 0, 8], (1, 1): [1, 0, 5, 0], (0, 2): [0, 0, 0, 8]}[offset, length]
    assert drawn.pixels[2, 1].tolist() == wanted


@pytest.mark.behaviour("G45-FF-10", shows="action")
@pytest.mark.parametrize("code", [0, 1, 3])
def test_threads_have_scratch_space_of_their_own(code: int) -> None:
    state: dict[str, Fields] = {"WM_STATE": {"scratch_space_base_pointer": SCRATCH - GENERAL, "per_thread_scratch_space": code,
                                             "maximum_number_of_threads": 7}}  # fmt: skip
    drawn = G45Draw(LEFT, ps=pixel_shader("g0.5<0,1,0>", "g0.3<0,1,0>"), state=state).run()
    places = {int(drawn.bits[y, x, 0]) & ~1023 for x, y in drawn.lit}
    size = 1024 << code
    assert all((place - (SCRATCH - GENERAL)) % size == 0 and place < SCRATCH - GENERAL + 8 * size for place in places) and len(places) > 1
    assert {int(drawn.bits[y, x, 1]) & 15 for x, y in drawn.lit} == {code}


@pytest.mark.behaviour("G45-FF-12", shows="action")
def test_reserved_dwords_of_r0_are_zero() -> None:
    """Those of an SF thread, which puts r0 into the entry."""
    sf = moves(1, "g0") + "\n" + urb_write(2, eot=True)
    shader = pixel_shader("g8.1<0,1,0>", "g8.2<0,1,0>", "g8.7<0,1,0>", "g8.5<0,1,0>")
    drawn = G45Draw(LEFT, sf=sf, ps=shader, state={"WM_STATE": {"setup_urb_entry_read_length": 1}}).run()
    assert drawn.bits[0, 0, :3].tolist() == [0, 0, 0]


@pytest.mark.behaviour("G45-FF-13", "G45-FF-17", shows="action")
def test_hints_and_numbers_of_threads_change_nothing() -> None:
    hints = {"binding_table_entry_count": 3, "thread_dispatch_priority": 1}
    state: dict[str, Fields] = {"SF_STATE": hints, "WM_STATE": {**hints, "sampler_count": 2}}
    few: dict[str, Fields] = {name: {"maximum_number_of_threads": 0} for name in ("SF_STATE", "WM_STATE", "GS_STATE", "CLIP_STATE")}
    kernels = {"gs": put_out((0, 1, 2), POLYGON), "clip": put_out((0, 1, 2), POLYGON)}
    plain = G45Draw(LEFT, **kernels).run().pixels  # type: ignore[arg-type]
    assert (plain != 0).any()
    for other in (state, few):
        assert (G45Draw(LEFT, state=other, **kernels).run().pixels == plain).all()  # type: ignore[arg-type]


@pytest.mark.behaviour("G45-CS-02", "G45-CS-11", shows="action")
def test_parameters_of_a_draw_are_those_of_its_command() -> None:
    """A second draw without parameters of the first: neither start vertex nor topology stay. Vertex buffers are read by fetch alone: what
    the entries hold does not change with them."""
    drawn = G45Draw([*LEFT, *RIGHT], primitives=(SECOND, FIRST)).run()
    assert drawn.pixels[0, 0].tolist() == [1, 2, 3, 4] and drawn.pixels[8, 8].tolist() == [21, 22, 23, 24]
    gone = pack("3DSTATE_VERTEX_BUFFERS", vertex_buffer=[{"buffer_pitch": 64, "buffer_starting_address": DATA}])
    index = pack("3DSTATE_INDEX_BUFFER", buffer_starting_address=DATA, buffer_ending_address=DATA)
    again = G45Draw(LEFT, after=[gone, index]).run()
    assert len(again.lit) == 28


@pytest.mark.behaviour("G45-SYNC-05", shows="action")
def test_what_was_drawn_is_in_memory_for_later_draws() -> None:
    """The second draw fetches its vertices from the target of the first."""
    flush = pack("PIPE_CONTROL", render_target_cache_flush_enable=1)
    copy = pack("3DSTATE_VERTEX_BUFFERS", vertex_buffer=[{"buffer_pitch": 0, "buffer_starting_address": TARGET}])
    elements = [{"valid": 1, "source_element_format": 0, "source_element_offset": 0, "destination_element_offset": 4 * n,
                 **{f"component_{c}_control": 2 if n == 0 else 1 for c in range(4)}} for n in range(3)]  # fmt: skip
    point = {"primitive_topology_type": 1, "vertex_count_per_instance": 1}
    first = [vertex(0, 0, attribute=(9.5, 9.5, 0.5, 1)), vertex(8, 0), vertex(0, 8)]
    second = [flush, copy, pack("3DSTATE_VERTEX_ELEMENTS", vertex_element=elements)]
    drawn = G45Draw(first, primitives=({}, point), between=second).run()
    assert drawn.pixels[9, 9].tolist() == [9.5, 9.5, 0.5, 1]


# -- URB ---------------------------------------------------------------------------------------------------------------

FENCES = {"vs_fence": 64, "gs_fence": 80, "clip_fence": 96, "sf_fence": 120, "cs_fence": 128,
          **{f"{name}_unit_urb_reallocation_request": 1 for name in ("vs", "gs", "clip", "sf", "cs")}}  # fmt: skip


@pytest.mark.behaviour("G45-URB-01", "G45-URB-03", "G45-URB-07", "G45-VS-17", "G45-VS-18", "G45-GS-12", "G45-CLIP-43", "G45-SF-59",
                       shows="action")  # fmt: skip
@pytest.mark.parametrize(("stage", "fields", "fences", "text"), [
    ("VS", {}, {}, ""), ("VS", {}, {"vs_fence": 63}, "32 entries of 2 rows do not fit into the 63 rows"),
    ("GS", {"number_of_urb_entries": 10}, {}, "10 entries of 2 rows do not fit into the 16 rows"),
    ("GS", {}, {"vs_fence": 65}, "8 entries of 2 rows do not fit into the 15 rows"),
    ("CLIP", {}, {"gs_fence": 96}, "8 entries of 2 rows do not fit into the 0 rows"),
    ("SF", {"urb_entry_allocation_size": 3}, {}, "8 entries of 4 rows do not fit into the 24 rows"),
    ("SF", {"number_of_urb_entries": 0}, {}, "the stage needs entries"),
    ("VS", {"number_of_urb_entries": 0}, {}, "the stage needs entries"),
    ("VS", {"number_of_urb_entries": 20}, {}, "must be one of 8, 12, 16, 32, 64"),
    ("VS", {"maximum_number_of_threads": 32}, {}, "maximum_number_of_threads 33; the stage may have 32"),
    ("SF", {"maximum_number_of_threads": 24}, {}, "maximum_number_of_threads 25; the stage may have 24"),
    ("GS", {"number_of_urb_entries": 7}, {}, "two threads need an even number"),
    ("CLIP", {"number_of_urb_entries": 7}, {}, "two threads need an even number"),
    ("SF", {"number_of_urb_entries": 64}, {"sf_fence": 384, "cs_fence": 384}, ""),
    ("SF", {"number_of_urb_entries": 65}, {"sf_fence": 384, "cs_fence": 384}, "number_of_urb_entries 65; there may be 64"),
])  # fmt: skip
def test_entries_between_fences(stage: str, fields: Fields, fences: Fields, text: str) -> None:
    """A fence is the row behind a stage's entries, where the next stage's begin."""
    state: dict[str, Fields] = {"URB_FENCE": {**FENCES, **fences}, f"{stage}_STATE": {"maximum_number_of_threads": 1, **fields}}
    kernels = {"gs": put_out((0, 1, 2), TRIANGLES), "clip": put_out((0, 1, 2), TRIANGLES)}
    remarks = list(G45Draw(LEFT, state=state, **kernels).run().gpu.remarks)  # type: ignore[arg-type]
    assert [f"{stage}_STATE: " in remark and text in remark for remark in remarks if stage in remark] == [True] if text else not remarks
    assert G45Draw(LEFT, state=state).run().lit, "entries of stages that are off do not matter"


# -- synchronisation ---------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("G45-SYNC-02", "G45-SYNC-04", "G45-CC-35", shows="action")
def test_a_count_is_that_of_the_draws_before() -> None:
    write = pack("PIPE_CONTROL", post_sync_operation=2, depth_stall_enable=1, address=DATA)
    drawn = two([write], state={"WM_STATE": {"statistics_enable": 1}}).run()
    assert struct.unpack("<Q", drawn.space.read(DATA, 8)) == (28,) and drawn.register("PS_DEPTH_COUNT") == 56


@pytest.mark.behaviour("G45-SYNC-14", shows="action")
def test_counters_are_read_after_a_flush() -> None:
    flush = pack("PIPE_CONTROL", render_target_cache_flush_enable=1)
    store = pack("MI_STORE_REGISTER_MEM", register_address=0x2340, memory_address=DATA)
    drawn = G45Draw(LEFT, state={"SF_STATE": {"statistics_enable": 1}}, after=[flush, store]).run()
    assert struct.unpack("<I", drawn.space.read(DATA, 4)) == (1,)


# -- VF ----------------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("G45-VF-02", shows="action")
def test_a_vertex_count_in_memory() -> None:
    indirect = {"indirect_vertex_count": 1, "vertex_count_per_instance": 0, "vertex_count_address": DATA}
    draw = G45Draw([*LEFT, *RIGHT], primitives=(indirect,), patch={DATA: struct.pack("<I", 3)})
    assert len(draw.run().lit) == 28


@pytest.mark.behaviour("G45-VF-20", "G45-VF-42", shows="action")
def test_vertex_buffers_that_a_command_does_not_name_stay() -> None:
    """The second command names buffer 1, and invalidates the fetch cache, which changes nothing."""
    other = pack("3DSTATE_VERTEX_BUFFERS", vertex_buffer=[{"vertex_buffer_index": 1, "buffer_pitch": 16, "vertex_fetch_invalidate": 1,
                                                           "buffer_starting_address": DATA}])  # fmt: skip
    assert G45Draw(LEFT, before=[other]).run().pixels[0, 0].tolist() == [1, 2, 3, 4]
    moved = pack("3DSTATE_VERTEX_BUFFERS", vertex_buffer=[{"buffer_pitch": 64, "buffer_starting_address": VERTICES + 192}])
    assert (8, 8) not in G45Draw([*LEFT, *RIGHT], before=[moved], primitives=(SECOND,)).run().lit


@pytest.mark.behaviour("G45-VF-46", shows="action")
@pytest.mark.parametrize("topology", [TRIANGLES, 5, 6, POLYGON])
def test_the_topology_goes_down_to_the_threads(topology: int) -> None:
    drawn = G45Draw(LEFT, topology=topology, ps=pixel_shader("g8.0<0,1,0>", "g1.6<0,1,0>"), sf=SF).run()
    assert drawn.bits[0, 0, 0] & 31 == topology and drawn.bits[0, 0, 1] & 31 == topology
