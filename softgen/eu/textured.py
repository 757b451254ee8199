"""Functions that do something to the texels of a surface (shared_functions/texture.py), for compiled kernels to call.

A function is made for a kind of surface and, where it samples, for a sampler state. What numbers an image has, it finds in its Picture.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from dataclasses import fields, replace
from typing import Any, NamedTuple

from softgen.errors import SoftgenError
from softgen.eu.thread.block import NUMBERS, TEXTURED, Bindings, Context, Picture, offset
from softgen.lanes import jit
from softgen.lanes.cache import Cache, default_folder
from softgen.lanes.llvm import LlvmMachine
from softgen.lanes.llvm_region import LEAVE, Table, region
from softgen.lanes.types import bool_, u32, u64
from softgen.lanes.value import Value
from softgen.memory import guard
from softgen.shared_functions.texture import OPERATIONS
from softgen.surface.image import SurfaceImage

NAME = "texels"
GIVEN = {"read": 4, "write": 8, "load": 4, "sample": 5}  # parameters
PATIENCE = 40  # messages of a kind that the reference answers before code is made for them: that takes as long


class Form(NamedTuple):
    """All that code is made for: an image without its numbers, and how it is sampled."""

    what: str
    lanes: int
    one: SurfaceImage
    how: Any
    bits: int  # of an address


class Pictures:
    """The surfaces of a dispatch as far as compiled code asked for them."""

    def __init__(self, bindings: Bindings, bits: int) -> None:
        self.bindings, self.bits = bindings, bits
        self.refused: set[tuple[int, str, int, int]] = set()

    def fill(self, index: int, what: str, lanes: int, sampler: int, one: SurfaceImage, how: Any, hurry: bool = False) -> bool:
        """Has the function for a surface, if it is there or due; False where the reference must answer."""
        place, slot = (index, what, lanes, sampler), TEXTURED[what, lanes] + sampler
        entry = self.bindings.pictures[index]
        if place in self.refused or entry.functions[slot]:  # it was something else that compiled code left for
            return False
        if one.levels > 1 or one.level:
            self.refused.add(place)
            return False
        try:
            code = function(Form(what, lanes, replace(one, **_NO_NUMBERS), how, self.bits), hurry)
        except SoftgenError:  # the reference will say what is wrong
            self.refused.add(place)
            return False
        if code is None:
            return False
        for name in NUMBERS:
            setattr(entry, name, getattr(one, name))
        entry.functions[slot] = code.address(NAME)  # last: others may be looking
        return True


_NO_NUMBERS: dict[str, Any] = dict.fromkeys(NUMBERS, 0)
_made: dict[Form, jit.Code] = {}  # for as long as the process lives: kernels may be about to call it
_asked: Counter[Form] = Counter()


def function(form: Form, hurry: bool = False) -> jit.Code | None:
    """The code of a form: made before, or in the cache, or asked for often enough; None if none of these."""
    if form not in _made:
        _asked[form] += 1
        first = _asked[form] == 1
        if not first and _asked[form] < PATIENCE and not hurry:
            return None
        ir = text(*form)
        if not hurry and _asked[form] < PATIENCE and Cache(default_folder()).load(jit.key(ir, jit.host())) is None:
            return None
        leave = ctypes.cast(guard.library().guard_leave, ctypes.c_void_p).value
        assert leave
        _made[form] = jit.load(ir, (NAME,), imports={LEAVE: leave})
    return _made[form]


def text(what: str, lanes: int, one: SurfaceImage, how: Any, bits: int) -> str:
    m = LlvmMachine()

    def load(kind: str, base: str, place: int) -> str:
        return m.emit(f"load {kind}, ptr {m.emit(f'getelementptr i8, ptr {base}, i64 {place}')}, align 4")

    given = [Value(m, u32, lanes, load(f"<{lanes} x i32>", "%arguments", 4 * lanes * number)) for number in range(GIVEN[what])]
    mask = Value(m, bool_, lanes, m.emit(f"bitcast i{lanes} {m.emit(f'trunc i32 %mask to i{lanes}')} to <{lanes} x i1>"))
    numbers = {name: load("i64", "%picture", offset(Picture, name)) for name in NUMBERS}
    note = m.emit(f"getelementptr i8, ptr %context, i64 {offset(Context, 'mask')}")
    memory = region(m, Table(load("ptr", "%context", offset(Context, "table")), numbers["base"], note, bits), "memory")
    values: dict[str, Any] = {name: Value(m, u64, 1, m.emit(f"insertelement <1 x i64> poison, i64 {one}, i64 0"))
                              for name, one in numbers.items()}  # fmt: skip
    for number, value in enumerate(OPERATIONS[what](m, replace(one, **values), how, memory, given, mask)):
        place = m.emit(f"getelementptr i8, ptr %arguments, i64 {4 * lanes * number}")
        m.line(f"store {m.typed(m.bitcast(value, u32))}, ptr {place}, align 4")
    m.line("ret void")
    m.define(f"void @{NAME}(ptr %context, ptr %picture, ptr %arguments, i32 %mask)")
    return m.module.text()


assert set(NUMBERS) <= {one.name for one in fields(SurfaceImage)}
