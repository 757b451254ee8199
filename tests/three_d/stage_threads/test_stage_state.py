"""State that the stages with threads have in common: kernels, handles, what is pushed, what goes on to the rasterizer, counters."""

from __future__ import annotations

import struct

import pytest

from softgen.bits.catalogue import layout
from softgen.errors import GpuFault
from tests.three_d.geometry_shader.shading import SIMD8, Shading
from tests.three_d.own_draw import (
    CODE,
    CONSTANTS,
    DYNAMIC,
    TARGET_WRITE,
    OwnDraw,
    box,
    rectangle,
    send,
    vertex,
)
from tests.three_d.stage_threads.probes import DATA_PORT_1, FOUND, STAGES, WRITE, always, binding, code, probe, probed
from tests.three_d.test_own_draw import PASS_VERTICES, VERTEX_SHADER

ENGINES = ["reference", "t0", "t1"]
SIMD16_REPLICATED = 1 << 8
ATOMIC_INCREMENT = 0x02 << 14 | 1 << 13 | 1 << 12 | 5 << 8  # untyped, with an answer, SIMD8


# -- kernels -----------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("ICL-TH-06", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("modes", "wide"), [((1, 0), False), ((0, 1), True), ((1, 1), True)])
def test_a_stage_with_several_kernels_runs_one_of_them(modes: tuple[int, int], wide: bool, engine: str) -> None:
    """PS has a pointer for each width; with both enabled the one for 16 pixels is another than the one for 8 (ICL 2926-2929)."""
    other = "\n".join(["mov(4) g120<1>UD 0x40400000UD { align1 WE_all 1N };",
                       send(TARGET_WRITE | SIMD16_REPLICATED, 1, source=120).replace("sendc(8)", "sendc(16)").replace("1Q", "1H")])
    at = 0x3000
    unit = {"8_pixel_dispatch_enable": modes[0], "16_pixel_dispatch_enable": modes[1], "kernel_start_pointer_2": at,
            "kernel_start_pointer_0": 0x1000 if modes[0] else at,
            "dispatch_grf_start_register_for_constant_setup_data_0": 4 if modes[0] else 6,
            "dispatch_grf_start_register_for_constant_setup_data_2": 6}  # fmt: skip
    drawn = OwnDraw("icl", rectangle(0, 0, 8, 8, attribute=(1, 2, 3, 4)), {"3DSTATE_PS": unit},
                    patch=code(other, 11, at)).run(engine)  # fmt: skip
    assert drawn.lit == box(0, 0, 8, 8) and drawn.pixels[4, 4].tolist() == ([3.0] * 4 if wide else [1, 2, 3, 4])


@pytest.mark.behaviour("ICL-TH-07", shows="action")
@pytest.mark.parametrize("engine", ENGINES)
def test_the_line_before_a_kernel_is_free(engine: str) -> None:
    """It may hold anything, and need not be mapped: the vertex shader is at the beginning of mapped memory (ICL 2931-2933)."""
    held = bytes(range(64))
    at = 0x40
    drawn = OwnDraw("icl", rectangle(0, 0, 4, 4), {"3DSTATE_VS": {**VERTEX_SHADER, "kernel_start_pointer": at}},
                    patch={CODE: held, **code(PASS_VERTICES, 11, at)}).run(engine)  # fmt: skip
    assert drawn.lit == box(0, 0, 4, 4) and drawn.space.read(CODE, 64) == held
    first = OwnDraw("icl", rectangle(0, 0, 4, 4), {"3DSTATE_VS": VERTEX_SHADER}, vs=PASS_VERTICES).run(engine)
    assert first.lit == drawn.lit
    with pytest.raises(GpuFault):
        first.space.read(CODE - 64, 64)


