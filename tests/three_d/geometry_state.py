"""Made-up state, vertices and objects for tests of CLIP, SETUP and BIN.

    state = geometry_state(9, cull_mode=3, viewport={"x_max_viewport": 63.0})
    chunk = chunk_of([vertex(-1, -1), vertex(1, -1), vertex(0, 1)], [triangle(0, 1, 2)])

Fields go to the command or block that has them on that generation.
"""

from __future__ import annotations

import ctypes
import struct
from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np

from softgen.bits import catalogue
from softgen.bits.generation import generation
from softgen.bits.record import Record
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.three_d.state.state import DrawState
from softgen.three_d.structures import PrimitiveObject, SetupRecord
from softgen.three_d.vertices.chunk import Chunk
from tests.three_d.made import no_registers
from tests.three_d.walk import pieces_of

GENERATIONS = (4.5, 7, 7.5, 8, 9, 11)
COMMANDS = ("3DSTATE_CLIP", "3DSTATE_RASTER", "3DSTATE_SF", "3DSTATE_WM", "3DSTATE_MULTISAMPLE", "3DSTATE_SBE", "3DSTATE_SBE_SWIZ",
            "3DSTATE_DRAWING_RECTANGLE", "3DSTATE_VIEWPORT_STATE_POINTERS_SF_CLIP", "3DSTATE_SCISSOR_STATE_POINTERS",
            "3DSTATE_PIPELINED_POINTERS", "3DSTATE_STREAMOUT", "3DSTATE_GLOBAL_DEPTH_OFFSET_CLAMP")  # fmt: skip
BLOCKS = {"CLIP_STATE": 0x000, "SF_STATE": 0x100, "WM_STATE": 0x200, "CLIP_VIEWPORT": 0x400, "SF_CLIP_VIEWPORT": 0x400,
          "SF_VIEWPORT": 0x1000, "SCISSOR_RECT": 0x2000}  # fmt: skip
BASE, SIZE = 0x10000, 0x4000
POINTERS = {"pointer_to_clip_state": 0x000, "pointer_to_sf_state": 0x100, "pointer_to_wm_state": 0x200, "clip_viewport_pointer": 0x400,
            "sf_viewport_pointer": 0x1000, "sf_clip_viewport_pointer": 0x400, "scissor_rect_pointer": 0x2000}  # fmt: skip
# Everything on, 64 x 64 pixels, GL's directions; in the vertex entry two slots of attributes behind the position.
DEFAULTS: dict[str, Any] = {
    **POINTERS, "clip_enable": 1, "viewport_xy_clip_test_enable": 1, "viewport_z_clip_test_enable": 1, "guardband_clip_test_enable": 1,
    "viewport_z_near_clip_test_enable": 1, "viewport_z_far_clip_test_enable": 1, "negative_w_clip_test_enable": 1,
    "user_clip_flags_must_clip_enable": 1, "force_user_clip_distance_clip_test_enable_bitmask": 1,
    "force_user_clip_distance_cull_test_enable_bitmask": 1, "cull_mode": 1, "viewport_transform_enable": 1, "line_width": 1.0,
    "point_width": 1.0, "point_width_source": 1, "minimum_point_width": 0.125, "maximum_point_width": 255.875,
    "clipped_drawing_rectangle_x_max": 8191, "clipped_drawing_rectangle_y_max": 8191, "clipper_statistics_enable": 1,
    "statistics_enable": 1, "force_vertex_urb_entry_read_length": 1, "force_vertex_urb_entry_read_offset": 1,
    "vertex_urb_entry_read_length": 1, "vertex_urb_entry_read_offset": 1, "destination_origin_horizontal_bias": 0.5,
    "destination_origin_vertical_bias": 0.5,
}  # fmt: skip
VIEWPORT: dict[str, Any] = {
    "viewport_matrix_element_m00": 32.0, "viewport_matrix_element_m11": 32.0, "viewport_matrix_element_m22": 0.5,
    "viewport_matrix_element_m30": 32.0, "viewport_matrix_element_m31": 32.0, "viewport_matrix_element_m32": 0.5,
    "x_min_clip_guardband": -8.0, "x_max_clip_guardband": 8.0, "y_min_clip_guardband": -8.0, "y_max_clip_guardband": 8.0,
    "x_min_viewport": 0.0, "x_max_viewport": 63.0, "y_min_viewport": 0.0, "y_max_viewport": 63.0,
    "scissor_rectangle_x_max": 63, "scissor_rectangle_y_max": 63,
}  # fmt: skip
EXTENT = (64, 64)
ENTRY = 128  # bytes of a vertex


class Commands(dict[str, Record]):
    def by_index(self, name: str) -> dict[int, Record]:
        return {}


def packed(name: str, gen: float, values: dict[str, Any]) -> list[int]:
    """A command or structure from those of the values that it has."""
    layout = catalogue.layout(name, gen)
    known = {field.name for field in layout.fields} | {group.name for group in layout.groups}
    return layout.pack(**{field: value for field, value in values.items() if field in known})


