"""SBE: which vertex data become pixel shader inputs (attributes.c).

Reads   3DSTATE_SBE 3DSTATE_SBE_SWIZ SF_OUTPUT_ATTRIBUTE_DETAIL 3DSTATE_VS 3DSTATE_DS 3DSTATE_GS
Writes  AttributePlan
"""

from __future__ import annotations

import ctypes
from functools import lru_cache

from softgen.bits.record import Record
from softgen.errors import DecodeError
from softgen.three_d.clip_setup.clip import last_stage
from softgen.three_d.clip_setup.geometry_h import Attribute, AttributePlan
from softgen.three_d.state.fields import UnitFields, unit_fields
from softgen.three_d.state.state import DrawState

OUTPUTS = 32
ATTRIBUTE_BYTES = 64  # of a record, for each output
SLOT = 16  # bytes of a vertex entry that a source attribute has
SWIZZLED = 16  # attributes that the swizzle details describe
ZERO, ONE, PRIMITIVE = 4, 5, 6  # enum component
CONSTANTS = ((ZERO,) * 4, (ZERO, ZERO, ZERO, ONE), (ONE,) * 4, (PRIMITIVE,) * 4)  # enum Attribute_Constant_Source
COMPONENTS = "xyzw"
FACING, W = 1, 2  # bits of swizzle_select


def plan(state: DrawState) -> AttributePlan:
    """The plan of a draw's pixel shader inputs; threads set them up where units read state from memory."""
    if state.generation.unit_state:
        return AttributePlan(0)
    swizzles = ("3DSTATE_SBE_SWIZ",) if state.get("3DSTATE_SBE_SWIZ") is not None else ()  # not needed while they are disabled
    fields = unit_fields(state, "3DSTATE_SBE", *swizzles)
    offset = fields.vertex_urb_entry_read_offset
    if not fields.get("force_vertex_urb_entry_read_offset", 1):
        stage = last_stage(state)
        offset = 0 if stage is None else stage.vertex_urb_entry_output_read_offset  # BDW 9975-9993
    return _make(fields, offset)


@lru_cache(512)
def _make(fields: UnitFields, read_offset: int) -> AttributePlan:
    count = fields.number_of_sf_output_attributes
    if count > OUTPUTS:
        raise DecodeError(f"3DSTATE_SBE: number_of_sf_output_attributes is {count}; there are {OUTPUTS} at most (BDW 9996)")
    details: tuple[Record, ...] = next((r.attribute for _, r in fields.records if hasattr(type(r), "attribute")), ())
    wraps = next((r.wrap_shortest for _, r in fields.records if hasattr(type(r), "wrap_shortest")), ())
    upper = fields.get("attribute_swizzle_control_mode") or bool(details and details[0].swizzle_control_mode)
    found = AttributePlan(count, fields.point_sprite_texture_coordinate_origin)
    for number in range(count):
        detail = number - (SWIZZLED if upper else 0)
        swizzled = fields.attribute_swizzle_enable and 0 <= detail < len(details)
        found.attributes[number] = _attribute(fields, number, read_offset, details[detail] if swizzled else None)
        if number < len(wraps) and not found.attributes[number].flat:  # BDW 10104-10107
            found.attributes[number].wrap = wraps[number].enables
    return found


def _attribute(fields: UnitFields, number: int, read_offset: int, detail: Record | None) -> Attribute:
    """One input; read offsets are in units of two slots."""
    components, source, facing = list(range(4)), number, 0
    if detail is not None:
        source, facing = detail.source_attribute, SLOT if detail.swizzle_select & FACING else 0
        if detail.swizzle_select & W:
            components[0] = 3
        for i, name in enumerate(COMPONENTS):
            if getattr(detail, f"component_override_{name}"):
                components[i] = CONSTANTS[detail.constant_source][i]
    identified = fields.get("primitive_id_override_attribute_select", OUTPUTS) == number
    for i, name in enumerate(COMPONENTS):
        if identified and fields.get(f"primitive_id_override_component_{name}"):
            components[i] = PRIMITIVE
    flat, sprite = fields.constant_interpolation_enable >> number & 1, fields.point_sprite_texture_coordinate_enable >> number & 1
    return Attribute((2 * read_offset + source) * SLOT, facing, (ctypes.c_uint8 * 4)(*components), flat, sprite)
