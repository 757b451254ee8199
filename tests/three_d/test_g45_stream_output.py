"""Stream output of Gen4.5: GS threads write vertices to buffers, with messages of the data port."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from softgen.errors import Unsupported
from tests.three_d.g45_draw import DATA, TRIANGLES, G45Draw, move, put_out, send, vertex

FORMATS = {1: 0xD8, 2: 0x85, 3: 0x40, 4: 0x00}  # R32_FLOAT and so on, by dwords of an element
ELEMENTS = 5
CORNERS = [vertex(x, y, attribute=(10 * n + 1, 10 * n + 2, 10 * n + 3, 10 * n + 4)) for n, (x, y) in enumerate(((0, 0), (8, 0), (0, 8)))]


def streaming(places: list[int], control: int = 0) -> str:
    """A GS kernel that writes the attributes of its vertices to these elements, and puts out its triangle."""
    lines = []
    for number, place in enumerate(places):
        lines += [move("g20", f"g{2 + 2 * number}<8,8,1>"), f"mov(1) g20.5<1>UD {place:#010x}UD {{ align1 nomask }};",
                  send(2, 5, 0x5000 | control << 8 | 1, 1, name="write", source="g20")]  # fmt: skip
    return "\n".join([*lines, put_out((0, 1, 2), TRIANGLES)])


def streamed(places: list[int], dwords: int, pitch: int, engine: str) -> np.ndarray:
    """What the buffer holds then, an element of `pitch` bytes after another."""
    buffer = {"surface_type": 4, "surface_format": FORMATS[dwords], "surface_base_address": DATA, "width": ELEMENTS - 1,
              "surface_pitch": pitch - 1}  # fmt: skip
    draw = G45Draw(CORNERS, state={"surfaces": {"more": [buffer]}}, gs=streaming(places), patch={DATA: struct.pack("<64f", *[-1.0] * 64)})
    drawn = draw.run(engine)
    assert len(drawn.lit) == 28, "the triangle goes on"
    return np.frombuffer(drawn.space.read(DATA, 8 * pitch), np.float32).reshape(8, pitch // 4)


@pytest.mark.behaviour("G45-GS-21", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("engine", ["reference", "t0", "t1"])
@pytest.mark.parametrize("dwords", [1, 2, 3, 4])
def test_elements_have_one_to_four_dwords(engine: str, dwords: int) -> None:
    """Between the elements of a structure nothing changes."""
    found = streamed([3, 0, 1], dwords, 24, engine)
    wanted = np.full((8, 6), -1.0, np.float32)
    for vertex_number, place in enumerate((3, 0, 1)):
        wanted[place, :dwords] = [10 * vertex_number + n for n in range(1, 5)][:dwords]
    assert (found == wanted).all()


@pytest.mark.behaviour("G45-GS-21", shows="action")
@pytest.mark.parametrize("engine", ["reference", "t0", "t1"])
def test_writes_past_the_end_of_the_buffer_are_dropped(engine: str) -> None:
    found = streamed([ELEMENTS - 1, ELEMENTS, 0xFFFFFFFF], 4, 16, engine)
    assert found[ELEMENTS - 1].tolist() == [1, 2, 3, 4] and (np.delete(found, ELEMENTS - 1, 0) == -1).all()


def test_messages_that_count_are_refused_by_name() -> None:
    with pytest.raises(Unsupported, match="streamed_vertex_buffer_write with message_control 4, which counts"):
        G45Draw(CORNERS, gs=streaming([0], 4)).run()


def counting() -> str:
    """A GS kernel that keeps the number of the next element in surface 2: reads it, writes its first vertex there, and stores one more."""
    header = [move("g25", "g0<8,8,1>"), "mov(1) g25.2<1>UD 0x00000000UD { align1 nomask };"]
    return "\n".join([
        *header, send(1, 4, 0x0002, 1, 1, False, "g30<1>UD", "read", "g25"), move("g20", "g2<8,8,1>"),
        "mov(1) g20.5<1>UD g30.0<0,1,0>UD { align1 nomask };", send(2, 5, 0x5000 | 1, 1, name="write", source="g20"),
        "add(1) g30.0<1>UD g30.0<0,1,0>UD 0x00000001UD { align1 nomask };", move("m4", "g30<8,8,1>"),
        send(3, 5, 0x0002, 2, name="write", source="g25"), put_out((0, 1, 2), TRIANGLES),
    ])  # fmt: skip


@pytest.mark.behaviour("G45-GS-22", shows="action")
@pytest.mark.parametrize("engine", ["reference", "t0", "t1"])
def test_kernels_can_keep_the_index_in_memory(engine: str) -> None:
    """As they must on Broadwater and Crestline: each thread finds what the one before has left, in this draw and in the next."""
    surfaces = [{"surface_type": 4, "surface_format": 0, "surface_base_address": DATA + at, "width": 7, "surface_pitch": 15}
                for at in (0, 256)]  # fmt: skip
    corners = [vertex(x, y, attribute=(n, 0, 0, 0)) for n in range(3) for x, y in ((0, 0), (8, 0), (0, 8))]
    draw = G45Draw(corners, state={"surfaces": {"more": surfaces}}, gs=counting(), primitives=({}, {}))
    drawn = draw.run(engine)
    assert struct.unpack("<I", drawn.space.read(DATA + 256, 4)) == (6,)
    assert np.frombuffer(drawn.space.read(DATA, 128), np.float32)[::4].tolist() == [0, 1, 2, 0, 1, 2, 0, 0]
