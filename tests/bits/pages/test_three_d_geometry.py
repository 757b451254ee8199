"""Vertex fetch to stream output: commands put together by the manuals' tables, taken apart by the pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from softgen.bits import catalogue
from softgen.bits.layout import GENERATIONS

TABLE = Path(__file__).with_name("three_d_geometry.examples")
HEAD = re.compile(r"(\S+)  gen ([\d.]+)  ([0-9a-f]{8})$")
LINE = re.compile(r"  (?:(\d+) +(\d+) +(\w+)|-  -   -) +(\S+)(?:  = (\S+))?$")


@dataclass
class Example:
    name: str
    gen: float
    header: int
    places: list[tuple[int, int, int]] = field(default_factory=list)  # dword, lowest bit, value
    expected: dict[str, float] = field(default_factory=dict)


def examples() -> Iterator[Example]:
    example: Example | None = None
    for line in TABLE.read_text().splitlines():
        text = line.partition("#")[0].rstrip()
        if m := HEAD.match(text):
            if example:
                yield example
            example = Example(m[1], float(m[2]), int(m[3], 16))
        elif text:
            m = LINE.match(text)
            assert m and example, f"cannot read {line!r}"
            if m[1]:
                example.places.append((int(m[1]), int(m[2]), int(m[3], 0)))
            told = m[5] or m[3]
            example.expected[m[4]] = float(told) if "." in told else int(told, 0)
    assert example
    yield example


def dwords(example: Example, count: int) -> list[int]:
    held = example.header
    for dword, low, value in example.places:
        held |= value << low + 32 * dword
    return [held >> 32 * i & 0xFFFFFFFF for i in range(count)]


def at(record: Any, path: str) -> Any:
    """'vertex_buffer.1.buffer_pitch' -> record.vertex_buffer[1].buffer_pitch"""
    for step in path.split("."):
        record = record[int(step)] if step.isdigit() else getattr(record, step)
    return record


@pytest.mark.parametrize("example", list(examples()), ids=lambda e: f"{e.name}-gen{e.gen:g}")
def test_the_manuals_table(example: Example) -> None:
    layout = catalogue.find_command(example.header, example.gen, "render")
    assert layout is not None and layout.name == example.name
    words = dwords(example, layout.length(example.header))
    record = layout.unpack(words)
    assert {path: at(record, path) for path in example.expected} == example.expected
    held = sum(word << 32 * i for i, word in enumerate(words))
    assert held & layout.reserved(len(words)) == 0


@pytest.mark.behaviour("G45-VF-01", shows="layout")
def test_g45_draws() -> None:
    """G45 2268-2330; dword 2 is the start, though the table prints the count again."""
    layout = catalogue.layout("3DPRIMITIVE", 4.5)
    words = [0x7B000004 | 1 << 15 | 5 << 10, 300, 6, 2, 1, 0xFFFFFFFF]
    draw = layout.unpack(words)
    assert (draw.vertex_access_type, draw.primitive_topology_type, draw.indirect_vertex_count) == (1, 5, 0)
    assert (draw.vertex_count_per_instance, draw.start_vertex_location, draw.instance_count) == (300, 6, 2)
    assert (draw.start_instance_location, draw.base_vertex_location) == (1, -1)
    indirect = layout.unpack([0x7B000004 | 15 << 10 | 1 << 9, 0xABCDE000, 0, 1, 0, 0])
    assert (indirect.vertex_access_type, indirect.primitive_topology_type, indirect.indirect_vertex_count) == (0, 15, 1)
    assert indirect.vertex_count_address == 0xABCDE000
    assert catalogue.enumeration("3D_Prim_Topo_Type", 4.5)[5] == "tristrip"


@pytest.mark.behaviour("KBL-VF-21", shows="layout")
def test_an_element_record() -> None:
    """KBL 30293-30410."""
    words = [33 << 26 | 1 << 25 | 0x40 << 16 | 1 << 15 | 4095, 1 << 28 | 2 << 24 | 3 << 20 | 4 << 16]
    element = catalogue.layout("VERTEX_ELEMENT_STATE", 9).unpack(words)
    assert (element.vertex_buffer_index, element.valid, element.source_element_format) == (33, 1, 0x40)
    assert (element.edge_flag_enable, element.source_element_offset) == (1, 4095)
    controls = [getattr(element, f"component_{i}_control") for i in range(4)]
    names = catalogue.enumeration("3D_Vertex_Component_Control", 9)
    assert [names[c] for c in controls] == ["store_src", "store_0", "store_1_fp", "store_1_int"]


def test_generated_values_left_the_element_record_with_gen_8() -> None:
    """KBL 30273-30276: the VID and IID encodings are no longer available."""
    for gen in GENERATIONS:
        assert ("store_vid" in catalogue.enumeration("3D_Vertex_Component_Control", gen).values()) == (gen < 8)


UNIT_STATE = [  # (dword, lowest bit, value, name)
    (0, 6, 0x48AC6, "kernel_start_pointer"), (0, 1, 7, "grf_register_count"), (1, 31, 1, "single_program_flow"),
    (1, 18, 200, "binding_table_entry_count"), (1, 16, 1, "floating_point_mode"), (1, 13, 1, "illegal_opcode_exception_enable"),
    (1, 11, 1, "mask_stack_exception_enable"), (1, 7, 1, "software_exception_enable"), (2, 10, 5, "scratch_space_base_pointer"),
    (2, 0, 11, "per_thread_scratch_space"), (3, 25, 63, "constant_urb_entry_read_length"),
    (3, 18, 2, "constant_urb_entry_read_offset"), (3, 11, 3, "vertex_urb_entry_read_length"),
    (3, 4, 4, "vertex_urb_entry_read_offset"), (3, 0, 15, "dispatch_grf_start_register_for_urb_data"),
    (4, 25, 31, "maximum_number_of_threads"), (4, 19, 31, "urb_entry_allocation_size"), (4, 11, 64, "number_of_urb_entries"),
    (4, 10, 1, "statistics_enable"), (5, 5, 0x8480, "sampler_state_pointer"), (5, 0, 4, "sampler_count"),
]  # fmt: skip
ALIGNED = {"kernel_start_pointer": 6, "scratch_space_base_pointer": 10, "sampler_state_pointer": 5}


@pytest.mark.parametrize(("name", "own"), [
    ("VS_STATE", [(1, 17, 1, "thread_dispatch_priority"), (6, 1, 1, "vertex_cache_disable"), (6, 0, 1, "enable")]),
    ("GS_STATE", [(6, 30, 1, "reorder_enable"), (6, 29, 1, "discard_adjacency"), (6, 0, 15, "maximum_vpindex")]),
])  # fmt: skip
def test_unit_state_of_g45(name: str, own: list[tuple[int, int, int, str]]) -> None:
    """G45 2794-2951 and 3094-3264: the two blocks differ in their last dword."""
    layout, words = catalogue.layout(name, 4.5), [0] * 7
    for dword, low, value, _ in UNIT_STATE + own:
        words[dword] |= value << low
    state = layout.unpack(words)
    for _, _, value, told in UNIT_STATE + own:
        assert getattr(state, told) == value << ALIGNED.get(told, 0), told
    assert set(state._fields) == {told for *_, told in UNIT_STATE + own}


def test_fields_in_pieces() -> None:
    """From gen 9 on the first register has more bits than there was room for beside it (public: Mesa genxml gen90)."""
    assert catalogue.layout("3DSTATE_HS", 9).unpack([0] * 7 + [1 << 28 | 3 << 19, 0]).dispatch_grf_start_register_for_urb_data == 32 + 3
    assert catalogue.layout("3DSTATE_GS", 9).unpack([0] * 6 + [3 << 29 | 5, 0, 0, 0]).dispatch_grf_start_register_for_urb_data == 48 + 5


def test_sizes_where_only_ends_are_given() -> None:
    buffer = catalogue.layout("VERTEX_BUFFER_STATE", 7).unpack([0, 0x1000, 0x13FF, 0])
    assert buffer.buffer_size == 0x400
    assert catalogue.layout("3DSTATE_INDEX_BUFFER", 7.5).unpack([0x780A0001, 0x1000, 0x1FFF]).buffer_size == 0x1000
    assert catalogue.layout("3DSTATE_SO_BUFFER", 7).unpack([0, 0, 0x1000, 0x1400]).surface_bytes == 0x400
    assert catalogue.layout("3DSTATE_BINDING_TABLE_POOL_ALLOC", 7.5).unpack([0, 0x1000, 0x3000]).binding_table_pool_bytes == 0x2000
    assert catalogue.layout("3DSTATE_BINDING_TABLE_POINTERS_VS", 11).unpack([0, 0x20]).pool_offset == 0x100


def test_a_draw_of_gen_11_may_carry_three_values_more() -> None:
    layout = catalogue.find_command(0x7B000805, 11, "render")
    assert layout is not None and layout.name == "3DPRIMITIVE"
    assert layout.unpack([0x7B000005, 0, 3, 0, 1, 0, 0]).extended_parameter == ()
    extended = layout.unpack([0x7B000808, 0, 3, 0, 1, 0, 0, 7, 8, 9])
    assert extended.extended_parameters_present == 1
    assert [p.value for p in extended.extended_parameter] == [7, 8, 9]


STAGE = (
    "kernel_start_pointer", "sampler_count", "binding_table_entry_count", "floating_point_mode", "scratch_space_base_pointer",
    "per_thread_scratch_space", "dispatch_grf_start_register_for_urb_data", "maximum_number_of_threads", "statistics_enable",
)  # fmt: skip


@pytest.mark.parametrize("stage", ["VS", "HS", "DS", "GS"])
def test_shader_stages_have_one_face(stage: str) -> None:
    for gen in GENERATIONS:
        if gen < 7 and stage in ("HS", "DS"):
            continue
        layout = catalogue.layout(f"{stage}_STATE" if gen < 7 else f"3DSTATE_{stage}", gen)
        assert set(STAGE) <= {f.name for f in layout.fields}
        kernel = layout.field("kernel_start_pointer").type
        assert (kernel.name, kernel.base, kernel.target) == ("address", "general" if gen < 7 else "instruction", "kernel")


@pytest.mark.parametrize("name", [
    "3DSTATE_VS", "3DSTATE_VERTEX_BUFFERS", "3DPRIMITIVE", "3DSTATE_URB_VS", "3DSTATE_CONSTANT_VS", "3DSTATE_CLIP", "3DSTATE_SF",
    "3DSTATE_VIEWPORT_STATE_POINTERS_SF_CLIP", "3DSTATE_SCISSOR_STATE_POINTERS", "3DSTATE_MULTISAMPLE", "3DSTATE_RASTER",
    "3DSTATE_DRAWING_RECTANGLE", "3DSTATE_SBE", "3DSTATE_SAMPLE_PATTERN", "PIPE_CONTROL", "STATE_BASE_ADDRESS",
])  # fmt: skip
def test_the_position_only_streamer_takes_them(name: str) -> None:
    """ICL 500-557; it takes nothing of the later shaders."""
    assert "position_only" in catalogue.layout(name, 11).engines
    assert "position_only" not in catalogue.layout("3DSTATE_GS", 11).engines
