"""Edge flags of vertices: which edges of objects they leave, and state that says they have none."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from softgen.three_d.draw.draw_structures import DrawStruct
from softgen.three_d.state.state import DrawState
from softgen.three_d.structures import ChunkStruct, PrimitiveObject
from softgen.three_d.vertices.assembly import AssemblyState
from softgen.three_d.vertices.chunk import Chunk
from softgen.three_d.vertices.vertex_shader import VertexStage
from tests.three_d.fetched import AT, NOSTORE, ONE, SRC, ZERO, buffer, fetched, value
from tests.three_d.made import call, controls, made_state
from tests.three_d.walk import DONE, Front, chunks_of

GENS = [7, 7.5, 8, 9, 11]
ALL = 7  # edges of a triangle
FLAGS = bytes([1, 0, 7, 0])


def flagged(gen: float, first: int = SRC, warn: Any = lambda text: None, form: str = "R8_UINT", flags: bytes = FLAGS) -> DrawState:
    """Four vertices with an attribute of ones, and an edge flag whose first component is stored so."""
    flag = {"edge_flag_enable": 1, "source_element_format": value(form), **controls(first, NOSTORE, NOSTORE, NOSTORE)}
    buffers = {0: buffer(gen, len(flags), len(flags) // 4)}
    return made_state(gen, {AT: flags}, {"3DSTATE_VS": {}, "3DSTATE_URB_VS": {}}, buffers, [controls(ONE, ONE, ONE, ONE), flag], warn=warn)


def edges(state: DrawState) -> list[int]:
    """The edges that are left of two triangles, of which the second had no middle edge before."""
    chunk = Chunk(64, 64, 64)

    def give(draw: DrawStruct) -> int:
        objects = (PrimitiveObject * 2)(PrimitiveObject((0, 1, 2), 3 | ALL << 6), PrimitiveObject((3, 2, 1), 3 | 5 << 6))
        ctypes.memmove(chunk.objects.objects, objects, ctypes.sizeof(objects))
        chunk.vertices.count, chunk.objects.count = 4, 2
        ids = AssemblyState.from_address(draw.assembly)
        for vertex in range(4):
            ctypes.c_uint32.from_address(ids.vertex_ids + 4 * vertex).value = vertex
        draw.chunk = ChunkStruct(ctypes.addressof(chunk.vertices), ctypes.addressof(chunk.objects))
        return DONE

    (seen,) = chunks_of(state, call(4), stages=(lambda: Front(give, chunk), VertexStage)).chunks
    return [found.flags >> 6 & ALL for found in seen.objects]


@pytest.mark.behaviour("KBL-VF-24", shows="action")
@pytest.mark.parametrize("gen", GENS)
def test_edge_flags_are_for_the_edges_that_begin_at_their_vertices(gen: float) -> None:
    """They are not stored with the vertex."""
    state = flagged(gen)
    assert fetched(state, call(4), [0]).tolist() == [[0x3F800000] * 4]
    assert edges(state) == [0b101, 0b000]


@pytest.mark.parametrize("form, flags", [
    ("R16_UINT", b"\0\1\0\0\0\2\0\0"), ("R32_FLOAT", np.float32([0.5, 0, -1, 0]).tobytes()), ("R8_SNORM", bytes([0x80, 0, 1, 0])),
])  # fmt: skip
def test_any_source_that_is_not_zero_is_an_edge(form: str, flags: bytes) -> None:
    assert edges(flagged(9, form=form, flags=flags)) == [0b101, 0b000]


@pytest.mark.parametrize("gen", GENS)
@pytest.mark.parametrize("control", [ZERO, ONE])
def test_an_edge_flag_without_source_data_is_remarked(gen: float, control: int) -> None:
    """Component 0 must be one of the source (KBL 30358): without, edges are as without flags."""
    remarks = list[str]()
    state = flagged(gen, control, remarks.append)
    assert edges(state) == [0b111, 0b101] and fetched(state, call(4), [0]).tolist() == [[0x3F800000] * 4]
    told = "vertex element 1: an edge flag without source data; all edges are drawn"
    assert [remark for remark in remarks if "edge flag" in remark] == [told] * 2
