"""Functions of the pixel backend with an address: writes to render targets, which kernels call, and early depth tests.

A write is `void f(context, record, pixel, arguments, mask, flags)`: `record` is a TargetRecord, `pixel` a PixelDispatch; arguments are
vectors of 32-bit lanes one after another (SLOTS); flags are the channel of lane 0, and LAST. A read is alike: it stores red, green, blue
and alpha where arguments would be. They are bytecode or compiled code (lanes/compile/tiers.py).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from softgen.lanes.bytecode.machine import BytecodeMachine
from softgen.lanes.bytecode.program import BytecodeProgram
from softgen.lanes.compile import jit
from softgen.lanes.compile.tiers import TieredFunction
from softgen.lanes.llvm.machine import LlvmMachine
from softgen.lanes.llvm.region import LEAVE, table_region
from softgen.lanes.llvm.scalar import LlvmPointer, Parameter
from softgen.lanes.machine import Machine
from softgen.lanes.once import once
from softgen.lanes.record import RecordLayout, RecordView
from softgen.lanes.types import LaneType, f32, u32
from softgen.lanes.value import Memory, Region, Value
from softgen.memory import guard
from softgen.shared_functions.context import HEAD
from softgen.shared_functions.pixel_backend import surface
from softgen.shared_functions.pixel_backend.blocks_h import DepthBlock, HeldBlock
from softgen.shared_functions.pixel_backend.depth import DepthTest, check
from softgen.shared_functions.pixel_backend.read import ReadForm, TargetRead
from softgen.shared_functions.pixel_backend.records import DEPTH, DepthRecord, fill_depth
from softgen.shared_functions.pixel_backend.sample_depth import early_samples
from softgen.shared_functions.pixel_backend.sample_write import target_write
from softgen.shared_functions.pixel_backend.state import DepthState, DepthTarget
from softgen.shared_functions.pixel_backend.write import Sources, TargetForm

CHANNELS = 4
COLOR, SECOND, ALPHA, DEPTH_SLOT, STENCIL, OMASK, SLOTS = 0, 4, 8, 9, 10, 11, 12  # arguments of a write
LAST = 1 << 8  # flag: the write to the last target


BLOCK = RecordLayout.of(DepthBlock)


class _Memory:
    """Graphics memory of a function, through the table of its context."""

    def __init__(self, m: LlvmMachine, context: LlvmPointer, bits: int) -> None:
        self.m, self.bits = m, bits
        self.table, self.note = context.field(HEAD, "table").load_pointer(align=4), context.field(HEAD, "mask")

    def __call__(self, base: Value) -> Region:
        return table_region(self.m, self.table, self.m.scalar(base), self.note, self.bits, name="memory")


Form = TypeVar("Form", bound=Hashable)
GraphicsMemory = Callable[[Value], Region]


class PixelFunction(Generic[Form]):
    """A kind of functions: their lane program over the memories that their arguments point at, from the second argument on, and over the
    numbers after those; it returns the function's result, if there is one."""

    def __init__(self, name: str, program: Callable[..., Value | None], memories: tuple[str, ...], numbers: tuple[str, ...] = (),
                 result: LaneType | None = None) -> None:  # fmt: skip
        self.name, self.program, self.memories, self.numbers, self.result = name, program, memories, numbers, result

    def text(self, form: Form, bits: int) -> str:
        """The IR of a function; `bits` is the width of addresses."""
        m = LlvmMachine()
        memories = [m.pointer(name).memory(name) for name in self.memories]
        numbers = [m.argument(u32, name).lane() for name in self.numbers]
        found = self.program(m, form, _Memory(m, m.pointer("context"), bits), *memories, *numbers)
        m.give(*([] if found is None else [m.scalar(found)]))
        m.code.frame(self.name, self.result,
                [*(Parameter(name) for name in ("context", *self.memories)), *(Parameter(name, u32) for name in self.numbers)])
        return m.ir.module.text()

    def bytecode(self, form: Form, bits: int) -> BytecodeProgram:
        """The same as bytecode."""
        m = BytecodeMachine(bits)
        memories = [m.memory_of(number, name) for number, name in enumerate(self.memories, 1)]
        numbers = [m.argument(number, u32) for number, _ in enumerate(self.numbers, 1 + len(memories))]
        return m.program(HEAD.offset("table"), HEAD.offset("mask"), self.program(m, form, m.graphics_memory, *memories, *numbers))

    def function(self, form: Form, bits: int) -> TieredFunction:
        leave = ctypes.cast(guard.library().guard_leave, ctypes.c_void_p).value
        assert leave
        return TieredFunction(self.name, lambda: self.bytecode(form, bits),
                              lambda: jit.load_form((form, bits), lambda: self.text(form, bits), (self.name,), {LEAVE: leave}),
                              lambda: jit.has_form((form, bits), (self.name,)), (form, bits))  # fmt: skip


