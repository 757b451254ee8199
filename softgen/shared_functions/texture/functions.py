"""Functions for operations on texels (operations.py), which kernels call by address: bytecode or compiled code (lanes/compile/tiers.py).

A function is made for a kind of surface and, where it samples, for a sampler state; sizes and addresses are read from its Picture.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields, replace
from functools import cache, lru_cache
from typing import Any, NamedTuple, Protocol

from softgen.bits.formats import Format
from softgen.errors import SoftgenError
from softgen.lanes.bytecode.machine import BytecodeMachine
from softgen.lanes.bytecode.program import BytecodeProgram
from softgen.lanes.compile import jit
from softgen.lanes.compile.compile_policy import in_background
from softgen.lanes.compile.tiers import TieredFunction
from softgen.lanes.llvm.machine import LlvmMachine
from softgen.lanes.llvm.region import LEAVE, flat_region, table_region
from softgen.lanes.llvm.scalar import LlvmPointer, LlvmScalar, Parameter
from softgen.lanes.machine import Machine
from softgen.lanes.record import RecordLayout, RecordView
from softgen.lanes.types import u32, u64
from softgen.lanes.value import Memory, Region, Value
from softgen.memory import guard
from softgen.shared_functions.bindings import (
    CONTROL,
    LOAD_CONTROL,
    NUMBERS,
    SAMPLING,
    TABLES,
    Bindings,
    Picture,
    SampleFunctions,
    plain_slot,
    sampling_slot,
)
from softgen.shared_functions.context import HEAD
from softgen.shared_functions.texture.operations import OPERATIONS, PARAMETERS, SamplerNumbers, operated, with_clear
from softgen.surface import texel
from softgen.surface.image import SurfaceImage
from softgen.surface.levels import LevelTable
from softgen.surface.samples import SampleControl

NAME = "texels"
MEMORIES = ("picture", "sampler", "arguments")  # what arguments of a function point at, after the context
PICTURE, SAMPLE_FUNCTIONS = RecordLayout.of(Picture), RecordLayout.of(SampleFunctions)
# Messages of a kind, the first that is compiled included: one takes the interpreter about 15 ms, compiling takes some tenths of a second,
# and a picture has thousands.
COMPILE_AFTER = 2
PART = 1 << 32  # bytes that have one entry in the table of an address space


class SamplerForm(Protocol):
    """A sampler state as far as functions are compiled for it."""

    def generic(self) -> SamplerForm:
        """The state without its numbers: states of a kind share their code."""
        ...

    def numbers(self, format: Format) -> SamplerNumbers: ...

    def with_numbers(self, numbers: SamplerNumbers) -> SamplerForm:
        """The state with numbers that a program reads when it runs."""
        ...


class TexelForm(NamedTuple):
    """What a function is specialised for: an image without its numbers, and how it is sampled."""

    what: str
    lanes: int
    image: SurfaceImage
    how: Any
    bits: int  # of an address


class Pictures:
    """Fills in the Pictures of a binding table, as far as compiled code has used them."""

    def __init__(self, bindings: Bindings, bits: int) -> None:
        self.bindings, self.bits = bindings, bits
        self.refused: set[tuple[int, str, int, int]] = set()
        self._samples: dict[tuple[int, int], SampleFunctions] = {}  # by surface and sampler
        self._images: dict[int, dict[str, SurfaceImage]] = {}  # by index and operation: those that functions were made for

    def fill(self, index: int, what: str, lanes: int, sampler: int, image: SurfaceImage, how: Any, hurry: bool = False) -> bool:
        """Fill in the function for an entry, if it exists or is due; False where the interpreter must execute the message. `hurry`: it is
        due."""
        place = index, what, lanes, sampler
        if place in self.refused or self.address(*place):  # the side exit had another cause
            return False
        try:
            form = generic(operated(what, image), what in SAMPLING)
            code = function(TexelForm(what, lanes, form, how.generic() if how else None, self.bits), hurry)
        except SoftgenError:  # the interpreter reports what is wrong
            self.refused.add(place)
            return False
        if code is None:
            return False
        self._images.setdefault(index, {})[what] = form
        self._describe(self.bindings.pictures[index], image)
        if how:
            self._tell(self._samples.setdefault((index, sampler), SampleFunctions()), image, how)
        self._enter(code.address, *place)  # last: other workers may be reading the entry
        return True

    def operations(self, index: int) -> list[str]:
        """The operations that an entry has functions for."""
        return list(self._images.get(index, ()))

    def fits(self, index: int, what: str, image: SurfaceImage) -> bool:
        """Whether the functions of an entry for an operation are right for another image: it differs in numbers only."""
        return generic(operated(what, image), what in SAMPLING) == self._images[index][what]

    def fits_levels(self, index: int, image: SurfaceImage) -> bool:
        """Whether the functions of an entry are right for an image's levels, one or several."""
        return all(held.levels == (0 if image.mipmapped else 1) for held in self._images.get(index, {}).values())

    def replace(self, index: int, image: SurfaceImage) -> None:
        """Another image, which fits."""
        self._describe(self.bindings.pictures[index], image)

    def address(self, index: int, what: str, lanes: int, sampler: int) -> int:
        """The address of a function; 0 where there is none."""
        if what not in SAMPLING:
            return int(self.bindings.pictures[index].functions[plain_slot(what, lanes)])
        held = self._samples.get((index, sampler))
        return int(held.functions[sampling_slot(what, lanes)]) if held else 0

    def _enter(self, address: int, index: int, what: str, lanes: int, sampler: int) -> None:
        entry = self.bindings.pictures[index]
        if what not in SAMPLING:
            entry.functions[plain_slot(what, lanes)] = address
            return
        held = self._samples.setdefault((index, sampler), SampleFunctions())
        held.functions[sampling_slot(what, lanes)] = address
        entry.samplers[sampler] = ctypes.addressof(held)

    @staticmethod
    def _tell(held: SampleFunctions, image: SurfaceImage, how: SamplerForm) -> None:
        numbers = how.numbers(image.format)
        held.lods[:], held.bias, held.outside[:] = numbers.lods, numbers.bias, numbers.outside

    @staticmethod
    def _describe(entry: Picture, image: SurfaceImage) -> None:
        for name in NUMBERS:
            setattr(entry, name, getattr(image, name))
        entry.at[:] = image.at
        if image.control is not None:
            for name in CONTROL:
                setattr(entry, f"control_{name}", getattr(image.control, name))
            entry.control_clear[:] = image.control.clear
        if image.format.space == "srgb":
            entry.linear = ctypes.addressof(texel.linear_table())
        elif image.entries:
            entry.linear = ctypes.addressof(_palette(image.entries))
        if image.mipmapped:
            held = _table_bytes(image)
            ctypes.memmove(ctypes.addressof(entry) + PICTURE.offset(f"level_{TABLES[0]}"), held, len(held))


