"""Records of targets: the numbers that code reads at run time, and the functions compiled for them."""

from __future__ import annotations

import ctypes
from dataclasses import fields, replace

from softgen.lanes.record import RecordLayout
from softgen.shared_functions.pixel_backend.state import BackendState, DepthTarget, SurfacePlacement
from softgen.surface.samples import SampleControl

VIEWPORTS = 16
TARGETS = 8  # render target indices
SURFACES = 257  # binding table indices, and the null target
NULL_TARGET = 256
VARIANTS = 128  # numbers of messages.Variant

_PLACEMENT = [(field.name, ctypes.c_uint64 if field.name == "base" else ctypes.c_uint32) for field in fields(SurfacePlacement)]


class PlacementRecord(ctypes.Structure):
    """A SurfacePlacement."""

    _fields_ = _PLACEMENT


class DepthRecord(ctypes.Structure):
    """A DepthTarget: its surfaces, then stencil numbers of front and back faces, then depth ranges by viewport."""

    _fields_ = [
        ("depth", PlacementRecord), ("stencil", PlacementRecord),
        ("reference", ctypes.c_uint32 * 2), ("test_mask", ctypes.c_uint32 * 2), ("write_mask", ctypes.c_uint32 * 2),
        ("minimum", ctypes.c_float * VIEWPORTS), ("maximum", ctypes.c_float * VIEWPORTS),
    ]  # fmt: skip


class TargetRecord(ctypes.Structure):
    """A render target: a function for each variant of a message, or 0."""

    _fields_ = [
        ("functions", ctypes.c_uint64 * VARIANTS), ("color", PlacementRecord), ("constant", ctypes.c_float * 4),
        ("alpha_reference", ctypes.c_float), ("reserved", ctypes.c_uint32), ("late", DepthRecord),
        ("control", PlacementRecord), ("clear_at", ctypes.c_uint64), ("clear", ctypes.c_uint32 * 4),
    ]  # fmt: skip


class TargetTable(ctypes.Structure):
    """What the context field `targets` points at: by binding table index, the address of records for each render target index; and what
    messages without a header have besides colours."""

    _fields_ = [("surfaces", ctypes.c_uint64 * SURFACES), ("parts", ctypes.c_uint64)]


PLACEMENT, DEPTH, TARGET = RecordLayout.of(PlacementRecord), RecordLayout.of(DepthRecord), RecordLayout.of(TargetRecord)
COLOR_AT, LATE_AT, CONTROL_AT = int(TargetRecord.color.offset), int(TargetRecord.late.offset), int(TargetRecord.control.offset)
DEPTH_AT, STENCIL_AT = int(DepthRecord.depth.offset), int(DepthRecord.stencil.offset)


def fill_placement(record: PlacementRecord, placement: SurfacePlacement) -> None:
    for name, _ in _PLACEMENT:
        setattr(record, name, getattr(placement, name))


def fill_depth(record: DepthRecord, target: DepthTarget) -> None:
    fill_placement(record.depth, target.depth)
    fill_placement(record.stencil, target.stencil)
    for face, numbers in enumerate(target.faces):
        record.reference[face], record.test_mask[face], record.write_mask[face] = numbers.reference, numbers.test_mask, numbers.write_mask
    for viewport in range(VIEWPORTS):
        record.minimum[viewport], record.maximum[viewport] = target.ranges[viewport if viewport < len(target.ranges) else 0]


def fill_color(record: TargetRecord, color: SurfacePlacement, control: SampleControl | None = None) -> None:
    fill_placement(record.color, color)
    if control is not None:
        fill_placement(record.control, replace(color, base=control.base, pitch=control.pitch, rows=control.rows, left=0, top=0))
        record.clear_at, record.clear[:] = control.clear_at, control.clear


def fill_target(record: TargetRecord, state: BackendState, color: SurfacePlacement, control: SampleControl | None = None) -> None:
    fill_color(record, color, control)
    record.constant[:] = state.constant
    record.alpha_reference = state.alpha_reference
    if state.late is not None:
        fill_depth(record.late, state.late)
