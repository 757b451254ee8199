"""Parameters of sampler messages: in which order payloads hold them, by message and width.

Since Gen7 the descriptor says how wide a message is, and trailing parameters may be missing. On Gen4 and Gen4.5 the length says both, and
coordinates come first (public: Mesa brw_lower_logical_sends.cpp, brw_vec4_nir.cpp).
"""

from __future__ import annotations

from typing import NamedTuple

from softgen.bits.units import GRF_BYTES
from softgen.errors import Unsupported
from softgen.lanes.types import u32
from softgen.shared_functions.message import MessagePlan

LANES = {"simd8": 8, "simd16": 16}
HALF_LANES = {"simd8h": 8, "simd16h": 16}  # parameters of 16 bits, a register each
SLOTS = 2  # lanes of SIMD4x2
COORDINATES = ("u", "v", "r", "ai")
GRADIENTS = ("dudx", "dudy", "dvdx", "dvdy", "drdx", "drdy")
_D = ("u", "dudx", "dudy", "v", "dvdx", "dvdy", "r", "drdx", "drdy", "ai")
WIDE = {
    "sample": COORDINATES, "sample_lz": COORDINATES, "gather4": COORDINATES, "lod": COORDINATES, "sample_killpix": COORDINATES,
    "sample_b": ("bias", *COORDINATES), "sample_l": ("lod", *COORDINATES), "sample_c": ("ref", *COORDINATES),
    "sample_c_lz": ("ref", *COORDINATES), "gather4_c": ("ref", *COORDINATES),
    "sample_b_c": ("ref", "bias", *COORDINATES), "sample_l_c": ("ref", "lod", *COORDINATES),
    "sample_d": _D, "sample_d_c": ("ref", *_D),
    "gather4_po": ("u", "v", "offset_u", "offset_v", "r"), "gather4_po_c": ("ref", "u", "v", "offset_u", "offset_v", "r"),
    "resinfo": ("lod",), "ld_lz": ("u", "v", "r"), "sampleinfo": (),
    "ld_mcs": ("u", "v", "r"), "ld2dms": ("si", "mcs0", "u", "v", "r"), "ld2dms_w": ("si", "mcs0", "mcs1", "u", "v", "r"),
    "ld2dss": ("si", "u", "v", "r"),
}  # fmt: skip
# SIMD4x2: four dwords of each register for a slot; "" is unused
SLOT = {
    "sample": COORDINATES, "sample_lz": COORDINATES, "gather4": COORDINATES, "lod": COORDINATES, "ld": ("u", "v", "r", "lod"),
    "ld_lz": ("u", "v", "r"), "resinfo": ("lod",), "sampleinfo": (),
    "sample_l": (*COORDINATES, "lod"), "sample_l_c": (*COORDINATES, "ref", "lod"), "sample_c_lz": (*COORDINATES, "ref"),
    "sample_d": (*COORDINATES, "dudx", "dudy", "dvdx", "dvdy", "drdx", "drdy"),
    "sample_d_c": (*COORDINATES, "dudx", "dudy", "dvdx", "dvdy", "drdx", "drdy", "ref"),
    "gather4_po": ("u", "v", "r", "", "offset_u", "offset_v"), "gather4_c": (*COORDINATES, "ref"),
    "gather4_po_c": ("u", "v", "r", "ref", "offset_u", "offset_v"),
    "ld_mcs": ("u", "v", "r", ""), "ld2dms": ("u", "v", "r", "", "si", "mcs0"), "ld2dms_w": ("u", "v", "r", "", "si", "mcs0", "mcs1"),
    "ld2dss": ("u", "v", "r", "", "si"),
}  # fmt: skip
_U, _UV, _UVR = COORDINATES[:1], COORDINATES[:2], COORDINATES[:3]
# Gen4 and Gen4.5, by message length: lanes and parameters
LENGTHS: dict[str, dict[int, tuple[int, tuple[str, ...]]]] = {
    "sample": {3: (16, _U), 5: (16, _UV), 7: (16, _UVR), 4: (8, _UVR)},
    "sample_b": {9: (16, (*_UVR, "bias"))}, "sample_b_c": {6: (8, (*_UVR, "bias", "ref"))},
    "sample_l": {2: (SLOTS, (*_UVR, "lod")), 9: (16, (*_UVR, "lod"))},
    "sample_l_c": {3: (SLOTS, (*_UVR, "lod", "ref")), 6: (8, (*_UVR, "lod", "ref"))},
    "sample_c": {9: (16, (*_UVR, "ref"))},
    "sample_d": {4: (SLOTS, (*_UVR, "", "dudx", "dvdx", "drdx", "", "dudy", "dvdy", "drdy")),
                 7: (8, (*_UV, "dudx", "dvdx", "dudy", "dvdy")), 10: (8, (*_UVR, "dudx", "dvdx", "drdx", "dudy", "dvdy", "drdy"))},
    "resinfo": {2: (SLOTS, ("", "", "", "lod")), 3: (16, ("lod",))},
    "ld": {length: (SLOTS if length == 2 else 16, (*_UVR, "lod")) for length in (2, 3, 5, 7, 9)},
}  # fmt: skip
# Messages that may have a lowest level of detail after all their parameters
CLAMPED = ("sample", "sample_b", "sample_c", "sample_b_c", "sample_d", "sample_d_c")
LOWEST = "lowest"


class Payload(NamedTuple):
    """How wide a message is, and its parameters in order."""

    lanes: int
    order: tuple[str, ...]
    half: bool = False

    @property
    def size(self) -> int:
        """Bytes of a parameter, where slots do not have theirs contiguous."""
        return GRF_BYTES if self.half else self.lanes * u32.bytes

    @property
    def slots(self) -> bool:
        """Two slots, each with its parameters contiguous."""
        return self.lanes == SLOTS


def by_length(plan: MessagePlan) -> bool:
    """Whether only the length says how wide a message is; it always has a header then."""
    return "simd_mode" not in plan.words


def payload(plan: MessagePlan, ld_parameters: tuple[str, ...]) -> Payload | None:
    """The payload of a message; None where its header decides."""
    if by_length(plan):
        if plan.words.get("data_type", wanted := "uint" if plan.name == "resinfo" else "float") != wanted:
            raise Unsupported(f"{plan.name} with data_type {plan.words['data_type']}: not yet simulated")
        found = LENGTHS.get(plan.name, {}).get(int(plan.fields.message_length))
        if found is None:
            raise Unsupported(f"{plan.name} of {plan.fields.message_length} registers: not yet simulated")
        return Payload(*found)
    mode = plan.words["simd_mode"]
    if lanes := LANES.get(mode) or HALF_LANES.get(mode):
        return Payload(lanes, ld_parameters if plan.name == "ld" else WIDE[plan.name], mode in HALF_LANES)
    return slots(plan) if mode == "simd4x2" else None


def slots(plan: MessagePlan) -> Payload:
    if plan.name not in SLOT:
        raise Unsupported(f"{plan.name} of SIMD4x2: not yet simulated")
    return Payload(SLOTS, SLOT[plan.name])
