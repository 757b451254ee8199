"""Surfaces and samplers that only some draws of a program read: they are read where their state is then, and once one draw has read them,
changes are noticed as those of all others."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from softgen.bits.catalogue import layout
from tests.three_d.own_draw import DATA, DYNAMIC, NUMBER, SURFACES, TABLE, OwnDraw, move, pixel_shader, rectangle

READ = 0x01 << 14 | 2 << 12 | 14 << 8 | 1 << 20 | 1 << 25  # SIMD8, red alone; a register there and one back
PLACES = [DATA, DATA + 0x2000, DATA + 0x4000]
HELD = {place: struct.pack("<f", value) for place, value in zip(PLACES, (3.0, 5.0, 7.0), strict=True)}


def reads_what_it_is_told() -> str:
    """The first float of the surface whose number is the first component of the attribute: no code says which."""
    lines = [move("g20", "0x00000000", "UD"), "mov(1) g30<1>UD g4.3<0,1,0>F { align1 WE_all 1N };",
             f"or(1) a0<1>UD g30<0,1,0>UD {READ:#010x}UD {{ align1 WE_all 1N }};",
             "send(8) g21<1>UD g20<0,1,0>UD a0<0,1,0>UD 0x00000200 12 MsgDesc: indirect { align1 1Q };"]  # fmt: skip
    return pixel_shader(["g21<8,8,1>"] * 4, before="\n".join(lines))


def buffer(at: int) -> dict[str, Any]:
    return {"surface_type": 4, "surface_format": 0x1FF, "surface_base_address": at, "width": 0x7F, "height": 7, "depth": 0,
            "surface_pitch": 0}  # fmt: skip


@pytest.mark.covering(1)
@pytest.mark.parametrize("gpu", ["bdw", "kbl", "icl"])
@pytest.mark.parametrize("engine", ["t0", "t1"])
@pytest.mark.parametrize("numbers", [(1, 1, 2, 2), (1, 2, 1, 2), (2, 2, 1, 2), (1, 1, 1, 2)])
def test_a_surface_that_a_later_draw_reads_first(gpu: str, engine: str, numbers: tuple[int, ...]) -> None:
    """Four draws, side by side; before the last, the state of the second surface is that of another buffer."""
    corners = [corner for at, number in enumerate(numbers) for corner in rectangle(4 * at, 0, 4 * at + 4, 4, attribute=(number, 0, 0, 0))]
    draws = [{"vertex_count_per_instance": 3, "start_vertex_location": 3 * at, "instance_count": 1} for at in range(4)]
    surfaces = [buffer(place) for place in PLACES[:2]]
    made = OwnDraw(gpu, corners, ps=reads_what_it_is_told(), surfaces=surfaces, primitives=draws[:3], patch=HELD)
    base = layout("RENDER_SURFACE_STATE", made.gen).field("surface_base_address").low // 8
    made.after = [made.pack("MI_STORE_DATA_IMM", address=SURFACES + 2 * 0x40 + base, immediate_data=PLACES[2]),
                  made.pack("3DPRIMITIVE", **draws[3])]  # fmt: skip
    np.testing.assert_array_equal(made.run(engine).pixels[0, ::4, 0], [{1: 3.0, 2: 5.0}[number] for number in numbers[:3]] + [7.0])


@pytest.mark.parametrize("pool", [0, 1])
@pytest.mark.parametrize("gpu", ["bdw", "kbl", "icl"])
@pytest.mark.parametrize("numbers", [(1, 1, 2, 2), (1, 2, 1, 2), (2, 1, 2, 1)])
def test_a_surface_that_a_later_draw_reads_first_is_that_of_the_table_then(gpu: str, numbers: tuple[int, ...], pool: int) -> None:
    """The table moves after the first draw: its first entries are the same there, and the last leads to another buffer. A pointer counts
    32 bytes from the surface state base, or 64 from a pool of tables, 256 on Gen11."""
    corners = [corner for at, number in enumerate(numbers) for corner in rectangle(4 * at, 0, 4 * at + 4, 4, attribute=(number, 0, 0, 0))]
    draws = [{"vertex_count_per_instance": 3, "start_vertex_location": 3 * at, "instance_count": 1} for at in range(4)]
    shift, moved = pool * (3 if gpu == "icl" else 1), struct.pack("<3I", 0, 0x40, 3 * 0x40)
    tables = [{"pointer_to_binding_table": at >> shift} for at in (TABLE, TABLE + 0x500)]
    state = {"3DSTATE_BINDING_TABLE_POINTERS_PS": tables[0], "3DSTATE_BINDING_TABLE_POOL_ALLOC": {
        "binding_table_pool_base_address": SURFACES, "binding_table_pool_enable": pool, "binding_table_pool_buffer_size": 16}}  # fmt: skip
    made = OwnDraw(gpu, corners, state, ps=reads_what_it_is_told(), surfaces=[buffer(place) for place in PLACES], primitives=draws,
                   patch={**HELD, SURFACES + TABLE + 0x500: moved})  # fmt: skip
    made.between = [made.pack("3DSTATE_BINDING_TABLE_POINTERS_PS", **tables[1])]
    wanted = [{1: 3.0, 2: 7.0 if at else 5.0}[number] for at, number in enumerate(numbers)]
    np.testing.assert_array_equal(made.run().pixels[0, ::4, 0], wanted)


SAMPLE = 1 | 1 << 17 | 4 << 20 | 2 << 25  # surface 1, SIMD8: two registers there and four back
OLD, NEW = 0x2000, 0x3000  # offsets of samplers from the dynamic state base
WRAP, CLAMP = 0, 2


def samples_as_it_is_told() -> str:
    """A texel beyond the right edge, by the sampler whose number, times 256, is the first component of the attribute."""
    lines = [move("g20", "0x3fa00000"), move("g21", "0x3f000000"), "mov(1) g30<1>UD g4.3<0,1,0>F { align1 WE_all 1N };",
             f"or(1) a0<1>UD g30<0,1,0>UD {SAMPLE:#010x}UD {{ align1 WE_all 1N }};",
             "send(8) g22<1>UD g20<0,1,0>UD a0<0,1,0>UD 0x00000200 2 MsgDesc: indirect { align1 1Q };"]  # fmt: skip
    return pixel_shader(["g22<8,8,1>"] * 4, before="\n".join(lines))


@pytest.mark.behaviour("ICL-TH-14", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("gpu", ["bdw", "kbl", "icl"])
@pytest.mark.parametrize("engine", ["t0", "t1"])
@pytest.mark.parametrize("numbers", [(0, 0, 1, 1), (0, 1, 0, 1), (0, 1, 1, 0)])
def test_a_sampler_that_a_later_draw_reads_first_is_where_samplers_are_then(gpu: str, engine: str, numbers: tuple[int, ...]) -> None:
    """They move after the first draw: the first of them is the same there, and the second wraps coordinates where the old one clamps."""
    corners = [corner for at, number in enumerate(numbers)
               for corner in rectangle(4 * at, 0, 4 * at + 4, 4, attribute=(256 * number, 0, 0, 0))]  # fmt: skip
    draws = [{"vertex_count_per_instance": 3, "start_vertex_location": 3 * at, "instance_count": 1} for at in range(4)]
    texture = {"surface_type": 1, "surface_format": NUMBER["R32_FLOAT"], "surface_base_address": DATA, "width": 1, "height": 0,
               "surface_pitch": 63}  # fmt: skip
    pointers = "3DSTATE_SAMPLER_STATE_POINTERS_PS"
    made = OwnDraw(gpu, corners, {pointers: {"pointer_to_sampler_state": OLD}}, ps=samples_as_it_is_told(), surfaces=[texture],
                   primitives=draws)  # fmt: skip
    made.between = [made.pack(pointers, pointer_to_sampler_state=NEW)]
    made.patch = {DATA: struct.pack("<2f", 3.0, 5.0)} | {
        DYNAMIC + at + 16 * n: struct.pack("<4I", *made.pack("SAMPLER_STATE", tcx_address_control_mode=mode, tcy_address_control_mode=mode))
        for at, modes in ((OLD, (CLAMP, CLAMP)), (NEW, (CLAMP, WRAP))) for n, mode in enumerate(modes)}  # fmt: skip
    np.testing.assert_array_equal(made.run(engine).pixels[0, ::4, 0], [{0: 5.0, 1: 3.0}[number] for number in numbers])
