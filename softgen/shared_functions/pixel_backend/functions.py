"""Compiled functions of the pixel backend: writes to render targets, which kernels call by address, and early depth tests.

A write is `void f(context, record, pixel, arguments, mask, flags)`: `record` is a TargetRecord, `pixel` a PixelDispatch; arguments are
vectors of 32-bit lanes one after another (SLOTS); flags are the channel of lane 0, and LAST. They are compiled at once. A read is alike:
it stores red, green, blue and alpha where arguments would be.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TypeVar

from softgen.lanes import jit
from softgen.lanes.llvm import LlvmMachine
from softgen.lanes.llvm_region import LEAVE, table_region
from softgen.lanes.llvm_scalar import HostPointer, Parameter
from softgen.lanes.once import once
from softgen.lanes.record import RecordLayout, RecordView
from softgen.lanes.types import f32, u32
from softgen.lanes.value import Region, Value
from softgen.memory import guard
from softgen.shared_functions.context import HEAD
from softgen.shared_functions.pixel_backend import surface
from softgen.shared_functions.pixel_backend.depth import DepthTest, check
from softgen.shared_functions.pixel_backend.read import ReadForm, TargetRead
from softgen.shared_functions.pixel_backend.records import DEPTH, DepthRecord, fill_depth
from softgen.shared_functions.pixel_backend.state import DepthState, DepthTarget
from softgen.shared_functions.pixel_backend.write import Sources, TargetForm, TargetWrite

F = TypeVar("F")
WRITE, READ, EARLY, HELD = "target_write", "target_read", "early_depth", "held_depth"
CHANNELS = 4
COLOR, SECOND, ALPHA, DEPTH_SLOT, STENCIL, SLOTS = 0, 4, 8, 9, 10, 11  # arguments of a write
LAST = 1 << 8  # flag: the write to the last target
PARAMETERS = [*(Parameter(name) for name in ("context", "record", "pixel", "arguments")), Parameter("mask", u32), Parameter("flags", u32)]


class DepthBlock(ctypes.Structure):
    """struct depth_block of three_d.h."""

    _fields_ = [("x", ctypes.c_uint32), ("y", ctypes.c_uint32), ("mask", ctypes.c_uint32), ("back_facing", ctypes.c_uint32),
                ("layer", ctypes.c_uint32), ("viewport", ctypes.c_uint32), ("z", ctypes.c_float * 16)]  # fmt: skip


BLOCK = RecordLayout.of(DepthBlock)


class _Memory:
    """Graphics memory of a function, through the table of its context."""

    def __init__(self, m: LlvmMachine, context: HostPointer, bits: int) -> None:
        self.m, self.bits = m, bits
        self.table, self.note = context.field(HEAD, "table").load_pointer(align=4), context.field(HEAD, "mask")

    def __call__(self, base: Value) -> Region:
        return table_region(self.m, self.table, self.m.scalar(base), self.note, self.bits, name="memory")


def write_text(form: TargetForm, bits: int) -> str:
    """The IR of a write; `bits` is the width of addresses."""
    m, lanes = LlvmMachine(), form.lanes
    context, record, pixel, arguments = (m.pointer(name) for name in ("context", "record", "pixel", "arguments"))

    def lane(slot: int) -> Value:
        return arguments.at(4 * lanes * slot).load_lanes(u32, lanes, align=4)

    sources = Sources([lane(COLOR + channel) for channel in range(4)])
    if form.dual:
        sources.second = [lane(SECOND + channel) for channel in range(4)]
    sources.alpha, sources.depth, sources.stencil = (lane(slot) if present else None for slot, present in
                                                     ((ALPHA, form.alpha), (DEPTH_SLOT, form.depth), (STENCIL, form.stencil)))  # fmt: skip
    flags = m.argument(u32, "flags")
    write = TargetWrite(m, form, record.memory("record"), pixel.memory("pixel"), _Memory(m, context, bits), (flags & LAST - 1).lane(),
                        (flags >= LAST).lane())  # fmt: skip
    write.write(sources, m.argument(u32, "mask").mask(lanes))
    m.give()
    m.frame(WRITE, None, PARAMETERS)
    return m.module.text()


def _load(name: str, text: Callable[[F, int], str], form: F, bits: int) -> jit.LoadedCode:
    leave = ctypes.cast(guard.library().guard_leave, ctypes.c_void_p).value
    assert leave
    return jit.load_form((form, bits), lambda: text(form, bits), (name,), {LEAVE: leave})


@once  # never freed: kernels may be about to call it
def write_function(form: TargetForm, bits: int) -> jit.LoadedCode:
    """The code of a write; raises Unsupported for what is not simulated."""
    form.check()
    return _load(WRITE, write_text, form, bits)


def read_text(form: ReadForm, bits: int) -> str:
    """The IR of a read."""
    m, lanes = LlvmMachine(), form.lanes
    context, record, pixel, arguments = (m.pointer(name) for name in ("context", "record", "pixel", "arguments"))
    first = m.argument(u32, "flags").lane()
    read = TargetRead(m, form, record.memory("record"), pixel.memory("pixel"), _Memory(m, context, bits), first)
    for channel, value in enumerate(read.read(m.argument(u32, "mask").mask(lanes))):
        arguments.at(4 * lanes * channel).store(value, align=4)
    m.give()
    m.frame(READ, None, PARAMETERS)
    return m.module.text()


@once
def read_function(form: ReadForm, bits: int) -> jit.LoadedCode:
    """The code of a read; raises Unsupported for what is not simulated."""
    form.check()
    return _load(READ, read_text, form, bits)


# -- early tests -----------------------------------------------------------------------------------------------------


def early_text(state: DepthState, bits: int) -> str:
    """The IR of `uint32_t f(context, target, block)` (three_d.h: depth_function)."""
    m = LlvmMachine()
    context, target, block = (m.pointer(name) for name in ("context", "target", "block"))
    given, numbers = RecordView(m, BLOCK, block.memory("block"), 0), RecordView(m, DEPTH, target.memory("target"), 0)
    mask = m.mask_from_bits(given.load("mask"), surface.BLOCK)
    pixels = surface.one_block(m, given.load("x"), given.load("y"))
    z = m.load_block(f32, surface.BLOCK, given.memory, BLOCK.offset("z"))
    passed = DepthTest(m, state, numbers, _Memory(m, context, bits)).run(
        pixels, given.load("layer"), z, given.load("back_facing"), given.load("viewport"), mask, mask)
    m.give(m.scalar(m.bits_from_mask(passed)))
    m.frame(EARLY, u32, [Parameter("context"), Parameter("target"), Parameter("block")])
    return m.module.text()


def held_text(state: DepthState, bits: int) -> str:
    """The IR of `void f(context, target, block)` (three_d.h: held_function)."""
    m = LlvmMachine()
    context, target, block = (m.pointer(name) for name in ("context", "target", "block"))
    given, numbers = RecordView(m, BLOCK, block.memory("block"), 0), RecordView(m, DEPTH, target.memory("target"), 0)
    pixels = surface.one_block(m, given.load("x"), given.load("y"))
    mask = m.mask_from_bits(given.load("mask"), surface.BLOCK)
    depths, stencils = DepthTest(m, state, numbers, _Memory(m, context, bits)).held(pixels, given.load("layer"), mask)
    block.at(ctypes.sizeof(DepthBlock)).store(depths, align=4)
    block.at(ctypes.sizeof(DepthBlock) + 4 * surface.BLOCK).store(stencils, align=4)
    m.give()
    m.frame(HELD, None, [Parameter("context"), Parameter("target"), Parameter("block")])
    return m.module.text()


@once
def held_function(state: DepthState, bits: int) -> jit.LoadedCode:
    check(state)
    return _load(HELD, held_text, state, bits)


@once
def early_function(state: DepthState, bits: int) -> jit.LoadedCode:
    check(state)
    return _load(EARLY, early_text, state, bits)


class EarlyTests:
    """Early tests of a draw: the addresses of a depth_function and of its target's record, which lives as long as this."""

    def __init__(self, target: DepthTarget, bits: int) -> None:
        self.code = early_function(target.state, bits)
        self.record = DepthRecord()
        fill_depth(self.record, target)
        self.function, self.target = self.code.address(EARLY), ctypes.addressof(self.record)


class HeldDepth:
    """Reads what depth and stencil buffers hold, for payloads: the addresses of a held_function and of its target's record."""

    def __init__(self, target: DepthTarget, bits: int) -> None:
        self.code, self.record = held_function(target.state, bits), DepthRecord()
        fill_depth(self.record, target)
        self.function, self.target = self.code.address(HELD), ctypes.addressof(self.record)


def early_depth(target: DepthTarget, bits: int) -> EarlyTests:
    """Early depth and stencil tests for a tile loop; `bits` is the width of the space's addresses."""
    return EarlyTests(target, bits)
