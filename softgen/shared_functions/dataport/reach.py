"""The memory of a message: which region it accesses, and its offsets relative to that region.

Reads   MH_A32_GO MH1_BTS_PSM MH2_A32 MH2_A64 DP2_EXTDESC
"""

from __future__ import annotations

from softgen.bits import catalogue
from softgen.errors import Unsupported
from softgen.lanes.types import u16, u64
from softgen.lanes.value import Region, Value
from softgen.shared_functions import descriptors
from softgen.shared_functions.dataport.environment import DataPortMessage
from softgen.shared_functions.texture.operations import bindless_offset

ADDRESS_64, SCALED = "a64", "scaled"  # attributes in messages.table
LOCAL_REACH = 1 << 16  # local addresses are taken modulo this: compilers tag pointers in the bits above (public: IGC)
STATELESS = ("stateless", "stateless_non_coherent")


def has_addresses(x: DataPortMessage) -> bool:
    """Whether the payload has 64-bit addresses. With a header, scaled ones count from its base in 32 bits (KBL 25255-25261)."""
    return ADDRESS_64 in x.plan.attributes and not (SCALED in x.plan.attributes and x.plan.header)


def region(x: DataPortMessage, offsets: Value) -> tuple[Region, Value]:
    """The memory a message accesses: by its binding table index, or by 64-bit addresses."""
    if SCALED in x.plan.attributes:
        return _scaled(x, offsets)
    if has_addresses(x):
        return x.environment.addresses(), offsets
    index = x.surface_index
    special = None if isinstance(index, Value) else catalogue.enumeration(descriptors.SURFACES, x.plan.gen).get(index)
    if special is None:
        untyped = "untyped" in x.plan.attributes
        x.environment.within(index, offsets, pixel_lanes(x, offsets.lanes) if untyped else x.lanes(offsets.lanes), x.plan.name)
        return x.environment.bound(index), offsets
    if special == "slm":
        return x.environment.local(plain="atomic" not in x.plan.attributes), offsets & LOCAL_REACH - 1
    if special in STATELESS:
        return x.environment.general(buffer_base(x)), offsets
    if special == "bindless":
        return x.environment.bindless(bindless_offset(x)), offsets
    raise Unsupported(f"{x.plan.name} to {special} surfaces: not yet simulated")


def buffer_base(x: DataPortMessage) -> Value | None:
    """Where stateless offsets begin, counted from the general state base: a header may say so (KBL 734-750)."""
    return x.m.convert(x.header("MH_A32_GO", "buffer_base_address"), u64) if x.plan.header else None


def pixel_lanes(x: DataPortMessage, count: int, first: int = 0) -> Value:
    """Lanes that the header of a surface message leaves on (KBL 17848-17865), from the thread's channel `first` on.

    An instruction of eight channels that sends for the high ones has only these (send (8|M8)).
    """
    lanes = x.lanes(count, first if x.width > first else 0)
    if not x.plan.header or ADDRESS_64 in x.plan.attributes:
        return lanes
    bits = x.m.convert(x.header("MH1_BTS_PSM", "pixel_sample_mask"), u16)
    return lanes & x.m.mask_from_bits(bits >> first if first else bits, count)


# -- scaled ----------------------------------------------------------------------------------------------------------


def _scaled(x: DataPortMessage, offsets: Value) -> tuple[Region, Value]:
    """An offset times a pitch, plus one from the sideband for all (KBL 760-816, 1086-1135). The pitch counts bytes here."""
    m, far, aside = x.m, x.m.convert(offsets, u64), bool(x.plan.fields.sideband_offset_enable)
    more = 0
    if aside:
        assert isinstance(x.extended, int)  # only bindless surfaces are lanes
        more = int(catalogue.layout("DP2_EXTDESC", x.plan.gen).raw([x.extended]).sideband_offset)
    if ADDRESS_64 in x.plan.attributes:
        if not x.plan.header:
            if aside:  # out of bounds (KBL 1101-1103, 1128-1132): where no local memory is
                return x.environment.local(), m.constant(u64, LOCAL_REACH, offsets.lanes)
            return x.environment.addresses(), offsets
        base = m.broadcast(x.header("MH2_A64", "buffer_base_address"), offsets.lanes)
        return x.environment.addresses(), base + far * _pitch(x, "MH2_A64", offsets.lanes) + more
    if aside and not x.plan.header:
        return x.environment.local(), far * (int(x.plan.fields.scale) + 1) + more & LOCAL_REACH - 1
    if not x.plan.header:
        return x.environment.general(), far
    start = m.convert(x.header("MH2_A32", "buffer_base_address"), u64)
    return x.environment.general(start), far * _pitch(x, "MH2_A32", offsets.lanes) + more


def _pitch(x: DataPortMessage, page: str, lanes: int) -> Value:
    return x.m.broadcast(x.m.convert(x.header(page, "surface_pitch"), u64) + 1, lanes)
