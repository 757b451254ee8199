"""Compiled operations on texels (operations.py), which kernels call by address.

A function is compiled for a kind of surface and, where it samples, for a sampler state; sizes and addresses are read from its Picture.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from dataclasses import fields, replace
from typing import Any, NamedTuple

from softgen.errors import SoftgenError
from softgen.lanes import jit
from softgen.lanes.cache import Cache, default_folder
from softgen.lanes.llvm import LlvmMachine
from softgen.lanes.llvm_region import LEAVE, table_region
from softgen.lanes.llvm_scalar import Parameter
from softgen.lanes.record import RecordLayout
from softgen.lanes.types import u32, u64
from softgen.memory import guard
from softgen.shared_functions.bindings import NUMBERS, TEXTURED, Bindings, Picture
from softgen.shared_functions.context import HEAD
from softgen.shared_functions.texture.operations import OPERATIONS
from softgen.surface.image import SurfaceImage

NAME = "texels"
PICTURE = RecordLayout.of(Picture)
GIVEN = {"read": 4, "write": 8, "load": 4, "sample": 5}  # parameters
COMPILE_AFTER = 40  # messages of a kind that the interpreter executes before code is made for them: compiling takes as long


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

    def fill(self, index: int, what: str, lanes: int, sampler: int, image: SurfaceImage, how: Any, hurry: bool = False) -> bool:
        """Fill in the function for a surface, if it exists or is due; False where the interpreter must execute the message."""
        place, slot = (index, what, lanes, sampler), TEXTURED[what, lanes] + sampler
        entry = self.bindings.pictures[index]
        if place in self.refused or entry.functions[slot]:  # the side exit had another cause
            return False
        if image.levels > 1 or image.level:
            self.refused.add(place)
            return False
        try:
            code = function(TexelForm(what, lanes, replace(image, **_NO_NUMBERS), how, self.bits), hurry)
        except SoftgenError:  # the interpreter reports what is wrong
            self.refused.add(place)
            return False
        if code is None:
            return False
        for name in NUMBERS:
            setattr(entry, name, getattr(image, name))
        entry.functions[slot] = code.address(NAME)  # last: other workers may be reading the entry
        return True


_NO_NUMBERS: dict[str, Any] = dict.fromkeys(NUMBERS, 0)
_made: dict[TexelForm, jit.LoadedCode] = {}  # never freed: kernels may be about to call it
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
        _made[form] = jit.load(ir, (NAME,), imports={LEAVE: leave})
    return _made[form]


def text(what: str, lanes: int, image: SurfaceImage, how: Any, bits: int) -> str:
    m = LlvmMachine()
    context, picture, arguments = (m.pointer(name) for name in ("context", "picture", "arguments"))
    given = [arguments.at(4 * lanes * number).load_lanes(u32, lanes, align=4) for number in range(GIVEN[what])]
    mask = m.argument(u32, "mask").mask(lanes)
    numbers = {name: picture.field(PICTURE, name).load(u64, align=4) for name in NUMBERS}
    note = context.field(HEAD, "mask")
    memory = table_region(m, context.field(HEAD, "table").load_pointer(align=4), numbers["base"], note, bits, name="memory")
    values: dict[str, Any] = {name: number.lane() for name, number in numbers.items()}
    for number, value in enumerate(OPERATIONS[what](m, replace(image, **values), how, memory, given, mask)):
        place = arguments.at(4 * lanes * number)
        place.store(m.bitcast(value, u32), align=4)
    m.give()
    m.frame(NAME, None, [Parameter("context"), Parameter("picture"), Parameter("arguments"), Parameter("mask", u32)])
    return m.module.text()


assert set(NUMBERS) <= {one.name for one in fields(SurfaceImage)}
