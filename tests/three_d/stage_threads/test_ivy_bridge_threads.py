"""Threads of Ivy Bridge as draws start them: their channels, what state sets in cr0, and that registers and code are their own."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from softgen.eu.text import dialect
from tests.three_d.gen7_draw import Gen7Draw
from tests.three_d.own_draw import CODE, POINTS, PS_CODE, TARGET_WRITE, Drawn, box, pixel_shader, rectangle, send, vertex

ENGINES = ["reference", "t0", "t1"]
URB, DATA_PORT = 6, 10
IMMEDIATE = 12  # byte of an instruction
VERTEX_SHADER = {"enable": 1, "dispatch_grf_start_register_for_urb_data": 2, "vertex_urb_entry_read_length": 2,
                 "maximum_number_of_threads": 35}  # fmt: skip
UNTYPED_WRITE = 13 << 14 | 2 << 12 | 14 << 8  # SIMD8, red alone
RAW = {"surface_type": 4, "surface_format": 0x1FF, "width": 0x7F, "height": 0x1F}


def all_channels(text: str, width: int = 8) -> str:
    return f"{text} {{ align1 WE_all { {1: '1N', 8: '1Q', 16: '1H'}[width] } }};"


def vertex_shader(before: str = "", attribute: str = "g4<8,8,1>") -> str:
    """Two vertices of a thread: header, position and an attribute, interleaved in one message (public: Mesa's vec4 shaders)."""
    lines = [before, all_channels("mov(8) g118<1>UD g0<8,8,1>UD"), all_channels("or(1) g118.5<1>UD g118.5<0,1,0>UD 0x0000ff00UD", 1),
             *(all_channels(f"mov(8) g{119 + n}<1>UD {source}UD") for n, source in enumerate(("g2<8,8,1>", "g3<8,8,1>", attribute))),
             send(1 << 19 | 1 << 15 | 1 << 14, 4, source=118, target=URB, opcode="send")]  # fmt: skip
    return "\n".join(line for line in lines if line)


def points(count: int, state: dict[str, Any], vs: str, engine: str) -> Drawn:
    """Point n is the pixel (n, 0)."""
    fields = {"3DSTATE_VS": VERTEX_SHADER, "3DSTATE_URB_VS": {"urb_starting_address": 4, "number_of_urb_entries": 64}, **state}
    return Gen7Draw("ivb", [vertex(n + 0.5, 0.5, attribute=(2 + n, 3, 4, 5)) for n in range(count)], fields, vs=vs,
                    format="R32G32B32A32_UINT", topology=POINTS).run(engine)  # fmt: skip


def row(drawn: Drawn, count: int) -> list[list[int]]:
    return [[int(value) for value in pixel] for pixel in drawn.texels(np.uint32)[0, :count]]


RAW_PS = pixel_shader().replace("F ", "UD ")
MASKS = "mov(8) g4<1>UD sr0.2<0,1,0>UD { align1 WE_all 1Q };"


@pytest.mark.behaviour("EU-123", "EU-120", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_threads_of_vertices_have_eight_channels_or_four(count: int, engine: str) -> None:
    """IVB 1369-1373, 1458-1467: a vertex in each half, components side by side; the last of an odd number has mask 0x000F."""
    drawn = points(count, {}, vertex_shader(MASKS), engine)
    assert [pixel[0] for pixel in row(drawn, count)] == [0xFF if n // 2 * 2 + 1 < count else 0x0F for n in range(count)]


@pytest.mark.behaviour("EU-123", "EU-120", shows="action")
@pytest.mark.parametrize("engine", ENGINES)
def test_what_a_thread_of_two_vertices_does_to_components(engine: str) -> None:
    """add.xyz: each vertex has its own, w stays; r4 has the attributes of both vertices, (x y z w) (x y z w)."""
    add = "add(8) g4<1>.xyzUD g4<4>.xyzwUD 0x00000064UD { align16 1Q };"
    bits = [struct.unpack("<I", struct.pack("<f", n))[0] for n in range(6)]
    found = row(points(3, {}, vertex_shader(add), engine), 3)
    assert found == [[bits[2 + n] + 100, bits[3] + 100, bits[4] + 100, bits[5]] for n in range(3)]


@pytest.mark.behaviour("EU-200", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("field", "bit"), [("illegal_opcode_exception_enable", 12), ("software_exception_enable", 13), ("", None)])
def test_state_of_vertices_enables_exceptions(field: str, bit: int | None, engine: str) -> None:
    """IVB 2472-2503; the breakpoint's, of which no state speaks, is off."""
    unit = {**VERTEX_SHADER, field: 1} if field else VERTEX_SHADER
    drawn = points(1, {"3DSTATE_VS": unit}, vertex_shader(all_channels("mov(8) g4<1>UD cr0.1<0,1,0>UD")), engine)
    assert row(drawn, 1)[0][0] == (0 if bit is None else 1 << bit)


# -- pixels ----------------------------------------------------------------------------------------------------------------


def wide(before: str, *colors: str) -> str:
    """Sixteen pixels: each colour takes a pair of registers."""
    moves = [f"mov(16) g{112 + 2 * n}<1>UD {source}UD {{ align1 WE_all 1H }};" for n, source in enumerate(colors)]
    return "\n".join([before, *moves, send(TARGET_WRITE, 8, source=112).replace("sendc(8)", "sendc(16)").replace("1Q", "1H")])


@pytest.mark.behaviour("EU-127", "EU-120", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("right", "bottom"), [(2, 2), (4, 2), (2, 4), (6, 2), (4, 4), (8, 4), (3, 1)])
def test_channels_of_subspans_that_are_not_there_are_off(right: int, bottom: int, engine: str) -> None:
    """IVB 1531-1536: four subspans of a thread of sixteen pixels, each four bits of the dispatch mask; a subspan that is there has a pixel
    at least, one that is not has none. sr0.3 has whole subspans."""
    unit = {"8_pixel_dispatch_enable": 0, "16_pixel_dispatch_enable": 1}
    state = {"3DSTATE_PS": unit}
    kernel = wide("", "sr0.2<0,1,0>", "sr0.3<0,1,0>", "g1.2<0,1,0>", "g1.3<0,1,0>")
    drawn = Gen7Draw("ivb", rectangle(0, 0, right, bottom), state, ps=kernel, format="R32G32B32A32_UINT").run(engine)
    assert drawn.lit == box(0, 0, right, bottom)
    texels = drawn.texels(np.uint32)
    seen: dict[tuple[int, ...], set[tuple[int, int]]] = {}
    for x, y in drawn.lit:
        seen.setdefault(tuple(int(value) for value in texels[y, x]), set()).add((x, y))
    subspans = {(x // 2, y // 2) for x, y in drawn.lit}
    assert sum(len({(x // 2, y // 2) for x, y in pixels}) for pixels in seen.values()) == len(subspans)
    for (dispatched, vector, *_), pixels in seen.items():
        groups = [dispatched >> 4 * n & 0xF for n in range(8)]
        held = len({(x // 2, y // 2) for x, y in pixels})
        assert held <= 4 and all(groups[:held]) and not any(groups[held:]) and vector == (1 << 4 * held) - 1


@pytest.mark.behaviour("EU-120", shows="action")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("width", [8, 16])
def test_pixels_are_a_channel_each_and_components_registers(width: int, engine: str) -> None:
    """IVB 1372-1373: the mask of a whole thread, and a colour whose components come from four registers, or pairs of them."""
    lane = "mov(8) g60<1>UW 0x76543210V { align1 WE_all 1Q };\nadd(8) g60.8<1>UW g60<8,8,1>UW 0x0008UW { align1 WE_all 1Q };"
    before = "\n".join([lane, all_channels(f"mov({width}) g70<1>UD g60<8,8,1>UW", width),
                        all_channels(f"add({width}) g72<1>UD g70<8,8,1>UD 0x00000064UD", width)])  # fmt: skip
    colors = "g70<8,8,1>", "g72<8,8,1>", "g70<8,8,1>", "sr0.2<0,1,0>"
    kernel = wide(before, *colors) if width == 16 else pixel_shader(colors, before).replace("F ", "UD ")
    unit = {"8_pixel_dispatch_enable": int(width == 8), "16_pixel_dispatch_enable": int(width == 16)}
    state = {"3DSTATE_PS": unit}
    drawn = Gen7Draw("ivb", rectangle(0, 0, 8, 4), state, ps=kernel, format="R32G32B32A32_UINT").run(engine)
    texels = drawn.texels(np.uint32)[:4, :8].reshape(-1, 4)
    assert set(texels[:, 3].tolist()) == {(1 << width) - 1}
    assert sorted(texels[:, 0].tolist()) == sorted(list(range(width)) * (32 // width)) and (texels[:, 1] == texels[:, 0] + 100).all()


@pytest.mark.behaviour("EU-200", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("field", "bit"), [("illegal_opcode_exception_enable", 12), ("software_exception_enable", 13),
                                            ("mask_stack_exception_enable", 11), ("", None)])  # fmt: skip
def test_state_of_pixels_enables_exceptions(field: str, bit: int | None, engine: str) -> None:
    state = {"3DSTATE_PS": {field: 1} if field else {}}
    kernel = pixel_shader(["cr0.1<0,1,0>"] * 4).replace("F ", "UD ")
    drawn = Gen7Draw("ivb", rectangle(0, 0, 2, 2), state, ps=kernel, format="R32G32B32A32_UINT").run(engine)
    assert drawn.texels(np.uint32)[0, 0].tolist() == [0 if bit is None else 1 << bit] * 4


# -- registers and code ----------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("EU-21", "EU-133", shows="action")
@pytest.mark.parametrize(("engine", "threads"), [("reference", 1), ("t0", 1), ("t1", 1), ("t1", 3)])
def test_a_thread_finds_nothing_of_another_in_its_registers(engine: str, threads: int) -> None:
    """IVB 36-37, 1601-1603: each adds to a general register, an address register, a flag and an accumulator, and shows them."""
    first = "\n".join(all_channels(text) for text in (
        "add(8) g90<1>UD g90<8,8,1>UD 0x00000005UD", "add(8) g91<1>UD acc0<8,8,1>UD 0x00000006UD", "mov(8) acc0<1>UD g91<8,8,1>UD",
        "add(8) a0<1>UW a0<8,8,1>UW 0x0007UW", "mov(8) g92<1>UD a0<8,8,1>UW", "add(1) f0.1<1>UW f0.1<0,1,0>UW 0x0008UW",
        "mov(8) g93<1>UD f0.1<0,1,0>UW", "mov(8) g4<1>UD 0x00000009UD"))
    first = first.replace("0x0008UW { align1 WE_all 1Q", "0x0008UW { align1 WE_all 1N")
    kernel = pixel_shader([f"g{number}<8,8,1>" for number in (90, 91, 92, 93)], first).replace("F ", "UD ")
    made = Gen7Draw("ivb", rectangle(0, 0, 16, 16), ps=kernel, format="R32G32B32A32_UINT", primitives=({}, {}))
    drawn = made.run(engine, threads)
    assert set(map(tuple, drawn.texels(np.uint32).reshape(-1, 4).tolist())) == {(5, 6, 7, 8)}


@pytest.mark.behaviour("EU-22", shows="action")
@pytest.mark.parametrize("engine", ENGINES)
def test_threads_that_write_over_their_code_execute_what_was_there(engine: str) -> None:
    """IVB 1280: the immediate of the first instruction is overwritten in memory. No thread of this draw sees it; after the caches of
    instructions have been invalidated, those of the next draw do."""
    lines = [*map(all_channels, ("mov(8) g62<1>UD 0x0000002aUD", "mov(8) g60<1>UD 0x0000000cUD", "mov(8) g61<1>UD 0x00000063UD")),
             send(UNTYPED_WRITE | 1, 2, source=60, eot=False, target=DATA_PORT, opcode="send")]  # fmt: skip
    kernel = pixel_shader(["g62<8,8,1>"] * 4, "\n".join(lines)).replace("F ", "UD ")
    assert dialect.read(kernel, 7.0, "mesa")[IMMEDIATE : IMMEDIATE + 4] == struct.pack("<I", 0x2A)
    made = Gen7Draw("ivb", rectangle(0, 0, 8, 8), ps=kernel, format="R32G32B32A32_UINT",
                    surfaces=[{**RAW, "surface_base_address": CODE + PS_CODE}])  # fmt: skip
    drawn = made.run(engine)
    assert set(drawn.texels(np.uint32)[:8, :8].reshape(-1).tolist()) == {0x2A}
    assert drawn.space.read(CODE + PS_CODE + IMMEDIATE, 4) == struct.pack("<I", 0x63)
    invalidate = made.pack("PIPE_CONTROL", instruction_cache_invalidate_enable=1, command_streamer_stall_enable=1)
    made.primitives, made.between = ({}, {}), [invalidate]
    assert set(made.run(engine).texels(np.uint32)[:8, :8].reshape(-1).tolist()) == {0x63}
