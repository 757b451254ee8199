"""Stages of Ice Lake's 3D pipeline: what vertex fetch makes of memory, how constants come, whose vertices the rasterizer gets."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from tests.three_d.own_draw import CONSTANTS, OwnDraw, box, pixel_shader, rectangle
from tests.three_d.stage_threads.probes import probed
from tests.three_d.stream_out.streaming import Buffer, Declaration, Streaming

ENGINES = ["reference", "t0", "t1"]


@pytest.mark.behaviour("ICL-3D-03", shows="action")
@pytest.mark.parametrize("engine", ENGINES)
def test_vertex_fetch_reformats_into_entries(engine: str) -> None:
    """Bytes and halves become floats, in the entry's slots; primitives come as lists of references: a strip's triangles have vertices in
    common, which stream output shows (ICL 2619-2624)."""
    made = Streaming("icl", {0: [Declaration(0, 1, 0xF), Declaration(0, 2, 0xF)]}, {0: Buffer(32, 0x400)}, topology=5)
    raw = b"".join(struct.pack("<4e4B", n, 1 + n % 2, 0.5, 1, 255, 51 * n, 0, 102) + bytes(36) for n in range(4))
    made.vertices = [raw[48 * n : 48 * n + 48] for n in range(4)]
    elements = [{"valid": 1, "source_element_format": 0x84, "source_element_offset": 0, **{f"component_{c}_control": 2 for c in range(4)}},
                {"valid": 1, "source_element_format": 0x84, "source_element_offset": 0, **{f"component_{c}_control": 1 for c in range(4)}},
                {"valid": 1, "source_element_format": 0xC7, "source_element_offset": 8, **{f"component_{c}_control": 1 for c in range(4)}}]
    made.state = {"3DSTATE_VERTEX_ELEMENTS": {"vertex_element": elements}}
    found = made.run(engine).words(0)[:48].view(np.float32).reshape(6, 8)
    order = [0, 1, 2, 1, 3, 2]
    for row, number in zip(found, order, strict=True):
        np.testing.assert_allclose(row, [number, 1 + number % 2, 0.5, 1, 1.0, np.float32(0.2) * number, 0, 0.4], rtol=1e-6)


@pytest.mark.behaviour("ICL-3D-07", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("starts", "lengths"), [
    ((0, 0, 0, 0), (1, 2, 3, 1)), ((32, 32, 0, 32), (1, 2, 3, 1)), ((0, 32, 32, 0), (2, 1, 2, 3)), ((32, 0, 32, 0), (3, 1, 0, 1)),
])  # fmt: skip
def test_constants_have_no_gaps_in_registers(starts: tuple[int, ...], lengths: tuple[int, ...], engine: str) -> None:
    """Buffers that begin at or fill half a line of 64 bytes: what the URB has between them is gone in registers (ICL 2718-2727)."""
    lines, held = [0x1000 * (n + 1) + start for n, start in enumerate(starts)], {}
    expected = []
    for number, (at, length) in enumerate(zip(lines, lengths, strict=True)):
        values = [0x100 * (number + 1) + n for n in range(8 * length)]
        expected += [values[8 * n : 8 * n + 8] for n in range(length)]
        held[CONSTANTS + at - 32] = b"\xee" * 32 + struct.pack(f"<{len(values)}I", *values) + b"\xdd" * 32
    constants = {"read_length": [{"length": n} for n in lengths], "constant_buffer": [{"pointer": CONSTANTS + at} for at in lines]}
    disable = OwnDraw("icl", []).pack("MI_LOAD_REGISTER_IMM", entry=[{"register_offset": 0x20D8, "data_dword": 0x00100010}])
    found = probed("VS", [f"g{2 + n}<8,8,1>" for n in range(len(expected))], state={"3DSTATE_CONSTANT_VS": constants}, memory=held,
                   before=[disable], engine=engine).found  # fmt: skip
    assert found == expected


@pytest.mark.behaviour("ICL-3D-02", shows="action")
@pytest.mark.parametrize("engine", ENGINES)
def test_constants_of_a_draw_are_those_in_memory_then(engine: str) -> None:
    """The streamer copies them from memory; a command that writes memory between draws changes the later one's (ICL 2611-2617)."""
    state: dict[str, Any] = {
        "3DSTATE_PS": {"push_constant_enable": 1, "dispatch_grf_start_register_for_constant_setup_data_0": 3},
        "3DSTATE_CONSTANT_PS": {"read_length": [{"length": 0}] * 3 + [{"length": 1}],
                                "constant_buffer": [{"pointer": 0}] * 3 + [{"pointer": CONSTANTS}]}}  # fmt: skip
    made = OwnDraw("icl", [*rectangle(0, 0, 4, 4), *rectangle(8, 0, 12, 4)], state, ps=pixel_shader([f"g3.{n}<0,1,0>" for n in range(4)]),
                   primitives=[{"vertex_count_per_instance": 3}, {"vertex_count_per_instance": 3, "start_vertex_location": 3}],
                   patch={CONSTANTS: struct.pack("<4f", 1, 2, 3, 4)})  # fmt: skip
    word = struct.unpack("<I", struct.pack("<f", 9.0))[0]
    write = {"post_sync_operation": 1, "command_streamer_stall_enable": 1, "address": CONSTANTS, "immediate_data": word}
    made.between = [made.pack("PIPE_CONTROL", **write), made.pack("3DSTATE_CONSTANT_PS", **state["3DSTATE_CONSTANT_PS"])]
    drawn = made.run(engine)
    assert drawn.pixels[1, 1].tolist() == [1, 2, 3, 4] and drawn.pixels[1, 10].tolist() == [9, 0, 3, 4]
    assert drawn.lit == box(0, 0, 4, 4) | box(8, 0, 12, 4)
