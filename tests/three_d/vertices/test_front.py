"""The front of the pipeline as a whole: chunks of captured and made-up draws, statistics, and what goes wrong."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from softgen.bits.record import Record
from softgen.command import CommandStreamer
from softgen.errors import SoftgenError
from softgen.threads.dispatcher import EngineDispatcher
from softgen.three_d.state.constants import push_constants
from softgen.three_d.state.state import DrawState
from softgen.three_d.state.unit_state import unit_state
from softgen.three_d.vertices import chunk as chunks
from softgen.three_d.vertices.front import Front
from tests.conftest import needs_shared
from tests.three_d.captured import draw_call, walk
from tests.three_d.made import call, controls, made_state
from tests.three_d.walk import Pipeline, Streamer, chunks_of

GPUS = ["g45", "ivb", "hsw", "bdw", "kbl", "icl"]
AT = 0x10000
SRC, ZERO, ONE = 1, 2, 3
TRILIST, TRISTRIP, RECTLIST = 4, 5, 15


# -- captures --------------------------------------------------------------------------------------------------------


@needs_shared("traces")
@pytest.mark.behaviour("G45-VS-01", "G45-VS-02", "BDW-VS-01", shows="action")
@pytest.mark.parametrize("gpu", GPUS)
def test_without_a_vertex_shader_fetch_writes_the_entries(gpu: str) -> None:
    """The clear of gles-tri: a rectangle with the header, the corners (twice on G45) and the colour."""
    found = []

    def draw(cs: CommandStreamer, cmd: Record) -> None:
        made = draw_call(cs, cmd)
        if not unit_state(DrawState.of(cs), "VS").enable:
            found.extend((chunk.words, chunk.corners) for chunk in chunks_of(DrawState.of(cs), made, cs).chunks)

    assert walk(f"{gpu}-gles-tri", draw) == []
    colour = 12 if gpu == "g45" else 8
    clears = [words for words, _ in found if np.allclose(words[0, colour : colour + 4], [0.2, 0.4, 0.6, 1])]
    assert len(clears) >= (3 if gpu in ("g45", "ivb", "hsw", "bdw") else 0) and all(objects == [[0, 1, 2]] for _, objects in found)
    for words, _ in found:
        right, bottom = words[0, 4:6]
        assert words[:, 4:8].tolist() == [[right, bottom, 0, 1], [0, bottom, 0, 1], [0, 0, 0, 1]]
        assert words[:, :4].tolist() == [[0] * 4] * 3
    if gpu == "g45":
        assert all((words[:, 4:8] == words[:, 8:12]).all() and (words[0, 4:6] == 64).all() for words in clears)


@needs_shared("traces")
@pytest.mark.parametrize("gpu", GPUS)
def test_a_captured_model_in_many_chunks(gpu: str) -> None:
    """The 43044 vertices of glmark2-shading: clip-space positions are those of the buffer, times the matrix among the constants."""
    seen, pipeline = 0, Pipeline()

    def draw(cs: CommandStreamer, cmd: Record) -> None:
        nonlocal seen
        state, made = DrawState.of(cs), draw_call(cs, cmd)
        if made.vertices < 1000:
            return
        if gpu == "g45":  # the interpreter executes math messages there
            made = made._replace(vertices=300)
        found_chunks = chunks_of(state, made, cs, pipeline=pipeline)
        parts, counts = [(chunk.words, chunk.corners) for chunk in found_chunks.chunks], found_chunks.counts
        buffer = state.latched.by_index("3DSTATE_VERTEX_BUFFERS")[0]
        data = state.space.read(state.address("", buffer.buffer_starting_address), made.vertices * buffer.buffer_pitch)
        positions = np.frombuffer(data, np.float32).reshape(made.vertices, -1)[:, :3]
        matrix = np.frombuffer(push_constants(state, "VS"), np.float32)[:16].reshape(4, 4)
        right = np.c_[positions, np.ones(made.vertices, np.float32)] @ matrix
        position = 8 if gpu == "g45" else 4
        found = np.concatenate([words[:, position : position + 4] for words, _ in parts])
        np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-4)
        assert len(parts) == -(-made.vertices // 12279)
        assert all(objects == [[n, n + 1, n + 2] for n in range(0, len(words), 3)] for words, objects in parts)
        assert counts["IA_PRIMITIVES_COUNT"] * 3 == counts["IA_VERTICES_COUNT"] == made.vertices
        seen += 1

    assert walk(f"{gpu}-glmark2-shading", draw, EngineDispatcher("t1", 2)) == [] and seen == 2


# -- made-up draws ---------------------------------------------------------------------------------------------------


def plain_state(gen: float = 9, vertices: int = 100, statistics: bool = True, indices: list[int] = []) -> DrawState:  # noqa: B006
    """No vertex shader; vertices have one element: the number of the vertex, and the instance."""
    data = np.arange(vertices, dtype=np.float32).tobytes()
    elements = [{"source_element_format": 0x0D8, **controls(SRC, ZERO, ONE, ZERO)}]
    commands: dict[str, Any] = {
        "3DSTATE_SF": {}, "3DSTATE_VS": {"statistics_enable": 1}, "3DSTATE_URB_VS": {},
        "3DSTATE_VF_STATISTICS": {"statistics_enable": statistics},
        "3DSTATE_VF_SGVS": {"instance_id_enable": 1, "instance_id_component_number": 1},
        "3DSTATE_INDEX_BUFFER": {"buffer_starting_address": 0x200000, "index_format": 2, "buffer_size": 4 * len(indices)},
    }  # fmt: skip
    held = {AT: data, 0x200000: struct.pack(f"<{len(indices)}I", *indices)}
    buffer = {"buffer_pitch": 4, "buffer_starting_address": AT, "buffer_size": len(data), "address_modify_enable": 1}
    return made_state(gen, held, commands, {0: buffer}, elements)


def test_long_strips_and_instances_go_on_from_chunk_to_chunk() -> None:
    """10000 vertices, twice: every triangle once and in order, whichever chunk has its vertices."""
    state, found = plain_state(vertices=10000), []
    for chunk in chunks_of(state, call(10000, TRISTRIP, instances=2)).chunks:
        words = chunk.words
        instances = words.view(np.uint32)[:, 1]
        found += [(int(instances[a]), *(int(words[n, 0]) for n in (a, b, c))) for a, b, c in chunk.corners]
        assert len(words) <= chunks.VERTICES and len(chunk.objects) <= chunks.OBJECTS
    assert found == [(instance, n, n + 1, n + 2) for instance in range(2) for n in range(9998)]


@pytest.mark.behaviour("BDW-VF-29", "G45-VF-40", "G45-VF-41", "BDW-VS-13", shows="action")
@pytest.mark.parametrize("enabled", [True, False])
def test_statistics_count_vertices_and_objects(enabled: bool) -> None:
    """Of both instances, dangling vertices included; no vertex is shaded."""
    counts = chunks_of(plain_state(statistics=enabled), call(8, TRILIST, instances=2)).counts
    found = [counts[name] for name in ("IA_VERTICES_COUNT", "IA_PRIMITIVES_COUNT", "VS_INVOCATION_COUNT")]
    assert found == ([16, 4, 0] if enabled else [0, 0, 0])


def test_a_draw_ends_at_the_time_limit() -> None:
    """Even one without a single object: a strip of cuts."""
    state = plain_state(vertices=4, indices=[7])
    state.latched["3DSTATE_VF"] = made_state(9, {AT: b""}, {"3DSTATE_VF": {"indexed_draw_cut_index_enable": 1}}).command("3DSTATE_VF")  # type: ignore[index]
    with pytest.raises(SoftgenError, match="time is up: 3DPRIMITIVE has more vertices"):
        chunks_of(state, call(0xFFFFFFF0, TRISTRIP, True), Streamer(state, timed_out=lambda: True))
    assert len(chunks_of(state, call(3, TRILIST), Streamer(state, timed_out=lambda: True)).chunks) == 1  # it was done in time


def test_chunks_of_four_sizes_are_kept() -> None:
    """One of another size takes the place of the one that was used longest ago."""
    front = Front()
    first, second, *_ = (front.chunk(size) for size in (64, 128, 192, 256))
    assert front.chunk(64) is first
    assert front.chunk(320).vertices.stride == 320
    assert front.chunk(64) is first and front.chunk(128) is not second


@pytest.mark.parametrize("elements, allocated, size", [
    (1, 0, 64), (4, 0, 64), (5, 0, 128), (8, 0, 128), (9, 0, 192), (1, 2, 192), (9, 1, 192),
])  # fmt: skip
def test_without_a_vertex_shader_entries_have_room_for_all_elements(elements: int, allocated: int, size: int) -> None:
    """In rows of 64 bytes, or more where the URB has larger entries; what nothing stores is zero."""
    data = struct.pack("<4f", 1, 2, 3, 4)
    made = [{"source_element_format": 0, **controls(SRC, SRC, SRC, SRC)}] * elements
    commands: dict[str, Any] = {"3DSTATE_VS": {}, "3DSTATE_URB_VS": {"urb_entry_allocation_size": allocated, "number_of_urb_entries": 64}}
    buffers = {0: {"buffer_pitch": 16, "buffer_starting_address": AT, "buffer_size": 16, "address_modify_enable": 1}}
    state = made_state(9, {AT: data}, {**commands, "3DSTATE_VF_TOPOLOGY": {"primitive_topology_type": 1}}, buffers, made)
    [chunk] = chunks_of(state, call(1, 1)).chunks
    assert chunk.stride == size
    assert chunk.words.tolist() == [[1, 2, 3, 4] * elements + [0] * (size // 4 - 4 * elements)]
