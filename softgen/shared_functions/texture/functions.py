"""Compiled operations on texels (operations.py), which kernels call by address.

A function is compiled for a kind of surface and, where it samples, for a sampler state; sizes and addresses are read from its Picture.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from collections import Counter
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any, NamedTuple

from softgen.errors import SoftgenError
from softgen.lanes import jit
from softgen.lanes.cache import Cache, default_folder
from softgen.lanes.llvm import LlvmMachine
from softgen.lanes.llvm_region import LEAVE, flat_region, table_region
from softgen.lanes.llvm_scalar import HostPointer, Parameter, Scalar
from softgen.lanes.record import RecordLayout
from softgen.lanes.types import u32, u64
from softgen.lanes.value import Region
from softgen.memory import guard
from softgen.shared_functions.bindings import (
    LEVELS,
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
from softgen.shared_functions.texture.operations import OPERATIONS, PARAMETERS
from softgen.surface import texel
from softgen.surface.image import SurfaceImage
from softgen.surface.levels import LevelTable

NAME = "texels"
PICTURE = RecordLayout.of(Picture)
# Messages of a kind, the first that is compiled included: one takes the interpreter about 15 ms, compiling takes some tenths of a second,
# and a picture has thousands.
COMPILE_AFTER = 2
PART = 1 << 32  # bytes that have one entry in the table of an address space


class TexelForm(NamedTuple):
    """What a function is specialised for: an image without its numbers, and how it is sampled."""

    what: str
    lanes: int
    one: SurfaceImage
    how: Any
    bits: int  # of an address


class Pictures:
    """Fills in the Pictures of a binding table, as far as compiled code has used them."""

    def __init__(self, bindings: Bindings, bits: int) -> None:
        self.bindings, self.bits = bindings, bits
        self.refused: set[tuple[int, str, int, int]] = set()
        self._samples: dict[tuple[int, int], SampleFunctions] = {}  # by surface and sampler

    def fill(self, index: int, what: str, lanes: int, sampler: int, image: SurfaceImage, how: Any, hurry: bool = False) -> bool:
        """Fill in the function for an entry, if it exists or is due; False where the interpreter must execute the message. `hurry`: it is
        due."""
        place = index, what, lanes, sampler
        if place in self.refused or self.address(*place):  # the side exit had another cause
            return False
        try:
            code = function(TexelForm(what, lanes, generic(image), how, self.bits), hurry)
        except SoftgenError:  # the interpreter reports what is wrong
            self.refused.add(place)
            return False
        if code is None:
            return False
        self._describe(self.bindings.pictures[index], image)
        self._enter(code.address(NAME), *place)  # last: other workers may be reading the entry
        return True

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
    def _describe(entry: Picture, image: SurfaceImage) -> None:
        for name in NUMBERS:
            setattr(entry, name, getattr(image, name))
        entry.at[:] = image.at
        if image.format.space == "srgb":
            entry.linear = ctypes.addressof(texel.linear_table())
        if image.mipmapped:
            held = _table_bytes(image)
            ctypes.memmove(ctypes.addressof(entry) + PICTURE.offset(f"level_{TABLES[0]}"), held, len(held))


@lru_cache(1024)
def _table_bytes(image: SurfaceImage) -> bytes:
    """The level table of an image as a Picture has it."""
    entries = [number & u32.highest for name in TABLES for number in getattr(image.table, name)]
    return struct.pack(f"{len(entries)}I", *entries)


@lru_cache(1024)
def generic(image: SurfaceImage) -> SurfaceImage:
    """The image without what code reads at run time: images of a kind share their code."""
    at = (1, 1) if image.moved else (0, 0)  # some, or none
    return replace(image, **_NO_NUMBERS, levels=0 if image.mipmapped else 1, at=at, align=(1, 1))


_NO_NUMBERS: dict[str, Any] = dict.fromkeys((name for name in NUMBERS if name != "levels"), 0)
_made: dict[TexelForm, jit.LoadedCode] = {}  # never freed: kernels may be about to call it
_making = threading.Lock()
_asked: Counter[TexelForm] = Counter()


def function(form: TexelForm, hurry: bool = False) -> jit.LoadedCode | None:
    """The code of a form: compiled before, cached, or asked for often enough; None otherwise."""
    if form not in _made:
        _asked[form] += 1
        first = _asked[form] == 1
        if not first and _asked[form] < COMPILE_AFTER and not hurry:
            return None
        ir = text(*form)
        if not hurry and _asked[form] < COMPILE_AFTER and Cache(default_folder()).load(jit.key(ir, jit.host())) is None:
            return None
        leave = ctypes.cast(guard.library().guard_leave, ctypes.c_void_p).value
        assert leave
        with _making:
            if form not in _made:
                _made[form] = jit.load(ir, (NAME,), imports={LEAVE: leave})
    return _made[form]


def text(what: str, lanes: int, image: SurfaceImage, how: Any, bits: int) -> str:
    m = LlvmMachine()
    context, picture, arguments = (m.pointer(name) for name in ("context", "picture", "arguments"))
    given = [arguments.at(4 * lanes * number).load_lanes(u32, lanes, align=4) for number in range(PARAMETERS[what])]
    mask = m.argument(u32, "mask").mask(lanes)
    numbers = {name: picture.field(PICTURE, name).load(u64, align=4) for name in NUMBERS}
    memory = _memory(m, context, numbers["base"], bits, image.near)
    found = OPERATIONS[what](m, _read(m, picture, image, numbers), how, memory, given, mask)
    for number, value in enumerate(found):
        arguments.at(4 * lanes * number).store(m.bitcast(value, u32), align=4)
    m.give()
    m.frame(NAME, None, [Parameter("context"), Parameter("picture"), Parameter("arguments"), Parameter("mask", u32)])
    return m.module.text()


def _memory(m: LlvmMachine, context: HostPointer, base: Scalar, bits: int, near: bool) -> Region:
    """Graphics memory from the image's base on: host memory in one piece where the image is in one part of the address space."""
    note, table = context.field(HEAD, "mask"), context.field(HEAD, "table").load_pointer(align=4)
    if not near:
        return table_region(m, table, base, note, bits, name="memory")
    address = base & (1 << bits) - 1
    low = address & PART - 1
    host = table.at((address >> 32) << 3).load(u64) + low
    return flat_region(m, host, m.number(u64, PART) - low, note, name="memory", scattered=True)


def _read(m: LlvmMachine, picture: HostPointer, image: SurfaceImage, numbers: dict[str, Scalar]) -> SurfaceImage:
    """The image with its numbers and tables as the Picture has them."""
    values: dict[str, Any] = {name: number.lane() for name, number in numbers.items()}
    if image.moved:
        values["at"] = tuple(picture.at(PICTURE.offset("at") + 8 * axis).load(u64, align=4).lane() for axis in (0, 1))
    if image.mipmapped:
        values["run_time"] = LevelTable(*(picture.field(PICTURE, f"level_{name}").load_lanes(u32, LEVELS, align=4) for name in TABLES))
    else:
        values |= {"levels": 1, "level": 0}
    if image.format.space == "srgb":
        values["linear"] = picture.field(PICTURE, "linear").load(u64, align=4).lane()
    return replace(image, **values)


assert set(NUMBERS) <= {one.name for one in fields(SurfaceImage)}
