"""Whole draws of Gen8 and later: what state before, between and in them means."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from softgen.errors import DecodeError, GpuFault
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.trace.work import Work
from tests.three_d.own_draw import (
    ATTRIBUTE,
    BATCH,
    DATA,
    DYNAMIC,
    PS,
    SIZE,
    TARGET,
    TRIANGLES,
    VERTICES,
    OwnDraw,
    box,
    move,
    pixel_shader,
    rectangle,
    send,
    vertex,
)

GPUS = ["bdw", "kbl", "icl"]
ENGINES = ["reference", "t0", "t1"]
URB = 6
# A vertex shader that writes position and attribute as they are: a handle, then eight registers from slot 1 on.
PASS_VERTICES = "\n".join([move("g118", "g1<8,8,1>", "UD"), *(move(f"g{119 + n}", f"g{6 + n}<8,8,1>") for n in range(8)),
                           send(1 << 19 | 1 << 4 | 7, 9, source=118, target=URB, opcode="send")])  # fmt: skip
VERTEX_SHADER: dict[str, Any] = {"enable": 1, "simd8_dispatch_enable": 1, "dispatch_grf_start_register_for_urb_data": 2,
                                 "vertex_urb_entry_read_length": 2, "maximum_number_of_threads": 35, "statistics_enable": 1}  # fmt: skip


@pytest.mark.behaviour("BDW-TE-01", "BDW-GS-01", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_rectangle(gpu: str, engine: str) -> None:
    """It passes disabled HS, TE, DS and GS stages, and stream output, as it is."""
    drawn = OwnDraw(gpu, rectangle(2, 3, 8, 11, attribute=(0.25, 0.5, 0.75, 1))).run(engine)
    assert drawn.lit == box(2, 3, 8, 11) and drawn.pixels[5, 5].tolist() == [0.25, 0.5, 0.75, 1]


@pytest.mark.parametrize("gpu", GPUS)
def test_a_null_surface_bounds_no_draw(gpu: str) -> None:
    """Its pixels are shaded, and their writes go nowhere."""
    drawn = OwnDraw(gpu, rectangle(2, 3, 8, 11), {"RENDER_SURFACE_STATE": {"surface_type": 7}}).run()
    assert drawn.register("PS_DEPTH_COUNT") == 6 * 8 and not drawn.lit


@pytest.mark.parametrize("gpu", GPUS)
def test_the_first_render_target_bounds_a_draw(gpu: str) -> None:
    """Others may be larger, and so may the drawing rectangle. It is the one that the draw is shown by."""
    larger = {"width": 31, "height": 31, "surface_pitch": 32 * 16 - 1, "surface_base_address": DATA}
    state = {"3DSTATE_DRAWING_RECTANGLE": {"clipped_drawing_rectangle_x_max": 31, "clipped_drawing_rectangle_y_max": 31}}
    drawn = OwnDraw(gpu, rectangle(2, 3, 32, 32), state, surfaces=[larger], size=(16, 12)).run()
    assert drawn.lit == box(2, 3, 16, 12) and drawn.register("PS_DEPTH_COUNT") == 14 * 9
    assert [(target.base, target.width, target.height) for target in drawn.targets] == [(TARGET, 16, 12)]


# -- the command streamer ----------------------------------------------------------------------------------------------


@pytest.mark.behaviour("BDW-CS-09", shows="action")
@pytest.mark.parametrize("gpu", GPUS)
def test_state_between_draws_is_that_of_the_later_one(gpu: str) -> None:
    """State that is not pipelined: drawing rectangle, polygon stipple and its offset; the first draw is not changed by them."""
    made = OwnDraw(gpu, [])
    stipple, offset = "3DSTATE_POLY_STIPPLE_PATTERN", "3DSTATE_POLY_STIPPLE_OFFSET"
    rows = [{"pattern": 0xFFFFFFFF if row < 4 else 0} for row in range(32)]
    between = [made.pack("3DSTATE_DRAWING_RECTANGLE", clipped_drawing_rectangle_x_min=9, clipped_drawing_rectangle_x_max=12,
                         clipped_drawing_rectangle_y_max=15),
               made.pack(stipple, row=rows), made.pack(offset, polygon_stipple_y_offset=2)]  # fmt: skip
    left, right = ([vertex(x, 0), vertex(x + 16, 0), vertex(x, 16)] for x in (-8, 8))
    state = {"3DSTATE_VF_TOPOLOGY": {"primitive_topology_type": TRIANGLES}, "3DSTATE_WM": {"polygon_stipple_enable": 1},
             stipple: {"row": [{"pattern": 0xFFFFFFFF}] * 32}}  # fmt: skip
    draws = [{"vertex_count_per_instance": 3, "start_vertex_location": first} for first in (0, 3)]
    drawn = OwnDraw(gpu, [*left, *right], state, primitives=draws, between=between).run()
    first, second = ({(x, y) for x, y in box(0, 0, 16, 16) if x + y + 1 < edge and x >= edge - 16} for edge in (8, 24))
    hanging = {(x, y) for x, y in second if 9 <= x <= 12 and (y + 2) % 32 < 4}
    assert drawn.lit == first | hanging and len(hanging) == 8


@pytest.mark.behaviour("BDW-VF-30", shows="action")
@pytest.mark.parametrize("gpu", GPUS)
def test_vertices_and_indices_are_linear_in_memory(gpu: str) -> None:
    """Vertex n begins n pitches after the first, over more than the rows of a tile; indices follow each other."""
    data = bytearray(0x9000)
    corners = rectangle(1, 2, 5, 9)
    numbers = 7, 301, 767
    for number, corner in zip(numbers, corners, strict=True):
        data[48 * number : 48 * number + 48] = corner
    indices = b"".join(struct.pack("<H", number) for number in numbers)
    state = {"3DSTATE_VERTEX_BUFFERS": {"buffer_size": len(data)},
             "3DSTATE_INDEX_BUFFER": {"index_format": 1, "buffer_starting_address": DATA + 0x1FFE, "buffer_size": 6}}  # fmt: skip
    patch = {VERTICES: bytes(data), DATA + 0x1FFE: indices}
    drawn = OwnDraw(gpu, corners, state, patch=patch, primitives=[{"vertex_access_type": 1}]).run()
    assert drawn.lit == box(1, 2, 5, 9)


# -- the vertex shader -------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("BDW-VS-01", shows="action")
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("indices", [(), (0, 1, 2, 0, 1, 2)], ids=["", "vertex cache"])
def test_without_a_vertex_shader_vertices_pass_unmodified(gpu: str, indices: tuple[int, ...]) -> None:
    """Bits of attributes that no float instruction would leave as they are; indexed vertices may be those of the vertex cache."""
    odd = [0x7FA00001, 1, 0x80000000, 0xFF800000]
    corners = [corner[:32] + struct.pack("<4I", *odd) for corner in rectangle(0, 0, 4, 4)]
    state: dict[str, Any] = {"RENDER_SURFACE_STATE": {"surface_format": 2}}  # R32G32B32A32_UINT
    primitive: dict[str, Any] = {}
    if indices:
        state["3DSTATE_INDEX_BUFFER"] = {"index_format": 1, "buffer_starting_address": DATA, "buffer_size": 2 * len(indices)}
        primitive = {"vertex_access_type": 1, "vertex_count_per_instance": len(indices)}
    patch = {DATA: b"".join(struct.pack("<H", number) for number in indices)}
    drawn = OwnDraw(gpu, corners, state, ps=PS.replace(">F", ">UD"), patch=patch, primitives=[primitive]).run()
    assert drawn.texels(np.uint32)[2, 2].tolist() == odd
    assert drawn.register("VS_INVOCATION_COUNT") == 0


@pytest.mark.behaviour("BDW-STAT-01", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("off", ["", "3DSTATE_VF_STATISTICS", "3DSTATE_VS", "3DSTATE_CLIP", "3DSTATE_SF", "3DSTATE_WM"])
def test_counters_of_stages_count_where_their_stage_says_so(gpu: str, off: str) -> None:
    """Two triangles, one of them outside; the counters of stages that are not built come with them."""
    gates = {"3DSTATE_VF_STATISTICS": ("statistics_enable", ("IA_VERTICES_COUNT", "IA_PRIMITIVES_COUNT")),
             "3DSTATE_VS": ("statistics_enable", ("VS_INVOCATION_COUNT",)),
             "3DSTATE_CLIP": ("clipper_statistics_enable", ("CL_INVOCATION_COUNT",)),
             "3DSTATE_SF": ("statistics_enable", ("CL_PRIMITIVES_COUNT",)),
             "3DSTATE_WM": ("statistics_enable", ("PS_INVOCATION_COUNT", "PS_DEPTH_COUNT"))}  # fmt: skip
    clip = {"clip_enable": 1, "viewport_xy_clip_test_enable": 1, "perspective_divide_disable": 0, "clipper_statistics_enable": 1}
    state: dict[str, Any] = {"3DSTATE_VS": VERTEX_SHADER, "3DSTATE_VF_TOPOLOGY": {"primitive_topology_type": TRIANGLES},
                             "3DSTATE_CLIP": clip, "3DSTATE_SF": {"viewport_transform_enable": 1, "statistics_enable": 1},
                             "SF_CLIP_VIEWPORT": {"viewport_matrix_element_m00": 8.0, "viewport_matrix_element_m11": 8.0,
                                                  "viewport_matrix_element_m22": 1.0, "viewport_matrix_element_m30": 8.0,
                                                  "viewport_matrix_element_m31": 8.0, "x_max_viewport": 15.0,
                                                  "y_max_viewport": 15.0}}  # fmt: skip
    if off:
        name = gates[off][0]
        state[off] = {**state.get(off, {}), name: 0}
    inside, outside = ([vertex(x, -1), vertex(x + 2, -1), vertex(x, 1)] for x in (-1, 3))
    drawn = OwnDraw(gpu, [*inside, *outside], state, vs=PASS_VERTICES).run()
    each = 4 if gpu == "bdw" else 1
    expected = {"IA_VERTICES_COUNT": 6, "IA_PRIMITIVES_COUNT": 2, "VS_INVOCATION_COUNT": 6, "CL_INVOCATION_COUNT": 2,
                "CL_PRIMITIVES_COUNT": 1, "PS_INVOCATION_COUNT": 120 * each, "PS_DEPTH_COUNT": 120}  # fmt: skip
    expected |= dict.fromkeys(gates[off][1], 0) if off else {}
    assert {name: drawn.register(name) for name in expected} == expected and len(drawn.lit) == 120


@pytest.mark.behaviour("BDW-SOL-01", "BDW-SOL-02", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize(("disabled", "force", "renders"), [(0, 0, 1), (1, 0, 0), (0, 2, 0), (1, 2, 0), (0, 3, 1), (1, 3, 1)])
def test_disabled_stream_output_decides_what_is_rendered(gpu: str, disabled: int, force: int, renders: int) -> None:
    """Vertices are fetched and shaded all the same; nothing is written to a buffer."""
    state = {"3DSTATE_STREAMOUT": {"rendering_disable": disabled, "force_rendering": force}, "3DSTATE_VS": VERTEX_SHADER}
    drawn = OwnDraw(gpu, rectangle(1, 2, 5, 6), state, vs=PASS_VERTICES).run()
    assert len(drawn.lit) == 16 * renders and drawn.register("VS_INVOCATION_COUNT") == 3


# -- constants ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gpu", GPUS)
def test_constants_of_several_buffers_follow_each_other(gpu: str) -> None:
    """In the order of their numbers; in the second draw they are elsewhere."""
    def given(at: int) -> Any:
        lengths, places = (0, 1, 2, 1), (0, at, at + 0x100, at + 0x200)
        return {"read_length": [{"length": n} for n in lengths], "constant_buffer": [{"pointer": n} for n in places]}

    made, first = OwnDraw(gpu, []), 8.0 * np.arange(4)
    held = {DATA + 0x1000 * n + at: struct.pack("<16f", *(start + 100 * n + np.arange(16)))
            for n in range(2) for at, start in ((0, first[0]), (0x100, first[1]), (0x200, first[3]))}  # fmt: skip
    shader = pixel_shader([f"g{4 + n}.1<0,1,0>" for n in range(4)])
    state = {"3DSTATE_CONSTANT_PS": given(DATA), "3DSTATE_PS": {"push_constant_enable": 1}}
    draws = [{"vertex_count_per_instance": 3}, {"vertex_count_per_instance": 3, "start_vertex_location": 3}]
    drawn = OwnDraw(gpu, [*rectangle(0, 0, 4, 4), *rectangle(8, 8, 12, 12)], state, ps=shader, primitives=draws, patch=held,
                    between=[made.pack("3DSTATE_CONSTANT_PS", **given(DATA + 0x1000))]).run()  # fmt: skip
    assert drawn.pixels[1, 1].tolist() == [1, 9, 17, 25] and drawn.pixels[9, 9].tolist() == [101, 109, 117, 125]


@pytest.mark.behaviour("BDW-CONST-04", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("stage", ["VS", "HS", "PS"])
def test_constants_must_come_again_after_their_space_was_allocated(gpu: str, stage: str) -> None:
    """Those of stages that have threads (BDW 7853-7855), before the next draw and after an earlier one. And the allocations of stages are
    in front of what the URB holds besides (BDW 11378-11383)."""
    made = OwnDraw(gpu, [])
    space = made.pack(f"3DSTATE_PUSH_CONSTANT_ALLOC_{stage}", constant_buffer_offset=8, constant_buffer_size=8)
    constants, draws = made.pack(f"3DSTATE_CONSTANT_{stage}"), [{}, {"start_instance_location": 1}]
    for between, told in (([space], stage != "HS"), ([space, constants], False), ([constants], False), ([], False)):
        drawn = OwnDraw(gpu, rectangle(0, 0, 4, 4), primitives=draws, between=between).run()
        words = f"3DSTATE_PUSH_CONSTANT_ALLOC_{stage} without a 3DSTATE_CONSTANT_{stage} before the draw (BDW 7853-7855)"
        assert [text.partition("): ")[2] for text in drawn.remarks] == [words] * told
    past = OwnDraw(gpu, rectangle(0, 0, 4, 4), {"3DSTATE_PUSH_CONSTANT_ALLOC_VS": {"constant_buffer_offset": 31, "constant_buffer_size": 2},
                                                "3DSTATE_CONSTANT_VS": {}}).run()  # fmt: skip
    assert any("31 to 33 KiB; push constants have 32" in text for text in past.remarks)


@pytest.mark.behaviour("BDW-RS-04", shows="action")
@pytest.mark.parametrize("gpu", ["bdw", "kbl"])
@pytest.mark.parametrize("given", [True, False])
def test_a_stage_whose_constants_are_gathered_must_get_them(gpu: str, given: bool) -> None:
    made = OwnDraw(gpu, [])
    before = [made.pack("3DSTATE_GATHER_CONSTANT_PS", constant_buffer_valid=0, gather_entry=[])]
    before += [made.pack("3DSTATE_CONSTANT_PS")] if given else []
    drawn = OwnDraw(gpu, rectangle(0, 0, 4, 4), before=before, primitives=[{}, {}]).run()
    told = [text for text in drawn.remarks if "3DSTATE_GATHER_CONSTANT_PS without a 3DSTATE_CONSTANT_PS" in text]
    assert len(told) == (not given) and len(drawn.lit) == 16


# -- order of pixels ---------------------------------------------------------------------------------------------------

UNTYPED = 12  # data port 1
READ, WRITE = 0x01 << 14 | 2 << 12 | 14 << 8, 0x09 << 14 | 2 << 12 | 14 << 8  # SIMD8, red alone


def interlocked(index: int = 1) -> str:
    """Reads a dword of the pixel, makes 3 n + 1 of it and writes it; the first message is sent when the threads before have ended."""
    lines = ["mov(8) g10<1>UW g1.4<1,4,0>UW { align1 WE_all 1Q };".replace("<1,4,0>", "<2,4,0>"),
             "mov(8) g11<1>UW g1.5<2,4,0>UW { align1 WE_all 1Q };",
             "add(8) g10<1>UW g10<8,8,1>UW 0x10101010V { align1 WE_all 1Q };",
             "add(8) g11<1>UW g11<8,8,1>UW 0x11001100V { align1 WE_all 1Q };",
             "mov(8) g12<1>UD g10<8,8,1>UW { align1 WE_all 1Q };",
             "mov(8) g13<1>UD g11<8,8,1>UW { align1 WE_all 1Q };",
             "shl(8) g13<1>UD g13<8,8,1>UD 0x00000004UD { align1 WE_all 1Q };",
             "add(8) g12<1>UD g12<8,8,1>UD g13<8,8,1>UD { align1 WE_all 1Q };",
             "shl(8) g20<1>UD g12<8,8,1>UD 0x00000002UD { align1 WE_all 1Q };",
             send(READ | index, 1, 1, source=20, to="g21<1>UD", eot=False, target=UNTYPED),
             "add(8) g22<1>D g21<8,8,1>D g21<8,8,1>D { align1 1Q };",
             "add(8) g22<1>D g22<8,8,1>D g21<8,8,1>D { align1 1Q };",
             "add(8) g21<1>D g22<8,8,1>D 1D { align1 1Q };",
             send(WRITE | index, 2, 0, source=20, eot=False, target=UNTYPED, opcode="send")]  # fmt: skip
    return "\n".join(lines)


@pytest.mark.behaviour("BDW-EU-28", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize(("engine", "threads"), [("t0", 1), ("t1", 1), ("t1", 4)])
def test_threads_of_a_pixel_follow_each_other(gpu: str, engine: str, threads: int) -> None:
    """Fragment shader interlock: eight objects on each pixel, whose threads read and write the same dword without atomics."""
    buffer = {"surface_type": 4, "surface_format": 0x1FF, "surface_base_address": DATA, "width": 0x7F, "height": 7, "depth": 0,
              "surface_pitch": 0}  # fmt: skip
    corners = [corner for number in range(8) for corner in rectangle(2 * (number % 3), 2 * (number % 2), 16, 16)]
    drawn = OwnDraw(gpu, corners, ps=pixel_shader(before=interlocked()), surfaces=[buffer]).run(engine, threads)
    times = np.zeros((16, 16), int)
    for number in range(8):
        times[2 * (number % 2) :, 2 * (number % 3) :] += 1
    found = np.frombuffer(drawn.space.read(DATA, 1024), np.uint32).reshape(16, 16)
    np.testing.assert_array_equal(found, (3**times - 1) // 2)


@pytest.mark.parametrize(("writable", "message"), [(None, "read at .*sendc .*not mapped"), (False, "write at .* send .*mapped read-only")])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_buffer_that_is_mapped_otherwise_at_the_next_draw(engine: str, writable: bool | None, message: str) -> None:
    """Records are made for buffers as they were mapped; the fault names the message and the lane nevertheless."""
    buffer = {"surface_type": 4, "surface_format": 0x1FF, "surface_base_address": DATA, "width": 0x7F, "height": 7, "depth": 0,
              "surface_pitch": 0}  # fmt: skip
    drawn = OwnDraw("skl", rectangle(0, 0, 16, 16), ps=pixel_shader(before=interlocked()), surfaces=[buffer])._executed(engine, 1)
    drawn.space.unmap(DATA, SIZE)
    if writable is not None:
        drawn.space.map(DATA, MemfdBuffer(SIZE, "other"), writable=writable)
    with pytest.raises(GpuFault, match=rf"^{message} \(lane 0\)$"):
        drawn.gpu.execute(Work("render", drawn.space, BATCH))


# -- colours -----------------------------------------------------------------------------------------------------------

SRC_ALPHA, INV_SRC_ALPHA = 3, 19


@pytest.mark.behaviour("KBL-BLEND-09", shows="action")
@pytest.mark.parametrize("gpu", ["bdw", "kbl"])
@pytest.mark.parametrize("not_cancelled", [0, 1])
def test_dithered_pixels_do_not_drift(gpu: str, not_cancelled: int) -> None:
    """A colour between two of 5 bits is dithered, by places that the offsets move; blending that leaves a pixel's colour does not change
    it, however often. The manual lets pixels drift if dithering is not cancelled (KBL 3627-3633); here they do not either."""
    blend = {"render_target": [{"color_buffer_blend_enable": 1, "source_blend_factor": SRC_ALPHA, "source_alpha_blend_factor": SRC_ALPHA,
                                "destination_blend_factor": INV_SRC_ALPHA, "destination_alpha_blend_factor": INV_SRC_ALPHA}]}  # fmt: skip

    def drawn(x: int, y: int, times: int) -> Any:
        state = {"BLEND_STATE": {"color_dither_enable": 1, "x_dither_offset": x, "y_dither_offset": y, **blend},
                 "COLOR_CALC_STATE": {"round_disable_function_disable": not_cancelled}}  # fmt: skip
        corners = rectangle(0, 0, 16, 16, attribute=(10.5 / 31,) * 3 + (1,)) + times * rectangle(0, 0, 16, 16, attribute=(1, 1, 1, 0))
        return OwnDraw(gpu, corners, state, format="B5G6R5_UNORM").run().texels(np.uint16, 1)[:, :, 0] >> 11

    first = drawn(0, 0, 0)
    assert set(first.flat) == {10, 11} and 120 <= (first == 10).sum() <= 136 and (first[:4, :4] == first[4:8, 8:12]).all()
    np.testing.assert_array_equal(drawn(1, 3, 0)[:8, :8], first[3:11, 1:9])
    np.testing.assert_array_equal(drawn(0, 0, 20), first)


@pytest.mark.behaviour("BDW-WM-07", shows="action")
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("corner", [0, 1])
@pytest.mark.parametrize("mode", ["pixel", "centroid", "sample"])
def test_depth_of_pixel_shaders_is_that_of_the_pixels_place(gpu: str, corner: int, mode: str) -> None:
    """Its middle or upper left corner, which is also centroid and sample where there is one sample."""
    ps = pixel_shader(["g2<8,8,1>", *ATTRIBUTE[1:]])
    corners = [vertex(x, y, z=x / 32 + y / 64) for x, y in ((16, 16), (0, 16), (0, 0))]
    extra = {"pixel_shader_valid": 1, "attribute_enable": 1, "pixel_shader_uses_source_depth": 1}
    state = {"3DSTATE_PS_EXTRA": extra, "3DSTATE_MULTISAMPLE": {"pixel_location": corner},
             "3DSTATE_WM": {"position_zw_interpolation_mode": {"pixel": 0, "centroid": 2, "sample": 3}[mode]}}  # fmt: skip
    drawn = OwnDraw(gpu, corners, state, ps=ps).run()
    y, x = np.mgrid[0:16, 0:16] + (0 if corner else 0.5)
    np.testing.assert_allclose(drawn.pixels[:, :, 0], x / 32 + y / 64, rtol=1e-6)
    assert any("position_zw_interpolation_mode sample, and" in remark for remark in drawn.remarks) == (mode == "sample")


# -- binding tables ----------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("BDW-BT-02", "BDW-BT-03", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("gpu", ["bdw", "kbl"])
@pytest.mark.parametrize(("index", "target"), [(3, DATA + 0x4000), (15, DATA + 0x4000), (16, TARGET), (20, TARGET)])
def test_edited_binding_tables_are_in_the_pool_up_to_its_end(gpu: str, index: int, target: int) -> None:
    """The pool's last 64 bytes have entries 0 to 15 of the table, as they were edited; others read as 0, whatever memory has there."""
    made = OwnDraw(gpu, [])
    entries = [{"binding_table_index": number, "surface_state_pointer": 1} for number in (3, 15, 16, 20)]
    before = [made.pack("3DSTATE_BINDING_TABLE_POOL_ALLOC", binding_table_pool_base_address=DATA, binding_table_pool_enable=1,
                        binding_table_pool_buffer_size=1),
              made.pack("3DSTATE_BINDING_TABLE_EDIT_PS", binding_table_block_clear=0xFFFF, binding_table_edit_target=3, entry=entries),
              made.pack("3DSTATE_BINDING_TABLE_POINTERS_PS", pointer_to_binding_table=0xFC0 >> 1)]  # fmt: skip
    other = {"surface_base_address": DATA + 0x4000}
    drawn = OwnDraw(gpu, rectangle(0, 0, 4, 4), before=before, ps=pixel_shader(surface=index), surfaces=[other],
                    patch={DATA + 0x1000: b"\x80" * 0x100}).run()  # fmt: skip
    pool = struct.unpack("<16I", drawn.space.read(DATA + 0xFC0, 64))
    assert pool == (0, 0, 0, 0x40, *[0] * 11, 0x40) and drawn.space.read(DATA + 0x1000, 0x100) == b"\x80" * 0x100
    assert {at: bool(drawn.texels(at=at).any()) for at in (TARGET, DATA + 0x4000)} == {at: at == target for at in (TARGET, DATA + 0x4000)}