@lru_cache(1024)
def _table_bytes(image: SurfaceImage) -> bytes:
    """The level table of an image as a Picture has it."""
    entries = [number & u32.highest for name in TABLES for number in getattr(image.table, name)]
    return struct.pack(f"{len(entries)}I", *entries)


@cache
def _palette(entries: tuple[int, ...]) -> ctypes.Array[ctypes.c_uint32]:
    """A palette for compiled programs; never freed: one may be about to read it."""
    return (ctypes.c_uint32 * len(entries))(*entries)


@lru_cache(1024)
def generic(image: SurfaceImage, sampled: bool = False) -> SurfaceImage:
    """The image without what code reads at run time: images of a kind share their code. `sampled`: slices are clamped, so that an array of
    one, which drivers make of every image, is none."""
    at = (1, 1) if image.moved else (0, 0)  # some, or none
    is_array = image.is_array and not (sampled and image.depth == 1 and image.kind in ("1d", "2d"))
    control = None if image.control is None else SampleControl(0, 0, 0, clear_at=int(image.control.clear_at > 0))
    return replace(image, **_NO_NUMBERS, entries=(), tail=None, levels=0 if image.mipmapped else 1, at=at, align=(1, 1), is_array=is_array,
                   control=control)  # fmt: skip


_NO_NUMBERS: dict[str, Any] = dict.fromkeys((name for name in NUMBERS if name != "levels"), 0)
_made: dict[TexelForm, TieredFunction] = {}  # never freed: kernels may be about to call it
_making = threading.Lock()
_asked: Counter[TexelForm] = Counter()


def function(form: TexelForm, hurry: bool = False) -> TieredFunction | None:
    """The function of a form, compiled if there is a `hurry`. Where functions are compiled at once, None unless it is cached or was asked
    for often enough."""
    if form not in _made:
        _asked[form] += 1
        if not in_background() and not hurry and _asked[form] < COMPILE_AFTER and not (_asked[form] == 1 and is_cached(form)):
            return None
        with _making:
            if form not in _made:
                _made[form] = TieredFunction(NAME, lambda: bytecode(*form), lambda: compiled(form), lambda: is_cached(form), form)
    if hurry:
        with suppress(SoftgenError):  # it stays bytecode
            _made[form].promote()
    return _made[form]


