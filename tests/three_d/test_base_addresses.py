"""Base addresses of Ice Lake: what counts from which, what from none, and what must come again when they change."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from tests.three_d.own_draw import (
    BLEND,
    CALC,
    CC_VIEWPORT,
    CODE,
    CONSTANTS,
    DATA,
    DYNAMIC,
    NUMBER,
    PS_CODE,
    SCISSOR,
    SF_VIEWPORT,
    SIZE,
    SURFACES,
    OwnDraw,
    box,
    pixel_shader,
    rectangle,
    send,
)
from tests.three_d.stage_threads.probes import WRITE, always, probed

ENGINES = ["reference", "t0", "t1"]
BASES = ("general_state", "surface_state", "dynamic_state", "indirect_object", "instruction")
OFFSET_DISABLE = {"register_offset": 0x20D8, "data_dword": 0x00100010}  # CS_DEBUG_MODE2 has the bit that INSTPM had


def base(made: OwnDraw, **addresses: int) -> list[int]:
    fields: dict[str, int] = {}
    for name, address in addresses.items():
        fields |= {f"{name}_base_address": address, f"{name}_base_address_modify_enable": 1}
    return made.pack("STATE_BASE_ADDRESS", **fields)


class FromZero(OwnDraw):
    """A draw with a page table's first memory as well, which holds what surfaces held."""

    def memory(self) -> AddressSpace:
        space = super().memory()
        space.map(0, MemfdBuffer(SIZE))
        space.write(0, space.read(SURFACES, SIZE))
        return space


@pytest.mark.behaviour("ICL-MEM-01", "ICL-MEM-08", "ICL-CMD-03", shows="action")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("zero", [True, False])
def test_bases_are_added_to_offsets(zero: bool, engine: str) -> None:
    """A base of zero leaves the offset, which then is an address; a base without its modify enable stays (ICL 1584-1585, 1660-1698)."""
    instruction, dynamic = (CODE, DYNAMIC) if zero else (0x1000, 0x3000)  # offsets, of bases that are as much lower
    state: dict[str, Any] = {
        "3DSTATE_PS": {"kernel_start_pointer_0": PS_CODE + instruction},
        "3DSTATE_BLEND_STATE_POINTERS": {"blend_state_pointer": BLEND + dynamic, "blend_state_pointer_valid": 1},
        "3DSTATE_CC_STATE_POINTERS": {"color_calc_state_pointer": CALC + dynamic, "color_calc_state_pointer_valid": 1},
        "3DSTATE_VIEWPORT_STATE_POINTERS_CC": {"cc_viewport_pointer": CC_VIEWPORT + dynamic},
        "3DSTATE_VIEWPORT_STATE_POINTERS_SF_CLIP": {"sf_clip_viewport_pointer": SF_VIEWPORT + dynamic},
        "3DSTATE_SCISSOR_STATE_POINTERS": {"scissor_rect_pointer": SCISSOR + dynamic},
    }
    made = FromZero("icl", rectangle(0, 0, 4, 4, attribute=(1, 2, 3, 4)), state)
    lower = made.pack("STATE_BASE_ADDRESS", instruction_base_address=0x7000, general_state_base_address=0x9000)  # not enabled
    surface = {"surface_state": 0} if zero else {}
    made.before = [base(made, instruction=CODE - instruction, dynamic_state=DYNAMIC - dynamic, **surface), lower]
    drawn = made.run(engine)
    assert drawn.lit == box(0, 0, 4, 4) and drawn.pixels[1, 1].tolist() == [1, 2, 3, 4]