@pytest.mark.behaviour("BDW-BT-02", shows="action")
def test_an_enabled_pool_of_binding_tables_has_a_size() -> None:
    made = OwnDraw("bdw", [])
    before = [made.pack("3DSTATE_BINDING_TABLE_POOL_ALLOC", binding_table_pool_base_address=DATA, binding_table_pool_enable=1),
              made.pack("3DSTATE_BINDING_TABLE_EDIT_PS", binding_table_edit_target=3)]  # fmt: skip
    with pytest.raises(DecodeError, match="a size of 0"):
        OwnDraw("bdw", rectangle(0, 0, 4, 4), before=before).run()


# -- rules that software must keep -------------------------------------------------------------------------------------

PLACES = [(0.375, 0.125), (0.875, 0.375), (0.125, 0.625), (0.625, 0.875)]  # all as far from the middle


def told(gpu: str, state: dict[str, Any], text: str) -> bool:
    """Whether a draw is remarked on; it is drawn all the same."""
    drawn = OwnDraw(gpu, rectangle(0, 0, 4, 4), state).run()
    assert len(drawn.lit) == 16
    return any(text in remark for remark in drawn.remarks)


@pytest.mark.behaviour("BDW-PS-10", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize(("enable", "length"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_push_constants_are_enabled_where_there_are_some(gpu: str, enable: int, length: int) -> None:
    lengths = [{"length": 0}] * 3 + [{"length": length}]
    state = {"3DSTATE_PS": {"push_constant_enable": enable, "dispatch_grf_start_register_for_constant_setup_data_0": 4 - enable * length},
             "3DSTATE_CONSTANT_PS": {"read_length": lengths, "constant_buffer": [{"pointer": DATA}] * 4}}  # fmt: skip
    assert told(gpu, state, f"push_constant_enable {enable}, and") == (enable != length)


class FromZero(OwnDraw):
    """A draw with other memory, of zeros, at address 0."""

    def memory(self) -> AddressSpace:
        space = super().memory()
        space.map(0, MemfdBuffer(SIZE))
        return space


@pytest.mark.parametrize("gpu", GPUS)
def test_draws_after_the_first_find_constants_at_the_dynamic_state_base(gpu: str) -> None:
    """The address of the first buffer counts from there as long as no register says otherwise."""
    state = {"3DSTATE_PS": {"push_constant_enable": 1, "dispatch_grf_start_register_for_constant_setup_data_0": 3},
             "3DSTATE_CONSTANT_PS": {"read_length": [{"length": 1}] + [{"length": 0}] * 3,
                                     "constant_buffer": [{"pointer": 0x2000}] + [{"pointer": 0}] * 3},
             **{f"3DSTATE_URB_{stage}": {"urb_starting_address": 8} for stage in ("HS", "DS", "GS")}}  # fmt: skip
    shader = pixel_shader([f"g3.{n}<0,1,0>" for n in range(4)])
    drawn = FromZero(gpu, rectangle(0, 0, 4, 4), state, ps=shader, primitives=[{}] * 3,
                     patch={DYNAMIC + 0x2000: struct.pack("<4f", 1, 2, 3, 4)}).run()  # fmt: skip
    assert len(drawn.lit) == 16 and drawn.pixels[1, 1].tolist() == [1, 2, 3, 4] and not drawn.remarks


@pytest.mark.behaviour("BDW-PS-09", shows="action")
@pytest.mark.parametrize(("gpu", "code", "wrong"), [
    ("bdw", 0, False), ("bdw", 62, False), ("bdw", 63, True), ("kbl", 63, False), ("kbl", 64, True)])  # fmt: skip
def test_threads_of_a_pixel_shader_dispatcher(gpu: str, code: int, wrong: bool) -> None:
    assert told(gpu, {"3DSTATE_PS": {"maximum_number_of_threads_per_psd": code}}, "it must be from 2 to 64") == wrong


@pytest.mark.behaviour("BDW-WM-14", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize(("places", "wrong"), [(PLACES, False), ([*PLACES[:3], (0.5, 0.5)], True), ([(0.5, 0.5), *PLACES[:3]], False)])
def test_samples_are_sorted_by_their_distance_from_the_middle(gpu: str, places: list[tuple[float, float]], wrong: bool) -> None:
    pattern = {"samples_4x": [{"x_offset": x, "y_offset": y} for x, y in places]}
    assert told(gpu, {"3DSTATE_SAMPLE_PATTERN": pattern}, "sample 3 of 4 is nearer to the middle") == wrong
    eight = {"samples_8x": [{"x_offset": 0.0, "y_offset": 0.0}] * 4, "samples_8x_from_4": [{"x_offset": 0.0, "y_offset": 0.25}] * 4}
    assert told(gpu, {"3DSTATE_SAMPLE_PATTERN": eight}, "sample 4 of 8")


@pytest.mark.behaviour("BDW-VS-10", shows="action")
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("enable", [0, 1])
def test_a_vertex_shader_that_writes_buffers_is_enabled(gpu: str, enable: int) -> None:
    """Nothing else comes of the bit: what threads write is seen at once."""
    state = {"3DSTATE_VS": {**VERTEX_SHADER, "enable": enable, "accesses_uav": 1}}
    drawn = OwnDraw(gpu, rectangle(0, 0, 4, 4), state, vs=PASS_VERTICES).run()
    assert any("accesses_uav 1 and enable 0" in remark for remark in drawn.remarks) != enable and len(drawn.lit) == 16


@pytest.mark.behaviour("BDW-URB-07", shows="action")
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize(("extra", "wrong"), [(1, False), (2, True)])
def test_vertices_that_are_fetched_fit_the_entries_of_shaded_ones(gpu: str, extra: int, wrong: bool) -> None:
    """Three elements and some more, in entries of 64 bytes."""
    element = {"valid": 1, "source_element_format": 0, **{f"component_{c}_control": 1 for c in range(4)}}
    elements = [{**element, "source_element_offset": 16 * n} for n in (0, 1, 2, *[0] * extra)]
    assert told(gpu, {"3DSTATE_VERTEX_ELEMENTS": {"vertex_element": elements}}, f"vertex elements have {48 + 16 * extra}") == wrong


@pytest.mark.behaviour("BDW-VF-04", "G45-VF-03", shows="action")
@pytest.mark.parametrize("nothing", ["vertex_count_per_instance", "instance_count"])
def test_draws_of_nothing_do_nothing(nothing: str) -> None:
    """Before one that does something: not even vertices are counted."""
    alone = OwnDraw("skl", rectangle(0, 0, 8, 8)).run()
    drawn = OwnDraw("skl", rectangle(0, 0, 8, 8), primitives=({nothing: 0}, {})).run()
    assert drawn.left() == alone.left() and drawn.register("IA_VERTICES_COUNT") == 3
