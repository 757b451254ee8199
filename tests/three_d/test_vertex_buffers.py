"""Vertex fetch: which bytes of vertex buffers it reads, of which vertices and instances, and what bounds that."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from softgen.errors import DecodeError, GpuFault
from softgen.three_d.state.state import DrawCall
from softgen.three_d.vertices.vertex_fetch import Destination, vertex_dwords, vertex_fetch
from tests.three_d.fetched import AT, GENS, NOSTORE, ONE, ONE_INT, R32_UINT, SRC, ZERO, buffer, dwords, fetched, value
from tests.three_d.made import call, controls, made_state

# -- buffers ---------------------------------------------------------------------------------------------------------


def uints(gen: float, count: int, draw: DrawCall, vertices: list[int], **more: Any) -> list[int]:
    """The one component of vertices in a buffer of dwords 100, 101 … of which `count` are in bounds."""
    element = {"source_element_format": R32_UINT, **controls(SRC, NOSTORE, NOSTORE, NOSTORE)}
    held = {AT: dwords(*range(100, 200))}
    state = made_state(gen, held, {}, {0: buffer(gen, 4 * count, 4, **more)}, [element])
    return [int(word) for word in fetched(state, draw, vertices)[:, 0]]


@pytest.mark.behaviour("G45-VF-06", "G45-VF-19", "BDW-VF-01", "G45-VF-08", "BDW-VF-03", shows="action")
@pytest.mark.parametrize("gen", GENS)
def test_sequential_vertices_count_from_the_start_vertex(gen: float) -> None:
    assert uints(gen, 20, call(3, start_vertex=5, base_vertex=3), [0, 1, 2]) == [105, 106, 107]


@pytest.mark.behaviour("G45-VF-07", "BDW-VF-02", "G45-VF-16", shows="action")
@pytest.mark.parametrize("gen", GENS)
def test_indexed_vertices_count_from_the_base_vertex(gen: float) -> None:
    """It is signed; an index below 0 is a very large one, beyond every buffer."""
    assert uints(gen, 20, call(3, indexed=True, start_vertex=5, base_vertex=3), [0, 1, 2]) == [103, 104, 105]
    assert uints(gen, 20, call(3, indexed=True, base_vertex=-1), [0, 1, 2]) == [0, 100, 101]


@pytest.mark.behaviour("G45-VF-15", "BDW-VF-09", "BDW-MEM-05", "KBL-VF-17", shows="action")
@pytest.mark.parametrize("gen", GENS)
def test_vertices_beyond_the_buffer_are_zero(gen: float) -> None:
    assert uints(gen, 3, call(5), [0, 1, 2, 3, 4]) == [100, 101, 102, 0, 0]


@pytest.mark.covering(1)
@pytest.mark.parametrize("gen", GENS)
@pytest.mark.parametrize("start", range(4))
def test_a_buffer_may_begin_at_any_byte(gen: float, start: int) -> None:
    """Bits above those of an address do not count."""
    element = {"source_element_format": value("R8_UINT"), **controls(SRC, ZERO, ZERO, ZERO)}
    for above in (0, 0xABCD << 48) if gen >= 8 else (0,):
        state = made_state(gen, {AT: bytes(range(20, 40))}, {}, {0: buffer(gen, 6, 1, AT + start | above)}, [element])
        assert fetched(state, call(6), list(range(6)))[:, 0].tolist() == [20 + start + n for n in range(6)]


@pytest.mark.behaviour("G45-VF-15", shows="action")
def test_max_index_0_disables_the_check() -> None:
    assert uints(4.5, 1, call(5), [0, 1, 2, 3, 4]) == [100, 101, 102, 103, 104]


@pytest.mark.behaviour("KBL-VF-19", shows="action")
@pytest.mark.parametrize("gen", [7, 7.5, 8, 9, 11])
def test_an_element_that_straddles_the_end_is_zero_as_a_whole(gen: float) -> None:
    """Other components are stored as ever."""
    element = {"source_element_format": value("R32G32_UINT"), **controls(SRC, SRC, ONE_INT, ZERO)}
    state = made_state(gen, {AT: dwords(*range(1, 9))}, {}, {0: buffer(gen, 20, 8)}, [element])
    assert fetched(state, call(3), [0, 1, 2]).tolist() == [[1, 2, 1, 0], [3, 4, 1, 0], [0, 0, 1, 0]]


@pytest.mark.parametrize("address", [AT, (1 << 32) - 40], ids=["", "across 4 GiB"])
def test_eight_vertices_in_registers_are_what_entries_are(address: int) -> None:
    """The specialised version for SIMD8 payloads, with vertices beyond the buffer, conversions and constants."""
    gen, seed = 9, np.random.default_rng(5)
    forms = ("R32G32B32_FLOAT", "R8G8B8A8_UNORM", "R16G16_SNORM", "R32G32B32A32_FLOAT")
    elements = [{"source_element_format": value(form), "source_element_offset": 4 * n, "vertex_buffer_index": n % 2, "valid": 1,
                 **controls(SRC, SRC, ZERO, ONE)} for n, form in enumerate(forms)]  # fmt: skip
    elements.append({"source_element_format": value("R32_UINT"), "valid": 1, **controls(ONE_INT, ZERO, ZERO, ZERO)})
    page, data = address & -4096, seed.bytes(0x2000)
    start = address - page
    buffers = {n: buffer(gen, 500, 28, address + 4 * n) for n in range(2)}
    state, draw = made_state(gen, {page: bytes(start) + data[start:]}, {}, buffers, elements), call(40)
    entries = Destination.entry(vertex_dwords(state, draw))
    for first in (0, 3, 13, 32):
        vertices = list(range(first, first + 8))
        registers = Destination(0, entries.dwords, 128, 32)
        plan, into = vertex_fetch(state, draw, registers), np.full((entries.dwords, 8), 0xDEADBEEF, np.uint32)
        ids, zeros = np.array(vertices, np.uint32), np.zeros(8, np.uint32)
        plan.run(ids.ctypes.data, zeros.ctypes.data, 8, into.ctypes.data, 4, 0)
        assert into.T.tolist() == fetched(state, draw, vertices).tolist()
        assert into.any()


@pytest.mark.parametrize("vertex", [0x40000000, 0x40000001, 0x80000001])
def test_vertices_in_registers_are_never_beyond_the_4_gib_of_their_buffer(vertex: int) -> None:
    """Without a last index nothing bounds the offset; the address of the host belongs to 4 GiB alone."""
    element = {"source_element_format": R32_UINT, **controls(SRC, ZERO, ZERO, ZERO)}
    state = made_state(4.5, {AT: dwords(100, 101)}, {}, {0: buffer(4.5, 4, 4)}, [element])
    ids, into = np.array([0, 1, 0, 1, 0, 1, 0, vertex], np.uint32), np.zeros((4, 8), np.uint32)
    plan = vertex_fetch(state, call(8), Destination(0, 4, 128, 32))
    for fetch in (lambda: fetched(state, call(8), [vertex]),
                  lambda: plan.run(ids.ctypes.data, ids.ctypes.data, 8, into.ctypes.data, 4, 0)):  # fmt: skip
        with pytest.raises(GpuFault, match=f"read at {AT + 4 * (vertex & 0xF):#x} in made: low half of an address in a 4 GiB part"):
            fetch()


@pytest.mark.behaviour("KBL-VF-18", shows="action")
@pytest.mark.parametrize("gen", [7, 7.5, 8, 9, 11])
def test_a_null_buffer_gives_zeros(gen: float) -> None:
    assert uints(gen, 20, call(2), [0, 1], null_vertex_buffer=1) == [0, 0]


@pytest.mark.behaviour("KBL-VF-18", shows="action")
@pytest.mark.parametrize("gen", [7, 7.5, 8, 9, 11])
def test_not_even_the_first_byte_is_in_a_buffer_without_a_size(gen: float) -> None:
    """That of a null buffer, of one whose end is its beginning, and of one that ends before it begins; of others it is."""
    element = {"source_element_format": value("R8_UINT"), **controls(SRC, NOSTORE, NOSTORE, NOSTORE)}
    ends = [] if gen >= 8 else [{"end_address": AT - 1}, {"end_address": AT - 9}]
    for size, more, found in ((64, {"null_vertex_buffer": 1}, 0), (0, {}, 0), *((64, end, 0) for end in ends), (1, {}, 100), (64, {}, 100)):
        state = made_state(gen, {AT: b"d" * 64}, {}, {0: {**buffer(gen, size, 4), **more}}, [element])
        assert fetched(state, call(), [0])[0, 0] == found


def test_an_element_of_a_buffer_that_was_never_set_is_refused() -> None:
    element = {"source_element_format": R32_UINT, "vertex_buffer_index": 7, **controls(SRC, ZERO, ZERO, ZERO)}
    with pytest.raises(DecodeError, match="vertex element 0 reads vertex buffer 7, which no command has set"):
        fetched(made_state(9, {AT: b""}, {}, {0: buffer(9, 16)}, [element]), call(), [0])


def test_memory_that_is_not_there_faults() -> None:
    element = {"source_element_format": R32_UINT, **controls(SRC, ZERO, ZERO, ZERO)}
    state = made_state(9, {AT: b""}, {}, {0: buffer(9, 0x100000, 4)}, [element])
    with pytest.raises(GpuFault, match="read at 0x11000 in made"):
        fetched(state, call(5000), [0, 1024])


# -- instances -------------------------------------------------------------------------------------------------------


def instanced(gen: float, step: int, start: int, instances: list[int]) -> list[int]:
    element = {"source_element_format": R32_UINT, **controls(SRC, NOSTORE, NOSTORE, NOSTORE)}
    own = {"buffer_access_type": 1, "instance_data_step_rate": step} if gen < 8 else {}
    state = made_state(gen, {AT: dwords(*range(100, 200))}, {}, {0: buffer(gen, 400, 4, **own)}, [element],
                       {} if gen < 8 else {0: {"instancing_enable": 1, "instance_data_step_rate": step}})  # fmt: skip
    draw = call(3, start_vertex=50, start_instance=start, instances=8)
    return [int(word) for word in fetched(state, draw, [2] * len(instances), instances)[:, 0]]


@pytest.mark.behaviour("G45-VF-17", "G45-VF-18", "BDW-VF-25", "BDW-VF-26", shows="action")
@pytest.mark.parametrize("gen", GENS)
def test_instance_data_advance_with_the_step_rate(gen: float) -> None:
    """They count from the start instance; with a step of 0 they stay there."""
    assert instanced(gen, 1, 0, [0, 1, 2, 3]) == [100, 101, 102, 103]
    assert instanced(gen, 3, 10, [0, 2, 3, 7]) == [110, 110, 111, 112]
    assert instanced(gen, 0, 10, [0, 2, 3, 7]) == [110] * 4
