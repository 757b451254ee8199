"""The payload of pixel shader threads: which parts it has, and where they are (payload.c fills them in).

In:  a PayloadParts, as state says. Out: a PayloadPlan, which payload.c reads.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum

from softgen.bits.units import DWORD_MASK, GRF_BYTES
from softgen.errors import DecodeError, Unsupported
from softgen.threads.native.scheduler_h import UndefinedDwords
from softgen.threads.payload import check_length

MODES = 6  # barycentrics: perspective at pixel, centroid and sample, then linear
LANES = 8  # channels of a register
HALF = 16  # channels of a part that 32-wide threads have twice


class HeaderFormat(IntEnum):
    """enum payload_header of pixels.h."""

    BARYCENTRIC = 0
    COEFFICIENTS = 1


class PayloadPlan(ctypes.Structure):
    """struct payload_plan of pixels.h."""

    _fields_ = [
        ("header_format", ctypes.c_uint32),
        ("width", ctypes.c_uint32),
        ("upper", ctypes.c_uint32),
        ("barycentric", ctypes.c_uint32 * MODES),
        ("depth", ctypes.c_uint32),
        ("w", ctypes.c_uint32),
        ("xy_offsets", ctypes.c_uint32),
        ("coverage", ctypes.c_uint32),
        ("held_stencil", ctypes.c_uint32),
        ("held_depth", ctypes.c_uint32),
        ("antialias", ctypes.c_uint32),
        ("half", ctypes.c_uint32),
        ("coverage_state", ctypes.c_uint32),
        ("zw_place", ctypes.c_uint32),
        ("xy_place", ctypes.c_uint32),
        ("per_sample", ctypes.c_uint32),
        ("constants", ctypes.c_uint32),
        ("constant_bytes", ctypes.c_uint32),
        ("attributes", ctypes.c_uint32),
        ("attribute_bytes", ctypes.c_uint32),
        ("attribute_offset", ctypes.c_uint32),
        ("gap", ctypes.c_uint32),
        ("gap_bytes", ctypes.c_uint32),
        ("size", ctypes.c_uint32),
        ("header", ctypes.c_uint32 * 8),
        ("flags", ctypes.c_uint32),
        ("xy_offset", ctypes.c_uint32),
        ("scratch_step", ctypes.c_uint32),
        ("constant_data", ctypes.c_uint64),
    ]


@dataclass(frozen=True)
class PayloadParts:
    """What a payload has, in its order."""

    format: HeaderFormat
    width: int  # channels
    start: int  # register of constants and attributes
    header: tuple[int, ...]  # r0, without what depends on the thread
    flags: int = 0  # of r1.6, where planes are coefficients
    barycentrics: tuple[bool, ...] = field(default=(False,) * MODES)
    depth: bool = False
    w: bool = False
    xy_offsets: bool = False
    coverage: int = 0  # input_coverage_mask_state: 1 normal, 2 of the whole pixel, 3 after early tests
    held_stencil: bool = False  # what the stencil buffer holds
    held_depth: bool = False
    antialias: bool = False  # coverage by smooth lines, in the register of stencils
    attribute_offset: int = 0  # bytes
    scratch_step: int = 0
    xy_offset: int = 0x0808  # X and Y of the only sample, in 1/16 pixel
    zw_place: int = 0  # where depth and w are, and what offsets are of: 0 pixel, 2 centroid, 3 sample
    xy_place: int = 0
    per_sample: int = 0  # enum sample_threads of pixels.h


def place_parts(parts: PayloadParts, constant_bytes: int, attribute_bytes: int) -> PayloadPlan:
    """Where the parts are (GRAPHICS_THREADS 2.5, 2.6). 32-wide threads have the parts of 16 channels twice."""
    plan = PayloadPlan(header_format=parts.format, width=parts.width, flags=parts.flags, xy_offset=parts.xy_offset,
                       scratch_step=parts.scratch_step, attribute_offset=parts.attribute_offset,
                       coverage_state=parts.coverage, zw_place=parts.zw_place, xy_place=parts.xy_place,
                       per_sample=parts.per_sample)  # fmt: skip
    plan.header[:] = parts.header
    halves = 2 if parts.width > HALF else 1
    place = {HeaderFormat.BARYCENTRIC: _place_barycentrics, HeaderFormat.COEFFICIENTS: _place_coefficients}[parts.format]
    end = place(plan, parts, halves)
    start, pushed = parts.start * GRF_BYTES, end
    plan.gap = end if parts.width == HALF else 2 * GRF_BYTES  # threads of other widths may leave registers of their parts as they are
    most = end + GRF_BYTES * (parts.antialias and not parts.held_stencil)
    if constant_bytes + attribute_bytes:
        if most > start:
            raise DecodeError(f"pixel shader: constants start at r{parts.start}, but {most // GRF_BYTES} registers come before them")
        plan.constants, plan.constant_bytes = start, constant_bytes
        plan.attributes, plan.attribute_bytes = start + constant_bytes, attribute_bytes
        pushed, end = start, start + constant_bytes + attribute_bytes
    else:
        end = most
    plan.gap_bytes, plan.size = pushed - plan.gap, end
    check_length(end // GRF_BYTES, "pixel shader")
    return plan


SUBSPAN = 4  # channels
RESERVED = (1, 6)  # dwords of the register with the subspans' places (GRAPHICS_THREADS 2.7: r1.1 and r1.6)
PLACES = 2  # the first of those


def undefined_pixels(plan: PayloadPlan) -> list[UndefinedDwords]:
    """What threads have of subspans that they lack: where these are, and the values of their channels (those off by the dispatch mask; IVB
    "SIMD16 Mode of Operation"); and reserved dwords of the header."""
    found = []
    for half in range(2 if plan.width > HALF else 1):
        first, header = half * plan.half, plan.upper if half else GRF_BYTES
        if plan.header_format == HeaderFormat.BARYCENTRIC:
            found += [UndefinedDwords(header + 4 * dword, 4, 0, DWORD_MASK) for dword in RESERVED]
        for subspan in range(min(plan.width, HALF) // SUBSPAN):
            channels = (1 << SUBSPAN) - 1 << HALF * half + SUBSPAN * subspan
            found.append(UndefinedDwords(header + 4 * (PLACES + subspan), 4, channels, DWORD_MASK))
            found += [UndefinedDwords(first + at, size, channels, DWORD_MASK) for at, size in _subspan_parts(plan, subspan)]
    return found


def _subspan_parts(plan: PayloadPlan, subspan: int) -> Iterator[tuple[int, int]]:
    """Offset and size of what a subspan has in the first 16 channels."""
    quad, within = 4 * SUBSPAN, subspan % 2 * 4 * SUBSPAN
    for at in filter(None, plan.barycentric):
        yield from ((at + (subspan // 2 * 2 + axis) * GRF_BYTES + within, quad) for axis in range(2))
    for at in filter(None, (plan.depth, plan.w, plan.coverage, plan.held_depth)):
        yield at + subspan // 2 * GRF_BYTES + within, quad
    for at, size in ((plan.xy_offsets, 2), (plan.held_stencil, 1)):
        if at:
            yield at + subspan * SUBSPAN * size, SUBSPAN * size


def _place_barycentrics(plan: PayloadPlan, parts: PayloadParts, halves: int) -> int:
    """Headers come first, then what channels have; the end of all."""
    plan.upper = 2 * GRF_BYTES
    first = at = (1 + halves) * GRF_BYTES
    value = GRF_BYTES * (1 if parts.width == LANES else 2)  # bytes of a value of each channel
    for mode, wanted in enumerate(parts.barycentrics):
        if wanted:
            plan.barycentric[mode], at = at, at + 2 * value
    for name, size in (("depth", value), ("w", value), ("xy_offsets", GRF_BYTES), ("coverage", value)):
        if getattr(parts, name):
            setattr(plan, name, at)
            at += size
    plan.half = at - first
    return first + halves * (at - first)


def _place_coefficients(plan: PayloadPlan, parts: PayloadParts, halves: int) -> int:
    """The header of the upper channels stands between the two halves; depths have two registers even for 8 channels (G45 7370)."""
    at = 2 * GRF_BYTES
    if parts.antialias:
        plan.antialias = at + 2 * GRF_BYTES * parts.depth
    if parts.antialias and halves > 1:
        raise Unsupported("32-wide pixel shader threads of antialiased lines")
    for name, registers in (("depth", 2), ("held_stencil", 1), ("held_depth", 2)):
        if getattr(parts, name):
            setattr(plan, name, at)
            at += registers * GRF_BYTES
    if halves == 1:
        return at
    plan.upper, plan.half = at, at - GRF_BYTES
    return 2 * at - GRF_BYTES