def is_cached(form: TexelForm) -> bool:
    """Whether a function was compiled before."""
    return jit.has_form(form, (NAME,))


def compiled(form: TexelForm) -> jit.LoadedCode:
    """The code of a function, out of the cache or compiled now."""
    leave = ctypes.cast(guard.library().guard_leave, ctypes.c_void_p).value
    assert leave
    return jit.load_form(form, lambda: text(*form), (NAME,), {LEAVE: leave})


def text(what: str, lanes: int, image: SurfaceImage, how: Any, bits: int) -> str:
    """The IR of a function."""
    m = LlvmMachine()
    context, *pointers = (m.pointer(name) for name in ("context", *MEMORIES))
    memories = [pointer.memory(name) for pointer, name in zip(pointers, MEMORIES, strict=True)]

    def memory(base: Value, near: bool = image.near) -> Region:
        return _memory(m, context, m.scalar(base), bits, near)

    _operate(m, what, lanes, image, how, memory, memories, m.argument(u32, "mask").lane())
    m.give()
    m.code.frame(NAME, None, [*(Parameter(name) for name in ("context", *MEMORIES)), Parameter("mask", u32)])
    return m.ir.module.text()


def bytecode(what: str, lanes: int, image: SurfaceImage, how: Any, bits: int) -> BytecodeProgram:
    """The same as bytecode."""
    m = BytecodeMachine(bits)
    memories = [m.memory_of(number, name) for number, name in enumerate(MEMORIES, 1)]
    _operate(m, what, lanes, image, how, lambda base, near=False: m.graphics_memory(base), memories, m.argument(len(MEMORIES) + 1, u32))
    return m.program(HEAD.offset("table"), HEAD.offset("mask"))


def _operate(m: Machine, what: str, lanes: int, image: SurfaceImage, how: Any, memory: Callable[..., Region],
             memories: list[Memory], mask: Value) -> None:  # fmt: skip
    """The lane program of a function."""
    picture, sampler, arguments = memories
    given = [m.load_block(u32, lanes, arguments, 4 * lanes * number) for number in range(PARAMETERS[what])]
    view = RecordView(m, PICTURE, picture, 0)
    numbers = {name: view.load(f"control_{name}" if what == LOAD_CONTROL and name in CONTROL else name) for name in NUMBERS}
    how = how.with_numbers(_read_sampler(RecordView(m, SAMPLE_FUNCTIONS, sampler, 0))) if how else None
    image = _read(view, image, numbers)
    if image.control is not None and image.control.clear_at:
        image = with_clear(m, image, memory(view.load("control_clear_at"), near=False))
    found = OPERATIONS[what](m, image, how, memory(numbers["base"]), given, m.mask_from_bits(mask, lanes))
    for number, value in enumerate(found):
        m.store_block(m.bitcast(value, u32), arguments, 4 * lanes * number)


def _memory(m: LlvmMachine, context: LlvmPointer, base: LlvmScalar, bits: int, near: bool) -> Region:
    """Graphics memory from the image's base on: host memory in one piece where the image is in one part of the address space."""
    note, table = context.field(HEAD, "mask"), context.field(HEAD, "table").load_pointer(align=4)
    if not near:
        return table_region(m, table, base, note, bits, name="memory")
    address = base & (1 << bits) - 1
    low = address & PART - 1
    host = table.at((address >> 32) << 3).load(u64) + low
    return flat_region(m, host, m.number(u64, PART) - low, note, name="memory", scattered=True)


def _read_sampler(sampler: RecordView) -> SamplerNumbers:
    return SamplerNumbers(tuple(sampler.load("lods", element=number) for number in range(2)), sampler.load("bias"),
                          tuple(sampler.load("outside", element=number) for number in range(4)))  # fmt: skip


def _read(picture: RecordView, image: SurfaceImage, numbers: dict[str, Value]) -> SurfaceImage:
    """The image with its numbers and tables as the Picture has them."""
    values: dict[str, Any] = dict(numbers)
    if image.moved:
        values["at"] = tuple(picture.load("at", element=axis) for axis in (0, 1))
    if image.mipmapped:
        values["run_time"] = LevelTable(*(picture.load(f"level_{name}") for name in TABLES))
    else:
        values |= {"levels": 1, "level": 0}
    if image.format.space == "srgb" or texel.is_paletted(image.format):
        values["linear"] = picture.load("linear")
    if image.control is not None:
        clear = tuple(picture.load("control_clear", element=channel) for channel in range(4))
        values["control"] = image.control._replace(clear=clear)
    return replace(image, **values)


assert set(NUMBERS) <= {field.name for field in fields(SurfaceImage)}
