"""Operations on texels from compiled kernels: a call of the function that was compiled for the surface."""

from __future__ import annotations

import ctypes
from typing import Any

from softgen.lanes.code_machine import HostPointer, Scalar
from softgen.lanes.record import RecordLayout
from softgen.lanes.types import u32, u64
from softgen.lanes.value import Value
from softgen.shared_functions.bindings import (
    KEYED,
    SAMPLING,
    SURFACES,
    USED,
    Bindings,
    Picture,
    named_texels,
    plain_slot,
    sampling_slot,
)
from softgen.shared_functions.compiled import MessageCode
from softgen.shared_functions.message import Message
from softgen.shared_functions.texture.operations import bindless_offset, is_bindless

BINDINGS = RecordLayout.of(Bindings)
PICTURES = int(Bindings.pictures.offset)


class CompiledTexels:
    """The part of compiled environments that operates on texels."""

    def __init__(self, code: MessageCode) -> None:
        self.code = code

    def textured(self, x: Message[Any], what: str, sampler: int | Scalar, given: list[Value], mask: Value, count: int) -> list[Value]:
        code, m, lanes, index = self.code, self.code.m, mask.lanes, self.entry(x)
        bindings = code.pointer("surfaces")
        table_index = x.sampler_index if what in SAMPLING else 0  # in the dispatch's table: most headers name that
        if (named := code.named(index)) is not None and isinstance(table_index, int):
            code.indices.add(named_texels(named, what, lanes, table_index))
        place = index * ctypes.sizeof(Picture) + PICTURES
        functions, function = self._function(bindings.at(place), what, lanes, sampler)
        room = m.stack(u32, lanes, max(len(given), count), align=64)
        places = [room.at(4 * lanes * number) for number in range(max(len(given), count))]
        for pointer, value in zip(places, given, strict=False):
            pointer.store(m.bitcast(value, u32), align=4)
        code.announce()
        bits = m.scalar(m.bits_from_mask(mask))
        picture = bindings.at(place)
        m.call_native(function.as_pointer(), code.context, picture, functions, room, bits)
        return [pointer.load_lanes(u32, lanes, align=4) for pointer in places[:count]]

    def entry(self, x: Message[Any]) -> int | Scalar:
        """The number of a message's surface in Bindings: its binding table index, or what a bindless surface's key is found at."""
        m, index = self.code.m, x.surface_index
        if isinstance(index, Value):
            return m.scalar(m.convert(index, u64))
        if not is_bindless(x):
            return index
        offset = bindless_offset(x)
        key = m.constant(u32, offset, 1) if isinstance(offset, int) else offset
        return self.keyed("surface_keys", KEYED, key) + SURFACES

    def keyed(self, table: str, count: int, key: Value) -> Scalar:
        """Where a table of Bindings has a key; a side exit where it is not there yet."""
        code, m = self.code, self.code.m
        keys = code.pointer("surfaces").field(BINDINGS, table).load_lanes(u32, count, align=4)
        found = m.bits_from_mask(keys == m.broadcast(key + USED, count))
        code.escape(found != 0)
        return m.scalar(m.convert(m.trailing_zeros(found), u64))

    def _function(self, picture: HostPointer, what: str, lanes: int, sampler: int | Scalar) -> tuple[HostPointer, Scalar]:
        """The SampleFunctions, if it samples, and the address of the function; a side exit where there is none yet. Entries
        change while kernels run: loads are not invariant."""
        if what not in SAMPLING:
            found, function = picture, picture.at(8 * plain_slot(what, lanes)).load(u64)
        else:
            functions = picture.at(sampler * 8 + int(Picture.samplers.offset)).load(u64)
            self.code.escape((functions != 0).lane())
            found = functions.as_pointer()
            function = found.at(8 * sampling_slot(what, lanes)).load(u64)
        self.code.escape((function != 0).lane())
        return found, function
