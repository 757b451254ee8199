"""Operations on texels from compiled kernels: a call of the function that was compiled for the surface."""

from __future__ import annotations

import ctypes
from typing import Any

from softgen.lanes.llvm_scalar import HostPointer, Scalar
from softgen.lanes.record import RecordLayout
from softgen.lanes.types import u32, u64
from softgen.lanes.value import Value
from softgen.shared_functions.bindings import SAMPLING, Bindings, Picture, named_texels, plain_slot, sampling_slot
from softgen.shared_functions.compiled import MessageCode
from softgen.shared_functions.message import Message

BINDINGS = RecordLayout.of(Bindings)
PICTURES = int(Bindings.pictures.offset)


class CompiledTexels:
    """The part of compiled environments that operates on texels."""

    def __init__(self, code: MessageCode) -> None:
        self.code = code

    def textured(self, x: Message[Any], what: str, sampler: int, given: list[Value], mask: Value, count: int) -> list[Value]:
        code, m, lanes, index = self.code, self.code.m, mask.lanes, int(x.plan.fields.binding_table_index)
        code.indices.add(named_texels(index, what, lanes, sampler))
        bindings = code.pointer("surfaces")
        place = PICTURES + index * ctypes.sizeof(Picture)
        function = self._function(bindings.at(place), what, lanes, sampler)
        room = m.stack(u32, lanes, max(len(given), count), align=64)
        places = [room.at(4 * lanes * number) for number in range(max(len(given), count))]
        for pointer, value in zip(places, given, strict=False):
            pointer.store(m.bitcast(value, u32), align=4)
        code.announce()
        bits = m.scalar(m.bits_from_mask(mask))
        picture = bindings.at(place)
        m.call_native(function.as_pointer(), code.context, picture, room, bits)
        return [pointer.load_lanes(u32, lanes, align=4) for pointer in places[:count]]

    def _function(self, picture: HostPointer, what: str, lanes: int, sampler: int) -> Scalar:
        """The address of the function; a side exit where there is none yet. Entries change while kernels run: loads are not invariant."""
        if what not in SAMPLING:
            function = picture.at(8 * plain_slot(what, lanes)).load(u64)
        else:
            functions = picture.at(int(Picture.samplers.offset) + 8 * sampler).load(u64)
            self.code.escape((functions != 0).lane())
            function = functions.as_pointer().at(8 * sampling_slot(what, lanes)).load(u64)
        self.code.escape((function != 0).lane())
        return function