@pytest.mark.behaviour("ICL-MEM-02", "ICL-MEM-08", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("general", [DATA + 0x4000, DATA + 0x8000, 0])
def test_stateless_accesses_count_from_the_general_state_base(general: int, engine: str) -> None:
    """Of the data port, through no binding table (ICL 1595-1602)."""
    offset = DATA + 0x100 - general if not general else 0x100
    lines = [always("mov", "g70<1>UW", "0x76543210V"), always("mov", "g71<1>UD", "g70<8,8,1>UW"),
             always("shl", "g71<1>UD", "g71<8,8,1>UD 0x00000002UD"), always("add", "g71<1>UD", f"g71<8,8,1>UD {offset:#010x}UD"),
             always("mov", "g72<1>UD", "0x0badcafeUD"),
             send(WRITE | 0xFF, 2, source=71, eot=False, target=12, opcode="send").replace("1Q", "WE_all 1Q")]  # fmt: skip
    before = [base(OwnDraw("icl", []), general_state=general)]
    found = probed("VS", ["g0.3<0,1,0>"], engine=engine, before=before, after=lines)
    assert struct.unpack("<I", found.drawn.space.read((general or DATA) + 0x100, 4)) == (0x0BADCAFE,)


@pytest.mark.behaviour("ICL-MEM-03", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("block", ["BLEND_STATE", "COLOR_CALC_STATE", "SF_CLIP_VIEWPORT", "SCISSOR_RECT", "constants", "SAMPLER_STATE"])
def test_what_counts_from_the_dynamic_state_base(block: str, engine: str) -> None:
    """Blending, constants of colour, viewports, scissors, push constants as long as no register says otherwise, samplers and their border
    colour: a draw behind another base, where this alone is different (ICL 1604-1613)."""
    made, other = OwnDraw("icl", []), DATA + 0x4000  # a second set of dynamic state
    border = struct.pack("<4f", 7, 7, 7, 7)
    sampler = made.pack("SAMPLER_STATE", **{f"tc{axis}_address_control_mode": 4 for axis in "xyz"}, border_color_pointer=0x2040)
    lines = ["mov(8) g20<1>UD 0x40000000UD { align1 WE_all 1Q };", "mov(8) g21<1>UD 0x3f000000UD { align1 WE_all 1Q };",
             send(1 | 1 << 17, 2, 4, source=20, to="g22<1>UD", eot=False, target=2, opcode="send")]  # fmt: skip
    texture = {"surface_type": 1, "surface_format": NUMBER["R32_FLOAT"], "surface_base_address": CONSTANTS, "width": 1, "height": 0,
               "surface_pitch": 63}  # fmt: skip
    state: dict[str, Any] = {}
    more: dict[str, Any] = {}
    blocks: dict[str, tuple[int, dict[str, Any]]] = {
        "BLEND_STATE": (BLEND, {"render_target": [{"write_disable_red": 1}]}),
        "COLOR_CALC_STATE": (CALC, {"blend_constant_color_red": 0.25}),
        "SF_CLIP_VIEWPORT": (SF_VIEWPORT, {"viewport_matrix_element_m30": 4.0}),
        "SCISSOR_RECT": (SCISSOR, {"scissor_rectangle_x_max": 1, "scissor_rectangle_y_max": 3}),
    }
    if block == "COLOR_CALC_STATE":
        blend = {"color_buffer_blend_enable": 1, "source_blend_factor": 7, "source_alpha_blend_factor": 1, "destination_blend_factor": 17,
                 "destination_alpha_blend_factor": 17}  # fmt: skip
        state["BLEND_STATE"], state["COLOR_CALC_STATE"] = {"render_target": [blend]}, {"blend_constant_color_red": 0.5}
    if block == "SCISSOR_RECT":
        state["3DSTATE_RASTER"] = {"cull_mode": 1, "scissor_rectangle_enable": 1}
        state["SCISSOR_RECT"] = {"scissor_rectangle_x_max": 3, "scissor_rectangle_y_max": 3}
    if block == "SF_CLIP_VIEWPORT":
        state["3DSTATE_SF"] = {**OwnDraw.defaults["3DSTATE_SF"], "viewport_transform_enable": 1}
        state[block] = {**{f"viewport_matrix_element_m{n}{n}": 1.0 for n in range(3)}, "x_max_viewport": 15.0, "y_max_viewport": 15.0}
    if block == "constants":
        state |= {"3DSTATE_PS": {"push_constant_enable": 1, "dispatch_grf_start_register_for_constant_setup_data_0": 3},
                  "3DSTATE_CONSTANT_PS": {"read_length": [{"length": 1}] + [{"length": 0}] * 3,
                                          "constant_buffer": [{"pointer": 0x3000}] + [{"pointer": 0}] * 3}}  # fmt: skip
        more["ps"] = pixel_shader([f"g3.{n}<0,1,0>" for n in range(4)])
    if block == "SAMPLER_STATE":
        state["3DSTATE_SAMPLER_STATE_POINTERS_PS"] = {"pointer_to_sampler_state": 0x2000}
        more = {"ps": pixel_shader([f"g{22 + n}<8,8,1>" for n in range(4)], before="\n".join(lines)), "surfaces": [texture]}
    corners = [*rectangle(0, 0, 4, 4, z=0.5), *rectangle(8, 0, 12, 4, z=0.5)]
    draws = [{"vertex_count_per_instance": 3}, {"vertex_count_per_instance": 3, "start_vertex_location": 3}]
    made = OwnDraw("icl", corners, state, primitives=draws, **more)
    dynamic = bytearray(made._dynamic())
    dynamic[0x2000:0x2010], dynamic[0x2040:0x2050] = struct.pack("<4I", *sampler), struct.pack("<4f", 3, 3, 3, 3)
    dynamic[0x3000:0x3010] = struct.pack("<4f", 1, 2, 3, 4)
    first = bytes(dynamic)[:0x4000]
    if block in blocks:
        at, fields = blocks[block]
        packed = made.pack(block, **{**made.fields(block), **fields})
        dynamic[at : at + 4 * len(packed)] = struct.pack(f"<{len(packed)}I", *packed)
    dynamic[0x2040:0x2050] = border
    dynamic[0x3000:0x3010] = struct.pack("<4f", 5, 6, 7, 8)
    made.patch = {DYNAMIC: first, other: bytes(dynamic)[:0x4000]}
    made.between = [base(made, dynamic_state=other)]
    drawn = made.run(engine)
    left, right = drawn.pixels[1, 2].tolist(), drawn.pixels[1, 10].tolist()
    expected: dict[str, tuple[list[float], list[float]]] = {
        "BLEND_STATE": ([1] * 4, [0, 1, 1, 1]), "COLOR_CALC_STATE": ([0.5, 0, 0, 1], [0.25, 0, 0, 1]),
        "SCISSOR_RECT": ([1] * 4, [0] * 4), "constants": ([1, 2, 3, 4], [5, 6, 7, 8]), "SAMPLER_STATE": ([3, 0, 0, 1], [7, 0, 0, 1]),
        "SF_CLIP_VIEWPORT": ([1] * 4, [0] * 4),
    }  # fmt: skip
    if block == "SAMPLER_STATE":
        assert left[0] == 3 and right[0] == 7
        return
    if block == "COLOR_CALC_STATE":
        assert left[0] == 2 * right[0] != 0
        return
    assert (left, right) == expected[block]


@pytest.mark.behaviour("ICL-MEM-07", shows="action")
@pytest.mark.parametrize("engine", ENGINES)
def test_what_counts_from_no_base(engine: str) -> None:
    """Batches, what flushes write, vertex buffers, textures, buffers of the data port, and push constants when their offset is disabled,
    while all bases are somewhere else (ICL 1639-1658)."""
    texture = {"surface_type": 1, "surface_format": NUMBER["R32_FLOAT"], "surface_base_address": CONSTANTS + 0x40, "width": 0, "height": 0,
               "surface_pitch": 63}  # fmt: skip
    lines = ["mov(8) g20<1>UD 0x3f000000UD { align1 WE_all 1Q };", "mov(8) g21<1>UD 0x3f000000UD { align1 WE_all 1Q };",
             send(1 | 1 << 17, 2, 4, source=20, to="g22<1>UD", eot=False, target=2, opcode="send")]  # fmt: skip
    state = {"3DSTATE_PS": {"push_constant_enable": 1, "dispatch_grf_start_register_for_constant_setup_data_0": 3},
             "3DSTATE_CONSTANT_PS": {"read_length": [{"length": 1}] + [{"length": 0}] * 3,
                                     "constant_buffer": [{"pointer": CONSTANTS}] + [{"pointer": 0}] * 3}}  # fmt: skip
    shader = pixel_shader(["g3.0<0,1,0>", "g3.1<0,1,0>", "g22<8,8,1>", "g4.3<0,1,0>"], before="\n".join(lines))
    made = OwnDraw("icl", rectangle(0, 0, 4, 4, attribute=(9, 0, 0, 0)), state, ps=shader, surfaces=[texture],
                   patch={CONSTANTS: struct.pack("<2f", 5, 6), CONSTANTS + 0x40: struct.pack("<f", 7)})  # fmt: skip
    made.before = [base(made, general_state=0x70000, indirect_object=0x90000), made.pack("MI_LOAD_REGISTER_IMM", entry=[OFFSET_DISABLE])]
    made.after = [made.pack("PIPE_CONTROL", post_sync_operation=1, address=DATA + 0x80, immediate_data=0x55)]
    drawn = made.run(engine)
    assert drawn.pixels[1, 1].tolist() == [5, 6, 7, 9] and struct.unpack("<I", drawn.space.read(DATA + 0x80, 4)) == (0x55,)
    found = probed("VS", ["0x600dcafe"], engine=engine, before=[base(made, general_state=0x70000)])
    assert found.first == [0x600DCAFE]
