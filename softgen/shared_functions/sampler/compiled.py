"""The sampler in compiled code: calls of functions that were compiled for surfaces and samplers."""

from __future__ import annotations

import ctypes
from typing import Any

from softgen.bits import catalogue
from softgen.bits.units import GRF_BYTES
from softgen.lanes.code_machine import Scalar
from softgen.lanes.record import RecordLayout
from softgen.lanes.types import u8, u32, u64
from softgen.lanes.value import Value
from softgen.shared_functions.avs.scaler_h import SCALED_REGISTERS, ScalerMessage, ScalerSurface
from softgen.shared_functions.bindings import KEYED, SAMPLERS, Bindings, named_scaled
from softgen.shared_functions.message import Message
from softgen.shared_functions.texture.compiled import CompiledTexels

SCALERS, SCALER_SURFACE, SCALER_MESSAGE = int(Bindings.scalers.offset), RecordLayout.of(ScalerSurface), RecordLayout.of(ScalerMessage)
PARAMETERS, WORDS, GIVEN = (int(getattr(ScalerMessage, name).offset) for name in ("parameters", "words", "given"))


class CompiledSampler(CompiledTexels):
    """A SamplerEnvironment in compiled code."""

    def moved(self, offsets: list[Value]) -> list[Value]:
        """Messages that add offsets to coordinates are side exits."""
        for offset in offsets:
            self.code.escape(offset == 0)
        return []

    def sampler(self, index: int | Value, table: Value | None) -> int | Scalar:
        """An entry of a Picture's samplers: an index into the table of the dispatch is one, samplers of other tables have a key."""
        m = self.code.m
        if table is None:
            return index if isinstance(index, int) else m.scalar(m.convert(index, u64))
        size = 4 * catalogue.layout("SAMPLER_STATE", self.code.gen).dwords
        return self.keyed("sampler_keys", SAMPLERS + KEYED, table + index * size)

    def check_block(self, x: Message[Any]) -> None:
        """A side exit for results of other kinds; surfaces are looked at where they are resolved."""
        self.code.escape(x.header("MH_SAMPLE_8X8", "output_format_control") == 0)

    def scaled(self, x: Message[Any]) -> None:
        """A call of scaler.c; a side exit where the surface is not resolved yet, or the message is one that the interpreter refuses."""
        code, m, entry, sampler = self.code, self.code.m, self.entry(x), x.sampler_index
        if (named := code.named(entry)) is not None and isinstance(sampler, int):
            code.indices.add(named_scaled(named, sampler))
        surface = code.pointer("surfaces").at(entry * u64.bytes + SCALERS).load(u64)
        code.escape((surface != 0).lane())
        wanted = sampler if isinstance(sampler, int) else m.scalar(m.convert(sampler, u32))
        code.escape((surface.as_pointer().field(SCALER_SURFACE, "sampler").load(u32) == wanted).lane())
        room = m.stack(u32, 8, -(-ctypes.sizeof(ScalerMessage) // GRF_BYTES), align=64)
        room.store(x.raw(u32, 0, 8), align=4)
        room.at(PARAMETERS).store(x.take(u32, 0, 8), align=4)
        function = surface.as_pointer().field(SCALER_SURFACE, "sample").load(u64)
        on = m.scalar(m.convert(m.bits_from_mask(x.mask), u64))
        code.announce()
        m.call_native(function.as_pointer(), code.context, surface.as_pointer(), room, on, m.number(u64, x.answered))
        code.escape((room.field(SCALER_MESSAGE, "refused").load(u32) == 0).lane())
        for number in range(min(x.answered // GRF_BYTES, SCALED_REGISTERS)):
            held = room.at(WORDS + number * GRF_BYTES).load_lanes(u8, GRF_BYTES, align=4)
            given = room.at(GIVEN + number * u32.bytes).load(u32)
            x.give(held, number * GRF_BYTES, given.mask(GRF_BYTES))