def _write(m: Machine, form: TargetForm, memory: GraphicsMemory, record: Memory, pixel: Memory, arguments: Memory, mask: Value,
           flags: Value) -> None:  # fmt: skip
    def lane(slot: int) -> Value:
        return m.load_block(u32, form.lanes, arguments, 4 * form.lanes * slot)

    sources = Sources([lane(COLOR + channel) for channel in range(4)])
    if form.dual:
        sources.second = [lane(SECOND + channel) for channel in range(4)]
    sources.alpha, sources.depth, sources.stencil, sources.omask = (
        lane(slot) if present else None
        for slot, present in ((ALPHA, form.alpha), (DEPTH_SLOT, form.depth), (STENCIL, form.stencil), (OMASK, form.omask)))
    write = target_write(m, form, record, pixel, memory, flags & LAST - 1, flags >= LAST)
    write.write(sources, m.mask_from_bits(mask, form.lanes))


def _read(m: Machine, form: ReadForm, memory: GraphicsMemory, record: Memory, pixel: Memory, arguments: Memory, mask: Value,
          first: Value) -> None:  # fmt: skip
    read = TargetRead(m, form, record, pixel, memory, first)
    for channel, value in enumerate(read.read(m.mask_from_bits(mask, form.lanes))):
        m.store_block(value, arguments, 4 * form.lanes * channel)


def _early(m: Machine, state: DepthState, memory: GraphicsMemory, target: Memory, block: Memory) -> Value:
    """`uint32_t f(context, target, block)` (blocks.h: depth_function)."""
    if state.samples > 1:
        return early_samples(m, state, memory, target, block)
    given, numbers = RecordView(m, BLOCK, block, 0), RecordView(m, DEPTH, target, 0)
    mask = m.mask_from_bits(given.load("mask"), surface.BLOCK)
    pixels = surface.one_block(m, given.load("x"), given.load("y"))
    z = m.load_block(f32, surface.BLOCK, given.memory, BLOCK.offset("z"))
    passed = DepthTest(m, state, numbers, memory).run(
        pixels, given.load("layer"), z, given.load("back_facing"), given.load("viewport"), mask, mask)
    return m.bits_from_mask(passed)


def _held(m: Machine, state: DepthState, memory: GraphicsMemory, target: Memory, block: Memory) -> None:
    """`void f(context, target, block)` (blocks.h: held_function)."""
    given, numbers = RecordView(m, BLOCK, block, 0), RecordView(m, DEPTH, target, 0)
    pixels = surface.one_block(m, given.load("x"), given.load("y"))
    mask = m.mask_from_bits(given.load("mask"), surface.BLOCK)
    found = DepthTest(m, state, numbers, memory).held(pixels, given.load("layer"), mask)
    for place, value in zip((HeldBlock.depth, HeldBlock.stencil), found, strict=True):
        m.store_block(value, block, place.offset)


_MESSAGE = ("record", "pixel", "arguments"), ("mask", "flags")
WRITES: PixelFunction[TargetForm] = PixelFunction("target_write", _write, *_MESSAGE)
READS: PixelFunction[ReadForm] = PixelFunction("target_read", _read, *_MESSAGE)
EARLY: PixelFunction[DepthState] = PixelFunction("early_depth", _early, ("target", "block"), result=u32)
HELD: PixelFunction[DepthState] = PixelFunction("held_depth", _held, ("target", "block"))


@once  # never freed: kernels may be about to call it
def write_function(form: TargetForm, bits: int) -> TieredFunction:
    """The code of a write; raises Unsupported for what is not simulated."""
    form.check()
    return WRITES.function(form, bits)


@once
def read_function(form: ReadForm, bits: int) -> TieredFunction:
    """The code of a read; raises Unsupported for what is not simulated."""
    form.check()
    return READS.function(form, bits)


@once
def held_function(state: DepthState, bits: int) -> TieredFunction:
    check(state)
    return HELD.function(state, bits)


@once
def early_function(state: DepthState, bits: int) -> TieredFunction:
    check(state)
    return EARLY.function(state, bits)


class EarlyTests:
    """Early tests of a draw: the addresses of a depth_function and of its target's record, which lives as long as this."""

    def __init__(self, target: DepthTarget, bits: int) -> None:
        self.code = early_function(target.state, bits)
        self.record = DepthRecord()
        fill_depth(self.record, target)
        self.function, self.target = self.code.address, ctypes.addressof(self.record)


class HeldDepth:
    """Reads what depth and stencil buffers hold, for payloads: the addresses of a held_function and of its target's record."""

    def __init__(self, target: DepthTarget, bits: int) -> None:
        self.code, self.record = held_function(target.state, bits), DepthRecord()
        fill_depth(self.record, target)
        self.function, self.target = self.code.address, ctypes.addressof(self.record)


def early_depth(target: DepthTarget, bits: int) -> EarlyTests:
    """Early depth and stencil tests for a tile loop; `bits` is the width of the space's addresses."""
    return EarlyTests(target, bits)
