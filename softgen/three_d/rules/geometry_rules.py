"""Software rules of geometry shaders and tessellation since Gen8: what a draw must not ask for, reported when its plans are made.

Reads   3DSTATE_GS 3DSTATE_HS 3DSTATE_DS 3DSTATE_URB_VS 3DSTATE_URB_HS 3DSTATE_URB_DS 3DSTATE_URB_GS 3DSTATE_STREAMOUT
Writes  remarks
"""

from __future__ import annotations

from collections.abc import Iterator

from softgen.bits import catalogue
from softgen.bits.describe import value_name
from softgen.bits.record import Record
from softgen.three_d.state.state import DrawState

# URB entries that the dispatch modes of GS need, those of VS and DS that tessellation needs (BDW 5923-5926, 11816, 11464).
MODE_ENTRIES = {"dual_instance": 2, "dual_object": 2, "simd8": 8}
TESSELLATING = {"VS": 192, "DS": 34}
MOST_HEADER = 8  # units of 32 bytes (BDW 5843-5855)
FORCE_OFF = 2  # force_rendering


def check_geometry(state: DrawState) -> None:
    """Report what the state of geometry stages must not ask for."""
    if not state.generation.urb_rules:
        return
    unit, hull = state.get("3DSTATE_GS"), state.get("3DSTATE_HS")
    for text in (*_entries(state, unit, hull), *(_geometry_shader(state, unit) if unit is not None and unit.enable else ())):
        state.remark(text)


def _entries(state: DrawState, unit: Record | None, hull: Record | None) -> Iterator[str]:
    """Entries that stages need: VS always some (ICL 3269-3272)."""
    least = {"VS": 1}
    if hull is not None and hull.enable:
        least = {**TESSELLATING, "HS": 1} if state.generation.urb_entries else dict.fromkeys(("VS", "HS", "DS"), 1)
    if unit is not None and unit.enable:
        least["GS"] = MODE_ENTRIES.get(_mode(state, unit), 1)
    for stage, count in least.items():
        region = state.get(f"3DSTATE_URB_{stage}")
        if region is not None and region.number_of_urb_entries < count:
            yield f"3DSTATE_URB_{stage}: number_of_urb_entries {region.number_of_urb_entries}; it must be at least {count} here"


def _mode(state: DrawState, unit: Record) -> str:
    return str(value_name(catalogue.layout("3DSTATE_GS", state.gen), unit, "dispatch_mode"))


def _geometry_shader(state: DrawState, unit: Record) -> Iterator[str]:
    if not unit.output_vertex_size & 1 and _renders(state):  # counts less one
        yield f"3DSTATE_GS: output_vertex_size {unit.output_vertex_size}, an odd number of units, and vertices are rendered (BDW 5725-5737)"
    if unit.control_data_header_size > MOST_HEADER:
        yield f"3DSTATE_GS: control_data_header_size {unit.control_data_header_size}; it must be {MOST_HEADER} at most (BDW 5843-5855)"
    if not unit.vertex_urb_entry_read_length and not unit.include_vertex_handles:
        yield "3DSTATE_GS: vertex_urb_entry_read_length 0 and include_vertex_handles 0 (BDW 5756-5775)"
    limits = state.generation.gs_threads
    if limits and not limits[0] <= unit.maximum_number_of_threads <= limits[1]:
        yield f"3DSTATE_GS: maximum_number_of_threads {unit.maximum_number_of_threads}; it must be from {limits[0]} to {limits[1]}"


def _renders(state: DrawState) -> bool:
    unit = state.get("3DSTATE_STREAMOUT")
    return unit is None or not (unit.rendering_disable or unit.force_rendering == FORCE_OFF)
