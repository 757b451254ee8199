"""The data port in compiled code: memory as regions of the LLVM machine, through the fields of the context."""

from __future__ import annotations

import ctypes
from typing import Any

from softgen.bits.units import GRF_BYTES
from softgen.lanes.code_machine import Scalar
from softgen.lanes.llvm.region import flat_region, mapped_region, table_region
from softgen.lanes.record import RecordLayout
from softgen.lanes.types import bool_, u8, u32, u64
from softgen.lanes.value import Region, Value
from softgen.shared_functions.bindings import KEYED, KNOWN, NAMED_MEDIA, SURFACES, Bindings, Surface
from softgen.shared_functions.compiled import MessageCode
from softgen.shared_functions.dataport.media import lines_told
from softgen.shared_functions.dataport.media_block_h import BLOCK_REGISTERS, LARGEST_BLOCK, MediaMessage, MediaSurface
from softgen.shared_functions.message import Message
from softgen.shared_functions.texture.compiled import CompiledTexels

SURFACE = RecordLayout.of(Surface)
MEDIA, MEDIA_SURFACE, MEDIA_MESSAGE = int(Bindings.media.offset), RecordLayout.of(MediaSurface), RecordLayout.of(MediaMessage)
BYTES, GIVEN = int(MediaMessage.bytes.offset), int(MediaMessage.given.offset)
SLOT = 4  # bytes that a lane of most messages accesses


class CompiledDataPort(CompiledTexels):
    """A DataPortEnvironment in compiled code."""

    def __init__(self, code: MessageCode) -> None:
        super().__init__(code)
        self._checked = False  # that the message has a buffer

    def within(self, index: int | Value, offsets: Value, mask: Value, what: str) -> None:
        """A side exit for the first message with a lane outside a buffer, which the interpreter reports. Affine offsets are inside if the
        last one is; then there is a buffer, too."""
        code, m = self.code, self.code.m
        entry = self._entry(index)
        size, known = (self._surface(entry, name) for name in ("size", "known"))
        sure, check = m.labels("sure", "check")
        code.before_branch()
        m.branch(m.affine_inside(offsets, mask, size, SLOT), sure, check, likely=True)
        m.start(check)
        end = m.broadcast(size.min(offsets.type.highest).convert(offsets.type).lane(), offsets.lanes)
        inside = ~m.any(mask & (m.rematerialised(offsets, mask) >= end)) | (known > KNOWN).lane()
        code.escape(inside & self._exists(entry))
        m.jump(sure)
        m.start(sure)
        self._checked = True

    def _entry(self, index: int | Value | Scalar) -> int | Scalar:
        m = self.code.m
        return m.scalar(m.convert(index, u64)) if isinstance(index, Value) else index

    def _exists(self, index: int | Scalar) -> Value:
        return (self._surface(index, "host") != 0).lane()

    def _surface(self, index: int | Scalar, name: str) -> Scalar:
        """A field of an entry. Those that code names were resolved before it ran; others may be while it runs."""
        bindings = self.code.pointer("surfaces", dereferenceable=ctypes.sizeof(Bindings))
        return bindings.at(index * SURFACE.size + SURFACE.offset(name)).load(u64, invariant=self.code.named(index) is not None)

    def bound(self, index: int | Value | Scalar) -> Region:
        code, entry = self.code, self._entry(index)
        if (named := code.named(entry)) is not None:
            code.indices.add(named)
        host, size, mapped = (self._surface(entry, name) for name in ("host", "size", "mapped"))
        if not self._checked:
            code.escape(self._exists(entry))
        name = f"surface {index}" if isinstance(index, int) else "a surface"
        return mapped_region(code.m, host, size, mapped, code.note, code.pointer("record"), code.ip, named, name)

    def bindless(self, offset: int | Value) -> Region:
        key = self.code.m.constant(u32, offset, 1) if isinstance(offset, int) else offset
        return self.bound(self.keyed("surface_keys", KEYED, key) + SURFACES)

    def general(self, base: Value | None = None) -> Region:
        code = self.code
        start = code.field("general")
        if base is not None:
            start = start + code.m.scalar(base)
        return table_region(code.m, code.pointer("table"), start, code.announce(), code.address_bits, name="memory")

    def addresses(self) -> Region:
        code = self.code
        table = code.pointer("table")
        return table_region(code.m, table, code.m.number(u64, 0), code.announce(), code.address_bits, canonical=True, name="memory")

    def local(self, plain: bool = False) -> Region:
        code = self.code
        note = None if plain else code.announce()
        return flat_region(code.m, code.field("local"), code.field("local_size"), note, quiet=True, name="local memory")

    def media_block(self, x: Message[Any], writes: bool) -> None:
        """A call of media_block.c; a side exit where the surface is not resolved yet, or the message is one that media.py refuses."""
        code, m, entry, size = self.code, self.code.m, self.entry(x), min(x.sent - GRF_BYTES, LARGEST_BLOCK)
        if (named := code.named(entry)) is not None:
            code.indices.add(NAMED_MEDIA + named)
        surface = code.pointer("surfaces").at(entry * u64.bytes + MEDIA).load(u64)
        code.escape((surface != 0).lane())
        room = m.stack(u32, 8, -(-ctypes.sizeof(MediaMessage) // GRF_BYTES), align=64)
        room.store(x.raw(u32, 0, 8), align=4)
        for start in range(0, size if writes else 0, GRF_BYTES):
            room.at(BYTES + start).store(x.take(u32, start, 8), align=4)
        function = surface.as_pointer().field(MEDIA_SURFACE, "write" if writes else "read").load(u64)
        on, limit = m.scalar(m.convert(m.bits_from_mask(x.mask), u64)), m.number(u64, size if writes else x.answered)
        code.announce()
        m.call_native(function.as_pointer(), code.context, surface.as_pointer(), room, on, m.number(u64, lines_told(x)), limit)
        code.escape((room.field(MEDIA_MESSAGE, "refused").load(u32) == 0).lane())
        for number in range(0 if writes else min(x.answered // GRF_BYTES, BLOCK_REGISTERS)):
            held = room.at(BYTES + number * GRF_BYTES).load_lanes(u8, GRF_BYTES, align=4)
            given = room.at(GIVEN + number * u32.bytes).load(u32)
            x.give(held, number * GRF_BYTES, given.mask(GRF_BYTES))


__all__ = ["CompiledDataPort", "bool_"]