# -- payloads ----------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("ICL-TH-16", "ICL-TH-15", shows="action")
@pytest.mark.parametrize(("engine", "threads"), [("reference", 1), ("t0", 1), ("t1", 3)])
@pytest.mark.parametrize(("size", "most"), [(0, 3), (2, 5), (3, 16)])
def test_threads_have_scratch_space_by_their_slot(size: int, most: int, engine: str, threads: int) -> None:
    """From the base pointer on, one after another, as many as may be active: every thread has what its slot leads to (ICL 3100-3121).
    Threads take a number from a counter, and store R0.5 behind it."""
    base, count = 0x7C00, 12
    def message(bits: int, length: int, answer: int = 0, to: str = "null<1>UW") -> str:
        return send(bits | 1, length, answer, 21, to, False, DATA_PORT_1, "send").replace("1Q", "WE_all 1Q")

    lines = [always("mov", "g20<1>UW", "0x76543210V"), always("mov", "g21<1>UD", "g20<8,8,1>UW"),
             always("shl", "g21<1>UD", "g21<8,8,1>UD 0x00000002UD"),
             message(ATOMIC_INCREMENT, 1, 1, "g22<1>UD"),
             always("shl", "g22<1>UD", "g22<8,8,1>UD 0x00000005UD"), always("add", "g21<1>UD", "g21<8,8,1>UD g22<8,8,1>UD"),
             always("add", "g21<1>UD", "g21<8,8,1>UD 0x00000020UD"), always("mov", "g22<1>UD", "g0.5<0,1,0>UD"),
             message(WRITE, 2)]  # fmt: skip
    unit = {**VERTEX_SHADER, "scratch_space_base_pointer": base, "per_thread_scratch_space": size, "maximum_number_of_threads": most - 1}
    command, memory = binding(OwnDraw("icl", []), "VS")
    corners = [corner for n in range(8 * count // 3) for corner in rectangle(n % 4, 0, n % 4 + 1, 1)]
    bases = {"general_state_base_address": DYNAMIC, "general_state_base_address_modify_enable": 1}
    made = OwnDraw("icl", corners, {"3DSTATE_VS": unit, **command}, vs="\n".join([*lines, PASS_VERTICES]), patch=memory)
    made.before = [made.pack("STATE_BASE_ADDRESS", **bases)]
    drawn = made._executed(engine, threads)
    numbers = struct.unpack("<8I", drawn.space.read(FOUND, 32))
    assert numbers[0] == count
    offsets = [struct.unpack("<I", drawn.space.read(FOUND + 32 * (n + 1), 4))[0] & ~0x3FF for n in range(count)]
    assert {(offset - base) % (1024 << size) for offset in offsets} == {0}
    assert {(offset - base) // (1024 << size) for offset in offsets} <= set(range(most))


@pytest.mark.behaviour("ICL-TH-17", shows="action")
@pytest.mark.parametrize("engine", ENGINES)
def test_handles_of_vertices_are_in_the_payload_where_state_asks(engine: str) -> None:
    """Of HS, in R1 and on, one for each vertex of the patch; GS without them has data there. VS and DS cannot ask (ICL 3125-3130)."""
    hull = probed("HS", ["g1<8,8,1>"], {"include_vertex_handles": 1}, engine=engine).found[0]
    assert hull[:3] == [0, 1, 2], "entries of the three vertices"
    without = probed("GS", ["g3<8,8,1>"], {"include_vertex_handles": 0}, engine=engine)  # behind R0, handles of entries, PrimitiveIDs
    assert without.found[0] == [0] * 8, "the first component of the vertex's header"
    shown = Shading("icl", SIMD8, handles=3, unit={"dispatch_grf_start_register_for_urb_data": 6}).run(engine)
    assert shown.numbers() == list(range(6))
    fields = {stage: {field.name for field in layout(f"3DSTATE_{stage}", 11).fields} for stage in STAGES}
    assert [stage for stage in STAGES if "include_vertex_handles" in fields[stage]] == ["HS", "GS"]


@pytest.mark.behaviour("ICL-TH-18", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("start", [2, 3, 9, 31])
@pytest.mark.parametrize("units", [0, 1, 3])
def test_data_from_the_urb_starts_where_state_says(start: int, units: int, engine: str) -> None:
    """Constants, if any, then the vertices (ICL 3143-3147)."""
    held = [0x100 + n for n in range(8 * units)]
    constants = {"read_length": [{"length": n} for n in (0, 0, 0, units)],
                 "constant_buffer": [{"pointer": at} for at in (0, 0, 0, CONSTANTS)]}  # fmt: skip
    found = probed("VS", [f"g{start + n}<8,8,1>" for n in range(units + 5)], {"dispatch_grf_start_register_for_urb_data": start},
                   state={"3DSTATE_CONSTANT_VS": constants}, memory={CONSTANTS: struct.pack(f"<{len(held)}I", *held)}, engine=engine).found
    assert [value for row in found[:units] for value in row] == held
    assert [row[:3] for row in found[units + 3 : units + 5]] == [[0x3F800000] * 3, [0x40800000, 0, 0]]  # point width, x


@pytest.mark.behaviour("ICL-TH-19", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("offset", "length"), [(0, 1), (0, 2), (1, 1)])
def test_vertices_are_read_from_an_offset(offset: int, length: int, engine: str) -> None:
    """The offset counts 32 bytes, two vertex elements of 16; so does the length, of which the manual says 16 bytes (ICL 3152-3164) and
    drivers mean pairs (public Mesa brw_vec4_vs_visitor.cpp)."""
    corners = [vertex(x, y, 0.25, attribute=(5, 6, 7, 8)) for x, y in ((4, 4), (0, 4), (0, 0))]
    kinds = {"3DSTATE_VERTEX_ELEMENTS": {"vertex_element": [{"valid": 1, "source_element_format": 0, "source_element_offset": 16 * n,
             **{f"component_{c}_control": 1 for c in range(4)}} for n in range(3)]}}  # fmt: skip
    unit = {"vertex_urb_entry_read_offset": offset, "vertex_urb_entry_read_length": length}
    command, memory = binding(OwnDraw("icl", []), "VS")
    slots = [[0, 0, 0, 1.0], [4, 4, 0.25, 1.0], [5, 6, 7, 8], [0, 0, 0, 0]][2 * offset : 2 * (offset + length)]
    sources = [f"g{2 + n}<8,8,1>" for n in range(8 * length)]
    drawn = OwnDraw("icl", corners, {"3DSTATE_VS": {**VERTEX_SHADER, **unit}, **command, **kinds}, vs=f"{probe(sources)}\n{PASS_VERTICES}",
                    patch=memory).run(engine)  # fmt: skip
    found = [struct.unpack("<f", drawn.space.read(FOUND + 32 * n, 4))[0] for n in range(len(sources))]
    assert found == [float(value) for slot in slots for value in slot]


# -- what goes on ------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("ICL-TH-21", shows="action")
@pytest.mark.parametrize("stage", STAGES)
def test_stages_write_buffers_whether_they_say_so_or_not(stage: str) -> None:
    """accesses_uav is for a coherency function that no register at hand turns on: ignored (ICL 3216-3228)."""
    off, on = (probed(stage, ["g0.3<0,1,0>", "0x12345678"], {"accesses_uav": value}) for value in (0, 1))
    assert off.first == on.first and off.first[1] == 0x12345678
    assert off.drawn.left() == on.drawn.left() and not on.drawn.remarks


COUNTERS = {"VS": ("VS_INVOCATION_COUNT",), "HS": ("HS_INVOCATION_COUNT",), "DS": ("DS_INVOCATION_COUNT",),
            "GS": ("GS_INVOCATION_COUNT", "GS_PRIMITIVES_COUNT")}  # fmt: skip


@pytest.mark.behaviour("ICL-TH-22", shows="action")
@pytest.mark.parametrize("stage", STAGES)
def test_stages_count_where_state_says_so(stage: str) -> None:
    """Nothing else differs (ICL 3230-3246)."""
    on, off = (probed(stage, ["g0.3<0,1,0>"], {"statistics_enable": value}).drawn for value in (1, 0))
    expected = {"VS": [3], "HS": [1], "DS": [4], "GS": [2, 6]}[stage]
    assert [on.register(name) for name in COUNTERS[stage]] == expected
    assert [off.register(name) for name in COUNTERS[stage]] == [0] * len(expected)
    ours, theirs = on.left(), off.left()
    differ = {n for n, pair in enumerate(zip(ours.pop("counts"), theirs.pop("counts"), strict=True)) if pair[0] != pair[1]}
    assert ours == theirs and len(differ) == len(expected)