def geometry_state(gen: float, viewport: dict[str, Any] | None = None, viewports: Sequence[dict[str, Any]] = (),
                   commands: dict[str, dict[str, Any]] | None = None, **fields: Any) -> DrawState:  # fmt: skip
    """State with these fields; `viewport` is that of all indices, `viewports` those of the first ones, `commands` adds commands."""
    space, buffer = AddressSpace("geometry", generation(gen).address_bits), MemfdBuffer(SIZE)
    space.map(BASE, buffer)
    known, values, records = catalogue.catalogue(), DEFAULTS | fields, Commands()
    unused = set(fields)
    for name in COMMANDS:
        if known.get(name, gen) is not None:
            layout = catalogue.layout(name, gen)
            records[name] = layout.raw(packed(name, gen, values))
            unused -= {field.name for field in layout.fields} | {group.name for group in layout.groups}
    for name, offset in BLOCKS.items():
        if known.get(name, gen) is None:
            continue
        layout = catalogue.layout(name, gen)
        unused -= {field.name for field in layout.fields}
        array_of = 16 if "VIEWPORT" in name or name == "SCISSOR_RECT" else 1
        for i in range(array_of):
            own = VIEWPORT | (viewport or {}) | (viewports[i] if i < len(viewports) else {}) if array_of > 1 else values
            space.write(BASE + offset + 4 * layout.dwords * i, array("I", packed(name, gen, own)).tobytes())
    assert not unused, f"gen {gen:g} has no {unused}"
    for name, given in (commands or {}).items():
        records[name] = catalogue.layout(name, gen).raw(catalogue.layout(name, gen).pack(**given))
    return DrawState(generation(gen), space, records, {"dynamic": BASE, "general": BASE}, no_registers)


def vertex(x: float, y: float, z: float = 0.0, w: float = 1.0, *slots: Sequence[float], layer: int = 0, viewport: int = 0,
           width: float = 1.0, flags: int | None = None) -> bytes:  # fmt: skip
    """A vertex entry: header, position, slots. `flags` makes dword 3 that of gen 4.5, with a point width of U8.3."""
    last = struct.pack("<f", width) if flags is None else struct.pack("<I", int(width * 8) << 8 | flags)
    return struct.pack("<3I", 0, layer, viewport) + last + struct.pack("<4f", x, y, z, w) + b"".join(struct.pack("<4f", *s) for s in slots)


def thing(vertices: Sequence[int], flags: int = 0, provoking: int = 0, topology: int = 4, primitive: int = 0) -> PrimitiveObject:
    padded = [*vertices, *[0] * (3 - len(vertices))]
    bits = len(vertices) | flags | provoking << 4 | 7 << 6 | topology << 16
    return PrimitiveObject((ctypes.c_uint32 * 3)(*padded), bits, primitive)


def triangle(a: int, b: int, c: int, **given: Any) -> PrimitiveObject:
    return thing((a, b, c), **given)


def rectangle(a: int, b: int, c: int, **given: Any) -> PrimitiveObject:
    return thing((a, b, c), flags=1 << 2, topology=15, **given)


def line(a: int, b: int, **given: Any) -> PrimitiveObject:
    return thing((a, b), **{"topology": 2, **given})


def point(a: int, **given: Any) -> PrimitiveObject:
    return thing((a,), **{"topology": 1, **given})


def chunk_of(vertices: Sequence[bytes], objects: Sequence[PrimitiveObject], entry: int = ENTRY) -> Chunk:
    chunk = Chunk(entry, len(vertices) + 4, max(1, len(objects)))
    for i, data in enumerate(vertices):
        ctypes.memmove(chunk.vertices.entries + i * entry, data, len(data))
    for i, item in enumerate(objects):
        ctypes.memmove(chunk.objects.objects + i * ctypes.sizeof(item), ctypes.addressof(item), ctypes.sizeof(item))
    chunk.vertices.count, chunk.objects.count = len(vertices), len(objects)
    return chunk


def records_of(state: DrawState, chunk: Chunk, extent: tuple[int, int] = EXTENT) -> list[SetupRecord]:
    """The records of a chunk."""
    return [record for piece in pieces_of(state, chunk, extent).pieces if piece.new for record in piece.records]


def attributes_of(state: DrawState, chunk: Chunk) -> list[bytes]:
    """The attributes of each record."""
    return [data for piece in pieces_of(state, chunk).pieces for data in piece.attributes]


def covered(record: SetupRecord) -> list[tuple[int, int]]:
    """The pixels of a record, as the rasterizer finds them."""
    y, x = np.mgrid[record.y0 : record.y1, record.x0 : record.x1].astype(np.int64)
    lit = np.ones(x.shape, bool)
    for i in range(record.edges):
        lit &= record.edge[i] + record.edge_dx[i] * x + record.edge_dy[i] * y >= 0
    return list(zip(x[lit].tolist(), y[lit].tolist(), strict=True))


def value(plane: Any, x: int, y: int) -> float:
    return float(plane.c + plane.dx * x + plane.dy * y)
