"""Functions that do something to the texels of a surface (shared_functions/texture.py), for compiled kernels to call.

A function is made for a kind of surface and, where it samples, for a sampler state. What numbers an image has, it finds in its Picture.
"""

from __future__ import annotations

import ctypes
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any

from softgen.errors import SoftgenError
from softgen.eu.block import NUMBERS, TEXTURED, Bindings, Context, Picture, offset
from softgen.lanes import jit
from softgen.lanes.llvm import LlvmMachine
from softgen.lanes.llvm_region import LEAVE, Table, region
from softgen.lanes.types import bool_, u32, u64
from softgen.lanes.value import Value
from softgen.memory import guard
from softgen.shared_functions.texture import OPERATIONS
from softgen.surface.image import Image

NAME = "texels"
GIVEN = {"read": 4, "write": 8, "load": 4, "sample": 5}  # parameters


class Pictures:
    """The surfaces of a dispatch as far as compiled code asked for them."""

    def __init__(self, bindings: Bindings, bits: int) -> None:
        self.bindings, self.bits = bindings, bits
        self.alive: list[jit.Code] = []

    def fill(self, index: int, what: str, lanes: int, sampler: int, one: Image, how: Any) -> bool:
        """Makes the function for a surface; False where it takes the reference."""
        if one.levels > 1 or one.level:
            return False
        try:
            code = function(what, lanes, form(one), how, self.bits)
        except SoftgenError:
            return False  # the reference will say what is wrong
        entry = self.bindings.pictures[index]
        for name in NUMBERS:
            setattr(entry, name, getattr(one, name))
        self.alive.append(code)
        entry.functions[TEXTURED[what, lanes] + sampler] = code.address(NAME)  # last: others may be looking
        return True


def form(one: Image) -> Image:
    """All that code is made for: an image without its numbers."""
    return replace(one, **dict.fromkeys(NUMBERS, 0))


@lru_cache(maxsize=1 << 10)
def function(what: str, lanes: int, one: Image, how: Any, bits: int) -> jit.Code:
    leave = ctypes.cast(guard.library().guard_leave, ctypes.c_void_p).value
    assert leave
    return jit.load(text(what, lanes, one, how, bits), (NAME,), imports={LEAVE: leave})


def text(what: str, lanes: int, one: Image, how: Any, bits: int) -> str:
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
        m.line(f"store {m.typed(m.bitcast(value, u32))}, ptr {m.emit(f'getelementptr i8, ptr %arguments, i64 {4 * lanes * number}')}, align 4")
    m.line("ret void")
    m.define(f"void @{NAME}(ptr %context, ptr %picture, ptr %arguments, i32 %mask)")
    return m.module.text()


assert set(NUMBERS) <= {one.name for one in fields(Image)}
